# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Addresses and prefixes: strict parsing, overlap, text form. Private to rdma.k8s: it may change with any release.

The parser takes exactly what the driver takes (F29): no spaces, no leading zeros, no netmasks, ASCII digits only, a
length where one is due. The standard library and netaddr accept more (F137), so no text reaches them unchecked.
Values hold plain integers, so that arithmetic over a whole fleet stays cheap.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Optional

from .errors import RdmaError

WIDTH = {4: 32, 6: 128}
"""Bits of an address, by IP version."""

_OCTETS = tuple([{str(number): number << shift for number in range(256)} for shift in (24, 16, 8, 0)])
_A, _B, _C, _D = _OCTETS
_IPV4_LENGTHS = {str(number): number for number in range(33)}
_LENGTH = re.compile(r"0|[1-9][0-9]{0,2}")
_GROUP = re.compile(r"[0-9A-Fa-f]{1,4}")
_IPV4_LINK_LOCAL = 0xA9FE  # the first 16 bits of 169.254.0.0/16
_IPV4_MAPPED = 0xFFFF  # the bits above the IPv4 address in ::ffff:0:0/96


@dataclass(frozen=True, order=True)
class Address:
    """An IP address. ``version`` is 4 or 6; ``zone`` (IPv6 only) is the text behind ``%``.

    An IPv4-mapped IPv6 address is IPv6 (F29).
    """

    version: int
    value: int
    zone: str = ""

    @property
    def is_link_local(self) -> bool:
        """In 169.254.0.0/16 or fe80::/10."""
        if self.version == 4:
            return self.value >> 16 == _IPV4_LINK_LOCAL
        return self.value >> 118 == 0xFE80 >> 6

    def __str__(self) -> str:
        if self.version == 4:
            return ipv4_text(self.value)
        return _ipv6_text(self.value) + ("%" + self.zone if self.zone else "")


@dataclass(frozen=True, order=True)
class Prefix:
    """An IP prefix as it was written: ``value`` keeps the host bits of the text (see :meth:`masked`)."""

    version: int
    value: int
    length: int

    @property
    def network(self) -> int:
        """The first address, as a number."""
        shift = WIDTH[self.version] - self.length
        return self.value >> shift << shift

    @property
    def size(self) -> int:
        """The number of addresses."""
        return 1 << (WIDTH[self.version] - self.length)

    @property
    def last(self) -> int:
        """The last address, as a number."""
        return self.network + self.size - 1

    @property
    def is_masked(self) -> bool:
        """Whether all host bits are zero."""
        return self.value == self.network

    def masked(self) -> Prefix:
        """The same prefix with all host bits zero."""
        return Prefix(self.version, self.network, self.length)

    def overlaps(self, other: Prefix) -> bool:
        """Whether the two share an address; prefixes of two families never do."""
        if self.version != other.version:
            return False
        return not (self.value ^ other.value) >> (WIDTH[self.version] - min(self.length, other.length))

    def contains(self, address: Address) -> bool:
        """Whether the address is inside; one of the other family never is."""
        if self.version != address.version:
            return False
        return not (self.value ^ address.value) >> (WIDTH[self.version] - self.length)

    def __str__(self) -> str:
        return "%s/%d" % (Address(self.version, self.value), self.length)


def quoted(value: Any) -> str:
    """A JSON value for a message: quoted, on one line, short, safe to print. Lists and objects are only named."""
    if isinstance(value, str):
        return repr(value) if len(value) <= 60 else repr(value[:57]) + "..."
    if isinstance(value, int) and value.bit_length() > 128:
        return "a very large number"
    if value is None or isinstance(value, (int, float)):
        return repr(value)
    return (
        "an object" if isinstance(value, dict) else "a list" if isinstance(value, list) else "no JSON value"
    )


def ipv4_text(value: int) -> str:
    """The text of an IPv4 address given as a number."""
    return "%d.%d.%d.%d" % (value >> 24, value >> 16 & 255, value >> 8 & 255, value & 255)


def _ipv6_text(value: int) -> str:
    if value >> 32 == _IPV4_MAPPED:
        return "::ffff:" + ipv4_text(value & 0xFFFFFFFF)
    groups = [value >> shift & 0xFFFF for shift in range(112, -1, -16)]
    start, count = _longest_zeros(groups)
    words = ["%x" % group for group in groups]
    if count < 2:
        return ":".join(words)
    return ":".join(words[:start]) + "::" + ":".join(words[start + count :])


def _longest_zeros(groups: Sequence[int]) -> tuple[int, int]:
    """Start and count of the first longest run of zeros."""
    best = (0, 0)
    start = 0
    for position, group in enumerate(groups):
        if group:
            start = position + 1
        elif position + 1 - start > best[1]:
            best = (start, position + 1 - start)
    return best


def _ipv4_value(text: str) -> Optional[int]:
    parts = text.split(".")
    if len(parts) != 4:
        return None
    try:
        return _A[parts[0]] | _B[parts[1]] | _C[parts[2]] | _D[parts[3]]
    except KeyError:
        return None


def _ipv6_groups(text: str, may_end_in_ipv4: bool) -> Optional[list[int]]:
    """The 16-bit groups of a part of an IPv6 address without ``::``."""
    if not text:
        return []
    words = text.split(":")
    tail: list[int] = []
    if may_end_in_ipv4 and "." in words[-1]:
        value = _ipv4_value(words.pop())
        if value is None:
            return None
        tail = [value >> 16, value & 0xFFFF]
    if not all(_GROUP.fullmatch(word) for word in words):
        return None
    return [int(word, 16) for word in words] + tail


def _ipv6_value(text: str) -> Optional[int]:
    head, double, rest = text.partition("::")
    left = _ipv6_groups(head, not double)
    right = _ipv6_groups(rest, True)
    if left is None or right is None:
        return None
    missing = 8 - len(left) - len(right)
    if missing < 0 or bool(double) != (missing > 0):
        return None
    value = 0
    for group in [*left, *[0] * missing, *right]:
        value = value << 16 | group
    return value


def find_address(text: Any) -> Optional[Address]:
    """Read an address strictly (F29); ``None`` when the value is not the text of one."""
    if not isinstance(text, str):
        return None
    value = _ipv4_value(text)
    if value is not None:
        return Address(4, value)
    head, percent, zone = text.partition("%")
    if ":" not in head or bool(percent) != bool(zone):
        return None
    value = _ipv6_value(head)
    return None if value is None else Address(6, value, zone)


class _Tails(dict[str, tuple[int, int]]):
    """Last octet and length by the text behind the third dot of an IPv4 prefix; at most 256 * 33 entries.

    A text that is not strict raises ``KeyError``.
    """

    def __missing__(self, text: str) -> tuple[int, int]:
        octet, _unused, length = text.partition("/")
        self[text] = pair = (_D[octet], _IPV4_LENGTHS[length])
        return pair


_TAILS = _Tails()


def find_prefix(text: Any) -> Optional[Prefix]:
    """Read a prefix strictly (F29), host bits kept; ``None`` when the value is not the text of one."""
    if not isinstance(text, str):
        return None
    try:
        a, b, c, tail = text.split(".")
        octet, length = _TAILS[tail]
        return Prefix(4, _A[a] | _B[b] | _C[c] | octet, length)
    except (ValueError, KeyError):
        return _find_ipv6_prefix(text)


def _find_ipv6_prefix(text: str) -> Optional[Prefix]:
    head, slash, length = text.rpartition("/")
    if not slash or not _LENGTH.fullmatch(length) or int(length) > WIDTH[6]:
        return None
    address = find_address(head)
    if address is None or address.version != 6 or address.zone:
        return None
    return Prefix(6, address.value, int(length))


def parse_address(text: Any) -> Address:
    """Read an address strictly (F29).

    :raises RdmaError: ``address_malformed``
    """
    address = find_address(text)
    if address is None:
        raise RdmaError(
            "address_malformed",
            "%s is not an IP address." % quoted(text),
            hint="Write four decimal numbers from 0 to 255 with dots, or an IPv6 address; no spaces, no leading "
            "zeros, no length.",
            value=text,
        )
    return address


def parse_prefix(text: Any) -> Prefix:
    """Read a prefix strictly (F29); host bits are kept, see :attr:`Prefix.is_masked`.

    :raises RdmaError: ``prefix_malformed``
    """
    prefix = find_prefix(text)
    if prefix is None:
        raise RdmaError(
            "prefix_malformed",
            "%s is not a prefix of the form <address>/<length>." % quoted(text),
            hint=PREFIX_HINT,
            value=text,
        )
    return prefix


PREFIX_HINT = (
    "Write <address>/<length>, such as 10.208.0.0/12: no spaces, no leading zeros, no netmask, no zone."
)


def find_destination(text: Any) -> Optional[Prefix]:
    """Read the destination of a route as iproute2 prints it: a prefix, a bare address (a host route) or ``default``
    (F40, F47). ``None`` when the value is none of these. ``default`` is read as 0.0.0.0/0 (F141)."""
    if text == "default":
        return Prefix(4, 0, 0)
    prefix = find_prefix(text)
    if prefix is not None:
        return prefix
    address = find_address(text)
    return None if address is None else Prefix(address.version, address.value, WIDTH[address.version])


class Scan(NamedTuple):
    """What :func:`scan` found: positions in the list of texts."""

    overlapping: list[int]
    malformed: list[int]


def scan(prefix: Prefix, texts: Iterable[str]) -> Scan:
    """Read many prefixes from text strictly (F29) and tell which overlap one prefix.

    Made for the routes of a fleet: about half a microsecond a text (B2). Texts of the other family count as read.
    """
    found = Scan([], [])
    network = prefix.network
    width = WIDTH[prefix.version]
    limits = [1 << (width - min(length, prefix.length)) for length in range(33)]
    for position, text in enumerate(texts):
        try:
            a, b, c, tail = text.split(".")
            octet, length = _TAILS[tail]
            value = _A[a] | _B[b] | _C[c] | octet
        except (ValueError, KeyError, AttributeError):
            other = find_prefix(text)
            if other is None:
                found.malformed.append(position)
            elif prefix.overlaps(other):
                found.overlapping.append(position)
            continue
        if value ^ network < limits[length] and width == 32:
            found.overlapping.append(position)
    return found


class PrefixIndex:
    """Many prefixes, made ready for many overlap queries (B2).

    A query answers with positions in the list that was given. Building sorts once; a query is a few bisections.
    """

    def __init__(self, prefixes: Iterable[Prefix]) -> None:
        self._families = {version: _Family(version) for version in WIDTH}
        for position, prefix in enumerate(prefixes):
            self._families[prefix.version].add(prefix, position)
        for family in self._families.values():
            family.freeze()

    def overlaps(self, prefix: Prefix) -> bool:
        """Whether any prefix of the index overlaps."""
        return self._families[prefix.version].overlaps(prefix)

    def overlapping(self, prefix: Prefix) -> list[int]:
        """The positions of all prefixes of the index that overlap, in ascending order."""
        return sorted(self._families[prefix.version].overlapping(prefix))

    def outermost(self) -> list[Prefix]:
        """The prefixes that no other one contains, masked, each once, in ascending order.

        They cover the same addresses as all of them.
        """
        return [prefix for family in self._families.values() for prefix in family.roots]


class _Family:
    """The prefixes of one family. Two prefixes overlap only when one contains the other, which this builds on."""

    def __init__(self, version: int) -> None:
        self.version = version
        self.width = WIDTH[version]
        self.rows: list[tuple[int, int, int]] = []  # network, length, position
        self.by_key: dict[tuple[int, int], list[int]] = {}

    def add(self, prefix: Prefix, position: int) -> None:
        network = prefix.network
        self.rows.append((network, prefix.length, position))
        self.by_key.setdefault((network, prefix.length), []).append(position)

    def freeze(self) -> None:
        self.rows.sort()
        self.starts = [row[0] for row in self.rows]
        self.lengths = sorted({row[1] for row in self.rows})
        self.roots: list[Prefix] = []
        self.root_ends: list[int] = []
        for network, length, _position in self.rows:
            if not self.root_ends or network > self.root_ends[-1]:
                self.roots.append(Prefix(self.version, network, length))
                self.root_ends.append(network + (1 << (self.width - length)) - 1)

    def overlaps(self, prefix: Prefix) -> bool:
        """Roots do not overlap each other, so the first that does not end before the prefix decides."""
        shift = self.width - prefix.length
        block = prefix.value >> shift
        place = bisect_left(self.root_ends, block << shift)
        return place < len(self.roots) and self.roots[place].value < (block + 1) << shift

    def overlapping(self, prefix: Prefix) -> list[int]:
        found = []
        for length in self.lengths:  # those that contain it
            if length >= prefix.length:
                break
            shift = self.width - length
            found += self.by_key.get((prefix.value >> shift << shift, length), [])
        shift = self.width - prefix.length
        block = prefix.value >> shift
        first = bisect_left(self.starts, block << shift)
        last = bisect_left(self.starts, (block + 1) << shift, first)
        found += [position for _unused, length, position in self.rows[first:last] if length >= prefix.length]
        return found
