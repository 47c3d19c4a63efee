# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The outcome of a lint: findings with their waivers, what was looked at, exit code, result document.

Private to rdma.k8s: it may change with any release.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from fnmatch import fnmatchcase
from functools import cached_property
from typing import Any, NamedTuple, Optional

from .. import finding as model
from ..errors import RdmaError
from ..finding import CheckInfo, Detail, Finding, Waiver
from ..kube import objects
from ..kube.documents import Document
from ..net import quoted
from ..oke.shapes import DEFAULT_TABLE, Table, lookup
from ..report.document import NodeRow, ResultDocument
from . import engine, waivers
from .model import LintFinding
from .registry import RULES, Rule

KIND = "rdma.k8s/lint"
SCHEMA_VERSION = 1
WAIVED = "waived"
_PODS_ONLY = frozenset(("Pod",))
_QUIET = (model.PASS, model.SKIP)


class Judged(NamedTuple):
    """A finding and its waiver."""

    finding: LintFinding
    waiver: Optional[Waiver]

    @property
    def verdict(self) -> str:
        """The status, or ``waived``."""
        return WAIVED if self.waiver is not None else self.finding.status


@dataclass(frozen=True)
class Outcome:
    """What a lint found.

    :param documents: all that were given.
    :param judged: what every rule said, in the order of the documents.
    :param rules: the rules that were applied.
    :param problems: texts that could not be read; they were not judged.
    """

    documents: Sequence[Document]
    judged: Sequence[Judged]
    rules: Sequence[CheckInfo]
    problems: Sequence[RdmaError] = ()

    @cached_property
    def counts(self) -> dict[str, int]:
        """Number of findings by status, and of those that are waived."""
        counts = dict.fromkeys((*model.STATUSES, WAIVED), 0)
        for entry in self.judged:
            counts[entry.verdict] += 1
        return counts

    @cached_property
    def shown(self) -> list[Judged]:
        """What a person has to look at, waived findings included, by file and line."""
        order = {document.source: number for number, document in enumerate(reversed(self.documents))}
        wanted = [entry for entry in self.judged if entry.finding.status not in _QUIET]
        return sorted(wanted, key=lambda entry: (-order[entry.finding.document.source], entry.finding.line))

    @cached_property
    def looked_at(self) -> Counter[str]:
        """Objects for which at least one rule could say something, by kind."""
        told = {id(entry.finding.document) for entry in self.judged if entry.finding.status != model.SKIP}
        return Counter([_kind(document) for document in self.documents if id(document) in told])

    @cached_property
    def passed_over(self) -> Counter[str]:
        """Objects of which no rule knows the kind, or for which there is nothing to say, by kind."""
        return Counter([_kind(document) for document in self.documents]) - self.looked_at

    def exit_code(self, threshold: str = model.ERROR, strict: bool = False) -> int:
        """2 when a text could not be read; 4 when a failure at or above the threshold is not waived; with ``strict`` 3
        when something is unknown, or when no rule had an object to look at; else 0."""
        if self.problems:
            return model.EXIT_USAGE
        findings = [
            replace(entry.finding.to_finding(), waiver=entry.waiver)
            for entry in self.judged
            if entry.finding.status not in _QUIET
        ]
        code = model.exit_code(findings, threshold, strict)
        return model.EXIT_UNKNOWN if code == model.EXIT_GOOD and strict and not self.looked_at else code

    def sentence(self) -> str:
        """What is wrong, in short, with the most urgent finding."""
        counts = {status: self.counts[status] for status in (model.FAIL, model.UNKNOWN, model.WARN)}
        open_ = [entry.finding for entry in self.shown if entry.waiver is None]
        if not open_:
            return "The lint looked at nothing: no rule reads one of %d objects." % len(self.documents)
        first = min(open_, key=lambda finding: _ORDER[finding.status])
        where = "%s:%d" % (first.document.source, first.line) if first.line else first.document.source
        return "The lint found %s. The first: %s, %s at %s: %s" % (
            model.summarise(counts),
            first.rule,
            first.subject,
            where,
            " ".join([part for part in (first.message, first.hint) if part]),
        )

    def to_dict(self, threshold: str = model.ERROR, strict: bool = False) -> dict[str, Any]:
        """The outcome as plain data; what passes is only counted."""
        return {
            "kind": KIND,
            "schema_version": SCHEMA_VERSION,
            "exit_code": self.exit_code(threshold, strict),
            "counts": dict(self.counts),
            "looked_at": dict(sorted(self.looked_at.items())),
            "passed_over": dict(sorted(self.passed_over.items())),
            "findings": [finding_dict(entry) for entry in self.shown],
            "problems": [problem_dict(error) for error in self.problems],
        }

    def result(self, created_at: str, version: str, target: str = "", **exit_: Any) -> ResultDocument:
        """The result document: an object of a manifest stands where a node of a fleet stands.

        A rule that says something of several places of one object becomes one finding with a detail for each place.
        """
        grouped: dict[tuple[str, str], list[Judged]] = {}
        for entry in self.judged:
            grouped.setdefault((entry.finding.rule, entry.finding.subject), []).append(entry)
        names = dict.fromkeys([entry.finding.subject for entry in self.judged])
        return ResultDocument(
            created_at=created_at,
            collection_version=version,
            target=target,
            exit_code=self.exit_code(**exit_),
            checks=tuple(self.rules),
            nodes=tuple([NodeRow(name=name) for name in names]),
            findings=tuple([_one(entries) for entries in grouped.values()]),
        )


def lint(
    documents: Sequence[Document],
    *,
    today: str,
    select: Iterable[str] = (),
    ignore: Iterable[str] = (),
    problems: Sequence[RdmaError] = (),
    **context: Any,
) -> Outcome:
    """Judge documents.

    :param today: ``YYYY-MM-DD``, for waivers with a last day.
    :param select: only rules whose id is like one of these patterns; empty: all.
    :param ignore: not these.
    :param context: see :class:`~.model.Context`.
    :raises RdmaError: ``check_unknown`` when no rule is like a pattern, ``shape_unknown``, or what the options raise.
    """
    _require_shape(**context)
    chosen = _chosen(list(select), list(ignore))
    known = waivers.read(documents, RULES, today)
    owned = _owned(documents)
    findings = [
        finding
        for finding in engine.lint(documents, **context)
        if finding.rule in chosen
        and (id(finding.document) not in owned or RULES[finding.rule].kinds == _PODS_ONLY)
    ]
    if waivers.VALID.id in chosen:
        findings += known.problems
    judged = [Judged(finding, known.of(finding)) for finding in findings]
    return Outcome(documents, judged, list(chosen.values()), problems)


def _require_shape(shape: str = "", shapes: Table = DEFAULT_TABLE, **_others: Any) -> None:
    if shape and lookup(shape, shapes) is None:
        near = get_close_matches(shape, [entry.name for entry in shapes], 1)
        raise RdmaError(
            "shape_unknown",
            "The shape %s is not in the table of shapes%s"
            % (quoted(shape), "; did you mean %s?" % near[0] if near else "."),
            hint="Leave it out when the nodes are of another kind.",
            shape=shape,
        )


def _owned(documents: Sequence[Document]) -> frozenset[int]:
    """Documents that a controller made from another one among them: they are wrong where that one is.

    Only what a rule says of Pods alone, their state that is, is said of them.
    """
    known = {
        (objects.kind(document.content), objects.namespace(document.content), objects.name(document.content))
        for document in documents
    }
    found = set()
    for document in documents:
        content = document.content
        for _position, owner in objects.entries(objects.mapping(content, "metadata").get("ownerReferences")):
            if owner.get("controller") is True:
                called = (
                    objects.text(owner.get("kind")),
                    objects.namespace(content),
                    objects.text(owner.get("name")),
                )
                if called in known:
                    found.add(id(document))
    return frozenset(found)


def rules() -> dict[str, Rule]:
    """All rules about manifests by id, in the order of the ids."""
    return {name: RULES[name] for name in sorted(RULES)}


def catalogue() -> dict[str, CheckInfo]:
    """All rules of the lint, that about waivers included."""
    return {**{name: entry.info for name, entry in rules().items()}, waivers.VALID.id: waivers.VALID}


def _chosen(select: list[str], ignore: list[str]) -> dict[str, CheckInfo]:
    known = catalogue()
    for pattern in select + ignore:
        if not any(fnmatchcase(name, pattern) for name in known):
            near = get_close_matches(pattern, known, 1)
            raise RdmaError(
                "check_unknown",
                "No rule of the lint has an id like %r%s"
                % (pattern, "; did you mean %s?" % near[0] if near else "."),
                hint="Ids look like RDMA-WL-001; '*' stands for any text.",
            )
    return {
        name: info
        for name, info in known.items()
        if (not select or any(fnmatchcase(name, pattern) for pattern in select))
        and not any(fnmatchcase(name, pattern) for pattern in ignore)
    }


def finding_dict(entry: Judged) -> dict[str, Any]:
    """A finding as plain data."""
    finding, waiver = entry
    content = finding.document.content
    return {
        "rule": finding.rule,
        "status": finding.status,
        "severity": finding.severity,
        "source": finding.document.source,
        "line": finding.line or None,
        "object": {
            "kind": objects.kind(content),
            "namespace": objects.namespace(content),
            "name": objects.name(content),
        },
        "path": list(finding.path),
        "place": finding.place,
        "message": finding.message,
        "hint": finding.hint,
        "expected": finding.expected,
        "observed": finding.observed,
        "waiver": None if waiver is None else dict(vars(waiver)),
    }


def problem_dict(error: RdmaError) -> dict[str, Any]:
    """A text that could not be read, as plain data."""
    details: Mapping[str, Any] = error.details
    return {
        "code": error.code,
        "source": details.get("source", ""),
        "line": details.get("line") or None,
        "message": error.message,
        "hint": error.hint,
    }


def _kind(document: Document) -> str:
    return objects.kind(document.content) or "(no object)"


_ORDER = {status: number for number, status in enumerate(model.URGENCY)}


def _one(entries: list[Judged]) -> Finding:
    """One finding of a rule and an object: the most urgent one, those that are waived last."""
    entries = sorted(entries, key=lambda entry: (entry.waiver is not None, _ORDER[entry.finding.status]))
    first = entries[0]
    found = first.finding.to_finding()
    if len(entries) == 1:
        return replace(found, waiver=_whole(first.waiver))
    details = []
    for finding, waiver in entries:
        text = finding.message if waiver is None else "%s Waived: %s." % (finding.message, waiver.reason)
        evidence = finding.to_finding().evidence[0]
        details.append(Detail(evidence, finding.status, text, finding.expected, finding.observed))
    message = "%s And %d more." % (found.message, len(entries) - 1) if found.message else ""
    return replace(found, message=message, details=tuple(details), waiver=_whole(first.waiver))


def _whole(waiver: Optional[Waiver]) -> Optional[Waiver]:
    """A waiver as reports print it: "waived until EXPIRES by OWNER"."""
    if waiver is None:
        return None
    return replace(waiver, owner=waiver.owner or "the manifest", expires=waiver.expires or "further notice")
