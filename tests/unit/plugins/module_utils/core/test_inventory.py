# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hosts, groups and variables out of nodes, slices and pods: each host once, in one group of each kind."""

from __future__ import annotations

import hashlib
import json
import sys
import time
from collections.abc import Sequence
from typing import Any, Optional, Union

import pytest
from hypothesis import given, strategies as st

from ansible_collections.rdma.k8s.plugins.module_utils.core import inventory
from ansible_collections.rdma.k8s.plugins.module_utils.core.inventory import Inventory, Wishes
from ansible_collections.rdma.k8s.plugins.module_utils.core.net import parse_prefix
from ansible_collections.rdma.k8s.tests.support import inventory_objects as objects

SSH = inventory.by_ssh(["InternalIP"])
LINGJUN = "alibabacloud.com/lingjun-worker"
PLUGIN = "sriovnetwork.openshift.io/device-plugin"
STATE = "sriovnetwork.openshift.io/state"
ISLAND = "oci.oraclecloud.com/rdma.hpc_island_id"

Objects = Sequence[dict[str, Any]]


def build(
    nodes: Objects,
    slices: Union[Objects, str] = (),
    wishes: Optional[Wishes] = None,
    connection: inventory.Connection = SSH,
) -> Inventory:
    """The inventory of objects, through JSON as through a cache."""
    wishes = wishes or Wishes()
    keys = [wishes.network_key] if wishes.network_key else []
    facts = [
        inventory.node_facts(node, [*wishes.labels, *keys], [*wishes.annotations, *keys]) for node in nodes
    ]
    pieces = slices if isinstance(slices, str) else [inventory.slice_facts(piece) for piece in slices]
    kept = json.loads(json.dumps([facts, pieces]))
    return inventory.build(kept[0], kept[1], connection, wishes)


def changed(node: dict[str, Any], **metadata: dict[str, str]) -> dict[str, Any]:
    """A node with more labels or annotations."""
    for kind, values in metadata.items():
        node["metadata"][kind].update(values)
    return node


def view(found: Inventory, name: str = "gpu-00000") -> dict[str, Any]:
    """The variable of one host."""
    return dict(found.hosts[name]["rdma_k8s_node"])


def groups_of(found: Inventory, name: str) -> set[str]:
    """The groups of one host."""
    return {group for group, names in found.groups.items() if name in names}


def test_a_node_of_oke_with_its_slices() -> None:
    """F15, F70: everything about it is told, and it is in one group of each kind."""
    found = build([objects.node()], [objects.piece()])
    island = objects.level(0, 1)
    assert found.warnings == []
    assert found.hosts == {
        "gpu-00000": {
            "ansible_host": "10.140.64.10",
            "rdma_k8s_node": {
                "name": "gpu-00000",
                "uid": "0b6f2d1e-0000-4c1e-9a57-000000000000",
                "provider_id": "anuwcljt" + "0" * 52,
                "target": "oke_dranet",
                "shape": "BM.GPU.H100.8",
                "ready": True,
                "cordoned": False,
                "rdma_network": "10.224.0.0/12 via 10.140.64.0/19",
                "oca_network": "10.224.0.0/12",
                "primary_subnet": "10.140.64.0/19",
                "child_range": "10.208.0.0/12",
                "fabric_ipv6": False,
                "fabric_planes": 1,
                "rack": "rack0",
                "gpu_memory_fabric": "",
                "rdma_devices": 16,
                "labels": {},
                "annotations": {},
                "hpc_island": island,
                "network_block": island,
                "local_block": island,
                "unknown": {},
            },
        }
    }
    assert groups_of(found, "gpu-00000") == {
        "rdma_nodes",
        "rdma_ready",
        "rdma_target_oke_dranet",
        "rdma_shape_BM_GPU_H100_8",
        "rdma_network_10_224_0_0_12_via_10_140_64_0_19",
        f"rdma_hpc_island_{island}",
        f"rdma_network_block_{island}",
        f"rdma_local_block_{island}",
    }


def oke(**metadata: dict[str, str]) -> dict[str, Any]:
    """A node of OKE."""
    return changed(objects.node(), **metadata)


def plain(**metadata: dict[str, str]) -> dict[str, Any]:
    """A node of no cloud in particular."""
    return changed(objects.node(oci=False), **metadata)


ENABLED = {PLUGIN: "Enabled"}
TARGETS: list[tuple[str, dict[str, Any], Optional[dict[str, Any]], str]] = [
    ("A13, A16: the label tells Lingjun", plain(labels={LINGJUN: "true"}), None, "ack_lingjun"),
    ("A13: only with the value true", plain(labels={LINGJUN: "false"}), None, "none"),
    ("F99: slices on a node of OCI", oke(), objects.piece(shape=None), "oke_dranet"),
    ("F70: attributes of OKE, a node that says nothing", plain(), objects.piece(), "oke_dranet"),
    ("F128: a shape with RDMA NICs, nothing installed yet", oke(), None, "oke_dranet"),
    ("S119: the label of the device plugin", plain(labels=ENABLED), None, "spiderpool_sriov"),
    ("S119: disabled is no sign", plain(labels={PLUGIN: "Disabled"}), None, "none"),
    ("S114: the annotation of the operator", plain(annotations={STATE: "Idle"}), None, "spiderpool_sriov"),
    ("S24: the operator on OCI counts more than the shape", oke(labels=ENABLED), None, "spiderpool_sriov"),
    ("two drivers for one node", oke(labels=ENABLED), objects.piece(), "ambiguous"),
    ("a node of no cloud in particular", plain(), None, "none"),
]


@pytest.mark.parametrize(
    ("node", "piece", "target"), [case[1:] for case in TARGETS], ids=[c[0] for c in TARGETS]
)
def test_the_target(node: dict[str, Any], piece: Optional[dict[str, Any]], target: str) -> None:
    """Each sign of a target; what runs counts more than what could."""
    found = build([node], [piece] if piece else [])
    assert view(found)["target"] == target
    assert found.groups[f"rdma_target_{target}"] == ["gpu-00000"]
    assert bool(found.warnings) == (target == "ambiguous")


def test_dranet_of_another_cloud_is_no_target() -> None:
    """DRANET runs on other clouds too; this collection prepares nodes of OKE for it."""
    told = dict.fromkeys(inventory._TOLD)
    assert view(build([objects.node(oci=False)], [objects.piece(**told)]))["target"] == "none"


def test_a_resource_of_spiderpool_is_a_sign() -> None:
    """S95, S119: the operator's resources begin with spidernet.io."""
    node = objects.node(oci=False)
    node["status"]["allocatable"]["spidernet.io/rail1"] = "8"
    assert view(build([node]))["target"] == "spiderpool_sriov"


def test_a_node_with_signs_of_two_targets_is_said() -> None:
    """Nobody should guess which of the two will win."""
    found = build([changed(objects.node(), labels={PLUGIN: "Enabled", LINGJUN: "true"})])
    assert found.groups["rdma_target_ambiguous"] == ["gpu-00000"]
    assert "signs of more than one target" in view(found)["unknown"]["target"]
    assert found.warnings[0].startswith(
        "node gpu-00000: signs of more than one target: label alibabacloud.com/"
    )


def test_without_the_right_to_read_slices() -> None:
    """The hosts are there; groups that need slices are named unknown, and somebody hears it."""
    nodes = [
        objects.node(0),
        objects.node(1, oci=False),
        changed(objects.node(2), labels={ISLAND: "isl0"}),
        changed(objects.node(3, oci=False), labels={LINGJUN: "true"}),
    ]
    found = build(nodes, "listing resourceslices is not allowed")
    assert list(found.hosts) == [objects.name_of(number) for number in range(4)]
    assert found.groups["rdma_target_oke_dranet"] == ["gpu-00000", "gpu-00002"]
    assert found.groups["rdma_target_unknown"] == ["gpu-00001"]
    assert found.groups["rdma_target_ack_lingjun"] == ["gpu-00003"]
    assert found.groups["rdma_network_unknown"] == list(found.hosts)
    assert found.groups["rdma_hpc_island_isl0"] == ["gpu-00002"]
    assert view(found, "gpu-00000")["rdma_devices"] is None
    assert "not allowed" in view(found, "gpu-00001")["unknown"]["target"]
    assert [text for text in found.warnings if "could not be read" in text and "not allowed" in text]


def test_one_rdma_network_for_each_pair_of_networks() -> None:
    """F23, F24: one OCA network and another primary subnet is another RDMA network."""
    other = objects.piece(1)
    for nic, device in enumerate(other["spec"]["devices"]):
        device["attributes"]["dra.net/ipv4"] = {
            "string": objects.text(objects.OCA_NETWORK + nic * 65536 + 0x400B) + "/12"
        }
    found = build([objects.node(0), objects.node(1), objects.node(2)], [objects.piece(0), other])
    assert view(found, "gpu-00001")["rdma_network"] == "10.224.0.0/12 via 10.140.0.0/16"
    assert found.groups["rdma_network_10_224_0_0_12_via_10_140_64_0_19"] == ["gpu-00000"]
    assert found.groups["rdma_network_10_224_0_0_12_via_10_140_0_0_16"] == ["gpu-00001"]
    assert found.groups["rdma_network_unknown"] == ["gpu-00002"]
    assert (
        view(found, "gpu-00002")["unknown"]["rdma_network"]
        == "no slice of the driver dra.net is there for the node"
    )


def test_an_address_beside_that_of_oca_and_other_nics_do_not_matter() -> None:
    """F34: NICs of the cloud network have other names."""
    piece = objects.piece(nics=3)
    piece["spec"]["devices"][2]["attributes"].update(
        {"dra.net/ifName": {"string": "ens300f0np0"}, "dra.net/ipv4": {"string": "10.140.64.10/19"}}
    )
    assert view(build([objects.node()], [piece]))["rdma_network"] == "10.224.0.0/12 via 10.140.64.0/19"


def test_an_ipv6_fabric_has_no_oca_network() -> None:
    """F4, F70: nothing is derived from IPv4 there."""
    found = build([objects.node()], [objects.piece(rdmaFabricIpv6=True, rdmaChildIpv4Cidr=None)])
    assert "IPv6" in view(found)["unknown"]["rdma_network"]
    assert found.groups["rdma_network_unknown"] == ["gpu-00000"]


@pytest.mark.parametrize("kind", ["labels", "annotations"])
def test_a_label_or_an_annotation_may_name_the_network(kind: str) -> None:
    """Where addresses tell nothing, the owner of the nodes can; addresses that are known stay variables."""
    nodes = [changed(objects.node(n), **{kind: {"example.com/fabric": "east"}}) for n in (0, 1)]
    found = build(nodes, [objects.piece(0)], Wishes(network_key="example.com/fabric"))
    assert found.groups["rdma_network_east"] == ["gpu-00000", "gpu-00001"]
    assert view(found, "gpu-00000")["oca_network"] == "10.224.0.0/12"
    assert view(found, "gpu-00001")["oca_network"] == ""
    assert "rdma_network" not in view(found, "gpu-00001")["unknown"]


def test_known_subnets() -> None:
    """F128: a node with one NIC, whose index 0 tells no size."""
    node, piece = objects.node(), objects.piece(nics=1)
    assert "several lengths" in view(build([node], [piece]))["unknown"]["rdma_network"]
    found = build([node], [piece], Wishes(subnets=[parse_prefix("10.140.64.0/20")]))
    assert view(found)["primary_subnet"] == "10.140.64.0/20"


# --- the topology ----------------------------------------------------------------------------------------------------


def test_a_label_joins_nodes_that_have_the_attribute() -> None:
    """F72: the label is a hash of what the attribute says, so one island is one group."""
    nodes = [changed(objects.node(n), labels={ISLAND: "isl0" if n < 2 else "isl9"}) for n in range(3)]
    found = build(nodes, [objects.piece(0)])
    assert found.groups[f"rdma_hpc_island_{objects.level(0, 1)}"] == ["gpu-00000", "gpu-00001"]
    assert found.groups["rdma_hpc_island_isl9"] == ["gpu-00002"]
    assert found.groups["rdma_network_block_unknown"] == ["gpu-00001", "gpu-00002"]


def test_a_label_with_two_meanings_joins_nothing() -> None:
    """A hash that stands for two islands is wrong on some node; nobody knows on which."""
    nodes = [changed(objects.node(n), labels={ISLAND: "isl0"}) for n in range(3)]
    found = build(nodes, [objects.piece(0), objects.piece(1, hpcIslandId="other")])
    assert found.groups["rdma_hpc_island_isl0"] == ["gpu-00002"]
    assert found.warnings == [
        f"The label {ISLAND}=isl0 stands for more than one hpcIslandId: {objects.level(0, 1)}, other"
    ]


def test_devices_that_disagree_tell_nothing() -> None:
    """F70: an attribute of the node is the same on each of its devices, or it is not known."""
    piece = objects.piece(nics=2)
    piece["spec"]["devices"][1]["attributes"]["oke.dra.net/localBlockId"] = {"string": "another"}
    found = build([objects.node()], [piece])
    assert view(found)["local_block"] == ""
    assert found.groups["rdma_local_block_unknown"] == ["gpu-00000"]
    assert "local_block" in view(found)["unknown"]


def test_slices_of_one_pool_are_one_and_older_ones_do_not_count() -> None:
    """F99: all devices of a node in the slices of one pool; of an older generation nothing is left."""
    halves = [objects.piece(nics=16, generation=2) for _half in range(2)]
    halves[0]["spec"]["devices"] = halves[0]["spec"]["devices"][:8]
    halves[1]["spec"]["devices"] = halves[1]["spec"]["devices"][8:12]
    old = objects.piece(generation=1, shape="BM.OLD")
    for order in ([*halves, old], [old, *halves], [halves[1], old, halves[0]]):
        found = view(build([objects.node()], order))
        assert (found["rdma_devices"], found["shape"]) == (12, "BM.GPU.H100.8")
        assert found["oca_network"] == "10.224.0.0/12"


def test_a_slice_of_another_driver_or_of_no_node_is_none() -> None:
    """F99: the driver is dra.net; without a node the pool has its name."""
    gpu, everywhere, pool = objects.piece(), objects.piece(), objects.piece()
    gpu["spec"]["driver"] = "gpu.nvidia.com"
    del everywhere["spec"]["nodeName"], everywhere["spec"]["pool"]
    del pool["spec"]["nodeName"]
    assert inventory.slice_facts(gpu) is None
    assert inventory.slice_facts(everywhere) is None
    assert (inventory.slice_facts(pool) or {})["node"] == "gpu-00000"


# --- readiness and connection ----------------------------------------------------------------------------------------


def test_readiness() -> None:
    """Ready is what the condition says; a kubelet that is gone is not ready."""
    nodes = [objects.node(number) for number in range(4)]
    for node, state in zip(nodes, ("True", "False", "Unknown", "")):
        node["status"]["conditions"][1]["status"] = state
    del nodes[3]["status"]["conditions"]
    nodes[0]["spec"]["unschedulable"] = True
    found = build(nodes)
    assert found.groups["rdma_ready"] == found.groups["rdma_cordoned"] == ["gpu-00000"]
    assert found.groups["rdma_not_ready"] == ["gpu-00001", "gpu-00002", "gpu-00003"]


def test_addresses_user_and_port() -> None:
    """The first type that there is; the name of a variable is Ansible's."""
    node = objects.node()
    node["status"]["addresses"].append({"type": "ExternalIP", "address": "203.0.113.7"})
    found = build(
        [node], connection=inventory.by_ssh(["ExternalDNS", "ExternalIP", "InternalIP"], "opc", 2222)
    )
    assert {key: value for key, value in found.hosts["gpu-00000"].items() if key != "rdma_k8s_node"} == {
        "ansible_host": "203.0.113.7",
        "ansible_user": "opc",
        "ansible_port": 2222,
    }


def test_a_node_without_an_address_is_said_and_kept_or_left_out() -> None:
    """A host that vanishes silently would be taken for a good one."""
    nodes = [objects.node(0), objects.node(1)]
    nodes[1]["status"]["addresses"] = []
    kept = build(nodes)
    assert kept.groups["rdma_no_connection"] == ["gpu-00001"]
    assert "ansible_host" not in kept.hosts["gpu-00001"]
    assert kept.warnings == ["node gpu-00001: no connection, kept: it has no address of type InternalIP"]
    assert view(kept, "gpu-00001")["unknown"]["connection"] == "it has no address of type InternalIP"
    left = build(nodes, wishes=Wishes(keep_unconnected=False))
    assert list(left.hosts) == ["gpu-00000"]
    assert left.warnings == ["node gpu-00001: no connection, left out: it has no address of type InternalIP"]


def test_the_pod_of_the_agent_on_each_node() -> None:
    """Of two pods while one takes the place of the other: the ready one that stays, else the newest."""
    ended, leaving = objects.pod("gpu-00000", "agent-x"), objects.pod("gpu-00000", "agent-0", created="2027")
    ended["status"]["phase"] = "Failed"
    leaving["metadata"]["deletionTimestamp"] = "2026-11-01T00:00:00Z"
    pods = [
        ended,
        leaving,
        objects.pod("gpu-00000", "agent-a", created="2026-11-02"),
        objects.pod("gpu-00000", "agent-b", created="2026-11-03"),
        objects.pod("gpu-00000", "agent-c", ready=False, created="2026-11-04"),
        objects.pod("gpu-00001", "agent-d", ready=False),
        objects.pod("", "agent-pending"),
    ]
    facts = [fact for fact in map(inventory.pod_facts, pods) if fact]
    assert [fact["name"] for fact in facts] == ["agent-0", "agent-a", "agent-b", "agent-c", "agent-d"]
    way = inventory.by_agent(facts, {"ansible_connection": "kubernetes.core.kubectl"})
    found = build([objects.node(number) for number in range(3)], connection=way)
    assert found.hosts["gpu-00000"]["ansible_kubectl_pod"] == "agent-b"
    assert found.hosts["gpu-00000"]["ansible_connection"] == "kubernetes.core.kubectl"
    assert found.groups["rdma_no_connection"] == ["gpu-00001", "gpu-00002"]
    assert found.hosts["gpu-00002"]["ansible_connection"] == "kubernetes.core.kubectl", "never SSH instead"
    assert "ansible_kubectl_pod" not in found.hosts["gpu-00001"]
    assert found.warnings == [
        "node gpu-00002: no connection, kept: no pod of the node agent is on it",
        "node gpu-00001: no connection, kept: the pod of the node agent on it is not ready",
    ]
    assert "the pod agent-d" in view(found, "gpu-00001")["unknown"]["connection"]


def test_many_nodes_are_not_all_named() -> None:
    """A warning stays readable."""
    found = build([objects.node(n) for n in range(8)], connection=inventory.by_agent([], {}))
    shown = ", ".join(objects.name_of(number) for number in range(5))
    assert found.warnings == [
        f"8 nodes {shown} and 3 more: no connection, kept: no pod of the node agent is on it"
    ]


# --- what a user wants -----------------------------------------------------------------------------------------------


def test_only_some_targets() -> None:
    """Others are no hosts, and nobody is warned about them."""
    nodes = [
        objects.node(0),
        objects.node(1, oci=False),
        changed(objects.node(2, oci=False), labels={LINGJUN: "true"}),
    ]
    nodes[1]["status"]["addresses"] = []
    found = build(nodes, wishes=Wishes(targets=("oke_dranet", "ack_lingjun")))
    assert list(found.hosts) == ["gpu-00000", "gpu-00002"]
    assert "rdma_target_none" not in found.groups
    assert found.warnings == []


def test_labels_and_annotations_only_on_request() -> None:
    """Labels of a node are many, and annotations may hold what nobody should see."""
    node = changed(objects.node(), labels={"a": "1", "b": "2"}, annotations={"c": "3", "secret": "x"})
    found = view(build([node], wishes=Wishes(labels=("a", "z"), annotations=("c",))))
    assert (found["labels"], found["annotations"]) == ({"a": "1"}, {"c": "3"})
    assert "secret" not in json.dumps(inventory.node_facts(node))


def test_prefixes() -> None:
    """Two clusters in one inventory, and groups with other names."""
    found = build([objects.node()], wishes=Wishes(host_prefix="iad-", group_prefix=""))
    assert list(found.hosts) == ["iad-gpu-00000"]
    assert view(found, "iad-gpu-00000")["name"] == "gpu-00000"
    assert found.groups["ready"] == ["iad-gpu-00000"]


def test_a_name_that_comes_twice_is_one_host_and_is_said() -> None:
    """A list that was read in two times may have a node that was made anew meanwhile."""
    old, new = objects.node(0), objects.node(7, name="gpu-00000")
    found = build([old, objects.node(1), new])
    assert list(found.hosts) == ["gpu-00000", "gpu-00001"]
    assert view(found)["uid"].endswith("7")
    assert found.groups["rdma_nodes"] == ["gpu-00000", "gpu-00001"]
    assert found.warnings == ["node gpu-00000: listed more than once, the last one counts"]


def test_no_nodes_at_all() -> None:
    """Nothing, and not an error."""
    found = build([])
    assert (found.hosts, found.groups, found.warnings) == ({}, {"rdma_nodes": []}, [])


def test_objects_with_hardly_anything_in_them() -> None:
    """Null and absent are the same in JSON that Go wrote."""
    empty = {"metadata": {"name": "gpu-00000", "labels": None}, "spec": None, "status": {"conditions": None}}
    slim = {"spec": {"driver": "dra.net", "nodeName": "gpu-00000", "pool": None, "devices": [{"name": "a"}]}}
    found = build([empty], [slim])
    assert view(found)["target"] == "none"
    assert view(found)["rdma_devices"] == 0
    assert inventory.pod_facts({"metadata": {}, "spec": None, "status": None}) is None


@pytest.mark.parametrize(
    ("text", "end"),
    [
        ("ocid1.instance.oc1.iad.anuwcljt0000", "anuwcljt0000"),
        ("oci://ocid1.instance.oc1.iad.anuwcljt0000", "anuwcljt0000"),
        ("cn-wulanchabu.e01-cn-abc", "cn-wulanchabu.e01-cn-abc"),
        ("aws:///us-east-1a/i-0123", "i-0123"),
        ("x" * 99, "x" * 60),
        ("", ""),
    ],
)
def test_the_provider_id_is_shortened(text: str, end: str) -> None:
    """F65: the end of an OCID; A16: a Lingjun node has e01-..., which stays whole."""
    assert inventory.provider_id(text) == end


# --- names of groups -------------------------------------------------------------------------------------------------


def test_two_values_with_one_name_stay_two_groups() -> None:
    """A play on the plain name must not reach both by accident, nor one of them."""
    shape = "node.kubernetes.io/instance-type"
    nodes = [changed(objects.node(n), labels={shape: "gpu.a" if n else "gpu-a"}) for n in range(3)]
    found = build(nodes)
    groups = {name: hosts for name, hosts in found.groups.items() if name.startswith("rdma_shape_")}
    assert sorted(groups.values()) == [["gpu-00000"], ["gpu-00001", "gpu-00002"]]
    assert "rdma_shape_gpu_a" not in groups
    assert len([text for text in found.warnings if "rdma_shape_gpu_a_" in text]) == 2


def test_kinds_do_not_run_into_each_other() -> None:
    """The network called block_x, and the network block x."""
    label = "oci.oraclecloud.com/rdma.network_block_id"
    nodes = [
        changed(objects.node(0), labels={"net": "block_x"}),
        changed(objects.node(1), labels={label: "x"}),
    ]
    found = build(nodes, wishes=Wishes(network_key="net"))
    assert "rdma_network_block_x" not in found.groups
    assert len([name for name in found.groups if name.startswith("rdma_network_block_x_")]) == 2


def test_a_value_that_looks_like_a_digest_stays_its_own_group() -> None:
    """Whoever may name shapes cannot make two of them one."""
    shape = "node.kubernetes.io/instance-type"
    digest = hashlib.sha256(b"shape\0gpu.a").hexdigest()
    values = ["gpu-a", "gpu.a", "gpu_a_" + digest[:8]]
    nodes = [changed(objects.node(n), labels={shape: value}) for n, value in enumerate(values)]
    found = build(nodes)
    assert found.groups["rdma_shape_gpu_a_" + digest[:8]] == ["gpu-00002"]
    assert found.groups["rdma_shape_gpu_a_" + digest[:16]] == ["gpu-00001"]


def test_a_value_called_unknown_is_not_unknown() -> None:
    """The named group for what cannot be told keeps its name."""
    shape = "node.kubernetes.io/instance-type"
    nodes = [changed(objects.node(0), labels={shape: "unknown"}), objects.node(1, oci=False)]
    found = build(nodes)
    assert found.groups["rdma_shape_unknown"] == ["gpu-00001"]
    assert [hosts for name, hosts in found.groups.items() if name.startswith("rdma_shape_unknown_")] == [
        ["gpu-00000"]
    ]


def test_a_group_is_never_called_like_a_host() -> None:
    """Ansible would not know which of the two a play means."""
    found = build([objects.node(0, name="ready"), objects.node(1)], wishes=Wishes(group_prefix=""))
    assert "ready" not in found.groups
    assert [hosts for name, hosts in found.groups.items() if name.startswith("ready_")] == [
        ["gpu-00001", "ready"]
    ]


@given(
    st.lists(
        st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=6), min_size=1, unique=True
    )
)
def test_values_never_merge_and_names_are_good(values: list[str]) -> None:
    """Whatever the values are: as many groups as values, each with its own hosts, each name one that Ansible takes."""
    shape = "node.kubernetes.io/instance-type"
    nodes = [changed(objects.node(number), labels={shape: value}) for number, value in enumerate(values)]
    found = build(nodes)
    groups = [hosts for name, hosts in found.groups.items() if name.startswith("rdma_shape_")]
    assert sorted(groups) == [[objects.name_of(number)] for number in range(len(values))]
    assert all(name.isascii() and name.isidentifier() for name in found.groups)


KINDS = ("target", "shape", "network", "hpc_island", "network_block", "local_block")


@given(st.lists(st.sampled_from(["none", "oke", "slices", "label"]), min_size=1, max_size=6))
def test_each_host_is_in_one_group_of_each_kind(sorts: list[str]) -> None:
    """No kind of group may lose a host: a play over all groups of a kind reaches all."""
    nodes = [objects.node(number, oci=sort != "none") for number, sort in enumerate(sorts)]
    for node, sort in zip(nodes, sorts):
        if sort == "label":
            node["metadata"]["labels"][ISLAND] = "isl"
    found = build(nodes, [objects.piece(n) for n, sort in enumerate(sorts) if sort == "slices"])
    members: dict[str, list[str]] = {kind: [] for kind in KINDS}
    for group, hosts in found.groups.items():
        kinds = [kind for kind in KINDS if group.startswith(f"rdma_{kind}_")]
        if kinds:
            members[max(kinds, key=len)] += hosts
    for kind in KINDS:
        assert sorted(members[kind]) == sorted(found.hosts), kind
    assert found.groups["rdma_nodes"] == list(found.hosts)


# --- size ------------------------------------------------------------------------------------------------------------


def test_5000_nodes_cost_little() -> None:
    """80,000 NICs. CPU seconds, and several times what it takes, so that a busy machine does not fail it."""
    count = 5000
    nodes = [objects.node(number) for number in range(count)]
    pieces = [objects.piece(number) for number in range(0, count, 25)]
    started = time.process_time()
    for piece in pieces * 25:
        inventory.slice_facts(piece)
    facts = [inventory.node_facts(node) for node in nodes]
    reading = time.process_time() - started
    kept = []
    for number in range(count):
        fact = inventory.slice_facts(objects.piece(number, nics=1))
        assert fact is not None
        kept.append({**fact, "nics": [[nic, objects.parent(number, nic)] for nic in range(16)], "rdma": 16})
    started = time.process_time()
    found = inventory.build(facts, kept, SSH)
    building = time.process_time() - started
    assert len(found.groups["rdma_network_10_224_0_0_12_via_10_140_64_0_19"]) == count
    assert len([name for name in found.groups if name.startswith("rdma_local_block_")]) == count // 50
    most = 5 if sys.gettrace() is None else 50  # each line is counted when the coverage is measured
    assert reading + building < most, f"{reading:.2f} s to read, {building:.2f} s to build"
