# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a running pod told of itself, as the judgements of its network and of its devices take it. Private to rdma.k8s.

It may change with any release. The line comes from :data:`.pod_script.LOOK`. What the pod could not tell has a reason,
by part, and is empty elsewhere: nobody may take it for good.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Optional

from ..kube.objects import mapping, text
from ..net import Address, Prefix, find_address, find_prefix
from ..rdma_text import ACTIVE, LINK_UP
from . import pod_network, pod_rdma
from .names import EXCLUSIVE, SHARED
from .pod_network import DEFAULT_INTERFACE
from .pod_script import SCHEMA

_ARPHRD_LOOPBACK = 772
_TUNNELS = frozenset((768, 769, 776, 778, 823))
"""Types of interfaces that a kernel adds by itself to each namespace (S126)."""
_FALLBACK = ("gretap0", "erspan0", "ip6gre0", "ifb0", "ifb1", "dummy0", "bond0", "teql0")
"""Names of those that look like Ethernet; they are down."""
_NO_RAIL = (DEFAULT_INTERFACE, "veth0")
"""The interface of the cluster's network, and the one that Spiderpool adds in underlay mode."""
_IFF_UP = 1
_ADDRESS = re.compile(r"[0-9]+: (\S+) (inet6?) (\S+)(?: brd (\S+))?.*? scope (\S+).*")
_RULE = re.compile(r"([0-9]+): from (\S+) (?:.* )?lookup (\S+).*")
_ROUTE = re.compile(r"default (?:via (\S+) )?(?:.* )?dev (\S+)(?: .*)?")
_TABLE = re.compile(r".* table (\S+)(?: .*)?")
_STATES = {"1": "DOWN", "2": "INIT", "3": "ARMED", "4": ACTIVE, "5": "ACTIVE_DEFER"}
_PHYSICAL = {"2": "POLLING", "3": "DISABLED", "5": LINK_UP}
_NO_IP = "The image has no program ip, and nothing else shows rules and tables"


@dataclass(frozen=True)
class Interface:
    """A further interface of the pod: its addresses that are not link-local, with their broadcast addresses.

    ``pci`` is the PCI address of its function, ``pf`` of the physical function below.
    """

    name: str
    up: bool
    mtu: Optional[int] = None
    pci: str = ""
    pf: str = ""
    addresses: tuple[tuple[Prefix, str], ...] = ()

    @property
    def address(self) -> Optional[Prefix]:
        """The first one, IPv4 before IPv6."""
        found = sorted([address for address, _broadcast in self.addresses], key=_by_version)
        return found[0] if found else None


def _by_version(prefix: Prefix) -> int:
    return prefix.version


@dataclass(frozen=True)
class Evidence:
    """What a pod told.

    ``unread`` has a reason for each part that was not told: ``interfaces``, ``addresses``, ``rules``, ``routes``,
    ``main``, ``devices``, ``files``, ``library``, ``active_mtu``, ``rights``. ``mode`` is the RDMA namespace mode,
    empty when it is not told. ``tools`` are the programs for tests that the image has.
    """

    interfaces: tuple[Interface, ...] = ()
    counted: int = 0
    rules: tuple[dict[str, Any], ...] = ()
    defaults: Mapping[str, Any] = field(default_factory=dict)
    main_device: str = ""
    devices: tuple[dict[str, Any], ...] = ()
    links: tuple[dict[str, Any], ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    capabilities: Optional[int] = None
    memlock: str = ""
    library: Optional[tuple[str, ...]] = None
    mode: str = ""
    tools: tuple[str, ...] = ()
    unread: Mapping[str, str] = field(default_factory=dict)

    def network(self, pools: Mapping[str, tuple[Prefix, Optional[Address]]]) -> pod_network.PodNetwork:
        """For :func:`.pod_network.judge`.

        :param pools: subnet and gateway by interface, where they are known.
        """
        nics = []
        for entry in self.interfaces:
            subnet, gateway = pools.get(entry.name, (None, None))
            broadcasts = [told for prefix, told in entry.addresses if prefix == entry.address]
            nics.append(
                {
                    "name": entry.name,
                    "address": _said(entry.address),
                    "broadcast": broadcasts[0] if broadcasts else "",
                    "subnet": _said(subnet),
                    "gateway": _said(gateway),
                }
            )
        return pod_network.of_plain(
            {
                "nics": nics,
                "rules": list(self.rules),
                "table_defaults": dict(self.defaults),
                "main_default_dev": self.main_device,
                "rdma_links": list(self.links),
            }
        )

    def rdma(self, pf_mtu: Optional[Mapping[str, int]] = None) -> pod_rdma.PodRdma:
        """For :func:`.pod_rdma.judge`.

        :param pf_mtu: MTU of physical functions by PCI address, where they are known.
        """
        return pod_rdma.of_plain(
            {
                "nics": [
                    {
                        "name": entry.name,
                        "address": _said(entry.address),
                        "mtu": entry.mtu,
                        "pf_mtu": (pf_mtu or {}).get(entry.pf),
                    }
                    for entry in self.interfaces
                ],
                "devices": list(self.devices),
                "files": dict(self.files),
                "capabilities": self.capabilities,
                "memlock": self.memlock,
                "verbs": None if self.library is None else list(self.library),
            }
        )

    def to_dict(self) -> dict[str, Any]:
        """As plain data, for the result of a module."""
        return {
            "interfaces": [
                {
                    "name": entry.name,
                    "up": entry.up,
                    "mtu": entry.mtu,
                    "pci": entry.pci,
                    "pf": entry.pf,
                    "addresses": [str(prefix) for prefix, _broadcast in entry.addresses],
                }
                for entry in self.interfaces
            ],
            "rules": list(self.rules),
            "table_defaults": dict(self.defaults),
            "main_default_dev": self.main_device,
            "devices": list(self.devices),
            "files": dict(self.files),
            "capabilities": self.capabilities,
            "memlock": self.memlock,
            "library": None if self.library is None else list(self.library),
            "netns_mode": self.mode,
            "tools": list(self.tools),
            "unread": dict(self.unread),
        }


def _said(value: Any) -> str:
    return "" if value is None else str(value)


def read(printed: str) -> Optional[dict[str, Any]]:
    """The document in what the program printed: its last line; ``None``: it is cut off, or of something else."""
    lines = printed.strip().splitlines()
    try:
        found = json.loads(lines[-1]) if lines else None
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) and found.get("schema") == SCHEMA else None


def evidence_of(told: Mapping[str, Any]) -> Evidence:
    """From the document of :func:`read`. Anything may be missing or odd in it: it comes from inside a container."""
    unread: dict[str, str] = {}
    named = [row for row in _rows(told, "links", 7) if _is_counted(row)]
    if not _rows(told, "links", 7):
        unread["interfaces"] = "The pod shows no interface below /sys/class/net"
    addresses = _addresses(told, unread)
    rules = _rules(told, unread)
    defaults, main = _routes(told, unread)
    devices = _devices(told, unread)
    library = _library(told, unread)
    _active_mtu(told, devices, unread)
    if not isinstance(told.get("files"), list):
        unread["files"] = "The image has no program ls, which tells the numbers of device files"
    capabilities, memlock = _rights(told)
    if capabilities is None and not memlock:
        unread["rights"] = "/proc/self/status and /proc/self/limits were not readable"
    return Evidence(
        interfaces=tuple(
            [
                Interface(
                    row[0],
                    bool(_hex(row[2]) & _IFF_UP) and row[4] != "down",
                    int(row[3]) if row[3].isdigit() else None,
                    row[5],
                    row[6],
                    tuple(addresses.get(row[0], ())),
                )
                for row in sorted(named, key=_natural)
                if row[0] not in _NO_RAIL
            ]
        ),
        counted=len(named),
        rules=tuple(rules),
        defaults=defaults,
        main_device=main,
        devices=tuple(devices),
        links=tuple(_links(told, devices)),
        files={row[0]: row[1] for row in _rows(told, "files", 2)},
        capabilities=capabilities,
        memlock=memlock,
        library=library,
        mode={"Y": SHARED, "N": EXCLUSIVE}.get(text(told.get("mode")), ""),
        tools=tuple(_texts(told, "tools")),
        unread=unread,
    )


# Parts of the document


def _rows(told: Mapping[str, Any], key: str, width: int) -> list[list[str]]:
    listed = told.get(key)
    return [
        row
        for row in (listed if isinstance(listed, list) else [])
        if isinstance(row, list) and len(row) == width and all(isinstance(entry, str) for entry in row)
    ]


def _texts(told: Mapping[str, Any], key: str) -> list[str]:
    listed = told.get(key)
    return [entry for entry in listed if isinstance(entry, str)] if isinstance(listed, list) else []


def _natural(row: Sequence[str]) -> tuple[Any, ...]:
    """net2 before net10."""
    return tuple([int(part) if part.isdigit() else part for part in re.split("([0-9]+)", row[0])])


def _hex(value: str) -> int:
    try:
        return int(value, 16)
    except ValueError:
        return 0


def _is_counted(row: Sequence[str]) -> bool:
    """Whether an interface is one of the pod's own: no loopback, no tunnel, none that the kernel adds (S126)."""
    kind = int(row[1]) if row[1].isdigit() else 0
    if kind == _ARPHRD_LOOPBACK or kind in _TUNNELS:
        return False
    return row[0] not in _FALLBACK or bool(_hex(row[2]) & _IFF_UP)


def _addresses(told: Mapping[str, Any], unread: dict[str, str]) -> dict[str, list[tuple[Prefix, str]]]:
    found: dict[str, list[tuple[Prefix, str]]] = {}
    if isinstance(told.get("addresses"), list):
        for entry in _texts(told, "addresses"):
            match = _ADDRESS.fullmatch(entry)
            prefix = find_prefix(match[3]) if match is not None else None
            if match is not None and prefix is not None and match[5] == "global":
                found.setdefault(match[1].partition("@")[0], []).append((prefix, match[4] or ""))
        return found
    if not _texts(told, "fib") or not _texts(told, "main"):
        unread["addresses"] = "The image has no program ip, and /proc/net was not readable"
        return found
    return _derived_addresses(_texts(told, "main"), _texts(told, "fib"))


def _derived_addresses(routes: Iterable[str], fib: Iterable[str]) -> dict[str, list[tuple[Prefix, str]]]:
    """The local IPv4 addresses of the fib, each on the interface whose on-link route in the main table has it.

    Such a route has the length of the prefix, so both together tell what an interface has.
    """
    local: set[int] = set()
    last: Optional[Address] = None
    for entry in fib:
        if entry.startswith("|--"):
            last = find_address(entry[4:])
        elif entry.startswith("/32 host LOCAL") and last is not None:
            local.add(last.value)
    found: dict[str, list[tuple[Prefix, str]]] = {}
    for entry in routes:
        words = entry.split()
        if len(words) < 8 or words[2] != "00000000" or words[1] == "00000000":
            continue
        network, length = _little(words[1]), bin(_little(words[7])).count("1")
        for value in sorted(local):
            if value >> (32 - length) << (32 - length) == network:
                found.setdefault(words[0], []).append((Prefix(4, value, length), ""))
    return found


def _little(value: str) -> int:
    """An address as /proc/net/route has it: the bytes in the order of the machine, which is little-endian."""
    try:
        return int.from_bytes(bytes.fromhex(value), "little")
    except ValueError:
        return 0


def _rules(told: Mapping[str, Any], unread: dict[str, str]) -> list[dict[str, Any]]:
    if not isinstance(told.get("rules"), list):
        unread["rules"] = _NO_IP
        return []
    matches = [_RULE.fullmatch(entry) for entry in _texts(told, "rules")]
    return [
        {"priority": int(match[1]), "from": match[2], "table": match[3]}
        for match in matches
        if match is not None and match[2] != "all"
    ]


def _routes(told: Mapping[str, Any], unread: dict[str, str]) -> tuple[dict[str, Any], str]:
    """The IPv4 default routes of tables, and the interface of that of the main table."""
    defaults: dict[str, Any] = {}
    main = ""
    if isinstance(told.get("routes"), list):
        for entry in _texts(told, "routes"):
            match = _ROUTE.fullmatch(entry)
            if match is None:
                continue
            table = _TABLE.fullmatch(entry)
            if table is None:
                main = main or match[2]
            elif match[1] is not None:
                defaults.setdefault(table[1], {"via": match[1], "dev": match[2]})
        return defaults, main
    unread["routes"] = _NO_IP
    if not isinstance(told.get("main"), list):
        unread["main"] = "/proc/net/route was not readable"
    for entry in _texts(told, "main"):
        words = entry.split()
        if len(words) > 7 and words[1] == "00000000" and words[7] == "00000000":
            main = main or words[0]
    return defaults, main


def _devices(told: Mapping[str, Any], unread: dict[str, str]) -> list[dict[str, Any]]:
    if told.get("class") != 1:
        unread["devices"] = "The kernel shows no class of RDMA devices; ib_core may not be loaded"
    ports: dict[str, list[str]] = {}
    for row in sorted(_rows(told, "ports", 7), key=lambda row: (row[0], row[1])):
        ports.setdefault(row[0], row)
    numbers = {row[1]: row[2] for row in _rows(told, "verbs", 4)}
    found = []
    for name, guid, pci in _rows(told, "devices", 3):
        port = ports.get(name, [name, "", "", "", "", "", ""])
        found.append(
            {
                "name": name,
                "pci": pci,
                "node_guid": guid,
                "link_layer": port[4],
                "state": _state(port[2], _STATES),
                "physical": _state(port[3], _PHYSICAL),
                "lid": _hex(port[5]) if port[5] else None,
                "sm_lid": _hex(port[6]) if port[6] else None,
                "active_mtu": None,
                "uverbs": numbers.get(name, ""),
                "gids": [
                    {"index": int(row[2]), "type": row[3], "netdev": row[4], "gid": row[5]}
                    for row in sorted(_rows(told, "gids", 6), key=_natural_index)
                    if row[0] == name and row[1] == port[1] and row[2].isdigit()
                ],
            }
        )
    return found


def _natural_index(row: Sequence[str]) -> int:
    return int(row[2]) if row[2].isdigit() else -1


def _state(value: str, names: Mapping[str, str]) -> str:
    """``ACTIVE`` of ``4: ACTIVE``."""
    number, _colon, called = value.partition(":")
    return names.get(number, called.strip().upper())


def _links(told: Mapping[str, Any], devices: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Each device with its interface: that of its GIDs, else the one of the same PCI function."""
    by_pci = {row[5]: row[0] for row in _rows(told, "links", 7) if row[5]}
    found = []
    for device in devices:
        named = [gid["netdev"] for gid in device["gids"] if gid["netdev"]]
        ethernet = device["link_layer"] != "InfiniBand"
        netdev = named[0] if named else by_pci.get(device["pci"], "") if ethernet and device["pci"] else ""
        found.append(
            {
                "dev": device["name"],
                "netdev": netdev,
                "state": device["state"],
                "physical": device["physical"],
            }
        )
    return found


def _library(told: Mapping[str, Any], unread: dict[str, str]) -> Optional[tuple[str, ...]]:
    """The devices that ``ibv_devices`` lists: names, each with a GUID of 16 digits."""
    if not isinstance(told.get("library"), list):
        unread["library"] = (
            "The image has no program ibv_devices (ibverbs-utils), so its library was not asked"
        )
        return None
    words = [entry.split() for entry in _texts(told, "library")]
    return tuple([entry[0] for entry in words if len(entry) == 2 and re.fullmatch("[0-9a-f]{16}", entry[1])])


def _active_mtu(told: Mapping[str, Any], devices: Iterable[dict[str, Any]], unread: dict[str, str]) -> None:
    """The MTU in use is told by ``ibv_devinfo`` alone; that of the first port of each device counts."""
    found: dict[str, int] = {}
    device = ""
    for entry in _texts(told, "info"):
        key, _colon, value = entry.partition(":")
        if key == "hca_id":
            device = value.strip()
        elif key == "active_mtu" and device:
            number = value.split()[0] if value.split() else ""
            if number.isdigit():
                found.setdefault(device, int(number))
    for held in devices:
        held["active_mtu"] = found.get(held["name"])
    if not isinstance(told.get("info"), list):
        unread["active_mtu"] = (
            "the image has no program ibv_devinfo (ibverbs-utils), which tells the MTU in use"
        )


def _rights(told: Mapping[str, Any]) -> tuple[Optional[int], str]:
    limits = told.get("memlock")
    soft = limits[0] if isinstance(limits, list) and limits and isinstance(limits[0], str) else ""
    try:
        return int(text(told.get("caps")), 16), soft
    except ValueError:
        return None, soft


def expected_nics(annotations: Mapping[str, Any]) -> Optional[int]:
    """How many further interfaces a pod was given: entries of the status that Multus writes, without the default one.

    ``None``: nothing tells (S126).
    """
    status = mapping(annotations).get("k8s.v1.cni.cncf.io/network-status")
    if not isinstance(status, str):
        return None
    try:
        found = json.loads(status)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, list):
        return None
    return len([entry for entry in found if isinstance(entry, dict) and entry.get("default") is not True])
