# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module options, modules and names of the machine from their files (S19-S21, F83)."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.core.errors import RdmaError
from ansible_collections.rdma.k8s.plugins.module_utils.host import kernel
from ansible_collections.rdma.k8s.plugins.module_utils.host.files import Root


def put(root: Path, path: str, text: str) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text)


def options(root: Path) -> list[tuple[str, str, str]]:
    found = kernel.module_options(Root(str(root))) or ()
    return [(entry.source.rpartition("/")[2], entry.option, entry.value) for entry in found]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("options ib_core netns_mode=0", [(1, "netns_mode", "0")]),
        ("\n# options ib_core netns_mode=1\n  options\tib_core   netns_mode=N  \n", [(3, "netns_mode", "N")]),
        ("options ib-core netns-mode=0", [(1, "netns_mode", "0")]),
        ("options ib_core netns_mode", [(1, "netns_mode", "Y")]),
        ("options ib_core netns_mode=", [(1, "netns_mode", "")]),
        ("options ib_core a=1 netns_mode=0", [(1, "a", "1"), (1, "netns_mode", "0")]),
        ('options ib_core netns_mode="0"', [(1, "netns_mode", "0")]),
        (
            "options ib_core \\\nnetns_mode=0\noptions ib_core netns_mode=1",
            [(1, "netns_mode", "0"), (3, "netns_mode", "1")],
        ),
        ("options ib_core netns_mode=0 \\", [(1, "netns_mode", "0")]),
        ("options ib_core", []),
        ("options ib_core_x netns_mode=0", []),
        ("options", []),
        ("option ib_core netns_mode=0", []),
        ("install ib_core /bin/false", []),
        ('options ib_core netns_mode="0', [(1, "netns_mode", '"0')]),
    ],
)
def test_a_modprobe_file(text: str, found: list[tuple[int, str, str]], tmp_path: Path) -> None:
    put(tmp_path, "etc/modprobe.d/x.conf", text)
    entries = kernel.module_options(Root(str(tmp_path))) or ()
    assert [(entry.line, entry.option, entry.value) for entry in entries] == found
    assert all(entry.source == "/etc/modprobe.d/x.conf" and entry.modified for entry in entries)


def test_files_count_in_the_order_of_names_and_earlier_directories_hide_later_ones(tmp_path: Path) -> None:
    put(tmp_path, "lib/modprobe.d/a.conf", "options ib_core netns_mode=1")
    put(tmp_path, "usr/lib/modprobe.d/b.conf", "options ib_core netns_mode=2")
    put(tmp_path, "run/modprobe.d/b.conf", "options ib_core netns_mode=3")
    put(tmp_path, "etc/modprobe.d/c.conf", "options ib_core netns_mode=4")
    put(tmp_path, "etc/modprobe.d/a.conf", "# nothing")
    put(tmp_path, "etc/modprobe.d/d.conf.bak", "options ib_core netns_mode=5")
    put(tmp_path, "usr/local/lib/modprobe.d/0.conf", "options ib_core netns_mode=6")
    put(
        tmp_path,
        "proc/cmdline",
        "quiet ib_core.netns_mode=7 ib-core.netns_mode=8 x.netns_mode=9 ib_core netns_mode=1\n",
    )
    assert options(tmp_path) == [
        ("0.conf", "netns_mode", "6"),
        ("b.conf", "netns_mode", "3"),
        ("c.conf", "netns_mode", "4"),
        ("cmdline", "netns_mode", "7"),
        ("cmdline", "netns_mode", "8"),
    ]


def test_modules_live_builtin_and_absent(tmp_path: Path) -> None:
    put(
        tmp_path,
        "proc/modules",
        "mlx5_core 2 1 mlx5_ib, Live 0x0000000000000000\nmlx5_ib 2 0 - Unloading 0x0\nvfat 1 0 - Live 0x0\nshort\n",
    )
    put(
        tmp_path,
        "lib/modules/6.8/modules.builtin",
        "kernel/drivers/infiniband/core/ib-core.ko\nkernel/x.ko\n",
    )
    (tmp_path / "sys/module/rdma_cm").mkdir(parents=True)
    assert kernel.modules(Root(str(tmp_path)), "6.8") == {
        "mlx5_core": "live",
        "mlx5_ib": "unloading",
        "ib_core": "builtin",
        "rdma_cm": "builtin",
    }


def test_the_machine(tmp_path: Path) -> None:
    root = Root(str(tmp_path))
    assert kernel.host(root).hostname == ""
    put(tmp_path, "etc/hostname", "n7\n")
    put(tmp_path, "etc/os-release", "ID=\"ol\"\nVERSION_ID='8.10'\nNAME=Oracle\nbroken\n")
    put(tmp_path, "proc/stat", "cpu 1\nbtime 1772000000\n")
    found = kernel.host(root)
    assert (found.hostname, found.os, found.os_version, found.boot_time) == ("n7", "ol", "8.10", 1772000000)
    put(tmp_path, "proc/sys/kernel/hostname", "n8\n")
    assert kernel.host(root).hostname == "n8"
    assert found.architecture == ""


def test_control_groups(tmp_path: Path) -> None:
    """A11."""
    root = Root(str(tmp_path))
    assert kernel.host(root).cgroup == ""
    (tmp_path / "sys/fs/cgroup/memory").mkdir(parents=True)
    assert kernel.host(root).cgroup == "v1"
    put(tmp_path, "sys/fs/cgroup/cgroup.controllers", "cpu memory\n")
    assert kernel.host(root).cgroup == "v2"
    assert root.errors == []


SOCKETS = """\
Num       RefCount Protocol Flags    Type St Inode Path
00000000b7b4813f: 00000002 00000000 00010000 0001 01 71 /run/containerd/containerd.sock
00000000b7b48140: 00000003 00000000 00000000 0001 03 72
"""


@pytest.mark.parametrize(
    ("line", "listens"),
    [
        ("00000000c: 00000002 00000000 00010000 0001 01 73 /var/run/nri/nri.sock", True),
        ("00000000c: 00000002 00000000 00010000 0001 01 73 /run/nri/nri.sock", True),
        (
            "00000000e7984233: 00000002 00000000 00010000 0001 01  1122 /var/run/nri/nri.sock",
            True,
        ),  # containerd 2.4
        ("00000000c: 00000003 00000000 00000000 0001 03 73 /var/run/nri/nri.sock", False),  # a connection
        ("00000000c: 00000002 00000000 00010000 0001 01 73 /other/run/nri/nri.sock", False),
        ("00000000c: 00000002 00000000 00010000 0001 01 73 /var/run/nri/nri.sock.old", False),
        ("00000000c: 00000002 00000000 00010000 0001 01 73 @/run/nri/nri.sock", False),
        ("damaged /run/nri/nri.sock", False),
        ("", False),
    ],
)
def test_who_listens_for_nri(tmp_path: Path, line: str, listens: bool) -> None:
    """F116: by the sockets of the first process of the host; a file alone tells nothing."""
    root = Root(str(tmp_path))
    put(tmp_path, "var/run/nri/nri.sock", "")
    assert kernel.host(root).nri is None
    put(tmp_path, "proc/1/net/unix", SOCKETS + line)
    assert kernel.host(root).nri is listens
    assert root.errors == []


def test_a_listener_of_this_machine(tmp_path: Path) -> None:
    """The kernel writes its list as it is read here."""
    place = tmp_path / "run/nri/nri.sock"
    place.parent.mkdir(parents=True)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(place))
        server.listen(1)
        found = Path("/proc/self/net/unix").read_text("utf-8", "replace")
    (line,) = [entry for entry in found.splitlines() if entry.endswith(str(place))]
    root = tmp_path / "root"
    put(root, "proc/1/net/unix", line.replace(str(place), "/run/nri/nri.sock") + "\n")
    assert kernel.host(Root(str(root))).nri is True


def test_this_machine_tells_its_own_names() -> None:
    found = kernel.host(Root())
    assert found.architecture
    assert found.boot_id
    assert found.boot_time is not None
    assert found.boot_time > 1500000000


def test_a_file_whose_name_begins_with_a_dot_is_none(tmp_path: Path) -> None:
    """kmod passes over it (S20)."""
    put(tmp_path, "etc/modprobe.d/.old.conf", "options ib_core netns_mode=0")
    put(tmp_path, "etc/modprobe.d/.conf", "options ib_core netns_mode=0")
    assert options(tmp_path) == []
    assert kernel.exact_modprobe_files(Root(str(tmp_path))) == []


def test_for_a_change_every_byte_counts_and_a_mask_hides(tmp_path: Path) -> None:
    (tmp_path / "etc/modprobe.d").mkdir(parents=True)
    (tmp_path / "etc/modprobe.d/a.conf").write_bytes(b"# f\xfcr\n")
    put(tmp_path, "usr/lib/modprobe.d/b.conf", "options ib_core netns_mode=0")
    (tmp_path / "etc/modprobe.d/b.conf").symlink_to("/dev/null")
    (tmp_path / "etc/modprobe.d/c.conf").symlink_to("/nowhere.conf")
    assert kernel.exact_modprobe_files(Root(str(tmp_path))) == [("/etc/modprobe.d/a.conf", "# f\udcfcr\n")]


@pytest.mark.parametrize("kind", ["large", "directory", "name"])
def test_for_a_change_what_cannot_be_read_is_no_silence(tmp_path: Path, kind: str) -> None:
    (tmp_path / "etc/modprobe.d").mkdir(parents=True)
    if kind == "large":
        (tmp_path / "etc/modprobe.d/a.conf").write_text("#" * (4 << 20) + "\noptions ib_core netns_mode=0\n")
    elif kind == "directory":
        (tmp_path / "etc/modprobe.d/a.conf").mkdir()
    else:
        (tmp_path / "etc/modprobe.d/a\n.conf").write_text("x")
    with pytest.raises(RdmaError) as caught:
        kernel.exact_modprobe_files(Root(str(tmp_path)))
    assert caught.value.code == "file_unreadable"
