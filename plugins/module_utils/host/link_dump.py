# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The links of a namespace with what the netlink library does not tell of a child. Private to rdma.k8s.

One dump, read without the library: a search through all namespaces of a node, and a probe that needs nothing else,
must not pay for its import.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Optional

_GETLINK, _DONE, _ERROR = 18, 3, 2
_REQUEST_DUMP = 0x301
_ADDRESS, _NAME, _MTU, _LINK, _LINKINFO, _NETNSID = 1, 3, 4, 5, 18, 37
_KIND, _DATA = 1, 2
_TYPE_MASK = 0x3FFF
_UP = 1
_BUFFER = 1 << 16

CHILD_KINDS = ("ipvlan", "ipvtap", "macvlan", "macvtap")


@dataclass(frozen=True)
class NsLink:
    """A link as its namespace shows it.

    :param lower: index of the lower device, in its own namespace; ``elsewhere``: which is another one.
    :param mode: of a child: ``0`` is L2 for ipvlan; ``flags``: ``0`` is bridge for ipvlan (F108).
    """

    index: int
    name: str
    kind: str = ""
    mac: str = ""
    mtu: int = 0
    up: bool = False
    lower: int = 0
    elsewhere: bool = False
    mode: Optional[int] = None
    flags: Optional[int] = None

    @property
    def is_child(self) -> bool:
        """Whether it is a child of an interface."""
        return self.kind in CHILD_KINDS


def read_links() -> list[NsLink]:
    """The links of the namespace of this thread.

    :raises OSError: what the kernel answers.
    """
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, 0) as asker:
        asker.settimeout(5)
        asker.sendto(struct.pack("=IHHIIBxHiII", 32, _GETLINK, _REQUEST_DUMP, 1, 0, 0, 0, 0, 0, 0), (0, 0))
        found: list[NsLink] = []
        while True:
            data = asker.recv(_BUFFER)
            for kind, body in _messages(data):
                if kind == _DONE:
                    return found
                if kind == _ERROR:
                    raise OSError(-struct.unpack_from("=i", body)[0], "")
                found.append(_link(body))


def _messages(data: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at + 16 <= len(data):
        length, kind = struct.unpack_from("=IH", data, at)
        if length < 16:
            return
        yield kind, data[at + 16 : at + length]
        at += (length + 3) & ~3


def _attributes(data: bytes) -> dict[int, bytes]:
    found, at = {}, 0
    while at + 4 <= len(data):
        length, kind = struct.unpack_from("=HH", data, at)
        if length < 4:
            break
        found[kind & _TYPE_MASK] = data[at + 4 : at + length]
        at += (length + 3) & ~3
    return found


def _link(body: bytes) -> NsLink:
    index, flags = struct.unpack_from("=iI", body, 4)
    attributes = _attributes(body[16:])
    info = _attributes(attributes.get(_LINKINFO, b""))
    data = _attributes(info.get(_DATA, b""))
    return NsLink(
        index=index,
        name=_text(attributes.get(_NAME, b"")),
        kind=_text(info.get(_KIND, b"")),
        mac=":".join(["%02x" % byte for byte in attributes.get(_ADDRESS, b"")]),
        mtu=_number(attributes.get(_MTU)) or 0,
        up=bool(flags & _UP),
        lower=_number(attributes.get(_LINK)) or 0,
        elsewhere=_NETNSID in attributes,
        mode=_number(data.get(1)),
        flags=_number(data.get(2)),
    )


def _text(data: bytes) -> str:
    return data.partition(b"\0")[0].decode("utf-8", "replace")


def _number(data: Optional[bytes]) -> Optional[int]:
    return None if data is None else int.from_bytes(data, "little" if _IS_LITTLE else "big")


_IS_LITTLE = struct.pack("=H", 1)[0] == 1
