# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Services of Alibaba Cloud, asked through the official SDK. Private to rdma.k8s: it may change with any release.

A question is asked again when the service is busy, fails or does not answer. An order is given again only when it is
certain that it did not arrive; else the answer is lost, and who gave the order has to look (A33, A42).
The answers are taken as JSON; ``core/ack/answers.py`` reads them strictly.
"""

from __future__ import annotations

import contextlib
import ipaddress
import os
import random
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Callable, Optional

from .. import deps
from ..core.errors import RdmaError
from ..core.net import quoted
from ..core.report.wording import flat

BASE_WAIT = 1.0
"""Seconds before the second try; each further one waits about twice as long, with jitter."""
MOST_WAIT = 30.0

LOST = "alibaba_answer_lost"

ENVIRONMENT = (
    ("ALIBABA_CLOUD_ACCESS_KEY_ID", "ALIBABA_CLOUD_ACCESS_KEY_SECRET", "ALIBABA_CLOUD_SECURITY_TOKEN"),
    ("ALICLOUD_ACCESS_KEY", "ALICLOUD_SECRET_KEY", "ALICLOUD_SECURITY_TOKEN"),
)
"""Variables with a key, its secret and a token, in the order in which they count (A45, A48)."""

_NAMES = {
    "cluster": re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{2,63}"),
    "add-on": re.compile(r"[a-z0-9]([a-z0-9.-]{0,126}[a-z0-9])?"),
    "region": re.compile(r"[a-z]{2,4}-[a-z0-9-]{1,40}"),
}
_HOST = re.compile(r"(\[[0-9a-fA-F:]+\]|[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?)(:[0-9]{1,5})?")
_NOT_SENT = ("NewConnectionError", "ConnectTimeoutError", "NameResolutionError", "ProxyError")
"""The order cannot have arrived."""
_REASONS = {
    "SSLError": "TLS failed, so the other side is not proven",
    "NameResolutionError": "the name is not known",
    "ProxyError": "the proxy does not serve",
    "NewConnectionError": "nothing listens there, or the name is not known",
    "ConnectTimeoutError": "no connection within %g seconds",
    "ReadTimeoutError": "no answer within %g seconds",
    "ProtocolError": "the connection broke",
    "JSONDecodeError": "the answer is not JSON",
}
"""Why there is no answer, by the names of the errors of the SDK's HTTP libraries; the first that is met counts."""

_BAD_KEY = (
    "InvalidAccessKeyId",
    "MissingAccessKeyId",
    "IncompleteSignature",
    "InvalidCredentials",
    "InvalidSecurityToken",
    "SecurityTokenExpired",
    "SignatureDoesNotMatch",
)
_NO_ADDON, _NO_CLUSTER = "AddonNotFound", "ErrorClusterNotFound"
"""What the service says when something is not there (A29)."""


@dataclass(frozen=True)
class Login:
    """Who asks; empty: who the SDK's own chain finds (A46). ``source`` is for sentences."""

    access_key_id: str = field(default="", repr=False)
    access_key_secret: str = field(default="", repr=False)
    security_token: str = field(default="", repr=False)
    source: str = "the SDK's default chain"


@dataclass(frozen=True)
class Place:
    """Where a service is: in a region, or at an endpoint ``HOST[:PORT]`` (A35, A43)."""

    region: str = ""
    endpoint: str = ""
    protocol: str = "https"


@dataclass(frozen=True)
class Limits:
    """Seconds for one answer, and tries for one question."""

    timeout: float = 10.0
    attempts: int = 5


def login_of(
    access_key_id: Optional[str],
    access_key_secret: Optional[str],
    security_token: Optional[str],
    environment: Mapping[str, str],
) -> Login:
    """Who asks: the options, then the environment, then the SDK's chain (A48). Never one half from each.

    :raises RdmaError: ``alibaba_credentials_unusable``.
    """
    sources = [("the options", access_key_id or "", access_key_secret or "", security_token or "")]
    for names in ENVIRONMENT:
        key, secret, token = [environment.get(name, "") for name in names]
        sources.append(("the variable " + names[0], key, secret, token))
    for source, key, secret, token in sources:
        if key and secret:
            return Login(key, secret, token, source)
        if key or secret or (source == "the options" and token):
            raise RdmaError(
                "alibaba_credentials_unusable",
                "The credentials from %s are not whole: a key id and its secret belong together." % source,
                hint="Give both, or none to use the next source.",
                source=source,
            )
    return Login()


def require_name(kind: str, text: str) -> None:
    """A text is a name of its kind: ``cluster``, ``add-on`` or ``region``.

    :raises RdmaError: ``alibaba_name_malformed``.
    """
    if not _NAMES[kind].fullmatch(text):
        raise RdmaError(
            "alibaba_name_malformed",
            "%s is not the name of %s %s." % (quoted(text), "an" if kind == "add-on" else "a", kind),
            hint="Give the cluster by its id from the console, the region as cn-beijing.",
            value=text,
        )


def require_place(place: Place) -> None:
    """An endpoint is a host over TLS, or a loopback address: what is sent is signed, and may hold a token.

    :raises RdmaError: ``alibaba_endpoint_refused`` or ``alibaba_name_malformed``.
    """
    if place.region:
        require_name("region", place.region)
    found = _HOST.fullmatch(place.endpoint)
    try:
        loopback = bool(found) and ipaddress.ip_address(str(found and found.group(1)).strip("[]")).is_loopback
    except ValueError:
        loopback = False
    if (place.endpoint and not found) or (place.protocol != "https" and not loopback):
        raise RdmaError(
            "alibaba_endpoint_refused",
            "The endpoint %s over %s must be HOST[:PORT] over https; http is for loopback addresses only."
            % (quoted(place.endpoint), place.protocol),
            hint="Leave it out to use the endpoint of the region.",
            endpoint=place.endpoint,
        )


class Service:
    """One service: its client of the SDK, and how often and how long it is asked.

    :param client: the class of the SDK's client.
    :param credentials: who asks.
    :param headers: whether the operations of this client take headers.
    """

    def __init__(
        self, client: Any, credentials: Credentials, place: Place, limits: Limits, headers: bool
    ) -> None:
        self.credentials = credentials
        self.place = place
        self.limits = limits
        models = deps.alibaba_cs("alibabacloud_tea_openapi.utils_models")
        milliseconds = int(limits.timeout * 1000) or 1
        config = models.Config(
            credential=credentials.client,
            region_id=place.region or None,
            endpoint=place.endpoint or None,
            protocol=place.protocol.upper(),
            connect_timeout=milliseconds,
            read_timeout=milliseconds,
            user_agent="rdma.k8s",
        )
        self.client = client(config)
        self._more: tuple[Any, ...] = (deps.alibaba_cs("darabonba.runtime").RuntimeOptions(),)
        if headers:
            self._more = ({}, *self._more)
        self._answer: Any = None
        self._call = self.client.call_api
        self.client.call_api = self._kept
        openapi = deps.alibaba_cs("alibabacloud_tea_openapi.exceptions")
        self._refusals: Any = openapi.AlibabaCloudException
        self._throttling: Any = openapi.ThrottlingException
        self._failures: Any = deps.alibaba_cs("darabonba.exceptions").UnretryableException

    def _kept(self, params: Any, request: Any, runtime: Any) -> Any:
        """The SDK's models drop what does not fit them; the answer as it came is kept."""
        self._answer = None
        self._answer = self._call(params, request, runtime)
        return self._answer

    def read(self, what: str, operation: Callable[..., Any], *arguments: Any) -> Any:
        """The body of an answer. See :meth:`_ask` for errors."""
        return self._ask(what, operation, arguments, False)

    def write(self, what: str, operation: Callable[..., Any], *arguments: Any) -> Any:
        """Give an order; the body of its answer.

        :raises RdmaError: also ``alibaba_answer_lost``: the order may have arrived.
        """
        return self._ask(what, operation, arguments, True)

    def _ask(self, what: str, operation: Callable[..., Any], arguments: tuple[Any, ...], order: bool) -> Any:
        """
        :raises RdmaError: ``alibaba_not_authenticated``, ``alibaba_forbidden``, ``alibaba_throttled``,
            ``alibaba_failed``, ``alibaba_refused``, ``alibaba_unreachable``, ``addon_not_found``,
            ``ack_cluster_not_found``.
        """
        number = 0
        while True:
            number += 1
            pause: Optional[float] = None
            try:
                with _quiet(self.place.protocol):
                    operation(*arguments, *self._more)
                return self._answer.get("body")
            except self._refusals as error:
                problem, again = self._refused(what, error, order)
                pause = _asked_pause(error)
            except self._failures as error:
                problem, again = self._unreachable(what, error.inner_exception, order)
            if not again or number >= self.limits.attempts:
                raise problem
            time.sleep(_pause(number) if pause is None else pause)

    def _refused(self, what: str, error: Any, order: bool) -> tuple[RdmaError, bool]:
        """The error for what the service refused, and whether it may be asked again."""
        status, word = error.status_code or 0, flat(str(error.code))
        answer = "%s %s" % (status, word)
        told = error.data if isinstance(error.data, dict) else {}
        message = self.credentials.hidden(flat(str(told.get("message") or told.get("Message") or "")))
        details = {"status": status, "service_code": word, "request_id": flat(str(error.request_id or ""))}
        if (
            word.startswith("Throttling")
            or status == 429
            or (isinstance(error, self._throttling) and not (order and status >= 500))
        ):
            return (
                RdmaError(
                    "alibaba_throttled",
                    "The service gets too many requests and did not answer for %s: %s, %d tries."
                    % (what, answer, self.limits.attempts),
                    hint="Run it again later.",
                    retryable=True,
                    **details,
                ),
                True,
            )
        if status >= 500:
            if order:
                return _lost(what, "%s: %s" % (answer, message), **details), False
            return (
                RdmaError(
                    "alibaba_failed",
                    "The service failed on %s: %s: %s, %d tries."
                    % (what, answer, message.rstrip(".")[:200], self.limits.attempts),
                    hint="Run it again later; the request id in the details is for its support.",
                    retryable=True,
                    **details,
                ),
                True,
            )
        return self._final(what, status, word, message, details), False

    def _final(self, what: str, status: int, word: str, message: str, details: dict[str, Any]) -> RdmaError:
        answer = "%s %s" % (status, word)
        if word in (_NO_ADDON, _NO_CLUSTER):
            return RdmaError(
                "addon_not_found" if word == _NO_ADDON else "ack_cluster_not_found",
                "There is no such thing as %s: %s." % (what, answer),
                hint="Check the id or name, and the region%s: each has an endpoint of its own."
                % (" " + self.place.region if self.place.region else ""),
                **details,
            )
        if status == 401 or word.startswith(_BAD_KEY):
            return RdmaError(
                "alibaba_not_authenticated",
                "The cloud does not accept the credentials from %s for %s: %s."
                % (self.credentials.source, what, answer),
                hint="Check key id and secret, whether a token has expired, and the clock.",
                **details,
            )
        if status == 403 or word.startswith(("Forbidden", "NoPermission", "StatusForbidden")):
            return RdmaError(
                "alibaba_forbidden",
                "The credentials from %s may not do this: %s: %s: %s."
                % (self.credentials.source, what, answer, message.rstrip(".")[:200]),
                hint="Grant the RAM action of this operation on the cluster; see the notes of the module.",
                **details,
            )
        return RdmaError(
            "alibaba_refused",
            "The service refused %s: %s: %s." % (what, answer, message.rstrip(".")[:200]),
            hint="The request id in the details is for its support.",
            **details,
        )

    def _unreachable(self, what: str, error: BaseException, order: bool) -> tuple[RdmaError, bool]:
        names = _names(error)
        found = [text for name, text in _REASONS.items() if name in names]
        reason = found[0] if found else type(error).__name__
        reason = reason % self.limits.timeout if "%" in reason else reason
        if "CredentialException" in names:
            return self.credentials.unusable(error), False
        if order and not set(names) & set(_NOT_SENT):
            return _lost(what, reason), False
        return (
            RdmaError(
                "alibaba_unreachable",
                "No answer for %s (%s), %d tries." % (what, reason, self.limits.attempts),
                hint="Check region, endpoint, name resolution, proxy and firewall between this machine and the cloud.",
                retryable=True,
            ),
            True,
        )


class Credentials:
    """Credentials that are there: the SDK's own object, and what must not be shown.

    :raises RdmaError: ``library_missing`` or ``alibaba_credentials_unusable``.
    """

    def __init__(self, login: Login) -> None:
        self.source = login.source
        with _quiet("https"):
            kind = deps.alibaba_cs("alibabacloud_credentials.client").Client
            self._problem: Any = deps.alibaba_cs("alibabacloud_credentials.exceptions").CredentialException
            if login.access_key_id:
                models = deps.alibaba_cs("alibabacloud_credentials.models")
                self.client = kind(
                    models.Config(
                        type="sts" if login.security_token else "access_key",
                        access_key_id=login.access_key_id,
                        access_key_secret=login.access_key_secret,
                        security_token=login.security_token or None,
                    )
                )
            else:
                self.client = kind()
            try:
                found = self.client.get_credential()
            except (self._problem, OSError, ValueError) as error:
                raise self.unusable(error) from error
        self._secret = [
            text for text in (found.access_key_secret, found.security_token, found.access_key_id) if text
        ]

    def hidden(self, text: str) -> str:
        """A text without the key, its secret and its token (A49)."""
        for value in self._secret:
            text = text.replace(value, "(removed)")
        return text

    def unusable(self, error: BaseException) -> RdmaError:
        """The error when the SDK finds no credentials, or cannot use them."""
        return RdmaError(
            "alibaba_credentials_unusable",
            "The credentials from %s cannot be used: %s." % (self.source, flat(str(error))[:400].rstrip(".")),
            hint="Give access_key_id and access_key_secret, or set the variables ALIBABA_CLOUD_ACCESS_KEY_ID and "
            "ALIBABA_CLOUD_ACCESS_KEY_SECRET.",
            source=self.source,
        )


def cs(credentials: Credentials, place: Place, limits: Limits) -> Service:
    """The service of ACK. See :class:`Service`."""
    return Service(deps.alibaba_cs().Client, credentials, place, limits, headers=True)


def eflo(credentials: Credentials, place: Place, limits: Limits) -> Service:
    """The service of Lingjun clusters. See :class:`Service`."""
    return Service(deps.alibaba_eflo().Client, credentials, place, limits, headers=False)


def _lost(what: str, reason: str, **details: Any) -> RdmaError:
    return RdmaError(
        "alibaba_answer_lost",
        "The answer to the order is lost, so it may have arrived or not: %s (%s)." % (what, reason),
        hint="Run it again: it looks what there is before it gives an order.",
        retryable=True,
        **details,
    )


@contextlib.contextmanager
def _quiet(protocol: str) -> Iterator[None]:
    """Without the variables that make the SDK log what it sends, or send what is for loopback to a proxy."""
    taken = {}
    for name in list(os.environ):
        chatty = name == "DEBUG" and os.environ[name].lower() == "sdk"
        if chatty or (protocol != "https" and name.lower() == "http_proxy"):
            taken[name] = os.environ.pop(name)
    try:
        yield
    finally:
        os.environ.update(taken)


def _pause(number: int) -> float:
    """Seconds before the next try."""
    return min(BASE_WAIT * 2 ** (number - 1), MOST_WAIT) * random.uniform(0.5, 1)  # noqa: S311 (spread, no secret)


def _asked_pause(error: Any) -> Optional[float]:
    """The seconds that the service asks to wait; it tells milliseconds (A42)."""
    told = getattr(error, "retry_after", None)
    return min(told / 1000.0, MOST_WAIT) if isinstance(told, int) and told > 0 else None


def _names(error: BaseException) -> list[str]:
    """The names of an error and of those below it; the SDK wraps the error of its HTTP library, which wraps another."""
    todo: list[Any] = [error]
    names: list[str] = []
    while todo and len(names) < 20:
        held = todo.pop(0)
        names.append(type(held).__name__)
        todo += [
            entry
            for entry in (*held.args, getattr(held, "reason", None), held.__context__)
            if isinstance(entry, BaseException)
        ]
    return names
