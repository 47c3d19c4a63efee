# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Write made-up nodes as a recording that everybody may read, for the examples."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Optional

from ansible_collections.rdma.k8s.plugins.module_utils import records
from ansible_collections.rdma.k8s.plugins.module_utils.core.checks.judge import NodeInput
from ansible_collections.rdma.k8s.plugins.module_utils.core.cluster_snapshot import ClusterSnapshot


def write(
    directory: Path, nodes: Iterable[NodeInput], cluster: Optional[ClusterSnapshot] = None
) -> list[str]:
    """Write one file a node and one for the cluster, and remove the JSON files that belong to neither.

    :returns: the names of the files, in order.
    """
    directory.mkdir(parents=True, exist_ok=True)
    written = [Path(path) for path in records.save(str(directory), nodes, cluster)]
    for path in written:
        path.chmod(0o644)
    for path in directory.glob("*.json"):
        if path.name not in {entry.name for entry in written}:
            path.unlink()
    return sorted(path.name for path in written)
