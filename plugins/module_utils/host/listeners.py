# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""RDMA listeners for the ping-pong: one for each child, each with an end. Private to rdma.k8s.

``rping`` takes connections by the RDMA connection manager, which finds the GID by the address, and sends from an
address that one names. The tools with a side channel over TCP cannot do that with nothing but a source rule (L18).
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from typing import Any, Optional

from . import commands
from .files import Root, reason_of
from .namespaces import Namespace, inside, is_mounted, opened, place_of, processes, remove, wait_until

TOOL = "rping"
KEEPER = "timeout"
PORT = 18720
MARK = "RDMA_K8S_LISTENER"
_SETTLE = 0.3


def missing_tool(root: Root) -> str:
    """Why there can be no ping-pong on this node; empty when there can."""
    missing = [name for name in (TOOL, KEEPER) if commands.find(root, name) is None]
    packages = "rdmacm-utils, or librdmacm-utils on Oracle Linux"
    return "%s is not installed (%s)" % (missing[0], packages) if missing else ""


def start(
    root: Root, namespace: Optional[Namespace], addresses: dict[str, str], port: int, limit: int
) -> dict[str, str]:
    """Start a listener on each address.

    :param namespace: where; ``None``: the host's own.
    :param addresses: NIC to its address.
    :param limit: seconds after which a listener ends by itself.
    :returns: NICs without a listener, and why.
    """
    reason = missing_tool(root)
    if reason:
        return dict.fromkeys(addresses, reason)
    started: dict[str, tuple[subprocess.Popen[bytes], int]] = {}
    failed: dict[str, str] = {}
    for nic, address in addresses.items():
        words = _words(root, address, port, limit)
        said = os.memfd_create(TOOL)
        try:
            started[nic] = (_spawn(namespace, words, said), said)
        except OSError as error:
            os.close(said)
            failed[nic] = "%s cannot be started: %s" % (TOOL, reason_of(error))
    end = time.monotonic() + _SETTLE
    while time.monotonic() < end and any(child.poll() is None for child, _said in started.values()):
        time.sleep(0.05)
    for nic, (child, said) in started.items():
        if child.poll() is not None:
            failed[nic] = "%s ended at once: %s" % (TOOL, _last_line(said) or "it said nothing")
        os.close(said)
    return failed


def _words(root: Root, address: str, port: int, limit: int) -> list[str]:
    inner = [TOOL, "-s", "-P", "-a", address, "-p", str(port)]
    keeper = commands.find(root, KEEPER) or KEEPER
    return [*(("chroot", root.path) if root.path else ()), keeper, "--kill-after=2", str(limit), *inner]


def _spawn(namespace: Optional[Namespace], words: list[str], said: int) -> subprocess.Popen[bytes]:
    def spawn() -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=said,
            start_new_session=True,
            cwd="/",
            env={"LC_ALL": "C", "PATH": ":".join(commands.PATH), MARK: "1"},
        )

    return spawn() if namespace is None else inside(namespace, spawn)


def _last_line(handle: int) -> str:
    os.lseek(handle, 0, os.SEEK_SET)
    lines = os.read(handle, 4096).decode("utf-8", "replace").strip().splitlines()
    return lines[-1][:200] if lines else ""


def running(root: Root, namespace: Namespace) -> list[int]:
    """The processes of listeners in a namespace: those that carry our mark."""
    return [pid for pid in processes(root, namespace) if _is_marked(root, pid)]


def count(root: Root, namespace: Namespace) -> int:
    """How many listeners run in a namespace; each is a program and the one that ends it in time."""
    leaders = 0
    for pid in running(root, namespace):
        with contextlib.suppress(OSError):
            leaders += os.getsid(pid) == pid
    return leaders


def _is_marked(root: Root, pid: int) -> bool:
    try:
        with open("%s/proc/%d/environ" % (root.path, pid), "rb") as file:
            return ("%s=1" % MARK).encode() in file.read(1 << 16).split(b"\0")
    except OSError:
        return False


def end(root: Root, namespace: Namespace) -> None:
    """End the listeners of a namespace and wait until they are gone."""
    for pid in running(root, namespace):
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not running(root, namespace), 2.0)


def discard(root: Root, name: str) -> None:
    """Remove a namespace of ours with the listeners that would keep it alive.

    :raises RdmaError: ``namespace_not_removed``, ``namespace_not_entered``.
    """
    place = place_of(root, name)
    if is_mounted(place):
        with opened(place, name) as namespace:
            end(root, namespace)
    remove(root, name)


def read_namespace(root: Root, name: str) -> str:
    """Whether a namespace is there, as its undo record says it."""
    return "present" if is_mounted(place_of(root, name)) else "absent"


def write_namespace(root: Root, name: str, value: Any) -> None:
    """Undo the making of a namespace: what is inside goes with it."""
    if value == "absent":
        discard(root, name)
