# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A small world in memory in which a roll runs: nodes, pods, claims, driver pods, people, faults and a clock.

The controller in it is the real loop: the same ``conduct``, ``heard``, ``advance`` and ``release``, patches with the
resource version as precondition, effects after the patch. It can die before or after each thing that it does, and
another one follows. The world itself watches what must never happen and raises ``BrokenError`` when it does.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Callable, Optional

from ansible_collections.rdma.k8s.plugins.module_utils.core.roll import conduct, machine, marks, planning
from ansible_collections.rdma.k8s.plugins.module_utils.core.roll.model import (
    ChangeNode,
    DriverPod,
    Effect,
    Evict,
    Fence,
    NodePatch,
    NodeView,
    Orders,
    Plan,
    Prove,
    Reboot,
    Record,
    RestartDriver,
    Told,
    User,
)
from ansible_collections.rdma.k8s.plugins.module_utils.core.roll.names import Phase, State, Strategy

OLD, NEW = "10.224.0.0/12", "10.208.0.0/12"
BOOT = 90.0
IN_FLIGHT = (State.APPLIED, State.REBOOTING, State.DRIVER_RESTARTED, State.VERIFIED)


class BrokenError(AssertionError):
    """Something happened that must never happen."""


class Killed(BaseException):
    """The controller died."""


class ConflictError(Exception):
    """The node changed since it was read."""


@dataclass
class Pod:
    """A pod that uses RDMA; ``ends_at``: it is a job, and done then."""

    uid: str
    node: str
    work: str
    value: str
    budget: bool = False
    ends_at: Optional[float] = None
    gone_at: Optional[float] = None


@dataclass
class Node:
    """A node, its driver pod and what it publishes."""

    name: str
    uid: str
    version: int = 1
    cordoned: bool = False
    cordoned_by_others: bool = False
    uncordoned: bool = False
    annotations: dict[str, str] = field(default_factory=dict)
    label: Optional[str] = None
    rule: bool = False
    boot: int = 1
    up_at: float = 0.0
    driver: str = ""
    driver_value: str = OLD
    driver_at: float = 0.0
    claims: dict[str, float] = field(default_factory=dict)
    configured: bool = False
    reboots: int = 0


@dataclass
class Faults:
    """What goes wrong. Rates are between 0 and 1.

    :param patch: conflicts. ``effect``: calls that fail. ``proof``: proofs that fail at first.
    :param dead_drivers: nodes whose new driver never comes back. ``budgets``: works whose pods are never evicted.
    :param people: humans and accidents interfere.
    """

    patch: float = 0.0
    effect: float = 0.0
    proof: float = 0.0
    stale: float = 0.0
    dead_drivers: frozenset[str] = frozenset()
    budgets: frozenset[str] = frozenset()
    people: float = 0.0


class World:
    """The cluster. ``kill`` is asked before and after each thing that a controller does."""

    def __init__(
        self, names: list[str], *, seed: int = 0, work: int = 1, faults: Optional[Faults] = None
    ) -> None:
        self.random = random.Random(seed)
        self.faults = faults or Faults()
        self.now = 1000.0
        self.nodes: dict[str, Node] = {}
        self.pods: dict[str, Pod] = {}
        self.value = OLD
        self.on_delete = False
        self.record = Record()
        self.evicted: dict[str, int] = {}
        self.uncordons: dict[str, int] = {}
        self.calls = 0
        self.serial = 0
        self.kill: Callable[[str, str], None] = lambda what, when: None
        self.plan: Optional[Plan] = None
        self.watch_values = True
        for name in names:
            self.add(name)
        for name in names:
            for turn in range(work):
                self.start("work-%s-%d" % (name, turn), name, job=turn % 2 == 1)

    def fresh(self, what: str) -> str:
        self.serial += 1
        return "%s-%d" % (what, self.serial)

    def add(self, name: str) -> None:
        node = Node(name, self.fresh("node"), driver=self.fresh("driver"))
        node.driver_value = self.value
        node.driver_at = self.now
        self.nodes[name] = node

    def start(self, work: str, name: str, job: bool = False) -> None:
        node = self.nodes[name]
        uid = self.fresh("pod")
        ends = self.now + self.random.uniform(20, 2000) if job else None
        self.pods[uid] = Pod(uid, name, work, node.driver_value, work in self.faults.budgets, ends)
        node.claims[uid] = float("inf")

    # --- what a controller sees

    def ready(self, node: Node) -> bool:
        return self.now >= node.up_at

    def driver_ready(self, node: Node) -> bool:
        return bool(node.driver) and self.now >= node.driver_at and self.ready(node)

    def published(self, node: Node) -> str:
        return node.driver_value if node.driver and self.now >= node.driver_at + 1 else ""

    def schedulable(self, node: Node) -> bool:
        return not node.cordoned and not node.rule and self.ready(node)

    def view(self, node: Node, plan: Plan) -> NodeView:
        users = tuple(
            [
                User(
                    "default",
                    pod.work,
                    pod.uid,
                    "claim",
                    "default/" + pod.uid,
                    owner="Job default/" + pod.work,
                    owner_kind="Job" if pod.ends_at else "ReplicaSet",
                    leaving=pod.gone_at is not None,
                    ends=pod.ends_at is not None,
                )
                for pod in self.pods.values()
                if pod.node == node.name
            ]
        )
        drivers = (
            (
                DriverPod(
                    "kube", node.driver, node.driver, self.driver_ready(node), node.driver_value == self.value
                ),
            )
            if node.driver
            else ()
        )
        return NodeView(
            name=node.name,
            uid=node.uid,
            version=str(node.version),
            ready=self.ready(node),
            unschedulable=node.cordoned,
            marks=marks.read(node.annotations, plan.prefix),
            users=users,
            claims=tuple(sorted(node.claims)),
            drivers=drivers,
            value=self.published(node),
            boot_id="boot-%d" % node.boot,
            fenced_by_rule=node.rule,
        )

    # --- what a controller does

    def did(self, what: str, action: Callable[[], Any]) -> Any:
        self.kill(what, "before")
        self.calls += 1
        result = action()
        self.kill(what, "after")
        return result

    def write(self, record: Record) -> None:
        if record != self.record:
            self.did(
                "record", lambda: setattr(self, "record", planning.load_record(planning.dump_record(record)))
            )

    def patch(self, name: str, patch: NodePatch, plan: Plan) -> None:
        def action() -> None:
            node = self.nodes.get(name)
            if node is None or patch.version != str(node.version) or self.random.random() < self.faults.patch:
                raise ConflictError
            entered = patch.annotations.get("roll-state")
            if entered == (State.APPLIED if plan.strategy is Strategy.DRAIN_ALL else State.FENCED).value:
                self.may_begin(node)
            node.version += 1
            for key, text in patch.annotations.items():
                if text is None:
                    node.annotations.pop(plan.prefix + key, None)
                else:
                    node.annotations[plan.prefix + key] = text
            node.label = patch.label
            if patch.unschedulable is True and not node.cordoned:
                node.cordoned = True
                node.uncordoned = False
            elif patch.unschedulable is False:
                if node.cordoned_by_others:
                    raise BrokenError("the cordon of somebody else on %s was removed" % name)
                if node.cordoned:
                    self.uncordons[name] = self.uncordons.get(name, 0) + 1
                node.cordoned = False
            self.check()

        entered = patch.annotations.get("roll-state") or "-"
        self.did("enter " + entered, action)

    def keep(self) -> str:
        return '{"strategy":"%s"}' % ("OnDelete" if self.on_delete else "RollingUpdate")

    def prepare(self) -> None:
        self.did("prepare", lambda: setattr(self, "on_delete", True))

    def switch(self, value: str) -> None:
        """The option and the strategy in one change."""

        def action() -> None:
            self.value = value
            self.on_delete = True

        self.did("switch", action)

    def restore(self, kept: str) -> None:
        def action() -> None:
            for node in self.nodes.values():
                if node.driver_value != self.value and (self.schedulable(node) or self.users(node)):
                    raise BrokenError(
                        "restoring the strategy restarts the driver of %s, which is in use" % node.name
                    )
            self.on_delete = "OnDelete" in kept

        self.did("restore", action)

    def users(self, node: Node) -> bool:
        return bool(node.claims) or any(pod.node == node.name for pod in self.pods.values())

    def perform(self, name: str, effect: Effect, told: Told, plan: Plan) -> Told:
        """One effect; what it told."""
        if self.random.random() < self.faults.effect:
            self.kill(type(effect).__name__, "before")
            return replace(told, trouble="the API did not answer")
        node = self.nodes.get(name)
        if node is None:
            return told
        return getattr(self, "do_" + type(effect).__name__)(node, effect, replace(told, trouble=""), plan)

    def do_Evict(self, node: Node, effect: Evict, told: Told, plan: Plan) -> Told:  # noqa: N802
        for user in effect.users:

            def action(uid: str = user.uid) -> Optional[bool]:
                pod = self.pods.get(uid)
                if pod is None:
                    return None
                if pod.budget:
                    return False
                self.evicted[uid] = self.evicted.get(uid, 0) + 1
                if self.evicted[uid] > 1 or pod.gone_at is not None:
                    raise BrokenError("pod %s was evicted twice" % uid)
                pod.gone_at = self.now + self.random.uniform(1, 40)
                return True

            accepted = self.did("evict", action)
            if accepted is False:
                refused = {**told.refused, "default/" + user.name: "429 the budget allows none"}
                told = replace(told, refused=refused, retry_at=self.now + 10)
            else:
                told = replace(told, evicted=told.evicted | {user.uid})
        return told

    def do_Fence(self, node: Node, effect: Fence, told: Told, plan: Plan) -> Told:  # noqa: N802
        def action() -> None:
            if effect.present and not node.rule:
                node.uncordoned = False
            if node.rule and not effect.present:
                self.uncordons[node.name] = self.uncordons.get(node.name, 0) + 1
            node.rule = effect.present
            self.check()

        self.did("fence", action)
        return told

    def do_ChangeNode(self, node: Node, effect: ChangeNode, told: Told, plan: Plan) -> Told:  # noqa: N802
        def action() -> None:
            self.must_be_idle(node, "changed")
            node.configured = True

        self.did("change", action)
        return replace(told, changed=True, reboot_owed=plan.reboot and node.boot == 1)

    def do_Reboot(self, node: Node, effect: Reboot, told: Told, plan: Plan) -> Told:  # noqa: N802
        def action() -> None:
            if effect.boot_id != "boot-%d" % node.boot or not self.ready(node):
                return
            self.must_be_idle(node, "rebooted")
            self.must_be_begun(node)
            node.reboots += 1
            node.boot += 1
            node.up_at = self.now + BOOT
            if node.reboots > 2:
                raise BrokenError("%s was rebooted %d times" % (node.name, node.reboots))

        self.did("reboot", action)
        return replace(told, asked=self.now)

    def do_RestartDriver(self, node: Node, effect: RestartDriver, told: Told, plan: Plan) -> Told:  # noqa: N802
        for pod in effect.pods:

            def action(uid: str = pod.uid) -> None:
                if node.driver == uid:
                    self.must_be_idle(node, "given a new driver")
                    self.must_be_begun(node)
                    self.new_driver(node)

            self.did("restart", action)
            told = replace(told, deleted=told.deleted | {pod.uid})
        return told

    def new_driver(self, node: Node) -> None:
        """The DaemonSet makes a pod from its template."""
        node.driver = self.fresh("driver")
        node.driver_value = self.value
        node.driver_at = max(self.now, node.up_at) + self.random.uniform(1, 20)
        if node.name in self.faults.dead_drivers and self.value == NEW:
            node.driver_at = float("inf")

    def do_Prove(self, node: Node, effect: Prove, told: Told, plan: Plan) -> Told:  # noqa: N802
        def action() -> bool:
            peer = self.nodes.get(effect.peer)
            if effect.peer and (peer is None or effect.peer == node.name):
                return False
            return self.published(node) == plan.new and self.random.random() >= self.faults.proof

        good = self.did("prove", action)
        return replace(told, proven=good, problems=() if good else ("the child does not answer",))

    # --- what must never happen

    def must_be_idle(self, node: Node, what: str) -> None:
        if self.users(node):
            raise BrokenError("%s was %s while it was in use" % (node.name, what))

    def outage(self, node: Node, plan: Plan) -> bool:
        """Whether a node is unusable, or about to be."""
        if not self.ready(node) or node.cordoned_by_others:
            return True
        if plan.strategy is Strategy.ROLLING:
            return node.cordoned or node.rule
        seen = marks.read(node.annotations, plan.prefix)
        return seen.state is State.FAILED or (seen.state in IN_FLIGHT and self.published(node) != plan.new)

    def may_begin(self, node: Node) -> None:
        """Never more nodes than the budget are made unusable; what others make unusable later is not our doing."""
        plan = self.plan
        if plan is None or self.faults.stale:
            return
        out = {other.name for other in self.nodes.values() if self.outage(other, plan)}
        if node.name not in out and len(out) >= plan.budget:
            raise BrokenError("%s is made unusable although %s are" % (node.name, sorted(out)))

    def must_be_begun(self, node: Node) -> None:
        """Nothing is done to a driver or a node before that is written onto the node."""
        seen = marks.read(node.annotations)
        if seen.state not in IN_FLIGHT or not (node.cordoned or node.rule or node.uncordoned):
            raise BrokenError("%s is changed while it is %s" % (node.name, seen))

    def check(self) -> None:
        """In drain_all two values are never offered to workloads at the same time."""
        if self.plan is None or self.plan.strategy is not Strategy.DRAIN_ALL or not self.watch_values:
            return
        offered = {
            self.published(node)
            for node in self.nodes.values()
            if self.schedulable(node) and not node.uncordoned and self.published(node)
        }
        if len(offered) > 1:
            raise BrokenError("workloads are offered %s" % sorted(offered))

    # --- time

    def sleep(self, seconds: float) -> None:
        """Let time pass: pods end, claims are released, work is started again, people do things."""
        self.now += seconds
        for pod in list(self.pods.values()):
            ended = pod.ends_at is not None and self.now >= pod.ends_at
            if ended or (pod.gone_at is not None and self.now >= pod.gone_at):
                del self.pods[pod.uid]
                node = self.nodes.get(pod.node)
                if node is not None:
                    node.claims[pod.uid] = self.now + self.random.uniform(0, 8)
                if not ended:
                    self.schedule(pod.work, pod.ends_at is not None)
        for node in self.nodes.values():
            node.claims = {uid: until for uid, until in node.claims.items() if until > self.now}
        if self.random.random() < self.faults.people:
            self.people()
        self.check()

    def schedule(self, work: str, job: bool) -> None:
        places = [
            node.name for node in self.nodes.values() if self.schedulable(node) and self.published(node)
        ]
        if places:
            self.start(work, self.random.choice(places), job)

    def is_ours(self, node: Node) -> bool:
        return bool(marks.read(node.annotations).owner)

    def people(self) -> None:
        """Somebody does something."""
        node = self.random.choice(list(self.nodes.values()))
        what = self.random.randrange(5)
        if what == 0 and node.cordoned and not node.cordoned_by_others:
            node.cordoned, node.uncordoned = False, True
            self.schedule("stray", False)
        elif what == 1:
            node.up_at = max(node.up_at, self.now + self.random.uniform(5, 60))
        elif what == 2 and not node.cordoned and not (self.is_ours(node) and not node.rule):
            # A cordon on a node that was fenced by a cordon of ours a moment ago looks like that one.
            node.cordoned = node.cordoned_by_others = True
        elif what == 3 and node.cordoned_by_others:
            node.cordoned = node.cordoned_by_others = False
            node.uncordoned = True
        elif what == 4 and len(self.nodes) < 8 and self.random.random() < 0.2:
            self.add(self.fresh("late"))
        node.version += 1


class Controller:
    """The loop."""

    def __init__(self, world: World, plan: Plan) -> None:
        self.world = world
        self.plan = plan
        self.told: dict[str, Told] = {}
        self.last: dict[str, NodeView] = {}
        self.orders = Orders()
        self.stamps = 0

    def stamp(self) -> str:
        """The time of day of this controller, with a clock that is wrong."""
        self.stamps += 1
        return "2026-01-01T%02d:%02d:00Z" % (self.stamps // 60 % 24, self.stamps % 60)

    def views(self) -> dict[str, NodeView]:
        world = self.world
        found = {}
        for name, node in world.nodes.items():
            if name not in self.plan.nodes and not name.startswith("late"):
                continue
            view = world.view(node, self.plan)
            if name in self.last and world.random.random() < world.faults.stale:
                view = replace(self.last[name], users=view.users, claims=view.claims)
            found[name] = self.last[name] = view
        return found

    def hear(self, view: NodeView) -> Told:
        told = machine.heard(self.plan, self.told.get(view.name, Told()), view, self.world.now)
        self.told[view.name] = told
        return told

    def pass_once(self) -> bool:
        """One pass; whether it has ended."""
        world, plan = self.world, self.plan
        views = self.views()
        for view in views.values():
            self.hear(view)
        orders = self.orders = conduct.conduct(plan, world.record, views, self.told, world.now)
        if orders.record is not None:
            world.write(orders.record)
        if orders.prepare:
            world.write(replace(world.record, kept=world.keep()))
            world.prepare()
        if orders.switch:
            world.switch(orders.value)
            world.write(replace(world.record, switched=orders.value == plan.new))
        if orders.restore:
            world.restore(world.record.kept)
            world.write(replace(world.record, kept=""))
        for name in orders.release:
            self.apply(name, machine.release(plan, views[name]))
        order = list(orders.may)
        world.random.shuffle(order)
        for name in order:
            self.work(name, views[name], orders)
        return orders.ended

    def work(self, name: str, view: NodeView, orders: Orders) -> None:
        """Let one node take steps until it waits for something."""
        for _turn in range(4):
            told = self.hear(view)
            step = machine.advance(
                self.plan,
                orders.may[name],
                view,
                told,
                self.world.now,
                self.stamp(),
                peer=orders.peers.get(name, ""),
                hold=orders.hold,
            )
            if not self.apply(name, step) or name not in self.world.nodes:
                return
            view = self.world.view(self.world.nodes[name], self.plan)
            if step.reason or (step.patch is None and not step.effects):
                return

    def apply(self, name: str, step: Any) -> bool:
        if step.patch is not None:
            try:
                self.world.patch(name, step.patch, self.plan)
            except ConflictError:
                return False
            if name in self.world.nodes:  # the answer to the patch is the next view
                self.hear(self.world.view(self.world.nodes[name], self.plan))
        for effect in step.effects:
            self.told[name] = self.world.perform(name, effect, self.told.get(name, Told()), self.plan)
        return True


def plan_for(world: World, **options: Any) -> Plan:
    """A plan over all nodes of a world."""
    blank = Plan("range", OLD, NEW, ())
    views = {name: world.view(node, blank) for name, node in world.nodes.items()}
    world.plan = planning.make("range", OLD, NEW, views, **options)
    return world.plan


def run(
    world: World,
    plan: Plan,
    *,
    passes: int = 2000,
    lives: int = 20,
    until: Optional[Callable[[], bool]] = None,
) -> tuple[Phase, int]:
    """Let controllers work until one says that it has ended; one that dies is followed by another.

    :return: the phase, and how many controllers died.
    """
    deaths = 0
    controller = Controller(world, plan)
    for _pass in range(passes):
        try:
            if controller.pass_once():
                return world.record.phase, deaths
        except Killed:
            deaths += 1
            if deaths > lives:
                raise BrokenError("every controller died") from None
            controller = Controller(world, plan)
        if until is not None and until():
            return world.record.phase, deaths
        world.sleep(world.random.choice((2.0, 5.0, 5.0, 10.0)))
    raise BrokenError("nothing came to an end: %s %s" % (controller.orders.reason, states(world, plan)))


def states(world: World, plan: Plan) -> Mapping[str, str]:
    """The states of all nodes, for messages."""
    found = {}
    for name, node in world.nodes.items():
        seen = marks.read(node.annotations, plan.prefix)
        found[name] = "%s %s" % (seen.state.value if seen.state else "-", seen.error)
    return found


def complete(world: World, plan: Plan, value: str = NEW) -> None:
    """Everything is as it must be at the end of a roll that went through.

    :raises BrokenError: it is not.
    """
    name = planning.digest(plan)
    for node in world.nodes.values():
        seen = marks.read(node.annotations, plan.prefix)
        wrong = [
            text
            for text, bad in (
                ("offers %s" % node.driver_value, node.driver_value != value),
                ("is fenced", node.rule or (node.cordoned and not node.cordoned_by_others)),
                ("is marked %s" % seen, seen.state is not State.DONE or seen.applied != name),
                ("keeps marks %s" % seen, bool(seen.owner or seen.lock or seen.before or seen.reboots)),
                ("keeps marks %s" % seen, seen.initial_unschedulable is not None),
                ("is labelled %s" % node.label, node.label != "Done"),
            )
            if bad
        ]
        if wrong:
            raise BrokenError("%s %s" % (node.name, ", ".join(wrong)))
    if world.on_delete or world.record.kept or world.value != value:
        raise BrokenError("the driver is left with %s, %s" % (world.on_delete, world.value))
