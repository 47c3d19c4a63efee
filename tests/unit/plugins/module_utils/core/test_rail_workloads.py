# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From workloads in an API, or in files, to what is kept of those that ask for rails."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ansible_collections.rdma.k8s.plugins.module_utils.cluster import recorded
from ansible_collections.rdma.k8s.plugins.module_utils.core.cluster_snapshot import (
    ClusterSnapshot,
    RailContainer,
    RailWorkload,
)

RDMA_INJECT = "cni.spidernet.io/rdma-resource-inject"
NETWORKS = "k8s.v1.cni.cncf.io/networks"
PLURALS = (
    *("deployments", "statefulsets", "daemonsets", "jobs", "cronjobs", "mpijobs", "pytorchjobs", "jobsets"),
    *("leaderworkersets", "pods", "namespaces", "sriovnetworknodepolicies"),
)
VERSIONS = {"Deployment": "apps/v1", "Job": "batch/v1", "PyTorchJob": "kubeflow.org/v1"}
VERSIONS["SriovNetworkNodePolicy"] = "sriovnetwork.openshift.io/v1"


def made(
    kind: str, name: str, spec: dict[str, Any], namespace: str = "ml", **metadata: Any
) -> dict[str, Any]:
    return {
        "apiVersion": VERSIONS.get(kind, "v1"),
        "kind": kind,
        "metadata": {"name": name, "namespace": namespace, **metadata},
        "spec": spec,
    }


def pods(limits: dict[str, Any], annotations: dict[str, str]) -> dict[str, Any]:
    """A pod template with one container and one init container."""
    container = {"name": "main", "resources": {"limits": {"cpu": "4", **limits}}}
    init = {"name": "prepare", "resources": {"limits": {"spidernet.io/never": "1"}}}
    return {
        "metadata": {"annotations": {"other/annotation": "x", **annotations}},
        "spec": {"containers": [container], "initContainers": [init]},
    }


POLICY = made("SriovNetworkNodePolicy", "gpu1", {"resourceName": "gpu1sriov"}, "spiderpool")
DEPLOYMENT = made("Deployment", "serve", {"template": pods({"spidernet.io/gpu1sriov": 1}, {NETWORKS: "a/b"})})
PLAIN = made("Deployment", "web", {"template": pods({"nvidia.com/gpu": "1"}, {})})
OTHER_PREFIX = made("Job", "train", {"template": pods({"openshift.io/gpu1sriov": "2"}, {})})
IN_ASKING = made("Job", "asked", {"template": pods({}, {})}, "asking")
TORCH = made(
    "PyTorchJob",
    "big",
    {"pytorchReplicaSpecs": {"Worker": {"replicas": 4, "template": pods({}, {RDMA_INJECT: "rails"})}}},
)
OWNED = made(
    "Pod",
    "serve-x",
    pods({"spidernet.io/gpu1sriov": "1"}, {})["spec"],
    ownerReferences=[{"kind": "ReplicaSet", "controller": True}],
)
ALONE = made("Pod", "alone", pods({"spidernet.io/gpu1sriov": "1"}, {})["spec"])
OF_ANOTHER = made(
    "Pod",
    "task",
    pods({"spidernet.io/gpu1sriov": "1"}, {})["spec"],
    ownerReferences=[{"kind": "VolcanoJob", "controller": True}],
)
SPACES = [
    made("Namespace", "ml", {}, ""),
    made("Namespace", "asking", {}, "", annotations={RDMA_INJECT: "rails", "x": "y"}),
]


def read(directory: Path, *objects: dict[str, Any]) -> ClusterSnapshot:
    for plural in PLURALS:
        (directory / (plural + ".json")).write_text(json.dumps({"kind": "List", "items": []}), "utf-8")
    (directory / "all.json").write_text(json.dumps({"kind": "List", "items": [*SPACES, *objects]}), "utf-8")
    return recorded.read(str(directory), subsets=["workloads"])


def test_workloads_that_ask_for_rails_are_kept_with_what_is_judged(tmp_path: Path) -> None:
    found = read(tmp_path, POLICY, DEPLOYMENT, PLAIN, OTHER_PREFIX, TORCH, IN_ASKING)
    assert found.errors == ()
    assert found.rail_workloads == (
        RailWorkload(
            "Deployment",
            "ml",
            "serve",
            "",
            {NETWORKS: "a/b"},
            {},
            (RailContainer("main", {"spidernet.io/gpu1sriov": "1"}),),
        ),
        RailWorkload(
            "Job", "ml", "train", "", {}, {}, (RailContainer("main", {"openshift.io/gpu1sriov": "2"}),)
        ),
        RailWorkload("Job", "asking", "asked", "", {}, {RDMA_INJECT: "rails"}, (RailContainer("main"),)),
        RailWorkload(
            "PyTorchJob", "ml", "big", "Worker", {RDMA_INJECT: "rails"}, {}, (RailContainer("main"),)
        ),
    )


def test_pods_of_what_is_read_are_left_out_and_others_are_kept(tmp_path: Path) -> None:
    """S162: the webhook has changed a pod already; what its user wrote stands in the controller."""
    found = read(tmp_path, POLICY, OWNED, ALONE, OF_ANOTHER)
    assert [entry.name for entry in found.rail_workloads or ()] == ["alone", "task"]


def test_they_survive_their_json_form(tmp_path: Path) -> None:
    found = read(tmp_path, POLICY, DEPLOYMENT, TORCH)
    for compact in (False, True):
        document = json.loads(json.dumps(found.to_dict(compact)))
        assert ClusterSnapshot.from_dict(document).rail_workloads == found.rail_workloads


def test_a_list_that_is_not_there_makes_them_unknown(tmp_path: Path) -> None:
    (tmp_path / "all.json").write_text(
        json.dumps({"kind": "List", "items": [*SPACES, POLICY, DEPLOYMENT]}), "utf-8"
    )
    found = recorded.read(str(tmp_path), subsets=["workloads"])
    assert found.rail_workloads is None
    assert "statefulsets.apps" in {error.source for error in found.errors}


def test_they_are_read_on_demand_only(tmp_path: Path) -> None:
    assert recorded.read(str(tmp_path / read_all(tmp_path))).rail_workloads is None


def read_all(directory: Path) -> str:
    read(directory, POLICY, DEPLOYMENT)
    return "."
