# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`make bench`: the benchmarks with their baselines in one run.

Usage: python tests/bench/run.py [--out DIR] [--quick] [--only B1,B4] [--nodes N] [--hosts N]

Writes results.json, results.md and the curves as SVG to DIR (default: build/bench), prints a table. Exit code 1 when a
target is missed. With ``--quick`` everything is smaller and faster and baselines that only inform are left out; then a
target counts as missed beyond a slack (SLACK), since a short measurement on a busy machine is not sharp.
"""

from __future__ import annotations

import argparse
import datetime
import json
import sys
import time
from pathlib import Path
from typing import Any

BENCH = Path(__file__).resolve().parent
sys.path[:0] = [str(BENCH), str(BENCH.parent / "support"), str(BENCH.parent / "tools")]

import paths  # noqa: E402

paths.make_importable()

import benches  # noqa: E402
import measure  # noqa: E402
import plot  # noqa: E402

SLACK = 2.5
"""How many times worse than its target a timing may be in the quick mode; counts and ratios have no slack."""

SHARP = ("x", "", "%")


def slack_of(target: measure.Target, quick: bool) -> float:
    """The slack of one target."""
    return SLACK if quick and target.unit not in SHARP else 1.0


def measure_all(names: list[str], quick: bool, nodes: int, hosts: int) -> list[measure.Benchmark]:
    """Run the benchmarks and print a line for each as it ends."""
    found: list[measure.Benchmark] = []
    steps: dict[str, Any] = {name: (lambda step=step: step(quick)) for name, step in benches.QUICK.items()}
    if not quick:
        steps["B5"] = lambda: benches.fleet_judgement(nodes)
        steps["B10"] = lambda: benches.forks_sweep(hosts)
        steps["B11"] = benches.second_runs
        steps["B13"] = benches.drain_overhead
    for name, step in steps.items():
        if names and name not in names:
            continue
        started = time.monotonic()
        done = step()
        for bench in done if isinstance(done, list) else [done]:
            bench.seconds = time.monotonic() - started
            found.append(bench)
            for line in lines_of(bench, quick):
                print(line, flush=True)
    return found


def lines_of(bench: measure.Benchmark, quick: bool) -> list[str]:
    """The targets of a benchmark as a person reads them."""
    lines = ["%s  %s  (%.0f s)" % (bench.id, bench.title, bench.seconds)]
    for target in bench.targets:
        slack = slack_of(target, quick)
        verdict = "met" if target.met() else "MISSED" if not target.met(slack) else "missed, within the slack"
        sign = ">=" if target.at_least else "<="
        values = (
            "%g %s" % (measure.significant(target.measured), target.unit),
            "%s %g %s" % (sign, target.limit, target.unit),
        )
        lines.append("    %-46s %14s   target %-14s %s" % (target.what, *values, verdict))
    for what, values in bench.baselines.items():
        lines.append("    baseline: %s: %s" % (what, ", ".join("%s %s" % pair for pair in values.items())))
    return lines


def missed(found: list[measure.Benchmark], quick: bool) -> list[str]:
    """The targets that count as missed."""
    return [
        "%s: %s" % (bench.id, target.what)
        for bench in found
        for target in bench.targets
        if not target.met(slack_of(target, quick))
    ]


def write(folder: Path, found: list[measure.Benchmark], machine: dict[str, Any], quick: bool) -> None:
    """The results as JSON, as Markdown, and the curves as pictures."""
    folder.mkdir(parents=True, exist_ok=True)
    document = {
        "kind": "rdma.k8s/bench",
        "created_at": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "quick": quick,
        "slack": SLACK if quick else 1.0,
        "machine": machine,
        "met": not missed(found, quick),
        "benchmarks": [bench.to_dict(SLACK if quick else 1.0) for bench in found],
    }
    (folder / "results.json").write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    (folder / "results.md").write_text("\n".join(markdown(found, machine, quick)) + "\n", encoding="utf-8")
    for bench in found:
        for key, label, name in (
            ("curve", "CPU seconds", "time"),
            ("memory_curve_mib", "memory in MiB", "memory"),
        ):
            if len(bench.details.get(key, ())) > 1:
                picture = plot.svg("%s: %s" % (bench.id, bench.title), "nodes", label, bench.details[key])
                (folder / ("%s-%s.svg" % (bench.id.lower(), name))).write_text(picture, encoding="utf-8")
        for curve in bench.curves:
            words = ("%s: %s" % (bench.id, curve.what), curve.over, curve.label)
            picture = plot.svg(*words, curve.points, straight=False)
            (folder / curve.file(bench.id)).write_text(picture, encoding="utf-8")


def markdown(found: list[measure.Benchmark], machine: dict[str, Any], quick: bool) -> list[str]:
    """The results as a page."""
    lines = ["# Benchmarks", ""]
    lines += [
        "Machine: "
        + ", ".join("%s %s" % (key.replace("_", " "), value) for key, value in machine.items())
        + ".",
        "",
    ]
    if quick:
        lines += [
            "Quick run: short measurements; a timing counts as missed beyond %g times its target." % SLACK,
            "",
        ]
    lines += ["| id | what | measured | target | met |", "| --- | --- | --- | --- | --- |"]
    for bench in found:
        for target in bench.targets:
            sign = "at least" if target.at_least else "at most"
            values = (measure.significant(target.measured), target.unit, sign, target.limit, target.unit)
            lines.append(
                "| %s | %s | %s | %s |"
                % (bench.id, target.what, "%g %s | %s %g %s" % values, "yes" if target.met() else "no")
            )
    for bench in found:
        lines += ["", "## %s %s" % (bench.id, bench.title), ""]
        if bench.note:
            lines += [bench.note, ""]
        for what, values in bench.baselines.items():
            lines.append("- baseline: %s: %s" % (what, ", ".join("%s %s" % pair for pair in values.items())))
        if len(bench.details.get("curve", ())) > 1:
            lines += ["", "```text", *plot.text(bench.details["curve"], "s"), "```"]
        if len(bench.details.get("memory_curve_mib", ())) > 1:
            lines += ["", "```text", *plot.text(bench.details["memory_curve_mib"], "MiB"), "```"]
        if bench.table:
            lines += ["", *table_lines(bench.table)]
        if "areas" in bench.details:
            lines += [
                "",
                "| area | faults | found | false alarms | recall | precision |",
                "| --- | --- | --- | --- | --- | --- |",
            ]
            for area, row in bench.details["areas"].items():
                lines.append("| %s | %s |" % (area, " | ".join("%g" % value for value in row.values())))
    return lines


def table_lines(table: list[list[Any]]) -> list[str]:
    """A table in Markdown, with numbers as short as they may be."""

    def line(cells: list[Any]) -> str:
        texts = ["%g" % measure.significant(cell) if isinstance(cell, float) else str(cell) for cell in cells]
        return "| %s |" % " | ".join(texts)

    return [line(table[0]), line(["---"] * len(table[0])), *map(line, table[1:])]


def main() -> int:
    """Measure, write, judge."""
    parser = argparse.ArgumentParser(description="Run the benchmarks with their baselines.")
    parser.add_argument("--out", type=Path, default=paths.ROOT / "build" / "bench")
    parser.add_argument("--quick", action="store_true", help="short measurements with a slack, for the gate")
    parser.add_argument("--only", default="", help="ids, separated by commas")
    parser.add_argument("--nodes", type=int, default=1000, help="nodes of B5 (default: 1000)")
    parser.add_argument("--hosts", type=int, default=200, help="hosts of B10 (default: 200)")
    arguments = parser.parse_args()
    names = [name for name in arguments.only.split(",") if name]
    machine = measure.machine()
    try:
        found = measure_all(names, arguments.quick, arguments.nodes, arguments.hosts)
    except measure.BenchError as error:
        print("bench: %s" % error, file=sys.stderr)
        return 2
    if not found:
        print("bench: no benchmark is called %s." % arguments.only, file=sys.stderr)
        return 2
    write(arguments.out, found, machine, arguments.quick)
    lost = missed(found, arguments.quick)
    print("\nresults in %s: results.json, results.md" % arguments.out)
    print("all targets met" if not lost else "missed: " + "; ".join(lost))
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
