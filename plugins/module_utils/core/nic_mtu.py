# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The MTU of NICs: may it be set, in which order, who owns the NIC, and which file keeps it.

Private to rdma.k8s: it may change with any release. The file is always one of our own beside those of the owner, or a
marked block of our own in a file that cannot have others beside it: a line of somebody else is never changed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Optional

from .errors import RdmaError
from .snapshot import Route, Rule

NETPLAN, NETWORKD, MANAGER, IFCFG, IFUPDOWN, NOBODY = (
    "netplan",
    "systemd-networkd",
    "NetworkManager",
    "ifcfg",
    "ifupdown",
    "none",
)
KERNEL_MINIMUM = 68
"""The smallest MTU of an interface that carries IPv4."""
LARGEST = 65536
"""The largest MTU for a device that tells no limit: that of the loopback interface, beyond the largest IP packet."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,14}")
_NETPLAN_FILE = re.compile(r"/run/systemd/network/10-netplan-(.+)\.network")
_NETPLAN_PROFILE = re.compile(r"/run/NetworkManager/system-connections/netplan-(.+)\.nmconnection")
_NETPLAN_ID = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_MARK, _END = "# rdma.k8s.nic_mtu: begin", "# rdma.k8s.nic_mtu: end"
_HEADER = "# Written by rdma.k8s.nic_mtu: the whole file is replaced.\n"
_UNMANAGED = ("", "unmanaged", "pending", "initialized")
_MAIN_TABLE = 254
_HALVES = {"default": ("0.0.0.0/1", "128.0.0.0/1"), "::/0": ("::/1", "8000::/1")}
_OWN = "90-rdma-k8s-mtu"
DROP_IN = _OWN + ".conf"


@dataclass(frozen=True)
class Nic:
    """An interface as the kernel has it.

    :param minimum: with ``maximum``: what the device takes; ``None`` or 0: it does not say.
    :param physical: for a virtual function, the interface of its physical one; else empty.
    :param lowers: further interfaces whose MTU must not exceed this one's: those of its virtual functions.
    :param above: the bond or bridge that it belongs to; ``below``: the interface that it is made of.
    """

    name: str
    index: int
    mtu: int
    minimum: Optional[int] = None
    maximum: Optional[int] = None
    physical: str = ""
    lowers: tuple[str, ...] = ()
    above: str = ""
    below: str = ""


@dataclass(frozen=True)
class File:
    """A file of the node and its text."""

    path: str
    text: str


@dataclass(frozen=True)
class Owner:
    """Who configures a NIC.

    :param kind: one of the names above.
    :param source: the file in which the NIC is configured; empty when there is none.
    :param key: the name of the NIC's definition in netplan; else empty.
    """

    kind: str
    source: str = ""
    key: str = ""

    def __str__(self) -> str:
        return "%s (%s)" % (self.kind, self.source) if self.source else self.kind


@dataclass(frozen=True)
class Line:
    """A line that sets an MTU."""

    path: str
    number: int
    value: str

    def __str__(self) -> str:
        return "%s:%d" % (self.path, self.number)


# May it be set?


def require_names(names: Iterable[str], known: Mapping[str, Nic]) -> list[str]:
    """The NICs asked for, each once.

    :raises RdmaError: ``nics_none_named``, ``nic_missing``
    """
    wanted = list(dict.fromkeys(names))
    if not wanted:
        raise RdmaError("nics_none_named", "No NIC is named in nics.", hint="Name the interfaces.")
    for name in wanted:
        if name not in known or not _NAME.fullmatch(name):
            raise RdmaError(
                "nic_missing",
                "This node has no interface %r; it has %s." % (name[:40], ", ".join(sorted(known)) or "none"),
                hint="Name an interface of the host; one that a pod has taken is not there.",
                nic=name,
            )
    return wanted


def in_order(wanted: Iterable[str], known: Mapping[str, Nic], mtu: int) -> list[Nic]:
    """The NICs in an order in which no virtual function is ever above its physical one (S36).

    :raises RdmaError: ``mtu_out_of_range``, ``mtu_above_physical``, ``mtu_below_virtual``; all NICs are judged first.
    """
    nics = [known[name] for name in wanted]
    names = {nic.name for nic in nics}
    for nic in nics:
        _require_range(nic, mtu)
        above = known.get(nic.physical)
        if above is not None and above.name not in names and above.mtu < mtu:
            raise RdmaError(
                "mtu_above_physical",
                "%s is a virtual function of %s, whose MTU is %d: %d does not fit."
                % (nic.name, above.name, above.mtu, mtu),
                hint="Raise %s first, or name it too." % above.name,
                nic=nic.name,
                physical=above.name,
                limit=above.mtu,
            )
        for name in nic.lowers:
            if name in known and name not in names and known[name].mtu > mtu:
                raise RdmaError(
                    "mtu_below_virtual",
                    "%s has the virtual function %s, whose MTU is %d: %d would be below it."
                    % (nic.name, name, known[name].mtu, mtu),
                    hint="Lower %s first, or name it too." % name,
                    nic=nic.name,
                    virtual=name,
                )
    raised = [nic for nic in nics if nic.mtu <= mtu]
    lowered = [nic for nic in nics if nic.mtu > mtu]
    return [
        *[nic for nic in raised if not nic.physical],
        *[nic for nic in raised if nic.physical],
        *[nic for nic in lowered if nic.physical],
        *[nic for nic in lowered if not nic.physical],
    ]


def _require_range(nic: Nic, mtu: int) -> None:
    lowest, highest = max(nic.minimum or 0, KERNEL_MINIMUM), nic.maximum or LARGEST
    if not lowest <= mtu <= highest:
        raise RdmaError(
            "mtu_out_of_range",
            "%s takes an MTU from %d to %d, found %d." % (nic.name, lowest, highest, mtu),
            hint="Look at 'ip -d link show %s'." % nic.name,
            nic=nic.name,
            minimum=lowest,
            maximum=highest,
        )


def refuse_default_route(name: str, carries_default: str) -> None:
    """Refuse the NIC by which the node is reached (decision 15).

    :param carries_default: how the default route goes over this NIC; empty when it does not.
    :raises RdmaError: ``nic_carries_default_route``
    """
    if carries_default:
        raise RdmaError(
            "nic_carries_default_route",
            "%s carries the default route of the node (%s); it is never changed here."
            % (name, carries_default),
            hint="Leave it out, or set it where the node gets its network from.",
            nic=name,
        )


def refuse_oca(name: str, oca: str) -> None:
    """Refuse the NICs of the Oracle Cloud Agent (decision 15).

    :param oca: why the NIC is one of the agent's; empty when it is not.
    :raises RdmaError: ``nic_owned_by_oca``
    """
    if oca:
        raise RdmaError(
            "nic_owned_by_oca",
            "%s belongs to the Oracle Cloud Agent (%s), which sets its MTU itself." % (name, oca),
            hint="Look whether the agent has finished (RDMA-OCA-010), then restart it.",
            nic=name,
        )


def default_over(
    name: str, nics: Iterable[Nic], routes: Iterable[Route], rules: Optional[Iterable[Rule]] = None
) -> str:
    """How the default route goes over a NIC, itself or what is made of it (a bond, a bridge, a VLAN); else empty.

    IPv4 decides; IPv6 only where there is no default route for IPv4. A route to half of all addresses is one, too.
    A table of its own is for what comes from a rail (S38). It counts where a rule sends everything there, and where
    the main table has no default route.
    """
    nics, routes = list(nics), list(routes)
    stacked, more = {name}, {name}
    while more:
        above = {nic.name for nic in nics if nic.below in more}
        above |= {nic.above for nic in nics if nic.name in more and nic.above}
        more = above - stacked
        stacked |= more
    tables = {_MAIN_TABLE}
    tables |= {rule.table for rule in rules or () if rule.src == "all" and rule.more in ("", "inet6")}
    for destination, halves in _HALVES.items():
        found = [route for route in routes if route.dst in (destination, *halves)]
        found = [route for route in found if route.table in tables] or found
        over = [route for route in found if route.dev in stacked]
        if found:
            return _told(over[0]) if over else ""
    return ""


def unknown_default(routes: Iterable[Route]) -> str:
    """A default route whose interface is not known, so that no NIC can be told free of it; empty when there is none."""
    for route in routes:
        if not route.dev and any(route.dst in (whole, *halves) for whole, halves in _HALVES.items()):
            return _told(route)
    return ""


def _told(route: Route) -> str:
    dev = " dev " + route.dev if route.dev else ""
    return route.dst + dev + ("" if route.table == _MAIN_TABLE else " table %d" % route.table)


def becomes(kind: str, mtu: int, parent: int) -> int:
    """The MTU of a child after its parent's was set: ipvlan follows, the others are only lowered with it."""
    return parent if kind in ("ipvlan", "ipvtap") else min(mtu, parent)


# Who owns a NIC?


@dataclass(frozen=True)
class Evidence:
    """What files tell about one NIC.

    :param networkd: text of ``/run/systemd/netif/links/INDEX``.
    :param manager: text of ``/run/NetworkManager/devices/INDEX``.
    :param profiles: the connection files of NetworkManager.
    :param ifcfg: files ``ifcfg-*``; ``interfaces``: files of ifupdown.
    """

    networkd: str = ""
    manager: str = ""
    profiles: tuple[File, ...] = ()
    ifcfg: tuple[File, ...] = ()
    interfaces: tuple[File, ...] = ()


def owner_of(name: str, found: Evidence) -> Owner:
    """Who configures a NIC: what runs has the first word, files of what does not run have the last.

    :raises RdmaError: ``nic_has_two_owners``
    """
    link = _pairs(found.networkd)
    network_file = link.get("NETWORK_FILE", "")
    by_networkd = link.get("ADMIN_STATE", "") not in _UNMANAGED and bool(network_file)
    device = _pairs(found.manager)
    by_manager = device.get("managed", "") in ("1", "true", "yes", "full") and bool(
        device.get("connection-uuid")
    )
    if by_networkd and by_manager:
        raise RdmaError(
            "nic_has_two_owners",
            "systemd-networkd (%s) and NetworkManager both manage %s." % (network_file, name),
            hint="Make one of them leave it alone; they would undo each other's settings.",
            nic=name,
        )
    if by_networkd:
        planned = _NETPLAN_FILE.fullmatch(network_file)
        return Owner(NETPLAN if planned else NETWORKD, network_file, planned[1] if planned else "")
    if by_manager:
        source = _profile_of(device["connection-uuid"], found.profiles)
        planned = _NETPLAN_PROFILE.fullmatch(source)
        return Owner(NETPLAN if planned else MANAGER, source, planned[1] if planned else "")
    for file in found.ifcfg:
        values = _pairs(file.text)
        if values.get("DEVICE", "").strip("\"'") == name or file.path.endswith("/ifcfg-" + name):
            return Owner(IFCFG, file.path)
    for file in found.interfaces:
        if re.search(r"^\s*iface\s+%s\s" % re.escape(name), file.text, re.MULTILINE):
            return Owner(IFUPDOWN, file.path)
    return Owner(NOBODY)


def _pairs(text: str) -> dict[str, str]:
    pairs = [line.partition("=") for line in text.splitlines()]
    return {key.strip(): value.strip() for key, equals, value in pairs if equals}


def _profile_of(uuid: str, profiles: Iterable[File]) -> str:
    for file in profiles:
        values = _pairs(file.text)
        if uuid in (values.get("uuid"), values.get("UUID", "").strip("\"'")):
            return file.path
    return ""


# Which file keeps it?


def file_of(owner: Owner, name: str, mtu: int, current: str = "") -> tuple[File, int]:
    """Our file for a NIC of this owner, and its mode.

    :param current: the text of the owner's file, where a block of ours goes into it.
    :raises RdmaError: ``mtu_owner_unsupported``
    """
    if owner.kind == NETPLAN and _NETPLAN_ID.fullmatch(owner.key):
        text = "network:\n  version: 2\n  ethernets:\n    %s:\n      mtu: %d\n" % (owner.key, mtu)
        return File("/etc/netplan/99-rdma-k8s-%s.yaml" % owner.key, _HEADER + text), 0o600
    if owner.kind == NETWORKD:
        base = owner.source.rpartition("/")[2]
        path = "/etc/systemd/network/%s.d/%s" % (base, DROP_IN)
        return File(path, _HEADER + "[Link]\nMTUBytes=%d\n" % mtu), 0o644
    if owner.kind == MANAGER:
        section = "[connection-rdma-k8s-%s]\nmatch-device=interface-name:%s\nethernet.mtu=%d\n" % (
            name,
            name,
            mtu,
        )
        return File("/etc/NetworkManager/conf.d/%s-%s.conf" % (_OWN, name), _HEADER + section), 0o644
    if owner.kind == IFCFG:
        rest = without_block(current)
        rest += "" if rest.endswith("\n") or not rest else "\n"
        return File(owner.source, "%s%s\nMTU=%d\n%s\n" % (rest, _MARK, mtu, _END)), 0o644
    if owner.kind == NOBODY:
        match = 'ACTION=="add", SUBSYSTEM=="net", %s, ATTR{mtu}="%d"\n'
        rules = match % ('NAME=="%s"' % name, mtu) + match % ('NAME=="", KERNEL=="%s"' % name, mtu)
        return File("/etc/udev/rules.d/%s-%s.rules" % (_OWN, name), _HEADER + rules), 0o644
    raise RdmaError(
        "mtu_owner_unsupported",
        "%s is configured by %s, whose files cannot be added to." % (name, owner),
        hint="Write the MTU there yourself, and use this module with persist false.",
        nic=name,
        owner=owner.kind,
        source=owner.source,
    )


def without_block(text: str) -> str:
    """The text of a file without our block."""
    lines = text.splitlines(keepends=True)
    ours = _block(lines)
    return "".join([line for number, line in enumerate(lines) if number not in ours])


def _block(lines: list[str]) -> set[int]:
    """The numbers of our lines: the marks, and MTU lines between them; without an end, only one right behind the mark.

    Somebody may have written between them, or have removed one.
    """
    words = [line.rstrip() for line in lines]
    ours = {number for number, word in enumerate(words) if word in (_MARK, _END)}
    for begin in [number for number in ours if words[number] == _MARK]:
        end = min([number for number in ours if number > begin], default=begin)
        last = end if words[end] == _END else begin + 2
        inside = range(begin + 1, min(last, len(words)))
        ours.update([number for number in inside if _ASSIGNMENTS[IFCFG].match(words[number])])
    return ours


_BACKUPS = ("~", ".bak", ".orig", ".rpmnew", ".rpmorig", ".rpmsave", ".augnew", ".augtmp")


def is_backup(path: str) -> bool:
    """Whether the name of a file says that it is a copy, which neither network scripts nor NetworkManager read."""
    return path.endswith(_BACKUPS)


# Who else sets it?


_ASSIGNMENTS = {
    NETWORKD: re.compile(r"\s*MTUBytes\s*=\s*(\S+)"),
    MANAGER: re.compile(r"\s*mtu\s*=\s*(\S+)"),
    IFCFG: re.compile(r"\s*MTU\s*=\s*[\"']?([0-9]+)"),
    NETPLAN: re.compile(r"[^#]*\bmtu\s*:\s*[\"']?([0-9]+)"),
    NOBODY: re.compile(r'[^#]*ATTR\{mtu\}\s*=\s*"([^"=]+)"'),
}
_DEFAULT = re.compile(r"\s*(?:802-3-)?ethernet\.mtu\s*=\s*(\S+)")
_HEADING = re.compile(r"\s*\[([^\]]*)\]\s*")
_SUFFIX = {"K": 1024, "M": 1024**2}


def lines_of(kind: str, files: Iterable[File], name: str) -> list[Line]:
    """The lines of files of this owner that set the MTU of a NIC.

    What is ours, comments, and lines that are for other NICs do not count; a match that cannot be judged counts.
    """
    return [
        line for file in files if not base(file.path).startswith(_OWN) for line in _lines(kind, file, name)
    ]


def _lines(kind: str, file: File, name: str) -> Iterator[Line]:
    lines = (file.text if kind != IFCFG else _blanked(file.text)).splitlines()
    foreign, section = False, ""
    for number, line in enumerate(lines, 1):
        if line.lstrip().startswith(("#", ";")):
            continue
        heading = _HEADING.fullmatch(line)
        if heading is not None:
            section = heading[1]
            foreign = kind == MANAGER and _is_for_others(lines[number:], name)
        pattern = _assignment(kind, section)
        match = None if pattern is None else pattern.match(line)
        if match is not None and not foreign and not (kind == NOBODY and _rule_is_for_others(line, name)):
            yield Line(file.path, number, match[1])


def _assignment(kind: str, section: str) -> Optional[re.Pattern[str]]:
    """What a line that sets the MTU of an interface looks like there: that of a route, or of IPv6, is another one."""
    if kind == MANAGER and section.startswith("connection"):
        return _DEFAULT
    sections = {NETWORKD: ("Link",), MANAGER: ("ethernet", "802-3-ethernet")}.get(kind)
    return _ASSIGNMENTS[kind] if sections is None or section in sections else None


def base(path: str) -> str:
    """The name of a file without its directory."""
    return path.rpartition("/")[2]


def _is_for_others(section: Iterable[str], name: str) -> bool:
    """Whether a section of NetworkManager's configuration names devices, and this one is not among them."""
    for line in section:
        key, equals, value = line.partition("=")
        if line.lstrip().startswith("["):
            return False
        if equals and key.strip() == "match-device":
            words = re.split(r"[,;\s]+", value.strip())
            names = [
                word.partition(":")[2].lstrip("=") for word in words if word.startswith("interface-name:")
            ]
            return len(names) == len(words) and not any(fnmatchcase(name, each) for each in names)
    return False


def _rule_is_for_others(line: str, name: str) -> bool:
    patterns = re.findall(r'\b(?:KERNEL|NAME|INTERFACE)=="([^"]*)"', line)
    names = [part for pattern in patterns for part in pattern.split("|")]
    return bool(names) and not any(fnmatchcase(name, each) for each in names)


def _blanked(text: str) -> str:
    """Our block as empty lines, so that the numbers of the others stay."""
    lines = text.splitlines()
    ours = _block(lines)
    return "\n".join(["" if number in ours else line for number, line in enumerate(lines)])


def says(line: Line, mtu: int) -> bool:
    """Whether a line sets this MTU; networkd knows suffixes."""
    value = line.value
    factor = _SUFFIX.get(value[-1:].upper(), 1)
    digits = value[:-1] if factor > 1 else value
    return digits.isdigit() and int(digits) * factor == mtu


def require_last_word(owner: Owner, name: str, mtu: int, later: Iterable[Line]) -> None:
    """Refuse where a line that counts more than our file sets another MTU.

    :raises RdmaError: ``mtu_overwritten``
    """
    others = [line for line in later if not says(line, mtu)]
    if others:
        raise RdmaError(
            "mtu_overwritten",
            "%s of %s sets the MTU of %s to %s and would overwrite %d."
            % (", ".join([str(line) for line in others]), owner.kind, name, others[-1].value, mtu),
            hint="Change that line, or remove it; lines of others are never changed here.",
            nic=name,
            owner=owner.kind,
            places=[str(line) for line in others],
        )


def netplan_overwrites(key: str, ours: str, places: Iterable[Line]) -> RdmaError:
    """The error for a definition of netplan whose MTU comes from a file behind ours."""
    lines = [str(line) for line in places]
    return RdmaError(
        "mtu_overwritten",
        "netplan takes the MTU of %s from %s, not from %s." % (key, ", ".join(lines) or "another file", ours),
        hint="Change it there; lines of others are never changed here.",
        definition=key,
        places=lines,
    )


def require_own_file(owner: Owner, name: str, sharing: Iterable[str], wanted: Iterable[str]) -> None:
    """Refuse a drop-in that would set the MTU of NICs that were not named, too.

    :param sharing: all NICs to which the owner's file applies.
    :raises RdmaError: ``mtu_file_shared``
    """
    others = sorted(set(sharing).difference(wanted))
    if others and owner.kind in (NETWORKD, NETPLAN):
        raise RdmaError(
            "mtu_file_shared",
            "%s configures %s too, not only %s: a drop-in is for all of them."
            % (owner.source, ", ".join(others), name),
            hint="Name all of them in nics, or give %s a file of its own." % name,
            nic=name,
            source=owner.source,
            others=others,
        )
