# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes with SR-IOV and their cluster, healthy: Spiderpool's objects for two rails, and what the operator made of them.

Made up after what is known of such clusters (the S numbers). The nodes are the made-up H100 nodes of the fleet, in
exclusive mode; their first two RDMA NICs are the rails, with eight virtual functions each, which pods hold.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ansible_collections.rdma.k8s.plugins.module_utils.core.cluster_snapshot import (
    ApiObject,
    ApiServer,
    ClusterNode,
    ClusterSnapshot,
    NetworkRange,
    SriovInterface,
    SriovNodeState,
)
from ansible_collections.rdma.k8s.plugins.module_utils.core.snapshot import (
    ModuleOption,
    NodeSnapshot,
    PciFunction,
    RdmaSystem,
)
from ansible_collections.rdma.k8s.tests.support import fleet

CLUSTER = "rails"
"""Name of the cluster, and of its row."""
NAMESPACE = "spiderpool"
PLACES = ("0000:0c:00.0", "0000:0c:00.1")
"""The physical functions of the rails: ``rdma0`` and ``rdma1`` of the nodes."""
VFS = 8
MTU = 4220
LABELS = {"node-role.kubernetes.io/rdma": "true"}

EditCluster = Callable[[ClusterSnapshot], ClusterSnapshot]


def node(number: int = 0, name: str = "") -> NodeSnapshot:
    """A node whose two rails have their virtual functions."""
    found = fleet.node("BM.GPU.H100.8", number, name)
    functions = tuple(
        [
            replace(function, vfs=VFS, total_vfs=16) if function.address in PLACES else function
            for function in found.pci or ()
        ]
        + [
            PciFunction(_place(rail, vf), "15b3:101e", "0200", "mlx5_core", 0, PLACES[rail])
            for rail in range(len(PLACES))
            for vf in range(VFS)
        ]
    )
    option = ModuleOption(
        "/etc/modprobe.d/ib_core.conf", "netns_mode", "0", line=1, modified=fleet.BOOT_TIME - 86400
    )
    return replace(found, rdma=RdmaSystem("exclusive", "N", True), module_options=(option,), pci=functions)


def _place(rail: int, vf: int) -> str:
    return "0000:0c:%02x.%d" % (1 + rail * 2 + vf // 8, vf % 8)


def live_node(name: str) -> ClusterNode:
    """A node as the API tells it."""
    amounts = {"spidernet.io/gpu%dsriov" % rail: str(VFS) for rail in (1, 2)}
    return ClusterNode(
        name=name,
        labels={**LABELS, "kubernetes.io/os": "linux"},
        conditions={"Ready": "True"},
        capacity=amounts,
        allocatable=amounts,
    )


def state(name: str) -> SriovNodeState:
    """What the operator tells of a node when all is done."""
    return SriovNodeState(
        node=name,
        namespace=NAMESPACE,
        sync="Succeeded",
        desired_state="Idle",
        current_state="Idle",
        interfaces=tuple([_interface(rail) for rail in range(len(PLACES))]),
        generation=2,
    )


def _interface(rail: int) -> SriovInterface:
    return SriovInterface(
        pci=PLACES[rail],
        name="rdma%d" % rail,
        vendor="15b3",
        device="1021",
        driver="mlx5_core",
        mtu=MTU,
        link_type="ETH",
        total_vfs=16,
        vfs=VFS,
        num_vfs=VFS,
        vf_drivers=("mlx5_core",),
        vf_mtu=MTU,
        wanted_vfs=VFS,
    )


def policy(rail: int) -> ApiObject:
    """The policy of a rail, numbered from 1."""
    spec = {
        "resourceName": "gpu%dsriov" % rail,
        "nodeSelector": dict(LABELS),
        "numVfs": VFS,
        "mtu": MTU,
        "priority": 99,
        "nicSelector": {"vendor": "15b3", "rootDevices": [PLACES[rail - 1]]},
        "deviceType": "netdevice",
        "linkType": "eth",
        "isRdma": True,
    }
    return ApiObject("gpu%d" % rail, NAMESPACE, spec=spec)


def pool(rail: int) -> ApiObject:
    subnet = "172.16.%d" % (10 + rail)
    spec = {"subnet": subnet + ".0/24", "gateway": subnet + ".254", "ips": [subnet + ".1-" + subnet + ".200"]}
    return ApiObject("gpu%d-net" % rail, spec=spec)


def config(rail: int) -> ApiObject:
    part = {
        "resourceName": "spidernet.io/gpu%dsriov" % rail,
        "rdmaIsolation": True,
        "mtu": MTU,
        "ippools": {"ipv4": ["gpu%d-net" % rail]},
    }
    return ApiObject("gpu%d-sriov" % rail, NAMESPACE, spec={"cniType": "sriov", "sriov": part})


def attachment(rail: int) -> ApiObject:
    """The definition that Spiderpool makes of a config (S90)."""
    text = (
        '{"cniVersion": "0.3.1", "name": "gpu%d-sriov", "plugins": [{"type": "sriov", "ipam": {"type": "spiderpool"}}, '
        '{"type": "rdma"}, {"type": "coordinator"}]}' % rail
    )
    return ApiObject("gpu%d-sriov" % rail, NAMESPACE, "spidernet.io/gpu%dsriov" % rail, spec={"config": text})


def drains() -> ApiObject:
    spec = {"nodeSelector": {"matchLabels": dict(LABELS)}, "maxUnavailable": 1}
    return ApiObject("rdma", NAMESPACE, spec=spec)


def cluster(*names: str) -> ClusterSnapshot:
    """The cluster of these nodes, and one node of the control plane."""
    control = ClusterNode(
        name="control-1", labels={"kubernetes.io/os": "linux"}, conditions={"Ready": "True"}
    )
    return ClusterSnapshot(
        name=CLUSTER,
        collected_at=fleet.RECORDED_AT,
        subsets=("nodes", "drivers", "networks", "attachments"),
        server=ApiServer("v1.34.1"),
        nodes=(*[live_node(name) for name in names], control),
        daemonsets=(),
        pod_cidrs=(NetworkRange("10.244.0.0/16", "calico"),),
        service_cidrs=(NetworkRange("10.96.0.0/16", "ServiceCIDR kubernetes"),),
        network_attachments=(attachment(1), attachment(2)),
        ip_pools=(pool(1), pool(2)),
        multus_configs=(config(1), config(2)),
        sriov_policies=(ApiObject("default", NAMESPACE, spec={"numVfs": 0}), policy(1), policy(2)),
        sriov_networks=(),
        sriov_ib_networks=(),
        sriov_pool_configs=(drains(),),
        sriov_node_states=tuple([state(name) for name in names]),
    )


# Edits


def edit(field: str, name: str, *keys: str, **changes: Any) -> EditCluster:
    """Change the specification of an object of a field, below ``keys``; a value of ``...`` removes its key."""

    def edited(found: ClusterSnapshot) -> ClusterSnapshot:
        objects = [
            replace(entry, spec=_changed(entry.spec, keys, changes)) if entry.name == name else entry
            for entry in getattr(found, field)
        ]
        return replace(found, **{field: tuple(objects)})

    return edited


def _changed(spec: dict[str, Any], keys: tuple[str, ...], changes: dict[str, Any]) -> dict[str, Any]:
    spec = copy.deepcopy(spec)
    below = spec
    for key in keys:
        below = below.setdefault(key, {})
    below.update(changes)
    for key in [key for key, value in below.items() if value is ...]:
        del below[key]
    return spec


def edit_policy(rail: int, *keys: str, **changes: Any) -> EditCluster:
    return edit("sriov_policies", "gpu%d" % rail, *keys, **changes)


def edit_pool(rail: int, **changes: Any) -> EditCluster:
    return edit("ip_pools", "gpu%d-net" % rail, **changes)


def edit_config(rail: int, *keys: str, **changes: Any) -> EditCluster:
    return edit("multus_configs", "gpu%d-sriov" % rail, *keys, **changes)


def edit_state(name: str, **changes: Any) -> EditCluster:
    def edited(found: ClusterSnapshot) -> ClusterSnapshot:
        states = [
            replace(entry, **changes) if entry.node == name else entry
            for entry in found.sriov_node_states or ()
        ]
        return replace(found, sriov_node_states=tuple(states))

    return edited


def edit_interface(name: str, rail: int, **changes: Any) -> EditCluster:
    """Change what a state tells of one of its interfaces; a name of ``""`` means every node."""

    def edited(found: ClusterSnapshot) -> ClusterSnapshot:
        states = [
            replace(
                entry,
                interfaces=tuple(
                    [
                        replace(held, **changes) if held.pci == PLACES[rail - 1] else held
                        for held in entry.interfaces
                    ]
                ),
            )
            if name in ("", entry.node)
            else entry
            for entry in found.sriov_node_states or ()
        ]
        return replace(found, sriov_node_states=tuple(states))

    return edited


def edit_live(name: str, **changes: Any) -> EditCluster:
    def edited(found: ClusterSnapshot) -> ClusterSnapshot:
        nodes = [replace(entry, **changes) if entry.name == name else entry for entry in found.nodes or ()]
        return replace(found, nodes=tuple(nodes))

    return edited


def set_fields(**fields: Any) -> EditCluster:
    return lambda found: replace(found, **fields)
