# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Archives of installed libraries: the same bytes for the same installation, never one that would not run elsewhere."""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from ansible_collections.rdma.k8s.plugins.plugin_utils import archives

PYROUTE2 = {"pyroute2": "0.7.2"}


def test_the_archive_of_this_installation(tmp_path: Path) -> None:
    first = archives.archive(PYROUTE2, tmp_path / "a")
    second = archives.archive(PYROUTE2, tmp_path / "b")
    assert first.digest == second.digest == hashlib.sha256(Path(first.path).read_bytes()).hexdigest()
    assert Path(first.path).name == first.digest + ".zip"
    assert Path(first.path).stat().st_mode & 0o077 == 0
    with zipfile.ZipFile(first.path) as members:
        names = members.namelist()
    assert names == sorted(names)
    assert "pyroute2/__init__.py" in names
    assert "pyroute2/netlink/nlsocket.py" in names
    assert not [name for name in names if ".." in name or name.endswith(".pyc") or name.startswith("/")]
    assert {name.rpartition("/")[2] for name in names if ".dist-info/" in name} >= {"METADATA"}


def test_an_archive_is_made_once_and_again_when_it_is_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = archives.archive(PYROUTE2, tmp_path)
    monkeypatch.setattr(archives, "_store", None)
    assert archives.archive(PYROUTE2, tmp_path) == made
    monkeypatch.undo()
    Path(made.path).write_bytes(b"damaged")
    assert archives.archive(PYROUTE2, tmp_path) == made
    assert hashlib.sha256(Path(made.path).read_bytes()).hexdigest() == made.digest


def test_the_library_runs_from_the_unpacked_archive(tmp_path: Path) -> None:
    """With nothing else on the path, as on a node: the interpreter is the same here, the lab has others."""
    made = archives.archive(PYROUTE2, tmp_path)
    with zipfile.ZipFile(made.path) as members:
        members.extractall(tmp_path / "node")
    script = (
        "import sys; sys.path.insert(0, sys.argv[1]); import pyroute2\n"
        "assert pyroute2.__file__.startswith(sys.argv[1]), pyroute2.__file__\n"
        "with pyroute2.IPRoute() as socket: print(len(list(socket.get_links())))"
    )
    command = [sys.executable, "-I", "-S", "-c", script, str(tmp_path / "node")]
    found = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    assert int(found.stdout) >= 1


def fake(tmp_path: Path, version: str, files: dict[str, str], record: bool = True) -> None:
    """Install a distribution ``rdma_k8s_fake`` below ``tmp_path``."""
    info = "rdma_k8s_fake-%s.dist-info" % version
    files = {
        **files,
        info + "/METADATA": "Metadata-Version: 2.1\nName: rdma_k8s_fake\nVersion: %s\n" % version,
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    if record:
        lines = [
            "%s,," % name
            for name in [*files, info + "/RECORD", "../../bin/tool", "rdma_k8s_fake/__pycache__/x.pyc"]
        ]
        (tmp_path / info / "RECORD").write_text("\n".join(lines) + "\n")
    sys.path.insert(0, str(tmp_path))
    importlib.invalidate_caches()


@pytest.fixture(autouse=True)
def _path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))


INIT = {"rdma_k8s_fake/__init__.py": "x = 1\n", "rdma_k8s_fake/data.txt": "data"}
FAKE = {"rdma_k8s_fake": "1.2"}


@pytest.mark.parametrize("record", [True, False])
def test_files_come_from_the_record_or_from_the_package(record: bool, tmp_path: Path) -> None:
    fake(tmp_path / "site", "1.10", INIT, record)
    made = archives.archive(FAKE, tmp_path / "cache")
    with zipfile.ZipFile(made.path) as members:
        assert members.namelist() == [
            "rdma_k8s_fake-1.10.dist-info/METADATA", "rdma_k8s_fake/__init__.py", "rdma_k8s_fake/data.txt"
        ]  # fmt: skip


def test_a_change_of_the_installation_is_a_new_archive(tmp_path: Path) -> None:
    fake(tmp_path / "site", "1.10", INIT)
    first = archives.archive(FAKE, tmp_path / "cache")
    (tmp_path / "site/rdma_k8s_fake/__init__.py").write_text("x = 2\n")
    os.utime(tmp_path / "site/rdma_k8s_fake/__init__.py", ns=(1, 1))
    assert archives.archive(FAKE, tmp_path / "cache").digest != first.digest


@pytest.mark.parametrize(
    ("version", "files", "sentence"),
    [
        ("1.1", INIT, "rdma_k8s_fake 1.1 on the controller is too old, 1.2 is needed."),
        (
            "2.0",
            {**INIT, "rdma_k8s_fake/fast.so": "x"},
            "rdma_k8s_fake on the controller is not pure Python that can be copied.",
        ),
        (
            "2.0",
            {"other/__init__.py": ""},
            "rdma_k8s_fake on the controller is not pure Python that can be copied.",
        ),
    ],
)
def test_what_would_not_run_elsewhere_is_refused(
    version: str, files: dict[str, str], sentence: str, tmp_path: Path
) -> None:
    fake(tmp_path / "site", version, files)
    with pytest.raises(archives.NotAvailableError) as caught:
        archives.archive(FAKE, tmp_path / "cache")
    assert str(caught.value) == sentence


def test_a_library_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(archives.NotAvailableError) as caught:
        archives.archive({"rdma_k8s_absent": "1"}, tmp_path)
    assert str(caught.value) == "rdma_k8s_absent is not installed on the controller."


def test_a_home_that_cannot_be_written_gives_a_temporary_archive(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    made = archives.archive(PYROUTE2, tmp_path / "file" / "cache")
    assert made.temporary
    assert hashlib.sha256(Path(made.path).read_bytes()).hexdigest() == made.digest
    Path(made.path).unlink()
