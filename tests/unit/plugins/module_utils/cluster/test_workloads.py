# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which objects of a cluster are read for the lint. A real API server is asked in tests/cluster."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.cluster import workloads
from ansible_collections.rdma.k8s.plugins.module_utils.cluster.client import Resource
from ansible_collections.rdma.k8s.plugins.module_utils.core.errors import RdmaError
from ansible_collections.rdma.k8s.plugins.module_utils.core.kube.documents import live

CORE = [
    Resource("v1", "pods", "Pod", True),
    Resource("v1", "secrets", "Secret", True),
    Resource("v1", "configmaps", "ConfigMap", True),
]
OTHERS = [
    Resource("batch/v1", "jobs", "Job", True),
    Resource("batch/v1beta1", "jobs", "Job", True),
    Resource("batch.volcano.sh/v1alpha1", "jobs", "Job", True),
    Resource("resource.k8s.io/v1", "deviceclasses", "DeviceClass", False),
    Resource("example.org/v1", "configmaps", "ConfigMap", True),
    Resource("example.org/v1", "things", "Thing", True),
]
DEFINITION = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.example.org"


class Server:
    """Answers by path: objects, or the code of an error."""

    def __init__(self, **answers: Any) -> None:
        self.answers = answers
        self.asked: list[str] = []

    def resources(self, root: str = "") -> list[Resource]:
        return {"/api": CORE, "/apis": OTHERS}.get(root, CORE + OTHERS)

    def items(self, path: str) -> list[Any]:
        self.asked.append(path)
        return self._answer(path, [])

    def get(self, path: str) -> Any:
        self.asked.append(path)
        return self._answer(path, {})

    def _answer(self, path: str, otherwise: Any) -> Any:
        found = self.answers.get(path, otherwise)
        if isinstance(found, str):
            raise RdmaError(found, "No.")
        return found


def test_each_kind_is_read_once_and_secrets_never():
    server = Server()
    assert workloads.read(server) == ([], [])
    assert server.asked == [
        "/api/v1/pods",
        "/api/v1/configmaps",
        "/apis/batch/v1/jobs",
        "/apis/batch.volcano.sh/v1alpha1/jobs",
        "/apis/resource.k8s.io/v1/deviceclasses",
    ]


def test_namespaces():
    server = Server()
    workloads.read(server, ["a", "b"])
    assert server.asked[:2] == ["/api/v1/namespaces/a/pods", "/api/v1/namespaces/b/pods"]
    assert server.asked[-1] == "/apis/resource.k8s.io/v1/deviceclasses"


def test_objects_of_a_list_get_their_kind():
    job = {"metadata": {"name": "x"}}
    documents, _problems = workloads.read(Server(**{"/apis/batch/v1/jobs": [job]}))
    assert [document.content for document in documents] == [{"apiVersion": "batch/v1", "kind": "Job", **job}]
    assert documents[0].source == "cluster"


def test_what_may_not_be_read():
    server = Server(
        **{"/api/v1/namespaces/a/pods": "kube_forbidden", "/apis/batch/v1/namespaces/a/jobs": [{}]}
    )
    documents, problems = workloads.read(server, ["a", "b"])
    assert ([error.code for error in problems], len(documents)) == (["kube_forbidden"], 1)
    assert "/api/v1/namespaces/b/pods" not in server.asked
    with pytest.raises(RdmaError):
        workloads.read(Server(**{"/api/v1/pods": "kube_unreachable"}))


def test_definitions():
    things = live(
        [
            {"apiVersion": "example.org/v1", "kind": "Thing"},
            {"apiVersion": "example.org/v2", "kind": "Thing"},
            {"apiVersion": "batch/v1", "kind": "Job"},
            ["x"],
        ]
    )
    server = Server(**{DEFINITION: {"spec": {}}})
    (document,), problems = workloads.definitions(server, things)
    assert document.content["kind"] == "CustomResourceDefinition"
    assert (problems, server.asked) == ([], [DEFINITION])
    assert workloads.definitions(Server(**{DEFINITION: "kube_not_found"}), things) == ([], [])
    found, problems = workloads.definitions(Server(**{DEFINITION: "kube_forbidden"}), things)
    assert (found, [error.code for error in problems]) == ([], ["kube_forbidden"])
    with pytest.raises(RdmaError):
        workloads.definitions(Server(**{DEFINITION: "kube_unreachable"}), things)
