# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the kernel tells of the node, read anew for every call."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Optional

from rdma_k8s.core.net import Address, find_address
from rdma_k8s.core.oke.conflicts import RouteTable
from rdma_k8s.core.oke.nics import Interface, RdmaDevice
from rdma_k8s.core.snapshot import ReadError, Route
from rdma_k8s.host import claim_netlink, kernel, raw_netlink, records
from rdma_k8s.host.files import Root

_BUS = "/sys/bus/pci/devices/"
_ARP = "/proc/sys/net/ipv4/conf/%s/%s"
_INET = 2
_TYPES = {1: "unicast", 2: "local", 3: "broadcast", 4: "anycast", 5: "multicast"}
_TYPES.update({6: "blackhole", 7: "unreachable", 8: "prohibit", 9: "throw"})


@dataclass(frozen=True)
class PciDevice:
    """What hangs below a PCI device. ``net``: names of interfaces, ``None``: the directory cannot be read (F33)."""

    net: Optional[tuple[str, ...]] = None
    infiniband: tuple[RdmaDevice, ...] = ()


@dataclass(frozen=True)
class Reading:
    """One look at the node.

    :param interfaces: Ethernet and InfiniBand interfaces; ARP settings only of those below the devices asked for.
    :param routes: IPv4 routes of all tables, ``None``: they could not be read.
    :param netns_mode: text of the parameter file, ``None``: no such file (F83).
    :param errors: what could not be read.
    """

    interfaces: dict[str, Interface] = field(default_factory=dict)
    routes: Optional[RouteTable] = None
    netns_mode: Optional[str] = None
    devices: dict[str, PciDevice] = field(default_factory=dict)
    errors: tuple[ReadError, ...] = ()


class NodeReader:
    """Reads the kernel of this network namespace, or a recorded tree."""

    def __init__(self, host_root: str = "/") -> None:
        self.host_root = host_root
        self._recorded: tuple[Any, Optional[records.RtnetlinkRecord]] = (None, None)

    def read(self, pci_addresses: Iterable[str] = ()) -> Reading:
        """Look at the node.

        :param pci_addresses: devices whose interfaces, RDMA devices and ARP settings are wanted.
        """
        root = Root(self.host_root)
        found, routes = self._netlink(root)
        interfaces = _interfaces(found)
        devices = {pci: _device(root, pci) for pci in pci_addresses if pci}
        for device in devices.values():
            for name in device.net or ():
                if name in interfaces:
                    interfaces[name] = _with_arp(root, interfaces[name])
        return Reading(
            interfaces,
            routes,
            root.read_place(root.path + kernel.PARAMETER, kernel.PARAMETER),
            devices,
            tuple(root.errors),
        )

    def _netlink(self, root: Root) -> tuple[records.RtnetlinkRecord, Optional[RouteTable]]:
        if records.is_recorded(root):
            recorded = self._load(root)
            return (
                recorded or records.RtnetlinkRecord(),
                None if recorded is None else _routes(recorded.routes),
            )
        routes = claim_netlink.routes(root)
        links, addresses = claim_netlink.links(root) or (), claim_netlink.addresses(root) or ()
        return records.RtnetlinkRecord(links, addresses), None if routes is None else _routes(routes)

    def _load(self, root: Root) -> Optional[records.RtnetlinkRecord]:
        """The answers of a recorded tree, parsed again when the file is another one."""
        status = os.stat(root.path + records.FILE)
        key = (status.st_ino, status.st_mtime_ns, status.st_size)
        if self._recorded[0] != key:
            document = records.load(root) or {}
            answer = records.part(root, document, "rtnetlink", raw_netlink.SOURCE, records.RtnetlinkRecord)
            self._recorded = (key, answer)
        return self._recorded[1]


def _interfaces(answers: records.RtnetlinkRecord) -> dict[str, Interface]:
    addresses: dict[int, list[Address]] = {}
    for entry in answers.addresses:
        if ":" not in entry.address:  # no rule looks at the others (F75)
            address = find_address(entry.address)
            if address is not None:
                addresses.setdefault(entry.link, []).append(address)
    return {
        link.name: Interface(link.name, link.arphrd, tuple(addresses.get(link.index, ())))
        for link in answers.links
    }


def _routes(answers: Iterable[records.RouteRecord]) -> RouteTable:
    return RouteTable(
        [
            Route(
                "%s/%d" % (entry.dst, entry.length) if entry.dst else "default",
                type=_TYPES.get(entry.type, "unicast"),
            )
            for entry in answers
            if entry.family == _INET
        ]
    )


def _device(root: Root, pci: str) -> PciDevice:
    names = root.entries(_BUS + pci + "/net")
    if names is None:
        # A virtual machine's NIC has its interface below the virtio device of the function.
        below = [name for name in root.entries(_BUS + pci) or () if name.startswith("virtio")]
        names = root.entries("%s%s/%s/net" % (_BUS, pci, below[0])) if len(below) == 1 else None
    rdma = []
    for name in root.entries(_BUS + pci + "/infiniband") or ():
        ports = "%s%s/infiniband/%s/ports" % (_BUS, pci, name)
        layers = [root.value("%s/%s/link_layer" % (ports, port)) or "" for port in root.entries(ports) or ()]
        rdma.append(RdmaDevice(name, tuple(layers)))
    return PciDevice(None if names is None else tuple(names), tuple(rdma))


def _with_arp(root: Root, interface: Interface) -> Interface:
    values = [
        root.read_place(root.path + _ARP % (interface.name, name), _ARP % (interface.name, name))
        for name in ("arp_ignore", "arp_announce")
    ]
    return replace(interface, arp_ignore=values[0], arp_announce=values[1])
