# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A real control plane for the tests of what talks to the Kubernetes API: one for the whole run."""

from __future__ import annotations

import sys
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from ansible_collections.rdma.k8s.tests.lab import control, lab
from ansible_collections.rdma.k8s.tests.lab.cluster import Cluster
from ansible_collections.rdma.k8s.tests.lab.image import Cache, remove_tree
from ansible_collections.rdma.k8s.tests.lab.progress import Progress

SIMULATED = 4
RAILS = 16


@dataclass(frozen=True)
class ControlPlane:
    """A running control plane with simulated nodes whose slices DRANET would publish."""

    cluster: Cluster

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig."""
        return self.cluster.kubeconfig

    @property
    def url(self) -> str:
        """Where the API server listens, on loopback."""
        return self.cluster.plane().url()

    def kubectl(self, *words: str, stdin: str | None = None) -> str:
        """What the real kubectl prints; it raises with its words when it fails."""
        return self.cluster.kubectl(*words, stdin=stdin)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the inventory: it wants nodes on which no driver has run, and a simulated one keeps its range."""
    items.sort(key=lambda item: not item.nodeid.split("::")[0].endswith("test_inventory.py"))


@pytest.fixture(scope="session")
def control_plane() -> Iterator[ControlPlane]:
    """Start it, and end it when the last test is over."""
    progress = Progress(sys.stderr)
    cache = Cache(lab.default_cache(), progress)
    cluster = Cluster("api" + uuid.uuid4().hex[:6], cache, progress)
    try:
        cluster.up(control.ClusterSpec(simulated=SIMULATED, simulated_rails=RAILS))
        yield ControlPlane(cluster)
    finally:
        cluster.down()
        remove_tree(cluster.directory, cache.path)
