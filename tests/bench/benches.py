# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The benchmarks, one function each. Each measures its baseline in the same run.

What runs in one thread without waiting is measured in CPU seconds: that is the time on the clock of a machine with
nothing else to do, and does not grow because another process runs. The time on the clock stands beside it.
"""

from __future__ import annotations

import os
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any, Callable

import drains
import forks
import inventories
import measure
import paths
import reports as report_bench
import second_run
from measure import Benchmark, Curve, Target, significant

import playbooks

LEAST_RATIO = 6
"""How many times less CPU reading and judging a node must take than by hand: 7.7 with 74 checks on a busy machine."""

NOT_HERE = "That the HTML page opens in a browser within a second is not measured: there is no browser here."


def _cpu(found: dict[str, Any]) -> float:
    return float(found["cpu_seconds"])


def _best(name: str, rounds: int, *arguments: object) -> dict[str, Any]:
    found = [measure.worker(name, *arguments) for _round in range(rounds)]
    return min(found, key=_cpu)


def plan(quick: bool) -> Benchmark:
    """B1: plan 10,000 nodes x 16 NICs."""
    sizes = (100, 1000, 10000)
    rounds = 2 if quick else 5
    runs = {size: _best("plan", rounds, size) for size in sizes}
    bench = Benchmark("B1", "Plan 10,000 nodes with 16 NICs each: derive, check, compare, write text rows")
    bench.targets.append(Target("in process, 10,000 nodes", _cpu(runs[10000]), 0.5, "s"))
    points = [(float(size), _cpu(runs[size])) for size in sizes]
    bench.details["curve"] = points
    bench.details["linear"] = measure.is_linear(points, 2.0)
    bench.details["wall_s"] = significant(runs[10000]["seconds"])
    if quick:
        return bench
    for library in ("netaddr", "ipaddress"):
        found = _best("plan_with_objects", 2, 10000, library)
        bench.baselines["%s objects for each NIC" % library] = {
            "seconds": significant(_cpu(found)),
            "times_slower": significant(_cpu(found) / _cpu(runs[10000])),
        }
    command = _command_of_plan(rounds)
    bench.targets.append(Target("whole command, 10,000 nodes", command.cpu, 1.0, "s"))
    bench.targets.append(Target("whole command, peak memory", command.peak_kib / 1024, 100, "MiB"))
    bench.details["command_wall_s"] = significant(command.wall)
    return bench


def _command_of_plan(rounds: int) -> measure.Run:
    """The command that a user types: nodes from a file, rows to a file."""
    import own_command

    words, env = own_command.command_line()
    with tempfile.TemporaryDirectory() as folder:
        nodes = Path(folder) / "nodes.txt"
        nodes.write_text(
            "".join(
                "gpu-%05d 10.140.%d.%d\n" % (number, (number + 10) // 256, (number + 10) % 256)
                for number in range(10000)
            )
        )
        command = [*words, "plan", "--nodes", str(nodes), "--subnet", "10.140.0.0/16", "--format", "csv"]
        runs = [measure.run(command, env) for _round in range(rounds)]
    for run in runs:
        if run.code or run.output.count("\n") < 160000:
            raise measure.BenchError(
                "rdma-k8s plan ended with exit code %d:\n%s" % (run.code, run.output[-2000:])
            )
    return min(runs, key=lambda run: run.cpu)


def overlap(quick: bool) -> Benchmark:
    """B2: 1 range against 50,000 prefixes from text; 10,000 ranges against an index of them."""
    rounds = 3 if quick else 7
    scan = _best("overlap", rounds, 50000, "core")
    index = _best("queries", rounds, 50000, 10000, "index")
    bench = Benchmark(
        "B2", "One range against 50,000 prefixes from text, strict; 10,000 ranges against their index"
    )
    bench.targets.append(Target("one range, 50,000 texts", _cpu(scan) * 1000, 50, "ms"))
    bench.targets.append(Target("10,000 ranges, index built", _cpu(index) * 1000, 50, "ms"))
    if not quick:
        for library in ("ipaddress", "netaddr"):
            found = _best("overlap", 3, 50000, library)
            assert found["kept"] == scan["kept"], "the libraries find the same"
            bench.baselines["%s, one range" % library] = {
                "ms": significant(_cpu(found) * 1000),
                "times_slower": significant(_cpu(found) / _cpu(scan)),
            }
        found = _best("queries", 1, 50000, 100, "ipaddress")
        bench.baselines["ipaddress, 10,000 ranges one after the other"] = {
            "ms": significant(_cpu(found) * 1000 * 100),
            "times_slower": significant(_cpu(found) * 100 / _cpu(index)),
            "note": "measured with 100 ranges",
        }
    return bench


def collector(quick: bool) -> list[Benchmark]:
    """B3 and B14: the collector on a recorded node with 16 RDMA NICs."""
    paths.make_importable()
    from ansible_collections.rdma.k8s.tests.support import fleet, node_tree

    with tempfile.TemporaryDirectory() as folder:
        node_tree.write(Path(folder), fleet.node())
        found = [measure.worker("collect", folder) for _round in range(3 if quick else 9)]
        command = [
            sys.executable,
            "-S",
            "-c",
            COLLECTOR,
            folder,
        ]  # without what this environment loads at its start
        whole = [measure.run(command, environment()) for _round in range(5)]
        by_hand = [] if quick else [_cat(folder) for _round in range(3)]
    best = min(found, key=_cpu)
    bench = Benchmark(
        "B3", "The collector on a recorded node with 16 RDMA NICs, first call of a fresh process"
    )
    bench.targets.append(Target("collector", _cpu(best) * 1000, 150, "ms"))
    bench.targets.append(Target("returned JSON", best["kept"] / 1000, 12, "kB"))
    bench.details["wall_ms"] = significant(best["seconds"] * 1000)
    if by_hand:
        run = min(by_hand, key=lambda run: run.cpu)
        bench.baselines["the GID tables and port files of the same tree with one cat each"] = {
            "ms": significant(run.cpu * 1000),
            "times_slower": significant(run.cpu / _cpu(best)),
        }
    if any(run.code for run in whole):
        raise measure.BenchError("the collector by itself failed:\n%s" % whole[0].output[-2000:])
    process = min(run.cpu for run in whole)
    cost = Benchmark(
        "B14", "Cost of the collector on a node every 5 minutes: CPU of the process, its imports too"
    )
    cost.targets.append(Target("share of one core", process / 300 * 100, 0.1, "% of a core"))
    cost.note = "Reads files and netlink only; it opens no RDMA device and sends nothing over the fabric."
    cost.details["cpu_ms"] = significant(process * 1000)
    return [bench, cost]


COLLECTOR = (
    "import sys, pyroute2; from ansible_collections.rdma.k8s.plugins.module_utils.host.collect import collect; "
    "collect(name='node', host_root=sys.argv[1])"
)
"""The netlink library counts too, which a recorded tree does not need and a real node does."""


def netns_mode(quick: bool) -> Benchmark:
    """A run of netns_mode that has nothing to do: files, images and reboots of a node that is right."""
    paths.make_importable()
    from ansible_collections.rdma.k8s.tests.support import fleet, initramfs_image, node_tree

    with tempfile.TemporaryDirectory() as folder:
        snapshot = fleet.node()
        tree = node_tree.write(Path(folder), snapshot, gid_table=8)
        (tree.root / "netlink.json").unlink()  # a node, and no recorded one
        release = snapshot.host.kernel
        files = {initramfs_image.MODULE % release: b"x" * 200_000, "usr/bin/sh": b"x" * 40_000_000}
        tree.write("boot/initrd.img-" + release, "")
        (tree.root / ("boot/initrd.img-" + release)).write_bytes(initramfs_image.archive(files))
        runs = [
            measure.run([sys.executable, "-c", NETNS_MODE, folder], environment())
            for _round in range(4 if quick else 9)
        ]
    if any(run.code for run in runs):
        raise measure.BenchError("netns_mode by itself failed:\n%s" % runs[0].output[-2000:])
    times = [
        [float(word) for word in run.output.split()] for run in runs[1:]
    ]  # the first one reads the image
    bench = Benchmark("netns_mode", "A run of netns_mode on a node that is right, one initramfs of 40 MB")
    bench.targets.append(Target("own time", min(work for _imports, work in times), 50, "ms"))
    bench.details["imports_ms"] = significant(min(imports for imports, _work in times))
    bench.details["first_run_ms"] = significant(float(runs[0].output.split()[1]))
    bench.note = (
        "CPU time of the work. The imports of the collection's files, beyond what every module needs, stand beside it; "
        "first_run_ms is a run that reads the image, which later runs do not."
    )
    return bench


NETNS_MODE = """
import sys, time
from ansible.module_utils import basic
start = time.process_time()
from ansible_collections.rdma.k8s.plugins.module_utils.host import changes, files, netns_mode
loaded = time.process_time()
with changes.Changes(files.Root(sys.argv[1]), "netns_mode") as made:
    result = netns_mode.enforce(made, netns_mode.Wish("shared"))
done = time.process_time()
assert not made.changed and result["initramfs"][0]["has_module"] and not result["reboot_required"]
print((loaded - start) * 1000, (done - loaded) * 1000)
"""


def environment() -> dict[str, str]:
    """The environment in which a fresh Python finds the collection."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}


def _cat(folder: str) -> measure.Run:
    script = (
        'for file in "$0"/sys/class/infiniband/*/ports/*/*; do [ -f "$file" ] && cat "$file"; done; '
        'for file in "$0"/sys/class/infiniband/*/ports/*/gids/*; do cat "$file"; done'
    )
    return measure.run(["sh", "-c", script, folder])


def judgement(quick: bool) -> Benchmark:
    """B4: the whole catalogue over 1, 100, 1,000 and 10,000 nodes."""
    sizes = (1, 100, 1000) if quick else (1, 100, 1000, 3000, 10000)
    runs = {size: _best("judgement", 1 if size > 1000 else 2, size) for size in sizes}
    most = sizes[-1]
    checks = runs[most]["checks"]
    bench = Benchmark("B4", "The whole catalogue (%d checks) over recorded H100 nodes" % checks)
    bench.targets.append(Target("one node of %d" % most, _cpu(runs[most]) / most * 1000, 3, "ms"))
    bench.targets.append(Target("1,000 nodes", _cpu(runs[1000]), 3, "s"))
    bench.targets.append(
        Target("memory of a node, its snapshot too", runs[most]["grown_kib"] / most, 100, "kB")
    )
    points = [(float(size), _cpu(runs[size])) for size in sizes if size >= 100]
    bench.details["curve"] = points
    bench.details["memory_curve_mib"] = [
        (float(size), significant(runs[size]["grown_kib"] / 1024)) for size in sizes if size >= 100
    ]
    if len(points) > 2:
        steepest = 1.0 if measure.is_linear(points) else 0.0
        bench.targets.append(Target("time grows linearly (1: yes)", steepest, 1, "", at_least=True))
        memory = 1.0 if measure.is_linear(bench.details["memory_curve_mib"]) else 0.0
        bench.targets.append(Target("memory grows linearly (1: yes)", memory, 1, "", at_least=True))
    bench.details["ms_per_node"] = {
        str(size): significant(_cpu(run) / size * 1000) for size, run in runs.items()
    }
    bench.details["load_ms_per_node"] = significant(runs[most]["load_cpu_seconds"] / most * 1000)
    bench.note = (
        "The target was set for 150 checks; the catalogue has %d. Reading the snapshots from JSON is not part of it "
        "and stands beside it (load_ms_per_node)." % checks
    )
    return bench


def fleet_judgement(nodes: int) -> Benchmark:
    """B5: one module call against a Jinja loop over hostvars."""
    found = playbooks.judge_fleet(nodes)
    bench = Benchmark("B5", "%d nodes judged in one module call, against a Jinja loop over hostvars" % nodes)
    bench.targets.append(Target("times less CPU", found["ratio_above_empty"], 20, "x", at_least=True))
    bench.baselines["Jinja loop (tests/bench/baseline/loop.yml)"] = {"ms_per_node": found["loop_ms_per_node"]}
    bench.details.update(found)
    bench.note = "The call runs the whole catalogue, the loop asks 16 questions. Both above an empty play."
    return bench


def report_files(quick: bool) -> Benchmark:
    """B6: all report files of 1,000 nodes and 150 checks."""
    found = report_bench.measure(environment=environment())
    bench = Benchmark("B6", "Write all reports of 1,000 nodes and 150 checks")
    bench.targets.append(Target("time", found["cpu_seconds"], report_bench.TARGET_SECONDS, "s"))
    bench.targets.append(Target("peak memory", found["peak_mib"], report_bench.TARGET_MIB, "MiB"))
    bench.details["bytes"] = found["bytes"]
    bench.details["wall_s"] = found["seconds"]
    bench.note = NOT_HERE
    return bench


def lint(quick: bool) -> Benchmark:
    """B9: manifests from text, judged by all rules of the lint."""
    found = _best("lint", 2 if quick else 5, 1000)
    count = found["documents"]
    bench = Benchmark("B9", "Lint %d documents: workloads of each target, their claims and networks" % count)
    bench.targets.append(Target("text to findings", count / _cpu(found), 500, "documents/s", at_least=True))
    rules = count / found["rules_cpu_seconds"]
    bench.targets.append(Target("rules alone", rules, 3000, "documents/s", at_least=True))
    bench.baselines["reading the text with PyYAML alone"] = {
        "documents_per_s": significant(count / found["yaml_cpu_seconds"])
    }
    bench.details["findings"] = found["findings"]
    bench.details["reading_documents_per_s"] = significant(count / found["read_cpu_seconds"])
    return bench


def detection(quick: bool) -> Benchmark:
    """B12: faults injected into fixtures."""
    found = measure.worker("detection")
    rows = found["rows"]
    hits = [row for row in rows if row["found"]]
    false = [alarm for row in rows for alarm in row["false_alarms"]] + found["clean_alarms"]
    bench = Benchmark("B12", "Time to detect: %d faults injected into fixtures, one at a time" % len(rows))
    bench.targets.append(Target("faults", len(rows), 40, "", at_least=True))
    bench.targets.append(Target("found", len(hits) / len(rows) * 100, 100, "%", at_least=True))
    bench.targets.append(Target("false alarms", len(false), 0, ""))
    by_area: dict[str, list[int]] = {}
    for row in rows:
        counts = by_area.setdefault(row["check"].split("-")[1], [0, 0, 0])
        counts[0] += 1
        counts[1] += bool(row["found"])
        counts[2] += len(row["false_alarms"])
    bench.details["areas"] = {
        area: {
            "faults": injected,
            "found": hit,
            "false_alarms": wrong,
            "recall": hit / injected,
            "precision": hit / (hit + wrong) if hit + wrong else 0.0,
        }
        for area, (injected, hit, wrong) in sorted(by_area.items())
    }
    bench.details["results_on_healthy_fleets"] = found["clean_results"]
    bench.details["alarms_on_healthy_fleets"] = len(found["clean_alarms"])
    bench.details["ms_per_judgement"] = significant(sum(row["milliseconds"] for row in rows) / len(rows))
    bench.details["faults"] = rows
    return bench


def preflight(quick: bool) -> Benchmark:
    """The whole preflight against 20 shell tasks, and the number of module tasks."""
    hosts, rounds = (4, 1) if quick else (4, 3)
    bench = Benchmark(
        "preflight", "Read and judge hosts: the collection, against 20 shell tasks and a Jinja loop"
    )
    runs = playbooks.module_runs()
    most = max(sum(counts.values()) for counts in runs.values())
    fewest = min(counts["node_info"] for counts in runs.values())
    bench.targets.append(Target("module tasks a host in preflight", most, 1, ""))
    bench.targets.append(Target("of which node_info", fewest, 1, "", at_least=True))
    found = playbooks.gather_and_judge(hosts, rounds, with_preflight=not quick)
    if (
        found["ratio_above_empty"] < LEAST_RATIO
    ):  # once more, in case the machine was busy with something else
        again = playbooks.gather_and_judge(hosts, rounds, with_preflight=not quick)
        bench.details["first_attempt"] = found["ratio_above_empty"]
        found = max(found, again, key=lambda attempt: attempt["ratio_above_empty"])
    bench.targets.append(
        Target(
            "times less CPU to gather and judge, a node",
            found["ratio_above_empty"],
            LEAST_RATIO,
            "x",
            at_least=True,
        )
    )
    bench.baselines["20 shell tasks (tests/bench/baseline/by_hand.yml)"] = {
        "cpu_s_per_host": found["by_hand_cpu_s_per_host"]
    }
    bench.details.update(found)
    bench.details["modules"] = {host: dict(counts) for host, counts in runs.items()}
    return bench


def inventory(quick: bool) -> Benchmark:
    """The inventory of 5,000 nodes with 16 NICs each, out of a real client and into a real inventory."""
    count = 5000
    found = inventories.measured(count, 1 if quick else 3, not quick)
    if (found["hosts"], found["networks"]) != (count, 1):
        raise measure.BenchError("the inventory has %(hosts)d hosts in %(networks)d RDMA networks" % found)
    calls = int(found["said"].partition(" in ")[2].split()[0])
    cached = found["cached"]
    bench = Benchmark("inventory", "The nodes of a cluster as hosts: %d nodes with their slices" % count)
    bench.targets.append(Target("source file to filled inventory", _cpu(found), 3, "s"))
    bench.targets.append(Target("API calls for 1,000 nodes", calls * 1000 / count, 20, ""))
    bench.targets.append(Target("out of the cache", _cpu(cached), 1.5, "s"))
    bench.targets.append(Target("API calls out of the cache", 0 if "no call" in cached["said"] else 1, 0, ""))
    if found["models"]:
        bench.baselines["the same lists into the classes of the official client"] = {
            "seconds": significant(_cpu(found["models"])),
            "times_slower": significant(_cpu(found["models"]) / _cpu(found)),
        }
    bench.details["wall_s"] = significant(found["seconds"])
    bench.details["groups"] = found["groups"]
    bench.details["peak_mib"] = significant(found["peak_mib"])
    bench.details["megabytes_read"] = significant(found["bytes"] / 1e6)
    bench.note = (
        "CPU seconds from the source file on, the import of the client too; what every command of Ansible needs to "
        "start is not in it. The server runs on loopback, in a process of its own."
    )
    return bench


FORK_MIB = 100
"""What the sizing guide of automation controller reckons for a fork."""


def forks_sweep(count: int) -> Benchmark:
    """B10: forks 5 to 100, without and with pipelining, and with Mitogen."""
    found = forks.sweep(count)
    points = found.points
    bench = Benchmark("B10", "One module task on %d hosts with 5 to 100 forks" % count)
    for way in dict.fromkeys(point.way for point in points):
        mine = [point for point in points if point.way == way]
        if way != forks.MITOGEN:
            bench.targets.append(
                Target("memory of one more fork, " + way, forks.one_more(mine), FORK_MIB, "MiB")
            )
        else:
            bench.baselines["Mitogen, the fastest of its runs"] = {
                "seconds": significant(min(point.wall for point in mine)),
                "cpu_seconds": significant(min(point.cpu for point in mine)),
            }
        for what, label, field in (
            ("seconds", "seconds on the clock", "wall"),
            ("cpu", "CPU seconds of the controller", "cpu"),
            ("memory", "peak memory in MiB", "peak"),
        ):
            line = [(float(point.forks), float(getattr(point, field))) for point in mine]
            bench.curves.append(Curve("%s %s" % (what, way.lower()), "forks", label, line))
    (as_it_comes,) = [point for point in points if (point.forks, point.way) == forks.DEFAULT]
    best = min(points, key=lambda point: point.wall)
    bench.baselines["Ansible as it comes: 5 forks, no pipelining"] = {
        "seconds": significant(as_it_comes.wall),
        "times_slower_than_the_fastest": significant(as_it_comes.wall / best.wall),
    }
    bench.baselines["sizing guide of automation controller, for each fork"] = {"MB": 100, "cpus": 0.25}
    bench.table = [forks.HEADS, *[point.row for point in points]]
    bench.details["connection"] = found.how
    bench.details["points"] = [dict(zip(forks.HEADS, point.row)) for point in points]
    bench.note = (
        "Connection: %s, one for each name. Controller and hosts are one machine, so the seconds are those of a "
        "controller that does the work of its hosts, too; CPU and memory are the controller's alone%s."
        % (found.how, "" if found.how.startswith("SSH") else " and, as the connection is local, its modules'")
    )
    if found.without:
        bench.note += " There are no runs with Mitogen, as it could not be installed: %s." % found.without
    return bench


SECOND_PERCENT = 40


def second_runs() -> Benchmark:
    """B11: each role a second time."""
    pairs = second_run.measured()
    bench = Benchmark("B11", "The second run of %d roles, against the first" % len(pairs))
    changed = sum(pair.changed[1] for pair in pairs)
    bench.targets.append(Target("changed by all second runs", changed, 0, ""))
    for pair in pairs:
        if pair.kind == second_run.WHOLE:
            bench.targets.append(Target("%s, of its first run" % pair.role, pair.share, SECOND_PERCENT, "%"))
        bench.baselines["first run of %s" % pair.role] = {"seconds": significant(pair.first)}
    left = {
        role: why for role, why in second_run.ELSEWHERE.items() if role not in {pair.role for pair in pairs}
    }
    bench.table = [second_run.HEADS, *[pair.row for pair in pairs]]
    bench.table += [[role, why, *["-"] * (len(second_run.HEADS) - 2)] for role, why in sorted(left.items())]
    bench.details["pairs"] = [asdict(pair) for pair in pairs]
    bench.note = (
        "Seconds on the clock from the first to the last task of the role, without the start of Ansible. The share "
        "has a target where the first run does all that it does for a user. On the native control plane pods start at "
        "once and no image is fetched, so the first run is shorter there than for a user, and the share larger. The "
        "role report writes nothing the second time, but computes everything to know that."
    )
    return bench


def drain_overhead() -> Benchmark:
    """B13: our drain against kubectl drain."""
    found = drains.measured()
    bench = Benchmark("B13", "Drain nodes of the pods that use RDMA, against kubectl drain of the same pods")
    compared = [drains.compare(found, count) for count in sorted({drain.nodes for drain in found})]
    for entry in compared:
        words = "over kubectl drain, a node, %s" % (
            "one alone" if entry.nodes == 1 else "%d at once" % entry.nodes
        )
        bench.targets.append(Target(words, entry.over, 3, "s"))
        bench.baselines["kubectl drain, %d at a time" % entry.nodes] = {
            "s_a_node": significant(entry.kubectl)
        }
    bench.table = [drains.HEADS, *[entry.row for entry in compared]]
    bench.details["drains"] = [asdict(drain) for drain in found]
    bench.note = (
        "Seconds on the clock of whole commands, ansible and kubectl, in turn on a real API server; medians. A pod "
        "takes %s s to end. What the same command takes for a module that does nothing is the start of Ansible, and no "
        "part of a drain. kubectl drain is told the pods by a label, the module finds them; it returns when their "
        "claims are free, too, for which kubectl drain does not wait." % drains.STOP
    )
    return bench


QUICK: dict[str, Callable[[bool], Any]] = {
    "B1": plan,
    "B2": overlap,
    "B3": collector,
    "B4": judgement,
    "B6": report_files,
    "B9": lint,
    "B12": detection,
    "inventory": inventory,
    "netns_mode": netns_mode,
    "preflight": preflight,
}
