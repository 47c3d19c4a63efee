# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Drain nodes of what uses RDMA, and fence them before. Private to rdma.k8s: it may change with any release."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Callable, Optional
from urllib.parse import quote

from ..core.errors import RdmaError
from ..core.kube.objects import mapping
from ..core.roll import draining, fence, users
from ..core.roll.draining import Look, Phase, Progress, Wish
from ..core.roll.users import Scope
from ..news import silent
from . import rdma_users
from .client import Cluster
from .evicting import Evictions
from .node_list import NODES
from .node_users import NodeUsers

_ATTEMPTS = 5
_PAUSE = 1.0
"""Seconds between two looks at an API that cannot be followed."""
_TOLD = 20.0
"""Seconds within which the API tells what a rule without effect would hit."""


@dataclass
class Done:
    """What was done so far, also when it fails in the end.

    :param nodes: the Node objects as they were before.
    :param fences: what each node got, or lost; a node whose fence was there already is missing.
    :param hit: what the rule of a node would hit, for a rule without effect.
    """

    nodes: dict[str, dict[str, Any]] = field(default_factory=dict)
    fences: dict[str, str] = field(default_factory=dict)
    hit: dict[str, str] = field(default_factory=dict)
    looks: list[Look] = field(default_factory=list)
    evictions: Optional[Evictions] = None
    seconds: float = 0.0


class Drainer:
    """One drain of some nodes.

    :param kind: ``cordon``, ``taint`` or ``none``.
    :param grace: seconds instead of the grace period of each pod.
    :param tell: takes what is waited for, whenever it was looked at.
    :param sleep: waits; ``clock``: monotonic seconds. They are arguments for tests.
    """

    def __init__(
        self,
        cluster: Cluster,
        nodes: Sequence[str],
        scope: Scope,
        kind: str = fence.CORDON,
        *,
        grace: Optional[int] = None,
        dry_run: bool = False,
        tell: Callable[[str], None] = silent,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.done = Done()
        self._cluster, self._names, self._scope, self._kind = cluster, sorted(set(nodes)), scope, kind
        self._grace, self._dry_run, self._tell = grace, dry_run, tell
        self._sleep, self._clock = sleep, clock

    def drain(self, wish: Wish) -> None:
        """Fence the nodes, wait for jobs, evict, and wait until the claims are released.

        In a dry run the API server checks fences and evictions, and nothing is waited for.

        :raises RdmaError: ``node_not_in_cluster``, ``drain_blocked`` and ``taint_rules_not_served`` before anything is
            changed; ``drain_jobs_running``, ``drain_timeout``, ``drain_claims_held``, ``eviction_failed`` or one of
            the codes ``kube_...`` later. What was done until then is in ``done``.
        """
        start = self._clock()
        try:
            self._drain(wish)
        finally:
            self.done.seconds = round(self._clock() - start, 3)

    def _drain(self, wish: Wish) -> None:
        nodes = self.done.nodes = rdma_users.nodes(self._cluster, self._names)
        group_version = self._group_version() if self._kind == fence.RULE else ""
        looks = self.done.looks = rdma_users.look(self._cluster, self._names, self._scope)
        draining.require_possible(looks, wish.consent)
        self._fence(nodes, group_version)
        evictions = self.done.evictions = Evictions(
            self._cluster, self._grace, self._dry_run, clock=self._clock
        )
        if self._dry_run:
            wanted = [user for look in looks for user in users.choose(look.users, wish.consent).evict]
            evictions.ask(wanted)
            return
        followed = NodeUsers(self._cluster, self._names, self._scope)
        try:
            followed.start()
            self._empty(wish, evictions, followed)
        finally:
            followed.stop()

    def _empty(self, wish: Wish, evictions: Evictions, followed: NodeUsers) -> None:
        """Wait for jobs, evict, wait for claims.

        Whether a budget stands against an eviction is told by its answer from now on: while pods go, budgets that are
        counted anew look for a moment as if they could never give way.
        """
        now = self._clock()
        # A fence that stood before us has settled long ago.
        progress = Progress(now, now if self.done.fences else now - wish.settle)
        end = now + wish.jobs + wish.pods + wish.claims
        while True:
            try:
                looks = followed.looks()
                progress, wanted = draining.advance(progress, looks, wish, self._clock())
                if progress.phase is Phase.DONE:
                    # What was heard may be late; this answer is not.
                    looks = rdma_users.look(self._cluster, self._names, self._scope, budgets=False)
                    progress, wanted = draining.advance(progress, looks, wish, self._clock())
                    if progress.phase is Phase.DONE:
                        return
            except RdmaError as error:
                if not error.code.startswith("kube_"):
                    raise draining.refused(error, evictions.reasons) from error
                if not error.retryable or self._clock() >= end:
                    raise
                self._sleep(_PAUSE)
                continue
            self._tell(draining.standing(progress, looks, wish))
            evictions.ask(wanted)
            _require_none_failed(evictions)
            pause = min(draining.pause(progress, wish, self._clock()), evictions.due())
            if followed.blind:
                self._sleep(max(_PAUSE, pause))
            else:
                followed.wait(pause)

    # --- fences ------------------------------------------------------------------------------------------------------

    def put_up(self) -> None:
        """Fence the nodes and leave their pods alone."""
        nodes = self.done.nodes = rdma_users.nodes(self._cluster, self._names)
        self._fence(nodes, self._group_version() if self._kind == fence.RULE else "")

    def take_down(self) -> None:
        """Take our fences away, and nobody else's: cordons with our mark, and our rules."""
        nodes = self.done.nodes = rdma_users.nodes(self._cluster, self._names)
        for name in self._names:
            if self._change(nodes[name], fence.uncordon):
                self.done.fences[name] = fence.CORDON
        if not self._rules_served():
            return
        for name in self._names:
            if self._cluster.delete(self._rule(name, self._group_version()), dry_run=self._dry_run):
                self.done.fences[name] = fence.RULE

    def try_out(self) -> None:
        """Let the API tell what a rule would hit: a rule without effect is made for each node, and removed again."""
        rdma_users.nodes(self._cluster, self._names)
        group_version = self._group_version()
        for name in self._names:
            self.done.hit[name] = self._try(self._rule(name, group_version, fence.NO_EFFECT, "rdma-try-"))

    def _try(self, rule: dict[str, Any]) -> str:
        if self._dry_run:
            self._cluster.apply(rule, dry_run=True)
            return ""
        path = self._cluster.path_of(rule)
        try:
            self._cluster.apply(rule)
            end = self._clock() + _TOLD
            self._tell(
                "waiting at most %g s for what the API tells of the rule %s"
                % (_TOLD, rule["metadata"]["name"])
            )
            while True:
                said = fence.told(self._cluster.get(path))
                if said or self._clock() >= end:
                    return said
                self._sleep(0.5)
        finally:
            self._cluster.delete(rule)

    def _fence(self, nodes: dict[str, dict[str, Any]], group_version: str) -> None:
        for name in self._names:
            if self._kind == fence.CORDON and self._change(nodes[name], fence.cordon):
                self.done.fences[name] = fence.CORDON
            if self._kind == fence.RULE and self._make(self._rule(name, group_version)):
                self.done.fences[name] = fence.RULE

    def _change(
        self, node: dict[str, Any], decide: Callable[[dict[str, Any]], Optional[dict[str, Any]]]
    ) -> bool:
        """Patch a node; one that somebody else has changed meanwhile is read again and decided anew."""
        path = _path(node["metadata"]["name"])
        query = {"fieldManager": "rdma.k8s", **({"dryRun": "All"} if self._dry_run else {})}
        lost = False  # whether the answer to a patch is not known, so that it may have been made
        for attempt in range(1, _ATTEMPTS + 1):
            patch = decide(node)
            if patch is None:
                return lost
            try:
                self._cluster.send("PATCH", path, patch, "application/merge-patch+json", **query)
            except RdmaError as error:
                if not error.retryable or attempt == _ATTEMPTS:
                    raise
                lost = lost or error.code != "kube_conflict"
                self._sleep(_PAUSE * (attempt - 1))
                node = self._cluster.get(path)
            else:
                return True
        return False

    def _make(self, rule: dict[str, Any]) -> bool:
        found = self._cluster.find(self._cluster.path_of(rule))
        if mapping(found, "spec", "taint").get("effect") == fence.NO_SCHEDULE:
            return False
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                self._cluster.apply(rule, force=True, dry_run=self._dry_run)
                break
            except RdmaError as error:
                if not error.retryable or attempt == _ATTEMPTS:
                    raise
                self._sleep(_PAUSE * attempt)
        return True

    def _rule(self, node: str, group_version: str, *more: str) -> dict[str, Any]:
        return fence.rule(node, self._scope.driver, group_version, *more)

    def _rules_served(self) -> str:
        """The version in which the API serves rules, the preferred one; empty: it serves none."""
        versions = (
            resource.group_version
            for resource in self._cluster.resources("/apis")
            if resource.kind == fence.RULE_KIND and resource.group_version.startswith(fence.RULE_GROUP + "/")
        )
        return next(versions, "")

    def _group_version(self) -> str:
        found = self._rules_served()
        if not found:
            raise RdmaError(
                "taint_rules_not_served",
                "The API server %s serves no DeviceTaintRule, so devices cannot be fenced."
                % self._cluster.server,
                hint="Fence the nodes by a cordon, or switch on the feature DRADeviceTaintRules.",
            )
        return found


def _require_none_failed(evictions: Evictions) -> None:
    if not evictions.failed:
        return
    found = [
        "%s/%s: %s" % (user.namespace, user.name, told.reason) for user, told in evictions.failed.values()
    ]
    raise RdmaError(
        "eviction_failed",
        "The API server does not evict %s" % " ".join(found[:8]),
        hint="Trying again does not help. Mend that, and start again. The fence stays.",
        pods=[
            {"namespace": user.namespace, "name": user.name, "uid": user.uid, "reason": told.reason}
            for user, told in evictions.failed.values()
        ],
    )


def _path(node: str) -> str:
    return "%s/%s" % (NODES, quote(node, safe=""))
