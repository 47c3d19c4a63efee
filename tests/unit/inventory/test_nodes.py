# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The inventory plugin in the real ``ansible-inventory``, against a server on loopback that counts the calls.

The environments of ansible-test have no such command, so this does not stand below ``plugins``.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.core.inventory import FACTS
from ansible_collections.rdma.k8s.tests.support import inventory_objects as objects
from ansible_collections.rdma.k8s.tests.support.api_server import TOKEN, ApiServer, kubeconfig, serving
from ansible_collections.rdma.k8s.tests.support.inventory_run import SOURCE, InventoryRun
from ansible_collections.rdma.k8s.tests.support.list_api import NODES, PODS, SLICES, Lists
from ansible_collections.rdma.k8s.tests.support.playbook import Controller

NETWORK = "rdma_network_10_224_0_0_12_via_10_140_64_0_19"


@pytest.fixture(scope="module")
def controller(tmp_path_factory: pytest.TempPathFactory) -> Controller:
    """A home that the runs of these tests share."""
    return Controller(tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("compiled"))


@pytest.fixture
def lists() -> Lists:
    """Three nodes, of which two have slices."""
    found = Lists()
    found.objects[NODES] = [objects.node(0), objects.node(1), objects.node(2, oci=False)]
    found.objects[SLICES] = [objects.piece(0), objects.piece(1)]
    return found


@pytest.fixture
def api(lists: Lists) -> Iterator[ApiServer]:
    """The server."""
    with serving() as found:
        found.route = lists
        yield found


@pytest.fixture
def run(controller: Controller, api: ApiServer, tmp_path: Path) -> InventoryRun:
    """A directory with a kubeconfig for the server."""
    return InventoryRun(controller, tmp_path, api.kubeconfig(tmp_path))


def cache_options(run: InventoryRun, **more: Any) -> dict[str, Any]:
    """Options that keep what was read in files."""
    return {
        "cache": True,
        "cache_plugin": "ansible.builtin.jsonfile",
        "cache_connection": str(run.folder / "cache"),
        **more,
    }


def cache_files(run: InventoryRun) -> list[Path]:
    """The files of the cache."""
    return sorted((run.folder / "cache").iterdir())


def test_hosts_groups_and_variables(run: InventoryRun, api: ApiServer) -> None:
    """Two calls, nothing said, every option for the connection in its variable, no credential anywhere."""
    run.source(
        user="opc",
        port=2222,
        strict=True,
        compose={"my_range": "rdma_k8s_node.child_range"},
        groups={"usable": "rdma_k8s_node.ready and rdma_k8s_node.target != 'none'"},
        keyed_groups=[{"key": "rdma_k8s_node.rack", "prefix": "rack", "default_value": "unknown"}],
    )
    found = run()
    assert (found.code, found.errors) == (0, "")
    assert list(found.hosts) == ["gpu-00000", "gpu-00001", "gpu-00002"]
    first = found.hosts["gpu-00000"]
    assert (first["ansible_host"], first["ansible_user"], first["ansible_port"]) == (
        "10.140.64.10",
        "opc",
        2222,
    )
    assert first["rdma_k8s_node"]["rdma_network"] == "10.224.0.0/12 via 10.140.64.0/19"
    assert first["my_range"] == "10.208.0.0/12"
    assert found.group(NETWORK) == found.group("usable") == ["gpu-00000", "gpu-00001"]
    assert found.group("rdma_network_unknown") == found.group("rack_unknown") == ["gpu-00002"]
    assert found.group("rack_rack0") == ["gpu-00000", "gpu-00001"]
    assert found.group("rdma_target_oke_dranet") == ["gpu-00000", "gpu-00001"]
    assert sorted(request.path for request in api.requests) == [NODES, SLICES]
    assert {request.headers["authorization"] for request in api.requests} == {"Bearer " + TOKEN}
    assert TOKEN not in found.output
    graph = run("--graph")
    assert f"  |--@{NETWORK}:\n  |  |--gpu-00000\n  |  |--gpu-00001\n" in graph.output


def test_a_text_of_the_cluster_is_never_a_template(run: InventoryRun, lists: Lists) -> None:
    """Who may label a node must not run code on the controller."""
    lists.objects[NODES][0]["metadata"]["labels"]["bad"] = "{{ 6 * 7 }}"
    run.source(labels=["bad"], compose={"seen": "rdma_k8s_node.labels.bad"})
    found = run()
    assert found.hosts["gpu-00000"]["seen"] == "{{ 6 * 7 }}"
    assert "42" not in found.output


def test_the_cache(run: InventoryRun, api: ApiServer, lists: Lists) -> None:
    """No call as long as it is fresh; read again when it is stale, flushed, or of other options or another cluster."""
    path = run.source(**cache_options(run, cache_timeout=600))

    def calls() -> int:
        count = len(api.requests)
        api.requests.clear()
        return count

    before = run()
    assert calls() == 2
    lists.objects[NODES].append(objects.node(3))
    kept = run()
    assert (kept.hosts, kept.errors, calls()) == (before.hosts, "", 0)
    assert list(run("--list", "--flush-cache").hosts)[-1] == "gpu-00003"
    assert calls() == 2
    assert list(run().hosts)[-1] == "gpu-00003"
    assert calls() == 0

    files = cache_files(run)
    assert len(files) == 1
    assert TOKEN not in files[0].read_text()
    os.utime(files[0], (0, files[0].stat().st_mtime - 601))
    run()
    assert calls() == 2

    run.source(**cache_options(run, cache_timeout=600, group_prefix="own_"))
    assert run().group("own_nodes") == [objects.name_of(number) for number in range(4)]
    assert calls() == 0
    run.source(**cache_options(run, cache_timeout=600, labels=["a"]))
    run()
    assert calls() == 2

    run.source(**cache_options(run, cache_timeout=600))
    kubeconfig(run.folder, f"http://127.0.0.1:{api.port}/", token="another")
    run()
    assert calls() == 2
    assert path.exists()


def wrapped(entry: Any) -> str:
    """The content of a file as Ansible keeps an entry."""
    return json.dumps({"__payload__": json.dumps(entry)})


BROKEN = [
    "no JSON",
    "[]",
    '{"__payload__": "no JSON"}',
    wrapped([]),
    wrapped({"format": FACTS, "facts": "no JSON"}),
    wrapped({"format": FACTS, "facts": '{"nodes": []}'}),
    wrapped({"format": FACTS, "facts": "7"}),
]


def test_a_broken_cache_is_said_and_read_past(run: InventoryRun, api: ApiServer) -> None:
    """What was kept and cannot be used costs a call, not the inventory, and is whole again afterwards."""
    run.source(**cache_options(run))
    run()
    path = cache_files(run)[0]
    for content in BROKEN:
        path.write_text(content)
        api.requests.clear()
        found = run()
        assert len(found.hosts) == 3, content
        assert "the cache cannot be used, the cluster is read again" in found.said, content
        assert len(api.requests) == 2, content
    assert run().errors == ""
    assert len(api.requests) == 2


def test_a_cache_of_another_release_is_read_past(run: InventoryRun, api: ApiServer) -> None:
    """That is nothing to speak of."""
    run.source(**cache_options(run))
    run()
    path = cache_files(run)[0]
    path.write_text(wrapped({"format": 0, "facts": "of another form"}))
    assert run().errors == ""
    assert len(api.requests) == 4


def test_slices_that_may_not_be_read(run: InventoryRun, lists: Lists) -> None:
    """The nodes are there; what needs slices is named unknown, also when it comes out of the cache."""
    lists.forbidden.add(SLICES)
    run.source(**cache_options(run))
    for found in (run(), run()):
        assert len(found.hosts) == 3
        assert found.group("rdma_target_unknown") == ["gpu-00002"]
        assert found.group("rdma_network_unknown") == list(found.hosts)
        assert "groups that need them are named unknown" in found.said
        assert 'the verb "list" for "resourceslices" of the API group "resource.k8s.io"' in found.said


def test_a_server_without_slices(run: InventoryRun, lists: Lists) -> None:
    """Before Kubernetes 1.34 there is no such list, so there is no slice, and nothing is unknown about targets."""
    del lists.objects[SLICES]
    run.source()
    found = run()
    assert found.errors == ""
    assert found.group("rdma_target_none") == ["gpu-00002"]


BAD: list[tuple[dict[str, Any], str]] = [
    ({"kubeconfig": "missing"}, "The configuration for Kubernetes from"),
    ({"context": "nowhere"}, "The configuration for Kubernetes from"),
    (
        {"connection": "agent", "agent_namespace": ""},
        "connection is agent, so the option agent_namespace must not be",
    ),
    ({"connection": "agent", "agent_selector": ""}, "the option agent_selector must not be empty"),
    ({"primary_subnets": ["10.0.0.0"]}, "'10.0.0.0' is not a prefix of the form"),
    ({"targets": ["gke"]}, "gke"),
    ({"strict": True, "compose": {"a": "nothing.like.this"}}, "Could not set a for host gpu-00000"),
]


@pytest.mark.parametrize(("options", "sentence"), BAD, ids=[str(list(options)) for options, _sentence in BAD])
def test_bad_options(run: InventoryRun, options: dict[str, Any], sentence: str) -> None:
    """A run that must have an inventory ends with an error that says what to do."""
    run.source(**options)
    found = run(ANSIBLE_INVENTORY_ANY_UNPARSED_IS_FAILED="true")
    assert found.code != 0
    assert sentence in found.said


def test_nodes_that_may_not_be_read(run: InventoryRun, lists: Lists) -> None:
    """There is no inventory then, and the right that is missing is named."""
    lists.forbidden.add(NODES)
    run.source()
    found = run()
    assert found.hosts == {}
    assert 'Give the user a role with the verb "list" for "nodes"' in found.said
    assert str(run.folder / SOURCE) in found.said


def test_a_cluster_without_nodes(run: InventoryRun) -> None:
    """An empty inventory is said: a play on it would do nothing."""
    run.source(label_selector="pool=gpu,zone=a")
    found = run()
    assert (found.code, found.hosts) == (0, {})
    assert "The cluster has no node with the labels pool=gpu,zone=a" in found.said


def test_the_node_agent(run: InventoryRun, api: ApiServer, lists: Lists) -> None:
    """Each node through its pod; one without is kept or left out, and named; nothing leaks from the kubeconfig."""
    lists.objects[PODS] = [
        objects.pod("gpu-00000", "agent-a"),
        objects.pod("gpu-00001", "agent-b", ready=False),
    ]
    for entry in lists.objects[PODS]:
        entry["metadata"]["labels"] = {"app": "agent"}
    options = {
        "connection": "agent",
        "agent_namespace": "rdma",
        "agent_selector": "app=agent",
        "agent_container": "agent",
        "context": "here",
    }
    run.source(**options)
    found = run()
    assert {key: value for key, value in found.hosts["gpu-00000"].items() if key != "rdma_k8s_node"} == {
        "ansible_connection": "kubernetes.core.kubectl",
        "ansible_kubectl_namespace": "rdma",
        "ansible_kubectl_container": "agent",
        "ansible_kubectl_kubeconfig": run.kubeconfig,
        "ansible_kubectl_context": "here",
        "ansible_kubectl_pod": "agent-a",
        "ansible_pipelining": True,
        "ansible_python_interpreter": "/usr/bin/python3",
        "ansible_remote_tmp": "/tmp/.ansible",
        "rdma_host_root": "/host",
    }
    assert found.group("rdma_no_connection") == ["gpu-00001", "gpu-00002"]
    assert found.hosts["gpu-00002"]["ansible_connection"] == "kubernetes.core.kubectl"
    assert "node gpu-00002: no connection, kept: no pod of the node agent is on it" in found.said
    assert "node gpu-00001: no connection, kept: the pod of the node agent on it is not ready" in found.said
    assert [request.query["labelSelector"] for request in api.requests if request.path == PODS] == [
        "app=agent"
    ]
    run.source(**options, without_connection="leave_out")
    left = run()
    assert list(left.hosts) == ["gpu-00000"]
    assert "node gpu-00002: no connection, left out" in left.said


def test_two_clusters_with_nodes_of_one_name(run: InventoryRun, lists: Lists, tmp_path: Path) -> None:
    """As one host they would be mixed up; a prefix keeps them apart. The same cluster twice is one."""
    sources = (SOURCE, "west.rdma_k8s.yml")
    other = Lists()
    other.objects[NODES] = [objects.node(7, name="gpu-00000")]
    run.source()
    folder = tmp_path / "west"
    folder.mkdir()
    with serving() as west:
        west.route = other
        run.source(sources[1], kubeconfig=west.kubeconfig(folder))
        found = run(sources=sources)
        assert "the host gpu-00000 is in the inventory already, as a node of another cluster" in found.said
        assert found.hosts["gpu-00000"]["ansible_host"] == "10.140.64.10"
        run.source(sources[1], kubeconfig=west.kubeconfig(folder), host_prefix="west-")
        found = run(sources=sources)
        assert (found.errors, len(found.hosts)) == ("", 4)
        assert found.hosts["west-gpu-00000"]["ansible_host"] == "10.140.64.17"
    run.source(sources[1])
    assert len(run(sources=sources).hosts) == 3


@pytest.mark.parametrize(
    ("name", "taken"), [("a.rdma_k8s.yaml", True), ("nodes.yml", True), ("rdma.yml", False)]
)
def test_the_name_of_the_source(run: InventoryRun, name: str, taken: bool) -> None:
    """A file of another name is not ours, whatever it says; the plugin ``auto`` may still take it by what it says."""
    run.source(name)
    found = run(sources=(name,), ANSIBLE_INVENTORY_ENABLED="rdma.k8s.nodes")
    assert (len(found.hosts) == 3) is taken
