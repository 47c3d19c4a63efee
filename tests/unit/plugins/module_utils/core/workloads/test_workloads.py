# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Workloads that we write: what they hold, and what our own lint says of them."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.core.kube import documents, manifest
from ansible_collections.rdma.k8s.plugins.module_utils.core.lint import engine
from ansible_collections.rdma.k8s.plugins.module_utils.core.oke import claim_nics, claims, shapes
from ansible_collections.rdma.k8s.plugins.module_utils.core.workloads import nccl, render, wish
from ansible_collections.rdma.k8s.plugins.module_utils.core.workloads.wish import Network, WorkloadWish
from ansible_collections.rdma.k8s.tests.support.outcome import error_of

NETWORKS = [
    Network("gpu%d-sriov" % rail, "spidernet.io/gpu%dsriov" % rail, "spiderpool") for rail in range(1, 9)
]
SHAPES = [entry.name for entry in shapes.DEFAULT_TABLE]


def shape(name: str) -> shapes.Shape:
    """An entry of the table."""
    found = shapes.lookup(name, shapes.DEFAULT_TABLE)
    assert found is not None
    return found


def oke(on: str = "BM.GPU.H100.8", **more: Any) -> WorkloadWish:
    """A workload on OKE."""
    return made(target=wish.OKE, **{"shape": shape(on), "claim_template": "all-nics", **more})


def spiderpool(**more: Any) -> WorkloadWish:
    """A workload with a VF on each of eight rails."""
    return made(target=wish.SPIDERPOOL, **{"networks": NETWORKS, "gpus": 8, **more})


def ack(**more: Any) -> WorkloadWish:
    """A workload on Lingjun nodes."""
    return made(target=wish.ACK, **{"gpus": 8, **more})


def made(**more: Any) -> WorkloadWish:
    """A workload."""
    return WorkloadWish(**{"name": "train", "image": "example.org/train:1", "command": ["train"], **more})


def job_of(workload: WorkloadWish) -> dict[str, Any]:
    """The last object, which is the job."""
    return render.workload(workload)[-1]


def pod_of(workload: WorkloadWish) -> dict[str, Any]:
    """The specification of a pod with GPUs."""
    spec = job_of(workload)["spec"]
    if workload.kind == wish.JOB:
        found = spec["template"]["spec"]
    elif workload.kind == wish.MPI:
        found = spec["mpiReplicaSpecs"]["Worker"]["template"]["spec"]
    else:
        found = spec["pytorchReplicaSpecs"]["Master"]["template"]["spec"]
    assert isinstance(found, dict)
    return found


def container_of(workload: WorkloadWish) -> dict[str, Any]:
    """The container with GPUs."""
    (found,) = pod_of(workload)["containers"]
    assert isinstance(found, dict)
    return found


# --- the lint

COMBINATIONS = [
    *(
        ("oke %s %s" % (name, kind), oke(name, kind=kind, **more), more)
        for name, kind in itertools.product(SHAPES, wish.KINDS)
        for more in ({}, {"gpus_in_claim": True})
    ),
    *(("spiderpool " + kind, spiderpool(kind=kind), {}) for kind in wish.KINDS),
    *(
        ("ack %s host=%s" % (kind, host), ack(kind=kind, host_network=host), {})
        for kind, host in itertools.product(wish.KINDS, (True, False))
    ),
    ("one node", oke(kind=wish.PYTORCH, nodes=1), {}),
    ("limits", oke(cpu="100", memory="512Gi"), {}),
    ("some NICs", oke(hcas=["mlx5_0", "mlx5_1"]), {}),
]


def around(workload: WorkloadWish) -> list[dict[str, Any]]:
    """The objects to which a workload refers."""
    if workload.target == wish.OKE and workload.shape is not None:
        nics = claim_nics.of_shape(workload.shape)
        gpus = min(workload.gpu_count, len(nics)) if workload.gpus_in_claim else 0
        asked = claims.ClaimWish(
            "all-nics",
            nics,
            profile=workload.shape.fabric == shapes.IPV4,
            gpus=gpus,
            align="pcie_root" if gpus else "",
        )
        gpu_class = claims.device_class("gpu.nvidia.com")
        gpu_class["spec"] = {"selectors": [{"cel": {"expression": 'device.driver == "gpu.nvidia.com"'}}]}
        return [claims.device_class("rdma-nic"), gpu_class, claims.claim(asked)]
    return [
        {
            "apiVersion": "k8s.cni.cncf.io/v1",
            "kind": "NetworkAttachmentDefinition",
            "metadata": {
                "name": network.name,
                "namespace": network.namespace,
                "annotations": {"k8s.v1.cni.cncf.io/resourceName": network.resource},
            },
            "spec": {},
        }
        for network in workload.networks
    ]


@pytest.mark.parametrize(
    ("workload", "more"), [entry[1:] for entry in COMBINATIONS], ids=[c[0] for c in COMBINATIONS]
)
def test_what_the_lint_says(workload: WorkloadWish, more: dict[str, Any]) -> None:
    """Written, read again and judged with all that belongs to it, each combination passes every rule."""
    text = manifest.text([*around(workload), *render.workload(workload)])
    found = engine.lint(
        documents.parse(text, "x.yaml"),
        complete=True,
        shape=workload.shape.name if workload.shape else "",
        options={"non_host_network": workload.target == wish.ACK and not workload.host_network},
    )
    wrong = [(entry.rule, entry.status, entry.place, entry.message) for entry in found]
    assert [entry for entry in wrong if entry[1] not in ("pass", "skip")] == []
    passed = {entry.rule for entry in found if entry.status == "pass"}
    expected = {"RDMA-WL-012"} if workload.gpu_count and not workload.gpus_in_claim else set()
    if workload.target == wish.ACK:
        expected |= {"RDMA-ACK-004", "RDMA-ACK-005"}
    else:
        expected |= {"RDMA-WL-009", "RDMA-WL-010", "RDMA-WL-011", "RDMA-WL-016"}
    if workload.target == wish.OKE:
        expected |= {"RDMA-WL-003", "RDMA-WL-013"}
    if workload.target == wish.SPIDERPOOL:
        expected |= {"RDMA-WL-006", "RDMA-WL-007", "RDMA-WL-008"}
    assert expected <= passed


# --- NCCL


@pytest.mark.parametrize(
    ("workload", "expected"),
    [
        (
            oke("BM.GPU.GB200-v3.4"),
            {
                "NCCL_IB_HCA": "=mlx5_0,mlx5_1,mlx5_2,mlx5_3,mlx5_5,mlx5_6,mlx5_7,mlx5_8",
                "NCCL_IB_ADDR_FAMILY": "AF_INET6",
                "NCCL_IB_TC": "41",
                "NCCL_IB_SL": "0",
                "NCCL_IB_TIMEOUT": "22",
                "NCCL_IB_DATA_DIRECT": "0",
                "NCCL_SOCKET_IFNAME": "eth0",
            },
        ),
        (
            oke("BM.GPU.GB200.4"),
            {
                "NCCL_IB_HCA": "=mlx5_0,mlx5_1,mlx5_3,mlx5_4",
                "NCCL_IB_TIMEOUT": "22",
                "NCCL_SOCKET_IFNAME": "eth0",
            },
        ),
        (
            oke("BM.GPU.A100-v2.8", hcas=[]),
            {
                "NCCL_IB_TC": "41",
                "NCCL_IB_SL": "0",
                "NCCL_IB_TIMEOUT": "22",
                "NCCL_IB_QPS_PER_CONNECTION": "4",
                "NCCL_SOCKET_IFNAME": "eth0",
            },
        ),
        (
            oke("BM.HPC2.36", hcas=["mlx5_1"], environment={"NCCL_DEBUG": "INFO", "NCCL_IB_TC": 105}),
            {
                "NCCL_IB_HCA": "=mlx5_1",
                "NCCL_IB_SL": "0",
                "NCCL_IB_TIMEOUT": "22",
                "NCCL_SOCKET_IFNAME": "eth0",
                "NCCL_DEBUG": "INFO",
                "NCCL_IB_TC": "105",
            },
        ),
        (spiderpool(socket_interface="ens3"), {"NCCL_SOCKET_IFNAME": "ens3"}),
        (
            ack(),
            {
                "NCCL_IB_HCA": "mlx5",
                "NCCL_IB_TC": "136",
                "NCCL_IB_SL": "5",
                "NCCL_IB_TIMEOUT": "22",
                "NCCL_IB_QPS_PER_CONNECTION": "8",
                "NCCL_SOCKET_IFNAME": "bond0",
            },
        ),
    ],
)
def test_the_nccl_environment(workload: WorkloadWish, expected: dict[str, str]) -> None:
    """F91, F135, F136 on OKE; A80, A82 on ACK; in a fixed order, the user's last."""
    found = nccl.environment(workload)
    assert found == expected
    assert list(found) == list(expected)


def test_a_pod_address_on_ack() -> None:
    """A85: without the network of the node the fabric is IPv6, and the interface that of the pod (A82)."""
    found = nccl.environment(ack(host_network=False))
    assert (found["NCCL_IB_ADDR_FAMILY"], found["NCCL_SOCKET_IFNAME"]) == ("AF_INET6", "eth0")


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("kind", wish.KINDS)
def test_no_gid_index(name: str, kind: str) -> None:
    """F134."""
    assert "GID_INDEX" not in manifest.text(render.workload(oke(name, kind=kind)))


# --- pods


def test_a_pod_on_oke() -> None:
    """The claim of the pod is used by its container; no quantity of NICs; GPUs as request and limit."""
    pod, container = pod_of(oke()), container_of(oke())
    assert pod["resourceClaims"] == [{"name": "rdma", "resourceClaimTemplateName": "all-nics"}]
    amounts = {"nvidia.com/gpu": "8"}
    assert container["resources"] == {"requests": amounts, "limits": amounts, "claims": [{"name": "rdma"}]}
    assert pod["nodeSelector"] == {"node.kubernetes.io/instance-type": "BM.GPU.H100.8"}
    assert container["securityContext"] == {"capabilities": {"add": ["IPC_LOCK"]}}


def test_gpus() -> None:
    """Those of the shape, of its vendor; none as a resource when the claim has them, or when there are none."""
    assert container_of(oke("BM.GPU.MI300X.8"))["resources"]["limits"] == {"amd.com/gpu": "8"}
    assert container_of(oke("BM.GPU.GB200.4"))["resources"]["limits"] == {"nvidia.com/gpu": "4"}
    assert container_of(oke(gpus=2, gpu_resource="a.b/c"))["resources"]["limits"] == {"a.b/c": "2"}
    assert "nodeSelector" not in pod_of(oke(shape=None, gpus=2))
    for workload in (oke(gpus_in_claim=True), oke(gpus=0), oke("BM.Optimized3.36"), oke("BM.HPC2.36")):
        assert container_of(workload)["resources"] == {"claims": [{"name": "rdma"}]}


def test_a_pod_on_spiderpool() -> None:
    """A list with commas (S162), and for each resource as many VFs as networks use it."""
    two = [
        Network("a", "spidernet.io/x"),
        Network("b", "spidernet.io/x", "n"),
        Network("c", "spidernet.io/y"),
    ]
    workload = spiderpool(networks=two, namespace="train")
    template = job_of(workload)["spec"]["template"]
    assert template["metadata"]["annotations"] == {"k8s.v1.cni.cncf.io/networks": "train/a,n/b,train/c"}
    assert container_of(workload)["resources"]["limits"] == {
        "nvidia.com/gpu": "8",
        "spidernet.io/x": "2",
        "spidernet.io/y": "1",
    }


@pytest.mark.parametrize("host", [True, False])
def test_a_pod_on_ack(host: bool) -> None:
    """A8, A13, A70, A109."""
    workload = ack(host_network=host, rdma_resource="rdma/nic", rdma_quantity=4, tolerations=[{"key": "a"}])
    pod, container = pod_of(workload), container_of(workload)
    assert pod.get("hostNetwork", False) is host
    assert pod.get("dnsPolicy") == ("ClusterFirstWithHostNet" if host else None)
    assert pod["tolerations"] == [
        {"key": "node-role.alibabacloud.com/lingjun", "operator": "Exists", "effect": "NoSchedule"},
        {"key": "a"},
    ]
    assert pod["nodeSelector"] == {"alibabacloud.com/lingjun-worker": "true"}
    assert container["resources"]["limits"]["rdma/nic"] == "4"
    assert container["resources"]["limits"] == container["resources"]["requests"]
    assert container["securityContext"]["capabilities"]["add"] == ["IPC_LOCK", "SYS_RESOURCE"]


def test_the_toleration_of_lingjun_nodes_once() -> None:
    """A user who gives it too does not get it twice (A13)."""
    given = {"key": "node-role.alibabacloud.com/lingjun", "operator": "Exists", "effect": "NoSchedule"}
    assert pod_of(ack(tolerations=[given]))["tolerations"] == [given]


@pytest.mark.parametrize("workload", [oke(), spiderpool(), ack()])
@pytest.mark.parametrize("kind", wish.KINDS)
def test_what_all_pods_have(workload: WorkloadWish, kind: str) -> None:
    """Shared memory, time to end, a name that the operator knows, nothing privileged."""
    workload = WorkloadWish(**{**vars(workload), "kind": kind, "shm": "8Gi", "cpu": "4", "memory": "64Gi"})
    pod, container = pod_of(workload), container_of(workload)
    assert pod["volumes"] == [{"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "8Gi"}}]
    assert container["volumeMounts"] == [{"name": "shm", "mountPath": "/dev/shm"}]
    assert pod["terminationGracePeriodSeconds"] == 60
    assert container["name"] == {"Job": "main", "MPIJob": "worker", "PyTorchJob": "pytorch"}[kind]
    assert (container["resources"]["requests"]["cpu"], container["resources"]["limits"]["memory"]) == (
        "4",
        "64Gi",
    )
    assert "privileged" not in manifest.text(render.workload(workload))


# --- kinds


def test_a_job() -> None:
    """Indexed, as many pods as nodes, names by a headless Service, ranks by the index."""
    service, job = render.workload(oke(nodes=4, namespace="a"))
    assert (service["metadata"]["name"], service["metadata"]["namespace"]) == ("train", "a")
    assert service["spec"] == {
        "clusterIP": "None",
        "publishNotReadyAddresses": True,
        "selector": {"batch.kubernetes.io/job-name": "train"},
    }
    spec = job["spec"]
    assert (spec["completions"], spec["parallelism"], spec["completionMode"]) == (4, 4, "Indexed")
    assert spec["template"]["spec"]["subdomain"] == "train"
    found = {entry["name"]: entry.get("value") for entry in container_of(oke(nodes=4))["env"]}
    assert (found["MASTER_ADDR"], found["NNODES"], found["GPUS_PER_NODE"]) == ("train-0.train", "4", "8")
    assert found["NODE_RANK"] is None


def test_an_mpi_job() -> None:
    """All ranks get the variables, by their values, and Open MPI stays off the RDMA NICs."""
    job = job_of(oke("BM.GPU.H200.8", kind="MPIJob", nodes=3, environment={"A": "b c"}))
    replicas = job["spec"]["mpiReplicaSpecs"]
    (launcher,) = replicas["Launcher"]["template"]["spec"]["containers"]
    words = launcher["command"]
    assert words[:4] == ["mpirun", "--allow-run-as-root", "-np", "24"]
    assert words[-3:] == ["-x", "A=b c", "train"]
    assert words[4:7] == ["--mca", "oob_tcp_if_include", "eth0"]
    assert (replicas["Worker"]["replicas"], job["spec"]["slotsPerWorker"]) == (3, 8)
    assert "command" not in replicas["Worker"]["template"]["spec"]["containers"][0]
    assert "resources" not in launcher


def test_an_mpi_job_on_the_network_of_the_node() -> None:
    """The port of SSH is not that of the node."""
    replicas = job_of(ack(kind="MPIJob"))["spec"]["mpiReplicaSpecs"]
    words = replicas["Launcher"]["template"]["spec"]["containers"][0]["command"]
    assert words[4:7] == ["--mca", "plm_rsh_args", "-p 2222"]
    assert replicas["Worker"]["template"]["spec"]["containers"][0]["command"][-2:] == ["-p", "2222"]
    assert "hostNetwork" not in replicas["Launcher"]["template"]["spec"]


@pytest.mark.parametrize(("nodes", "workers"), [(1, None), (4, 3)])
def test_a_pytorch_job(nodes: int, workers: Any) -> None:
    """The master is one of the nodes."""
    spec = job_of(oke(kind="PyTorchJob", nodes=nodes))["spec"]
    replicas = spec["pytorchReplicaSpecs"]
    assert replicas["Master"]["replicas"] == 1
    assert replicas.get("Worker", {}).get("replicas") == workers
    assert spec["nprocPerNode"] == "8"


@pytest.mark.parametrize("kind", wish.KINDS)
def test_the_objects_by_name(kind: str) -> None:
    """What removes a workload names just the objects that making it makes."""
    rendered = render.workload(oke(kind=kind, namespace="a"))
    keys = ("apiVersion", "kind", "metadata")
    assert render.named_objects(kind, "train", "a") == [
        {key: entry[key] for key in keys} for entry in rendered
    ]


# --- what cannot be


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("BM.GPU4.8", 8),
        ("BM.GPU.A100-v2.8", 8),
        ("BM.GPU.MI355X-v1.8", 8),
        ("BM.GPU.GB200-v3.4", 4),
        ("VM.GPU.A10.2", 2),
        ("BM.HPC2.36", 0),
        ("BM.Optimized3.36", 0),
        ("BM.GPU.NEW", None),
        ("BM.GPU.NEW.*", None),
        ("LAB.SIM.4", None),
    ],
)
def test_the_gpus_of_a_shape(name: str, count: Any) -> None:
    """F128: the number at the end of the name of a GPU shape; where it cannot be told it must be given."""
    found = WorkloadWish(**{**vars(oke()), "shape": shapes.Shape(name, 8)})
    assert found.shape_gpus == count
    if count is None:
        error = error_of(render.workload, found)
        assert (error.code, error.details["target"]) == ("workload_incomplete", wish.OKE)
        assert error.message == (
            "Job train needs gpus: the name of shape %s does not tell how many a node has." % name
        )
        return
    environment = {entry["name"]: entry.get("value") for entry in container_of(found)["env"]}
    assert environment["GPUS_PER_NODE"] == str(count)
    error = error_of(render.workload, WorkloadWish(**{**vars(found), "gpus": count + 1}))
    assert error.code == "workload_number"
    assert error.message == "gpus of Job train is %d, expected 0 to %d." % (count + 1, count)


@pytest.mark.parametrize("make", [spiderpool, ack])
def test_gpus_without_a_shape(make: Any) -> None:
    """Nothing tells them, so they are asked for."""
    error = error_of(render.workload, make(gpus=None))
    assert error.code == "workload_incomplete"
    assert error.message == "Job train needs gpus: without a shape nothing tells how many a node has."
    assert render.workload(make(gpus=0))


@pytest.mark.parametrize("name", ["UCX_IB_GID_INDEX", "NVSHMEM_IB_GID_INDEX", "NCCL_IB_GID_INDEX"])
def test_what_the_lint_fails_is_refused(name: str) -> None:
    """F134: each variable by which RDMA-WL-001 knows a fixed index."""
    error = error_of(render.workload, oke(environment={name: 3}))
    assert (error.code, error.details["variable"]) == ("workload_environment", name)
    text = manifest.text([*around(oke()), *render.workload(oke(environment={"CHANGED": 3}))])
    found = engine.lint(documents.parse(text.replace("CHANGED", name), "x.yaml"), complete=True)
    assert "fail" in [entry.status for entry in found if entry.rule == "RDMA-WL-001"]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *((name, "a") for name in ("", "A=B", "1A", "A B", "ä", ".", "..", "..A", "A\n", 1)),
        *(("A", value) for value in (None, True, False, 1.5, ["a"], {"a": "b"})),
    ],
)
def test_variables_that_cannot_be(name: Any, value: Any) -> None:
    """Neither a name that the API refuses nor a value that is no text is guessed at."""
    error = error_of(render.workload, oke(environment={name: value}))
    assert error.code == "workload_environment"
    assert error.message.startswith("The environment of Job train has ")


def test_variables_as_they_are_given() -> None:
    """Texts stay, whole numbers become texts."""
    given = {"_a.b-C": "true", "A": "", "B": 0}
    found = nccl.environment(oke(environment=given))
    assert {name: found[name] for name in given} == {"_a.b-C": "true", "A": "", "B": "0"}
    assert render.workload(oke(environment=given))


@pytest.mark.parametrize(
    ("make", "more", "option"),
    [
        *((oke, {"cpu": cpu}, "cpu") for cpu in ("many", "0", "-1", "1K")),
        *(
            (oke, {"gpu_resource": name}, "gpu_resource")
            for name in ("gpu", "a.b/", "/gpu", "a/b/c", "A.b/c", "a.b/" + "c" * 64, "a" * 245 + "/b")
        ),
        (ack, {"rdma_resource": "hca"}, "rdma_resource"),
        (spiderpool, {"networks": [Network("a", "gpu")]}, "resource of network a"),
        (spiderpool, {"gpu_resource": 1}, "gpu_resource"),
        (spiderpool, {"node_selector": {1: "a"}}, "node_selector"),
        *(
            (oke, {"node_selector": selector}, "node_selector")
            for selector in ({"a b": "c"}, {"": "c"}, {"a": True}, {"a": None}, {"a": "b c"}, {"a": "b" * 64})
        ),
        (oke, {"shape": shapes.Shape("BM.GPU.*", 8), "gpus": 8}, "node_selector"),
        *(
            (oke, {"tolerations": [toleration]}, "tolerations")
            for toleration in (
                {},
                {"foo": 1},
                {"operator": "Equal"},
                {"key": "a", "operator": "Like"},
                {"key": "a b", "operator": "Exists"},
                {"key": "a", "operator": "Exists", "value": "b"},
                {"key": "a", "value": "b c"},
                {"key": "a", "value": True},
                {"key": "a", "effect": "No"},
                {"key": "a", "effect": "NoExecute", "tolerationSeconds": "5"},
                {"key": "a", "effect": "NoSchedule", "tolerationSeconds": 5},
            )
        ),
    ],
)
def test_what_the_api_would_refuse(make: Any, more: dict[str, Any], option: str) -> None:
    """Each is refused here, and the message names the option."""
    error = error_of(render.workload, WorkloadWish(**{**vars(make()), **more}))
    assert (error.code, error.details["option"]) == ("workload_malformed", option)
    assert error.message.startswith("Job train cannot be made: %s " % option)


@pytest.mark.parametrize(
    "toleration",
    [
        {"operator": "Exists"},
        {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"},
        {"key": "a", "value": "b"},
        {"key": "a", "operator": "Equal", "value": "", "effect": "NoExecute", "tolerationSeconds": 5},
    ],
)
def test_what_the_api_takes(toleration: dict[str, Any]) -> None:
    """Rendered as it is given."""
    workload = oke(tolerations=[toleration], node_selector={"a.b/c": "d", "e": ""}, cpu="500m")
    assert pod_of(workload)["tolerations"] == [toleration]
    assert pod_of(workload)["nodeSelector"]["a.b/c"] == "d"


@pytest.mark.parametrize(
    ("make", "more", "code"),
    [
        (oke, {"claim_template": ""}, "workload_incomplete"),
        (spiderpool, {"networks": []}, "workload_incomplete"),
        (ack, {"command": []}, "workload_incomplete"),
        (ack, {"image": ""}, "workload_incomplete"),
        (oke, {"nodes": 0}, "workload_number"),
        (oke, {"gpus": -1}, "workload_number"),
        (oke, {"grace_seconds": 0}, "workload_number"),
        (ack, {"rdma_quantity": 0}, "workload_number"),
        (oke, {"environment": {"NCCL_IB_GID_INDEX": "3"}}, "workload_environment"),
        (ack, {"host_network": False, "environment": {"NCCL_IB_GID_INDEX": "3"}}, "workload_environment"),
        (oke, {"hcas": ["mlx5_0", ""]}, "workload_environment"),
        (oke, {"hcas": ["mlx5_0,mlx5_1"]}, "workload_environment"),
        (oke, {"shm": "8GB"}, "workload_shm"),
        (oke, {"shm": "0"}, "workload_shm"),
        (oke, {"shm": "64Gi", "memory": "64G"}, "workload_shm"),
        (oke, {"memory": "much"}, "workload_shm"),
        (oke, {"name": "Train"}, "name_malformed"),
        (oke, {"name": "1train"}, "name_malformed"),
        (oke, {"name": "t" * 62}, "name_malformed"),
        (oke, {"name": "t" * 55, "kind": "MPIJob"}, "name_malformed"),
        (oke, {"namespace": "a.b"}, "name_malformed"),
        (spiderpool, {"networks": [Network("A", "b/c")]}, "name_malformed"),
    ],
)
def test_refused(make: Any, more: dict[str, Any], code: str) -> None:
    """Each is refused before anything is written."""
    workload = WorkloadWish(**{**vars(make()), **more})
    assert error_of(render.workload, workload).code == code


def test_the_longest_names() -> None:
    """A name of a pod has 63 characters at most: one less than the refused ones above."""
    assert render.workload(oke(name="t" * 61))
    assert render.workload(oke(name="t" * 54, kind="MPIJob"))


def test_a_gid_index_on_the_network_of_the_node() -> None:
    """A86: there the index is that of the node, so a user may fix it."""
    assert nccl.environment(ack(environment={"NCCL_IB_GID_INDEX": 3}))["NCCL_IB_GID_INDEX"] == "3"
