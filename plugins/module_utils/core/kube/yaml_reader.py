# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""YAML as kubectl reads it, with the line of every path. Private to rdma.k8s: it may change with any release.

The values are built from the events of the parser: nothing in a text can name code, scalars become what kubectl makes
of them (YAML 1.1 booleans, no dates, no base 60), and what aliases add is bounded.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, Optional

from ... import deps
from .read_text import MARK, MAX_DEPTH, Duplicate, Path, TextError, TextValue

MAX_ALIASED = 200_000
"""How many values the aliases of a text may add."""

_MERGE = object()
_TAG = "tag:yaml.org,2002:"
_INTEGER = re.compile(r"[-+]?(?:0[xX][0-9a-fA-F]+|0[bB][01]+|0[oO]?[0-7]*|[1-9][0-9]*)")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_SPECIAL = frozenset("~nNyYtToOfF+-.0123456789")
_INTEGERS = range(-(2**63), 2**64)
_PLAIN: dict[str, Any] = {
    "": None,
    **dict.fromkeys(("~", "null", "Null", "NULL")),
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "on", "On", "ON", "true", "True", "TRUE"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "off", "Off", "OFF", "false", "False", "FALSE"), False),
}


class _Frame:
    """A mapping or sequence that is being read."""

    __slots__ = ("anchor", "holder", "key", "key_lines", "line", "merges", "path", "start")

    def __init__(self, holder: Any, path: Path, line: int, anchor: Optional[str], start: int) -> None:
        self.holder = holder
        self.path = path
        self.line = line
        self.anchor = anchor
        self.start = start
        self.key: Any = None
        self.key_lines: Optional[dict[str, int]] = {} if isinstance(holder, dict) else None
        self.merges: Optional[list[tuple[Any, int]]] = None


def values(text: str) -> Iterator[TextValue]:
    """The documents of a text, empty ones left out.

    :raises TextError: the text is no YAML, or more than kubectl takes.
    """
    yaml = deps.yaml()
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        yield from _documents(text, yaml.parse(text, Loader=loader), yaml)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise TextError(mark.line + 1 if mark else 0, _problem(error)) from error
    except yaml.reader.ReaderError as error:
        raise TextError(0, "the character %s is not allowed" % _character(error)) from error
    except UnicodeEncodeError as error:
        line = text.count("\n", 0, error.start) + 1
        raise TextError(line, "it has half of a surrogate pair") from error


def _problem(error: Any) -> str:
    parts = [part for part in (error.context, error.problem) if part]
    return " ".join(" ".join(parts).split()) or "it is no YAML"


def _character(error: Any) -> str:
    found = error.character
    return "U+%04X" % (found if isinstance(found, int) else ord(found[:1]))


def _documents(text: str, events: Iterable[Any], yaml: Any) -> Iterator[TextValue]:
    scalar_event, alias_event = yaml.ScalarEvent, yaml.AliasEvent
    mapping_start, sequence_start = yaml.MappingStartEvent, yaml.SequenceStartEvent
    ends = (yaml.MappingEndEvent, yaml.SequenceEndEvent)
    anchors: dict[str, tuple[Any, int]] = {}
    stack: list[_Frame] = []
    lines: dict[Path, int] = {}
    duplicates: list[Duplicate] = []
    quoted: list[tuple[int, int]] = []
    count = aliased = 0
    for event in events:
        kind = type(event)
        if kind is scalar_event:
            count += 1
            frame = stack[-1] if stack else None
            line = event.start_mark.line + 1
            if MARK in event.value and event.style:
                quoted.append(_span(text, event))
            if frame is not None and frame.key is None and frame.key_lines is not None:
                _take_key(frame, event, line, lines, duplicates)
                if event.anchor:
                    anchors[event.anchor] = (event.value, 1)
                continue
            value = _scalar(event, line)
            if event.anchor:
                anchors[event.anchor] = (value, 1)
        elif kind is mapping_start or kind is sequence_start:
            count += 1
            line = event.start_mark.line + 1
            _require_plain_tag(event, line, "map" if kind is mapping_start else "seq")
            if len(stack) >= MAX_DEPTH:
                raise TextError(line, "it is nested deeper than %d levels" % MAX_DEPTH)
            holder: Any = {} if kind is mapping_start else []
            path: Path = ()
            if stack:
                path = _path(stack[-1], line)
                if stack[-1].key_lines is None:
                    lines[path] = line
            if event.anchor:
                anchors[event.anchor] = (_MERGE, 0)  # nothing may refer to it before it is complete
            stack.append(_Frame(holder, path, line, event.anchor, count))
            continue
        elif kind in ends:
            done = stack.pop()
            value, line = done.holder, done.line
            if done.merges is not None:
                _merge(done, lines)
            if done.anchor:
                anchors[done.anchor] = (value, count - done.start + 1)
        elif kind is alias_event:
            line = event.start_mark.line + 1
            value, size = anchors.get(event.anchor, (None, -1))
            if size <= 0:
                raise TextError(
                    line,
                    "the alias *%s* %s"
                    % (event.anchor, "has no anchor before it" if size < 0 else "is inside its own anchor"),
                )
            aliased += size
            if aliased > MAX_ALIASED:
                raise TextError(line, "its aliases add more than %d values" % MAX_ALIASED)
            count += size
            frame = stack[-1] if stack else None
            if frame is not None and frame.key is None and frame.key_lines is not None:
                raise TextError(line, "an alias cannot be a key")
        elif kind is yaml.DocumentStartEvent:
            anchors, lines, duplicates, quoted = {}, {}, [], []
            continue
        else:
            continue
        if not stack:
            if value is not None:
                yield TextValue(value, line, lines, duplicates, quoted)
            continue
        _put(stack[-1], value, line, lines)


def _span(text: str, event: Any) -> tuple[int, int]:
    """Where a scalar begins and ends; a comment behind the sign of a block is outside of it."""
    begin, end = event.start_mark.index, event.end_mark.index
    return (text.find("\n", begin, end) if event.style in "|>" else begin), end


def _take_key(
    frame: _Frame, event: Any, line: int, lines: dict[Path, int], duplicates: list[Duplicate]
) -> None:
    plain = event.implicit[0] and event.tag is None
    key = event.value
    if plain and key == "<<":
        frame.key = _MERGE
        frame.key_lines["<<"] = line  # type: ignore[index]
        return
    if plain and key[:1] in _SPECIAL:
        key = _key_text(_plain(key), line)
    path = (*frame.path, key)
    known = frame.key_lines
    if key in known:  # type: ignore[operator]
        duplicates.append(Duplicate(path, known[key], line))  # type: ignore[index]
    known[key] = lines[path] = line  # type: ignore[index]
    frame.key = key


def _key_text(value: Any, line: int) -> str:
    """A key as the JSON of an object has it."""
    if isinstance(value, str):
        return value
    if value is None:
        raise TextError(line, "a key is empty or null")
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _path(frame: _Frame, line: int) -> Path:
    if frame.key_lines is None:
        return (*frame.path, len(frame.holder))
    if frame.key is None:
        raise TextError(line, "a key is no text but a mapping or a sequence")
    return (*frame.path, "<<" if frame.key is _MERGE else frame.key)


def _put(frame: _Frame, value: Any, line: int, lines: dict[Path, int]) -> None:
    if frame.key_lines is None:
        lines.setdefault((*frame.path, len(frame.holder)), line)
        frame.holder.append(value)
        return
    if frame.key is _MERGE:
        if frame.merges is None:
            frame.merges = []
        for part in value if isinstance(value, list) else [value]:
            if not isinstance(part, dict):
                raise TextError(line, "the merge key << takes mappings only")
            frame.merges.append((part, frame.key_lines["<<"]))
    else:
        frame.holder[frame.key] = value
    frame.key = None


def _merge(frame: _Frame, lines: dict[Path, int]) -> None:
    for part, line in frame.merges or ():
        for key, value in part.items():
            if key not in frame.holder:
                frame.holder[key] = value
                lines[(*frame.path, key)] = line


def _require_plain_tag(event: Any, line: int, wanted: str) -> None:
    if event.tag not in (None, "!", _TAG + wanted):
        raise TextError(line, "the tag %s is not allowed in a manifest" % _shown(event.tag))


def _shown(tag: str) -> str:
    return ("!!" + tag[len(_TAG) :] if tag.startswith(_TAG) else tag)[:60]


def _scalar(event: Any, line: int) -> Any:
    tag = event.tag
    if tag is None:
        text: str = event.value
        if event.implicit[0] and (not text or text[0] in _SPECIAL):
            value = _plain(text)
            if isinstance(value, float) and not -1.8e308 < value < 1.8e308:
                raise TextError(line, "%s is no number of JSON" % text)
            return value
        return text
    if tag in ("!", _TAG + "str"):
        return event.value
    value = _plain(event.value)
    kind = {bool: "bool", int: "int", float: "float", type(None): "null"}.get(type(value), "str")
    if tag == _TAG + kind:
        return value
    if tag == _TAG + "float" and kind == "int":
        return float(value)
    raise TextError(line, "the tag %s is not allowed here" % _shown(tag))


def _plain(text: str) -> Any:
    """What kubectl makes of a scalar without quotes."""
    if text in _PLAIN:
        return _PLAIN[text]
    first = text[0]
    if first not in "+-.0123456789":
        return text
    digits = text.replace("_", "") if "_" in text else text
    if _INTEGER.fullmatch(digits):
        value = _integer(digits)
        return value if value in _INTEGERS else float(value)
    if _FLOAT.fullmatch(digits):
        return float(digits)
    if digits.lower() in (".inf", "+.inf", "-.inf", ".nan"):
        return float(digits.replace(".", ""))
    return text


def _integer(digits: str) -> int:
    unsigned = digits.lstrip("+-")
    if len(unsigned) > 60:
        return 2**200
    base = 10
    if len(unsigned) > 1 and unsigned[0] == "0":
        base = {"x": 16, "b": 2}.get(unsigned[1].lower(), 8)
        unsigned = unsigned.lstrip("0").lstrip("xXbBoO") or "0"
    value = int(unsigned, base)
    return -value if digits[0] == "-" else value
