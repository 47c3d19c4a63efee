# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One OKE cluster with its networks, as the REST API of Oracle Cloud describes it."""

from __future__ import annotations

from typing import Any, Optional

COMPARTMENT = "ocid1.compartment.oc1..aaaacluster"
NETWORK_COMPARTMENT = "ocid1.compartment.oc1..aaaanetwork"
CLUSTER = "ocid1.cluster.oc1.iad.aaaaprod"
VCN = "ocid1.vcn.oc1.iad.aaaavcn"

ENGINE, NETWORK = "/20180222", "/20160918"


def subnet_id(name: str) -> str:
    """The OCID of a subnet."""
    return "ocid1.subnet.oc1.iad.aaaa" + name


def cluster(**changes: Any) -> dict[str, Any]:
    """A cluster with an overlay and with VCN-native pods."""
    return {
        "id": CLUSTER,
        "name": "prod",
        "compartmentId": COMPARTMENT,
        "vcnId": VCN,
        "kubernetesVersion": "v1.34.1",
        "lifecycleState": "ACTIVE",
        "endpointConfig": {"subnetId": subnet_id("api"), "isPublicIpEnabled": False},
        "clusterPodNetworkOptions": [{"cniType": "OCI_VCN_IP_NATIVE"}],
        "options": {
            "kubernetesNetworkConfig": {"podsCidr": "10.244.0.0/16", "servicesCidr": "10.96.0.0/16"},
            "serviceLbSubnetIds": [subnet_id("lb")],
            "ipFamilies": ["IPv4"],
        },
        **changes,
    }


def vcn(**changes: Any) -> dict[str, Any]:
    """Its VCN, in another compartment."""
    return {
        "id": VCN,
        "displayName": "prod-vcn",
        "compartmentId": NETWORK_COMPARTMENT,
        "cidrBlock": "10.140.0.0/16",
        "cidrBlocks": ["10.140.0.0/16", "172.16.0.0/20"],
        "ipv6CidrBlocks": ["2603:c020:4000:1200::/56"],
        "lifecycleState": "AVAILABLE",
        **changes,
    }


def subnet(name: str, cidr: str, **changes: Any) -> dict[str, Any]:
    """A subnet of it."""
    return {
        "id": subnet_id(name),
        "displayName": name,
        "compartmentId": NETWORK_COMPARTMENT,
        "vcnId": VCN,
        "cidrBlock": cidr,
        "lifecycleState": "AVAILABLE",
        **changes,
    }


def node_pool(name: str, subnets: list[str], pods: list[str], **changes: Any) -> dict[str, Any]:
    """A node pool of it."""
    return {
        "id": "ocid1.nodepool.oc1.iad.aaaa" + name,
        "name": name,
        "clusterId": CLUSTER,
        "compartmentId": COMPARTMENT,
        "lifecycleState": "ACTIVE",
        "nodeConfigDetails": {
            "size": 4,
            "placementConfigs": [
                {"availabilityDomain": "Uocm:IAD-AD-1", "subnetId": subnet_id(key)} for key in subnets
            ],
            "nodePoolPodNetworkOptionDetails": {
                "cniType": "OCI_VCN_IP_NATIVE",
                "podSubnetIds": [subnet_id(key) for key in pods],
            },
        },
        **changes,
    }


def peering(name: str, cidrs: Optional[list[str]], **changes: Any) -> dict[str, Any]:
    """A local peering gateway of its VCN."""
    return {
        "id": "ocid1.localpeeringgateway.oc1.iad.aaaa" + name,
        "displayName": name,
        "compartmentId": NETWORK_COMPARTMENT,
        "vcnId": VCN,
        "lifecycleState": "AVAILABLE",
        "peeringStatus": "PEERED",
        "peerAdvertisedCidr": "10.0.0.0/8",
        "peerAdvertisedCidrDetails": cidrs,
        **changes,
    }


DRG_TABLE = "ocid1.drgroutetable.oc1.iad.aaaatable"
DRG_ATTACHMENT = "ocid1.drgattachment.oc1.iad.aaaaown"


def attachment(**changes: Any) -> dict[str, Any]:
    """Its attachment to a gateway of the tenancy."""
    return {
        "id": DRG_ATTACHMENT,
        "displayName": "prod-drg",
        "compartmentId": NETWORK_COMPARTMENT,
        "lifecycleState": "ATTACHED",
        "drgRouteTableId": DRG_TABLE,
        "vcnId": VCN,
        **changes,
    }


def drg_rule(destination: str, **changes: Any) -> dict[str, Any]:
    """A route of the gateway."""
    return {
        "destination": destination,
        "destinationType": "CIDR_BLOCK",
        "nextHopDrgAttachmentId": "ocid1.drgattachment.oc1.iad.aaaaother",
        "routeType": "DYNAMIC",
        "isBlackhole": False,
        **changes,
    }


def resources() -> dict[str, Any]:
    """All of one cluster by path; a list is paged, and filtered by ``compartmentId`` when asked with one."""
    subnets = [
        subnet("api", "10.140.0.0/28"),
        subnet("lb", "10.140.1.0/24"),
        subnet("gpu", "10.140.64.0/19"),
        subnet("pods", "10.140.128.0/18", ipv6CidrBlock="2603:c020:4000:1200::/64"),
        subnet("old", "10.140.2.0/24", lifecycleState="TERMINATED"),
        subnet("elsewhere", "172.16.0.0/24", compartmentId="ocid1.compartment.oc1..aaaathird"),
    ]
    return {
        "%s/clusters/%s" % (ENGINE, CLUSTER): cluster(),
        ENGINE + "/nodePools": [node_pool("gpu", ["gpu"], ["pods"]), node_pool("ops", ["elsewhere"], [])],
        "%s/vcns/%s" % (NETWORK, VCN): vcn(),
        NETWORK + "/subnets": subnets,
        **{"%s/subnets/%s" % (NETWORK, entry["id"]): entry for entry in subnets},
        NETWORK + "/localPeeringGateways": [
            peering("storage", ["192.168.10.0/24", "192.168.11.0/24"]),
            peering("old-style", None, peerAdvertisedCidr="192.168.64.0/18"),
            peering("new", None, peeringStatus="NEW"),
        ],
        NETWORK + "/drgAttachments": [attachment()],
        "%s/drgRouteTables/%s/drgRouteRules" % (NETWORK, DRG_TABLE): [
            drg_rule("10.20.0.0/16"),
            drg_rule("0.0.0.0/0"),
            drg_rule("10.140.0.0/16", nextHopDrgAttachmentId=DRG_ATTACHMENT),
        ],
    }
