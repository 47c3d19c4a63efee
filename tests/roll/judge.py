# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What must be true when a roll over a slot has ended, whatever happened to its controllers."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from audit import Deeds
from recorder import Change, mixtures
from slots import DRIVER, PREFIX, Slot, record_of

LEFT = ("roll-lock", "roll-owner", "initial-unschedulable", "roll-last-error", "roll-before", "roll-boot-id")
"""Marks of which none may be left on a node that is done."""


@dataclass
class Before:
    """A slot before a roll."""

    version: int
    since: str
    train: frozenset[str]
    train_names: frozenset[str]
    cpu: frozenset[str]
    cordoned: frozenset[str]

    @classmethod
    def of(cls, slot: Slot, version: int, since: str) -> Before:
        """The slot as it is now."""
        train = slot.pods("train")
        return cls(
            version=version,
            since=since,
            train=frozenset(train),
            train_names=frozenset(pod["metadata"]["name"] for pod in train.values()),
            cpu=frozenset(slot.pods("cpu")),
            cordoned=frozenset(
                node["metadata"]["name"] for node in slot.all_nodes() if node["spec"].get("unschedulable")
            ),
        )


@dataclass
class Judgement:
    """What was found.

    :param problems: in words; none: the roll did what it must.
    """

    problems: list[str] = field(default_factory=list)
    deeds: Deeds = field(default_factory=Deeds)


def converged(slot: Slot, wanted: str) -> list[str]:
    """Whether every node, the driver and the record of a slot say that the roll is over and did its work."""
    problems = []
    for node in slot.all_nodes():
        name, meta = node["metadata"]["name"], node["metadata"]
        marks = {
            key[len(PREFIX) :]: value
            for key, value in (meta.get("annotations") or {}).items()
            if key.startswith(PREFIX)
        }
        if marks.get("roll-state") != "Done":
            problems.append(f"{name} is in state {marks.get('roll-state')}: {marks.get('roll-last-error')}")
        if not marks.get("roll-applied") or marks.get("roll-applied") != marks.get("roll-desired"):
            problems.append(
                f"{name}: applied {marks.get('roll-applied')}, desired {marks.get('roll-desired')}"
            )
        problems += [f"{name} still has the mark {key}={marks[key]}" for key in LEFT if marks.get(key)]
    for name, value in slot.values().items():
        if value != wanted:
            problems.append(f"{name} offers {value or 'nothing'}, not {wanted}")
    if slot.told_value() != wanted:
        problems.append(f"the template of the driver says {slot.told_value()}, not {wanted}")
    strategy = slot.daemonset()["spec"]["updateStrategy"]["type"]
    if strategy != "RollingUpdate":
        problems.append(f"the update strategy of the driver is {strategy}; it was RollingUpdate")
    return problems


def phases(slot: Slot) -> list[str]:
    """The phases of the rolls of a slot."""
    return [json.loads(item["data"]["record"])["phase"] for item in record_of(slot)]


def once(what: str, counts: dict[str, int], expected: frozenset[str]) -> list[str]:
    """Whether something was done to each of ``expected`` exactly once, and to nothing else."""
    problems = [f"{name} was {what} {times} times" for name, times in sorted(counts.items()) if times > 1]
    for name in sorted(set(counts) - expected):
        problems.append(f"{name} was {what}, which nobody wanted")
    for name in sorted(expected - set(counts)):
        problems.append(f"{name} was never {what}")
    return problems


def judge(
    slot: Slot,
    before: Before,
    wanted: str,
    deeds: Deeds,
    history: list[Change],
    *,
    taint: bool = False,
    again: bool = False,
    rolling: bool = False,
) -> Judgement:
    """Everything that a complete roll owes.

    :param taint: nodes are fenced by rules, not by cordons.
    :param again: nodes were fenced more than once, and others came to be drained, because somebody made it necessary.
    :param rolling: nodes that take RDMA workloads may offer two values meanwhile.
    """
    found = Judgement(deeds=deeds)
    problems = found.problems
    problems += converged(slot, wanted)
    if "Complete" not in phases(slot):
        problems.append(f"the record of the roll says {', '.join(phases(slot)) or 'nothing'}, not Complete")
    if again or rolling:
        problems += once("evicted", deeds.evicted, before.train_names | frozenset(deeds.evicted))
    else:
        problems += once("evicted", deeds.evicted, before.train_names)
    if again:
        if deeds.uncordoned.total() > deeds.cordoned.total():
            problems.append("more uncordons than cordons")
    else:
        ours = frozenset() if taint else frozenset(slot.nodes) - before.cordoned
        problems += once("cordoned", deeds.cordoned, ours)
        problems += once("uncordoned", deeds.uncordoned, ours)
    cordoned = {node["metadata"]["name"] for node in slot.all_nodes() if node["spec"].get("unschedulable")}
    if cordoned != before.cordoned:
        problems.append(f"cordoned before: {sorted(before.cordoned)}, afterwards: {sorted(cordoned)}")
    # The canary of a proof that is made again has the same name again; everything else goes once at most.
    gone = {name: times for name, times in deeds.deleted.items() if not name.startswith("canary-")}
    problems += [f"{name} was deleted {times} times" for name, times in sorted(gone.items()) if times > 1]
    strange = sorted(name for name in gone if not name.startswith(DRIVER))
    if strange:
        problems.append(f"pods were deleted that are no driver's: {', '.join(strange)}")
    if len(gone) != len(slot.nodes):
        problems.append(f"{len(gone)} pods of the driver were deleted on {len(slot.nodes)} nodes")
    if slot.cpu_pods and frozenset(slot.pods("cpu")) != before.cpu:
        problems.append("pods that do not use RDMA are not the same as before")
    if not rolling:
        problems += mixtures(history)[:3]
    left = frozenset(slot.pods("train", running=False)) & before.train
    if left:
        problems.append(f"{len(left)} users of RDMA were never evicted")
    return found


def leftovers(slot: Slot) -> list[str]:
    """Objects of proofs that nobody took away."""
    pods: list[dict[str, Any]] = slot.api.items(f"/api/v1/namespaces/{slot.name}/pods")
    known = {"train", "cpu", DRIVER}
    return [
        pod["metadata"]["name"]
        for pod in pods
        if (pod["metadata"].get("labels") or {}).get("app") not in known
    ]
