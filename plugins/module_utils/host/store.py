# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What to restore: one record for each object that was ever changed. Private to rdma.k8s: it may change any time.

A record is on the disk before its object is changed (decision 16). The first ``before`` of an object stays, however
often it is changed. A record whose object is back at ``before`` means nothing and is removed by whoever sees it.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Optional

from ..core import json_text
from ..core.errors import RdmaError
from . import edits, own_state
from .files import Root, reason_of

UNDO = own_state.DIRECTORY + "/undo"
WAIT = 10.0
"""Seconds to wait for another run that changes the node."""

_SCHEMA = 1
_LARGEST = 16 << 20


@dataclass(frozen=True)
class Record:
    """An object of a node and its values before and after we changed it.

    :param owner: the module that changed it first.
    :param kind: a key of ``undo.SETTINGS``.
    :param name: the object: a path, the name of an interface and so on.
    :param before: plain data; what to restore.
    :param after: plain data; what the object must still hold for that.
    :param foreign: whether somebody else wrote to the file between two of our changes, so that what was there at first
        must not replace it. Only a file holds what is ours and what is theirs at once.
    :param former: what the object held of ours before the last change, and still holds if that was interrupted.
    :param number: the order of the changes of this node.
    :param at: when, ``YYYY-MM-DDTHH:MM:SSZ``.
    """

    owner: str
    kind: str
    name: str
    before: Any
    after: Any
    number: int
    at: str
    former: tuple[Any, ...] = ()
    foreign: bool = False

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "schema": _SCHEMA,
            "owner": self.owner,
            "kind": self.kind,
            "name": self.name,
            "before": self.before,
            "after": self.after,
            "number": self.number,
            "at": self.at,
            "former": list(self.former),
            "foreign": self.foreign,
        }


def records(root: Root) -> list[Record]:
    """All records of the node, the oldest change first.

    :raises RdmaError: ``undo_record_wrong`` or ``file_unreadable``.
    """
    found = []
    for name in root.names(UNDO) or ():
        if name.endswith(".json") and not name.startswith("."):
            found.append(_load(root, "%s/%s" % (UNDO, name)))
    return sorted(found, key=_by_number)


def _by_number(record: Record) -> int:
    return record.number


def _load(root: Root, path: str) -> Record:
    state = edits.read(root, path)
    try:
        data = json_text.loads(state.text() if state else "")
        if data.pop("schema") != _SCHEMA:
            raise ValueError("another schema")
        return Record(**{**data, "former": tuple(data.get("former", ()))})
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise RdmaError(
            "undo_record_wrong",
            "The undo record %s cannot be used: %s." % (path, error),
            hint="Restore what it describes by hand, then remove the file.",
            path=path,
        ) from error


def remember(  # noqa: PLR0917 (the fields of a record)
    root: Root, owner: str, kind: str, name: str, before: Any, after: Any
) -> None:
    """Write the record of a change that is about to be made.

    :raises RdmaError: ``file_not_written`` and the errors of :func:`records`; then the change must not be made.
    """
    known = records(root)
    first = [record for record in known if (record.kind, record.name) == (kind, name)]
    if first and first[0].after == after:
        return  # an earlier run was killed before the change, or somebody undid it: the record is right as it is
    ours = (first[0].before, first[0].after, *first[0].former) if first else ()
    record = Record(
        owner=first[0].owner if first else owner,
        kind=kind,
        name=name,
        before=first[0].before if first else before,
        after=after,
        number=first[0].number if first else max([each.number for each in known], default=0) + 1,
        at=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        former=(before,) if before in ours[1:] else (),
        foreign=kind == "file" and bool(first) and (first[0].foreign or before not in ours),
    )
    _save(root, record)


def _save(root: Root, record: Record) -> None:
    own_state.write(root, _path(record.kind, record.name), record.to_dict())


def put_back(root: Root, kind: str, name: str, record: Optional[Record]) -> None:
    """Make the record of an object what it was before a change that did not happen; ``None``: there was none.

    :raises RdmaError: ``file_not_written``.
    """
    if record is None:
        forget(root, kind, name)
    else:
        _save(root, record)


def forget(root: Root, kind: str, name: str) -> None:
    """Remove the record of an object, if there is one.

    :raises RdmaError: ``file_not_written``.
    """
    path = _path(kind, name)
    if os.path.lexists(edits.place_of(root, path)):
        edits.write(root, path, None)


def _path(kind: str, name: str) -> str:
    digest = hashlib.sha256(json.dumps([kind, name]).encode("utf-8")).hexdigest()
    return "%s/%s-%s.json" % (UNDO, kind, digest[:24])


def prepare(root: Root) -> None:
    """Make the directories of the store, and remove what killed runs left there.

    :raises RdmaError: ``file_not_written`` or ``file_unreadable``.
    """
    own_state.make_directories(root, UNDO)
    edits.remove_all_left_over(root, UNDO)


@contextlib.contextmanager
def lock(root: Root, wait: float = WAIT) -> Iterator[None]:
    """Keep other runs from reading and changing the node at the same time. Nothing is written for that.

    :raises RdmaError: ``node_busy`` or ``file_unreadable``.
    """
    try:
        handle = os.open(root.path or "/", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        place = root.path or "/"
        raise RdmaError(
            "file_unreadable", "%s cannot be opened: %s." % (place, reason_of(error)), path=place
        ) from error
    try:
        _take(handle, time.monotonic() + wait)
        try:
            yield
        finally:
            fcntl.flock(handle, fcntl.LOCK_UN)  # a process that was forked meanwhile has the handle too
    finally:
        os.close(handle)


def _take(handle: int, deadline: float) -> None:
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError as error:
            if time.monotonic() > deadline:
                raise RdmaError(
                    "node_busy",
                    "Another run of rdma.k8s is changing this node.",
                    hint="Wait until it has ended, then run this again.",
                    retryable=True,
                ) from error
            time.sleep(0.1)
