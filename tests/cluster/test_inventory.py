# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The inventory plugin on a real API server: its nodes, its slices, its rights, its pods."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.rdma.k8s.tests.support.inventory_run import InventoryRun
from ansible_collections.rdma.k8s.tests.support.playbook import Controller

from .conftest import SIMULATED, ControlPlane

NAMES = [f"sim-{number:04d}" for number in range(1, SIMULATED + 1)]
NETWORK = "rdma_network_10_224_0_0_12_via_10_140_64_0_19"
OKE = {  # F72, and what a node of OKE has anyway
    "oci.oraclecloud.com/fault-domain": "FAULT-DOMAIN-1",
    "oci.oraclecloud.com/rdma.hpc_island_id": "af7ubvouuyq",
    "oci.oraclecloud.com/rdma.network_block_id": "7xmzl4p4wba",
    "oci.oraclecloud.com/rdma.local_block_id": "4tjxbt4s6ua",
}
NAMESPACE = "inventory-test"


@pytest.fixture(scope="module")
def oke_nodes(control_plane: ControlPlane) -> Iterator[list[str]]:
    """The first two nodes, labelled as OKE does."""
    names = NAMES[:2]
    control_plane.kubectl("label", "node", *names, *[f"{key}={value}" for key, value in OKE.items()])
    yield names
    control_plane.kubectl("label", "node", *names, *[key + "-" for key in OKE])


@pytest.fixture(scope="module")
def controller(tmp_path_factory: pytest.TempPathFactory) -> Controller:
    """A home that the runs of these tests share."""
    return Controller(tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("compiled"))


@pytest.fixture
def run(controller: Controller, control_plane: ControlPlane, tmp_path: Path) -> InventoryRun:
    """A directory; the user is the administrator."""
    return InventoryRun(controller, tmp_path, str(control_plane.kubeconfig))


@pytest.fixture(scope="module")
def namespace(control_plane: ControlPlane) -> Iterator[str]:
    """A namespace for what a test makes."""
    control_plane.kubectl("create", "namespace", NAMESPACE)
    yield NAMESPACE
    control_plane.kubectl("delete", "namespace", NAMESPACE, "--wait=false")


def wait_until(found: Callable[[], bool], what: str) -> None:
    """The simulator and the controllers need a moment."""
    end = time.monotonic() + 60
    while not found():
        assert time.monotonic() < end, f"after 60 s not yet: {what}"
        time.sleep(0.3)


def test_nodes_slices_and_labels(run: InventoryRun, oke_nodes: list[str]) -> None:
    """F13, F23: subnet and OCA network follow from the slices; labels tell the rest. Two calls for all of it."""
    run.source(strict=True)
    found = run("--list", "-vv")
    inventory = found.output[found.output.index("\n{") :]
    assert f"rdma.k8s.nodes: {SIMULATED} nodes in 2 calls to " in found.output
    found = type(found)(found.code, inventory, found.errors)
    assert found.errors == ""
    assert list(found.hosts) == NAMES
    node = found.hosts[NAMES[0]]["rdma_k8s_node"]
    assert (node["target"], node["shape"], node["rdma_devices"]) == ("oke_dranet", "LAB.SIM.16", 16)
    assert (node["oca_network"], node["primary_subnet"]) == ("10.224.0.0/12", "10.140.64.0/19")
    assert found.hosts[NAMES[0]]["ansible_host"] == "10.140.79.161"
    assert found.group("rdma_target_oke_dranet") == oke_nodes
    assert found.group("rdma_target_none") == NAMES[2:]
    assert found.group(NETWORK) == found.group("rdma_shape_LAB_SIM_16") == NAMES
    for level, value in (
        ("hpc_island", "af7ubvouuyq"),
        ("network_block", "7xmzl4p4wba"),
        ("local_block", "4tjxbt4s6ua"),
    ):
        assert found.group(f"rdma_{level}_{value}") == oke_nodes
        assert found.group(f"rdma_{level}_unknown") == NAMES[2:]


def test_the_graph_of_some_nodes(run: InventoryRun, oke_nodes: list[str]) -> None:
    """The selector is the server's, the filter by target is ours."""
    run.source(label_selector="oci.oraclecloud.com/fault-domain", targets=["oke_dranet"])
    found = run("--graph")
    hosts = "".join(f"  |  |--{name}\n" for name in oke_nodes)
    assert f"  |--@{NETWORK}:\n{hosts}" in found.output
    assert NAMES[2] not in found.output
    assert found.errors == ""


def test_readiness(run: InventoryRun, control_plane: ControlPlane) -> None:
    """A node whose kubelet says that it is not ready, and one that is cordoned."""
    away, cordoned = NAMES[2], NAMES[3]

    def state() -> str:
        path = '{.status.conditions[?(@.type=="Ready")].status}'
        return control_plane.kubectl("get", "node", away, "-o", "jsonpath=" + path)

    control_plane.kubectl("cordon", cordoned)
    control_plane.kubectl("annotate", "node", away, "rdma-lab/faults=not-ready", "--overwrite")
    try:
        wait_until(lambda: state() == "False", f"{away} is not ready")
        run.source()
        found = run()
        assert found.group("rdma_ready") == [*NAMES[:2], cordoned]
        assert found.group("rdma_not_ready") == [away]
        assert found.group("rdma_cordoned") == [cordoned]
    finally:
        control_plane.kubectl("uncordon", cordoned)
        control_plane.kubectl("annotate", "node", away, "rdma-lab/faults-")
    wait_until(lambda: state() == "True", f"{away} is ready again")


def reader(control_plane: ControlPlane, folder: Path, namespace: str, *resources: str) -> str:
    """The kubeconfig of a service account that may list some resources of the cluster, and nothing else."""
    name = "reader-" + "-".join(resource.partition(".")[0] for resource in resources)
    control_plane.kubectl("create", "serviceaccount", name, "-n", namespace)
    control_plane.kubectl("create", "clusterrole", name, "--verb=list", "--resource=" + ",".join(resources))
    control_plane.kubectl(
        "create", "clusterrolebinding", name, "--clusterrole=" + name, f"--serviceaccount={namespace}:{name}"
    )
    config: dict[str, Any] = yaml.safe_load(control_plane.kubeconfig.read_text())
    token = control_plane.kubectl("create", "token", name, "-n", namespace).strip()
    config["users"] = [{"name": entry["name"], "user": {"token": token}} for entry in config["users"]]
    path = folder / "reader"
    path.write_text(yaml.safe_dump(config))
    return str(path)


def without_rights(control_plane: ControlPlane, *names: str) -> None:
    """Take back what :func:`reader` gave."""
    control_plane.kubectl("delete", "clusterrole,clusterrolebinding", *names)


def test_without_the_right_to_read_slices(
    run: InventoryRun, control_plane: ControlPlane, namespace: str, oke_nodes: list[str], tmp_path: Path
) -> None:
    """The right that is missing is named in the words of RBAC, and giving it is enough."""
    try:
        run.source(kubeconfig=reader(control_plane, tmp_path, namespace, "nodes"))
        found = run()
        assert list(found.hosts) == NAMES
        assert found.group("rdma_network_unknown") == found.group("rdma_target_unknown") == NAMES
        assert found.group("rdma_hpc_island_af7ubvouuyq") == oke_nodes
        assert 'verb "list" for "resourceslices" of the API group "resource.k8s.io"' in found.said
    finally:
        without_rights(control_plane, "reader-nodes")
    try:
        slices = "resourceslices.resource.k8s.io"
        run.source(kubeconfig=reader(control_plane, tmp_path, namespace, "nodes", slices))
        assert run().group(NETWORK) == NAMES
    finally:
        without_rights(control_plane, "reader-nodes-resourceslices")


def test_without_the_right_to_read_nodes(
    run: InventoryRun, control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    """No inventory, and the right that is missing."""
    try:
        run.source(kubeconfig=reader(control_plane, tmp_path, namespace, "pods"))
        found = run(ANSIBLE_INVENTORY_ANY_UNPARSED_IS_FAILED="true")
        assert found.code != 0
        assert 'Give the user a role with the verb "list" for "nodes" of the API group ""' in found.said
    finally:
        without_rights(control_plane, "reader-pods")


def agent(name: str, node: str) -> dict[str, Any]:
    """A pod as a DaemonSet would make it."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": {"app": "node-agent"}},
        "spec": {
            "nodeName": node,
            "terminationGracePeriodSeconds": 1,
            "tolerations": [{"operator": "Exists"}],
            "containers": [{"name": "agent", "image": "lab.test/pod:1"}],
        },
    }


def test_pods_of_the_node_agent(run: InventoryRun, control_plane: ControlPlane, namespace: str) -> None:
    """Each node has the pod that is ready on it; one has none."""
    wait_until(
        lambda: "default" in control_plane.kubectl("get", "serviceaccounts", "-n", namespace),
        "the namespace has its account",
    )
    pods = [agent(f"agent-{name}", name) for name in NAMES[:3]]
    control_plane.kubectl(
        "apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": pods})
    )
    control_plane.kubectl(
        "wait", "pod", "-n", namespace, "-l", "app=node-agent", "--for=condition=Ready", "--timeout=60s"
    )
    run.source(
        connection="agent",
        agent_namespace=namespace,
        agent_selector="app=node-agent",
        agent_container="agent",
    )
    found = run()
    for name in NAMES[:3]:
        assert found.hosts[name]["ansible_connection"] == "kubernetes.core.kubectl"
        assert found.hosts[name]["ansible_kubectl_pod"] == f"agent-{name}"
    assert found.group("rdma_no_connection") == NAMES[3:]
    assert f"node {NAMES[3]}: no connection, kept: no pod of the node agent is on it" in found.said
