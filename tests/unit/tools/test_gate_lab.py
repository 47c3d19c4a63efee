# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The gates on nodes: what they run, and that a machine which cannot run them is a skip with a reason."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

import gate_list
import tree
from gate_model import Job

REASON = "no lab can run here: Debian packages are missing; as root run: apt-get install qemu-system-x86"


class Machine(Job):
    """A job whose commands end as told; the key is the first words that a command line has in it."""

    def __init__(self, ends: dict[str, tuple[int, str]]) -> None:
        super().__init__("gate", io.StringIO())
        self.ends = ends
        self.ran: list[str] = []
        self.states: list[Path] = []

    def run(
        self, *command: str | Path, env: dict[str, str] | None = None, **_more: object
    ) -> tuple[int, str]:
        words = " ".join(str(word) for word in command[1:])
        self.ran.append(words)
        if env is not None:
            self.states.append(Path(env["MOLECULE_EPHEMERAL_DIRECTORY"]))
            assert list(self.states[-1].iterdir()) == []
        return self.ends[words]


@pytest.fixture
def sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy with a lab, one scenario on it and one without it."""
    monkeypatch.setattr(tree, "COPY", tmp_path)
    monkeypatch.setattr(gate_list, "STATES", tmp_path / "states")
    (tmp_path / "tests" / "lab").mkdir(parents=True)
    (tmp_path / "tests" / "lab" / "__main__.py").touch()
    for name, task in (("on_lab", "import_tasks: ../tasks/lab_up.yml"), ("plain", "command: ip netns add x")):
        folder = tmp_path / "extensions" / "molecule" / name
        folder.mkdir(parents=True)
        (folder / "molecule.yml").touch()
        (folder / "create.yml").write_text(task)
    return tmp_path


CAN = {"tests/lab check": (0, "a lab can run here\n")}
CANNOT = {"tests/lab check": (gate_list.NO_LAB, f"[ 0.0 s] looking\n{REASON}\n")}


def test_the_exit_code_is_the_one_of_the_lab() -> None:
    text = (Path(gate_list.__file__).parents[1] / "lab" / "cli.py").read_text()
    assert f"UNFIT = {gate_list.NO_LAB}\n" in text


def test_the_lab_counts_its_assertions(sources: Path) -> None:
    outcome = gate_list.lab(
        Machine({**CAN, "tests/lab selftest": (1, "pass  a\nFAIL  b: x\n7 passed, 1 failed\n")})
    )
    assert (outcome.passed, outcome.failed, outcome.broken, outcome.skips) == (7, 1, [], [])


def test_a_lab_that_ends_without_counts_is_a_failure(sources: Path) -> None:
    outcome = gate_list.lab(Machine({**CAN, "tests/lab selftest": (1, "Traceback\n")}))
    assert len(outcome.broken) == 2


def test_the_lab_is_skipped_with_the_reason(sources: Path) -> None:
    job = Machine(CANNOT)
    outcome = gate_list.lab(job)
    assert outcome.skipped_whole
    assert [(skip.reason, skip.test) for skip in outcome.skips] == [(REASON, "")]
    assert job.ran == ["tests/lab check"]


def test_a_lab_that_is_not_there_is_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree, "COPY", tmp_path)
    assert gate_list.lab(Machine({})).broken


def test_scenarios_on_the_lab_are_skipped_by_name(sources: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate_list.os, "geteuid", lambda: 0)
    outcome = gate_list.molecule(Machine({**CANNOT, "test -s plain": (0, "")}))
    assert [(skip.reason, skip.test) for skip in outcome.skips] == [(REASON, "on_lab")]
    assert (outcome.passed, outcome.failed) == (1, 0)


def test_a_scenario_begins_anew_whatever_a_run_left(sources: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another clone's state is never taken for its own: each clone has a place for each scenario, empty at first."""
    monkeypatch.setattr(gate_list.os, "geteuid", lambda: 0)
    for name in ("plain", "on_lab"):
        (sources / "states" / name).mkdir(parents=True)
        (sources / "states" / name / "state.yml").write_text("created: true\n")
    job = Machine({**CAN, "test -s plain": (0, ""), "test -s on_lab": (0, "")})
    assert gate_list.molecule(job).passed == 2
    assert job.states == [sources / "states" / "on_lab", sources / "states" / "plain"]


def test_scenarios_without_the_lab_need_root(sources: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate_list.os, "geteuid", lambda: 1000)
    outcome = gate_list.molecule(Machine({**CAN, "test -s on_lab": (2, "")}))
    assert [(skip.reason, skip.test) for skip in outcome.skips] == [("this user is not root", "plain")]
    assert (outcome.passed, outcome.failed) == (0, 1)


def test_no_scenario_is_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree, "COPY", tmp_path)
    assert gate_list.molecule(Machine({})).broken


def test_the_cluster_counts_its_tests(sources: Path) -> None:
    (sources / "tests" / "lab" / "cluster_test.py").touch()
    job = Machine({**CANNOT, "tests/lab cluster test --only native": (1, "12 passed, 2 failed\n")})
    outcome = gate_list.cluster(job)
    assert (outcome.passed, outcome.failed, outcome.broken, outcome.skips) == (12, 2, [], [])


def test_a_cluster_that_is_not_there_is_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree, "COPY", tmp_path)
    assert gate_list.cluster(Machine({})).broken
