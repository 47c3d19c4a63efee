# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The part of an API server that runs programs in containers, for :mod:`api_server`: it runs them on this machine.

It speaks the WebSocket protocol ``v4.channel.k8s.io`` as a client sees it: channel 0 is standard input, 1 and 2 are
what the program prints, 3 is how it ended. ``inside`` puts words before the command, so that it runs in a namespace.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import socket
import struct
import subprocess
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from ansible_collections.rdma.k8s.tests.support.api_server import Request, status

_GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


@dataclass
class Containers:
    """Containers by ``NAMESPACE/POD``: the words before each command that is run there.

    :ivar commands: what was run, by pod, in order.
    :ivar running: how many programs run now.
    :ivar breaks: whether connections end before the program does.
    """

    inside: dict[str, list[str]] = field(default_factory=dict)
    environment: dict[str, dict[str, str]] = field(default_factory=dict)
    forbidden: set[str] = field(default_factory=set)
    commands: list[tuple[str, list[str]]] = field(default_factory=list)
    breaks: bool = False
    running: int = 0
    _counting: threading.Lock = field(default_factory=threading.Lock)

    def count(self, more: int) -> None:
        with self._counting:
            self.running += more

    def route(self, others: Callable[[Request], Any]) -> Callable[[Request], Any]:
        """Answers to exec, and those of ``others`` to anything else."""

        def answer(request: Request) -> Any:
            parts = request.path.split("/")
            if parts[-1] != "exec":
                return others(request)
            pod = "%s/%s" % (parts[4], parts[6])
            if pod in self.forbidden:
                return status(403, 'pods "%s" is forbidden: cannot get resource "pods/exec"' % parts[6])
            return _Exec(self, pod, request)

        return answer


class _Exec:
    """A connection that becomes a WebSocket, and the program behind it."""

    def __init__(self, containers: Containers, pod: str, request: Request) -> None:
        self._containers, self._pod, self._request = containers, pod, request
        self._lock = threading.Lock()

    def send(self, handler: BaseHTTPRequestHandler) -> None:
        """Shake hands, run the program, tell how it ended."""
        words = [value for key, value in parse_qsl(urlsplit(handler.path).query) if key == "command"]
        self._containers.commands.append((self._pod, words))
        key = self._request.headers["sec-websocket-key"] + _GUID
        handler.send_response(101)
        handler.send_header("Upgrade", "websocket")
        handler.send_header("Connection", "Upgrade")
        handler.send_header(
            "Sec-WebSocket-Accept", base64.b64encode(hashlib.sha1(key.encode()).digest()).decode()
        )
        handler.send_header("Sec-WebSocket-Protocol", "v4.channel.k8s.io")
        handler.end_headers()
        handler.close_connection = True
        try:
            program = subprocess.Popen(
                [*self._containers.inside[self._pod], *words],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=self._containers.environment.get(self._pod),
            )
        except OSError as error:
            self._frame(handler, 3, _failure("InternalError", str(error), None))
            self._raw(handler, b"\x88\x02\x03\xe8")
            return
        readers = [
            threading.Thread(target=self._forward, args=(handler, channel, pipe), daemon=True)
            for channel, pipe in ((1, program.stdout), (2, program.stderr))
        ]
        feeder = threading.Thread(target=_feed, args=(handler, program), daemon=True)
        for thread in (*readers, feeder):
            thread.start()
        if self._containers.breaks:
            program.kill()
            program.wait()
            handler.connection.shutdown(socket.SHUT_RDWR)
            return
        self._containers.count(1)
        code = program.wait()
        self._containers.count(-1)
        for thread in readers:
            thread.join()
        done = json.dumps({"status": "Success"}) if not code else _failure("NonZeroExitCode", "", code)
        self._frame(handler, 3, done)
        self._raw(handler, b"\x88\x02\x03\xe8")

    def _forward(self, handler: BaseHTTPRequestHandler, channel: int, pipe: Any) -> None:
        for piece in iter(lambda: pipe.read1(4096), b""):
            self._frame(handler, channel, piece)

    def _frame(self, handler: BaseHTTPRequestHandler, channel: int, content: Any) -> None:
        data = bytes([channel]) + (content.encode() if isinstance(content, str) else content)
        size = struct.pack("!B", len(data)) if len(data) < 126 else struct.pack("!BH", 126, len(data))
        self._raw(handler, b"\x82" + size + data)

    def _raw(self, handler: BaseHTTPRequestHandler, data: bytes) -> None:
        with self._lock:
            try:
                handler.wfile.write(data)
                handler.wfile.flush()
            except OSError:
                pass  # the client has gone


def _failure(reason: str, message: str, code: Any) -> str:
    causes = [] if code is None else [{"reason": "ExitCode", "message": str(code)}]
    return json.dumps(
        {"status": "Failure", "reason": reason, "message": message, "details": {"causes": causes}}
    )


def _feed(handler: BaseHTTPRequestHandler, program: subprocess.Popen[bytes]) -> None:
    """Frames of the client to the program's standard input, until either ends."""
    try:
        while True:
            first, second = handler.rfile.read(2)
            size = second & 127
            if size == 126:
                (size,) = struct.unpack("!H", handler.rfile.read(2))
            elif size == 127:
                (size,) = struct.unpack("!Q", handler.rfile.read(8))
            mask = handler.rfile.read(4)
            data = bytes(byte ^ mask[at % 4] for at, byte in enumerate(handler.rfile.read(size)))
            if first & 15 == 8:
                return
            if data[:1] == b"\0" and program.stdin is not None:
                program.stdin.write(data[1:])
                program.stdin.flush()
    except (OSError, ValueError, struct.error):
        return
    finally:
        if program.stdin is not None:
            with contextlib.suppress(OSError):
                program.stdin.close()
