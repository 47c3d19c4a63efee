# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Conditions on a JSON value, as data: looked for in Python here, written as CEL by :mod:`.cel`.

A condition describes what is wrong. It is about the value below its ``path``; a value that is absent or null is never
wrong unless the condition says so, and one of another type than the condition is about is left to :class:`WrongType`.
Private to rdma.k8s: it may change with any release.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import Any, Optional, Union

from ..net import find_address, find_prefix

Path = tuple[Any, ...]

TEXT, FLAG, INTEGER, LIST, OBJECT = ("text", "flag", "integer", "list", "object")

INT8U, INT32, INT64 = (0, 255), (-(2**31), 2**31 - 1), (-(2**63), 2**63 - 1)
"""Least and largest value of the integer types of the driver."""


@dataclass(frozen=True)
class Given:
    """There is a value. A list without entries, an empty text and null are none (F32)."""

    path: Path


@dataclass(frozen=True)
class Set:
    """There is a value, and be it empty: an empty VRF is a VRF (F38). Null is none."""

    path: Path


@dataclass(frozen=True)
class Missing:
    """There is no value: absent, null or an empty text."""

    path: Path


@dataclass(frozen=True)
class WrongType:
    """The value is not of the type; an integer also when it is outside ``bounds``."""

    path: Path
    type: str
    bounds: tuple[int, int] = INT64


@dataclass(frozen=True)
class UnknownKey:
    """The object has a key that is not one of ``keys``."""

    path: Path
    keys: tuple[str, ...]


@dataclass(frozen=True)
class Is:
    """The value, a text, a flag or an integer, is one of ``values``."""

    path: Path
    values: tuple[Any, ...]


@dataclass(frozen=True)
class IsNot:
    """The value is of the type of ``values`` (all of one type), but none of them."""

    path: Path
    values: tuple[Any, ...]


@dataclass(frozen=True)
class Outside:
    """The integer is less than ``least`` or, where there is a ``most``, more than that."""

    path: Path
    least: int
    most: Optional[int] = None


@dataclass(frozen=True)
class Matches:
    """The text, or a part of it, matches. The pattern is one that Python and RE2 understand alike."""

    path: Path
    pattern: str


@dataclass(frozen=True)
class Mismatches:
    """The text is not empty, and no part of it matches."""

    path: Path
    pattern: str


@dataclass(frozen=True)
class NoAddress:
    """The text is not empty and no IP address. IPv4-mapped IPv6 addresses are not judged."""

    path: Path


@dataclass(frozen=True)
class NoPrefix:
    """The text is not empty and no prefix ``ADDRESS/LENGTH``. IPv4-mapped IPv6 addresses are not judged."""

    path: Path


@dataclass(frozen=True)
class OtherFamily:
    """Two addresses or prefixes, both well-formed, are of two IP families. The place is that of ``path``."""

    path: Path
    other: Path


@dataclass(frozen=True)
class Each:
    """An entry of the list, or a value of the object, meets the condition; its paths start there."""

    path: Path
    condition: Condition


@dataclass(frozen=True)
class Below:
    """The value meets the condition; its paths start there."""

    path: Path
    condition: Condition


@dataclass(frozen=True)
class AllOf:
    """All of them; the place is that of the first that has one."""

    conditions: tuple[Condition, ...]


@dataclass(frozen=True)
class AnyOf:
    """One of them; the place is that of the first that is met."""

    conditions: tuple[Condition, ...]


@dataclass(frozen=True)
class Unless:
    """The condition is not met. It has no place of its own: use it behind another one in :class:`AllOf`."""

    condition: Condition


Condition = Union[
    Given,
    Set,
    Missing,
    WrongType,
    UnknownKey,
    Is,
    IsNot,
    Outside,
    Matches,
    Mismatches,
    NoAddress,
    NoPrefix,
    OtherFamily,
    Each,
    Below,
    AllOf,
    AnyOf,
    Unless,
]

MAPPED = "^::[fF]{4}:[0-9]"
"""How the text of an IPv4-mapped IPv6 address begins: libraries disagree about those, so nothing is said of them."""


def all_of(*conditions: Condition) -> Condition:
    return AllOf(conditions)


def any_of(*conditions: Condition) -> Condition:
    return AnyOf(conditions)


def at(value: Any, path: Path) -> Any:
    """The value below a path; ``None``: there is none."""
    for key in path:
        if not isinstance(value, dict):
            return None
        value = value.get(key)
    return value


def find(condition: Condition, value: Any) -> Optional[Path]:
    """Where in ``value`` the condition is met, ``None``: nowhere."""
    if isinstance(condition, (AllOf, AnyOf)):
        return _find_in_group(condition, value)
    if isinstance(condition, Unless):
        return () if find(condition.condition, value) is None else None
    found = at(value, condition.path)
    if isinstance(condition, Each):
        return _find_entry(condition, found)
    if isinstance(condition, Below):
        place = None if found is None else find(condition.condition, found)
        return None if place is None else (*condition.path, *place)
    if isinstance(condition, OtherFamily):
        return condition.path if _of_two_families(found, at(value, condition.other)) else None
    if isinstance(condition, UnknownKey):
        unknown = [key for key in found if key not in condition.keys] if isinstance(found, dict) else []
        return (*condition.path, unknown[0]) if unknown else None
    return condition.path if _holds(condition, found) else None


def holds(condition: Condition, value: Any) -> bool:
    """Whether the condition is met."""
    return find(condition, value) is not None


def _find_in_group(group: Union[AllOf, AnyOf], value: Any) -> Optional[Path]:
    places = (find(condition, value) for condition in group.conditions)
    if isinstance(group, AnyOf):
        return next((place for place in places if place is not None), None)
    first: Optional[Path] = None
    for place in places:
        if place is None:
            return None
        first = first or place
    return first


def _find_entry(each: Each, found: Any) -> Optional[Path]:
    entries = (
        enumerate(found) if isinstance(found, list) else found.items() if isinstance(found, dict) else ()
    )
    for key, entry in entries:
        place = find(each.condition, entry)
        if place is not None:
            return (*each.path, key, *place)
    return None


def _holds(condition: Any, found: Any) -> bool:
    """A condition on one value."""
    if isinstance(condition, Given):
        return found is not None and found not in ("", [])
    if isinstance(condition, Missing):
        return found is None or found == ""
    if found is None:
        return False
    if isinstance(condition, Set):
        return True
    if isinstance(condition, WrongType):
        return not _is_of(condition.type, found) or (
            condition.type == INTEGER and not condition.bounds[0] <= found <= condition.bounds[1]
        )
    if isinstance(condition, Is):
        return any(found == value and _kind(found) == _kind(value) for value in condition.values)
    if isinstance(condition, IsNot):
        return _kind(found) == _kind(condition.values[0]) and found not in condition.values
    if isinstance(condition, Outside):
        return _is_of(INTEGER, found) and (
            found < condition.least or (condition.most is not None and found > condition.most)
        )
    return isinstance(found, str) and _holds_of_text(condition, found)


def _holds_of_text(condition: Any, found: str) -> bool:
    if isinstance(condition, Matches):
        return _compiled(condition.pattern).search(found) is not None
    if not found:
        return False
    if isinstance(condition, Mismatches):
        return _compiled(condition.pattern).search(found) is None
    if _compiled(MAPPED).search(found):
        return False
    return (find_prefix(found) if isinstance(condition, NoPrefix) else _address(found)) is None


def _of_two_families(one: Any, other: Any) -> bool:
    families = [_family(one), _family(other)]
    return None not in families and families[0] != families[1]


def _family(text: Any) -> Optional[int]:
    if not isinstance(text, str) or _compiled(MAPPED).search(text):
        return None
    known = find_prefix(text) or _address(text)
    return None if known is None else known.version


def _address(text: str) -> Any:
    """An address without a zone, which the driver refuses (F107)."""
    found = find_address(text)
    return None if found is None or found.zone else found


@cache
def _compiled(pattern: str) -> Any:
    """The pattern as RE2 means it: the end is the end of the text, line break or not, and classes are of ASCII."""
    return re.compile(pattern[:-1] + r"\Z" if pattern.endswith("$") else pattern, re.ASCII)


def _kind(value: Any) -> str:
    for name in (TEXT, FLAG, INTEGER, LIST, OBJECT):
        if _is_of(name, value):
            return name
    return ""


def _is_of(name: str, value: Any) -> bool:
    if name == INTEGER:
        return isinstance(value, int) and not isinstance(value, bool)
    types: dict[str, Any] = {TEXT: str, FLAG: bool, LIST: list, OBJECT: dict}
    return isinstance(value, types[name])
