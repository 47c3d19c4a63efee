# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Network namespaces: find, enter, make and remove them. Private to rdma.k8s: it may change with any release.

A namespace is entered by a thread that ends there, so the process itself never leaves its own. Whoever holds a
namespace open keeps it alive, and a living namespace keeps the RDMA mode from being switched (S15): close it always.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import re
import stat
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Callable, Optional, TypeVar

from ..core.errors import RdmaError
from .files import Root, reason_of

T = TypeVar("T")

DIRECTORY = "/run/netns"
PREFIX = "rdma-k8s-"
"""Namespaces with such a name are ours: made and removed by this collection, with all that is inside."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}", re.ASCII)
_OF_PROCESS = re.compile(r"(/ns/net):\[[0-9]+\]\Z", re.ASCII)
_CLONE_NEWNET = 0x40000000
_MS_BIND = 0x1000
_MNT_DETACH = 2
_TEARDOWN = 5.0


@dataclass(frozen=True)
class Namespace:
    """A namespace that is held open: how it was named, its file descriptor, and what makes it that one."""

    label: str
    handle: int
    identity: tuple[int, int]


def is_ours(name: str) -> bool:
    """Whether a name of a namespace is one of this collection's."""
    return name.startswith(PREFIX)


def place_of(root: Root, name: str = "", path: str = "", pid: Optional[int] = None) -> str:
    """The file of a namespace: by name in ``/run/netns``, by path, or of a process. Links stay inside the root.

    :raises RdmaError: ``namespace_name``, ``namespace_not_entered`` for links in a circle.
    """
    if name and not _NAME.fullmatch(name):
        raise RdmaError(
            "namespace_name",
            "%r cannot be the name of a network namespace." % name,
            hint="Use letters, digits, '-', '_' and '.'; give a path by its own option.",
            namespace=name,
        )
    if pid is not None:
        return "%s/proc/%d/ns/net" % (root.path, pid)
    try:
        if is_ours(name):  # no link is ours, and making or removing one must not follow it
            return "%s/%s" % (root.real(DIRECTORY), name)
        path = path or "%s/%s" % (DIRECTORY, name)
        if os.path.normpath(path).startswith(
            "/proc/"
        ):  # what looks like links there leads elsewhere than their text says
            return root.path + path
        return _OF_PROCESS.sub(r"\1", root.real(path))
    except OSError as error:
        raise _not_entered(name or path, error) from error


@contextlib.contextmanager
def opened(place: str, label: str) -> Iterator[Namespace]:
    """Hold a namespace open.

    :raises RdmaError: ``namespace_missing``, ``namespace_not_entered``.
    """
    try:
        handle = os.open(place, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ESRCH):
            raise missing(label) from error
        raise _not_entered(label, error) from error
    try:
        if not _is_namespace(handle):
            raise missing(label)
        yield Namespace(label, handle, _identity(os.fstat(handle)))
    finally:
        os.close(handle)


def missing(label: str) -> RdmaError:
    """The error for a namespace that is not there, or not any more."""
    return RdmaError(
        "namespace_missing",
        "The network namespace %s does not exist." % label,
        hint="Give the name of one in %s, a path, or the process id of a pod's container that runs."
        % DIRECTORY,
        namespace=label,
    )


def _not_entered(label: str, error: OSError) -> RdmaError:
    return RdmaError(
        "namespace_not_entered",
        "The network namespace %s cannot be entered: %s." % (label, reason_of(error)),
        hint="Run as root (become: true), with CAP_SYS_ADMIN and CAP_NET_ADMIN in a container.",
        namespace=label,
    )


def still_there(place: str, namespace: Namespace) -> bool:
    """Whether the file still leads to the namespace that is held open."""
    try:
        return _identity(os.stat(place)) == namespace.identity
    except OSError:
        return False


def own_identity() -> tuple[int, int]:
    """What makes the namespace of this process that one."""
    return _identity(os.stat("/proc/self/ns/net"))


def inside(namespace: Namespace, act: Callable[[], T]) -> T:
    """Do something in a namespace: netlink sockets, sockets and ``/proc/sys/net`` belong to it there.

    :raises RdmaError: ``namespace_not_entered``, or what ``act`` raises.
    """

    def enter_and_act() -> T:
        try:
            _call("setns", namespace.handle, _CLONE_NEWNET)
        except OSError as error:
            raise _not_entered(namespace.label, error) from error
        return act()

    return _in_a_thread(enter_and_act)


def make(root: Root, name: str) -> None:
    """Make a namespace with a name, as ``ip netns add`` does; what a killed run left of it is used.

    :raises RdmaError: ``namespace_not_made``; nothing is left then.
    """
    place = place_of(root, name)
    try:
        os.makedirs(os.path.dirname(place), mode=0o755, exist_ok=True)
        os.close(os.open(place, os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC, 0))
        _in_a_thread(lambda: _pin(place))
    except OSError as error:
        with contextlib.suppress(OSError):
            if not is_mounted(place):
                os.unlink(place)
        raise RdmaError(
            "namespace_not_made",
            "The network namespace %s cannot be made: %s." % (name, reason_of(error)),
            hint="Run as root (become: true), with CAP_SYS_ADMIN and CAP_NET_ADMIN in a container.",
            namespace=name,
        ) from error


def remove(root: Root, name: str) -> None:
    """Remove a named namespace; without a process inside, it goes away with all that is in it.

    :raises RdmaError: ``namespace_not_removed``.
    """
    place = place_of(root, name)
    try:
        while is_mounted(place):  # a killed run can have pinned a second one over the first
            _call("umount2", place.encode(), _MNT_DETACH)
        os.unlink(place)
    except FileNotFoundError:
        return
    except OSError as error:
        raise RdmaError(
            "namespace_not_removed",
            "The network namespace %s cannot be removed: %s." % (name, reason_of(error)),
            hint="Look at what holds %s: 'ip netns pids %s'." % (place, name),
            namespace=name,
        ) from error


def is_mounted(place: str) -> bool:
    """Whether the file of a named namespace leads to a namespace."""
    try:
        found = os.stat(place)
    except OSError:
        return False
    return found.st_dev == os.stat("/proc/self/ns/net").st_dev


def _pin(place: str) -> None:
    _call("unshare", _CLONE_NEWNET)
    _call("mount", b"/proc/thread-self/ns/net", place.encode(), b"none", _MS_BIND, None)


def everyone(root: Root) -> Iterator[Namespace]:
    """Every other namespace of the node that a process lives in or a mount names, each once, open while it is given.

    One that only an open file or a socket keeps alive has no name anywhere and is not found.
    """
    seen = {own_identity()}
    for place, label in _places(root):
        try:
            if _identity(os.stat(place)) in seen:
                continue
            with opened(place, label) as namespace:
                if namespace.identity not in seen:
                    seen.add(namespace.identity)
                    yield namespace
        except (OSError, RdmaError):  # gone meanwhile
            continue


def _places(root: Root) -> Iterator[tuple[str, str]]:
    for name in _listed(root.path + DIRECTORY):
        yield "%s%s/%s" % (root.path, DIRECTORY, name), name
    for point in _mount_points():
        yield point, point
    for pid in _listed(root.path + "/proc"):
        if pid.isdecimal():
            yield "%s/proc/%s/ns/net" % (root.path, pid), "of process %s" % pid


def _listed(directory: str) -> list[str]:
    try:
        return sorted(os.listdir(directory))
    except OSError:
        return []


def _mount_points() -> list[str]:
    """Where namespaces are mounted, as this process sees it."""
    try:
        with open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as file:
            lines = [line.split(" ") for line in file]
    except OSError:
        return []
    points = [words[4] for words in lines if len(words) > 5 and words[3].startswith("net:[")]
    return [re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), point) for point in points]


def processes(root: Root, namespace: Namespace) -> list[int]:
    """The processes that live in a namespace."""
    found = []
    for pid in _listed(root.path + "/proc"):
        if pid.isdecimal():
            with contextlib.suppress(OSError):
                if _identity(os.stat("%s/proc/%s/ns/net" % (root.path, pid))) == namespace.identity:
                    found.append(int(pid))
    return found


def _identity(found: os.stat_result) -> tuple[int, int]:
    return found.st_dev, found.st_ino


def _is_namespace(handle: int) -> bool:
    found = os.fstat(handle)
    return stat.S_ISREG(found.st_mode) and found.st_dev == os.stat("/proc/self/ns/net").st_dev


def _in_a_thread(act: Callable[[], T]) -> T:
    """A new thread for each call, since one that has entered a namespace stays there."""
    with ThreadPoolExecutor(max_workers=1) as thread:
        return thread.submit(act).result()


def _call(name: str, *arguments: Any) -> None:
    """A function of the C library that gives 0, or sets ``errno``."""
    library = ctypes.CDLL(None, use_errno=True)
    if getattr(library, name)(*arguments):
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


def wait_until(met: Callable[[], bool], limit: float = _TEARDOWN, every: float = 0.02) -> bool:
    """Ask again and again, for at most ``limit`` seconds; whether it came true."""
    end = time.monotonic() + limit
    while not met():
        if time.monotonic() >= end:
            return False
        time.sleep(every)
    return True
