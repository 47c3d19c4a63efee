# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Archives of pure Python libraries that are installed on the controller. Private to rdma.k8s: it may change any time.

The same installation gives the same archive, byte for byte, whatever the order and the times of its files. Archives are
kept in a directory of the controller, named by their SHA-256.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import io
import os
import re
import tempfile
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

_EPOCH = (1980, 1, 1, 0, 0, 0)
_METADATA = ("METADATA", "PKG-INFO", "entry_points.txt")
_COMPILED = (".so", ".pyd", ".dylib", ".dll")
_NUMBER = re.compile(r"\d+")


@dataclass(frozen=True)
class Archive:
    """An archive on the controller: its SHA-256 and where it is. A temporary one is removed by who asked for it."""

    digest: str
    path: str
    temporary: bool = False


class NotAvailableError(Exception):
    """The controller has no copy of a library that it could bring; the text is a sentence that says why."""


def archive(minimum: Mapping[str, str], cache: Path) -> Archive:
    """The archive of the libraries named by ``minimum`` (with the oldest version that will do), from ``cache`` or new.

    :raises NotAvailableError: a library is not installed for this Python, too old, or not pure Python.
    """
    members: dict[str, Path | bytes] = {}
    for library, oldest in minimum.items():
        members.update(_members(library, oldest))
    index = cache / ("installed-%s" % _state(members))
    try:
        digest = index.read_text("ascii")
        path = cache / (digest + ".zip")
        if hashlib.sha256(path.read_bytes()).hexdigest() == digest:
            return Archive(digest, str(path))
    except (OSError, UnicodeDecodeError):
        pass
    return _store(members, index)


def _members(library: str, oldest: str) -> dict[str, Path | bytes]:
    """What belongs into the archive: path inside of it, and the file or the bytes."""
    try:
        installed = importlib.metadata.distribution(library)
    except importlib.metadata.PackageNotFoundError:
        raise NotAvailableError("%s is not installed on the controller." % library) from None
    if _numbers(installed.version) < _numbers(oldest):
        raise NotAvailableError(
            "%s %s on the controller is too old, %s is needed." % (library, installed.version, oldest)
        )
    members: dict[str, Path | bytes] = dict(_files(library, installed))
    if any(name.endswith(_COMPILED) for name in members) or "%s/__init__.py" % library not in members:
        raise NotAvailableError("%s on the controller is not pure Python that can be copied." % library)
    for name in _METADATA:  # pyroute2 0.7 finds its own parts through its entry points
        text = installed.read_text(name)
        if text is not None:
            members["%s-%s.dist-info/%s" % (library, installed.version, name)] = text.encode()
    return members


def _numbers(version: str) -> list[int]:
    return [int(number) for number in _NUMBER.findall(version)[:3]]


def _files(library: str, installed: importlib.metadata.Distribution) -> Iterable[tuple[str, Path]]:
    listed = [
        (str(file), Path(str(file.locate())))
        for file in installed.files or ()
        if file.parts[0] != ".." and not file.parts[0].endswith((".dist-info", ".egg-info"))
    ]
    if not listed:  # a distribution without a list of its files: a package of the system, or an editable one
        spec = importlib.util.find_spec(library)
        for top in (spec.submodule_search_locations or ()) if spec is not None else ():
            listed += [(os.path.join(library, path.relative_to(top)), path) for path in Path(top).rglob("*")]
    return [
        (name, path)
        for name, path in listed
        if "__pycache__" not in name and not name.endswith(".pyc") and path.is_file()
    ]


def _state(members: Mapping[str, Path | bytes]) -> str:
    """A digest of names, sizes and times, to find an archive again without reading all files."""
    lines = []
    for name, content in sorted(members.items()):
        if isinstance(content, Path):
            found = content.stat()
            lines.append("%s %d %d" % (name, found.st_size, found.st_mtime_ns))
        else:
            lines.append("%s %s" % (name, hashlib.sha256(content).hexdigest()))
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def _store(members: Mapping[str, Path | bytes], index: Path) -> Archive:
    """Write the archive into the directory of ``index`` and note there for which state of the installation it is."""
    content = _content(members)
    digest = hashlib.sha256(content).hexdigest()
    path = index.parent / (digest + ".zip")
    try:
        index.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _replace(path, content)
        _replace(index, digest.encode())
    except OSError:  # the home of this user cannot be written: a new archive in each run
        handle, name = tempfile.mkstemp(prefix="rdma-k8s-", suffix=".zip")
        with os.fdopen(handle, "wb") as stream:
            stream.write(content)
        return Archive(digest, name, temporary=True)
    return Archive(digest, str(path))


def _content(members: Mapping[str, Path | bytes]) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as target:
        for name, content in sorted(members.items()):
            entry = zipfile.ZipInfo(name, _EPOCH)
            entry.create_system = 3
            entry.external_attr = 0o644 << 16
            raw = content.read_bytes() if isinstance(content, Path) else content
            target.writestr(entry, raw, zipfile.ZIP_DEFLATED, 9)
    return data.getvalue()


def _replace(path: Path, content: bytes) -> None:
    handle, fresh = tempfile.mkstemp(prefix="new-", dir=path.parent)
    with os.fdopen(handle, "wb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())
    os.replace(fresh, path)
