# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lingjun nodes and their cluster, healthy, and small edits that break them.

Made up after what is known of such nodes (the A numbers): four LACP bonds of two ports each, of which one has the RDMA
device (A18), beside the interface of the VPC (A64), and the device plugin on every node (A1). No clock, no randomness.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Callable

from ansible_collections.rdma.k8s.plugins.module_utils.core.cluster_snapshot import (
    ApiServer,
    ClusterNode,
    ClusterSnapshot,
    DaemonSet,
    DriverContainer,
    DriverPod,
    NetworkRange,
)
from ansible_collections.rdma.k8s.plugins.module_utils.core.snapshot import (
    DEFAULT_SUBSETS,
    Arp,
    Collector,
    GidGroup,
    HostInfo,
    Imds,
    Link,
    NodeSnapshot,
    Oca,
    PciFunction,
    RdmaDevice,
    RdmaPort,
    RdmaSystem,
    Route,
)
from ansible_collections.rdma.k8s.tests.support import fleet

CLUSTER = "lingjun"
"""Name of the cluster, and of its row."""
BONDS = 4
POOL = "np0000000000000000000000000000001"
PLUGIN_IMAGE = "acs/k8s-rdma-sriov-dev-plugin:v1.1.5"
EARLIER = "2026-03-01T08:00:00Z"

EditCluster = Callable[[ClusterSnapshot], ClusterSnapshot]


def name_of(number: int) -> str:
    """``e01-cn-a1`` (A16)."""
    return "e01-cn-a%d" % (number + 1)


def node(number: int = 0, name: str = "", *, ipv6: bool = True) -> NodeSnapshot:
    """A healthy Lingjun node.

    :param ipv6: whether its compute network is IPv6 (A9); its bonds have IPv4 addresses else.
    """
    called = name or name_of(number)
    links = [
        Link(
            "eth0",
            mac="00:16:3e:00:00:%02x" % number,
            mtu=1500,
            state="up",
            pci="0000:00:05.0",
            addresses=("10.20.0.%d/24" % (10 + number),),
            arp=Arp("0", "0", "0", "0"),
        )
    ]
    devices = []
    for bond in range(BONDS):
        links += _bond(number, bond, ipv6)
        devices.append(_device(number, bond, ipv6))
    return NodeSnapshot(
        name=called,
        collected_at=fleet.RECORDED_AT,
        subsets=DEFAULT_SUBSETS,
        collector=Collector("0.1.0", "3.9.18", "0.9.7", 61),
        host=HostInfo(
            hostname=called,
            kernel="5.10.134-17.3.al8.x86_64",
            architecture="x86_64",
            os="alinux",
            os_version="3",
            boot_id="0f6c1a52-7d3e-4c1b-9e0a-%012x" % number,
            boot_time=fleet.BOOT_TIME,
            cgroup="v2",
        ),
        rdma=RdmaSystem("shared", "Y", True),
        module_options=(),
        modules=dict.fromkeys(
            ("ib_core", "ib_umad", "ib_uverbs", "mlx5_core", "mlx5_ib", "nvidia", "rdma_cm", "rdma_ucm"),
            "live",
        ),
        char_devices=("rdma_cm",),
        pci=tuple(
            [PciFunction("0000:00:05.0", "1af4:1000", "0200", "virtio-pci", 0)]
            + [
                PciFunction(_place(bond, port), "15b3:101d", "0200", "mlx5_core", bond // 2)
                for bond in range(BONDS)
                for port in (0, 1)
            ]
        ),
        links=tuple(links),
        arp_all=Arp("0", "0", "0", "0"),
        devices=tuple(devices),
        routes=(
            Route("default", "eth0", via="10.20.0.1"),
            Route("10.20.0.0/24", "eth0", src="10.20.0.%d" % (10 + number)),
        ),
        rules=(),
        namespaces=(),
        imds=Imds(),
        oca=Oca("absent", "", "", "", "", {}),
        firewall=(),
    )


def _place(bond: int, port: int) -> str:
    return "0000:%02x:00.%d" % (0x18 + 0x20 * bond, port)


def _address(number: int, bond: int, ipv6: bool) -> str:
    return "fd20:%x::%x" % (bond + 1, 16 + number) if ipv6 else "10.%d.0.%d" % (64 + bond, 16 + number)


def _link_local(number: int, bond: int) -> str:
    return "fe80::ba3f:d2ff:fe%02x:%x" % (number, bond + 1)


def _bond(number: int, bond: int, ipv6: bool) -> list[Link]:
    mac = "b8:3f:d2:%02x:00:%02x" % (number, bond)
    addresses = (
        "%s/%d" % (_address(number, bond, ipv6), 64 if ipv6 else 24),
        _link_local(number, bond) + "/64",
    )
    ports = [
        Link(
            "reth%d" % (2 * bond + port),
            mac=mac,
            mtu=8500,
            state="up",
            master="bond%d" % bond,
            pci=_place(bond, port),
            arp=Arp("0", "0", "0", "0"),
        )
        for port in (0, 1)
    ]
    return [Link("bond%d" % bond, "bond", 1, mac, 8500, "up", addresses=addresses), *ports]


def _device(number: int, bond: int, ipv6: bool) -> RdmaDevice:
    return RdmaDevice(
        name="mlx5_bond_%d" % bond,
        pci=_place(bond, 0),
        guid="b83fd203%04x%04x" % (number, bond),
        firmware="22.39.2048",
        board="MT_0000000359",
        uverbs="uverbs%d" % bond,
        ports=(
            RdmaPort(
                1,
                "ACTIVE",
                "LinkUp",
                "Ethernet",
                "400 Gb/sec (4X NDR)",
                4096,
                "reth%d" % (2 * bond),
                0,
                (
                    GidGroup(_link_local(number, bond), ((0, "v1"), (1, "v2"))),
                    GidGroup(_address(number, bond, ipv6), ((2, "v1"), (3, "v2"))),
                ),
            ),
        ),
    )


# The cluster


def cluster_node(number: int = 0, name: str = "") -> ClusterNode:
    """A Lingjun node as the API tells it (A2, A11, A13, A14)."""
    called = name or name_of(number)
    return ClusterNode(
        name=called,
        uid="00000000-0000-4000-8000-%012x" % number,
        created=EARLIER,
        labels={
            "alibabacloud.com/lingjun-worker": "true",
            "alibabacloud.com/lingjun-hpnzone": "A1",
            "alibabacloud.com/lingjun-zoneid": "cn-z",
            "alibabacloud.com/lingjun-machine-type": "efg1.type",
            "alibabacloud.com/nodepool-id": POOL,
            "k8s.aliyun.com/exclusive-mode-eni-type": "eniOnly",
            "kubernetes.io/hostname": called,
            "service.alibabacloud.com/exclude-node": "true",
        },
        taints=("node-role.alibabacloud.com/lingjun:NoSchedule",),
        addresses=("InternalIP 10.20.0.%d" % (10 + number), "Hostname %s" % called),
        provider_id=called,
        architecture="amd64",
        os="Alibaba Cloud Linux 3",
        kernel="5.10.134-17.3.al8.x86_64",
        runtime="containerd://1.6.36",
        kubelet="v1.35.1-aliyun.1",
        boot_id="0f6c1a52-7d3e-4c1b-9e0a-%012x" % number,
        conditions={"Ready": "True"},
        ready_since=EARLIER,
        capacity={"nvidia.com/gpu": "8", "rdma/hca": "1k"},
        allocatable={"nvidia.com/gpu": "8", "rdma/hca": "1k"},
    )


def other_node(name: str = "cn-z.10.20.0.200") -> ClusterNode:
    """A node for the components of the system (A10)."""
    return replace(
        cluster_node(200, name),
        labels={"kubernetes.io/hostname": name},
        taints=(),
        capacity={},
        allocatable={},
    )


def plugin_pod(node_name: str) -> DriverPod:
    """The pod of the plugin on a node."""
    return DriverPod("ack-rdma-dp-ds-" + node_name, node_name, "Running", True, EARLIER, digest="sha256:0")


def plugin(*nodes: str) -> DaemonSet:
    """The DaemonSet of the plugin, ready on these nodes."""
    count = len(nodes)
    return DaemonSet(
        namespace="kube-system",
        name="ack-rdma-dp-ds",
        role="device-plugin",
        uid="00000000-0000-4000-9000-000000000001",
        generation=1,
        observed_generation=1,
        desired=count,
        ready=count,
        updated=count,
        available=count,
        scheduled=count,
        misscheduled=0,
        host_network=True,
        tolerations=("*",),
        containers=(DriverContainer("plugin", PLUGIN_IMAGE, privileged=True),),
        pods=tuple([plugin_pod(name) for name in nodes]),
    )


def cluster(*names: str) -> ClusterSnapshot:
    """A healthy cluster with Lingjun nodes of these names, and one node beside them."""
    wanted = names or tuple([name_of(number) for number in range(3)])
    return ClusterSnapshot(
        name=CLUSTER,
        kind="ClusterSnapshot",
        collected_at=fleet.RECORDED_AT,
        subsets=("nodes", "dra", "drivers", "networks"),
        server=ApiServer("v1.35.1-aliyun.1", "linux/amd64", ("apps/v1/daemonsets",)),
        nodes=(*[cluster_node(number, name) for number, name in enumerate(wanted)], other_node()),
        daemonsets=(plugin(*wanted),),
        service_cidrs=(NetworkRange("172.16.0.0/16", "ServiceCIDR kubernetes"),),
    )


# Edits


def edit_node(name: str, **changes: Any) -> EditCluster:
    """A node of the cluster with other values."""

    def edit(found: ClusterSnapshot) -> ClusterSnapshot:
        return replace(
            found,
            nodes=tuple(
                [replace(entry, **changes) if entry.name == name else entry for entry in found.nodes or ()]
            ),
        )

    return edit


def edit_amounts(name: str, capacity: str, allocatable: str, resource: str = "rdma/hca") -> EditCluster:
    """A node with other amounts of a resource; an empty text takes it away."""
    held = [{resource: value} if value else {} for value in (capacity, allocatable)]
    return edit_node(name, capacity=held[0], allocatable=held[1])


def edit_labels(name: str, **labels: str) -> EditCluster:
    """A node with some of its labels changed, by their last part; an empty text takes one away."""

    def edit(found: ClusterSnapshot) -> ClusterSnapshot:
        return replace(found, nodes=tuple([_relabelled(entry, name, labels) for entry in found.nodes or ()]))

    return edit


def _relabelled(entry: ClusterNode, name: str, labels: dict[str, str]) -> ClusterNode:
    if entry.name != name:
        return entry
    changed = {
        label: labels.get(label.rpartition("/")[2].replace("-", "_"), value)
        for label, value in entry.labels.items()
    }
    return replace(entry, labels={label: value for label, value in changed.items() if value})


def edit_plugin(**changes: Any) -> EditCluster:
    """The DaemonSet of the plugin with other values."""

    def edit(found: ClusterSnapshot) -> ClusterSnapshot:
        return replace(
            found,
            daemonsets=tuple(
                [
                    replace(entry, **changes) if entry.name == "ack-rdma-dp-ds" else entry
                    for entry in found.daemonsets or ()
                ]
            ),
        )

    return edit


def edit_pod(name: str, **changes: Any) -> EditCluster:
    """The plugin's pod on a node with other values."""

    def edit(found: ClusterSnapshot) -> ClusterSnapshot:
        entries = []
        for entry in found.daemonsets or ():
            pods = [replace(pod, **changes) if pod.node == name else pod for pod in entry.pods or ()]
            entries.append(replace(entry, pods=tuple(pods)))
        return replace(found, daemonsets=tuple(entries))

    return edit
