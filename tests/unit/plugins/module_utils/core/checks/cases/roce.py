# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Cases of the area NODE that are about lossless RoCE."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ansible_collections.rdma.k8s.plugins.module_utils.core.checks.judge import NodeInput
from ansible_collections.rdma.k8s.plugins.module_utils.core.snapshot import KernelLog, LinkDowns, NodeSnapshot
from ansible_collections.rdma.k8s.tests.support import fleet
from ansible_collections.rdma.k8s.tests.support.cases import SICK, Case

WISH = {"rdma_priority": 5, "cnp_priority": 6}
NO_DCB = "The driver of rdma4 has no DCB (IEEE 802.1Qaz)."


def port(name: str, **changes: Any) -> fleet.Edit:
    """One port has other settings."""
    return lambda node: fleet.edit_qos(node, name, **changes)


def counters(name: str, **changes: Any) -> fleet.Edit:
    return lambda node: fleet.edit_counters(node, name, **changes)


def downs(name: str, count: int, covered: int = 86400) -> fleet.Edit:
    """The link of one interface went down this often."""

    def edit(node: NodeSnapshot) -> NodeSnapshot:
        links = [LinkDowns(nic, count if nic == name else 0) for nic in fleet.names(node)]
        return fleet.edit_slow(node, kernel_log=KernelLog(covered, tuple(links)))

    return edit


def without_dcb(node: NodeSnapshot) -> NodeSnapshot:
    nothing = dict.fromkeys(("dcbx", "trust", "pfc", "dscp_map"))
    return fleet.edit_qos(node, "rdma4", dcb=NO_DCB, **nothing)


def virtual_function(node: NodeSnapshot) -> NodeSnapshot:
    """S53: a virtual function has the DCB of its parent and marks by itself."""
    place = fleet.device_of(node, "rdma4").pci
    return fleet.edit_function(without_dcb(node), place, vf_of="0000:41:00.0")


def lost(field: str) -> fleet.Edit:
    return lambda node: fleet.edit_slow(node, **{field: None})


def one_pool() -> list[NodeInput]:
    """Three nodes that were read whole; rdma7 of one marks otherwise, which is no fault by itself."""
    nodes = [
        fleet.with_slow(fleet.node(number=number, name=SICK if not number else "")) for number in range(3)
    ]
    nodes[0] = fleet.edit_qos(nodes[0], "rdma7", cm_tos=164)
    return [NodeInput(node.name, node) for node in nodes]


def idle(node: NodeSnapshot) -> NodeSnapshot:
    nothing = dict.fromkeys(("packets", "out_of_buffer", "out_of_sequence", "discarded"), 0)
    return fleet.edit_counters(node, "*", **nothing)


def untold_marks(node: NodeSnapshot) -> NodeSnapshot:
    node = fleet.with_slow(node)
    ports = [replace(entry, cm_tos=None, cm_mode=None, traffic_class=None) for entry in node.slow.qos or ()]
    return fleet.edit_slow(node, qos=tuple(ports))


CASES = [
    # RDMA-NODE-020: S52, S63
    Case(
        "RDMA-NODE-020",
        "fail",
        "rdma3: trust is pcp",
        "one port trusts pcp",
        port("rdma3", trust="pcp"),
        settings=WISH,
    ),
    Case("RDMA-NODE-020", "pass", "16 ports trust DSCP", "all trust dscp", fleet.with_slow, settings=WISH),
    Case(
        "RDMA-NODE-020",
        "unknown",
        "has no DCB",
        "a driver without DCB",
        without_dcb,
        settings=WISH,
        also="NODE-021 unknown NODE-022 unknown",
    ),
    Case(
        "RDMA-NODE-020",
        "pass",
        "15 ports",
        "a virtual function has no DCB of its own",
        virtual_function,
        settings=WISH,
    ),
    Case(
        "RDMA-NODE-022",
        "fail",
        "rdma4: the device marks with type of service 0",
        "a virtual function that does not mark",
        lambda node: fleet.edit_qos(virtual_function(node), "rdma4", traffic_class=0, cm_tos=None),
        settings=WISH,
        also="NODE-023 warn",
    ),
    Case("RDMA-NODE-020", "skip", "does not set rdma_priority", "no priorities given", fleet.with_slow),
    Case(
        "RDMA-NODE-020",
        "unknown",
        "does not tell",
        "the settings could not be read",
        lost("qos"),
        settings=WISH,
        also="NODE-021 unknown NODE-022 unknown NODE-023 unknown NODE-024 unknown",
    ),
    # RDMA-NODE-021: S52, S61, S62
    Case(
        "RDMA-NODE-021",
        "fail",
        "rdma0: PFC is on for priority 3, 5",
        "a second lossless priority",
        port("rdma0", pfc=40),
        settings=WISH,
    ),
    Case(
        "RDMA-NODE-021",
        "fail",
        "priority none",
        "PFC is off on one port",
        port("rdma9", pfc=0),
        settings=WISH,
    ),
    Case("RDMA-NODE-021", "pass", "16 ports", "PFC as planned", fleet.with_slow, settings=WISH),
    # RDMA-NODE-022: S51, S64
    Case(
        "RDMA-NODE-022",
        "fail",
        "RDMA-CM marks with type of service 40, DSCP 10, priority 1",
        "a DSCP value taken for a type of service",
        port("rdma2", cm_tos=40),
        settings=WISH,
        also="NODE-023 warn",
    ),
    Case(
        "RDMA-NODE-022",
        "fail",
        "the device marks with type of service 160, DSCP 40, priority 3",
        "the map sends the DSCP value elsewhere",
        port("rdma2", dscp_map="0-7:0 40:3", cm_tos=None),
        settings=WISH,
    ),
    Case(
        "RDMA-NODE-022",
        "pass",
        "16 ports",
        "a value that only the default map has",
        port("rdma2", cm_tos=164, traffic_class=164),
        settings=WISH,
        also="NODE-023 warn",
    ),
    Case(
        "RDMA-NODE-022",
        "unknown",
        "neither RDMA-CM nor the device",
        "nothing tells how traffic is marked",
        untold_marks,
        settings=WISH,
    ),
    Case(
        "RDMA-NODE-022",
        "unknown",
        "'DSCP[-DSCP]:PRIORITY ...'",
        "a recorded map that is none",
        port("rdma2", dscp_map="forty"),
        settings=WISH,
    ),
    # RDMA-NODE-023: S53
    Case(
        "RDMA-NODE-023",
        "warn",
        "rdma7: type of service of RDMA-CM is 164, most have 160",
        "one port marks otherwise than the pool",
        inputs=one_pool,
    ),
    Case(
        "RDMA-NODE-023",
        "warn",
        "traffic class is not set, most have 160",
        "one device forces no traffic class",
        port("rdma1", traffic_class=-1),
    ),
    Case("RDMA-NODE-023", "pass", "Same as the pool", "all mark alike", fleet.with_slow),
    Case("RDMA-NODE-023", "skip", "how it marks traffic", "no port tells", untold_marks),
    # RDMA-NODE-024: S52, S58
    Case(
        "RDMA-NODE-024",
        "warn",
        "rdma6: the notification point is off for priority 5",
        "ECN is off for the priority",
        port("rdma6", ecn_np=0xDF),
        settings=WISH,
    ),
    Case(
        "RDMA-NODE-024",
        "warn",
        "the reaction point is off",
        "no reaction to notifications",
        port("rdma6", ecn_rp=0),
        settings=WISH,
    ),
    Case(
        "RDMA-NODE-024",
        "warn",
        "CNP has DSCP 26",
        "another DSCP value",
        port("rdma6", cnp_dscp=26),
        settings=WISH,
    ),
    Case("RDMA-NODE-024", "pass", "16 ports", "ECN as planned", fleet.with_slow, settings=WISH),
    Case(
        "RDMA-NODE-024",
        "unknown",
        "does not show all",
        "the kernel's own driver has no switches",
        port("rdma6", ecn_np=None, ecn_rp=None),
        settings=WISH,
    ),
    # RDMA-NODE-026: S48
    Case(
        "RDMA-NODE-026",
        "warn",
        "rdma8: 41 out of sequence among 4000000 packets",
        "more than one packet in 100000 lost",
        counters("rdma8", out_of_sequence=41),
    ),
    Case(
        "RDMA-NODE-026",
        "warn",
        "1 out of buffer among 200 packets",
        "few packets and one of them lost",
        counters("rdma8", packets=200, out_of_sequence=0, out_of_buffer=1),
    ),
    Case(
        "RDMA-NODE-026",
        "pass",
        "No loss on 16 ports",
        "exactly one packet in 100000",
        counters("rdma8", packets=3999960, out_of_sequence=40),
    ),
    Case(
        "RDMA-NODE-026",
        "unknown",
        "does not count",
        "a driver without counters",
        counters("rdma8", packets=None),
    ),
    Case("RDMA-NODE-026", "skip", "No RDMA traffic", "idle while it was watched", idle),
    Case("RDMA-NODE-026", "unknown", "does not tell", "the counters could not be read", lost("counters")),
    # RDMA-NODE-027
    Case(
        "RDMA-NODE-027",
        "fail",
        "rdma5: the link went down 5 times within 24 h",
        "a link flaps",
        downs("rdma5", 5),
    ),
    Case("RDMA-NODE-027", "pass", "within 24 h", "four times down in a day", downs("rdma5", 4)),
    Case("RDMA-NODE-027", "fail", "within 50 min", "a short log is enough", downs("rdma5", 7, 3000)),
    Case("RDMA-NODE-027", "unknown", "does not tell", "the log could not be read", lost("kernel_log")),
    Case(
        "RDMA-NODE-027",
        "skip",
        "no interface of an RDMA NIC",
        "the log has none of the interfaces",
        lambda node: fleet.edit_slow(node, kernel_log=KernelLog(86400)),
    ),
]
