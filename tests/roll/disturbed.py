# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One roll over many nodes with everything that goes wrong at once.

An API server that is not well, nodes and people that do as they like, a second controller, clocks that are wrong, and
a controller that is killed before and after each of the 12 entry actions.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any

import controller
from faults import At, Flaky, join
from judge import Before, converged, leftovers, mixtures, once, phases
from kill import STATES, Killer, Point
from kill_matrix import Case, Run, now
from proxy import Canned, Request, Rule
from slots import Slot, until
from stage import Stage

SHARE = 0.02
"""Of the calls fail so many; half as many writes are done and their answer is lost."""
SPREAD = 3
"""The controller is killed at the fourth node that comes to a state; the first ones were the victim's before."""
SHORT = 12.0
"""Seconds that a fault lasts."""
LONG = 3600.0
"""Seconds that one controller may take."""
SKEW = 7200.0
TRIES = 5
AGAIN = (controller.PAUSED, controller.FAILED)
"""A roll pauses, and a controller gives up, when the API fails too often; whoever runs it begins it again."""


class Together(Rule):
    """Several rules; the first that answers decides."""

    def __init__(self, *rules: Rule) -> None:
        self.rules = rules

    def before(self, request: Request) -> Canned | None:
        """Ask one after the other."""
        return _first(rule.before(request) for rule in self.rules)

    def after(self, request: Request, code: int) -> Canned | None:
        """Ask one after the other."""
        return _first(rule.after(request, code) for rule in self.rules)


def _first(answers: Iterator[Canned | None]) -> Canned | None:
    return next((answer for answer in answers if answer is not None), None)


def _for_a_while(do: Callable[[], Any], undo: Callable[[], Any]) -> Callable[[], None]:
    def both() -> None:
        do()
        timer = threading.Timer(SHORT, undo)
        timer.daemon = True
        timer.start()

    return both


def events(slot: Slot) -> dict[str, At]:
    """What happens to nodes while they are changed, each to a node of its own."""
    late, gone, silent, opened, kept = slot.nodes[10:60:10]
    budgets = f"/apis/policy/v1/namespaces/{slot.name}/poddisruptionbudgets"
    budget = {
        "metadata": {"name": "kept"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "train", "node": kept}}},
    }

    def vanish() -> None:
        slot.fault(gone, "heartbeat")
        slot.api.delete(f"/api/v1/nodes/{gone}")

    return {
        "a driver comes back late": At(
            "DriverRestarted",
            late,
            _for_a_while(lambda: slot.fault(late, "driver"), lambda: slot.fault(late)),
        ),
        "a node vanishes and joins again": At(
            "ClaimsReleased", gone, _for_a_while(vanish, lambda: join(slot, gone))
        ),
        "a node is not ready": At(
            "DriverRestarted",
            silent,
            _for_a_while(lambda: slot.fault(silent, "not-ready"), lambda: slot.fault(silent)),
        ),
        "a human uncordons": At("ClaimsReleased", opened, lambda: slot.cordon(opened, False)),
        "a budget allows nothing": At(
            "Locked",
            kept,
            _for_a_while(
                lambda: slot.api.create(budgets, budget), lambda: slot.api.delete(f"{budgets}/kept")
            ),
        ),
    }


def roll(ready: Stage, slot: Slot, budget: str) -> Case:
    """Roll to the other value whatever happens; what was wrong, and in ``where`` what was played."""
    case = Case("disturbed")
    before, wanted = Before.of(slot, ready.recorder.version, now()), slot.other
    happens = events(slot)
    flaky: list[Flaky] = []

    def run(name: str, *rules: Rule, **more: Any) -> Run:
        flaky.append(Flaky(len(flaky), SHARE))
        ruled = Together(
            *happens.values(), *rules, flaky[-1]
        )  # events see the call at which a controller is killed
        skew = SKEW if len(flaky) % 2 else -SKEW
        task = {"budget": budget, "lease": 20.0, "boots": True, "skew": skew, **more}
        return Run(ready, slot, name, ruled, **task)

    killed = 0
    for state in STATES:
        for edge in ("before", "after"):
            killer = Killer.at(Point(state, edge, SPREAD))
            for number in range(TRIES):
                victim = run(f"{edge} {state} {number}", killer)
                killer.victim = victim.process.pid
                code = victim.wait(LONG)
                if code not in AGAIN:
                    break
            if killer.hit and code == -signal.SIGKILL:
                killed += 1
            else:
                case.problems.append(f"not killed {edge} {state}: exit code {code}; {victim.said()}")
    for number in range(TRIES):
        last = run(f"last {number}")
        until(
            "the last one has the lease",
            lambda last=last: "has the lease" in last.said(999) or not last.alive,
        )
        code = run(f"second {number}", patience=0.0).wait(LONG)
        if last.alive and code != controller.LOCKED:
            case.problems.append(f"a second controller ended with {code}, expected {controller.LOCKED}")
        code = last.wait(LONG)
        if code not in AGAIN:
            break
    if code != controller.COMPLETE:
        case.problems.append(f"the last controller ended with {code}: {last.said()}")
    until("the users of RDMA run again", lambda: len(slot.pods("train")) == len(slot.nodes), 600.0, 3.0)
    case.problems += [f"{what}: was not played" for what, event in happens.items() if not event.done.is_set()]
    case.problems += _judged(ready, slot, before, wanted)
    played = sum(rule.played for rule in flaky)
    case.where = f"{killed} controllers killed, {len(happens)} events, {played} calls failed"
    slot.value = wanted
    return case


def _judged(ready: Stage, slot: Slot, before: Before, wanted: str) -> list[str]:
    problems = converged(slot, wanted)
    if set(phases(slot)) != {"Complete"}:
        problems.append(f"the records of the rolls say {', '.join(phases(slot))}")
    problems += mixtures(ready.recorder.history(slot.nodes, before.version))
    problems += [f"{name} was left behind" for name in leftovers(slot)]
    deeds = ready.audit.deeds(before.since, slot.name, frozenset(slot.nodes))
    # The pod of a node that vanished is gone without an eviction, and one that came in between is evicted, too.
    problems += once("evicted", deeds.evicted, frozenset(deeds.evicted))
    if len(deeds.evicted) < len(before.train_names) - 1:
        problems.append(f"{len(deeds.evicted)} of {len(before.train_names)} users were evicted")
    return problems
