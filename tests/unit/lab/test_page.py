# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The page about the lab tells what the program has."""

from __future__ import annotations

import pathlib
import re
import shlex

import pytest

from ansible_collections.rdma.k8s.tests.lab import cli, faults

ROOT = pathlib.Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "contributing" / "lab.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^\$ python3 tests/lab (.+)$", PAGE, re.MULTILINE)


def test_the_table_has_every_fault() -> None:
    rows = re.findall(r"^\| `([a-z-]+(?: [A-Z\[\]=/]+)*)` \| (.+) \|$", PAGE, re.MULTILINE)
    assert rows[-len(faults.FAULTS) :] == [(fault.usage, fault.summary) for fault in faults.FAULTS.values()]


def test_there_are_commands() -> None:
    assert len(COMMANDS) >= 5


@pytest.mark.parametrize("line", COMMANDS)
def test_commands_are_understood(line: str) -> None:
    options = cli.parser().parse_args(shlex.split(line))
    if options.command == "fault":
        faults.check(options.fault, options.arguments, 4)


def test_files_that_are_named_exist() -> None:
    names = set(re.findall(r"`((?:tests|extensions)/[a-zA-Z0-9_./-]+)`", PAGE))
    assert names
    assert [name for name in names if not (ROOT / name).exists()] == []
    inside = re.findall(r"^\| ((?:`[a-z_/]+(?:\.py|/)`(?:, )?)+) \|", PAGE, re.MULTILINE)
    files = [name for cell in inside for name in re.findall(r"`([^`]+)`", cell)]
    assert len(files) > 10
    assert [name for name in files if not (ROOT / "tests" / "lab" / name).exists()] == []
