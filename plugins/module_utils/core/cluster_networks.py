# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which whole networks a cluster gives pods and services. Private to rdma.k8s: it may change with any release.

The API has objects for service networks (ServiceCIDR) and none for pod networks: a node tells its own block only. What
gives the addresses has the whole one in its settings.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from .. import deps
from .cluster_snapshot import NetworkRange
from .kube.objects import entries, mapping, text
from .net import find_prefix

SYSTEM = "kube-system"
KUBEADM = "kubeadm-config"


class ConfigMapName(NamedTuple):
    """A ConfigMap that can name pod networks."""

    namespace: str
    name: str


def config_maps(daemonsets: Iterable[Mapping[str, Any]]) -> list[ConfigMapName]:
    """The ConfigMaps of the network plugins that run, and of kube-proxy: those that their pods mount."""
    found = []
    for content in daemonsets:
        metadata = mapping(content, "metadata")
        name = text(metadata.get("name"))
        volumes = mapping(content, "spec", "template", "spec").get("volumes")
        names = [text(mapping(volume, "configMap").get("name")) for _at, volume in entries(volumes)]
        if name.startswith("kube-proxy"):
            names = [entry for entry in names if entry == "kube-proxy"]
        elif "flannel" in name:
            names = [entry for entry in names if "flannel" in entry]
        else:
            names = ["cilium-config"] if name == "cilium" else []
        found += [ConfigMapName(text(metadata.get("namespace")), entry) for entry in names]
    return list(dict.fromkeys(found))


def pod_ranges(content: Mapping[str, Any]) -> list[NetworkRange]:
    """The pod networks that an object names: a DaemonSet (kube-proxy), a ConfigMap or an IPPool of Calico."""
    kind, name = text(content.get("kind")), text(mapping(content, "metadata").get("name"))
    namespace = text(mapping(content, "metadata").get("namespace"))
    if kind == "DaemonSet":
        source = "daemonset %s/%s" % (namespace, name)
        return _ranges(_cluster_cidr(content) if name.startswith("kube-proxy") else "", source)
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
    if name == "kube-proxy":
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
