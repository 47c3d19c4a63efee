# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What several modules would change, asked in one run: the answers are those of the modules."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils import _node_settings as node_settings, bundle
from ansible_collections.rdma.k8s.plugins.modules import nic_sysctl, node_settings_info
from ansible_collections.rdma.k8s.tests.support import change_run, fleet, node_tree

SYSCTLS = {"arp_ignore": 1, "arp_announce": 2, "rp_filter": 2}


def files(root: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()
    }


@pytest.fixture(name="host")
def host_fixture() -> Iterator[Path]:
    with change_run.directory() as host:
        for name in ("all", "default", "rdma0"):
            place = host / "proc/sys/net/ipv4/conf" / name
            place.mkdir(parents=True)
            for key in ("accept_local", "arp_announce", "arp_filter", "arp_ignore", "rp_filter"):
                (place / key).write_text("0\n")
        (host / "etc/sysctl.d").mkdir(parents=True)
        yield host


def ask(host: Path, settings: dict[str, Any], **more: Any) -> dict[str, Any]:
    return change_run.good(node_settings_info, host_root=str(host), settings=settings, **more)


def test_the_answer_is_that_of_the_module_in_check_mode_and_nothing_changes(host: Path) -> None:
    before = files(host)
    found = ask(host, {"nic_sysctl": SYSCTLS}, nics=["rdma0"])
    assert files(host) == before
    alone = change_run.good(
        nic_sysctl, host_root=str(host), nics=["rdma0"], **SYSCTLS, _ansible_check_mode=True
    )
    assert (found["pending"], found["nics"], found["found"]) == (["nic_sysctl"], ["rdma0"], None)
    assert found["settings"]["nic_sysctl"] == {
        name: alone[name] for name in ("changed", "actions", "left_to_agent")
    }
    assert not found["changed"]


def test_what_is_right_is_not_pending(host: Path) -> None:
    change_run.good(nic_sysctl, host_root=str(host), nics=["rdma0"], **SYSCTLS)
    found = ask(host, {"nic_sysctl": SYSCTLS}, nics=["rdma0"])
    assert (found["pending"], found["settings"]["nic_sysctl"]["actions"]) == ([], [])


def test_a_refusal_is_pending_and_the_others_still_answer(host: Path) -> None:
    """The module itself says it then, as the run's failure."""
    found = ask(host, {"kernel_modules": {"modules": ["not a name"]}, "nic_sysctl": SYSCTLS}, nics=["rdma0"])
    assert found["pending"] == ["kernel_modules", "nic_sysctl"]
    refused = found["settings"]["kernel_modules"]
    assert (refused["changed"], refused["refused"]["code"]) == (False, "kernel_module_name_malformed")
    endless = {"rdma_network": "10.224.0.0/12", "imds_timeout": "inf"}
    refused = ask(host, {"oca_config": endless})["settings"]["oca_config"]
    assert refused["refused"]["code"] == "number_out_of_range"


@pytest.mark.parametrize(
    ("answer", "pending"),
    [
        ({"changed": False, "actions": []}, False),
        ({"changed": True, "actions": ["write a file"]}, True),
        ({"changed": False, "actions": [], "reboot_required": True}, True),
        ({"changed": False, "actions": [], "restart_required": [{"component": "agent"}]}, True),
        ({"changed": False, "actions": [], "restart_required": False, "notes": []}, False),
        ({"changed": False, "actions": [], "notes": ["Somebody else sets it, too."]}, True),
        ({"changed": False, "actions": [], "refused": {"code": "c", "message": "m"}}, True),
        (None, False),
    ],
)
def test_what_a_person_must_hear_of_is_pending(
    answer: Any, pending: bool, host: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(node_settings, "_answer", lambda *_given: answer)
    assert ask(host, {"runtime_memlock": {}})["pending"] == (["runtime_memlock"] if pending else [])


def test_nics_are_looked_for_when_nobody_names_them(tmp_path: Path) -> None:
    """F73, decision 15."""
    tree = tmp_path / "tree"
    node_tree.write(tree, fleet.node("BM.GPU.H100.8", name="n7"), gid_table=8)
    found = ask(tree, {"nic_mtu": {"mtu": 4220}}, only_rdma_network=True)
    assert found["nics"] == ["rdma%d" % number for number in range(16)]
    assert "eth0" in [nic["netdev"] for nic in found["found"]]
    assert not ask(tree, {"runtime_memlock": {}})["found"]


def test_without_nics_nobody_is_asked_about_them(host: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_settings, "collect", lambda **_given: None)
    monkeypatch.setattr(node_settings.nic_places, "as_dicts", lambda _snapshot: [])
    found = ask(host, {"nic_mtu": {"mtu": 4200}})
    assert (found["nics"], found["found"], found["pending"]) == ([], [], [])
    assert found["settings"] == {"nic_mtu": None}


@pytest.mark.parametrize(
    ("settings", "code", "words"),
    [
        ({"nic_speed": {}}, "node_setting_unknown", ("nic_speed", "kernel_modules, netns_mode, oca_config")),
        ({"netns_mode": {}}, "node_setting_options", ("netns_mode", "mode")),
        ({"netns_mode": {"mode": "private"}}, "node_setting_options", ("netns_mode", "private")),
        ({"netns_mode": {"mode": "shared", "host_root": "/mnt"}}, "node_setting_options", ("host_root",)),
        ({"nic_mtu": {"mtu": "large"}}, "node_setting_options", ("nic_mtu", "large")),
    ],
)
def test_a_wrong_wish_is_told(host: Path, settings: Any, code: str, words: tuple[str, ...]) -> None:
    result = change_run.failure(node_settings_info, host_root=str(host), settings=settings)
    assert result["code"] == code
    assert all(word in result["msg"] for word in words)


def test_every_setting_takes_the_options_of_its_module() -> None:
    for name, setting in node_settings.SETTINGS.items():
        assert setting.arguments["host_root"] == {"type": "path", "default": "/"}, name
        assert not setting.nics or setting.arguments[setting.nics]["required"], name


def test_the_library_is_asked_for_where_netlink_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundle, "usable", lambda _library: False)
    result = change_run.failure(node_settings_info, settings={"nic_mtu": {"mtu": 4200}})
    assert result["missing_libraries"] == ["pyroute2"]
