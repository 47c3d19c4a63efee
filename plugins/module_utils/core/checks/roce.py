# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Area NODE, lossless RoCE: settings, loss, links that flap. Private to rdma.k8s: it may change with any release.

All of it needs the subset ``slow``. What a switch does cannot be seen from a node.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, Optional

from ..errors import RdmaError
from ..finding import ERROR, WARNING, Detail
from ..nics import Nic
from ..roce_qos import DSCP, PortQos, Wish, default_priority, dscp_of, names, read_map
from ..snapshot import PortCounters
from .context import Fleet, Node, most_common
from .registry import (
    Outcome,
    bad,
    fleet_check,
    node_check,
    ok,
    passed,
    rolled_up,
    skipped,
    unclear,
)

LOSS_LIMIT = 1e-5
"""Lost packets for each packet (S48)."""
FLAP_LIMIT = 5
"""Links that went down as often as this within a day flap."""
NO_NIC = "No Ethernet RDMA NIC was found on this node."
NO_WISH = "The policy does not set rdma_priority and cnp_priority."
DCB = "dcb-netlink"
SET = "Run rdma.k8s.roce_qos with the priorities of the switches."

Judge = Callable[[Wish, str, PortQos], Detail]


def _ports(node: Node) -> Iterator[tuple[Nic, PortQos]]:
    """The Ethernet NICs of the RDMA network with the settings of their port."""
    held = {(port.device, port.port): port for port in node.slow.qos or ()}
    for nic in node.ethernet_nics:
        if nic.device is not None and nic.port is not None:
            port = held.get((nic.device.name, nic.port.port))
            if port is not None:
                yield nic, port


def _is_vf(nic: Nic) -> bool:
    return nic.function is not None and bool(nic.function.vf_of)


def _judged(
    node: Node,
    judge: Judge,
    good: str,
    *,
    as_status: str = "fail",
    dcb: bool = True,
    with_vfs: bool = False,
) -> Outcome:
    """One detail for each port.

    :param dcb: whether the judgement needs DCB.
    :param with_vfs: whether a virtual function is judged too; its DCB is that of its parent (S53).
    """
    wish = node.policy.qos
    if wish is None:
        return skipped(NO_WISH)
    details = []
    for nic, port in _ports(node):
        if dcb and port.dcb and not (with_vfs and _is_vf(nic)):
            if not _is_vf(nic):
                details.append(unclear(nic.name, port.dcb.rstrip(".")))
        else:
            details.append(judge(wish, nic.name, port))
    return rolled_up(details, good, NO_NIC, as_status=as_status)


@node_check(
    "RDMA-NODE-020",
    "RDMA ports trust DSCP",
    ERROR,
    SET,
    needs=("slow.qos",),
    evidence=(DCB,),
)
def trust(node: Node) -> Outcome:
    """S52, S63: with trust pcp the DSCP value of a packet without a VLAN tag decides nothing."""

    def judge(_wish: Wish, name: str, port: PortQos) -> Detail:
        return (
            ok(name) if port.trust == DSCP else bad(name, "trust is %s" % port.trust, DSCP, str(port.trust))
        )

    return _judged(node, judge, "%d ports trust DSCP.")


@node_check(
    "RDMA-NODE-021",
    "PFC is on for the priority of RDMA traffic alone",
    ERROR,
    SET + " If it does not stay, see who negotiates DCBX.",
    needs=("slow.qos",),
    evidence=(DCB,),
)
def pfc(node: Node) -> Outcome:
    """S52, S61, S62, S65."""

    def judge(wish: Wish, name: str, port: PortQos) -> Detail:
        if port.pfc is None:
            return unclear(name, "PFC could not be read")
        if port.pfc == wish.pfc:
            return ok(name)
        found = names(port.pfc)
        return bad(name, "PFC is on for priority %s" % found, names(wish.pfc), found)

    return _judged(node, judge, "PFC is on for the planned priority on %d ports.")


@node_check(
    "RDMA-NODE-022",
    "The type of service of RDMA traffic leads to the lossless priority",
    ERROR,
    SET + " The type of service is the DSCP value times 4.",
    needs=("slow.qos",),
    evidence=("/sys/kernel/config/rdma_cm", "/sys/class/infiniband/*/tc", DCB),
)
def type_of_service(node: Node) -> Outcome:
    """S51, S53, S58, S64, S65: both RDMA-CM and a forced traffic class must mark what PFC protects."""

    def judge(wish: Wish, name: str, port: PortQos) -> Detail:
        try:
            held = read_map(port.dscp_map or "")  # of a virtual function it is not known: the default then
        except RdmaError as error:
            return unclear(name, error.message.rstrip("."))
        told = [("RDMA-CM", port.cm_tos)] if port.cm_tos is not None else []
        if port.traffic_class is not None and port.traffic_class >= 0:
            told.append(("the device", port.traffic_class))
        for who, tos in told:
            dscp = dscp_of(tos)
            priority = held.get(dscp, default_priority(dscp))
            if priority != wish.rdma_priority:
                message = "%s marks with type of service %d, DSCP %d, priority %d" % (
                    who,
                    tos,
                    dscp,
                    priority,
                )
                return bad(name, message, "priority %d" % wish.rdma_priority, "priority %d" % priority)
        if not told:
            return unclear(name, "neither RDMA-CM nor the device tells its type of service")
        return ok(name)

    return _judged(node, judge, "RDMA traffic of %d ports gets the lossless priority.", with_vfs=True)


@fleet_check(
    "RDMA-NODE-023",
    "All ports of a pool mark RDMA traffic alike",
    WARNING,
    "Apply the same settings to all NICs of all nodes of the pool.",
    needs=("slow.qos",),
    evidence=("/sys/kernel/config/rdma_cm", "/sys/class/infiniband/*/tc"),
)
def consistency(fleet: Fleet) -> dict[str, Outcome]:
    """S53, S65: the odd ones out, compared with the majority of the pool."""
    votes: dict[tuple[str, str], Counter[str]] = {}
    for node in fleet.nodes:
        for _name, setting, value in _marks(node):
            votes.setdefault((fleet.network_names[node.name], setting), Counter())[value] += 1
    usual = {key: most_common(counts) for key, counts in votes.items()}
    outcomes = {}
    for node in fleet.nodes:
        odd, seen = [], 0
        for name, setting, value in _marks(node):
            seen += 1
            majority = usual[(fleet.network_names[node.name], setting)]
            if value != majority:
                odd.append(bad(name, "%s is %s, most have %s" % (setting, value, majority), majority, value))
        if not seen:
            outcomes[node.name] = skipped("No RDMA port of this node tells how it marks traffic.")
        else:
            outcomes[node.name] = rolled_up(odd or [ok("all")], "Same as the pool.", NO_NIC, as_status="warn")
    return outcomes


def _marks(node: Node) -> Iterator[tuple[str, str, str]]:
    for nic, port in _ports(node):
        for setting, value in (
            ("type of service of RDMA-CM", port.cm_tos),
            ("traffic class", port.traffic_class),
        ):
            if value is not None:
                yield nic.name, setting, str(value) if value >= 0 else "not set"


@node_check(
    "RDMA-NODE-024",
    "Congestion notification is on for RDMA traffic",
    WARNING,
    SET + " Where the driver shows no switches, ask its documentation for the default.",
    needs=("slow.qos",),
    evidence=("/sys/class/net/*/ecn", "/sys/kernel/debug/mlx5/*/cc_params"),
)
def congestion(node: Node) -> Outcome:
    """S52, S54, S58, S65: notification and reaction point, and the DSCP value of CNP."""

    def judge(wish: Wish, name: str, port: PortQos) -> Detail:
        for title, mask in (("notification", port.ecn_np), ("reaction", port.ecn_rp)):
            if mask is not None and not mask >> wish.rdma_priority & 1:
                message = "the %s point is off for priority %d" % (title, wish.rdma_priority)
                return bad(name, message, "on", "off")
        if port.cnp_dscp is not None and port.cnp_dscp != wish.cnp_dscp:
            message = "CNP has DSCP %d" % port.cnp_dscp
            return bad(name, message, str(wish.cnp_dscp), str(port.cnp_dscp))
        if port.ecn_np is None or port.ecn_rp is None or port.cnp_dscp is None:
            return unclear(name, "the driver does not show all of its ECN settings")
        return ok(name)

    return _judged(
        node, judge, "ECN is on for the planned priority on %d ports.", as_status="warn", dcb=False
    )


@node_check(
    "RDMA-NODE-026",
    "RDMA traffic is not lost",
    WARNING,
    "Compare PFC, ECN and buffers of the switch port with those of the NIC; see RDMA-NODE-020 to 024.",
    needs=("slow.counters",),
    evidence=("/sys/class/infiniband/*/ports/*/counters", "/sys/class/infiniband/*/ports/*/hw_counters"),
)
def loss(node: Node) -> Outcome:
    """S48, S65: less than one packet in 100000 while the counters were watched."""
    details, watched = [], 0
    for port in node.slow.counters or ():
        if port.netdev not in _fabric_names(node):
            continue
        watched += 1
        detail = _loss_of(port)
        if detail is not None:
            details.append(detail)
    if watched and not details:
        return skipped("No RDMA traffic while the counters were watched.")
    return rolled_up(details, "No loss on %d ports with traffic.", NO_NIC, as_status="warn")


def _fabric_names(node: Node) -> frozenset[str]:
    return frozenset([nic.name for nic in node.ethernet_nics])


def _loss_of(port: PortCounters) -> Optional[Detail]:
    """``None`` for a port without traffic."""
    told = {
        "out of buffer": port.out_of_buffer,
        "out of sequence": port.out_of_sequence,
        "not sent": port.discarded,
    }
    lost = sum([value for value in told.values() if value])
    if port.packets is None or all(value is None for value in told.values()):
        return unclear(port.name, "the driver does not count packets and losses")
    if not port.packets and not lost:
        return None
    share = lost / (port.packets + lost)
    if share <= LOSS_LIMIT:
        return ok(port.name)
    counted = ", ".join(["%d %s" % (value, title) for title, value in told.items() if value])
    message = "%s among %d packets%s" % (counted, port.packets, _pauses(port))
    return bad(port.name, message, "at most 1 in 100000", "%.1e" % share)


def _pauses(port: PortCounters) -> str:
    """What PFC did meanwhile, in words."""
    parts = []
    for title, text in (("sent", port.pause_sent), ("received", port.pause_received)):
        for entry in (text or "").split():
            priority, _colon, count = entry.partition(":")
            parts.append("%s %s for priority %s" % (count, title, priority))
    return "; pause frames: %s" % ", ".join(parts) if parts else ""


@node_check(
    "RDMA-NODE-027",
    "The links of the RDMA NICs do not flap",
    ERROR,
    "Clean or replace the cable or transceiver, then look at the port of the switch.",
    needs=("slow.kernel_log",),
    evidence=("/dev/kmsg",),
)
def flaps(node: Node) -> Outcome:
    """Fewer than five times down within a day, the usual limit of node health checks."""
    log: Any = node.slow.kernel_log
    counts = {link.netdev: link.count for link in log.links}
    details = []
    for nic in node.nics:
        count = counts.get(nic.name)
        if count is not None and count >= FLAP_LIMIT:
            message = "the link went down %d times within %s" % (count, _span(log.covered))
            details.append(bad(nic.name, message, "fewer than %d" % FLAP_LIMIT, str(count)))
        elif count is not None:
            details.append(ok(nic.name))
    if details and all(detail.status == "pass" for detail in details):
        return passed(
            "No link of %d went down %d times within %s." % (len(details), FLAP_LIMIT, _span(log.covered))
        )
    return rolled_up(details, "", "The kernel log has no interface of an RDMA NIC.")


def _span(seconds: int) -> str:
    return "%d h" % (seconds // 3600) if seconds >= 3600 else "%d min" % (seconds // 60)
