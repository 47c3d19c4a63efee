# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a judgement leaves on the nodes of a cluster. Private to rdma.k8s: it may change with any release.

Two labels say what was found and when; a taint keeps pods away from a node that joined and was not judged yet. The
names are public: users select nodes by them.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Optional

from . import finding as model
from .errors import RdmaError
from .report.document import ResultDocument

VERDICT = "rdma.k8s/verdict"
JUDGED = "rdma.k8s/judged"
UNVERIFIED = "rdma.k8s/unverified"
TAINT = {"key": UNVERIFIED, "effect": "NoSchedule"}

GOOD = (model.PASS, model.WARN)
"""Verdicts that let pods in: nothing at or above the threshold failed, and everything critical could be told."""

_TIME = re.compile(r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)Z")


@dataclass(frozen=True)
class Change:
    """A change of one Node object.

    :param patch: a JSON merge patch. It names the version that it was made for when it writes the list of taints,
        which a merge patch can only replace.
    :param actions: what it does, in words.
    :param before: the labels and taints of ours, ``after`` likewise.
    """

    node: str
    patch: dict[str, Any]
    actions: tuple[str, ...]
    before: dict[str, Any]
    after: dict[str, Any]

    @property
    def matters(self) -> bool:
        """Whether more than the time of the judgement is another one."""
        kept = [{**side, "labels": {**side["labels"], JUDGED: ""}} for side in (self.before, self.after)]
        return kept[0] != kept[1]


def verdicts(document: ResultDocument, threshold: str = model.ERROR, strict: bool = False) -> dict[str, str]:
    """The verdict of each node of a result document.

    ``fail``: a check at or above the threshold failed. ``unknown``: the node told nothing, something critical could
    not be told, or anything in strict mode. ``warn``: something else is not right. ``pass``: all is well. Waived
    results do not count.

    :raises RdmaError: ``severity_unknown``.
    """
    found: dict[str, list[model.Finding]] = {row.name: [] for row in document.nodes}
    for entry in document.findings:
        if entry.node in found and entry.waiver is None:
            found[entry.node].append(entry)
    reached = {row.name for row in document.nodes if row.reachable}
    return {
        name: _verdict(entries, threshold, strict) if name in reached and entries else model.UNKNOWN
        for name, entries in found.items()
    }


def _verdict(entries: list[model.Finding], threshold: str, strict: bool) -> str:
    code = model.exit_code(entries, threshold, strict)
    if code == model.EXIT_FAIL:
        return model.FAIL
    dark = any(entry.status == model.UNKNOWN and entry.severity == model.CRITICAL for entry in entries)
    if code == model.EXIT_UNKNOWN or dark:
        return model.UNKNOWN
    loud = any(entry.status in (model.FAIL, model.WARN) for entry in entries)
    return model.WARN if loud else model.PASS


def label_time(moment: str) -> str:
    """A time as a label may hold it: ``2026-03-02T09:30:00Z`` becomes ``20260302T093000Z``.

    :raises RdmaError: ``time_malformed``.
    """
    parts = _TIME.fullmatch(moment)
    if parts is None:
        raise RdmaError(
            "time_malformed",
            "The time of the judgement is %r, expected YYYY-MM-DDThh:mm:ssZ." % moment[:60],
            hint="Give a result document that rdma.k8s.validate wrote.",
        )
    return "%s%s%sT%s%s%sZ" % parts.groups()


def mark(node: Mapping[str, Any], verdict: str, judged: str) -> Optional[Change]:
    """Write a verdict on a node, and let pods in when it is a good one; ``None``: it is all there.

    :param node: the Node object as the API gave it.
    :param judged: of :func:`label_time`.
    """
    actions = ["label %s %s" % (_name(node), verdict)]
    taints = None
    if verdict in GOOD and _has_taint(node):
        taints = _other_taints(node)
        actions.append("let pods on %s" % _name(node))
    return _change(node, {VERDICT: verdict, JUDGED: judged}, taints, actions)


def fence(node: Mapping[str, Any]) -> Optional[Change]:
    """Keep pods away from a node that has no verdict yet (decision 30); ``None``: it has one, or the taint."""
    if VERDICT in _labels(node) or _has_taint(node):
        return None
    return _change(node, {}, [*_taints(node), dict(TAINT)], ["keep pods away from %s" % _name(node)])


def clear(node: Mapping[str, Any]) -> Optional[Change]:
    """Take our labels and our taint away; ``None``: there are none."""
    taints = _other_taints(node) if _has_taint(node) else None
    return _change(node, {VERDICT: None, JUDGED: None}, taints, ["forget %s" % _name(node)])


def require_nodes(wanted: Collection[str], found: Collection[str]) -> None:
    """All wanted nodes are in the cluster.

    :raises RdmaError: ``node_not_in_cluster``.
    """
    missing = sorted(set(wanted) - set(found))
    if missing:
        raise RdmaError(
            "node_not_in_cluster",
            "The cluster has no node %s; nothing was changed." % ", ".join(missing[:8]),
            hint="Give the names of the Node objects with node_names, or another kubeconfig or context.",
            nodes=missing,
        )


def _change(
    node: Mapping[str, Any],
    labels: Mapping[str, Optional[str]],
    taints: Optional[list[Any]],
    actions: list[str],
) -> Optional[Change]:
    held = _labels(node)
    new = {key: value for key, value in labels.items() if held.get(key) != value}
    if not new and taints is None:
        return None
    patch: dict[str, Any] = {"metadata": {"labels": new}} if new else {"metadata": {}}
    after = {key: value for key, value in {**_ours(held), **new}.items() if value is not None}
    if taints is not None:
        patch["metadata"]["resourceVersion"] = node["metadata"]["resourceVersion"]
        patch["spec"] = {"taints": taints or None}
    fenced = _has_taint(node) if taints is None else any(_is_ours(taint) for taint in taints)
    return Change(
        _name(node),
        patch,
        tuple(actions),
        {"labels": _ours(held), "unverified": _has_taint(node)},
        {"labels": after, "unverified": fenced},
    )


def _name(node: Mapping[str, Any]) -> str:
    return str(node["metadata"]["name"])


def _labels(node: Mapping[str, Any]) -> dict[str, str]:
    return node["metadata"].get("labels") or {}


def _ours(labels: Mapping[str, str]) -> dict[str, Optional[str]]:
    return {key: labels[key] for key in (VERDICT, JUDGED) if key in labels}


def _taints(node: Mapping[str, Any]) -> list[Any]:
    return (node.get("spec") or {}).get("taints") or []


def _is_ours(taint: Any) -> bool:
    return isinstance(taint, dict) and taint.get("key") == UNVERIFIED


def _has_taint(node: Mapping[str, Any]) -> bool:
    return any(_is_ours(taint) for taint in _taints(node))


def _other_taints(node: Mapping[str, Any]) -> list[Any]:
    return [taint for taint in _taints(node) if not _is_ours(taint)]
