# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Waivers that stand in a manifest. Private to rdma.k8s: it may change with any release.

As a comment they cover the field on their line, or below it, with all that it holds::

    # rdma-k8s: waive RDMA-WL-010 until=2027-06-30 owner=ml-platform the job uses no shared memory

A comment at a field of a list's entry also covers what is found at the entry itself: the value of a variable is where
people write it, and the variable is where the finding stands.

As an annotation they cover the object, or the pods of the template, that they annotate::

    rdma-k8s/waive-RDMA-WL-010: until=2027-06-30 the job uses no shared memory
"""

from __future__ import annotations

import datetime
import re
from bisect import bisect_right
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Optional

from ..finding import PASS, SKIP, WARN, WARNING, CheckInfo, Waiver
from ..kube import objects
from ..kube.documents import Directive, Document, outermost
from ..kube.pod_templates import POD_KINDS, templates
from .model import LintFinding, Path

ANNOTATION = "rdma-k8s/waive-"
"""What the key of an annotation begins with; the id of the rule follows."""

VALID = CheckInfo(
    "RDMA-TOOL-003",
    "Every waiver is valid and names an existing check",
    WARNING,
    "TOOL",
    "Renew or remove the waiver; correct the check's id.",
    "checks/tool.md#rdma-tool-003",
)
"""The check under which a waiver that cannot count is told; the same as in the catalogue of checks."""

_FORM = "# rdma-k8s: waive RULE [until=YYYY-MM-DD] [owner=NAME] REASON"
_RULE = re.compile(r"[A-Z]+-[A-Z]+-[0-9]{3}")
_SETTING = re.compile(r"(until|owner)=(\S*)", re.IGNORECASE)
_LOST_SETTING = re.compile(r"(?<![\w-])(until|owner) ?=", re.IGNORECASE)
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


@dataclass(frozen=True)
class Acceptance:
    """A waiver with what it covers: these rules, at this path and below, and at the list's entry that has it."""

    rules: Collection[str]
    path: Path
    waiver: Waiver
    entry: Optional[Path] = None

    def covers(self, finding: LintFinding) -> bool:
        """Whether a finding of the same document is waived by this."""
        found = tuple(finding.path)
        return finding.rule in self.rules and (found[: len(self.path)] == self.path or found == self.entry)


@dataclass(frozen=True)
class Waivers:
    """All waivers of some documents: what counts (by document), and what is wrong with the others."""

    accepted: dict[int, list[Acceptance]]
    problems: list[LintFinding]

    def of(self, finding: LintFinding) -> Optional[Waiver]:
        """The waiver of a finding, if it has one."""
        if finding.status in (PASS, SKIP):
            return None
        for acceptance in self.accepted.get(id(finding.document), ()):
            if acceptance.covers(finding):
                return acceptance.waiver
        return None


def read(documents: Sequence[Document], rules: Collection[str], today: str) -> Waivers:
    """The waivers of the documents.

    :param rules: ids that exist.
    :param today: ``YYYY-MM-DD``; a waiver whose last day is over does not count.
    """
    reader = _Reader(rules, today)
    comments = _comments(documents)
    for document in documents:
        for path, directive in comments.placed.get(id(document), ()):
            ids, text = _of_comment(directive.text)
            reader.take(document, path, ids, text, where="line %d" % directive.line, entry=_entry(path))
        for path, key, text in _annotations(document.content):
            reader.take(document, path, [key[len(ANNOTATION) :]], text, where="the annotation %s" % key)
    for document, directive in comments.lost:
        message = "The waiver in line %d stands at no field of an object" % directive.line
        reader.refuse(document, (), message, directive.text)
    return reader.found


@dataclass(frozen=True)
class _Comments:
    """Comments at fields, by document; and those at no field, with the object that they stand in or below."""

    placed: dict[int, list[tuple[Path, Directive]]]
    lost: list[tuple[Document, Directive]]


def _comments(documents: Sequence[Document]) -> _Comments:
    found = _Comments({}, [])
    texts: dict[int, list[Document]] = {}
    for document in documents:
        if document.directives:
            texts.setdefault(id(document.directives), []).append(document)
    for parts in texts.values():
        at_line: dict[int, list[Directive]] = {}
        for directive in parts[0].directives:
            at_line.setdefault(directive.applies_to, []).append(directive)
        lost = set(at_line)
        for document, fields in zip(parts, outermost(parts, at_line)):
            lost.difference_update(fields)
            placed = [(fields[line], directive) for line in sorted(fields) for directive in at_line[line]]
            if placed:
                found.placed[id(document)] = placed
        in_order = sorted(parts, key=lambda part: part.line)
        begins = [part.line for part in in_order]
        for line in sorted(lost):
            for directive in at_line[line]:
                found.lost.append((in_order[max(bisect_right(begins, directive.line) - 1, 0)], directive))
    return found


def _entry(path: Path) -> Optional[Path]:
    """The innermost entry of a list that has the field."""
    for end in range(len(path), 0, -1):
        if isinstance(path[end - 1], int):
            return path[:end]
    return None


class _InvalidError(Exception):
    """A waiver cannot count; the text says why."""


class _Reader:
    def __init__(self, rules: Collection[str], today: str) -> None:
        self.rules = rules
        self.today = today
        self.found = Waivers({}, [])

    def take(
        self,
        document: Document,
        path: Path,
        ids: Sequence[str],
        text: str,
        *,
        where: str,
        entry: Optional[Path] = None,
    ) -> None:
        try:
            waiver = self.waiver(ids, text, where)
        except _InvalidError as error:
            self.refuse(document, path, str(error), text)
            return
        accepted = self.found.accepted.setdefault(id(document), [])
        accepted.append(Acceptance(frozenset(ids), path, waiver, entry))

    def refuse(self, document: Document, path: Path, message: str, text: str) -> None:
        self.found.problems.append(
            LintFinding(
                VALID.id,
                WARN,
                VALID.severity,
                document,
                path,
                "%s, so it does not count." % message,
                VALID.hint,
                expected=_FORM,
                observed=text[:200],
            )
        )

    def waiver(self, ids: Sequence[str], text: str, where: str) -> Waiver:
        """The waiver, or an error that says why it cannot count."""
        if not ids or not all(map(_RULE.fullmatch, ids)):
            raise _InvalidError("The comment in %s is no waiver that can be understood" % where)
        for name in ids:
            if name not in self.rules:
                raise _InvalidError("The waiver in %s names %s, and no rule has this id" % (where, name))
        settings: dict[str, str] = {}
        reason: list[str] = []
        for word in text.split():
            match = _SETTING.fullmatch(word)
            if match is None:
                reason.append(word)
                continue
            name = match[1].lower()
            if name in settings:
                raise _InvalidError("The waiver in %s has %s= twice" % (where, name))
            settings[name] = match[2]
        lost = _LOST_SETTING.search(" ".join(reason))
        if lost is not None:
            raise _InvalidError("The waiver in %s has %s= in no word of its own" % (where, lost[1].lower()))
        if not settings.get("owner", "-"):
            raise _InvalidError("The waiver in %s has no name after owner=" % where)
        if not reason:
            raise _InvalidError("The waiver in %s gives no reason" % where)
        until = ""
        if "until" in settings:
            until = _date(settings["until"])
            if not until:
                raise _InvalidError("The waiver in %s has no date after until=" % where)
            if until < self.today:
                raise _InvalidError("The waiver in %s expired on %s" % (where, until))
        return Waiver(" ".join(reason), settings.get("owner", ""), until)


def _of_comment(text: str) -> tuple[Sequence[str], str]:
    """Ids and the rest of a comment; no ids when it is no waiver.

    Blanks may stand around the commas between ids. What follows a comma and has not the form of an id is the reason.
    """
    words = text.split()
    if not words or words[0] != "waive":
        return (), text
    end = 1
    while end < len(words):
        follows = words[end - 1].endswith(",") or words[end].startswith(",")
        form = all(_RULE.fullmatch(part.upper()) for part in words[end].split(",") if part)
        if end > 1 and not (follows and form):
            break
        end += 1
    return [name for name in ",".join(words[1:end]).split(",") if name], " ".join(words[end:])


def _annotations(content: object) -> Iterator[tuple[Path, str, str]]:
    holders: list[tuple[Path, object]] = [((), objects.mapping(content, "metadata"))]
    if objects.kind(content) in POD_KINDS:
        for template in templates(content):
            if len(template.path) > 1:
                holders.append((template.metadata_path[:-1], template.metadata))
    for path, metadata in holders:
        for key, value in objects.mapping(metadata, "annotations").items():
            if isinstance(key, str) and key.startswith(ANNOTATION):
                yield path, key, objects.text(value)


def _date(text: str) -> str:
    """The date as ``YYYY-MM-DD``, empty when it is none."""
    if not _DATE.fullmatch(text):
        return ""
    try:
        return datetime.date.fromisoformat(text).isoformat()
    except ValueError:
        return ""
