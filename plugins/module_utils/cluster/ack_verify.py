# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Wait until the device plugin of Lingjun nodes serves all of them. Private to rdma.k8s: it may change any time."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Callable, Optional

from ..core import cluster_reading, standing
from ..core.ack import names, plugin_logs, verification
from ..core.ack.verdict import Reason, worst
from ..core.ack.verification import Look, PluginPod
from ..core.errors import RdmaError
from ..core.kube.objects import mapping, text
from ..news import silent
from .client import Cluster

LOG_LINES, LOG_BYTES = 2000, 1 << 20
"""What is read of one log: its end."""


@dataclass(frozen=True)
class Wish:
    """What is looked at.

    :param timeout: seconds to wait for a good state; 0: one look.
    :param settle: seconds between two looks that must say the same (A57); 0: one look is enough.
    :param logs: the most pods whose logs are read.
    """

    daemonset: str = names.DAEMONSET
    namespace: str = names.NAMESPACE
    resource: str = names.RESOURCE
    rdma_mode: str = names.SHARED
    expected: Optional[int] = None
    timeout: float = 300.0
    settle: float = 20.0
    interval: float = 5.0
    logs: int = 5


@dataclass(frozen=True)
class Outcome:
    """The last look, what changed since the one before, and what the logs of failing pods say."""

    look: Look
    unsettled: Sequence[Reason]
    logs: Sequence[dict[str, Any]]
    waited: float

    @property
    def reasons(self) -> list[Reason]:
        """All that is wrong."""
        return [*self.look.reasons, *self.unsettled]

    @property
    def status(self) -> str:
        """``ok``, ``warn`` or ``fail``."""
        return worst(self.reasons)

    @property
    def sentences(self) -> list[str]:
        """All that is wrong, and what the logs say about it, for a person."""
        found = [verification.sentence(reason) for reason in self.reasons]
        for log in self.logs:
            state = "%s, %d restarts%s" % (
                log["state"],
                log["restarts"],
                ", before that %s" % log["last"] if log["last"] else "",
            )
            found.append("%s: the pod %s is %s." % (log["node"], log["pod"], state))
            found += [
                "%s: its log says: %s %s" % (log["node"], entry["meaning"], entry["hint"])
                for entry in log["explanations"]
            ]
            found += ["%s: its log was not read: %s" % (log["node"], problem) for problem in log["unread"]]
        return found


def verify(
    cluster: Cluster,
    wish: Wish,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
    tell: Callable[[str], None] = silent,
) -> Outcome:
    """Look until nothing fails and a second look says the same, or the time is over.

    :param tell: takes what is waited for, after each look that is not the last one.
    :raises RdmaError: one of the codes ``kube_...``.
    """
    start = clock()
    before: Optional[Look] = None
    unsettled: Sequence[Reason] = ()
    while True:
        now = _look(cluster, wish)
        first = before is None and not now.failed and wish.settle > 0
        unsettled = verification.settled(before, now) if before is not None and not now.failed else ()
        good = not now.failed and not unsettled and not first
        # A look that is good has always a second one; all others only while there is time.
        if good or (not first and clock() - start >= wish.timeout):
            break
        tell(_standing(now, unsettled, wish))
        before = None if now.failed else now
        sleep(wish.interval if now.failed else wish.settle)
    logs = _logs(cluster, wish, now) if now.failed else []
    return Outcome(now, unsettled, logs, round(clock() - start, 1))


def _standing(now: Look, unsettled: Sequence[Reason], wish: Wish) -> str:
    wrong = [*now.reasons, *unsettled] if now.failed or unsettled else []
    if not wrong:
        return "waiting %g s for the second look: the first one is good" % wish.settle
    return standing.waiting(wish.timeout, [verification.sentence(reason) for reason in wrong])


def _look(cluster: Cluster, wish: Wish) -> Look:
    daemonset = _daemonset(cluster, wish)
    nodes = list(cluster.items("/api/v1/nodes"))
    return verification.look(
        daemonset,
        nodes,
        [] if daemonset is None else _pods(cluster, wish.namespace, daemonset),
        resource=wish.resource,
        rdma_mode=wish.rdma_mode,
        expected=wish.expected,
    )


def _daemonset(cluster: Cluster, wish: Wish) -> Optional[dict[str, Any]]:
    return cluster.find("/apis/apps/v1/namespaces/%s/daemonsets/%s" % (wish.namespace, wish.daemonset))


def _pods(cluster: Cluster, namespace: str, daemonset: dict[str, Any]) -> list[Any]:
    selector = cluster_reading.selector_of(daemonset)
    query: dict[str, Any] = {"labelSelector": selector} if selector else {}
    found = list(cluster.items("/api/v1/namespaces/%s/pods" % namespace, **query))
    return verification.owned_by(found, text(mapping(daemonset, "metadata").get("uid")))


def _logs(cluster: Cluster, wish: Wish, look: Look) -> list[dict[str, Any]]:
    return [_log(cluster, wish.namespace, pod) for pod in verification.to_ask(look, wish.logs)]


def _log(cluster: Cluster, namespace: str, pod: PluginPod) -> dict[str, Any]:
    """What the log of a pod explains. A log that cannot be read is told and nothing more: it decides nothing (A53)."""
    path = "/api/v1/namespaces/%s/pods/%s/log" % (namespace, pod.name)
    lines: list[str] = []
    problems = []
    for previous in (True, False) if pod.restarts else (False,):
        query = {"container": pod.container, "tailLines": LOG_LINES, "limitBytes": LOG_BYTES}
        try:
            lines += cluster.text(path, previous=previous, **query).splitlines()
        except RdmaError as error:
            problems.append(error.message)
    return {
        "pod": pod.name,
        "node": pod.node,
        "container": pod.container,
        "state": pod.state,
        "last": pod.last,
        "restarts": pod.restarts,
        "lines": len(lines),
        "explanations": [entry._asdict() for entry in plugin_logs.explain(lines)],
        "unread": problems,
    }
