# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Snapshots of clusters in files. Private to rdma.k8s: it may change with any release."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Any

from .. import report_files
from ..core.cluster_snapshot import DEFAULT_SUBSETS, KIND, ClusterSnapshot
from . import collect, sources

_TIMES = ("collected_at", "collector")


def read(path: str, name: str = "", subsets: Sequence[str] = DEFAULT_SUBSETS) -> ClusterSnapshot:
    """The snapshot in a file, or one made of the output of ``kubectl get`` in a file or a directory.

    :param name: what the cluster is called, where the snapshot does not say it.
    :raises RdmaError: ``records_unreadable``, ``records_empty``, ``manifest_malformed``, or an error of the snapshot.
    """
    if os.path.isfile(path) and path.endswith(".json"):
        found = sources.read_objects(path)
        if len(found) == 1 and found[0].get("kind") == KIND:
            return ClusterSnapshot.from_dict(found[0])
    return collect.collect(sources.FileSource(path), name, subsets)


def write(path: str, document: dict[str, Any], dry_run: bool = False) -> bool:
    """Write the JSON form of a snapshot in one step, for its owner alone.

    :returns: whether the file had another content before, times and durations aside.
    :raises RdmaError: ``report_not_written``.
    """
    directory, name = os.path.split(os.path.abspath(path))
    changed = _without_times(_content(path)) != _without_times(document)
    text = json.dumps(document, separators=(",", ":"), ensure_ascii=False) + "\n"
    report_files.write_files(directory, {name: [text]}, dry_run, mode=0o600)
    return changed


def _content(path: str) -> Any:
    """The JSON value in a file; ``None`` when there is none."""
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except (OSError, ValueError):
        return None


def _without_times(document: Any) -> Any:
    if not isinstance(document, dict):
        return document
    return {key: value for key, value in document.items() if key not in _TIMES}


def summary(snapshot: ClusterSnapshot) -> dict[str, Any]:
    """How much there is of what; ``None``: not known."""
    nodes, slices, claims = snapshot.nodes, snapshot.slices, snapshot.claims
    return {
        "nodes": None if nodes is None else len(nodes),
        "ready_nodes": None if nodes is None else len([node for node in nodes if node.ready]),
        "slices": None if slices is None else len(slices),
        "devices": None if slices is None else sum([len(entry.devices) for entry in slices]),
        "claims": None if claims is None else len(claims),
        "allocated_claims": None if claims is None else len([claim for claim in claims if claim.allocated]),
        "pod_cidrs": _cidrs(snapshot.pod_cidrs),
        "service_cidrs": _cidrs(snapshot.service_cidrs),
    }


def _cidrs(ranges: Any) -> Any:
    return None if ranges is None else [entry.cidr for entry in ranges]
