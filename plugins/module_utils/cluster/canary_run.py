# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Run a canary in a cluster, and take it away again. Private to rdma.k8s: it may change with any release."""

from __future__ import annotations

from typing import Any, Callable, Optional

from ..core.errors import RdmaError
from ..core.kube.objects import mapping, text
from ..core.oke import canary
from ..core.oke.canary import Seen, Trial
from . import objects, waiting
from .client import Cluster

_PAUSE = 2.0


def run(cluster: Cluster, trial: Trial, timeout: float) -> Seen:
    """Claim the NIC, look from inside and outside, remove everything.

    :param timeout: seconds that the pod may take to run or to be refused; the witness, and the removal, get as much.
    :raises RdmaError: an error of the client, or ``canary_stays``
    """
    namespace = trial.namespace
    remove(cluster, namespace, timeout, trial.suffix)
    try:
        objects.present(cluster, [canary.claim(trial), canary.pod(trial)])
        running, child, refused = _outcome(cluster, trial, timeout)
        objects.present(cluster, [canary.witness(trial)])
        parent = _wait(timeout, lambda: canary.told(_pod(cluster, trial.witness, namespace)))
        if not running:  # it may have been served late
            running, child, _again = _outcome(cluster, trial, 0)
        return Seen(running, child, parent, refused)
    finally:
        remove(cluster, namespace, timeout, trial.suffix)


def _outcome(cluster: Cluster, trial: Trial, timeout: float) -> tuple[bool, Optional[dict[str, Any]], str]:
    """Whether the pod runs, what it has, and how its claim was refused."""
    seen: dict[str, Any] = {"refusal": ""}

    def look() -> Optional[bool]:
        pod = _pod(cluster, trial.name, trial.namespace)
        seen["child"] = canary.told(pod, init=True)
        if seen["child"] is not None:
            return True
        uid = text(mapping(pod, "metadata").get("uid"))
        if not uid:
            return None
        events = cluster.items(
            "/api/v1/namespaces/%s/events" % trial.namespace,
            # By its UID: the refusal of an earlier canary of this name says nothing about this one.
            fieldSelector="involvedObject.uid=%s" % uid,
        )
        seen["refusal"] = canary.refusal(list(events)) or seen["refusal"]
        # A refusal may heal (F37): only who expects one takes the first for the last word.
        return True if seen["refusal"] and trial.expect == canary.REFUSED else None

    _wait(timeout, look)
    return seen["child"] is not None, seen["child"], str(seen["refusal"])


def remove(cluster: Cluster, namespace: str, timeout: float, suffix: str = "") -> None:
    """Take away what a canary left, and wait until it is gone.

    :param suffix: of the names of its objects.
    :raises RdmaError: ``canary_stays``, or an error of the client
    """
    for document in canary.removable(namespace, suffix):
        if not cluster.delete(document):
            continue

        def gone(document: dict[str, Any] = document) -> Optional[bool]:
            return True if objects.find(cluster, document) is None else None

        if not _wait(max(timeout, objects.PATIENCE), gone):
            raise RdmaError(
                "canary_stays",
                "%s %s/%s was asked to go and is still there."
                % (document["kind"], namespace, document["metadata"]["name"]),
                hint="Look at its events: a pod whose claim cannot be released does not end.",
                object=document["metadata"]["name"],
            )


def _pod(cluster: Cluster, name: str, namespace: str) -> Optional[dict[str, Any]]:
    return objects.find(
        cluster, {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": namespace}}
    )


def _wait(timeout: float, look: Callable[[], Any]) -> Any:
    """What ``look`` gives at last; ``None`` when it gave nothing in time."""
    return waiting.look_until(lambda found: found is not None, look, timeout, _PAUSE)[0]
