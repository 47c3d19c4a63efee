# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Kernel modules: which are there, what keeps one from being loaded, in which order they load, do they take effect.

Private to rdma.k8s: it may change with any release. Names are written with underscores, as the kernel does.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Optional

from . import modprobe
from .errors import RdmaError

COMMAND_LINE = "/proc/cmdline"
LOAD_DIRECTORY = "/etc/modules-load.d"
PEER_MEMORY, GDR_COPY = "nvidia_peermem", "gdrdrv"
GDR_DEVICE = "/dev/gdrdrv"
DMA_BUF_SINCE = (5, 12)
"""The first kernel whose verbs take a dma-buf, which a GPU driver can hand out instead of a peer memory module."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_FILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_REFUSING = ("false", "true", ":")
_HEADER = "# Written by rdma.k8s.kernel_modules: the whole file is replaced.\n"


@dataclass(frozen=True)
class Loaded:
    """A loaded module: how often it is used, and by which modules."""

    uses: int = 0
    used_by: tuple[str, ...] = ()


@dataclass(frozen=True)
class Kernel:
    """What the running kernel has.

    :param release: such as 6.8.0-90-generic.
    :param builtin: modules that are part of the kernel.
    :param depends: modules that can be loaded, with those that must be loaded before, in this order; ``None``: the
        directory of this kernel's modules is not there.
    :param elsewhere: releases whose directories have a module, by module; for those that this kernel does not have.
    """

    release: str
    loaded: Mapping[str, Loaded] = field(default_factory=dict)
    builtin: frozenset[str] = frozenset()
    depends: Optional[Mapping[str, tuple[str, ...]]] = None
    elsewhere: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def has(self, name: str) -> bool:
        """Whether a module is at work now."""
        return name in self.loaded or name in self.builtin

    def state_of(self, name: str) -> str:
        """``builtin``, ``loaded`` or ``absent``."""
        if name in self.builtin:
            return "builtin"
        return "loaded" if name in self.loaded else "absent"


@dataclass(frozen=True)
class Block:
    """A line that keeps a module from being loaded.

    :param always: the module cannot be loaded at all; else it is only left out at boot.
    """

    module: str
    place: str
    text: str
    always: bool


@dataclass(frozen=True)
class Effect:
    """Whether a loaded module does what it is loaded for; ``usable`` is ``None`` when that cannot be told."""

    module: str
    usable: Optional[bool]
    reason: str
    hint: str = ""

    def to_dict(self) -> dict[str, object]:
        """Plain data."""
        return {"module": self.module, "usable": self.usable, "reason": self.reason}


def names_of(given: Iterable[str]) -> list[str]:
    """The names of modules as the kernel writes them, each once, in the order given.

    :raises RdmaError: ``kernel_module_name_malformed``
    """
    names: dict[str, None] = {}
    for text in given:
        if not _NAME.fullmatch(text):
            raise RdmaError(
                "kernel_module_name_malformed",
                "%r is not the name of a kernel module." % text[:80],
                hint="Write letters, digits, dashes and underscores, without a path and without '.ko'.",
                value=text,
            )
        names[text.replace("-", "_")] = None
    return list(names)


def require_some(names: list[str]) -> None:
    """Refuse an empty list, which would write a file that loads nothing.

    :raises RdmaError: ``kernel_modules_none_named``
    """
    if not names:
        raise RdmaError(
            "kernel_modules_none_named",
            "No module is named in modules.",
            hint="Name the modules, or remove the file by state absent.",
        )


def path_of(name: str) -> str:
    """The path of our file below /etc/modules-load.d.

    :raises RdmaError: ``file_name_malformed``
    """
    if not _FILE_NAME.fullmatch(name):
        raise RdmaError(
            "file_name_malformed",
            "%r cannot be the name of a file in %s." % (name[:80], LOAD_DIRECTORY),
            hint="Write letters, digits, dots, dashes and underscores, without '.conf'.",
            value=name,
        )
    return "%s/%s.conf" % (LOAD_DIRECTORY, name)


def require_own_file(path: str, text: Optional[str], is_link: bool) -> None:
    """Refuse a file that this module did not write: the whole of it would be replaced, or gone.

    :param text: what the file holds; ``None``: there is none.
    :param is_link: whether the name stands for a file elsewhere, which is never one of ours.
    :raises RdmaError: ``file_foreign``
    """
    if is_link or not (text is None or text.startswith(_HEADER)):
        raise RdmaError(
            "file_foreign",
            "%s %s; it is neither replaced nor removed."
            % (path, "is a link, and no file of this module" if is_link else "was written by somebody else"),
            hint="Give file another name; modules that both files name are loaded once.",
            path=path,
        )


def file_of(names: Iterable[str]) -> str:
    """The whole content of our file: one module on each line."""
    return _HEADER + "".join(["%s\n" % name for name in names])


# Reading


def parse_loaded(text: str) -> dict[str, Loaded]:
    """``/proc/modules``: name, size, uses, users with commas, state."""
    found = {}
    for line in text.splitlines():
        words = line.split()
        if len(words) >= 5:
            users = tuple([name for name in words[3].split(",") if name not in ("", "-")])
            found[words[0]] = Loaded(int(words[2]) if words[2].isdigit() else 0, users)
    return found


def parse_builtin(text: str) -> frozenset[str]:
    """``modules.builtin``: one path on each line."""
    return frozenset([_module_of(line) for line in text.splitlines() if line.strip()])


def parse_depends(text: str) -> dict[str, tuple[str, ...]]:
    """``modules.dep``: ``PATH: PATH ...``, what is needed first stands last."""
    found = {}
    for line in text.splitlines():
        path, colon, needed = line.partition(":")
        if colon:
            found[_module_of(path)] = tuple([_module_of(each) for each in reversed(needed.split())])
    return found


def _module_of(path: str) -> str:
    return path.strip().rpartition("/")[2].partition(".")[0].replace("-", "_")


def blocks(files: Iterable[tuple[str, str]], command_line: str) -> list[Block]:
    """Every line that keeps a module from being loaded, in modprobe files and on the kernel command line.

    ``blacklist`` leaves a module out at boot and when a device asks for it; a person, or a module that needs it, can
    still load it. ``install`` with a program that does nothing, and ``module_blacklist``, keep it out for good.
    """
    found = []
    for path, text in files:
        for line in modprobe.logical_lines(text):
            words = line.text.split()
            place = "%s:%d" % (path, line.number)
            if words[:1] == ["blacklist"] and len(words) > 1:
                found.append(Block(words[1].replace("-", "_"), place, line.text, False))
            elif words[:1] == ["install"] and len(words) > 2 and words[2].rpartition("/")[2] in _REFUSING:
                found.append(Block(words[1].replace("-", "_"), place, line.text, True))
    for word in modprobe.split(command_line):
        option, equals, value = word.partition("=")
        if equals and option in ("module_blacklist", "modprobe.blacklist"):
            for name in value.split(","):
                always = option == "module_blacklist"
                found.append(Block(name.replace("-", "_"), COMMAND_LINE, word, always))
    return found


# Deciding


def to_load(wanted: Iterable[str], kernel: Kernel, found: Iterable[Block], persist: bool) -> list[str]:
    """The modules that must be loaded now, those that others need first.

    :param found: the answer of :func:`blocks`.
    :param persist: whether the modules are to be loaded at each boot too.
    :raises RdmaError: ``kernel_modules_unreadable``, ``kernel_module_missing`` or ``kernel_module_blocked``; for all
        modules before any of them is loaded.
    """
    order: dict[str, None] = {}
    blocked: list[Block] = []
    found = list(found)
    for name in wanted:
        if name in kernel.builtin:
            continue
        if name not in kernel.loaded or persist:
            _require(name, kernel)
        chain = (*(kernel.depends or {}).get(name, ()), name)
        missing = [each for each in chain if not kernel.has(each)]
        order.update(dict.fromkeys(missing))
        for block in found:
            at_boot = persist and (block.module == name or (block.always and block.module in chain))
            if at_boot or (block.always and block.module in missing):
                blocked.append(block)
    if blocked:
        raise _blocked(list(dict.fromkeys(blocked)))
    return list(order)


def _require(name: str, kernel: Kernel) -> None:
    if kernel.depends is None:
        raise RdmaError(
            "kernel_modules_unreadable",
            "/lib/modules/%s/modules.dep does not exist, so no module of the running kernel can be loaded."
            % kernel.release,
            hint="Install the modules of this kernel, or reboot into one whose modules are installed.",
            module=name,
            kernel=kernel.release,
        )
    if name in kernel.depends:
        return
    others = kernel.elsewhere.get(name, ())
    if name in kernel.loaded:
        problem = (
            "is loaded, but is not in the directory of kernel %s, so that no boot would load it"
            % kernel.release
        )
    elif others:
        problem = "does not exist for the running kernel %s, only for %s" % (
            kernel.release,
            ", ".join(others),
        )
    else:
        problem = "does not exist for the running kernel %s" % kernel.release
    raise RdmaError(
        "kernel_module_missing",
        "The kernel module %s %s." % (name, problem),
        hint="Install the package that has it for this kernel (or let DKMS build it)%s."
        % (", or reboot into one that has it" if others else ""),
        module=name,
        kernel=kernel.release,
        elsewhere=list(others),
    )


def _blocked(found: list[Block]) -> RdmaError:
    lines = ["%s '%s'" % (block.place, block.text) for block in found]
    names = list(dict.fromkeys([block.module for block in found]))
    return RdmaError(
        "kernel_module_blocked",
        "%s must not be loaded, say %d lines: %s." % (", ".join(names), len(lines), "; ".join(lines)),
        hint="Find out who wrote them and why, then remove them (a boot image may hold a copy), or do not ask for the "
        "module.",
        modules=names,
        places=[block.place for block in found],
    )


# Effects


@dataclass(frozen=True)
class PeerEvidence:
    """What tells whether NICs reach GPU memory.

    :param loaded: of the modules.
    :param registered: names below ``/sys/kernel/mm/memory_peers``.
    :param open_driver: whether the GPU driver is the open one, which hands out dma-bufs; ``None``: not known.
    """

    loaded: Mapping[str, Loaded]
    release: str
    registered: tuple[str, ...] = ()
    open_driver: Optional[bool] = None


def peer_memory(found: PeerEvidence) -> Effect:
    """Whether ``nvidia_peermem`` does something, or a dma-buf does it instead (NODE-007, DEV-35, S41).

    The module can be loaded and idle: built without the RDMA stack's interface, or loaded in front of it. It is at work
    when the RDMA stack has it registered, when a module of the RDMA stack is used by it, or when it is itself in use.
    """
    module = found.loaded.get(PEER_MEMORY)
    dma_buf = _dma_buf(found)
    if module is not None:
        peers = [name for name in found.registered if name.startswith("nv_mem")]
        users = [name for name, each in found.loaded.items() if PEER_MEMORY in each.used_by]
        stack = sorted([name for name in users if not name.startswith("nvidia")])
        if peers:
            return Effect(PEER_MEMORY, True, "the RDMA stack has registered it as %s" % peers[0])
        if stack:
            return Effect(PEER_MEMORY, True, "it is registered with %s" % ", ".join(stack))
        if module.uses:
            return Effect(PEER_MEMORY, True, "it is in use (%d)" % module.uses)
    state = "is loaded, but nothing of the RDMA stack uses it" if module is not None else "is not loaded"
    if dma_buf:
        return Effect(PEER_MEMORY, True, "it %s; the open GPU driver hands out dma-bufs instead" % state)
    hint = "Load it after both the GPU driver and the RDMA driver; when that does not help, build the GPU driver again "
    hint += "with the RDMA driver's headers installed, or use the open GPU driver."
    if dma_buf is None:
        return Effect(
            PEER_MEMORY, None, "it %s, and the GPU driver does not say which one it is" % state, hint
        )
    return Effect(PEER_MEMORY, False, "it %s, and there is no dma-buf path" % state, hint)


def _dma_buf(found: PeerEvidence) -> Optional[bool]:
    version = re.match(r"(\d+)\.(\d+)", found.release)
    if version is None:
        return None
    if (int(version[1]), int(version[2])) < DMA_BUF_SINCE:
        return False
    return found.open_driver


def is_open_driver(text: Optional[str]) -> Optional[bool]:
    """Whether ``/proc/driver/nvidia/version`` names the open kernel modules; ``None``: there is no such driver."""
    return None if text is None else "Open Kernel Module" in text


def gdr_copy(loaded: bool, majors: Mapping[str, int], device: Optional[int]) -> Effect:
    """Whether ``gdrdrv`` can be used: through a device file with the number of the driver.

    :param majors: numbers of character devices by driver (``/proc/devices``).
    :param device: number of the driver of :data:`GDR_DEVICE`; ``None``: it is not a character device.
    """
    if not loaded:
        return Effect(GDR_COPY, False, "it is not loaded")
    major = majors.get(GDR_COPY)
    if major is None:
        return Effect(GDR_COPY, False, "it is loaded, but the kernel has no character device of it")
    hint = "Run 'mknod -m 666 %s c %d 0', or start the service that comes with it." % (GDR_DEVICE, major)
    if device is None:
        return Effect(GDR_COPY, False, "there is no device %s" % GDR_DEVICE, hint)
    if device != major:
        reason = "%s has the driver number %d, the module has %d" % (GDR_DEVICE, device, major)
        return Effect(GDR_COPY, False, reason, "Remove it. " + hint)
    return Effect(GDR_COPY, True, "%s is the device of the module" % GDR_DEVICE)


def parse_majors(text: str) -> dict[str, int]:
    """The character devices of ``/proc/devices``: number by name."""
    found = {}
    for line in text.partition("Block devices:")[0].splitlines():
        number, _unused, name = line.strip().partition(" ")
        if number.isdigit():
            found[name] = int(number)
    return found


def require_effect(effects: Iterable[Effect]) -> None:
    """Refuse modules that are loaded and idle.

    :raises RdmaError: ``kernel_module_without_effect``
    """
    for effect in effects:
        if effect.usable is False:
            raise RdmaError(
                "kernel_module_without_effect",
                "The kernel module %s has no effect: %s." % (effect.module, effect.reason),
                hint=effect.hint,
                module=effect.module,
            )
