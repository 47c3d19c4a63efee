# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module pod_rdma_info against a server that runs its programs in pods made of namespaces."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.cluster import pod_exec, pod_looks
from ansible_collections.rdma.k8s.plugins.module_utils.cluster.client import connect
from ansible_collections.rdma.k8s.plugins.module_utils.core.spiderpool.pod_script import SHELL
from ansible_collections.rdma.k8s.plugins.modules import pod_rdma_info
from ansible_collections.rdma.k8s.tests.support import api_server, exec_api, module_run, rail_pod
from ansible_collections.rdma.k8s.tests.support.list_api import Lists

PODS = "/api/v1/namespaces/rdma/pods"
POOLS = "/apis/spiderpool.spidernet.io/v2beta1/spiderippools"
STATES = "/apis/sriovnetwork.openshift.io/v1/sriovnetworknodestates"


def pod(name: str, node: str = "n1", rails: int = 2, **changes: Any) -> dict[str, Any]:
    """A running pod, as the API tells it."""
    status = [{"name": "rdma/cluster", "interface": "eth0", "default": True}]
    status += [{"name": "rdma/gpu%d" % rail, "interface": "net%d" % rail} for rail in range(1, rails + 1)]
    return {
        "metadata": {
            "name": name,
            "namespace": "rdma",
            "labels": {"app": "tools"},
            "annotations": {"k8s.v1.cni.cncf.io/network-status": json.dumps(status)},
        },
        "spec": {"nodeName": node, "containers": [{"name": "tools"}, {"name": "sidecar"}]},
        "status": {
            "phase": "Running",
            "containerStatuses": [{"name": "tools", "state": {"running": {}}}],
        },
        **changes,
    }


@dataclass
class Scene:
    """A server with pods behind it."""

    lists: Lists
    containers: exec_api.Containers
    kubeconfig: str
    requests: list[api_server.Request]

    def add(self, content: dict[str, Any], inside: rail_pod.RailPod) -> None:
        self.lists.objects[PODS].append(content)
        name = content["metadata"]["name"]
        self.lists.objects[PODS + "/" + name] = content  # type: ignore[assignment]
        self.containers.inside["rdma/" + name] = inside.words()

    def good(self, **options: Any) -> dict[str, Any]:
        return module_run.good(pod_rdma_info, namespace="rdma", kubeconfig=self.kubeconfig, **options)

    def failure(self, **options: Any) -> dict[str, Any]:
        return module_run.failure(
            pod_rdma_info, **{"namespace": "rdma", "kubeconfig": self.kubeconfig, **options}
        )


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    subnets = [
        {
            "metadata": {"name": "gpu%d" % rail},
            "spec": {"subnet": "172.16.1%d.0/24" % rail, "gateway": "172.16.1%d.254" % rail},
        }
        for rail in (1, 2)
    ]
    interfaces = [{"pciAddress": "0000:8%d:00.0" % rail, "mtu": 4200} for rail in (1, 2)]
    states = [{"metadata": {"name": name}, "status": {"interfaces": interfaces}} for name in ("n1", "n2")]
    lists = Lists({PODS: [], POOLS: subnets, STATES: states})
    containers = exec_api.Containers()
    with api_server.serving() as api:

        def objects(request: api_server.Request) -> Any:
            found = lists.objects.get(request.path)
            return api_server.Answer(found) if isinstance(found, dict) else lists(request)

        api.route = containers.route(objects)
        yield Scene(lists, containers, api.kubeconfig(tmp_path), api.requests)


def statuses(entry: dict[str, Any]) -> dict[str, str]:
    return {answer["predicate"]: answer["status"] for answer in entry["predicates"]}


def test_good_pods_pass(scene: Scene) -> None:
    for name, node, host in (("a", "n1", 10), ("b", "n2", 20)):
        scene.add(pod(name, node), rail_pod.good(host=host))
    found = scene.good(label_selector="app=tools")
    assert (found["status"], found["problems"]) == ("pass", [])
    assert found["counts"] == {"pass": 24, "fail": 0, "warn": 0, "skip": 4, "unknown": 0}
    first = found["pods"][0]
    assert (first["name"], first["node"], first["container"], first["privileged"]) == (
        "a",
        "n1",
        "tools",
        False,
    )
    assert first["gid_index"] == {"mlx5_7": 3, "mlx5_8": 3}
    assert [words for _pod, words in scene.containers.commands] == [list(SHELL)] * 2


def test_a_fault_is_told_with_pod_and_predicate(scene: Scene) -> None:
    scene.add(pod("a"), rail_pod.good(gid_type="IB/RoCE v1"))
    found = scene.good(names=["a"])
    assert found["status"] == "fail"
    assert found["problems"][0].startswith(
        "rdma/a P7: net1: no device has a RoCE v2 entry for 172.16.11.10/24"
    )
    answer = found["pods"][0]["predicates"][6]
    assert (answer["issues"][0]["code"], bool(answer["hint"])) == ("gid-missing", True)


def test_only_the_rights_to_pods_and_exec_are_needed(scene: Scene) -> None:
    """Pools and states may not be listed: three predicates are unknown, with the reason, and the rest is judged."""
    scene.add(pod("a"), rail_pod.good())
    scene.lists.forbidden |= {POOLS, STATES}
    found = scene.good(names=["a"])
    told = statuses(found["pods"][0])
    assert {number for number, status in told.items() if status == "unknown"} == {"P2", "P4", "P11"}
    assert "cannot list" in found["problems"][0]
    paths = {request.path for request in scene.requests}
    assert paths == {PODS + "/a", PODS + "/a/exec", POOLS, STATES}


def test_pods_that_tell_nothing_are_unknown_and_cost_the_others_nothing(scene: Scene) -> None:
    scene.add(pod("good"), rail_pod.good())
    scene.add(pod("refused"), rail_pod.good())
    scene.containers.forbidden.add("rdma/refused")
    scene.add(pod("waiting", status={"phase": "Pending", "containerStatuses": []}), rail_pod.good())
    scene.add(pod("silent"), rail_pod.good())
    scene.containers.inside["rdma/silent"] = ["false"]
    scene.add(pod("noshell"), rail_pod.good())
    scene.containers.inside["rdma/noshell"] = ["/nonexistent/container"]
    found = {entry["name"]: entry for entry in scene.good()["pods"]}
    assert found["good"]["status"] == "pass"
    for name in ("refused", "waiting", "silent", "noshell"):
        assert set(statuses(found[name]).values()) == {"unknown"}, name
        assert found[name]["evidence"] is None
    assert "403" in found["refused"]["reason"]
    assert "Pending" in found["waiting"]["reason"]
    assert "exit code 1" in found["silent"]["reason"]


def test_the_mtu_in_use_is_compared_between_pods(scene: Scene) -> None:
    """S141: the rail of one pod uses another MTU than that of the other two."""
    small = {"ibv_devinfo": "echo 'hca_id: mlx5_7'\necho 'active_mtu: 512 (2)'\n"}
    scene.add(pod("a", "n1"), rail_pod.good(host=10))
    scene.add(pod("b", "n2"), rail_pod.good(host=20))
    scene.add(pod("c", "n2"), rail_pod.good(host=30))
    scene.containers.inside["rdma/c"] = rail_pod.RailPod(
        host=30, programs={**rail_pod.good().programs, **small}
    ).words()
    found = scene.good()
    assert [entry["status"] for entry in found["pods"]] == ["pass", "pass", "fail"]
    assert found["problems"] == [
        "rdma/c P11: net1: the MTU in use is 512, and 1024 on the same rail of other pods."
    ]


def test_the_named_container_is_looked_into(scene: Scene) -> None:
    content = pod("a")
    content["metadata"]["annotations"]["kubectl.kubernetes.io/default-container"] = "sidecar"
    content["status"]["containerStatuses"].append({"name": "sidecar", "state": {"running": {}}})
    content["spec"]["containers"][1]["securityContext"] = {"privileged": True}
    scene.add(content, rail_pod.good())
    (found,) = scene.good()["pods"]
    assert (found["container"], found["privileged"]) == ("sidecar", True)
    (found,) = scene.good(container="nobody")["pods"]
    assert found["reason"] == "The pod has no container nobody."
    asked = [request for request in scene.requests if request.path.endswith("/exec")]
    assert [request.query["container"] for request in asked] == ["sidecar"]


def test_a_pod_on_the_network_of_its_node(scene: Scene) -> None:
    content = pod("a")
    content["spec"]["hostNetwork"] = True
    scene.add(content, rail_pod.good())
    (found,) = scene.good()["pods"]
    assert "network of its node" in found["reason"]
    assert scene.containers.commands == []


def test_a_look_at_nothing_fails(scene: Scene) -> None:
    assert scene.failure()["code"] == "pods_missing"
    assert scene.failure(names=["nobody"])["code"] == "kube_not_found"
    assert scene.failure(names=["A b"])["code"] == "name_malformed"
    assert scene.failure(parallel=0)["code"] == "number_out_of_range"
    assert scene.failure(nics=-1)["code"] == "number_out_of_range"
    assert scene.failure(namespace="a.b")["code"] == "name_malformed"


def test_many_names_are_one_list(scene: Scene) -> None:
    scene.lists.objects[PODS] = [pod("p%d" % number) for number in range(20)]
    names = ["p%d" % number for number in range(17)]
    cluster = connect(scene.kubeconfig, None)
    wish = pod_looks.Wish("rdma", tuple(names))
    found = pod_looks.look(cluster, wish, lambda *_words: pod_exec.Printed("", "", 0))
    assert [entry.name for entry in found] == names
    assert scene.failure(names=[*names, "p77"])["code"] == "pods_missing"


def test_no_more_pods_than_allowed_at_a_time(scene: Scene) -> None:
    scene.lists.objects[PODS] = [pod("p%d" % number) for number in range(9)]
    lock, now, most = threading.Lock(), [0], [0]

    def run(*_words: Any) -> pod_exec.Printed:
        with lock:
            now[0] += 1
            most[0] = max(most[0], now[0])
        time.sleep(0.05)
        with lock:
            now[0] -= 1
        return pod_exec.Printed("", "", 0)

    pod_looks.look(connect(scene.kubeconfig, None), pod_looks.Wish("rdma", parallel=3), run)
    assert most[0] == 3
    assert now[0] == 0


def test_a_pod_that_hangs_is_unknown(scene: Scene) -> None:
    scene.add(pod("a"), rail_pod.good())
    scene.containers.inside["rdma/a"] = ["sh", "-c", "exec sleep 8"]
    (found,) = scene.good(timeout=1)["pods"]
    assert "has not ended within 1 s" in found["reason"]
