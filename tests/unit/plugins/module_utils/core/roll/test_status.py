# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How far a roll is, as data and as text."""

from __future__ import annotations

import json
from typing import Any, Optional

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.core.roll import planning, status
from ansible_collections.rdma.k8s.plugins.module_utils.core.roll.model import (
    Marks,
    NodeView,
    Plan,
    Record,
    User,
)
from ansible_collections.rdma.k8s.plugins.module_utils.core.roll.names import Phase, State

OLD, NEW = "10.224.0.0/12", "10.208.0.0/12"
PLAN = Plan("range", OLD, NEW, ("a", "b", "c", "d"))
NAME = planning.digest(PLAN)
START, STAMP = "2026-01-01T00:00:00Z", "2026-01-01T00:10:00Z"
USER = User("default", "train", "u1", "claim", "x")


def node(name: str, state: Optional[State], **more: Any) -> NodeView:
    marks = more.pop("marks", {})
    desired = NAME if state else ""
    found = Marks(desired=desired, state=state, since="2026-01-01T00:09:00Z" if state else "", **marks)
    return NodeView(name, "u", "1", True, more.pop("unschedulable", False), found, **more)


NODES = {
    "a": node("a", State.DONE, value=NEW, marks={"applied": NAME}),
    "b": node("b", State.DRAINING, value=OLD, users=(USER,), unschedulable=True),
    "c": node("c", State.FAILED, marks={"before": State.VERIFIED, "error": "no ping", "attempt": 2}),
}
RECORD = Record(Phase.ROLLING, True, started=START, joined=("late",), reason="why")


def test_a_status_has_every_node_with_its_state() -> None:
    found = status.look(
        PLAN, RECORD, {**NODES, "late": node("late", None)}, STAMP, {"b": "drains x", "c": "old"}
    )
    assert (found.roll, found.phase, found.old, found.new) == (NAME, Phase.ROLLING, OLD, NEW)
    assert (found.strategy, found.switched, found.reason) == ("drain_all", True, "why")
    assert found.counts == {"Pending": 1, "Draining": 1, "Done": 1, "Skipped": 1, "Failed": 1}
    assert found.nodes == (
        status.NodeStatus("a", State.DONE, 60, NEW),
        status.NodeStatus("b", State.DRAINING, 60, OLD, users=1, schedulable=False, reason="drains x"),
        status.NodeStatus("c", State.FAILED, 60, attempt=2, reason="no ping"),
        status.NodeStatus("d", State.SKIPPED, schedulable=False, reason="it is not there any more"),
        status.NodeStatus("late", State.PENDING),
    )


def test_the_marks_of_another_roll_tell_nothing() -> None:
    other = NodeView(
        "a", "u", "1", True, False, Marks(desired="x", state=State.DONE, since=START), fenced_by_rule=True
    )
    found = status.look(PLAN, RECORD, {"a": other}, STAMP).nodes[0]
    assert found == status.NodeStatus("a", State.PENDING, schedulable=False)


def test_the_time_that_is_left_goes_by_the_work_that_is_done() -> None:
    found = status.look(PLAN, Record(Phase.ROLLING, started=START), NODES, STAMP)
    # Done 11, Draining 4, failed in Verified 9, vanished 11 of 4 x 11 entry actions.
    assert found.percent == 79
    assert found.elapsed == 600
    assert found.left == round(600 * (44 - 35) / 35)


@pytest.mark.parametrize(
    "phase", [Phase.PLANNED, Phase.PAUSED, Phase.ABORTED, Phase.COMPLETE, Phase.ROLLED_BACK]
)
def test_a_roll_that_does_not_go_on_has_no_time_left(phase: Phase) -> None:
    assert status.look(PLAN, Record(phase, started=START), NODES, STAMP).left is None


def test_nothing_is_foretold_at_the_beginning() -> None:
    nodes = {name: node(name, None) for name in PLAN.nodes}
    found = status.look(PLAN, Record(Phase.DRAINING, started=START), nodes, STAMP)
    assert (found.percent, found.left, found.elapsed) == (0, None, 600)
    assert status.look(PLAN, Record(Phase.ROLLING), NODES, STAMP).elapsed is None
    assert status.look(PLAN, Record(Phase.ROLLING, started=STAMP), NODES, STAMP).left is None


def test_the_time_is_foretold_from_a_fiftieth_of_the_work_on() -> None:
    """One node of fifty is done after ten minutes; one of fifty-one is too little to go by."""
    for number, left in ((50, 600 * 49), (51, None)):
        plan = Plan("range", OLD, NEW, tuple("n%d" % at for at in range(number)))
        done = Marks(desired=planning.digest(plan), state=State.DONE, since=START)
        nodes = {name: NodeView(name, "u", "1", True, False) for name in plan.nodes[1:]}
        nodes["n0"] = NodeView("n0", "u", "1", True, False, done)
        assert status.look(plan, Record(Phase.ROLLING, started=START), nodes, STAMP).left == left


def test_a_failed_node_that_forgot_where_it_was_has_done_nothing() -> None:
    nodes = {name: node(name, State.FAILED) for name in PLAN.nodes}
    assert status.look(PLAN, RECORD, nodes, STAMP).percent == 20  # the one that joined is gone


def test_a_roll_without_nodes_is_all_done() -> None:
    empty = Plan("range", OLD, NEW, ())
    assert status.look(empty, Record(), {}, STAMP).percent == 100


def test_a_status_is_plain_data() -> None:
    found = status.look(PLAN, RECORD, NODES, STAMP).to_dict()
    assert json.loads(json.dumps(found)) == found
    assert found["phase"] == "Rolling"
    assert found["counts"]["Skipped"] == 2
    assert found["nodes"][2] == {
        "name": "c",
        "state": "Failed",
        "seconds": 60,
        "value": "",
        "users": 0,
        "attempt": 2,
        "schedulable": True,
        "reason": "no ping",
        "note": "",
    }
    assert found["notes"] == {}


def test_a_clock_that_is_behind_makes_no_negative_times() -> None:
    """Whoever wrote the stamp may be ahead of whoever looks."""
    nodes = {name: node(name, State.DRAINING) for name in PLAN.nodes}
    found = status.look(PLAN, Record(Phase.DRAINING, started=STAMP), nodes, START)
    assert (found.elapsed, {entry.seconds for entry in found.nodes}) == (0, {0})


def test_a_long_reason_goes_over_lines() -> None:
    """It ends with who is in the way, so it is not cut at the first line."""
    words = "its time is over; until then: " + ", ".join("gpu-%d is not ready" % at for at in range(7))
    text = status.lines(status.look(PLAN, Record(Phase.PAUSED, reason=words), {}, STAMP))[3:]
    assert len(text) == 2
    assert text[0].startswith("because: its time is over; until then: gpu-0 is not ready")
    assert text[1].startswith("  ")
    assert text[1].endswith("gpu-6 is not ready")
    assert max(map(len, text)) <= status.WIDTH
    text = status.lines(status.look(PLAN, Record(Phase.PAUSED, reason="x " * 999), {}, STAMP))[3:]
    assert len(text) == status.REASON_LINES
    assert text[-1].endswith(" ..")


def test_what_was_not_proven_is_told_with_the_number_of_nodes() -> None:
    """A note is of the proof that was accepted: before that it is of another roll, or of an earlier try."""
    told = {
        "a": node("a", State.DONE, marks={"note": "reached nobody"}),
        "b": node("b", State.RELEASED, marks={"note": "reached nobody"}),
        "c": node("c", State.DONE, marks={"note": "was alone"}),
        "d": node("d", State.VERIFIED, marks={"note": "former"}),
    }
    found = status.look(PLAN, Record(Phase.RELEASING), told, STAMP)
    assert [entry.note for entry in found.nodes] == ["reached nobody", "reached nobody", "was alone", ""]
    assert found.to_dict()["notes"] == {"reached nobody": 2, "was alone": 1}
    assert status.lines(found)[3:5] == ["2 nodes: reached nobody", "1 node: was alone"]
    plan = Plan("range", OLD, NEW, tuple("abcdefg"))
    desired = planning.digest(plan)
    many = {
        name: NodeView(name, "u", "1", True, False, Marks(desired=desired, state=State.DONE, note="n" + name))
        for name in plan.nodes
    }
    text = status.lines(status.look(plan, Record(Phase.COMPLETE), many, STAMP))
    assert text[3:] == [*["1 node: n" + name for name in "abcde"], "and 2 more notes"]
    few = {name: many[name] for name in "abcde"}
    assert status.lines(status.look(plan, Record(Phase.COMPLETE), few, STAMP))[-1] == "1 node: ne"


def test_a_status_as_text() -> None:
    nodes = {**NODES, "d": node("d", State.PENDING), "late": node("late", State.APPLIED)}
    assert status.lines(status.look(PLAN, RECORD, nodes, STAMP, {"b": "drains x", "late": "changes it"})) == [
        NAME + ": Rolling, 54 %, for 10m, about 8m left",
        "10.224.0.0/12 -> 10.208.0.0/12 (drain_all; the driver is told the new value)",
        "1 Pending, 1 Draining, 1 Applied, 1 Done, 1 Failed",
        "because: why",
        "  c    Failed              60s  no ping",
        "  late Applied             60s  changes it",
        "  b    Draining            60s  drains x",
    ]


def test_a_short_status() -> None:
    empty = Plan("range", OLD, NEW, ())
    found = status.look(empty, Record(), {}, STAMP)
    assert status.lines(found) == [
        found.roll + ": Planned, 100 %",
        "10.224.0.0/12 -> 10.208.0.0/12 (drain_all)",
        "no nodes",
    ]


def test_no_line_is_longer_than_a_terminal_and_no_list_than_a_screen() -> None:
    names = tuple("node-%02d.%s" % (turn, "x" * 60) for turn in range(30))
    plan = Plan("range", OLD, NEW, names)
    marks = Marks(desired=planning.digest(plan), state=State.BLOCKED, error="e" * 250, since=START)
    nodes = {name: NodeView(name, "u", "1", True, False, marks) for name in names}
    found = status.lines(status.look(plan, Record(Phase.PAUSED, reason="r" * 200), nodes, STAMP))
    assert all(len(line) <= 100 for line in found)
    assert found[3:6] == ["because: " + "r" * 91, "  " + "r" * 98, "  " + "r" * 11]
    assert found[6].startswith("  node-00." + "x" * 30 + ".. Blocked")
    assert len(found) == 6 + 20 + 1
    assert found[-1] == "  and 10 more under way"


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (7199, "119m"),
        (7200, "2h00m"),
        (11100, "3h05m"),
        (90000, "25h00m"),
    ],
)
def test_times_in_words(seconds: int, words: str) -> None:
    assert status.duration(seconds) == words
