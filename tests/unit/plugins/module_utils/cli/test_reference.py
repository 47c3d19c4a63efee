# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The reference page has every command and every option, and no other."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.cli import arguments, main
from ansible_collections.rdma.k8s.plugins.module_utils.core.report.render import FILES

PAGE = Path(__file__).resolve().parents[5] / "docs" / "reference" / "cli.md"
SHARED = {"--policy", "--set"}  # told once, under "Input"


def sections() -> dict[str, str]:
    """Text below each heading of the second level."""
    parts = re.split(r"^## (.+)$", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2]))


def options(name: str) -> set[str]:
    """The options that a command takes."""
    parser = arguments.build_parser()
    commands = next(action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    actions = commands.choices[name]._actions
    return {action.option_strings[-1] for action in actions if action.option_strings} - {"--help"}


@pytest.mark.parametrize("name", arguments.COMMANDS)
def test_options(name):
    rows = set(re.findall(r"^\| `(--[a-z-]+)", sections()[name], re.MULTILINE))
    assert rows == options(name) - SHARED


def test_shared_options():
    assert set(re.findall(r"^\| `(--[a-z-]+)", sections()["Input"], re.MULTILINE)) == SHARED


def test_commands_and_exit_codes():
    text = PAGE.read_text(encoding="utf-8")
    assert re.findall(r"^\| \[([a-z]+)\]\(#", text, re.MULTILINE) == list(arguments.COMMANDS)
    codes = re.findall(r"^\| (\d+) \|", sections()["Exit codes"], re.MULTILINE)
    assert codes == ["0", "1", "2", "3", "4", str(main.EXIT_INTERRUPTED), str(main.EXIT_BROKEN_PIPE)]


def test_formats():
    assert set(arguments.FORMATS) == set(FILES)
    assert [name for name in FILES.values() if "`%s`" % name not in sections()["report"]] == []
