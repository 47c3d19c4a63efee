# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""``rdma-k8s plan``: the children of a fleet for one range. Private to rdma.k8s: it may change with any release.

A list of 10,000 nodes takes less than a second (B1), so nothing that a list does not need is imported here.
"""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, Optional

from ..core import json_text
from ..core.errors import RdmaError
from ..core.finding import EXIT_FAIL, EXIT_GOOD
from ..core.net import Prefix, parse_prefix
from ..core.oke.child_range import validate
from ..core.oke.constants import DEFAULT_CHILD_RANGE, DEFAULT_OCA_NETWORK, MAX_NICS, RULE_PRIORITY, TABLE_BASE
from ..core.oke.fleet import FleetNode
from ..core.oke.networks import NetworkDocument, parse
from ..core.oke.range_check import LabelledNetwork, RangeReport, check_fleet, of_document
from ..core.report.wording import count, flat, fold
from .terminal import Terminal

KIND = "rdma.k8s/plan"
SHOWN_NODES = 200
"""How many names of nodes a conflict shows before it only counts them."""


@dataclass
class LeftOut:
    """A node, or one NIC of it, that gets no child, and why."""

    node: str
    nic: str
    reason: str


@dataclass
class Network:
    """The nodes of one RDMA network. ``nics`` has the names of NICs that are not called rdmaN, by node and index."""

    name: str
    nodes: list[FleetNode]
    nics: dict[tuple[str, int], str] = field(default_factory=dict)


@dataclass
class Wanted:
    """What to plan, and what is left out of it."""

    child_range: Prefix
    networks: list[Network]
    in_use: list[LabelledNetwork] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)
    subnet_only: bool = False
    not_known: list[str] = field(default_factory=list)


def run(arguments: Namespace, terminal: Terminal) -> int:
    """Returns 0, with ``--exit-code`` 4 when there is a conflict or a NIC gets no child."""
    wanted = _wanted(arguments)
    if arguments.networks is not None:
        document = _document(arguments.networks)
        wanted.in_use += of_document(document)
        wanted.not_known += [entry.message for entry in document.unread]
    terminal.doing("planning the children of all nodes")
    reports = [(net, check_fleet(wanted.child_range, net.nodes, wanted.in_use)) for net in wanted.networks]
    clean = not wanted.left_out and not any(report.problems for _net, report in reports)
    if arguments.format == "json":
        for piece in _json(wanted, reports, not arguments.summary):
            terminal.write(piece)
    elif arguments.format == "csv":
        for piece in _csv(wanted, reports):
            terminal.write(piece)
        _warn(wanted, reports)
    else:
        if not arguments.summary and not wanted.subnet_only:
            for piece in _text(reports):
                terminal.write(piece)
        _summary(terminal, wanted, reports)
    return EXIT_FAIL if arguments.exit_code and not clean else EXIT_GOOD


# Input


def _wanted(arguments: Namespace) -> Wanted:
    nics = _nic_count(arguments.nics)
    subnet = _ipv4("--subnet", arguments.subnet)
    oca_network = _ipv4("--oca-network", arguments.oca_network)
    if arguments.source is not None and arguments.nodes is not None:
        raise RdmaError("usage", "Give snapshots or --nodes, not both.", hint="See 'rdma-k8s plan --help'.")
    if arguments.source is not None:
        return _from_snapshots(arguments, nics, subnet, oca_network)
    if arguments.nodes is None and subnet is None:
        raise RdmaError(
            "usage",
            "There is nothing to plan.",
            hint="Give recorded snapshots, a list of nodes with --nodes, or only --subnet to see whether a range fits.",
        )
    child_range: Any = DEFAULT_CHILD_RANGE if arguments.range is None else arguments.range
    in_use: list[LabelledNetwork] = []
    not_known: list[str] = []
    if arguments.policy is not None or arguments.set:
        from . import plan_fleet  # noqa: PLC0415 (a list alone needs no policy)

        policy = plan_fleet.policy_of(arguments)
        child_range = policy.child_range if arguments.range is None else arguments.range
        in_use = plan_fleet.in_use(policy)
        not_known = [entry.message for entry in policy.around.unread]
    indexes = range(nics or MAX_NICS)
    oca_text = str(oca_network or DEFAULT_OCA_NETWORK)
    valid = validate(child_range)
    if arguments.nodes is None and subnet is not None:
        first = str(subnet.masked()).split("/", maxsplit=1)[0]
        pseudo = FleetNode("(any)", first, str(subnet), indexes, oca_text)
        return Wanted(valid, [Network("", [pseudo])], in_use, subnet_only=True, not_known=not_known)
    lines = _lines(arguments.nodes)
    nodes = list(_listed(lines, arguments.nodes, subnet, indexes, oca_text))
    return Wanted(valid, [Network("", nodes)], in_use, not_known=not_known)


def _from_snapshots(
    arguments: Namespace, nics: Optional[int], subnet: Optional[Prefix], oca_network: Optional[Prefix]
) -> Wanted:
    from . import plan_fleet  # noqa: PLC0415 (a list of nodes must not wait for it)

    policy, groups, left_out = plan_fleet.groups(arguments)
    valid = validate(policy.child_range if arguments.range is None else arguments.range)
    changes: dict[str, Any] = {}
    if nics is not None:
        changes["nics"] = tuple(range(nics))
    if subnet is not None:
        changes["subnet"] = str(subnet)
    if oca_network is not None:
        changes["oca_network"] = str(oca_network)
    networks = [
        Network(name, [replace(node, **changes) for node in nodes] if changes else nodes, names)
        for name, nodes, names in groups
    ]
    not_known = [entry.message for entry in policy.around.unread]
    return Wanted(valid, networks, plan_fleet.in_use(policy), left_out, not_known=not_known)


def _document(path: str) -> NetworkDocument:
    """The networks of a file, as ``oke_network_info`` returned them."""
    try:
        with open(path, encoding="utf-8") as stream:
            held = json_text.loads(stream.read())
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it is not JSON (%s)" % error
        raise RdmaError(
            "networks_unreadable",
            "The document of networks %s cannot be read: %s." % (path, reason),
            hint="Write the 'networks' that rdma.k8s.oke_network_info returned into it, as JSON.",
        ) from error
    return parse(held)


def _nic_count(text: Optional[str]) -> Optional[int]:
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 4 and 1 <= int(text) <= MAX_NICS):
        raise RdmaError(
            "nic_count",
            "--nics must be a number from 1 to %d, found %r." % (MAX_NICS, text),
            hint="The profile serves at most %d NICs of a node." % MAX_NICS,
        )
    return int(text)


def _ipv4(option: str, text: Optional[str]) -> Optional[Prefix]:
    if text is None:
        return None
    prefix = parse_prefix(text)
    if prefix.version != 4:
        raise RdmaError(
            "prefix_not_ipv4", "%s %s is not IPv4." % (option, prefix), hint="Give an IPv4 prefix."
        )
    return prefix


def _lines(path: str) -> list[str]:
    try:
        if path == "-":
            return sys.stdin.read().splitlines()
        with open(path, encoding="utf-8") as stream:
            return stream.read().splitlines()
    except (OSError, ValueError) as error:
        reason = (
            "it is not UTF-8" if isinstance(error, UnicodeDecodeError) else getattr(error, "strerror", None)
        )
        raise RdmaError(
            "nodes_unreadable",
            "The list of nodes %s cannot be read: %s." % (path, reason or error),
            hint="Give a text file with a line NAME ADDRESS [SUBNET] for each node.",
        ) from error


def _listed(
    lines: Sequence[str], path: str, subnet: Optional[Prefix], indexes: range, oca_network: str
) -> Iterator[FleetNode]:
    default = "" if subnet is None else str(subnet)
    seen: set[str] = set()
    for number, line in enumerate(lines, 1):
        words = line.partition("#")[0].replace(",", " ").split()
        if not words:
            continue
        if len(words) not in (2, 3):
            raise _bad_line(path, number, "must be NAME ADDRESS [SUBNET], found %d words" % len(words))
        own = words[2] if len(words) == 3 else default
        if not own:
            raise _bad_line(path, number, "names no subnet for %s, and --subnet is not given" % words[0])
        if words[0] in seen:
            raise _bad_line(path, number, "names %s a second time" % words[0])
        seen.add(words[0])
        yield FleetNode(words[0], words[1], own, indexes, oca_network)
    if not seen:
        raise RdmaError(
            "no_nodes", "The list of nodes %s is empty." % path, hint="One line NAME ADDRESS [SUBNET] a node."
        )


def _bad_line(path: str, number: int, problem: str) -> RdmaError:
    return RdmaError(
        "nodes_malformed",
        "%s, line %d %s." % (path, number, problem),
        hint="Example: gpu-1 10.140.77.19 10.140.64.0/19",
        line=number,
    )


# Rows


class _Halves(dict[int, str]):
    """The text of two octets, made when it is first needed."""

    def __missing__(self, value: int) -> str:
        self[value] = text = "%d.%d" % (value >> 8, value & 255)
        return text


Reports = Sequence[tuple[Network, RangeReport]]
Row = tuple[str, str, int, str, str]
USUAL_NAMES = ["rdma%d" % index for index in range(MAX_NICS)]


def _by_node(net: Network, report: RangeReport) -> Iterator[list[Row]]:
    """For each node its rows: node, name of the NIC, index, parent, child (without length)."""
    plan, half = report.plan, _Halves()
    if plan is None:
        return
    base = plan.child_range.network
    for node, position, grid in plan.slots:
        names = (
            [net.nics.get((node, index), usual) for index, usual in enumerate(USUAL_NAMES)]
            if net.nics
            else USUAL_NAMES
        )
        parents, children = grid.oca_base + position, base + position
        rows = []
        for index, start in zip(grid.indexes, grid.offsets):
            parent, child = parents + start, children + start
            rows.append(
                (
                    node,
                    names[index],
                    index,
                    half[parent >> 16] + "." + half[parent & 0xFFFF],
                    half[child >> 16] + "." + half[child & 0xFFFF],
                )
            )
        yield rows


def _text(reports: Reports) -> Iterator[str]:
    nodes = [flat(node.name) for net, _report in reports for node in net.nodes]
    names = [flat(name) for net, _report in reports for name in net.nics.values()]
    wide, nic = max([4, *map(len, nodes)]), max([6, *map(len, names)])
    yield (
        "NODE".ljust(wide) + "  " + "NIC".ljust(nic) + "  INDEX  PARENT           CHILD               TABLE\n"
    )
    middles = ["  %-5d  " % index for index in range(MAX_NICS)]
    for net, report in reports:
        end = "/%d" % report.plan.child_range.length if report.plan is not None else ""
        ends = ["  %d\n" % (TABLE_BASE + index) for index in range(MAX_NICS)]
        for rows in _by_node(net, report):  # plain concatenation: the fastest of several forms (B1)
            first = flat(rows[0][0]).ljust(wide) + "  " if rows else ""
            yield "".join(
                [
                    first
                    + name.ljust(nic)
                    + middles[index]
                    + parent.ljust(17)
                    + (child + end).ljust(18)
                    + ends[index]
                    for _node, name, index, parent, child in rows
                ]
            )


def _csv(wanted: Wanted, reports: Reports) -> Iterator[str]:
    yield "node,nic,index,parent,child,table,rule\n"
    length = wanted.child_range.length
    for net, report in reports:
        for rows in _by_node(net, report):
            first = _csv_text(rows[0][0]) if rows else ""
            yield "".join(
                [
                    f"{first},{_csv_text(name)},{index},{parent},{child}/{length},{TABLE_BASE + index},"
                    f"{_rule(child, index)}\n"
                    for _node, name, index, parent, child in rows
                ]
            )


def _csv_text(text: str) -> str:
    """A field as RFC 4180 writes it; a text that a spreadsheet would take for a formula is marked as text."""
    if text[:1] in ("=", "+", "-", "@", "\t"):
        text = "'" + text
    return '"%s"' % text.replace('"', '""') if any(mark in text for mark in ',"\r\n') else text


def _rule(child: str, index: int) -> str:
    return "%d: from %s lookup %d" % (RULE_PRIORITY, child, TABLE_BASE + index)


def _json(wanted: Wanted, reports: Reports, rows: bool) -> Iterator[str]:
    head = {
        "kind": KIND,
        "schema_version": 1,
        "child_range": str(wanted.child_range),
        "networks": [_report_json(wanted, net, report) for net, report in reports],
        "not_known": list(dict.fromkeys(wanted.not_known)),
        "left_out": [
            {"node": entry.node, "nic": entry.nic or None, "reason": entry.reason}
            for entry in wanted.left_out
        ],
    }
    yield json.dumps(head, indent=1)[:-2]
    yield ',\n "children": ['
    before = "\n  "
    if rows and not wanted.subnet_only:
        length = wanted.child_range.length
        for net, report in reports:
            for node, name, index, parent, child in chain.from_iterable(_by_node(net, report)):
                row = {
                    "node": node,
                    "nic": name,
                    "index": index,
                    "parent": parent,
                    "child": "%s/%d" % (child, length),
                    "table": TABLE_BASE + index,
                    "rule": _rule(child, index),
                }
                yield before + json.dumps(row)
                before = ",\n  "
    yield "\n ]\n}\n" if before.startswith(",") else "]\n}\n"


def _report_json(wanted: Wanted, net: Network, report: RangeReport) -> dict[str, Any]:
    document = report.to_dict()
    errors = report.plan.errors if report.plan is not None else ()
    document["name"] = net.name or None
    if wanted.subnet_only:  # the one node is only there to ask with
        document.pop("children")
        return {**document, "problems": [{**entry, "nodes": []} for entry in document["problems"]]}
    document["without_child"] = [
        {
            "node": entry.node,
            "index": entry.nic_index,
            "code": entry.error.code,
            "message": entry.error.message,
        }
        for entry in errors
    ]
    return document


# Summary


def _warn(wanted: Wanted, reports: Reports) -> None:
    """CSV holds rows only; what is wrong goes to standard error."""
    for _net, report in reports:
        for problem in report.problems:
            sys.stderr.write("rdma-k8s: %s\n" % flat(problem.message))
    for sentence in dict.fromkeys(wanted.not_known):
        sys.stderr.write("rdma-k8s: not known: %s\n" % flat(sentence))
    for entry in wanted.left_out:
        sys.stderr.write(
            "rdma-k8s: %s: %s\n" % (flat(("%s %s" % (entry.node, entry.nic)).strip()), flat(entry.reason))
        )


def _summary(terminal: Terminal, wanted: Wanted, reports: Reports) -> None:
    for number, (net, report) in enumerate(reports):
        if number or not wanted.subnet_only:
            terminal.lines("")
        _network_summary(terminal, wanted, net, report)
    if not reports:
        terminal.lines("No node gets an IPv4 child.")
    for sentence in dict.fromkeys(wanted.not_known):
        terminal.lines("")
        terminal.paragraph(sentence, indent=" " * 10, first=_label("UNKNOWN"), colour="unknown")
    reasons: dict[tuple[str, str], list[str]] = {}
    for entry in wanted.left_out:
        reasons.setdefault((entry.nic, entry.reason), []).append(flat(entry.node))
    for (nic, reason), names in reasons.items():
        who = "%s of %s" % (flat(nic), _nodes(names)) if nic else _nodes(names)
        terminal.lines("")
        terminal.paragraph(
            "%s: %s" % (who, reason), indent=" " * 10, first=_label("LEFT OUT"), colour="unknown"
        )


def _network_summary(terminal: Terminal, wanted: Wanted, net: Network, report: RangeReport) -> None:
    head = "Child range %s" % wanted.child_range
    if net.name:
        head += ", RDMA network %s" % flat(net.name)
    if not wanted.subnet_only and report.plan is not None:
        head += ": %s, %s" % (count(len(net.nodes), "node"), count(report.plan.count, "child", "children"))
        if report.plan.errors:
            head += ", %s without" % count(len(report.plan.errors), "NIC")
    terminal.paragraph(head, indent="", colour="strong")
    for entry in report.capacity:
        length = "no range holds them" if entry.length is None else "a /%d holds them" % entry.length
        terminal.paragraph(
            "Subnet %s: %s a node needed, %d fit; %s"
            % (entry.subnet, count(entry.needed, "NIC"), entry.held or 0, length)
        )
    if report.plan is not None and report.plan.count:
        terminal.paragraph("Rule of each child: %d: from CHILD lookup TABLE" % RULE_PRIORITY)
    for problem in report.problems:
        terminal.lines("")
        terminal.paragraph(problem.message, indent=" " * 10, first=_label("CONFLICT"), colour="fail")
        if problem.nodes and not wanted.subnet_only:
            terminal.paragraph(_nodes([flat(name) for name in problem.nodes]), indent=" " * 10)
        if problem.hint:
            terminal.paragraph("To do: " + problem.hint, indent=" " * 10)
    if not report.problems:
        terminal.paragraph("No conflict.")
        return
    for proposal in report.proposals:
        free = ", ".join(map(str, proposal.ranges)) or "none found"
        terminal.lines("")
        text = "%s, each holds %s of every node" % (free, count(proposal.nics, "NIC"))
        terminal.paragraph(text, indent=" " * 10, first=_label("FREE"), colour="pass")


def _label(text: str) -> str:
    return text.ljust(10)


def _nodes(names: Sequence[str]) -> str:
    known = list(dict.fromkeys(names))
    return (
        "%s: %s" % (count(len(known), "node"), fold(known))
        if len(known) <= SHOWN_NODES
        else count(len(known), "node")
    )
