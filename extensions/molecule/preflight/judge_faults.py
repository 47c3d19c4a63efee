# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Judge the nodes of a lab again and again, each time with other faults, and compare with ``expected.yml``.

Every run is the whole playbook ``rdma.k8s.preflight`` on all nodes. A node has one fault at a time; each must have
exactly the findings of its own. Before the next run the faults are taken back, and one that left a trace would show
there, because a fault never touches a check of the one before it or of the one beside it (a unit test sees to that).
With ``--apart`` there is one fault in the whole lab at a time, which takes twice as long.

Prints one line for each fault; ends with code 1 when anything differs.
"""

from __future__ import annotations

import argparse
import collections.abc
import concurrent.futures
import json
import os
import pathlib
import shlex
import subprocess
import sys
import time
from typing import Any

import yaml

HERE = pathlib.Path(__file__).resolve().parent
LAB = HERE.parents[2] / "tests" / "lab"
FLEET = "(fleet)"
PLAYBOOK_ENDS = {"passes": 0, "fails": 2}
"""Exit codes of ansible-playbook."""

Said = dict[tuple[str, str], tuple[str, str]]
"""Status and message of each finding, by node and check. What passed has no message here: its numbers may change."""


class DriverError(Exception):
    """A command that must succeed did not."""


def said_in(document: dict[str, Any]) -> Said:
    """What a result document says."""
    return {
        (finding["node"], finding["check"]): (
            finding["status"],
            "" if finding["status"] == "pass" else finding["message"],
        )
        for finding in document["findings"]
    }


def read_entry(entry: Any) -> tuple[str, str]:
    """``pass``, or a map from another status to the message, as they stand in ``expected.yml``."""
    if entry == "pass":
        return "pass", ""
    ((status, message),) = entry.items()
    return status, message


def expected_clean(expected: dict[str, Any], nodes: list[str]) -> Said:
    """What preflight says about clean nodes."""
    said = {(FLEET, check): read_entry(entry) for check, entry in expected["clean"]["fleet"].items()}
    for node in nodes:
        said |= {(node, check): read_entry(entry) for check, entry in expected["clean"]["nodes"].items()}
    return said


def expected_with(clean: Said, faults: list[dict[str, Any]]) -> Said:
    """What preflight says while ``faults`` are in force: the findings of each on its node instead of the clean ones.

    An entry that is the same as on a clean node, or a check that clean nodes do not have, is a mistake in the file.
    """
    said = dict(clean)
    for fault in faults:
        for check, entry in fault["findings"].items():
            key, value = (fault["node"], check), read_entry(entry)
            if key not in clean or clean[key] == value:
                raise DriverError(
                    f"expected.yml: {check} of fault {fault['play']} is no change of a clean node."
                )
            said[key] = value
    return said


def in_rounds(faults: list[dict[str, Any]], apart: bool) -> list[list[dict[str, Any]]]:
    """The faults of each run: one, or as many that follow each other as there are nodes without one."""
    rounds: list[list[dict[str, Any]]] = []
    for fault in faults:
        if apart or not rounds or fault["node"] in [other["node"] for other in rounds[-1]]:
            rounds.append([])
        rounds[-1].append(fault)
    return rounds


def differences(found: Said, expected: Said) -> list[str]:
    """One sentence for each finding that is not as expected, in a form that can be copied to ``expected.yml``."""
    lines = []
    for node, check in sorted(found.keys() | expected.keys()):
        is_, wanted = found.get((node, check)), expected.get((node, check))
        if is_ != wanted:
            lines.append(f"{node} {check}: expected {as_entry(wanted)}, found {as_entry(is_)}")
    return lines


def as_entry(value: tuple[str, str] | None) -> str:
    """Status and message as ``expected.yml`` writes them."""
    if value is None:
        return "nothing"
    status, message = value
    return status if status == "pass" else f"{{{status}: {json.dumps(message)}}}"


def missing_in(snapshot: dict[str, Any], wanted: dict[str, Any]) -> list[str]:
    """One sentence for each field of a recorded snapshot that has another value than ``wanted``."""
    return [
        f"snapshot: {field} is {snapshot.get(field)!r}, expected {value!r}"
        for field, value in wanted.items()
        if snapshot.get(field) != value
    ]


class Driver:
    """Runs the playbook and plays the faults of one lab."""

    def __init__(self, lab: str, inventory: pathlib.Path, work: pathlib.Path):
        self.lab = lab
        self.inventory = inventory
        self.work = work
        self.failed = 0
        self.told = 0

    def judge(self, name: str, *options: str) -> tuple[dict[str, Any], int]:
        """The result document of one run of the playbook, and the exit code of ansible-playbook."""
        directory = self.work / name
        result = directory / "result.json"
        if result.exists():
            raise DriverError(f"{result} is there already; give --work an empty directory.")
        command = [str(pathlib.Path(sys.executable).parent / "ansible-playbook"), "rdma.k8s.preflight"]
        command += [
            "-i",
            str(self.inventory),
            "-e",
            f"report_dir={directory}",
            "-e",
            f"record={directory}/nodes",
        ]
        command += ["-e", f"policy={HERE / 'files' / 'policy.yml'}", *options]
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=self.work)
        if not result.exists():
            raise DriverError(f"{shlex.join(command)} wrote no result:\n{done.stdout}{done.stderr}")
        return json.loads(result.read_text(encoding="utf-8")), done.returncode

    def snapshot(self, name: str, node: str) -> dict[str, Any]:
        """The recorded snapshot of a node in a run."""
        return json.loads((self.work / name / "nodes" / f"{node}.json").read_text(encoding="utf-8"))

    def change(self, before: list[dict[str, Any]], now: list[dict[str, Any]]) -> None:
        """Take the faults ``before`` back and play those of ``now``, on all nodes at once."""
        words: dict[str, list[list[str]]] = {}
        for fault in before:
            words.setdefault(fault["node"], []).append(["--undo", fault["node"], fault["play"].split()[0]])
        for fault in now:
            words.setdefault(fault["node"], []).append([fault["node"], *fault["play"].split()])
        with concurrent.futures.ThreadPoolExecutor() as pool:
            list(pool.map(self._change_node, words.values()))

    def _change_node(self, calls: list[list[str]]) -> None:
        for words in calls:
            command = [sys.executable, str(LAB), "fault", "--name", self.lab, *words]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                raise DriverError(f"{shlex.join(command)}: {(done.stdout + done.stderr).strip()}")

    def line(self, what: str, told: str, troubles: list[str], seconds: float | None = None) -> None:
        """Print one line for a fault or a clean run, and below it what was wrong."""
        self.told += 1
        self.failed += bool(troubles)
        word = "WRONG" if troubles else "ok"
        time_ = "" if seconds is None else f"  [{seconds:.1f} s]"
        print(f"{word:5} {what:34} {told}{time_}", flush=True)
        for trouble in troubles:
            print(f"      {trouble}", flush=True)


def short(said: Said, clean: Said, node: str) -> str:
    """What a run said about one node beyond the clean list."""
    keys = sorted(key for key in said if key[0] == node and said[key] != clean.get(key))
    return ", ".join(f"{key[1]} {said[key][0]}" for key in keys) or "nothing changes"


def run(
    driver: Driver, expected: dict[str, Any], first: dict[str, Any], only: list[str], apart: bool
) -> None:
    """The clean runs and all faults."""
    clean = expected_clean(expected, sorted(row["name"] for row in first["nodes"]))
    driver.line("clean, first run", f"{len(first['findings'])} findings", differences(said_in(first), clean))

    begin = time.monotonic()
    second, code = driver.judge("second", "--check")
    troubles = [] if code == 0 else [f"ansible-playbook ended with code {code}, expected 0"]
    if second["findings"] != first["findings"]:
        troubles += ["the findings differ from the first run", *differences(said_in(second), clean)]
    driver.line("clean, second run in check mode", "the same findings", troubles, time.monotonic() - begin)

    in_force: list[dict[str, Any]] = []
    wanted = [fault for fault in expected["faults"] if not only or fault["play"].split()[0] in only]
    for number, faults in enumerate(in_rounds(wanted, apart)):
        begin = time.monotonic()
        driver.change(in_force, faults)
        in_force = faults
        judge_round(driver, clean, faults, f"round{number}", begin)

    begin = time.monotonic()
    driver.change(in_force, [])
    last, code = driver.judge("last")
    troubles = [] if code == 0 else [f"ansible-playbook ended with code {code}, expected 0"]
    troubles += differences(said_in(last), clean)
    driver.line("clean, all faults taken back", "the clean list", troubles, time.monotonic() - begin)


def judge_round(driver: Driver, clean: Said, faults: list[dict[str, Any]], name: str, begin: float) -> None:
    """One run with faults in force, and a line for each of them.

    What is wrong is told at the fault of its node; what belongs to none of them, at the last one.
    """
    document, code = driver.judge(name)
    said = said_in(document)
    wrong = differences(said, expected_with(clean, faults))
    ends = max(PLAYBOOK_ENDS[fault["playbook"]] for fault in faults)
    if code != ends:
        wrong.append(f"ansible-playbook ended with code {code}, expected {ends}")
    for fault in faults:
        node = fault["node"]
        own = wrong if fault is faults[-1] else [line for line in wrong if line.startswith(f"{node} ")]
        wrong = [line for line in wrong if line not in own]
        own = own + missing_in(driver.snapshot(name, node), fault.get("snapshot", {}))
        seconds = time.monotonic() - begin if fault is faults[-1] else None
        driver.line(f"{node} {fault['play']}", short(said, clean, node), own, seconds)


def arguments(does: str) -> argparse.ArgumentParser:
    """The command line that all drivers have: the lab, its inventory, and a directory."""
    parser = argparse.ArgumentParser(description=does)
    parser.add_argument("--lab", required=True, metavar="NAME", help="name of the lab, which is up")
    parser.add_argument("--inventory", required=True, type=pathlib.Path, metavar="FILE")
    parser.add_argument(
        "--work", required=True, type=pathlib.Path, metavar="DIR", help="where the results go"
    )
    return parser


def concluded(driver: Driver, act: collections.abc.Callable[[], None], *errors: type[Exception]) -> int:
    """Act, print the count or what ended it (a ``DriverError`` or one of ``errors``); the exit code."""
    begin = time.monotonic()
    try:
        act()
    except (DriverError, *errors) as error:
        print(f"WRONG {error}", flush=True)
        return 1
    print(f"{driver.told - driver.failed} passed, {driver.failed} failed in {time.monotonic() - begin:.0f} s")
    return 1 if driver.failed else 0


def main() -> int:
    """Read the command line, run, count."""
    parser = arguments(__doc__.splitlines()[0])
    parser.add_argument(
        "--first", required=True, type=pathlib.Path, metavar="FILE", help="result.json of a first run"
    )
    parser.add_argument(
        "--only", action="append", default=[], metavar="FAULT", help="just this fault (repeatable)"
    )
    parser.add_argument("--apart", action="store_true", help="one fault in the whole lab at a time")
    options = parser.parse_args()
    os.makedirs(options.work, exist_ok=True)
    expected = yaml.safe_load((HERE / "files" / "expected.yml").read_text(encoding="utf-8"))
    first = json.loads(options.first.read_text(encoding="utf-8"))
    driver = Driver(options.lab, options.inventory.absolute(), options.work.absolute())
    return concluded(driver, lambda: run(driver, expected, first, options.only, options.apart))


if __name__ == "__main__":
    sys.exit(main())
