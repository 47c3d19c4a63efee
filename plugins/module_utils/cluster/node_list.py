# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read nodes, their slices and the pods of the node agent. Private to rdma.k8s: it may change with any release.

Pages of 500 objects, each reduced as it arrives: two calls for 1,000 nodes, two for their slices, two for the pods.
The lists are read side by side, so that one is taken apart while the server puts together the next.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Optional, Union
from urllib.parse import quote

from ..core import inventory
from ..core.errors import RdmaError
from .client import Cluster

NODES = "/api/v1/nodes"
SLICES = "/apis/resource.k8s.io/v1/resourceslices"  # F99


@dataclass(frozen=True)
class Query:
    """What to read.

    :param selector: labels of the nodes, as the API takes them; empty: all nodes.
    :param labels: labels that are kept, ``annotations`` likewise, see :func:`inventory.node_facts`.
    :param agent: namespace and label selector of the pods of the node agent; ``None``: read no pods.
    """

    selector: str = ""
    labels: Sequence[str] = ()
    annotations: Sequence[str] = ()
    agent: Optional[tuple[str, str]] = None


def read(cluster: Cluster, query: Query) -> dict[str, Any]:
    """The facts of all objects as plain data: ``nodes``, ``slices`` (or why they may not be read), ``pods``.

    :raises RdmaError: one of the codes ``kube_...``.
    """
    with ThreadPoolExecutor(3) as pool:
        all_nodes = pool.submit(_nodes, cluster, query)
        all_slices = pool.submit(_slices, cluster)
        all_pods = pool.submit(_pods, cluster, query.agent)
        return {"nodes": all_nodes.result(), "slices": all_slices.result(), "pods": all_pods.result()}


def _nodes(cluster: Cluster, query: Query) -> list[dict[str, Any]]:
    selected: dict[str, Any] = {"labelSelector": query.selector} if query.selector else {}
    return [
        inventory.node_facts(node, query.labels, query.annotations)
        for node in cluster.items(NODES, **selected)
    ]


def _slices(cluster: Cluster) -> Union[list[dict[str, Any]], str]:
    """A server without the API has no slice."""
    try:
        pieces = cluster.items(SLICES, fieldSelector="spec.driver=" + inventory.DRIVER)
        found = [inventory.slice_facts(piece) for piece in pieces]
    except RdmaError as error:
        if error.code == "kube_not_found":
            return []
        if error.code == "kube_forbidden":
            return str(error)
        raise
    return [facts for facts in found if facts is not None]


def _pods(cluster: Cluster, agent: Optional[tuple[str, str]]) -> list[dict[str, Any]]:
    if agent is None:
        return []
    namespace, selector = agent
    selected: dict[str, Any] = {"labelSelector": selector} if selector else {}
    path = "/api/v1/namespaces/%s/pods" % quote(namespace, safe="")
    found = [inventory.pod_facts(pod) for pod in cluster.items(path, **selected)]
    return [facts for facts in found if facts is not None]
