# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A real API server with a DRANET that is broken in one way after the other, and what the checks say of it.

The nodes are simulated: their slices are those of a DRANET without the profile, and their pods do not do anything.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Callable

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils import judging, records
from ansible_collections.rdma.k8s.plugins.module_utils.cli.main import main
from ansible_collections.rdma.k8s.plugins.module_utils.core.checks.judge import NodeInput, judge
from ansible_collections.rdma.k8s.plugins.module_utils.core.checks.policy import Policy
from ansible_collections.rdma.k8s.plugins.module_utils.core.cluster_snapshot import ClusterSnapshot
from ansible_collections.rdma.k8s.plugins.module_utils.core.oke.dranet_objects import dranet
from ansible_collections.rdma.k8s.plugins.module_utils.core.oke.dranet_versions import Abilities
from ansible_collections.rdma.k8s.plugins.module_utils.core.oke.dranet_wish import DeploymentWish
from ansible_collections.rdma.k8s.plugins.modules import cluster_info
from ansible_collections.rdma.k8s.tests.support import change_run, fleet
from ansible_collections.rdma.k8s.tests.support.playbook import Controller, Run

from .conftest import RAILS, SIMULATED, ControlPlane

DRIVER, NAMESPACE = "dranet", "kube-system"
NODES = ["sim-%04d" % number for number in range(1, SIMULATED + 1)]
FAULTS = "rdma-lab/faults"
STAMP = "%Y-%m-%dT%H:%M:%SZ"
OPTION = "--cloud-provider-options=oke.rdma-child-ipv4-cidr="
NEW, OLD = "10.208.0.0/12", "10.240.0.0/15"
POD: dict[str, Any] = {
    "terminationGracePeriodSeconds": 0,
    "tolerations": [{"operator": "Exists"}],
    "nodeSelector": {"rdma-lab/simulated": "true"},
}


def driver(child_range: str, cpu: str = "100m") -> dict[str, Any]:
    """DRANET as a version with the profile would be deployed."""
    labels = {"k8s-app": DRIVER}
    container = {
        "name": DRIVER,
        "image": "lab.test/dranet:v1.4.0",
        "args": ["--v=4", "--cloud-provider-hint=OKE", OPTION + child_range],
        "livenessProbe": {"httpGet": {"path": "/healthz", "port": 9177}},
        "resources": {"requests": {"cpu": cpu}},
    }
    spec = {
        **POD,
        "serviceAccountName": DRIVER,
        "priorityClassName": "system-node-critical",
        "containers": [container],
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": DRIVER, "namespace": NAMESPACE},
        "spec": {
            "selector": {"matchLabels": labels},
            "updateStrategy": {"type": "OnDelete"},
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    }


def rights() -> list[dict[str, Any]]:
    """The account of DRANET and what it may, as the role deploys it."""
    wish = DeploymentWish(namespace=NAMESPACE, image="lab.test/dranet:v1.4.0")
    return [entry for entry in dranet(wish, Abilities()) if entry["kind"] != "DaemonSet"]


def workload(name: str, node: str) -> list[dict[str, Any]]:
    """A pod with a claim for one NIC on a node, and the class that it names."""
    group = "resource.k8s.io/v1"
    request = {"name": "nic", "exactly": {"deviceClassName": "rdma-nic"}}
    config = {"opaque": {"driver": "dra.net", "parameters": {"interface": {"name": "net0"}}}}
    pod = {
        **POD,
        "nodeSelector": {"kubernetes.io/hostname": node},
        "resourceClaims": [{"name": "nic", "resourceClaimName": name}],
        "containers": [{"name": "c", "image": "lab.test/pod:1", "resources": {"claims": [{"name": "nic"}]}}],
    }
    return [
        {
            "apiVersion": group,
            "kind": "DeviceClass",
            "metadata": {"name": "rdma-nic"},
            "spec": {"selectors": [{"cel": {"expression": 'device.driver == "dra.net"'}}]},
        },
        {
            "apiVersion": group,
            "kind": "ResourceClaim",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"devices": {"requests": [request], "config": [config]}},
        },
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"}, "spec": pod},
    ]


class Lab:
    """A control plane with a driver, read and judged."""

    def __init__(self, plane: ControlPlane) -> None:
        self.plane = plane

    def apply(self, *objects: dict[str, Any]) -> None:
        items = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
        self.plane.kubectl("apply", "-f", "-", stdin=json.dumps(items))

    def read(self) -> ClusterSnapshot:
        result = change_run.run(cluster_info, kubeconfig=str(self.plane.kubeconfig), name="lab")
        assert "failed" not in result, result
        return ClusterSnapshot.from_dict(result["snapshot"])

    def fault(self, node: str, *faults: str) -> None:
        self.plane.kubectl("annotate", "--overwrite", "node", node, "%s=%s" % (FAULTS, ",".join(faults)))

    def get(self, *words: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.plane.kubectl("get", *words, "-o", "json"))
        return found

    def delete_pod(self, node: str) -> None:
        """Delete the pod of the driver on a node, so that it is made anew."""
        selectors = ("-l", "k8s-app=" + DRIVER, "--field-selector", "spec.nodeName=" + node)
        (pod,) = self.get("pods", "-n", NAMESPACE, *selectors)["items"]
        self.plane.kubectl("delete", "pod", "-n", NAMESPACE, pod["metadata"]["name"], "--timeout=60s")

    def driver_is_ready(self, ready: int = SIMULATED) -> bool:
        status = self.get("ds", DRIVER, "-n", NAMESPACE)["status"]
        seen = (
            status.get("observedGeneration")
            == self.get("ds", DRIVER, "-n", NAMESPACE)["metadata"]["generation"]
        )
        return seen and status.get("numberReady", 0) == ready


def until(what: str, done: Callable[[], bool], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < end, what
        time.sleep(0.3)


def results(cluster: ClusterSnapshot, *nodes: NodeInput) -> dict[tuple[str, str], tuple[str, str]]:
    """Status and message by node and check."""
    document = judge(nodes, Policy.from_dict({}), judging.now(), cluster=cluster)
    return {(entry.node, entry.check[5:]): (entry.status, entry.message) for entry in document.findings}


def of_cluster(cluster: ClusterSnapshot) -> dict[str, tuple[str, str]]:
    """What is said of the cluster itself."""
    return {check: told for (node, check), told in results(cluster).items() if node == "lab"}


def open_of(cluster: ClusterSnapshot) -> dict[str, str]:
    """The checks of the cluster that are neither right nor skipped, and what they say."""
    return {
        check: message
        for check, (status, message) in of_cluster(cluster).items()
        if status not in ("pass", "skip")
    }


def later(cluster: ClusterSnapshot, minutes: int) -> ClusterSnapshot:
    """As if the same were read some minutes later."""
    at = datetime.strptime(cluster.collected_at, STAMP) + timedelta(minutes=minutes)
    return replace(cluster, collected_at=at.strftime(STAMP))


@pytest.fixture(name="lab", scope="module")
def lab_fixture(control_plane: ControlPlane) -> Iterator[Lab]:
    """A driver that is ready on all nodes, and a pod with a claim."""
    lab = Lab(control_plane)
    lab.apply(*rights(), driver(NEW), *workload("train", NODES[0]))
    try:
        until("the driver is ready", lab.driver_is_ready)
        control_plane.kubectl("wait", "pod", "train", "--for=condition=Ready", "--timeout=60s")
        yield lab
    finally:
        for node in NODES:
            lab.fault(node)
        control_plane.kubectl("delete", "pod", "train", "waits", "--ignore-not-found", "--timeout=60s")
        for kind, name in (
            ("resourceclaim", "train"),
            ("resourceclaim", "waits"),
            ("deviceclass", "rdma-nic"),
        ):
            control_plane.kubectl("delete", kind, name, "--ignore-not-found", "--timeout=60s")
        control_plane.kubectl("delete", "ds", DRIVER, "-n", NAMESPACE, "--timeout=60s")
        for entry in rights():
            control_plane.kubectl("delete", entry["kind"], DRIVER, "-n", NAMESPACE, "--ignore-not-found")


def test_a_driver_that_is_well(lab: Lab) -> None:
    """Everything of the cluster is right, or does not apply."""
    found = of_cluster(lab.read())
    assert {check: told for check, told in found.items() if told[0] not in ("pass", "skip")} == {}
    assert {check for check, told in found.items() if told[0] == "skip"} == {
        "DRA-005",
        "ROLL-005",
        "ROLL-006",
        "ROLL-007",
    }
    assert found["DRA-008"] == ("pass", "%d nodes have published their devices." % SIMULATED)
    assert found["RANGE-017"][1] == "10.208.0.0/12, and no other range."


def test_nodes_of_the_cluster(lab: Lab) -> None:
    """F70: the driver publishes the range that it is told on every NIC."""
    node = fleet.node("BM.GPU.H100.8", name=NODES[1])
    until(
        "the devices name the range",
        lambda: results(lab.read(), NodeInput(node.name, node))[NODES[1], "DRA-009"][0] == "pass",
    )
    found = results(lab.read(), NodeInput(node.name, node))
    assert found[NODES[1], "DRA-010"] == ("pass", "%d NICs are offered with RDMA." % RAILS)
    assert found[NODES[1], "RANGE-009"][0] == "pass"  # 10.96.0.0/16 by the ServiceCIDR of the API
    assert found[NODES[1], "RANGE-008"][0] == "unknown"  # nothing names the whole pod network
    stranger = fleet.node(name="gpu-99")
    assert results(lab.read(), NodeInput("gpu-99", stranger))["gpu-99", "DRA-010"][0] == "unknown"


def test_preflight_reads_the_cluster_itself(lab: Lab, tmp_path: Path) -> None:
    """Also where the inventory has all its hosts become root: the controller does not."""
    node = fleet.node(name=NODES[0], features_file=False)  # the driver here does not mount the directory
    records.save(str(tmp_path / "nodes"), [NodeInput(NODES[0], node)])
    run = Run(Controller(tmp_path, tmp_path / "compiled"), tmp_path)
    run.inventory({}, ansible_become=True, ansible_become_exe="/bin/false")
    variables = {
        "snapshots": str(tmp_path / "nodes"),
        "kubeconfig": str(lab.plane.kubeconfig),
        "rdma_policy": {"skip": ["RDMA-DRA-009"], "pod_cidrs": ["10.244.0.0/16"]},
    }
    result = run(variables=variables)
    result.good()
    document = run.document()
    assert document.cluster == lab.plane.url
    found = {entry.check: entry.status for entry in document.findings if entry.node == document.cluster}
    assert (found["RDMA-DRA-001"], found["RDMA-DRA-008"]) == ("pass", "pass")
    assert records.load_cluster(str(run.reports / "cluster.json")).name == document.cluster


def test_slices_that_are_missing(lab: Lab) -> None:
    lab.fault(NODES[2], "slices")
    try:
        selector = "spec.nodeName=" + NODES[2]
        until("no slice", lambda: not lab.get("resourceslices", "--field-selector", selector)["items"])
        assert open_of(lab.read()) == {"DRA-008": "%s: has a pod of DRANET and no slice." % NODES[2]}
    finally:
        lab.fault(NODES[2])
    until("the slice is back", lambda: bool(lab.get("resourceslices", "--field-selector", selector)["items"]))


def test_a_claim_that_is_not_prepared(lab: Lab) -> None:
    """Young it may heal; after five minutes it counts; when the pod runs it is over."""
    lab.fault(NODES[1], "prepare")
    try:
        lab.apply(*workload("waits", NODES[1]))
        until("an event", lambda: bool(lab.read().prepare_events))
        found = lab.read()
        assert open_of(found) == {}
        assert list(open_of(later(found, 7))) == ["DRA-011"]
        assert "default/waits: on %s for 7 minutes" % NODES[1] in open_of(later(found, 7))["DRA-011"]
    finally:
        lab.fault(NODES[1])
        lab.plane.kubectl("delete", "pod", "waits", "--timeout=60s")
    assert open_of(later(lab.read(), 7)) == {}


def test_a_claim_that_is_stuck(lab: Lab) -> None:
    """A claim that is deleted while a pod uses it stays (DEV-24); by the clock of this test for eleven minutes."""
    lab.plane.kubectl("delete", "resourceclaim", "train", "--wait=false")
    found = lab.read()
    assert open_of(found) == {}
    told = open_of(later(found, 11))
    assert list(told) == ["DRA-016"]
    assert "default/train: is being deleted for 11 minutes on %s" % NODES[0] in told["DRA-016"]


def test_two_ranges_alive(lab: Lab, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The option changed, and one pod was made anew. A node with the other range does no harm once it is cordoned.

    The command and a recorded directory say the same as the module.
    """
    lab.apply(driver(OLD))
    lab.delete_pod(NODES[3])
    until("the new pod is ready", lab.driver_is_ready)
    until("its devices name the range", lambda: "(devices)" in open_of(lab.read()).get("RANGE-017", ""))
    found = lab.read()
    told = open_of(found)
    assert set(told) == {"DRA-001", "RANGE-017"}
    assert "1 of 4 pods are of the newest template" in told["DRA-001"]
    alive = "10.240.0.0/15: alive on %s (devices), beside 10.208.0.0/12 on 3 nodes." % NODES[3]
    assert told["RANGE-017"] == alive
    records.save(str(tmp_path), [], found)
    assert main(["report", str(tmp_path), "--exit-code", "--only", "RDMA-RANGE-017"]) == 4
    assert "lab" not in capsys.readouterr().err
    lab.plane.kubectl("cordon", NODES[3])
    try:
        assert set(open_of(lab.read())) == {"DRA-001", "ROLL-003"}  # the cordon is nobody's
    finally:
        lab.plane.kubectl("uncordon", NODES[3])


def test_a_driver_that_is_not_ready(lab: Lab) -> None:
    """A pod that fits on no node any more."""
    lab.apply(driver(NEW, cpu="1000"))
    lab.delete_pod(NODES[0])
    until("a pod is not ready", lambda: lab.driver_is_ready(SIMULATED - 1))
    told = open_of(lab.read())["DRA-001"]
    assert told.startswith("kube-system/dranet: 3 of 4 pods are ready")
    found = results(lab.read(), NodeInput(NODES[0], fleet.node(name=NODES[0])))["lab", "DRA-001"]
    assert "%s: no pod of DRANET is on it" % NODES[0] in found[1]
