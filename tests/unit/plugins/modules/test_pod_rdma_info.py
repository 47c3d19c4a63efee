# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module pod_rdma_info against a server that runs its programs in pods made of namespaces."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.cluster import pod_exec, pod_looks
from ansible_collections.rdma.k8s.plugins.module_utils.cluster.client import connect
from ansible_collections.rdma.k8s.plugins.module_utils.core.spiderpool.pod_script import SHELL
from ansible_collections.rdma.k8s.plugins.modules import pod_rdma_info
from ansible_collections.rdma.k8s.tests.support import rail_pod, rail_scene
from ansible_collections.rdma.k8s.tests.support.rail_scene import PODS, POOLS, STATES, Scene, pod


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    with rail_scene.serving(pod_rdma_info, tmp_path) as found:
        yield found


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
    assert "No such file" in found["noshell"]["reason"]


def test_a_connection_that_breaks_is_a_reason(scene: Scene) -> None:
    scene.add(pod("a"), rail_pod.good())
    scene.containers.breaks = True
    (found,) = scene.good()["pods"]
    assert found["status"] == "unknown"
    assert found["reason"].startswith("No program could be run in the pod rdma/a: ")


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
