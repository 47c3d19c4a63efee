# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A result document as one HTML file that works offline, without any request.

Private to rdma.k8s: it may change with any release.

The data stands in three ``application/json`` blocks, which the browser does not run:

* ``data-head``: areas, checks, nodes (most urgent first) and, per node, one letter per check. Enough for the matrix.
* ``data-findings``: each text once, each different result once (a record), and per node the record of each check. The
  name of the node is U+0001 in the texts. Parts of results that pass are left out; ``result.json`` has them.
* ``data-rails``: the addresses of each NIC and their state.

Everything a node said is hostile. The content security policy lets in only the style sheet and the script of this
package, known by their hashes; the script makes elements and text nodes and never markup.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterator
from typing import Any, Optional

from .. import finding as model
from ..errors import RdmaError
from . import addresses
from .digest import NO_RESULT, OPEN, WAIVED, Digest, digest, verdict
from .document import NicRow, ResultDocument
from .html_script import SCRIPT
from .html_style import STYLE
from .markdown import headline
from .wording import clean, count, flat, fold

LETTERS = {
    model.FAIL: "f",
    model.UNKNOWN: "u",
    model.WARN: "w",
    WAIVED: "a",
    model.PASS: "p",
    model.SKIP: "s",
}
NODE = "\x01"
_STATIC_ROWS = 200
_ADDRESS = re.compile(r"(?:https?://|(?![A-Za-z][A-Za-z0-9+.-]*:))[!-~]*\Z")
"""A web address or a relative path, without spaces and controls, which browsers remove before they read a scheme."""

_ICONS = {
    model.FAIL: '<circle cx="8" cy="8" r="7.2" fill="currentColor"/>'
    '<path d="M5.4 5.4l5.2 5.2m0-5.2l-5.2 5.2" stroke="var(--surface)" stroke-width="1.8" stroke-linecap="round"/>',
    model.UNKNOWN: '<circle cx="8" cy="8" r="6.4" fill="none" stroke="currentColor" stroke-width="1.6" '
    'stroke-dasharray="3 2"/><path d="M6.2 6.3a1.85 1.85 0 1 1 2.7 1.6c-.6.3-.9.7-.9 1.3" fill="none" '
    'stroke="currentColor" stroke-width="1.5" stroke-linecap="round"/>'
    '<circle cx="8" cy="11.3" r=".95" fill="currentColor"/>',
    model.WARN: '<path d="M8 1.6 15 14H1z" fill="none" stroke="currentColor" stroke-width="1.6" '
    'stroke-linejoin="round"/>'
    '<path d="M8 6v3.6" stroke="currentColor" stroke-width="1.6" stroke-linecap="round"/>'
    '<circle cx="8" cy="11.8" r=".95" fill="currentColor"/>',
    WAIVED: '<path d="M3.5 15V1.8M3.5 2.2h8.8l-2 3.1 2 3.1H3.5" fill="none" stroke="currentColor" stroke-width="1.6" '
    'stroke-linejoin="round" stroke-linecap="round"/>',
    model.PASS: '<path d="M2.8 8.6l3.5 3.6 7-8" fill="none" stroke="currentColor" stroke-width="1.9" '
    'stroke-linecap="round" stroke-linejoin="round"/>',
    model.SKIP: '<path d="M4 8h8" stroke="currentColor" stroke-width="1.7" stroke-linecap="round"/>',
}
_HEADINGS = {
    model.FAIL: "with failures",
    model.UNKNOWN: "not fully told",
    model.WARN: "with warnings",
    WAIVED: "with waived findings only",
    model.PASS: "good",
    model.SKIP: "with nothing to judge",
}
_ENTITIES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;"})


def escape(text: str) -> str:
    """``text`` for the content of an element or for an attribute in quotes, on one line."""
    return flat(text).translate(_ENTITIES)


def data(name: str, value: Any) -> str:
    """A block of JSON that no text inside can leave."""
    text = json.dumps(value, separators=(",", ":"))
    text = text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    return '<script type="application/json" id="%s">%s</script>\n' % (name, text)


def hash_source(text: str) -> str:
    """The source expression with which a content security policy lets just this text in."""
    return "'sha256-%s'" % base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")


def chunks(document: ResultDocument, docs: str = "", found: Optional[Digest] = None) -> Iterator[str]:
    """The text in pieces.

    :param docs: where the remedy pages are (a web address, or a relative path), for links to them.
    :param found: the digest of the document, when the caller has it.
    :raises RdmaError: ``docs_address_refused`` when that is no http(s) address and no relative path.
    """
    found = found or digest(document)
    order = [node.name for node in found.nodes]
    places, findings = _findings(document, found, order)
    yield _top(document, found)
    yield _static(document, found)
    yield _PAGE
    yield _foot(document)
    yield data("data-head", _head(found, places, docs_address(docs)))
    yield "<script>%s</script>\n" % SCRIPT
    yield data("data-findings", findings)
    yield data("data-rails", _rails(document, found))
    yield "</body>\n</html>\n"


def docs_address(docs: str) -> str:
    """Where the remedy pages are, with a slash at its end; see :func:`chunks`."""
    if not _ADDRESS.match(docs):
        raise RdmaError(
            "docs_address_refused",
            "The address of the documentation must be http, https or a relative path, found %r." % docs,
            found=docs,
        )
    return docs if not docs or docs.endswith("/") else docs + "/"


def _head(found: Digest, places: list[str], docs: str) -> dict[str, Any]:
    area_index = {area: index for index, area in enumerate(found.areas)}
    names = [node.name for node in found.nodes]
    return {
        "areas": [flat(area) for area in found.areas],
        "severities": _severities(found),
        "checks": [
            [
                flat(info.id),
                flat(info.title),
                flat(info.severity),
                area_index[info.area],
                clean(info.hint),
                flat(info.doc),
            ]
            for info in found.checks.values()
        ],
        "nodes": [
            [
                flat(node.name),
                LETTERS[node.verdict()],
                node.reachable,
                "" if row is None else flat(row.reason),
                *[flat(text) for text in (("",) * 5 if row is None else _row_texts(row))],
            ]
            for node in found.nodes
            for row in (node.row,)
        ],
        "places": places,
        "noNodes": {
            names.index(name): [words, "all nodes together" if name == model.FLEET else "cluster"]
            for name, words in found.no_nodes.items()
            if name in names
        },
        "noResult": NO_RESULT,
        "docs": docs,
    }


def _row_texts(row: Any) -> tuple[str, ...]:
    return row.shape, row.network, row.fabric, row.collected_at, row.snapshot


def _severities(found: Digest) -> list[str]:
    """All severities of the document, the ones of the model first."""
    others = {flat(group.severity) for group in found.groups} | {
        flat(i.severity) for i in found.checks.values()
    }
    return [*model.SEVERITIES, *sorted(others - set(model.SEVERITIES))]


class _Strings:
    """Numbers for texts, each text kept once and harmless."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}

    def __call__(self, text: str) -> int:
        number = self.numbers.get(text)
        if number is None:
            number = self.numbers[text] = len(self.numbers)
        return number

    def list(self) -> list[str]:
        """The texts by number; only the sign for the node is kept of what is not harmless."""
        return [NODE.join([clean(part) for part in text.split(NODE)]) for text in self.numbers]


def _findings(document: ResultDocument, found: Digest, order: list[str]) -> tuple[list[str], dict[str, Any]]:
    """Per node the letters of all checks, and the data of ``data-findings``."""
    column = {check: index for index, check in enumerate(found.checks)}
    severities = {name: index for index, name in enumerate(_severities(found))}
    cells: dict[str, list[Any]] = {name: [-1] * len(column) for name in order}
    letters: list[str] = []
    strings = _Strings()
    records: dict[Any, int] = {}
    rows: list[list[Any]] = []
    for entry in document.findings:
        node, name = entry.node, verdict(entry)
        details = () if name in (model.PASS, model.SKIP) else entry.details
        key = (
            name,
            entry.severity,
            _neutral(entry.message, node),
            _neutral(entry.expected, node),
            _neutral(entry.observed, node),
            entry.evidence,
            details,
            entry.waiver if name == WAIVED else None,
        )
        number = records.get(key)
        if number is None:
            number = records[key] = len(rows)
            rows.append(_record(key, severities, strings))
            letters.append(name)
        line, place = cells[node], column[entry.check]
        if line[place] == -1:
            line[place] = number
        elif isinstance(line[place], list):
            line[place].append(number)
        else:
            line[place] = [line[place], number]
    lookup = [LETTERS[name] for name in letters]
    places = ["".join([_letter(number, lookup) for number in cells[name]]) for name in order]
    return places, {"strings": strings.list(), "records": rows, "cells": [cells[name] for name in order]}


def _letter(number: Any, lookup: list[str]) -> str:
    if isinstance(number, list):
        found = {lookup[one] for one in number}
        return next(letter for letter in LETTERS.values() if letter in found)
    return "." if number == -1 else lookup[number]


def _neutral(text: str, node: str) -> str:
    text = text.replace(NODE, "\ufffd") if NODE in text else text
    return text.replace(node, NODE) if len(node) > 2 and node in text else text


def _record(key: tuple[Any, ...], severities: dict[str, int], strings: _Strings) -> list[Any]:
    name, severity, message, expected, observed, evidence, details, waiver = key
    parts = [
        [
            strings(text.replace(NODE, "\ufffd"))
            for text in (one.subject, one.status, one.message, one.expected, one.observed)
        ]
        for one in details
    ]
    record: list[Any] = [
        LETTERS[name],
        severities.get(flat(severity), len(model.SEVERITIES) - 1),
        strings(message),
        strings(expected),
        strings(observed),
        [strings(text.replace(NODE, "\ufffd")) for text in evidence],
        parts,
    ]
    if waiver is not None:
        record.append(
            [strings(text.replace(NODE, "\ufffd")) for text in (waiver.reason, waiver.owner, waiver.expires)]
        )
    return record


def _rails(document: ResultDocument, found: Digest) -> dict[str, Any]:
    """The data of ``data-rails``. The network with the most wrong addresses, then with the most nodes, comes first."""
    strings = _Strings()
    states = addresses.places(document.nodes)
    ranks: dict[str, list[int]] = {}
    for row in document.nodes:
        if row.nics:
            rank = ranks.setdefault(row.network, [0, 0])
            rank[0] -= len(
                [1 for place in states[row.name] if addresses.GOOD < place.state < addresses.UNTOLD]
            )
            rank[1] -= 1
    networks = sorted(ranks, key=lambda name: (ranks[name], name))
    rows, network = [], []
    for node in found.nodes:
        nics = node.row.nics if node.row is not None else ()
        rows.append([_rail(place, strings) for place in states.get(node.name, ())])
        network.append(networks.index(node.row.network) if node.row is not None and nics else -1)
    return {
        "strings": strings.list(),
        "networks": [flat(name) or "network not told" for name in networks],
        "network": network,
        "nodes": rows,
    }


def _rail(place: addresses.Place, strings: _Strings) -> list[Any]:
    nic: NicRow = place.nic
    row: list[Any] = [
        nic.index,
        strings(nic.name.replace(NODE, "\ufffd")),
        strings(nic.device.replace(NODE, "\ufffd")),
        flat(nic.parent),
        0 if nic.observed == nic.parent else flat(nic.observed),
        flat(nic.child),
        place.state,
    ]
    if place.others:
        row.append([strings(text.replace(NODE, "\ufffd")) for text in place.others])
    return row


# --- the parts that need no script ------------------------------------------------------------------------------


def _top(document: ResultDocument, found: Digest) -> str:
    policy = "; ".join(
        [
            "default-src 'none'",
            "script-src %s" % hash_source(SCRIPT),
            "style-src %s" % hash_source(STYLE),
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
        ]
    )
    hosts = found.hosts_by_verdict()
    facts = [
        ("Judged", document.created_at),
        ("Target", document.target),
        ("Child range", document.child_range),
        ("Checks", str(len(found.checks))),
        ("Exit code", str(document.exit_code)),
    ]
    return _HEAD % {
        "policy": policy.translate(_ENTITIES),
        "title": escape("RDMA conformance: %s" % headline(found)),
        "style": STYLE,
        "icons": "".join(
            [
                '<symbol id="icon-%s" viewBox="0 0 16 16">%s</symbol>' % (name, shape)
                for name, shape in _ICONS.items()
            ]
        ),
        "version": escape(document.collection_version),
        "headline": escape(headline(found)),
        "bar": _bar(hosts),
        "legend": "".join(
            [
                "<li>%s %s</li>" % (_icon(name), escape("%d %s" % (len(nodes), _HEADINGS[name])))
                for name, nodes in hosts.items()
            ]
        ),
        "facts": "".join(
            ["<div><dt>%s</dt><dd>%s</dd></div>" % (key, escape(value)) for key, value in facts if value]
        ),
    }


def _icon(name: str) -> str:
    return '<svg class="icon v-%s" aria-hidden="true"><use href="#icon-%s"/></svg>' % (name, name)


def _bar(hosts: dict[str, list[str]]) -> str:
    """Shares of the nodes as a picture; the legend below it says the same in words."""
    total = sum([len(nodes) for nodes in hosts.values()])
    parts, left = [], 0.0
    for name, nodes in hosts.items():
        width = 1000.0 * len(nodes) / total
        parts.append(
            '<rect class="v-%s" fill="currentColor" x="%.1f" width="%.1f" height="10"/>'
            % (name, left, max(width - (2 if left + width < 999 else 0), 3))
        )
        left += width
    return (
        '<svg class="bar" viewBox="0 0 1000 10" preserveAspectRatio="none" aria-hidden="true">%s</svg>'
        % "".join(parts)
    )


def _static(document: ResultDocument, found: Digest) -> str:
    """What a reader sees where scripts are off, as in the artefact views of some CI servers."""
    rows = []
    for reason, nodes in found.silent.items():
        rows.append(("unknown", count(len(nodes), "node") + " told nothing", reason, nodes))
    for group in found.groups:
        if group.verdict in OPEN:
            message = group.findings[0].message
            text = "%s To do: %s" % (message, group.info.hint) if group.info.hint else message
            rows.append((group.verdict, "%s %s" % (group.info.id, group.info.title), text, group.nodes))
    lines = [
        '<tr><td>%s %s</td><th scope="row">%s</th><td>%s</td><td>%s</td></tr>'
        % (_icon(name), name, escape(title), escape(text), escape(fold([flat(node) for node in nodes])))
        for name, title, text, nodes in rows[:_STATIC_ROWS]
    ]
    more = len(rows) - len(lines)
    return _NOSCRIPT % {
        "rows": "\n".join(lines) or '<tr><td colspan="4">Nothing. All is as it must be.</td></tr>',
        "more": "<p>%s in report.md.</p>" % count(more, "more finding") if more > 0 else "",
    }


def _foot(document: ResultDocument) -> str:
    rows = [
        '<tr><th scope="row">%s</th><td class="mono">%s</td></tr>' % (escape(key), escape(value))
        for key, value in sorted(document.settings.items())
    ]
    settings = ""
    if rows:
        settings = "<details><summary>Settings of this run</summary>%s</details>" % (
            '<table class="plain"><tbody>%s</tbody></table>' % "".join(rows)
        )
    return _FOOT % {"settings": settings, "collection": escape(document.collection_version)}


_HEAD = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="%(policy)s">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<meta name="color-scheme" content="light dark">
<link rel="icon" href="data:,">
<title>%(title)s</title>
<style>%(style)s</style>
</head>
<body>
<svg hidden>%(icons)s</svg>
<a class="skip-link" href="#nodes">Skip to the nodes</a>
<header class="wrap top">
<p class="brand"><svg viewBox="0 0 24 24" aria-hidden="true" fill="none" stroke="currentColor" stroke-width="2"
 stroke-linecap="round"><path d="M4 6h10m-10 6h16m-16 6h10"/><circle cx="17" cy="6" r="2"/>
<circle cx="17" cy="18" r="2"/></svg>
<b>RDMA conformance</b> <span>rdma.k8s %(version)s</span></p>
<h1>%(headline)s</h1>
%(bar)s
<ul class="legend">%(legend)s</ul>
<dl class="facts">%(facts)s</dl>
</header>
"""

_NOSCRIPT = """<noscript><div class="wrap"><h2>What to act on</h2>
<p>The matrix, the address map and the filters need scripts, which are off here.</p>
<table class="plain"><thead><tr><th scope="col">Result</th><th scope="col">Check</th><th scope="col">Found</th>
<th scope="col">Nodes</th></tr></thead><tbody>
%(rows)s
</tbody></table>%(more)s</div></noscript>
"""

_PAGE = """<div class="tools no-print"><div class="wrap" role="search" aria-label="Filter">
<div class="search"><label class="hidden" for="search">Search nodes, checks and messages</label>
<input id="search" type="search" placeholder="Search nodes, checks, messages" autocomplete="off" spellcheck="false">
<kbd aria-hidden="true">/</kbd></div>
<div class="chips" id="verdicts" role="group" aria-label="Results"></div>
<div class="chips" id="areas" role="group" aria-label="Areas"></div>
<p class="found"><span id="found" role="status"></span>
<button type="button" class="link" id="reset" hidden>Clear the filter</button></p>
</div></div>
<main class="wrap">
<section id="nodes" aria-labelledby="nodes-title" tabindex="-1">
<div class="section-head"><h2 id="nodes-title">Nodes</h2>
<p class="no-print">Most urgent first. A cell counts the results that ask for attention, or else those that pass.</p>
</div>
<div class="card"><div class="scroll">
<table class="matrix" id="matrix" role="grid" aria-labelledby="nodes-title" hidden>
<thead><tr><th scope="col">Node</th></tr></thead><tbody></tbody></table>
<p class="empty" id="no-node" hidden>No node matches the filter.</p>
<button type="button" class="more" id="more-rows" hidden></button>
</div></div>
</section>
<section aria-labelledby="groups-title">
<div class="section-head"><h2 id="groups-title">What to act on</h2><p id="groups-note"></p></div>
<div class="card" id="groups"></div>
</section>
<section aria-labelledby="map-title" id="map-section" hidden>
<div class="section-head"><h2 id="map-title">Address map</h2><p id="map-note"></p>
<label class="no-print">RDMA network <select id="network"></select></label></div>
<div class="card"><div id="map"></div></div>
<ul class="keys" aria-hidden="true">
<li><i class="key"></i>as derived: the parent's address, below it the child's</li>
<li><i class="key k2"></i><svg class="icon v-fail"><use href="#icon-fail"/></svg>other address</li>
<li><i class="key k1"></i><svg class="icon v-fail"><use href="#icon-fail"/></svg>no address</li>
<li><i class="key k3"></i><svg class="icon v-warn"><use href="#icon-warn"/></svg>address used twice</li>
<li><i class="key k4"></i>not derived</li>
<li><i class="key k5">?</i>not told</li></ul>
<details id="map-faults" hidden></details>
</section>
<section aria-labelledby="checks-title" class="no-print">
<div class="section-head"><h2 id="checks-title">Checks</h2></div>
<div class="card"><details><summary>All checks of this run and how many nodes have which result</summary>
<div class="scroll" tabindex="0" role="group" aria-labelledby="checks-title">
<table class="plain" id="checks"></table></div>
</details></div>
</section>
</main>
<dialog id="drawer" aria-labelledby="drawer-title">
<div class="drawer-head"><div><h2 id="drawer-title" tabindex="-1"></h2><div id="drawer-facts"></div></div>
<button type="button" class="close" id="drawer-close" aria-label="Close">\u2715</button></div>
<div class="drawer-body" id="drawer-body" tabindex="0" role="group" aria-labelledby="drawer-title"></div>
</dialog>
"""

_FOOT = """<footer class="wrap">%(settings)s
<p>Made by rdma.k8s %(collection)s from <code>result.json</code>, which holds every result in full. This page is one
file and makes no request.</p></footer>
"""
