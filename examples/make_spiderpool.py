# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Write the example of a cluster with Spiderpool to ``examples/spiderpool/``: one file a node, one for the cluster.

Made, not recorded, as the example fleet is: the same bytes each time. What is wrong stands in ``spiderpool/README.md``.

Usage: python examples/make_spiderpool.py [DIRECTORY]
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
    Gpu,
    Imds,
    NodeSnapshot,
    Oca,
    RdmaSystem,
)
from ansible_collections.rdma.k8s.tests.support import fleet, rails, recordings  # noqa: E402

NAMES = ("worker-1", "worker-2", "worker-3", "worker-4", "worker-5")
SHARED, WITHOUT_VFS, LOST = NAMES[1], NAMES[2], NAMES[4]
GPUS = ("0000:0f:00.0", "0000:10:00.0")
"""A GPU beside each rail, below the same PCI bridge."""


def worker(number: int) -> NodeSnapshot:
    """A healthy node with two rails, in a data centre: no cloud answers, and no agent of one is there."""
    found = rails.node(number, NAMES[number])
    for name in fleet.names(found):
        if name not in ("rdma0", "rdma1"):
            found = fleet.drop_nic(found, name)
    gpus = tuple([Gpu(address, "10de:2330", 0, (rails.PLACES[rail],)) for rail, address in enumerate(GPUS)])
    found = fleet.edit_slow(found, gpus=gpus)
    return replace(found, imds=Imds(), oca=Oca("absent", "", "", "", "", {}))


def shared_mode(node: NodeSnapshot) -> NodeSnapshot:
    """The file with the mode went with a new image: the subsystem is in shared mode since the last boot (S1)."""
    return replace(node, rdma=RdmaSystem("shared", "Y", True), module_options=())


def without_functions(node: NodeSnapshot) -> NodeSnapshot:
    """Somebody wrote 0 into sriov_numvfs of the second rail."""
    second = rails.PLACES[1]
    kept = [function for function in node.pci or () if function.vf_of != second]
    return fleet.edit_function(replace(node, pci=tuple(kept)), second, vfs=0)


def nodes() -> list[NodeInput]:
    """The nodes, by name."""
    found = [worker(number) for number in range(len(NAMES) - 1)]
    found[1] = shared_mode(found[1])
    found[2] = without_functions(found[2])
    inputs = [NodeInput(snapshot.name, snapshot) for snapshot in found]
    inputs.append(NodeInput(LOST, reason="ssh: connect to host 10.140.77.23 port 22: connection timed out"))
    return inputs


def cluster() -> ClusterSnapshot:
    """Their cluster: the gateway of the second rail was copied from the first. No DRANET and no roll is there."""
    found = rails.cluster(*NAMES)
    found = replace(
        found,
        subsets=(*found.subsets, "dra", "rolls"),
        slices=(),
        device_classes=(),
        claims=(),
        claim_templates=(),
        taint_rules=(),
        roll_leases=(),
        rolls=(),
        disruption_budgets=(),
    )
    return rails.edit_pool(2, gateway="172.16.11.254")(found)


def write(directory: Path) -> list[str]:
    """Write nodes and cluster in the form of a recording; return the names of the files."""
    return recordings.write(directory, nodes(), cluster())


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "spiderpool"
    print("%d files in %s" % (len(write(target)), target))  # noqa: T201
