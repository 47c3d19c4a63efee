# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Jobs of operators before an API server that has the operators' own definitions."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from typing import Any

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.cluster import objects
from ansible_collections.rdma.k8s.plugins.module_utils.cluster.client import Cluster, connect
from ansible_collections.rdma.k8s.plugins.module_utils.core.workloads import render, wish
from ansible_collections.rdma.k8s.tests.support.outcome import error_of

TRAINING = "github.com/kubeflow/training-operator"
MPI = (
    "github.com/kubeflow/mpi-operator",
    "v0.6.0",
    "h1:RzzG03oyQIiHe/SH2k19N+Hp4QkxEsG2l9G1T7US+ys=",
    "manifests/base/kubeflow.org_mpijobs.yaml",
)
PYTORCH = (
    TRAINING,
    "v1.9.3",
    "h1:aaSHqskOtCY8Dn8sVd+l9p5XAczW6O0nYMPjVLAw/lc=",
    "manifests/base/crds/kubeflow.org_pytorchjobs.yaml",
)
OLD_PYTORCH = (TRAINING, "v1.8.1", "h1:mVvoBSCInbMBX0gGSn4+Ihj3ycwoLO1iEAw+0qPhQfc=", PYTORCH[3])

NETWORKS = [wish.Network("gpu%d" % rail, "spidernet.io/gpu%d" % rail, "spiderpool") for rail in range(8)]
TARGETS: list[dict[str, Any]] = [
    {"target": wish.OKE, "claim_template": "nics", "gpus": 8},
    {"target": wish.SPIDERPOOL, "networks": NETWORKS, "gpus": 8},
    {"target": wish.ACK, "gpus": 8},
    {"target": wish.ACK, "gpus": 8, "host_network": False},
]


@contextlib.contextmanager
def defined(control_plane: Any, kind: str, definition: tuple[str, str, str, str]) -> Iterator[Cluster]:
    """Calls to an API server that has a definition; it has it no more afterwards."""
    module, version, checksum, path = definition
    served = render.API_VERSIONS[kind]
    file = control_plane.cluster.programs.go_module(module, version, checksum) / path
    control_plane.kubectl("apply", "--server-side", "-f", str(file))
    try:
        plural = file.stem.partition("_")[2]
        end = time.monotonic() + 60
        while not connect(str(control_plane.kubeconfig)).serves(served, plural):
            assert time.monotonic() < end, "%s of %s are not served" % (plural, served)
            time.sleep(0.3)
        yield connect(str(control_plane.kubeconfig))
    finally:
        control_plane.kubectl("delete", "-f", str(file), "--timeout=60s")


def workload(kind: str, more: dict[str, Any]) -> list[dict[str, Any]]:
    """The objects of a job."""
    return render.workload(wish.WorkloadWish(name="train", image="x", command=["y"], kind=kind, **more))


@pytest.mark.parametrize(("kind", "definition"), [("MPIJob", MPI), ("PyTorchJob", PYTORCH)])
def test_the_operator_knows_every_field(control_plane: Any, kind: str, definition: Any) -> None:
    """Strict validation takes the job of each target and mode."""
    with defined(control_plane, kind, definition) as cluster:
        for more in TARGETS:
            (outcome,) = objects.present(cluster, workload(kind, more), dry_run=True)
            assert outcome.action == "create"


def test_a_training_operator_that_knows_no_claim_template(control_plane: Any) -> None:
    """Before 1.9 its definition would drop the claim of the pods without a word; here it is refused."""
    with defined(control_plane, "PyTorchJob", OLD_PYTORCH) as cluster:
        error = error_of(objects.present, cluster, workload("PyTorchJob", TARGETS[0]), dry_run=True)
        assert "resourceClaimTemplateName: field not declared in schema" in error.message
        assert objects.present(cluster, workload("PyTorchJob", TARGETS[1]), dry_run=True)
