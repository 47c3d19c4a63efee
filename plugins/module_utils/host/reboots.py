# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How often a reboot was asked for, so that no node is rebooted for ever without getting right (DEV-01).

A request belongs to a plan and to the boot in which it was made: asking again before the reboot counts once. A plan
that is reached is forgotten. Private to rdma.k8s: it may change with any release.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Optional

from ..core import codec, json_text
from ..core.errors import RdmaError
from ..core.snapshot import RebootPlan
from . import edits, own_state
from .files import Root

FILE = own_state.DIRECTORY + "/reboots.json"
BUDGET = 2
BOOT_ID = "/proc/sys/kernel/random/boot_id"
_LARGEST = 1 << 20


def read_all(root: Root) -> Optional[tuple[RebootPlan, ...]]:
    """All plans that are not reached; ``None`` when the file cannot be used, and the errors of the root say why."""
    try:
        return tuple(plans(root))
    except RdmaError as error:
        root.fail(FILE, error.details["reason"])
        return None


def plans(root: Root) -> list[RebootPlan]:
    """All plans that are not reached.

    :raises RdmaError: ``reboot_record_wrong``.
    """
    before = len(root.errors)
    text = root.read(FILE, _LARGEST)
    if text is None and len(root.errors) > before:
        raise _wrong(root.errors[-1].reason)
    if text is None:
        return []
    try:
        document = json_text.loads(text)
        entries = document["plans"]
        return [codec.decode(RebootPlan, entry, "plans[%d]" % number) for number, entry in enumerate(entries)]
    except RdmaError as error:
        raise _wrong(error.message) from error
    except (ValueError, KeyError, TypeError) as error:
        raise _wrong("it is not the JSON document that it must be") from error


def spent(root: Root, plan: str) -> Optional[RebootPlan]:
    """The plan when its next request would be one too many, else ``None``.

    :raises RdmaError: ``reboot_record_wrong``.
    """
    boot = root.value(BOOT_ID) or ""
    found = next((entry for entry in plans(root) if entry.plan == plan), None)
    if found is None or len([other for other in found.boots if other != boot]) < BUDGET:
        return None
    return found


def request(root: Root, plan: str, reason: str) -> RebootPlan:
    """Count a request in this boot.

    :raises RdmaError: ``reboot_record_wrong``, ``file_not_written``.
    """
    edits.remove_left_over(root, FILE)
    boot = root.value(BOOT_ID) or ""
    known = plans(root)
    found = next((entry for entry in known if entry.plan == plan), RebootPlan(plan))
    boots = found.boots if boot in found.boots else (*found.boots, boot)
    wanted = replace(found, reason=reason, boots=boots)
    if wanted != found or found not in known:
        _write(root, [entry for entry in known if entry.plan != plan] + [wanted])
    return wanted


def forget(root: Root, plan: str) -> None:
    """The plan is reached: its requests do not count any more.

    :raises RdmaError: ``reboot_record_wrong``, ``file_not_written``.
    """
    edits.remove_left_over(root, FILE)
    known = plans(root)
    left = [entry for entry in known if entry.plan != plan]
    if len(left) < len(known):
        _write(root, left)


def _write(root: Root, entries: list[RebootPlan]) -> None:
    document = {"schema": 1, "plans": [codec.encode(entry) for entry in entries]}
    own_state.write(root, FILE, document if entries else None)


def _wrong(reason: str) -> RdmaError:
    return RdmaError(
        "reboot_record_wrong",
        "The record of reboots %s cannot be used: %s." % (FILE, reason),
        hint="Look at it, then remove it; the count of reboots starts again.",
        path=FILE,
        reason=reason,
    )
