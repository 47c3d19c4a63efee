# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Links and routes of a snapshot from the records of rtnetlink. Private to rdma.k8s: it may change any time."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Optional

from ..core.snapshot import Arp, Link, Route, Rule
from .files import Root
from .records import LinkRecord, RouteRecord, RtnetlinkRecord, RuleRecord
from .sysfs import pci_address

_UP = 1
_NOT_USABLE = 0x08 | 0x40
"""Flags of an address whose uniqueness is not yet, or not, given: IFA_F_DADFAILED, IFA_F_TENTATIVE (A65)."""
_LOOPBACK = 772
_KEPT_KINDS = ("", "bond", "bridge", "ipvlan", "ipvtap", "macvlan", "macvtap", "team", "vlan", "vrf")
_RDMA_NAME = re.compile(r"rdma\d+|rdma_vf_rail\d+", re.ASCII)
_NAME = re.compile(
    r"(?!=)[^\s/]{1,64}"
)  # a row of a snapshot is split at spaces, and "=" has a meaning there
_ADDRESS = re.compile(r"[0-9a-fA-F:.]+", re.ASCII)

_UNICAST = 1
_SCOPES = {0: "global", 200: "site", 253: "link", 254: "host", 255: "nowhere"}
_USUAL_PROTOCOLS = (0, 2, 3, 4)  # unspec, kernel, boot, static
_PROTOCOLS = {
    1: "redirect",
    8: "gated",
    9: "ra",
    11: "zebra",
    12: "bird",
    14: "xorp",
    16: "dhcp",
    18: "keepalived",
    42: "babel",
    99: "openr",
    186: "bgp",
    187: "isis",
    188: "ospf",
    189: "rip",
    192: "eigrp",
}
_INET6 = 10
_TO_TABLE = 1
_ACTIONS = {2: "goto", 3: "nop", 6: "blackhole", 7: "unreachable", 8: "prohibit"}
_LONGEST = {2: 32, 10: 128}
_OWN_RULES = (0, 32766, 32767)


class Linker:
    """Links of one node: what is kept, and how indexes become names."""

    def __init__(self, root: Root, answers: RtnetlinkRecord) -> None:
        self.root = root
        self.answers = answers
        self.known = [link for link in answers.links if _NAME.fullmatch(link.name)]
        for link in answers.links:
            if not _NAME.fullmatch(link.name):
                root.fail("rtnetlink", "an interface name cannot be read: %r" % link.name[:60])
        self.names = {link.index: link.name for link in self.known}
        self.kinds = {link.index: link.kind for link in self.known}
        self.addresses: dict[int, list[str]] = {}
        self.unusable: dict[int, list[str]] = {}
        for entry in answers.addresses:
            if _ADDRESS.fullmatch(entry.address) and not _is_loopback(entry.address):
                address = "%s/%d" % (entry.address, entry.length)
                self.addresses.setdefault(entry.link, []).append(address)
                if ":" in address and entry.flags & _NOT_USABLE:
                    self.unusable.setdefault(entry.link, []).append(address)
            elif not _ADDRESS.fullmatch(entry.address):
                root.fail("rtnetlink", "an address cannot be read: %r" % entry.address[:60])

    def links(self) -> tuple[Link, ...]:
        """Physical and RDMA interfaces, children, bonds, bridges, VLANs, what holds an address or is referenced.

        Left out: the ends of veth pairs and other virtual interfaces that hold no more than a link-local address.
        """
        kept = {link.index for link in self.known if self._tells(link)}
        for link in self.known:
            if link.index in kept:
                kept.update([link.master, _parent(link)])
        used = {route.link for route in self.answers.routes if route.type == _UNICAST}
        kept.update([index for index in used if self.kinds.get(index) != "veth"])
        return tuple([self._link(link) for link in self.known if link.index in kept])

    def _tells(self, link: LinkRecord) -> bool:
        addresses = self.addresses.get(link.index, [])
        if link.arphrd == _LOOPBACK:
            return bool(addresses)
        if link.kind in _KEPT_KINDS or _RDMA_NAME.fullmatch(link.name):
            return True
        return any(not address.startswith("fe80:") for address in addresses)

    def _link(self, link: LinkRecord) -> Link:
        state = "up" if link.flags & _UP else "down"
        pci = pci_address(self.root, "/sys/class/net/" + link.name) if not link.kind else ""
        return Link(
            name=link.name,
            kind=link.kind,
            arphrd=link.arphrd,
            mac=link.mac,
            mtu=link.mtu,
            state=state,
            operstate="" if link.operstate == state else link.operstate,
            master=self.names.get(link.master, ""),
            parent=self.names.get(_parent(link), ""),
            pci=pci,
            addresses=tuple(self.addresses.get(link.index, [])),
            unusable=tuple(self.unusable.get(link.index, [])),
            arp=arp(self.root, link.name) if pci or _RDMA_NAME.fullmatch(link.name) else None,
        )

    def routes(self) -> tuple[Route, ...]:
        """Unicast and default routes of all tables; link-local IPv6 routes, one for each interface, are left out."""
        routes: list[Route] = []
        for record in self.answers.routes:
            if record.type == _UNICAST and not record.dst.startswith("fe80:"):
                routes += self._route(record)
        return tuple(routes)

    def _route(self, record: RouteRecord) -> Iterable[Route]:
        texts = [text for text in (record.dst, record.gateway, record.source) if text]
        if not all(_ADDRESS.fullmatch(text) for text in texts):
            self.root.fail("rtnetlink", "a route cannot be read: %r" % " ".join(texts)[:60])
            return
        scope = "" if record.family == _INET6 else _SCOPES.get(record.scope, str(record.scope))
        usual = "global" if record.gateway else "link"
        protocol = _PROTOCOLS.get(record.protocol, str(record.protocol))
        yield Route(
            dst=_destination(record),
            dev=self.names.get(record.link, ""),
            table=record.table,
            via=record.gateway,
            src=record.source,
            scope="" if scope == usual else scope,
            proto="" if record.protocol in _USUAL_PROTOCOLS else protocol,
            metric=record.metric,
        )

    def rules(self) -> tuple[Rule, ...]:
        """Policy rules of both families; the three that the kernel itself makes for IPv6 are left out."""
        return tuple([rule for record in self.answers.rules for rule in self._rule(record)])

    def _rule(self, record: RuleRecord) -> Iterable[Rule]:
        more = record.selectors.split()
        if record.action != _TO_TABLE:
            more.append(_ACTIONS.get(record.action, "action %d" % record.action))
        if record.family == _INET6 and not record.source:
            if record.priority in _OWN_RULES and not more:
                return
            more.append("inet6")
        if "=" in more or (record.source and not _ADDRESS.fullmatch(record.source)):
            self.root.fail("rtnetlink", "a rule cannot be read: %r" % (record.source + record.selectors)[:60])
            return
        yield Rule(record.priority, _source(record), record.table, " ".join(more))


def arp(root: Root, name: str) -> Arp:
    """The ARP settings of an interface, or of ``all`` (F77-F80)."""
    base = "/proc/sys/net/ipv4/conf/%s/" % name
    names = ("arp_ignore", "arp_announce", "arp_filter", "rp_filter")
    return Arp(*[_word(root.value(base + name)) for name in names])


def _word(value: Optional[str]) -> Optional[str]:
    """A value as one word that a row of a snapshot can hold."""
    if value is None:
        return None
    word = "_".join(value.split()) or "_"
    return "--" if word == "-" else word


def _parent(link: LinkRecord) -> int:
    """The index of the lower device; none when it is in another namespace, or is the other end of a veth pair."""
    return 0 if link.elsewhere or link.kind == "veth" else link.parent


def _is_loopback(address: str) -> bool:
    return address.startswith("127.") or address == "::1"


def _destination(record: RouteRecord) -> str:
    if not record.length:
        return "::/0" if record.family == _INET6 else "default"
    if record.length == _LONGEST.get(record.family):
        return record.dst
    return "%s/%d" % (record.dst, record.length)


def _source(record: RuleRecord) -> str:
    if not record.source:
        return "all"
    if record.length == _LONGEST.get(record.family):
        return record.source
    return "%s/%d" % (record.source, record.length)


def namespaces(root: Root) -> tuple[str, ...]:
    """The names of the network namespaces in ``/run/netns``; none where the directory is not there."""
    return tuple(root.names("/run/netns") or ())
