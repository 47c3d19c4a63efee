# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Load kernel modules, now and at boot. Private to rdma.k8s: it may change with any release."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Mapping
from typing import Any, Optional

from ..core import kernel_modules as core
from ..core.errors import RdmaError
from ..core.text import shown
from . import commands, edits, kernel
from .changes import Changes
from .files import Root, reason_of

PEERS = "/sys/kernel/mm/memory_peers"
DRIVER_VERSION = "/proc/driver/nvidia/version"
KIND = "kernel_module"
"""Kind of the undo records: a module is ``loaded`` or ``absent``."""

LIMIT = 120.0
"""Seconds for one modprobe: a driver looks for its hardware before it answers."""

_LARGE = 16 << 20
_MODULES = "/lib/modules"


def read(root: Root, wanted: Iterable[str] = ()) -> core.Kernel:
    """What the running kernel has.

    :param wanted: modules that are asked about; those that this kernel does not have are looked for among others.
    :raises RdmaError: ``value_unreadable``: /proc/modules is not there.
    """
    release = root.value("/proc/sys/kernel/osrelease") or ""
    directory = "%s/%s" % (_MODULES, release)
    builtin = set(core.parse_builtin(root.read(directory + "/modules.builtin", _LARGE) or ""))
    now = loaded(root)
    for name in wanted:
        if name not in now and root.exists("/sys/module/" + name):
            builtin.add(name)
    text = root.read(directory + "/modules.dep", _LARGE)
    depends = None if text is None else core.parse_depends(text)
    missing = [name for name in wanted if depends is None or name not in depends]
    return core.Kernel(release, now, frozenset(builtin), depends, _elsewhere(root, release, missing))


def loaded(root: Root) -> dict[str, core.Loaded]:
    """The modules that are loaded now.

    :raises RdmaError: ``value_unreadable``
    """
    text = root.read("/proc/modules", _LARGE)
    if text is None:
        reason = [error.reason for error in root.errors if error.source == "/proc/modules"]
        raise RdmaError(
            "value_unreadable",
            "/proc/modules cannot be read: %s." % (reason[-1] if reason else "it does not exist"),
            hint="Mount /proc below the root of the host.",
            path="/proc/modules",
        )
    return core.parse_loaded(text)


def _elsewhere(root: Root, release: str, missing: Iterable[str]) -> dict[str, tuple[str, ...]]:
    wanted = list(missing)
    found: dict[str, tuple[str, ...]] = {}
    for other in root.names(_MODULES) or () if wanted else ():
        if other != release:
            text = root.read("%s/%s/modules.dep" % (_MODULES, other), _LARGE) or ""
            has = core.parse_depends(text)
            found.update({name: (*found.get(name, ()), other) for name in wanted if name in has})
    return found


def change(
    changes: Changes, wanted: list[str], path: str, load: bool = True, persist: bool = True
) -> core.Kernel:
    """Load modules and name them in the file ``path``. All of them are judged before the first is loaded.

    :returns: what the kernel had before.
    :raises RdmaError: those of :func:`.core.kernel_modules.to_load`, ``file_foreign``, ``command_failed``,
        ``tool_missing``, ``kernel_module_not_loaded`` and those of :class:`Changes`.
    """
    root = changes.root
    if persist:
        _require_own_file(root, path)
    before = read(root, wanted)
    lines = core.blocks(
        [(path, shown(text)) for path, text in kernel.exact_modprobe_files(root)], kernel.command_line(root)
    )
    order = core.to_load(wanted, before, lines, persist)
    for name in order if load else ():
        _load(changes, name)
    if persist:
        changes.file(path, core.file_of(wanted))
    return before


def forget(changes: Changes, path: str) -> None:
    """Remove the file ``path``. Nothing is unloaded.

    :raises RdmaError: ``file_foreign`` and those of :class:`Changes`.
    """
    _require_own_file(changes.root, path)
    changes.file(path, None)


def _require_own_file(root: Root, path: str) -> None:
    directory, name = os.path.split(path)
    is_link = os.path.islink(os.path.join(edits.place_of(root, directory), name))
    state = None if is_link else edits.read(root, path)
    core.require_own_file(path, None if state is None else state.text(), is_link)


def _load(changes: Changes, name: str) -> None:
    changes.live(KIND, name, "absent", "loaded", _Loading(changes.root, name))


class _Loading:
    """Loads one module when it is called."""

    def __init__(self, root: Root, name: str) -> None:
        self.root = root
        self.name = name

    def __call__(self) -> None:
        write_state(self.root, self.name, "loaded")
        if read_state(self.root, self.name) != "loaded":
            raise RdmaError(
                "kernel_module_not_loaded",
                "modprobe %s reported success, and the module is not loaded." % self.name,
                hint="Look for an 'install' line of it in the output of 'modprobe --showconfig'.",
                module=self.name,
            )


def read_state(root: Root, name: str) -> str:
    """``loaded`` or ``absent``, for the undo records."""
    return "loaded" if name in loaded(root) or root.exists("/sys/module/" + name) else "absent"


def write_state(root: Root, name: str, value: str) -> None:
    """Load a module, or take it out unless something uses it."""
    if value == "loaded":
        commands.run(root, ["modprobe", "--", name], LIMIT)
    else:
        commands.run(root, ["rmmod", "--", name], LIMIT, codes=None)


def occupied(root: Root, name: str, leaving: frozenset[str]) -> bool:
    """Whether something uses a module, so that it cannot be taken out."""
    del leaving
    module = loaded(root).get(name)
    return module is None or module.uses > 0


def effects(root: Root, wanted: Iterable[str]) -> list[core.Effect]:
    """Whether those modules take effect of which that can be told."""
    now = loaded(root)
    found = []
    for name in wanted:
        if name == core.PEER_MEMORY:
            found.append(core.peer_memory(peer_evidence(root, now)))
        elif name == core.GDR_COPY:
            majors = core.parse_majors(root.read("/proc/devices") or "")
            found.append(core.gdr_copy(name in now, majors, _driver_of(root, core.GDR_DEVICE)))
    return found


def peer_evidence(root: Root, now: dict[str, core.Loaded]) -> core.PeerEvidence:
    """What tells whether NICs reach GPU memory."""
    return core.PeerEvidence(
        loaded=now,
        release=root.value("/proc/sys/kernel/osrelease") or "",
        registered=tuple(root.names(PEERS) or ()),
        open_driver=core.is_open_driver(root.read(DRIVER_VERSION)),
    )


def _driver_of(root: Root, path: str) -> Optional[int]:
    """The number of the driver of a character device."""
    try:
        about = os.stat(root.real(path))
    except OSError as error:
        root.fail(path, reason_of(error))
        return None
    return os.major(about.st_rdev) if stat.S_ISCHR(about.st_mode) else None


ARGUMENTS: dict[str, dict[str, Any]] = {
    "modules": {"type": "list", "elements": "str", "default": []},
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "load": {"type": "bool", "default": True},
    "persist": {"type": "bool", "default": True},
    "file": {"type": "str", "default": "rdma-k8s"},
    "verify": {"type": "bool", "default": True},
    "host_root": {"type": "path", "default": "/"},
}
"""Options of the module ``kernel_modules``."""


def act(changes: Changes, given: Mapping[str, Any]) -> dict[str, Any]:
    """What the module ``kernel_modules`` does; its result.

    :param given: values for :data:`ARGUMENTS`.
    :raises RdmaError: those of its parts.
    """
    names, path = core.names_of(given["modules"]), core.path_of(given["file"])
    if given["state"] == "absent":
        before, found = read(changes.root, names), []
        forget(changes, path)
    else:
        core.require_some(names)
        before = change(changes, names, path, given["load"], given["persist"])
        found = effects(changes.root, [name for name in names if before.has(name) or not changes.check_mode])
        if given["verify"] and given["load"]:
            core.require_effect(found)
    return {
        "modules": {name: before.state_of(name) for name in names},
        "kernel": before.release,
        "file": path,
        "effects": [effect.to_dict() for effect in found],
    }
