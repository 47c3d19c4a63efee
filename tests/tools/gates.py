# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run the gates: every check and every test of the project, two at a time and one that waits, where that is safe.

Usage: python tests/tools/gates.py             all gates
       python tests/tools/gates.py NAME ...    these only
       python tests/tools/gates.py --list      name them

Prints a line per gate and keeps its whole output in ``build/test/<gate>.log``. Says again at the end what failed, each
with what it said, and ends with one line that counts gates and tests together: ``N passed, M failed`` and, where there
are some, ``, K skipped``. Exit code 1 when a gate or a test failed or when nothing ran. In an automatic run (CI=true) a
skip that ``tests/hardware-only.yml`` does not list fails.
"""

from __future__ import annotations

import fcntl
import fnmatch
import os
import shutil
import sys
import time
import traceback
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path

import yaml

import interpreters
import tree
from gate_list import GATES
from gate_model import Gate, Job, Outcome

LOGS = tree.BUILD / "test"
TAIL = 40
LONGEST = 150
"""Characters of the name of a test; some have their whole input in it."""
SLOWEST = 10
SAID = 1500
"""Characters of what a failed test said that are repeated at the end."""


@dataclass
class Row:
    """One finished gate."""

    gate: Gate
    outcome: Outcome
    seconds: float
    log: Path

    @property
    def verdict(self) -> str:
        """Return `failed`, `skipped` or `passed` for the gate itself."""
        if self.outcome.failed or self.outcome.broken:
            return "failed"
        return "skipped" if self.outcome.skipped_whole else "passed"


def accepted_skips() -> list[str]:
    """Return the patterns of tests/hardware-only.yml; an entry without a reason is refused."""
    entries = yaml.safe_load((tree.ROOT / "tests" / "hardware-only.yml").read_text())["skips"]
    for entry in entries:
        if not str(entry.get("reason", "")).strip():
            raise SystemExit(f"tests/hardware-only.yml: the entry {entry!r} needs a reason.")
    return [entry["match"] for entry in entries]


def refuse_unlisted(gate: Gate, outcome: Outcome, patterns: list[str]) -> None:
    """Turn each skip that no pattern allows into a failure of the gate."""
    for skip in outcome.skips:
        name = gate.name if not skip.test else f"{gate.name}::{skip.test}"
        if not any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns):
            outcome.broken.append(
                f"{name} was skipped, and tests/hardware-only.yml does not allow that: {skip.reason}"
            )


def run_gate(gate: Gate, patterns: list[str] | None) -> Row:
    """Run one gate with its output in its log."""
    log = LOGS / f"{gate.name}.log"
    start = time.monotonic()
    with log.open("w") as file:
        job = Job(gate.name, file, gate.polite)
        outcome = gate.run(job)
        if patterns is not None:
            refuse_unlisted(gate, outcome, patterns)
        for sentence in outcome.broken:
            file.write(f"\n{sentence}\n")
    return Row(gate, outcome, time.monotonic() - start, log)


def broken(gate: Gate, error: BaseException) -> Row:
    """Return the row of a gate that raised instead of ending: a failure, with the reason in its log."""
    log = LOGS / f"{gate.name}.log"
    with log.open("a") as file:
        file.writelines(traceback.format_exception(error))
    return Row(gate, Outcome(broken=["the gate itself broke, see its log"]), 0.0, log)


def report(row: Row) -> None:
    """Print the line of a gate and, when it failed, the end of its output."""
    outcome = row.outcome
    counts = f"{outcome.passed + outcome.failed} tests" if outcome.passed + outcome.failed else ""
    note = ", ".join(part for part in (counts, outcome.note) if part)
    print(f"{row.verdict:8}{row.gate.name:22}{row.seconds:7.1f} s  {note}".rstrip(), flush=True)
    if row.verdict == "failed":
        lines = row.log.read_text(errors="replace").rstrip().splitlines()
        print(f"    --- end of {os.path.relpath(row.log, tree.ROOT)} ---")
        print("\n".join("    | " + line for line in lines[-TAIL:]), flush=True)


def run_all(gates: list[Gate], patterns: list[str] | None) -> list[Row]:
    """Run the gates in order, two at a time and one that waits; a gate marked `alone` has the machine for itself."""
    rows: list[Row] = []
    waiting = list(gates)
    busy: dict[Future[Row], Gate] = {}
    with ThreadPoolExecutor(3) as pool:
        while waiting or busy:
            running: list[Gate] = list(busy.values())
            for gate in list(waiting):
                blocked = any(other.alone or gate.alone or gate.lane & other.lane for other in running)
                needs_wait = any(need in {other.name for other in waiting + running} for need in gate.after)
                at_once = [other for other in running if other.waits == gate.waits]
                if len(at_once) < (1 if gate.waits else 2) and not blocked and not needs_wait:
                    waiting.remove(gate)
                    running.append(gate)
                    busy[pool.submit(run_gate, gate, patterns)] = gate
            done: set[Future[Row]] = wait(busy, return_when=FIRST_COMPLETED).done
            for future in done:
                gate, error = busy.pop(future), future.exception()
                rows.append(future.result() if error is None else broken(gate, error))
                report(rows[-1])
    return rows


def choose(names: list[str]) -> list[Gate]:
    """Return the gates with these names and those that they need, all for none."""
    known = {gate.name: gate for gate in GATES}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise SystemExit(f"gates: no gate is called {', '.join(unknown)}. There are: {', '.join(known)}")
    wanted = {need for name in names for need in (name, *known[name].after)}
    return [gate for gate in GATES if gate.name in wanted or not names]


def summary(rows: list[Row]) -> int:
    """Print skips, the slowest parts and the closing line; return the exit code."""
    skips = [(row.gate.name, skip) for row in rows for skip in row.outcome.skips]
    if skips:
        print(f"\nskipped here ({len(skips)}):")
        for name, skip in skips:
            print(f"  {name}{'::' + skip.test if skip.test else ''}: {skip.reason}")
    if len(rows) > 1:
        print("\nslowest gates:")
        for row in sorted(rows, key=lambda row: -row.seconds)[:SLOWEST]:
            print(f"  {row.seconds:7.1f} s  {row.gate.name}")
    tests = sorted(
        ((seconds, row.gate.name, test) for row in rows for test, seconds in row.outcome.times), reverse=True
    )
    if tests:
        print("\nslowest tests:")
        for seconds, gate_name, test in tests[:SLOWEST]:
            name = f"{gate_name}::{test}"
            print(f"  {seconds:7.2f} s  {name if len(name) <= LONGEST else name[:LONGEST] + '...'}")
    for row in rows:
        told = [(row.gate.name, sentence) for sentence in row.outcome.broken]
        told += [(f"{row.gate.name}::{test}", said) for test, said in row.outcome.failures]
        for name, said in told:
            shown = said if len(said) <= SAID else f"{said[: SAID // 2]}\n[...]\n{said[-SAID // 2 :]}"
            print("\nfailed: " + name + "".join("\n    " + line for line in shown.splitlines()))
    verdicts = [row.verdict for row in rows]
    passed = verdicts.count("passed") + sum(row.outcome.passed for row in rows)
    failed = verdicts.count("failed") + sum(row.outcome.failed for row in rows)
    bad = [row.gate.name for row in rows if row.verdict == "failed"]
    print(f"\n{'failed gates: ' + ', '.join(bad) if bad else 'all gates that ran passed'}")
    print(f"{passed} passed, {failed} failed{f', {len(skips)} skipped' if skips else ''}", flush=True)
    return 1 if failed or not passed else 0


def describe_machine() -> str:
    """Return a line about what this machine offers to the tests."""
    pythons = interpreters.find(tree.NODE_PYTHONS)
    release = Path("/etc/os-release")
    facts = (
        dict(line.split("=", 1) for line in release.read_text().splitlines() if "=" in line)
        if release.is_file()
        else {}
    )
    parts = [
        facts.get("PRETTY_NAME", sys.platform).strip('"'),
        f"{os.cpu_count()} CPUs",
        "root" if os.geteuid() == 0 else "not root",
        "Python " + " ".join(pythons),
        "KVM device" if Path("/dev/kvm").exists() else "no KVM device",
        "qemu" if shutil.which("qemu-system-x86_64") else "no qemu",
        f"kernel {os.uname().release}",
    ]
    return ", ".join(parts)


def main(argv: list[str]) -> int:
    """Run the gates that `argv` names."""
    if argv == ["--list"]:
        print("\n".join(f"{gate.name:22}{gate.purpose}" for gate in GATES))
        return 0
    gates = choose(argv)
    LOGS.mkdir(parents=True, exist_ok=True)
    with (LOGS / ".lock").open("w") as turn:
        try:
            fcntl.flock(turn, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            print("another run of the gates is going on in this folder: waiting for its end", flush=True)
            fcntl.flock(turn, fcntl.LOCK_EX)
        print(f"machine: {describe_machine()}", flush=True)
        os.environ[tree.FROZEN] = str(tree.sync())
        patterns = accepted_skips() if os.environ.get("CI") == "true" else None
        return summary(run_all(gates, patterns))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
