# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A metadata service on loopback that answers each request with bytes of the test's choice. It runs in a thread."""

from __future__ import annotations

import json
import socket
import threading
from typing import Any, Callable, Optional, Union

Answer = Union[bytes, Callable[[socket.socket], None]]


def ok(document: Any) -> bytes:
    """A whole answer with a JSON document."""
    body = json.dumps(document).encode()
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)


class FakeImds:
    """``answers`` maps a path below ``/opc/v2`` to what is sent, in turn; the last one stays."""

    def __init__(self, answers: dict[str, list[Answer]], family: int = socket.AF_INET) -> None:
        self.answers = {path: list(entries) for path, entries in answers.items()}
        self.requests: list[str] = []
        self._server = socket.socket(family)
        self._server.bind(("::1" if family == socket.AF_INET6 else "127.0.0.1", 0))
        self._server.listen(16)
        self.port = self._server.getsockname()[1]
        host = "[::1]" if family == socket.AF_INET6 else "127.0.0.1"
        self.url = "http://%s:%d/opc/v2" % (host, self.port)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def paths(self) -> list[str]:
        """The paths that were asked for, in order."""
        return [head.split(" ")[1] for head in self.requests]

    def close(self) -> None:
        """Stop; the thread ends."""
        self._stop.set()
        self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        self._thread.join(10)

    def __enter__(self) -> FakeImds:
        return self

    def __exit__(self, *_error: Any) -> None:
        self.close()

    def _serve(self) -> None:
        while not self._stop.is_set():
            try:
                connection, _address = self._server.accept()
            except OSError:
                return
            with connection:
                self._answer(connection)

    def _answer(self, connection: socket.socket) -> None:
        connection.settimeout(10)
        try:
            head = b""
            while b"\r\n\r\n" not in head:
                piece = connection.recv(4096)
                if not piece:
                    return
                head += piece
            self.requests.append(head.decode("latin-1"))
            path = self.requests[-1].split(" ")[1]
            entries = self.answers.get(path.replace("/opc/v2", "", 1), [b"HTTP/1.1 404 Not Found\r\n\r\n"])
            answer: Optional[Answer] = entries.pop(0) if len(entries) > 1 else entries[0]
            if callable(answer):
                answer(connection)
            else:
                connection.sendall(answer)
        except OSError:
            pass  # the client had enough
