# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a plan will disturb, before anything is done. Private to rdma.k8s: it may change with any release."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..net import find_prefix
from . import machine
from .conduct import window
from .model import NodeView, Plan, User
from .names import State, Strategy
from .planning import digest
from .status import WIDTH, duration
from .users import choose

RELEASE = 15
"""Seconds from the last pod's end until its claims are released and that was seen twice; an estimate."""
RESTART = 45
"""Seconds until a new driver pod is ready and published; an estimate."""
PROOF = 20
"""Seconds of the proof; an estimate."""
REBOOT = 600
"""Seconds of a reboot of a large machine; an estimate."""


@dataclass(frozen=True)
class Row:
    """One node of a plan.

    :param jobs: owners of pods there that end by themselves and are hit; ``others``: the other owners that are hit.
    :param stays: pods that are left alone.
    :param drain: seconds that its pods may take to end.
    :param problem: why nothing could be begun there, or its pods never evicted; empty: none.
    """

    name: str
    canary: bool
    block: str
    pods: int
    jobs: tuple[str, ...]
    others: tuple[str, ...]
    stays: tuple[str, ...]
    drain: int
    problem: str

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            name: list(value) if isinstance(value, tuple) else value for name, value in vars(self).items()
        }


@dataclass(frozen=True)
class Disruption:
    """What one strategy costs.

    :param at_once: nodes that no workload can use at the same time.
    :param node_seconds: for which one node cannot be used, at most; ``seconds``: until all is over. Estimates.
    :param spanning: owners with pods on several nodes, which would have to work with two values at the same time.
    """

    strategy: str
    pods: int
    owners: int
    jobs: int
    at_once: int
    node_seconds: int
    seconds: int
    spanning: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {**vars(self), "spanning": list(self.spanning)}


@dataclass(frozen=True)
class Table:
    """A plan as a table.

    :param chosen: the strategy of the plan.
    :param problems: what stands in the way of it; nothing should be begun while there are any.
    """

    roll: str
    chosen: str
    disruptions: tuple[Disruption, ...]
    rows: tuple[Row, ...]
    problems: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "roll": self.roll,
            "chosen": self.chosen,
            "disruptions": [entry.to_dict() for entry in self.disruptions],
            "nodes": [row.to_dict() for row in self.rows],
            "problems": list(self.problems),
        }


def table(plan: Plan, nodes: Mapping[str, NodeView]) -> Table:
    """What each strategy would disturb, and what stands in the way of the plan."""
    rows = tuple([_row(plan, nodes[name]) for name in plan.nodes if name in nodes])
    disruptions = tuple([_disruption(plan, strategy, rows) for strategy in Strategy])
    problems = ["%s is not there" % name for name in plan.nodes if name not in nodes]
    problems += ["%s: %s" % (row.name, row.problem) for row in rows if row.problem]
    if plan.strategy is Strategy.ROLLING:
        problems += _overlaps(plan)
    spanning = next(entry.spanning for entry in disruptions if entry.strategy == plan.strategy.value)
    if spanning:
        problems.append(
            "%s has pods on several nodes, some of which would get the new value while others have the old one"
            % _listed(spanning)
        )
    return Table(digest(plan), plan.strategy.value, disruptions, rows, tuple(problems))


def _overlaps(plan: Plan) -> list[str]:
    """RANGE-019, decision 5: children of both ranges are there side by side; of a whole drain they are not."""
    new = find_prefix(plan.new)
    return [
        "%s overlaps %s, so children of both would answer to one address; go by a range apart, or drain all"
        % (plan.new, text)
        for text in plan.old.split(", ")
        for old in (find_prefix(text),)
        if new is not None and old is not None and new.overlaps(old)
    ]


def lines(found: Table) -> list[str]:
    """A table as text, no line longer than 100 columns."""
    form = "%-2s%-10s %6s %7s %6s %8s %10s %8s"
    text = [
        "plan %s" % found.roll,
        form % ("", "strategy", "pods", "owners", "jobs", "at once", "per node", "in all"),
    ]
    for entry in found.disruptions:
        chosen = "*" if entry.strategy == found.chosen else ""
        numbers = (entry.pods, entry.owners, entry.jobs, entry.at_once)
        text.append(
            form % (chosen, entry.strategy, *numbers, duration(entry.node_seconds), duration(entry.seconds))
        )
    text.append("")
    width = min(40, max([4, *(len(row.name) for row in found.rows)]))
    form = "%-*s %-8s %5s %6s  %s"
    text.append(form % (width, "node", "", "pods", "drain", "hit"))
    for row in found.rows:
        hit = ", ".join((*row.jobs, *row.others)) or "nobody"
        words = (width, row.name[:width], "canary" if row.canary else "", row.pods, duration(row.drain), hit)
        text.append(form % words)
    if found.problems:
        text.append("")
        text += ["problem: " + problem for problem in found.problems]
    return [line.rstrip() if len(line) <= WIDTH else line[: WIDTH - 2] + ".." for line in text]


# --- pieces ----------------------------------------------------------------------------------------------------------


def _row(plan: Plan, node: NodeView) -> Row:
    choice = choose(node.users, plan.consent)
    going = choice.waits_for
    problem = machine.foreign(plan, node)
    if problem:
        problem = "the roll %s left it half-done" % problem
    return Row(
        name=node.name,
        canary=node.name in plan.canary,
        block=plan.blocks.get(node.name, ""),
        pods=len(going),
        jobs=_owners([user for user in going if user.ends]),
        others=_owners([user for user in going if not user.ends]),
        stays=tuple(["%s/%s" % (user.namespace, user.name) for user in choice.stays]),
        drain=_drain(plan, going),
        problem=problem or machine.gate(plan, node) or machine.in_the_way(plan, node),
    )


def _drain(plan: Plan, going: Sequence[User]) -> int:
    if not going:
        return RELEASE
    jobs = plan.limits.get(State.WAIT_JOBS, 0) if any(user.ends for user in going) else 0
    return jobs + max(user.grace for user in going) + RELEASE


def _disruption(plan: Plan, strategy: Strategy, rows: Sequence[Row]) -> Disruption:
    change = RESTART + PROOF + (REBOOT if plan.reboot else 0)
    drain = max([row.drain for row in rows], default=0)
    rounds = _rounds(plan, len(rows))
    jobs = {owner for row in rows for owner in row.jobs}
    owners = jobs | {owner for row in rows for owner in row.others}
    shared = Disruption(
        strategy.value,
        pods=sum(row.pods for row in rows),
        owners=len(owners),
        jobs=len(jobs),
        at_once=0,
        node_seconds=0,
        seconds=0,
        spanning=(),
    )
    if strategy is Strategy.DRAIN_ALL:
        seconds = drain + rounds * change
        return replace(shared, at_once=len(rows), node_seconds=seconds, seconds=seconds)
    return replace(
        shared,
        at_once=min(plan.budget, len(rows)),
        node_seconds=drain + change,
        seconds=rounds * (drain + change),
        spanning=_spanning(rows),
    )


def _rounds(plan: Plan, total: int) -> int:
    """How many times a batch is changed, one after the other."""
    rounds = min(len(plan.canary), total)
    left, done = total - rounds, 0
    while done < left:
        done = window(plan.budget, done)
        rounds += 1
    return rounds


def _spanning(rows: Sequence[Row]) -> tuple[str, ...]:
    """Jobs on more than one node. Services are made for pods that do not know each other."""
    found: dict[str, int] = {}
    for row in rows:
        for owner in row.jobs:
            found[owner] = found.get(owner, 0) + 1
    return tuple(sorted(owner for owner, number in found.items() if number > 1))


def _owners(users: Sequence[User]) -> tuple[str, ...]:
    names = [user.owner or "Pod %s/%s" % (user.namespace, user.name) for user in users]
    return tuple(sorted(set(names)))


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else "%s (and %d more)" % (names[0], len(names) - 1)
