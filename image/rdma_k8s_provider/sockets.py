# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Where the provider listens: sockets that come into being complete, and go with it."""

from __future__ import annotations

import os
import socket
import stat
from dataclasses import replace

from rdma_k8s.core.errors import RdmaError

from .settings import Listen

BACKLOG = 128
MODE = 0o600


class Place:
    """A listening socket. A unix socket is bound under another name, gets its mode, listens, and is then renamed."""

    def __init__(self, where: Listen) -> None:
        self.where = where
        self.socket = _unix(where.path) if where.path else _tcp(where)
        self._identity = _identity(where.path) if where.path else None

    def __str__(self) -> str:
        """The address with the port that the kernel chose where port 0 was asked for."""
        return str(self.where if self.where.path else replace(self.where, port=self.socket.getsockname()[1]))

    def remove(self) -> None:
        """Remove the socket's file, unless another process has put its own there."""
        if self._identity is not None and _identity(self.where.path) == self._identity:
            os.unlink(self.where.path)


def _identity(path: str) -> tuple[int, int] | None:
    try:
        found = os.lstat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _unix(path: str) -> socket.socket:
    try:
        mode = os.lstat(path).st_mode
    except FileNotFoundError:
        pass
    except OSError as error:
        raise _failed("unix://" + path, error) from error
    else:
        if not stat.S_ISSOCK(mode):
            raise RdmaError(
                "listen_failed",
                "%s exists and is not a socket, so it is not replaced." % path,
                hint="Give --listen another path, or remove the file.",
            )
    own = "%s.%d" % (path, os.getpid())
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    try:
        made.bind(own)
        try:
            os.chmod(own, MODE)
            made.listen(BACKLOG)
            os.rename(own, path)
        except OSError:
            os.unlink(own)
            raise
    except OSError as error:
        made.close()
        raise _failed("unix://" + path, error) from error
    made.setblocking(False)
    return made


def _tcp(where: Listen) -> socket.socket:
    family = socket.AF_INET6 if ":" in where.address else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((where.address, where.port))
        made.listen(BACKLOG)
    except OSError as error:
        made.close()
        raise _failed(str(where), error) from error
    made.setblocking(False)
    return made


def _failed(where: str, error: OSError) -> RdmaError:
    return RdmaError(
        "listen_failed",
        "The provider cannot listen at %s: %s." % (where, os.strerror(error.errno) if error.errno else error),
        hint="The directory must be there and writable, and nobody else may use the port.",
        where=where,
    )
