# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The changes of one module run: predicted in check mode, recorded before they are made. Private to rdma.k8s."""

from __future__ import annotations

import contextlib
import os
from typing import Any, Callable, Optional

from ..core.errors import RdmaError
from . import edits, store
from .files import Root, reason_of


class Changes:
    """Compare, record, change; in check mode only compare.

    As a context it keeps other runs away from the first read to the last write, so that no wish is lost.

    :param owner: name of the module, for the undo records.
    :param record: whether changes leave undo records; false where they are undone.
    """

    def __init__(self, root: Root, owner: str, check_mode: bool = False, record: bool = True) -> None:
        self.root = root
        self.owner = owner
        self.check_mode = check_mode
        self.actions: list[str] = []
        self._record = record
        self._differences: list[dict[str, str]] = []
        self._lock = contextlib.ExitStack()
        self._prepared = False

    def __enter__(self) -> Changes:
        if not self.check_mode:
            self._lock.enter_context(store.lock(self.root))
        return self

    def __exit__(self, *details: object) -> None:
        self._lock.close()

    @property
    def changed(self) -> bool:
        """Whether anything changed, or would change."""
        return bool(self.actions)

    def result(self) -> dict[str, Any]:
        """``changed``, ``actions`` and ``diff`` as a module returns them."""
        return {"changed": self.changed, "actions": list(self.actions), "diff": self.diff()}

    def diff(self) -> list[dict[str, str]]:
        """The differences in the form that Ansible shows."""
        return list(self._differences)

    def file(self, path: str, content: Optional[str], mode: int = 0o644) -> bool:
        """Give a file exactly this content and mode, or remove it; the owner of an existing file stays.

        :param content: bytes that are no UTF-8 stand in it as :meth:`.edits.FileState.exact` gives them.
        :raises RdmaError: ``file_unreadable``, ``file_not_written``, ``node_busy``; the file is as before then.
        """
        current = edits.read(self.root, path)
        wanted = None
        if content is not None:
            uid, gid = (current.uid, current.gid) if current else (os.geteuid(), os.getegid())
            wanted = edits.FileState(content.encode("utf-8", "surrogateescape"), mode, uid, gid)
        if current == wanted:
            edits.remove_left_over(self.root, path)
            return False
        verb = "remove" if wanted is None else "change" if current else "write"
        self._note("%s %s" % (verb, path), path, _text(current), _text(wanted))
        if not self.check_mode:
            if wanted is not None:
                self._directories(os.path.dirname(path))
            self._begin("file", path, current and current.to_dict(), wanted and wanted.to_dict())
            edits.write(self.root, path, wanted)
        return True

    def directory(self, path: str, mode: int = 0o755) -> bool:
        """Make a directory and those above it where they are missing; one that is there is left as it is.

        :raises RdmaError: ``file_not_written`` or ``file_unreadable``.
        """
        if os.path.isdir(edits.place_of(self.root, path)):
            return False
        self._note("make the directory %s" % path, path, "absent\n", "directory, mode %04o\n" % mode)
        if not self.check_mode:
            self._directories(path, mode)
        return True

    def value(self, path: str, wanted: str, current: Optional[str] = None) -> bool:
        """Write a file of sysfs, configfs, debugfs or ``/proc/sys``, unless it holds the value.

        :param current: what it holds, when it is not the trimmed text of the file.
        :raises RdmaError: ``value_missing``, ``value_unreadable`` or ``value_not_written``.
        """
        held = read_value(self.root, path) if current is None else current
        return self.live("value", path, held, wanted, lambda: write_value(self.root, path, wanted))

    def live(
        self,
        kind: str,
        name: str,
        before: Any,
        after: Any,
        apply: Callable[[], None],
        *,
        record: bool = True,
    ) -> bool:
        """Change any other setting by ``apply``, unless it holds the value.

        :param kind: a key of ``undo.SETTINGS``, which knows how to read and write it.
        :param before: plain data, what the setting holds; ``after``: what it will hold.
        :param record: false for what goes away with something that has a record, or that is not the node's.
        """
        if before == after:
            return False
        self._note("set %s" % name, name, "%s\n" % (before,), "%s\n" % (after,))
        if not self.check_mode:
            self._begin(kind, name, before, after, record)
            apply()
        return True

    def withdraw(self, kind: str, name: str, earlier: Optional[store.Record]) -> None:
        """The last change was refused as a whole: it does not count, and its record is again what it was.

        :raises RdmaError: ``file_not_written``.
        """
        del self.actions[-1], self._differences[-1]
        store.put_back(self.root, kind, name, earlier)

    def forget(self, count: int) -> None:
        """Keep only the first ``count`` actions: the run itself took the others back."""
        del self._differences[len(self._differences) - (len(self.actions) - count) :]
        del self.actions[count:]

    def note(self, action: str) -> None:
        """Count a change that is no setting and cannot be undone, such as an initramfs that is built anew."""
        self.actions.append(action)

    def _note(self, action: str, name: str, before: str, after: str) -> None:
        self.actions.append(action)
        self._differences.append(
            {
                "before_header": "%s (before)" % name,
                "after_header": "%s (after)" % name,
                "before": before,
                "after": after,
            }
        )

    def _begin(self, kind: str, name: str, before: Any, after: Any, record: bool = True) -> None:
        if not self._prepared:
            store.prepare(self.root)
            self._prepared = True
        if self._record and record:
            store.remember(self.root, self.owner, kind, name, before, after)

    def _directories(self, path: str, mode: int = 0o755) -> None:
        """Make a directory and those above it."""
        if os.path.isdir(edits.place_of(self.root, path)):
            return
        self._directories(os.path.dirname(path))
        self._begin("directory", path, False, True)
        edits.make_directory(self.root, path, mode)


def read_value(root: Root, path: str) -> str:
    """The trimmed text of a file of sysfs, configfs, debugfs or ``/proc/sys``.

    :raises RdmaError: ``value_missing`` or ``value_unreadable``.
    """
    try:
        with open(root.path + path, encoding="utf-8", errors="replace") as file:
            return file.read(4096).strip()
    except FileNotFoundError as error:
        raise RdmaError(
            "value_missing",
            "There is no %s: the driver does not know this setting, or the device is gone." % path,
            path=path,
        ) from error
    except OSError as error:
        raise RdmaError(
            "value_unreadable", "%s cannot be read: %s." % (path, reason_of(error)), path=path
        ) from error


def write_value(root: Root, path: str, value: str) -> None:
    """Write such a file in one piece.

    :raises RdmaError: ``value_not_written``.
    """
    try:
        handle = os.open(root.path + path, os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.write(handle, ("%s\n" % value).encode("utf-8"))
        finally:
            os.close(handle)
    except OSError as error:
        raise RdmaError(
            "value_not_written",
            "The kernel did not take %r for %s: %s." % (value, path, reason_of(error)),
            hint="Check the permissions, and whether the driver knows this setting.",
            path=path,
            value=value,
        ) from error


def _text(state: Optional[edits.FileState]) -> str:
    return state.text() if state else ""
