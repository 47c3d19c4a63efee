# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""DRANET by the role, on a real control plane: the real chart, the real Helm, the real controller of DaemonSets.

Pods of simulated nodes run no program. What they would tell, the test writes into their status.
"""

from __future__ import annotations

import json
import re
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.cluster import canary_run, collect, objects, sources
from ansible_collections.rdma.k8s.plugins.module_utils.cluster.client import Cluster, connect
from ansible_collections.rdma.k8s.plugins.module_utils.cluster.sources import LiveSource
from ansible_collections.rdma.k8s.plugins.module_utils.core.oke import (
    canary,
    claims,
    dranet_objects,
    dranet_state,
    driver_rights,
)
from ansible_collections.rdma.k8s.plugins.modules import dranet_canary, dranet_check, dranet_plan_info
from ansible_collections.rdma.k8s.tests.support import change_run
from ansible_collections.rdma.k8s.tests.support.role_run import RoleRun

from .conftest import SIMULATED, ControlPlane

IMAGES = {"image": "lab.test/dranet:v1.4.0", "provider_image": "lab.test/rdma-k8s:1"}
PLAIN = {"mode": "native", "oca_directory": "", "update_strategy": "RollingUpdate", "priority_class": ""}
"""What the chart of v1.4.0 can express."""

KINDS = "daemonsets,serviceaccounts,configmaps,clusterroles,clusterrolebindings,deviceclasses"


class Role(RoleRun):
    """The role, and what it makes. Pods are not waited for unless it is asked for."""

    def __init__(self, control_plane: ControlPlane, folder: Path) -> None:
        self.control_plane = control_plane
        programs = control_plane.cluster.programs
        always = {
            "kubeconfig": str(control_plane.kubeconfig),
            "helm": str(programs.path("helm")),
            "chart": str(programs.chart),
            "verify": False,
            "allow_without_ipvlan": True,
            **IMAGES,
        }
        super().__init__("oke_dranet", folder, **always)

    def made(self) -> list[str]:
        """All objects with our label, and releases of Helm."""
        ours = self.control_plane.kubectl(
            "get", KINDS, "-A", "-l", "app.kubernetes.io/part-of=%s" % dranet_objects.PART_OF, "-o", "name"
        )  # fmt: skip
        releases = self.control_plane.kubectl("get", "secrets", "-A", "-l", "owner=helm", "-o", "name")
        return sorted((ours + releases).split())


@pytest.fixture
def role(control_plane: ControlPlane, tmp_path: Path) -> Iterator[Role]:
    """The role in a directory of its own; after the test the cluster has nothing of it."""
    made = Role(control_plane, tmp_path)
    yield made
    if made.made():
        made(state="absent").good()


@pytest.fixture
def cluster(control_plane: ControlPlane) -> Cluster:
    """Calls to the API server."""
    return connect(str(control_plane.kubeconfig))


def wait_for_pods(control_plane: ControlPlane) -> None:
    for name in ("rdma-k8s-provider", "dranet"):
        control_plane.kubectl(
            "wait", "--for=jsonpath={.status.numberReady}=%d" % SIMULATED, "-n", "kube-system",
            "daemonset/" + name, "--timeout=60s",
        )  # fmt: skip


def test_manifests(role: Role, control_plane: ControlPlane) -> None:
    """Check mode stores nothing, the second run changes nothing, absent leaves nothing; with everything in between."""
    assert role.changed("--check") == 3
    assert role.made() == []
    text = role().good()
    assert "The chart does not take args: it has no key webhookURL." in text
    assert "DRANET v1.4.0 cannot make IPvlan children" in text
    assert role.made() == [
        "clusterrole.rbac.authorization.k8s.io/dranet",
        "clusterrolebinding.rbac.authorization.k8s.io/dranet",
        "daemonset.apps/dranet",
        "daemonset.apps/rdma-k8s-provider",
        "deviceclass.resource.k8s.io/rdma-nic",
        "serviceaccount/dranet",
    ]
    assert role.changed() == 0
    assert lacking(control_plane) == {}
    wait_for_pods(control_plane)
    options = {"kubeconfig": str(control_plane.kubeconfig)}
    assert change_run.good(dranet_check, stage="provider", timeout=60, **options)["problems"] == []
    after = change_run.failure(dranet_check, stage="after", child_range="10.208.0.0/12", **options)
    codes = [problem["code"] for problem in after["problems"]]
    assert codes[-1] == "dranet_nics_not_ready"  # nobody publishes for simulated nodes what the provider says
    assert set(codes[:-1]) <= {"dranet_range_differs"}  # their range comes a moment after their pod
    assert change_run.good(dranet_check, stage="after", provider=False, **options)["nodes"] == [
        "sim-%04d" % number for number in range(1, SIMULATED + 1)
    ]
    assert role.changed(state="absent") == 3
    assert role.made() == []
    assert driver_pods(control_plane) == []


def driver_pods(control_plane: ControlPlane) -> list[str]:
    """The pods of DRANET and of the provider that are there, also those that are ending."""
    return control_plane.kubectl(
        "get", "pods", "-n", "kube-system", "-l", dranet_state.POD_SELECTOR, "-o", "name"
    ).split()  # fmt: skip


def lacking(control_plane: ControlPlane) -> dict[str, tuple[str, ...]]:
    """The verbs that the account of DRANET does not have, by resource, as RDMA-DRA-013 judges them."""
    source = LiveSource(connect(str(control_plane.kubeconfig)))
    (account,) = collect.collect(source, "", ["permissions"]).driver_accounts or ()
    found = {right.subject: driver_rights.lacking(right, account.rules) for right in driver_rights.needed()}
    return {subject: verbs for subject, verbs in found.items() if verbs}


def requests_of(control_plane: ControlPlane, since: int) -> list[tuple[str, str]]:
    """Verb and URI of what this collection asked the API server, by its audit log behind a line."""
    lines = audit_log(control_plane)[since:]
    seen = [json.loads(line) for line in lines if '"rdma.k8s/' in line]
    return [(entry["verb"], entry["requestURI"]) for entry in seen]


def audit_log(control_plane: ControlPlane) -> list[str]:
    return (control_plane.cluster.directory / "audit.log").read_text("utf-8").splitlines()


@pytest.fixture
def deployed(control_plane: ControlPlane) -> Iterator[None]:
    """DRANET and the provider as the role would deploy them by manifests, with a pod of each on each node."""
    plan = change_run.good(dranet_plan_info, **IMAGES, allow_without_ipvlan=True)
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": [*plan["dranet"], *plan["provider"]]})
    try:
        control_plane.kubectl("apply", "-f", "-", stdin=text)
        wait_for_pods(control_plane)
        yield
    finally:
        control_plane.kubectl("delete", "--ignore-not-found", "-f", "-", stdin=text)


def test_what_is_still_ending_is_waited_for(control_plane: ControlPlane, deployed: None) -> None:
    """A pod outlives its DaemonSet; it is told, and without a time it is waited for until it has gone."""
    held = driver_pods(control_plane)[0]
    finalizers = json.dumps({"metadata": {"finalizers": ["lab.test/held"]}})
    control_plane.kubectl("patch", held, "-n", "kube-system", "--type=merge", "-p", finalizers)
    options = {"kubeconfig": str(control_plane.kubeconfig)}
    released = json.dumps({"metadata": {"finalizers": None}})
    release = threading.Timer(
        5, control_plane.kubectl, ("patch", held, "-n", "kube-system", "--type=merge", "-p", released)
    )
    try:
        both = ("daemonset/dranet", "daemonset/rdma-k8s-provider")
        control_plane.kubectl("delete", "-n", "kube-system", *both)
        control_plane.kubectl("wait", "--for=delete", "-n", "kube-system", *both, "--timeout=60s")
        failed = change_run.failure(dranet_check, stage="stopped", timeout=0, **options)
        assert failed["code"] == "dranet_left"
        named = [words.split() for words in failed["problems"][0]["details"]["left"]]
        assert held.partition("/")[2] in [words[1].partition("/")[2] for words in named]
        assert {words[0] for words in named} == {"Pod"}
    finally:
        release.start()
    # The slices of simulated nodes stay; a node that is not there has none.
    assert change_run.good(dranet_check, stage="absent", nodes=["n9"], **options)["problems"] == []
    assert driver_pods(control_plane) == []
    release.join()


def test_verification_reads_lists_in_pages(
    control_plane: ControlPlane, deployed: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No request is for one node: their number grows with the pages of the lists alone."""
    options = {"kubeconfig": str(control_plane.kubeconfig), "stage": "after", "provider": False}
    for page, pages in ((1000, 1), (SIMULATED // 2, 2)):
        monkeypatch.setattr(sources, "PAGE", page)
        since = len(audit_log(control_plane))
        assert len(change_run.good(dranet_check, **options)["nodes"]) == SIMULATED
        asked = requests_of(control_plane, since)
        seen = [(verb, uri) for verb, uri in asked if uri.partition("?")[0] != "/apis"]
        assert {verb for verb, _uri in seen} == {"list"}
        assert {re.findall(r"[?&]limit=(\d+)", uri)[0] for _verb, uri in seen} == {str(page)}
        lists = Counter(re.sub(r"/v1\w*/|[?].*", "/", uri).strip("/") for _verb, uri in seen)
        assert lists.pop("api/nodes") == pages
        assert lists.pop("apis/resource.k8s.io/resourceslices") == pages
        # Of DRANET and of the provider; the server ends pages of a selection late, when other pods come behind it.
        pods = lists.pop("api/namespaces/kube-system/pods")
        assert 2 * pages <= pods <= (2 if pages == 1 else 2 * pages + 2)
        others = ("resourceclaims", "deviceclasses", "resourceclaimtemplates", "devicetaintrules")
        wanted = {"apis/apps/daemonsets", *["apis/resource.k8s.io/" + plural for plural in others]}
        assert set(lists) == wanted
        assert page < 1000 or set(lists.values()) == {1}


def test_the_chart(role: Role, control_plane: ControlPlane) -> None:
    """Helm is asked only when the objects would be others; what the role removes is what made them."""
    assert "takes every setting." in role(**PLAIN).good()
    assert lacking(control_plane) == {}
    assert "secret/sh.helm.release.v1.dranet.v1" in role.made()
    assert role.changed(**PLAIN, log_verbosity=5) == 1
    again = role(**PLAIN, log_verbosity=5, verify=True, canary_nic="rdma99").good()
    assert "changed=0" in again
    assert "Not proven by a claim: There is no free RDMA NIC rdma99" in again
    arguments = control_plane.kubectl(
        "get", "daemonset", "dranet", "-n", "kube-system", "-o", "jsonpath={.spec.template.spec.containers[0].args}"
    )  # fmt: skip
    assert "--v=5" in json.loads(arguments)
    assert "--move-ib-interfaces=false" in json.loads(arguments)
    assert role.changed(state="absent", chart="") == 2
    assert role.made() == []


def test_helm_takes_the_values(control_plane: ControlPlane, tmp_path: Path) -> None:
    """What the schema is said to take, the real Helm takes; what it is said to refuse, Helm refuses (F96, F117)."""
    chart = str(control_plane.cluster.programs.chart)
    options = {**IMAGES, "chart": chart, "allow_without_ipvlan": True}
    taken = change_run.good(dranet_plan_info, **options, **PLAIN, node_selector={"a": "b"}, filter="true")
    assert taken["method"] == "chart"
    values = tmp_path / "values.json"
    values.write_text(json.dumps(taken["values"]))
    rendered = control_plane.cluster.helm("template", "dranet", chart, "--values", str(values))
    assert '"lab.test/dranet:v1.4.0"' in rendered
    assert "--filter=true" in rendered
    for key, value in (
        ("updateStrategy", {"type": "OnDelete"}),
        ("priorityClassName", "x"),
        ("extraVolumes", []),
    ):
        values.write_text(json.dumps({**taken["values"], key: value}))
        with pytest.raises(Exception, match=key):
            control_plane.cluster.helm("template", "dranet", chart, "--values", str(values))


def test_refused_before_anything_is_touched(role: Role, control_plane: ControlPlane) -> None:
    """A range over the service network; a node that is not there."""
    assert "overlaps the child range 10.96.0.0/12" in role(child_range="10.96.0.0/12").failed()
    assert role.made() == []
    failed = change_run.failure(
        dranet_check, stage="before", nodes=["gpu-9"], kubeconfig=str(control_plane.kubeconfig)
    )
    assert failed["code"] == "dranet_nodes_missing"


def test_not_removed_under_a_claim(control_plane: ControlPlane, cluster: Cluster) -> None:
    """A claim with devices keeps its driver."""
    options = {"stage": "unused", "kubeconfig": str(control_plane.kubeconfig)}
    assert change_run.good(dranet_check, **options)["problems"] == []
    trial = canary.Trial(canary.Target("sim-0001", "rdma0"), "default", "any-nic", "x")
    objects.present(cluster, [claims.device_class("any-nic"), canary.claim(trial), canary.pod(trial)])
    try:
        control_plane.kubectl("wait", "--for=condition=Ready", "pod/" + canary.NAME, "--timeout=60s")
        failed = change_run.failure(dranet_check, **options)
        assert "allocated to the claims default/rdma-k8s-canary" in failed["msg"]
    finally:
        canary_run.remove(cluster, "default", 30)
        control_plane.kubectl("delete", "deviceclass", "any-nic")


def kubelet(cluster: Cluster, messages: dict[str, tuple[str, Any]], stop: threading.Event) -> None:
    """Say for pods of simulated nodes what their containers would have said."""
    while not stop.wait(0.5):
        for name, (key, message) in messages.items():
            path = "/api/v1/namespaces/default/pods/" + name
            document = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"}}
            live = objects.find(cluster, document)
            if live is None or live["status"].get("phase") != "Running" or canary.told(live, key[0] == "i"):
                continue
            ended = {"exitCode": 0, "message": json.dumps(message)}
            status = {
                "name": "look",
                "image": "x",
                "imageID": "",
                "ready": True,
                "restartCount": 0,
                "state": {"terminated": ended},
            }
            cluster.send(
                "PATCH", path + "/status", {"status": {key: [status]}}, "application/merge-patch+json"
            )


def mac_of(cluster: Cluster, node: str, nic: str) -> str:
    """The MAC address that the slice of a node has for a NIC."""
    (found,) = [
        device["attributes"]["dra.net/mac"]["string"]
        for entry in cluster.items("/apis/resource.k8s.io/v1/resourceslices")
        for device in entry["spec"]["devices"]
        if entry["spec"]["nodeName"] == node and device["attributes"]["dra.net/ifName"]["string"] == nic
    ]
    return str(found)


@pytest.mark.parametrize("stays", [True, False])
def test_the_canary(control_plane: ControlPlane, cluster: Cluster, stays: bool) -> None:
    """It finds its NIC, tells what was seen on both sides, and leaves nothing."""
    parent = {"name": "rdma3", "mac": mac_of(cluster, "sim-0002", "rdma3")} if stays else {}
    child = {"name": "rdma3", "kind": "ipvlan", "address": "10.208.15.162"}
    messages = {canary.NAME: ("initContainerStatuses", child), canary.WITNESS: ("containerStatuses", parent)}
    stop = threading.Event()
    thread = threading.Thread(target=kubelet, args=(cluster, messages, stop))
    options = {
        "kubeconfig": str(control_plane.kubeconfig),
        "namespace": "default",
        "image": "x",
        "device_class": "canary-nic",
        "nodes": ["sim-0002"],
        "nic": "rdma3",
        "ready": False,
        "child_range": "10.208.0.0/12",
        "timeout": 30,
    }
    objects.present(cluster, [claims.device_class("canary-nic")])
    thread.start()
    try:
        if stays:
            found = change_run.good(dranet_canary, **options)
            assert (found["node"], found["child"], found["parent"]) == ("sim-0002", child, parent)
            assert found["changed"] is False
        else:
            assert change_run.failure(dranet_canary, **options)["code"] == "canary_parent_left"
    finally:
        stop.set()
        thread.join()
        control_plane.kubectl("delete", "deviceclass", "canary-nic")
    assert control_plane.kubectl("get", "pods,resourceclaims", "-n", "default", "-o", "name").split() == []


def test_a_canary_that_is_refused(control_plane: ControlPlane, cluster: Cluster) -> None:
    """The event of the kubelet is told; without a witness nothing is proven."""
    options = {
        "kubeconfig": str(control_plane.kubeconfig),
        "namespace": "default",
        "image": "x",
        "device_class": "canary-nic",
        "nodes": ["sim-0003"],
        "ready": False,
        "expect": "refused",
        "timeout": 10,
    }
    objects.present(cluster, [claims.device_class("canary-nic")])
    control_plane.kubectl("annotate", "node", "sim-0003", "rdma-lab/faults=prepare", "--overwrite")
    try:
        planned = change_run.good(dranet_canary, **options, _ansible_check_mode=True)
        assert (planned["node"], planned["nic"]) == ("sim-0003", "rdma0")
        failed = change_run.failure(dranet_canary, **options)
        assert failed["code"] == "canary_no_witness"
        assert failed["details"]["refusal"]
        assert "neither served nor refused" not in failed["msg"]

        control_plane.kubectl("annotate", "node", "sim-0003", "rdma-lab/faults=", "--overwrite")
        later = change_run.failure(dranet_canary, **options)
        assert not later["details"]["refusal"], "the event of the canary before was taken for its own"
    finally:
        control_plane.kubectl("annotate", "node", "sim-0003", "rdma-lab/faults-")
        control_plane.kubectl("delete", "deviceclass", "canary-nic")
