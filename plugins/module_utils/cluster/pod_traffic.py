# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Run tests of traffic between pods, round by round. Private to rdma.k8s: it may change with any release.

A server is started in one pod and a client in the other; the client tries again while nobody listens yet. Both end in
time by themselves, whatever becomes of this process, and a server whose client is done is told to end.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

from .. import deps
from ..core.errors import RdmaError
from ..core.finding import UNKNOWN
from ..core.spiderpool import pod_fabric, pod_predicates
from ..core.spiderpool.pod_fabric import End, Limits, Pair, Probe, Result
from ..core.spiderpool.pod_script import RUN, SHELL
from . import pod_exec
from .client import Cluster
from .pod_exec import Place
from .pod_looks import PodLook

_TRIES = "6"
"""Attempts of a client, a second apart, until the server of the other pod listens."""
_PATIENCE = 5.0
"""Seconds that a server gets to end by itself after its client, and that each side gets beyond its limit."""


@dataclass(frozen=True)
class Wish:
    """What is tested. ``timeout``: seconds of one test; ``parallel``: tests at the same time."""

    mode: str = pod_fabric.RING
    seed: int = 0
    kinds: tuple[str, ...] = (pod_fabric.LATENCY, pod_fabric.BANDWIDTH)
    limits: Limits = Limits()
    parallel: int = 10
    timeout: float = 30.0


@dataclass(frozen=True)
class Plan:
    """The rounds of pairs, and the rails of pods that cannot be tested, each with the reason."""

    rounds: Sequence[Sequence[Pair]]
    missing: dict[str, dict[str, str]]

    @property
    def pairs(self) -> list[Pair]:
        """All pairs."""
        return [pair for held in self.rounds for pair in held]


def plan(found: Sequence[PodLook], wish: Wish) -> Plan:
    """Who talks to whom.

    :raises RdmaError: ``fabric_mode``.
    """
    ends: list[End] = []
    missing: dict[str, dict[str, str]] = {}
    for entry in found:
        if entry.evidence is not None:
            own, why = pod_fabric.ends_of(entry.ref, entry.node, entry.evidence)
            ends += own
            if why:
                missing[entry.ref] = why
    pairs = pod_fabric.plan_pairs(ends, wish.mode, wish.seed)
    for end in pod_fabric.lone(ends, pairs):
        missing.setdefault(end.pod, {})[end.nic] = "no pod on another node has this rail"
    return Plan(pod_fabric.rounds(pairs), missing)


def run(cluster: Cluster, found: Sequence[PodLook], planned: Plan, wish: Wish) -> list[Result]:
    """Run the tests; a test that cannot be run is a result, too."""
    places = {entry.ref: entry.place for entry in found}
    results: list[Result] = []
    number = 0
    deps.kubernetes("kubernetes.stream")  # once, before threads want it
    with ThreadPoolExecutor(max_workers=wish.parallel) as pool:
        for held in planned.rounds:
            tasks = [(pair, number + at) for at, pair in enumerate(held)]
            number += len(held)
            for told in pool.map(lambda task: _pair(cluster, places, task[0], task[1], wish), tasks):
                results += told
    return results


def with_traffic(found: Sequence[PodLook], results: Sequence[Result], planned: Plan) -> list[PodLook]:
    """The pods with the answer P14."""
    told = []
    for entry in found:
        if entry.evidence is not None:
            status, message = pod_fabric.of_pod(entry.ref, results, planned.missing.get(entry.ref, {}))
            answers = pod_predicates.with_traffic(entry.answers, status, message)
            entry = replace(entry, answers=tuple(answers))  # noqa: PLW2901
        told.append(entry)
    return told


def _pair(cluster: Cluster, places: dict[str, Place], pair: Pair, number: int, wish: Wish) -> list[Result]:
    probes = pod_fabric.plan_tests(pair, number, wish.kinds)
    if not probes:
        return [
            pod_fabric.not_tried(pair, kind, UNKNOWN, pod_fabric.why_no_probe(pair))
            for kind in wish.kinds[:1]
        ]
    return [_probe(cluster, places, probe, wish) for probe in probes]


def _probe(cluster: Cluster, places: dict[str, Place], probe: Probe, wish: Wish) -> Result:
    over = threading.Event()
    server = _Server(cluster, places[probe.pair.target.pod], probe, wish, over)
    server.start()
    limit = str(max(int(wish.timeout), 1))
    words = (*SHELL, limit, _TRIES, *probe.client)
    try:
        place = places[probe.pair.source.pod]
        printed = pod_exec.run(cluster, place, words, RUN, wish.timeout + _PATIENCE)
    except RdmaError as error:
        return pod_fabric.failed(probe, error.message.rstrip("."))
    finally:
        server.finish()
    result = pod_fabric.result_of(probe, printed.code, printed.stdout, printed.stderr, wish.limits)
    if result.status == "fail" and server.trouble:
        return replace(result, reason="%s; the server: %s" % (result.reason, server.trouble))
    return result


class _Server(threading.Thread):
    """The server of one test. ``trouble`` is why it did not serve; empty: it did, or it is not known."""

    def __init__(
        self, cluster: Cluster, place: Place, probe: Probe, wish: Wish, over: threading.Event
    ) -> None:
        super().__init__(daemon=True)
        self._run: Any = (cluster, place, probe, wish)
        self._over = over
        self.trouble = ""

    def run(self) -> None:
        cluster, place, probe, wish = self._run
        words = (*SHELL, str(max(int(wish.timeout), 1)), "1", *probe.server)
        try:
            printed = pod_exec.run(
                cluster, place, words, RUN, wish.timeout + _PATIENCE, is_over=self._over.is_set
            )
        except RdmaError as error:
            self.trouble = error.message.rstrip(".")
            return
        if printed.code and not self._over.is_set():
            self.trouble = pod_fabric.last_words(printed.stdout, printed.stderr)

    def finish(self) -> None:
        """Let it end by itself for a while, then tell it to."""
        self.join(1.0)
        self._over.set()
        self.join(_PATIENCE)


def summary(results: Collection[Result], planned: Plan) -> dict[str, Any]:
    """What all tests showed, as plain data: the matrix of each rail, and what failed."""
    return {
        "pairs": len(planned.pairs),
        "rails": pod_fabric.matrix(results),
        "failed": [result.to_dict() for result in results if result.status not in ("pass", "skip")],
        "missing": {pod: dict(why) for pod, why in sorted(planned.missing.items())},
    }


def status(found: Sequence[PodLook]) -> str:
    """The worst of the answers P14; a pod that could not be looked into is ``unknown``."""
    return pod_fabric.worst([_traffic(entry).status for entry in found])


def problems(found: Sequence[PodLook], results: Collection[Result], planned: Plan) -> list[str]:
    """What failed or could not be tried, in sentences."""
    told = ["%s: %s" % (entry.ref, entry.reason) for entry in found if entry.evidence is None]
    told += [
        "%s to %s on %s (%s): %s."
        % (result.source, result.target, result.nic, result.kind, result.reason.rstrip("."))
        for result in results
        if result.status not in ("pass", "skip")
    ]
    told += [
        "%s %s: %s." % (pod, nic, reason)
        for pod, why in sorted(planned.missing.items())
        for nic, reason in why.items()
    ]
    return told


def _traffic(entry: PodLook) -> pod_predicates.Predicate:
    return next(answer for answer in entry.answers if answer.number == "P14")
