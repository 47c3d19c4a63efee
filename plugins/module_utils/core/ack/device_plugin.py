# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Is the DaemonSet of the device plugin rolled out, and everywhere it must be. Private to rdma.k8s.

Counts come from the status that the controller writes (A50). They are not enough: newer versions of the plugin only
prefer Lingjun nodes, so every Lingjun node is looked up among the nodes of ready pods (A52).
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, NamedTuple, Optional

from ..cluster_snapshot import DaemonSet
from ..kube.objects import mapping
from .names import DAEMONSET, NAMESPACE
from .verdict import FAIL, WARN, Reason, failure, warning

MISSING = failure(
    "ds-missing", "there is no DaemonSet %s in namespace %s" % (DAEMONSET, NAMESPACE), "present", "absent"
)


class Rollout(NamedTuple):
    """What the controller told of a DaemonSet. ``observed`` is ``None`` when it has not looked at it yet.

    ``scheduled`` and ``misscheduled`` are ``None`` where nobody kept them.
    """

    generation: int
    observed: Optional[int]
    desired: int
    ready: int
    available: int
    updated: int
    scheduled: Optional[int]
    misscheduled: Optional[int]


def of_object(content: Any) -> Optional[Rollout]:
    """From an object of the API; a number that is left out is 0 (A50). ``None``: there is no object."""
    if not isinstance(content, dict):
        return None
    metadata, status = mapping(content, "metadata"), mapping(content, "status")
    return Rollout(
        generation=_count(metadata.get("generation")),
        observed=_count(status["observedGeneration"]) if "observedGeneration" in status else None,
        desired=_count(status.get("desiredNumberScheduled")),
        ready=_count(status.get("numberReady")),
        available=_count(status.get("numberAvailable")),
        updated=_count(status.get("updatedNumberScheduled")),
        scheduled=_count(status.get("currentNumberScheduled")),
        misscheduled=_count(status.get("numberMisscheduled")),
    )


def _count(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def of_snapshot(found: DaemonSet) -> Rollout:
    """From a ClusterSnapshot, where 0 stands for a generation that was left out."""
    return Rollout(
        generation=found.generation,
        observed=found.observed_generation or None,
        desired=found.desired,
        ready=found.ready,
        available=found.available,
        updated=found.updated,
        scheduled=found.scheduled,
        misscheduled=found.misscheduled,
    )


def judge(
    rollout: Optional[Rollout],
    lingjun_nodes: Optional[Collection[str]] = None,
    ready_pod_nodes: Optional[Collection[str]] = None,
) -> list[Reason]:
    """What is wrong with the DaemonSet (A51, A52); nothing when it is as it should be.

    :param lingjun_nodes: the nodes that it must cover; ``None``: not known, an empty one says that there are none.
    :param ready_pod_nodes: the nodes of its ready pods; ``None``: not known, so coverage is not judged.
    """
    if rollout is None:
        return [MISSING]
    found = []
    if rollout.observed is None or rollout.observed < rollout.generation:
        seen = "none" if rollout.observed is None else str(rollout.observed)
        message = "the controller has not yet looked at the present specification"
        found.append(failure("ds-status-stale", message, "generation %d" % rollout.generation, seen))
    if rollout.desired == 0:
        none_wanted = lingjun_nodes is not None and not lingjun_nodes
        found.append(
            Reason(
                "ds-no-nodes", WARN if none_wanted else FAIL, "no node is to have a pod", "at least 1", "0"
            )
        )
    else:
        found += _counts(rollout)
    if lingjun_nodes is not None and ready_pod_nodes is not None:
        covered = set(ready_pod_nodes)
        found += [
            failure("ds-node-uncovered", "no ready pod of the plugin runs there", "one", "none", name)
            for name in sorted(set(lingjun_nodes) - covered)
        ]
    return found


def _counts(rollout: Rollout) -> list[Reason]:
    desired = str(rollout.desired)
    found = []
    if rollout.scheduled is not None and rollout.scheduled < rollout.desired:
        message = "pods are missing on nodes that are to have one"
        found.append(failure("ds-not-scheduled", message, desired, str(rollout.scheduled)))
    if rollout.ready < rollout.desired:
        found.append(failure("ds-not-ready", "not all pods are ready", desired, str(rollout.ready)))
    elif rollout.available < rollout.desired:
        message = "all pods are ready, not all of them for long enough"
        found.append(warning("ds-unavailable", message, desired, str(rollout.available)))
    if rollout.updated < rollout.desired:
        message = "pods of an older specification are left"
        found.append(warning("ds-outdated-pods", message, desired, str(rollout.updated)))
    if rollout.misscheduled:
        message = "pods run on nodes that are to have none"
        found.append(warning("ds-misscheduled", message, "0", str(rollout.misscheduled)))
    return found
