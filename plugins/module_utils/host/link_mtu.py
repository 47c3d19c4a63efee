# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read and set the MTU of interfaces by rtnetlink. Private to rdma.k8s: it may change with any release.

Without the netlink library, since undo must work on a node that has none.
"""

from __future__ import annotations

import errno
import struct
from dataclasses import dataclass
from typing import Any

from ..core.errors import RdmaError
from . import raw_netlink
from .files import Root, reason_of

KIND = "mtu"
"""Kind of the undo records: the number."""

_NAME, _MTU, _LINK, _MASTER, _NETNSID, _MINIMUM, _MAXIMUM = 3, 4, 5, 10, 37, 50, 51


@dataclass(frozen=True)
class Device:
    """An interface: 0 for a limit that the device does not tell.

    :param master: index of the bond or bridge that it belongs to; ``lower``: of what it is made of; 0: none.
    """

    index: int
    name: str
    mtu: int
    minimum: int = 0
    maximum: int = 0
    master: int = 0
    lower: int = 0


def read() -> dict[str, Device]:
    """The interfaces of this network namespace by name.

    :raises RdmaError: ``netlink_failed``
    """
    try:
        bodies = raw_netlink.links()
    except OSError as error:
        raise RdmaError(
            "netlink_failed", "The interfaces cannot be read: %s." % reason_of(error), retryable=True
        ) from error
    return {device.name: device for device in map(_device, bodies)}


def read_mtu(root: Root, name: str) -> int:
    """The MTU of an interface, for the undo records.

    :raises RdmaError: ``nic_vanished``, ``netlink_failed``
    """
    del root
    device = read().get(name)
    if device is None:
        raise _vanished(name)
    return device.mtu


def write_mtu(root: Root, name: str, mtu: Any) -> None:
    """Set the MTU of an interface.

    :raises RdmaError: ``nic_vanished``, ``not_permitted``, ``mtu_refused``, ``netlink_failed``
    """
    del root
    device = read().get(name)
    if device is None:
        raise _vanished(name)
    attribute = struct.pack("=HHI", 8, _MTU, int(mtu))
    try:
        request = raw_netlink.link_request(device.index, attribute)
        list(raw_netlink.ask(raw_netlink.NEW_LINK, raw_netlink.REQUEST | raw_netlink.ACK, request))
    except OSError as error:
        if error.errno == errno.ENODEV:
            raise _vanished(name) from error
        if error.errno in (errno.EPERM, errno.EACCES):
            raise RdmaError(
                "not_permitted",
                "The MTU of %s cannot be set: %s." % (name, reason_of(error)),
                hint="Run as root, with CAP_NET_ADMIN in the host's network namespace.",
                nic=name,
            ) from error
        raise RdmaError(
            "mtu_refused",
            "The kernel refused MTU %d for %s: %s." % (mtu, name, reason_of(error)),
            hint="Look at the kernel log; a driver can have a limit of its own, or need the interface down.",
            nic=name,
            mtu=mtu,
        ) from error


def _vanished(name: str) -> RdmaError:
    return RdmaError(
        "nic_vanished",
        "The interface %s is not there any more." % name,
        hint="A pod may have taken it, or its driver was reset; run again when it is back.",
        retryable=True,
        nic=name,
    )


def _device(body: bytes) -> Device:
    found = raw_netlink.attributes(body, 16)
    return Device(
        index=struct.unpack_from("=i", body, 4)[0],
        name=raw_netlink.text(found.get(_NAME, b"")),
        mtu=raw_netlink.number(found.get(_MTU)),
        minimum=raw_netlink.number(found.get(_MINIMUM)),
        maximum=raw_netlink.number(found.get(_MAXIMUM)),
        master=raw_netlink.number(found.get(_MASTER)),
        lower=0 if _NETNSID in found else raw_netlink.number(found.get(_LINK)),
    )
