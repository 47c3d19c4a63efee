# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a gate is, what it returns, and how it runs commands and reads the results of test runners."""

from __future__ import annotations

import re
import subprocess
import xml.etree.ElementTree as ET
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import tree


@dataclass(frozen=True)
class Skip:
    """Something that could not be tested here. `test` is empty when the whole gate is meant."""

    reason: str
    test: str = ""


@dataclass
class Outcome:
    """What a gate found. `broken` holds sentences about failures that are not failed tests, `failures` the names of
    failed tests, each with what it said."""

    passed: int = 0
    failed: int = 0
    skips: list[Skip] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    failures: list[tuple[str, str]] = field(default_factory=list)
    times: list[tuple[str, float]] = field(default_factory=list)
    note: str = ""

    @property
    def skipped_whole(self) -> bool:
        """Tell whether the gate as a whole did not run."""
        return any(not skip.test for skip in self.skips)

    def add(self, other: Outcome) -> None:
        """Take over the counts and sentences of another outcome."""
        self.passed += other.passed
        self.failed += other.failed
        self.skips += other.skips
        self.broken += other.broken
        self.failures += other.failures
        self.times += other.times


POLITELY = ("nice", "-n", "15")
"""Begins commands that take only what others leave of the machine."""


@dataclass
class Job:
    """A running gate: where its output goes, and how it starts commands."""

    name: str
    log: IO[str]
    polite: bool = False

    def say(self, text: str) -> None:
        """Write a line to the log."""
        self.log.write(text.rstrip("\n") + "\n")
        self.log.flush()

    def run(
        self,
        *command: str | Path,
        cwd: Path = tree.COPY,
        env: dict[str, str] | None = None,
        timeout: float = 4500,
    ) -> tuple[int, str]:
        """Run a command with its output in the log; return exit code (124: took too long) and output."""
        words = [*(POLITELY if self.polite else ()), *(str(word) for word in command)]
        self.say("$ " + " ".join(words))
        start = self.log.tell()
        with subprocess.Popen(
            words,
            cwd=cwd,
            env=env or tree.environment(),
            stdin=subprocess.DEVNULL,
            stdout=self.log,
            stderr=subprocess.STDOUT,
        ) as process:
            try:
                code = process.wait(timeout)
            except subprocess.TimeoutExpired:
                process.kill()
                self.say(f"ended after {timeout:.0f} s")
                code = 124
        self.log.flush()
        with open(self.log.name, errors="replace") as file:
            file.seek(start)
            output = file.read()
        self.log.seek(0, 2)
        return code, output


@dataclass(frozen=True)
class Gate:
    """A named check. Two gates of one lane never run at once; `after` names gates that come first. One that is not
    `polite` works against clocks: emulated nodes, control planes, measured times. One that `waits` more than it works
    runs as a third beside two others."""

    name: str
    purpose: str
    run: Callable[[Job], Outcome]
    alone: bool = False
    polite: bool = True
    waits: bool = False
    lane: frozenset[str] = frozenset()
    after: tuple[str, ...] = ()


def verdict(code: int, sentence: str) -> Outcome:
    """Return the outcome of a gate that is one command: passed for exit code 0."""
    return Outcome() if code == 0 else Outcome(broken=[f"{sentence} (exit code {code})"])


def missing(path: str, what: str) -> Outcome:
    """Return the failure of a gate whose script does not exist."""
    return Outcome(broken=[f"{path} is missing, so {what} cannot be checked."])


def read_junit(path: Path) -> Outcome:
    """Read the JUnit file of a pytest run; a file that is not there is a failure."""
    if not path.is_file():
        return Outcome(broken=["the test runner wrote no result file"])
    outcome = Outcome()
    for case in ET.parse(path).getroot().iter("testcase"):
        name = "::".join(part for part in (case.get("classname", ""), case.get("name", "")) if part)
        outcome.times.append((name, float(case.get("time", "0"))))
        skipped = case.find("skipped")
        wrong = next((part for part in case if part.tag in ("failure", "error")), None)
        if wrong is not None:
            outcome.failed += 1
            outcome.failures.append((name, wrong.get("message", "")))
        elif skipped is not None:
            outcome.skips.append(Skip(skipped.get("message", "no reason given"), name))
        else:
            outcome.passed += 1
    return outcome


def read_counts(output: str) -> Outcome:
    """Read the last line `N passed, M failed` of a runner of our own."""
    found = re.findall(r"^(\d+) passed, (\d+) failed(?:, (\d+) skipped)?$", output, re.M)
    if not found:
        return Outcome(broken=["the runner printed no closing line `N passed, M failed`"])
    return Outcome(passed=int(found[-1][0]), failed=int(found[-1][1]))
