# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Plan a roll, carry it out, look at it: what a user asks for. Private to rdma.k8s: it may change with any release."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Callable, Optional

from ..core import node_verdict
from ..core.errors import RdmaError
from ..core.oke.constants import DRIVER
from ..core.roll import machine, marks, planning
from ..core.roll.model import NodeView, Plan
from ..core.roll.names import PREFIX, Phase
from ..core.roll.users import Scope
from . import rdma_users, roll_dranet, roll_node
from .client import REQUEST_TIMEOUT, Cluster
from .node_list import NODES
from .roll_dranet import DranetRange, Proof
from .roll_lease import DURATION, Lease, holder
from .roll_node import Agent, NodeSetting
from .roll_run import GO_ON, WORKERS, Ended, News, Roll, stamp
from .roll_store import NAMESPACE, Store, Stored, unfinished
from .roll_target import Target
from .roll_world import World, rules_path

RANGE = "range"
KEPT = 20
"""Rolls that are over and whose records are kept."""


@dataclass(frozen=True)
class Options:
    """How a roll is carried out; nothing of it is part of the plan.

    :param namespace: of the records and of the lease; ``driver_namespace``: of the driver's DaemonSets.
    :param daemonsets: names of those whose option is the value; empty: they are found.
    :param resources: extended resources of RDMA; ``networks``: networks of it; beside those that the cluster tells.
    :param agent_namespace: of the node agent, which changes settings of nodes; ``node_options``: further options of
        its step.
    :param lease_duration: seconds.
    :param force_unlock: the operator says that the holder of the lease is dead.
    :param wait_for_lease: wait until the lease of a controller that died has expired.
    """

    namespace: str = NAMESPACE
    driver_namespace: str = roll_dranet.NAMESPACE
    daemonsets: Sequence[str] = ()
    resources: Sequence[str] = ()
    networks: Sequence[str] = ()
    prefix: str = PREFIX
    proof: Proof = field(default_factory=Proof)
    agent_namespace: str = roll_dranet.NAMESPACE
    node_options: Mapping[str, Any] = field(default_factory=dict)
    lease_duration: float = DURATION
    force_unlock: bool = False
    wait_for_lease: bool = True
    workers: int = WORKERS
    max_runtime: float = 0.0


class Session:
    """One user's work with the rolls of a cluster.

    :param connect: makes calls to the cluster; its argument is the time limit of one request in seconds.
    :param tell: gets what happens while a roll is carried out.
    :param stop: when it is set, a roll pauses.
    """

    def __init__(
        self,
        connect: Callable[[float], Cluster],
        options: Optional[Options] = None,
        tell: Callable[[News], None] = lambda news: None,
        stop: Optional[threading.Event] = None,
        request_timeout: float = REQUEST_TIMEOUT,
    ) -> None:
        self.options = options or Options()
        self.roll: Optional[Roll] = None
        """The one that is carried out, to be looked at while it is."""
        self._connect, self._tell = connect, tell
        self._stop = stop or threading.Event()
        # A write must be over before another controller can have the lease.
        timeout = min(request_timeout, self.options.lease_duration / 3)
        self._cluster, self._watching, self._leasing = (connect(timeout) for _use in range(3))
        self.store = Store(self._cluster, self.options.namespace)

    @property
    def calls(self) -> int:
        """How many requests were sent."""
        return self._cluster.calls + self._watching.calls + self._leasing.calls

    # --- what there is

    def chosen(self, name: str = "") -> Stored:
        """The roll of a name; without one the roll that is not over, else the latest.

        :raises RdmaError: ``roll_unknown``, or an error of the client.
        """
        if name:
            return self.store.load(name)
        rolls = self.store.rolls()
        if not rolls:
            raise RdmaError(
                "roll_unknown",
                "There is no roll in the namespace %s." % self.store.namespace,
                hint="Plan one.",
            )
        return unfinished(rolls) or rolls[0]

    def marks_of(self, stored: Stored) -> dict[str, NodeView]:
        """The nodes of a roll by their marks alone, from one list of nodes; for a look from outside."""
        names = {*stored.plan.nodes, *stored.record.joined}
        found = {}
        for node in self._cluster.items(NODES):
            name = node["metadata"]["name"]
            if name in names:
                found[name] = NodeView(
                    name=name,
                    uid=node["metadata"]["uid"],
                    version=node["metadata"]["resourceVersion"],
                    ready=any(
                        entry["type"] == "Ready" and entry["status"] == "True"
                        for entry in (node.get("status") or {}).get("conditions") or ()
                    ),
                    unschedulable=bool(node["spec"].get("unschedulable")),
                    marks=marks.read(node["metadata"].get("annotations") or {}, stored.plan.prefix),
                )
        return found

    # --- plans

    def plan(
        self, new: str, nodes: Sequence[str] = (), old: str = "", *, kind: str = RANGE, **options: Any
    ) -> tuple[Plan, dict[str, NodeView]]:
        """Plan a change; nothing is changed.

        :param new: the value that the nodes are to offer.
        :param kind: of the value: ``range``, ``netns_mode`` or ``oca_network``. For the last two the nodes are asked.
        :param nodes: their names; empty: all that have a pod of the driver.
        :param old: the range that they offer; empty: the one that the driver is told now.
        :param options: of :func:`..core.roll.planning.make`.
        :raises RdmaError: an error of the planning or of the client.
        """
        target = self.target(kind)
        with self.looking(target, self._rules(options.get("fence", ""))) as world:
            names = list(nodes) or sorted(world.with_driver())
            node_verdict.require_nodes(names, world.views())
            if target.observes:
                with ThreadPoolExecutor(self.options.workers) as pool:
                    list(pool.map(target.observe, names))
                for name in names:
                    world.touch(name)
                options = {**options, "node_change": True, "reboot": kind == roll_node.NETNS_MODE}
            views = world.views()
            members = {name: views[name] for name in names}
            if target.observes:  # a node that has the value already needs nothing
                members = {name: view for name, view in members.items() if view.value != new} or members
            old = old or _offered(new if target.observes else target.value(), new, members)
            made = planning.make(
                kind, old, new, members, driver=target.version(), prefix=self.options.prefix, **options
            )
        return self._next_turn(made), members

    def _next_turn(self, plan: Plan) -> Plan:
        """The plan with a name that no roll has which has ended."""
        over = {roll.name for roll in self.store.rolls() if roll.over}
        while planning.digest(plan) in over:
            plan = replace(plan, turn=plan.turn + 1)
        return plan

    def begin(self, plan: Plan) -> Stored:
        """Store a plan that is to be carried out, unless another roll is half done.

        :raises RdmaError: ``roll_half_done``, or an error of the client.
        """
        name = planning.digest(plan)
        other = unfinished(self.store.rolls())
        if other is not None and other.name not in (name, plan.parent) and self.binds(other):
            raise RdmaError(
                "roll_half_done",
                "The roll %s (%s to %s) is not over: it is %s."
                % (other.name, other.plan.old, other.plan.new, other.record.phase.value),
                hint="Resume it, abort it, or take it back before another one is begun.",
                roll=other.name,
            )
        parent = self.store.load(plan.parent).record if plan.parent else None
        self.store.forget(KEPT)
        return self.store.create(plan, planning.first_record(plan, stamp(), parent))

    def binds(self, stored: Stored) -> bool:
        """Whether a roll that is not over must come to its end; one that was aborted and left nothing need not."""
        if stored.record.phase is not Phase.ABORTED or stored.record.switched or stored.record.kept:
            return True
        marked = [view.marks for view in self.marks_of(stored).values()]
        return any(stored.name in (found.desired, found.owner, found.lock) for found in marked)

    def open(self) -> Optional[Stored]:
        """The roll that must come to its end before another one may begin; ``None``: there is none.

        :raises RdmaError: an error of the client.
        """
        found = unfinished(self.store.rolls())
        return found if found is not None and self.binds(found) else None

    def back(self, stored: Stored) -> Plan:
        """The plan that takes a roll back, from the nodes as they are now.

        :raises RdmaError: ``roll_nodes`` when it reached none, or an error of the client.
        """
        return self._next_turn(planning.back(stored.plan, self.marks_of(stored)))

    # --- carrying out

    def run(self, stored: Stored, mode: str = GO_ON, reason: str = "") -> Ended:
        """Carry out a roll, until it ends or is stopped.

        :param mode: ``go on`` or ``abort``.
        :raises RdmaError: see :meth:`.roll_run.Roll.run`; ``roll_locked`` when another controller works on a roll.
        """
        options, plan = self.options, stored.plan
        target = self.target(plan.kind)
        lease = Lease(self._leasing, options.namespace, machine.names(plan), holder(), options.lease_duration)
        lease.acquire(options.force_unlock, self._wait_for_lease)
        self._cluster.guard = lease.require
        try:
            rules = self._rules(plan.fence)
            with self.looking(target, rules) as world:
                stored = self.store.load(stored.name)  # as it is now that nobody else writes it
                self.roll = Roll(
                    self._cluster,
                    world,
                    self.store,
                    lease,
                    target,
                    stored,
                    rules=rules,
                    tell=self._tell,
                    stop=self._stop,
                    workers=options.workers,
                )
                return self.roll.run(mode, reason, options.max_runtime)
        finally:
            self._cluster.guard = None
            lease.release()

    def target(self, kind: str = RANGE) -> Target:
        """What is changed.

        :param kind: of a plan.

        :raises RdmaError: ``roll_driver``, or an error of the client.
        """
        options = self.options
        scope = rdma_users.widen(
            self._cluster, Scope(DRIVER, tuple(options.resources), tuple(options.networks))
        )
        if kind in roll_node.KINDS:
            found = roll_dranet.installed(self._cluster, options.driver_namespace)
            agent = Agent(self._cluster, options.agent_namespace)
            return NodeSetting(self._cluster, found, scope, agent, kind, options.node_options)
        found = roll_dranet.find(self._cluster, options.driver_namespace, options.daemonsets)
        return DranetRange(self._cluster, found, scope, options.proof)

    @contextmanager
    def looking(self, target: Target, rules: Optional[tuple[str, str]] = None) -> Iterator[World]:
        """The world, as long as it is looked at."""
        world = World(self._watching, target, self.options.prefix, rules[0] if rules else "")
        world.start()
        try:
            yield world
        finally:
            world.stop()

    def _rules(self, fence: str) -> Optional[tuple[str, str]]:
        if fence != "taint":
            return None
        found = rules_path(self._cluster)
        if found is None:
            raise RdmaError(
                "roll_fence",
                "The API server serves no DeviceTaintRule, with which the nodes are to be fenced.",
                hint="Plan with the fence cordon.",
            )
        return found

    def _wait_for_lease(self, why: str, left: float) -> bool:
        if not self.options.wait_for_lease or self._stop.is_set():
            return False
        self._tell(News("", "", "waiting", "%s; %d s until it may have expired" % (why, max(0, left))))
        self._stop.wait(min(5.0, max(0.2, left)))
        return not self._stop.is_set()


def _offered(told: str, new: str, nodes: Mapping[str, NodeView]) -> str:
    """The range that is to be left: what the driver is told, unless it was told the new one already."""
    if told != new:
        return told
    others = sorted({view.value for view in nodes.values() if view.value} - {new})
    if len(others) > 1:
        raise RdmaError(
            "roll_mixed",
            "The driver is told %s already, and nodes still offer %s." % (new, " and ".join(others)),
            hint="Name the range that is to be left by old_range.",
            offered=others,
        )
    return others[0] if others else told


def counted(views: Mapping[str, NodeView], plan: Plan) -> dict[str, int]:
    """How many nodes are in which state of a roll; those that were not begun are ``Pending``."""
    found: dict[str, int] = {}
    for view in views.values():
        state = machine.at(plan, view)
        word = state.value if state else "Pending"
        found[word] = found.get(word, 0) + 1
    return found


def exit_code(phase: Phase) -> int:
    """0: the roll ended well; 4: it was aborted; 3: it is paused or still under way."""
    if phase in (Phase.COMPLETE, Phase.ROLLED_BACK):
        return 0
    return 4 if phase is Phase.ABORTED else 3
