# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The limit of locked memory of the container runtimes. systemd is a stand-in here; the lab has a real one."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.rdma.k8s.plugins.module_utils.core.errors import RdmaError
from ansible_collections.rdma.k8s.plugins.module_utils.host import memlock
from ansible_collections.rdma.k8s.plugins.module_utils.host.commands import Completed
from ansible_collections.rdma.k8s.plugins.module_utils.host.files import Root
from ansible_collections.rdma.k8s.plugins.modules import runtime_memlock
from ansible_collections.rdma.k8s.tests.support import change_run

DROP_IN = "etc/systemd/system/containerd.service.d/50-rdma-k8s-memlock.conf"
LIMITS = "Limit  Soft Limit  Hard Limit  Units\nMax locked memory  %s  %s  bytes\n"


class Systemd:
    """Units of a tree: what is loaded is in ``run/loaded``, processes are in ``proc``."""

    def __init__(self, host: Path) -> None:
        self.host = host
        self.calls: list[str] = []
        (host / "run").mkdir()
        (host / "proc/7").mkdir(parents=True)
        (host / "etc/systemd/system").mkdir(parents=True)
        self.loaded = host / "run/loaded"
        self.loaded.write_text("65536")
        self.overruled = False
        self.start("65536")

    def start(self, limit: str) -> None:
        (self.host / "proc/7/limits").write_text(LIMITS % (limit, limit))

    def on_disk(self) -> str:
        return "infinity" if (self.host / DROP_IN).exists() and not self.overruled else "65536"

    def run(self, root: Root, argv: Sequence[str], _limit: float) -> Completed:
        assert root.path == str(self.host)
        self.calls.append(" ".join(argv[:2]))
        if argv[1] == "daemon-reload":
            self.loaded.write_text(self.on_disk())
        elif argv[1] == "restart":
            self.start("unlimited" if self.loaded.read_text() == "infinity" else "65536")
        else:
            blocks = []
            for unit in argv[argv.index("--") + 1 :]:
                block = "Id=%s\nLoadState=not-found\nMainPID=0" % unit
                if unit == "containerd.service":
                    stale = "yes" if self.loaded.read_text() != self.on_disk() else "no"
                    block = "MainPID=7\nLimitMEMLOCK=%s\nId=%s\nLoadState=loaded\nNeedDaemonReload=%s"
                    block %= (self.loaded.read_text(), unit, stale)
                blocks.append(block)
            return Completed("\n\n".join(blocks) + "\n", "", 0)
        return Completed("", "", 0)


@pytest.fixture(name="systemd")
def systemd_fixture(monkeypatch: pytest.MonkeyPatch) -> Iterator[Systemd]:
    with change_run.directory() as host:
        systemd = Systemd(host)
        monkeypatch.setattr(memlock.commands, "run", systemd.run)
        yield systemd


def options(systemd: Systemd, **more: Any) -> dict[str, Any]:
    return {"host_root": str(systemd.host), **more}


def test_the_limit_is_lifted_and_the_restart_is_owed(systemd: Systemd) -> None:
    foreseen = change_run.good(runtime_memlock, **options(systemd), _ansible_check_mode=True)
    assert not (systemd.host / DROP_IN).exists()
    assert "systemctl daemon-reload" not in systemd.calls
    done = change_run.good(runtime_memlock, **options(systemd))
    assert done["actions"] == foreseen["actions"]
    assert done["actions"] == ["write /" + DROP_IN]
    assert (systemd.host / DROP_IN).read_text() == memlock.TEXT
    assert done["units"] == [
        {"unit": "containerd.service", "configured": "infinity", "running": "65536", "restart_required": True}
    ]
    assert done["restart_required"] is True
    assert "systemctl restart" not in systemd.calls
    again = change_run.good(runtime_memlock, **options(systemd))
    assert (again["changed"], again["restart_required"]) == (False, True)


def test_a_restart_needs_consent_and_happens_once(systemd: Systemd) -> None:
    foreseen = change_run.good(runtime_memlock, **options(systemd, restart=True), _ansible_check_mode=True)
    done = change_run.good(runtime_memlock, **options(systemd, restart=True))
    assert foreseen["actions"] == done["actions"] == ["write /" + DROP_IN, "restart containerd.service"]
    assert done["restart_required"] is False
    again = change_run.good(runtime_memlock, **options(systemd, restart=True))
    assert again["changed"] is False
    assert systemd.calls.count("systemctl restart") == 1


def test_a_runtime_that_has_the_limit_gets_no_file(systemd: Systemd) -> None:
    systemd.overruled = True
    systemd.loaded.write_text("18446744073709551615")
    systemd.start("unlimited")
    systemd.on_disk = lambda: "18446744073709551615"  # type: ignore[method-assign]
    result = change_run.good(runtime_memlock, **options(systemd))
    assert (result["changed"], result["restart_required"]) == (False, False)
    assert not (systemd.host / DROP_IN).exists()


def test_a_node_without_a_runtime(systemd: Systemd, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memlock, "RUNTIMES", ("crio",))
    result = change_run.good(runtime_memlock, **options(systemd))
    assert (result["changed"], result["units"], result["restart_required"]) == (False, [], False)


@pytest.mark.parametrize("name", ["crio", "--force", "a b", "x/y"])
def test_a_named_runtime_that_is_not_there(systemd: Systemd, name: str) -> None:
    result = change_run.failure(runtime_memlock, **options(systemd, units=[name]))
    assert result["code"] == "runtime_unknown"
    assert name in result["msg"]


def test_a_file_that_another_one_overrules_is_a_failure(systemd: Systemd) -> None:
    systemd.overruled = True
    result = change_run.failure(runtime_memlock, **options(systemd))
    assert (result["code"], result["changed"]) == ("memlock_without_effect", True)
    assert "systemctl cat containerd.service" in result["msg"]


def test_a_missing_systemctl_is_named(systemd: Systemd, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_each: Any) -> Completed:
        raise RdmaError("tool_missing", "The program systemctl is needed and not on this node.")

    monkeypatch.setattr(memlock.commands, "run", missing)
    assert change_run.failure(runtime_memlock, **options(systemd))["code"] == "tool_missing"


def test_killed_before_any_act(systemd: Systemd) -> None:
    def loaded() -> dict[str, str]:
        systemd.run(Root(str(systemd.host)), ["systemctl", "daemon-reload"], 1)
        return {}

    number = change_run.killed_everywhere(
        "runtime_memlock", options(systemd), systemd.host, {DROP_IN: memlock.TEXT}, probe=loaded
    )
    assert number > 10


def test_a_run_killed_before_the_reload_is_repaired(systemd: Systemd) -> None:
    """The file is there, and systemd does not know it: the next run tells it."""
    (systemd.host / DROP_IN).parent.mkdir()
    (systemd.host / DROP_IN).write_text(memlock.TEXT)
    result = change_run.good(runtime_memlock, **options(systemd))
    assert result["changed"] is False
    assert result["units"][0]["configured"] == "infinity"


def test_all_that_is_returned_is_described(systemd: Systemd) -> None:
    result = json.loads(json.dumps(change_run.good(runtime_memlock, **options(systemd))))
    described = yaml.safe_load(runtime_memlock.RETURN)
    assert set(result) - {"changed"} == set(described)
    assert set(result["units"][0]) == set(described["units"]["contains"])
