# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is displayed while a module waits, and that its task runs as any other."""

from __future__ import annotations

import importlib
import os
import stat
import threading
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from ansible.playbook.play_context import PlayContext

from ansible_collections.rdma.k8s.plugins.action import drain
from ansible_collections.rdma.k8s.plugins.module_utils import news, progress
from ansible_collections.rdma.k8s.plugins.plugin_utils import showing
from ansible_collections.rdma.k8s.plugins.plugin_utils.watching import WatchingAction
from ansible_collections.rdma.k8s.tests.support.action_plugin import connection, made, task_of

PATIENCE = 60.0
WATCHED = (
    *("ack_addon", "ack_verify", "drain", "dranet_check", "node_agent_info"),
    *("spiderpool_ready_info", "spiderpool_restart"),
)
WAITING = "waiting at most 900 s for 3 pods on 2 nodes to go"
ENVIRONMENT = {"HTTPS_PROXY": "http://127.0.0.1:1"}


class Screen:
    """Takes what is displayed, and where."""

    def __init__(self) -> None:
        self.shown: list[tuple[str, dict[str, Any]]] = []
        self.told = threading.Event()

    def display(self, text: str, **options: Any) -> None:
        self.shown.append((text, options))
        self.told.set()


class Play:
    """The plugin in a task whose module tells something, and waits until it was displayed."""

    def __init__(self, wait: bool = True) -> None:
        self.display = Screen()
        self.wait = wait
        self.task = task_of({"nodes": ["n1"]})
        self.task.environment = [dict(ENVIRONMENT)]
        self.context = PlayContext()
        self.connection = connection()
        self.runs: list[dict[str, str]] = []
        self.modes: list[int] = []

    def __call__(self) -> dict[str, Any]:
        own = {"connection": self.connection, "play_context": self.context}
        action = made(drain.ActionModule, self.task, display=self.display, **own)
        action._execute_module = self._module
        result: dict[str, Any] = action.run(task_vars={})
        return result

    def _module(self, **_options: Any) -> dict[str, Any]:
        environment = {key: text for entry in self.task.environment for key, text in entry.items()}
        self.runs.append(environment)
        if news.VARIABLE in environment:
            path = Path(environment[news.VARIABLE])
            self.modes.append(stat.S_IMODE(path.stat().st_mode))
            path.write_text(WAITING + "\n")
        if self.wait:
            self.display.told.clear()
            assert self.display.told.wait(PATIENCE), "nothing was displayed"
        return {"changed": True, "evicted": []}

    @property
    def lines(self) -> list[str]:
        return [text for text, _options in self.display.shown]


@pytest.fixture(autouse=True)
def _no_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(showing.progress, "Progress", partial(progress.Progress, pause=0.02))


def test_what_the_module_tells_is_displayed_beside_the_output() -> None:
    play = Play()
    assert play() == {"changed": True, "evicted": []}
    text, options = play.display.shown[-1]
    assert text == "rdma.k8s.drain: still %s, 0 s so far" % WAITING
    assert options == {"stderr": True}
    assert play.modes == [0o600]


def test_the_task_has_its_own_environment_and_nothing_stays() -> None:
    play = Play()
    play()
    (environment,) = play.runs
    path = environment.pop(news.VARIABLE)
    assert environment == ENVIRONMENT
    assert play.task.environment == [ENVIRONMENT]
    assert not os.path.exists(path)
    assert [thread for thread in threading.enumerate() if thread.name == "progress"] == []


def test_a_quick_module_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(showing.progress, "Progress", partial(progress.Progress, pause=PATIENCE))
    play = Play(wait=False)
    play()
    assert play.display.shown == []


def test_on_another_machine_only_the_time_is_told() -> None:
    play = Play()
    play.connection.transport, play.context.remote_addr = "ssh", "bastion"
    play()
    assert play.runs == [ENVIRONMENT]
    assert play.lines[-1] == "rdma.k8s.drain on bastion: still at work, 0 s so far"


def test_with_no_log_only_the_time_is_told() -> None:
    play = Play()
    play.task.no_log = True
    play()
    assert play.runs == [ENVIRONMENT]
    assert play.lines[-1] == "rdma.k8s.drain: still at work, 0 s so far"


def test_in_the_background_nothing_is_told() -> None:
    play = Play(wait=False)
    play.task.async_val = 60
    play()
    assert (play.runs, play.display.shown) == ([ENVIRONMENT], [])


def test_a_module_that_breaks_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    play = Play(wait=False)

    def broken(**_options: Any) -> dict[str, Any]:
        play.runs.append(dict(play.task.environment[-1]))
        raise KeyboardInterrupt

    monkeypatch.setattr(play, "_module", broken)
    with pytest.raises(KeyboardInterrupt):
        play()
    assert not os.path.exists(play.runs[0][news.VARIABLE])
    assert play.task.environment == [ENVIRONMENT]


def test_a_listener_that_is_gone_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    play = Play()

    def broken(_text: str, **_options: Any) -> None:
        play.display.told.set()
        raise BrokenPipeError(32, "Broken pipe")

    monkeypatch.setattr(play.display, "display", broken)
    assert play()["changed"] is True


def test_a_long_line_keeps_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    play = Play()
    monkeypatch.setattr(news, "newest", lambda _path: "waiting for\x1b %s" % ("a, b" * 100))
    play()
    text = play.lines[-1].removeprefix("rdma.k8s.drain: ")
    assert len(text) == showing.WIDTH
    assert text.endswith("..., 0 s so far")
    assert "\x1b" not in text


@pytest.mark.parametrize("name", WATCHED)
def test_who_is_watched(name: str) -> None:
    package = "ansible_collections.rdma.k8s.plugins"
    action = importlib.import_module("%s.action.%s" % (package, name))
    assert issubclass(action.ActionModule, WatchingAction)
    documentation = importlib.import_module("%s.modules.%s" % (package, name)).DOCUMENTATION
    assert "- rdma.k8s.attributes.watched\n" in documentation
