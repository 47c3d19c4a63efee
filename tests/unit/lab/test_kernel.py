# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kernel out of its package, and the choice of modules."""

from __future__ import annotations

import gzip
import struct

import pytest

from ansible_collections.rdma.k8s.tests.lab import kernel
from ansible_collections.rdma.k8s.tests.lab.errors import LabError

DEPENDENCIES = """\
kernel/net/core/failover.ko:
kernel/drivers/net/net_failover.ko: kernel/net/core/failover.ko
kernel/drivers/net/virtio_net.ko: kernel/drivers/net/net_failover.ko kernel/net/core/failover.ko
kernel/drivers/net/usb/usbnet.ko: kernel/drivers/net/mii.ko
kernel/drivers/net/mii.ko:
kernel/fs/ext4/ext4.ko: kernel/lib/crc16.ko kernel/fs/mbcache.ko
kernel/lib/crc16.ko:
kernel/fs/mbcache.ko:

"""


def bzimage(payload: bytes, setup_sectors: int = 2, magic: bytes = b"HdrS") -> bytes:
    """A kernel image with the few header fields that matter; the payload is followed by its unpacked size."""
    start = (setup_sectors + 1) * 512
    image = bytearray(start + 64)
    image[0x1F1] = setup_sectors
    image[0x202:0x206] = magic
    struct.pack_into("<II", image, 0x248, 64, len(payload) + 4)
    return bytes(image) + payload + struct.pack("<I", 1234) + b"trailing"


def test_payload_is_found() -> None:
    assert kernel.compressed_payload(bzimage(b"payload")) == b"payload"
    assert kernel.compressed_payload(bzimage(b"payload", setup_sectors=30)) == b"payload"


def test_kernel_is_decompressed() -> None:
    elf = b"\x7fELF" + bytes(1000)
    assert kernel.extract_vmlinux(bzimage(gzip.compress(elf))) == elf


@pytest.mark.parametrize(
    ("image", "reason"),
    [
        (bzimage(b"x", magic=b"nope"), "does not hold a bzImage"),
        (bzimage(b"\x01\x02\x03\x04rest"), "magic 01020304"),
        (bzimage(gzip.compress(b"hello", mtime=0)), "not an ELF file"),
    ],
)
def test_other_kernels_are_refused(image: bytes, reason: str) -> None:
    with pytest.raises(LabError, match=reason):
        kernel.extract_vmlinux(image)


def test_closure_takes_what_is_needed_and_no_more() -> None:
    dependencies = kernel.parse_dependencies(DEPENDENCIES)
    assert kernel.closure(dependencies, ["drivers/net/virtio_net"]) == [
        "kernel/drivers/net/net_failover.ko",
        "kernel/drivers/net/virtio_net.ko",
        "kernel/net/core/failover.ko",
    ]
    assert kernel.closure(dependencies, ["fs/ext4/"]) == [
        "kernel/fs/ext4/ext4.ko",
        "kernel/fs/mbcache.ko",
        "kernel/lib/crc16.ko",
    ]
    assert kernel.closure(dependencies, ["sound/"]) == []


def test_modules_load_after_what_they_need() -> None:
    dependencies = kernel.parse_dependencies(DEPENDENCIES)
    order = [
        kernel.module_name(path)
        for path in kernel.load_order(dependencies, ["virtio_pci", "virtio_net", "ext4"])
    ]
    assert sorted(order) == ["crc16", "ext4", "failover", "mbcache", "net_failover", "virtio_net"]
    for path, needs in dependencies.items():
        for need in needs:
            if kernel.module_name(path) in order:
                assert order.index(kernel.module_name(need)) < order.index(kernel.module_name(path))


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("kernel/a/virtio-rng.ko.xz", "virtio_rng"),
        ("kernel/e1000e.ko", "e1000e"),
        ("x/crc32-pclmul.ko.zst", "crc32_pclmul"),
    ],
)
def test_module_names(path: str, name: str) -> None:
    assert kernel.module_name(path) == name
