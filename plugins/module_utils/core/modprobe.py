# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Options of kernel modules in modprobe files and on the kernel command line.

Private to rdma.k8s: it may change with any release.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from typing import Optional

_WORD = re.compile(r"""(?:[^\s"'\\]|\\.|"(?:[^"\\]|\\.)*"|'[^']*')+""")


@dataclass(frozen=True)
class Setting:
    """One option with its value, and the line (from 1) of a file on which it stands; 0: not in a file."""

    option: str
    value: str
    line: int = 0


@dataclass(frozen=True)
class Line:
    """A logical line: number of its first line, how many lines it takes (a backslash at the end joins), its text."""

    number: int
    count: int
    text: str


def in_file(text: str, module: str) -> list[Setting]:
    """The options of a module that a modprobe file sets, in the order of its lines (S19, S20)."""
    found = []
    for line in logical_lines(text):
        words = _options_of(line, module)
        if words is not None:
            found += [Setting(option, value, line.number) for option, value in _pairs(words)]
    return found


def on_command_line(text: str, module: str) -> list[Setting]:
    """The options of a module that the kernel command line sets as ``MODULE.OPTION=VALUE`` (S20)."""
    found = []
    for option, value in _pairs(split(text)):
        name, dot, own = option.partition(".")
        if dot and name == module:
            found.append(Setting(own, value))
    return found


def without(text: str, module: str, option: str) -> str:
    """The text of a modprobe file without the settings of one option; everything else stays as it is."""
    lines = text.splitlines(keepends=True)
    kept: list[str] = []
    for line in logical_lines(text):
        own = lines[line.number - 1 : line.number - 1 + line.count]
        rest = _rest_of(line, module)
        words = [] if rest is None else _raw(rest)
        others = [word for word in words if _pairs(split(word))[0][0] != option]
        if len(others) == len(words):
            kept += own
        elif others:
            kept.append("options %s %s\n" % (line.text.split(None, 2)[1], " ".join(others)))
    return "".join(kept)


def with_setting(text: str, module: str, option: str, value: str) -> str:
    """The text of a modprobe file in which exactly one line sets an option, to this value, and nothing else changed."""
    line = "options %s %s=%s\n" % (module, option, value)
    settings = [setting for setting in in_file(text, module) if setting.option == option]
    if len(settings) == 1 and any(entry.text == line.strip() for entry in logical_lines(text)):
        return text
    rest = without(text, module, option)
    if rest and not rest.endswith("\n"):
        rest += "\n"
    if rest.endswith("\\\n"):  # else the last line would go on with ours
        rest += "\n"
    return rest + line


def says_nothing(text: str) -> bool:
    """Whether a modprobe file holds neither a command nor a comment."""
    return not text.strip()


def logical_lines(text: str) -> list[Line]:
    """All lines, a line that ends with a backslash joined with the next one."""
    found = []
    joined, first = "", 0
    for number, line in enumerate(text.splitlines(), 1):
        first = first or number
        if line.endswith("\\"):
            joined += line[:-1]
            continue
        found.append(Line(first, number - first + 1, (joined + line).strip()))
        joined, first = "", 0
    if first:
        found.append(Line(first, len(text.splitlines()) - first + 1, joined.strip()))
    return found


def split(text: str) -> list[str]:
    """Words of a line, with quotes understood."""
    try:
        return shlex.split(text, posix=True)
    except ValueError:  # an open quote
        return text.split()


def _options_of(line: Line, module: str) -> Optional[list[str]]:
    """The words behind ``options MODULE``; ``None`` for any other line."""
    rest = _rest_of(line, module)
    return None if rest is None else split(rest)


def _rest_of(line: Line, module: str) -> Optional[str]:
    words = line.text.split(None, 2)
    if len(words) == 3 and words[0] == "options" and words[1].replace("-", "_") == module:
        return words[2]
    return None


def _raw(text: str) -> list[str]:
    """The words as they stand there, with their quotes."""
    words = _WORD.findall(text)
    return words if [split(word) for word in words] == [[word] for word in split(text)] else text.split()


def _pairs(words: list[str]) -> list[tuple[str, str]]:
    """Words ``option=value``; an option without a value is on (``Y``), as the kernel takes it for a bool."""
    pairs = []
    for word in words:
        option, found, value = word.partition("=")
        pairs.append((option.replace("-", "_"), value if found else "Y"))
    return pairs
