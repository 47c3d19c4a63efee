# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The address arithmetic behind a check, with the numbers of one node. Private to rdma.k8s: it may change any time.

Nothing is computed here: positions, blocks, offsets and addresses come from the core's derivation, overlaps from its
prefixes, capacities from its range rules. This file only lays them out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from ..core.checks import ranges
from ..core.checks.context import Fleet, Node
from ..core.checks.registry import Check, listed
from ..core.errors import RdmaError
from ..core.net import Address, Prefix
from ..core.oke import child_range as rules, conflicts
from ..core.oke.constants import DEFAULT_CHILD_RANGE, DEFAULT_OCA_NETWORK
from ..core.oke.nics import nic_index_of_name
from ..core.snapshot import Route
from .places import Place, places_of
from .terminal import Terminal

PARENTS = ("RDMA-OCA-007", "RDMA-OCA-012", "RDMA-OCA-015")
CHILDREN = ("RDMA-RANGE-012", "RDMA-RANGE-013")
SIZES = ("RDMA-RANGE-003", "RDMA-RANGE-004", "RDMA-RANGE-018")
INDEXES = ("RDMA-RANGE-005",)
OVERLAPS = (
    "RDMA-RANGE-006",
    "RDMA-RANGE-007",
    "RDMA-RANGE-008",
    "RDMA-RANGE-009",
    "RDMA-RANGE-010",
    "RDMA-RANGE-011",
)

MOST = 24
"""How many networks are shown."""

_BLOCK = "block    = 2^(32 - length of the primary subnet)"
_POSITION = "position = primary address - first address of the primary subnet"
_PARENT = "parent   = first address of the RDMA network + index * block + position"
_CHILD = "child    = first address of the child range + index * block + position"
FORMULAS = {
    **dict.fromkeys(PARENTS, (_BLOCK, _POSITION, _PARENT)),
    **dict.fromkeys(CHILDREN, (_BLOCK, _POSITION, _CHILD)),
    **dict.fromkeys(
        INDEXES, ("index    = N in the name rdmaN, else (address - RDMA network - position) / block",)
    ),
    **dict.fromkeys(
        SIZES,
        (
            "NICs that fit = 2^(length of the subnet - length of the range), at most 16",
            "range length for N NICs = length of the subnet - log2 N, rounded down; 16 NICs: 4 less",
        ),
    ),
    **dict.fromkeys(
        OVERLAPS, ("two networks overlap when they agree in the bits of the shorter of both lengths",)
    ),
}


def formula(terminal: Terminal, check: Check) -> None:
    """The formula of a check, if it is one about addresses."""
    lines = FORMULAS.get(check.info.id)
    if lines:
        terminal.heading("Formula")
        terminal.lines(*["  " + line for line in lines])


def steps(terminal: Terminal, fleet: Fleet, node: Node, check: Check) -> bool:
    """The formula with the numbers of a node; false when the check is none about addresses."""
    name = check.info.id
    if name not in FORMULAS:
        return False
    terminal.heading("Inputs of %s" % node.name)
    terminal.pairs(_inputs(node))
    if not node.has_ipv4_children:
        terminal.lines("")
        terminal.paragraph("The fabric is %s: nothing is derived." % node.fabric)
        return True
    places = places_of(node)
    if name in PARENTS + CHILDREN:
        _derivation(terminal, fleet, node, places, name)
    elif name in INDEXES:
        _indexes(terminal, places)
    elif name in SIZES:
        _sizes(terminal, node)
    else:
        _overlaps(terminal, node, name)
    return True


def _inputs(node: Node) -> list[tuple[str, str]]:
    vnic = node.vnic
    files = node.snapshot.oca
    network_from = (
        "rdma_network.json" if files is not None and files.rdma_network else "the driver's default, no file"
    )
    if files is not None and files.rdma_network and node.oca_config.network == DEFAULT_OCA_NETWORK:
        network_from = "rdma_network.json, or the default where the file cannot be used"
    given = "its host variable" if node.range_text != node.policy.child_range else "setting child_range"
    default = ", the default" if node.range_text == str(DEFAULT_CHILD_RANGE) else ""
    shape = node.shape.rdma_nics if node.shape is not None else None
    return [
        (
            "primary VNIC",
            "%s in %s   (imds:/vnics/)" % (vnic.address, vnic.subnet)
            if vnic is not None
            else node.why_no_vnic(),
        ),
        ("RDMA network", "%s   (%s)" % (node.oca_config.network, network_from)),
        (
            "address mode",
            "%s   (rdma_features_enable.json)" % (node.oca_config.address_mode or "not known, no file"),
        ),
        ("child range", "%s   (%s%s)" % (node.range_text, given, default)),
        (
            "RDMA NICs",
            "%d found%s"
            % (len(node.nics), ", %d in the shape table for %s" % (shape, node.shape_name) if shape else ""),
        ),
    ]


def _derivation(terminal: Terminal, fleet: Fleet, node: Node, places: list[Place], name: str) -> None:
    derived = [place for place in places if place.parent is not None]
    vnic = node.vnic
    parent = derived[0].parent if derived else None
    if parent is not None and vnic is not None:
        subnet = vnic.subnet
        terminal.heading("Steps")
        terminal.lines(
            "  block    = 2^(32 - %d) = %d" % (subnet.length, parent.block_size),
            "  position = %s - %s = %d" % (vnic.address, Address(4, subnet.network), parent.host_position),
            "  offset   = index * %d + %d" % (parent.block_size, parent.host_position),
            "  parent   = %s + offset" % Address(4, node.oca_config.network.network),
        )
        if name in CHILDREN and node.child_range is not None:
            terminal.lines("  child    = %s + offset" % Address(4, node.child_range.network))
        terminal.lines("")
        _table(terminal, fleet, node, places, name)
    for message in dict.fromkeys([place.error.message for place in places if place.error is not None]):
        terminal.lines("")
        terminal.paragraph(message)
    if name == "RDMA-RANGE-012":
        _subnets(terminal, fleet, node)


def _table(terminal: Terminal, fleet: Fleet, node: Node, places: list[Place], name: str) -> None:
    children = name in CHILDREN
    owners = _owners(fleet, node) if children else {}
    rows = []
    for place in places:
        parent, child = place.parent, place.child
        offset = str(parent.offset) if parent is not None else ""
        row = [place.nic.name, "" if place.index is None else str(place.index), offset]
        row += [str(parent.parent) if parent is not None else "", place.held_text]
        if children:
            me = "%s %s" % (node.name, place.nic.name)
            others = (
                [owner for owner in owners.get(child.child, ()) if owner != me] if child is not None else []
            )
            row += [str(child.child) if child is not None else "", ", ".join(others) or "nobody else"]
        else:
            inside = any(node.oca_config.network.contains(address) for address in place.held)
            row += ["yes" if inside else "no"]
        rows.append(row)
    head = ["NIC", "INDEX", "OFFSET", "PARENT", "HELD"]
    terminal.table(head + (["CHILD", "ALSO THE CHILD OF"] if children else ["IN THE RDMA NETWORK"]), rows)


def _owners(fleet: Fleet, node: Node) -> dict[Address, list[str]]:
    """Who has which child, in the RDMA network of a node."""
    owners: dict[Address, list[str]] = {}
    for other in fleet.networks.get(fleet.network_names[node.name], ()):
        for nic, child in other.children:
            if not isinstance(child, RdmaError):
                owners.setdefault(child.child, []).append("%s %s" % (other.name, nic.name))
    return owners


def _subnets(terminal: Terminal, fleet: Fleet, node: Node) -> None:
    network = fleet.network_names[node.name]
    nodes = fleet.networks.get(network, ())
    counts = Counter([str(other.vnic.subnet) if other.vnic is not None else "not known" for other in nodes])
    terminal.heading("Primary subnets in the RDMA network %s" % network)
    terminal.table(("SUBNET", "NODES"), [(subnet, str(number)) for subnet, number in counts.most_common()])


def _indexes(terminal: Terminal, places: list[Place]) -> None:
    terminal.heading("Steps")
    rows = []
    for place in places:
        how = "from its name" if nic_index_of_name(place.nic.name) is not None else "from its address"
        known = place.index is not None
        held = ", ".join(map(str, place.held))
        error = place.error.message if place.error is not None and not known else ""
        rows.append((place.nic.name, held, str(place.index) if known else "", how if known else error))
    terminal.table(("NIC", "ADDRESS", "INDEX", "HOW"), rows)


def _sizes(terminal: Terminal, node: Node) -> None:
    if node.child_range is None or node.vnic is None:
        return
    subnet, found = node.vnic.subnet, node.child_range
    terminal.heading("Steps")
    terminal.lines(
        "  subnet %s: %d addresses, so one NIC of all nodes needs %d" % (subnet, subnet.size, subnet.size),
        "  range  %s: %d addresses" % (found, found.size),
    )
    try:
        fits = rules.capacity(subnet.length, found.length).nics
        terminal.lines("  NICs that fit = min(16, 2^(%d - %d)) = %d" % (subnet.length, found.length, fits))
    except RdmaError as error:
        terminal.paragraph(error.message)
    for nics in dict.fromkeys([node.nic_count, 16]):
        length = rules.length_for(subnet.length, nics) if nics else None
        if length is not None:
            terminal.lines("  %d NICs need a /%d or larger" % (nics, length))


def _overlaps(terminal: Terminal, node: Node, name: str) -> None:
    found = node.child_range
    if found is None:
        return
    labels: dict[Prefix, list[str]] = {}
    for label, network in _compared(node, name):
        labels.setdefault(network, []).append(label)
    terminal.heading("Steps")
    terminal.lines("  child range %s: %s" % (found, _ends(found)), "")
    shown = sorted(labels, key=lambda network: not network.overlaps(found))
    terminal.table(
        ("NETWORK", "FIRST AND LAST", "OVERLAPS", "FROM"),
        [
            (
                str(network),
                _ends(network),
                "yes" if network.overlaps(found) else "no",
                listed(labels[network], 2),
            )
            for network in shown[:MOST]
        ],
    )
    if len(shown) > MOST:
        terminal.lines("  and %d more" % (len(shown) - MOST))
    if not shown:
        terminal.lines("  There is no network to compare with.")


def _ends(network: Prefix) -> str:
    return "%s - %s" % (Address(network.version, network.network), Address(network.version, network.last))


def _compared(node: Node, name: str) -> Iterable[tuple[str, Prefix]]:
    """The networks that an overlap check compares with, each with its label."""
    if name == "RDMA-RANGE-006":
        return [("RDMA network", node.oca_config.network)]
    if name == "RDMA-RANGE-007":
        return ranges.vcn_networks(node)
    if name == "RDMA-RANGE-008":
        return ranges.labelled(node, "pod_cidrs", "pod CIDR")
    if name == "RDMA-RANGE-009":
        return ranges.labelled(node, "service_cidrs", "service CIDR")
    if name == "RDMA-RANGE-010":
        return [pair for route in node.snapshot.routes or () for pair in _of_route(route)]
    return ranges.interface_networks(node)


def _of_route(route: Route) -> list[tuple[str, Prefix]]:
    """The route's network where it counts; what cannot be read is told by the verdict."""
    try:
        return [
            ("dev %s table %d" % (route.dev, route.table), net) for net in conflicts.route_networks([route])
        ]
    except RdmaError:
        return []
