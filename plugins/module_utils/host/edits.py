# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Changes of the files of a node, so that a kill at any moment leaves the old or the new one. Private to rdma.k8s.

A file is written under one fixed name beside it and then renamed. A killed run leaves at most that one file, which the
next run over the same path replaces or removes.
"""

from __future__ import annotations

import base64
import contextlib
import os
import stat
from dataclasses import dataclass
from typing import Optional

from ..core.errors import RdmaError
from .files import Root, reason_of

LARGEST = 4 << 20
"""Size in bytes of the largest file that is ever changed; a larger one is not a setting."""

_SUFFIX = ".rdma-k8s-new"


@dataclass(frozen=True)
class FileState:
    """Content, mode and owner of a file."""

    content: bytes
    mode: int = 0o644
    uid: int = 0
    gid: int = 0

    def text(self) -> str:
        """The content as text to show; what is no UTF-8 is replaced."""
        return self.content.decode("utf-8", "replace")

    def exact(self) -> str:
        """The content as text to write again: :meth:`Changes.file` makes the same bytes of it, UTF-8 or not."""
        return self.content.decode("utf-8", "surrogateescape")

    def to_dict(self) -> dict[str, object]:
        """As plain data, without loss."""
        encoded = base64.b64encode(self.content).decode("ascii")
        return {"content": encoded, "mode": self.mode, "uid": self.uid, "gid": self.gid}


def state_of(data: Optional[dict[str, object]]) -> Optional[FileState]:
    """The state from :meth:`FileState.to_dict`.

    :raises RdmaError: ``undo_record_wrong``.
    """
    if data is None:
        return None
    try:
        content = base64.b64decode(str(data["content"]), validate=True)
        return FileState(content, int(str(data["mode"])), int(str(data["uid"])), int(str(data["gid"])))
    except (KeyError, TypeError, ValueError) as error:
        raise RdmaError(
            "undo_record_wrong",
            "The undo record of a file does not hold its content, mode and owner.",
            hint="Restore the file by hand, then remove the record.",
        ) from error


def place_of(root: Root, path: str) -> str:
    """Where a file is; a symbolic link stands for what it points at.

    :raises RdmaError: ``file_unreadable``.
    """
    try:
        return root.real(path) if root.path else os.path.realpath(path)
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from error


def read(root: Root, path: str) -> Optional[FileState]:
    """The state of a regular file; ``None`` when there is none.

    :raises RdmaError: ``file_unreadable``: not a regular file, too large, or no permission.
    """
    try:
        handle = os.open(place_of(root, path), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _unreadable(path, error) from error
    try:
        about = os.fstat(handle)
        if not stat.S_ISREG(about.st_mode):
            raise RdmaError(
                "file_unreadable",
                "%s is not a regular file." % path,
                hint="Find out who made it, and move it away.",
                path=path,
            )
        if about.st_size > LARGEST:
            raise RdmaError(
                "file_unreadable",
                "%s has %d bytes, more than any setting." % (path, about.st_size),
                path=path,
            )
        with os.fdopen(os.dup(handle), "rb") as file:
            content = file.read(LARGEST)
    except OSError as error:
        raise _unreadable(path, error) from error
    finally:
        os.close(handle)
    return FileState(content, stat.S_IMODE(about.st_mode), about.st_uid, about.st_gid)


def write(root: Root, path: str, wanted: Optional[FileState]) -> None:
    """Give a file its content, mode and owner, or remove it. The directory of the file must be there.

    :raises RdmaError: ``file_not_written``; the old file is untouched then.
    """
    place = place_of(root, path)
    temporary = _temporary(place)
    try:
        if wanted is None:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(place)
        else:
            _fill(temporary, wanted)
            os.replace(temporary, place)
        flush(os.path.dirname(place))
    except OSError as error:
        raise RdmaError(
            "file_not_written",
            "%s cannot be %s: %s." % (path, "removed" if wanted is None else "written", reason_of(error)),
            hint="Check space, permissions and whether the file system is read-only; nothing of the file has changed.",
            path=path,
        ) from error
    finally:
        remove_left_over(root, path)


def remove_left_over(root: Root, path: str) -> None:
    """Remove what a killed run left beside the file."""
    with contextlib.suppress(OSError):
        os.unlink(_temporary(place_of(root, path)))


def remove_all_left_over(root: Root, directory: str) -> None:
    """Remove what killed runs left beside any file of a directory that is ours alone."""
    for name in root.names(directory) or ():
        if name.startswith(".") and name.endswith(_SUFFIX):
            with contextlib.suppress(OSError):
                os.unlink(os.path.join(place_of(root, directory), name))


def _temporary(place: str) -> str:
    directory, name = os.path.split(place)
    return os.path.join(directory, "." + name + _SUFFIX)


def _fill(temporary: str, wanted: FileState) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(temporary)
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(wanted.content)
        file.flush()
        if (wanted.uid, wanted.gid) != (os.geteuid(), os.getegid()):
            os.fchown(file.fileno(), wanted.uid, wanted.gid)
        os.fchmod(file.fileno(), wanted.mode)
        os.fsync(file.fileno())


def make_directory(root: Root, path: str, mode: int) -> None:
    """Make one directory with exactly this mode; its parent must be there.

    :raises RdmaError: ``file_not_written``.
    """
    try:
        place = place_of(root, path)
        umask = os.umask(
            0
        )  # in one step: killed before a chmod, the directory would keep a wrong mode for good
        try:
            os.mkdir(place, mode)
        finally:
            os.umask(umask)
        flush(os.path.dirname(place))
    except OSError as error:
        raise RdmaError(
            "file_not_written",
            "The directory %s cannot be made: %s." % (path, reason_of(error)),
            hint="Check space, permissions and whether the file system is read-only.",
            path=path,
        ) from error


def flush(directory: str) -> None:
    """Bring the names of a directory to the disk."""
    handle = os.open(directory or "/", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _unreadable(path: str, error: Exception) -> RdmaError:
    reason = reason_of(error) if isinstance(error, OSError) else str(error)
    return RdmaError("file_unreadable", "%s cannot be read: %s." % (path, reason), path=path)
