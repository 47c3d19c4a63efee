# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The tree of a node with a NIC of NVIDIA: modules that run, functions that are bound."""

from __future__ import annotations

from pathlib import Path

RELEASE = "6.8.0-90-generic"
FUNCTION = "0000:86:00.0"
MODULES = ("mlx5_core", "mlx5_ib")


class DriverTree:
    """Files below a root, as the kernel shows them."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.write("proc/sys/kernel/osrelease", RELEASE)
        (root / "sys/bus/pci/devices").mkdir(parents=True)

    def write(self, path: str, text: str) -> None:
        """A file with one line."""
        place = self.root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text + "\n", encoding="utf-8")

    def running(self, version: str) -> DriverTree:
        """Both modules run in this version."""
        for name in MODULES:
            self.write("sys/module/%s/version" % name, version)
            self.write("sys/module/%s/srcversion" % name, "S" + version)
        return self

    def function(self, address: str, vendor: str = "0x15b3", physfn: str = "") -> Path:
        """A function that nothing is bound to."""
        base = "sys/bus/pci/devices/" + address
        for name, text in (("class", "0x020000"), ("vendor", vendor), ("device", "0x1021")):
            self.write("%s/%s" % (base, name), text)
        if physfn:
            (self.root / base / "physfn").symlink_to("../" + physfn)
        return self.root / base

    def bound(self, address: str = FUNCTION) -> DriverTree:
        """A function with the driver and an RDMA device."""
        place = self.function(address)
        (self.root / "sys/bus/pci/drivers/mlx5_core").mkdir(parents=True, exist_ok=True)
        (place / "driver").symlink_to("../../drivers/mlx5_core")
        (place / "infiniband/mlx5_0").mkdir(parents=True)
        return self
