# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a claim needs of rtnetlink and nothing else, for a provider that asks anew for every claim.

The names and types of the links, the IPv4 addresses, the destinations of the IPv4 routes: a fifth of the time of a
whole reading, since attributes behind the wanted one are not looked at. Private to rdma.k8s: it may change with any
release.
"""

from __future__ import annotations

import socket
import struct
from typing import Optional

from . import raw_netlink
from .files import Root, reason_of
from .records import AddressRecord, LinkRecord, RouteRecord

_SKIP_STATISTICS = struct.pack("=HHI", 8, 29, 8)  # IFLA_EXT_MASK
_LINK = struct.Struct("=BxHiII")
_ADDRESS = struct.Struct("=BBBBI")
_ROUTE = struct.Struct("=8BI")
_HEAD = struct.Struct("=HH")
_NAME, _LOCAL, _ANY_ADDRESS, _DESTINATION = 3, 2, 1, 1
_UNICAST = 1
_FAILURES = (OSError, struct.error, ValueError)


def links(root: Root) -> Optional[tuple[LinkRecord, ...]]:
    """All interfaces, with nothing but index, name and hardware type."""
    try:
        bodies = raw_netlink.dump(raw_netlink.GET_LINK, _LINK.pack(0, 0, 0, 0, 0) + _SKIP_STATISTICS)
        found = []
        for body in bodies:
            _family, arphrd, index, _flags, _change = _LINK.unpack_from(body)
            name = raw_netlink.text(_attribute(body, _LINK.size, _NAME) or b"")
            found.append(LinkRecord(index=index, name=name, arphrd=arphrd))
        return tuple(found)
    except _FAILURES as error:
        _tell(root, "links", error)
        return None


def addresses(root: Root) -> Optional[tuple[AddressRecord, ...]]:
    """All IPv4 addresses."""
    try:
        found = []
        for body in raw_netlink.dump(raw_netlink.GET_ADDRESS, _ADDRESS.pack(socket.AF_INET, 0, 0, 0, 0)):
            family, length, _flags, _scope, index = _ADDRESS.unpack_from(body)
            data = _attribute(body, _ADDRESS.size, _LOCAL) or _attribute(body, _ADDRESS.size, _ANY_ADDRESS)
            if family == socket.AF_INET and data is not None:
                found.append(AddressRecord(index, socket.inet_ntop(socket.AF_INET, data), length))
        return tuple(found)
    except _FAILURES as error:
        _tell(root, "addresses", error)
        return None


def routes(root: Root) -> Optional[tuple[RouteRecord, ...]]:
    """The destinations of the unicast IPv4 routes of all tables, each once."""
    try:
        found: dict[tuple[bytes, int], None] = {}
        for body in raw_netlink.dump(raw_netlink.GET_ROUTE, _ROUTE.pack(socket.AF_INET, *[0] * 8)):
            if body[7] == _UNICAST:
                found[_attribute(body, _ROUTE.size, _DESTINATION) or b"", body[1]] = None
        return tuple([_route(data, length) for data, length in found])
    except _FAILURES as error:
        _tell(root, "routes", error)
        return None


def _route(data: bytes, length: int) -> RouteRecord:
    text = socket.inet_ntop(socket.AF_INET, data) if data else ""
    return RouteRecord(family=socket.AF_INET, dst=text, length=length)


def _attribute(body: bytes, at: int, wanted: int) -> Optional[bytes]:
    """The first attribute of a kind."""
    end = len(body)
    while at + 4 <= end:
        length, kind = _HEAD.unpack_from(body, at)
        if kind == wanted:
            return body[at + 4 : at + length]
        if length < 4:
            return None
        at += (length + 3) & ~3
    return None


def _tell(root: Root, what: str, error: Exception) -> None:
    source = "%s:%s" % (raw_netlink.SOURCE, what)
    root.fail(source, reason_of(error) if isinstance(error, OSError) else str(error))
