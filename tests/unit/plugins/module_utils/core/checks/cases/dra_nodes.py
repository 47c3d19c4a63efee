# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Cases of the area DRA about what a node itself shows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Callable

from ansible_collections.rdma.k8s.plugins.module_utils.core.cluster_snapshot import (
    AllocatedDevice,
    ClusterSnapshot,
)
from ansible_collections.rdma.k8s.plugins.module_utils.core.snapshot import NodeSnapshot
from ansible_collections.rdma.k8s.tests.support import cluster_fleet as api, fleet
from ansible_collections.rdma.k8s.tests.support.cases import GB200_IB, GB200_V3, SICK

from .dra import case, no_driver, other_name, unread

NIC, PCI = "rdma3", "0000:2a:00.1"
DEVICE = "pci-0000-2a-00-1"
NODE = "10.140.77.19"


def runtime(nri: Any) -> Callable[[NodeSnapshot], NodeSnapshot]:
    return lambda node: replace(node, host=replace(node.host, nri=nri))


def old_runtime(cluster: ClusterSnapshot) -> ClusterSnapshot:
    return api.edit_node(cluster, runtime="containerd://1.7.27")


def away(node: NodeSnapshot) -> NodeSnapshot:
    """Interface and RDMA device are in another namespace, as in exclusive mode; the PCI function stays."""
    function = next(entry for entry in node.pci or () if entry.address == PCI)
    gone = fleet.drop_nic(node, NIC)
    source = next(link.addresses[0].partition("/")[0] for link in node.links or () if link.name == NIC)
    return replace(
        gone,
        pci=tuple(sorted([*(gone.pci or ()), function], key=lambda entry: entry.address)),
        rules=tuple([rule for rule in node.rules or () if rule.src != source]),
    )


def without_interface(node: NodeSnapshot) -> NodeSnapshot:
    """In shared mode the RDMA device is still seen, and names no interface."""
    gone = away(node)
    devices = [
        replace(device, ports=tuple([replace(port, netdev="") for port in device.ports]))
        if device.pci == PCI
        else device
        for device in node.devices or ()
    ]
    return replace(gone, devices=tuple(devices))


def without_device(node: NodeSnapshot) -> NodeSnapshot:
    """DEV-02: the interface came back, its RDMA device did not."""
    return replace(node, devices=tuple([device for device in node.devices or () if device.pci != PCI]))


def without_routes(node: NodeSnapshot) -> NodeSnapshot:
    """DEV-03: the interface came back with its address, and so with the route of the kernel alone."""
    back = away(node)
    return replace(
        node,
        rules=back.rules,
        routes=tuple([route for route in node.routes or () if route.dev != NIC or route.table == 254]),
    )


def without_address(node: NodeSnapshot) -> NodeSnapshot:
    """The interface came back bare."""
    bare = fleet.edit_link(without_routes(node), NIC, addresses=())
    return replace(bare, routes=tuple([route for route in bare.routes or () if route.dev != NIC]))


def for_a_virtual_machine(node: NodeSnapshot) -> NodeSnapshot:
    return fleet.edit_function(away(node), PCI, driver="vfio-pci")


def without_oca(node: NodeSnapshot) -> NodeSnapshot:
    """No NIC has a table of its own: nothing was lost by a claim."""
    return replace(
        node,
        rules=tuple([rule for rule in node.rules or () if rule.priority in (0, 32766, 32767)]),
        routes=tuple([route for route in node.routes or () if route.table == 254]),
    )


def no_interface_of_infiniband(node: NodeSnapshot) -> NodeSnapshot:
    """Native InfiniBand without IPoIB, so without interfaces."""
    names = fleet.names(node)
    devices = [
        replace(device, ports=tuple([replace(port, netdev="") for port in device.ports]))
        for device in node.devices or ()
        if device.ports[0].netdev in names
    ]
    links = tuple([link for link in node.links or () if link.name not in names])
    return replace(node, links=links, devices=tuple(devices))


def claimed(*devices: str, driver: str = "dra.net") -> Callable[[ClusterSnapshot], ClusterSnapshot]:
    """The claim of the node has these devices."""
    found = tuple([AllocatedDevice("nic", driver, NODE, name) for name in devices])
    return lambda cluster: api.edit_claim(cluster, devices=found, status=())


def named_otherwise(cluster: ClusterSnapshot) -> ClusterSnapshot:
    """A driver that names its devices by something else than their PCI address."""
    held = (cluster.slices or ())[0]
    devices = [
        replace(device, name="net-abc") if device.name == DEVICE else device for device in held.devices
    ]
    return claimed("net-abc")(api.edit_slice(cluster, devices=tuple(devices)))


GONE = "NODE-010 fail NODE-011 fail NODE-012 fail"

CASES = [
    # RDMA-DRA-014: F113, F116, F120
    case("RDMA-DRA-014", "pass", "A runtime listens on /var/run/nri/nri.sock", "NRI on", node=SICK),
    case(
        "RDMA-DRA-014",
        "fail",
        "Nothing listens on /var/run/nri/nri.sock; the runtime is containerd://1.7.27",
        "NRI off",
        old_runtime,
        node=SICK,
        edit_snapshot=runtime(False),
    ),
    case(
        "RDMA-DRA-014",
        "unknown",
        "The sockets of the node were not read; the runtime is cri-o://1.34.0",
        "sockets that were not read",
        node=SICK,
        edit_snapshot=runtime(None),
    ),
    case(
        "RDMA-DRA-014",
        "unknown",
        "No node of the cluster has the name sick",
        "a node of no cluster",
        other_name,
        node=SICK,
        edit_snapshot=runtime(False),
        also="DRA-009 unknown DRA-010 unknown DRA-017 unknown IMDS-007 unknown OCA-013 unknown OCA-014 unknown "
        "RANGE-014 unknown",
    ),
    case(
        "RDMA-DRA-014",
        "fail",
        "Nothing listens",
        "NRI off before DRANET is there",
        no_driver,
        node=SICK,
        edit_snapshot=runtime(False),
    ),
    # RDMA-DRA-017: DEV-02, DEV-03
    case("RDMA-DRA-017", "pass", "15 NICs that no claim has are whole", "all NICs back", node=SICK),
    case("RDMA-DRA-017", "pass", "8 NICs", "all NICs of an IPv6 fabric back", node=SICK, shape=GB200_V3),
    case("RDMA-DRA-017", "pass", "4 NICs", "native InfiniBand", node=SICK, shape=GB200_IB),
    case(
        "RDMA-DRA-017",
        "pass",
        "4 NICs",
        "native InfiniBand without interfaces",
        node=SICK,
        shape=GB200_IB,
        edit_snapshot=no_interface_of_infiniband,
    ),
    case(
        "RDMA-DRA-017",
        "fail",
        "rdma3: no claim has it, and it has no interface on the host",
        "a NIC that stayed in another namespace",
        node=SICK,
        edit_snapshot=away,
        also=GONE,
    ),
    case(
        "RDMA-DRA-017",
        "fail",
        "rdma3: no claim has it, and it has no interface on the host",
        "an interface that stayed in another namespace",
        node=SICK,
        edit_snapshot=without_interface,
        also="NODE-012 fail NODE-013 fail",
    ),
    case(
        "RDMA-DRA-017",
        "fail",
        "rdma3: no claim has it, and it has no RDMA device, as other NICs of the node have",
        "an RDMA device that stayed in another namespace",
        node=SICK,
        edit_snapshot=without_device,
        also="NODE-010 fail NODE-013 fail",
    ),
    case(
        "RDMA-DRA-017",
        "fail",
        "and it has no route in a table of its own and no rule for its address",
        "routes and rules that were not restored",
        node=SICK,
        edit_snapshot=without_routes,
    ),
    case(
        "RDMA-DRA-017",
        "fail",
        "and it has no address and no route in a table of its own and no rule for its address",
        "a NIC that came back bare",
        node=SICK,
        edit_snapshot=without_address,
        also="OCA-012 fail OCA-015 unknown",
    ),
    case(
        "RDMA-DRA-017",
        "pass",
        "15 NICs",
        "a NIC in the pod of its claim",
        claimed(DEVICE),
        node=SICK,
        edit_snapshot=away,
        also=GONE,
    ),
    case(
        "RDMA-DRA-017",
        "pass",
        "15 NICs",
        "a NIC in the pod of its claim, with a name of its own",
        named_otherwise,
        node=SICK,
        edit_snapshot=away,
        also=GONE,
    ),
    case(
        "RDMA-DRA-017",
        "fail",
        "rdma3: no claim has it",
        "a NIC like one that another driver gave to a claim",
        claimed(DEVICE, driver="gpu.example.com"),
        node=SICK,
        edit_snapshot=away,
        also=GONE,
    ),
    case(
        "RDMA-DRA-017",
        "pass",
        "14 NICs",
        "a NIC of a virtual machine",
        node=SICK,
        edit_snapshot=for_a_virtual_machine,
        also=GONE,
    ),
    case(
        "RDMA-DRA-017",
        "pass",
        "15 NICs",
        "NICs without tables of their own",
        node=SICK,
        edit_snapshot=without_oca,
    ),
    case(
        "RDMA-DRA-017",
        "unknown",
        "Not readable: resourceclaims.resource.k8s.io",
        "claims that may not be read",
        unread("claims", "resourceclaims.resource.k8s.io"),
        node=SICK,
    ),
    case(
        "RDMA-DRA-017",
        "unknown",
        "Not readable: resourceslices.resource.k8s.io",
        "devices that may not be read",
        unread("slices", "resourceslices.resource.k8s.io"),
        node=SICK,
        also="DRA-009 unknown DRA-010 unknown IMDS-007 unknown RANGE-014 unknown",
    ),
    case("RDMA-DRA-017", "skip", "see RDMA-DRA-001", "NICs without DRANET", no_driver, node=SICK),
]
