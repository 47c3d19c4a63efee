# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a roll sees: lists, watches that break or expire, and the view of a node that comes out of them."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Iterator
from typing import Any, Callable

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.cluster import following
from ansible_collections.rdma.k8s.plugins.module_utils.cluster.roll_dranet import DranetRange
from ansible_collections.rdma.k8s.plugins.module_utils.cluster.roll_world import World
from ansible_collections.rdma.k8s.plugins.module_utils.core.errors import RdmaError
from ansible_collections.rdma.k8s.plugins.module_utils.core.roll.names import State
from ansible_collections.rdma.k8s.plugins.module_utils.core.roll.users import Scope

NODES, PODS = "/api/v1/nodes", "/api/v1/pods"
CLAIMS = "/apis/resource.k8s.io/v1/resourceclaims"
SLICES = "/apis/resource.k8s.io/v1/resourceslices"
SETS = "/apis/apps/v1/namespaces/kube-system/daemonsets"
RULES = "/apis/resource.k8s.io/v1/devicetaintrules"
OLD, NEW = "10.208.0.0/12", "172.16.0.0/12"
OPTION = "--cloud-provider-options=oke.rdma-child-ipv4-cidr="
END = object()


class Watch:
    """A watch that gives what is put into it."""

    def __init__(self) -> None:
        self.events: queue.Queue[Any] = queue.Queue()

    def __iter__(self) -> Iterator[tuple[str, dict[str, Any]]]:
        while True:
            found = self.events.get()
            if found is END:
                return
            if isinstance(found, RdmaError):
                raise found
            yield found

    def close(self) -> None:
        self.events.put(END)


class Server:
    """Lists by path, and the watches that were asked for."""

    def __init__(self) -> None:
        self.lists: dict[str, list[dict[str, Any]]] = {}
        self.listed: list[str] = []
        self.watched: list[tuple[str, str]] = []
        self.watches: dict[str, Watch] = {}
        self.refuse: dict[str, RdmaError] = {}
        self.version = 100

    def pages(self, path: str, **query: Any) -> Iterator[dict[str, Any]]:
        if path in self.refuse:
            raise self.refuse[path]
        self.listed.append(path)
        items = list(self.lists.get(path, ()))
        yield {"metadata": {"resourceVersion": str(self.version), "continue": "x"}, "items": items[:1]}
        yield {"metadata": {"resourceVersion": str(self.version)}, "items": items[1:]}

    def items(self, path: str, **query: Any) -> Iterator[dict[str, Any]]:
        yield from self.lists.get(path, ())

    def watch(self, path: str, version: str, **query: Any) -> Watch:
        if path in self.refuse:
            raise self.refuse[path]
        self.watched.append((path, version))
        self.watches[path] = Watch()
        return self.watches[path]

    def tell(self, path: str, kind: str, content: dict[str, Any]) -> None:
        """An event."""
        self.watches[path].events.put((kind, content))


def node(name: str, version: str = "1", ready: bool = True, **more: Any) -> dict[str, Any]:
    """A node as the API has it."""
    status = {
        "conditions": [{"type": "Ready", "status": str(ready)}],
        "nodeInfo": {"bootID": "boot-1"},
    }
    metadata = {"name": name, "uid": "u-" + name, "resourceVersion": version, **more.pop("metadata", {})}
    return {"metadata": metadata, "spec": more.pop("spec", {}), "status": status}


def pod(name: str, where: str, uid: str = "", **more: Any) -> dict[str, Any]:
    """A pod that runs on a node."""
    metadata = {"namespace": "default", "name": name, "uid": uid or "u-" + name, **more.pop("metadata", {})}
    spec = {"nodeName": where, "containers": [{"name": "c"}], **more}
    conditions = [{"type": "Ready", "status": "True"}]
    return {"metadata": metadata, "spec": spec, "status": {"phase": "Running", "conditions": conditions}}


def driver(name: str, where: str, value: str, **metadata: Any) -> dict[str, Any]:
    """A pod of the driver."""
    owner = {"kind": "DaemonSet", "name": "rdma-k8s-provider", "controller": True}
    metadata = {"namespace": "kube-system", "ownerReferences": [owner], **metadata}
    return pod(name, where, metadata=metadata, containers=[{"name": "provider", "args": [OPTION + value]}])


def template(value: str) -> dict[str, Any]:
    """The DaemonSet of the driver."""
    containers = [{"name": "provider", "args": [OPTION + value]}]
    metadata = {"namespace": "kube-system", "name": "rdma-k8s-provider"}
    return {"metadata": metadata, "spec": {"template": {"spec": {"containers": containers}}}}


def claim(name: str, pool: str = "", reserved: str = "") -> dict[str, Any]:
    """A claim, perhaps allocated."""
    status: dict[str, Any] = {}
    if pool:
        status["allocation"] = {"devices": {"results": [{"driver": "dra.net", "pool": pool, "device": "d"}]}}
    if reserved:
        status["reservedFor"] = [{"resource": "pods", "name": "p", "uid": reserved}]
    return {"metadata": {"namespace": "default", "name": name}, "status": status}


def published(name: str, where: str, value: str, generation: int = 1) -> dict[str, Any]:
    """A slice of the driver."""
    attributes = {"oke.dra.net/rdmaChildIpv4Cidr": {"string": value}}
    spec = {
        "nodeName": where,
        "pool": {"name": where, "generation": generation},
        "devices": [{"name": "d", "attributes": attributes}, {"name": "e"}],
    }
    return {"metadata": {"name": name}, "spec": spec}


def until(look: Callable[[], Any]) -> None:
    """Wait for what another thread does."""
    end = time.monotonic() + 60
    while not look():
        assert time.monotonic() < end
        time.sleep(0.005)


@pytest.fixture
def server() -> Server:
    """One node with a driver pod and a slice."""
    made = Server()
    made.lists = {
        NODES: [node("n1"), node("n2")],
        PODS: [driver("d1", "n1", OLD)],
        SETS: [template(OLD)],
        SLICES: [published("s1", "n1", OLD)],
    }
    return made


@pytest.fixture
def start(server: Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., World]]:
    """A world that is ended after the test."""
    monkeypatch.setattr(following, "_FIRST_PAUSE", 0.01)
    worlds: list[World] = []

    def started(rules: str = "") -> World:
        target = DranetRange(server, ["kube-system/rdma-k8s-provider"], Scope("dra.net", ("rdma/*",)))
        worlds.append(World(server, target, rules=rules))
        worlds[-1].start()
        until(lambda: len(server.watches) >= 6 + bool(rules))
        return worlds[-1]

    yield started
    for world in worlds:
        world.stop()


def test_a_view(server: Server, start: Callable[..., World]) -> None:
    """Users, claims, the driver and the value come from five kinds of objects; other pods are not kept."""
    wants = {"name": "nic", "resourceClaimName": "c1"}
    resources = [{"name": "c", "resources": {"limits": {"rdma/hca": "1"}}}]
    server.lists[PODS] += [
        pod("train", "n1", resourceClaims=[wants]),
        pod("token", "n1", containers=resources),
        pod("web", "n1"),
    ]
    server.lists[CLAIMS] = [claim("c1", "n1", "u-train"), claim("c2", "n2"), claim("c3")]
    marks = {"rdma-k8s/roll-state": "Draining", "rdma-k8s/roll-owner": "me", "other": "x"}
    server.lists[NODES][0] = node("n1", metadata={"annotations": marks}, spec={"unschedulable": True})
    world = start()
    view = world.views()["n1"]
    assert [(user.name, user.reason) for user in view.users] == [("token", "resource"), ("train", "claim")]
    assert view.claims == ("default/c1",)
    assert [(found.name, found.ready, found.current) for found in view.drivers] == [("d1", True, True)]
    assert (view.value, view.ready, view.unschedulable, view.boot_id) == (OLD, True, True, "boot-1")
    assert (view.marks.state, view.marks.owner) == (State.DRAINING, "me")
    assert len(world._pods) == 2, "web uses no RDMA"
    assert world.views()["n2"].claims == ("default/c2",)
    assert world.with_driver() == {"n1"}
    assert world.views()["n1"] is view, "nothing changed, so it is the same object"


def test_events(server: Server, start: Callable[..., World]) -> None:
    """A pod that goes, a claim that is released, a driver that is replaced: each changes the view of its node."""
    wants = {"name": "nic", "resourceClaimName": "c1"}
    server.lists[PODS].append(pod("train", "n1", resourceClaims=[wants]))
    server.lists[CLAIMS] = [claim("c1", "n1", "u-train")]
    world = start()
    other = world.views()["n2"]
    server.tell(PODS, "DELETED", pod("train", "n1"))
    until(lambda: not world.views()["n1"].users)
    assert world.views()["n1"].claims == ("default/c1",)
    server.tell(CLAIMS, "MODIFIED", claim("c1"))
    until(lambda: not world.views()["n1"].claims)
    server.tell(SETS, "MODIFIED", template(NEW))
    until(lambda: not world.views()["n1"].drivers[0].current)
    assert world.stale() == ["n1"]
    server.tell(PODS, "MODIFIED", driver("d1", "n1", OLD, deletionTimestamp="now"))
    until(lambda: not world.views()["n1"].drivers[0].ready)
    server.tell(PODS, "DELETED", driver("d1", "n1", OLD))
    server.tell(PODS, "ADDED", driver("d2", "n1", NEW))
    until(lambda: [found.name for found in world.views()["n1"].drivers] == ["d2"])
    assert (world.views()["n1"].drivers[0].current, world.stale()) == (True, [])
    assert world.views()["n1"].value == OLD
    server.tell(SLICES, "ADDED", published("s2", "n1", NEW, generation=2))
    until(lambda: world.views()["n1"].value == NEW)
    assert world.views()["n2"] is other
    server.tell(NODES, "DELETED", node("n2"))
    until(lambda: "n2" not in world.views())


def test_two_values_are_none_of_them(server: Server, start: Callable[..., World]) -> None:
    """Of one generation; an older generation of the pool does not count."""
    server.lists[SLICES] += [published("s2", "n1", NEW), published("s0", "n1", "192.168.0.0/16", 0)]
    assert start().views()["n1"].value == "%s, %s" % (OLD, NEW)


def test_an_event_that_is_late(server: Server, start: Callable[..., World]) -> None:
    """Our own patch told something newer; the event of an older version changes nothing."""
    world = start()
    world.put_node(node("n1", "9", ready=False))
    server.tell(NODES, "MODIFIED", node("n1", "8"))
    server.tell(NODES, "MODIFIED", node("n2", "10", ready=False))
    until(lambda: not world.views()["n2"].ready)
    assert (world.views()["n1"].ready, world.views()["n1"].version) == (False, "9")
    server.tell(
        NODES,
        "MODIFIED",
        {**node("n1", "3"), "metadata": {"name": "n1", "uid": "new", "resourceVersion": "3"}},
    )
    until(lambda: world.views()["n1"].uid == "new")  # another node of the same name


def test_a_watch_that_expires(server: Server, start: Callable[..., World]) -> None:
    """The list is read again; what is not in it any more has gone."""
    world = start()
    server.lists[NODES] = [node("n1", "7")]
    server.version = 200
    server.watches[NODES].events.put(RdmaError("kube_expired", "too old"))
    until(lambda: "n2" not in world.views())
    assert server.listed.count(NODES) == 2
    until(lambda: server.watched[-1] == (NODES, "200"))
    assert world.blind() == ""


def test_a_watch_that_ends_goes_on_where_it_was(server: Server, start: Callable[..., World]) -> None:
    world = start()
    server.tell(NODES, "BOOKMARK", {"metadata": {"resourceVersion": "150"}})
    server.watches[NODES].events.put(END)
    until(lambda: (NODES, "150") in server.watched)
    assert (server.listed.count(NODES), world.blind()) == (1, "")


def test_blind(server: Server, start: Callable[..., World]) -> None:
    """As long as a watch does not work nobody knows what happens, and that is said."""
    world = start()
    server.refuse[PODS] = RdmaError("kube_unreachable", "away", retryable=True)
    server.watches[PODS].events.put(RdmaError("kube_unreachable", "broken"))
    until(lambda: world.blind() == "away")
    del server.refuse[PODS]
    until(lambda: world.blind() == "")
    assert server.listed.count(PODS) == 1


def test_what_may_not_be_read(server: Server) -> None:
    server.refuse[CLAIMS] = RdmaError("kube_forbidden", "GET claims is not allowed: no right.")
    target = DranetRange(server, ["kube-system/rdma-k8s-provider"], Scope("dra.net"))
    with pytest.raises(RdmaError) as found:
        World(server, target).start()
    assert found.value.code == "roll_blind"
    assert "resourceclaims could not be read: GET claims is not allowed" in found.value.message


def test_pods_are_read_again(server: Server, start: Callable[..., World]) -> None:
    """What a late watch has not told yet: a user that came, a pod that went."""
    wants = {"name": "nic", "resourceClaimName": "c1"}
    server.lists[CLAIMS] = [claim("c1", "n1", "u-new")]
    world = start()
    server.lists[PODS] = [pod("new", "n1", resourceClaims=[wants])]
    world.read_pods(server, "n1")
    view = world.views()["n1"]
    assert [user.name for user in view.users] == ["new"]
    assert view.drivers == ()


def test_rules(server: Server, start: Callable[..., World]) -> None:
    """Only rules of a roll with an effect fence a node."""

    def rule(name: str, effect: str) -> dict[str, Any]:
        return {"metadata": {"name": name}, "spec": {"taint": {"effect": effect}}}

    server.lists[RULES] = [
        rule("rdma-roll-n1", "NoSchedule"),
        rule("rdma-roll-n2", "None"),
        rule("x", "NoSchedule"),
    ]
    world = start(RULES)
    assert {name: view.fenced_by_rule for name, view in world.views().items()} == {"n1": True, "n2": False}
    server.tell(RULES, "DELETED", rule("rdma-roll-n1", "NoSchedule"))
    until(lambda: not world.views()["n1"].fenced_by_rule)


def test_waiting(start: Callable[..., World]) -> None:
    """News end it, also those that came before."""
    world = start()
    world.wait(0)
    thread = threading.Timer(0.05, world.wake)
    thread.start()
    began = time.monotonic()
    world.wait(100)
    assert time.monotonic() - began < 90
    thread.join()
    world.wake()
    began = time.monotonic()
    world.wait(100)
    assert time.monotonic() - began < 90
