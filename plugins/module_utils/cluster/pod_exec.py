# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Run a program in a pod, with one line as its input. Private to rdma.k8s: it may change with any release."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Optional

from .. import deps
from ..core import json_text
from ..core.errors import RdmaError
from ..core.kube.objects import entries, mapping, text
from .client import Cluster

_STEP = 1.0
_ERROR_CHANNEL = 3


@dataclass(frozen=True)
class Place:
    """A container of a pod."""

    namespace: str
    pod: str
    container: str

    def __str__(self) -> str:
        return "%s/%s" % (self.namespace, self.pod)


@dataclass(frozen=True)
class Printed:
    """What a program printed, and its exit code."""

    stdout: str
    stderr: str
    code: int


def run(
    cluster: Cluster,
    place: Place,
    words: Sequence[str],
    line: str,
    limit: float,
    *,
    is_over: Optional[Callable[[], bool]] = None,
) -> Printed:
    """Run a program and give it one line, or a few.

    :param words: the program and its arguments; no shell takes part.
    :param line: its input, without the end of the line.
    :param limit: seconds.
    :param is_over: whether nobody waits for the program any more; its input ends then, and nothing is known of its end.
    :raises RdmaError: ``exec_failed`` or ``exec_timeout``.
    """
    client = deps.kubernetes("kubernetes.client")
    stream = deps.kubernetes("kubernetes.stream").stream
    broken = deps.kubernetes("websocket").WebSocketException
    # The library changes the object with which it calls while it does; so each call gets one of its own.
    core = client.CoreV1Api(client.ApiClient(cluster.configuration))
    cluster.note_call(change=True)
    end = time.monotonic() + limit
    try:
        open_ = stream(
            core.connect_get_namespaced_pod_exec,
            place.pod,
            place.namespace,
            container=place.container,
            command=list(words),
            stdin=True,
            stdout=True,
            stderr=True,
            tty=False,
            _preload_content=False,
            _request_timeout=limit,
        )
    except (client.ApiException, broken, OSError, ValueError) as error:
        raise _failed(place, " ".join(str(error).split())[:300]) from error
    out: list[str] = []
    told: list[str] = []
    lost = ""
    try:
        with suppress(broken, OSError):  # a program that ended before it read tells why at its end
            open_.write_stdin(line + "\n")
        while open_.is_open():
            try:
                open_.update(timeout=_STEP)
                out.append(open_.read_stdout(timeout=0) if open_.peek_stdout() else "")
                told.append(open_.read_stderr(timeout=0) if open_.peek_stderr() else "")
            except (broken, OSError) as error:  # perhaps behind the end of the program, which counts then
                lost = " ".join(str(error).split())[:300]
                open_.close()
            if is_over is not None and is_over():
                break
            if time.monotonic() > end:
                raise RdmaError(
                    "exec_timeout",
                    "%s in the pod %s has not ended within %g s." % (words[0], place, limit),
                    hint="Look what it does on the node; the step can be done again.",
                    retryable=True,
                )
        code = 0 if open_.is_open() else _code(open_.read_channel(_ERROR_CHANNEL), lost)
    except (client.ApiException, broken, OSError, ValueError) as error:
        raise _failed(place, " ".join(str(error).split())[:300]) from error
    finally:
        open_.close()
    return Printed("".join(out), "".join(told), code)


def _code(status: str, lost: str) -> int:
    """The exit code in what the server says at the end.

    :param lost: how the connection broke.
    :raises ValueError: it says that the program was not run, or nothing: the connection broke.
    """
    told = json_text.loads(status or "null")
    if mapping(told).get("status") == "Success":
        return 0
    causes = entries(mapping(told, "details").get("causes"))
    codes = [text(cause.get("message")) for _at, cause in causes if cause.get("reason") == "ExitCode"]
    if codes and codes[0].isdigit():
        return int(codes[0])
    raise ValueError(
        text(mapping(told).get("message")) or lost or "the connection ended before the program did"
    )


def _failed(place: Place, reason: str) -> RdmaError:
    return RdmaError(
        "exec_failed",
        "No program could be run in the pod %s: %s." % (place, reason.rstrip(".") or "no reason given"),
        hint='Check that the pod runs, and that the user has the verbs "get" and "create" for "pods/exec".',
        retryable=True,
    )
