# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The loop of a roll: look, decide, write, act. Private to rdma.k8s: it may change with any release.

It remembers nothing that must survive it. Whatever it decides is decided from the cluster as it is; a loop that ends in
the middle of anything is followed by another one, which finds the same and goes on.
"""

from __future__ import annotations

import datetime
import threading
import time
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any, Callable, Optional
from urllib.parse import quote

from ..core.errors import RdmaError
from ..core.roll import conduct, eviction, fence, machine, status
from ..core.roll.model import (
    ChangeNode,
    Effect,
    Evict,
    Fence,
    NodeView,
    Orders,
    Plan,
    Prove,
    Reboot,
    Record,
    RestartDriver,
    Step,
    Told,
)
from ..core.roll.names import Phase, State
from . import evicting
from .client import FIELD_MANAGER, Cluster
from .roll_lease import Lease
from .roll_store import Store, Stored, node_path
from .roll_target import Target
from .roll_world import RULE_NAME, World

WORKERS = 8
GO_ON, ABORT, LOOK = "go on", "abort", "look"
_TURNS = 6
_TICK = 1.0
_SETTLE = 15.0
_FRESH = 5.0
"""Seconds for which a read of the pods of a node is good enough to begin a change that its users would not survive."""
_REPORT = 30.0
"""Seconds after which it is told how far the roll is."""
_HOPELESS = frozenset(
    ("kube_forbidden", "kube_unauthorized", "kube_denied", "kube_invalid", "kube_not_served")
)
"""Errors that no second try heals: the roll pauses with them."""


@dataclass(frozen=True)
class News:
    """Something that happened, for people who watch.

    :param node: empty: it is about the whole roll.
    :param was: the state or phase before; empty: none.
    """

    node: str
    was: str
    now: str
    reason: str = ""


@dataclass(frozen=True)
class Ended:
    """How a run of the loop ended.

    :param take_back: it stopped at its canary; taking it back touches no more than that.
    :param unrestored: nodes whose driver pods still have the former template, so that the update strategy of the driver
        was left at OnDelete.
    :param stopped: it was told to stop, or its time was over; nothing is wrong.
    """

    stored: Stored
    views: Mapping[str, NodeView]
    reason: str = ""
    take_back: bool = False
    unrestored: tuple[str, ...] = ()
    stopped: bool = False


@dataclass
class _Seat:
    """What the loop knows of one node."""

    told: Told = field(default_factory=Told)
    view: Optional[NodeView] = None
    asked: Any = None
    reason: str = ""
    due: float = 0.0
    read: float = -1e9
    observed: float = -1e9
    work: Optional[Future[None]] = None
    refused_since: dict[str, float] = field(default_factory=dict)

    @property
    def busy(self) -> bool:
        return self.work is not None and not self.work.done()


class Roll:
    """One run of a roll.

    :param cluster: for all writes; its guard is set to the lease.
    :param world: for everything that is looked at.
    :param rules: where rules that taint devices are, and their group and version; for plans that fence by them.
    :param tell: gets what happens, in the thread of :meth:`run`.
    :param stop: when it is set, the roll pauses as soon as the steps under way are over.
    """

    def __init__(  # noqa: PLR0917
        self,
        cluster: Cluster,
        world: World,
        store: Store,
        lease: Lease,
        target: Target,
        stored: Stored,
        *,
        rules: Optional[tuple[str, str]] = None,
        tell: Callable[[News], None] = lambda news: None,
        stop: Optional[threading.Event] = None,
        workers: int = WORKERS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.plan: Plan = stored.plan
        self.stored = stored
        self.reasons: dict[str, str] = {}
        """What each node waits for, in words."""
        self.orders = Orders()
        self._cluster, self._world, self._store, self._lease = cluster, world, store, lease
        self._target, self._rules, self._tell = target, rules, tell
        self._stop = stop or threading.Event()
        self._over = threading.Event()
        self._workers, self._clock = workers, clock
        self._seats: dict[str, _Seat] = {}
        self._seen: dict[str, str] = {}
        self._trouble: Optional[RdmaError] = None
        self._unrestored: tuple[str, ...] = ()

    @property
    def record(self) -> Record:
        """The record as it was written last."""
        return self.stored.record

    # --- the whole roll

    def run(self, mode: str = GO_ON, reason: str = "", max_runtime: float = 0.0) -> Ended:
        """Work until nothing is left to do, or somebody stops it. The lease must be held, the world be started.

        :param mode: ``go on`` or ``abort``.
        :param reason: of the abort.
        :param max_runtime: seconds after which the roll pauses; 0: none.
        :raises RdmaError: ``roll_ended``, ``roll_lease_lost``, ``roll_rewritten``, or an error that no second try
            heals. Whatever was begun can be resumed.
        """
        end = self._clock() + max_runtime if max_runtime else float("inf")
        report, trouble = self._clock() + _REPORT, ""
        self._begin(mode, reason)
        pool = ThreadPoolExecutor(self._workers, thread_name_prefix="rdma-roll-node")
        try:
            while True:
                if self._stop.is_set() or self._clock() >= end:
                    why = (
                        "it was told to stop"
                        if self._stop.is_set()
                        else "its time of %d s is over" % max_runtime
                    )
                    if self.record.reason:
                        why += "; until then: " + self.record.reason
                    self._rest(pool)
                    self._pause(why)
                    return replace(self._ended(why), stopped=True)
                began = self._clock()
                if began >= report:
                    report = began + _REPORT
                    self._news("", "", "status", status.lines(self.status())[0])
                try:
                    over = self._pass(pool)
                except RdmaError as error:
                    if not error.retryable or self._lease.lost or error.code == "roll_rewritten":
                        raise
                    if error.code != trouble:  # told once, however long it lasts
                        trouble = error.code
                        self._news("", "", "trouble", str(error))
                    self._world.wait(_TICK)
                    continue
                trouble = ""
                if self._trouble is not None:
                    raise self._trouble
                if over:
                    self._rest(pool)
                    return self._ended(self.orders.reason)
                # News come in swarms: deciding takes no more than half of the time, however many nodes there are.
                self._stop.wait(self._clock() - began)
                self._world.wait(self._until_due())
        except RdmaError as error:
            self._rest(pool)
            if not self._lease.lost and error.code != "roll_rewritten":
                self._pause(str(error))
            raise
        finally:
            self._over.set()  # steps that are still under way end with what they do now
            pool.shutdown(wait=True)

    def status(self) -> status.Status:
        """How far it is."""
        return status.look(self.plan, self.record, self._members(), stamp(), dict(self.reasons))

    def _begin(self, mode: str, reason: str) -> None:
        record = self.record
        if mode == ABORT:
            if record.phase is not Phase.ABORTED:
                self._write(conduct.abort(self.plan, record, reason or "the operator aborted it"))
        elif record.phase is not Phase.PLANNED or record.reason:
            self._write(conduct.resumed(self.plan, record))

    def _pass(self, pool: ThreadPoolExecutor) -> bool:
        """Look and decide once; whether nothing is left to do."""
        blind = self._world.blind()
        if blind:
            for seat in self._seats.values():
                if not seat.busy:  # what was seen before says nothing about what was not seen
                    seat.told = replace(seat.told, empty_since=None)
            raise RdmaError(
                "roll_blind", "What happens in the cluster is not heard: %s" % blind, retryable=True
            )
        now = self._clock()
        views = self._members()
        for name, view in views.items():
            seat = self._seats.setdefault(name, _Seat())
            self._notice(view)
            if not seat.busy:
                self._collect(seat)
                seat.told = machine.heard(self.plan, seat.told, view, now)
        told = {name: self._seats[name].told for name in views}
        self.orders = orders = conduct.conduct(self.plan, self.record, views, told, now)
        if orders.record is not None:
            self._write(orders.record)
        self._order(orders)
        for name in orders.release:
            self._submit(pool, name, views[name], ("release",), self._release)
        for name, limit in orders.may.items():
            asked = (limit, orders.peers.get(name, ""), orders.hold)
            self._submit(
                pool, name, views[name], asked, lambda seat, view, asked=asked: self._work(seat, view, *asked)
            )
        return orders.ended

    def _order(self, orders: Orders) -> None:
        """What is to be done once for all nodes."""
        if orders.prepare:
            # What must be restored is written down before anything is changed.
            self._write(replace(self.record, kept=self._target.keep()))
            self._target.prepare()
        if orders.switch:
            self._target.switch(orders.value)
            self._write(replace(self.record, switched=orders.value == self.plan.new))
            self._news("", "", "switched", "the driver is told %s" % orders.value)
        if orders.restore:
            self._unrestored = self._stale_nodes()
            if not self._unrestored:
                self._target.restore(self.record.kept)
            self._write(replace(self.record, kept=""))

    def _stale_nodes(self) -> tuple[str, ...]:
        """Nodes whose driver pods another update strategy would replace at once."""
        end = self._clock() + _SETTLE
        for name, content in self._target.daemonsets():
            self._world.put_template(name, content)
        while True:
            stale = self._world.stale()
            if not stale or self._clock() > end:
                return tuple(stale)
            self._world.wait(_TICK)

    def _members(self) -> dict[str, NodeView]:
        """The nodes of the plan that are there, and those that joined since."""
        views = self._world.views()
        known = [*self.plan.nodes, *self.record.joined]
        found = {name: views[name] for name in known if name in views}
        others = self._world.with_driver() - set(known)
        if others and conduct.takes_up(self.stored.created, map(self._world.created, others)):
            publishing = self._world.publishing()
            found.update((name, views[name]) for name in sorted(others & publishing) if name in views)
        return found

    def _pause(self, why: str) -> None:
        if self.record.phase in conduct.ENDS:
            return
        try:
            record = conduct.paused(self.plan, self.record, why)
            if record != self.record:
                self._write(record)
        except RdmaError:
            pass  # the record is as good without it: a roll without a controller is a paused one

    def _ended(self, reason: str) -> Ended:
        return Ended(
            self.stored,
            self._members(),
            reason or self.record.reason,
            self.orders.take_back,
            self._unrestored,
        )

    def _rest(self, pool: ThreadPoolExecutor) -> None:
        """Let the steps that are under way come to their end."""
        self._over.set()
        for seat in self._seats.values():
            if seat.work is not None:
                seat.work.exception()

    def _until_due(self) -> float:
        now = self._clock()
        seats = [self._seats[name] for name in self.orders.may if name in self._seats]
        due = [
            seat.due for seat in seats if not seat.busy
        ]  # one that is busy wakes us when it is not any more
        return max(0.02, min([_TICK, *(at - now for at in due)]))

    def _write(self, record: Record) -> None:
        before = self.record
        self.stored = self._store.write(self.stored, record)
        if record.phase is not before.phase:
            self._news("", before.phase.value, record.phase.value, record.reason)
        elif record.reason and record.reason != before.reason:
            self._news("", "", "waits", record.reason)

    def _notice(self, view: NodeView) -> None:
        state = machine.at(self.plan, view)
        now = state.value if state else ""
        was = self._seen.get(view.name, "")
        if now != was:
            self._seen[view.name] = now
            self._news(view.name, was, now, view.marks.error)

    def _news(self, node: str, was: str, now: str, reason: str = "") -> None:
        self._tell(News(node, was, now, reason))

    def _ends(self) -> bool:
        return self._stop.is_set() or self._over.is_set()

    # --- one node

    def _submit(self, pool: ThreadPoolExecutor, name: str, view: NodeView, asked: Any, work: Any) -> None:
        seat = self._seats[name]
        if seat.busy:
            return
        if seat.view is view and seat.asked == asked and self._clock() < seat.due:
            return
        seat.view, seat.asked = view, asked
        seat.work = pool.submit(self._guarded, seat, view, work)

    def _collect(self, seat: _Seat) -> None:
        if seat.work is not None:
            seat.work.result()
            seat.work = None

    def _guarded(self, seat: _Seat, view: NodeView, work: Callable[[_Seat, NodeView], Step]) -> None:
        """One piece of work on a node, and when to look again."""
        reason, retry = "", _TICK
        try:
            step = work(seat, view)
            reason, retry = step.reason, step.retry
        except RdmaError as error:
            reason = str(error)
            if error.code == "kube_conflict":
                reason, retry = "it changed meanwhile", 0.0
                self._read_again(view.name)
            elif error.code == "kube_not_found":
                self._read_again(view.name)
            elif error.code in _HOPELESS:
                self._trouble = error
        self.reasons[view.name] = reason
        seat.due = self._clock() + retry
        self._world.wake()

    def _read_again(self, name: str) -> None:
        try:
            self._world.put_node(self._cluster.get(node_path(name)))
        except RdmaError as error:
            if error.code == "kube_not_found":
                self._world.drop_node(name)

    def _work(self, seat: _Seat, view: NodeView, limit: State, peer: str, hold: bool) -> Step:
        """Steps of a node until it waits for something."""
        step = Step()
        for _turn in range(_TURNS):
            now = self._clock()
            view = self._observed(seat, view, now)
            seat.told = machine.heard(self.plan, seat.told, view, now)
            step = machine.advance(self.plan, limit, view, seat.told, now, stamp(), peer=peer, hold=hold)
            if _changes_it(step) and now - seat.read > _FRESH:
                self._world.read_pods(self._cluster, view.name)
                seat.read = now
                found = self._world.view(view.name)
                if found is None:
                    return step
                view = found
                continue
            fresh = self._take(seat, view, step)
            if fresh is None or step.reason or (step.patch is None and not step.effects) or self._ends():
                return step
            view = fresh
        return replace(step, retry=0.0)

    def _observed(self, seat: _Seat, view: NodeView, now: float) -> NodeView:
        """The view of a node whose value only a look at the node tells."""
        wanted = view.value != self.plan.new and machine.at(self.plan, view) is State.VERIFIED
        if not self._target.observes or not (wanted or not view.value) or now - seat.observed < _FRESH:
            return view
        seat.observed = now
        try:
            self._target.observe(view.name)
        except RdmaError as error:
            seat.told = replace(seat.told, trouble=str(error))
            return view
        self._world.touch(view.name)
        return self._world.view(view.name) or view

    def _release(self, seat: _Seat, view: NodeView) -> Step:
        step = machine.release(self.plan, view)
        self._take(seat, view, step)
        return step

    def _take(self, seat: _Seat, view: NodeView, step: Step) -> Optional[NodeView]:
        """Carry out one step; the node as it is then, ``None``: it is not there."""
        name = view.name
        if step.patch is not None:
            self._world.put_node(self._store.patch_node(self.plan, name, step.patch))
            found = self._world.view(name)
            if found is None:
                return None
            view = found
            seat.told = machine.heard(self.plan, seat.told, view, self._clock())
        for effect in step.effects:
            try:
                seat.told = self._perform(seat, view, effect, replace(seat.told, trouble=""))
            except RdmaError as error:
                seat.told = replace(seat.told, trouble=str(error))
                if error.code in _HOPELESS or error.code.startswith("roll_lease"):
                    raise
        return self._world.view(name)

    def _perform(self, seat: _Seat, view: NodeView, effect: Effect, told: Told) -> Told:
        """One effect; what it told."""
        name = view.name
        if isinstance(effect, Evict):
            return self._evict(seat, effect, told)
        if isinstance(effect, Fence):
            self._fence(name, effect.present)
            return told
        if isinstance(effect, RestartDriver):
            for pod in effect.pods:
                self._delete(pod.namespace, pod.name, pod.uid)
                told = replace(told, deleted=told.deleted | {pod.uid})
            return told
        if isinstance(effect, ChangeNode):
            owed = self._target.change_node(name, self.plan.new)
            return replace(told, changed=True, reboot_owed=owed)
        if isinstance(effect, Reboot):
            self._target.reboot(name, effect.boot_id)
            return replace(told, asked=self._clock())
        if isinstance(effect, Prove):
            found = self._target.prove(name, self.plan.new, effect.peer or None)
            return replace(told, proven=not found.problems, problems=found.problems, note=found.note)
        raise TypeError("effect %r" % (effect,))

    def _evict(self, seat: _Seat, effect: Evict, told: Told) -> Told:
        retry_at = 0.0
        for user in effect.users:
            found = evicting.send(self._cluster, user)
            now = self._clock()
            refused = dict(told.refused)
            refused.pop(user.uid, None)
            if found.over:
                told = replace(told, evicted=told.evicted | {user.uid}, refused=refused)
                continue
            first = seat.refused_since.setdefault(user.uid, now)
            refused[user.uid] = found.reason
            retry_at = max(retry_at, now + eviction.retry_after(found, now - first))
            told = replace(told, refused=refused, retry_at=retry_at)
        return told

    def _fence(self, node: str, present: bool) -> None:
        if self._rules is None:
            raise RdmaError(
                "roll_fence",
                "The API server serves no DeviceTaintRule, with which the plan fences nodes.",
                hint="Plan with the fence cordon.",
            )
        path, group_version = self._rules
        try:
            if present:
                made = fence.rule(node, self._target.scope.driver, group_version, name_prefix=RULE_NAME)
                self._cluster.send("POST", path, made, fieldManager=FIELD_MANAGER)
            else:
                self._cluster.send("DELETE", "%s/%s" % (path, quote(RULE_NAME + node, safe="")))
        except RdmaError as error:
            if error.code != ("kube_conflict" if present else "kube_not_found"):
                raise

    def _delete(self, namespace: str, name: str, uid: str) -> None:
        """A pod, with its own grace, if it is still the one of this UID."""
        metadata = {"namespace": namespace, "name": name, "uid": uid}
        try:
            self._cluster.delete({"apiVersion": "v1", "kind": "Pod", "metadata": metadata})
        except RdmaError as error:
            if error.code != "kube_conflict":  # it is another one, so that one has gone
                raise


def _changes_it(step: Step) -> bool:
    """Whether a step begins the change of a node."""
    return step.patch is not None and step.patch.annotations.get("roll-state") == State.APPLIED.value


def stamp() -> str:
    """The time of day, RFC 3339."""
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
