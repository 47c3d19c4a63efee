# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Workloads over several nodes: Job, MPIJob, PyTorchJob. Private to rdma.k8s: it may change with any release."""

from __future__ import annotations

from typing import Any

from ..oke.claims import LABELS
from . import pods
from .nccl import environment, socket_interface
from .wish import JOB, MPI, WorkloadWish, check

API_VERSIONS = {"Job": "batch/v1", "MPIJob": "kubeflow.org/v2beta1", "PyTorchJob": "kubeflow.org/v1"}
PORT = "29500"
SSH_PORT = "2222"
"""On the network of the node, where the node's own SSH has the usual one."""

_INDEX = "metadata.annotations['batch.kubernetes.io/job-completion-index']"


def workload(wish: WorkloadWish) -> list[dict[str, Any]]:
    """The objects of a workload, in the order in which they are made.

    :raises RdmaError: see :func:`.wish.check`.
    """
    check(wish)
    if wish.kind == JOB:
        return [_service(wish), _job(wish)]
    return [_mpi_job(wish) if wish.kind == MPI else _pytorch_job(wish)]


def named_objects(kind: str, name: str, namespace: str) -> list[dict[str, Any]]:
    """The objects of a workload, with nothing but what names them."""
    found = [_head(kind, API_VERSIONS[kind], name, namespace)]
    return [_head("Service", "v1", name, namespace), *found] if kind == JOB else found


def _head(kind: str, api_version: str, name: str, namespace: str) -> dict[str, Any]:
    metadata = {"name": name, "namespace": namespace, "labels": dict(LABELS)}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata}


def _service(wish: WorkloadWish) -> dict[str, Any]:
    """No address of its own: it gives each pod a name, also before the pod is ready."""
    spec = {
        "clusterIP": "None",
        "publishNotReadyAddresses": True,
        "selector": {"batch.kubernetes.io/job-name": wish.name},
    }
    return {**_head("Service", "v1", wish.name, wish.namespace), "spec": spec}


def _job(wish: WorkloadWish) -> dict[str, Any]:
    variables: list[dict[str, Any]] = [
        *pods.named({"MASTER_ADDR": "%s-0.%s" % (wish.name, wish.name), "MASTER_PORT": PORT}),
        {"name": "NODE_RANK", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": _INDEX}}},
        *pods.named({"NNODES": str(wish.nodes), "GPUS_PER_NODE": str(wish.gpu_count)}),
    ]
    template = pods.template(
        wish, "main", wish.command, variables, restartPolicy="Never", subdomain=wish.name
    )
    spec = {
        "completions": wish.nodes,
        "parallelism": wish.nodes,
        "completionMode": "Indexed",
        "backoffLimit": 0,
        "template": template,
    }
    return {**_head(JOB, API_VERSIONS[JOB], wish.name, wish.namespace), "spec": spec}


def _mpi_job(wish: WorkloadWish) -> dict[str, Any]:
    words = ["mpirun", "--allow-run-as-root", "-np", str(wish.nodes * max(wish.gpu_count, 1))]
    if wish.on_host_network:
        words += ["--mca", "plm_rsh_args", "-p %s" % SSH_PORT]
    else:
        # The interfaces of the RDMA NICs are no way for Open MPI's own connections.
        interface = socket_interface(wish)
        words += ["--mca", "oob_tcp_if_include", interface, "--mca", "btl_tcp_if_include", interface]
    for name, value in environment(wish).items():
        words += ["-x", "%s=%s" % (name, value)]
    worker = ["/usr/sbin/sshd", "-De", "-p", SSH_PORT] if wish.on_host_network else []
    replicas = {
        "Launcher": {
            "replicas": 1,
            "restartPolicy": "Never",
            "template": pods.launcher(wish, words + list(wish.command)),
        },
        "Worker": {
            "replicas": wish.nodes,
            "restartPolicy": "Never",
            "template": pods.template(wish, "worker", worker),
        },
    }
    spec = {
        "slotsPerWorker": max(wish.gpu_count, 1),
        "runPolicy": {"cleanPodPolicy": "Running", "backoffLimit": 0},
        "mpiReplicaSpecs": replicas,
    }
    return {**_head(wish.kind, API_VERSIONS[wish.kind], wish.name, wish.namespace), "spec": spec}


def _pytorch_job(wish: WorkloadWish) -> dict[str, Any]:
    def replica(count: int) -> dict[str, Any]:
        # The operator knows its container by this name.
        return {
            "replicas": count,
            "restartPolicy": "Never",
            "template": pods.template(wish, "pytorch", wish.command),
        }

    replicas = {"Master": replica(1)}
    if wish.nodes > 1:
        replicas["Worker"] = replica(wish.nodes - 1)
    spec = {
        "nprocPerNode": str(max(wish.gpu_count, 1)),
        "runPolicy": {"cleanPodPolicy": "Running", "backoffLimit": 0},
        "pytorchReplicaSpecs": replicas,
    }
    return {**_head(wish.kind, API_VERSIONS[wish.kind], wish.name, wish.namespace), "spec": spec}
