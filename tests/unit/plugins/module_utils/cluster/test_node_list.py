# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes, slices and pods over the wire: how many calls, and what becomes of those that fail."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.cluster import node_list
from ansible_collections.rdma.k8s.plugins.module_utils.cluster.client import Cluster, connect
from ansible_collections.rdma.k8s.plugins.module_utils.cluster.node_list import Query
from ansible_collections.rdma.k8s.plugins.module_utils.core.errors import RdmaError
from ansible_collections.rdma.k8s.tests.support import inventory_objects as objects
from ansible_collections.rdma.k8s.tests.support.api_server import ApiServer, Request, serving, status
from ansible_collections.rdma.k8s.tests.support.list_api import NODES, PODS, SLICES, Lists


@pytest.fixture
def lists() -> Lists:
    """An empty cluster."""
    return Lists()


@pytest.fixture
def api(lists: Lists) -> Iterator[ApiServer]:
    """The server."""
    with serving() as found:
        found.route = lists
        yield found


@pytest.fixture
def cluster(api: ApiServer, tmp_path: Path) -> Cluster:
    """Calls to the server."""
    return connect(api.kubeconfig(tmp_path))


def test_a_thousand_nodes_take_six_calls(cluster: Cluster, lists: Lists) -> None:
    """Two pages each of nodes, slices and pods; 20 calls would be allowed."""
    count = 1000
    lists.objects[NODES] = [objects.node(number) for number in range(count)]
    lists.objects[SLICES] = [objects.piece(number, nics=1) for number in range(count)]
    lists.objects[PODS] = [objects.pod(objects.name_of(number), f"agent-{number}") for number in range(count)]
    found = node_list.read(cluster, Query(agent=("rdma", "")))
    names = [objects.name_of(number) for number in range(count)]
    assert cluster.calls == 6
    assert [node["name"] for node in found["nodes"]] == names
    assert [piece["node"] for piece in found["slices"]] == names
    assert [pod["node"] for pod in found["pods"]] == names


def test_what_is_asked_for(cluster: Cluster, api: ApiServer) -> None:
    """The selectors are the server's work: slices of other drivers need not come here at all (F99)."""
    found = node_list.read(cluster, Query(selector="pool=gpu", agent=("rdma", "app=agent")))
    assert found == {"nodes": [], "slices": [], "pods": []}
    asked = {
        request.path: {k: v for k, v in request.query.items() if k != "limit"} for request in api.requests
    }
    assert asked == {
        NODES: {"labelSelector": "pool=gpu"},
        SLICES: {"fieldSelector": "spec.driver=dra.net"},
        PODS: {"labelSelector": "app=agent"},
    }
    assert {request.query["limit"] for request in api.requests} == {"500"}


def test_without_an_agent_no_pod_is_read(cluster: Cluster, api: ApiServer) -> None:
    """A right that is not needed is not needed."""
    assert node_list.read(cluster, Query())["pods"] == []
    assert sorted(request.path for request in api.requests) == [NODES, SLICES]


def test_slices_that_are_not_served_or_not_allowed(cluster: Cluster, lists: Lists) -> None:
    """None is one thing, not known another."""
    lists.forbidden.add(SLICES)
    assert "resourceslices" in node_list.read(cluster, Query())["slices"]
    lists.forbidden.clear()
    del lists.objects[SLICES]
    assert node_list.read(cluster, Query())["slices"] == []


@pytest.mark.parametrize("path", [NODES, PODS])
def test_lists_without_which_there_is_no_inventory(cluster: Cluster, lists: Lists, path: str) -> None:
    """No node can be told, or none reached."""
    lists.forbidden.add(path)
    with pytest.raises(RdmaError) as caught:
        node_list.read(cluster, Query(agent=("rdma", "")))
    assert (caught.value.code, caught.value.details["path"]) == ("kube_forbidden", path)


def test_an_answer_to_slices_that_is_neither(cluster: Cluster, api: ApiServer, lists: Lists) -> None:
    """An error that may heal must not look like a cluster without slices."""

    def route(request: Request) -> Any:
        return status(400, "no such field") if request.path == SLICES else lists(request)

    api.route = route
    with pytest.raises(RdmaError) as caught:
        node_list.read(cluster, Query())
    assert caught.value.code == "kube_invalid"
