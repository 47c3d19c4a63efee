# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fences of nodes: cordons with our mark, and rules that taint devices."""

from __future__ import annotations

from typing import Any, Optional

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.core.roll import fence


def node(unschedulable: Optional[bool] = None, **annotations: str) -> dict[str, Any]:
    """A node."""
    spec = {} if unschedulable is None else {"unschedulable": unschedulable}
    return {"metadata": {"name": "n1", "resourceVersion": "7", "annotations": annotations}, "spec": spec}


MARKED = {"rdma-k8s/drain-fence": "cordon"}


@pytest.mark.parametrize("found", [node(), node(False)])
def test_a_cordon_is_marked(found: dict[str, Any]) -> None:
    """Mark and cordon come in one patch, for this version of the node."""
    assert fence.cordon(found) == {
        "metadata": {"resourceVersion": "7", "annotations": MARKED},
        "spec": {"unschedulable": True},
    }


@pytest.mark.parametrize("found", [node(True), node(True, **MARKED)])
def test_a_node_that_is_cordoned_already(found: dict[str, Any]) -> None:
    """DEV-28: nobody's mark is written over."""
    assert fence.cordon(found) is None


def test_only_our_cordon_is_taken_back() -> None:
    """DEV-29."""
    assert fence.uncordon(node(True)) is None
    assert fence.uncordon(node(True, other="x")) is None
    assert fence.uncordon(node(True, **MARKED)) == {
        "metadata": {"resourceVersion": "7", "annotations": {"rdma-k8s/drain-fence": None}},
        "spec": {"unschedulable": None},
    }


def test_a_prefix_of_ones_own() -> None:
    patch = fence.cordon(node(), "x.example/")
    assert patch is not None
    assert patch["metadata"]["annotations"] == {"x.example/drain-fence": "cordon"}


def test_a_rule() -> None:
    """F99: the pool has the name of the node."""
    assert fence.rule("n1", "nic.example", "resource.k8s.io/v1") == {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceTaintRule",
        "metadata": {"name": "rdma-drain-n1", "labels": {"app.kubernetes.io/managed-by": "rdma.k8s"}},
        "spec": {
            "deviceSelector": {"driver": "nic.example", "pool": "n1"},
            "taint": {"key": "rdma-k8s/roll", "effect": "NoSchedule"},
        },
    }


SAID = "16 published devices selected. 1 pod would be evicted in 1 namespace if the effect was NoExecute."


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (
            {
                "type": "EvictionInProgress",
                "observedGeneration": 2,
                "message": SAID + " This information is old.",
            },
            SAID,
        ),
        ({"type": "EvictionInProgress", "observedGeneration": 2, "message": SAID}, SAID),
        ({"type": "EvictionInProgress", "observedGeneration": 1, "message": SAID}, ""),
        ({"type": "Other", "observedGeneration": 2, "message": SAID}, ""),
    ],
)
def test_what_a_rule_would_hit(condition: dict[str, Any], expected: str) -> None:
    """Only what is told of this very rule counts."""
    assert fence.told({"metadata": {"generation": 2}, "status": {"conditions": [condition]}}) == expected
    assert fence.told({}) == ""
