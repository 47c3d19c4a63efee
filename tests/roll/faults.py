# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What else goes wrong in a cluster while a roll is under way, and what must come of it."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import controller
from judge import Before, converged, leftovers, mixtures, once, phases
from kill import CLUSTER_WIDE, TAINT, Killer, Point, state_of
from kill_matrix import SIZE, Case, Job, Run, conclude, killed, now, settle, work
from proxy import SILENCE, Canned, Proxy, Request, Rule
from slots import OLD, SLOT, ApiError, Slot, until
from stage import Stage, stage

FIRST_PODS = 10 << 24 | 244 << 16


def expect(case: Case, what: str, code: int | None, wanted: int, run: Run) -> None:
    """Note it when a controller ended otherwise than it must."""
    if code != wanted:
        case.problems.append(f"{what} ended with {code}, expected {wanted}: {run.said()}")


class At(Rule):
    """Does something once, when a patch that writes a state onto a node was accepted."""

    def __init__(self, state: str, node: str, do: Callable[[], None]) -> None:
        self.done = threading.Event()
        self._state, self._path, self._do = state, f"/api/v1/nodes/{node}", do

    def after(self, request: Request, code: int) -> Canned | None:
        """See whether it is time."""
        its_time = code == 200 and request.path == self._path and state_of(request) == self._state
        if its_time and not self.done.is_set():
            self.done.set()
            self._do()
        return None


# --- the API ---------------------------------------------------------------------------------------------------------


class Flaky(Rule):
    """An API server that is not well: errors, too many requests, connections that end with and without the deed."""

    ERRORS = (
        Canned(500, "InternalError"),
        Canned(503, "ServiceUnavailable"),
        Canned(429, "TooManyRequests", {"Retry-After": "1"}),
        Canned(504, "Timeout"),
        SILENCE,
    )

    def __init__(self, seed: int, share: float) -> None:
        self._chance, self._share = random.Random(seed), share
        self._lock = threading.Lock()
        self.played = 0

    def _draw(self, share: float) -> Canned | None:
        with self._lock:
            if self._chance.random() >= share:
                return None
            self.played += 1
            return self._chance.choice(self.ERRORS)

    def before(self, request: Request) -> Canned | None:
        """Refuse, or be slow."""
        found = self._draw(self._share)
        if found is None and self._chance.random() < self._share / 2:
            time.sleep(1.5)
        return found

    def after(self, request: Request, code: int) -> Canned | None:
        """Do it and lose the answer."""
        return SILENCE if request.writes and self._draw(self._share / 2) else None


def flaky(stage: Stage, slot: Slot) -> Case:
    """One call in eight fails, and of one write in sixteen the answer is lost."""
    case = Case("")
    before, wanted = Before.of(slot, stage.recorder.version, now()), slot.other
    runs = 0
    code: int | None = None
    while code != controller.COMPLETE and runs < 5:
        runs += 1
        rule = Flaky(slot.number * 100 + runs, 0.12)
        run = Run(stage, slot, f"flaky {runs}", rule, lease=15.0)
        code = run.wait()
    case.where = f"{runs} runs, {rule.played} faults in the last"
    expect(case, "the last run", code, controller.COMPLETE, run)
    # A call whose answer was lost is repeated: what was granted already may be granted again.
    conclude(stage, slot, before, wanted, case)
    return case


class Conflicts(Rule):
    """Somebody else changes a node just before each second patch of it."""

    def __init__(self, slot: Slot) -> None:
        self._slot, self._seen, self.played = slot, 0, 0

    def before(self, request: Request) -> Canned | None:
        """Change it."""
        if state_of(request):
            self._seen += 1
            if self._seen % 2:
                self.played += 1
                noise = {"metadata": {"annotations": {"rdma-test/noise": str(self._seen)}}}
                self._slot.api.patch(request.path, noise)
        return None


def conflicts(stage: Stage, slot: Slot) -> Case:
    """Every second patch of a node conflicts."""
    rule = Conflicts(slot)
    case = complete(stage, slot, rule)
    case.where = f"{rule.played} conflicts"
    return case


def complete(stage: Stage, slot: Slot, rule: Rule, again: bool = False, **more: Any) -> Case:
    """One controller that must carry the roll to its end."""
    case = Case("")
    before, wanted = Before.of(slot, stage.recorder.version, now()), slot.other
    run = Run(stage, slot, "only", rule, **more)
    expect(case, "the controller", run.wait(), controller.COMPLETE, run)
    fence, rolling = more.get("fence") == "taint", more.get("strategy") == "rolling"
    conclude(stage, slot, before, wanted, case, again=again, taint=fence, rolling=rolling)
    return case


# --- nodes, budgets, drivers -----------------------------------------------------------------------------------------


def not_ready(stage: Stage, slot: Slot) -> Case:
    """A node gets not ready while its driver is replaced, for eight seconds."""
    node = slot.nodes[1]

    def do() -> None:
        slot.fault(node, "not-ready")
        threading.Timer(8.0, slot.fault, (node,)).start()

    rule = At("DriverRestarted", node, do)
    case = complete(stage, slot, rule)
    if not rule.done.is_set():
        case.problems.append("it was not played")
    return case


def never_evictable(stage: Stage, slot: Slot) -> Case:
    """A budget that allows nothing: the roll pauses and keeps no node; without the budget it goes on."""
    case = Case("")
    before, wanted = Before.of(slot, stage.recorder.version, now()), slot.other
    slot.budget("train", SIZE)
    path = f"/apis/policy/v1/namespaces/{slot.name}/poddisruptionbudgets/train"
    until(
        "the budget is counted",
        lambda: (slot.api.get(path).get("status") or {}).get("currentHealthy") == SIZE,
    )
    run = Run(stage, slot, "budget", Rule())
    expect(case, "the first run", run.wait(), controller.PAUSED, run)
    deeds = stage.audit.deeds(before.since, slot.name, frozenset(slot.nodes))
    if deeds.evicted:
        case.problems.append(f"{len(deeds.evicted)} pods were evicted against a budget")
    fenced = [node["metadata"]["name"] for node in slot.all_nodes() if node["spec"].get("unschedulable")]
    if fenced:
        case.problems.append(f"{', '.join(fenced)} stayed cordoned while nothing could be done")
    if slot.told_value() != slot.value:
        case.problems.append("the value was switched")
    slot.no_budget("train")
    run = Run(stage, slot, "no budget", Rule())
    expect(case, "the second run", run.wait(), controller.COMPLETE, run)
    conclude(stage, slot, before, wanted, case, again=True)
    return case


def dead_driver(stage: Stage, slot: Slot) -> Case:
    """The canary's driver does not come back: the roll is aborted, every node stays fenced, and it is taken back."""
    case = Case("")
    before, old = Before.of(slot, stage.recorder.version, now()), slot.value
    slot.fault(slot.nodes[0], "driver")
    run = Run(stage, slot, "dead", Rule(), limits={"DriverRestarted": 8})
    expect(case, "the roll", run.wait(), controller.ABORTED, run)
    if phases(slot) != ["Aborted"]:
        case.problems.append(f"its phase is {phases(slot)}, not Aborted")
    open_nodes = [
        node["metadata"]["name"] for node in slot.all_nodes() if not node["spec"].get("unschedulable")
    ]
    if open_nodes:
        case.problems.append(f"{', '.join(open_nodes)}: not fenced though nothing is proven")
    slot.fault(slot.nodes[0])
    run = Run(stage, slot, "back", Rule(), action="back")
    expect(case, "the roll back", run.wait(), controller.COMPLETE, run)
    _taken_back(stage, slot, before, old, case)
    return case


def _taken_back(stage: Stage, slot: Slot, before: Before, old: str, case: Case) -> None:
    settle(slot, len(slot.nodes))
    case.problems += converged(slot, old)
    if "RolledBack" not in phases(slot):
        case.problems.append(f"no roll is RolledBack: {phases(slot)}")
    case.problems += mixtures(stage.recorder.history(slot.nodes, before.version))[:3]
    case.problems += leftovers(slot)
    deeds = stage.audit.deeds(before.since, slot.name, frozenset(slot.nodes))
    case.problems += once("evicted", deeds.evicted, before.train_names | frozenset(deeds.evicted))
    case.evictions, case.calls = deeds.evicted.total(), deeds.calls
    case.uncordons = deeds.uncordoned.total()


def late_driver(stage: Stage, slot: Slot) -> Case:
    """The canary's driver does not come back in time; when it has, the same roll is resumed."""
    case = Case("")
    before, wanted = Before.of(slot, stage.recorder.version, now()), slot.other
    slot.fault(slot.nodes[0], "driver")
    run = Run(stage, slot, "late", Rule(), limits={"DriverRestarted": 8})
    expect(case, "the roll", run.wait(), controller.ABORTED, run)
    slot.fault(slot.nodes[0])
    run = Run(stage, slot, "resumed", Rule())
    expect(case, "the resumed roll", run.wait(), controller.COMPLETE, run)
    conclude(stage, slot, before, wanted, case)
    return case


def taken_back(stage: Stage, slot: Slot) -> Case:
    """A complete roll is taken back."""
    case = Case("")
    before, old = Before.of(slot, stage.recorder.version, now()), slot.value
    run = Run(stage, slot, "there", Rule())
    expect(case, "the roll", run.wait(), controller.COMPLETE, run)
    settle(slot, len(slot.nodes))
    run = Run(stage, slot, "back", Rule(), action="back")
    expect(case, "the roll back", run.wait(), controller.COMPLETE, run)
    _taken_back(stage, slot, before, old, case)
    return case


def aborted_early(stage: Stage, slot: Slot) -> Case:
    """A roll whose time is over pauses, and is aborted before anything was changed: nothing is left of it."""
    case = Case("")
    before, old = Before.of(slot, stage.recorder.version, now()), slot.value
    run = Run(stage, slot, "short", Rule(), max_runtime=4.0)
    expect(case, "the first run", run.wait(), controller.PAUSED, run)
    if phases(slot) != ["Paused"]:
        case.problems.append(f"its phase is {phases(slot)}, not Paused")
    run = Run(stage, slot, "abort", Rule(), action="abort")
    expect(case, "the abort", run.wait(), controller.ABORTED, run)
    settle(slot, len(slot.nodes))
    for node in slot.all_nodes():
        name, annotations = node["metadata"]["name"], node["metadata"].get("annotations") or {}
        if node["spec"].get("unschedulable") or annotations.get("rdma-k8s/roll-owner"):
            case.problems.append(f"{name} is still fenced")
    if set(slot.values().values()) != {old} or slot.told_value() != old:
        case.problems.append(f"nodes offer {slot.values()}, the driver is told {slot.told_value()}")
    case.problems += mixtures(stage.recorder.history(slot.nodes, before.version))[:3]
    return case


# --- controllers -----------------------------------------------------------------------------------------------------


def second(stage: Stage, slot: Slot) -> Case:
    """A second controller that begins while the first one works is refused, and disturbs nothing."""
    case = Case("")
    before, wanted = Before.of(slot, stage.recorder.version, now()), slot.other
    rule = At("Draining", slot.nodes[0], lambda: None)
    first = Run(stage, slot, "first", rule)
    until("the first one drains", rule.done.is_set)
    other = Run(stage, slot, "second", Rule(), patience=0.0)
    expect(case, "the second controller", other.wait(60), controller.LOCKED, other)
    expect(case, "the first controller", first.wait(), controller.COMPLETE, first)
    conclude(stage, slot, before, wanted, case)
    return case


def skewed(stage: Stage, slot: Slot) -> Case:
    """A controller whose clock is two hours fast is killed; one of another machine, two hours slow, goes on."""
    case = Case("")
    before, wanted = Before.of(slot, stage.recorder.version, now()), slot.other
    rule = Killer.at(Point("Draining", "after", 0))
    first = Run(stage, slot, "fast", rule, skew=7200.0, stranger=True, lease=6.0)
    expect(case, "the first controller", first.wait(), -signal.SIGKILL, first)
    begin = time.monotonic()
    other = Run(stage, slot, "slow", Rule(), skew=-7200.0, stranger=True, lease=6.0)
    expect(case, "the second controller", other.wait(), controller.COMPLETE, other)
    if time.monotonic() - begin < 6.0:
        case.problems.append("the lease was taken before it had expired")
    conclude(stage, slot, before, wanted, case)
    return case


def frozen(stage: Stage, slot: Slot) -> Case:
    """A controller stands still until another one has its lease; when it goes on it writes nothing any more."""
    case = Case("")
    before, wanted = Before.of(slot, stage.recorder.version, now()), slot.other
    holder: list[int] = []
    rule = At("ClaimsReleased", slot.nodes[0], lambda: os.kill(holder[0], signal.SIGSTOP))
    first = Run(stage, slot, "frozen", rule, stranger=True, lease=6.0)
    holder.append(first.process.pid)
    until("the first one stands still", rule.done.is_set)
    taking = At("Applied", slot.nodes[0], lambda: os.kill(holder[0], signal.SIGCONT))
    other = Run(stage, slot, "other", taking, stranger=True, lease=6.0)
    expect(case, "the second controller", other.wait(), controller.COMPLETE, other)
    with suppress(ProcessLookupError):
        os.kill(holder[0], signal.SIGCONT)
    expect(case, "the first controller", first.wait(60), controller.LOCKED, first)
    conclude(stage, slot, before, wanted, case)
    return case


# --- people and nodes ------------------------------------------------------------------------------------------------


def uncordoned(stage: Stage, slot: Slot) -> Case:
    """A human uncordons a node that is drained already."""
    node = slot.nodes[1]
    rule = At("ClaimsReleased", node, lambda: slot.cordon(node, False))
    case = complete(stage, slot, rule, again=True)
    if not rule.done.is_set():
        case.problems.append("it was not played")
    return case


def cordoned_before(stage: Stage, slot: Slot) -> Case:
    """A node that somebody had cordoned stays cordoned."""
    slot.cordon(slot.nodes[2], True)
    return complete(stage, slot, Rule())


def vanishes(stage: Stage, slot: Slot) -> Case:
    """A node vanishes for good after it was drained; the roll goes on without it."""
    case = Case("")
    before, wanted = Before.of(slot, stage.recorder.version, now()), slot.other
    node = slot.nodes[1]

    def do() -> None:
        slot.fault(node, "heartbeat")
        slot.api.delete(f"/api/v1/nodes/{node}")

    rule = At("ClaimsReleased", node, do)
    run = Run(stage, slot, "only", rule)
    expect(case, "the controller", run.wait(), controller.COMPLETE, run)
    settle(slot, len(slot.nodes) - 1)
    case.problems += converged(slot, wanted)
    if len(slot.all_nodes()) != len(slot.nodes) - 1:
        case.problems.append("the node did not vanish")
    case.problems += mixtures(stage.recorder.history(slot.nodes, before.version))[:3]
    deeds = stage.audit.deeds(before.since, slot.name, frozenset(slot.nodes))
    case.problems += once("evicted", deeds.evicted, before.train_names)
    case.evictions, case.calls = deeds.evicted.total(), deeds.calls
    case.uncordons = deeds.uncordoned.total()
    slot.value = wanted
    join(slot, node)
    return case


def join(slot: Slot, node: str) -> None:
    """Let the kubelet of a node that was gone come back and register."""
    first = FIRST_PODS + (int(node.rpartition("-")[2]) - 1) * 64
    text = ".".join(str(first >> shift & 255) for shift in (24, 16, 8, 0))
    labels = {"kubernetes.io/hostname": node, SLOT: slot.name, "rdma-lab/simulated": "true"}
    slot.api.create(
        "/api/v1/nodes", {"metadata": {"name": node, "labels": labels}, "spec": {"podCIDR": f"{text}/26"}}
    )


def joins(stage: Stage, slot: Slot) -> Case:
    """A node joins while the others are drained: it gets the new value too, and counts in the end."""
    case = Case("")
    everything = slot.nodes
    node = everything[-1]
    slot.fault(node, "heartbeat")
    slot.api.delete(f"/api/v1/nodes/{node}")
    with suppress(ApiError):
        slot.api.delete(f"/apis/resource.k8s.io/v1/resourceslices/{node}-dra-net")
    slot.nodes = everything[:-1]
    until(
        "the pods of the node are gone",
        lambda: all(
            pod["spec"].get("nodeName") != node
            for app in ("train", "cpu", "rdma-k8s-provider")
            for pod in slot.pods(app, running=False).values()
        ),
        300.0,
    )
    before, wanted = Before.of(slot, stage.recorder.version, now()), slot.other

    def do() -> None:
        join(slot, node)
        # One that publishes nothing yet is taken for no member; a roll that ends before takes it up no more.
        slot.nodes = everything
        until("the node that joins publishes", lambda: slot.values().get(node), 120.0)

    rule = At("Draining", slot.nodes[0], do)
    run = Run(stage, slot, "only", rule)
    expect(case, "the controller", run.wait(), controller.COMPLETE, run)
    conclude(stage, slot, before, wanted, case, again=True)
    return case


# --- all of them -----------------------------------------------------------------------------------------------------

FAULTS: dict[str, Callable[[Stage, Slot], Case]] = {
    "the API fails, is slow, and loses answers": flaky,
    "every second patch conflicts": conflicts,
    "a node gets not ready midway": not_ready,
    "a budget never allows": never_evictable,
    "a driver does not come back; rolled back": dead_driver,
    "a driver comes back late; resumed": late_driver,
    "a complete roll is rolled back": taken_back,
    "paused by its time, aborted early": aborted_early,
    "a second controller": second,
    "clocks two hours fast and slow": skewed,
    "a controller stands still and wakes up": frozen,
    "a human uncordons midway": uncordoned,
    "a node was cordoned before": cordoned_before,
    "a node vanishes": vanishes,
    "fenced by taint rules": lambda stage, slot: complete(stage, slot, Rule(), fence="taint"),
    "node by node (rolling)": lambda stage, slot: complete(stage, slot, Rule(), strategy="rolling"),
}


def _cluster_wide(name: str, edge: str) -> Job:
    is_it, number = CLUSTER_WIDE[name]
    title = f"killed {edge} {name}"
    return title, lambda stage, slot: killed(
        stage, slot, title, Killer(is_it, number, edge == "after", distinct=False)
    )


def _tainting(edge: str) -> Job:
    title = f"killed {edge} a taint rule is made"
    return title, lambda stage, slot: killed(
        stage, slot, title, Killer(TAINT, 1, edge == "after"), fence="taint"
    )


def jobs() -> list[Job]:
    """Everything that can stand beside other rolls."""
    edges = ("before", "after")
    return [
        *FAULTS.items(),
        *(_cluster_wide(name, edge) for name in CLUSTER_WIDE for edge in edges),
        *(_tainting(edge) for edge in edges),
    ]


def alone(only: str) -> list[Case]:
    """What needs a cluster whose nodes all belong to the roll: only then a new one is taken up."""
    chosen: list[Job] = [(name, do) for name, do in {"a node joins": joins}.items() if only in name]
    if not chosen:
        return []
    with stage(1, SIZE + 1) as ready:
        return work(ready, chosen, lambda case: print(_line(case), flush=True))


def _line(case: Case) -> str:
    lines = [f"{'ok' if case.good else 'FAILED'}  {case.name}  {case.seconds:.1f} s  {case.where}"]
    return "\n".join([*lines, *(f"    {problem}" for problem in case.problems)])


__all__ = ["OLD", "Proxy", "alone", "jobs"]
