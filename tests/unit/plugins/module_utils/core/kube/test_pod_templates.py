# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each kind of workload gives its pod templates, with their place, role and number of pods (A69)."""

from __future__ import annotations

from typing import Any, Optional

import pytest
import yaml

from ansible_collections.rdma.k8s.plugins.module_utils.core.kube import pod_templates

POD = "{containers: [{name: c}]}"

# kind, spec, and what comes of it: (path of the pod's spec, role, number of pods)
CASES: list[tuple[str, str, list[tuple[str, str, Optional[int]]]]] = [
    ("Pod", POD, [("spec", "", 1)]),
    ("Deployment", "{replicas: 3, template: {spec: %s}}" % POD, [("spec.template.spec", "", 3)]),
    ("StatefulSet", "{template: {spec: %s}}" % POD, [("spec.template.spec", "", 1)]),
    ("ReplicaSet", "{replicas: 0, template: {spec: %s}}" % POD, [("spec.template.spec", "", 0)]),
    ("ReplicationController", "{template: {spec: %s}}" % POD, [("spec.template.spec", "", 1)]),
    ("DaemonSet", "{template: {spec: %s}}" % POD, [("spec.template.spec", "", None)]),
    ("Job", "{parallelism: 4, template: {spec: %s}}" % POD, [("spec.template.spec", "", 4)]),
    (
        "Job",
        "{tasks: [{name: master, template: {spec: %s}}, {name: worker, replicas: 7, template: {spec: %s}}]}"
        % (POD, POD),
        [("spec.tasks.0.template.spec", "master", 1), ("spec.tasks.1.template.spec", "worker", 7)],
    ),
    (
        "CronJob",
        "{jobTemplate: {spec: {parallelism: 2, template: {spec: %s}}}}" % POD,
        [("spec.jobTemplate.spec.template.spec", "", 2)],
    ),
    (
        "MPIJob",
        "{mpiReplicaSpecs: {Launcher: {template: {spec: %s}}, Worker: {replicas: 2, template: {spec: %s}}}}"
        % (POD, POD),
        [
            ("spec.mpiReplicaSpecs.Launcher.template.spec", "Launcher", 1),
            ("spec.mpiReplicaSpecs.Worker.template.spec", "Worker", 2),
        ],
    ),
    (
        "PyTorchJob",
        "{pytorchReplicaSpecs: {Master: {template: {spec: %s}}}}" % POD,
        [("spec.pytorchReplicaSpecs.Master.template.spec", "Master", 1)],
    ),
    (
        "TFJob",
        "{tfReplicaSpecs: {PS: {replicas: 2, template: {spec: %s}}}}" % POD,
        [("spec.tfReplicaSpecs.PS.template.spec", "PS", 2)],
    ),
    (
        "JAXJob",
        "{jaxReplicaSpecs: {Worker: {template: {spec: %s}}}}" % POD,
        [("spec.jaxReplicaSpecs.Worker.template.spec", "Worker", 1)],
    ),
    (
        "TrainJob",
        "{runtimeRef: {name: torch}, trainer: {numNodes: 4, image: i}, podTemplateOverrides: "
        "[{targetJobs: [{name: node}], spec: %s}]}" % POD,
        [("spec.trainer", "trainer", 4), ("spec.podTemplateOverrides.0.spec", "node", None)],
    ),
    (
        "TrainJob",
        "{podSpecOverrides: [{targetJobs: [{name: a}, {name: b}], containers: [{name: c}]}]}",
        [("spec.podSpecOverrides.0", "a, b", None)],
    ),
    (
        "ClusterTrainingRuntime",
        "{template: {spec: {replicatedJobs: [{name: node, template: {spec: {parallelism: 2, template: {spec: %s}}}}]}}}"
        % POD,
        [("spec.template.spec.replicatedJobs.0.template.spec.template.spec", "node", 2)],
    ),
    (
        "RayCluster",
        "{headGroupSpec: {template: {spec: %s}}, "
        "workerGroupSpecs: [{groupName: gpu, replicas: 8, template: {spec: %s}}]}" % (POD, POD),
        [
            ("spec.headGroupSpec.template.spec", "head", 1),
            ("spec.workerGroupSpecs.0.template.spec", "gpu", 8),
        ],
    ),
    (
        "RayJob",
        "{rayClusterSpec: {headGroupSpec: {template: {spec: %s}}}, submitterPodTemplate: {spec: %s}}"
        % (POD, POD),
        [
            ("spec.rayClusterSpec.headGroupSpec.template.spec", "head", 1),
            ("spec.submitterPodTemplate.spec", "submitter", 1),
        ],
    ),
    (
        "RayService",
        "{rayClusterConfig: {workerGroupSpecs: [{groupName: gpu, template: {spec: %s}}]}}" % POD,
        [("spec.rayClusterConfig.workerGroupSpecs.0.template.spec", "gpu", 1)],
    ),
    (
        "JobSet",
        "{replicatedJobs: [{name: workers, replicas: 2, template: {spec: {parallelism: 4, template: {spec: %s}}}}]}"
        % POD,
        [("spec.replicatedJobs.0.template.spec.template.spec", "workers", 8)],
    ),
    (
        "LeaderWorkerSet",
        "{replicas: 2, leaderWorkerTemplate: {size: 4, leaderTemplate: {spec: %s}, workerTemplate: {spec: %s}}}"
        % (POD, POD),
        [
            ("spec.leaderWorkerTemplate.leaderTemplate.spec", "leader", 2),
            ("spec.leaderWorkerTemplate.workerTemplate.spec", "worker", 6),
        ],
    ),
    (
        "LeaderWorkerSet",
        "{leaderWorkerTemplate: {size: 4, workerTemplate: {spec: %s}}}" % POD,
        [("spec.leaderWorkerTemplate.workerTemplate.spec", "worker", 4)],
    ),
    ("Service", "{ports: [{port: 1}]}", []),
    # values of a wrong kind carry no pods, and do not stop the reader
    ("Pod", "[]", []),
    ("Job", "{template: text}", []),
    ("Job", "{tasks: [1, {template: {spec: null}}]}", []),
    ("MPIJob", "{mpiReplicaSpecs: [], otherReplicaSpecs: {Worker: 3}}", []),
    ("RayCluster", "{workerGroupSpecs: {a: 1}}", []),
    (
        "JobSet",
        "{replicatedJobs: [{replicas: many, template: {spec: {template: {spec: %s}}}}]}" % POD,
        [("spec.replicatedJobs.0.template.spec.template.spec", "", None)],
    ),
]


def at(content: Any, path: tuple[Any, ...]) -> Any:
    for part in path:
        content = content[part]
    return content


@pytest.mark.parametrize(
    ("kind", "spec", "expected"), CASES, ids=["%s-%d" % (case[0], at_) for at_, case in enumerate(CASES)]
)
def test_templates_of_a_kind(kind: str, spec: str, expected: list[tuple[str, str, Optional[int]]]) -> None:
    content = {"kind": kind, "metadata": {"name": "x"}, "spec": yaml.safe_load(spec)}
    found = pod_templates.templates(content)
    assert [(".".join(map(str, entry.path)), entry.role, entry.replicas) for entry in found] == expected
    for entry in found:
        assert [container.name for container in entry.containers] == [
            "node" if entry.role == "trainer" else "c"
        ]
        where = entry.containers[0].path
        assert isinstance(at(content, where), dict)


def test_every_kind_has_a_case() -> None:
    alike = {"PodTemplate", "XGBoostJob", "PaddleJob", "MXJob", "TrainingRuntime"}
    assert {case[0] for case in CASES} | alike >= pod_templates.POD_KINDS


def test_the_pod_template_object_has_its_template_at_the_top() -> None:
    found = pod_templates.templates({"kind": "PodTemplate", "template": {"spec": {"containers": []}}})
    assert [entry.path for entry in found] == [("template", "spec")]


def test_containers_have_their_roles_in_the_order_of_their_start() -> None:
    spec = {
        "containers": [{"name": "main"}, "no container"],
        "initContainers": [{"name": "first"}, {"name": "beside", "restartPolicy": "Always"}],
        "ephemeralContainers": [{"name": "look"}],
    }
    (found,) = pod_templates.templates({"kind": "Pod", "spec": spec})
    assert [(entry.name, entry.role, entry.lasting) for entry in found.containers] == [
        ("first", "init", False),
        ("beside", "sidecar", True),
        ("main", "main", True),
        ("look", "ephemeral", False),
    ]
    assert found.containers[1].path == ("spec", "initContainers", 1)


def test_metadata_of_the_pods_stands_beside_their_spec() -> None:
    content = {
        "kind": "Job",
        "metadata": {"annotations": {"a": "of the job"}},
        "spec": {"template": {"metadata": {"annotations": {"a": "of the pods"}}, "spec": {}}},
    }
    (found,) = pod_templates.templates(content)
    assert found.metadata == {"annotations": {"a": "of the pods"}}
    assert found.metadata_path == ("spec", "template", "metadata")


def test_a_trainer_only_adds_to_its_runtime() -> None:
    content = {
        "kind": "TrainJob",
        "spec": {
            "trainer": {"env": [{"name": "A", "value": "1"}], "resourcesPerNode": {"limits": {"x/y": 1}}}
        },
    }
    (found,) = pod_templates.templates(content)
    assert found.partial
    (container,) = found.containers
    assert container.spec["resources"] == {"limits": {"x/y": 1}}
    assert container.path == ("spec", "trainer")
