# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The explicit table of NICs and children, for nodes that OCA does not configure. Private to rdma.k8s.

What the derivation would have checked is lost for a NIC of the table: nobody compares the parent's address, the
position of the primary VNIC, OCA's mode and the layout of the host. What stays: the settings of the claim, one Ethernet
interface below the PCI device, the ARP policy, and the conflicts of the range.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Optional

from ..errors import RdmaError
from ..json_text import Reader
from ..net import Address, Prefix, find_prefix, quoted
from . import conflicts, profile
from .addressing import Child, routing
from .child_range import validate
from .constants import MAX_NICS, TABLE_BASE
from .nics import Device, arp_policy, guard_native_infiniband, nic_index_of_name

_PCI_ADDRESS = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
_INTERFACE = re.compile(r"[A-Za-z0-9_.-]{1,15}")
_HINT = (
    'Write {"rdma0": "10.208.13.19/12"}, or {"0000:0c:00.0": {"child": "10.208.13.19/12", "index": 0}}; for several '
    'nodes {"nodes": {"NODE": {...}}}.'
)
_TABLE = Reader("nic_table_malformed", "The table of NICs", _HINT)

LOST = ("parent address", "position of the primary VNIC", "address mode of OCA", "layout of the host")
"""What nobody checks for a NIC of the table."""


@dataclass(frozen=True)
class Entry:
    """A NIC of the table.

    :param nic: the name of the interface, or the PCI address in lower case.
    :param child: with the length of the child range (F14).
    :param index: decides the routing table (F7).
    """

    nic: str
    child: Prefix
    index: int


def parse(text: str, child_range: Prefix, node_name: str = "") -> tuple[Entry, ...]:
    """The table of one node.

    :param text: JSON: NIC to child, or ``nodes`` with such an object for each node.
    :param node_name: whose part counts where there is ``nodes``; a node that is not there has no table.
    :raises RdmaError: ``nic_table_malformed``, ``nic_table_child``, ``nic_table_duplicate``
    """
    document = _TABLE.members(_TABLE.json(text), "the document")
    where = ""
    if set(document) == {"nodes"}:
        nodes = _TABLE.members(document["nodes"], "nodes")
        where = "nodes.%s." % node_name
        document = _TABLE.members(nodes.get(node_name), where[:-1])
    entries = tuple(
        [_entry(nic, value, where, child_range, at) for at, (nic, value) in enumerate(document.items())]
    )
    _refuse_duplicates(entries)
    return entries


def _entry(nic: str, value: Any, where: str, child_range: Prefix, position: int) -> Entry:
    key = nic.lower() if _PCI_ADDRESS.fullmatch(nic.lower()) else nic
    if not (_PCI_ADDRESS.fullmatch(key) or _INTERFACE.fullmatch(key)):
        raise _TABLE.wrong(where + nic, "named by an interface or a PCI address", nic)
    members: Mapping[str, Any] = (
        {"child": value} if isinstance(value, str) else _TABLE.members(value, where + nic)
    )
    unknown = sorted(set(members) - {"child", "index"})
    if unknown:
        raise _TABLE.wrong(where + nic, "an object of child and index", unknown[0])
    child = _child(_TABLE.text(members.get("child"), where + nic + ".child"), nic, child_range)
    index = _TABLE.integer(members.get("index"), where + nic + ".index")
    if index is None:
        named = nic_index_of_name(nic)
        index = position if named is None else named
    if index not in range(MAX_NICS):
        raise _TABLE.wrong(where + nic + ".index", "from 0 to %d" % (MAX_NICS - 1), index)
    return Entry(key, child, index)


def _child(text: str, nic: str, child_range: Prefix) -> Prefix:
    prefix = find_prefix(text)
    if prefix is None or prefix.version != 4 or prefix.masked() != child_range:
        raise RdmaError(
            "nic_table_child",
            "The table of NICs gives %s the child %s, expected an address of the child range %s with its length."
            % (nic, quoted(text), child_range),
            hint="Give every child the range of the option oke.rdma-child-ipv4-cidr.",
            nic=nic,
            child=text,
            child_range=str(child_range),
        )
    return prefix


def _refuse_duplicates(entries: tuple[Entry, ...]) -> None:
    seen: set[tuple[str, str]] = set()
    for entry in entries:
        for what, value in (("child", str(entry.child)), ("index", str(entry.index)), ("NIC", entry.nic)):
            if (what, value) in seen:
                raise RdmaError(
                    "nic_table_duplicate",
                    "The table of NICs has the %s %s twice." % (what, value),
                    hint="Each NIC needs its own child, and its own index, which decides its routing table.",
                    what=what,
                    value=value,
                )
            seen.add((what, value))


def resolve_listed(
    claim: Optional[profile.Claim], device: Device, node: profile.Node, entry: Entry
) -> profile.Resolution:
    """Resolve a claim for a NIC of the table: the steps of F31 that need neither metadata nor OCA.

    :raises RdmaError: of the first step that fails
    """
    claim = profile.require_profile(claim)
    guard_native_infiniband(device, node.netns_mode)
    profile.check_settings(claim)
    interface = profile.ethernet_interface(device, node.interfaces)
    arp = arp_policy(
        claim.arp_ignore, claim.arp_announce, interface.arp_ignore, interface.arp_announce, interface.name
    )
    children = validate(node.child_range)
    with profile.errors_name(interface):
        conflicts.check(children, node.vnics, node.host_routes, node.service_host)
    child = Address(4, entry.child.value)
    parent = (interface.ipv4_addresses or (child,))[0]
    made = Child(parent, child, children.length, 0, 0, 0, TABLE_BASE + entry.index)
    routes = None if claim.owns_routing else routing(child, children, entry.index)
    return profile.Resolution(profile.NetworkConfig(made, arp, routes))
