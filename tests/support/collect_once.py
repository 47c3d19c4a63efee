# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Collect one node and print what it told, without what differs between two runs. Python 3.9, as on a node.

Usage: python collect_once.py ROOT      of a recorded tree, or `/` for the interfaces of this network namespace
"""

from __future__ import annotations

import json
import sys

from rdma_k8s.host.collect import collect

HERE = ("links", "routes")
RUN = ("collected_at", "collector", "subsets")


def main(root: str) -> None:
    """Print versions of Python and pyroute2, and the snapshot, as JSON."""
    snapshot = collect("node", "/", HERE) if root == "/" else collect("node", root)
    document = snapshot.to_dict()
    for name in (*RUN, *(("host",) if root == "/" else ())):
        document.pop(name, None)
    made = {"python": snapshot.collector.python, "pyroute2": snapshot.collector.pyroute2}
    print(json.dumps({"by": made, "snapshot": document}, sort_keys=True))


if __name__ == "__main__":
    main(sys.argv[1])
