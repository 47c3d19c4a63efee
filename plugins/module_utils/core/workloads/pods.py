# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The pod template of a workload, for each target. Private to rdma.k8s: it may change with any release."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from ..oke.claims import LABELS
from .nccl import environment
from .wish import ACK, INSTANCE_TYPE, OKE, SPIDERPOOL, WorkloadWish

NETWORKS = "k8s.v1.cni.cncf.io/networks"
CLAIM = "rdma"

LINGJUN_LABEL = {"alibabacloud.com/lingjun-worker": "true"}
LINGJUN_TOLERATION = {
    "key": "node-role.alibabacloud.com/lingjun",
    "operator": "Exists",
    "effect": "NoSchedule",
}


def template(
    wish: WorkloadWish,
    container: str,
    command: Sequence[str],
    variables: Sequence[Mapping[str, Any]] = (),
    **more: Any,
) -> dict[str, Any]:
    """The template of a pod with GPUs and RDMA NICs.

    :param container: the name of its container.
    :param command: what it runs; empty: what the image or the operator says.
    :param variables: entries for its environment, before those of NCCL.
    :param more: further fields of the pod.
    """
    return {
        "metadata": _metadata(wish),
        "spec": {
            **_network(wish),
            "terminationGracePeriodSeconds": wish.grace_seconds,
            **_places(wish),
            **more,
            "containers": [_container(wish, container, command, variables)],
            "volumes": [{"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": wish.shm}}],
            **_claims(wish),
        },
    }


def launcher(wish: WorkloadWish, command: Sequence[str]) -> dict[str, Any]:
    """The template of a pod that starts the others and has no devices."""
    container = {"name": "launcher", "image": wish.image, "command": list(command)}
    return {
        "metadata": {"labels": dict(LABELS)},
        "spec": {"terminationGracePeriodSeconds": wish.grace_seconds, "containers": [container]},
    }


def named(variables: Mapping[str, str]) -> list[dict[str, Any]]:
    """The entries of an environment."""
    return [{"name": name, "value": value} for name, value in variables.items()]


def _metadata(wish: WorkloadWish) -> dict[str, Any]:
    found: dict[str, Any] = {"labels": dict(LABELS)}
    if wish.target == SPIDERPOOL:
        listed = ["%s/%s" % (network.namespace or wish.namespace, network.name) for network in wish.networks]
        found["annotations"] = {NETWORKS: ",".join(listed)}
    return found


def _network(wish: WorkloadWish) -> dict[str, Any]:
    if not wish.on_host_network:
        return {}
    # With the usual policy the names of Services would not resolve (A109).
    return {"hostNetwork": True, "dnsPolicy": "ClusterFirstWithHostNet"}


def _places(wish: WorkloadWish) -> dict[str, Any]:
    selector = dict(wish.node_selector)
    tolerations = [dict(entry) for entry in wish.tolerations]
    if wish.target == OKE and wish.shape:
        selector.setdefault(INSTANCE_TYPE, wish.shape.name)
    if wish.target == ACK:
        selector = {**LINGJUN_LABEL, **selector}
        if LINGJUN_TOLERATION not in tolerations:
            tolerations.insert(0, dict(LINGJUN_TOLERATION))
    found: dict[str, Any] = {}
    if selector:
        found["nodeSelector"] = selector
    if tolerations:
        found["tolerations"] = tolerations
    return found


def _claims(wish: WorkloadWish) -> dict[str, Any]:
    if wish.target != OKE:
        return {}
    return {"resourceClaims": [{"name": CLAIM, "resourceClaimTemplateName": wish.claim_template}]}


def _container(
    wish: WorkloadWish, name: str, command: Sequence[str], variables: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    found: dict[str, Any] = {"name": name, "image": wish.image}
    if command:
        found["command"] = list(command)
    found["env"] = [dict(entry) for entry in variables] + named(environment(wish))
    found["resources"] = _resources(wish)
    # Memory that is registered is locked; a new soft limit of it needs the second one, which ACK asks for (A70).
    added = ["IPC_LOCK", "SYS_RESOURCE"] if wish.target == ACK else ["IPC_LOCK"]
    found["securityContext"] = {"capabilities": {"add": added}}
    found["volumeMounts"] = [{"name": "shm", "mountPath": "/dev/shm"}]  # noqa: S108 (of the pod)
    return found


def _resources(wish: WorkloadWish) -> dict[str, Any]:
    amounts: dict[str, str] = {}
    if wish.cpu:
        amounts["cpu"] = wish.cpu
    if wish.memory:
        amounts["memory"] = wish.memory
    if wish.gpu_count and not wish.gpus_in_claim:
        amounts[wish.gpu_name] = str(wish.gpu_count)
    if wish.target == ACK:
        amounts[wish.rdma_resource] = str(wish.rdma_quantity)
    if wish.target == SPIDERPOOL:
        counted = Counter(network.resource for network in wish.networks)
        amounts.update({resource: str(count) for resource, count in counted.items()})
    found: dict[str, Any] = {"requests": dict(amounts), "limits": dict(amounts)} if amounts else {}
    if wish.target == OKE:
        found["claims"] = [{"name": CLAIM}]
    return found
