# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The machine, its kernel modules and the options of ib_core. Private to rdma.k8s: it may change any time."""

from __future__ import annotations

import os
import re
from typing import Optional

from ..core import modprobe
from ..core.errors import RdmaError
from ..core.snapshot import HostInfo, ModuleOption
from . import edits
from .files import Root

MODULE = "ib_core"
PARAMETER = "/sys/module/ib_core/parameters/netns_mode"
# Earlier directories win for files of one name; the files of all of them count in the order of their names (S20).
MODPROBE = (
    "/etc/modprobe.d",
    "/run/modprobe.d",
    "/usr/local/lib/modprobe.d",
    "/usr/lib/modprobe.d",
    "/lib/modprobe.d",
)
COMMAND_LINE = "/proc/cmdline"
CGROUPS = "/sys/fs/cgroup"
SOCKETS = "/proc/1/net/unix"
_NRI = re.compile(
    r"^\S+ [0-9A-Fa-f]{8} [0-9A-Fa-f]{8} ([0-9A-Fa-f]{8}) .* (?:/var)?/run/nri/nri\.sock$", re.MULTILINE
)
_LISTENS = 1 << 16
_LARGE = 8 << 20
_LARGE_FILE = 1 << 20
# Modules that the checks ask about (NODE-006, S3, S34, S41), and the drivers of RDMA NICs of other vendors.
MODULES = (
    "bnxt_en",
    "bnxt_re",
    "efa",
    "gdrdrv",
    "ib_core",
    "ib_ipoib",
    "ib_umad",
    "ib_uverbs",
    "ionic",
    "ionic_rdma",
    "irdma",
    "mlx5_core",
    "mlx5_ib",
    "nvidia",
    "nvidia_peermem",
    "rdma_cm",
    "rdma_rxe",
    "rdma_ucm",
    "siw",
)


def host(root: Root) -> HostInfo:
    """Names and versions of the machine; what a recorded tree does not hold stays empty."""
    release = _os_release(root)
    return HostInfo(
        hostname=root.value("/proc/sys/kernel/hostname") or (root.read("/etc/hostname") or "").strip(),
        kernel=root.value("/proc/sys/kernel/osrelease") or "",
        architecture=root.value("/proc/sys/kernel/arch") or ("" if root.path else os.uname().machine),
        os=release.get("ID", ""),
        os_version=release.get("VERSION_ID", ""),
        boot_id=root.value("/proc/sys/kernel/random/boot_id") or "",
        boot_time=boot_time(root),
        cgroup=_cgroup(root),
        nri=_nri(root),
    )


def _cgroup(root: Root) -> str:
    """The hierarchy of control groups that the resources are in (A11): ``v2``, ``v1``; empty: it cannot be told."""
    if root.exists(CGROUPS + "/cgroup.controllers"):
        return "v2"
    return "v1" if root.exists(CGROUPS + "/memory") else ""


def _nri(root: Root) -> Optional[bool]:
    """Whether a program of the host listens on the socket of NRI (F116); ``None``: its sockets cannot be read.

    The file of a socket stays when its program has ended, so the list of the kernel is asked.
    """
    text = root.read(SOCKETS, _LARGE)
    if text is None:
        return None
    return any(int(flags, 16) & _LISTENS for flags in _NRI.findall(text))


def _os_release(root: Root) -> dict[str, str]:
    text = root.read("/etc/os-release") or root.read("/usr/lib/os-release") or ""
    values = {}
    for line in text.splitlines():
        key, found, value = line.partition("=")
        if found and key in ("ID", "VERSION_ID"):
            values[key] = value.strip().strip("\"'")
    return values


def boot_time(root: Root) -> Optional[int]:
    """When the kernel started, in seconds since the epoch."""
    match = re.search(r"^btime ([0-9]{1,12})$", root.read("/proc/stat", _LARGE) or "", re.MULTILINE)
    return int(match.group(1)) if match else None


def modules(root: Root, release: str) -> dict[str, str]:
    """Those of :data:`MODULES` that the kernel has: name to ``live``, ``loading``, ``unloading`` or ``builtin``.

    Not loaded is not in the map; when ``/proc/modules`` cannot be read, the errors say so.
    """
    text = root.read("/proc/modules", _LARGE)
    if text is None:
        root.fail("/proc/modules", "does not exist")
    found = {}
    for line in (text or "").splitlines():
        words = line.split()
        if len(words) >= 5 and words[0] in MODULES:
            found[words[0]] = words[4].lower()
    builtin = _builtin(root, release)
    for name in MODULES:
        if name not in found and (name in builtin or root.exists("/sys/module/" + name)):
            found[name] = "builtin"
    return found


def may_have(root: Root, module: str, release: str) -> bool:
    """Whether a module is in the kernel; true also where a kernel without loadable modules does not tell."""
    if root.exists("/sys/module/" + module) or not root.exists("/proc/modules"):
        return True
    return module in _builtin(root, release)


def is_builtin(root: Root, module: str) -> bool:
    """Whether a module is part of the running kernel itself, which reads no modprobe file."""
    return module in _builtin(root, root.value("/proc/sys/kernel/osrelease") or "")


def _builtin(root: Root, release: str) -> set[str]:
    text = root.read("/lib/modules/%s/modules.builtin" % release, _LARGE) if release else None
    names = [line.rpartition("/")[2].partition(".")[0] for line in (text or "").splitlines()]
    return {name.replace("-", "_") for name in names}


def modprobe_files(root: Root) -> list[tuple[str, str]]:
    """Path and text of the files that kmod reads, in the order in which they count (S20)."""
    texts = [(path, root.read(path, _LARGE_FILE)) for path in _modprobe_paths(root)]
    return [(path, text) for path, text in texts if text is not None]


def exact_modprobe_files(root: Root) -> list[tuple[str, str]]:
    """Like :func:`modprobe_files`, for a change: bytes that are no UTF-8 are kept, and nothing is passed over.

    :raises RdmaError: ``file_unreadable``
    """
    found = []
    for path in _modprobe_paths(root):
        if edits.place_of(root, path) == root.path + os.devnull:  # a mask
            continue
        state = edits.read(root, path)
        if state is not None:
            found.append((path, state.exact()))
    for error in root.errors:
        if error.source in MODPROBE:
            raise RdmaError(
                "file_unreadable",
                "%s cannot be read: %s." % (error.source, error.reason),
                hint="It is not known what modprobe would read there.",
                path=error.source,
            )
    return found


def _modprobe_paths(root: Root) -> list[str]:
    """kmod passes over names that begin with a dot."""
    files: dict[str, str] = {}
    for directory in MODPROBE:
        for name in root.names(directory) or ():
            if name.endswith(".conf") and not name.startswith("."):
                files.setdefault(name, "%s/%s" % (directory, name))
    return [path for _name, path in sorted(files.items())]


def command_line(root: Root) -> str:
    """The command line of the running kernel; the errors tell when it cannot be read."""
    text = root.read(COMMAND_LINE)
    if text is None:
        root.fail(COMMAND_LINE, "does not exist")
    return text or ""


def module_options(root: Root) -> Optional[tuple[ModuleOption, ...]]:
    """All settings of options of ib_core in the order in which they count: the last one of an option wins (S20)."""
    options = []
    for path, text in modprobe_files(root):
        for found in modprobe.in_file(text, MODULE):
            options.append(
                ModuleOption(path, found.option, found.value, found.line or None, root.modified(path))
            )
    for found in modprobe.on_command_line(command_line(root), MODULE):
        options.append(ModuleOption(COMMAND_LINE, found.option, found.value))
    return tuple(options)
