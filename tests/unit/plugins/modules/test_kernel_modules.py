# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module kernel_modules, run whole over the tree of a node. A stand-in for modprobe and rmmod changes the tree."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.core.errors import RdmaError
from ansible_collections.rdma.k8s.plugins.module_utils.host import commands, undo
from ansible_collections.rdma.k8s.plugins.module_utils.host.files import Root
from ansible_collections.rdma.k8s.plugins.modules import kernel_modules
from ansible_collections.rdma.k8s.tests.support import change_run

RELEASE = "6.8.0-90-generic"
FILE = "etc/modules-load.d/rdma-k8s.conf"
HEADER = "# Written by rdma.k8s.kernel_modules: the whole file is replaced.\n"
DEPENDS = """kernel/ib_core.ko:
kernel/ib_uverbs.ko: kernel/ib_core.ko
kernel/ib_cm.ko: kernel/ib_core.ko
kernel/rdma_cm.ko: kernel/ib_cm.ko kernel/ib_core.ko
kernel/rdma_ucm.ko: kernel/ib_uverbs.ko kernel/rdma_cm.ko kernel/ib_cm.ko kernel/ib_core.ko
extra/nvidia-peermem.ko: kernel/ib_core.ko
extra/gdrdrv.ko:
"""


class Kmod:
    """Stands in for modprobe and rmmod: they change proc/modules of the tree. ``lies``: loads nothing, says nothing."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.lies = False
        self.calls: list[list[str]] = []

    def run(self, _root: Root, argv: list[str], _limit: float, **_options: Any) -> commands.Completed:
        self.calls.append(argv)
        place = self.root / "proc/modules"
        program, dashes, name = argv
        assert dashes == "--"
        if self.lies:
            return commands.Completed("", "", 0)
        lines = [line for line in place.read_text().splitlines() if line.split()[0] != name]
        if program == "modprobe":
            lines.append("%s 1 0 - Live 0x0" % name)
        else:
            assert program == "rmmod"
        place.write_text("".join([line + "\n" for line in lines]))
        return commands.Completed("", "", 0)


@pytest.fixture(name="tree")
def tree_fixture() -> Iterator[Path]:
    with change_run.directory() as place:
        root = place / "node"
        for path, text in {
            "proc/sys/kernel/osrelease": RELEASE + "\n",
            "proc/modules": "overlay 1 0 - Live 0x0\nib_core 1 0 - Live 0x0\n",
            "proc/cmdline": "ro quiet\n",
            "proc/devices": "Character devices:\n  1 mem\n",
            "lib/modules/%s/modules.dep" % RELEASE: DEPENDS,
            "lib/modules/%s/modules.builtin" % RELEASE: "kernel/ipv6.ko\n",
            "lib/modules/6.8.0-85-generic/modules.dep": DEPENDS + "extra/mlx5_ib.ko:\n",
            "etc/modules-load.d/other.conf": "loop\n",
        }.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text)
        yield root


@pytest.fixture(name="kmod", autouse=True)
def kmod_fixture(tree: Path, monkeypatch: pytest.MonkeyPatch) -> Kmod:
    kmod = Kmod(tree)
    monkeypatch.setattr(commands, "run", kmod.run)
    return kmod


def good(root: Path, *names: str, **options: Any) -> dict[str, Any]:
    return change_run.good(kernel_modules, host_root=str(root), modules=list(names), **options)


def refused(root: Path, *names: str, **options: Any) -> dict[str, Any]:
    before = change_run.contents(root)
    result = change_run.failure(kernel_modules, host_root=str(root), modules=list(names), **options)
    assert change_run.contents(root) == before
    return result


def test_modules_are_loaded_in_order_and_named_for_the_next_boot(tree: Path, kmod: Kmod) -> None:
    """S3."""
    result = good(tree, "rdma-ucm", "ib_uverbs", "ipv6")
    assert [argv[2] for argv in kmod.calls] == ["ib_cm", "rdma_cm", "ib_uverbs", "rdma_ucm"]
    assert (tree / FILE).read_text() == HEADER + "rdma_ucm\nib_uverbs\nipv6\n"
    assert oct((tree / FILE).stat().st_mode)[-3:] == "644"
    assert result["modules"] == {"rdma_ucm": "absent", "ib_uverbs": "absent", "ipv6": "builtin"}
    assert (result["kernel"], result["file"], result["effects"]) == (RELEASE, "/" + FILE, [])
    again = good(tree, "rdma-ucm", "ib_uverbs", "ipv6")
    assert (again["changed"], again["actions"], len(kmod.calls)) == (False, [], 4)


def test_check_mode_says_exactly_what_a_run_does(tree: Path, kmod: Kmod) -> None:
    before = change_run.contents(tree)
    predicted = good(tree, "rdma_ucm", _ansible_check_mode=True, _ansible_diff=True)
    assert (change_run.contents(tree), kmod.calls) == (before, [])
    assert predicted == good(tree, "rdma_ucm", _ansible_diff=True)


def test_undo_takes_out_what_was_loaded_the_last_first(tree: Path, kmod: Kmod) -> None:
    """Decision 16: a module that was there before stays."""
    before = change_run.contents(tree)
    good(tree, "rdma_cm")
    kmod.calls.clear()
    assert {entry.outcome for entry in undo.undo(Root(str(tree)), ["kernel_modules"])} == {"restored"}
    assert kmod.calls == [["rmmod", "--", "rdma_cm"], ["rmmod", "--", "ib_cm"]]
    assert change_run.contents(tree) == before


def test_a_module_in_use_stays_and_says_so(tree: Path, kmod: Kmod) -> None:
    good(tree, "ib_uverbs")
    kmod.lies = True
    (entry,) = [each for each in undo.undo(Root(str(tree))) if each.record.kind == "kernel_module"]
    assert (entry.outcome, entry.reason) == ("kept", "ib_uverbs cannot go back yet: it is in use.")


def test_now_without_boot_and_boot_without_now(tree: Path, kmod: Kmod) -> None:
    good(tree, "ib_uverbs", persist=False)
    assert not (tree / FILE).exists()
    kmod.calls.clear()
    good(tree, "rdma_cm", load=False, file="later")
    assert kmod.calls == []
    assert (tree / "etc/modules-load.d/later.conf").read_text() == HEADER + "rdma_cm\n"


def test_absent_removes_the_file_and_unloads_nothing(tree: Path, kmod: Kmod) -> None:
    good(tree, "ib_uverbs")
    kmod.calls.clear()
    assert good(tree, state="absent")["actions"] == ["remove /" + FILE]
    assert kmod.calls == []
    assert not good(tree, state="absent")["changed"]


@pytest.mark.parametrize("state", ["present", "absent"])
@pytest.mark.parametrize("kind", ["file", "link", "link to ours", "dangling", "mask"])
def test_a_file_of_somebody_else_is_neither_replaced_nor_removed(
    tree: Path, kmod: Kmod, state: str, kind: str
) -> None:
    """Kubernetes' own list, and /etc/modules, to which a name links on Debian."""
    place = tree / "etc/modules-load.d/k8s.conf"
    if kind == "file":
        place.write_bytes(b"overlay\nbr_netfilter # \xfc\n")
    elif kind == "link":
        (tree / "etc/modules").write_text("loop\n")
        place.symlink_to("../modules")
    elif kind == "link to ours":
        good(tree, "ib_core")
        place.symlink_to("rdma-k8s.conf")
    else:
        place.symlink_to("/dev/null" if kind == "mask" else "../modules")
    result = refused(tree, "ib_core", file="k8s", state=state)
    assert (result["code"], "/etc/modules-load.d/k8s.conf" in result["msg"]) == ("file_foreign", True)
    assert result["changed"] is False
    good(tree, "ib_core", file="k8s", persist=False)
    assert good(tree, "ib_core")["changed"] == (kind != "link to ours")


@pytest.mark.parametrize(
    ("names", "options", "code", "part"),
    [
        (["ib_uverbs", "mlx5_ib"], {}, "kernel_module_missing", "only for 6.8.0-85-generic"),
        (["ib_uverbs", "../x"], {}, "kernel_module_name_malformed", "'../x'"),
        (["ib_uverbs"], {"file": "../../passwd"}, "file_name_malformed", "passwd"),
        ([], {}, "kernel_modules_none_named", "No module"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_loaded(
    tree: Path, names: list[str], options: dict[str, Any], code: str, part: str
) -> None:
    result = refused(tree, *names, **options)
    assert (result["code"], part in result["msg"]) == (code, True)


def test_a_line_that_keeps_a_module_out_is_named(tree: Path) -> None:
    (tree / "etc/modprobe.d").mkdir()
    (tree / "etc/modprobe.d/no.conf").write_text("blacklist ib_uverbs\n")
    assert "/etc/modprobe.d/no.conf:1 'blacklist ib_uverbs'" in refused(tree, "ib_uverbs")["msg"]
    (tree / "etc/modprobe.d/no.conf").write_text("install ib_cm /bin/false\n")
    assert refused(tree, "rdma_ucm")["code"] == "kernel_module_blocked"
    good(tree, "ib_uverbs")


def test_a_kernel_without_its_modules_directory(tree: Path) -> None:
    (tree / "proc/sys/kernel/osrelease").write_text("6.9.0\n")
    result = refused(tree, "ib_uverbs")
    assert (result["code"], "/lib/modules/6.9.0" in result["msg"]) == ("kernel_modules_unreadable", True)


def test_modprobe_that_loads_nothing_is_not_believed(tree: Path, kmod: Kmod) -> None:
    kmod.lies = True
    result = change_run.failure(kernel_modules, host_root=str(tree), modules=["ib_uverbs"])
    assert result["code"] == "kernel_module_not_loaded"
    assert not (tree / FILE).exists()


def test_without_modprobe_there_is_one_clear_error(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    result = refused(tree, "ib_uverbs")
    assert (result["code"], "modprobe" in result["msg"]) == ("tool_missing", True)


def test_a_refusal_of_the_kernel_keeps_what_was_loaded_before_and_says_so(
    tree: Path, kmod: Kmod, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails_later(root: Root, argv: list[str], limit: float, **options: Any) -> commands.Completed:
        if argv[2] == "rdma_cm":
            raise RdmaError("command_failed", "'modprobe -- rdma_cm' failed: Key was rejected by service")
        return kmod.run(root, argv, limit, **options)

    monkeypatch.setattr(commands, "run", fails_later)
    result = change_run.failure(kernel_modules, host_root=str(tree), modules=["rdma_cm"])
    assert (result["code"], result["changed"]) == ("command_failed", True)
    assert not (tree / FILE).exists()
    monkeypatch.setattr(commands, "run", kmod.run)
    assert good(tree, "rdma_cm")["changed"]


# Effects


def test_peer_memory_without_effect_is_a_failure_although_it_is_loaded(tree: Path) -> None:
    """DEV-35, S41."""
    (tree / "proc/driver/nvidia").mkdir(parents=True)
    (tree / "proc/driver/nvidia/version").write_text("NVRM version: NVIDIA UNIX x86_64 Kernel Module  535\n")
    result = change_run.failure(kernel_modules, host_root=str(tree), modules=["nvidia_peermem"])
    assert result["code"] == "kernel_module_without_effect"
    assert "nothing of the RDMA stack uses it" in result["msg"]
    assert good(tree, "nvidia_peermem", verify=False)["effects"][0]["usable"] is False
    peers = tree / "sys/kernel/mm/memory_peers/nv_mem_nc"
    peers.mkdir(parents=True)
    assert good(tree, "nvidia_peermem")["effects"] == [
        {
            "module": "nvidia_peermem",
            "usable": True,
            "reason": "the RDMA stack has registered it as nv_mem_nc",
        }
    ]


def test_gdrdrv_needs_its_device(tree: Path) -> None:
    """S41."""
    (tree / "proc/devices").write_text("Character devices:\n511 gdrdrv\n")
    result = change_run.failure(kernel_modules, host_root=str(tree), modules=["gdrdrv"])
    assert "there is no device /dev/gdrdrv" in result["msg"]
    assert "mknod -m 666 /dev/gdrdrv c 511 0" in result["msg"]


def test_check_mode_does_not_judge_what_is_not_loaded_yet(tree: Path) -> None:
    assert good(tree, "gdrdrv", _ansible_check_mode=True)["effects"] == []


# Faults


def test_killed_at_any_step_the_next_run_repairs_and_undo_restores(tree: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(commands, "run", _for_any_tree)
    options = {"host_root": str(tree), "modules": ["rdma_cm"]}
    wanted = {FILE: HEADER + "rdma_cm\n"}
    assert change_run.killed_everywhere("kernel_modules", options, tree, wanted) >= 10


def _for_any_tree(root: Root, argv: list[str], _limit: float, **_options: Any) -> commands.Completed:
    """Like :meth:`Kmod.run`, atomic as the kernel is, and in the tree that is being undone."""
    place = Path(root.path) / "proc/modules"
    lines = [line for line in place.read_text().splitlines() if line.split()[0] != argv[2]]
    lines += ["%s 1 0 - Live 0x0" % argv[2]] if argv[0] == "modprobe" else []
    new = Path(root.path).with_name("modules.new")  # outside the tree, which is compared
    new.write_text("".join([line + "\n" for line in lines]))
    os.replace(new, place)
    return commands.Completed("", "", 0)


needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="mounts and capabilities need root")


@needs_root
@pytest.mark.parametrize(
    ("mount", "read_only"), [(["-o", "size=8k"], False), ([], True)], ids=["full", "read-only"]
)
def test_on_a_full_or_read_only_disk_the_old_file_stays(
    tree: Path, mount: list[str], read_only: bool
) -> None:
    (tree / FILE).write_text(HEADER + "old\n")
    options = {"host_root": str(tree), "modules": ["ib_core"]}
    place = (tree / FILE).parent
    result = change_run.mounted("kernel_modules", options, place, mount, read_only)
    assert (result["failed"], result["code"]) == (True, "file_not_written")
    assert result["after"] == {"other.conf": "loop\n", "rdma-k8s.conf": HEADER + "old\n"}


@needs_root
def test_without_privilege_there_is_one_clear_error(tree: Path) -> None:
    os.chown((tree / FILE).parent, 12345, 12345)
    options = {"host_root": str(tree), "modules": ["ib_core"]}
    result = change_run.without_privilege("kernel_modules", options)
    assert (result["failed"], result["code"]) == (True, "file_not_written")
    assert not (tree / FILE).exists()
