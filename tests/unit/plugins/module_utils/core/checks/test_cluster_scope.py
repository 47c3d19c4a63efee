# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks of the cluster: when they take part, where their one result stands, and which of its nodes a node is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Optional

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.core.checks import registry
from ansible_collections.rdma.k8s.plugins.module_utils.core.checks.context import Fleet, Node
from ansible_collections.rdma.k8s.plugins.module_utils.core.checks.judge import NodeInput, judge
from ansible_collections.rdma.k8s.plugins.module_utils.core.checks.policy import Policy
from ansible_collections.rdma.k8s.plugins.module_utils.core.cluster_snapshot import (
    ClusterNode,
    ClusterSnapshot,
)
from ansible_collections.rdma.k8s.plugins.module_utils.core.report import render, summary
from ansible_collections.rdma.k8s.plugins.module_utils.core.report.digest import digest
from ansible_collections.rdma.k8s.plugins.module_utils.core.report.document import ResultDocument
from ansible_collections.rdma.k8s.plugins.module_utils.core.snapshot import ReadError
from ansible_collections.rdma.k8s.tests.support import fleet

ID = "RDMA-TOOL-900"


@pytest.fixture(autouse=True)
def check_fixture() -> Iterator[None]:
    """A check of the cluster that fails, and is for one target."""

    @registry.cluster_check(ID, "It has a name", "error", "Name it.", targets=("oke_dranet",))
    def named(found: Fleet) -> registry.Outcome:
        return registry.failed("The cluster is called %s." % (found.cluster.name if found.cluster else "?"))

    yield
    del registry.CATALOGUE[ID]


def judged(
    cluster: Optional[ClusterSnapshot], names: tuple[str, ...] = ("n1",), **policy: Any
) -> ResultDocument:
    """A fleet of healthy nodes and one that was not reached, with a cluster."""
    inputs = [NodeInput(name, fleet.node(number=number, name=name)) for number, name in enumerate(names)]
    inputs.append(NodeInput("lost", reason="It is off."))
    return judge(inputs, Policy.from_dict(policy), fleet.JUDGED_AT, cluster=cluster)


def of_cluster(document: ResultDocument) -> list[tuple[str, str, str]]:
    return [(entry.node, entry.status, entry.message) for entry in document.findings if entry.check == ID]


def test_one_result_in_the_row_of_the_cluster() -> None:
    """Also a node that told nothing has none of it."""
    document = judged(ClusterSnapshot(name="training"))
    assert of_cluster(document) == [("training", "fail", "The cluster is called training.")]
    assert document.cluster == "training"
    assert document.exit_code == 4


def test_without_a_cluster_it_does_not_run() -> None:
    document = judged(None)
    assert (of_cluster(document), document.cluster) == ([], "")
    assert document.check_info(ID) is None


def test_when_asked_for_without_a_cluster_it_says_so() -> None:
    assert of_cluster(judged(None, only=["RDMA-TOOL-*"])) == [
        ("(cluster)", "skip", "No cluster is in this run.")
    ]


def test_another_target_is_a_skip() -> None:
    ((_row, status, message),) = of_cluster(judged(ClusterSnapshot(name="a"), target="ack_lingjun"))
    assert (status, message) == ("skip", "The target is ack_lingjun; this is for oke_dranet.")


def test_a_node_of_the_same_name_keeps_its_row() -> None:
    document = judged(ClusterSnapshot(name="n1"))
    assert of_cluster(document)[0][0] == "n1 (cluster)" == document.cluster


def test_a_cluster_without_a_name_has_a_row() -> None:
    assert of_cluster(judged(ClusterSnapshot()))[0][0] == "(cluster)"


def test_a_cluster_alone_is_judged() -> None:
    document = judge([], Policy(), fleet.JUDGED_AT, cluster=ClusterSnapshot(name="training"))
    assert {entry.node for entry in document.findings} == {"training", "(fleet)"}


def test_every_report_shows_the_row_and_counts_it_as_no_node() -> None:
    document = judged(ClusterSnapshot(name="training"))
    found = digest(document)
    assert [node.name for node in found.nodes][:2] == ["(fleet)", "training"]
    assert "training" not in [node.name for node in found.hosts()]
    for name, pieces in render.stream(document, None, None).items():
        text = "".join([piece if isinstance(piece, str) else "" for piece in pieces])
        assert "training" in text, name
    lines = summary.render(document).splitlines()
    at = next(number for number, line in enumerate(lines) if ID in line)
    assert lines[at + 1].strip() == "error, the cluster"
    assert ResultDocument.from_dict(document.to_dict()) == document


def node_of(cluster: ClusterSnapshot, name: str = "gpu-a") -> tuple[Optional[ClusterNode], str]:
    """Which node of the cluster the reference node is."""
    node = Node(fleet.node(name=name), Policy())
    found = Fleet([node], Policy(), cluster)
    return found.cluster_nodes[name], found.why_no_cluster_node(node)


def test_nodes_are_joined_by_name_then_by_address_then_by_host_name() -> None:
    """F15: the primary VNIC of the reference node has 10.140.77.19."""
    by_address = ClusterNode(name="10.140.77.19", addresses=("InternalIP 10.140.77.19",))
    by_host = ClusterNode(name="x", addresses=("Hostname gpu-a",))
    by_name = ClusterNode(name="gpu-a")
    assert node_of(ClusterSnapshot(nodes=(by_host, by_address, by_name)))[0] is by_name
    assert node_of(ClusterSnapshot(nodes=(by_host, by_address)))[0] is by_address
    assert node_of(ClusterSnapshot(nodes=(by_host,)))[0] is by_host


def test_a_node_that_is_none_of_the_cluster_has_a_reason() -> None:
    other = ClusterNode(name="x", addresses=("InternalIP 10.140.77.20",))
    found, why = node_of(ClusterSnapshot(subsets=("nodes",), nodes=(other,)))
    assert found is None
    assert (
        why == "No node of the cluster has the name gpu-a, the address 10.140.77.19 or the host name gpu-a."
    )
    twice = ClusterNode(name="y", addresses=("InternalIP 10.140.77.19",))
    assert (
        node_of(ClusterSnapshot(nodes=(twice, ClusterNode(name="z", addresses=twice.addresses))))[0] is None
    )


def test_nodes_that_were_not_read_have_a_reason() -> None:
    assert node_of(ClusterSnapshot())[1] == "The subset 'nodes' of the cluster was not read."
    denied = ClusterSnapshot(
        subsets=("nodes",), errors=(ReadError("nodes", "GET /api/v1/nodes is not allowed"),)
    )
    assert node_of(denied)[1] == "Not readable: nodes: GET /api/v1/nodes is not allowed."
