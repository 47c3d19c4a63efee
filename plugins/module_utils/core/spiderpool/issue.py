# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is wrong with an object: a code, a place, a severity. Private to rdma.k8s: it may change with any release."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple, Optional

from ..finding import ERROR, WARNING


class Issue(NamedTuple):
    """One thing that is wrong.

    ``code`` is stable; ``at`` is the place, as a path such as ``spec.ips[0]`` or as a name; ``severity`` is ``error``
    or ``warning``; ``message`` is one sentence without its full stop. ``extra`` are members by name: ``other`` is
    another object, ``canonical`` the right form, ``want`` and ``have`` numbers.
    """

    code: str
    at: str
    severity: str
    message: str
    extra: tuple[tuple[str, Any], ...] = ()

    @property
    def plain(self) -> dict[str, Any]:
        """As plain data, without the message."""
        return {"code": self.code, "at": self.at, "severity": self.severity, **dict(self.extra)}


def error(code: str, at: str, message: str, **extra: Any) -> Issue:
    return Issue(code, at, ERROR, message, tuple(extra.items()))


def warning(code: str, at: str, message: str, **extra: Any) -> Issue:
    return Issue(code, at, WARNING, message, tuple(extra.items()))


def ordered(issues: Iterable[Issue]) -> list[Issue]:
    """By code and place; of those that say the same of one place the first."""
    found: dict[tuple[str, str, str], Issue] = {}
    for issue in issues:
        found.setdefault(_key(issue), issue)
    return [found[key] for key in sorted(found)]


def _key(issue: Issue) -> tuple[str, str, str]:
    return issue.code, issue.at, repr(issue.extra)


def is_ok(issues: Iterable[Issue]) -> bool:
    """Whether none of them is an error."""
    return not any(issue.severity == ERROR for issue in issues)


def whole(value: Any) -> Optional[int]:
    """The value of a manifest when it is an integer; a boolean is none."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def is_between(value: Any, low: int, high: Optional[int] = None) -> bool:
    """Whether a value is an integer within these bounds; ``high`` ``None``: without an upper one."""
    number = whole(value)
    return number is not None and low <= number and (high is None or number <= high)
