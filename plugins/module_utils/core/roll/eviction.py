# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What evictions are answered, and which of them can never be granted. Private to rdma.k8s: it may change any time.

An eviction asks the API server to end a pod unless a disruption budget says no. It answers 429 while a budget is used
up, 500 when two budgets select the pod, 404 or 409 when the pod of that UID is not there any more.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Optional

from ..errors import RdmaError
from ..kube.objects import entries, mapping, name, namespace, text
from ..kube.selectors import selects

RETRY = 5.0
"""Seconds until a refused eviction is tried again, when the API server names no time."""
SLOW_RETRY, SLOW_AFTER = 60.0, 600.0
"""The same for one that has been refused for so long."""
LEAST_GRACE = 1
"""Seconds that a pod gets at least: with 0 its object goes before the kubelet has released its devices."""

_TWO_BUDGETS = "more than one PodDisruptionBudget"
_OTHER_UID = "UID in"
_ENDING_NAMESPACE = "being terminated"
_UNBOUND = frozenset(("Pending", "Succeeded", "Failed"))
"""Phases in which the eviction API asks no budget."""


class Kind(str, Enum):
    """What an answer means."""

    ACCEPTED = "accepted"
    GONE = "gone"
    REFUSED = "refused"
    TWO_BUDGETS = "two budgets"
    UNCERTAIN = "uncertain"
    FAILED = "failed"


@dataclass(frozen=True)
class Outcome:
    """What an eviction led to.

    :param kind: ``REFUSED``: a budget or the API server's load stands against it now; ``UNCERTAIN``: nobody knows
        whether it was taken, so look at the pod before another one is sent; ``FAILED``: trying again does not help.
    :param reason: in words, empty when it was taken or the pod had gone.
    :param wait: seconds that the API server asks to wait, 0 when it does not say.
    """

    kind: Kind
    reason: str = ""
    wait: float = 0.0

    @property
    def over(self) -> bool:
        """Whether no further eviction of this pod may be sent."""
        return self.kind in (Kind.ACCEPTED, Kind.GONE)

    @property
    def again(self) -> bool:
        """Whether the same eviction may succeed later without a person acting."""
        return self.kind in (Kind.REFUSED, Kind.UNCERTAIN)


def outcome(error: Optional[RdmaError]) -> Outcome:
    """What the error of an eviction means; without one it was taken."""
    if error is None:
        return Outcome(Kind.ACCEPTED)
    said = error.message
    if error.code == "kube_not_found":
        return Outcome(Kind.GONE)
    if error.code == "kube_conflict":
        # The precondition failed: a pod of the same name has come since. Any other conflict is one of the moment.
        return Outcome(Kind.GONE) if _OTHER_UID in said else Outcome(Kind.UNCERTAIN, said)
    if error.code == "kube_throttled":
        causes = error.details.get("causes") or ()
        return Outcome(Kind.REFUSED, " ".join([said, *causes]), float(error.details.get("wait", 0.0)))
    if error.code == "kube_failed" and _TWO_BUDGETS in said:
        return Outcome(Kind.TWO_BUDGETS, said)
    if error.code == "kube_forbidden" and _ENDING_NAMESPACE in said:
        return Outcome(Kind.UNCERTAIN, said)  # the end of the namespace takes the pod with it
    return Outcome(Kind.UNCERTAIN if error.retryable else Kind.FAILED, str(error))


def retry_after(found: Outcome, refused_for: float = 0.0) -> float:
    """Seconds until the next try: those that the API server names, else 5, and 60 after ten minutes of refusals.

    :param refused_for: seconds since the first refusal.
    """
    return found.wait or (RETRY if refused_for < SLOW_AFTER else SLOW_RETRY)


def body(pod_namespace: str, pod_name: str, uid: str, grace: Optional[int] = None) -> dict[str, Any]:
    """An eviction of exactly the pod with this UID.

    :param grace: seconds; ``None``: the pod's own. Never less than one, whoever asks for it.
    """
    options: dict[str, Any] = {"preconditions": {"uid": uid}}
    if grace is not None:
        options["gracePeriodSeconds"] = max(grace, LEAST_GRACE)
    return {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": pod_name, "namespace": pod_namespace},
        "deleteOptions": options,
    }


def grace_of(own: int, wanted: Optional[int] = None) -> Optional[int]:
    """The grace to send: ``None`` where the pod's own one is right.

    :param own: the grace period of the pod; 0 would take it away before its devices are released.
    :param wanted: what the operator wants instead.
    """
    if wanted is not None:
        return max(wanted, LEAST_GRACE)
    return None if own >= LEAST_GRACE else LEAST_GRACE


# --- disruption budgets ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Budget:
    """A PodDisruptionBudget.

    :param never: why it allows no eviction however healthy its pods are; empty: it may.
    :param lets_unhealthy_go: pods that are not ready are evicted without asking it.
    """

    namespace: str
    name: str
    selector: Any
    never: str = ""
    lets_unhealthy_go: bool = False

    @classmethod
    def read(cls, content: Mapping[str, Any]) -> Budget:
        """The budget of an object of the API."""
        return cls(
            namespace(content),
            name(content),
            mapping(content, "spec").get("selector"),
            _never(content),
            mapping(content, "spec").get("unhealthyPodEvictionPolicy") == "AlwaysAllow",
        )


def _never(content: Mapping[str, Any]) -> str:
    """From what its controller counted: one that asks for as many healthy pods as there are allows none to go."""
    status = mapping(content, "status")
    generation = mapping(content, "metadata").get("generation")
    if status.get("observedGeneration") != generation or status.get("disruptionsAllowed") != 0:
        return ""  # not counted yet, or it allows some now
    for _at, condition in entries(status.get("conditions")):
        if condition.get("type") == "DisruptionAllowed" and condition.get("reason") == "SyncFailed":
            return "its controller cannot count its pods: %s" % text(condition.get("message"))
    expected, desired = status.get("expectedPods"), status.get("desiredHealthy")
    if not isinstance(expected, int) or not isinstance(desired, int) or not 0 < expected <= desired:
        return ""
    return "it wants %d healthy pods and there are never more than %d" % (desired, expected)


class Budgets:
    """The disruption budgets of a cluster, by namespace."""

    def __init__(self, contents: Iterable[Mapping[str, Any]] = ()) -> None:
        self._by_namespace: dict[str, list[Budget]] = {}
        for content in contents:
            budget = Budget.read(content)
            self._by_namespace.setdefault(budget.namespace, []).append(budget)

    def of(self, pod: Mapping[str, Any]) -> list[Budget]:
        """Those that the eviction API asks about a pod; none while it is pending, over or on its way out."""
        metadata, status = mapping(pod, "metadata"), mapping(pod, "status")
        if status.get("phase") in _UNBOUND or metadata.get("deletionTimestamp"):
            return []
        labels = mapping(metadata, "labels")
        found = self._by_namespace.get(text(metadata.get("namespace")), ())
        return [budget for budget in found if selects(budget.selector, labels)]

    def against(self, pod: Mapping[str, Any]) -> tuple[int, str]:
        """How many budgets select a pod, and the one that can never allow its eviction (with the reason)."""
        found = self.of(pod)
        ready = any(
            entry.get("type") == "Ready" and entry.get("status") == "True"
            for _at, entry in entries(mapping(pod, "status").get("conditions"))
        )
        reasons = [
            "%s/%s: %s" % (budget.namespace, budget.name, budget.never)
            for budget in found
            if budget.never and (ready or not budget.lets_unhealthy_go)
        ]
        return len(found), reasons[0] if reasons else ""
