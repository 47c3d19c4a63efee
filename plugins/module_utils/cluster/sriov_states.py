# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Wait for the SR-IOV operator: look, watch the states of the nodes, look again. Private to rdma.k8s."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple, Optional

from ..core import cluster_reading as reading
from ..core.cluster_snapshot import ClusterSnapshot
from ..core.errors import RdmaError
from ..core.kube.objects import mapping, text
from ..core.spiderpool import rollout
from ..core.spiderpool.wanted import ClusterWish
from ..news import silent
from .client import Cluster

GROUP = "/apis/sriovnetwork.openshift.io/v1"
STATES = GROUP + "/sriovnetworknodestates"
PAUSE = 2.0
"""Seconds between two looks at least; a change of one node comes as several events."""
TELL_AGAIN = 60.0
"""Seconds after which it is told that nothing has changed."""
LOOK_AGAIN = 30.0
"""Seconds after which there is a look without an event: nodes get ready, too, and plugins register."""


class Waited(NamedTuple):
    """The last look, whether it has held, and the seconds that it took. ``disable_drain``: ``None``: not told."""

    progress: rollout.Progress
    settled: bool
    disable_drain: Optional[bool]
    seconds: float
    looks: int


class Waiter:
    """Looks at a cluster until the states are final.

    :param timeout: seconds; 0 looks once.
    :param settle: seconds for which a good look must hold, since states flip (S116).
    :param tell: takes a line for people at each change, and one each minute without any.
    """

    def __init__(
        self,
        cluster: Cluster,
        tracker: rollout.Tracker,
        timeout: float,
        settle: float,
        *,
        tell: Callable[[str], None] = silent,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._cluster, self._tracker = cluster, tracker
        self._timeout, self._settle = timeout, settle
        self._tell, self._clock, self._sleep = tell, clock, sleep
        self._told = 0.0
        self._last: Optional[rollout.Progress] = None
        self._version = ""
        self._namespace = ""
        self._looks = 0

    def wait(self) -> Waited:
        """Look until all nodes are ready and stay so, none of the others gets on, or the time is over.

        :raises RdmaError: ``kube_not_served``, or one of the codes ``kube_...`` of the first look.
        """
        start = self._clock()
        good_since: Optional[float] = None
        while True:
            found = self._look(start)
            now = self._clock() - start
            self._report(found, now)
            if found.state != rollout.READY:
                good_since = None
            elif good_since is None:
                good_since = now
            settled = good_since is not None and now - good_since >= self._settle
            final = settled if found.state == rollout.READY else found.is_final
            left = self._timeout - now
            if final or left < PAUSE:
                return Waited(found, settled, self._disable_drain(), round(now, 1), self._looks)
            rest = LOOK_AGAIN if good_since is None else max(self._settle - (now - good_since), PAUSE)
            self._rest(min(rest, left))

    def _report(self, found: rollout.Progress, now: float) -> None:
        lines = rollout.news(self._last, found)
        if not lines and (self._last is None or now - self._told >= TELL_AGAIN):
            lines = [rollout.standing(found)]
        for line in lines:
            self._tell("%5d s  %s" % (now, line))
        if lines:
            self._told = now
        self._last = found

    def _look(self, start: float) -> rollout.Progress:
        self._looks += 1
        snapshot = self._read()
        self._namespace = ClusterWish(snapshot).namespace
        return self._tracker.look(snapshot, self._clock() - start)

    def _read(self) -> ClusterSnapshot:
        """What a look needs: four lists."""
        states: list[dict[str, Any]] = []
        try:
            for page in self._cluster.pages(STATES):
                states += page["items"]
                self._version = text(mapping(page, "metadata").get("resourceVersion")) or self._version
        except RdmaError as error:
            if error.code != "kube_not_found":
                raise
            raise RdmaError(
                "kube_not_served",
                "The API server %s serves no sriovnetworknodestates." % self._cluster.server,
                hint="Install the SR-IOV operator; the chart of Spiderpool has it with sriov.install=true.",
            ) from error
        policies = self._cluster.items(GROUP + "/sriovnetworknodepolicies")
        return ClusterSnapshot(
            subsets=("nodes", "attachments"),
            sriov_node_states=tuple([reading.sriov_node_state(content) for content in states]),
            sriov_policies=tuple([reading.api_object(content) for content in policies]),
            sriov_pool_configs=self._pool_configs(),
            nodes=tuple([reading.node(content) for content in self._cluster.items("/api/v1/nodes")]),
        )

    def _pool_configs(self) -> tuple[Any, ...]:
        """Older operators have no pools."""
        try:
            found = list(self._cluster.items(GROUP + "/sriovnetworkpoolconfigs"))
        except RdmaError as error:
            if error.code != "kube_not_found":
                raise
            found = []
        return tuple([reading.api_object(content) for content in found])

    def _disable_drain(self) -> Optional[bool]:
        """Whether nodes are rebooted without a drain (S123); the object is called default (S124)."""
        path = "%s/namespaces/%s/sriovoperatorconfigs/default" % (GROUP, self._namespace)
        try:
            found = mapping(self._cluster.get(path), "spec").get("disableDrain")
        except RdmaError as error:
            if error.code not in ("kube_not_found", "kube_forbidden"):
                raise
            return None
        return found is True

    def _rest(self, seconds: float) -> None:
        """Until a state changes, or the time is over. A watch that breaks off is only a rest that is shorter."""
        start = self._clock()
        try:
            watch = self._cluster.watch(STATES, self._version, seconds=max(int(seconds), 1))
            for kind, _content in watch:
                if kind != "BOOKMARK":
                    watch.close()
                    break
        except RdmaError as error:
            if error.code not in ("kube_expired", "kube_unreachable", "kube_timeout"):
                raise
        rested = self._clock() - start
        if rested < PAUSE:
            self._sleep(PAUSE - rested)
