# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Area NODE: what the next boot finds, and reboots that do not help. Private to rdma.k8s: it may change any time."""

from __future__ import annotations

from collections.abc import Iterable

from .. import netns
from ..finding import ERROR, WARNING
from ..snapshot import ModuleOption
from .context import Node
from .registry import Outcome, bad, failed, listed, node_check, ok, passed, rolled_up, skipped

COMMAND_LINE = "/proc/cmdline"
BUDGET = 2
"""Reboots that may be asked for in one plan (DEV-01)."""


@node_check(
    "RDMA-NODE-004",
    "The initramfs gives ib_core the options that the files give",
    WARNING,
    "Build the initramfs anew: update-initramfs -u on Ubuntu and Debian, dracut --force on Oracle Linux.",
    needs=("slow.initramfs", "module_options"),
    evidence=("/boot", "/etc/modprobe.d"),
)
def initramfs(node: Node) -> Outcome:
    """S21: where ib_core is loaded from the initramfs, only the files inside it count."""
    images = node.slow.initramfs or ()
    if not images:
        return skipped("There is no initramfs of an installed kernel.")
    inside = [image for image in images if image.has_module]
    if not inside:
        return skipped("ib_core is in no initramfs, so the files of the root file system count.")
    options = node.snapshot.module_options or ()
    wanted = [option for option in options if option.source != COMMAND_LINE]
    details = []
    for image in inside:
        if _said(image.options) == _said(wanted):
            details.append(ok(image.image))
        else:
            details.append(
                bad(image.image, _difference(image.options, wanted), _words(wanted), _words(image.options))
            )
    return rolled_up(details, "%d images have the options of the node.", "")


def _said(options: Iterable[ModuleOption]) -> list[tuple[str, str, str]]:
    """Settings by the name of their file: a directory can be reached by two paths."""
    return [(option.source.rpartition("/")[2], option.option, option.value) for option in options]


def _words(options: Iterable[ModuleOption]) -> str:
    words = ["%s: %s=%s" % entry for entry in _said(options)]
    return listed(words) if words else "no option"


def _difference(inside: Iterable[ModuleOption], wanted: Iterable[ModuleOption]) -> str:
    modes = [
        netns.mode_of_places([netns.Place(o.source, o.value) for o in options if o.option == netns.OPTION])
        for options in (inside, wanted)
    ]
    if modes[0] != modes[1]:
        return "it gives %s mode, the files say %s" % (modes[0] or "no valid", modes[1] or "no valid")
    return "its options of ib_core are not those of the files"


@node_check(
    "RDMA-NODE-005",
    "No plan has asked for more than two reboots",
    ERROR,
    "Stop rebooting. Look for what sets the option otherwise or drops it: an agent, the boot loader, the initramfs.",
    needs=("slow.reboots",),
    evidence=("/var/lib/rdma-k8s/reboots.json",),
)
def reboots(node: Node) -> Outcome:
    """DEV-01, S24: an owner that asks for a reboot again and again does not look at what the last one brought."""
    plans = node.slow.reboots or ()
    spent = [plan for plan in plans if len(plan.boots) > BUDGET]
    if spent:
        told = ["%s (%d): %s" % (plan.plan, len(plan.boots), plan.reason) for plan in spent]
        return failed(
            "Reboots do not help the plan %s" % " ".join(told),
            expected="at most %d" % BUDGET,
            observed=str(max(len(plan.boots) for plan in spent)),
        )
    if plans:
        return passed("%s: %d of %d reboots." % (plans[0].plan, len(plans[0].boots), BUDGET))
    return passed("No reboot is owed.")
