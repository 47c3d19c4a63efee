# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the cloud's API answered about a cluster, as networks. Private to rdma.k8s: it may change with any release.

The answers are the JSON objects of the REST API, as they came. What is missing is absent (the API leaves out what a
resource does not have); what has a wrong type or is no prefix is an error that names the place.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Optional

from ..errors import RdmaError
from ..json_text import Reader
from ..redact import shortened
from .networks import Collection, NetworkDocument, Unread, merged

_HINT = (
    "The service answered what this release does not understand: give the networks by the options instead."
)
_READER = Reader("oci_answer_malformed", "The answer of the cloud", _HINT)
_GONE = ("DELETED", "TERMINATED", "DELETING", "TERMINATING", "DETACHED", "DETACHING")
"""Lifecycle states of what is no more, or soon is not; a list still names such things for a while."""

NATIVE = "OCI_VCN_IP_NATIVE"
"""The kind of pod network in which each pod has an address of a subnet."""


@dataclass
class DrgRoutes:
    """The routes that an attachment of the VCN to a gateway (DRG) has."""

    attachment: Any
    rules: list[Any]


@dataclass
class Answers:
    """The answers, raw. A part that could not be read is empty and has an entry in ``unread``."""

    cluster: Any = None
    vcn: Any = None
    subnets: list[Any] = field(default_factory=list)
    node_pools: list[Any] = field(default_factory=list)
    peerings: list[Any] = field(default_factory=list)
    drg_routes: list[DrgRoutes] = field(default_factory=list)
    unread: list[RdmaError] = field(default_factory=list)


@dataclass(frozen=True)
class ClusterPlace:
    """Where a cluster is: what the further questions need."""

    name: str
    vcn: str
    compartment: str


def is_gone(answer: Any) -> bool:
    """Whether the thing of an answer is deleted, or being deleted."""
    return _READER.members(answer, "an entry of a list").get("lifecycleState") in _GONE


def place_of(cluster: Any) -> ClusterPlace:
    """The VCN and the compartment of a cluster.

    :raises RdmaError: ``oci_answer_malformed``, or ``oci_not_found`` when it is deleted.
    """
    members = _READER.members(cluster, "cluster")
    name = named(members, "cluster")
    if is_gone(members):
        raise RdmaError(
            "oci_not_found",
            "The cluster %s is deleted." % name,
            hint="Give the OCID of a cluster that exists.",
        )
    return ClusterPlace(name, _required(members, "vcnId", "cluster"), compartment_of(members, "cluster"))


def compartment_of(answer: Any, what: str) -> str:
    """The compartment of a resource.

    :raises RdmaError: ``oci_answer_malformed``.
    """
    return _required(_READER.members(answer, what), "compartmentId", what)


def named(members: dict[str, Any], what: str) -> str:
    """What a person calls a resource: its name, else its identifier, shortened."""
    for key in ("name", "displayName"):
        text = _READER.text(members.get(key), "%s.%s" % (what, key))
        if text:
            return text
    return shortened(_READER.text(members.get("id"), what + ".id")) or "without a name"


def subnets_in_use(answers: Answers) -> dict[str, list[str]]:
    """For each subnet that the cluster uses, by its OCID: what uses it.

    Pods use subnets only where the pool's network is VCN-native.
    """
    found: dict[str, list[str]] = {}
    for subnet, use in _uses(answers):
        if use not in found.setdefault(subnet, []):
            found[subnet].append(use)
    return found


def to_document(answers: Answers) -> NetworkDocument:
    """All networks of the answers.

    :raises RdmaError: ``oci_answer_malformed``.
    """
    collection = Collection(_READER)
    cluster = _READER.members(answers.cluster, "cluster")
    _cluster_networks(collection, cluster)
    vcn = named(_READER.members(answers.vcn, "vcn"), "vcn")
    _vcn_networks(collection, answers.vcn)
    _subnet_networks(collection, answers, vcn)
    _peer_networks(collection, answers)
    unread = [Unread(error.code, error.message, error.hint, error.retryable) for error in answers.unread]
    return NetworkDocument(merged(collection.found), _described(cluster), tuple(unread))


def _described(cluster: dict[str, Any]) -> dict[str, Any]:
    options = _READER.members(cluster.get("options"), "cluster.options")
    endpoint = _READER.members(cluster.get("endpointConfig"), "cluster.endpointConfig")
    return {
        "id": _READER.text(cluster.get("id"), "cluster.id"),
        "name": named(cluster, "cluster"),
        "kubernetes_version": _READER.text(cluster.get("kubernetesVersion"), "cluster.kubernetesVersion"),
        "vcn_id": _READER.text(cluster.get("vcnId"), "cluster.vcnId"),
        "endpoint_subnet_id": _READER.text(endpoint.get("subnetId"), "cluster.endpointConfig.subnetId"),
        "pod_network_types": _cni_types(cluster),
        "ip_families": _texts(options.get("ipFamilies"), "cluster.options.ipFamilies"),
    }


def _cni_types(cluster: dict[str, Any]) -> list[str]:
    where = "cluster.clusterPodNetworkOptions"
    found = []
    for number, entry in enumerate(_READER.entries(cluster.get("clusterPodNetworkOptions"), where)):
        place = "%s[%d]" % (where, number)
        found.append(_READER.text(_READER.members(entry, place).get("cniType"), place + ".cniType"))
    return found


def _cluster_networks(collection: Collection, cluster: dict[str, Any]) -> None:
    """A cluster of both families has one network of each in one text, with a comma."""
    options = _READER.members(cluster.get("options"), "cluster.options")
    where = "cluster.options.kubernetesNetworkConfig"
    config = _READER.members(options.get("kubernetesNetworkConfig"), where)
    for kind, key in (("pod", "podsCidr"), ("service", "servicesCidr")):
        place = "%s.%s" % (where, key)
        text = _READER.text(config.get(key), place)
        for part in text.split(",") if text else ():
            collection.add(
                kind, part.strip(" "), place, "%s of cluster %s" % (key, named(cluster, "cluster"))
            )


def _vcn_networks(collection: Collection, vcn: Any) -> None:
    members = _READER.members(vcn, "vcn")
    source = "VCN %s" % named(members, "vcn")
    for key in ("cidrBlock", "cidrBlocks", "ipv6CidrBlocks", "byoipv6CidrBlocks", "ipv6PrivateCidrBlocks"):
        for text in _one_or_many(members.get(key), "vcn." + key):
            collection.add("vcn", text, "vcn." + key, source)


def _subnet_networks(collection: Collection, answers: Answers, vcn: str) -> None:
    uses = subnets_in_use(answers)
    for number, entry in enumerate(answers.subnets):
        where = "subnets[%d]" % number
        members = _READER.members(entry, where)
        if is_gone(members):
            continue
        name = named(members, where)
        used_by = uses.get(_READER.text(members.get("id"), where + ".id"), [])
        pods = [use for use in used_by if use.startswith(_PODS)]
        for key in ("cidrBlock", "ipv4CidrBlocks", "ipv6CidrBlock", "ipv6CidrBlocks"):
            place = "%s.%s" % (where, key)
            for text in _one_or_many(members.get(key), place):
                collection.add("subnet", text, place, "subnet %s of VCN %s" % (name, vcn), used_by)
                if pods:
                    collection.add("pod", text, place, "subnet %s of VCN %s" % (name, vcn), pods)


def _peer_networks(collection: Collection, answers: Answers) -> None:
    """What the other sides of local peerings advertise, and what gateways have routes to."""
    for number, entry in enumerate(answers.peerings):
        where = "localPeeringGateways[%d]" % number
        members = _READER.members(entry, where)
        if is_gone(members) or members.get("peeringStatus") != "PEERED":
            continue
        source = "advertised to local peering gateway %s" % named(members, where)
        key = "peerAdvertisedCidrDetails"
        texts = _texts(members.get(key), "%s.%s" % (where, key))
        if not texts:  # the sum of all, which older answers have alone
            key = "peerAdvertisedCidr"
            texts = _one_or_many(members.get(key), "%s.%s" % (where, key))
        for text in texts:
            collection.add("peer", text, "%s.%s" % (where, key), source)
    for routes in answers.drg_routes:
        _drg_networks(collection, routes)


def _drg_networks(collection: Collection, routes: DrgRoutes) -> None:
    """As with a host's routes (F47), the default route says nothing; neither does the way back into the VCN."""
    attachment = _READER.members(routes.attachment, "drgAttachment")
    own = _READER.text(attachment.get("id"), "drgAttachment.id")
    source = "route of DRG attachment %s" % named(attachment, "drgAttachment")
    for number, entry in enumerate(routes.rules):
        where = "drgRouteRules[%d]" % number
        members = _READER.members(entry, where)
        hop = _READER.text(members.get("nextHopDrgAttachmentId"), where + ".nextHopDrgAttachmentId")
        blackhole = _READER.flag(members.get("isBlackhole"), where + ".isBlackhole")
        if members.get("destinationType") != "CIDR_BLOCK" or blackhole or (own and hop == own):
            continue
        destination = _READER.text(members.get("destination"), where + ".destination")
        if destination not in ("0.0.0.0/0", "::/0"):
            collection.add("peer", destination, where + ".destination", source)


_PODS = "pods of "


def _uses(answers: Answers) -> Iterator[tuple[str, str]]:
    cluster = _READER.members(answers.cluster, "cluster")
    endpoint = _READER.members(cluster.get("endpointConfig"), "cluster.endpointConfig")
    subnet = _READER.text(endpoint.get("subnetId"), "cluster.endpointConfig.subnetId")
    if subnet:
        yield subnet, "API endpoint"
    options = _READER.members(cluster.get("options"), "cluster.options")
    for subnet in _texts(options.get("serviceLbSubnetIds"), "cluster.options.serviceLbSubnetIds"):
        yield subnet, "load balancers"
    for number, entry in enumerate(answers.node_pools):
        where = "nodePools[%d]" % number
        members = _READER.members(entry, where)
        if not is_gone(members):
            yield from _pool_uses(members, where)


def _pool_uses(pool: dict[str, Any], where: str) -> Iterator[tuple[str, str]]:
    name = named(pool, where)
    nodes = "nodes of node pool %s" % name
    for subnet in _texts(pool.get("subnetIds"), where + ".subnetIds"):
        yield subnet, nodes
    config = _READER.members(pool.get("nodeConfigDetails"), where + ".nodeConfigDetails")
    place = where + ".nodeConfigDetails.placementConfigs"
    for number, entry in enumerate(_READER.entries(config.get("placementConfigs"), place)):
        placement = _READER.members(entry, "%s[%d]" % (place, number))
        subnet = _READER.text(placement.get("subnetId"), "%s[%d].subnetId" % (place, number))
        if subnet:
            yield subnet, nodes
    place = where + ".nodeConfigDetails.nodePoolPodNetworkOptionDetails"
    pods = _READER.members(config.get("nodePoolPodNetworkOptionDetails"), place)
    if pods.get("cniType") == NATIVE:
        for subnet in _texts(pods.get("podSubnetIds"), place + ".podSubnetIds"):
            yield subnet, "%snode pool %s" % (_PODS, name)


def _one_or_many(value: Any, where: str) -> list[str]:
    """The texts of a field that older answers have as one text and newer ones as a list."""
    if isinstance(value, str):
        return [value] if value else []
    return _texts(value, where)


def _texts(value: Any, where: str) -> list[str]:
    entries = _READER.entries(value, where)
    return [_READER.text(text, "%s[%d]" % (where, number)) for number, text in enumerate(entries)]


def _required(members: dict[str, Any], key: str, what: str) -> str:
    text = _READER.text(members.get(key), "%s.%s" % (what, key))
    if not text:
        raise _READER.wrong("%s.%s" % (what, key), "a text", members.get(key))
    return text


def subnet_ids(answers: Answers) -> set[Optional[str]]:
    """The OCIDs of the subnets that the answers hold."""
    return {_READER.members(entry, "a subnet").get("id") for entry in answers.subnets}
