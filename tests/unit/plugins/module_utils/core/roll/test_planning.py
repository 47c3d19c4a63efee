# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The plan of a roll: order, size, name, text."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, Union

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.core.errors import RdmaError
from ansible_collections.rdma.k8s.plugins.module_utils.core.roll import planning
from ansible_collections.rdma.k8s.plugins.module_utils.core.roll.model import (
    LIMITS,
    Consent,
    Marks,
    NodeView,
    Plan,
    Record,
    Thresholds,
    User,
)
from ansible_collections.rdma.k8s.plugins.module_utils.core.roll.names import Phase, State, Strategy

USER = User("default", "train", "u1", "claim", "default/rdma", owner="Job default/train", owner_kind="Job")
OLD, NEW = "10.224.0.0/12", "10.208.0.0/12"


NO_MARKS = Marks()


def view(name: str, busy: bool = False, marks: Marks = NO_MARKS) -> NodeView:
    return NodeView(name, "uid-" + name, "1", True, False, marks, users=(USER,) if busy else ())


def views(*names: str, busy: str = "") -> dict[str, NodeView]:
    return {name: view(name, name in busy.split()) for name in names}


def make(nodes: dict[str, NodeView], **options: Any) -> Plan:
    return planning.make("range", OLD, NEW, nodes, **options)


# --- order


def test_idle_nodes_come_first() -> None:
    assert make(views("a", "b", "c", busy="a")).nodes == ("b", "c", "a")


def test_nodes_of_one_block_stay_together_and_quieter_blocks_come_first() -> None:
    blocks = {"a": "x", "b": "y", "c": "x", "d": "y", "stranger": "z"}
    plan = make(views("a", "b", "c", "d", busy="a"), blocks=blocks, canary=1)
    assert plan.nodes == ("b", "d", "c", "a")
    assert plan.canary == ("b",)
    assert plan.blocks == {"a": "x", "b": "y", "c": "x", "d": "y"}


def test_two_blocks_give_two_canaries_in_different_blocks() -> None:
    plan = make(views("a", "b", "c", "d"), blocks={"a": "x", "b": "x", "c": "y", "d": "y"})
    assert plan.canary == ("a", "c")
    assert plan.nodes == ("a", "c", "b", "d")


def test_one_block_gives_one_canary() -> None:
    assert make(views("b", "a")).canary == ("a",)


def test_more_canaries_than_blocks_are_taken_in_order() -> None:
    plan = make(views("a", "b", "c", "d"), blocks={"a": "x", "b": "x", "c": "y"}, canary=9)
    assert plan.canary == ("d", "a", "c", "b")
    assert len(plan.nodes) == 4


# --- size


@pytest.mark.parametrize(
    ("budget", "nodes", "min_one", "found"),
    [
        (3, 1, False, 3),
        ("7", 100, False, 7),
        ("10%", 100, False, 10),
        ("10 %", 19, False, 1),
        ("100%", 5, False, 5),
        ("10%", 9, True, 1),
        ("25%", 7, True, 1),
    ],
)
def test_a_budget_is_a_number_or_a_share_rounded_down(
    budget: Union[int, str], nodes: int, min_one: bool, found: int
) -> None:
    assert planning.size(budget, nodes, min_one) == found


@pytest.mark.parametrize(
    "budget", [0, "0", "0%", "10%", -1, "101%", "half", "1.5", True, "", "1000%", "\u0663"]
)
def test_a_budget_with_which_nothing_moves_is_refused(budget: Union[int, str]) -> None:
    with pytest.raises(RdmaError) as caught:
        planning.size(budget, 9)
    assert caught.value.code == "roll_budget"
    assert str(budget) in str(caught.value)


def test_a_fixed_number_of_none_is_no_share_that_is_rounded_up() -> None:
    with pytest.raises(RdmaError, match="allows no node"):
        planning.size(0, 9, min_one=True)


@pytest.mark.parametrize(
    ("code", "nodes", "options"),
    [
        ("roll_nodes", (), {}),
        ("roll_canary", ("a",), {"canary": 0}),
        ("roll_fence", ("a",), {"fence": "wall"}),
        ("roll_budget", ("a",), {"budget": "10%"}),
    ],
)
def test_a_plan_that_cannot_be_is_refused(code: str, nodes: tuple[str, ...], options: dict[str, Any]) -> None:
    with pytest.raises(RdmaError) as caught:
        make(views(*nodes), **options)
    assert caught.value.code == code


@pytest.mark.parametrize(("old", "new"), [(OLD, OLD), (OLD, "")])
def test_a_plan_that_changes_nothing_is_refused(old: str, new: str) -> None:
    with pytest.raises(RdmaError) as caught:
        planning.make("range", old, new, views("a"))
    assert caught.value.code == "roll_values"


def test_what_is_not_named_is_as_cautious_as_can_be() -> None:
    assert make(views("a")) == Plan("range", OLD, NEW, ("a",), canary=("a",))


def test_limits_that_are_not_named_keep_their_values() -> None:
    plan = make(views("a"), limits={State.DRAINING: 60})
    assert plan.limits[State.DRAINING] == 60
    assert plan.limits[State.APPLIED] == LIMITS[State.APPLIED]


# --- name and text

FULL = make(
    views("a", "b", "c"),
    strategy=Strategy.ROLLING,
    blocks={"a": "x", "b": "y"},
    budget=2,
    fence="taint",
    consent=Consent(ownerless=True, evict_jobs=False),
    thresholds=Thresholds(consecutive=1, percent=5, blocked=0),
    limits={State.WAIT_JOBS: 3600},
    release_blocked=False,
    node_change=True,
    reboot=True,
    driver="1.3.0",
    parent="0123",
    prefix="example.org/",
)


def test_a_plan_is_the_same_after_it_was_stored() -> None:
    assert planning.load(planning.dump(FULL)) == FULL
    assert planning.digest(planning.load(planning.dump(FULL))) == planning.digest(FULL)


def test_no_wait_for_jobs_stays_none() -> None:
    """0 is a limit of its own, and what is absent in a text counts as 0."""
    plan = make(views("a"))
    assert plan.limits[State.WAIT_JOBS] == 0
    assert planning.load(planning.dump(plan)).limits == plan.limits
    content = json.loads(planning.dump(plan))
    content["limits"]["WaitJobs"] = None
    assert planning.load(json.dumps(content)).limits[State.WAIT_JOBS] == 0


@pytest.mark.parametrize(
    "other",
    [
        {"old": "10.0.0.0/8"},
        {"new": "10.0.0.0/8"},
        {"nodes": ("a", "b")},
        {"driver": "1.4.0"},
        {"budget": 3},
        {"parent": ""},
        {"consent": Consent()},
        {"limits": dict(LIMITS)},
    ],
)
def test_another_plan_has_another_name(other: dict[str, Any]) -> None:
    assert planning.digest(FULL) != planning.digest(replace(FULL, **other))


def test_the_name_of_a_roll_fits_a_label() -> None:
    name = planning.digest(FULL)
    assert len(name) == 16
    assert int(name, 16) >= 0
    assert planning.digest(FULL) == name


def test_a_thousand_nodes_fit_a_config_map() -> None:
    nodes = {"node-%04d.cluster.example.internal" % turn: view("x") for turn in range(1000)}
    plan = make(nodes, blocks={name: "block-%d" % (turn % 20) for turn, name in enumerate(nodes)})
    assert len(planning.dump(plan)) < 200_000


@pytest.mark.parametrize(
    "change",
    [
        {"nodes": "a"},
        {"nodes": [1]},
        {"budget": "1"},
        {"budget": True},
        {"strategy": "at_once"},
        {"limits": {"Sleeping": 1}},
        {"limits": {"Draining": "1"}},
        {"limits": []},
        {"blocks": {"a": 1}},
        {"consent": {"ownerless": 1}},
        {"consent": {"force": True}},
        {"thresholds": {"percent": 1.5}},
        {"release_blocked": "no"},
        {"new": None, "kind": 1},
        {"version": 2},
    ],
)
def test_a_plan_that_somebody_changed_is_refused(change: dict[str, Any]) -> None:
    text = json.dumps({**json.loads(planning.dump(FULL)), **change})
    with pytest.raises(RdmaError) as caught:
        planning.load(text)
    assert caught.value.code == "roll_plan"


@pytest.mark.parametrize("missing", ["kind", "old", "new", "nodes"])
def test_a_plan_without_its_main_members_is_refused(missing: str) -> None:
    content = json.loads(planning.dump(FULL))
    del content[missing]
    with pytest.raises(RdmaError, match=missing):
        planning.load(json.dumps(content))


def test_members_that_are_absent_have_their_usual_values() -> None:
    text = json.dumps({"kind": "range", "old": OLD, "new": NEW, "nodes": ["a"]})
    assert planning.load(text) == Plan("range", OLD, NEW, ("a",), limits={})


@pytest.mark.parametrize("text", ["", "[]", "{", "nothing"])
def test_what_is_no_plan_is_refused(text: str) -> None:
    with pytest.raises(RdmaError) as caught:
        planning.load(text)
    assert caught.value.code == "roll_plan"


def test_a_record_is_the_same_after_it_was_stored() -> None:
    record = Record(Phase.PAUSED, True, '{"a":1}', 1, 2, 3, 4, ("late",), "2026-01-01T00:00:00Z", "why")
    assert planning.load_record(planning.dump_record(record)) == record
    assert planning.load_record("{}") == Record()


@pytest.mark.parametrize(
    "text",
    ["", "[]", '{"phase":"Dreaming"}', '{"switched":1}', '{"failed":"1"}', '{"joined":"a"}', '{"x":1}'],
)
def test_what_is_no_record_is_refused(text: str) -> None:
    with pytest.raises(RdmaError) as caught:
        planning.load_record(text)
    assert caught.value.code == "roll_record"


# --- taking back

PLAN = make(views("a", "b", "c"), strategy=Strategy.ROLLING, driver="1")
NAME = planning.digest(PLAN)


def test_taking_back_changes_places_and_names_its_parent() -> None:
    found = planning.back(PLAN)
    assert (found.old, found.new, found.nodes, found.parent) == (NEW, OLD, ("a", "b", "c"), NAME)
    assert planning.digest(found) != NAME
    assert (found.driver, found.strategy, found.canary) == ("1", Strategy.ROLLING, ("a",))
    assert planning.back(PLAN, driver="2").driver == "2"


@pytest.mark.parametrize(
    ("marks", "reached"),
    [
        (Marks(), False),
        (Marks(desired=NAME, state=State.PENDING), False),
        (Marks(desired=NAME, state=State.CLAIMS_RELEASED), False),
        (Marks(desired=NAME, state=State.CLAIMS_RELEASED, owner=NAME), True),
        (Marks(desired=NAME, state=State.APPLIED), True),
        (Marks(desired=NAME, state=State.REBOOTING), True),
        (Marks(desired=NAME, state=State.DRIVER_RESTARTED), True),
        (Marks(desired=NAME, state=State.VERIFIED), True),
        (Marks(desired=NAME, state=State.RELEASED), True),
        (Marks(desired=NAME, state=State.DONE), True),
        (Marks(desired="other", state=State.DONE), False),
        (Marks(desired="other", applied=NAME, state=State.PENDING), True),
        (Marks(desired=NAME, state=State.BLOCKED, before=State.DRAINING), False),
        (Marks(desired=NAME, state=State.BLOCKED, before=State.RELEASED), True),
        (Marks(desired=NAME, state=State.FAILED, before=State.VERIFIED), True),
    ],
)
def test_only_nodes_that_were_reached_are_taken_back(marks: Marks, reached: bool) -> None:
    nodes = {"b": view("b", marks=Marks(applied=NAME)), "c": view("c", marks=marks)}
    found = planning.back(PLAN, nodes)
    assert set(found.nodes) == ({"b", "c"} if reached else {"b"})
    assert found.canary == found.nodes[:1]


def test_what_failed_is_taken_back_first() -> None:
    nodes = {name: view(name, marks=Marks(applied=NAME, state=State.DONE)) for name in "abc"}
    nodes["c"] = view("c", marks=Marks(desired=NAME, state=State.FAILED, before=State.VERIFIED))
    found = planning.back(PLAN, nodes)
    assert (found.nodes, found.canary) == (("c", "a", "b"), ("c",))


def test_nodes_that_joined_are_taken_back_too() -> None:
    nodes = {name: view(name, marks=Marks(applied=NAME)) for name in ("late", "c", "a")}
    plan = replace(PLAN, blocks={"a": "x", "b": "y"})
    nodes = {name: view(name, marks=Marks(applied=planning.digest(plan))) for name in nodes}
    found = planning.back(plan, nodes)
    assert found.nodes == ("a", "c", "late")
    assert found.blocks == {"a": "x"}


def test_a_roll_that_reached_nothing_cannot_be_taken_back() -> None:
    with pytest.raises(RdmaError) as caught:
        planning.back(PLAN, views("a", "b"))
    assert caught.value.code == "roll_nodes"


def test_what_the_parent_kept_is_restored_by_the_roll_that_takes_it_back() -> None:
    parent = Record(Phase.ABORTED, True, "kept", 2, failed=2, reason="why")
    assert planning.first_record(planning.back(PLAN), "now", parent) == Record(kept="kept", started="now")
    assert planning.first_record(PLAN, "now", parent) == Record(started="now")
    assert planning.first_record(PLAN, "now") == Record(started="now")
