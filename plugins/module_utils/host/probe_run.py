# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One run of the module fabric_probe: listen, probe, or end the listeners. Private to rdma.k8s."""

from __future__ import annotations

import contextlib
import fcntl
import socket
import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Optional

from ..core import codec
from ..core.errors import RdmaError
from ..core.fabric import verdicts
from . import listeners, namespaces, occupants, probing
from .changes import Changes
from .files import Root
from .link_dump import NsLink, read_links

OWNER = "fabric_probe"
_GET_ADDRESS = 0x8915


@dataclass(frozen=True)
class Place:
    """Where the sources are: a namespace by name, path or process; nothing of these: the host's own."""

    name: str = ""
    path: str = ""
    pid: Optional[int] = None

    @property
    def is_host(self) -> bool:
        """Whether no namespace was named."""
        return not (self.name or self.path) and self.pid is None

    @property
    def label(self) -> str:
        """How a message names it."""
        return self.name or self.path or ("the host" if self.pid is None else "of process %s" % self.pid)


class Run:
    """One run in one namespace.

    :param claimed: NICs with an allocated claim (decision 31).
    :param allow_foreign: consent to use a namespace that may be a pod's.
    """

    def __init__(
        self, changes: Changes, place: Place, claimed: Sequence[str] = (), allow_foreign: bool = False
    ) -> None:
        self.changes = changes
        self.root: Root = changes.root
        self.place = place
        self.claimed = tuple(claimed)
        self.allow_foreign = allow_foreign

    def listen(self, nics: Sequence[str], port: int, limit: int) -> dict[str, Any]:
        """Start a listener on each child of the namespace, or on the NICs that are named.

        :raises RdmaError: ``namespace_missing``, ``namespace_not_entered``, ``nic_missing``.
        """
        with self._entered() as namespace:
            addresses, silent = self._addresses(namespace, nics)
            running = self._running(namespace)
            self.changes.live(
                "listeners",
                "the RDMA listeners in %s" % self.place.label,
                running,
                len(addresses),
                lambda: silent.update(self._start(namespace, addresses, port, limit)),
                record=False,
            )
        if self.changes.check_mode and not running:
            silent.update(dict.fromkeys(addresses, "check mode"))
        return {
            "listening": sorted(set(addresses) - set(silent)),
            "silent": silent,
            "fabric": {},
        }

    def _start(
        self, namespace: Optional[namespaces.Namespace], addresses: dict[str, str], port: int, limit: int
    ) -> dict[str, str]:
        self._end(namespace)
        return listeners.start(self.root, namespace, addresses, port, limit)

    def probe(self, pairs: Sequence[dict[str, Any]], limits: probing.Limits) -> dict[str, Any]:
        """Probe the pairs whose NIC serves no pod.

        :raises RdmaError: ``namespace_missing``, ``namespace_not_entered``, ``probe_not_permitted``,
            ``probe_source_missing``, ``probe_too_many``, ``probe_not_ipv4``.
        """
        probing.require(pairs, limits)
        with self._entered() as namespace:
            busy = self._in_use(namespace, {pair["nic"] for pair in pairs})
            free = [pair for pair in pairs if pair["nic"] not in busy]
            found = [] if self.changes.check_mode else probing.probe(self.root, namespace, free, limits)
        return {
            "probes": [_shown(entry) for entry in found],
            "skipped": busy,
            "fabric": {
                "probes": [codec.encode(entry) for entry in found],
                "expected": len(pairs),
                "problems": {"probe of %s" % nic: reason for nic, reason in busy.items()},
            },
        }

    def stop(self) -> dict[str, Any]:
        """End the listeners of the namespace.

        :raises RdmaError: ``namespace_missing``, ``namespace_not_entered``.
        """
        with self._entered() as namespace:
            self.changes.live(
                "listeners",
                "the RDMA listeners in %s" % self.place.label,
                self._running(namespace),
                0,
                lambda: self._end(namespace),
                record=False,
            )
        return {"fabric": {}}

    @contextlib.contextmanager
    def _entered(self) -> Iterator[Optional[namespaces.Namespace]]:
        if self.place.is_host:
            yield None
            return
        file = namespaces.place_of(self.root, self.place.name, self.place.path, self.place.pid)
        with namespaces.opened(file, self.place.label) as namespace:
            yield namespace

    def _running(self, namespace: Optional[namespaces.Namespace]) -> int:
        if namespace is not None:
            return listeners.count(self.root, namespace)
        with namespaces.opened("/proc/self/ns/net", self.place.label) as own:
            return listeners.count(self.root, own)

    def _end(self, namespace: Optional[namespaces.Namespace]) -> None:
        if namespace is not None:
            listeners.end(self.root, namespace)
            return
        with namespaces.opened("/proc/self/ns/net", self.place.label) as own:
            listeners.end(self.root, own)

    def _links(self, namespace: Optional[namespaces.Namespace]) -> dict[str, NsLink]:
        links = read_links() if namespace is None else namespaces.inside(namespace, read_links)
        return {link.name: link for link in links}

    def _addresses(
        self, namespace: Optional[namespaces.Namespace], nics: Sequence[str]
    ) -> tuple[dict[str, str], dict[str, str]]:
        """The address of each child, or of the NICs that are named; and which of them serve a pod, with the reason."""
        links = self._links(namespace)
        wanted = list(nics) or sorted(link.name for link in links.values() if link.is_child)
        for nic in wanted:
            if nic not in links:
                raise RdmaError(
                    "nic_missing",
                    "There is no interface %s in %s." % (nic, self.place.label),
                    hint="Make the children first (module ipvlan_child).",
                    interface=nic,
                )
        silent = self._in_use(namespace, set(wanted))
        free = [nic for nic in wanted if nic not in silent]
        found = (
            _first_addresses(free)
            if namespace is None
            else namespaces.inside(namespace, lambda: _first_addresses(free))
        )
        silent.update({nic: "%s has no address" % nic for nic in free if nic not in found})
        return found, silent

    def _in_use(self, namespace: Optional[namespaces.Namespace], nics: set[str]) -> dict[str, str]:
        """The NICs that serve a pod: their parent has a child elsewhere, or a claim is allocated (decision 31)."""
        links = self._links(namespace)
        held = occupants.occupants(self.root, namespace)
        foreign = self._foreign(namespace, links.values())
        busy = {}
        for nic in sorted(nics):
            link = links.get(nic)
            if nic in self.claimed:
                busy[nic] = "a claim is allocated for it"
            elif foreign:
                busy[nic] = foreign
            for occupant in held if link is not None else ():
                if link is not None and occupant.shares_parent(link):
                    busy.setdefault(
                        nic, "%s has its %s child %s" % (occupant.where, occupant.kind, occupant.name)
                    )
        return busy

    def _foreign(self, namespace: Optional[namespaces.Namespace], links: Iterable[NsLink]) -> str:
        """Why a namespace may be a pod's, so that nothing in it is used without consent; empty: it is not."""
        if namespace is None or namespaces.is_ours(self.place.name) or self.allow_foreign:
            return ""
        if namespace.identity == namespaces.own_identity():
            return ""
        found = [
            "its %s child %s" % (link.kind, link.name) for link in links if link.is_child and link.elsewhere
        ]
        ours = set(listeners.running(self.root, namespace))
        found += ["process %d" % pid for pid in namespaces.processes(self.root, namespace) if pid not in ours]
        if not found:
            return ""
        return "the namespace %s may be a pod's: it has %s (option allow_foreign_namespace)" % (
            self.place.label,
            found[0],
        )


def _first_addresses(names: Sequence[str]) -> dict[str, str]:
    found = {}
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asker:
        for name in names:
            with contextlib.suppress(OSError):
                answer = fcntl.ioctl(asker, _GET_ADDRESS, struct.pack("256s", name.encode()[:15]))
                found[name] = socket.inet_ntoa(answer[20:24])
    return found


def _shown(entry: Any) -> dict[str, Any]:
    judged = {test: asdict(verdict) for test, verdict in verdicts(entry).items()}
    return {**asdict(entry), "verdicts": judged}
