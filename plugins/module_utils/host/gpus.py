# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""GPUs and the NICs beside them, from the paths of sysfs. Private to rdma.k8s: it may change with any release."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import Optional

from ..core.snapshot import Gpu
from . import sysfs
from .files import Root

_ADDRESS = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]", re.ASCII)
_ID = re.compile(r"0x([0-9a-f]{4})", re.ASCII)
_VENDORS = ("10de", "1002")
_CLASSES = ("0x03", "0x12")
"""Display controllers and processing accelerators."""


def read_all(root: Root) -> Optional[tuple[Gpu, ...]]:
    """The GPUs in the order of their addresses; ``None``: the bus cannot be read."""
    functions = sysfs.functions(root)
    if functions is None:
        return None
    nics = {nic.address: _chain(root, nic.address) for nic in functions if not nic.vf_of}
    found = [_gpu(root, name, nics) for name in root.names(sysfs.FUNCTIONS) or () if _ADDRESS.fullmatch(name)]
    return tuple([gpu for gpu in found if gpu is not None])


def _gpu(root: Root, name: str, nics: Mapping[str, Sequence[str]]) -> Optional[Gpu]:
    base = "%s/%s" % (sysfs.FUNCTIONS, name)
    if not (root.value(base + "/class") or "").startswith(_CLASSES):
        return None
    vendor = _ID.fullmatch(root.value(base + "/vendor") or "")
    device = _ID.fullmatch(root.value(base + "/device") or "")
    if vendor is None or device is None or vendor[1] not in _VENDORS or root.link(base + "/physfn"):
        return None
    return Gpu(
        name,
        "%s:%s" % (vendor[1], device[1]),
        sysfs.count(root.value(base + "/numa_node")),
        nearest(_chain(root, name), nics),
    )


def _chain(root: Root, name: str) -> tuple[str, ...]:
    """The bridges above a function, from the top."""
    try:
        target = os.readlink("%s%s/%s" % (root.path, sysfs.FUNCTIONS, name))
    except (OSError, ValueError):
        return ()
    return tuple(_ADDRESS.findall(target)[:-1])


def nearest(chain: Sequence[str], nics: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """The NICs that have the most bridges in common with a GPU; none, when there is no common one."""
    common = {name: _shared(chain, bridges) for name, bridges in nics.items()}
    most = max(common.values(), default=0)
    return tuple(sorted([name for name, count in common.items() if count == most and most > 0]))


def _shared(one: Sequence[str], other: Sequence[str]) -> int:
    count = 0
    for left, right in zip(one, other):
        if left != right:
            break
        count += 1
    return count
