# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Cases of the area OCA."""

from __future__ import annotations

from dataclasses import replace

from ansible_collections.rdma.k8s.plugins.module_utils.core.snapshot import NodeSnapshot
from ansible_collections.rdma.k8s.tests.support import fleet
from ansible_collections.rdma.k8s.tests.support.cases import GB200_IB, GB200_V3, OPTIMIZED, Case

AUTHENTICATION, CONFIGURATION = "Compute HPC RDMA Authentication", "Compute HPC RDMA Auto-Configuration"
BOTH = {AUTHENTICATION: "RUNNING", CONFIGURATION: "RUNNING"}


def network_file(text: str) -> fleet.Edit:
    return lambda node: fleet.edit_oca(node, directory="present", rdma_network=text)


def features_file(text: str) -> fleet.Edit:
    return lambda node: fleet.edit_oca(node, directory="present", rdma_features_enable=text)


def settings(network: str = fleet.OCA_NETWORK, **changes: object) -> fleet.Edit:
    return network_file(fleet.oca_network_file(network, **changes))


def plugins(states: object) -> fleet.Edit:
    return lambda node: fleet.edit_oca(node, plugins=states)


def version(text: object) -> fleet.Edit:
    return lambda node: fleet.edit_oca(node, agent_version=text)


def state(text: object) -> fleet.Edit:
    return lambda node: fleet.edit_oca(node, configure_state=text)


def directory(text: object) -> fleet.Edit:
    return lambda node: fleet.edit_oca(node, directory=text, rdma_network="", rdma_features_enable="")


def no_address(node: NodeSnapshot) -> NodeSnapshot:
    """OCA has not come to rdma4 yet: link-local only (F35)."""
    return fleet.edit_link(node, "rdma4", addresses=("fe80::1/64",))


def legacy_addresses(node: NodeSnapshot) -> NodeSnapshot:
    """F56, DEV-34: no file, so OCA took its built-in network; the driver assumes another."""
    return fleet.edit_link(node, "rdma0", addresses=("192.168.0.51/16",))


def legacy_without_file(node: NodeSnapshot) -> NodeSnapshot:
    """F131: the address of the legacy network on a NIC with a name of the operating system, and no file."""
    return fleet.edit_link(node, "ens800f0np0", addresses=("192.168.0.51/16",))


def two_addresses(node: NodeSnapshot) -> NodeSnapshot:
    """F36: of two OCA addresses the first counts for the layout, although the right one is there too (F35)."""
    return fleet.edit_link(node, "rdma6", addresses=("10.224.0.9/12", "10.224.205.19/12"))


FLAGS = ("overwrite_config_files", "single_subnet", "modify_subnet", "modify_arp")

CASES = [
    # RDMA-OCA-001: F54, F56
    Case(
        "RDMA-OCA-001",
        "warn",
        "The directory is there and cannot be read: the driver would assume 10.224.0.0/12",
        "the directory is not readable",
        lambda node: fleet.edit_oca(
            node, directory="unreadable", rdma_network=None, rdma_features_enable=None
        ),
        also="OCA-002 unknown OCA-003 unknown OCA-004 unknown OCA-005 unknown OCA-006 unknown",
    ),
    Case("RDMA-OCA-001", "unknown", "oci-hpc-configure", "the directory was not looked at", directory(None)),
    Case("RDMA-OCA-001", "pass", "does not exist; the defaults apply", "no directory", directory("absent")),
    # RDMA-OCA-002: F51, F52
    Case(
        "RDMA-OCA-002",
        "fail",
        "JSON",
        "the file is cut off",
        network_file('{"rdma-network":[{"default'),
        also="",
    ),
    Case(
        "RDMA-OCA-002", "fail", "no entry", "no entries", network_file('{"version":"1.0","rdma-network":[]}')
    ),
    Case(
        "RDMA-OCA-002",
        "fail",
        "rdma_network",
        "a number for a network",
        network_file('{"rdma-network":[{"default-settings":{"rdma_network":10}}]}'),
    ),
    Case("RDMA-OCA-002", "skip", "does not exist", "no file"),
    Case(
        "RDMA-OCA-002", "pass", "rdma_network is 10.224.0.0/12", "the default network in a file", settings()
    ),
    # RDMA-OCA-003: F52
    Case(
        "RDMA-OCA-003",
        "fail",
        "10.224.13.0/12",
        "a network with host bits",
        settings("10.224.13.0/12", netmask=None, override_netconfig_netmask=None),
    ),
    Case(
        "RDMA-OCA-003",
        "fail",
        "10.224.0.0",
        "a network without a length",
        network_file('{"rdma-network":[{"default-settings":{"rdma_network":"10.224.0.0"}}]}'),
    ),
    Case("RDMA-OCA-003", "skip", "does not exist", "no file"),
    Case("RDMA-OCA-003", "pass", "10.224.0.0/12", "a network in a file", settings()),
    # RDMA-OCA-004: F55
    Case(
        "RDMA-OCA-004",
        "fail",
        "netmask: is '255.255.0.0', 10.224.0.0/12 needs 255.240.0.0",
        "a netmask of another length",
        settings(netmask="255.255.0.0"),
    ),
    Case(
        "RDMA-OCA-004",
        "skip",
        "sets no netmask",
        "no netmask",
        settings(netmask=None, override_netconfig_netmask=None),
    ),
    Case("RDMA-OCA-004", "pass", "Netmask 255.240.0.0", "the right netmask", settings()),
    # RDMA-OCA-005: F55
    Case("RDMA-OCA-005", "warn", "modify_arp: is false", "OCA leaves ARP alone", settings(modify_arp=False)),
    Case(
        "RDMA-OCA-005", "skip", "sets none of the switches", "no switches", settings(**dict.fromkeys(FLAGS))
    ),
    Case("RDMA-OCA-005", "pass", "4 switches as documented", "the documented switches", settings()),
    # RDMA-OCA-006: F53, F59, F142
    Case(
        "RDMA-OCA-006",
        "fail",
        "OCA uses topology addressing",
        "topology based addressing",
        features_file('{"ipv4_topology_based_rdma_ips":true}'),
    ),
    Case(
        "RDMA-OCA-006",
        "fail",
        "OCA uses host-serial addressing",
        "host-serial addressing",
        features_file('{"host_serial_based_rdma_ips":true,"ipv4_topology_based_rdma_ips":true}'),
    ),
    Case(
        "RDMA-OCA-006",
        "fail",
        "host_serial_based_rdma_ips",
        "a text for a boolean",
        features_file('{"host_serial_based_rdma_ips":"no"}'),
    ),
    Case(
        "RDMA-OCA-006",
        "unknown",
        "rdma_features_enable.json: input/output error",
        "the features file is not readable",
        lambda node: fleet.without(
            fleet.edit_oca(node, rdma_features_enable=None),
            "namespaces",
            "/etc/oracle-cloud-agent/plugins/oci-hpc/oci-hpc-configure/rdma_features_enable.json",
            "input/output error",
        ),
    ),
    Case("RDMA-OCA-006", "skip", "judged by RDMA-OCA-007", "no features file", features_file=False),
    Case("RDMA-OCA-006", "pass", "Classic addressing", "other keys only", features_file('{"other":true}')),
    # RDMA-OCA-007: F36, F142
    Case(
        "RDMA-OCA-007",
        "fail",
        "rdma6 holds 10.224.0.9, expected 10.224.205.19",
        "a wrong address before the right one",
        two_addresses,
        features_file=False,
    ),
    Case(
        "RDMA-OCA-007",
        "unknown",
        "10.224.0.0/12 yet",
        "no NIC has an OCA address",
        lambda node: fleet.edit_links(node, addresses=()),
        features_file=False,
        also="OCA-012 fail OCA-015 unknown",
    ),
    Case("RDMA-OCA-007", "skip", "The address mode is known (classic)", "a features file"),
    Case("RDMA-OCA-007", "skip", "The fabric is ipv6", "an IPv6 fabric", shape=GB200_V3, features_file=False),
    Case("RDMA-OCA-007", "pass", "16 NICs follow the layout", "the mode is not known", features_file=False),
    # RDMA-OCA-008: DEV-12, number by number
    Case(
        "RDMA-OCA-008",
        "fail",
        "The agent has version 1.9.0",
        "1.9.0 is older than 1.39.0",
        version("1.9.0"),
        settings={"agent_version": "1.39.0"},
    ),
    Case(
        "RDMA-OCA-008",
        "pass",
        "Version 1.100.0",
        "1.100.0 is newer than 1.39.0",
        version("1.100.0"),
        settings={"agent_version": "1.39.0"},
    ),
    Case(
        "RDMA-OCA-008",
        "pass",
        "Version 1.39.0-2",
        "a package revision behind",
        version("1.39.0-2"),
        settings={"agent_version": "1.39.0"},
    ),
    Case(
        "RDMA-OCA-008",
        "unknown",
        "version is not known",
        "no version",
        version(""),
        settings={"agent_version": "1.39.0"},
    ),
    Case("RDMA-OCA-008", "skip", "setting 'agent_version'", "no minimum"),
    # RDMA-OCA-009: F58, DEV-10
    Case(
        "RDMA-OCA-009",
        "fail",
        "Compute HPC RDMA Auto-Configuration: is not enabled",
        "a plugin is not enabled",
        plugins({AUTHENTICATION: "RUNNING"}),
    ),
    Case(
        "RDMA-OCA-009",
        "fail",
        "Compute HPC RDMA Auto-Configuration: is enabled and does not run (STOPPED)",
        "a plugin is stopped",
        plugins({AUTHENTICATION: "RUNNING", CONFIGURATION: "STOPPED"}),
    ),
    Case(
        "RDMA-OCA-009",
        "fail",
        "Compute HPC RDMA Authentication: is disabled",
        "a plugin is disabled",
        plugins({**BOTH, AUTHENTICATION: "DISABLED"}),
    ),
    Case("RDMA-OCA-009", "skip", "list the agent's plugins", "no list of plugins", plugins(None)),
    Case("RDMA-OCA-009", "pass", "Both plugins are on", "both plugins run", plugins(BOTH)),
    # RDMA-OCA-010
    Case("RDMA-OCA-010", "fail", 'state is "running"', "not finished", state('{"state":"running"}')),
    Case("RDMA-OCA-010", "fail", "is not JSON", "half-written", state('{"sta')),
    Case(
        "RDMA-OCA-010",
        "unknown",
        "oci-hpc-rdma-configure.json: permission denied",
        "the state is not readable",
        lambda node: fleet.without(
            fleet.edit_oca(node, configure_state=None),
            "namespaces",
            "/var/run/oci-hpc/oci-hpc-rdma-configure.json",
            "permission denied",
        ),
    ),
    Case("RDMA-OCA-010", "skip", "wrote no state file", "no state file", state("")),
    Case("RDMA-OCA-010", "pass", "finished", "healthy"),
    # RDMA-OCA-012: F13, F35, DEV-10
    Case(
        "RDMA-OCA-012",
        "fail",
        "rdma4 holds no IPv4 address yet, expected 10.224.141.19",
        "OCA has not come to one NIC",
        no_address,
        also="OCA-015 unknown",
    ),
    Case(
        "RDMA-OCA-012",
        "fail",
        "rdma4 holds 10.224.141.20, expected 10.224.141.19",
        "an address that is off by one",
        lambda node: fleet.edit_link(node, "rdma4", addresses=("10.224.141.20/12",)),
    ),
    Case(
        "RDMA-OCA-012",
        "unknown",
        "imds:/vnics/: timed out",
        "the VNIC is not known",
        lambda node: fleet.without(
            fleet.edit_imds(node, vnics=None), "namespaces", "imds:/vnics/", "timed out"
        ),
        also="IMDS-001 fail IMDS-003 unknown RANGE-003 unknown RANGE-004 unknown RANGE-012 unknown RANGE-013 unknown "
        "RANGE-018 unknown",
    ),
    Case("RDMA-OCA-012", "skip", "The fabric is infiniband", "native InfiniBand", shape=GB200_IB),
    Case("RDMA-OCA-012", "pass", "16 NICs have their address", "healthy"),
    # RDMA-OCA-015: F56, DEV-34
    Case(
        "RDMA-OCA-015",
        "fail",
        "rdma0: 192.168.0.51 is outside 10.224.0.0/12 (the agent's built-in 192.168.0.0/16)",
        "OCA's built-in network without a file",
        legacy_addresses,
        also="OCA-012 fail",
    ),
    Case(
        "RDMA-OCA-015",
        "fail",
        "ens800f0np0: 192.168.0.51 is outside 10.224.0.0/12",
        "OCA's built-in network on a NIC without the name",
        legacy_without_file,
        shape=OPTIMIZED,
        also="NODE-012 fail OCA-012 fail RANGE-005 unknown RANGE-013 unknown",
    ),
    Case("RDMA-OCA-015", "skip", "The fabric is ipv6", "an IPv6 fabric", shape=GB200_V3),
    Case("RDMA-OCA-015", "pass", "All addresses are in 10.224.0.0/12", "healthy"),
    Case(
        "RDMA-OCA-015",
        "unknown",
        "Subset 'oca' was not gathered",
        "OCA was not looked at",
        lambda node: replace(node, oca=None, subsets=tuple([name for name in node.subsets if name != "oca"])),
        also="OCA-001 unknown OCA-002 unknown OCA-003 unknown OCA-004 unknown OCA-005 unknown OCA-006 unknown "
        "OCA-007 unknown OCA-008 unknown OCA-009 unknown OCA-010 unknown RANGE-006 unknown",
    ),
]
