# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The driver of the scenario preflight: what it compares, what it takes for wrong; and its file of expectations."""

from __future__ import annotations

import importlib.util
import json
import pathlib
import types
import typing

import pytest
import yaml

from ansible_collections.rdma.k8s.plugins.module_utils.core.checks import judge
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
        self.changes: list[tuple[str | None, str | None]] = []
        self.driver = module.Driver("lab", pathlib.Path("inventory"), pathlib.Path("work"))
        self.driver.judge = lambda _name, *_options: self.runs_left.pop(0)
        self.driver.snapshot = lambda _name, _node: snapshot or {}
        self.driver.change = lambda undo, play: self.changes.append(
            (undo and undo["play"], play and play["play"])
        )


FAULTY = (document(node1_A_1=("fail", "MTU 1500.")), 2)
CLEAN = (document(), 0)


def test_everything_as_expected(driver: types.ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    scripted = Scripted(driver, CLEAN, FAULTY, CLEAN, CLEAN, snapshot={"namespaces": ["x"], "more": 1})
    driver.run(scripted.driver, SMALL, document(), [])
    assert scripted.runs_left == []
    assert scripted.changes == [(None, "mtu 0"), ("mtu 0", "namespace"), ("namespace", None)]
    assert (scripted.driver.runs, scripted.driver.failed) == (5, 0)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("[")[0].split() for line in lines[2:4]] == [
        ["ok", "node1", "mtu", "0", "A-1", "fail"],
        ["ok", "node2", "namespace", "nothing", "changes"],
    ]


@pytest.mark.parametrize(
    ("runs", "wrong"),
    [
        (
            [(document(node2_A_1=("warn", "Odd.")), 0), FAULTY, CLEAN, CLEAN],
            "the findings differ from the first run",
        ),
        ([(CLEAN[0], 2), FAULTY, CLEAN, CLEAN], "ended with code 2, expected 0"),
        ([CLEAN, (FAULTY[0], 0), CLEAN, CLEAN], "ended with code 0, expected that it fails"),
        ([CLEAN, (document(), 2), CLEAN, CLEAN], 'node1 A-1: expected {fail: "MTU 1500."}, found pass'),
        (
            [CLEAN, (document(node1_A_1=("fail", "MTU 1501.")), 2), CLEAN, CLEAN],
            'node1 A-1: expected {fail: "MTU 1500."}, found {fail: "MTU 1501."}',
        ),
        (
            [
                CLEAN,
                (document(node1_A_1=("fail", "MTU 1500."), node2_A_1=("fail", "MTU 1500.")), 2),
                CLEAN,
                CLEAN,
            ],
            'node2 A-1: expected pass, found {fail: "MTU 1500."}',
        ),
        ([CLEAN, FAULTY, (FAULTY[0], 0), CLEAN], 'node1 A-1: expected pass, found {fail: "MTU 1500."}'),
        (
            [CLEAN, FAULTY, CLEAN, (document(node2_A_2=("skip", "Other.")), 0)],
            'node2 A-2: expected {skip: "No NIC."}, found {skip: "Other."}',
        ),
    ],
)
def test_each_difference_is_one_wrong_run(
    runs: list, wrong: str, driver: types.ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    scripted = Scripted(driver, *runs, snapshot={"namespaces": ["x"]})
    driver.run(scripted.driver, SMALL, document(), [])
    assert (scripted.driver.runs, scripted.driver.failed) == (5, 1)
    assert wrong in capsys.readouterr().out


def test_a_snapshot_without_what_was_played_is_wrong(
    driver: types.ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    scripted = Scripted(driver, CLEAN, FAULTY, CLEAN, CLEAN, snapshot={"namespaces": []})
    driver.run(scripted.driver, SMALL, document(), [])
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
        driver.expected_with(clean, {"play": "mtu 0", "node": "node1", "findings": findings})


def test_two_faults_of_one_node_are_never_in_force_together(driver: types.ModuleType) -> None:
    first, second = SMALL["faults"]
    scripted = Scripted(driver, CLEAN, FAULTY, CLEAN, CLEAN, snapshot={"namespaces": ["x"]})
    driver.run(scripted.driver, {**SMALL, "faults": [first, {**second, "node": "node1"}]}, document(), [])
    assert scripted.changes == [(None, "mtu 0"), ("mtu 0", None), (None, "namespace"), ("namespace", None)]


def test_a_lab_that_refuses_a_fault_is_an_error(
    driver: types.ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    this = driver.Driver("lab", pathlib.Path("inventory"), pathlib.Path("work"))
    monkeypatch.setattr(driver, "LAB", SCENARIO / "files" / "policy.yml")
    with pytest.raises(driver.DriverError, match="fault --name lab node1 mtu 0: "):
        this.change(None, SMALL["faults"][0])


# --- the file of expectations ---------------------------------------------------------------------------------------


def test_all_checks_are_expected() -> None:
    checks = {name: check.scope == "run" for name, check in judge.CATALOGUE.items()}
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
        said = driver.expected_with(clean, fault)
        worst = [status for key, (status, _message) in said.items() if said[key] != clean[key]]
        assert bool(worst) != ("why" in fault), fault["play"]
        assert json.dumps(fault["findings"])


def test_the_nodes_take_turns() -> None:
    nodes = [fault["node"] for fault in EXPECTED["faults"]]
    assert all(one != two for one, two in zip(nodes, nodes[1:], strict=False))
