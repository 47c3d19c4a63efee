# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The child of an RDMA NIC as the profile wants it, and what a namespace holds of it.

Private to rdma.k8s: it may change with any release.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Optional

from .. import nics as joined
from ..errors import RdmaError
from ..net import Prefix
from . import imds, nics as oke_nics
from .addressing import ChildRoute, ChildRule, Network
from .constants import PROFILE, SCOPE_LINK
from .nics import ArpPolicy
from .profile import Claim, Node, resolve
from .view import NodeView

MODE_L2, FLAG_BRIDGE = 0, 0  # F108
MAIN_TABLE = 254


@dataclass(frozen=True)
class ChildPlan:
    """What the profile gives one NIC (F38-F41, F111).

    :param nic: name of the parent on the host, and of the child in its namespace.
    :param mtu: that of the parent, ``device`` and ``port``: its RDMA port, empty when it has none.
    """

    nic: str
    index: int
    mtu: int
    parent: str
    address: Prefix
    arp: ArpPolicy
    route: ChildRoute
    rule: ChildRule
    device: str = ""
    port: int = 0


@dataclass(frozen=True)
class ChildState:
    """What a namespace holds of a child.

    :param mode: ``0`` is L2, ``flags``: ``0`` is bridge (F108).
    :param addresses: IPv4 addresses with their lengths; ``routes``: destination, source, scope of the unicast routes
        over the child in its table; ``rules``: priority and table of the rules for its address, in order.
    """

    mode: Optional[int]
    flags: Optional[int]
    mtu: int
    up: bool
    arp_ignore: str
    arp_announce: str
    addresses: tuple[str, ...] = ()
    routes: tuple[tuple[str, str, int], ...] = ()
    rules: tuple[tuple[int, int], ...] = ()


def plan(view: NodeView, name: str, child_range: Network, service_host: Optional[str] = None) -> ChildPlan:
    """The child of a NIC, by the same path as a claim takes in the driver (F31).

    :raises RdmaError: ``nic_missing``, what :func:`.profile.resolve` raises, ``fabric_ipv6`` (F4), or
        ``child_exclusive_netns`` (F85).
    """
    nic = next((nic for nic in view.all_nics if nic.link is not None and nic.link.name == name), None)
    if nic is None or nic.link is None:
        raise RdmaError(
            "nic_missing",
            "This node has no RDMA NIC %s; it has %s." % (name, ", ".join(names_of(view)) or "none"),
            hint="Give the name of the interface on the host.",
            interface=name,
        )
    snapshot = view.snapshot
    documents = snapshot.imds
    metadata, _errors = imds.read(
        *((None, None, None) if documents is None else (documents.host, documents.instance, documents.vnics))
    )
    node = Node(
        interfaces=view.interfaces,
        netns_mode=snapshot.rdma.netns_parameter,
        metadata=metadata,
        oca=view.oca_config,
        child_range=child_range,
        vnics=None if documents is None else documents.vnics,
        host_routes=snapshot.routes,
        service_host=service_host,
    )
    found = resolve(Claim(profile=PROFILE), _device(view, nic), node).network_config
    if found is None or found.routing is None:
        raise RdmaError(
            "fabric_ipv6",
            "%s: the fabric is IPv6, where the profile gives no IPv4 child." % name,
            hint="Children on an IPv6 fabric configure themselves by SLAAC; this module does not make them.",
            interface=name,
        )
    if snapshot.rdma.netns_mode == oke_nics.EXCLUSIVE:
        raise RdmaError(
            "child_exclusive_netns",
            "%s: the RDMA subsystem is in exclusive namespace mode, expected shared: a child could not use it."
            % name,
            hint="Set shared mode first (module netns_mode); the driver refuses every claim until then.",
            interface=name,
        )
    return ChildPlan(
        nic=name,
        index=view.index_of(nic),
        mtu=nic.link.mtu or 0,
        parent=str(found.child.parent),
        address=found.routing.address,
        arp=found.arp,
        route=found.routing.route,
        rule=found.routing.rule,
        device=nic.device.name if nic.device is not None else "",
        port=nic.port.port if nic.port is not None else 0,
    )


def names_of(view: NodeView) -> list[str]:
    """The names of the RDMA NICs with an Ethernet interface, in the order of their indexes."""
    return [nic.name for nic in view.ethernet_nics]


def _device(view: NodeView, nic: joined.Nic) -> oke_nics.Device:
    """The PCI device of a NIC as the driver would offer it."""
    snapshot = view.snapshot
    below = [link.name for link in snapshot.links or () if nic.pci and link.pci == nic.pci and not link.kind]
    devices = [
        oke_nics.RdmaDevice(device.name, tuple([port.link_layer or "" for port in device.ports]))
        for device in snapshot.devices or ()
        if nic.pci and device.pci == nic.pci
    ]
    mac = nic.link.mac if nic.link is not None else ""
    return oke_nics.Device(nic.pci, mac, tuple(below), tuple(devices))


def needs_new(found: ChildState) -> bool:
    """Whether a child must be made again: mode and flags belong to all children of a parent and are not changed."""
    return found.mode != MODE_L2 or found.flags not in (None, FLAG_BRIDGE)


def other_addresses(wanted: ChildPlan, found: ChildState) -> list[str]:
    """IPv4 addresses of the child that are not the one it must have, whatever their length."""
    own = str(wanted.address).partition("/")[0]
    return [text for text in found.addresses if text.partition("/")[0] != own]


def differences(wanted: ChildPlan, found: ChildState) -> dict[str, tuple[Any, Any]]:
    """What is not as the profile wants it: name of the field to found and wanted."""
    route = (str(wanted.route.destination), str(wanted.route.source), wanted.route.scope)
    rule = (wanted.rule.priority, wanted.rule.table)
    compared = {
        "mode": (found.mode, MODE_L2),
        "mtu": (found.mtu, wanted.mtu),
        "arp_ignore": (found.arp_ignore, str(wanted.arp.arp_ignore)),
        "arp_announce": (found.arp_announce, str(wanted.arp.arp_announce)),
        "address": (list(found.addresses), [str(wanted.address)]),
        "up": (found.up, True),
        "route": (_texts(found.routes), _texts([route])),
        "rule": (_rules(found.rules), _rules([rule])),
    }
    if found.flags not in (None, FLAG_BRIDGE):
        compared["flags"] = (found.flags, FLAG_BRIDGE)
    return {name: pair for name, pair in compared.items() if pair[0] != pair[1]}


def _texts(routes: Iterable[tuple[str, str, int]]) -> list[str]:
    return [
        "%s src %s scope %s" % (destination, source, "link" if scope == SCOPE_LINK else scope)
        for destination, source, scope in routes
    ]


def _rules(rules: Iterable[tuple[int, int]]) -> list[str]:
    return ["%d: lookup %d" % rule for rule in rules]
