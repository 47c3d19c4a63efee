# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whole playbooks, measured from outside: CPU seconds of ansible-playbook and all its children.

CPU seconds are compared, not the clock: they do not depend on what else the machine does. ``above`` is what a playbook
costs above one that does nothing, since starting Ansible is nobody's merit or fault.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from statistics import fmean
from typing import Any

import measure
import paths

BENCH = Path(__file__).resolve().parent
BASELINE = BENCH / "baseline"
READS = 20
"""Shell tasks of by_hand.yml."""


class Playground:
    """A folder with an inventory, in which playbooks run against hosts that are this machine."""

    def __init__(self, folder: Path, inventory: dict[str, Any]) -> None:
        import tree

        self.folder = folder
        self.inventory = folder / "inventory.json"
        self.inventory.write_text(json.dumps(inventory), encoding="utf-8")
        self.environment = {
            **tree.environment(home=folder),
            "ANSIBLE_STDOUT_CALLBACK": "default",
            "ANSIBLE_LOCALHOST_WARNING": "False",
            "ANSIBLE_INVENTORY_UNPARSED_WARNING": "False",
            "ANSIBLE_CONFIG": str(folder / "ansible.cfg"),
            "PYTHONDONTWRITEBYTECODE": "",
            "PYTHONPATH": "",
        }
        (folder / "ansible.cfg").write_text("[defaults]\n")
        self.program = shutil.which("ansible-playbook", path=self.environment["PATH"]) or "ansible-playbook"

    def play(
        self,
        playbook: str | Path,
        *arguments: str,
        ends: Iterable[int] = (0,),
        watch: Callable[[int], None] | None = None,
        **env: str,
    ) -> measure.Run:
        """Run a playbook and measure it; an unexpected end is no measurement."""
        command = [self.program, "-i", str(self.inventory), str(playbook), *arguments]
        done = measure.run(command, {**self.environment, **env}, self.folder, watch)
        if done.code not in ends:
            raise measure.BenchError(
                "%s ended with exit code %d:\n%s" % (playbook, done.code, done.output[-3000:])
            )
        return done


def local_hosts(count: int, folder: Path) -> dict[str, Any]:
    """An inventory of hosts that are all this machine, each with a temporary folder of its own."""
    hosts = {
        "node-%02d" % number: {"ansible_remote_tmp": str(folder / "remote" / ("node-%02d" % number))}
        for number in range(count)
    }
    variables = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
    return {"all": {"hosts": hosts, "vars": variables}}


def module_runs(hosts: int = 2) -> dict[str, Counter[str]]:
    """The modules that the whole preflight executes on each host, counted.

    Ansible is told to keep the files that it sends: each execution of a module leaves its program in the temporary
    folder of the host. What runs on the controller alone sends nothing.
    """
    with tempfile.TemporaryDirectory() as name:
        ground = Playground(Path(name), local_hosts(hosts, Path(name)))
        ground.play(
            "rdma.k8s.preflight",
            "-e",
            "report_dir=%s" % (ground.folder / "report"),
            ends=(0, 2),
            ANSIBLE_KEEP_REMOTE_FILES="1",
            ANSIBLE_PIPELINING="0",
        )
        if not (ground.folder / "report" / "result.json").is_file():
            raise measure.BenchError("preflight wrote no result")
        found = {}
        for number in range(hosts):
            host = "node-%02d" % number
            programs = (ground.folder / "remote" / host).glob("*/AnsiballZ_*.py")
            found[host] = Counter(path.stem.partition("_")[2] for path in programs)
        return found


def gather_and_judge(hosts: int, rounds: int, with_preflight: bool = True) -> dict[str, Any]:
    """CPU seconds of reading and judging hosts: with the collection, and by hand (20 shell tasks, a Jinja loop)."""
    with tempfile.TemporaryDirectory() as name:
        ground = Playground(Path(name), local_hosts(hosts, Path(name)))
        report = "report_dir=%s" % (ground.folder / "report")
        plays: dict[str, tuple[Any, ...]] = {
            "empty": (BASELINE / "empty.yml",),
            "ours": (BASELINE / "gather_and_judge.yml",),
            "by_hand": (BASELINE / "by_hand.yml",),
        }
        if with_preflight:
            plays["preflight"] = ("rdma.k8s.preflight", "-e", report)
        ground.play(
            *plays["ours"]
        )  # makes what later runs find in the cache, on the controller and on the hosts
        runs: dict[str, list[measure.Run]] = {label: [] for label in plays}
        for _round in range(rounds):  # in turn, so that a slow minute of the machine hits all of them
            for label in (
                "empty",
                "ours",
                "by_hand",
                "ours",
                "empty",
                *(["preflight"] if with_preflight else []),
            ):
                ends = (0, 2) if label == "preflight" else (0,)
                runs[label].append(ground.play(*plays[label], ends=ends))
    found: dict[str, Any] = {"hosts": hosts, "rounds": rounds}
    for label, kept in runs.items():
        found["%s_cpu_s" % label] = measure.significant(fmean(run.cpu for run in kept))
        found["%s_wall_s" % label] = measure.significant(fmean(run.wall for run in kept))
    above = {label: found["%s_cpu_s" % label] - found["empty_cpu_s"] for label in plays}
    found["ratio_above_empty"] = measure.significant(above["by_hand"] / above["ours"])
    found["ours_cpu_s_per_host"] = measure.significant(above["ours"] / hosts)
    found["by_hand_cpu_s_per_host"] = measure.significant(above["by_hand"] / hosts)
    if with_preflight:
        found["ratio_preflight_above_empty"] = measure.significant(above["by_hand"] / above["preflight"])
        found["ratio_whole"] = measure.significant(found["by_hand_cpu_s"] / found["preflight_cpu_s"])
    return found


def judge_fleet(nodes: int, rounds: int = 1) -> dict[str, Any]:
    """B5: nodes whose data is there already, judged in one call, and in a Jinja loop over hostvars."""
    paths.make_importable()
    from ansible_collections.rdma.k8s.tests.support import fleet

    hosts = {}
    for number in range(nodes):
        name = "gpu-%05d" % number
        snapshot = fleet.node(number=number, name=name, subnet="10.140.0.0/16").to_dict()
        hosts[name] = {"rdma_k8s_node": {"snapshot": snapshot}}
    with tempfile.TemporaryDirectory() as name:
        ground = Playground(Path(name), {"all": {"hosts": hosts}})
        runs: dict[str, list[measure.Run]] = {"empty": [], "one_call": [], "loop": []}
        for _round in range(rounds):
            for label, kept in runs.items():
                kept.append(ground.play(BASELINE / ("%s.yml" % label)))
    found: dict[str, Any] = {"nodes": nodes, "rounds": rounds}
    for label, kept in runs.items():
        found["%s_cpu_s" % label] = measure.significant(min(run.cpu for run in kept))
        found["%s_wall_s" % label] = measure.significant(min(run.wall for run in kept))
    one, loop = (found["%s_cpu_s" % label] - found["empty_cpu_s"] for label in ("one_call", "loop"))
    found["ratio_above_empty"] = measure.significant(loop / one)
    found["one_call_ms_per_node"] = measure.significant(one / nodes * 1000)
    found["loop_ms_per_node"] = measure.significant(loop / nodes * 1000)
    return found
