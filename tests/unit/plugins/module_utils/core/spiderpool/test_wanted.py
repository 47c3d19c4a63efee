# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the policies of a cluster want of its nodes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.core.cluster_snapshot import (
    ApiObject,
    ClusterSnapshot,
    DaemonSet,
    DriverContainer,
)
from ansible_collections.rdma.k8s.plugins.module_utils.core.spiderpool import wanted
from ansible_collections.rdma.k8s.plugins.module_utils.core.spiderpool.node_policy import Nic, Node
from ansible_collections.rdma.k8s.tests.support import rails

PF = "0000:86:00.0"
NODE = Node(
    "w1", {"rdma": "true"}, [Nic("ens1", PF, "15b3", "101d"), Nic("ens2", "0000:86:00.1", "15b3", "101d")]
)


def policy(name: str, **spec: Any) -> dict[str, Any]:
    selector = spec.pop("nicSelector", {"pfNames": ["ens1"]})
    return {
        "metadata": {"name": name},
        "spec": {"resourceName": name, "numVfs": 8, "nicSelector": selector, **spec},
    }


def test_one_policy() -> None:
    found = wanted.wish_of(NODE, [policy("a", mtu=4200, linkType="ETH")])
    assert found.pfs == {PF: wanted.PfWish(8, 4200, "eth", "", False, ("a",))}
    assert (found.resources, found.counts, found.unclear) == ({"a": 8}, {PF: 8}, frozenset())


def test_parts_of_one_function_are_resources_of_their_own() -> None:
    """S105."""
    policies = [
        policy("a", nicSelector={"pfNames": ["ens1#0-1"]}),
        policy("b", nicSelector={"pfNames": ["ens1#2-7"]}),
    ]
    found = wanted.wish_of(NODE, policies)
    assert (found.resources, found.unclear, found.counts) == ({"a": 2, "b": 6}, frozenset(), {PF: 8})


@pytest.mark.parametrize(
    ("first", "second", "vfs"),
    [
        ({"priority": 10}, {"priority": 20}, 8),
        ({"priority": 20}, {"priority": 10}, 4),
        ({}, {"priority": 98}, 4),
        ({}, {}, 8),
    ],
)
def test_the_lowest_number_of_priority_wins(first: dict[str, Any], second: dict[str, Any], vfs: int) -> None:
    """S101; of equals the larger number."""
    found = wanted.wish_of(NODE, [policy("a", **first), policy("b", numVfs=4, **second)])
    assert found.counts == {PF: vfs}
    assert found.unclear == {"a", "b"}
    assert found.pfs[PF].policies == ("a", "b")


def test_two_functions_make_one_resource_larger() -> None:
    found = wanted.wish_of(NODE, [policy("a", nicSelector={"vendor": "15b3"})])
    assert found.resources == {"a": 16}


def test_functions_that_somebody_else_makes_are_not_counted() -> None:
    """S110: there may be more than the policy gives out."""
    found = wanted.wish_of(NODE, [policy("a", externallyManaged=True)])
    assert (found.counts, found.resources) == ({}, {"a": 8})


def test_another_node_is_asked_for_nothing() -> None:
    assert wanted.wish_of(NODE, [policy("a", nodeSelector={"rdma": "false"})]).pfs == {}


def test_the_namespace_is_that_of_the_states() -> None:
    """S102."""
    cluster = rails.cluster("w1")
    assert wanted.ClusterWish(cluster).namespace == "spiderpool"
    states = tuple([replace(state, namespace="sriov") for state in cluster.sriov_node_states or ()])
    found = wanted.ClusterWish(replace(cluster, sriov_node_states=states))
    assert (found.namespace, found.effective, found.wishes) == ("sriov", [], {})


@pytest.mark.parametrize(
    ("image", "version"),
    [
        ("ghcr.io/spidernet-io/spiderpool/spiderpool-agent:v1.0.3", "v1.0.3"),
        ("localhost:5000/spiderpool-agent:v1.0.3@sha256:00", "v1.0.3"),
        ("spiderpool-agent", "1.2.1"),
        ("spiderpool-agent:latest", "1.2.1"),
        ("spiderpool-controller:v1.0.3", "1.2.1"),
    ],
)
def test_versions_stand_in_the_tags(image: str, version: str) -> None:
    """S91: fields depend on them."""
    daemonset = DaemonSet("spiderpool", "spiderpool-agent", containers=(DriverContainer("agent", image),))
    found = wanted.ClusterWish(ClusterSnapshot(daemonsets=(daemonset,)))
    assert found.spiderpool_version == version


def test_a_nic_that_the_operator_lists_is_supported() -> None:
    """S100: ConnectX-8 is not in the list of the chart."""
    cluster = rails.edit_interface("w1", 1, device="1023")(rails.cluster("w1"))
    found = wanted.ClusterWish(cluster)
    assert found.supported["15b3"][:2] == ("1013", "1015")
    assert set(found.wishes["w1"].pfs) == set(rails.PLACES)


def test_labels_that_a_snapshot_does_not_keep_are_not_compared() -> None:
    labels = {"feature.node.kubernetes.io/cpu-x": "true", **rails.LABELS}
    cluster = rails.edit_policy(1, nodeSelector=labels)(rails.cluster("w1"))
    assert rails.PLACES[0] in wanted.ClusterWish(cluster).wishes["w1"].pfs


def test_what_is_not_known_asks_for_nothing() -> None:
    found = wanted.ClusterWish(ClusterSnapshot())
    assert (found.nodes, found.wishes, found.policies, found.namespace) == (None, {}, [], "spiderpool")
    assert wanted.as_manifest(ApiObject("a", "b", spec=None), "K")["spec"] is None
