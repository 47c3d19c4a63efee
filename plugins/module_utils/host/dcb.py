# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""DCB netlink on the socket class of pyroute2, which has no such messages. Private to rdma.k8s: it may change any time.

Messages and attributes are those of S60 and S61. The kernel answers a set with the driver's result in the attribute of
the answer, not with an error message, so both are looked at.
"""

from __future__ import annotations

import errno
import functools
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Optional

from .. import deps
from ..core import dcb as wire
from ..core.errors import RdmaError
from ..core.roce_qos import DCBX_HOST
from .files import reason_of
from .rtnetlink import family_socket

SOURCE = "dcb-netlink"
NETLINK_ROUTE = 0
_REQUEST = 0x1
_UNSUPPORTED = (errno.EOPNOTSUPP, errno.ENOSYS)
_HIGHEST = 32


@dataclass(frozen=True)
class State:
    """What the driver of an interface tells. ``pfc`` is a set of priorities, ``apps`` are pairs of DSCP and priority,
    ``dcbx`` the flags of S62 (``None``: the driver has none), ``told_trust`` is empty where the table decides."""

    pfc: int
    apps: tuple[tuple[int, int], ...] = ()
    dcbx: Optional[int] = None
    told_trust: str = ""

    @property
    def trust(self) -> str:
        """S63: an entry for a DSCP value in the table makes the port trust DSCP."""
        return self.told_trust or ("dscp" if self.apps else "pcp")

    @property
    def map(self) -> dict[int, int]:
        """The priority of each DSCP value of the table; of several the highest, as the kernel does."""
        return dict(sorted(self.apps))

    def priorities(self, dscp: int) -> list[int]:
        """All priorities that the table has for a DSCP value; more than one is a mistake, or a change half done."""
        return [priority for entry, priority in self.apps if entry == dscp]

    def get(self, setting: str) -> Any:
        """The value of ``trust``, ``pfc``, ``dcbx`` or ``dscp_N``."""
        if setting.startswith("dscp_"):
            return told(self.priorities(int(setting[5:])))
        return getattr(self, setting)


def told(priorities: Sequence[int]) -> Any:
    """The priorities of a DSCP value as plain data: none, one number, or several as a list."""
    return None if not priorities else priorities[0] if len(priorities) == 1 else list(priorities)


def read(netdev: str) -> State:
    """Ask the driver of an interface.

    :raises RdmaError: ``library_missing``, ``dcb_unsupported``, ``netdev_missing`` or ``dcb_failed``.
    """
    ieee = _ieee(netdev)
    if ieee.pfc is None:
        raise unsupported(netdev)
    return State(ieee.pfc, ieee.apps, _dcbx(netdev))


def read_pauses(netdev: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The counters of pause frames by priority: those sent, those received.

    :raises RdmaError: as :func:`read`.
    """
    return _ieee(netdev).pauses


def write_pfc(netdev: str, mask: int) -> None:
    """Make these priorities lossless, and no others.

    :raises RdmaError: as :func:`read`.
    """
    _set(netdev, wire.IEEE_SET, wire.write_pfc(mask, _ieee(netdev).pfc_bytes))


def add_dscp(netdev: str, dscp: int, priority: int) -> None:
    """Add an entry to the map; a driver of the mlx5 family replaces the former one by it.

    :raises RdmaError: as :func:`read`.
    """
    _set(netdev, wire.IEEE_SET, wire.write_apps([(dscp, priority)]))


def remove_dscp(netdev: str, dscp: int, priority: int) -> None:
    """Delete an entry of the map.

    :raises RdmaError: as :func:`read`.
    """
    _set(netdev, wire.IEEE_DEL, wire.write_apps([(dscp, priority)]))


def write_dscp(netdev: str, dscp: int, priority: Optional[int]) -> None:
    """Give a DSCP value this priority and no other; ``None`` takes its entries out of the table.

    The wrong entries go first, so that the value never has two priorities, whatever the driver does.

    :raises RdmaError: as :func:`read`.
    """
    held = [each for entry, each in _ieee(netdev).apps if entry == dscp]
    for each in held:
        if each != priority:
            remove_dscp(netdev, dscp, each)
    if priority is not None and priority not in held:
        add_dscp(netdev, dscp, priority)


def write_dcbx(netdev: str, flags: int) -> None:
    """Say who negotiates (S62). Drivers of the mlx5 family give it back to firmware for no flags at all only.

    :raises RdmaError: as :func:`read`.
    """
    result = _set_dcbx(netdev, flags)
    if result and not flags & DCBX_HOST:
        result = _set_dcbx(netdev, 0)
    if result:
        raise _failed(netdev, "the driver does not take the flags %d of DCBX" % flags)


def _set_dcbx(netdev: str, flags: int) -> int:
    """What the driver answers: 0, or something else when it refuses."""
    return int(_ask(netdev, wire.RTM_SETDCB, wire.SET_DCBX, ("DCBX", flags)).get_attr("DCBX") or 0)


def write(netdev: str, setting: str, value: Any) -> None:
    """Set one of ``pfc``, ``dcbx`` and ``dscp_N``; trust follows from the map (S63).

    :raises RdmaError: as :func:`read`.
    """
    if setting == "pfc":
        write_pfc(netdev, value)
    elif setting == "dcbx":
        write_dcbx(netdev, value)
    elif setting.startswith("dscp_"):
        write_dscp(netdev, int(setting[5:]), value)


def unsupported(netdev: str) -> RdmaError:
    """The driver has no DCB."""
    return RdmaError(
        "dcb_unsupported",
        "The driver of %s has no DCB (IEEE 802.1Qaz): it can set neither trust, nor PFC, nor the DSCP map."
        % netdev,
        hint="Take the interface out of the list, or install a driver that has DCB.",
        netdev=netdev,
    )


def _ieee(netdev: str) -> wire.Ieee:
    answer = _ask(netdev, wire.RTM_GETDCB, wire.IEEE_GET)
    try:
        return wire.read_ieee(bytes(answer.get_attr("IEEE") or b""))
    except ValueError as error:
        raise _failed(netdev, str(error)) from error


def _dcbx(netdev: str) -> Optional[int]:
    try:
        flags = _ask(netdev, wire.RTM_GETDCB, wire.GET_DCBX).get_attr("DCBX")
    except RdmaError as error:
        if error.code == "dcb_unsupported":
            return None
        raise
    return None if flags is None else int(flags)


def _set(netdev: str, command: int, content: bytes) -> None:
    answer = _ask(netdev, wire.RTM_SETDCB, command, ("IEEE", content))
    result = bytes(answer.get_attr("IEEE") or b"\0")[0]
    if result:  # the negative error number, cut to eight bits
        number = 256 - result
        raise (
            unsupported(netdev) if number in _UNSUPPORTED else _failed(netdev, reason_of(OSError(number, "")))
        )


def _failed(netdev: str, reason: str) -> RdmaError:
    return RdmaError("dcb_failed", "DCB of %s: %s." % (netdev, reason), netdev=netdev, reason=reason)


def _ask(netdev: str, kind: int, command: int, *more: tuple[str, Any]) -> Any:
    library = deps.pyroute2()
    message = _message_class()()
    message["cmd"] = command
    message["attrs"] = [("IFNAME", netdev), *more]
    try:
        with _socket_class()(NETLINK_ROUTE) as socket:
            socket.bind()
            answers = list(socket.nlm_request(message, kind, _REQUEST))
    except library.NetlinkError as error:
        raise _refused(netdev, error.code) from error
    except OSError as error:
        raise _refused(netdev, error.errno or errno.EIO) from error
    except (struct.error, KeyError, TypeError, ValueError) as error:
        raise _failed(netdev, "%s: %s" % (type(error).__name__, error)) from error
    if not answers:
        raise _failed(netdev, "the kernel did not answer")
    return answers[0]


def _refused(netdev: str, number: int) -> RdmaError:
    if number in _UNSUPPORTED:
        return unsupported(netdev)
    if number in (errno.ENODEV, errno.ENXIO):
        return RdmaError(
            "netdev_missing",
            "There is no interface %s any more." % netdev,
            hint="See in the kernel log why it went away.",
            netdev=netdev,
        )
    return _failed(netdev, reason_of(OSError(number, "")))


@functools.lru_cache(maxsize=1)
def _message_class() -> Any:
    base = deps.pyroute2("pyroute2.netlink").nlmsg
    names = {
        wire.ATTR_IFNAME: ("IFNAME", "asciiz"),
        wire.ATTR_IEEE: ("IEEE", "cdata"),
        wire.ATTR_DCBX: ("DCBX", "uint8"),
    }

    class Message(base):  # type: ignore[misc, valid-type]
        prefix = ""
        fields = (("family", "B"), ("cmd", "B"), ("padding", "H"))
        nla_map = tuple([names.get(n, ("ATTRIBUTE_%d" % n, "hex")) for n in range(_HIGHEST)])

    return Message


@functools.lru_cache(maxsize=1)
def _socket_class() -> Any:
    return family_socket(dict.fromkeys((wire.RTM_GETDCB, wire.RTM_SETDCB), _message_class()))
