# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a pod takes and is told: devices, networks, environment. Private to rdma.k8s: it may change with any release.

Rules ask a :class:`Pod` instead of reading the manifest again; a reference is followed to its document when the context
has it. What could not be followed is kept as such, so that a rule can say ``unknown`` instead of guessing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Optional

from ..kube import objects, quantity, selectors
from ..kube.documents import Document
from ..kube.pod_templates import Container, PodTemplate
from ..oke.shapes import Shape, lookup
from ..spiderpool.names import INJECT, NETWORKS
from . import devices as taken, environment as environments, networks
from .devices import CHILD, DRANET, SPIDERPOOL_PREFIX, ClaimUse, Device, is_gpu, is_rdma
from .environment import Setting, Source
from .model import ACK, OKE, SPIDERPOOL, Context, Path
from .networks import DEFAULT_NETWORK, Attachment

LINGJUN = "alibabacloud.com/lingjun-worker"
LINGJUN_TAINT = {"key": "node-role.alibabacloud.com/lingjun", "effect": "NoSchedule"}
ACK_RESOURCE = "rdma/hca"
INSTANCE_TYPE = "node.kubernetes.io/instance-type"


@dataclass(frozen=True, eq=False)
class Pod:
    """One pod template of a document."""

    document: Document
    template: PodTemplate
    context: Context

    @property
    def path(self) -> Path:
        return self.template.path

    @property
    def spec(self) -> dict[str, Any]:
        return self.template.spec

    @cached_property
    def containers(self) -> tuple[Container, ...]:
        return self.template.containers

    @cached_property
    def host_network(self) -> bool:
        return self.spec.get("hostNetwork") is True

    @cached_property
    def namespace(self) -> str:
        return objects.namespace(self.document.content)

    @cached_property
    def annotations(self) -> dict[str, Any]:
        return objects.mapping(self.template.metadata, "annotations")

    @property
    def called(self) -> str:
        """``the pods``, or ``the pods of Worker``, for sentences."""
        return "the pods of %s" % self.template.role if self.template.role else "the pods"

    # --- claims

    @cached_property
    def claims(self) -> tuple[ClaimUse, ...]:
        return tuple(self._claims())

    def _claims(self) -> Iterator[ClaimUse]:
        for position, entry in objects.entries(self.spec.get("resourceClaims")):
            source = {**objects.mapping(entry, "source"), **entry}
            name, path = objects.text(entry.get("name")), (*self.path, "resourceClaims", position)
            template, claim = (
                objects.text(source.get("resourceClaimTemplateName")),
                objects.text(source.get("resourceClaimName")),
            )
            if template:
                found = self.context.claim_template(self.namespace, template)
                yield ClaimUse(name, path, "ResourceClaimTemplate", template, found)
            elif claim:
                yield ClaimUse(name, path, "ResourceClaim", claim, self.context.claim(self.namespace, claim))

    @cached_property
    def devices(self) -> tuple[Device, ...]:
        """Every request of the claims that were found."""
        found = []
        for use in self.claims:
            if use.document is not None:
                claim = taken.claim_of(use.document, self.context)
                found += [
                    Device(
                        use,
                        claim,
                        request,
                        taken.driver_of(request, claim, self.context),
                        taken.selectors_of(request, self.context),
                    )
                    for request in claim.requests
                ]
        return tuple(found)

    @cached_property
    def unread_claims(self) -> tuple[ClaimUse, ...]:
        """Claims that are not among the documents."""
        return tuple([use for use in self.claims if use.document is None])

    @cached_property
    def undecided(self) -> str:
        """Why it cannot be told which devices the claims give; empty: it can.

        When the documents are all that exists, a claim that is not among them gives nothing.
        """
        for use in self.unread_claims if not self.context.complete else ():
            return "%s is not among the documents" % use.ref
        for device in self.devices:
            if not device.driver:
                name = device.request.device_class
                known = self.context.device_class(name) is not None
                return "DeviceClass %s %s" % (
                    name,
                    "does not tell its driver" if known else "is not among the documents",
                )
        return ""

    @cached_property
    def nics(self) -> tuple[Device, ...]:
        """The requests that DRANET serves."""
        return tuple([device for device in self.devices if device.driver == DRANET])

    @cached_property
    def children(self) -> tuple[Device, ...]:
        """The requests for which the pod gets an IPvlan child, as far as the claim tells (F41, F84)."""
        return tuple([device for device in self.nics if taken.form_of(device) == CHILD])

    # --- resources

    @cached_property
    def amounts(self) -> dict[str, list[tuple[Container, Optional[int]]]]:
        """The extended resources that containers ask for; the amount is ``None`` when it is no whole number."""
        found: dict[str, list[tuple[Container, Optional[int]]]] = {}
        for container in self.containers:
            for name, value in taken.asked(container).items():
                found.setdefault(name, []).append((container, quantity.whole(value)))
        return found

    def amount(self, resource: str) -> Optional[int]:
        """How many devices of a resource the pod gets: the sum over what runs together, or more for an init container.

        ``None``: an amount is not a whole number.
        """
        together = largest = 0
        for container, count in self.amounts.get(resource, []):
            if count is None:
                return None
            if container.lasting:
                together += count
            else:
                largest = max(largest, count)
        return max(together, largest)

    @cached_property
    def gpus(self) -> int:
        """GPUs by extended resources and by claims."""
        by_resource = sum(self.amount(name) or 0 for name in self.amounts if is_gpu(name))
        by_claim = sum(device.request.count or 0 for device in self.devices if taken.is_gpu_driver(device))
        return by_resource + by_claim

    # --- networks

    @cached_property
    def injected(self) -> str:
        """The annotation that lets Spiderpool set networks and resources at admission (S159); empty: none."""
        return next((name for name in INJECT if self.annotations.get(name)), "")

    @cached_property
    def further(self) -> tuple[Attachment, ...]:
        """The networks beside the first one, in their order."""
        return self._of_annotation(NETWORKS)

    @cached_property
    def named_networks(self) -> tuple[tuple[str, Attachment], ...]:
        """All networks that annotations name, also the one that takes the place of the first, each behind the
        annotation."""
        first = tuple([(DEFAULT_NETWORK, attachment) for attachment in self._of_annotation(DEFAULT_NETWORK)])
        return first + tuple([(NETWORKS, attachment) for attachment in self.further])

    @cached_property
    def attachments(self) -> tuple[Attachment, ...]:
        """The same without the annotations."""
        return tuple([attachment for _key, attachment in self.named_networks])

    def _of_annotation(self, key: str) -> tuple[Attachment, ...]:
        return tuple([self._attachment(*entry) for entry in self._networks[0].get(key, [])])

    @cached_property
    def bad_networks(self) -> tuple[tuple[str, str], ...]:
        """Annotations that cannot be read, each with the reason."""
        return self._networks[1]

    @cached_property
    def _networks(self) -> tuple[dict[str, list[tuple[str, str, str]]], tuple[tuple[str, str], ...]]:
        good: dict[str, list[tuple[str, str, str]]] = {}
        bad: list[tuple[str, str]] = []
        for key in (DEFAULT_NETWORK, NETWORKS):
            value = self.annotations.get(key)
            if not value:
                continue
            try:
                good[key] = networks.parse(value)
            except ValueError as problem:
                bad.append((key, str(problem)))
        return good, tuple(bad)

    def _attachment(self, namespace: str, name: str, interface: str) -> Attachment:
        document, resource = networks.find(namespace or self.namespace, name, self.context)
        return Attachment(namespace or self.namespace, name, interface, document, resource)

    # --- RDMA

    @cached_property
    def rdma_resources(self) -> tuple[str, ...]:
        """The resources of RDMA devices that containers ask for."""
        behind = {attachment.resource for attachment in self.attachments}
        return tuple([name for name in self.amounts if name in behind or is_rdma(name)])

    @cached_property
    def rdma(self) -> Optional[bool]:
        """Whether the pod takes RDMA devices; ``None``: a claim that could tell is not among the documents."""
        if self.nics or self.rdma_resources or any(attachment.resource for attachment in self.attachments):
            return True
        return None if self.undecided else False

    @cached_property
    def rdma_containers(self) -> tuple[Container, ...]:
        """The containers that use RDMA devices: those that ask for one, else those with a GPU, else all that last."""
        names = {device.use.name for device in self.nics}
        asking = [
            container
            for container in self.containers
            if any(name in self.rdma_resources for name in taken.asked(container))
            or names & taken.claimed(container)
        ]
        if asking or not self.rdma:
            return tuple(asking)
        lasting = [container for container in self.containers if container.lasting]
        with_gpu = [
            container for container in lasting if any(is_gpu(name) for name in taken.asked(container))
        ]
        return tuple(with_gpu or lasting)

    @cached_property
    def shape(self) -> Optional[Shape]:
        """The shape of the nodes: that of the context, else what the node selector asks for, if the table has it."""
        if self.context.shape:
            return self.context.expected
        wanted = selectors.required(self.spec, INSTANCE_TYPE)
        return lookup(next(iter(wanted)), self.context.shapes) if len(wanted) == 1 else None

    # --- environment

    @cached_property
    def settings(self) -> tuple[tuple[Container, Setting], ...]:
        """The variables that its containers get or set."""
        return tuple(
            [
                (container, setting)
                for container in self.containers
                for setting in environments.of(container, self)
            ]
        )

    @cached_property
    def unread_sources(self) -> tuple[Source, ...]:
        """ConfigMaps that fill the environment of a container, or are mounted, and are not among the documents.

        When the documents are all that exists, one that the container can do without sets nothing.
        """
        return tuple(
            [
                source
                for container in self.containers
                for source in (
                    *environments.sources(container, self),
                    *environments.mounts(container, self),
                )
                if source.document is None and not (source.optional and self.context.complete)
            ]
        )


def pods(document: Document, context: Context) -> tuple[Pod, ...]:
    """The pods of a document, read once for all rules."""
    found: Optional[tuple[Pod, ...]] = context.pods.get(id(document))
    if found is None:
        found = tuple([Pod(document, template, context) for template in context.templates(document)])
        context.pods[id(document)] = found
    return found


def target_of(document: Document, context: Context) -> str:
    """The target of an object, by what its pods ask for; empty: it asks for nothing that would tell."""
    if context.target:
        return context.target
    known: dict[int, str] = context.memo.setdefault("targets", {})
    found = known.get(id(document))
    if found is None:
        found = known[id(document)] = _target_of(document, context)
    return found


def _target_of(document: Document, context: Context) -> str:
    for pod in pods(document, context):
        if pod.nics:
            return OKE
        if ACK_RESOURCE in pod.amounts or LINGJUN in objects.mapping(pod.spec, "nodeSelector"):
            return ACK
        if any(
            entry.get("key") == LINGJUN_TAINT["key"]
            for _at, entry in objects.entries(pod.spec.get("tolerations"))
        ):
            return ACK
        if pod.injected or pod.attachments or any(name.startswith(SPIDERPOOL_PREFIX) for name in pod.amounts):
            return SPIDERPOOL
    return ""
