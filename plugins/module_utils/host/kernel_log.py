# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the kernel log says of the links of RDMA interfaces. Private to rdma.k8s: it may change with any release.

``/dev/kmsg`` gives one record for each read; a recorded tree has them as lines of a file of that name. The time of a
record counts from the boot, in microseconds.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Iterable
from typing import Optional

from ..core.snapshot import KernelLog, LinkDowns
from .files import Root, reason_of
from .roce_ports import ports

FILE = "/dev/kmsg"
DAY = 86400
_LARGEST = 64 << 20
_RECORD = 16384
_HEAD = re.compile(r"\d+,\d+,(\d+),[^;]*;(.*)")
_DOWN = re.compile(r"\b(?:[Ll]ink (?:is )?[Dd]own|link becomes not ready)\b")


def read(root: Root) -> Optional[KernelLog]:
    """The links of all interfaces that have an RDMA port; ``None`` with the reason among the errors of ``root``."""
    found = ports(root)
    if not found:
        return KernelLog()
    uptime = root.value("/proc/uptime")
    lines = _lines(root)
    if lines is None or uptime is None:
        return None
    now = int(float(uptime.split()[0]))
    counts = {port.netdev: 0 for port in found if port.netdev}
    places = {port.pci: port.netdev for port in found if port.netdev and port.pci}
    oldest: Optional[int] = None
    for line in lines:
        head = _HEAD.match(line)
        if head is None:
            continue  # a line that belongs to the record before it
        at = int(head[1]) // 1000000
        oldest = at if oldest is None else oldest
        if at >= now - DAY and _DOWN.search(head[2]):
            netdev = _netdev_of(head[2], counts, places)
            if netdev:
                counts[netdev] += 1
    covered = 0 if oldest is None else max(0, min(DAY, now - oldest))
    return KernelLog(covered, tuple([LinkDowns(name, count) for name, count in counts.items()]))


def _netdev_of(text: str, names: Iterable[str], places: dict[str, str]) -> str:
    """The interface that a message is about: by PCI address, which no renaming changes, else by name."""
    words = [word.rstrip(":") for word in text.split()]
    for word in words:
        if word in places:
            return places[word]
    return next((name for name in names if name in words), "")


def _lines(root: Root) -> Optional[list[str]]:
    try:
        handle = os.open(root.path + FILE, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        root.fail(FILE, reason_of(error))
        return None
    try:
        if stat.S_ISREG(os.fstat(handle).st_mode):
            text = root.read(FILE, _LARGEST)
            return None if text is None else text.splitlines()
        return _records(handle)
    except OSError as error:
        root.fail(FILE, reason_of(error))
        return None
    finally:
        os.close(handle)


def _records(handle: int) -> list[str]:
    lines: list[str] = []
    while True:
        try:
            record = os.read(handle, _RECORD)
        except BlockingIOError:
            return lines
        except OSError as error:
            if (
                error.errno == errno.EPIPE
            ):  # the oldest records were overwritten meanwhile; the next ones are there
                continue
            raise
        if not record:
            return lines
        lines.append(record.decode("utf-8", "replace").partition("\n")[0])
