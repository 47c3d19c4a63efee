# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read the driver of NVIDIA's NICs: as it runs, and as it is installed. Private to rdma.k8s: it may change any time."""

from __future__ import annotations

from typing import Optional

from ..core import nic_driver as core
from ..core.errors import RdmaError
from . import commands, sysfs
from .files import Root

LIMIT = 30.0
"""Seconds for one modinfo."""
_NOT_FOUND = 1
"""Exit code of modinfo for a module that the kernel does not have."""


def modules(root: Root) -> list[core.Module]:
    """Both modules.

    :raises RdmaError: ``tool_missing``, ``command_failed``, ``command_timeout``.
    """
    return [_module(root, name) for name in core.MODULES]


def functions(root: Root) -> list[core.Function]:
    """The physical functions; virtual ones may belong to pods, with all that they have.

    :raises RdmaError: ``value_unreadable``: the bus cannot be read.
    """
    found = sysfs.functions(root)
    if found is None:
        raise RdmaError(
            "value_unreadable",
            "%s cannot be read." % sysfs.FUNCTIONS,
            hint="Mount /sys below the root of the host.",
            path=sysfs.FUNCTIONS,
        )
    return [
        core.Function(entry, bool(root.names("%s/%s/infiniband" % (sysfs.FUNCTIONS, entry.address))))
        for entry in found
        if entry.id.startswith(core.VENDOR + ":") and not entry.vf_of
    ]


def _module(root: Root, name: str) -> core.Module:
    place = "/sys/module/%s" % name
    running: Optional[core.Build] = None
    if root.exists(place):
        running = core.Build(
            root.value(place + "/version") or "",
            root.value(place + "/srcversion") or "",
        )
    release = root.value("/proc/sys/kernel/osrelease") or ""
    words = ["modinfo", *(("-k", release) if release else ()), "--", name]
    answer = commands.run(root, words, LIMIT, codes=(0, _NOT_FOUND))
    if answer.code == _NOT_FOUND:
        return core.Module(name, running, None)
    told = core.parse(answer.stdout)
    build = core.Build(told.get("version", ""), told.get("srcversion", ""))
    return core.Module(name, running, build, told.get("filename", ""))
