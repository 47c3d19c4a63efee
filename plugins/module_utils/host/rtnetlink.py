# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Links, addresses, routes and rules from the kernel by rtnetlink. Private to rdma.k8s: it may change any time."""

from __future__ import annotations

import errno
import struct
import sys
from collections.abc import Iterable
from typing import Any, Callable, Optional

from .. import deps
from .files import Root, reason_of
from .records import AddressRecord, LinkRecord, RouteRecord, RtnetlinkRecord, RuleRecord

SOURCE = "rtnetlink"
_INET, _INET6 = 2, 10
_ATTEMPTS = 3


def read(root: Root, links: bool, routes: bool) -> Optional[RtnetlinkRecord]:
    """Ask the kernel; ``None`` with the reason among the errors of ``root`` when it does not answer.

    :param links: links and addresses.
    :param routes: routes of all tables and policy rules, both families; links too, for their names.
    :raises RdmaError: ``library_missing``.
    """
    library = deps.pyroute2()
    failures = (OSError, library.NetlinkError, struct.error, KeyError, TypeError, ValueError)
    try:
        with library.IPRoute() as socket:
            return RtnetlinkRecord(
                links=tuple([_link(message) for message in _dump(library, socket.get_links)]),
                addresses=_addresses(library, socket) if links else (),
                routes=_routes(library, socket) if routes else (),
                rules=_rules(library, socket) if routes else (),
            )
    except failures as error:
        root.fail(SOURCE, explain(error))
        return None


def explain(error: BaseException) -> str:
    """One line for an error of the netlink library."""
    code = getattr(error, "code", None)
    if isinstance(error, OSError):
        return reason_of(error)
    if isinstance(code, int) and code:
        return reason_of(OSError(code, ""))
    return "%s: %s" % (type(error).__name__, error)


def family_socket(messages: dict[int, Any]) -> Any:
    """A socket class for a netlink family that the library does not have: type of message to its class."""
    module = deps.pyroute2("pyroute2.netlink.nlsocket")

    class Marshal(module.Marshal):  # type: ignore[misc, name-defined]
        msg_map = messages

    class Socket(module.NetlinkSocket):  # type: ignore[misc, name-defined]
        def __init__(self, family: int) -> None:
            super().__init__(family)
            if hasattr(self, "set_marshal"):  # 0.9
                self.set_marshal(Marshal())
            else:
                self.marshal = Marshal()

    return Socket


def _dump(library: Any, ask: Callable[..., Any], **arguments: Any) -> list[Any]:
    """All messages of a dump, asked again when the kernel says that its tables changed meanwhile."""
    for attempt in range(_ATTEMPTS):
        try:
            return list(ask(**arguments))
        except library.NetlinkDumpInterrupted:
            if attempt == _ATTEMPTS - 1:
                raise
    return []


def _link(message: Any) -> LinkRecord:
    attributes = dict(message["attrs"])
    info = attributes.get("IFLA_LINKINFO")
    kind = info.get_attr("IFLA_INFO_KIND") if info is not None else None
    return LinkRecord(
        index=message["index"],
        name=attributes["IFLA_IFNAME"],
        arphrd=message["ifi_type"],
        flags=message["flags"],
        kind=kind or "",
        mac=attributes.get("IFLA_ADDRESS") or "",
        mtu=attributes.get("IFLA_MTU"),
        operstate=(attributes.get("IFLA_OPERSTATE") or "").lower(),
        master=attributes.get("IFLA_MASTER") or 0,
        parent=attributes.get("IFLA_LINK") or 0,
        elsewhere="IFLA_LINK_NETNSID" in attributes,
    )


def _addresses(library: Any, socket: Any) -> tuple[AddressRecord, ...]:
    found = []
    for message in _dump(library, socket.get_addr):
        attributes = dict(message["attrs"])
        address = attributes.get("IFA_LOCAL") or attributes.get("IFA_ADDRESS")
        if address and message["family"] in (_INET, _INET6):
            found.append(AddressRecord(message["index"], address, message["prefixlen"], message["flags"]))
    return tuple(found)


def _routes(library: Any, socket: Any) -> tuple[RouteRecord, ...]:
    found: list[RouteRecord] = []
    for family in (_INET, _INET6):
        for message in _dump(library, socket.get_routes, family=family):
            if message["type"] == 1:  # the others decide nothing here and can be many
                found += _hops(family, message)
    return tuple(found)


def _hops(family: int, message: Any) -> Iterable[RouteRecord]:
    attributes = dict(message["attrs"])
    hops = attributes.get("RTA_MULTIPATH") or [None]
    for hop in hops:
        own = dict(hop["attrs"]) if hop is not None else attributes
        via = own.get("RTA_VIA")
        yield RouteRecord(
            family=family,
            dst=attributes.get("RTA_DST") or "",
            length=message["dst_len"],
            type=message["type"],
            table=attributes.get("RTA_TABLE", message["table"]),
            link=(hop["oif"] if hop is not None else attributes.get("RTA_OIF")) or 0,
            gateway=own.get("RTA_GATEWAY") or (via["addr"] if via else ""),
            source=attributes.get("RTA_PREFSRC") or "",
            scope=message["scope"],
            protocol=message["proto"],
            metric=attributes.get("RTA_PRIORITY") or 0,
        )


_SELECTORS = (
    ("FRA_IIFNAME", "iif %s"),
    ("FRA_OIFNAME", "oif %s"),
    ("FRA_FWMARK", "fwmark 0x%x"),
    ("FRA_FWMASK", "fwmask 0x%x"),
    ("FRA_IP_PROTO", "ipproto %d"),
    ("FRA_TUN_ID", "tun_id %d"),
    ("FRA_GOTO", "goto %d"),
    ("FRA_L3MDEV", "l3mdev %d"),
    ("FRA_SUPPRESS_PREFIXLEN", "suppress_prefixlength %d"),
    ("FRA_SUPPRESS_IFGROUP", "suppress_ifgroup %d"),
)
_RANGES = (("FRA_SPORT_RANGE", "sport"), ("FRA_DPORT_RANGE", "dport"), ("FRA_UID_RANGE", "uidrange"))
_IGNORED = 0xFFFFFFFF  # the kernel's value for "no limit" of the two suppressors
_INVERT = 2


def _rules(library: Any, socket: Any) -> tuple[RuleRecord, ...]:
    found = []
    for family in (_INET, _INET6):
        for message in _dump(library, socket.get_rules, family=family):
            attributes = dict(message["attrs"])
            found.append(
                RuleRecord(
                    family=family,
                    priority=attributes.get("FRA_PRIORITY") or 0,
                    source=attributes.get("FRA_SRC") or "",
                    length=message["src_len"],
                    table=attributes.get("FRA_TABLE", message["table"]) or 0,
                    action=message["action"],
                    selectors=_selectors(message, attributes),
                )
            )
    return tuple(found)


def _selectors(message: Any, attributes: dict[str, Any]) -> str:
    words = ["not"] if message["flags"] & _INVERT else []
    if attributes.get("FRA_DST"):
        words.append("to %s/%d" % (attributes["FRA_DST"], message["dst_len"]))
    if message["tos"]:
        words.append("tos 0x%x" % message["tos"])
    for name, text in _SELECTORS:
        value = attributes.get(name)
        if value is not None and value not in (_IGNORED, -1):
            words.append(text % value)
    for name, word in _RANGES:
        value = attributes.get(name)
        if value:
            words.append("%s %s" % (word, str(value).replace(":", "-")))
    return " ".join(words)


def no_such_protocol(error: OSError) -> bool:
    """Whether the kernel does not have the netlink family that was asked for."""
    return error.errno in (errno.EPROTONOSUPPORT, errno.EAFNOSUPPORT)


def version() -> str:
    """The version of the netlink library, when this process has loaded it."""
    library = sys.modules.get("pyroute2")
    return str(getattr(library, "__version__", ""))
