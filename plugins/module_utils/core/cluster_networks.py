# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which whole networks a cluster gives pods and services. Private to rdma.k8s: it may change with any release.

The API has objects for service networks (ServiceCIDR) and none for pod networks: a node tells its own block only. What
gives the addresses has the whole one in its settings.
"""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from .. import deps
from .cluster_snapshot import ClusterSnapshot, NetworkRange
from .errors import RdmaError
from .kube.objects import entries, mapping, text
from .net import find_prefix
from .oke.networks import KnownNetwork, NetworkDocument, Unread, merged as merged_networks
from .report.wording import flat

SYSTEM = "kube-system"
KUBEADM = "kubeadm-config"
PROXY = "kube-proxy"


class ConfigMapName(NamedTuple):
    """A ConfigMap that can name pod networks."""

    namespace: str
    name: str


def config_maps(daemonsets: Iterable[Mapping[str, Any]]) -> list[ConfigMapName]:
    """The ConfigMaps of the network plugins that run, then of kube-proxy: those that their pods mount."""
    found: list[ConfigMapName] = []
    last: list[ConfigMapName] = []
    for content in daemonsets:
        metadata = mapping(content, "metadata")
        name = text(metadata.get("name"))
        volumes = mapping(content, "spec", "template", "spec").get("volumes")
        names = [text(mapping(volume, "configMap").get("name")) for _at, volume in entries(volumes)]
        proxy = name.startswith(PROXY)
        if proxy:
            names = [entry for entry in names if entry == PROXY]
        elif "flannel" in name:
            names = [entry for entry in names if "flannel" in entry]
        else:
            names = ["cilium-config"] if name == "cilium" else []
        into = last if proxy else found
        into += [ConfigMapName(text(metadata.get("namespace")), entry) for entry in names]
    return list(dict.fromkeys([*found, *last]))


def pod_ranges(content: Mapping[str, Any]) -> list[NetworkRange]:
    """The pod networks that an object names: a DaemonSet (kube-proxy), a ConfigMap or an IPPool of Calico."""
    kind, name = text(content.get("kind")), text(mapping(content, "metadata").get("name"))
    namespace = text(mapping(content, "metadata").get("namespace"))
    if kind == "DaemonSet":
        source = "daemonset %s/%s" % (namespace, name)
        return _ranges(_cluster_cidr(content) if name.startswith(PROXY) else "", source)
    if kind == "IPPool":
        spec = mapping(content, "spec")
        return [] if spec.get("disabled") is True else _ranges(text(spec.get("cidr")), "ippool " + name)
    source = "configmap %s/%s" % (namespace, name)
    data = mapping(content, "data")
    if name == "cilium-config":
        keys = ("cluster-pool-ipv4-cidr", "cluster-pool-ipv6-cidr")
        return [found for key in keys for found in _ranges(text(data.get(key)), source)]
    if name == KUBEADM:
        return _ranges(_kubeadm(data, "podSubnet"), source)
    if name == PROXY:
        return _ranges(text(_yaml(text(data.get("config.conf"))).get("clusterCIDR")), source)
    flannel = _json(text(data.get("net-conf.json")))
    return [found for key in ("Network", "IPv6Network") for found in _ranges(text(flannel.get(key)), source)]


def service_ranges(content: Mapping[str, Any]) -> list[NetworkRange]:
    """The service networks that an object names: a ServiceCIDR, or the ConfigMap of kubeadm."""
    kind, name = text(content.get("kind")), text(mapping(content, "metadata").get("name"))
    if kind == "ConfigMap":
        source = "configmap %s/%s" % (text(mapping(content, "metadata").get("namespace")), name)
        return _ranges(_kubeadm(mapping(content, "data"), "serviceSubnet"), source)
    cidrs = mapping(content, "spec").get("cidrs")
    words = [entry for entry in cidrs if isinstance(entry, str)] if isinstance(cidrs, list) else []
    return [found for word in words for found in _ranges(word, "servicecidr " + name)]


def merged(ranges: Iterable[NetworkRange]) -> tuple[NetworkRange, ...]:
    """Each network once, with the object that named it first."""
    found: dict[str, NetworkRange] = {}
    for entry in ranges:
        found.setdefault(entry.cidr, entry)
    return tuple(found.values())


def _ranges(value: str, source: str) -> list[NetworkRange]:
    """The networks of a text with several, with commas or spaces between; what is no network is left out."""
    words = value.replace(",", " ").split()
    return [NetworkRange(word, source) for word in words if find_prefix(word) is not None]


def _cluster_cidr(content: Mapping[str, Any]) -> str:
    option = "--cluster-cidr"
    for _at, container in entries(mapping(content, "spec", "template", "spec").get("containers")):
        words = []
        for key in ("command", "args"):
            held = container.get(key)
            words += [entry for entry in held if isinstance(entry, str)] if isinstance(held, list) else []
        for at, word in enumerate(words):
            if word.startswith(option + "="):
                return word.partition("=")[2]
            if word == option and at + 1 < len(words):
                return words[at + 1]
    return ""


def _kubeadm(data: Mapping[str, Any], key: str) -> str:
    return text(mapping(_yaml(text(data.get("ClusterConfiguration"))), "networking").get(key))


def _yaml(value: str) -> dict[str, Any]:
    yaml = deps.yaml()
    try:
        found = yaml.safe_load(value)
    except yaml.YAMLError:
        return {}
    return found if isinstance(found, dict) else {}


def _json(value: str) -> dict[str, Any]:
    try:
        found = json.loads(value)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def document(snapshot: ClusterSnapshot) -> NetworkDocument:
    """What a snapshot tells about networks, for the checks of a child range.

    Where the whole pod network is not known, the blocks of the nodes are taken: they are in use, but not all there is,
    so it stays among the unread ones.
    """
    known: list[KnownNetwork] = []
    unread: list[Unread] = []
    for kind, ranges, source in (
        ("pod", snapshot.pod_cidrs, "pod CIDRs"),
        ("service", snapshot.service_cidrs, "service CIDRs"),
    ):
        if ranges is None:
            unread.append(_unread(snapshot, kind, source))
        known += [found for entry in ranges or () for found in _known(kind, entry.cidr, entry.source)]
    if snapshot.pod_cidrs is None:
        known += _blocks(snapshot)
    return NetworkDocument(merged_networks(known), None, tuple(unread))


def _known(kind: str, cidr: str, source: str) -> list[KnownNetwork]:
    prefix = find_prefix(cidr)
    return [] if prefix is None else [KnownNetwork(kind, prefix.masked(), (flat(source),))]


def _blocks(snapshot: ClusterSnapshot) -> list[KnownNetwork]:
    """The blocks of the nodes, put together where they are side by side."""
    found = []
    for version in (4, 6):
        blocks = []
        for node in snapshot.nodes or ():
            for text_ in node.pod_cidrs:
                prefix = find_prefix(text_)
                if prefix is not None and prefix.version == version:
                    blocks.append(ipaddress.ip_network(str(prefix.masked())))
        for network in ipaddress.collapse_addresses(blocks):  # type: ignore[type-var]  # all of one version
            found += _known("pod", str(network), "blocks of nodes")
    return found


def _unread(snapshot: ClusterSnapshot, kind: str, source: str) -> Unread:
    asked = "networks" in snapshot.subsets
    reason = snapshot.error_of(source).partition(": ")[2] if asked else "The subset networks was not read."
    error = RdmaError(
        "cluster_networks_unknown",
        "The whole %s network of the cluster %s is not known: %s"
        % (kind, snapshot.name or "(no name)", reason),
        hint="Give it as %s_cidrs, or read it with oke_network_info." % kind,
    )
    return Unread(error.code, error.message, error.hint)
