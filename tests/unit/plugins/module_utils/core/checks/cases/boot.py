# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Cases of the area NODE about the initramfs and about reboots."""

from __future__ import annotations

from dataclasses import replace
from typing import Optional

from ansible_collections.rdma.k8s.plugins.module_utils.core.snapshot import (
    Initramfs,
    ModuleOption,
    NodeSnapshot,
    ReadError,
    RebootPlan,
)
from ansible_collections.rdma.k8s.tests.support import fleet
from ansible_collections.rdma.k8s.tests.support.cases import Case

IMAGE, KERNEL = "/boot/initrd.img-6.8.0-1035-oracle", "6.8.0-1035-oracle"
RDMA_CONF = "/etc/modprobe.d/rdma.conf"
PLAN = "netns_mode exclusive"


def inside(*options: ModuleOption, module: bool = True) -> fleet.Edit:
    """The image of the running kernel; the node's file says shared."""
    return lambda node: fleet.edit_slow(node, initramfs=(Initramfs(IMAGE, KERNEL, module, options),))


def option(value: str, name: str = "netns_mode", source: str = RDMA_CONF) -> ModuleOption:
    return ModuleOption(source, name, value, 1)


def other_kernel(node: NodeSnapshot) -> NodeSnapshot:
    """The running kernel's image is right, the one of the kernel that boots next is not."""
    images = (
        Initramfs(IMAGE, KERNEL, True, (option("1"),)),
        Initramfs("/boot/initrd.img-6.8.0-1040-oracle", "6.8.0-1040-oracle", True, (option("0"),)),
    )
    return fleet.edit_slow(node, initramfs=images)


def unread(field: str, source: str) -> fleet.Edit:
    def edit(node: NodeSnapshot) -> NodeSnapshot:
        node = fleet.edit_slow(node, **{field: None})
        return replace(node, errors=(ReadError(source, "it is damaged"),))

    return edit


def asked(*boots: str, second: Optional[RebootPlan] = None) -> fleet.Edit:
    plan = RebootPlan(PLAN, "The mode cannot be switched.", boots)
    return lambda node: fleet.edit_slow(node, reboots=(plan, second) if second else (plan,))


CASES = [
    # RDMA-NODE-004: S21
    Case("RDMA-NODE-004", "pass", "", "the image has the option", inside(option("1"))),
    Case(
        "RDMA-NODE-004",
        "fail",
        "it gives exclusive mode, the files say shared",
        "the image has the old option",
        inside(option("0")),
    ),
    Case(
        "RDMA-NODE-004",
        "fail",
        "its options of ib_core are not those of the files",
        "the image lacks the file and gives the default",
        inside(),
    ),
    Case(
        "RDMA-NODE-004",
        "fail",
        "are not those of the files",
        "the image has another option",
        inside(option("1"), option("1024", "recv_queue_size")),
    ),
    Case(
        "RDMA-NODE-004",
        "fail",
        "it gives no valid mode",
        "the image has a text that the kernel refuses",
        inside(option("maybe")),
    ),
    Case("RDMA-NODE-004", "fail", "6.8.0-1040", "the image of another kernel is stale", other_kernel),
    Case(
        "RDMA-NODE-004",
        "skip",
        "ib_core is in no initramfs",
        "the image has no ib_core",
        inside(option("0"), module=False),
    ),
    Case("RDMA-NODE-004", "skip", "no initramfs", "the node boots without an image", fleet.with_slow),
    Case(
        "RDMA-NODE-004",
        "unknown",
        "it is damaged",
        "an image cannot be read",
        unread("initramfs", IMAGE),
    ),
    Case("RDMA-NODE-004", "skip", "not asked for", "the images are not read", lambda node: node),
    # RDMA-NODE-005: DEV-01
    Case("RDMA-NODE-005", "pass", "No reboot is owed", "no plan is open", fleet.with_slow),
    Case("RDMA-NODE-005", "pass", "2 of 2 reboots", "two reboots were asked for", asked("a", "b")),
    Case(
        "RDMA-NODE-005",
        "fail",
        "netns_mode exclusive (3): The mode cannot be switched.",
        "a third reboot was asked for",
        asked("a", "b", "c"),
    ),
    Case(
        "RDMA-NODE-005",
        "fail",
        "firmware (4): Why.",
        "a second plan reboots for ever",
        asked("a", second=RebootPlan("firmware", "Why.", ("a", "b", "c", "d"))),
    ),
    Case(
        "RDMA-NODE-005",
        "unknown",
        "it is damaged",
        "the record of reboots cannot be read",
        unread("reboots", "/var/lib/rdma-k8s/reboots.json"),
    ),
]
