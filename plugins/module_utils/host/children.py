# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Make, verify and remove children of RDMA NICs in a network namespace. Private to rdma.k8s: it may change any time."""

from __future__ import annotations

import contextlib
import os
import re
import struct
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any, Callable, Optional

from .. import deps
from ..core.errors import RdmaError
from ..core.oke.children import ChildPlan, ChildState, differences, needs_new, other_addresses
from ..core.oke.constants import RULE_PRIORITY, TABLE_BASE
from . import rtnetlink, sysfs
from .files import Root
from .link_dump import NsLink, read_links
from .namespaces import Namespace, inside, is_ours, wait_until

KIND = "ipvlan"
LINK_DATA: dict[str, Any] = {"ipvlan_mode": 0}  # L2; the flag bridge is the kernel's default (F108)
MODE = 0
"""How the kernel shows L2."""
TEMPORARY = "rk8s-"
GID_LIMIT = 5.0

_TEMPORARY_NAME = re.compile(TEMPORARY + "[0-9a-f]{8}", re.ASCII)
_UNICAST = 1
_BOOT = 3  # the protocol of routes that the driver, like iproute2, does not name (F40)
_LAST_TABLE = 115
_Undo = Callable[[], None]


class Children:
    """The children in one namespace, seen from the host that has the parents."""

    def __init__(self, root: Root, namespace: Namespace) -> None:
        self.root = root
        self.namespace = namespace
        self.ours = is_ours(namespace.label)
        self.library = deps.pyroute2()
        self._errors = (OSError, self.library.NetlinkError, struct.error)

    # Reading

    def parents(self) -> dict[str, NsLink]:
        """The interfaces of the host by name."""
        with self._naming_failures("child_not_read", "The interfaces of the host cannot be read"):
            return {link.name: link for link in read_links()}

    def links(self) -> dict[str, NsLink]:
        """The interfaces of the namespace by name."""
        with self._naming_failures(
            "child_not_read", "The interfaces in %s cannot be read" % self.namespace.label
        ):
            return {link.name: link for link in inside(self.namespace, read_links)}

    def state(self, plan: ChildPlan, link: NsLink) -> ChildState:
        """What the namespace holds of a child."""
        with self._naming_failures(
            "child_not_read", "%s in %s cannot be read" % (plan.nic, self.namespace.label)
        ):
            return inside(self.namespace, lambda: self._state(plan, link))

    def _state(self, plan: ChildPlan, link: NsLink) -> ChildState:
        kernel = Root()
        answers = rtnetlink.read(kernel, links=True, routes=True)
        if answers is None:
            raise OSError("; ".join([error.reason for error in kernel.errors]))
        source = str(plan.route.source)
        return ChildState(
            mode=None if link.mode is None else link.mode - MODE,
            flags=link.flags,
            mtu=link.mtu,
            up=link.up,
            arp_ignore=kernel.value(_sysctl(link.name, "arp_ignore")) or "",
            arp_announce=kernel.value(_sysctl(link.name, "arp_announce")) or "",
            addresses=tuple(
                [
                    "%s/%d" % (entry.address, entry.length)
                    for entry in answers.addresses
                    if entry.link == link.index and ":" not in entry.address
                ]
            ),
            routes=tuple(
                [
                    ("%s/%d" % (route.dst, route.length), route.source, route.scope)
                    for route in answers.routes
                    if (route.link, route.table, route.type) == (link.index, plan.rule.table, _UNICAST)
                ]
            ),
            rules=tuple(
                [
                    (rule.priority, rule.table)
                    for rule in answers.rules
                    if (rule.source, rule.length, rule.selectors) == (source, 32, "")
                ]
            ),
        )

    def own(self, nic: str, parent: NsLink, links: dict[str, NsLink]) -> Optional[NsLink]:
        """The child of a NIC in the namespace; ``None``: it has none.

        :raises RdmaError: ``child_foreign`` when something else has its name.
        """
        link = links.get(nic)
        if link is None:
            return None
        if link.kind == KIND and link.elsewhere and link.lower == parent.index:
            return link
        kind = link.kind or "none"
        told = "%s is a link of kind %s" % (nic, kind)
        raise self.foreign(nic, told if kind != KIND else "%s has another parent" % nic)

    def foreign(self, nic: str, found: str) -> RdmaError:
        """The error for something else under the name of a child."""
        return RdmaError(
            "child_foreign",
            "%s in %s: %s, expected the child of %s or nothing." % (nic, self.namespace.label, found, nic),
            hint="Use another namespace, or remove what is there yourself.",
            interface=nic,
        )

    # Changing

    def present(
        self,
        plan: ChildPlan,
        parent: NsLink,
        found: Optional[tuple[NsLink, ChildState]],
        undo: contextlib.ExitStack,
    ) -> None:
        """Make the child of a NIC, or repair it.

        :param found: what the namespace has of it.
        :param undo: takes what must be done when a later step fails; nothing is left then.
        :raises RdmaError: ``child_not_made``.
        """
        if found is not None and needs_new(found[1]):
            old = found[0].index
            self._inside(plan, "remove", lambda ip: _delete(ip, old))
            found = None
        if found is None:
            self._make(plan, parent, undo)
        else:
            link, state = found
            self._inside(plan, "repair", lambda ip: self._configure(ip, plan, link.index, state))
        self._verify(plan, parent)

    def refuse_foreign_address(self, plan: ChildPlan, state: ChildState) -> None:
        """A child with another address is a pod's, unless the namespace is ours."""
        others = other_addresses(plan, state)
        if others and not self.ours:
            raise self.foreign(plan.nic, "it holds %s, not %s" % (", ".join(others), plan.address))

    def remove_left_over(self, links: dict[str, NsLink], parent: NsLink) -> None:
        """What a killed run left before the child had its name."""
        for link in links.values():
            if self.is_left_over(link, parent):
                with self._naming_failures("child_not_removed", "%s cannot be removed" % link.name):
                    inside(self.namespace, partial(self._netlink, _delete, link.index))

    def is_left_over(self, link: NsLink, parent: NsLink) -> bool:
        """Whether a link is a child of this parent that a killed run left before it had its name."""
        named = _TEMPORARY_NAME.fullmatch(link.name) is not None
        return named and link.kind == KIND and link.lower == parent.index and link.elsewhere

    def _make(self, plan: ChildPlan, parent: NsLink, undo: contextlib.ExitStack) -> None:
        name = TEMPORARY + os.urandom(4).hex()
        failed = self._naming_failures("child_not_made", "The child of %s cannot be made" % plan.nic)
        with failed, self.library.IPRoute() as ip:
            if not parent.up:
                undo.callback(self._quietly, lambda: self._netlink(_set_down, parent.index))
                ip.link("set", index=parent.index, state="up")
            # Not under its final name: the kernel looks for that one in the namespace of the sender first (L10).
            undo.callback(self._quietly, lambda: self._remove_named(plan, name))
            ip.link(
                "add",
                ifname=name,
                kind=KIND,
                link=parent.index,
                net_ns_fd=self.namespace.handle,
                **LINK_DATA,
            )
        self._inside(plan, "configure", lambda ip: self._first_time(ip, plan, name))

    def _first_time(self, ip: Any, plan: ChildPlan, name: str) -> None:
        index = next(link.index for link in read_links() if link.name == name)
        ip.link("set", index=index, ifname=plan.nic)
        link = next(link for link in read_links() if link.index == index)
        kernel = Root()
        nothing = ChildState(
            mode=None if link.mode is None else link.mode - MODE,
            flags=link.flags,
            mtu=link.mtu,
            up=link.up,
            arp_ignore=kernel.value(_sysctl(plan.nic, "arp_ignore")) or "",
            arp_announce=kernel.value(_sysctl(plan.nic, "arp_announce")) or "",
            rules=_rules_of(ip, str(plan.route.source)),
        )
        self._configure(ip, plan, index, nothing)

    def _configure(self, ip: Any, plan: ChildPlan, index: int, state: ChildState) -> None:
        """Give a child what it lacks, in the order of the driver: ARP settings before addresses and link up (F111)."""
        wrong = differences(plan, state)
        if "mtu" in wrong:
            ip.link("set", index=index, mtu=plan.mtu)
        for name, value in (("arp_ignore", plan.arp.arp_ignore), ("arp_announce", plan.arp.arp_announce)):
            if name in wrong:
                _write(_sysctl(plan.nic, name), value)
        if "address" in wrong:
            for text in state.addresses:
                address, _slash, length = text.partition("/")
                ip.addr("del", index=index, address=address, prefixlen=int(length))
            ip.addr("add", index=index, address=str(plan.route.source), prefixlen=plan.address.length)
        if "up" in wrong:
            ip.link("set", index=index, state="up")
        if {"route", "address", "up"} & set(wrong):
            # The kernel drops routes with an address that goes, and those over a link that was down.
            for message in list(ip.get_routes(family=2, table=plan.route.table, oif=index)):
                place = dict(message["attrs"]).get("RTA_DST")
                ip.route(
                    "del",
                    dst="%s/%d" % (place, message["dst_len"]) if place else "default",
                    scope=message["scope"],
                    table=plan.route.table,
                    oif=index,
                )
            ip.route(
                "add",
                dst=str(plan.route.destination),
                oif=index,
                scope=plan.route.scope,
                table=plan.route.table,
                prefsrc=str(plan.route.source),
                proto=_BOOT,
            )
        if "rule" in wrong:
            for priority, table in state.rules:
                if (priority, table) != (plan.rule.priority, plan.rule.table):
                    _rule(ip, "del", str(plan.route.source), priority, table)
            if (plan.rule.priority, plan.rule.table) not in state.rules:
                _rule(ip, "add", str(plan.route.source), plan.rule.priority, plan.rule.table)

    def _verify(self, plan: ChildPlan, parent: NsLink) -> None:
        link = self.own(plan.nic, parent, self.links())
        wrong = {} if link is None else differences(plan, self.state(plan, link))
        if link is None or wrong:
            said = [
                "%s is %s, expected %s" % (name, found, wanted) for name, (found, wanted) in wrong.items()
            ]
            raise RdmaError(
                "child_not_made",
                "The child of %s is not as it was made: %s." % (plan.nic, "; ".join(said) or "it is gone"),
                hint="Something else configures interfaces in %s." % self.namespace.label,
                interface=plan.nic,
            )

    def absent(self, link: NsLink) -> list[str]:
        """Remove a child and its rules, the rules first; the addresses that it held.

        :raises RdmaError: ``child_not_removed``.
        """
        with self._naming_failures(
            "child_not_removed", "%s in %s cannot be removed" % (link.name, self.namespace.label)
        ):
            return inside(self.namespace, lambda: self._netlink(self._absent, link))

    def addresses(self, link: NsLink) -> list[str]:
        """The IPv4 addresses of a child."""
        with self._naming_failures(
            "child_not_read", "%s in %s cannot be read" % (link.name, self.namespace.label)
        ):
            return inside(self.namespace, lambda: self._netlink(_addresses_of, link.index))

    @staticmethod
    def _absent(ip: Any, link: NsLink) -> list[str]:
        addresses = _addresses_of(ip, link.index)
        for address in addresses:
            for priority, table in _rules_of(ip, address):
                if priority == RULE_PRIORITY and TABLE_BASE <= table <= _LAST_TABLE:
                    _rule(ip, "del", address, priority, table)
        _delete(ip, link.index)
        return addresses

    def _remove_named(self, plan: ChildPlan, temporary: str) -> None:
        for link in inside(self.namespace, read_links):
            if link.name in (temporary, plan.nic) and link.kind == KIND:
                inside(self.namespace, partial(self._netlink, self._absent, link))

    # Errors

    def _inside(self, plan: ChildPlan, verb: str, act: Callable[[Any], None]) -> None:
        with self._naming_failures("child_not_made", "The child of %s: cannot %s it" % (plan.nic, verb)):
            inside(self.namespace, lambda: self._netlink(act))

    def _netlink(self, act: Callable[..., Any], *arguments: Any) -> Any:
        with self.library.IPRoute() as ip:
            return act(ip, *arguments)

    def _quietly(self, act: _Undo) -> None:
        """Undo a step; what is gone already needs no undoing."""
        with contextlib.suppress(*self._errors, RdmaError, StopIteration):
            act()

    @contextlib.contextmanager
    def _naming_failures(self, code: str, what: str) -> Iterator[None]:
        try:
            yield
        except (*self._errors, StopIteration) as error:
            reason = "it is gone" if isinstance(error, StopIteration) else rtnetlink.explain(error)
            raise RdmaError(
                code,
                "%s: %s." % (what, reason),
                hint="See whether the NIC and the namespace are still there, and run as root (become: true).",
            ) from error


def find_gid(root: Root, plan: ChildPlan, limit: float) -> Optional[int]:
    """Wait until the child's address is in the GID table of its parent's device as RoCE v2, and give its index.

    :raises RdmaError: ``gid_missing``.
    """
    if not plan.device:
        return None
    address = str(plan.route.source)
    found: list[int] = []

    def appeared() -> bool:
        entries = sysfs.gids_of(root, plan.device, plan.port, address)
        found[:] = [index for index, kind in entries if kind == "v2"]
        return bool(found)

    if wait_until(appeared, limit):
        return found[0]
    raise RdmaError(
        "gid_missing",
        "%s: no GID %s of type RoCE v2 in the table of %s port %d within %g s."
        % (plan.nic, address, plan.device, plan.port, limit),
        hint="Look at /sys/class/infiniband/%s/ports/%d/gids and gid_attrs/types." % (plan.device, plan.port),
        interface=plan.nic,
        device=plan.device,
    )


def gid_gone(root: Root, device: str, port: int, addresses: Iterable[str], limit: float) -> bool:
    """Wait until no GID of these addresses is in the table of a port; whether that came true."""
    wanted = list(addresses)
    return wait_until(
        lambda: not any(sysfs.gids_of(root, device, port, address) for address in wanted), limit
    )


def _sysctl(name: str, setting: str) -> str:
    return "/proc/sys/net/ipv4/conf/%s/%s" % (name, setting)


def _write(path: str, value: int) -> None:
    with open(path, "w", encoding="ascii") as file:
        file.write("%d\n" % value)


def _delete(ip: Any, index: int) -> None:
    ip.link("del", index=index)


def _set_down(ip: Any, index: int) -> None:
    ip.link("set", index=index, state="down")


def _addresses_of(ip: Any, index: int) -> list[str]:
    found = [dict(message["attrs"]) for message in ip.get_addr(family=2, index=index)]
    return [entry.get("IFA_LOCAL") or entry["IFA_ADDRESS"] for entry in found]


def _rules_of(ip: Any, address: str) -> tuple[tuple[int, int], ...]:
    found = []
    for message in ip.get_rules(family=2):
        attributes = dict(message["attrs"])
        if attributes.get("FRA_SRC") == address and message["src_len"] == 32:
            found.append((attributes.get("FRA_PRIORITY") or 0, attributes.get("FRA_TABLE", message["table"])))
    return tuple(found)


def _rule(ip: Any, verb: str, address: str, priority: int, table: int) -> None:
    ip.rule(verb, src=address, src_len=32, priority=priority, table=table)
