# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From what the modules that look into pods returned to results about the cluster."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils import records
from ansible_collections.rdma.k8s.plugins.module_utils.core.checks.judge import judge
from ansible_collections.rdma.k8s.plugins.module_utils.core.checks.policy import Policy
from ansible_collections.rdma.k8s.plugins.module_utils.core.cluster_snapshot import ClusterSnapshot
from ansible_collections.rdma.k8s.plugins.module_utils.core.errors import RdmaError
from ansible_collections.rdma.k8s.plugins.module_utils.core.finding import Finding
from ansible_collections.rdma.k8s.plugins.module_utils.core.spiderpool import pod_evidence, pod_predicates
from ansible_collections.rdma.k8s.tests.support import fleet

POLICY = Policy.from_dict({"target": "spiderpool_sriov"})


def told(*answers: pod_predicates.Predicate, **changes: Any) -> dict[str, Any]:
    """What the module returns of one pod."""
    entry = {
        "namespace": "ml",
        "name": "tools-a",
        "node": "n1",
        "container": "tools",
        "privileged": False,
        "status": pod_predicates.worst(answers),
        "reason": "",
        "predicates": [answer.to_dict() for answer in answers],
        "evidence": None,
        **changes,
    }
    return {"status": "pass", "pods": [entry]}


def statuses(cluster: ClusterSnapshot) -> dict[str, str]:
    document = judge([], POLICY, fleet.JUDGED_AT, cluster=cluster)
    assert document.cluster == "(cluster)"
    return {
        finding.check: finding.status for finding in document.findings if finding.node == document.cluster
    }


def test_only_the_pods_are_judged_when_nothing_else_is_known() -> None:
    answers = pod_predicates.judge(pod_evidence.Evidence(main_device="eth0"), pod_predicates.Around())
    found = statuses(records.with_pods(None, told(*answers)))
    assert set(found) == {"RDMA-SRIOV-020", "RDMA-SRIOV-024", "RDMA-SRIOV-025"}
    assert found["RDMA-SRIOV-024"] == "unknown"


def test_a_predicate_that_fails_is_a_failure_of_the_cluster() -> None:
    wrong = pod_predicates.Predicate("P9", "fail", "mlx5_7: its file is not in the container.")
    good = pod_predicates.Predicate("P3", "pass", "Interfaces: net1.")
    found = statuses(records.with_pods(None, told(good, wrong)))
    assert found == {"RDMA-SRIOV-020": "fail", "RDMA-SRIOV-024": "pass", "RDMA-SRIOV-025": "skip"}


def test_a_cluster_keeps_what_it_has() -> None:
    cluster = ClusterSnapshot(name="c", subsets=("nodes",), nodes=())
    found = records.with_pods(cluster, told(pod_predicates.Predicate("P1", "pass", "")))
    assert (found.name, found.nodes) == ("c", ())
    assert [look.name for look in found.pod_looks or ()] == ["tools-a"]
    assert ClusterSnapshot.from_dict(found.to_dict()).pod_looks == found.pod_looks
    assert ClusterSnapshot.from_dict(found.to_dict(compact=True)).pod_looks == found.pod_looks


@pytest.mark.parametrize(
    "what", [None, {}, {"pods": []}, {"pods": 7}, {"pods": ["x"]}, told(name=None), told(node=3)]
)
def test_what_no_module_returned(what: Any) -> None:
    with pytest.raises(RdmaError) as caught:
        records.with_pods(None, what)
    assert caught.value.code == "document_malformed"


CELL = {
    "status": "pass",
    "source_device": "mlx5_7",
    "source_gid_index": 3,
    "target_device": "mlx5_9",
    "target_gid_index": 5,
    "target_address": "172.16.11.20",
    "latency_us": 3.91,
    "bandwidth_gbps": 196.41,
    "mtu": 4096,
}


def matrix(**cells: dict[str, Any]) -> dict[str, Any]:
    """The matrix of some rails, from one pod to another one."""
    rails = [{"rail": rail, "cells": {"ml/tools-a": {"ml/tools-b": cell}}} for rail, cell in cells.items()]
    return {"pairs": len(rails), "rails": rails}


def of_traffic(status: str, message: str, fabric: Any) -> Finding:
    """The result about traffic."""
    answer = pod_predicates.Predicate("P14", status, message)
    cluster = records.with_pods(None, {**told(answer), "fabric": fabric})
    document = judge([], POLICY, fleet.JUDGED_AT, cluster=cluster)
    (found,) = [finding for finding in document.findings if finding.check == "RDMA-SRIOV-025"]
    return found


def test_the_matrix_is_in_the_result() -> None:
    """S144: each test with both devices and GID indexes, and the medians of each rail."""
    found = of_traffic("pass", "Rails: net2, net10.", matrix(net10={**CELL, "latency_us": None}, net2=CELL))
    assert found.message == "1 pods reach their peers: net2 3.91 us 196.41 Gbit/s; net10 196.41 Gbit/s."
    assert [(detail.subject, detail.status, detail.message) for detail in found.details] == [
        (
            "ml/tools-a to ml/tools-b on net10",
            "pass",
            "mlx5_7 (GID index 3) to mlx5_9 (GID index 5) at 172.16.11.20: 196.41 Gbit/s, MTU 4096",
        ),
        (
            "ml/tools-a to ml/tools-b on net2",
            "pass",
            "mlx5_7 (GID index 3) to mlx5_9 (GID index 5) at 172.16.11.20: 3.91 us, 196.41 Gbit/s, MTU 4096",
        ),
    ]


def test_a_rail_that_failed_is_in_the_matrix_with_its_reason() -> None:
    """On InfiniBand no GID index is said."""
    broken = {
        "status": "fail",
        "reason": "it timed out",
        "source_device": "mlx5_7",
        "target_device": "mlx5_9",
    }
    found = of_traffic(
        "fail", "net1: it timed out.", matrix(net1={**broken, "target_address": "172.16.11.20"})
    )
    assert found.status == "fail"
    assert [detail.status for detail in found.details] == ["fail", "fail"]
    assert found.details[1].message == "mlx5_7 to mlx5_9 at 172.16.11.20: it timed out"


@pytest.mark.parametrize(
    "fabric", [None, {}, {"rails": 7}, {"rails": [{"rail": "net1", "cells": {"ml/tools-a": 7}}]}]
)
def test_a_matrix_that_is_none_adds_nothing(fabric: Any) -> None:
    found = of_traffic("pass", "Rails: net1.", fabric)
    assert (found.message, found.details) == ("1 pods reach their peers.", ())
