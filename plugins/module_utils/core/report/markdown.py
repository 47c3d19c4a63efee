# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The report in Markdown: overview, matrix of nodes and areas, findings.

Private to rdma.k8s: it may change with any release.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Optional

from .. import finding as model
from . import addresses
from .digest import OPEN, VERDICTS, WAIVED, Digest, Group, NodeDigest, digest
from .document import ResultDocument
from .wording import count, flat, fold

MARKS = {model.FAIL: "✕", model.UNKNOWN: "?", model.WARN: "!", WAIVED: "~", model.PASS: "✓", model.SKIP: "-"}
MEANINGS = {
    model.FAIL: "fail: measured, and wrong",
    model.UNKNOWN: "unknown: could not be told; never counted as good",
    model.WARN: "warn: works, but look at it",
    WAIVED: "waived: a person accepted it until a date",
    model.PASS: "pass",
    model.SKIP: "skip: does not apply, with the reason",
}
_SPECIAL = re.compile(
    r"[\\`*\[\]<>|~&#@$]|(?<![0-9A-Za-z])_|_(?![0-9A-Za-z])|(?<=:)//|(?<=www)\.", re.IGNORECASE
)
_ENTITIES = {"@": "&#64;", "&": "&amp;", "<": "&lt;", ">": "&gt;", "//": "\\/\\/"}
_MOST_ROWS = 50


def escape(text: str) -> str:
    """``text`` as one line of Markdown that shows just it: it makes no markup, table cell, link, mention or HTML.

    It must not stand at the beginning of a line, where a digit or a dash could still begin a list.
    """
    return _SPECIAL.sub(lambda match: _ENTITIES.get(match.group(), "\\" + match.group()), flat(text).strip())


def chunks(document: ResultDocument, found: Optional[Digest] = None) -> Iterator[str]:
    """The text in pieces.

    :param found: the digest of the document, when the caller has it.
    """
    found = found or digest(document)
    yield from _overview(document, found)
    yield from _matrix(found)
    yield from _findings(found)
    yield from _address_faults(document)
    yield from _settings(document)


def table(header: Iterable[str], rows: Iterable[Iterable[str]]) -> Iterator[str]:
    """The lines of a table whose cells are Markdown already."""
    names = list(header)
    yield "| %s |\n" % " | ".join(names)
    yield "|%s\n" % (" --- |" * len(names))
    for row in rows:
        yield "| %s |\n" % " | ".join(row)
    yield "\n"


def headline(found: Digest) -> str:
    """The whole report in one sentence."""
    hosts = found.hosts_by_verdict()
    total = sum([len(names) for names in hosts.values()])
    bad = sum([len(hosts.get(name, ())) for name in OPEN])
    if bad:
        return "%d of %s %s attention." % (bad, count(total, "node"), "needs" if bad == 1 else "need")
    if [group for group in found.groups if group.verdict in OPEN]:
        named = {
            words
            for group in found.groups
            for words in [found.words_for(group.nodes)]
            if group.verdict in OPEN
        }
        return "No single node is wrong, but %s is: see below." % (
            "the cluster" if named == {"the cluster"} else "the fleet"
        )
    return "Nothing to do: %s judged." % count(total, "node")


def _overview(document: ResultDocument, found: Digest) -> Iterator[str]:
    yield "# RDMA conformance report\n\n"
    hosts = found.hosts_by_verdict()
    yield "**%s**\n\n" % headline(found)
    facts = [
        ("Judged", escape(document.created_at)),
        ("Target", escape(document.target)),
        ("Child range", escape(document.child_range)),
        ("Collection", escape(document.collection_version and "rdma.k8s " + document.collection_version)),
        ("Checks", str(len(found.checks))),
        ("Exit code", str(document.exit_code)),
    ]
    yield from table(("", ""), [fact for fact in facts if fact[1]])
    yield from table(
        ("Result", "Nodes", "Findings", "Meaning"),
        [
            (
                "%s %s" % (MARKS[name], name),
                str(len(hosts.get(name, ()))),
                str(found.counts[name]),
                MEANINGS[name],
            )
            for name in VERDICTS
        ],
    )


def _matrix(found: Digest) -> Iterator[str]:
    yield "## Nodes and areas\n\n"
    yield "A cell shows the most urgent result and how many checks have it.\n\n"
    lines: dict[tuple[str, ...], list[NodeDigest]] = {}
    for node in found.nodes:
        cells = tuple([_cell(node.areas.get(area, {})) for area in found.areas])
        own = () if node.verdict() in (model.PASS, model.SKIP) else (node.name,)
        lines.setdefault((MARKS[node.verdict()], *cells, *own), []).append(node)
    rows = []
    for key, nodes in lines.items():
        name = escape(fold([flat(node.name) for node in nodes]))
        rows.append(
            (name if len(nodes) == 1 else "%s (%d)" % (name, len(nodes)), *key[: len(found.areas) + 1])
        )
    yield from table(("Node", "", *[escape(area) for area in found.areas]), rows)


def _cell(counts: dict[str, int]) -> str:
    for name in VERDICTS:
        if name in counts:
            return "%s %d" % (MARKS[name], counts[name])
    return ""


def _findings(found: Digest) -> Iterator[str]:
    shown = [group for group in found.groups if group.verdict in OPEN]
    yield "## What to act on\n\n"
    if not shown and not found.silent:
        yield "Nothing.\n\n"
    for reason, nodes in found.silent.items():
        yield "### %s %s told nothing\n\n" % (MARKS[model.UNKNOWN], count(len(nodes), "node"))
        yield "Nodes: %s\n\n" % escape(fold([flat(node) for node in nodes]))
        yield "Reason: %s\n\n" % escape(reason)
    for group in shown:
        yield from _group(group, found.words_for(group.nodes))
    waived = [group for group in found.groups if group.verdict == WAIVED]
    if waived:
        yield "## Waived\n\n"
        rows = [
            (
                escape(finding.check),
                escape(finding.node),
                escape(finding.status),
                escape(finding.message),
                escape(finding.waiver.reason),
                escape(finding.waiver.owner),
                escape(finding.waiver.expires),
            )
            for group in waived
            for finding in group.findings
            if finding.waiver is not None
        ]
        yield from table(("Check", "Node", "Status", "Found", "Reason", "Owner", "Until"), rows)


def _group(group: Group, told: str) -> Iterator[str]:
    info = group.info
    yield "### %s %s %s\n\n" % (MARKS[group.verdict], escape(info.id), escape(info.title))
    where = (
        "the " + told.removeprefix("the ")
        if told
        else "%s: %s"
        % (
            count(len(group.nodes), "node"),
            escape(fold([flat(node) for node in group.nodes])),
        )
    )
    yield "**%s**, %s, %s\n\n" % (group.verdict, escape(group.severity), where)
    if info.hint:
        yield "To do: %s\n\n" % escape(info.hint)
    if info.doc:
        yield "Remedy page: %s\n\n" % escape(info.doc)
    rows = [
        (escape(finding.node), escape(finding.message), escape(finding.expected), escape(finding.observed))
        for finding in group.findings[:_MOST_ROWS]
    ]
    yield from table(("Node", "Found", "Expected", "Observed"), rows)
    details = [
        (
            escape(finding.node),
            escape(detail.subject),
            detail_text(detail),
            escape(detail.expected),
            escape(detail.observed),
        )
        for finding in group.findings[:_MOST_ROWS]
        for detail in finding.details
        if detail.status not in (model.PASS, model.SKIP)
    ]
    if details:
        yield from table(("Node", "Part", "Found", "Expected", "Observed"), details[:_MOST_ROWS])
    rest = len(group.findings) - _MOST_ROWS
    if rest > 0:
        yield "%s in `result.json`.\n\n" % count(rest, "more node")
    elif len(details) > _MOST_ROWS:
        yield "%s in `result.json`.\n\n" % count(len(details) - _MOST_ROWS, "more part")


def detail_text(detail: model.Detail) -> str:
    """Status and message of an atomic result."""
    return escape("%s: %s" % (detail.status, detail.message) if detail.message else detail.status)


def _address_faults(document: ResultDocument) -> Iterator[str]:
    faults = [
        place
        for node in addresses.places(document.nodes).values()
        for place in node
        if place.state not in (addresses.GOOD, addresses.UNTOLD)
    ]
    if not faults:
        return
    yield "## Addresses that are not as derived\n\n"
    rows = [
        (
            escape(place.node),
            escape(place.nic.name or str(place.nic.index)),
            escape(place.nic.parent),
            escape(place.nic.observed),
            escape(place.sentence()),
        )
        for place in faults[: 4 * _MOST_ROWS]
    ]
    yield from table(("Node", "NIC", "Derived", "Found", "What is wrong"), rows)
    if len(faults) > len(rows):
        yield "%s in `report.html`.\n\n" % count(len(faults) - len(rows), "more NIC")


def _settings(document: ResultDocument) -> Iterator[str]:
    if document.settings:
        yield "## Settings of this run\n\n"
        rows = [(escape(key), escape(value)) for key, value in sorted(document.settings.items())]
        yield from table(("Setting", "Value"), rows)
