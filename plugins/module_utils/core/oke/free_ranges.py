# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Child ranges that nothing uses. Private to rdma.k8s: it may change with any release."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, Optional

from ... import deps
from ..errors import RdmaError
from ..net import Prefix, PrefixIndex, find_destination, parse_prefix
from .child_range import length_for
from .constants import MAX_LENGTH, MAX_NICS, MIN_LENGTH, RESERVED_RANGES

DEFAULT_SUPERNETS: tuple[Prefix, ...] = tuple(
    map(parse_prefix, ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10"))
)
"""Where ranges are looked for, in this order: the private networks, then the shared address space."""


def find(
    length: int,
    used: Iterable[Prefix],
    supernets: Optional[Iterable[Prefix]] = None,
    limit: int = 3,
) -> list[Prefix]:
    """The first free ranges of one length: aligned, inside a supernet, not reserved (F27), overlapping nothing used.

    :param length: from 8 to 30 (F27); for another length there is none.
    :param used: networks in use; IPv6 ones and default routes do not matter.
    :param supernets: networks to look in, in this order, IPv6 ones are passed over; default
        :data:`DEFAULT_SUPERNETS`.
    """
    if not MIN_LENGTH <= length <= MAX_LENGTH:
        return []
    taken = [prefix for prefix in used if prefix.version == 4 and prefix.length] + list(RESERVED_RANGES)
    return list(
        islice(_candidates(length, PrefixIndex(taken).outermost(), supernets or DEFAULT_SUPERNETS), limit)
    )


def _candidates(length: int, taken: list[Prefix], supernets: Iterable[Prefix]) -> Iterator[Prefix]:
    netaddr = deps.netaddr()
    seen: list[Prefix] = []  # supernets may overlap each other
    for supernet in supernets:
        if supernet.version != 4:
            continue
        free = netaddr.IPSet([_library_form(netaddr, supernet)])
        free -= netaddr.IPSet(
            [_library_form(netaddr, entry) for entry in [*taken, *seen] if entry.overlaps(supernet)]
        )
        seen.append(supernet)
        for block in free.iter_cidrs():
            if block.prefixlen <= length:
                for network in block.subnet(length):
                    yield Prefix(4, int(network.first), length)


def _library_form(netaddr: Any, prefix: Prefix) -> Any:
    return netaddr.IPNetwork(str(prefix.masked()))


def first(
    subnet: Prefix,
    nics: int = MAX_NICS,
    avoid: Iterable[str] = (),
    supernets: Optional[Iterable[str]] = None,
) -> Prefix:
    """The first free child range for the nodes of a subnet (F18).

    :param subnet: the primary VNIC subnet; it is always avoided.
    :param nics: RDMA NICs of a node, 1 to 16.
    :param avoid: networks in use: prefixes, addresses or ``default`` (which does not matter).
    :raises RdmaError: ``subnet_not_ipv4``, ``nic_count``, ``no_range_holds_nics``, ``no_free_range``,
        ``prefix_malformed``
    """
    if subnet.version != 4:
        raise RdmaError(
            "subnet_not_ipv4", "The subnet %s is not IPv4." % subnet, hint="Give the primary VNIC subnet."
        )
    if not 1 <= nics <= MAX_NICS:
        raise RdmaError(
            "nic_count",
            "A node with %d RDMA NICs cannot be planned, expected 1 to %d." % (nics, MAX_NICS),
            hint="The profile serves at most %d NICs of a node." % MAX_NICS,
            nics=nics,
        )
    length = length_for(subnet.length, nics)
    if length is None:
        raise RdmaError(
            "no_range_holds_nics",
            "No child range holds %d NICs of nodes in %s: it would be larger than a /%d."
            % (nics, subnet, MIN_LENGTH),
            hint="Put the nodes into a smaller subnet.",
            nics=nics,
            subnet=str(subnet),
        )
    used = [find_destination(text) or parse_prefix(text) for text in avoid]
    inside = None if supernets is None else [parse_prefix(text) for text in supernets]
    found = find(min(length, MAX_LENGTH), [subnet, *used], inside, limit=1)
    if not found:
        raise RdmaError(
            "no_free_range",
            "No free /%d range is left in %s." % (length, ", ".join(map(str, inside or DEFAULT_SUPERNETS))),
            hint="Give other supernets, or free address space.",
            length=length,
        )
    return found[0]
