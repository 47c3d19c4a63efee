# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""GPUs and the NICs beside them, as paths of sysfs tell them."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.core.errors import RdmaError
from ansible_collections.rdma.k8s.plugins.module_utils.core.snapshot import Gpu
from ansible_collections.rdma.k8s.plugins.module_utils.host import gpus
from ansible_collections.rdma.k8s.plugins.module_utils.host.files import Root

GPU, NIC = ("0x030200", "0x10de", "0x2330"), ("0x020000", "0x15b3", "0x1021")


class Tree:
    """Functions below bridges."""

    def __init__(self, path: Path) -> None:
        self.path = path
        (path / "sys/bus/pci/devices").mkdir(parents=True)

    def add(self, place: str, what: tuple[str, str, str], numa: int = 0, **files: str) -> None:
        """One at a path below its root, such as ``pci0000:80/0000:80:01.0/0000:81:00.0``."""
        directory = self.path / "sys/devices" / place
        directory.mkdir(parents=True)
        named = dict(zip(("class", "vendor", "device"), what))
        for name, text in {**named, "numa_node": str(numa), **files}.items():
            (directory / name).write_text(text + "\n")
        link = self.path / "sys/bus/pci/devices" / place.rpartition("/")[2]
        link.symlink_to("../../../devices/" + place)

    def read(self) -> tuple[Gpu, ...]:
        found = gpus.read_all(Root(str(self.path)))
        assert found is not None
        return found


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


def test_the_nearest_bridge_decides(tree: Tree) -> None:
    """S70: both functions of the card at the GPU's own switch, not the card at the other one below the same root."""
    root = "pci0000:80/0000:80:01.0"
    tree.add(root + "/0000:81:00.0/0000:82:00.0/0000:86:00.0", GPU)
    tree.add(root + "/0000:81:00.0/0000:82:01.0/0000:87:00.0", NIC)
    tree.add(root + "/0000:81:00.0/0000:82:01.0/0000:87:00.1", NIC)
    tree.add(root + "/0000:91:00.0/0000:92:00.0/0000:93:00.0", NIC)
    assert tree.read() == (Gpu("0000:86:00.0", "10de:2330", 0, ("0000:87:00.0", "0000:87:00.1")),)


def test_the_processor_is_no_bridge(tree: Tree) -> None:
    tree.add("pci0000:80/0000:80:01.0/0000:86:00.0", GPU, 1)
    tree.add("pci0000:80/0000:80:02.0/0000:87:00.0", NIC, 1)
    assert tree.read() == (Gpu("0000:86:00.0", "10de:2330", 1, ()),)


@pytest.mark.parametrize(
    "what",
    [
        ("0x030000", "0x1a03", "0x2000"),  # the display of a BMC
        ("0x020000", "0x10de", "0x2330"),
        ("0x030200", "10de", "0x2330"),
    ],
)
def test_what_is_no_gpu(tree: Tree, what: tuple[str, str, str]) -> None:
    tree.add("pci0000:80/0000:80:01.0/0000:86:00.0", what)
    assert tree.read() == ()


def test_an_accelerator_of_amd_without_numa(tree: Tree) -> None:
    tree.add("pci0000:80/0000:80:01.0/0000:86:00.0", ("0x120000", "0x1002", "0x74a1"), -1)
    assert tree.read() == (Gpu("0000:86:00.0", "1002:74a1", None, ()),)


def test_without_a_bus_there_is_none(tmp_path: Path) -> None:
    (tmp_path / "sys").mkdir()
    assert gpus.read_all(Root(str(tmp_path))) == ()


@pytest.mark.parametrize(
    "text", ["0000:86:00.0 10de:2330 0", "0000:86:00.0 10de:2330 - near 0000:87:00.0 0000:87:00.1"]
)
def test_rows(text: str) -> None:
    assert str(Gpu.parse(text)) == text


@pytest.mark.parametrize("text", ["", "a b", "a b c", "a b 0 near", "a b 0 far c"])
def test_rows_that_are_none(text: str) -> None:
    with pytest.raises(RdmaError, match="near ADDRESS"):
        Gpu.parse(text)
