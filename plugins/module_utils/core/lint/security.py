# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Lint rules: what a container may do. Private to rdma.k8s: it may change with any release."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Callable, Optional

from ..finding import ERROR, WARNING
from ..kube import objects
from ..kube.pod_templates import Container
from .model import ACK, Verdict, failed, skipped, unknown, warned
from .pod import Pod, target_of
from .registry import pod_rule


class Capabilities:
    """The capabilities of a container. Names compare in upper case; adds come before drops, ALL drops none (A70)."""

    def __init__(self, container: Container) -> None:
        given = objects.mapping(container.spec, "securityContext", "capabilities")
        self.added = self._names(given.get("add"))
        self.dropped = self._names(given.get("drop"))

    @staticmethod
    def _names(value: object) -> list[str]:
        return [name.upper() for name in value if isinstance(name, str)] if isinstance(value, list) else []

    def has(self, name: str) -> bool:
        return (name in self.added or "ALL" in self.added) and name not in self.dropped

    @property
    def prefixed(self) -> list[str]:
        """Added names that begin with CAP_; the runtime writes that itself, so they stand for nothing."""
        return [name for name in self.added if name.startswith("CAP_")]


def is_privileged(container: Container) -> bool:
    return objects.mapping(container.spec, "securityContext").get("privileged") is True


def not_root(container: Container, pod: Pod) -> bool:
    """The process is not root, so that an added capability is not effective (A108)."""
    contexts = (
        objects.mapping(container.spec, "securityContext"),
        objects.mapping(pod.spec, "securityContext"),
    )
    user = next((found["runAsUser"] for found in contexts if found.get("runAsUser") is not None), None)
    if user is not None:
        return bool(user != 0)
    rule = next((found["runAsNonRoot"] for found in contexts if found.get("runAsNonRoot") is not None), False)
    return rule is True


def no_rdma(ack: str) -> Callable[[Pod], Optional[Verdict]]:
    """The verdict for pods that need no rule about RDMA; ``ack`` is the rule that judges them on Lingjun nodes."""

    def of_pod(pod: Pod) -> Optional[Verdict]:
        if target_of(pod.document, pod.context) == ACK:
            return skipped("%s judges this for Lingjun nodes." % ack)
        if pod.rdma is None:
            path = (*pod.path, "resourceClaims")
            return unknown(path, "Whether the pods use RDMA could not be told: %s." % pod.undecided)
        return None if pod.rdma else skipped("The pods take no RDMA devices.")

    return of_pod


@pod_rule(
    "RDMA-WL-009",
    "RDMA containers may lock memory",
    ERROR,
    "Add the capability IPC_LOCK, or make the memory limit of the runtime unlimited and set memlock_unlimited.",
    no_rdma("RDMA-ACK-004"),
)
def lock_memory(pod: Pod) -> Iterator[Verdict]:
    """Memory for RDMA is locked; the limit of a container is 64 KiB to 8 MiB unless the runtime raises it (A105)."""
    if pod.context.options.get("memlock_unlimited") is True:
        yield skipped("The runtime of the nodes is told to have no memory limit.")
        return
    for container in pod.rdma_containers:
        capabilities = Capabilities(container)
        path = (*container.path, "securityContext")
        if is_privileged(container):
            continue
        if capabilities.has("IPC_LOCK"):
            if not_root(container, pod):
                yield warned(
                    path,
                    "Container %s does not run as root, so IPC_LOCK is not effective." % container.name,
                    hint="Run as root, or make the memory limit of the runtime unlimited.",
                )
        elif pod.template.partial:
            yield unknown(path, "IPC_LOCK can stand in the template to which this object adds.")
        else:
            spelled = "CAP_IPC_LOCK" in capabilities.prefixed
            yield failed(
                path,
                "Container %s may not lock memory%s."
                % (
                    container.name,
                    ": the capability is written with CAP_, which counts for nothing" if spelled else "",
                ),
                expected="capabilities.add: IPC_LOCK",
                observed=", ".join(capabilities.added) or "none added",
            )


@pod_rule(
    "RDMA-WL-013",
    "Pods with claims get time to end",
    ERROR,
    "Remove terminationGracePeriodSeconds, or set it to at least 1.",
)
def grace_period(pod: Pod) -> Iterator[Verdict]:
    """A grace period of 0 removes the pod before its claims are unprepared (DEV-24)."""
    if not pod.spec.get("resourceClaims"):
        yield skipped("The pods use no resource claims.")
    elif pod.spec.get("terminationGracePeriodSeconds") == 0:
        yield failed(
            (*pod.path, "terminationGracePeriodSeconds"),
            "A pod is removed at once when it is deleted, so the devices of its claims are not given back.",
            expected="at least 1 s",
            observed="0 s",
        )


@pod_rule(
    "RDMA-WL-016",
    "RDMA containers are not privileged",
    WARNING,
    "Remove privileged; add the capability IPC_LOCK.",
    no_rdma("RDMA-ACK-004"),
)
def privileged(pod: Pod) -> Iterator[Verdict]:
    """Devices come by the claim or the resource, so nothing else is needed (F84, A69)."""
    for container in pod.rdma_containers:
        if is_privileged(container):
            yield warned(
                (*container.path, "securityContext", "privileged"),
                "Container %s is privileged, which RDMA does not need." % container.name,
                expected="capabilities.add: IPC_LOCK",
                observed="privileged: true",
            )
