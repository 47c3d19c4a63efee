# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who uses RDMA, and draining nodes of just that, before a real API server, scheduler and controllers.

Not real: the kubelet and the driver of the nodes, for which the lab's simulator stands.
"""

from __future__ import annotations

import json
import random
import threading
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable

import pytest
from urllib3.exceptions import ProtocolError

from ansible_collections.rdma.k8s.plugins.module_utils.cluster import evicting
from ansible_collections.rdma.k8s.plugins.module_utils.cluster.client import Cluster, connect
from ansible_collections.rdma.k8s.plugins.module_utils.core.errors import RdmaError
from ansible_collections.rdma.k8s.plugins.module_utils.core.roll.eviction import Kind
from ansible_collections.rdma.k8s.plugins.module_utils.core.roll.model import User
from ansible_collections.rdma.k8s.plugins.modules import drain as drain_module, workload_info
from ansible_collections.rdma.k8s.tests.support import change_run

from .conftest import ControlPlane
from .test_client import token, with_user

FIRST, SECOND = "sim-0001", "sim-0002"
PATIENCE = 60
RESOURCE = "rdma/hca"
HOST = {"rdma-lab/stop-seconds": "1"}


def until(what: str, seen: Callable[[], Any]) -> Any:
    """The first thing that is seen and is something."""
    end = time.monotonic() + PATIENCE
    while True:
        found = seen()
        if found:
            return found
        assert time.monotonic() < end, what
        time.sleep(0.2)


@dataclass
class Lab:
    """A namespace in which pods of one test run, and what is asked about them."""

    plane: ControlPlane
    cluster: Cluster
    namespace: str
    made: list[dict[str, Any]] = field(default_factory=list)

    @property
    def pods_path(self) -> str:
        return "/api/v1/namespaces/%s/pods" % self.namespace

    def make(self, api_version: str, kind: str, name: str, namespaced: bool = True, **content: Any) -> None:
        """An object of the test."""
        metadata = {"name": name, **content.pop("metadata", {})}
        if namespaced:
            metadata["namespace"] = self.namespace
        document = {"apiVersion": api_version, "kind": kind, "metadata": metadata, **content}
        self.cluster.apply(document)
        self.made.append(document)

    def template(self, **spec: Any) -> dict[str, Any]:
        """The template of a pod that ends fast and needs the devices of ``node``, if it has a claim."""
        annotations = {"rdma-lab/stop-seconds": "1", **spec.pop("annotations", {})}
        container = {"name": "main", "image": "x", **spec.pop("container", {})}
        if "claim" in spec:
            spec["resourceClaims"] = [{"name": "r", spec.pop("claim"): self.namespace}]
            container["resources"] = {"claims": [{"name": "r"}]}
        if "node" in spec:
            spec["nodeSelector"] = {"kubernetes.io/hostname": spec.pop("node")}
        return {
            "metadata": {"labels": {"app": spec.pop("app", "train")}, "annotations": annotations},
            "spec": {"containers": [container], **spec},
        }

    def pod(self, name: str, **spec: Any) -> None:
        """A pod without a controller."""
        made = self.template(**spec)
        self.make("v1", "Pod", name, metadata=made["metadata"], spec=made["spec"])

    def job(self, name: str, pods: int = 1, **spec: Any) -> None:
        """A Job of pods that are not started again."""
        made = self.template(**{"restartPolicy": "Never", **spec})
        numbers = {"parallelism": pods, "completions": pods, "backoffLimit": 6}
        self.make("batch/v1", "Job", name, spec={**numbers, "template": made})

    def deployment(self, name: str, pods: int, app: str = "train", **spec: Any) -> None:
        """A Deployment."""
        selector = {"matchLabels": {"app": app}}
        made = self.template(app=app, **spec)
        self.make(
            "apps/v1", "Deployment", name, spec={"replicas": pods, "selector": selector, "template": made}
        )

    def budget(self, name: str, app: str = "train", **spec: Any) -> None:
        """A disruption budget; it is returned from when its controller has counted."""
        self.make(
            "policy/v1", "PodDisruptionBudget", name, spec={"selector": {"matchLabels": {"app": app}}, **spec}
        )
        path = "/apis/policy/v1/namespaces/%s/poddisruptionbudgets/%s" % (self.namespace, name)
        until("%s is counted" % name, lambda: self.cluster.get(path).get("status", {}).get("expectedPods"))

    def pods(self, node: str = "") -> dict[str, dict[str, Any]]:
        """The pods of the namespace by name, perhaps those of one node."""
        found = self.cluster.items(self.pods_path)
        return {pod["metadata"]["name"]: pod for pod in found if node in ("", pod["spec"].get("nodeName"))}

    def running(self, number: int) -> dict[str, dict[str, Any]]:
        """The pods, when so many of them are ready."""

        def ready() -> dict[str, dict[str, Any]]:
            found = self.pods()
            good = [
                pod
                for pod in found.values()
                for condition in pod["status"].get("conditions", ())
                if condition["type"] == "Ready" and condition["status"] == "True"
            ]
            return found if len(good) == number else {}

        return until("%d pods are ready" % number, ready)

    def evictions(self, name: str = "") -> list[tuple[str, int]]:
        """Each eviction that was sent in this namespace, dry runs left out: the pod, and the status of the answer."""
        found = []
        for line in (self.plane.cluster.directory / "audit.log").read_text("utf-8").splitlines():
            if '"subresource":"eviction"' in line and '"namespace":"%s"' % self.namespace in line:
                event = json.loads(line)
                if event["stage"] == "ResponseComplete" and "dryRun" not in event["requestURI"]:
                    found.append((event["objectRef"]["name"], event["responseStatus"]["code"]))
        return [entry for entry in found if name in ("", entry[0])]

    def unschedulable(self, node: str = FIRST) -> bool:
        """Whether a node is cordoned."""
        return bool(self.cluster.get("/api/v1/nodes/" + node)["spec"].get("unschedulable"))

    def options(self, **more: Any) -> dict[str, Any]:
        return {"kubeconfig": str(self.plane.kubeconfig), "nodes": [FIRST], **more}

    def info(self, **more: Any) -> dict[str, dict[str, Any]]:
        """The users of the first node, by name, as far as they are in this namespace."""
        result = change_run.good(workload_info, **self.options(**more))
        assert result["changed"] is False
        return {
            user["name"]: user
            for node in result["nodes"]
            for user in node["users"]
            if user["namespace"] == self.namespace
        }

    def drain(self, **more: Any) -> dict[str, Any]:
        return change_run.good(drain_module, **self.options(**more))

    def drain_fails(self, code: str, **more: Any) -> dict[str, Any]:
        result = change_run.failure(drain_module, **self.options(**more))
        assert result["code"] == code, result
        return result


@pytest.fixture
def lab(control_plane: ControlPlane) -> Iterator[Lab]:
    """A namespace with a class and a template of claims for 4 NICs; afterwards everything is as before."""
    cluster = connect(str(control_plane.kubeconfig))
    name = "t" + uuid.uuid4().hex[:8]
    control_plane.kubectl("create", "namespace", name)
    found = Lab(control_plane, cluster, name)
    try:
        found.make(
            "resource.k8s.io/v1",
            "DeviceClass",
            name,
            namespaced=False,
            spec={
                "extendedResourceName": "nic.example/" + name,
                "selectors": [{"cel": {"expression": 'device.driver == "dra.net"'}}],
            },
        )
        requests = [{"name": "r", "exactly": {"deviceClassName": name, "count": 4}}]
        found.make(
            "resource.k8s.io/v1",
            "ResourceClaimTemplate",
            name,
            spec={"spec": {"devices": {"requests": requests}}},
        )
        yield found
    finally:
        for document in reversed(found.made):
            if document["kind"] in ("Job", "Deployment", "DaemonSet", "DeviceClass"):
                cluster.delete(document)
        control_plane.kubectl("delete", "pods", "--all", "-n", name, "--force", "--grace-period=0")
        control_plane.kubectl("delete", "namespace", name, "--wait=false")
        control_plane.kubectl("uncordon", FIRST, SECOND)
        control_plane.kubectl("annotate", "nodes", FIRST, SECOND, "rdma-k8s/drain-fence-")
        control_plane.kubectl("delete", "devicetaintrules", "--all")
        until(
            "the claims are gone", lambda: not list(cluster.items("/apis/resource.k8s.io/v1/resourceclaims"))
        )


def privileged(path: str = "/dev/infiniband") -> dict[str, Any]:
    """The spec of a pod that opens the host's devices by itself."""
    return {
        "hostNetwork": True,
        "volumes": [{"name": "d", "hostPath": {"path": path}}],
        "container": {"securityContext": {"privileged": True}},
    }


# --- who uses RDMA


def test_every_kind_of_user(lab: Lab) -> None:
    """Claims by template, by name and behind an extended resource; resources of init containers and sidecars; networks;
    the host's devices (DEV-17). The pods that use nothing of it are not told."""
    asks = {"resources": {"limits": {RESOURCE: "1"}}}
    init = {"name": "i", "image": "x", **asks}
    lab.make(
        "resource.k8s.io/v1",
        "ResourceClaim",
        lab.namespace,
        spec={"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": lab.namespace}}]}},
    )
    lab.pod("template", claim="resourceClaimTemplateName", node=FIRST)
    lab.pod("named", claim="resourceClaimName", node=FIRST)
    extended = {"resources": {"limits": {"nic.example/" + lab.namespace: "2"}}}
    lab.pod("extended", container=extended, node=FIRST)
    lab.pod("resource", container=asks, nodeName=FIRST)
    lab.pod("init", initContainers=[init], nodeName=FIRST)
    lab.pod("sidecar", initContainers=[{**init, "restartPolicy": "Always"}], nodeName=FIRST)
    lab.pod("network", annotations={"k8s.v1.cni.cncf.io/networks": "rail-1"}, nodeName=FIRST)
    lab.pod("host", **privileged(), nodeName=FIRST)
    lab.pod("cpu", nodeName=FIRST)
    lab.pod("elsewhere", container=asks, nodeName=SECOND)
    lab.running(10)
    found = lab.info(networks=[lab.namespace + "/rail-*"])
    assert {name: user["reason"] for name, user in found.items()} == {
        "template": "claim",
        "named": "claim",
        "extended": "claim",
        "resource": "resource",
        "init": "resource",
        "sidecar": "resource",
        "network": "network",
        "host": "host",
    }
    assert found["named"]["uses"] == "%s/%s" % (lab.namespace, lab.namespace)
    assert found["extended"]["claims"][0].startswith(lab.namespace + "/extended-")
    assert {name: user["drain"] for name, user in found.items()} == {
        **dict.fromkeys(found, "blocks"),
        "host": "stays",
    }
    allowed = lab.info(networks=[lab.namespace + "/rail-*"], ownerless=True, host_network=True)
    assert {user["drain"] for user in allowed.values()} == {"evict"}


def test_networks_and_resources_that_the_cluster_calls_rdma(lab: Lab) -> None:
    """S90: a network names the resource behind it; a policy of the SR-IOV operator says that it is RDMA."""
    kinds = {
        "network-attachment-definitions": ("k8s.cni.cncf.io", "NetworkAttachmentDefinition"),
        "sriovnetworknodepolicies": ("sriovnetwork.openshift.io", "SriovNetworkNodePolicy"),
    }
    for plural, (group, kind) in kinds.items():
        anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        lab.make(
            "apiextensions.k8s.io/v1",
            "CustomResourceDefinition",
            "%s.%s" % (plural, group),
            namespaced=False,
            spec={
                "group": group,
                "names": {"kind": kind, "plural": plural},
                "scope": "Namespaced",
                "versions": [
                    {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": anything}}
                ],
            },
        )
    try:
        for plural, (group, _kind) in kinds.items():
            path = "/apis/%s/v1/namespaces/%s/%s" % (group, lab.namespace, plural)
            until(plural, lambda path=path: _served(lab.cluster, path))
        lab.cluster.resources("/apis")
        fresh = connect(str(lab.plane.kubeconfig))
        policies = {"fast": {"resourceName": "fast", "isRdma": True}, "slow": {"resourceName": "slow"}}
        for name, spec in policies.items():
            document = {
                "apiVersion": "sriovnetwork.openshift.io/v1",
                "kind": "SriovNetworkNodePolicy",
                "spec": spec,
            }
            fresh.apply({**document, "metadata": {"name": name, "namespace": lab.namespace}})
            network = {"apiVersion": "k8s.cni.cncf.io/v1", "kind": "NetworkAttachmentDefinition"}
            annotations = {"k8s.v1.cni.cncf.io/resourceName": "openshift.io/" + name}
            fresh.apply(
                {
                    **network,
                    "metadata": {"name": name, "namespace": lab.namespace, "annotations": annotations},
                }
            )
            lab.pod("net-" + name, annotations={"k8s.v1.cni.cncf.io/networks": name}, nodeName=FIRST)
            limits = {"resources": {"limits": {"openshift.io/" + name: "1"}}}
            lab.pod("vf-" + name, container=limits, nodeName=FIRST)
        lab.running(4)
        found = lab.info()
        assert {name: user["uses"] for name, user in found.items()} == {
            "net-fast": lab.namespace + "/fast",
            "vf-fast": "openshift.io/fast",
        }
    finally:
        for plural, (group, _kind) in kinds.items():
            lab.plane.kubectl("delete", "crd", "%s.%s" % (plural, group), "--timeout=60s")


def _served(cluster: Cluster, path: str) -> bool:
    try:
        list(cluster.items(path))
    except RdmaError as error:
        if error.code == "kube_not_found":
            return False
        raise
    return True


# --- a drain


def test_only_users_go(lab: Lab) -> None:
    """The Job's pods go and their claims with them; pods of the CPU and of the host's network stay. The second run
    changes nothing, and the node is given back."""
    lab.job("train", 2, claim="resourceClaimTemplateName", node=FIRST)
    lab.deployment("web", 1, "web", node=FIRST)
    lab.deployment("host", 1, "host", node=FIRST, **privileged())
    before = lab.running(4)
    jobs = {name for name in before if name.startswith("train-")}
    result = lab.drain(_ansible_diff=True)
    assert result["changed"]
    assert {name.partition("/")[2] for name in result["evicted"]} == jobs
    assert result["actions"][0] == "cordon " + FIRST
    assert result["fences"] == {FIRST: "cordon"}
    assert result["calls"] <= 20  # waiting costs none
    print("calls: %d" % result["calls"])
    assert len(result["diff"]["before"][FIRST]["pods"]) == 3
    assert len(result["diff"]["after"][FIRST]["pods"]) == 1
    assert lab.unschedulable()
    left = lab.pods(FIRST)
    assert {name for name in before if name in left} == set(before) - jobs
    assert sorted(lab.evictions()) == [(name, 201) for name in sorted(jobs)]
    claims = "/apis/resource.k8s.io/v1/namespaces/%s/resourceclaims" % lab.namespace
    assert not [claim for claim in lab.cluster.items(claims) if claim.get("status", {}).get("allocation")]
    again = lab.drain()
    assert (again["changed"], again["evicted"], again["actions"]) == (False, [], [])
    released = lab.drain(state="released")
    assert released["actions"] == ["uncordon " + FIRST]
    assert not lab.unschedulable()
    assert not lab.drain(state="released")["changed"]


def test_check_mode_changes_nothing(lab: Lab) -> None:
    """The API server checks fence and evictions; the node stays as it is."""
    lab.job("train", claim="resourceClaimTemplateName", node=FIRST)
    (name,) = lab.running(1)
    for _time in range(2):
        result = lab.drain(_ansible_check_mode=True)
        assert result["actions"] == ["cordon " + FIRST, "evict %s/%s" % (lab.namespace, name)]
    assert not lab.unschedulable()
    assert "deletionTimestamp" not in lab.pods()[name]["metadata"]
    for state in ("fenced", "released", "tried"):
        assert lab.drain(state=state, _ansible_check_mode=True)["changed"] is (state == "fenced")
    assert not list(lab.cluster.items("/apis/resource.k8s.io/v1/devicetaintrules"))


def test_a_budget_makes_it_wait(lab: Lab) -> None:
    """DEV-31: of two pods one may be missing. The second eviction is refused with 429 until the first pod is ready on
    the other node, and is then taken."""
    for node in (FIRST, SECOND):
        lab.plane.kubectl("label", "node", node, "%s=yes" % lab.namespace)
    lab.plane.kubectl("cordon", SECOND)
    selector = {lab.namespace: "yes"}
    lab.deployment("train", 2, claim="resourceClaimTemplateName", nodeSelector=selector)
    before = lab.running(2)
    lab.budget("half", maxUnavailable=1)
    lab.plane.kubectl("uncordon", SECOND)
    result = lab.drain()
    assert {"%s/%s" % (lab.namespace, name) for name in before} == set(result["evicted"])
    sent = lab.evictions()
    assert sorted(name for name, code in sent if code == 201) == sorted(before)
    assert 429 in {code for _name, code in sent}
    assert {code for _name, code in sent} == {201, 429}
    assert result["refused"] == {}
    assert result["seconds"] >= 5
    assert set(lab.running(2)) == set(lab.pods(SECOND))


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"minAvailable": 2}, "it wants 2 healthy pods and there are never more than 2"),
        ({"maxUnavailable": 0}, "it wants 2 healthy pods and there are never more than 2"),
        ({"minAvailable": "100%"}, "it wants 2 healthy pods and there are never more than 2"),
    ],
)
def test_a_budget_that_never_allows_it(lab: Lab, spec: dict[str, Any], words: str) -> None:
    """It is known before anything is changed: no fence, no eviction."""
    lab.deployment("train", 2, claim="resourceClaimTemplateName", node=FIRST)
    lab.running(2)
    lab.budget("all", **spec)
    result = lab.drain_fails("drain_blocked")
    assert words in result["msg"]
    assert "%s/all" % lab.namespace in result["msg"]
    assert not result["changed"]
    assert [user["problem"] for user in lab.info().values()] == [
        "the disruption budget %s/all: %s" % (lab.namespace, words)
    ] * 2
    assert not lab.unschedulable()
    assert lab.evictions() == []


def test_two_budgets(lab: Lab) -> None:
    """The eviction API takes no more than one; that is told by the plan, and by the answer when it comes to that."""
    lab.deployment("train", 2, claim="resourceClaimTemplateName", node=FIRST)
    pods = lab.running(2)
    for name in ("one", "two"):
        lab.budget(name, maxUnavailable=1)
    result = lab.drain_fails("drain_blocked")
    assert "2 disruption budgets select it" in result["msg"]
    assert not lab.unschedulable()
    chosen = next(iter(pods.values()))
    found = evicting.send(lab.cluster, user_of(chosen))
    assert found.kind is Kind.TWO_BUDGETS
    assert "more than one PodDisruptionBudget" in found.reason


def user_of(pod: dict[str, Any], **more: Any) -> User:
    """A pod as a user of RDMA."""
    metadata = pod["metadata"]
    told = {"uid": metadata["uid"], "grace": pod["spec"]["terminationGracePeriodSeconds"], **more}
    return User(metadata["namespace"], metadata["name"], reason="claim", uses="x", **told)


def test_another_pod_of_the_same_name_is_left_alone(lab: Lab) -> None:
    """A pod is meant by its UID; one that came since is not evicted, and one that is gone is gone."""
    lab.pod("train-0", claim="resourceClaimTemplateName", node=FIRST)
    (pod,) = lab.running(1).values()
    assert (
        evicting.send(lab.cluster, user_of(pod, uid="11111111-2222-3333-4444-555555555555")).kind is Kind.GONE
    )
    assert "deletionTimestamp" not in lab.pods()["train-0"]["metadata"]
    assert evicting.send(lab.cluster, user_of(pod)).kind is Kind.ACCEPTED
    until("it is gone", lambda: not lab.pods())
    assert evicting.send(lab.cluster, user_of(pod)).kind is Kind.GONE


def test_a_refusal_tells_the_budget(lab: Lab) -> None:
    """The API server's causes say what the sentence does not."""
    lab.deployment("train", 1, claim="resourceClaimTemplateName", node=FIRST)
    (pod,) = lab.running(1).values()
    lab.budget("all", minAvailable=1)
    found = evicting.send(lab.cluster, user_of(pod), dry_run=True)
    assert (found.kind, found.wait) == (Kind.REFUSED, 0)
    assert "The disruption budget all needs 1 healthy pods and has 1 currently" in found.reason


def test_the_grace_is_never_zero(lab: Lab) -> None:
    """DEV-24: a pod that asks for no grace gets a second, so that its claim is released before it is gone."""
    lab.job("train", claim="resourceClaimTemplateName", node=FIRST, terminationGracePeriodSeconds=0)
    lab.running(1)
    with Watched(lab) as seen:
        lab.drain()
    assert seen[0] == 1  # the kubelet's own deletion, which comes last, has none
    failed = change_run.failure(drain_module, **lab.options(grace_period=0))
    assert failed["code"] == "number_out_of_range"


class Watched:
    """Follow the pods of the namespace, and keep with which grace each of them was asked to end."""

    def __init__(self, lab: Lab) -> None:
        self.lab, self.seen = lab, []

    def __enter__(self) -> list[int]:
        version = self.lab.cluster.get(self.lab.pods_path)["metadata"]["resourceVersion"]
        self.watch = self.lab.cluster.watch(self.lab.pods_path, version)
        self.thread = threading.Thread(target=self._follow, daemon=True)
        self.thread.start()
        return self.seen

    def _follow(self) -> None:
        for kind, pod in self.watch:
            told = pod["metadata"].get("deletionGracePeriodSeconds")
            if kind == "MODIFIED" and told is not None:
                self.seen.append(told)

    def __exit__(self, *_error: Any) -> None:
        self.watch.close()
        self.thread.join(10)


def test_pods_of_daemonsets_and_bare_ones_block(lab: Lab) -> None:
    """DEV-17: they are named before anything is changed. With consent the bare one goes."""
    asks = {"resources": {"limits": {RESOURCE: "1"}}}
    lab.pod("bare", container=asks, nodeName=FIRST)
    made = lab.template(app="agent", node=FIRST, container=asks)
    made["spec"]["tolerations"] = [{"operator": "Exists"}]
    del made["spec"]["containers"][0]["resources"]
    made["spec"]["resourceClaims"] = [{"name": "r", "resourceClaimTemplateName": lab.namespace}]
    made["spec"]["containers"][0]["resources"] = {"claims": [{"name": "r"}]}
    lab.make(
        "apps/v1",
        "DaemonSet",
        "agent",
        spec={"selector": {"matchLabels": {"app": "agent"}}, "template": made},
    )
    lab.running(2)
    result = lab.drain_fails("drain_blocked")
    assert {(pod["name"].partition("-")[0], bool(pod["owner"])) for pod in result["details"]["pods"]} == {
        ("bare", False),
        ("agent", True),
    }
    assert "DaemonSet %s/agent brings it back on every node" % lab.namespace in result["msg"]
    assert not lab.unschedulable()
    result = lab.drain_fails("drain_blocked", ownerless=True)
    assert [pod["owner"] for pod in result["details"]["pods"]] == ["DaemonSet %s/agent" % lab.namespace]
    lab.plane.kubectl("delete", "daemonset", "agent", "-n", lab.namespace)
    until("the agent is gone", lambda: len(lab.pods()) == 1)
    assert lab.drain(ownerless=True)["evicted"] == ["%s/bare" % lab.namespace]


def test_a_timeout_is_a_failure_that_can_be_resumed(lab: Lab) -> None:
    """What is left is told, the fence stays, and no pod is asked twice when it goes on."""
    lab.job(
        "train", claim="resourceClaimTemplateName", node=FIRST, annotations={"rdma-lab/stop-seconds": "8"}
    )
    (name,) = lab.running(1)
    result = lab.drain_fails("drain_timeout", timeout=2)
    assert [(pod["name"], pod["node"]) for pod in result["details"]["pods"]] == [(name, FIRST)]
    assert (result["changed"], result["evicted"]) == (True, ["%s/%s" % (lab.namespace, name)])
    assert "goes on from here" in result["msg"]
    assert lab.unschedulable()
    result = lab.drain()
    assert (result["changed"], result["evicted"]) == (False, [])
    assert lab.evictions(name) == [(name, 201)]


def test_a_timeout_tells_why_evictions_were_refused(lab: Lab) -> None:
    """A budget that could allow it, but does not in time: the pod that is to replace the first cannot run."""
    lab.deployment("train", 2, claim="resourceClaimTemplateName", node=FIRST)
    lab.running(2)
    lab.budget("half", maxUnavailable=1)
    result = lab.drain_fails("drain_timeout", timeout=4)
    assert "The disruption budget half needs 1 healthy pods and has 1 currently" in result["msg"]
    assert len(result["evicted"]) == 1
    assert len(result["refused"]) == 1


def test_it_waits_for_jobs(lab: Lab) -> None:
    """The Job ends by itself, so that nothing of it is evicted; the Deployment is, afterwards."""
    lab.job("train", claim="resourceClaimTemplateName", node=FIRST, annotations={"rdma-lab/run-seconds": "6"})
    lab.deployment("serve", 1, "serve", claim="resourceClaimTemplateName", node=FIRST)
    lab.running(2)
    result = lab.drain(wait_for_jobs=60)
    assert [name.partition("/")[2].partition("-")[0] for name in result["evicted"]] == ["serve"]
    job = lab.cluster.get("/apis/batch/v1/namespaces/%s/jobs/train" % lab.namespace)
    assert job["status"].get("succeeded") == 1
    assert "failed" not in job["status"]


def test_jobs_that_take_too_long(lab: Lab) -> None:
    """By default they are evicted then; without consent that is a failure, and nothing was evicted."""
    lab.job("train", claim="resourceClaimTemplateName", node=FIRST)
    (name,) = lab.running(1)
    result = lab.drain_fails("drain_jobs_running", wait_for_jobs=1, evict_jobs=False)
    assert "Job %s/train" % lab.namespace in result["msg"]
    assert (result["evicted"], lab.evictions(), lab.unschedulable()) == ([], [], True)
    assert lab.drain(wait_for_jobs=1)["evicted"] == ["%s/%s" % (lab.namespace, name)]


def test_claims_that_stay(lab: Lab) -> None:
    """A claim with devices of the node, held by a pod elsewhere, is waited for and named."""
    lab.pod("holder", nodeName=SECOND)
    (holder,) = lab.running(1).values()
    requests = [{"name": "r", "exactly": {"deviceClassName": lab.namespace}}]
    lab.make("resource.k8s.io/v1", "ResourceClaim", "held", spec={"devices": {"requests": requests}})
    device = {"request": "r", "driver": "dra.net", "pool": FIRST, "device": "rdma0"}
    status = {
        "allocation": {"devices": {"results": [device]}},
        "reservedFor": [{"resource": "pods", "name": "holder", "uid": holder["metadata"]["uid"]}],
    }
    path = "/apis/resource.k8s.io/v1/namespaces/%s/resourceclaims/held/status" % lab.namespace
    lab.cluster.send("PATCH", path, {"status": status}, "application/merge-patch+json")
    result = lab.drain_fails("drain_claims_held", claims_timeout=2)
    assert result["details"]["claims"] == [{"node": FIRST, "claim": "%s/held" % lab.namespace}]
    released = {"status": {"allocation": None, "reservedFor": None}}
    later = threading.Timer(2, lab.cluster.send, ("PATCH", path, released, "application/merge-patch+json"))
    later.start()
    assert lab.drain(claims_timeout=30)["seconds"] >= 2
    later.join()


# --- fences


def test_a_taint_keeps_claims_away_and_nothing_else(lab: Lab) -> None:
    """The node takes CPU pods while its devices are not given to anybody."""
    lab.job("train", claim="resourceClaimTemplateName", node=FIRST)
    lab.running(1)
    result = lab.drain(fence="taint")
    assert result["actions"][0] == "taint the devices of " + FIRST
    assert not lab.unschedulable()
    lab.pod("cpu", node=FIRST)
    lab.pod("rdma", claim="resourceClaimTemplateName", node=FIRST)
    until("the CPU pod runs", lambda: lab.pods()["cpu"]["status"]["phase"] == "Running")
    time.sleep(1)
    assert lab.pods()["rdma"]["status"]["phase"] == "Pending"
    assert not lab.drain(fence="taint", ownerless=True)["changed"]
    assert lab.drain(state="released")["actions"] == ["remove the taint of the devices of " + FIRST]
    until("the other one runs, too", lambda: lab.pods()["rdma"]["status"]["phase"] == "Running")


def test_what_a_taint_would_hit(lab: Lab) -> None:
    """A rule without effect makes the API tell it; it is gone afterwards, and the pod was left alone."""
    lab.job("train", claim="resourceClaimTemplateName", node=FIRST)
    (name,) = lab.running(1)
    result = lab.drain(state="tried")
    assert not result["changed"]
    assert result["hit"][FIRST].startswith(
        "16 published devices selected. 4 allocated devices selected. 1 pod "
    )
    assert not list(lab.cluster.items("/apis/resource.k8s.io/v1/devicetaintrules"))
    assert "deletionTimestamp" not in lab.pods()[name]["metadata"]


def test_the_cordon_of_somebody_else_stays(lab: Lab) -> None:
    """DEV-29: a node that was cordoned before is drained, and not given back."""
    lab.plane.kubectl("cordon", FIRST)
    assert lab.drain()["fences"] == {}
    assert not lab.drain(state="released")["changed"]
    assert lab.unschedulable()


def test_a_human_who_uncordons(lab: Lab) -> None:
    """Only our mark is left to take away."""
    lab.drain(state="fenced")
    lab.plane.kubectl("uncordon", FIRST)
    assert lab.drain(state="released")["changed"]
    assert not lab.unschedulable()
    assert "rdma-k8s/drain-fence" not in lab.cluster.get("/api/v1/nodes/" + FIRST)["metadata"]["annotations"]


# --- what stands against it


def test_a_node_that_is_not_there(lab: Lab) -> None:
    """Nothing is changed on the others."""
    result = lab.drain_fails("node_not_in_cluster", nodes=[FIRST, "none"])
    assert "no node none" in result["msg"]
    assert not lab.unschedulable()


def test_a_user_who_may_not_evict(lab: Lab, tmp_path: Path) -> None:
    """The right that is missing is named."""
    lab.deployment("train", 1, claim="resourceClaimTemplateName", node=FIRST)
    lab.running(1)
    account = token(lab.plane, lab.namespace, "drainer")
    role = {
        "": (["nodes", "pods"], ["get", "list", "patch"]),
        "resource.k8s.io": (["resourceclaims"], ["list"]),
        "policy": (["poddisruptionbudgets"], ["list"]),
    }
    rules = [
        {"apiGroups": [group], "resources": what, "verbs": verbs} for group, (what, verbs) in role.items()
    ]
    lab.make("rbac.authorization.k8s.io/v1", "ClusterRole", lab.namespace, namespaced=False, rules=rules)
    lab.plane.kubectl(
        "create", "clusterrolebinding", lab.namespace,
        "--clusterrole=" + lab.namespace, "--serviceaccount=%s:drainer" % lab.namespace,
    )  # fmt: skip
    try:
        config = with_user(lab.plane, tmp_path, token=account)
        result = change_run.failure(drain_module, **{**lab.options(), "kubeconfig": config})
    finally:
        lab.plane.kubectl("delete", "clusterrolebinding,clusterrole", lab.namespace)
    assert result["code"] == "eviction_failed"
    assert "pods/eviction" in result["msg"]
    assert result["changed"]
    assert result["fences"] == {FIRST: "cordon"}


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_an_api_that_fails_now_and_then(lab: Lab, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A quarter of all calls breaks, half of these after the server has done what was asked: it comes to the same end,
    and each pod was evicted once."""
    lab.job("train", 3, claim="resourceClaimTemplateName", node=FIRST)
    pods = lab.running(3)
    chance, whole = random.Random(seed), Cluster._request
    broken = []

    def request(self: Cluster, *words: Any, **more: Any) -> Any:
        if chance.random() > 0.25:
            return whole(self, *words, **more)
        done = chance.random() < 0.5
        broken.append(done)
        if done:
            answer = whole(self, *words, **more)
            answer.close()
        raise ProtocolError("the connection was broken by the test")

    monkeypatch.setattr(Cluster, "_request", request)
    result = lab.drain(timeout=60)
    monkeypatch.undo()
    assert broken
    assert not lab.pods(FIRST)
    assert lab.unschedulable()
    assert result["fences"] == {FIRST: "cordon"}
    assert {name for name, code in lab.evictions() if code == 201} == set(pods)
    assert len([name for name, code in lab.evictions() if code == 201]) == len(pods)
    assert lab.drain(state="released")["changed"]


# --- how long it takes


def test_it_is_as_fast_as_kubectl(lab: Lab) -> None:
    """The same pods by ``kubectl drain`` and by the module: less than 3 seconds more for the node, claims released."""

    def timed(act: Callable[[], Any]) -> float:
        lab.job(
            "train",
            4,
            claim="resourceClaimTemplateName",
            node=FIRST,
            annotations={"rdma-lab/stop-seconds": "3"},
        )
        lab.running(4)
        start = time.monotonic()
        act()
        seconds = time.monotonic() - start
        lab.cluster.delete({"apiVersion": "batch/v1", "kind": "Job", **named(lab.namespace, "train")})
        lab.plane.kubectl("uncordon", FIRST)
        until("the pods are gone", lambda: not lab.pods())
        return seconds

    ours, theirs = [], []
    for _time in range(2):
        theirs.append(
            timed(lambda: lab.plane.kubectl("drain", FIRST, "--ignore-daemonsets", "--timeout=60s"))
        )
        ours.append(timed(lambda: lab.drain(timeout=60)))
    print("kubectl drain: %s s, rdma.k8s.drain: %s s" % (theirs, ours))
    assert min(ours) - min(theirs) < 3


def named(namespace: str, name: str) -> dict[str, Any]:
    """The metadata of an object."""
    return {"metadata": {"namespace": namespace, "name": name}}
