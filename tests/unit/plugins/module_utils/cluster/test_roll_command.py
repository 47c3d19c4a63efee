# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the states of ``range_roll`` do with rolls that are there, half done or over; what users give that is none."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Optional

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.cluster import roll_command
from ansible_collections.rdma.k8s.plugins.module_utils.cluster.roll_run import ABORT, GO_ON, Ended
from ansible_collections.rdma.k8s.plugins.module_utils.cluster.roll_store import Stored, unfinished
from ansible_collections.rdma.k8s.plugins.module_utils.core.errors import RdmaError
from ansible_collections.rdma.k8s.plugins.module_utils.core.roll import planning
from ansible_collections.rdma.k8s.plugins.module_utils.core.roll.model import NodeView, Plan, Record
from ansible_collections.rdma.k8s.plugins.module_utils.core.roll.names import Phase, State

OLD, NEW = "10.208.0.0/12", "172.16.0.0/12"
NODE = NodeView("n1", "u1", "1", True, False, value=OLD)
PLAN = Plan("range", OLD, NEW, ("n1",), canary=("n1",))


def stored(phase: Phase, plan: Plan = PLAN, started: str = "2026-01-01T00:00:00Z") -> Stored:
    """A roll."""
    return Stored(planning.digest(plan), plan, Record(phase=phase, started=started), "1")


class Work:
    """A session that notes what is asked of it."""

    def __init__(self, *rolls: Stored, values: str = OLD, ready: bool = True) -> None:
        self.rolls, self.values, self.ready = list(rolls), values, ready
        self.calls, self.roll = 7, None
        self.ran: list[tuple[str, str, str]] = []
        self.begun: list[Plan] = []

    def open(self) -> Optional[Stored]:
        return unfinished(self.rolls)

    def chosen(self, name: str = "") -> Stored:
        return next((roll for roll in self.rolls if roll.name == name), self.rolls[0])

    def plan(self, new: str, nodes: Any, old: str, **options: Any) -> tuple[Plan, dict[str, NodeView]]:
        views = {"n1": replace(NODE, ready=self.ready)}
        options.pop("kind")
        return planning.make("range", old or self.values, new, views, **options), views

    def begin(self, plan: Plan) -> Stored:
        self.begun.append(plan)
        return stored(Phase.PLANNED, plan)

    def back(self, found: Stored) -> Plan:
        return planning.back(found.plan)

    def marks_of(self, found: Stored) -> dict[str, NodeView]:
        return {"n1": NODE}

    def run(self, found: Stored, mode: str = GO_ON, reason: str = "") -> Ended:
        self.ran.append((found.name, mode, reason))
        phase = Phase.ABORTED if mode == ABORT else Phase.COMPLETE
        return Ended(replace(found, record=replace(found.record, phase=phase)), {"n1": NODE})


def act(work: Work, state: str, check_mode: bool = False, **given: Any) -> dict[str, Any]:
    """The result of a task."""
    params = {name: spec.get("default") for name, spec in roll_command.SPEC.items()}
    params.update(state=state, **given)
    roll_command.require(params)
    roll_command.options_of(params)
    return roll_command.act(params, work, check_mode)  # type: ignore[arg-type]


def code(work: Work, state: str, **given: Any) -> str:
    """The code of the error of a task."""
    with pytest.raises(RdmaError) as found:
        act(work, state, **given)
    assert work.ran == [], "nothing was carried out"
    return found.value.code


def test_a_plan_changes_nothing() -> None:
    work = Work()
    told = act(work, "planned", child_range=NEW)
    assert (told["changed"], told["exit_code"], told["roll_phase"], told["problems"]) == (
        False,
        0,
        "Planned",
        ["n1: 0 of 1 driver pods are there"],
    )
    assert (work.begun, work.ran) == ([], [])


def test_check_mode_is_a_plan_that_would_change_something() -> None:
    work = Work()
    assert act(work, "applied", child_range=NEW, check_mode=True)["changed"] is True
    assert (work.begun, work.ran) == ([], [])


def test_a_plan_with_problems_needs_consent() -> None:
    work = Work()
    assert code(work, "applied", child_range=NEW) == "roll_problems"
    told = act(work, "applied", child_range=NEW, accept_problems=True)
    assert (told["roll_phase"], told["exit_code"], told["changed"]) == ("Complete", 0, True)
    assert [(plan.old, plan.new) for plan in work.begun] == [(OLD, NEW)]


def test_applied_goes_on_with_what_is_half_done() -> None:
    """As it was planned then, whatever the other options say now."""
    half = stored(Phase.PAUSED)
    work = Work(half)
    act(work, "applied", child_range=NEW, budget="7")
    assert (work.ran, work.begun) == ([(half.name, GO_ON, "")], [])
    checked = Work(half)
    assert act(checked, "applied", child_range=NEW, check_mode=True)["changed"] is True
    assert checked.ran == []


def test_nothing_is_left_to_do() -> None:
    """A second run: the driver is told the range, and nobody offers another one."""
    work = Work(values=NEW)
    told = act(work, "applied", child_range=NEW)
    assert (told["changed"], told["exit_code"], work.ran) == (False, 0, [])


def test_a_stored_roll_by_its_name() -> None:
    half = stored(Phase.PAUSED)
    work = Work(half)
    act(work, "applied", child_range=NEW, roll=half.name)
    assert work.ran == [(half.name, GO_ON, "")]
    assert code(Work(half), "applied", child_range="192.168.0.0/16", roll=half.name) == "roll_other_range"


def test_resumed_does_nothing_with_what_is_over() -> None:
    over, half = Work(stored(Phase.COMPLETE)), Work(stored(Phase.DRAINING))
    assert (act(over, "resumed")["changed"], over.ran) == (False, [])
    assert act(half, "resumed")["changed"] is True
    assert [mode for _name, mode, _reason in half.ran] == [GO_ON]


def test_aborted() -> None:
    """It has an exit code of its own; a second time nothing changed."""
    work = Work(stored(Phase.ROLLING))
    told = act(work, "aborted", reason="no more")
    assert (told["exit_code"], told["changed"], work.ran[0][1:]) == (4, True, (ABORT, "no more"))
    again = Work(stored(Phase.ABORTED))
    assert act(again, "aborted")["changed"] is False


def test_taken_back() -> None:
    """Old and new change places; one that was begun goes on; the latest is not taken back twice."""
    done = stored(Phase.COMPLETE)
    work = Work(done)
    act(work, "rolled_back")
    ((back,), (ran,)) = work.begun, work.ran
    assert (back.old, back.new, back.parent, ran[0]) == (NEW, OLD, done.name, planning.digest(back))
    half = stored(Phase.ROLLING_BACK, back, "2026-01-02T00:00:00Z")
    going = Work(half, done)
    act(going, "rolled_back")
    assert (going.begun, going.ran) == ([], [(half.name, GO_ON, "")])
    over = Work(stored(Phase.ROLLED_BACK, back), done)
    assert (act(over, "rolled_back")["changed"], over.ran) == (False, [])
    assert code(Work(over.rolls[0]), "rolled_back", roll=over.rolls[0].name) == "roll_ended"
    checked = Work(done)
    assert act(checked, "rolled_back", check_mode=True)["nodes_taken_back"] == ["n1"]
    assert checked.ran == []


def test_status_only_looks() -> None:
    work = Work(stored(Phase.ROLLING))
    told = act(work, "status")
    assert (told["changed"], told["roll_phase"], told["exit_code"]) == (False, "Rolling", 3)
    assert (told["status"]["counts"], told["calls"], work.ran) == ({"Pending": 1}, 7, [])


def test_limits_by_the_names_of_states() -> None:
    work = Work()
    act(work, "applied", child_range=NEW, accept_problems=True, limits={"Draining": "60"}, wait_for_jobs=5)
    (plan,) = work.begun
    assert (plan.limits[State.DRAINING], plan.limits[State.WAIT_JOBS]) == (60, 5)
    assert plan.limits[State.VERIFIED] == 300
    assert code(Work(), "planned", child_range=NEW, limits={"Dancing": 1}) == "roll_limits"
    assert code(Work(), "planned", child_range=NEW, limits={"Draining": "soon"}) == "roll_limits"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"value": "shared"}, "roll_value"),
        ({"kind": "netns_mode", "child_range": NEW}, "roll_value"),
        ({"kind": "netns_mode", "value": "private"}, "roll_value"),
        ({"child_range": NEW, "lease_duration": 1}, "number_out_of_range"),
        ({"child_range": NEW, "workers": 0}, "number_out_of_range"),
    ],
)
def test_what_is_no_value(given: dict[str, Any], expected: str) -> None:
    assert code(Work(), "planned", **given) == expected


def test_which_roll_is_not_over() -> None:
    """An aborted one is not, until it was taken back; of several the latest."""
    aborted = stored(Phase.ABORTED)
    assert unfinished([stored(Phase.COMPLETE)]) is None
    assert unfinished([aborted]) is aborted
    back = planning.back(PLAN)
    assert unfinished([stored(Phase.ROLLED_BACK, back), aborted]) is None
    half = stored(Phase.ROLLING_BACK, back)
    assert unfinished([half, aborted]) is half
