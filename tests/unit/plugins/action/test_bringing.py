# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The action plugin that brings libraries: one run where nothing is missing, one copy and one run more where it is."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ansible_collections.rdma.k8s.plugins.action import nic_info, node_info
from ansible_collections.rdma.k8s.plugins.module_utils import bundle
from ansible_collections.rdma.k8s.plugins.plugin_utils import archives, bringing

DIGEST = "a" * 64
MISSING = {"failed": True, "msg": "Failed to import.", "missing_libraries": ["pyroute2"]}
GOOD = {"changed": False, "snapshot": {}}


class Action(bringing.BringingAction):
    """The plugin with a node that gives the answers of a list."""

    LIBRARIES = ("pyroute2",)

    def __init__(self, answers: list[dict[str, Any]]) -> None:
        self.answers = answers
        self.runs: list[dict[str, str]] = []
        self.log: list[str] = []
        self._task = SimpleNamespace(environment=[{"LANG": "C"}], async_val=0, check_mode=False, args={})
        shell = SimpleNamespace(tmpdir=None, join_path=lambda *parts: "/".join(parts))
        self._connection = SimpleNamespace(_shell=shell)
        self._play_context = SimpleNamespace(remote_addr="n1")

    def _execute_module(self, **_arguments: Any) -> dict[str, Any]:  # type: ignore[override]
        found: dict[str, str] = {}
        for entry in self._task.environment:
            found.update(entry)
        self.runs.append(found)
        return dict(self.answers.pop(0))

    def _make_tmp_path(self, _user: Any = None) -> str:  # type: ignore[override]
        self.log.append("make")
        self._connection._shell.tmpdir = "/tmp/x"
        return "/tmp/x"

    def _transfer_file(self, local_path: str, remote_path: str) -> str:
        assert Path(local_path).read_bytes() == b"archive"
        self.log.append("copy " + remote_path)
        return remote_path

    def _fixup_perms2(self, paths: Any, *_more: Any) -> None:  # type: ignore[override]
        self.log.append("permit " + " ".join(paths))

    def _remove_tmp_path(self, tmp_path: Any, force: bool = False) -> None:
        self.log.append("remove %s" % tmp_path)


@pytest.fixture(autouse=True, name="local")
def local_fixture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "a.zip"
    path.write_bytes(b"archive")
    monkeypatch.setattr(
        archives, "archive", lambda _minimum, _cache: archives.Archive(DIGEST, str(path), temporary=True)
    )
    monkeypatch.setattr(bringing.ActionBase, "run", lambda self, tmp=None, task_vars=None: {})
    return path


def test_a_node_that_has_the_library_is_asked_once(local: Path) -> None:
    action = Action([GOOD])
    assert action.run(task_vars={}) == GOOD
    assert action.runs == [{"LANG": "C", bundle.DIGEST: DIGEST}]
    assert action.log == ["remove None"]
    assert action._task.environment == [{"LANG": "C"}]
    assert not local.exists()


def test_a_node_without_the_library_gets_it_and_is_asked_again(local: Path) -> None:
    action = Action([MISSING, GOOD])
    assert action.run(task_vars={}) == GOOD
    assert action.runs[1] == {"LANG": "C", bundle.DIGEST: DIGEST, bundle.ARCHIVE: "/tmp/x/libraries.zip"}
    assert action.log == [
        "make",
        "copy /tmp/x/libraries.zip",
        "permit /tmp/x /tmp/x/libraries.zip",
        "remove /tmp/x",
    ]
    assert action._task.environment == [{"LANG": "C"}]
    assert not local.exists()


def test_a_library_that_is_still_missing_is_a_failure_and_not_a_loop() -> None:
    action = Action([MISSING, MISSING])
    result = action.run(task_vars={})
    assert result["failed"]
    assert "missing_libraries" not in result
    assert len(action.runs) == 2


def test_another_failure_brings_nothing() -> None:
    action = Action([{"failed": True, "msg": "other"}])
    assert action.run(task_vars={}) == {"failed": True, "msg": "other"}
    assert action.log == ["remove None"]


def test_a_controller_without_the_library_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_minimum: Any, _cache: Any) -> Any:
        raise archives.NotAvailableError("pyroute2 is not installed on the controller.")

    monkeypatch.setattr(archives, "archive", refuse)
    action = Action([MISSING])
    result = action.run(task_vars={})
    assert result["msg"] == (
        "Failed to import. It cannot be brought along either: pyroute2 is not installed on the controller."
    )
    assert action.runs == [{"LANG": "C"}]
    assert Action([GOOD]).run(task_vars={}) == GOOD


def test_what_was_made_is_removed_when_the_connection_breaks(local: Path) -> None:
    action = Action([MISSING])

    def broken(_local: str, _remote: str) -> str:
        raise ConnectionError("gone")

    action._transfer_file = broken  # type: ignore[method-assign]
    with pytest.raises(ConnectionError):
        action.run(task_vars={})
    assert action.log[-1] == "remove /tmp/x"
    assert not local.exists()


@pytest.mark.parametrize("plugin", [node_info, nic_info])
def test_the_plugins_of_the_modules(plugin: Any) -> None:
    assert plugin.ActionModule.LIBRARIES == ("pyroute2",)
    assert plugin.ActionModule._supports_check_mode
    assert not plugin.ActionModule._supports_async
