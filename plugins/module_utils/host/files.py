# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reads of files below a root. Private to rdma.k8s: it may change with any release.

The root is ``/`` on the node itself, the mount point of the host's file system in a pod, or a recorded tree. No read
raises: what is not there is ``None``, what cannot be read is ``None`` and leaves an entry in the list of errors.
"""

from __future__ import annotations

import errno
import os
import stat
from typing import Optional

from ..core.snapshot import ReadError

SMALL = 65536
_ABSENT = (errno.ENOENT, errno.ENOTDIR)
_MAX_LINKS = 40
_PAGE = 4096  # no attribute of sysfs is longer


def reason_of(error: OSError) -> str:
    """The text of an operating system error, without the path and in lower case at the start."""
    text = os.strerror(error.errno) if error.errno else str(error)
    return text[:1].lower() + text[1:] if text[1:2].islower() else text


class Root:
    """Files below ``path``; failed reads are collected in ``errors``."""

    def __init__(self, path: str = "/") -> None:
        self.path = path.rstrip("/")
        self.errors: list[ReadError] = []
        self._flagged: set[str] = set()

    def fail(self, source: str, reason: str) -> None:
        """Record that a read failed; only the first reason of a source is kept."""
        if source not in self._flagged:
            self._flagged.add(source)
            self.errors.append(ReadError(source, reason))

    def real(self, path: str) -> str:
        """The place of ``path`` (absolute, as the node sees it): symbolic links stay inside the root.

        Only for trees with absolute links (``/etc``); the links of sysfs and procfs are relative.

        :raises OSError: ELOOP.
        """
        if not self.path:
            return path
        todo = [part for part in path.split("/") if part][::-1]
        done: list[str] = []
        followed = 0
        while todo:
            part = todo.pop()
            if part == "..":
                done = done[:-1]
                continue
            place = "%s/%s" % (self.path, "/".join([*done, part]))
            try:
                target = os.readlink(place)
            except (OSError, ValueError):
                target = ""
            if not target:
                done.append(part)
                continue
            followed += 1
            if followed > _MAX_LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
            done = [] if target.startswith("/") else done
            todo += [name for name in target.split("/") if name not in ("", ".")][::-1]
        return "%s/%s" % (self.path, "/".join(done))

    def read(self, path: str, limit: int = SMALL) -> Optional[str]:
        """The text of a regular file with invalid UTF-8 replaced; ``None`` when it is absent or not readable."""
        try:
            place = self.real(path)
        except OSError as error:
            self.fail(path, reason_of(error))
            return None
        return self.read_place(place, path, limit)

    def value(self, path: str) -> Optional[str]:
        """The trimmed text of a file of sysfs or procfs, whose links need no care."""
        text = self.read_place(self.path + path, path, _PAGE)
        return None if text is None else text.strip()

    def read_place(self, place: str, path: str, limit: int = SMALL) -> Optional[str]:
        """Like :meth:`read`, with the place already known; ``path`` is the name for errors."""
        try:
            handle = os.open(place, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            if error.errno not in _ABSENT:
                self.fail(path, reason_of(error))
            return None
        except ValueError:  # a null byte in a name
            self.fail(path, "not a valid path")
            return None
        try:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                self.fail(path, "not a regular file")
                return None
            data = _read_all(handle, limit + 1)
        except OSError as error:
            self.fail(path, reason_of(error))
            return None
        finally:
            os.close(handle)
        if len(data) > limit:
            self.fail(path, "larger than %d bytes" % limit)
            return None
        return data.decode("utf-8", "replace")

    def names(self, path: str) -> Optional[list[str]]:
        """The sorted names of a directory; ``None`` when it is absent or not readable."""
        return self._names(path, careful=True)

    def entries(self, path: str) -> Optional[list[str]]:
        """Like :meth:`names` for a directory of sysfs or procfs, whose links need no care."""
        return self._names(path, careful=False)

    def _names(self, path: str, careful: bool) -> Optional[list[str]]:
        try:
            found = sorted(os.listdir(self.real(path) if careful else self.path + path))
        except OSError as error:
            if error.errno not in _ABSENT:
                self.fail(path, reason_of(error))
            return None
        except ValueError:
            self.fail(path, "not a valid path")
            return None
        readable = [name for name in found if name.isprintable()]
        if len(readable) != len(found):
            self.fail(path, "a name in this directory is not printable text")
        return readable

    def link(self, path: str) -> str:
        """The last part of the target of a symbolic link; empty when there is none."""
        try:
            return os.path.basename(os.readlink(self.path + path))
        except (OSError, ValueError):
            return ""

    def exists(self, path: str) -> bool:
        """Whether something is there (a dangling link is something)."""
        try:
            return os.path.lexists(self.path + path)
        except ValueError:  # Python 3.9 and a null byte
            return False

    def modified(self, path: str) -> Optional[int]:
        """The time of the last change of a file in seconds since the epoch."""
        try:
            return int(os.stat(self.real(path)).st_mtime)
        except (OSError, ValueError):
            return None


def _read_all(handle: int, limit: int) -> bytes:
    data = os.read(handle, limit)
    while len(data) < limit:
        more = os.read(handle, limit - len(data))
        if not more:
            break
        data += more
    return data
