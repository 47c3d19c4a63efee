# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The annotations of a roll on a node. Private to rdma.k8s: it may change with any release.

People can write annotations too; a text that makes no sense counts as absent. Then the node begins anew, which proves
everything again and takes nothing for granted.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Optional

from .model import Marks
from .names import PREFIX, State

ERROR_BYTES = 256
"""The longest text of an error, or of a note, that is written onto a node."""
LABEL = "roll-state"
"""Name of the label, without prefix, that shows the state in ``kubectl get nodes``."""

_STATES: Mapping[str, State] = {state.value: state for state in State}
_FLAGS: Mapping[str, bool] = {"true": True, "false": False}


def read(annotations: Mapping[str, str], prefix: str = PREFIX) -> Marks:
    """The marks among the annotations of a node."""

    def text(name: str) -> str:
        return annotations.get(prefix + name, "")

    return Marks(
        desired=text("roll-desired"),
        applied=text("roll-applied"),
        state=_STATES.get(text("roll-state")),
        since=text("roll-since"),
        attempt=_number(text("roll-attempt")),
        error=text("roll-last-error"),
        owner=text("roll-owner"),
        lock=text("roll-lock"),
        initial_unschedulable=_FLAGS.get(text("initial-unschedulable")),
        reboots=_number(text("reboots")),
        boot_id=text("roll-boot-id"),
        before=_STATES.get(text("roll-before")),
        note=text("roll-note"),
    )


def write(marks: Marks) -> dict[str, Optional[str]]:
    """Every annotation, its name without prefix; ``None`` for one that is to be absent."""
    initial = marks.initial_unschedulable
    return {
        "roll-desired": marks.desired or None,
        "roll-applied": marks.applied or None,
        "roll-state": marks.state.value if marks.state else None,
        "roll-since": marks.since or None,
        "roll-attempt": str(marks.attempt) if marks.attempt else None,
        "roll-last-error": shortened(marks.error) or None,
        "roll-owner": marks.owner or None,
        "roll-lock": marks.lock or None,
        "initial-unschedulable": None if initial is None else str(initial).lower(),
        "reboots": str(marks.reboots) if marks.reboots else None,
        "roll-boot-id": marks.boot_id or None,
        "roll-before": marks.before.value if marks.before else None,
        "roll-note": shortened(marks.note) or None,
    }


def changes(found: Marks, wanted: Marks) -> dict[str, Optional[str]]:
    """The annotations that differ."""
    present = write(found)
    return {name: text for name, text in write(wanted).items() if text != present[name]}


def label(state: Optional[State]) -> Optional[str]:
    """The text of the label; ``None``: no label."""
    return state.value if state else None


def shortened(text: str) -> str:
    """A text of at most ``ERROR_BYTES`` bytes, cut between two characters."""
    return text.encode()[:ERROR_BYTES].decode(errors="ignore")


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0
