# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rails by the role, on a real control plane: the operator's own definitions, the real Helm, the real controllers.

What needs hardware an actor plays: it writes the states of nodes, through drain and return, and makes the networks of
the configs. Pods of simulated nodes run no program.
"""

from __future__ import annotations

import base64
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.rdma.k8s.plugins.module_utils.cluster.client import Cluster, connect
from ansible_collections.rdma.k8s.plugins.modules import (
    cluster_objects,
    spiderpool_plan_info,
    spiderpool_restart,
)
from ansible_collections.rdma.k8s.tests.support import change_run, spiderpool_cluster, sriov_crds
from ansible_collections.rdma.k8s.tests.support.playbook import Controller, Run
from ansible_collections.rdma.k8s.tests.support.role_run import RoleRun
from ansible_collections.rdma.k8s.tests.support.spiderpool_cluster import Actor, network

from .conftest import ControlPlane

LABEL = "rails-role"
PLACES = ("0000:0c:00.0", "0000:2a:00.0")
RAILS = [
    {"pci": PLACES[0], "subnet": "172.16.11.0/24", "gateway": "172.16.11.254"},
    {"pci": PLACES[1], "subnet": "172.16.12.0/24", "gateway": "172.16.12.254"},
]
OURS = "app.kubernetes.io/part-of=spiderpool-sriov"
KINDS = (
    "sriovnetworknodepolicies,sriovnetworkpoolconfigs,spiderippools,spidermultusconfigs,secrets,daemonsets,"
    "serviceaccounts,clusterroles,clusterrolebindings,roles,rolebindings,configmaps,deployments"
)
UFM = {
    "UFM_USERNAME": "admin",
    "UFM_PASSWORD": "a-secret-word",
    "UFM_ADDRESS": "172.16.10.10",
    "UFM_CERTIFICATE": "-----BEGIN CERTIFICATE-----",
}
WRITES = ("create", "update", "patch", "delete", "deletecollection")


class Role(RoleRun):
    """The role for two rails on two nodes, and what it makes."""

    def __init__(self, control_plane: ControlPlane, nodes: list[str], folder: Path) -> None:
        self.plane, self.nodes = control_plane, nodes
        super().__init__(
            "spiderpool_sriov",
            folder,
            kubeconfig=str(control_plane.kubeconfig),
            helm=str(control_plane.cluster.programs.path("helm")),
            node_selector={LABEL: "true"},
            rails=RAILS,
            link_type="eth",
            settle=1,
            timeout=120,
            network_timeout=60,
        )

    def made(self) -> list[str]:
        """All objects with our labels."""
        return sorted(self.plane.kubectl("get", KINDS, "-A", "-l", OURS, "-o", "name").split())

    def writes(self, since: int) -> list[str]:
        """What was written to the API server by us, by the audit log from a line on."""
        lines = self.audit().read_text("utf-8").splitlines()[since:]
        log = [json.loads(line) for line in lines]
        return [
            "%s %s" % (entry["verb"], entry["requestURI"])
            for entry in log
            if entry["verb"] in WRITES and entry["userAgent"].startswith(("rdma.k8s/", "Helm/"))
        ]

    def real_writes(self, since: int) -> list[str]:
        """The same without those that the server only tried."""
        return [line for line in self.writes(since) if "dryRun=All" not in line]

    def audit(self) -> Path:
        return self.plane.cluster.directory / "audit.log"

    def mark(self) -> int:
        """The length of the audit log."""
        return len(self.audit().read_text("utf-8").splitlines())


@pytest.fixture(scope="module")
def cluster(control_plane: ControlPlane) -> Cluster:
    return connect(str(control_plane.kubeconfig))


@pytest.fixture(scope="module")
def nodes(cluster: Cluster) -> Iterator[list[str]]:
    """Two nodes with the label of the selector; the definitions go when the last test is over."""
    found = sorted(node["metadata"]["name"] for node in cluster.items("/api/v1/nodes"))[:2]
    hand = sriov_crds.Operator(cluster, PLACES)
    for node in found:
        hand.label(node, **{LABEL: "true"})
    yield found
    for node in found:
        hand.label(node, **{LABEL: None})


@pytest.fixture
def role(control_plane: ControlPlane, cluster: Cluster, nodes: list[str], tmp_path: Path) -> Iterator[Role]:
    """The role; after the test nothing is left, the definitions and their objects neither."""
    yield Role(control_plane, nodes, tmp_path)
    for crd in spiderpool_cluster.definitions(control_plane.cluster.programs):
        cluster.delete(crd)
    for kind, called in (("DaemonSet", "rdma-k8s-test"), ("Pod", "job")):
        api = "apps/v1" if kind == "DaemonSet" else "v1"
        cluster.delete(
            {"apiVersion": api, "kind": kind, "metadata": {"name": called, "namespace": "default"}}
        )
    secret = {"name": "ib-kubernetes-ufm-secret", "namespace": "kube-system"}
    cluster.delete({"apiVersion": "v1", "kind": "Secret", "metadata": secret})
    control_plane.kubectl("delete", "namespace", "spiderpool", "--ignore-not-found")


@pytest.fixture
def served(role: Role, cluster: Cluster) -> Role:
    """The role in a cluster that has Spiderpool and the operator already."""
    crds = spiderpool_cluster.definitions(role.plane.cluster.programs)
    for crd in crds:
        cluster.apply(crd)
    cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "spiderpool"}})
    for crd in crds:
        sriov_crds.wait_until_established(cluster, crd)
    return role


def test_from_nothing_to_nothing(role: Role, cluster: Cluster, tmp_path: Path) -> None:
    """S90 to S124: chart, Secret, rails, states, networks, pods; nothing the second time; then all of it goes."""
    chart = str(spiderpool_cluster.write_chart(tmp_path, role.plane.cluster.programs))
    wish: dict[str, Any] = {
        "chart": chart,
        "max_unavailable": 1,
        "ufm": UFM,
        "test_image": "lab.test/rdma-tools:1",
        "nodes": role.nodes,
    }
    planned = role("--check", **wish).good()
    assert "failed=0" in planned
    assert cluster_kinds(cluster) == []
    with Actor(cluster, role.nodes, PLACES):
        done = role(**wish).good()
        assert UFM["UFM_PASSWORD"] not in done
        assert [name.rpartition("/")[2] for name in role.made()] == [
            "rdma-k8s-test",
            "ib-kubernetes-ufm-secret",
            "gpu1sriov-net",
            "gpu2sriov-net",
            "gpu1sriov-eth",
            "gpu2sriov-eth",
            "gpu1sriov",
            "gpu2sriov",
            "rdma-k8s",
        ]
        secret = json.loads(
            role.plane.kubectl("get", "secret", "-n", "kube-system", "ib-kubernetes-ufm-secret", "-o", "json")
        )
        assert sorted(secret["data"]) == sorted(UFM)

        before = role.mark()
        assert role.changed(**wish) == 0
        assert role.writes(before) == []

        assert role.changed(**wish, state="absent") > 0
        assert role.made() == []
        assert "release" not in role.plane.kubectl("get", "secrets", "-n", "spiderpool", "-o", "name")
        assert role.changed(**wish, state="absent") == 0


def cluster_kinds(cluster: Cluster) -> list[str]:
    """Groups of Spiderpool and the operator that the server serves, by a client that looks anew."""
    listed = cluster.items("/apis/apiextensions.k8s.io/v1/customresourcedefinitions")
    return [
        crd["metadata"]["name"]
        for crd in listed
        if crd["spec"]["group"] in (sriov_crds.SRIOV, sriov_crds.SPIDER)
    ]


def test_without_spiderpool_it_says_what_is_missing(role: Role) -> None:
    before = role.mark()
    told = role().failed()
    assert "the cluster has no definition of SriovNetworkNodePolicy: install the SR-IOV operator" in told
    assert "the cluster has no definition of SpiderIPPool: install Spiderpool" in told
    assert role.writes(before) == []


def test_a_wrong_rail_is_refused_and_nothing_changes(served: Role) -> None:
    """S147, S150, S220, S226: all mistakes at once, each with its code."""
    wrong = [RAILS[0], {**RAILS[1], "pci": PLACES[0], "subnet": "172.16.12.0/16", "pkey": 1000}]
    before = served.mark()
    told = served(rails=wrong, ufm={"UFM_USER": "x", "UFM_PASSWORD": "y"}).failed()
    for code in (
        "rootdevice-overlap",
        "subnet-not-canonical",
        "pkey-type",
        "ufm-key-missing",
        "ufm-key-unknown",
    ):
        assert "(%s)" % code in told
    assert served.writes(before) == []
    assert served.made() == []


@pytest.mark.parametrize(
    ("rails", "more", "code"),
    [
        ([RAILS[0]], {"netns_owner": "operator"}, "field-pruned"),
        ([{**RAILS[0], "pci": "0000:99:00.0"}], {}, "nic-none-selected"),
        ([{**RAILS[0], "ranges": ["172.16.11.1-172.16.11.10"]}], {}, "pool-too-small"),
        ([RAILS[0]], {"nodes": ["nobody"]}, "node-not-selected"),
        ([RAILS[0]], {"node_selector": {"no": "such"}}, "node-none-selected"),
    ],
)
def test_what_the_cluster_cannot_take(
    served: Role, cluster: Cluster, rails: list[Any], more: dict[str, Any], code: str
) -> None:
    """S26, S92, S107, S108: only the cluster tells."""
    hand = sriov_crds.Operator(cluster, PLACES)
    for node in served.nodes:
        hand.fresh(node)
    given = {"node_selector": {LABEL: "true"}, "rails": rails, "link_type": "eth", **more}
    assert change_run.good(spiderpool_plan_info, **given)["problems"] == []
    refused = change_run.failure(
        spiderpool_plan_info, **given, read=True, kubeconfig=str(served.plane.kubeconfig)
    )
    assert code in [entry["code"] for entry in refused["details"]["findings"]]


def test_a_node_that_fails_is_named_with_the_reason(served: Role, cluster: Cluster) -> None:
    """S113, S118: what the daemon says, and what to do."""
    with Actor(cluster, served.nodes, PLACES, fails=served.nodes[1]):
        told = served(stuck_after=10).failed()
    assert "cannot allocate memory" in told
    assert served.nodes[1] in told
    assert "BIOS" in told


def test_a_table_that_shrinks_and_pods_that_stay(served: Role, cluster: Cluster) -> None:
    """What a table has no more is told, and goes when it is asked for; used rails are not removed."""
    kubeconfig = str(served.plane.kubeconfig)
    plan = change_run.good(
        spiderpool_plan_info,
        rails=RAILS,
        link_type="eth",
        node_selector={LABEL: "true"},
        kubeconfig=kubeconfig,
    )
    change_run.good(cluster_objects, documents=plan["objects"], kubeconfig=kubeconfig)
    shorter = served(rails=RAILS[:1], verify=False).good()
    assert "These are of an older table and were left: gpu2sriov, gpu2sriov-net, gpu2sriov-eth" in shorter
    served(rails=RAILS[:1], verify=False, prune=True).good()
    assert [name.rpartition("/")[2] for name in served.made()] == [
        "gpu1sriov-net",
        "gpu1sriov-eth",
        "gpu1sriov",
    ]
    limits = {"spidernet.io/gpu1sriov": "1"}
    container = {"name": "x", "image": "lab.test/x:1", "resources": {"limits": limits}}
    job = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "job", "namespace": "default"}}
    cluster.apply({**job, "spec": {"terminationGracePeriodSeconds": 0, "containers": [container]}})
    before = served.made()
    assert "these pods have virtual functions of the rails: default/job" in served(state="absent").failed()
    assert served.made() == before
    change_run.good(cluster_objects, kubeconfig=kubeconfig, documents=[job], state="absent", force=True)
    served(state="absent").good()
    assert served.made() == []


def test_the_network_of_the_cluster_must_exist(served: Role, cluster: Cluster) -> None:
    """S243: pods for tests have it as their first interface. With a chart it may come later."""
    given: dict[str, Any] = {
        "rails": RAILS,
        "link_type": "eth",
        "node_selector": {LABEL: "true"},
        "test_image": "lab.test/rdma-tools:1",
        "default_network": "kube-system/calico",
        "read": True,
        "kubeconfig": str(served.plane.kubeconfig),
    }
    refused = change_run.failure(spiderpool_plan_info, **given)
    assert [entry["code"] for entry in refused["details"]["findings"]] == ["default-network-unknown"]
    change_run.good(spiderpool_plan_info, **given, allow_missing_kinds=True)
    cluster.apply(network("kube-system", "calico"))
    assert change_run.good(spiderpool_plan_info, **given)["findings"] == []


@pytest.mark.parametrize(
    ("fields", "isolation"),
    [({"rdmaIsolation": "boolean"}, "rdmaIsolation"), ({"enableRdma": "boolean"}, "enableRdma")],
)
def test_the_fields_are_those_of_the_deployed_version(
    served: Role, cluster: Cluster, fields: dict[str, str], isolation: str
) -> None:
    """S91, S92: names follow the definition; a wish for which it has no field is refused."""
    (crd,) = [crd for crd in sriov_crds.CRDS if crd["spec"]["names"]["kind"] == "SpiderMultusConfig"]
    older = json.loads(json.dumps(crd))
    below = older["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    sriov = below["sriov"]["properties"]
    for gone in ("mtu", "rdmaIsolation"):
        del sriov[gone]
    sriov.update({name: {"type": kind} for name, kind in fields.items()})
    cluster.apply(older)
    given: dict[str, Any] = {
        "kubeconfig": str(served.plane.kubeconfig),
        "rails": RAILS,
        "link_type": "eth",
        "node_selector": {LABEL: "true"},
        "read": True,
    }
    plan = change_run.good(spiderpool_plan_info, **given)
    (first, _second) = [entry for entry in plan["objects"] if entry["kind"] == "SpiderMultusConfig"]
    assert first["spec"]["sriov"][isolation] is True
    refused = change_run.failure(spiderpool_plan_info, **given, mtu=1500)
    assert "mtu-field-missing" in [entry["code"] for entry in refused["details"]["findings"]]
    options = {"kubeconfig": given["kubeconfig"], "documents": plan["objects"]}
    sriov_crds.wait_until_taken(cluster, first)
    assert change_run.good(cluster_objects, **options)["changed"] is True
    change_run.good(cluster_objects, **options, state="absent")


# --- ib-kubernetes


IB_RAILS = [{**rail, "pkey": "0x%d00" % (number + 1)} for number, rail in enumerate(RAILS)]
PROGRAM = {"image": "lab.test/ib-kubernetes:1.2.3", "node_selector": {LABEL: "true"}}


def test_ib_kubernetes_runs_and_starts_anew_for_another_secret(served: Role, cluster: Cluster) -> None:
    """S146 to S153: the Secret, the program, its rails; nothing the second time; the password is never shown."""
    wish: dict[str, Any] = {
        "rails": IB_RAILS,
        "link_type": "ib",
        "ufm": UFM,
        "ib_kubernetes": PROGRAM,
        "nodes": served.nodes,
    }
    passwords = [UFM["UFM_PASSWORD"], "another-secret-word"]
    secrets = [*passwords, *[base64.b64encode(word.encode()).decode() for word in passwords]]
    loud = ("--diff", "-vvv")

    def mark() -> Any:
        live = cluster.get("/apis/apps/v1/namespaces/kube-system/deployments/ib-kubernetes")
        template = live["spec"]["template"]
        assert not [word for word in secrets if word in json.dumps(live)]
        return template["metadata"]["annotations"]["rdma.k8s/ufm-secret"]

    def pods() -> list[str]:
        path = "/api/v1/namespaces/kube-system/pods"
        found = cluster.items(path, labelSelector="app.kubernetes.io/name=ib-kubernetes")
        return sorted(
            "%s on %s" % (entry["metadata"]["uid"], entry["spec"]["nodeName"])
            for entry in found
            if "deletionTimestamp" not in entry["metadata"]
        )

    before = served.mark()
    said = served("--check", *loud, **wish).good()
    assert served.real_writes(before) == []
    assert served.made() == []
    assert "would start anew" in said

    with Actor(cluster, served.nodes, PLACES, link="IB"):
        said += served(*loud, **wish).good()
        first, running = mark(), pods()
        assert sorted(line.partition(" on ")[2] for line in running) == served.nodes
        there = served.made()
        assert len([name for name in there if name.endswith("/ib-kubernetes")]) == 6

        before = served.mark()
        again = served(*loud, **wish)
        assert again.recap("localhost")["changed"] == 0
        said += again.good()
        assert served.writes(before) == []
        assert (mark(), pods()) == (first, running)

        changed = {**wish, "ufm": {**UFM, "UFM_PASSWORD": passwords[1]}}
        before = served.mark()
        said += served("--check", *loud, **changed).good()
        assert served.real_writes(before) == []
        assert (mark(), pods()) == (first, running)
        said += served(*loud, **changed).good()
        written = [line.partition("?")[0].rpartition("/")[2] for line in served.real_writes(before)]
        assert written == ["ib-kubernetes-ufm-secret", "ib-kubernetes"]
        assert mark() != first
        assert not set(pods()) & set(running)
        before = served.mark()
        assert served.changed(**changed) == 0
        assert served.writes(before) == []
        assert [word for word in secrets if word in said] == []

        assert served.changed(**changed, state="absent") > 0
        assert served.made() == []
        assert pods() == []


# --- the controller and its configuration


CONFIGURATION = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "spiderpool-conf", "namespace": "spiderpool"},
    "data": {"conf.yml": "enabled: false"},
}


class Restart:
    """A controller with its configuration, and runs of the module that may restart it."""

    def __init__(self, role: Role, cluster: Cluster) -> None:
        self.role, self.cluster = role, cluster
        where = {**spiderpool_cluster.CONTROLLER["metadata"], "namespace": "spiderpool"}
        for document in (CONFIGURATION, {**spiderpool_cluster.CONTROLLER, "metadata": where}):
            cluster.apply(document)
        role.plane.kubectl("rollout", "status", "deployment/spiderpool-controller", *self.there)

    there = ("-n", "spiderpool", "--timeout=60s")

    def options(self, **more: Any) -> dict[str, Any]:
        return {"kubeconfig": str(self.role.plane.kubeconfig), "timeout": 60, **more}

    def run(self, **more: Any) -> tuple[dict[str, Any], list[str]]:
        """What a run tells, and what it wrote."""
        before = self.role.mark()
        found = change_run.good(spiderpool_restart, **self.options(**more))
        return found, self.role.writes(before)

    def late(self) -> tuple[str, list[str]]:
        """The sentence of a run whose pods do not come, and what it wrote."""
        before = self.role.mark()
        found = change_run.failure(spiderpool_restart, **self.options(timeout=3))
        assert found["code"] == "spiderpool_controller_late", found
        return found["msg"], self.role.writes(before)

    def pods(self) -> list[str]:
        listed = self.cluster.items("/api/v1/namespaces/spiderpool/pods")
        return sorted(
            entry["metadata"]["name"] for entry in listed if "deletionTimestamp" not in entry["metadata"]
        )

    def configure(self, text: str) -> None:
        """Another content, in a later second than all pods: stamps of the API server have whole ones."""
        time.sleep(1.1)
        content = json.dumps({"data": {"conf.yml": text}})
        self.role.plane.kubectl(
            "patch", "configmap", "spiderpool-conf", "-n", "spiderpool", "--type=merge", "-p", content
        )

    def pin(self, labels: Any) -> None:
        """Let the pods of the controller run on nodes with these labels only."""
        content = json.dumps({"spec": {"template": {"spec": {"nodeSelector": labels}}}})
        self.role.plane.kubectl(
            "patch", "deployment", "spiderpool-controller", "-n", "spiderpool", "--type=merge", "-p", content
        )


@pytest.fixture
def restart(served: Role, cluster: Cluster) -> Restart:
    return Restart(served, cluster)


def restarts(written: list[str]) -> list[str]:
    """How a restart was asked for, among all that was written: only tried, or in earnest."""
    place = "patch /apis/apps/v1/namespaces/spiderpool/deployments/spiderpool-controller?"
    mine = [line for line in written if line.startswith(place) and "fieldManager=rdma.k8s" in line]
    return ["tried" if "dryRun=All" in line else "asked" for line in mine]


def test_the_controller_is_restarted_once_for_one_content(restart: Restart) -> None:
    """S166, S168: by the times that this server gives to contents and pods."""
    found, written = restart.run()
    assert (found["changed"], found["older"], written) == (False, [], [])
    assert found["configuration"] == ["spiderpool-conf"]
    time.sleep(1.1)
    restart.role.plane.kubectl("label", "configmap", "spiderpool-conf", "-n", "spiderpool", "team=net")
    found, written = restart.run()
    assert (found["changed"], written) == (False, [])  # a label of somebody else is no content

    restart.configure("enabled: true")
    old = restart.pods()
    planned, written = restart.run(_ansible_check_mode=True, _ansible_diff=True)
    assert (planned["changed"], planned["older"]) == (True, old)
    assert (len(written), restarts(written)) == (1, ["tried"])
    assert restart.pods() == old
    done, written = restart.run(_ansible_diff=True)
    assert (done["changed"], done["older"]) == (True, old)
    assert done["diff"] == planned["diff"]
    assert (len(written), restarts(written)) == (1, ["asked"])
    new = restart.pods()
    assert len(new) == len(old)
    assert not set(new) & set(old)
    again, written = restart.run()
    assert (again["changed"], again["older"], again["actions"], written) == (False, [], [], [])
    assert restart.pods() == new


def test_a_restart_that_does_not_come_through_is_not_asked_for_again(restart: Restart) -> None:
    """The annotation tells for which content it was asked for; the next run waits for the same restart."""
    restart.pin({"no": "such"})
    restart.configure("enabled: true")
    told, written = restart.late()
    assert "Deployment spiderpool/spiderpool-controller was to be new and available within 3 s" in told
    assert (len(written), restarts(written)) == (1, ["asked"])
    told, written = restart.late()
    assert "Deployment spiderpool/spiderpool-controller has older pods still" in told
    assert written == []
    restart.pin(None)
    found, written = restart.run()
    assert (found["changed"], written) == (False, [])
    assert restart.run()[0]["older"] == []


def test_injection_that_comes_later_restarts_the_controller(
    role: Role, cluster: Cluster, tmp_path: Path
) -> None:
    """S158, S168: the chart changes the content alone; the role restarts, and the next run does nothing."""
    chart = str(spiderpool_cluster.write_chart(tmp_path, role.plane.cluster.programs))
    wish: dict[str, Any] = {"chart": chart, "verify": False, "nodes": role.nodes}

    with Actor(cluster, role.nodes, PLACES):
        before = role.mark()
        role(**wish).good()
        assert restarts(role.writes(before)) == []
        before = role.mark()
        role(**wish, inject="rails").good()
        assert restarts(role.writes(before)) == ["asked"]
        before = role.mark()
        assert role.changed(**wish, inject="rails") == 0
        assert role.writes(before) == []


# --- the GPU operator


GOOD = {
    "driver": {"enabled": True, "rdma": {"enabled": True, "useHostMofed": True}},
    "gdrcopy": {"enabled": True},
}


@pytest.fixture
def gpu_operator(served: Role, cluster: Cluster) -> Iterator[dict[str, Any]]:
    """The definition of its kind, and a policy that is right."""
    cluster.apply(sriov_crds.CLUSTER_POLICY)
    sriov_crds.wait_until_established(cluster, sriov_crds.CLUSTER_POLICY)
    yield {
        "apiVersion": sriov_crds.GPU + "/v1",
        "kind": "ClusterPolicy",
        "metadata": {"name": "cluster-policy"},
        "spec": GOOD,
    }
    cluster.delete(sriov_crds.CLUSTER_POLICY)


def told_of_gpus(role: Role, **more: Any) -> list[tuple[str, str]]:
    """Codes and severities of what is told of NICs and GPUs, without a failure."""
    given: dict[str, Any] = {
        "kubeconfig": str(role.plane.kubeconfig),
        "rails": RAILS,
        "link_type": "eth",
        "node_selector": {LABEL: "true"},
        "read": True,
        "fail_on_problems": False,
        **more,
    }
    found = change_run.good(spiderpool_plan_info, **given)["findings"]
    return [(entry["code"], entry["severity"]) for entry in found if entry["code"].startswith(("gpu", "gdr"))]


def test_nics_must_reach_gpus(served: Role, cluster: Cluster, gpu_operator: dict[str, Any]) -> None:
    """S41: the ClusterPolicy of the server decides, and the wish says whether it stops the run."""
    assert told_of_gpus(served, gpudirect=True) == []  # no policy, as without the operator
    off = {"driver": {"enabled": True, "rdma": {"enabled": False}}}
    cluster.apply({**gpu_operator, "spec": off})
    assert told_of_gpus(served) == [("gpudirect-off", "warning"), ("gdrcopy-off", "warning")]
    assert told_of_gpus(served, gpudirect=True)[0] == ("gpudirect-off", "error")
    before = served.mark()
    told = served(gpudirect=True).failed()
    assert "ClusterPolicy cluster-policy, spec.driver.rdma.enabled: " in told
    assert "(gpudirect-off)" in told
    assert served.writes(before) == []
    assert served.made() == []
    cluster.apply(gpu_operator)
    assert told_of_gpus(served, gpudirect=True) == []
    cluster.delete(gpu_operator)


def test_who_may_not_list_policies_is_told_so(
    served: Role, cluster: Cluster, gpu_operator: dict[str, Any], tmp_path: Path
) -> None:
    """A user who may read all else: what is not known stops nobody, and is said."""
    cluster.apply(gpu_operator)
    groups = ["", "apps", "k8s.cni.cncf.io", "apiextensions.k8s.io", sriov_crds.SRIOV, sriov_crds.SPIDER]
    groups += ["admissionregistration.k8s.io", "rbac.authorization.k8s.io", "resource.k8s.io"]
    rule = {"apiGroups": groups, "resources": ["*"], "verbs": ["get", "list"]}
    rbac: dict[str, Any] = {"apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": "no-gpus"}}
    role = {**rbac, "kind": "ClusterRole", "rules": [rule]}
    subject = {"kind": "ServiceAccount", "name": "default", "namespace": "spiderpool"}
    to = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "no-gpus"}
    binding = {**rbac, "kind": "ClusterRoleBinding", "roleRef": to, "subjects": [subject]}
    for document in (role, binding):
        cluster.apply(document)
    config = yaml.safe_load(served.plane.kubeconfig.read_text(encoding="utf-8"))
    token = served.plane.kubectl("create", "token", "default", "-n", "spiderpool").strip()
    config["users"] = [{"name": user["name"], "user": {"token": token}} for user in config["users"]]
    path = tmp_path / "reader"
    path.write_text(yaml.safe_dump(config), encoding="utf-8")
    path.chmod(0o600)
    try:
        assert told_of_gpus(served, kubeconfig=str(path)) == []
        assert told_of_gpus(served, kubeconfig=str(path), gpudirect=True) == [
            ("gpudirect-unknown", "warning")
        ]
    finally:
        for document in (binding, role, gpu_operator):
            cluster.delete(document)


# --- bring_up


@pytest.fixture
def bring_up(served: Role, tmp_path: Path) -> Iterator[Run]:
    """The playbook for both nodes, for which this machine stands; they are left alone."""
    folder = tmp_path / "bring_up"
    folder.mkdir()
    run = Run(Controller(tmp_path / "home", tmp_path / "compiled"), folder, "rdma.k8s.bring_up")
    local = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
    run.inventory(
        {name: dict(local) for name in served.nodes},
        kubeconfig=str(served.plane.kubeconfig),
        target="spiderpool_sriov",
        configure=False,
        spiderpool_sriov_node_selector={LABEL: "true"},
        spiderpool_sriov_link_type="eth",
        spiderpool_sriov_rails=RAILS,
        spiderpool_sriov_settle=1,
        spiderpool_sriov_timeout=120,
    )
    yield run
    for name in served.nodes:
        served.plane.kubectl("label", "node", name, "rdma.k8s/verdict-", "rdma.k8s/judged-")
        taints = served.plane.kubectl("get", "node", name, "-o", "jsonpath={.spec.taints[*].key}").split()
        if "rdma.k8s/unverified" in taints:
            served.plane.kubectl("taint", "nodes", name, "rdma.k8s/unverified-")


def test_bring_up_refuses_a_table_before_it_asks_anybody(served: Role, bring_up: Run) -> None:
    before = served.mark()
    wrong = bring_up(variables={"spiderpool_sriov_rails": [RAILS[0], {**RAILS[1], "pci": PLACES[0]}]})
    assert "(rootdevice-overlap)" in wrong.failed()
    owners = bring_up(variables={"configure": True, "spiderpool_sriov_netns_mode": "shared"})
    assert "The namespace mode of the nodes has one owner." in owners.failed()
    assert served.writes(before) == []


def test_bring_up_deploys_and_judges(served: Role, bring_up: Run, cluster: Cluster) -> None:
    """This machine has none of the NICs, so the gate stops; told to go on, it deploys, and the verdict stays bad."""
    with Actor(cluster, served.nodes, PLACES):
        stopped = bring_up().failed()
        assert stopped.startswith("Nothing was deployed, because the nodes are not right: ")
        assert served.made() == []
        went_on = bring_up("-e", "go_on=true")
        assert went_on.failed().startswith("The cluster is not right: ")
        assert len(served.made()) == 6
        document = bring_up.document()
        told = {entry.check[5:]: entry.status for entry in document.findings if "SRIOV" in entry.check}
        assert {check: told[check] for check in ("SRIOV-001", "SRIOV-003", "SRIOV-007")} == {
            "SRIOV-001": "pass",
            "SRIOV-003": "pass",
            "SRIOV-007": "pass",
        }
