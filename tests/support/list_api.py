# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lists of objects as an API server pages them: what the inventory asks for, for :class:`api_server.ApiServer`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ansible_collections.rdma.k8s.tests.support.api_server import Answer, Request, status

NODES = "/api/v1/nodes"
SLICES = "/apis/resource.k8s.io/v1/resourceslices"
PODS = "/api/v1/namespaces/rdma/pods"


@dataclass
class Lists:
    """The lists by path. A path that is not there does not exist; one in ``forbidden`` may not be read."""

    objects: dict[str, list[dict[str, Any]]] = field(
        default_factory=lambda: {NODES: [], SLICES: [], PODS: []}
    )
    forbidden: set[str] = field(default_factory=set)

    def __call__(self, request: Request) -> Any:
        """One page."""
        if request.path in self.forbidden:
            plural = request.path.rpartition("/")[2]
            return status(403, f'{plural} is forbidden: User "reader" cannot list resource "{plural}"')
        if request.path not in self.objects:
            return status(404, "the server could not find the requested resource")
        wanted = dict(part.split("=") for part in request.query.get("labelSelector", "").split(",") if part)
        found = [
            entry
            for entry in self.objects[request.path]
            if wanted.items() <= (entry["metadata"].get("labels") or {}).items()
        ]
        first = int(request.query.get("continue") or 0)
        end = first + int(request.query.get("limit") or len(found) or 1)
        metadata = {"resourceVersion": "1", **({"continue": str(end)} if end < len(found) else {})}
        return Answer({"kind": "List", "apiVersion": "v1", "metadata": metadata, "items": found[first:end]})
