# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The answers of rtnetlink without the netlink library, whose import costs more than all that is read here.

For modules that change a node, and for undo, which must work where no library is. Private to rdma.k8s: it may change
with any release.
"""

from __future__ import annotations

import errno
import os
import socket
import struct
from collections.abc import Iterator
from typing import Optional

from .files import Root, reason_of
from .records import AddressRecord, LinkRecord, RouteRecord, RtnetlinkRecord, RuleRecord

SOURCE = "rtnetlink"
REQUEST, ACK, DUMP = 1, 4, 0x300
NEW_LINK, GET_LINK, GET_ADDRESS, GET_ROUTE, GET_RULE, GET_NSID, GET_NEXTHOP = 16, 18, 22, 26, 34, 90, 106

_ERROR, _DONE = 2, 3
_DUMP_INTERRUPTED = 0x10
_TYPE_MASK = 0x3FFF
_BUFFER = 1 << 17
_LIMIT = 5.0
_ATTEMPTS = 3
_UNICAST = 1
_OPERSTATES = ("unknown", "notpresent", "down", "lowerlayerdown", "testing", "dormant", "up")
_LINK = struct.Struct("=BxHiII")
_ADDRESS = struct.Struct("=BBBBI")
_ROUTE = struct.Struct("=8BI")
_RULE = struct.Struct("=8BI")
_INVERT = 2
_NO_SELECTORS = frozenset([2, 6, 15, 18, 21])  # source, priority, table, padding, who made it
_SUPPRESSORS = frozenset([13, 14])
_NO_LIMIT = 0xFFFFFFFF


class _InterruptedError(Exception):
    """The kernel's tables changed during a dump."""


def ask(kind: int, flags: int, body: bytes) -> Iterator[bytes]:
    """Send one request and yield the bodies of the answers, until the kernel says that it is done.

    :raises OSError: what the kernel answers.
    """
    header = struct.pack("=IHHII", 16 + len(body), kind, flags, 1, 0)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, 0) as asker:
        asker.settimeout(_LIMIT)
        asker.sendto(header + body, (0, 0))
        while True:
            for answer, state, part in _messages(asker.recv(_BUFFER)):
                if state & _DUMP_INTERRUPTED:
                    raise _InterruptedError
                if answer == _ERROR:
                    code = -struct.unpack_from("=i", part)[0]
                    if code:
                        raise OSError(code, os.strerror(code))
                    return
                if answer == _DONE:
                    return
                yield part


def _messages(data: bytes) -> Iterator[tuple[int, int, bytes]]:
    at = 0
    while at + 16 <= len(data):
        length, kind, flags = struct.unpack_from("=IHH", data, at)
        if length < 16:
            return
        yield kind, flags, data[at + 16 : at + length]
        at += (length + 3) & ~3


def attributes(data: bytes, at: int = 0) -> dict[int, bytes]:
    """The attributes of a message, by number."""
    found = {}
    while at + 4 <= len(data):
        length, kind = struct.unpack_from("=HH", data, at)
        if length < 4:
            break
        found[kind & _TYPE_MASK] = data[at + 4 : at + length]
        at += (length + 3) & ~3
    return found


def number(data: Optional[bytes]) -> int:
    """A 32-bit number; 0 when there is none."""
    return struct.unpack("=I", data)[0] if data is not None and len(data) == 4 else 0


def dump(kind: int, body: bytes) -> list[bytes]:
    """All answers of a dump, asked again when the tables changed meanwhile.

    :raises OSError: what the kernel answers.
    """
    for _unused in range(_ATTEMPTS):
        try:
            return list(ask(kind, REQUEST | DUMP, body))
        except _InterruptedError:
            continue
    raise InterruptedError("the tables of the kernel change all the time")


def links() -> list[bytes]:
    """All interfaces of this network namespace, one message for each.

    :raises OSError: what the kernel answers.
    """
    return dump(GET_LINK, _LINK.pack(0, 0, 0, 0, 0))


def namespace_number(handle: int) -> Optional[int]:
    """The number by which the namespace of this thread knows another one that is open, as its links name it.

    ``-1`` when it has none; ``None`` when the kernel does not tell.
    """
    try:
        answers = list(ask(GET_NSID, REQUEST | ACK, struct.pack("=BxxxHHI", 0, 8, 3, handle)))
    except OSError:
        return None
    told = attributes(answers[0], 4).get(1) if answers else None
    return struct.unpack("=i", told)[0] if told is not None and len(told) == 4 else None


def link_request(index: int, more: bytes) -> bytes:
    """The body of a request about one interface."""
    return _LINK.pack(0, 0, index, 0, 0) + more


def read(root: Root) -> Optional[RtnetlinkRecord]:
    """Links, addresses and unicast routes of both families; ``None`` with the reason among the errors of ``root``.

    The same as :func:`.rtnetlink.read` says; of policy rules only which attributes they have beside a source.
    """
    try:
        return RtnetlinkRecord(
            links=tuple([_link(body) for body in links()]),
            addresses=tuple(
                filter(None, [_address(body) for body in dump(GET_ADDRESS, _ADDRESS.pack(0, 0, 0, 0, 0))])
            ),
            routes=tuple(_routes()),
            rules=tuple(_rules()),
        )
    except (OSError, struct.error, ValueError) as error:
        root.fail(SOURCE, reason_of(error) if isinstance(error, OSError) else str(error))
        return None


def _link(body: bytes) -> LinkRecord:
    _family, arphrd, index, flags, _change = _LINK.unpack_from(body)
    found = attributes(body, _LINK.size)
    state = found.get(16, b"\0")[0]
    return LinkRecord(
        index=index,
        name=text(found.get(3, b"")),
        arphrd=arphrd,
        flags=flags,
        kind=text(attributes(found.get(18, b"")).get(1, b"")),
        mac=":".join(["%02x" % byte for byte in found.get(1, b"")]),
        mtu=number(found.get(4)),
        operstate=_OPERSTATES[state] if state < len(_OPERSTATES) else "",
        master=number(found.get(10)),
        parent=number(found.get(5)),
        elsewhere=37 in found,
    )


def _address(body: bytes) -> Optional[AddressRecord]:
    family, length, flags, _scope, index = _ADDRESS.unpack_from(body)
    found = attributes(body, _ADDRESS.size)
    data = found.get(2) or found.get(1)
    if data is None or family not in (socket.AF_INET, socket.AF_INET6):
        return None
    return AddressRecord(index, socket.inet_ntop(family, data), length, flags)


def _routes() -> Iterator[RouteRecord]:
    objects = _Nexthops()
    for family in (socket.AF_INET, socket.AF_INET6):
        for body in dump(GET_ROUTE, _ROUTE.pack(family, 0, 0, 0, 0, 0, 0, 0, 0)):
            _family, length, _source, _tos, table, protocol, scope, kind, _flags = _ROUTE.unpack_from(body)
            if kind != _UNICAST:
                continue
            found = attributes(body, _ROUTE.size)
            for link, own in _hops(found, family, objects):
                yield RouteRecord(
                    family=family,
                    dst=_ip(family, found.get(1)),
                    length=length,
                    type=kind,
                    table=number(found[15]) if 15 in found else table,
                    link=link,
                    gateway=_ip(family, own.get(5)) or _via(own.get(18)),
                    source=_ip(family, found.get(7)),
                    scope=scope,
                    protocol=protocol,
                    metric=number(found.get(6)),
                )


def _rules() -> Iterator[RuleRecord]:
    for family in (socket.AF_INET, socket.AF_INET6):
        try:
            bodies = dump(GET_RULE, _RULE.pack(family, 0, 0, 0, 0, 0, 0, 0, 0))
        except OSError as error:
            if error.errno in (errno.EAFNOSUPPORT, errno.EOPNOTSUPP):  # a kernel without rules
                continue
            raise
        for body in bodies:
            _family, _dst, length, tos, table, _r1, _r2, action, flags = _RULE.unpack_from(body)
            found = attributes(body, _RULE.size)
            more = ["not"] if flags & _INVERT else []
            more += ["tos"] if tos else []
            more += [
                "attribute %d" % kind
                for kind, data in sorted(found.items())
                if kind not in _NO_SELECTORS and not (kind in _SUPPRESSORS and number(data) == _NO_LIMIT)
            ]
            yield RuleRecord(
                family=family,
                priority=number(found.get(6)),
                source=_ip(family, found.get(2)),
                length=length,
                table=number(found[15]) if 15 in found else table,
                action=action,
                selectors=" ".join(more),
            )


class _Nexthops:
    """Next hops that are objects of their own, read when a route names one."""

    def __init__(self) -> None:
        self._found: Optional[dict[int, tuple[int, dict[int, bytes]]]] = None

    def of(self, key: int) -> list[tuple[int, dict[int, bytes]]]:
        """Family and attributes of an object, or of each member of a group; none when it is gone."""
        if self._found is None:
            bodies = dump(GET_NEXTHOP, bytes(8))
            parsed = [(body[0], attributes(body, 8)) for body in bodies]
            self._found = {number(own.get(1)): (family, own) for family, own in parsed}
        family, own = self._found.get(key, (0, {}))
        members = own.get(2, b"")
        if not members:
            return [(family, own)] if own else []
        numbers = [struct.unpack_from("=I", members, at)[0] for at in range(0, len(members) - 7, 8)]
        return [self._found[each] for each in numbers if each in self._found]


def _hops(found: dict[int, bytes], family: int, objects: _Nexthops) -> Iterator[tuple[int, dict[int, bytes]]]:
    """Interface and attributes of each next hop; interface 0 when it is not known."""
    data = found.get(9)
    if data is None and 4 not in found and 30 in found:
        for own_family, own in objects.of(number(found[30])) or [(family, {})]:
            gateway = own.get(6)
            if gateway is None:
                yield number(own.get(5)), {}
            elif own_family == family:
                yield number(own.get(5)), {5: gateway}
            else:
                yield number(own.get(5)), {18: struct.pack("=H", own_family) + gateway}
        return
    if data is None:
        yield number(found.get(4)), found
        return
    at = 0
    while at + 8 <= len(data):
        length, _flags, _hops, link = struct.unpack_from("=HBBi", data, at)
        if length < 8:
            return
        yield link, attributes(data[at + 8 : at + length])
        at += (length + 3) & ~3


def _via(data: Optional[bytes]) -> str:
    """A gateway of the other family."""
    if data is None or len(data) < 6:
        return ""
    return _ip(struct.unpack_from("=H", data)[0], data[2:])


def _ip(family: int, data: Optional[bytes]) -> str:
    return socket.inet_ntop(family, data) if data else ""


def text(data: bytes) -> str:
    """A name as the kernel gives it, up to its null byte."""
    return data.partition(b"\0")[0].decode("utf-8", "replace")
