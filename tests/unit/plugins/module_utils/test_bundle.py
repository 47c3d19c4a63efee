# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Libraries that were brought along: verified, unpacked once, used only when the directory is the user's own."""

from __future__ import annotations

import hashlib
import os
import sys
import time
import zipfile
from pathlib import Path

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils import bundle, deps
from ansible_collections.rdma.k8s.plugins.module_utils.core.errors import RdmaError

LIBRARY = "rdma_k8s_test_library"


@pytest.fixture(name="home")
def home_fixture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of the test's own, no library that is left from another test, no variables."""
    monkeypatch.setattr(bundle, "cache_directory", lambda: str(tmp_path / "home/.cache/rdma.k8s"))
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setitem(deps.MINIMUM, LIBRARY, "1.2")
    for name in (bundle.DIGEST, bundle.ARCHIVE):
        monkeypatch.delenv(name, raising=False)
    sys.modules.pop(LIBRARY, None)
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


def archive(home: Path, text: str = "VALUE = 7\n", version: str = "1.10") -> tuple[str, str]:
    path = home / "a.zip"
    with zipfile.ZipFile(path, "w") as target:
        target.writestr(LIBRARY + "/__init__.py", text)
        target.writestr(
            "%s-%s.dist-info/METADATA" % (LIBRARY, version), "Name: %s\nVersion: %s\n" % (LIBRARY, version)
        )
    return str(path), hashlib.sha256(path.read_bytes()).hexdigest()


def announce(monkeypatch: pytest.MonkeyPatch, digest: str, path: str = "") -> None:
    monkeypatch.setenv(bundle.DIGEST, digest)
    if path:
        monkeypatch.setenv(bundle.ARCHIVE, path)
    else:
        monkeypatch.delenv(bundle.ARCHIVE, raising=False)


def test_nothing_is_needed_nothing_is_missing(home: Path) -> None:
    assert bundle.prepare(()) == []
    assert bundle.prepare((LIBRARY,)) == [LIBRARY]


def test_brought_then_kept(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, digest = archive(home)
    announce(monkeypatch, digest)
    assert bundle.prepare((LIBRARY,)) == [LIBRARY]
    announce(monkeypatch, digest, path)
    assert bundle.prepare((LIBRARY,)) == []
    assert sys.modules[LIBRARY].VALUE == 7
    place = Path(bundle.cache_directory())
    assert place.stat().st_mode & 0o777 == 0o700
    assert [entry.name for entry in place.iterdir()] == [digest]
    assert (place / digest).stat().st_mode & 0o077 == 0
    assert list((place / digest).rglob("*.pyc")), "bytecode is kept"
    del sys.modules[LIBRARY]
    sys.path.remove(str(place / digest))
    announce(monkeypatch, digest)
    os.unlink(path)
    assert bundle.prepare((LIBRARY,)) == []
    assert sys.modules[LIBRARY].__file__ == str(place / digest / LIBRARY / "__init__.py")


def test_bytecode_is_kept_only_for_the_libraries(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, digest = archive(home)
    announce(monkeypatch, digest, path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    bundle.prepare((LIBRARY,))
    assert sys.dont_write_bytecode


def test_an_archive_that_is_not_the_announced_one_is_refused(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, digest = archive(home)
    with open(path, "ab") as stream:
        stream.write(b"x")
    announce(monkeypatch, digest, path)
    with pytest.raises(RdmaError) as caught:
        bundle.prepare((LIBRARY,))
    assert caught.value.code == "library_archive_wrong"
    assert not Path(bundle.cache_directory()).exists()


@pytest.mark.parametrize("digest", ["", "../../etc", "A" * 64, "0" * 63, "x" * 64])
def test_a_name_that_is_no_digest_is_not_used(
    digest: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, _digest = archive(home)
    announce(monkeypatch, digest, path)
    assert bundle.prepare((LIBRARY,)) == [LIBRARY]


def test_a_directory_that_others_can_write_is_not_used(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, digest = archive(home)
    place = Path(bundle.cache_directory()) / digest
    (place / LIBRARY).mkdir(parents=True)
    (place / LIBRARY / "__init__.py").write_text("VALUE = 'planted'\n")
    place.chmod(0o777)
    announce(monkeypatch, digest)
    assert bundle.prepare((LIBRARY,)) == [LIBRARY]
    announce(monkeypatch, digest, path)
    assert bundle.prepare((LIBRARY,)) == []
    assert sys.modules[LIBRARY].VALUE == 7


def test_a_link_in_the_place_of_the_directory_is_not_followed(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _path, digest = archive(home)
    (home / "elsewhere").mkdir()
    Path(bundle.cache_directory()).mkdir(parents=True)
    (Path(bundle.cache_directory()) / digest).symlink_to(home / "elsewhere")
    announce(monkeypatch, digest)
    assert bundle.prepare((LIBRARY,)) == [LIBRARY]


def test_a_cache_that_cannot_be_made_gives_a_temporary_directory(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, digest = archive(home)
    (home / ".cache").write_text("a file in the way")
    monkeypatch.setenv("TMPDIR", str(home))
    monkeypatch.setattr(bundle.tempfile, "tempdir", None)
    announce(monkeypatch, digest, path)
    assert bundle.prepare((LIBRARY,)) == []
    assert Path(str(sys.modules[LIBRARY].__file__)).is_relative_to(home)


def test_what_was_not_used_for_long_is_removed(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, digest = archive(home)
    cache = Path(bundle.cache_directory())
    for name, days in (("old", 100), ("new", 10)):
        (cache / name).mkdir(parents=True)
        then = time.time() - days * 86400
        os.utime(cache / name, (then, then))
    (cache / "file").write_text("not ours")
    announce(monkeypatch, digest, path)
    bundle.prepare((LIBRARY,))
    assert sorted(entry.name for entry in cache.iterdir()) == sorted(["new", "file", digest])


@pytest.mark.parametrize(
    ("version", "usable"), [("1.1.9", False), ("1.2", True), ("1.10", True), ("2", True), ("", True)]
)
def test_an_installed_library_must_be_new_enough(
    version: str, usable: bool, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed = home / "site"
    (installed / LIBRARY).mkdir(parents=True)
    (installed / LIBRARY / "__init__.py").write_text("VALUE = 1\n")
    if version:
        info = installed / ("%s-%s.dist-info" % (LIBRARY, version))
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: %s\nVersion: %s\n" % (LIBRARY, version))
    sys.path.insert(0, str(installed))
    assert bundle.usable(LIBRARY) is usable
    path, digest = archive(home)
    announce(monkeypatch, digest, path)
    assert bundle.prepare((LIBRARY,)) == []
    assert sys.modules[LIBRARY].VALUE == 7, "what was brought comes before what is installed"


def test_a_broken_library_is_told_as_missing(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, digest = archive(home, "import rdma_k8s_no_such_module\n")
    announce(monkeypatch, digest, path)
    with pytest.raises(RdmaError) as caught:
        bundle.prepare((LIBRARY,))
    assert caught.value.code == "library_missing"
    assert "rdma_k8s_no_such_module" in caught.value.details["reason"]


def test_the_cache_is_that_of_the_effective_user(monkeypatch: pytest.MonkeyPatch) -> None:
    import pwd

    monkeypatch.setenv("HOME", "/home/of/somebody/else")
    assert bundle.cache_directory() == os.path.join(pwd.getpwuid(os.geteuid()).pw_dir, ".cache", "rdma.k8s")


def test_a_user_that_the_system_does_not_know_has_no_cache(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    monkeypatch.setitem(deps.MINIMUM, LIBRARY, "1.2")
    monkeypatch.setattr(bundle.os, "geteuid", lambda: 2**31 - 7)
    monkeypatch.setenv("TMPDIR", str(home))
    monkeypatch.setattr(bundle.tempfile, "tempdir", None)
    monkeypatch.setattr(sys, "path", list(sys.path))
    assert bundle.cache_directory() == ""
    path, digest = archive(home)
    announce(monkeypatch, digest)
    assert bundle.prepare((LIBRARY,)) == [LIBRARY]
    announce(monkeypatch, digest, path)
    assert bundle.prepare((LIBRARY,)) == []
    assert Path(str(sys.modules[LIBRARY].__file__)).is_relative_to(home)


def test_every_library_has_a_minimum() -> None:
    assert {"pyroute2", "netaddr"} <= set(deps.MINIMUM)
