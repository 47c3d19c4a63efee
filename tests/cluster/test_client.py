# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Calls to a real API server: what it answers, and how its refusals are told."""

from __future__ import annotations

import base64
import contextlib
import json
import socket
import ssl
import threading
import urllib.request
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.rdma.k8s.plugins.module_utils.cluster.client import Cluster, connect
from ansible_collections.rdma.k8s.plugins.module_utils.core.errors import RdmaError

from .conftest import SIMULATED, ControlPlane

NODES = "/api/v1/nodes"


@pytest.fixture
def cluster(control_plane: ControlPlane) -> Cluster:
    """Calls as the administrator."""
    return connect(str(control_plane.kubeconfig))


@pytest.fixture
def namespace(control_plane: ControlPlane) -> Iterator[str]:
    """A namespace for one test."""
    name = "t" + uuid.uuid4().hex[:8]
    control_plane.kubectl("create", "namespace", name)
    yield name
    control_plane.kubectl("delete", "namespace", name, "--wait=false")


def fails(act: Any, *arguments: Any, **more: Any) -> RdmaError:
    """The error of a call."""
    with pytest.raises(RdmaError) as found:
        act(*arguments, **more)
    return found.value


def with_user(control_plane: ControlPlane, directory: Path, server: str = "", **user: Any) -> str:
    """A kubeconfig as the administrator's with another user, and perhaps another address."""
    content = yaml.safe_load(control_plane.kubeconfig.read_text("utf-8"))
    if user:
        content["users"][0]["user"] = user
    if server:
        content["clusters"][0]["cluster"]["server"] = server
    file = directory / "kubeconfig"
    file.write_text(yaml.safe_dump(content), "utf-8")
    return str(file)


def token(control_plane: ControlPlane, namespace: str, account: str) -> str:
    """A service account and a token for it."""
    control_plane.kubectl("create", "serviceaccount", account, "-n", namespace)
    return control_plane.kubectl("create", "token", account, "-n", namespace).strip()


def config_map(namespace: str, name: str = "a", **data: str) -> dict[str, Any]:
    """A small object."""
    metadata = {"namespace": namespace, "name": name}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def version_of(content: dict[str, Any]) -> str:
    """What changes with every change."""
    return content["metadata"]["resourceVersion"]


# --- reading ---------------------------------------------------------------------------------------------------------


def test_pages_of_nodes(cluster: Cluster) -> None:
    names = [node["metadata"]["name"] for node in cluster.items(NODES, limit=1)]
    assert len(set(names)) == len(names) == SIMULATED
    assert cluster.calls == SIMULATED
    selected = cluster.items(NODES, fieldSelector="metadata.name=" + names[1])
    assert [node["metadata"]["name"] for node in selected] == [names[1]]


def test_what_is_served(cluster: Cluster) -> None:
    """In one request for all groups, and one for the core group."""
    assert cluster.serves("resource.k8s.io/v1", "resourceslices")
    assert cluster.serves("resource.k8s.io/v1", "devicetaintrules")
    assert not cluster.serves("resource.k8s.io/v1", "nodes")
    assert not cluster.serves("sriovnetwork.openshift.io/v1", "sriovnetworks")
    assert cluster.serves("v1", "configmaps")
    assert cluster.calls == 2
    assert cluster.version()["gitVersion"].startswith("v1.")


def compact(control_plane: ControlPlane, revision: int) -> None:
    """Let etcd forget what was before a revision."""
    plane = control_plane.cluster.plane()
    pki = control_plane.cluster.directory / "pki"
    context = ssl.create_default_context(cafile=str(pki / "etcd-ca.crt"))
    context.load_cert_chain(str(pki / "etcd-client.crt"), str(pki / "etcd-client.key"))
    request = urllib.request.Request(
        f"https://127.0.0.1:{plane.port('etcd')}/v3/kv/compaction",
        data=json.dumps({"revision": str(revision)}).encode(),
    )
    opener = urllib.request.build_opener(
        urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context)
    )
    with opener.open(request, timeout=10) as answer:
        assert answer.status == 200


def test_a_page_that_has_expired(
    control_plane: ControlPlane, cluster: Cluster, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server gives 410 with a token for the rest; nothing is missing and nothing comes twice.

    Events are not kept in the memory of the API server, which would remember old lists for a while.
    """
    for name in "abc":
        last = cluster.apply(
            {
                "apiVersion": "v1",
                "kind": "Event",
                "metadata": {"namespace": namespace, "name": name},
                "involvedObject": {"kind": "Pod", "namespace": namespace, "name": "p"},
            }
        )
    compact(control_plane, int(version_of(last)))
    sent = cluster._send_again
    asked: list[int] = []

    def of_long_ago(call: Any, query: dict[str, Any], *more: Any) -> Any:
        if "continue" in query and len(asked) == 1:
            content = json.loads(base64.urlsafe_b64decode(query["continue"] + "=="))
            old = json.dumps({**content, "rv": 1}).encode()
            query = {**query, "continue": base64.urlsafe_b64encode(old).decode().rstrip("=")}
        answer = sent(call, query, *more)
        asked.append(answer.code)
        return answer

    monkeypatch.setattr(cluster, "_send_again", of_long_ago)
    events = cluster.items(f"/api/v1/namespaces/{namespace}/events", limit=2)
    assert [entry["metadata"]["name"] for entry in events] == ["a", "b", "c"]
    assert asked == [200, 410, 200]


class Relay:
    """A way to the API server that can break: it stands for a server or a network that goes away."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._open: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _address = self._listener.accept()
                far = socket.create_connection(("127.0.0.1", self._target))
                self._open += [near, far]
                for one, other in ((near, far), (far, near)):
                    threading.Thread(target=self._copy, args=(one, other), daemon=True).start()

    @staticmethod
    def _copy(one: socket.socket, other: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := one.recv(65536):
                other.sendall(data)

    def end(self) -> None:
        """Break all connections and take no new ones."""
        # A thread that waits in accept keeps the socket; shutting it down wakes the thread.
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for held in self._open:
            with contextlib.suppress(OSError):
                held.shutdown(socket.SHUT_RDWR)
            held.close()


def test_a_server_that_goes_away_between_pages(control_plane: ControlPlane, tmp_path: Path) -> None:
    relay = Relay(int(control_plane.url.rpartition(":")[2]))
    server = f"https://127.0.0.1:{relay.port}"
    cluster = connect(with_user(control_plane, tmp_path, server), request_timeout=10)
    nodes = cluster.items(NODES, limit=1)
    assert next(nodes)["metadata"]["name"]
    relay.end()
    error = fails(list, nodes)
    assert (error.code, error.retryable) == ("kube_unreachable", True)
    assert f"GET {NODES} at {server}" in error.message
    assert cluster.calls == 5  # the first page, and four attempts


# --- who asks --------------------------------------------------------------------------------------------------------


def test_a_wrong_token(control_plane: ControlPlane, tmp_path: Path) -> None:
    error = fails(connect(with_user(control_plane, tmp_path, token="not-a-token")).get, NODES)
    assert error.code == "kube_unauthorized"
    assert "not-a-token" not in str(error.to_dict())


def test_a_token_that_is_no_longer_valid(control_plane: ControlPlane, namespace: str, tmp_path: Path) -> None:
    """Its service account is gone; the answer to a token that has run out is the same."""
    held = token(control_plane, namespace, "gone")
    cluster = connect(with_user(control_plane, tmp_path, token=held))
    assert fails(cluster.get, NODES).code == "kube_forbidden"
    control_plane.kubectl("delete", "serviceaccount", "gone", "-n", namespace)
    # The server keeps an answer about a token for ten seconds.
    for _second in range(60):
        error = fails(cluster.get, NODES)
        if error.code != "kube_forbidden":
            break
        threading.Event().wait(0.5)
    assert error.code == "kube_unauthorized"
    assert held not in str(error.to_dict())


def test_nobody(control_plane: ControlPlane, tmp_path: Path) -> None:
    error = fails(connect(with_user(control_plane, tmp_path, username="x", password="y")).get, NODES)
    assert error.code in ("kube_unauthorized", "kube_forbidden")


def test_a_user_with_few_rights(control_plane: ControlPlane, namespace: str, tmp_path: Path) -> None:
    """The hint is what a role needs, and with that role the call works."""
    cluster = connect(with_user(control_plane, tmp_path, token=token(control_plane, namespace, "few")))
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    error = fails(cluster.get, path)
    assert error.code == "kube_forbidden"
    assert f'verb "list" for "configmaps" of the API group "" in the namespace {namespace}' in error.hint
    error = fails(cluster.apply, config_map(namespace, "x", a="b"))
    assert (error.details["verb"], error.details["resource"]) == ("patch", "configmaps")
    account = f"{namespace}:few"
    control_plane.kubectl(
        "create", "role", "few", "-n", namespace, "--verb=list,patch,create", "--resource=configmaps"
    )
    control_plane.kubectl(
        "create", "rolebinding", "few", "-n", namespace, "--role=few", "--serviceaccount=" + account
    )
    for _try in range(40):  # the authorizer learns of a role a moment later
        with contextlib.suppress(RdmaError):
            cluster.get(path)
            break
        threading.Event().wait(0.25)
    assert cluster.apply(config_map(namespace, "x", a="b"))["data"] == {"a": "b"}


def test_a_server_of_another_authority(control_plane: ControlPlane, tmp_path: Path) -> None:
    content = yaml.safe_load(control_plane.kubeconfig.read_text("utf-8"))
    held = content["clusters"][0]["cluster"]
    held.pop("certificate-authority-data", None)
    held["certificate-authority"] = str(control_plane.cluster.directory / "pki" / "etcd-ca.crt")
    file = tmp_path / "kubeconfig"
    file.write_text(yaml.safe_dump(content), "utf-8")
    error = fails(connect(str(file)).get, NODES)
    assert error.code == "kube_tls"
    assert "certificate" in error.message


# --- changing --------------------------------------------------------------------------------------------------------


def test_apply_again_changes_nothing(cluster: Cluster, namespace: str) -> None:
    first = cluster.apply(config_map(namespace, a="1"))
    assert version_of(cluster.apply(config_map(namespace, a="1"))) == version_of(first)
    second = cluster.apply(config_map(namespace, a="2"))
    assert version_of(second) != version_of(first)
    assert cluster.get(f"/api/v1/namespaces/{namespace}/configmaps/a")["data"] == {"a": "2"}


def test_a_dry_run_stores_nothing(cluster: Cluster, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps/a"
    assert cluster.apply(config_map(namespace, a="1"), dry_run=True)["data"] == {"a": "1"}
    assert fails(cluster.get, path).code == "kube_not_found"
    cluster.apply(config_map(namespace, a="1"))
    assert cluster.apply(config_map(namespace, a="2"), dry_run=True)["data"] == {"a": "2"}
    assert cluster.delete(config_map(namespace), dry_run=True)
    assert cluster.get(path)["data"] == {"a": "1"}


def test_fields_of_another_manager(cluster: Cluster, namespace: str) -> None:
    cluster.apply(config_map(namespace, a="1"), field_manager="somebody")
    error = fails(cluster.apply, config_map(namespace, a="2"))
    assert error.code == "kube_conflict"
    assert error.details["fields"] == ['.data.a: conflict with "somebody"']
    assert cluster.apply(config_map(namespace, a="2"), force=True)["data"] == {"a": "2"}


def test_fields_that_are_not_known(cluster: Cluster, namespace: str) -> None:
    """For a built-in kind the server answers 500 to server-side apply; nothing is dropped in silence."""
    error = fails(cluster.apply, {**config_map(namespace), "wrong": 1})
    assert (error.code, error.retryable) == ("kube_invalid", False)
    assert ".wrong" in error.message


def test_values_that_are_wrong(cluster: Cluster, namespace: str) -> None:
    error = fails(cluster.apply, config_map(namespace, "Not_A_Name"))
    assert error.code == "kube_invalid"
    assert "metadata.name" in error.details["fields"][0]


def test_kinds_and_namespaces_that_are_not_there(cluster: Cluster) -> None:
    assert fails(cluster.apply, {**config_map("default"), "kind": "Nothing"}).code == "kube_not_served"
    assert fails(cluster.apply, config_map("no-such-namespace")).code == "kube_not_found"


def test_only_the_object_that_was_meant_is_deleted(cluster: Cluster, namespace: str) -> None:
    first = cluster.apply(config_map(namespace))
    assert cluster.delete(config_map(namespace))
    assert not cluster.delete(config_map(namespace))
    cluster.apply(config_map(namespace))
    assert fails(cluster.delete, {**first, "apiVersion": "v1", "kind": "ConfigMap"}).code == "kube_conflict"


def test_a_policy_that_denies(control_plane: ControlPlane, cluster: Cluster, namespace: str) -> None:
    group = "admissionregistration.k8s.io/v1"
    policy = {
        "apiVersion": group,
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": namespace},
        "spec": {
            "matchConstraints": {
                "resourceRules": [
                    {
                        "apiGroups": [""],
                        "apiVersions": ["v1"],
                        "resources": ["configmaps"],
                        "operations": ["CREATE"],
                    }
                ],
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
            },
            "validations": [{"expression": "false", "message": "no config maps here"}],
        },
    }
    binding = {
        "apiVersion": group,
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": namespace},
        "spec": {"policyName": namespace, "validationActions": ["Deny"]},
    }
    try:
        cluster.apply(policy)
        cluster.apply(binding)
        code = ""
        for at in range(60):  # a policy works a moment after it is there
            with contextlib.suppress(RdmaError):
                cluster.apply(config_map(namespace, "n%d" % at))
                threading.Event().wait(0.25)
                continue
            error = fails(cluster.apply, config_map(namespace, "n%d" % at))
            code = error.code
            break
        assert code == "kube_denied"
        assert "no config maps here" in error.message
    finally:
        cluster.delete(binding)
        cluster.delete(policy)
