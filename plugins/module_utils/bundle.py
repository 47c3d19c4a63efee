# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Libraries that the controller brings to a node. Private to rdma.k8s: it may change with any release.

The action plugin puts two variables into the environment of the module: the SHA-256 of the archive that it can bring,
and, when it has brought it, the path of the archive. The module unpacks it once into a directory of its user's cache,
named by the SHA-256, and imports from there: an import from the archive itself compiles 300 files each time.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.metadata
import importlib.util
import os
import pwd
import re
import shutil
import stat
import sys
import tempfile
import time
import zipfile
from typing import Optional

from . import deps
from .core.errors import RdmaError

DIGEST = "RDMA_K8S_LIBRARIES"
ARCHIVE = "RDMA_K8S_LIBRARIES_ARCHIVE"
_SHA256 = re.compile(r"[0-9a-f]{64}", re.ASCII)
_NUMBER = re.compile(r"\d+", re.ASCII)
_UNUSED_DAYS = 90


def prepare(libraries: tuple[str, ...]) -> list[str]:
    """Make ``libraries`` importable, and return those that are missing and were not brought along yet.

    :raises RdmaError: ``library_archive_wrong`` when what was brought is not what was announced.
    """
    digest, archive = os.environ.get(DIGEST, ""), os.environ.get(ARCHIVE, "")
    if libraries and archive and _SHA256.fullmatch(digest):
        _use(unpack(archive, digest, cache_directory()), libraries)
        return []
    missing = [library for library in libraries if not usable(library)]
    cache = cache_directory()
    if missing and cache and _SHA256.fullmatch(digest):
        cached = os.path.join(cache, digest)
        if is_own_directory(cached):
            os.utime(cached)
            _use(cached, libraries)
            return []
    return missing


def usable(library: str) -> bool:
    """Whether a library is installed in a version that will do; it is not imported for that."""
    if importlib.util.find_spec(library) is None:
        return False
    try:
        found = importlib.metadata.version(library)
    except importlib.metadata.PackageNotFoundError:
        return True
    return _numbers(found) >= _numbers(deps.MINIMUM[library])


def _numbers(version: str) -> list[int]:
    return [int(number) for number in _NUMBER.findall(version)[:3]]


def _use(directory: str, libraries: tuple[str, ...]) -> None:
    """Import the libraries from a directory. Their bytecode is kept there, which Ansible switches off: else 300 files
    would be compiled in each run."""
    sys.path.insert(0, directory)
    importlib.invalidate_caches()
    without, sys.dont_write_bytecode = sys.dont_write_bytecode, False
    try:
        for library in libraries:
            deps.load(library)
    finally:
        sys.dont_write_bytecode = without


def cache_directory() -> str:
    """The directory of the effective user for unpacked archives; ``HOME`` can be that of another user.

    Empty for a user that the system does not know, as in some containers: nothing is kept then.
    """
    try:
        home = pwd.getpwuid(os.geteuid()).pw_dir
    except KeyError:
        return ""
    return os.path.join(home, ".cache", "rdma.k8s")


def is_own_directory(path: str) -> bool:
    """Whether a directory belongs to the effective user and nobody else may write into it."""
    try:
        found = os.lstat(path)
    except OSError:
        return False
    writable = stat.S_IWGRP | stat.S_IWOTH
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & writable


def unpack(archive: str, digest: str, cache: str) -> str:
    """Unpack an archive into ``cache`` and return the directory; a temporary one where the cache cannot be written.

    :raises RdmaError: ``library_archive_wrong``.
    """
    with open(archive, "rb") as handle:
        found = hashlib.sha256(handle.read()).hexdigest()
    if found != digest:
        raise RdmaError(
            "library_archive_wrong",
            "The archive of Python libraries %s has SHA-256 %s, expected %s." % (archive, found, digest),
            hint="Run again; if it stays, look for something that changes files on their way to the node.",
        )
    if not cache:
        return _extract(archive, None)
    try:
        os.makedirs(cache, mode=0o700, exist_ok=True)
        os.chmod(cache, 0o700)
    except OSError:
        return _extract(archive, None)
    target = os.path.join(cache, digest)
    if not is_own_directory(target):
        fresh = _extract(archive, cache)
        try:
            os.rename(fresh, target)
        except OSError:  # another run was faster, or something else is in the way
            if not is_own_directory(target):
                return fresh
            shutil.rmtree(fresh, ignore_errors=True)
        _forget_unused(cache, digest)
    return target


def _extract(archive: str, parent: Optional[str]) -> str:
    fresh = tempfile.mkdtemp(prefix="new-", dir=parent)
    with zipfile.ZipFile(archive) as members:
        members.extractall(fresh)  # its SHA-256 is that of the archive that the controller made
    return fresh


def _forget_unused(cache: str, keep: str) -> None:
    limit = time.time() - _UNUSED_DAYS * 86400
    for name in os.listdir(cache):
        path = os.path.join(cache, name)
        if name != keep and is_own_directory(path) and os.lstat(path).st_mtime < limit:
            shutil.rmtree(path, ignore_errors=True)
