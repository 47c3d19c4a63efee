# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a reader of Spiderpool's guide ends up with: its settings as variables, its objects as manifests.

The objects are written after what the guide's objects say (facts S219 to S252), with all of its mistakes.
"""

from __future__ import annotations

from typing import Any

SPIDER, SRIOV = "spiderpool.spidernet.io/v2beta1", "sriovnetwork.openshift.io/v1"
ELSEWHERE = "https://mirror.example.net"
"""In the place of the guide's host, which belongs to none of the projects."""


def _object(api: str, kind: str, name: str, spec: Any, **metadata: Any) -> dict[str, Any]:
    return {"apiVersion": api, "kind": kind, "metadata": {"name": name, **metadata}, "spec": spec}


def policy(number: int) -> dict[str, Any]:
    """S226, S244, S251: both policies have one root device, and select every Linux node."""
    spec = {
        "nodeSelector": {"kubernetes.io/os": "linux"},
        "resourceName": "gpu%dsriov" % number,
        "priority": 99,
        "numVfs": 12,
        "nicSelector": {"deviceID": "1017", "vendor": "15b3", "rootDevices": ["0000:86:00.0"]},
        "linkType": "${LINK_TYPE}",
        "deviceType": "netdevice",
        "isRdma": True,
    }
    return _object(SRIOV, "SriovNetworkNodePolicy", "gpu%d-nic-policy" % number, spec, namespace="spiderpool")


def pool() -> dict[str, Any]:
    """S220, S222: host bits, and 16 bits in place of 24."""
    spec = {"gateway": "172.16.11.254", "subnet": "172.16.11.0/16", "ips": ["172.16.11.1-172.16.11.200"]}
    return _object(SPIDER, "SpiderIPPool", "gpu1-net11", spec)


def config(name: str, cni: str, part: dict[str, Any], **more: Any) -> dict[str, Any]:
    spec = {"cniType": cni, "sriov" if cni == "sriov" else "ibsriov": part, **more}
    return _object(SPIDER, "SpiderMultusConfig", name, spec, namespace="spiderpool")


INFINIBAND = config(
    "gpu1-ib",
    "ib-sriov",
    {
        "resourceName": "spidernet.io/gpu1sriov",
        "rdmaIsolation": True,
        "mtu": 8000,
        "ippools": {"ipv4": ["gpu1-net91"]},
    },
)
"""S219, S250."""
ETHERNET = config(
    "gpu1-sriov",
    "sriov",
    {
        "resourceName": "spidernet.io/gpu1sriov",
        "enableRdma": True,
        "mtu": 8000,
        "ippools": {"ipv4": ["gpu1-net11"]},
    },
)
"""S228."""
PARTITION = config("ib-sriov", "ib-sriov", {"resourceName": "spidernet.io/gpu1sriov", "pkey": 1000})
"""S231."""
INJECTED = config(
    "gpu1-inject",
    "sriov",
    {"resourceName": "spidernet.io/gpu1rdma", "enableRdma": True},
    ippools={"ipv4": ["gpu1-net11"]},
)
"""S229, S230."""
INJECTED["metadata"]["annotations"] = {"cni.spidernet.io/rdma-resource-inject": "rdma-network"}


def _pods(
    kind: str, name: str, annotations: dict[str, str], limits: dict[str, Any], **spec: Any
) -> dict[str, Any]:
    pod = {
        "containers": [{"name": "main", "image": "x/rdma-tools:1", "resources": {"limits": limits}}],
        **spec,
    }
    template = {"metadata": {"annotations": annotations}, "spec": pod}
    return _object("apps/v1", kind, name, {"template": template}, namespace="default")


TEST_PODS = _pods(
    "DaemonSet",
    "rdma-tools",
    {
        "k8s.v1.cni.cncf.io/networks": "["
        + ",".join(['{"name":"gpu%d-sriov","namespace":"spiderpool"}' % rail for rail in range(1, 9)])
        + "]"
    },
    {"spidernet.io/gpu%dsriov" % rail: 1 for rail in range(1, 9)},
    affinity={
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [
                    {
                        "matchExpressions": [
                            {
                                "key": "kubernetes.io/hostname",
                                "operator": "In",
                                "values": ["worker1", "worker2"],
                            }
                        ]
                    }
                ]
            }
        }
    },
)
"""S227, S243."""
AI_JOB = _pods(
    "Deployment",
    "train",
    {
        "cni.spidernet.io/rdma-resource-inject": "rdma-network",
        "ipam.spidernet.io ippools": "gpu1-net11",
    },
    {"spidernet.io/gpu2rdma": 1},
)
"""S229, S230, S236."""
CONFIG_MAP = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "spiderpool-config", "namespace": "spiderpool"},
    "data": {"conf.yml": "podResourceInject:\n  namespacesExclude: [kube-system]\n"},
}
"""S235."""
SECRET = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": "ib-kubernetes-ufm-secret", "namespace": "kube-system"},
    "stringData": {
        "UFM_USER": "admin",
        "UFM_PASSWORD": "12345",
        "UFM_ADDRESS": "172.16.10.10",
        "UFM_CERTIFICATE": "subject=CN = ${UFM_ADDRESS}",
    },
}
"""S232, S233."""
IB_KUBERNETES = _pods("DaemonSet", "ib-kubernetes", {}, {})
"""S234."""

MANIFESTS: list[dict[str, Any]] = [
    policy(1),
    policy(2),
    pool(),
    INFINIBAND,
    ETHERNET,
    PARTITION,
    INJECTED,
    TEST_PODS,
    AI_JOB,
    CONFIG_MAP,
    SECRET,
    IB_KUBERNETES,
]

RAIL = {
    "pci": "0000:86:00.0",
    "subnet": "172.16.11.0/16",
    "gateway": "172.16.11.254",
    "resource": "gpu1sriov",
}
VARIABLES: dict[str, Any] = {
    "rails": [
        {**RAIL, "link_type": "${LINK_TYPE}", "ranges": ["172.16.11.1-172.16.11.200"]},
        {**RAIL, "link_type": "eth", "subnet": "172.16.12.0/16", "resource": "gpu2sriov"},
        {
            **RAIL,
            "pci": "86:00.1",
            "link_type": "ib",
            "subnet": "172.16.13.0/27",
            "ranges": ["172.16.13.1-172.16.13.32"],
            "gateway": "172.16.13.256",
            "resource": "eno3np2-sriov",
            "pkey": 1000,
            "mtu": 8000,
        },
    ],
    "node_selector": {"kubernetes.io/os": "linux"},
    "install": True,
    "values": {
        "sriov": {"install": True, "operatorConfig": {"disableDrain": True}},
        "ipam": {"enableGatewayDetection": False},
        "spiderpoolController": {"podResourceInject": {"enabled": False}},
    },
    "inject": "rdma-network",
    "vfs": 127,
    "set_expressions": ["sriov.install=true", "spiderpoolAgent.prometheus.enabled"],
    "sources": [
        ELSEWHERE + "/projectcalico/calico/blob/master/manifests/calico.yaml",
        ELSEWHERE + "/Mellanox/ib-kubernetes.git",
    ],
    "targets": ["172.91.0.115"],
    "ufm_keys": ["UFM_USER", "UFM_PASSWORD", "UFM_ADDRESS", "UFM_CERTIFICATE"],
}
POD: dict[str, Any] = {
    "nics": [
        {
            "name": "net%d" % rail,
            "address": "172.16.%d.10/24" % (10 + rail),
            "gateway": "172.16.%d.254" % (10 + rail),
            "broadcast": "10.1.19.255" if rail < 3 else "172.16.%d.255" % (10 + rail),
            "subnet": "172.16.0.0/16",
        }
        for rail in range(1, 9)
    ],
    "rules": [
        {"priority": min(32761 + rail, 32765), "from": "172.16.%d.10" % (10 + rail), "table": 108 - rail}
        for rail in range(1, 9)
    ],
    "table_defaults": {"100": {"via": "172.16.11.254", "dev": "net1"}},
    "main_default_dev": "eth0",
    "rdma_links": [],
}
"""S222 to S225: what the guide shows of a pod."""
