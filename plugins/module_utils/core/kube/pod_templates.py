# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Pod templates: what of an object becomes pods. Private to rdma.k8s: it may change with any release."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Callable, Optional

from . import objects

Path = tuple[Any, ...]

MAIN, INIT, SIDECAR, EPHEMERAL = ROLES = ("main", "init", "sidecar", "ephemeral")


@dataclass(frozen=True)
class Container:
    """A container of a pod.

    :param path: where it stands in the object.
    :param role: ``main``; ``init`` (runs to its end before the others); ``sidecar`` (an init container with
        restartPolicy Always, which runs beside the others); ``ephemeral``.
    """

    name: str
    path: Path
    spec: dict[str, Any]
    role: str = MAIN

    @property
    def lasting(self) -> bool:
        """It runs for the life of the pod."""
        return self.role in (MAIN, SIDECAR)


@dataclass(frozen=True)
class PodTemplate:
    """A pod, or a template of pods.

    :param path: where ``spec`` of the pod stands in the object.
    :param role: which part of the object it is (``Worker``, a task, a group); empty when there is only one.
    :param replicas: how many pods come of it, ``None``: not told, or one on each node.
    :param metadata: of the pods.
    :param partial: it only adds to a template that stands elsewhere, so what it lacks may be there.
    """

    path: Path
    spec: dict[str, Any]
    role: str = ""
    replicas: Optional[int] = None
    metadata: dict[str, Any] = field(default_factory=dict)
    partial: bool = False

    @property
    def metadata_path(self) -> Path:
        """Where ``metadata`` of the pods stands."""
        return (*self.path[:-1], "metadata")

    @cached_property
    def containers(self) -> tuple[Container, ...]:
        """All containers, in the order in which they start."""
        return tuple(self._containers())

    def _containers(self) -> Iterator[Container]:
        for key, role in (("initContainers", INIT), ("containers", MAIN), ("ephemeralContainers", EPHEMERAL)):
            for position, entry in objects.entries(self.spec.get(key)):
                actual = SIDECAR if role == INIT and entry.get("restartPolicy") == "Always" else role
                yield Container(objects.text(entry.get("name")), (*self.path, key, position), entry, actual)


def _count(value: Any) -> Optional[int]:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _template(
    holder: dict[str, Any], path: Path, role: str = "", replicas: Any = None, key: str = "template"
) -> Iterator[PodTemplate]:
    """The pod template that ``holder``, which stands at ``path``, has under ``key``."""
    template = objects.mapping(holder, key)
    spec = template.get("spec")
    if isinstance(spec, dict):
        metadata = objects.mapping(template, "metadata")
        yield PodTemplate((*path, key, "spec"), spec, role, _count(replicas), metadata)


def _pod(content: dict[str, Any]) -> Iterator[PodTemplate]:
    spec = content.get("spec")
    if isinstance(spec, dict):
        yield PodTemplate(("spec",), spec, "", 1, objects.mapping(content, "metadata"))


def _pod_template(content: dict[str, Any]) -> Iterator[PodTemplate]:
    yield from _template(content, ())


def _controller(content: dict[str, Any]) -> Iterator[PodTemplate]:
    spec = objects.mapping(content, "spec")
    yield from _template(spec, ("spec",), "", spec.get("replicas", 1))


def _daemon_set(content: dict[str, Any]) -> Iterator[PodTemplate]:
    yield from _template(objects.mapping(content, "spec"), ("spec",))


def _job(content: dict[str, Any]) -> Iterator[PodTemplate]:
    """A Job of Kubernetes, or one of Volcano with its tasks (A69)."""
    spec = objects.mapping(content, "spec")
    if isinstance(spec.get("tasks"), list):
        for position, task in objects.entries(spec["tasks"]):
            name = objects.text(task.get("name"))
            yield from _template(task, ("spec", "tasks", position), name, task.get("replicas", 1))
        return
    yield from _template(spec, ("spec",), "", spec.get("parallelism", 1))


def _cron_job(content: dict[str, Any]) -> Iterator[PodTemplate]:
    spec = objects.mapping(content, "spec", "jobTemplate", "spec")
    yield from _template(spec, ("spec", "jobTemplate", "spec"), "", spec.get("parallelism", 1))


def _replica_specs(content: dict[str, Any]) -> Iterator[PodTemplate]:
    """The jobs of the Kubeflow training operator: ``pytorchReplicaSpecs`` and so on, one template a role."""
    spec = objects.mapping(content, "spec")
    for key, roles in spec.items():
        if isinstance(key, str) and key.endswith("ReplicaSpecs") and isinstance(roles, dict):
            for role, entry in roles.items():
                if isinstance(entry, dict):
                    path = ("spec", key, role)
                    yield from _template(entry, path, str(role), entry.get("replicas", 1))


def _job_set(content: dict[str, Any]) -> Iterator[PodTemplate]:
    yield from _replicated_jobs(objects.mapping(content, "spec"), ("spec",))


def _training_runtime(content: dict[str, Any]) -> Iterator[PodTemplate]:
    """A (Cluster)TrainingRuntime of Kubeflow holds a template of a JobSet."""
    yield from _replicated_jobs(
        objects.mapping(content, "spec", "template", "spec"), ("spec", "template", "spec")
    )


def _replicated_jobs(spec: dict[str, Any], path: Path) -> Iterator[PodTemplate]:
    for position, entry in objects.entries(spec.get("replicatedJobs")):
        job = objects.mapping(entry, "template", "spec")
        jobs, pods = _count(entry.get("replicas", 1)), _count(job.get("parallelism", 1))
        yield from _template(
            job,
            (*path, "replicatedJobs", position, "template", "spec"),
            objects.text(entry.get("name")),
            jobs * pods if jobs is not None and pods is not None else None,
        )


def _train_job(content: dict[str, Any]) -> Iterator[PodTemplate]:
    """A TrainJob of Kubeflow: its runtime holds the template; the job itself adds the trainer, and overrides."""
    spec = objects.mapping(content, "spec")
    trainer = objects.mapping(spec, "trainer")
    if trainer:
        resources = objects.mapping(trainer, "resourcesPerNode")
        pod = {"containers": [{"name": "node", **trainer, "resources": resources}]}
        yield _TrainerTemplate(
            ("spec", "trainer"), pod, "trainer", _count(trainer.get("numNodes")), partial=True
        )
    for key in ("podTemplateOverrides", "podSpecOverrides"):
        for position, entry in objects.entries(spec.get(key)):
            inner = objects.mapping(entry, "spec") if key == "podTemplateOverrides" else entry
            path: Path = ("spec", key, position)
            targets = [objects.text(job.get("name")) for _at, job in objects.entries(entry.get("targetJobs"))]
            yield PodTemplate(
                (*path, "spec") if key == "podTemplateOverrides" else path,
                inner,
                ", ".join(targets),
                metadata=objects.mapping(entry, "metadata"),
                partial=True,
            )


class _TrainerTemplate(PodTemplate):
    """The one container of a trainer stands in the object without a list around it."""

    def _containers(self) -> Iterator[Container]:
        yield Container("node", self.path, self.spec["containers"][0])


def _ray(*keys: str) -> Callable[[dict[str, Any]], Iterator[PodTemplate]]:
    """Head and worker groups of Ray below ``keys``; a RayJob has a submitter beside them."""

    def read(content: dict[str, Any]) -> Iterator[PodTemplate]:
        cluster = objects.mapping(content, *keys)
        yield from _template(objects.mapping(cluster, "headGroupSpec"), (*keys, "headGroupSpec"), "head", 1)
        for position, entry in objects.entries(cluster.get("workerGroupSpecs")):
            name = objects.text(entry.get("groupName"))
            path = (*keys, "workerGroupSpecs", position)
            yield from _template(entry, path, name, entry.get("replicas", 1))
        submitter = objects.mapping(content, "spec")
        yield from _template(submitter, ("spec",), "submitter", 1, "submitterPodTemplate")

    return read


def _leader_worker_set(content: dict[str, Any]) -> Iterator[PodTemplate]:
    """Groups of one leader and ``size - 1`` workers; without a template of its own the leader is a worker."""
    spec = objects.mapping(content, "spec")
    both = objects.mapping(spec, "leaderWorkerTemplate")
    groups, size = _count(spec.get("replicas", 1)), _count(both.get("size", 1))
    path = ("spec", "leaderWorkerTemplate")
    leader = tuple(_template(both, path, "leader", groups, "leaderTemplate"))
    yield from leader
    workers = None if groups is None or size is None else groups * (size - bool(leader))
    yield from _template(both, path, "worker", workers, "workerTemplate")


READERS: dict[str, Callable[[dict[str, Any]], Iterator[PodTemplate]]] = {
    "Pod": _pod,
    "PodTemplate": _pod_template,
    "Deployment": _controller,
    "StatefulSet": _controller,
    "ReplicaSet": _controller,
    "ReplicationController": _controller,
    "DaemonSet": _daemon_set,
    "Job": _job,
    "CronJob": _cron_job,
    "MPIJob": _replica_specs,
    "PyTorchJob": _replica_specs,
    "TFJob": _replica_specs,
    "XGBoostJob": _replica_specs,
    "PaddleJob": _replica_specs,
    "JAXJob": _replica_specs,
    "MXJob": _replica_specs,
    "TrainJob": _train_job,
    "TrainingRuntime": _training_runtime,
    "ClusterTrainingRuntime": _training_runtime,
    "RayCluster": _ray("spec"),
    "RayJob": _ray("spec", "rayClusterSpec"),
    "RayService": _ray("spec", "rayClusterConfig"),
    "JobSet": _job_set,
    "LeaderWorkerSet": _leader_worker_set,
}
"""How each kind carries its pods (A69)."""

POD_KINDS = frozenset(READERS)


def templates(content: Any) -> tuple[PodTemplate, ...]:
    """The pod templates of an object, none for a kind that makes no pods."""
    reader = READERS.get(objects.kind(content))
    return tuple(reader(content)) if reader else ()
