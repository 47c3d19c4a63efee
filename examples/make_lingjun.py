# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Write the example of a Lingjun cluster to ``examples/lingjun/``: one file a node and one for the cluster.

Made, not recorded, as the example fleet is: the same bytes each time. What is wrong stands in ``lingjun/README.md``.

Usage: python examples/make_lingjun.py [DIRECTORY]
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests" / "support"))

import paths  # noqa: E402

paths.make_importable()

from ansible_collections.rdma.k8s.plugins.module_utils.core.checks.judge import NodeInput  # noqa: E402
from ansible_collections.rdma.k8s.plugins.module_utils.core.cluster_snapshot import (  # noqa: E402
    ClusterSnapshot,
)
from ansible_collections.rdma.k8s.plugins.module_utils.core.snapshot import (  # noqa: E402
    NodeSnapshot,
    RdmaSystem,
)
from ansible_collections.rdma.k8s.tests.support import fleet, lingjun, recordings  # noqa: E402

COUNT = 6
LOST = lingjun.name_of(5)
CRASHING = lingjun.name_of(4)


def exclusive_mode(node: NodeSnapshot) -> NodeSnapshot:
    """Somebody switched the RDMA subsystem, and the plugin does not start (A97)."""
    return replace(node, rdma=RdmaSystem("exclusive", "N", True))


def nodes() -> list[NodeInput]:
    """The Lingjun nodes, by name."""
    found = [lingjun.node(number) for number in range(COUNT - 1)]
    found[1] = fleet.edit_link(found[1], "bond2", addresses=("fe80::ba3f:d2ff:fe01:3/64",))
    found[2] = fleet.edit_link(found[2], "reth3", operstate="down")
    found[3] = replace(found[3], devices=())
    found[4] = exclusive_mode(found[4])
    inputs = [NodeInput(snapshot.name, snapshot) for snapshot in found]
    inputs.append(NodeInput(LOST, reason="ssh: connect to host 10.20.0.15 port 22: connection timed out"))
    return inputs


def cluster() -> ClusterSnapshot:
    """Their cluster: the plugin ends again and again on one node, which therefore has no tokens."""
    found = lingjun.cluster(*[lingjun.name_of(number) for number in range(COUNT)])
    trouble = "CrashLoopBackOff, last Error, exit code 1"
    for edit in (
        lingjun.edit_pod(CRASHING, ready=False, restarts=41, trouble=trouble),
        lingjun.edit_plugin(ready=COUNT - 1, available=COUNT - 1),
        lingjun.edit_amounts(CRASHING, "", ""),
    ):
        found = edit(found)
    return found


def write(directory: Path) -> list[str]:
    """Write nodes and cluster in the form of a recording; return the names of the files."""
    return recordings.write(directory, nodes(), cluster())


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "lingjun"
    print("%d files in %s" % (len(write(target)), target))  # noqa: T201
