# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Makes initramfs images as distributions build them: cpio archives behind each other, plain or compressed."""

from __future__ import annotations

from collections.abc import Mapping

MODULE = "usr/lib/modules/%s/kernel/drivers/infiniband/core/ib_core.ko"


def archive(files: Mapping[str, bytes], mode: int = 0o100644) -> bytes:
    """A cpio archive in the form newc with these files."""
    entries = [_entry(name, data, mode, number) for number, (name, data) in enumerate(files.items(), 1)]
    return b"".join([*entries, _entry("TRAILER!!!", b"", 0, 0)])


def _entry(name: str, data: bytes, mode: int, number: int) -> bytes:
    text = name.encode() + b"\0"
    fields = (number, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(text), 0)
    head = b"070701" + b"".join(b"%08X" % field for field in fields) + text
    return _padded(head) + _padded(data)


def _padded(data: bytes) -> bytes:
    return data + b"\0" * (-len(data) % 4)


def early(size: int = 600) -> bytes:
    """The archive with microcode that stands in front, padded as the builders do."""
    part = archive({"kernel/x86/microcode/GenuineIntel.bin": b"m" * size})
    return part + b"\0" * (-len(part) % 512)
