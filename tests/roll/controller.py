# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A controller of a roll as a process of its own: the loop as it ships, over simulated nodes.

What a simulated node has no kernel for is done by its target through the API: a setting of the node is an annotation, a
boot is a fault of the simulator, and the canary claim is proven by what the driver wrote into its status.
"""

from __future__ import annotations

import ipaddress
import multiprocessing
import multiprocessing.context
import os
import resource
import signal
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ansible_collections.rdma.k8s.plugins.module_utils import deps
from ansible_collections.rdma.k8s.plugins.module_utils.cluster import client, roll_dranet, roll_run
from ansible_collections.rdma.k8s.plugins.module_utils.cluster.roll_lease import Lease, holder
from ansible_collections.rdma.k8s.plugins.module_utils.cluster.roll_store import Store, Stored, unfinished
from ansible_collections.rdma.k8s.plugins.module_utils.cluster.roll_world import World, rules_path
from ansible_collections.rdma.k8s.plugins.module_utils.core.errors import RdmaError
from ansible_collections.rdma.k8s.plugins.module_utils.core.roll import planning
from ansible_collections.rdma.k8s.plugins.module_utils.core.roll.model import (
    Consent,
    Proven,
    Record,
    Thresholds,
)
from ansible_collections.rdma.k8s.plugins.module_utils.core.roll.names import Phase, State, Strategy
from ansible_collections.rdma.k8s.plugins.module_utils.core.roll.users import Scope

for name in ("kubernetes.config", "kubernetes.client", "urllib3"):
    deps.kubernetes(name)  # loaded once, in the server from which the processes are forked
deps.json_reader()
deps.yaml()

SETTING, SETTING_BOOT = "rdma-test/setting", "rdma-test/setting-boot"
FAULTS = "rdma-lab/faults"
CANARY = "canary"
DRIVER = "dra.net"

COMPLETE, FAILED, LOCKED, ABORTED, PAUSED = 0, 1, 3, 4, 5
"""Exit codes of a controller."""


@dataclass(frozen=True)
class Task:
    """What a controller is to do.

    :param action: ``apply`` (begin, or go on with what was begun), ``abort``, or ``back`` (take back the last one).
    :param lease: seconds of its lease.
    :param patience: seconds for which it waits for the lease of another controller of its roll.
    :param skew: seconds by which its time of day is wrong.
    :param stranger: it says that it runs on another machine, so that nobody can see whether it has ended.
    :param boots: the roll changes a setting of each node and boots it.
    """

    kubeconfig: str
    namespace: str
    nodes: tuple[str, ...]
    new: str
    log: str
    action: str = "apply"
    strategy: str = "drain_all"
    budget: str = "2"
    fence: str = "cordon"
    lease: float = 20.0
    patience: float = 60.0
    force: bool = False
    skew: float = 0.0
    stranger: bool = False
    boots: bool = False
    prove: bool = True
    workers: int = roll_run.WORKERS
    max_runtime: float = 0.0
    limits: dict[str, int] = field(default_factory=dict)
    thresholds: dict[str, int] = field(default_factory=dict)


class SimulatedNodes(roll_dranet.DranetRange):
    """The range of DRANET, on nodes that a simulator plays."""

    def __init__(self, cluster: client.Cluster, task: Task) -> None:
        super().__init__(cluster, roll_dranet.find(cluster, task.namespace), Scope(driver=DRIVER))
        self._task = task

    def change_node(self, node: str, value: str) -> bool:  # type: ignore[override]
        """Set the setting; a boot is owed until the node has another boot id than it had then."""
        path = f"/api/v1/nodes/{node}"
        found = self._cluster.get(path)
        annotations = found["metadata"].get("annotations") or {}
        boot = found["status"]["nodeInfo"]["bootID"]
        if annotations.get(SETTING) != value:
            self._patch(path, {SETTING: value, SETTING_BOOT: boot})
            return True
        return bool(annotations.get(SETTING_BOOT) == boot)

    def reboot(self, node: str, boot_id: str) -> None:  # type: ignore[override]
        """Let the simulator boot it."""
        path = f"/api/v1/nodes/{node}"
        found = self._cluster.get(path)
        faults = (found["metadata"].get("annotations") or {}).get(FAULTS) or ""
        if found["status"]["nodeInfo"]["bootID"] == boot_id and "reboot" not in faults:
            self._patch(path, {FAULTS: "reboot"})

    def _patch(self, path: str, annotations: dict[str, str]) -> None:
        body = {"metadata": {"annotations": annotations}}
        self._cluster.send("PATCH", path, body, "application/merge-patch+json")

    def prove(self, node: str, value: str, peer: str | None) -> Proven:
        """One claim on the node: its children have addresses of the range."""
        if not self._task.prove:
            return Proven()
        name = f"{CANARY}-{node}"
        pods = f"/api/v1/namespaces/{self._task.namespace}/pods"
        self._remove(f"{pods}/{name}")
        self._cluster.send("POST", pods, canary_pod(name, node))
        try:
            pod = self._until(f"{pods}/{name}")
            (status,) = pod["status"]["resourceClaimStatuses"]
            claims = f"/apis/resource.k8s.io/v1/namespaces/{self._task.namespace}/resourceclaims"
            claim = self._cluster.get(f"{claims}/{status['resourceClaimName']}")
            return Proven(tuple(_wrong_children(claim, value)))
        finally:
            self._remove(f"{pods}/{name}")

    def _until(self, path: str) -> dict[str, Any]:
        end = time.monotonic() + 30
        while True:
            pod = self._cluster.get(path)
            if pod["status"].get("phase") == "Running":
                return pod
            if time.monotonic() > end:
                raise RdmaError("test_canary", f"{path} does not run.", retryable=True)
            time.sleep(0.2)

    def _remove(self, path: str) -> None:
        end = time.monotonic() + 30
        while time.monotonic() < end:
            try:
                pod = self._cluster.get(path)
                if "deletionTimestamp" not in pod["metadata"]:
                    self._cluster.send("DELETE", path, None)
            except RdmaError as error:
                if error.code == "kube_not_found":
                    return
                raise
            time.sleep(0.2)


def on_node(node: str) -> dict[str, Any]:
    """The affinity by which the scheduler looks at one node only."""
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    terms = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}


def canary_pod(name: str, node: str) -> dict[str, Any]:
    """A pod that claims the NICs of a node, though the node is fenced."""
    return {
        "metadata": {
            "name": name,
            "labels": {"app": CANARY},
            "annotations": {"rdma-lab/start-seconds": "0.1", "rdma-lab/stop-seconds": "0.1"},
        },
        "spec": {
            "affinity": on_node(node),
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 2,
            "tolerations": [{"operator": "Exists"}],
            "resourceClaims": [{"name": "nics", "resourceClaimTemplateName": CANARY}],
            "containers": [
                {"name": CANARY, "image": "lab.test/pod:1", "resources": {"claims": [{"name": "nics"}]}}
            ],
        },
    }


def _wrong_children(claim: dict[str, Any], value: str) -> list[str]:
    wanted = ipaddress.ip_network(value)
    problems = []
    for device in claim["status"].get("devices") or ():
        addresses = (device.get("networkData") or {}).get("ips") or ["none"]
        for address in addresses:
            if address == "none" or ipaddress.ip_interface(address).network != wanted:
                problems.append(f"the child of {device['device']} has {address}, expected one of {value}")
    return problems or ([] if claim["status"].get("devices") else ["the claim has no device"])


# --- the process -----------------------------------------------------------------------------------------------------


class Controller:
    """One run."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.begin = time.monotonic()
        self.cluster = client.connect(task.kubeconfig)
        self.store = Store(self.cluster, task.namespace)
        self.target = SimulatedNodes(self.cluster, task)
        self.stop = threading.Event()
        self.planning = 0.0

    def say(self, text: str) -> None:
        """A line of the log."""
        print(f"{time.monotonic() - self.begin:8.2f} {text}", flush=True)

    def run(self) -> int:
        """Do it; the exit code."""
        task = self.task
        reader = client.connect(task.kubeconfig)
        rules = rules_path(reader) if task.fence == "taint" else None
        world = World(reader, self.target, rules=rules[0] if rules else "")
        world.start()
        try:
            return self._with(world, rules)
        finally:
            world.stop()

    def _with(self, world: World, rules: tuple[str, str] | None) -> int:
        task = self.task
        stored = self.stored(world)
        lease = Lease(
            client.connect(task.kubeconfig, request_timeout=min(10.0, task.lease / 3)),
            task.namespace, stored.name, _stranger() if task.stranger else holder(), task.lease,
        )  # fmt: skip
        end = time.monotonic() + task.patience

        def wait(why: str, left: float) -> bool:
            time.sleep(0.3)
            return time.monotonic() < end

        lease.acquire(task.force, wait)
        self.say(f"has the lease for {stored.name}")
        self.cluster.guard = lease.require
        try:
            stored = self.store.load(stored.name)
            roll = roll_run.Roll(
                self.cluster, world, self.store, lease, self.target, stored,
                rules=rules, tell=self.tell, stop=self.stop, workers=task.workers,
            )  # fmt: skip
            mode = roll_run.ABORT if task.action == "abort" else roll_run.GO_ON
            ended = roll.run(mode, "the test aborted it" if task.action == "abort" else "", task.max_runtime)
        finally:
            lease.release()
        phase = ended.stored.record.phase
        self.say(f"ended: {phase.value} {ended.reason}")
        if phase in (Phase.COMPLETE, Phase.ROLLED_BACK):
            return COMPLETE
        return ABORTED if phase is Phase.ABORTED else PAUSED

    def tell(self, news: roll_run.News) -> None:
        """What happens."""
        self.say(f"{news.node or 'roll'}: {news.was or '-'} -> {news.now} {news.reason}")

    def stored(self, world: World) -> Stored:
        """The roll that is to be worked on: the one that was begun, or a new one."""
        task = self.task
        known = self.store.rolls()
        open_roll = unfinished(known)
        views = world.views()
        if task.action == "back":
            parent = open_roll or known[0]
            plan = planning.back(parent.plan, views)
            return self.store.create(plan, planning.first_record(plan, roll_run.stamp(), parent.record))
        if open_roll is not None:
            return open_roll
        began = time.process_time()
        plan = planning.make(
            "netns_mode" if task.boots else "range",
            self.target.value(),
            task.new,
            {name: views[name] for name in task.nodes},
            strategy=Strategy(task.strategy),
            budget=task.budget,
            fence=task.fence,
            consent=Consent(),
            thresholds=Thresholds(**task.thresholds),
            limits={State(name): seconds for name, seconds in task.limits.items()},
            node_change=task.boots,
            reboot=task.boots,
            driver=self.target.version(),
        )
        record: Record = planning.first_record(plan, roll_run.stamp())
        self.planning = time.process_time() - began
        return self.store.create(plan, record)


def main(task: Task) -> None:
    """The process."""
    with Path(task.log).open("a", encoding="utf-8") as log:
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = sys.stdout
    if task.skew:
        _skew(task.skew)
    code = FAILED
    try:
        controller = Controller(task)
        signal.signal(signal.SIGTERM, lambda number, frame: controller.stop.set())
        controller.say(f"process {os.getpid()} begins: {task.action}")
        code = controller.run()
        used = resource.getrusage(resource.RUSAGE_SELF)
        controller.say(
            f"figures: cpu {used.ru_utime + used.ru_stime:.3f} planning {controller.planning:.4f} rss {used.ru_maxrss}"
        )
    except RdmaError as error:
        print(f"{error.code}: {error}", flush=True)
        code = LOCKED if error.code in ("roll_locked", "roll_lease_lost") else FAILED
    sys.stdout.flush()
    os._exit(code)


def _stranger() -> str:
    return f"test@elsewhere/0/0/{os.getpid()}/0/0"


def _skew(seconds: float) -> None:
    """Let the time of day of this process be wrong; its monotonic clock is what it is."""
    import datetime

    true = datetime.datetime

    class Wrong(true):
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return true.now(tz) + datetime.timedelta(seconds=seconds)

    datetime.datetime = Wrong  # type: ignore[misc]


CONTEXT: multiprocessing.context.ForkServerContext = multiprocessing.get_context("forkserver")


def start(task: Task) -> Any:
    """Begin a process; what it needs is loaded already in the server from which it is forked."""
    process = CONTEXT.Process(target=main, args=(task,))
    process.start()
    return process


def preload(modules: Sequence[str] = ("controller",)) -> None:
    """What every process needs."""
    CONTEXT.set_forkserver_preload(list(modules))
