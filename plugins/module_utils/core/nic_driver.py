# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether the installed driver of NVIDIA's NICs is the one that runs. Private to rdma.k8s: it may change any time.

An installed package proves nothing, since a reboot may be owed (S2, S3): what counts are the modules that run, those
that the next boot would load, and the functions that are bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Optional

from .snapshot import PciFunction

VENDOR = "15b3"
MODULES = ("mlx5_core", "mlx5_ib")
"""The driver of the functions, and that of their RDMA devices (S3)."""
DRIVER = MODULES[0]
BUILTIN = "(builtin)"


class Build(NamedTuple):
    """Which build of a module: its version, which a kernel's own modules need not have, and the sum of its source."""

    version: str
    srcversion: str

    def __str__(self) -> str:
        return self.version or self.srcversion or "without a version"


class Module(NamedTuple):
    """A module as it runs, ``None`` when it does not, and as the next boot would load it from ``file``."""

    name: str
    running: Optional[Build]
    installed: Optional[Build]
    file: str = ""


class Function(NamedTuple):
    """A physical function of a NIC, and whether it has an RDMA device."""

    pci: PciFunction
    has_device: bool


class Verdict(NamedTuple):
    """``reboot_reason`` is empty when no reboot is owed. ``problems`` are sentences, those of a reboot left out."""

    reboot_reason: str
    problems: tuple[str, ...]

    @property
    def is_ready(self) -> bool:
        """Whether the installed driver runs and every function is bound."""
        return not self.reboot_reason and not self.problems


def parse(text: str) -> dict[str, str]:
    """The lines ``KEY: VALUE`` of modinfo, of repeated keys the first."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        key, colon, value = line.partition(":")
        if colon:
            found.setdefault(key.strip(), value.strip())
    return found


def judge(modules: Sequence[Module], functions: Sequence[Function]) -> Verdict:
    """What is owed, and what is wrong."""
    reasons, problems = [], []
    for module in modules:
        running, installed = module.running, module.installed
        if installed is None:
            problems.append(
                "This kernel has no module %s." % module.name
                if running is None
                else "%s runs, and the next boot has none for this kernel." % module.name
            )
        elif running is None:
            reasons.append("%s %s is installed and not loaded." % (module.name, installed))
        elif module.file != BUILTIN and running != installed:
            reasons.append("%s runs as %s, and %s is installed." % (module.name, running, installed))
    if not functions:
        problems.append("There is no NIC of NVIDIA (vendor %s)." % VENDOR)
    for function in functions:
        address, driver = function.pci.address, function.pci.driver
        if driver != DRIVER:
            problems.append("%s is bound to %s, not to %s." % (address, driver or "no driver", DRIVER))
        elif not function.has_device:
            problems.append("%s has no RDMA device." % address)
    return Verdict(" ".join(reasons), tuple(problems))
