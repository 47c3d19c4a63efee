# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Does the plugin serve every Lingjun node, and does that last. Private to rdma.k8s: it may change with any release.

Right after a restart of the kubelet the amounts of before can still stand there (A57, A103), and after one of the
plugin none (A102), so one look is not enough: two that say the same, some time apart, are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Optional

from ..kube.objects import entries, mapping, name, text
from . import device_plugin, node_resource
from .names import RESOURCE, SHARED
from .verdict import FAIL, SKIP, WARN, Reason, worst

NO_NODES = Reason(
    "no-lingjun-node",
    FAIL,
    "no node has the label of Lingjun nodes",
    "alibabacloud.com/lingjun-worker=true on at least one node",
    "none",
)
NOT_SETTLED = "amounts-not-settled"


class PluginPod(NamedTuple):
    """A pod of the plugin: ``state`` tells what its container does, and ``last`` how it ended before (A98)."""

    name: str
    node: str
    container: str
    ready: bool
    restarts: int
    state: str
    last: str


class NodeAmounts(NamedTuple):
    """A Lingjun node, or one that has the resource: ``None`` where an amount is not told."""

    name: str
    capacity: Optional[int]
    allocatable: Optional[int]


@dataclass(frozen=True)
class Look:
    """What stood in the API at one time, and what is wrong with it. The subject of a reason is a node."""

    reasons: tuple[Reason, ...]
    rollout: Optional[device_plugin.Rollout]
    nodes: tuple[NodeAmounts, ...]
    pods: tuple[PluginPod, ...]

    @property
    def status(self) -> str:
        """The worst of the reasons; ``ok`` without any."""
        return worst(self.reasons)

    @property
    def failed(self) -> bool:
        """Something has to change before pods can use RDMA."""
        return self.status == FAIL


def look(
    daemonset: Optional[Mapping[str, Any]],
    nodes: Iterable[Mapping[str, Any]],
    pods: Iterable[Mapping[str, Any]],
    *,
    resource: str = RESOURCE,
    rdma_mode: str = SHARED,
    expected: Optional[int] = None,
) -> Look:
    """Judge one reading of the DaemonSet, the nodes and the plugin's pods (A51, A52, A55).

    :param daemonset: ``None``: there is none.
    :param expected: tokens of a node, see :func:`.node_resource.judge`.
    """
    plugin_pods = tuple([_pod(content) for content in pods])
    reasons: list[Reason] = []
    amounts = []
    lingjun = []
    for content in nodes:
        called = name(content)
        found = node_resource.judge_object(content, resource, rdma_mode, expected)
        if [reason.status for reason in found.reasons] == [SKIP]:
            continue
        if node_resource.is_lingjun(mapping(content, "metadata", "labels")):
            lingjun.append(called)
        amounts.append(NodeAmounts(called, found.capacity, found.allocatable))
        reasons += [reason._replace(subject=called) for reason in found.reasons]
    rollout = device_plugin.of_object(daemonset)
    covered = [pod.node for pod in plugin_pods if pod.ready]
    about_plugin = device_plugin.judge(rollout, lingjun, covered if rollout is not None else None)
    if not lingjun:
        about_plugin.append(NO_NODES)
    return Look((*about_plugin, *reasons), rollout, tuple(amounts), plugin_pods)


def settled(before: Look, after: Look) -> list[Reason]:
    """What changed between two looks; nothing when the second says what the first said (A57)."""
    known = {entry.name: entry for entry in before.nodes}
    return [
        Reason(
            NOT_SETTLED,
            WARN,
            "the amounts changed between two looks",
            _told(known[entry.name]) if entry.name in known else "absent",
            _told(entry),
            entry.name,
        )
        for entry in after.nodes
        if known.get(entry.name) != entry
    ]


def _told(entry: NodeAmounts) -> str:
    shown = ["none" if amount is None else str(amount) for amount in (entry.capacity, entry.allocatable)]
    return "capacity %s, allocatable %s" % (shown[0], shown[1])


def to_ask(found: Look, most: int) -> list[PluginPod]:
    """The pods whose logs may explain a failure: not ready, or on a node without a usable amount (A53).

    Those that are not ready come first; at most ``most``, since they often say the same.
    """
    poor = {entry.name for entry in found.nodes if not entry.capacity or not entry.allocatable}
    asked = [pod for pod in found.pods if not pod.ready] + [
        pod for pod in found.pods if pod.ready and pod.node in poor
    ]
    return asked[:most]


def sentence(reason: Reason) -> str:
    """A reason for a person: ``e01-cn-a1: the node does not have rdma/hca (expected rdma/hca, found absent).``"""
    start = "%s: " % reason.subject if reason.subject else ""
    values = []
    if reason.expected:
        values.append("expected %s" % reason.expected)
    if reason.observed:
        values.append("found %s" % reason.observed)
    return "%s%s%s." % (start, reason.message, " (%s)" % ", ".join(values) if values else "")


def _pod(content: Mapping[str, Any]) -> PluginPod:
    status = mapping(content, "status")
    conditions = [entry for _at, entry in entries(status.get("conditions")) if entry.get("type") == "Ready"]
    containers = [entry for _at, entry in entries(status.get("containerStatuses"))]
    # Of several the one that is not ready is the one to ask.
    containers.sort(key=lambda entry: entry.get("ready") is True)
    first: Mapping[str, Any] = containers[0] if containers else {}
    named = [text(entry.get("name")) for _at, entry in entries(mapping(content, "spec").get("containers"))]
    restarts = first.get("restartCount")
    return PluginPod(
        name=name(content),
        node=text(mapping(content, "spec").get("nodeName")),
        container=text(first.get("name")) or (named[0] if named else ""),
        ready=any(entry.get("status") == "True" for entry in conditions)
        and not mapping(content, "metadata").get("deletionTimestamp"),
        restarts=restarts if isinstance(restarts, int) else 0,
        state=_state(mapping(first, "state")) or text(status.get("phase")),
        last=_state(mapping(first, "lastState")),
    )


def _state(content: Mapping[str, Any]) -> str:
    """``waiting: CrashLoopBackOff``, ``terminated: Error, exit code 1``, ``running``."""
    for kind in ("waiting", "terminated", "running"):
        if kind not in content:
            continue
        held = mapping(content, kind)
        words = [text(held.get("reason"))]
        if kind == "terminated":
            words.append("exit code %s" % held.get("exitCode"))
        shown = ", ".join([word for word in words if word])
        return "%s: %s" % (kind, shown) if shown else kind
    return ""


def owned_by(pods: Sequence[Mapping[str, Any]], uid: str) -> list[Mapping[str, Any]]:
    """The pods that a controller made; labels alone may fit pods of somebody else."""
    return [
        content
        for content in pods
        if any(
            entry.get("uid") == uid
            for _at, entry in entries(mapping(content, "metadata").get("ownerReferences"))
        )
    ]
