# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How far a roll is, for people and for programs. Private to rdma.k8s: it may change with any release."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Optional

from ..stamps import seconds_between
from . import machine
from .model import NodeView, Plan, Record
from .names import ORDER, Phase, State
from .planning import digest

WIDTH = 100
"""Columns of the longest line."""
REASON_LINES = 4
"""Lines of the reason at most."""
NOTES = 5
"""Different notes that are shown."""
SHOWN = 20
"""Nodes that are shown one by one: those that stand beside first, then those under way."""

_WORKING = frozenset((Phase.DRAINING, Phase.CANARY, Phase.ROLLING, Phase.RELEASING, Phase.ROLLING_BACK))
_BESIDE = (State.FAILED, State.BLOCKED)
_GONE = "it is not there any more"
_LAST = machine.place(State.DONE)


@dataclass(frozen=True)
class NodeStatus:
    """One node of a roll.

    :param seconds: for which it is in its state; ``None``: that cannot be told.
    :param value: what it offers.
    :param users: pods that use RDMA there.
    :param reason: why it does not go on, or what it waits for.
    :param note: what its proof could not prove, and why.
    """

    name: str
    state: State
    seconds: Optional[int] = None
    value: str = ""
    users: int = 0
    attempt: int = 0
    schedulable: bool = True
    reason: str = ""
    note: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {**vars(self), "state": self.state.value}


@dataclass(frozen=True)
class Status:
    """A roll.

    :param counts: nodes in each state in which there are any.
    :param percent: how much of the work is done.
    :param left: seconds until it is over, if it goes on as it did; ``None``: it does not, or nobody knows yet.
    """

    roll: str
    phase: Phase
    old: str
    new: str
    strategy: str
    switched: bool
    counts: Mapping[str, int]
    percent: int
    elapsed: Optional[int]
    left: Optional[int]
    reason: str
    nodes: tuple[NodeStatus, ...]

    @property
    def notes(self) -> dict[str, int]:
        """What proofs could not prove, with the number of nodes."""
        return dict(Counter([node.note for node in self.nodes if node.note]))

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            **vars(self),
            "phase": self.phase.value,
            "counts": dict(self.counts),
            "nodes": [node.to_dict() for node in self.nodes],
            "notes": self.notes,
        }


def look(
    plan: Plan,
    record: Record,
    nodes: Mapping[str, NodeView],
    stamp: str,
    reasons: Optional[Mapping[str, str]] = None,
) -> Status:
    """How far a roll is.

    :param stamp: the time of day, RFC 3339.
    :param reasons: what nodes wait for, as their last steps told.
    """
    told = reasons or {}
    found = tuple(
        [
            _node(plan, name, nodes.get(name), stamp, told.get(name, ""))
            for name in (*plan.nodes, *record.joined)
        ]
    )
    counts = {state.value: sum(1 for node in found if node.state is state) for state in State}
    share = _share(plan, found, nodes)
    elapsed = _age(record.started, stamp)
    left: Optional[int] = None
    if record.phase in _WORKING and elapsed and share >= 0.02:
        left = round(elapsed * (1 - share) / share)
    return Status(
        roll=digest(plan),
        phase=record.phase,
        old=plan.old,
        new=plan.new,
        strategy=plan.strategy.value,
        switched=record.switched,
        counts={state: number for state, number in counts.items() if number},
        percent=int(share * 100),
        elapsed=None if elapsed is None else round(elapsed),
        left=left,
        reason=record.reason,
        nodes=found,
    )


def lines(status: Status) -> list[str]:
    """A status as text, no line longer than ``WIDTH``."""
    counts = ", ".join("%d %s" % (number, state) for state, number in status.counts.items())
    head = "%s: %s, %d %%" % (status.roll, status.phase.value, status.percent)
    if status.elapsed is not None:
        head += ", for %s" % duration(status.elapsed)
    if status.left is not None:
        head += ", about %s left" % duration(status.left)
    found = [
        head,
        "%s -> %s (%s%s)"
        % (
            status.old,
            status.new,
            status.strategy,
            "; the driver is told the new value" if status.switched else "",
        ),
        counts or "no nodes",
    ]
    if status.reason:
        found += textwrap.wrap(
            "because: " + status.reason,
            WIDTH,
            subsequent_indent="  ",
            max_lines=REASON_LINES,
            placeholder=" ..",
        )
    notes = status.notes
    found += [
        "%d node%s: %s" % (number, "" if number == 1 else "s", note)
        for note, number in list(notes.items())[:NOTES]
    ]
    if len(notes) > NOTES:
        found.append("and %d more notes" % (len(notes) - NOTES))
    shown = _shown(status.nodes)
    if shown:
        width = min(40, max(len(node.name) for node in shown))
        for node in shown:
            since = "" if node.seconds is None else duration(node.seconds)
            words = "  %-*s %-15s %7s  %s" % (
                width,
                _cut(node.name, width),
                node.state.value,
                since,
                node.reason,
            )
            found.append(words.rstrip())
    over = (State.DONE, State.PENDING, State.SKIPPED)
    more = sum(1 for node in status.nodes if node.state not in over) - len(shown)
    if more > 0:
        found.append("  and %d more under way" % more)
    return [_cut(line, WIDTH) for line in found]


def duration(seconds: int) -> str:
    """Seconds in words: ``45s``, ``12m``, ``3h05m``."""
    if seconds < 120:
        return "%ds" % seconds
    if seconds < 7200:
        return "%dm" % (seconds // 60)
    return "%dh%02dm" % (seconds // 3600, seconds // 60 % 60)


# --- pieces ----------------------------------------------------------------------------------------------------------


def _age(since: str, stamp: str) -> Optional[float]:
    """Seconds since then, never less than 0: clocks differ."""
    found = seconds_between(since, stamp)
    return None if found is None else max(0.0, found)


def _node(plan: Plan, name: str, view: Optional[NodeView], stamp: str, told: str) -> NodeStatus:
    if view is None:
        return NodeStatus(name, State.SKIPPED, schedulable=False, reason=_GONE)
    state = machine.at(plan, view) or State.PENDING
    marks = view.marks
    seconds = _age(marks.since, stamp) if machine.at(plan, view) else None
    return NodeStatus(
        name=name,
        state=state,
        seconds=None if seconds is None else round(seconds),
        value=view.value,
        users=len(view.users),
        attempt=marks.attempt,
        schedulable=not view.unschedulable and not view.fenced_by_rule,
        reason=marks.error if state in _BESIDE else told,
        note=marks.note if state in (State.RELEASED, State.DONE) else "",
    )


def _share(plan: Plan, found: Sequence[NodeStatus], nodes: Mapping[str, NodeView]) -> float:
    """The share of the entry actions that are behind the nodes."""
    steps = 0
    for node in found:
        state: Optional[State] = node.state
        if state is State.SKIPPED:
            steps += _LAST
        else:
            if state in _BESIDE:
                state = nodes[node.name].marks.before
            steps += max(0, machine.place(state)) if state else 0
    return steps / (_LAST * len(found)) if found else 1.0


def _shown(nodes: Sequence[NodeStatus]) -> list[NodeStatus]:
    rank = {state: place for place, state in enumerate((*_BESIDE, *reversed(ORDER)))}
    wanted = [node for node in nodes if node.state in rank and node.state not in (State.DONE, State.PENDING)]
    return sorted(wanted, key=lambda node: rank[node.state])[:SHOWN]


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 2] + ".."
