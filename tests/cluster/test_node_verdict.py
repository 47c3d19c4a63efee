# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Verdicts on the nodes of a real API server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.cluster import node_marks
from ansible_collections.rdma.k8s.plugins.module_utils.cluster.client import connect
from ansible_collections.rdma.k8s.plugins.module_utils.core import finding as model, node_verdict as core
from ansible_collections.rdma.k8s.plugins.module_utils.core.finding import Finding
from ansible_collections.rdma.k8s.plugins.module_utils.core.report.document import NodeRow, ResultDocument
from ansible_collections.rdma.k8s.plugins.modules import node_verdict
from ansible_collections.rdma.k8s.tests.support import change_run

from .conftest import ControlPlane

NODES = ("sim-0001", "sim-0002")
OTHER_TAINT = "example.com/mine=yes:PreferNoSchedule"


@pytest.fixture(autouse=True)
def clean(control_plane: ControlPlane) -> Iterator[None]:
    """Take everything away that a test left on the nodes."""
    yield
    run(control_plane, state="absent")
    if "example.com/mine" in taints(control_plane, NODES[0]):
        control_plane.kubectl("taint", "nodes", NODES[0], OTHER_TAINT + "-")


@pytest.fixture
def taint_of_another(control_plane: ControlPlane, clean: None) -> None:
    """Somebody else's taint, which must stay."""
    control_plane.kubectl("taint", "nodes", NODES[0], OTHER_TAINT)


def run(control_plane: ControlPlane, **options: Any) -> dict[str, Any]:
    """Run the module."""
    result = change_run.run(node_verdict, kubeconfig=str(control_plane.kubeconfig), **options)
    assert "failed" not in result, result
    return result


def written(directory: Path, at: str = "2026-03-02T09:30:00Z", **statuses: str) -> str:
    """A result document with one finding for each node."""
    rows = tuple([NodeRow(name.replace("_", "-")) for name in statuses])
    found = tuple([Finding("RDMA-NODE-001", row.name, statuses[row.name.replace("-", "_")]) for row in rows])
    document = ResultDocument(created_at=at, nodes=rows, findings=found)
    path = directory / "result.json"
    path.write_text(json.dumps(document.to_dict()))
    return str(path)


def shown(control_plane: ControlPlane) -> dict[str, list[str]]:
    """What a person sees: verdict and time of each node, as kubectl prints them."""
    text = control_plane.kubectl(
        "get", "nodes", "--no-headers", "-L", "rdma.k8s/verdict,rdma.k8s/judged", *NODES
    )
    return {line.split()[0]: line.split()[5:] for line in text.splitlines()}


def taints(control_plane: ControlPlane, name: str) -> list[str]:
    """The keys of the taints of a node."""
    node = json.loads(control_plane.kubectl("get", "node", name, "-o", "json"))
    return sorted(taint["key"] for taint in node["spec"].get("taints", []))


@pytest.mark.usefixtures("taint_of_another")
def test_from_joining_to_judged(control_plane: ControlPlane, tmp_path: Path) -> None:
    """Decision 30: fenced, judged, let in only when good; a second run writes nothing."""
    before = taints(control_plane, NODES[0])
    fenced = run(control_plane, state="fenced", nodes=list(NODES))
    assert fenced["actions"] == ["keep pods away from %s" % name for name in NODES]
    assert taints(control_plane, NODES[0]) == sorted([*before, "rdma.k8s/unverified"])

    path = written(tmp_path, sim_0001=model.PASS, sim_0002=model.FAIL)
    checked = run(control_plane, result=path, _ansible_check_mode=True)
    assert checked["changed"] is True
    assert shown(control_plane) == {name: [] for name in NODES}

    judged = run(control_plane, result=path, _ansible_diff=True)
    assert judged["actions"] == checked["actions"]
    assert judged["verdicts"] == {NODES[0]: "pass", NODES[1]: "fail"}
    assert judged["diff"]["before"][NODES[0]]["unverified"] is True
    assert judged["diff"]["after"][NODES[0]]["unverified"] is False
    assert shown(control_plane) == {
        NODES[0]: ["pass", "20260302T093000Z"],
        NODES[1]: ["fail", "20260302T093000Z"],
    }
    assert taints(control_plane, NODES[0]) == before
    assert "rdma.k8s/unverified" in taints(control_plane, NODES[1])

    again = run(control_plane, result=path)
    assert (again["changed"], again["actions"]) == (False, [])
    assert run(control_plane, state="fenced", nodes=list(NODES))["changed"] is False

    assert run(control_plane, state="absent", nodes=list(NODES))["changed"] is True
    assert shown(control_plane) == {name: [] for name in NODES}
    assert taints(control_plane, NODES[0]) == before


def test_hosts_with_other_names(control_plane: ControlPlane, tmp_path: Path) -> None:
    path = written(tmp_path, gpu_1=model.PASS)
    result = run(control_plane, result=path, node_names={"gpu-1": NODES[0]})
    assert result["verdicts"] == {NODES[0]: "pass"}
    assert shown(control_plane)[NODES[0]] == ["pass", "20260302T093000Z"]


def test_host_that_was_not_judged_is_unknown(control_plane: ControlPlane, tmp_path: Path) -> None:
    """Decision 1."""
    path = written(tmp_path, sim_0001=model.PASS)
    result = run(control_plane, result=path, nodes=list(NODES))
    assert result["verdicts"] == {NODES[0]: "pass", NODES[1]: "unknown"}


def test_later_judgement_with_the_same_verdict(control_plane: ControlPlane, tmp_path: Path) -> None:
    """The time is written anew, and nothing has changed."""
    run(control_plane, result=written(tmp_path, sim_0001=model.PASS))
    again = run(control_plane, result=written(tmp_path, "2026-03-03T09:30:00Z", sim_0001=model.PASS))
    assert (again["changed"], again["actions"]) == (False, ["label sim-0001 pass"])
    assert shown(control_plane)[NODES[0]] == ["pass", "20260303T093000Z"]


def test_unknown_node_changes_nothing(control_plane: ControlPlane, tmp_path: Path) -> None:
    path = written(tmp_path, sim_0001=model.PASS, gpu_1=model.PASS)
    result = change_run.run(node_verdict, kubeconfig=str(control_plane.kubeconfig), result=path)
    assert result["failed"] is True
    assert result["code"] == "node_not_in_cluster"
    assert result["changed"] is False
    assert shown(control_plane)[NODES[0]] == []


def test_somebody_else_writes_meanwhile(control_plane: ControlPlane) -> None:
    """The list of taints is only replaced in the version that was read: a taint of another is never lost."""
    cluster, done, turns = connect(str(control_plane.kubeconfig)), [], []

    def decide(node: dict[str, Any]) -> core.Change | None:
        if not turns:
            control_plane.kubectl("taint", "nodes", NODES[0], OTHER_TAINT)
        turns.append(node["metadata"]["resourceVersion"])
        return core.fence(node)

    node_marks.write(cluster, decide, {NODES[0]}, done)
    assert len(turns) >= 2
    assert len(done) == 1
    assert {"example.com/mine", "rdma.k8s/unverified"} <= set(taints(control_plane, NODES[0]))
