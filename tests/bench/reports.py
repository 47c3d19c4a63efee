# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""B6: time and memory to write all reports of a large fleet to disk.

``measure`` runs this file in a process of its own, so that the peak of the memory is that of the writing alone, with
the document in memory, which counts. Usage: reports.py NODES CHECKS, which prints one JSON object.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
TARGET_SECONDS = 5.0
TARGET_MIB = 200


def measure(
    nodes: int = 1000, checks: int = 150, environment: dict[str, str] | None = None
) -> dict[str, Any]:
    """Write all formats of a synthetic document and return seconds, peak MiB, bytes per file, and the targets."""
    done = subprocess.run(
        [sys.executable, str(Path(__file__).resolve()), str(nodes), str(checks)],
        stdout=subprocess.PIPE,
        env={**os.environ, **(environment or {})},
        check=True,
    )
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def main(nodes: int, checks: int) -> dict[str, Any]:
    """The measurement itself; call it in a fresh process."""
    sys.path.insert(0, str(HERE))
    import make_result

    try:
        from ansible_collections.rdma.k8s.plugins.module_utils import report_files
    except ImportError:
        from rdma_k8s import report_files

    document = make_result.make(nodes, checks)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with tempfile.TemporaryDirectory() as directory:
        started, cpu = time.perf_counter(), time.process_time()
        written = report_files.write_reports(document, directory)
        seconds, cpu_seconds = time.perf_counter() - started, time.process_time() - cpu
    return {
        "id": "B6",
        "nodes": nodes,
        "checks": checks,
        "seconds": round(seconds, 3),
        "cpu_seconds": round(cpu_seconds, 3),
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        "document_mib": before // 1024,
        "bytes": {Path(entry.path).name: entry.size for entry in written},
        "target": {"seconds": TARGET_SECONDS, "peak_mib": TARGET_MIB},
        "met": seconds <= TARGET_SECONDS
        and resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024 <= TARGET_MIB,
    }


if __name__ == "__main__":
    print(json.dumps(main(int(sys.argv[1]), int(sys.argv[2]))))
