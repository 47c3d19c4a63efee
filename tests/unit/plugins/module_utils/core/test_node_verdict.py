# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a judgement leaves on the nodes of a cluster."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.core import finding as model, node_verdict
from ansible_collections.rdma.k8s.plugins.module_utils.core.errors import RdmaError
from ansible_collections.rdma.k8s.plugins.module_utils.core.finding import Finding, Waiver
from ansible_collections.rdma.k8s.plugins.module_utils.core.report.document import NodeRow, ResultDocument

OURS = {"key": "rdma.k8s/unverified", "effect": "NoSchedule"}
OTHER = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
WAIVED = Waiver("spare part ordered", "ops", "2030-01-01")


def node(labels: dict[str, str] | None = None, taints: list[Any] | None = None) -> dict[str, Any]:
    """A Node object."""
    metadata: dict[str, Any] = {"name": "n1", "resourceVersion": "7"}
    if labels is not None:
        metadata["labels"] = labels
    return {"metadata": metadata, "spec": {"taints": taints} if taints is not None else {}}


def applied(before: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    """What a JSON merge patch makes of an object (RFC 7386)."""
    merged = json.loads(json.dumps(before))

    def merge(target: dict[str, Any], changes: dict[str, Any]) -> None:
        for key, value in changes.items():
            if value is None:
                target.pop(key, None)
            elif isinstance(value, dict):
                merge(target.setdefault(key, {}), value)
            else:
                target[key] = value

    merge(merged, patch)
    return merged


def verdict_of(*findings: Finding, reachable: bool = True, **options: Any) -> str:
    """The verdict of a node with these findings, beside one that is fine and one of the fleet that failed."""
    document = ResultDocument(
        created_at="2026-03-02T09:30:00Z",
        nodes=(NodeRow("n1", reachable), NodeRow("n2")),
        findings=(
            *findings,
            Finding("RDMA-NODE-001", "n2", model.PASS),
            Finding("RDMA-X", model.FLEET, model.FAIL),
        ),
    )
    found = node_verdict.verdicts(document, **options)
    assert sorted(found) == ["n1", "n2"]
    assert found["n2"] == model.PASS
    return found["n1"]


@pytest.mark.parametrize(
    ("status", "severity", "wanted"),
    [
        (model.PASS, model.CRITICAL, model.PASS),
        (model.SKIP, model.CRITICAL, model.PASS),
        (model.FAIL, model.CRITICAL, model.FAIL),
        (model.FAIL, model.ERROR, model.FAIL),
        (model.FAIL, model.WARNING, model.WARN),
        (model.WARN, model.ERROR, model.WARN),
        (model.UNKNOWN, model.CRITICAL, model.UNKNOWN),
        (model.UNKNOWN, model.ERROR, model.PASS),
    ],
)
def test_verdict_of_one_finding(status: str, severity: str, wanted: str) -> None:
    assert verdict_of(Finding("RDMA-NODE-017", "n1", status, severity)) == wanted


def test_worst_counts() -> None:
    """A failure wins over what could not be told, that over a warning."""
    warned = Finding("RDMA-A", "n1", model.WARN)
    dark = Finding("RDMA-B", "n1", model.UNKNOWN, model.CRITICAL)
    failed = Finding("RDMA-C", "n1", model.FAIL)
    assert verdict_of(warned, dark, failed) == model.FAIL
    assert verdict_of(warned, dark) == model.UNKNOWN


def test_waived_results_do_not_count() -> None:
    assert verdict_of(Finding("RDMA-A", "n1", model.FAIL, waiver=WAIVED)) == model.UNKNOWN
    passed = Finding("RDMA-B", "n1", model.PASS)
    assert verdict_of(Finding("RDMA-A", "n1", model.FAIL, waiver=WAIVED), passed) == model.PASS


def test_threshold_and_strict() -> None:
    failed = Finding("RDMA-A", "n1", model.FAIL, model.WARNING)
    assert verdict_of(failed, threshold=model.WARNING) == model.FAIL
    assert (
        verdict_of(Finding("RDMA-A", "n1", model.FAIL, model.ERROR), threshold=model.CRITICAL) == model.WARN
    )
    assert verdict_of(Finding("RDMA-A", "n1", model.UNKNOWN, model.INFO), strict=True) == model.UNKNOWN


def test_silent_node_is_unknown() -> None:
    """Decision 1: a host without a result is unknown, never absent; neither is one that was not reached."""
    assert verdict_of() == model.UNKNOWN
    assert verdict_of(Finding("RDMA-A", "n1", model.PASS), reachable=False) == model.UNKNOWN


def test_time_of_a_label() -> None:
    """A label holds no colon."""
    assert node_verdict.label_time("2026-03-02T09:30:00Z") == "20260302T093000Z"
    for wrong in ("2026-03-02 09:30:00", "", "2026-03-02T09:30:00Z\n"):
        with pytest.raises(RdmaError) as caught:
            node_verdict.label_time(wrong)
        assert caught.value.code == "time_malformed"


@pytest.mark.parametrize("verdict", [model.PASS, model.WARN])
def test_good_verdict_lets_pods_in(verdict: str) -> None:
    """Decision 30: untainted on a good verdict, with the taints of others and the version that was read."""
    before = node({"a": "b"}, [OTHER, OURS])
    change = node_verdict.mark(before, verdict, "20260302T093000Z")
    assert change is not None
    assert change.patch["metadata"]["resourceVersion"] == "7"
    after = applied(before, change.patch)
    assert after["spec"]["taints"] == [OTHER]
    assert after["metadata"]["labels"] == {
        "a": "b",
        "rdma.k8s/verdict": verdict,
        "rdma.k8s/judged": "20260302T093000Z",
    }
    assert change.actions == ("label n1 %s" % verdict, "let pods on n1")
    assert (change.before, change.after) == (
        {"labels": {}, "unverified": True},
        {
            "labels": {"rdma.k8s/verdict": verdict, "rdma.k8s/judged": "20260302T093000Z"},
            "unverified": False,
        },
    )
    assert node_verdict.mark(after, verdict, "20260302T093000Z") is None


@pytest.mark.parametrize("verdict", [model.FAIL, model.UNKNOWN])
def test_bad_verdict_keeps_the_taint(verdict: str) -> None:
    """Decision 30: only a good verdict removes it; a patch of labels alone names no version."""
    before = node(None, [OURS])
    change = node_verdict.mark(before, verdict, "20260302T093000Z")
    assert change is not None
    assert change.patch == {
        "metadata": {"labels": {"rdma.k8s/verdict": verdict, "rdma.k8s/judged": "20260302T093000Z"}}
    }
    assert change.after["unverified"] is True


def test_bad_verdict_of_a_node_in_use_adds_no_taint() -> None:
    """A node that fails later keeps its pods: taking them away is a drain, not a label."""
    change = node_verdict.mark(node({"rdma.k8s/verdict": "pass"}), model.FAIL, "20260302T093000Z")
    assert change is not None
    assert "spec" not in change.patch
    assert change.after["unverified"] is False


def test_only_what_differs_is_written() -> None:
    before = node({"rdma.k8s/verdict": "pass", "rdma.k8s/judged": "20260301T000000Z"})
    change = node_verdict.mark(before, model.PASS, "20260302T093000Z")
    assert change is not None
    assert change.patch == {"metadata": {"labels": {"rdma.k8s/judged": "20260302T093000Z"}}}
    assert change.matters is False


def test_what_matters() -> None:
    """Verdict and taint do, first or changed; the time alone does not."""
    held = node({"rdma.k8s/verdict": "pass", "rdma.k8s/judged": "20260301T000000Z"})
    fenced = node({"rdma.k8s/verdict": "pass", "rdma.k8s/judged": "20260302T093000Z"}, [OURS])
    changes = [
        node_verdict.mark(node(), model.PASS, "20260302T093000Z"),
        node_verdict.mark(held, model.WARN, "20260302T093000Z"),
        node_verdict.mark(fenced, model.PASS, "20260302T093000Z"),
        node_verdict.fence(node()),
        node_verdict.clear(held),
    ]
    assert [change.matters for change in changes if change is not None] == [True] * 5


def test_fence() -> None:
    """A node without a verdict gets the taint once, beside those of others; one with a verdict never."""
    before = node({}, [OTHER])
    change = node_verdict.fence(before)
    assert change is not None
    after = applied(before, change.patch)
    assert after["spec"]["taints"] == [OTHER, OURS]
    assert change.patch["metadata"] == {"resourceVersion": "7"}
    assert (change.before["unverified"], change.after["unverified"]) == (False, True)
    assert node_verdict.fence(after) is None
    assert node_verdict.fence(node({"rdma.k8s/verdict": "fail"})) is None


def test_clear() -> None:
    before = node({"a": "b", "rdma.k8s/verdict": "pass", "rdma.k8s/judged": "x"}, [OURS])
    change = node_verdict.clear(before)
    assert change is not None
    after = applied(before, change.patch)
    assert after == node({"a": "b"}) | {"spec": {}}
    assert change.after == {"labels": {}, "unverified": False}
    assert node_verdict.clear(after) is None


def test_taint_of_ours_with_another_effect_is_ours() -> None:
    """A node pool may have set NoExecute."""
    before = node({}, [{"key": "rdma.k8s/unverified", "effect": "NoExecute", "value": "x"}])
    assert node_verdict.fence(before) is None
    change = node_verdict.mark(before, model.PASS, "20260302T093000Z")
    assert change is not None
    assert applied(before, change.patch)["spec"] == {}


def test_unknown_nodes_are_refused_by_name() -> None:
    node_verdict.require_nodes({"n1"}, ["n1", "n2"])
    with pytest.raises(RdmaError) as caught:
        node_verdict.require_nodes({"n3", "n1", "n0"}, ["n1"])
    assert caught.value.code == "node_not_in_cluster"
    assert caught.value.details["nodes"] == ["n0", "n3"]
    assert "n0, n3" in caught.value.message
