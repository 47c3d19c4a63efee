# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A verdict with its reasons. Private to rdma.k8s: it may change with any release."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

OK, WARN, FAIL, SKIP, UNKNOWN = "ok", "warn", "fail", "skip", "unknown"
_WORST_FIRST = (FAIL, WARN, UNKNOWN, SKIP)


class Reason(NamedTuple):
    """Why a verdict is not ``ok``: a stable code, how bad it is, and one sentence without its full stop.

    ``subject`` is what it is about when that is a part of the whole, such as one interface.
    """

    code: str
    status: str
    message: str
    expected: str = ""
    observed: str = ""
    subject: str = ""


def worst(reasons: Iterable[Reason]) -> str:
    """The status that the reasons make: the worst of them, a failure first; ``ok`` without any."""
    found = {reason.status for reason in reasons}
    return next((status for status in _WORST_FIRST if status in found), OK)


def failure(code: str, message: str, expected: str = "", observed: str = "", subject: str = "") -> Reason:
    return Reason(code, FAIL, message, expected, observed, subject)


def warning(code: str, message: str, expected: str = "", observed: str = "", subject: str = "") -> Reason:
    return Reason(code, WARN, message, expected, observed, subject)
