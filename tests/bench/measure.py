# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What every benchmark needs: a target with its verdict, commands measured from outside, the machine in words."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

WORKER = Path(__file__).resolve().parent / "worker.py"


@dataclass
class Target:
    """One promise: a measured value against its limit. ``at_least`` turns the comparison round (for ratios)."""

    what: str
    measured: float
    limit: float
    unit: str
    at_least: bool = False

    def met(self, slack: float = 1.0) -> bool:
        """Whether the promise holds, with a limit that is ``slack`` times as generous."""
        if self.at_least:
            return self.measured >= self.limit / slack
        return self.measured <= self.limit * slack

    def row(self, slack: float = 1.0) -> dict[str, Any]:
        """The target as it stands in the results."""
        row = {**asdict(self), "measured": significant(self.measured), "met": self.met()}
        if slack != 1.0:
            row.update(slack=slack, met_with_slack=self.met(slack))
        return row


@dataclass(frozen=True)
class Curve:
    """One line of a picture.

    :param what: a few small words, of which the name of the file is made.
    :param over: what the first number of each point counts, in one word.
    :param label: what the second one is, with its unit. The numbers themselves belong into the table.
    """

    what: str
    over: str
    label: str
    points: list[tuple[float, float]]

    def file(self, bench: str) -> str:
        """The name of its picture; page.py reads it."""
        return "%s-%s-over-%s.svg" % (bench.lower(), self.what.replace(" ", "-"), self.over)


@dataclass
class Benchmark:
    """The outcome of one benchmark: targets, baselines of the same run, and what else was measured.

    :param table: rows for the page, the first one its heads.
    """

    id: str
    title: str
    targets: list[Target] = field(default_factory=list)
    baselines: dict[str, Any] = field(default_factory=dict)
    details: dict[str, Any] = field(default_factory=dict)
    curves: list[Curve] = field(default_factory=list)
    table: list[list[Any]] = field(default_factory=list)
    note: str = ""
    seconds: float = 0.0

    def to_dict(self, slack: float) -> dict[str, Any]:
        """The benchmark as plain data."""
        return {
            "id": self.id,
            "title": self.title,
            "targets": [target.row(slack) for target in self.targets],
            "met": all(target.met() for target in self.targets),
            "baselines": self.baselines,
            "details": self.details,
            "curves": [asdict(curve) for curve in self.curves],
            "table": self.table,
            "note": self.note,
            "seconds": round(self.seconds, 1),
        }


@dataclass(frozen=True)
class Run:
    """A command that was measured: seconds on the clock, CPU seconds with its children, peak memory in KiB."""

    wall: float
    cpu: float
    peak_kib: int
    code: int
    output: str


def significant(value: float) -> float:
    """Four significant digits: more is noise."""
    return float("%.4g" % value)


def run(
    command: list[str],
    env: dict[str, str] | None = None,
    cwd: Path | None = None,
    watch: Callable[[int], None] | None = None,
) -> Run:
    """Run a command to its end; children that it waited for count as its CPU time.

    :param watch: is told the id of the process as soon as there is one.
    """
    started = time.perf_counter()
    with subprocess.Popen(
        command,
        env=env,
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    ) as process:
        assert process.stdout is not None
        if watch is not None:
            watch(process.pid)
        output = process.stdout.read().decode("utf-8", "replace")
        _pid, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    wall = time.perf_counter() - started
    return Run(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss, process.returncode, output)


class BenchError(Exception):
    """A benchmark could not be measured at all."""


def worker(name: str, *arguments: object) -> dict[str, Any]:
    """Measure one thing in a process of its own, so that neither memory nor caches of others count."""
    env = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
        "PYTHONHASHSEED": "0",
    }
    done = run([sys.executable, str(WORKER), name, *map(str, arguments)], env)
    if done.code:
        raise BenchError(
            "%s %s ended with exit code %d:\n%s" % (name, arguments, done.code, done.output[-2000:])
        )
    found: dict[str, Any] = json.loads(done.output.splitlines()[-1])
    return found


def best(name: str, rounds: int, *arguments: object) -> dict[str, Any]:
    """The fastest of several measurements: what others do on the machine only ever adds."""
    return min([worker(name, *arguments) for _round in range(rounds)], key=lambda found: found["seconds"])


def machine() -> dict[str, Any]:
    """The machine without its name: enough to compare two results, nothing that tells where it stands."""
    model = ""
    for line in _text("/proc/cpuinfo").splitlines():
        if line.startswith(("model name", "Processor")):
            model = line.partition(":")[2].strip()
            break
    memory = next(
        (line.split()[1] for line in _text("/proc/meminfo").splitlines() if line.startswith("MemTotal")), "0"
    )
    system = dict(
        line.split("=", 1)
        for line in _text("/etc/os-release").splitlines()
        if line.startswith(("ID=", "VERSION_ID="))
    )
    return {
        "cpu": model or platform.machine(),
        "cpus": os.cpu_count(),
        "memory_gib": round(int(memory) / 1024**2, 1),
        "system": " ".join(text.strip('"') for text in system.values()),
        "kernel": platform.release().split("-")[0],
        "python": platform.python_version(),
        "load_before": round(os.getloadavg()[0], 2),
    }


def _text(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def is_linear(points: list[tuple[float, float]], tolerance: float = 1.6) -> bool:
    """Whether the cost of one more stays the same: the steepest step costs at most ``tolerance`` times the cheapest.

    :param points: amount and total cost, in ascending order.
    """
    slopes = [(y2 - y1) / (x2 - x1) for (x1, y1), (x2, y2) in zip(points, points[1:])]
    return bool(slopes) and min(slopes) > 0 and max(slopes) <= tolerance * min(slopes)
