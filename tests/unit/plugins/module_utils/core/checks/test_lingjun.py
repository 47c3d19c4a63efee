# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The target ack_lingjun: what takes part in its judgement, how its nodes are read, and what its policy refuses."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.core.checks.context import Fleet, Node
from ansible_collections.rdma.k8s.plugins.module_utils.core.checks.judge import NodeInput, judge
from ansible_collections.rdma.k8s.plugins.module_utils.core.checks.policy import Policy
from ansible_collections.rdma.k8s.plugins.module_utils.core.errors import RdmaError
from ansible_collections.rdma.k8s.plugins.module_utils.core.report.document import ResultDocument
from ansible_collections.rdma.k8s.tests.support import fleet, lingjun
from ansible_collections.rdma.k8s.tests.support.cases import not_good

LINGJUN = Policy.from_dict({"target": "ack_lingjun"})


def judged(clustered: bool = True, **settings: Any) -> ResultDocument:
    """Three healthy Lingjun nodes."""
    nodes = [lingjun.node(number) for number in range(3)]
    return judge(
        [NodeInput(node.name, node) for node in nodes],
        Policy.from_dict({"target": "ack_lingjun", **settings}),
        fleet.JUDGED_AT,
        cluster=lingjun.cluster() if clustered else None,
    )


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"non_host_network": True, "plugin_version": "v1.1.5"},
        {"non_host_network": True, "compute_ip_version": "IPv6"},
    ],
)
@pytest.mark.parametrize("clustered", [True, False])
def test_healthy_nodes_give_no_alarm(clustered: bool, settings: dict[str, Any]) -> None:
    document = judged(clustered, **settings)
    assert [not_good(document, row.name) for row in document.nodes] == [{}, {}, {}]
    assert not_good(document, document.cluster) == {}
    assert document.exit_code == 0


def test_areas_of_other_targets_take_no_part() -> None:
    areas = {finding.check.split("-")[1] for finding in judged().findings}
    assert areas == {"ACK", "NODE", "TOOL"}


def test_the_area_takes_no_part_in_other_targets() -> None:
    for target in ("oke_dranet", "spiderpool_sriov"):
        document = judged(target=target)
        assert "ACK" not in {finding.check.split("-")[1] for finding in document.findings}


def test_an_area_that_is_asked_for_says_why_not() -> None:
    found = {finding.status for finding in judged(only=["RDMA-OCA-001"]).findings}
    messages = {finding.message for finding in judged(only=["RDMA-OCA-001"]).findings}
    assert found == {"skip"}
    assert messages == {"The target is ack_lingjun; this is for oke_dranet."}


def test_without_a_cluster_only_hosts_are_judged() -> None:
    checks = {finding.check for finding in judged(False).findings if "-ACK-" in finding.check}
    assert checks == {"RDMA-ACK-%03d" % number for number in (6, 19, 20, 21, 22)}


def test_lingjun_nodes_have_nics_by_their_ports() -> None:
    """A18, A64: neither a name nor an address of OCA tells them; the interface of the VPC is none."""
    node = Node(lingjun.node(), LINGJUN)
    assert [nic.name for nic in node.nics] == ["reth0", "reth2", "reth4", "reth6"]
    assert (node.has_ipv4_children, node.pool) == (False, "")
    top = node.uplink_of(node.nics[1])
    assert top is not None
    assert top.name == "bond1"
    assert Fleet([node], LINGJUN).networks == {}
    same = Node(fleet.node(), Policy())
    assert [nic.name for nic in same.nics] == ["rdma%d" % index for index in range(16)]


def test_links_that_were_not_read_are_not_known() -> None:
    snapshot = lingjun.node()
    document = {key: value for key, value in snapshot.to_dict().items() if key != "links"}
    node = Node(type(snapshot).from_dict(document), LINGJUN)
    assert node.fabric_interfaces is None
    assert [node.uplink_of(nic) for nic in node.nics] == [None] * lingjun.BONDS


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"rdma_mode": "both"}, "policy.rdma_mode must be one of shared, exclusive, found 'both'"),
        ({"resource_count": 0}, "policy.resource_count must be 1 or more, found 0"),
        ({"plugin_version": "newest"}, "must begin like 1.1.5 or v1.1.5, found 'newest'"),
        ({"non_host_network": "yes"}, "policy.non_host_network"),
    ],
)
def test_a_policy_that_makes_no_sense_is_refused(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(RdmaError, match="policy") as caught:
        Policy.from_dict(settings)
    assert words in caught.value.message
