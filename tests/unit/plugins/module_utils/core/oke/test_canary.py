# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The canary: which NIC, which objects, and what it proves."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.core import cluster_snapshot as shapes
from ansible_collections.rdma.k8s.plugins.module_utils.core.net import parse_prefix
from ansible_collections.rdma.k8s.plugins.module_utils.core.oke import canary
from ansible_collections.rdma.k8s.plugins.module_utils.core.oke.canary import Seen, Target, Trial
from ansible_collections.rdma.k8s.tests.support.outcome import error_of

TARGET = Target("n1", "rdma0", "02:00:00:00:00:01")
CHILD = Trial(TARGET, "kube-system", "rdma-nic", "r.test/rdma-k8s:1")
REFUSED = replace(CHILD, expect=canary.REFUSED)
RANGE = parse_prefix("10.208.0.0/12")
PARENT = {"name": "rdma0", "kind": "", "mac": TARGET.mac, "address": "10.224.13.19"}
INSIDE = {"name": "rdma0", "kind": "ipvlan", "mac": TARGET.mac, "address": "10.208.13.19"}
GOOD = Seen(True, INSIDE, PARENT)


def device(name: str, **more: Any) -> shapes.SliceDevice:
    """A NIC that can be claimed."""
    told = {"dra.net/rdma": True, "dra.net/ifName": name, "dra.net/mac": "m-" + name, "rdma.k8s/ready": True}
    return shapes.SliceDevice(name="pci-" + name, attributes={**told, **more})


def snapshot(*devices: shapes.SliceDevice, node: str = "n1", ready: str = "True") -> shapes.ClusterSnapshot:
    """A node with devices."""
    return shapes.ClusterSnapshot(
        nodes=(shapes.ClusterNode(name=node, conditions={"Ready": ready}),),
        slices=(shapes.ResourceSlice(name="s", driver="dra.net", node=node, pool=node, devices=devices),),
        claims=(),
    )


def test_which_nic() -> None:
    """The first that is free, ready and an RDMA NIC with an interface, on a node that is ready."""
    taken = shapes.AllocatedDevice(driver="dra.net", pool="n1", device="pci-rdma0")
    found = replace(
        snapshot(
            device("eth1", **{"dra.net/rdma": False}),
            device("rdma0"),
            device("rdma1", **{"rdma.k8s/ready": False}),
            device("", **{"dra.net/ifName": ""}),
            device("rdma2"),
        ),
        claims=(shapes.Claim(namespace="a", name="c", devices=(taken,)),),
    )
    assert canary.choose(found) == Target("n1", "rdma2", "m-rdma2")
    assert canary.choose(found, ready=False) == Target("n1", "rdma1", "m-rdma1")
    assert canary.choose(found, ["n2", "n1"], "rdma2").nic == "rdma2"
    for options in ({"nodes": ["n2"]}, {"nic": "rdma0"}, {"nic": "rdma1"}):
        assert error_of(lambda options=options: canary.choose(found, **options)).code == "canary_no_nic"
    assert error_of(lambda: canary.choose(snapshot(device("rdma0"), ready="False"))).code == "canary_no_nic"
    foreign = replace(found, slices=tuple(replace(entry, driver="gpu.test") for entry in found.slices or ()))
    assert error_of(lambda: canary.choose(foreign)).code == "canary_no_nic"


def test_what_does_not_fit_hides_nothing_behind_it() -> None:
    """Slices of other drivers, and of nodes that are not ready or not meant, come before the one that fits."""
    good = snapshot(device("rdma0"), node="n9")
    others = [
        shapes.ResourceSlice(name, driver, node, node, devices=(device("rdma0"),))
        for name, driver, node in (
            ("a", "gpu.test", "n1"),
            ("b", "dra.net", "n2"),
            ("c", "dra.net", "n3"),
        )
    ]
    nodes = (
        *[shapes.ClusterNode(name, conditions={"Ready": "True"}) for name in ("n1", "n3")],
        shapes.ClusterNode("n2", conditions={"Ready": "False"}),
    )
    found = replace(good, slices=(*others, *(good.slices or ())), nodes=(*nodes, *(good.nodes or ())))
    assert canary.choose(found, ["n1", "n2", "n9"]).node == "n9"
    assert canary.choose(found).node == "n3"


def test_the_claim() -> None:
    """As users claim; a DRANET without children is asked for one by name, which it refuses (F106)."""
    made = canary.claim(CHILD)["spec"]["devices"]
    assert "config" not in made
    (request,) = made["requests"]
    assert request["exactly"]["deviceClassName"] == "rdma-nic"
    assert 'ifName == "rdma0"' in request["exactly"]["selectors"][0]["cel"]["expression"]
    (config,) = canary.claim(REFUSED)["spec"]["devices"]["config"]
    assert config["opaque"] == {"driver": "dra.net", "parameters": {"interface": {"type": "IPVLAN"}}}


def test_the_pods() -> None:
    """The init container of the canary looks while the pod holds the claim; the witness is on the host."""
    pod, witness = canary.pod(CHILD)["spec"], canary.witness(CHILD)["spec"]
    assert pod["resourceClaims"] == [{"name": "nic", "resourceClaimName": "rdma-k8s-canary"}]
    assert "hostNetwork" not in pod
    assert witness["hostNetwork"] is True
    assert "resourceClaims" not in witness
    for spec in (pod, witness):
        (term,) = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][
            "nodeSelectorTerms"
        ]
        assert term["matchFields"][0]["values"] == ["n1"]
        for container in [*spec.get("initContainers", []), *spec["containers"]]:
            assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
            compile(container["command"][2], "program", "exec")
    assert pod["initContainers"][0]["command"][3] == "rdma0"
    names = [(entry["kind"], entry["metadata"]["name"]) for entry in canary.removable("kube-system")]
    assert names[-1] == ("ResourceClaim", "rdma-k8s-canary")


def test_the_pods_have_no_power() -> None:
    """A proof needs nothing of the node, of the API or of root."""
    for made in (canary.pod(CHILD), canary.witness(CHILD)):
        assert made["metadata"]["namespace"] == "kube-system"
        labels = made["metadata"]["labels"]
        assert labels["app.kubernetes.io/name"] == made["metadata"]["name"]
        assert labels["app.kubernetes.io/part-of"] == "rdma-k8s-oke-dranet"
        spec = made["spec"]
        assert (spec["automountServiceAccountToken"], spec["restartPolicy"]) == (False, "Never")
        assert (spec["terminationGracePeriodSeconds"], spec["tolerations"]) == (1, [{"operator": "Exists"}])
        for container in [*spec.get("initContainers", []), *spec["containers"]]:
            assert container["securityContext"] == {
                "runAsUser": 0,
                "allowPrivilegeEscalation": False,
                "capabilities": {"drop": ["ALL"]},
                "readOnlyRootFilesystem": True,
                "seccompProfile": {"type": "RuntimeDefault"},
            }
    assert canary.claim(CHILD)["metadata"]["name"] == "rdma-k8s-canary"


@pytest.mark.parametrize(
    ("nodes", "nic", "said"),
    [
        ([], "", "There is no free RDMA NIC that could be claimed for a proof."),
        ([], "rdma9", "There is no free RDMA NIC rdma9 that could be claimed for a proof."),
        (["n8", "n9"], "", "There is no free RDMA NIC on n8, n9 that could be claimed for a proof."),
        (["n9"], "rdma0", "There is no free RDMA NIC rdma0 on n9 that could be claimed for a proof."),
    ],
)
def test_no_nic_is_told(nodes: list[str], nic: str, said: str) -> None:
    """What was looked for; a NIC can become free."""
    found = snapshot(device("rdma0", **{"rdma.k8s/ready": False}))
    error = error_of(canary.choose, found, nodes, nic)
    assert (error.message, error.retryable) == (said, True)


@pytest.mark.parametrize(
    ("trial", "seen", "child_range", "said"),
    [
        (
            CHILD,
            replace(GOOD, parent={}),
            RANGE,
            "rdma0 of n1 is not on its host while a pod has claimed it; found nothing of this name.",
        ),
        (
            CHILD,
            replace(GOOD, parent={"name": "rdma0", "kind": "dummy", "mac": "m"}),
            RANGE,
            "rdma0 of n1 is not on its host while a pod has claimed it; found dummy m.",
        ),
        (
            CHILD,
            replace(GOOD, child={}),
            RANGE,
            "The pod has nothing as rdma0, expected an IPvlan child with an address of 10.208.0.0/12.",
        ),
        (
            CHILD,
            replace(GOOD, child=PARENT),
            None,
            "The pod has a device 02:00:00:00:00:01 10.224.13.19 as rdma0, expected an IPvlan child.",
        ),
        (
            CHILD,
            replace(GOOD, child={"kind": "ipvlan"}),
            RANGE,
            "The pod has ipvlan as rdma0, expected an IPvlan child with an address of 10.208.0.0/12.",
        ),
        (
            CHILD,
            Seen(parent=PARENT),
            RANGE,
            "The claim for rdma0 of n1 was not served in time: the pod does not run, and no event says why.",
        ),
        (
            CHILD,
            Seen(parent=PARENT, refusal="unknown field."),
            RANGE,
            "The claim for rdma0 of n1 was not served in time: unknown field.",
        ),
        (
            REFUSED,
            Seen(parent=PARENT),
            RANGE,
            "The claim for rdma0 of n1 was neither served nor refused in time.",
        ),
    ],
)
def test_what_is_said(trial: Trial, seen: Seen, child_range: Any, said: str) -> None:
    """What was found instead."""
    (problem,) = canary.judge(trial, seen, child_range)
    assert problem.message == said


@pytest.mark.parametrize(
    ("trial", "seen", "codes"),
    [
        (CHILD, GOOD, []),
        (CHILD, replace(GOOD, refusal="an earlier attempt failed"), []),
        (CHILD, replace(GOOD, parent={}), ["canary_parent_left"]),
        (CHILD, replace(GOOD, parent={**PARENT, "mac": "02:00:00:00:00:09"}), ["canary_parent_left"]),
        (CHILD, replace(GOOD, parent=None), ["canary_no_witness"]),
        (CHILD, replace(GOOD, child={}), ["canary_no_child"]),
        (CHILD, replace(GOOD, child={**INSIDE, "kind": ""}), ["canary_no_child"]),
        (CHILD, replace(GOOD, child={**INSIDE, "address": "10.224.13.19"}), ["canary_no_child"]),
        (CHILD, replace(GOOD, child={**INSIDE, "address": ""}), ["canary_no_child"]),
        (CHILD, Seen(False, None, PARENT, "refused."), ["canary_not_served"]),
        (CHILD, Seen(True, None, PARENT), ["canary_not_served"]),
        (CHILD, Seen(False, INSIDE, PARENT), ["canary_not_served"]),
        (CHILD, Seen(True, {**INSIDE, "kind": ""}, {}), ["canary_parent_left", "canary_no_child"]),
        (REFUSED, Seen(False, None, PARENT, "unknown field"), []),
        (REFUSED, Seen(False, None, PARENT), ["canary_silent"]),
        (REFUSED, Seen(True, INSIDE, PARENT), ["canary_not_refused"]),
        (REFUSED, Seen(False, None, {}, "unknown field"), ["canary_parent_left"]),
        (REFUSED, Seen(True, {}, {}), ["canary_parent_left", "canary_not_refused"]),
    ],
)
def test_what_it_proves(trial: Trial, seen: Seen, codes: list[str]) -> None:
    """The parent stays (decision 19), and the pod has a child, or the claim is refused."""
    assert [problem.code for problem in canary.judge(trial, seen, RANGE)] == codes


def test_any_address() -> None:
    """Without a range the kind decides."""
    assert canary.judge(CHILD, replace(GOOD, child={**INSIDE, "address": ""}), None) == []


@pytest.mark.parametrize(
    ("statuses", "found"),
    [
        (None, None),
        ([], None),
        ([{"state": {"running": {}}}], None),
        ([{"state": {"terminated": {"message": json.dumps(PARENT)}}}], PARENT),
        ([{"state": {"terminated": {"message": "{}"}}}], {}),
        ([{"state": {"terminated": {"message": "Traceback"}}}], None),
        ([{"state": {"terminated": {"message": "[]"}}}], None),
    ],
)
def test_termination_messages(statuses: Any, found: Any) -> None:
    """What is no message of ours tells nothing."""
    assert canary.told({"status": {"containerStatuses": statuses}}) == found
    assert canary.told({"status": {"initContainerStatuses": statuses}}, init=True) == found
    assert canary.told(None) is None


def test_events() -> None:
    """The reason with which kubelets tell that a driver refused."""
    other = {"reason": "Scheduled", "message": "a"}
    assert canary.refusal([other]) == ""
    assert canary.refusal([other, {"reason": "FailedPrepareDynamicResources", "message": "b"}]) == "b"


def test_several_at_once() -> None:
    """Each has objects of its own, and takes away no others."""
    trial = replace(CHILD, suffix="-n1")
    made = [canary.claim(trial), canary.pod(trial), canary.witness(trial)]
    names = {(entry["kind"], entry["metadata"]["name"]) for entry in made}
    gone = {(entry["kind"], entry["metadata"]["name"]) for entry in canary.removable("kube-system", "-n1")}
    assert names == gone
    assert names.isdisjoint(
        (entry["kind"], entry["metadata"]["name"]) for entry in canary.removable("kube-system")
    )
    (claim,) = canary.pod(trial)["spec"]["resourceClaims"]
    assert claim["resourceClaimName"] == canary.claim(trial)["metadata"]["name"]
