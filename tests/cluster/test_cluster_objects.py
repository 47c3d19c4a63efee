# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module for arbitrary objects, before a real API server."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from ansible_collections.rdma.k8s.plugins.modules import cluster_objects
from ansible_collections.rdma.k8s.tests.support import change_run


@pytest.fixture
def name(control_plane: Any) -> Iterator[str]:
    """A name of its own for a namespace and a ClusterRole, which are gone after the test."""
    mark = "t" + uuid.uuid4().hex[:8]
    control_plane.kubectl("create", "namespace", mark)
    yield mark
    control_plane.kubectl("delete", "clusterrole", mark, "--ignore-not-found")
    control_plane.kubectl("delete", "namespace", mark, "--wait=false")


def documents(name: str, value: str = "1") -> list[dict[str, Any]]:
    """An object of a namespace that it does not name, and one of none."""
    rule = {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get"]}
    return [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"a": value}},
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": {"name": name},
            "rules": [rule],
        },
    ]


def found(control_plane: Any, name: str) -> dict[str, Any]:
    """The data of the ConfigMap; empty: there is none."""
    text = control_plane.kubectl(
        "get", "configmap", "settings", "-n", name, "-o", "json", "--ignore-not-found"
    )
    return json.loads(text)["data"] if text else {}


def test_make_change_remove(control_plane: Any, name: str) -> None:
    """Check mode stores nothing, a second run changes nothing, the namespace is given to those that have one."""

    def run(value: str = "1", **more: Any) -> dict[str, Any]:
        options = {"kubeconfig": str(control_plane.kubeconfig), "namespace": name, **more}
        return change_run.good(cluster_objects, documents=documents(name, value), **options)

    both = ["create ConfigMap %s/settings" % name, "create ClusterRole %s" % name]
    assert run(_ansible_check_mode=True)["actions"] == both
    assert found(control_plane, name) == {}
    assert run()["actions"] == both
    assert found(control_plane, name) == {"a": "1"}
    assert run()["changed"] is False
    updated = run("2", _ansible_diff=True)
    assert updated["actions"] == ["update ConfigMap %s/settings" % name]
    assert "a: '1'" in updated["diff"][0]["before"]
    assert "a: '2'" in updated["diff"][0]["after"]
    gone = ["delete ClusterRole %s" % name, "delete ConfigMap %s/settings" % name]
    assert run(state="absent", _ansible_check_mode=True)["actions"] == gone
    assert found(control_plane, name) == {"a": "2"}
    assert run(state="absent")["actions"] == gone
    assert found(control_plane, name) == {}
    assert run(state="absent")["changed"] is False


def test_what_the_server_refuses(control_plane: Any, name: str) -> None:
    """An unknown field is refused, and what was made before it is told."""
    bad = [*documents(name), {**documents(name)[0], "daat": {}}]
    failed = change_run.failure(
        cluster_objects, documents=bad, kubeconfig=str(control_plane.kubeconfig), namespace=name
    )
    assert "daat" in failed["msg"]
    assert len(failed["actions"]) == 2
    assert failed["changed"] is True


def test_an_object_of_somebody_else(control_plane: Any, name: str) -> None:
    """It is neither changed nor removed without force."""
    control_plane.kubectl("create", "configmap", "settings", "-n", name, "--from-literal=a=theirs")
    options = {
        "kubeconfig": str(control_plane.kubeconfig),
        "namespace": name,
        "documents": documents(name)[:1],
    }
    for state in ("present", "absent"):
        assert change_run.failure(cluster_objects, state=state, **options)["code"] == "object_foreign"
    assert found(control_plane, name) == {"a": "theirs"}
    assert change_run.good(cluster_objects, **options, force=True)["changed"]
    assert found(control_plane, name) == {"a": "1"}
