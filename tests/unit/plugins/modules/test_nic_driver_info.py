# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""nic_driver_info over the tree of a node. A stand-in for modinfo tells what is installed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.host import commands
from ansible_collections.rdma.k8s.plugins.modules import nic_driver_info
from ansible_collections.rdma.k8s.tests.support import change_run
from ansible_collections.rdma.k8s.tests.support.driver_tree import FUNCTION, RELEASE, DriverTree


class Modinfo:
    """Tells a version, or that there is no such module."""

    def __init__(self) -> None:
        self.version = "25.07-0.9.7"
        self.missing: set[str] = set()
        self.calls: list[list[str]] = []

    def run(self, _root: Any, argv: list[str], _limit: float, **options: Any) -> commands.Completed:
        self.calls.append(argv)
        assert argv[:4] == ["modinfo", "-k", RELEASE, "--"]
        if argv[4] in self.missing:
            assert 1 in options["codes"]
            return commands.Completed("", "modinfo: ERROR: Module %s not found." % argv[4], 1)
        text = "filename: /lib/modules/%s/updates/%s.ko\nversion: %s\nsrcversion: S%s\n"
        return commands.Completed(text % (RELEASE, argv[4], self.version, self.version), "", 0)


@pytest.fixture
def tree(tmp_path: Path) -> DriverTree:
    return DriverTree(tmp_path / "node").running("25.07-0.9.7").bound()


@pytest.fixture(autouse=True)
def modinfo(monkeypatch: pytest.MonkeyPatch) -> Modinfo:
    found = Modinfo()
    monkeypatch.setattr(commands, "run", found.run)
    return found


def look(tree: DriverTree) -> dict[str, Any]:
    found = change_run.good(nic_driver_info, host_root=str(tree.root))
    assert found["changed"] is False
    return found


def test_the_installed_driver_runs(tree: DriverTree) -> None:
    found = look(tree)
    assert (found["ready"], found["reboot_required"], found["problems"]) == (True, False, [])
    assert found["version"] == "25.07-0.9.7"
    assert [module["name"] for module in found["modules"]] == ["mlx5_core", "mlx5_ib"]
    assert found["modules"][0]["running"] == found["modules"][0]["installed"]
    assert found["functions"] == [{"address": FUNCTION, "driver": "mlx5_core", "has_device": True}]


def test_a_reboot_is_owed(tree: DriverTree, modinfo: Modinfo) -> None:
    """S2: the package is there, and the old driver runs."""
    modinfo.version = "25.10-1"
    found = look(tree)
    assert (found["ready"], found["reboot_required"]) == (False, True)
    assert "mlx5_core runs as 25.07-0.9.7, and 25.10-1 is installed." in found["reboot_reason"]


def test_what_the_kernel_does_not_have(tree: DriverTree, modinfo: Modinfo) -> None:
    modinfo.missing = {"mlx5_ib"}
    found = look(tree)
    assert (found["ready"], found["modules"][1]["installed"]) == (False, None)
    assert found["problems"] == ["mlx5_ib runs, and the next boot has none for this kernel."]


def test_virtual_functions_and_other_vendors_are_left_out(tree: DriverTree) -> None:
    """A function of a pod has neither the driver nor the device here."""
    tree.function("0000:86:00.2", physfn=FUNCTION)
    tree.function("0000:01:00.0", vendor="0x8086")
    found = look(tree)
    assert [entry["address"] for entry in found["functions"]] == [FUNCTION]
    assert found["ready"] is True


def test_a_function_without_a_driver(tree: DriverTree) -> None:
    tree.function("0000:86:00.1")
    assert look(tree)["problems"] == ["0000:86:00.1 is bound to no driver, not to mlx5_core."]


def test_without_modinfo_it_says_so(tree: DriverTree, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    assert change_run.failure(nic_driver_info, host_root=str(tree.root))["code"] == "tool_missing"
