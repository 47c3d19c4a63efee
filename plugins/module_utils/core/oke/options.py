# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The driver's option ``--cloud-provider-options`` (F92-F97). Private to rdma.k8s: it may change with any release."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Optional

from ..errors import RdmaError
from ..net import Prefix, quoted
from ..text import trim
from . import child_range as ranges
from .constants import DEFAULT_CHILD_RANGE

PROVIDER = "oke"  # F93: exactly this spelling
HINT = "OKE"  # F95: exactly this spelling
CHILD_RANGE_OPTION = "rdma-child-ipv4-cidr"  # F94: the only option


@dataclass(frozen=True)
class Options:
    """The outcome of the options.

    :param child_range: the range in force, ``None`` when the options are ignored.
    :param ignored: discovery chose another provider, so that the options have no effect (a warning in the log).
    """

    child_range: Optional[Prefix]
    ignored: bool = False


def parse(flags: Iterable[Any], hint: Optional[str] = None, discovered: Optional[str] = None) -> Options:
    """What the driver makes of its options at start (F92-F95).

    :param flags: the value of each occurrence of the option.
    :param hint: ``--cloud-provider-hint``, empty or ``None``: none.
    :param discovered: the provider that discovery found (``NONE``: none), ``None`` when there was no discovery.
    :raises RdmaError: ``option_format``, ``option_key_format``, ``option_duplicate``, ``option_unknown_provider``,
        ``option_unknown``, an error of :func:`.child_range.validate`, ``option_hint_mismatch``
    """
    values = _split(flags)
    child_range = _check_values(values)
    if not values:
        return Options(DEFAULT_CHILD_RANGE)
    if hint and hint != HINT:
        raise _hint_mismatch(hint)
    if not hint and discovered and discovered != HINT:
        return Options(None, ignored=True)
    return Options(child_range)


def _hint_mismatch(found: str) -> RdmaError:
    error = RdmaError(
        "option_hint_mismatch",
        "The driver has options of OKE, but the cloud provider hint %s, expected %s." % (quoted(found), HINT),
        hint="Write --cloud-provider-hint=%s, or remove the options." % HINT,
    )
    error.details["hint"] = found
    return error


def _split(flags: Iterable[Any]) -> dict[str, str]:
    """Key and value of each occurrence, in the order of the first loop of F93."""
    values: dict[str, str] = {}
    for text in flags:
        if not isinstance(text, str):
            raise _refusal("option_format", text, "is not a text")
        if not text:
            continue
        key, equals, value = text.partition("=")
        key = trim(key)
        provider, _unused, name = key.partition(".")
        if not equals:
            raise _refusal("option_format", text, "is not of the form <provider>.<option>=<value>")
        if not provider or not name:
            raise _refusal("option_key_format", key, "is not of the form <provider>.<option>")
        if key in values:
            raise _refusal("option_duplicate", key, "is given twice")
        values[key] = trim(value)
    return values


def _check_values(values: dict[str, str]) -> Prefix:
    """Providers first, then names and values, each in sorted order (F93)."""
    for key in sorted(values):
        if key.partition(".")[0] != PROVIDER:
            raise _refusal("option_unknown_provider", key, "belongs to a provider without options")
    child_range = DEFAULT_CHILD_RANGE
    for key in sorted(values):
        name = key.partition(".")[2]
        if name != CHILD_RANGE_OPTION:
            raise _refusal("option_unknown", name, "is not an option of OKE")
        child_range = ranges.validate(values[key])
    return child_range


def _refusal(code: str, option: Any, problem: str) -> RdmaError:
    return RdmaError(
        code,
        "The provider option %s %s." % (quoted(option), problem),
        hint="The only option is %s.%s=<range>, once." % (PROVIDER, CHILD_RANGE_OPTION),
        option=option,
    )
