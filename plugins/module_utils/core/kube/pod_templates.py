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

    :param role: ``main``; ``init`` (runs to its end before the others); ``sidecar`` (an init container with
        restartPolicy Always, which runs beside the others); ``ephemeral``.
    """

    name: str
    path: Path
    spec: dict[str, Any]
    role: str

    @property
    def lasting(self) -> bool:
        """It runs for the life of the pod."""
        return self.role in (MAIN, SIDECAR)


@dataclass(frozen=True)
class PodTemplate:
    """A pod, or a template of pods.

    :param path: where ``spec`` of the pod stands in the object.
    :param role: which part of the object it is (``Worker``, a task, a group); empty when there is only one.
    :param replicas: how many pods come of it, ``None``: not given.
    :param metadata: of the pods.
    """

    path: Path
    spec: dict[str, Any]
    role: str = ""
    replicas: Optional[int] = None
    metadata: dict[str, Any] = field(default_factory=dict)

    @property
    def metadata_path(self) -> Path:
        return (*self.path[:-1], "metadata")

    @cached_property
    def containers(self) -> tuple[Container, ...]:
        """All containers, in the order in which they start."""
        return tuple(self._containers())

    def _containers(self) -> Iterator[Container]:
        for key, role in (("initContainers", INIT), ("containers", MAIN), ("ephemeralContainers", EPHEMERAL)):
            for position, entry in objects.entries(self.spec.get(key)):
                sidecar = role == INIT and entry.get("restartPolicy") == "Always"
                yield Container(
                    objects.text(entry.get("name")),
                    (*self.path, key, position),
                    entry,
                    SIDECAR if sidecar else role,
                )

    @property
    def claims(self) -> bool:
        """It takes devices through resource claims."""
        return any(True for _entry in objects.entries(self.spec.get("resourceClaims")))


def _count(value: Any) -> Optional[int]:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _template(holder: Any, path: Path, role: str = "", replicas: Any = None) -> Iterator[PodTemplate]:
    """The pod template ``template`` of ``holder``, which stands at ``path``."""
    template = objects.mapping(holder, "template")
    if isinstance(template.get("spec"), dict):
        yield PodTemplate(
            (*path, "template", "spec"),
            template["spec"],
            role,
            _count(replicas),
            objects.mapping(template, "metadata"),
        )


def _pod(content: dict[str, Any]) -> Iterator[PodTemplate]:
    spec = objects.mapping(content, "spec")
    if spec:
        yield PodTemplate(("spec",), spec, "", 1, objects.mapping(content, "metadata"))


def _controller(content: dict[str, Any]) -> Iterator[PodTemplate]:
    spec = objects.mapping(content, "spec")
    yield from _template(spec, ("spec",), "", spec.get("replicas", 1))


READERS: dict[str, Callable[[dict[str, Any]], Iterator[PodTemplate]]] = {
    "Pod": _pod,
    "Deployment": _controller,
    "StatefulSet": _controller,
    "ReplicaSet": _controller,
    "ReplicationController": _controller,
    "Job": _controller,
}
"""How each kind carries its pods."""

POD_KINDS = frozenset(READERS)


def templates(content: Any) -> tuple[PodTemplate, ...]:
    """The pod templates of an object, none for a kind that makes no pods."""
    reader = READERS.get(objects.kind(content))
    return tuple(reader(content)) if reader else ()
