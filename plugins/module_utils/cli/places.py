# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The NICs of a fleet with what is derived for them, as the checks derive it. Private to rdma.k8s: it may change."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Optional

from ..core.checks.context import Fleet, Node
from ..core.checks.judge import NodeInput
from ..core.checks.policy import Policy
from ..core.errors import RdmaError
from ..core.net import Address
from ..core.nics import Nic
from ..core.oke import addressing


@dataclass(frozen=True)
class Place:
    """One RDMA NIC: its index, parent and child where they can be derived, and why not where they cannot.

    ``held`` are the IPv4 addresses that count on the NIC now (F35).
    """

    node: Node
    nic: Nic
    index: Optional[int] = None
    parent: Optional[addressing.Parent] = None
    child: Optional[addressing.Child] = None
    error: Optional[RdmaError] = None
    held: tuple[Address, ...] = ()

    @property
    def holds_parent(self) -> bool:
        return self.parent is not None and self.parent.parent in self.held

    @property
    def held_text(self) -> str:
        """What the NIC holds, for people."""
        if not self.held:
            return "none"
        return "yes" if self.holds_parent else ", ".join(map(str, self.held))


def fleet_of(inputs: Iterable[NodeInput], policy: Policy, judged_at: str = "") -> Fleet:
    """The nodes that gave a snapshot, as the judgement sees them."""
    nodes = [
        Node(entry.snapshot, policy, entry.child_range, entry.network, judged_at)
        for entry in inputs
        if entry.snapshot is not None
    ]
    return Fleet(nodes, policy)


def places_of(node: Node) -> list[Place]:
    """All RDMA NICs of a node, in the order of their index."""
    if not node.has_ipv4_children:
        return [Place(node, nic, held=_held(node, nic)) for nic in node.nics]
    derived = {nic.name: child for nic, child in node.children}
    return [_place(node, nic, derived.get(nic.name)) for nic in node.nics]


def _place(node: Node, nic: Nic, child: object) -> Place:
    held = _held(node, nic)
    if child is None:  # not Ethernet
        return Place(node, nic, held=held)
    try:
        index = node.index_of(nic)
    except RdmaError as error:
        return Place(node, nic, error=error, held=held)
    try:
        parent = addressing.derive_parent(node.vnic, index, node.oca_config.network)
    except RdmaError as error:
        known = node.vnic_or_error
        return Place(node, nic, index, error=known if isinstance(known, RdmaError) else error, held=held)
    if isinstance(child, addressing.Child):
        return Place(node, nic, index, parent, child, held=held)
    return Place(node, nic, index, parent, error=child if isinstance(child, RdmaError) else None, held=held)


def _held(node: Node, nic: Nic) -> tuple[Address, ...]:
    return node.addresses_of(nic) if nic.name in node.interfaces else ()
