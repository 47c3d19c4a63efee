# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Cases of the area RANGE."""

from __future__ import annotations

# pylint: disable=kwarg-superseded-by-positional-arg  # what fleet.edit_* take after their names are changes
from dataclasses import replace
from typing import Any

from ansible_collections.rdma.k8s.plugins.module_utils.core.checks.judge import NodeInput
from ansible_collections.rdma.k8s.plugins.module_utils.core.snapshot import Link, NodeSnapshot
from ansible_collections.rdma.k8s.tests.support import fleet
from ansible_collections.rdma.k8s.tests.support.cases import GB200_IB, GB200_V3, SICK, Case

IN_RANGE = "10.209.0.0/24"


def range_is(text: str) -> dict[str, Any]:
    return {"child_range": text}


def document(*networks: tuple[str, str], unread: str = "") -> dict[str, Any]:
    """The setting with a document of networks, each a kind and a network."""
    entries = [{"kind": kind, "network": network, "sources": ["the cloud"]} for kind, network in networks]
    lost = [{"code": "oci_not_found", "message": unread}] if unread else []
    head = {"document": "rdma.k8s/networks", "schema_version": 1}
    return {"cluster_networks": {**head, "networks": entries, "unread": lost}}


def inputs(*nodes: NodeSnapshot, **more: str) -> list[NodeInput]:
    return [NodeInput(node.name, node, **(more if node.name == SICK else {})) for node in nodes]


def wide_subnet() -> list[NodeInput]:
    """DEV-34: subnet /16, range /14: room for 4 NICs."""
    return inputs(
        *[fleet.node(number=n, name=name, subnet="10.140.0.0/16") for n, name in enumerate((SICK, "other"))]
    )


def two_subnets() -> list[NodeInput]:
    """F23: the same position in two subnets of one RDMA network gives the same parents and children."""
    sick = fleet.node(number=1, name=SICK, subnet="10.140.96.0/19")
    return inputs(sick, *[fleet.node(number=number) for number in (1, 2, 3)])


def two_networks() -> list[NodeInput]:
    """The same two subnets, and the inventory says that they are two RDMA networks."""
    sick = fleet.node(number=1, name=SICK, subnet="10.140.96.0/19")
    return inputs(sick, *[fleet.node(number=number) for number in (1, 2, 3)], network="second")


def copied_metadata() -> list[NodeInput]:
    """Two nodes tell the same VNIC: a copied document."""
    return inputs(fleet.node(number=1, name=SICK), *[fleet.node(number=number) for number in (1, 2)])


def above_15(node: NodeSnapshot) -> NodeSnapshot:
    node = fleet.edit_port(node, "rdma15", netdev="rdma16")
    return fleet.edit_link(node, "rdma15", name="rdma16")


NO_CHILD = "The fabric is infiniband: no NIC gets an IPv4 child"
NOT_VALID = "The range is not valid"

CASES = [
    # RDMA-RANGE-001: F27-F29
    Case(
        "RDMA-RANGE-001",
        "fail",
        "10.208.0.1/12",
        "host bits in the range",
        settings=range_is("10.208.0.1/12"),
    ),
    Case("RDMA-RANGE-001", "fail", "31", "a range of length 31", settings=range_is("10.208.0.0/31")),
    Case("RDMA-RANGE-001", "fail", "10.208.0.0/012", "a leading zero", settings=range_is("10.208.0.0/012")),
    Case("RDMA-RANGE-001", "fail", "IPv4", "an IPv6 range", settings=range_is("fd00::/64")),
    Case("RDMA-RANGE-001", "skip", NO_CHILD, "native InfiniBand", shape=GB200_IB),
    Case("RDMA-RANGE-001", "pass", "10.208.0.0/12", "healthy"),
    # RDMA-RANGE-002: F27
    Case(
        "RDMA-RANGE-002",
        "fail",
        "169.254.0.0/16",
        "a range over the link-local network",
        settings=range_is("169.0.0.0/8"),
    ),
    Case(
        "RDMA-RANGE-002", "skip", NOT_VALID, "an invalid range", settings=range_is("x"), also="RANGE-001 fail"
    ),
    Case("RDMA-RANGE-002", "pass", "overlaps no reserved network", "healthy"),
    # RDMA-RANGE-003: F25 (11)
    Case(
        "RDMA-RANGE-003",
        "fail",
        "10.208.0.0/20 is smaller than the subnet 10.140.64.0/19",
        "a range that is smaller than the subnet",
        settings=range_is("10.208.0.0/20"),
        also="RANGE-013 fail",
    ),
    Case("RDMA-RANGE-003", "pass", "holds the subnet", "healthy"),
    # RDMA-RANGE-004: F18, F19, DEV-34
    Case(
        "RDMA-RANGE-004",
        "fail",
        "10.208.0.0/14 holds 4 NICs of a /16 subnet, 16 are needed: the smallest range that fits is /12",
        "a range for 4 of 16 NICs",
        inputs=wide_subnet,
        settings=range_is("10.208.0.0/14"),
        also="RANGE-013 fail",
    ),
    Case(
        "RDMA-RANGE-004",
        "skip",
        "see RDMA-RANGE-003",
        "smaller than the subnet",
        settings=range_is("10.208.0.0/20"),
        also="RANGE-003 fail RANGE-013 fail",
    ),
    Case("RDMA-RANGE-004", "pass", "holds 16 NICs, 16 are needed", "healthy"),
    # RDMA-RANGE-005: F7, F25 (1)
    Case(
        "RDMA-RANGE-005",
        "fail",
        "rdma16: index 16",
        "a NIC with index 16",
        above_15,
        also="NODE-011 fail NODE-012 fail OCA-012 fail RANGE-013 fail",
    ),
    Case("RDMA-RANGE-005", "pass", "16 NICs with an index below 16", "healthy"),
    # RDMA-RANGE-006: F25 (9), F26
    Case(
        "RDMA-RANGE-006",
        "fail",
        "OCA network: 10.224.0.0/12 overlaps 10.232.0.0/15",
        "a range inside the RDMA network",
        settings=range_is("10.232.0.0/15"),
        also="RANGE-010 fail RANGE-013 fail",
    ),
    Case(
        "RDMA-RANGE-006",
        "pass",
        "10.224.0.0/12 is beside it",
        "adjacent is fine",
        settings=range_is("10.208.0.0/12"),
    ),
    # RDMA-RANGE-007: F45, F46
    Case(
        "RDMA-RANGE-007",
        "fail",
        "peer 10.210.0.0/16: 10.210.0.0/16 overlaps 10.208.0.0/12",
        "a range over a peered network",
        settings={"peer_cidrs": ["172.16.0.0/16", "10.210.0.0/16"]},
    ),
    Case(
        "RDMA-RANGE-007",
        "fail",
        "VNIC subnet 10.140.64.0/19",
        "a range over the primary subnet",
        settings={**range_is("10.140.0.0/15"), "vcn_cidrs": None},
        also="RANGE-010 fail RANGE-011 fail RANGE-013 fail",
    ),
    Case(
        "RDMA-RANGE-007",
        "skip",
        "No VCN CIDR given (setting 'vcn_cidrs')",
        "the VCN is not given",
        settings={"vcn_cidrs": None},
    ),
    Case("RDMA-RANGE-007", "pass", "2 networks are apart", "healthy"),
    Case(
        "RDMA-RANGE-007",
        "pass",
        "2 networks are apart",
        "the VCN is in the document of networks",
        settings={"vcn_cidrs": None, **document(("vcn", "10.140.0.0/16"))},
    ),
    Case(
        "RDMA-RANGE-007",
        "fail",
        "peer 10.210.0.0/16 (the cloud): 10.210.0.0/16 overlaps 10.208.0.0/12; "
        "subnet 10.211.0.0/24 (the cloud): 10.211.0.0/24 overlaps 10.208.0.0/12",
        "a range over a peered network and a subnet of the document",
        settings=document(("peer", "10.210.0.0/16"), ("subnet", "10.211.0.0/24")),
    ),
    Case(
        "RDMA-RANGE-007",
        "unknown",
        "networks: The peers may not be read",
        "the document does not know the peers",
        settings=document(unread="The peers may not be read."),
    ),
    # RDMA-RANGE-008: F50
    Case(
        "RDMA-RANGE-008",
        "fail",
        "pod CIDR 10.192.0.0/10: 10.192.0.0/10 overlaps 10.208.0.0/12",
        "a range inside the pod CIDR",
        settings={"pod_cidrs": ["10.192.0.0/10"]},
    ),
    Case("RDMA-RANGE-008", "skip", "setting 'pod_cidrs'", "no pod CIDR", settings={"pod_cidrs": None}),
    Case("RDMA-RANGE-008", "pass", "1 pod CIDRs are apart", "healthy"),
    Case(
        "RDMA-RANGE-008",
        "fail",
        "pod CIDR 10.209.0.0/18 (the cloud): 10.209.0.0/18 overlaps 10.208.0.0/12",
        "a range over a pod subnet of the document",
        settings={"pod_cidrs": None, **document(("pod", "10.209.0.0/18"))},
    ),
    # RDMA-RANGE-009: F48, F50
    Case(
        "RDMA-RANGE-009",
        "fail",
        "service CIDR 10.216.0.0/16: 10.216.0.0/16 overlaps 10.208.0.0/12",
        "a range over the service CIDR",
        settings={"service_cidrs": ["10.216.0.0/16"]},
    ),
    Case(
        "RDMA-RANGE-009",
        "skip",
        "setting 'service_cidrs'",
        "no service CIDR",
        settings={"service_cidrs": None},
    ),
    Case("RDMA-RANGE-009", "pass", "1 service CIDRs are apart", "healthy"),
    Case(
        "RDMA-RANGE-009",
        "fail",
        "service CIDR 10.208.0.0/16 (the cloud): 10.208.0.0/16 overlaps 10.208.0.0/12",
        "a range over the service network of the document",
        settings=document(("service", "10.208.0.0/16")),
    ),
    # RDMA-RANGE-010: F47, F141
    Case(
        "RDMA-RANGE-010",
        "fail",
        "10.209.0.0/24 dev eth0 via 10.140.64.1: overlaps 10.208.0.0/12",
        "a foreign route inside the range",
        lambda node: fleet.add_routes(node, IN_RANGE + " dev eth0 via 10.140.64.1"),
    ),
    Case(
        "RDMA-RANGE-010",
        "fail",
        "10.0.0.0/8 dev eth0 table 50 via 10.140.64.1: overlaps",
        "a wider route in another table",
        lambda node: fleet.add_routes(node, "10.0.0.0/8 dev eth0 via 10.140.64.1 table 50"),
        settings=range_is("10.208.0.0/15"),
    ),
    Case(
        "RDMA-RANGE-010",
        "fail",
        "0.0.0.0/1 dev tun0: overlaps",
        "half of the address space over a tunnel",
        lambda node: fleet.add_routes(node, "0.0.0.0/1 dev tun0"),
    ),
    Case(
        "RDMA-RANGE-010",
        "pass",
        "routes are apart",
        "a blackhole is no unicast route",
        lambda node: fleet.add_routes(node, IN_RANGE + " type blackhole"),
    ),
    Case(
        "RDMA-RANGE-010",
        "unknown",
        "Subset 'routes' was not gathered",
        "routes were not gathered",
        lambda node: replace(
            node, routes=None, rules=None, subsets=tuple([name for name in node.subsets if name != "routes"])
        ),
        also="NODE-035 unknown NODE-036 unknown",
    ),
    # RDMA-RANGE-011
    Case(
        "RDMA-RANGE-011",
        "fail",
        "docker0 10.208.0.1/16: 10.208.0.0/16 overlaps 10.208.0.0/12",
        "a bridge of the container runtime in the range",
        lambda node: fleet.add_links(
            node, Link("docker0", "bridge", state="up", addresses=("10.208.0.1/16",))
        ),
    ),
    Case("RDMA-RANGE-011", "pass", "addresses are apart", "healthy"),
    Case(
        "RDMA-RANGE-011",
        "unknown",
        "rtnetlink: operation not permitted",
        "interfaces not readable",
        lambda node: fleet.without(
            replace(node, routes=None, rules=None), "links", "rtnetlink", "operation not permitted"
        ),
        also="NODE-010 unknown NODE-011 unknown NODE-012 unknown NODE-013 unknown NODE-017 unknown NODE-018 unknown "
        "NODE-019 unknown NODE-028 unknown NODE-029 unknown NODE-032 unknown NODE-035 unknown NODE-036 unknown "
        "NODE-037 unknown "
        "OCA-007 unknown OCA-012 unknown OCA-015 unknown RANGE-005 unknown RANGE-010 unknown RANGE-012 unknown "
        "RANGE-013 unknown RANGE-014 unknown",
    ),
    # RDMA-RANGE-012: F23
    Case(
        "RDMA-RANGE-012",
        "fail",
        "The primary subnet is 10.140.96.0/19; most nodes of its RDMA network are in 10.140.64.0/19",
        "a node in another subnet",
        inputs=two_subnets,
        also="RANGE-013 fail",
    ),
    Case("RDMA-RANGE-012", "pass", "10.140.96.0/19", "two subnets in two networks", inputs=two_networks),
    Case("RDMA-RANGE-012", "skip", "The fabric is ipv6", "an IPv6 fabric", shape=GB200_V3),
    # RDMA-RANGE-013: F13, F23
    Case(
        "RDMA-RANGE-013",
        "fail",
        "10.208.13.20 is the child of node-001 rdma0 too",
        "two nodes with one metadata document",
        inputs=copied_metadata,
    ),
    Case("RDMA-RANGE-013", "pass", "16 children, unique in the network", "healthy"),
    Case(
        "RDMA-RANGE-013", "skip", NOT_VALID, "an invalid range", settings=range_is("x"), also="RANGE-001 fail"
    ),
    # RDMA-RANGE-014: F24
    Case(
        "RDMA-RANGE-014",
        "fail",
        "The range is 10.192.0.0/15; most nodes of the network use 10.208.0.0/12",
        "a node with another range",
        child_range="10.192.0.0/15",
    ),
    Case("RDMA-RANGE-014", "pass", "10.208.0.0/12", "healthy"),
    Case("RDMA-RANGE-014", "skip", NO_CHILD, "native InfiniBand", shape=GB200_IB),
    # RDMA-RANGE-018: F18
    Case(
        "RDMA-RANGE-018",
        "warn",
        "10.192.0.0/11 is larger than the /15 that holds 16 NICs of a /19 subnet",
        "a range that is larger than needed",
        settings={**range_is("10.192.0.0/11")},
    ),
    Case("RDMA-RANGE-018", "pass", "10.208.0.0/15", "as large as needed", settings=range_is("10.208.0.0/15")),
    Case("RDMA-RANGE-018", "pass", "10.208.0.0/12", "the driver's default"),
    Case("RDMA-RANGE-018", "skip", NO_CHILD, "native InfiniBand", shape=GB200_IB),
]
