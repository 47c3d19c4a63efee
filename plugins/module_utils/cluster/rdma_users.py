# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read who uses RDMA in a cluster. Private to rdma.k8s: it may change with any release.

Lists are read whole, in pages, and each object is cut down to what is needed as it arrives.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Optional
from urllib.parse import quote

from ..core import node_verdict
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
            node = cluster.find("%s/%s" % (NODES, quote(name, safe="")))
            if node is not None:
                found[name] = node
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
    wanted = frozenset(nodes)
    pods = [
        users.slim_pod(pod, scope)
        for selector in pod_selectors(nodes)
        for pod in cluster.items(PODS, fieldSelector=selector)
        if mapping(pod, "spec").get("nodeName") in wanted
    ]
    # Claims are read after the pods: one that was released between the two is no longer held by anybody.
    claims = map(users.slim_claim, cluster.items(CLAIMS)) if serves_claims(cluster) else ()
    return looks(nodes, pods, Known(claims, cluster.items(BUDGETS) if budgets else ()), scope)


def looks(nodes: Sequence[str], pods: Iterable[dict[str, Any]], known: Known, scope: Scope) -> list[Look]:
    """The same from objects that were read."""
    pods_of: dict[str, list[dict[str, Any]]] = {node: [] for node in nodes}
    for pod in pods:
        pods_of[text(mapping(pod, "spec").get("nodeName"))].append(pod)
    uids = {
        node: frozenset(text(mapping(pod, "metadata").get("uid")) for pod in found)
        for node, found in pods_of.items()
    }
    claims = users.claims_by_node(nodes, known.claims.values(), scope, uids)
    return [
        Look(node, tuple(users.users(pods_of[node], known, scope)), tuple(claims[node])) for node in nodes
    ]


def pod_selectors(nodes: Sequence[str]) -> list[str]:
    """The field selectors of the lists that have the pods of the nodes: one for each node, or one for all pods when
    the nodes are many."""
    return ["spec.nodeName!="] if len(nodes) > _FEW else ["spec.nodeName=" + node for node in nodes]


def serves_claims(cluster: Cluster) -> bool:
    """Whether there are claims of the version that is read here, which came with Kubernetes 1.34."""
    return cluster.serves("resource.k8s.io/v1", "resourceclaims")


def _objects(cluster: Cluster, group: str, plural: str) -> list[dict[str, Any]]:
    for resource in cluster.resources("/apis"):
        if resource.plural == plural and resource.group_version.partition("/")[0] == group:
            return list(cluster.items(resource.path()))
    return []
