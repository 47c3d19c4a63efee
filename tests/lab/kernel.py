# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kernel of the nodes: taken out of its package, decompressed, and the modules that a node may load."""

from __future__ import annotations

import collections.abc
import pathlib
import struct
import subprocess

from .errors import LabError

MODULE_PREFIXES = (
    "arch/x86/crypto/",
    "crypto/",
    "drivers/block/virtio_blk",
    "drivers/char/hw_random/virtio-rng",
    "drivers/firmware/qemu_fw_cfg",
    "drivers/infiniband/core/",
    "drivers/infiniband/hw/mlx5/",
    "drivers/infiniband/sw/rxe/",
    "drivers/infiniband/ulp/ipoib/",
    "drivers/net/bonding/",
    "drivers/net/dummy",
    "drivers/net/ethernet/intel/e1000e/",
    "drivers/net/ifb",
    "drivers/net/ipvlan/",
    "drivers/net/macvlan",
    "drivers/net/tun",
    "drivers/net/veth",
    "drivers/net/virtio_net",
    "drivers/net/vrf",
    "drivers/net/vxlan/",
    "drivers/virtio/",
    "fs/ext4/",
    "fs/fuse/",
    "fs/overlayfs/",
    "lib/",
    "net/8021q/",
    "net/bridge/",
    "net/core/",
    "net/ipv4/",
    "net/ipv6/",
    "net/netfilter/",
    "net/sched/",
    "net/xfrm/",
)
"""Parts of the module tree that a node gets; what they depend on comes along."""
INITRD_MODULES = ("virtio_pci", "virtio_blk", "virtio_net", "crc32c_generic", "ext4", "qemu_fw_cfg")
"""In the order of loading; ext4 asks for crc32c at run time, so no list of dependencies names it."""
DECOMPRESSORS = {
    b"\x28\xb5\x2f\xfd": ["zstd", "-dcq"],
    b"\xfd7zX": ["xz", "-dc", "--single-stream"],
    b"\x1f\x8b\x08\x00": ["gzip", "-dc"],
}


def compressed_payload(image: bytes) -> bytes:
    """The compressed kernel inside a bzImage, found by the fields of the boot protocol (setup_sects, payload_*)."""
    if image[0x202:0x206] != b"HdrS":
        raise LabError("kernel_format", "The kernel package does not hold a bzImage.")
    offset, length = struct.unpack_from("<II", image, 0x248)
    start = (image[0x1F1] + 1) * 512 + offset
    return image[start : start + length - 4]


def extract_vmlinux(image: bytes) -> bytes:
    """The ELF kernel inside a bzImage. QEMU starts it directly, and the guest need not decompress it."""
    payload = compressed_payload(image)
    command = DECOMPRESSORS.get(payload[:4])
    if command is None:
        raise LabError(
            "kernel_format", f"The kernel is compressed in an unknown way (magic {payload[:4].hex()})."
        )
    vmlinux = subprocess.run(command, input=payload, stdout=subprocess.PIPE, check=True).stdout
    if not vmlinux.startswith(b"\x7fELF"):
        raise LabError("kernel_format", "The decompressed kernel is not an ELF file.")
    return vmlinux


def parse_dependencies(text: str) -> dict[str, list[str]]:
    """``modules.dep`` as a dictionary from a module's path to the paths that it needs."""
    entries = (line.partition(":") for line in text.splitlines() if line.strip())
    return {path.strip(): needs.split() for path, _colon, needs in entries}


def closure(dependencies: dict[str, list[str]], prefixes: collections.abc.Iterable[str]) -> list[str]:
    """Paths of all modules below ``kernel/PREFIX`` and of those that they need, sorted."""
    starts = tuple(f"kernel/{prefix}" for prefix in prefixes)
    found = {path for path in dependencies if path.startswith(starts)}
    todo = list(found)
    while todo:
        for needed in dependencies.get(todo.pop(), []):
            if needed not in found:
                found.add(needed)
                todo.append(needed)
    return sorted(found)


def module_name(path: str) -> str:
    """The name under which the kernel knows the module at ``path``."""
    return pathlib.PurePath(path).name.split(".")[0].replace("-", "_")


def load_order(dependencies: dict[str, list[str]], names: collections.abc.Iterable[str]) -> list[str]:
    """Paths of the modules ``names`` and of what they need, each after its needs. Built-in ones are not named here."""
    by_name = {module_name(path): path for path in dependencies}
    order: list[str] = []
    for name in names:
        path = by_name.get(name)
        if path is not None:
            # The file lists what a module needs, the most basic last.
            order += [need for need in [*reversed(dependencies[path]), path] if need not in order]
    return order
