# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What changed between result documents: new, flapping, still there, fixed.

Private to rdma.k8s: it may change with any release.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Optional

from .. import finding as model
from ..errors import RdmaError
from .digest import OPEN, VERDICTS, severity_rank, verdict, worst
from .document import ResultDocument
from .markdown import escape, table
from .summary import Lines
from .wording import count, flat, fold, natural

NEW, FLAPPING, STILL, GONE, FIXED = KINDS = ("new", "flapping", "still", "gone", "fixed")
"""Kinds of a change, in the order of reports.

``new``: open now, and not open when it was last told. ``flapping``: went from good to open and back, or the other way
round, at least once; that takes three documents. ``still``: open then and now. ``gone``: was open, and is now waived,
skipped or not judged any more. ``fixed``: was open and passes now.
"""

_MEANINGS = {
    NEW: "open now, good before",
    FLAPPING: "went to and fro",
    STILL: "open before and now",
    GONE: "was open, now waived, skipped or not judged",
    FIXED: "passes now",
}
_NOT_TOLD = ""


@dataclass(frozen=True)
class Change:
    """One check on one node. ``history`` has one verdict per document, empty where the node told nothing of it."""

    kind: str
    check: str
    node: str
    severity: str
    history: tuple[str, ...]
    message: str = ""

    @property
    def now(self) -> str:
        return self.history[-1]


@dataclass
class Comparison:
    """Changes up to the last document. ``lost`` nodes told something before and nothing now, ``back`` the reverse."""

    moments: list[str]
    titles: dict[str, str]
    changes: list[Change]
    appeared: list[str] = field(default_factory=list)
    vanished: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    back: list[str] = field(default_factory=list)
    settings: list[tuple[str, str, str]] = field(default_factory=list)

    def of(self, kind: str) -> list[Change]:
        """The changes of one kind."""
        return [change for change in self.changes if change.kind == kind]

    def exit_code(self, threshold: str = model.ERROR, strict: bool = False) -> int:
        """4 when a ``fail`` at or above ``threshold`` is new or flapping and there now, else 3 when ``strict`` and
        something that was told before is not told now, else 0."""
        worse = [change for change in self.changes if change.kind in (NEW, FLAPPING)]
        findings = [model.Finding(change.check, change.node, change.now, change.severity) for change in worse]
        findings += [model.Finding("", node, model.UNKNOWN) for node in self.lost + self.vanished]
        return model.exit_code([entry for entry in findings if entry.status in OPEN], threshold, strict)

    def to_dict(self) -> dict[str, Any]:
        """The comparison as plain data."""
        return {
            "kind": "rdma.k8s/comparison",
            "schema_version": 1,
            "documents": self.moments,
            "counts": {kind: len(self.of(kind)) for kind in KINDS},
            "changes": [
                {
                    "kind": change.kind,
                    "check": change.check,
                    "node": change.node,
                    "severity": change.severity,
                    "history": [found or None for found in change.history],
                    "message": change.message,
                }
                for change in self.changes
            ],
            "nodes": {
                "appeared": self.appeared,
                "vanished": self.vanished,
                "lost": self.lost,
                "back": self.back,
            },
            "settings": [{"name": name, "before": old, "after": new} for name, old, new in self.settings],
        }


def compare(documents: Iterable[ResultDocument]) -> Comparison:
    """Compare two or more documents; they are put in the order of their times.

    :raises RdmaError: ``comparison_needs_two``.
    """
    ordered = sorted(documents, key=lambda document: document.created_at)
    if len(ordered) < 2:
        raise RdmaError(
            "comparison_needs_two",
            "A comparison needs at least two result documents, found %d." % len(ordered),
            hint="Give an older and a newer result.json; a third one shows what is flapping.",
        )
    told = [_told(document) for document in ordered]
    nodes = [_nodes(document) for document in ordered]
    speaking = [{node for _check, node in entries} for entries in told]
    titles = {info.id: info.title for document in ordered for info in document.checks}
    latest = {(finding.check, finding.node): finding for finding in ordered[-1].findings}
    earlier = {key: entry for document in ordered[:-1] for key, entry in _by_key(document)}
    changes = []
    for key in {key: None for entries in told for key in entries}:
        check, node = key
        if node not in nodes[-1] or node not in speaking[-1]:
            continue  # the node is named once, as vanished or lost
        history = tuple([entries.get(key, _NOT_TOLD) for entries in told])
        kind = _kind(history)
        if kind is not None:
            finding = latest.get(key) or earlier[key]
            changes.append(Change(kind, check, node, finding.severity, history, finding.message))
    changes.sort(key=_order)
    before = set().union(*nodes[:-1])
    return Comparison(
        [document.created_at for document in ordered],
        titles,
        changes,
        appeared=_sorted(nodes[-1] - before),
        vanished=_sorted(nodes[-2] - nodes[-1]),
        lost=_sorted((speaking[-2] & nodes[-1]) - speaking[-1]),
        back=_sorted((speaking[-1] & nodes[-2]) - speaking[-2]),
        settings=_settings(ordered[-2], ordered[-1]),
    )


def _by_key(document: ResultDocument) -> Iterator[tuple[tuple[str, str], model.Finding]]:
    for finding in document.findings:
        yield (finding.check, finding.node), finding


def _told(document: ResultDocument) -> dict[tuple[str, str], str]:
    """The verdict of each check on each node that told something."""
    silent = {row.name for row in document.nodes if not row.reachable}
    told: dict[tuple[str, str], str] = {}
    for key, finding in _by_key(document):
        found = verdict(finding)
        if found != model.UNKNOWN or finding.node not in silent:
            told[key] = worst([told[key], found]) if key in told else found
    return told


def _nodes(document: ResultDocument) -> set[str]:
    return {row.name for row in document.nodes} | {finding.node for finding in document.findings}


def _kind(history: tuple[str, ...]) -> Optional[str]:
    now = history[-1]
    told = [found for found in history if found != _NOT_TOLD]
    open_ = [found in OPEN for found in told]
    if len([1 for one, other in zip(open_, open_[1:]) if one != other]) > 1:
        return FLAPPING
    earlier = told[:-1] if now != _NOT_TOLD else told
    was_open = bool(earlier) and earlier[-1] in OPEN
    if now in OPEN:
        return STILL if was_open else NEW
    if not was_open:
        return None
    return FIXED if now == model.PASS else GONE


def _order(change: Change) -> tuple[int, int, int, str, object]:
    rank = VERDICTS.index(change.now) if change.now in VERDICTS else len(VERDICTS)
    return KINDS.index(change.kind), rank, severity_rank(change.severity), change.check, natural(change.node)


def _sorted(names: Iterable[str]) -> list[str]:
    return sorted([name for name in names if name != model.FLEET], key=natural)


def _settings(old: ResultDocument, new: ResultDocument) -> list[tuple[str, str, str]]:
    """What was asked or used otherwise in the two documents, as name, before, after."""
    pairs = [
        ("target", old.target, new.target),
        ("child_range", old.child_range, new.child_range),
        ("collection_version", old.collection_version, new.collection_version),
    ]
    for name in sorted(set(old.settings) | set(new.settings)):
        pairs.append((name, old.settings.get(name, ""), new.settings.get(name, "")))
    added = {info.id for info in new.checks} - {info.id for info in old.checks}
    removed = {info.id for info in old.checks} - {info.id for info in new.checks}
    pairs.append(("checks", " ".join(sorted(removed)), " ".join(sorted(added))))
    return [pair for pair in pairs if pair[1] != pair[2]]


# Rendering


def _groups(comparison: Comparison, kind: str) -> list[list[Change]]:
    """The changes of a kind by check and verdict, in order."""
    groups: dict[tuple[str, str], list[Change]] = {}
    for change in comparison.of(kind):
        groups.setdefault((change.check, change.now), []).append(change)
    return list(groups.values())


def _node_lines(comparison: Comparison) -> list[tuple[str, list[str]]]:
    lines = [
        ("appeared", comparison.appeared),
        ("vanished from the run", comparison.vanished),
        ("told nothing this time", comparison.lost),
        ("tell again", comparison.back),
    ]
    return [(words, nodes) for words, nodes in lines if nodes]


def _headline(comparison: Comparison) -> str:
    parts = ["%d %s" % (len(comparison.of(kind)), kind) for kind in KINDS if comparison.of(kind)]
    return ", ".join(parts) or "Nothing changed"


def render_text(comparison: Comparison, width: int = 100, colour: bool = False, limit: int = 12) -> str:
    """The comparison for a terminal; the parameters are those of ``summary.render``."""
    lines = Lines(width, colour)
    text = lines.wrap_plain(
        "%s to %s, %s"
        % (
            flat(comparison.moments[0]),
            flat(comparison.moments[-1]),
            count(len(comparison.moments), "document"),
        )
    )
    text.append(_headline(comparison))
    for name, old, new in comparison.settings:
        text += lines.wrap_plain("changed: %s: %s -> %s" % (flat(name), flat(old) or "-", flat(new) or "-"))
    for words, nodes in _node_lines(comparison):
        text += ["", *lines.entry("unknown", "%s %s" % (count(len(nodes), "node"), words), "nodes")]
        text += lines.wrapped(fold([flat(node) for node in nodes]))
    for kind in KINDS:
        groups = _groups(comparison, kind)
        for group in groups[:limit]:
            first = group[0]
            title = flat(comparison.titles.get(first.check, ""))
            name = first.now if kind in (NEW, STILL, FLAPPING) else "pass"
            text += ["", *lines.entry(name, "%s %s" % (flat(first.check), title), kind)]
            fleet = first.node == model.FLEET
            where = "whole fleet" if fleet else fold([flat(change.node) for change in group])
            text += lines.wrapped(
                "%s, %s: %s"
                % (" > ".join([found or "-" for found in first.history]), count(len(group), "node"), where)
            )
            if kind in (NEW, FLAPPING, STILL):
                text += lines.wrapped(flat(first.message), most=2)
        if len(groups) > limit:
            text += ["", "And %s that are %s." % (count(len(groups) - limit, "more check"), kind)]
    return "\n".join([line.rstrip() for line in text]) + "\n"


def render_markdown(comparison: Comparison) -> Iterator[str]:
    """The comparison in Markdown, in pieces."""
    yield "# RDMA conformance: what changed\n\n**%s**\n\n" % escape(_headline(comparison))
    yield "From %s to %s, %s.\n\n" % (
        escape(comparison.moments[0]),
        escape(comparison.moments[-1]),
        count(len(comparison.moments), "document"),
    )
    if len(comparison.moments) == 2:
        yield "Two documents cannot show what is flapping; that takes a third one.\n\n"
    if comparison.settings:
        yield from table(
            ("Setting", "Before", "After"),
            [(escape(name), escape(old), escape(new)) for name, old, new in comparison.settings],
        )
    for words, nodes in _node_lines(comparison):
        yield "%s %s: %s\n\n" % (
            count(len(nodes), "node").capitalize(),
            words,
            escape(fold([flat(node) for node in nodes])),
        )
    for kind in KINDS:
        groups = _groups(comparison, kind)
        if groups:
            yield "## %s\n\n%s.\n\n" % (kind.capitalize(), _MEANINGS[kind].capitalize())
            rows = [
                (
                    escape(group[0].check),
                    escape(comparison.titles.get(group[0].check, "")),
                    " &gt; ".join([found or "-" for found in group[0].history]),
                    escape(fold([flat(change.node) for change in group])),
                    escape(group[0].message),
                )
                for group in groups
            ]
            yield from table(("Check", "Title", "History", "Nodes", "Found"), rows)
