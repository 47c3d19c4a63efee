# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which interfaces are RDMA NICs, and what the driver reads of them (F73-F86, F100).

Private to rdma.k8s: it may change with any release.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Optional

from ..errors import RdmaError
from ..net import Address, Prefix, find_destination, quoted
from ..snapshot import Link
from ..text import int32, trim
from .constants import ARPHRD_ETHERNET, DEFAULT_OCA_NETWORK

SHARED, EXCLUSIVE = "shared", "exclusive"

ARP_IGNORE_VALUES = (0, 1, 2, 3, 8)  # F78
ARP_ANNOUNCE_VALUES = (0, 1, 2)  # F78

_NAME = re.compile(r"rdma0*([0-9]{1,10})")
_DNS_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


@dataclass(frozen=True)
class Interface:
    """A network interface of the host.

    :param arphrd: the hardware type, ``None``: not readable.
    :param addresses: of both families, in the order of the kernel.
    :param arp_ignore: the text of the sysctl file, ``None``: no such file; ``arp_announce`` likewise.
    """

    name: str
    arphrd: Optional[int] = ARPHRD_ETHERNET
    addresses: tuple[Address, ...] = ()
    arp_ignore: Optional[str] = None
    arp_announce: Optional[str] = None

    @property
    def is_ethernet(self) -> bool:
        """ARPHRD type 1 (F73)."""
        return self.arphrd == ARPHRD_ETHERNET

    @property
    def ipv4_addresses(self) -> tuple[Address, ...]:
        """The addresses that count: IPv4 and not link-local (F35, F75)."""
        return tuple([entry for entry in self.addresses if entry.version == 4 and not entry.is_link_local])

    def oca_address(self, oca_network: Prefix) -> Optional[Address]:
        """The first address inside the OCA network, wherever it stands (F34, F36)."""
        for address in self.ipv4_addresses:
            if oca_network.contains(address):
                return address
        return None


@dataclass(frozen=True)
class RdmaDevice:
    """An RDMA device below a PCI device: its name and the text of the ``link_layer`` file of each port."""

    name: str
    link_layers: tuple[str, ...] = ()


@dataclass(frozen=True)
class Device:
    """A PCI device as the driver offers it.

    :param mac: empty when no interface is attached.
    :param net: names of the interfaces below the PCI device, ``None``: the directory is not readable.
    """

    pci_address: str
    mac: str = ""
    net: Optional[tuple[str, ...]] = ()
    infiniband: tuple[RdmaDevice, ...] = ()


@dataclass(frozen=True)
class Identification:
    """The RDMA NICs of a node in text order (F139); ``address_fallback``: by address, since none has the name."""

    address_fallback: bool
    rdma_nics: tuple[str, ...]


@dataclass(frozen=True)
class ArpPolicy:
    """The two ARP settings of a child."""

    arp_ignore: int
    arp_announce: int


def addresses_of(texts: Iterable[Any]) -> tuple[Address, ...]:
    """Addresses of texts with or without a length. A text that is no address stands for none."""
    found = [find_destination(text) for text in texts if text != "default"]
    return tuple([Address(entry.version, entry.value) for entry in found if entry is not None])


def interfaces_of(links: Iterable[Link], only_ipv4: bool = False) -> dict[str, Interface]:
    """The interfaces of a snapshot, by name.

    :param only_ipv4: leave out the IPv6 addresses, which no rule looks at (F75): a third of the time for a fleet.
    """
    return {link.name: _interface(link, only_ipv4) for link in links}


def _interface(link: Link, only_ipv4: bool) -> Interface:
    ignore, announce = (link.arp.ignore, link.arp.announce) if link.arp else (None, None)
    texts = [text for text in link.addresses if ":" not in text] if only_ipv4 else link.addresses
    return Interface(link.name, link.arphrd, addresses_of(texts), ignore, announce)


@lru_cache(maxsize=4096)
def nic_index_of_name(name: str) -> Optional[int]:
    """The index in a name ``rdma<digits>`` below 2^31, ``None`` for every other name (F74)."""
    found = _NAME.fullmatch(name)
    return None if found is None else int32(found[1])


def identify(
    interfaces: Mapping[str, Interface], oca_network: Prefix = DEFAULT_OCA_NETWORK
) -> Identification:
    """The RDMA NICs among the interfaces of a node: by name, or by address on a node without such names (F73-F76)."""
    ethernet = {name: entry for name, entry in interfaces.items() if entry.is_ethernet}
    named = [name for name in ethernet if nic_index_of_name(name) is not None]
    if named:
        return Identification(False, tuple(sorted(named)))
    held = [name for name, entry in ethernet.items() if entry.oca_address(oca_network) is not None]
    return Identification(True, tuple(sorted(held)))


def netns_mode(content: Optional[str]) -> str:
    """The namespace mode of the ``netns_mode`` parameter file; ``None``: no such file (F83, F145)."""
    return EXCLUSIVE if content is not None and trim(content) in ("N", "0") else SHARED


def native_infiniband(device: Device) -> Optional[str]:
    """The first RDMA device, in text order, with a port whose link layer is InfiniBand (F81)."""
    if not device.pci_address:
        return None
    for entry in sorted(device.infiniband, key=lambda entry: entry.name):
        if any(trim(layer) == "InfiniBand" for layer in entry.link_layers):
            return entry.name
    return None


def guard_native_infiniband(device: Device, mode_text: Optional[str]) -> Optional[str]:
    """The name of a native InfiniBand device that a pod can get, ``None`` for another device (F82).

    :param mode_text: see :func:`netns_mode`.
    :raises RdmaError: ``ib_interface_attached``, ``ib_exclusive_netns``
    """
    name = native_infiniband(device)
    if name is None:
        return None
    if device.mac:
        raise RdmaError(
            "ib_interface_attached",
            "%s is native InfiniBand with an IPoIB interface attached, which would move into the pod." % name,
            hint="Start the driver with --move-ib-interfaces=false.",
            rdma_device=name,
        )
    if netns_mode(mode_text) == EXCLUSIVE:
        raise RdmaError(
            "ib_exclusive_netns",
            "%s is native InfiniBand and the RDMA subsystem is in exclusive namespace mode, expected shared."
            % name,
            hint="Load ib_core with netns_mode=1 (shared mode) and restart the driver.",
            rdma_device=name,
        )
    return name


def arp_policy(
    claim_ignore: Optional[int],
    claim_announce: Optional[int],
    sysctl_ignore: Optional[str],
    sysctl_announce: Optional[str],
    interface: str = "",
) -> ArpPolicy:
    """The ARP settings of a child: the claim's, else those of the parent on the host (F77, F78).

    :param sysctl_ignore: the text of the host file, ``None``: no such file.
    :param interface: the parent, for the message.
    :raises RdmaError: ``arp_parse_error``, ``arp_unsupported_value`` (details: ``setting``, ``value``), ``arp_missing``
        (details: ``fields``)
    """
    ignore = _arp_value("arp_ignore", claim_ignore, sysctl_ignore, ARP_IGNORE_VALUES, interface)
    announce = _arp_value("arp_announce", claim_announce, sysctl_announce, ARP_ANNOUNCE_VALUES, interface)
    if ignore is None or announce is None:
        fields = [
            field
            for field, value in (("interface.arpIgnore", ignore), ("interface.arpAnnounce", announce))
            if value is None
        ]
        raise RdmaError(
            "arp_missing",
            "Neither the claim nor the host%s gives %s." % (_of(interface), " and ".join(fields)),
            hint="Set %s in the claim, or the ARP settings of the NIC on the host." % " and ".join(fields),
            interface=interface,
            fields=fields,
        )
    return ArpPolicy(ignore, announce)


def _arp_value(
    setting: str, claimed: Optional[int], content: Optional[str], allowed: tuple[int, ...], interface: str
) -> Optional[int]:
    if claimed is not None or content is None:
        return claimed
    value = int32(trim(content))
    if value is None:
        raise RdmaError(
            "arp_parse_error",
            "The host's %s%s is %s, expected an integer." % (setting, _of(interface), quoted(content)),
            hint="Set %s of the NIC on the host, or in the claim." % setting,
            interface=interface,
            setting=setting,
        )
    if value not in allowed:
        raise RdmaError(
            "arp_unsupported_value",
            "The host's %s%s is %d, expected one of %s."
            % (setting, _of(interface), value, ", ".join(map(str, allowed))),
            hint="Set %s of the NIC on the host, or in the claim; OCA sets arp_ignore 1 and arp_announce 2."
            % setting,
            interface=interface,
            setting=setting,
            value=value,
        )
    return value


def _of(interface: str) -> str:
    return " of " + interface if interface else ""


def device_name(pci_address: str = "", if_name: str = "") -> str:
    """The name of a device in a ResourceSlice (F100).

    :raises RdmaError: ``device_without_name`` when both are empty.
    """
    if pci_address:
        return "pci-" + pci_address.replace(":", "-").replace(".", "-")
    if not if_name:
        raise RdmaError(
            "device_without_name",
            "The device has neither a PCI address nor an interface name.",
            hint="Give one of the two.",
        )
    if _DNS_LABEL.fullmatch(if_name):
        return if_name
    encoded = base64.b32encode(if_name.encode("utf-8", "surrogatepass"))
    return "net-" + encoded.decode("ascii").rstrip("=").lower()
