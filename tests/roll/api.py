# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Calls of the tests themselves to an API server: under a name of their own, so that the audit log tells them apart."""

from __future__ import annotations

import http.client
import json
import ssl
import threading
import urllib.parse
from collections.abc import Iterator
from typing import Any

AGENT = "rdma-roll-test"
MERGE = "application/merge-patch+json"


class ApiError(Exception):
    """An answer that is no success."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(f"{code}: {text}")
        self.code = code


class Api:
    """One API server; each thread has a connection of its own."""

    def __init__(self, url: str, context: ssl.SSLContext) -> None:
        self.host = urllib.parse.urlsplit(url).netloc
        self.context = context
        self._own = threading.local()

    def connection(self, timeout: float = 60.0) -> http.client.HTTPSConnection:
        """A new connection."""
        return http.client.HTTPSConnection(self.host, context=self.context, timeout=timeout)

    def call(
        self, method: str, path: str, body: Any = None, kind: str = "application/json", **query: str
    ) -> dict[str, Any]:
        """The object that the server answers with."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"User-Agent": AGENT, "Accept": "application/json", "Content-Type": kind}
        url = path + ("?" + urllib.parse.urlencode(query) if query else "")
        for again in (False, True):
            kept: http.client.HTTPSConnection | None = getattr(self._own, "connection", None)
            if kept is None:
                kept = self._own.connection = self.connection()
            try:
                kept.request(method, url, data, headers)
                answer = kept.getresponse()
                text = answer.read()
                break
            except (OSError, http.client.HTTPException):  # a kept connection that the server has closed
                kept.close()
                self._own.connection = None
                if again:
                    raise
        if answer.status >= 400:
            raise ApiError(answer.status, text.decode(errors="replace")[:300])
        found: dict[str, Any] = json.loads(text)
        return found

    def get(self, path: str, **query: str) -> dict[str, Any]:
        """An object or a list."""
        return self.call("GET", path, **query)

    def items(self, path: str, **query: str) -> list[dict[str, Any]]:
        """The objects of a list."""
        found: list[dict[str, Any]] = self.get(path, **query).get("items") or []
        return found

    def patch(self, path: str, body: Any) -> dict[str, Any]:
        """Merge into an object."""
        return self.call("PATCH", path, body, MERGE)

    def create(self, path: str, body: Any) -> None:
        """Make an object, unless it is there."""
        try:
            self.call("POST", path, body)
        except ApiError as error:
            if error.code != 409:
                raise

    def delete(self, path: str, **body: Any) -> None:
        """Delete an object, if it is there."""
        try:
            self.call("DELETE", path, body or None)
        except ApiError as error:
            if error.code != 404:
                raise

    def watch(self, path: str, version: str) -> Iterator[dict[str, Any]]:
        """Events from a version on, until the server ends it."""
        connection = self.connection(timeout=3600.0)
        query = f"watch=true&allowWatchBookmarks=true&resourceVersion={version}&timeoutSeconds=3500"
        try:
            connection.request("GET", f"{path}?{query}", headers={"User-Agent": AGENT})
            answer = connection.getresponse()
            while line := answer.readline():
                yield json.loads(line)
        finally:
            connection.close()
