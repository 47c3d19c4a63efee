# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is owed after undoing: reboots and restarts that only a person may do (decision 15). Private to rdma.k8s."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Optional

from ..core.errors import RdmaError
from ..core.oke import oca_restart
from . import edits, firmware, memlock, netns_mode, oca, oca_config
from .files import Root
from .undo import Undone

_UNITS = "/etc/systemd/system/"
_END = ".d/" + memlock.DROP_IN


def reboots(root: Root, done: Sequence[Undone]) -> list[str]:
    """Why the node must be rebooted before what was restored counts, or would have to be; empty: it counts."""
    restored = [each for each in done if each.outcome == "restored"]
    reasons = [
        "%s is %s in firmware again, which counts from the next reset, usually a reboot."
        % (each.record.name, each.record.before)
        for each in restored
        if each.record.kind == "firmware" and not _counts(root, each)
    ]
    return [*reasons, *_mode(root, restored)]


def _counts(root: Root, undone: Undone) -> bool:
    """Whether a card still works with the value that is restored, because it was never reset since (S69)."""
    tool, pci, name = undone.record.name.split()
    try:
        row = firmware.query(root, tool, pci).settings.get(name)
    except RdmaError:
        return False
    return row is not None and row.current == undone.record.before


def _mode(root: Root, restored: Iterable[Undone]) -> list[str]:
    """The namespace mode: the files are restored, and the node runs in a mode that they do not give (S13, S20)."""
    files: dict[str, Optional[str]] = {}
    running = netns_mode.running(root).mode
    for each in restored:
        record = each.record
        if record.kind == "file" and record.name.startswith(netns_mode.DIRECTORY + "/"):
            state = edits.state_of(record.before)
            files[record.name] = None if state is None else state.exact()
        elif record.kind == netns_mode.KIND:
            running = record.before
    if not files or running is None:
        return []
    try:
        following = netns_mode.mode_at_boot(root, files)
    except RdmaError as error:
        return ["The namespace mode of the next boot is not known: %s" % error.message]
    if following in (None, running):
        return []
    return ["The RDMA subsystem runs in %s mode until a boot brings %s mode." % (running, following)]


def restarts(root: Root, done: Sequence[Undone]) -> list[dict[str, str]]:
    """What still works with the files from before they were restored: component, reason, command."""
    names = {(each.record.owner, each.record.name) for each in done if each.outcome == "restored"}
    found = []
    if names & {("oca_config", oca.NETWORK), ("oca_config", oca.FEATURES)}:
        found += [entry.to_dict() for entry in oca_restart.owed(True, None, oca_config.agent(root))]
    for _owner, name in sorted(names):
        if name.startswith(_UNITS) and name.endswith(_END):
            unit = name[len(_UNITS) : -len(_END)]
            reason = "Its process keeps the limit of locked memory until it is started again."
            found.append({"component": unit, "reason": reason, "command": "systemctl restart %s" % unit})
    return found
