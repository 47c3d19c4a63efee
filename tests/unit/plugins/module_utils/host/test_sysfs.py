# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Texts of sysfs."""

from __future__ import annotations

from ipaddress import IPv6Address
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from ansible_collections.rdma.k8s.plugins.module_utils.core.snapshot import GidGroup, PciFunction
from ansible_collections.rdma.k8s.plugins.module_utils.host import sysfs
from ansible_collections.rdma.k8s.plugins.module_utils.host.files import Root
from ansible_collections.rdma.k8s.tests.support import node_tree

WORDS = st.lists(st.sampled_from([0, 0, 1, 0xFFFF, 0xFE80]), min_size=8, max_size=8)


@settings(deadline=None)
@given(
    number=st.integers(0, 2**128 - 1)
    | WORDS.map(lambda words: sum(word << (112 - 16 * at) for at, word in enumerate(words)))
)
def test_a_gid_is_written_as_the_standard_library_writes_it(number: int) -> None:
    address = IPv6Address(number)
    mapped = address.ipv4_mapped
    text = ":".join(["%04x" % (number >> shift & 0xFFFF) for shift in range(112, -1, -16)])
    assert sysfs.short_gid(text) == (str(mapped) if mapped is not None else address.compressed)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("4: ACTIVE", "ACTIVE"),
        ("5: LinkUp", "LinkUp"),
        ("7: Phy Test", "Phy Test"),
        ("ACTIVE", "ACTIVE"),
        ("4:", "4:"),
        ("", ""),
    ],
)
def test_a_state_is_told_by_name(text: str, name: str) -> None:
    assert sysfs._name_of_state(text) == name


def test_gids_are_grouped_by_address_and_interface() -> None:
    long = "0000:0000:0000:0000:0000:ffff:0ad0:0d13"
    entries = [
        (2, long, "v1", "rdma0"),
        (3, long, "v2", "rdma0"),
        (7, long, "v2", "net1"),
        (8, long, "", "rdma0"),
    ]
    assert sysfs._group(entries, "rdma0") == (
        GidGroup("10.208.13.19", ((2, "v1"), (3, "v2"))),
        GidGroup("10.208.13.19", ((7, "v2"),), "net1"),
    )


@pytest.mark.parametrize(
    ("target", "found"),
    [
        ("../../devices/pci0000:40/0000:40:00.0/0000:41:00.0/net/rdma0", "0000:41:00.0"),
        ("../../devices/pci0000:00/0000:00:03.0/virtio1/net/eth0", "0000:00:03.0"),
        ("../../devices/pci10000:e0/10000:e0:06.0/10000:e1:00.0/net/x", "10000:e1:00.0"),
        ("../../devices/virtual/net/lo", ""),
        ("../../devices/vif-0/net/eth0", ""),
    ],
)
def test_the_pci_function_behind_a_device(target: str, found: str, tmp_path: Path) -> None:
    (tmp_path / "sys/class/net").mkdir(parents=True)
    (tmp_path / "sys/class/net/x").symlink_to(target)
    assert sysfs.pci_address(Root(str(tmp_path)), "/sys/class/net/x") == found


def test_the_pci_function_behind_a_device_directory(tmp_path: Path) -> None:
    """An older layout, and what a recording makes that follows links: the class holds directories."""
    (tmp_path / "sys/class/infiniband/mlx5_0").mkdir(parents=True)
    (tmp_path / "sys/class/infiniband/mlx5_0/device").symlink_to("../../../0000:0c:00.0")
    assert sysfs.pci_address(Root(str(tmp_path)), "/sys/class/infiniband/mlx5_0") == "0000:0c:00.0"
    assert sysfs.pci_address(Root(str(tmp_path)), "/sys/class/infiniband/none") == ""


@pytest.mark.parametrize(
    ("text", "number"), [("0", 0), ("-1", None), ("x", None), ("", None), (None, None), ("9" * 20, None)]
)
def test_a_count(text: str, number: int) -> None:
    assert sysfs.count(text) == number


@pytest.mark.parametrize("target", ["../a b", "../=", "../-", "../" + "x" * 65])
def test_a_driver_that_a_row_cannot_hold_is_an_error(target: str, tmp_path: Path) -> None:
    tree = node_tree.NodeTree(tmp_path)
    tree.write_function(PciFunction("0000:0c:00.0", "15b3:1021", "0200", "mlx5_core", 0))
    root = Root(str(tmp_path))
    assert sysfs.functions(root) == (PciFunction("0000:0c:00.0", "15b3:1021", "0200", "mlx5_core", 0),)
    place = tmp_path / tree.place("0000:0c:00.0")
    (place / "driver").unlink()
    assert sysfs.functions(root) == (PciFunction("0000:0c:00.0", "15b3:1021", "0200", "", 0),)
    assert root.errors == []
    (place / "driver").symlink_to(target)
    assert sysfs.functions(root) == ()
    assert [error.reason for error in root.errors] == ["driver or physical function cannot be read"]


def test_files_of_single_devices_are_left_out(tmp_path: Path) -> None:
    for name in ("rdma_cm", "uverbs0", "umad0", "issm0", "by-ibdev", "by-path"):
        (tmp_path / "dev/infiniband" / name).mkdir(parents=True)
    assert sysfs.char_devices(Root(str(tmp_path))) == ("rdma_cm",)
    assert sysfs.char_devices(Root(str(tmp_path / "none"))) == ()
