# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Area NODE: modules with effect, boot over the network, virtual functions, locked memory. Private to rdma.k8s."""

from __future__ import annotations

from .. import kernel_modules
from ..finding import ERROR, WARNING
from ..kernel_modules import Loaded, PeerEvidence
from ..snapshot import PeerMemory
from .context import Node
from .registry import (
    Outcome,
    bad,
    failed,
    listed,
    node_check,
    ok,
    passed,
    rolled_up,
    skipped,
    unclear,
    unknown,
)

INFINITY = "infinity"


@node_check(
    "RDMA-NODE-007",
    "NICs reach the memory of the GPUs",
    ERROR,
    "Load nvidia_peermem after both drivers, or use the open GPU driver, which needs no module.",
    needs=("slow.peer_memory",),
    evidence=("/proc/modules", "/sys/kernel/mm/memory_peers", "/proc/driver/nvidia/version"),
)
def peer_memory(node: Node) -> Outcome:
    """DEV-35, S41: a module that is loaded and that nothing uses does nothing."""
    found = node.slow.peer_memory or PeerMemory()
    if not found.driver and found.uses is None:
        return skipped("No GPU driver of NVIDIA is loaded.")
    loaded = {name: Loaded(0, (kernel_modules.PEER_MEMORY,)) for name in found.users}
    if found.uses is not None:
        loaded[kernel_modules.PEER_MEMORY] = Loaded(found.uses)
    evidence = PeerEvidence(loaded, node.snapshot.host.kernel, found.registered, found.open_driver)
    effect = kernel_modules.peer_memory(evidence)
    sentence = "nvidia_peermem: %s." % effect.reason
    if effect.usable is None:
        return unknown(sentence)
    if not effect.usable:
        return failed(sentence, expected="in use by the RDMA stack, or a dma-buf path", observed="no effect")
    return passed(sentence)


@node_check(
    "RDMA-NODE-008",
    "The initramfs has the driver of the NIC that the root file system is reached by",
    WARNING,
    "Add the driver to the initramfs (dracut --add-drivers, or /etc/initramfs-tools/modules) and build it anew.",
    needs=("slow.network_boot",),
    evidence=("/proc/cmdline", "/sys/firmware/ibft", "/boot"),
)
def network_boot(node: Node) -> Outcome:
    """DEV-36: without the driver the node does not find its root, and does not come back from a reboot."""
    boot, images = node.slow.network_boot, node.slow.initramfs
    if boot is None or not boot.how:
        return skipped("The root file system is not on the network.")
    if not boot.driver:
        return unknown(
            "The root file system is on the network (%s), and the driver of its NIC %s cannot be told."
            % (boot.how, boot.nic or "(which is not known)")
        )
    if boot.builtin:
        return passed("%s, the driver of %s, is part of the kernel." % (boot.driver, boot.nic))
    if images is None:
        return unknown(node.why_not("/boot", "slow"))
    details = []
    for image in images:
        if image.drivers is None:
            details.append(unclear(image.image, "its drivers were not looked for"))
        elif boot.driver in image.drivers:
            details.append(ok(image.image))
        else:
            problem = "%s, the driver of %s, is not inside" % (boot.driver, boot.nic)
            details.append(bad(image.image, problem, boot.driver, listed(image.drivers) or "none"))
    return rolled_up(
        details,
        "%%d images have %s, the driver of %s." % (boot.driver, boot.nic),
        "There is no initramfs of an installed kernel.",
        as_status="warn",
    )


@node_check(
    "RDMA-NODE-019",
    "No virtual function has a larger MTU than its physical one",
    ERROR,
    "Raise the MTU of the physical function first, then that of its virtual functions.",
    needs=("links", "pci"),
    evidence=("/sys/class/net/*/mtu", "/sys/bus/pci/devices/*/physfn"),
)
def virtual_mtu(node: Node) -> Outcome:
    """S36, DEV-20: frames of the virtual function that do not fit the physical one are dropped without a word."""
    links = {link.pci: link for link in node.snapshot.links or () if link.pci}
    wanted, rdma = node.policy.mtu, {nic.name for nic in node.nics}
    details = []
    for function in node.snapshot.pci or ():
        link, above = links.get(function.address), links.get(function.vf_of)
        if not function.vf_of or link is None or above is None:
            continue  # a virtual function that a pod or a virtual machine has is not on the host
        if link.mtu is None or above.mtu is None:
            details.append(unclear(link.name, "the MTU could not be read"))
        elif link.mtu > above.mtu:
            problem = "MTU %d, its physical function %s has %d" % (link.mtu, above.name, above.mtu)
            details.append(bad(link.name, problem, "at most %d" % above.mtu, str(link.mtu)))
        elif wanted is not None and link.mtu != wanted and rdma & {link.name, above.name}:
            details.append(bad(link.name, "MTU %d, not as wanted" % link.mtu, str(wanted), str(link.mtu)))
        else:
            details.append(ok(link.name))
    return rolled_up(
        details, "%d virtual functions within the MTU of theirs.", "The host has no virtual function."
    )


@node_check(
    "RDMA-NODE-030",
    "Container runtimes hand on an unlimited locked memory",
    ERROR,
    "Set LimitMEMLOCK=infinity in a drop-in of the runtime's unit, then restart the runtime.",
    needs=("slow.memlock",),
    evidence=("systemctl", "/proc/PID/limits"),
)
def memlock(node: Node) -> Outcome:
    """RDMA pins memory, and a container inherits the limit of its runtime (WL-009)."""
    details = []
    for unit in node.slow.memlock or ():
        if not unit.running:
            continue  # installed and not started: nothing inherits from it
        if unit.running != INFINITY:
            later = "" if unit.configured != INFINITY else ", infinity from its next start"
            details.append(bad(unit.unit, "runs with %s%s" % (unit.running, later), INFINITY, unit.running))
        elif unit.configured != INFINITY:
            problem = "is configured with %s" % (unit.configured or "no limit that systemd tells")
            details.append(bad(unit.unit, problem, INFINITY, unit.configured))
        else:
            details.append(ok(unit.unit))
    return rolled_up(details, "%d runtimes without a limit.", "No container runtime that is known runs.")
