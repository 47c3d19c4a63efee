# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Cases of the area NODE."""

from __future__ import annotations

# pylint: disable=kwarg-superseded-by-positional-arg  # what fleet.edit_* take after their names are changes
from dataclasses import replace

from ansible_collections.rdma.k8s.plugins.module_utils.core.snapshot import (
    FirewallRule,
    Link,
    ModuleOption,
    NodeSnapshot,
    RdmaSystem,
)
from ansible_collections.rdma.k8s.tests.support import fleet
from ansible_collections.rdma.k8s.tests.support.cases import GB200_IB, GB200_V3, OPTIMIZED, Case

BEFORE, AFTER = fleet.BOOT_TIME - 86400, fleet.BOOT_TIME + 3600
RDMA_CONF, COMMAND_LINE = "/etc/modprobe.d/rdma.conf", "/proc/cmdline"


def mode(running: str, *options: ModuleOption) -> fleet.Edit:
    """The node runs in a mode, and these options are all that sets it at boot."""
    letter = {"shared": "Y", "exclusive": "N"}[running]

    def edit(node: NodeSnapshot) -> NodeSnapshot:
        return replace(node, rdma=RdmaSystem(running, letter, True), module_options=options)

    return edit


def option(value: str, source: str = RDMA_CONF, line: int = 1, modified: int = BEFORE) -> ModuleOption:
    if source == COMMAND_LINE:
        return ModuleOption(source, "netns_mode", value)
    return ModuleOption(source, "netns_mode", value, line, modified)


def without_modules(*names: str) -> fleet.Edit:
    return lambda node: replace(
        node, modules={name: state for name, state in node.modules.items() if name not in names}
    )


def firewall(*rules: FirewallRule) -> fleet.Edit:
    return lambda node: replace(node, firewall=rules)


def all_uverbs_gone(node: NodeSnapshot) -> NodeSnapshot:
    """DEV-15: umad is there, no verbs file is."""
    return replace(node, devices=tuple([replace(device, uverbs="") for device in node.devices or ()]))


def two_ports_on_one_nic(node: NodeSnapshot) -> NodeSnapshot:
    """DEV-04, dranet#9: matching went wrong, rdma5's port says that it belongs to rdma4."""
    return fleet.edit_port(node, "rdma5", netdev="rdma4")


def moved(node: NodeSnapshot) -> NodeSnapshot:
    """The second port of a NIC sits at another place: a different slot than the table says."""
    device = fleet.device_of(node, "rdma15").name
    node = fleet.edit_link(node, "rdma15", pci="0000:d6:00.1")
    node = fleet.edit_device(node, device, pci="0000:d6:00.1")
    return fleet.edit_function(node, "0000:d5:00.1", address="0000:d6:00.1")


def os_name(node: NodeSnapshot) -> NodeSnapshot:
    """rdma3 lost its name: the udev rule did not run."""
    node = fleet.edit_port(node, "rdma3", netdev="ens41np0")
    return fleet.edit_link(node, "rdma3", name="ens41np0")


def infiniband_port(node: NodeSnapshot) -> NodeSnapshot:
    """DEV-16: LINK_TYPE of one NIC was changed."""
    node = fleet.edit_port(node, "rdma3", link_layer="InfiniBand")
    return fleet.edit_link(node, "rdma3", arphrd=32)


def shape_named(name: str) -> fleet.Edit:
    return lambda node: fleet.edit_imds(node, instance={"shape": name})


def strict_for_all(node: NodeSnapshot) -> NodeSnapshot:
    node = replace(node, arp_all=replace(node.arp_all, rp_filter="1"))
    for name in fleet.names(node):
        node = fleet.edit_arp(node, name, rp_filter="0")
    return node


def bonded(node: NodeSnapshot) -> NodeSnapshot:
    """DEV-06: rdma0 in a bond."""
    node = fleet.add_links(node, Link("bond0", "bond", mtu=4220, state="up"))
    return fleet.edit_link(node, "rdma0", master="bond0")


def other_bond(node: NodeSnapshot) -> NodeSnapshot:
    """DEV-06: a bond of NICs that are no RDMA NICs is nobody's business."""
    ends = [Link(name, mtu=9000, state="up", master="bond0") for name in ("ens1", "ens2")]
    return fleet.add_links(node, Link("bond0", "bond", mtu=9000, state="up"), *ends)


DROP = FirewallRule("ip", "filter", "INPUT", "input", "drop", "udp dport 4791 drop")
ACCEPT = FirewallRule("ip", "filter", "INPUT", "input", "accept", "udp dport 4791 accept")
POLICY = FirewallRule("inet", "filter", "input", "input", "drop", "policy drop")

CASES = [
    # RDMA-NODE-001: S8-S12, F83, F85
    Case(
        "RDMA-NODE-001",
        "fail",
        "runs in exclusive mode",
        "exclusive mode now, shared at boot",
        mode("exclusive", option("1")),
        also="NODE-003 fail",
    ),
    Case(  # DEV-13: shared device plugins and oke-rdma need shared mode; said before anything is deployed
        "RDMA-NODE-001",
        "fail",
        "runs in exclusive mode",
        "exclusive mode now and at boot",
        mode("exclusive", option("0")),
        also="NODE-002 fail",
    ),
    Case(
        "RDMA-NODE-001",
        "fail",
        "runs in exclusive mode",
        "the parameter file alone tells",
        lambda node: replace(node, rdma=RdmaSystem(None, "N")),
        also="NODE-003 fail",
    ),
    Case(
        "RDMA-NODE-001",
        "fail",
        "runs in shared mode",
        "exclusive mode is wanted",
        settings={"netns_mode": "exclusive"},
        also="NODE-002 fail",
    ),
    Case(
        "RDMA-NODE-001",
        "unknown",
        "rdma-netlink: operation not supported",
        "neither netlink nor the file tells",
        lambda node: fleet.without(
            replace(node, rdma=RdmaSystem()), "namespaces", "rdma-netlink", "operation not supported"
        ),
        also="NODE-003 unknown",
    ),
    Case(
        "RDMA-NODE-001",
        "unknown",
        "ib_core is not loaded",
        "no RDMA subsystem",
        lambda node: without_modules(*node.modules)(replace(node, rdma=RdmaSystem())),
        also="NODE-003 unknown NODE-006 fail",
    ),
    Case("RDMA-NODE-001", "pass", "runs in shared mode", "healthy"),
    # RDMA-NODE-002: S19, S20, S23, S26
    Case(
        "RDMA-NODE-002",
        "fail",
        "2 settings of netns_mode: /etc/modprobe.d/rdma.conf:1, /etc/modprobe.d/zz-ofed.conf:4",
        "two files set the mode",
        mode("shared", option("1"), option("1", "/etc/modprobe.d/zz-ofed.conf", 4)),
    ),
    Case(
        "RDMA-NODE-002",
        "fail",
        "2 settings of netns_mode: /etc/modprobe.d/rdma.conf:1, /proc/cmdline",
        "file and command line set the mode",
        mode("shared", option("1", COMMAND_LINE), option("1")),
    ),
    Case(
        "RDMA-NODE-002",
        "fail",
        "sets netns_mode=2, which the kernel refuses",
        "a value that the kernel refuses",
        mode("shared", option("2")),
    ),
    Case(
        "RDMA-NODE-002",
        "fail",
        "/etc/modprobe.d/rdma.conf:1 sets exclusive mode for the next boot",
        "exclusive at the next boot",
        mode("shared", option("n", modified=AFTER)),
        also="NODE-003 warn",
    ),
    Case(
        "RDMA-NODE-002",
        "fail",
        "Nothing sets the mode at boot",
        "exclusive mode wanted, nothing persists it",
        mode("exclusive"),
        settings={"netns_mode": "exclusive"},
        also="NODE-003 fail",
    ),
    Case(
        "RDMA-NODE-002",
        "pass",
        "Nothing sets the mode at boot",
        "the kernel's default is enough",
        mode("shared"),
    ),
    Case("RDMA-NODE-002", "pass", "rdma.conf:1 sets shared mode", "healthy"),
    Case(
        "RDMA-NODE-002",
        "unknown",
        "/etc/modprobe.d: permission denied",
        "options not readable",
        lambda node: fleet.without(node, "module_options", "/etc/modprobe.d", "permission denied"),
        also="NODE-003 unknown",
    ),
    # RDMA-NODE-003: S20, S21, S27; DEV-01
    Case(
        "RDMA-NODE-003",
        "fail",
        "runs in shared mode, /proc/cmdline says exclusive",
        "the kernel ignores the option",
        mode("shared", option("0", COMMAND_LINE)),
        settings={"netns_mode": "exclusive"},
        also="NODE-001 fail",
    ),
    Case(  # DEV-01, first variant: exclusive already, and nothing that would make it so at the next boot
        "RDMA-NODE-003",
        "fail",
        "runs in exclusive mode, which nothing keeps: the next boot is shared",
        "the live mode is not persisted",
        mode("exclusive"),
        settings={"netns_mode": "exclusive"},
        also="NODE-002 fail",
    ),
    Case(
        "RDMA-NODE-003",
        "warn",
        "Reboot pending: /etc/modprobe.d/rdma.conf:1 was changed after the boot",
        "a reboot is owed",
        mode("exclusive", option("1", modified=AFTER)),
        also="NODE-001 fail",
    ),
    Case(
        "RDMA-NODE-003",
        "skip",
        "see RDMA-NODE-002",
        "the boot setting is not valid",
        mode("shared", option("maybe")),
        also="NODE-002 fail",
    ),
    Case("RDMA-NODE-003", "pass", "Running and next boot: shared", "healthy"),
    # RDMA-NODE-006: S3, DEV-15
    Case(
        "RDMA-NODE-006",
        "fail",
        "Not loaded: rdma_ucm",
        "rdma_ucm is not loaded",
        without_modules("rdma_ucm"),
    ),
    Case(
        "RDMA-NODE-006",
        "fail",
        "Not loaded: ib_uverbs, mlx5_ib",
        "two modules are not loaded",
        without_modules("ib_uverbs", "mlx5_ib"),
    ),
    Case(
        "RDMA-NODE-006",
        "unknown",
        "/proc/modules: permission denied",
        "the list of modules is not readable",
        lambda node: fleet.without(
            replace(node, modules={}), "namespaces", "/proc/modules", "permission denied"
        ),
    ),
    Case(
        "RDMA-NODE-006",
        "pass",
        "6 modules",
        "a module that is built in",
        lambda node: replace(node, modules={**node.modules, "ib_core": "builtin"}),
    ),
    # RDMA-NODE-010: F128
    Case(
        "RDMA-NODE-010",
        "fail",
        "15 RDMA NICs with an RDMA device, BM.GPU.H100.8 has 16; nothing at 0000:41:00.1",
        "a NIC fell off the bus",
        lambda node: fleet.drop_nic(node, "rdma5"),
        also="NODE-011 fail NODE-012 fail",
    ),
    Case(
        "RDMA-NODE-010",
        "unknown",
        "shape BM.GPU.NEXT.8 is not in the shape table",
        "a shape that the table does not know",
        shape_named("BM.GPU.NEXT.8"),
        also="IMDS-002 warn",
    ),
    Case(
        "RDMA-NODE-010",
        "unknown",
        "/sys/class/infiniband: input/output error",
        "the RDMA class is not readable",
        lambda node: fleet.without(node, "devices", "/sys/class/infiniband", "input/output error"),
        also="NODE-011 unknown NODE-013 unknown NODE-014 unknown NODE-015 unknown NODE-016 unknown NODE-018 unknown "
        "NODE-031 unknown NODE-034 unknown",
    ),
    Case("RDMA-NODE-010", "pass", "4 RDMA NICs", "native InfiniBand", shape=GB200_IB),
    # RDMA-NODE-011: F129
    Case(
        "RDMA-NODE-011",
        "fail",
        "0000:0c:00.1: rdma2 is there, the table has rdma1; 0000:2a:00.0: rdma1 is there, the table has rdma2",
        "two NICs have each other's name",
        lambda node: fleet.swap_nics(node, "rdma1", "rdma2"),
        also="OCA-012 fail",
    ),
    Case(
        "RDMA-NODE-011",
        "fail",
        "0000:d5:00.1: no RDMA NIC there; rdma15: at 0000:d6:00.1, which the table does not have",
        "a NIC in another slot",
        moved,
    ),
    Case(
        "RDMA-NODE-011",
        "skip",
        "no PCI addresses for BM.GPU.H200.8",
        "no places in the table",
        shape="BM.GPU.H200.8",
    ),
    Case("RDMA-NODE-011", "pass", "16 NICs at their places", "healthy"),
    # RDMA-NODE-012: F44, F73, F74, F131
    Case(
        "RDMA-NODE-012",
        "fail",
        "ens41np0: has no rdmaN name beside NICs that have; rdma3: no interface of this name",
        "one NIC keeps the name of the operating system",
        os_name,
    ),
    Case(
        "RDMA-NODE-012",
        "fail",
        "ens800f0np0: neither an rdmaN name nor an address in the OCA network 10.224.0.0/12",
        "neither name nor address",
        lambda node: fleet.edit_link(node, "ens800f0np0", addresses=()),
        shape=OPTIMIZED,
        also="OCA-012 fail OCA-015 unknown RANGE-005 unknown RANGE-013 unknown",
    ),
    Case(
        "RDMA-NODE-012",
        "pass",
        "identified by their address",
        "a name of the operating system and an address",
        shape=OPTIMIZED,
    ),
    Case("RDMA-NODE-012", "skip", "No Ethernet RDMA NIC", "native InfiniBand", shape=GB200_IB),
    Case("RDMA-NODE-012", "pass", "rdma0 to rdma15", "healthy"),
    # RDMA-NODE-013: DEV-04
    Case(
        "RDMA-NODE-013",
        "fail",
        "rdma4: 2 RDMA ports (mlx5_5/1, mlx5_6/1); rdma5: no RDMA port belongs to this interface",
        "two RDMA ports name one interface",
        two_ports_on_one_nic,
        also="NODE-010 fail",
    ),
    Case("RDMA-NODE-013", "pass", "16 NICs with one RDMA port each", "healthy"),
    # RDMA-NODE-014: S28, DEV-16
    Case(
        "RDMA-NODE-014",
        "fail",
        "rdma3: link layer InfiniBand",
        "one port runs InfiniBand",
        infiniband_port,
        also="NODE-012 fail",
    ),
    Case(
        "RDMA-NODE-014",
        "fail",
        "link layer Ethernet",
        "Ethernet where InfiniBand is planned",
        settings={"fabric": "infiniband"},
    ),
    Case(
        "RDMA-NODE-014",
        "unknown",
        "rdma0: the link layer could not be read",
        "the link layer is not readable",
        lambda node: fleet.edit_port(node, "rdma0", link_layer=None),
    ),
    Case("RDMA-NODE-014", "pass", "4 ports with link layer InfiniBand", "native InfiniBand", shape=GB200_IB),
    # RDMA-NODE-015: S29
    Case(
        "RDMA-NODE-015",
        "fail",
        "rdma9: port state DOWN/Disabled",
        "a port is down",
        lambda node: fleet.edit_port(node, "rdma9", state="DOWN", phys_state="Disabled"),
    ),
    Case(
        "RDMA-NODE-015",
        "fail",
        "ib2: port state INIT/LinkUp",
        "InfiniBand without a subnet manager",
        lambda node: fleet.edit_port(node, "ib2", state="INIT"),
        shape=GB200_IB,
    ),
    Case(
        "RDMA-NODE-015",
        "unknown",
        "rdma9: the state could not be read",
        "the state is not readable",
        lambda node: fleet.edit_port(node, "rdma9", state=None),
    ),
    Case("RDMA-NODE-015", "pass", "16 ports active", "healthy"),
    # RDMA-NODE-016
    Case(
        "RDMA-NODE-016",
        "fail",
        "rdma6: runs at 100 Gb/sec (2X HDR)",
        "a port lost lanes",
        lambda node: fleet.edit_port(node, "rdma6", rate="100 Gb/sec (2X HDR)"),
    ),
    Case(
        "RDMA-NODE-016",
        "unknown",
        "rdma6: the rate could not be read",
        "the rate is not readable",
        lambda node: fleet.edit_port(node, "rdma6", rate=None),
    ),
    Case("RDMA-NODE-016", "pass", "16 ports at 200 Gb/s", "healthy"),
    # RDMA-NODE-017: F80, F131
    Case(
        "RDMA-NODE-017",
        "fail",
        "rdma11: MTU 1500",
        "MTU 1500 on one NIC",
        lambda node: fleet.edit_link(node, "rdma11", mtu=1500),
    ),
    Case(
        "RDMA-NODE-017",
        "fail",
        "MTU 4220",
        "another MTU is planned",
        settings={"mtu": 9000},
    ),
    Case(
        "RDMA-NODE-017",
        "unknown",
        "rdma11: the MTU could not be read",
        "the MTU is not known",
        lambda node: fleet.edit_link(node, "rdma11", mtu=None),
    ),
    Case("RDMA-NODE-017", "skip", "No Ethernet RDMA NIC", "native InfiniBand", shape=GB200_IB),
    Case("RDMA-NODE-017", "pass", "16 NICs with MTU 4220", "healthy"),
    # RDMA-NODE-018
    Case(
        "RDMA-NODE-018",
        "fail",
        "rdma7: RDMA MTU 1024",
        "the RDMA MTU did not follow the interface",
        lambda node: fleet.edit_port(node, "rdma7", active_mtu=1024),
    ),
    Case(
        "RDMA-NODE-018",
        "unknown",
        "rdma7: the RDMA MTU could not be read",
        "the RDMA MTU is not known",
        lambda node: fleet.edit_port(node, "rdma7", active_mtu=None),
    ),
    Case(
        "RDMA-NODE-018",
        "skip",
        "No RDMA NIC has an MTU of 4220",
        "a fabric with MTU 1500",
        lambda node: fleet.edit_links(node, mtu=1500),
        settings={"mtu": 1500},
    ),
    Case("RDMA-NODE-018", "pass", "16 ports with RDMA MTU 4096", "healthy"),
    # RDMA-NODE-028: F77-F79
    Case(
        "RDMA-NODE-028",
        "fail",
        "rdma2: arp_ignore is 0",
        "arp_ignore is off",
        lambda node: fleet.edit_arp(node, "rdma2", ignore="0"),
    ),
    Case(
        "RDMA-NODE-028",
        "fail",
        "rdma2: arp_ignore is 5, which DRANET refuses",
        "an ARP value that DRANET refuses",
        lambda node: fleet.edit_arp(node, "rdma2", ignore="5"),
    ),
    Case(
        "RDMA-NODE-028",
        "fail",
        "rdma2: arp_announce is not set",
        "an ARP setting is missing",
        lambda node: fleet.edit_arp(node, "rdma2", announce=None),
    ),
    Case(
        "RDMA-NODE-028",
        "fail",
        "arp_filter is 0",
        "arp_filter is planned",
        settings={"arp_filter": "1"},
    ),
    Case(
        "RDMA-NODE-028",
        "unknown",
        "rdma2: the ARP settings could not be read",
        "ARP settings not readable",
        lambda node: fleet.edit_link(node, "rdma2", arp=None),
        also="NODE-029 unknown",
    ),
    Case("RDMA-NODE-028", "pass", "16 NICs with the planned ARP settings", "healthy"),
    # RDMA-NODE-029: F80
    Case(
        "RDMA-NODE-029",
        "fail",
        "rp_filter is 1 (all 1, NIC 0)",
        "strict reverse path filter for all",
        strict_for_all,
    ),
    Case(
        "RDMA-NODE-029",
        "unknown",
        "rp_filter could not be read",
        "rp_filter of all is not known",
        lambda node: replace(node, arp_all=None),
    ),
    Case(
        "RDMA-NODE-029",
        "pass",
        "16 NICs",
        "strict on the NIC, loose for all: the larger counts",
        lambda node: fleet.edit_arp(node, "rdma2", rp_filter="1"),
    ),
    # RDMA-NODE-031: DEV-15
    Case(
        "RDMA-NODE-031",
        "fail",
        "mlx5_0, mlx5_1, mlx5_2, mlx5_3, mlx5_4, mlx5_5 and 12 more: no uverbs file",
        "umad is there, no uverbs file is",
        all_uverbs_gone,
    ),
    Case(
        "RDMA-NODE-031",
        "fail",
        "/dev/infiniband/rdma_cm: does not exist",
        "rdma_cm is missing",
        lambda node: replace(node, char_devices=("umad0",)),
    ),
    Case(
        "RDMA-NODE-031",
        "unknown",
        "/dev/infiniband: permission denied",
        "the device directory is not readable",
        lambda node: fleet.without(node, "char_devices", "/dev/infiniband", "permission denied"),
    ),
    Case("RDMA-NODE-031", "pass", "18 RDMA devices", "healthy"),
    # RDMA-NODE-032: DEV-06
    Case("RDMA-NODE-032", "fail", "rdma0: is a member of bond0", "a NIC in a bond", bonded),
    Case("RDMA-NODE-032", "pass", "16 NICs stand alone", "a bond of other NICs", other_bond),
    # RDMA-NODE-033: DEV-05
    Case(
        "RDMA-NODE-033",
        "fail",
        "0010:03:00.0: no driver is bound (class 0207)",
        "an InfiniBand function without a driver",
        lambda node: fleet.edit_function(node, "0010:03:00.0", driver=""),
        shape=GB200_IB,
    ),
    Case(
        "RDMA-NODE-033",
        "unknown",
        "/sys/bus/pci/devices: permission denied",
        "PCI not readable",
        lambda node: fleet.without(node, "pci", "/sys/bus/pci/devices", "permission denied"),
        also="NODE-019 unknown",
    ),
    Case("RDMA-NODE-033", "pass", "18 functions with a driver", "healthy"),
    # RDMA-NODE-034
    Case(
        "RDMA-NODE-034",
        "warn",
        "MT_0000000838: firmware 28.41.1000, the others have 28.43.2566",
        "firmware of one NIC is the odd one out",
        lambda node: fleet.edit_device(node, "mlx5_4", firmware="28.41.1000"),
    ),
    Case(
        "RDMA-NODE-034",
        "skip",
        "No RDMA NIC of this node tells a firmware version",
        "no firmware version",
        lambda node: replace(
            node, devices=tuple([replace(device, firmware="") for device in node.devices or ()])
        ),
    ),
    Case("RDMA-NODE-034", "pass", "Same firmware as the pool", "healthy"),
    # RDMA-NODE-035: F7, F12
    Case(
        "RDMA-NODE-035",
        "fail",
        "rule 1000: from 10.140.77.19 lookup 105: uses table 105",
        "a rule of another program uses table 105",
        lambda node: fleet.add_rules(node, "1000: from 10.140.77.19 lookup 105"),
    ),
    Case(
        "RDMA-NODE-035",
        "fail",
        "route 172.20.0.0/16 dev eth0 table 100: stands in table 100",
        "a route of another program in table 100",
        lambda node: fleet.add_routes(node, "172.20.0.0/16 dev eth0 table 100"),
    ),
    Case(
        "RDMA-NODE-035",
        "unknown",
        "rtnetlink: operation not permitted",
        "routes not readable",
        lambda node: fleet.without(
            replace(node, rules=None), "routes", "rtnetlink", "operation not permitted"
        ),
        also="NODE-036 unknown RANGE-010 unknown",
    ),
    Case(
        "RDMA-NODE-035",
        "pass",
        "Tables 100 to 115 are free",
        "table 116 is nobody's business",
        lambda node: fleet.add_routes(node, "172.20.0.0/16 dev eth0 table 116"),
    ),
    # RDMA-NODE-036: F90, DEV-08
    Case(
        "RDMA-NODE-036",
        "warn",
        "rdma2: IPv6 default route (proto ra)",
        "router advertisements on an IPv4 fabric",
        lambda node: fleet.add_routes(node, "::/0 dev rdma2 via fe80::1 proto ra metric 1024"),
    ),
    Case("RDMA-NODE-036", "skip", "On an IPv6 fabric", "an IPv6 fabric", shape=GB200_V3),
    Case(
        "RDMA-NODE-036",
        "pass",
        "No IPv6 default route",
        "an IPv6 default route over the uplink",
        lambda node: fleet.add_routes(node, "::/0 dev eth0 via fe80::1 proto ra"),
    ),
    # RDMA-NODE-037: F111
    Case(
        "RDMA-NODE-037",
        "warn",
        "rdma0c: ipvlan child of rdma0 on the host",
        "a child of a NIC on the host",
        lambda node: fleet.add_links(node, Link("rdma0c", "ipvlan", mtu=4220, state="down", parent="rdma0")),
    ),
    Case(
        "RDMA-NODE-037",
        "warn",
        "3fa91c07: ipvlan child of",
        "a temporary name of the driver",
        lambda node: fleet.add_links(node, Link("3fa91c07", "ipvlan", mtu=4220, state="down")),
    ),
    Case(
        "RDMA-NODE-037",
        "pass",
        "No left-over child",
        "an ipvlan of the uplink",
        lambda node: fleet.add_links(node, Link("ipvl0", "ipvlan", mtu=9000, state="up", parent="eth0")),
    ),
    # RDMA-NODE-038
    Case(
        "RDMA-NODE-038",
        "warn",
        "ip filter INPUT: drop: udp dport 4791 drop",
        "the packet filter drops RoCE v2",
        firewall(DROP),
    ),
    Case(
        "RDMA-NODE-038",
        "warn",
        "inet filter input: drop: policy drop",
        "the policy of a chain drops RoCE v2",
        firewall(ACCEPT, POLICY),
    ),
    Case(
        "RDMA-NODE-038",
        "pass",
        "Nothing drops UDP 4791",
        "accepted before it is dropped",
        firewall(ACCEPT, DROP),
    ),
    Case(
        "RDMA-NODE-038",
        "unknown",
        "nftables: operation not permitted",
        "the packet filter is not readable",
        lambda node: fleet.without(node, "firewall", "nftables", "operation not permitted"),
    ),
]
