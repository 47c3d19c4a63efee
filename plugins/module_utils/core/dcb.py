# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The bytes of DCB netlink: PFC and the table of applications (S60, S61). Private to rdma.k8s: it may change any time.

A message is a header of four bytes with attributes behind it; what is set or told for IEEE 802.1Qaz is one nested
attribute, whose content is made and read here. Numbers have the byte order of the machine.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Optional

IEEE_SET, IEEE_GET, GET_DCBX, SET_DCBX, IEEE_DEL = 20, 21, 22, 23, 27
RTM_GETDCB, RTM_SETDCB = 78, 79
ATTR_IFNAME, ATTR_IEEE, ATTR_DCBX = 1, 13, 14
_PFC, _APP_TABLE, _APP = 2, 3, 1
_SELECTOR_DSCP = 5
_HEADER = struct.Struct("=HH")
_APPLICATION = struct.Struct("=BBH")  # selector, priority, protocol
_PFC_HEAD = struct.Struct(
    "=BBBxHxx"
)  # capability, set of priorities, MBC, delay; then two times eight counters
_PFC_COUNTERS = struct.Struct("=8Q8Q")  # pause frames sent, then received, by priority
_PFC_SIZE = _PFC_HEAD.size + _PFC_COUNTERS.size
_TYPE = 0x3FFF  # the two bits above say how an attribute is meant


@dataclass(frozen=True)
class Ieee:
    """What a driver tells: ``pfc`` is the set of lossless priorities, ``apps`` are pairs of DSCP and priority.

    ``pfc_bytes`` is the whole structure, since setting one of its fields sends all of them.
    """

    pfc: Optional[int] = None
    pfc_bytes: bytes = b""
    apps: tuple[tuple[int, int], ...] = ()

    @property
    def pauses(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The counters of pause frames by priority: those sent, those received (S61)."""
        counters = _PFC_COUNTERS.unpack_from(self.pfc_bytes, _PFC_HEAD.size) if self.pfc_bytes else (0,) * 16
        return counters[:8], counters[8:]


def attribute(number: int, content: bytes) -> bytes:
    """One attribute with its header, filled up to a multiple of four."""
    size = _HEADER.size + len(content)
    return _HEADER.pack(size, number) + content + bytes(-size % 4)


def attributes(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Numbers and contents of attributes one behind the other.

    :raises ValueError: a length that does not fit.
    """
    at = 0
    while at + _HEADER.size <= len(data):
        size, number = _HEADER.unpack_from(data, at)
        if size < _HEADER.size or at + size > len(data):
            raise ValueError("an attribute of %d bytes at %d of %d" % (size, at, len(data)))
        yield number & _TYPE, data[at + _HEADER.size : at + size]
        at += size + -size % 4


def read_ieee(data: bytes) -> Ieee:
    """Read the content of the IEEE attribute.

    :raises ValueError: attributes or structures of a wrong size.
    """
    mask, whole, apps = None, b"", []
    for number, content in attributes(data):
        if number == _PFC:
            if len(content) != _PFC_SIZE:
                raise ValueError("PFC has %d bytes instead of %d" % (len(content), _PFC_SIZE))
            whole, mask = content, content[1]
        elif number == _APP_TABLE:
            for kind, entry in attributes(content):
                if kind == _APP and len(entry) == _APPLICATION.size:
                    selector, priority, protocol = _APPLICATION.unpack(entry)
                    if selector == _SELECTOR_DSCP:
                        apps.append((protocol, priority))
    return Ieee(mask, whole, tuple(sorted(apps)))


def write_pfc(mask: int, held: bytes = b"") -> bytes:
    """The content that sets PFC: the structure as the driver told it, with another set of priorities.

    :param held: :attr:`Ieee.pfc_bytes`.
    """
    capability, _unused, mbc, delay = _PFC_HEAD.unpack_from(held) if held else (0, 0, 0, 0)
    head = _PFC_HEAD.pack(capability, mask, mbc, delay)
    return attribute(_PFC, head + bytes(_PFC_SIZE - len(head)))


def write_apps(entries: Iterable[tuple[int, int]]) -> bytes:
    """The content that adds, or deletes, entries of the map from DSCP to priority."""
    table = b"".join(
        [attribute(_APP, _APPLICATION.pack(_SELECTOR_DSCP, priority, dscp)) for dscp, priority in entries]
    )
    return attribute(_APP_TABLE, table)
