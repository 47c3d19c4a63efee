# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The gate of `make test`: the quick benchmarks, each target a test. Prints last ``N passed, M failed``.

Two of the targets have no slack: preflight runs one module task on each host, and gathering and judging a node takes at
least 6 times less CPU than the same reads as 20 shell tasks. Ratios of one run survive a busy machine, seconds do not.
"""

from __future__ import annotations

import sys

import run


def main() -> int:
    """Run the quick benchmarks."""
    try:
        found = run.measure_all([], True, 0, 0)
    except run.measure.BenchError as error:
        print("bench gate: %s" % error)
        return 1
    targets = sum(len(bench.targets) for bench in found)
    lost = run.missed(found, True)
    for sentence in lost:
        print("missed: %s" % sentence)
    print("%d passed, %d failed" % (targets - len(lost), len(lost)))
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
