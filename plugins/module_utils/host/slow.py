# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The subset ``slow``: reads that cost seconds or need a tool of the node. Private to rdma.k8s: it may change any time.

A reader takes the root and the host and returns the value of its field of :class:`~..core.snapshot.Slow`; like every
other read it does not raise: what it cannot read is ``None``, with the reason among the errors of the root.
"""

from __future__ import annotations

from typing import Any, Callable

from ..core.snapshot import HostInfo, Slow
from . import initramfs, kernel_log, memlock, network_boot, peer_memory, port_counters, reboots, roce_ports
from .files import Root


def _initramfs(root: Root, host: HostInfo) -> Any:
    del host
    return initramfs.read_all(root)


def _reboots(root: Root, host: HostInfo) -> Any:
    del host
    return reboots.read_all(root)


def _qos(root: Root, host: HostInfo) -> Any:
    del host
    return roce_ports.read_all(root)


def _counters(root: Root, host: HostInfo) -> Any:
    del host
    return port_counters.read_all(root)


def _kernel_log(root: Root, host: HostInfo) -> Any:
    del host
    return kernel_log.read(root)


def _peer_memory(root: Root, host: HostInfo) -> Any:
    del host
    return peer_memory.read(root)


def _network_boot(root: Root, host: HostInfo) -> Any:
    return network_boot.read(root, host.kernel)


def _memlock(root: Root, host: HostInfo) -> Any:
    del host
    return memlock.read_all(root)


READERS: dict[str, Callable[[Root, HostInfo], Any]] = {
    "initramfs": _initramfs,
    "reboots": _reboots,
    "qos": _qos,
    "counters": _counters,
    "kernel_log": _kernel_log,
    "peer_memory": _peer_memory,
    "network_boot": _network_boot,
    "memlock": _memlock,
}
"""Field of :class:`Slow` to its reader."""


def read(root: Root, host: HostInfo) -> Slow:
    """All that the subset holds."""
    return Slow(**{field: reader(root, host) for field, reader in READERS.items()})
