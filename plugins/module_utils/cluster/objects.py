# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Objects as somebody wants them to be: there, or not there. Private to rdma.k8s: it may change with any release.

An object is ours when our field manager applied it. An object of somebody else that has our name is neither changed
nor removed unless the caller insists.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Callable, Optional

from ..core.errors import RdmaError
from ..core.kube import field_sets, objects as kube
from .client import FIELD_MANAGER, Cluster

PATIENCE = 30.0
"""Seconds within which an object that was asked to go must be gone."""

_PAUSE = 0.2
_OF_SERVER = ("creationTimestamp", "generation", "managedFields", "resourceVersion", "selfLink", "uid")


@dataclass(frozen=True)
class Outcome:
    """What became of one object.

    :param reference: the object, such as ``DeviceClass rdma``.
    :param action: ``create``, ``update``, ``replace``, ``delete``, or empty when nothing changed.
    :param before: the object as it was, without what the server adds; ``None``: it was not there.
    :param after: the object as it is (in a dry run: as it would be); ``None``: it is not there.
    """

    reference: str
    action: str
    before: Optional[dict[str, Any]]
    after: Optional[dict[str, Any]]


def present(
    cluster: Cluster,
    documents: Iterable[dict[str, Any]],
    *,
    dry_run: bool = False,
    force: bool = False,
    replace: bool = False,
    done: Optional[list[Outcome]] = None,
) -> list[Outcome]:
    """Make the objects be as the documents say, by server-side apply; what is so already is not sent again.

    :param dry_run: the server checks everything and stores nothing.
    :param force: take over an object that somebody else made, and fields that somebody else holds.
    :param replace: remove an object and make it anew when the API server lets no one change it.
    :param done: what was done is put here one by one, so that it is known when a later object fails.
    :raises RdmaError: ``object_foreign``, ``object_immutable``, ``object_in_use``, ``object_stays``, or an error of the
        client. Objects before the one of the error are changed already.
    """
    outcomes = [] if done is None else done
    for document in documents:
        outcomes.append(_applied(cluster, document, dry_run, force, replace))
    return outcomes


def absent(
    cluster: Cluster,
    documents: Iterable[dict[str, Any]],
    *,
    dry_run: bool = False,
    force: bool = False,
    done: Optional[list[Outcome]] = None,
) -> list[Outcome]:
    """Remove the objects that the documents name, the last one first, and wait until they are gone.

    :param done: as for :func:`present`.
    :raises RdmaError: ``object_foreign``, ``object_in_use``, ``object_stays``, or an error of the client.
    """
    outcomes = [] if done is None else done
    for document in reversed(list(documents)):
        outcomes.append(_removed(cluster, document, dry_run, force))
    return outcomes


def placed(cluster: Cluster, documents: Iterable[dict[str, Any]], namespace: str) -> list[dict[str, Any]]:
    """The documents, those of a kind that belongs to a namespace and that name none in the given one.

    :raises RdmaError: ``kube_not_served``, or an error of the client.
    """
    found = []
    for document in documents:
        metadata = document["metadata"]
        if not metadata.get("namespace") and cluster.resource_of(document).namespaced:
            found.append({**document, "metadata": {**metadata, "namespace": namespace}})
        else:
            found.append(document)
    return found


def find(cluster: Cluster, document: dict[str, Any]) -> Optional[dict[str, Any]]:
    """The live object that a document names; ``None``: there is none."""
    return cluster.find(cluster.path_of(document))


def clean(live: Optional[dict[str, Any]]) -> Optional[dict[str, Any]]:
    """A live object without its status and what the server adds to the metadata."""
    if live is None:
        return None
    content = copy.deepcopy({key: value for key, value in live.items() if key != "status"})
    for key in _OF_SERVER:
        content.get("metadata", {}).pop(key, None)
    return content


def is_ours(live: dict[str, Any]) -> bool:
    """Our field manager applied the object."""
    return any(
        entry.get("manager") == FIELD_MANAGER and entry.get("operation") == "Apply"
        for entry in _managed(live)
    )


def _managed(live: dict[str, Any]) -> list[dict[str, Any]]:
    """Who holds fields of the object itself, without its status."""
    found = live.get("metadata", {}).get("managedFields") or []
    return [entry for entry in found if not entry.get("subresource")]


def _applied(
    cluster: Cluster, document: dict[str, Any], dry_run: bool, force: bool, replace: bool
) -> Outcome:
    reference = kube.ref(document)
    before = find(cluster, document)
    if before is not None:
        _require_ours(before, reference, force)
        if field_sets.is_applied(document, before, FIELD_MANAGER):
            return Outcome(reference, "", clean(before), clean(before))
    try:
        after = _apply(cluster, document, dry_run, force)
    except RdmaError as error:
        if before is None or not _is_immutable(error):
            raise
        if not replace:
            raise RdmaError(
                "object_immutable",
                "%s exists with another content, and the API server lets no one change it." % reference,
                hint="Give the new one another name, or set replace to remove the old one first; pods that run keep "
                "the claims that they have.",
                object=reference,
            ) from error
        return _replaced(cluster, document, before, dry_run)
    if before is None:
        return Outcome(reference, "create", None, clean(after))
    same = _version(before) == _version(after) and not dry_run
    old, new = clean(before), clean(after)
    return Outcome(
        reference, "" if same or (old == new and is_ours(before) == is_ours(after)) else "update", old, new
    )


def _replaced(cluster: Cluster, document: dict[str, Any], before: dict[str, Any], dry_run: bool) -> Outcome:
    reference = kube.ref(document)
    _require_unused(before, reference)
    # The new one is checked by the server under a free name before the old one goes.
    trial = copy.deepcopy(document)
    trial["metadata"]["name"] = "%s-new" % document["metadata"]["name"][:240]
    after = _apply(cluster, trial, True, True)
    after["metadata"]["name"] = document["metadata"]["name"]
    if not dry_run:
        cluster.delete(before)
        _wait_until_gone(cluster, before, reference)
        after = _apply(cluster, document, False, True)
    return Outcome(reference, "replace", clean(before), clean(after))


def _removed(cluster: Cluster, document: dict[str, Any], dry_run: bool, force: bool) -> Outcome:
    reference = kube.ref(document)
    before = find(cluster, document)
    if before is None:
        return Outcome(reference, "", None, None)
    _require_ours(before, reference, force)
    _require_unused(before, reference)
    there = cluster.delete(before, dry_run=dry_run)
    if there and not dry_run:
        _wait_until_gone(cluster, before, reference)
    return Outcome(reference, "delete" if there else "", clean(before), None)


def _wait_until_gone(cluster: Cluster, before: dict[str, Any], reference: str) -> None:
    """An object with finalizers stays until whoever set them takes them away."""
    uid = before["metadata"].get("uid")
    end = time.monotonic() + PATIENCE
    while True:
        live = find(cluster, before)
        if live is None or live["metadata"].get("uid") != uid:
            return
        if time.monotonic() > end:
            finalizers = live["metadata"].get("finalizers") or []
            raise RdmaError(
                "object_stays",
                "%s was asked to go and is still there after %g seconds; its finalizers are %s."
                % (reference, PATIENCE, ", ".join(finalizers) or "none"),
                hint="Look why their owners do not take them away.",
                object=reference,
                finalizers=finalizers,
            )
        time.sleep(_PAUSE)


def _apply(cluster: Cluster, document: dict[str, Any], dry_run: bool, force: bool) -> dict[str, Any]:
    return cluster.apply(document, field_manager=FIELD_MANAGER, force=force, dry_run=dry_run)


def _version(live: dict[str, Any]) -> str:
    return str(live.get("metadata", {}).get("resourceVersion", ""))


def _require_ours(live: dict[str, Any], reference: str, force: bool) -> None:
    if force or is_ours(live):
        return
    others = sorted({str(entry.get("manager")) for entry in _managed(live)}) or ["somebody"]
    raise RdmaError(
        "object_foreign",
        "%s exists, and it was made by %s, not by %s." % (reference, " and ".join(others), FIELD_MANAGER),
        hint="Give yours another name, or set force to take it over.",
        object=reference,
        managers=others,
    )


def _require_unused(live: dict[str, Any], reference: str) -> None:
    users = [entry.get("name", "") for entry in (live.get("status") or {}).get("reservedFor") or []]
    if users:
        raise RdmaError(
            "object_in_use",
            "%s is in use by %s." % (reference, ", ".join(users)),
            hint="End what uses it first.",
            object=reference,
            users=users,
        )


def _is_immutable(error: RdmaError) -> bool:
    fields = error.details.get("fields") or ()  # the message itself may be cut
    return error.details.get("status") == 422 and any(text.endswith("field is immutable") for text in fields)


def changed(outcomes: Iterable[Outcome]) -> bool:
    """At least one object is not as it was."""
    return any(outcome.action for outcome in outcomes)


def diff(outcomes: Iterable[Outcome], write: Callable[[list[dict[str, Any]]], str]) -> list[dict[str, Any]]:
    """What changed, for Ansible: one entry for each object that is not as it was.

    :param write: a function that writes documents as text.
    """
    return [
        {
            "before_header": outcome.reference,
            "after_header": outcome.reference,
            "before": write([outcome.before]) if outcome.before else "",
            "after": write([outcome.after]) if outcome.after else "",
        }
        for outcome in outcomes
        if outcome.action
    ]
