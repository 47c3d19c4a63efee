# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether applying a document would change a live object. In doubt the answer is no, and the server decides."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.core.kube.field_sets import is_applied

DOCUMENT: dict[str, Any] = {
    "apiVersion": "apps/v1",
    "kind": "DaemonSet",
    "metadata": {"name": "x", "namespace": "default", "labels": {"a": "b"}},
    "spec": {
        "args": ["one", "two"],
        "empty": {},
        "set": ["p", "q"],
        "containers": [{"name": "c", "image": "i:1", "command": ["sleep"]}],
    },
}
OWNED: dict[str, Any] = {
    "f:metadata": {"f:labels": {"f:a": {}}},
    "f:spec": {
        "f:args": {},
        "f:empty": {},
        "f:set": {'v:"p"': {}, 'v:"q"': {}},
        "f:containers": {'k:{"name":"c"}': {".": {}, "f:name": {}, "f:image": {}, "f:command": {}}},
    },
}


def live() -> dict[str, Any]:
    """As the server has it, with defaults and what others own."""
    found = copy.deepcopy(DOCUMENT)
    found["metadata"]["resourceVersion"] = "7"
    found["metadata"]["managedFields"] = [
        {
            "manager": "rdma.k8s",
            "operation": "Apply",
            "apiVersion": "apps/v1",
            "fieldsV1": copy.deepcopy(OWNED),
        },
        {"manager": "kubelet", "operation": "Update", "apiVersion": "apps/v1", "fieldsV1": {"f:status": {}}},
    ]
    found["spec"]["defaulted"] = 1
    found["spec"]["containers"][0]["imagePullPolicy"] = "Always"
    found["status"] = {"ready": 1}
    return found


def test_the_same() -> None:
    assert is_applied(DOCUMENT, live(), "rdma.k8s")


Edit = Callable[[dict[str, Any], dict[str, Any]], Any]


@pytest.mark.parametrize(
    "edit",
    [
        lambda document, _live: document["spec"].update(args=["one"]),
        lambda document, _live: document["spec"].update(more=1),
        lambda document, _live: document["spec"].pop("args"),
        lambda document, _live: document["spec"].pop("empty"),
        lambda document, _live: document["spec"].update(set=["p"]),
        lambda document, _live: document["spec"].update(set=["p", "r"]),
        lambda document, _live: document["spec"]["containers"][0].update(image="i:2"),
        lambda document, _live: document["spec"]["containers"][0].pop("command"),
        lambda document, _live: document["spec"]["containers"].append({"name": "d"}),
        lambda document, _live: document["spec"]["containers"][0].update(name="d"),
        lambda document, _live: document["spec"].update(containers={"name": "c"}),
        lambda document, _live: document["metadata"].pop("labels"),
        lambda document, _live: document["metadata"]["labels"].update(a="c"),
        lambda document, _live: document["metadata"].update(annotations={"a": "b"}),
        lambda document, _live: document.update(apiVersion="apps/v2"),
        lambda _document, live: live["spec"].update(args=["two"]),
        lambda _document, live: live["spec"].pop("args"),
        lambda _document, live: live["spec"].update(containers=[]),
        lambda _document, live: live["spec"].update(containers=None),
        lambda _document, live: live["spec"].update(set=["q"]),
        lambda _document, live: live["metadata"].pop("managedFields"),
        lambda _document, live: live["metadata"]["managedFields"][0].update(manager="other"),
        lambda _document, live: live["metadata"]["managedFields"][0].update(operation="Update"),
        lambda _document, live: live["metadata"]["managedFields"][0].update(subresource="status"),
        lambda _document, live: live["metadata"]["managedFields"][0].update(apiVersion="apps/v1beta1"),
        lambda _document, live: live["metadata"]["managedFields"][0].update(fieldsV1=None),
        lambda _document, live: live["metadata"]["managedFields"][0]["fieldsV1"]["f:spec"].pop("f:args"),
        lambda _document, live: live["metadata"]["managedFields"][0]["fieldsV1"]["f:spec"].update(
            {"f:containers": {"k:nonsense": {}}}
        ),
        lambda _document, live: live["metadata"]["managedFields"][0]["fieldsV1"]["f:spec"].update(
            {"f:containers": {"i:0": {}}}
        ),
    ],
)
def test_any_difference(edit: Edit) -> None:
    document, there = copy.deepcopy(DOCUMENT), live()
    edit(document, there)
    if document["apiVersion"] != DOCUMENT["apiVersion"]:
        there["apiVersion"] = document["apiVersion"]
    assert not is_applied(document, there, "rdma.k8s")


def test_an_object_without_anything_of_its_own() -> None:
    """A Namespace of a name alone owns nothing, which is no reason to be sure."""
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "x"}}
    entry = {"manager": "rdma.k8s", "operation": "Apply", "apiVersion": "v1", "fieldsV1": {}}
    assert not is_applied(
        namespace, {**namespace, "metadata": {"name": "x", "managedFields": [entry]}}, "rdma.k8s"
    )
