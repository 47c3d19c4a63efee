# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module netns_mode on a tree with a stand-in for the kernel's netlink: what it does, refuses, repairs and undoes.

The stand-in answers the two messages of RDMA netlink as S11 to S13 say; the mode it runs in is the parameter file of
the tree. What the real kernel does is tested on the lab.
"""

from __future__ import annotations

import errno
import json
import os
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Optional

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.core.errors import RdmaError
from ansible_collections.rdma.k8s.plugins.module_utils.host import (
    commands,
    initramfs,
    kernel,
    netns_mode as host_mode,
    rdma_netlink,
    reboots,
    undo,
)
from ansible_collections.rdma.k8s.plugins.module_utils.host.files import Root
from ansible_collections.rdma.k8s.plugins.modules import netns_mode
from ansible_collections.rdma.k8s.tests.support import change_run, fleet, initramfs_image as image, node_tree

OWN, OTHER = "etc/modprobe.d/ib_core.conf", "etc/modprobe.d/rdma.conf"
OPERATOR = "etc/modprobe.d/sriov_network_operator_modules_config.conf"
PARAMETER = "sys/module/ib_core/parameters/netns_mode"
EXCLUSIVE, SHARED = "options ib_core netns_mode=0\n", "options ib_core netns_mode=1\n"
LETTERS = {"shared": "Y\n", "exclusive": "N\n"}
RELEASE = "6.8.0-1035-oracle"
IMAGE = "boot/initrd.img-" + RELEASE


class Node:
    """A tree that is a node: its files, and the answers of its kernel."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.busy = 0  # how often the kernel refuses; -1: always
        self.tries = 0
        self.write("proc/cmdline", "BOOT_IMAGE=/vmlinuz ro quiet\n")
        self.write("proc/sys/kernel/osrelease", RELEASE + "\n")
        self.write("lib/modules/%s/modules.builtin" % RELEASE, "kernel/lib/crc.ko\n")
        (path / "etc/modprobe.d").mkdir(parents=True)
        (path / "var/lib").mkdir(parents=True)
        self.boot("boot-1")
        self.run("shared")
        self.process(1, "systemd", 4026531840)

    def write(self, name: str, text: str) -> None:
        place = self.path / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)

    def read(self, name: str) -> Optional[str]:
        place = self.path / name
        return place.read_text() if place.exists() else None

    def run(self, mode: str) -> None:
        self.write(PARAMETER, LETTERS[mode])

    def boot(self, name: str) -> None:
        self.write("proc/sys/kernel/random/boot_id", name + "\n")

    def process(self, pid: int, name: str, namespace: int, handle: Optional[int] = None) -> None:
        """A process in a network namespace, with another one open perhaps."""
        self.write("proc/%d/comm" % pid, name + "\n")
        for link, target in (("task/%d/ns/net" % pid, namespace), ("ns/net", namespace), ("fd/3", handle)):
            if target is not None:
                place = self.path / ("proc/%d/%s" % (pid, link))
                place.parent.mkdir(parents=True, exist_ok=True)
                place.symlink_to("net:[%d]" % target)

    def build(self, release: str = RELEASE) -> None:
        build_image(self.path, release)

    # the kernel

    def exchange(self, operation: int, attributes: bytes) -> dict[int, int]:
        """RDMA_NLDEV_CMD_SYS_GET and SYS_SET (S10-S13)."""
        running = 1 if self.read(PARAMETER) == "Y\n" else 0
        if operation == 5126:
            return {66: running, 93: 1}
        assert (operation, struct.unpack_from("=HH", attributes)) == (5127, (5, 66))
        self.tries += 1
        if attributes[4] != running and self.busy:
            self.busy -= 1
            raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))
        (self.path / PARAMETER).write_text("Y\n" if attributes[4] else "N\n")
        return {}

    # the module

    def good(self, mode: str, check: bool = False, **options: Any) -> dict[str, Any]:
        return change_run.good(
            netns_mode, mode=mode, host_root=str(self.path), _ansible_check_mode=check, **options
        )

    def refused(self, mode: str, **options: Any) -> dict[str, Any]:
        """The module refuses, in check mode as without, and changes nothing."""
        before = change_run.contents(self.path)
        foreseen = change_run.failure(
            netns_mode, mode=mode, host_root=str(self.path), _ansible_check_mode=True, **options
        )
        result = change_run.failure(netns_mode, mode=mode, host_root=str(self.path), **options)
        assert change_run.contents(self.path) == before
        assert result == foreseen
        assert result["changed"] is False
        return result

    def ensures(self, mode: str, **options: Any) -> dict[str, Any]:
        """Check mode changes nothing and predicts the result; the second run changes nothing."""
        before = change_run.contents(self.path)
        store = (self.path / "var/lib/rdma-k8s").exists()
        foreseen = self.good(mode, check=True, _ansible_diff=True, **options)
        assert change_run.contents(self.path) == before
        assert (self.path / "var/lib/rdma-k8s").exists() == store
        result = self.good(mode, _ansible_diff=True, **options)
        assert result == foreseen
        assert result["changed"] == bool(result["actions"]) == (change_run.contents(self.path) != before)
        after = change_run.contents(self.path)
        second = self.good(mode, **options)
        assert (second["changed"], second["actions"]) == (False, [])
        assert change_run.contents(self.path) == after
        return result


def build_image(root: Path, release: str) -> None:
    """As update-initramfs does: take the modprobe files along."""
    files = {image.MODULE % release: b"x"}
    for path in sorted((root / "etc/modprobe.d").glob("*.conf")):
        files["etc/modprobe.d/" + path.name] = path.read_bytes()
    place = root / "boot" / ("initrd.img-" + release)
    place.parent.mkdir(exist_ok=True)
    new = root.with_name("image.new")  # outside the tree, which is compared
    new.write_bytes(image.early() + image.archive(files))
    new.replace(place)


def program(root: Root, argv: list[str], _limit: float) -> commands.Completed:
    """update-initramfs of the node."""
    assert argv[:3] == ["update-initramfs", "-u", "-k"]
    build_image(Path(root.path), argv[3])
    return commands.Completed("", "", 0)


def dracut(root: Root, argv: list[str], _limit: float) -> commands.Completed:
    """dracut of a node that builds for any host: of the modprobe files it takes what install_items names."""
    assert argv[:2] == ["dracut", "--force"]
    top = Path(root.path)
    files = {image.MODULE % argv[3]: b"x"}
    for conf in sorted(top.glob("etc/dracut.conf.d/*.conf")):
        for name in conf.read_text().partition('+="')[2].strip('" \n').split():
            files[name[1:]] = (top / name[1:]).read_bytes()
    (top / argv[2][1:]).write_bytes(image.archive(files))
    return commands.Completed("", "", 0)


@pytest.fixture(name="node")
def node_fixture(monkeypatch: pytest.MonkeyPatch) -> Iterator[Node]:
    with change_run.directory() as place:
        node = Node(place / "node")
        monkeypatch.setattr(rdma_netlink, "_exchange", node.exchange)
        monkeypatch.setattr(host_mode, "_PATIENCE", 0.2)
        monkeypatch.setattr(host_mode, "_STEP", 0.001)
        monkeypatch.setattr(host_mode, "_may_administer", lambda root: True)
        monkeypatch.setattr(commands, "find", lambda root, name: "/usr/sbin/" + name)
        monkeypatch.setattr(commands, "run", program)
        yield node


# What it does


def test_bytes_of_others_survive(node: Node) -> None:
    """A vendor's comment in another encoding than UTF-8, in a file that is cleaned and in the managed one."""
    vendor, own = node.path / OTHER, node.path / OWN
    vendor.write_bytes(b"# f\xfcr das Ger\xe4t\n" + SHARED.encode())
    own.write_bytes(b"# \xe4\r\n" + SHARED.encode())
    node.ensures("exclusive", foreign="clean")
    assert vendor.read_bytes() == b"# f\xfcr das Ger\xe4t\n"
    assert own.read_bytes() == b"# \xe4\r\n" + EXCLUSIVE.encode()
    undo.undo(Root(str(node.path)))
    assert vendor.read_bytes() == b"# f\xfcr das Ger\xe4t\n" + SHARED.encode()


def test_a_value_in_another_encoding_can_be_told(node: Node) -> None:
    (node.path / OTHER).write_bytes(b"options ib_core netns_mode=\xfc\n")
    assert "(netns_mode=\ufffd)" in node.refused("exclusive")["msg"]


def test_a_name_that_kmod_passes_over_is_neither_taken_nor_an_owner(node: Node) -> None:
    """S20: the mode of the next boot would not change."""
    assert node.refused("exclusive", path="/etc/modprobe.d/.x.conf")["code"] == "modprobe_path"
    node.write("etc/modprobe.d/.old.conf", SHARED)
    node.write(IMAGE, "")
    taken = {image.MODULE % RELEASE: b"x", "etc/modprobe.d/.old.conf": EXCLUSIVE.encode()}
    (node.path / IMAGE).write_bytes(image.archive(taken))
    result = node.ensures("exclusive")
    assert (result["foreign"], result["initramfs"][0]["rebuilt"]) == ([], True)


def test_a_modprobe_file_that_cannot_be_read_is_refused(node: Node) -> None:
    """It may set another mode."""
    node.write(OTHER, "#" * (4 << 20) + "\n" + SHARED)
    result = node.refused("exclusive")
    assert (result["code"], OTHER in result["msg"]) == ("file_unreadable", True)


def test_a_live_switch_is_made_and_kept(node: Node) -> None:
    """S12, S13, S19."""
    result = node.ensures("exclusive")
    assert result["actions"] == ["write /etc/modprobe.d/ib_core.conf", "set RDMA namespace mode"]
    assert (result["running_mode"], result["running_mode_before"]) == ("exclusive", "shared")
    assert (result["boot_mode"], result["boot_mode_before"]) == ("exclusive", "shared")
    assert (result["reboot_required"], result["reboot_reason"], result["foreign"]) == (False, "", [])
    assert [entry["after"] for entry in result["diff"]] == [EXCLUSIVE, "exclusive\n"]
    assert (node.read(OWN), node.read(PARAMETER)) == (EXCLUSIVE, "N\n")


def test_what_is_right_is_not_written_again(node: Node) -> None:
    """The kernel's default needs no file (S8); a running mode that is right is not set (S13: it would even succeed)."""
    assert not node.ensures("shared")["changed"]
    assert (node.read(OWN), node.tries) == (None, 0)


def test_an_exclusive_node_without_a_file_needs_no_reboot(node: Node) -> None:
    """DEV-01: running exclusive, exclusive wanted, no option file: the file is written, no reboot is owed."""
    node.run("exclusive")
    node.process(321, "pause", 77)
    result = node.ensures("exclusive")
    assert (result["changed"], result["reboot_required"], node.tries) == (True, False, 0)
    assert node.read(OWN) == EXCLUSIVE


def test_without_ib_core_the_file_is_all(node: Node) -> None:
    """S9: asking would load the module."""
    (node.path / PARAMETER).unlink()
    for directory in ("sys/module/ib_core/parameters", "sys/module/ib_core"):
        (node.path / directory).rmdir()
    result = node.ensures("exclusive")
    assert (result["running_mode"], result["reboot_required"]) == (None, False)
    assert node.read(OWN) == EXCLUSIVE


@pytest.mark.parametrize("handle", [None, 77])
def test_a_living_namespace_means_a_reboot_and_is_named(node: Node, handle: Optional[int]) -> None:
    """S13, S15, L3: in a process, or only open in one."""
    node.process(321, "holder", 4026531840 if handle else 77, handle)
    node.busy = -1
    result = node.ensures("exclusive")
    assert (result["reboot_required"], result["running_mode"]) == (True, "shared")
    word = "a file that process 321 (holder) has open" if handle else "process 321 (holder)"
    assert result["namespaces"] == [word]
    assert result["reboot_reason"].endswith("because another network namespace is alive: %s." % word)
    assert (node.read(OWN), node.read(PARAMETER)) == (EXCLUSIVE, "Y\n")


def test_mounted_namespaces_are_counted(node: Node) -> None:
    """`ip netns add` leaves a mount and no process; each mount namespace is looked at once."""
    lines = ["24 1 0:22 / /run rw - tmpfs tmpfs rw"]
    lines += ["%d 24 0:4 net:[%d] /run/netns/pod%d rw - nsfs nsfs rw" % (n, n, n) for n in range(90, 101)]
    node.write("proc/1/mountinfo", "\n".join(lines) + "\n")
    (node.path / "proc/1/ns/mnt").symlink_to("mnt:[1]")
    result = node.ensures("exclusive")
    assert len(result["namespaces"]) == 8
    assert "11 other network namespaces are alive: the mount /run/netns/pod90" in result["reboot_reason"]
    assert "and 3 more" in result["reboot_reason"]


def test_a_namespace_that_nothing_names_is_refused_by_the_kernel(node: Node) -> None:
    """L3: only trying shows it. Neither result nor record claims a switch that did not happen."""
    node.busy = -1
    result = node.good("exclusive")
    assert (result["reboot_required"], result["actions"]) == (True, ["write /etc/modprobe.d/ib_core.conf"])
    assert "which no process, mount or open file names" in result["reboot_reason"]
    assert node.tries > 3
    assert [record.kind for record in undo.store.records(Root(str(node.path)))] == ["file"]
    assert not node.good("exclusive")["changed"]


def test_a_namespace_that_is_being_taken_down_is_waited_for(node: Node) -> None:
    """L3: the kernel frees it some tenths of a second after its end."""
    node.busy = 3
    result = node.good("exclusive")
    assert (result["running_mode"], result["reboot_required"], node.tries) == ("exclusive", False, 4)


def test_duplicate_lines_become_one(node: Node) -> None:
    """S19: a guide that appends."""
    node.run("exclusive")
    node.write(OWN, "# site\n" + EXCLUSIVE * 3)
    os.chmod(node.path / OWN, 0o640)
    assert node.ensures("exclusive")["changed"]
    assert node.read(OWN) == "# site\n" + EXCLUSIVE
    assert (node.path / OWN).stat().st_mode & 0o777 == 0o640


def test_another_file_can_be_the_managed_one(node: Node) -> None:
    node.run("exclusive")
    node.write(OTHER, SHARED)
    assert node.ensures("exclusive", path="/" + OTHER)["changed"]
    assert (node.read(OTHER), node.read(OWN)) == (EXCLUSIVE, None)


# Other owners


def test_a_foreign_file_is_named_and_nothing_is_done(node: Node) -> None:
    """S26."""
    node.write(OTHER, "# old guide\n" + SHARED)
    result = node.refused("exclusive")
    assert result["code"] == "second_owner"
    assert result["details"] == {"places": ["/etc/modprobe.d/rdma.conf:2"], "operator": False}
    assert "/etc/modprobe.d/rdma.conf:2 (netns_mode=1)" in result["msg"]
    assert "foreign=clean" in result["msg"]


def test_a_foreign_file_is_cleaned_when_asked(node: Node) -> None:
    node.write(OTHER, "# old guide\n" + SHARED)
    node.write("etc/modprobe.d/alone.conf", SHARED)
    result = node.ensures("exclusive", foreign="clean")
    assert (node.read(OTHER), node.read("etc/modprobe.d/alone.conf")) == ("# old guide\n", None)
    assert node.read(OWN) == EXCLUSIVE
    assert [(entry["source"], entry["line"], entry["cleaned"]) for entry in result["foreign"]] == [
        ("/etc/modprobe.d/alone.conf", 1, True),
        ("/etc/modprobe.d/rdma.conf", 2, True),
    ]
    assert result["notes"] == []


@pytest.mark.parametrize("rest", ["", "options kvm nested=1\n"])
def test_the_file_of_a_package_is_replaced_and_not_edited(node: Node, rest: str) -> None:
    """S20: of two files with one name the one in /etc counts; a package's file would come back with the next update."""
    node.write("usr/lib/modprobe.d/vendor.conf", SHARED + rest)
    node.ensures("exclusive", foreign="clean")
    assert node.read("usr/lib/modprobe.d/vendor.conf") == SHARED + rest
    over = node.read("etc/modprobe.d/vendor.conf") or ""
    assert over == rest or (not rest and over.startswith("# "))
    assert "netns_mode=" not in over


@pytest.mark.parametrize("foreign", ["report", "clean"])
def test_the_operators_file_is_refused_and_never_cleaned(node: Node, foreign: str) -> None:
    """S23, S24: who fights the operator reboots for ever."""
    node.write(OPERATOR, SHARED)
    result = node.refused("exclusive", foreign=foreign)
    assert (result["code"], result["details"]["operator"]) == ("second_owner", True)
    assert "SriovNetworkPoolConfig" in result["msg"]


def test_the_operators_kernel_argument_is_refused(node: Node) -> None:
    node.write(OPERATOR, EXCLUSIVE)
    node.write("proc/cmdline", "ro ib_core.netns_mode=1\n")
    result = node.refused("exclusive")
    assert (result["code"], result["details"]["places"]) == ("second_owner", ["/proc/cmdline"])


def test_an_equal_foreign_setting_is_noted(node: Node) -> None:
    node.run("exclusive")
    node.write("etc/modprobe.d/equal.conf", EXCLUSIVE)
    node.write(OWN, EXCLUSIVE)
    result = node.ensures("exclusive")
    assert result["notes"] == ["The mode is also set by /etc/modprobe.d/equal.conf:1; keep one setting."]
    assert result["notes"][0] in result["warnings"]
    assert result["foreign"][0]["cleaned"] is False


def test_a_kernel_argument_that_contradicts_is_told(node: Node) -> None:
    """S20: the running mode is right now, and will not be after a boot."""
    node.write("proc/cmdline", "ib_core.netns_mode=1 quiet\n")
    result = node.ensures("exclusive")
    assert (result["running_mode"], result["boot_mode"], result["reboot_required"]) == (
        "exclusive",
        "shared",
        False,
    )
    assert "/proc/cmdline says ib_core.netns_mode=1" in result["notes"][0]
    assert [entry["source"] for entry in result["foreign"]] == ["/proc/cmdline"]


def test_a_reboot_that_cannot_help_is_not_asked_for(node: Node) -> None:
    node.write("proc/cmdline", "ib_core.netns_mode=1 quiet\n")
    node.write("boot/grub/grub.cfg", "menuentry x {\n\tlinux /vmlinuz ro ib_core.netns_mode=1\n}\n")
    node.process(321, "pause", 77)
    result = node.refused("exclusive")
    assert result["code"] == "kernel_argument_wins"
    assert "(/boot/grub/grub.cfg:2)" in result["msg"]
    assert node.read(OWN) is None


def test_a_reboot_helps_when_the_boot_loader_has_lost_the_argument(node: Node) -> None:
    node.write("proc/cmdline", "ib_core.netns_mode=1 quiet\n")
    node.write("boot/loader/entries/x.conf", "title x\noptions ro quiet\n")
    node.process(321, "pause", 77)
    result = node.ensures("exclusive")
    assert (result["reboot_required"], result["boot_mode"], result["notes"]) == (True, "exclusive", [])


# Refusals


@pytest.mark.parametrize(
    "path", ["/etc/modprobe.d/x", "/etc/x.conf", "/etc/modprobe.d/../x.conf", "/usr/lib/modprobe.d/x.conf"]
)
def test_a_file_that_kmod_would_not_read_is_refused(node: Node, path: str) -> None:
    result = node.refused("shared", path=path)
    assert (result["code"], result["details"]["path"]) == ("modprobe_path", path)


def test_a_module_built_into_the_kernel_reads_no_file(node: Node) -> None:
    node.write("lib/modules/%s/modules.builtin" % RELEASE, "kernel/drivers/infiniband/core/ib_core.ko\n")
    result = node.refused("exclusive")
    assert result["code"] == "option_ignored_builtin"
    assert "ib_core.netns_mode=0" in result["msg"]


def test_a_kernel_that_does_not_tell_the_mode(node: Node) -> None:
    node.write(PARAMETER, "perhaps\n")
    original, rdma_netlink._exchange = rdma_netlink._exchange, lambda operation, attributes: {}
    try:
        assert node.refused("shared")["code"] == "netns_mode_unknown"
    finally:
        rdma_netlink._exchange = original


def test_the_parameter_file_stands_in_for_a_netlink_that_refuses(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S9: it shows the live mode."""

    def refuse(operation: int, attributes: bytes) -> dict[int, int]:
        raise OSError(errno.EOPNOTSUPP, "x")

    monkeypatch.setattr(rdma_netlink, "_exchange", refuse)
    assert node.good("shared")["running_mode"] == "shared"


@pytest.mark.parametrize(
    ("number", "code"),
    [(errno.EPERM, "not_permitted"), (errno.EACCES, "not_permitted"), (errno.EINVAL, "netns_mode_refused")],
)
def test_the_kernels_refusal_is_told(
    node: Node, monkeypatch: pytest.MonkeyPatch, number: int, code: str
) -> None:
    """S12. What the next boot gives is right by then; the next run goes on from there."""
    node.write(OWN, EXCLUSIVE)
    ask = node.exchange

    def refuse(operation: int, attributes: bytes) -> dict[int, int]:
        if operation == 5127:
            raise OSError(number, os.strerror(number))
        return ask(operation, attributes)

    monkeypatch.setattr(rdma_netlink, "_exchange", refuse)
    result = change_run.failure(netns_mode, mode="exclusive", host_root=str(node.path))
    assert (result["code"], result["changed"], result["actions"]) == (code, False, [])
    assert undo.store.records(Root(str(node.path))) == []


def test_without_the_privilege_nothing_is_begun(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_mode, "_may_administer", lambda root: False)
    assert node.refused("exclusive")["code"] == "not_permitted"


@pytest.mark.skipif(os.geteuid() != 0, reason="capabilities need root")
def test_a_process_without_capabilities_knows_it() -> None:
    code = (
        "from ansible_collections.rdma.k8s.plugins.module_utils.host import netns_mode\n"
        "from ansible_collections.rdma.k8s.plugins.module_utils.host.files import Root\n"
        "print(netns_mode._may_administer(Root()))"
    )
    words = ["setpriv", "--bounding-set=-all", "--inh-caps=-all", "--ambient-caps=-all"]
    answers = [
        subprocess.run(
            [*prefix, sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        ).stdout
        for prefix in ([], words)
    ]
    assert answers == ["True\n", "False\n"]


def test_a_recorded_tree_is_planned_and_not_changed(tmp_path: Path) -> None:
    tree = node_tree.write(tmp_path / "tree", fleet.node("BM.GPU.H100.8"), gid_table=8)
    options = {"mode": "exclusive", "host_root": str(tree.root), "foreign": "clean"}
    foreseen = change_run.good(netns_mode, **options, _ansible_check_mode=True)
    assert (foreseen["running_mode_before"], foreseen["changed"]) == ("shared", True)
    assert change_run.failure(netns_mode, **options)["code"] == "recorded_tree"


# initramfs


def test_a_stale_image_is_built_anew_and_others_are_left_alone(node: Node) -> None:
    """S21: only where ib_core is inside and would get another mode."""
    for release in ("6.5.0-1", "6.5.0-2"):
        node.write("lib/modules/%s/modules.builtin" % release, "")
    node.write("boot/initrd.img-6.5.0-1", "")
    (node.path / "boot/initrd.img-6.5.0-1").write_bytes(image.archive({"usr/bin/sh": b"x"}))
    node.build()
    result = node.ensures("exclusive")
    assert result["actions"] == [
        "write /etc/modprobe.d/ib_core.conf",
        "set /%s" % IMAGE,
        "set RDMA namespace mode",
    ]
    assert [(entry["kernel"], entry["mode_before"], entry["rebuilt"]) for entry in result["initramfs"]] == [
        ("6.5.0-1", None, False),
        (RELEASE, "shared", True),
    ]


def test_a_stale_image_alone_is_a_change(node: Node) -> None:
    """The file was right already, the image not: what a guide without that step leaves behind."""
    node.build()
    node.write(OWN, EXCLUSIVE)
    node.run("exclusive")
    assert node.ensures("exclusive")["actions"] == ["set /%s" % IMAGE]


def test_a_kernel_argument_makes_a_stale_image_harmless(node: Node) -> None:
    """S20: the argument counts behind the files of the image."""
    node.build()
    node.run("exclusive")
    node.write("proc/cmdline", "ib_core.netns_mode=0\n")
    assert not node.ensures("exclusive")["changed"]


def test_dracut_is_told_to_take_the_file_along(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    """L50: an image for any host has no modprobe file of the node. The images of later kernels get it, too."""
    name = "boot/initramfs-%s.img" % RELEASE
    monkeypatch.setattr(commands, "run", dracut)
    node.write(name, "")
    (node.path / name).write_bytes(image.archive({image.MODULE % RELEASE: b"x"}))
    before = change_run.contents(node.path)
    result = node.ensures("exclusive")
    assert "write /etc/dracut.conf.d/rdma-k8s.conf" in result["actions"]
    assert node.read("etc/dracut.conf.d/rdma-k8s.conf") == 'install_items+=" /etc/modprobe.d/ib_core.conf "\n'
    assert (result["initramfs"][0]["mode_before"], result["initramfs"][0]["rebuilt"]) == ("shared", True)
    assert {answer.outcome for answer in undo.undo(Root(str(node.path)), ["netns_mode"])} == {"restored"}
    assert change_run.contents(node.path) == before


def test_dracut_is_told_of_no_file_that_is_not_there(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    """The default is wanted and an old image holds a file that is gone: building it anew is all."""
    name = "boot/initramfs-%s.img" % RELEASE
    monkeypatch.setattr(commands, "run", dracut)
    node.write(name, "")
    files = {image.MODULE % RELEASE: b"x", "etc/modprobe.d/old.conf": EXCLUSIVE.encode()}
    (node.path / name).write_bytes(image.archive(files))
    assert node.ensures("shared")["actions"] == ["set /" + name]


def test_an_image_that_stays_stale_is_an_error(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    """The program's success proves nothing."""
    node.build()
    monkeypatch.setattr(commands, "run", lambda root, argv, limit: commands.Completed("", "", 0))
    result = change_run.failure(netns_mode, mode="exclusive", host_root=str(node.path))
    assert (result["code"], result["details"]["path"]) == ("initramfs_not_refreshed", "/" + IMAGE)
    assert node.read(PARAMETER) == "Y\n"


def test_a_missing_program_is_named(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before anything is changed."""
    node.build()
    monkeypatch.setattr(commands, "find", lambda root, name: None)
    result = node.refused("exclusive")
    assert (result["code"], "neither update-initramfs nor dracut" in result["msg"]) == ("tool_missing", True)


def test_an_image_that_cannot_be_read_stops_before_anything(node: Node) -> None:
    node.write(IMAGE, "MZ this is no archive")
    assert node.refused("exclusive")["code"] == "initramfs_unreadable"


def test_an_image_of_another_kernel_that_cannot_be_read_is_noted(node: Node) -> None:
    """What an update that failed left in /boot must not stop a node that boots another kernel."""
    node.write("lib/modules/6.5.0-1/modules.builtin", "")
    node.write("boot/initrd.img-6.5.0-1", "MZ this is no archive")
    node.build()
    result = node.ensures("exclusive")
    assert [entry["kernel"] for entry in result["initramfs"]] == [RELEASE]
    assert "/boot/initrd.img-6.5.0-1 cannot be read" in result["notes"][0]


# Reboots


def test_the_third_reboot_needs_a_person(node: Node) -> None:
    """DEV-01, second case: the setting is in the boot entry and not on the command line; two reboots did not help."""
    node.write("boot/loader/entries/ol9.conf", "options root=x ro ib_core.netns_mode=0\n")
    node.process(321, "pause", 77)
    for boot in ("a", "a", "b"):
        node.boot(boot)
        assert node.good("exclusive")["reboot_required"]
    node.boot("c")
    result = node.refused("exclusive")
    assert result["code"] == "reboot_budget_spent"
    assert "argument ignored by kernel" in result["msg"]
    assert "/boot/loader/entries/ol9.conf:1 has ib_core.netns_mode=0, /proc/cmdline has not" in result["msg"]
    assert result["details"]["boots"] == ["a", "b"] or result["details"]["boots"] == ["a", "b", "c"]
    (found,) = reboots.plans(Root(str(node.path)))
    assert (found.plan, found.boots) == ("netns_mode exclusive", ("a", "b", "c"))
    assert node.good("exclusive", plan="another try")["reboot_required"]


def test_an_ignored_file_is_told_by_the_third_reboot(node: Node) -> None:
    node.process(321, "pause", 77)
    for boot in ("a", "b"):
        node.boot(boot)
        node.good("exclusive")
    node.boot("c")
    assert (
        "option ignored by kernel (/etc/modprobe.d/ib_core.conf says netns_mode=0)"
        in node.refused("exclusive")["msg"]
    )
    node.busy = -1
    (node.path / "proc/321/task/321/ns/net").unlink()  # no longer seen: found out by trying
    failure = change_run.failure(netns_mode, mode="exclusive", host_root=str(node.path))
    assert failure["code"] == "reboot_budget_spent"


def test_a_mode_that_is_reached_counts_from_zero_again(node: Node) -> None:
    node.process(321, "pause", 77)
    for boot in ("a", "b"):
        node.boot(boot)
        node.good("exclusive")
    node.boot("c")
    node.run("exclusive")
    assert not node.good("exclusive")["changed"]
    assert not (node.path / reboots.FILE[1:]).exists()


@pytest.mark.parametrize("text", ["", "{}", '{"plans": 7}', '{"plans": [{"plan": 1}]}', "[" * 99999])
def test_a_record_of_reboots_that_cannot_be_used_is_told(node: Node, text: str) -> None:
    node.process(321, "pause", 77)
    node.write(reboots.FILE[1:], text)
    assert node.refused("exclusive")["code"] == "reboot_record_wrong"


# Faults


def test_killed_at_any_step_the_next_run_repairs_and_undo_restores(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    """File, image and running mode; the image is restored from the restored files."""

    def write_mode(root: Root, name: str, value: Optional[str]) -> None:
        del name
        place = Path(root.path) / PARAMETER
        new = Path(root.path).with_name("mode.new")
        new.write_text(LETTERS[str(value)])
        new.replace(place)

    def refuse(operation: int, attributes: bytes) -> dict[int, int]:
        raise OSError(errno.ENOSYS, "each tree has a kernel of its own here: its parameter file")

    monkeypatch.setattr(rdma_netlink, "_exchange", refuse)
    monkeypatch.setattr(host_mode, "write_mode", write_mode)
    monkeypatch.setitem(undo.SETTINGS, host_mode.KIND, undo.Setting(host_mode.read_mode, write_mode))
    node.write(OTHER, "# old guide\n" + SHARED)
    node.build()
    options = {"host_root": str(node.path), "mode": "exclusive", "foreign": "clean"}
    wanted = {OWN: EXCLUSIVE, OTHER: "# old guide\n", PARAMETER: "N\n"}
    assert change_run.killed_everywhere("netns_mode", options, node.path, wanted) >= 20


def test_killed_while_a_reboot_is_asked_for(node: Node) -> None:
    node.process(321, "pause", 77)
    options = {"host_root": str(node.path), "mode": "exclusive"}
    assert change_run.killed_everywhere("netns_mode", options, node.path, {OWN: EXCLUSIVE}) >= 10
    left = [path.name for path in (node.path / "var/lib/rdma-k8s").iterdir() if path.name.startswith(".")]
    assert left == []
    assert json.loads((node.path / reboots.FILE[1:]).read_text())["plans"][0]["boots"] == ["boot-1"]


needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="mounts and capabilities need root")


@needs_root
@pytest.mark.parametrize(
    ("mount", "read_only"), [(["-o", "size=4k"], False), ([], True)], ids=["full", "read-only"]
)
def test_on_a_full_or_read_only_disk_the_old_file_stays(
    node: Node, mount: list[str], read_only: bool
) -> None:
    """With ib_core not loaded, so that no kernel is asked in the child."""
    (node.path / PARAMETER).unlink()
    for directory in ("sys/module/ib_core/parameters", "sys/module/ib_core"):
        (node.path / directory).rmdir()
    node.write(OWN, SHARED)
    options = {"host_root": str(node.path), "mode": "exclusive"}
    result = change_run.mounted("netns_mode", options, (node.path / OWN).parent, mount, read_only)
    assert (result["failed"], result["code"]) == (True, "file_not_written")
    assert result["after"] == {"ib_core.conf": SHARED}


@needs_root
def test_without_privilege_there_is_one_clear_error(node: Node) -> None:
    (node.path / PARAMETER).unlink()
    for directory in ("sys/module/ib_core/parameters", "sys/module/ib_core"):
        (node.path / directory).rmdir()
    os.chown((node.path / OWN).parent, 12345, 12345)
    result = change_run.without_privilege("netns_mode", {"host_root": str(node.path), "mode": "exclusive"})
    assert (result["failed"], result["code"]) == (True, "file_not_written")
    assert node.read(OWN) is None


# Undo


def test_undo_restores_file_image_and_running_mode(node: Node) -> None:
    node.write(OTHER, "# old guide\n" + SHARED)
    node.build()
    before = change_run.contents(node.path)
    node.ensures("exclusive", foreign="clean")
    answers = undo.undo(Root(str(node.path)), ["netns_mode"])
    assert [(answer.record.kind, answer.outcome) for answer in answers] == [
        ("rdma_netns_mode", "restored"),
        ("file", "restored"),
        ("file", "restored"),
        ("initramfs", "restored"),
    ]
    assert change_run.contents(node.path) == before


LATER = "6.9.0-1"


def installed(node: Node, release: str = LATER) -> Path:
    """A kernel that is installed now: its image takes along what is in the node's files."""
    node.write("lib/modules/%s/modules.builtin" % release, "")
    node.build(release)
    return node.path / ("boot/initrd.img-" + release)


def mode_of(node: Node, release: str) -> Optional[str]:
    return host_mode.read_image(Root(str(node.path)), "/boot/initrd.img-" + release)


def test_undo_reaches_the_image_of_a_kernel_that_was_installed_since(node: Node) -> None:
    """S21, S27: nothing on the node would say why the next boot is exclusive. Foreseen as it is done."""
    node.build()
    node.ensures("exclusive")
    installed(node)
    unrelated = node.path / "boot/initrd.img-6.5.0-1"
    node.write("lib/modules/6.5.0-1/modules.builtin", "")
    unrelated.write_bytes(image.archive({"usr/bin/sh": b"x"}))
    files = change_run.contents(node.path)
    foreseen = undo.undo(Root(str(node.path)), ["netns_mode"], check_mode=True)
    assert change_run.contents(node.path) == files
    answers = undo.undo(Root(str(node.path)), ["netns_mode"])
    told = [(answer.record.kind, answer.record.name, answer.outcome, answer.reason) for answer in foreseen]
    assert told == [(each.record.kind, each.record.name, each.outcome, each.reason) for each in answers]
    assert ("initramfs", "/boot/initrd.img-" + LATER, "restored", "") in told
    assert (mode_of(node, LATER), mode_of(node, RELEASE), node.read(OWN)) == ("shared", "shared", None)
    assert undo.undo(Root(str(node.path))) == []


def test_an_image_that_an_undo_could_not_build_is_built_by_the_next(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    node.ensures("exclusive")
    installed(node)

    def broken(root: Root, argv: list[str], _limit: float) -> commands.Completed:
        raise RdmaError("command_failed", "%s failed: no space left on device" % argv[0])

    monkeypatch.setattr(commands, "run", broken)
    answers = {answer.record.kind: answer.outcome for answer in undo.undo(Root(str(node.path)))}
    assert (answers["file"], answers["initramfs"], node.read(OWN)) == ("restored", "failed", None)
    monkeypatch.setattr(commands, "run", program)
    assert [answer.outcome for answer in undo.undo(Root(str(node.path)))] == ["restored"]
    assert mode_of(node, LATER) == "shared"


def test_an_undo_that_cannot_read_the_images_says_so(node: Node) -> None:
    node.ensures("exclusive")
    node.write(IMAGE, "no archive")
    answers = {answer.record.kind: answer for answer in undo.undo(Root(str(node.path)))}
    assert (answers["file"].outcome, answers["initramfs"].outcome) == ("restored", "failed")
    assert "/" + IMAGE in answers["initramfs"].reason


def test_undo_leaves_an_image_that_never_had_our_mode(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    node.write(OWN, EXCLUSIVE)
    node.run("exclusive")
    node.ensures("shared")
    built = []
    monkeypatch.setattr(commands, "run", lambda _root, argv, _limit: built.append(argv))
    place = installed(node)
    place.write_bytes(
        image.archive(
            {
                image.MODULE % LATER: b"x",
                "etc/modprobe.d/.old.conf": SHARED.encode(),
                "etc/modprobe.d/a.conf": EXCLUSIVE.encode(),
            }
        )
    )
    assert {answer.outcome for answer in undo.undo(Root(str(node.path)))} == {"restored"}
    assert built == []


def test_the_mode_of_the_next_boot_is_that_of_the_images(node: Node) -> None:
    """S21: what an image holds counts, not the file beside it; with several kernels it depends on which one boots."""
    node.write(OWN, EXCLUSIVE)
    node.build()
    node.write(OWN, SHARED)
    assert node.good("shared", check=True)["boot_mode_before"] == "exclusive"
    installed(node)
    assert node.good("shared", check=True)["boot_mode_before"] is None
    node.write("proc/cmdline", "ib_core.netns_mode=1\n")
    assert node.good("shared", check=True)["boot_mode_before"] == "shared"


def test_undo_tells_when_the_running_mode_cannot_go_back(node: Node) -> None:
    """Pods have started since: the file goes back at once, the running mode with the next boot."""
    node.ensures("exclusive")
    node.busy = -1
    answers = {answer.record.kind: answer for answer in undo.undo(Root(str(node.path)), ["netns_mode"])}
    assert (answers["file"].outcome, answers["rdma_netns_mode"].outcome) == ("restored", "failed")
    assert "another network namespace is alive" in answers["rdma_netns_mode"].reason
    node.busy = 0
    assert [answer.outcome for answer in undo.undo(Root(str(node.path)), ["netns_mode"])] == ["restored"]
    assert node.read(PARAMETER) == "Y\n"


# Bytes of netlink


class FakeSocket:
    """A netlink socket whose kernel has its answers ready."""

    def __init__(self, answers: list[bytes]) -> None:
        self.answers = answers
        self.asked: list[bytes] = []

    def __call__(self, family: int, kind: int, protocol: int) -> FakeSocket:
        assert (family, protocol) == (16, 20)  # AF_NETLINK, NETLINK_RDMA
        return self

    def __enter__(self) -> FakeSocket:
        return self

    def __exit__(self, *details: object) -> None:
        pass

    def settimeout(self, limit: float) -> None:
        pass

    def bind(self, address: Any) -> None:
        pass

    def sendto(self, data: bytes, address: Any) -> None:
        self.asked.append(data)

    def recv(self, size: int) -> bytes:
        return self.answers.pop(0)


def acknowledged(code: int) -> bytes:
    """NLMSG_ERROR, which repeats the head of the request."""
    return struct.pack("=IHHIIi", 36, 2, 0, 1, 0, code) + b"\0" * 16


def test_the_request_and_the_answer_are_those_of_the_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """S10-S12: type 5126; attribute 66 (mode) and 93 (copy-on-fork) come before the acknowledgement."""
    attributes = struct.pack("=HH4BHH4B", 5, 66, 0, 0, 0, 0, 5, 93, 1, 0, 0, 0)
    socket = FakeSocket([struct.pack("=IHHII", 32, 5126, 0, 1, 0) + attributes, acknowledged(0)])
    monkeypatch.setattr(rdma_netlink.sockets, "socket", socket)
    assert rdma_netlink.mode().mode == "exclusive"
    assert socket.asked == [struct.pack("=IHHII", 16, 5126, 0x5, 1, 0)]


def test_a_change_is_asked_for_with_one_attribute(monkeypatch: pytest.MonkeyPatch) -> None:
    """S10-S13: type 5127; the refusal is a negative error number."""
    socket = FakeSocket([acknowledged(0), acknowledged(-errno.EBUSY)])
    monkeypatch.setattr(rdma_netlink.sockets, "socket", socket)
    rdma_netlink.set_mode("shared")
    assert socket.asked == [
        struct.pack("=IHHII", 24, 5127, 0x5, 1, 0) + struct.pack("=HH4B", 5, 66, 1, 0, 0, 0)
    ]
    with pytest.raises(RdmaError) as caught:
        rdma_netlink.set_mode("exclusive")
    assert caught.value.code == "netns_mode_busy"


@pytest.mark.parametrize(
    "message",
    [
        struct.pack("=IHHII", 4, 0, 0, 0, 0),
        struct.pack("=IHHII", 65535, 5126, 0, 1, 0),
        struct.pack("=IHHIIHH", 20, 5126, 0, 1, 0, 65535, 66),
        struct.pack("=IHHIIHH", 20, 5126, 0, 1, 0, 1, 66),
    ],
)
def test_an_answer_that_is_cut_off_is_an_error(monkeypatch: pytest.MonkeyPatch, message: bytes) -> None:
    monkeypatch.setattr(rdma_netlink.sockets, "socket", FakeSocket([message, acknowledged(0)]))
    with pytest.raises(OSError, match="message"):
        rdma_netlink.mode()


def test_the_kinds_of_records_are_registered() -> None:
    assert {host_mode.KIND, host_mode.IMAGE_KIND} <= set(undo.SETTINGS)
    assert kernel.MODULE == host_mode.netns.MODULE == initramfs.MODULE
