# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Restart Spiderpool's controller where its configuration is newer, and wait for it. Private to rdma.k8s."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..core import standing
from ..core.errors import RdmaError
from ..core.kube.objects import mapping
from ..core.spiderpool import restart
from ..news import silent
from .client import FIELD_MANAGER, Cluster
from .waiting import look_until

PAUSE = 1.0


class Restarter:
    """One Deployment. What was done so far is there also when it fails."""

    def __init__(self, cluster: Cluster, namespace: str, name: str) -> None:
        self._cluster = cluster
        self._path = "/apis/apps/v1/namespaces/%s/deployments/%s" % (namespace, name)
        self._core = "/api/v1/namespaces/%s" % namespace
        self._called = "%s/%s" % (namespace, name)
        self.result: dict[str, Any] = {
            "changed": False,
            "configured_at": "",
            "configuration": [],
            "older": [],
            "waited": 0.0,
            "actions": [],
        }
        self.marks = ("", "")
        """The annotation before and after."""

    def run(self, timeout: float, dry_run: bool, tell: Callable[[str], None] = silent) -> None:
        """Look, restart when that is wanted, wait.

        :param timeout: seconds for all pods to be new and available.
        :param tell: takes what is waited for, after each look that is not the last one.
        :raises RdmaError: ``spiderpool_controller_late``, or one of the codes ``kube_...``.
        """
        found = self._look()
        self.result.update(configured_at=found.changed_at, older=list(found.older))
        self.marks = (found.mark, found.mark)
        if not found.older:
            return
        if found.wants_restart:
            query = {"dryRun": "All"} if dry_run else {}
            body = restart.patch(found.changed_at)
            self._cluster.send(
                "PATCH", self._path, body, "application/merge-patch+json", fieldManager=FIELD_MANAGER, **query
            )
            self.marks = (found.mark, found.changed_at)
            self.result.update(changed=True, actions=["restart Deployment %s" % self._called])
        if dry_run:
            return
        found, waited = look_until(
            lambda seen: seen.is_current,
            self._look,
            timeout,
            PAUSE,
            lambda seen: tell(standing.waiting(timeout, _lacking(seen))),
        )
        self.result["waited"] = round(waited, 1)
        if not found.is_current:
            raise RdmaError(
                "spiderpool_controller_late",
                "Deployment %s was to be new and available within %g s: %s."
                % (self._called, timeout, "; ".join(_lacking(found))),
                hint="Look at its pods and at its events; while none is available, the webhook lets no pod be made.",
            )

    def _look(self) -> restart.Standing:
        deployment = self._cluster.get(self._path)
        names = restart.config_maps(deployment)
        self.result["configuration"] = names
        maps = [self._cluster.find("%s/configmaps/%s" % (self._core, name)) for name in names]
        labels = mapping(deployment, "spec", "selector", "matchLabels")
        selector = ",".join(["%s=%s" % pair for pair in sorted(labels.items())])
        pods = list(self._cluster.items(self._core + "/pods", labelSelector=selector))
        return restart.look(deployment, [entry for entry in maps if entry is not None], pods)


def _lacking(found: restart.Standing) -> Sequence[str]:
    return found.problems or ("%s are older than the configuration" % ", ".join(found.older),)
