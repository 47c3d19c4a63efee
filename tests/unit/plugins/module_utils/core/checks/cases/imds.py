# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Cases of the area IMDS."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ansible_collections.rdma.k8s.plugins.module_utils.core.snapshot import NodeSnapshot
from ansible_collections.rdma.k8s.tests.support import fleet
from ansible_collections.rdma.k8s.tests.support.cases import GB200_V3, Case


def vnics(document: Any) -> fleet.Edit:
    return lambda node: fleet.edit_imds(node, vnics=document)


def vnic(address: Any, subnet: Any) -> fleet.Edit:
    entry = {"privateIp": address, "subnetCidrBlock": subnet}
    return vnics([{key: value for key, value in entry.items() if value is not None}])


def host(key: str, value: Any) -> fleet.Edit:
    return lambda node: fleet.edit_host_document(node, key, value)


def topology(key: str, value: Any) -> fleet.Edit:
    def edit(node: NodeSnapshot) -> NodeSnapshot:
        data = {**node.imds.host["rdmaTopologyData"], key: value}
        return fleet.edit_host_document(
            node, "rdmaTopologyData", {name: text for name, text in data.items() if text is not None}
        )

    return edit


def no_service(node: NodeSnapshot) -> NodeSnapshot:
    """F67: nothing answers, for example behind a proxy."""
    node = fleet.edit_imds(node, host=None, instance=None, vnics=None)
    for source in ("imds:/instance/", "imds:/host/", "imds:/vnics/"):
        node = fleet.without(node, "namespaces", source, "timed out")
    return node


def not_gathered(node: NodeSnapshot) -> NodeSnapshot:
    return replace(node, imds=None, subsets=tuple([name for name in node.subsets if name != "imds"]))


WITHOUT_VNIC = "OCA-012 {0} RANGE-003 {0} RANGE-004 {0} RANGE-012 {0} RANGE-013 {0} RANGE-018 {0} ".format(
    "unknown"
)
OTHER_ISLAND = "ocid1.hpcisland..isl2"

CASES = [
    # RDMA-IMDS-001: F8, F60, F67
    Case(
        "RDMA-IMDS-001",
        "fail",
        "/host/, /instance/, /vnics/: timed out",
        "the service does not answer",
        no_service,
        also=WITHOUT_VNIC
        + "IMDS-002 unknown IMDS-003 unknown IMDS-004 unknown IMDS-005 unknown IMDS-006 unknown "
        "IMDS-008 unknown NODE-010 unknown",
    ),
    Case(
        "RDMA-IMDS-001",
        "unknown",
        "Subset 'imds' was not gathered",
        "not gathered",
        not_gathered,
        also=WITHOUT_VNIC
        + "IMDS-002 unknown IMDS-003 unknown IMDS-004 unknown IMDS-005 unknown IMDS-006 unknown "
        "IMDS-008 unknown IMDS-009 unknown NODE-010 unknown",
    ),
    Case("RDMA-IMDS-001", "pass", "3 endpoints answer", "healthy"),
    # RDMA-IMDS-002: F128
    Case(
        "RDMA-IMDS-002",
        "warn",
        "Shape BM.GPU.NEXT.8 is not in the table",
        "a shape that is not in the table",
        lambda node: fleet.edit_imds(node, instance={"shape": "BM.GPU.NEXT.8"}),
        also="NODE-010 unknown",
    ),
    Case(
        "RDMA-IMDS-002",
        "unknown",
        "imds:/instance/: HTTP 404",
        "no instance document",
        lambda node: fleet.without(
            fleet.edit_imds(node, instance=None), "namespaces", "imds:/instance/", "HTTP 404"
        ),
        also="IMDS-001 fail NODE-010 unknown",
    ),
    Case("RDMA-IMDS-002", "pass", "BM.GPU.H100.8: 16 RDMA NICs", "healthy"),
    # RDMA-IMDS-003: F25 (2 to 4), F69
    Case(
        "RDMA-IMDS-003",
        "fail",
        "10.140.200.19 is outside its subnet 10.140.64.0/19",
        "an address outside its subnet",
        vnic("10.140.200.19", "10.140.64.0/19"),
        also="OCA-012 fail RANGE-013 unknown",
    ),
    Case(
        "RDMA-IMDS-003",
        "fail",
        "no IPv4 address",
        "an IPv6 address only",
        vnic("2603:c020::19", "2603:c020::/64"),
        also=WITHOUT_VNIC,
    ),
    Case(
        "RDMA-IMDS-003",
        "fail",
        "subnet",
        "no subnet",
        vnic("10.140.77.19", None),
        also=WITHOUT_VNIC,
    ),
    Case("RDMA-IMDS-003", "fail", "no entry", "an empty list", vnics([]), also=WITHOUT_VNIC),
    Case(
        "RDMA-IMDS-003",
        "fail",
        "vnics",
        "a number for an address",
        vnics([{"privateIp": 19, "subnetCidrBlock": "10.140.64.0/19"}]),
        also=WITHOUT_VNIC,
    ),
    Case(
        "RDMA-IMDS-003",
        "unknown",
        "imds:/vnics/: timed out",
        "the document is missing",
        lambda node: fleet.without(
            fleet.edit_imds(node, vnics=None), "namespaces", "imds:/vnics/", "timed out"
        ),
        also=WITHOUT_VNIC + "IMDS-001 fail",
    ),
    Case(
        "RDMA-IMDS-003",
        "pass",
        "10.140.77.19 in 10.140.64.0/19",
        "a subnet with host bits (F140)",
        vnic("10.140.77.19", "10.140.77.19/19"),
    ),
    # RDMA-IMDS-004: F64, F72
    Case(
        "RDMA-IMDS-004",
        "warn",
        "no rdmaTopologyData",
        "no topology data",
        host("rdmaTopologyData", None),
    ),
    Case(
        "RDMA-IMDS-004",
        "warn",
        "local block: is missing",
        "no local block",
        topology("customerLocalBlock", None),
    ),
    Case(
        "RDMA-IMDS-004",
        "unknown",
        "imds:/host/: timed out",
        "no host document",
        lambda node: fleet.without(
            fleet.edit_imds(node, host=None), "namespaces", "imds:/host/", "timed out"
        ),
        also="IMDS-001 fail IMDS-005 unknown IMDS-006 unknown",
    ),
    Case("RDMA-IMDS-004", "pass", "Island, network block and local block are known", "healthy"),
    # RDMA-IMDS-005: F63, F66
    Case(
        "RDMA-IMDS-005",
        "warn",
        "planes: is missing or of a wrong type",
        "half of the fabric data",
        host("rdmaFabricData", {"ipv6": False}),
    ),
    Case(
        "RDMA-IMDS-005",
        "warn",
        "planes: is missing or of a wrong type",
        "true for a number",
        host("rdmaFabricData", {"ipv6": False, "planes": True}),
    ),
    Case("RDMA-IMDS-005", "warn", "is not an object", "a text for an object", host("rdmaFabricData", "ipv4")),
    Case("RDMA-IMDS-005", "pass", "no rdmaFabricData", "no fabric data", host("rdmaFabricData", None)),
    # RDMA-IMDS-006: F3 (f), F4, F63
    Case(
        "RDMA-IMDS-006",
        "fail",
        "The fabric is ipv6, planned is ipv4",
        "an IPv6 fabric where IPv4 is planned",
        host("rdmaFabricData", {"ipv6": True, "planes": 2}),
    ),
    Case(
        "RDMA-IMDS-006",
        "fail",
        "The fabric is ipv4, planned is ipv6",
        "an IPv4 fabric where IPv6 is planned",
        host("rdmaFabricData", {"ipv6": False, "planes": 2}),
        shape=GB200_V3,
        also="OCA-012 fail OCA-015 unknown NODE-036 warn",
    ),
    Case("RDMA-IMDS-006", "skip", "no complete fabric data", "no fabric data", host("rdmaFabricData", None)),
    Case("RDMA-IMDS-006", "pass", "The fabric is ipv6", "healthy", shape=GB200_V3),
    # RDMA-IMDS-008: F70, F71
    Case(
        "RDMA-IMDS-008",
        "warn",
        "oke.dra.net/rackId: 80 bytes",
        "a rack id that is too long",
        host("rackId", "5ac0ffee" * 10),
    ),
    Case(
        "RDMA-IMDS-008",
        "skip",
        "no text attribute",
        "nothing to publish",
        lambda node: fleet.edit_imds(node, host={}, instance={}),
        also="IMDS-002 unknown IMDS-004 warn NODE-010 unknown",
    ),
    Case("RDMA-IMDS-008", "pass", "6 texts fit", "healthy"),
    # RDMA-IMDS-009: F64
    Case(
        "RDMA-IMDS-009",
        "warn",
        "Island ...isl2; most nodes of",
        "a node in another island",
        topology("customerHPCIslandId", OTHER_ISLAND),
    ),
    Case(
        "RDMA-IMDS-009",
        "skip",
        "tells no island",
        "no topology data",
        host("rdmaTopologyData", None),
        also="IMDS-004 warn",
    ),
    Case("RDMA-IMDS-009", "pass", "Same island as the pool", "healthy"),
]
