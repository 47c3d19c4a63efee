# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Look into running pods, some at a time, and judge what they tell. Private to rdma.k8s: it may change any time.

A pod that does not answer costs its own answers and nothing else. What helps to judge and may not be read (pools,
states of nodes) makes the predicates that need it ``unknown``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any, Optional
from urllib.parse import quote

from .. import deps
from ..core.errors import RdmaError
from ..core.kube.objects import entries, mapping, name, namespace, text
from ..core.spiderpool import pod_evidence, pod_predicates
from ..core.spiderpool.pod_evidence import Evidence
from ..core.spiderpool.pod_predicates import Around, Predicate
from ..core.spiderpool.pod_script import LOOK, SHELL
from . import pod_exec
from .client import Cluster
from .pod_exec import Place, Printed

DEFAULT_CONTAINER = "kubectl.kubernetes.io/default-container"
_POOLS = "/apis/spiderpool.spidernet.io/v2beta1/spiderippools"
_STATES = "/apis/sriovnetwork.openshift.io/v1/sriovnetworknodestates"
_NOT_THERE = ("kube_not_found", "kube_forbidden")
_FEW = 16
"""Pods up to which each is asked for by its name; for more, one list is cheaper."""

Run = Callable[[Cluster, Place, Sequence[str], str, float], Printed]


@dataclass(frozen=True)
class Wish:
    """Which pods are looked at.

    :param names: of pods; empty: those that the selector takes.
    :param container: empty: the one that the pod names as its default, else the first.
    :param nics: how many further interfaces each should have; ``None``: as Multus tells.
    :param mode: ``exclusive`` or ``shared``; empty: as each pod tells.
    :param parallel: how many at the same time; ``timeout`` in seconds for each.
    """

    namespace: str
    names: tuple[str, ...] = ()
    selector: str = ""
    container: str = ""
    nics: Optional[int] = None
    mode: str = ""
    parallel: int = 10
    timeout: float = 30.0


@dataclass(frozen=True)
class PodLook:
    """A pod and what it told; ``reason`` says why it told nothing."""

    namespace: str
    name: str
    node: str = ""
    container: str = ""
    privileged: bool = False
    evidence: Optional[Evidence] = None
    answers: tuple[Predicate, ...] = ()
    reason: str = ""
    annotations: dict[str, Any] = field(default_factory=dict)

    @property
    def status(self) -> str:
        """The worst of the answers."""
        return pod_predicates.worst(self.answers)

    @property
    def ref(self) -> str:
        """``NAMESPACE/NAME``."""
        return "%s/%s" % (self.namespace, self.name)

    @property
    def place(self) -> Place:
        """Where programs run."""
        return Place(self.namespace, self.name, self.container)

    def to_dict(self) -> dict[str, Any]:
        """As plain data, for the result of a module."""
        return {
            "namespace": self.namespace,
            "name": self.name,
            "node": self.node,
            "container": self.container,
            "privileged": self.privileged,
            "status": self.status,
            "reason": self.reason,
            "predicates": [answer.to_dict() for answer in self.answers],
            "evidence": None if self.evidence is None else self.evidence.to_dict(),
            "gid_index": {} if self.evidence is None else _gid_index(self.evidence),
        }


def _gid_index(evidence: Evidence) -> dict[str, int]:
    from ..core.spiderpool import pod_rdma  # noqa: PLC0415

    return pod_rdma.judge(evidence.rdma()).gid_index


def look(cluster: Cluster, wish: Wish, run: Run = pod_exec.run) -> list[PodLook]:
    """Look into the pods and judge them, also against each other.

    :param run: runs a program in a pod; an argument for tests.
    :raises RdmaError: ``pods_missing`` when no pod is taken, or one of the codes ``kube_...``.
    """
    found = [_of_pod(pod, wish) for pod in _pods(cluster, wish)]
    running = [entry for entry in found if not entry.reason]
    deps.kubernetes("kubernetes.stream")  # once, before threads want it
    with ThreadPoolExecutor(max_workers=max(min(wish.parallel, len(running)), 1)) as pool:
        told = list(pool.map(lambda entry: _asked(cluster, entry, wish, run), running))
    known = {entry.ref: entry for entry in told}
    return judged(cluster, [known.get(entry.ref, entry) for entry in found], wish)


def judged(cluster: Cluster, found: Sequence[PodLook], wish: Wish) -> list[PodLook]:
    """The same pods with their answers."""
    pools, why_no_pools = _list(cluster, _POOLS)
    states, why_no_states = _list(cluster, _STATES)
    mtus = {name(state): pod_predicates.pf_mtus(state) for state in states}
    answered = []
    for entry in found:
        if entry.evidence is None:
            answered.append(replace(entry, answers=tuple(pod_predicates.nothing_read(entry.reason))))
            continue
        nics = pod_evidence.expected_nics(entry.annotations) if wish.nics is None else wish.nics
        around = Around(
            nics,
            wish.mode,
            pod_predicates.pools_of(entry.evidence, pools),
            mtus.get(entry.node, {}),
            {key: reason for key, reason in (("pools", why_no_pools), ("pf_mtu", why_no_states)) if reason},
        )
        answered.append(replace(entry, answers=tuple(pod_predicates.judge(entry.evidence, around))))
    return _with_ends(answered)


def _with_ends(found: Sequence[PodLook]) -> list[PodLook]:
    """Compare the MTU in use of the pods."""
    told = {entry.ref: entry.evidence for entry in found if entry.evidence is not None}
    if len(told) < 2:
        return list(found)
    issues = pod_predicates.compared(told)
    ended = []
    for entry in found:
        if entry.evidence is not None:
            unknown = entry.evidence.unread.get("active_mtu", "")
            answers = pod_predicates.with_ends(entry.answers, issues.get(entry.ref, ()), unknown)
            entry = replace(entry, answers=tuple(answers))  # noqa: PLW2901
        ended.append(entry)
    return ended


def _pods(cluster: Cluster, wish: Wish) -> list[dict[str, Any]]:
    path = "/api/v1/namespaces/%s/pods" % quote(wish.namespace, safe="")
    if wish.names and len(wish.names) <= _FEW:
        return [cluster.get("%s/%s" % (path, quote(called, safe=""))) for called in wish.names]
    query: dict[str, Any] = {"labelSelector": wish.selector} if wish.selector else {}
    found = list(cluster.items(path, **query))
    if wish.names:
        by_name = {name(pod): pod for pod in found}
        missing = [called for called in wish.names if called not in by_name]
        if missing:
            raise _missing("There is no pod %s in namespace %s." % (", ".join(missing), wish.namespace))
        return [by_name[called] for called in wish.names]
    kept = [pod for pod in found if mapping(pod, "status").get("phase") not in ("Succeeded", "Failed")]
    if not kept:
        taken = "that the selector %r takes " % wish.selector if wish.selector else ""
        raise _missing("There is no pod %sin namespace %s." % (taken, wish.namespace))
    return kept


def _missing(message: str) -> RdmaError:
    return RdmaError(
        "pods_missing",
        message,
        hint="Correct the namespace, the names or the selector: a look at no pod must not look good.",
    )


def _of_pod(pod: dict[str, Any], wish: Wish) -> PodLook:
    spec, status = mapping(pod, "spec"), mapping(pod, "status")
    annotations = mapping(pod, "metadata", "annotations")
    containers = [entry for _at, entry in entries(spec.get("containers"))]
    names = [text(entry.get("name")) for entry in containers]
    chosen = wish.container or text(annotations.get(DEFAULT_CONTAINER))
    if chosen not in names and not wish.container:
        chosen = names[0] if names else ""
    privileged = any(
        mapping(entry, "securityContext").get("privileged") is True
        for entry in containers
        if entry.get("name") == chosen
    )
    return PodLook(
        namespace(pod) or wish.namespace,
        name(pod),
        text(spec.get("nodeName")),
        chosen,
        privileged,
        reason=_why_not(spec, status, chosen, names),
        annotations=annotations,
    )


def _why_not(spec: dict[str, Any], status: dict[str, Any], chosen: str, names: Iterable[str]) -> str:
    """Why nothing can be run in a container; empty: it can."""
    if chosen not in names:
        return "The pod has no container %s." % chosen
    if spec.get("hostNetwork") is True:
        return "The pod is on the network of its node and has none of its own."
    for _at, entry in entries(status.get("containerStatuses")):
        if entry.get("name") == chosen and "running" in mapping(entry, "state"):
            return ""
    waiting = [
        text(mapping(entry, "state", "waiting").get("reason"))
        for _at, entry in entries(status.get("containerStatuses"))
        if entry.get("name") == chosen
    ]
    told = ", ".join([reason for reason in waiting if reason])
    return "The container %s does not run: the pod is %s%s." % (
        chosen,
        text(status.get("phase")) or "unknown",
        ", " + told if told else "",
    )


def _asked(cluster: Cluster, entry: PodLook, wish: Wish, run: Run) -> PodLook:
    try:
        printed = run(cluster, entry.place, SHELL, LOOK, wish.timeout)
    except RdmaError as error:
        return replace(entry, reason=error.message)
    document = pod_evidence.read(printed.stdout)
    if document is None:
        said = " ".join((printed.stderr or printed.stdout).split())[:200].rstrip(".") or "nothing"
        return replace(
            entry,
            reason="The container told no evidence (exit code %d, it said: %s); it needs a POSIX shell sh in its PATH."
            % (printed.code, said),
        )
    return replace(entry, evidence=pod_evidence.evidence_of(document))


def _list(cluster: Cluster, path: str) -> tuple[list[dict[str, Any]], str]:
    """The objects, and the reason when they are not known."""
    try:
        return list(cluster.items(path)), ""
    except RdmaError as error:
        if error.code not in _NOT_THERE:
            raise
        return [], error.message.rstrip(".")


def problems(found: Iterable[PodLook], statuses: Sequence[str]) -> list[str]:
    """The answers with these statuses, in sentences with pod and predicate; a pod that told nothing is one sentence."""
    told = []
    for entry in found:
        if entry.evidence is None:
            told.append("%s: %s" % (entry.ref, entry.reason))
            continue
        told += [
            "%s %s: %s" % (entry.ref, answer.number, answer.message)
            for answer in entry.answers
            if answer.status in statuses
        ]
    return told
