# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether the node agent is ready on every node that it must cover, from the DaemonSet, its pods and the nodes.

Private to rdma.k8s: it may change with any release.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from .inventory import pod_facts

NAME = "rdma-k8s-agent"
SELECTOR = "app.kubernetes.io/name=" + NAME
MODE_LABEL = "rdma.k8s/agent-mode"
SHOWN = 20
HOST_ROOT = "/host"
"""Where the pod has the root of the host's file system."""


@dataclass
class State:
    """What there is of the agent.

    :param ready: nodes with a ready pod of the wanted mode.
    :param waiting: the other nodes that it must cover, with the reason.
    :param open_mounts: nodes where file systems below the read-only root of the host can be written all the same,
        because the runtime cannot make a mount read-only as a whole.
    :param problem: what is wrong with the DaemonSet itself; empty where nothing is.
    """

    ready: list[str] = field(default_factory=list)
    waiting: dict[str, str] = field(default_factory=dict)
    open_mounts: list[str] = field(default_factory=list)
    problem: str = ""

    @property
    def done(self) -> bool:
        """Whether there is nothing to wait for."""
        return not self.problem and not self.waiting

    @property
    def lacking(self) -> list[str]:
        """What is waited for: the DaemonSet, then each node."""
        return [*self._told, *self._nodes]

    @property
    def _told(self) -> list[str]:
        return [self.problem] if self.problem else []

    @property
    def _nodes(self) -> list[str]:
        return ["%s (%s)" % pair for pair in sorted(self.waiting.items())]

    def sentence(self, waited: float) -> str:
        """What is missing, for people."""
        names = self._nodes[:SHOWN]
        if len(self.waiting) > SHOWN:
            names.append("and %d more" % (len(self.waiting) - SHOWN))
        told = [*self._told, *(["nodes: %s" % ", ".join(names)] if names else [])]
        return "The node agent is not as wanted after %.0f s: %s." % (waited, "; ".join(told))


def state(
    mode: str,
    daemonset: Mapping[str, Any],
    pods: Iterable[Mapping[str, Any]],
    nodes: Iterable[Mapping[str, Any]],
) -> State:
    """Judge the agent.

    :param mode: the wanted mode, ``read`` or ``write``.
    :param daemonset: the DaemonSet as the API returns it; empty where there is none.
    :param pods: its pods, ``nodes`` those that it must cover.
    """
    found = State()
    if not daemonset:
        found.problem = "there is no DaemonSet %s" % NAME
    else:
        found.problem = _unsettled(daemonset)
    best: dict[str, Mapping[str, Any]] = {}
    for pod in pods:
        facts = pod_facts(pod)
        # While a pod is replaced the old one is on its way out.
        if facts is None or (pod.get("metadata") or {}).get("deletionTimestamp"):
            continue
        other = best.get(facts["node"])
        if other is None or facts["usable"]:
            best[facts["node"]] = {**facts, "pod": pod}
    for name in sorted(str((node.get("metadata") or {}).get("name")) for node in nodes):
        reason = _reason(mode, best.get(name))
        if reason:
            found.waiting[name] = reason
        else:
            found.ready.append(name)
            if mode == "read" and not _closed(best[name]["pod"]):
                found.open_mounts.append(name)
    return found


def left(daemonset: Mapping[str, Any], pods: Iterable[Mapping[str, Any]]) -> State:
    """What is left of an agent that was removed: the DaemonSet, and nodes with a pod of it."""
    found = State(problem="the DaemonSet %s is still there" % NAME if daemonset else "")
    for pod in pods:
        node = str((pod.get("spec") or {}).get("nodeName") or "")
        found.waiting[node] = "the pod %s is still there" % (pod.get("metadata") or {}).get("name")
    return found


def _unsettled(daemonset: Mapping[str, Any]) -> str:
    status = daemonset.get("status") or {}
    generation = (daemonset.get("metadata") or {}).get("generation", 0)
    if status.get("observedGeneration", 0) < generation:
        return "the controller has not seen the DaemonSet %s of generation %s" % (NAME, generation)
    desired, updated = status.get("desiredNumberScheduled", 0), status.get("updatedNumberScheduled", 0)
    if updated < desired:
        return "%d of %d pods are as the DaemonSet %s wants them" % (updated, desired, NAME)
    return ""


def _reason(mode: str, pod: Any) -> str:
    if pod is None:
        return "no pod"
    labels = (pod["pod"].get("metadata") or {}).get("labels") or {}
    if labels.get(MODE_LABEL) != mode:
        return "the pod %s is in mode %s" % (pod["name"], labels.get(MODE_LABEL, "unknown"))
    if pod["usable"]:
        return ""
    for container in (pod["pod"].get("status") or {}).get("containerStatuses") or ():
        waits = (container.get("state") or {}).get("waiting") or {}
        if waits.get("reason"):
            told = waits.get("message") or ""
            return "the pod %s waits: %s" % (
                pod["name"],
                ": ".join(filter(None, (waits["reason"], told[:200]))),
            )
    return "the pod %s is not ready" % pod["name"]


def _closed(pod: Mapping[str, Any]) -> bool:
    """Whether the kubelet says that the host's root is read-only with everything mounted below it."""
    for container in (pod.get("status") or {}).get("containerStatuses") or ():
        for mount in container.get("volumeMounts") or ():
            if mount.get("mountPath") == HOST_ROOT:
                return bool(mount.get("recursiveReadOnly") == "Enabled")
    return False
