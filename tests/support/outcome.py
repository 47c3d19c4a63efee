# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a call gives: a value, or a typed error. Any other exception goes on and fails the test."""

from __future__ import annotations

from typing import Any, Callable, NamedTuple

from ansible_collections.rdma.k8s.plugins.module_utils.core.errors import RdmaError


class Outcome(NamedTuple):
    """The value, or code, message and hint of the error; the code is empty when there is a value."""

    value: Any
    code: str = ""
    message: str = ""
    hint: str = ""


def outcome(function: Callable[..., Any], *args: Any, **options: Any) -> Outcome:
    """Call a function."""
    try:
        return Outcome(function(*args, **options))
    except RdmaError as error:
        return Outcome(None, error.code, error.message, error.hint)


def error_of(function: Callable[..., Any], *args: Any, **options: Any) -> RdmaError:
    """The error of a call that must fail."""
    try:
        value = function(*args, **options)
    except RdmaError as error:
        return error
    raise AssertionError("%s gave %r, expected an error" % (function.__name__, value))
