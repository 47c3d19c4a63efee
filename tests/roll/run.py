# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests of rolls on a real control plane: ``python tests/roll/run.py kill-matrix|faults|all|thousand``.

The last line says how many cases passed and failed; the exit code is 1 when one failed.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "support"), str(HERE.parent / "tools")]

import paths  # noqa: E402

SLOTS = 12


def main() -> int:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("kill-matrix", "faults", "all", "thousand"))
    parser.add_argument("--slots", type=int, default=SLOTS, help="rolls side by side (%(default)s)")
    parser.add_argument("--only", default="", help="cases whose name has this in it")
    parser.add_argument("--nodes", type=int, default=1000, help="of the large roll (%(default)s)")
    parser.add_argument("--budget", default="50", help="of the large roll (%(default)s)")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(143))  # the cluster is ended then, too
    paths.make_importable()
    # The server from which controllers are forked finds modules by this.
    os.environ["PYTHONPATH"] = os.pathsep.join(sys.path)

    import controller

    controller.preload()
    if options.what == "thousand":
        import thousand

        return thousand.main(options.nodes, options.budget)
    return cases(options)


def cases(options: argparse.Namespace) -> int:
    """Run the matrix, the faults or both."""
    import faults
    import kill_matrix
    from kill import matrix
    from stage import stage

    jobs: list[kill_matrix.Job] = []
    if options.what in ("kill-matrix", "all"):
        jobs += kill_matrix.jobs_of(matrix())
    if options.what in ("faults", "all"):
        jobs = [*faults.jobs(), *jobs]
    jobs = [job for job in jobs if options.only in job[0]]
    begin = time.monotonic()
    done: list[kill_matrix.Case] = []
    if jobs:
        with stage(min(options.slots, len(jobs)), kill_matrix.SIZE) as ready:
            print(f"{len(ready.slots)} slots after {time.monotonic() - begin:.1f} s", flush=True)

            def tell(case: kill_matrix.Case) -> None:
                print(
                    f"{'ok' if case.good else 'FAILED'}  {case.name}  {case.seconds:.1f} s  {case.where}",
                    flush=True,
                )
                for problem in case.problems:
                    print(f"    {problem}", flush=True)

            done = kill_matrix.work(ready, jobs, tell)
    if options.what in ("faults", "all"):
        done += faults.alone(options.only)
    print()
    if options.what in ("kill-matrix", "all"):
        print("\n".join(kill_matrix.table(done)))
    passed = sum(case.good for case in done)
    print(f"{time.monotonic() - begin:.0f} s")
    print(f"{passed} passed, {len(done) - passed} failed")
    return 0 if done and passed == len(done) else 1


if __name__ == "__main__":
    sys.exit(main())
