# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Kernel arguments in the entries of the boot loader: what the next boot is meant to get. Private to rdma.k8s."""

from __future__ import annotations

import re
from typing import Optional

from ..core import modprobe, netns
from .files import Root

ENTRIES = ("/boot/loader/entries", "/boot/efi/loader/entries", "/efi/loader/entries")
FILES = ("/boot/grub/grub.cfg", "/boot/grub2/grub.cfg", "/boot/grub2/grubenv")
_LARGEST = 4 << 20
_LINE = re.compile(r"\s*(?:options|linux\w*)\s+(.*)|kernelopts=(.*)")


def mode_arguments(root: Root) -> Optional[list[netns.Place]]:
    """Each setting of the namespace mode in an entry; ``None``: no entry of a boot loader is known here (DEV-01)."""
    paths = [path for path in FILES if root.exists(path)]
    for directory in ENTRIES:
        paths += [
            "%s/%s" % (directory, name) for name in root.names(directory) or () if name.endswith(".conf")
        ]
    entries = 0
    found = []
    for path in paths:
        for number, line in enumerate((root.read(path, _LARGEST) or "").splitlines(), 1):
            match = _LINE.match(line)
            if match is None:
                continue
            entries += 1
            for setting in modprobe.on_command_line(match[1] or match[2] or "", netns.MODULE):
                if setting.option == netns.OPTION:
                    found.append(netns.Place(path, setting.value, number))
    return found if entries else None
