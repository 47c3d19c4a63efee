# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One roll over many nodes: calls, seconds, processor time, memory; and kubectl drain beside it."""

from __future__ import annotations

import re
import statistics
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import controller
import disturbed
from kill_matrix import now
from recorder import Change, mixtures
from slots import SLOT, Slot, until
from stage import Stage, stage

SMALL = 100
"""Nodes of the roll whose memory is compared."""
DRAINED = 5
"""Nodes that kubectl drains."""
CALLS, OVERHEAD, BEHIND, GROWTH = 40.0, 50.0, 3.0, 2.0
"""Targets: calls a node; milliseconds of processor time a node; seconds a node behind kubectl drain; how many times the
memory of the small roll."""


class Fleet(Slot):
    """A slot of many nodes. Each user of RDMA is bound to its node: the scheduler need not look at all others."""

    def employ(self) -> None:
        """A ReplicaSet of one pod for each node."""
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(self._one, self.nodes))

    def _one(self, node: str) -> None:
        made = self.train()
        made["metadata"]["name"] = f"train-{node}"
        spec = made["spec"]
        spec["replicas"] = 1
        labels = {"app": "train", "node": node}
        spec["selector"]["matchLabels"] = spec["template"]["metadata"]["labels"] = labels
        pod = spec["template"]["spec"]
        del pod["nodeSelector"]
        pod["affinity"] = controller.on_node(node)
        self.api.create(f"/apis/apps/v1/namespaces/{self.name}/replicasets", made)


@dataclass
class Figures:
    """What a roll cost.

    :param drain: seconds of each node from its fence until its claims are let go.
    :param cpu: processor time of the controller, seconds; ``planning``: of making the plan.
    :param memory: highest resident size of the controller, bytes.
    """

    nodes: int
    seconds: float
    calls: int
    writes: int
    drain: list[float]
    cpu: float
    planning: float
    memory: int
    phases: dict[str, float]
    kubectl: list[float]


def drained_by_kubectl(ready: Stage, slot: Slot) -> list[float]:
    """Seconds that kubectl drain takes for each of some nodes, one after the other; they are given back."""
    found = []
    for node in slot.nodes[-DRAINED:]:
        begin = time.monotonic()
        ready.cluster.kubectl("drain", node, "--ignore-daemonsets", "--timeout=60s")
        found.append(time.monotonic() - begin)
        ready.cluster.kubectl("uncordon", node)
    until("drained pods are back", slot.good, 300.0, 3.0)
    return found


def roll(nodes: int, budget: str, large: bool) -> tuple[Figures, list[str]]:
    """One roll over so many nodes, and what was wrong with it.

    :param large: compare it with kubectl drain, and roll back with everything that can go wrong.
    """
    begin = time.monotonic()
    with stage(1, nodes, cpu_pods=False, kind=Fleet, grace=90) as ready:
        (slot,) = ready.slots
        print(f"{nodes} nodes after {time.monotonic() - begin:.0f} s", flush=True)
        until("everything runs", slot.good, 1500.0, 3.0)
        print(f"{nodes} users of RDMA and drivers run after {time.monotonic() - begin:.0f} s", flush=True)
        compared = drained_by_kubectl(ready, slot) if large else []
        over = threading.Event()
        reading = threading.Thread(target=_read, args=(ready, over))
        reading.start()
        try:
            figures, problems = _roll(ready, slot, budget, compared)
            if large:
                problems += _disturbed(ready, slot, budget)
        finally:
            over.set()
            reading.join()
        return figures, problems


def _disturbed(ready: Stage, slot: Slot, budget: str) -> list[str]:
    begin = time.monotonic()
    slot.value = slot.other
    until("everything runs again", slot.good, 900.0, 3.0)
    case = disturbed.roll(ready, slot, budget)
    print(f"with everything that can go wrong: {time.monotonic() - begin:.0f} s, {case.where}", flush=True)
    return [f"disturbed: {problem}" for problem in case.problems]


def _roll(ready: Stage, slot: Slot, budget: str, compared: list[float]) -> tuple[Figures, list[str]]:
    since, version, wanted = now(), ready.recorder.version, slot.other
    users = len(slot.pods("train"))
    log = ready.directory / "roll.log"
    task = controller.Task(
        kubeconfig=str(ready.cluster.kubeconfig), namespace=slot.name, nodes=slot.nodes, new=wanted,
        log=str(log), budget=budget, prove=False, lease=60.0,
    )  # fmt: skip
    begin = time.monotonic()
    process = controller.start(task)
    while process.exitcode is None and time.monotonic() - begin < 3600:
        process.join(15)
        print(f"  {time.monotonic() - begin:5.0f} s  {_states(ready)}", flush=True)
    seconds = time.monotonic() - begin
    if process.exitcode is None:
        process.kill()
    text = log.read_text(encoding="utf-8", errors="replace")
    problems = (
        [] if process.exitcode == controller.COMPLETE else [f"exit code {process.exitcode}: {text[-400:]}"]
    )
    deeds = ready.audit.deeds(since)
    history = ready.recorder.history(slot.nodes, version)
    problems += mixtures(history)[:3]
    problems += _wrong(slot, wanted, users, deeds)
    used = re.search(r"figures: cpu ([\d.]+) planning ([\d.]+) rss (\d+)", text)
    cpu, planning, memory = (float(used[1]), float(used[2]), int(used[3]) * 1024) if used else (0.0, 0.0, 0)
    found = Figures(
        nodes=len(slot.nodes), seconds=seconds, calls=deeds.calls, writes=deeds.writes.total(),
        drain=_drains(history), cpu=cpu, planning=planning, memory=memory,
        phases={name: float(at) for at, name in re.findall(r"^ *([\d.]+) roll: \S+ -> (\w+)", text, re.M)},
        kubectl=compared,
    )  # fmt: skip
    for line in (f"{kind} {count}" for kind, count in (*deeds.reads.items(), *deeds.writes.items())):
        print(f"    calls: {line}", flush=True)
    return found, problems


def _read(ready: Stage, over: threading.Event) -> None:
    """Follow the audit log, so that none of its files is missed."""
    while not over.wait(2.0):
        ready.audit.read()


def _states(ready: Stage) -> str:
    counts: dict[str, int] = {}
    for node in ready.api.items("/api/v1/nodes", labelSelector=SLOT):
        state = (node["metadata"].get("labels") or {}).get("rdma-k8s/roll-state", "-")
        counts[state] = counts.get(state, 0) + 1
    return ", ".join(f"{count} {state}" for state, count in sorted(counts.items()))


def _wrong(slot: Slot, wanted: str, users: int, deeds: Any) -> list[str]:
    problems = []
    wrong = {name: value for name, value in slot.values().items() if value != wanted}
    if wrong:
        problems.append(f"{len(wrong)} nodes do not offer {wanted}")
    left = [node["metadata"]["name"] for node in slot.all_nodes() if node["spec"].get("unschedulable")]
    if left:
        problems.append(f"{len(left)} nodes are still cordoned")
    for what, counts in (("evicted", deeds.evicted), ("uncordoned", deeds.uncordoned)):
        twice = [name for name, times in counts.items() if times > 1]
        if twice or len(counts) != users:
            problems.append(f"{len(counts)} of {users} were {what}, {len(twice)} of them more than once")
    return problems


def _drains(history: list[Change]) -> list[float]:
    """Seconds of each node from its fence until no user is left."""
    begun: dict[str, float] = {}
    found = []
    for change in history:
        if change.what == "state" and change.value == "Fenced":
            begun[change.node] = change.at
        elif change.what == "state" and change.value == "ClaimsReleased" and change.node in begun:
            found.append(change.at - begun.pop(change.node))
    return found


def main(nodes: int, budget: str) -> int:
    """Both rolls, a table, and 1 when a target is missed."""
    large, problems = roll(nodes, budget, True)
    part = budget if budget.endswith("%") else str(min(int(budget), 10))
    small, more = roll(min(SMALL, nodes), part, False)
    problems += more
    rows: list[tuple[str, str, str, bool]] = []

    def row(what: str, value: float, unit: str, target: float | None) -> None:
        goal = "" if target is None else f"<= {target:g}"
        rows.append((what, f"{value:.2f} {unit}".strip(), goal, target is None or value <= target))

    row("nodes", large.nodes, "", None)
    row("seconds", large.seconds, "s", None)
    row("seconds a node", large.seconds / large.nodes, "s", None)
    row("calls a node", large.calls / large.nodes, "", CALLS)
    row("writes a node", large.writes / large.nodes, "", None)
    row("processor time of the controller a node", large.cpu / large.nodes * 1000, "ms", OVERHEAD)
    row("processor time of the plan a node", large.planning / large.nodes * 1000, "ms", None)
    row(f"memory of the controller, {small.nodes} nodes", small.memory / (1 << 20), "MB", None)
    row(f"memory of the controller, {large.nodes} nodes", large.memory / (1 << 20), "MB", None)
    row("times the memory", large.memory / max(small.memory, 1), "", GROWTH)
    drain = statistics.mean(large.drain or [0.0])
    kubectl = statistics.mean(large.kubectl or [0.0])
    row(f"kubectl drain, a node, mean of {len(large.kubectl)}", kubectl, "s", None)
    row(f"fence until claims may be released, a node, mean of {len(large.drain)}", drain, "s", None)
    row(
        "the roll's seconds a node behind kubectl drain's", large.seconds / large.nodes - kubectl, "s", BEHIND
    )
    print()
    for what, value, goal, good in rows:
        print(f"{what:<66} {value:>12}  {goal:<8} {'' if good else 'MISSED'}".rstrip())
    print("phases: " + ", ".join(f"{name} {at:.0f} s" for name, at in large.phases.items()))
    for problem in problems:
        print(f"    {problem}")
    missed = sum(not good for *_rest, good in rows) + len(problems)
    print(f"{len(rows) - missed if missed <= len(rows) else 0} passed, {missed} failed")
    return 1 if missed else 0
