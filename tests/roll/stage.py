# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The cluster of a run: a control plane of its own, simulated nodes in slots, and everything that watches them."""

from __future__ import annotations

import contextlib
import ssl
import sys
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from api import Api
from audit import Audit
from recorder import Recorder
from slots import Slot, device_class

from ansible_collections.rdma.k8s.tests.lab import control, lab
from ansible_collections.rdma.k8s.tests.lab.cluster import Cluster
from ansible_collections.rdma.k8s.tests.lab.image import Cache, remove_tree
from ansible_collections.rdma.k8s.tests.lab.progress import Progress

RAILS = 2
"""NICs of a node: as many as it takes to see that all of them are told."""


@dataclass
class Stage:
    """A running cluster.

    :param directory: for files of this run; it vanishes with the cluster.
    """

    cluster: Cluster
    api: Api
    audit: Audit
    recorder: Recorder
    slots: list[Slot]
    directory: Path


@contextlib.contextmanager
def stage(
    slots: int, size: int, *, cpu_pods: bool = True, spare: int = 0, kind: type[Slot] = Slot, grace: int = 20
) -> Iterator[Stage]:
    """Start a cluster with ``slots`` slots of ``size`` nodes, all running, and end it.

    :param spare: more nodes, which belong to no slot.
    :param grace: seconds after which a silent node counts as gone; a fourth of it passes between its signs of life.
    """
    progress = Progress(sys.stderr)
    cache = Cache(lab.default_cache(), progress)
    cluster = Cluster("roll" + uuid.uuid4().hex[:6], cache, progress)
    try:
        cluster.up(
            control.ClusterSpec(simulated=slots * size + spare, simulated_rails=RAILS, node_grace=grace)
        )
        pki = cluster.directory / "pki"
        context = ssl.create_default_context(cafile=str(pki / "ca.crt"))
        context.load_cert_chain(str(pki / "admin.crt"), str(pki / "admin.key"))
        api = Api(cluster.plane().url(), context)
        api.create("/apis/resource.k8s.io/v1/deviceclasses", device_class())
        names = [f"sim-{number:04d}" for number in range(1, slots * size + 1)]
        made = [
            kind(api, number, tuple(names[number * size : (number + 1) * size]), cpu_pods)
            for number in range(slots)
        ]
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(kind.make, made))
        directory = cluster.directory / "cases"
        directory.mkdir(mode=0o700)
        yield Stage(cluster, api, Audit(cluster.directory / "audit.log"), Recorder(api), made, directory)
    finally:
        cluster.down()
        remove_tree(cluster.directory, cache.path)
