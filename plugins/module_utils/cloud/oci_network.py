# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The networks of an OKE cluster, asked of Oracle Cloud through its official SDK.

Private to rdma.k8s: it may change with any release. Only reads. Every answer has a limit of time, every question a
limit of tries, and the whole another limit of time, which also holds where the SDK has its own. The answers are taken
as JSON: ``core/oke/oci_answers.py`` reads them strictly.
"""

from __future__ import annotations

import configparser
import ipaddress
import os
import re
import threading
import urllib.parse
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Callable, Optional

from .. import deps
from ..core.errors import RdmaError
from ..core.net import quoted
from ..core.oke import oci_answers
from ..core.oke.networks import NetworkDocument
from ..core.oke.oci_answers import Answers, DrgRoutes
from ..core.redact import shortened
from ..core.report.wording import flat

METHODS = ("config_file", "security_token", "instance_principal", "resource_principal")

BASE_WAIT = 1.0
"""Seconds before the second try; each further one waits about twice as long, with jitter."""
MOST_WAIT = 15.0
MOST_PAGES = 500
MOST_SUBNETS = 200

_OCID = re.compile(r"ocid1\.[a-z0-9]+\.[A-Za-z0-9._-]{1,250}")
_REGION = re.compile(r"[a-z][a-z0-9-]{1,40}")
_REASONS = {
    "TooManyRedirects": "it answered with a redirect, which is not followed",
    "SSLError": "TLS failed, so the other side is not proven",
    "NameResolutionError": "the name is not known",
    "ProxyError": "the proxy does not serve",
    "NewConnectionError": "nothing listens there, or the name is not known",
    "ConnectTimeoutError": "no connection within %g seconds",
    "ReadTimeoutError": "no answer within %g seconds",
    "ProtocolError": "the connection broke",
}
"""Why there is no answer, by the names of the errors of the SDK's HTTP libraries; the first that is met counts."""


@dataclass(frozen=True)
class Login:
    """Who asks.

    :param method: one of :data:`METHODS`.
    :param config_file: empty: the SDK's own place.
    """

    method: str = "config_file"
    config_file: str = ""
    profile: str = "DEFAULT"
    pass_phrase: str = field(default="", repr=False)
    region: str = ""

    @property
    def shown(self) -> str:
        """For sentences."""
        if self.method in ("config_file", "security_token"):
            return "profile %s of %s" % (self.profile, self.config_file or "the SDK's configuration file")
        return self.method.replace("_", " ")


@dataclass(frozen=True)
class Endpoints:
    """Addresses of the services, when they are not the ordinary ones of the region; empty: these."""

    container_engine: str = ""
    network: str = ""
    auth: str = ""


@dataclass(frozen=True)
class Limits:
    """Seconds for one answer and for everything, and tries for one question."""

    timeout: float = 10.0
    total: float = 120.0
    attempts: int = 4


@dataclass(frozen=True)
class Question:
    """What to read. ``compartments`` are asked beside those of the cluster and its VCN."""

    cluster_id: str
    compartments: tuple[str, ...] = ()
    peers: bool = True


def read(question: Question, login: Login, endpoints: Endpoints, limits: Limits) -> NetworkDocument:
    """The networks of a cluster.

    What the credentials may not read, or the service does not answer, is in the document's ``unread``, unless it is the
    cluster or its VCN.

    :raises RdmaError: ``library_missing``, ``ocid_malformed``, ``oci_endpoint_refused``, ``oci_config_unusable``,
        ``oci_not_authenticated``, ``oci_not_found``, ``oci_throttled``, ``oci_failed``, ``oci_refused``,
        ``oci_unreachable`` or ``oci_answer_malformed``.
    """
    if not _OCID.fullmatch(question.cluster_id) or not question.cluster_id.startswith("ocid1.cluster."):
        raise _not_an_ocid(question.cluster_id, "a cluster: ocid1.cluster.REALM.REGION.ID")
    for compartment in question.compartments:
        if not _OCID.fullmatch(compartment):
            raise _not_an_ocid(compartment, "a compartment: ocid1.compartment.REALM..ID")
    for name, url in vars(endpoints).items():
        _check_url(name, url)
    if login.region and not _REGION.fullmatch(login.region):
        raise RdmaError(
            "oci_config_unusable",
            "%s is not the name of a region." % quoted(login.region),
            hint="Give it as us-ashburn-1.",
        )
    deps.oci()
    return oci_answers.to_document(
        _within(limits.total, lambda: _Reader(question, login, endpoints, limits).all())
    )


def _not_an_ocid(text: str, expected: str) -> RdmaError:
    return RdmaError(
        "ocid_malformed",
        "%s is not the OCID of %s." % (quoted(text), expected),
        hint="Copy it from the console or from 'oci ce cluster list'.",
        value=text,
    )


def _check_url(name: str, url: str) -> None:
    """Credentials sign what is sent, so it goes out over TLS, or stays on this machine."""
    if not url:
        return
    parts = urllib.parse.urlsplit(url)
    try:
        loopback = ipaddress.ip_address(parts.hostname or "").is_loopback
        parts.port  # noqa: B018 (a port that is none raises)
    except ValueError:
        loopback = False
    plain = not (parts.query or parts.fragment or parts.username or parts.path.strip("/"))
    if (
        not plain
        or not parts.hostname
        or not (parts.scheme == "https" or (parts.scheme == "http" and loopback))
    ):
        raise RdmaError(
            "oci_endpoint_refused",
            "The %s endpoint %s must be https://HOST[:PORT], or http:// with a loopback address."
            % (name.replace("_", " "), quoted(url)),
            hint="Leave it out to use the endpoint of the region.",
            endpoint=name,
        )


def _within(seconds: float, act: Callable[[], Answers]) -> Answers:
    """The outcome of ``act``, or an error after that time; a thread that hangs then ends with the process."""
    done: list[Answers] = []
    failed: list[RdmaError] = []

    def work() -> None:
        try:
            done.append(act())
        except RdmaError as error:
            failed.append(error)

    thread = threading.Thread(target=work, name="rdma.k8s oci", daemon=True)
    thread.start()
    thread.join(seconds)
    if failed:
        raise failed[0]
    if done:
        return done[0]
    if thread.is_alive():
        raise RdmaError(
            "oci_unreachable",
            "The cloud did not answer all questions within %g seconds." % seconds,
            hint="Give more time, or see whether the endpoint, a proxy or the metadata service hangs.",
            retryable=True,
        )
    raise RuntimeError("The reading of the cloud ended without an outcome; see the traceback above.")


class _Reader:
    """One reading: the clients, and what they answered so far."""

    def __init__(self, question: Question, login: Login, endpoints: Endpoints, limits: Limits) -> None:
        self.question = question
        self.login = login
        self.endpoints = endpoints
        self.limits = limits
        self.oci = deps.oci()
        self.answers = Answers()
        config, signer = self._credentials()
        engine, network = deps.oci("oci.container_engine"), deps.oci("oci.core")
        self.engine = self._client(engine.ContainerEngineClient, config, signer, endpoints.container_engine)
        self.network = self._client(network.VirtualNetworkClient, config, signer, endpoints.network)

    # Credentials

    def _credentials(self) -> tuple[dict[str, Any], Any]:
        method = self.login.method
        try:
            if method == "config_file":
                return self._profile(), None
            if method == "security_token":
                return self._session_token()
            signer = self._instance() if method == "instance_principal" else self._resource()
        except self.oci.exceptions.ServiceError as error:
            raise self._refused("the credentials", error) from error
        except self.oci.exceptions.BaseRequestException as error:
            raise self._unreachable("the service that gives the credentials", error) from error
        except (
            self.oci.exceptions.ClientError,
            deps.oci("oci.auth.security_token_container").jwt.InvalidTokenError,
            configparser.Error,
            OSError,
            ValueError,
            TypeError,
        ) as error:
            raise self._bad_credentials(error) from error
        return {"region": self.login.region or signer.region, "log_requests": False}, signer

    def _profile(self) -> dict[str, Any]:
        place = self.login.config_file or self.oci.config.DEFAULT_LOCATION
        config: dict[str, Any] = self.oci.config.from_file(place, self.login.profile)
        config["log_requests"] = False  # it would print requests, signatures included, into the result
        if self.login.region:
            config["region"] = self.login.region
        if self.login.pass_phrase:
            config["pass_phrase"] = self.login.pass_phrase
        return config

    def _session_token(self) -> tuple[dict[str, Any], Any]:
        config = self._profile()
        missing = [key for key in ("security_token_file", "key_file") if not config.get(key)]
        if missing:
            raise self.oci.exceptions.InvalidConfig(dict.fromkeys(missing, "missing"))
        with open(os.path.expanduser(config["security_token_file"]), encoding="ascii") as stream:
            token = stream.read().strip()
        key = self.oci.signer.load_private_key_from_file(config["key_file"], config.get("pass_phrase"))
        return config, self.oci.auth.signers.SecurityTokenSigner(token, key)

    def _instance(self) -> Any:
        more = {}
        if self.endpoints.auth:
            more["federation_endpoint"] = self.endpoints.auth.rstrip("/") + "/v1/x509"
        return self.oci.auth.signers.InstancePrincipalsSecurityTokenSigner(
            retry_strategy=self._retry(),
            federation_client_retry_strategy=self._retry(),
            federation_client_circuit_breaker_strategy=self.oci.circuit_breaker.NoCircuitBreakerStrategy(),
            **more,
        )

    def _resource(self) -> Any:
        return self.oci.auth.signers.get_resource_principals_signer()

    # Clients

    def _retry(self) -> Any:
        """Tries again after 429, 5xx and lost connections, within our limits."""
        return self.oci.retry.RetryStrategyBuilder(
            max_attempts=self.limits.attempts,
            total_elapsed_time_seconds=self.limits.total,
            service_error_retry_config={-1: [], 429: []},
            retry_base_sleep_time_seconds=BASE_WAIT / 2,
            retry_max_wait_between_calls_seconds=MOST_WAIT,
            backoff_type=self.oci.retry.BACKOFF_EQUAL_JITTER_VALUE,
        ).get_retry_strategy()

    def _client(self, kind: Any, config: dict[str, Any], signer: Any, endpoint: str) -> Any:
        more: dict[str, Any] = {} if signer is None else {"signer": signer}
        if endpoint:
            more["service_endpoint"] = endpoint.rstrip("/")
        try:
            client = kind(
                config,
                timeout=(self.limits.timeout, self.limits.timeout),
                retry_strategy=self._retry(),
                circuit_breaker_strategy=self.oci.circuit_breaker.NoCircuitBreakerStrategy(),
                skip_deserialization=True,
                **more,
            )
        except (self.oci.exceptions.ClientError, OSError, ValueError, TypeError) as error:
            raise self._bad_credentials(error) from error
        session = client.base_client.session
        session.max_redirects = 0
        if endpoint.startswith("http://"):
            session.trust_env = False  # loopback is not behind a proxy
        return client

    # Errors

    def _bad_credentials(self, error: Exception) -> RdmaError:
        """What is wrong with the configuration, without its values."""
        found = getattr(error, "errors", None)
        reason = (
            ", ".join(["%s is %s" % entry for entry in sorted(found.items())])
            if isinstance(found, dict)
            else flat(str(error)).partition(" please follow")[0].strip(" .,")
        )
        return RdmaError(
            "oci_config_unusable",
            "The credentials (%s) cannot be used: %s." % (self.login.shown, reason or type(error).__name__),
            hint="Correct them, choose another 'auth', or give the networks by the options.",
            method=self.login.method,
        )

    def _refused(self, what: str, error: Any) -> RdmaError:
        status, word = error.status, flat(str(error.code))
        answer = "%s %s" % (status, word)
        details = {"status": status, "service_code": word, "request_id": error.request_id}
        if status == 401:
            return RdmaError(
                "oci_not_authenticated",
                "The cloud does not accept the credentials (%s) for %s: %s."
                % (self.login.shown, what, answer),
                hint="Check key, fingerprint, user and tenancy, whether a token has expired, and the clock.",
                **details,
            )
        if status in (403, 404):
            return RdmaError(
                "oci_not_found",
                "%s: it does not exist, or the credentials (%s) may not read it; the service answers %s to both."
                % (_capital(what), self.login.shown, answer),
                hint="Check the OCID and the region, and the policy: see the notes of rdma.k8s.oke_network_info.",
                **details,
            )
        if status == 429:
            return RdmaError(
                "oci_throttled",
                "The service gets too many requests and did not answer for %s: %s, %d tries."
                % (what, answer, self.limits.attempts),
                hint="Ask again later.",
                retryable=True,
                **details,
            )
        message = flat(str(error.message)).rstrip(".")[:200]
        if status >= 500:
            return RdmaError(
                "oci_failed",
                "The service failed on %s: %s: %s, %d tries." % (what, answer, message, self.limits.attempts),
                hint="Ask again later; the request id in the details is for its support.",
                retryable=True,
                **details,
            )
        return RdmaError(
            "oci_refused",
            "The service refused %s: %s: %s." % (what, answer, message),
            hint="The request id in the details is for its support.",
            **details,
        )

    def _unreachable(self, what: str, error: Exception) -> RdmaError:
        return RdmaError(
            "oci_unreachable",
            "%s: no answer (%s)." % (_capital(what), _reason(error, self.limits.timeout)),
            hint="Check region, endpoint, name resolution, proxy and firewall between this machine and the cloud.",
            retryable=True,
        )

    # Questions

    def _ask(self, what: str, call: Callable[..., Any], *arguments: str, **options: Any) -> Any:
        for text in arguments:
            if not _OCID.fullmatch(text):
                raise RdmaError(
                    "oci_answer_malformed",
                    "The answer of the cloud: %s, which leads to %s, is not an OCID." % (quoted(text), what),
                    hint="Give the networks by the options instead.",
                )
        try:
            return call(*arguments, **options)
        except self.oci.exceptions.ServiceError as error:
            raise self._refused(what, error) from error
        except self.oci.exceptions.BaseRequestException as error:
            raise self._unreachable(what, error) from error
        except ValueError as error:
            raise RdmaError(
                "oci_answer_malformed",
                "The answer of the cloud for %s cannot be read: %s." % (what, flat(str(error))),
                hint="Something between this machine and the cloud may answer in its place.",
            ) from error

    def _pages(self, what: str, call: Callable[..., Any], *arguments: str, **options: Any) -> Iterator[Any]:
        """The entries of all pages of a list."""
        page: Optional[str] = None
        seen: set[str] = set()
        while True:
            response = self._ask(
                what, call, *arguments, **options, **({} if page is None else {"page": page})
            )
            if not isinstance(response.data, list):
                raise RdmaError(
                    "oci_answer_malformed",
                    "The answer of the cloud for %s must be a list, found %s."
                    % (what, quoted(response.data)),
                    hint="Something between this machine and the cloud may answer in its place.",
                )
            yield from response.data
            page = response.next_page
            if not page:
                return
            if page in seen or len(seen) >= MOST_PAGES:
                raise RdmaError(
                    "oci_answer_malformed",
                    "The answer of the cloud for %s has no last page (%d were read)." % (what, len(seen) + 1),
                    hint="Give the networks by the options instead.",
                )
            seen.add(page)

    def _list(
        self, into: list[Any], what: str, call: Callable[..., Any], *arguments: str, **options: Any
    ) -> None:
        """Add a list to the answers; when it cannot be read, add why."""
        try:
            into += self._pages(what, call, *arguments, **options)
        except RdmaError as error:
            if error.code == "oci_not_authenticated":
                raise
            self.answers.unread.append(error)

    def all(self) -> Answers:
        """Ask everything."""
        answers, cluster_id = self.answers, self.question.cluster_id
        answers.cluster = self._ask(
            "the cluster %s" % shortened(cluster_id), self.engine.get_cluster, cluster_id
        ).data
        place = oci_answers.place_of(answers.cluster)
        vcn = "the VCN of cluster %s" % place.name
        answers.vcn = self._ask(vcn, self.network.get_vcn, place.vcn).data
        home = oci_answers.compartment_of(answers.vcn, "vcn")
        compartments = list(dict.fromkeys([place.compartment, home, *self.question.compartments]))
        for compartment in compartments:
            where = "of cluster %s in compartment %s" % (place.name, shortened(compartment))
            self._list(
                answers.node_pools,
                "the node pools " + where,
                self.engine.list_node_pools,
                compartment,
                cluster_id=cluster_id,
            )
            self._list(
                answers.subnets,
                "the subnets " + where,
                self.network.list_subnets,
                compartment,
                vcn_id=place.vcn,
            )
            if self.question.peers:
                self._list(
                    answers.peerings,
                    "the local peering gateways " + where,
                    self.network.list_local_peering_gateways,
                    compartment,
                    vcn_id=place.vcn,
                )
                self._drg(compartment, place.vcn, where)
        self._missing_subnets()
        return answers

    def _drg(self, compartment: str, vcn: str, where: str) -> None:
        attachments: list[Any] = []
        what = "the DRG attachments " + where
        self._list(attachments, what, self.network.list_drg_attachments, compartment, vcn_id=vcn)
        for attachment in attachments:
            if oci_answers.is_gone(attachment):
                continue
            table = attachment.get("drgRouteTableId")
            rules: list[Any] = []
            if isinstance(table, str):
                self._list(rules, "the routes of " + what, self.network.list_drg_route_rules, table)
            self.answers.drg_routes.append(DrgRoutes(attachment, rules))

    def _missing_subnets(self) -> None:
        """Subnets that the cluster uses and no compartment listed: a VCN's subnets may be in any compartment."""
        known = oci_answers.subnet_ids(self.answers)
        for subnet in [key for key in oci_answers.subnets_in_use(self.answers) if key not in known][
            :MOST_SUBNETS
        ]:
            what = "the subnet %s" % shortened(subnet)
            try:
                self.answers.subnets.append(self._ask(what, self.network.get_subnet, subnet).data)
            except RdmaError as error:
                self.answers.unread.append(error)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _reason(error: BaseException, seconds: float) -> str:
    """Why there is no answer; the SDK wraps the error of its HTTP library, which wraps another."""
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
    found = [text for name, text in _REASONS.items() if name in names]
    text = found[0] if found else type(error).__name__
    return text % seconds if "%" in text else text
