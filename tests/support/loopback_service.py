# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An HTTP service on loopback, for what stands for a cloud."""

from __future__ import annotations

import http.server
import sys
import threading
from typing import Any, TypeVar

Own = TypeVar("Own", bound="LoopbackService")


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exc_info()[1], OSError):  # the client had enough
            super().handle_error(request, client_address)


class LoopbackService:
    """Answers GET and POST by :meth:`get` and :meth:`post`, in threads, from :meth:`serve` until :meth:`close`.

    :ivar endpoint: ``ADDRESS:PORT``.
    """

    def serve(self) -> None:
        """Start. Whatever the answers need must be there by now."""
        service = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True  # else each answer waits for an acknowledgement

            def do_GET(self) -> None:
                service.get(self)

            def do_POST(self) -> None:
                service.post(self)

            def log_message(self, *_words: Any) -> None:
                pass

        self._server = _Server(("127.0.0.1", 0), Handler)
        self.endpoint = "127.0.0.1:%d" % self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    def get(self, request: http.server.BaseHTTPRequestHandler) -> None:
        """Answer a GET."""
        raise NotImplementedError

    def post(self, request: http.server.BaseHTTPRequestHandler) -> None:
        """Answer a POST."""
        raise NotImplementedError

    def close(self) -> None:
        """Stop; the thread ends."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(10)

    def __enter__(self: Own) -> Own:
        return self

    def __exit__(self, *_error: Any) -> None:
        self.close()
