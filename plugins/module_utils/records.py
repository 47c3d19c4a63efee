# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Recorded snapshots: one file per node in a directory. Private to rdma.k8s: it may change with any release.

A file ``NAME.json`` holds a NodeSnapshot, or ``{"schema_version": 1, "name": NAME, "unreachable": REASON}`` for a node
that gave none, so that a recording shows the whole fleet. Beside the snapshot's own fields, ``inventory`` keeps what
the inventory said of the node: ``child_range`` and ``network``. ``cluster.json`` can hold a ClusterSnapshot.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, NamedTuple, Optional

from .core import json_text
from .core.checks.judge import NodeInput
from .core.cluster_snapshot import KIND as CLUSTER_KIND, ClusterSnapshot
from .core.errors import RdmaError
from .core.kube.objects import entries, mapping
from .core.redact import redacted
from .core.snapshot import SCHEMA_VERSION, NodeSnapshot
from .core.spiderpool.pod_fabric import CELL
from .report_files import write_files

SUFFIX = ".json"
CLUSTER_FILE = "cluster.json"
"""The file with the cluster; one of that name that holds a snapshot of a node is one of a node."""


class Recording(NamedTuple):
    """What was recorded: the nodes, and the cluster when its API was read."""

    nodes: list[NodeInput]
    cluster: Optional[ClusterSnapshot] = None


def load(path: str) -> list[NodeInput]:
    """The nodes of :func:`recording`."""
    return recording(path).nodes


def load_file(path: str) -> NodeInput:
    """One recorded node. Errors as for :func:`recording`."""
    return node_input(_read(path), path)


def recording(path: str) -> Recording:
    """All recorded nodes of a directory by name, and its cluster; or the one of a file.

    :raises RdmaError: ``records_unreadable``, ``records_empty``, ``record_malformed`` or an error of the snapshot,
        always with the file's name.
    """
    try:
        names = sorted(os.listdir(path)) if os.path.isdir(path) else [""]
    except OSError as error:
        raise _unreadable(path, error) from error
    files = [
        os.path.join(path, name) if name else path for name in names if not name or name.endswith(SUFFIX)
    ]
    if not files:
        raise RdmaError(
            "records_empty",
            "The directory %s holds no recorded snapshot (NAME%s)." % (path, SUFFIX),
            hint="Record a fleet with 'ansible-playbook rdma.k8s.preflight -e record=DIR'.",
            path=path,
        )
    nodes: list[NodeInput] = []
    cluster: Optional[ClusterSnapshot] = None
    for file in files:
        document = _read(file)
        if isinstance(document, dict) and document.get("kind") == CLUSTER_KIND:
            if len(files) > 1 and os.path.basename(file) != CLUSTER_FILE:
                raise RdmaError(
                    "record_malformed",
                    "%s is a snapshot of a cluster, among those of nodes." % file,
                    hint="Name it %s: that is the cluster which is judged with the nodes." % CLUSTER_FILE,
                    path=file,
                )
            cluster = cluster_from(document, file)
        else:
            nodes.append(node_input(document, file))
    return Recording(nodes, cluster)


def load_cluster(path: str) -> ClusterSnapshot:
    """The snapshot of a cluster in a file. Errors as for :func:`recording`."""
    return cluster_from(_read(path), path)


def cluster_from(document: Any, source: str) -> ClusterSnapshot:
    """The snapshot of a cluster from its document; ``source`` names it in error messages."""
    try:
        return ClusterSnapshot.from_dict(document)
    except RdmaError as error:
        raise _about(error, source) from error


def with_pods(cluster: Optional[ClusterSnapshot], told: Any) -> ClusterSnapshot:
    """A cluster with its pods that were looked into; ``None``: nothing else is known of it.

    :param told: what the modules that look into pods returned.
    :raises RdmaError: ``document_malformed``.
    """
    held = told.get("pods") if isinstance(told, dict) else None
    tests = _tests(told)
    looks = [
        {
            "namespace": entry.get("namespace"),
            "name": entry.get("name"),
            "node": entry.get("node"),
            "privileged": entry.get("privileged"),
            "reason": entry.get("reason"),
            "answers": [
                {key: answer.get(key) for key in ("predicate", "status", "message")}
                for _position, answer in entries(entry.get("predicates"))
            ],
            "tests": tests.get("%s/%s" % (entry.get("namespace"), entry.get("name")), []),
        }
        for _at, entry in entries(held)
    ]
    if not looks:
        raise RdmaError(
            "document_malformed",
            "The option 'pods' has no pods that were looked into.",
            hint="Give what pod_rdma_info or pod_fabric_probe registered.",
        )
    found = ClusterSnapshot.from_dict({"kind": CLUSTER_KIND, "pod_looks": looks}).pod_looks
    return replace(cluster or ClusterSnapshot(), pod_looks=found)


def _tests(told: Any) -> dict[str, list[dict[str, Any]]]:
    """The tests in the matrix of pod_fabric_probe, by the pod from which they went out."""
    found: dict[str, list[dict[str, Any]]] = {}
    for _at, rail in entries(mapping(told, "fabric").get("rails")):
        for source, cells in mapping(rail, "cells").items():
            for target, cell in mapping(cells).items():
                kept = {key: mapping(cell).get(key) for key in ("status", "reason", *CELL)}
                given = {key: value for key, value in kept.items() if value is not None}
                found.setdefault(source, []).append({"rail": rail.get("rail"), "target": target, **given})
    return found


def _read(path: str) -> Any:
    try:
        with open(path, encoding="utf-8") as stream:
            text = stream.read()
    except (OSError, UnicodeDecodeError) as error:
        raise _unreadable(path, error) from error
    try:
        return json_text.loads(text)
    except ValueError as error:
        raise RdmaError("record_malformed", "%s is not JSON: %s." % (path, error), path=path) from error


def _about(error: RdmaError, source: str) -> RdmaError:
    return RdmaError(
        error.code,
        "%s: %s" % (source, error.message),
        hint=error.hint,
        **{**error.details, "path": source},
    )


def node_input(document: Any, source: str) -> NodeInput:
    """A recorded node from its document; ``source`` names it in error messages."""
    if isinstance(document, dict) and "unreachable" in document:
        name, reason = document.get("name"), document["unreachable"]
        if not isinstance(name, str) or not name or not isinstance(reason, str):
            raise RdmaError(
                "record_malformed",
                "%s: 'name' and 'unreachable' must be texts." % source,
                path=source,
            )
        return NodeInput(name, reason=reason or "The node could not be reached.")
    try:
        snapshot = NodeSnapshot.from_dict(document)
    except RdmaError as error:
        raise _about(error, source) from error
    if not snapshot.name:
        raise RdmaError("record_malformed", "%s: 'name' must not be empty." % source, path=source)
    inventory = document.get("inventory", {})
    if not isinstance(inventory, dict) or not all(isinstance(text, str) for text in inventory.values()):
        raise RdmaError("record_malformed", "%s: 'inventory' must be a map of texts." % source, path=source)
    return NodeInput(
        snapshot.name, snapshot, "", inventory.get("child_range", ""), inventory.get("network", "")
    )


def save(directory: str, nodes: Iterable[NodeInput], cluster: Optional[ClusterSnapshot] = None) -> list[str]:
    """Record nodes, shortened for sharing (see ``core/redact.py``), one file each, written in one step, mode 0600.
    The cluster has a file of its own.

    :returns: the paths of the files.
    :raises RdmaError: ``record_name`` when the name of a node cannot be a file name, ``report_not_written``.
    """
    files = {file_name(node.name): [json.dumps(document(node), indent=1) + "\n"] for node in nodes}
    if cluster is not None:
        if CLUSTER_FILE in files:
            raise RdmaError(
                "record_name",
                "The node name %r is that of the file of the cluster." % CLUSTER_FILE[: -len(SUFFIX)],
                hint="Record the nodes without the cluster, or give the host another name in the inventory.",
            )
        files[CLUSTER_FILE] = [json.dumps(cluster_document(cluster), separators=(",", ":")) + "\n"]
    return [written.path for written in write_files(directory, files, mode=0o600)]


def file_name(node: str) -> str:
    """The name of the file that records a node.

    :raises RdmaError: ``record_name``.
    """
    if not node or node.startswith(".") or "/" in node or "\0" in node:
        raise RdmaError("record_name", "The node name %r cannot be a file name." % node, node=node)
    return node + SUFFIX


def document(node: NodeInput) -> dict[str, Any]:
    """The JSON data that records a node, shortened for sharing. :func:`node_input` reads it."""
    if node.snapshot is None:
        reason = redacted(node.reason)
        return {"schema_version": SCHEMA_VERSION, "name": node.name, "unreachable": reason}
    recorded: dict[str, Any] = redacted(node.snapshot.to_dict())
    inventory = {"child_range": node.child_range, "network": node.network}
    if any(inventory.values()):
        recorded["inventory"] = redacted({key: text for key, text in inventory.items() if text})
    return recorded


def cluster_document(cluster: ClusterSnapshot) -> dict[str, Any]:
    """The JSON data that records a cluster, shortened for sharing."""
    found: dict[str, Any] = redacted(cluster.to_dict(compact=True))
    return found


def _unreadable(path: str, error: Exception) -> RdmaError:
    reason = getattr(error, "strerror", None) or str(error)
    return RdmaError(
        "records_unreadable",
        "The recorded snapshots in %s cannot be read: %s." % (path, reason),
        hint="Give the directory that preflight recorded, or one file of it.",
        path=path,
    )
