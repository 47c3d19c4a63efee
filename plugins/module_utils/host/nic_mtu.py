# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Set the MTU of NICs, now and for the next boot (decision 15). Private to rdma.k8s: it may change any time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Optional

from ..core import nic_mtu as core
from ..core.errors import RdmaError
from ..core.oke.view import NodeView
from ..core.snapshot import NodeSnapshot
from . import brief, edits, link_mtu, netplan, oca, oca_config, occupants, records, uplinks
from .changes import Changes
from .files import Root

NETWORKD_LINKS = "/run/systemd/netif/links"
NETWORKD = (
    "/etc/systemd/network",
    "/run/systemd/network",
    "/usr/lib/systemd/network",
    "/lib/systemd/network",
)
MANAGER_DEVICES = "/run/NetworkManager/devices"
MANAGER_PROFILES = (
    "/etc/NetworkManager/system-connections",
    "/run/NetworkManager/system-connections",
    "/usr/lib/NetworkManager/system-connections",
)
MANAGER_CONFIG = (
    "/etc/NetworkManager/conf.d",
    "/run/NetworkManager/conf.d",
    "/usr/lib/NetworkManager/conf.d",
)
SCRIPTS = "/etc/sysconfig/network-scripts"
INTERFACES = "/etc/network/interfaces"
UDEV = ("/etc/udev/rules.d", "/run/udev/rules.d", "/usr/lib/udev/rules.d", "/lib/udev/rules.d")


@dataclass
class Result:
    """What became of one NIC; ``file`` is the one of ours that keeps the MTU."""

    name: str
    owner: core.Owner
    before: int
    mtu: int
    file: str = ""
    children: tuple[dict[str, Any], ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        owner = {"owner": self.owner.kind, "source": self.owner.source}
        return {**vars(self), **owner, "children": list(self.children)}


@dataclass(frozen=True)
class Kept:
    """The file that is to keep the MTU of a NIC."""

    file: core.File
    mode: int
    owner: core.Owner


class Node:
    """The NICs of a node and those who configure them.

    :param snapshot: the answer of :func:`.brief.read`.
    """

    def __init__(self, root: Root, snapshot: NodeSnapshot) -> None:
        self.root = root
        self.snapshot = snapshot
        self.recorded = records.is_recorded(root)
        self.rdma_nics = frozenset([nic.name for nic in NodeView(snapshot).nics])
        self.nics = self._nics()

    def _nics(self) -> dict[str, core.Nic]:
        links = self.snapshot.links or ()
        by_place = {link.pci: link.name for link in links if link.pci}
        above = {entry.address: entry.vf_of for entry in self.snapshot.pci or () if entry.vf_of}
        physical = {
            by_place[address]: by_place.get(place, "")
            for address, place in above.items()
            if address in by_place
        }
        return {
            name: replace(
                nic,
                physical=physical.get(name, ""),
                lowers=tuple([lower for lower, upper in physical.items() if upper == name]),
            )
            for name, nic in uplinks.nics(self.root).items()
        }

    # Whose is it?

    def require_free(self, name: str) -> None:
        """Refuse a NIC that is not ours to change.

        :raises RdmaError: ``nic_carries_default_route``, ``nic_owned_by_oca``, ``route_list_unknown``
        """
        uplinks.refuse_default_route(name, self.nics.values(), self.snapshot)
        core.refuse_oca(name, self._oca_reason(name))

    def _oca_reason(self, name: str) -> str:
        """Why a NIC is one of the agent's: the agent is here, and the NIC is one of those that it configures."""
        if name not in self.rdma_nics:
            return ""
        unit = oca_config.agent(self.root).unit
        if unit:
            return "%s runs" % unit
        for path in (oca.STATE, oca.NETWORK, oca.FEATURES, oca.SNAP):
            if self.root.modified(path) is not None:
                return "%s is there" % path
        return ""

    def owner_of(self, name: str) -> core.Owner:
        """Who configures a NIC.

        :raises RdmaError: ``nic_has_two_owners``
        """
        index = self.nics[name].index
        scripts = [file for file in self._files(SCRIPTS) if core.base(file.path).startswith("ifcfg-")]
        profiles = [file for directory in MANAGER_PROFILES for file in self._files(directory)]
        scripts, profiles = (
            [file for file in files if not core.is_backup(file.path)] for files in (scripts, profiles)
        )
        interfaces = core.File(INTERFACES, self.root.read(INTERFACES) or "")
        return core.owner_of(
            name,
            core.Evidence(
                networkd=self.root.read("%s/%d" % (NETWORKD_LINKS, index)) or "",
                manager=self.root.read("%s/%d" % (MANAGER_DEVICES, index)) or "",
                profiles=(*profiles, *scripts),
                ifcfg=tuple(scripts),
                interfaces=(interfaces, *self._files(INTERFACES + ".d")),
            ),
        )

    def _files(self, directory: str, suffix: str = "") -> list[core.File]:
        names = [
            name for name in self.root.names(directory) or () if name.endswith(suffix) and name[:1] != "."
        ]
        texts = [(path, self.root.read(path)) for path in ["%s/%s" % (directory, name) for name in names]]
        return [core.File(path, text) for path, text in texts if text is not None]

    def _merged(self, directories: Iterable[str], suffix: str) -> list[core.File]:
        """Files of several directories in the order of their names; of equal names the first directory counts."""
        found: dict[str, core.File] = {}
        for directory in directories:
            for file in self._files(directory, suffix):
                found.setdefault(core.base(file.path), file)
        return [file for _name, file in sorted(found.items())]

    # Which file keeps it?

    def kept(self, name: str, mtu: int, wanted: Iterable[str]) -> Optional[Kept]:
        """The file to write for a NIC; ``None`` when a file of the owner says the same already.

        :raises RdmaError: ``mtu_overwritten``, ``mtu_file_shared``, ``mtu_owner_unsupported``
        """
        owner = self.owner_of(name)
        script = edits.read(self.root, owner.source) if owner.kind == core.IFCFG else None
        file, mode = core.file_of(owner, name, mtu, "" if script is None else script.exact())
        mode = mode if script is None else script.mode
        self.require_own_file(owner, name, wanted)
        earlier, later = self._others(owner, name, file)
        core.require_last_word(owner, name, mtu, later)
        said = bool(later) or bool(earlier and core.says(earlier[-1], mtu))
        return None if said and not self._is_ours(owner, file.path) else Kept(file, mode, owner)

    def _is_ours(self, owner: core.Owner, path: str) -> bool:
        if owner.kind == core.IFCFG:
            text = self.root.read(path) or ""
            return core.without_block(text) != text
        return self.root.modified(path) is not None

    def require_own_file(self, owner: core.Owner, name: str, wanted: Iterable[str]) -> None:
        """Refuse where our drop-in is for NICs that were not named, too.

        :raises RdmaError: ``mtu_file_shared``
        """
        core.require_own_file(owner, name, self._sharing(owner.source), wanted)

    def is_stale(self, keys: Iterable[str]) -> bool:
        """Whether what netplan wrote for definitions sets another MTU than it would now: a run was killed in between.

        Where netplan does not take its files, generating them would bring nothing either.
        """
        try:
            wanted = netplan.generated(self.root, self._netplan_files())
        except RdmaError:
            return False
        now = netplan.present(self.root)
        return any(netplan.mtus(now, key) != netplan.mtus(wanted, key) for key in keys)

    def _netplan_files(self) -> list[core.File]:
        return [file for directory in netplan.DIRECTORIES for file in self._files(directory, ".yaml")]

    def _sharing(self, network_file: str) -> list[str]:
        """The NICs to which a file of networkd applies."""
        names = {str(nic.index): nic.name for nic in self.nics.values()}
        line = "NETWORK_FILE=" + network_file
        users = [
            core.base(file.path) for file in self._files(NETWORKD_LINKS) if line in file.text.splitlines()
        ]
        return [names[user] for user in users if user in names]

    def _others(
        self, owner: core.Owner, name: str, ours: core.File
    ) -> tuple[list[core.Line], list[core.Line]]:
        """The lines of others that set the MTU: those that count less than our file, and those that count more."""
        own = core.base(ours.path)
        source = [core.File(owner.source, self.root.read(owner.source) or "")] if owner.source else []
        if owner.kind == core.NETWORKD:
            places = ["%s/%s.d" % (place, core.base(owner.source)) for place in NETWORKD]
            drops = self._merged(places, ".conf")
            before = [*source, *[file for file in drops if core.base(file.path) < own]]
            after = [file for file in drops if core.base(file.path) > own]
            return core.lines_of(owner.kind, before, name), core.lines_of(owner.kind, after, name)
        if owner.kind == core.MANAGER:
            kind = core.IFCFG if owner.source.startswith(SCRIPTS) else core.MANAGER
            lines = core.lines_of(core.MANAGER, self._merged(MANAGER_CONFIG, ".conf"), name)
            lines += core.lines_of(kind, source, name)
            return [], [line for line in lines if line.value != "0"]  # 0: not set
        if owner.kind == core.IFCFG:
            return [], core.lines_of(owner.kind, source, name)
        if owner.kind == core.NOBODY:
            rules = [file for file in self._merged(UDEV, ".rules") if core.base(file.path) > own]
            return [], core.lines_of(owner.kind, rules, name)
        return [], []

    def try_netplan(self, kept: Iterable[Kept], mtu: int) -> set[str]:
        """Let netplan read what is to be written, in a directory apart, and see that it takes the MTU.

        :returns: the definitions that have it without our file.
        :raises RdmaError: ``mtu_overwritten`` and those of :func:`.netplan.generated`
        """
        planned = [each for each in kept if each.owner.kind == core.NETPLAN]
        if not planned:
            return set()
        present = self._netplan_files()
        ours = {each.file.path: each.file for each in planned}
        others = [file for file in present if file.path not in ours]
        alone = netplan.generated(self.root, others)
        together = netplan.generated(self.root, [*others, *ours.values()])
        for each in planned:
            if not netplan.has_mtu(together, each.owner.key, mtu):
                later = [file for file in others if core.base(file.path) > core.base(each.file.path)]
                places = core.lines_of(core.NETPLAN, later, "")
                raise core.netplan_overwrites(each.owner.key, each.file.path, places)
        existing = {file.path for file in present}
        return {
            each.owner.key
            for each in planned
            if each.file.path not in existing and netplan.has_mtu(alone, each.owner.key, mtu)
        }


def change(  # noqa: PLR0917 (the options of the module)
    changes: Changes,
    snapshot: NodeSnapshot,
    names: Iterable[str],
    mtu: int,
    live: bool = True,
    persist: bool = True,
) -> list[Result]:
    """Set the MTU of NICs. All are judged, and all files are tried, before the first is changed.

    :raises RdmaError: see :mod:`.core.nic_mtu`, :mod:`.link_mtu`, :mod:`.netplan` and :class:`Changes`.
    """
    node = Node(changes.root, snapshot)
    if live and node.recorded:
        raise RdmaError(
            "recorded_tree",
            "%s is a recorded tree: no MTU can be set there." % (changes.root.path or "/"),
            hint="Set live to false to write the files alone.",
        )
    wanted = core.require_names(names, node.nics)
    for name in wanted:
        node.require_free(name)
    order = core.in_order(wanted, node.nics, mtu)
    kept = {name: node.kept(name, mtu, wanted) for name in wanted} if persist else {}
    said = node.try_netplan([each for each in kept.values() if each is not None], mtu)
    results = {name: Result(name, node.owner_of(name), node.nics[name].mtu, mtu) for name in wanted}
    for nic in order if live else ():
        results[nic.name].children = _children(node, nic, mtu)
        changes.live(link_mtu.KIND, nic.name, nic.mtu, mtu, _Setting(changes.root, nic.name, mtu))
    files: dict[str, Kept] = {}  # NICs can share one
    for name, each in kept.items():
        if each is not None and not (each.owner.kind == core.NETPLAN and each.owner.key in said):
            results[name].file = each.file.path
            files[each.file.path] = each
    generate = False
    present = netplan.present(changes.root)
    for each in files.values():
        written = changes.file(each.file.path, each.file.text, each.mode)
        if each.owner.kind == core.NETPLAN:  # a killed run can have written the file alone
            generate = generate or written or not netplan.has_mtu(present, each.owner.key, mtu)
    if generate:
        _generate(changes)
    return [results[name] for name in wanted]


def _generate(changes: Changes) -> None:
    changes.note("generate the files of netplan")
    if not changes.check_mode:
        netplan.generate(changes.root)


class _Setting:
    """Sets the MTU of a NIC when it is called, and looks whether it stays."""

    def __init__(self, root: Root, name: str, mtu: int) -> None:
        self.root = root
        self.name = name
        self.mtu = mtu

    def __call__(self) -> None:
        link_mtu.write_mtu(self.root, self.name, self.mtu)
        found = link_mtu.read_mtu(self.root, self.name)
        if found != self.mtu:
            raise RdmaError(
                "mtu_refused",
                "%s has MTU %d after it was set to %d." % (self.name, found, self.mtu),
                hint="Find out who sets it back.",
                nic=self.name,
                mtu=self.mtu,
            )


def _children(node: Node, nic: core.Nic, mtu: int) -> tuple[dict[str, Any], ...]:
    """What is made of a NIC, on the host and in other namespaces, and what its MTU becomes."""
    found: list[dict[str, Any]] = []
    for link in node.snapshot.links or ():
        if link.parent == nic.name and link.kind != "veth":
            after = core.becomes(link.kind, link.mtu or mtu, mtu)
            found.append({"name": link.name, "kind": link.kind, "where": "the host", "mtu": after})
    known = {each["name"] for each in found}
    macs = {link.mac for link in node.snapshot.links or () if link.name == nic.name}
    for child in occupants.occupants(node.root):
        if child.lower != nic.index or (child.kind.startswith("ipv") and child.mac not in macs):
            continue  # indexes repeat in other namespaces; an ipvlan has its parent's hardware address
        if not (child.where == "the host" and child.name in known):
            after_there = mtu if child.kind.startswith("ipv") else None
            found.append({"name": child.name, "kind": child.kind, "where": child.where, "mtu": after_there})
    return tuple(found)


def forget(changes: Changes, snapshot: NodeSnapshot, names: Iterable[str]) -> list[Result]:
    """Remove our files of NICs; the MTU stays until the next boot. All are judged before the first is removed.

    :raises RdmaError: ``nics_none_named``, ``nic_missing``, ``mtu_file_shared`` and those of :class:`Changes`.
    """
    node = Node(changes.root, snapshot)
    results = []
    files: dict[str, tuple[Optional[str], int]] = {}  # NICs can share one
    planned: dict[str, str] = {}
    wanted = core.require_names(names, node.nics)
    for name in wanted:
        owner = node.owner_of(name)
        results.append(Result(name, owner, node.nics[name].mtu, node.nics[name].mtu))
        if owner.kind == core.IFCFG:
            script = edits.read(changes.root, owner.source)
            if script is not None:
                files[owner.source] = core.without_block(script.exact()), script.mode
        elif owner.kind != core.IFUPDOWN:
            file, mode = core.file_of(owner, name, core.KERNEL_MINIMUM)
            if changes.root.modified(file.path) is not None:
                node.require_own_file(owner, name, wanted)
            files[file.path] = None, mode
            if owner.kind == core.NETPLAN:
                planned[file.path] = owner.key
    removed = [path for path, (text, mode) in files.items() if changes.file(path, text, mode)]
    if not planned.keys().isdisjoint(removed) or (
        planned and not removed and node.is_stale(planned.values())
    ):
        _generate(changes)
    return results


ARGUMENTS: dict[str, dict[str, Any]] = {
    "nics": {"type": "list", "elements": "str", "required": True},
    "mtu": {"type": "int"},
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "live": {"type": "bool", "default": True},
    "persist": {"type": "bool", "default": True},
    "host_root": {"type": "path", "default": "/"},
}
"""Options of the module ``nic_mtu``."""


def act(changes: Changes, given: Mapping[str, Any]) -> dict[str, Any]:
    """What the module ``nic_mtu`` does; its result.

    :param given: values for :data:`ARGUMENTS`.
    :raises RdmaError: see :func:`change` and :func:`forget`.
    """
    snapshot = brief.read(changes.root)
    if given["state"] == "absent":
        results = forget(changes, snapshot, given["nics"])
    else:
        results = change(changes, snapshot, given["nics"], given["mtu"], given["live"], given["persist"])
    return {"nics": [result.to_dict() for result in results]}
