# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Cases of the area ROLL. What is right about a roll is a definition of this project; facts are cited where they are
one. The sick node is called 10.140.77.19 in the cluster, which was read at 09:01:00."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, Callable

from ansible_collections.rdma.k8s.plugins.module_utils.core.cluster_snapshot import (
    ClusterSnapshot,
    DeviceTaintRule,
    DisruptionBudget,
    Roll,
    RollLease,
)
from ansible_collections.rdma.k8s.tests.support import cluster_fleet as api

from .dra import case, no_driver, not_asked, pods_unread, unread

Edit = Callable[[ClusterSnapshot], ClusterSnapshot]

SICK, NODES = "10.140.77.19", ("10.140.77.19", "10.140.77.20", "10.140.77.21")
HASH, OTHER = "3f2a9c", "77be01"
BEGUN = "2026-02-27T10:00:00Z"  # a day after the pods and the claims of the healthy cluster
REPLACED = "2026-02-27T10:04:00Z"
ENDED = "2026-02-27T10:30:00Z"
STRATEGY = json.dumps({"kube-system/rdma-k8s-provider": "OnDelete", "kube-system/gone": "RollingUpdate"})


def both(*edits: Edit) -> Edit:
    def made(cluster: ClusterSnapshot) -> ClusterSnapshot:
        for edit in edits:
            cluster = edit(cluster)
        return cluster

    return made


def roll(**changes: Any) -> Roll:
    """The record of a roll that goes on."""
    wanted = {
        "hash": HASH,
        "namespace": "kube-system",
        "changes": "range",
        "old": api.OLD_RANGE,
        "new": api.CHILD_RANGE,
        "strategy": "drain_all",
        "fence": "cordon",
        "budget": 1,
        "nodes": NODES,
        "phase": "Rolling",
        "started": BEGUN,
    }
    return Roll(**{**wanted, **changes})


def rolls(*found: Roll) -> Edit:
    return lambda cluster: replace(cluster, rolls=found)


def lease(**changes: Any) -> Edit:
    held = {
        "holder": "ann@control-1",
        "acquired": BEGUN,
        "renewed": "2026-03-02T09:00:40.25Z",
        "duration": 60,
    }
    entry = RollLease("kube-system", **{**held, **changes})
    return lambda cluster: replace(cluster, roll_leases=(entry,))


def marked(state: str, of: str = HASH, number: int = 0, **marks: str) -> Edit:
    """Annotations of a roll on a node."""
    words = {"rdma-k8s/roll-state": state, "rdma-k8s/roll-desired": of}
    more = {"rdma-k8s/" + name.replace("_", "-"): value for name, value in marks.items()}
    held = {key: value for key, value in {**words, **more}.items() if value}
    return lambda cluster: api.edit_node(cluster, number, annotations=held)


def other_prefix(cluster: ClusterSnapshot) -> ClusterSnapshot:
    return api.edit_node(cluster, annotations={"example.com/roll-state": "Failed"})


def cordoned(cluster: ClusterSnapshot) -> ClusterSnapshot:
    node = (cluster.nodes or ())[0]
    return api.edit_node(cluster, annotations=node.annotations, unschedulable=True)


def down(cluster: ClusterSnapshot) -> ClusterSnapshot:
    return api.edit_node(cluster, conditions={"Ready": "False"})


def budgets(*found: DisruptionBudget) -> Edit:
    return lambda cluster: replace(cluster, disruption_budgets=found)


def pdb(name: str = "train", desired: int = 1, expected: int = 2, **more: Any) -> DisruptionBudget:
    wanted = {"allowed": expected - desired, "healthy": expected, "pods": ("worker-0",)}
    return DisruptionBudget("ml", name, desired=desired, expected=expected, **{**wanted, **more})


def replaced(at: str = REPLACED, name: str = api.PROVIDER) -> Edit:
    """The pod of the driver on the sick node was made anew."""
    return lambda cluster: api.edit_pod(cluster, name, created=at, started=at)


def claimed(at: str) -> Edit:
    return lambda cluster: api.edit_claim(cluster, allocated_at=at)


def rule(
    pool: str = SICK, taint: str = "rdma-k8s/roll=3f2a9c:NoSchedule", name: str = "rdma-roll-3f2a9c-0"
) -> Edit:
    found = DeviceTaintRule(name, "dra.net", pool, "", taint)
    return lambda cluster: replace(cluster, taint_rules=(found,))


CASES = [
    # RDMA-ROLL-001: DEV-30
    case("RDMA-ROLL-001", "pass", "There is no lease", "a cluster without a lease"),
    case("RDMA-ROLL-001", "pass", "The lease is free", "a lease that nobody holds", lease(holder="")),
    case(
        "RDMA-ROLL-001",
        "pass",
        "The lease is free",
        "a lease whose holder is gone for ten minutes",
        lease(renewed="2026-03-02T08:51:00.000000Z"),
    ),
    case(
        "RDMA-ROLL-001",
        "fail",
        "kube-system/rdma-roll: ann@control-1 holds it since 2026-02-27T10:00:00Z, renewed 20 s before it was read",
        "a lease that was renewed 20 s ago",
        lease(),
    ),
    case(
        "RDMA-ROLL-001",
        "fail",
        "renewed 60 s before",
        "a lease at the end of its time",
        lease(renewed="2026-03-02T09:00:00.000000Z"),
    ),
    case(
        "RDMA-ROLL-001",
        "unknown",
        "ann@control-1 holds it, and it does not say until when",
        "a lease without a time",
        lease(renewed=""),
    ),
    case(
        "RDMA-ROLL-001",
        "unknown",
        "The subset 'rolls' of the cluster was not read",
        "leases that nobody asked for",
        not_asked("roll_leases", "rolls"),
    ),
    # RDMA-ROLL-002
    case("RDMA-ROLL-002", "pass", "No node is half-way", "no roll"),
    case(
        "RDMA-ROLL-002",
        "pass",
        "1 nodes are half-way in the roll 3f2a9c",
        "a node of the live roll",
        both(rolls(roll()), marked("Draining")),
    ),
    case(
        "RDMA-ROLL-002",
        "pass",
        "No node is half-way",
        "a node that is done",
        both(rolls(roll(phase="Complete")), marked("Done")),
    ),
    case(
        "RDMA-ROLL-002",
        "fail",
        "10.140.77.19: is in the state Failed of the roll 3f2a9c, which is Aborted",
        "a node of an aborted roll",
        both(rolls(roll(phase="Aborted")), marked("Failed", roll_owner=HASH)),
    ),
    case(
        "RDMA-ROLL-002",
        "fail",
        "which has no record",
        "a node of a roll that is not recorded",
        marked("Draining"),
    ),
    case("RDMA-ROLL-002", "fail", "state Failed of the roll (none)", "marks of another prefix", other_prefix),
    case(
        "RDMA-ROLL-002",
        "fail",
        "10.140.77.19: is in the state Draining of the roll 3f2a9c, and the roll 77be01 is live, too",
        "nodes of two live rolls",
        both(
            rolls(roll(), roll(hash=OTHER, started=ENDED)),
            marked("Draining"),
            marked("Fenced", OTHER, 1),
        ),
    ),
    case(
        "RDMA-ROLL-002",
        "unknown",
        "its plan is no JSON object",
        "a record that cannot be understood",
        both(
            rolls(Roll(HASH, unread="its plan is no JSON object")),
            marked("Draining"),
        ),
        also="ROLL-005 unknown",
    ),
    case(
        "RDMA-ROLL-002",
        "unknown",
        "Not readable: configmaps",
        "records that may not be read",
        both(unread("rolls", "configmaps"), marked("Draining")),
        also="ROLL-005 unknown ROLL-006 unknown ROLL-007 unknown",
    ),
    # RDMA-ROLL-003: DEV-19, DEV-29
    case("RDMA-ROLL-003", "pass", "None of 3", "nodes that take work"),
    case(
        "RDMA-ROLL-003",
        "warn",
        "10.140.77.19: is cordoned without an owner",
        "a cordon without an owner",
        cordoned,
    ),
    case(
        "RDMA-ROLL-003",
        "warn",
        "10.140.77.19: is cordoned by a drain",
        "a cordon of a drain",
        both(marked("", "", drain_fence="cordon"), cordoned),
    ),
    case(
        "RDMA-ROLL-003",
        "pass",
        "None of 3",
        "a cordon of the live roll",
        both(rolls(roll()), marked("Draining", roll_owner=HASH), cordoned),
    ),
    # RDMA-ROLL-004: what the eviction API refuses for ever
    case("RDMA-ROLL-004", "pass", "No budget is about a pod with claims", "no budgets"),
    case(
        "RDMA-ROLL-004",
        "pass",
        "1 budgets allow evictions some time",
        "a budget of one of two",
        budgets(pdb()),
    ),
    case(
        "RDMA-ROLL-004",
        "pass",
        "No budget is about a pod with claims",
        "a budget that never allows, for pods without claims",
        budgets(pdb(desired=2, pods=())),
    ),
    case(
        "RDMA-ROLL-004",
        "pass",
        "1 budgets allow",
        "a budget that allows none just now",
        budgets(pdb(healthy=1, allowed=0)),
    ),
    case(
        "RDMA-ROLL-004",
        "fail",
        "ml/train: it wants 2 of 2 pods healthy, so it never allows the eviction of worker-0",
        "a budget that needs all its pods",
        budgets(pdb(desired=2)),
    ),
    case(
        "RDMA-ROLL-004",
        "fail",
        "ml/worker-0: the budgets a, b select it, so the API server refuses its eviction",
        "a pod that two budgets select",
        budgets(pdb("b"), pdb("a")),
    ),
    case(
        "RDMA-ROLL-004",
        "unknown",
        "it never allows an eviction, and its pods were not read",
        "a budget whose pods may not be read",
        budgets(pdb(desired=2, pods=None)),
    ),
    case(
        "RDMA-ROLL-004",
        "unknown",
        "Not readable: poddisruptionbudgets.policy",
        "budgets that may not be read",
        unread("disruption_budgets", "poddisruptionbudgets.policy"),
    ),
    # RDMA-ROLL-005
    case("RDMA-ROLL-005", "skip", "No roll is live", "no live roll", rolls(roll(phase="Complete"))),
    case("RDMA-ROLL-005", "pass", "At least one node may go on", "a budget of one", rolls(roll())),
    case(
        "RDMA-ROLL-005",
        "fail",
        "rdma-roll-3f2a9c: its budget is 1, and 10.140.77.19 are down or cordoned by others",
        "a node that is down",
        both(rolls(roll()), down),
    ),
    case(
        "RDMA-ROLL-005",
        "fail",
        "its budget is 0, and no nodes are down",
        "a budget of nothing",
        rolls(roll(budget=0)),
    ),
    case(
        "RDMA-ROLL-005",
        "fail",
        "10.140.77.19 are down or cordoned by others",
        "a node that another tool cordoned",
        both(rolls(roll()), cordoned),
        also="ROLL-003 warn",
    ),
    case(
        "RDMA-ROLL-005",
        "pass",
        "At least one node may go on",
        "a node that the roll fenced itself",
        both(rolls(roll()), marked("Rebooting", roll_owner=HASH), cordoned, down),
    ),
    case(
        "RDMA-ROLL-005",
        "pass",
        "At least one node may go on",
        "a roll that says what it waits for",
        both(rolls(roll(reason="the budget is used up by 10.140.77.19")), down),
    ),
    case("RDMA-ROLL-005", "pass", "may go on", "a budget of two", both(rolls(roll(budget=2)), down)),
    # RDMA-ROLL-006: F24, DEV-23
    case("RDMA-ROLL-006", "skip", "No roll was started", "a roll that is planned", rolls(roll(started=""))),
    case(
        "RDMA-ROLL-006",
        "pass",
        "1 pods of the driver are older than every claim",
        "a driver that was replaced before the claims",
        both(rolls(roll()), replaced(), claimed("2026-02-27T10:05:00Z")),
    ),
    case(
        "RDMA-ROLL-006",
        "fail",
        "10.140.77.19: the pod rdma-k8s-provider-0 was made at 2026-02-27T10:04:00Z, under the claims "
        "ml/train-10.140.77.19",
        "a driver that was replaced under a claim",
        both(rolls(roll()), replaced()),
    ),
    case(
        "RDMA-ROLL-006",
        "fail",
        "the pod dranet-0 was made",
        "DRANET replaced under a claim",
        both(rolls(roll()), replaced(name=api.DRANET)),
        native=True,
    ),
    case(
        "RDMA-ROLL-006",
        "skip",
        "No node has a driver of a roll",
        "DRANET replaced, whose option did not change",
        both(rolls(roll()), replaced(name=api.DRANET)),
    ),
    case(
        "RDMA-ROLL-006",
        "skip",
        "No node has a driver of a roll",
        "a driver that was replaced after the roll",
        both(
            rolls(roll(phase="Complete")), marked("Done", roll_since=ENDED), replaced("2026-02-28T00:00:00Z")
        ),
    ),
    case(
        "RDMA-ROLL-006",
        "fail",
        "under the claims",
        "a driver that a complete roll replaced under a claim",
        both(rolls(roll(phase="Complete")), marked("Done", roll_since=ENDED), replaced()),
    ),
    case(
        "RDMA-ROLL-006",
        "unknown",
        "it is not known when the pod rdma-k8s-provider-0 was made",
        "a record that does not tell when a pod was made",
        both(rolls(roll()), replaced("")),
    ),
    case(
        "RDMA-ROLL-006",
        "unknown",
        "The pods of the driver could not be read",
        "pods of the driver that may not be read in a roll",
        both(rolls(roll()), pods_unread),
        native=True,
        also="DRA-001 unknown DRA-008 unknown DRA-015 unknown",
    ),
    # RDMA-ROLL-007: DEV-23
    case("RDMA-ROLL-007", "skip", "No roll is recorded", "no record"),
    case(
        "RDMA-ROLL-007",
        "skip",
        "it restores the strategy at its end",
        "a live roll",
        rolls(roll(kept=STRATEGY)),
    ),
    case(
        "RDMA-ROLL-007",
        "pass",
        "As before the roll",
        "a strategy as it was",
        rolls(roll(phase="Complete", kept=STRATEGY)),
    ),
    case(
        "RDMA-ROLL-007",
        "fail",
        "kube-system/rdma-k8s-provider: its strategy is OnDelete, before the roll it was RollingUpdate",
        "a strategy that was not restored",
        rolls(
            roll(
                phase="Complete",
                kept=json.dumps({"kube-system/rdma-k8s-provider": {"type": "RollingUpdate"}}),
            )
        ),
    ),
    case(
        "RDMA-ROLL-007",
        "pass",
        "As before the roll",
        "only the newest roll counts",
        rolls(
            roll(phase="Complete", hash=OTHER, kept=json.dumps({"kube-system/dranet": "RollingUpdate"})),
            roll(phase="RolledBack", started=ENDED, kept=STRATEGY),
        ),
    ),
    case(
        "RDMA-ROLL-007",
        "unknown",
        "rdma-roll-3f2a9c: what it kept cannot be read",
        "a record that cannot be restored",
        rolls(roll(phase="Complete", kept="?")),
    ),
    case(
        "RDMA-ROLL-007",
        "skip",
        "Every roll has put back what it kept",
        "a roll without a driver",
        both(rolls(roll(phase="Complete")), no_driver),
        also="DRA-001 fail",
    ),
    # RDMA-ROLL-008: DEV-28
    case("RDMA-ROLL-008", "pass", "None", "no marks"),
    case("RDMA-ROLL-008", "pass", "None", "a node that is done, without marks", marked("Done")),
    case(
        "RDMA-ROLL-008",
        "pass",
        "None",
        "marks of a node in the roll",
        both(rolls(roll()), marked("Verified", roll_owner=HASH, initial_unschedulable="false")),
    ),
    case(
        "RDMA-ROLL-008",
        "warn",
        "10.140.77.19: has roll-owner, initial-unschedulable of the roll 3f2a9c and is not in it",
        "marks that stayed behind",
        marked("Done", roll_owner=HASH, initial_unschedulable="false"),
    ),
    case(
        "RDMA-ROLL-008",
        "warn",
        "10.140.77.19: has roll-lock",
        "a lock without a state",
        marked("", roll_lock=HASH),
    ),
    # RDMA-ROLL-009
    case("RDMA-ROLL-009", "pass", "There is none", "no rules"),
    case("RDMA-ROLL-009", "pass", "There is none", "a rule of a drain", rule(name="rdma-drain-n1")),
    case(
        "RDMA-ROLL-009", "pass", "There is none", "a rule of somebody else", rule(taint="broken:NoSchedule")
    ),
    case(
        "RDMA-ROLL-009",
        "pass",
        "1 rules",
        "a rule of the live roll",
        both(rolls(roll(fence="taint")), rule()),
    ),
    case(
        "RDMA-ROLL-009",
        "fail",
        "rdma-roll-3f2a9c-0: it taints the devices of 10.140.77.19",
        "a rule of a roll that ended",
        both(rolls(roll(phase="Complete")), rule()),
    ),
    case(
        "RDMA-ROLL-009",
        "fail",
        "it taints the devices of 10.140.77.99",
        "a rule of the live roll for a node that is not in it",
        both(rolls(roll(fence="taint")), rule("10.140.77.99")),
    ),
    case(
        "RDMA-ROLL-009",
        "pass",
        "1 rules",
        "a rule for a node that an aborted roll left",
        both(rolls(roll(phase="Aborted")), rule(), marked("Failed")),
        also="ROLL-002 fail",
    ),
    case(
        "RDMA-ROLL-009",
        "unknown",
        "The subset 'rolls' of the cluster was not read",
        "a rule without the records",
        both(not_asked("rolls", "rolls"), rule()),
        also="ROLL-005 unknown ROLL-006 unknown ROLL-007 unknown",
    ),
]
