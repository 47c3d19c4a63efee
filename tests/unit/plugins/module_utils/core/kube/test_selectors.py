# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which values a label of the node must have, and which taints a toleration matches (A70)."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from ansible_collections.rdma.k8s.plugins.module_utils.core.kube import selectors

TERM = "{matchExpressions: [{key: shape, operator: %s, values: [%s]}]}"


def affinity(*terms: str) -> str:
    wanted = "requiredDuringSchedulingIgnoredDuringExecution"
    return "{affinity: {nodeAffinity: {%s: {nodeSelectorTerms: [%s]}}}}" % (wanted, ", ".join(terms))


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("{}", set()),
        ("{nodeSelector: {shape: A}}", {"A"}),
        ("{nodeSelector: {other: A}}", set()),
        ("{nodeSelector: [shape]}", set()),
        (affinity(TERM % ("In", "A, B")), {"A", "B"}),
        (affinity(TERM % ("In", "A"), TERM % ("In", "C")), {"A", "C"}),
        (affinity(TERM % ("In", "A"), "{matchExpressions: []}"), set()),
        (affinity(TERM % ("NotIn", "A")), set()),
        (affinity(TERM % ("In", "1")), set()),
    ],
)
def test_the_values_that_a_label_must_have(spec: str, expected: set[str]) -> None:
    assert selectors.required(yaml.safe_load(spec), "shape") == expected


TAINT = {"key": "k", "effect": "NoSchedule", "value": "v"}


@pytest.mark.parametrize(
    ("toleration", "taint", "expected"),
    [
        ({"operator": "Exists"}, TAINT, True),
        ({"key": "k", "operator": "Exists"}, TAINT, True),
        ({"key": "k", "operator": "Exists", "effect": "NoExecute"}, TAINT, False),
        ({"key": "k", "value": "v"}, TAINT, True),
        ({"key": "k", "value": "w"}, TAINT, False),
        ({"key": "k", "operator": "Equal", "value": ""}, {"key": "k", "effect": "NoSchedule"}, True),
        ({"key": "k", "operator": "Gt", "value": "v"}, TAINT, False),
        ({"key": "other", "operator": "Exists"}, TAINT, False),
        ({"value": "v"}, TAINT, False),
        ({}, TAINT, False),
    ],
)
def test_a_toleration(toleration: dict[str, Any], taint: dict[str, Any], expected: bool) -> None:
    assert selectors.tolerates(toleration, taint) is expected


LABELS = {"app": "train", "rank": "0"}


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("{}", True),
        ("null", False),
        ("[]", False),
        ("{matchLabels: {app: train}}", True),
        ("{matchLabels: {app: train, rank: '1'}}", False),
        ("{matchExpressions: [{key: app, operator: In, values: [a, train]}]}", True),
        ("{matchExpressions: [{key: app, operator: In, values: [a]}]}", False),
        ("{matchExpressions: [{key: none, operator: In, values: [a]}]}", False),
        ("{matchExpressions: [{key: app, operator: NotIn, values: [a]}]}", True),
        ("{matchExpressions: [{key: app, operator: NotIn, values: [train]}]}", False),
        ("{matchExpressions: [{key: none, operator: NotIn, values: [a]}]}", True),
        ("{matchExpressions: [{key: app, operator: Exists}]}", True),
        ("{matchExpressions: [{key: none, operator: Exists}]}", False),
        ("{matchExpressions: [{key: none, operator: DoesNotExist}]}", True),
        ("{matchExpressions: [{key: app, operator: DoesNotExist}]}", False),
        ("{matchExpressions: [{key: app, operator: Gt, values: ['1']}]}", False),
        ("{matchLabels: {app: train}, matchExpressions: [{key: rank, operator: DoesNotExist}]}", False),
    ],
)
def test_a_selector_of_labels(selector: str, expected: bool) -> None:
    """As the API documents label selectors: both parts must hold, no selector chooses nothing."""
    assert selectors.selects(yaml.safe_load(selector), LABELS) is expected
