# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a plan will disturb."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.core.roll import planning, table
from ansible_collections.rdma.k8s.plugins.module_utils.core.roll.model import (
    LIMITS,
    Consent,
    DriverPod,
    Marks,
    NodeView,
    Plan,
    User,
)
from ansible_collections.rdma.k8s.plugins.module_utils.core.roll.names import State, Strategy

OLD, NEW = "10.224.0.0/12", "10.208.0.0/12"
PLAN = Plan("range", OLD, NEW, ("a", "b", "c"), canary=("a",), blocks={"b": "x"}, budget=2)
READY = DriverPod("kube-system", "driver", "d1", True, True)
JOB = User(
    "default", "train-0", "u1", "claim", "x", owner="Job default/train", owner_kind="Job", grace=60, ends=True
)
SERVICE = User(
    "default", "serve-0", "u2", "claim", "x", owner="ReplicaSet default/serve", owner_kind="ReplicaSet"
)
HOST = replace(SERVICE, name="exporter", reason="host", owner_kind="DaemonSet", uses="/dev/infiniband")


def node(name: str, *users: User, **more: Any) -> NodeView:
    whole: dict[str, Any] = {"ready": True, "unschedulable": False, "drivers": (READY,), **more}
    return NodeView(name, "u", "1", users=users, **whole)


NODES = {"a": node("a"), "b": node("b", SERVICE, HOST), "c": node("c", JOB, replace(JOB, name="train-1"))}


def strategies(found: table.Table) -> dict[str, table.Disruption]:
    return {entry.strategy: entry for entry in found.disruptions}


def test_each_node_tells_whom_it_hits() -> None:
    found = table.table(PLAN, NODES)
    assert (found.roll, found.chosen, found.problems) == (planning.digest(PLAN), "drain_all", ())
    assert found.rows == (
        table.Row("a", True, "", 0, (), (), (), 15, ""),
        table.Row("b", False, "x", 1, (), ("ReplicaSet default/serve",), ("default/exporter",), 45, ""),
        table.Row("c", False, "", 2, ("Job default/train",), (), (), 75, ""),
    )


def test_each_strategy_tells_what_it_costs() -> None:
    found = strategies(table.table(PLAN, NODES))
    change = table.RESTART + table.PROOF
    # The canary, then one node, then the other: three times a driver is restarted.
    assert found["drain_all"] == table.Disruption(
        "drain_all", 3, 2, 1, 3, 75 + 3 * change, 75 + 3 * change, ()
    )
    assert found["rolling"] == table.Disruption("rolling", 3, 2, 1, 2, 75 + change, 3 * (75 + change), ())


def test_waiting_for_jobs_and_reboots_take_their_time() -> None:
    plan = replace(PLAN, reboot=True, limits={**LIMITS, State.WAIT_JOBS: 3600})
    found = table.table(plan, NODES)
    assert [row.drain for row in found.rows] == [15, 45, 3675]
    change = table.RESTART + table.PROOF + table.REBOOT
    assert strategies(found)["drain_all"].seconds == 3675 + 3 * change


@pytest.mark.parametrize(
    ("nodes", "canary", "budget", "rounds"),
    [(1, 1, 1, 1), (4, 1, 1, 4), (4, 2, 2, 4), (9, 1, 4, 5), (0, 1, 1, 0)],
)
def test_batches_make_rounds(nodes: int, canary: int, budget: int, rounds: int) -> None:
    names = tuple("n%d" % turn for turn in range(nodes))
    plan = replace(PLAN, nodes=names, canary=names[:canary], budget=budget)
    found = strategies(table.table(plan, {name: node(name) for name in names}))["rolling"]
    drain = table.RELEASE if nodes else 0
    assert found.seconds == rounds * (drain + table.RESTART + table.PROOF)
    assert found.at_once == min(budget, nodes)


def test_a_job_on_two_nodes_is_a_problem_of_the_rolling_strategy_only() -> None:
    nodes = {**NODES, "b": node("b", JOB), "a": node("a", SERVICE, replace(JOB, owner="Job default/x"))}
    nodes["c"] = node("c", JOB, replace(JOB, owner="Job default/x"), SERVICE)
    found = table.table(PLAN, nodes)
    assert found.problems == ()
    assert strategies(found)["rolling"].spanning == ("Job default/train", "Job default/x")
    assert strategies(found)["drain_all"].spanning == ()
    found = table.table(replace(PLAN, strategy=Strategy.ROLLING), nodes)
    assert len(found.problems) == 1
    assert found.problems[0].startswith("Job default/train (and 1 more) has pods on several nodes")


@pytest.mark.parametrize(
    ("old", "new", "wanted"),
    [
        ("10.208.0.0/12", "10.192.0.0/11", "10.192.0.0/11 overlaps 10.208.0.0/12, so children of both"),
        ("10.16.0.0/12, 10.208.0.0/12", "10.208.0.0/14", "10.208.0.0/14 overlaps 10.208.0.0/12, so"),
        ("10.208.0.0/12", "10.192.0.0/12", ""),
        ("exclusive", "shared", ""),
        ("", "10.192.0.0/12", ""),
    ],
)
def test_a_range_that_overlaps_the_old_one(old: str, new: str, wanted: str) -> None:
    """RANGE-019 by decision 5: an error for nodes side by side, none when all are drained."""
    plan = replace(PLAN, old=old, new=new)
    assert table.table(plan, NODES).problems == ()
    found = table.table(replace(plan, strategy=Strategy.ROLLING), NODES).problems
    assert [problem.startswith(wanted) for problem in found] == [True] * bool(wanted)


def test_what_stands_in_the_way_is_told_before_anything_is_done() -> None:
    nodes = {
        "a": node("a", replace(JOB, blocked_by="default/pdb")),
        "b": node("b", ready=False),
        "d": node("d", replace(JOB, owner="", owner_kind="")),
        "e": node("e", marks=Marks(desired="other", state=State.DRAINING, owner="other")),
    }
    plan = replace(PLAN, nodes=("a", "b", "c", "d", "e"))
    found = table.table(plan, nodes)
    assert found.problems[0] == "c is not there"
    assert found.problems[1].startswith("a: pod default/train-0: the disruption budget default/pdb")
    assert found.problems[2] == "b: the node is not ready"
    assert found.problems[3].startswith("d: pod default/train-0: nothing makes it anew")
    assert found.problems[4] == "e: the roll other left it half-done"
    assert found.rows[2].jobs == ("Pod default/train-0",)
    allowed = replace(plan, consent=Consent(ownerless=True))
    assert not any(problem.startswith("d:") for problem in table.table(allowed, nodes).problems)


def test_a_table_is_plain_data() -> None:
    found = table.table(PLAN, NODES).to_dict()
    assert json.loads(json.dumps(found)) == found
    assert found["nodes"][1]["stays"] == ["default/exporter"]
    assert found["disruptions"][0]["strategy"] == "drain_all"


def test_a_table_as_text() -> None:
    nodes = {**NODES, "a": node("a", ready=False)}
    assert table.lines(table.table(PLAN, nodes)) == [
        "plan " + planning.digest(PLAN),
        "  strategy     pods  owners   jobs  at once   per node   in all",
        "* drain_all       3       2      1        3         4m       4m",
        "  rolling         3       2      1        2         2m       7m",
        "",
        "node           pods  drain  hit",
        "a    canary       0    15s  nobody",
        "b                 1    45s  ReplicaSet default/serve",
        "c                 2    75s  Job default/train",
        "",
        "problem: a: the node is not ready",
    ]


def test_no_line_is_longer_than_a_terminal() -> None:
    name = "n" * 80
    users = [replace(JOB, owner="Job default/%s-%d" % ("x" * 40, turn)) for turn in range(5)]
    found = table.lines(table.table(replace(PLAN, nodes=(name,)), {name: node(name, *users)}))
    assert max(len(line) for line in found) == 100
    assert found[-1].startswith("n" * 40 + " ")
    assert found[-1].endswith("..")


def test_a_line_that_just_fits_is_not_cut() -> None:
    """A problem of 91 letters behind its word is 100 columns; one more is too long."""
    for letters, told in ((91, "x" * 91), (92, "x" * 89 + "..")):
        found = replace(table.table(PLAN, {}), problems=("x" * letters,))
        assert table.lines(found)[-1] == "problem: " + told


def test_a_table_without_nodes() -> None:
    assert table.lines(table.table(replace(PLAN, nodes=()), {}))[-1] == "node           pods  drain  hit"
