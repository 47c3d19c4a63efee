# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""RDMA netlink on the socket class of pyroute2, which has no such family. Private to rdma.k8s: it may change any time.

Family, operations and attributes are those of S10 and S11. The socket is opened only when ``ib_core`` is in the kernel:
the kernel would load the module for the asking (the answer of a read must not depend on the reader).

The two messages about the mode are put together here from bytes, so that asking for it costs no import of the library,
and changing it needs no library on the node.
"""

from __future__ import annotations

import errno
import functools
import os
import socket as sockets
import struct
from typing import Any, Optional

from .. import deps
from ..core import netns
from ..core.errors import RdmaError
from .files import Root, reason_of
from .records import PortRecord, RdmaRecord
from .rtnetlink import explain, family_socket

SOURCE = "rdma-netlink"
IB_CORE = "/sys/module/ib_core"

NETLINK_RDMA = 20
_NLDEV = 5
_GET, _PORT_GET, _SYS_GET, _SYS_SET = (_NLDEV << 10 | operation for operation in (1, 5, 6, 7))
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
_HEADER = struct.Struct("=IHHII")
_ATTRIBUTE = struct.Struct("=HH")
_ERROR = 2  # the type of an acknowledgement, too: code 0
_ANSWER_LIMIT = 5.0


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


def mode() -> netns.Reading:
    """The running mode; the caller made sure that ``ib_core`` is there.

    :raises OSError: the kernel refused the question, or has no such family.
    """
    return netns.mode_of_attributes(_exchange(_SYS_GET, b""))


def set_mode(wanted: str) -> None:
    """Switch the running mode (S12, S13).

    :raises RdmaError: ``netns_mode_busy`` while another network namespace lives, ``not_permitted``,
        ``netns_mode_refused``.
    """
    value = next(number for number, name in netns.MODES.items() if name == wanted)
    attribute = _ATTRIBUTE.pack(_ATTRIBUTE.size + 1, netns.MODE_ATTRIBUTE) + bytes([value, 0, 0, 0])
    try:
        _exchange(_SYS_SET, attribute)
    except OSError as error:
        raise _switch_refused(wanted, error) from error


def _exchange(operation: int, attributes: bytes) -> dict[int, int]:
    """Send one request, wait for its acknowledgement; the attributes of the answer that are one byte, by number."""
    message = _HEADER.pack(_HEADER.size + len(attributes), operation, _REQUEST | _ACK, 1, 0) + attributes
    found: dict[int, int] = {}
    with sockets.socket(sockets.AF_NETLINK, sockets.SOCK_RAW | sockets.SOCK_CLOEXEC, NETLINK_RDMA) as socket:
        socket.settimeout(_ANSWER_LIMIT)
        socket.bind((0, 0))
        socket.sendto(message, (0, 0))
        while True:
            for kind, body in _messages(socket.recv(65536)):
                if kind == _ERROR:
                    code = struct.unpack_from("=i", body)[0]
                    if code:
                        raise OSError(-code, os.strerror(-code))
                    return found
                if kind == operation:
                    found.update(_bytes_of(body))


def _messages(data: bytes) -> list[tuple[int, bytes]]:
    """Type and body of the messages in one datagram."""
    found = []
    while len(data) >= _HEADER.size:
        length, kind = _HEADER.unpack_from(data)[:2]
        if not _HEADER.size <= length <= len(data):
            raise OSError(errno.EBADMSG, os.strerror(errno.EBADMSG))
        found.append((kind, data[_HEADER.size : length]))
        data = data[(length + 3) & ~3 :]
    return found


def _bytes_of(body: bytes) -> dict[int, int]:
    """The attributes that are one byte long, by number."""
    found = {}
    while len(body) >= _ATTRIBUTE.size:
        length, number = _ATTRIBUTE.unpack_from(body)
        if not _ATTRIBUTE.size <= length <= len(body):
            raise OSError(errno.EBADMSG, os.strerror(errno.EBADMSG))
        if length == _ATTRIBUTE.size + 1:
            found[number] = body[_ATTRIBUTE.size]
        body = body[(length + 3) & ~3 :]
    return found


def _switch_refused(wanted: str, error: OSError) -> RdmaError:
    if error.errno == errno.EBUSY:
        return RdmaError(
            "netns_mode_busy",
            "The kernel refuses to switch the RDMA subsystem to %s mode: another network namespace is alive."
            % wanted,
            hint="End what runs in other network namespaces, or reboot.",
            retryable=True,
            mode=wanted,
        )
    if error.errno in (errno.EPERM, errno.EACCES):
        return RdmaError(
            "not_permitted",
            "Switching the RDMA subsystem to %s mode needs the privilege CAP_NET_ADMIN, which this run lacks."
            % wanted,
            hint="Run as root (become: true).",
            mode=wanted,
        )
    return RdmaError(
        "netns_mode_refused",
        "The kernel refuses to switch the RDMA subsystem to %s mode: %s." % (wanted, reason_of(error)),
        hint="Kernel 5.3 or newer, or a driver package of that age, knows this mode.",
        mode=wanted,
    )
