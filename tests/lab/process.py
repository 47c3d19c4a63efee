# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Processes of a lab: started with a pid file, ended only after a look at what they are; and QEMU's control socket."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import select
import signal
import socket
import time

from .errors import LabError


def is_ours(pid: int, name: str) -> bool:
    """True when process ``pid`` has ``name`` as one whole argument of its command line."""
    try:
        words = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return name.encode() in words


def read_pid(file: pathlib.Path) -> int | None:
    """The number in a pid file, or None."""
    try:
        return int(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def running(file: pathlib.Path, name: str) -> bool:
    """True when the process of a pid file lives and is the one that was started."""
    pid = read_pid(file)
    return pid is not None and is_ours(pid, name)


def end(file: pathlib.Path, name: str, patience: float = 5.0) -> bool:
    """End the process of a pid file, by force after ``patience`` seconds, and remove the file; True if it ran.

    The process is held by a file descriptor while its command line is read, so that a number that was given to
    another process in the meantime can never be hit.
    """
    pid = read_pid(file)
    ended = False
    if pid is not None:
        with contextlib.suppress(ProcessLookupError):
            handle = os.pidfd_open(pid)
            try:
                if is_ours(pid, name):
                    ended = True
                    _signal_and_wait(handle, patience)
            finally:
                os.close(handle)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
    file.unlink(missing_ok=True)
    return ended


def _signal_and_wait(handle: int, patience: float) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(handle, number)
        # The descriptor becomes readable when the process has ended.
        if select.select([handle], [], [], patience)[0]:
            return
    raise LabError("process_stuck", "A process of the lab does not end even when it is killed.")


class Qmp:
    """A connection to QEMU's control socket in ``directory`` (opened through /proc, so long paths do not matter)."""

    def __init__(self, directory: pathlib.Path, name: str, timeout: float = 60.0):
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(timeout)
        handle = os.open(directory, os.O_PATH | os.O_DIRECTORY)
        try:
            self._socket.connect(f"/proc/self/fd/{handle}/{name}")
        except OSError:
            self._socket.close()
            raise
        finally:
            os.close(handle)
        self._file = self._socket.makefile("r", encoding="utf-8")
        self._file.readline()
        self.command("qmp_capabilities")

    def __enter__(self) -> Qmp:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection; QEMU goes on."""
        self._file.close()
        self._socket.close()

    def command(self, execute: str, **arguments: object):
        """Send one command and return its answer; events in between are left aside."""
        self._socket.sendall(json.dumps({"execute": execute, "arguments": arguments}).encode() + b"\n")
        while line := self._file.readline():
            answer = json.loads(line)
            if "return" in answer:
                return answer["return"]
            if "error" in answer:
                raise LabError(
                    "qmp", f"QEMU refused {execute}: {answer['error'].get('desc', answer['error'])}"
                )
        raise LabError("qmp", f"QEMU closed the connection during {execute}.")

    def monitor(self, line: str) -> str:
        """A command of the human monitor; it prints nothing when it succeeds."""
        return self.command("human-monitor-command", **{"command-line": line})


def wait_for_qmp(directory: pathlib.Path, name: str, alive, seconds: float = 30.0) -> Qmp | None:
    """Connect as soon as QEMU listens; None when ``alive()`` turns false first."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            return Qmp(directory, name)
        except OSError:
            if not alive():
                return None
            if time.monotonic() > deadline:
                raise LabError(
                    "qemu_silent", f"QEMU does not open its control socket {directory / name}."
                ) from None
            time.sleep(0.02)
