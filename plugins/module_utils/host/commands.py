# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Programs of a node: found, run with a time limit, never through a shell. Private to rdma.k8s."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Optional

from ..core.errors import RdmaError
from .files import Root, reason_of

PATH = ("/usr/sbin", "/usr/bin", "/sbin", "/bin", "/usr/local/sbin", "/usr/local/bin")
_SHOWN = 300


@dataclass(frozen=True)
class Completed:
    """What a program printed, and its exit code (negative: the signal that ended it)."""

    stdout: str
    stderr: str
    code: int


def find(root: Root, name: str, places: Sequence[str] = PATH) -> Optional[str]:
    """The path of a program as the node sees it; ``None`` when it has none of this name."""
    for directory in places:
        path = "%s/%s" % (directory, name)
        with contextlib.suppress(OSError, ValueError):
            if os.access(root.real(path), os.X_OK) and os.path.isfile(root.real(path)):
                return path
    return None


def run(
    root: Root, argv: Sequence[str], limit: float, input: str = "", codes: Optional[Sequence[int]] = (0,)
) -> Completed:
    """Run a program of the node, below its root.

    :param argv: name or path of the program, and its arguments.
    :param limit: seconds after which it is killed with all that it started.
    :param codes: exit codes that are no error; ``None``: any.
    :raises RdmaError: ``tool_missing``, ``command_timeout`` or ``command_failed``.
    """
    program = argv[0] if argv[0].startswith("/") else find(root, argv[0])
    if program is None:
        raise _missing(argv[0])
    words = [*(("chroot", root.path) if root.path else ()), program, *argv[1:]]
    environment = {"LC_ALL": "C", "PATH": ":".join(PATH)}
    try:
        child = subprocess.Popen(
            words,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
            text=True,
            errors="replace",
            start_new_session=True,
        )
    except FileNotFoundError as error:
        raise _missing(argv[0]) from error
    except OSError as error:
        raise RdmaError(
            "command_failed",
            "%s cannot be started: %s." % (argv[0], reason_of(error)),
            command=" ".join(argv),
        ) from error
    try:
        stdout, stderr = child.communicate(input, timeout=limit)
    except subprocess.TimeoutExpired as error:
        ended = child.poll() is not None  # what it started may still hold its output open
        stdout, stderr = _end(child)
        if not ended:
            raise RdmaError(
                "command_timeout",
                "'%s' has not ended within %g s and was killed." % (" ".join(argv), limit),
                retryable=True,
                command=" ".join(argv),
            ) from error
    except BaseException:
        _end(child)
        raise
    if codes is not None and child.returncode not in codes:
        said = (stderr.strip() or stdout.strip()).splitlines()
        raise RdmaError(
            "command_failed",
            "'%s' failed with exit code %d: %s"
            % (" ".join(argv), child.returncode, said[-1][:_SHOWN] if said else "it said nothing."),
            command=" ".join(argv),
            exit_code=child.returncode,
        )
    return Completed(stdout, stderr, child.returncode)


def _end(child: subprocess.Popen[str]) -> tuple[str, str]:
    """Kill the program with all that it started, and return what they printed."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    return child.communicate()


def _missing(name: str) -> RdmaError:
    return RdmaError(
        "tool_missing",
        "The program %s is needed and not on this node." % name,
        hint="Install the package that has it.",
        tool=name,
    )
