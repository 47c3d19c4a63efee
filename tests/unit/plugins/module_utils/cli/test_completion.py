# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a shell offers behind a word of ``rdma-k8s``: the real library, asked as a shell asks it."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.cli import arguments


@pytest.fixture
def offered(command, tmp_path):
    """Ask what could come at the end of a line."""
    words, environment = command

    def ask(line: str) -> list[str]:
        answer = tmp_path / "offered"
        asked = {
            **environment,
            "_ARGCOMPLETE": "1",
            "_ARGCOMPLETE_STDOUT_FILENAME": str(answer),
            "_ARGCOMPLETE_IFS": "\n",
            "COMP_LINE": line,
            "COMP_POINT": str(len(os.fsencode(line))),
        }
        ended = subprocess.run(words, env=asked, capture_output=True, check=False, timeout=60)
        assert (ended.returncode, ended.stdout, ended.stderr) == (0, b"", b"")
        return [word.strip() for word in answer.read_text().split("\n") if word]

    return ask


def test_commands(offered):
    assert set(arguments.COMMANDS) <= set(offered("rdma-k8s "))


def test_the_beginning_of_a_command(offered):
    assert offered("rdma-k8s rep") == ["report"]


def test_options_of_a_command(offered):
    found = offered("rdma-k8s report --th")
    assert found == ["--threshold"]


def test_choices(offered):
    assert offered("rdma-k8s report --threshold cr") == ["critical"]


@pytest.mark.parametrize("name", ["explain", "checks"])
def test_ids_of_checks(offered, name):
    found = offered("rdma-k8s %s RDMA-RANGE-01" % name)
    assert "RDMA-RANGE-013" in found
    assert all(word.startswith("RDMA-RANGE-01") for word in found)


def test_without_the_library(run, monkeypatch):
    """Nobody asks for completion without the library; if so, the sentence says what is missing."""
    monkeypatch.setenv("_ARGCOMPLETE", "1")
    monkeypatch.setitem(sys.modules, "argcomplete", None)
    assert "argcomplete" in run("checks").refused()
