# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Calls to the Kubernetes API. Private to rdma.k8s: it may change with any release.

Configuration, credentials and transport are those of the official client. Objects stay the JSON that the server sent:
the classes of that client cost a multiple of the time and drop fields that they do not know.
"""

from __future__ import annotations

import json
import logging
import os
import random
import threading
import time
from collections.abc import Iterator, Mapping
from typing import Any, Callable, NamedTuple, Optional
from urllib.parse import quote, urlencode

from .. import deps
from ..core.errors import RdmaError
from ..version import VERSION
from . import failures

FIELD_MANAGER = "rdma.k8s"
REQUEST_TIMEOUT = 30.0
PAGE = 500

_ATTEMPTS = 4
_FIRST_PAUSE = 0.25
_PIECE = 1 << 16
_EXPIRED_PAGES = 10
_WATCH_SECONDS = 600
_SILENCE = 90.0
"""A server that was asked for bookmarks sends one each minute. After this time without a byte nobody is there."""
_AGAIN = frozenset(("kube_throttled", "kube_failed", "kube_unreachable"))
_DISCOVERY = ",".join(
    [
        "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
        "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList",
        "application/json",
    ]
)


class Resource(NamedTuple):
    """A kind of object that the API server serves."""

    group_version: str
    """``v1`` for the core group, ``apps/v1`` for others."""
    plural: str
    kind: str
    namespaced: bool

    def path(self, namespace: str = "", name: str = "") -> str:
        """Where its objects are; without a namespace, those of all namespaces."""
        parts = ["apis" if "/" in self.group_version else "api", *self.group_version.split("/")]
        if self.namespaced and namespace:
            parts += ["namespaces", quote(namespace, safe="")]
        parts.append(self.plural)
        if name:
            parts.append(quote(name, safe=""))
        return "/" + "/".join(parts)


class _Answer(NamedTuple):
    code: int
    headers: Mapping[str, str]
    body: bytes


class Cluster:
    """The API server of one cluster, and the user that we are there.

    :param api: ``ApiClient`` of the official client.
    :param request_timeout: seconds for one request, from the first attempt to the last byte.
    :param sleep: waits; ``clock``: monotonic seconds; ``chance``: from 0 to 1. They are arguments for tests.
    """

    def __init__(
        self,
        api: Any,
        request_timeout: float = REQUEST_TIMEOUT,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self.calls = 0
        """How many requests were sent, repeated ones included."""
        self.guard: Optional[Callable[[], None]] = None
        """Is called before each call that changes something, and raises when it must not be sent."""
        self._counting = threading.Lock()
        self.server: str = api.configuration.host
        self._api = api
        self._timeout = request_timeout
        self._sleep, self._clock, self._chance = sleep, clock, chance
        self._resources: dict[str, list[Resource]] = {}
        self._errors = deps.kubernetes("urllib3.exceptions")

    @property
    def configuration(self) -> Any:
        """The configuration of the official client."""
        return self._api.configuration

    def note_call(self, change: bool = False) -> None:
        """Count a request that is sent by other means, and ask the guard when it changes something."""
        if change and self.guard is not None:
            self.guard()
        with self._counting:
            self.calls += 1

    # --- reading -----------------------------------------------------------------------------------------------------

    def get(self, path: str, **query: Any) -> dict[str, Any]:
        """The object, or the list, at a path.

        :param query: parameters of the URL, such as ``labelSelector="a=b"``.
        :raises RdmaError: one of the codes ``kube_...``.
        """
        return self._read(path, query)

    def find(self, path: str) -> Optional[dict[str, Any]]:
        """The object at a path; ``None``: there is none.

        :raises RdmaError: one of the codes ``kube_...``.
        """
        try:
            return self.get(path)
        except RdmaError as error:
            if error.code != "kube_not_found":
                raise
            return None

    def items(self, path: str, limit: int = PAGE, **query: Any) -> Iterator[dict[str, Any]]:
        """The objects of a list, read in pages of at most ``limit``.

        When a page has expired (410), the server says from where the list goes on, and the objects after that are of a
        later time: none comes twice, and none that exists all the time is left out.

        :raises RdmaError: one of the codes ``kube_...``; objects of earlier pages have been given by then.
        """
        for page in self.pages(path, limit, **query):
            yield from page["items"]

    def pages(self, path: str, limit: int = PAGE, **query: Any) -> Iterator[dict[str, Any]]:
        """The pages of a list, see :meth:`items`. A page always has ``items``."""
        token, expired = "", 0
        while True:
            asked = dict(query, limit=limit)
            if token:
                asked["continue"] = token
            call = failures.call_of(self.server, "GET", path)
            answer = self._send_again(call, asked)
            if answer.code == 410 and token:
                expired += 1
                token = failures.continued(answer.body)
                if not token or expired > _EXPIRED_PAGES:
                    raise failures.error_of_answer(call, answer.code, answer.body, answer.headers)
                continue
            page = _object_of(call, answer)
            if page.get("items") is None:  # an empty list of Go can be null
                page["items"] = []
            yield page
            token = (page.get("metadata") or {}).get("continue") or ""
            if not token:
                return

    def version(self) -> dict[str, Any]:
        """What the server tells about its version."""
        return self.get("/version")

    def text(self, path: str, **query: Any) -> str:
        """What is at a path that has no JSON, such as the log of a container.

        :raises RdmaError: one of the codes ``kube_...``.
        """
        call = failures.call_of(self.server, "GET", path)
        answer = self._send_again(call, query, "*/*")
        if not 200 <= answer.code < 300:
            raise failures.error_of_answer(call, answer.code, answer.body, answer.headers)
        return answer.body.decode("utf-8", "replace")

    def resources(self, root: str = "") -> list[Resource]:
        """What the server serves: ``/api`` the core group, ``/apis`` all others, each in one request; kept.

        Of one group the preferred version comes first. An aggregated group whose server is away is left out.
        """
        if not root:
            return [*self.resources("/api"), *self.resources("/apis")]
        if root not in self._resources:
            self._resources[root] = self._discover(root)
        return self._resources[root]

    def serves(self, group_version: str, plural: str) -> bool:
        """Whether objects of a kind can be read, such as ``serves("resource.k8s.io/v1", "resourceclaims")``."""
        return any(
            found.group_version == group_version and found.plural == plural
            for found in self.resources(_root(group_version))
        )

    def resource_of(self, document: Mapping[str, Any]) -> Resource:
        """The kind of a document.

        :raises RdmaError: ``kube_not_served``, ``manifest_malformed``.
        """
        group_version, kind = document.get("apiVersion"), document.get("kind")
        if not isinstance(group_version, str) or not isinstance(kind, str):
            raise RdmaError(
                "manifest_malformed",
                "A document has apiVersion %r and kind %r, expected two texts." % (group_version, kind),
                hint="Give both.",
            )
        for again in (False, True):  # a definition may have been added since we looked
            if again:
                self._resources.pop(_root(group_version), None)
            for found in self.resources(_root(group_version)):
                if found.group_version == group_version and found.kind == kind:
                    return found
        raise RdmaError(
            "kube_not_served",
            "The API server %s serves no %s of %s." % (self.server, kind, group_version),
            hint="Check apiVersion and kind; install the definition (CRD) or the release of Kubernetes that has it.",
            server=self.server,
            kind=kind,
            group_version=group_version,
        )

    def path_of(self, document: Mapping[str, Any]) -> str:
        """Where the object of a document is; without a namespace that of ``default``.

        :raises RdmaError: as :meth:`resource_of`.
        """
        found, metadata = self.resource_of(document), document.get("metadata") or {}
        name = metadata.get("name")
        if not isinstance(name, str) or not name:
            raise RdmaError(
                "manifest_malformed",
                "A document of kind %s has the name %r, expected a text." % (found.kind, name),
                hint="Give metadata.name.",
            )
        return found.path(metadata.get("namespace") or "default", name)

    def watch(self, path: str, version: str, seconds: int = _WATCH_SECONDS, **query: Any) -> Watch:
        """What happens to the objects of a list from a version on; the caller closes it.

        :param version: ``resourceVersion`` of the list, or of the last object that was seen.
        :param seconds: after which the server ends it.
        :raises RdmaError: ``kube_expired`` when the version is too old: list again; or another of the codes
            ``kube_...``.
        """
        asked = dict(
            query, watch=True, resourceVersion=version, allowWatchBookmarks=True, timeoutSeconds=seconds
        )
        call = failures.call_of(self.server, "GET", path)
        limits = deps.kubernetes("urllib3").Timeout(connect=self._timeout, read=_SILENCE)
        try:
            response = self._request(call, asked, None, {"Accept": "application/json"}, limits)
        except self._errors.SSLError as error:
            raise failures.untrusted(call, _reason(error)) from error
        except self._errors.HTTPError as error:
            raise failures.unreachable(call, _reason(error)) from error
        if response.status != 200:
            try:
                body = b"".join(_pieces(response))
            except self._errors.HTTPError as error:
                raise failures.unreachable(call, _reason(error)) from error
            finally:
                response.close()
            raise failures.error_of_answer(call, response.status, body, response.headers)
        return Watch(call, response, self._errors)

    # --- changing ----------------------------------------------------------------------------------------------------

    def apply(
        self,
        document: Mapping[str, Any],
        *,
        field_manager: str = FIELD_MANAGER,
        force: bool = False,
        dry_run: bool = False,
    ) -> dict[str, Any]:
        """Server-side apply. Returns the object as it is then, with the old ``resourceVersion`` if nothing changed.

        Fields that the server does not know are refused instead of dropped.

        :param force: take over fields that another manager owns.
        :raises RdmaError: ``kube_conflict`` with the fields and their owners, ``kube_invalid`` and others.
        """
        query = {"fieldManager": field_manager, "force": force, "fieldValidation": "Strict"}
        if dry_run:
            query["dryRun"] = "All"
        return self.send("PATCH", self.path_of(document), document, "application/apply-patch+yaml", **query)

    def delete(self, document: Mapping[str, Any], *, dry_run: bool = False) -> bool:
        """Delete the object of a document; only that very one when the document has a ``uid``.

        :returns: whether it was there.
        """
        uid = (document.get("metadata") or {}).get("uid")
        options: dict[str, Any] = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "propagationPolicy": "Background",
        }
        if uid:
            options["preconditions"] = {"uid": uid}
        if dry_run:
            options["dryRun"] = ["All"]
        try:
            self.send("DELETE", self.path_of(document), options)
        except RdmaError as error:
            if error.code == "kube_not_found":
                return False
            raise
        return True

    def send(
        self,
        method: str,
        path: str,
        body: Optional[Mapping[str, Any]] = None,
        content_type: str = "application/json",
        **query: Any,
    ) -> dict[str, Any]:
        """One call that is not repeated, whatever happens: ``POST``, ``PUT``, ``PATCH`` or ``DELETE``.

        :raises RdmaError: one of the codes ``kube_...``.
        """
        if self.guard is not None:
            self.guard()
        call = failures.call_of(self.server, method, path)
        data = None if body is None else json.dumps(body).encode()
        answer = self._send(call, query, self._clock() + self._timeout, data, {"Content-Type": content_type})
        return _object_of(call, answer)

    # --- below -------------------------------------------------------------------------------------------------------

    def _read(self, path: str, query: Mapping[str, Any], accept: str = "application/json") -> dict[str, Any]:
        call = failures.call_of(self.server, "GET", path)
        return _object_of(call, self._send_again(call, query, accept))

    def _send_again(
        self, call: failures.Call, query: Mapping[str, Any], accept: str = "application/json"
    ) -> _Answer:
        """A read, repeated while the error may heal, within the time limit of one request."""
        limit = self._clock() + self._timeout
        attempt = 0
        while True:
            attempt += 1
            try:
                answer = self._send(call, query, limit, None, {"Accept": accept})
                error = None
                if answer.code >= 400:
                    error = failures.error_of_answer(call, answer.code, answer.body, answer.headers)
                if error is None or error.code not in _AGAIN or attempt >= _ATTEMPTS:
                    return answer
            except RdmaError as failed:
                error = failed
                if error.code not in _AGAIN or attempt >= _ATTEMPTS:
                    raise
                answer = None
            pause = max(error.details.get("wait", 0.0), _FIRST_PAUSE * 2 ** (attempt - 1))
            pause += pause * self._chance() / 2
            if self._clock() + pause >= limit:
                if answer is None:
                    raise error
                return answer
            self._sleep(pause)

    def _send(
        self,
        call: failures.Call,
        query: Mapping[str, Any],
        limit: float,
        data: Optional[bytes],
        headers: dict[str, str],
    ) -> _Answer:
        """One request over the official client's pool of connections, with its credentials."""
        errors = self._errors
        left = limit - self._clock()
        if left <= 0:
            raise failures.too_slow(call, self._timeout)
        try:
            response = self._request(call, query, data, headers, left)
            try:
                pieces = []
                for piece in _pieces(response):
                    pieces.append(piece)
                    if self._clock() > limit:
                        raise failures.too_slow(call, self._timeout)
                return _Answer(response.status, response.headers, b"".join(pieces))
            finally:
                # A connection whose answer was read whole goes back to the pool; what is left of others is not wanted.
                response.release_conn() if response.isclosed() else response.close()
        except errors.SSLError as error:
            raise failures.untrusted(call, _reason(error)) from error
        except errors.TimeoutError as error:
            if self._clock() < limit - 0.01:  # less than the time limit: the system gave up before
                raise failures.unreachable(call, _reason(error)) from error
            raise failures.too_slow(call, self._timeout) from error
        except errors.HTTPError as error:
            raise failures.unreachable(call, _reason(error)) from error

    def _request(
        self,
        call: failures.Call,
        query: Mapping[str, Any],
        data: Optional[bytes],
        headers: dict[str, str],
        timeout: Any,
    ) -> Any:
        """Send one request; the answer's body is not read yet."""
        headers = {"User-Agent": "rdma.k8s/" + VERSION, "Accept-Encoding": "gzip", **headers}
        # Read, not applied by the client: what its function for that takes differs from release to release.
        for setting in self._api.configuration.auth_settings().values():
            if setting["in"] == "header" and setting["value"]:
                headers[setting["key"]] = setting["value"]
        url = self.server + call.path
        if query:
            url += "?" + urlencode({name: _text(value) for name, value in query.items()})
        with self._counting:
            self.calls += 1
        return self._api.rest_client.pool_manager.request(
            call.method,
            url,
            body=data,
            headers=headers,
            timeout=timeout,
            retries=False,
            preload_content=False,
        )

    def _discover(self, path: str) -> list[Resource]:
        found = self._read(path, {}, _DISCOVERY)
        if found.get("kind") == "APIGroupDiscoveryList":
            return list(_discovered(found))
        if path == "/api":  # a server before 1.27
            return list(_listed(self.get("/api/v1")))
        listed: list[Resource] = []
        for group in found.get("groups") or ():
            for version in group.get("versions") or ():
                try:
                    listed += _listed(self.get("/apis/" + version["groupVersion"]))
                except RdmaError as error:
                    if error.code not in ("kube_failed", "kube_not_found"):
                        raise
        return listed


class Watch:
    """Events of one watch as they come: ``ADDED``, ``MODIFIED``, ``DELETED`` or ``BOOKMARK``, and the object.

    It ends when the server ends it, which is no error. :meth:`close` ends it from another thread.
    """

    def __init__(self, call: failures.Call, response: Any, errors: Any) -> None:
        self._call, self._response, self._errors = call, response, errors
        self._closed = False

    def __iter__(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """The events.

        :raises RdmaError: ``kube_expired`` when the server has forgotten what happened since: list again; or another
            of the codes ``kube_...``.
        """
        read, rest = deps.json_reader(), b""
        try:
            for piece in _pieces(self._response):
                *lines, rest = (rest + piece).split(b"\n")
                for line in lines:
                    if line.strip():
                        yield self._event(read, line)
        except (self._errors.HTTPError, OSError, AttributeError, ValueError) as error:
            # The last three: the connection was closed under the reader.
            if not self._closed:
                raise failures.unreachable(self._call, _reason(error)) from error
        finally:
            self._response.close()

    def close(self) -> None:
        """End it; a reader that waits is woken."""
        self._closed = True
        end = getattr(self._response, "shutdown", None)  # urllib3 2.3 and newer
        try:
            if end is not None:
                end()
        except (OSError, ValueError, RuntimeError):  # it has ended already
            pass

    def _event(self, read: Callable[[bytes], Any], line: bytes) -> tuple[str, dict[str, Any]]:
        try:
            found = read(line)
            kind, content = found["type"], found["object"]
        except (ValueError, KeyError, TypeError) as error:
            raise failures.senseless(self._call, repr(line[:60])) from error
        if kind == "ERROR":
            code = content.get("code")
            raise failures.error_of_answer(
                self._call, code if isinstance(code, int) else 500, json.dumps(content).encode(), {}
            )
        return kind, content


def _pieces(response: Any) -> Iterator[bytes]:
    """The answer as it comes in, so that one which comes drop by drop can be given up."""
    if not hasattr(response, "read1"):  # urllib3 1
        yield from response.stream(_PIECE)
        return
    while True:
        piece = response.read1(_PIECE)
        if not piece:
            return
        yield piece


def _root(group_version: str) -> str:
    return "/apis" if "/" in group_version else "/api"


def _discovered(document: Mapping[str, Any]) -> Iterator[Resource]:
    for group in document.get("items") or ():
        name = (group.get("metadata") or {}).get("name") or ""
        for version in group.get("versions") or ():
            group_version = "%s/%s" % (name, version["version"]) if name else version["version"]
            for found in version.get("resources") or ():
                kind = (found.get("responseKind") or {}).get("kind") or ""
                yield Resource(group_version, found["resource"], kind, found.get("scope") == "Namespaced")


def _listed(document: Mapping[str, Any]) -> Iterator[Resource]:
    for found in document.get("resources") or ():
        if "/" not in found["name"]:
            yield Resource(document["groupVersion"], found["name"], found["kind"], found["namespaced"])


def _object_of(call: failures.Call, answer: _Answer) -> dict[str, Any]:
    if not 200 <= answer.code < 300:
        raise failures.error_of_answer(call, answer.code, answer.body, answer.headers)
    try:
        found = deps.json_reader()(answer.body)
    except ValueError as error:
        raise failures.senseless(call, repr(answer.body[:60])) from error
    if not isinstance(found, dict):
        raise failures.senseless(call, repr(found)[:60])
    return found


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _reason(error: BaseException) -> str:
    """The innermost reason, without addresses of objects in memory."""
    while True:
        inner = getattr(error, "reason", None) or error.__cause__ or error.__context__
        if not isinstance(inner, BaseException):
            return " ".join(str(error).split())[:300] or type(error).__name__
        error = inner


# --- how to get there ------------------------------------------------------------------------------------------------


def connect(
    kubeconfig: Optional[str] = None, context: Optional[str] = None, request_timeout: float = REQUEST_TIMEOUT
) -> Cluster:
    """Prepare calls to a cluster; nothing is sent yet, but a credential plugin may run.

    :param kubeconfig: a file; without it that of ``K8S_AUTH_KUBECONFIG``, then ``KUBECONFIG`` (several with ``:``),
        then ``~/.kube/config`` if it exists, and inside a pod the pod's service account.
    :param context: a context of the file; without it that of ``K8S_AUTH_CONTEXT``, then the current one.
    :raises RdmaError: ``kube_config`` when there is no usable configuration, ``library_missing``.
    """
    config = deps.kubernetes("kubernetes.config")
    client = deps.kubernetes("kubernetes.client")
    environment = os.environ
    file = kubeconfig or environment.get("K8S_AUTH_KUBECONFIG") or environment.get("KUBECONFIG")
    context = context or environment.get("K8S_AUTH_CONTEXT") or None
    default = os.path.expanduser("~/.kube/config")
    configuration = client.Configuration()
    configuration.retries = False
    if not file and not os.path.exists(default) and environment.get("KUBERNETES_SERVICE_HOST"):
        try:
            config.load_incluster_config(client_configuration=configuration)
        except config.ConfigException as error:
            raise _no_configuration("the service account of the pod", str(error)) from error
    else:
        _load(config, os.path.expanduser(file or default), context, configuration)
    return Cluster(client.ApiClient(configuration), request_timeout)


def _load(config: Any, file: str, context: Optional[str], configuration: Any) -> None:
    """Take over a kubeconfig; the official client tells some of its problems to the log only."""
    said = _Listener()
    root = logging.getLogger()
    root.addHandler(said)
    yaml = deps.yaml()
    try:
        config.load_kube_config(
            config_file=file, context=context, client_configuration=configuration, persist_config=False
        )
    except config.ConfigException as error:
        raise _no_configuration(file, str(error)) from error
    except (
        OSError,
        ValueError,
        TypeError,
        AttributeError,
        yaml.YAMLError,
    ) as error:  # a file of another kind
        raise _no_configuration(file, "%s: %s" % (type(error).__name__, error)) from error
    finally:
        root.removeHandler(said)
    if said.messages and not configuration.api_key and not configuration.cert_file:
        raise _no_configuration(file, "the credential plugin failed: " + said.messages[-1])


class _Listener(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(record.getMessage())


def _no_configuration(source: str, reason: str) -> RdmaError:
    reason = " ".join(reason.split())[:300].rstrip(".")
    return RdmaError(
        "kube_config",
        "The configuration for Kubernetes from %s cannot be used: %s." % (source, reason),
        hint="Give a kubeconfig by the option kubeconfig or the variable KUBECONFIG, and a context that is in it.",
        source=source,
    )
