# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The proof of a node by claims, over a cluster in memory: what is claimed, what is reached, what is left."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Mapping
from typing import Any, Optional

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.cluster import canary_run, client, objects, waiting
from ansible_collections.rdma.k8s.plugins.module_utils.cluster.roll_dranet import DranetRange, Proof
from ansible_collections.rdma.k8s.plugins.module_utils.core.errors import RdmaError
from ansible_collections.rdma.k8s.plugins.module_utils.core.oke import canary
from ansible_collections.rdma.k8s.plugins.module_utils.core.roll.model import Proven
from ansible_collections.rdma.k8s.plugins.module_utils.core.roll.users import Scope

RANGE = "172.16.0.0/12"
IMAGE = Proof("lab.test/rdma-k8s:1", "rdma", timeout=10)
ADDRESSES = {"n1": "172.16.0.1", "n2": "172.16.0.2"}


class Memory:
    """Nodes with two NICs, and what was made. Containers of a canary tell at once what they would tell.

    :param cut: nodes whose children reach nobody; ``idle``: whose claims get no NIC; ``stuck``: objects that stay.
    """

    def __init__(self) -> None:
        self.calls = 0
        self.objects: dict[str, dict[str, Any]] = {}
        self.made: list[str] = []
        self.nodes = ["n1", "n2"]
        self.cut: set[str] = set()
        self.idle: set[str] = set()
        self.refused: set[str] = set()
        self.stuck: set[str] = set()
        self.claims: list[dict[str, Any]] = []

    def get(self, path: str) -> dict[str, Any]:
        self.calls += 1
        name = path.rpartition("/")[2]
        if path.startswith("/api/v1/nodes/") and name in self.nodes:
            ready = {"type": "Ready", "status": "True"}
            return {"metadata": {"name": name}, "status": {"conditions": [ready]}}
        if path in self.objects:
            return self.objects[path]
        raise RdmaError("kube_not_found", "There is no %s." % path)

    find = client.Cluster.find

    def items(self, path: str, **query: str) -> Iterator[dict[str, Any]]:
        self.calls += 1
        if path.endswith("/events"):
            uid = query["fieldSelector"].partition("=")[2]
            if uid in self.refused:
                yield {"reason": "FailedPrepareDynamicResources", "message": "no address"}
        elif "labelSelector" in query:
            assert query["labelSelector"] == canary.SELECTOR
            kind = "Pod" if path == "/api/v1/namespaces/rdma/pods" else "ResourceClaim"
            yield from [live for name, live in self.objects.items() if name.startswith(kind + "/")]
        elif path == "/apis/resource.k8s.io/v1/resourceclaims":
            yield from self.claims
        else:
            node = query["fieldSelector"].partition("=")[2]
            yield {
                "metadata": {"name": node + "-s"},
                "spec": {
                    "driver": "dra.net",
                    "nodeName": node,
                    "pool": {"name": node, "generation": 1},
                    "devices": [self.nic(node, nic) for nic in ("rdma0", "rdma1")],
                },
            }

    @staticmethod
    def nic(node: str, name: str) -> dict[str, Any]:
        attributes: dict[str, Any] = {
            "dra.net/rdma": {"bool": True},
            "rdma.k8s/ready": {"bool": True},
            "dra.net/ifName": {"string": name},
            "dra.net/mac": {"string": "%s-%s" % (node, name)},
        }
        return {"name": "pci-" + name, "attributes": attributes}

    @staticmethod
    def path_of(document: Mapping[str, Any]) -> str:
        return "%s/%s" % (document["kind"], document["metadata"]["name"])

    def apply(self, document: Mapping[str, Any], **_more: Any) -> dict[str, Any]:
        self.calls += 1
        path = self.path_of(document)
        self.made.append(path)
        live = json.loads(json.dumps(document))
        live["metadata"]["uid"] = "uid-" + path
        self.objects[path] = live
        if document["kind"] == "Pod":
            node = live["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
            (term,) = node["nodeSelectorTerms"]
            self.run(live, term["matchFields"][0]["values"][0])
        return live

    def run(self, live: dict[str, Any], node: str) -> None:
        claim = self.objects.get("ResourceClaim/" + live["metadata"]["name"])
        if claim is not None and node in self.idle:
            return
        if claim is not None:
            claim["status"] = {"allocation": {"devices": {}}}
        if claim is not None and live["metadata"]["uid"] in self.refused:
            return
        witness = claim is None
        spec = live["spec"]
        look = (spec["containers"] if witness else spec["initContainers"])[0]
        nic = look["command"][3]
        mac = "%s-%s" % (node, nic)
        link = {"name": nic, "kind": "" if witness else "ipvlan", "mac": mac, "address": ADDRESSES[node]}
        key = "containerStatuses" if witness else "initContainerStatuses"
        live["status"] = {key: [self.ended("look", link)]}
        for container in spec["containers"]:
            if container["name"] == "reach":
                found = {"error": "timed out"} if node in self.cut else {"seen": ADDRESSES[node]}
                live["status"]["containerStatuses"] = [self.ended("reach", found)]

    @staticmethod
    def ended(name: str, message: Any) -> dict[str, Any]:
        return {"name": name, "state": {"terminated": {"message": json.dumps(message)}}}

    def delete(self, document: Mapping[str, Any]) -> bool:
        self.calls += 1
        path = self.path_of(document)
        if path in self.stuck:
            return True
        return self.objects.pop(path, None) is not None


class Clock:
    """Time that passes only by waiting."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The clock of all waiting."""
    made = Clock()
    monkeypatch.setattr(waiting, "time", made)
    return made


@pytest.fixture
def memory(clock: Clock) -> Memory:
    """A cluster in memory."""
    return Memory()


def prove(memory: Memory, node: str, peer: Optional[str], proof: Proof = IMAGE) -> Proven:
    """Prove a node; whatever comes of it, nothing is left but what cannot go."""
    target = DranetRange(memory, ("rdma/provider",), Scope(driver="dra.net"), proof)  # type: ignore[arg-type]
    try:
        return target.prove(node, RANGE, peer)
    finally:
        assert set(memory.objects) <= memory.stuck


def test_a_node_reaches_its_peer(memory: Memory) -> None:
    """The peer's canary stands before the one that is to reach it, by the NIC of the same name."""
    assert prove(memory, "n2", "n1") == Proven()
    assert memory.calls <= 25, "a node has 40 calls for the whole roll"
    assert memory.made == [
        "ResourceClaim/rdma-k8s-canary-n2-peer",
        "Pod/rdma-k8s-canary-n2-peer",
        "ResourceClaim/rdma-k8s-canary-n2",
        "Pod/rdma-k8s-canary-n2",
        "Pod/rdma-k8s-witness-n2",
    ]


def test_the_first_node_reaches_nobody(memory: Memory) -> None:
    """It is said, and it is no failure."""
    assert prove(memory, "n1", None) == Proven(note=canary.ALONE)
    assert len(memory.made) == 3


def test_without_an_image_nothing_is_claimed(memory: Memory) -> None:
    """And that is said, too."""
    assert prove(memory, "n1", "n2", Proof()) == Proven(note=canary.NO_IMAGE)
    assert memory.made == []


def test_a_child_that_does_not_reach(memory: Memory) -> None:
    """Both nodes, the NIC and both addresses are named."""
    memory.cut.add("n2")
    found = prove(memory, "n2", "n1")
    assert found.note == ""
    (problem,) = found.problems
    assert problem.startswith(
        "The child 172.16.0.2 of rdma0 on n2 does not reach the child 172.16.0.1 of rdma0 on n1: timed out."
    )


def test_a_peer_whose_nics_are_in_use(memory: Memory) -> None:
    """The next NIC that both have free is taken; when there is none, that is said."""
    memory.claims = [used("n1", "rdma0")]
    assert prove(memory, "n2", "n1") == Proven()
    assert memory.made[0] == "ResourceClaim/rdma-k8s-canary-n2-peer"
    memory.made.clear()
    memory.claims.append(used("n1", "rdma1"))
    busy = "no child reached another node: n1 has no free NIC of a name that is free here, too"
    assert prove(memory, "n2", "n1") == Proven(note=busy)
    assert len(memory.made) == 3


def used(node: str, nic: str) -> dict[str, Any]:
    """A claim of somebody."""
    result = {"driver": "dra.net", "pool": node, "device": "pci-" + nic, "request": "nic"}
    return {
        "metadata": {"name": nic, "namespace": "default"},
        "spec": {"devices": {}},
        "status": {"allocation": {"devices": {"results": [result]}}},
    }


def test_a_peer_that_gets_no_nic_in_time(memory: Memory, clock: Clock) -> None:
    """Somebody was faster: the node is proven but for this, after no more than its time."""
    memory.idle.add("n1")
    waited = "no child reached another node: rdma0 of n1 could not be claimed in time"
    assert prove(memory, "n2", "n1") == Proven(note=waited)
    assert clock.now <= IMAGE.timeout


def test_a_peer_whose_claim_is_refused(memory: Memory) -> None:
    """It was proven before, so something is wrong with the driver there."""
    memory.refused.add("uid-Pod/rdma-k8s-canary-n2-peer")
    found = prove(memory, "n2", "n1")
    (problem,) = found.problems
    assert "rdma0 of n1 is to be reached from rdma0 of n2" in problem
    assert "no address" in problem
    assert found.note == ""


def test_a_peer_that_is_gone(memory: Memory) -> None:
    """A node that vanished is no fault of the one that is proven."""
    memory.nodes.remove("n1")
    gone = "no child reached another node: n1, which was proven before it, is gone"
    assert prove(memory, "n2", "n1") == Proven(note=gone)
    with pytest.raises(RdmaError, match="nodes/n1"):
        prove(memory, "n1", "n2")


def test_a_driver_without_children(memory: Memory) -> None:
    """Nothing is made on the peer; what was not proven is said."""
    memory.refused.add("uid-Pod/rdma-k8s-canary-n2")
    proof = dataclasses.replace(IMAGE, expect=canary.REFUSED)
    assert prove(memory, "n2", "n1", proof) == Proven(note=canary.CHILDLESS)
    assert [name for name in memory.made if name.endswith("peer")] == []


def test_one_that_stays_keeps_nobody(memory: Memory, clock: Clock) -> None:
    """A pod cannot end: its claim is left to it, the others are removed all the same, and it is named."""
    for kind, suffix in (
        ("Pod", "-n2"),
        ("ResourceClaim", "-n2"),
        ("Pod", "-n2-peer"),
        ("ResourceClaim", "-n2-peer"),
        ("Pod", "-n3"),
    ):
        name = canary.NAME + suffix
        memory.objects["%s/%s" % (kind, name)] = {"metadata": {"name": name}}
    memory.stuck.add("Pod/rdma-k8s-canary-n2")
    with pytest.raises(RdmaError, match="Pod rdma/rdma-k8s-canary-n2 was asked to go") as found:
        canary_run.remove(memory, "rdma", 10, "-n2", "-n2-peer")  # type: ignore[arg-type]
    assert found.value.code == "canary_stays"
    left = {"Pod/rdma-k8s-canary-n2", "ResourceClaim/rdma-k8s-canary-n2", "Pod/rdma-k8s-canary-n3"}
    assert set(memory.objects) == left
    assert clock.now <= objects.PATIENCE
