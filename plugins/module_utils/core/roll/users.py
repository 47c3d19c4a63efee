# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Who uses RDMA on a node. Private to rdma.k8s: it may change with any release.

A pod is a user when one of its claims has devices of the driver, when any of its containers (init containers and
sidecars too) asks for an RDMA resource, when it is on an RDMA network, or when it opens the host's RDMA devices by
itself. What the driver, the resources and the networks are called is told by the caller (decision 29).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Optional

from .. import json_text
from ..kube import quantity
from ..kube.objects import entries, mapping, text
from .eviction import Budgets
from .model import Consent, User

CLAIM, RESOURCE, NETWORK, HOST = REASONS = ("claim", "resource", "network", "host")
"""Why a pod is a user, the strongest first."""

NETWORKS = ("k8s.v1.cni.cncf.io/networks", "v1.multus-cni.io/default-network")
"""Annotations that name further networks of a pod."""
NETWORK_RESOURCE = "k8s.v1.cni.cncf.io/resourceName"
"""Annotation of a network: the resource behind it."""

_MIRROR = "kubernetes.io/config.mirror"
_OVER = frozenset(("Succeeded", "Failed"))
_DAEMON_SET = "DaemonSet"
_DEFAULT_GRACE = 30


@dataclass(frozen=True)
class Scope:
    """What counts as RDMA.

    :param driver: of claims.
    :param resources: names of extended resources; ``*`` stands for anything.
    :param networks: ``namespace/name`` of networks; ``*`` stands for anything.
    :param asking: annotations whose mere presence asks for RDMA.
    :param host_paths: directories of the host with RDMA devices.
    :param drivers: DaemonSets (``namespace/name``) whose pods are the driver itself, and no users.
    """

    driver: str
    resources: tuple[str, ...] = ()
    networks: tuple[str, ...] = ()
    asking: tuple[str, ...] = ()
    host_paths: tuple[str, ...] = ("/dev/infiniband",)
    drivers: frozenset[str] = frozenset()

    def is_resource(self, called: str) -> bool:
        """Whether an extended resource is one of RDMA."""
        return any(fnmatchcase(called, pattern) for pattern in self.resources)

    def is_network(self, called: str) -> bool:
        """Whether the network ``namespace/name`` is one of RDMA."""
        return any(fnmatchcase(called, pattern) for pattern in self.networks)


class Known:
    """What else must be known to tell users: claims and disruption budgets, each looked up by name.

    :param claims: ResourceClaims, all or those of the namespaces of the pods.
    :param budgets: PodDisruptionBudgets.
    """

    def __init__(
        self, claims: Iterable[Mapping[str, Any]] = (), budgets: Iterable[Mapping[str, Any]] = ()
    ) -> None:
        self.claims: dict[str, Mapping[str, Any]] = {_key(claim): claim for claim in claims}
        self.budgets = Budgets(budgets)


def users(pods: Iterable[Mapping[str, Any]], known: Known, scope: Scope) -> list[User]:
    """Those of the pods that use RDMA, by namespace and name.

    :param pods: objects of the API, as a rule those of one node. Pods that are over, and the mirrors of static ones,
        which nothing but the kubelet ends, are no users.
    """
    found = [_user(pod, known, scope) for pod in pods]
    return sorted((user for user in found if user), key=lambda user: (user.namespace, user.name))


def reasons(pod: Mapping[str, Any], known: Known, scope: Scope) -> list[tuple[str, str]]:
    """Each reason why a pod is a user, with the name of what it uses, the strongest first."""
    return [
        *((CLAIM, called) for called in _driver_claims(pod, known, scope)),
        *((RESOURCE, called) for called in _resources(pod, scope)),
        *((NETWORK, called) for called in _networks(pod, scope)),
        *((HOST, called) for called in _host_paths(pod, scope)),
    ]


def claims_on(
    node: str, claims: Iterable[Mapping[str, Any]], scope: Scope, pods: Collection[str] = ()
) -> list[str]:
    """``namespace/name`` of the claims that still have devices of the driver on a node.

    The pool of a node has its name (F99). A claim that is reserved for a pod there counts as well.

    :param pods: UIDs of the pods on the node.
    """
    return claims_by_node((node,), claims, scope, {node: pods})[node]


def claims_by_node(
    nodes: Iterable[str],
    claims: Iterable[Mapping[str, Any]],
    scope: Scope,
    pods: Mapping[str, Collection[str]],
) -> dict[str, list[str]]:
    """The same for several nodes, each claim being looked at once.

    :param pods: UIDs of the pods of each node.
    """
    found: dict[str, set[str]] = {node: set() for node in nodes}
    place = {uid: node for node, uids in pods.items() for uid in uids}
    for claim in claims:
        where = set(_devices(claim, scope))
        if where:
            held = entries(mapping(claim, "status").get("reservedFor"))
            where.update(place.get(text(entry.get("uid")), "") for _at, entry in held)
            for node in where & found.keys():
                found[node].add(_key(claim))
    return {node: sorted(names) for node, names in found.items()}


def networks_of(definitions: Iterable[Mapping[str, Any]], scope: Scope) -> list[str]:
    """``namespace/name`` of those network definitions whose resource is one of RDMA."""
    return sorted(
        _key(content)
        for content in definitions
        if scope.is_resource(text(mapping(content, "metadata", "annotations").get(NETWORK_RESOURCE)))
    )


# --- what is to be done with them ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Choice:
    """What becomes of the users of a node.

    :param evict: pods that the eviction API is asked about.
    :param leaving: pods that were asked to end already; they are waited for.
    :param stays: pods that are left alone and not waited for.
    :param blocking: pods that somebody has to deal with first, each with the reason.
    """

    evict: tuple[User, ...] = ()
    leaving: tuple[User, ...] = ()
    stays: tuple[User, ...] = ()
    blocking: tuple[tuple[User, str], ...] = ()

    @property
    def waits_for(self) -> tuple[User, ...]:
        """Pods that must be gone before the devices are free."""
        return (*self.evict, *self.leaving, *(user for user, _reason in self.blocking))


def choose(found: Sequence[User], consent: Consent) -> Choice:
    """Sort users by what the operator allows and what the API will do.

    Pods that use the host's devices by themselves stay without consent, and those of DaemonSets always do: that is how
    drivers, device plugins and exporters look. A pod of a DaemonSet with a claim, a resource or a network blocks,
    because it comes back as soon as it is evicted.
    """
    evict, leaving, stays, blocking = [], [], [], []
    for user in found:
        reason = hindrance(user, consent)
        if user.reason == HOST and (user.owner_kind == _DAEMON_SET or not consent.host_network):
            stays.append(user)
        elif user.leaving:
            leaving.append(user)
        elif reason:
            blocking.append((user, reason))
        else:
            evict.append(user)
    return Choice(tuple(evict), tuple(leaving), tuple(stays), tuple(blocking))


def hindrance(user: User, consent: Consent) -> str:
    """Why a pod cannot be evicted, in words; empty: it can, or nobody knows better before it is tried."""
    if user.owner_kind == _DAEMON_SET:
        return "%s brings it back on every node: change or remove that first" % user.owner
    if not user.owner and not consent.ownerless:
        return "nothing makes it anew: remove it yourself, or allow to evict such pods"
    if user.budgets > 1:
        return "%d disruption budgets select it, and the eviction API takes no more than one" % user.budgets
    if user.blocked_by:
        return "the disruption budget %s" % user.blocked_by
    return ""


# --- keep no more than is needed -------------------------------------------------------------------------------------


def slim_pod(pod: Mapping[str, Any], scope: Scope) -> dict[str, Any]:
    """The fields of a pod that are read here, for a cache of many; :func:`users` tells the same from it."""
    metadata, spec, status = (mapping(pod, part) for part in ("metadata", "spec", "status"))
    kept = {
        "metadata": _some(
            metadata, "namespace", "name", "uid", "labels", "deletionTimestamp", "resourceVersion"
        ),
        "spec": _some(
            spec,
            "nodeName",
            "terminationGracePeriodSeconds",
            "restartPolicy",
            "resourceClaims",
            "hostNetwork",
        ),
        "status": _some(status, "phase", "resourceClaimStatuses", "extendedResourceClaimStatus"),
    }
    annotations = {
        key: value
        for key, value in mapping(metadata, "annotations").items()
        if key == _MIRROR or key in NETWORKS or key in scope.asking
    }
    if annotations:
        kept["metadata"]["annotations"] = annotations
    owners = [_some(owner, "kind", "name", "controller") for owner in _controllers(metadata)]
    if owners:
        kept["metadata"]["ownerReferences"] = owners
    conditions = [
        _some(entry, "type", "status")
        for _at, entry in entries(status.get("conditions"))
        if entry.get("type") == "Ready"
    ]
    if conditions:
        kept["status"]["conditions"] = conditions
    for group in ("containers", "initContainers"):
        containers = [_slim_container(entry) for _at, entry in entries(spec.get(group))]
        if any(containers):
            kept["spec"][group] = containers
    volumes = [
        {"name": entry.get("name"), "hostPath": {"path": mapping(entry, "hostPath").get("path")}}
        for _at, entry in entries(spec.get("volumes"))
        if mapping(entry, "hostPath")
    ]
    if volumes:
        kept["spec"]["volumes"] = volumes
    return kept


def _slim_container(container: Mapping[str, Any]) -> dict[str, Any]:
    amounts = {
        part: {key: value for key, value in mapping(container, "resources", part).items() if "/" in key}
        for part in ("requests", "limits")
    }
    kept: dict[str, Any] = {}
    if any(amounts.values()):
        kept["resources"] = {part: found for part, found in amounts.items() if found}
    if mapping(container, "securityContext").get("privileged") is True:
        kept["securityContext"] = {"privileged": True}
    return kept


def slim_claim(claim: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a claim that are read here."""
    status = mapping(claim, "status")
    results = [
        _some(entry, "driver", "pool")
        for _at, entry in entries(mapping(status, "allocation", "devices").get("results"))
    ]
    unique = [entry for at, entry in enumerate(results) if entry not in results[:at]]
    kept: dict[str, Any] = {
        "metadata": _some(mapping(claim, "metadata"), "namespace", "name", "uid", "resourceVersion"),
        "status": {},
    }
    if unique:
        kept["status"]["allocation"] = {"devices": {"results": unique}}
    reserved = [_some(entry, "uid") for _at, entry in entries(status.get("reservedFor"))]
    if reserved:
        kept["status"]["reservedFor"] = reserved
    return kept


# --- below -----------------------------------------------------------------------------------------------------------


def _user(pod: Mapping[str, Any], known: Known, scope: Scope) -> Optional[User]:
    metadata, spec, status = (mapping(pod, part) for part in ("metadata", "spec", "status"))
    if status.get("phase") in _OVER or _MIRROR in mapping(metadata, "annotations"):
        return None
    owner = next(iter(_controllers(metadata)), {})
    kind, where = text(owner.get("kind")), text(metadata.get("namespace"))
    if kind == _DAEMON_SET and "%s/%s" % (where, owner.get("name")) in scope.drivers:
        return None
    why = reasons(pod, known, scope)
    if not why:
        return None
    grace = spec.get("terminationGracePeriodSeconds")
    budgets, blocked_by = known.budgets.against(pod)
    return User(
        namespace=where,
        name=text(metadata.get("name")),
        uid=text(metadata.get("uid")),
        reason=why[0][0],
        uses=", ".join(called for _reason, called in why),
        owner="%s %s/%s" % (kind, where, text(owner.get("name"))) if kind else "",
        owner_kind=kind,
        grace=grace if isinstance(grace, int) else _DEFAULT_GRACE,
        leaving=bool(metadata.get("deletionTimestamp")),
        blocked_by=blocked_by,
        budgets=budgets,
        claims=tuple(called for reason, called in why if reason == CLAIM),
        ends=spec.get("restartPolicy") in ("Never", "OnFailure"),
    )


def _driver_claims(pod: Mapping[str, Any], known: Known, scope: Scope) -> Iterator[str]:
    """Claims of the pod with devices of the driver: named, made from a template, or behind an extended resource."""
    spec, status = mapping(pod, "spec"), mapping(pod, "status")
    names = [text(entry.get("resourceClaimName")) for _at, entry in entries(spec.get("resourceClaims"))]
    names += [
        text(entry.get("resourceClaimName")) for _at, entry in entries(status.get("resourceClaimStatuses"))
    ]
    names.append(text(mapping(status, "extendedResourceClaimStatus").get("resourceClaimName")))
    where = text(mapping(pod, "metadata").get("namespace"))
    for called in dict.fromkeys(filter(None, names)):
        key = "%s/%s" % (where, called)
        claim = known.claims.get(key)
        if claim is not None and any(True for _pool in _devices(claim, scope)):
            yield key


def _devices(claim: Mapping[str, Any], scope: Scope) -> Iterator[str]:
    """The pools of the driver's devices that a claim has."""
    for _at, entry in entries(mapping(claim, "status", "allocation", "devices").get("results")):
        if entry.get("driver") == scope.driver:
            yield text(entry.get("pool"))


def _resources(pod: Mapping[str, Any], scope: Scope) -> list[str]:
    spec = mapping(pod, "spec")
    found: dict[str, None] = {}
    for group in ("initContainers", "containers"):
        for _at, container in entries(spec.get(group)):
            for part in ("limits", "requests"):
                for called, amount in mapping(container, "resources", part).items():
                    # What cannot be read as a number is taken for some: better asked twice than lost.
                    if scope.is_resource(called) and quantity.parse(amount) != 0:
                        found[called] = None
    return list(found)


def _networks(pod: Mapping[str, Any], scope: Scope) -> list[str]:
    annotations = mapping(pod, "metadata", "annotations")
    where = text(mapping(pod, "metadata").get("namespace"))
    found = [
        called
        for key in NETWORKS
        for called in _named_networks(annotations.get(key), where)
        if scope.is_network(called)
    ]
    return list(dict.fromkeys([*found, *(key for key in scope.asking if key in annotations)]))


def _named_networks(value: Any, where: str) -> list[str]:
    """``namespace/name`` of each network of an annotation, a JSON list or names with commas."""
    if not isinstance(value, str):
        return []
    if value.lstrip()[:1] in ("[", "{"):
        try:
            listed = json_text.loads(value)
        except ValueError:
            return []
        listed = listed if isinstance(listed, list) else [listed]
        return [
            "%s/%s" % (text(entry.get("namespace")) or where, text(entry.get("name")))
            for _at, entry in entries(listed)
        ]
    names = [part.partition("@")[0].strip() for part in value.split(",")]
    return [called if "/" in called else "%s/%s" % (where, called) for called in names if called]


def _host_paths(pod: Mapping[str, Any], scope: Scope) -> list[str]:
    """Directories of RDMA devices of the host that a pod on the host's network, or a privileged one, mounts."""
    spec = mapping(pod, "spec")
    free = spec.get("hostNetwork") is True or any(
        mapping(container, "securityContext").get("privileged") is True
        for group in ("initContainers", "containers")
        for _at, container in entries(spec.get(group))
    )
    if not free:
        return []
    mounted = [text(mapping(entry, "hostPath").get("path")) for _at, entry in entries(spec.get("volumes"))]
    return [
        path for path in dict.fromkeys(mounted) if any(_reaches(path, wanted) for wanted in scope.host_paths)
    ]


def _reaches(path: str, wanted: str) -> bool:
    """Whether a mounted directory is the wanted one, one below it or, but for the root, one above it."""
    path = path.rstrip("/")
    return path == wanted or path.startswith(wanted + "/") or bool(path and wanted.startswith(path + "/"))


def _controllers(metadata: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [
        owner for _at, owner in entries(metadata.get("ownerReferences")) if owner.get("controller") is True
    ]


def _key(content: Mapping[str, Any]) -> str:
    metadata = mapping(content, "metadata")
    return "%s/%s" % (text(metadata.get("namespace")), text(metadata.get("name")))


def _some(content: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    return {key: content[key] for key in keys if content.get(key) not in (None, "", [], {})}
