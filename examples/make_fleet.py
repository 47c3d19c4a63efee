# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Write the example fleet to ``examples/fleet/``: one file a node, always the same bytes.

The nodes are made, not recorded: healthy ones of each shape, and on some of them one fault that happens in practice.
What is wrong with which node stands in README.md.

Usage: python examples/make_fleet.py [DIRECTORY]
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests" / "support"))

import paths  # noqa: E402

paths.make_importable()

from ansible_collections.rdma.k8s.plugins.module_utils.core.checks.judge import NodeInput  # noqa: E402
from ansible_collections.rdma.k8s.plugins.module_utils.core.snapshot import (  # noqa: E402
    ModuleOption,
    NodeSnapshot,
    RdmaSystem,
)
from ansible_collections.rdma.k8s.tests.support import fleet, recordings  # noqa: E402

H100, GB200_IB, GB200_V3 = "BM.GPU.H100.8", "BM.GPU.GB200.4", "BM.GPU.GB200-v3.4"
OPTIMIZED = "BM.Optimized3.36"
HPC_SUBNET = "10.140.2.0/24"


def h100(number: int, subnet: str = fleet.SUBNET, position: int = 0) -> NodeSnapshot:
    """A healthy H100 node; its position in the subnet follows from its number unless it is given."""
    return fleet.node(
        H100, position or number, "gpu-%02d" % number, subnet=subnet, features_file=number % 3 != 0
    )


def exclusive_mode(node: NodeSnapshot) -> NodeSnapshot:
    """Somebody followed a guide for SR-IOV: the mode is exclusive, now and at the next boot."""
    option = ModuleOption("/etc/modprobe.d/ib_core.conf", "netns_mode", "0", 1, fleet.BOOT_TIME - 7200)
    return replace(node, rdma=RdmaSystem("exclusive", "N", True), module_options=(option,))


def port_down(node: NodeSnapshot, name: str) -> NodeSnapshot:
    """The cable is out: the RDMA port is down, the interface has no carrier."""
    node = fleet.edit_port(node, name, state="DOWN", phys_state="Disabled")
    return fleet.edit_link(node, name, operstate="down")


def small_mtu(node: NodeSnapshot, name: str) -> NodeSnapshot:
    """A network configuration of the image came after OCA's; the RDMA MTU followed the interface."""
    node = fleet.edit_link(node, name, mtu=1500)
    return fleet.edit_port(node, name, active_mtu=1024)


def not_configured(node: NodeSnapshot, name: str) -> NodeSnapshot:
    """The agent stopped half-way: the NIC has a link-local address only, and no GID of an IPv4 address."""
    link = next(link for link in node.links or () if link.name == name)
    node = fleet.edit_link(
        node, name, addresses=tuple(text for text in link.addresses if text.startswith("fe80"))
    )
    gids = fleet.device_of(node, name).ports[0].gids or ()
    node = fleet.edit_port(node, name, gids=gids[:1])
    parent = link.addresses[0].partition("/")[0]
    node = replace(
        node,
        routes=tuple(route for route in node.routes or () if route.dev != name),
        rules=tuple(rule for rule in node.rules or () if rule.src != parent),
    )
    return fleet.edit_oca(node, configure_state='{"state":"running"}')


def old_firmware(node: NodeSnapshot, version: str) -> NodeSnapshot:
    """All NICs of the fabric were left out of an update."""
    for name in fleet.names(node):
        node = fleet.edit_device(node, fleet.device_of(node, name).name, firmware=version)
    return node


def without_peer_memory(node: NodeSnapshot) -> NodeSnapshot:
    """The GPU driver was updated, nvidia_peermem was not loaded again."""
    return replace(
        node, modules={name: text for name, text in node.modules.items() if name != "nvidia_peermem"}
    )


def without_network_file(node: NodeSnapshot) -> NodeSnapshot:
    """OCA uses its built-in 192.168.0.0/16, and nothing tells the driver so (F56)."""
    return fleet.edit_oca(node, rdma_network="")


def hpc(number: int, network: str) -> NodeSnapshot:
    """A node with one RDMA NIC that keeps the name of the operating system, known by its address (F131)."""
    name = "hpc-%02d" % number
    return fleet.node(OPTIMIZED, number, name, subnet=HPC_SUBNET, oca_network=network, island="isl4")


def nodes() -> list[NodeInput]:
    """The whole fleet, by name."""
    snapshots = [
        h100(1),
        h100(2),
        exclusive_mode(h100(3)),
        fleet.swap_nics(h100(4), "rdma5", "rdma6"),
        port_down(h100(5), "rdma9"),
        fleet.add_routes(h100(6), "10.209.0.0/24 dev eth0 via 10.140.64.1"),
        small_mtu(h100(8), "rdma11"),
        h100(9, subnet="10.140.96.0/19", position=2),
        not_configured(h100(10), "rdma4"),
        old_firmware(h100(11), "28.41.1000"),
        without_peer_memory(h100(12)),
        *[fleet.node(GB200_IB, number, "gb200-%02d" % number, island="isl2") for number in (1, 2)],
        old_firmware(fleet.node(GB200_IB, 3, "gb200-03", island="isl2"), "28.39.1002"),
        fleet.node(GB200_V3, 1, "gb200-v3-01", island="isl3"),
        fleet.edit_port(
            fleet.node(GB200_V3, 2, "gb200-v3-02", island="isl3"), "rdma3", rate="200 Gb/sec (4X HDR)"
        ),
        hpc(1, fleet.OCA_NETWORK),
        hpc(2, fleet.LEGACY_NETWORK),
        without_network_file(hpc(3, fleet.LEGACY_NETWORK)),
    ]
    found = [NodeInput(snapshot.name, snapshot) for snapshot in snapshots]
    found.append(
        NodeInput("gpu-07", reason="ssh: connect to host 10.140.77.26 port 22: connection timed out")
    )
    return sorted(found, key=lambda entry: entry.name)


def write(directory: Path) -> list[str]:
    """Write the fleet in the form of a recording, remove files of nodes that it does not have; return their names."""
    return recordings.write(directory, nodes())


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "fleet"
    print("%d nodes in %s" % (len(write(target)), target))  # noqa: T201
