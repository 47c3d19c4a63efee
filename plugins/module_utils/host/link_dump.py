# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The links of a namespace with what the netlink library does not tell of a child. Private to rdma.k8s.

One dump, read without the library: a search through all namespaces of a node, and a probe that needs nothing else,
must not pay for its import.
"""

from __future__ import annotations

import struct
import sys
from dataclasses import dataclass
from typing import Optional

from . import raw_netlink

_ADDRESS, _NAME, _MTU, _LINK, _LINKINFO, _NETNSID = 1, 3, 4, 5, 18, 37
_KIND, _DATA = 1, 2
_UP = 1

CHILD_KINDS = ("ipvlan", "ipvtap", "macvlan", "macvtap")


@dataclass(frozen=True)
class NsLink:
    """A link as its namespace shows it.

    :param lower: index of the lower device, in its own namespace; ``elsewhere``: which is another one, that this one
        knows by the number ``lower_namespace``.
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
    lower_namespace: Optional[int] = None
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
    return [_link(body) for body in raw_netlink.links()]


def _link(body: bytes) -> NsLink:
    index, flags = struct.unpack_from("=iI", body, 4)
    attributes = raw_netlink.attributes(body, 16)
    info = raw_netlink.attributes(attributes.get(_LINKINFO, b""))
    data = raw_netlink.attributes(info.get(_DATA, b""))
    return NsLink(
        index=index,
        name=raw_netlink.text(attributes.get(_NAME, b"")),
        kind=raw_netlink.text(info.get(_KIND, b"")),
        mac=":".join(["%02x" % byte for byte in attributes.get(_ADDRESS, b"")]),
        mtu=raw_netlink.number(attributes.get(_MTU)),
        up=bool(flags & _UP),
        lower=raw_netlink.number(attributes.get(_LINK)),
        elsewhere=_NETNSID in attributes,
        lower_namespace=_signed(attributes.get(_NETNSID)),
        mode=_number(data.get(1)),
        flags=_number(data.get(2)),
    )


def _number(data: Optional[bytes]) -> Optional[int]:
    """A number of any length; ``None`` when there is none."""
    return None if data is None else int.from_bytes(data, sys.byteorder)


def _signed(data: Optional[bytes]) -> Optional[int]:
    return None if data is None else int.from_bytes(data, sys.byteorder, signed=True)
