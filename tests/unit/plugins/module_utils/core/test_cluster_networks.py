# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where the whole networks of pods and services are named (F50)."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.core import cluster_networks as networks
from ansible_collections.rdma.k8s.plugins.module_utils.core.cluster_snapshot import (
    ClusterNode,
    ClusterSnapshot,
    NetworkRange,
)
from ansible_collections.rdma.k8s.plugins.module_utils.core.oke.networks import parse
from ansible_collections.rdma.k8s.plugins.module_utils.core.snapshot import ReadError
from ansible_collections.rdma.k8s.plugins.modules import child_range_check
from ansible_collections.rdma.k8s.tests.support import module_run

KUBEADM = "networking:\n  podSubnet: 10.244.0.0/16,fd00:1::/56\n  serviceSubnet: 10.96.0.0/16\n"


def daemonset(name: str, config_map: str = "", **container: Any) -> dict[str, Any]:
    """A DaemonSet that mounts a ConfigMap."""
    volumes = [
        {"name": "v", "configMap": {"name": config_map}},
        {"name": "w", "configMap": {"name": "other"}},
    ]
    spec = {"template": {"spec": {"containers": [container], "volumes": volumes}}}
    return {"kind": "DaemonSet", "metadata": {"namespace": "kube-system", "name": name}, "spec": spec}


def config_map(name: str, **data: str) -> dict[str, Any]:
    """A ConfigMap; the keys have underscores for dashes and dots."""
    keys = {"net_conf": "net-conf.json", "config_conf": "config.conf"}
    renamed = {keys.get(key, key.replace("_", "-")): value for key, value in data.items()}
    return {"kind": "ConfigMap", "metadata": {"namespace": "kube-system", "name": name}, "data": renamed}


@pytest.mark.parametrize(
    ("content", "cidrs"),
    [
        (daemonset("kube-proxy", args=["--cluster-cidr=10.244.0.0/16"]), ["10.244.0.0/16"]),
        (daemonset("kube-proxy", command=["kube-proxy", "--cluster-cidr", "10.0.0.0/9"]), ["10.0.0.0/9"]),
        (daemonset("kube-proxy", args=["--cluster-cidr"]), []),
        (daemonset("other", args=["--cluster-cidr=10.244.0.0/16"]), []),
        (
            config_map("kube-proxy", config_conf="clusterCIDR: 10.244.0.0/16, fd00::/48\n"),
            ["10.244.0.0/16", "fd00::/48"],
        ),
        (config_map("kube-proxy", config_conf='clusterCIDR: ""\n'), []),
        (config_map("kube-proxy", config_conf="a: [\n"), []),
        (config_map("kube-proxy", config_conf="just words"), []),
        (
            config_map(
                "kube-flannel-cfg", net_conf='{"Network": "10.244.0.0/16", "IPv6Network": "fd00::/56"}'
            ),
            ["10.244.0.0/16", "fd00::/56"],
        ),
        (config_map("kube-flannel-cfg", net_conf="{"), []),
        (config_map("kube-flannel-cfg", net_conf="[]"), []),
        (
            config_map("cilium-config", cluster_pool_ipv4_cidr="10.1.0.0/16 10.2.0.0/16"),
            ["10.1.0.0/16", "10.2.0.0/16"],
        ),
        (
            {
                "kind": "ConfigMap",
                "metadata": {"name": "kubeadm-config"},
                "data": {"ClusterConfiguration": KUBEADM},
            },
            ["10.244.0.0/16", "fd00:1::/56"],
        ),
        ({"kind": "IPPool", "metadata": {"name": "p"}, "spec": {"cidr": "10.3.0.0/16"}}, ["10.3.0.0/16"]),
        (
            {"kind": "IPPool", "metadata": {"name": "p"}, "spec": {"cidr": "10.3.0.0/16", "disabled": True}},
            [],
        ),
        (config_map("kube-flannel-cfg", net_conf='{"Network": "10.244.0.0/33"}'), []),
        ({}, []),
    ],
)
def test_pod_ranges(content: dict[str, Any], cidrs: list[str]) -> None:
    assert [found.cidr for found in networks.pod_ranges(content)] == cidrs


@pytest.mark.parametrize(
    ("content", "ranges"),
    [
        (
            {
                "kind": "ServiceCIDR",
                "metadata": {"name": "kubernetes"},
                "spec": {"cidrs": ["10.96.0.0/16", "fd01::/112", 1]},
            },
            [
                NetworkRange("10.96.0.0/16", "servicecidr kubernetes"),
                NetworkRange("fd01::/112", "servicecidr kubernetes"),
            ],
        ),
        (
            {
                "kind": "ConfigMap",
                "metadata": {"namespace": "kube-system", "name": "kubeadm-config"},
                "data": {"ClusterConfiguration": KUBEADM},
            },
            [NetworkRange("10.96.0.0/16", "configmap kube-system/kubeadm-config")],
        ),
        ({"kind": "ServiceCIDR", "spec": {"cidrs": "10.96.0.0/16"}}, []),
    ],
)
def test_service_ranges(content: dict[str, Any], ranges: list[NetworkRange]) -> None:
    assert networks.service_ranges(content) == ranges


def test_sources_are_named() -> None:
    (found,) = networks.pod_ranges(daemonset("kube-proxy", args=["--cluster-cidr=10.244.0.0/16"]))
    assert found.source == "daemonset kube-system/kube-proxy"


def test_which_config_maps_are_read() -> None:
    """Only those that are mounted, by name, so that the right to list them is not needed; kube-proxy's is the last."""
    found = networks.config_maps(
        [
            daemonset("kube-proxy", "kube-proxy"),
            daemonset("kube-flannel-ds", "kube-flannel-cfg"),
            daemonset("kube-flannel-other", "kube-flannel-cfg"),
            daemonset("cilium"),
            daemonset("dranet", "dranet-settings"),
            {},
        ]
    )
    assert [(entry.namespace, entry.name) for entry in found] == [
        ("kube-system", "kube-flannel-cfg"),
        ("kube-system", "cilium-config"),
        ("kube-system", "kube-proxy"),
    ]


def test_a_network_stands_once_with_who_named_it_first() -> None:
    first, second, other = NetworkRange("a", "x"), NetworkRange("a", "y"), NetworkRange("b", "y")
    assert networks.merged([first, second, other]) == (first, other)


# --- for the checks of a child range ---------------------------------------------------------------------------------


def snapshot(**more: Any) -> ClusterSnapshot:
    """A snapshot of which the networks were asked for."""
    return ClusterSnapshot("c", subsets=("nodes", "networks"), **more)


def test_the_document_of_networks() -> None:
    """Both are whole (F50), so the blocks of the nodes say nothing new; it is read again as it was written."""
    found = networks.document(
        snapshot(
            nodes=(ClusterNode("n1", pod_cidrs=("10.244.1.0/24",)),),
            pod_cidrs=(NetworkRange("10.244.0.1/16", "x"), NetworkRange("fd00::/56", "x")),
            service_cidrs=(NetworkRange("10.96.0.0/16", "servicecidr kubernetes"),),
        )
    )
    assert [(entry.kind, str(entry.network), entry.sources) for entry in found.networks] == [
        ("pod", "10.244.0.0/16", ("x",)),
        ("pod", "fd00::/56", ("x",)),
        ("service", "10.96.0.0/16", ("servicecidr kubernetes",)),
    ]
    assert found.unread == ()
    assert parse(found.to_dict()) == found


def test_blocks_of_nodes_are_in_use_but_not_all() -> None:
    nodes = [
        ClusterNode("n%d" % at, pod_cidrs=("10.244.%d.0/24" % at, "fd00:%d::/64" % at)) for at in range(4)
    ]
    nodes.append(ClusterNode("odd", pod_cidrs=("not a network",)))
    found = networks.document(
        snapshot(nodes=tuple(nodes), service_cidrs=(), errors=(ReadError("pod CIDRs", "Nobody says it."),))
    )
    assert [str(entry.network) for entry in found.of_version(4)] == ["10.244.0.0/22"]
    assert len(found.of_version(6)) == 4
    (unread,) = found.unread
    assert unread.code == "cluster_networks_unknown"
    assert unread.message == "The whole pod network of the cluster c is not known: Nobody says it."


def test_networks_that_were_not_asked_for() -> None:
    found = networks.document(ClusterSnapshot("c"))
    assert found.networks == ()
    assert ["was not read" in entry.message for entry in found.unread] == [True, True]


def test_a_child_range_is_checked_against_a_cluster() -> None:
    """A service network that the driver cannot see (F50) is in the way."""
    around = networks.document(snapshot(service_cidrs=(NetworkRange("10.209.0.0/16", "servicecidr s"),)))
    result = module_run.good(
        child_range_check,
        child_range="10.208.0.0/12",
        nodes=[{"name": "n1", "address": "10.140.77.19", "subnet": "10.140.64.0/19"}],
        networks=around.to_dict(),
    )
    (problem,) = result["problems"]
    assert problem["code"] == "network_conflict"
    assert "servicecidr s" in problem["message"]
    assert any("pod network" in sentence for sentence in result["not_known"])
