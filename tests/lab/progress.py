# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lines that tell what a long build is doing, with the time since it began."""

from __future__ import annotations

import collections.abc
import contextlib
import pathlib
import subprocess
import sys
import threading
import time

from .errors import LabError

HEARTBEAT = 10.0
"""Seconds after which a step that still runs says so again."""


LONGEST_LINE = 400
"""Characters of a command that go to the log."""


class Progress:
    """Prints one line per event on standard error; safe to use from several threads."""

    def __init__(self, stream=None, clock=time.monotonic, quiet: bool = False):
        self._stream = stream or sys.stderr
        self._clock = clock
        self._start = clock()
        self._lock = threading.Lock()
        self.quiet = quiet

    def elapsed(self) -> float:
        """Seconds since this object was made."""
        return self._clock() - self._start

    def say(self, text: str) -> None:
        """Print ``text`` behind the elapsed time."""
        if self.quiet:
            return
        with self._lock:
            print(f"[{self.elapsed():6.1f} s] {text}", file=self._stream, flush=True)

    @contextlib.contextmanager
    def step(self, what: str) -> collections.abc.Iterator[None]:
        """Announce a step, repeat every ``HEARTBEAT`` seconds that it runs, and tell how long it took."""
        begin = self._clock()
        done = threading.Event()

        def beat() -> None:
            while not done.wait(HEARTBEAT):
                self.say(f"{what}: still at it after {self._clock() - begin:.0f} s")

        self.say(f"{what} ...")
        thread = threading.Thread(target=beat, daemon=True)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()
        self.say(f"{what}: done in {self._clock() - begin:.1f} s")


def run_logged(command: list[str], log: pathlib.Path, *, cwd: pathlib.Path | None = None, env=None) -> None:
    """Run ``command`` with its output appended to ``log``; raise ``command_failed`` with its last lines."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as out:
        line = " ".join(command)
        out.write(f"$ {line[:LONGEST_LINE]}\n".encode())
        out.flush()
        begin = out.tell()
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, cwd=cwd, env=env, check=False
        )
    if done.returncode:
        with log.open("rb") as written:
            written.seek(begin)
            tail = written.read().decode(errors="replace").splitlines()[-8:]
        said = " | ".join(tail) or "no output"
        raise LabError(
            "command_failed",
            f"{command[0]} ended with code {done.returncode}: {said} (all of it is in {log}).",
        )
