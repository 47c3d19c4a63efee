# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What one node needs next. Private to rdma.k8s: it may change with any release.

The loop, for each node that may take a step: ``told = heard(plan, told, node, now)``, then ``advance``, then the patch
if there is one, then the effects; what they told goes into ``told``. The node that the patch returned is the next
view. A patch that is refused because the node changed meanwhile is forgotten, and the step decided anew.

A state says that its entry action was begun. Every entry action can be done again, and a node only goes on when what
it waits for is seen in the view, so that a controller that dies anywhere is followed by another one that finds the
node as it is and goes on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Callable, Optional

from ..stamps import seconds_between
from .marks import changes, label, shortened
from .model import (
    ChangeNode,
    DriverPod,
    Effect,
    Evict,
    Fence,
    Marks,
    NodePatch,
    NodeView,
    Plan,
    Prove,
    Reboot,
    RestartDriver,
    Step,
    Told,
    User,
)
from .names import ORDER, State
from .planning import digest
from .users import choose

QUIET = 5.0
"""Seconds for which no claim may be seen before they count as gone: two lists in a row."""
REBOOTS = 2
"""At most so many reboots of a node in one roll."""
REBOOT_AGAIN = 600.0
"""Seconds after which a node that keeps its boot id is told again to reboot."""

_PLACE: Mapping[State, int] = {state: place for place, state in enumerate(ORDER)}
_APPLIED = _PLACE[State.APPLIED]


def place(state: State) -> int:
    """How far a state is; states that stand beside the order are before all of it."""
    return _PLACE.get(state, -1)


def names(plan: Plan) -> tuple[str, ...]:
    """The names under which a roll finds its own marks: its own, and the one of the roll that it takes back."""
    return (digest(plan), plan.parent) if plan.parent else (digest(plan),)


def at(plan: Plan, node: NodeView) -> Optional[State]:
    """The state of a node in this roll; ``None``: it was not begun."""
    return node.marks.state if node.marks.desired == digest(plan) else None


def foreign(plan: Plan, node: NodeView) -> str:
    """The name of another roll that left the node half-done; empty: there is none."""
    ours, marks = names(plan), node.marks
    for name in (marks.owner, marks.lock):
        if name and name not in ours:
            return name
    if marks.desired and marks.desired not in ours and _half_done(marks):
        return marks.desired
    return ""


def fenced(plan: Plan, node: NodeView) -> bool:
    """Whether no new user of RDMA can land on a node."""
    return node.fenced_by_rule if plan.fence == "taint" else node.unschedulable


def must_go(plan: Plan, node: NodeView) -> tuple[User, ...]:
    """The users that must have left before anything is changed."""
    return choose(node.users, plan.consent).waits_for


def in_the_way(plan: Plan, node: NodeView) -> str:
    """Why the users of a node can never be evicted, in words; empty: they can.

    Pods that only use the devices of the host stay where nothing but a range changes; where the node itself is
    changed they lose the devices, so that somebody has to allow it.
    """
    choice = choose(node.users, plan.consent)
    for user, why in choice.blocking:
        return "pod %s/%s: %s" % (user.namespace, user.name, why)
    for user in choice.stays:
        if plan.node_change and user.owner_kind != "DaemonSet":
            return "pod %s/%s uses %s of the host: allow to evict such pods" % (
                user.namespace,
                user.name,
                user.uses,
            )
    return ""


def gate(plan: Plan, node: NodeView) -> str:
    """Why nothing may be begun on a node; empty: it may."""
    if not node.ready:
        return "the node is not ready"
    if node.critical:
        return "; ".join(node.critical)
    if _fence_is_ours(plan, node):
        return ""  # begun already, by us or by the roll that is taken back: its driver may be what is to be repaired
    if len(node.drivers) < node.driver_sets:
        return "%d of %d driver pods are there" % (len(node.drivers), node.driver_sets)
    for pod in node.drivers:
        if not pod.ready:
            return "driver pod %s is not ready" % pod.name
    return ""


def quiet(plan: Plan, node: NodeView, told: Told, now: float) -> bool:
    """Whether the proof of ClaimsReleased holds: no user, no claim for long enough, and a node that answers."""
    return (
        node.ready
        and fenced(plan, node)
        and not must_go(plan, node)
        and not node.claims
        and told.empty_since is not None
        and now - told.empty_since >= QUIET
    )


def settled(plan: Plan, node: NodeView, told: Told) -> bool:
    """Whether the proof of Verified holds."""
    return told.proven is True and node.value == plan.new and not _stale(node)


def heard(plan: Plan, told: Told, node: NodeView, now: float) -> Told:
    """What was told, brought up to date with a view; to be called before each ``advance``."""
    state = at(plan, node)
    empty_since = told.empty_since
    if node.claims:
        empty_since = None
    elif empty_since is None:
        empty_since = now
    if told.entered is None or told.state is not state:
        return Told(
            state=state,
            entered=now,
            tried=told.tried or state not in (State.BLOCKED, State.FAILED),
            empty_since=empty_since,
            evicted=told.evicted,
            deleted=told.deleted,
        )
    waits_well = (
        (state in (None, State.PENDING) and not gate(plan, node))
        or (state is State.CLAIMS_RELEASED and node.ready and not node.claims)
        or (state is State.VERIFIED and settled(plan, node, told))
    )
    return replace(told, empty_since=empty_since, entered=now if waits_well else told.entered)


def advance(  # noqa: PLR0917
    plan: Plan,
    limit: State,
    node: NodeView,
    told: Told,
    now: float,
    stamp: str,
    peer: str = "",
    hold: bool = False,
) -> Step:
    """What a node needs next.

    :param limit: the last state that it may enter.
    :param told: brought up to date by ``heard``.
    :param now: monotonic seconds.
    :param stamp: the time of day, RFC 3339, as it is written onto the node.
    :param peer: a node that is proven, ``Orders.peers``.
    :param hold: ``Orders.hold``.
    """
    return _Turn(plan, limit, node, told, now, stamp, peer, hold).step()


def release(plan: Plan, node: NodeView) -> Step:
    """Let a node go as it is: our fence goes, and our marks, in one patch; what others own stays (DEV-19, DEV-29).

    A rule goes first, because nobody would look for it on a node without marks; the node is let go again after that.
    """
    if plan.fence == "taint" and node.fenced_by_rule:
        return Step(effects=(Fence(False),))
    free, schedulable = _freed(plan, node)
    free = replace(
        free, desired="", state=None, since="", attempt=0, error="", before=None, reboots=0, boot_id=""
    )
    return Step(patch=NodePatch(node.version, changes(node.marks, free), None, schedulable))


# --- one step --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Turn:
    """One step of one node."""

    plan: Plan
    limit: State
    node: NodeView
    told: Told
    now: float
    stamp: str
    peer: str
    hold: bool

    @property
    def name(self) -> str:
        return digest(self.plan)

    @property
    def marks(self) -> Marks:
        return self.node.marks

    @property
    def state(self) -> Optional[State]:
        return at(self.plan, self.node)

    def step(self) -> Step:
        """The step of the state in which the node is."""
        other = foreign(self.plan, self.node)
        if other:
            return Step(reason="the roll %s left it half-done" % other, retry=60.0)
        if self.state is None:
            return self.begin()
        if _PLACE[State.WAIT_JOBS] <= place(self.state) <= _PLACE[State.VERIFIED] and not fenced(
            self.plan, self.node
        ):
            return self.fence_again()
        return _RULES[self.state](self)

    # --- from one state to another

    def patch(self, wanted: Marks, unschedulable: Optional[bool] = None) -> NodePatch:
        return NodePatch(self.node.version, changes(self.marks, wanted), label(wanted.state), unschedulable)

    def enter(
        self,
        state: State,
        wanted: Optional[Marks] = None,
        effects: tuple[Effect, ...] = (),
        unschedulable: Optional[bool] = None,
    ) -> Step:
        """Go on to a state, if the node may."""
        if place(state) > place(self.limit):
            return Step(reason="waits until it may go on to %s" % state.value, retry=30.0)
        wanted = replace(
            wanted or self.marks,
            desired=self.name,
            state=state,
            since=self.stamp,
            error="",
            before=None,
        )
        return Step(patch=self.patch(wanted, unschedulable), effects=effects)

    def go_back(self, state: State) -> Step:
        """Return to an earlier state, because what was proven is no longer so."""
        return Step(patch=self.patch(replace(self.marks, state=state, since=self.stamp)))

    def over(self) -> bool:
        """Whether the node was in its state for as long as it may be."""
        state = self.state or State.PENDING
        seconds = self.plan.limits.get(state, 0)
        if not seconds:
            return state is State.WAIT_JOBS
        if self.told.entered is not None:
            return self.now - self.told.entered >= seconds
        return (seconds_between(self.marks.since, self.stamp) or 0.0) >= seconds

    def wait(self, why: str, effects: tuple[Effect, ...] = (), retry: float = 5.0) -> Step:
        """Wait for a proof; when that took too long the node is blocked, or failed if it was changed already."""
        if not self.over():
            return Step(effects=effects, reason=why, retry=retry)
        return self.stop(why)

    def stop(self, why: str) -> Step:
        """Give the node up for now."""
        if self.state in (State.APPLIED, State.REBOOTING, State.DRIVER_RESTARTED, State.VERIFIED):
            return self.beside(State.FAILED, self.marks, why)
        if place(self.state or State.PENDING) > _APPLIED or not self.may_unfence():
            return self.beside(State.BLOCKED, self.marks, why)
        free, schedulable = _freed(self.plan, self.node)
        effects: tuple[Effect, ...] = (Fence(False),) if self.plan.fence == "taint" else ()
        return self.beside(State.BLOCKED, free, why, effects, schedulable)

    def may_unfence(self) -> bool:
        """Whether a node that is blocked may be used again: nothing was changed on it or around it (DEV-27)."""
        return self.plan.release_blocked and not self.hold and self.node.value in ("", self.plan.old)

    def beside(
        self,
        state: State,
        wanted: Marks,
        why: str,
        effects: tuple[Effect, ...] = (),
        unschedulable: Optional[bool] = None,
    ) -> Step:
        reason = "%s: %s" % ((self.state or State.PENDING).value, why)
        wanted = replace(
            wanted,
            desired=self.name,
            state=state,
            since=self.stamp,
            before=self.state,
            attempt=self.marks.attempt + 1,
            error=shortened(reason),
        )
        return Step(
            patch=self.patch(wanted, unschedulable),
            effects=effects,
            reason=reason,
            retry=60.0,
        )

    # --- the states

    def begin(self) -> Step:
        marks = replace(self.marks, attempt=0, reboots=0, boot_id="", note="")
        return self.enter(State.PENDING, marks)

    def pending(self) -> Step:
        why = gate(self.plan, self.node)
        if why:
            return self.wait(why, retry=30.0)
        return self.enter(State.LOCKED, replace(self.marks, lock=self.name))

    def locked(self) -> Step:
        if self.marks.lock != self.name:
            return self.enter(State.LOCKED, replace(self.marks, lock=self.name))
        initial = self.marks.initial_unschedulable
        if initial is None:  # only if absent: a controller that died after its cordon finds its own (DEV-28)
            initial = self.node.unschedulable
        wanted = replace(self.marks, owner=self.name, initial_unschedulable=initial)
        return self.enter(State.FENCED, wanted, self.fence_effects(), self.cordon())

    def cordon(self) -> Optional[bool]:
        return True if self.plan.fence == "cordon" and not self.node.unschedulable else None

    def fence_effects(self) -> tuple[Effect, ...]:
        return (Fence(True),) if self.plan.fence == "taint" and not self.node.fenced_by_rule else ()

    def fence_again(self) -> Step:
        """Somebody took the fence away, so the node was usable: it is fenced again, and released at the end."""
        why = "somebody took its fence away; it is fenced again"
        if self.plan.fence == "taint":
            return Step(effects=(Fence(True),), reason=why)
        wanted = replace(self.marks, owner=self.name, initial_unschedulable=False)
        return Step(patch=self.patch(wanted, True), reason=why, retry=0.0)

    def fenced(self) -> Step:
        if fenced(self.plan, self.node):
            return self.enter(State.WAIT_JOBS)
        if self.plan.fence == "taint":
            return self.wait("its rule is not there yet", (Fence(True),))
        return self.fence_again()

    def wait_jobs(self) -> Step:
        jobs = [user for user in must_go(self.plan, self.node) if user.ends]
        if jobs and not self.over():
            return Step(reason="waits for %s" % _called(jobs), retry=15.0)
        if jobs and not self.plan.consent.evict_jobs:
            return self.stop("%s did not end, and jobs are not to be evicted" % _called(jobs))
        return self.enter(State.DRAINING)

    def draining(self) -> Step:
        stuck = in_the_way(self.plan, self.node)
        if stuck:
            return self.stop(stuck)
        leaving = must_go(self.plan, self.node)
        if not leaving:
            return self.enter(State.CLAIMS_RELEASED)
        ask = tuple([user for user in leaving if not user.leaving and user.uid not in self.told.evicted])
        refused = "; ".join("%s: %s" % pair for pair in sorted(self.told.refused.items()))
        why = "drains %s" % _called(leaving) + (" (%s)" % refused if refused else "")
        if not ask:
            return self.wait(why)
        if self.told.retry_at > self.now:
            return self.wait(why, retry=self.told.retry_at - self.now)
        return self.wait(why, (Evict(ask),))

    def claims_released(self) -> Step:
        back = self.users_back()
        if back:
            return back
        if self.node.claims:
            return self.wait("claims are not released: %s" % ", ".join(self.node.claims[:3]))
        if not self.node.ready:
            return self.wait("the node is not ready")
        if not quiet(self.plan, self.node, self.told, self.now):
            since = self.now if self.told.empty_since is None else self.told.empty_since
            return Step(reason="no claim is left; looks once more", retry=since + QUIET - self.now)
        return self.enter(State.APPLIED)

    def users_back(self) -> Optional[Step]:
        """Back to Draining if somebody uses the node again."""
        return self.go_back(State.DRAINING) if must_go(self.plan, self.node) else None

    def not_idle(self) -> Optional[Step]:
        """Back if the node is used again, before something is done that its users would not survive."""
        back = self.users_back()
        if back is None and self.node.claims:
            back = self.go_back(State.CLAIMS_RELEASED)
        return back

    def applied(self) -> Step:
        back = self.not_idle()
        if back:
            return back
        if self.plan.node_change and not self.told.changed:
            return self.wait(self.told.trouble or "changes the node", (ChangeNode(),))
        if not self.told.reboot_owed:
            return self.enter(State.DRIVER_RESTARTED)
        if not self.plan.reboot:
            return self.stop("the change asks for a reboot, and the plan allows none")
        reboots = self.marks.reboots
        if self.marks.boot_id != self.node.boot_id:  # else it was to reboot before, and never did
            reboots += 1
        if reboots > REBOOTS:
            return self.stop("it was rebooted %d times and still asks for a reboot" % REBOOTS)
        wanted = replace(self.marks, boot_id=self.node.boot_id, reboots=reboots)
        return self.enter(State.REBOOTING, wanted)

    def rebooting(self) -> Step:
        if self.node.boot_id and self.node.boot_id != self.marks.boot_id:
            return (
                self.enter(State.DRIVER_RESTARTED)
                if self.node.ready
                else self.wait("has rebooted and is not ready")
            )
        back = self.not_idle()
        if back:
            return back
        asked = self.told.asked
        again = asked is None or self.now - asked >= REBOOT_AGAIN
        effects: tuple[Effect, ...] = (Reboot(self.marks.boot_id),) if again else ()
        return self.wait(self.told.trouble or "reboots", effects, retry=15.0)

    def driver_restarted(self) -> Step:
        stale = _stale(self.node)
        if stale:
            back = self.not_idle()
            if back:
                return back
            left = tuple([pod for pod in stale if pod.uid not in self.told.deleted])
            effects: tuple[Effect, ...] = (RestartDriver(left),) if left else ()
            return self.wait(self.told.trouble or "replaces %s" % _pods(stale), effects)
        if len(self.node.drivers) < self.node.driver_sets:
            return self.wait(
                "%d of %d driver pods are there" % (len(self.node.drivers), self.node.driver_sets)
            )
        waits = tuple([pod for pod in self.node.drivers if not pod.ready])
        if waits:
            return self.wait("%s is not ready" % _pods(waits))
        if not self.node.ready:
            return self.wait("the node is not ready")
        return self.enter(State.VERIFIED)

    def verified(self) -> Step:
        if _stale(self.node):
            return self.not_idle() or self.go_back(State.DRIVER_RESTARTED)
        if self.node.value != self.plan.new:
            return self.wait("offers %s, not %s yet" % (self.node.value or "nothing", self.plan.new))
        if self.told.proven is not True:
            why = "; ".join(self.told.problems) or self.told.trouble or "proves the node"
            return self.wait(why, (Prove(self.peer),))
        free, schedulable = _freed(self.plan, self.node)
        effects: tuple[Effect, ...] = (Fence(False),) if self.plan.fence == "taint" else ()
        return self.enter(State.RELEASED, replace(free, note=self.told.note), effects, schedulable)

    def released(self) -> Step:
        if self.marks.owner in names(self.plan):
            free, schedulable = _freed(self.plan, self.node)
            return self.enter(State.RELEASED, free, unschedulable=schedulable)
        if self.plan.fence == "taint" and self.node.fenced_by_rule:
            return self.wait("its rule is still there", (Fence(False),))
        free = _freed(self.plan, self.node)[0]
        wanted = replace(free, applied=self.name, attempt=0, reboots=0, boot_id="")
        return self.enter(State.DONE, wanted)

    def done(self) -> Step:
        return Step(retry=60.0)

    def retry(self) -> Step:
        """Try a node again that was blocked or failed: where it was, or from the start if it was let go meanwhile."""
        before = self.marks.before or State.PENDING
        if place(before) < _APPLIED and not _fence_is_ours(self.plan, self.node):
            before = State.PENDING
        if place(before) > place(self.limit):
            return Step(reason="waits until it may go on to %s" % before.value, retry=30.0)
        return Step(patch=self.patch(replace(self.marks, state=before, since=self.stamp, before=None)))


_RULES: Mapping[State, Callable[[_Turn], Step]] = {
    State.PENDING: _Turn.pending,
    State.LOCKED: _Turn.locked,
    State.FENCED: _Turn.fenced,
    State.WAIT_JOBS: _Turn.wait_jobs,
    State.DRAINING: _Turn.draining,
    State.CLAIMS_RELEASED: _Turn.claims_released,
    State.APPLIED: _Turn.applied,
    State.REBOOTING: _Turn.rebooting,
    State.DRIVER_RESTARTED: _Turn.driver_restarted,
    State.VERIFIED: _Turn.verified,
    State.RELEASED: _Turn.released,
    State.DONE: _Turn.done,
    State.SKIPPED: _Turn.done,
    State.BLOCKED: _Turn.retry,
    State.FAILED: _Turn.retry,
}


# --- pieces ----------------------------------------------------------------------------------------------------------


def _freed(plan: Plan, node: NodeView) -> tuple[Marks, Optional[bool]]:
    """The marks of a node without fence, and whether it must be made schedulable: only if it was so before us."""
    marks = node.marks
    ours = marks.owner in names(plan)
    cordoned_by_us = ours and plan.fence == "cordon" and marks.initial_unschedulable is False
    free = replace(
        marks,
        owner="" if ours else marks.owner,
        lock="" if marks.lock in names(plan) else marks.lock,
        initial_unschedulable=None,
    )
    return free, False if cordoned_by_us and node.unschedulable else None


def _fence_is_ours(plan: Plan, node: NodeView) -> bool:
    return node.marks.owner in names(plan)


def _half_done(marks: Marks) -> bool:
    state = marks.before if marks.state in (State.BLOCKED, State.FAILED) else marks.state
    first = _APPLIED if marks.state is State.BLOCKED else _PLACE[State.LOCKED]
    return state is not None and first <= place(state) < _PLACE[State.DONE]


def _stale(node: NodeView) -> tuple[DriverPod, ...]:
    return tuple([pod for pod in node.drivers if not pod.current])


def _called(users: Sequence[User]) -> str:
    first = "%s/%s" % (users[0].namespace, users[0].name)
    return first if len(users) == 1 else "%s and %d more" % (first, len(users) - 1)


def _pods(pods: tuple[DriverPod, ...]) -> str:
    return ", ".join(pod.name for pod in pods)
