# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A cloud on loopback: answers as the REST API of Oracle Cloud does, and checks the signature of each request.

It knows the container engine service (``/20180222``), the network service (``/20160918``), the metadata service of an
instance (``/opc/v2``) and the service that gives tokens to instances (``/v1/x509``).
"""

from __future__ import annotations

import base64
import datetime
import http.server
import json
import re
import threading
import time
import urllib.parse
import uuid
from pathlib import Path
from typing import Any, Callable, Optional, Union

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.x509.oid import NameOID

from ansible_collections.rdma.k8s.tests.support.loopback_service import LoopbackService
from ansible_collections.rdma.k8s.tests.support.oci_samples import COMPARTMENT, resources

TENANCY = "ocid1.tenancy.oc1..aaaatenancy"
USER = "ocid1.user.oc1..aaaauser"
FINGERPRINT = ":".join(["0a"] * 16)
REGION = "us-ashburn-1"
_AUTHORIZATION = re.compile(
    r'Signature algorithm="rsa-sha256",headers="([a-z0-9() -]+)",keyId="([^"]+)",signature="([A-Za-z0-9+/=]+)",'
    r'version="1"'
)

Fault = Union[int, float, Callable[[http.server.BaseHTTPRequestHandler], None]]
"""A status to answer with, seconds to wait before the right answer, or what to do with the connection."""

CODES = {
    400: "InvalidParameter",
    401: "NotAuthenticated",
    404: "NotAuthorizedOrNotFound",
    429: "TooManyRequests",
    500: "InternalServerError",
    503: "ServiceUnavailable",
}


def new_key() -> rsa.RSAPrivateKey:
    """A key for one test."""
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


def pem(key: rsa.RSAPrivateKey, pass_phrase: str = "") -> bytes:
    """A private key as text, sealed when there is a pass phrase."""
    seal: Any = serialization.NoEncryption()
    if pass_phrase:
        seal = serialization.BestAvailableEncryption(pass_phrase.encode())
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, seal)


def token(key: rsa.RSAPrivateKey, lifetime: float = 3600) -> str:
    """A session token that names the public key, as far as the SDK reads it; its own signature is nobody's."""
    numbers = key.public_key().public_numbers()

    def number(value: int) -> str:
        return _b64(value.to_bytes((value.bit_length() + 7) // 8, "big"))

    claims = {
        "sub": "test",
        "exp": int(time.time() + lifetime),
        "iat": int(time.time()),
        "res_tenant": TENANCY,
        "res_compartment": COMPARTMENT,
        "jwk": json.dumps({"kty": "RSA", "n": number(numbers.n), "e": number(numbers.e)}),
    }
    return _token(claims)


def _token(claims: dict[str, Any]) -> str:
    parts = [{"alg": "RS256"}, claims]
    return ".".join([*[_b64(json.dumps(part).encode()) for part in parts], _b64(b"nobody")])


def _b64(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def write_config(
    folder: Path, key: rsa.RSAPrivateKey, pass_phrase: str = "", **changes: Optional[str]
) -> Path:
    """A configuration file of the SDK with one profile; a change to ``None`` leaves the setting out."""
    key_file = folder / "key.pem"
    key_file.write_bytes(pem(key, pass_phrase))
    settings: dict[str, Optional[str]] = {
        "user": USER,
        "tenancy": TENANCY,
        "fingerprint": FINGERPRINT,
        "key_file": str(key_file),
        "region": REGION,
        **changes,
    }
    lines = ["[DEFAULT]", *["%s=%s" % entry for entry in settings.items() if entry[1] is not None]]
    path = folder / "config"
    path.write_text("\n".join(lines) + "\n")
    return path


def certificate(key: rsa.RSAPrivateKey) -> bytes:
    """The certificate of an instance, made by itself; it names the tenancy as the real one does."""
    name = x509.Name(
        [
            x509.NameAttribute(NameOID.COMMON_NAME, "ocid1.instance.oc1.iad.aaaainstance"),
            x509.NameAttribute(NameOID.ORGANIZATIONAL_UNIT_NAME, "opc-tenant:" + TENANCY),
        ]
    )
    now = datetime.datetime.now(datetime.timezone.utc)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(hours=1))
        .sign(key, hashes.SHA256())
    )
    return made.public_bytes(serialization.Encoding.PEM)


class FakeOci(LoopbackService):
    """The service. It runs in threads until :meth:`close`.

    :param keys: the public keys that may sign, by key id.
    :ivar faults: what to do instead of the right answer, by path, each once, in turn.
    :ivar requests: path with query of each request, in order.
    :ivar refused: why signatures were not accepted.
    """

    def __init__(self, keys: dict[str, rsa.RSAPublicKey], page_size: int = 3) -> None:
        self.keys = dict(keys)
        self.resources = resources()
        self.page_size = page_size
        self.faults: dict[str, list[Fault]] = {}
        self.requests: list[str] = []
        self.refused: list[str] = []
        self.agents: set[str] = set()
        self.instance_key: Optional[rsa.RSAPrivateKey] = None
        self._lock = threading.Lock()
        self.serve()
        self.url = "http://" + self.endpoint

    def asked(self, path: str) -> int:
        """How often a path was asked for, with any query."""
        return sum(1 for entry in self.requests if entry.partition("?")[0] == path)

    # Answers

    def get(self, request: http.server.BaseHTTPRequestHandler) -> None:
        path, query = self._noted(request)
        if path.startswith("/opc/v2/"):
            self._metadata(request, path)
            return
        if self._faulty(request, path):
            return
        problem = self._problem(request)
        if problem:
            self.refused.append(problem)
            error(request, 401, problem)
            return
        found = self.resources.get(path)
        if found is None:
            error(request, 404, "Authorization failed or requested resource not found.")
        elif isinstance(found, list):
            self._page(request, found, query)
        else:
            send(request, 200, json.dumps(found).encode())

    def _page(
        self, request: http.server.BaseHTTPRequestHandler, entries: list[Any], query: dict[str, str]
    ) -> None:
        if "compartmentId" in query:
            entries = [
                entry
                for entry in entries
                if not isinstance(entry, dict) or entry.get("compartmentId") == query["compartmentId"]
            ]
        start = int(query.get("page", "p0")[1:])
        end = start + self.page_size
        more = {"opc-next-page": "p%d" % end} if end < len(entries) else {}
        send(request, 200, json.dumps(entries[start:end]).encode(), more)

    def post(self, request: http.server.BaseHTTPRequestHandler) -> None:
        path, _query = self._noted(request)
        body = json.loads(request.rfile.read(int(request.headers["Content-Length"])))
        if self._faulty(request, path):
            return
        if path != "/v1/x509" or self.instance_key is None:
            error(request, 404, "There is no such service.")
            return
        lines = ("-----BEGIN PUBLIC KEY-----", body["publicKey"], "-----END PUBLIC KEY-----", "")
        key = serialization.load_pem_public_key("\n".join(lines).encode())
        assert isinstance(key, rsa.RSAPublicKey)
        claims = {"exp": int(time.time()) + 3600, "iat": int(time.time())}
        given = _token(claims)
        self.keys["ST$" + given] = key
        send(request, 200, json.dumps({"token": given}).encode())

    def _metadata(self, request: http.server.BaseHTTPRequestHandler, path: str) -> None:
        key = self.instance_key
        if key is None or request.headers.get("Authorization") != "Bearer Oracle":
            send(request, 404, b"not here")
            return
        texts = {
            "/opc/v2/instance/region": b"iad",
            "/opc/v2/identity/cert.pem": certificate(key),
            "/opc/v2/identity/key.pem": pem(key),
            "/opc/v2/identity/intermediate.pem": certificate(key),
        }
        send(request, 200 if path in texts else 404, texts.get(path, b"not here"), kind="text/plain")

    def _noted(self, request: http.server.BaseHTTPRequestHandler) -> tuple[str, dict[str, str]]:
        with self._lock:
            self.requests.append(request.path)
            self.agents.add(request.headers.get("User-Agent", ""))
        parts = urllib.parse.urlsplit(request.path)
        return urllib.parse.unquote(parts.path), dict(urllib.parse.parse_qsl(parts.query))

    def _faulty(self, request: http.server.BaseHTTPRequestHandler, path: str) -> bool:
        """Whether a fault took the place of the answer."""
        with self._lock:
            left = self.faults.get(path)
            fault = left.pop(0) if left else None
        if fault is None:
            return False
        if callable(fault):
            fault(request)
            return True
        if isinstance(fault, float):
            time.sleep(fault)
            return False
        error(request, fault, "This is a test.")
        return True

    def _problem(self, request: http.server.BaseHTTPRequestHandler) -> str:
        """What is wrong with the signature of a request; empty when it is right."""
        found = _AUTHORIZATION.fullmatch(request.headers.get("Authorization", ""))
        if found is None:
            return "The Authorization header has another form."
        names, key_id, signature = found.groups()
        if sorted(names.split()) != ["(request-target)", "date", "host"]:
            return "The signature is over %s." % names
        key = self.keys.get(key_id)
        if key is None:
            return "The key id is not known."
        targets = {"(request-target)": "get " + request.path}
        text = "\n".join(
            ["%s: %s" % (name, targets.get(name) or request.headers.get(name)) for name in names.split()]
        )
        try:
            key.verify(base64.b64decode(signature), text.encode(), padding.PKCS1v15(), hashes.SHA256())
        except InvalidSignature:
            return "The signature is not of this key."
        return ""


def send(
    request: http.server.BaseHTTPRequestHandler,
    status: int,
    body: bytes,
    headers: Optional[dict[str, str]] = None,
    kind: str = "application/json",
) -> None:
    """Answer a request."""
    request.send_response(status)
    request.send_header("Content-Type", kind)
    request.send_header("Content-Length", str(len(body)))
    request.send_header("opc-request-id", request.headers.get("opc-request-id") or uuid.uuid4().hex)
    for name, value in (headers or {}).items():
        request.send_header(name, value)
    request.end_headers()
    request.wfile.write(body)


def error(request: http.server.BaseHTTPRequestHandler, status: int, message: str) -> None:
    """Answer with an error of the API."""
    send(request, status, json.dumps({"code": CODES[status], "message": message}).encode())
