# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Hosts, groups and variables out of the nodes, slices and pods of a cluster.

Private to rdma.k8s: it may change with any release.

In two steps, so that what was read can be kept: :func:`node_facts`, :func:`slice_facts` and :func:`pod_facts` reduce an
object of the API to the few plain values that matter, :func:`build` makes the inventory of these. Every host is in one
group of each kind (target, shape, RDMA network, HPC island, network block, local block, readiness); what cannot be told
is a group of its own, and the host has the reason.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Callable, Optional, Union

from .net import Prefix
from .oke import rdma_network, shapes
from .oke.constants import ATTRIBUTE_DOMAIN

FACTS = 1
"""Changes whenever the facts of an object get another form, so that kept ones are not misread."""

DRIVER = "dra.net"  # F99
OKE_DRANET, SPIDERPOOL_SRIOV, ACK_LINGJUN = TARGETS = ("oke_dranet", "spiderpool_sriov", "ack_lingjun")
NONE, AMBIGUOUS, UNKNOWN = OTHERS = ("none", "ambiguous", "unknown")

ISLAND, NETWORK_BLOCK, LOCAL_BLOCK = "hpc_island", "network_block", "local_block"
LEVELS = {  # F70, F72: the attribute, and the label of OKE, which is a hash of the same
    ISLAND: ("hpcIslandId", "oci.oraclecloud.com/rdma.hpc_island_id"),
    NETWORK_BLOCK: ("networkBlockId", "oci.oraclecloud.com/rdma.network_block_id"),
    LOCAL_BLOCK: ("localBlockId", "oci.oraclecloud.com/rdma.local_block_id"),
}
_TOLD = {
    name: "%s/%s" % (ATTRIBUTE_DOMAIN, name)
    for name in (
        "shape",
        "hpcIslandId",
        "networkBlockId",
        "localBlockId",
        "rackId",
        "gpuMemoryFabricId",
        "rdmaFabricIpv6",
        "rdmaFabricPlanes",
        "rdmaChildIpv4Cidr",
    )
}  # F70
_LINGJUN = "alibabacloud.com/lingjun-worker"  # A13
_PLUGIN = "sriovnetwork.openshift.io/device-plugin"  # S119
_SRIOV_STATE = "sriovnetwork.openshift.io/state"  # S114
_RESOURCE = "spidernet.io/"  # S95
_SHAPES = ("node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type")
_OCI = ("oci.oraclecloud.com/", "oke.oraclecloud.com/")
_KEPT = frozenset([_LINGJUN, _PLUGIN, *_SHAPES, *[label for _attribute, label in LEVELS.values()]])
_INDEXES = {"rdma%d" % index: index for index in range(256)}  # F5
_NO_SLICES = "no slice of the driver dra.net is there for the node"
_SHOWN = 5

Facts = dict[str, Any]


# --- what is kept of an object ---------------------------------------------------------------------------------------


def node_facts(node: Mapping[str, Any], labels: Iterable[str] = (), annotations: Iterable[str] = ()) -> Facts:
    """What is kept of a node.

    :param labels: keys of labels that are kept beside those that this file reads; ``annotations`` likewise.
    """
    metadata, spec, status = (node.get(key) or {} for key in ("metadata", "spec", "status"))
    all_labels, all_annotations = metadata.get("labels") or {}, metadata.get("annotations") or {}
    provider = str(spec.get("providerID") or "")
    addresses: dict[str, str] = {}
    for entry in status.get("addresses") or ():
        addresses.setdefault(entry.get("type") or "", entry.get("address") or "")
    ready = [c.get("status") for c in status.get("conditions") or () if c.get("type") == "Ready"]
    resources = status.get("allocatable") or {}
    return {
        "name": str(metadata.get("name") or ""),
        "uid": str(metadata.get("uid") or ""),
        "provider_id": provider_id(provider),
        "oci": "ocid1.instance." in provider or any(key.startswith(_OCI) for key in all_labels),
        "ready": ready == ["True"],
        "cordoned": bool(spec.get("unschedulable")),
        "addresses": {kind: address for kind, address in addresses.items() if kind and address},
        "labels": {key: all_labels[key] for key in sorted(_KEPT.union(labels)) if key in all_labels},
        "annotations": {
            key: all_annotations[key]
            for key in sorted({_SRIOV_STATE, *annotations})
            if key in all_annotations
        },
        "sriov": sorted([name for name in resources if name.startswith(_RESOURCE)]),
    }


def provider_id(text: str) -> str:
    """The end of a provider id that tells a machine from others: the last part, at most 60 characters (as F65)."""
    last = text.rpartition("/")[2]
    return (last.rpartition(".")[2] if last.startswith("ocid1.") else last)[-60:]


def slice_facts(piece: Mapping[str, Any]) -> Optional[Facts]:
    """What is kept of a ResourceSlice; ``None``: it is not of DRANET, or belongs to no node."""
    spec = piece.get("spec") or {}
    pool = spec.get("pool") or {}
    node = spec.get("nodeName") or pool.get("name")  # F99: the pool has the name of the node
    if spec.get("driver") != DRIVER or not node:
        return None
    told: dict[str, list[Any]] = {}
    last: dict[str, Any] = {}
    nics, count = [], 0
    for device in spec.get("devices") or ():
        attributes = device.get("attributes") or {}
        for name, qualified in _TOLD.items():
            value = attributes.get(qualified)
            if value and value != last.get(name):  # the same on every device of a node (F70), as a rule
                last[name] = value
                values = told.setdefault(name, [])
                values += [plain for plain in value.values() if plain not in values]
        if (attributes.get("dra.net/rdma") or {}).get("bool") is not True:
            continue
        count += 1
        index = _INDEXES.get((attributes.get("dra.net/ifName") or {}).get("string") or "")
        if index is not None:
            listed = (attributes.get("dra.net/ipv4") or {}).get("string") or ""
            nics += [[index, address] for address in listed.split(",") if address]
    return {
        "node": str(node),
        "generation": int(pool.get("generation") or 0),
        "told": told,
        "rdma": count,
        "nics": nics,
    }


def pod_facts(pod: Mapping[str, Any]) -> Optional[Facts]:
    """What is kept of a pod; ``None``: it is on no node yet, or has ended."""
    metadata, spec, status = (pod.get(key) or {} for key in ("metadata", "spec", "status"))
    if not spec.get("nodeName") or status.get("phase") in ("Succeeded", "Failed"):
        return None
    ready = any(
        c.get("type") == "Ready" and c.get("status") == "True" for c in status.get("conditions") or ()
    )
    return {
        "name": str(metadata.get("name") or ""),
        "node": str(spec["nodeName"]),
        "usable": ready and not metadata.get("deletionTimestamp"),
        "created": str(metadata.get("creationTimestamp") or ""),
    }


# --- the inventory ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Wishes:
    """What a user wants of the inventory.

    :param targets: of these only; empty: of all.
    :param subnets: the primary subnets, if they are known (see :func:`rdma_network.find`).
    :param network_key: a label or annotation that names the RDMA network; it wins over addresses.
    :param labels: labels that become variables; ``annotations`` likewise.
    :param host_prefix: stands before the name of each node; ``group_prefix`` before that of each group.
    :param keep_unconnected: whether hosts without a way to reach them stay.
    """

    targets: Collection[str] = ()
    subnets: Sequence[Prefix] = ()
    network_key: str = ""
    labels: Sequence[str] = ()
    annotations: Sequence[str] = ()
    host_prefix: str = ""
    group_prefix: str = "rdma_"
    keep_unconnected: bool = True


@dataclass
class Inventory:
    """Hosts with their variables, groups with their hosts, and what a person should hear."""

    hosts: dict[str, dict[str, Any]] = field(default_factory=dict)
    groups: dict[str, list[str]] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)


Connection = Callable[[Facts], tuple[dict[str, Any], str]]
"""Node -> the variables with which Ansible reaches it, and why it cannot, if so."""


def by_ssh(kinds: Sequence[str], user: str = "", port: Optional[int] = None) -> Connection:
    """Reach nodes at the first address that there is of some types, such as ``InternalIP``."""
    fixed: dict[str, Any] = {"ansible_user": user} if user else {}
    if port is not None:
        fixed["ansible_port"] = port

    def way(node: Facts) -> tuple[dict[str, Any], str]:
        found = [node["addresses"][kind] for kind in kinds if kind in node["addresses"]]
        if not found:
            return fixed, "it has no address of type %s" % " or ".join(kinds)
        return {"ansible_host": found[0], **fixed}, ""

    return way


def by_agent(pods: Iterable[Facts], fixed: Mapping[str, Any]) -> Connection:
    """Reach nodes through the pod on them. A node without one keeps the plugin, or Ansible would try SSH.

    :param fixed: the variables that are the same for all: plugin, namespace, container, kubeconfig.
    """
    best: dict[str, Facts] = {}
    for pod in pods:
        rank = (pod["usable"], pod["created"], pod["name"])
        other = best.get(pod["node"])
        if other is None or rank > (other["usable"], other["created"], other["name"]):
            best[pod["node"]] = pod

    def way(node: Facts) -> tuple[dict[str, Any], str]:
        pod = best.get(node["name"])
        if pod is None:
            return {**fixed}, "no pod of the node agent is on it"
        if not pod["usable"]:
            return {**fixed}, "the pod %s of the node agent on it is not ready" % pod["name"]
        return {**fixed, "ansible_kubectl_pod": pod["name"]}, ""

    return way


def build(
    nodes: Iterable[Facts],
    slices: Union[Iterable[Facts], str],
    connection: Connection,
    wishes: Optional[Wishes] = None,
) -> Inventory:
    """The inventory of a cluster.

    :param slices: facts of all slices, or a sentence that says why they could not be read.
    """
    wishes = wishes or Wishes()
    found = Inventory()
    known = _distinct(nodes, found.warnings)
    views = _views(known, slices, wishes, found.warnings)
    members: dict[tuple[str, str], list[str]] = {("", "nodes"): []}
    unconnected: dict[str, list[str]] = {}
    for node, view in zip(known, views):
        if wishes.targets and view["target"] not in wishes.targets:
            continue
        name = wishes.host_prefix + node["name"]
        way, problem = connection(node)
        if problem:
            unconnected.setdefault(_one_for_all(problem), []).append(node["name"])
            if not wishes.keep_unconnected:
                continue
            view["unknown"]["connection"] = problem
            members.setdefault(("", "no_connection"), []).append(name)
        found.hosts[name] = {"rdma_k8s_node": view, **way}
        for key in _keys(view):
            members.setdefault(key, []).append(name)
    for reason, names in sorted(unconnected.items()):
        done = "kept" if wishes.keep_unconnected else "left out"
        found.warnings.append("%s: no connection, %s: %s" % (_listed(names), done, reason))
    for key, name in _names(members, wishes.group_prefix, found.hosts, found.warnings).items():
        found.groups[name] = members[key]
    return found


def _one_for_all(reason: str) -> str:
    return re.sub(r"the pod \S+ of", "the pod of", reason)


def _listed(names: Sequence[str]) -> str:
    rest = len(names) - _SHOWN
    shown = ", ".join(names[:_SHOWN]) + (" and %d more" % rest if rest > 0 else "")
    return "%s %s" % ("node" if len(names) == 1 else "%d nodes" % len(names), shown)


def _distinct(nodes: Iterable[Facts], warnings: list[str]) -> list[Facts]:
    """The nodes by name. A name that comes twice is one host: the later one."""
    by_name: dict[str, Facts] = {}
    twice = []
    for node in nodes:
        if node["name"] in by_name:
            twice.append(node["name"])
        by_name[node["name"]] = node
    if twice:
        warnings.append("%s: listed more than once, the last one counts" % _listed(twice))
    return [by_name[name] for name in sorted(by_name)]


def _views(
    nodes: Sequence[Facts], slices: Union[Iterable[Facts], str], wishes: Wishes, warnings: list[str]
) -> list[dict[str, Any]]:
    """The variable of each node."""
    unread = slices if isinstance(slices, str) else ""
    devices = {} if isinstance(slices, str) else _by_node(slices)
    merged = [devices.get(node["name"]) for node in nodes]
    levels = {level: _level(level, nodes, merged, warnings) for level in LEVELS}
    if unread:
        warnings.append(
            "The ResourceSlices could not be read, so groups that need them are named unknown: " + unread
        )
    contested: dict[str, list[str]] = {}
    views = []
    for number, (node, told) in enumerate(zip(nodes, merged)):
        missing = unread or ("" if told else _NO_SLICES)
        unknown: dict[str, str] = {}
        view = _view(node, told, missing, wishes, unknown)
        for level, (values, otherwise) in levels.items():
            view[level] = values[number]
            if not values[number]:
                unknown[level] = missing or otherwise
        view["unknown"] = unknown
        views.append(view)
        if view["target"] == AMBIGUOUS:
            contested.setdefault(unknown["target"], []).append(node["name"])
    for reason, names in sorted(contested.items()):
        warnings.append("%s: %s" % (_listed(names), reason))
    return views


def _by_node(slices: Iterable[Facts]) -> dict[str, Facts]:
    """The slices of each node as one; older generations of a pool do not count."""
    found: dict[str, Facts] = {}
    for piece in slices:
        other = found.get(piece["node"])
        if other is None or piece["generation"] > other["generation"]:
            found[piece["node"]] = piece
        elif piece["generation"] == other["generation"]:
            told = {key: list(values) for key, values in other["told"].items()}
            for key, values in piece["told"].items():
                known = told.setdefault(key, [])
                known += [value for value in values if value not in known]
            found[piece["node"]] = {
                **other,
                "told": told,
                "rdma": other["rdma"] + piece["rdma"],
                "nics": other["nics"] + piece["nics"],
            }
    return found


def _told(piece: Optional[Facts], name: str) -> Any:
    """What the slices say, ``None`` when they do not say it, or not all of them the same."""
    values: Sequence[Any] = piece["told"].get(name, ()) if piece else ()
    return values[0] if len(values) == 1 else None


def _view(
    node: Facts, told: Optional[Facts], missing: str, wishes: Wishes, unknown: dict[str, str]
) -> dict[str, Any]:
    labels = node["labels"]
    shape = str(_told(told, "shape") or next((labels[key] for key in _SHAPES if labels.get(key)), ""))
    target, signs = _target(node, told, shape, missing)
    if target == UNKNOWN:
        unknown["target"] = missing
    if target == AMBIGUOUS:
        unknown["target"] = "signs of more than one target: " + "; ".join(signs)
    if not shape:
        unknown["shape"] = "neither a slice nor the label %s tells it" % _SHAPES[0]
    network = _network(node, told, missing, wishes)
    named = labels.get(wishes.network_key) or node["annotations"].get(wishes.network_key) or ""
    addresses = ("", "", "")
    if not isinstance(network, str):
        addresses = (str(network), str(network.oca_network), str(network.subnet))
    elif not named:
        unknown["rdma_network"] = network
    return {
        "name": node["name"],
        "uid": node["uid"],
        "provider_id": node["provider_id"],
        "target": target,
        "shape": shape,
        "ready": node["ready"],
        "cordoned": node["cordoned"],
        "rdma_network": named or addresses[0],
        "oca_network": addresses[1],
        "primary_subnet": addresses[2],
        "child_range": _told(told, "rdmaChildIpv4Cidr") or "",
        "fabric_ipv6": _told(told, "rdmaFabricIpv6"),
        "fabric_planes": _told(told, "rdmaFabricPlanes"),
        "rack": _told(told, "rackId") or "",
        "gpu_memory_fabric": _told(told, "gpuMemoryFabricId") or "",
        "rdma_devices": told["rdma"] if told else None,
        "labels": {key: labels[key] for key in wishes.labels if key in labels},
        "annotations": {
            key: node["annotations"][key] for key in wishes.annotations if key in node["annotations"]
        },
    }


def _target(node: Facts, told: Optional[Facts], shape: str, missing: str) -> tuple[str, list[str]]:
    """The target of a node, and the signs by which it is told.

    A Lingjun node is told by its label alone (A16). What runs on a node counts more than its shape, which tells what a
    node of OCI could become before anything runs on it.
    """
    signs: list[tuple[str, str]] = []
    if node["labels"].get(_LINGJUN) == "true":
        signs.append((ACK_LINGJUN, "label %s" % _LINGJUN))
    if told and (told["told"] or (told["rdma"] and node["oci"])):
        signs.append((OKE_DRANET, "slices of %s" % DRIVER))
    if node["labels"].get(_PLUGIN) == "Enabled":
        signs.append((SPIDERPOOL_SRIOV, "label %s" % _PLUGIN))
    if _SRIOV_STATE in node["annotations"]:
        signs.append((SPIDERPOOL_SRIOV, "annotation %s" % _SRIOV_STATE))
    if node["sriov"]:
        signs.append((SPIDERPOOL_SRIOV, "resource %s" % node["sriov"][0]))
    if not signs and node["oci"]:
        entry = shapes.lookup(shape, shapes.DEFAULT_TABLE)
        if entry is not None and entry.rdma_nics:
            signs.append((OKE_DRANET, "shape %s" % shape))
    targets = {target for target, _sign in signs}
    told_by = [sign for _target_of, sign in signs]
    if not targets:
        return (UNKNOWN if missing and missing != _NO_SLICES else NONE), told_by
    return (targets.pop() if len(targets) == 1 else AMBIGUOUS), told_by


def _network(
    node: Facts, told: Optional[Facts], missing: str, wishes: Wishes
) -> Union[rdma_network.RdmaNetwork, str]:
    if missing or told is None:
        return missing
    if _told(told, "rdmaFabricIpv6") is True:
        return "the fabric is IPv6, which has no OCA network"
    address = node["addresses"].get("InternalIP", "")
    return rdma_network.find(address, [(nic[0], nic[1]) for nic in told["nics"]], wishes.subnets)


def _level(
    level: str, nodes: Sequence[Facts], merged: Sequence[Optional[Facts]], warnings: list[str]
) -> tuple[list[str], str]:
    """The value of one level of the topology for each node, and why it is empty where it is.

    The attribute is the end of an OCID, the label of OKE a hash of the same (F72). A node that has the label only gets
    the attribute that other nodes with this label have, so that one block stays one group.
    """
    attribute, label = LEVELS[level]
    values = [str(_told(told, attribute) or "") for told in merged]
    hashes = [str(node["labels"].get(label) or "") for node in nodes]
    meanings: dict[str, set[str]] = {}
    for value, hashed in zip(values, hashes):
        if value and hashed:
            meanings.setdefault(hashed, set()).add(value)
    for hashed, several in sorted(meanings.items()):
        if len(several) > 1:
            warnings.append(
                "The label %s=%s stands for more than one %s: %s"
                % (label, hashed, attribute, ", ".join(sorted(several)))
            )
    same = {hashed: min(several) for hashed, several in meanings.items() if len(several) == 1}
    found = [value or same.get(hashed, hashed) for value, hashed in zip(values, hashes)]
    return found, "neither the attribute %s/%s nor the label %s tells it" % (
        ATTRIBUTE_DOMAIN,
        attribute,
        label,
    )


# --- groups ----------------------------------------------------------------------------------------------------------

KINDS = {
    "target": "target",
    "shape": "shape",
    "rdma_network": "network",
    ISLAND: ISLAND,
    NETWORK_BLOCK: NETWORK_BLOCK,
    LOCAL_BLOCK: LOCAL_BLOCK,
}
"""Variable -> how its groups begin, behind the prefix."""

_UNSAFE = re.compile(r"[^A-Za-z0-9_]")


def _keys(view: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The groups of a host: kind and value; those that are always called the same have no kind."""
    keys = [("", "nodes"), ("", "ready" if view["ready"] else "not_ready")]
    if view["cordoned"]:
        keys.append(("", "cordoned"))
    for variable, kind in KINDS.items():
        value = view[variable]
        if not value or (variable == "target" and value in OTHERS):
            keys.append(("", "%s_%s" % (kind, value or UNKNOWN)))
        else:
            keys.append((kind, value))
    return keys


def _names(
    members: Mapping[tuple[str, str], Sequence[str]],
    prefix: str,
    hosts: Collection[str],
    warnings: list[str],
) -> dict[tuple[str, str], str]:
    """A name for each group. Values that would get one name all get the beginning of a digest behind it."""
    wanted: dict[str, list[tuple[str, str]]] = {}
    for kind, value in sorted(members):
        wanted.setdefault(group_name(prefix, kind, value), []).append((kind, value))
    names: dict[tuple[str, str], str] = {}
    taken = set(wanted)
    for name, keys in wanted.items():
        for key in keys:
            if name not in hosts and (len(keys) == 1 or not key[0]):
                names[key] = name
                continue
            names[key] = _longer(name, key, taken)
            warnings.append(
                "The group of %s is called %s, as %s would also be the name of another group or of a host"
                % (" ".join(filter(None, key)), names[key], name)
            )
    return names


def group_name(prefix: str, kind: str, value: str) -> str:
    """A name that Ansible takes: letters, digits and underscores, no digit first."""
    name = _UNSAFE.sub("_", prefix + (kind + "_" if kind else "") + value)
    return "_" + name if name[:1].isdigit() else name


def _longer(name: str, key: tuple[str, str], taken: set[str]) -> str:
    digest = hashlib.sha256("\0".join(key).encode("utf-8", "surrogatepass")).hexdigest()
    length = 8
    while "%s_%s" % (name, digest[:length]) in taken:
        length += 8
    taken.add("%s_%s" % (name, digest[:length]))
    return "%s_%s" % (name, digest[:length])
