# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The canary: which NIC, which objects, and what it proves."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
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


# --- from child to child

FAR = Target("n2", "rdma0", "02:00:00:00:00:02")
PAIR = replace(CHILD, suffix="-n1", peer=FAR)
THERE = {"name": "rdma0", "kind": "ipvlan", "mac": FAR.mac, "address": "10.208.13.20"}
MET = replace(GOOD, met=THERE, met_claimed=True, reached={"seen": INSIDE["address"]})
UNREACHED = "The child 10.208.13.19 of rdma0 on n1 does not reach the child 10.208.13.20 of rdma0 on n2: "
NO_PEER = (
    "rdma0 of n2 is to be reached from rdma0 of n1, and its claim got no IPvlan child of 10.208.0.0/12: "
)


@pytest.mark.parametrize(
    ("seen", "code", "said"),
    [
        (MET, "", ""),
        (replace(MET, reached=None), "canary_unreached", UNREACHED + "its container told nothing in time."),
        (replace(MET, reached={}), "canary_unreached", UNREACHED + "no reason is told."),
        (replace(MET, reached={"error": "timed out."}), "canary_unreached", UNREACHED + "timed out."),
        (
            replace(MET, reached={"seen": "10.244.0.9"}),
            "canary_unreached",
            UNREACHED + "the connection came from 10.244.0.9.",
        ),
        (
            replace(MET, met=None, reached=None),
            "canary_no_peer",
            NO_PEER + "the pod does not run, and no event says why.",
        ),
        (
            replace(MET, met=None, met_refusal="no address.", reached=None),
            "canary_no_peer",
            NO_PEER + "no address.",
        ),
        (replace(MET, met={}), "canary_no_peer", NO_PEER + "its pod has nothing."),
        (
            replace(MET, met={**THERE, "address": "10.192.0.1"}),
            "canary_no_peer",
            NO_PEER + "its pod has ipvlan 02:00:00:00:00:02 10.192.0.1.",
        ),
        (
            replace(MET, met={**THERE, "kind": ""}),
            "canary_no_peer",
            NO_PEER + "its pod has a device 02:00:00:00:00:02 10.208.13.20.",
        ),
    ],
)
def test_one_child_reaches_the_other(seen: Seen, code: str, said: str) -> None:
    """Both nodes, the NIC, both addresses, and what to do; the connection must have come from the child itself."""
    problems, note = canary.judge_reach(PAIR, seen, RANGE)
    assert ([(problem.code, problem.message) for problem in problems], note) == (
        [(code, said)] if code else [],
        "",
    )
    for problem in problems:
        assert problem.details == {"node": "n1", "nic": "rdma0", "peer": "n2"}
        assert problem.hint.startswith(("Look at rule and routes", "n2 was proven before: look at"))


@pytest.mark.parametrize(
    ("trial", "seen", "note"),
    [
        (CHILD, GOOD, "no child reached another node: none was proven before it"),
        (
            replace(REFUSED, peer=FAR),
            MET,
            "no child reached another node: this driver makes none (proof_expect is refused)",
        ),
        (PAIR, GOOD, "no child reached another node: rdma0 of n2 could not be claimed in time"),
    ],
)
def test_what_was_not_possible_is_told(trial: Trial, seen: Seen, note: str) -> None:
    """Nothing passes in silence."""
    assert canary.judge_reach(trial, seen, RANGE) == ((), note)


@pytest.mark.parametrize(
    "seen",
    [
        replace(MET, running=False, reached=None),
        replace(MET, child=None, reached=None),
        replace(MET, child={**INSIDE, "kind": ""}, reached=None),
        replace(MET, child={**INSIDE, "address": "10.192.0.1"}, reached=None),
    ],
)
def test_a_child_that_is_wrong_itself_is_told_once(seen: Seen) -> None:
    """What it does not reach then says no more."""
    assert canary.judge_reach(PAIR, seen, RANGE) == ((), "")
    assert len(canary.judge(PAIR, seen, RANGE)) == 1


def test_reached_within_no_range() -> None:
    """Without a range the kind decides here, too."""
    assert canary.judge_reach(PAIR, MET, None) == ((), "")
    (problem,) = canary.judge_reach(PAIR, replace(MET, met={}), None)[0]
    assert "got no IPvlan child: its pod has nothing." in problem.message


def test_a_pair_has_nics_of_one_name() -> None:
    """Rails reach themselves; a NIC that is in use on the peer is left for the next one."""
    here = snapshot(device("rdma0"), device("rdma1"), device("rdma2"))
    there = snapshot(
        device("rdma0"), device("rdma1", **{"rdma.k8s/ready": False}), device("rdma2"), node="n2"
    )
    used = shapes.AllocatedDevice(driver="dra.net", pool="n2", device="pci-rdma0")
    found = replace(
        here,
        nodes=(*(here.nodes or ()), *(there.nodes or ())),
        slices=(*(here.slices or ()), *(there.slices or ())),
    )
    assert canary.pair(found, "n1", "n2") == (
        Target("n1", "rdma0", "m-rdma0"),
        Target("n2", "rdma0", "m-rdma0"),
    )
    busy = replace(found, claims=(shapes.Claim(namespace="a", name="c", devices=(used,)),))
    assert [entry and entry.nic for entry in canary.pair(busy, "n1", "n2")] == ["rdma2", "rdma2"]
    assert [entry and entry.nic for entry in canary.pair(busy, "n1", "n2", ready=False)] == ["rdma1", "rdma1"]
    assert canary.pair(here, "n1", "n2") == (Target("n1", "rdma0", "m-rdma0"), None)
    assert error_of(canary.pair, there, "n1", "n2").code == "canary_no_nic"


def test_the_pods_of_a_pair() -> None:
    """The one that is to be reached serves under a name of its own; the other one reaches it beside what it does."""
    other = PAIR.other
    assert other == replace(CHILD, target=FAR, suffix="-n1-peer", serves=True)
    assert CHILD.other is None
    serving = canary.pod(other)
    assert serving["metadata"]["name"] == "rdma-k8s-canary-n1-peer"
    assert serving["metadata"]["labels"]["app.kubernetes.io/name"] == canary.NAME
    (serve,) = serving["spec"]["containers"]
    assert (serve["name"], serve["command"][3:]) == ("serve", ["rdma0", str(canary.PORT)])
    hold, reach = canary.pod(PAIR, "10.208.13.20")["spec"]["containers"]
    assert hold["name"] == "hold"
    assert (reach["name"], reach["command"][3:]) == (
        "reach",
        ["rdma0", "10.208.13.20", str(canary.PORT), str(canary.REACH_SECONDS)],
    )
    for container in (serve, reach):
        assert container["resources"] == {"claims": [{"name": "nic"}]}
        assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert [entry["name"] for entry in canary.pod(PAIR)["spec"]["containers"]] == ["hold"]


def free_port() -> int:
    """A TCP port that is free now."""
    with socket.socket() as asked:
        asked.bind(("127.0.0.1", 0))
        return int(asked.getsockname()[1])


def started(program: str, told: Path, *words: str) -> subprocess.Popen[bytes]:
    """One of the programs, with its message in a file."""
    text = program.replace("/dev/termination-log", str(told))
    assert text != program
    return subprocess.Popen([sys.executable, "-c", text, *words])


def test_the_programs_reach_each_other(tmp_path: Path) -> None:
    """Over the loopback interface of this machine: the address that is seen is the own one; nobody there is told."""
    port = str(free_port())
    told = tmp_path / "reached"
    reaching = started(canary.REACH, told, "lo", "127.0.0.1", port, "120")
    serving = started(canary.SERVE, tmp_path / "served", "lo", port)  # later: it is tried again
    try:
        assert reaching.wait(120) == 0
        assert json.loads(told.read_text()) == {"seen": "127.0.0.1"}
    finally:
        serving.kill()
        serving.wait()
    assert started(canary.REACH, told, "lo", "127.0.0.1", port, "0").wait(120) == 0
    assert "refused" in json.loads(told.read_text())["error"]


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


def test_the_message_of_one_container() -> None:
    """By its name, whichever comes first; one that still runs has told nothing."""
    ended = {"name": "reach", "state": {"terminated": {"message": '{"seen": "a"}'}}}
    live = {"status": {"containerStatuses": [{"name": "hold", "state": {"running": {}}}, ended]}}
    assert canary.told(live, container="reach") == {"seen": "a"}
    assert canary.told(live, container="hold") is None
    assert canary.told(live, container="other") is None


def test_a_claim_that_got_its_nic() -> None:
    """What tells one that waits for a NIC from one that is not served."""
    assert canary.claimed({"status": {"allocation": {"devices": {}}}})
    for live in (None, {}, {"status": {}}, {"status": {"allocation": {}}}):
        assert not canary.claimed(live)


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
