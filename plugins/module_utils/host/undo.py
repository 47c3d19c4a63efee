# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Play the undo records back. Private to rdma.k8s: it may change with any release."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any, Callable, Optional

from ..core.errors import RdmaError
from . import (
    changes,
    edits,
    firmware,
    kernel_modules,
    link_mtu,
    listeners,
    netns_mode,
    python_environment,
    roce_qos,
    store,
)
from .files import Root, reason_of


@dataclass(frozen=True)
class Setting:
    """How to read and write one kind of setting of a node, by the name of the object.

    Both raise ``RdmaError`` when they cannot. Values are plain data that JSON gives back unchanged: lists, no tuples.
    """

    read: Callable[[Root, str], Any]
    write: Callable[[Root, str, Any], None]
    tidy: Optional[Callable[[Root, str], None]] = None
    """Removes what a killed run left beside the object."""
    occupied: Optional[Callable[[Root, str, frozenset[str]], bool]] = None
    """Whether the object is in use, so that it stays; the paths are those that go before it."""


@dataclass(frozen=True)
class Undone:
    """What became of one record.

    :param outcome: ``restored``; ``kept`` when the object has been changed by somebody else since, or is in use;
        ``gone`` when there is no such object now, so that there is nothing to restore; ``failed``.
    :param reason: a sentence for all but ``restored``.
    """

    record: store.Record
    outcome: str
    reason: str = ""

    def to_dict(self) -> dict[str, str]:
        """As plain data: module, kind, name, outcome, reason."""
        return {
            "module": self.record.owner,
            "kind": self.record.kind,
            "name": self.record.name,
            "outcome": self.outcome,
            "reason": self.reason,
        }


def _read_file(root: Root, path: str) -> Any:
    state = edits.read(root, path)
    return state and state.to_dict()


def _write_file(root: Root, path: str, value: Any) -> None:
    edits.write(root, path, edits.state_of(value))


def _read_directory(root: Root, path: str) -> bool:
    return os.path.isdir(edits.place_of(root, path))


def _write_directory(root: Root, path: str, value: Any) -> None:
    del value  # a directory is only ever removed: it was not there before
    try:
        os.rmdir(edits.place_of(root, path))
    except OSError as error:
        raise RdmaError(
            "file_not_written",
            "The directory %s cannot be removed: %s." % (path, reason_of(error)),
            path=path,
        ) from error


def _occupied_directory(root: Root, path: str, leaving: frozenset[str]) -> bool:
    return any("%s/%s" % (path, name) not in leaving for name in root.names(path) or ())


SETTINGS: dict[str, Setting] = {
    "dcb": Setting(roce_qos.read_dcb, roce_qos.write_dcb),
    "namespace": Setting(listeners.read_namespace, listeners.write_namespace),
    "directory": Setting(_read_directory, _write_directory, occupied=_occupied_directory),
    "devlink_type": Setting(firmware.read_devlink_type, firmware.write_devlink_type),
    "file": Setting(_read_file, _write_file, edits.remove_left_over),
    "firmware": Setting(firmware.read_setting, firmware.write_setting),
    "kernel_module": Setting(
        kernel_modules.read_state, kernel_modules.write_state, occupied=kernel_modules.occupied
    ),
    netns_mode.IMAGE_KIND: Setting(netns_mode.read_image, netns_mode.write_image),
    netns_mode.KIND: Setting(netns_mode.read_mode, netns_mode.write_mode),
    "mlnx_qos": Setting(roce_qos.read_mlnx_qos, roce_qos.write_mlnx_qos),
    link_mtu.KIND: Setting(link_mtu.read_mtu, link_mtu.write_mtu),
    "python_environment": Setting(python_environment.read, python_environment.write, python_environment.tidy),
    "rdma_cm": Setting(roce_qos.read_cm_directory, roce_qos.write_cm_directory),
    "traffic_class": Setting(roce_qos.read_traffic_class, roce_qos.write_traffic_class),
    "value": Setting(changes.read_value, changes.write_value),
}
"""Each kind of record. A kind is part of what lies on the nodes: never removed, never given another meaning."""

_MODPROBE = netns_mode.DIRECTORY + "/"
_GONE = frozenset({"nic_vanished", "netdev_missing", "value_missing"})
"""Codes of reads that say that the object is not there. Its record stays, for the day when it is back."""


CONSENT_MISSING = "%s is a setting of firmware; allow_firmware: true lets it be written back."
FIRMWARE = frozenset({"devlink_type", "firmware"})
"""Kinds whose writing needs a consent of its own (decision 15)."""


def undo(
    root: Root,
    owners: Optional[Iterable[str]] = None,
    check_mode: bool = False,
    forbidden: Collection[str] = (),
) -> list[Undone]:
    """Restore what was there before our changes, the last change first.

    An object that holds neither the value before nor ours was changed by somebody else: it is left alone, and its
    record stays. One that fails does not stop the others.

    :param owners: only the changes of these modules; all when not given.
    :param forbidden: kinds that are kept for want of consent.
    :raises RdmaError: the errors of :func:`store.records` and :func:`store.lock`.
    """
    wanted = None if owners is None else set(owners)
    if check_mode:
        return _undo(root, wanted, True, forbidden)
    if not store.records(root):
        return []
    with store.lock(root):
        return _undo(root, wanted, False, forbidden)


def _undo(
    root: Root, wanted: Optional[set[str]], check_mode: bool, forbidden: Collection[str]
) -> list[Undone]:
    done = []
    leaving: set[str] = set()
    ours = [record for record in store.records(root) if wanted is None or record.owner in wanted]
    images, failed = _images(root, ours, check_mode)
    for record in sorted([*ours, *images], key=_order):
        try:
            if record.kind in forbidden:
                answer = _keep(root, record, check_mode)
            else:
                answer = _restore(root, record, check_mode, frozenset(leaving))
        except RdmaError as error:
            answer = Undone(record, "gone" if error.code in _GONE else "failed", str(error))
        if answer is not None:
            done.append(answer)
            if answer.outcome == "restored" and not record.before and record.kind in ("file", "directory"):
                leaving.add(record.name)
    return [*done, *failed]


def _keep(root: Root, record: store.Record, check_mode: bool) -> Optional[Undone]:
    """What would become of a record whose object must not be written."""
    answer = _restore(root, record, True, frozenset())
    if answer is None and not check_mode:
        store.forget(root, record.kind, record.name)  # it is back by itself
    if answer is not None and answer.outcome == "restored":
        return Undone(record, "kept", CONSENT_MISSING % record.name)
    return answer


def _images(
    root: Root, ours: list[store.Record], check_mode: bool
) -> tuple[list[store.Record], list[Undone]]:
    """Records for the images that somebody built while our modprobe file was there, and so took it along (S21, S27).

    They are on the disk before a file is restored, so that the next run makes good what a killed one left.
    """
    restored: dict[str, Optional[str]] = {}
    owner = at = ""
    for record in ours:
        if record.kind == "file" and record.name.startswith(_MODPROBE) and _is_going_back(root, record):
            state = edits.state_of(record.before)
            restored[record.name] = None if state is None else state.exact()
            owner, at = record.owner, record.at
    if not restored:
        return [], []
    try:
        left = netns_mode.left_images(root, restored)
    except RdmaError as error:
        place = str(error.details.get("path", "/boot"))
        unknown = store.Record(owner, netns_mode.IMAGE_KIND, place, None, None, 0, at)
        return [], [Undone(unknown, "failed", str(error))]
    known = {record.name for record in ours if record.kind == netns_mode.IMAGE_KIND}
    found = []
    for path, before, after in left:
        if path not in known:
            found.append(store.Record(owner, netns_mode.IMAGE_KIND, path, before, after, 0, at))
            if not check_mode:
                store.remember(root, owner, netns_mode.IMAGE_KIND, path, before, after)
    return found, []


def _is_going_back(root: Root, record: store.Record) -> bool:
    try:
        edits.state_of(record.before)
        answer = _restore(root, record, True, frozenset())
    except RdmaError:  # told when its turn comes
        return False
    return answer is not None and answer.outcome == "restored"


def _order(record: store.Record) -> tuple[bool, int]:
    """The last change first; what is built from files, after the files."""
    return record.kind == netns_mode.IMAGE_KIND, -record.number


def _restore(root: Root, record: store.Record, check_mode: bool, leaving: frozenset[str]) -> Optional[Undone]:
    setting = SETTINGS.get(record.kind)
    if setting is None:
        return Undone(record, "failed", "This release does not know the kind %s." % record.kind)
    held = setting.read(root, record.name)
    theirs = record.foreign and held != record.before
    if theirs or held not in (record.before, record.after, *record.former):
        return Undone(
            record, "kept", "%s was changed by somebody else since; it is left alone." % record.name
        )
    in_use = Undone(record, "kept", "%s cannot go back yet: it is in use." % record.name)
    if (
        held != record.before
        and setting.occupied is not None
        and setting.occupied(root, record.name, leaving)
    ):
        return in_use
    if not check_mode:
        if held != record.before:
            setting.write(root, record.name, record.before)
            if setting.read(root, record.name) != record.before:
                return in_use
        if setting.tidy is not None:
            setting.tidy(root, record.name)
        store.forget(root, record.kind, record.name)
    return None if held == record.before else Undone(record, "restored")
