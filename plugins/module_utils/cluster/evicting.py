# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Ask the eviction API to end pods. Private to rdma.k8s: it may change with any release."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Callable, Optional
from urllib.parse import quote

from ..core.errors import RdmaError
from ..core.roll import eviction
from ..core.roll.eviction import Kind, Outcome
from ..core.roll.model import User
from .client import Cluster

_LONG = 3600.0


def send(cluster: Cluster, user: User, grace: Optional[int] = None, dry_run: bool = False) -> Outcome:
    """One eviction of exactly this pod, by its UID.

    :param grace: seconds instead of the pod's own grace period. It is never sent as 0, and neither is a pod's own.
    """
    path = "/api/v1/namespaces/%s/pods/%s/eviction" % (
        quote(user.namespace, safe=""),
        quote(user.name, safe=""),
    )
    body = eviction.body(user.namespace, user.name, user.uid, eviction.grace_of(user.grace, grace))
    try:
        cluster.send("POST", path, body, **({"dryRun": "All"} if dry_run else {}))
    except RdmaError as error:
        return eviction.outcome(error)
    return eviction.outcome(None)


@dataclass
class _Refusal:
    first: float
    next: float
    reason: str


class Evictions:
    """The evictions of one drain: none is sent for a pod whose eviction was taken, and refused ones have their time.

    :param clock: monotonic seconds, an argument for tests.
    """

    def __init__(
        self,
        cluster: Cluster,
        grace: Optional[int] = None,
        dry_run: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.taken: dict[str, User] = {}
        """Pods whose eviction the API server took, by UID."""
        self.failed: dict[str, tuple[User, Outcome]] = {}
        """Pods whose eviction it will not take, by UID."""
        self._refused: dict[str, _Refusal] = {}
        self._cluster, self._grace, self._dry_run, self._clock = cluster, grace, dry_run, clock

    @property
    def reasons(self) -> dict[str, str]:
        """Why the last eviction of a pod was not taken, by UID."""
        waiting = {uid: refusal.reason for uid, refusal in self._refused.items()}
        return {**waiting, **{uid: found.reason for uid, (_user, found) in self.failed.items()}}

    def due(self) -> float:
        """Seconds until a refused eviction is asked for again; none: a long time."""
        now = self._clock()
        return min((max(0.0, refusal.next - now) for refusal in self._refused.values()), default=_LONG)

    def ask(self, users: Iterable[User]) -> None:
        """Ask for each pod that was not asked for with success, once its time has come.

        :param users: all whose eviction is wanted now; what is remembered of refusals of others is forgotten.
        """
        users = list(users)
        wanted = {user.uid for user in users}
        self._refused = {uid: refusal for uid, refusal in self._refused.items() if uid in wanted}
        for user in users:
            refusal = self._refused.get(user.uid)
            if (
                user.uid in self.taken
                or user.uid in self.failed
                or (refusal and self._clock() < refusal.next)
            ):
                continue
            found = send(self._cluster, user, self._grace, self._dry_run)
            self._refused.pop(user.uid, None)
            if found.kind is Kind.ACCEPTED:
                self.taken[user.uid] = user
            elif found.again:
                now = self._clock()
                first = refusal.first if refusal else now
                wait = eviction.retry_after(found, now - first)
                self._refused[user.uid] = _Refusal(first, now + wait, found.reason)
            elif not found.over:
                self.failed[user.uid] = (user, found)
