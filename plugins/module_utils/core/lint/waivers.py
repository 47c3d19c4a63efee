# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Waivers that stand in a manifest. Private to rdma.k8s: it may change with any release.

As a comment they cover the field on their line, or below it, with all that it holds::

    # rdma-k8s: waive RDMA-WL-010 until=2027-06-30 owner=ml-platform the job uses no shared memory

As an annotation they cover the object, or the pods of the template, that they annotate::

    rdma-k8s/waive-RDMA-WL-010: until=2027-06-30 the job uses no shared memory
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Optional

from ..finding import PASS, SKIP, WARN, WARNING, CheckInfo, Waiver
from ..kube import objects
from ..kube.documents import Directive, Document
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
_SETTING = re.compile(r"(until|owner)=(\S*)")


@dataclass(frozen=True)
class Acceptance:
    """A waiver with what it covers: these rules, at this path and below."""

    rules: Collection[str]
    path: Path
    waiver: Waiver

    def covers(self, finding: LintFinding) -> bool:
        """Whether a finding of the same document is waived by this."""
        return finding.rule in self.rules and tuple(finding.path[: len(self.path)]) == self.path


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
    placed: set[tuple[str, Directive]] = set()
    for document in documents:
        for directive in document.directives:
            path = _path_at(document, directive.applies_to)
            if path is not None:
                placed.add((document.source, directive))
                ids, text = _of_comment(directive.text)
                reader.take(document, path, ids, text, where="line %d" % directive.line)
        for path, key, text in _annotations(document.content):
            reader.take(document, path, [key[len(ANNOTATION) :]], text, where="the annotation %s" % key)
    for document in documents:
        for directive in document.directives:
            if (document.source, directive) not in placed:
                placed.add((document.source, directive))
                reader.refuse(
                    document,
                    (),
                    "The waiver in line %d stands at no field of an object" % directive.line,
                    directive.text,
                )
    return reader.found


class _InvalidError(Exception):
    """A waiver cannot count; the text says why."""


class _Reader:
    def __init__(self, rules: Collection[str], today: str) -> None:
        self.rules = rules
        self.today = today
        self.found = Waivers({}, [])

    def take(self, document: Document, path: Path, ids: Sequence[str], text: str, *, where: str) -> None:
        try:
            waiver = self.waiver(ids, text, where)
        except _InvalidError as error:
            self.refuse(document, path, str(error), text)
            return
        accepted = self.found.accepted.setdefault(id(document), [])
        accepted.append(Acceptance(frozenset(ids), path, waiver))

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
        settings = {"until": "", "owner": ""}
        reason: list[str] = []
        for word in text.split():
            match = None if reason else _SETTING.fullmatch(word)
            if match is not None:
                settings[match[1]] = match[2]
            else:
                reason.append(word)
        if not reason:
            raise _InvalidError("The waiver in %s gives no reason" % where)
        if settings["until"]:
            settings["until"] = until = _date(settings["until"])
            if not until:
                raise _InvalidError("The waiver in %s has no date after until=" % where)
            if until < self.today:
                raise _InvalidError("The waiver in %s expired on %s" % (where, until))
        return Waiver(" ".join(reason), settings["owner"], settings["until"])


def _path_at(document: Document, line: int) -> Optional[Path]:
    """The outermost field that begins on a line."""
    if line == document.line:
        return ()
    paths = [path for path, there in document.lines.items() if there == line]
    return min(paths, key=len) if paths else None


def _of_comment(text: str) -> tuple[Sequence[str], str]:
    """Ids and the rest of a comment; no ids when it is no waiver."""
    word, _space, rest = text.partition(" ")
    if word != "waive":
        return (), text
    ids, _space, rest = rest.strip().partition(" ")
    return [name for name in ids.split(",") if name], rest


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
    try:
        return datetime.date.fromisoformat(text).isoformat()
    except ValueError:
        return ""
