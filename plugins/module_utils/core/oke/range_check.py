# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One child range against a whole fleet and its networks: every conflict, the capacity, free alternatives.

Private to rdma.k8s: it may change with any release. The driver checks one claim on one node and stops at the first
error; it sees neither other nodes nor the whole pod and service networks (F23, F24, F50). This looks at all of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Optional

from ..errors import RdmaError
from ..net import Prefix, find_address, find_prefix, quoted
from ..snapshot import Route
from . import conflicts, free_ranges
from .addressing import Network, range_errors, require_oca_network, require_vnic, subnet_errors
from .child_range import capacity, length_for, validate
from .constants import MAX_NICS
from .fleet import FleetNode, FleetPlan, plan_fleet
from .imds import parse_vnic_subnets
from .networks import NetworkDocument


@dataclass(frozen=True)
class LabelledNetwork:
    """A network in use: a pod, service, VCN or peer network. ``sources`` say where it is known from."""

    label: str
    network: Prefix
    sources: tuple[str, ...] = ()


@dataclass(frozen=True)
class Problem:
    """Something that is wrong with the range or the fleet. ``nodes`` is empty when it belongs to no node."""

    code: str
    message: str
    hint: str = ""
    nodes: tuple[str, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {**vars(self), "nodes": list(self.nodes), "details": dict(self.details)}


@dataclass(frozen=True)
class SubnetCapacity:
    """What the range holds of the nodes of one primary VNIC subnet.

    :param needed: NICs of a node that the range must hold: the largest index plus one, at most 16.
    :param held: NICs of a node that it holds (F19); ``None``: the range is not valid.
    :param length: the longest prefix length that holds them (F18); ``None``: none does.
    """

    subnet: Prefix
    nodes: int
    needed: int
    held: Optional[int]
    length: Optional[int]

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {**vars(self), "subnet": str(self.subnet)}


@dataclass(frozen=True)
class Proposal:
    """Free ranges of one length, which hold ``nics`` NICs of every node."""

    length: int
    nics: int
    ranges: tuple[Prefix, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {**vars(self), "ranges": [str(entry) for entry in self.ranges]}


@dataclass(frozen=True)
class RangeReport:
    """The outcome of :func:`check_fleet`. ``plan`` is missing when the range itself is not valid."""

    child_range: Optional[Prefix]
    problems: tuple[Problem, ...]
    capacity: tuple[SubnetCapacity, ...]
    proposals: tuple[Proposal, ...]
    plan: Optional[FleetPlan]

    def to_dict(self) -> dict[str, Any]:
        """Plain data, without the children (see :meth:`.FleetPlan.children`)."""
        return {
            "child_range": None if self.child_range is None else str(self.child_range),
            "problems": [entry.to_dict() for entry in self.problems],
            "capacity": [entry.to_dict() for entry in self.capacity],
            "proposals": [entry.to_dict() for entry in self.proposals],
            "children": 0 if self.plan is None else self.plan.count,
        }


class _Problems:
    """Collects errors; equal ones of several nodes become one problem."""

    def __init__(self) -> None:
        self.found: dict[tuple[str, str], tuple[RdmaError, list[str]]] = {}

    def add(self, error: RdmaError, nodes: Iterable[str] = ()) -> None:
        _error, known = self.found.setdefault((error.code, error.message), (error, []))
        known += [name for name in nodes if not known or known[-1] != name]

    def all(self) -> tuple[Problem, ...]:
        return tuple(
            [
                Problem(error.code, error.message, error.hint, tuple(nodes), error.details)
                for error, nodes in self.found.values()
            ]
        )


@dataclass
class _Group:
    """The nodes that share a primary VNIC subnet and an OCA network."""

    nodes: list[str] = field(default_factory=list)
    needed: int = 0


_Groups = dict[tuple[Prefix, Prefix], _Group]


def parse_networks(given: Mapping[str, Iterable[str]]) -> list[LabelledNetwork]:
    """The networks of a user: lists of prefixes by label.

    :raises RdmaError: ``network_malformed``
    """
    return [_labelled(label, text) for label, texts in given.items() for text in _listed(label, texts)]


def of_document(document: NetworkDocument) -> list[LabelledNetwork]:
    """The networks of a document; IPv6 networks overlap no child range (F27)."""
    return [LabelledNetwork(entry.label, entry.network, entry.sources) for entry in document.of_version(4)]


def _listed(label: str, texts: Any) -> Iterable[str]:
    if isinstance(texts, str) or not isinstance(texts, Iterable):
        raise RdmaError(
            "network_malformed",
            "%s: %s is not a list of prefixes." % (label, quoted(texts)),
            hint="Write a list also of one network: [10.244.0.0/16].",
            label=label,
            value=texts,
        )
    return texts


def _labelled(label: str, text: str) -> LabelledNetwork:
    prefix = find_prefix(text)
    if prefix is None:
        raise RdmaError(
            "network_malformed",
            "%s: %s is not a prefix of the form <address>/<length>." % (label, quoted(text)),
            hint="Write each network as 10.244.0.0/16.",
            label=label,
            value=text,
        )
    return LabelledNetwork(label, prefix.masked())


def check_fleet(
    child_range: Network,
    nodes: Iterable[FleetNode],
    networks: Iterable[LabelledNetwork] = (),
    supernets: Optional[Iterable[Prefix]] = None,
) -> RangeReport:
    """Check one range for the nodes of one RDMA network.

    :param child_range: a prefix, or the text of the option.
    :param networks: what else is in use, see :func:`parse_networks`.
    :param supernets: where alternatives are looked for; default :data:`.free_ranges.DEFAULT_SUPERNETS`.
    """
    nodes, networks = list(nodes), list(networks)
    problems = _Problems()
    wanted = _validated(child_range, problems)
    groups = _groups(nodes, problems)
    _check_groups(groups, wanted, problems)
    _check_uniform(groups, problems)
    plan = None
    if wanted is not None:
        _check_networks(wanted, networks, problems)
        _check_nodes(wanted, nodes, problems)
        plan = plan_fleet(nodes, wanted)
        _check_plan(plan, problems)
    capacities = _capacities(groups, wanted)
    used = _used(nodes, networks, groups, wanted)
    proposals = _proposals(capacities, used, None if supernets is None else list(supernets))
    return RangeReport(wanted, problems.all(), capacities, proposals, plan)


def _validated(child_range: Network, problems: _Problems) -> Optional[Prefix]:
    try:
        return validate(child_range)
    except RdmaError as error:
        problems.add(error)
        return None


def _groups(nodes: list[FleetNode], problems: _Problems) -> _Groups:
    groups: _Groups = {}
    known: dict[tuple[str, str], tuple[Prefix, Prefix]] = {}  # by text: most nodes share both (B1)
    for node in nodes:
        texts = (node.subnet, node.oca_network)
        key, address = known.get(texts), find_address(node.address)
        if key is None or address is None or not key[0].contains(address):
            try:
                key = require_vnic(node.vnic)[1], require_oca_network(node.oca_network)
            except RdmaError as error:
                problems.add(error, [node.name])
                continue
            known[texts] = key
        group = groups.setdefault(key, _Group())
        group.nodes.append(node.name)
        group.needed = max(group.needed, min(max(node.nics, default=-1) + 1, MAX_NICS))
    return groups


def _check_groups(groups: _Groups, wanted: Optional[Prefix], problems: _Problems) -> None:
    for (subnet, oca_network), group in groups.items():
        for error in subnet_errors(subnet, oca_network):
            problems.add(error, group.nodes)
        if oca_network.size // subnet.size < group.needed:
            problems.add(_oca_too_small(subnet, oca_network, group.needed), group.nodes)
        if wanted is None:
            continue
        for error in range_errors(subnet, oca_network, wanted):
            problems.add(error, group.nodes)
        if wanted.length <= subnet.length and capacity(subnet.length, wanted.length).nics < group.needed:
            problems.add(_too_small(subnet, wanted, group.needed), group.nodes)


def _too_small(subnet: Prefix, wanted: Prefix, needed: int) -> RdmaError:
    """The range holds fewer NICs than the nodes have (F18, F19)."""
    held = capacity(subnet.length, wanted.length).nics
    length = length_for(subnet.length, needed)
    smallest = "the smallest range that holds them is a /%d" % length if length else "no range holds them"
    return RdmaError(
        "child_range_too_small",
        "The child range %s holds %d NICs of each node in %s, %d are needed; %s."
        % (wanted, held, subnet, needed, smallest),
        hint="Choose a larger range, the same on all nodes.",
        child_range=str(wanted),
        subnet=str(subnet),
        held=held,
        needed=needed,
        prefix_len=length,
    )


def _oca_too_small(subnet: Prefix, oca_network: Prefix, needed: int) -> RdmaError:
    """The OCA network has no room for all parents (F21)."""
    held = oca_network.size // subnet.size
    return RdmaError(
        "oca_network_too_small",
        "The OCA RDMA network %s holds %d NICs of each node in %s, %d are needed."
        % (oca_network, held, subnet, needed),
        hint="Give OCA a larger rdma_network in rdma_network.json.",
        oca_network=str(oca_network),
        subnet=str(subnet),
        held=held,
        needed=needed,
    )


def _check_uniform(groups: _Groups, problems: _Problems) -> None:
    """All nodes of an RDMA network use one subnet and one OCA network (F23)."""
    subnets, oca_networks = Counter[Prefix](), Counter[Prefix]()
    for (subnet, oca_network), group in groups.items():
        subnets[subnet] += len(group.nodes)
        oca_networks[oca_network] += len(group.nodes)
    if len(subnets) > 1:
        problems.add(_differ("subnets_differ", "primary VNIC subnets", subnets))
    if len(oca_networks) > 1:
        problems.add(_differ("oca_networks_differ", "OCA networks", oca_networks))


def _differ(code: str, what: str, counts: Counter[Prefix]) -> RdmaError:
    shown = ", ".join(["%s (%d nodes)" % entry for entry in sorted(counts.items())])
    return RdmaError(
        code,
        "The nodes of one RDMA network have %d %s, expected 1: %s." % (len(counts), what, shown),
        hint="Positions, and so children, are unique within one subnet only: check each network by itself.",
        networks=[str(network) for network in sorted(counts)],
    )


def _check_networks(wanted: Prefix, networks: list[LabelledNetwork], problems: _Problems) -> None:
    for entry in networks:
        if entry.network.overlaps(wanted):
            problems.add(
                RdmaError(
                    "network_conflict",
                    "%s: %s overlaps the child range %s." % (entry.label, entry.network, wanted),
                    hint="Choose a child range beside it.",
                    label=entry.label,
                    network=str(entry.network),
                    sources=list(entry.sources),
                    child_range=str(wanted),
                )
            )


def _check_nodes(wanted: Prefix, nodes: list[FleetNode], problems: _Problems) -> None:
    """What the driver would see on each node (F45); what cannot be read is a problem here."""
    for node in nodes:
        if node.vnics is None and node.routes is None and not node.service_host:
            continue  # a node of a list tells nothing; there can be very many of them
        try:
            parse_vnic_subnets(node.vnics)
        except RdmaError as error:
            problems.add(error, [node.name])
        for conflict in conflicts.of_node(wanted, node.vnics, node.routes, node.service_host):
            problems.add(conflict, [node.name])


def _check_plan(plan: FleetPlan, problems: _Problems) -> None:
    """What only the derivation tells: NICs without a child, and children that several NICs would get (F23)."""
    for nic in plan.errors:
        if nic.error.code == "nic_index_too_large":  # the others are known by now
            problems.add(nic.error, [nic.node])
    if not plan.clashes:
        return
    first = plan.clashes[0]
    holders = " and ".join(["%s NIC %d" % holder for holder in first.holders])
    problems.add(
        RdmaError(
            "children_not_unique",
            "%d child addresses would be given more than once; the first, %s, to %s."
            % (len(plan.clashes), first.child, holders),
            hint="The nodes are in several subnets, or two have one address: give each RDMA network one subnet.",
            count=len(plan.clashes),
            child=str(first.child),
        ),
        sorted({node for clash in plan.clashes for node, _index in clash.holders}),
    )


def _capacities(groups: _Groups, wanted: Optional[Prefix]) -> tuple[SubnetCapacity, ...]:
    merged: dict[Prefix, _Group] = {}
    for (subnet, _oca_network), group in groups.items():
        known = merged.setdefault(subnet, _Group())
        known.nodes += group.nodes
        known.needed = max(known.needed, group.needed)
    return tuple([_capacity(subnet, group, wanted) for subnet, group in sorted(merged.items())])


def _capacity(subnet: Prefix, group: _Group, wanted: Optional[Prefix]) -> SubnetCapacity:
    held = None
    if wanted is not None:
        held = capacity(subnet.length, wanted.length).nics if wanted.length <= subnet.length else 0
    return SubnetCapacity(
        subnet, len(group.nodes), group.needed, held, length_for(subnet.length, max(group.needed, 1))
    )


def _used(
    nodes: list[FleetNode], networks: list[LabelledNetwork], groups: _Groups, wanted: Optional[Prefix]
) -> list[Prefix]:
    """Everything in use, as far as it is known, and the checked range itself: an alternative is another one."""
    used = [entry.network for entry in networks]
    used += [] if wanted is None else [wanted]
    used += [prefix for key in groups for prefix in key]
    destinations = {route.dst for node in nodes for route in node.routes or () if route.type == "unicast"}
    for text in destinations:
        used += _readable(conflicts.route_networks, [Route(text)])
    for node in nodes:
        if node.vnics is None and not node.service_host:
            continue
        used += _readable(parse_vnic_subnets, node.vnics)
        address = conflicts.service_address(node.service_host)
        used += [] if address is None else [Prefix(4, address.value, 32)]
    return used


def _readable(read: Callable[[Any], Iterable[Prefix]], source: Any) -> list[Prefix]:
    """What can be read; why something cannot is a problem already."""
    try:
        return list(read(source))
    except RdmaError:
        return []


def _proposals(
    capacities: tuple[SubnetCapacity, ...], used: list[Prefix], supernets: Optional[list[Prefix]]
) -> tuple[Proposal, ...]:
    """Free ranges for 16 NICs, and for the NICs that the nodes have when a smaller range holds those."""
    lengths: dict[int, int] = {}
    for nics in (MAX_NICS, max([entry.needed for entry in capacities], default=MAX_NICS)):
        found = [length_for(entry.subnet.length, max(nics, 1)) for entry in capacities]
        known = [length for length in found if length is not None]
        if known and len(known) == len(found):
            lengths.setdefault(min(known), nics)
    return tuple(
        [
            Proposal(length, nics, tuple(free_ranges.find(length, used, supernets)))
            for length, nics in lengths.items()
        ]
    )
