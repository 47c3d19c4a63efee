# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Manifests as documents that know on which line each of their fields stands.

Private to rdma.k8s: it may change with any release.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from . import json_reader, yaml_reader
from .read_text import MARK, Duplicate, Path, TextError, TextValue, malformed

LIVE = "cluster"
"""The source of an object that was read from an API server."""
STDIN = "-"
"""The source of what came from standard input."""

_DIRECTIVE = re.compile(r"(?:^|[ \t])#[ \t]*rdma-k8s:")
_LIST_DEPTH = 8


@dataclass(frozen=True)
class Directive:
    """A comment ``# rdma-k8s: TEXT``.

    :param line: where it stands.
    :param applies_to: the line that it speaks of: its own, or when nothing else stands there, the next with content.
    """

    line: int
    applies_to: int
    text: str


@dataclass(frozen=True, eq=False)
class Document:
    """One object of a manifest, or of an API server.

    :param content: the parsed object; anything that YAML can express, a mapping in good cases. Do not change it: parts
        that stand in the text once can be in the object several times (aliases).
    :param source: name of the file, ``-`` for standard input, ``cluster`` for a live object.
    :param line: 1-based line on which the object starts; 0 when it comes from no file.
    :param lines: path (keys and positions) to the line of the key or entry; can be empty.
    :param duplicates: keys that stand twice in one mapping; the last one is in ``content``.
    :param directives: comments for rdma-k8s in the lines of the file.
    """

    content: Any
    source: str
    line: int = 0
    lines: Mapping[Path, int] = field(default_factory=dict)
    duplicates: Sequence[Duplicate] = ()
    directives: Sequence[Directive] = ()

    def line_of(self, path: Sequence[Any]) -> int:
        """The line of a path, or of its nearest ancestor that has one."""
        lines = self.lines
        found = tuple(path)
        while found:
            line = lines.get(found)
            if line is not None:
                return line
            found = found[:-1]
        return self.line


class _Below(Mapping[Path, int]):
    """The lines of a part of a document, seen from that part."""

    def __init__(self, lines: Mapping[Path, int], prefix: Path) -> None:
        self.lines: Mapping[Path, int] = lines
        self.prefix: Path = prefix
        if isinstance(lines, _Below):
            self.lines = lines.lines
            self.prefix = lines.prefix + prefix

    def __getitem__(self, path: Path) -> int:
        return self.lines[self.prefix + path]

    def get(self, key: Path, default: Any = None) -> Any:
        return self.lines.get(self.prefix + key, default)

    def __iter__(self) -> Iterator[Path]:
        depth = len(self.prefix)
        return (path[depth:] for path in self.lines if path[:depth] == self.prefix)

    def __len__(self) -> int:
        return sum(1 for _path in self)


def parse(text: str, source: str) -> list[Document]:
    """The documents of a text: YAML with any number of documents, or JSON.

    Empty documents are left out; the entries of a ``kind: List`` become documents of their own, each with its lines.

    :param source: what to call the text in messages and in the documents.
    :raises RdmaError: ``manifest_malformed`` (``details["line"]``: where), ``manifest_template`` when the text is a
        template that must be rendered first, ``library_missing``.
    """
    text = text[1:] if text.startswith("\ufeff") else text
    found = []
    try:
        values, has_comments = _values(text)
        quoted = [span for value in values for span in value.quoted]
        directives = _directives(text, quoted) if has_comments else ()
        for value in values:
            document = Document(value.value, source, value.line, value.lines, value.duplicates, directives)
            found += _unfolded(document, 0)
    except TextError as error:
        raise malformed(text, source, error) from error
    return found


def live(objects: Sequence[Any], source: str = LIVE) -> list[Document]:
    """Documents of objects that are parsed already; lists are unfolded as :func:`parse` does."""
    return [part for content in objects for part in _unfolded(Document(content, source), 0)]


def outermost(documents: Iterable[Document], wanted: Collection[int]) -> list[dict[int, Path]]:
    """For each document: the outermost field that begins on each of the wanted lines, where one does.

    All documents must be of one text. The lines of the text are looked through once, however many documents it has.
    """
    found: list[dict[int, Path]] = []
    holders: dict[int, tuple[Mapping[Path, int], dict[Path, dict[int, Path]]]] = {}
    for document in documents:
        fields: dict[int, Path] = {}
        found.append(fields)
        lines: Mapping[Path, int] = document.lines
        prefix: Path = ()
        if isinstance(document.lines, _Below):
            lines, prefix = document.lines.lines, document.lines.prefix
        holders.setdefault(id(lines), (lines, {}))[1][prefix] = fields
        if document.line in wanted:
            fields[document.line] = ()
    for lines, parts in holders.values():
        depths = sorted({len(prefix) for prefix in parts}, reverse=True)
        for path, line in lines.items():
            if line not in wanted:
                continue
            for depth in depths:
                part = parts.get(path[:depth]) if len(path) >= depth else None
                if part is not None:
                    if line not in part or len(path) - depth < len(part[line]):
                        part[line] = path[depth:]
                    break
    return found


def _values(text: str) -> tuple[list[TextValue], bool]:
    """The values, and whether the text can have comments."""
    if text.lstrip(" \t\r\n")[:1] in ("{", "["):
        try:
            return json_reader.values(text), False
        except TextError:
            pass  # a flow mapping of YAML looks alike; what it says of the text is what counts
    return list(yaml_reader.values(text)), True


def _unfolded(document: Document, depth: int) -> list[Document]:
    content = document.content
    if not isinstance(content, dict):
        return [document]
    kind, items = content.get("kind"), content.get("items")
    if not isinstance(kind, str) or not kind.endswith("List") or not isinstance(items, list):
        return [document]
    if depth == _LIST_DEPTH:
        raise TextError(document.line, "lists are nested deeper than %d levels" % _LIST_DEPTH)
    found = []
    named = {"kind": kind[: -len("List")]}  # a list of one kind names it once
    if "apiVersion" in content:
        named["apiVersion"] = content["apiVersion"]
    duplicates: dict[Path, list[Duplicate]] = {}
    for duplicate in document.duplicates:
        below = replace(duplicate, path=duplicate.path[2:])
        duplicates.setdefault(duplicate.path[:2], []).append(below)
    for position, entry in enumerate(items):
        path = ("items", position)
        bare = kind != "List" and isinstance(entry, dict) and "kind" not in entry
        part = replace(
            document,
            content={**named, **entry} if bare else entry,
            line=document.line_of(path),
            lines=_Below(document.lines, path) if document.line else document.lines,
            duplicates=duplicates.get(path, ()),
        )
        found += _unfolded(part, depth + 1)
    return found


def _directives(text: str, quoted: Sequence[tuple[int, int]]) -> Sequence[Directive]:
    """The comments for rdma-k8s; what looks like one within a text in quotes or a block is none.

    :param quoted: where such texts begin and end, in order.
    """
    if MARK not in text:
        return ()
    found = []
    begins = [begin for begin, _end in quoted]
    lines = text.split("\n")
    offset = len(text) + 1
    below = len(lines)  # the next line with content
    for number in range(len(lines) - 1, -1, -1):
        line = lines[number]
        offset -= len(line) + 1
        if MARK in line:
            for match in _DIRECTIVE.finditer(line):
                before = bisect_right(begins, offset + match.end()) - 1
                if before >= 0 and offset + match.end() <= quoted[before][1]:
                    continue
                target = number if line[: match.start()].strip() else below
                found.append(Directive(number + 1, target + 1, line[match.end() :].strip(" \t\r")))
                break
        if line.strip()[:1] not in ("", "#"):
            below = number
    return tuple(reversed(found))
