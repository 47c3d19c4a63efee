# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read who uses RDMA in a cluster. Private to rdma.k8s: it may change with any release.

Lists are read whole, in pages, and each object is cut down to what is needed as it arrives.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Optional
from urllib.parse import quote

from ..core import node_verdict
from ..core.errors import RdmaError
from ..core.kube.objects import mapping, text
from ..core.roll import users
from ..core.roll.draining import Look
from ..core.roll.users import Known, Scope
from .client import Cluster
from .node_list import NODES

PODS = "/api/v1/pods"
CLAIMS = "/apis/resource.k8s.io/v1/resourceclaims"
BUDGETS = "/apis/policy/v1/poddisruptionbudgets"
_NETWORKS = ("k8s.cni.cncf.io", "network-attachment-definitions")
_POLICIES = ("sriovnetwork.openshift.io", "sriovnetworknodepolicies")
_FEW = 16
"""Nodes up to which each and its pods are asked for; for more, one list of all is cheaper."""


def nodes(cluster: Cluster, names: Optional[Sequence[str]]) -> dict[str, dict[str, Any]]:
    """The Node objects of these names, by name; ``None``: all of the cluster.

    :raises RdmaError: ``node_not_in_cluster``, or one of the codes ``kube_...``.
    """
    found: dict[str, dict[str, Any]] = {}
    if names is None or len(names) > _FEW:
        found = {node["metadata"]["name"]: node for node in cluster.items(NODES)}
    else:
        for name in names:
            try:
                found[name] = cluster.get("%s/%s" % (NODES, quote(name, safe="")))
            except RdmaError as error:
                if error.code != "kube_not_found":
                    raise
    wanted = sorted(found if names is None else set(names))
    node_verdict.require_nodes(wanted, found)
    return {name: found[name] for name in wanted}


def widen(cluster: Cluster, scope: Scope) -> Scope:
    """The scope with what the cluster itself calls RDMA: resources of SR-IOV policies for RDMA, networks behind such
    resources. Kinds that are not served add nothing.

    :raises RdmaError: one of the codes ``kube_...``.
    """
    policies = _objects(cluster, *_POLICIES)
    names = {
        text(mapping(policy, "spec").get("resourceName"))
        for policy in policies
        if mapping(policy, "spec").get("isRdma") is True
    }
    # The domain before the name is a setting of the operator that no object tells.
    found = replace(scope, resources=(*scope.resources, *("*/%s" % name for name in sorted(names - {""}))))
    networks = users.networks_of(_objects(cluster, *_NETWORKS), found)
    return replace(found, networks=(*scope.networks, *networks))


def look(cluster: Cluster, nodes: Sequence[str], scope: Scope, budgets: bool = True) -> list[Look]:
    """What uses RDMA on these nodes now.

    :param budgets: read disruption budgets too; without them nothing is known of what stands against an eviction.
    :raises RdmaError: one of the codes ``kube_...``.
    """
    by_node: dict[str, list[dict[str, Any]]] = {node: [] for node in nodes}
    for pod in _pods(cluster, nodes):
        node = text(mapping(pod, "spec").get("nodeName"))
        if node in by_node:
            by_node[node].append(users.slim_pod(pod, scope))
    # Claims are read after the pods: one that was released between the two is no longer held by anybody.
    claims = [users.slim_claim(claim) for claim in _claims(cluster)]
    known = Known(claims, cluster.items(BUDGETS) if budgets else ())
    return [
        Look(
            node,
            tuple(users.users(pods, known, scope)),
            tuple(users.claims_on(node, claims, scope, {pod["metadata"].get("uid", "") for pod in pods})),
        )
        for node, pods in by_node.items()
    ]


def _pods(cluster: Cluster, nodes: Sequence[str]) -> Iterator[dict[str, Any]]:
    if len(nodes) > _FEW:
        yield from cluster.items(PODS, fieldSelector="spec.nodeName!=")
        return
    for node in nodes:
        yield from cluster.items(PODS, fieldSelector="spec.nodeName=" + node)


def _claims(cluster: Cluster) -> Iterator[dict[str, Any]]:
    try:
        yield from cluster.items(CLAIMS)
    except RdmaError as error:
        if error.code != "kube_not_found":  # before Kubernetes 1.34 there are none of this version
            raise


def _objects(cluster: Cluster, group: str, plural: str) -> list[dict[str, Any]]:
    for resource in cluster.resources("/apis"):
        if resource.plural == plural and resource.group_version.partition("/")[0] == group:
            return list(cluster.items(resource.path()))
    return []
