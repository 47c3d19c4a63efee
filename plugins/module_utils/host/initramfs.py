# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The initramfs images of a node: is ``ib_core`` inside, and which options would it get there (S21).

An image is read as the kernel reads it: cpio archives one behind the other, of which any can be compressed. So no tool
of the distribution has to be there, and none that lists names only hides what an option file says. Private to rdma.k8s:
it may change with any release.
"""

from __future__ import annotations

import bz2
import contextlib
import lzma
import os
import re
import stat
import subprocess
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO, Optional

from ..core import json_text, modprobe
from ..core.errors import RdmaError
from ..core.snapshot import Initramfs, ModuleOption
from . import commands, edits, network_boot, own_state
from .files import Root, reason_of

CACHE = own_state.DIRECTORY + "/initramfs.json"
REBUILD_LIMIT = 900.0
MODULE = "ib_core"
UPDATE_INITRAMFS, DRACUT = "update-initramfs", "dracut"

_IMAGES = (  # distribution's form of the name, directory of the image relative to the release
    re.compile(r"initrd\.img-(?P<release>.+)"),
    re.compile(r"initramfs-(?P<release>.+)\.img"),
    re.compile(r"initrd-(?P<release>.+)"),
)
_DEBIAN = "initrd.img-"
_LOADER_ROOTS = ("/boot", "/boot/efi", "/efi")
_MODULE_FILE = re.compile(r"(usr/)?lib/modules/[^/]+/.*/([^/]+)\.ko(\.\w+)?")
_OPTION_FILE = re.compile(r"((etc|run|usr/lib|usr/local/lib|lib)/modprobe\.d)/([^/.][^/]*\.conf)")
_OPTION_DIRECTORIES = ("etc", "run", "usr/local/lib", "usr/lib", "lib")
_LARGEST_OPTION_FILE = 1 << 20
_LONGEST_NAME = 4096
_CHUNK = 1 << 18
_HEADER = 110
_END = "TRAILER!!!"
_PROGRAMS = {  # magic of a compressed archive that Python cannot read, to the program that can
    b"\x28\xb5\x2f\xfd": ("zstd", "-dcq"),
    b"\x02\x21\x4c\x18": ("lz4", "-dcq"),
    b"\x04\x22\x4d\x18": ("lz4", "-dcq"),
    b"\x89LZO": ("lzop", "-dcq"),
}


@dataclass(frozen=True)
class Image:
    """An image that a boot loader may start: its path, and the release of its kernel."""

    path: str
    release: str


class _UnreadableError(Exception):
    """An image that cannot be read; the text says why."""


def images(root: Root) -> list[Image]:
    """The images of all kernels whose modules are installed, the running kernel's or not: any of them can boot next."""
    releases = set(root.names("/lib/modules") or ()) | set(root.names("/usr/lib/modules") or ())
    found = {}
    for name in root.names("/boot") or ():
        for form in _IMAGES:
            match = form.fullmatch(name)
            if match and match["release"] in releases:
                found["/boot/" + name] = Image("/boot/" + name, match["release"])
                break
    machine = (root.read("/etc/machine-id") or "").strip()
    for release in releases if re.fullmatch(r"[0-9a-f]{32}", machine) else ():
        for directory in _LOADER_ROOTS:
            path = "%s/%s/%s/initrd" % (directory, machine, release)
            if root.exists(path):
                found[path] = Image(path, release)
    return [found[path] for path in sorted(found)]


def read_all(root: Root) -> Optional[tuple[Initramfs, ...]]:
    """What is in the images; one that cannot be read is an error of the root, and makes the answer unknown."""
    found = []
    for image in images(root):
        try:
            found.append(_read(root, image))
        except _UnreadableError as error:
            root.fail(image.path, str(error))
    failed = any(error.source == image.path for error in root.errors for image in images(root))
    return None if failed else tuple(found)


def inspect(root: Root, remember: bool, unread: Optional[list[str]] = None) -> list[Initramfs]:
    """Like :func:`read_all`, with what an earlier run saw of an image that has not changed since.

    :param remember: keep what is seen for the next run; false in check mode.
    :param unread: takes the reason for each image of another kernel than the running one that cannot be read.
    :raises RdmaError: ``initramfs_unreadable``.
    """
    known = _known(root)
    running = root.value("/proc/sys/kernel/osrelease") or ""
    seen: dict[str, Any] = {}
    for image in images(root):
        mark = _mark(root, image)
        entry = known.get(image.path)
        if not isinstance(entry, dict) or entry.get("mark") != mark or _decoded(image, entry) is None:
            try:
                entry = {"mark": mark, **_encoded(read(root, image))}
            except RdmaError as error:
                if unread is None or image.release == running or not running:
                    raise
                unread.append(error.message)
                continue
        seen[image.path] = entry
    if remember:
        edits.remove_left_over(root, CACHE)
    if remember and seen != known:
        with contextlib.suppress(RdmaError):  # it only saves time
            own_state.write(root, CACHE, seen or None)
    decoded = [_decoded(image, seen[image.path]) for image in images(root) if image.path in seen]
    return [entry for entry in decoded if entry is not None]


def read(root: Root, image: Image) -> Initramfs:
    """What is in one image.

    :raises RdmaError: ``initramfs_unreadable``.
    """
    try:
        return _read(root, image)
    except _UnreadableError as error:
        raise RdmaError(
            "initramfs_unreadable",
            "The initramfs %s cannot be read, so it is not known whether it sets the mode: %s."
            % (image.path, error),
            hint="Install the program that is named, or build the image again.",
            path=image.path,
        ) from error


def rebuild(root: Root, path: str) -> None:
    """Build an image anew with the distribution's own program.

    :raises RdmaError: ``tool_missing``, ``initramfs_unreadable``, ``command_failed``, ``command_timeout``.
    """
    image = next((image for image in images(root) if image.path == path), None)
    if image is None:
        raise RdmaError(
            "initramfs_unreadable",
            "The initramfs %s is not there, or the modules of its kernel are not." % path,
            path=path,
        )
    argv = [DRACUT, "--force", image.path, image.release]
    if builder(root, path) != DRACUT:
        argv = [UPDATE_INITRAMFS, "-u", "-k", image.release]
    commands.run(root, argv, REBUILD_LIMIT)


def builder(root: Root, path: str) -> str:
    """The name of the program that builds an image: Debian's own for images with Debian's name, else dracut.

    :raises RdmaError: ``tool_missing``.
    """
    if path.startswith("/boot/" + _DEBIAN) and commands.find(root, UPDATE_INITRAMFS):
        return UPDATE_INITRAMFS
    if commands.find(root, DRACUT):
        return DRACUT
    raise RdmaError(
        "tool_missing",
        "%s must be built anew, and the node has neither %s nor %s." % (path, UPDATE_INITRAMFS, DRACUT),
        hint="Install the package that built it.",
        tool=DRACUT,
    )


def _read(root: Root, image: Image) -> Initramfs:
    modules: set[str] = set()
    files: dict[tuple[str, str], str] = {}
    try:
        with open(root.real(image.path), "rb") as file:
            for name, data in _entries(root, file):
                module = _MODULE_FILE.fullmatch(name)
                if module:
                    modules.add(module[2].replace("-", "_"))
                match = _OPTION_FILE.fullmatch(name)
                if match and data is not None:
                    files[match[2], match[3]] = data.decode("utf-8", "replace")
    except OSError as error:
        raise _UnreadableError(reason_of(error)) from error
    except (EOFError, zlib.error, lzma.LZMAError, ValueError) as error:
        raise _UnreadableError("it is damaged: %s" % error) from error
    drivers = tuple(sorted(modules.intersection(network_boot.drivers(root))))
    return Initramfs(image.path, image.release, MODULE in modules, tuple(_options(files)), drivers)


def _options(files: dict[tuple[str, str], str]) -> Iterator[ModuleOption]:
    """The settings in the order in which they count inside the image, as on the node (S20)."""
    chosen: dict[str, tuple[str, str]] = {}
    for directory in _OPTION_DIRECTORIES:
        for place, name in files:
            if place == directory:
                chosen.setdefault(name, (place, name))
    for name in sorted(chosen):
        place = chosen[name][0]
        for found in modprobe.in_file(files[chosen[name]], MODULE):
            yield ModuleOption("/%s/modprobe.d/%s" % (place, name), found.option, found.value, found.line)


class _Stream:
    """Bytes in order, from pieces."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._held = b""
        self.taken = 0

    def take(self, count: int, keep: bool = True) -> bytes:
        """The next bytes; ``keep`` false drops them. Fewer at the end."""
        parts = []
        left = count
        while left:
            if not self._held:
                self._held = next(self._pieces, b"")
                if not self._held:
                    break
            part, self._held = self._held[:left], self._held[left:]
            left -= len(part)
            if keep:
                parts.append(part)
        self.taken += count - left
        return b"".join(parts)

    def drop(self, count: int) -> None:
        """Pass over the next bytes."""
        before = self.taken
        self.take(count, keep=False)
        if self.taken - before != count:
            raise EOFError("it ends in the middle of a file")


def _entries(root: Root, file: BinaryIO) -> Iterator[tuple[str, Optional[bytes]]]:
    """Names of all entries, with the content of option files that are regular files."""
    offset = 0
    while True:
        file.seek(offset)
        magic = file.read(6)
        while magic[:4] == b"\0\0\0\0":  # archives are padded with zeros in between
            offset += 4
            file.seek(offset)
            magic = file.read(6)
        if len(magic) < 6 or not magic.strip(b"\0"):
            return
        if magic in (b"070701", b"070702"):
            file.seek(offset)
            stream = _Stream(iter(lambda: file.read(_CHUNK), b""))
            yield from _archive(stream)
            offset += stream.taken
            continue
        after: list[int] = []
        file.seek(offset)
        stream = _Stream(_decompressed(root, file, magic, after))
        yield from _archives(stream)
        if not after:
            return
        offset = after[0]


def _archives(stream: _Stream) -> Iterator[tuple[str, Optional[bytes]]]:
    """The archives in one compressed part."""
    while True:
        magic = stream.take(6)
        while len(magic) == 6 and magic[:4] == b"\0\0\0\0":
            magic = magic[4:] + stream.take(4)
        if not magic.strip(b"\0"):
            return
        if magic not in (b"070701", b"070702"):
            raise ValueError("an archive of another kind is inside")
        yield from _archive(stream, magic)


def _archive(stream: _Stream, magic: bytes = b"") -> Iterator[tuple[str, Optional[bytes]]]:
    """The entries of one cpio archive in the form ``newc``, up to its last."""
    while True:
        header = magic + stream.take(_HEADER - len(magic))
        magic = b""
        if len(header) < _HEADER:
            raise EOFError("it ends in the middle of an archive")
        if header[:6] not in (b"070701", b"070702"):
            raise ValueError("an entry of an archive does not begin where it must")
        mode, size, length = (int(header[place : place + 8], 16) for place in (14, 54, 94))
        if length > _LONGEST_NAME:
            raise ValueError("a name in it is too long")
        name = stream.take(length).rstrip(b"\0").decode("utf-8", "replace")
        stream.drop(-(_HEADER + length) % 4)
        if name == _END:
            return
        name = name[2:] if name.startswith("./") else name.lstrip("/")
        wanted = stat.S_ISREG(mode) and _OPTION_FILE.fullmatch(name) and size <= _LARGEST_OPTION_FILE
        data = None
        if wanted:
            data = stream.take(size)
            if len(data) < size:
                raise EOFError("it ends in the middle of a file")
        else:
            stream.drop(size)
        stream.drop(-size % 4)
        yield name, data


def _decompressed(root: Root, file: BinaryIO, magic: bytes, after: list[int]) -> Iterator[bytes]:
    """The content of a compressed part; where the next one begins is put into ``after``."""
    if magic.startswith(b"\x1f\x8b"):
        return _by_python(file, zlib.decompressobj(31), after)
    if magic == b"\xfd7zXZ\0":
        return _by_python(file, lzma.LZMADecompressor(lzma.FORMAT_XZ), after)
    if magic[:3] == b"\x5d\0\0":
        return _by_python(file, lzma.LZMADecompressor(lzma.FORMAT_ALONE), after)
    if magic.startswith(b"BZh"):
        return _by_python(file, bz2.BZ2Decompressor(), after)
    for start, words in _PROGRAMS.items():
        if magic.startswith(start):
            return _by_program(root, file, words)
    raise ValueError("its beginning %s is none of a known archive" % magic.hex())


def _by_python(file: BinaryIO, decompressor: Any, after: list[int]) -> Iterator[bytes]:
    while not decompressor.eof:
        data = file.read(_CHUNK)
        if not data:
            raise EOFError("it ends in the middle of a compressed part")
        piece = decompressor.decompress(data)
        if piece:
            yield piece
    after.append(file.tell() - len(decompressor.unused_data))


def _by_program(root: Root, file: BinaryIO, words: tuple[str, ...]) -> Iterator[bytes]:
    """Through a program of the node, which reads the rest of the file; archives behind it are its business."""
    program = commands.find(root, words[0])
    if program is None:
        raise _UnreadableError("it is compressed, and the program %s is not on this node" % words[0])
    command = [*_chroot(root), program, *words[1:]]
    os.lseek(file.fileno(), file.tell(), os.SEEK_SET)  # the buffered position becomes the descriptor's
    with subprocess.Popen(
        command,
        stdin=file.fileno(),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={"LC_ALL": "C", "PATH": ":".join(commands.PATH)},
    ) as child:
        try:
            while True:
                piece = child.stdout.read(_CHUNK) if child.stdout else b""
                if not piece:
                    break
                yield piece
        finally:
            if child.poll() is None and child.stdout and not child.stdout.closed:
                child.stdout.close()
    if child.returncode:
        raise ValueError("%s ended with exit code %d" % (words[0], child.returncode))


def _chroot(root: Root) -> tuple[str, ...]:
    """The words that start a program of the node."""
    return ("chroot", root.path) if root.path else ()


# What earlier runs saw


def _mark(root: Root, image: Image) -> list[int]:
    """What changes whenever an image is built anew."""
    try:
        found = os.stat(root.real(image.path))
    except OSError as error:
        raise RdmaError(
            "initramfs_unreadable",
            "The initramfs %s cannot be read: %s." % (image.path, reason_of(error)),
            path=image.path,
        ) from error
    return [found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns]


def _known(root: Root) -> dict[str, Any]:
    text = root.read(CACHE, 1 << 20)
    try:
        document = json_text.loads(text or "{}")
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}


def _encoded(found: Initramfs) -> dict[str, Any]:
    options = [[option.source, option.option, option.value, option.line] for option in found.options]
    return {"has_module": found.has_module, "options": options, "drivers": list(found.drivers or ())}


def _decoded(image: Image, entry: dict[str, Any]) -> Optional[Initramfs]:
    try:
        options = [
            ModuleOption(str(words[0]), str(words[1]), str(words[2]), int(words[3]))
            for words in entry["options"]
        ]
        drivers = tuple(map(str, entry["drivers"]))
        return Initramfs(image.path, image.release, bool(entry["has_module"]), tuple(options), drivers)
    except (KeyError, TypeError, ValueError, IndexError):
        return None
