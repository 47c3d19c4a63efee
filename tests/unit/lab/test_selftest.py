# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The parts of the selftest that need no node: batches of steps, their answers, and what a wrong node looks like."""

from __future__ import annotations

import json
import pathlib
import subprocess
import typing

import pytest

from ansible_collections.rdma.k8s.tests.lab import faults, lab, plan, selftest
from ansible_collections.rdma.k8s.tests.lab.errors import LabError


def bash(script: str) -> str:
    return subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True).stdout


def test_each_step_has_its_own_shell_and_answer() -> None:
    steps = [
        "echo one; echo two >&2; exit 3",
        "cd /; x=1",
        "echo ${x:-unset}; false",
        "printf 'a\nb\n\n'",
        "exit",
    ]
    assert selftest.batch_results(bash(selftest.batch(steps))) == [
        (3, "one\ntwo"),
        (0, ""),
        (1, "unset"),
        (0, "a\nb"),
        (0, ""),
    ]


def test_waiting_ends_with_success_or_with_the_last_error(tmp_path: pathlib.Path) -> None:
    later = tmp_path / "later"
    steps = [
        f"(sleep 0.3; touch {later}) & eventually test -e {later} && echo there",
        "eventually true && echo now",
    ]
    assert selftest.batch_results(bash(selftest.batch(steps))) == [(0, "there"), (0, "now")]
    quick = selftest.batch(["eventually ls /no/such/place"]).replace("seq 80", "seq 2")
    ((code, said),) = selftest.batch_results(bash(quick))
    assert code == 2
    assert said.count("No such file") == 1


def test_the_table_of_a_node_without_devices_is_empty() -> None:
    functions = selftest.FUNCTIONS.replace("/sys/class/infiniband", "/no/such/place")
    assert bash(functions + "gids; has 0000 || echo lacks; table '' && echo same") == "lacks\nsame\n"


def test_the_table_is_read_without_its_gaps(tmp_path: pathlib.Path) -> None:
    port = tmp_path / "mlx5_0" / "ports" / "1"
    for name in ("gid_attrs/types", "gid_attrs/ndevs", "gids"):
        (port / name).mkdir(parents=True)
    for index, gid in ((0, "fe80::1"), (2, selftest.gid_of("10.208.13.19"))):
        (port / "gid_attrs" / "types" / str(index)).write_text("RoCE v2\n")
        (port / "gid_attrs" / "ndevs" / str(index)).write_text("rdma0\n")
        (port / "gids" / str(index)).write_text(f"{gid}\n")
    gid = "0000:0000:0000:0000:0000:ffff:0ad0:0d13"
    functions = selftest.FUNCTIONS.replace("/sys/class/infiniband", str(tmp_path))
    assert bash(functions + "gids") == f"fe80::1 RoCE v2 rdma0\n{gid} RoCE v2 rdma0\n"
    assert bash(functions + f"has {gid} && ! lacks {gid} && ! has fe80::2 && echo right") == "right\n"


class Answers(lab.Lab):
    """A lab whose node programs answer what a test prepared."""

    def __init__(self, *answers: str) -> None:
        self.name = "test"
        self.answers = list(answers)
        self.asked: list[str] = []

    def state(self) -> lab.State:
        return lab.State("test", plan.LabSpec(), 22220, "tcg", "image", True, 0.0)

    def node_try(self, node: int, script: str, timeout: float = 0) -> subprocess.CompletedProcess[str]:
        self.asked.append(script)
        answer = self.answers.pop(0)
        return subprocess.CompletedProcess([], int(not answer), answer, "")


def fingerprint(**changes: typing.Any) -> dict:
    links = {
        f"rdma{n}": {"addresses": [f"10.224.{13 + 32 * n}.19/12"], "mac": f"m{n}", "mtu": 4220}
        for n in range(4)
    }
    links["eth0"] = {"addresses": ["10.140.77.19/19"]}
    base: dict[str, typing.Any] = {"links": links, "oca": {"network": "x"}, "netns": "shared"}
    return {**base, **changes}


def case_of(name: str) -> selftest.FaultCase:
    return next(case for case in selftest.fault_cases(fingerprint()) if case.name == name)


def test_all_faults_of_a_node_are_played_in_one_call() -> None:
    looks = [fingerprint(netns="netns exclusive copy-on-fork on"), fingerprint()]
    this = Answers("".join(json.dumps(look) + "\n" for look in looks))
    test = selftest.Selftest(this, selftest.Report())
    cases = [case_of("exclusive"), case_of("rail-broken"), case_of("mtu")]
    assert test.play_all(1, cases) == {("exclusive", ()): tuple(looks)}
    (asked,) = this.asked
    assert "fault exclusive -- fingerprint -- undo exclusive -- fingerprint -- fault mtu 2 --" in asked
    assert "rail-broken" not in asked


@pytest.mark.parametrize(
    ("played", "after", "wrong"),
    [
        ({"netns": "netns exclusive copy-on-fork on"}, {}, []),
        ({}, {}, ["fault exclusive"]),
        ({"netns": "netns exclusive copy-on-fork on"}, {"oca": {"network": "y"}}, ["undo restores"]),
    ],
)
def test_a_fault_is_right_only_with_its_effect_and_its_undo(
    played: dict,
    after: dict,
    wrong: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    looks = (fingerprint(**played), fingerprint(**after))
    monkeypatch.setattr(selftest.Selftest, "play_alone", lambda *_words: looks)
    report = selftest.Report()
    selftest.Selftest(Answers(), report).judge_fault(
        1, "exclusive", case_of("exclusive"), fingerprint(), looks
    )
    failures = [line for line in capsys.readouterr().out.splitlines() if line.startswith("FAIL")]
    assert (report.passed, report.failed) == (2 - len(wrong), len(wrong))
    assert len(failures) == len(wrong)
    for line, part in zip(failures, wrong, strict=True):
        assert part in line


def test_a_fault_that_was_late_is_played_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    good = (fingerprint(netns="netns exclusive copy-on-fork on"), fingerprint())
    alone: list[str] = []

    def play_alone(_self: object, _node: int, case: selftest.FaultCase, _before: dict) -> tuple[dict, dict]:
        alone.append(case.name)
        return good

    monkeypatch.setattr(selftest.Selftest, "play_alone", play_alone)
    report = selftest.Report()
    test = selftest.Selftest(Answers(), report)
    test.judge_fault(1, "exclusive", case_of("exclusive"), fingerprint(), good)
    assert alone == []
    test.judge_fault(1, "exclusive", case_of("exclusive"), fingerprint(), (fingerprint(), fingerprint()))
    test.judge_fault(1, "exclusive", case_of("exclusive"), fingerprint(), None)
    assert alone == ["exclusive", "exclusive"]
    assert (report.passed, report.failed) == (6, 0)


def test_alone_a_fault_left_in_force_is_taken_back_first(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    monkeypatch.setattr(faults, "play", lambda *_words: done.append("play"))
    monkeypatch.setattr(faults, "undo", lambda *_words: done.append("undo"))
    monkeypatch.setattr(selftest, "PATIENCE", 0.0)
    this = Answers(
        '{"exclusive": []}', *[json.dumps(fingerprint(netns=text)) for text in ("exclusive", "shared")]
    )
    looks = selftest.Selftest(this, selftest.Report()).play_alone(1, case_of("exclusive"), fingerprint())
    assert done == ["undo", "play", "undo"]
    assert [look["netns"] for look in looks] == ["exclusive", "shared"]


def test_a_node_that_stops_answering_is_an_error() -> None:
    test = selftest.Selftest(Answers("0\0good\0"), selftest.Report())
    with pytest.raises(LabError, match="answered 1 of 2 steps"):
        test.steps(1, "true", "true")
