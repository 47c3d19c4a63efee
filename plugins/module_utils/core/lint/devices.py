# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Devices that pods take, by claims and by extended resources. Private to rdma.k8s: it may change with any release."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, Optional

from ..kube import claims, objects
from ..kube.claims import Claim, Request
from ..kube.documents import Document
from ..kube.pod_templates import Container
from ..oke import claim_views
from ..spiderpool.names import RESOURCE_PREFIX
from .model import Context, Path

DRANET = "dra.net"
SPIDERPOOL_PREFIX = RESOURCE_PREFIX + "/"
GPU_RESOURCES = ("nvidia.com/gpu", "amd.com/gpu", "aliyun.com/gpu", "alibabacloud.com/ppu")

CHILD, DEVICE, MOVED = "child", "device", "moved"


class ClaimUse(NamedTuple):
    """A claim of a pod. ``document`` is where it was found; ``None``: not among the documents."""

    name: str
    path: Path
    kind: str
    called: str
    document: Optional[Document]

    @property
    def ref(self) -> str:
        return "%s %s" % (self.kind, self.called)


class Device(NamedTuple):
    """A request of one of the claims of a pod, with the driver that serves it (empty: could not be told).

    :param selectors: CEL expressions of the request and of its class.
    """

    use: ClaimUse
    claim: Claim
    request: Request
    driver: str
    selectors: tuple[str, ...]

    @property
    def attributes(self) -> Mapping[str, set[str]]:
        """The attributes that the selectors speak of, see :func:`..kube.claims.attributes`."""
        return claims.attributes(self.selectors)


def claim_of(document: Document, context: Context) -> Claim:
    """What a claim or a claim template asks for, read once."""
    found: Optional[Claim] = context.claims.get(id(document))
    if found is None:
        found = context.claims[id(document)] = claims.read(document.content)
    return found


def driver_of(request: Request, claim: Claim, context: Context) -> str:
    """The driver that serves a request; empty: neither its class nor its selectors tell."""
    known: dict[Any, str] = context.memo.setdefault("drivers", {})
    key = (request.device_class, request.expressions)
    found = known.get(key)
    if found is None:
        found = known[key] = _driver(request, context)
    if found:
        return found
    drivers = {config.driver for config in claim.configs if request.name in config.requests}
    if len(drivers) == 1:
        return drivers.pop()
    # The usual name of a class is that of its driver.
    unseen = "." in request.device_class and context.device_class(request.device_class) is None
    return request.device_class if unseen else ""


def selectors_of(request: Request, context: Context) -> tuple[str, ...]:
    """The expressions of a request and of its class, as far as the class is among the documents."""
    known: dict[str, tuple[str, ...]] = context.memo.setdefault("selectors of classes", {})
    name = request.device_class
    if name not in known:
        document = context.device_class(name)
        spec = objects.mapping(document.content, "spec") if document is not None else {}
        known[name] = claims.expressions(spec)
    return request.expressions + known[name]


def _driver(request: Request, context: Context) -> str:
    """The driver that the selectors of a request and of its class name."""
    expressions = selectors_of(request, context)
    for expression in expressions:
        named = claims.driver(expression)
        if named:
            return named
    ours = any(name.startswith(DRANET + "/") for name in claims.attributes(expressions))
    return DRANET if ours else ""


def form_of(device: Device) -> str:
    """What a request of DRANET gives to the pod: an IPvlan child, the bare RDMA device, or the NIC itself."""
    selectors = device.selectors
    if claim_views.selects_rdma_only(selectors) and not claim_views.selects_rdma_nic(selectors):
        return DEVICE
    for parameters in device.claim.parameters(device.request, DRANET):
        if objects.text(objects.mapping(parameters, "interface").get("type")).lower() == "passthrough":
            return MOVED
    return CHILD


def interface_of(device: Device) -> Optional[str]:
    """The name in the pod of the interface that a request gives; ``None``: the selectors leave it open (F41)."""
    for parameters in device.claim.parameters(device.request, DRANET):
        name = objects.text(objects.mapping(parameters, "interface").get("name"))
        if name:
            return name
    names = device.attributes.get(DRANET + "/ifName", set())
    return next(iter(names)) if len(names) == 1 else None


def is_rdma_nic(device: Device, netdevs: Iterable[str]) -> bool:
    """Whether a request of DRANET may get an RDMA NIC; not so when its selectors name other interfaces (F73).

    :param netdevs: how the shape calls the RDMA interfaces, ``N`` stands for the index.
    """
    if device.attributes.get(DRANET + "/rdma") == {"false"}:
        return False
    names = device.attributes.get(DRANET + "/ifName", set())
    return not names or any(called(name, netdev) for name in names for netdev in ("rdmaN", *netdevs))


def called(name: str, netdev: str) -> bool:
    """Whether an interface is called as a shape calls its RDMA interfaces: ``rdma3`` as ``rdmaN``."""
    if not netdev.endswith("N"):
        return name == netdev
    return name.startswith(netdev[:-1]) and name[len(netdev) - 1 :].isdigit()


def is_gpu(resource: str) -> bool:
    return resource in GPU_RESOURCES or resource.startswith("alibabacloud.com/ppu-")


def is_gpu_driver(device: Device) -> bool:
    return device.driver.startswith("gpu.")


def claimed(container: Container) -> set[str]:
    """The claims of the pod that a container uses."""
    listed = objects.mapping(container.spec, "resources").get("claims")
    return {objects.text(entry.get("name")) for _position, entry in objects.entries(listed)}


# --- resources


def is_extended(resource: Any) -> bool:
    """Extended resources have a domain that is not Kubernetes' own."""
    if not isinstance(resource, str) or "/" not in resource:
        return False
    domain = resource.partition("/")[0]
    return domain != "kubernetes.io" and not domain.endswith(".kubernetes.io")


def is_rdma(resource: str) -> bool:
    """A resource that by its name stands for RDMA devices."""
    return resource.startswith(("rdma/", SPIDERPOOL_PREFIX)) or "rdma" in resource.partition("/")[2]


def asked(container: Container) -> dict[str, Any]:
    """The extended resources of a container: its limits, and what stands in the requests alone."""
    resources = container.spec.get("resources")
    if not isinstance(resources, dict):
        return {}
    found: dict[str, Any] = {}
    for part in ("requests", "limits"):
        amounts = resources.get(part)
        if isinstance(amounts, dict):
            found.update({name: value for name, value in amounts.items() if is_extended(name)})
    return found
