# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Answers of the eviction API, and budgets that can never allow an eviction."""

from __future__ import annotations

import json
from typing import Any, Optional

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.cluster import failures
from ansible_collections.rdma.k8s.plugins.module_utils.core.errors import RdmaError
from ansible_collections.rdma.k8s.plugins.module_utils.core.roll import eviction
from ansible_collections.rdma.k8s.plugins.module_utils.core.roll.eviction import Budgets, Kind

CALL = failures.call_of("https://k", "POST", "/api/v1/namespaces/a/pods/p/eviction")


def answer(code: int, message: str, headers: Optional[dict[str, str]] = None, **details: Any) -> RdmaError:
    """The error of an answer as the API server sends it."""
    status = {"kind": "Status", "code": code, "message": message, "details": details}
    return failures.error_of_answer(CALL, code, json.dumps(status).encode(), headers or {})


CAUSE = {
    "reason": "DisruptionBudget",
    "message": "The disruption budget b needs 2 healthy pods and has 2 currently",
}
BUDGET = "Cannot evict pod as it would violate the pod's disruption budget."
TWO = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
UID = (
    'Operation cannot be fulfilled on Pod "p": the UID in the precondition (x) does not match the UID in record (y). '
    "The object might have been deleted and then recreated"
)


@pytest.mark.parametrize(
    ("error", "kind", "wait"),
    [
        (None, Kind.ACCEPTED, 0),
        (answer(404, 'pods "p" not found'), Kind.GONE, 0),
        (answer(409, UID), Kind.GONE, 0),
        (
            answer(409, 'Operation cannot be fulfilled on pods "p": the object has been modified'),
            Kind.UNCERTAIN,
            0,
        ),
        (answer(429, BUDGET, causes=[CAUSE]), Kind.REFUSED, 0),
        (answer(429, BUDGET, retryAfterSeconds=10), Kind.REFUSED, 10),
        (answer(429, "too many requests", {"Retry-After": "1"}), Kind.REFUSED, 1),
        (answer(500, TWO), Kind.TWO_BUDGETS, 0),
        (answer(500, "etcdserver: request timed out"), Kind.UNCERTAIN, 0),
        (answer(504, "couldn't update PodDisruptionBudget due to conflicts"), Kind.UNCERTAIN, 0),
        (failures.unreachable(CALL, "connection reset"), Kind.UNCERTAIN, 0),
        (failures.too_slow(CALL, 30), Kind.UNCERTAIN, 0),
        (
            answer(403, "unable to create new content in namespace a because it is being terminated"),
            Kind.UNCERTAIN,
            0,
        ),
        (answer(403, 'User "u" cannot create resource "pods/eviction"'), Kind.FAILED, 0),
        (answer(422, "Eviction is invalid"), Kind.FAILED, 0),
        (answer(400, "admission webhook denied the request: no"), Kind.FAILED, 0),
    ],
)
def test_answers(error: Optional[RdmaError], kind: Kind, wait: float) -> None:
    """What each answer means (DEV-31): only what was taken, or is gone, is over."""
    found = eviction.outcome(error)
    assert (found.kind, found.wait) == (kind, wait)
    assert found.over is (kind in (Kind.ACCEPTED, Kind.GONE))
    assert found.again is (kind in (Kind.REFUSED, Kind.UNCERTAIN))
    assert bool(found.reason) is not found.over


def test_a_refusal_names_the_budget() -> None:
    assert (
        "budget b needs 2 healthy pods and has 2"
        in eviction.outcome(answer(429, BUDGET, causes=[CAUSE])).reason
    )


@pytest.mark.parametrize(
    ("wait", "refused_for", "expected"), [(0, 0, 5), (10, 0, 10), (0, 599, 5), (0, 600, 60), (10, 900, 10)]
)
def test_when_it_is_tried_again(wait: float, refused_for: float, expected: float) -> None:
    """DEV-31: 429 without a time is tried again after 5 s, with one after that time."""
    assert eviction.retry_after(eviction.Outcome(Kind.REFUSED, "no", wait), refused_for) == expected


@pytest.mark.parametrize(
    ("own", "wanted", "expected"),
    [(30, None, None), (1, None, None), (0, None, 1), (0, 0, 1), (30, 0, 1), (30, 5, 5)],
)
def test_the_grace_is_never_zero(own: int, wanted: Optional[int], expected: Optional[int]) -> None:
    """DEV-24: with a grace of 0 the object goes before its claims are released."""
    assert eviction.grace_of(own, wanted) == expected
    assert eviction.body("a", "p", "u", 0)["deleteOptions"]["gracePeriodSeconds"] == 1


def test_an_eviction_is_one_of_a_uid() -> None:
    assert eviction.body("a", "p", "u") == {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": "p", "namespace": "a"},
        "deleteOptions": {"preconditions": {"uid": "u"}},
    }


# --- budgets


def budget(
    called: str = "b", allowed: int = 0, desired: int = 2, expected: int = 2, **more: Any
) -> dict[str, Any]:
    """A budget as its controller leaves it; it selects the pods of ``app: train``."""
    return {
        "metadata": {"namespace": "a", "name": called, "generation": 1},
        "spec": {"selector": {"matchLabels": {"app": "train"}}, **more.get("spec", {})},
        "status": {
            "observedGeneration": more.get("observed", 1),
            "disruptionsAllowed": allowed,
            "desiredHealthy": desired,
            "currentHealthy": expected,
            "expectedPods": expected,
            "conditions": more.get("conditions", []),
        },
    }


def pod(phase: str = "Running", ready: bool = True, app: str = "train", **metadata: Any) -> dict[str, Any]:
    """A pod in the namespace of the budget."""
    return {
        "metadata": {"namespace": "a", "name": "p", "labels": {"app": app}, **metadata},
        "status": {"phase": phase, "conditions": [{"type": "Ready", "status": "True" if ready else "False"}]},
    }


FAILED_SYNC = [
    {"type": "DisruptionAllowed", "status": "False", "reason": "SyncFailed", "message": "no scale"}
]
UNHEALTHY = {"unhealthyPodEvictionPolicy": "AlwaysAllow"}


@pytest.mark.parametrize(
    ("budgets", "of_pod", "number", "reason"),
    [
        ([], pod(), 0, ""),
        ([budget()], pod(), 1, "a/b: it wants 2 healthy pods and there are never more than 2"),
        ([budget(desired=5)], pod(), 1, "a/b: it wants 5 healthy pods and there are never more than 2"),
        ([budget(desired=1)], pod(), 1, ""),  # one is missing at the moment only
        ([budget(allowed=1, desired=1)], pod(), 1, ""),
        ([budget(observed=0)], pod(), 1, ""),  # not counted yet
        ([budget(expected=0, desired=0)], pod(), 1, ""),
        (
            [budget(desired=0, expected=0, conditions=FAILED_SYNC)],
            pod(),
            1,
            "a/b: its controller cannot count its pods: no scale",
        ),
        ([budget()], pod(ready=False), 1, "a/b: it wants 2 healthy pods and there are never more than 2"),
        ([budget(spec=UNHEALTHY)], pod(ready=False), 1, ""),
        ([budget(spec=UNHEALTHY)], pod(), 1, "a/b: it wants 2 healthy pods and there are never more than 2"),
        ([budget()], pod("Pending", ready=False), 0, ""),
        ([budget()], pod("Succeeded"), 0, ""),
        ([budget()], pod(deletionTimestamp="2026-03-02T09:00:00Z"), 0, ""),
        ([budget()], pod(app="other"), 0, ""),
        (
            [budget(), budget("c", desired=1)],
            pod(),
            2,
            "a/b: it wants 2 healthy pods and there are never more than 2",
        ),
    ],
)
def test_budgets(budgets: list[Any], of_pod: dict[str, Any], number: int, reason: str) -> None:
    """Which budgets stand against a pod, and which of them will never give way."""
    assert Budgets(budgets).against(of_pod) == (number, reason)


def test_a_budget_of_another_namespace_does_not_matter() -> None:
    other = budget()
    other["metadata"]["namespace"] = "z"
    assert Budgets([other]).against(pod()) == (0, "")
