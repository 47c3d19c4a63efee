# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a check needs of a cluster: where that was not read, nothing can be said. Private to rdma.k8s."""

from __future__ import annotations

from collections.abc import Mapping
from functools import wraps
from typing import Callable, Optional

from ..cluster_snapshot import ClusterSnapshot
from .context import Fleet, cluster_reason
from .registry import Outcome, unknown

SOURCES: Mapping[str, tuple[str, ...]] = {
    "nodes": ("nodes", "nodes"),
    "daemonsets": ("drivers", "daemonsets.apps"),
    "slices": ("dra", "resourceslices.resource.k8s.io"),
    "device_classes": ("dra", "deviceclasses.resource.k8s.io"),
    "claims": ("dra", "resourceclaims.resource.k8s.io"),
    "taint_rules": ("dra", "devicetaintrules.resource.k8s.io"),
    "prepare_events": ("events", "events"),
    "roll_leases": ("rolls", "leases.coordination.k8s.io"),
    "rolls": ("rolls", "configmaps"),
    "disruption_budgets": ("rolls", "poddisruptionbudgets.policy"),
    "driver_accounts": (
        "permissions",
        "clusterrolebindings.rbac.authorization.k8s.io",
        "clusterroles.rbac.authorization.k8s.io",
    ),
}
"""Field of a ClusterSnapshot -> its subset, and what is read for it."""


def why_unread(cluster: ClusterSnapshot, field: str) -> str:
    """Why a field is not known, in words without a full stop."""
    return cluster_reason(cluster, *SOURCES[field]).rstrip(".")


def unread(cluster: ClusterSnapshot, *fields: str) -> Optional[Outcome]:
    """Unknown, with the reason, when one of the fields was not read; ``None``: all were."""
    for field in fields:
        if getattr(cluster, field) is None:
            return unknown(cluster_reason(cluster, *SOURCES[field]))
    return None


def needs(*fields: str) -> Callable[[Callable[[Fleet], Outcome]], Callable[[Fleet], Outcome]]:
    """A check is unknown where one of these fields was not read."""

    def decorated(check: Callable[[Fleet], Outcome]) -> Callable[[Fleet], Outcome]:
        @wraps(check)
        def guarded(fleet: Fleet) -> Outcome:
            missing = unread(fleet.installed.cluster, *fields)
            return missing if missing is not None else check(fleet)

        return guarded

    return decorated
