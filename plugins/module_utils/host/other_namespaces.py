# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Who keeps other network namespaces alive, so that the kernel refuses another mode (S13, S15). Private to rdma.k8s.

None is opened here: that would keep it alive. What keeps one alive is a process or a thread in it, a mount (with a name
or without), or an open file; only one that nothing but a socket holds is not seen.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from .files import Root

_LINK = re.compile(r"net:\[([0-9]+)\]")


def keepers(root: Root) -> dict[str, str]:
    """The number of each network namespace but the first to a word about what keeps it alive.

    Processes of other users are seen by root only.
    """
    first = _target(root, "/proc/1/ns/net")
    found: dict[str, str] = {}
    mounts: set[str] = set()
    for pid in _numbers(root, "/proc"):
        for number, word in _of_process(root, pid, mounts):
            if number != first:
                found.setdefault(number, word)
    return found


def _of_process(root: Root, pid: str, mounts: set[str]) -> Iterator[tuple[str, str]]:
    place = "/proc/" + pid
    for thread in _numbers(root, place + "/task"):
        number = _target(root, "%s/task/%s/ns/net" % (place, thread))
        if number:
            yield number, "process %s (%s)" % (pid, root.value(place + "/comm") or "?")
    for handle in _numbers(root, place + "/fd"):
        number = _target(root, "%s/fd/%s" % (place, handle))
        if number:
            yield number, "a file that process %s (%s) has open" % (pid, root.value(place + "/comm") or "?")
    mount_namespace = root.link(place + "/ns/mnt")
    if mount_namespace and mount_namespace not in mounts:
        mounts.add(mount_namespace)
        yield from _mounted(root, place + "/mountinfo")


def _mounted(root: Root, path: str) -> Iterator[tuple[str, str]]:
    text = root.read_place(root.path + path, path, 16 << 20)
    for line in (text or "").splitlines():
        words = line.split(" ")
        match = _LINK.fullmatch(words[3]) if len(words) > 4 else None
        if match:
            yield match[1], "the mount %s" % words[4]


def _numbers(root: Root, path: str) -> list[str]:
    """The numeric names of a directory, by value; empty when it has gone or cannot be read."""
    try:
        return sorted((name for name in os.listdir(root.path + path) if name.isdigit()), key=int)
    except OSError:
        return []


def _target(root: Root, path: str) -> str:
    """The number of the network namespace that a link of procfs leads to; empty for anything else."""
    match = _LINK.fullmatch(root.link(path))
    return match[1] if match else ""
