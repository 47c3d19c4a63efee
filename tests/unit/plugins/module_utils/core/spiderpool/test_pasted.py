# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is pasted from somewhere: objects, values of charts, addresses. The guide's own has a test of its own."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.core.spiderpool import pasted
from ansible_collections.rdma.k8s.plugins.module_utils.core.spiderpool.issue import Issue

AROUND = pasted.Surroundings("spidernet.io", ["spiderpool/gpu1"], ["spidernet.io/gpu1"], ["w1"])


def codes(issues: Iterable[Issue]) -> list[tuple[str, str]]:
    return [(issue.code, issue.at) for issue in issues]


def told(*documents: dict[str, Any], around: pasted.Surroundings = AROUND) -> list[tuple[str, str, str]]:
    return [(entry.subject, entry.issue.code, entry.issue.at) for entry in pasted.judge(documents, around)]


def pod(annotations: Any = None, limits: Any = None, **spec: Any) -> dict[str, Any]:
    container = {"name": "c", "resources": {"limits": limits or {}}}
    metadata = {"name": "p", "namespace": "train", "annotations": annotations or {}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"containers": [container], **spec},
    }


@pytest.mark.parametrize(
    "networks",
    ["spiderpool/gpu1", "spiderpool/gpu1@net1", '[{"name":"gpu1","namespace":"spiderpool"}]', "[not json"],
)
def test_a_pod_whose_networks_are_there(networks: str) -> None:
    """What cannot be read is told by the rules of workloads."""
    given = {pasted.NETWORKS: networks, pasted.DEFAULT_NETWORK: "kube-system/calico"}
    assert told(pod(given, {"spidernet.io/gpu1": 1, "nvidia.com/gpu": 8})) == []


@pytest.mark.parametrize("networks", ["gpu1", '[{"name":"gpu1"}]', "spiderpool/gpu1,other/gpu1"])
def test_a_pod_whose_networks_are_not_there(networks: str) -> None:
    """S227: without a namespace that of the pod is meant."""
    given = {pasted.NETWORKS: networks, pasted.DEFAULT_NETWORK: "kube-system/calico"}
    assert [entry[1] for entry in told(pod(given))] == ["network-missing"]


def affinity(*values: Any, key: str = "kubernetes.io/hostname", operator: str = "In") -> dict[str, Any]:
    rule = {"key": key, "operator": operator, "values": list(values)}
    term = {"nodeSelectorTerms": [{"matchExpressions": [rule]}]}
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": term}}}


def test_an_affinity_to_no_node() -> None:
    """S243."""
    assert [entry[1] for entry in told(pod(**affinity("worker1", "worker2")))] == ["affinity-no-node"]
    assert told(pod(**affinity("worker1", "w1"))) == []
    assert told(pod(**affinity("worker1", key="zone"))) == []
    assert told(pod(**affinity("worker1", operator="NotIn"))) == []
    assert told(pod(**affinity("worker1")), around=AROUND._replace(nodes=None)) == []


def test_an_object_that_is_there_twice() -> None:
    config_map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "b"}}
    assert told(config_map, config_map) == [("ConfigMap b/a", "object-repeated", "metadata.name")]
    priority = {"apiVersion": "x/v1", "kind": "Thing", "metadata": {"name": "a"}}
    assert told(priority, priority) == [("Thing a", "object-repeated", "metadata.name")]


def test_keys_of_annotations() -> None:
    """S236: a blank in a key; where there are two words the right form is told."""
    document = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "a", "annotations": {"ipam.spidernet.io ippools": "x", "a/b": "y", "no!": "z"}},
    }
    issues = [entry.issue for entry in pasted.judge([document], AROUND)]
    assert [dict(issue.extra) for issue in issues] == [{"canonical": "ipam.spidernet.io/ippools"}, {}]


@pytest.mark.parametrize(
    ("name", "data", "found"),
    [
        ("spiderpool-conf", {"conf.yml": "ipamUnixSocketPath: x"}, []),
        (
            "spiderpool-conf",
            {"conf.yml": "namespacesInclude: [a]"},
            [("inject-filters-elsewhere", "data.conf.yml")],
        ),
        ("spiderpool-config", {}, [("configmap-unknown", "metadata.name")]),
        ("other", {"conf.yml": "namespacesInclude: [a]"}, []),
    ],
)
def test_config_maps(name: str, data: dict[str, str], found: list[tuple[str, str]]) -> None:
    """S166, S168, S235."""
    document = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}
    assert [entry[1:] for entry in told(document)] == found


UFM = {"UFM_USERNAME": "a", "UFM_PASSWORD": "b", "UFM_ADDRESS": "c"}


def test_the_secret_of_ib_kubernetes() -> None:
    """S146: it is read in kube-system, and without the certificate UFM is not verified."""
    good = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "ib-kubernetes-ufm-secret", "namespace": "kube-system"},
        "data": {**UFM, "UFM_CERTIFICATE": "d"},
    }
    assert told(good) == []
    other = {**good, "metadata": {"name": "ib-kubernetes-ufm-secret", "namespace": "spiderpool"}, "data": UFM}
    assert [entry[1] for entry in told(other)] == ["ufm-secret-namespace", "ufm-not-verified"]
    assert told({**other, "metadata": {"name": "mine"}}) == []


@pytest.mark.parametrize("labels", [{}, {"kubernetes.io/os": "linux"}, {"kubernetes.io/arch": "amd64"}])
def test_a_selector_that_fits_all(labels: dict[str, str]) -> None:
    """S244."""
    assert codes(pasted.selector(labels, "x")) == [("nodeselector-too-broad", "x")]
    assert codes(pasted.selector({**labels, "rdma": "true"}, "x")) == []


GOOD = {
    "sriov": {"install": True, "operatorConfig": {"disableDrain": False}},
    "ipam": {"enableGatewayDetection": True},
    "spiderpoolController": {"podResourceInject": {"enabled": True}},
}


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({}, []),
        ({"sriov": {"operatorConfig": {"disableDrain": False}}}, [("sriov-not-installed", "sriov.install")]),
        ({"sriov": {"install": True}}, [("drain-disabled", "sriov.operatorConfig.disableDrain")]),
        (
            {"sriov": {**GOOD["sriov"], "resourcePrefix": "other.io"}},
            [("resource-prefix-differs", "sriov.resourcePrefix")],
        ),
        ({"ipam": {}}, [("gateway-detection-off", "ipam.enableGatewayDetection")]),
        (
            {"spiderpoolController": {}},
            [("inject-disabled", "spiderpoolController.podResourceInject.enabled")],
        ),
    ],
)
def test_values_of_the_chart(change: dict[str, Any], found: list[tuple[str, str]]) -> None:
    """S95, S98, S99, S123, S158."""
    assert codes(pasted.values({**GOOD, **change}, True, True, "spidernet.io")) == found


def test_values_for_those_who_want_no_drain_and_no_injection() -> None:
    values = {"sriov": {"install": True}, "ipam": GOOD["ipam"]}
    assert codes(pasted.values(values, False, False, "spidernet.io")) == []


def test_expressions() -> None:
    """S245."""
    assert codes(pasted.expressions(["a.b=true", "a.b=", "a.b", "=x"])) == [
        ("set-without-value", "a.b"),
        ("set-without-value", "=x"),
    ]
    for entry in ("a[0]=1", "a={1,2}", "a=1,b=2", "a\\.b=1"):
        assert codes(pasted.expressions([entry])) == [("set-unsupported", entry)]


@pytest.mark.parametrize(
    ("address", "found"),
    [
        ("https://spidernet-io.github.io/spiderpool", []),
        ("oci://ghcr.io/spidernet-io/spiderpool", []),
        ("charts/spiderpool.tgz", []),
        ("https://github.com/projectcalico/calico/blob/v3.30.0/manifests/calico.yaml", ["source-is-a-page"]),
        ("https://raw.githubusercontent.com/projectcalico/calico/master/calico.yaml", ["source-not-pinned"]),
        ("http://github.com/x", ["source-not-encrypted"]),
        ("https://user:word@mirror.example:8443/x", ["source-unknown-host"]),
        ("https://mirror.example", ["source-unknown-host"]),
    ],
)
def test_sources(address: str, found: list[str]) -> None:
    """S246."""
    assert [code for code, _at in codes(pasted.sources([address]))] == found


def test_targets() -> None:
    """S144, S240."""
    pools = [{"spec": {"subnet": "172.16.11.0/24"}}, {"spec": {"subnet": "nonsense"}}, {}]
    assert codes(pasted.targets(["172.16.11.7", "172.91.0.115", "worker1"], pools)) == [
        ("target-outside-pools", "172.91.0.115"),
        ("target-syntax", "worker1"),
    ]


def test_what_is_made_and_not_used() -> None:
    """S227."""
    policy = {
        "apiVersion": "sriovnetwork.openshift.io/v1",
        "kind": "SriovNetworkNodePolicy",
        "metadata": {"name": "gpu2", "namespace": "spiderpool"},
        "spec": {"resourceName": "gpu2", "nodeSelector": {"rdma": "true"}},
    }
    pool = {
        "apiVersion": "spiderpool.spidernet.io/v2beta1",
        "kind": "SpiderIPPool",
        "metadata": {"name": "net2"},
    }
    assert told(policy, pool) == [
        ("SriovNetworkNodePolicy spiderpool/gpu2", "resource-without-network", "spec.resourceName"),
        ("SpiderIPPool net2", "ippool-unused", "metadata.name"),
    ]
