# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reading initramfs images: every form that distributions build, damaged ones, what is kept of earlier runs (S21)."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any, Callable, Optional

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.core.errors import RdmaError
from ansible_collections.rdma.k8s.plugins.module_utils.host import commands, initramfs
from ansible_collections.rdma.k8s.plugins.module_utils.host.files import Root
from ansible_collections.rdma.k8s.tests.support import initramfs_image as image

RELEASE = "6.8.0-1035-oracle"
OPTION = b"# ours\noptions ib_core netns_mode=0\n"
FILES = {
    ".": b"",
    "etc/modprobe.d/ib_core.conf": OPTION,
    "etc/modprobe.d/README": b"options ib_core netns_mode=1\n",
    "usr/lib/modprobe.d/ib_core.conf": b"options ib_core netns_mode=1\n",
    image.MODULE % RELEASE: b"\x7fELF" + b"x" * 700_001,
    "usr/bin/sh": b"y" * 300_000,
}


def by_program(*words: str) -> Callable[[bytes], bytes]:
    """Compress with a program of this machine."""
    return lambda data: subprocess.run(words, input=data, capture_output=True, check=True).stdout


FORMS: dict[str, Callable[[bytes], bytes]] = {
    "plain": bytes,
    "gzip": lambda data: gzip.compress(data, mtime=0),
    "xz": lambda data: lzma.compress(data, check=lzma.CHECK_CRC32),
    "lzma": lambda data: lzma.compress(data, format=lzma.FORMAT_ALONE),
    "bzip2": bz2.compress,
}
for program in ("zstd", "lz4", "lzop"):
    if shutil.which(program):
        FORMS[program] = by_program(program, "-c")
if shutil.which("lz4"):
    FORMS["lz4 legacy"] = by_program("lz4", "-lc")


class Tree:
    """The root of a node with images of its kernels."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.root = Root(str(path))
        (path / "boot").mkdir()
        self.kernel(RELEASE)

    def kernel(self, release: str) -> None:
        (self.path / "lib/modules" / release).mkdir(parents=True)

    def write(self, data: bytes, name: str = "initrd.img-" + RELEASE) -> Path:
        place = self.path / "boot" / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data)
        return place

    def seen(self) -> Any:
        found = initramfs.read_all(self.root)
        assert found is not None, self.root.errors
        return found


@pytest.fixture(name="tree")
def tree_fixture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tree:
    real = commands.find

    def find(root: Root, name: str) -> Optional[str]:
        """The decompressors of this machine stand in for those of the node: the tree has none."""
        del root
        return real(Root("/"), name)

    monkeypatch.setattr(initramfs.commands, "find", find)
    monkeypatch.setattr(initramfs, "_chroot", lambda root: ())
    return Tree(tmp_path)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("before", ["", "microcode"])
def test_every_form_of_an_image_is_read(tree: Tree, form: str, before: str) -> None:
    """Debian, Ubuntu and Oracle Linux put an archive with microcode in front of the compressed one."""
    tree.write((image.early() if before else b"") + FORMS[form](image.archive(FILES)))
    (found,) = tree.seen()
    assert (found.image, found.kernel, found.has_module) == ("/boot/initrd.img-" + RELEASE, RELEASE, True)
    options = [(option.source, option.option, option.value, option.line) for option in found.options]
    assert options == [("/etc/modprobe.d/ib_core.conf", "netns_mode", "0", 2)]


def test_several_archives_count_together(tree: Tree) -> None:
    """The kernel unpacks one archive over the other; module and option can stand in different ones."""
    first = gzip.compress(image.archive({image.MODULE % RELEASE: b"x"}), mtime=0)
    second = lzma.compress(image.archive({"./etc/modprobe.d/a.conf": OPTION}))
    tree.write(first + b"\0" * 8 + second + b"\0" * 12)
    (found,) = tree.seen()
    assert found.has_module
    assert [option.source for option in found.options] == ["/etc/modprobe.d/a.conf"]


@pytest.mark.parametrize(
    ("name", "inside"),
    [
        ("lib/modules/6.8/kernel/drivers/infiniband/core/ib_core.ko.xz", True),
        ("usr/lib/modules/6.8/updates/ib_core.ko.zst", True),
        ("usr/lib/modules/6.8/extra/mlnx/ib-core.ko", True),
        ("usr/lib/modules/6.8/kernel/drivers/infiniband/core/ib_core.ko.sig/x", False),
        ("usr/lib/modules/6.8/kernel/my_ib_core.ko", False),
        ("etc/ib_core.ko", False),
    ],
)
def test_the_module_is_known_by_its_file(tree: Tree, name: str, inside: bool) -> None:
    tree.write(image.archive({name: b"x"}))
    assert tree.seen()[0].has_module is inside


def test_a_link_to_an_option_file_sets_nothing(tree: Tree) -> None:
    """Only a regular file has a text."""
    tree.write(image.archive({"etc/modprobe.d/a.conf": b"options ib_core netns_mode=0\n"}, mode=0o120777))
    assert tree.seen()[0].options == ()


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", None),
        (b"\0" * 64, None),
        (b"MZ" + b"x" * 90, "none of a known archive"),
        (gzip.compress(image.archive(FILES), mtime=0)[:-900], "ends in the middle of a compressed part"),
        (image.archive(FILES)[:-200], "ends in the middle"),
        (image.archive(FILES)[:100], "ends in the middle of an archive"),
        (b"070701" + b"z" * 200, "is damaged"),
        (image.archive({"a": b"x"}).replace(b"070701", b"070709", 2)[:110], "none of a known archive"),
        (gzip.compress(b"no archive at all", mtime=0), "an archive of another kind"),
        (gzip.compress(image.archive(FILES), mtime=0)[:200] + b"\xff" * 400, "is damaged"),
        *([(b"\x28\xb5\x2f\xfd" + b"\xff" * 60, "zstd ended with exit code")] if "zstd" in FORMS else []),
    ],
)
def test_a_damaged_image_is_an_error_that_names_it(tree: Tree, data: bytes, reason: Optional[str]) -> None:
    tree.write(data)
    found = initramfs.read_all(tree.root)
    if reason is None:
        assert found is not None
        assert not found[0].has_module
        return
    assert found is None
    assert [error.source for error in tree.root.errors] == ["/boot/initrd.img-" + RELEASE]
    assert reason in tree.root.errors[0].reason
    with pytest.raises(RdmaError, match=r"/boot/initrd\.img") as caught:
        initramfs.inspect(tree.root, remember=True)
    assert caught.value.code == "initramfs_unreadable"


def test_a_missing_program_is_named(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(initramfs.commands, "find", lambda root, name: None)
    tree.write(b"\x28\xb5\x2f\xfd" + b"x" * 60)
    assert initramfs.read_all(tree.root) is None
    assert "zstd is not on this node" in tree.root.errors[0].reason


def test_the_images_of_all_installed_kernels_are_found(tree: Tree) -> None:
    """Whichever boots next; leftovers without modules, kdump and rescue images do not."""
    tree.kernel("5.15.0-307.el9uek.x86_64")
    machine = "0123456789abcdef0123456789abcdef"
    (tree.path / "etc").mkdir()
    (tree.path / "etc/machine-id").write_text(machine + "\n")
    for name in (
        "initrd.img-" + RELEASE,
        "initrd.img",
        "initrd.img-5.4.0-gone",
        "initramfs-5.15.0-307.el9uek.x86_64.img",
        "initramfs-5.15.0-307.el9uek.x86_64kdump.img",
        "initramfs-0-rescue-%s.img" % machine,
        "%s/%s/initrd" % (machine, RELEASE),
    ):
        tree.write(image.archive({}), name)
    assert [(found.path, found.release) for found in initramfs.images(tree.root)] == [
        ("/boot/%s/%s/initrd" % (machine, RELEASE), RELEASE),
        ("/boot/initramfs-5.15.0-307.el9uek.x86_64.img", "5.15.0-307.el9uek.x86_64"),
        ("/boot/initrd.img-" + RELEASE, RELEASE),
    ]


# What is kept


def counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    read: list[str] = []
    real = initramfs._read

    def watched(root: Root, what: initramfs.Image) -> Any:
        read.append(what.path)
        return real(root, what)

    monkeypatch.setattr(initramfs, "_read", watched)
    return read


def test_an_image_is_read_again_only_when_it_changed(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    read = counted(monkeypatch)
    place = tree.write(image.archive(FILES))
    first = initramfs.inspect(tree.root, remember=True)
    assert initramfs.inspect(tree.root, remember=True) == first
    assert len(read) == 1
    times = (os.stat(place).st_atime_ns, os.stat(place).st_mtime_ns)
    tree.write(image.archive({**FILES, "etc/modprobe.d/ib_core.conf": OPTION.replace(b"0", b"1")}))
    os.utime(place, ns=times)  # the same size and time: the inode's own change time still tells
    assert [option.value for option in initramfs.inspect(tree.root, remember=True)[0].options] == ["1"]
    assert len(read) == 2


def test_check_mode_keeps_nothing(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    read = counted(monkeypatch)
    tree.write(image.archive(FILES))
    initramfs.inspect(tree.root, remember=False)
    initramfs.inspect(tree.root, remember=False)
    assert len(read) == 2
    assert not (tree.path / "var").exists()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no JSON",
        "[]",
        '{"/boot/initrd.img-%s": 7}' % RELEASE,
        '{"/boot/initrd.img-%s": {"mark": 1}}' % RELEASE,
    ],
)
def test_a_record_that_cannot_be_used_is_made_anew(tree: Tree, text: str) -> None:
    place = tree.write(image.archive(FILES))
    initramfs.inspect(tree.root, remember=True)
    cache = tree.path / initramfs.CACHE[1:]
    good = json.loads(cache.read_text())
    cache.write_text(text)
    assert initramfs.inspect(tree.root, remember=True)[0].has_module
    assert json.loads(cache.read_text()) == good
    place.unlink()
    assert initramfs.inspect(tree.root, remember=True) == []
    assert not cache.exists()


def test_a_record_with_wrong_options_is_not_believed(tree: Tree) -> None:
    tree.write(image.archive(FILES))
    initramfs.inspect(tree.root, remember=True)
    cache = tree.path / initramfs.CACHE[1:]
    document = json.loads(cache.read_text())
    document["/boot/initrd.img-" + RELEASE]["options"] = [["a"]]
    cache.write_text(json.dumps(document))
    assert [option.value for option in initramfs.inspect(tree.root, remember=True)[0].options] == ["0"]


# Building anew


@pytest.mark.parametrize(
    ("name", "tools", "argv"),
    [
        (
            "initrd.img-" + RELEASE,
            {"update-initramfs", "dracut"},
            ["update-initramfs", "-u", "-k", RELEASE],
        ),
        (
            "initrd.img-" + RELEASE,
            {"dracut"},
            ["dracut", "--force", "/boot/initrd.img-" + RELEASE, RELEASE],
        ),
        (
            "initramfs-%s.img" % RELEASE,
            {"dracut"},
            ["dracut", "--force", "/boot/initramfs-%s.img" % RELEASE, RELEASE],
        ),
    ],
)
def test_an_image_is_built_by_the_program_of_its_distribution(
    tree: Tree, monkeypatch: pytest.MonkeyPatch, name: str, tools: set[str], argv: list[str]
) -> None:
    ran: list[list[str]] = []
    monkeypatch.setattr(initramfs.commands, "find", lambda root, tool: "/x" if tool in tools else None)
    monkeypatch.setattr(initramfs.commands, "run", lambda root, words, limit: ran.append(list(words)))
    tree.write(b"", name)
    initramfs.rebuild(tree.root, "/boot/" + name)
    assert ran == [argv]


def test_an_image_that_is_gone_is_not_built(tree: Tree) -> None:
    with pytest.raises(RdmaError, match="is not there") as caught:
        initramfs.rebuild(tree.root, "/boot/initrd.img-5.4.0-gone")
    assert caught.value.code == "initramfs_unreadable"
