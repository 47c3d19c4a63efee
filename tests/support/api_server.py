# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A server on loopback that gives the answers that it is told to, for clients of the Kubernetes API.

It stands for nothing but the wire: statuses, headers, bodies, and connections that break or stall.
"""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlsplit

import yaml

TOKEN = "a-token-that-nobody-may-see"


class Request(NamedTuple):
    """What came in."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    """By name in lower case."""
    body: Any


class Answer(NamedTuple):
    """What goes out."""

    body: Any = b""
    status: int = 200
    headers: dict[str, str] = {}

    def send(self, handler: BaseHTTPRequestHandler) -> None:
        """Write it."""
        data = self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()
        handler.send_response(self.status)
        for name, value in {"Content-Type": "application/json", **self.headers}.items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", str(len(data)))
        handler.end_headers()
        handler.wfile.write(data)


class Breaks:
    """A connection that ends without an answer."""

    def send(self, handler: BaseHTTPRequestHandler) -> None:
        """End it."""
        handler.connection.shutdown(socket.SHUT_RDWR)
        handler.close_connection = True


class Stalls:
    """An answer of which pieces come slowly, and the end not before ``seconds``."""

    def __init__(self, seconds: float, pieces: bool) -> None:
        self.seconds, self.pieces, self.over = seconds, pieces, threading.Event()

    def send(self, handler: BaseHTTPRequestHandler) -> None:
        """Write pieces until nobody listens any more."""
        if self.pieces:
            handler.send_response(200)
            handler.send_header("Content-Length", "100000")
            handler.end_headers()
        for _piece in range(int(self.seconds / 0.05)):
            if self.over.wait(0.05):
                break
            if self.pieces:
                try:
                    handler.wfile.write(b" " * 10)
                except OSError:
                    break
        handler.close_connection = True


def status(code: int, message: str, **more: Any) -> Answer:
    """A ``Status`` object as API servers send them."""
    body = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message, "code": code}
    return Answer({**body, **more}, code)


class ApiServer:
    """The server. ``answers`` are given in their order, then ``route`` is asked."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.answers: list[Any] = []
        self.requests: list[Request] = []
        self.route: Callable[[Request], Any] = self._nothing

    @staticmethod
    def _nothing(request: Request) -> Any:
        return status(404, "the server could not find the requested resource")

    def kubeconfig(self, directory: Path, scheme: str = "http", **user: Any) -> str:
        """A kubeconfig for this server."""
        return kubeconfig(directory, f"{scheme}://127.0.0.1:{self.port}", **(user or {"token": TOKEN}))


def kubeconfig(directory: Path, server: str, **user: Any) -> str:
    """Write a kubeconfig with one user."""
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": server}}],
        "users": [{"name": "u", "user": user}],
        "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "here",
    }
    file = directory / "kubeconfig"
    file.write_text(yaml.safe_dump(content), encoding="utf-8")
    return str(file)


@contextmanager
def serving() -> Iterator[ApiServer]:
    """A running server."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            split = urlsplit(self.path)
            length = int(self.headers.get("Content-Length") or 0)
            body = self.rfile.read(length)
            request = Request(
                self.command,
                split.path,
                dict(parse_qsl(split.query)),
                {name.lower(): value for name, value in self.headers.items()},
                json.loads(body) if body else None,
            )
            api.requests.append(request)
            found = api.answers.pop(0) if api.answers else api.route(request)
            found.send(self)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    for method in ("GET", "POST", "PATCH", "DELETE", "PUT"):
        setattr(Handler, "do_" + method, Handler.answer)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    api = ApiServer(server.server_address[1])
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield api
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
