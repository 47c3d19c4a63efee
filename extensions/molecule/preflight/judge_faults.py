# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Judge the nodes of a lab again and again, each time with another fault, and compare with ``expected.yml``.

Every run is the whole playbook ``rdma.k8s.preflight`` on all nodes. Before each run the previous fault is taken back,
which lies on another node, so one run shows both: the new fault gives exactly its findings, and the node that was
faulty before is clean again. Prints one line for each run; ends with code 1 when anything differs.
"""

from __future__ import annotations

import argparse
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


def expected_with(clean: Said, fault: dict[str, Any]) -> Said:
    """What preflight says while one fault is in force: the fault's findings instead of the clean ones.

    An entry that is the same as on a clean node, or a check that clean nodes do not have, is a mistake in the file.
    """
    said = dict(clean)
    for check, entry in fault["findings"].items():
        key, value = (fault["node"], check), read_entry(entry)
        if key not in clean or clean[key] == value:
            raise DriverError(f"expected.yml: {check} of fault {fault['play']} is no change of a clean node.")
        said[key] = value
    return said


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
        self.runs = 0

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

    def change(self, undo: dict[str, Any] | None, play: dict[str, Any] | None) -> None:
        """Take one fault back and play another, at once: they are on different nodes."""
        commands = []
        for fault, words in ((undo, ["--undo"]), (play, [])):
            if fault is not None:
                told = fault["play"].split()
                told = told[:1] if words else told
                commands.append(
                    [sys.executable, str(LAB), "fault", "--name", self.lab, *words, fault["node"], *told]
                )
        started = [
            subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            for command in commands
        ]
        for command, child in zip(commands, started, strict=True):
            output = child.communicate()[0]
            if child.returncode:
                raise DriverError(f"{shlex.join(command)}: {output.strip()}")

    def line(self, what: str, told: str, troubles: list[str], begin: float) -> None:
        """Print one line for a run, and below it what was wrong."""
        self.runs += 1
        self.failed += bool(troubles)
        word = "WRONG" if troubles else "ok"
        print(f"{word:5} {what:34} {told}  [{time.monotonic() - begin:.1f} s]", flush=True)
        for trouble in troubles:
            print(f"      {trouble}", flush=True)


def short(said: Said, clean: Said) -> str:
    """What a run said beyond the clean list."""
    changed = [
        f"{check} {said[node, check][0]}"
        for node, check in sorted(said)
        if said[node, check] != clean.get((node, check))
    ]
    return ", ".join(changed) or "nothing changes"


def run(driver: Driver, expected: dict[str, Any], first: dict[str, Any], only: list[str]) -> None:
    """The clean runs and all faults."""
    nodes = sorted(row["name"] for row in first["nodes"])
    clean = expected_clean(expected, nodes)
    begin = time.monotonic()
    driver.line(
        "clean, first run", f"{len(first['findings'])} findings", differences(said_in(first), clean), begin
    )

    begin = time.monotonic()
    second, code = driver.judge("second", "--check")
    troubles = [] if code == 0 else [f"ansible-playbook ended with code {code}, expected 0"]
    if second["findings"] != first["findings"]:
        troubles += ["the findings differ from the first run", *differences(said_in(second), clean)]
    driver.line("clean, second run in check mode", "the same findings", troubles, begin)

    previous = None
    for number, fault in enumerate(expected["faults"]):
        if only and fault["play"].split()[0] not in only:
            continue
        begin = time.monotonic()
        if previous and previous["node"] == fault["node"]:
            driver.change(previous, None)
            previous = None
        driver.change(previous, fault)
        name = f"{number:02}-{fault['play'].split()[0]}"
        document, code = driver.judge(name)
        said = said_in(document)
        troubles = differences(said, expected_with(clean, fault))
        if code != PLAYBOOK_ENDS[fault["playbook"]]:
            troubles.append(f"ansible-playbook ended with code {code}, expected that it {fault['playbook']}")
        troubles += missing_in(driver.snapshot(name, fault["node"]), fault.get("snapshot", {}))
        driver.line(f"{fault['node']} {fault['play']}", short(said, clean), troubles, begin)
        previous = fault

    begin = time.monotonic()
    driver.change(previous, None)
    last, code = driver.judge("last")
    troubles = [] if code == 0 else [f"ansible-playbook ended with code {code}, expected 0"]
    troubles += differences(said_in(last), clean)
    driver.line("clean, all faults taken back", short(said_in(last), clean), troubles, begin)


def main() -> int:
    """Read the command line, run, count."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lab", required=True, metavar="NAME", help="name of the lab, which is up")
    parser.add_argument("--inventory", required=True, type=pathlib.Path, metavar="FILE")
    parser.add_argument(
        "--first", required=True, type=pathlib.Path, metavar="FILE", help="result.json of a first run"
    )
    parser.add_argument(
        "--work", required=True, type=pathlib.Path, metavar="DIR", help="where the results go"
    )
    parser.add_argument(
        "--only", action="append", default=[], metavar="FAULT", help="just this fault (repeatable)"
    )
    options = parser.parse_args()
    os.makedirs(options.work, exist_ok=True)
    expected = yaml.safe_load((HERE / "files" / "expected.yml").read_text(encoding="utf-8"))
    first = json.loads(options.first.read_text(encoding="utf-8"))
    driver = Driver(options.lab, options.inventory.absolute(), options.work.absolute())
    begin = time.monotonic()
    try:
        run(driver, expected, first, options.only)
    except DriverError as error:
        print(f"WRONG {error}", flush=True)
        return 1
    print(f"{driver.runs - driver.failed} passed, {driver.failed} failed in {time.monotonic() - begin:.0f} s")
    return 1 if driver.failed else 0


if __name__ == "__main__":
    sys.exit(main())
