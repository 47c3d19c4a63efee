# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads below a root: links stay inside, what is no plain file is refused, what is absent is no error."""

from __future__ import annotations

import os
from pathlib import Path

from hypothesis import given, settings, strategies as st

from ansible_collections.rdma.k8s.plugins.module_utils.core.snapshot import ReadError
from ansible_collections.rdma.k8s.plugins.module_utils.host.files import Root


def test_absolute_links_stay_inside_the_root(tmp_path: Path) -> None:
    root = tmp_path / "host"
    (root / "run/oci").mkdir(parents=True)
    (root / "run/oci/state").write_text("inside")
    (root / "var").mkdir()
    (root / "var/run").symlink_to("/run")
    (root / "etc").mkdir()
    (root / "etc/up").symlink_to("../../../../../run/oci/state")
    (root / "etc/chain").symlink_to("/etc/up")
    (root / "etc/passwd").symlink_to("/etc/shadow")
    files = Root(str(root) + "/")
    assert files.read("/var/run/oci/state") == "inside"
    assert files.read("/etc/up") == "inside"
    assert files.read("/etc/chain") == "inside"
    assert files.read("/etc/passwd") is None
    assert files.names("/var/run") == ["oci"]
    assert files.modified("/etc/chain") == int(os.stat(root / "run/oci/state").st_mtime)
    assert files.errors == []


def test_a_loop_of_links_is_an_error_and_not_a_hang(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("/a")
    files = Root(str(tmp_path))
    assert files.read("/a") is None
    assert files.names("/a/b") is None
    assert {error.reason for error in files.errors} == {"too many levels of symbolic links"}


def test_what_is_no_plain_file(tmp_path: Path) -> None:
    os.mkfifo(str(tmp_path / "pipe"))
    (tmp_path / "directory").mkdir()
    (tmp_path / "large").write_bytes(b"x" * 70000)
    (tmp_path / "bytes").write_bytes(b"\xffa\n")
    files = Root(str(tmp_path))
    assert files.read("/pipe") is None
    assert files.read("/directory") is None
    assert files.read("/large") is None
    assert files.read("/bytes/below") is None
    assert files.read("/none") is None
    assert files.read("/bytes") == "\ufffda\n"
    assert files.value("/bytes") == "\ufffda"
    assert files.read("/large", 70000) == "x" * 70000
    assert files.errors == [
        ReadError("/pipe", "not a regular file"),
        ReadError("/directory", "not a regular file"),
        ReadError("/large", "larger than 65536 bytes"),
    ]


def test_a_source_is_told_once(tmp_path: Path) -> None:
    files = Root(str(tmp_path))
    files.fail("x", "first")
    files.fail("x", "second")
    assert files.errors == [ReadError("x", "first")]


def test_a_file_that_opens_and_cannot_be_read() -> None:
    files = Root("/")
    assert files.read("/proc/self/mem") is None
    assert files.errors == [ReadError("/proc/self/mem", "input/output error")]


@settings(deadline=None)
@given(path=st.text(max_size=20))
def test_no_path_raises(path: str) -> None:
    for root in (Root("/nowhere/at/all"), Root("/proc/self/fdinfo")):
        root.read("/" + path)
        root.names("/" + path)
        root.value("/" + path)
        root.link("/" + path)
        root.exists("/" + path)
        root.modified("/" + path)
