# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Classes, claims and workloads that we write, before a real API server and a real scheduler."""

from __future__ import annotations

import itertools
import json
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.cluster import objects
from ansible_collections.rdma.k8s.plugins.module_utils.cluster.client import Cluster, connect
from ansible_collections.rdma.k8s.plugins.module_utils.core.oke import claim_nics, claims, shapes
from ansible_collections.rdma.k8s.plugins.module_utils.core.oke.claims import ClaimWish
from ansible_collections.rdma.k8s.plugins.module_utils.core.oke.slices import discover
from ansible_collections.rdma.k8s.plugins.module_utils.core.workloads import render, wish
from ansible_collections.rdma.k8s.plugins.modules import claim_template, device_class, workload_template
from ansible_collections.rdma.k8s.tests.support import change_run
from ansible_collections.rdma.k8s.tests.support.outcome import error_of

SLICES = "/apis/resource.k8s.io/v1/resourceslices"
PATIENCE = 60


@pytest.fixture
def cluster(control_plane: Any) -> Cluster:
    """Calls to the API server."""
    return connect(str(control_plane.kubeconfig))


@pytest.fixture
def namespace(control_plane: Any) -> Iterator[str]:
    """A namespace and a DeviceClass of the same name; both are gone after the test, and no NIC is taken any more."""
    name = "t" + uuid.uuid4().hex[:8]
    control_plane.kubectl("create", "namespace", name)
    try:
        yield name
    finally:
        control_plane.kubectl("delete", "pods", "--all", "-n", name, "--force", "--grace-period=0")
        control_plane.kubectl("delete", "namespace", name, "--wait=false")
        control_plane.kubectl("delete", "deviceclass", name, name + "-gpu", "--ignore-not-found")


def shape(name: str = "BM.GPU.H100.8") -> shapes.Shape:
    """An entry of the table."""
    found = shapes.lookup(name, shapes.DEFAULT_TABLE)
    assert found is not None
    return found


def pod(namespace: str, template: str = "nics") -> dict[str, Any]:
    """A pod with a claim from a template."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "user", "namespace": namespace},
        "spec": {
            "restartPolicy": "Never",
            "resourceClaims": [{"name": "rdma", "resourceClaimTemplateName": template}],
            "containers": [{"name": "main", "image": "x", "resources": {"claims": [{"name": "rdma"}]}}],
        },
    }


def allocated(control_plane: Any, cluster: Cluster, made: ClaimWish, **class_options: Any) -> dict[str, str]:
    """Apply class, template and pod; when the pod runs, which device each request has."""
    namespace = made.namespace
    objects.present(cluster, [claims.device_class(namespace, **class_options), claims.claim(made)])
    control_plane.kubectl("create", "-f", "-", stdin=json.dumps(pod(namespace)))
    control_plane.kubectl(
        "wait", "--for=jsonpath={.status.phase}=Running", "pod/user", "-n", namespace, "--timeout=%ds" % PATIENCE
    )  # fmt: skip
    found = json.loads(control_plane.kubectl("get", "resourceclaims", "-n", namespace, "-o", "json"))
    (claim,) = found["items"]
    return {
        entry["request"]: entry["device"] for entry in claim["status"]["allocation"]["devices"]["results"]
    }


def waits(control_plane: Any, namespace: str) -> str:
    """The scheduler's reason why the pod of a namespace waits."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        found = json.loads(control_plane.kubectl("get", "pod", "user", "-n", namespace, "-o", "json"))
        for condition in found["status"].get("conditions", []):
            if condition["type"] == "PodScheduled" and condition["status"] == "False":
                return str(condition["message"])
        time.sleep(0.3)
    raise AssertionError("the scheduler said nothing")


DEVICES = {
    "rdma%d" % (2 * number + function): "pci-0000-%s-00-%d" % (bus, function)
    for number, bus in enumerate(("0c", "2a", "41", "58", "86", "a5", "bd", "d5"))
    for function in (0, 1)
}
"""The devices of a simulated node by name (F100, F129)."""


# --- allocation


@pytest.mark.parametrize("by", ["name", "pci"])
def test_all_nics_of_a_shape(control_plane: Any, cluster: Cluster, namespace: str, by: str) -> None:
    """The scheduler gives each request the NIC that it names."""
    nics = claim_nics.of_shape(shape(), by)
    made = ClaimWish("nics", nics, namespace, device_class=namespace, profile=True)
    found = allocated(control_plane, cluster, made)
    assert found == {nic.request: DEVICES["rdma%d" % nic.index] for nic in nics}


def test_nics_that_the_nodes_publish(control_plane: Any, cluster: Cluster, namespace: str) -> None:
    """Slices of the API server are understood; of two NICs each is given."""
    discovered = discover(cluster.items(SLICES))
    assert len(discovered.nics) == 16
    assert (discovered.fabric, discovered.odd) == ("ipv4", ())
    assert [nic.rdma_device for nic in discovered.nics[:2]] == ["mlx5_0", "mlx5_1"]
    chosen = claim_nics.choose(discovered.nics, ["rdma3", "rdma12"])
    found = allocated(control_plane, cluster, ClaimWish("nics", chosen, namespace, device_class=namespace))
    assert found == {"rdma3": DEVICES["rdma3"], "rdma12": DEVICES["rdma12"]}


def test_gpus_beside_their_nics(control_plane: Any, cluster: Cluster, namespace: str) -> None:
    """Each GPU comes from the PCIe root of its two NICs, though its number says something else."""
    discovered = discover(cluster.items(SLICES), nodes=["sim-0001"])
    roots = [
        discovered.devices["sim-0001"]["rdma%d" % (2 * number)]["resource.kubernetes.io/pcieRoot"]
        for number in range(8)
    ]
    gpus = [
        {"name": "gpu-%d" % number, "attributes": {"resource.kubernetes.io/pcieRoot": {"string": root}}}
        for number, root in enumerate(reversed(roots))
    ]
    published = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": namespace + "-gpus"},
        "spec": {
            "driver": "gpu.lab.test",
            "nodeName": "sim-0001",
            "pool": {"name": "sim-0001", "generation": 1, "resourceSliceCount": 1},
            "devices": gpus,
        },
    }
    gpu_class = claims.device_class(namespace + "-gpu")
    gpu_class["spec"] = {"selectors": [{"cel": {"expression": 'device.driver == "gpu.lab.test"'}}]}
    objects.present(cluster, [gpu_class])
    control_plane.kubectl("create", "-f", "-", stdin=json.dumps(published))
    try:
        made = ClaimWish(
            "nics",
            discovered.nics,
            namespace,
            device_class=namespace,
            gpu_class=namespace + "-gpu",
            gpus=8,
            align="pcie_root",
        )
        claims.check_alignment(made, discovered.devices)
        found = allocated(control_plane, cluster, made)
        assert [found["gpu%d" % number] for number in range(8)] == [
            "gpu-%d" % (7 - number) for number in range(8)
        ]
    finally:
        control_plane.kubectl("delete", "resourceslice", namespace + "-gpus")


def test_the_attribute_of_readiness(control_plane: Any, cluster: Cluster, namespace: str) -> None:
    """No device says that it is ready, so the pod waits instead of taking a NIC (F44)."""
    nics = claim_nics.choose(claim_nics.of_shape(shape()), count=1)
    made = ClaimWish("nics", nics, namespace, device_class=namespace)
    documents = [claims.device_class(namespace, require_ready=True), claims.claim(made)]
    objects.present(cluster, documents)
    control_plane.kubectl("create", "-f", "-", stdin=json.dumps(pod(namespace)))
    assert "cannot allocate all claims" in waits(control_plane, namespace)


def test_an_attribute_that_the_node_has_not(control_plane: Any, cluster: Cluster, namespace: str) -> None:
    """F70: a device without the attribute does not fit, and it is no error of the expression."""
    nics = claim_nics.choose(claim_nics.of_shape(shape()), count=1)
    made = ClaimWish(
        "nics", nics, namespace, device_class=namespace, node_attributes={"shape": "BM.GPU.H100.8"}
    )
    objects.present(cluster, [claims.device_class(namespace), claims.claim(made)])
    control_plane.kubectl("create", "-f", "-", stdin=json.dumps(pod(namespace)))
    assert "cannot allocate all claims" in waits(control_plane, namespace)


# --- limits of the API


def test_as_many_requests_as_the_api_takes(cluster: Cluster) -> None:
    """32 requests are taken; what we refuse with 33 is what the server would refuse."""
    nics = claim_nics.of_shape(shape())
    made = claims.claim(ClaimWish("untold", nics, gpus=16))
    requests = made["spec"]["spec"]["devices"]["requests"]
    assert len(requests) == claims.MAX_REQUESTS
    assert objects.present(cluster, [made], dry_run=True)[0].action == "create"
    requests.append({"name": "more", "exactly": {"deviceClassName": "x"}})
    error = error_of(objects.present, cluster, [made], dry_run=True)
    assert (error.code, "must have at most 32 items" in error.message) == ("kube_invalid", True)


def test_as_long_as_an_expression_may_be(cluster: Cluster) -> None:
    """10,240 characters are taken, one more is not."""
    longest = "true" + " " * (claims.MAX_EXPRESSION - 4)
    assert objects.present(cluster, [claims.device_class("untold", cel=[longest])], dry_run=True)
    too_long = claims.device_class("untold")
    too_long["spec"]["selectors"].append({"cel": {"expression": longest + " "}})
    assert error_of(objects.present, cluster, [too_long], dry_run=True).code == "kube_invalid"


OWN = {"rdma0": "10.208.13.19/12", "rdma1": "10.208.45.19/12"}


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"profile": True},
        {"profile": True, "gpus": 1, "align": "numa"},
        {"node_attributes": {"shape": "BM.GPU.H100.8", "rdmaFabricPlanes": 1, "rdmaFabricIpv6": False}},
        {"cel": ['!device.attributes["dra.net"].virtual']},
        {"kind": "ResourceClaim", "provider": "none", "addresses": OWN},
        {"nics": claim_nics.of_shape(shape("BM.GPU.GB200.4"))},
        {"nics": claim_nics.of_shape(shape("BM.Optimized3.36"))},
    ],
)
def test_forms_of_claims(cluster: Cluster, more: dict[str, Any]) -> None:
    """The server knows every field (strict validation), and its expressions compile."""
    nics = claim_nics.choose(claim_nics.of_shape(shape()), count=2)
    made = ClaimWish(**{"name": "untold", "nics": nics, **more})
    assert objects.present(cluster, [claims.claim(made)], dry_run=True)[0].action == "create"


# --- workloads

NETWORKS = [wish.Network("gpu%d" % rail, "spidernet.io/gpu%d" % rail, "spiderpool") for rail in range(8)]
TARGETS: list[dict[str, Any]] = [
    *(
        {"target": wish.OKE, "shape": entry, "claim_template": "nics", "gpus_in_claim": in_claim}
        for entry, in_claim in itertools.product(shapes.DEFAULT_TABLE, (True, False))
    ),
    {"target": wish.SPIDERPOOL, "networks": NETWORKS, "gpus": 8},
    {"target": wish.ACK, "gpus": 8},
    {"target": wish.ACK, "gpus": 8, "host_network": False, "cpu": "8", "memory": "128Gi"},
]


@pytest.mark.parametrize("more", TARGETS, ids=lambda more: str(more.get("shape") or more["target"])[:40])
def test_jobs(cluster: Cluster, more: dict[str, Any]) -> None:
    """Job and Service are taken, with every field known."""
    made = wish.WorkloadWish(name="untold", image="x", command=["train"], **more)
    outcomes = objects.present(cluster, render.workload(made), dry_run=True)
    assert [outcome.action for outcome in outcomes] == ["create", "create"]


def test_a_job_that_runs(control_plane: Any, cluster: Cluster, namespace: str) -> None:
    """Two pods on two nodes, each with all 16 NICs, the second with its rank; the names of the Service are theirs."""
    nics = claim_nics.of_shape(shape())
    made = wish.WorkloadWish(
        name="train",
        target=wish.OKE,
        image="x",
        command=["train"],
        namespace=namespace,
        claim_template="nics",
        gpus=0,
    )
    asked = ClaimWish("nics", nics, namespace, device_class=namespace)
    objects.present(cluster, [claims.device_class(namespace), claims.claim(asked), *render.workload(made)])
    control_plane.kubectl(
        "wait", "--for=jsonpath={.status.ready}=2", "job/train", "-n", namespace, "--timeout=%ds" % PATIENCE
    )  # fmt: skip
    pods = json.loads(control_plane.kubectl("get", "pods", "-n", namespace, "-o", "json"))["items"]
    assert len({entry["spec"]["nodeName"] for entry in pods}) == 2
    assert {entry["spec"]["hostname"] for entry in pods} == {"train-0", "train-1"}
    assert {entry["spec"]["subdomain"] for entry in pods} == {"train"}
    chosen = json.loads(
        control_plane.kubectl(
            "get", "pods", "-n", namespace, "-l", "batch.kubernetes.io/job-name=train", "-o", "json"
        )
    )["items"]
    assert len(chosen) == 2


# --- modules


def run(module: Any, control_plane: Any, **options: Any) -> dict[str, Any]:
    """Run a module on the cluster; it must not fail."""
    result = change_run.run(module, kubeconfig=str(control_plane.kubeconfig), **options)
    assert not result.get("failed"), result
    return result


MODULES: list[tuple[Any, dict[str, Any], str]] = [
    (device_class, {}, "create DeviceClass {}"),
    (claim_template, {"namespace": "", "from_cluster": True}, "create ResourceClaimTemplate {0}/{0}"),
    (
        workload_template,
        {"namespace": "", "claim_template": "a", "image": "x", "command": ["y"], "shape": "BM.GPU.H100.8"},
        "create Service {0}/{0}",
    ),
]


@pytest.mark.parametrize("case", MODULES, ids=["class", "template", "workload"])
def test_a_module(control_plane: Any, namespace: str, case: Any, tmp_path: Path) -> None:
    """Check mode leaves nothing; then made, unchanged, with its file; removed, and nothing to remove."""
    module, given, first = case
    options = {key: value or namespace for key, value in given.items()}
    options.update(name=namespace, state="present")
    tried = run(module, control_plane, **options, _ansible_check_mode=True, _ansible_diff=True)
    assert tried["changed"] is True
    assert tried["actions"][0] == first.format(namespace)
    assert tried["diff"][0]["before"] == ""
    assert "name: %s" % namespace in tried["diff"][0]["after"]
    made = run(module, control_plane, **options)
    assert (made["changed"], made["actions"]) == (True, tried["actions"])
    again = run(module, control_plane, **options, _ansible_diff=True)
    assert (again["changed"], again["actions"], again["diff"]) == (False, [], [])
    file = tmp_path / "deep" / "manifest.yaml"
    written = run(module, control_plane, **options, path=str(file))
    assert written["actions"] == ["write %s" % file]
    assert file.read_text() == written["manifest"]
    assert control_plane.kubectl("diff", "--server-side", "--force-conflicts", "-f", str(file)) == ""
    keep = {key: options[key] for key in ("name", "namespace") if key in options}
    gone = run(module, control_plane, **keep, state="absent")
    assert [action.partition(" ")[0] for action in gone["actions"]] == ["delete"] * len(made["actions"])
    assert run(module, control_plane, **keep, state="absent")["changed"] is False


def test_a_template_with_another_content(control_plane: Any, namespace: str) -> None:
    """A claim template of 16 requests is replaced only when that is asked for."""
    options = {"name": "nics", "namespace": namespace, "shape": "BM.GPU.H100.8"}
    run(claim_template, control_plane, **options)
    failed = change_run.run(
        claim_template, kubeconfig=str(control_plane.kubeconfig), **options, nics=["rdma1"]
    )
    assert failed["code"] == "object_immutable"
    assert failed["msg"].startswith(
        "ResourceClaimTemplate %s/nics exists with another content, and the API server lets no one change it."
        % namespace
    )
    replaced = run(claim_template, control_plane, **options, nics=["rdma1"], replace=True)
    assert replaced["actions"] == ["replace ResourceClaimTemplate %s/nics" % namespace]
    assert [entry["name"] for entry in replaced["requests"]] == ["rdma1"]


def test_a_job_with_another_content(control_plane: Any, namespace: str) -> None:
    """What was done before the error is told; then the Job is replaced, and its Service stays as it is."""
    options = {
        "name": "train",
        "namespace": namespace,
        "state": "present",
        "image": "x",
        "target": "ack_lingjun",
        "gpus": 8,
    }
    foreign = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "train", "namespace": namespace}}
    container = {"name": "a", "image": "x"}
    foreign["spec"] = {"template": {"spec": {"restartPolicy": "Never", "containers": [container]}}}
    control_plane.kubectl("create", "-f", "-", stdin=json.dumps(foreign))
    failed = change_run.run(
        workload_template, kubeconfig=str(control_plane.kubeconfig), **options, command=["y"]
    )
    assert (failed["code"], failed["changed"]) == ("object_foreign", True)
    assert failed["actions"] == ["create Service %s/train" % namespace]
    replaced = run(workload_template, control_plane, **options, command=["y"], force=True, replace=True)
    assert replaced["actions"] == ["replace Job %s/train" % namespace]
    again = run(workload_template, control_plane, **options, command=["y"])
    assert again["changed"] is False
