# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Everything that happens to nodes, slices and taint rules of a cluster, in the order in which it happened.

The versions of one etcd are one sequence, so that events of several watches can be put in order: that shows states
which lasted a moment only, and no sampling would find.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from api import Api

RANGE = "oke.dra.net/rdmaChildIpv4Cidr"
STATE = "rdma-k8s/roll-state"


@dataclass(frozen=True)
class Change:
    """What one event says.

    :param what: ``cordon``, ``rule``, ``value`` or ``state``.
    :param at: monotonic seconds when it was heard.
    """

    version: int
    node: str
    what: str
    value: Any
    at: float = 0.0


class Recorder:
    """Watches a cluster from its making on."""

    def __init__(self, api: Api) -> None:
        self.changes: list[Change] = []
        self._api = api
        self._lock = threading.Lock()
        self._last: dict[tuple[str, str], Any] = {}
        self._rules: dict[str, set[str]] = {}
        self.version = 0
        for path, read in (
            ("/api/v1/nodes", self._node),
            ("/apis/resource.k8s.io/v1/resourceslices", self._slice),
            ("/apis/resource.k8s.io/v1/devicetaintrules", self._rule),
        ):
            listed = api.get(path)
            for item in listed["items"]:
                read(item, False)
            start = listed["metadata"]["resourceVersion"]
            threading.Thread(target=self._follow, args=(path, start, read), daemon=True).start()

    def _follow(self, path: str, version: str, read: Any) -> None:
        while True:
            try:
                for event in self._api.watch(path, version):
                    version = event["object"]["metadata"]["resourceVersion"]
                    if event["type"] != "BOOKMARK":
                        read(event["object"], event["type"] == "DELETED")
            except (OSError, ValueError, KeyError):
                return  # the cluster has ended

    def _note(self, version: str, node: str, what: str, value: Any) -> None:
        with self._lock:
            if self._last.get((node, what)) != value:
                self._last[node, what] = value
                self.changes.append(Change(int(version), node, what, value, time.monotonic()))
            self.version = max(self.version, int(version))

    def _node(self, node: dict[str, Any], gone: bool) -> None:
        meta = node["metadata"]
        cordoned = gone or bool(node["spec"].get("unschedulable"))
        self._note(meta["resourceVersion"], meta["name"], "cordon", cordoned)
        state = (meta.get("annotations") or {}).get(STATE, "")
        self._note(meta["resourceVersion"], meta["name"], "state", state)

    def _slice(self, found: dict[str, Any], gone: bool) -> None:
        values = {
            device["attributes"].get(RANGE, {}).get("string", "")
            for device in found["spec"].get("devices") or ()
        }
        value = "" if gone else "+".join(sorted(values))
        self._note(found["metadata"]["resourceVersion"], found["spec"].get("nodeName", ""), "value", value)

    def _rule(self, rule: dict[str, Any], gone: bool) -> None:
        meta = rule["metadata"]
        pool = (rule["spec"].get("deviceSelector") or {}).get("pool", "")
        names = self._rules.setdefault(pool, set())
        active = not gone and rule["spec"]["taint"]["effect"] in ("NoSchedule", "NoExecute")
        (names.add if active else names.discard)(meta["name"])
        self._note(meta["resourceVersion"], pool, "rule", bool(names))

    def history(self, nodes: Iterable[str], since: int = 0) -> list[Change]:
        """What happened to some nodes, in order, and before it what they were at ``since``."""
        wanted = set(nodes)
        with self._lock:
            found = sorted(
                (change for change in self.changes if change.node in wanted),
                key=lambda change: change.version,
            )
        before = {(change.node, change.what): change for change in found if change.version <= since}
        return [*before.values(), *(change for change in found if change.version > since)]


def mixtures(history: Iterable[Change]) -> list[str]:
    """Moments at which nodes that take RDMA workloads offered different values."""
    now: dict[str, dict[str, Any]] = {}
    found = []
    for change in history:
        now.setdefault(change.node, {})[change.what] = change.value
        offered: dict[str, str] = {}
        for name, node in now.items():
            if node.get("value") and not node.get("cordon") and not node.get("rule"):
                offered.setdefault(node["value"], name)
        if len(offered) > 1:
            pairs = ", ".join(f"{name} {value}" for value, name in sorted(offered.items()))
            found.append(f"at version {change.version} schedulable nodes offered {pairs}")
    return found
