# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Text that reports are made of: harmless text, node ranges, plurals.

Private to rdma.k8s: it may change with any release.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

HARMFUL = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff\ufffe\uffff]"
)
"""Characters that no report shows as they are: controls, marks that reorder or hide text, halves of surrogate pairs."""

_SPACES = re.compile(r"[\t\r\n]+")
_LAST_NUMBER = re.compile(r"^(.*?)([0-9]{1,15})([^0-9]*)$", re.DOTALL)
_NUMBERS = re.compile(r"([0-9]{1,15})")


def clean(text: str) -> str:
    """``text`` with each harmful character replaced by U+FFFD; line breaks and tabs stay."""
    return HARMFUL.sub("\ufffd", text) if not text.isascii() or not text.isprintable() else text


def flat(text: str) -> str:
    """``text`` on one line and harmless (see :func:`clean`)."""
    if text.isprintable() and text.isascii():
        return text
    return HARMFUL.sub("\ufffd", _SPACES.sub(" ", text))


def natural(name: str) -> tuple[tuple[tuple[int, int, str], ...], str]:
    """A sort key under which ``gpu-9`` stands before ``gpu-10``."""
    parts = _NUMBERS.split(name)
    key = [(1, int(part), "") if number % 2 else (0, 0, part) for number, part in enumerate(parts)]
    return tuple(key), name


def count(number: int, noun: str, plural: str = "") -> str:
    """``1 node``, ``3 nodes``; ``plural`` for nouns that do not just take an s."""
    return "%d %s" % (number, noun if number == 1 else plural or noun + "s")


def fold(names: Iterable[str]) -> str:
    """Node names as compact ranges: ``gpu-[001-003,007],login``. Nothing is lost: padding and suffixes stay.

    Only the last number of a name is folded. A name that stands alone is not put in brackets.
    """
    families: dict[tuple[str, str, int], list[int]] = {}
    loners: list[str] = []
    for name in sorted(set(names), key=natural):
        match = _LAST_NUMBER.match(name)
        if match is None:
            loners.append(name)
            continue
        head, digits, tail = match.groups()
        families.setdefault(
            (head, tail, len(digits) if digits[0] == "0" and digits != "0" else 0), []
        ).append(int(digits))
    _join_padded(families)
    folded = [_family(*key, numbers) for key, numbers in families.items()]
    return ",".join(sorted(folded + loners, key=natural))


def _join_padded(families: dict[tuple[str, str, int], list[int]]) -> None:
    """Let ``010`` join ``009``: a number without leading zeros belongs to the padded family of its own length."""
    for head, tail, width in [key for key in families if key[2]]:
        plain = families.get((head, tail, 0), [])
        fitting = [number for number in plain if len(str(number)) == width]
        if fitting:
            families[(head, tail, width)] += fitting
            rest = [number for number in plain if len(str(number)) != width]
            if rest:
                families[(head, tail, 0)] = rest
            else:
                del families[(head, tail, 0)]


def _family(head: str, tail: str, width: int, numbers: list[int]) -> str:
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    if len(runs) == 1 and runs[0][0] == runs[0][1]:
        return "%s%0*d%s" % (head, width, runs[0][0], tail)
    parts = []
    for first, last in runs:
        parts.append("%0*d" % (width, first) if first == last else "%0*d-%0*d" % (width, first, width, last))
    return "%s[%s]%s" % (head, ",".join(parts), tail)
