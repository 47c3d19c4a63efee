# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How far nodes are, and why they do not get on: looks one after the other, with a clock that the test turns."""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from typing import Any, Optional

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.core.cluster_snapshot import ApiObject, ClusterSnapshot
from ansible_collections.rdma.k8s.plugins.module_utils.core.spiderpool import rollout
from ansible_collections.rdma.k8s.plugins.module_utils.core.spiderpool.rollout import NodeProgress, Tracker
from ansible_collections.rdma.k8s.tests.support import rails

NODE = "w1"
NO_VFS: dict[str, Any] = {"num_vfs": 0, "vfs": 0, "vf_drivers": (), "vf_mtu": None}
FRESH = rails.edit_interface(NODE, 1, **NO_VFS)
UNRENDERED = rails.edit_interface(NODE, 1, wanted_vfs=None, **NO_VFS)
BUSY = rails.edit_state(NODE, sync="InProgress")
QUEUED = rails.edit_state(NODE, desired_state="Drain_Required")
DRAINING = rails.edit_state(NODE, desired_state="Drain_Required", current_state="Draining")
DRAINED = rails.edit_state(NODE, desired_state="Drain_Required", current_state="DrainComplete")
REBOOT = rails.edit_state(NODE, desired_state="Reboot_Required", current_state="DrainComplete")
FAILED = rails.edit_state(NODE, sync="Failed", last_error="write sriov_numvfs: cannot allocate memory")
AWAY = rails.edit_live(NODE, conditions={"Ready": "Unknown"})
NO_PLUGIN = rails.edit_live(NODE, allocatable={"spidernet.io/gpu1sriov": "0"})
NO_STATE = rails.set_fields(sriov_node_states=(rails.state("w2"),))


def at(*edits: rails.EditCluster) -> ClusterSnapshot:
    found = rails.cluster(NODE, "w2")
    for edit in edits:
        found = edit(found)
    return found


def one(tracker: Tracker, cluster: ClusterSnapshot, now: float = 0.0) -> NodeProgress:
    return next(node for node in tracker.look(cluster, now).nodes if node.name == NODE)


@pytest.mark.parametrize(
    ("edits", "phase", "reason"),
    [
        ((), "ready", ""),
        # S116: Succeeded and Idle twice, and nothing was done
        ((FRESH,), "waiting", "has 0 virtual functions, not 8"),
        ((rails.edit_interface(NODE, 1, vfs=7),), "waiting", "lists 7 of its 8"),
        ((rails.edit_state(NODE, sync=""),), "waiting", "syncStatus is ''"),
        ((rails.edit_state(NODE, last_error="x"),), "waiting", "lastSyncError says 'x'"),
        ((BUSY,), "configuring", "InProgress"),
        ((QUEUED,), "queued", "Drain_Required"),
        ((rails.edit_state(NODE, desired_state="Reboot_Required"),), "queued", "Reboot_Required"),
        ((DRAINING,), "draining", "Draining"),
        ((DRAINED,), "drained", "DrainComplete"),
        ((REBOOT,), "rebooting", "Reboot_Required"),
        ((rails.edit_state(NODE, desired_state="Reboot_Required"), AWAY), "rebooting", "is not ready"),
        ((AWAY,), "waiting", "the node is not ready"),
        ((FAILED,), "failed", "cannot allocate memory"),
        ((FAILED, REBOOT), "failed", "Failed"),
        # S119: functions are there, and nothing can be allocated yet
        ((NO_PLUGIN,), "registering", "has no spidernet.io/gpu2sriov"),
    ],
)
def test_phases(edits: tuple[rails.EditCluster, ...], phase: str, reason: str) -> None:
    found = one(Tracker(), at(*edits))
    assert found.phase == phase, found
    assert reason in "; ".join(found.reasons)
    assert bool(found.reasons) == (phase != "ready")
    assert found.stuck is None


def test_resources_can_be_left_out() -> None:
    assert one(Tracker(registered=False), at(NO_PLUGIN)).phase == "ready"


@pytest.mark.parametrize(
    ("edits", "nodes", "phase"),
    [
        ((NO_STATE,), (NODE,), "missing"),
        ((rails.set_fields(sriov_policies=()),), (NODE,), "missing"),
        ((), ("w9", NODE), "ready"),
    ],
)
def test_nodes_that_are_asked_for(edits: Any, nodes: tuple[str, ...], phase: str) -> None:
    found = Tracker(nodes).look(at(*edits), 0)
    assert [node.name for node in found.nodes] == list(nodes)
    assert found.nodes[-1].phase == phase
    assert found.state == "progress"


def test_no_node_is_not_ready() -> None:
    """S243."""
    found = Tracker().look(at(rails.set_fields(sriov_policies=())), 0)
    assert (found.state, found.is_final, found.nodes) == ("missing", False, ())
    assert rollout.sentences(found) == ["No policy wants anything of any node."]


CAUSES: list[tuple[tuple[rails.EditCluster, ...], str, str]] = [
    ((FAILED,), "sync-failed", "BIOS"),
    ((rails.edit_state(NODE, sync="Failed", last_error="odd"),), "sync-failed", "config-daemon"),
    ((DRAINING,), "drain-blocked", "PodDisruptionBudgets"),
    ((QUEUED,), "drain-not-begun", "sriov-network-operator"),
    ((QUEUED, rails.edit_state("w2", current_state="Draining")), "drain-slot-taken", "maxUnavailable"),
    ((UNRENDERED,), "policy-not-rendered", "sriov-network-operator"),
    ((FRESH,), "daemon-silent", "sriov-network-config-daemon"),
    ((BUSY,), "daemon-silent", "sriov-network-config-daemon"),
    ((REBOOT, AWAY), "node-not-ready", "console"),
    ((NO_PLUGIN,), "plugin-not-registered", "device plugin"),
]


@pytest.mark.parametrize(("edits", "code", "hint"), CAUSES)
def test_a_node_that_does_not_change_is_stuck(
    edits: tuple[rails.EditCluster, ...], code: str, hint: str
) -> None:
    """S119-S124: not before its time, and with what to do."""
    tracker = Tracker(stuck_after=600)
    assert one(tracker, at(*edits), 0).stuck is None
    assert one(tracker, at(*edits), 599).stuck is None
    cause = one(tracker, at(*edits), 600).stuck
    assert cause is not None
    assert cause.code == code
    assert NODE in cause.message
    assert hint in cause.hint


def test_a_change_begins_the_time_anew() -> None:
    tracker = Tracker(stuck_after=600)
    one(tracker, at(QUEUED), 0)
    assert one(tracker, at(DRAINING), 500).since == 0
    assert one(tracker, at(DRAINING), 1099).stuck is None
    assert one(tracker, at(DRAINING), 1100).stuck is not None


POOLS = (
    ApiObject(
        "a", rails.NAMESPACE, spec={"nodeSelector": {"matchLabels": rails.LABELS}, "maxUnavailable": 1}
    ),
    ApiObject("b", rails.NAMESPACE, spec={"nodeSelector": {}, "maxUnavailable": 1}),
)


@pytest.mark.parametrize(
    ("pools", "code"),
    [
        (POOLS, "two-pools"),
        (POOLS[:1], None),
        ((replace(POOLS[0], spec={**POOLS[0].spec, "maxUnavailable": "10%"}),), "drain-limit-zero"),
        ((replace(POOLS[0], spec={**POOLS[0].spec, "maxUnavailable": 0}),), "drain-limit-zero"),
        ((replace(POOLS[0], spec={"nodeSelector": {}}),), None),
        ((), None),
    ],
)
def test_what_never_gets_on_is_told_at_once(pools: tuple[ApiObject, ...], code: Optional[str]) -> None:
    """S120, S121: with one look."""
    cause = one(Tracker(), at(QUEUED, rails.set_fields(sriov_pool_configs=pools))).stuck
    assert (cause.code if cause is not None else None) == code


def test_a_loop_of_reboots() -> None:
    """S125: each reboot is a change, so time alone never tells."""
    tracker = Tracker(stuck_after=600)
    found = []
    for number in range(4):
        boot = rails.edit_live(NODE, boot_id="boot-%d" % number)
        found.append(one(tracker, at(REBOOT, boot), number * 300.0))
    assert [node.boots for node in found] == [0, 1, 2, 3]
    assert [node.stuck.code if node.stuck else "" for node in found] == ["", "", "reboot-loop", "reboot-loop"]
    assert "/proc/cmdline" in found[-1].stuck.hint  # type: ignore[union-attr]


def test_one_reboot_is_none() -> None:
    tracker = Tracker()
    one(tracker, at(REBOOT, rails.edit_live(NODE, boot_id="a")), 0)
    one(tracker, at(REBOOT, AWAY, rails.edit_live(NODE, boot_id="a")), 10)
    back = one(tracker, at(REBOOT, rails.edit_live(NODE, boot_id="b")), 300)
    assert (back.phase, back.boots, back.stuck) == ("back", 1, None)
    assert back.way == (("rebooting", 300), ("back", 0))
    done = one(tracker, at(rails.edit_live(NODE, boot_id="b")), 310)
    assert (done.phase, done.boots) == ("ready", 1)


def test_back_needs_another_boot_and_a_ready_node() -> None:
    tracker = Tracker()
    one(tracker, at(QUEUED, rails.edit_live(NODE, boot_id="a")), 0)
    unnoticed = one(tracker, at(REBOOT, rails.edit_live(NODE, boot_id="b")), 10)
    assert unnoticed.phase == "back"  # the whole reboot lay between two looks
    assert one(tracker, at(REBOOT, AWAY, rails.edit_live(NODE, boot_id="c")), 20).phase == "rebooting"
    assert one(tracker, at(REBOOT, rails.edit_live(NODE, boot_id="c")), 30).phase == "back"


def test_a_node_that_is_back_and_does_not_get_on() -> None:
    tracker = Tracker(stuck_after=600)
    one(tracker, at(REBOOT, rails.edit_live(NODE, boot_id="a")), 0)
    edits = (REBOOT, rails.edit_live(NODE, boot_id="b"))
    assert one(tracker, at(*edits), 10).stuck is None
    cause = one(tracker, at(*edits), 610).stuck
    assert cause is not None
    assert cause.code == "daemon-silent"


def test_seconds_in_each_phase() -> None:
    tracker = Tracker()
    for now, edits in ((0, (QUEUED,)), (5, (QUEUED, BUSY)), (30, (DRAINING,)), (90, ())):
        found = one(tracker, at(*edits), now)
    assert found.way == (("queued", 30), ("draining", 60), ("ready", 0))
    assert one(tracker, at(), 100).way[-1] == ("ready", 10)


def test_news_tell_changes_only() -> None:
    tracker = Tracker(stuck_after=60)
    first = tracker.look(at(QUEUED), 0)
    assert rollout.news(None, first) == ["queued: w1", "ready: w2"]
    same = tracker.look(at(QUEUED), 10)
    assert rollout.news(first, same) == []
    assert rollout.standing(same) == "1 ready, 1 queued"
    moved = tracker.look(at(DRAINING), 20)
    assert rollout.news(same, moved) == ["queued -> draining: w1"]
    stuck = tracker.look(at(DRAINING), 80)
    (line,) = rollout.news(moved, stuck)
    assert line.startswith("stuck: w1 cannot be drained. Look for PodDisruptionBudgets")
    assert rollout.standing(stuck) == "1 ready, 1 draining, 1 of them stuck"
    assert rollout.news(stuck, tracker.look(at(DRAINING), 90)) == []  # said once


def test_many_nodes_are_all_named() -> None:
    names = ["n%02d" % number for number in range(20)]
    lines = rollout.news(None, Tracker().look(rails.cluster(*names), 0))
    assert [line.count(",") for line in lines] == [7, 7, 3]
    assert {name for line in lines for name in line.partition(": ")[2].split(", ")} == set(names)
    assert rollout.standing(Tracker().look(at(rails.set_fields(sriov_policies=())), 0)) == "no node yet"


def test_the_way_of_a_node_in_order() -> None:
    """Through drain, reboot and return; a state that flips (S116) is a phase of its own."""
    tracker = Tracker()
    way = [(UNRENDERED,), (), (QUEUED,), (DRAINING,), (REBOOT,), (REBOOT, AWAY), (BUSY,), (NO_PLUGIN,), ()]
    for number, edits in enumerate(way):
        tracker.look(at(*edits), float(number))
    phases = [phase for _at, name, phase in tracker.history() if name == NODE]
    assert phases == [
        "waiting", "ready", "queued", "draining", "rebooting", "configuring", "registering", "ready"
    ]  # fmt: skip
    assert [at_ for at_, name, _phase in tracker.history() if name == "w2"] == [0.0]


def test_all_that_are_left_must_be_stuck() -> None:
    tracker = Tracker(stuck_after=10)
    both = (DRAINING, rails.edit_state("w2", sync="Failed"))
    tracker.look(at(*both), 0)
    assert tracker.look(at(DRAINING, rails.edit_state("w2", sync="InProgress")), 20).state == "progress"
    assert tracker.look(at(*both), 40).state == "progress"  # w2 has changed just now
    assert tracker.look(at(*both), 60).state == "failed"
    found = tracker.look(at(DRAINING), 80)
    assert (found.state, found.is_final) == ("stuck", True)
    assert rollout.sentences(found) == [
        "w1 cannot be drained. Look for PodDisruptionBudgets without a disruption left, and for pods that do not end."
    ]


def test_a_cordoned_node_is_told() -> None:
    """S122: a drain that fails leaves it cordoned."""
    tracker = Tracker(stuck_after=10)
    edits = (DRAINING, rails.edit_live(NODE, unschedulable=True))
    one(tracker, at(*edits), 0)
    assert one(tracker, at(*edits), 10).stuck.message == "w1 cannot be drained and stays cordoned"  # type: ignore[union-attr]


def test_a_thousand_states_in_two_seconds() -> None:
    cluster = rails.cluster(*["n%04d" % number for number in range(1000)])
    start = time.process_time()
    found = Tracker().look(cluster, 0)
    most = 2 if sys.gettrace() is None else 10  # each line is counted when the coverage is measured
    assert time.process_time() - start < most
    assert (found.state, len(found.nodes)) == ("ready", 1000)
