# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Area NODE: kernel, RDMA devices, NICs. Private to rdma.k8s: it may change with any release."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import Optional

from .. import netns
from ..finding import CRITICAL, ERROR, WARNING
from ..nics import ETHERNET, INFINIBAND, Nic
from ..oke import nics as oke_nics
from ..oke.constants import MAX_NICS, TABLE_BASE
from ..snapshot import Link, ModuleOption, RdmaPort
from .context import Fleet, Node, most_common
from .registry import (
    NOT_ON_LINGJUN,
    Outcome,
    bad,
    compared,
    failed,
    fleet_check,
    listed,
    node_check,
    ok,
    passed,
    rolled_up,
    skipped,
    unclear,
    unknown,
    warned,
)

MODE_FILE = "/sys/module/ib_core/parameters/netns_mode"
COMMAND_LINE = "/proc/cmdline"
MODPROBE = "/etc/modprobe.d"
INFINIBAND_CLASS = "/sys/class/infiniband"
NET_CLASS = "/sys/class/net"
NO_NIC = "No RDMA NIC was found on this node."
NO_ETHERNET_NIC = "No Ethernet RDMA NIC was found on this node."
BASE_MODULES = ("ib_core", "ib_uverbs", "rdma_cm", "rdma_ucm")
TEMPORARY_NAME = re.compile(r"[0-9a-f]{8}\Z")
ROCE_PORT = 4791


# Network namespace mode


def running_mode(node: Node) -> Optional[str]:
    """``shared`` or ``exclusive`` as the kernel runs now: RDMA netlink first, else the parameter file (S9, F83)."""
    system = node.snapshot.rdma
    if system.netns_mode is not None:
        return system.netns_mode
    return None if system.netns_parameter is None else oke_nics.netns_mode(system.netns_parameter)


def mode_options(node: Node) -> list[ModuleOption]:
    """All settings of the mode that take effect at boot, in the order in which kmod applies them (S20)."""
    options = [option for option in node.snapshot.module_options or () if option.option == "netns_mode"]
    return [option for option in options if option.source != COMMAND_LINE] + [
        option for option in options if option.source == COMMAND_LINE
    ]


def _place(option: ModuleOption) -> str:
    return "%s:%d" % (option.source, option.line) if option.line else option.source


@node_check(
    "RDMA-NODE-001",
    "RDMA network namespace mode is the one that the target needs",
    CRITICAL,
    "Set the mode with the option netns_mode of ib_core and reboot; the live switch works only while no other network "
    "namespace exists.",
    evidence=("rdma-netlink", MODE_FILE),
)
def netns_mode(node: Node) -> Outcome:
    """F83, F85, S8-S12: the oke-rdma profile works in shared mode only."""
    wanted, found = node.policy.netns_mode, running_mode(node)
    if found is None:
        if _modules_are_known(node) and "ib_core" not in node.snapshot.modules:
            return unknown(
                "ib_core is not loaded, so the node has no RDMA subsystem that could tell its mode."
            )
        return unknown(node.why_not("rdma-netlink", "rdma"))
    if found != wanted:
        return failed("The RDMA subsystem runs in %s mode." % found, expected=wanted, observed=found)
    return passed("The RDMA subsystem runs in %s mode." % found)


@node_check(
    "RDMA-NODE-002",
    "The mode at boot is set at most once, and as wanted",
    ERROR,
    "Keep one 'options ib_core netns_mode=...' line and remove the others; the last one wins, the kernel command line "
    "behind every file.",
    needs=("module_options",),
    evidence=(MODPROBE, COMMAND_LINE),
)
def boot_mode(node: Node) -> Outcome:
    """S8 (the kernel's default is shared), S19, S20, S23, S26: two owners of the setting defeat each other."""
    wanted, options = node.policy.netns_mode, mode_options(node)
    if not options:
        if wanted == "shared":
            return passed("Nothing sets the mode at boot; the kernel's default is shared.")
        return failed(
            "Nothing sets the mode at boot, so the node boots in shared mode.",
            expected=wanted,
            observed="shared",
        )
    places = listed([_place(option) for option in options])
    if len(options) > 1:
        return failed(
            "%d settings of netns_mode: %s." % (len(options), places),
            expected="one",
            observed=str(len(options)),
        )
    mode = netns.mode_of_option(options[0].value)
    if mode is None:
        return failed(
            "%s sets netns_mode=%s, which the kernel refuses: ib_core would not load."
            % (places, options[0].value),
            expected=wanted,
            observed=options[0].value,
        )
    if mode != wanted:
        return failed("%s sets %s mode for the next boot." % (places, mode), expected=wanted, observed=mode)
    return passed("%s sets %s mode." % (places, mode))


@node_check(
    "RDMA-NODE-003",
    "The running mode is the one that the next boot will give",
    ERROR,
    "Reboot when the file is newer than the boot; else find out why the option is not used (initramfs, command line).",
    needs=("module_options",),
    evidence=("rdma-netlink", MODPROBE, COMMAND_LINE),
)
def mode_persisted(node: Node) -> Outcome:
    """S20, S21, S27: a newer file is a reboot that is owed; an older one is ignored by the kernel."""
    found = running_mode(node)
    if found is None:
        return unknown(node.why_not("rdma-netlink", "rdma"))
    options = mode_options(node)
    last = options[-1] if options else None
    at_boot = netns.mode_of_option(last.value) if last is not None else "shared"
    if at_boot is None:
        return skipped("The boot setting is not valid; see RDMA-NODE-002.")
    if at_boot == found:
        return passed("Running and next boot: %s." % found)
    values = {"expected": at_boot, "observed": found}
    if last is None:
        return failed(
            "The node runs in %s mode, which nothing keeps: the next boot is %s." % (found, at_boot), **values
        )
    changed, booted = last.modified, node.snapshot.host.boot_time
    if changed is not None and booted is not None and changed > booted:
        return warned(
            "Reboot pending: %s was changed after the boot; running %s, next boot %s."
            % (_place(last), found, at_boot),
            **values,
        )
    return failed("The node runs in %s mode, %s says %s." % (found, _place(last), at_boot), **values)


@node_check(
    "RDMA-NODE-006",
    "The RDMA kernel modules are loaded",
    CRITICAL,
    "Load the missing modules and name them in a file under /etc/modules-load.d.",
    evidence=("/proc/modules", "/sys/module"),
)
def modules(node: Node) -> Outcome:
    """S3; DEV-15: a device plugin that starts before a module gives pods only a part of the device files."""
    if not _modules_are_known(node):
        return unknown(node.why_not("/proc/modules", "kernel"))
    wanted = BASE_MODULES + _driver_modules(node)
    missing = [name for name in wanted if name not in node.snapshot.modules]
    if missing:
        return failed("Not loaded: %s." % ", ".join(missing), expected=", ".join(wanted), observed="absent")
    return passed("%d modules are loaded or built in." % len(wanted))


def _modules_are_known(node: Node) -> bool:
    """Whether a module that is not in the snapshot's map is one that is not loaded."""
    return "kernel" in node.snapshot.subsets and not node.snapshot.error_of("/proc/modules")


def _driver_modules(node: Node) -> tuple[str, ...]:
    """Modules of the NICs: those of the shape; without one, mlx5 when a function of that vendor is there."""
    if node.shape is not None:
        return node.shape.modules
    nvidia = any(function.id.startswith("15b3:") for function in node.snapshot.pci or ())
    return ("mlx5_core", "mlx5_ib") if nvidia else ()


# Inventory of the hardware


@node_check(
    "RDMA-NODE-010",
    "The node has as many RDMA NICs as its shape",
    CRITICAL,
    "Look for a failed NIC (lspci, kernel log) and open a hardware ticket; count is per shape (shape table).",
    needs=("devices", "links"),
    targets=NOT_ON_LINGJUN,
    evidence=(INFINIBAND_CLASS,),
)
def nic_count(node: Node) -> Outcome:
    """F128: number of RDMA NICs per shape."""
    with_device = [nic for nic in node.nics if nic.ports]
    if node.shape is None:
        what = "%d RDMA NICs" % len(with_device) if with_device else "no RDMA NIC"
        return unknown("Found %s; the number for this node is not known (%s)." % (what, _shape_reason(node)))
    wanted = node.shape.rdma_nics
    if len(with_device) != wanted:
        return failed(
            "%d RDMA NICs with an RDMA device, %s has %d%s."
            % (len(with_device), node.shape_name, wanted, _missing_places(node)),
            expected=str(wanted),
            observed=str(len(with_device)),
        )
    return passed("%d RDMA NICs." % wanted)


def _no_value(node: Node, what: str) -> str:
    """Why the shape table gives no value for this node."""
    return (
        "the shape table gives no %s for %s" % (what, node.shape_name) if node.shape else _shape_reason(node)
    )


def _shape_reason(node: Node) -> str:
    if node.shape_name:
        return "shape %s is not in the shape table" % node.shape_name
    return "the shape is not known"


def _missing_places(node: Node) -> str:
    present = {nic.pci for nic in node.nics if nic.ports}
    missing = [pci for pci in node.shape.pci if pci not in present] if node.shape is not None else []
    return "; nothing at %s" % listed(missing) if missing else ""


@node_check(
    "RDMA-NODE-011",
    "Each RDMA NIC sits at the PCI address that the shape table gives",
    ERROR,
    "A NIC is missing, or names are swapped: compare udev names with PCI addresses.",
    needs=("devices", "links"),
    targets=NOT_ON_LINGJUN,
    evidence=("/sys/bus/pci/devices", NET_CLASS),
)
def pci_places(node: Node) -> Outcome:
    """F129: rdma0, rdma1, ... in the order of the table."""
    if node.shape is None:
        return skipped("No table of PCI addresses: %s." % _shape_reason(node))
    table = node.shape.pci
    if not table:
        return skipped("The shape table has no PCI addresses for %s." % node.shape_name)
    details = []
    found = {nic.pci: nic for nic in node.nics if nic.pci}
    for index, pci in enumerate(table):
        nic = found.pop(pci, None)
        if nic is None:
            details.append(bad(pci, "no RDMA NIC there", "rdma%d" % index))
            continue
        named = oke_nics.nic_index_of_name(nic.name)
        if named is not None and named != index:
            details.append(
                bad(pci, "%s is there, the table has rdma%d" % (nic.name, index), "rdma%d" % index, nic.name)
            )
        else:
            details.append(ok(pci))
    details += [bad(nic.name, "at %s, which the table does not have" % pci) for pci, nic in found.items()]
    return rolled_up(details, "%d NICs at their places.", NO_NIC)


@node_check(
    "RDMA-NODE-012",
    "The RDMA NICs are named rdma0 to rdmaN-1, or all are identified by their address",
    ERROR,
    "Check the udev naming rules and OCA; a NIC without name and address is moved into the pod by a claim.",
    needs=("links",),
    targets=NOT_ON_LINGJUN,
    evidence=(NET_CLASS,),
)
def names(node: Node) -> Outcome:
    """F44, F73, F74, F131."""
    nics = node.ethernet_nics
    if not nics:
        return skipped(NO_ETHERNET_NIC)
    indexes = [oke_nics.nic_index_of_name(nic.name) for nic in nics]
    if not any(index is not None for index in indexes):
        lost = [nic.name for nic in nics if nic.name not in node.identified]
        if lost:
            return failed(
                "%s: neither an rdmaN name nor an address in the OCA network %s."
                % (listed(lost), node.oca_config.network),
                expected="identified",
                observed="not identified",
            )
        return passed("%d NICs with names of the operating system, identified by their address." % len(nics))
    wanted = node.shape.rdma_nics if node.shape is not None else len(nics)
    missing = [index for index in range(wanted) if index not in indexes]
    details = [
        bad(nic.name, "has no rdmaN name beside NICs that have") for nic, i in zip(nics, indexes) if i is None
    ]
    details += [bad("rdma%d" % index, "no interface of this name") for index in missing]
    details += [
        bad("rdma%d" % index, "above rdma%d" % (wanted - 1)) for index in indexes if index and index >= wanted
    ]
    return rolled_up(details or [ok("all")], "rdma0 to rdma%s are there." % (wanted - 1), NO_ETHERNET_NIC)


@node_check(
    "RDMA-NODE-013",
    "Each RDMA NIC has exactly one RDMA port",
    ERROR,
    "Reload the RDMA driver of the NIC (mlx5_ib); after a driver installation reboot.",
    needs=("devices", "links"),
    evidence=("rdma-netlink", INFINIBAND_CLASS),
)
def one_to_one(node: Node) -> Outcome:
    """DEV-04: matched by port, not by node GUID."""
    details = []
    for nic in node.nics:
        if nic.link is not None and not nic.ports:
            details.append(bad(nic.name, "no RDMA port belongs to this interface", "1", "0"))
        elif len(nic.ports) > 1:
            owners = ["%s/%d" % (device.name, port.port) for device, port in nic.ports]
            details.append(
                bad(nic.name, "%d RDMA ports (%s)" % (len(owners), listed(owners)), "1", str(len(owners)))
            )
        elif nic.link is None and nic.link_layer == ETHERNET:
            details.append(bad(nic.name, "no interface belongs to this RDMA port", "1", "0"))
        else:
            details.append(ok(nic.name))
    return rolled_up(details, "%d NICs with one RDMA port each.", NO_NIC)


# Ports


def _ports(node: Node) -> Iterable[tuple[Nic, RdmaPort]]:
    return [(nic, nic.port) for nic in node.nics if nic.port is not None]


@node_check(
    "RDMA-NODE-014",
    "All RDMA ports have the link layer of the fabric",
    ERROR,
    "Change LINK_TYPE in the NIC's firmware, or correct the fabric in the shape table or the policy.",
    needs=("devices",),
    evidence=(INFINIBAND_CLASS + "/*/ports/*/link_layer",),
)
def link_layer(node: Node) -> Outcome:
    """S28, DEV-16; the fabric comes from policy or shape table."""
    fabric = node.policy.fabric or (node.shape.fabric if node.shape is not None else "")
    if not fabric:
        return skipped("The fabric of this node is not known (%s)." % _no_value(node, "fabric"))
    wanted = INFINIBAND if fabric == "infiniband" else ETHERNET
    details = [compared(nic.name, "link layer", port.link_layer, wanted) for nic, port in _ports(node)]
    return rolled_up(details, "%%d ports with link layer %s." % wanted, NO_NIC)


@node_check(
    "RDMA-NODE-015",
    "All RDMA ports are active and linked up",
    CRITICAL,
    "Check cable, switch port and 802.1X authentication of the NIC.",
    needs=("devices",),
    evidence=(INFINIBAND_CLASS + "/*/ports/*/state",),
)
def port_state(node: Node) -> Outcome:
    """S29: ACTIVE and LinkUp together."""
    details = []
    for nic, port in _ports(node):
        observed = "%s/%s" % (port.state, port.phys_state)
        if port.state is None or port.phys_state is None:
            details.append(unclear(nic.name, "the state could not be read"))
        elif port.state != "ACTIVE" or port.phys_state != "LinkUp":
            details.append(bad(nic.name, "port state %s" % observed, "ACTIVE/LinkUp", observed))
        else:
            details.append(ok(nic.name))
    return rolled_up(details, "%d ports active.", NO_NIC)


@node_check(
    "RDMA-NODE-016",
    "All RDMA ports run at the rate of the shape",
    ERROR,
    "A port below its rate has lost lanes: reseat or replace cable and transceiver.",
    needs=("devices",),
    evidence=(INFINIBAND_CLASS + "/*/ports/*/rate",),
)
def rate(node: Node) -> Outcome:
    """Rate in Gb/s from the shape table; where it has none, all ports of the node must agree."""
    ports = list(_ports(node))
    wanted = node.shape.rate_gbps if node.shape is not None else None
    rates = [_gbps(port) for _nic, port in ports]
    if wanted is None:
        known = Counter([found for found in rates if found is not None])
        if not known:
            return skipped(NO_NIC) if not ports else unknown("No port tells its rate.")
        wanted = max(known, key=lambda found: (known[found], found))
    details = []
    for (nic, port), found in zip(ports, rates):
        if found is None:
            details.append(unclear(nic.name, "the rate could not be read"))
        elif found != wanted:
            details.append(bad(nic.name, "runs at %s" % port.rate, "%g Gb/s" % wanted, "%g Gb/s" % found))
        else:
            details.append(ok(nic.name))
    return rolled_up(details, "%%d ports at %g Gb/s." % wanted, NO_NIC)


def _gbps(port: RdmaPort) -> Optional[float]:
    first = (port.rate or "").partition(" ")[0]
    return float(first) if re.match(r"[0-9]+(\.[0-9]+)?\Z", first, re.ASCII) else None


def wanted_mtu(node: Node) -> Optional[int]:
    """MTU of the RDMA NICs in bytes: the policy's, else the shape table's (4220 on OCI, F80, F131)."""
    if node.policy.mtu is not None:
        return node.policy.mtu
    return node.shape.mtu if node.shape is not None else None


@node_check(
    "RDMA-NODE-017",
    "The RDMA NICs have the wanted MTU",
    ERROR,
    "Correct the MTU where it is owned: OCA on OCI nodes, else netplan, NetworkManager or networkd.",
    needs=("links",),
    evidence=(NET_CLASS + "/*/mtu",),
)
def mtu(node: Node) -> Outcome:
    """F80, F131."""
    wanted = wanted_mtu(node)
    if not node.ethernet_nics:
        return skipped(NO_ETHERNET_NIC)
    if wanted is None:
        return skipped("No MTU is wanted (%s; setting 'mtu')." % _no_value(node, "MTU"))
    details = [compared(nic.name, "MTU", nic.link.mtu, wanted) for nic in node.ethernet_nics if nic.link]
    return rolled_up(details, "%%d NICs with MTU %d." % wanted, NO_ETHERNET_NIC, str(wanted))


@node_check(
    "RDMA-NODE-018",
    "The RDMA MTU is 4096 where the interface allows it",
    ERROR,
    "The RDMA MTU follows the interface: set MTU 4220 before the RDMA device comes up, or reload the driver.",
    needs=("devices", "links"),
    evidence=("ibv_devinfo",),
)
def active_mtu(node: Node) -> Outcome:
    """An interface MTU of 4220 carries RDMA MTU 4096."""
    reason = node.snapshot.error_of("ibv_devinfo").partition(": ")[2] or "the node does not tell"
    details = [
        compared(nic.name, "RDMA MTU", nic.port.active_mtu, 4096, "ibv_devinfo: %s" % reason)
        for nic in node.ethernet_nics
        if nic.port is not None and nic.link is not None and (nic.link.mtu or 0) >= 4220
    ]
    return rolled_up(
        details, "%d ports with RDMA MTU 4096.", "No RDMA NIC has an MTU of 4220 or more.", "4096"
    )


# Interface settings


@node_check(
    "RDMA-NODE-028",
    "ARP settings of the RDMA NICs are readable, valid and as planned",
    ERROR,
    "Set net.ipv4.conf.NIC.arp_ignore=1 and arp_announce=2 (OCA does); DRANET copies them to the child.",
    needs=("links",),
    targets=NOT_ON_LINGJUN,
    evidence=("/proc/sys/net/ipv4/conf",),
)
def arp(node: Node) -> Outcome:
    """F77-F79: a value that cannot be read or is not allowed fails each claim on that NIC."""
    details = []
    for nic in node.ethernet_nics:
        found = nic.link.arp if nic.link is not None else None
        if found is None:
            details.append(unclear(nic.name, "the ARP settings could not be read"))
            continue
        wrong = []
        for key, value, allowed, wanted in (
            ("arp_ignore", found.ignore, oke_nics.ARP_IGNORE_VALUES, node.policy.arp_ignore),
            ("arp_announce", found.announce, oke_nics.ARP_ANNOUNCE_VALUES, node.policy.arp_announce),
            ("arp_filter", found.filter, None, node.policy.arp_filter),
        ):
            if wanted is None:
                continue
            if value is None:
                wrong.append("%s is not set" % key)
            elif value != wanted:
                allowed_too = allowed is None or value in [str(number) for number in allowed]
                wrong.append("%s is %s%s" % (key, value, "" if allowed_too else ", which DRANET refuses"))
        if wrong:
            wanted_text = "arp_ignore %s, arp_announce %s" % (
                node.policy.arp_ignore,
                node.policy.arp_announce,
            )
            details.append(bad(nic.name, ", ".join(wrong), wanted_text, ", ".join(wrong)))
        else:
            details.append(ok(nic.name))
    return rolled_up(details, "%d NICs with the planned ARP settings.", NO_ETHERNET_NIC)


@node_check(
    "RDMA-NODE-029",
    "Reverse path filtering does not drop traffic of the RDMA NICs",
    ERROR,
    "Set net.ipv4.conf.NIC.rp_filter (and 'all') to 2 or 0.",
    needs=("links",),
    targets=NOT_ON_LINGJUN,
    evidence=("/proc/sys/net/ipv4/conf",),
)
def rp_filter(node: Node) -> Outcome:
    """The kernel uses the larger value of 'all' and the interface; 1 is strict (F80)."""
    for_all = node.snapshot.arp_all.rp_filter if node.snapshot.arp_all is not None else None
    details = []
    for nic in node.ethernet_nics:
        own = nic.link.arp.rp_filter if nic.link is not None and nic.link.arp is not None else None
        if own is None or for_all is None or not (own + for_all).isdecimal():
            details.append(unclear(nic.name, "rp_filter could not be read"))
        elif max(int(own), int(for_all)) == 1:
            details.append(bad(nic.name, "rp_filter is 1 (all %s, NIC %s)" % (for_all, own), "0 or 2", "1"))
        else:
            details.append(ok(nic.name))
    return rolled_up(details, "%d NICs without strict reverse path filtering.", NO_ETHERNET_NIC)


@node_check(
    "RDMA-NODE-031",
    "The character devices of every RDMA device are there",
    ERROR,
    "Load ib_uverbs and rdma_ucm.",
    needs=("devices", "char_devices"),
    evidence=("/dev/infiniband", "/sys/class/infiniband_verbs"),
)
def char_devices(node: Node) -> Outcome:
    """DEV-15: one uverbs file per device, and rdma_cm."""
    devices = node.snapshot.devices or ()
    if not devices:
        return skipped("No RDMA device was found on this node.")
    details = [
        ok(device.name) if device.uverbs else bad(device.name, "no uverbs file", "one", "none")
        for device in sorted(devices, key=lambda device: _by_number(device.name))
    ]
    if "rdma_cm" not in (node.snapshot.char_devices or ()):
        details.append(bad("/dev/infiniband/rdma_cm", "does not exist", "present", "absent"))
    return rolled_up(details, "%d RDMA devices with their files.", NO_NIC)


def _by_number(name: str) -> tuple[str, int, str]:
    """``mlx5_2`` before ``mlx5_10`` (F139)."""
    head = name.rstrip("0123456789")
    digits = name[len(head) :]
    return head, int(digits[:9] or 0), digits


@node_check(
    "RDMA-NODE-032",
    "No RDMA NIC is a member of a bond or bridge",
    ERROR,
    "Take the NIC out of the bond or bridge: DRANET cannot give a bonded NIC to a pod.",
    needs=("links",),
    targets=NOT_ON_LINGJUN,
    evidence=("rtnetlink",),
)
def masters(node: Node) -> Outcome:
    """DEV-06."""
    details = []
    for nic in node.nics:
        if nic.link is not None:
            master = nic.link.master
            details.append(
                bad(nic.name, "is a member of %s" % master, "none", master) if master else ok(nic.name)
            )
    return rolled_up(details, "%d NICs stand alone.", NO_NIC)


@node_check(
    "RDMA-NODE-033",
    "Every network PCI function has its driver bound",
    ERROR,
    "Bind the driver (reload it, look into the kernel log); a claim on such a device never gets ready.",
    needs=("pci",),
    evidence=("/sys/bus/pci/devices",),
)
def drivers(node: Node) -> Outcome:
    """DEV-05, S3."""
    details = [
        ok(function.address)
        if function.driver
        else bad(function.address, "no driver is bound (class %s)" % function.pci_class, "a driver", "none")
        for function in node.snapshot.pci or ()
    ]
    return rolled_up(details, "%d functions with a driver.", "The node has no network PCI function.")


@fleet_check(
    "RDMA-NODE-034",
    "Firmware of the RDMA NICs is the same on all nodes of a pool",
    WARNING,
    "Bring the odd nodes to the version of the others in the next maintenance window.",
    needs=("devices",),
    evidence=(INFINIBAND_CLASS + "/*/fw_ver",),
)
def firmware(fleet: Fleet) -> dict[str, Outcome]:
    """Odd one out: versions per board and shape, compared with the majority."""
    votes: dict[tuple[str, str], Counter[str]] = {}
    for node in fleet.nodes:
        for board, version in _firmware(node):
            votes.setdefault((node.shape_name, board), Counter())[version] += 1
    usual = {pool: most_common(counts) for pool, counts in votes.items()}
    outcomes = {}
    for node in fleet.nodes:
        odd = []
        for board, version in sorted(set(_firmware(node))):
            majority = usual[(node.shape_name, board)]
            if version != majority:
                odd.append(
                    bad(
                        board or "NIC",
                        "firmware %s, the others have %s" % (version, majority),
                        majority,
                        version,
                    )
                )
        if not list(_firmware(node)):
            outcomes[node.name] = skipped("No RDMA NIC of this node tells a firmware version.")
        else:
            outcomes[node.name] = rolled_up(
                odd or [ok("all")], "Same firmware as the pool.", NO_NIC, as_status="warn"
            )
    return outcomes


def _firmware(node: Node) -> list[tuple[str, str]]:
    return [
        (nic.device.board, nic.device.firmware) for nic in node.nics if nic.device and nic.device.firmware
    ]


@node_check(
    "RDMA-NODE-035",
    "Nothing else uses the route tables 100 to 115",
    ERROR,
    "Move the other user to a table outside 100 to 115.",
    needs=("routes", "rules"),
    targets=NOT_ON_LINGJUN,
    evidence=("rtnetlink",),
)
def tables(node: Node) -> Outcome:
    """F7, F12: table 100 + index belongs to the child of NIC index."""
    taken = range(TABLE_BASE, TABLE_BASE + MAX_NICS)
    details = [
        bad("rule %s" % rule, "uses table %d" % rule.table)
        for rule in node.snapshot.rules or ()
        if rule.table in taken
    ]
    details += [
        bad("route %s" % route, "stands in table %d" % route.table)
        for route in node.snapshot.routes or ()
        if route.table in taken
    ]
    return rolled_up(details or [ok("all")], "Tables 100 to 115 are free.", "")


@node_check(
    "RDMA-NODE-036",
    "No IPv6 default route goes over an RDMA NIC",
    WARNING,
    "Turn off router advertisements on the RDMA NICs (accept_ra=0): DRANET takes NICs with a default route for "
    "uplinks.",
    needs=("routes", "links"),
    targets=NOT_ON_LINGJUN,
    evidence=("rtnetlink",),
)
def ipv6_default(node: Node) -> Outcome:
    """F90, DEV-08. On an IPv6 fabric each NIC has one, as it should."""
    if node.fabric == "ipv6":
        return skipped(
            "On an IPv6 fabric every RDMA NIC has a default route; name the uplinks to DRANET (F90)."
        )
    names = {nic.name for nic in node.nics}
    details = [
        bad(
            route.dev,
            "IPv6 default route%s" % (" (proto %s)" % route.proto if route.proto else ""),
            "none",
            str(route),
        )
        for route in node.snapshot.routes or ()
        if route.dst in ("::/0", "default6") and route.dev in names
    ]
    return rolled_up(details or [ok("all")], "No IPv6 default route over an RDMA NIC.", "", as_status="warn")


@node_check(
    "RDMA-NODE-037",
    "No left-over child of an RDMA NIC stands on the host",
    WARNING,
    "Delete the interface when no claim uses it: 'ip link delete NAME'.",
    needs=("links",),
    targets=NOT_ON_LINGJUN,
    evidence=("rtnetlink",),
)
def leftovers(node: Node) -> Outcome:
    """F111: a child lives in a pod; on the host it is left over, as is a name of 8 hex digits."""
    names = {nic.name for nic in node.nics}
    details = [
        bad(link.name, "%s child of %s on the host" % (link.kind, link.parent), "none", str(link.kind))
        for link in node.snapshot.links or ()
        if _is_leftover(link, names)
    ]
    return rolled_up(details or [ok("all")], "No left-over child.", "", as_status="warn")


def _is_leftover(link: Link, nics: set[str]) -> bool:
    if link.kind not in ("ipvlan", "macvlan"):
        return False
    return link.parent in nics or bool(TEMPORARY_NAME.match(link.name))


@node_check(
    "RDMA-NODE-038",
    "The packet filter lets RoCE v2 (UDP 4791) pass",
    WARNING,
    "Accept UDP 4791 from and to the RDMA network before the rule or policy that drops it.",
    needs=("firewall",),
    evidence=("nftables",),
)
def firewall(node: Node) -> Outcome:
    """The snapshot has the rules that decide about UDP 4791; a drop behind an accept of its chain is harmless."""
    accepted: set[tuple[str, str, str]] = set()
    details = []
    for rule in node.snapshot.firewall or ():
        chain = (rule.family, rule.table, rule.chain)
        if rule.verdict == "accept":
            accepted.add(chain)
        elif rule.verdict in ("drop", "reject") and chain not in accepted:
            details.append(bad(" ".join(chain), "%s: %s" % (rule.verdict, rule.text), "accept", rule.verdict))
    return rolled_up(details or [ok("all")], "Nothing drops UDP %d." % ROCE_PORT, "", as_status="warn")
