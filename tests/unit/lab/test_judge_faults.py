# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The driver of the scenario preflight: what it compares, what it takes for wrong; and its file of expectations."""

from __future__ import annotations

import importlib.util
import pathlib
import types
import typing

import pytest
import yaml

from ansible_collections.rdma.k8s.plugins.module_utils.core.checks import judge
from ansible_collections.rdma.k8s.plugins.module_utils.core.checks.policy import Policy
from ansible_collections.rdma.k8s.tests.lab import faults

SCENARIO = pathlib.Path(__file__).resolve().parents[3] / "extensions" / "molecule" / "preflight"
EXPECTED = yaml.safe_load((SCENARIO / "files" / "expected.yml").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def driver() -> types.ModuleType:
    """The driver as a module."""
    spec = importlib.util.spec_from_file_location("judge_faults", SCENARIO / "judge_faults.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


SMALL: dict[str, typing.Any] = {
    "clean": {
        "fleet": {"T-1": "pass"},
        "nodes": {"A-1": "pass", "A-2": {"skip": "No NIC."}},
    },
    "faults": [
        {"play": "mtu 0", "node": "node1", "playbook": "fails", "findings": {"A-1": {"fail": "MTU 1500."}}},
        {
            "play": "namespace",
            "node": "node2",
            "playbook": "passes",
            "findings": {},
            "snapshot": {"namespaces": ["x"]},
        },
    ],
}


def document(**changed: tuple[str, str]) -> dict[str, typing.Any]:
    """A result document of two clean nodes, with other findings by ``node_A_1=(status, message)``."""
    findings = [{"node": "(fleet)", "check": "T-1", "status": "pass", "message": "2 nodes."}]
    for node in ("node1", "node2"):
        for check, usual in (("A-1", ("pass", "4 NICs.")), ("A-2", ("skip", "No NIC."))):
            status, message = changed.get(f"{node}_{check.replace('-', '_')}", usual)
            findings.append({"node": node, "check": check, "status": status, "message": message})
    return {"nodes": [{"name": "node2"}, {"name": "node1"}], "findings": findings}


class Scripted:
    """Stands for the lab and the playbook: each run gives the next document."""

    def __init__(
        self, module: types.ModuleType, *runs: tuple[dict, int], snapshot: dict | None = None
    ) -> None:
        self.runs_left = list(runs)
        self.changes: list[tuple[list[str], list[str]]] = []
        self.driver = module.Driver("lab", pathlib.Path("inventory"), pathlib.Path("work"))
        self.driver.judge = lambda _name, *_options: self.runs_left.pop(0)
        self.driver.snapshot = lambda _name, _node: snapshot or {}
        self.driver.change = lambda before, now: self.changes.append(
            ([fault["play"] for fault in before], [fault["play"] for fault in now])
        )


FAULT = ("fail", "MTU 1500.")
FAULTY = (document(node1_A_1=FAULT), 2)
CLEAN = (document(), 0)
NAMESPACES = {"namespaces": ["x"], "more": 1}


def test_a_fault_on_each_node_at_once(driver: types.ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    scripted = Scripted(driver, CLEAN, FAULTY, CLEAN, snapshot=NAMESPACES)
    driver.run(scripted.driver, SMALL, document(), [], False)
    assert scripted.runs_left == []
    assert scripted.changes == [([], ["mtu 0", "namespace"]), (["mtu 0", "namespace"], [])]
    assert (scripted.driver.told, scripted.driver.failed) == (5, 0)
    lines = [line.split("[")[0].split() for line in capsys.readouterr().out.splitlines()]
    assert lines[2:4] == [
        ["ok", "node1", "mtu", "0", "A-1", "fail"],
        ["ok", "node2", "namespace", "nothing", "changes"],
    ]


def test_one_fault_in_the_lab_at_a_time(driver: types.ModuleType) -> None:
    scripted = Scripted(driver, CLEAN, FAULTY, CLEAN, CLEAN, snapshot=NAMESPACES)
    driver.run(scripted.driver, SMALL, document(), [], True)
    assert scripted.runs_left == []
    assert scripted.changes == [([], ["mtu 0"]), (["mtu 0"], ["namespace"]), (["namespace"], [])]
    assert (scripted.driver.told, scripted.driver.failed) == (5, 0)


def test_just_the_wanted_fault(driver: types.ModuleType) -> None:
    scripted = Scripted(driver, CLEAN, CLEAN, CLEAN, snapshot=NAMESPACES)
    driver.run(scripted.driver, SMALL, document(), ["namespace"], False)
    assert scripted.changes == [([], ["namespace"]), (["namespace"], [])]
    assert scripted.driver.failed == 0


@pytest.mark.parametrize(
    ("runs", "wrong"),
    [
        (
            [(document(node2_A_1=("warn", "Odd.")), 0), FAULTY, CLEAN],
            "the findings differ from the first run",
        ),
        ([(CLEAN[0], 2), FAULTY, CLEAN], "ended with code 2, expected 0"),
        ([CLEAN, (FAULTY[0], 0), CLEAN], "ended with code 0, expected 2"),
        ([CLEAN, (document(), 2), CLEAN], 'node1 A-1: expected {fail: "MTU 1500."}, found pass'),
        (
            [CLEAN, (document(node1_A_1=("fail", "MTU 1501.")), 2), CLEAN],
            'node1 A-1: expected {fail: "MTU 1500."}, found {fail: "MTU 1501."}',
        ),
        (
            [CLEAN, (document(node1_A_1=FAULT, node2_A_1=FAULT), 2), CLEAN],
            'node2 A-1: expected pass, found {fail: "MTU 1500."}',
        ),
        (
            [CLEAN, FAULTY, (document(node2_A_2=("skip", "Other.")), 0)],
            'node2 A-2: expected {skip: "No NIC."}, found {skip: "Other."}',
        ),
        ([CLEAN, FAULTY, (FAULTY[0], 0)], 'node1 A-1: expected pass, found {fail: "MTU 1500."}'),
    ],
)
def test_each_difference_is_one_wrong_line(
    runs: list, wrong: str, driver: types.ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    scripted = Scripted(driver, *runs, snapshot=NAMESPACES)
    driver.run(scripted.driver, SMALL, document(), [], False)
    assert (scripted.driver.told, scripted.driver.failed) == (5, 1)
    assert wrong in capsys.readouterr().out


def test_a_fault_that_is_not_taken_back_is_seen_in_the_next_run(driver: types.ModuleType) -> None:
    scripted = Scripted(driver, CLEAN, FAULTY, (FAULTY[0], 0), CLEAN, snapshot=NAMESPACES)
    driver.run(scripted.driver, SMALL, document(), [], True)
    assert scripted.driver.failed == 1


def test_what_is_wrong_stands_at_the_fault_of_its_node(
    driver: types.ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    both = document(node1_A_2=("skip", "Other."), node2_A_1=("warn", "Odd."))
    both["findings"][0]["status"] = "fail"
    scripted = Scripted(driver, CLEAN, (both, 2), CLEAN, snapshot=NAMESPACES)
    driver.run(scripted.driver, SMALL, document(), [], False)
    lines = [line.split(":")[0].strip() for line in capsys.readouterr().out.splitlines()]
    at = next(number for number, line in enumerate(lines) if line.startswith("WRONG node2"))
    assert lines[at - 3].startswith("WRONG node1 mtu 0")
    assert lines[at - 2 : at] == ["node1 A-1", "node1 A-2"]
    assert lines[at + 1 : at + 3] == ["(fleet) T-1", "node2 A-1"]


def test_a_snapshot_without_what_was_played_is_wrong(
    driver: types.ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    scripted = Scripted(driver, CLEAN, FAULTY, CLEAN, snapshot={"namespaces": []})
    driver.run(scripted.driver, SMALL, document(), [], False)
    assert scripted.driver.failed == 1
    assert "snapshot: namespaces is [], expected ['x']" in capsys.readouterr().out


def test_a_check_that_is_missing_is_told(driver: types.ModuleType) -> None:
    clean = driver.expected_clean(SMALL, ["node1"])
    said = dict(clean)
    del said["node1", "A-2"]
    assert driver.differences(said, clean) == ['node1 A-2: expected {skip: "No NIC."}, found nothing']
    assert driver.differences(clean, said) == ['node1 A-2: expected nothing, found {skip: "No NIC."}']


@pytest.mark.parametrize("findings", [{"A-1": "pass"}, {"A-9": {"fail": "x"}}])
def test_an_expectation_that_changes_nothing_is_a_mistake(findings: dict, driver: types.ModuleType) -> None:
    clean = driver.expected_clean(SMALL, ["node1"])
    with pytest.raises(driver.DriverError, match="is no change of a clean node"):
        driver.expected_with(clean, [{"play": "mtu 0", "node": "node1", "findings": findings}])


def test_a_node_has_one_fault_at_a_time(driver: types.ModuleType) -> None:
    faults_ = [{"play": name, "node": f"node{name[-1]}"} for name in ("a1", "b2", "c2", "d1", "e3", "f1")]
    rounds = [[fault["play"] for fault in found] for found in driver.in_rounds(faults_, False)]
    assert rounds == [["a1", "b2"], ["c2", "d1", "e3"], ["f1"]]
    assert [len(found) for found in driver.in_rounds(faults_, True)] == [1] * 6


def test_each_node_is_repaired_before_it_is_broken_again(
    driver: types.ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    this = driver.Driver("two", pathlib.Path("inventory"), pathlib.Path("work"))
    calls: list[list[list[str]]] = []
    monkeypatch.setattr(this, "_change_node", calls.append)
    before = [{"play": "mtu 0 1500", "node": "node1"}, {"play": "exclusive", "node": "node2"}]
    this.change(before, [{"play": "swap-nics 0 1", "node": "node1"}])
    assert sorted(calls) == [
        [["--undo", "node1", "mtu"], ["node1", "swap-nics", "0", "1"]],
        [["--undo", "node2", "exclusive"]],
    ]


def test_a_lab_that_refuses_a_fault_is_an_error(
    driver: types.ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    this = driver.Driver("two", pathlib.Path("inventory"), pathlib.Path("work"))
    monkeypatch.setattr(driver, "LAB", SCENARIO / "files" / "policy.yml")
    with pytest.raises(driver.DriverError, match="fault --name two node1 mtu 0: "):
        this.change([], [SMALL["faults"][0]])


# --- the file of expectations ---------------------------------------------------------------------------------------


def test_all_checks_are_expected() -> None:
    """All checks that take part in a run of preflight without a cluster, which is what the scenario does."""
    checks = {check.info.id: check.scope == "run" for check in judge.selected(Policy())}
    assert set(EXPECTED["clean"]["fleet"]) == {name for name, fleet in checks.items() if fleet}
    assert set(EXPECTED["clean"]["nodes"]) == {name for name, fleet in checks.items() if not fleet}


def test_every_fault_of_the_lab_is_judged() -> None:
    played = [fault["play"].split() for fault in EXPECTED["faults"]]
    for name, *arguments in played:
        faults.check(name, arguments, 4)
    assert {name for name, *_arguments in played} == set(faults.FAULTS)


def test_each_fault_says_what_it_changes_or_why_it_does_not(driver: types.ModuleType) -> None:
    clean = driver.expected_clean(EXPECTED, ["node1", "node2"])
    for fault in EXPECTED["faults"]:
        assert set(fault) - {"snapshot", "why"} == {"play", "node", "playbook", "findings"}
        said = driver.expected_with(clean, [fault])
        assert (said == clean) == ("why" in fault), fault["play"]
        assert fault["playbook"] in driver.PLAYBOOK_ENDS


def test_faults_that_meet_touch_different_checks(driver: types.ModuleType) -> None:
    rounds = driver.in_rounds(EXPECTED["faults"], False)
    assert {len(found) for found in rounds} == {2}
    for before, now in zip([[], *rounds], rounds, strict=False):
        one, two = now
        assert not set(one["findings"]) & set(two["findings"]), (one["play"], two["play"])
        for fault in now:
            earlier = [set(old["findings"]) for old in before if old["node"] == fault["node"]]
            assert not set(fault["findings"]).intersection(*earlier) or not earlier, fault["play"]
