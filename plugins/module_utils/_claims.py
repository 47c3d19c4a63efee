# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which RDMA NICs a module is about, and the claim for them. Private to rdma.k8s: it may change any time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

from ansible.module_utils.basic import AnsibleModule

from . import _kube, _objects
from .core.errors import RdmaError
from .core.net import parse_prefix, quoted
from .core.oke import claim_nics, claims, shapes
from .core.oke.claim_nics import ClaimNic
from .core.oke.slices import Discovery, discover

OPTIONS: dict[str, Any] = {
    "shape": {"type": "str"},
    "shapes": {"type": "dict", "default": {}},
    "slices": {"type": "list", "elements": "dict"},
    "from_cluster": {"type": "bool"},
    "nodes": {"type": "list", "elements": "str"},
    "oca_network": {"type": "str", "default": "10.224.0.0/12"},
    "select_by": {"type": "str", "choices": ["name", "pci", "rdma_device"]},
    "nics": {"type": "list", "elements": "str"},
    "count": {"type": "int"},
    "fabric": {"type": "str", "choices": ["ipv4", "ipv6", "infiniband"]},
}

EXCLUSIVE = [("slices", "from_cluster"), ("nics", "count")]

SLICES = "/apis/resource.k8s.io/v1/resourceslices"


class Found(NamedTuple):
    """The NICs, and where they are from.

    :param shape: ``None``: no shape is given.
    :param discovery: ``None``: they are those of the shape.
    :param whole: all NICs of the node are among them.
    """

    nics: tuple[ClaimNic, ...]
    fabric: str
    shape: Any
    discovery: Any
    whole: bool


def lookup(params: dict[str, Any]) -> Any:
    """The entry of the shape that the options name; ``None``: they name none.

    :raises RdmaError: ``shape_unknown``, ``shape_malformed``
    """
    if not params["shape"]:
        return None
    found = shapes.lookup(params["shape"], shapes.extend(shapes.DEFAULT_TABLE, params["shapes"]))
    if found is None:
        raise RdmaError(
            "shape_unknown",
            "The shape %s is not in the table of shapes." % quoted(params["shape"]),
            hint="Add it by the option shapes, or take the NICs from the slices of the nodes.",
            shape=params["shape"],
        )
    return replace(found, name=params["shape"])  # an entry may be a pattern, which is no shape of a node


def find(module: AnsibleModule) -> Found:
    """The NICs that the options name.

    :raises RdmaError: ``claim_source_missing``, and others of the shape, the slices and the choice
    """
    params = module.params
    shape, by = lookup(params), params["select_by"] or ""
    discovery = None
    if params["from_cluster"] or params["slices"] is not None:
        found = (
            _kube.connect(module).items(SLICES, fieldSelector="spec.driver=dra.net")
            if params["from_cluster"]
            else params["slices"]
        )
        discovery = discover(found, params["nodes"], by, parse_prefix(params["oca_network"]))
        warn(module, discovery)
        nics, fabric = discovery.nics, discovery.fabric
    elif shape is None:
        raise RdmaError(
            "claim_source_missing",
            "Nothing tells which RDMA NICs the claim asks for: give shape, slices or from_cluster.",
        )
    else:
        nics, fabric = claim_nics.of_shape(shape, by), shape.fabric
    chosen = claim_nics.choose(nics, params["nics"], params["count"])
    return Found(chosen, params["fabric"] or fabric, shape, discovery, len(chosen) == len(nics))


def warn(module: AnsibleModule, discovery: Discovery) -> None:
    """One warning for each node that is not like the others."""
    for odd in discovery.odd:
        sentence = claims.odd_sentence(odd.node, odd.missing, odd.extra)
        if sentence:
            module.warn(sentence)


def render(module: AnsibleModule) -> _objects.Rendering:
    """The claim that the options of ``claim_template`` describe."""
    params = module.params
    if params["state"] == "absent":
        return _objects.Rendering([_named(params)], [], {})
    found = find(module)
    profile = params["profile"]
    wish = claims.ClaimWish(
        params["name"],
        found.nics,
        params["namespace"],
        params["kind"],
        params["device_class"],
        found.fabric == shapes.IPV4 if profile is None else profile,
        params["provider"],
        params["addresses"],
        params["node_attributes"],
        params["cel"],
        params["gpu_class"],
        params["gpus"],
        params["align"] or "",
    )
    made = claims.claim(wish)
    notes = claims.notes(wish)
    nodes: list[str] = []
    odd: list[dict[str, Any]] = []
    source = "the shape %s" % params["shape"]
    if found.discovery is not None:
        claims.check_alignment(wish, found.discovery.devices)
        nodes = list(found.discovery.nodes)
        odd = [
            {"node": entry.node, "missing": list(entry.missing), "extra": list(entry.extra)}
            for entry in found.discovery.odd
        ]
        source = "the slices of %d nodes" % len(nodes)
    requests = [
        {"name": nic.request, "attribute": nic.attribute, "value": nic.value, "rdma_device": nic.rdma_device}
        for nic in found.nics
    ]
    comment = ["Made by rdma.k8s.claim_template from %s, for %d RDMA NICs." % (source, len(found.nics))]
    values = {"requests": requests, "nodes": nodes, "odd_nodes": odd, "notes": notes}
    return _objects.Rendering([made], comment + notes, values)


def _named(params: dict[str, Any]) -> dict[str, Any]:
    metadata = {"name": params["name"], "namespace": params["namespace"]}
    return {"apiVersion": claims.API_VERSION, "kind": params["kind"], "metadata": metadata}
