# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What sriov_node_state_info does, on the controller and elsewhere. Private to rdma.k8s: it may change any time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from . import _kube
from .cluster.sriov_states import Waiter
from .core import bounds
from .core.kube.manifest import require_name
from .core.spiderpool import rollout
from .news import silent

SPEC: dict[str, Any] = {
    "nodes": {"type": "list", "elements": "str", "default": []},
    "resource_prefix": {"type": "str", "default": "spidernet.io"},
    "allocatable": {"type": "bool", "default": True},
    "timeout": {"type": "int", "default": 0},
    "settle": {"type": "int", "default": 10},
    "stuck_after": {"type": "int", "default": 1800},
    "show": {"type": "bool", "default": True},
    **_kube.OPTIONS,
}


def wait(params: Mapping[str, Any], tell: Callable[[str], None] = silent) -> dict[str, Any]:
    """The return values.

    :param tell: takes a line for people whenever there are news.
    :raises RdmaError: ``number_out_of_range``, ``name_malformed``, or one of the codes ``kube_...``.
    """
    bounds.require_numbers(params, timeout=(0, 86400), settle=(0, 600), stuck_after=(10, 86400))
    for name in params["nodes"]:
        require_name(name, "A node")
    require_name(params["resource_prefix"], "A prefix of resources")
    tracker = rollout.Tracker(
        params["nodes"],
        stuck_after=params["stuck_after"],
        registered=params["allocatable"],
        resource_prefix=params["resource_prefix"],
    )
    cluster = _kube.connect_as(params)
    found = Waiter(cluster, tracker, params["timeout"], params["settle"], tell=tell).wait()
    return {
        "state": found.progress.state,
        "settled": found.settled,
        "problems": rollout.sentences(found.progress),
        "nodes": [_node(node) for node in found.progress.nodes],
        "history": [
            {"at": round(at, 1), "node": name, "phase": phase} for at, name, phase in tracker.history()
        ],
        "disable_drain": found.disable_drain,
        "waited": found.seconds,
        "looks": found.looks,
    }


def _node(node: rollout.NodeProgress) -> dict[str, Any]:
    return {
        "name": node.name,
        "phase": node.phase,
        "reasons": list(node.reasons),
        "stuck": node.stuck._asdict() if node.stuck is not None else None,
        "since": round(node.since, 1),
        "phases": [{"phase": phase, "seconds": round(seconds, 1)} for phase, seconds in node.way],
        "boots": node.boots,
    }
