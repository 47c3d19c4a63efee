# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The child range by itself: is it valid, how many NICs does it hold.

Private to rdma.k8s: it may change with any release.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Optional, Union

from ..errors import RdmaError
from ..net import PREFIX_HINT, Prefix, find_prefix, quoted
from .constants import MAX_LENGTH, MAX_NICS, MIN_LENGTH, RESERVED_RANGES


@dataclass(frozen=True)
class Capacity:
    """How many RDMA NICs of one node a range holds (at most 16) and the largest index among them."""

    nics: int
    largest_nic_index: int


def validate(value: Union[str, Prefix]) -> Prefix:
    """Check a child range by the rules that need no node (F27-F29), in the order of the driver.

    :param value: the text of the option, or a prefix that was read from one.
    :raises RdmaError: ``range_parse_error``, ``range_not_ipv4``, ``range_not_masked`` (details: ``masked``),
        ``range_prefix_length``, ``range_reserved`` (details: ``reserved``)
    """
    prefix = value if isinstance(value, Prefix) else find_prefix(value)
    if prefix is None:
        raise _refusal("range_parse_error", value, "is not of the form <address>/<length>", PREFIX_HINT)
    if prefix.version != 4:
        raise _refusal("range_not_ipv4", prefix, "is not IPv4", "Choose an IPv4 range.")
    if not prefix.is_masked:
        masked = str(prefix.masked())
        raise _refusal("range_not_masked", prefix, "has host bits set", "Write %s." % masked, masked=masked)
    if not MIN_LENGTH <= prefix.length <= MAX_LENGTH:
        raise _refusal(
            "range_prefix_length",
            prefix,
            "has length %d, expected %d to %d" % (prefix.length, MIN_LENGTH, MAX_LENGTH),
            "Choose a range with a length from /%d to /%d." % (MIN_LENGTH, MAX_LENGTH),
            length=prefix.length,
        )
    for reserved in RESERVED_RANGES:
        if prefix.overlaps(reserved):
            raise _refusal(
                "range_reserved",
                prefix,
                "overlaps %s, which is reserved" % reserved,
                "Choose a range outside %s." % ", ".join(map(str, RESERVED_RANGES)),
                reserved=str(reserved),
            )
    return prefix


def _refusal(code: str, value: Union[str, Prefix], problem: str, hint: str, **details: Any) -> RdmaError:
    shown = str(value) if isinstance(value, Prefix) else quoted(value)
    details["child_range"] = value if isinstance(value, str) else shown
    return RdmaError(code, "The child range %s %s." % (shown, problem), hint=hint, **details)


def length_for(subnet_length: int, nics: int = MAX_NICS) -> Optional[int]:
    """The longest prefix length whose ranges hold ``nics`` NICs of every node of a subnet (F18).

    ``None`` when that would be below 8.
    """
    length = subnet_length - (nics - 1).bit_length()
    return length if length >= MIN_LENGTH else None


def length_for_16_nics(subnet_length: int) -> int:
    """The length of the range that holds 16 NICs: the length of the subnet minus 4 (F18).

    :raises RdmaError: ``no_range_holds_16``
    """
    length = length_for(subnet_length)
    if length is None:
        raise RdmaError(
            "no_range_holds_16",
            "No child range holds 16 NICs of a /%d subnet: its length would be %d, below /%d."
            % (subnet_length, subnet_length - 4, MIN_LENGTH),
            hint="Put the nodes into a subnet of /12 or smaller.",
            subnet_prefix_len=subnet_length,
        )
    return length


def capacity(subnet_length: int, range_length: int) -> Capacity:
    """How many NICs of each node a range holds, whatever the position of the node in its subnet (F19).

    :raises RdmaError: ``child_range_smaller_than_subnet``
    """
    if range_length > subnet_length:
        raise smaller_than_subnet("/%d" % range_length, "/%d" % subnet_length)
    nics = min(MAX_NICS, 1 << (subnet_length - range_length))
    return Capacity(nics, nics - 1)


def smaller_than_subnet(child_range: str, subnet: str) -> RdmaError:
    """The error for a range that is smaller than the primary VNIC subnet (F25, check 11)."""
    return RdmaError(
        "child_range_smaller_than_subnet",
        "The child range %s is smaller than the primary VNIC subnet %s." % (child_range, subnet),
        hint="Choose a range of at least the size of the subnet for each NIC: 4 bits shorter for 16 NICs.",
        child_range=child_range,
        subnet=subnet,
    )
