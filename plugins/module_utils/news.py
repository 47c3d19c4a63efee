# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a module tells while it works. Private to rdma.k8s: it may change with any release.

A module can print nothing before its end. So the action plugin that runs one on the same machine makes a file and names
it in the environment of the module, and the module keeps its newest line there. Without such a file nothing is told.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Callable

VARIABLE = "RDMA_K8S_NEWS"
_LONGEST = 4096


def silent(_news: object) -> None:
    """Nobody listens."""


def teller() -> Callable[[str], None]:
    """Takes what is being done, such as ``waiting at most 300 s: 3 of 8 pods are ready``, in any number of lines."""
    path = os.environ.get(VARIABLE, "")
    return _Teller(path) if path else silent


class _Teller:
    """Keeps the newest line in a file that is there; one that cannot be written is no error, it was only news."""

    def __init__(self, path: str) -> None:
        self._path, self._told = path, ""

    def __call__(self, line: str) -> None:
        text = " ".join(line.split())
        if text == self._told:
            return
        self._told = text
        with contextlib.suppress(OSError):
            handle = os.open(self._path, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
            try:
                if stat.S_ISREG(os.fstat(handle).st_mode):
                    os.ftruncate(handle, 0)
                    os.write(handle, text.encode("utf-8", "replace")[: _LONGEST - 1] + b"\n")
            finally:
                os.close(handle)


def newest(path: str) -> str:
    """The newest line of a file that a module writes; empty: there is none, or it is being written."""
    try:
        with open(path, encoding="utf-8", errors="replace") as stream:
            text = stream.read(_LONGEST)
    except OSError:
        return ""
    return text[:-1] if text.endswith("\n") else ""
