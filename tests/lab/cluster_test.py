# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The test of the cluster: what its page promises, on clusters that it starts and ends itself."""

from __future__ import annotations

import collections.abc
import json
import time
import uuid

from . import control, kubenode, lab, plan, pod_test, process
from .cluster import Cluster
from .cluster_cli import FAULTS_ANNOTATION
from .errors import LabError
from .image import Cache, remove_tree
from .progress import Progress

SIMULATED = 200
UP_LIMIT = 60.0
"""Seconds within which a control plane is up once it is built."""
NODE_PATIENCE = 600.0
SIM_PATIENCE = 60.0
POD_IMAGE = kubenode.IMAGE
CLASS = "lab-rdma"


class TestError(Exception):
    """Something is not as it should be, said in one sentence."""


class Tests:
    """Runs tests one after the other and counts."""

    def __init__(self) -> None:
        self.passed = 0
        self.failed = 0

    def run(self, name: str, test: collections.abc.Callable[[], str | None]) -> bool:
        """Run one test; print how it went."""
        begin = time.monotonic()
        try:
            said = test() or ""
        except (TestError, LabError) as error:
            self.failed += 1
            print(f"FAIL  {name}: {error}", flush=True)
            return False
        self.passed += 1
        print(f"ok    {name:52} {said}  [{time.monotonic() - begin:.1f} s]", flush=True)
        return True


def until(what: str, patience: float, done: collections.abc.Callable[[], object]) -> object:
    """What ``done`` returns as soon as it is true."""
    end = time.monotonic() + patience
    while True:
        found = done()
        if found:
            return found
        if time.monotonic() > end:
            raise TestError(f"{what}: not within {patience:.0f} s")
        time.sleep(0.3)


def need(condition: object, sentence: str) -> None:
    """Fail with a sentence."""
    if not condition:
        raise TestError(sentence)


# --- objects ----------------------------------------------------------------------------------------------------


def device_class() -> dict:
    """All RDMA NICs of DRANET."""
    expression = 'device.driver == "dra.net" && device.attributes["dra.net"].rdma'
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": CLASS},
        "spec": {"selectors": [{"cel": {"expression": expression}}]},
    }


def claim_template(name: str) -> dict:
    """Claims of every RDMA NIC of a node."""
    request = {"name": "nics", "exactly": {"deviceClassName": CLASS, "allocationMode": "All"}}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"spec": {"devices": {"requests": [request]}}},
    }


def pod_spec(arguments: list[str], node: str | None = None, **more: object) -> dict:
    """A pod of the test image that is never restarted."""
    container = {"name": "main", "image": POD_IMAGE, "imagePullPolicy": "Never", "args": arguments}
    spec: dict = {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 5,
        "containers": [container],
        **more,
    }
    if node:
        spec["nodeSelector"] = {"kubernetes.io/hostname": node}
    return spec


def pod(name: str, spec: dict, annotations: dict[str, str] | None = None) -> dict:
    """A pod, with its name as its label."""
    metadata = {
        "name": name,
        "namespace": "default",
        "labels": {"app": name},
        "annotations": annotations or {},
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def budget(name: str, available: int) -> dict:
    """A budget for the pods with a label."""
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"minAvailable": available, "selector": {"matchLabels": {"app": name}}},
    }


def evict(cluster: Cluster, name: str) -> str:
    """Ask for the eviction of a pod; why it was refused, or nothing."""
    eviction = {
        "apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": "default"},
    }  # fmt: skip
    path = f"/api/v1/namespaces/default/pods/{name}/eviction"
    done = cluster.kubectl_try("create", "--raw", path, "-f", "-", stdin=json.dumps(eviction))
    return done.stderr.strip() if done.returncode else ""


def phase(cluster: Cluster, name: str) -> str:
    """The phase of a pod; empty when it is gone."""
    done = cluster.kubectl_try("get", "pod", name, "-o", "jsonpath={.status.phase}")
    return done.stdout if not done.returncode else ""


def budget_counts(cluster: Cluster, name: str, healthy: int) -> bool:
    """True when the controller of budgets has seen so many healthy pods."""
    return cluster.object("pdb", name)["status"].get("currentHealthy") == healthy


# --- on this machine alone --------------------------------------------------------------------------------------


class Native:
    """The control plane and simulated nodes."""

    def __init__(self, cluster: Cluster, other: Cluster):
        self.cluster = cluster
        self.other = other

    def all(self, tests: Tests) -> None:
        """Every test, in an order in which one leaves to the next what it needs."""
        if not tests.run("control plane and simulated nodes", self.up):
            return
        tests.run("API of devices and their taints", self.apis)
        tests.run("a claim allocated by the real scheduler", self.allocation)
        tests.run("an eviction refused by a real budget", self.refusal)
        tests.run("an evicted pod ends with its grace", self.grace)
        tests.run("a taint of devices evicts who uses them", self.taint)
        tests.run("a job that completes", self.completion)
        tests.run("fault prepare", self.prepare_fault)
        tests.run("fault slices", self.slices_fault)
        tests.run("fault reboot", self.reboot_fault)
        tests.run("fault heartbeat", self.heartbeat_fault)
        tests.run("the audit log names the eviction", self.audit)
        tests.run("a second cluster side by side", self.side_by_side)
        tests.run("down leaves nothing", self.down)

    def up(self) -> str:
        """Start it and measure."""
        spec = control.ClusterSpec(simulated=SIMULATED, node_grace=32)
        begin = time.monotonic()
        self.cluster.up(spec)
        seconds = time.monotonic() - begin
        said = self.cluster.log_of("simulator").decode().split("registered ")[1].strip()
        until("all nodes ready", SIM_PATIENCE, lambda: self._ready() == SIMULATED)
        return f"up after {seconds:.1f} s; {said}"

    def _ready(self) -> int:
        items = self.cluster.object("nodes")["items"]
        return sum(
            any(c["type"] == "Ready" and c["status"] == "True" for c in node["status"]["conditions"])
            for node in items
        )

    def apis(self) -> str:
        """The API groups that claims and rolls need."""
        answer = json.loads(self.cluster.get("/apis/resource.k8s.io/v1") or b"{}")
        kinds = {entry["kind"] for entry in answer.get("resources", [])}
        wanted = {"DeviceClass", "ResourceClaim", "ResourceClaimTemplate", "ResourceSlice", "DeviceTaintRule"}
        need(wanted <= kinds, f"resource.k8s.io/v1 does not serve {sorted(wanted - kinds)}")
        return ", ".join(sorted(wanted))

    def allocation(self) -> str:
        """Four pods that each claim all NICs of a node, on four nodes."""
        template = {
            "metadata": {"labels": {"app": "train"}, "annotations": {"rdma-lab/stop-seconds": "3"}},
            "spec": pod_spec(
                ["pause"], resourceClaims=[{"name": "nics", "resourceClaimTemplateName": "all-nics"}]
            ),
        }
        template["spec"]["containers"][0]["resources"] = {"claims": [{"name": "nics"}]}
        job = {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": "train", "namespace": "default"},
            "spec": {"parallelism": 4, "completions": 4, "template": template},
        }
        self.cluster.apply(device_class(), claim_template("all-nics"), job)

        def running() -> list[dict]:
            pods = self.cluster.object("pods", "-l", "app=train")["items"]
            up = [entry for entry in pods if entry["status"]["phase"] == "Running"]
            return up if len(up) == 4 else []

        pods = until("four pods run", SIM_PATIENCE, running)
        nodes = {entry["spec"]["nodeName"] for entry in pods}
        need(len(nodes) == 4, f"four pods that claim whole nodes share {nodes}")
        for claim in self.cluster.object("resourceclaims")["items"]:
            results = claim["status"]["allocation"]["devices"]["results"]
            need(len(results) == 16, f"{claim['metadata']['name']} has {len(results)} devices, not 16")
            need(len(claim["status"]["devices"]) == 16, "the driver's word on the devices is missing")
        return f"64 devices on {len(nodes)} nodes"

    def _one(self) -> dict:
        pods = self.cluster.object("pods", "-l", "app=train")["items"]
        return next(entry for entry in pods if "deletionTimestamp" not in entry["metadata"])

    def refusal(self) -> str:
        """A budget that allows no disruption."""
        self.cluster.apply(budget("train", 4))
        until("the budget is counted", SIM_PATIENCE, lambda: budget_counts(self.cluster, "train", 4))
        said = evict(self.cluster, self._one()["metadata"]["name"])
        need(
            "disruption budget" in said,
            f"the eviction was not refused by the budget: {said or 'it was granted'}",
        )
        return said

    def grace(self) -> str:
        """Without the budget the pod ends, takes the time that it wants, and gives its claim back."""
        self.cluster.kubectl("delete", "pdb", "train")
        chosen = self._one()
        name, claim = (
            chosen["metadata"]["name"],
            chosen["status"]["resourceClaimStatuses"][0]["resourceClaimName"],
        )
        begin = time.monotonic()
        said = evict(self.cluster, name)
        need(not said, f"the eviction was refused: {said}")
        until("the pod is gone", SIM_PATIENCE, lambda: not phase(self.cluster, name))
        seconds = time.monotonic() - begin
        need(seconds >= 2.0, f"the pod was gone after {seconds:.1f} s; it wants 3 s to end")
        until(
            "the claim is gone",
            SIM_PATIENCE,
            lambda: self.cluster.kubectl_try("get", "resourceclaim", claim).returncode,
        )
        return f"after {seconds:.1f} s"

    def taint(self) -> str:
        """A rule that drives pods away from the devices of one node."""
        chosen = self._one()
        name, node = chosen["metadata"]["name"], chosen["spec"]["nodeName"]
        rule = {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "DeviceTaintRule",
            "metadata": {"name": "away"},
            "spec": {
                "deviceSelector": {"driver": "dra.net", "pool": node},
                "taint": {"key": "rdma-lab/away", "value": "yes", "effect": "NoExecute"},
            },
        }
        self.cluster.apply(rule)
        until("the pod is gone", SIM_PATIENCE, lambda: not phase(self.cluster, name))
        self.cluster.kubectl("delete", "devicetaintrule", "away")
        self.cluster.kubectl("delete", "job", "train", "--wait=false")
        return f"{node} was left"

    def completion(self) -> str:
        """A pod that runs for a second and ends with code 0, another with code 3."""
        for name, code in (("good", "0"), ("bad", "3")):
            told = {"rdma-lab/run-seconds": "1", "rdma-lab/exit-code": code}
            self.cluster.apply(pod(name, pod_spec(["pause"]), told))
        until("one succeeds", SIM_PATIENCE, lambda: phase(self.cluster, "good") == "Succeeded")
        until("the other fails", SIM_PATIENCE, lambda: phase(self.cluster, "bad") == "Failed")
        return "Succeeded, Failed"

    def _fault(self, node: str, *faults: str) -> None:
        self.cluster.kubectl(
            "annotate", "--overwrite", "node", node, f"{FAULTS_ANNOTATION}={','.join(faults)}"
        )

    def prepare_fault(self) -> str:
        """A claim that cannot be prepared keeps its pod from running, and says why."""
        node = "sim-0002"
        self._fault(node, "prepare")
        spec = pod_spec(
            ["pause"], node, resourceClaims=[{"name": "nics", "resourceClaimTemplateName": "all-nics"}]
        )
        self.cluster.apply(pod("waits", spec))

        def told() -> bool:
            events = self.cluster.object("events", "--field-selector", "involvedObject.name=waits")["items"]
            return any(event["reason"] == "FailedPrepareDynamicResources" for event in events)

        until("an event tells of it", SIM_PATIENCE, told)
        need(phase(self.cluster, "waits") == "Pending", "the pod does not wait")
        self._fault(node)
        until("the pod runs", SIM_PATIENCE, lambda: phase(self.cluster, "waits") == "Running")
        self.cluster.kubectl("delete", "pod", "waits", "--wait=false")
        return "Pending, then Running"

    def slices_fault(self) -> str:
        """The slices of a node vanish and come back."""

        def count() -> int:
            items = self.cluster.object("resourceslices", "--field-selector", "spec.nodeName=sim-0003")[
                "items"
            ]
            return sum(len(entry["spec"]["devices"]) for entry in items)

        need(count() == 16, "sim-0003 does not publish 16 devices")
        self._fault("sim-0003", "slices")
        until("the slice is gone", SIM_PATIENCE, lambda: count() == 0)
        self._fault("sim-0003")
        until("the slice is back", SIM_PATIENCE, lambda: count() == 16)
        return "16, 0, 16 devices"

    def reboot_fault(self) -> str:
        """A node is not ready for a while and has another boot id after it."""

        def boot() -> str:
            return self.cluster.object("node", "sim-0004")["status"]["nodeInfo"]["bootID"]

        before = boot()
        self._fault("sim-0004", "reboot")
        until("it is not ready", SIM_PATIENCE, lambda: not self.cluster.node_ready("sim-0004"))
        until("another boot id", SIM_PATIENCE, lambda: boot() != before)
        until("it is ready", SIM_PATIENCE, lambda: self.cluster.node_ready("sim-0004"))
        return "another boot id"

    def heartbeat_fault(self) -> str:
        """A node that falls silent is found gone by the controller manager after its grace."""

        def unknown() -> bool:
            conditions = self.cluster.object("node", "sim-0005")["status"]["conditions"]
            return any(c["type"] == "Ready" and c["status"] == "Unknown" for c in conditions)

        self._fault("sim-0005", "heartbeat")
        until("it is unknown", 3 * SIM_PATIENCE, unknown)
        self._fault("sim-0005")
        until("it is ready again", SIM_PATIENCE, lambda: self.cluster.node_ready("sim-0005"))
        return "Unknown, then Ready"

    def audit(self) -> str:
        """Who evicted, and what the server answered."""
        lines = (self.cluster.directory / "audit.log").read_text(encoding="utf-8").splitlines()
        found = [json.loads(line) for line in lines if "/eviction" in line]
        codes = [
            entry["responseStatus"]["code"] for entry in found if entry["user"]["username"] == "lab-admin"
        ]
        need({429, 201} <= set(codes), f"the audit log has evictions with the codes {codes}, not 429 and 201")
        return f"codes {codes}"

    def side_by_side(self) -> str:
        """Another cluster at other ports while this one runs."""
        begin = time.monotonic()
        state = self.other.up(control.ClusterSpec())
        seconds = time.monotonic() - begin
        need(seconds < UP_LIMIT, f"it was up after {seconds:.1f} s, not within {UP_LIMIT:.0f} s")
        need(state.base_port != self.cluster.state().base_port, "both have the same ports")
        need(not self.other.object("nodes")["items"], "it sees nodes of the first one")
        ended = self.other.down()
        need(len(ended) == len(control.PARTS) - 1, f"only {ended} were ended")
        return f"up after {seconds:.1f} s"

    def down(self) -> str:
        """No process, no port, no file but logs."""
        ports = control.ports(self.cluster.state().base_port)
        files = {part: self.cluster.directory / f"{part}.pid" for part in control.PARTS}
        pids = {part: process.read_pid(file) for part, file in files.items()}
        ended = self.cluster.down()
        need(set(ended) == set(control.PARTS), f"only {ended} were ended")
        for part, pid in pids.items():
            name = control.process_name(self.cluster.name, part)
            need(pid is None or not process.is_ours(pid, name), f"{part} still runs")
        busy = [port for port in ports if not lab.port_free(port)]
        need(not busy, f"the ports {busy} are still in use")
        left = [
            path.name
            for path in self.cluster.directory.iterdir()
            if path.suffix != ".log" and path.name != "lock"
        ]
        need(not left, f"files were left: {left}")
        return f"{len(ended)} processes ended"


# --- on virtual nodes -------------------------------------------------------------------------------------------


class Nodes:
    """Two virtual nodes with real kubelets, and DRANET on them."""

    def __init__(self, cluster: Cluster, nodes: lab.Lab):
        self.cluster = cluster
        self.nodes = nodes

    def all(self, tests: Tests) -> None:
        """Every test, in an order in which one leaves to the next what it needs."""
        if not tests.run("two virtual nodes are ready", self.up):
            return
        tests.run("a pod runs on each node", self.pods)
        tests.run("the API server reaches a kubelet", self.logs)
        tests.run("a pod is looked into through its kubelet", self.look)
        tests.run("a real pod is kept by a real budget", self.refusal)
        if tests.run("DRANET runs from its chart", self.dranet):
            tests.run("DRANET publishes the RDMA NICs", self.slices)
            tests.run("DRANET refuses a configuration it does not know", self.strict)
        tests.run("down leaves nothing", self.down)

    def up(self) -> str:
        """Control plane, nodes, kubelets; each with its time."""
        begin = time.monotonic()
        self.cluster.up(control.ClusterSpec(nodes=2))
        marks = [time.monotonic() - begin]
        self.nodes.up(plan.make_spec(nodes=2, kube=True))
        self.nodes.wait(quiet=True)
        marks.append(time.monotonic() - begin)
        self.cluster.join(self.nodes)
        marks.append(time.monotonic() - begin)
        return "control plane {:.1f} s, nodes booted {:.1f} s, both ready {:.1f} s".format(*marks)

    def pods(self) -> str:
        """A pod that waits on node1, one that shows its surroundings on node2; with real containers."""
        self.cluster.apply(
            pod("waits", pod_spec(["pause"], "node1")), pod("shows", pod_spec(["show"], "node2"))
        )
        until("the first runs", NODE_PATIENCE, lambda: phase(self.cluster, "waits") == "Running")
        until("the second ends", NODE_PATIENCE, lambda: phase(self.cluster, "shows") == "Succeeded")
        address = self.cluster.object("pod", "waits")["status"]["podIP"]
        return f"node1 has {address}"

    def logs(self) -> str:
        """What the second pod printed."""
        shown = json.loads(self.cluster.kubectl("logs", "shows", timeout=NODE_PATIENCE))
        names = [link["name"] for link in shown["links"]]
        need(names == ["lo", "eth0"], f"the pod has the interfaces {names}")
        need(
            shown["rdma"] == [f"mlx5_{rail}" for rail in range(4)],
            f"the pod sees the RDMA devices {shown['rdma']}",
        )
        return "its log was read"

    def look(self) -> str:
        """What pod_rdma_info tells of a pod, and of one without a shell."""
        self.cluster.apply(pod_test.pod())
        until("it runs", NODE_PATIENCE, lambda: phase(self.cluster, pod_test.NAME) == "Running")
        said = pod_test.run(self.cluster, self.nodes, "waits")
        self.cluster.kubectl("delete", "pod", pod_test.NAME)
        return said

    def refusal(self) -> str:
        """A budget of one for one pod; without it the pod goes."""
        self.cluster.apply(budget("waits", 1))
        until("the budget is counted", NODE_PATIENCE, lambda: budget_counts(self.cluster, "waits", 1))
        said = evict(self.cluster, "waits")
        need(
            "disruption budget" in said,
            f"the eviction was not refused by the budget: {said or 'it was granted'}",
        )
        self.cluster.kubectl("delete", "pdb", "waits")
        said = evict(self.cluster, "waits")
        need(not said, f"the eviction was refused: {said}")
        until("the pod is gone", NODE_PATIENCE, lambda: not phase(self.cluster, "waits"))
        return "refused, then granted"

    def dranet(self) -> str:
        """The driver's own chart, as it is, by Helm."""
        version = self.cluster.install_dranet()

        def ready() -> bool:
            status = self.cluster.object("daemonset", "dranet", "-n", "kube-system")["status"]
            return status.get("numberReady", 0) == 2

        until("both pods of the driver are ready", NODE_PATIENCE, ready)
        return version

    def _devices(self) -> dict[str, list[dict]]:
        found: dict[str, list[dict]] = {}
        for entry in self.cluster.object("resourceslices")["items"]:
            found.setdefault(entry["spec"]["pool"]["name"], []).extend(entry["spec"].get("devices") or [])
        return found

    def slices(self) -> str:
        """Four NICs of each node with what the kernel says of them."""

        def all_there() -> dict[str, list[dict]]:
            pools = self._devices()
            return pools if [len(devices) for devices in pools.values()] == [4, 4] else {}

        found = until("four devices of each node", NODE_PATIENCE, all_there)
        for node, devices in found.items():
            for device in devices:
                values = {
                    key.split("/")[-1]: next(iter(v.values())) for key, v in device["attributes"].items()
                }
                need(values.get("rdma") is True, f"{node}: {device['name']} is not called an RDMA device")
                rail = int(values["ifName"].removeprefix("rdma"))
                wanted = plan.rail_address(
                    plan.OCA_NETWORK, rail, plan.vnic_address(int(node.removeprefix("node")))
                )
                need(
                    values["ipv4"] == f"{wanted}/12",
                    f"{node}: {values['ifName']} has {values['ipv4']}, not {wanted}/12",
                )
        return "4 and 4, rdma is true, addresses of the agent"

    def strict(self) -> str:
        """A claim that asks this version for an IPvlan child fails, and the NIC stays on the host (F1, F106)."""
        expression = 'device.attributes["dra.net"].ifName == "rdma3"'
        request = {"deviceClassName": CLASS, "selectors": [{"cel": {"expression": expression}}]}
        parameters = {"interface": {"type": "IPVLAN", "addresses": ["10.208.109.19/12"]}}
        claim = {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": {"name": "child", "namespace": "default"},
            "spec": {
                "devices": {
                    "requests": [{"name": "nic", "exactly": request}],
                    "config": [{"opaque": {"driver": "dra.net", "parameters": parameters}}],
                }
            },
        }
        spec = pod_spec(["show"], "node1", resourceClaims=[{"name": "nic", "resourceClaimName": "child"}])
        self.cluster.apply(device_class(), claim, pod("child", spec))

        def refused() -> str:
            events = self.cluster.object("events", "--field-selector", "involvedObject.name=child")["items"]
            told = [
                event["message"] for event in events if event["reason"] == "FailedPrepareDynamicResources"
            ]
            # A driver that is merely slow is asked again; only its own word counts.
            return next((message for message in told if 'unknown field "interface.type"' in message), "")

        until("an event tells why", NODE_PATIENCE, refused)
        link = self.nodes.node_run(1, "ip -br link show dev rdma3")
        need("UP" in link, f"rdma3 is not on the host any more: {link}")
        self.cluster.kubectl("delete", "pod", "child", "--force", "--grace-period=0")
        return 'unknown field "interface.type"; rdma3 stays on the host'

    def down(self) -> str:
        """No process of the cluster or its nodes."""
        self.nodes.down()
        ended = self.cluster.down()
        need(not self.nodes.alive() and not self.cluster.alive(), "something still runs")
        return f"{len(ended)} processes and 2 nodes ended"


def run_test(cache: Cache, progress: Progress, only: str | None) -> int:
    """Run both halves, or one; 0 when everything is as it should be."""
    tests = Tests()
    mark = uuid.uuid4().hex[:6]
    if only in (None, "native"):
        cluster, other = (Cluster(f"ct{mark}{letter}", cache, progress) for letter in "ab")
        try:
            Native(cluster, other).all(tests)
        finally:
            cluster.down()
            other.down()
    if only in (None, "nodes"):
        cluster, nodes = Cluster(f"ct{mark}n", cache, progress), lab.Lab(f"ct{mark}n", cache, progress)
        try:
            Nodes(cluster, nodes).all(tests)
        finally:
            nodes.down()
            cluster.down()
    if not tests.failed:
        # Logs are of use only when something went wrong.
        for path in (cache.path / "cluster").glob(f"ct{mark}*"):
            remove_tree(path, cache.path)
    print(f"{tests.passed} passed, {tests.failed} failed")
    return 1 if tests.failed else 0
