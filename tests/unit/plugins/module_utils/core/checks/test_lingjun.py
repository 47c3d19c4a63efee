# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The target ack_lingjun: what takes part in its judgement, how its nodes are read, and what its policy refuses."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from ansible_collections.rdma.k8s.plugins.module_utils.core.checks.context import Fleet, Node
from ansible_collections.rdma.k8s.plugins.module_utils.core.checks.judge import NodeInput, judge
from ansible_collections.rdma.k8s.plugins.module_utils.core.checks.policy import Policy
from ansible_collections.rdma.k8s.plugins.module_utils.core.checks.registry import CATALOGUE
from ansible_collections.rdma.k8s.plugins.module_utils.core.cluster_snapshot import ClusterSnapshot
from ansible_collections.rdma.k8s.plugins.module_utils.core.errors import RdmaError
from ansible_collections.rdma.k8s.plugins.module_utils.core.finding import STATUSES
from ansible_collections.rdma.k8s.plugins.module_utils.core.report.document import ResultDocument
from ansible_collections.rdma.k8s.plugins.module_utils.core.snapshot import NodeSnapshot
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
    "given_settings",
    [
        {},
        {"non_host_network": True, "plugin_version": "v1.1.5"},
        {"non_host_network": True, "compute_ip_version": "IPv6"},
    ],
)
@pytest.mark.parametrize("clustered", [True, False])
def test_healthy_nodes_give_no_alarm(clustered: bool, given_settings: dict[str, Any]) -> None:
    document = judged(clustered, **given_settings)
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
    assert Fleet([node], LINGJUN).networks == {}
    same = Node(fleet.node(), Policy())
    assert [nic.name for nic in same.nics] == ["rdma%d" % index for index in range(16)]


def test_links_that_were_not_read_are_not_known() -> None:
    snapshot = lingjun.node()
    document = {key: value for key, value in snapshot.to_dict().items() if key != "links"}
    node = Node(type(snapshot).from_dict(document), LINGJUN)
    assert node.fabric_interfaces is None


@pytest.mark.parametrize(
    ("wish", "words"),
    [
        ({"rdma_mode": "both"}, "policy.rdma_mode must be one of shared, exclusive, found 'both'"),
        ({"resource_count": 0}, "policy.resource_count must be 1 or more, found 0"),
        ({"plugin_version": "newest"}, "must begin like 1.1.5 or v1.1.5, found 'newest'"),
        ({"non_host_network": "yes"}, "policy.non_host_network"),
    ],
)
def test_a_policy_that_makes_no_sense_is_refused(wish: dict[str, Any], words: str) -> None:
    with pytest.raises(RdmaError, match="policy") as caught:
        Policy.from_dict(wish)
    assert words in caught.value.message


JUNK = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.text(max_size=12),
    st.sampled_from(["1K", "fd00::/0", "a=b:NoExecute", ":", "v1.", "2026-03-02T09:00:00Z", "bond0", "eth0"]),
    st.just([]),
    st.just({}),
    st.just([None]),
    st.just([{}]),
)
NODE = lingjun.node(0, "sick").to_dict()
CLUSTER = lingjun.cluster("sick", "well").to_dict()


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a JSON document."""
    entries = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    found = [path] if path else []
    for key, entry in entries:
        found += places(entry, (*path, key))
    return found


def damaged(document: dict[str, Any], path: tuple[Any, ...], value: Any) -> dict[str, Any]:
    """A copy with another value at one place."""
    found = copy.deepcopy(document)
    at: Any = found
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    return found


@given(data=st.data())
@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_whatever_node_and_cluster_tell_there_is_a_result(data: st.DataObject) -> None:
    """The judgement ends with one result for each check, or the snapshot is refused before."""
    node, cluster = NODE, CLUSTER
    if data.draw(st.booleans(), "the node"):
        node = damaged(NODE, data.draw(st.sampled_from(places(NODE))), data.draw(JUNK))
    else:
        cluster = damaged(CLUSTER, data.draw(st.sampled_from(places(CLUSTER))), data.draw(JUNK))
    try:
        inputs = [NodeInput("sick", NodeSnapshot.from_dict({**node, "name": "sick"}))]
        snapshot = ClusterSnapshot.from_dict(cluster)
    except RdmaError:
        return
    policy = Policy.from_dict({"target": "ack_lingjun", "non_host_network": True, "only": ["RDMA-ACK-*"]})
    document = judge(inputs, policy, fleet.JUDGED_AT, cluster=snapshot)
    wanted = sorted(check for check in CATALOGUE if "-ACK-" in check)
    assert sorted(finding.check for finding in document.findings) == wanted
    assert {finding.status for finding in document.findings} <= set(STATUSES)
