# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Follow who uses RDMA on some nodes. Private to rdma.k8s: it may change with any release.

Pods of the nodes and all claims are listed once and then followed by watches, so that waiting costs no calls.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import Any

from ..core.kube.objects import mapping, text
from ..core.roll import users
from ..core.roll.draining import Look
from ..core.roll.users import Known, Scope
from . import rdma_users
from .client import Cluster
from .following import Follower

_PATIENCE = 30.0
_GATHER = 0.05
"""Seconds after the first news in which more may come."""


class NodeUsers:
    """The users of RDMA on some nodes, as they are now.

    :param cluster: for lists and watches alone.
    """

    def __init__(self, cluster: Cluster, nodes: Sequence[str], scope: Scope) -> None:
        self._cluster, self._nodes, self._scope = cluster, tuple(nodes), scope
        self._lock = threading.Lock()
        self._news = threading.Event()
        self._pods: dict[str, dict[str, Any]] = {}
        self._claims: dict[str, dict[str, Any]] = {}
        self._followers = [
            Follower(
                cluster,
                rdma_users.PODS,
                {"fieldSelector": selector},
                self._take_pod,
                self._drop_pod,
                self._news.set,
            )
            for selector in rdma_users.pod_selectors(nodes)
        ]
        if rdma_users.serves_claims(cluster):
            path = rdma_users.CLAIMS
            self._followers.append(
                Follower(cluster, path, {}, self._take_claim, self._drop_claim, self._news.set)
            )

    def start(self) -> None:
        """Read everything once, and follow it from then on."""
        for follower in self._followers:
            follower.start()
        end = time.monotonic() + _PATIENCE
        for follower in self._followers:
            while not follower.listed.wait(0.05) and not follower.trouble and time.monotonic() < end:
                pass

    def stop(self) -> None:
        """End all watches."""
        for follower in self._followers:
            follower.stop()
        for follower in self._followers:
            follower.join(5.0)

    @property
    def blind(self) -> bool:
        """Whether something is not heard at the moment, so that what is known may be out of date."""
        return any(follower.trouble or not follower.listed.is_set() for follower in self._followers)

    def wait(self, seconds: float) -> None:
        """Until something changed, or the time is over."""
        if self._news.wait(max(0.0, seconds)):
            time.sleep(_GATHER)
        self._news.clear()

    def looks(self) -> list[Look]:
        """What is known of each node; asked of the API itself while the watches are blind. Without budgets.

        :raises RdmaError: one of the codes ``kube_...``, while the watches are blind.
        """
        if self.blind:
            return rdma_users.look(self._cluster, self._nodes, self._scope, budgets=False)
        with self._lock:
            return rdma_users.looks(
                self._nodes, list(self._pods.values()), Known(self._claims.values()), self._scope
            )

    def _take_pod(self, key: str, content: dict[str, Any]) -> None:
        node = text(mapping(content, "spec").get("nodeName"))
        with self._lock:
            if node in self._nodes:
                self._pods[key] = users.slim_pod(content, self._scope)

    def _drop_pod(self, key: str) -> None:
        with self._lock:
            self._pods.pop(key, None)

    def _take_claim(self, key: str, content: dict[str, Any]) -> None:
        slim = users.slim_claim(content)
        with self._lock:
            self._claims[key] = slim

    def _drop_claim(self, key: str) -> None:
        with self._lock:
            self._claims.pop(key, None)
