# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Undo records of a node: listed, played back, whatever happens in between."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Optional

import pytest
import yaml

from ansible_collections.rdma.k8s.plugins.module_utils import bundle
from ansible_collections.rdma.k8s.plugins.module_utils.core import netns
from ansible_collections.rdma.k8s.plugins.module_utils.host import (
    memlock,
    netns_mode,
    oca,
    store,
    undo_report,
)
from ansible_collections.rdma.k8s.plugins.module_utils.host.changes import Changes
from ansible_collections.rdma.k8s.plugins.module_utils.host.files import Root
from ansible_collections.rdma.k8s.plugins.modules import node_undo
from ansible_collections.rdma.k8s.tests.support import change_run

CONF, NEW, VALUE = "/etc/modprobe.d/ib_core.conf", "/etc/new/drop-in.conf", "/proc/value"


def run(**options: Any) -> dict[str, Any]:
    return change_run.run(node_undo, **options)


def make(host: Path) -> Path:
    for directory in ("etc/modprobe.d", "proc"):
        (host / directory).mkdir(parents=True)
    (host / CONF[1:]).write_text("old\n")
    (host / VALUE[1:]).write_text("0\n")
    return host


def change(host: Path) -> None:
    with Changes(Root(str(host)), "first_module") as made:
        made.file(CONF, "new\n")
    with Changes(Root(str(host)), "second_module") as made:
        made.file(NEW, "x\n")
        made.value(VALUE, "1")


@pytest.fixture(name="host")
def host_fixture(tmp_path: Path) -> Path:
    make(tmp_path)
    change(tmp_path)
    return tmp_path


def state(host: Path) -> dict[str, str]:
    """Every file and directory of the node but our own store; values trimmed, as the kernel shows them."""
    paths = [path for path in host.rglob("*") if "var" not in path.relative_to(host).parts]
    return {str(path.relative_to(host)): path.read_text().strip() if path.is_file() else "" for path in paths}


OLD = {"etc", "etc/modprobe.d", "proc"}


def names(result: dict[str, Any]) -> list[tuple[str, str, str]]:
    return [(each["module"], each["name"], each["outcome"]) for each in result["records"]]


def test_a_node_without_records(tmp_path: Path) -> None:
    make(tmp_path)
    for wanted in ("listed", "undone"):
        result = run(host_root=str(tmp_path), state=wanted)
        assert (result["changed"], result["records"], result["actions"]) == (False, [], [])
    assert not (tmp_path / "var").exists()


def test_listing_tells_and_changes_nothing(host: Path) -> None:
    before = state(host)
    result = run(host_root=str(host))
    assert result["changed"] is False
    assert names(result) == [
        ("second_module", VALUE, "restored"),
        ("second_module", NEW, "restored"),
        ("second_module", "/etc/new", "restored"),
        ("first_module", CONF, "restored"),
    ]
    assert state(host) == before
    assert len(store.records(Root(str(host)))) == 4


def test_check_mode_says_what_the_run_does(host: Path) -> None:
    foreseen = run(host_root=str(host), state="undone", _ansible_check_mode=True, _ansible_diff=True)
    done = run(host_root=str(host), state="undone", _ansible_diff=True)
    for result in (foreseen, done):
        result.pop("invocation", None)
    assert foreseen == done
    assert done["actions"] == ["restore " + VALUE, "remove " + NEW, "remove /etc/new", "restore " + CONF]
    assert [(each["before"], each["after"]) for each in done["diff"]] == [
        ("1\n", "0\n"),
        ("x\n", ""),
        ("directory\n", "absent\n"),
        ("new\n", "old\n"),
    ]
    assert state(host) == dict.fromkeys(OLD, "") | {CONF[1:]: "old", VALUE[1:]: "0"}
    again = run(host_root=str(host), state="undone")
    assert (again["changed"], again["records"]) == (False, [])


@pytest.mark.parametrize("name", ["second_module", "rdma.k8s.second_module"])
def test_only_the_named_modules(host: Path, name: str) -> None:
    result = run(host_root=str(host), state="undone", modules=[name])
    assert {each["module"] for each in result["records"]} == {"second_module"}
    assert (host / CONF[1:]).read_text() == "new\n"
    assert not (host / NEW[1:]).exists()
    assert run(host_root=str(host), state="undone", modules=[])["records"] == []


def test_what_somebody_else_changed_is_kept_and_is_no_failure(host: Path) -> None:
    (host / CONF[1:]).write_text("theirs\n")
    result = run(host_root=str(host), state="undone")
    (kept,) = [each for each in result["records"] if each["outcome"] == "kept"]
    assert kept["name"] == CONF
    assert "somebody else" in kept["reason"]
    assert (host / CONF[1:]).read_text() == "theirs\n"


@pytest.mark.parametrize(("mode", "owed"), [("exclusive", True), ("shared", False), (None, False)])
def test_a_mode_that_only_a_boot_brings_back_is_owed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: Optional[str], owed: bool
) -> None:
    """S20, decision 15: the node was booted into the mode of our file, so that no live change is recorded."""
    make(tmp_path)
    (tmp_path / CONF[1:]).write_text("options ib_core netns_mode=1\n")
    with Changes(Root(str(tmp_path)), "netns_mode") as made:
        made.file(CONF, "options ib_core netns_mode=0\n")
    monkeypatch.setattr(netns_mode, "running", lambda root: netns.Reading(mode))
    foreseen = run(host_root=str(tmp_path), state="undone", _ansible_check_mode=True)
    listed = run(host_root=str(tmp_path))
    done = run(host_root=str(tmp_path), state="undone")
    for result in (foreseen, listed, done):
        assert result["reboot_required"] is owed
        assert result["reboot_reasons"] == (
            ["The RDMA subsystem runs in exclusive mode until a boot brings shared mode."] if owed else []
        )
    again = run(host_root=str(tmp_path), state="undone")
    assert (again["reboot_required"], again["restart_required"]) == (False, [])


def test_a_kernel_argument_decides_the_mode_of_the_next_boot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S26: it counts behind all files."""
    make(tmp_path)
    (tmp_path / "proc/cmdline").write_text("quiet ib_core.netns_mode=0\n")
    with Changes(Root(str(tmp_path)), "netns_mode") as made:
        made.file(CONF, "options ib_core netns_mode=0\n")
    monkeypatch.setattr(netns_mode, "running", lambda root: netns.Reading("exclusive"))
    assert run(host_root=str(tmp_path), state="undone")["reboot_required"] is False


def test_restarts_of_what_read_the_files_are_owed(tmp_path: Path) -> None:
    """F54, F57, decision 15: the agent, the driver and the runtime work with what they read."""
    make(tmp_path)
    unit = "/etc/systemd/system/containerd.service.d/" + memlock.DROP_IN
    with Changes(Root(str(tmp_path)), "oca_config") as made:
        made.file(oca.NETWORK, "{}")
    with Changes(Root(str(tmp_path)), "runtime_memlock") as made:
        made.file(unit, "[Service]\n")
    result = run(host_root=str(tmp_path), state="undone")
    assert [each["component"] for each in result["restart_required"]] == [
        "agent",
        "driver",
        "containerd.service",
    ]
    assert result["restart_required"][2]["command"] == "systemctl restart containerd.service"
    described = yaml.safe_load(node_undo.RETURN)
    assert set(result["restart_required"][0]) == set(described["restart_required"]["contains"])
    assert run(host_root=str(tmp_path), state="undone")["restart_required"] == []


def test_one_failure_does_not_stop_the_rest(host: Path) -> None:
    """The value cannot be read: it fails, the three others are restored, and the result says all of that."""
    (host / VALUE[1:]).unlink()
    (host / VALUE[1:]).mkdir()
    result = run(host_root=str(host), state="undone")
    assert result["failed"]
    assert result["code"] == "undo_failed"
    assert VALUE in result["msg"]
    assert result["details"]["names"] == [VALUE]
    assert result["changed"] is True
    assert [each["outcome"] for each in result["records"]] == ["failed", "restored", "restored", "restored"]
    assert (host / CONF[1:]).read_text() == "old\n"
    listed = run(host_root=str(host))
    assert [(each["name"], each["outcome"]) for each in listed["records"]] == [(VALUE, "failed")]


def test_a_record_that_cannot_be_read_fails_before_anything_is_restored(host: Path) -> None:
    before = state(host)
    (host / "var/lib/rdma-k8s/undo/zzz.json").write_text("{")
    result = run(host_root=str(host), state="undone")
    assert (result["code"], result["changed"]) == ("undo_record_wrong", False)
    assert state(host) == before


def test_the_library_is_asked_for_when_a_record_needs_it(host: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundle, "usable", lambda _library: False)
    monkeypatch.delenv(bundle.DIGEST, raising=False)
    assert "missing_libraries" not in run(host_root=str(host))
    (path, *_others) = (host / "var/lib/rdma-k8s/undo").glob("*.json")
    path.write_text(json.dumps({**json.loads(path.read_text()), "kind": "link_mtu"}))
    assert run(host_root=str(host))["missing_libraries"] == ["pyroute2"]


UNIT = "/etc/systemd/system/x.service.d/50-rdma-k8s.conf"


@pytest.mark.parametrize("running", [True, False])
def test_systemd_reads_restored_units_again(
    host: Path, monkeypatch: pytest.MonkeyPatch, running: bool
) -> None:
    calls: list[list[str]] = []
    monkeypatch.setattr(undo_report.commands, "run", lambda _root, argv, _limit: calls.append(argv))
    if running:
        (host / "run/systemd/system").mkdir(parents=True)
    with Changes(Root(str(host)), "third_module") as made:
        made.file(UNIT, "[Service]\n")
    run(host_root=str(host), state="undone", modules=["first_module"])
    run(host_root=str(host), state="undone", _ansible_check_mode=True)
    assert calls == []
    run(host_root=str(host), state="undone")
    assert calls == ([["systemctl", "daemon-reload"]] if running else [])


def test_killed_before_any_act_the_next_run_finishes(tmp_path: Path) -> None:
    before = state(make(tmp_path / "before"))
    number, died = 0, True
    while died:
        number += 1
        host = make(tmp_path / str(number))
        change(host)
        options = {"host_root": str(host), "state": "undone"}
        died = change_run.killed(node_undo, options, number)
        assert died or state(host) == before
        run(**options)
        assert state(host) == before, number
        assert store.records(Root(str(host))) == [], number
    assert number > 1, "it did nothing, so that there is nothing to interrupt"


def test_all_that_is_returned_is_described(host: Path) -> None:
    described = yaml.safe_load(node_undo.RETURN)
    result = run(host_root=str(host))
    assert set(result) - {"changed", "invocation", "warnings"} == set(described)
    assert set(result["records"][0]) == set(described["records"]["contains"])
