# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rails: which NIC of every node stands beside which GPU, and what it is to get. Private to rdma.k8s.

It may change with any release. A rail is one physical function at the same place in all nodes, with a resource, a
subnet and a pool of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Optional

from ..errors import RdmaError
from ..net import Address, Prefix, find_prefix, quoted
from ..nics import INFINIBAND as IB_LAYER
from ..snapshot import NodeSnapshot
from .names import ETHERNET, INFINIBAND
from .node_policy import MELLANOX_MOST

PCIE, NUMA, UNKNOWN = "pcie", "numa", "unknown"
LAST, FIRST, NONE = GATEWAYS = ("last", "first", "none")
NUMBER = "{rail}"
MOST_RAILS = 64


class Nic(NamedTuple):
    """A physical function with an RDMA port, as its node tells it."""

    pci: str
    name: str
    link_type: str
    mtu: Optional[int]
    numa: Optional[int]
    total_vfs: int
    vendor: str


class Place(NamedTuple):
    """A NIC of a rail and the GPUs beside it; ``affinity``: how that is known."""

    nic: Nic
    gpus: tuple[str, ...]
    affinity: str


class Rail(NamedTuple):
    """A rail. ``name`` is the interface, empty where nodes call it differently; ``gateway`` may be empty."""

    number: int
    pci: str
    name: str
    link_type: str
    vendor: str
    gpus: tuple[str, ...]
    affinity: str
    resource: str
    subnet: str
    gateway: str
    ranges: tuple[str, ...]
    vfs: int
    mtu: Optional[int]
    pkey: str = ""


class Wish(NamedTuple):
    """What the user wants of the rails.

    :param supernet: the subnets of the rails are cut from it, one after the other.
    :param length: prefix length of each of them.
    :param vfs: virtual functions of each NIC.
    :param resource: name of the resource; ``{rail}`` stands for the number of the rail.
    :param gateway: ``last`` or ``first`` address of the subnet, or ``none``.
    :param pkeys: partition keys, one for each rail or one for all; empty: none.
    """

    supernet: str
    length: int = 24
    vfs: int = 8
    resource: str = "gpu{rail}sriov"
    gateway: str = LAST
    mtu: Optional[int] = None
    pkeys: Sequence[str] = ()


class Proposal(NamedTuple):
    """The rails, and what the user should know of them, as sentences."""

    rails: tuple[Rail, ...]
    notes: tuple[str, ...]


def places_of(snapshot: NodeSnapshot) -> tuple[Place, ...]:
    """The NICs of one node that are to be rails, in the order of their GPUs.

    Those near a GPU by PCI bridges (S70); where none is, those of the NUMA node of a GPU; where no GPU is known, all
    NICs with an RDMA port. An interface with the default route is never one.
    """
    nics = _nics(snapshot)
    gpus = snapshot.slow.gpus if snapshot.slow is not None else None
    if not gpus:
        return tuple([Place(nic, (), UNKNOWN) for nic in nics])
    for affinity in (PCIE, NUMA):
        beside: dict[str, list[str]] = {}
        for gpu in sorted(gpus, key=lambda entry: entry.address):
            for nic in nics:
                near = nic.pci in gpu.near
                same = gpu.numa is not None and gpu.numa == nic.numa
                if near if affinity == PCIE else same:
                    beside.setdefault(nic.pci, []).append(gpu.address)
        if beside:
            found = [Place(nic, tuple(beside[nic.pci]), affinity) for nic in nics if nic.pci in beside]
            return tuple(sorted(found, key=lambda place: (place.gpus[0], place.nic.pci)))
    return tuple([Place(nic, (), UNKNOWN) for nic in nics])


def _nics(snapshot: NodeSnapshot) -> list[Nic]:
    functions = {function.address: function for function in snapshot.pci or ()}
    links = {link.pci: link for link in snapshot.links or () if link.pci and not link.kind}
    uplinks = {
        route.dev
        for route in snapshot.routes or ()
        if route.dst in ("default", "0.0.0.0/0", "::/0") and route.table == 254
    }
    found = []
    for device in snapshot.devices or ():
        function, link = functions.get(device.pci), links.get(device.pci)
        if function is None or function.vf_of or not device.ports:
            continue
        netdev = link.name if link is not None else device.ports[0].netdev
        if netdev and netdev in uplinks:
            continue
        layer = device.ports[0].link_layer
        found.append(
            Nic(
                device.pci,
                netdev,
                "" if layer is None else INFINIBAND if layer == IB_LAYER else ETHERNET,
                link.mtu if link is not None else None,
                function.numa,
                function.total_vfs,
                function.id.partition(":")[0],
            )
        )
    return sorted(found, key=lambda nic: nic.pci)


def propose(snapshots: Sequence[NodeSnapshot], wish: Wish) -> Proposal:
    """The rails of nodes that are alike.

    :raises RdmaError: ``rails_none``, ``rails_differ``, ``rails_network`` or ``rails_wish``.
    """
    _validate(wish)
    nodes = {snapshot.name: places_of(snapshot) for snapshot in snapshots}
    first = _same_on_all(nodes)
    subnets = _subnets(wish, len(first), len(nodes))
    digits = len(str(len(first))) if len(first) > 9 else 1  # S163: text order is the order of the interfaces
    rails = []
    for number, place in enumerate(first, 1):
        alike = [places[number - 1].nic for places in nodes.values()]
        names = {nic.name for nic in alike}
        mtus = [nic.mtu for nic in alike if nic.mtu is not None]
        gateway, ranges = _addresses(subnets[number - 1], wish.gateway)
        rails.append(
            Rail(
                number=number,
                pci=place.nic.pci,
                name=names.pop() if len(names) == 1 else "",
                link_type=place.nic.link_type,
                vendor=place.nic.vendor,
                gpus=place.gpus,
                affinity=place.affinity,
                resource=wish.resource.replace(NUMBER, str(number).zfill(digits)),
                subnet=str(subnets[number - 1]),
                gateway=gateway,
                ranges=ranges,
                vfs=wish.vfs,
                mtu=wish.mtu if wish.mtu is not None else min(mtus, default=None),
                pkey=_pkey(wish, number, place.nic.link_type, len(first)),
            )
        )
    return Proposal(tuple(rails), tuple(_notes(nodes, rails, wish)))


def _validate(wish: Wish) -> None:
    if wish.gateway not in GATEWAYS:
        raise RdmaError(
            "rails_wish", "gateway is one of %s, found %s." % (", ".join(GATEWAYS), quoted(wish.gateway))
        )
    if not 1 <= wish.vfs <= MELLANOX_MOST:
        raise RdmaError("rails_wish", "vfs must be 1 to %d, found %d." % (MELLANOX_MOST, wish.vfs))
    if NUMBER not in wish.resource:
        raise RdmaError(
            "rails_wish",
            "resource must hold %s, found %s: each rail needs a resource of its own."
            % (NUMBER, quoted(wish.resource)),
        )


def _same_on_all(nodes: Mapping[str, tuple[Place, ...]]) -> tuple[Place, ...]:
    """The places of the first node, when all nodes have the same."""
    if not any(nodes.values()):
        raise RdmaError(
            "rails_none",
            "None of %d nodes has a NIC with an RDMA port that can be a rail." % len(nodes),
            hint="Give snapshots with the subsets rdma, links, routes and pci, and slow for the GPUs.",
        )
    groups: dict[tuple[tuple[str, str], ...], list[str]] = {}
    for node, places in nodes.items():
        groups.setdefault(tuple([(place.nic.pci, place.nic.link_type) for place in places]), []).append(node)
    if len(groups) > 1:
        told = [
            "%s: %s" % (", ".join(names), ", ".join([" ".join(place).rstrip() for place in key]) or "none")
            for key, names in groups.items()
        ]
        raise RdmaError(
            "rails_differ",
            "The nodes do not have the same NICs at the same places: %s." % "; ".join(told),
            hint="Make a table for each group of nodes that are alike, with a nodeSelector of its own.",
            groups=[list(names) for names in groups.values()],
        )
    places = next(iter(nodes.values()))
    if len(places) > MOST_RAILS:
        raise RdmaError(
            "rails_wish", "There are %d rails, at most %d are possible." % (len(places), MOST_RAILS)
        )
    return places


def _subnets(wish: Wish, rails: int, nodes: int) -> list[Prefix]:
    supernet = find_prefix(wish.supernet)
    if supernet is None or not supernet.is_masked or supernet.version != 4:
        raise RdmaError(
            "rails_network",
            "The supernet is an IPv4 network without host bits, found %s." % quoted(wish.supernet),
        )
    if not supernet.length <= wish.length <= 30:
        raise RdmaError(
            "rails_network",
            "The length of the subnets must be %d to 30, found %d." % (supernet.length, wish.length),
        )
    if rails > 1 << (wish.length - supernet.length):
        raise RdmaError(
            "rails_network",
            "%s has %d subnets /%d, and %d rails need one each."
            % (supernet, 1 << (wish.length - supernet.length), wish.length, rails),
            hint="Take a larger supernet or a longer prefix.",
        )
    size = 1 << (32 - wish.length)
    free = size - 2 - (wish.gateway != NONE)
    if nodes * wish.vfs > free:
        raise RdmaError(
            "rails_network",
            "%d nodes with %d virtual functions need %d addresses of each rail, and a /%d has %d."
            % (nodes, wish.vfs, nodes * wish.vfs, wish.length, free),
            hint="Take a shorter prefix.",
        )
    return [Prefix(4, supernet.network + position * size, wish.length) for position in range(rails)]


def _addresses(subnet: Prefix, gateway: str) -> tuple[str, tuple[str, ...]]:
    """The gateway, and the range of all other hosts."""
    low, high = subnet.network + 1, subnet.last - 1
    told = ""
    if gateway == LAST:
        told, high = str(Address(4, high)), high - 1
    elif gateway == FIRST:
        told, low = str(Address(4, low)), low + 1
    one = low == high
    return told, (str(Address(4, low)) if one else "%s-%s" % (Address(4, low), Address(4, high)),)


def _pkey(wish: Wish, number: int, link_type: str, rails: int) -> str:
    if not wish.pkeys:
        return ""
    if link_type != INFINIBAND:
        raise RdmaError("rails_wish", "pkeys are for InfiniBand, and rail %d is Ethernet." % number)
    if len(wish.pkeys) not in (1, rails):
        raise RdmaError("rails_wish", "pkeys has %d entries, expected 1 or %d." % (len(wish.pkeys), rails))
    return wish.pkeys[0 if len(wish.pkeys) == 1 else number - 1]


def _notes(nodes: Mapping[str, tuple[Place, ...]], rails: Sequence[Rail], wish: Wish) -> list[str]:
    found = []
    by_affinity: dict[str, list[str]] = {}
    for rail in rails:
        by_affinity.setdefault(rail.affinity, []).append(str(rail.number))
        nics = {node: places[rail.number - 1].nic for node, places in nodes.items()}
        short = sorted([node for node, nic in nics.items() if 0 < nic.total_vfs < wish.vfs])
        if short:
            found.append(
                "Rail %d: the firmware of %s is set to fewer than %d virtual functions, so the operator changes it and "
                "reboots." % (rail.number, ", ".join(short), wish.vfs)
            )
        mtus = {nic.mtu for nic in nics.values() if nic.mtu is not None}
        if wish.mtu is None and len(mtus) > 1:
            found.append(
                "Rail %d: the nodes have the MTUs %s; the smallest is taken."
                % (rail.number, ", ".join([str(mtu) for mtu in sorted(mtus)]))
            )
        if not rail.link_type:
            found.append("Rail %d: the link type is not known, so the policy names none." % rail.number)
    if NUMA in by_affinity:
        found.append(
            "No PCI bridge joins GPUs and NICs; the rails go by NUMA nodes, which may be farther than need be."
        )
    if UNKNOWN in by_affinity:
        found.append(
            "No GPU is known beside the NICs of rails %s; snapshots with the subset slow tell them."
            % ", ".join(by_affinity[UNKNOWN])
        )
    return found
