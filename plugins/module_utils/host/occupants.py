# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which NICs serve a pod: their children in all namespaces of a node. Private to rdma.k8s."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Optional

from ..core.errors import RdmaError
from . import raw_netlink
from .files import Root
from .link_dump import NsLink, read_links
from .namespaces import Namespace, everyone, inside, opened


@dataclass(frozen=True)
class Occupant:
    """A child of an interface of the host: index and hardware address of its parent, and where it is."""

    lower: int
    kind: str
    mac: str
    name: str
    where: str

    def belongs_to(self, parent: NsLink) -> bool:
        """Whether it is a child of this parent. An ipvlan has its parent's hardware address; indexes repeat."""
        return self.lower == parent.index and (not self.kind.startswith("ipv") or self.mac == parent.mac)

    def shares_parent(self, link: NsLink) -> bool:
        """Whether it and an interface that probes are of one parent: that interface itself, or one of its children."""
        if not link.is_child:
            return self.belongs_to(link)
        return self.lower == link.lower and (not self.kind.startswith("ipv") or self.mac == link.mac)


def occupants(root: Root, but: Optional[Namespace] = None) -> list[Occupant]:
    """The children that the host and every other namespace hold, without those in ``but``."""
    found = [
        Occupant(link.lower, link.kind, link.mac, link.name, "the host")
        for link in read_links()
        if link.is_child
    ]
    with opened("/proc/self/ns/net", "of this process") as host:
        for namespace in everyone(root):
            if but is not None and namespace.identity == but.identity:
                continue
            with contextlib.suppress(OSError, RdmaError):  # a namespace that goes away holds no child
                found += [
                    Occupant(link.lower, link.kind, link.mac, link.name, "namespace %s" % namespace.label)
                    for link in inside(namespace, lambda: _children_of(host))
                ]
    return found


def _children_of(host: Namespace) -> list[NsLink]:
    """The children in the namespace of this thread whose parents are in that of the host, and not in a third one."""
    links = [link for link in read_links() if link.is_child and link.elsewhere]
    number = raw_netlink.namespace_number(host.handle) if links else None
    return [link for link in links if number is None or link.lower_namespace == number]


def refuse_in_use(nic: str, parent: NsLink, held: Iterable[Occupant], claimed: Iterable[str] = ()) -> None:
    """A NIC that serves a pod is left alone: a second child would repeat the address of the first (decision 31).

    :raises RdmaError: ``nic_in_use``.
    """
    reason = ""
    if nic in claimed:
        reason = "a claim is allocated for it"
    for occupant in held:
        if not reason and occupant.belongs_to(parent):
            reason = "%s has its %s child %s" % (occupant.where, occupant.kind, occupant.name)
    if reason:
        raise RdmaError(
            "nic_in_use",
            "%s is in use: %s." % (nic, reason),
            hint="Drain the node's RDMA work and wait until its claims are unprepared; then try again.",
            interface=nic,
        )
