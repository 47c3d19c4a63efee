# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Area ROLL: what changes over many nodes left, or are doing. Private to rdma.k8s: it may change with any release.

These checks need a snapshot of the cluster. A roll is live until its record says that it is complete, rolled back or
aborted; what its plan wants and how far it is stands in its record, the rest in annotations of the nodes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from ..cluster_snapshot import (
    Claim,
    ClusterNode,
    ClusterSnapshot,
    DeviceTaintRule,
    DisruptionBudget,
    Roll,
    RollLease,
)
from ..finding import CRITICAL, ERROR, INFO, WARN, WARNING, Detail
from ..oke.constants import DRIVER
from ..roll.fence import MARK as DRAIN_MARK, RULE_NAME as DRAIN_RULE
from ..roll.names import LEASE, RECORD, TAINT, Phase, State
from ..stamps import seconds_between
from .context import Fleet
from .reads import needs, unread
from .registry import Outcome, bad, cluster_check, listed, ok, passed, rolled_up, skipped, unclear, unknown

ENDS = (Phase.COMPLETE.value, Phase.ROLLED_BACK.value, Phase.ABORTED.value)
NOT_BEGUN = ("", State.DONE.value, State.SKIPPED.value)
"""States of a node in which nothing of a roll is left to do."""
FENCE_MARKS = ("roll-owner", "roll-lock", "initial-unschedulable")
"""Annotations of a fence, without their prefix: the last patch of a roll removes them with the fence."""

_NO_ROLL = "No roll is recorded."


def mark(node: ClusterNode, name: str) -> str:
    """An annotation of a roll on a node; its prefix is a choice of the plan."""
    for key, value in node.annotations.items():
        if key.partition("/")[2] == name:
            return value
    return ""


def is_live(roll: Roll) -> bool:
    """Whether a roll has not ended; one whose record cannot be understood is taken for live."""
    return roll.phase not in ENDS


def _read(fleet: Fleet) -> ClusterSnapshot:
    return fleet.installed.cluster


@cluster_check(
    "RDMA-ROLL-001",
    "Nobody drives a roll",
    CRITICAL,
    "Wait for it ('-e action=status' shows how far it is); take the lease by force only when its holder is dead.",
    evidence=("leases.coordination.k8s.io",),
)
@needs("roll_leases")
def lease(fleet: Fleet) -> Outcome:
    """A definition of this project: the Lease of rolls is free, or was not renewed for its own duration (DEV-30)."""
    cluster = _read(fleet)
    details = [_held(entry, cluster.collected_at) for entry in cluster.roll_leases or ()]
    return rolled_up(details, "The lease is free.", "") if details else passed("There is no lease.")


def _held(entry: RollLease, now: str) -> Detail:
    subject = "%s/%s" % (entry.namespace, LEASE)
    if not entry.holder:
        return ok(subject)
    age = seconds_between(entry.renewed[:19] + "Z", now)
    if age is None or not entry.duration:
        return unclear(subject, "%s holds it, and it does not say until when" % entry.holder)
    if age > entry.duration:
        return ok(subject)
    told = "%s holds it since %s, renewed %d s before it was read" % (entry.holder, entry.acquired, age)
    return bad(subject, told, "free", entry.holder)


@cluster_check(
    "RDMA-ROLL-002",
    "No node is half-way in a roll that nobody goes on with",
    ERROR,
    "Resume that roll, or roll it back: '-e action=resume' or '-e action=rollback' of its playbook.",
    evidence=("nodes", "configmaps"),
)
@needs("nodes")
def half_done(fleet: Fleet) -> Outcome:
    """A definition of this project: a node that is begun belongs to the one live roll that lists it."""
    cluster = _read(fleet)
    begun = [node for node in cluster.nodes or () if mark(node, "roll-state") not in NOT_BEGUN]
    if not begun:
        return passed("No node is half-way.")
    missing = unread(cluster, "rolls")
    if missing is not None:
        return missing
    rolls = {roll.hash: roll for roll in cluster.rolls or ()}
    live = sorted(
        {mark(node, "roll-desired") for node in begun if _is_live_hash(rolls, mark(node, "roll-desired"))},
        key=lambda name: (rolls[name].started, name),
    )
    details = [_belongs(node, rolls, live[-1:]) for node in begun]
    return rolled_up(details, "%%d nodes are half-way in the roll %s." % listed(live), "")


def _is_live_hash(rolls: dict[str, Roll], name: str) -> bool:
    return name in rolls and is_live(rolls[name])


def _belongs(node: ClusterNode, rolls: dict[str, Roll], newest: list[str]) -> Detail:
    name, state = mark(node, "roll-desired"), mark(node, "roll-state")
    expected = "a live roll"
    found = rolls.get(name)
    if found is None:
        told = "is in the state %s of the roll %s, which has no record" % (state, name or "(none)")
        return bad(node.name, told, expected, name)
    if found.unread:
        return unclear(node.name, "is in the state %s of the roll %s: %s" % (state, name, found.unread))
    if not is_live(found):
        told = "is in the state %s of the roll %s, which is %s" % (state, name, found.phase)
        return bad(node.name, told, expected, found.phase)
    if name not in newest:
        told = "is in the state %s of the roll %s, and the roll %s is live, too" % (state, name, newest[0])
        return bad(node.name, told, "one live roll", "two")
    return ok(node.name)


@cluster_check(
    "RDMA-ROLL-003",
    "No RDMA node is cordoned by somebody else",
    INFO,
    "Find out who cordoned it: a roll counts it against its budget, and leaves it cordoned.",
    evidence=("nodes",),
)
@needs("nodes")
def foreign_cordons(fleet: Fleet) -> Outcome:
    """DEV-19, DEV-29: a node that is unschedulable without the mark of an owner; a list, nothing is to be mended."""
    cluster = _read(fleet)
    wanted = _rdma_nodes(fleet)
    details = [
        bad(node.name, _cordoned_by(node), "schedulable", "unschedulable")
        if node.unschedulable and not mark(node, "roll-owner")
        else ok(node.name)
        for node in cluster.nodes or ()
        if node.name in wanted
    ]
    return rolled_up(details, "None of %d.", "No RDMA node is known.", as_status=WARN)


def _cordoned_by(node: ClusterNode) -> str:
    return "is cordoned by a drain" if mark(node, DRAIN_MARK) else "is cordoned without an owner"


def _rdma_nodes(fleet: Fleet) -> set[str]:
    """The nodes that publish devices, have a pod of the driver, or are nodes of the run."""
    installed = fleet.installed
    found = set(installed.slices)
    for program in installed.dranet:
        found |= {name for name in program.pods if name}
    return found | {entry.name for entry in fleet.cluster_nodes.values() if entry is not None}


@cluster_check(
    "RDMA-ROLL-004",
    "Every pod with claims can be evicted some time",
    ERROR,
    "Let the budget allow one disruption (maxUnavailable: 1), or end the workload before the roll.",
    evidence=("poddisruptionbudgets.policy", "pods"),
)
@needs("disruption_budgets")
def evictable(fleet: Fleet) -> Outcome:
    """A definition of this project: a budget that needs all its pods refuses every eviction, and a pod that two budgets
    select cannot be evicted at all."""
    cluster = _read(fleet)
    budgets = cluster.disruption_budgets or ()
    details = [_allows(entry) for entry in budgets if entry.pods or (entry.pods is None and entry.never)]
    details += _twice(budgets)
    if not details:
        return passed("No budget is about a pod with claims.")
    return rolled_up(details, "%d budgets allow evictions some time.", "")


def _allows(entry: DisruptionBudget) -> Detail:
    subject = "%s/%s" % (entry.namespace, entry.name)
    if entry.pods is None:
        return unclear(subject, "it never allows an eviction, and its pods were not read")
    if not entry.never:
        return ok(subject)
    told = "it wants %d of %d pods healthy, so it never allows the eviction of %s" % (
        entry.desired,
        entry.expected,
        listed(entry.pods),
    )
    return bad(subject, told, "fewer than %d" % entry.expected, str(entry.desired))


def _twice(budgets: Iterable[DisruptionBudget]) -> Iterator[Detail]:
    """The pods that more than one budget selects."""
    found: dict[str, list[str]] = {}
    for entry in budgets:
        for pod in entry.pods or ():
            found.setdefault("%s/%s" % (entry.namespace, pod), []).append(entry.name)
    for subject, names in sorted(found.items()):
        if len(names) > 1:
            told = "the budgets %s select it, so the API server refuses its eviction" % listed(sorted(names))
            yield bad(subject, told, "one budget", str(len(names)))


@cluster_check(
    "RDMA-ROLL-005",
    "The budget of the roll leaves a node to go on with",
    ERROR,
    "Bring back the nodes that are down or cordoned, or plan again with a larger budget.",
    evidence=("nodes", "configmaps"),
)
@needs("rolls")
def budget(fleet: Fleet) -> Outcome:
    """A definition of this project: what is down or cordoned by others uses up the budget; a roll that waits for that
    says so."""
    cluster = _read(fleet)
    live = [roll for roll in cluster.rolls or () if is_live(roll)]
    missing = unread(cluster, "nodes") if live else None
    if missing is not None:
        return missing
    details = [_left(roll, cluster) for roll in live]
    return rolled_up(details, "At least one node may go on.", "No roll is live.")


def _left(roll: Roll, cluster: ClusterSnapshot) -> Detail:
    subject = RECORD + roll.hash
    if roll.unread:
        return unclear(subject, roll.unread)
    wanted = set(roll.nodes)
    others = [
        node.name
        for node in cluster.nodes or ()
        if node.name in wanted
        and mark(node, "roll-owner") != roll.hash
        and (node.unschedulable or not node.ready)
    ]
    if roll.budget - len(others) >= 1 or (others and roll.reason):
        return ok(subject)
    told = "its budget is %d, and %s are down or cordoned by others" % (
        roll.budget,
        listed(others) or "no nodes",
    )
    return bad(subject, told, "at least 1 left", str(roll.budget - len(others)))


@cluster_check(
    "RDMA-ROLL-006",
    "No driver was replaced under a claim",
    CRITICAL,
    "End the pods with these claims and start them again: what the driver prepared for them is in the old range.",
    evidence=("configmaps", "pods", "resourceclaims.resource.k8s.io"),
    targets=("oke_dranet",),
)
@needs("rolls")
def order(fleet: Fleet) -> Outcome:
    """F24, DEV-23: on a node of a roll, no claim is older than the pod of the driver that the roll made."""
    cluster = _read(fleet)
    started = [roll for roll in cluster.rolls or () if roll.started]
    if not started:
        return skipped("No roll was started.")
    missing = unread(cluster, "nodes", "claims", "daemonsets")
    if missing is not None:
        return missing
    if any(found.daemonset.pods is None for found in fleet.installed.range_source):
        return unknown("The pods of the driver could not be read.")
    nodes = {node.name: node for node in cluster.nodes or ()}
    details = [
        detail
        for roll in started
        for name in roll.nodes
        if name in nodes
        for detail in _audited(fleet, roll, nodes[name])
    ]
    return rolled_up(
        details, "%d pods of the driver are older than every claim.", "No node has a driver of a roll."
    )


def _audited(fleet: Fleet, roll: Roll, node: ClusterNode) -> Iterator[Detail]:
    """One detail for a node whose driver the roll replaced; none when it did not."""
    held = fleet.installed.range_pod(node.name)
    if held is None:
        return
    pod = held[1]
    since_start = seconds_between(roll.started, pod.created)
    if since_start is None:
        yield unclear(node.name, "it is not known when the pod %s was made" % pod.name)
        return
    done = mark(node, "roll-state") == State.DONE.value and mark(node, "roll-desired") == roll.hash
    after = seconds_between(mark(node, "roll-since"), pod.created) if done else None
    if since_start < 0 or (after is not None and after > 0):
        return  # it is older than the roll, or was replaced after it
    older = []
    for claim in fleet.installed.cluster.claims or ():
        before = seconds_between(claim.allocated_at, pod.created)
        if before is not None and before > 0 and _is_on(claim, node.name):
            older.append("%s/%s" % (claim.namespace, claim.name))
    if older:
        told = "the pod %s was made at %s, under the claims %s" % (pod.name, pod.created, listed(older))
        yield bad(node.name, told, "no claim", str(len(older)))
    else:
        yield ok(node.name)


def _is_on(claim: Claim, node: str) -> bool:
    """Whether a claim has a device of the driver on a node: its pool has the name of the node (F99)."""
    return any(entry.driver == DRIVER and entry.pool == node for entry in claim.devices)


@cluster_check(
    "RDMA-ROLL-007",
    "The driver is updated as before the roll",
    ERROR,
    "Set the update strategy of the DaemonSet back to what it was.",
    evidence=("configmaps", "daemonsets.apps"),
    targets=("oke_dranet",),
)
@needs("rolls")
def restored(fleet: Fleet) -> Outcome:
    """DEV-23: a roll sets OnDelete before it changes the option, and brings back at its end what was there before."""
    cluster = _read(fleet)
    rolls = sorted(cluster.rolls or (), key=lambda roll: (roll.started, roll.hash))
    if not rolls:
        return skipped(_NO_ROLL)
    if any(is_live(roll) for roll in rolls):
        return skipped("A roll is live; it restores the strategy at its end.")
    missing = unread(cluster, "daemonsets")
    if missing is not None:
        return missing
    newest = [roll for roll in rolls if roll.kept][-1:]
    details = [detail for roll in newest for detail in _strategies(roll, cluster)]
    return rolled_up(details, "As before the roll.", "Every roll has put back what it kept.")


def _strategies(roll: Roll, cluster: ClusterSnapshot) -> Iterator[Detail]:
    try:
        kept = json.loads(roll.kept)
    except ValueError:
        kept = None
    if not isinstance(kept, dict):
        yield unclear(RECORD + roll.hash, "what it kept cannot be read")
        return
    present = {"%s/%s" % (entry.namespace, entry.name): entry for entry in cluster.daemonsets or ()}
    for name, value in sorted(kept.items()):
        wanted = value.get("type") if isinstance(value, dict) else value
        entry = present.get(name)
        if entry is None:
            continue  # it was removed since
        if entry.strategy == (wanted or "RollingUpdate"):
            yield ok(name)
        else:
            told = "its strategy is %s, before the roll it was %s" % (entry.strategy, wanted)
            yield bad(name, told, str(wanted), entry.strategy)


@cluster_check(
    "RDMA-ROLL-008",
    "No marks of a fence are left on a node that is done",
    WARNING,
    "Resume the roll, which removes them with the fence; when its record is gone, remove them by hand.",
    evidence=("nodes", "configmaps"),
)
@needs("nodes")
def leftovers(fleet: Fleet) -> Outcome:
    """DEV-28: fence and marks go in one patch, so that marks without a fence mean that somebody else had a hand in it.
    The state ``Done`` with its hash stays, and is how a second run knows what is done."""
    cluster = _read(fleet)
    details = []
    for node in cluster.nodes or ():
        left = [name for name in FENCE_MARKS if mark(node, name)]
        if left and mark(node, "roll-state") in NOT_BEGUN:
            told = "has %s of the roll %s and is not in it" % (
                listed(left),
                mark(node, "roll-desired") or "?",
            )
            details.append(bad(node.name, told, "none", listed(left)))
    return rolled_up(details, "", "", as_status=WARN) if details else passed("None.")


@cluster_check(
    "RDMA-ROLL-009",
    "No device taint of a roll is left",
    ERROR,
    "Delete the rule with kubectl, when no roll is live and its node has the range of the others.",
    evidence=("devicetaintrules.resource.k8s.io", "configmaps", "nodes"),
)
@needs("taint_rules")
def taints(fleet: Fleet) -> Outcome:
    """A definition of this project: a rule with our key belongs to a live roll, or to a node that an aborted one left
    half-way, which RDMA-ROLL-002 tells."""
    cluster = _read(fleet)
    rules = [rule for rule in cluster.taint_rules or () if _of_roll(rule)]
    if not rules:
        return passed("There is none.")
    missing = unread(cluster, "rolls", "nodes")
    if missing is not None:
        return missing
    fenced = {name for roll in cluster.rolls or () if is_live(roll) for name in roll.nodes}
    fenced |= {node.name for node in cluster.nodes or () if mark(node, "roll-state") not in NOT_BEGUN}
    details = [
        ok(rule.name)
        if rule.pool in fenced
        else bad(rule.name, "it taints the devices of %s" % (rule.pool or "all nodes"), "no rule", rule.taint)
        for rule in rules
    ]
    return rolled_up(details, "%d rules, each of a roll that goes on.", "")


def _of_roll(rule: DeviceTaintRule) -> bool:
    """Whether a rule has our key and is not that of a drain, which stays until the drain is taken back."""
    return rule.taint.partition(":")[0].partition("=")[0] == TAINT and not rule.name.startswith(DRAIN_RULE)
