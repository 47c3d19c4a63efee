# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One run of the module ipvlan_child: the children of several NICs in one namespace. Private to rdma.k8s."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Callable, Optional

from ..core import codec
from ..core.errors import RdmaError
from ..core.fabric import FAILED, IN_USE, PLANNED, READY, REFUSED, REMOVED, FabricChild
from ..core.oke.children import MODE_L2, ChildPlan, differences, names_of, plan
from ..core.oke.view import NodeView
from ..core.snapshot import NodeSnapshot
from . import children, listeners, namespaces, occupants, store
from .changes import Changes
from .collect import collect
from .files import Root
from .link_dump import NsLink, read_links

OWNER = "ipvlan_child"
SUBSETS = ("kernel", "rdma", "links", "routes", "pci", "oca", "imds")
_CODES = {"nic_in_use": IN_USE, "child_foreign": IN_USE}
_NOT_THE_PROFILE = (
    "child_not_made",
    "child_not_read",
    "child_not_removed",
    "gid_missing",
    "namespace_missing",
)


@dataclass(frozen=True)
class Where:
    """The namespace of the children: a name, a path or a process. A name of ours is made and removed with them."""

    name: str = ""
    path: str = ""
    pid: Optional[int] = None

    @property
    def label(self) -> str:
        return self.name or self.path or "of process %s" % self.pid

    @property
    def is_ours(self) -> bool:
        return namespaces.is_ours(self.name)


@dataclass(frozen=True)
class Wish:
    """What is wanted of a run.

    :param nics: names of NICs; empty: all RDMA NICs, or all children of the namespace.
    :param claimed: NICs with an allocated claim (decision 31).
    :param skip: leave out NICs that are in use or refused, instead of failing.
    """

    where: Where
    nics: Sequence[str] = ()
    child_range: str = ""
    claimed: Sequence[str] = ()
    skip: bool = False
    gid_limit: float = children.GID_LIMIT
    service_host: Optional[str] = None
    imds_url: str = ""
    imds_timeout: float = 5.0


Row = tuple[str, Optional[ChildPlan], FabricChild]


class Run:
    """One run: what may be changed, and what is wanted."""

    def __init__(self, changes: Changes, wish: Wish) -> None:
        self.changes = changes
        self.wish = wish
        self.root = changes.root
        self.where = wish.where
        self.place = namespaces.place_of(self.root, wish.where.name, wish.where.path, wish.where.pid)
        self.repaired = 0  # actions that stay when the run fails: what was repaired is not broken again

    # Make

    def present(self) -> dict[str, Any]:
        """Give the NICs their children. When it fails, what this run made is removed again.

        :raises RdmaError: the codes of the profile, ``nic_in_use``, ``child_foreign``, ``child_not_made``,
            ``gid_missing``, ``namespace_missing``, ``namespace_not_entered``, ``namespace_not_made``.
        """
        view = NodeView(self._collected())
        rows = [self._planned(view, name) for name in self.wish.nics or names_of(view)]
        with contextlib.ExitStack() as undo:
            undo.callback(lambda: self.changes.forget(self.repaired))
            found = self._ensure(rows, undo)
            undo.pop_all()
        return self._result(found)

    def _collected(self) -> NodeSnapshot:
        return collect(
            host_root=self.root.path or "/",
            subsets=SUBSETS,
            imds_url=self.wish.imds_url,
            imds_timeout=self.wish.imds_timeout,
        )

    def _planned(self, view: NodeView, name: str) -> Row:
        try:
            found = plan(view, name, self.wish.child_range, self.wish.service_host)
        except RdmaError as error:
            if not self.wish.skip:
                raise
            return name, None, _failed(FabricChild(name), error)
        row = FabricChild(name, found.index, PLANNED, str(found.address), found.mtu, found.device, found.port)
        return name, found, row

    def _ensure(self, rows: Sequence[Row], undo: contextlib.ExitStack) -> list[FabricChild]:
        if not namespaces.is_mounted(self.place):
            if not self.where.is_ours:
                raise namespaces.missing(self.where.label)
            rows = self._free(rows)
            if all(found is None for _name, found, _row in rows):
                return [row for _name, _found, row in rows]
            undo.callback(self._discard_quietly)
            self._change("namespace", self.where.name, "absent", "present", self._make_namespace)
            if self.changes.check_mode:
                return [self._predicted(found, row) for _name, found, row in rows]
        with self._entered() as namespace:
            held = children.Children(self.root, namespace)
            answers = []
            for _name, found, row in rows:
                answers.append(row if found is None else self._one(held, found, row, undo))
                if not namespaces.still_there(self.place, namespace):
                    raise namespaces.missing(self.where.label)
        if not any(row.state == READY for row in answers) and not self.changes.check_mode:
            undo.close()  # a namespace without a child is of no use
        return answers

    def _make_namespace(self) -> None:
        namespaces.make(self.root, self.where.name)

    def _discard_quietly(self) -> None:
        if not self.changes.check_mode:
            with contextlib.suppress(RdmaError):
                self._discard()

    def _discard(self) -> None:
        """Remove the namespace; its undo record means nothing then."""
        listeners.discard(self.root, self.where.name)
        store.forget(self.root, "namespace", self.where.name)

    def _free(self, rows: Sequence[Row]) -> list[Row]:
        """Before anything is made: which NICs are in use."""
        links = {link.name: link for link in read_links()}
        held = occupants.occupants(self.root)
        answers: list[Row] = []
        for name, found, row in rows:
            try:
                if found is not None:
                    occupants.refuse_in_use(name, _parent(links, name), held, self.wish.claimed)
                answers.append((name, found, row))
            except RdmaError as error:
                if not self.wish.skip:
                    raise
                answers.append((name, None, _failed(row, error)))
        return answers

    def _predicted(self, found: Optional[ChildPlan], row: FabricChild) -> FabricChild:
        """What would be done in a namespace that is still to be made."""
        if found is not None:
            self._change("child", self._title(found.nic), None, _told(found), _nothing)
        return row

    def _one(
        self, held: children.Children, found: ChildPlan, row: FabricChild, undo: contextlib.ExitStack
    ) -> FabricChild:
        with contextlib.ExitStack() as own:
            before = len(self.changes.actions)
            try:
                row = self._child(held, found, row, own)
            except RdmaError as error:
                own.close()
                self.changes.forget(before)
                if not namespaces.still_there(self.place, held.namespace):
                    raise namespaces.missing(self.where.label) from error
                if not self.wish.skip:
                    raise
                return _failed(row, error)
            undo.push(own.pop_all())
        return row

    def _child(
        self, held: children.Children, found: ChildPlan, row: FabricChild, undo: contextlib.ExitStack
    ) -> FabricChild:
        parent = _parent(held.parents(), found.nic)
        others = occupants.occupants(self.root, held.namespace)
        occupants.refuse_in_use(found.nic, parent, others, self.wish.claimed)
        links = held.links()
        if not self.changes.check_mode:
            held.remove_left_over(links, parent)
        link = held.own(found.nic, parent, links)
        before: Optional[dict[str, Any]] = None
        current = None
        if link is not None:
            state = held.state(found, link)
            held.refuse_foreign_address(found, state)
            current = link, state
            before = {**_told(found), **{name: pair[0] for name, pair in differences(found, state).items()}}
        self._change(
            "child",
            self._title(found.nic),
            before,
            _told(found),
            lambda: held.present(found, parent, current, undo),
        )
        if self.changes.check_mode and before != _told(found):
            return row
        if before is not None and self.repaired == len(self.changes.actions) - 1:
            self.repaired += 1
        return replace(row, state=READY, gid=children.find_gid(self.root, found, self.wish.gid_limit))

    # Remove

    def absent(self) -> dict[str, Any]:
        """Remove children, or a namespace of ours with all that is in it, and see their GIDs vanish.

        In a namespace that is not ours a child that is not as the plan has it is a pod's, and stays (decision 31).

        :raises RdmaError: ``children_not_named``, ``child_foreign``, ``nic_in_use``, ``child_not_removed``,
            ``namespace_not_entered``, ``namespace_not_removed``; the codes of the profile in a namespace of others.
        """
        if not (self.where.is_ours or self.wish.nics):
            raise RdmaError(
                "children_not_named",
                "The namespace %s is not one of ours, and its children may be a pod's: no name was given."
                % self.where.label,
                hint="Name by 'nics' the NICs whose children you made there.",
                namespace=self.where.label,
            )
        rows: list[FabricChild] = []
        whole = self.where.is_ours and not self.wish.nics
        if namespaces.is_mounted(self.place):
            with self._entered() as namespace:
                rows = self._remove_children(children.Children(self.root, namespace))
                if whole:
                    self._end_listeners(namespace)
        if whole and Root().exists(self.place):
            self._change(
                "namespace",
                self.where.name,
                "present",
                "absent",
                self._discard,
            )
        return self._result(rows)

    def _end_listeners(self, namespace: namespaces.Namespace) -> None:
        count = listeners.count(self.root, namespace)
        self._change(
            "listeners",
            "the RDMA listeners in %s" % self.where.label,
            count,
            0,
            lambda: listeners.end(self.root, namespace),
        )

    def _remove_children(self, held: children.Children) -> list[FabricChild]:
        parents = {link.index: link.name for link in held.parents().values()}
        ports = _ports(self.root)
        rows: list[tuple[FabricChild, list[str]]] = []
        found = self._to_remove(held)
        if found and not self.where.is_ours:
            self._refuse_foreign(held, found)
        for link in found:
            device, port = ports.get(parents.get(link.lower, link.name), ("", 0))
            addresses = held.addresses(link)
            self._remove_child(held, link, addresses)
            row = FabricChild(
                link.name, state=REMOVED, address=", ".join(addresses), device=device, port=port
            )
            rows.append((row, addresses))
        return [replace(row, gone=self._is_gone(row, addresses)) for row, addresses in rows]

    def _to_remove(self, held: children.Children) -> list[NsLink]:
        found = []
        for link in sorted(held.links().values(), key=lambda link: link.index):
            wanted = link.name in self.wish.nics if self.wish.nics else link.is_child and link.elsewhere
            wanted = wanted or self._is_left_over(held, link)
            if wanted and not (link.is_child and link.elsewhere):
                raise held.foreign(link.name, "it is a link of kind %s" % (link.kind or "none"))
            if wanted:
                found.append(link)
        return found

    def _is_left_over(self, held: children.Children, link: NsLink) -> bool:
        """What a killed run left of a named NIC, which has no name of a NIC yet."""
        parents = held.parents() if link.name.startswith(children.TEMPORARY) else {}
        return any(nic in parents and held.is_left_over(link, parents[nic]) for nic in self.wish.nics)

    def _refuse_foreign(self, held: children.Children, found: Sequence[NsLink]) -> None:
        """Before anything is removed from a namespace of others: each is the child that this module makes."""
        view = NodeView(self._collected())
        parents = held.parents()
        for link in found:
            if self._is_left_over(held, link):
                continue
            parent = parents.get(link.name)
            if parent is None:
                raise held.foreign(link.name, "the host has no NIC of that name")
            held.own(link.name, parent, {link.name: link})
            occupants.refuse_in_use(link.name, parent, (), self.wish.claimed)
            wanted = plan(view, link.name, self.wish.child_range, self.wish.service_host)
            held.refuse_foreign_address(wanted, held.state(wanted, link))

    def _remove_child(self, held: children.Children, link: NsLink, addresses: list[str]) -> None:
        def remove() -> None:
            held.absent(link)

        self._change("child", self._title(link.name), {"address": addresses}, None, remove)

    def _is_gone(self, row: FabricChild, addresses: list[str]) -> Optional[bool]:
        if self.changes.check_mode:
            return None
        return not row.device or children.gid_gone(
            self.root, row.device, row.port, addresses, self.wish.gid_limit
        )

    # Both

    def _change(self, kind: str, name: str, before: Any, after: Any, apply: Callable[[], None]) -> None:
        """Only a namespace of ours has an undo record: what is inside goes with it, and others are not the node's."""
        self.changes.live(kind, name, before, after, apply, record=kind == "namespace")

    def _title(self, nic: str) -> str:
        return "the child of %s in %s" % (nic, self.where.label)

    @contextlib.contextmanager
    def _entered(self) -> Iterator[namespaces.Namespace]:
        label = self.where.label
        with namespaces.opened(self.place, label) as namespace:
            if namespace.identity == namespaces.own_identity():
                raise RdmaError(
                    "namespace_is_host",
                    "%s is the network namespace of the host, where the parents are." % label,
                    hint="Give another one; a name that begins with '%s' is made by this module."
                    % namespaces.PREFIX,
                    namespace=label,
                )
            yield namespace

    def _result(self, rows: Sequence[FabricChild]) -> dict[str, Any]:
        return {
            "namespace": self.where.label,
            "children": [asdict(row) for row in rows],
            "fabric": {"children": [codec.encode(row) for row in rows]},
        }


def _nothing() -> None:
    """What a prediction does."""


def _failed(row: FabricChild, error: RdmaError) -> FabricChild:
    state = _CODES.get(error.code, FAILED if error.code in _NOT_THE_PROFILE else REFUSED)
    return replace(row, state=state, code=error.code, reason=error.message)


def _parent(links: dict[str, NsLink], nic: str) -> NsLink:
    if nic not in links:
        raise RdmaError(
            "child_not_made",
            "%s is gone from the host." % nic,
            hint="Look at 'ip link' and the kernel log of the node.",
            interface=nic,
        )
    return links[nic]


def _told(found: ChildPlan) -> dict[str, Any]:
    """A child as a diff shows it."""
    return {
        "mode": MODE_L2,
        "mtu": found.mtu,
        "arp_ignore": str(found.arp.arp_ignore),
        "arp_announce": str(found.arp.arp_announce),
        "address": [str(found.address)],
        "up": True,
        "route": ["%s src %s scope link" % (found.route.destination, found.route.source)],
        "rule": ["%d: lookup %d" % (found.rule.priority, found.rule.table)],
    }


def _ports(root: Root) -> dict[str, tuple[str, int]]:
    """NIC to its RDMA device and port."""
    snapshot = collect(host_root=root.path or "/", subsets=("rdma", "links", "pci"))
    return {
        nic.link.name: (nic.device.name, nic.port.port)
        for nic in NodeView(snapshot).all_nics
        if nic.link is not None and nic.device is not None and nic.port is not None
    }
