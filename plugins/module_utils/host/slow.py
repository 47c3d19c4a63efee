# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The subset ``slow``: reads that cost seconds or need a tool of the node. Private to rdma.k8s: it may change any time.

A reader returns the value of its field of :class:`~..core.snapshot.Slow`; like every other read it does not raise: what
it cannot read is ``None``, with the reason among the errors of the root.
"""

from __future__ import annotations

from ..core.snapshot import HostInfo, Slow
from . import (
    gpus,
    initramfs,
    kernel_log,
    memlock,
    network_boot,
    peer_memory,
    port_counters,
    reboots,
    roce_ports,
)
from .files import Root


def read(root: Root, host: HostInfo) -> Slow:
    """All that the subset holds."""
    return Slow(
        initramfs=initramfs.read_all(root),
        reboots=reboots.read_all(root),
        qos=roce_ports.read_all(root),
        counters=port_counters.read_all(root),
        kernel_log=kernel_log.read(root),
        peer_memory=peer_memory.read(root),
        network_boot=network_boot.read(root, host.kernel),
        memlock=memlock.read_all(root),
        gpus=gpus.read_all(root),
    )
