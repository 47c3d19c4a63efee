# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is ready of networks, ib-kubernetes and pods for tests, over the wire; and what must be gone before it goes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils import news
from ansible_collections.rdma.k8s.plugins.module_utils.cluster import spiderpool
from ansible_collections.rdma.k8s.plugins.module_utils.cluster.client import connect
from ansible_collections.rdma.k8s.plugins.module_utils.core.spiderpool import deployment, ib_kubernetes, ufm
from ansible_collections.rdma.k8s.plugins.modules import spiderpool_plan_info, spiderpool_ready_info
from ansible_collections.rdma.k8s.tests.support import change_run
from ansible_collections.rdma.k8s.tests.support.api_server import Answer, ApiServer, Request, serving, status

NETWORK = "/apis/k8s.cni.cncf.io/v1/namespaces/spiderpool/network-attachment-definitions/gpu1sriov-ib"
WORKLOADS = "/apis/apps/v1/namespaces/kube-system/deployments/ib-kubernetes"
PODS = "/api/v1/namespaces/default/pods"
OF_UFM = "/api/v1/namespaces/kube-system/secrets/ib-kubernetes-ufm-secret"
TEST = {
    "apiVersion": "apps/v1",
    "kind": "DaemonSet",
    "metadata": {"name": "rdma-k8s-test", "namespace": "default"},
}
DEPLOYMENT = ib_kubernetes.documents(ib_kubernetes.Program("x/ib-kubernetes:1"))[-1]
DISCOVERY = {
    "/api": {"kind": "APIVersions", "versions": ["v1"]},
    "/api/v1": {"kind": "APIResourceList", "groupVersion": "v1", "resources": []},
    "/apis": {
        "kind": "APIGroupList",
        "groups": [{"name": "apps", "versions": [{"groupVersion": "apps/v1", "version": "v1"}]}],
    },
    "/apis/apps/v1": {
        "kind": "APIResourceList",
        "groupVersion": "apps/v1",
        "resources": [
            {"name": "deployments", "kind": "Deployment", "namespaced": True, "verbs": ["get"]},
            {"name": "daemonsets", "kind": "DaemonSet", "namespaced": True, "verbs": ["get"]},
        ],
    },
}


class Server:
    """A server with these objects; ``after`` are looks at an object, the last of which stays."""

    def __init__(self) -> None:
        self.objects: dict[str, dict[str, Any]] = {}
        self.looks: dict[str, list[dict[str, Any]]] = {}
        self.queries: list[dict[str, str]] = []

    def __call__(self, request: Request) -> Any:
        if request.path in DISCOVERY:
            return Answer(DISCOVERY[request.path])
        looks = self.looks.get(request.path)
        if looks:
            self.objects[request.path] = looks.pop(0)
        if request.path == PODS:
            self.queries.append(request.query)
        found = self.objects.get(request.path)
        return status(404, "the server could not find it") if found is None else Answer(found)


@pytest.fixture
def server() -> Server:
    return Server()


@pytest.fixture
def api(server: Server) -> Iterator[ApiServer]:
    with serving() as found:
        found.route = server
        yield found


@pytest.fixture
def config(api: ApiServer, tmp_path: Path) -> str:
    return api.kubeconfig(tmp_path)


def rollout(
    replicas: int = 2, updated: int = 2, available: int = 2, total: int = 2, observed: int = 3
) -> dict[str, Any]:
    """A live Deployment of generation 3."""
    return {
        **DEPLOYMENT,
        "metadata": {**DEPLOYMENT["metadata"], "generation": 3},
        "spec": {**DEPLOYMENT["spec"], "replicas": replicas},
        "status": {
            "observedGeneration": observed,
            "replicas": total,
            "updatedReplicas": updated,
            "availableReplicas": available,
        },
    }


def pods(*names: str) -> dict[str, Any]:
    items = [{"metadata": {"name": name, "namespace": "default"}} for name in names]
    return {"kind": "PodList", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": items}


def test_ib_kubernetes_that_runs(server: Server, config: str) -> None:
    server.objects[WORKLOADS] = rollout()
    found = change_run.good(spiderpool_ready_info, kubeconfig=config, deployment=DEPLOYMENT)
    assert (found["ready"], found["problems"], found["changed"]) == (True, [], False)


@pytest.mark.parametrize(
    ("live", "sentence"),
    [
        (None, "No controller has looked at Deployment kube-system/ib-kubernetes as it is now."),
        (
            {**rollout(), "status": {}},
            "No controller has looked at Deployment kube-system/ib-kubernetes as it is now.",
        ),
        (
            rollout(observed=2),
            "No controller has looked at Deployment kube-system/ib-kubernetes as it is now.",
        ),
        (
            rollout(available=1),
            "1 of 2 pods of Deployment kube-system/ib-kubernetes are available, 2 of 2 are of its newest form.",
        ),
        (
            rollout(updated=1),
            "2 of 2 pods of Deployment kube-system/ib-kubernetes are available, 1 of 2 are of its newest form.",
        ),
        (
            rollout(total=3),
            "2 of 2 pods of Deployment kube-system/ib-kubernetes are available, 2 of 3 are of its newest form.",
        ),
        (
            rollout(replicas=3),
            "2 of 3 pods of Deployment kube-system/ib-kubernetes are available, 2 of 2 are of its newest form.",
        ),
    ],
)
def test_ib_kubernetes_that_does_not_run(server: Server, config: str, live: Any, sentence: str) -> None:
    """What the status said of an older form proves nothing; neither do old pods that still serve."""
    if live is not None:
        server.objects[WORKLOADS] = live
    found = change_run.good(spiderpool_ready_info, kubeconfig=config, deployment=DEPLOYMENT)
    assert (found["ready"], found["problems"]) == (False, [sentence])


def test_it_is_waited_for(server: Server, config: str) -> None:
    server.looks[WORKLOADS] = [rollout(observed=2), rollout(available=0, updated=1), rollout()]
    found = change_run.good(spiderpool_ready_info, kubeconfig=config, deployment=DEPLOYMENT, timeout=30)
    assert found["ready"] is True
    assert found["waited"] >= 1
    assert server.looks[WORKLOADS] == []


def test_what_it_waits_for_is_told(
    server: Server, config: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paper = tmp_path / "news"
    paper.touch()
    monkeypatch.setenv(news.VARIABLE, str(paper))
    server.looks[WORKLOADS] = [rollout(available=1), rollout()]
    change_run.good(spiderpool_ready_info, kubeconfig=config, deployment=DEPLOYMENT, timeout=30)
    assert paper.read_text() == (
        "waiting at most 30 s: 1 of 2 pods of Deployment kube-system/ib-kubernetes are available, 2 of 2 are of its "
        "newest form\n"
    )


def test_what_must_be_gone_before_it_goes(server: Server, config: str) -> None:
    given = {
        "kubeconfig": config,
        "state": "absent",
        "networks": ["spiderpool/gpu1sriov-ib"],
        "test": TEST,
        "deployment": DEPLOYMENT,
    }
    server.objects = {NETWORK: {"metadata": {}}, PODS: pods("rdma-k8s-test-b", "rdma-k8s-test-a")}
    found = change_run.good(spiderpool_ready_info, **given)
    assert found["problems"] == [
        "NetworkAttachmentDefinition spiderpool/gpu1sriov-ib is still there.",
        "Pods of DaemonSet default/rdma-k8s-test are still there: rdma-k8s-test-a, rdma-k8s-test-b.",
    ]
    assert (found["ready"], found["pods"]) == (False, 2)
    wanted = {"app.kubernetes.io/name": deployment.TEST_NAME, **deployment.LABELS}
    (query,) = server.queries
    assert dict(pair.split("=") for pair in query["labelSelector"].split(",")) == wanted

    server.objects = {PODS: pods()}
    found = change_run.good(spiderpool_ready_info, **given)
    assert (found["ready"], found["problems"], found["pods"]) == (True, [], 0)


# --- the version of the Secret, and the option of the plan


def test_the_version_of_the_secret_and_nothing_else(server: Server, config: str) -> None:
    assert spiderpool.secret_version(connect(config)) == ""
    server.objects[OF_UFM] = {
        "metadata": {"name": ufm.SECRET, "resourceVersion": "4711"},
        "data": {"UFM_PASSWORD": "c2VjcmV0"},
    }
    assert spiderpool.secret_version(connect(config)) == "4711"


def plan(**more: Any) -> Any:
    given = {"node_selector": {"rdma": "true"}, "ufm_keys": list(ufm.REQUIRED), "fail_on_problems": False}
    return change_run.good(spiderpool_plan_info, **{**given, **more})


def codes(found: Any) -> list[str]:
    return [entry["code"] for entry in found["findings"]]


def test_the_plan_has_it_when_it_is_wanted() -> None:
    assert plan()["ib_kubernetes"] == []
    without = codes(plan())
    found = plan(ib_kubernetes={"image": "x/ib-kubernetes:1", "node_selector": {"infra": True}})
    kinds = [entry["kind"] for entry in found["ib_kubernetes"]]
    assert set(kinds) == {resource.kind for resource in spiderpool.PROGRAM} - {"Secret"}
    pod = found["ib_kubernetes"][-1]["spec"]["template"]["spec"]
    assert pod["nodeSelector"]["infra"] == "true"
    assert len(pod["tolerations"]) == 2
    assert codes(found) == [*without, "ib-kubernetes-unused"]
    assert codes(plan(ib_kubernetes={})) == [*without, "ib-kubernetes-image", "ib-kubernetes-unused"]
    mine = plan(ib_kubernetes={"image": "x/ib-kubernetes:1", "tolerations": []})
    assert "tolerations" not in mine["ib_kubernetes"][-1]["spec"]["template"]["spec"]


def test_what_is_made_is_found_again_when_it_is_to_go() -> None:
    """What ib-kubernetes consists of goes last: what the rails leave behind is its work."""
    kinds = [resource.kind for resource in spiderpool.KINDS]
    assert kinds[: len(spiderpool.PROGRAM)] == [resource.kind for resource in spiderpool.PROGRAM]
    documents = ib_kubernetes.documents(ib_kubernetes.Program("x/y:1"))
    assert [entry["kind"] for entry in documents] == [
        resource.kind for resource in spiderpool.PROGRAM if resource.kind != "Secret"
    ]
    for entry, resource in zip(documents, [one for one in spiderpool.PROGRAM if one.kind != "Secret"]):
        assert entry["apiVersion"] == resource.group_version
        assert ("namespace" in entry["metadata"]) == resource.namespaced
