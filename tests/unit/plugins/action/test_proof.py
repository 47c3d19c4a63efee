# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the controller makes of the steps of a fabric proof: the plan of the pairs, and the judgement."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible.errors import AnsibleActionFail

from ansible_collections.rdma.k8s.plugins.action import fabric_plan_info
from ansible_collections.rdma.k8s.plugins.module_utils import report_files
from ansible_collections.rdma.k8s.plugins.module_utils.core import codec
from ansible_collections.rdma.k8s.plugins.module_utils.core.checks.registry import CATALOGUE
from ansible_collections.rdma.k8s.plugins.modules import fabric_plan_info as documentation
from ansible_collections.rdma.k8s.tests.support.action_plugin import made, task_of
from ansible_collections.rdma.k8s.tests.unit.plugins.action.test_validate import Run
from ansible_collections.rdma.k8s.tests.unit.plugins.module_utils.core.checks.cases.fabric import proof_of

STEPS = {"children": "rdma_k8s_children", "probes": "rdma_k8s_probes", "cleanup": "rdma_k8s_cleanup"}
LOST = {"unreachable": True, "msg": "Failed to connect to the host via ssh: Connection timed out"}
FAB = {"only": ["RDMA-FAB-*", "RDMA-TOOL-001"]}


def steps(name: str, names: tuple[str, ...] = ("a", "b", "c")) -> dict[str, Any]:
    """What the steps of a proof without a fault register on a host."""
    section = codec.encode(proof_of(names)[name])
    made = [{key: value for key, value in child.items() if key != "gone"} for child in section["children"]]
    gone = [{"nic": child["nic"], "state": "removed", "gone": True} for child in section["children"]]
    return {
        "rdma_k8s_children": {"changed": True, "fabric": {"children": made}},
        "rdma_k8s_listen": {"changed": True, "fabric": {}, "silent": {}},
        "rdma_k8s_probes": {
            "changed": False,
            "fabric": {"probes": section["probes"], "expected": section["expected"], "problems": {}},
        },
        "rdma_k8s_cleanup": {"changed": True, "fabric": {"children": gone}},
    }


@pytest.fixture(name="play")
def play_fixture(tmp_path: Path) -> Run:
    play = Run(tmp_path)
    for name in "abc":
        play.add(name, **steps(name))
    return play


def judged(play: Run, path: Path, **args: Any) -> dict[tuple[str, str], tuple[str, str]]:
    play(proof=STEPS, policy=FAB, dest=str(path / "result.json"), **args)
    document = report_files.read_result(str(path / "result.json"))
    return {(entry.node, entry.check): (entry.status, entry.message) for entry in document.findings}


def test_a_good_proof_passes_every_check_of_the_area(play: Run, tmp_path: Path) -> None:
    found = judged(play, tmp_path)
    area = {check for check in CATALOGUE if check.startswith("RDMA-FAB-")}
    assert len(area) == 9
    assert {check for node, check in found if node == "a"} == area
    assert {status for status, _message in found.values()} == {"pass"}
    row = next(
        row for row in report_files.read_result(str(tmp_path / "result.json")).nodes if row.name == "a"
    )
    assert [(nic.name, nic.child) for nic in row.nics] == [("rdma0", "10.208.0.1"), ("rdma1", "10.208.32.1")]


def test_the_summary_of_the_fabric_is_returned_and_written(play: Run, tmp_path: Path) -> None:
    result = play(proof=STEPS, policy=FAB, dest=str(tmp_path / "result.json"))
    assert json.loads((tmp_path / "fabric.json").read_text()) == result["fabric"]
    assert (result["fabric"]["pairs"], result["fabric"]["failed"], result["exit_code"]) == (12, [], 0)
    assert [entry["median_us"] for entry in result["fabric"]["latency"]] == [40, 41]


def test_a_host_that_was_never_reached_is_a_row_of_unknown(play: Run, tmp_path: Path) -> None:
    play.add("d", rdma_k8s_children=LOST, rdma_k8s_probes=LOST, rdma_k8s_cleanup=LOST)
    play.add("e")
    found = judged(play, tmp_path)
    for name, reason in (("d", "Connection timed out"), ("e", "Nothing was gathered.")):
        own = [value for (node, _check), value in found.items() if node == name]
        assert len(own) == 9
        assert all(status == "unknown" and reason in message for status, message in own)
    assert found[("(fleet)", "RDMA-TOOL-001")][0] == "fail"


def test_a_host_that_was_lost_on_the_way(play: Run, tmp_path: Path) -> None:
    play.add("a", **{**steps("a"), "rdma_k8s_probes": LOST, "rdma_k8s_cleanup": LOST})
    found = judged(play, tmp_path)
    assert found[("a", "RDMA-FAB-001")][0] == "pass"
    assert found[("a", "RDMA-FAB-004")][0] == "unknown"
    assert "Connection timed out" in found[("a", "RDMA-FAB-004")][1]
    assert "The clean-up was not seen" in found[("a", "RDMA-FAB-009")][1]


def test_a_module_that_failed(play: Run, tmp_path: Path) -> None:
    failed = {"failed": True, "msg": "The Python library pyroute2 is needed.", "code": "library_missing"}
    play.add("a", **{**steps("a"), "rdma_k8s_children": failed})
    found = judged(play, tmp_path)
    assert found[("a", "RDMA-FAB-001")] == (
        "unknown",
        "The children could not be made: The Python library pyroute2 is needed.",
    )


def test_a_step_that_was_skipped_is_no_problem(play: Run, tmp_path: Path) -> None:
    play.add("a", **{**steps("a"), "rdma_k8s_probes": {"skipped": True, "changed": False}})
    assert judged(play, tmp_path)[("a", "RDMA-FAB-004")][0] == "skip"


def test_without_a_proof_the_area_takes_no_part(tmp_path: Path) -> None:
    play = Run(tmp_path)
    play.add("a")
    checks = play(input_only=True)["checks"]
    assert not [check for check in checks if check.startswith("RDMA-FAB")]
    assert len([check for check in play(input_only=True, policy=FAB)["checks"] if "FAB" in check]) == 9
    assert not [check for check in play(input_only=True, policy={"only": ["*"]})["checks"] if "FAB" in check]


def test_a_proof_and_recorded_snapshots_exclude_each_other(play: Run) -> None:
    assert "mutually exclusive" in play.refused(proof=STEPS, snapshots="x")


# --- the plan


def planned(play: Run, **args: Any) -> dict[str, Any]:
    other, task_vars = play.action()
    action = made(fabric_plan_info.ActionModule, task_of(args), loader=other._loader, variables=task_vars)
    result: dict[str, Any] = action.run(task_vars=task_vars)
    return result


def test_the_plan_is_for_all_hosts_of_the_play(play: Run) -> None:
    plan = planned(play)
    assert (plan["count"], plan["mode"], plan["seed"], plan["alone"]) == (12, "ring", 0, {})
    assert {name: len(pairs) for name, pairs in plan["pairs"].items()} == {"a": 4, "b": 4, "c": 4}
    assert plan["pairs"]["a"][0] == {
        "nic": "rdma0",
        "index": 0,
        "address": "10.208.0.1",
        "mtu": 4220,
        "peer": "b",
        "peer_address": "10.208.0.2",
        "silent": "",
    }
    assert plan["seconds"] == 18
    assert set(plan) - {"changed"} == set(yaml.safe_load(documentation.RETURN))


def test_how_long_the_probes_can_take(play: Run) -> None:
    assert planned(play, rdma_timeout=0)["seconds"] == 3
    assert planned(play, rdma_timeout=100)["seconds"] == 103
    assert planned(play, hosts=["a"])["seconds"] == 0
    with pytest.raises(AnsibleActionFail, match="The option rdma_timeout is -1"):
        planned(play, rdma_timeout=-1)


def test_hosts_without_children_have_no_pairs(play: Run) -> None:
    play.add("b", rdma_k8s_children=LOST)
    play.add("d")
    plan = planned(play)
    assert {name: len(pairs) for name, pairs in plan["pairs"].items()} == {"a": 2, "b": 0, "c": 2, "d": 0}


def test_a_peer_without_a_listener_is_told(play: Run) -> None:
    play.add("b", **{**steps("b"), "rdma_k8s_listen": {"silent": {"rdma0": "rping is not installed"}}})
    play.add("c", **{**steps("c"), "rdma_k8s_listen": LOST})
    silent = {(pair["peer"], pair["nic"]): pair["silent"] for pair in planned(play)["pairs"]["a"]}
    assert silent == {
        ("b", "rdma0"): "rping is not installed",
        ("b", "rdma1"): "",
        ("c", "rdma0"): "no listener was started",
        ("c", "rdma1"): "no listener was started",
    }


def test_all_pairs_and_a_part_of_the_hosts(play: Run) -> None:
    assert planned(play, mode="all")["count"] == 12
    assert planned(play, hosts=["a", "b"])["count"] == 4
    alone = planned(play, hosts=["a"])
    assert (alone["count"], alone["alone"]) == (0, {"a": [0, 1]})
    with pytest.raises(AnsibleActionFail, match="no host 'x'"):
        planned(play, hosts=["x"])
