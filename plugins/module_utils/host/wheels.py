# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Wheels of pure Python libraries in a directory, with their SHA-256. Private to rdma.k8s: it may change any time.

A wheelhouse is a directory with wheels and a file ``SHA256SUMS`` as ``sha256sum *.whl`` writes it. A wheel is a ZIP
archive; one that is pure Python is installed by unpacking it, so that neither pip nor a network is needed.
"""

from __future__ import annotations

import base64
import binascii
import csv
import hashlib
import io
import os
import re
import zipfile
from collections.abc import Iterator, Mapping
from typing import Optional

from ..core.errors import RdmaError
from .files import reason_of

SUMS = "SHA256SUMS"
LARGEST = 64 << 20
"""Size in bytes of the largest wheel, packed and unpacked; pure Python is far smaller."""

_SUM = re.compile(r"([0-9a-f]{64}) [ *](\S.*)", re.ASCII)
_WHEEL = re.compile(
    r"([A-Za-z0-9_.]+)-([A-Za-z0-9_.!+]+)(?:-[0-9]\w*)?-([\w.]+)-([\w.]+)-([\w.]+)[.]whl", re.ASCII
)
_NUMBER = re.compile(r"\d+", re.ASCII)


def sums(directory: str) -> dict[str, str]:
    """The wheels that ``SHA256SUMS`` of a directory lists, with their SHA-256; all of them pure and each library once.

    :raises RdmaError: ``wheelhouse_unreadable``, ``wheelhouse_wrong``.
    """
    path = os.path.join(directory, SUMS)
    try:
        with open(path, encoding="utf-8") as file:
            lines = file.read(1 << 20).splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = reason_of(error) if isinstance(error, OSError) else "it is no text"
        raise RdmaError(
            "wheelhouse_unreadable",
            "The wheelhouse has no list of checksums: %s cannot be read: %s." % (path, reason),
            hint="Write it with 'sha256sum *.whl > %s' in the directory of the wheels." % SUMS,
            path=path,
        ) from error
    found: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        match = _SUM.fullmatch(line)
        if match is None:
            raise _wrong("line %d of %s is no checksum with a name: %r." % (number, path, line[:80]))
        found[match[2]] = match[1]
    check(found)
    return found


def check(wheels: Mapping[str, str]) -> None:
    """Refuse names that are no wheels of pure Python, and libraries that are there twice.

    :raises RdmaError: ``wheelhouse_wrong``.
    """
    seen: dict[str, str] = {}
    for name in sorted(wheels):
        match = _WHEEL.fullmatch(name)
        if match is None:
            raise _wrong("%r is no name of a wheel." % name)
        if "py3" not in match[3].split(".") or (match[4], match[5]) != ("none", "any"):
            raise _wrong(
                "%s is not pure Python for any system (its name must end in py3-none-any.whl)." % name
            )
        library = normal(match[1])
        if library in seen:
            raise _wrong("it holds %s twice: %s and %s." % (library, seen[library], name))
        seen[library] = name


def normal(library: str) -> str:
    """The one spelling of a library's name."""
    return re.sub(r"[-_.]+", "-", library).lower()


def versions(wheels: Mapping[str, str]) -> dict[str, str]:
    """The version of each library among the wheels."""
    found = {}
    for name in wheels:
        match = _WHEEL.fullmatch(name)
        if match is not None:
            found[normal(match[1])] = match[2]
    return found


def require(wheels: Mapping[str, str], minimum: Mapping[str, str]) -> None:
    """Refuse wheels without a library that is needed, or with one that is too old.

    :raises RdmaError: ``wheelhouse_wrong``.
    """
    found = versions(wheels)
    for library, oldest in minimum.items():
        version = found.get(normal(library))
        if version is None:
            raise _wrong("it lacks %s; %s or newer is needed." % (library, oldest))
        if _numbers(version) < _numbers(oldest):
            raise _wrong("it holds %s %s; %s or newer is needed." % (library, version, oldest))


def _numbers(version: str) -> list[int]:
    return [int(number) for number in _NUMBER.findall(version)[:3]]


def load(directory: str, name: str, digest: str) -> bytes:
    """The content of a wheel.

    :raises RdmaError: ``wheelhouse_unreadable``, or ``wheel_wrong`` when its SHA-256 is another one.
    """
    path = os.path.join(directory, name)
    try:
        with open(path, "rb") as file:
            content = file.read(LARGEST + 1)
    except OSError as error:
        raise RdmaError(
            "wheelhouse_unreadable", "The wheel %s cannot be read: %s." % (path, reason_of(error)), path=path
        ) from error
    found = hashlib.sha256(content).hexdigest()
    if found != digest:
        raise RdmaError(
            "wheel_wrong",
            "The wheel %s has SHA-256 %s, expected %s." % (path, found, digest),
            hint="Fetch it again from where you trust it, then write %s anew." % SUMS,
            path=path,
        )
    return content


def members(name: str, content: bytes) -> Iterator[tuple[str, bytes]]:
    """The files of a wheel, each checked against the wheel's own record.

    :raises RdmaError: ``wheel_wrong``.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            recorded = _record(archive)
            if sum(entry.file_size for entry in archive.infolist()) > LARGEST:
                raise ValueError("it is larger than %d bytes unpacked" % LARGEST)
            for entry in archive.infolist():
                if not entry.is_dir():
                    yield _safe(entry.filename), _checked(archive, entry, recorded)
    except (zipfile.BadZipFile, ValueError, KeyError, UnicodeDecodeError, binascii.Error) as error:
        raise RdmaError(
            "wheel_wrong", "The wheel %s cannot be used: %s." % (name, error), wheel=name
        ) from error


def _record(archive: zipfile.ZipFile) -> dict[str, str]:
    names = [name for name in archive.namelist() if re.fullmatch(r"[^/]+[.]dist-info/RECORD", name)]
    if len(names) != 1:
        raise ValueError("it has no record of its files")
    rows = csv.reader(archive.read(names[0]).decode("utf-8").splitlines())
    return {row[0]: row[1] for row in rows if len(row) == 3}


def _safe(name: str) -> str:
    parts = name.split("/")
    if name.startswith("/") or "\\" in name or "\0" in name or {"", ".", ".."} & set(parts):
        raise ValueError("the name %r leads out of its directory" % name)
    if parts[0].endswith(".data"):
        raise ValueError("it holds %r, which is more than a library" % parts[0])
    return name


def _checked(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, recorded: Mapping[str, str]) -> bytes:
    content = archive.read(entry)
    said: Optional[str] = recorded.get(entry.filename)
    if said is None:
        raise ValueError("its record does not name %s" % entry.filename)
    if not entry.filename.endswith(".dist-info/RECORD"):
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode("ascii").rstrip("=")
        if said != "sha256=" + digest:
            raise ValueError("%s is not what its record says" % entry.filename)
    return content


def _wrong(what: str) -> RdmaError:
    return RdmaError(
        "wheelhouse_wrong",
        "The wheelhouse cannot be used: " + what,
        hint="Fill it on a machine with a network: 'pip download --no-deps --only-binary :all: pyroute2', then "
        "'sha256sum *.whl > %s'." % SUMS,
    )
