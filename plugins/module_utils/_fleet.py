# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which nodes a module plans for: described, recorded, or the one it runs on. Private to rdma.k8s: it may change."""

from __future__ import annotations

from typing import Any, NamedTuple, Optional

from .core.errors import RdmaError
from .core.oke import nics as oke_nics
from .core.oke.fleet import FleetNode, FleetPlan
from .core.oke.view import NodeView
from .core.snapshot import NodeSnapshot
from .host.collect import collect, needs_netlink

SUBSETS = ["links", "routes", "oca", "imds"]

OPTIONS: dict[str, Any] = {
    "nodes": {
        "type": "list",
        "elements": "dict",
        "options": {
            "name": {"type": "str", "required": True},
            "address": {"type": "str", "required": True},
            "subnet": {"type": "str", "required": True},
            "nics": {"type": "int", "default": 16},
            "oca_network": {"type": "str", "default": "10.224.0.0/12"},
        },
    },
    "snapshot": {"type": "list", "elements": "dict"},
    "host_root": {"type": "path", "default": "/"},
}

EXCLUSIVE = [("nodes", "snapshot")]


class Member(NamedTuple):
    """A node of the plan, and the ARP settings of its NICs by index (``None``: not known, or not usable)."""

    node: FleetNode
    arp: dict[int, Optional[dict[str, int]]]


def libraries(params: dict[str, Any]) -> tuple[str, ...]:
    """The libraries that :func:`members` needs for these parameters."""
    own = params["nodes"] is None and params["snapshot"] is None
    return ("pyroute2",) if own and needs_netlink(params["host_root"], SUBSETS) else ()


def members(params: dict[str, Any]) -> list[Member]:
    """The nodes that the parameters name.

    :raises RdmaError: ``nic_count``, ``node_twice`` or an error of the snapshot.
    """
    if params["nodes"] is not None:
        found = [Member(_described(entry), {}) for entry in params["nodes"]]
    elif params["snapshot"] is not None:
        found = [_seen(NodeSnapshot.from_dict(document)) for document in params["snapshot"]]
    else:
        found = [_seen(collect("", params["host_root"], SUBSETS))]
    names = [member.node.name for member in found]
    twice = sorted({name for name in names if names.count(name) > 1}) if len(set(names)) < len(names) else []
    if twice:
        raise RdmaError("node_twice", "The node name %r is given more than once." % twice[0], node=twice[0])
    return found


def _described(entry: dict[str, Any]) -> FleetNode:
    if not 0 <= entry["nics"] <= 64:
        raise RdmaError(
            "nic_count",
            "nics of node %s must be a number from 0 to 64, found %d." % (entry["name"], entry["nics"]),
            nics=entry["nics"],
        )
    return FleetNode(
        entry["name"], entry["address"], entry["subnet"], tuple(range(entry["nics"])), entry["oca_network"]
    )


def _seen(snapshot: NodeSnapshot) -> Member:
    view = NodeView(snapshot)
    arp = {}
    for nic in view.ethernet_nics:
        try:
            arp[view.index_of(nic)] = _arp(view.interfaces[nic.name])
        except RdmaError:
            continue
    return Member(view.as_fleet_node(), arp)


def _arp(interface: oke_nics.Interface) -> Optional[dict[str, int]]:
    try:
        found = oke_nics.arp_policy(None, None, interface.arp_ignore, interface.arp_announce, interface.name)
    except RdmaError:
        return None
    return {"arp_ignore": found.arp_ignore, "arp_announce": found.arp_announce}


def plain(value: Any) -> dict[str, Any]:
    """A dataclass of the core as plain data: numbers stay, addresses become text."""
    return {key: held if isinstance(held, int) else str(held) for key, held in vars(value).items()}


def clashes(plan: FleetPlan) -> list[dict[str, Any]]:
    """The addresses that several NICs would get, as plain data."""
    return [
        {"child": str(clash.child), "holders": ["%s %d" % holder for holder in clash.holders]}
        for clash in plan.clashes
    ]
