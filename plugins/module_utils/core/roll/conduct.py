# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the whole roll needs next: barriers, canary, sizes, budget, ends. Private to rdma.k8s: it may change any time.

Decided anew each time from the nodes as they are; the record adds only what nodes cannot tell. The loop: ``conduct``,
then what it orders, then the steps of the nodes that may take one, then again. It ends when ``ended`` is told.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Optional

from ..errors import RdmaError
from . import machine
from .model import NodeView, Orders, Plan, Record, Told
from .names import Phase, State, Strategy
from .planning import digest

ENDS = frozenset((Phase.COMPLETE, Phase.ROLLED_BACK))
"""Phases after which nothing is left to do. An aborted roll still releases what may be released."""

NAMED = 3
"""Nodes that a reason names."""

_BESIDE = (State.BLOCKED, State.FAILED)
_APPLIED = machine.place(State.APPLIED)
_CLAIMS = machine.place(State.CLAIMS_RELEASED)
_VERIFIED = machine.place(State.VERIFIED)
_RELEASED = machine.place(State.RELEASED)
_LOCKED = machine.place(State.LOCKED)
_NOTHING = Told()


def conduct(
    plan: Plan, record: Record, nodes: Mapping[str, NodeView], told: Mapping[str, Told], now: float
) -> Orders:
    """What the roll needs next.

    :param nodes: those of the plan that are there, and any that joined meanwhile.
    :param told: of each node, brought up to date by ``machine.heard``; a node without one was not looked at yet.
    :param now: monotonic seconds.
    """
    if record.phase in ENDS:
        return Orders(ended=True, reason=record.reason)
    scene = _Scene(plan, record, nodes, told, now)
    other = scene.foreign()
    if other:
        return scene.pause(other)
    if record.phase is Phase.ABORTED:
        return _aborting(scene)
    scene.count()
    why = scene.abort_due()
    if why:
        return Orders(record=abort(plan, scene.record, why), reason=why, take_back=scene.canary_failed())
    orders = _drain_all(scene) if plan.strategy is Strategy.DRAIN_ALL else _rolling(scene)
    written = orders.record or scene.record
    return replace(orders, record=written if written != record else None)


def abort(plan: Plan, record: Record, reason: str) -> Record:
    """The record of a roll that is to stop for good; ``conduct`` then releases what may be released.

    :raises RdmaError: ``roll_ended``: it has ended.
    """
    _not_ended(plan, record)
    return replace(record, phase=Phase.ABORTED, reason=reason)


def paused(plan: Plan, record: Record, reason: str) -> Record:
    """The record of a roll that stops for now and can be resumed.

    :raises RdmaError: ``roll_ended``: it has ended.
    """
    _not_ended(plan, record)
    return record if record.phase is Phase.ABORTED else replace(record, phase=Phase.PAUSED, reason=reason)


def resumed(plan: Plan, record: Record) -> Record:
    """The record of a roll that goes on, after a pause, an abort, or a controller that died.

    :raises RdmaError: ``roll_ended``: it has ended.
    """
    _not_ended(plan, record)
    return replace(record, phase=Phase.PLANNED, reason="", consecutive=0, failed=0)


def takes_up(made: str, born: Iterable[str]) -> bool:
    """Whether a roll takes up the nodes that are not in its plan: those that came after it was made (decision 30).

    A plan that left out a node which was there is about some nodes only, and takes up no others.

    :param made: when the plan was stored, RFC 3339 with whole seconds, as the API server stamps objects.
    :param born: when each of these nodes was created, by the same clock. One of the second in which the plan was stored
        came later: whatever was there before is in the plan or was left out on purpose.
    """
    return bool(made) and all(date >= made for date in born)


def joined(plan: Plan, record: Record, nodes: Iterable[str]) -> tuple[str, ...]:
    """Nodes that came after the plan was made, in the order in which they are to come: last (decision 30)."""
    known = {*plan.nodes, *record.joined}
    return (*record.joined, *sorted(set(nodes) - known))


def _not_ended(plan: Plan, record: Record) -> None:
    if record.phase in ENDS:
        raise RdmaError(
            "roll_ended",
            "The roll %s has ended (%s)." % (digest(plan), record.phase.value),
            hint="Plan a new one.",
        )


def window(budget: int, done: int) -> int:
    """How many nodes after the canary may have been begun when ``done`` of them are done.

    Batches of 1, 2, 4 .. nodes, each begun when the one before is done; from a batch of the whole budget on, a node
    that is done makes room for the next.
    """
    begun, batch = 0, 1
    while batch < budget and begun + batch <= done:
        begun, batch = begun + batch, batch * 2
    return begun + batch if batch < budget else done + budget


# --- the nodes of a roll, as they are now --------------------------------------------------------------------------


@dataclass(frozen=True)
class _Node:
    """A node with what is asked about it again and again.

    :param broken: blocked or failed, and tried in this run already.
    :param place: how far it is; where it was, if it is blocked or failed.
    """

    name: str
    view: NodeView
    told: Told
    state: Optional[State]
    place: int
    broken: bool
    quiet: bool
    settled: bool
    fenced: bool
    ours: bool

    @property
    def over(self) -> bool:
        """Whether nothing is left to do with it."""
        return self.state in (State.DONE, State.SKIPPED)

    @property
    def unfenced(self) -> bool:
        """Whether this roll has not fenced it yet."""
        return self.place <= _LOCKED and not self.ours

    @property
    def proven(self) -> bool:
        """Whether it offers the new value, and that was proven."""
        return self.settled or self.place >= _RELEASED

    @property
    def in_flight(self) -> bool:
        """Between the first change and its proof."""
        return not self.broken and _APPLIED <= self.place <= _VERIFIED and not self.settled


class _Scene:
    """Everything that one decision looks at."""

    def __init__(
        self,
        plan: Plan,
        record: Record,
        nodes: Mapping[str, NodeView],
        told: Mapping[str, Told],
        now: float,
    ) -> None:
        self.plan = plan
        self.record = replace(record, joined=joined(plan, record, nodes))
        self.nodes = [
            self.node(nodes[name], told.get(name, _NOTHING), now)
            for name in (*plan.nodes, *self.record.joined)
            if name in nodes
        ]
        self.may: dict[str, State] = {}
        alive = {node.name for node in self.nodes}
        canaries = tuple(name for name in plan.canary if name in alive)
        if not canaries and plan.canary and self.nodes:
            canaries = (self.nodes[0].name,)
        self.canaries = frozenset(canaries)

    def node(self, view: NodeView, told: Told, now: float) -> _Node:
        plan = self.plan
        state = machine.at(plan, view)
        where = view.marks.before if state in _BESIDE else state
        ours = view.marks.owner in machine.names(plan)
        return _Node(
            name=view.name,
            view=view,
            told=told,
            state=state,
            place=-1 if where is None else machine.place(where),
            broken=state in _BESIDE and told.tried,
            quiet=state is State.CLAIMS_RELEASED and machine.quiet(plan, view, told, now),
            settled=state is State.VERIFIED and machine.settled(plan, view, told),
            fenced=ours and machine.fenced(plan, view),
            ours=ours,
        )

    # --- what is asked of all of them

    def foreign(self) -> str:
        """Nodes that another roll left half-done; nothing is begun while there are any."""
        for node in self.nodes:
            other = machine.foreign(self.plan, node.view)
            if other:
                return "%s was left half-done by the roll %s; resume that one, or take it back" % (
                    node.name,
                    other,
                )
        return ""

    def failed(self) -> list[_Node]:
        return [node for node in self.nodes if node.state is State.FAILED and node.broken]

    def blocked(self) -> list[_Node]:
        return [node for node in self.nodes if node.state is State.BLOCKED and node.broken]

    def count(self) -> None:
        """Bring the failures in a row up to date."""
        failed = len(self.failed())
        record = self.record
        if failed == record.failed:
            return
        succeeded = sum(1 for node in self.nodes if node.proven)
        if failed < record.failed:
            row = min(record.consecutive, failed)
        elif succeeded > record.succeeded:
            row = failed - record.failed
        else:
            row = record.consecutive + failed - record.failed
        self.record = replace(record, failed=failed, succeeded=succeeded, consecutive=row)

    def canary_failed(self) -> bool:
        """Whether it stopped at its canary: nothing beyond that was changed."""
        failed = any(node.name in self.canaries and node.state is State.FAILED for node in self.nodes)
        return failed and not self.beyond_canary()

    def beyond_canary(self) -> bool:
        return any(
            node.place >= _APPLIED and node.name not in self.canaries and node.state is not State.SKIPPED
            for node in self.nodes
        )

    def abort_due(self) -> str:
        """Why the roll must stop for good; empty: it need not."""
        failed = self.failed()
        if not failed:
            return ""
        limits = self.plan.thresholds
        what = "%s failed (%s)" % (failed[-1].name, failed[-1].view.marks.error)
        for node in failed:
            if node.name in self.canaries:
                return "canary %s failed (%s)" % (node.name, node.view.marks.error)
        if self.record.consecutive >= limits.consecutive:
            return "%d nodes in a row failed, the last: %s" % (self.record.consecutive, what)
        if len(failed) * 100 > limits.percent * len(self.nodes):
            return "%d of %d nodes failed, more than %d %%, the last: %s" % (
                len(failed),
                len(self.nodes),
                limits.percent,
                what,
            )
        return ""

    def outages(self) -> dict[str, str]:
        """Nodes that are unusable and not by what this roll does now: others' outages, and what it left broken; why."""
        found = {}
        for node in self.nodes:
            by_us = node.ours and self.plan.fence == "cordon"
            cordoned = node.view.unschedulable and (
                not by_us or node.view.marks.initial_unschedulable is True
            )
            if not node.view.ready:
                found[node.name] = "is not ready"
            elif cordoned:
                found[node.name] = "is cordoned by somebody"
            elif node.broken and node.fenced:
                found[node.name] = "was left fenced"
        return found

    def waits(self) -> str:
        """Why nothing is begun though nodes could be, and nothing is under way."""
        out = sorted(self.outages().items())
        if len(out) < self.plan.budget:
            return "waits for the canary %s" % ", ".join(sorted(self.canaries))
        more = ", and %d more" % (len(out) - NAMED) if len(out) > NAMED else ""
        named = ", ".join(["%s %s" % pair for pair in out[:NAMED]])
        return "the budget of %d is used up: %s%s" % (self.plan.budget, named, more)

    def choose(self, candidates: list[_Node], flight: list[_Node], done: int) -> list[_Node]:
        """Those of the candidates that may be begun now: canaries one by one, then batches within the budget."""
        budget = self.plan.budget
        left = [node for node in self.nodes if node.name in self.canaries and not node.proven]
        left = [node for node in left if node.state is not State.SKIPPED]
        if left:
            batch = 1
            room = 1 - len(flight)
            candidates = [node for node in candidates if node.name in self.canaries]
        else:
            batch = min(window(budget, done) - done, budget)
            begun = done + sum(1 for node in flight if node.name not in self.canaries)
            room = min(window(budget, done) - begun, budget - len(flight))
        self.record = replace(self.record, batch=batch)
        unusable = {*self.outages(), *[node.name for node in flight]}
        chosen: list[_Node] = []
        for node in candidates:
            if len(chosen) < room and (node.name in unusable or len(unusable) < budget):
                chosen.append(node)
                unusable.add(node.name)
        return chosen

    def peers(self) -> dict[str, str]:
        """A proven node for each that may be proven next, by turns."""
        proven = [node.name for node in self.nodes if node.proven and node.view.ready]
        if not proven:
            return {}
        wanting = [name for name, limit in self.may.items() if machine.place(limit) >= _VERIFIED]
        found = {}
        for turn, name in enumerate(wanting):
            peer = proven[turn % len(proven)]
            if peer == name:
                peer = proven[(turn + 1) % len(proven)]
            if peer != name:
                found[name] = peer
        return found

    # --- orders

    def orders(self, phase: Phase, reason: str = "", waits: str = "") -> Orders:
        """Go on.

        :param waits: why nothing can be done until somebody else does something; whoever asks how far the roll is, is
            told too.
        """
        if self.plan.parent:
            phase = Phase.ROLLING_BACK
        record = replace(self.record, phase=phase, reason=waits)
        return Orders(
            record=record,
            may=self.may,
            peers=self.peers(),
            hold=self.record.switched and self.plan.strategy is Strategy.DRAIN_ALL,
            reason=reason or waits,
        )

    def switch(self, phase: Phase) -> Orders:
        """Let the value be switched, after the target was prepared for it."""
        if not self.record.kept:
            return replace(self.orders(phase, "prepares the switch"), prepare=True)
        return replace(self.orders(phase, "switches the value"), switch=True, value=self.plan.new)

    def pause(self, reason: str) -> Orders:
        """Stop for now."""
        return Orders(record=paused(self.plan, self.record, reason), ended=True, reason=reason)

    def end(self) -> Orders:
        """Every node is done, or beside."""
        broken = [node for node in self.nodes if node.broken]
        if broken:
            return self.pause(_told_of(broken))
        if self.record.kept:
            return replace(self.orders(self.record.phase, "restores what it prepared"), restore=True)
        phase = Phase.ROLLED_BACK if self.plan.parent else Phase.COMPLETE
        return Orders(record=replace(self.record, phase=phase, reason=""), ended=True)


# --- strategies ------------------------------------------------------------------------------------------------------


def _drain_all(scene: _Scene) -> Orders:
    """Two barriers (decision 24): nothing is changed before all are drained, nothing released before all are proven."""
    working = [node for node in scene.nodes if not node.over]
    if not working:
        return scene.end()
    blocked = scene.blocked()
    if len(blocked) > scene.plan.thresholds.blocked:
        return scene.pause(_told_of(blocked))
    early = [node for node in working if node.place < _APPLIED and not node.broken]
    for node in early:
        scene.may[node.name] = State.CLAIMS_RELEASED
    if not scene.record.switched:
        return _drain_before(scene, working, early)
    later = [node for node in working if node.place >= _APPLIED and not node.broken]
    open_gate = all(node.proven or (node.broken and node.fenced) for node in working)
    for node in later:
        releasable = node.place >= _RELEASED or (open_gate and node.settled)
        scene.may[node.name] = State.DONE if releasable else State.VERIFIED
    if open_gate:
        return scene.orders(Phase.RELEASING) if scene.may else scene.end()
    flight = [node for node in later if node.in_flight]
    done = sum(1 for node in scene.nodes if node.name not in scene.canaries and (node.proven or node.broken))
    ready = [node for node in early if node.quiet]
    chosen = scene.choose(ready, flight, done)
    for node in chosen:
        scene.may[node.name] = State.VERIFIED
    stuck = not flight and not chosen and all(node.quiet for node in early)
    broken = [node for node in working if node.broken]
    if stuck and broken:
        return scene.pause(_told_of(broken))
    waits = scene.waits() if ready and not flight and not chosen else ""
    return scene.orders(_rolling_phase(scene), waits=waits)


def _drain_before(scene: _Scene, working: list[_Node], early: list[_Node]) -> Orders:
    """Before the first barrier."""
    broken = [node for node in working if node.broken]
    begun = any(node.ours or node.place >= _LOCKED for node in early)
    if not begun:
        for node in early:
            why = machine.gate(scene.plan, node.view)
            if why:  # nothing is drained while the cluster is not good
                scene.may = {other.name: State.PENDING for other in early}
                return scene.orders(Phase.DRAINING, waits="%s: %s" % (node.name, why))
        if broken:
            return scene.pause(_told_of(broken))
    if broken:
        if all(node.quiet for node in early):
            return scene.pause(_told_of(broken))
    elif all(node.quiet or node.place >= _APPLIED for node in working):
        return scene.switch(Phase.DRAINING)
    return scene.orders(Phase.DRAINING)


def _rolling(scene: _Scene) -> Orders:
    """Each node from fence to release, within the budget."""
    working = [node for node in scene.nodes if not node.over]
    if not working:
        return scene.end()
    broken = [node for node in working if node.broken]
    fresh = [node for node in working if not node.broken and node.unfenced]
    flight = [node for node in working if not node.broken and not node.unfenced]
    limit = State.DONE if scene.record.switched else State.CLAIMS_RELEASED
    for node in fresh:
        scene.may[node.name] = State.LOCKED if node.state is State.LOCKED else State.PENDING
    for node in flight:
        scene.may[node.name] = limit
    if not scene.record.switched and any(node.quiet or node.place >= _APPLIED for node in flight):
        return scene.switch(_rolling_phase(scene))
    attention = len(scene.blocked()) > scene.plan.thresholds.blocked
    done = sum(1 for node in scene.nodes if node.name not in scene.canaries and (node.over or node.broken))
    ready = [
        node
        for node in fresh
        if node.state in (State.PENDING, State.LOCKED)
        and not machine.gate(scene.plan, node.view)
        and not attention
    ]
    chosen = scene.choose(ready, flight, done)
    for node in chosen:
        scene.may[node.name] = limit
    if not flight and not chosen and broken:
        used_up = bool(ready) and any(node.fenced for node in broken)
        if attention or used_up or not fresh or any(node.name in scene.canaries for node in broken):
            return scene.pause(_told_of(broken))
    waits = scene.waits() if ready and not flight and not chosen else ""
    return scene.orders(_rolling_phase(scene), waits=waits)


def _rolling_phase(scene: _Scene) -> Phase:
    left = any(
        node.name in scene.canaries and not node.proven and node.state is not State.SKIPPED
        for node in scene.nodes
    )
    return Phase.CANARY if left else Phase.ROLLING


def _aborting(scene: _Scene) -> Orders:
    """Release what may be released: everything, if nothing was changed; else what is proven (decision 24)."""
    plan, record = scene.plan, scene.record
    name = digest(plan)
    values = {node.view.value for node in scene.nodes if node.view.value}
    changed = any(node.place >= _APPLIED or node.view.marks.applied == name for node in scene.nodes)
    mine = [node for node in scene.nodes if node.view.marks.desired == name or node.ours]
    if not changed and record.kept:
        return Orders(switch=True, value=plan.old, restore=True, reason="switches back to the old value")
    mixed = plan.strategy is Strategy.DRAIN_ALL and (changed or len(values) > 1)
    let_go = [
        node.name
        for node in mine
        if node.place < _APPLIED
        and not node.over
        and not (mixed and node.ours)
        and not _new_early(plan, node)
    ]
    for node in mine:
        if node.state in (State.VERIFIED, State.RELEASED):
            scene.may[node.name] = State.DONE
    if let_go or scene.may:
        return Orders(release=tuple(let_go), may=scene.may, peers=scene.peers(), hold=True)
    return Orders(ended=True, reason=record.reason, take_back=scene.canary_failed())


def _new_early(plan: Plan, node: _Node) -> bool:
    """Whether a node offers the new value without having been changed: its driver was replaced by somebody."""
    return plan.strategy is Strategy.DRAIN_ALL and node.ours and node.view.value == plan.new


def _told_of(nodes: list[_Node]) -> str:
    """Nodes that stand beside, in words."""
    first = nodes[0]
    words = "%s is %s (%s)" % (
        first.name,
        (first.state or State.BLOCKED).value.lower(),
        first.view.marks.error,
    )
    return words if len(nodes) == 1 else "%s, and %d more" % (words, len(nodes) - 1)
