# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How NICs reach the memory of GPUs, for the snapshot (S41). Private to rdma.k8s: it may change with any release."""

from __future__ import annotations

from typing import Optional

from ..core import kernel_modules as core
from ..core.errors import RdmaError
from ..core.snapshot import PeerMemory
from . import kernel_modules
from .files import Root

GPU_DRIVER = "nvidia"


def read(root: Root) -> Optional[PeerMemory]:
    """What tells it; ``None`` when the modules cannot be read, and the errors of the root say why."""
    try:
        now = kernel_modules.loaded(root)
    except RdmaError as error:
        root.fail("/proc/modules", error.message.rstrip("."))
        return None
    found = kernel_modules.peer_evidence(root, now)
    module = now.get(core.PEER_MEMORY)
    return PeerMemory(
        driver=GPU_DRIVER in now,
        uses=None if module is None else module.uses,
        users=tuple(sorted([name for name, each in now.items() if core.PEER_MEMORY in each.used_by])),
        registered=found.registered,
        open_driver=found.open_driver,
    )
