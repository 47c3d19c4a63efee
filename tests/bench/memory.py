# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Memory of a process and of its forks while it runs, out of /proc.

Forks share most of their pages with the process that made them. So the proportional size (PSS) counts, in which a page
that n processes have is a n-th page for each: the sizes of all of them add up to what the machine really gives.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")
PAUSE = 0.2
SHARE = 10
"""A look may take a tenth of the time at most: with many forks it is taken more rarely."""


@dataclass(frozen=True)
class Look:
    """One look, in KiB.

    :param main: PSS of the process itself.
    :param forks: PSS of each fork.
    :param own: what each fork shares with nobody.
    """

    main: int
    forks: tuple[int, ...] = ()
    own: tuple[int, ...] = ()

    @property
    def total(self) -> int:
        """All of them together."""
        return self.main + sum(self.forks)


def sizes(pid: int, proc: Path = PROC) -> tuple[int, int]:
    """PSS of a process, and what it shares with nobody, in KiB; zeros when it has gone."""
    found = {"Pss": 0, "Private_Clean": 0, "Private_Dirty": 0}
    try:
        text = (proc / str(pid) / "smaps_rollup").read_text(encoding="ascii")
    except OSError:  # it has ended meanwhile
        return 0, 0
    for line in text.splitlines():
        name, _colon, rest = line.partition(":")
        if name in found:
            found[name] = int(rest.split()[0])
    return found["Pss"], found["Private_Clean"] + found["Private_Dirty"]


def forks_of(pid: int, proc: Path = PROC) -> list[int]:
    """The children of a process that run what it runs: its forks, and not the programs that it started."""
    command = _read(proc / str(pid) / "cmdline")
    found = []
    for entry in proc.iterdir():
        if entry.name.isdecimal() and command:
            parent = _read(entry / "stat").rpartition(b")")[2].split()
            if len(parent) > 1 and int(parent[1]) == pid and _read(entry / "cmdline") == command:
                found.append(int(entry.name))
    return sorted(found)


def look(pid: int, proc: Path = PROC) -> Look:
    """What a process and its forks take now."""
    seen = [pair for pair in (sizes(fork, proc) for fork in forks_of(pid, proc)) if pair[0]]
    return Look(sizes(pid, proc)[0], tuple(pss for pss, _own in seen), tuple(own for _pss, own in seen))


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:  # it has ended meanwhile
        return b""


class Sampler:
    """Looks at a process from its start to its end; :meth:`begin` is for ``measure.run``."""

    def __init__(self, pause: float = PAUSE) -> None:
        self.looks: list[Look] = []
        self._pause = pause
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def begin(self, pid: int) -> None:
        """Start to look."""
        self._thread = threading.Thread(target=self._follow, args=(pid,), daemon=True)
        self._thread.start()

    def end(self) -> Look:
        """Stop, and return the look with the most memory."""
        self._over.set()
        if self._thread is not None:
            self._thread.join()
        return max(self.looks, key=lambda seen: seen.total, default=Look(0))

    def _follow(self, pid: int) -> None:
        pause = self._pause
        while not self._over.wait(pause):
            begin = time.perf_counter()
            self.looks.append(look(pid))
            pause = max(self._pause, SHARE * (time.perf_counter() - begin))
