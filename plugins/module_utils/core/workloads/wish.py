# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a workload shall be. Private to rdma.k8s: it may change with any release."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Optional

from ..errors import RdmaError
from ..kube.manifest import require_name
from ..lint.nccl import GID_INDEX
from ..net import quoted
from ..oke.shapes import INFINIBAND, Shape
from . import api_rules

OKE, SPIDERPOOL, ACK = TARGETS = ("oke_dranet", "spiderpool_sriov", "ack_lingjun")
JOB, MPI, PYTORCH = KINDS = ("Job", "MPIJob", "PyTorchJob")

SHM = "64Gi"
MIN_GRACE = 1
INSTANCE_TYPE = "node.kubernetes.io/instance-type"
"""The label of a node that tells its shape."""

_WITH_GPUS = re.compile(r"(?:BM|VM)\.GPU[A-Za-z0-9.-]*\.([0-9]+)")
_WITHOUT_GPUS = re.compile(r"(?:BM|VM)\.(?!GPU)[A-Za-z0-9.-]+")
_AMD = re.compile(r"BM\.GPU\.MI[0-9]")
_DEVICE = re.compile(r"[A-Za-z0-9_.-]{1,63}(?::[0-9]{1,3})?")
_FIXED_INDEX = (*GID_INDEX, "NCCL_GID_INDEX")


class Network(NamedTuple):
    """A network of Spiderpool that a pod is attached to, and the resource of its VFs.

    :param namespace: empty: that of the pod.
    """

    name: str
    resource: str
    namespace: str = ""


@dataclass(frozen=True)
class WorkloadWish:
    """A workload over several nodes, one pod each.

    :param target: one of ``TARGETS``; ``kind``: one of ``KINDS``.
    :param nodes: how many pods with GPUs.
    :param gpus: GPUs of each pod; ``None``: those of the shape, which its name tells (F128).
    :param gpu_resource: extended resource of GPUs; empty: told by the shape. Without GPUs nothing is asked for.
    :param gpus_in_claim: the GPUs come with the claim, not as an extended resource.
    :param claim_template: on OKE the ResourceClaimTemplate of the RDMA NICs.
    :param shape: on OKE the shape of the nodes; ``None``: not known.
    :param fabric: ``ipv4``, ``ipv6`` or ``infiniband``; empty: that of the shape.
    :param hcas: RDMA devices for NCCL_IB_HCA; ``None``: those of the shape; empty: leave the variable out, as a
        claim for some of the NICs needs it when their devices are not known.
    :param networks: on Spiderpool the networks, in the order of the interfaces ``net1``, ``net2`` ...
    :param host_network: on ACK the pod shares the network of the node.
    :param rdma_resource: on ACK the resource of the device plugin, with ``rdma_quantity``.
    :param shm: size of /dev/shm.
    :param cpu: and ``memory``: requests and limits, empty: none.
    :param environment: variables of the user; they win over those of the shape.
    :param socket_interface: for NCCL_SOCKET_IFNAME; empty: that of the pod network, or of the node.
    """

    name: str
    target: str
    image: str
    command: Sequence[str]
    kind: str = JOB
    namespace: str = "default"
    nodes: int = 2
    gpus: Optional[int] = None
    gpu_resource: str = ""
    gpus_in_claim: bool = False
    claim_template: str = ""
    shape: Optional[Shape] = None
    fabric: str = ""
    hcas: Optional[Sequence[str]] = None
    networks: Sequence[Network] = ()
    host_network: bool = True
    rdma_resource: str = "rdma/hca"
    rdma_quantity: int = 1
    shm: str = SHM
    cpu: str = ""
    memory: str = ""
    grace_seconds: int = 60
    environment: Mapping[str, Any] = field(default_factory=dict)
    socket_interface: str = ""
    node_selector: Mapping[str, str] = field(default_factory=dict)
    tolerations: Sequence[Mapping[str, Any]] = ()

    @property
    def on_host_network(self) -> bool:
        """The pods share the network of their node; only ACK does that (A6)."""
        return self.target == ACK and self.host_network

    @property
    def known_fabric(self) -> str:
        """The fabric; empty: not known."""
        return self.fabric or (self.shape.fabric if self.shape else "")

    @property
    def is_infiniband(self) -> bool:
        """Native InfiniBand."""
        return self.known_fabric == INFINIBAND

    @property
    def shape_gpus(self) -> Optional[int]:
        """GPUs of a node: the number at the end of the name of a GPU shape, none on other shapes of OCI (F128).

        ``None``: it cannot be told.
        """
        name = self.shape.name if self.shape else ""
        found = _WITH_GPUS.fullmatch(name)
        if found:
            return int(found[1])
        return 0 if _WITHOUT_GPUS.fullmatch(name) else None

    @property
    def gpu_count(self) -> int:
        """GPUs of each pod; :func:`check` refuses a workload of which nothing tells them."""
        return self.gpus if self.gpus is not None else self.shape_gpus or 0

    @property
    def gpu_name(self) -> str:
        """The extended resource of the GPUs."""
        return self.gpu_resource or (
            "amd.com/gpu" if self.shape and _AMD.match(self.shape.name) else "nvidia.com/gpu"
        )


def check(wish: WorkloadWish) -> None:
    """What would make a manifest that cannot work.

    :raises RdmaError: ``name_malformed``, ``workload_incomplete``, ``workload_number``, ``workload_environment``,
        ``workload_shm``, ``workload_malformed``
    """
    require_name(wish.namespace, "A namespace", label=True)
    if not wish.name[:1].isalpha():
        require_name("-" + wish.name, "A %s with a Service" % wish.kind, label=True)
    # The longest name that is made of it; it becomes the host name of a pod.
    last = "%s-%s%d" % (wish.name, "worker-" if wish.kind != JOB else "", max(wish.nodes - 1, 0))
    require_name(last, "The last pod of %s %s" % (wish.kind, wish.name), label=True)
    _require_numbers(wish)
    _require_parts(wish)
    _require_environment(wish)
    api_rules.require_sizes(wish.kind, wish.name, wish.shm, wish.cpu, wish.memory)
    _require_what_the_api_takes(wish)


def _require_numbers(wish: WorkloadWish) -> None:
    there = wish.shape_gpus
    if wish.gpus is None and there is None:
        raise RdmaError(
            "workload_incomplete",
            "%s %s needs gpus: %s how many a node has."
            % (
                wish.kind,
                wish.name,
                "the name of shape %s does not tell" % wish.shape.name
                if wish.shape
                else "without a shape nothing tells",
            ),
            hint="Give the number of GPUs of each pod, 0 for none.",
            target=wish.target,
        )
    hints = {
        "gpus": "The shape %s has %d GPUs." % (wish.shape.name, there)
        if wish.shape and there is not None
        else "",
        "grace_seconds": "With a grace of 0 a claim is not unprepared.",
    }
    for what, value, least, most in (
        ("nodes", wish.nodes, 1, 5000),
        ("gpus", wish.gpu_count, 0, 64 if there is None else there),
        ("rdma_quantity", wish.rdma_quantity, 1, 1000),
        ("grace_seconds", wish.grace_seconds, MIN_GRACE, 86400),
    ):
        if not least <= value <= most:
            raise RdmaError(
                "workload_number",
                "%s of %s %s is %d, expected %d to %d." % (what, wish.kind, wish.name, value, least, most),
                hint=hints.get(what, ""),
                option=what,
            )


def _require_parts(wish: WorkloadWish) -> None:
    missing = ""
    if not wish.image or not wish.command:
        missing = "an image and a command"
    elif wish.target == OKE and not wish.claim_template:
        missing = "a claim template for the RDMA NICs"
    elif wish.target == SPIDERPOOL and not wish.networks:
        missing = "at least one network with the resource of its VFs"
    if missing:
        raise RdmaError(
            "workload_incomplete",
            "%s %s for %s needs %s." % (wish.kind, wish.name, wish.target, missing),
            hint="Give it by the options of the same name.",
            target=wish.target,
        )
    if wish.claim_template:
        require_name(wish.claim_template, "A ResourceClaimTemplate")
    for network in wish.networks:
        require_name(network.name, "A network")
        if network.namespace:
            require_name(network.namespace, "The namespace of a network", label=True)


def _require_what_the_api_takes(wish: WorkloadWish) -> None:
    job = "%s %s" % (wish.kind, wish.name)
    api_rules.require_resource(job, "gpu_resource", wish.gpu_name)
    if wish.target == ACK:
        api_rules.require_resource(job, "rdma_resource", wish.rdma_resource)
    for network in wish.networks:
        api_rules.require_resource(job, "resource of network %s" % network.name, network.resource)
    shape = {INSTANCE_TYPE: wish.shape.name} if wish.target == OKE and wish.shape else {}
    api_rules.require_selector(job, {**shape, **wish.node_selector})
    for toleration in wish.tolerations:
        api_rules.require_toleration(job, toleration)


def _require_environment(wish: WorkloadWish) -> None:
    for variable, value in wish.environment.items():
        api_rules.require_variable("%s %s" % (wish.kind, wish.name), variable, value)
    fixed = [name for name in _FIXED_INDEX if name in wish.environment]
    if fixed and not wish.on_host_network:
        raise RdmaError(
            "workload_environment",
            "The environment of %s %s sets %s; the index of an address differs from node to node and from pod to pod."
            % (wish.kind, wish.name, fixed[0]),
            hint="Leave it out: the library selects the GID index itself.",
            variable=fixed[0],
        )
    for device in wish.hcas or ():
        if not _DEVICE.fullmatch(device):
            raise RdmaError(
                "workload_environment",
                "hcas of %s %s has %s, expected the name of an RDMA device such as mlx5_0."
                % (wish.kind, wish.name, quoted(device)),
                hint="Name the devices, or give an empty list to leave NCCL_IB_HCA out.",
                variable="NCCL_IB_HCA",
            )
