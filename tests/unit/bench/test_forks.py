# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""B10: what belongs to a controller is found in /proc, and a sweep becomes targets, curves and a table."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.k8s.tests.bench import page, run

forks, memory, measure = run.benches.forks, run.benches.forks.memory, run.benches.forks.measure
COMMAND = b"python\0ansible-playbook\0play.yml\0"
FORKING = """
import os, sys, time
for _fork in range(3):
    if os.fork() == 0:
        kept = bytearray(20 << 20)
        kept[:] = b"x" * len(kept)
        time.sleep(60)
        os._exit(0)
import subprocess
subprocess.Popen(["cat"])  # no fork; it ends with the pipe that both read
print("ready", flush=True)
sys.stdin.read()
"""


def process(proc: Path, pid: int, parent: int, command: bytes, *, pss: int = 100, own: int = 40) -> None:
    """A process in a made-up /proc. Its name has what a parser must not trip over."""
    place = proc / str(pid)
    place.mkdir()
    (place / "stat").write_text("%d (a) b (c) S %d 1 1 0 -1" % (pid, parent))
    (place / "cmdline").write_bytes(command)
    (place / "smaps_rollup").write_text(
        "5500-7fff ---p 00000000 00:00 0 [rollup]\nRss: 900 kB\nPss: %d kB\nPss_Dirty: 1 kB\n"
        "Private_Clean: %d kB\nPrivate_Dirty: %d kB\n" % (pss, own - 30, 30)
    )


def test_forks_are_told_from_programs(tmp_path: Path) -> None:
    process(tmp_path, 10, 1, COMMAND, pss=500)
    process(tmp_path, 11, 10, COMMAND)
    process(tmp_path, 12, 10, COMMAND, pss=200, own=90)
    process(tmp_path, 13, 10, b"ssh\0-x\0", pss=9999)
    process(tmp_path, 14, 11, COMMAND, pss=9999)  # a fork of a fork
    process(tmp_path, 15, 1, COMMAND, pss=9999)  # another run
    (tmp_path / "self").mkdir()
    (tmp_path / "16").mkdir()  # it has gone
    assert memory.forks_of(10, tmp_path) == [11, 12]
    seen = memory.look(10, tmp_path)
    assert (seen.main, seen.forks, seen.own, seen.total) == (500, (100, 200), (40, 90), 800)
    assert memory.look(99, tmp_path) == memory.Look(0)


def test_real_forks_are_seen_with_what_they_hold() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", FORKING], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        children = memory.forks_of(process.pid)
        sampler = memory.Sampler(0.05)
        try:
            sampler.begin(process.pid)
            end = time.monotonic() + 60
            while time.monotonic() < end and not any(
                seen.own and min(seen.own) > 20 << 10 for seen in sampler.looks
            ):
                time.sleep(0.05)
            peak = sampler.end()
        finally:
            process.kill()
            for child in children:
                subprocess.run(["kill", "-9", str(child)], check=False)
    assert len(peak.forks) == 3
    assert min(peak.own) > 20 << 10
    assert min(peak.forks) >= min(peak.own)


def test_nothing_was_seen() -> None:
    assert memory.Sampler().end() == memory.Look(0)


def a_point(many: int, way: str = forks.PLAIN, one: int = 20) -> Any:
    peak = memory.Look(50 << 10, (one << 10,) * many, (10 << 10,) * many)
    return forks.point(many, way, measure.Run(100 / many, 7.0, 0, 0, ""), peak)


def test_a_run_in_mebibytes() -> None:
    found = a_point(5)
    assert (found.peak, found.main, found.alive, found.one, found.own) == (150, 50, 5, 20, 10)
    assert len(found.row) == len(forks.HEADS)


def test_the_cost_of_one_more() -> None:
    assert forks.one_more([a_point(5), a_point(25), a_point(100)]) == 20
    with pytest.raises(measure.BenchError, match="had 5 forks at each"):
        forks.one_more([a_point(5), a_point(5)])


def test_hosts_without_a_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from ansible_collections.rdma.k8s.tests.support import private_sshd

    monkeypatch.setattr(private_sshd, "missing", lambda: ["sshd"])
    with forks.hosts(3, tmp_path) as (inventory, how):
        assert how == "local (no sshd here)"
        assert len(inventory["all"]["hosts"]) == 3
        assert inventory["all"]["vars"]["ansible_connection"] == "local"


def test_mitogen_is_installed_from_its_lock_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lock = tmp_path / "bench.txt"
    lock.write_text("mitogen==0 --hash=sha256:0\n")
    asked: list[list[str]] = []

    def pip(command: list[str], **_options: Any) -> Any:
        asked.append(command)
        return subprocess.CompletedProcess(command, 1, "", "ERROR: first\nERROR: no such release\n")

    monkeypatch.setattr(forks.subprocess, "run", pip)
    place, without = forks.mitogen(lock, tmp_path)
    assert without == "ERROR: no such release"
    assert "--require-hashes" in asked[0]
    place.mkdir()
    assert forks.mitogen(lock, tmp_path) == (place, "")
    assert len(asked) == 1
    lock.write_text("mitogen==1 --hash=sha256:0\n")
    assert forks.mitogen(lock, tmp_path)[0] != place


def test_what_a_way_sets(tmp_path: Path) -> None:
    assert forks.settings(forks.PLAIN, tmp_path)["ANSIBLE_PIPELINING"] == "0"
    assert forks.settings(forks.PIPELINED, tmp_path)["ANSIBLE_PIPELINING"] == "1"
    assert forks.settings(forks.MITOGEN, tmp_path)["ANSIBLE_STRATEGY"] == "mitogen_linear"


@pytest.mark.parametrize(("one", "missed"), [(20, 0), (101, 2)])
@pytest.mark.parametrize("without", ["", "there is no network"])
def test_the_sweep_becomes_a_benchmark(
    one: int, missed: int, without: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ways = [forks.PLAIN, forks.PIPELINED, *([] if without else [forks.MITOGEN])]
    points = [a_point(many, way, one) for way in ways for many in forks.FORKS]
    monkeypatch.setattr(forks, "sweep", lambda count: forks.Sweep(points, "SSH on loopback", without))
    bench = run.benches.forks_sweep(200)
    assert len(run.missed([bench], quick=False)) == missed
    assert [len(row) for row in bench.table] == [len(forks.HEADS)] * (1 + 4 * len(ways))
    baseline = bench.baselines["Ansible as it comes: 5 forks, no pipelining"]
    assert baseline == {"seconds": 20, "times_slower_than_the_fastest": 20}
    assert ("there is no network" in bench.note) is bool(without)
    assert any("Mitogen" in name for name in bench.baselines) is not bool(without)

    run.write(tmp_path, [bench], {"cpus": 2}, quick=False)
    names = sorted(path.name for path in tmp_path.glob("*.svg"))
    assert len(names) == 3 * len(ways)
    assert "b10-memory-with-pipelining-over-forks.svg" in names
    assert "stroke-dasharray" not in (tmp_path / names[0]).read_text()
    text = page.section((tmp_path / "results.md").read_text(), "2026-03-02T09:00:00Z", names)
    picture = "images/bench-b10-memory-with-pipelining-over-forks.svg"
    assert "![Memory with pipelining of B10 over forks](%s)" % picture in text
    assert "| with pipelining | 100 | 1 | 7 |" in text
