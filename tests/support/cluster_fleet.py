# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The cluster of healthy nodes, as its API would tell it, and small edits that break it.

DRANET asks the provider of this collection, both run on every node, all RDMA NICs are published with what the metadata
says, and one claim has a child on each node. The values are made up after the F numbers, as those of the nodes. As on
OKE, a node is called in the cluster by its address, which is not its name in the inventory.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Callable, Optional

from ansible_collections.rdma.k8s.plugins.module_utils.core.cluster_snapshot import (
    KIND,
    SUBSETS,
    AllocatedDevice,
    ApiServer,
    Claim,
    ClusterNode,
    ClusterSnapshot,
    Consumer,
    DaemonSet,
    DeviceClass,
    DeviceRequest,
    DeviceStatus,
    DriverAccount,
    DriverContainer,
    DriverPod,
    Mount,
    NetworkRange,
    OpaqueConfig,
    ResourceSlice,
    RoleRule,
    SliceDevice,
)
from ansible_collections.rdma.k8s.plugins.module_utils.core.snapshot import NodeSnapshot
from ansible_collections.rdma.k8s.tests.support import fleet

NAME = "training"
READ_AT = "2026-03-02T09:01:00Z"
ALLOCATED = "2026-02-26T08:05:00Z"
STARTED = "2026-02-26T08:00:00Z"  # after the last change of the files of OCA, and after the boot
CHILD_RANGE, OLD_RANGE = "10.208.0.0/12", "10.240.0.0/15"  # F6, F2
OPTION = "--cloud-provider-options=oke.rdma-child-ipv4-cidr="
OCA_DIRECTORY = "/etc/oracle-cloud-agent/plugins/oci-hpc/oci-hpc-configure"
DRANET, PROVIDER = "dranet", "rdma-k8s-provider"
DIGESTS = {DRANET: "sha256:" + "d" * 64, PROVIDER: "sha256:" + "a" * 64}
WEBHOOK_ARGS = ("--v=4", "--profile-provider=webhook", "--webhook-url=unix:///var/run/dranet/rdma-k8s.sock")
RULES = (  # F119
    RoleRule(("",), ("nodes",), ("get",)),
    RoleRule(("",), ("events",), ("create", "patch", "update")),
    RoleRule(("resource.k8s.io",), ("resourceslices",), ("list", "watch", "create", "update", "delete")),
    RoleRule(("resource.k8s.io",), ("resourceclaims", "deviceclasses"), ("get",)),
    RoleRule(("resource.k8s.io",), ("resourceclaims/status",), ("patch", "update")),
    RoleRule(
        ("resource.k8s.io",),
        ("resourceclaims/driver",),
        ("associated-node:patch", "associated-node:update"),
        ("dra.net",),
    ),
)
NATIVE_ARGS = ("--v=4", "--cloud-provider-hint=OKE", OPTION + CHILD_RANGE)


def name_of(node: NodeSnapshot) -> str:
    """What a node is called in the cluster."""
    held: Any = node.imds.vnics if node.imds is not None else None
    return str(held[0]["privateIp"])


def healthy(nodes: Iterable[NodeSnapshot], native: bool = False) -> ClusterSnapshot:
    """The cluster of these nodes.

    :param native: DRANET resolves the profile itself, as a version with it would.
    """
    found = list(nodes)
    names = [name_of(node) for node in found]
    provider = () if native else (daemonset(PROVIDER, "provider", (OPTION + CHILD_RANGE,), names),)
    args = NATIVE_ARGS if native else WEBHOOK_ARGS
    if any(
        port.link_layer == "InfiniBand"
        for node in found
        for held in node.devices or ()
        for port in held.ports
    ):
        args = (*args, "--move-ib-interfaces=false")  # F82
    dranet = daemonset(DRANET, DRANET, args, names)
    return ClusterSnapshot(
        name=NAME,
        kind=KIND,
        collected_at=READ_AT,
        subsets=SUBSETS,
        server=ApiServer(
            "v1.34.1", "linux/amd64", ("resource.k8s.io/v1/resourceslices", "apps/v1/daemonsets")
        ),
        nodes=tuple([_node(node) for node in found]),
        slices=tuple([_slice(node) for node in found]),
        device_classes=(DeviceClass("rdma-nic", ('device.driver == "dra.net"',)),),
        claims=tuple([_claim(name) for name in names]),
        claim_templates=(),
        taint_rules=(),
        daemonsets=(dranet, *provider),
        pod_cidrs=(NetworkRange(fleet.POD_CIDR, "configmap kube-system/kube-flannel-cfg"),),
        service_cidrs=(NetworkRange(fleet.SERVICE_CIDR, "servicecidr kubernetes"),),
        admission_policies=(),
        prepare_events=(),
        roll_leases=(),
        rolls=(),
        disruption_budgets=(),
        driver_accounts=(DriverAccount("kube-system", DRANET, (DRANET,), RULES),),
    )


def of_case(
    edit: Callable[[ClusterSnapshot], ClusterSnapshot], shape: str = "BM.GPU.H100.8", native: bool = False
) -> Callable[[], ClusterSnapshot]:
    """The cluster of a case (its sick node and two healthy ones) with an edit, as the case takes it."""

    def made() -> ClusterSnapshot:
        nodes = [fleet.node(shape, number, name) for number, name in enumerate(("sick", "", ""))]
        return edit(healthy(nodes, native))

    return made


def same(cluster: ClusterSnapshot) -> ClusterSnapshot:
    """No edit."""
    return cluster


def _node(node: NodeSnapshot) -> ClusterNode:
    name = name_of(node)
    return ClusterNode(
        name=name,
        uid="uid-" + name,
        addresses=("InternalIP %s" % name, "Hostname %s" % name),
        runtime="cri-o://1.34.0",
        kubelet="v1.34.1",
        conditions={"Ready": "True"},
    )


def _slice(node: NodeSnapshot) -> ResourceSlice:
    name = name_of(node)
    assert node.imds is not None
    host, planes = node.imds.host, node.imds.host["rdmaFabricData"]
    topology = host["rdmaTopologyData"]
    own: dict[str, Any] = {
        "hpcIslandId": topology["customerHPCIslandId"].rpartition(".")[2],
        "networkBlockId": topology["customerNetworkBlock"].rpartition(".")[2],
        "localBlockId": topology["customerLocalBlock"].rpartition(".")[2],
        "rackId": host["rackId"],
        "shape": node.imds.instance["shape"],
        "rdmaFabricIpv6": planes["ipv6"],
        "rdmaFabricPlanes": planes["planes"],
    }
    if not planes["ipv6"]:
        own["rdmaChildIpv4Cidr"] = CHILD_RANGE  # F70
    devices = []
    for interface in fleet.names(node):
        device = fleet.device_of(node, interface)
        attributes = {
            "dra.net/ifName": interface,
            "dra.net/pciAddress": device.pci,
            "dra.net/rdma": True,
            "dra.net/rdmaDevice": device.name,
            **{"oke.dra.net/" + key: value for key, value in own.items()},
        }
        called = "pci-" + device.pci.replace(":", "-").replace(".", "-")  # F100
        devices.append(SliceDevice(called, attributes))
    return ResourceSlice(name + "-dra-net", "dra.net", name, name, 1, 1, STARTED, tuple(devices))


def _claim(node: str) -> Claim:
    return Claim(
        namespace="ml",
        name="train-" + node,
        uid="uid-claim-" + node,
        created=STARTED,
        owner="worker-" + node,
        requests=(DeviceRequest("nic", "rdma-nic"),),
        config=(OpaqueConfig("dra.net", (), {"profile": "oke-rdma"}),),
        allocated=True,
        node=node,
        devices=(AllocatedDevice("nic", "dra.net", node, "pci-0000-0c-00-0"),),
        reserved_for=(Consumer("pods", "worker-" + node, "uid-pod-" + node),),
        status=(DeviceStatus("dra.net", node, "pci-0000-0c-00-0", "net0", ("10.208.13.19/12",)),),
        allocated_at=ALLOCATED,
    )


def daemonset(name: str, role: str, args: Iterable[str], nodes: Iterable[str]) -> DaemonSet:
    """A DaemonSet that runs on these nodes and is ready."""
    held = list(nodes)
    container = DriverContainer(
        name=name,
        image="registry.example/%s:1" % name,
        command=("/" + name,),
        args=tuple(args),
        mounts=(
            Mount("/var/run/dranet", "/var/run/dranet", "DirectoryOrCreate"),
            Mount(OCA_DIRECTORY, OCA_DIRECTORY, "DirectoryOrCreate", read_only=True),
        ),
        liveness=True,
        readiness=True,
        requests={"cpu": "100m"},
    )
    pods = [
        DriverPod(
            "%s-%d" % (name, number), node, "Running", True, STARTED, digest=DIGESTS[name], created=STARTED
        )
        for number, node in enumerate(held)
    ]
    return DaemonSet(
        namespace="kube-system",
        name=name,
        role=role,
        uid="uid-" + name,
        generation=2,
        observed_generation=2,
        strategy="OnDelete",
        desired=len(held),
        ready=len(held),
        updated=len(held),
        available=len(held),
        scheduled=len(held),
        service_account=name,
        priority_class="system-node-critical",
        host_network=True,
        containers=(container,),
        pods=tuple(pods),
    )


# Edits


def edit_daemonset(cluster: ClusterSnapshot, name: str, **changes: Any) -> ClusterSnapshot:
    """The cluster with one DaemonSet changed."""
    found = [replace(entry, **changes) if entry.name == name else entry for entry in cluster.daemonsets or ()]
    return replace(cluster, daemonsets=tuple(found))


def edit_container(cluster: ClusterSnapshot, name: str, **changes: Any) -> ClusterSnapshot:
    """The cluster with the container of one DaemonSet changed."""
    entry = _named(cluster, name)
    return edit_daemonset(cluster, name, containers=(replace(entry.containers[0], **changes),))


def edit_pod(cluster: ClusterSnapshot, name: str, number: int = 0, **changes: Any) -> ClusterSnapshot:
    """The cluster with one pod of a DaemonSet changed."""
    pods = list(_named(cluster, name).pods or ())
    pods[number] = replace(pods[number], **changes)
    return edit_daemonset(cluster, name, pods=tuple(pods))


def without_pod(cluster: ClusterSnapshot, name: str, number: int = 0) -> ClusterSnapshot:
    """The cluster with one pod of a DaemonSet gone."""
    pods = list(_named(cluster, name).pods or ())
    del pods[number]
    return edit_daemonset(cluster, name, pods=tuple(pods))


def _named(cluster: ClusterSnapshot, name: str) -> DaemonSet:
    return next(entry for entry in cluster.daemonsets or () if entry.name == name)


def edit_node(cluster: ClusterSnapshot, number: int = 0, **changes: Any) -> ClusterSnapshot:
    """The cluster with one node changed."""
    nodes = list(cluster.nodes or ())
    nodes[number] = replace(nodes[number], **changes)
    return replace(cluster, nodes=tuple(nodes))


def edit_slice(cluster: ClusterSnapshot, number: int = 0, **changes: Any) -> ClusterSnapshot:
    """The cluster with one slice changed."""
    slices = list(cluster.slices or ())
    slices[number] = replace(slices[number], **changes)
    return replace(cluster, slices=tuple(slices))


def edit_attribute(
    cluster: ClusterSnapshot, name: str, value: Any, number: int = 0, device: Optional[int] = None
) -> ClusterSnapshot:
    """The cluster with an attribute of one device, or of all devices, of a slice changed; ``None`` removes it."""
    found = (cluster.slices or ())[number]
    devices = []
    for place, entry in enumerate(found.devices):
        attributes = dict(entry.attributes)
        if device in (None, place):
            attributes.pop(name, None)
            if value is not None:
                attributes[name] = value
        devices.append(replace(entry, attributes=attributes))
    return edit_slice(cluster, number, devices=tuple(devices))


def edit_claim(cluster: ClusterSnapshot, number: int = 0, **changes: Any) -> ClusterSnapshot:
    """The cluster with one claim changed."""
    claims = list(cluster.claims or ())
    claims[number] = replace(claims[number], **changes)
    return replace(cluster, claims=tuple(claims))
