# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The role nic_driver: with a stand-in for the package manager, over the tree of a node that has its own modinfo."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.rdma.k8s.tests.support.driver_tree import MODULES, DriverTree
from ansible_collections.rdma.k8s.tests.support.playbook import COLLECTION, Controller, Result, Run

ROLE = COLLECTION / "roles" / "nic_driver"
BUSYBOX = next((path for path in ("/bin/busybox", "/usr/bin/busybox") if Path(path).exists()), "")
MODINFO = """#!/bin/busybox sh
[ -f "/installed/$4" ] || exit 1
exec /bin/busybox cat "/installed/$4"
"""
MANAGER = """#!/usr/bin/python
from __future__ import annotations

import json
import pathlib

from ansible.module_utils.basic import AnsibleModule

module = AnsibleModule({"name": {"type": "list"}, "state": {}}, supports_check_mode=True)
place = pathlib.Path(PLACE)
wanted = json.loads((place / "repository.json").read_text())
names = module.params["name"]
known = json.loads((place / "packages.json").read_text())
changed = [name for name in names if name not in known]
if changed and not module.check_mode:
    (place / "packages.json").write_text(json.dumps(known + changed))
    for name in ("mlx5_core", "mlx5_ib"):
        version = wanted[changed[0]]
        (place / "node/installed" / name).write_text("version: %s\\nsrcversion: S%s\\n" % (version, version))
module.exit_json(changed=bool(changed))
"""


def read(path: str) -> Any:
    return yaml.safe_load((ROLE / path).read_text(encoding="utf-8"))


def tasks() -> list[dict[str, Any]]:
    """All tasks, those of blocks with the conditions of their block."""
    found = []
    for task in read("tasks/main.yml"):
        found.append(task)
        found += [{**inner, "of_block": task["when"]} for inner in task.get("block", [])]
    return found


class Node:
    """A node with the driver of its kernel, and a repository that has another one."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.tree = DriverTree(folder / "node").running("6.8.0").bound()
        for place, text in (
            ("bin/busybox", Path(BUSYBOX).read_bytes()),
            ("usr/sbin/modinfo", MODINFO.encode()),
        ):
            path = self.tree.root / place
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text)
            path.chmod(0o755)
        for name in MODULES:
            self.tree.write("installed/" + name, "version: 6.8.0\nsrcversion: S6.8.0")
        (folder / "repository.json").write_text(json.dumps({"doca-ofed": "25.07"}))
        (folder / "packages.json").write_text("[]")
        home, work = folder / "home", folder / "run"
        (work / "library").mkdir(parents=True)
        home.mkdir()
        manager = MANAGER.replace("PLACE", repr(str(folder)))
        (work / "library/stand_in_manager.py").write_text(manager)
        play = {
            "hosts": "localhost",
            "connection": "local",
            "gather_facts": False,
            "module_defaults": {"rdma.k8s.nic_driver_info": {"host_root": str(self.tree.root)}},
            "vars": {
                "ansible_python_interpreter": sys.executable,
                "ansible_package_use": "ansible.legacy.stand_in_manager",
            },
            "roles": ["rdma.k8s.nic_driver"],
        }
        (work / "play.yml").write_text(json.dumps([play]))
        self.run = Run(Controller(home, folder / "compiled"), work, "play.yml")

    def __call__(self, *words: str, **variables: Any) -> Result:
        return self.run(*words, variables={"nic_driver_" + key: value for key, value in variables.items()})

    def packages(self) -> list[str]:
        return list(json.loads((self.folder / "packages.json").read_text()))


@pytest.fixture
def node(tmp_path: Path) -> Node:
    if not BUSYBOX or os.geteuid():
        pytest.skip("needs root and a static busybox")
    return Node(tmp_path)


def test_it_installs_and_tells_the_reboot_and_then_proves_it(node: Node) -> None:
    """S2, S3: no reboot without consent, and no change the second time."""
    foreseen = node("--check").good()
    assert '"install doca-ofed"' in foreseen
    assert node.packages() == []
    first = node()
    assert '"install doca-ofed"' in first.good()
    assert "mlx5_core runs as 6.8.0, and 25.07 is installed." in first.text
    assert node.packages() == ["doca-ofed"]
    owed = node()
    assert "Reboot: mlx5_core runs as 6.8.0" in owed.good()
    assert owed.recap("localhost")["changed"] == 0
    node.tree.running("25.07")  # somebody has rebooted it
    proven = node()
    assert '"owed": []' in proven.good()
    assert '"version": "25.07"' in proven.text
    assert proven.recap("localhost")["changed"] == 0
    node.tree.function("0000:86:00.1")
    assert "0000:86:00.1 is bound to no driver, not to mlx5_core." in node().failed()


NOT_NAMES = [
    "https://example.org/x.rpm",
    "/tmp/x.deb",
    "./x.deb",
    "--force",
    "a b",
    "a\n",
    "a;b",
    "",
    "a" * 201,
]


def test_what_is_no_name_of_a_package() -> None:
    pattern = re.compile(read("vars/main.yml")["__nic_driver_name"])
    assert [name for name in NOT_NAMES if pattern.match(name)] == []
    names = ["doca-ofed", "doca-ofed=3.1.0-091000", "doca-ofed-3.1.0", "libc6:amd64", "g++", "a~b"]
    assert [name for name in names if not pattern.match(name)] == []


def test_such_a_name_is_refused_before_anything_is_changed(node: Node) -> None:
    text = node(packages=["doca-ofed", NOT_NAMES[0]]).failed()
    assert "must have names of packages" in text
    assert "Nothing was changed" in text
    assert node.packages() == []


def test_a_node_without_such_a_nic_gets_nothing(node: Node) -> None:
    os.replace(node.tree.root / "sys/bus/pci/devices", node.tree.root / "sys/bus/pci/gone")
    (node.tree.root / "sys/bus/pci/devices").mkdir()
    text = node().failed()
    assert "has no NIC of NVIDIA (vendor 15b3). Nothing was changed." in text
    assert node.packages() == []


def test_it_reboots_with_consent_alone() -> None:
    (reboot,) = [task for task in tasks() if "ansible.builtin.reboot" in task]
    assert reboot["of_block"] == ["__nic_driver_after.reboot_required", "nic_driver_allow_reboot | bool"]
    assert read("defaults/main.yml")["nic_driver_allow_reboot"] is False


def test_every_variable_is_used_and_on_the_page() -> None:
    options = read("meta/argument_specs.yml")["argument_specs"]["main"]["options"]
    assert {name: entry["default"] for name, entry in options.items()} == read("defaults/main.yml")
    page = (ROLE / "README.md").read_text(encoding="utf-8")
    used = (ROLE / "tasks/main.yml").read_text(encoding="utf-8")
    assert [name for name in options if "`%s`" % name not in page] == []
    assert [name for name in options if not re.search(r"\b%s\b" % name, used)] == []
