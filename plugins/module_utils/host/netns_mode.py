# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Bring a node to a namespace mode: look at everything, plan in the core, then change. Private to rdma.k8s.

All refusals come before the first change. What the next boot gives is changed first, then the running mode. A run that
is killed anywhere in between is repaired by the next one, which looks at all of it again.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Optional

from ..core import netns
from ..core.errors import RdmaError
from ..core.snapshot import Initramfs
from . import bootloader, edits, initramfs, kernel, other_namespaces, rdma_netlink, reboots, records, store
from .changes import Changes
from .files import Root

KIND, NAME = "rdma_netns_mode", "RDMA namespace mode"
IMAGE_KIND = "initramfs"
DIRECTORY = "/etc/modprobe.d"
DRACUT_FILE = "/etc/dracut.conf.d/rdma-k8s.conf"
MASK = "# %s is taken out of use: the setting of ib_core in it belongs to %s.\n"
_FILE = re.compile(r"/etc/modprobe\.d/[^/.][^/]*\.conf")
_PATIENCE = 2.0
_STEP = 0.05
_SHOWN = 8
_NET_ADMIN = 12


@dataclass(frozen=True)
class Wish:
    """What is wanted: the mode, the managed file, whether other files are cleaned, and whose reboots are counted."""

    mode: str
    path: str = DIRECTORY + "/ib_core.conf"
    clean: bool = False
    plan: str = ""

    @property
    def plan_id(self) -> str:
        return self.plan or "netns_mode %s" % self.mode


@dataclass
class _Seen:
    """All that the node told, and the plan for it."""

    wish: Wish
    current: netns.Reading
    sources: netns.Sources
    keepers: dict[str, str]
    plan: netns.Plan
    images: list[Initramfs]
    unread: list[str]

    @property
    def stale(self) -> list[Initramfs]:
        """Images that load ``ib_core`` and would give it another mode; a kernel argument counts behind their files."""
        arguments = self.sources.arguments
        if arguments and arguments[-1].mode == self.wish.mode:
            return []
        return [image for image in self.images if image.has_module and _mode_in(image) != self.wish.mode]

    @property
    def boot_mode_before(self) -> Optional[str]:
        """The mode of the next boot before this run; ``None`` also when it depends on the kernel that is booted.

        Where an image loads ``ib_core``, the files in it count, not those of the node (S21).
        """
        if self.sources.arguments or not self.images:
            return self.plan.boot_mode_before
        outside = netns.mode_of_places(self.sources.in_files)
        modes = {_mode_in(image) if image.has_module else outside for image in self.images}
        return modes.pop() if len(modes) == 1 else None


def running(root: Root) -> netns.Reading:
    """The running mode; without ``ib_core`` there is none, and asking would load it."""
    if records.is_recorded(root):
        document = records.load(root) or {}
        answer = records.part(root, document, "rdma", rdma_netlink.SOURCE, records.RdmaRecord)
        mode = None if answer is None else netns.MODES.get(answer.netns_mode)
        return netns.Reading(mode) if mode else netns.mode_of_parameter(root.value(kernel.PARAMETER))
    if not root.exists(rdma_netlink.IB_CORE):
        return netns.Reading(None, netns.NOT_LOADED)
    try:
        found = rdma_netlink.mode()
    except OSError:
        found = netns.Reading(None, netns.UNKNOWN_MODE)
    return found if found.mode else netns.mode_of_parameter(root.value(kernel.PARAMETER))


def enforce(changes: Changes, wish: Wish) -> dict[str, Any]:
    """Make it so, or tell what would be done in check mode; the values of the module's result.

    :raises RdmaError: see the module's documentation; nothing was changed then, unless the kernel or the disk refused a
        change that nothing foretold.
    """
    if not _FILE.fullmatch(wish.path):
        raise RdmaError(
            "modprobe_path",
            "The managed file must be a .conf file in %s, found %s." % (DIRECTORY, wish.path),
            hint="kmod reads no other files, and none whose name begins with a dot.",
            path=wish.path,
        )
    if not changes.check_mode and records.is_recorded(changes.root):
        raise RdmaError(
            "recorded_tree",
            "%s holds the recorded answers of a node and is no node that could be changed."
            % changes.root.path,
            hint="Use check mode, or give the root of a node.",
        )
    seen = _look(changes, wish)
    overruled = _refuse(changes, seen)
    _write(changes, seen)
    _rebuild(changes, seen)
    reason = _switch(changes, seen)
    switched = seen.plan.live_set and not reason
    if reason and not changes.check_mode:
        reboots.request(changes.root, wish.plan_id, reason)
    elif not changes.check_mode and not overruled:
        reboots.forget(changes.root, wish.plan_id)
    return _result(seen, switched, reason, overruled)


def _look(changes: Changes, wish: Wish) -> _Seen:
    root = changes.root
    current = running(root)
    if current.mode is None and current.reason != netns.NOT_LOADED:
        raise RdmaError(
            "netns_mode_unknown",
            "The kernel tells the mode of the RDMA subsystem neither by RDMA netlink nor in %s."
            % kernel.PARAMETER,
            hint="Kernel 5.3 or newer knows it; look at what loaded ib_core.",
        )
    files = kernel.exact_modprobe_files(root)
    sources = netns.Sources(files, kernel.command_line(root), wish.path)
    differs = current.mode not in (None, wish.mode)
    keepers = other_namespaces.keepers(root) if differs else {}
    plan = netns.plan(wish.mode, current.mode, sources, len(keepers), wish.clean)
    unread: list[str] = []
    images = [] if plan.error else initramfs.inspect(root, not changes.check_mode, unread)
    return _Seen(wish, current, sources, keepers, plan, images, unread)


# Refusals


def _refuse(changes: Changes, seen: _Seen) -> list[netns.Place]:
    """Raise for what must not be done; what stays in the way when the plan is done: contradicting kernel arguments."""
    root, plan, wish = changes.root, seen.plan, seen.wish
    if plan.error:
        raise _second_owner(seen)
    overruled = list(plan.opponents)
    pending = bootloader.mode_arguments(root) if overruled else []
    if pending is not None and overruled and not [place for place in pending if place.mode != wish.mode]:
        overruled = []  # taken out of the boot loader already: the next boot is without them
    if plan.live_set and not _may_administer(root):
        raise RdmaError(
            "not_permitted",
            "Switching the RDMA subsystem to %s mode needs the privilege CAP_NET_ADMIN, which this run lacks."
            % wish.mode,
            hint="Run as root (become: true).",
            mode=wish.mode,
        )
    if plan.reboot_required and overruled:
        raise RdmaError(
            "kernel_argument_wins",
            "The node cannot get %s mode now, because %s, and not by a reboot, because %s says %s."
            % (wish.mode, _why_busy(seen.keepers), overruled[0], _setting(overruled[0])),
            hint="Take ib_core.netns_mode out of the kernel arguments of the boot loader%s, then run this again."
            % _listed([str(place) for place in pending or ()], " (%s)"),
            argument=_setting(overruled[0]),
        )
    if plan.write_file and not overruled and kernel.is_builtin(root, netns.MODULE):
        raise RdmaError(
            "option_ignored_builtin",
            "ib_core is built into this kernel, which reads no modprobe file: %s would have no effect."
            % wish.path,
            hint="Set ib_core.netns_mode=%s in the kernel arguments of the boot loader."
            % netns.VALUES[wish.mode],
        )
    for image in seen.stale:
        initramfs.builder(root, image.image)
    if plan.reboot_required:
        _refuse_third_reboot(changes, seen)
    return overruled


def _second_owner(seen: _Seen) -> RdmaError:
    places = ["%s (%s)" % (place, _setting(place)) for place in seen.plan.opponents]
    operators = [
        place
        for place in seen.plan.opponents
        if netns.is_operators(place.source) or place.source == seen.sources.command_line_name
    ]
    hint = "Remove it there, or let this module do it with foreign=clean."
    if operators:
        hint = (
            "Change rdmaMode in the SriovNetworkPoolConfig, or leave the mode to the sriov-network-operator."
        )
    return RdmaError(
        "second_owner",
        "Somebody else sets another namespace mode than %s: %s. Nothing was changed."
        % (seen.wish.mode, _listed(places)),
        hint=hint,
        places=[str(place) for place in seen.plan.opponents],
        operator=bool(operators),
    )


def _refuse_third_reboot(changes: Changes, seen: _Seen) -> None:
    found = reboots.spent(changes.root, seen.wish.plan_id)
    if found is None:
        return
    if not changes.check_mode:
        reboots.request(changes.root, found.plan, found.reason)
    raise RdmaError(
        "reboot_budget_spent",
        "%d reboots did not bring %s mode, and a third needs a person: %s."
        % (reboots.BUDGET, seen.wish.mode, _why_ignored(changes.root, seen)),
        hint="Look for what sets the mode otherwise or drops the setting. Then give another plan, which counts anew.",
        plan=found.plan,
        boots=list(found.boots),
    )


def _why_ignored(root: Root, seen: _Seen) -> str:
    """DEV-01: the setting is there, and the kernel does not have it."""
    wished = [place for place in bootloader.mode_arguments(root) or () if place.mode == seen.wish.mode]
    if wished and not seen.sources.arguments:
        return "argument ignored by kernel (%s has %s, %s has not)" % (
            wished[0],
            _setting(wished[0]),
            seen.sources.command_line_name,
        )
    if seen.sources.own_text is not None and seen.plan.boot_mode_before == seen.wish.mode:
        return "option ignored by kernel (%s says %s)" % (seen.wish.path, _option(seen.wish.mode))
    return "each boot brought %s mode" % seen.current.mode


# Changes


def _write(changes: Changes, seen: _Seen) -> None:
    for path, text in seen.plan.cleaned:
        if path.startswith(DIRECTORY + "/"):
            changes.file(path, text, _permissions(changes.root, path))
            continue
        over = "%s/%s" % (
            DIRECTORY,
            path.rpartition("/")[2],
        )  # kmod takes this one and not the one of a package
        changes.file(over, text or MASK % (path, seen.wish.path))
    path = seen.wish.path
    if seen.plan.own_text is not None:
        changes.file(path, seen.plan.own_text, _permissions(changes.root, path))
    elif not changes.check_mode:
        edits.remove_left_over(changes.root, path)


def _rebuild(changes: Changes, seen: _Seen) -> None:
    """dracut takes modprobe files along only when it builds for this host alone, so ours is named to it (L50)."""
    own = seen.plan.write_file or seen.sources.own_text is not None
    if own and any(initramfs.builder(changes.root, image.image) == initramfs.DRACUT for image in seen.stale):
        changes.file(DRACUT_FILE, 'install_items+=" %s "\n' % seen.wish.path)
    for image in seen.stale:
        changes.live(
            IMAGE_KIND,
            image.image,
            _mode_in(image),
            seen.wish.mode,
            _rebuilder(changes.root, image, seen),
        )


def _rebuilder(root: Root, image: Initramfs, seen: _Seen) -> Any:
    def rebuild() -> None:
        initramfs.rebuild(root, image.image)
        found = initramfs.read(root, initramfs.Image(image.image, image.kernel))
        if found.has_module and _mode_in(found) != seen.wish.mode:
            raise RdmaError(
                "initramfs_not_refreshed",
                "%s was built anew and still gives ib_core %s mode."
                % (image.image, _mode_in(found) or "no valid"),
                hint="Look at what the program that builds it says, and whether it takes %s along."
                % seen.wish.path,
                path=image.image,
            )

    return rebuild


def _switch(changes: Changes, seen: _Seen) -> str:
    """Switch the running mode; the reason why only a reboot can, or nothing."""
    if seen.plan.reboot_required:
        return _reboot_reason(seen.wish.mode, seen.current.mode, _why_busy(seen.keepers))
    if not seen.plan.live_set:
        return ""
    earlier = None if changes.check_mode else _record(changes.root)
    try:
        changes.live(
            KIND,
            NAME,
            seen.current.mode,
            seen.wish.mode,
            lambda: write_mode(changes.root, NAME, seen.wish.mode),
        )
    except RdmaError as error:
        changes.withdraw(KIND, NAME, earlier)
        if error.code != "netns_mode_busy":
            raise
        keepers = other_namespaces.keepers(changes.root)
        _refuse_third_reboot(changes, seen)
        return _reboot_reason(seen.wish.mode, seen.current.mode, _why_busy(keepers))
    return ""


def _patiently(mode: str) -> None:
    """Try again for a moment: a namespace that was ended is taken down after its end (L3)."""
    end = time.monotonic() + _PATIENCE
    while True:
        try:
            rdma_netlink.set_mode(mode)
            return
        except RdmaError as error:
            if error.code != "netns_mode_busy" or time.monotonic() > end:
                raise
        time.sleep(_STEP)


def _record(root: Root) -> Optional[store.Record]:
    return next((entry for entry in store.records(root) if (entry.kind, entry.name) == (KIND, NAME)), None)


# Undo


def read_mode(root: Root, name: str) -> Optional[str]:
    """For the undo records: the running mode."""
    del name
    return running(root).mode


def write_mode(root: Root, name: str, value: Optional[str]) -> None:
    """Switch the running mode, also back for the undo records.

    :raises RdmaError: see :func:`rdma_netlink.set_mode`.
    """
    del root, name
    if value is not None:
        _patiently(value)


def read_image(root: Root, path: str) -> Optional[str]:
    """For the undo records: the mode that an image gives; ``None`` for one that is gone or without ``ib_core``."""
    image = next((image for image in initramfs.images(root) if image.path == path), None)
    found = None if image is None else initramfs.read(root, image)
    if found is None or not found.has_module:
        return None
    return _mode_in(found)


def write_image(root: Root, path: str, value: Optional[str]) -> None:
    """For the undo records: build the image anew from the files that were restored before.

    :raises RdmaError: see :func:`initramfs.rebuild`.
    """
    del value
    initramfs.rebuild(root, path)


def left_images(
    root: Root, restored: dict[str, Optional[str]]
) -> list[tuple[str, Optional[str], Optional[str]]]:
    """Images that give the mode of our files and will have to give another: path, mode to give, mode that they give.

    Such an image was built while our files were there, by whoever installed its kernel (S21, S27).

    :param restored: text of the modprobe files that are restored by path; ``None``: removed.
    :raises RdmaError: ``file_unreadable``, ``initramfs_unreadable``
    """
    files = dict(kernel.exact_modprobe_files(root))
    now, then = _mode_of_files(files), _mode_of_files({**files, **restored})
    if now == then:
        return []
    images = initramfs.inspect(root, False, [])
    return [(each.image, then, now) for each in images if each.has_module and _mode_in(each) == now]


def mode_at_boot(root: Root, restored: dict[str, Optional[str]]) -> Optional[str]:
    """The mode that the next boot gives when modprobe files are restored, as in :func:`left_images`.

    :raises RdmaError: ``file_unreadable``
    """
    arguments = netns.Sources([], kernel.command_line(root)).arguments
    if arguments:
        return netns.mode_of_places(arguments)
    return _mode_of_files({**dict(kernel.exact_modprobe_files(root)), **restored})


def _mode_of_files(files: Mapping[str, Optional[str]]) -> Optional[str]:
    texts = [(path, text) for path, text in sorted(files.items(), key=_by_name) if text is not None]
    return netns.mode_of_places(netns.Sources(texts).in_files)


def _by_name(entry: tuple[str, Any]) -> str:
    return entry[0].rpartition("/")[2]


# Words


def _result(seen: _Seen, switched: bool, reason: str, overruled: list[netns.Place]) -> dict[str, Any]:
    wish, plan = seen.wish, seen.plan
    cleaned = {path for path, _text in plan.cleaned}
    foreign = [place for place in seen.sources.in_files if place.source != wish.path] + seen.sources.arguments
    stale = [image.image for image in seen.stale]
    return {
        "mode": wish.mode,
        "running_mode": wish.mode if switched else seen.current.mode,
        "running_mode_before": seen.current.mode,
        "boot_mode": plan.boot_mode_after if overruled else wish.mode,
        "boot_mode_before": seen.boot_mode_before,
        "reboot_required": bool(reason),
        "reboot_reason": reason,
        "namespaces": list(seen.keepers.values())[:_SHOWN],
        "foreign": [_foreign(place, place.source in cleaned) for place in foreign],
        "initramfs": [
            {
                "image": image.image,
                "kernel": image.kernel,
                "has_module": image.has_module,
                "mode_before": _mode_in(image) if image.has_module else None,
                "rebuilt": image.image in stale,
            }
            for image in seen.images
        ],
        "notes": _notes(seen, overruled),
    }


def _foreign(place: netns.Place, cleaned: bool) -> dict[str, Any]:
    return {
        "source": place.source,
        "line": place.line or None,
        "value": place.value,
        "mode": place.mode,
        "cleaned": cleaned,
    }


def _notes(seen: _Seen, overruled: list[netns.Place]) -> list[str]:
    notes = list(seen.unread)
    for place in overruled:
        notes.append(
            "%s says %s, so the next boot brings %s mode again. Take it out of the kernel arguments of the boot loader."
            % (place, _setting(place), place.mode or "no valid")
        )
    left = [
        place
        for place in seen.sources.in_files
        if place.source != seen.wish.path and place.source not in dict(seen.plan.cleaned)
    ]
    if left:
        told = _listed([str(place) for place in left])
        notes.append("The mode is also set by %s; keep one setting." % told)
    return notes


def _reboot_reason(wanted: str, current: Optional[str], why: str) -> str:
    return "The RDMA subsystem runs in %s mode and cannot be switched to %s mode, because %s." % (
        current,
        wanted,
        why,
    )


def _why_busy(keepers: dict[str, str]) -> str:
    if not keepers:
        return "another network namespace is alive, which no process, mount or open file names"
    words = _listed(list(keepers.values()))
    if len(keepers) == 1:
        return "another network namespace is alive: %s" % words
    return "%d other network namespaces are alive: %s" % (len(keepers), words)


def _listed(words: list[str], form: str = "%s") -> str:
    if not words:
        return ""
    more = ["and %d more" % (len(words) - _SHOWN)] if len(words) > _SHOWN else []
    return form % ", ".join(words[:_SHOWN] + more)


def _setting(place: netns.Place) -> str:
    prefix = "" if place.line and place.source.startswith("/etc/") else "ib_core."
    return "%snetns_mode=%s" % (prefix, place.value)


def _option(mode: str) -> str:
    return "netns_mode=%s" % netns.VALUES[mode]


def _mode_in(image: Initramfs) -> Optional[str]:
    """The mode that the option files of an image give ``ib_core`` (S20, S21)."""
    places = [netns.Place(o.source, o.value, o.line or 0) for o in image.options if o.option == netns.OPTION]
    return netns.mode_of_places(places)


def _permissions(root: Root, path: str) -> int:
    try:
        return os.stat(edits.place_of(root, path)).st_mode & 0o7777
    except OSError:
        return 0o644


def _may_administer(root: Root) -> bool:
    """Whether this process has CAP_NET_ADMIN; what procfs does not tell is left to the kernel."""
    del root
    try:
        with open("/proc/self/status", encoding="utf-8") as file:
            found = re.search(r"^CapEff:\s*([0-9a-f]+)$", file.read(), re.MULTILINE)
    except OSError:
        return True
    return found is None or bool(int(found[1], 16) >> _NET_ADMIN & 1)


ARGUMENTS: dict[str, dict[str, Any]] = {
    "mode": {"type": "str", "choices": ["shared", "exclusive"], "required": True},
    "path": {"type": "path", "default": "/etc/modprobe.d/ib_core.conf"},
    "foreign": {"type": "str", "choices": ["report", "clean"], "default": "report"},
    "plan": {"type": "str"},
    "host_root": {"type": "path", "default": "/"},
}
"""Options of the module ``netns_mode``."""


def act(changes: Changes, given: Mapping[str, Any]) -> dict[str, Any]:
    """What the module ``netns_mode`` does; its result.

    :param given: values for :data:`ARGUMENTS`.
    :raises RdmaError: see :func:`enforce`.
    """
    return enforce(
        changes, Wish(given["mode"], given["path"], given["foreign"] == "clean", given["plan"] or "")
    )
