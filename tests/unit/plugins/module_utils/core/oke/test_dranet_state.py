# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a cluster can have DRANET, and has it as it was wanted."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.core import cluster_snapshot as shapes
from ansible_collections.rdma.k8s.plugins.module_utils.core.oke import dranet_state
from ansible_collections.rdma.k8s.plugins.module_utils.core.oke.dranet_state import Expected
from ansible_collections.rdma.k8s.plugins.module_utils.core.snapshot import ReadError

NODES = ("n1", "n2")
RANGE = "10.208.0.0/12"


def node(name: str, **more: Any) -> shapes.ClusterNode:
    """A good node."""
    told = {"runtime": "containerd://2.1.4", "kubelet": "v1.34.2", "labels": {"gpu": "yes"}, **more}
    return shapes.ClusterNode(name=name, **told)


def daemonset(name: str, **more: Any) -> shapes.DaemonSet:
    """A good DaemonSet."""
    pods = tuple(shapes.DriverPod(name="%s-%s" % (name, at), node=at, ready=True) for at in NODES)
    numbers = {"generation": 2, "observed_generation": 2, "desired": 2, "ready": 2, "updated": 2}
    return shapes.DaemonSet(namespace="kube-system", name=name, **{**numbers, "pods": pods, **more})


def published(name: str, **attributes: Any) -> shapes.ResourceSlice:
    """The slice of a node with a NIC and another device."""
    told = {
        "dra.net/rdma": True,
        "dra.net/ifName": "rdma0",
        "oke.dra.net/rdmaChildIpv4Cidr": RANGE,
        "rdma.k8s/ready": True,
        **{key.replace("__", "/"): value for key, value in attributes.items()},
    }
    nic = shapes.SliceDevice(name="pci-0", attributes={k: v for k, v in told.items() if v is not None})
    other = shapes.SliceDevice(name="eth1", attributes={"dra.net/rdma": False, "rdma.k8s/ready": False})
    return shapes.ResourceSlice(
        name=name + "-s", driver="dra.net", node=name, pool=name, devices=(nic, other)
    )


GOOD = shapes.ClusterSnapshot(
    server=shapes.ApiServer(version="v1.34.1", served=("resource.k8s.io/v1/resourceslices",)),
    nodes=tuple(map(node, NODES)),
    daemonsets=(daemonset("dranet"), daemonset("rdma-k8s-provider")),
    slices=tuple(map(published, NODES)),
    claims=(),
)
WANTED = Expected(child_range=RANGE)


def codes(snapshot: shapes.ClusterSnapshot, stage: str, expected: Expected = WANTED) -> list[str]:
    """The codes of the problems."""
    return [problem.code for problem in dranet_state.judge(snapshot, stage, expected).problems]


@pytest.mark.parametrize("stage", ["before", "provider", "after", "unused"])
def test_a_good_cluster(stage: str) -> None:
    """Nothing to say of it."""
    found = dranet_state.judge(GOOD, stage, WANTED)
    assert (found.problems, found.warnings) == ((), ())
    assert found.nodes == (NODES if stage == "after" else ())


@pytest.mark.parametrize(
    ("server", "code"),
    [
        ({"version": "v1.33.9"}, "dranet_kubernetes_old"),
        ({"version": "v1.9.0"}, "dranet_kubernetes_old"),
        ({"version": ""}, ""),
        ({"version": "v1.40.0+k3s1"}, ""),
        ({"served": ("resource.k8s.io/v1beta1/resourceslices",)}, "dranet_api_missing"),
        ({"served": None}, ""),
    ],
)
def test_the_server(server: dict[str, Any], code: str) -> None:
    """F120: 1.34 and the API v1; what is not known is no problem."""
    found = replace(GOOD, server=replace(GOOD.server, **server))
    assert codes(found, "before") == ([code] if code else [])


@pytest.mark.parametrize(
    ("more", "nri", "code"),
    [
        ({"runtime": "containerd://1.7.27"}, False, "dranet_nri_unknown"),
        ({"runtime": "containerd://1.7.27"}, True, ""),
        ({"runtime": "containerd://10.0.0"}, False, ""),
        ({"runtime": "cri-o://1.34.0"}, False, "dranet_nri_unknown"),
        ({"runtime": ""}, False, "dranet_nri_unknown"),
        ({"kubelet": "v1.33.0"}, False, "dranet_kubelet_old"),
        ({"kubelet": ""}, False, ""),
    ],
)
def test_nodes(more: dict[str, Any], nri: bool, code: str) -> None:
    """F120: NRI is on by default from containerd 2.0; of others the user says it."""
    found = replace(GOOD, nodes=(node("n1"), node("n2", **more)))
    judged = dranet_state.judge(found, "before", Expected(nri=nri))
    assert [problem.code for problem in judged.problems] == ([code] if code else [])
    assert all("n2" in str(problem) and "n1" not in str(problem) for problem in judged.problems)
    assert codes(replace(found, nodes=(node("n1"), node("n2", labels={}, **more))), "before",
                 Expected(selector={"gpu": "yes"})) == []  # fmt: skip


@pytest.mark.parametrize("expected", [Expected(nodes=["n9"]), Expected(selector={"gpu": "no"})])
def test_nodes_that_are_not_there(expected: Expected) -> None:
    """A name or a label that no node has."""
    assert codes(GOOD, "before", expected) == ["dranet_nodes_missing"]


@pytest.mark.parametrize(
    ("name", "more", "code"),
    [
        ("dranet", {"pods": ()}, "dranet_pods_not_ready"),
        ("rdma-k8s-provider", {"pods": ()}, "dranet_pods_not_ready"),
        ("dranet", {"observed_generation": 1}, "dranet_pods_not_ready"),
        ("dranet", {"namespace": "other"}, "dranet_pods_missing"),
    ],
)
def test_pods(name: str, more: dict[str, Any], code: str) -> None:
    """One ready pod on every node, and the controller has seen the last change."""
    changed = tuple(replace(each, **more) if each.name == name else each for each in GOOD.daemonsets or ())
    found = replace(GOOD, daemonsets=changed)
    assert codes(found, "after") == [code]
    assert codes(found, "provider") == ([code] if name != "dranet" else [])
    assert codes(found, "after", replace(WANTED, provider=False))[:1] == ([code] if name == "dranet" else [])


def test_a_pod_that_goes() -> None:
    """A pod that is being deleted is not one that is ready."""
    first, second = daemonset("dranet").pods or ()
    gone = replace(daemonset("dranet"), pods=(first, replace(second, deleted="2026-11-30T00:00:00Z")))
    found = dranet_state.judge(
        replace(GOOD, daemonsets=(gone, daemonset("rdma-k8s-provider"))), "after", WANTED
    )
    assert [problem.details["nodes"] for problem in found.problems] == [["n2"]]
    assert found.problems[0].retryable


def test_former_settings() -> None:
    """With OnDelete pods keep them until they are deleted: no problem, but said."""
    found = replace(GOOD, daemonsets=(daemonset("dranet", updated=1), daemonset("rdma-k8s-provider")))
    judged = dranet_state.judge(found, "after", WANTED)
    assert judged.problems == ()
    assert judged.warnings[0].startswith("1 of 2 pods of kube-system/dranet still have the former settings.")


@pytest.mark.parametrize(
    ("attributes", "code"),
    [
        ({"dra.net__rdma": False}, ""),
        ({"oke.dra.net__rdmaChildIpv4Cidr": None}, "dranet_range_differs"),
        ({"oke.dra.net__rdmaChildIpv4Cidr": "10.192.0.0/14"}, "dranet_range_differs"),
        ({"oke.dra.net__rdmaChildIpv4Cidr": None, "oke.dra.net__rdmaFabricIpv6": True}, ""),
        ({"rdma.k8s__ready": False}, "dranet_nics_not_ready"),
        ({"rdma.k8s__ready": None}, "dranet_nics_not_ready"),
    ],
)
def test_attributes(attributes: dict[str, Any], code: str) -> None:
    """F70: the range of an IPv4 fabric; F44: readiness; a node without RDMA NICs counts only when it is named."""
    found = replace(GOOD, slices=(published("n1"), published("n2", **attributes)))
    assert codes(found, "after") == ([code] if code else [])
    assert codes(found, "after", Expected(provider=False)) == []
    named = codes(found, "after", replace(WANTED, nodes=NODES))
    assert named == (["dranet_slices_missing"] if "dra.net__rdma" in attributes else [code] if code else [])


def test_no_nic_anywhere() -> None:
    """At least one node must publish some; slices of other drivers do not count."""
    other = tuple(replace(entry, driver="gpu.test") for entry in GOOD.slices or ())
    for slices in ((), other):
        assert codes(replace(GOOD, slices=slices), "after") == ["dranet_slices_missing"]


def test_removal() -> None:
    """Not under a claim (DRA-016), and nothing may be left."""
    device = shapes.AllocatedDevice(driver="dra.net", pool="n1", device="pci-0")
    used = shapes.Claim(namespace="a", name="c", devices=(device,))
    gpu = shapes.Claim(namespace="a", name="g", devices=(replace(device, driver="gpu.test"),))
    assert codes(replace(GOOD, claims=(used, gpu)), "unused") == ["dranet_in_use"]
    assert codes(replace(GOOD, claims=(gpu,)), "unused") == []
    (left,) = dranet_state.judge(GOOD, "absent", WANTED).problems
    assert left.details["left"] == [
        "DaemonSet kube-system/dranet",
        "DaemonSet kube-system/rdma-k8s-provider",
        "ResourceSlice n1-s",
        "ResourceSlice n2-s",
    ]
    assert codes(replace(GOOD, daemonsets=(), slices=()), "absent") == []
    assert codes(replace(GOOD, daemonsets=()), "absent", Expected(nodes=["n9"])) == []
    (left,) = dranet_state.judge(GOOD, "stopped", WANTED).problems
    assert left.details["left"] == ["DaemonSet kube-system/dranet", "DaemonSet kube-system/rdma-k8s-provider"]
    assert codes(replace(GOOD, daemonsets=()), "stopped") == []


def pod(name: str, owner: str, kind: str = "DaemonSet", **metadata: Any) -> dict[str, Any]:
    """A pod as the API gives it."""
    return {
        "metadata": {
            "name": name,
            "namespace": "kube-system",
            "ownerReferences": [{"kind": kind, "name": owner}],
            **metadata,
        },
        "spec": {"nodeName": "n1", "terminationGracePeriodSeconds": 10},
    }


def test_pods_that_outlive_their_daemonset() -> None:
    """They are left until they are gone, and the time that is waited for them goes by their own grace."""
    pods = dranet_state.leftovers(
        [
            pod(
                "dranet-a",
                "dranet",
                deletionTimestamp="2026-01-01T00:00:00Z",
                deletionGracePeriodSeconds=45,
            ),
            pod("rdma-k8s-provider-b", "rdma-k8s-provider"),
            pod("dranet-c", "dranet", kind="ReplicaSet"),
            pod("agent-d", "rdma-k8s-agent"),
            {"metadata": {"name": "dranet-e"}},
            "no pod",
        ]
    )
    assert pods == [
        dranet_state.Leftover("kube-system/dranet-a", "n1", 45.0, True),
        dranet_state.Leftover("kube-system/rdma-k8s-provider-b", "n1", 10.0, False),
    ]
    gone = replace(GOOD, daemonsets=(), slices=())
    for stage in ("stopped", "absent"):
        found = dranet_state.judge(gone, stage, WANTED, pods)
        (left,) = found.problems
        assert left.code == "dranet_left"
        assert left.retryable
        assert left.details["left"] == [
            "Pod kube-system/dranet-a on n1 (ending)",
            "Pod kube-system/rdma-k8s-provider-b on n1",
        ]
        assert "kubelet does not answer" in left.hint
        assert ("removes the slices" in left.hint) == (stage == "absent")
        assert found.patience == 45 + dranet_state.LINGER
        assert dranet_state.judge(gone, stage, WANTED) == dranet_state.Judgement(
            (), (), (), dranet_state.LINGER
        )
    nowhere = pod("dranet-f", "dranet")
    nowhere["spec"] = {}
    assert dranet_state.leftovers([nowhere]) == [
        dranet_state.Leftover("kube-system/dranet-f", "", 30.0, False)
    ]
    (left,) = dranet_state.judge(gone, "stopped", WANTED, dranet_state.leftovers([nowhere])).problems
    assert left.details["left"] == ["Pod kube-system/dranet-f on no node"]
    (left,) = dranet_state.judge(GOOD, "stopped", WANTED).problems
    assert left.hint == "Look at who keeps them, or makes them again."


def test_what_cannot_be_read() -> None:
    """What decides must be read; what does not is left aside."""
    errors = (ReadError("daemonsets.apps", "not allowed"), ReadError("secrets", "not allowed"))
    assert codes(replace(GOOD, errors=errors), "unused") == ["dranet_unread"]


def test_many_nodes() -> None:
    """A message names the first ones and counts the others."""
    names = ["n%02d" % number for number in range(9)]
    found = replace(GOOD, nodes=tuple(node(name, runtime="docker://1") for name in names))
    (problem,) = dranet_state.judge(found, "before", WANTED).problems
    assert "n00, n01, n02, n03, n04 and 4 more" in problem.message
    assert problem.details["nodes"] == names
