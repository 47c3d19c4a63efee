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
from slots import FAULTS

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


def _rules(request: Request) -> bool:
    return request.writes and "/devicetaintrules" in request.path


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


def matrix() -> list[Point]:
    """All points: 12 entry actions, two edges, three seeds."""
    return [Point(state, edge, seed) for state in STATES for edge in ("before", "after") for seed in SEEDS]


class Killer(Rule):
    """Kills its victim at a point."""

    def __init__(self, point: Point) -> None:
        self.point = point
        self.victim = 0
        """Process to be killed; set before it begins."""
        self.hit = ""
        """Where it was killed."""
        self._lock = threading.Lock()
        self._seen: list[str] = []

    def before(self, request: Request) -> Canned | None:
        """Kill it with a call on its lips."""
        if self.hit:
            return SILENCE  # what a process that is dead sent before
        if self.point.edge != "before":
            return None
        effect = EFFECTS.get(self.point.state) if self.point.between else None
        is_it = effect(request) if effect else state_of(request) == self.point.state
        return self._kill(request) if is_it else None

    def after(self, request: Request, code: int) -> Canned | None:
        """Kill it before it hears the answer."""
        if self.hit:
            return SILENCE
        if self.point.edge != "after" or not 200 <= code < 300:
            return None
        effect = EFFECTS.get(self.point.state)
        is_it = effect(request) if effect else state_of(request) == self.point.state
        return self._kill(request) if is_it else None

    def _kill(self, request: Request) -> Canned | None:
        with self._lock:
            if self.hit:
                return SILENCE
            # An object that is made has its name in the body, everything else in its path.
            key = f"{request.path} {(request.document.get('metadata') or {}).get('name', '')}"
            if key not in self._seen:
                self._seen.append(key)
            if len(self._seen) <= self.point.seed:
                return None
            os.kill(self.victim, signal.SIGKILL)
            self.hit = f"{request.method} {request.path}"
            return SILENCE
