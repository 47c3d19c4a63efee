# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""``rdma-k8s where``: from an address to its NIC, and back. Private to rdma.k8s: it may change with any release."""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Optional

from ..core.checks.context import Fleet, Node
from ..core.errors import RdmaError
from ..core.net import Address, Prefix, find_address, find_destination, find_prefix
from ..core.oke import addressing
from ..core.oke.constants import DEFAULT_OCA_NETWORK
from ..core.report.wording import count
from . import sources
from .near import did_you_mean
from .places import Place, fleet_of, places_of
from .terminal import Terminal


@dataclass(frozen=True)
class Match:
    """One use of an address: ``child``, ``parent``, ``primary VNIC`` or ``interface``, on a node and perhaps a NIC."""

    kind: str
    node: Node
    place: Optional[Place] = None
    interface: str = ""


@dataclass(frozen=True)
class Vacancy:
    """What an unused address would be, inside one network of some nodes."""

    kind: str
    network: Prefix
    subnet: Prefix
    index: int
    position: int
    primary: Address
    owner: Optional[Node]
    error: str = ""


def run(arguments: Namespace, terminal: Terminal) -> int:
    """Returns 0, also when nobody has the address."""
    source = sources.recorded(arguments.snapshots)
    policy = sources.policy_of(source, arguments.policy, arguments.set)
    nodes = source.nodes or ()
    terminal.doing("looking at %s" % count(len(nodes), "node"))
    fleet = fleet_of(nodes, policy)
    what = arguments.what
    address = None if what in {node.name for node in nodes} else _address_in(what)
    if address is not None:
        matches = find(fleet, address)
        vacancies = [] if matches else vacant(fleet, address)
        silent = len(nodes) - len(fleet.nodes)
        if arguments.format == "json":
            _print_json(
                terminal, {"address": str(address), **_matches_json(matches), **_vacancies_json(vacancies)}
            )
        else:
            _print_matches(terminal, address, matches, vacancies, (len(fleet.nodes), silent))
        return 0
    places = _named(what, nodes, fleet)
    if arguments.format == "json":
        _print_json(terminal, {"node": places[0].node.name, "nics": [_place_json(place) for place in places]})
    elif "/" in what and len(places) == 1:
        terminal.title("%s on %s" % (places[0].nic.name, places[0].node.name))
        terminal.lines("")
        terminal.pairs(_place_pairs(places[0]))
    else:
        _print_node(terminal, places)
    return 0


def _address_in(text: str) -> Optional[Address]:
    """The address of a text, also when a length follows."""
    address = find_address(text)
    prefix = find_prefix(text) if address is None else None
    return address if prefix is None else Address(prefix.version, prefix.value)


# From an address


def find(fleet: Fleet, address: Address) -> list[Match]:
    """All uses of an address: derived ones, and what interfaces really hold."""
    return [match for node in fleet.nodes for match in _find_on(node, address)]


def _find_on(node: Node, address: Address) -> Iterable[Match]:
    named: set[str] = set()
    if address.version == 4:
        for place in places_of(node):
            if place.child is not None and place.child.child == address:
                yield Match("child", node, place)
            if place.parent is not None and place.parent.parent == address:
                named.add(place.nic.name)
                yield Match("parent", node, place)
            elif address in place.held:
                named.add(place.nic.name)
                yield Match("interface", node, place, place.nic.name)
        if node.vnic is not None and node.vnic.address == address:
            yield Match("primary VNIC", node)
            return
    for link in node.snapshot.links or ():
        if link.name not in named and any(_holds(text, address) for text in link.addresses):
            yield Match("interface", node, None, link.name)


def _holds(text: str, address: Address) -> bool:
    found = find_destination(text)
    return found is not None and (found.version, found.value) == (address.version, address.value)


def vacant(fleet: Fleet, address: Address) -> list[Vacancy]:
    """What an address that nobody has would be, for each set of networks that nodes of the fleet use.

    The position is read off the address; what it means is derived forward by the core.
    """
    found: list[Vacancy] = []
    seen = set()
    primaries = {node.vnic.address: node for node in fleet.nodes if node.vnic is not None}
    for node in fleet.nodes:
        if node.vnic is None or not node.has_ipv4_children:
            continue
        subnet, oca_network, child_range = (
            node.vnic.subnet.masked(),
            node.oca_config.network,
            node.child_range,
        )
        if (subnet, oca_network, child_range) in seen:
            continue
        seen.add((subnet, oca_network, child_range))
        for kind, network in (("child", child_range), ("parent", oca_network)):
            if network is not None and network.contains(address):
                index, position = divmod(address.value - network.value, subnet.size)
                primary = Address(4, subnet.value + position)
                error = _derivation_error(primary, subnet, index, oca_network, child_range)
                owner = primaries.get(primary)
                found.append(Vacancy(kind, network, subnet, index, position, primary, owner, error))
        if subnet.contains(address):
            found.append(
                Vacancy("primary VNIC", subnet, subnet, -1, address.value - subnet.value, address, None)
            )
    possible = [vacancy for vacancy in found if not vacancy.error]
    return possible or found


def _derivation_error(
    primary: Address, subnet: Prefix, index: int, oca_network: Prefix, child_range: Optional[Prefix]
) -> str:
    try:
        addressing.derive_child(
            addressing.Vnic(primary, subnet), index, oca_network, child_range or oca_network
        )
    except RdmaError as error:
        return error.message
    return ""


def _print_matches(
    terminal: Terminal,
    address: Address,
    matches: Sequence[Match],
    vacancies: Sequence[Vacancy],
    looked_at: tuple[int, int],
) -> None:
    """``looked_at``: how many nodes told something, and how many told nothing."""
    if not matches:
        more = ", %d more told nothing" % looked_at[1] if looked_at[1] else ""
        nodes = count(looked_at[0], "recorded node")
        terminal.paragraph("Nobody has %s (%s looked at%s)." % (address, nodes, more), indent="")
        for vacancy in vacancies:
            terminal.paragraph(_vacancy_sentence(vacancy))
        if not vacancies:
            terminal.paragraph(
                "It is in none of the child ranges, RDMA networks and primary subnets of these nodes."
                if looked_at[0]
                else "No node told anything."
            )
        return
    if len(matches) > 1:
        terminal.paragraph("%s has %s:" % (address, count(len(matches), "use")), indent="")
    for match in matches:
        sentence = _match_sentence(address, match)
        terminal.paragraph(sentence, indent="")
        terminal.lines("")
        terminal.pairs(_place_pairs(match.place) if match.place is not None else _node_pairs(match.node))
        if match is not matches[-1]:
            terminal.lines("")


def _match_sentence(address: Address, match: Match) -> str:
    name = match.place.nic.name if match.place is not None else match.interface
    if match.kind == "child":
        return "%s is the child of %s on %s." % (address, name, match.node.name)
    if match.kind == "parent" and match.place is not None:
        state = "the NIC holds it" if match.place.holds_parent else "the NIC does not hold it"
        return "%s is the parent address of %s on %s; %s." % (address, name, match.node.name, state)
    if match.kind == "primary VNIC":
        return "%s is the primary VNIC address of %s." % (address, match.node.name)
    if match.place is not None and match.place.parent is not None:
        return "%s is on %s of %s, where %s is expected." % (
            address,
            name,
            match.node.name,
            match.place.parent.parent,
        )
    return "%s is on %s of %s." % (address, name, match.node.name)


def _vacancy_sentence(vacancy: Vacancy) -> str:
    if vacancy.kind == "primary VNIC":
        return "In the primary subnet %s it is host position %d; no recorded node has it." % (
            vacancy.subnet,
            vacancy.position,
        )
    what = "child" if vacancy.kind == "child" else "parent address"
    sentence = (
        "In %s it would be the %s of NIC index %d of the node with primary address %s in %s (position %d)"
        % (
            vacancy.network,
            what,
            vacancy.index,
            vacancy.primary,
            vacancy.subnet,
            vacancy.position,
        )
    )
    if vacancy.error:
        return "%s, but: %s" % (sentence, vacancy.error)
    if vacancy.owner is None:
        return sentence + "; no recorded node has that address."
    return "%s; that is %s, which has no such NIC." % (sentence, vacancy.owner.name)


# From a node or a NIC


def _named(what: str, nodes: Sequence[Any], fleet: Fleet) -> list[Place]:
    name, _slash, nic = (what, "", "") if what in {node.name for node in nodes} else what.partition("/")
    entry = sources.node_named(name, nodes)
    if entry.snapshot is None:
        raise RdmaError("node_silent", "The node %s gave no snapshot: %s" % (name, entry.reason), node=name)
    node = next(node for node in fleet.nodes if node.name == name)
    places = places_of(node)
    if not places:
        raise RdmaError("node_without_nics", "No RDMA NIC was found on %s." % name, node=name)
    if not nic:
        return places
    chosen = [place for place in places if nic in _names(place)]
    if not chosen:
        known = [word for place in places for word in _names(place)]
        raise RdmaError(
            "nic_unknown",
            "%s has no RDMA NIC %r%s" % (name, nic, did_you_mean(nic, known)),
            hint="RDMA NICs of this node: %s." % ", ".join([place.nic.name for place in places]),
            node=name,
        )
    return chosen


def _names(place: Place) -> list[str]:
    """By what a NIC can be called: interface, RDMA device, PCI address, MAC, index."""
    nic = place.nic
    words = [nic.name, nic.pci, nic.device.name if nic.device is not None else ""]
    words += [nic.link.mac if nic.link is not None else "", "" if place.index is None else str(place.index)]
    return [word for word in words if word]


def _print_node(terminal: Terminal, places: Sequence[Place]) -> None:
    terminal.title(places[0].node.name)
    terminal.lines("")
    terminal.pairs(_node_pairs(places[0].node))
    terminal.lines("")
    terminal.table(
        ("NIC", "INDEX", "PARENT", "HELD", "CHILD", "PCI", "MAC"),
        [
            (
                place.nic.name,
                "" if place.index is None else str(place.index),
                str(place.parent.parent) if place.parent is not None else "",
                place.held_text if place.node.has_ipv4_children else "",
                str(place.child.child_address) if place.child is not None else "",
                place.nic.pci,
                _mac(place),
            )
            for place in places
        ],
    )
    errors = list(dict.fromkeys([place.error.message for place in places if place.error is not None]))
    for message in errors:
        terminal.lines("")
        terminal.paragraph(message)


def _mac(place: Place) -> str:
    mac = place.nic.link.mac if place.nic.link is not None else ""
    return mac if len(mac) <= 17 else "..." + mac[-14:]


def _node_pairs(node: Node) -> list[tuple[str, str]]:
    fabric = node.fabric or "not known"
    pairs = [("node", "%s (%s)" % (node.name, node.shape_name) if node.shape_name else node.name)]
    if node.vnic is not None:
        pairs.append(("primary VNIC", "%s in %s" % (node.vnic.address, node.vnic.subnet)))
    pairs.append(("fabric", fabric))
    if node.has_ipv4_children:
        default = ", the default" if node.oca_config.network == DEFAULT_OCA_NETWORK else ""
        pairs.append(("RDMA network", "%s%s" % (node.oca_config.network, default)))
        pairs.append(("child range", node.range_text))
    else:
        pairs.append(("children", "none: NICs get no IPv4 child on this fabric"))
    return pairs


def _place_pairs(place: Place) -> list[tuple[str, str]]:
    nic, pairs = place.nic, _node_pairs(place.node)
    index = "" if place.index is None else ", index %d" % place.index
    pairs.append(("NIC", nic.name + index))
    if nic.device is not None and nic.port is not None:
        pairs.append(("RDMA device", "%s port %d" % (nic.device.name, nic.port.port)))
    pairs += [("PCI", nic.pci), ("MAC", nic.link.mac if nic.link is not None else "")]
    if place.parent is not None:
        pairs.append(
            ("position", "%d in blocks of %d" % (place.parent.host_position, place.parent.block_size))
        )
        held = {"yes": ", held", "none": ", not there yet"}.get(
            place.held_text, "; the NIC holds " + place.held_text
        )
        pairs.append(("parent", str(place.parent.parent) + held))
    elif place.held:
        pairs.append(("holds", ", ".join(map(str, place.held))))
    if place.child is not None and place.index is not None and place.node.child_range is not None:
        routing = addressing.routing(place.child.child, place.node.child_range, place.index)
        pairs += [
            ("child", str(routing.address)),
            (
                "child's route",
                "%s table %d src %s" % (routing.route.destination, routing.route.table, routing.route.source),
            ),
            (
                "child's rule",
                "%d: from %s lookup %d" % (routing.rule.priority, routing.route.source, routing.rule.table),
            ),
        ]
    if place.error is not None:
        pairs.append(("no child" if place.parent is not None else "no address", place.error.message))
    return pairs


# JSON


def _print_json(terminal: Terminal, document: dict[str, Any]) -> None:
    terminal.write(json.dumps(document, indent=1) + "\n")


def _matches_json(matches: Sequence[Match]) -> dict[str, Any]:
    return {
        "matches": [
            {
                "kind": match.kind,
                "node": match.node.name,
                **(
                    {"nic": _place_json(match.place)}
                    if match.place is not None
                    else {"interface": match.interface or None}
                ),
            }
            for match in matches
        ]
    }


def _vacancies_json(vacancies: Sequence[Vacancy]) -> dict[str, Any]:
    return {
        "would_be": [
            {
                "kind": vacancy.kind,
                "network": str(vacancy.network),
                "subnet": str(vacancy.subnet),
                "index": None if vacancy.index < 0 else vacancy.index,
                "position": vacancy.position,
                "primary": str(vacancy.primary),
                "node": vacancy.owner.name if vacancy.owner is not None else None,
                "error": vacancy.error or None,
            }
            for vacancy in vacancies
        ]
    }


def _place_json(place: Place) -> dict[str, Any]:
    nic = place.nic
    return {
        "name": nic.name,
        "index": place.index,
        "device": nic.device.name if nic.device is not None else None,
        "pci": nic.pci or None,
        "mac": nic.link.mac if nic.link is not None else None,
        "parent": str(place.parent.parent) if place.parent is not None else None,
        "held": [str(address) for address in place.held],
        "child": str(place.child.child_address) if place.child is not None else None,
        "table": place.child.table if place.child is not None else None,
        "error": place.error.message if place.error is not None else None,
    }
