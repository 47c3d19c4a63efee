# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Cases of the area NODE about GPU memory, boot over the network, virtual functions and locked memory."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ansible_collections.rdma.k8s.plugins.module_utils.core.snapshot import (
    Initramfs,
    NetworkBoot,
    NodeSnapshot,
    PciFunction,
    PeerMemory,
    ReadError,
    RuntimeLimit,
)
from ansible_collections.rdma.k8s.tests.support import fleet
from ansible_collections.rdma.k8s.tests.support.cases import Case

IMAGE, KERNEL = "/boot/initrd.img-6.8.0-1035-oracle", "6.8.0-1035-oracle"
ISCSI = "the firmware has an iSCSI boot table"
CONTAINERD = "containerd.service"


def peer(**values: Any) -> fleet.Edit:
    """GPU driver loaded; everything else as given."""
    return lambda node: fleet.edit_slow(node, peer_memory=PeerMemory(**{"driver": True, **values}))


def booted(driver: str, *drivers: str, nic: str = "eth0", builtin: bool = False) -> fleet.Edit:
    """The root is on iSCSI, over a NIC with this driver; what the image has of the drivers of the node."""
    boot = NetworkBoot(ISCSI, nic, driver, builtin)
    images = (Initramfs(IMAGE, KERNEL, drivers=drivers),)
    return lambda node: fleet.edit_slow(node, network_boot=boot, initramfs=images)


def not_listed(node: NodeSnapshot) -> NodeSnapshot:
    boot = NetworkBoot(ISCSI, "eth0", "mlx5_core", False)
    return fleet.edit_slow(node, network_boot=boot, initramfs=(Initramfs(IMAGE, KERNEL),))


def damaged(node: NodeSnapshot) -> NodeSnapshot:
    boot = NetworkBoot(ISCSI, "eth0", "mlx5_core", False)
    node = fleet.edit_slow(node, network_boot=boot, initramfs=None)
    return replace(node, errors=(*node.errors, ReadError("/boot/initrd.img", "it is damaged")))


def virtual(physical: int, mtu: int) -> fleet.Edit:
    """rdma0 gets a virtual function ``vf0``; both have these MTUs."""

    def edit(node: NodeSnapshot) -> NodeSnapshot:
        node = fleet.edit_link(node, "rdma0", mtu=physical)
        link = next(link for link in node.links or () if link.name == "rdma0")
        place = link.pci[:-1] + "7"
        function = PciFunction(place, "15b3:101e", "0200", "mlx5_core", 0, link.pci)
        virtual_link = replace(link, name="vf0", pci=place, mtu=mtu, addresses=(), mac="02:00:00:00:00:07")
        return replace(node, links=(*(node.links or ()), virtual_link), pci=(*(node.pci or ()), function))

    return edit


def limits(configured: str, running: str) -> fleet.Edit:
    return lambda node: fleet.edit_slow(node, memlock=(RuntimeLimit(CONTAINERD, configured, running),))


CASES = [
    # RDMA-NODE-007: DEV-35, S41
    Case(
        "RDMA-NODE-007",
        "fail",
        "is loaded, but nothing of the RDMA stack uses it, and there is no dma-buf path",
        "nvidia_peermem is loaded and idle",
        peer(uses=0, users=("nvidia",), open_driver=False),
    ),
    Case(
        "RDMA-NODE-007",
        "fail",
        "is not loaded, and there is no dma-buf path",
        "nvidia_peermem is not loaded",
        peer(open_driver=False),
    ),
    Case(
        "RDMA-NODE-007",
        "unknown",
        "does not say which one",
        "nothing tells which GPU driver it is",
        peer(uses=0),
    ),
    Case("RDMA-NODE-007", "pass", "it is in use (1)", "nvidia_peermem has a user", peer(uses=1)),
    Case(
        "RDMA-NODE-007",
        "pass",
        "hands out dma-bufs",
        "the open driver needs no module",
        peer(open_driver=True),
    ),
    Case(
        "RDMA-NODE-007",
        "skip",
        "No GPU driver",
        "the node has no GPU",
        lambda node: fleet.edit_slow(node, peer_memory=PeerMemory()),
    ),
    # RDMA-NODE-008: DEV-36
    Case(
        "RDMA-NODE-008",
        "warn",
        "mlx5_core, the driver of eth0, is not inside",
        "the boot NIC's driver is not in the initramfs",
        booted("mlx5_core", "bnxt_en"),
    ),
    Case(
        "RDMA-NODE-008", "unknown", "cannot be told", "the boot NIC's driver is not known", booted("", nic="")
    ),
    Case(
        "RDMA-NODE-008",
        "unknown",
        "were not looked for",
        "the image was read by an older release",
        not_listed,
    ),
    Case("RDMA-NODE-008", "pass", "1 images have", "the driver is inside", booted("mlx5_core", "mlx5_core")),
    Case(
        "RDMA-NODE-008",
        "pass",
        "is part of the kernel",
        "the driver is built in",
        booted("virtio_net", builtin=True),
    ),
    Case(
        "RDMA-NODE-008",
        "unknown",
        "/boot/initrd.img: it is damaged",
        "the initramfs cannot be read",
        damaged,
        also="NODE-004 unknown",
    ),
    Case(
        "RDMA-NODE-008",
        "skip",
        "no initramfs",
        "there is no image",
        lambda node: fleet.edit_slow(
            node, network_boot=NetworkBoot(ISCSI, "eth0", "mlx5_core"), initramfs=()
        ),
    ),
    # RDMA-NODE-019: S36, DEV-20
    Case(
        "RDMA-NODE-019",
        "fail",
        "MTU 4220, its physical function rdma0 has 1500",
        "the virtual function has a larger MTU",
        virtual(1500, 4220),
        also="NODE-017 fail",
    ),
    Case(
        "RDMA-NODE-019",
        "fail",
        "vf0: MTU 1500, not as wanted",
        "the virtual function has less than wanted",
        virtual(4220, 1500),
        settings={"mtu": 4220},
    ),
    Case(
        "RDMA-NODE-019",
        "pass",
        "1 virtual functions",
        "the physical function has more",
        virtual(9000, 4220),
        also="NODE-017 fail",
    ),
    # RDMA-NODE-030
    Case(
        "RDMA-NODE-030",
        "fail",
        "runs with 8388608",
        "the runtime has a limit of locked memory",
        limits("8388608", "8388608"),
    ),
    Case(
        "RDMA-NODE-030",
        "fail",
        "runs with 65536, infinity from its next start",
        "the runtime was not restarted",
        limits("infinity", "65536"),
    ),
    Case(
        "RDMA-NODE-030",
        "fail",
        "is configured with 65536",
        "the next start has a limit",
        limits("65536", "infinity"),
    ),
    Case("RDMA-NODE-030", "pass", "1 runtimes", "the runtime has no limit", limits("infinity", "infinity")),
    Case("RDMA-NODE-030", "skip", "No container runtime", "the runtime does not run", limits("65536", "")),
]
