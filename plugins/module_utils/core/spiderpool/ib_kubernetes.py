# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The program ib-kubernetes, which gives GUIDs and tells UFM partition keys: its objects, and wrong wishes.

Private to rdma.k8s: it may change with any release.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Optional

from ..cluster_snapshot import ClusterNode
from ..errors import RdmaError
from ..kube import manifest
from ..net import quoted
from . import ufm
from .issue import Issue, error, is_between, warning

NAME, CONFIG_MAP, LEASE = "ib-kubernetes", "ib-kubernetes-config", "ib-kubernetes-leader"
RBAC = "rbac.authorization.k8s.io"
CONTROL_PLANE = ("node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master")
"""Labels of the nodes on which it runs unless others are told (S148)."""
TOLERATIONS = tuple([{"key": key, "operator": "Exists", "effect": "NoSchedule"} for key in CONTROL_PLANE])
"""Control planes usually repel pods, and its own manifest does not say that it tolerates that."""
PLATFORM = {"kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
"""Its images are for this platform only (S148)."""
GUID_START, GUID_END = "02:00:00:00:00:00:00:00", "02:FF:FF:FF:FF:FF:FF:FF"
"""Its own range (S149)."""
MOST_REPLICAS = 10
USER = 65532
"""It needs no rights of root, so it runs as a user who is nobody else."""
MARK = "rdma.k8s/ufm-secret"
"""The annotation of its pods that changes with the Secret, which is read at the start only."""
_GUID = re.compile(r"[0-9A-Fa-f]{2}(?::[0-9A-Fa-f]{2}){7}")
_UNUSABLE = (0, 2**64 - 1)


class Program(NamedTuple):
    """How ib-kubernetes is to run.

    :param image: with a tag or a digest; there is no default.
    :param replicas: pods, each on a node of its own, of which one leads (S148).
    :param guid_start: the first GUID that it gives, and ``guid_end`` the last one; eight bytes with colons (S149).
    :param node_selector: labels of the nodes for it; without them nodes of the control plane (S148).
    :param pull_secrets: names of Secrets of the registry.
    :param secret_version: the version of the Secret that the API server tells; empty: not known.
    """

    image: str = ""
    replicas: int = 2
    guid_start: str = GUID_START
    guid_end: str = GUID_END
    node_selector: Mapping[str, str] = {}
    tolerations: Sequence[Mapping[str, Any]] = TOLERATIONS
    pull_secrets: Sequence[str] = ()
    secret_version: str = ""


def documents(program: Program) -> list[dict[str, Any]]:
    """All objects, in the order in which they are applied: account, rights, settings, pods."""
    place = {"name": NAME, "namespace": ufm.NAMESPACE}
    account = [{"kind": "ServiceAccount", **place}]
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": dict(place)},
        {
            "apiVersion": RBAC + "/v1",
            "kind": "ClusterRole",
            "metadata": {"name": NAME},
            "rules": _everywhere(),
        },
        {
            "apiVersion": RBAC + "/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": NAME},
            "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": NAME},
            "subjects": account,
        },
        {"apiVersion": RBAC + "/v1", "kind": "Role", "metadata": dict(place), "rules": _election()},
        {
            "apiVersion": RBAC + "/v1",
            "kind": "RoleBinding",
            "metadata": dict(place),
            "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": NAME},
            "subjects": account,
        },
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": CONFIG_MAP, "namespace": ufm.NAMESPACE},
            "data": _settings(program),
        },
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": dict(place), "spec": _spec(program)},
    ]


def _everywhere() -> list[dict[str, Any]]:
    """Pods and networks of all namespaces, whose annotations and finalizers it writes.

    Releases differ in whether they patch or update, and who may do one of both can do the other's work.
    """
    verbs = ["get", "list", "watch", "patch", "update"]
    return [
        {"apiGroups": [""], "resources": ["pods"], "verbs": list(verbs)},
        {
            "apiGroups": ["k8s.cni.cncf.io"],
            "resources": ["network-attachment-definitions"],
            "verbs": list(verbs),
        },
    ]


def _election() -> list[dict[str, Any]]:
    """Its lease (S148) and events about it; ``create`` cannot be bound to a name."""
    leases = {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"]}
    return [
        {**leases, "verbs": ["create"]},
        {**leases, "resourceNames": [LEASE], "verbs": ["get", "update", "patch"]},
        {"apiGroups": [""], "resources": ["events"], "verbs": ["create"]},
    ]


def _settings(program: Program) -> dict[str, str]:
    """What it is told (S149)."""
    return {
        "DAEMON_SM_PLUGIN": "ufm",
        "DAEMON_SM_PLUGIN_PATH": "/plugins",
        "DAEMON_PERIODIC_UPDATE": "5",
        "GUID_POOL_RANGE_START": program.guid_start,
        "GUID_POOL_RANGE_END": program.guid_end,
    }


def _spec(program: Program) -> dict[str, Any]:
    """Two pods never share a node, so one must go before the next one comes."""
    labels = {"app.kubernetes.io/name": NAME}
    metadata: dict[str, Any] = {"labels": labels}
    # A rollout for each change of what is read at the start only.
    annotations = {"rdma.k8s/guids": "%s-%s" % (program.guid_start, program.guid_end)}
    if program.secret_version:
        annotations[MARK] = program.secret_version
    metadata["annotations"] = annotations
    return {
        "replicas": program.replicas,
        "selector": {"matchLabels": labels},
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0}},
        "template": {"metadata": metadata, "spec": _pod(program, labels)},
    }


def _pod(program: Program, labels: Mapping[str, str]) -> dict[str, Any]:
    apart = {"labelSelector": {"matchLabels": dict(labels)}, "topologyKey": "kubernetes.io/hostname"}
    affinity: dict[str, Any] = {
        "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}
    }
    if not program.node_selector:
        terms = [{"matchExpressions": [{"key": key, "operator": "Exists"}]} for key in CONTROL_PLANE]
        affinity["nodeAffinity"] = {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}
        }
    pod: dict[str, Any] = {
        "serviceAccountName": NAME,
        "priorityClassName": "system-cluster-critical",
        "hostNetwork": True,  # UFM is in the network of the nodes (S148)
        "enableServiceLinks": False,
        "nodeSelector": selector(program),
        "affinity": affinity,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": USER,
            "runAsGroup": USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [_container(program)],
    }
    if program.tolerations:
        pod["tolerations"] = [dict(entry) for entry in program.tolerations]
    if program.pull_secrets:
        pod["imagePullSecrets"] = [{"name": called} for called in program.pull_secrets]
    return pod


def _container(program: Program) -> dict[str, Any]:
    return {
        "name": NAME,
        "image": program.image,
        "command": ["/ib-kubernetes"],
        "env": [
            _field("K8S_NODE", "spec.nodeName"),
            _field("POD_NAMESPACE", "metadata.namespace"),
            _field("POD_UID", "metadata.uid"),
            *[_from("configMapKeyRef", CONFIG_MAP, key, False) for key in _settings(program)],
            *[_from("secretKeyRef", ufm.SECRET, key, key in ufm.OPTIONAL) for key in ufm.KEYS],
        ],
        "resources": {"requests": {"cpu": "100m", "memory": "300Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
    }


def _field(name: str, path: str) -> dict[str, Any]:
    """With the version that the API server would add: the reference is compared as a whole in the second run."""
    return {"name": name, "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": path}}}


def _from(source: str, called: str, key: str, optional: bool) -> dict[str, Any]:
    reference: dict[str, Any] = {"name": called, "key": key}
    if optional:
        reference["optional"] = True
    return {"name": key, "valueFrom": {source: reference}}


def selector(program: Program) -> dict[str, str]:
    """The labels that a node for it must have, beside those of the control plane."""
    return {**PLATFORM, **program.node_selector}


# --- what is wrong with a wish


def judge(program: Program, ufm_keys: Optional[Collection[str]], is_used: bool) -> Iterator[Issue]:
    """What reading can see.

    :param ufm_keys: names of the keys of the Secret; ``None``: no Secret is made, and the program ends (S146).
    :param is_used: whether a network lets it handle its virtual functions (S153).
    """
    yield from _image(program.image)
    if ufm_keys is None:
        message = "it ends at once without %s: give what it has to know of UFM, too" % ufm.SECRET
        yield error("ib-kubernetes-without-ufm", "ufm", message)
    if not is_between(program.replicas, 1, MOST_REPLICAS):
        message = "a number of pods from 1 to %d is needed, found %s" % (
            MOST_REPLICAS,
            quoted(program.replicas),
        )
        yield error("ib-kubernetes-replicas", "replicas", message)
    yield from _guids(program)
    for called in program.pull_secrets:
        try:
            manifest.require_name(called, "a pull secret")
        except RdmaError as problem:
            yield error("name-malformed", "pull_secrets", problem.message.rstrip("."))
    if not is_used:
        message = "no network lets ib-kubernetes handle it, so it does nothing: give rails a pkey"
        yield warning("ib-kubernetes-unused", "", message)


def _image(image: str) -> Iterator[Issue]:
    """An image is named, and by a tag or a digest; ``latest`` is another one each day."""
    rest, _at, digest = image.partition("@")
    tag = rest.rpartition("/")[2].partition(":")[2]
    if not image or any(sign.isspace() for sign in image) or not rest.rpartition("/")[2].partition(":")[0]:
        message = "the name of an image with a tag or a digest is needed, found %s" % quoted(image)
        yield error("ib-kubernetes-image", "image", message)
    elif not digest and tag in ("", "latest"):
        message = "give %s a tag of a release or a digest, so that it is the same image each day" % quoted(
            image
        )
        yield error("ib-kubernetes-image-not-pinned", "image", message)


def _guids(program: Program) -> Iterator[Issue]:
    """Two GUIDs in order; ib-sriov-cni refuses those that are all zeros or all ones (S154)."""
    values = []
    for at, value in (("guid_start", program.guid_start), ("guid_end", program.guid_end)):
        if not _GUID.fullmatch(str(value)):
            message = "a GUID has eight bytes, such as %s, found %s" % (GUID_START, quoted(value))
            yield error("guid-syntax", at, message)
            continue
        values.append(int(str(value).replace(":", ""), 16))
        if values[-1] in _UNUSABLE:
            message = "%s is no GUID that a virtual function can have" % value
            yield error("guid-unusable", at, message)
    if len(values) == 2 and values[0] > values[1]:
        message = "the range ends at %s, before it begins" % program.guid_end
        yield error("guid-order", "guid_end", message)


def judge_nodes(program: Program, nodes: Sequence[ClusterNode]) -> Iterator[Issue]:
    """Each pod needs a node of its own, since two of them never share one (S148)."""
    wanted = selector(program)
    found = [
        node.name
        for node in nodes
        if all(node.labels.get(key) == value for key, value in wanted.items())
        and (program.node_selector or any(key in node.labels for key in CONTROL_PLANE))
    ]
    if is_between(program.replicas, 1) and len(found) < program.replicas:
        labels = ",".join(["%s=%s" % pair for pair in sorted(wanted.items())])
        where = "" if program.node_selector else " of the control plane"
        message = (
            "%d nodes%s with %s are needed, one for each pod, found %s: set replicas or node_selector"
            % (
                program.replicas,
                where,
                labels,
                ", ".join(found) or "none",
            )
        )
        yield error("ib-kubernetes-no-node", "node_selector", message)
