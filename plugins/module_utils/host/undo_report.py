# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What undoing did, or would do, as the result of a module. Private to rdma.k8s: it may change with any release."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, Optional

from ..core.errors import RdmaError
from . import commands, edits, netplan, store
from .files import Root
from .undo import Undone

COLLECTION = "rdma.k8s."
_LOCAL = frozenset(["directory", "file", "value"])
"""Kinds that are read and written without a library."""

_UNITS = "/etc/systemd/system/"
_RELOAD = 20.0
_NETPLAN = "/etc/netplan/"


def owners_of(modules: Optional[Iterable[str]]) -> Optional[list[str]]:
    """The names of modules as the records have them; each may be given with the name of the collection."""
    return None if modules is None else [str(name)[_prefix(str(name)) :] for name in modules]


def _prefix(name: str) -> int:
    return len(COLLECTION) if name.startswith(COLLECTION) else 0


def libraries(root: Root, owners: Optional[Sequence[str]]) -> tuple[str, ...]:
    """The libraries that undoing these modules' changes may need: none where only files were changed.

    :raises RdmaError: the errors of :func:`store.records`.
    """
    kinds = {record.kind for record in store.records(root) if owners is None or record.owner in owners}
    return ("pyroute2",) if kinds - _LOCAL else ()


def entry(undone: Undone) -> dict[str, Any]:
    """One record as a module returns it."""
    return {**undone.to_dict(), "changed_at": undone.record.at}


def action(undone: Undone) -> str:
    """What restoring is, as a sentence."""
    verb = "remove" if undone.record.before in (None, False) else "restore"
    return "%s %s" % (verb, undone.record.name)


def difference(undone: Undone) -> dict[str, str]:
    """The change of one object in the form that Ansible shows."""
    record = undone.record
    return {
        "before_header": "%s (before)" % record.name,
        "after_header": "%s (after)" % record.name,
        "before": _text(record.kind, record.after),
        "after": _text(record.kind, record.before),
    }


def _text(kind: str, value: Any) -> str:
    if kind == "file":
        state = edits.state_of(value)
        return state.text() if state else ""
    if kind == "directory":
        return "directory\n" if value else "absent\n"
    return "%s\n" % (value if isinstance(value, str) else json.dumps(value, sort_keys=True))


def reload_units(root: Root, done: Iterable[Undone]) -> None:
    """Let systemd read its units again where one of their files was restored, and netplan its files likewise.

    :raises RdmaError: the errors of :func:`commands.run`.
    """
    names = [each.record.name for each in done if each.outcome == "restored"]
    if any(name.startswith(_NETPLAN) for name in names) and commands.find(root, "netplan"):
        netplan.generate(root)
    if any(name.startswith(_UNITS) for name in names) and root.exists("/run/systemd/system"):
        commands.run(root, ["systemctl", "daemon-reload"], _RELOAD)


def failure(done: Sequence[Undone]) -> Optional[RdmaError]:
    """The error of a run in which a record could not be undone; ``None`` when there was none."""
    failed = [each for each in done if each.outcome == "failed"]
    if not failed:
        return None
    return RdmaError(
        "undo_failed",
        "%d of %d changes could not be undone; the first is %s: %s"
        % (len(failed), len(done), failed[0].record.name, failed[0].reason),
        hint="What could be restored is restored. Mend the reasons under `records`, then run this again.",
        names=[each.record.name for each in failed],
    )
