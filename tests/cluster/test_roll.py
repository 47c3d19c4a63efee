# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A change of the child range over simulated nodes of a real control plane: the real loop and lease."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import json
import os
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.cluster import roll_run, roll_session
from ansible_collections.rdma.k8s.plugins.module_utils.cluster.client import Cluster, connect
from ansible_collections.rdma.k8s.plugins.module_utils.cluster.pod_exec import Place, Printed
from ansible_collections.rdma.k8s.plugins.module_utils.cluster.roll_dranet import Proof
from ansible_collections.rdma.k8s.plugins.module_utils.cluster.roll_lease import Lease, has_ended, holder
from ansible_collections.rdma.k8s.plugins.module_utils.cluster.roll_node import Agent
from ansible_collections.rdma.k8s.plugins.module_utils.cluster.roll_run import News
from ansible_collections.rdma.k8s.plugins.module_utils.cluster.roll_session import Options, Session
from ansible_collections.rdma.k8s.plugins.module_utils.core.errors import RdmaError
from ansible_collections.rdma.k8s.plugins.module_utils.core.oke import canary
from ansible_collections.rdma.k8s.plugins.module_utils.core.roll import planning, status
from ansible_collections.rdma.k8s.plugins.module_utils.core.roll.names import Phase
from ansible_collections.rdma.k8s.tests.support.roll_fleet import (
    CLASS,
    DRIVER,
    MERGE,
    NEW,
    OLD,
    OPTION,
    Fleet,
    until,
)

from .conftest import SIMULATED, ControlPlane

NODES = tuple("sim-%04d" % number for number in range(1, SIMULATED + 1))
CALLS_OF_A_NODE = 40


@pytest.fixture
def cluster(control_plane: ControlPlane) -> Cluster:
    """Calls as the administrator."""
    return connect(str(control_plane.kubeconfig))


@pytest.fixture
def fleet(cluster: Cluster) -> Iterator[Fleet]:
    """Users of RDMA and other pods on all nodes, behind the driver."""
    made = Fleet(cluster, "roll" + uuid.uuid4().hex[:6], NODES)
    try:
        made.make()
        yield made
    finally:
        made.remove()


class Watcher:
    """What a roll told; it can act when a state is reached."""

    def __init__(self) -> None:
        self.news: list[News] = []
        self.on: dict[str, Any] = {}

    def __call__(self, news: News) -> None:
        self.news.append(news)
        act = self.on.pop(news.now, None)
        if act is not None:
            act(news)

    def states(self, node: str) -> list[str]:
        """The states of a node in their order."""
        return [news.now for news in self.news if news.node == node]

    def first(self, state: str) -> int:
        """When a node first reached a state."""
        return next(at for at, news in enumerate(self.news) if news.node and news.now == state)

    def last(self, state: str) -> int:
        """When the last node reached it."""
        return max(at for at, news in enumerate(self.news) if news.node and news.now == state)


def session(control_plane: ControlPlane, fleet: Fleet, tell: Any = None, **options: Any) -> Session:
    """One controller's work."""
    stop = options.pop("stop", None)
    return Session(
        lambda timeout: connect(str(control_plane.kubeconfig), request_timeout=timeout),
        Options(namespace=fleet.namespace, driver_namespace=fleet.namespace, **options),
        tell or Watcher(),
        stop,
    )


def test_a_whole_roll_and_back(control_plane: ControlPlane, fleet: Fleet) -> None:
    """Barriers of decision 24; only users of RDMA are evicted, each once; what was before is back at the end."""
    watcher = Watcher()
    work = session(control_plane, fleet, watcher)
    plan, views = work.plan(NEW, budget="50%")
    assert (plan.old, plan.new, plan.budget, sorted(plan.nodes)) == (OLD, NEW, 2, list(NODES))
    assert [len(view.users) for view in views.values()] == [1] * SIMULATED
    train, cpu, drivers = fleet.pods("train"), fleet.pods("cpu"), fleet.pods(DRIVER)
    planned = work.calls
    ended = work.run(work.begin(plan))
    assert ended.stored.record.phase is Phase.COMPLETE
    assert work.calls - planned <= CALLS_OF_A_NODE * SIMULATED
    assert watcher.last("ClaimsReleased") < watcher.first("Applied")
    assert watcher.last("Verified") < watcher.first("Released")
    assert fleet.values() == dict.fromkeys(NODES, NEW)
    assert (fleet.told(), fleet.strategy(), fleet.fenced()) == (["--v=4", OPTION + NEW], "RollingUpdate", [])
    for name in NODES:
        marks = fleet.marks(name)
        assert marks.pop("roll-since")
        assert marks == {
            "roll-desired": ended.stored.name,
            "roll-applied": ended.stored.name,
            "roll-state": "Done",
            "roll-note": canary.NO_IMAGE,
        }
    assert fleet.pods("cpu") == cpu
    until("the pods are back", fleet.good)
    assert set(fleet.pods("train")).isdisjoint(train)
    assert set(fleet.pods(DRIVER)).isdisjoint(drivers)

    back = session(control_plane, fleet)
    undone = back.run(back.begin(back.back(ended.stored)))
    assert (undone.stored.record.phase, undone.stored.plan.parent) == (Phase.ROLLED_BACK, ended.stored.name)
    assert (fleet.values(), fleet.told()[1]) == (dict.fromkeys(NODES, OLD), OPTION + OLD)
    assert (fleet.strategy(), fleet.fenced()) == ("RollingUpdate", [])
    assert back.plan(NEW)[0].turn == 1 or planning.digest(back.plan(NEW)[0]) != ended.stored.name


PROGRAM = """
import sys
from ansible_collections.rdma.k8s.plugins.module_utils.cluster.client import connect
from ansible_collections.rdma.k8s.plugins.module_utils.cluster.roll_session import Options, Session
kubeconfig, namespace, new = sys.argv[1:]
work = Session(
    lambda timeout: connect(kubeconfig, request_timeout=timeout),
    Options(namespace=namespace, driver_namespace=namespace),
    lambda news: print(news.node, news.now, flush=True),
)
plan, views = work.plan(new, budget=2)
work.run(work.begin(plan))
"""


@pytest.mark.parametrize("state", ["Draining", "Verified"])
def test_killed_and_resumed(control_plane: ControlPlane, fleet: Fleet, state: str) -> None:
    """The lease of a process of this machine that has ended is free at once."""
    cpu, train = fleet.pods("cpu"), fleet.pods("train")
    command = [sys.executable, "-c", PROGRAM, str(control_plane.kubeconfig), fleet.namespace, NEW]
    found = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=found) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line.split()[1:] == [state]:
                process.send_signal(signal.SIGKILL)
                break
    assert process.returncode == -signal.SIGKILL
    assert fleet.fenced() != []
    watcher = Watcher()
    work = session(control_plane, fleet, watcher)
    began = time.monotonic()
    ended = work.run(work.chosen())
    assert ended.stored.record.phase is Phase.COMPLETE
    assert time.monotonic() - began < 45, "it did not wait for the lease to expire"
    assert (fleet.values(), fleet.strategy(), fleet.fenced()) == (
        dict.fromkeys(NODES, NEW),
        "RollingUpdate",
        [],
    )
    assert fleet.pods("cpu") == cpu
    until("the pods are back", fleet.good)
    assert set(fleet.pods("train")).isdisjoint(train)


def test_aborted_before_anything_was_changed(control_plane: ControlPlane, fleet: Fleet) -> None:
    """All fences of ours go, that of somebody else stays; and nobody else may begin meanwhile."""
    refused: list[RdmaError] = []

    def meddle(news: News) -> None:
        other = session(control_plane, fleet, wait_for_lease=False)
        with pytest.raises(RdmaError) as found:
            other.run(other.chosen())
        refused.append(found.value)
        other_plan = other.plan("192.168.0.0/16", budget=2)[0]
        with pytest.raises(RdmaError) as found:
            other.begin(other_plan)
        refused.append(found.value)
        stop.set()

    fleet.cordon(NODES[3])
    stop, watcher = threading.Event(), Watcher()
    watcher.on["ClaimsReleased"] = meddle
    work = session(control_plane, fleet, watcher, stop=stop)
    ended = work.run(work.begin(work.plan(NEW, budget=2)[0]))
    assert [error.code for error in refused] == ["roll_locked", "roll_half_done"]
    assert (ended.stopped, ended.stored.record.phase) == (True, Phase.PAUSED)
    assert len(fleet.fenced()) > 1
    again = session(control_plane, fleet)
    aborted = again.run(again.chosen(), roll_run.ABORT, "not today")
    assert (aborted.stored.record.phase, aborted.stored.record.reason) == (Phase.ABORTED, "not today")
    assert fleet.fenced() == [NODES[3]]
    assert (fleet.values(), fleet.strategy()) == (dict.fromkeys(NODES, OLD), "RollingUpdate")
    assert [fleet.marks(name) for name in NODES] == [{}] * SIMULATED
    after = session(control_plane, fleet)
    after.begin(after.plan("192.168.0.0/16", budget=2)[0])  # an aborted roll that left nothing binds nobody


def test_rolling_under_device_taints(control_plane: ControlPlane, fleet: Fleet) -> None:
    """Node by node, and no node is ever cordoned: other pods may land while its devices are tainted."""
    watcher = Watcher()
    cordoned: list[str] = []
    rules: list[int] = []
    path = "/apis/resource.k8s.io/v1/devicetaintrules"

    def look(news: News) -> None:
        cordoned.extend(fleet.fenced())
        rules.append(sum(1 for _rule in fleet.cluster.items(path)))

    watcher.on["Draining"] = watcher.on["Applied"] = look
    work = session(control_plane, fleet, watcher)
    plan = work.plan(NEW, strategy=planning.Strategy.ROLLING, fence="taint", budget=1)[0]
    ended = work.run(work.begin(plan))
    assert ended.stored.record.phase is Phase.COMPLETE
    assert (cordoned, rules) == ([], [1, 1])
    assert list(fleet.cluster.items(path)) == []
    assert (fleet.values(), fleet.strategy()) == (dict.fromkeys(NODES, NEW), "RollingUpdate")


def test_its_time_is_over(control_plane: ControlPlane, fleet: Fleet) -> None:
    """It pauses clean, the lease is free, and the next run goes on."""
    work = session(control_plane, fleet, max_runtime=2.0)
    ended = work.run(work.begin(work.plan(NEW, budget=4)[0]))
    assert (ended.stopped, ended.stored.record.phase) == (True, Phase.PAUSED)
    assert ended.reason == "its time of 2 s is over"
    lease = fleet.cluster.get(fleet.path("coordination.k8s.io/v1", "leases", "rdma-roll"))
    assert "holderIdentity" not in lease["spec"]
    work = session(control_plane, fleet)
    assert work.run(work.chosen()).stored.record.phase is Phase.COMPLETE


class SimulatedAgent:
    """What the node agent does on real nodes: it takes orders and answers, and the simulator boots the nodes."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet
        self.written = dict.fromkeys(NODES, "shared")
        self.running = dict(self.written)
        self.boots = {name: self.boot(name) for name in NODES}
        self.orders: list[tuple[str, str]] = []

    def boot(self, node: str) -> str:
        """The boot in which a node is."""
        return str(self.fleet.node(node)["status"]["nodeInfo"]["bootID"])

    def ask(self, cluster: Cluster, place: Place, words: Any, line: str, limit: float) -> Printed:
        """In the place of a program in a pod; the pod's name is that of its node."""
        node, order = place.pod, json.loads(line)
        step, options = order["step"], order["options"]
        if step != "look":
            self.orders.append((node, step))
        if self.boot(node) != self.boots[node]:
            self.boots[node], self.running[node] = self.boot(node), self.written[node]
        if step == "netns_mode":
            self.written[node] = options["mode"]
            result = {"changed": True, "reboot_required": self.running[node] != options["mode"]}
        elif step == "reboot":
            result = {"asked": options["boot_id"] == self.boots[node]}
            fault = {"metadata": {"annotations": {"rdma-lab/faults": "reboot"}}}
            cluster.send("PATCH", f"/api/v1/nodes/{node}", fault, MERGE)
        else:
            result = {"netns_mode": self.running[node], "oca_network": "", "boot_id": self.boots[node]}
        return Printed(json.dumps({"result": result}), "", 0)


def test_a_setting_of_the_nodes(
    control_plane: ControlPlane, fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Decision 26: each node is changed, booted once and proven; one that has the value already is left alone."""
    agent = SimulatedAgent(fleet)
    agent.written[NODES[2]] = agent.running[NODES[2]] = "exclusive"
    monkeypatch.setattr(Agent, "_place", lambda self, node: Place("x", node, "agent"))
    monkeypatch.setattr(roll_session, "Agent", functools.partial(Agent, run=agent.ask))
    work = session(control_plane, fleet)
    before, cpu = dict(agent.boots), fleet.pods("cpu")
    plan = work.plan("exclusive", kind="netns_mode", budget=3)[0]
    changed = [name for name in NODES if name != NODES[2]]
    assert (sorted(plan.nodes), plan.old, plan.node_change, plan.reboot) == (changed, "shared", True, True)
    ended = work.run(work.begin(plan))
    assert ended.stored.record.phase is Phase.COMPLETE
    assert agent.running == dict.fromkeys(NODES, "exclusive")
    for name in changed:
        assert [step for node, step in agent.orders if node == name] == ["netns_mode", "reboot"]
        assert agent.boot(name) != before[name]
    assert agent.boot(NODES[2]) == before[NODES[2]]
    assert (fleet.fenced(), fleet.strategy()) == ([], "OnDelete" if ended.unrestored else "RollingUpdate")
    assert ended.unrestored == (NODES[2],), "its driver pod is of the former template"
    assert fleet.pods("cpu") == cpu


class Kubelets:
    """They say for canaries on simulated nodes what their containers would have said.

    :param cut: a node whose children reach nobody; ``stop`` is set when two of them have tried.
    """

    def __init__(self, fleet: Fleet, cut: str = "", stop: threading.Event | None = None) -> None:
        self.fleet, self.cut, self.stop = fleet, cut, stop or threading.Event()
        self.refused: set[str] = set()
        self.tried: list[tuple[str, str, str]] = []
        """Who tried to reach which address, and the node that has it."""
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Kubelets:
        self._thread.start()
        return self

    def __exit__(self, *_raised: object) -> None:
        self._stop.set()
        self._thread.join()

    @staticmethod
    def address(node: str) -> str:
        """Of the child on a node."""
        return "172.16.0.%d" % int(node[-4:])

    def _run(self) -> None:
        pods = self.fleet.path("v1", "pods")
        labels = "app.kubernetes.io/part-of=rdma-k8s-oke-dranet"
        while not self._stop.wait(0.3):
            for live in self.fleet.cluster.items(pods, labelSelector=labels):
                phase = (live.get("status") or {}).get("phase")
                if phase == "Running" and "deletionTimestamp" not in live["metadata"]:
                    self._tell(f"{pods}/{live['metadata']['name']}/status", live)

    def _tell(self, path: str, live: dict[str, Any]) -> None:
        node = live["spec"]["nodeName"]
        witness = live["metadata"]["name"].startswith(canary.WITNESS)
        key = "containerStatuses" if witness else "initContainerStatuses"
        link = {"name": "rdma0", "kind": "" if witness else "ipvlan", "mac": self._mac(node), "up": True}
        told: dict[str, list[Any]] = {}
        if canary.told(live, not witness) is None:
            told[key] = [self._ended("look", {**link, "address": self.address(node)})]
        for container in live["spec"]["containers"]:
            if container["name"] == "reach" and canary.told(live, container="reach") is None:
                wanted = container["command"][4]
                (there,) = [name for name in NODES if self.address(name) == wanted]
                self.tried.append((node, wanted, there))
                found = {"error": "timed out"} if node == self.cut else {"seen": self.address(node)}
                if node == self.cut:
                    self.refused.add(live["metadata"]["uid"])
                told["containerStatuses"] = [self._ended("reach", found)]
        if told:
            with contextlib.suppress(RdmaError):
                self.fleet.cluster.send("PATCH", path, {"status": told}, MERGE)
        if len(self.refused) > 1:
            self.stop.set()

    @staticmethod
    def _ended(name: str, message: Any) -> dict[str, Any]:
        ended = {"exitCode": 0, "message": json.dumps(message)}
        state = {"terminated": ended}
        return {"name": name, "image": "x", "imageID": "", "ready": True, "restartCount": 0, "state": state}

    def _mac(self, node: str) -> str:
        slices = self.fleet.cluster.items(
            "/apis/resource.k8s.io/v1/resourceslices", fieldSelector="spec.nodeName=" + node
        )
        return next(
            device["attributes"]["dra.net/mac"]["string"]
            for one in slices
            for device in one["spec"]["devices"]
            if device["attributes"]["dra.net/ifName"]["string"] == "rdma0"
        )


def proof_of(fleet: Fleet) -> Proof:
    """A proof by claims in the namespace of the fleet."""
    return Proof(
        image="lab.test/rdma-k8s:1",
        namespace=fleet.namespace,
        device_class=f"{CLASS}-{fleet.namespace}",
        ready=False,
        timeout=60,
    )


def canaries(fleet: Fleet) -> list[str]:
    """The pods and claims of proofs that are there."""
    return [
        found["metadata"]["name"]
        for path in (
            fleet.path("v1", "pods"),
            f"/apis/resource.k8s.io/v1/namespaces/{fleet.namespace}/resourceclaims",
        )
        for found in fleet.cluster.items(path)
        if found["metadata"]["name"].startswith((canary.NAME, canary.WITNESS))
    ]


def test_a_node_that_somebody_leaves_cordoned(control_plane: ControlPlane, fleet: Fleet) -> None:
    """With a budget of 1 the roll waits: who blocks it is told at once, in the status, and when the wait is ended."""
    watcher, stop = Watcher(), threading.Event()
    watcher.on["waits"] = lambda news: stop.set()
    work = session(control_plane, fleet, watcher, stop=stop)
    fleet.cordon(NODES[3])
    try:
        plan = work.plan(NEW, strategy=planning.Strategy.ROLLING, budget=1)[0]
        ended = work.run(work.begin(plan))
    finally:
        fleet.cordon(NODES[3], on=False)
    blocks = "the budget of 1 is used up: %s is cordoned by somebody" % NODES[3]
    assert [news.reason for news in watcher.news if news.now == "waits"] == [blocks]
    assert (ended.stopped, ended.stored.record.phase) == (True, Phase.PAUSED)
    stored = work.chosen(ended.stored.name)
    told = status.lines(status.look(plan, stored.record, work.marks_of(stored), roll_run.stamp()))
    assert "because: it was told to stop; until then: " + blocks in " ".join(map(str.strip, told))
    assert fleet.fenced() == []


def test_proven_by_claims_behind_the_fence(control_plane: ControlPlane, fleet: Fleet) -> None:
    """Decision 25: canaries land on fenced nodes, reach a node that was proven before, and are gone before release."""
    nodes, left = NODES[:2], []

    def look(news: News) -> None:
        left.extend(canaries(fleet))

    watcher = Watcher()
    watcher.on["Released"] = look
    work = session(control_plane, fleet, watcher, proof=proof_of(fleet))
    plan = work.plan(NEW, nodes=nodes, fence="taint", budget=2)[0]
    with Kubelets(fleet) as kubelets:
        ended = work.run(work.begin(plan))
    assert (ended.stored.record.phase, left) == (Phase.COMPLETE, [])
    first, second = plan.nodes
    assert set(kubelets.tried) == {(second, Kubelets.address(first), first)}
    assert fleet.marks(first)["roll-note"] == canary.ALONE
    assert "roll-note" not in fleet.marks(second)
    seen = status.look(plan, ended.stored.record, ended.views, roll_run.stamp())
    assert "1 node: " + canary.ALONE in status.lines(seen)
    assert [fleet.values()[name] for name in nodes] == [NEW, NEW]
    assert ended.unrestored == NODES[2:], "nodes that the plan left out keep the former option"
    assert fleet.strategy() == "OnDelete"


def test_a_child_that_reaches_no_switched_node(control_plane: ControlPlane, fleet: Fleet) -> None:
    """The node is not proven, its message names both ends, it stays fenced, and nothing of the proof is left."""
    stop = threading.Event()
    work = session(control_plane, fleet, proof=proof_of(fleet), stop=stop)
    plan = work.plan(NEW, nodes=NODES[:2])[0]
    first, second = plan.nodes
    with Kubelets(fleet, second, stop) as kubelets:
        ended = work.run(work.begin(plan))
    assert set(kubelets.tried) == {(second, Kubelets.address(first), first)}
    assert (ended.stored.record.phase, ended.stopped) == (Phase.PAUSED, True)
    assert fleet.marks(second)["roll-state"] == "Verified"
    assert second in fleet.fenced()
    assert work.roll is not None
    assert work.roll.reasons[second].startswith(
        "The child %s of rdma0 on %s does not reach the child %s of rdma0 on %s: timed out. Look at rule and routes"
        % (Kubelets.address(second), second, Kubelets.address(first), first)
    )
    assert canaries(fleet) == []


def test_a_driver_without_children_is_told_to_have_reached_nobody(
    control_plane: ControlPlane, fleet: Fleet
) -> None:
    """Today's releases refuse a claim for a child: the nodes are proven so far, and the status says what was not."""
    proof = dataclasses.replace(proof_of(fleet), expect=canary.REFUSED)
    work = session(control_plane, fleet, proof=proof)
    plan = work.plan(NEW, nodes=NODES[:1], fence="taint")[0]
    for name in plan.nodes:
        fault = {"metadata": {"annotations": {"rdma-lab/faults": "prepare"}}}
        fleet.cluster.send("PATCH", f"/api/v1/nodes/{name}", fault, MERGE)
    with Kubelets(fleet) as kubelets:
        ended = work.run(work.begin(plan))
    assert (ended.stored.record.phase, kubelets.tried, canaries(fleet)) == (Phase.COMPLETE, [], [])
    seen = work.chosen(ended.stored.name)
    told = status.lines(status.look(plan, seen.record, work.marks_of(seen), roll_run.stamp()))
    assert "1 node: " + canary.CHILDLESS in told


# --- lease and store -------------------------------------------------------------------------------------------------


class Clock:
    """Time of one controller; only it decides when a lease has expired."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def namespace(control_plane: ControlPlane) -> Iterator[str]:
    """A namespace for one test."""
    name = "t" + uuid.uuid4().hex[:8]
    control_plane.kubectl("create", "namespace", name)
    yield name
    control_plane.kubectl("delete", "namespace", name, "--wait=false")


def test_who_may_take_the_lease(cluster: Cluster, namespace: str) -> None:
    """Decision 28: expired is what stayed the same for its duration on the own clock. DEV-30: of another roll never."""
    first, clock = Lease(cluster, namespace, ("a",), "first", 1000.0), Clock()
    first.acquire()
    first.require()
    other = Lease(cluster, namespace, ("b",), "other", 1000.0, clock)
    with pytest.raises(RdmaError) as found:
        other.acquire()
    assert (found.value.code, found.value.details["holder"]) == ("roll_locked", "first")
    second = Lease(cluster, namespace, ("a",), "second", 1000.0, clock)
    told: list[float] = []

    def wait(why: str, left: float) -> bool:
        told.append(left)
        clock.now += 600
        return len(told) < 3

    second.acquire(wait=wait)
    assert told == [1000.0, 400.0]
    first._renew()
    assert first.lost
    with pytest.raises(RdmaError) as found:
        first.require()
    assert (found.value.code, found.value.details["holder"]) == ("roll_lease_lost", "second")
    clock.now += 700
    with pytest.raises(RdmaError) as found:
        second.require()
    assert (found.value.code, found.value.retryable) == ("roll_lease_stale", True)
    assert second._renew()
    second.require()
    other.acquire(force=True)
    second.release()
    assert cluster.get(second._path)["spec"]["holderIdentity"] == "other"
    other.release()
    first.release()


def test_a_holder_that_is_renewed_is_not_expired(cluster: Cluster, namespace: str) -> None:
    first, clock = Lease(cluster, namespace, ("a",), "first", 1000.0), Clock()
    first.acquire()
    second = Lease(cluster, namespace, ("a",), "second", 1000.0, clock)
    lefts: list[float] = []

    def wait(why: str, left: float) -> bool:
        lefts.append(left)
        assert first._renew()
        clock.now += 999
        return len(lefts) < 4

    with pytest.raises(RdmaError) as found:
        second.acquire(wait=wait)
    assert (found.value.code, lefts) == ("roll_locked", [1000.0] * 4)
    first.release()


def test_holders_that_have_ended() -> None:
    """Only a process of this user, machine, boot and process space can be told to have ended."""
    here = holder()
    assert not has_ended(here)
    parts = here.split("/")
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    gone = "/".join([*parts[:3], str(process.pid), "1", parts[5]])
    assert has_ended(gone)
    assert not has_ended("/".join([parts[0], "00000000", *gone.split("/")[2:]]))
    assert not has_ended("somebody-else" + gone[gone.index("@") :])
    assert not has_ended("run-7")


def test_a_record_that_somebody_wrote(control_plane: ControlPlane, fleet: Fleet) -> None:
    """A controller whose record was written by another one stops; a plan that was changed is refused."""
    work = session(control_plane, fleet)
    stored = work.begin(work.plan(NEW, nodes=NODES[:2])[0])
    path = fleet.path("v1", "configmaps", "rdma-roll-" + stored.name)
    again = work.store.write(stored, stored.record)
    assert again.record == stored.record
    fleet.cluster.send("PATCH", path, {"metadata": {"annotations": {"a": "b"}}}, MERGE)
    with pytest.raises(RdmaError) as found:
        work.store.write(again, planning.first_record(stored.plan, "2026-01-01T00:00:00Z"))
    assert found.value.code == "roll_rewritten"
    text = fleet.cluster.get(path)["data"]["plan"]
    fleet.cluster.send("PATCH", path, {"data": {"plan": text.replace(NEW, "172.32.0.0/12")}}, MERGE)
    with pytest.raises(RdmaError) as found:
        work.store.load(stored.name)
    assert found.value.code == "roll_plan"
    with pytest.raises(RdmaError) as found:
        work.store.load("0123456789abcdef")
    assert found.value.code == "roll_unknown"
