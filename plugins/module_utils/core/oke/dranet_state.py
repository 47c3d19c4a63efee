# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether a cluster can have DRANET, and whether it has it as it was wanted. Private to rdma.k8s: it may change."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Optional

from ..cluster_snapshot import ClusterNode, ClusterSnapshot, DaemonSet, SliceDevice
from ..errors import RdmaError
from ..kube.objects import entries, mapping, text
from . import dranet_objects
from .constants import ATTRIBUTE_DOMAIN, DRIVER, READY_ATTRIBUTE

OLDEST = (1, 34)  # F120
STAGES = ("before", "provider", "after", "unused", "stopped", "absent")
REMOVED = ("stopped", "absent")
"""The stages that look for what a removal left."""
SUBSETS = ("nodes", "dra", "drivers")
DAEMONSETS = (dranet_objects.DRANET, dranet_objects.PROVIDER)
POD_SELECTOR = "app.kubernetes.io/name in (%s)" % ", ".join(DAEMONSETS)
"""Finds their pods when they are gone themselves; the chart of DRANET sets this label too."""
LINGER = 60.0
"""Seconds beyond the grace of its pods within which a driver has gone: a kubelet removes its slices after 30."""
_SHOWN = 5
_CONTAINERD = re.compile(r"containerd://v?(\d+)\.(\d+)", re.ASCII)
_VERSION = re.compile(r"v?(\d+)\.(\d+)", re.ASCII)


@dataclass(frozen=True)
class Expected:
    """What is wanted of the cluster.

    :param nodes: nodes that must have RDMA NICs; empty: those with NICs in their slices, one at least.
    :param selector: labels of the nodes on which the pods run; empty: all.
    :param child_range: that the slices must show; empty: not looked at, as with a driver that does not publish it.
    :param provider: the provider of this collection resolves the profile, and tells which NICs are ready.
    :param nri: the user says that NRI is on, where the runtime does not tell.
    """

    namespace: str = "kube-system"
    nodes: Sequence[str] = ()
    selector: Mapping[str, str] = field(default_factory=dict)
    child_range: str = ""
    provider: bool = True
    nri: bool = False


@dataclass(frozen=True)
class Judgement:
    """``problems`` must go, some of them by themselves; ``warnings`` need not; ``nodes`` are the RDMA nodes.

    ``patience``: seconds within which what is left of a removal goes by itself; 0 for other stages.
    """

    problems: tuple[RdmaError, ...]
    warnings: tuple[str, ...]
    nodes: tuple[str, ...]
    patience: float = 0.0


@dataclass(frozen=True)
class Leftover:
    """A pod whose DaemonSet may be gone. ``grace``: seconds that it may take to end; ``ending``: it was asked to."""

    name: str
    node: str
    grace: float
    ending: bool


def leftovers(pods: Iterable[Any]) -> list[Leftover]:
    """The pods of DRANET and of the provider among pods of the API, whether their DaemonSets are there or not."""
    found = []
    for _at, pod in entries(list(pods)):
        metadata, spec = mapping(pod, "metadata"), mapping(pod, "spec")
        owners = [
            text(owner.get("name"))
            for _number, owner in entries(metadata.get("ownerReferences"))
            if owner.get("kind") == "DaemonSet"
        ]
        if not set(owners).intersection(DAEMONSETS):
            continue
        grace = metadata.get("deletionGracePeriodSeconds", spec.get("terminationGracePeriodSeconds"))
        found.append(
            Leftover(
                "%s/%s" % (text(metadata.get("namespace")), text(metadata.get("name"))),
                text(spec.get("nodeName")),
                float(grace) if isinstance(grace, int) else 30.0,
                bool(text(metadata.get("deletionTimestamp"))),
            )
        )
    return found


def judge(
    snapshot: ClusterSnapshot, stage: str, expected: Expected, pods: Sequence[Leftover] = ()
) -> Judgement:
    """Judge one stage: ``before`` anything is deployed, ``provider`` ready, ``after`` all is deployed, ``unused``
    before its removal, ``stopped`` and ``absent`` after it.

    :param pods: those of the driver that are there, for the stages of :data:`REMOVED`.
    """
    problems = [_unread(error.source, error.reason) for error in snapshot.errors if _matters(error.source)]
    warnings: list[str] = []
    nodes = [
        node
        for node in snapshot.nodes or ()
        if all(node.labels.get(key) == value for key, value in expected.selector.items())
    ]
    if stage == "unused":
        return Judgement((*problems, *_users(snapshot)), (), ())
    if stage in REMOVED:
        problems += _left(snapshot, expected, pods, stage == "absent")
        patience = max([pod.grace for pod in pods] or [0.0]) + LINGER
        return Judgement(tuple(problems), (), (), patience)
    if stage == "before":
        problems += _before(snapshot, nodes, expected)
        return Judgement(tuple(problems), (), tuple(expected.nodes))
    names = [dranet_objects.PROVIDER] if expected.provider else []
    if stage == "after":
        names.append(dranet_objects.DRANET)
    for name in names:
        found, told = _daemonset(snapshot, nodes, name, expected.namespace)
        problems += found
        warnings += told
    rdma = list(expected.nodes)
    if stage == "after":
        devices = _devices(snapshot)
        rdma = rdma or sorted(name for name, held in devices.items() if any(map(_is_nic, held)))
        problems += _slices(devices, rdma, expected)
    return Judgement(tuple(problems), tuple(warnings), tuple(rdma))


# --- before


def _before(snapshot: ClusterSnapshot, nodes: list[ClusterNode], expected: Expected) -> list[RdmaError]:
    problems = []
    version = _numbers(snapshot.server.version)
    if version is not None and version < OLDEST:
        problems.append(
            RdmaError(
                "dranet_kubernetes_old",
                "The API server is of version %s, expected v1.34 or newer." % snapshot.server.version,
                hint="Upgrade the cluster (F120).",
            )
        )
    served = snapshot.server.served
    if served is not None and "resource.k8s.io/v1/resourceslices" not in served:
        problems.append(
            RdmaError(
                "dranet_api_missing",
                "The API server does not serve resource.k8s.io/v1, which DRANET publishes its devices with.",
                hint="Use Kubernetes 1.34 or newer, and do not switch off that API (F120).",
            )
        )
    missing = sorted(set(expected.nodes) - {node.name for node in nodes})
    if missing or (snapshot.nodes is not None and not nodes):
        problems.append(
            RdmaError(
                "dranet_nodes_missing",
                "The cluster has no node %s with the labels %s."
                % (_few(missing) or "at all", _labels(expected.selector) or "(any)"),
                hint="Correct the names or the node selector.",
                nodes=missing,
            )
        )
    old = sorted(node.name for node in nodes if (_numbers(node.kubelet) or OLDEST) < OLDEST)
    if old:
        problems.append(
            RdmaError(
                "dranet_kubelet_old",
                "The kubelets of %s are older than v1.34." % _few(old),
                hint="Upgrade these nodes, or leave them out by the node selector (F120).",
                nodes=old,
            )
        )
    unknown = [] if expected.nri else sorted(node.name for node in nodes if not _has_nri(node.runtime))
    if unknown:
        problems.append(
            RdmaError(
                "dranet_nri_unknown",
                "Nothing tells that NRI is on for %s, whose runtime is %s; it is on by default in containerd 2.0 and "
                "newer." % (_few(unknown), _few(sorted({n.runtime for n in nodes if n.name in unknown}))),
                hint="Switch NRI on in the configuration of the runtime, then say so with nri_enabled: without NRI "
                "pods start without their NICs.",
                nodes=unknown,
            )
        )
    return problems


def _has_nri(runtime: str) -> bool:
    """Whether the version of a runtime tells that NRI is on by default (F120)."""
    found = _CONTAINERD.match(runtime)
    return found is not None and int(found[1]) >= 2


def _numbers(version: str) -> Optional[tuple[int, int]]:
    found = _VERSION.match(version)
    return (int(found[1]), int(found[2])) if found else None


# --- pods


def _daemonset(
    snapshot: ClusterSnapshot, nodes: list[ClusterNode], name: str, namespace: str
) -> tuple[list[RdmaError], list[str]]:
    found = _find(snapshot, name, namespace)
    if found is None:
        return [
            RdmaError(
                "dranet_pods_missing",
                "There is no DaemonSet %s/%s." % (namespace, name),
                hint="Look at what removed it.",
                daemonset=name,
            )
        ], []
    ready = {pod.node for pod in found.pods or () if pod.ready and not pod.deleted}
    waiting = sorted(node.name for node in nodes if node.name not in ready)
    if found.observed_generation < found.generation or waiting:
        return [
            RdmaError(
                "dranet_pods_not_ready",
                "No ready pod of the DaemonSet %s/%s is on %s."
                % (namespace, name, _few(waiting) or "the nodes yet, because it was changed just now"),
                hint="Look at the events and logs: kubectl -n %s describe pods -l app.kubernetes.io/name=%s"
                % (namespace, name),
                retryable=True,
                daemonset=name,
                nodes=waiting,
            )
        ], []
    if found.updated < found.desired:
        return [], [
            "%d of %d pods of %s/%s still have the former settings. They get the new ones when they are deleted; a pod "
            "of DRANET only when its node has no RDMA workload."
            % (found.desired - found.updated, found.desired, namespace, name)
        ]
    return [], []


def _find(snapshot: ClusterSnapshot, name: str, namespace: str) -> Optional[DaemonSet]:
    return next(
        (entry for entry in snapshot.daemonsets or () if (entry.name, entry.namespace) == (name, namespace)),
        None,
    )


# --- slices


def _devices(snapshot: ClusterSnapshot) -> dict[str, list[SliceDevice]]:
    """The devices of DRANET by node."""
    found: dict[str, list[SliceDevice]] = {}
    for entry in snapshot.slices or ():
        if entry.driver == DRIVER:
            found.setdefault(entry.node, []).extend(entry.devices)
    return found


def _is_nic(device: SliceDevice) -> bool:
    return device.attributes.get(DRIVER + "/rdma") is True


def _slices(
    devices: Mapping[str, list[SliceDevice]], nodes: Iterable[str], expected: Expected
) -> list[RdmaError]:
    nodes = list(nodes)
    lacking = [name for name in nodes if not any(map(_is_nic, devices.get(name, ())))]
    if lacking or not nodes:
        return [
            RdmaError(
                "dranet_slices_missing",
                "No RDMA NIC is published for %s." % (_few(lacking) or "any node"),
                hint="Look at the logs of DRANET on these nodes: a NIC without its driver, or with a default route, is "
                "not published (F102).",
                retryable=True,
                nodes=lacking,
            )
        ]
    problems = []
    if expected.child_range:
        problems += _ranges(devices, nodes, expected.child_range)
    if expected.provider:
        problems += _readiness(devices, nodes)
    return problems


def _ranges(devices: Mapping[str, list[SliceDevice]], nodes: list[str], wanted: str) -> list[RdmaError]:
    """The range on the slices of nodes with an IPv4 fabric is the wanted one (F70)."""
    attribute = ATTRIBUTE_DOMAIN + "/rdmaChildIpv4Cidr"
    problems = []
    others: dict[Any, list[str]] = {}
    for name in nodes:
        held = [device for device in devices[name] if _is_nic(device)]
        if any(device.attributes.get(ATTRIBUTE_DOMAIN + "/rdmaFabricIpv6") is True for device in held):
            continue  # never published there (F4)
        for value in {device.attributes.get(attribute) for device in held} - {wanted}:
            others.setdefault(value, []).append(name)
    for value, names in sorted(others.items(), key=str):
        problems.append(
            RdmaError(
                "dranet_range_differs",
                "The attribute %s of %s is %s, expected %s."
                % (attribute, _few(names), value or "absent", wanted),
                hint="Absent: the metadata service gave no fabric data yet. Another range: the pods there still have "
                "the former option, delete them when their nodes have no RDMA workload.",
                retryable=True,
                nodes=names,
            )
        )
    return problems


def _readiness(devices: Mapping[str, list[SliceDevice]], nodes: list[str]) -> list[RdmaError]:
    """The provider says of each RDMA NIC that it would get the profile now (F43, F44)."""
    problems = []
    for value, words in ((None, "no attribute"), (False, "false")):
        held = [
            "%s %s" % (name, device.attributes.get(DRIVER + "/ifName") or device.name)
            for name in nodes
            for device in devices[name]
            if _is_nic(device) and device.attributes.get(READY_ATTRIBUTE) is value
        ]
        if held:
            problems.append(
                RdmaError(
                    "dranet_nics_not_ready",
                    "The attribute %s is %s on %s." % (READY_ATTRIBUTE, words, _few(held)),
                    hint="The log of the provider on the node says what a claim for the NIC would fail with."
                    if value is False
                    else "DRANET did not ask the provider: it runs with other settings, or asked before it listened.",
                    retryable=True,
                    nics=held,
                )
            )
    return problems


# --- removal


def _users(snapshot: ClusterSnapshot) -> list[RdmaError]:
    """Claims that have devices: without the driver their pods could not end (DRA-016)."""
    claims = [
        "%s/%s" % (claim.namespace, claim.name)
        for claim in snapshot.claims or ()
        if any(device.driver == DRIVER for device in claim.devices)
    ]
    if not claims:
        return []
    return [
        RdmaError(
            "dranet_in_use",
            "Devices of DRANET are allocated to the claims %s." % _few(claims),
            hint="End their pods first: a pod whose claim is prepared cannot end while its driver is away.",
            claims=claims,
        )
    ]


def _left(
    snapshot: ClusterSnapshot, expected: Expected, pods: Sequence[Leftover], published: bool
) -> list[RdmaError]:
    """What an uninstall left behind; slices only if ``published``."""
    left = [
        "DaemonSet %s/%s" % (entry.namespace, entry.name)
        for entry in snapshot.daemonsets or ()
        if entry.namespace == expected.namespace and entry.name in DAEMONSETS
    ]
    left += [
        "Pod %s on %s%s" % (pod.name, pod.node or "no node", " (ending)" if pod.ending else "")
        for pod in pods
    ]
    if published:
        left += [
            "ResourceSlice %s" % entry.name
            for entry in snapshot.slices or ()
            if entry.driver == DRIVER and (not expected.nodes or entry.node in expected.nodes)
        ]
    if not left:
        return []
    hints = []
    if pods:
        hints.append(
            "A pod ends within its grace; one that stays is on a node whose kubelet does not answer: look at the node."
        )
    if published:
        hints.append(
            "A kubelet removes the slices of a driver that is gone after a while (30 seconds by default)."
        )
    return [
        RdmaError(
            "dranet_left",
            "Still there: %s." % _few(left),
            hint=" ".join(hints) or "Look at who keeps them, or makes them again.",
            retryable=True,
            left=left,
        )
    ]


def _matters(source: str) -> bool:
    return source.partition(".")[0] in ("nodes", "resourceslices", "resourceclaims", "daemonsets", "pods")


def _unread(source: str, reason: str) -> RdmaError:
    return RdmaError(
        "dranet_unread",
        "%s cannot be read: %s." % (source, reason.rstrip(".")),
        hint="Give the user of the kubeconfig the right to read it.",
        source=source,
    )


def _labels(selector: Mapping[str, str]) -> str:
    return ", ".join("%s=%s" % entry for entry in sorted(selector.items()))


def _few(names: Sequence[str]) -> str:
    """The first names, and how many more there are."""
    shown = ", ".join(names[:_SHOWN])
    return shown if len(names) <= _SHOWN else "%s and %d more" % (shown, len(names) - _SHOWN)
