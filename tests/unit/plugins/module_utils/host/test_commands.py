# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Programs of a node: found below its root, run without a shell, ended with all they started."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.core.errors import RdmaError
from ansible_collections.rdma.k8s.plugins.module_utils.host import commands
from ansible_collections.rdma.k8s.plugins.module_utils.host.files import Root

HERE = Root("/")


def test_arguments_are_no_shell_text() -> None:
    text = "$HOME `id` ; * 'x'"
    assert commands.run(HERE, ["printf", "%s", text], 5) == commands.Completed(text, "", 0)


def test_input_and_the_language(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    monkeypatch.setenv("LD_LIBRARY_PATH", "/nowhere")
    done = commands.run(HERE, ["sh", "-c", "cat; env"], 5, input="hello\n")
    assert done.stdout.startswith("hello\n")
    assert "LC_ALL=C\n" in done.stdout
    assert "LD_LIBRARY_PATH" not in done.stdout


def test_a_failure_tells_the_last_line() -> None:
    with pytest.raises(RdmaError) as caught:
        commands.run(HERE, ["sh", "-c", "echo first >&2; echo last >&2; exit 3"], 5)
    assert caught.value.code == "command_failed"
    assert str(caught.value).endswith("failed with exit code 3: last")
    assert caught.value.details["exit_code"] == 3


def test_silence_and_accepted_codes() -> None:
    with pytest.raises(RdmaError, match="it said nothing"):
        commands.run(HERE, ["false"], 5)
    assert commands.run(HERE, ["false"], 5, codes=(0, 1)).code == 1
    assert commands.run(HERE, ["sh", "-c", "kill -9 $$"], 5, codes=None).code == -9


def test_a_missing_program() -> None:
    with pytest.raises(RdmaError) as caught:
        commands.run(HERE, ["no-such-program"], 5)
    assert caught.value.code == "tool_missing"
    assert caught.value.details == {"tool": "no-such-program"}
    with pytest.raises(RdmaError) as caught:
        commands.run(HERE, ["/no/such/program"], 5)
    assert caught.value.code == "tool_missing"


def test_a_program_that_cannot_be_started(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("not a program\n")
    with pytest.raises(RdmaError) as caught:
        commands.run(HERE, [str(tmp_path / "text")], 5)
    assert caught.value.code == "command_failed"
    assert "permission denied" in str(caught.value)


def test_time_is_limited_for_all_it_started(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    started = time.monotonic()
    with pytest.raises(RdmaError) as caught:
        commands.run(HERE, ["sh", "-c", 'sleep 60 & echo $! > "$0"; wait', str(pid)], 0.5)
    assert caught.value.code == "command_timeout"
    assert caught.value.retryable
    assert time.monotonic() - started < 50
    assert _ends(int(pid.read_text()))


def test_a_program_that_left_something_behind_has_ended(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    done = commands.run(HERE, ["sh", "-c", 'sleep 60 & echo $! > "$0"; echo ok', str(pid)], 0.5)
    assert done == commands.Completed("ok\n", "", 0)
    assert _ends(int(pid.read_text()))


def _ends(pid: int) -> bool:
    """Whether a process that was killed ends within a few seconds."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline and _alive(pid):
        time.sleep(0.02)
    return not _alive(pid)


def _alive(pid: int) -> bool:
    try:
        return Path("/proc/%d/stat" % pid).read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except FileNotFoundError:
        return False


def test_programs_are_looked_for_below_the_root(tmp_path: Path) -> None:
    (tmp_path / "usr/bin").mkdir(parents=True)
    (tmp_path / "bin").symlink_to("usr/bin")
    tool = tmp_path / "usr/bin/tool"
    tool.write_text("#!/bin/sh\n")
    root = Root(str(tmp_path))
    assert commands.find(root, "tool") is None
    tool.chmod(0o755)
    assert commands.find(root, "tool") == "/usr/bin/tool"
    assert commands.find(root, "sh") is None
    (tmp_path / "usr/bin/dir").mkdir()
    assert commands.find(root, "dir") is None


@pytest.mark.skipif(os.geteuid() != 0, reason="chroot needs root")
def test_a_program_of_the_node_runs_inside_its_root(tmp_path: Path) -> None:
    busybox = next((path for path in ("/bin/busybox", "/usr/bin/busybox") if Path(path).exists()), None)
    if busybox is None:
        pytest.skip("no static busybox here")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/busybox").write_bytes(Path(busybox).read_bytes())
    (tmp_path / "bin/busybox").chmod(0o755)
    (tmp_path / "mark").write_text("inside\n")
    done = commands.run(Root(str(tmp_path)), ["busybox", "cat", "/mark"], 5)
    assert done.stdout == "inside\n"
