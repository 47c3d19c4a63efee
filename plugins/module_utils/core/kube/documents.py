# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Manifests as documents that know on which line each of their fields stands.

Private to rdma.k8s: it may change with any release.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from . import json_reader, yaml_reader
from .read_text import Duplicate, Path, TextError, TextValue, malformed

LIVE = "cluster"
"""The source of an object that was read from an API server."""
STDIN = "-"
"""The source of what came from standard input."""

_DIRECTIVE = re.compile(r"(?:^|[ \t])#[ \t]*rdma-k8s:[ \t]*(.*?)[ \t]*\r?$")
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
        self.lines = lines
        self.prefix = prefix

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
        values = list(_values(text))
        directives = _directives(text)
        for value in values:
            document = Document(value.value, source, value.line, value.lines, value.duplicates, directives)
            found += _unfolded(document, 0)
    except TextError as error:
        raise malformed(text, source, error) from error
    return found


def live(objects: Sequence[Any], source: str = LIVE) -> list[Document]:
    """Documents of objects that are parsed already; lists are unfolded as :func:`parse` does."""
    return [part for content in objects for part in _unfolded(Document(content, source), 0)]


def _values(text: str) -> Iterator[TextValue]:
    if text.lstrip(" \t\r\n")[:1] in ("{", "["):
        try:
            return iter(json_reader.values(text))
        except TextError:
            pass  # a flow mapping of YAML looks alike; what it says of the text is what counts
    return yaml_reader.values(text)


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
    for position, entry in enumerate(items):
        path = ("items", position)
        bare = kind != "List" and isinstance(entry, dict) and "kind" not in entry
        part = replace(
            document,
            content={**named, **entry} if bare else entry,
            line=document.line_of(path),
            lines=_Below(document.lines, path) if document.line else document.lines,
            duplicates=[
                replace(duplicate, path=duplicate.path[2:])
                for duplicate in document.duplicates
                if duplicate.path[:2] == path
            ],
        )
        found += _unfolded(part, depth + 1)
    return found


def _directives(text: str) -> Sequence[Directive]:
    if "rdma-k8s:" not in text:
        return ()
    found = []
    lines = text.split("\n")
    for number, line in enumerate(lines):
        match = _DIRECTIVE.search(line) if "rdma-k8s:" in line else None
        if match is None:
            continue
        target = number
        if not line[: match.start()].strip():  # nothing else on the line
            target += 1
            while target < len(lines) and lines[target].strip()[:1] in ("", "#"):
                target += 1
        found.append(Directive(number + 1, target + 1, match[1]))
    return tuple(found)
