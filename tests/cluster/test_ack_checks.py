# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The area ACK over what a real API server tells of Lingjun nodes and of the plugin's DaemonSet."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.cluster.client import Cluster, connect
from ansible_collections.rdma.k8s.plugins.module_utils.cluster.collect import collect
from ansible_collections.rdma.k8s.plugins.module_utils.cluster.sources import LiveSource
from ansible_collections.rdma.k8s.plugins.module_utils.core.ack import names
from ansible_collections.rdma.k8s.plugins.module_utils.core.checks.judge import judge
from ansible_collections.rdma.k8s.plugins.module_utils.core.checks.policy import Policy
from ansible_collections.rdma.k8s.plugins.module_utils.core.cluster_snapshot import ClusterSnapshot
from ansible_collections.rdma.k8s.tests.support.lingjun_cluster import Lingjun

from .conftest import SIMULATED, ControlPlane

SUBSETS = ("nodes", "drivers", "networks")


@pytest.fixture(scope="module")
def cluster(control_plane: ControlPlane) -> Cluster:
    """Calls as the administrator."""
    return connect(str(control_plane.kubeconfig))


@pytest.fixture(scope="module")
def lab(control_plane: ControlPlane, cluster: Cluster) -> Iterator[Lingjun]:
    """Two Lingjun nodes beside two others, with a plugin on all four."""
    nodes = sorted(node["metadata"]["name"] for node in cluster.items("/api/v1/nodes"))
    with Lingjun(cluster, nodes[:2], control_plane.cluster.directory).with_plugin(SIMULATED) as found:
        yield found


def judged(cluster: Cluster) -> dict[str, tuple[str, str]]:
    """Status and message of each check of the cluster, as it is now."""
    recorded = json.dumps(collect(LiveSource(cluster), "lab", SUBSETS).to_dict(True))
    snapshot = ClusterSnapshot.from_dict(json.loads(recorded))
    document = judge(
        [], Policy.from_dict({"target": "ack_lingjun"}), "2026-03-02T09:05:00Z", cluster=snapshot
    )
    return {
        finding.check[9:]: (finding.status, finding.message)
        for finding in document.findings
        if finding.node == "lab"
    }


def test_what_is_good(cluster: Cluster, lab: Lingjun) -> None:
    """A10, A12, A50: counts of the real controller, versions, networks. Only that it is young is told as unclear."""
    found = judged(cluster)
    good = {
        check: status for check, (status, _message) in found.items() if check not in ("003", "013", "014")
    }
    assert good == dict.fromkeys(("001", "002", "007", "011", "012", "015", "017", "018"), "pass"), found
    assert found["001"][1] == "A ready pod on each of 2 Lingjun nodes."
    status, message = found["003"]
    assert status == "unknown", message
    assert "before the amounts were read" in message


def test_a_plugin_that_crashes(cluster: Cluster, lab: Lingjun) -> None:
    """A52, A98: the uncovered node is named, with what its pod waits for."""
    name = lab.crash(lab.nodes[1])
    status, message = judged(cluster)["001"]
    assert status == "fail"
    told = "%s: no ready pod of the plugin runs there (%s: CrashLoopBackOff, last Error, exit code 1)"
    assert told % (lab.nodes[1], name) in message
    pods = "/api/v1/namespaces/%s/pods" % names.NAMESPACE
    pod = cluster.get("%s/%s" % (pods, name))
    cluster.delete({"apiVersion": "v1", "kind": "Pod", **pod})
    lab.wait_for_plugin(SIMULATED)


def test_tokens_and_labels(cluster: Cluster, lab: Lingjun) -> None:
    """A13, A55: a ready pod with nothing allocatable, and a node that lost its label."""
    first, second = lab.nodes
    lab.tokens(first, "1k", "0")
    lab.label(second, **{names.WORKER_LABEL: None})
    try:
        found = judged(cluster)
    finally:
        lab.tokens(first, "1k", "1k")
        lab.label(second, **{names.WORKER_LABEL: names.WORKER_VALUE})
    assert found["002"][0] == "fail"
    assert "%s: none of 1000 rdma/hca is allocatable" % first in found["002"][1]
    assert found["003"][0] == "fail"
    assert found["011"][0] == "fail"
    assert second in found["011"][1]


def test_a_taint_that_the_plugin_does_not_tolerate(
    control_plane: ControlPlane, cluster: Cluster, lab: Lingjun
) -> None:
    """A13: tolerations of the DaemonSet against the taints of the nodes."""
    patch = {
        "spec": {"template": {"spec": {"tolerations": [{"key": names.TAINT_KEY, "operator": "Exists"}]}}}
    }
    where = ("ds", names.DAEMONSET, "-n", names.NAMESPACE)
    control_plane.kubectl("taint", "node", lab.nodes[0], "dedicated=train:NoSchedule")
    try:
        control_plane.kubectl("patch", *where, "--type=merge", "-p", json.dumps(patch))
        status, message = judged(cluster)["012"]
    finally:
        control_plane.kubectl("taint", "node", lab.nodes[0], "dedicated-")
        control_plane.kubectl("patch", *where, "--type=merge", "-p", json.dumps(_everything()))
        lab.wait_for_plugin(SIMULATED)
    assert status == "fail"
    assert "dedicated=train:NoSchedule" in message


def _everything() -> dict[str, object]:
    return {"spec": {"template": {"spec": {"tolerations": [{"operator": "Exists"}]}}}}
