# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is owed and what is wrong, by the modules that run, those that are installed, and the functions."""

from __future__ import annotations

from typing import Optional

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.core import nic_driver
from ansible_collections.rdma.k8s.plugins.module_utils.core.nic_driver import Build, Function, Module
from ansible_collections.rdma.k8s.plugins.module_utils.core.snapshot import PciFunction

OLD, NEW = Build("", "AAAA"), Build("25.07-0.9.7", "BBBB")
BOUND = Function(PciFunction("0000:86:00.0", "15b3:1021", "0200", "mlx5_core"), True)


def both(running: Optional[Build], installed: Optional[Build], file: str = "/m.ko") -> list[Module]:
    return [Module(name, running, installed, file) for name in nic_driver.MODULES]


@pytest.mark.parametrize(
    ("modules", "reason", "problem"),
    [
        (both(NEW, NEW), "", ""),
        (both(OLD, OLD), "", ""),  # the driver of the kernel
        (both(OLD, NEW), "mlx5_core runs as AAAA, and 25.07-0.9.7 is installed.", ""),
        (both(NEW, OLD), "mlx5_ib runs as 25.07-0.9.7, and AAAA is installed.", ""),
        (both(Build("1", "AAAA"), Build("1", "BBBB")), "mlx5_core runs as 1, and 1 is installed.", ""),
        (both(None, NEW), "mlx5_core 25.07-0.9.7 is installed and not loaded.", ""),
        (both(OLD, Build("", ""), "(builtin)"), "", ""),
        (both(Build("", ""), OLD), "mlx5_core runs as without a version, and AAAA is installed.", ""),
        (both(OLD, None), "", "mlx5_ib runs, and the next boot has none for this kernel."),
        (both(None, None), "", "This kernel has no module mlx5_core."),
    ],
)
def test_modules(modules: list[Module], reason: str, problem: str) -> None:
    """S2, S3."""
    found = nic_driver.judge(modules, [BOUND])
    assert reason in found.reboot_reason
    assert bool(reason) == bool(found.reboot_reason)
    assert problem in " ".join(found.problems)
    assert bool(problem) == bool(found.problems)
    assert found.is_ready == (not reason and not problem)


@pytest.mark.parametrize(
    ("functions", "problem"),
    [
        ([], "There is no NIC of NVIDIA (vendor 15b3)."),
        ([BOUND, Function(BOUND.pci, False)], "0000:86:00.0 has no RDMA device."),
        (
            [Function(PciFunction("0000:86:00.1", "15b3:1021", "0200"), False)],
            "0000:86:00.1 is bound to no driver, not to mlx5_core.",
        ),
        (
            [Function(PciFunction("0000:86:00.1", "15b3:1021", "0200", "vfio-pci"), False)],
            "0000:86:00.1 is bound to vfio-pci, not to mlx5_core.",
        ),
    ],
)
def test_functions(functions: list[Function], problem: str) -> None:
    """S3."""
    found = nic_driver.judge(both(NEW, NEW), functions)
    assert (found.problems, found.reboot_reason, found.is_ready) == ((problem,), "", False)


def test_modinfo() -> None:
    text = "filename:       /lib/m.ko\nalias:          pci:v1\nalias:          pci:v2\nversion:        25.07\nno line\n"
    assert nic_driver.parse(text) == {"filename": "/lib/m.ko", "alias": "pci:v1", "version": "25.07"}
