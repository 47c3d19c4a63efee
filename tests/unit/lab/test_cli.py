# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The command line, started as a user starts it."""

from __future__ import annotations

import functools
import json
import pathlib
import re
import subprocess
import sys

import pytest

from ansible_collections.rdma.k8s.tests.lab import cli, lab, plan
from ansible_collections.rdma.k8s.tests.lab.errors import LabError

PROGRAM = pathlib.Path(cli.__file__).parent


def call(*words: str, cache: pathlib.Path) -> subprocess.CompletedProcess[str]:
    """Run the program in a process of its own."""
    env = {"PATH": "/usr/bin:/bin", "RDMA_LAB_CACHE": str(cache), "HOME": str(cache)}
    return subprocess.run(
        [sys.executable, str(PROGRAM), *words], capture_output=True, text=True, env=env, check=False
    )


def test_help_needs_nothing(tmp_path: pathlib.Path) -> None:
    done = call("--help", cache=tmp_path)
    assert done.returncode == 0
    for word in (
        "up",
        "wait",
        "inventory",
        "ssh",
        "down",
        "fault",
        "cycle",
        "status",
        "selftest",
        "build",
        "check",
    ):
        assert re.search(rf"^    {word}\b", done.stdout, re.MULTILINE)
    done = call("fault", "--help", cache=tmp_path)
    assert "swap-nics RAIL RAIL" in done.stdout
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("code", ["host_unfit", "tools_missing", "qemu_old"])
def test_check_says_why_no_lab_can_run(
    code: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(*_words: object) -> None:
        raise LabError(code, "Something is missing.")

    calls: list[str] = []

    def note(function: str, *_words: object) -> None:
        calls.append(function)

    monkeypatch.setenv("RDMA_LAB_CACHE", str(tmp_path))
    steps = {
        "host_unfit": (cli.qemu, "check_host"),
        "tools_missing": (cli.Cache, "check"),
        "qemu_old": (cli.qemu, "qemu_build"),
    }
    for name, (owner, function) in steps.items():
        monkeypatch.setattr(owner, function, refuse if name == code else functools.partial(note, function))
    assert cli.main(["check"]) == cli.UNFIT
    assert capsys.readouterr().out == "no lab can run here: Something is missing.\n"
    assert len(calls) == list(steps).index(code)


def test_check_on_a_machine_that_can_run_a_lab(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RDMA_LAB_CACHE", str(tmp_path))
    for owner, function in ((cli.qemu, "check_host"), (cli.Cache, "check"), (cli.qemu, "qemu_build")):
        monkeypatch.setattr(owner, function, lambda *_words: None)
    assert cli.main(["check"]) == 0
    assert capsys.readouterr().out == "a lab can run here\n"


@pytest.mark.parametrize(
    "words",
    [
        ["wait"],
        ["inventory"],
        ["ssh", "node1"],
        ["status"],
        ["fault", "node1", "mtu", "0"],
        ["driver", "stock"],
    ],
)
def test_commands_for_a_lab_that_is_not_up(words: list[str], tmp_path: pathlib.Path) -> None:
    done = call(*words, cache=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "lab: The lab 'default' is not up; start it with up --name default.\n"


def test_down_without_a_lab_is_no_error(tmp_path: pathlib.Path) -> None:
    done = call("down", "--name", "two", cache=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "lab two: nothing was running\n", "")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["up", "--nodes", "99"], "lab: --nodes 99: a lab has 1 to 16 nodes.\n"),
        (["up", "--shape", "BM.X"], "lab: --shape BM.X: use LAB.RXE.1 to LAB.RXE.16, or one of "),
        (["up", "--name", "../x"], "lab: --name '../x': use 1 to 24 lower-case letters"),
        (["cycle", "--rails", "0"], "lab: --rails 0: a node has 1 to 16 rails"),
    ],
)
def test_wrong_wishes_start_nothing(words: list[str], said: str, tmp_path: pathlib.Path) -> None:
    done = call(*words, cache=tmp_path)
    assert done.returncode == 1
    assert done.stderr.startswith(said)
    assert list(tmp_path.rglob("*")) == []


@pytest.mark.parametrize(
    "words", [[], ["nonsense"], ["up", "--nic", "mlx5"], ["up", "--nodes", "x"], ["fault"]]
)
def test_usage(words: list[str], tmp_path: pathlib.Path) -> None:
    done = call(*words, cache=tmp_path)
    assert done.returncode == 2
    assert "usage:" in done.stderr


@pytest.fixture
def one(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> lab.State:
    """A lab that looks started, in its own cache."""
    monkeypatch.setenv("RDMA_LAB_CACHE", str(tmp_path))
    monkeypatch.setattr(cli.signal, "signal", lambda number, handler: None)
    state = lab.State("default", plan.make_spec(), 23000, "tcg", "/i", True, 0.0)
    (tmp_path / "run" / "default").mkdir(parents=True)
    (tmp_path / "run" / "default" / "lab.json").write_text(state.to_json())
    return state


def test_inventory_is_written_for_its_owner_only(
    one: lab.State, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["inventory", "--group", "rails"]) == 0
    text = capsys.readouterr().out
    assert text == lab.inventory_text(one, tmp_path / "id_ed25519", "rails")
    assert cli.main(["inventory", "--group", "rails", "--output", str(tmp_path / "new" / "hosts.yml")]) == 0
    assert (tmp_path / "new" / "hosts.yml").read_text() == text
    assert (tmp_path / "new" / "hosts.yml").stat().st_mode & 0o777 == 0o600
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["hosts.yml"]


def test_status_of_nodes_that_are_gone(
    one: lab.State, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "run" / "default" / "node2.rail-broken").write_text("3")
    assert cli.main(["status"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "lab default: shape LAB.RXE.4, 4 virtio rail(s), lab rxe, tcg",
        "  node1: gone, ssh port 23001, faults: none",
        "  node2: gone, ssh port 23002, faults: rail-broken 3",
    ]
    assert cli.main(["status", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["nodes"]["node2"] == {"running": False, "port": 23002, "faults": {"rail-broken": ["3"]}}


def test_results_are_labelled_by_their_driver(one: lab.State) -> None:
    assert cli.label(one) == "lab rxe"
    one.spec = plan.make_spec(driver="stock")
    assert cli.label(one) == "stock rxe"


@pytest.mark.parametrize("code", [0, 3])
def test_cycle_ends_the_lab_and_returns_the_code(
    code: int, one: lab.State, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    calls = []
    monkeypatch.setattr(lab.Lab, "up", lambda self, spec, **options: calls.append("up") or one)
    monkeypatch.setattr(lab.Lab, "wait", lambda self: calls.append("wait"))
    monkeypatch.setattr(lab.Lab, "down", lambda self: calls.append("down"))
    script = f'test -s "$RDMA_LAB_INVENTORY" && exit {code}'
    assert cli.main(["cycle", "--", "sh", "-c", script]) == code
    assert calls == ["up", "wait", "down"]
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()[1:]] == [
        "up",
        "wait",
        "command",
        "down",
        "total",
    ]


def test_cycle_ends_the_lab_after_an_error(
    one: lab.State, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    calls = []

    def wait(self: lab.Lab) -> None:
        raise LabError("not_ready", "node1 did not boot")

    monkeypatch.setattr(lab.Lab, "up", lambda self, spec, **options: one)
    monkeypatch.setattr(lab.Lab, "wait", wait)
    monkeypatch.setattr(lab.Lab, "down", lambda self: calls.append("down"))
    assert cli.main(["cycle"]) == 1
    assert calls == ["down"]
    assert capsys.readouterr().err == "lab: node1 did not boot\n"


def test_a_polite_request_to_end_is_an_exception() -> None:
    with pytest.raises(SystemExit) as caught:
        cli._terminated(15, None)
    assert caught.value.code == 143
