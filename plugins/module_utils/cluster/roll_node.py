# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A setting of the nodes as the target of a roll: the namespace mode of RDMA, or the network of the cloud's agent.

The node agent in its mode ``write`` does the steps on the nodes, by exec with JSON; no SSH takes part (decision 23).
The driver is told the value by an annotation of its template, so that each of its pods is replaced once after its node
was changed. Private to rdma.k8s: it may change with any release.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence
from typing import Any, Callable, Optional
from urllib.parse import quote

from ..core import node_agent
from ..core.errors import RdmaError
from ..core.kube.objects import entries, mapping, text
from ..core.net import parse_prefix
from ..core.oke import range_flag
from ..core.roll.model import Proven
from ..core.roll.users import Scope
from . import pod_exec
from .client import Cluster
from .pod_exec import Place, Printed
from .roll_dranet import DranetRange, on_delete, pod_template, strategy_of

NETNS_MODE, OCA_NETWORK = KINDS = ("netns_mode", "oca_network")
MODES = ("shared", "exclusive")
_PROGRAM = ("python3", "-m", "rdma_k8s.host.agent_step")
_LIMIT = 600.0
_LOOK_LIMIT = 60.0


class Agent:
    """The node agent of each node.

    :param run: runs a program in a pod, as :func:`.pod_exec.run`; an argument for tests.
    """

    def __init__(self, cluster: Cluster, namespace: str, run: Callable[..., Printed] = pod_exec.run) -> None:
        self._cluster, self._namespace, self._run = cluster, namespace, run

    def ask(self, node: str, step: str, options: Mapping[str, Any], limit: float = _LIMIT) -> dict[str, Any]:
        """Let the agent of a node do a step.

        :raises RdmaError: ``agent_missing``, ``agent_malformed``, ``agent_refused``, ``exec_failed``, ``exec_timeout``,
            or an error of the client.
        """
        place = self._place(node)
        order = {"step": step, "host_root": node_agent.HOST_ROOT, "options": dict(options)}
        printed = self._run(self._cluster, place, _PROGRAM, json.dumps(order), limit)
        try:
            answer = json.loads(printed.stdout)
        except ValueError:
            answer = None
        error = mapping(answer, "error")
        if error:
            raise RdmaError(
                "agent_refused",
                "The node agent of %s could not do the step: %s" % (node, text(error.get("message"))),
                hint=text(error.get("hint")),
                retryable=error.get("retryable") is True,
                node=node,
                cause=text(error.get("code")),
            )
        if printed.code or not isinstance(answer, dict) or not isinstance(answer.get("result"), dict):
            said = (printed.stderr.strip() or printed.stdout.strip()).splitlines()
            raise RdmaError(
                "agent_malformed",
                "The node agent of %s gave no answer (exit code %d): %s"
                % (node, printed.code, said[-1][:200] if said else "it said nothing."),
                hint="Use a node agent whose image is of the same release as the controller.",
                node=node,
            )
        return mapping(answer, "result")

    def _place(self, node: str) -> Place:
        pods = self._cluster.items(
            "/api/v1/namespaces/%s/pods" % quote(self._namespace, safe=""),
            labelSelector=node_agent.SELECTOR,
            fieldSelector="spec.nodeName=" + node,
        )
        for pod in pods:
            metadata = mapping(pod, "metadata")
            ready = any(
                entry.get("type") == "Ready" and entry.get("status") == "True"
                for _at, entry in entries(mapping(pod, "status").get("conditions"))
            )
            mode = mapping(metadata, "labels").get(node_agent.MODE_LABEL)
            if ready and mode == "write" and not metadata.get("deletionTimestamp"):
                return Place(self._namespace, text(metadata.get("name")), "agent")
        raise RdmaError(
            "agent_missing",
            "%s has no ready node agent in the mode write in the namespace %s." % (node, self._namespace),
            hint="Deploy it with the role node_agent and node_agent_mode: write.",
            retryable=True,
            node=node,
        )


class NodeSetting(DranetRange):
    """A setting of the nodes, see :class:`.roll_target.Target`.

    :param kind: ``netns_mode`` or ``oca_network``.
    :param options: further options of the step on the node, as the module of the same name has them.
    """

    observes = True

    def __init__(  # noqa: PLR0917
        self,
        cluster: Cluster,
        daemonsets: Sequence[str],
        scope: Scope,
        agent: Agent,
        kind: str,
        options: Optional[Mapping[str, Any]] = None,
    ) -> None:
        super().__init__(cluster, daemonsets, scope)
        self.driver_sets = len(daemonsets)
        self._agent, self._kind, self._options = agent, kind, dict(options or {})
        self._lock = threading.Lock()
        self._values: dict[str, str] = {}

    # --- what is read

    @staticmethod
    def values_of(slice_: Mapping[str, Any]) -> frozenset[str]:
        """Slices tell nothing of it."""
        return frozenset()

    def value_of(self, node: str, published: Sequence[str]) -> str:  # type: ignore[override]
        """What the agent told last."""
        with self._lock:
            return self._values.get(node, "")

    def observe(self, node: str) -> None:  # type: ignore[override]
        """Ask the agent."""
        told = self._agent.ask(node, "look", {}, _LOOK_LIMIT)
        with self._lock:
            self._values[node] = text(told.get(self._kind))

    def value(self) -> str:
        """The value of the annotation; empty before the first change."""
        found = {_annotated(entry) for _name, entry in self.daemonsets()}
        return found.pop() if len(found) == 1 else ""

    # --- what is changed

    def switch(self, value: str) -> None:
        """Write the annotation, and the strategy with it."""
        wanted = parsed(self._kind, value)

        def other(live: Mapping[str, Any]) -> dict[str, Any]:
            if _annotated(live) == wanted and strategy_of(live) == "OnDelete":
                return {}
            annotations = {"metadata": {"annotations": {range_flag.ROLL: wanted}}}
            return {"spec": {"template": annotations, **on_delete()["spec"]}}

        self.change_all(other)

    def change_node(self, node: str, value: str) -> bool:  # type: ignore[override]
        """Let the agent make the change; whether it asks for a reboot."""
        key = "mode" if self._kind == NETNS_MODE else "rdma_network"
        self._forget(node)
        told = self._agent.ask(node, self._kind, {**self._options, key: value})
        return told.get("reboot_required") is True

    def reboot(self, node: str, boot_id: str) -> None:  # type: ignore[override]
        """Let the agent boot the node, if it is still in this boot."""
        self._forget(node)
        self._agent.ask(node, "reboot", {"boot_id": boot_id}, _LOOK_LIMIT)

    def prove(self, node: str, value: str, peer: Optional[str]) -> Proven:
        """Ask the agent once more."""
        self.observe(node)
        found = self.value_of(node, ())
        if found == value:
            return Proven()
        return Proven(("%s has the %s %s, expected %s" % (node, self._kind, found or "(none)", value),))

    def _forget(self, node: str) -> None:
        with self._lock:
            self._values.pop(node, None)


def parsed(kind: str, value: str) -> str:
    """A value as it is told everywhere.

    :raises RdmaError: ``roll_value``, or an error of the prefix.
    """
    if kind == OCA_NETWORK:
        return str(parse_prefix(value))
    if value not in MODES:
        raise RdmaError(
            "roll_value",
            "The namespace mode is %r, expected one of %s." % (value, ", ".join(MODES)),
        )
    return value


def _annotated(daemonset: Mapping[str, Any]) -> str:
    return text(mapping(pod_template(daemonset), "metadata", "annotations").get(range_flag.ROLL))
