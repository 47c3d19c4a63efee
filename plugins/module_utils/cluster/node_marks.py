# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Write labels and taints of Node objects. Private to rdma.k8s: it may change with any release."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Callable, Optional
from urllib.parse import quote

from ..core import node_verdict
from ..core.errors import RdmaError
from ..core.node_verdict import Change
from .client import Cluster
from .node_list import NODES

_ATTEMPTS = 4


def write(
    cluster: Cluster,
    decide: Callable[[dict[str, Any]], Optional[Change]],
    names: Collection[str],
    done: list[Change],
    dry_run: bool = False,
) -> None:
    """Change the named nodes as ``decide`` says; only a node that needs it is written, with one patch.

    Nodes are read in pages. One that somebody else changed meanwhile is read again and decided anew.

    :param done: gets each change that was made, also when a later one fails.
    :raises RdmaError: ``node_not_in_cluster`` before anything is changed, or one of the codes ``kube_...``.
    """
    nodes = {node["metadata"]["name"]: node for node in cluster.items(NODES)}
    node_verdict.require_nodes(names, nodes)
    for name in sorted(names):
        change = _write(cluster, nodes[name], decide, dry_run)
        if change is not None:
            done.append(change)


def _write(
    cluster: Cluster,
    node: dict[str, Any],
    decide: Callable[[dict[str, Any]], Optional[Change]],
    dry_run: bool,
) -> Optional[Change]:
    path = "%s/%s" % (NODES, quote(node["metadata"]["name"], safe=""))
    query = {"fieldManager": "rdma.k8s", **({"dryRun": "All"} if dry_run else {})}
    for attempt in range(1, _ATTEMPTS + 1):
        change = decide(node)
        if change is None:
            return None
        try:
            cluster.send("PATCH", path, change.patch, "application/merge-patch+json", **query)
        except RdmaError as error:
            if error.code != "kube_conflict" or attempt == _ATTEMPTS:
                raise
            node = cluster.get(path)
        else:
            return change
    return None
