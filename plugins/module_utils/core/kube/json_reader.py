# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""JSON with the line of every path. Private to rdma.k8s: it may change with any release.

The lines are looked for when someone asks for one: most documents have no finding.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, NoReturn, Optional

from .read_text import MAX_DEPTH, Duplicate, Path, TextError, TextValue

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:\n]|[^\s{}\[\],:"]+')
_BLANK = re.compile(r"[ \t\r\n]*")


def values(text: str) -> list[TextValue]:
    """The values of a text, one after the other.

    :raises TextError: the text is no JSON.
    """
    twice: list[bool] = []
    decoder = json.JSONDecoder(object_pairs_hook=_pairs(twice), parse_constant=_constant)
    found = []
    position = _blank(text, 0)
    while position < len(text):
        line = text.count("\n", 0, position) + 1
        try:
            value, end = decoder.raw_decode(text, position)
        except json.JSONDecodeError as error:
            raise TextError(error.lineno, error.msg) from error
        except RecursionError:
            raise TextError(line, "it is nested deeper than %d levels" % MAX_DEPTH) from None
        except ValueError as error:  # a constant that is no JSON, a number of thousands of digits
            raise TextError(line, str(error)) from error
        _require_shallow(value, line)
        lines = Lines(text[position:end], line)
        found.append(TextValue(value, line, lines, lines.duplicates() if twice else ()))
        twice.clear()
        position = _blank(text, end)
    return found


def _require_shallow(value: Any, line: int) -> None:
    level = [value]
    for _depth in range(MAX_DEPTH + 1):
        level = [
            entry
            for held in level
            if isinstance(held, (dict, list))
            for entry in (held.values() if isinstance(held, dict) else held)
        ]
        if not level:
            return
    raise TextError(line, "it is nested deeper than %d levels" % MAX_DEPTH)


def _blank(text: str, position: int) -> int:
    match = _BLANK.match(text, position)
    return match.end() if match is not None else position


def _pairs(twice: list[bool]) -> Any:
    def build(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        built = dict(pairs)
        if len(built) != len(pairs):
            twice.append(True)
        return built

    return build


def _constant(name: str) -> NoReturn:
    raise ValueError("%s is not JSON" % name)


class Lines(Mapping[Path, int]):
    """Path to line of one JSON value, made on first use.

    :param text: the value, which is known to be JSON.
    :param first: the line on which it starts.
    """

    def __init__(self, text: str, first: int) -> None:
        self.text = text
        self.first = first
        self._known: Optional[dict[Path, int]] = None
        self._duplicates: list[Duplicate] = []

    def __getitem__(self, path: Path) -> int:
        return self._lines()[path]

    def __iter__(self) -> Iterator[Path]:
        return iter(self._lines())

    def __len__(self) -> int:
        return len(self._lines())

    def duplicates(self) -> list[Duplicate]:
        """Keys that stand twice in one object."""
        self._lines()
        return self._duplicates

    def _lines(self) -> dict[Path, int]:
        if self._known is None:
            self._known = self._scan()
        return self._known

    def _scan(self) -> dict[Path, int]:
        known: dict[Path, int] = {}
        line = self.first
        path: list[Any] = []  # one entry a level: the key that is read, or the position
        keyed: list[bool] = []  # whether the level is an object whose next text is a key
        seen: list[set[str]] = []
        for word in _TOKEN.findall(self.text):
            if word == "\n":
                line += 1
            elif word in "}]":
                path.pop()
                keyed.pop()
                seen.pop()
            elif word == ",":
                keyed[-1] = isinstance(path[-1], str)
                if not keyed[-1]:
                    path[-1] += 1
            elif word != ":":
                if keyed and keyed[-1]:
                    path[-1] = json.loads(word)
                    keyed[-1] = False
                    where = tuple(path)
                    if path[-1] in seen[-1]:
                        self._duplicates.append(Duplicate(where, known[where], line))
                    seen[-1].add(path[-1])
                    known[where] = line
                    continue
                if path and not isinstance(path[-1], str):
                    known[tuple(path)] = line
                if word in "{[":
                    path.append("" if word == "{" else 0)
                    keyed.append(word == "{")
                    seen.append(set())
        return known
