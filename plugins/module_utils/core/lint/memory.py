# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Lint rules: shared memory. Private to rdma.k8s: it may change with any release."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, Optional

from ..finding import WARNING
from ..kube import objects, quantity
from ..kube.pod_templates import Container
from .model import Path, Verdict, unknown, warned
from .options import OPTIONS
from .pod import Pod
from .registry import pod_rule
from .security import no_rdma

SHM = "/dev/shm"  # noqa: S108  (the place in the container)
LEAST = OPTIONS["min_shm"].default
"""The size that vendors document as the least (A69)."""


class Problem(NamedTuple):
    """What is wrong with /dev/shm of a container. The codes are those of A69."""

    code: str
    path: Path
    message: str
    expected: str = ""
    observed: str = ""


def problems(container: Container, pod: Pod, least: Any = LEAST) -> Iterator[Problem]:
    """What is wrong with /dev/shm of a container, in the order of A69; most of it ends the search."""
    found = _mount(container)
    if found is None:
        if pod.spec.get("hostIPC") is not True:
            message = "Nothing is mounted at /dev/shm, and the runtime gives it 64 MiB."
            yield Problem(
                "missing-shm-volume", (*container.path, "volumeMounts"), message, "a volume in memory"
            )
        return
    path, mount = found
    if mount.get("readOnly") is True:
        yield Problem(
            "shm-readonly",
            (*path, "readOnly"),
            "Shared memory (/dev/shm) is mounted read-only.",
            "readOnly: false",
        )
    name = objects.text(mount.get("name"))
    at = _volume(name, pod)
    if at is None:
        yield Problem(
            "shm-volume-undefined", path, "The pod has no volume %s, which is mounted at /dev/shm." % name
        )
        return
    where, volume = at
    if objects.mapping(volume, "hostPath"):
        message = "The pod shares /dev/shm of the host, and what is left in it stays."
        yield Problem("shm-host-path", where, message, "emptyDir with medium Memory", "hostPath")
        return
    empty = volume.get("emptyDir")
    if not isinstance(empty, dict) or empty.get("medium") != "Memory":
        message = "The volume at /dev/shm is not in memory."
        yield Problem(
            "shm-not-memory", where, message, "emptyDir with medium Memory", ", ".join(set(volume) - {"name"})
        )
        return
    yield from _size(container, (*where, "emptyDir"), empty.get("sizeLimit"), least)


def _size(container: Container, path: Path, size: Any, least: Any) -> Iterator[Problem]:
    if size is None:
        message = "The volume at /dev/shm has no size limit, so it grows up to the memory of the node."
        yield Problem("shm-size-missing", path, message, "sizeLimit: %s" % least)
        return
    path = (*path, "sizeLimit")
    amount = quantity.parse(size)
    if amount is None or amount <= 0:
        yield Problem(
            "shm-size-invalid",
            path,
            "The size limit of /dev/shm is not a quantity.",
            str(least),
            str(size)[:40],
        )
        return
    wanted, limit = (
        quantity.parse(least),
        objects.mapping(container.spec, "resources", "limits").get("memory"),
    )
    if wanted is not None and amount < wanted:
        message = "The volume at /dev/shm is smaller than %s." % least
        yield Problem("shm-size-small", path, message, "at least %s" % least, str(size))
    most = quantity.parse(limit)
    if most is not None and amount > most:
        message = (
            "The volume at /dev/shm may grow above the memory limit of the container, to which it counts."
        )
        yield Problem("shm-exceeds-memory-limit", path, message, "at most %s" % limit, str(size))


def _mount(container: Container) -> Optional[tuple[Path, dict[str, Any]]]:
    for position, mount in objects.entries(container.spec.get("volumeMounts")):
        if objects.text(mount.get("mountPath")).rstrip("/") == SHM:
            return (*container.path, "volumeMounts", position), mount
    return None


def _volume(name: str, pod: Pod) -> Optional[tuple[Path, dict[str, Any]]]:
    for position, volume in objects.entries(pod.spec.get("volumes")):
        if volume.get("name") == name:
            return (*pod.path, "volumes", position), volume
    return None


@pod_rule(
    "RDMA-WL-010",
    "RDMA containers have shared memory of a sensible size",
    WARNING,
    "Mount an emptyDir with medium Memory and a sizeLimit of at least %s at /dev/shm." % LEAST,
    no_rdma("RDMA-ACK-008"),
)
def shared_memory(pod: Pod) -> Iterator[Verdict]:
    """NCCL and data loaders talk through /dev/shm, which is 64 MiB unless a volume stands there (A69, A106, A107)."""
    least = pod.context.options.get("min_shm", LEAST)
    for container in pod.rdma_containers:
        if not container.lasting:
            continue
        for problem in problems(container, pod, least):
            if pod.template.partial and problem.code in ("missing-shm-volume", "shm-volume-undefined"):
                yield unknown(problem.path, "The volume can stand in the template to which this object adds.")
                continue
            yield warned(
                problem.path,
                "Container %s: %s" % (container.name, problem.message),
                expected=problem.expected,
                observed=problem.observed,
                code=problem.code,
                container=container.name,
            )
