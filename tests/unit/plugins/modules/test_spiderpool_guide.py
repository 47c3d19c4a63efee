# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The guide, pasted as variables and manifests: the list of its mistakes with the finding that each produces.

Nothing is applied: the module has no cluster here, and with one it never writes.
"""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.core.snapshot import NodeSnapshot
from ansible_collections.rdma.k8s.plugins.module_utils.core.spiderpool import pasted, pod_network
from ansible_collections.rdma.k8s.plugins.modules import spiderpool_plan_info
from ansible_collections.rdma.k8s.tests.support import change_run, spiderpool_guide as guide

MANIFEST_FINDINGS = [
    ("S219", "SpiderMultusConfig spiderpool/gpu1-ib", "ippool-missing", "spec.ibsriov.ippools.ipv4[0]"),
    ("S220", "SpiderIPPool gpu1-net11", "subnet-not-canonical", "spec.subnet"),
    (
        "S226",
        "SriovNetworkNodePolicy spiderpool/gpu2-nic-policy",
        "rootdevice-overlap",
        "spec.nicSelector.rootDevices[0]",
    ),
    ("S227", "DaemonSet default/rdma-tools", "network-missing", "k8s.v1.cni.cncf.io/networks"),
    ("S227 resources", "DaemonSet default/rdma-tools", "resource-unknown", "resources.limits"),
    (
        "S227 networks",
        "SriovNetworkNodePolicy spiderpool/gpu2-nic-policy",
        "resource-without-network",
        "spec.resourceName",
    ),
    ("S228", "SpiderMultusConfig spiderpool/gpu1-sriov", "field-removed", "spec.sriov.enableRdma"),
    (
        "S228 isolation",
        "SpiderMultusConfig spiderpool/gpu1-sriov",
        "exclusive-without-isolation",
        "spec.sriov.rdmaIsolation",
    ),
    ("S229", "SpiderMultusConfig spiderpool/gpu1-inject", "field-unknown", "spec.ippools"),
    ("S229 injection", "Deployment default/train", "inject-ippools-missing", "spiderpool/gpu1-inject"),
    ("S230", "SpiderMultusConfig spiderpool/gpu1-inject", "resource-unknown", "spec.sriov.resourceName"),
    ("S230 pods", "Deployment default/train", "resource-unknown", "resources.limits"),
    ("S231", "SpiderMultusConfig spiderpool/ib-sriov", "pkey-type", "spec.ibsriov.pkey"),
    (
        "S231 enforced",
        "SpiderMultusConfig spiderpool/ib-sriov",
        "pkey-not-enforced",
        "spec.ibsriov.enableIbKubernetes",
    ),
    ("S232", "Secret kube-system/ib-kubernetes-ufm-secret", "ufm-key-missing", "UFM_USERNAME"),
    ("S232 unknown", "Secret kube-system/ib-kubernetes-ufm-secret", "ufm-key-unknown", "UFM_USER"),
    (
        "S233",
        "Secret kube-system/ib-kubernetes-ufm-secret",
        "variable-unexpanded",
        "stringData.UFM_CERTIFICATE",
    ),
    ("S234", "DaemonSet default/ib-kubernetes", "ib-kubernetes-daemonset", "kind"),
    ("S235", "ConfigMap spiderpool/spiderpool-config", "configmap-unknown", "metadata.name"),
    ("S235 filters", "ConfigMap spiderpool/spiderpool-config", "inject-filters-elsewhere", "data.conf.yml"),
    ("S236", "Deployment default/train", "annotation-key-invalid", "annotations"),
    ("S243", "DaemonSet default/rdma-tools", "default-network-missing", "annotations"),
    (
        "S244",
        "SriovNetworkNodePolicy spiderpool/gpu1-nic-policy",
        "nodeselector-too-broad",
        "spec.nodeSelector",
    ),
    ("S250", "SpiderMultusConfig spiderpool/gpu1-ib", "field-unknown", "spec.ibsriov.mtu"),
    ("S251", "SriovNetworkNodePolicy spiderpool/gpu1-nic-policy", "linktype-invalid", "spec.linkType"),
    (
        "S251 variable",
        "SriovNetworkNodePolicy spiderpool/gpu1-nic-policy",
        "variable-unexpanded",
        "spec.linkType",
    ),
]
VARIABLE_FINDINGS = [
    ("S220", "SpiderIPPool gpu1sriov-net", "subnet-not-canonical", "spec.subnet"),
    ("S221", "rails", "rails-share-subnet", "subnet"),
    ("S226", "rails", "rootdevice-overlap", "pci"),
    ("S226 short", "rail 3", "rail-pci-syntax", "pci"),
    ("S231", "rail 3", "pkey-type", "pkey"),
    ("S232", "UFM", "ufm-key-missing", "UFM_USERNAME"),
    ("S237", "chart values", "drain-disabled", "sriov.operatorConfig.disableDrain"),
    ("S238", "chart values", "gateway-detection-off", "ipam.enableGatewayDetection"),
    (
        "S158",
        "chart values",
        "inject-disabled",
        "spiderpoolController.podResourceInject.enabled",
    ),
    ("S240", "targets", "target-outside-pools", "172.91.0.115"),
    ("S244", "settings", "nodeselector-too-broad", "node_selector"),
    ("S245", "chart values", "set-without-value", "spiderpoolAgent.prometheus.enabled"),
    (
        "S246",
        "sources",
        "source-is-a-page",
        guide.ELSEWHERE + "/projectcalico/calico/blob/master/manifests/calico.yaml",
    ),
    ("S246 host", "sources", "source-unknown-host", guide.ELSEWHERE + "/Mellanox/ib-kubernetes.git"),
    ("S250", "rail 3", "rail-mtu-infiniband", "mtu"),
    ("S251", "rail 1", "variable-unexpanded", "link_type"),
    ("S251 type", "rail 1", "rail-linktype", "link_type"),
    ("S252 range", "SpiderIPPool eno3np2-sriov-net", "range-outside-subnet", "spec.ips[0]"),
    ("S252 address", "SpiderIPPool eno3np2-sriov-net", "gateway-syntax", "spec.gateway"),
    (
        "S252 name",
        "SriovNetworkNodePolicy spiderpool/eno3np2-sriov",
        "resource-name-invalid",
        "spec.resourceName",
    ),
]
POD_FINDINGS = [
    ("S222", "net1", "prefix-mismatch"),
    ("S223", "net1", "broadcast-mismatch"),
    ("S223 second", "net2", "broadcast-mismatch"),
    ("S224", "net8", "table-default-mismatch"),
    ("S224 first", "net1", "table-default-mismatch"),
    ("S225", "rules", "rule-priority-duplicate"),
]


@pytest.fixture(scope="module")
def manifests() -> set[tuple[str, str, str]]:
    """What is said of the manifests alone, beside a good table."""
    found = change_run.good(
        spiderpool_plan_info,
        manifests=guide.MANIFESTS,
        rails=[],
        fail_on_problems=False,
        node_selector={"r": "t"},
    )
    return {(entry["subject"], entry["code"], entry["at"]) for entry in found["findings"]}


@pytest.fixture(scope="module")
def variables() -> set[tuple[str, str, str]]:
    """What is said of the variables alone."""
    found = change_run.good(spiderpool_plan_info, **guide.VARIABLES, fail_on_problems=False)
    return {(entry["subject"], entry["code"], entry["at"]) for entry in found["findings"]}


@pytest.mark.parametrize(
    "finding", [entry[1:] for entry in MANIFEST_FINDINGS], ids=[entry[0] for entry in MANIFEST_FINDINGS]
)
def test_a_mistake_in_a_manifest(manifests: set[tuple[str, str, str]], finding: tuple[str, str, str]) -> None:
    """S219 to S251, one of the guide's objects each."""
    assert finding in manifests


@pytest.mark.parametrize(
    "finding", [entry[1:] for entry in VARIABLE_FINDINGS], ids=[entry[0] for entry in VARIABLE_FINDINGS]
)
def test_a_mistake_in_a_variable(variables: set[tuple[str, str, str]], finding: tuple[str, str, str]) -> None:
    """S220 to S252, one setting each."""
    assert finding in variables


def test_a_node_named_in_the_test_that_the_cluster_has_not() -> None:
    """S243: it can be told as soon as the nodes are known."""
    around = pasted.Surroundings("spidernet.io", nodes=["ai-10-1-16-1", "ai-10-1-16-2"])
    told = pasted.judge([guide.TEST_PODS], around)
    assert "affinity-no-node" in [entry.issue.code for entry in told]


@pytest.mark.parametrize(
    "finding", [entry[1:] for entry in POD_FINDINGS], ids=[entry[0] for entry in POD_FINDINGS]
)
def test_a_mistake_in_the_output_of_a_pod(finding: tuple[str, str]) -> None:
    """S222 to S225: the guide's outputs, judged as those of a running pod."""
    issues = pod_network.judge(pod_network.of_plain(guide.POD), 8, isolated=False)
    assert finding in [(issue.at, issue.code) for issue in issues]


def test_a_card_that_is_another_one_by_its_class() -> None:
    """S242: Ethernet by its interface, InfiniBand by its class; snapshots of the nodes tell both."""
    node = {"name": "w1", "pci": ["0000:86:00.0 15b3:1017 0207 mlx5_core 0 vfs 0/16"], "devices": []}
    assert NodeSnapshot.from_dict(node).pci
    found = change_run.good(
        spiderpool_plan_info,
        rails=[{"pci": "0000:86:00.0", "subnet": "172.16.11.0/24", "link_type": "eth"}],
        node_selector={"rdma": "true"},
        snapshots=[node],
        fail_on_problems=False,
    )
    assert [(entry["subject"], entry["code"]) for entry in found["findings"]] == [
        ("w1", "link-layer-conflict")
    ]


def test_all_of_it_is_refused_at_once() -> None:
    """One error with every finding; its text begins with what was not done."""
    refused = change_run.failure(spiderpool_plan_info, **guide.VARIABLES, manifests=guide.MANIFESTS)
    assert refused["code"] == "spiderpool_plan_wrong"
    assert refused["msg"].startswith("Nothing was changed, because this is wrong: ")
    told = {entry["code"] for entry in refused["details"]["findings"]}
    wanted = {entry[2] for entry in [*MANIFEST_FINDINGS, *VARIABLE_FINDINGS]}
    assert wanted - told <= {"resource-without-network"}  # the table makes the networks that were missing
    assert "12345" not in str(refused)


def test_the_right_table_has_no_finding() -> None:
    """The same cluster, as it was meant: a /24 for each rail, two functions of a card, a label of its own."""
    rails = [
        {
            "pci": "0000:86:00.%d" % (rail - 1),
            "subnet": "172.16.%d.0/24" % (10 + rail),
            "gateway": "172.16.%d.254" % (10 + rail),
        }
        for rail in (1, 2)
    ]
    found: dict[str, Any] = change_run.good(
        spiderpool_plan_info,
        rails=rails,
        link_type="eth",
        mtu=8000,
        vfs=12,
        node_selector={"rdma": "true"},
        install=True,
        inject="rdma-network",
        test_image="x/rdma-tools:1",
        default_network="kube-system/calico",
        set_expressions=["spiderpoolAgent.prometheus.enabled=true"],
        sources=["https://github.com/projectcalico/calico/releases/download/v3.30.0/calico.yaml"],
        targets=["172.16.12.10"],
        ufm_keys=["UFM_USERNAME", "UFM_PASSWORD", "UFM_ADDRESS", "UFM_CERTIFICATE"],
    )
    assert found["findings"] == []
    assert found["changed"] is False
    assert len(found["objects"]) == 6
    assert found["networks"] == ["spiderpool/gpu1sriov-eth", "spiderpool/gpu2sriov-eth"]
    (pods,) = found["test"]
    assert pods["spec"]["template"]["metadata"]["annotations"] == {
        "v1.multus-cni.io/default-network": "kube-system/calico",
        "cni.spidernet.io/rdma-resource-inject": "rdma-network",
    }


def test_the_values_for_the_gpu_operator_are_told() -> None:
    """S41: whoever installs it makes a file of them."""
    found = change_run.good(spiderpool_plan_info, fail_on_problems=False)
    assert found["gpu_operator_values"] == {
        "driver": {"rdma": {"enabled": True, "useHostMofed": True}},
        "gdrcopy": {"enabled": True},
    }
