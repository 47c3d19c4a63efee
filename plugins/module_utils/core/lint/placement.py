# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Lint rules: RDMA NICs of whole nodes, and where they stand. Private to rdma.k8s: it may change with any release."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Optional

from ..finding import ERROR, INFO, WARNING
from ..kube import claims
from ..kube.claims import Request
from ..kube.documents import Document
from ..oke.shapes import Shape
from .devices import DRANET, Device, claim_of, driver_of, is_rdma_nic
from .model import Context, Path, Verdict, failed, skipped, unknown, warned
from .pod import Pod
from .registry import pod_rule, rule

STANDARD = "resource.kubernetes.io/"
"""Attributes that drivers share; only they can tie devices of two drivers."""


@pod_rule(
    "RDMA-WL-004",
    "Pods that take a whole node ask for all its RDMA NICs, one request each",
    WARNING,
    "Write one request for each RDMA NIC of the shape into the claim.",
)
def whole_node(pod: Pod) -> Iterator[Verdict]:
    """A job that trains on all GPUs of a node uses all of its NICs; NCCL is slow or fails else (F121, F128)."""
    missing = list(_missing(pod)) if pod.context.complete else []
    never = list(_twice(pod))
    yield from missing + never
    if missing or never:
        return
    shape = pod.shape
    gpus = int(shape.name.rpartition(".")[2]) if shape and shape.name.rpartition(".")[2].isdigit() else 0
    if shape is None or not gpus:
        yield skipped("The shape of the nodes is not told, or the table does not know it.")
    elif pod.gpus < gpus:
        yield skipped("The pods take %d of the %d GPUs of %s." % (pod.gpus, gpus, shape.name))
    elif pod.host_network:
        yield skipped("The pods are in the network of the host and use its NICs.")
    elif pod.undecided:
        yield unknown((*pod.path, "resourceClaims"), "The claims could not be followed: %s." % pod.undecided)
    elif not pod.nics and pod.rdma:
        yield skipped("The pods take RDMA devices by extended resources.")
    else:
        yield from _count(pod, shape)


def _missing(pod: Pod) -> Iterator[Verdict]:
    """What the pods refer to and what does not exist, when the documents are all that exists."""
    for use in pod.unread_claims:
        yield _absent(use.path, use.ref, "claim-missing")
    for device in pod.devices:
        name = device.request.device_class
        if name and pod.context.device_class(name) is None:
            yield _absent(device.use.path, "DeviceClass %s" % name, "device-class-missing")
            return


def _absent(path: Path, what: str, code: str) -> Verdict:
    message = "%s does not exist, so the pods wait for ever." % what
    return failed(path, message, severity=ERROR, hint="Write the object, or correct the name.", code=code)


def _twice(pod: Pod) -> Iterator[Verdict]:
    """Requests of a pod for one and the same NIC: each NIC is given once, so they are never all served."""
    holders: dict[str, dict[tuple[str, str], Device]] = {}
    for device in pod.nics:
        names = device.attributes.get(DRANET + "/ifName", set())
        text = " ".join(device.selectors)
        if len(names) == 1 and not device.request.alternative and "||" not in text and "!" not in text:
            use = device.use  # a ResourceClaim may stand twice in a pod and is one claim
            claim = use.name if use.kind == "ResourceClaimTemplate" else use.called
            holders.setdefault(min(names), {})[claim, device.request.name] = device
    for name, found in holders.items():
        devices = list(found.values())
        if len(devices) > 1:
            yield failed(
                devices[0].use.path,
                "Requests %s all ask for %s of one node, which is given once, so the pods wait for ever."
                % (", ".join([request for _claim, request in found]), name),
                severity=ERROR,
                hint="Ask for another NIC in each request.",
                code="same-nic",
            )


def _count(pod: Pod, expected: Shape) -> Iterator[Verdict]:
    amounts: dict[tuple[str, str], Optional[int]] = {}
    nics, shape = expected.rdma_nics, expected.name
    for device in pod.nics:
        if not is_rdma_nic(device, expected.netdevs):
            continue
        key, count = (device.use.name, device.request.name), device.request.count
        before = amounts.get(key, 0)
        amounts[key] = None if count is None or before is None else max(count, before)
    path = pod.nics[0].use.path if pod.nics else (*pod.path, "resourceClaims")
    together = [name for (_claim, name), count in amounts.items() if count is None or count > 1]
    total = sum(count or 0 for count in amounts.values())
    everything = None in amounts.values()
    if not everything and total != nics:
        yield warned(
            path,
            "The pods take all GPUs of %s and %s." % (shape, _nics(total)),
            expected=_nics(nics),
            observed=str(total),
            hint="More NICs than the node has are never given." if total > nics else "",
        )
    if together:
        yield warned(
            path,
            "Request %s asks for several NICs at once, so which NIC becomes which is left open."
            % ", ".join(together),
            expected="one request each",
            observed="all that match" if everything else "%d NICs, requests: %d" % (total, len(amounts)),
        )


def _nics(count: int) -> str:
    return "%s RDMA NIC%s" % (count or "no", "s" if count > 1 else "")


@rule(
    "RDMA-WL-015",
    "GPUs and RDMA NICs of a claim are tied to one place",
    INFO,
    "Add a constraint with matchAttribute resource.kubernetes.io/pcieRoot for each pair of GPU and NIC.",
    kinds=claims.CLAIM_KINDS,
)
def alignment(document: Document, context: Context) -> Iterator[Verdict]:
    """Data between a GPU and a NIC of another PCIe root goes through the processors (F101)."""
    claim = claim_of(document, context)
    drivers = [(request, driver_of(request, claim, context)) for request in claim.requests]
    nics = [request for request, driver in drivers if driver == DRANET]
    gpus = [request for request, driver in drivers if driver.startswith("gpu.")]
    unclear = [request for request, driver in drivers if not driver]
    if not nics or not gpus:
        if unclear and len(drivers) > 1:
            yield unknown(
                unclear[0].path,
                "Which driver serves %s could not be told." % (unclear[0].name or "a request"),
            )
        else:
            yield skipped("The claim does not ask for GPUs and RDMA NICs together.")
        return
    tied: list[Request] = []
    for constraint in claim.constraints:
        bound = [nic for nic in nics if constraint.concerns(nic)]
        if not bound or not any(constraint.concerns(gpu) for gpu in gpus):
            continue
        if not constraint.attribute.startswith(STANDARD):
            yield warned(
                constraint.path,
                "Devices of two drivers cannot agree in %s, so the claim is never allocated."
                % constraint.attribute,
                expected=STANDARD + "pcieRoot",
                observed=constraint.attribute,
            )
        tied += bound
    loose = [nic for nic in nics if nic not in tied]
    if loose:
        yield warned(
            loose[0].path,
            "No constraint ties %s to a GPU." % ", ".join([nic.name or "a request" for nic in loose]),
            expected="matchAttribute %spcieRoot" % STANDARD,
        )
