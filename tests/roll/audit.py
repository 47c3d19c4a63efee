# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a controller did, from the audit log of the API server."""

from __future__ import annotations

import json
import os
import threading
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

OURS = "rdma.k8s/"


@dataclass
class Deeds:
    """What was done, counted by the name of the object.

    :param calls: all calls, reads and watches included; renewals of leases are not in the log.
    :param evicted: evictions that were granted, by pod; ``refused``: those that were not.
    :param deleted: pods that were deleted.
    """

    calls: int = 0
    reads: Counter[str] = field(default_factory=Counter)
    writes: Counter[str] = field(default_factory=Counter)
    evicted: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    deleted: Counter[str] = field(default_factory=Counter)
    cordoned: Counter[str] = field(default_factory=Counter)
    uncordoned: Counter[str] = field(default_factory=Counter)
    changed_sets: Counter[str] = field(default_factory=Counter)


class Audit:
    """Reads the log as it grows; entries are kept by where they belong, so that many rolls can be judged."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._log = path.open("rb")
        self._rest = b""
        self._lock = threading.Lock()
        self.entries: list[dict[str, Any]] = []

    def read(self) -> None:
        """Take in what was written since, also when the server began another file meanwhile."""
        with self._lock:  # many rolls are judged at the same time
            self._read()

    def _read(self) -> None:
        while True:
            text = self._rest + self._log.read()
            *lines, self._rest = text.split(b"\n")
            for line in lines:
                self._take(line)
            if os.path.samestat(os.fstat(self._log.fileno()), self._path.stat()):
                return
            self._log.close()
            self._log = self._path.open("rb")

    def _take(self, line: bytes) -> None:
        if OURS.encode() not in line:
            return
        entry = json.loads(line)
        if entry.get("userAgent", "").startswith(OURS) and entry["stage"] != "RequestReceived":
            self.entries.append(entry)

    def deeds(self, since: str, namespace: str = "", nodes: frozenset[str] = frozenset()) -> Deeds:
        """What was done since a time (RFC 3339) in a namespace and to nodes; without both, everywhere."""
        self.read()
        found = Deeds()
        streams = set()
        for entry in self.entries:
            if entry["requestReceivedTimestamp"] < since:
                continue
            where = entry.get("objectRef") or {}
            name, kind = where.get("name", ""), where.get("resource", "")
            mine = name in nodes if kind == "nodes" else where.get("namespace", "") == namespace
            if namespace and not mine:
                continue
            if entry["auditID"] in streams:
                continue  # a watch has two entries, for its begin and its end
            streams.add(entry["auditID"])
            _count(found, entry, where, name, kind)
        return found


def _count(found: Deeds, entry: dict[str, Any], where: dict[str, Any], name: str, kind: str) -> None:
    verb, code = entry["verb"], (entry.get("responseStatus") or {}).get("code", 0)
    granted = 200 <= code < 300
    sub = where.get("subresource", "")
    found.calls += 1
    if verb in ("get", "list", "watch"):
        found.reads[f"{verb} {kind}"] += 1
        return
    found.writes[f"{verb} {kind}/{sub}" if sub else f"{verb} {kind}"] += 1
    if kind == "pods" and sub == "eviction":
        (found.evicted if granted else found.refused)[name] += 1
    elif kind == "pods" and verb == "delete" and granted:
        found.deleted[name] += 1
    elif kind == "daemonsets" and granted:
        found.changed_sets[name] += 1
    elif kind == "nodes" and granted:
        wanted = ((entry.get("requestObject") or {}).get("spec") or {}).get("unschedulable", "")
        if wanted is True:
            found.cordoned[name] += 1
        elif wanted in (False, None):
            found.uncordoned[name] += 1
