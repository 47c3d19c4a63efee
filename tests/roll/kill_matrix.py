# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kill matrix: controllers killed before and after each entry action, at three nodes each, and what came of it."""

from __future__ import annotations

import datetime
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from queue import Empty, Queue
from typing import Any

import controller
from judge import Before, judge, leftovers
from kill import Killer, Point, matrix
from proxy import Proxy, Rule
from slots import NotInTimeError, Slot, until
from stage import Stage

SIZE = 3
"""Nodes of a slot: a canary, and two that come one after the other."""
RUN = 150.0
"""Seconds for one run of a controller."""


@dataclass
class Case:
    """One case and what came of it.

    :param calls: calls of all its controllers, without renewals of the lease.
    """

    name: str
    problems: list[str] = field(default_factory=list)
    evictions: int = 0
    uncordons: int = 0
    calls: int = 0
    seconds: float = 0.0
    where: str = ""

    @property
    def good(self) -> bool:
        """Whether nothing was wrong."""
        return not self.problems


def now() -> str:
    """The time as the audit log writes it."""
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


class Run:
    """One controller, its proxy and its log."""

    def __init__(self, stage: Stage, slot: Slot, name: str, rule: Rule, **more: Any) -> None:
        self.proxy = Proxy(stage.api, rule)
        safe = "".join(letter if letter.isalnum() else "-" for letter in f"{slot.name}-{name}")
        self.log = stage.directory / f"{safe}.log"
        settings = self.proxy.kubeconfig(stage.directory / f"{safe}.kubeconfig")
        task = {
            "kubeconfig": str(settings), "namespace": slot.name, "nodes": slot.nodes,
            "new": slot.other, "log": str(self.log), **more,
        }  # fmt: skip
        self.process = controller.start(controller.Task(**task))
        if isinstance(rule, Killer):
            rule.victim = self.process.pid

    @property
    def alive(self) -> bool:
        """Whether it has not ended."""
        return self.process.exitcode is None

    def wait(self, seconds: float = RUN) -> int | None:
        """Its exit code, negative when it was killed; ``None`` when it did not end and was ended."""
        self.process.join(seconds)
        code: int | None = self.process.exitcode
        if code is None:
            self.process.kill()
            self.process.join(10)
        self.proxy.close()
        return code

    def said(self, lines: int = 6) -> str:
        """The end of its log."""
        text = self.log.read_text(encoding="utf-8", errors="replace") if self.log.exists() else ""
        return " | ".join(text.strip().splitlines()[-lines:])


def killed(stage: Stage, slot: Slot, name: str, rule: Killer, **more: Any) -> Case:
    """Kill a controller by a rule, let another one go on, and judge."""
    case = Case(name)
    before = Before.of(slot, stage.recorder.version, now())
    wanted = slot.other
    first = Run(stage, slot, f"{name} first", rule, **more)
    code = first.wait()
    case.where = rule.hit
    if not rule.hit or code != -9:
        case.problems.append(f"it was not killed there: exit code {code}; {first.said()}")
    second = Run(stage, slot, f"{name} second", Rule(), **more)
    code = second.wait()
    if code != controller.COMPLETE:
        case.problems.append(f"the second controller ended with {code}: {second.said()}")
    conclude(stage, slot, before, wanted, case, taint=more.get("fence") == "taint")
    return case


def settle(slot: Slot, nodes: int) -> None:
    """Wait until the users of RDMA are back on so many nodes, which shows that these can be used."""
    until(f"{slot.name}: the users of RDMA run again", lambda: len(slot.pods("train")) == nodes, 300.0)


def conclude(stage: Stage, slot: Slot, before: Before, wanted: str, case: Case, **allowances: bool) -> None:
    """Judge a roll that must be complete; see ``judge`` for what may be otherwise."""
    settle(slot, len(slot.nodes) - len(before.cordoned))
    deeds = stage.audit.deeds(before.since, slot.name, frozenset(slot.nodes))
    history = stage.recorder.history(slot.nodes, before.version)
    found = judge(slot, before, wanted, deeds, history, **allowances)
    case.problems += found.problems
    case.problems += [f"{name} was left behind" for name in leftovers(slot)]
    case.evictions = sum(deeds.evicted.values())
    case.uncordons = sum(deeds.uncordoned.values())
    case.calls = deeds.calls
    slot.value = wanted


Do = Callable[[Stage, Slot], Case]
Job = tuple[str, Do]


def attempt(stage: Stage, slot: Slot, do: Do) -> Case:
    """One case, in a slot as it was at the beginning."""
    slot.reset()
    return do(stage, slot)


def said(error: BaseException) -> str:
    """What a case that broke says: a time limit in a sentence, anything else with its traceback."""
    if isinstance(error, NotInTimeError):
        return str(error)
    return "".join(traceback.format_exception(type(error), error, error.__traceback__, limit=-4))


def work(stage: Stage, jobs: Sequence[Job], tell: Callable[[Case], None]) -> list[Case]:
    """Do all jobs, one at a time in each slot and all slots side by side."""
    queue: Queue[Job] = Queue()
    for job in jobs:
        queue.put(job)
    done: list[Case] = []
    lock = threading.Lock()

    def one(slot: Slot) -> None:
        while True:
            try:
                name, do = queue.get_nowait()
            except Empty:
                return
            begin = time.monotonic()
            with ThreadPoolExecutor(1) as pool:
                doing = pool.submit(attempt, stage, slot, do)
            error = doing.exception()
            case = doing.result() if error is None else Case(name, [said(error)])
            case.name = name
            case.seconds = time.monotonic() - begin
            with lock:
                done.append(case)
                tell(case)

    threads = [threading.Thread(target=one, args=(slot,)) for slot in stage.slots]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return done


def jobs_of(points: Iterable[Point]) -> list[Job]:
    """The matrix as jobs; rolls that boot nodes take longest and come first."""
    ordered = sorted(points, key=lambda point: not point.boots)
    return [(str(point), _job(point)) for point in ordered]


def _job(point: Point) -> Callable[[Stage, Slot], Case]:
    return lambda stage, slot: killed(stage, slot, str(point), Killer.at(point), boots=point.boots)


def table(cases: Iterable[Case]) -> list[str]:
    """The matrix as text: a line for each point, its three seeds side by side."""
    found = {case.name: case for case in cases}
    lines = [
        f"{'point':<24} {'converged':>9} {'evictions':>9} {'uncordons':>9} {'calls/node':>10} {'seconds':>8}"
    ]
    points: dict[str, list[Case]] = {}
    for point in matrix():
        if str(point) in found:
            points.setdefault(f"{point.edge} {point.state}", []).append(found[str(point)])
    for name, row in points.items():
        good = sum(case.good for case in row)
        lines.append(
            f"{name:<24} {f'{good}/{len(row)}':>9} {_all(case.evictions for case in row):>9} "
            f"{_all(case.uncordons for case in row):>9} "
            f"{max(case.calls for case in row) / SIZE:>10.1f} {max(case.seconds for case in row):>8.1f}"
        )
    return lines


def _all(values: Iterable[int]) -> str:
    counted = Counter(values)
    return " ".join(str(value) for value in sorted(counted))
