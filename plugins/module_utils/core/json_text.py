# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reading JSON that others wrote, as strictly as a typed decoder.

Private to rdma.k8s: it may change with any release.
"""

from __future__ import annotations

import json
from typing import Any, NoReturn, Optional

from .errors import RdmaError
from .net import quoted

INT64 = range(-(2**63), 2**63)
"""The integers that fit 64 bits (F66)."""


def loads(text: str) -> Any:
    """The value of a JSON text.

    Unlike ``json.loads``: NaN and Infinity are not JSON (F138), and a number of any length is read.

    :raises ValueError: not JSON, or nested deeper than the interpreter can follow; no other exception.
    """
    try:
        return json.loads(text, parse_constant=_no_constant, parse_int=_integer)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _no_constant(name: str) -> NoReturn:
    raise ValueError("%s is not JSON" % name)


def _integer(digits: str) -> Any:
    return int(digits) if len(digits) <= 40 else float(digits)  # longer ones fit no integer that is used


class Reader:
    """Reads the members of a document that have a meaning. ``None`` is always "absent" (F52, F66, F69).

    :param code: the error code for a value of a wrong type.
    :param subject: what is read, as the messages call it.
    :param hint: what to do about a wrong type.
    """

    def __init__(self, code: str, subject: str, hint: str, retryable: bool = False) -> None:
        self.code = code
        self.subject = subject
        self.hint = hint
        self.retryable = retryable

    def wrong(self, where: str, expected: str, found: Any) -> RdmaError:
        """The error for a value of a wrong type at ``where``."""
        return RdmaError(
            self.code,
            "%s: %s must be %s, found %s." % (self.subject, where, expected, quoted(found)),
            hint=self.hint,
            retryable=self.retryable,
            where=where,
            expected=expected,
        )

    def json(self, text: Any) -> Any:
        """The value of a JSON text."""
        if not isinstance(text, str):
            raise self.wrong("the content", "a text", text)
        try:
            return loads(text)
        except ValueError as error:
            raise RdmaError(
                self.code,
                "%s is not JSON: %s." % (self.subject, error),
                hint=self.hint,
                retryable=self.retryable,
            ) from error

    def members(self, value: Any, where: str) -> dict[str, Any]:
        """An object; absent: no members."""
        if value is None:
            return {}
        if not isinstance(value, dict):
            raise self.wrong(where, "an object", value)
        return value

    def entries(self, value: Any, where: str) -> list[Any]:
        """A list; absent: no entries."""
        if value is None:
            return []
        if not isinstance(value, list):
            raise self.wrong(where, "a list", value)
        return value

    def text(self, value: Any, where: str) -> str:
        """A text; absent: empty."""
        if value is None:
            return ""
        if not isinstance(value, str):
            raise self.wrong(where, "a text", value)
        return value

    def flag(self, value: Any, where: str) -> Optional[bool]:
        """True or false; numbers are neither (F66)."""
        if value is not None and not isinstance(value, bool):
            raise self.wrong(where, "true or false", value)
        return value

    def integer(self, value: Any, where: str) -> Optional[int]:
        """An integer of 64 bits; a boolean or 1.0 is none (F66)."""
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int) or value not in INT64:
            raise self.wrong(where, "an integer of 64 bits", value)
        return value
