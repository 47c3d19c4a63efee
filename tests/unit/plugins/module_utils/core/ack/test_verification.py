# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One look at the plugin and its nodes, and two of them that must agree."""

from __future__ import annotations

from typing import Any, Optional

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.core.ack import names, verification
from ansible_collections.rdma.k8s.plugins.module_utils.core.ack.verdict import Reason

FIRST, SECOND = "e01-cn-a1", "e01-cn-a2"


def node(name: str, capacity: Any = "1k", allocatable: Any = "1k", lingjun: bool = True) -> dict[str, Any]:
    """A node; ``None``: without the resource."""
    status = {
        side: {} if amount is None else {names.RESOURCE: amount}
        for side, amount in (("capacity", capacity), ("allocatable", allocatable))
    }
    labels = {names.WORKER_LABEL: "true"} if lingjun else {}
    return {"metadata": {"name": name, "labels": labels}, "status": status}


def pod(name: str, on: str, ready: bool = True, **more: Any) -> dict[str, Any]:
    """A pod of the plugin."""
    state: dict[str, Any] = {"running": {}} if ready else {"waiting": {"reason": "CrashLoopBackOff"}}
    status = {"name": "plugin", "ready": ready, "restartCount": 0 if ready else 3, "state": state}
    if not ready:
        status["lastState"] = {"terminated": {"exitCode": 1, "reason": "Error"}}
    return {
        "metadata": {"name": name, **more},
        "spec": {"nodeName": on, "containers": [{"name": "plugin"}]},
        "status": {
            "phase": "Running",
            "conditions": [{"type": "Ready", "status": "True" if ready else "False"}],
            "containerStatuses": [{"name": "sidecar", "ready": True, "state": {"running": {}}}, status],
        },
    }


def daemonset(desired: int = 2, ready: Optional[int] = None) -> dict[str, Any]:
    """The DaemonSet with the numbers of its status."""
    count = desired if ready is None else ready
    return {
        "metadata": {"name": names.DAEMONSET, "generation": 1},
        "status": {
            "observedGeneration": 1,
            "desiredNumberScheduled": desired,
            "currentNumberScheduled": desired,
            "updatedNumberScheduled": desired,
            "numberReady": count,
            "numberAvailable": count,
        },
    }


GOOD_NODES = [node(FIRST), node(SECOND), node("ecs", None, None, lingjun=False)]
GOOD_PODS = [pod("p1", FIRST), pod("p2", SECOND)]


def look(found: Any = ..., nodes: Any = None, pods: Any = None, **more: Any) -> verification.Look:
    """A look at a good cluster, but for what is given."""
    return verification.look(
        daemonset() if found is ... else found,
        GOOD_NODES if nodes is None else nodes,
        GOOD_PODS if pods is None else pods,
        **more,
    )


def codes(found: verification.Look) -> list[tuple[str, str]]:
    return [(reason.code, reason.subject) for reason in found.reasons]


def test_nothing_is_wrong() -> None:
    """A52: nodes without the label need no pod."""
    found = look()
    assert (found.status, found.failed, found.reasons) == ("ok", False, ())
    assert [entry.name for entry in found.nodes] == [FIRST, SECOND]
    assert found.pods[0] == ("p1", FIRST, "sidecar", True, 0, "running", "")


@pytest.mark.parametrize(
    ("found", "expected", "status"),
    [
        (look(None, pods=[]), [("ds-missing", "")], "fail"),
        (look(pods=GOOD_PODS[:1]), [("ds-node-uncovered", SECOND)], "fail"),
        (
            look(daemonset(2, 1), pods=[GOOD_PODS[0], pod("p2", SECOND, False)]),
            [("ds-not-ready", ""), ("ds-node-uncovered", SECOND)],
            "fail",
        ),
        (
            look(pods=[GOOD_PODS[0], pod("p2", SECOND, deletionTimestamp="2026-11-30T02:00:00Z")]),
            [("ds-node-uncovered", SECOND)],
            "fail",
        ),
        (look(nodes=[node(FIRST, "1k", "0"), node(SECOND)]), [("resource-allocatable-zero", FIRST)], "fail"),
        (look(nodes=[node(FIRST, "1k", "990"), node(SECOND)]), [("resource-allocatable-low", FIRST)], "warn"),
        (look(nodes=[node(FIRST, lingjun=False), node(SECOND)]), [("node-label-missing", FIRST)], "warn"),
        (look(nodes=[]), [("no-lingjun-node", "")], "fail"),
        (look(rdma_mode="exclusive"), [("resource-mode-mismatch", n) for n in (FIRST, SECOND)], "fail"),
        (look(expected=500), [("resource-count-unexpected", n) for n in (FIRST, SECOND)], "warn"),
        (look(resource="rdma/fabric"), [("resource-missing", n) for n in (FIRST, SECOND)], "fail"),
    ],
)
def test_what_is_wrong(found: verification.Look, expected: list[tuple[str, str]], status: str) -> None:
    """A51, A52, A55: each with the node that it is about."""
    assert (codes(found), found.status, found.failed) == (expected, status, status == "fail")


def test_two_looks_that_say_the_same() -> None:
    """A57: also when both are the same warning."""
    assert verification.settled(look(), look()) == []


def test_two_looks_that_differ() -> None:
    """A57, A103: amounts of before, or a node that came between."""
    before = look(nodes=[node(FIRST, "1k", None)])
    found = verification.settled(before, look())
    assert [(reason.code, reason.subject, reason.expected, reason.observed) for reason in found] == [
        ("amounts-not-settled", FIRST, "capacity 1000, allocatable none", "capacity 1000, allocatable 1000"),
        ("amounts-not-settled", SECOND, "absent", "capacity 1000, allocatable 1000"),
    ]


def test_whose_logs_are_asked_for() -> None:
    """A53: pods that are not ready first, then those of nodes without amounts; never those of good nodes."""
    third = node("e01-cn-a3")
    nodes = [node(FIRST, "1k", "0"), node(SECOND), third]
    pods = [GOOD_PODS[0], pod("p2", SECOND, False), pod("p3", "e01-cn-a3")]
    found = look(nodes=nodes, pods=pods)
    assert [entry.name for entry in verification.to_ask(found, 5)] == ["p2", "p1"]
    assert [entry.name for entry in verification.to_ask(found, 1)] == ["p2"]
    (crashing,) = [entry for entry in found.pods if entry.name == "p2"]
    assert (crashing.container, crashing.restarts) == ("plugin", 3)
    assert (crashing.state, crashing.last) == ("waiting: CrashLoopBackOff", "terminated: Error, exit code 1")


def test_a_pod_of_which_nothing_is_known() -> None:
    """It was made a moment ago."""
    bare = {
        "metadata": {"name": "p"},
        "spec": {"nodeName": FIRST, "containers": [{"name": "c"}]},
        "status": {"phase": "Pending"},
    }
    (found,) = look(pods=[bare]).pods
    assert found == ("p", FIRST, "c", False, 0, "Pending", "")
    (nothing,) = look(pods=[{}]).pods
    assert nothing == ("", "", "", False, 0, "", "")


def test_sentences() -> None:
    assert verification.sentence(Reason("x", "fail", "it is bad", "1", "0", FIRST)) == (
        "e01-cn-a1: it is bad (expected 1, found 0)."
    )
    assert verification.sentence(Reason("x", "fail", "it is bad")) == "it is bad."


def test_pods_of_somebody_else_with_the_same_labels() -> None:
    ours = {"metadata": {"name": "a", "ownerReferences": [{"uid": "1"}]}}
    others = {"metadata": {"name": "b", "ownerReferences": [{"uid": "2"}]}}
    assert verification.owned_by([ours, others, {"metadata": {"name": "c"}}], "1") == [ours]
