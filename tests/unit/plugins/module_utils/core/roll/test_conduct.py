# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the whole roll needs next: barriers, canary, batches, budget, ends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Optional

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.core.errors import RdmaError
from ansible_collections.rdma.k8s.plugins.module_utils.core.roll import conduct, machine, planning
from ansible_collections.rdma.k8s.plugins.module_utils.core.roll.model import (
    DriverPod,
    Marks,
    NodeView,
    Orders,
    Plan,
    Record,
    Thresholds,
    Told,
)
from ansible_collections.rdma.k8s.plugins.module_utils.core.roll.names import ORDER, Phase, State, Strategy

OLD, NEW = "10.224.0.0/12", "10.208.0.0/12"
NAMES = ("a", "b", "c", "d", "e", "f")
PLAN = Plan("range", OLD, NEW, NAMES, canary=("a",), budget=2)
ROLLING = replace(PLAN, strategy=Strategy.ROLLING)
READY = DriverPod("kube-system", "driver", "d1", True, True)
NOW = 1000.0
QUIET, LATER = State.CLAIMS_RELEASED, (State.RELEASED, State.DONE)
PROVEN = "proven"


class Scene:
    """Nodes in given states; ``PROVEN`` is Verified with an accepted proof."""

    def __init__(self, plan: Plan, record: Record, *states: Any, **more: Mapping[str, Any]) -> None:
        self.plan = plan
        self.record = record
        self.nodes: dict[str, NodeView] = {}
        self.told: dict[str, Told] = {}
        for name, state in zip(plan.nodes, states):
            self.put(name, state, **dict(more.get(name, {})))

    def put(self, name: str, state: Any, tried: bool = True, **more: Any) -> None:
        plan = self.plan
        proven = state == PROVEN
        real: Optional[State] = State.VERIFIED if proven else state
        whole: dict[str, Any] = {"ready": True, "drivers": (READY,), **more}
        before = whole.pop("before", None)
        marks = Marks()
        if real is not None:
            marks = Marks(desired=planning.digest(plan), state=real, before=before)
            where = before or real
            if real is State.BLOCKED and machine.place(where) < machine.place(State.APPLIED):
                where = State.PENDING  # its fence was released
            if machine.place(State.FENCED) <= machine.place(where) < machine.place(State.RELEASED):
                marks = replace(marks, owner=planning.digest(plan), initial_unschedulable=False)
            if real is State.DONE:
                marks = replace(marks, applied=planning.digest(plan))
            if real in (State.FAILED, State.BLOCKED):
                marks = replace(marks, error="why")
        new = proven or real in LATER
        whole.setdefault("unschedulable", bool(marks.owner))
        whole.setdefault("value", NEW if new else OLD)
        whole.setdefault("marks", marks)
        self.nodes[name] = NodeView(name, "uid-" + name, "1", **whole)
        self.told[name] = Told(
            state=real, entered=1.0, tried=tried, empty_since=1.0, proven=True if proven else None
        )

    def orders(self) -> Orders:
        return conduct.conduct(self.plan, self.record, self.nodes, self.told, NOW)


def scene(plan: Plan, *states: Any, **more: Any) -> Scene:
    """A roll under way; the value is switched when a node was changed."""
    changed = any(
        state == PROVEN or state in (State.FAILED,) or machine.place(state) >= machine.place(State.APPLIED)
        for state in states
        if state is not None
    )
    record = Record(Phase.ROLLING, switched=changed, kept="kept" if changed else "")
    return Scene(plan, more.pop("record", record), *states, **more)


def limits(orders: Orders) -> dict[str, State]:
    assert not orders.ended, orders.reason
    return dict(orders.may)


def begins(orders: Orders, limit: State = State.VERIFIED) -> set[str]:
    """Nodes that may go as far as ``limit`` at least."""
    return {name for name, may in orders.may.items() if machine.place(may) >= machine.place(limit)}


def phase(orders: Orders) -> Optional[Phase]:
    return orders.record.phase if orders.record else None


# --- sizes


def test_batches_double_up_to_the_budget() -> None:
    assert [conduct.window(8, done) for done in range(9)] == [1, 3, 3, 7, 7, 7, 7, 15, 16]
    assert [conduct.window(1, done) for done in range(3)] == [1, 2, 3]
    assert [conduct.window(3, done) for done in range(6)] == [1, 3, 3, 6, 7, 8]
    assert conduct.window(50, 200) == 250


# --- drain_all: before the first barrier


def test_all_nodes_are_drained_and_none_is_changed() -> None:
    orders = scene(PLAN, None, State.PENDING, State.DRAINING, QUIET, QUIET, QUIET).orders()
    assert limits(orders) == dict.fromkeys(NAMES, QUIET)
    assert (orders.prepare, orders.switch, orders.hold) == (False, False, False)
    assert phase(orders) is Phase.DRAINING


def test_a_good_cluster_begins() -> None:
    assert limits(scene(PLAN, *[State.PENDING] * 6).orders()) == dict.fromkeys(NAMES, QUIET)


def test_nothing_is_drained_while_a_node_is_not_good() -> None:
    orders = scene(PLAN, None, None, State.PENDING, State.PENDING, None, None, c={"ready": False}).orders()
    assert limits(orders) == dict.fromkeys(NAMES, State.PENDING)
    assert orders.reason == "c: the node is not ready"


def test_a_node_that_gets_bad_later_does_not_hold_the_others() -> None:
    orders = scene(PLAN, State.LOCKED, *[State.PENDING] * 5, c={"ready": False}).orders()
    assert limits(orders) == dict.fromkeys(NAMES, QUIET)
    orders = scene(
        PLAN,
        *[State.PENDING] * 6,
        c={"ready": False},
        b={
            "unschedulable": True,
            "marks": Marks(desired=planning.digest(PLAN), state=State.PENDING, owner=planning.digest(PLAN)),
        },
    ).orders()
    assert limits(orders) == dict.fromkeys(NAMES, QUIET)


def test_a_node_that_is_bad_for_too_long_pauses_a_roll_that_has_not_begun() -> None:
    orders = scene(PLAN, State.BLOCKED, *[State.PENDING] * 5, a={"before": State.PENDING}).orders()
    assert orders.ended
    assert orders.reason == "a is blocked (why)"
    assert phase(orders) is Phase.PAUSED


def test_the_value_is_switched_when_all_are_drained() -> None:
    found = scene(PLAN, *[QUIET] * 6)
    orders = found.orders()
    assert (orders.prepare, orders.switch) == (True, False)
    found.record = replace(found.record, kept="kept")
    orders = found.orders()
    assert (orders.prepare, orders.switch, orders.value) == (False, True, NEW)
    assert begins(orders) == set()


@pytest.mark.parametrize("loud", [{"claims": ("default/1",)}, {"unschedulable": False}])
def test_one_node_that_is_not_quiet_keeps_the_barrier_shut(loud: dict[str, Any]) -> None:
    orders = scene(PLAN, *[QUIET] * 6, f=loud).orders()
    assert (orders.prepare, orders.switch, orders.ended) == (False, False, False)
    assert orders.may["f"] is QUIET


def test_a_node_that_was_not_looked_at_keeps_the_barrier_shut() -> None:
    found = scene(PLAN, *[QUIET] * 6)
    del found.told["f"]
    assert not found.orders().prepare
    found.told["f"] = Told(empty_since=NOW - 4)
    assert not found.orders().prepare
    found.told["f"] = Told(empty_since=NOW - 5)
    assert found.orders().prepare


def test_skipped_and_vanished_nodes_hold_nobody() -> None:
    found = scene(PLAN, *[QUIET] * 4, State.SKIPPED)  # f is not there
    orders = found.orders()
    assert orders.prepare
    assert "e" not in orders.may


def test_a_blocked_node_pauses_the_roll_when_the_others_are_drained() -> None:
    blocked = {"before": State.DRAINING}
    orders = scene(PLAN, State.BLOCKED, *[QUIET] * 4, State.DRAINING, a=blocked).orders()
    assert limits(orders) == dict.fromkeys(NAMES[1:], QUIET)
    orders = scene(PLAN, State.BLOCKED, *[QUIET] * 5, a=blocked).orders()
    assert orders.ended
    assert (phase(orders), orders.reason) == (Phase.PAUSED, "a is blocked (why)")
    assert orders.record is not None
    assert orders.record.reason == orders.reason


def test_more_blocked_nodes_than_allowed_stop_the_roll_for_attention() -> None:
    blocked = {name: {"before": State.DRAINING} for name in NAMES}
    states = [State.BLOCKED] * 4 + [State.DRAINING] * 2
    orders = scene(PLAN, *states, **blocked).orders()
    assert orders.ended
    assert orders.reason == "a is blocked (why), and 3 more"
    orders = scene(PLAN, *states[1:], State.DRAINING, **blocked).orders()
    assert not orders.ended


def test_a_node_that_is_blocked_when_others_are_fenced_waits_for_them() -> None:
    orders = scene(PLAN, State.BLOCKED, State.PENDING, State.FENCED, a={"before": State.PENDING}).orders()
    assert limits(orders) == {"b": QUIET, "c": QUIET}


def test_a_blocked_node_of_an_earlier_run_is_tried_again() -> None:
    orders = scene(PLAN, State.BLOCKED, *[QUIET] * 5, a={"before": State.DRAINING, "tried": False}).orders()
    assert orders.may["a"] is QUIET


# --- drain_all: from the first barrier to the second


def switched(*states: Any, **more: Any) -> Scene:
    return scene(PLAN, *states, record=Record(Phase.CANARY, True, "kept"), **more)


def test_the_canary_comes_first_and_alone() -> None:
    orders = switched(*[QUIET] * 6).orders()
    assert begins(orders) == {"a"}
    assert phase(orders) is Phase.CANARY
    assert orders.hold
    assert orders.record is not None
    assert orders.record.batch == 1


def test_nobody_follows_before_the_canary_is_proven() -> None:
    for state in ORDER[ORDER.index(State.APPLIED) : ORDER.index(State.RELEASED)]:
        orders = switched(state, *[QUIET] * 5).orders()
        assert begins(orders) == {"a"}, state
    assert begins(switched(PROVEN, *[QUIET] * 5).orders()) == {"a", "b"}


def test_canaries_come_one_by_one() -> None:
    plan = replace(PLAN, canary=("a", "c"))
    record = Record(Phase.CANARY, True, "kept")
    assert begins(Scene(plan, record, *[QUIET] * 6).orders()) == {"a"}
    assert begins(Scene(plan, record, PROVEN, *[QUIET] * 5).orders()) == {"a", "c"}
    assert begins(Scene(plan, record, PROVEN, QUIET, State.APPLIED, *[QUIET] * 3).orders()) == {"a", "c"}
    assert begins(Scene(plan, record, PROVEN, QUIET, PROVEN, *[QUIET] * 3).orders()) == {"a", "c", "b"}


def test_another_node_is_the_canary_when_all_of_them_vanished() -> None:
    found = switched(*[QUIET] * 6)
    del found.nodes["a"]
    assert begins(found.orders()) == {"b"}
    orders = Scene(replace(PLAN, canary=()), Record(Phase.ROLLING, True, "kept"), *[QUIET] * 6).orders()
    assert begins(orders) == {"a"}
    assert phase(orders) is Phase.ROLLING


def test_a_canary_that_is_skipped_is_none() -> None:
    assert begins(switched(State.SKIPPED, *[QUIET] * 5).orders()) == {"b"}


def test_batches_grow_as_nodes_are_proven() -> None:
    assert begins(switched(PROVEN, State.APPLIED, *[QUIET] * 4).orders()) == {"a", "b"}
    orders = switched(PROVEN, PROVEN, *[QUIET] * 4).orders()
    assert begins(orders) == {"a", "b", "c", "d"}
    assert orders.record is not None
    assert (orders.record.batch, phase(orders)) == (2, Phase.ROLLING)
    assert begins(switched(PROVEN, PROVEN, State.VERIFIED, *[QUIET] * 3).orders()) == {"a", "b", "c", "d"}
    assert begins(switched(PROVEN, PROVEN, State.VERIFIED, State.APPLIED, QUIET, QUIET).orders()) == set(
        "abcd"
    )
    assert begins(switched(PROVEN, PROVEN, PROVEN, State.APPLIED, QUIET, QUIET).orders()) == set("abcde")


def test_the_record_tells_the_size_of_the_batch() -> None:
    wide = replace(PLAN, budget=8)
    sizes = []
    for proven in range(4):
        states = [PROVEN] * (1 + proven) + [QUIET] * (5 - proven)
        orders = Scene(wide, Record(Phase.ROLLING, True, "kept"), *states).orders()
        assert orders.record is not None
        sizes.append(orders.record.batch)
    assert sizes == [1, 2, 1, 4]  # of the second batch one node is left when one is done


def test_only_quiet_nodes_are_begun() -> None:
    orders = switched(
        PROVEN, PROVEN, State.DRAINING, QUIET, QUIET, QUIET, d={"claims": ("default/1",)}
    ).orders()
    assert begins(orders) == {"a", "b", "e", "f"}
    assert orders.may["c"] is QUIET


@pytest.mark.parametrize(
    ("out", "why"),
    [
        ({"ready": False}, "is not ready"),
        (
            {"unschedulable": True, "marks": Marks(desired=planning.digest(PLAN), state=State.DONE)},
            "is cordoned by somebody",
        ),
        (
            {
                "marks": Marks(
                    desired=planning.digest(PLAN),
                    state=QUIET,
                    owner=planning.digest(PLAN),
                    initial_unschedulable=True,
                ),
                "unschedulable": True,
                "claims": ("default/1",),
            },
            "is cordoned by somebody",
        ),
    ],
)
def test_outages_of_others_use_up_the_budget(out: dict[str, Any], why: str) -> None:
    orders = switched(PROVEN, PROVEN, PROVEN, QUIET, QUIET, QUIET, f=out).orders()
    assert begins(orders) == {"a", "b", "c", "d"}
    both = switched(PROVEN, PROVEN, PROVEN, QUIET, QUIET, QUIET, f=out, e=out)
    orders = both.orders()
    assert begins(orders) == {"a", "b", "c"}
    assert orders.reason == "the budget of %d is used up: e %s, f %s" % (PLAN.budget, why, why)
    assert orders.record is not None
    assert orders.record.reason == orders.reason, "whoever asks for the status is told"
    both.record = orders.record
    assert both.orders().record is None, "it is written once"
    both.put("f", QUIET)
    orders = both.orders()
    assert orders.reason == ""
    assert orders.record is not None
    assert orders.record.reason == ""


def test_who_uses_up_the_budget_is_named_shortly() -> None:
    """The first three; also those that the roll left fenced itself."""
    out = {name: {"ready": False} for name in "cdef"}
    orders = rolling(State.DONE, *[State.PENDING] * 5, **out).orders()
    named = "c is not ready, d is not ready, e is not ready, and 1 more"
    assert orders.reason == "the budget of 2 is used up: " + named
    del out["f"]
    orders = rolling(State.DONE, *[State.PENDING] * 5, **out).orders()
    assert orders.reason == "the budget of 2 is used up: c is not ready, d is not ready, e is not ready"


def test_a_roll_that_waits_for_its_canary_says_so() -> None:
    """Nothing is out; the canary is not good enough to begin with, and nobody goes before it."""
    orders = rolling(*[State.PENDING] * 6, a={"critical": ("NODE-001",)}).orders()
    assert begins(orders) == set()
    assert orders.reason == "waits for the canary a"


def test_a_node_that_is_out_already_makes_nothing_worse() -> None:
    marks = Marks(
        desired=planning.digest(PLAN), state=QUIET, owner=planning.digest(PLAN), initial_unschedulable=True
    )
    out = {"marks": marks, "unschedulable": True}
    orders = switched(PROVEN, PROVEN, PROVEN, QUIET, QUIET, QUIET, d=out, e=out).orders()
    assert begins(orders) == {"a", "b", "c", "d", "e"}


def test_a_cordon_beside_our_taint_is_of_others() -> None:
    plan = replace(PLAN, fence="taint")
    out = {"unschedulable": True, "fenced_by_rule": True, "claims": ("default/1",)}
    fenced = {name: {"fenced_by_rule": True, "unschedulable": False} for name in "abcd"}
    record = Record(Phase.ROLLING, True, "kept")
    orders = Scene(plan, record, PROVEN, PROVEN, PROVEN, QUIET, QUIET, QUIET, e=out, f=out, **fenced).orders()
    assert begins(orders) == {"a", "b", "c"}


def test_a_failed_node_uses_up_the_budget() -> None:
    lenient = replace(PLAN, thresholds=Thresholds(consecutive=9, percent=100))
    record = Record(Phase.ROLLING, True, "kept")
    failed = {"before": State.VERIFIED}
    orders = Scene(lenient, record, PROVEN, PROVEN, State.FAILED, QUIET, QUIET, QUIET, c=failed).orders()
    assert begins(orders) == {"a", "b", "d"}
    found = Scene(
        lenient, record, PROVEN, PROVEN, State.FAILED, State.FAILED, QUIET, QUIET, c=failed, d=failed
    )
    orders = found.orders()
    assert orders.ended
    assert orders.reason == "c is failed (why), and 1 more"


def test_only_nodes_that_were_blocked_in_this_run_call_for_attention() -> None:
    """Not those that failed, which have thresholds of their own, nor those that an earlier run left blocked."""
    strict = replace(PLAN, thresholds=Thresholds(consecutive=9, percent=100, blocked=0))
    record = Record(Phase.ROLLING, True, "kept")
    failed = {"before": State.VERIFIED}
    orders = Scene(strict, record, PROVEN, State.FAILED, *[QUIET] * 4, b=failed).orders()
    assert not orders.ended
    former = {"before": State.DRAINING, "tried": False}
    orders = Scene(strict, record, PROVEN, State.BLOCKED, *[QUIET] * 4, b=former).orders()
    assert not orders.ended
    orders = Scene(strict, record, PROVEN, State.BLOCKED, *[QUIET] * 4, b={"before": State.DRAINING}).orders()
    assert orders.ended
    assert orders.reason == "b is blocked (why)"


def test_a_node_that_failed_in_an_earlier_run_is_tried_again() -> None:
    again = {"before": State.VERIFIED, "tried": False}
    orders = switched(PROVEN, State.FAILED, *[QUIET] * 4, b=again).orders()
    assert begins(orders) == {"a", "b"}


def test_peers_are_proven_nodes_by_turns() -> None:
    assert switched(*[QUIET] * 6).orders().peers == {}
    orders = switched(PROVEN, PROVEN, QUIET, QUIET, QUIET, QUIET).orders()
    assert begins(orders) == {"a", "b", "c", "d"}
    peers = orders.peers
    assert set(peers) == {"a", "b", "c", "d"}
    assert {peers["a"], peers["b"]} == {"a", "b"}
    assert peers["a"] != "a"
    assert peers["c"] != peers["d"]
    assert "a" not in switched(PROVEN, *[QUIET] * 5).orders().peers


def test_a_node_that_does_not_answer_is_nobodys_peer() -> None:
    """It could serve no claim, which says nothing about the node that is to be proven."""
    found = switched(PROVEN, PROVEN, QUIET, QUIET, QUIET, QUIET, a={"ready": False})
    assert set(found.orders().peers.values()) == {"b"}
    assert switched(PROVEN, QUIET, *[QUIET] * 4, a={"ready": False}).orders().peers == {}


# --- drain_all: the second barrier


def test_nobody_is_released_before_all_are_proven() -> None:
    orders = switched(*[PROVEN] * 5, State.VERIFIED).orders()
    assert limits(orders) == dict.fromkeys(NAMES, State.VERIFIED)
    orders = switched(*[PROVEN] * 5, QUIET).orders()
    assert begins(orders, State.RELEASED) == set()
    orders = switched(*[PROVEN] * 6).orders()
    assert limits(orders) == dict.fromkeys(NAMES, State.DONE)
    assert phase(orders) is Phase.RELEASING


def test_a_release_that_was_begun_is_ended() -> None:
    orders = switched(
        State.RELEASED,
        State.DONE,
        State.BLOCKED,
        *[State.VERIFIED] * 3,
        c={"before": State.RELEASED, "tried": False},
    ).orders()
    assert limits(orders) == {"a": State.DONE, "c": State.DONE, **dict.fromkeys("def", State.VERIFIED)}


def test_a_node_that_is_blocked_in_its_release_holds_nobody() -> None:
    orders = switched(State.DONE, State.BLOCKED, *[PROVEN] * 4, b={"before": State.RELEASED}).orders()
    assert begins(orders, State.DONE) == set("cdef")


@pytest.mark.parametrize(("fenced", "released"), [(True, True), (False, False)])
def test_a_failed_node_holds_the_others_only_if_workloads_could_land_there(
    fenced: bool, released: bool
) -> None:
    lenient = replace(PLAN, thresholds=Thresholds(consecutive=9, percent=100))
    failed = {"before": State.VERIFIED, "unschedulable": fenced}
    orders = Scene(
        lenient, Record(Phase.ROLLING, True, "kept"), *[PROVEN] * 5, State.FAILED, f=failed
    ).orders()
    if released:
        assert begins(orders, State.DONE) == set("abcde")
    else:
        assert orders.ended
        assert orders.reason == "f is failed (why)"


# --- rolling


def test_a_few_nodes_go_all_the_way_and_the_others_wait() -> None:
    orders = scene(ROLLING, *[None] * 6).orders()
    assert limits(orders) == dict.fromkeys(NAMES, State.PENDING)
    orders = scene(ROLLING, *[State.PENDING] * 6).orders()
    assert limits(orders) == {**dict.fromkeys(NAMES, State.PENDING), "a": QUIET}
    assert phase(orders) is Phase.CANARY
    assert not orders.hold


def test_the_value_is_switched_when_the_first_node_is_drained() -> None:
    found = scene(ROLLING, State.DRAINING, *[State.PENDING] * 5)
    assert (found.orders().prepare, found.orders().switch) == (False, False)
    found = scene(ROLLING, QUIET, *[State.PENDING] * 5)
    assert found.orders().prepare
    found.record = replace(found.record, kept="kept")
    orders = found.orders()
    assert (orders.switch, orders.value) == (True, NEW)
    found.record = replace(found.record, switched=True)
    assert limits(found.orders())["a"] is State.DONE


def test_a_record_that_was_lost_is_made_up_for() -> None:
    found = scene(ROLLING, State.DRIVER_RESTARTED, *[State.PENDING] * 5, record=Record(kept="kept"))
    assert found.orders().switch


def rolling(*states: Any, **more: Any) -> Scene:
    return Scene(ROLLING, Record(Phase.ROLLING, True, "kept"), *states, **more)


def test_rolling_grows_within_the_budget() -> None:
    pending = State.PENDING
    assert begins(rolling(State.VERIFIED, *[pending] * 5).orders()) == {"a"}
    assert begins(rolling(State.DONE, *[pending] * 5).orders()) == {"b"}
    assert begins(rolling(State.DONE, State.DRAINING, *[pending] * 4).orders()) == {"b"}
    assert begins(rolling(State.DONE, State.DONE, *[pending] * 4).orders()) == {"c", "d"}
    orders = rolling(State.DONE, State.DONE, State.DONE, State.FENCED, *[pending] * 2).orders()
    assert begins(orders) == {"d", "e"}


def test_a_locked_node_waits_again_when_the_budget_is_gone() -> None:
    out = {"ready": False}
    orders = rolling(
        State.DONE, State.DONE, State.LOCKED, State.PENDING, State.PENDING, State.PENDING, e=out, f=out
    ).orders()
    assert orders.may["c"] is State.LOCKED
    assert orders.reason == "the budget of 2 is used up: e is not ready, f is not ready"
    orders = rolling(
        State.DONE, State.DONE, State.LOCKED, State.PENDING, State.PENDING, State.PENDING, f=out
    ).orders()
    assert begins(orders) == {"c"}


@pytest.mark.parametrize("before", [State.PENDING, State.LOCKED, State.DRAINING])
def test_a_node_that_was_blocked_and_let_go_is_not_begun_again_in_this_run(before: State) -> None:
    """The others go on; when it is the only one left, the roll pauses."""
    blocked = {"before": before}
    orders = rolling(State.DONE, State.BLOCKED, *[State.PENDING] * 4, b=blocked).orders()
    assert "b" not in orders.may
    assert set(orders.may) == {"c", "d", "e", "f"}
    orders = rolling(*[State.DONE] * 5, State.BLOCKED, f=blocked).orders()
    assert orders.ended
    assert orders.reason == "f is blocked (why)"


def test_nodes_that_are_not_good_are_passed_over() -> None:
    orders = rolling(State.DONE, State.PENDING, *[State.PENDING] * 4, b={"critical": ("NODE-001",)}).orders()
    assert begins(orders) == {"c"}
    assert orders.may["b"] is State.PENDING


def test_a_blocked_node_is_left_aside_and_told_at_the_end() -> None:
    blocked = {"before": State.DRAINING}
    orders = rolling(State.DONE, State.BLOCKED, *[State.PENDING] * 4, b=blocked).orders()
    assert begins(orders) == {"c", "d"}
    assert "b" not in orders.may
    orders = rolling(State.DONE, State.BLOCKED, *[State.DONE] * 4, b=blocked).orders()
    assert orders.ended
    assert (phase(orders), orders.reason) == (Phase.PAUSED, "b is blocked (why)")


def test_a_blocked_node_does_not_end_a_roll_whose_other_nodes_may_become_good() -> None:
    blocked = {"before": State.DRAINING}
    orders = rolling(
        State.DONE, State.BLOCKED, State.PENDING, *[State.DONE] * 3, b=blocked, c={"ready": False}
    ).orders()
    assert limits(orders) == {"c": State.PENDING}


def test_a_blocked_canary_pauses_a_rolling_change() -> None:
    orders = rolling(State.BLOCKED, *[State.PENDING] * 5, a={"before": State.DRAINING}).orders()
    assert orders.ended
    assert orders.reason == "a is blocked (why)"


def test_nodes_under_way_end_well_before_a_rolling_change_stops_for_attention() -> None:
    blocked = {name: {"before": State.DRAINING} for name in "bcd"}
    plan = replace(ROLLING, thresholds=Thresholds(blocked=2))
    states = [State.DONE, State.BLOCKED, State.BLOCKED, State.BLOCKED]
    record = Record(Phase.ROLLING, True, "kept")
    orders = Scene(plan, record, *states, State.DRAINING, State.PENDING, **blocked).orders()
    assert begins(orders) == {"e"}
    orders = Scene(plan, record, *states, State.DONE, State.PENDING, **blocked).orders()
    assert orders.ended
    assert orders.reason == "b is blocked (why), and 2 more"
    orders = Scene(
        replace(plan, thresholds=Thresholds(blocked=3)), record, *states, State.DONE, State.PENDING, **blocked
    ).orders()
    assert begins(orders) == {"f"}


def test_failed_nodes_that_use_up_the_budget_pause_a_rolling_change() -> None:
    plan = replace(ROLLING, budget=1, thresholds=Thresholds(consecutive=9, percent=50))
    failed = {"before": State.VERIFIED}
    record = Record(Phase.ROLLING, True, "kept")
    orders = Scene(plan, record, State.DONE, State.FAILED, *[State.PENDING] * 4, b=failed).orders()
    assert orders.ended
    assert orders.reason == "b is failed (why)"


def test_a_failed_node_leaves_time_to_nodes_that_are_not_good_yet() -> None:
    plan = replace(ROLLING, thresholds=Thresholds(consecutive=9, percent=50))
    record = Record(Phase.ROLLING, True, "kept")
    states = [State.DONE, State.FAILED, *[State.DONE] * 3, State.PENDING]
    more = {"b": {"before": State.VERIFIED}, "f": {"ready": False}}
    orders = Scene(plan, record, *states, **more).orders()
    assert limits(orders) == {"f": State.PENDING}


def test_a_failed_node_of_an_earlier_run_goes_on() -> None:
    again = {"before": State.VERIFIED, "tried": False}
    orders = rolling(State.DONE, State.FAILED, *[State.PENDING] * 4, b=again).orders()
    assert orders.may["b"] is State.DONE


# --- when it stops


FAILED = {"before": State.DRIVER_RESTARTED}


def test_a_failed_canary_aborts_at_once_and_can_be_taken_back() -> None:
    """DEV-25: nothing else is touched."""
    orders = switched(State.FAILED, *[QUIET] * 5, a=FAILED).orders()
    assert (phase(orders), orders.take_back, orders.ended) == (Phase.ABORTED, True, False)
    assert orders.may == {}
    assert orders.reason == "canary a failed (why)"


def test_a_failed_canary_of_a_larger_roll_is_not_taken_back_by_itself() -> None:
    orders = switched(State.FAILED, State.APPLIED, *[QUIET] * 4, a=FAILED).orders()
    assert (phase(orders), orders.take_back) == (Phase.ABORTED, False)
    assert switched(State.FAILED, State.SKIPPED, *[QUIET] * 4, a=FAILED).orders().take_back


def test_failures_in_a_row_abort() -> None:
    plan = replace(PLAN, thresholds=Thresholds(consecutive=2, percent=100))
    record = Record(Phase.ROLLING, True, "kept")
    found = Scene(plan, record, PROVEN, PROVEN, State.FAILED, QUIET, QUIET, QUIET, c=FAILED, d=FAILED)
    orders = found.orders()
    assert orders.record is not None
    assert (orders.record.failed, orders.record.consecutive, orders.record.succeeded) == (1, 1, 2)
    found.record = orders.record
    assert found.orders().record is None
    found.put("d", State.FAILED, before=State.VERIFIED)
    orders = found.orders()
    assert phase(orders) is Phase.ABORTED
    assert orders.reason == "2 nodes in a row failed, the last: d failed (why)"
    assert not orders.take_back


def test_a_success_between_two_failures_ends_the_row() -> None:
    plan = replace(PLAN, budget=5, thresholds=Thresholds(consecutive=2, percent=100))
    record = Record(Phase.ROLLING, True, "kept", consecutive=1, failed=1, succeeded=2)
    found = Scene(plan, record, PROVEN, PROVEN, State.FAILED, PROVEN, State.FAILED, QUIET, c=FAILED, e=FAILED)
    orders = found.orders()
    assert orders.record is not None
    assert (orders.record.failed, orders.record.consecutive, orders.record.succeeded) == (2, 1, 3)
    assert not orders.ended


def test_a_failed_node_that_is_tried_again_is_no_failure() -> None:
    record = Record(Phase.ROLLING, True, "kept", consecutive=1, failed=1, succeeded=2)
    found = Scene(PLAN, record, PROVEN, PROVEN, State.VERIFIED, QUIET, QUIET, QUIET)
    orders = found.orders()
    assert orders.record is not None
    assert (orders.record.failed, orders.record.consecutive) == (0, 0)


@pytest.mark.parametrize(("percent", "aborts"), [(16, True), (17, False)])
def test_more_failures_than_a_share_of_all_abort(percent: int, aborts: bool) -> None:
    plan = replace(PLAN, thresholds=Thresholds(consecutive=9, percent=percent))
    found = Scene(
        plan, Record(Phase.ROLLING, True, "kept"), PROVEN, PROVEN, State.FAILED, QUIET, QUIET, QUIET, c=FAILED
    )
    orders = found.orders()
    assert (phase(orders) is Phase.ABORTED) is aborts
    if aborts:
        assert orders.reason == "1 of 6 nodes failed, more than 16 %, the last: c failed (why)"


def test_blocked_nodes_do_not_count_as_failed() -> None:
    orders = switched(PROVEN, State.BLOCKED, *[QUIET] * 4, b={"before": State.DRAINING}).orders()
    assert not orders.ended
    assert orders.record is not None
    assert orders.record.failed == 0


# --- the end


@pytest.mark.parametrize("plan", [PLAN, ROLLING])
def test_at_the_end_the_strategy_is_restored_and_then_it_is_complete(plan: Plan) -> None:
    found = Scene(plan, Record(Phase.RELEASING, True, "kept"), *[State.DONE] * 5, State.SKIPPED)
    orders = found.orders()
    assert (orders.restore, orders.ended) == (True, False)
    found.record = replace(found.record, kept="")
    orders = found.orders()
    assert (phase(orders), orders.ended) == (Phase.COMPLETE, True)
    found.record = orders.record or found.record
    assert found.orders() == Orders(ended=True)


@pytest.mark.parametrize("plan", [PLAN, ROLLING])
def test_with_a_node_beside_nothing_is_restored(plan: Plan) -> None:
    plan = replace(plan, thresholds=Thresholds(consecutive=9, percent=100))
    record = Record(Phase.ROLLING, True, "kept")
    orders = Scene(plan, record, *[State.DONE] * 5, State.FAILED, f=FAILED).orders()
    assert (phase(orders), orders.ended, orders.restore) == (Phase.PAUSED, True, False)


def test_a_roll_without_any_node_left_is_complete() -> None:
    orders = Scene(PLAN, Record(Phase.DRAINING)).orders()
    assert (phase(orders), orders.ended) == (Phase.COMPLETE, True)


def test_taking_back_has_its_own_phases() -> None:
    plan = replace(PLAN, parent="0123")
    orders = Scene(plan, Record(), *[QUIET] * 6).orders()
    assert phase(orders) is Phase.ROLLING_BACK
    orders = Scene(plan, Record(Phase.ROLLING_BACK, True), *[State.DONE] * 6).orders()
    assert (phase(orders), orders.ended) == (Phase.ROLLED_BACK, True)


# --- other rolls, and nodes that come


def test_a_node_of_another_roll_pauses_before_anything_is_done() -> None:
    other = Marks(desired="other", state=State.DRAINING, owner="other")
    orders = scene(PLAN, *[None] * 6, c={"marks": other}).orders()
    assert orders.ended
    assert orders.may == {}
    assert "c was left half-done by the roll other" in orders.reason
    assert phase(orders) is Phase.PAUSED


def test_nodes_that_join_come_last_and_are_remembered() -> None:
    found = scene(PLAN, *[QUIET] * 6)
    found.put("new", None)
    found.put("also", None)
    orders = found.orders()
    assert orders.record is not None
    assert orders.record.joined == ("also", "new")
    assert list(orders.may)[-2:] == ["also", "new"]
    assert not orders.prepare
    assert conduct.joined(PLAN, Record(joined=("x",)), ["b", "a", "y", "x", "w"]) == ("x", "w", "y")


MADE = "2026-03-01T10:00:01Z"


@pytest.mark.parametrize(
    ("made", "born", "wanted"),
    [
        (MADE, ["2026-03-01T10:00:02Z"], True),
        (MADE, [MADE], True),  # stamps have whole seconds, and whatever was there before is in the plan
        (MADE, ["2026-03-01T10:00:00Z"], False),
        (MADE, ["2026-03-01T10:00:02Z", "2026-03-01T09:00:00Z"], False),
        (MADE, ["2026-03-01T10:00:02Z", ""], False),
        ("", ["2026-03-01T10:00:02Z"], False),
    ],
)
def test_only_nodes_that_came_later_are_taken_up(made: str, born: list[str], wanted: bool) -> None:
    """Decision 30."""
    assert conduct.takes_up(made, born) is wanted


# --- abort


def aborted(plan: Plan, *states: Any, record: Optional[Record] = None, **more: Any) -> Scene:
    return Scene(plan, record or Record(Phase.ABORTED, reason="enough"), *states, **more)


def test_an_abort_before_any_change_lets_every_node_go() -> None:
    states = (QUIET, State.DRAINING, State.PENDING, State.BLOCKED, None, State.SKIPPED)
    orders = aborted(PLAN, *states, d={"before": State.DRAINING}).orders()
    assert orders.release == ("a", "b", "c", "d")
    assert (dict(orders.may), orders.ended) == ({}, False)
    assert aborted(PLAN, *[None] * 6).orders() == Orders(ended=True, reason="enough")


@pytest.mark.parametrize("was", [True, False])
@pytest.mark.parametrize("plan", [PLAN, ROLLING])
def test_an_abort_before_any_change_switches_back_first(plan: Plan, was: bool) -> None:
    """Whether it was switched cannot be told for certain when the controller died in between."""
    orders = aborted(plan, *[QUIET] * 6, record=Record(Phase.ABORTED, was, "kept")).orders()
    assert (orders.switch, orders.value, orders.restore) == (True, OLD, True)
    assert orders.release == ()


def test_an_abort_after_the_change_releases_only_what_is_proven() -> None:
    record = Record(Phase.ABORTED, True, "kept", reason="enough")
    states = (State.DONE, PROVEN, State.RELEASED, State.APPLIED, QUIET, State.FAILED)
    orders = aborted(PLAN, *states, record=record, f=FAILED).orders()
    assert dict(orders.may) == {"b": State.DONE, "c": State.DONE}
    assert orders.release == ()
    assert (orders.switch, orders.restore, orders.hold) == (False, False, True)
    assert orders.peers["b"] in {"a", "c"}
    orders = aborted(PLAN, State.DONE, State.FAILED, *[QUIET] * 4, record=record, b=FAILED).orders()
    assert orders.ended
    assert orders.reason == "enough"


def test_an_abort_after_the_change_lets_nodes_go_that_it_does_not_fence() -> None:
    record = Record(Phase.ABORTED, True, "kept")
    orders = aborted(PLAN, State.APPLIED, State.PENDING, State.LOCKED, *[QUIET] * 3, record=record).orders()
    assert orders.release == ("b", "c")


def test_an_abort_of_a_rolling_change_lets_go_what_was_not_changed() -> None:
    record = Record(Phase.ABORTED, True, "kept")
    orders = aborted(
        ROLLING, State.DONE, State.APPLIED, QUIET, State.PENDING, State.VERIFIED, None, record=record
    ).orders()
    assert orders.release == ("c", "d")
    assert dict(orders.may) == {"e": State.DONE}


def test_an_abort_fences_on_where_two_values_would_be_offered() -> None:
    """A roll that takes another one back found nodes with both."""
    orders = aborted(PLAN, *[QUIET] * 5, State.PENDING, a={"value": "10.0.0.0/8"}).orders()
    assert orders.release == ("f",)
    orders = aborted(PLAN, *[QUIET] * 6, **{name: {"value": NEW} for name in NAMES}).orders()
    assert orders.ended
    orders = aborted(ROLLING, *[QUIET] * 6, a={"value": NEW}).orders()
    assert orders.release == NAMES


def test_an_aborted_canary_can_be_taken_back_by_itself() -> None:
    record = Record(Phase.ABORTED, True, "kept", reason="enough")
    orders = aborted(PLAN, State.FAILED, *[QUIET] * 5, record=record, a={**FAILED, "tried": False}).orders()
    assert (orders.ended, orders.take_back) == (True, True)


# --- by hand


def test_a_roll_is_paused_resumed_and_aborted_by_hand() -> None:
    record = Record(Phase.ROLLING, True, "kept", consecutive=1, failed=1)
    stopped = conduct.paused(PLAN, record, "time is up")
    assert (stopped.phase, stopped.reason, stopped.switched) == (Phase.PAUSED, "time is up", True)
    assert conduct.paused(PLAN, Record(Phase.ABORTED), "x") == Record(Phase.ABORTED)
    gone_on = conduct.resumed(PLAN, stopped)
    assert gone_on == Record(Phase.PLANNED, True, "kept")
    over = conduct.abort(PLAN, record, "enough")
    assert (over.phase, over.reason, over.kept) == (Phase.ABORTED, "enough", "kept")


@pytest.mark.parametrize("end", [Phase.COMPLETE, Phase.ROLLED_BACK])
def test_a_roll_that_is_over_stays_so(end: Phase) -> None:
    record = Record(end)
    for call in (
        lambda: conduct.paused(PLAN, record, "x"),
        lambda: conduct.resumed(PLAN, record),
        lambda: conduct.abort(PLAN, record, "x"),
    ):
        with pytest.raises(RdmaError) as caught:
            call()
        assert caught.value.code == "roll_ended"
        assert end.value in str(caught.value)
