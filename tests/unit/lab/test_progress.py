# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lines about long work, and the log of commands."""

from __future__ import annotations

import io
import pathlib
import time

import pytest

from ansible_collections.rdma.k8s.tests.lab import progress
from ansible_collections.rdma.k8s.tests.lab.errors import LabError


def test_lines_have_the_time() -> None:
    stream = io.StringIO()
    ticks = iter([0.0, 1.5, 62.25])
    this = progress.Progress(stream, clock=lambda: next(ticks))
    this.say("one")
    this.say("two")
    assert stream.getvalue() == "[   1.5 s] one\n[  62.2 s] two\n"


def test_a_long_step_shows_that_it_lives(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "HEARTBEAT", 0.02)
    stream = io.StringIO()
    this = progress.Progress(stream)
    with this.step("work"):
        end = time.monotonic() + 10
        while "still at it" not in stream.getvalue() and time.monotonic() < end:
            time.sleep(0.01)
    lines = [line.split("] ", 1)[1] for line in stream.getvalue().splitlines()]
    assert lines[0] == "work ..."
    assert lines[1] == "work: still at it after 0 s"
    assert lines[-1].startswith("work: done in ")


def test_a_step_that_fails_is_not_called_done() -> None:
    stream = io.StringIO()
    with pytest.raises(LabError), progress.Progress(stream).step("work"):
        raise LabError("no", "no")
    assert "done" not in stream.getvalue()


def test_a_failed_command_shows_its_own_last_lines(tmp_path: pathlib.Path) -> None:
    log = tmp_path / "logs" / "build.log"
    progress.run_logged(["sh", "-c", "echo earlier"], log)
    with pytest.raises(LabError) as caught:
        progress.run_logged(["sh", "-c", "echo one; echo two >&2; exit 3"], log)
    assert str(caught.value) == f"sh ended with code 3: one | two (all of it is in {log})."
    assert log.read_text().splitlines()[:2] == ["$ sh -c echo earlier", "earlier"]


def test_a_silent_failure(tmp_path: pathlib.Path) -> None:
    with pytest.raises(LabError, match="false ended with code 1: no output"):
        progress.run_logged(["false"], tmp_path / "log")
