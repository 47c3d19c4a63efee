# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where the whole networks of pods and services are named (F50)."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.core import cluster_networks as networks
from ansible_collections.rdma.k8s.plugins.module_utils.core.cluster_snapshot import NetworkRange

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
    """Only those that a network plugin mounts, by name: the right to list them is not needed."""
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
        ("kube-system", "kube-proxy"),
        ("kube-system", "kube-flannel-cfg"),
        ("kube-system", "cilium-config"),
    ]


def test_a_network_stands_once_with_who_named_it_first() -> None:
    first, second, other = NetworkRange("a", "x"), NetworkRange("a", "y"), NetworkRange("b", "y")
    assert networks.merged([first, second, other]) == (first, other)
