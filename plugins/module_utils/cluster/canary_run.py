# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Run a canary in a cluster, and take it away again. Private to rdma.k8s: it may change with any release."""

from __future__ import annotations

from typing import Any, Callable, Optional
from urllib.parse import quote

from ..core.errors import RdmaError
from ..core.kube.objects import mapping, text
from ..core.oke import canary
from ..core.oke.canary import Seen, Trial
from . import objects, waiting
from .client import Cluster

_PAUSE = 2.0
_LISTS = {
    "Pod": "/api/v1/namespaces/%s/pods",
    "ResourceClaim": "/apis/resource.k8s.io/v1/namespaces/%s/resourceclaims",
}


def run(cluster: Cluster, trial: Trial, timeout: float) -> Seen:
    """Claim the NIC, look from inside and outside, reach the peer if there is one, remove everything.

    :param timeout: seconds that the pod may take to run or to be refused; its peer, the witness, and the removal, get
        as much each.
    :raises RdmaError: an error of the client, or ``canary_stays``
    """
    namespace, other = trial.namespace, trial.other
    suffixes = (trial.suffix,) if other is None else (trial.suffix, other.suffix)
    remove(cluster, namespace, timeout, *suffixes)
    try:
        met, claimed, met_refusal = (None, False, "") if other is None else _meet(cluster, other, timeout)
        address = text((met or {}).get("address"))
        _make(cluster, canary.claim(trial), canary.pod(trial, address))
        running, child, refused = _outcome(cluster, trial, timeout)
        _make(cluster, canary.witness(trial))
        parent = _wait(timeout, lambda: canary.told(_pod(cluster, trial.witness, namespace)))
        if not running:  # it may have been served late
            running, child, _again = _outcome(cluster, trial, 0)
        reached = None
        if running and address:
            limit = canary.REACH_SECONDS + timeout
            reached = _wait(
                limit, lambda: canary.told(_pod(cluster, trial.name, namespace), container="reach")
            )
        return Seen(running, child, parent, refused, met, claimed, met_refusal, reached)
    finally:
        remove(cluster, namespace, timeout, *suffixes)


def _make(cluster: Cluster, *documents: dict[str, Any]) -> None:
    for document in documents:  # none of them is there: what was left has just been removed
        cluster.apply(document)


def _meet(cluster: Cluster, other: Trial, timeout: float) -> tuple[Optional[dict[str, Any]], bool, str]:
    """Let the canary stand that is to be reached: its child, whether it got its NIC, and how its claim was refused."""
    wanted = canary.claim(other)
    _make(cluster, wanted, canary.pod(other))
    _running, child, refused = _outcome(cluster, other, timeout)
    claimed = child is not None or canary.claimed(objects.find(cluster, wanted))
    return child, claimed, refused


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


def remove(cluster: Cluster, namespace: str, timeout: float, *suffixes: str) -> None:
    """Take away what canaries left, and wait until it is gone: all pods, then the claims of those that have gone.

    :param suffixes: of the names of their objects; none: the canary without one.
    :raises RdmaError: ``canary_stays``, or an error of the client
    """
    documents = [found for suffix in suffixes or ("",) for found in canary.removable(namespace, suffix)]
    stays: list[dict[str, Any]] = []
    for kind in ("Pod", "ResourceClaim"):
        held = {found["metadata"]["name"] for found in stays}
        wanted = [
            found for found in documents if found["kind"] == kind and found["metadata"]["name"] not in held
        ]
        stays += _removed(cluster, namespace, kind, wanted, max(timeout, objects.PATIENCE))
    if stays:
        metadata = stays[0]["metadata"]
        raise RdmaError(
            "canary_stays",
            "%s %s/%s was asked to go and is still there."
            % (stays[0]["kind"], metadata["namespace"], metadata["name"]),
            hint="Look at its events: a pod whose claim cannot be released does not end.",
            object=metadata["name"],
        )


def _removed(
    cluster: Cluster, namespace: str, kind: str, documents: list[dict[str, Any]], timeout: float
) -> list[dict[str, Any]]:
    """Remove objects of one kind, and those that did not go. One list tells of all of them."""
    path = _LISTS[kind] % quote(namespace, safe="")

    def there() -> list[dict[str, Any]]:
        found = cluster.items(path, labelSelector=canary.SELECTOR)
        names = {text(mapping(entry, "metadata").get("name")) for entry in found}
        return [document for document in documents if document["metadata"]["name"] in names]

    left = there()
    for document in left:
        cluster.delete(document)
    if not left:
        return []
    return waiting.look_until(lambda found: not found, there, timeout, _PAUSE)[0]


def _pod(cluster: Cluster, name: str, namespace: str) -> Optional[dict[str, Any]]:
    return objects.find(
        cluster, {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": namespace}}
    )


def _wait(timeout: float, look: Callable[[], Any]) -> Any:
    """What ``look`` gives at last; ``None`` when it gave nothing in time."""
    return waiting.look_until(lambda found: found is not None, look, timeout, _PAUSE)[0]
