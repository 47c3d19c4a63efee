# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Numbers that a user gives have bounds. Private to rdma.k8s: it may change with any release."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .errors import RdmaError

SECONDS = 600.0
"""The longest time that an option can make a module wait."""


def require_numbers(options: Mapping[str, Any], **bounds: tuple[float, float]) -> None:
    """Options with numbers are finite and within their bounds, both included.

    :param bounds: name of the option to the least and the largest value.
    :raises RdmaError: ``number_out_of_range``.
    """
    for name, (least, most) in bounds.items():
        if not least <= options[name] <= most:  # also when it is not a number
            raise _out_of_range(name, options[name], "from %g to %g" % (least, most))


def require_seconds(options: Mapping[str, Any], *names: str) -> None:
    """Options with limits of time are more than 0 and at most ``SECONDS``.

    :raises RdmaError: ``number_out_of_range``.
    """
    for name in names:
        if not 0 < options[name] <= SECONDS:  # also when it is not a number
            raise _out_of_range(name, options[name], "more than 0 and at most %g" % SECONDS)


def _out_of_range(name: str, value: float, wanted: str) -> RdmaError:
    return RdmaError(
        "number_out_of_range",
        "The option %s is %s, expected a number %s." % (name, value, wanted),
        hint="Give a number in that range, or leave the option out.",
        option=name,
    )
