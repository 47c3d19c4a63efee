# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What Spiderpool's webhook makes of a pod that asks for networks. Private to rdma.k8s: it may change any time.

The webhook overrides without a word what the user wrote, and refuses pods with a sentence that only their controller
sees. Here both are told before.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Optional

from ..kube import objects, quantity
from ..kube.objects import mapping, text
from ..net import quoted
from .issue import Issue, error, ordered
from .multus_config import pools_of
from .names import (
    CUSTOM,
    INJECT,
    NETWORKS,
    ON_MASTER,
    ON_VF,
    OVS,
    POOL_ANNOTATIONS,
    RDMA_INJECT,
    SRIOV,
    SUBCONFIGS,
)

EXCLUDED = ("kube-system", "spiderpool", "metallb-system", "istio-system")
"""Namespaces that the webhook passes over unless it is set otherwise (S166)."""
AT = "metadata.annotations"
_LABEL = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")


class Config(NamedTuple):
    """A SpiderMultusConfig; ``master`` is its interface of the host, or its bond."""

    namespace: str
    name: str
    cni: str
    resource: str
    pools: tuple[str, ...]
    annotations: Mapping[str, Any]
    master: str = ""

    @property
    def ref(self) -> str:
        return "%s/%s" % (self.namespace, self.name)


class Injection(NamedTuple):
    """What the webhook does. ``networks`` is the text that it writes; ``None``: it writes none.

    ``limits`` is what it adds to the first container.
    """

    injects: bool
    networks: Optional[str]
    limits: dict[str, int]
    issues: list[Issue]


def config_of(content: Mapping[str, Any]) -> Config:
    """From an object of the API."""
    spec = mapping(content, "spec")
    cni = text(spec.get("cniType")) or CUSTOM
    below = mapping(spec, SUBCONFIGS.get(cni, ""))
    masters = below.get("master")
    names = [
        entry for entry in (masters if isinstance(masters, list) else [masters]) if isinstance(entry, str)
    ]
    bond = text(mapping(below, "bond").get("name")) if len(names) > 1 else ""
    return Config(
        objects.namespace(content),
        objects.name(content),
        cni,
        text(below.get("rdmaResourceName" if cni in ON_MASTER else "resourceName")),
        tuple(pools_of(below)),
        mapping(content, "metadata", "annotations"),
        bond or (names[0] if names else ""),
    )


def judge(
    annotations: Mapping[str, Any],
    limits: Sequence[Mapping[str, Any]],
    configs: Iterable[Config],
    namespace: str = "",
    *,
    namespace_annotations: Optional[Mapping[str, Any]] = None,
    excluded: Collection[str] = EXCLUDED,
    included: Collection[str] = (),
) -> Injection:
    """What becomes of a pod (S159 to S166).

    :param annotations: those of the pod.
    :param limits: the limits of each container, without the init containers.
    :param namespace: that of the pod; empty: not known.
    :param included: the only namespaces that the webhook looks at; empty: all that are not excluded.
    """
    key, value = asked(annotations, namespace_annotations)
    if not key:
        return Injection(False, None, {}, [])
    if namespace and (namespace in excluded or (included and namespace not in included)):
        message = "the webhook passes over namespace %s, so the pod gets no network" % namespace  # S167
        return _refused([error("inject-namespace-skipped", "metadata.namespace", message)])
    matched = sorted([config for config in configs if config.annotations.get(key) == value], key=_order)
    if not matched:
        message = "no SpiderMultusConfig has %s: %s, so the pod is refused" % (key, quoted(value))
        return _refused([error("inject-no-match", AT, message)])
    problems = [*_value(key, value), *[issue for config in matched for issue in _config(key, config)]]
    if problems:
        return _refused(problems)
    resources = [config.resource for config in matched if config.resource]
    present = {resource for held in limits for resource in held}
    added = {resource: 1 for resource in resources if limits and resource not in present}
    found = [*overridden(annotations), *_shared(matched, limits)]
    return Injection(True, ",".join([config.ref for config in matched]), added, ordered(found))


def _refused(issues: list[Issue]) -> Injection:
    return Injection(False, None, {}, ordered(issues))


def asked(
    annotations: Mapping[str, Any], of_namespace: Optional[Mapping[str, Any]] = None
) -> tuple[str, Any]:
    """The annotation that counts, and its value: of each the pod's own before its namespace's (S159)."""
    for key in INJECT:
        for held in (annotations, of_namespace or {}):
            if key in held:
                return key, held[key]
    return "", None


def _order(config: Config) -> tuple[str, str]:
    """The order of the interfaces is that of plain texts, so gpu10 comes before gpu2 (S163)."""
    first = config.master if config.cni in ON_MASTER else config.resource if config.cni == SRIOV else ""
    return first, config.ref


def _value(key: str, value: Any) -> Iterator[Issue]:
    """Configs are found by a label, so the value must be one (S160)."""
    if not isinstance(value, str) or not _LABEL.fullmatch(value):
        message = "the value of %s must be one of a label, found %s" % (key, quoted(value))
        yield error("inject-value-invalid", AT, message)


def _config(key: str, config: Config) -> Iterator[Issue]:
    """Types that can be injected, each with a resource and a pool (S161); without a resource it crashes (S89)."""
    if config.cni in (OVS, CUSTOM) or config.cni not in SUBCONFIGS:
        message = "the webhook cannot inject cniType %s" % quoted(config.cni)
        yield error("inject-cnitype-unsupported", config.ref, message)
        return
    if key == RDMA_INJECT and not config.resource and config.cni in (*ON_MASTER, *ON_VF):
        yield error("inject-resource-missing", config.ref, "the config names no RDMA resource")
    if (key == RDMA_INJECT or config.resource) and not config.pools:
        yield error("inject-ippools-missing", config.ref, "the config names no pool below its cniType")


def overridden(annotations: Mapping[str, Any]) -> Iterator[Issue]:
    """Networks of the user are lost (S162), and his pools replace those of each network (S165)."""
    if annotations.get(NETWORKS):
        message = "the webhook replaces %s, found %s" % (NETWORKS, quoted(annotations[NETWORKS]))
        yield error("inject-networks-overwritten", AT, message)
    given = [key for key in POOL_ANNOTATIONS if annotations.get(key)]
    if given:
        message = "%s overrides the pools of the networks" % " and ".join(given)
        yield error("inject-ippool-annotation", AT, message)


def _shared(configs: Iterable[Config], limits: Sequence[Mapping[str, Any]]) -> Iterator[Issue]:
    """One device is asked for each resource, however many networks need it (S164)."""
    needed = Counter([config.resource for config in configs if config.cni in ON_VF and config.resource])
    for resource, count in needed.items():
        amounts = [quantity.whole(held[resource]) for held in limits if resource in held]
        asked_for = sum([amount for amount in amounts if amount is not None]) if amounts else 1
        if asked_for < count:
            message = "%d networks need a device of %s, and the pod gets %d" % (count, resource, asked_for)
            yield error("inject-resource-shared", resource, message)
