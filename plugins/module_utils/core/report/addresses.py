# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The address map of a fleet: which NIC has not the address it must have.

Private to rdma.k8s: it may change with any release.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from .document import NicRow, NodeRow

GOOD, MISSING, DIFFERS, TWICE, UNDERIVED, UNTOLD = range(6)
"""States of one NIC: has its address; has none; has another one; shares an address with another NIC; no address
could be derived for it; nothing is known because the node told nothing."""

WORDS = {
    GOOD: "as derived",
    MISSING: "no address",
    DIFFERS: "other address",
    TWICE: "address used twice",
    UNDERIVED: "not derived",
    UNTOLD: "not told",
}


@dataclass(frozen=True)
class Place:
    """One NIC of one node and the state of its addresses; ``others`` names who else uses one of them."""

    node: str
    nic: NicRow
    state: int
    others: tuple[str, ...] = ()

    def sentence(self) -> str:
        """What is wrong, in one sentence; empty when nothing is."""
        nic = self.nic
        return {
            GOOD: "",
            MISSING: "It has no address; %s was expected." % nic.parent,
            DIFFERS: "It has %s; %s was expected." % (nic.observed, nic.parent),
            TWICE: "Its address or the child's is used by %s too." % ", ".join(self.others),
            UNDERIVED: "No address could be derived for it.",
            UNTOLD: "The node told nothing.",
        }[self.state]


def places(nodes: Iterable[NodeRow]) -> dict[str, list[Place]]:
    """The state of each NIC, per node. Addresses are compared within one RDMA network only: others may repeat them."""
    nodes = list(nodes)
    users: dict[tuple[str, str, str], list[str]] = {}
    for node in nodes:
        for nic in node.nics:
            for kind, address in (("parent", nic.observed), ("child", nic.child)):
                if address:
                    users.setdefault((node.network, kind, address), []).append(_label(node, nic))
    return {node.name: [_place(node, nic, users) for nic in node.nics] for node in nodes}


def _label(node: NodeRow, nic: NicRow) -> str:
    return "%s %s" % (node.name, nic.name or "NIC %d" % nic.index)


def _place(node: NodeRow, nic: NicRow, users: dict[tuple[str, str, str], list[str]]) -> Place:
    if not node.reachable:
        return Place(node.name, nic, UNTOLD)
    mine = users.get((node.network, "parent", nic.observed), ())
    children = users.get((node.network, "child", nic.child), ())
    if len(mine) > 1 or len(children) > 1:
        me = _label(node, nic)
        others = dict.fromkeys([user for user in [*mine, *children] if user != me])
        if others:
            return Place(node.name, nic, TWICE, tuple(others))
    if not nic.parent:
        return Place(node.name, nic, UNDERIVED)
    if not nic.observed:
        return Place(node.name, nic, MISSING)
    return Place(node.name, nic, GOOD if nic.observed == nic.parent else DIFFERS)
