# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The NodeSnapshot: all that one node told about its RDMA side. Private to rdma.k8s: it may change with any release.

The JSON form is public (``docs/reference/snapshot.md``) and versioned by ``schema_version``. ``None`` always means "not
known": the value was not gathered or could not be read, and the reason stands in ``errors``. An empty list means "none
there". Values from files are kept as text, so that a wrong value can be shown as it was found.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Optional

from . import codec
from .errors import RdmaError
from .fabric import Fabric
from .roce_qos import PortQos

SCHEMA_VERSION = 1
DEFAULT_SUBSETS = ("kernel", "rdma", "links", "routes", "pci", "oca", "imds", "firewall")
"""What is read when nothing is asked for."""
SUBSETS = (*DEFAULT_SUBSETS, "slow")
"""All that can be asked for; ``slow`` is what costs seconds or needs a tool of the node."""


@dataclass(frozen=True)
class Collector:
    """Who made the snapshot: version of the collection, versions of Python and pyroute2, milliseconds it took."""

    version: str = codec.text("")
    python: str = codec.text("")
    pyroute2: str = codec.text("")
    duration_ms: Optional[int] = codec.integer(None)


@dataclass(frozen=True)
class HostInfo:
    """The machine: ``boot_time`` in seconds since the epoch, ``cgroup`` is ``v1``, ``v2``, or empty: not known; ``nri``
    says whether a container runtime listens for NRI plugins (F113, F116)."""

    hostname: str = codec.text("")
    kernel: str = codec.text("")
    architecture: str = codec.text("")
    os: str = codec.text("")
    os_version: str = codec.text("")
    boot_id: str = codec.text("")
    boot_time: Optional[int] = codec.integer(None)
    cgroup: str = codec.text("")
    nri: Optional[bool] = codec.boolean(None)


@dataclass(frozen=True)
class ReadError:
    """A read that failed: ``source`` is a path, ``rtnetlink``, ``rdma-netlink``, ``nftables`` or ``imds:/vnics/``."""

    source: str = codec.text()
    reason: str = codec.text("")


@dataclass(frozen=True)
class RdmaSystem:
    """RDMA subsystem: mode as RDMA netlink tells it (S10-S12), and the text of the ib_core parameter file (F83)."""

    netns_mode: Optional[str] = codec.text(None)
    netns_parameter: Optional[str] = codec.text(None)
    copy_on_fork: Optional[bool] = codec.boolean(None)


@dataclass(frozen=True)
class ModuleOption:
    """One setting of an ``ib_core`` option: a modprobe file (with line, mtime in s) or the kernel command line."""

    source: str = codec.text()
    option: str = codec.text()
    value: str = codec.text("")
    line: Optional[int] = codec.integer(None)
    modified: Optional[int] = codec.integer(None)


@dataclass(frozen=True)
class PciFunction:
    """A PCI function of class 02 (network): ``pci_class`` such as ``0200`` (Ethernet) or ``0207`` (InfiniBand).

    JSON form: ``0000:0c:00.0 15b3:1021 0200 mlx5_core 0``: address, vendor:device, class, driver and NUMA node, with
    ``-`` where no driver is bound or the node is not known. Then ``vf-of ADDRESS`` for a virtual function,
    ``vfs N/TOTAL`` for a physical one that has some (S43: TOTAL is ``sriov_totalvfs``).
    """

    address: str
    id: str = ""
    pci_class: str = ""
    driver: str = ""
    numa: Optional[int] = None
    vf_of: str = ""
    vfs: int = 0
    total_vfs: int = 0

    @classmethod
    def parse(cls, value: str, where: str = "pci") -> PciFunction:
        words = value.split(" ")
        kind = words[5:6]
        numa = codec.natural(words[4]) if len(words) in (5, 7) else None
        vfs = words[6].split("/") if len(words) == 7 and kind == ["vfs"] else ["0", "0"]
        counts = [number for number in map(codec.natural, vfs) if number is not None]
        known = len(words) in (5, 7) and (numa is not None or words[4] == "-")
        if not known or kind not in ([], ["vf-of"], ["vfs"]) or len(vfs) != 2 or len(counts) != 2:
            expected = "'ADDRESS VENDOR:DEVICE CLASS DRIVER NUMA [vf-of ADDRESS | vfs N/TOTAL]'"
            raise codec.malformed(where, expected, value)
        vf_of = words[6] if words[5:6] == ["vf-of"] else ""
        driver = "" if words[3] == "-" else words[3]
        return cls(words[0], words[1], words[2], driver, numa, vf_of, counts[0], counts[1])

    def __str__(self) -> str:
        numa = "-" if self.numa is None else str(self.numa)
        words = [self.address, self.id, self.pci_class, self.driver or "-", numa]
        if self.vf_of:
            words += ["vf-of", self.vf_of]
        elif self.vfs:
            words += ["vfs", "%d/%d" % (self.vfs, self.total_vfs)]
        return " ".join(words)


@dataclass(frozen=True)
class Arp:
    """ARP settings of one interface as text of the sysctl files; the JSON form is ``ignore announce filter rp_filter``
    with ``-`` for a file that is not there or not readable (F78-F80)."""

    ignore: Optional[str] = None
    announce: Optional[str] = None
    filter: Optional[str] = None
    rp_filter: Optional[str] = None

    @classmethod
    def parse(cls, value: str, where: str = "arp") -> Arp:
        parts = value.split(" ")
        if len(parts) != 4 or parts != value.split():  # an empty value, or other white space in one
            raise codec.malformed(where, "four values 'ignore announce filter rp_filter'", value)
        return cls(*[None if part == "-" else part for part in parts])

    def __str__(self) -> str:
        values = (self.ignore, self.announce, self.filter, self.rp_filter)
        return " ".join(["-" if value is None else "_".join(value.split()) or "_" for value in values])


@dataclass(frozen=True)
class Link:
    """A network interface of the host namespace.

    ``kind`` is the link kind of rtnetlink (empty for a physical NIC, ``ipvlan``, ``bond``, ...), ``parent`` the name of
    the lower device, ``arphrd`` the hardware type (1 Ethernet, 32 InfiniBand), ``state`` is ``up`` or ``down`` as set
    by the administrator, ``operstate`` that of the kernel (empty: the same). Addresses carry their length;
    ``unusable`` are those whose uniqueness is not yet, or not, given (tentative, dadfailed).
    """

    name: str = codec.text()
    kind: str = codec.text("")
    arphrd: Optional[int] = codec.integer(1)
    mac: str = codec.text("")
    mtu: Optional[int] = codec.integer(None)
    state: str = codec.text("")
    operstate: str = codec.text("")
    master: str = codec.text("")
    parent: str = codec.text("")
    pci: str = codec.text("")
    addresses: tuple[str, ...] = codec.texts()
    unusable: tuple[str, ...] = codec.texts()
    arp: Optional[Arp] = codec.row(Arp)


@dataclass(frozen=True)
class GidGroup:
    """All GID entries of one address: pairs of index and type (``v1`` IB/RoCE v1, ``v2`` RoCE v2, ``ib``).

    JSON form: ``2v1,3v2 10.224.13.19``, then ``@NAME`` when the entry belongs to another interface than the port's.
    An IPv4-mapped GID is written as the IPv4 address. Match GIDs by address and type, never by index (F134).
    """

    address: str
    entries: tuple[tuple[int, str], ...]
    netdev: str = ""

    @classmethod
    def parse(cls, value: str, where: str = "gid") -> GidGroup:
        head, _unused, rest = value.partition(" ")
        address, _unused, netdev = rest.partition(" @")
        entries = [_gid_entry(part) for part in head.split(",")]
        if None in entries or not address:
            raise codec.malformed(where, "'INDEXvN[,INDEXvN] ADDRESS [@NAME]'", value)
        return cls(address, tuple([entry for entry in entries if entry is not None]), netdev)

    def __str__(self) -> str:
        head = ",".join(["%d%s" % entry for entry in self.entries])
        return "%s %s%s" % (head, self.address, " @" + self.netdev if self.netdev else "")


@lru_cache(maxsize=2048)
def _gid_entry(text: str) -> Optional[tuple[int, str]]:
    """``3v2`` -> (3, "v2"): kept, since every port of a fleet has the same few."""
    index = codec.natural(text[:-2]) if text.endswith(("v1", "v2", "ib")) else None
    return None if index is None else (index, text[-2:])


@dataclass(frozen=True)
class RdmaPort:
    """One port: ``state`` and ``phys_state`` by name (``ACTIVE``, ``LinkUp``), ``rate`` as sysfs prints it, for example
    ``400 Gb/sec (4X NDR)``; ``netdev`` is the interface that RDMA netlink names for this port (NODE-013)."""

    port: int = codec.integer(1)
    state: Optional[str] = codec.text(None)
    phys_state: Optional[str] = codec.text(None)
    link_layer: Optional[str] = codec.text(None)
    rate: Optional[str] = codec.text(None)
    active_mtu: Optional[int] = codec.integer(None)
    netdev: str = codec.text("")
    sm_lid: Optional[int] = codec.integer(None)
    gids: Optional[tuple[GidGroup, ...]] = codec.rows(GidGroup, None)


@dataclass(frozen=True)
class RdmaDevice:
    """An RDMA device of ``/sys/class/infiniband``.

    ``guid`` is the node GUID as 16 hex digits, ``uverbs`` the name of its file in ``/dev/infiniband`` (empty: none).
    """

    name: str = codec.text()
    pci: str = codec.text("")
    guid: str = codec.text("")
    firmware: str = codec.text("")
    board: str = codec.text("")
    uverbs: str = codec.text("")
    ports: tuple[RdmaPort, ...] = codec.items(RdmaPort)


_ROUTE_WORDS = ("type", "dev", "table", "via", "src", "scope", "proto", "metric")


@dataclass(frozen=True)
class Route:
    """A route of any table. JSON form: words as iproute2 prints them, ``10.208.0.0/12 dev rdma15 table 115 src ADDR``.

    ``dst`` is ``default`` for IPv4 and ``::/0`` for IPv6; a host route has no length. Left out when they have their
    usual value: type ``unicast``, table 254 (main), scope (``link`` without a gateway, ``global`` with one and
    for IPv6), ``proto`` (``kernel``, ``boot``, ``static``), ``metric`` 0. One row for each next hop.
    """

    dst: str
    dev: str = ""
    table: int = 254
    via: str = ""
    src: str = ""
    type: str = "unicast"
    scope: str = ""
    proto: str = ""
    metric: int = 0

    @property
    def effective_scope(self) -> str:
        return self.scope or ("global" if self.via else "link")

    @classmethod
    def parse(cls, value: str, where: str = "route") -> Route:
        words = value.split(" ")
        if not words[0] or len(words) % 2 == 0:
            raise codec.malformed(where, "'DESTINATION [dev NAME] [table N] [src ADDRESS] ...'", value)
        values: dict[str, Any] = {}
        for name, found in zip(words[1::2], words[2::2]):
            if name not in _ROUTE_WORDS:
                raise codec.malformed(where, "made of the words %s" % ", ".join(_ROUTE_WORDS), value)
            if name in ("table", "metric"):
                values[name] = codec.natural(found)
                if values[name] is None:
                    raise codec.malformed(where, "a number after '%s'" % name, value)
            else:
                values[name] = sys.intern(found)
        return cls(sys.intern(words[0]), **values)

    def __str__(self) -> str:
        words = [self.dst]
        for name in _ROUTE_WORDS:
            held = getattr(self, name)
            if held != _ROUTE_DEFAULTS[name]:
                words += [name, str(held)]
        return " ".join(words)


_ROUTE_DEFAULTS = {name: getattr(Route(""), name) for name in _ROUTE_WORDS}


@dataclass(frozen=True)
class Rule:
    """A policy rule. JSON form as in iproute2: ``32000: from 10.208.13.19 lookup 100``, other selectors behind."""

    priority: int
    src: str = "all"
    table: int = 254
    more: str = ""

    @classmethod
    def parse(cls, value: str, where: str = "rule") -> Rule:
        words = value.split(" ")
        priority, table = (
            (codec.natural(words[0][:-1]), codec.natural(words[4])) if len(words) >= 5 else (None, None)
        )
        if words[1:4:2] != ["from", "lookup"] or words[0][-1:] != ":" or priority is None or table is None:
            raise codec.malformed(where, "'PRIORITY: from SOURCE lookup TABLE ...'", value)
        return cls(priority, sys.intern(words[2]), table, " ".join(words[5:]))

    def __str__(self) -> str:
        text = "%d: from %s lookup %d" % (self.priority, self.src, self.table)
        return "%s %s" % (text, self.more) if self.more else text


@dataclass(frozen=True)
class Imds:
    """Documents of the metadata service, reduced to the fields that are used (F62); ``None``: no answer."""

    host: Any = codec.anything()
    instance: Any = codec.anything()
    vnics: Any = codec.anything()


@dataclass(frozen=True)
class Oca:
    """Files of the Oracle Cloud Agent as text; ``directory`` is ``present``, ``absent`` or ``unreadable`` (F51-F58).

    A file that does not exist is an empty text; ``None``: not gathered, or not readable.
    """

    directory: Optional[str] = codec.text(None)
    rdma_network: Optional[str] = codec.text(None)
    rdma_features_enable: Optional[str] = codec.text(None)
    configure_state: Optional[str] = codec.text(None)
    agent_version: Optional[str] = codec.text(None)
    plugins: Optional[dict[str, str]] = codec.anything()
    modified: Optional[int] = codec.integer(None)


@dataclass(frozen=True)
class FirewallRule:
    """A packet filter rule, or a chain's policy, that decides about UDP 4791 (RoCE v2)."""

    family: str = codec.text()
    table: str = codec.text()
    chain: str = codec.text()
    hook: str = codec.text("")
    verdict: str = codec.text("")
    text: str = codec.text("")


@dataclass(frozen=True)
class Initramfs:
    """An initramfs image: whether ``ib_core`` is inside, and its options there, as the files of the image say (S21).

    ``drivers`` are those drivers of the node's network functions that are inside; ``None``: not looked for.
    """

    image: str = codec.text()
    kernel: str = codec.text("")
    has_module: bool = codec.boolean(False)
    options: tuple[ModuleOption, ...] = codec.items(ModuleOption)
    drivers: Optional[tuple[str, ...]] = codec.texts(None)


@dataclass(frozen=True)
class RebootPlan:
    """Reboots that a plan asked for and that did not lead to it: ``boots`` are the boots in which it asked (DEV-01)."""

    plan: str = codec.text()
    reason: str = codec.text("")
    boots: tuple[str, ...] = codec.texts()


@dataclass(frozen=True)
class PortCounters:
    """What the counters of one RDMA port gained within ``seconds``; ``None``: the driver has no such counter.

    ``packets`` are those of RDMA in both directions, ``out_of_buffer`` those that found no receive buffer,
    ``out_of_sequence`` those behind a lost one, ``discarded`` those that the port did not send. The pause frames of PFC
    are written ``PRIORITY:COUNT``, those of 0 left out.
    """

    device: str = codec.text()
    port: int = codec.integer(1)
    netdev: str = codec.text("")
    seconds: Optional[float] = codec.number(None)
    packets: Optional[int] = codec.integer(None)
    out_of_buffer: Optional[int] = codec.integer(None)
    out_of_sequence: Optional[int] = codec.integer(None)
    discarded: Optional[int] = codec.integer(None)
    pause_sent: Optional[str] = codec.text(None)
    pause_received: Optional[str] = codec.text(None)

    @property
    def name(self) -> str:
        """The interface, else device and port."""
        return self.netdev or "%s/%d" % (self.device, self.port)


@dataclass(frozen=True)
class LinkDowns:
    """How often the kernel log says that the link of an interface went down."""

    netdev: str = codec.text()
    count: int = codec.integer(0)


@dataclass(frozen=True)
class KernelLog:
    """Of the kernel log: how far it reaches back in seconds, at most a day, and the links of RDMA interfaces."""

    covered: int = codec.integer(0)
    links: tuple[LinkDowns, ...] = codec.items(LinkDowns)


@dataclass(frozen=True)
class PeerMemory:
    """How NICs reach GPU memory (S41, DEV-35).

    ``driver`` says whether a GPU driver is loaded, ``uses`` is the use count of ``nvidia_peermem`` (``None``: it is not
    loaded), ``users`` the modules that name it as their user, ``registered`` the names in
    ``/sys/kernel/mm/memory_peers``, ``open_driver`` whether the GPU driver is the open one (``None``: it does not say).
    """

    driver: bool = codec.boolean(False)
    uses: Optional[int] = codec.integer(None)
    users: tuple[str, ...] = codec.texts()
    registered: tuple[str, ...] = codec.texts()
    open_driver: Optional[bool] = codec.boolean(None)


@dataclass(frozen=True)
class NetworkBoot:
    """Whether the root file system is on the network: ``how`` is what says so, empty when nothing does (DEV-36).

    ``nic`` is the interface it is reached by, ``driver`` its driver, ``builtin`` whether that is part of the kernel.
    """

    how: str = codec.text("")
    nic: str = codec.text("")
    driver: str = codec.text("")
    builtin: bool = codec.boolean(False)


@dataclass(frozen=True)
class RuntimeLimit:
    """The limit of locked memory of a container runtime: ``configured`` for its next start, ``running`` that of its
    process (empty: it does not run); ``infinity`` or bytes."""

    unit: str = codec.text()
    configured: str = codec.text("")
    running: str = codec.text("")


@dataclass(frozen=True)
class Gpu:
    """A GPU, and the NICs beside it (S70).

    ``near`` are physical functions of class 02 below its nearest PCI bridge that has some; none, when only the
    processor joins them.

    JSON form: ``0000:0f:00.0 10de:2330 0``: address, vendor:device and NUMA node (``-``: not known), then ``near`` and
    the addresses of the NICs.
    """

    address: str
    id: str = ""
    numa: Optional[int] = None
    near: tuple[str, ...] = ()

    @classmethod
    def parse(cls, value: str, where: str = "gpus") -> Gpu:
        words = value.split(" ")
        numa = codec.natural(words[2]) if len(words) > 2 else None
        known = len(words) > 2 and (numa is not None or words[2] == "-")
        if not known or len(words) == 4 or (len(words) > 4 and words[3] != "near"):
            raise codec.malformed(where, "'ADDRESS VENDOR:DEVICE NUMA [near ADDRESS...]'", value)
        return cls(words[0], words[1], numa, tuple(words[4:]))

    def __str__(self) -> str:
        words = [self.address, self.id, "-" if self.numa is None else str(self.numa)]
        return " ".join([*words, "near", *self.near] if self.near else words)


@dataclass(frozen=True)
class Slow:
    """What the subset ``slow`` read, one field for each source; ``None``: it could not be read."""

    initramfs: Optional[tuple[Initramfs, ...]] = codec.items(Initramfs, None)
    reboots: Optional[tuple[RebootPlan, ...]] = codec.items(RebootPlan, None)
    qos: Optional[tuple[PortQos, ...]] = codec.items(PortQos, None)
    counters: Optional[tuple[PortCounters, ...]] = codec.items(PortCounters, None)
    kernel_log: Optional[KernelLog] = codec.item(KernelLog, None)
    peer_memory: Optional[PeerMemory] = codec.item(PeerMemory, None)
    network_boot: Optional[NetworkBoot] = codec.item(NetworkBoot, None)
    memlock: Optional[tuple[RuntimeLimit, ...]] = codec.items(RuntimeLimit, None)
    gpus: Optional[tuple[Gpu, ...]] = codec.rows(Gpu, None)


@dataclass(frozen=True)
class NodeSnapshot:
    """All that was read from one node. See the module's docstring for the meaning of ``None`` and of empty lists."""

    name: str = codec.text()
    schema_version: int = codec.integer(SCHEMA_VERSION)
    collected_at: str = codec.text("")
    subsets: tuple[str, ...] = codec.texts()
    collector: Collector = codec.item(Collector, Collector())
    host: HostInfo = codec.item(HostInfo, HostInfo())
    errors: tuple[ReadError, ...] = codec.items(ReadError)
    rdma: RdmaSystem = codec.item(RdmaSystem, RdmaSystem())
    module_options: Optional[tuple[ModuleOption, ...]] = codec.items(ModuleOption, None)
    modules: dict[str, str] = (
        codec.text_map()
    )  # name to live, loading, unloading or builtin; only those of interest
    char_devices: Optional[tuple[str, ...]] = codec.texts(
        None
    )  # /dev/infiniband, files that belong to no device
    pci: Optional[tuple[PciFunction, ...]] = codec.rows(PciFunction, None)
    links: Optional[tuple[Link, ...]] = codec.items(Link, None)
    arp_all: Optional[Arp] = codec.row(Arp)
    devices: Optional[tuple[RdmaDevice, ...]] = codec.items(RdmaDevice, None)
    routes: Optional[tuple[Route, ...]] = codec.rows(Route, None)
    rules: Optional[tuple[Rule, ...]] = codec.rows(Rule, None)
    namespaces: Optional[tuple[str, ...]] = codec.texts(None)
    imds: Optional[Imds] = codec.item(Imds, None)
    oca: Optional[Oca] = codec.item(Oca, None)
    firewall: Optional[tuple[FirewallRule, ...]] = codec.items(FirewallRule, None)
    slow: Optional[Slow] = codec.item(Slow, None)
    fabric: Optional[Fabric] = codec.item(Fabric, None)

    @classmethod
    def from_dict(cls, document: Any) -> NodeSnapshot:
        """Read the JSON form.

        :raises RdmaError: ``snapshot_newer_schema`` or ``document_malformed``.
        """
        version = document.get("schema_version") if isinstance(document, dict) else None
        if isinstance(version, int) and version > SCHEMA_VERSION:
            raise RdmaError(
                "snapshot_newer_schema",
                "The snapshot of %s has schema version %d; this release reads up to version %d."
                % (document.get("name", "a node"), version, SCHEMA_VERSION),
                hint="Update the collection on the machine that judges, or record the snapshot with this release.",
                schema_version=version,
                supported=SCHEMA_VERSION,
            )
        return codec.decode(cls, document, "snapshot")

    def to_dict(self, compact: bool = False) -> dict[str, Any]:
        """The JSON form: plain data, fields with their default value left out.

        :param compact: the layout for the wire, where lists of objects are tables; ``from_dict`` reads both.
        """
        document: dict[str, Any] = {"schema_version": self.schema_version}
        document.update(codec.encode(self, compact))
        return document

    def error_of(self, *sources: str) -> str:
        """Why a read of one of these sources (or of something below it) failed; empty when it did not."""
        for error in self.errors:
            if error.source.startswith(sources):
                return "%s: %s" % (error.source, error.reason) if error.reason else error.source
        return ""
