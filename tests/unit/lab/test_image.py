# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The image: its key, its cache, and what is done carefully while it is built."""

from __future__ import annotations

import io
import json
import os
import pathlib

import pytest

from ansible_collections.rdma.k8s.tests.lab import image, packages, rxe
from ansible_collections.rdma.k8s.tests.lab.errors import LabError
from ansible_collections.rdma.k8s.tests.lab.progress import Progress

KNOWN = {"suite": "bookworm", "abi": "6.12.1+deb12-amd64", "packages": "p"}


@pytest.fixture
def said() -> io.StringIO:
    """What the cache prints."""
    return io.StringIO()


@pytest.fixture
def cache(tmp_path: pathlib.Path, said: io.StringIO, monkeypatch: pytest.MonkeyPatch) -> image.Cache:
    """A cache with a key, on a machine that has every tool."""
    monkeypatch.setattr(packages, "ensure_tools", lambda *arguments: None)
    cache = image.Cache(tmp_path / "cache", Progress(said))
    cache.claim()
    cache.key_file.write_text("private")
    cache.key_file.with_suffix(".pub").write_text("public")
    return cache


def put_image(cache: image.Cache, module: bytes | None) -> str:
    """A finished image for the known sources; its key."""
    key = cache.image_key(KNOWN, module, "public")
    (cache.path / f"image-{key}").mkdir()
    (cache.path / f"image-{key}" / "image.json").write_text("{}")
    return key


def test_key_depends_on_what_goes_in(cache: image.Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    base = cache.image_key(KNOWN, b"module", "public")
    assert base == cache.image_key(dict(KNOWN), b"module", "public")
    keys = {
        base,
        cache.image_key(KNOWN, None, "public"),
        cache.image_key(KNOWN, b"module 2", "public"),
        cache.image_key(KNOWN, b"module", "other"),
        *(cache.image_key(dict(KNOWN, **{name: "x"}), b"module", "public") for name in KNOWN),
    }
    monkeypatch.setattr(image, "MASKED_UNITS", ())
    keys.add(cache.image_key(KNOWN, b"module", "public"))
    assert len(keys) == 8


def test_an_image_of_the_same_sources_is_used_again(cache: image.Cache) -> None:
    cache.write_json("sources.json", KNOWN)
    driver = cache.path / rxe.directory_name(KNOWN["abi"])
    driver.mkdir()
    (driver / rxe.MODULE).write_bytes(b"module")
    stock, edited = put_image(cache, None), put_image(cache, b"module")
    assert cache.ensure_image("stock").key == stock
    found = cache.ensure_image("lab")
    assert (found.key, found.driver, found.abi) == (edited, "lab", KNOWN["abi"])
    assert found.root == found.path / "root.raw"


def test_a_driver_that_could_not_be_built_is_not_tried_every_time(
    cache: image.Cache, said: io.StringIO
) -> None:
    failure = {"name": rxe.directory_name(KNOWN["abi"]), "reason": "this kernel's rxe differs"}
    cache.write_json("sources.json", dict(KNOWN, no_driver=failure))
    stock = put_image(cache, None)
    found = cache.ensure_image("lab")
    assert (found.key, found.driver) == (stock, "stock")
    assert "no edited rxe: this kernel's rxe differs" in said.getvalue()
    assert "going on with the stock driver" in said.getvalue()


def test_edits_that_changed_are_tried_again(cache: image.Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    cache.write_json("sources.json", dict(KNOWN, no_driver={"name": "driver-of-older-edits", "reason": "x"}))
    put_image(cache, None)
    monkeypatch.setattr(cache, "_build", lambda driver, known, fresh: (driver, fresh))
    assert cache.ensure_image("lab") == ("lab", False)
    assert cache.ensure_image("stock", fresh=True) == ("stock", True)


def test_building_needs_debian_and_root(cache: image.Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packages, "distribution", lambda: ("ubuntu", "noble"))
    with pytest.raises(
        LabError, match="Building the node image needs Debian and its package sources; this is ubuntu"
    ):
        cache.ensure_image("lab")


def test_check_asks_for_debian_and_root_only_without_an_image(
    cache: image.Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packages, "distribution", lambda: ("fedora", ""))
    with pytest.raises(LabError, match="needs Debian"):
        cache.check()
    cache.write_json(
        "sources.json", dict(KNOWN, no_driver={"name": rxe.directory_name(KNOWN["abi"]), "reason": ""})
    )
    put_image(cache, None)
    cache.check()


def test_check_tells_that_tools_cannot_be_had(cache: image.Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(tools: object, *_more: object) -> None:
        assert tools == packages.RUN_TOOLS
        raise LabError("tools_missing", "Debian packages are missing.")

    monkeypatch.setattr(packages, "ensure_tools", refuse)
    with pytest.raises(LabError, match="packages are missing"):
        cache.check()


def test_a_full_disk_is_told_before_the_build(cache: image.Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packages, "require_debian", lambda what: "bookworm")
    monkeypatch.setattr(packages, "require_root", lambda what: None)
    monkeypatch.setattr(image, "FREE_SPACE", 1 << 62)
    with pytest.raises(LabError, match="MB free; a build needs"):
        cache.ensure_image("stock")


def test_an_unfinished_directory_never_gets_its_name(cache: image.Cache) -> None:
    def fail() -> None:
        with cache.building("part") as directory:
            (directory / "file").touch()
            raise LabError("no", "no")

    with pytest.raises(LabError, match="no"):
        fail()
    assert not (cache.path / "part").exists()
    with cache.building("part") as directory:
        assert list(directory.iterdir()) == []
        (directory / "file").touch()
    assert [path.name for path in (cache.path / "part").iterdir()] == ["file"]
    assert not list(cache.path.glob("*.unfinished"))


def test_old_things_go_and_what_runs_stays(cache: image.Cache) -> None:
    for number, name in enumerate(("image-a", "image-b", "image-c", "image-d")):
        (cache.path / name).mkdir()
        os.utime(cache.path / name, (number, number))
    for name in ("warm-a-1", "warm-b-1", "warm-d-1", "root-old", "kernel-old", "driver-old"):
        (cache.path / name).mkdir()
    current = (
        f"root-{cache.root_key('bookworm')}",
        f"kernel-{KNOWN['abi']}",
        rxe.directory_name(KNOWN["abi"]),
    )
    for name in current:
        (cache.path / name).mkdir()
    (cache.path / "run" / "one").mkdir(parents=True)
    (cache.path / "run" / "one" / "lab.json").write_text(json.dumps({"image": "/x/image-a"}))
    cache._prune(KNOWN)
    left = {path.name for path in cache.path.iterdir() if path.is_dir()}
    assert left == {"image-a", "image-c", "image-d", "warm-a-1", "warm-d-1", "run", *current}


@pytest.fixture
def removed(monkeypatch: pytest.MonkeyPatch) -> list[pathlib.Path]:
    """What would be deleted. Nothing is: a mistake in what is tested here must not cost anything."""
    paths: list[pathlib.Path] = []
    monkeypatch.setattr(image.shutil, "rmtree", paths.append)
    return paths


def test_only_what_lies_inside_is_removed(tmp_path: pathlib.Path, removed: list[pathlib.Path]) -> None:
    base = tmp_path / "cache"
    (base / "a" / "b").mkdir(parents=True)
    (tmp_path / "other").mkdir()
    (base / "link").symlink_to(tmp_path / "other")
    for path in (
        base,
        tmp_path,
        tmp_path / "other",
        base / "..",
        base / "a" / "..",
        base / ".." / "other",
        base / "link",
        base / "link" / "x",
        pathlib.Path("/"),
        pathlib.Path("/proc/.."),
    ):
        with pytest.raises(LabError, match="is not a directory inside"):
            image.remove_tree(path, base)
    for short in (pathlib.Path("/"), pathlib.Path("/tmp")):
        with pytest.raises(LabError, match="is not a directory inside"):
            image.remove_tree(tmp_path, short)
    image.remove_tree(base / "missing", base)
    assert removed == []
    image.remove_tree(base / "a", base)
    assert removed == [base.resolve() / "a"]


def test_nothing_is_removed_below_a_mount(
    tmp_path: pathlib.Path, removed: list[pathlib.Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "ab").mkdir()
    mounts = tmp_path / "mountinfo"
    mounts.write_text(f"1 2 3:4 / {tmp_path.resolve()}/a/b rw - ext4 /dev/x rw\n")
    monkeypatch.setattr(image, "MOUNTS", mounts)
    for path in (tmp_path / "a", tmp_path / "a" / "b"):
        with pytest.raises(LabError, match="is mounted there"):
            image.remove_tree(path, tmp_path)
    assert removed == []
    image.remove_tree(tmp_path / "ab", tmp_path)
    assert removed == [tmp_path.resolve() / "ab"]


def test_a_directory_with_other_things_is_no_cache(tmp_path: pathlib.Path) -> None:
    (tmp_path / "precious").touch()
    with pytest.raises(LabError, match="has other things in it; set RDMA_LAB_CACHE"):
        image.Cache(tmp_path, Progress(io.StringIO())).claim()
    for path in (pathlib.Path("/"), pathlib.Path("/tmp")):
        with pytest.raises(LabError, match="cannot be the lab's cache"):
            image.Cache(path, Progress(io.StringIO())).claim()
    assert [path.name for path in tmp_path.iterdir()] == ["precious"]
    cache = image.Cache(tmp_path / "own", Progress(io.StringIO()))
    cache.claim()
    cache.claim()
    assert [path.name for path in cache.path.iterdir()] == [image.MARK]


def test_files_of_the_guest() -> None:
    files = image.guest_files()
    assert files["/usr/local/lib/rdma-lab/node.py"] == (image.GUEST / "node.py").read_bytes()
    assert b"netns_mode=1" in files["/etc/modprobe.d/ib_core.conf"]
    assert b'NAME="rdma15"' in files["/etc/udev/rules.d/70-rdma-lab.rules"]
    assert all(name.startswith("/") for name in files)
    for units in image.WANTED_UNITS.values():
        for unit in units:
            assert f"/etc/systemd/system/{unit}" in files
            assert unit not in image.MASKED_UNITS


def test_package_sources(tmp_path: pathlib.Path) -> None:
    with pytest.raises(LabError, match="names no Debian package source"):
        image.apt_sources(tmp_path)
    parts = tmp_path / "sources.list.d"
    parts.mkdir()
    (tmp_path / "sources.list").write_text("")
    (parts / "debian.sources").write_text("Types: deb\nURIs: http://mirror.example/anything\n")
    (parts / "more.list").write_text("deb http://mirror.example/debian-security bookworm-security main\n")
    (parts / "other.list").write_text(
        "# http://mirror.example/debian\ndeb http://tools.example/apt stable main\n"
    )
    (parts / "off.sources.disabled").write_text("URIs: http://mirror.example/debian\n")
    assert [path.name for path in image.apt_sources(tmp_path)] == ["debian.sources", "more.list"]


def test_files_and_links_replace_what_is_there(tmp_path: pathlib.Path) -> None:
    outside = tmp_path / "outside"
    outside.write_text("keep")
    tree = tmp_path / "tree"
    image.put_link(tree, "/etc/resolv.conf", str(outside))
    image.put_file(tree, "/etc/resolv.conf", b"new", 0o600)
    assert outside.read_text() == "keep"
    assert (tree / "etc" / "resolv.conf").read_text() == "new"
    assert (tree / "etc" / "resolv.conf").stat().st_mode & 0o777 == 0o600
    image.put_link(tree, "/etc/resolv.conf", "/dev/null")
    assert os.readlink(tree / "etc" / "resolv.conf") == "/dev/null"
