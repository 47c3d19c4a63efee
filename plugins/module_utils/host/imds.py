# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The metadata service of Oracle Cloud (F8, F9, F60-F69). Private to rdma.k8s: it may change with any release.

Requests go straight to a literal link-local (or loopback) address: no name is resolved, no proxy of the environment is
used, no redirect is followed. Only the fields that have a use are kept (F62), with cloud identifiers shortened.
"""

from __future__ import annotations

import http.client
import io
import ipaddress
import math
import socket
import time
import urllib.parse
from dataclasses import dataclass
from typing import Any, Optional

from ..core import json_text
from ..core.errors import RdmaError
from ..core.snapshot import Imds
from . import records
from .files import Root, reason_of

DEFAULT_URL = "http://169.254.169.254/opc/v2"
TIMEOUT = 5.0
FILE = "/imds.json"

_HEADERS = {"Authorization": "Bearer Oracle", "Accept": "application/json", "Connection": "close"}
_ENDPOINTS = ("instance", "host", "vnics")
_ATTEMPTS = 3
_PAUSE = 0.3
_CONNECT = 3.0
_LIMIT = 1 << 20
_ALLOWED = tuple(
    [ipaddress.ip_network(net) for net in ("169.254.0.0/16", "127.0.0.0/8", "fe80::/10", "::1/128")]
)
_LONGEST_TEXT = 255
_LONGEST_LIST = 256
_UNIQUE = 60

_TEXT: Any = None
_FIELDS: dict[str, Any] = {
    "instance": {"shape": _TEXT},
    "host": {
        "networkBlockId": _TEXT,
        "rackId": _TEXT,
        "rdmaTopologyData": {
            "customerHPCIslandId": _TEXT,
            "customerNetworkBlock": _TEXT,
            "customerLocalBlock": _TEXT,
            "customerGpuMemoryFabric": _TEXT,
            "customerHostId": _TEXT,
        },
        "rdmaFabricData": {"ipv6": _TEXT, "planes": _TEXT},
    },
    "vnics": [{"privateIp": _TEXT, "subnetCidrBlock": _TEXT, "subnetCidrBlocks": [_TEXT]}],
}


@dataclass(frozen=True)
class Answers:
    """The reduced documents, and the agent's plugins (F58) with their states when the instance document has them."""

    documents: Imds
    plugins: Optional[dict[str, str]] = None


class _UnreachableError(Exception):
    """The service cannot be reached at all, so that asking for more is pointless."""


def read(
    root: Root, url: str = "", timeout: float = TIMEOUT, endpoints: tuple[str, ...] = _ENDPOINTS
) -> Answers:
    """Ask the endpoints; what does not answer is ``None`` with the reason among the errors of ``root``.

    :param url: base URL; empty: the service's own address, or for a recorded tree its file ``imds.json``, an object
        with the documents ``instance``, ``host`` and ``vnics``.
    :param timeout: limit of each request in seconds, connection and body included.
    :param endpoints: which of ``instance``, ``host`` and ``vnics``; all by default.
    :raises RdmaError: ``imds_url_wrong``.
    """
    if not url and records.is_recorded(root):
        documents = _recorded(root, endpoints)
    else:
        documents = _ask_all(root, _Service(url or DEFAULT_URL, timeout), endpoints)
    reduced = {name: reduce(documents[name], _FIELDS[name]) for name in documents}
    for name, document in reduced.items():
        if document is None:  # null is an answer, and the same as an empty document (F64, F69)
            reduced[name] = type(_FIELDS[name])()
    return Answers(
        Imds(reduced.get("host"), reduced.get("instance"), reduced.get("vnics")),
        _plugins(documents.get("instance")),
    )


def _recorded(root: Root, endpoints: tuple[str, ...]) -> dict[str, Any]:
    document = records.load(root, FILE) or {}
    found = {}
    for name in endpoints:
        value = document.get(name)
        if value is None or (isinstance(value, dict) and "error" in value):
            root.fail("imds:/%s/" % name, "not recorded" if value is None else str(value["error"])[:200])
        else:
            found[name] = value
    return found


def _ask_all(root: Root, service: _Service, endpoints: tuple[str, ...]) -> dict[str, Any]:
    found = {}
    unreachable = ""
    for name in endpoints:
        source = "imds:/%s/" % name
        if unreachable:
            root.fail(source, unreachable)
            continue
        try:
            found[name] = json_text.loads(service.get("/%s/" % name).decode("utf-8"))
        except _UnreachableError as error:
            unreachable = str(error)
            root.fail(source, unreachable)
        except socket.timeout:  # its own class in Python 3.9
            root.fail(source, "no complete answer within %g s" % service.timeout)
        except OSError as error:
            root.fail(source, reason_of(error))
        except http.client.HTTPException as error:
            root.fail(source, "not HTTP: %s" % (" ".join(str(error).split()) or type(error).__name__)[:200])
        except ValueError as error:
            root.fail(source, "not JSON: %s" % str(error)[:200])
        except _StatusError as error:
            root.fail(source, str(error))
    return found


class _StatusError(Exception):
    """The service answered with another status than 200, or with too much."""

    def __init__(self, text: str, retryable: bool = False) -> None:
        super().__init__(text)
        self.retryable = retryable


class _Service:
    """HTTP requests to one address, each with a limit of time that counts from connecting to the last byte."""

    def __init__(self, url: str, timeout: float) -> None:
        self.address, self.port, self.path = _checked(url)
        self.timeout = timeout

    def get(self, path: str) -> bytes:
        """The body of an answer with status 200; refused connections, broken answers and busy servers are retried."""
        for attempt in range(_ATTEMPTS):
            last = attempt == _ATTEMPTS - 1
            try:
                return self._once(path)
            except _StatusError as error:
                if last or not error.retryable:
                    raise
            except (ConnectionError, http.client.HTTPException) as error:
                if last and isinstance(error, ConnectionRefusedError):
                    raise _UnreachableError(reason_of(error)) from error
                if last:
                    raise
            time.sleep(_PAUSE * (attempt + 1))
        raise AssertionError  # the last attempt returns or raises

    def _once(self, path: str) -> bytes:
        deadline = time.monotonic() + self.timeout
        try:
            connection = socket.create_connection((self.address, self.port), min(self.timeout, _CONNECT))
        except ConnectionError:
            raise
        except OSError as error:  # no route, or nobody answers
            reason = (
                reason_of(error) if error.errno else "no connection within %g s" % min(self.timeout, _CONNECT)
            )
            raise _UnreachableError(reason) from error
        with connection:
            host = "[%s]" % self.address if ":" in self.address else self.address
            lines = ["GET %s%s HTTP/1.1" % (self.path, path), "Host: %s:%d" % (host, self.port)]
            lines += ["%s: %s" % header for header in _HEADERS.items()]
            connection.sendall(("\r\n".join(lines) + "\r\n\r\n").encode("ascii"))
            response = http.client.HTTPResponse(_Stream(connection, deadline), method="GET")  # type: ignore[arg-type]
            try:
                response.begin()
                if response.status != http.client.OK:
                    busy = response.status == http.client.TOO_MANY_REQUESTS or response.status >= 500
                    raise _StatusError("HTTP status %d" % response.status, retryable=busy)
                body = response.read(_LIMIT + 1)
            finally:
                response.close()
        if len(body) > _LIMIT:
            raise _StatusError("more than %d bytes" % _LIMIT)
        if response.length:  # closed before the announced length
            raise http.client.IncompleteRead(body, response.length)
        return body


class _Stream:
    """The part of a socket that HTTPResponse uses, reading until a deadline."""

    def __init__(self, connection: socket.socket, deadline: float) -> None:
        self._raw = _Raw(connection, deadline)

    def makefile(self, mode: str) -> io.BufferedReader:
        return io.BufferedReader(self._raw)


class _Raw(io.RawIOBase):
    def __init__(self, connection: socket.socket, deadline: float) -> None:
        self._connection = connection
        self._deadline = deadline

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise socket.timeout("deadline")
        self._connection.settimeout(left)
        return self._connection.recv_into(buffer)


def check_url(url: str) -> None:
    """Refuse a base URL that is never asked.

    :raises RdmaError: ``imds_url_wrong``.
    """
    _checked(url)


def _checked(url: str) -> tuple[str, int, str]:
    """Address, port and path of a base URL.

    :raises RdmaError: ``imds_url_wrong``.
    """
    try:
        parts = urllib.parse.urlsplit(url)
        address = ipaddress.ip_address(parts.hostname or "")
        port = parts.port or 80
    except ValueError:
        raise _wrong(url) from None
    plain = parts.scheme == "http" and not (parts.query or parts.fragment or parts.username)
    if (
        not plain
        or not any(address in net for net in _ALLOWED)
        or not parts.path.isascii()
        or " " in parts.path
    ):
        raise _wrong(url)
    return parts.hostname or "", port, parts.path.rstrip("/")


def _wrong(url: str) -> RdmaError:
    return RdmaError(
        "imds_url_wrong",
        "The URL of the metadata service must be http://ADDRESS[:PORT]/PATH with a literal link-local or loopback "
        "address, found %r." % url[:200],
        hint="Leave it out to use %s." % DEFAULT_URL,
        found=url[:200],
    )


def reduce(value: Any, fields: Any) -> Any:
    """The parts of a document that have a use; a value of a wrong type stays wrong, but holds nothing."""
    if isinstance(fields, dict) and isinstance(value, dict):
        return {name: reduce(value[name], fields[name]) for name in fields if value.get(name) is not None}
    if isinstance(fields, list) and isinstance(value, list):
        return [reduce(entry, fields[0]) for entry in value[:_LONGEST_LIST]]
    if isinstance(value, (dict, list)):
        return type(value)()
    if isinstance(value, str):
        return shortened(value)
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def shortened(text: str) -> str:
    """A text of IMDS with a cloud identifier reduced to its kind and what the driver takes of it (F65).

    The text after the last dot, 60 characters at most, is all that an attribute shows; it stays the same here.
    """
    if "ocid" in text and "." in text:
        words = text.split(".")
        kind = ".".join([*words[:2], ""]) if words[0] == "ocid1" and len(words) > 2 else "ocid"
        return "%s.%s" % (kind, words[-1][-_UNIQUE:])
    return text[:_LONGEST_TEXT]


def _plugins(instance: Any) -> Optional[dict[str, str]]:
    """The agent's plugins as the instance is configured: name to ``ENABLED`` or ``DISABLED``."""
    config = _member(instance, "agentConfig")
    entries = _member(config, "pluginsConfig")
    if not isinstance(entries, list):
        return None
    off = _member(config, "allPluginsDisabled") is True
    found = {}
    for entry in entries[:_LONGEST_LIST]:
        name, state = _member(entry, "name"), _member(entry, "desiredState")
        if isinstance(name, str) and isinstance(state, str) and "HPC" in name:
            found[name[:_LONGEST_TEXT]] = "DISABLED" if off else state[:_LONGEST_TEXT]
    return found


def _member(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, dict) else None
