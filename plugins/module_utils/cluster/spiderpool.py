# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a cluster has of Spiderpool and of its SR-IOV operator. Private to rdma.k8s: it may change with any release."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple, Optional

from ..core.errors import RdmaError
from ..core.kube import objects as kube
from ..core.spiderpool import deployed, deployment, ufm
from .client import Cluster, Resource
from .collect import collect
from .sources import LiveSource

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/"
SUBSETS = ("nodes", "drivers", "attachments")
_OURS = ",".join(["%s=%s" % pair for pair in deployment.LABELS.items()])
_SRIOV, _SPIDER = "sriovnetwork.openshift.io/v1", "spiderpool.spidernet.io/v2beta1"
_RBAC = "rbac.authorization.k8s.io/v1"
_SECRET = "/api/v1/namespaces/%s/secrets/%s" % (ufm.NAMESPACE, ufm.SECRET)
PROGRAM = (
    Resource("v1", "serviceaccounts", "ServiceAccount", True),
    Resource(_RBAC, "clusterroles", "ClusterRole", False),
    Resource(_RBAC, "clusterrolebindings", "ClusterRoleBinding", False),
    Resource(_RBAC, "roles", "Role", True),
    Resource(_RBAC, "rolebindings", "RoleBinding", True),
    Resource("v1", "configmaps", "ConfigMap", True),
    Resource("v1", "secrets", "Secret", True),
    Resource("apps/v1", "deployments", "Deployment", True),
)
"""Kinds of ib-kubernetes, in the order in which they are applied."""
KINDS = (
    *PROGRAM,
    Resource(_SRIOV, "sriovnetworkpoolconfigs", "SriovNetworkPoolConfig", True),
    Resource(_SRIOV, "sriovnetworknodepolicies", "SriovNetworkNodePolicy", True),
    Resource(_SPIDER, "spiderippools", "SpiderIPPool", False),
    Resource(_SPIDER, "spidermultusconfigs", "SpiderMultusConfig", True),
    Resource("apps/v1", "daemonsets", "DaemonSet", True),
)
"""Kinds of what is made, in the order in which it is applied."""


class User(NamedTuple):
    """A pod that has virtual functions."""

    namespace: str
    name: str
    node: str
    resources: tuple[str, ...]


def read(cluster: Cluster) -> deployment.Live:
    """Read the cluster.

    :raises RdmaError: one of the codes ``kube_...``, when something that decides cannot be read.
    """
    definitions = [cluster.find(DEFINITIONS + plural) for plural in deployed.PLURALS.values()]
    snapshot = collect(LiveSource(cluster), "", SUBSETS)
    if snapshot.errors:
        first = snapshot.errors[0]
        raise RdmaError(
            "kube_failed",
            "%s cannot be read: %s." % (first.source, first.reason),
            hint="Give the user the right to list it.",
        )
    return deployment.Live(
        snapshot,
        [definition for definition in definitions if definition is not None],
        _disable_drain(cluster),
        _gpu_policies(cluster),
    )


def _disable_drain(cluster: Cluster) -> Optional[bool]:
    """What the operator's configuration says; ``None``: there is none."""
    path = "/apis/%s/sriovoperatorconfigs" % _SRIOV
    try:
        found = [entry for entry in cluster.items(path) if kube.name(entry) == "default"]
    except RdmaError as error:
        if error.code != "kube_not_found":
            raise
        return None
    return kube.mapping(found[0], "spec").get("disableDrain") is True if found else None


def _gpu_policies(cluster: Cluster) -> Optional[list[dict[str, Any]]]:
    """The ClusterPolicies of the GPU operator; empty without the operator, ``None`` without the right."""
    try:
        return list(cluster.items("/apis/nvidia.com/v1/clusterpolicies"))
    except RdmaError as error:
        if error.code not in ("kube_not_found", "kube_forbidden"):
            raise
        return [] if error.code == "kube_not_found" else None


def secret_version(cluster: Cluster) -> str:
    """The version of the Secret for ib-kubernetes, never its content; empty: there is none.

    It says when pods must be started anew, and unlike a checksum nobody can try passwords on it.

    :raises RdmaError: one of the codes ``kube_...``.
    """
    return kube.text(kube.mapping(cluster.find(_SECRET) or {}, "metadata").get("resourceVersion"))


def ours(cluster: Cluster) -> list[dict[str, Any]]:
    """Whatever carries our labels, as references, in the order in which it was applied.

    :raises RdmaError: one of the codes ``kube_...``.
    """
    found = []
    for resource in KINDS:
        try:
            listed = list(cluster.items(resource.path(), labelSelector=_OURS))
        except RdmaError as error:
            if error.code != "kube_not_found":
                raise
            continue
        for content in listed:
            metadata = {"name": kube.name(content)}
            if resource.namespaced:
                metadata["namespace"] = kube.namespace(content)
            found.append({"apiVersion": resource.group_version, "kind": resource.kind, "metadata": metadata})
    return found


def left_over(
    there: Iterable[Mapping[str, Any]], wanted: Iterable[Mapping[str, Any]]
) -> list[Mapping[str, Any]]:
    """What carries our labels and is wanted no more."""
    kept = {_identity(entry) for entry in wanted}
    return [entry for entry in there if _identity(entry) not in kept]


def _identity(content: Mapping[str, Any]) -> tuple[str, str, str]:
    return kube.kind(content), kube.namespace(content), kube.name(content)


def users(cluster: Cluster, resources: Collection[str]) -> list[User]:
    """Pods that have one of the resources and have not ended; those that are made for tests are left out.

    :raises RdmaError: one of the codes ``kube_...``.
    """
    found = []
    for pod in cluster.items("/api/v1/pods", fieldSelector="status.phase!=Succeeded,status.phase!=Failed"):
        labels = kube.mapping(pod, "metadata", "labels")
        if all(labels.get(key) == value for key, value in deployment.LABELS.items()):
            continue
        containers = kube.mapping(pod, "spec").get("containers")
        held = {
            resource
            for _at, container in kube.entries(containers)
            for resource in kube.mapping(container, "resources", "limits")
            if resource in resources
        }
        if held:
            node = kube.text(kube.mapping(pod, "spec").get("nodeName"))
            found.append(User(kube.namespace(pod), kube.name(pod), node, tuple(sorted(held))))
    return found


class Ready(NamedTuple):
    """What is ready of networks, ib-kubernetes and the pods for tests; ``problems`` are sentences."""

    problems: tuple[str, ...]
    pods: int


def look(
    cluster: Cluster,
    networks: Iterable[str],
    test: Optional[Mapping[str, Any]],
    nodes: Optional[int],
    program: Optional[Mapping[str, Any]] = None,
) -> Ready:
    """One look: Spiderpool's controller has made each network, ib-kubernetes and the pods for tests run on all nodes.

    :param networks: ``NAMESPACE/NAME`` of the networks.
    :param test: the DaemonSet for tests, as a reference.
    :param nodes: the number of nodes that must have a pod; ``None``: at least one. A DaemonSet that fits no node has
        no pod that is not ready, and proves nothing (S243).
    :param program: the Deployment of ib-kubernetes, as a reference.
    """
    problems = []
    for called in networks:
        where, _slash, name = called.partition("/")
        if cluster.find(_network(where, name)) is None:
            problems.append(
                "Spiderpool's controller has made no NetworkAttachmentDefinition %s of its SpiderMultusConfig."
                % called
            )
    if program is not None:
        problems += _rollout(cluster.find(cluster.path_of(program)) or {}, kube.ref(program))
    pods = 0
    if test is not None:
        live = cluster.find(cluster.path_of(test)) or {}
        status = kube.mapping(live, "status")
        current = status.get("observedGeneration") == kube.mapping(live, "metadata").get("generation")
        wanted = status.get("desiredNumberScheduled") if current else None
        pods = int(status.get("numberReady") or 0) if current else 0
        least = 1 if nodes is None else nodes
        if wanted is None or wanted < least:
            problems.append("%s fits %d nodes, not %d." % (kube.ref(test), wanted or 0, least))
        elif pods < wanted:
            problems.append("%d of %d pods of %s are ready." % (pods, wanted, kube.ref(test)))
    return Ready(tuple(problems), pods)


def _network(where: str, name: str) -> str:
    return "/apis/k8s.cni.cncf.io/v1/namespaces/%s/network-attachment-definitions/%s" % (where, name)


def _rollout(live: Mapping[str, Any], reference: str) -> list[str]:
    """What a Deployment lacks until all of its pods are of the newest form and available, and no other is left."""
    status = kube.mapping(live, "status")
    if not status or status.get("observedGeneration") != kube.mapping(live, "metadata").get("generation"):
        return ["No controller has looked at %s as it is now." % reference]
    wanted = kube.mapping(live, "spec").get("replicas")
    updated, available, total = [
        int(status.get(key) or 0) for key in ("updatedReplicas", "availableReplicas", "replicas")
    ]
    if (updated, available, total) == (wanted, wanted, wanted):
        return []
    return [
        "%d of %s pods of %s are available, %d of %d are of its newest form."
        % (available, wanted, reference, updated, total)
    ]


def look_gone(cluster: Cluster, networks: Iterable[str], test: Optional[Mapping[str, Any]]) -> Ready:
    """One look: no network and no pod for tests is left. ib-kubernetes holds them back until UFM knows that they go.

    :param networks: ``NAMESPACE/NAME`` of the networks.
    :param test: the DaemonSet for tests, as a reference.
    """
    problems = []
    for called in networks:
        where, _slash, name = called.partition("/")
        if cluster.find(_network(where, name)) is not None:
            problems.append("NetworkAttachmentDefinition %s is still there." % called)
    pods = []
    if test is not None:
        path = "/api/v1/namespaces/%s/pods" % kube.namespace(test)
        name = "app.kubernetes.io/name=%s" % deployment.TEST_NAME
        pods = [kube.name(pod) for pod in cluster.items(path, labelSelector="%s,%s" % (name, _OURS))]
        if pods:
            problems.append("Pods of %s are still there: %s." % (kube.ref(test), ", ".join(sorted(pods))))
    return Ready(tuple(problems), len(pods))
