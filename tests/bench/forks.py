# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""B10: many hosts read with few and with many forks: without pipelining, with it, and with Mitogen.

The hosts are names for this machine, reached over SSH: one server on loopback, a connection for each name. Where there
is no server, the connection is local. The controller's own cost is what a fleet would cost it. The time on the clock is
not: here one machine does the work of the controller and of all hosts.
"""

from __future__ import annotations

import contextlib
import hashlib
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import measure
import memory
import paths

import playbooks

FORKS = (5, 25, 50, 100)
PLAIN, PIPELINED, MITOGEN = "without pipelining", "with pipelining", "with Mitogen"
DEFAULT = (5, PLAIN)
"""Ansible as it comes."""
LOCK = paths.ROOT / "requirements" / "bench.txt"
READ = playbooks.BASELINE / "read.yml"


@dataclass(frozen=True)
class Point:
    """One run of the sweep; memory in MiB, of the moment with the most.

    :param cpu: CPU seconds of ansible-playbook and its children on the controller, the ssh programs too.
    :param alive: forks of that moment.
    :param one: PSS of one of them, ``own`` what it shares with nobody.
    """

    forks: int
    way: str
    wall: float
    cpu: float
    peak: float
    main: float
    alive: int
    one: float
    own: float

    @property
    def row(self) -> list[Any]:
        """The point as a row of :data:`HEADS`."""
        return [
            self.way,
            self.forks,
            self.wall,
            self.cpu,
            self.peak,
            self.main,
            self.alive,
            self.one,
            self.own,
        ]


HEADS = [
    "way",
    "forks",
    "seconds on the clock",
    "CPU seconds of the controller",
    "peak memory of all, MiB",
    "of it the main process",
    "forks at the peak",
    "a fork (PSS)",
    "a fork, unshared",
]


def point(forks: int, way: str, done: measure.Run, peak: memory.Look) -> Point:
    """What a run was, with the memory that was seen."""
    count = max(len(peak.forks), 1)
    mebi = 1024
    return Point(
        forks=forks, way=way, wall=done.wall, cpu=done.cpu, peak=peak.total / mebi,
        main=peak.main / mebi, alive=len(peak.forks), one=sum(peak.forks) / count / mebi,
        own=sum(peak.own) / count / mebi,
    )  # fmt: skip


def one_more(points: Sequence[Point]) -> float:
    """MiB of one more fork: between the runs with the fewest and with the most forks at their peaks."""
    few, many = (choose(points, key=lambda entry: entry.alive) for choose in (min, max))
    if many.alive == few.alive:
        raise measure.BenchError("the sweep had %d forks at each of its peaks" % few.alive)
    return (many.peak - few.peak) / (many.alive - few.alive)


@contextlib.contextmanager
def hosts(count: int, folder: Path) -> Iterator[tuple[dict[str, Any], str]]:
    """An inventory of so many names for this machine, and how they are reached."""
    paths.make_importable()
    from ansible_collections.rdma.k8s.tests.support import private_sshd

    lacking = private_sshd.missing()
    if lacking:
        yield playbooks.local_hosts(count, folder), "local (no %s here)" % ", ".join(lacking)
        return
    for place in ("ssh", "c"):
        (folder / place).mkdir(mode=0o700)
    with private_sshd.serve(folder / "ssh", together=2 * max(FORKS)) as server:
        made = {
            # one path for each name, or all of them would share a connection
            "node-%03d" % number: {"ansible_control_path": str(folder / "c" / ("%03d" % number))}
            for number in range(count)
        }
        variables = server.host(ansible_python_interpreter=server.python)
        try:
            yield {"all": {"hosts": made, "vars": variables}}, "SSH on loopback"
        finally:
            hang_up(folder / "c")


def hang_up(folder: Path) -> None:
    """End the connections that ssh keeps open, so that each run begins without any."""
    for path in sorted(folder.iterdir()):
        command = ["ssh", "-F", "none", "-o", "ControlPath=%s" % path, "-O", "exit", "127.0.0.1"]
        subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)
        path.unlink(missing_ok=True)


def mitogen(lock: Path = LOCK, build: Path = paths.ROOT / "build") -> tuple[Path, str]:
    """Where the locked Mitogen is, and why it is not there, else nothing; it is installed once."""
    place = build / ("mitogen-" + hashlib.sha256(lock.read_bytes()).hexdigest()[:12])
    if not place.is_dir():
        words = [
            "--quiet",
            "--require-hashes",
            "--no-deps",
            "--target",
            str(place),
            "--requirement",
            str(lock),
        ]
        command = [sys.executable, "-m", "pip", "install", *words]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        if done.returncode:
            return place, (done.stderr.strip() or "pip failed").splitlines()[-1]
    return place, ""


def settings(way: str, place: Path) -> dict[str, Any]:
    """The environment of a run. With 100 forks on few CPUs a login takes longer than the 10 seconds of the default."""
    patience = {"ANSIBLE_TIMEOUT": "120"}
    if way != MITOGEN:
        return {**patience, "ANSIBLE_PIPELINING": str(int(way == PIPELINED))}
    strategies = place / "ansible_mitogen" / "plugins" / "strategy"
    return {
        **patience,
        "ANSIBLE_STRATEGY": "mitogen_linear",
        "ANSIBLE_STRATEGY_PLUGINS": str(strategies),
        "PYTHONPATH": str(place),
    }


@dataclass(frozen=True)
class Sweep:
    """All runs.

    :param how: how the hosts were reached.
    :param without: why there are none with Mitogen, or nothing.
    """

    points: list[Point]
    how: str
    without: str = ""


def sweep(count: int, forks: Sequence[int] = FORKS) -> Sweep:
    """Each way with each number of forks."""
    place, without = mitogen()
    ways = [PLAIN, PIPELINED, *([] if without else [MITOGEN])]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with hosts(count, folder) as (inventory, how):
            ground = playbooks.Playground(folder, inventory)
            found = []
            for way in ways:
                # what later runs find on the controller and on the host, such as the library that the module needs
                first = next(iter(inventory["all"]["hosts"]))
                ground.play(READ, "--limit", first, **settings(way, place))
                for many in forks:
                    if (folder / "c").is_dir():
                        hang_up(folder / "c")
                    found.append(_once(ground, many, way, place))
                    print("    %s, %d forks: %.1f s" % tuple(found[-1].row[:3]), file=sys.stderr)
            return Sweep(found, how, without)


def _once(ground: playbooks.Playground, forks: int, way: str, place: Path) -> Point:
    sampler = memory.Sampler()
    try:
        done = ground.play(READ, "--forks", str(forks), watch=sampler.begin, **settings(way, place))
    finally:
        peak = sampler.end()
    if not peak.forks:
        raise measure.BenchError("no fork of the run with %d forks was seen" % forks)
    return point(forks, way, done, peak)
