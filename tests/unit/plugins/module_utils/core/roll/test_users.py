# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who uses RDMA on a node, why, and what may be done about it."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from typing import Any, Optional

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.core.roll import users
from ansible_collections.rdma.k8s.plugins.module_utils.core.roll.model import Consent, User
from ansible_collections.rdma.k8s.plugins.module_utils.core.roll.users import Known, Scope

DRIVER = "nic.example"
SCOPE = Scope(
    DRIVER,
    resources=("rdma/*", "vf.example/*"),
    networks=("a/rail-*", "net/fabric"),
    asking=("inject.example/rdma",),
    drivers=frozenset(("kube-system/driver",)),
)
JOB = {"kind": "Job", "name": "train", "controller": True}
DAEMON_SET = {"kind": "DaemonSet", "name": "exporter", "controller": True}


def pod(called: str = "p", owner: Optional[dict[str, Any]] = None, **parts: Any) -> dict[str, Any]:
    """A running pod on the node n1."""
    owners = [JOB] if owner is None else [owner] if owner else []
    return {
        "metadata": {
            "namespace": "a",
            "name": called,
            "uid": "uid-" + called,
            "ownerReferences": owners,
            **parts.get("metadata", {}),
        },
        "spec": {"nodeName": "n1", "restartPolicy": "Never", **parts.get("spec", {})},
        "status": {
            "phase": "Running",
            "conditions": [{"type": "Ready", "status": "True"}],
            **parts.get("status", {}),
        },
    }


def claim(called: str, *results: tuple[str, str], reserved: tuple[str, ...] = ()) -> dict[str, Any]:
    """A claim that is allocated devices of these drivers and pools."""
    devices = [
        {"request": "r", "driver": driver, "pool": pool, "device": "d%d" % number}
        for number, (driver, pool) in enumerate(results)
    ]
    status: dict[str, Any] = {"allocation": {"devices": {"results": devices}}} if devices else {}
    if reserved:
        status["reservedFor"] = [{"resource": "pods", "name": "x", "uid": uid} for uid in reserved]
    return {"metadata": {"namespace": "a", "name": called}, "status": status}


def asks(amount: Any, called: str = "rdma/hca", part: str = "limits") -> dict[str, Any]:
    """A container that asks for a resource."""
    return {"name": "c", "resources": {part: {called: amount, "cpu": "1"}}}


def mounts(path: str, **spec: Any) -> dict[str, Any]:
    """A pod with a directory of the host."""
    return {"volumes": [{"name": "v", "hostPath": {"path": path}}], "containers": [{"name": "c"}], **spec}


PRIVILEGED = {"name": "c", "securityContext": {"privileged": True}}
NETWORKS = "k8s.v1.cni.cncf.io/networks"
JSON_NETWORKS = json.dumps([{"name": "plain"}, {"name": "fabric", "namespace": "net"}])

CLAIMS = [
    claim("nics", (DRIVER, "n1"), (DRIVER, "n1")),
    claim("gpus", ("gpu.example", "n1")),
    claim("both", ("gpu.example", "n1"), (DRIVER, "n1")),
    claim("waiting"),
    claim("p-made", (DRIVER, "n1")),
    claim("p-extended", (DRIVER, "n1")),
]

CASES: list[tuple[str, dict[str, Any], list[tuple[str, str]]]] = [
    ("nothing of RDMA", pod(spec={"containers": [asks("1", "nvidia.com/gpu")]}), []),
    (
        "a claim by its name",
        pod(spec={"resourceClaims": [{"name": "r", "resourceClaimName": "nics"}]}),
        [("claim", "a/nics")],
    ),
    ("a claim of GPUs only", pod(spec={"resourceClaims": [{"name": "r", "resourceClaimName": "gpus"}]}), []),
    (
        "GPUs and NICs in one",
        pod(spec={"resourceClaims": [{"name": "r", "resourceClaimName": "both"}]}),
        [("claim", "a/both")],
    ),
    (
        "a claim without devices",
        pod(spec={"resourceClaims": [{"name": "r", "resourceClaimName": "waiting"}]}),
        [],
    ),
    (
        "a claim that is not there",
        pod(spec={"resourceClaims": [{"name": "r", "resourceClaimName": "lost"}]}),
        [],
    ),
    (
        "a claim made from a template",
        pod(
            spec={"resourceClaims": [{"name": "r", "resourceClaimTemplateName": "t"}]},
            status={"resourceClaimStatuses": [{"name": "r", "resourceClaimName": "p-made"}]},
        ),
        [("claim", "a/p-made")],
    ),
    ("a claim that is not needed", pod(status={"resourceClaimStatuses": [{"name": "r"}]}), []),
    (
        "a claim behind an extended resource",
        pod(
            status={"extendedResourceClaimStatus": {"resourceClaimName": "p-extended", "requestMappings": []}}
        ),
        [("claim", "a/p-extended")],
    ),
    ("a resource in a limit", pod(spec={"containers": [asks("1")]}), [("resource", "rdma/hca")]),
    (
        "a resource in a request",
        pod(spec={"containers": [asks(1, "vf.example/gpu1", "requests")]}),
        [("resource", "vf.example/gpu1")],
    ),
    ("none of a resource", pod(spec={"containers": [asks("0")]}), []),
    ("an amount that is none", pod(spec={"containers": [asks("many")]}), [("resource", "rdma/hca")]),
    (
        "DEV-17: only an init container",
        pod(spec={"containers": [{"name": "c"}], "initContainers": [asks("1")]}),
        [("resource", "rdma/hca")],
    ),
    (
        "a sidecar",
        pod(
            spec={"containers": [{"name": "c"}], "initContainers": [{**asks("1"), "restartPolicy": "Always"}]}
        ),
        [("resource", "rdma/hca")],
    ),
    (
        "a network by its short name",
        pod(metadata={"annotations": {NETWORKS: "plain, rail-3@net1"}}),
        [("network", "a/rail-3")],
    ),
    (
        "a network of another namespace",
        pod(metadata={"annotations": {NETWORKS: "net/fabric"}}),
        [("network", "net/fabric")],
    ),
    (
        "networks as JSON",
        pod(metadata={"annotations": {NETWORKS: JSON_NETWORKS}}),
        [("network", "net/fabric")],
    ),
    ("networks that nobody can read", pod(metadata={"annotations": {NETWORKS: "[{"}}), []),
    (
        "the default network",
        pod(metadata={"annotations": {"v1.multus-cni.io/default-network": "net/fabric"}}),
        [("network", "net/fabric")],
    ),
    (
        "an annotation that asks",
        pod(metadata={"annotations": {"inject.example/rdma": "x"}}),
        [("network", "inject.example/rdma")],
    ),
    ("another network", pod(metadata={"annotations": {NETWORKS: "a/macvlan"}}), []),
    (
        "the host's devices on its network",
        pod(spec=mounts("/dev/infiniband", hostNetwork=True)),
        [("host", "/dev/infiniband")],
    ),
    (
        "one of the host's devices, privileged",
        pod(spec=mounts("/dev/infiniband/uverbs0", containers=[PRIVILEGED])),
        [("host", "/dev/infiniband/uverbs0")],
    ),
    (
        "all of the host's devices, privileged init",
        pod(spec=mounts("/dev/", initContainers=[PRIVILEGED])),
        [("host", "/dev/")],
    ),
    ("the devices, but with no right to open them", pod(spec=mounts("/dev/infiniband")), []),
    (
        "on the host's network, with something else",
        pod(spec=mounts("/dev/infiniband-logs", hostNetwork=True)),
        [],
    ),
    ("the whole host", pod(spec=mounts("/", hostNetwork=True)), []),
    (
        "several at once",
        pod(
            spec={
                **mounts("/dev/infiniband", hostNetwork=True),
                "containers": [asks("1")],
                "resourceClaims": [{"name": "r", "resourceClaimName": "nics"}],
            },
            metadata={"annotations": {NETWORKS: "rail-1"}},
        ),
        [("claim", "a/nics"), ("resource", "rdma/hca"), ("network", "a/rail-1"), ("host", "/dev/infiniband")],
    ),
    (
        "what nobody would write",
        {"metadata": {"namespace": "a"}, "spec": {"containers": "x", "volumes": [1]}, "status": []},
        [],
    ),
]


@pytest.mark.parametrize(
    ("of_pod", "expected"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_reasons(of_pod: dict[str, Any], expected: list[tuple[str, str]]) -> None:
    """Each way in which a pod uses RDMA; the order is that of their strength."""
    known = Known(CLAIMS)
    assert users.reasons(of_pod, known, SCOPE) == expected
    found = users.users([of_pod], known, SCOPE)
    assert [user.reason for user in found] == [reason for reason, _uses in expected[:1]]
    assert [user.uses for user in found] == [", ".join(uses for _reason, uses in expected)] * len(found)


@pytest.mark.parametrize("of_pod", [case[1] for case in CASES], ids=[case[0] for case in CASES])
def test_a_slim_pod_tells_the_same(of_pod: dict[str, Any]) -> None:
    """A cache keeps a part of each object; nothing that matters is lost with the rest."""
    whole = copy.deepcopy(of_pod)
    whole["metadata"].update(managedFields=[{"manager": "x"}], labels={"app": "train"})
    slim = users.slim_pod(whole, SCOPE)
    claims = [users.slim_claim({**content, "spec": {"devices": {}}}) for content in CLAIMS]
    budget = {
        "metadata": {"namespace": "a", "name": "b", "generation": 1},
        "spec": {"selector": {"matchLabels": {"app": "train"}}},
        "status": {"observedGeneration": 1, "disruptionsAllowed": 0, "desiredHealthy": 1, "expectedPods": 1},
    }
    assert users.users([slim], Known(claims, [budget]), SCOPE) == users.users(
        [whole], Known(CLAIMS, [budget]), SCOPE
    )
    assert "managedFields" not in json.dumps(slim)


def test_a_user() -> None:
    """Everything that is told of one."""
    made = pod(spec={"containers": [asks("1")], "terminationGracePeriodSeconds": 0})
    made["metadata"]["deletionTimestamp"] = "2026-03-02T09:00:00Z"
    assert users.users([made], Known(), SCOPE) == [
        User("a", "p", "uid-p", "resource", "rdma/hca", "Job a/train", "Job", 0, True, ends=True)
    ]


@pytest.mark.parametrize(
    ("policy", "ends"), [("Always", False), ("OnFailure", True), ("Never", True), (None, False)]
)
def test_whether_it_ends_by_itself(policy: Optional[str], ends: bool) -> None:
    (found,) = users.users([pod(spec={"containers": [asks("1")], "restartPolicy": policy})], Known(), SCOPE)
    assert (found.ends, found.grace) == (ends, 30)


@pytest.mark.parametrize(
    "of_pod",
    [
        pod(status={"phase": "Succeeded"}),
        pod(status={"phase": "Failed"}),
        pod(metadata={"annotations": {"kubernetes.io/config.mirror": "x"}}),
        pod(
            owner={"kind": "DaemonSet", "name": "driver", "controller": True},
            metadata={"namespace": "kube-system"},
        ),
    ],
)
def test_pods_that_are_no_users(of_pod: dict[str, Any]) -> None:
    """A pod that is over, a static one, and the driver itself."""
    of_pod["spec"]["containers"] = [asks("1")]
    assert users.users([of_pod], Known(), SCOPE) == []
    of_pod["status"]["phase"] = "Running"
    of_pod["metadata"].update(annotations={}, namespace="a")
    assert len(users.users([of_pod], Known(), SCOPE)) == 1


def test_only_a_controller_brings_a_pod_back() -> None:
    """An owner that is none takes the pod away with itself, and makes no new one."""
    (found,) = users.users(
        [pod(owner={"kind": "Node", "name": "n1"}, spec={"containers": [asks("1")]})], Known(), SCOPE
    )
    assert (found.owner, found.owner_kind) == ("", "")


def test_users_are_in_order() -> None:
    pods = [pod(called, spec={"containers": [asks("1")]}) for called in ("c", "a", "b")]
    assert [user.name for user in users.users(pods, Known(), SCOPE)] == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("of_claim", "expected"),
    [
        (claim("x", (DRIVER, "n1")), True),
        (claim("x", ("gpu.example", "n1"), (DRIVER, "n1")), True),
        (claim("x", ("gpu.example", "n1")), False),
        (claim("x", (DRIVER, "n2")), False),
        (claim("x", (DRIVER, "n2"), reserved=("uid-p",)), True),
        (claim("x", (DRIVER, "n2"), reserved=("uid-q",)), False),
        (claim("x", reserved=("uid-p",)), False),
        (claim("x"), False),
    ],
)
def test_claims_on_a_node(of_claim: dict[str, Any], expected: bool) -> None:
    """F99: the pool of a node has its name. DEV-09: a claim of a pod that is still pending there counts."""
    for given in (of_claim, users.slim_claim(of_claim)):
        assert users.claims_on("n1", [given], SCOPE, {"uid-p"}) == (["a/x"] if expected else [])


def test_networks_with_a_resource_of_rdma() -> None:
    definitions = [
        {"metadata": {"namespace": "a", "name": called, "annotations": {users.NETWORK_RESOURCE: resource}}}
        for called, resource in (("z", "rdma/hca"), ("y", "vf.example/x"), ("x", "gpu.example/x"), ("w", ""))
    ]
    assert users.networks_of(definitions, SCOPE) == ["a/y", "a/z"]


USER = User("a", "p", "u", "claim", "a/nics", "Job a/train", "Job")
HOST = replace(USER, reason="host")
BARE = replace(USER, owner="", owner_kind="")
DAEMON = replace(USER, owner="DaemonSet a/x", owner_kind="DaemonSet")
ALL = Consent(ownerless=True, host_network=True)


@pytest.mark.parametrize(
    ("user", "consent", "becomes"),
    [
        (USER, Consent(), "evict"),
        (replace(USER, leaving=True), Consent(), "leaving"),
        (BARE, Consent(), "blocking"),
        (BARE, ALL, "evict"),
        (replace(BARE, leaving=True), Consent(), "leaving"),
        (DAEMON, ALL, "blocking"),
        (replace(DAEMON, reason="resource"), ALL, "blocking"),
        (replace(DAEMON, reason="host"), ALL, "stays"),
        (HOST, Consent(), "stays"),
        (replace(HOST, leaving=True), Consent(), "stays"),
        (HOST, ALL, "evict"),
        (replace(USER, budgets=1), Consent(), "evict"),
        (replace(USER, budgets=2), Consent(), "blocking"),
        (replace(USER, budgets=1, blocked_by="a/b: never"), Consent(), "blocking"),
        (replace(USER, budgets=1, blocked_by="a/b: never", leaving=True), Consent(), "leaving"),
    ],
)
def test_what_becomes_of_a_user(user: User, consent: Consent, becomes: str) -> None:
    """DEV-17: a pod of a DaemonSet is never left out without a word; without consent no bare pod is lost."""
    choice = users.choose([user], consent)
    found = {
        "evict": choice.evict,
        "leaving": choice.leaving,
        "stays": choice.stays,
        "blocking": tuple(held for held, _reason in choice.blocking),
    }
    assert found == {**dict.fromkeys(found, ()), becomes: (user,)}
    assert choice.waits_for == (() if becomes == "stays" else (user,))
    assert all(reason for _held, reason in choice.blocking)
