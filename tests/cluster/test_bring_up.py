# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The playbook bring_up on a real API server. This machine stands for two nodes: it is no good one, which is the point.

Pods do not run here; the scenario ``oke_dranet`` brings real nodes up.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.k8s.tests.support.playbook import Controller, Run

from .conftest import ControlPlane

NODES = ("sim-0001", "sim-0002")
TAINT = "rdma.k8s/unverified"
SETTINGS = {
    "configure": False,
    "oke_dranet_image": "lab.test/dranet:v1.4.0",
    "oke_dranet_version": "v1.4.0",
    "oke_dranet_provider_image": "lab.test/rdma-k8s:1",
    "oke_dranet_allow_without_ipvlan": True,
    "oke_dranet_verify": False,
}


@pytest.fixture(scope="module")
def controller(tmp_path_factory: pytest.TempPathFactory) -> Controller:
    """A home for all runs of these tests."""
    return Controller(tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("compiled"))


@pytest.fixture
def bring_up(controller: Controller, control_plane: ControlPlane, tmp_path: Path) -> Iterator[Run]:
    """The playbook for two nodes whose names in the inventory are not those in the cluster."""
    run = Run(controller, tmp_path, "rdma.k8s.bring_up")
    local = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
    hosts = {
        "gpu-%d" % number: {**local, "rdma_k8s_node": {"name": name}} for number, name in enumerate(NODES)
    }
    run.inventory(hosts, kubeconfig=str(control_plane.kubeconfig), **SETTINGS)
    yield run
    for name in NODES:
        control_plane.kubectl("label", "node", name, "rdma.k8s/verdict-", "rdma.k8s/judged-")
        if TAINT in taints(control_plane, name):
            control_plane.kubectl("taint", "nodes", name, TAINT + "-")
    kinds = "daemonset,serviceaccount,configmap,clusterrole,clusterrolebinding,deviceclass"
    words = ("-n", "kube-system", "-l", "app.kubernetes.io/managed-by=rdma.k8s", "--ignore-not-found")
    control_plane.kubectl("delete", kinds, *words)


def node(control_plane: ControlPlane, name: str) -> dict[str, Any]:
    """A Node object."""
    found: dict[str, Any] = json.loads(control_plane.kubectl("get", "node", name, "-o", "json"))
    return found


def taints(control_plane: ControlPlane, name: str) -> list[str]:
    """Keys of the taints of a node."""
    return [taint["key"] for taint in node(control_plane, name)["spec"].get("taints", [])]


def daemonsets(control_plane: ControlPlane) -> list[str]:
    """What is deployed."""
    text = control_plane.kubectl("get", "daemonsets", "-n", "kube-system", "-o", "name")
    return sorted(line.split("/")[1] for line in text.split())


def test_gate_then_deployment(bring_up: Run, control_plane: ControlPlane) -> None:
    """Bad nodes stop it before anything is deployed, and stay fenced (decision 30); told to go on, it deploys."""
    before = daemonsets(control_plane)
    stopped = bring_up()
    assert stopped.failed().startswith("Nothing was deployed, because the nodes are not right: ")
    assert daemonsets(control_plane) == before
    for name in NODES:
        assert TAINT in taints(control_plane, name)
        assert node(control_plane, name)["metadata"]["labels"]["rdma.k8s/verdict"] == "fail"
    assert (bring_up.reports / "before" / "report.html").exists()
    assert not (bring_up.reports / "report.html").exists()

    went_on = bring_up("-e", "go_on=true", "--limit", "gpu-1")
    assert went_on.failed().startswith("The cluster is not right: ")
    assert daemonsets(control_plane) == sorted([*before, "dranet", "rdma-k8s-provider"])
    assert TAINT in taints(control_plane, NODES[1])
    document = bring_up.document()
    assert "gpu-1" in [row.name for row in document.nodes]
    assert "gpu-0" not in [row.name for row in document.nodes]
    assert {entry.check for entry in document.findings if entry.check.startswith("RDMA-DRA-")}


def test_a_node_that_is_down(bring_up: Run, control_plane: ControlPlane) -> None:
    """It is not configured, judged unknown and stays fenced (decisions 1, 30); nothing is said but that it is down."""
    ssh = bring_up.folder / "ssh"
    ssh.write_text("#!/bin/sh\necho no route to host >&2\nexit 255\n")
    ssh.chmod(0o755)
    down = {"ansible_ssh_executable": str(ssh), "rdma_k8s_node": {"name": NODES[0]}}
    bring_up.inventory({"gpu-0": down}, kubeconfig=str(control_plane.kubeconfig), **SETTINGS)
    stopped = bring_up(variables={"configure": True})
    assert stopped.failed().startswith("Nothing was deployed, because the nodes are not right: ")
    assert {sentence for sentence in stopped.sentences[:-1] if "no route to host" not in sentence} == set()
    assert node(control_plane, NODES[0])["metadata"]["labels"]["rdma.k8s/verdict"] == "unknown"
    assert TAINT in taints(control_plane, NODES[0])
