# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The copy of the sources: what is in it, what stays in it, and the home folder of the tools."""

from __future__ import annotations

import configparser
import subprocess
import sys
from pathlib import Path

import pytest

import interpreters
import tree


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small work tree, and a copy of it in its folder build."""
    work = tmp_path / "work"
    (work / "plugins").mkdir(parents=True)
    (work / "plugins" / "one.py").write_text("1\n")
    (work / "two.sh").write_text("2\n")
    (work / "two.sh").chmod(0o755)
    (work / ".gitignore").write_text("/build/\n*.log\n")
    (work / "three.log").write_text("3\n")
    subprocess.run(["git", "init", "--quiet", str(work)], check=True)
    monkeypatch.setattr(tree, "ROOT", work)
    monkeypatch.setattr(tree, "BUILD", work / "build")
    monkeypatch.setattr(tree, "COPY", work / "build" / "root" / "ansible_collections" / "rdma" / "k8s")
    return work


def names(copy: Path) -> list[str]:
    files = (path.relative_to(copy) for path in copy.rglob("*") if path.is_file())
    return sorted(str(path) for path in files if path.parts[0] != ".git")


def test_it_holds_what_git_would_take(work: Path) -> None:
    copy = tree.sync()
    assert names(copy) == [".gitignore", "plugins/one.py", "two.sh"]
    assert (copy / "two.sh").stat().st_mode == (work / "two.sh").stat().st_mode


def test_changed_and_removed_files_follow(work: Path) -> None:
    copy = tree.sync()
    (work / "two.sh").write_text("changed\n")
    (work / "plugins" / "one.py").unlink()
    tree.sync()
    assert names(copy) == [".gitignore", "two.sh"]
    assert (copy / "two.sh").read_text() == "changed\n"
    assert not (copy / "plugins").exists()


def test_what_tools_wrote_stays(work: Path) -> None:
    copy = tree.sync()
    (copy / "tests" / "output").mkdir(parents=True)
    (copy / "tests" / "output" / "result").write_text("kept\n")
    (work / "two.sh").unlink()
    tree.sync()
    assert "tests/output/result" in names(copy)


def test_a_frozen_copy_stays_as_it_is(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copy = tree.sync()
    (work / "two.sh").write_text("changed\n")
    monkeypatch.setenv(tree.FROZEN, str(copy))
    tree.sync()
    assert (copy / "two.sh").read_text() == "2\n"
    monkeypatch.setenv(tree.FROZEN, "/another/copy")
    tree.sync()
    assert (copy / "two.sh").read_text() == "changed\n"


def test_git_sees_the_same_files_in_the_copy(work: Path) -> None:
    copy = tree.sync()
    seen = subprocess.run(
        ["git", "-C", str(copy), "ls-files"], stdout=subprocess.PIPE, check=True
    ).stdout.decode()
    assert seen.split() == names(copy)


def test_the_home_of_the_tools_has_the_settings_of_pip(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PIP_RETRIES", "7")
    home = tree.tool_home()
    settings = configparser.RawConfigParser()
    settings.read(home / ".pip" / "pip.conf")
    assert settings.get("global", "retries") == "7"
    assert (home / ".pip" / "pip.conf").stat().st_mode & 0o077 == 0


def test_the_environment_holds_nothing_of_the_users_ansible(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANSIBLE_STDOUT_CALLBACK", "json")
    monkeypatch.setenv("PATH", f"/somewhere/shims:{Path(sys.executable).parent}")
    found = tree.environment()
    assert "ANSIBLE_STDOUT_CALLBACK" not in found
    assert "/somewhere/shims" not in found["PATH"]


def test_a_program_of_another_version_is_no_interpreter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shim = tmp_path / "python3.99"
    shim.write_text("#!/bin/sh\necho 'not installed' >&2\nexit 127\n")
    shim.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert interpreters.find(("3.99",)) == {}
