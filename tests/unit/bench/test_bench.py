# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The benchmarks judge themselves rightly: a missed target is missed, a square is no line, a machine stays nameless."""

from __future__ import annotations

import json
import platform
import sys
from pathlib import Path

import pytest

from ansible_collections.rdma.k8s.tests.bench import measure, plot, run
from ansible_collections.rdma.k8s.tests.bench.measure import Benchmark, Target


@pytest.mark.parametrize(
    ("measured", "limit", "at_least", "slack", "met"),
    [
        (0.5, 0.5, False, 1.0, True),
        (0.51, 0.5, False, 1.0, False),
        (1.2, 0.5, False, 2.5, True),
        (1.3, 0.5, False, 2.5, False),
        (8.0, 8.0, True, 1.0, True),
        (7.9, 8.0, True, 1.0, False),
        (0, 0, False, 1.0, True),
        (1, 0, False, 1.0, False),
    ],
)
def test_a_target_is_met_or_not(
    measured: float, limit: float, at_least: bool, slack: float, met: bool
) -> None:
    assert Target("x", measured, limit, "s", at_least).met(slack) is met


@pytest.mark.parametrize(
    ("points", "linear"),
    [
        ([(100, 1.0), (1000, 10.0), (10000, 100.0)], True),
        ([(100, 1.5), (1000, 10.0), (10000, 120.0)], True),
        ([(100, 1.0), (1000, 100.0), (10000, 10000.0)], False),
        ([(100, 1.0), (1000, 1.0), (10000, 100.0)], False),
        ([(100, 1.0)], False),
    ],
)
def test_linear(points: list[tuple[float, float]], linear: bool) -> None:
    assert measure.is_linear(points) is linear


def bench(measured: float, unit: str = "s") -> Benchmark:
    return Benchmark("B0", "nothing", [Target("it", measured, 1, unit)], {"by hand": {"seconds": 9}})


def test_the_quick_mode_forgives_timings_only() -> None:
    assert run.missed([bench(2)], quick=False) == ["B0: it"]
    assert run.missed([bench(2)], quick=True) == []
    assert run.missed([bench(3)], quick=True) == ["B0: it"]
    assert run.missed([bench(2, "x")], quick=True) == ["B0: it"]


def test_the_results_name_target_measured_and_verdict(tmp_path: Path) -> None:
    made = bench(2)
    made.details["curve"] = [(100.0, 1.0), (1000.0, 10.0)]
    run.write(tmp_path, [made], measure.machine(), quick=False)
    document = json.loads((tmp_path / "results.json").read_text())
    target = document["benchmarks"][0]["targets"][0]
    assert (target["measured"], target["limit"], target["met"], document["met"]) == (2, 1, False, False)
    page = (tmp_path / "results.md").read_text()
    assert "| B0 | it | 2 s | at most 1 s | no |" in page
    assert "by hand: seconds 9" in page
    assert (tmp_path / "b0-time.svg").read_text().startswith("<svg")


def test_the_machine_has_no_name(tmp_path: Path) -> None:
    text = json.dumps(measure.machine())
    assert platform.node() not in text or not platform.node()
    assert str(Path.home()) not in text
    assert {"cpu", "cpus", "memory_gib", "python"} <= set(json.loads(text))


def test_children_count_as_cpu_time() -> None:
    code = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'sum(range(3_000_000))'])"
    alone = measure.run([sys.executable, "-c", "pass"])
    found = measure.run([sys.executable, "-c", code])
    assert found.code == 0
    assert found.cpu > alone.cpu
    assert measure.run([sys.executable, "-c", "raise SystemExit(3)"]).code == 3


def test_the_curve_ends_where_the_data_ends() -> None:
    points = [(100.0, 1.0), (1000.0, 9.0)]
    assert plot.svg("a < b", "nodes", "s", points).count("<circle") == 2
    assert "a &lt; b" in plot.svg("a < b", "nodes", "s", points)
    assert [line.split()[0] for line in plot.text(points, "s")] == ["100", "1000"]
