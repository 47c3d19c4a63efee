# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Mistakes in what is pasted from a guide: manifests, values of charts, addresses. Private to rdma.k8s.

It may change with any release. The rules of policies, pools and networks stand with these objects; here is the rest
that reading can see and that no server tells.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Optional

from .. import json_text
from ..kube import objects as kube
from ..kube.objects import mapping, text
from ..kube.pod_templates import PodTemplate, templates
from ..net import find_address, find_prefix, quoted
from . import ib_kubernetes, injection, ufm
from .issue import Issue, error, warning
from .names import NETWORKS
from .objects import CONFIG, POLICY, POOL
from .table import Told

DEFAULT_NETWORK = "v1.multus-cni.io/default-network"
CONFIG_MAP, WRONG_CONFIG_MAP = "spiderpool-conf", "spiderpool-config"
HOSTS = frozenset(
    (
        "github.com",
        "raw.githubusercontent.com",
        "spidernet-io.github.io",
        "ghcr.io",
        "docs.projectcalico.org",
        "helm.ngc.nvidia.com",
        "nvcr.io",
        "content.mellanox.com",
        "linux.mellanox.com",
        "www.mellanox.com",
    )
)
"""Where the projects of the guide publish themselves."""
LABEL_VALUE = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")
_KEY = re.compile(r"(?:[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?/)?[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")
_SHELL = re.compile(r"\$\{[^}]*\}|\$\([^)]*\)|\$[A-Z_]{2,}")
_ADDRESS = re.compile(r"(https?|oci|git)://(?:[^/@]*@)?([^/:]+)(?::[0-9]+)?(/[^?#]*)?", re.IGNORECASE)
_SPECIAL = re.compile(r"[][{},\\\\]")
_HOSTNAME = "kubernetes.io/hostname"
_EVERYWHERE = frozenset(
    ("kubernetes.io/os", "kubernetes.io/arch", "beta.kubernetes.io/os", "beta.kubernetes.io/arch")
)


class Surroundings(NamedTuple):
    """What pods can name. ``None``: not known.

    :param networks: ``NAMESPACE/NAME`` of networks that exist beside those of the documents.
    :param resources: resources that exist beside those of the documents, with their prefix.
    :param nodes: names of the nodes.
    """

    resource_prefix: str
    networks: Collection[str] = ()
    resources: Collection[str] = ()
    nodes: Optional[Collection[str]] = None


def judge(documents: Sequence[Mapping[str, Any]], around: Surroundings) -> list[Told]:
    """What is wrong with documents, seen together."""
    told = [Told(kube.ref(entry), issue) for entry in documents for issue in _document(entry)]
    counts = Counter(
        [
            (kube.group(entry), kube.kind(entry), kube.namespace(entry), kube.name(entry))
            for entry in documents
        ]
    )
    for (_group, kind, where, called), count in counts.items():
        if count > 1:
            told.append(
                Told(
                    "%s %s" % (kind, "%s/%s" % (where, called) if where else called),
                    warning(
                        "object-repeated",
                        "metadata.name",
                        "%d documents are this object; the last one counts" % count,
                    ),
                )
            )
    told += _unused(documents, around)
    configs = [injection.config_of(entry) for entry in documents if kube.kind(entry) == CONFIG]
    made = {
        "%s/%s" % (around.resource_prefix, text(mapping(entry, "spec").get("resourceName")))
        for entry in documents
        if kube.kind(entry) == POLICY
    }
    for entry in documents:
        for template in templates(dict(entry)):
            told += [
                Told(kube.ref(entry), issue)
                for issue in _pod(
                    kube.namespace(entry), template, configs, made | set(around.resources), around
                )
            ]
    return told


def _document(document: Mapping[str, Any]) -> Iterator[Issue]:
    for at, value in _texts(document, ""):
        if _SHELL.search(value):
            yield error(
                "variable-unexpanded", at, "no shell has put a value for %s" % quoted(value)
            )  # S233, S251
    for key in mapping(document, "metadata", "annotations"):
        if not _KEY.fullmatch(str(key)):
            yield _bad_key("metadata.annotations", key)
    called = kube.name(document)
    handler = {"ConfigMap": _config_map, "Secret": _secret, "DaemonSet": _daemonset, POLICY: _policy}.get(
        kube.kind(document)
    )
    if handler is not None:
        yield from handler(document, called)


def _texts(value: Any, at: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield at, value
    elif isinstance(value, Mapping):
        for key, below in value.items():
            yield from _texts(below, "%s.%s" % (at, key) if at else str(key))
    elif isinstance(value, list):
        for position, below in enumerate(value):
            yield from _texts(below, "%s[%d]" % (at, position))


def _bad_key(at: str, key: Any) -> Issue:
    message = "the key of an annotation has no such signs, found %s" % quoted(key)
    parts = str(key).split()
    more = {"canonical": "/".join(parts)} if len(parts) == 2 else {}
    return error("annotation-key-invalid", at, message, **more)  # S236


def _config_map(document: Mapping[str, Any], called: str) -> Iterator[Issue]:
    """The program reads another name (S168), and the filters are not read from there at all (S166, S235)."""
    if called == WRONG_CONFIG_MAP:
        message = "Spiderpool reads %s, so nobody reads this" % CONFIG_MAP
        yield error("configmap-unknown", "metadata.name", message, canonical=CONFIG_MAP)
    if called in (CONFIG_MAP, WRONG_CONFIG_MAP):
        for key, value in mapping(document, "data").items():
            if "namespacesExclude" in str(value) or "namespacesInclude" in str(value):
                message = (
                    "the filters stand in the webhook's configuration, which only the chart's values change"
                )
                yield error("inject-filters-elsewhere", "data.%s" % key, message)


def _secret(document: Mapping[str, Any], called: str) -> Iterator[Issue]:
    if called != ufm.SECRET:
        return
    if kube.namespace(document) not in ("", ufm.NAMESPACE):
        yield error(
            "ufm-secret-namespace", "metadata.namespace", "ib-kubernetes reads it in %s" % ufm.NAMESPACE
        )
    yield from secret({**mapping(document, "data"), **mapping(document, "stringData")})


def secret(keys: Iterable[str]) -> Iterator[Issue]:
    """The keys that the program reads (S146); the guide's are others (S147, S232)."""
    verdict = ufm.judge(keys)
    for key in verdict.missing:
        yield error("ufm-key-missing", key, "ib-kubernetes needs %s and ends without it" % key)
    for key in verdict.unknown:
        yield error("ufm-key-unknown", key, "ib-kubernetes does not read %s" % key)
    if not verdict.tls_verified:
        yield warning(
            "ufm-not-verified", ufm.CERTIFICATE, "without the certificate anybody can answer for UFM"
        )


def _daemonset(document: Mapping[str, Any], called: str) -> Iterator[Issue]:
    if called == ib_kubernetes.NAME:
        message = "ib-kubernetes is a Deployment of two, of which one leads"
        yield error("ib-kubernetes-daemonset", "kind", message)  # S148, S234


def _policy(document: Mapping[str, Any], called: str) -> Iterator[Issue]:
    """A selector that fits every node also hits control planes and nodes without the NICs (S244)."""
    yield from selector(mapping(document, "spec", "nodeSelector"), "spec.nodeSelector")


def selector(labels: Mapping[str, Any], at: str) -> Iterator[Issue]:
    """A selector of nodes."""
    if not set(labels) - _EVERYWHERE:
        message = "the selector fits every node, and selected nodes are drained or rebooted: give a label of your own"
        yield error("nodeselector-too-broad", at, message)


def _unused(documents: Sequence[Mapping[str, Any]], around: Surroundings) -> Iterator[Told]:
    """Resources without a network, networks without a policy are told by their own rules (S227)."""
    used = {injection.config_of(entry).resource for entry in documents if kube.kind(entry) == CONFIG}
    named = {
        pool for entry in documents if kube.kind(entry) == CONFIG for pool in injection.config_of(entry).pools
    }
    for entry in documents:
        if kube.kind(entry) == POLICY:
            resource = "%s/%s" % (around.resource_prefix, text(mapping(entry, "spec").get("resourceName")))
            if resource not in used and resource not in around.resources:
                yield Told(
                    kube.ref(entry),
                    warning("resource-without-network", "spec.resourceName", "no network uses %s" % resource),
                )
        if kube.kind(entry) == POOL and kube.name(entry) not in named:
            message = "no network takes addresses from this pool"
            yield Told(kube.ref(entry), warning("ippool-unused", "metadata.name", message))


# --- pods


def _pod(
    where: str,
    template: PodTemplate,
    configs: Sequence[injection.Config],
    resources: Collection[str],
    around: Surroundings,
) -> Iterator[Issue]:
    annotations = mapping(template.metadata, "annotations")
    for key in annotations:
        if not _KEY.fullmatch(str(key)):
            yield _bad_key("annotations", key)
    limits = [
        mapping(container.spec, "resources", "limits")
        for container in template.containers
        if container.lasting
    ]
    for held in limits:
        for resource in held:
            if resource.startswith(around.resource_prefix + "/") and resource not in resources:
                message = "no policy makes %s, so the pod waits for ever" % resource
                yield error("resource-unknown", "resources.limits", message)  # S119, S230
    known = {config.ref for config in configs} | set(around.networks)
    given = annotations.get(NETWORKS)
    if isinstance(given, str):
        yield from _networks(given, where, known)
    if given or injection.asked(annotations)[0]:
        if not annotations.get(DEFAULT_NETWORK):
            message = "without %s the pod's first interface is whatever Multus takes" % DEFAULT_NETWORK
            yield warning("default-network-missing", "annotations", message)  # S243
        for issue in injection.judge(annotations, limits, configs, where).issues:
            yield issue._replace(at="annotations") if issue.at == injection.AT else issue
    yield from _affinity(template.spec, around.nodes)


def _networks(given: str, where: str, known: Collection[str]) -> Iterator[Issue]:
    for called in _names_of(given, where):
        if called not in known:
            yield error("network-missing", NETWORKS, "there is no network %s" % called)  # S227


def _names_of(given: str, where: str) -> list[str]:
    """``NAMESPACE/NAME`` of each network: a JSON list, or names with commas."""
    if given.lstrip()[:1] == "[":
        try:
            found = json_text.loads(given)
        except ValueError:
            return []
        return [
            "%s/%s" % (text(entry.get("namespace")) or where, text(entry.get("name")))
            for _at, entry in kube.entries(found)
        ]
    parts = [part.strip().partition("@")[0] for part in given.split(",") if part.strip()]
    return [part if "/" in part else "%s/%s" % (where, part) for part in parts]


def _affinity(spec: Mapping[str, Any], nodes: Optional[Collection[str]]) -> Iterator[Issue]:
    """A pod for nodes that do not exist; of a DaemonSet then there are no pods, and all of none are ready (S243)."""
    required = mapping(spec, "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
    for _at, term in kube.entries(required.get("nodeSelectorTerms")):
        for _position, rule in kube.entries(term.get("matchExpressions")):
            values = rule.get("values")
            if rule.get("key") != _HOSTNAME or rule.get("operator") != "In" or not isinstance(values, list):
                continue
            if nodes is not None and not set(map(str, values)) & set(nodes):
                message = "the cluster has no node %s, so no pod ever runs" % " or ".join(
                    [str(v) for v in values]
                )
                yield error("affinity-no-node", "affinity", message)


# --- charts and addresses


def values(given: Mapping[str, Any], wants_drain: bool, inject: bool, prefix: str) -> Iterator[Issue]:
    """Values of Spiderpool's chart that do not do what is wanted, or what the guide says they do."""
    sriov = mapping(given, "sriov")
    if sriov.get("install") is not True:
        yield error(
            "sriov-not-installed", "sriov.install", "the chart brings no SR-IOV operator without it"
        )  # S95
    if sriov.get("resourcePrefix", prefix) != prefix:
        message = "the networks have the prefix %s, found %s" % (prefix, quoted(sriov["resourcePrefix"]))
        yield error("resource-prefix-differs", "sriov.resourcePrefix", message)
    disabled = mapping(sriov, "operatorConfig").get("disableDrain", True)
    if wants_drain and disabled is not False:
        message = (
            "the default is true: nodes are rebooted under running pods; set it to false to drain them first"
        )
        yield error("drain-disabled", "sriov.operatorConfig.disableDrain", message)  # S99, S123, S237
    if mapping(given, "ipam").get("enableGatewayDetection") is not True:
        message = "it is off unless it is set, so a pod that has started proves no gateway"
        yield warning("gateway-detection-off", "ipam.enableGatewayDetection", message)  # S98, S145, S238
    injects = mapping(given, "spiderpoolController", "podResourceInject").get("enabled") is True
    if inject and not injects:
        message = "the webhook is off unless it is set, so pods that ask for all rails get none"
        yield error("inject-disabled", "spiderpoolController.podResourceInject.enabled", message)  # S158


def expressions(given: Iterable[str]) -> Iterator[Issue]:
    """Expressions of ``helm --set``: each is a name and a value (S245)."""
    for entry in given:
        key, equals, _value = str(entry).partition("=")
        if not equals or not key:
            yield error("set-without-value", str(entry), "helm refuses an expression without '=': add =true")
        elif _SPECIAL.search(str(entry)):
            message = "lists, several values and escapes belong into the values, not into an expression"
            yield error("set-unsupported", str(entry), message)


def sources(given: Iterable[str]) -> Iterator[Issue]:
    """Addresses from which something is taken that then runs in the cluster (S246)."""
    for entry in given:
        found = _ADDRESS.match(str(entry))
        if found is None:
            continue
        scheme, host, path = found[1].lower(), found[2].lower(), found[3] or ""
        if host not in HOSTS:
            message = "no project of this stack publishes at %s: take the project's own release" % host
            yield warning("source-unknown-host", str(entry), message)
        if scheme == "http":
            yield error(
                "source-not-encrypted", str(entry), "what is fetched over http anybody may have changed"
            )
        if "/blob/" in path:
            message = "the address is that of a page, not of the file: take the raw file of a release"
            yield error("source-is-a-page", str(entry), message)
        if "/master/" in path or "/main/" in path:
            yield warning("source-not-pinned", str(entry), "the file changes from day to day: name a release")


def targets(given: Iterable[str], pools: Iterable[Mapping[str, Any]]) -> Iterator[Issue]:
    """Addresses that a test between pods is to reach (S144, S240)."""
    subnets = [find_prefix(mapping(pool, "spec").get("subnet")) for pool in pools]
    known = [subnet.masked() for subnet in subnets if subnet is not None]
    for entry in given:
        address = find_address(entry)
        if address is None:
            yield error("target-syntax", str(entry), "a target is an address, found %s" % quoted(entry))
        elif not any(subnet.contains(address) for subnet in known):
            yield error(
                "target-outside-pools", str(entry), "no pool has %s, so no pod has it on a rail" % entry
            )
