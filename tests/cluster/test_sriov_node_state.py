# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""sriov_node_state_info against a real API server, with statuses that an actor plays in their misleading order."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.cluster.client import Cluster, connect
from ansible_collections.rdma.k8s.plugins.module_utils.cluster.collect import collect
from ansible_collections.rdma.k8s.plugins.module_utils.cluster.sources import LiveSource
from ansible_collections.rdma.k8s.plugins.module_utils.core.checks.judge import judge
from ansible_collections.rdma.k8s.plugins.module_utils.core.checks.policy import Policy
from ansible_collections.rdma.k8s.plugins.modules import cluster_objects, rail_table, sriov_node_state_info
from ansible_collections.rdma.k8s.tests.support import change_run, fleet, sriov_crds
from ansible_collections.rdma.k8s.tests.support.sriov_crds import NAMESPACE, SRIOV, Operator

from .conftest import ControlPlane

PLACES = ("0000:0c:00.0", "0000:2a:00.0")
VFS = 8
RESOURCE = "spidernet.io/gpu1sriov"
LABEL = "rails-test"


def policy(**spec: Any) -> dict[str, Any]:
    """One that takes both functions: sixteen devices of one resource."""
    return {
        "apiVersion": SRIOV + "/v1",
        "kind": "SriovNetworkNodePolicy",
        "metadata": {"name": "gpu1", "namespace": NAMESPACE},
        "spec": {
            "resourceName": "gpu1sriov",
            "nodeSelector": {LABEL: "true"},
            "numVfs": VFS,
            "nicSelector": {"vendor": "15b3", "rootDevices": list(PLACES)},
            "isRdma": True,
            **spec,
        },
    }


def pool(name: str, limit: Any) -> dict[str, Any]:
    return {
        "apiVersion": SRIOV + "/v1",
        "kind": "SriovNetworkPoolConfig",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"nodeSelector": {"matchLabels": {LABEL: "true"}}, "maxUnavailable": limit},
    }


@pytest.fixture(scope="module")
def cluster(control_plane: ControlPlane) -> Iterator[Cluster]:
    """Calls as the administrator, on a server with these kinds."""
    found = connect(str(control_plane.kubeconfig))
    with sriov_crds.served(found):
        yield found


@pytest.fixture
def operator(cluster: Cluster) -> Iterator[tuple[Operator, list[str]]]:
    """Two nodes with fresh states, and the policy for them; all of it goes with the test."""
    actor = Operator(cluster, PLACES)
    nodes = sorted(node["metadata"]["name"] for node in cluster.items("/api/v1/nodes"))[:2]
    config = {
        "apiVersion": SRIOV + "/v1",
        "kind": "SriovOperatorConfig",
        "metadata": {"name": "default", "namespace": NAMESPACE},
        "spec": {"disableDrain": True},
    }
    cluster.apply(config)
    cluster.apply(policy())
    for node in nodes:
        actor.label(node, **{LABEL: "true"})
        actor.fresh(node)
    yield actor, nodes
    for node in nodes:
        actor.label(node, **{LABEL: None})
        actor.register(node, RESOURCE, None)
        actor.forget(node)
    for document in (policy(), config, pool("one", 1), pool("two", 1)):
        cluster.delete(document)


def ask(control_plane: ControlPlane, **options: Any) -> dict[str, Any]:
    result = change_run.good(sriov_node_state_info, kubeconfig=str(control_plane.kubeconfig), **options)
    assert result["changed"] is False
    return result


def phases(result: dict[str, Any]) -> list[str]:
    return [node["phase"] for node in result["nodes"]]


def finish(actor: Operator, node: str) -> None:
    actor.render(node, VFS)
    actor.say(node, "Succeeded", VFS)
    actor.drain(node, "Idle", "Idle")
    actor.register(node, RESOURCE, 2 * VFS)


def test_a_fresh_succeeded_is_not_ready(
    control_plane: ControlPlane, operator: tuple[Operator, list[str]]
) -> None:
    """S116, S117: the state says Succeeded and Idle twice, and nothing was done."""
    result = ask(control_plane)
    assert (result["state"], phases(result)) == ("progress", ["waiting", "waiting"])
    assert all("has 0 virtual functions, not 8" in " ".join(node["reasons"]) for node in result["nodes"])
    assert (result["looks"], result["disable_drain"]) == (1, True)


@pytest.mark.parametrize(
    ("told", "registered", "phase"),
    [
        (("Succeeded", VFS, VFS), 2 * VFS, "ready"),
        (("Succeeded", VFS, VFS - 1), 2 * VFS, "waiting"),
        (("Succeeded", VFS - 1, VFS - 1), 2 * VFS, "waiting"),
        (("Succeeded", VFS, VFS), 0, "registering"),
        (("InProgress", VFS, VFS), 2 * VFS, "configuring"),
        (("Failed", VFS, VFS), 2 * VFS, "failed"),
    ],
)
def test_each_condition_counts(
    control_plane: ControlPlane,
    operator: tuple[Operator, list[str]],
    told: tuple[str, int, int],
    registered: int,
    phase: str,
) -> None:
    """S113, S115, S119."""
    actor, nodes = operator
    for node in nodes:
        finish(actor, node)
    sync, vfs, listed = told
    actor.say(nodes[1], sync, vfs, listed=listed)
    actor.register(nodes[1], RESOURCE, registered)
    result = ask(control_plane)
    assert phases(result) == ["ready", phase]
    assert result["state"] == ("ready" if phase == "ready" else "progress")


def in_background(play: Callable[[], None]) -> threading.Thread:
    thread = threading.Thread(target=play, daemon=True)
    thread.start()
    return thread


def test_through_drain_reboot_and_return(
    control_plane: ControlPlane, operator: tuple[Operator, list[str]]
) -> None:
    """S113-S119: each misleading moment passes without an early end; the states are watched, nothing is written."""
    actor, nodes = operator
    first, second = nodes
    finish(actor, first)
    audit = control_plane.cluster.directory / "audit.log"
    before = len(audit.read_text("utf-8").splitlines())
    pause = 2.5

    def play() -> None:
        time.sleep(pause)
        actor.render(second, VFS)
        actor.drain(second, "Reboot_Required", "Idle")
        time.sleep(pause)
        actor.drain(second, "Reboot_Required", "Draining")
        time.sleep(pause)
        actor.drain(second, "Reboot_Required", "DrainComplete")
        time.sleep(pause)
        actor.drain(second, "Idle", "Idle")
        actor.say(second, "InProgress", 0)
        time.sleep(pause)
        actor.say(second, "Succeeded", VFS, listed=VFS - 1)
        time.sleep(pause)
        actor.say(second, "Succeeded", VFS)
        time.sleep(0.5)
        actor.register(second, RESOURCE, 2 * VFS)

    thread = in_background(play)
    result = ask(control_plane, timeout=90, settle=3)
    thread.join()
    assert (result["state"], result["settled"], phases(result)) == ("ready", True, ["ready", "ready"])
    assert result["problems"] == []
    way = [entry["phase"] for entry in result["history"] if entry["node"] == second]
    assert way[:6] == ["waiting", "queued", "draining", "rebooting", "configuring", "waiting"], way
    assert way[-1] == "ready"
    assert [entry["phase"] for entry in result["history"] if entry["node"] == first] == ["ready"]
    log = [json.loads(line) for line in audit.read_text("utf-8").splitlines()[before:]]
    ours = [
        entry for entry in log if entry["userAgent"].startswith("rdma.k8s/") and SRIOV in entry["requestURI"]
    ]
    assert "watch" in {entry["verb"] for entry in ours}
    reads = [entry for entry in ours if entry["verb"] == "list" and "nodestates" in entry["requestURI"]]
    assert result["looks"] <= len(reads) <= 2 * result["looks"] + 2


def test_a_node_that_fails_ends_the_wait_early(
    control_plane: ControlPlane, operator: tuple[Operator, list[str]]
) -> None:
    """S118, S124: the daemon tries again and again; what it says is told with what to do."""
    actor, nodes = operator
    finish(actor, nodes[0])
    actor.say(nodes[1], "Failed", 0, "cannot set sriov_numvfs: cannot allocate memory")
    result = ask(control_plane, timeout=120, stuck_after=10)
    assert (result["state"], phases(result)) == ("failed", ["ready", "failed"])
    assert 10 <= result["waited"] < 60
    assert result["nodes"][1]["stuck"]["code"] == "sync-failed"
    assert "cannot allocate memory" in result["problems"][0]
    assert "BIOS" in result["problems"][0]


@pytest.mark.parametrize(
    ("pools", "code"),
    [((pool("one", 1), pool("two", 1)), "two-pools"), ((pool("one", "10%"),), "drain-limit-zero")],
)
def test_a_drain_that_never_comes_is_told_at_once(
    control_plane: ControlPlane,
    cluster: Cluster,
    operator: tuple[Operator, list[str]],
    pools: tuple[dict[str, Any], ...],
    code: str,
) -> None:
    """S120, S121."""
    actor, nodes = operator
    for document in pools:
        cluster.apply(document)
    finish(actor, nodes[0])
    actor.drain(nodes[1], "Drain_Required", "Idle")
    result = ask(control_plane, timeout=60)
    assert (result["state"], result["nodes"][1]["stuck"]["code"]) == ("stuck", code)
    assert result["waited"] < 10


def test_nodes_that_nobody_prepared(
    control_plane: ControlPlane, operator: tuple[Operator, list[str]]
) -> None:
    result = ask(control_plane, nodes=["nobody"])
    assert (result["state"], phases(result)) == ("progress", ["missing"])


@pytest.mark.parametrize("layer", ["Ethernet", "InfiniBand"])
def test_derived_objects_pass_strict_validation(
    control_plane: ControlPlane, cluster: Cluster, layer: str
) -> None:
    """S92: fields that these versions do not have would be refused here, and dropped elsewhere."""
    shape = "BM.GPU.H100.8" if layer == "Ethernet" else "BM.GPU.GB200.4"
    snapshots = [fleet.node(shape, number).to_dict() for number in range(2)]
    table = change_run.good(
        rail_table,
        snapshots=snapshots,
        supernet="172.16.0.0/16",
        node_selector={LABEL: "true"},
        inject="rails",
        pkeys=["0x10"] if layer == "InfiniBand" else [],
    )
    given = {"kubeconfig": str(control_plane.kubeconfig), "documents": table["objects"]}
    try:
        assert change_run.good(cluster_objects, **given)["changed"] is True
        assert change_run.good(cluster_objects, **given)["changed"] is False
        fresh = connect(
            str(control_plane.kubeconfig)
        )  # the fixture asked what is served before these kinds were
        found = collect(LiveSource(fresh), "lab", ("nodes", "attachments"))
        document = judge(
            [], Policy.from_dict({"target": "spiderpool_sriov"}), "2026-03-02T09:05:00Z", cluster=found
        )
        told = {entry.check[11:]: entry.status for entry in document.findings if "SRIOV" in entry.check}
        assert {check: told[check] for check in ("001", "002", "003", "004", "015", "022")} == {
            **dict.fromkeys(("001", "002", "003", "004", "022"), "pass"),
            "015": "skip" if layer == "Ethernet" else "pass",
        }
    finally:
        change_run.good(cluster_objects, **given, state="absent")
