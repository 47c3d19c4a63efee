# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The objects of DRANET and of our provider in a cluster. Private to rdma.k8s: it may change with any release.

DRANET runs privileged, as in its own chart, and with less it does not work: it enters the network namespaces of pods
(CAP_SYS_ADMIN, CAP_NET_ADMIN), takes BPF programs off interfaces (CAP_BPF, CAP_PERFMON), and a DRANET with children
writes below /proc/sys/net of the namespaces of pods before a child comes up (F111), which a runtime mounts read-only in
a container that is not privileged, whatever capabilities it has.

The provider reads only: it has no capability, no writable mount but the directory of its socket, and no account. In the
host's network namespace its own /sys and /proc/sys show the interfaces of the host, so it needs no mount of the host's.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from ..kube.objects import mapping
from . import claims
from .constants import DRIVER
from .dranet_versions import Abilities
from .dranet_wish import OCA_DIRECTORY, RUN_DIRECTORY, SOCKET, WEBHOOK_URL, DeploymentWish, table_text
from .options import CHILD_RANGE_OPTION, PROVIDER as OKE

DRANET = "dranet"
PROVIDER = "rdma-k8s-provider"
PART_OF = "rdma-k8s-oke-dranet"
"""Everything that the role makes has it as the label ``app.kubernetes.io/part-of``."""

METRICS_PORT = 9177  # F115
PROVIDER_ADDRESS = "127.0.0.1"
PROVIDER_PORT = 9178
TABLE_DIRECTORY = "/etc/rdma-k8s"
TABLE_FILE = "nic-table.json"

_RBAC = "rbac.authorization.k8s.io"
RULES: tuple[tuple[str, tuple[str, ...], tuple[str, ...], tuple[str, ...]], ...] = (  # F119
    ("", ("nodes",), ("get",), ()),
    ("", ("events",), ("create", "patch", "update"), ()),
    ("resource.k8s.io", ("resourceslices",), ("list", "watch", "create", "update", "delete"), ()),
    ("resource.k8s.io", ("resourceclaims", "deviceclasses"), ("get",), ()),
    ("resource.k8s.io", ("resourceclaims/status",), ("patch", "update"), ()),
    # Asked for since Kubernetes 1.36. An older API server never asks; a cluster that is upgraded needs no change.
    (
        "resource.k8s.io",
        ("resourceclaims/driver",),
        ("associated-node:patch", "associated-node:update"),
        (DRIVER,),
    ),
)
"""What the account of DRANET may do: API group, resources, verbs, names."""
_RESOURCES = {"requests": {"cpu": "100m", "memory": "50Mi"}}  # F115
_PROVIDER_RESOURCES = {
    "requests": {
        "cpu": "100m",
        "memory": "64Mi",
    },  # no less than the driver, or its scans starve the provider
    "limits": {"memory": "256Mi"},
}

_NODE_NAME = {
    "name": "NODE_NAME",
    "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "spec.nodeName"}},
}

WAIT = """\
import socket, sys, time
while True:
    try:
        with socket.socket(socket.AF_UNIX) as probe:
            probe.settimeout(5)
            probe.connect(sys.argv[1])
            break
    except OSError as error:
        print("the provider does not listen yet: %s" % error, flush=True)
        time.sleep(1)
"""
"""Program of the init container: DRANET dies when it starts before its webhook (F97, decision 20)."""


def dranet(wish: DeploymentWish, able: Abilities) -> list[dict[str, Any]]:
    """The objects of DRANET, for a cluster whose chart cannot express the wish."""
    return [
        {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": _metadata(DRANET, wish.namespace),
        },
        {
            "apiVersion": _RBAC + "/v1",
            "kind": "ClusterRole",
            "metadata": _metadata(DRANET),
            "rules": [_rule(*entry) for entry in RULES],
        },
        {
            "apiVersion": _RBAC + "/v1",
            "kind": "ClusterRoleBinding",
            "metadata": _metadata(DRANET),
            "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": DRANET},
            "subjects": [{"kind": "ServiceAccount", "name": DRANET, "namespace": wish.namespace}],
        },
        _daemonset(wish, DRANET, _dranet_pod(wish, able)),
    ]


def provider(wish: DeploymentWish) -> list[dict[str, Any]]:
    """The objects of the provider."""
    documents: list[dict[str, Any]] = []
    if wish.nic_table is not None:
        documents.append(
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": _metadata(PROVIDER, wish.namespace),
                "data": {TABLE_FILE: table_text(wish.nic_table)},
            }
        )
    made = _daemonset(wish, PROVIDER, _provider_pod(wish))
    if wish.nic_table is not None:  # the table is read at the start, so another one makes other pods
        digest = hashlib.sha256(table_text(wish.nic_table).encode("utf-8")).hexdigest()[:16]
        made["spec"]["template"]["metadata"]["annotations"] = {"rdma.k8s/nic-table": digest}
    return [*documents, made]


def device_class(wish: DeploymentWish) -> list[dict[str, Any]]:
    """The DeviceClass for the RDMA NICs; with the provider only NICs that can be served now (F44)."""
    if not wish.device_class:
        return []
    made = claims.device_class(wish.device_class, wish.mode == "webhook")
    made["metadata"]["labels"] = {**made["metadata"]["labels"], "app.kubernetes.io/part-of": PART_OF}
    return [made]


def args(wish: DeploymentWish, able: Abilities) -> list[str]:
    """The command line of DRANET. Flags that a version does not know are fatal at start (F97): they are left out."""
    found = ["/dranet", "--v=%d" % wish.log_verbosity, "--hostname-override=$(NODE_NAME)"]
    found.append("--kubelet-root-dir=%s" % wish.kubelet_root)
    if wish.filter:
        found.append("--filter=%s" % wish.filter)
    if wish.move_ib_interfaces is not None:
        found.append("--move-ib-interfaces=%s" % str(wish.move_ib_interfaces).lower())
    if wish.uplink_interfaces and able.uplinks:
        found.append("--uplink-interfaces=%s" % ",".join(wish.uplink_interfaces))
    if wish.mode == "webhook":
        found += ["--cloud-provider-hint=webhook", "--profile-provider=webhook"]
        found.append("--webhook-url=%s" % WEBHOOK_URL)
    elif able.options:
        found += ["--cloud-provider-options=%s" % flag for flag in wish.flags]
    return [*found, *wish.extra_args]


def provider_args(wish: DeploymentWish) -> list[str]:
    """The command line of the provider."""
    flags = wish.flags or ["%s.%s=%s" % (OKE, CHILD_RANGE_OPTION, wish.range)]
    found = ["--cloud-provider-options=%s" % flag for flag in flags]
    found.append("--listen=%s" % WEBHOOK_URL)
    found.append("--bind-address=%s:%d" % (PROVIDER_ADDRESS, PROVIDER_PORT))
    if wish.imds_url:
        found.append("--imds-url=%s" % wish.imds_url)
    if wish.nic_table is not None:
        found.append("--nic-table=%s/%s" % (TABLE_DIRECTORY, TABLE_FILE))
    return [*found, *wish.provider_args]


def extra_volumes(wish: DeploymentWish) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Volumes and mounts of the agent's files (F54); the path is the one that is read, wherever it is on the host."""
    if not wish.oca_directory:
        return [], []
    volume = _host("oca-hpc-config", wish.oca_directory, "DirectoryOrCreate")
    return [volume], [{"name": "oca-hpc-config", "mountPath": OCA_DIRECTORY, "readOnly": True}]


def _dranet_pod(wish: DeploymentWish, able: Abilities) -> dict[str, Any]:
    paths = (  # F116
        ("device-plugin", wish.kubelet_root + "/plugins", False),
        ("plugin-registry", wish.kubelet_root + "/plugins_registry", False),
        ("nri-plugin", "/var/run/nri", False),
        ("netns", "/var/run/netns", True),
        ("infiniband", "/dev/infiniband", True),
        ("bpf-programs", "/sys/fs/bpf", True),
    )
    volumes = [_host(name, path) for name, path, _follows in paths]
    mounts: list[dict[str, Any]] = [
        {"name": name, "mountPath": path, **({"mountPropagation": "HostToContainer"} if follows else {})}
        for name, path, follows in paths
    ]
    volumes.append(_host("dranet-run", RUN_DIRECTORY, "DirectoryOrCreate"))
    mounts.append({"name": "dranet-run", "mountPath": RUN_DIRECTORY})
    more, more_mounts = extra_volumes(wish) if wish.mode == "native" else ([], [])
    probe = {"httpGet": {"path": "/healthz", "port": METRICS_PORT}}
    container = {
        "name": DRANET,
        "image": wish.image,
        "imagePullPolicy": wish.pull_policy,
        "args": args(wish, able),
        "env": [_NODE_NAME],
        "resources": _resources(wish.resources, _RESOURCES),
        "securityContext": {"privileged": True},
        "startupProbe": {**probe, "periodSeconds": 5, "failureThreshold": 12},
        "readinessProbe": {**probe, "periodSeconds": 10, "failureThreshold": 3},
        "livenessProbe": {**probe, "periodSeconds": 30, "timeoutSeconds": 10, "failureThreshold": 5},
        "volumeMounts": [*mounts, *more_mounts],
    }
    pod: dict[str, Any] = {"serviceAccountName": DRANET}
    if wish.mode == "webhook":
        pod["initContainers"] = [_waiting(wish)]
    return {**pod, "containers": [container], "volumes": [*volumes, *more]}


def _waiting(wish: DeploymentWish) -> dict[str, Any]:
    return {
        "name": "wait-for-provider",
        "image": wish.provider_image,
        "imagePullPolicy": wish.pull_policy,
        "command": ["python3", "-c", WAIT, SOCKET],
        "resources": {"requests": {"cpu": "10m", "memory": "32Mi"}},
        "securityContext": _confined(),
        "volumeMounts": [{"name": "dranet-run", "mountPath": RUN_DIRECTORY}],
    }


def _provider_pod(wish: DeploymentWish) -> dict[str, Any]:
    volumes = [_host("dranet-run", RUN_DIRECTORY, "DirectoryOrCreate")]
    mounts: list[dict[str, Any]] = [{"name": "dranet-run", "mountPath": RUN_DIRECTORY}]
    more, more_mounts = extra_volumes(wish)
    if wish.nic_table is not None:
        more.append({"name": "nic-table", "configMap": {"name": PROVIDER}})
        more_mounts.append({"name": "nic-table", "mountPath": TABLE_DIRECTORY, "readOnly": True})

    def probe(path: str, period: int, failures: int) -> dict[str, Any]:
        request = {"host": PROVIDER_ADDRESS, "port": PROVIDER_PORT, "path": path}
        return {
            "httpGet": request,
            "periodSeconds": period,
            "timeoutSeconds": 5,
            "failureThreshold": failures,
        }

    container = {
        "name": "provider",
        "image": wish.provider_image,
        "imagePullPolicy": wish.pull_policy,
        "command": ["python3", "-m", "rdma_k8s_provider"],
        "args": provider_args(wish),
        "env": [_NODE_NAME],
        "resources": _resources(wish.provider_resources, _PROVIDER_RESOURCES),
        "securityContext": _confined(),
        "startupProbe": probe("/healthz", 5, 60),
        "readinessProbe": probe("/readyz", 10, 3),
        "livenessProbe": probe("/healthz", 30, 5),
        "volumeMounts": [*mounts, *more_mounts],
    }
    return {
        "automountServiceAccountToken": False,
        "containers": [container],
        "volumes": [*volumes, *more],
    }


def _confined() -> dict[str, Any]:
    """The user is root only because the directory of the socket belongs to root; it has none of root's powers."""
    return {
        "runAsUser": 0,
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": True,
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def _daemonset(wish: DeploymentWish, name: str, pod: Mapping[str, Any]) -> dict[str, Any]:
    spec: dict[str, Any] = {"hostNetwork": True}
    if wish.priority_class:
        spec["priorityClassName"] = wish.priority_class
    if wish.node_selector:
        spec["nodeSelector"] = dict(wish.node_selector)
    if wish.tolerations:
        spec["tolerations"] = [dict(entry) for entry in wish.tolerations]
    if wish.pull_secrets:
        spec["imagePullSecrets"] = [{"name": entry} for entry in wish.pull_secrets]
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": _metadata(name, wish.namespace),
        "spec": {
            "selector": {"matchLabels": {"app.kubernetes.io/name": name}},
            "updateStrategy": {"type": wish.update_strategy},
            "template": {"metadata": {"labels": _labels(name)}, "spec": {**spec, **pod}},
        },
    }


def _resources(wanted: Mapping[str, Any], default: Mapping[str, Any]) -> dict[str, Any]:
    chosen = wanted or default
    return {key: dict(mapping(chosen, key)) for key in chosen}


def _rule(group: str, resources: Sequence[str], verbs: Sequence[str], names: Sequence[str]) -> dict[str, Any]:
    rule: dict[str, Any] = {"apiGroups": [group], "resources": list(resources), "verbs": list(verbs)}
    return {**rule, "resourceNames": list(names)} if names else rule


def _host(name: str, path: str, kind: str = "") -> dict[str, Any]:
    return {"name": name, "hostPath": {"path": path, **({"type": kind} if kind else {})}}


def _labels(name: str) -> dict[str, str]:
    return {
        "app.kubernetes.io/name": name,
        "app.kubernetes.io/part-of": PART_OF,
        **claims.LABELS,
    }


def _metadata(name: str, namespace: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {"name": name}
    if namespace:
        found["namespace"] = namespace
    return {**found, "labels": _labels(name)}
