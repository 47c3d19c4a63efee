# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A command that works for long says so on standard error, and nowhere else."""

from __future__ import annotations

import io
import json
import threading
from functools import partial
from typing import Any, Optional

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils import progress
from ansible_collections.rdma.k8s.plugins.module_utils.cli import main, sources
from ansible_collections.rdma.k8s.plugins.module_utils.cli.progress import Progress
from ansible_collections.rdma.k8s.plugins.module_utils.cli.terminal import Terminal

PATIENCE = 60.0


class Told(io.StringIO):
    """A stream that can be waited for."""

    def __init__(self) -> None:
        super().__init__()
        self.told = threading.Event()

    def write(self, text: str) -> int:
        written = super().write(text)
        self.told.set()
        return written


class Screen(io.StringIO):
    """Standard output that is a terminal."""

    def isatty(self) -> bool:
        return True


class Script:
    """Time that passes only while the watching thread waits; ``spoken`` are the times at which something is shown."""

    def __init__(self, until: float, spoken: tuple[float, ...] = ()) -> None:
        self.now, self.until, self.spoken = 0.0, until, list(spoken)
        self.progress: Optional[Progress] = None

    def monotonic(self) -> float:
        return self.now

    def wait(self, seconds: float) -> bool:
        end = self.now + seconds
        while self.spoken and self.spoken[0] <= end:
            self.now = self.spoken.pop(0)
            assert self.progress is not None
            self.progress.spoke()
        self.now = end
        return self.now > self.until


def watched(monkeypatch: pytest.MonkeyPatch, script: Script) -> list[str]:
    """The lines of a watch over scripted time."""
    monkeypatch.setattr(progress, "time", script)
    stream = io.StringIO()
    found = script.progress = Progress(stream)
    found.doing("judging 12 nodes")
    monkeypatch.setattr(found, "_over", script)
    found._watch()
    return stream.getvalue().splitlines()


def line(seconds: int) -> str:
    return "rdma-k8s: still judging 12 nodes, %d s so far" % seconds


def test_a_line_after_each_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    assert watched(monkeypatch, Script(35.0)) == [line(10), line(20), line(30)]


def test_nothing_before_the_first_pause_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    assert watched(monkeypatch, Script(9.0)) == []


def test_the_pause_begins_anew_when_the_user_saw_something(monkeypatch: pytest.MonkeyPatch) -> None:
    assert watched(monkeypatch, Script(35.0, (4.0, 9.0, 15.0))) == [line(25), line(35)]


def test_a_stream_that_is_gone_is_no_error() -> None:
    broken = io.StringIO()
    broken.close()
    for stream in (None, broken):
        with Progress(stream, 0.001) as running:
            running._say("still here")
    assert not running._thread.is_alive()


def test_only_a_terminal_counts_as_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    monkeypatch.setattr(Progress, "spoke", lambda self: seen.append("spoke"))
    for stream, count in ((io.StringIO(), 0), (Screen(), 1)):
        seen.clear()
        terminal = Terminal(stream)
        terminal.progress = Progress(None)
        terminal.write("a row\n")
        assert len(seen) == count


def test_a_slow_judgement_is_told_beside_the_output(
    run: Any, recorded: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Standard output is JSON as ever; the lines stand on standard error and end with the command."""
    stream, judged = Told(), sources.judged

    def slow(*given: Any) -> Any:
        stream.told.clear()
        assert stream.told.wait(PATIENCE), "nothing was told"
        return judged(*given)

    monkeypatch.setattr(sources, "judged", slow)
    monkeypatch.setattr(main, "Progress", lambda _stderr: partial(Progress, pause=0.01)(stream))
    document = json.loads(run("report", recorded, "--format", "json").good())
    lines = stream.getvalue().splitlines()
    assert "rdma-k8s: still judging %d nodes, 0 s so far" % len(document["nodes"]) in lines
    assert all(text.startswith("rdma-k8s: still ") for text in lines)


def test_a_quick_command_says_nothing(program: Any, recorded: Any) -> None:
    program("report", recorded).good()


def test_no_thread_is_left(run: Any, recorded: Any) -> None:
    run("report", recorded).good()
    run("report", "/nowhere").refused()
    assert [thread for thread in threading.enumerate() if thread.name == "progress"] == []
