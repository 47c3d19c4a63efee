# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the subset slow reads for NODE-007, NODE-008 and NODE-030: GPU memory, boot over the network, locked memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.core.errors import RdmaError
from ansible_collections.rdma.k8s.plugins.module_utils.core.snapshot import (
    Initramfs,
    NetworkBoot,
    PeerMemory,
    RuntimeLimit,
)
from ansible_collections.rdma.k8s.plugins.module_utils.host import (
    commands,
    initramfs,
    memlock,
    network_boot,
    peer_memory,
)
from ansible_collections.rdma.k8s.plugins.module_utils.host.files import Root

RELEASE = "6.8.0-90-generic"


class Tree:
    """A node whose only NIC is eth0 with the driver mlx5_core, reached by its MAC."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.root = Root(str(path))
        place = "sys/devices/pci0000:00/0000:00:05.0"
        self.write(place + "/class", "0x020000\n")
        self.write(place + "/net/eth0/address", "52:54:00:00:00:01\n")
        self.link("sys/bus/pci/drivers/mlx5_core/x", ".")
        self.link(place + "/driver", "../../../bus/pci/drivers/mlx5_core")
        self.link(place + "/net/eth0/device", "../../../0000:00:05.0")
        self.link("sys/class/net/eth0", "../../devices/pci0000:00/0000:00:05.0/net/eth0")
        self.link("sys/bus/pci/devices/0000:00:05.0", "../../../devices/pci0000:00/0000:00:05.0")
        self.write("proc/cmdline", "root=UUID=1 ro quiet\n")

    def write(self, path: str, text: str) -> None:
        place = self.path / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)

    def link(self, path: str, target: str) -> None:
        place = self.path / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(target)


@pytest.fixture(name="tree")
def tree_fixture(tmp_path: Path) -> Tree:
    return Tree(tmp_path / "node")


# Boot over the network (DEV-36)


@pytest.mark.parametrize(
    ("line", "how"),
    [
        ("root=UUID=1 ro quiet", ""),
        ("root=UUID=1 netroot=iscsi:@169.254.0.2::3260:1:iqn.x", "the kernel command line has netroot"),
        ("root=/dev/nfs nfsroot=10.0.0.1:/x", "the kernel command line has root=/dev/nfs"),
        ("root=nfs:10.0.0.1:/x", "the kernel command line has root=nfs"),
        ("rd.iscsi.initiator=iqn.y root=LABEL=r", "the kernel command line has rd.iscsi"),
        ("iscsi_initiator=iqn.y root=LABEL=r", "the kernel command line has iscsi_"),
        ("root=nfsdisk x=netroot=1", ""),
    ],
)
def test_words_of_the_command_line_that_say_network(tree: Tree, line: str, how: str) -> None:
    tree.write("proc/cmdline", line + "\n")
    tree.write("proc/net/route", "Iface\tDestination\nx\neth0\t00000000\t0\t3\t0\t0\t0\t00000000\t0\n")
    found = network_boot.read(tree.root, RELEASE)
    assert found == (NetworkBoot(how, "eth0", "mlx5_core") if how else NetworkBoot())


@pytest.mark.parametrize(
    ("line", "nic"),
    [
        ("netroot=x BOOTIF=01-52-54-00-00-00-01", "eth0"),
        ("netroot=x BOOTIF=01-52-54-00-00-00-02", ""),
        ("netroot=x ip=10.0.0.2::10.0.0.1:255.0.0.0:h:eth0:off", "eth0"),
        ("netroot=x ip=[fd00::2]::[fd00::1]:64:h:eth0:off", "eth0"),
        ("netroot=x ip=dhcp", ""),
    ],
)
def test_the_nic_of_the_command_line(tree: Tree, line: str, nic: str) -> None:
    tree.write("proc/cmdline", line + "\n")
    found = network_boot.read(tree.root, RELEASE)
    assert found is not None
    assert (found.nic, found.driver) == (nic, "mlx5_core" if nic else "")


def test_the_table_of_the_firmware_names_the_nic_by_its_address(tree: Tree) -> None:
    """Bare metal of OCI boots by iSCSI, and the command line need not say so."""
    tree.write("sys/firmware/ibft/ethernet0/mac", "52:54:00:00:00:01\n")
    expected = NetworkBoot("the firmware has an iSCSI boot table", "eth0", "mlx5_core")
    assert network_boot.read(tree.root, RELEASE) == expected
    tree.write("lib/modules/%s/modules.builtin" % RELEASE, "kernel/drivers/net/mlx5_core.ko\n")
    found = network_boot.read(tree.root, RELEASE)
    assert found is not None
    assert found.builtin


def test_a_mounted_root_says_network_too(tree: Tree) -> None:
    tree.write("proc/mounts", "10.0.0.1:/x / nfs4 rw 0 0\n10.0.0.1:/y /y nfs4 rw 0 0\n")
    found = network_boot.read(tree.root, RELEASE)
    assert found is not None
    assert found.how == "/ is of the type nfs4"
    tree.write("proc/mounts", "/dev/sda1 / ext4 rw 0 0\n10.0.0.1:/y /y nfs4 rw 0 0\n")
    assert network_boot.read(tree.root, RELEASE) == NetworkBoot()


def test_without_a_command_line_nothing_is_known(tree: Tree) -> None:
    (tree.path / "proc/cmdline").unlink()
    assert network_boot.read(tree.root, RELEASE) is None
    assert [error.source for error in tree.root.errors] == ["/proc/cmdline"]


def _archive(*names: str) -> bytes:
    """A cpio archive (newc) of empty files."""
    data = b""
    for name in (*names, "TRAILER!!!"):
        fields = [0, 0o100644, 0, 0, 1, 0, 0, 0, 0, 0, 0, len(name) + 1, 0]
        entry = b"070701" + b"".join([b"%08X" % field for field in fields]) + name.encode() + b"\0"
        data += entry + b"\0" * (-len(entry) % 4)
    return data


def test_the_image_tells_which_drivers_of_the_node_it_has(tree: Tree) -> None:
    """DEV-36: other drivers, of which a general image has hundreds, do not count."""
    (tree.path / "lib/modules" / RELEASE).mkdir(parents=True)
    tree.write("boot/x", "")
    base = "usr/lib/modules/%s/kernel/drivers/" % RELEASE
    image = tree.path / "boot" / ("initrd.img-" + RELEASE)
    image.write_bytes(
        _archive(base + "net/mlx5/mlx5_core.ko.zst", base + "net/e1000/e1000.ko", base + "ib-core.ko")
    )
    path = "/boot/initrd.img-" + RELEASE
    assert initramfs.read_all(tree.root) == (Initramfs(path, RELEASE, True, (), ("mlx5_core",)),)
    image.write_bytes(_archive(base + "net/e1000/e1000.ko"))
    assert initramfs.read_all(tree.root) == (Initramfs(path, RELEASE, False, (), ()),)


def test_an_old_note_about_an_image_is_read_anew(tree: Tree) -> None:
    """What an earlier release kept did not name drivers."""
    (tree.path / "lib/modules" / RELEASE).mkdir(parents=True)
    tree.write("boot/x", "")
    (tree.path / "boot" / ("initrd.img-" + RELEASE)).write_bytes(_archive("usr/lib/modules/a/b/mlx5_core.ko"))
    (first,) = initramfs.inspect(tree.root, True)
    assert first.drivers == ("mlx5_core",)
    place = tree.path / initramfs.CACHE[1:]
    place.write_text(place.read_text().replace('"drivers"', '"d"'))
    assert initramfs.inspect(tree.root, True) == [first]


# GPU memory (DEV-35)


def test_peer_memory_is_read_with_all_that_tells_its_effect(tree: Tree) -> None:
    tree.write("proc/modules", "nvidia 1 5 nvidia_peermem, Live 0x0\nnvidia_peermem 1 0 - Live 0x0\n")
    tree.write("proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  575\n")
    (tree.path / "sys/kernel/mm/memory_peers/nv_mem").mkdir(parents=True)
    assert peer_memory.read(tree.root) == PeerMemory(True, 0, ("nvidia",), ("nv_mem",), True)


def test_a_node_without_gpu_has_none(tree: Tree) -> None:
    tree.write("proc/modules", "ib_core 1 0 - Live 0x0\n")
    assert peer_memory.read(tree.root) == PeerMemory()
    (tree.path / "proc/modules").unlink()
    assert peer_memory.read(tree.root) is None
    assert [error.source for error in tree.root.errors] == ["/proc/modules"]


# Locked memory

SHOWN = (
    "Id=containerd.service\nLoadState=loaded\nMainPID=77\nLimitMEMLOCK=infinity\nNeedDaemonReload=no\n\n"
    "Id=docker.service\nLoadState=loaded\nMainPID=0\nLimitMEMLOCK=65536\n\nId=crio.service\nLoadState=not-found\n"
)
LIMITS = "Limit Soft Hard Units\nMax locked memory         65536                65536                bytes\n"
FOUND = (RuntimeLimit("containerd.service", "infinity", "65536"), RuntimeLimit("docker.service", "65536", ""))


def test_the_limits_of_the_runtimes(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(*_arguments: Any, **_options: Any) -> commands.Completed:
        return commands.Completed(SHOWN, "", 0)

    monkeypatch.setattr(commands, "run", run)
    tree.write("proc/77/limits", LIMITS)
    assert memlock.read_all(tree.root) == FOUND


def test_a_recorded_tree_has_what_systemd_said(tree: Tree) -> None:
    tree.write("netlink.json", "{}")
    tree.write("systemctl.txt", SHOWN)
    tree.write("proc/77/limits", LIMITS)
    assert memlock.read_all(tree.root) == FOUND


def test_without_systemd_the_limits_are_not_known(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(*_arguments: Any, **_options: Any) -> commands.Completed:
        raise RdmaError("tool_missing", "The program systemctl is needed and not on this node.")

    monkeypatch.setattr(commands, "run", run)
    assert memlock.read_all(tree.root) is None
    assert [error.source for error in tree.root.errors] == ["systemctl"]
