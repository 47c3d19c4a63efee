# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Calls over the wire with the official client: what comes back, what is repeated, and how errors are told."""

from __future__ import annotations

import json
import logging
import socket
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils import deps
from ansible_collections.rdma.k8s.plugins.module_utils.cluster import client, failures
from ansible_collections.rdma.k8s.plugins.module_utils.cluster.client import Cluster, connect
from ansible_collections.rdma.k8s.plugins.module_utils.core.errors import RdmaError
from ansible_collections.rdma.k8s.tests.support.api_server import (
    TOKEN,
    Answer,
    ApiServer,
    Breaks,
    Request,
    Stalls,
    kubeconfig,
    serving,
    status,
)

NODES = "/api/v1/nodes"
ENVIRONMENT = ("K8S_AUTH_KUBECONFIG", "KUBECONFIG", "K8S_AUTH_CONTEXT", "KUBERNETES_SERVICE_HOST")


@pytest.fixture(autouse=True)
def _own_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in (*ENVIRONMENT, "HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))


@pytest.fixture
def api() -> Iterator[ApiServer]:
    """A server on loopback."""
    with serving() as found:
        yield found


class Pauses:
    """Time that passes only when somebody waits."""

    def __init__(self) -> None:
        self.now, self.waited = 0.0, []

    def sleep(self, seconds: float) -> None:
        self.waited.append(seconds)
        self.now += seconds

    def clock(self) -> float:
        return self.now


@pytest.fixture
def pauses() -> Pauses:
    """Waiting without time."""
    return Pauses()


@pytest.fixture
def cluster(api: ApiServer, tmp_path: Path, pauses: Pauses) -> Cluster:
    """Calls to the server, in which waiting takes no time and chance adds nothing."""
    real = connect(api.kubeconfig(tmp_path))
    return Cluster(real._api, 30.0, pauses.sleep, pauses.clock, chance=float)


def fails(act: Any, *arguments: Any, **more: Any) -> RdmaError:
    """The error of a call."""
    with pytest.raises(RdmaError) as found:
        act(*arguments, **more)
    return found.value


def page(names: list[str], token: str = "") -> Answer:
    """A page of a list."""
    items = [{"metadata": {"name": name}} for name in names]
    return Answer({"kind": "NodeList", "metadata": {"continue": token}, "items": items})


def names(found: Any) -> list[str]:
    return [entry["metadata"]["name"] for entry in found]


# --- what is asked ---------------------------------------------------------------------------------------------------


def test_one_object_and_who_asks(api: ApiServer, cluster: Cluster) -> None:
    api.answers = [Answer({"kind": "Node", "unknown": {"field": 1}})]
    assert cluster.get(NODES + "/n1", labelSelector="a in (b)", watch=False) == {
        "kind": "Node",
        "unknown": {"field": 1},
    }
    (request,) = api.requests
    assert (request.method, request.path) == ("GET", NODES + "/n1")
    assert request.query == {"labelSelector": "a in (b)", "watch": "false"}
    assert request.headers["authorization"] == "Bearer " + TOKEN
    assert request.headers["user-agent"].startswith("rdma.k8s/")
    assert cluster.calls == 1


def test_a_log_is_text(api: ApiServer, cluster: Cluster) -> None:
    """It is no JSON, and may be cut within a character."""
    api.answers = [Answer("one\ntw\u00f6".encode()[:-1])]
    assert cluster.text("/api/v1/namespaces/n/pods/p/log", previous=True, tailLines=5) == "one\ntw\ufffd"
    (request,) = api.requests
    assert request.query == {"previous": "true", "tailLines": "5"}


def test_a_log_that_is_refused(api: ApiServer, cluster: Cluster) -> None:
    api.answers = [status(403, "no")]
    with pytest.raises(RdmaError) as found:
        cluster.text("/api/v1/namespaces/n/pods/p/log")
    assert found.value.code == "kube_forbidden"


def test_pages_follow_the_token(api: ApiServer, cluster: Cluster) -> None:
    api.answers = [page(["a", "b"], "t/1+2="), page(["c"], "t2"), page([])]
    assert names(cluster.items(NODES, limit=2, fieldSelector="x=y")) == ["a", "b", "c"]
    asked = [request.query for request in api.requests]
    assert [query.get("continue") for query in asked] == [None, "t/1+2=", "t2"]
    assert {query["limit"] for query in asked} == {"2"}
    assert {query["fieldSelector"] for query in asked} == {"x=y"}


def test_a_list_without_items_is_empty(api: ApiServer, cluster: Cluster) -> None:
    api.answers = [Answer({"kind": "NodeList", "items": None})]
    assert list(cluster.items(NODES)) == []


def test_pages_are_asked_for_when_they_are_needed(api: ApiServer, cluster: Cluster) -> None:
    api.answers = [page(["a"], "t"), page(["b"])]
    first = next(cluster.items(NODES))
    assert (first["metadata"]["name"], cluster.calls) == ("a", 1)


def test_an_expired_page_goes_on_where_the_server_says(api: ApiServer, cluster: Cluster) -> None:
    expired = status(410, "The provided continue parameter is too old", metadata={"continue": "t9"})
    api.answers = [page(["a"], "t1"), expired, page(["b"])]
    assert names(cluster.items(NODES)) == ["a", "b"]
    assert [request.query.get("continue") for request in api.requests] == [None, "t1", "t9"]


@pytest.mark.parametrize(
    "answers",
    [
        [status(410, "too old")],
        [page(["a"], "t"), status(410, "too old")],
        [page(["a"], "t"), *[status(410, "too old", metadata={"continue": "t"})] * 12],
    ],
)
def test_an_expired_page_without_end(api: ApiServer, cluster: Cluster, answers: list[Any]) -> None:
    api.answers = list(answers)
    error = fails(list, cluster.items(NODES))
    assert (error.code, error.retryable) == ("kube_expired", True)
    assert len(api.requests) <= 12


# --- what is repeated ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "trouble",
    [
        Breaks(),
        status(429, "slow down"),
        status(500, "etcdserver: request timed out"),
        status(503, "not ready"),
        status(504, "x"),
    ],
)
def test_a_read_is_repeated(api: ApiServer, cluster: Cluster, pauses: Pauses, trouble: Any) -> None:
    api.answers = [trouble, trouble, Answer({"kind": "Node"})]
    assert cluster.get(NODES) == {"kind": "Node"}
    assert (cluster.calls, pauses.waited) == (3, [0.25, 0.5])


def test_repetition_ends(api: ApiServer, cluster: Cluster) -> None:
    api.answers = [status(503, "not ready")] * 9
    error = fails(cluster.get, NODES)
    assert (error.code, error.retryable, len(api.requests)) == ("kube_failed", True, 4)


def test_repetition_of_broken_connections_ends(api: ApiServer, cluster: Cluster) -> None:
    api.answers = [Breaks()] * 9
    assert (fails(cluster.get, NODES).code, len(api.requests)) == ("kube_unreachable", 4)


@pytest.mark.parametrize("where", ["header", "details"])
def test_the_server_says_how_long_to_wait(
    api: ApiServer, cluster: Cluster, pauses: Pauses, where: str
) -> None:
    told = status(429, "x", details={"retryAfterSeconds": 7})
    if where == "header":
        told = Answer({}, 429, {"Retry-After": "7"})
    api.answers = [told, Answer({"kind": "Node"})]
    cluster.get(NODES)
    assert pauses.waited == [7]


def test_waiting_longer_than_the_limit_is_not_tried(api: ApiServer, cluster: Cluster, pauses: Pauses) -> None:
    api.answers = [Answer({}, 429, {"Retry-After": "3600"})]
    assert (fails(cluster.get, NODES).code, pauses.waited) == ("kube_throttled", [])


def test_the_limit_counts_all_attempts(api: ApiServer, tmp_path: Path, pauses: Pauses) -> None:
    """Each attempt takes its time from one limit, and none is begun after it."""
    real = connect(api.kubeconfig(tmp_path))
    cluster = Cluster(real._api, 1.0, pauses.sleep, pauses.clock, chance=float)

    def slowly(request: Request) -> Any:
        pauses.now += 0.3
        return status(503, "x")

    api.route = slowly
    assert fails(cluster.get, NODES).code == "kube_failed"
    assert (len(api.requests), pauses.waited) == (2, [0.25])
    pauses.now = 0.0
    cluster._timeout = 0.0
    assert fails(cluster.send, "POST", NODES, {}).code == "kube_timeout"
    assert len(api.requests) == 2


def test_chance_spreads_the_pauses(api: ApiServer, tmp_path: Path, pauses: Pauses) -> None:
    real = connect(api.kubeconfig(tmp_path))
    api.answers = [status(503, "x"), Answer({"kind": "Node"})]
    Cluster(real._api, 30.0, pauses.sleep, pauses.clock, chance=lambda: 1.0).get(NODES)
    assert pauses.waited == [pytest.approx(0.375)]


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
@pytest.mark.parametrize("trouble", [Breaks(), status(429, "x"), status(503, "x")])
def test_a_change_is_never_repeated(api: ApiServer, cluster: Cluster, method: str, trouble: Any) -> None:
    api.answers = [trouble] * 4
    assert fails(cluster.send, method, NODES, {"a": 1}).retryable
    assert len(api.requests) == 1


# --- limits of time --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pieces", [False, True])
def test_a_slow_answer_ends_at_the_limit(api: ApiServer, tmp_path: Path, pieces: bool) -> None:
    """Also one of which a piece comes again and again."""
    stalls = Stalls(60, pieces)
    api.answers = [stalls]
    start = time.monotonic()
    error = fails(connect(api.kubeconfig(tmp_path), request_timeout=0.4).get, NODES)
    stalls.over.set()
    assert error.code == "kube_timeout"
    assert "after 0.4 seconds" in error.message
    assert time.monotonic() - start < 50


def test_nothing_listens(tmp_path: Path) -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        port = holder.getsockname()[1]
        error = fails(
            connect(kubeconfig(tmp_path, f"http://127.0.0.1:{port}", token=TOKEN), request_timeout=3).get,
            NODES,
        )
    assert error.code == "kube_unreachable"
    assert f"GET {NODES} at http://127.0.0.1:{port} did not work" in error.message
    assert "refused" in error.message


def test_no_such_host(tmp_path: Path) -> None:
    cluster = connect(kubeconfig(tmp_path, "http://nowhere.invalid:1"), request_timeout=2)
    assert fails(cluster.get, NODES).code in ("kube_unreachable", "kube_timeout")


def test_a_server_without_tls(api: ApiServer, tmp_path: Path) -> None:
    error = fails(connect(api.kubeconfig(tmp_path, "https")).get, NODES)
    assert (error.code, error.retryable) == ("kube_tls", False)


# --- how errors are told ---------------------------------------------------------------------------------------------

FORBIDDEN = 'nodes is forbidden: User "eve" cannot list resource "nodes" in API group "" at the cluster scope'
POLICY = "ValidatingAdmissionPolicy 'x' with binding 'x' denied request: no"


@pytest.mark.parametrize(
    ("answer", "code", "words"),
    [
        (status(401, "Unauthorized"), "kube_unauthorized", "expired"),
        (
            status(403, FORBIDDEN),
            "kube_forbidden",
            'role with the verb "list" for "nodes" of the API group ""',
        ),
        (
            status(403, 'nodes is forbidden: User "system:anonymous" cannot'),
            "kube_forbidden",
            "No credentials",
        ),
        (status(403, POLICY), "kube_denied", "was denied: " + POLICY),
        (status(422, POLICY), "kube_denied", "was denied: " + POLICY),
        (status(403, 'admission webhook "w" denied the request: no'), "kube_denied", "no."),
        (status(404, 'nodes "n" not found'), "kube_not_found", 'nodes "n" not found'),
        (status(405, "not allowed"), "kube_refused", "not allowed"),
        (status(409, "the object has been modified"), "kube_conflict", "Read it again"),
        (status(422, "x is invalid"), "kube_invalid", "x is invalid."),
        (status(500, "failed to create typed patch object: .x: field not declared"), "kube_invalid", ".x"),
        (Answer(b"<html>go away</html>", 418), "kube_refused", "go away"),
        (Answer(b"", 400), "kube_invalid", "no reason given"),
        (Answer(b"<html>", 200), "kube_malformed", "gave no JSON object, but b'<html>'"),
        (Answer([1], 200), "kube_malformed", "[1]"),
    ],
)
def test_errors(api: ApiServer, cluster: Cluster, answer: Answer, code: str, words: str) -> None:
    api.answers = [answer]
    error = fails(cluster.get, NODES)
    assert error.code == code
    assert words in str(error)
    assert f"GET {NODES} at {cluster.server}" in error.message
    assert (error.details["server"], error.details["path"], error.details["verb"]) == (
        cluster.server,
        NODES,
        "list",
    )
    assert len(api.requests) == 1 or code == "kube_failed"


def test_causes_are_told_by_field(api: ApiServer, cluster: Cluster) -> None:
    causes = [{"reason": "FieldValueInvalid", "field": "spec.x", "message": "must be y"}]
    api.answers = [status(422, "invalid", details={"causes": causes})]
    assert fails(cluster.send, "POST", NODES, {}).details["fields"] == ["spec.x: must be y"]


def test_a_field_of_another_manager(api: ApiServer, cluster: Cluster) -> None:
    causes = [{"reason": "FieldManagerConflict", "field": ".spec.x", "message": 'conflict with "kubectl"'}]
    api.answers = [status(409, "Apply failed with 1 conflict", details={"causes": causes})]
    error = fails(cluster.send, "PATCH", NODES + "/a", {})
    assert (error.code, error.retryable) == ("kube_conflict", False)
    assert error.details["fields"] == ['.spec.x: conflict with "kubectl"']
    assert "by force" in error.hint


@pytest.mark.parametrize(
    ("method", "path", "right"),
    [
        ("GET", "/api/v1/nodes", ("list", "nodes", "", "")),
        ("GET", "/api/v1/nodes/n1", ("get", "nodes", "", "")),
        ("GET", "/api/v1/namespaces/a", ("get", "namespaces", "", "")),
        ("GET", "/apis/apps/v1/namespaces/a/daemonsets", ("list", "daemonsets", "apps", "a")),
        (
            "PATCH",
            "/apis/apps/v1/namespaces/a/daemonsets/b/status",
            ("patch", "daemonsets/status", "apps", "a"),
        ),
        ("POST", "/api/v1/namespaces/a/pods/b/eviction", ("create", "pods/eviction", "", "a")),
        ("DELETE", "/api/v1/namespaces/a/pods/b%2Fc", ("delete", "pods", "", "a")),
        ("GET", "/version", ("get", "", "", "")),
        ("GET", "/apis", ("get", "", "", "")),
        ("GET", "/apis/apps/v1", ("get", "", "", "")),
    ],
)
def test_the_right_that_a_call_needs(method: str, path: str, right: tuple[str, ...]) -> None:
    call = failures.call_of("https://s", method, path)
    assert 'verb "%s"' % right[0] in call.right
    assert (call.verb, call.resource, call.group, call.namespace) == right


def test_nobody_sees_the_token(
    api: ApiServer, cluster: Cluster, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    api.answers = [status(401, "x"), Answer({}), status(500, "x")]
    first = fails(cluster.get, NODES)
    cluster.get(NODES)
    second = fails(cluster.send, "POST", NODES, {})
    assert api.requests[1].headers["authorization"] == "Bearer " + TOKEN
    out, err = capfd.readouterr()
    for held in (caplog.text, out, err, repr(first.to_dict()), repr(second.to_dict()), repr(cluster)):
        assert TOKEN not in held


# --- what is served, and changes -------------------------------------------------------------------------------------


def discovered(group: str, *versions: tuple[str, str, str, bool]) -> dict[str, Any]:
    """A group of the aggregated discovery: version, plural, kind, namespaced."""
    return {
        "metadata": {"name": group},
        "versions": [
            {
                "version": version,
                "resources": [
                    {
                        "resource": plural,
                        "responseKind": {"kind": kind},
                        "scope": "Namespaced" if namespaced else "Cluster",
                    }
                ],
            }
            for version, plural, kind, namespaced in versions
        ],
    }


CORE = {"kind": "APIGroupDiscoveryList", "items": [discovered("", ("v1", "configmaps", "ConfigMap", True))]}
GROUPS = {
    "kind": "APIGroupDiscoveryList",
    "items": [
        discovered(
            "resource.k8s.io",
            ("v1", "deviceclasses", "DeviceClass", False),
            ("v1beta2", "deviceclasses", "DeviceClass", False),
        )
    ],
}
LEGACY = {
    "/api": {"kind": "APIVersions", "versions": ["v1"]},
    "/api/v1": {
        "groupVersion": "v1",
        "resources": [
            {"name": "configmaps", "kind": "ConfigMap", "namespaced": True},
            {"name": "pods/status", "kind": "Pod", "namespaced": True},
        ],
    },
    "/apis": {
        "groups": [{"versions": [{"groupVersion": "resource.k8s.io/v1"}, {"groupVersion": "away/v1"}]}],
    },
    "/apis/resource.k8s.io/v1": {
        "groupVersion": "resource.k8s.io/v1",
        "resources": [{"name": "deviceclasses", "kind": "DeviceClass", "namespaced": False}],
    },
}


def aggregated(request: Request) -> Answer:
    """A server of today."""
    assert "APIGroupDiscoveryList" in request.headers.get("accept", "") or request.path not in (
        "/api",
        "/apis",
    )
    return Answer({"/api": CORE, "/apis": GROUPS}.get(request.path, {"kind": "Other"}))


def legacy(request: Request) -> Answer:
    """A server that tells group by group, with one group whose server is away."""
    if request.path == "/apis/away/v1":
        return status(404, "away")
    return Answer(LEGACY[request.path])


@pytest.mark.parametrize(("route", "calls"), [(aggregated, 2), (legacy, 5)])
def test_discovery(api: ApiServer, cluster: Cluster, route: Any, calls: int) -> None:
    api.route = route
    assert cluster.serves("resource.k8s.io/v1", "deviceclasses")
    assert not cluster.serves("resource.k8s.io/v1", "resourceclaims")
    assert not cluster.serves("resource.k8s.io/v1alpha1", "deviceclasses")
    assert cluster.serves("v1", "configmaps")
    assert not cluster.serves("v1", "pods/status")
    assert cluster.calls == calls


def test_where_an_object_is(api: ApiServer, cluster: Cluster) -> None:
    api.route = aggregated
    document: dict[str, Any] = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a/b"}}
    assert cluster.path_of(document) == "/api/v1/namespaces/default/configmaps/a%2Fb"
    document["metadata"]["namespace"] = "n"
    assert cluster.path_of(document) == "/api/v1/namespaces/n/configmaps/a%2Fb"
    klass = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "x"}}
    assert cluster.path_of(klass) == "/apis/resource.k8s.io/v1/deviceclasses/x"


def test_a_kind_that_was_added_since(api: ApiServer, cluster: Cluster) -> None:
    api.answers = [Answer({"kind": "APIGroupDiscoveryList", "items": []})]
    api.route = aggregated
    assert not cluster.serves("resource.k8s.io/v1", "deviceclasses")
    klass = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "x"}}
    assert cluster.path_of(klass).endswith("deviceclasses/x")


def test_discovery_group_by_group_tells_what_it_may_not_see(api: ApiServer, cluster: Cluster) -> None:
    """A group whose server is away is left out; a refusal is an error."""
    api.route = legacy
    away = LEGACY["/apis"]
    api.answers = [Answer(away), Answer(LEGACY["/apis/resource.k8s.io/v1"]), status(403, "no")]
    assert fails(cluster.serves, "resource.k8s.io/v1", "deviceclasses").code == "kube_forbidden"


def test_everything_that_is_served(api: ApiServer, cluster: Cluster) -> None:
    api.route = aggregated
    assert [(found.group_version, found.plural) for found in cluster.resources()] == [
        ("v1", "configmaps"),
        ("resource.k8s.io/v1", "deviceclasses"),
        ("resource.k8s.io/v1beta2", "deviceclasses"),
    ]
    assert cluster.resources() == cluster.resources()
    assert cluster.calls == 2


@pytest.mark.parametrize(
    ("document", "code"),
    [
        ({"apiVersion": "v1", "kind": "Nothing", "metadata": {"name": "x"}}, "kube_not_served"),
        ({"kind": "ConfigMap", "metadata": {"name": "x"}}, "manifest_malformed"),
        ({"apiVersion": "v1", "kind": "ConfigMap"}, "manifest_malformed"),
        ({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": 1}}, "manifest_malformed"),
    ],
)
def test_documents_without_a_place(
    api: ApiServer, cluster: Cluster, document: dict[str, Any], code: str
) -> None:
    api.route = aggregated
    assert fails(cluster.apply, document).code == code
    assert {request.method for request in api.requests} <= {"GET"}


def test_apply(api: ApiServer, cluster: Cluster) -> None:
    api.route = aggregated
    document = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"x": "y"}}
    assert cluster.apply(document, force=True, dry_run=True) == {"kind": "Other"}
    request = api.requests[-1]
    assert (request.method, request.body) == ("PATCH", document)
    assert request.headers["content-type"] == "application/apply-patch+yaml"
    assert request.query == {
        "fieldManager": "rdma.k8s",
        "force": "true",
        "fieldValidation": "Strict",
        "dryRun": "All",
    }
    cluster.apply(document)
    assert (api.requests[-1].query["force"], api.requests[-1].query.get("dryRun")) == ("false", None)


def test_delete(api: ApiServer, cluster: Cluster) -> None:
    api.route = aggregated
    document: dict[str, Any] = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
    assert cluster.delete(document)
    assert api.requests[-1].method == "DELETE"
    assert "preconditions" not in api.requests[-1].body
    document["metadata"]["uid"] = "u"
    assert cluster.delete(document, dry_run=True)
    assert api.requests[-1].body["preconditions"] == {"uid": "u"}
    assert api.requests[-1].body["dryRun"] == ["All"]
    api.answers = [status(404, "gone")]
    assert not cluster.delete(document)
    api.answers = [status(409, "another uid")]
    assert fails(cluster.delete, document).code == "kube_conflict"


# --- how to get there ------------------------------------------------------------------------------------------------


def server_of(monkeypatch: pytest.MonkeyPatch, directory: Path, name: str, variable: str = "") -> str:
    """Write a kubeconfig for a server of that name, and let a variable point to it."""
    folder = directory / name
    folder.mkdir()
    file = kubeconfig(folder, f"https://{name}")
    if variable:
        monkeypatch.setenv(variable, file)
    return file


def test_which_configuration_is_taken(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The option, then our variable, then that of kubectl, then the file in the home."""
    (tmp_path / ".kube").mkdir()
    (tmp_path / ".kube/config").write_text(
        Path(kubeconfig(tmp_path, "https://home")).read_text("utf-8"), "utf-8"
    )
    assert connect().server == "https://home"
    server_of(monkeypatch, tmp_path, "kubectl", "KUBECONFIG")
    assert connect().server == "https://kubectl"
    server_of(monkeypatch, tmp_path, "ansible", "K8S_AUTH_KUBECONFIG")
    assert connect().server == "https://ansible"
    option = server_of(monkeypatch, tmp_path, "option")
    assert connect(option).server == "https://option"
    assert connect(option, "here").server == "https://option"
    monkeypatch.setenv("K8S_AUTH_CONTEXT", "there")
    assert "there" in fails(connect, option).message


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "No configuration found"),
        ("", "kube-config"),
        ("a: [", "parsing"),
        ("[1]", ""),
        ("just words", ""),
        ("apiVersion: v1\nkind: Config\ncontexts: []\nclusters: []\nusers: []\n", "current-context"),
    ],
)
def test_unusable_configurations(tmp_path: Path, content: str | None, words: str) -> None:
    file = tmp_path / "broken"
    if content is not None:
        file.write_text(content, "utf-8")
    error = fails(connect, str(file))
    assert error.code == "kube_config"
    assert str(file) in error.message
    assert words in error.message


def test_a_context_that_is_not_there(api: ApiServer, tmp_path: Path) -> None:
    error = fails(connect, api.kubeconfig(tmp_path), "elsewhere")
    assert error.code == "kube_config"
    assert "elsewhere" in error.message


def test_the_service_account_of_a_pod(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It is taken when there is no kubeconfig at all."""
    incluster = deps.kubernetes("kubernetes.config.incluster_config")
    for name, content in (("SERVICE_TOKEN_FILENAME", TOKEN), ("SERVICE_CERT_FILENAME", "a certificate")):
        (tmp_path / name).write_text(content, "utf-8")
        monkeypatch.setattr(incluster, name, str(tmp_path / name))
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.96.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    assert connect().server == "https://10.96.0.1:443"
    server_of(monkeypatch, tmp_path, "given", "KUBECONFIG")
    assert connect().server == "https://given"


def test_a_pod_without_its_service_account(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.96.0.1")
    error = fails(connect)
    assert error.code == "kube_config"
    assert "service account" in error.message


def plugin(tmp_path: Path, program: str) -> dict[str, Any]:
    """A user with a credential plugin that is a Python program."""
    file = tmp_path / "plugin.py"
    file.write_text(program, "utf-8")
    version = "client.authentication.k8s.io/v1"
    return {
        "exec": {
            "apiVersion": version,
            "command": sys.executable,
            "args": [str(file)],
            "interactiveMode": "Never",
        }
    }


def test_a_credential_plugin(api: ApiServer, tmp_path: Path) -> None:
    program = (
        'import json\nprint(json.dumps({"apiVersion": "client.authentication.k8s.io/v1", '
        '"kind": "ExecCredential", "status": {"token": "from-the-plugin"}}))\n'
    )
    api.answers = [Answer({"kind": "Node"})]
    connect(api.kubeconfig(tmp_path, **plugin(tmp_path, program))).get(NODES)
    assert api.requests[0].headers["authorization"] == "Bearer from-the-plugin"


def test_a_credential_plugin_that_fails(
    api: ApiServer, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """The library only logs it and would go on as nobody."""
    program = 'import sys\nsys.exit("log in first")\n'
    error = fails(connect, api.kubeconfig(tmp_path, **plugin(tmp_path, program)))
    assert error.code == "kube_config"
    assert "log in first" in error.message
    assert "log in first" not in capfd.readouterr().err
    assert not any(isinstance(handler, client._Listener) for handler in logging.getLogger().handlers)


def test_the_library_that_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "kubernetes", None)
    error = fails(deps.kubernetes)
    assert (error.code, error.details["library"]) == ("library_missing", "kubernetes")


# --- watches ---------------------------------------------------------------------------------------------------------


def event(kind: str, name: str = "", version: str = "7", **more: Any) -> bytes:
    """One line of a watch."""
    held = {"metadata": {"name": name, "resourceVersion": version}, **more}
    return json.dumps({"type": kind, "object": held}).encode() + b"\n"


class Lines:
    """A watch that sends pieces, one after the other, and then waits or ends."""

    def __init__(self, *pieces: bytes, stays: bool = False) -> None:
        self.pieces, self.stays, self.over = pieces, stays, threading.Event()

    def send(self, handler: Any) -> None:
        """Write chunks as an API server does."""
        handler.send_response(200)
        handler.send_header("Content-Type", "application/json")
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        for piece in self.pieces:
            handler.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            handler.wfile.flush()
        if self.stays:
            self.over.wait(20)
        handler.wfile.write(b"0\r\n\r\n")


def test_a_watch_gives_whole_events(api: ApiServer, cluster: Cluster) -> None:
    """Events come in pieces that end anywhere; bookmarks are given too, for their version."""
    text = event("ADDED", "a") + event("MODIFIED", "b\u00e4") + event("BOOKMARK", version="9")
    api.answers = [Lines(text[:10], text[10:90], text[90:-1], b"\n")]
    found = list(cluster.watch(NODES, "5", seconds=60, fieldSelector="a=b"))
    assert [(kind, content["metadata"].get("name")) for kind, content in found] == [
        ("ADDED", "a"),
        ("MODIFIED", "b\u00e4"),
        ("BOOKMARK", ""),
    ]
    (request,) = api.requests
    assert request.query == {
        "watch": "true",
        "resourceVersion": "5",
        "allowWatchBookmarks": "true",
        "timeoutSeconds": "60",
        "fieldSelector": "a=b",
    }
    assert cluster.calls == 1


def test_a_version_that_is_too_old(api: ApiServer, cluster: Cluster) -> None:
    """The server says so with its answer, or with an event when it notices later."""
    gone = {"code": 410, "reason": "Expired", "message": "too old resource version"}
    api.answers = [status(410, "too old"), Lines(event("ADDED", "a"), event("ERROR", **gone))]
    assert fails(cluster.watch, NODES, "1").code == "kube_expired"
    watch = iter(cluster.watch(NODES, "1"))
    assert next(watch)[0] == "ADDED"
    assert fails(next, watch).code == "kube_expired"


def test_a_watch_that_breaks(api: ApiServer, cluster: Cluster) -> None:
    """A connection that ends in the middle is an error, an end that the server announces is none."""

    class Cut(Lines):
        def send(self, handler: Any) -> None:
            handler.send_response(200)
            handler.send_header("Transfer-Encoding", "chunked")
            handler.end_headers()
            handler.wfile.write(b"%x\r\n%s" % (1000, event("ADDED", "a")))
            Breaks().send(handler)

    api.answers = [Cut(), Lines(b"no json\n"), Lines()]
    error = fails(list, cluster.watch(NODES, "1"))
    assert (error.code, error.retryable) == ("kube_unreachable", True)
    assert fails(list, cluster.watch(NODES, "1")).code == "kube_malformed"
    assert list(cluster.watch(NODES, "1")) == []
    api.answers = [Breaks(), status(403, "no")]
    assert fails(cluster.watch, NODES, "1").code == "kube_unreachable"
    assert fails(cluster.watch, NODES, "1").code == "kube_forbidden"


def test_a_watch_is_closed_from_outside(api: ApiServer, cluster: Cluster) -> None:
    """The reader is woken, and its end is no error."""
    answer = Lines(event("ADDED", "a"), stays=True)
    api.answers = [answer]
    watch = cluster.watch(NODES, "1")
    found: list[str] = []
    heard = threading.Event()

    def read() -> None:
        for kind, _content in watch:
            found.append(kind)
            heard.set()
        found.append("end")

    thread = threading.Thread(target=read)
    thread.start()
    try:
        assert heard.wait(60)
        watch.close()
        thread.join(60)
        assert found == ["ADDED", "end"]
    finally:
        answer.over.set()
        thread.join(60)


def test_a_guard_stands_before_changes_only(api: ApiServer, cluster: Cluster) -> None:
    def refuse() -> None:
        raise RdmaError("guarded", "not now")

    cluster.guard = refuse
    api.answers = [Answer({"kind": "Node"})]
    assert cluster.get(NODES + "/n1") == {"kind": "Node"}
    assert fails(cluster.send, "PATCH", NODES + "/n1", {}).code == "guarded"
    assert [request.method for request in api.requests] == ["GET"]
