# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where a controller is killed: at one call of one entry action, before the server gets it or after it has answered."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from dataclasses import dataclass

from proxy import SILENCE, Canned, Request, Rule
from slots import FAULTS, until

STATE = "rdma-k8s/roll-state"
STATES = (
    "Pending", "Locked", "Fenced", "WaitJobs", "Draining", "ClaimsReleased",
    "Applied", "Rebooting", "DriverRestarted", "Verified", "Released", "Done",
)  # fmt: skip
"""In the order of the machine. Their entry actions are what the matrix kills at."""
SEEDS = (0, 1, 2)
SETTING = "rdma-test/setting"


def state_of(request: Request) -> str:
    """The state that a patch of a node writes; empty: it is no such patch."""
    if request.method != "PATCH" or not request.path.startswith("/api/v1/nodes/"):
        return ""
    annotations = (request.document.get("metadata") or {}).get("annotations") or {}
    return annotations.get(STATE) or ""


def _patches(annotation: str) -> Callable[[Request], bool]:
    def found(request: Request) -> bool:
        annotations = (request.document.get("metadata") or {}).get("annotations") or {}
        return request.method == "PATCH" and bool(annotations.get(annotation))

    return found


def _evicts(request: Request) -> bool:
    return request.method == "POST" and request.path.endswith("/eviction")


def _restarts(request: Request) -> bool:
    return request.method == "DELETE" and "/pods/rdma-k8s-provider-" in request.path


def _proves(request: Request) -> bool:
    return request.method == "POST" and request.path.endswith("/pods")


def _on(method: str, part: str) -> Callable[[Request], bool]:
    return lambda request: request.method == method and part in request.path


EFFECTS: dict[str, Callable[[Request], bool]] = {
    "Draining": _evicts,
    "Applied": _patches(SETTING),
    "Rebooting": _patches(FAULTS),
    "DriverRestarted": _restarts,
    "Verified": _proves,
}
"""What an entry action does besides the patch of the node, and how it is recognised."""


@dataclass(frozen=True)
class Point:
    """One point of the matrix.

    :param edge: ``before``: the server does not get the first call of the entry action; ``after``: it has answered the
        last one, and the controller does not get the answer.
    :param seed: at which of the nodes of the slot, in the order in which they come there. The second seed of ``before``
        kills between the patch and the effect, where there is one.
    """

    state: str
    edge: str
    seed: int

    @property
    def between(self) -> bool:
        """Whether the patch was made and the effect is not."""
        return self.edge == "before" and self.seed == 1 and self.state in EFFECTS

    @property
    def boots(self) -> bool:
        """Whether the roll must change and boot nodes to come here."""
        return self.state in ("Applied", "Rebooting")

    def __str__(self) -> str:
        return f"{self.edge} {self.state} #{self.seed}"


CLUSTER_WIDE: dict[str, tuple[Callable[[Request], bool], int]] = {
    "the plan": (_on("POST", "/configmaps"), 0),
    "the lease": (_on("POST", "/leases"), 0),
    "prepare": (_on("PATCH", "/daemonsets/"), 0),
    "switch": (_on("PATCH", "/daemonsets/"), 1),
    "restore": (_on("PATCH", "/daemonsets/"), 2),
}
"""What is done once for all nodes: how it is recognised, and which of the calls that look so it is."""
TAINT = _on("POST", "/devicetaintrules")


def matrix() -> list[Point]:
    """All points: 12 entry actions, two edges, three seeds."""
    return [Point(state, edge, seed) for state in STATES for edge in ("before", "after") for seed in SEEDS]


class Killer(Rule):
    """Kills its victim at one call.

    :param is_it: recognises the call.
    :param number: which of those that are recognised, from 0.
    :param after: whether the server answers it.
    :param distinct: count objects, not calls: one that is patched twice is one.
    """

    def __init__(
        self, is_it: Callable[[Request], bool], number: int, after: bool, distinct: bool = True
    ) -> None:
        self._is_it, self._number, self._after, self._distinct = is_it, number, after, distinct
        self.victim = 0
        """Process to be killed; set when it has begun."""
        self.hit = ""
        """Where it was killed."""
        self._lock = threading.Lock()
        self._seen: list[str] = []

    @classmethod
    def at(cls, point: Point) -> Killer:
        """The one for a point of the matrix."""
        effect = EFFECTS.get(point.state) if point.edge == "after" or point.between else None
        return cls(
            effect or (lambda request: state_of(request) == point.state), point.seed, point.edge == "after"
        )

    def before(self, request: Request) -> Canned | None:
        """Kill it with a call on its lips."""
        if self.hit:
            return SILENCE  # what a process that is dead sent before
        return self._kill(request) if not self._after and self._is_it(request) else None

    def after(self, request: Request, code: int) -> Canned | None:
        """Kill it before it hears the answer."""
        if self.hit:
            return SILENCE
        return self._kill(request) if self._after and 200 <= code < 300 and self._is_it(request) else None

    def _kill(self, request: Request) -> Canned | None:
        with self._lock:
            if self.hit:
                return SILENCE
            # An object that is made has its name in the body, everything else in its path.
            key = f"{request.path} {(request.document.get('metadata') or {}).get('name', '')}"
            if key not in self._seen or not self._distinct:
                self._seen.append(key)
            if len(self._seen) <= self._number:
                return None
            until("the victim has begun", lambda: self.victim, 60.0, 0.01)
            os.kill(self.victim, signal.SIGKILL)
            self.hit = f"{request.method} {request.path}"
            return SILENCE
