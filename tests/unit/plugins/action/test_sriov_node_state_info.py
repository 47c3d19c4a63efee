# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is displayed while sriov_node_state_info waits, and when the module does the work as any other module."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ansible.errors import AnsibleActionFail
from ansible.playbook.play_context import PlayContext

from ansible_collections.rdma.k8s.plugins.action import sriov_node_state_info
from ansible_collections.rdma.k8s.plugins.module_utils.cluster import sriov_states
from ansible_collections.rdma.k8s.tests.support import api_server
from ansible_collections.rdma.k8s.tests.support.action_plugin import connection, made, task_of
from ansible_collections.rdma.k8s.tests.support.api_server import ApiServer
from ansible_collections.rdma.k8s.tests.unit.plugins.action.test_validate import Recorder
from ansible_collections.rdma.k8s.tests.unit.plugins.modules.test_sriov_node_state_info import Wire, state


class Screen(Recorder):
    """Takes what is displayed, and what only -v shows."""

    def __init__(self) -> None:
        super().__init__()
        self.quiet: list[str] = []

    def vv(self, text: str) -> None:
        self.quiet.append(text)


class Run:
    """The plugin in a task on the controller."""

    def __init__(self) -> None:
        self.display = Screen()
        self.task = task_of({})
        self.task.environment = []
        self.context = PlayContext()
        self.connection = connection()
        self.handed: list[dict[str, Any]] = []

    def __call__(self, **args: Any) -> dict[str, Any]:
        self.task.args = args
        own = {"connection": self.connection, "play_context": self.context}
        action = made(sriov_node_state_info.ActionModule, self.task, display=self.display, **own)
        action._execute_module = self._hand
        result: dict[str, Any] = action.run(task_vars={})
        return result

    def _hand(self, **options: Any) -> dict[str, Any]:
        self.handed.append(options)
        return {"state": "of the module"}


@pytest.fixture
def api() -> Iterator[ApiServer]:
    with api_server.serving() as server:
        yield server


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sriov_states, "PAUSE", 0.01)


def test_phases_are_displayed_while_it_waits(api: ApiServer, tmp_path: Path) -> None:
    api.route = Wire(state("InProgress"), state())
    play = Run()
    found = play(kubeconfig=api.kubeconfig(tmp_path), timeout=20, settle=0)
    assert (found["state"], found["changed"], play.handed) == ("ready", False, [])
    assert [line.split("s  ", 1)[1] for line in play.display.shown] == [
        "configuring: w1",
        "configuring -> ready: w1",
    ]
    assert [entry["phase"] for entry in found["nodes"][0]["phases"]] == ["configuring", "ready"]


def test_a_listener_that_is_gone_ends_nothing(
    api: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    api.route = Wire(state())
    play = Run()

    def broken(text: str) -> None:
        raise BrokenPipeError(32, "Broken pipe")

    monkeypatch.setattr(play.display, "display", broken)
    assert play(kubeconfig=api.kubeconfig(tmp_path), timeout=20, settle=0)["state"] == "ready"


def remote(play: Run) -> None:
    play.connection.transport = "ssh"


def as_another(play: Run) -> None:
    play.context.become = True


def in_an_environment(play: Run) -> None:
    play.task.environment = [{"HTTPS_PROXY": "http://127.0.0.1:1"}]


def in_background(play: Run) -> None:
    play.task.async_val = 60


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (remote, "another machine"),
        (as_another, "another user"),
        (in_an_environment, "an environment"),
        (in_background, "async"),
    ],
)
def test_elsewhere_the_module_waits(change: Any, reason: str) -> None:
    play = Run()
    change(play)
    assert play(kubeconfig="/nowhere", timeout=20)["state"] == "of the module"
    assert play.display.shown == []
    assert reason in play.display.quiet[0]
    (options,) = play.handed
    assert options["wrap_async"] is (reason == "async")


def test_without_the_library_the_module_says_what_it_finds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sriov_node_state_info.bundle, "prepare", list)
    play = Run()
    assert play(kubeconfig="/nowhere", timeout=20)["state"] == "of the module"
    assert "Ansible itself lacks kubernetes" in play.display.quiet[0]


@pytest.mark.parametrize("args", [{"timeout": 20, "show": False}, {"timeout": 0}])
def test_nothing_to_show(args: dict[str, Any]) -> None:
    play = Run()
    assert play(kubeconfig="/nowhere", **args)["state"] == "of the module"
    assert play.display.shown == []


def test_what_is_wrong_is_told_as_the_module_does(tmp_path: Path) -> None:
    play = Run()
    with pytest.raises(AnsibleActionFail) as caught:
        play(kubeconfig=str(tmp_path / "none"), timeout=90000)
    assert caught.value.result["code"] == "number_out_of_range"
    assert caught.value.__cause__ is None
    with pytest.raises(AnsibleActionFail, match="Unsupported parameters"):
        play(kubeconfig=str(tmp_path / "none"), tiemout=1)
