# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Lint rules of the target ack_lingjun (A69, A70). Private to rdma.k8s: it may change with any release.

Each of its reasons has a code, which stands in :attr:`~.model.LintFinding.code`. An error is ``fail``, a warning and an
information are ``warn``, each with its own severity.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from ..finding import ERROR, INFO, WARNING
from ..kube import objects, quantity, selectors
from ..kube.documents import Document
from ..kube.pod_templates import POD_KINDS, Container
from . import memory
from .devices import asked, is_gpu
from .memory import LEAST
from .model import ACK, Context, Path, Verdict, failed, skipped, warned
from .nccl import fixed_index
from .options import OPTIONS
from .pod import LINGJUN_TAINT, Pod, pods
from .registry import over_pods, rule
from .security import Capabilities, is_privileged, not_root

SHARED, EXCLUSIVE = "shared", "exclusive"

INFINIBAND = "/dev/infiniband"


class Settings(NamedTuple):
    """How the plugin and the nodes are set up."""

    resource_name: str
    non_host_network: bool
    rdma_mode: str
    min_shm: Any
    taints: tuple[dict[str, Any], ...]

    def asks(self, container: Container) -> bool:
        return self.resource_name in asked(container)

    def is_rdma(self, pod: Pod) -> bool:
        return self.resource_name in pod.amounts


def settings(context: Context) -> Settings:
    """The settings among the options of the lint, else their defaults."""
    return Settings(*[context.options.get(name, OPTIONS[name].default) for name in Settings._fields])


def error(code: str, path: Path, message: str, **more: str) -> Verdict:
    return failed(path, message, code=code, **more)


def warning(code: str, path: Path, message: str, **more: str) -> Verdict:
    return warned(path, message, code=code, severity=WARNING, **more)


def info(code: str, path: Path, message: str, **more: str) -> Verdict:
    return warned(path, message, code=code, severity=INFO, **more)


# --- the resource and what it needs


@rule(
    "RDMA-ACK-004",
    "Containers ask for the RDMA resource and may use it",
    ERROR,
    "Add a limit of 1 for the RDMA resource, and the capabilities IPC_LOCK and SYS_RESOURCE.",
    kinds=POD_KINDS,
    targets=(ACK,),
)
def resource(document: Document, context: Context) -> Iterator[Verdict]:
    """Devices are given to each container that asks; without them NCCL uses TCP and says nothing (A69, A91)."""
    given = settings(context)
    found = pods(document, context)
    if not found:
        yield skipped("The object holds no pod template.")
        return
    with_rdma = [pod for pod in found if given.is_rdma(pod)]
    if not with_rdma:
        name = given.resource_name
        yield error("missing-rdma-resource", (), "No container asks for %s." % name, expected="%s: 1" % name)
    for pod in found:
        yield from _other_names(pod, given)
        if given.is_rdma(pod):
            yield from _whole_pod(pod, given)
            for container in pod.containers:
                if given.asks(container):
                    yield from _amount(container, given)
                    yield from _capabilities(container, pod)
        elif with_rdma and any(is_gpu(name) for name in pod.amounts):
            message = "These pods have GPUs and no RDMA, other pods of the object have both."
            yield warning("gpu-without-rdma", pod.path, message)


def _limits(container: Container, name: str) -> Path:
    part = "limits" if name in objects.mapping(container.spec, "resources", "limits") else "requests"
    return (*container.path, "resources", part, name)


def _other_names(pod: Pod, given: Settings) -> Iterator[Verdict]:
    for container in pod.containers:
        for name in asked(container):
            if name.startswith("rdma/") and name != given.resource_name:
                yield error(
                    "rdma-resource-name-unknown",
                    _limits(container, name),
                    "%s is not the resource of the plugin, so the pod waits for ever." % name,
                    expected=given.resource_name,
                    observed=name,
                )


def _whole_pod(pod: Pod, given: Settings) -> Iterator[Verdict]:
    lasting = [container for container in pod.containers if container.lasting]
    asking = [container for container in lasting if given.asks(container)]
    if not asking:
        message = (
            "Only an init container asks for %s; devices are given to each container." % given.resource_name
        )
        yield error("rdma-only-in-init", pod.path, message)
    with_gpu = {id(entry) for entry in lasting if any(is_gpu(name) for name in asked(entry))}
    if any(id(entry) not in with_gpu for entry in asking):
        for entry in lasting:
            if id(entry) in with_gpu and not given.asks(entry):
                message = "Container %s has the GPUs, another one the RDMA devices." % entry.name
                yield warning("rdma-container-mismatch", entry.path, message)


def _amount(container: Container, given: Settings) -> Iterator[Verdict]:
    name = given.resource_name
    resources = objects.mapping(container.spec, "resources")
    limits, requests = objects.mapping(resources, "limits"), objects.mapping(resources, "requests")
    path = (*container.path, "resources")
    if name not in limits:
        message = "%s is requested without a limit, which the API server refuses." % name
        yield error("rdma-limit-missing", (*path, "requests", name), message, expected="a limit")
        return
    limit, here = limits[name], (*path, "limits", name)
    amount = quantity.whole(limit)
    if amount is None:
        message = "%s is given in whole tokens." % name
        yield error("rdma-quantity-invalid", here, message, expected="1", observed=str(limit)[:40])
        return
    if amount == 0:
        yield error("rdma-quantity-zero", here, "No %s is asked for." % name, expected="1", observed="0")
    if name in requests and quantity.parse(requests[name]) != amount:
        yield error(
            "rdma-request-limit-mismatch",
            (*path, "requests", name),
            "The request for %s differs from its limit." % name,
            expected=str(limit),
            observed=str(requests[name])[:40],
        )
    if given.rdma_mode == SHARED and amount > 1:
        message = "One %s already gives every HCA of the node." % name
        yield warning("rdma-quantity-excess", here, message, expected="1", observed=str(limit))


def _capabilities(container: Container, pod: Pod) -> Iterator[Verdict]:
    path = (*container.path, "securityContext")
    if is_privileged(container):
        message = "Container %s is privileged, two capabilities are enough." % container.name
        yield warning("privileged-container", (*path, "privileged"), message)
        return
    capabilities = Capabilities(container)
    path = (*path, "capabilities")
    if capabilities.prefixed:
        yield error(
            "capability-name-prefixed",
            (*path, "add"),
            "The runtime writes CAP_ itself, so %s stands for nothing." % ", ".join(capabilities.prefixed),
            expected=", ".join([name[4:] for name in capabilities.prefixed]),
        )
    for name, code in (("IPC_LOCK", "missing-ipc-lock"), ("SYS_RESOURCE", "missing-sys-resource")):
        if not capabilities.has(name):
            yield error(
                code, path, "Container %s lacks %s." % (container.name, name), expected="add: %s" % name
            )
    if capabilities.added and not_root(container, pod):
        message = "Container %s does not run as root, so its capabilities are not effective." % container.name
        yield warning("capabilities-nonroot", (*container.path, "securityContext"), message)


# --- the network


@rule(
    "RDMA-ACK-005",
    "The network of RDMA pods fits the mode of the plugin",
    ERROR,
    "Set hostNetwork: true with dnsPolicy ClusterFirstWithHostNet, or let pods off the host network (IPv6 only).",
    kinds=POD_KINDS,
    targets=(ACK,),
)
def host_network(document: Document, context: Context) -> Iterator[Verdict]:
    """Pods with a network of their own need the switch of the plugin, and IPv6 on the nodes (A6-A9)."""
    given = settings(context)

    def of_pod(pod: Pod) -> Iterator[Verdict]:
        if not given.is_rdma(pod):
            yield skipped("The pods ask for no %s." % given.resource_name)
            return
        path = (*pod.path, "hostNetwork")
        if given.rdma_mode == EXCLUSIVE:
            if pod.host_network:
                message = "In exclusive mode a NIC belongs to one pod, which has a network of its own."
                yield error("hostnetwork-forbidden", path, message, expected="false", observed="true")
        elif not given.non_host_network and not pod.host_network:
            message = "The plugin serves only pods in the network of the host."
            yield error("hostnetwork-required", path, message, expected="true", observed="not set")
        elif given.non_host_network and pod.host_network:
            message = "The pods could have a network of their own, with their own ports and names."
            yield info("hostnetwork-unneeded", path, message)
        if pod.host_network and pod.spec.get("dnsPolicy") in (None, "", "ClusterFirst"):
            yield warning(
                "hostnetwork-dns-policy",
                (*pod.path, "dnsPolicy"),
                "In the network of the host the names of services are not resolved.",
                expected="ClusterFirstWithHostNet",
                observed=str(pod.spec.get("dnsPolicy") or "not set"),
            )

    return over_pods(of_pod, document, context)


# --- shared memory


@rule(
    "RDMA-ACK-008",
    "RDMA containers have shared memory of a sensible size",
    ERROR,
    "Mount an emptyDir with medium Memory and a sizeLimit of at least %s at /dev/shm." % LEAST,
    kinds=POD_KINDS,
    targets=(ACK,),
)
def shared_memory(document: Document, context: Context) -> Iterator[Verdict]:
    """NCCL talks through /dev/shm inside a node, which is 64 MiB unless a volume stands there (A69, A106, A107)."""
    given = settings(context)
    warnings = ("shm-host-path", "shm-size-missing", "shm-size-small", "shm-exceeds-memory-limit")

    def of_pod(pod: Pod) -> Iterator[Verdict]:
        if not given.is_rdma(pod):
            yield skipped("The pods ask for no %s." % given.resource_name)
        for container in pod.containers:
            if given.asks(container) and container.lasting:
                for found in memory.problems(container, pod, given.min_shm):
                    say = warning if found.code in warnings else error
                    yield say(
                        found.code,
                        found.path,
                        found.message,
                        expected=found.expected,
                        observed=found.observed,
                        container=container.name,
                    )

    return over_pods(of_pod, document, context)


# --- the nodes


@rule(
    "RDMA-ACK-009",
    "RDMA pods tolerate the taint of Lingjun nodes, and not more",
    ERROR,
    "Add a toleration for the key %s with operator Exists and effect NoSchedule." % LINGJUN_TAINT["key"],
    kinds=POD_KINDS,
    targets=(ACK,),
)
def taints(document: Document, context: Context) -> Iterator[Verdict]:
    """A pool of Lingjun nodes is tainted unless somebody removed the taint (A13, A70)."""
    given = settings(context)

    def of_pod(pod: Pod) -> Iterator[Verdict]:
        if not given.is_rdma(pod):
            yield skipped("The pods ask for no %s." % given.resource_name)
            return
        path = (*pod.path, "tolerations")
        tolerations = list(objects.entries(pod.spec.get("tolerations")))
        for taint in given.taints:
            if not any(selectors.tolerates(entry, taint) for _position, entry in tolerations):
                told = "%s:%s" % (taint.get("key"), taint.get("effect"))
                message = "The nodes have the taint %s, which the pods do not tolerate." % told
                yield error("missing-lingjun-toleration", path, message, expected=told)
        for position, entry in tolerations:
            if entry.get("operator") == "Exists" and not entry.get("key") and not entry.get("effect"):
                message = "The pods tolerate every taint, also those of nodes that are broken."
                yield info("toleration-too-broad", (*path, position), message)

    return over_pods(of_pod, document, context)


# --- what NCCL is told, and device files


@rule(
    "RDMA-ACK-010",
    "NCCL may use RDMA, and device files come from the plugin",
    ERROR,
    "Remove the variable, or the volume.",
    kinds=POD_KINDS,
    targets=(ACK,),
)
def environment(document: Document, context: Context) -> Iterator[Verdict]:
    """PPU machines need NCCL_IB_DISABLE (A88); with a network of its own a pod has GIDs of its own (A86)."""
    given = settings(context)

    def of_pod(pod: Pod) -> Iterator[Verdict]:
        yield from _host_paths(pod)
        if not given.is_rdma(pod):
            yield skipped("The pods ask for no %s." % given.resource_name)
            return
        for container, setting in pod.settings:
            if not given.asks(container) or setting.value is None:
                continue
            if setting.name == "NCCL_IB_DISABLE" and _switched_on(setting.value) and not _ppu(container):
                message = "NCCL_IB_DISABLE switches RDMA off in container %s." % container.name
                yield error(
                    "nccl-ib-disabled", setting.path, message, expected="not set", observed=setting.value
                )
            elif setting.name == "NCCL_IB_GID_INDEX" and not pod.host_network and _fixed(setting.value):
                message = "The GID index of a pod with a network of its own differs by device and node."
                yield warning("nccl-gid-index-fixed", setting.path, message, observed=setting.value)

    return over_pods(of_pod, document, context)


def _fixed(value: str) -> bool:
    return fixed_index(value) is not None


def _switched_on(value: str) -> bool:
    return fixed_index(value.strip().lstrip("-")) not in (None, 0)


def _ppu(container: Container) -> bool:
    return any(name.startswith("alibabacloud.com/ppu") for name in asked(container))


def _host_paths(pod: Pod) -> Iterator[Verdict]:
    shared = {
        objects.text(volume.get("name"))
        for _position, volume in objects.entries(pod.spec.get("volumes"))
        if (objects.text(objects.mapping(volume, "hostPath").get("path")).rstrip("/") + "/").startswith(
            INFINIBAND + "/"
        )
    }
    for container in pod.containers if shared else ():
        for position, mount in objects.entries(container.spec.get("volumeMounts")):
            if objects.text(mount.get("name")) in shared:
                message = "A mount gives container %s the files, and no right to use them." % container.name
                yield warning("hostpath-infiniband", (*container.path, "volumeMounts", position), message)
