# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a node and the cluster's own network must be before rails are made. Private to rdma.k8s.

It may change with any release. Nodes tell by their snapshots, long before the operator does.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Optional

from ..cluster_snapshot import ClusterNode, DaemonSet
from ..net import find_address, find_prefix
from ..nics import INFINIBAND as IB_LAYER
from ..snapshot import NodeSnapshot, PciFunction, RdmaPort
from .issue import Issue, error, warning
from .names import ETHERNET, EXCLUSIVE, INFINIBAND
from .rails import Rail

CALICO = "calico-node"
PINNED = ("IP_AUTODETECTION_METHOD", "IP6_AUTODETECTION_METHOD")
"""Variables that say how Calico finds the address of a node (S40)."""
_EXCLUSIVE_FROM, _IB_FROM = (5, 3), (5, 6)
_ACTIVE = "ACTIVE"


def of_rail(rail: Rail, snapshot: NodeSnapshot) -> Iterator[Issue]:
    """Whether a node has the NIC of a rail, and of that kind (S36, S43, S75, S242)."""
    links = {link.name: link for link in snapshot.links or ()}
    if snapshot.pci is None or (not rail.pci and snapshot.links is None):
        return
    place = rail.pci or (links[rail.name].pci if rail.name in links else "")
    at = "rail %d" % rail.number
    functions = {function.address: function for function in snapshot.pci}
    function = functions.get(place)
    if function is None:
        yield error("rail-nic-missing", at, "the node has no NIC %s" % (rail.pci or rail.name))
        return
    ports = [port for device in snapshot.devices or () if device.pci == place for port in device.ports]
    yield from _layer(rail, function, ports, at)
    yield from _functions(rail, function, at)
    for link in links.values():
        above = rail.mtu is not None and link.mtu is not None and rail.mtu > link.mtu
        if link.pci == place and not link.kind and rail.link_type == ETHERNET and above:
            message = "%s has the MTU %s, and its virtual functions cannot have %s" % (
                link.name,
                link.mtu,
                rail.mtu,
            )
            yield error("mtu-exceeds-pf", at, message)


def _layer(rail: Rail, function: PciFunction, ports: Sequence[RdmaPort], at: str) -> Iterator[Issue]:
    layers = {INFINIBAND if port.link_layer == IB_LAYER else ETHERNET for port in ports if port.link_layer}
    if function.pci_class in ("0207", "0200"):
        layers.add(INFINIBAND if function.pci_class == "0207" else ETHERNET)
    if layers and layers != {rail.link_type}:
        message = "%s is %s by class and ports, and the rail is %s" % (
            function.address,
            " and ".join(sorted(layers)),
            rail.link_type,
        )
        yield error("link-layer-conflict", at, message)
    if rail.link_type == INFINIBAND:
        for port in ports:
            if port.sm_lid == 0 or port.state == "INIT":
                message = "port %d is %s and no subnet manager has taken it" % (
                    port.port,
                    port.state or "unknown",
                )
                yield error("subnet-manager-missing", at, message)  # S32


def _functions(rail: Rail, function: PciFunction, at: str) -> Iterator[Issue]:
    if function.vf_of:
        yield error("rail-nic-is-vf", at, "%s is a virtual function" % function.address)
    elif function.total_vfs == 0:
        message = (
            "%s can have no virtual functions: SR-IOV is off in firmware or BIOS, or this is a virtual machine"
            % function.address
        )
        yield warning("sriov-off", at, message)  # S43
    elif function.total_vfs < rail.vfs:
        message = "the firmware is set to %d virtual functions: %d need another setting and a reboot" % (
            function.total_vfs,
            rail.vfs,
        )
        yield warning("numvfs-needs-firmware", at, message)


def of_node(rails: Sequence[Rail], snapshot: NodeSnapshot, netns_mode: str) -> Iterator[Issue]:
    """Whether the kernel of a node can do what is wanted (S5, S6)."""
    version = _version(snapshot.host.kernel)
    if netns_mode != EXCLUSIVE or version is None:
        return
    if version < _EXCLUSIVE_FROM and snapshot.rdma.netns_mode is None:
        message = (
            "kernel %s has no exclusive mode: 5.3 or newer is needed, or the driver of OFED 4.7 or newer"
            % (snapshot.host.kernel)
        )
        yield error("exclusive-unsupported", "host.kernel", message)
    elif version < _IB_FROM and any(rail.link_type == INFINIBAND for rail in rails):
        message = (
            "kernel %s cannot isolate devices of InfiniBand, which needs 5.6 or newer" % snapshot.host.kernel
        )
        yield warning("ib-isolation-unsupported", "host.kernel", message)


def _version(kernel: str) -> Optional[tuple[int, int]]:
    found = re.match(r"([0-9]{1,4})\.([0-9]{1,4})", kernel)
    return None if found is None else (int(found[1]), int(found[2]))


def of_calico(daemonsets: Iterable[DaemonSet]) -> Iterator[Issue]:
    """PFs with addresses of their own may be taken for the address of the node, unless Calico is told (S40)."""
    for daemonset in daemonsets:
        if daemonset.name != CALICO:
            continue
        given = {name for container in daemonset.containers for name in container.environment}
        lost = [name for name in PINNED if name not in given]
        if lost:
            message = (
                "%s is not set, so an address of a rail may be taken for that of a node: kubernetes-internal-ip"
                % (" and ".join(lost))
            )
            yield warning("calico-not-pinned", "env", message)


def of_addresses(rails: Sequence[Rail], node: ClusterNode) -> Iterator[Issue]:
    """The address of a node must not be one of a rail (S40)."""
    for entry in node.addresses:
        kind, _blank, value = entry.partition(" ")
        address = find_address(value)
        for rail in rails:
            subnet = find_prefix(rail.subnet)
            if address is not None and subnet is not None and subnet.masked().contains(address):
                message = (
                    "%s %s is in the subnet of rail %d: the kubelet took a rail for the management network"
                    % (
                        kind,
                        value,
                        rail.number,
                    )
                )
                yield error("internal-ip-on-rail", "status.addresses", message)
