# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Node selectors, tolerations, selectors of labels. Private to rdma.k8s: it may change with any release."""

from __future__ import annotations

from typing import Any

from . import objects


def required(spec: dict[str, Any], label: str) -> frozenset[str]:
    """The values that a node's label may have for a pod, by nodeSelector and required affinity; empty: any.

    The terms of an affinity are alternatives, so a label counts only when each of them names it.
    """
    wanted = objects.text(objects.mapping(spec, "nodeSelector").get(label))
    if wanted:
        return frozenset((wanted,))
    affinity = objects.mapping(
        spec, "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution"
    )
    found: set[str] = set()
    for _position, term in objects.entries(affinity.get("nodeSelectorTerms")):
        values = _values(term, label)
        if not values:
            return frozenset()
        found |= values
    return frozenset(found)


def _values(term: dict[str, Any], label: str) -> set[str]:
    for _position, expression in objects.entries(term.get("matchExpressions")):
        if expression.get("key") == label and expression.get("operator") == "In":
            values = expression.get("values")
            return (
                {value for value in values if isinstance(value, str)} if isinstance(values, list) else set()
            )
    return set()


def tolerates(toleration: dict[str, Any], taint: dict[str, Any]) -> bool:
    """Whether a toleration matches a taint: an empty effect matches all, an empty key needs Exists (A70)."""
    effect, key = toleration.get("effect"), toleration.get("key")
    if effect and effect != taint.get("effect"):
        return False
    exists = toleration.get("operator") == "Exists"
    if not key:
        return exists
    if key != taint.get("key"):
        return False
    return exists or (
        toleration.get("operator") in (None, "", "Equal")
        and (toleration.get("value") or "") == (taint.get("value") or "")
    )


def selects(selector: Any, labels: dict[str, Any]) -> bool:
    """Whether a selector of labels (``matchLabels``, ``matchExpressions``) chooses an object with these labels.

    Without a selector nothing is chosen, with an empty one everything. What is no requirement chooses nothing.
    """
    if not isinstance(selector, dict):
        return False
    wanted = objects.mapping(selector, "matchLabels")
    return all(labels.get(key) == value for key, value in wanted.items()) and all(
        _meets(expression, labels)
        for _position, expression in objects.entries(selector.get("matchExpressions"))
    )


def _meets(expression: dict[str, Any], labels: dict[str, Any]) -> bool:
    key, operator = expression.get("key"), expression.get("operator")
    listed = expression.get("values")
    values = listed if isinstance(listed, list) else []
    if operator == "In":
        return key in labels and labels[key] in values
    if operator == "NotIn":
        return key not in labels or labels[key] not in values
    if operator == "Exists":
        return key in labels
    return operator == "DoesNotExist" and key not in labels
