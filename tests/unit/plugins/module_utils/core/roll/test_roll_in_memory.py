# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rolls in memory: whatever dies, fails or is meddled with, they end well, and what must never happen does not.

The world (``support/roll_sim.py``) raises when a pod is evicted twice, a cordon of somebody else is removed, a node is
changed or its driver replaced while it is in use, more nodes than the budget are made unusable, or, in ``drain_all``,
two values are offered to workloads at the same time.
"""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any, Optional

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.core.errors import RdmaError
from ansible_collections.rdma.k8s.plugins.module_utils.core.roll import conduct, marks, planning
from ansible_collections.rdma.k8s.plugins.module_utils.core.roll.model import (
    Evict,
    Marks,
    NodePatch,
    Plan,
    Prove,
    Record,
    RestartDriver,
    Thresholds,
    Told,
)
from ansible_collections.rdma.k8s.plugins.module_utils.core.roll.names import ORDER, Phase, State, Strategy
from ansible_collections.rdma.k8s.tests.support import roll_sim
from ansible_collections.rdma.k8s.tests.support.roll_sim import NEW, OLD, BrokenError, Faults, Killed, World

STRATEGIES = list(Strategy)
CHANGES: list[dict[str, Any]] = [{}, {"node_change": True, "reboot": True}]
LENIENT = Thresholds(consecutive=99, percent=100, blocked=99)


def world(
    seed: int = 1, nodes: int = 3, work: int = 2, faults: Optional[Faults] = None, **options: Any
) -> tuple[World, Plan]:
    made = World(["n%d" % turn for turn in range(nodes)], seed=seed, work=work, faults=faults)
    return made, roll_sim.plan_for(made, **options)


def ends_well(made: World, plan: Plan, **options: Any) -> int:
    """The roll goes through; how many controllers died on the way."""
    phase, deaths = roll_sim.run(made, plan, **options)
    assert phase is Phase.COMPLETE, made.record.reason
    roll_sim.complete(made, plan)
    return deaths


class Once:
    """Kill the controller once, before or after the first time that it does something."""

    def __init__(self, what: str, when: str) -> None:
        self.point = (what, when)
        self.done = False

    def __call__(self, what: str, when: str) -> None:
        if not self.done and (what, when) == self.point:
            self.done = True
            raise Killed("%s %s" % (when, what))


class Often:
    """Kill the controller now and then."""

    def __init__(self, seed: int, rate: float) -> None:
        self.random = random.Random(seed)
        self.rate = rate

    def __call__(self, what: str, when: str) -> None:
        if self.random.random() < self.rate:
            raise Killed("%s %s" % (when, what))


# --- nothing goes wrong


@pytest.mark.parametrize("change", CHANGES, ids=["range", "reboot"])
@pytest.mark.parametrize("fence", ["cordon", "taint"])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_roll_goes_through(strategy: Strategy, fence: str, change: dict[str, Any]) -> None:
    made, plan = world(nodes=7, strategy=strategy, fence=fence, budget=3, **change)
    ends_well(made, plan)
    assert made.calls <= 40 * 7
    assert all(number == 1 for number in made.evicted.values())
    assert set(made.uncordons) == set(made.nodes)
    assert all(number == 1 for number in made.uncordons.values())
    assert all(node.reboots == bool(change) for node in made.nodes.values())


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_roll_that_is_done_has_nothing_to_do(strategy: Strategy) -> None:
    made, plan = world(strategy=strategy)
    ends_well(made, plan)
    calls = made.calls
    made.record = replace(made.record, phase=Phase.PLANNED)
    ends_well(made, plan)
    assert made.calls - calls == 1  # the record


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_nodes_that_others_cordoned_stay_cordoned(strategy: Strategy) -> None:
    made, plan = world(nodes=4, strategy=strategy, budget=3)
    for name in ("n0", "n2"):
        made.nodes[name].cordoned = made.nodes[name].cordoned_by_others = True
    ends_well(made, plan)
    assert {name for name, node in made.nodes.items() if node.cordoned} == {"n0", "n2"}


# --- controllers die

ENTRIES = ["enter " + state.value for state in ORDER]
"""12 entry actions, each with a point before and one after it."""
OTHERS = ["record", "prepare", "switch", "restore", "evict", "restart", "prove", "change", "reboot", "fence"]


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("what", [*ENTRIES, *OTHERS])
def test_a_controller_can_die_at_every_point(what: str, when: str, strategy: Strategy) -> None:
    for seed in range(3 if what in ENTRIES else 1):
        fence = "taint" if what == "fence" or seed == 2 else "cordon"
        made, plan = world(seed, nodes=2, strategy=strategy, fence=fence, node_change=True, reboot=True)
        made.kill = Once(what, when)
        assert ends_well(made, plan) == 1
        assert all(number == 1 for number in made.evicted.values())
        assert all(number == 1 for number in made.uncordons.values())
        assert all(node.reboots == 1 for node in made.nodes.values())


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("seed", range(12))
def test_controllers_die_all_the_time_and_calls_fail(seed: int, strategy: Strategy) -> None:
    faults = Faults(patch=0.2, effect=0.2, proof=0.2, stale=0.2)
    made, plan = world(
        seed, nodes=4, faults=faults, strategy=strategy, budget=2, thresholds=LENIENT, **CHANGES[seed % 2]
    )
    made.kill = Often(seed, 0.03)
    assert ends_well(made, plan, lives=1000) > 0


# --- people meddle


@pytest.mark.parametrize("fence", ["cordon", "taint"])
@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("seed", range(8))
def test_people_meddle(seed: int, strategy: Strategy, fence: str) -> None:
    """They uncordon, cordon and stop nodes, and bring new ones, while calls fail and controllers die."""
    faults = Faults(patch=0.1, effect=0.1, proof=0.1, people=0.2)
    options: dict[str, Any] = {
        "fence": fence,
        "budget": 1 + seed % 3,
        "thresholds": LENIENT,
        **CHANGES[seed % 2],
    }
    made, plan = world(seed, nodes=1 + seed % 5, faults=faults, strategy=strategy, **options)
    made.kill = Often(seed, 0.01)
    for turn in range(20):
        phase, _deaths = roll_sim.run(made, plan, lives=1000)
        if phase is Phase.COMPLETE:
            break
        assert phase is Phase.PAUSED
        assert made.record.reason
        if turn == 10:
            made.faults = Faults()
        made.record = conduct.resumed(plan, made.record)
    roll_sim.complete(made, plan)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("state", ORDER[ORDER.index(State.FENCED) : ORDER.index(State.RELEASED)])
def test_a_node_that_is_uncordoned_in_the_middle_is_fenced_and_drained_again(
    state: State, strategy: Strategy
) -> None:
    """Just after it entered a state, somebody uncordons a node, and a pod lands there."""
    made, plan = world(nodes=3, work=0, strategy=strategy, node_change=True, reboot=True)
    strays: list[str] = []

    def meddle(what: str, when: str) -> None:
        if strays or (what, when) != ("enter " + state.value, "after"):
            return
        for node in made.nodes.values():
            if marks.read(node.annotations).state is state:
                strays.append(node.name)
                node.cordoned, node.uncordoned = False, True
                node.version += 1
                made.start("stray", node.name)
                return

    made.kill = meddle
    ends_well(made, plan)
    assert len(strays) == 1
    assert made.uncordons[strays[0]] == 1


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("seed", range(6))
def test_a_node_vanishes_and_comes_back_as_another(seed: int, strategy: Strategy) -> None:
    made, plan = world(seed, nodes=4, strategy=strategy, budget=2)
    moment = 1000 + 40 * seed
    roll_sim.run(made, plan, until=lambda: made.now >= moment)
    lost = sorted(made.nodes)[seed % 4]
    del made.nodes[lost]
    made.pods = {uid: pod for uid, pod in made.pods.items() if pod.node != lost}
    if seed % 2:
        roll_sim.run(made, plan, until=lambda: made.now >= moment + 30)
        made.add(lost)
        made.record = conduct.resumed(plan, made.record) if made.record.phase is Phase.PAUSED else made.record
        if made.record.phase is Phase.COMPLETE:
            return
    ends_well(made, plan)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_node_that_joins_gets_the_new_value_too(strategy: Strategy) -> None:
    made, plan = world(nodes=3, strategy=strategy)
    roll_sim.run(made, plan, until=lambda: made.now >= 1030)
    made.add("late-1")
    ends_well(made, plan)
    assert made.record.joined == ("late-1",)


# --- a node or the driver does not play along


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("fence", ["cordon", "taint"])
def test_a_budget_that_allows_nothing_pauses_the_roll(fence: str, strategy: Strategy) -> None:
    """DEV-27: the node is usable meanwhile. When the budget is gone, the same roll goes on."""
    made, plan = world(faults=Faults(budgets=frozenset(("work-n1-0",))), strategy=strategy, fence=fence)
    phase, _deaths = roll_sim.run(made, plan)
    assert phase is Phase.PAUSED
    assert "n1 is blocked (Draining: drains default/work-n1-0 (default/work-n1-0: 429" in made.record.reason
    assert made.schedulable(made.nodes["n1"])
    assert marks.read(made.nodes["n1"].annotations).attempt == 1
    if strategy is Strategy.DRAIN_ALL:
        assert not made.record.switched
    for pod in made.pods.values():
        pod.budget = False
    made.record = conduct.resumed(plan, made.record)
    ends_well(made, plan)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("dead", ["n0", "n2"])
def test_a_driver_that_does_not_come_back_stops_the_roll_and_is_taken_back(
    dead: str, strategy: Strategy
) -> None:
    """DEV-25: the failed node is counted by the roll itself."""
    faults = Faults(dead_drivers=frozenset((dead,)))
    made, plan = world(nodes=4, faults=faults, strategy=strategy)
    phase, _deaths = roll_sim.run(made, plan)
    assert phase is Phase.ABORTED
    assert dead in made.record.reason
    failed = made.nodes[dead]
    assert failed.cordoned
    assert marks.read(failed.annotations).state is State.FAILED
    usable = {node.driver_value for node in made.nodes.values() if made.schedulable(node)}
    if strategy is Strategy.DRAIN_ALL:
        assert usable == (set() if dead == "n0" else {NEW})
    else:
        assert usable == ({OLD} if dead == "n0" else {NEW, OLD})
    assert made.on_delete
    take_back(made, plan)


def take_back(made: World, plan: Plan) -> None:
    """Take a roll back; every node it reached is as it was, usable, and the driver too."""
    back = planning.back(plan, {name: made.view(node, plan) for name, node in made.nodes.items()})
    made.record = planning.first_record(back, "", made.record)
    made.plan = back
    phase, _deaths = roll_sim.run(made, back, lives=1000)
    assert phase is Phase.ROLLED_BACK, made.record.reason
    assert made.value == OLD
    assert not made.on_delete
    for node in made.nodes.values():
        assert node.driver_value == OLD
        assert made.schedulable(node)
        assert not marks.read(node.annotations).owner


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_roll_that_went_through_can_be_taken_back(strategy: Strategy) -> None:
    made, plan = world(nodes=4, strategy=strategy, budget=2)
    ends_well(made, plan)
    take_back(made, plan)


@pytest.mark.parametrize("fence", ["cordon", "taint"])
@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("seed", range(9))
def test_an_abort_at_any_time_releases_what_it_may(seed: int, strategy: Strategy, fence: str) -> None:
    faults = Faults(patch=0.1, effect=0.1)
    made, plan = world(seed, nodes=4, faults=faults, strategy=strategy, fence=fence)
    roll_sim.run(made, plan, until=lambda: made.now >= 1005 + 16 * seed)
    if made.record.phase is Phase.COMPLETE:
        return
    made.record = conduct.abort(plan, made.record, "enough")
    made.kill = Often(seed, 0.05)
    phase, _deaths = roll_sim.run(made, plan, lives=1000)
    assert (phase, made.record.reason) == (Phase.ABORTED, "enough")
    views = {name: made.view(node, plan) for name, node in made.nodes.items()}
    fenced = {name for name, node in made.nodes.items() if node.cordoned or node.rule}
    for name, node in made.nodes.items():
        seen = views[name].marks
        if name in fenced:
            assert seen.state is not State.DONE
        else:
            assert seen.state in (None, State.DONE)
            assert not seen.owner
        if seen.state is None:
            assert node.driver_value == OLD
            assert node.label is None
    if all(view.marks.state is None for view in views.values()):
        assert (made.value, made.on_delete) == (OLD, False)
        with pytest.raises(RdmaError, match="nothing to take back"):
            planning.back(plan, views)
        return
    take_back(made, plan)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_an_aborted_roll_can_be_resumed(strategy: Strategy) -> None:
    made, plan = world(nodes=4, strategy=strategy)
    roll_sim.run(made, plan, until=lambda: made.now >= 1080)
    made.record = conduct.abort(plan, made.record, "enough")
    roll_sim.run(made, plan)
    made.record = conduct.resumed(plan, made.record)
    ends_well(made, plan)


# --- from every state


def strange(seed: int) -> tuple[World, Plan]:
    """A world whose nodes are in any state, whatever their drivers, fences and users are."""
    chance = random.Random(seed)
    options: dict[str, Any] = {"fence": chance.choice(("cordon", "taint")), **chance.choice(CHANGES)}
    made, plan = world(
        seed, 3, chance.randint(0, 1), strategy=chance.choice(STRATEGIES), thresholds=LENIENT, **options
    )
    made.watch_values = False  # it may begin with two
    name = planning.digest(plan)
    switched = chance.random() < 0.5
    made.record = Record(chance.choice([Phase.PLANNED, Phase.ROLLING, Phase.PAUSED]), switched)
    if switched or chance.random() < 0.3:
        made.record = replace(made.record, kept=made.keep())
        made.value, made.on_delete = (NEW, True) if switched else (OLD, chance.random() < 0.5)
    for node in made.nodes.values():
        state = chance.choice([None, *State])
        if state is State.SKIPPED:
            continue
        ours = chance.random() < 0.7
        found = Marks(
            desired=name, state=state, owner=name if ours else "", lock=name if chance.random() < 0.7 else ""
        )
        found = replace(found, initial_unschedulable=False if ours else None, reboots=chance.randint(0, 1))
        if state in (State.BLOCKED, State.FAILED):
            found = replace(found, before=chance.choice([None, *ORDER[:-1]]))
        if state is State.REBOOTING:
            found = replace(found, boot_id="boot-%d" % chance.choice((node.boot, 99)))
        node.annotations.update({"rdma-k8s/" + key: text for key, text in marks.write(found).items() if text})
        node.cordoned = plan.fence == "cordon" and ours and chance.random() < 0.8
        node.rule = plan.fence == "taint" and ours and chance.random() < 0.8
        node.uncordoned = not node.cordoned and not node.rule
        if switched and (not made.users(node) and chance.random() < 0.5):
            made.new_driver(node)
        if State.RELEASED in (state, found.before) or state is State.DONE:  # what was proven is so
            made.value, made.on_delete = NEW, True
            made.record = replace(made.record, switched=True, kept='{"strategy":"RollingUpdate"}')
            made.new_driver(node)
        if state is State.DONE:
            node.annotations["rdma-k8s/roll-applied"] = name
            for key in ("roll-owner", "roll-lock", "initial-unschedulable", "reboots"):
                node.annotations.pop("rdma-k8s/" + key, None)
            node.label, node.cordoned, node.rule = "Done", False, False
    return made, plan


@pytest.mark.parametrize("seeds", [range(start, start + 20) for start in range(0, 120, 20)], ids=str)
def test_from_every_state_the_roll_comes_to_its_end(seeds: range) -> None:
    for seed in seeds:
        made, plan = strange(seed)
        made.faults = Faults(stale=0.001)  # budgets mean nothing in a world that began beyond them
        phase = Phase.PLANNED
        for _turn in range(6):
            phase, _deaths = roll_sim.run(made, plan)
            if phase is Phase.COMPLETE:
                break
            assert phase is Phase.PAUSED
            assert made.record.reason
            made.record = conduct.resumed(plan, made.record)
        assert phase is Phase.COMPLETE, (seed, made.record.reason)
        roll_sim.complete(made, plan)


# --- the world notices


@pytest.fixture(name="small")
def _small() -> tuple[World, Plan]:
    return world(nodes=2, work=1)


def begun(made: World, name: str) -> None:
    made.nodes[name].annotations["rdma-k8s/roll-state"] = "Applied"
    made.nodes[name].cordoned = True


def test_the_world_notices_a_second_eviction(small: tuple[World, Plan]) -> None:
    made, plan = small
    effect = Evict(made.view(made.nodes["n0"], plan).users)
    made.perform("n0", effect, Told(), plan)
    with pytest.raises(BrokenError, match="twice"):
        made.perform("n0", effect, Told(), plan)


def test_the_world_notices_a_driver_that_is_replaced_under_its_users(small: tuple[World, Plan]) -> None:
    made, plan = small
    begun(made, "n0")
    effect = RestartDriver(made.view(made.nodes["n0"], plan).drivers)
    with pytest.raises(BrokenError, match="in use"):
        made.perform("n0", effect, Told(), plan)
    made.pods.clear()
    with pytest.raises(BrokenError, match="in use"):  # its claim
        made.perform("n0", effect, Told(), plan)
    made.nodes["n0"].claims.clear()
    made.perform("n0", effect, Told(), plan)
    made.nodes["n1"].claims.clear()
    with pytest.raises(BrokenError, match="is changed while it is"):
        made.perform("n1", RestartDriver(made.view(made.nodes["n1"], plan).drivers), Told(), plan)


def test_the_world_notices_a_foreign_cordon_that_is_removed(small: tuple[World, Plan]) -> None:
    made, plan = small
    made.nodes["n0"].cordoned = made.nodes["n0"].cordoned_by_others = True
    with pytest.raises(BrokenError, match="somebody else"):
        made.patch("n0", NodePatch("1", {}, None, False), plan)


def test_the_world_notices_two_values(small: tuple[World, Plan]) -> None:
    made, _plan = small
    made.value = NEW
    made.new_driver(made.nodes["n0"])
    with pytest.raises(BrokenError, match="workloads are offered"):
        made.sleep(60)


def test_the_world_notices_more_than_the_budget(small: tuple[World, Plan]) -> None:
    made, plan = small
    begun(made, "n1")
    with pytest.raises(BrokenError, match="made unusable although"):
        made.patch("n0", NodePatch("1", {"roll-state": "Applied"}, "Applied"), plan)


def test_the_world_notices_a_strategy_that_restarts_drivers_in_use(small: tuple[World, Plan]) -> None:
    made, _plan = small
    made.switch(NEW)
    with pytest.raises(BrokenError, match="restoring"):
        made.restore(made.keep())


def test_the_world_notices_a_roll_that_stands_still(small: tuple[World, Plan]) -> None:
    made, plan = small
    made.nodes["n0"].up_at = float("inf")
    with pytest.raises(BrokenError, match="nothing came to an end: n0: the node is not ready"):
        roll_sim.run(made, plan, passes=50)


def test_the_world_proves_only_what_is_so(small: tuple[World, Plan]) -> None:
    made, plan = small
    assert made.perform("n0", Prove(), Told(), plan).proven is False
    made.nodes["n0"].driver_value = NEW
    made.now += 60
    assert made.perform("n0", Prove(), Told(), plan).proven is True
    assert made.perform("n0", Prove("n0"), Told(), plan).proven is False
