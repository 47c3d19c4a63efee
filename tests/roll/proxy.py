# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A proxy between a controller and the API server, at which a test sees, disturbs or stops each single call.

The controller finds it in its kubeconfig and knows nothing of it: what is tested is what ships.
"""

from __future__ import annotations

import contextlib
import http.client
import http.server
import json
import socketserver
import threading
import urllib.parse
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from api import Api

HOP = frozenset(
    ("connection", "transfer-encoding", "content-length", "host", "accept-encoding", "keep-alive")
)


@dataclass(frozen=True)
class Request:
    """One call."""

    method: str
    path: str
    query: dict[str, str]
    body: bytes

    @cached_property
    def document(self) -> dict[str, Any]:
        """What was sent, if it is an object."""
        try:
            found = json.loads(self.body or b"{}")
        except ValueError:
            return {}
        return found if isinstance(found, dict) else {}

    @property
    def writes(self) -> bool:
        """Whether it changes something."""
        return self.method != "GET"


@dataclass(frozen=True)
class Canned:
    """An answer that the test gives in place of the server's; code 0: none, the connection ends."""

    code: int
    reason: str = ""
    headers: dict[str, str] = field(default_factory=dict)

    def text(self) -> bytes:
        """The body."""
        status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": self.code}
        return json.dumps({**status, "reason": self.reason, "message": "played by the test"}).encode()


SILENCE = Canned(0)


class Rule:
    """What a test does to calls; this one does nothing."""

    def before(self, request: Request) -> Canned | None:
        """Before the server gets it; an answer keeps it from the server."""

    def after(self, request: Request, code: int) -> Canned | None:
        """After the server has answered; an answer replaces it."""


class Proxy:
    """Listens on loopback, without TLS, and forwards with the rights of the administrator."""

    def __init__(self, api: Api, rule: Rule) -> None:
        self.api, self.rule = api, rule
        self.log: list[tuple[str, str, int]] = []
        """Method, path and code of each call, watches included."""
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.proxy = self
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def close(self) -> None:
        """Take no more calls."""
        self._server.shutdown()
        self._server.server_close()

    def kubeconfig(self, path: Path) -> Path:
        """Write the file by which a controller finds it."""
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "test", "cluster": {"server": self.url}}],
            "users": [{"name": "test", "user": {}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
            "current-context": "test",
        }
        path.write_text(json.dumps(content), encoding="utf-8")
        return path


class _Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128
    proxy: Proxy

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A controller that was killed leaves connections behind, which is what the test wants."""


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    server: _Server
    upstream: http.client.HTTPSConnection | None = None

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""

    def finish(self) -> None:
        """End the connection to the server together with this one."""
        if self.upstream:
            self.upstream.close()
        with contextlib.suppress(OSError):
            super().finish()

    def _forward(self) -> None:
        proxy = self.server.proxy
        length = int(self.headers.get("Content-Length") or 0)
        parts = urllib.parse.urlsplit(self.path)
        request = Request(
            self.command, parts.path, dict(urllib.parse.parse_qsl(parts.query)), self.rfile.read(length)
        )
        canned = proxy.rule.before(request)
        if canned is not None:
            proxy.log.append((request.method, request.path, canned.code))
            return self._give(canned)
        answer = self._ask(request)
        watch = request.query.get("watch") == "true" and answer.status == 200
        body = b"" if watch else answer.read()
        proxy.log.append((request.method, request.path, answer.status))
        canned = proxy.rule.after(request, answer.status)
        if canned is not None:
            return self._give(canned)
        self.send_response_only(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in HOP:
                self.send_header(name, value)
        if not watch:
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
            return None
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.wfile.flush()
        while piece := answer.read1(1 << 16):
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            self.wfile.flush()
        self.wfile.write(b"0\r\n\r\n")
        return None

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _forward  # noqa: N815

    def _ask(self, request: Request) -> http.client.HTTPResponse:
        headers = {name: value for name, value in self.headers.items() if name.lower() not in HOP}
        for again in (False, True):
            if self.upstream is None:
                self.upstream = self.server.proxy.api.connection(timeout=3600.0)
            try:
                self.upstream.request(request.method, self.path, request.body or None, headers)
                return self.upstream.getresponse()
            except http.client.RemoteDisconnected:  # kept for too long
                self.upstream.close()
                self.upstream = None
                if again:
                    raise
        raise AssertionError("not reached")

    def _give(self, canned: Canned) -> None:
        if not canned.code:
            self.close_connection = True
            return
        body = canned.text()
        self.send_response_only(canned.code)
        for name, value in canned.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
