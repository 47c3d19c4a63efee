# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Names that Spiderpool, Multus and the SR-IOV operator give to things. Private to rdma.k8s: it may change any time."""

from __future__ import annotations

NAMESPACE = "spiderpool"
"""Where Spiderpool and the operator of its chart run, unless it is set otherwise (S95)."""
RESOURCE_PREFIX = "spidernet.io"
"""The domain of the resources that the operator's policies make, unless it is set otherwise (S95)."""

NETWORKS = "k8s.v1.cni.cncf.io/networks"
RDMA_INJECT = "cni.spidernet.io/rdma-resource-inject"
NETWORK_INJECT = "cni.spidernet.io/network-resource-inject"
INJECT = (RDMA_INJECT, NETWORK_INJECT)
"""Annotations that ask for networks and resources, in the order in which the webhook looks (S159)."""
POOL_ANNOTATIONS = ("ipam.spidernet.io/ippools", "ipam.spidernet.io/ippool")
"""Annotations of a pod that choose its pools and override those of each network (S93, S165)."""
CNI_VERSION = "multus.spidernet.io/cni-version"
CNI_VERSIONS = ("0.3.0", "0.3.1", "0.4.0", "1.0.0")
"""What that annotation of a SpiderMultusConfig may say (S90)."""

MACVLAN, IPVLAN, VLAN, SRIOV, IB_SRIOV, IPOIB, OVS, CUSTOM = (
    "macvlan",
    "ipvlan",
    "vlan",
    "sriov",
    "ib-sriov",
    "ipoib",
    "ovs",
    "custom",
)
SUBCONFIGS = {
    MACVLAN: "macvlan",
    IPVLAN: "ipvlan",
    VLAN: "vlan",
    SRIOV: "sriov",
    OVS: "ovs",
    IB_SRIOV: "ibsriov",
    IPOIB: "ipoib",
    CUSTOM: "customCNI",
}
"""The part of a SpiderMultusConfig that belongs to each ``cniType`` (S84)."""
ON_MASTER = (MACVLAN, IPVLAN, VLAN)
"""Types whose interface lies on one of the host, and whose RDMA resource comes from the shared plugin."""
ON_VF = (SRIOV, IB_SRIOV)
"""Types that move a virtual function into the pod."""

EXCLUSIVE, SHARED = "exclusive", "shared"
ETHERNET, INFINIBAND = "eth", "ib"
MELLANOX = "15b3"
SUPPORTED = {
    MELLANOX: ("1013", "1015", "1017", "1019", "101b", "101d", "101f", "1021", "a2d6", "a2dc"),
}
"""NICs that the operator of the chart takes, by vendor (S100)."""
