# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The one error type of the collection. Private to rdma.k8s: it may change with any release."""

from __future__ import annotations

from typing import Any


class RdmaError(Exception):
    """Something from the outside world is not as it must be.

    :param code: stable identifier (snake_case); part of the public interface, never reused.
    :param message: one sentence that names the object, what was expected and what was found.
    :param hint: what to do about it; may be empty when the message already says so.
    :param retryable: the same request can succeed later without a person acting (F37).
    :param details: the values that the message mentions, as text, numbers or lists, for callers that are programs.
    """

    def __init__(
        self, code: str, message: str, hint: str = "", retryable: bool = False, **details: Any
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint
        self.retryable = retryable
        self.details = details

    def __str__(self) -> str:
        return "%s %s" % (self.message, self.hint) if self.hint else self.message

    def to_dict(self) -> dict[str, Any]:
        """The error as plain data: code, message, hint, retryable, details."""
        return {
            "code": self.code,
            "message": self.message,
            "hint": self.hint,
            "retryable": self.retryable,
            "details": dict(self.details),
        }
