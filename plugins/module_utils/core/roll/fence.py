# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Keep new users of RDMA away from a node. Private to rdma.k8s: it may change with any release.

A cordon keeps all pods away. A rule that taints the devices of the node keeps away only pods with claims for them, and
lets the others come.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Optional

from ..kube.objects import entries, mapping, text
from .names import PREFIX, TAINT

CORDON, RULE, NONE = FENCES = ("cordon", "taint", "none")
NO_SCHEDULE, NO_EFFECT = "NoSchedule", "None"
"""Effects of a rule: devices are not allocated any more; nothing happens, but its status tells what it would hit."""

MARK = "drain-fence"
"""Annotation of a node that was cordoned by a drain; without it the cordon is somebody else's."""
RULE_NAME = "rdma-drain-"
"""The rule of a node has this and the name of the node as its name."""
RULE_GROUP, RULE_KIND = "resource.k8s.io", "DeviceTaintRule"

_LABELS = {"app.kubernetes.io/managed-by": "rdma.k8s"}
_CONDITION = "EvictionInProgress"


def cordon(node: Mapping[str, Any], prefix: str = PREFIX) -> Optional[dict[str, Any]]:
    """The patch that cordons a node and remembers that we did; ``None``: it is cordoned already, whoever did that."""
    if mapping(node, "spec").get("unschedulable") is True:
        return None
    return _patch(node, {prefix + MARK: CORDON}, True)


def uncordon(node: Mapping[str, Any], prefix: str = PREFIX) -> Optional[dict[str, Any]]:
    """The patch that takes back our cordon and its mark at once; ``None``: the cordon is not ours.

    Where somebody has uncordoned the node meanwhile, only the mark goes.
    """
    if prefix + MARK not in mapping(node, "metadata", "annotations"):
        return None
    return _patch(node, {prefix + MARK: None}, None)


def _patch(
    node: Mapping[str, Any], annotations: Mapping[str, Optional[str]], unschedulable: Optional[bool]
) -> dict[str, Any]:
    """A merge patch for exactly this version of the node."""
    version = text(mapping(node, "metadata").get("resourceVersion"))
    return {
        "metadata": {"resourceVersion": version, "annotations": dict(annotations)},
        "spec": {"unschedulable": unschedulable},
    }


def rule(
    node: str, driver: str, group_version: str, effect: str = NO_SCHEDULE, name_prefix: str = RULE_NAME
) -> dict[str, Any]:
    """The rule that taints the devices of a driver on a node; their pool has the name of the node (F99)."""
    return {
        "apiVersion": group_version,
        "kind": RULE_KIND,
        "metadata": {"name": name_prefix + node, "labels": dict(_LABELS)},
        "spec": {
            "deviceSelector": {"driver": driver, "pool": node},
            "taint": {"key": TAINT, "effect": effect},
        },
    }


def told(content: Mapping[str, Any]) -> str:
    """What the status of a rule without effect tells: how many devices and pods it would hit; empty: nothing yet."""
    generation = mapping(content, "metadata").get("generation")
    for _at, condition in entries(mapping(content, "status").get("conditions")):
        if condition.get("type") == _CONDITION and condition.get("observedGeneration") == generation:
            return text(condition.get("message")).partition(" This information")[0]
    return ""
