# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The role node_rdma holds to the modules that it calls: what it passes, what it undoes, what its page says."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.rdma.k8s.plugins.module_utils.core import kernel_modules, roce_qos
from ansible_collections.rdma.k8s.plugins.module_utils.host import nic_sysctl

ROOT = Path(__file__).resolve().parents[3]
ROLE = ROOT / "roles/node_rdma"
TARGETS = ("oke_dranet", "spiderpool_sriov", "ack_lingjun")
NOT_OF_THE_ROLE = {"fabric_probe", "ipvlan_child", "node_undo", "python_environment"}
"""Modules that change a node and that the role does not call for its settings."""


def read(name: str) -> Any:
    return yaml.safe_load((ROLE / name).read_text(encoding="utf-8"))


def documentation(module: str) -> dict[str, Any]:
    found = importlib.import_module("ansible_collections.rdma.k8s.plugins.modules." + module)
    return dict(yaml.safe_load(found.DOCUMENTATION))


def tasks() -> list[dict[str, Any]]:
    """All tasks, those of blocks too."""
    found, todo = [], list(read("tasks/configured.yml"))
    while todo:
        task = todo.pop(0)
        todo[:0] = task.get("block", [])
        found.append(task)
    return found


CALLS = [
    (key.rpartition(".")[2], value, task)
    for task in tasks()
    for key, value in task.items()
    if key.startswith("rdma.k8s.")
]
OPTIONS = read("meta/argument_specs.yml")["argument_specs"]["main"]["options"]
OWNERS = read("vars/main.yml")["__node_rdma_owners"]


LOOK = "node_settings_info"


def changing_modules() -> set[str]:
    return {
        path.stem
        for path in (ROOT / "plugins/modules").glob("*.py")
        if "- rdma.k8s.attributes.node_change" in path.read_text(encoding="utf-8")
    }


def test_every_module_that_changes_a_node_is_called_and_undone() -> None:
    assert sorted(changing_modules() - NOT_OF_THE_ROLE) == sorted(OWNERS)
    assert {name for name, _arguments, _task in CALLS} - {LOOK} == set(OWNERS)
    assert OPTIONS["node_rdma_skip"]["choices"] == OWNERS


@pytest.mark.parametrize(("module", "arguments"), [call[:2] for call in CALLS])
def test_modules_are_called_with_options_that_they_have(module: str, arguments: Any) -> None:
    options = documentation(module).get("options") or {}
    assert set(arguments or {}) <= set(options)
    required = {name for name, option in options.items() if option.get("required")}
    assert required <= set(arguments or {})


def test_every_call_can_be_left_out_and_has_a_tag() -> None:
    """The looks belong to other calls."""
    for module, _arguments, task in CALLS:
        if task["name"].startswith("Look "):
            continue
        assert module in str(task["when"]), module
        assert task["tags"], module


@pytest.mark.parametrize("target", TARGETS)
def test_presets_are_whole_and_valid(target: str) -> None:
    """S19, S36, S49: the values are taken by the modules as they are."""
    preset = read("vars/%s.yml" % target)["__node_rdma_preset"]
    assert sorted(preset) == ["modules", "mtu", "netns_mode", "qos", "sysctls"]
    assert preset["netns_mode"] in OPTIONS["node_rdma_netns_mode"]["choices"]
    assert kernel_modules.names_of(preset["modules"]) == preset["modules"]
    assert all(value in nic_sysctl.VALUES[name] for name, value in preset["sysctls"].items())
    assert set(preset["qos"]) <= set(OPTIONS["node_rdma_qos"]["options"])
    if preset["qos"]:
        wish = roce_qos.valid_wish(preset["qos"]["rdma_priority"], preset["qos"]["cnp_priority"], None, None)
        assert wish is not None
    assert preset["mtu"] in (0, 4200)


def test_there_is_one_file_for_each_target() -> None:
    assert OPTIONS["node_rdma_target"]["choices"] == list(TARGETS)
    assert sorted(path.stem for path in (ROLE / "vars").glob("*.yml")) == sorted(["main", *TARGETS])


@pytest.mark.parametrize(
    ("option", "module"), [("node_rdma_sysctls", "nic_sysctl"), ("node_rdma_qos", "roce_qos")]
)
def test_settings_of_a_dictionary_are_options_of_the_module_and_passed(option: str, module: str) -> None:
    (arguments,) = [arguments for name, arguments, _task in CALLS if name == module]
    assert set(OPTIONS[option]["options"]) <= set(documentation(module)["options"])
    assert set(OPTIONS[option]["options"]) <= set(arguments)


def test_consent_is_never_given_by_default() -> None:
    allowed = [name for name in OPTIONS if name.startswith("node_rdma_allow_")]
    assert len(allowed) == 3
    assert not any(read("defaults/main.yml")[name] for name in allowed)


@pytest.mark.parametrize("role", ["bootstrap", "node_rdma", "report"])
def test_the_page_of_a_role_names_every_variable(role: str) -> None:
    text = (ROOT / "roles" / role / "README.md").read_text(encoding="utf-8")
    spec = yaml.safe_load((ROOT / "roles" / role / "meta/argument_specs.yml").read_text(encoding="utf-8"))
    lost = [name for name in spec["argument_specs"]["main"]["options"] if "`%s`" % name not in text]
    assert lost == []
