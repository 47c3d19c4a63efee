# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Comparing what a vector expects with what the core gave. Used by the adapters of `run.py`."""

from __future__ import annotations

import json
import re
from typing import Any, Callable


class UnjudgeableError(Exception):
    """A file or a case that says nothing about the core: malformed, or of an unknown kind."""


class NotYetError(Exception):
    """A case of a kind that is known and that nothing judges yet; its text is the kind."""


class Kinds(dict[str, tuple[tuple[str, ...], Callable[[dict[str, Any]], Any]]]):
    """What judges the cases of a family of files: for each kind what its input must have, and a function."""

    def add(self, name: str, *required: str) -> Callable[[Any], Any]:
        """Register a function under the name of its kind, with the members that its input must have."""

        def register(function: Any) -> Any:
            self[name] = (required, function)
            return function

        return register

    def answer(self, name: str, given: dict[str, Any]) -> Any:
        """What the core gives for the input of a case.

        :raises NotYetError: for a kind that nothing judges yet.
        :raises UnjudgeableError: when the input lacks something.
        """
        if name not in self:
            raise NotYetError(name)
        required, function = self[name]
        absent = [member for member in required if member not in given]
        if absent:
            raise UnjudgeableError("its input lacks %s" % ", ".join(absent))
        return function(given)


def cases_of(document: Any) -> list[Any]:
    """The cases of a file; their names must be unique."""
    found = document.get("cases")
    if not isinstance(found, list):
        raise UnjudgeableError("'cases' is not a list")
    called = [case.get("name") for case in found if isinstance(case, dict)]
    twice = sorted({str(name) for name in called if called.count(name) > 1})
    if twice:
        raise UnjudgeableError("names are not unique: %s" % ", ".join(twice))
    return found


def as_json(value: Any) -> str:
    """One text for each JSON value: true, 1 and 1.0 differ, the order of keys does not matter."""
    return json.dumps(value, sort_keys=True)


def differences(expected: Any, got: Any) -> list[str]:
    """Two lines when the values differ, none when they are equal."""
    if as_json(expected) == as_json(got):
        return []
    return ["expected %s" % as_json(expected), "got      %s" % as_json(got)]


def names(message: str, value: Any) -> bool:
    """Tell whether a message contains a value as a word of its own: 8 is not in 18, and not in 8.8.8.8.

    It names no empty text and no empty list.
    """
    if value in ("", []):
        return False
    if isinstance(value, list):
        return all(names(message, entry) for entry in value)
    text = value if isinstance(value, str) else as_json(value)
    return re.search(r"(?<![\w.])%s(?![\w]|\.\w)" % re.escape(text), message) is not None


def detail_differences(expected: dict[str, Any], error: Any) -> list[str]:
    """Compare the details that an error exposes; what it does not expose must stand in its message."""
    found = []
    for key, value in expected.items():
        if key in error.details:
            if differences(value, error.details[key]):
                found.append(
                    "detail %s: expected %s, got %s" % (key, as_json(value), as_json(error.details[key]))
                )
        elif not names(error.message, value):
            found.append("detail %s: %s is neither exposed nor in: %s" % (key, as_json(value), error.message))
    return found
