# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""RDMA netlink on the socket class of pyroute2, which has no such family. Private to rdma.k8s: it may change any time.

Family, operations and attributes are those of S10 and S11. The socket is opened only when ``ib_core`` is in the kernel:
the kernel would load the module for the asking (the answer of a read must not depend on the reader).
"""

from __future__ import annotations

import functools
import struct
from typing import Any, Optional

from .. import deps
from .files import Root
from .records import PortRecord, RdmaRecord
from .rtnetlink import explain, family_socket

SOURCE = "rdma-netlink"
IB_CORE = "/sys/module/ib_core"

NETLINK_RDMA = 20
_NLDEV = 5
_GET, _PORT_GET, _SYS_GET = (_NLDEV << 10 | operation for operation in (1, 5, 6))
_REQUEST, _ACK, _DUMP = 0x1, 0x4, 0x300
_ATTRIBUTES = {
    1: ("DEV_INDEX", "uint32"),
    2: ("DEV_NAME", "asciiz"),
    3: ("PORT_INDEX", "uint32"),
    12: ("PORT_STATE", "uint8"),
    13: ("PORT_PHYS_STATE", "uint8"),
    51: ("NDEV_NAME", "asciiz"),
    66: ("SYS_NETNS_MODE", "uint8"),
    93: ("SYS_COPY_ON_FORK", "uint8"),
}
_HIGHEST = 160  # attributes above are not of interest and may come


def read(root: Root) -> Optional[RdmaRecord]:
    """Mode of the RDMA subsystem and all ports of this network namespace.

    ``None`` with the reason among the errors of ``root`` when there is no RDMA subsystem or it does not answer.

    :raises RdmaError: ``library_missing``.
    """
    if not root.exists(IB_CORE):
        root.fail(SOURCE, "ib_core is not loaded")
        return None
    library = deps.pyroute2()
    failures = (OSError, library.NetlinkError, struct.error, KeyError, TypeError, ValueError)
    try:
        with _socket_class()(NETLINK_RDMA) as socket:
            socket.bind()
            return _ask_all(socket)
    except failures as error:
        root.fail(SOURCE, explain(error))
        return None


def _ask_all(socket: Any) -> RdmaRecord:
    system = [message for message in _ask(socket, _SYS_GET, _REQUEST | _ACK) if message.get("attrs")]
    ports = []
    for device in _ask(socket, _GET, _REQUEST | _DUMP):
        index = device.get_attr("DEV_INDEX")
        for port in _ask(socket, _PORT_GET, _REQUEST | _DUMP, DEV_INDEX=index):
            ports.append(
                PortRecord(
                    device=port.get_attr("DEV_NAME") or device.get_attr("DEV_NAME"),
                    port=port.get_attr("PORT_INDEX"),
                    netdev=port.get_attr("NDEV_NAME") or "",
                    state=port.get_attr("PORT_STATE") or 0,
                    phys_state=port.get_attr("PORT_PHYS_STATE") or 0,
                )
            )
    mode = system[0].get_attr("SYS_NETNS_MODE") if system else None
    fork = system[0].get_attr("SYS_COPY_ON_FORK") if system else None
    return RdmaRecord(mode, fork, tuple(ports))


def _ask(socket: Any, operation: int, flags: int, **attributes: int) -> list[Any]:
    message = _message_class()()
    message["attrs"] = list(attributes.items())
    return list(socket.nlm_request(message, operation, flags))


@functools.lru_cache(maxsize=1)
def _message_class() -> Any:
    base = deps.pyroute2("pyroute2.netlink").nlmsg

    class Message(base):  # type: ignore[misc, valid-type]
        prefix = ""
        nla_map = tuple([_ATTRIBUTES.get(n, ("ATTRIBUTE_%d" % n, "hex")) for n in range(_HIGHEST)])

    return Message


@functools.lru_cache(maxsize=1)
def _socket_class() -> Any:
    return family_socket(dict.fromkeys((_GET, _PORT_GET, _SYS_GET), _message_class()))
