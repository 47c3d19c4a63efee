# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Interfaces, RDMA ports and PCI functions of a node joined to NICs. Private to rdma.k8s: it may change any time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Optional

from .oke.nics import nic_index_of_name
from .snapshot import GidGroup, Link, NodeSnapshot, PciFunction, RdmaDevice, RdmaPort

ETHERNET = "Ethernet"
INFINIBAND = "InfiniBand"


@dataclass(frozen=True)
class Nic:
    """One interface with its RDMA port, or one of the two when the other is missing.

    ``ports`` holds every port that names the interface: more than one, or none, is a finding (NODE-013).
    """

    link: Optional[Link]
    ports: tuple[tuple[RdmaDevice, RdmaPort], ...] = ()
    function: Optional[PciFunction] = None

    @property
    def device(self) -> Optional[RdmaDevice]:
        return self.ports[0][0] if self.ports else None

    @property
    def port(self) -> Optional[RdmaPort]:
        return self.ports[0][1] if self.ports else None

    @property
    def name(self) -> str:
        """The interface's name, else ``device/port``."""
        if self.link is not None:
            return self.link.name
        return "%s/%d" % (self.ports[0][0].name, self.ports[0][1].port)

    @property
    def pci(self) -> str:
        """The PCI address, empty for a virtual NIC."""
        if self.link is not None and self.link.pci:
            return self.link.pci
        return self.ports[0][0].pci if self.ports else ""

    @property
    def link_layer(self) -> Optional[str]:
        return self.port.link_layer if self.port is not None else None


def join(snapshot: NodeSnapshot) -> tuple[Nic, ...]:
    """All NICs of a node that have an RDMA port or sit on a PCI function, in the order of the interfaces.

    A port belongs to the interface that RDMA netlink names for it. Only where it names none the PCI address decides,
    and only when one interface and one device sit on it (S11; NODE-013: by port, not by node GUID).
    """
    links = [link for link in snapshot.links or () if not link.kind]
    devices = snapshot.devices or ()
    functions = {function.address: function for function in snapshot.pci or ()}
    by_name: dict[str, list[tuple[RdmaDevice, RdmaPort]]] = {}
    orphans = []
    for device in devices:
        for port in device.ports:
            netdev = port.netdev or _netdev_by_pci(device, links, devices)
            if netdev:
                by_name.setdefault(netdev, []).append((device, port))
            else:
                orphans.append((device, port))
    nics = [
        Nic(link, tuple(by_name.pop(link.name, ())), functions.get(link.pci))
        for link in snapshot.links or ()
        if link.name in by_name or (not link.kind and (link.pci or link.name.startswith("rdma")))
    ]
    left = orphans + [pair for pairs in by_name.values() for pair in pairs]
    return tuple(nics + [Nic(None, (pair,), functions.get(pair[0].pci)) for pair in left])


def _netdev_by_pci(device: RdmaDevice, links: Iterable[Link], devices: Iterable[RdmaDevice]) -> str:
    if not device.pci or len(device.ports) != 1:
        return ""
    if len([other for other in devices if other.pci == device.pci]) != 1:
        return ""
    names = [link.name for link in links if link.pci == device.pci]
    return names[0] if len(names) == 1 else ""


def as_dict(nic: Nic) -> dict[str, Any]:
    """A NIC as plain data, with what a person asks for first on top; ``None`` where the node does not tell."""
    link, device, port, function = nic.link, nic.device, nic.port, nic.function
    arp = link.arp if link is not None else None
    return {
        "name": nic.name,
        "device": device.name if device is not None else None,
        "port": port.port if port is not None else None,
        "state": port.state if port is not None else None,
        "phys_state": port.phys_state if port is not None else None,
        "link_layer": nic.link_layer,
        "rate": port.rate if port is not None else None,
        "active_mtu": port.active_mtu if port is not None else None,
        "gids": [_gid_dict(group) for group in port.gids or ()] if port is not None else [],
        "netdev": link.name if link is not None else None,
        "mac": link.mac if link is not None else None,
        "mtu": link.mtu if link is not None else None,
        "link_state": link.state if link is not None else None,
        "master": link.master or None if link is not None else None,
        "addresses": list(link.addresses) if link is not None else [],
        "arp_ignore": arp.ignore if arp is not None else None,
        "arp_announce": arp.announce if arp is not None else None,
        "arp_filter": arp.filter if arp is not None else None,
        "rp_filter": arp.rp_filter if arp is not None else None,
        "pci": nic.pci or None,
        "driver": function.driver or None if function is not None else None,
        "numa": function.numa if function is not None else None,
        "vf_of": function.vf_of or None if function is not None else None,
        "vfs": function.vfs if function is not None else None,
        "guid": device.guid or None if device is not None else None,
        "firmware": device.firmware or None if device is not None else None,
        "index": nic_index_of_name(nic.name),
    }


def _gid_dict(group: GidGroup) -> dict[str, Any]:
    entries = [{"index": index, "type": kind} for index, kind in group.entries]
    return {"address": group.address, "entries": entries, "netdev": group.netdev or None}
