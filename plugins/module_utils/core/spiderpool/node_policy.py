# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""SriovNetworkNodePolicy: what admission refuses, and what it lets pass. Private to rdma.k8s: it may change any time.

Admission compares a new policy with the others, and has holes (S109); here all pairs are compared.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Optional

from ..codec import natural
from ..kube.objects import entries, mapping, name, namespace, text
from ..net import quoted
from . import versions
from .issue import Issue, error, is_between, ordered, warning, whole
from .names import ETHERNET, INFINIBAND, MELLANOX, NAMESPACE, SUPPORTED

MELLANOX_MOST = 128
"""Virtual functions of a Mellanox NIC at most, whatever its firmware is set to (S107)."""
OPERATOR = "1.3.0"
"""The version of the operator in the chart (S96)."""
DEFAULT = "default"
"""A policy that the operator makes for itself; it asks for nothing."""
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_]+")
_HYPHEN_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9])?")
_PLAIN_NAMES_UNTIL = versions.Version(1, 6, 0)
_CORRECTS_FROM = versions.Version(1, 4, 0)
KNOWN = frozenset(
    (
        "resourceName",
        "nodeSelector",
        "priority",
        "mtu",
        "numVfs",
        "nicSelector",
        "deviceType",
        "isRdma",
        "linkType",
        "eSwitchMode",
        "excludeTopology",
        "externallyManaged",
        "needVhostNet",
        "vdpaType",
        "bridge",
        "eSwitchParams",
    )
)
"""Fields of the specification (S101)."""
_SELECTORS = ("vendor", "deviceID", "rootDevices", "pfNames", "netFilter")
_CHOICES = {
    "deviceType": ("netdevice", "vfio-pci"),
    "linkType": ("eth", "ETH", "ib", "IB"),
    "eSwitchMode": ("legacy", "switchdev"),
}


class Nic(NamedTuple):
    """A physical function as the state of its node tells it (S113); ``None``: not told."""

    name: str
    pci: str
    vendor: str
    device: str
    total_vfs: Optional[int] = None
    vfs: Optional[int] = None
    mtu: Optional[int] = None
    link_type: str = ""


class Node(NamedTuple):
    """A node with its labels and its physical functions."""

    name: str
    labels: Mapping[str, Any]
    nics: Sequence[Nic]


class Range(NamedTuple):
    """An entry of ``pfNames``: ``ens1f0``, or ``ens1f0#0-3`` for some of its virtual functions."""

    pf: str
    first: Optional[int] = None
    last: Optional[int] = None
    malformed: bool = False

    @property
    def is_part(self) -> bool:
        return self.first is not None


def node_of(content: Mapping[str, Any]) -> Node:
    """From plain data: ``name``, ``labels``, and ``interfaces`` with the names of the API (S113)."""
    found = [
        Nic(
            text(entry.get("name")),
            text(entry.get("pciAddress")),
            text(entry.get("vendor")),
            text(entry.get("deviceID")),
            whole(entry.get("totalvfs")),
            whole(entry.get("numVfs")),
            whole(entry.get("mtu")),
            text(entry.get("linkType")),
        )
        for _at, entry in entries(content.get("interfaces"))
    ]
    return Node(text(content.get("name")), mapping(content, "labels"), found)


def range_of(entry: Any) -> Range:
    """Read an entry of ``pfNames``; its range is two whole numbers with a hyphen behind ``#`` (S105)."""
    pf, hash_, rest = text(entry).partition("#")
    if not hash_:
        return Range(pf, malformed=not pf)
    first, _hyphen, last = rest.partition("-")
    numbers = natural(first), natural(last)
    if not pf or None in numbers:
        return Range(pf, malformed=True)
    return Range(pf, *numbers)


def judge_all(
    policies: Iterable[Mapping[str, Any]],
    nodes: Optional[Sequence[Node]] = None,
    existing: Iterable[Mapping[str, Any]] = (),
    *,
    supported: Optional[Mapping[str, Sequence[str]]] = None,
    operator_version: str = OPERATOR,
    hyphen_allowed: Optional[bool] = None,
    operator_namespace: str = NAMESPACE,
) -> list[list[Issue]]:
    """What is wrong with each policy. Only policies that could mean one NIC are compared, so hundreds of them take no
    longer each than a few.

    :param nodes: all nodes; ``None``: not known, so nothing is said of nodes and NICs.
    :param existing: all policies; one of the same name and namespace is taken for an older form of the one that is
        judged.
    :param supported: device ids by vendor; ``None``: those of the chart (S100).
    :param hyphen_allowed: whether resource names may have hyphens; ``None``: by the version (S103).
    """
    version = versions.find(operator_version)
    listed = SUPPORTED if supported is None else supported
    if hyphen_allowed is None:
        hyphen_allowed = version is not None and version > _PLAIN_NAMES_UNTIL
    others = _Others(
        [
            other
            for other in existing
            if (namespace(other) or operator_namespace) == operator_namespace and name(other) != DEFAULT
        ],
        nodes,
        listed,
    )
    judged = []
    for policy in policies:
        found = [*_place(policy, operator_namespace), *_resource_name(policy, hyphen_allowed)]
        found += _selector(policy, listed)
        found += _numbers(policy)
        found += _modes(policy, version)
        found += _parts(policy)
        if nodes is not None:
            found += _on_nodes(policy, nodes, listed)
        own = _identity(policy, operator_namespace)
        for other in others.near(policy):
            if _identity(other, operator_namespace) != own:
                found += _against(policy, other, nodes, listed)
        judged.append(ordered(found))
    return judged


def _identity(policy: Mapping[str, Any], default: str) -> tuple[str, str]:
    return namespace(policy) or default, name(policy)


def _place(policy: Mapping[str, Any], wanted: str) -> Iterator[Issue]:
    """The operator looks into its own namespace only (S102)."""
    given = namespace(policy)
    if given and given != wanted:
        message = "the operator ignores policies outside namespace %s, found %s" % (wanted, quoted(given))
        yield warning("namespace-ignored", "metadata.namespace", message)


def _resource_name(policy: Mapping[str, Any], hyphen_allowed: bool) -> Iterator[Issue]:
    """Letters, digits and underscores; newer code takes hyphens that do not stand at an end (S103)."""
    given = mapping(policy, "spec").get("resourceName")
    pattern = _HYPHEN_NAME if hyphen_allowed else _PLAIN_NAME
    if not pattern.fullmatch(text(given)):
        rule = "letters, digits and '_'" + (
            ", '-' inside, at most 63 characters" if hyphen_allowed else ", no '-'"
        )
        message = "a resource name has %s, found %s" % (rule, quoted(given))
        yield error("resource-name-invalid", "spec.resourceName", message)


def _selector(policy: Mapping[str, Any], supported: Mapping[str, Sequence[str]]) -> Iterator[Issue]:
    """At least one field, and only NICs that the operator is told to support (S100, S104)."""
    at = "spec.nicSelector"
    selector = mapping(policy, "spec", "nicSelector")
    given = [key for key in _SELECTORS if selector.get(key)]
    if not given:
        yield error("selector-empty", at, "the selector names no NIC: give one of %s" % ", ".join(_SELECTORS))
    if "netFilter" in given and len(given) > 1:
        message = "netFilter excludes the other selectors, found also %s" % ", ".join(given[:-1])
        yield error("netfilter-not-alone", at + ".netFilter", message)
    vendor, device = text(selector.get("vendor")), text(selector.get("deviceID"))
    if vendor and vendor not in supported:
        message = "the operator does not support vendor %s" % quoted(vendor)
        yield error("device-unsupported", at + ".vendor", message)
    elif device and not any(device in supported[entry] for entry in ([vendor] if vendor else supported)):
        message = "the operator does not support device %s" % quoted(device)
        yield error("device-unsupported", at + ".deviceID", message)


def _numbers(policy: Mapping[str, Any]) -> Iterator[Issue]:
    """Bounds of the fields (S101), and no policy without virtual functions (S107)."""
    spec = mapping(policy, "spec")
    given = spec.get("numVfs")
    vfs = 0 if given is None else whole(given)
    if vfs is None or vfs < 0:
        yield error("numvfs-invalid", "spec.numVfs", "numVfs is a whole number, found %s" % quoted(given))
    elif vfs == 0:
        yield error("numvfs-zero", "spec.numVfs", "a policy must ask for at least one virtual function")
    elif vfs > MELLANOX_MOST and text(mapping(spec, "nicSelector").get("vendor")) == MELLANOX:
        yield _above_vendor(vfs)
    for key, low, high in (("priority", 0, 99), ("mtu", 1, None)):
        value = spec.get(key)
        if value is not None and not is_between(value, low, high):
            bounds = "from %d to %d" % (low, high) if high is not None else "at least %d" % low
            message = "%s is a whole number %s, found %s" % (key, bounds, quoted(value))
            yield error("%s-range" % key, "spec.%s" % key, message)


def _above_vendor(vfs: int) -> Issue:
    message = "a Mellanox NIC has at most %d virtual functions, found %d" % (MELLANOX_MOST, vfs)
    return error("numvfs-exceeds-vendor-max", "spec.numVfs", message)


def _modes(policy: Mapping[str, Any], version: Optional[versions.Version]) -> Iterator[Issue]:
    """Values that do not go together (S106); an empty link type means that it does not matter (S251)."""
    spec = mapping(policy, "spec")
    for key, choices in _CHOICES.items():
        value = spec.get(key)
        if value not in (None, "", *choices):
            message = "%s is one of %s, found %s" % (key, ", ".join(choices), quoted(value))
            yield error("%s-invalid" % key.lower(), "spec.%s" % key, message)
    link, rdma = text(spec.get("linkType")).lower(), spec.get("isRdma") is True
    if spec.get("deviceType") == "vfio-pci" and rdma:
        message = "a function that is bound to vfio-pci has no RDMA device: use netdevice, or isRdma false"
        yield error("vfio-rdma-conflict", "spec.deviceType", message)
    if spec.get("eSwitchMode") == "switchdev" and link not in ("", ETHERNET):
        message = "switchdev is for Ethernet only, found linkType %s" % quoted(spec["linkType"])
        yield error("switchdev-needs-eth", "spec.eSwitchMode", message)
    if link == INFINIBAND and not rdma and (version is None or version < _CORRECTS_FROM):
        yield error("ib-requires-rdma", "spec.isRdma", "linkType ib needs isRdma true")


def _ranges(policy: Mapping[str, Any]) -> list[tuple[int, Range]]:
    given = mapping(policy, "spec", "nicSelector").get("pfNames")
    return [(at, range_of(entry)) for at, entry in enumerate(given if isinstance(given, list) else [])]


def _parts(policy: Mapping[str, Any]) -> Iterator[Issue]:
    """Ranges of virtual functions: first not above last, last below their number (S105)."""
    vfs = whole(mapping(policy, "spec").get("numVfs"))
    for position, entry in _ranges(policy):
        at = "spec.nicSelector.pfNames[%d]" % position
        if entry.malformed:
            message = "a PF is a name, or a name with a range such as ens1f0#0-3"
            yield error("pf-range-syntax", at, message)
        elif entry.first is not None and entry.last is not None:
            if entry.last < entry.first:
                message = "the range %d-%d ends before it begins" % (entry.first, entry.last)
                yield error("pf-range-reversed", at, message)
            if vfs is not None and entry.last >= vfs:
                message = "with %d virtual functions the last one is %d, found %d" % (
                    vfs,
                    vfs - 1,
                    entry.last,
                )
                yield error("pf-range-exceeds-numvfs", at, message)


# --- on nodes


def selects_node(policy: Mapping[str, Any], node: Node) -> bool:
    """Whether the labels of a node are those of the policy; an empty selector takes every node (S108, S244)."""
    wanted = mapping(policy, "spec", "nodeSelector")
    return all(key in node.labels and node.labels[key] == value for key, value in wanted.items())


def selects_nic(
    policy: Mapping[str, Any], nic: Nic, supported: Optional[Mapping[str, Sequence[str]]] = None
) -> bool:
    """Whether the selector of a policy takes a NIC; one that is not supported it never takes (S104, S108).

    :param supported: devices by vendor; ``None``: those of the operator's own list.
    """
    listed = SUPPORTED if supported is None else supported
    selector = mapping(policy, "spec", "nicSelector")
    devices, pfs = selector.get("rootDevices"), [entry.pf for _at, entry in _ranges(policy)]
    return (
        nic.device in listed.get(nic.vendor, ())
        and selector.get("vendor") in (None, "", nic.vendor)
        and selector.get("deviceID") in (None, "", nic.device)
        and (not devices or (isinstance(devices, list) and nic.pci in devices))
        and (not pfs or nic.name in pfs)
    )


def _on_nodes(
    policy: Mapping[str, Any], nodes: Sequence[Node], supported: Mapping[str, Sequence[str]]
) -> Iterator[Issue]:
    """A policy must take a node and a NIC there, which can do what it asks for (S107, S108)."""
    chosen = [node for node in nodes if selects_node(policy, node)]
    nics = [nic for node in chosen for nic in node.nics if selects_nic(policy, nic, supported)]
    if not chosen:
        yield error("node-none-selected", "spec.nodeSelector", "no node has the labels of the selector")
    elif not nics:
        message = "no supported NIC of the %d selected nodes is one of the selector" % len(chosen)
        yield error("nic-none-selected", "spec.nicSelector", message)
    for nic in nics:
        yield from _on_nic(mapping(policy, "spec"), nic)


def _on_nic(spec: Mapping[str, Any], nic: Nic) -> Iterator[Issue]:
    vfs, link = whole(spec.get("numVfs")), text(spec.get("linkType")).lower()
    if vfs is not None:
        if nic.vendor == MELLANOX and vfs > MELLANOX_MOST:
            yield _above_vendor(vfs)
        elif nic.total_vfs is not None and vfs > nic.total_vfs:
            yield _above_total(vfs, nic.total_vfs, nic.vendor)
    if nic.link_type.lower() == INFINIBAND and not link and not spec.get("externallyManaged"):
        message = (
            "an InfiniBand NIC is selected and linkType is not given, so the Ethernet way is tried and fails"
        )
        yield error("ib-needs-linktype", "spec.linkType", message)  # S112
    if spec.get("externallyManaged") is True:
        yield from _external(spec, nic)


def _above_total(vfs: int, total: int, vendor: str) -> Issue:
    if vendor == MELLANOX:
        message = "the firmware is set to %d virtual functions: %d need another setting and a reboot" % (
            total,
            vfs,
        )
        return warning("numvfs-needs-firmware", "spec.numVfs", message)
    message = "a selected NIC has at most %d virtual functions, found %d" % (total, vfs)
    return error("numvfs-exceeds-totalvfs", "spec.numVfs", message)


def _external(spec: Mapping[str, Any], nic: Nic) -> Iterator[Issue]:
    """A NIC that somebody else manages must already be as the policy wants it (S110)."""
    for key, have in (("numVfs", nic.vfs), ("mtu", nic.mtu)):
        want = whole(spec.get(key))
        if have is not None and want is not None and want > have:
            message = "the NIC is managed elsewhere and has %s %d, found %d" % (key, have, want)
            yield error("external-%s-exceeds-pf" % key.lower(), "spec.%s" % key, message)
    link = text(spec.get("linkType"))
    if link and nic.link_type and link.lower() != nic.link_type.lower():
        message = "the NIC is managed elsewhere and has link type %s, found %s" % (
            nic.link_type,
            quoted(link),
        )
        yield error("external-linktype-mismatch", "spec.linkType", message)


# --- two policies


class _Others:
    """Many policies, made ready to find those that could mean a NIC of another one.

    Two that do so name a root device or a PF, or take a NIC of a known node, which the other one does, too. They are
    apart all the same when they give one label of nodes different values: that is looked at for the label that tells
    most policies apart.
    """

    def __init__(
        self,
        policies: Sequence[Mapping[str, Any]],
        nodes: Optional[Sequence[Node]],
        supported: Mapping[str, Sequence[str]],
    ) -> None:
        self._policies, self._nodes, self._supported = policies, nodes or (), supported
        values: dict[str, set[str]] = {}
        for policy in policies:
            for key, value in mapping(policy, "spec", "nodeSelector").items():
                values.setdefault(key, set()).add(text(value))
        self._label = max(values, key=lambda key: len(values[key]), default="")
        self._by_nic: dict[tuple[Any, ...], dict[Optional[str], list[int]]] = {}
        for position, policy in enumerate(policies):
            value = self._value(policy)
            for nic in self._nics(policy):
                self._by_nic.setdefault(nic, {}).setdefault(value, []).append(position)

    def near(self, policy: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        """Those among which all are that :func:`_against` has something to say of."""
        value = self._value(policy)
        found: set[int] = set()
        for nic in self._nics(policy):
            by_value = self._by_nic.get(nic, {})
            for other in by_value if value is None else (value, None):
                found.update(by_value.get(other, ()))
        return [self._policies[position] for position in sorted(found)]

    def _value(self, policy: Mapping[str, Any]) -> Optional[str]:
        """The value of the label; ``None``: it may have any."""
        wanted = mapping(policy, "spec", "nodeSelector")
        return text(wanted[self._label]) if self._label in wanted else None

    def _nics(self, policy: Mapping[str, Any]) -> Iterator[tuple[Any, ...]]:
        """What a policy names, and the places of the NICs that it takes."""
        devices = mapping(policy, "spec", "nicSelector").get("rootDevices")
        for device in devices if isinstance(devices, list) else ():
            yield "device", text(device)
        for _at, entry in _ranges(policy):
            yield "pf", entry.pf
        for place, node in enumerate(self._nodes):
            if selects_node(policy, node):
                for at, nic in enumerate(node.nics):
                    if selects_nic(policy, nic, self._supported):
                        yield place, at


def _may_share(policy: Mapping[str, Any], other: Mapping[str, Any], nodes: Optional[Sequence[Node]]) -> bool:
    """Whether a node has both; when the nodes are not known, whether a node could have both."""
    if nodes is not None:
        return any(selects_node(policy, node) and selects_node(other, node) for node in nodes)
    wanted, also = mapping(policy, "spec", "nodeSelector"), mapping(other, "spec", "nodeSelector")
    return all(also.get(key, value) == value for key, value in wanted.items())


def _against(
    policy: Mapping[str, Any],
    other: Mapping[str, Any],
    nodes: Optional[Sequence[Node]],
    supported: Mapping[str, Sequence[str]],
) -> list[Issue]:
    """Two policies of one node that mean the same NIC (S109); parts of a PF that do not meet are no conflict."""
    if not _may_share(policy, other, nodes):
        return []
    called = name(other)
    found, apart = _ranges_against(policy, other, called)
    found += _devices_against(policy, other, called)
    if found:
        return found
    for node in nodes or ():
        if not selects_node(policy, node) or not selects_node(other, node):
            continue
        for nic in node.nics:
            both = selects_nic(policy, nic, supported) and selects_nic(other, nic, supported)
            if both and nic.name not in apart:
                message = "%s of node %s is also selected by policy %s" % (nic.name, node.name, called)
                return [warning("pf-selected-twice", "spec.nicSelector", message, other=called)]
    return []


def _devices_against(policy: Mapping[str, Any], other: Mapping[str, Any], called: str) -> Iterator[Issue]:
    mine, theirs = [mapping(entry, "spec", "nicSelector").get("rootDevices") for entry in (policy, other)]
    if isinstance(mine, list) and isinstance(theirs, list):
        for position, device in enumerate(mine):
            if device in theirs:
                at = "spec.nicSelector.rootDevices[%d]" % position
                message = "%s is also a root device of policy %s" % (quoted(device), called)
                yield error("rootdevice-overlap", at, message, other=called)


def _ranges_against(
    policy: Mapping[str, Any], other: Mapping[str, Any], called: str
) -> tuple[list[Issue], set[str]]:
    """What meets, and the PFs of which both take parts that do not meet."""
    found, apart = [], set()
    theirs = [entry for _at, entry in _ranges(other) if not entry.malformed]
    for position, mine in _ranges(policy):
        at = "spec.nicSelector.pfNames[%d]" % position
        for entry in theirs:
            if mine.malformed or entry.pf != mine.pf:
                continue
            if mine.is_part != entry.is_part:
                message = "one policy takes all of %s and one a part: the other is %s" % (mine.pf, called)
                found.append(warning("pf-whole-and-partition", at, message, other=called))
            elif _meet(mine, entry):
                message = "virtual functions of %s are also those of policy %s" % (mine.pf, called)
                found.append(error("pf-range-overlap", at, message, other=called))
            else:
                apart.add(mine.pf)
    return found, apart


def _meet(mine: Range, other: Range) -> bool:
    if mine.first is None or mine.last is None or other.first is None or other.last is None:
        return True
    return mine.first <= other.last and other.first <= mine.last


# --- advice that admission never gives


def unknown_fields(policy: Mapping[str, Any]) -> list[Issue]:
    """Fields that the API does not have, and drops without a word (S92)."""
    spec = mapping(policy, "spec")
    found = ["spec.%s" % key for key in spec if key not in KNOWN]
    found += ["spec.nicSelector.%s" % key for key in mapping(spec, "nicSelector") if key not in _SELECTORS]
    return [error("field-unknown", at, "a SriovNetworkNodePolicy has no such field") for at in found]


def too_broad(policy: Mapping[str, Any], nodes: Sequence[Node]) -> list[str]:
    """The selected nodes that have none of the NICs: a drain or reboot would hit them for nothing (S244)."""
    return [
        node.name
        for node in nodes
        if selects_node(policy, node) and not any(selects_nic(policy, nic) for nic in node.nics)
    ]
