# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lingjun nodes in a real cluster: the plugin's DaemonSet by the real controller, verified, and tried by real Jobs.

Not real: the containers, for which the lab's simulator and ``pod_container`` stand, and the RDMA devices in them.
"""

from __future__ import annotations

import json
import os
import time
import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.cluster import ack_verify as reader
from ansible_collections.rdma.k8s.plugins.module_utils.cluster.client import Cluster, connect
from ansible_collections.rdma.k8s.plugins.module_utils.core.ack import names
from ansible_collections.rdma.k8s.plugins.module_utils.core.snapshot import NodeSnapshot
from ansible_collections.rdma.k8s.plugins.modules import ack_pod_test, ack_verify
from ansible_collections.rdma.k8s.tests.support import change_run, lingjun as hosts
from ansible_collections.rdma.k8s.tests.support.lingjun_cloud import KEYS, Cloud
from ansible_collections.rdma.k8s.tests.support.lingjun_cluster import Containers, Lingjun, plugin
from ansible_collections.rdma.k8s.tests.support.playbook import Controller, Result, Run
from ansible_collections.rdma.k8s.tests.support.pod_container import lingjun as good_container

from .conftest import SIMULATED, ControlPlane
from .test_client import with_user

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="namespaces, mounts and device nodes need root")
CRASH_LOG = [
    "2026/11/30 02:00:00 Starting K8s RDMA Shared Device Plugin version= v1.1.5",
    "2026/11/30 02:00:01 RDMA subsystem namespace mode is exclusive, expected shared",
]


@pytest.fixture(scope="module")
def cluster(control_plane: ControlPlane) -> Cluster:
    """Calls as the administrator."""
    return connect(str(control_plane.kubeconfig))


@pytest.fixture(scope="module")
def deployed(control_plane: ControlPlane, cluster: Cluster) -> Iterator[Lingjun]:
    """Two Lingjun nodes beside two others, with a plugin on all four."""
    nodes = sorted(node["metadata"]["name"] for node in cluster.items("/api/v1/nodes"))
    assert len(nodes) == SIMULATED
    with Lingjun(cluster, nodes[:2], control_plane.cluster.directory).with_plugin(SIMULATED) as found:
        yield found


@pytest.fixture
def lab(deployed: Lingjun) -> Iterator[Lingjun]:
    """The same; after the test everything is good again."""
    yield deployed
    for node in deployed.nodes:
        deployed.adopt(node)
    pods = "/api/v1/namespaces/%s/pods" % names.NAMESPACE
    for pod in deployed.cluster.items(pods, labelSelector="app=" + names.DAEMONSET):
        if not all(status["ready"] for status in pod["status"].get("containerStatuses", ())):
            deployed.cluster.delete({"apiVersion": "v1", "kind": "Pod", **pod})
    deployed.wait_for_plugin(SIMULATED)


@pytest.fixture
def namespace(control_plane: ControlPlane) -> Iterator[str]:
    """A namespace for the Jobs of one test."""
    name = "t" + uuid.uuid4().hex[:8]
    control_plane.kubectl("create", "namespace", name)
    yield name
    control_plane.kubectl("delete", "namespace", name, "--wait=false")


def verify(control_plane: ControlPlane, **options: Any) -> dict[str, Any]:
    """Run the module; without waiting unless the test wants it."""
    options = {"kubeconfig": str(control_plane.kubeconfig), "timeout": 0, "settle": 0, **options}
    result = change_run.good(ack_verify, **options)
    assert result["changed"] is False
    return result


def codes(result: dict[str, Any]) -> list[tuple[str, str]]:
    """Reasons with what they are about."""
    return [(reason["code"], reason["subject"]) for reason in result["reasons"]]


def test_a_good_cluster(control_plane: ControlPlane, lab: Lingjun) -> None:
    """A50 to A57: nodes without the label do not matter, and a good look is repeated."""
    result = verify(control_plane, settle=1)
    assert (result["status"], result["problems"]) == ("ok", [])
    assert [(node["name"], node["capacity"], node["allocatable"]) for node in result["nodes"]] == [
        (node, 1000, 1000) for node in lab.nodes
    ]
    assert result["daemonset"]["ready"] == SIMULATED
    assert result["waited"] >= 1


def test_no_plugin(control_plane: ControlPlane, lab: Lingjun) -> None:
    result = verify(control_plane, daemonset="somewhere-else")
    assert (result["status"], codes(result)) == ("fail", [("ds-missing", "")])
    assert result["daemonset"] is None


def test_a_node_without_a_ready_pod(control_plane: ControlPlane, lab: Lingjun) -> None:
    """A52, A53, A97, A98: the node is named, the state of the container is told, and its log explains it."""
    node = lab.nodes[1]
    pod = lab.crash(node)
    lab.wait_for_plugin(SIMULATED - 1)
    with lab.logs(node, CRASH_LOG) as asked:
        result = verify(control_plane)
    assert result["status"] == "fail"
    assert ("ds-node-uncovered", node) in codes(result)
    (log,) = result["logs"]
    assert (log["pod"], log["node"], log["restarts"]) == (pod, node, 7)
    assert (log["state"], log["last"]) == ("waiting: CrashLoopBackOff", "terminated: Error, exit code 1")
    assert [entry["code"] for entry in log["explanations"]] == ["log-netns-mode"]
    assert log["unread"] == []
    assert any("previous=true" in path for path in asked)
    assert all("tailLines=2000" in path for path in asked)
    assert any("exclusive mode" in problem for problem in result["problems"])


def test_a_log_that_cannot_be_read_decides_nothing(control_plane: ControlPlane, lab: Lingjun) -> None:
    """A53: the failure is that of the node; that the log could not be read is told beside it."""
    node = lab.nodes[0]
    lab.tokens(node, "1k", "0")
    result = verify(control_plane)
    assert codes(result) == [("resource-allocatable-zero", node)]
    (log,) = result["logs"]
    assert (log["node"], log["explanations"], log["lines"]) == (node, [], 0)
    assert log["unread"]
    assert any("was not read" in problem for problem in result["problems"])


@pytest.mark.parametrize(
    ("amounts", "code", "status"),
    [
        (("1k", "0"), "resource-allocatable-zero", "fail"),
        (("0", "0"), "resource-capacity-zero", "fail"),
        ((None, None), "resource-missing", "fail"),
        (("1k", "990"), "resource-allocatable-low", "warn"),
        (("4", "4"), "resource-count-unexpected", "warn"),
    ],
)
def test_amounts(
    control_plane: ControlPlane, lab: Lingjun, amounts: tuple[Any, Any], code: str, status: str
) -> None:
    """A55, as the real API server gives the quantities back."""
    lab.tokens(lab.nodes[0], *amounts)
    result = verify(control_plane, log_pods=0)
    assert (result["status"], codes(result)) == (status, [(code, lab.nodes[0])])


def test_exclusive_with_the_tokens_of_shared_mode(control_plane: ControlPlane, lab: Lingjun) -> None:
    """A55: 1000 tokens are those of shared mode. With one for each NIC it is right."""
    result = verify(control_plane, mode="exclusive", log_pods=0)
    assert (result["status"], codes(result)) == (
        "fail",
        [("resource-mode-mismatch", node) for node in lab.nodes],
    )
    for node in lab.nodes:
        lab.tokens(node, "4", "4")
    assert verify(control_plane, mode="exclusive")["status"] == "ok"


def test_labels_that_were_removed(control_plane: ControlPlane, lab: Lingjun) -> None:
    """A13, A16: a node is a Lingjun node by its label alone."""
    lab.label(lab.nodes[0], **{names.WORKER_LABEL: None})
    result = verify(control_plane)
    assert (result["status"], codes(result)) == ("warn", [("node-label-missing", lab.nodes[0])])
    lab.label(lab.nodes[1], **{names.WORKER_LABEL: None})
    assert ("no-lingjun-node", "") in codes(verify(control_plane, log_pods=0))


def test_another_name_of_the_resource(control_plane: ControlPlane, lab: Lingjun) -> None:
    """A36."""
    for node in lab.nodes:
        lab.tokens(node, "1k", "1k", "rdma/fabric")
    assert verify(control_plane, resource_name="rdma/fabric")["status"] == "ok"


def test_it_waits_for_what_is_on_its_way(control_plane: ControlPlane, lab: Lingjun) -> None:
    """A57, A102: allocatable is 0 for a moment after a restart of the plugin."""
    node = lab.nodes[0]
    lab.tokens(node, "1k", "0")

    def later(seconds: float) -> None:
        time.sleep(min(seconds, 0.2))
        lab.tokens(node, "1k", "1k")

    found = reader.verify(lab.cluster, reader.Wish(timeout=60, settle=0.5), sleep=later)
    assert (found.status, found.logs) == ("ok", [])


def test_a_user_who_may_not_look(control_plane: ControlPlane, lab: Lingjun, tmp_path: Path) -> None:
    """A54: the right that is missing is named."""
    control_plane.kubectl("create", "serviceaccount", "nobody", "-n", "default")
    try:
        token = control_plane.kubectl("create", "token", "nobody", "-n", "default").strip()
        config = with_user(control_plane, tmp_path, token=token)
        result = change_run.failure(ack_verify, kubeconfig=config, timeout=0)
        assert result["code"] == "kube_forbidden"
        assert "daemonsets" in result["msg"]
    finally:
        control_plane.kubectl("delete", "serviceaccount", "nobody", "-n", "default")


# --- from the inside of pods


def try_pods(control_plane: ControlPlane, namespace: str, nodes: list[str], **options: Any) -> dict[str, Any]:
    """Run the module."""
    result = change_run.good(
        ack_pod_test,
        **{
            "kubeconfig": str(control_plane.kubeconfig),
            "namespace": namespace,
            "nodes": nodes,
            "image": "lab.test/pod:1",
            "timeout": 60,
            **options,
        },
    )
    assert (result["changed"], result["left"]) == (False, [])
    left = json.loads(control_plane.kubectl("get", "jobs,pods", "-n", namespace, "-o", "json"))
    assert left["items"] == []
    return result


@needs_root
def test_pods_on_all_nodes(control_plane: ControlPlane, lab: Lingjun, namespace: str) -> None:
    """A79: a Job on each node, one verdict each, and nothing is left."""
    bad = replace(good_container(4), verbs={}, ports=())
    with Containers(lab.cluster, {lab.nodes[0]: good_container(4), lab.nodes[1]: bad}) as containers:
        result = try_pods(control_plane, namespace, lab.nodes)
    assert result["status"] == "fail"
    first, second = result["results"]
    assert (first["node"], first["status"], first["problems"]) == (lab.nodes[0], "ok", [])
    assert first["evidence"]["files"]["uverbs3"] == "open"
    assert [problem["code"] for problem in second["problems"]] == ["device-not-visible"]
    assert result["problems"][0].startswith(lab.nodes[1] + ": ")
    assert {pod["spec"]["nodeName"] for pod in containers.ran} == set(lab.nodes)
    assert all(pod["spec"]["hostNetwork"] for pod in containers.ran)


@needs_root
def test_a_message_that_is_cut_off_is_read_from_the_log(
    control_plane: ControlPlane, lab: Lingjun, namespace: str
) -> None:
    """The kubelet keeps 4096 bytes of a termination message; the log has the line whole."""
    node = lab.nodes[0]
    whole = [json.dumps({"schema": 1, "caps": "1000000"})]
    with Containers(lab.cluster, {node: good_container(1)}, cut=(node,)), lab.logs(node, whole) as asked:
        result = try_pods(control_plane, namespace, [node])
    assert result["results"][0]["evidence"] == {"schema": 1, "caps": "1000000"}
    assert asked


@needs_root
def test_a_message_that_is_lost(control_plane: ControlPlane, lab: Lingjun, namespace: str) -> None:
    """Without message and log nothing is known, which is not the same as good."""
    node = lab.nodes[0]
    with Containers(lab.cluster, {node: good_container(1)}, cut=(node,)):
        result = try_pods(control_plane, namespace, [node])
    assert (result["status"], [p["code"] for p in result["results"][0]["problems"]]) == (
        "unknown",
        ["pod-unreadable"],
    )


def test_no_token_is_free(control_plane: ControlPlane, lab: Lingjun, namespace: str) -> None:
    """The real scheduler says why a pod has no node, and that is passed on."""
    node = lab.nodes[0]
    lab.tokens(node, "0", "0")
    result = try_pods(control_plane, namespace, [node], timeout=10)
    (problem,) = result["results"][0]["problems"]
    assert problem["code"] == "pod-not-scheduled"
    assert "Insufficient rdma/hca" in problem["message"]


def test_a_namespace_that_refuses_the_pod(control_plane: ControlPlane, lab: Lingjun, namespace: str) -> None:
    """The real admission of Pod Security refuses; the Job has no pod, and the event tells why."""
    control_plane.kubectl("label", "namespace", namespace, "pod-security.kubernetes.io/enforce=baseline")
    result = try_pods(control_plane, namespace, [lab.nodes[0]], timeout=10)
    (problem,) = result["results"][0]["problems"]
    assert problem["code"] == "pod-refused"
    assert "PodSecurity" in problem["message"]
    options = {
        "kubeconfig": str(control_plane.kubeconfig),
        "namespace": namespace,
        "nodes": [lab.nodes[0]],
        "image": "lab.test/pod:1",
    }
    refused = change_run.failure(ack_pod_test, _ansible_check_mode=True, **options)
    assert refused["code"] == "kube_forbidden"
    assert "PodSecurity" in refused["msg"]


def test_check_mode_makes_nothing(control_plane: ControlPlane, lab: Lingjun, namespace: str) -> None:
    result = try_pods(control_plane, namespace, lab.nodes, _ansible_check_mode=True)
    assert (result["status"], result["results"]) == ("skip", [])


# --- the role


@pytest.fixture(scope="module")
def controller(tmp_path_factory: pytest.TempPathFactory) -> Controller:
    """A home that is not the user's."""
    return Controller(tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("compiled"))


PLAY = """\
- name: Bring up Lingjun nodes
  hosts: localhost
  gather_facts: false
  tasks:
    - name: Install and prove
      ansible.builtin.include_role:
        name: rdma.k8s.ack_lingjun

    - name: Keep the result
      ansible.builtin.copy:
        content: "{{ ack_lingjun_result | to_json }}"
        dest: "{{ playbook_dir }}/result.json"
        mode: "0600"
      check_mode: false
"""


class Role:
    """Runs the role on the controller."""

    def __init__(self, controller: Controller, folder: Path, **variables: Any) -> None:
        (folder / "play.yml").write_text(PLAY, encoding="utf-8")
        self._run = Run(controller, folder, "play.yml")
        self._hosts: dict[str, dict[str, Any]] = {"localhost": {"ansible_connection": "local"}}
        self._run.inventory(self._hosts)
        self._variables = variables

    def know(self, host: str, snapshot: NodeSnapshot) -> None:
        """Give the inventory a host, with what node_info would have registered."""
        self._hosts[host] = {"rdma_k8s_node": {"snapshot": snapshot.to_dict()}}
        self._run.inventory(self._hosts)

    def __call__(self, *words: str, env: Any = None, **variables: Any) -> Result:
        """Run it."""
        return self._run(*words, variables={**self._variables, **variables}, env=env)

    @property
    def result(self) -> Any:
        """The fact that the role left."""
        return json.loads((self._run.folder / "result.json").read_text("utf-8"))


@pytest.fixture
def role(control_plane: ControlPlane, controller: Controller, tmp_path: Path, namespace: str) -> Role:
    """The role for this cluster, without a cloud."""
    return Role(
        controller,
        tmp_path,
        ack_lingjun_manage_addon=False,
        ack_lingjun_kubeconfig=str(control_plane.kubeconfig),
        ack_lingjun_settle=1,
        ack_lingjun_verify_timeout=0,
        ack_lingjun_pod_test_namespace=namespace,
        ack_lingjun_pod_test_image="lab.test/pod:1",
        ack_lingjun_pod_test_timeout=60,
    )


def labels(lab: Lingjun) -> dict[str, Any]:
    """The labels and taints of the nodes."""
    found = {node: lab.cluster.get("/api/v1/nodes/" + node) for node in lab.nodes}
    return {
        node: (content["metadata"]["labels"], content["spec"]["taints"]) for node, content in found.items()
    }


@needs_root
def test_the_role_without_a_cloud(lab: Lingjun, role: Role) -> None:
    """Somebody else installed the add-on: prerequisites, plugin, pods; nothing is changed, no label least of all."""
    before = labels(lab)
    with Containers(lab.cluster, {node: good_container(4) for node in lab.nodes}):
        done = role(ack_lingjun_pod_test=True)
    assert done.recap("localhost")["changed"] == 1, done.good()  # the file of the test
    assert (role.result["status"], role.result["problems"]) == ("ok", [])
    assert [(entry["node"], entry["status"]) for entry in role.result["pod_test"]] == [
        (node, "ok") for node in lab.nodes
    ]
    assert labels(lab) == before


def test_the_role_stops_before_a_mode_that_cannot_work(lab: Lingjun, role: Role) -> None:
    """A8, A9: where nothing tells the IP version it does not go on; the remedy names the ticket."""
    assert "support ticket" in role(ack_lingjun_mode="shared").failed()


def test_the_role_stops_at_exclusive_mode_with_shared_tokens(lab: Lingjun, role: Role) -> None:
    """A55: the node and the reason stand in one sentence."""
    told = role(ack_lingjun_mode="exclusive", ack_lingjun_compute_ip_version="ipv6").failed()
    assert "%s: 1000 tokens are those of shared mode" % lab.nodes[1] in told


def test_the_role_looks_at_the_hosts(lab: Lingjun, role: Role) -> None:
    """A8, A64: their bonds tell the IP version where the cloud is not asked, and one of them is enough to stop."""
    for node, ipv6 in zip(lab.nodes, (True, False)):
        role.know(node, hosts.node(name=node, ipv6=ipv6))
    told = role(ack_lingjun_mode="shared", ack_lingjun_hosts=lab.nodes).failed()
    assert "Nothing was changed" in told
    assert "RDMA-ACK-019" in told
    assert lab.nodes[1] in told
    role.know(lab.nodes[1], hosts.node(name=lab.nodes[1]))
    role(ack_lingjun_mode="shared", ack_lingjun_hosts=lab.nodes).good()
    assert role.result["status"] == "ok"


@needs_root
def test_the_role_from_nothing_to_nothing(control_plane: ControlPlane, lab: Lingjun, role: Role) -> None:
    """Installed through the real SDK, deployed, verified, tried; unchanged the second time; then removed."""
    control_plane.kubectl("delete", "ds", names.DAEMONSET, "-n", names.NAMESPACE, "--wait=true")
    before = labels(lab)
    nodes = {node: good_container(4, own_network=True) for node in lab.nodes}
    try:
        with Cloud(control_plane, "IPv6") as cloud:
            planned = role("--check", env=KEYS, **cloud.options())
            assert planned.recap("localhost")["failed"] == 0, planned.good()
            assert cloud.orders == []
            with Containers(lab.cluster, nodes) as containers:
                role(env=KEYS, **cloud.options(ack_lingjun_pod_test=True)).good()
            assert [request.action for request in cloud.orders] == ["InstallClusterAddons"]
            assert (role.result["changed"], role.result["status"]) == (True, "ok")
            assert (role.result["addon"]["version"], role.result["compute_ip_version"]) == ("1.1.5", "IPv6")
            assert [entry["status"] for entry in role.result["pod_test"]] == ["ok", "ok"]
            assert not any("hostNetwork" in pod["spec"] for pod in containers.ran)
            role(env=KEYS, **cloud.options()).good()
            assert (role.result["changed"], len(cloud.orders)) == (False, 1)
            role(env=KEYS, **cloud.options(ack_lingjun_state="absent")).good()
            assert (role.result["changed"], role.result["addon"]["state"]) == (True, "absent")
            assert labels(lab) == before
    finally:
        control_plane.kubectl("apply", "-f", "-", stdin=json.dumps(plugin()))


def test_the_role_asks_the_cloud_before_it_orders(
    control_plane: ControlPlane, lab: Lingjun, role: Role
) -> None:
    """A8, A10, A63: an IPv4 network, another edition; nothing is ordered."""
    with Cloud(control_plane, "IPv4") as cloud:
        told = role(env=KEYS, **cloud.options()).failed()
        assert "Nothing was changed" in told
        assert "RDMA-ACK-018" in told
        cloud.cluster["cluster_spec"] = "ack.standard"
        edition = role(env=KEYS, **cloud.options()).failed()
        assert "expected an ACK managed cluster Pro" in edition
        assert cloud.orders == []
