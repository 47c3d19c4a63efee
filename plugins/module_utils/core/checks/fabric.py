# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Area FAB: what the fabric proof showed. Private to rdma.k8s: it may change with any release.

These checks judge records of probes, the section ``fabric`` of a snapshot, which only a proof brings. So they take part
in a run only when it has such records, or names the area in ``only``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Optional

from .. import fabric as proof
from ..finding import CRITICAL, ERROR, FAIL, PASS, UNKNOWN, Detail
from .context import Fleet, Node
from .registry import (
    Outcome,
    bad,
    fleet_check,
    listed,
    node_check,
    ok,
    passed,
    rolled_up,
    skipped,
    unclear,
    unknown,
)

_CHECK_MODE = "Nothing was made and sent in check mode."


def _section(node: Node) -> proof.Fabric:
    return node.snapshot.fabric or proof.Fabric()


def _in_use(section: proof.Fabric) -> list[str]:
    return [child.nic for child in section.children if child.state == proof.IN_USE]


def _ready(section: proof.Fabric) -> list[proof.FabricChild]:
    return [child for child in section.children if child.state == proof.READY]


def _why_no_children(section: proof.Fabric) -> Optional[Outcome]:
    """Why there is nothing to judge on a node."""
    if "children" in section.problems:
        return unknown("The children could not be made: %s" % section.problems["children"])
    if any(child.state == proof.PLANNED for child in section.children):
        return unknown(_CHECK_MODE)
    busy = _in_use(section)
    if busy and len(busy) == len(section.children):
        reasons = {child.reason for child in section.children}
        return skipped("All RDMA NICs are in use and were left alone: %s" % " ".join(sorted(reasons)))
    if not section.children:
        return skipped("The node has no RDMA NIC that gets a child.")
    return None


@node_check(
    "RDMA-FAB-001",
    "Every free RDMA NIC gets its child as the profile makes it",
    CRITICAL,
    "The code is that of the profile's refusal: a claim on this NIC fails for the same reason.",
    needs=("fabric",),
    evidence=("rtnetlink",),
    proof=True,
)
def children(node: Node) -> Outcome:
    """F31, F39, F41, F111: made or refused by the profile's own path; a NIC that serves a pod was left alone."""
    section = _section(node)
    missing = _why_no_children(section)
    if missing is not None:
        return missing
    details = []
    for child in section.children:
        if child.state in (proof.REFUSED, proof.FAILED):
            details.append(bad(child.nic, child.reason.rstrip("."), "a child", child.code))
        elif child.state == proof.READY:
            details.append(ok(child.nic))
    busy = _in_use(section)
    left = "; left alone, since they are in use: %s" % listed(busy) if busy else ""
    return rolled_up(details, "%d children" + left.replace("%", "%%") + ".", "")


@node_check(
    "RDMA-FAB-002",
    "The GID of each child is in the table of its parent's device",
    ERROR,
    "Without a GID of type RoCE v2 no verbs call finds the address: look at the driver and its GID table.",
    needs=("fabric",),
    evidence=("/sys/class/infiniband",),
    proof=True,
)
def gids(node: Node) -> Outcome:
    """F134, L6: matched by address and type, never by index."""
    section = _section(node)
    details = []
    for child in section.children:
        if child.code == "gid_missing":
            details.append(bad(child.nic, child.reason.rstrip("."), "a GID of type RoCE v2", "none"))
        elif child.state == proof.READY and child.gid is None:
            details.append(bad(child.nic, "no RDMA device belongs to it", "an RDMA device", "none"))
        elif child.state == proof.READY:
            details.append(ok(child.nic))
    return rolled_up(details, "%d GIDs.", "No child was made.") if details else _nothing(section)


def _nothing(section: proof.Fabric) -> Outcome:
    missing = _why_no_children(section)
    if missing is not None:
        return missing
    return skipped("No child was made.")


def _judged(node: Node, test: str, good: str) -> Outcome:
    """One test of all probes of a node. A pair that was not tried never makes a pass."""
    section = _section(node)
    if not _ready(section):
        return _nothing(section)
    if "probes" in section.problems:
        return unknown("The peers were not probed: %s" % section.problems["probes"])
    if not section.expected:
        return skipped("No other node had a free NIC on the same rails.")
    details: list[Detail] = []
    reasons: dict[str, int] = {}
    for probe in section.probes:
        verdict = proof.verdicts(probe)[test]
        subject = "%s to %s" % (probe.nic, probe.peer)
        if verdict.status == proof.FAIL:
            details.append(bad(subject, verdict.reason, good, verdict.status))
        elif verdict.status == proof.UNKNOWN:
            details.append(unclear(subject, verdict.reason))
        elif verdict.status == proof.SKIP:
            reasons[verdict.reason] = reasons.get(verdict.reason, 0) + 1
        else:
            details.append(ok(subject))
    probed = {probe.nic for probe in section.probes}
    for child in _ready(section):
        if child.nic not in probed:
            why = section.problems.get("probe of %s" % child.nic, "no peer was probed on this rail")
            details.append(unclear(child.nic, why))
    if reasons and not any(detail.status in (FAIL, UNKNOWN) for detail in details):
        said = ["%s (%d pairs)" % (reason, count) for reason, count in sorted(reasons.items())]
        others = "; %d passed" % len(details) if details else ""
        return skipped("%s%s." % ("; ".join(said), others))
    return rolled_up(details, "%d peers.", "Nothing was tried.", good)


@node_check(
    "RDMA-FAB-003",
    "The address of each peer resolves",
    ERROR,
    "Look at link, ARP settings and switch port of the two NICs; 'arp_ignore' 8 answers nobody.",
    needs=("fabric",),
    evidence=("/proc/net/arp",),
    proof=True,
)
def neighbours(node: Node) -> Outcome:
    """F39, F79: a child reaches its peers on link, so each address must resolve to a hardware address."""
    return _judged(node, "neighbour", "an answer to ARP")


@node_check(
    "RDMA-FAB-004",
    "Each peer answers echo requests",
    ERROR,
    "Look at link, cable and switch port of the rail, then at packet filters of both nodes.",
    needs=("fabric",),
    evidence=("ICMP",),
    proof=True,
)
def echo(node: Node) -> Outcome:
    """F24, F39: from the child's own address, by its own rule and route; all requests must be answered."""
    outcome = _judged(node, "icmp", "all requests answered")
    times = sorted([probe.rtt_us for probe in _section(node).probes if probe.rtt_us is not None])
    if outcome.status != PASS or not times:
        return outcome
    return passed(
        "%d peers; round trips %d to %d us, median %d us."
        % (len(_section(node).probes), times[0], times[-1], times[len(times) // 2])
    )


@node_check(
    "RDMA-FAB-005",
    "Packets of full size pass without being split",
    ERROR,
    "Compare the MTU of both NICs and of every switch port between them.",
    needs=("fabric",),
    evidence=("ICMP",),
    proof=True,
)
def full_size(node: Node) -> Outcome:
    """S36, L12: the larger MTU of the two ends, with 'do not fragment'."""
    return _judged(node, "full_size", "all packets of full size answered")


@node_check(
    "RDMA-FAB-006",
    "An RDMA ping-pong works with each peer",
    CRITICAL,
    "When echo requests pass and this fails, look at UDP 4791 in filters, at the GIDs, and at lossless settings.",
    needs=("fabric",),
    evidence=("rping",),
    proof=True,
)
def ping_pong(node: Node) -> Outcome:
    """F134, L18: by the connection manager, which finds the GID by the address. Without the tool it is skipped."""
    return _judged(node, "rdma", "a ping-pong")


@fleet_check(
    "RDMA-FAB-007",
    "Each pair works in both directions",
    ERROR,
    "One of the two refuses what the other takes: compare their ARP settings, packet filters and MTU.",
    needs=("fabric",),
    evidence=("probes of both nodes",),
    proof=True,
)
def both_directions(fleet: Fleet) -> dict[str, Outcome]:
    """A definition of this project: the two directions are compared at the first test that differs."""
    probes = {node.name: _section(node).probes for node in fleet.nodes}
    found: dict[str, list[Detail]] = {}
    for entry in proof.one_way(probes):
        told = "%s from %s to %s fails (%s), the other way it passes" % (
            _NAMES[entry.test],
            entry.source,
            entry.target,
            entry.reason,
        )
        for name in (entry.source, entry.target):
            found.setdefault(name, []).append(bad("rail %d" % entry.index, told, "both ways", "one way"))
    return {node.name: _of_probes(node, found.get(node.name, ()), "%d pairs.") for node in fleet.nodes}


_NAMES = {
    "neighbour": "the address",
    "icmp": "echo",
    "full_size": "full size",
    "rdma": "RDMA",
}


def _of_probes(node: Node, details: Iterable[Detail], good: str) -> Outcome:
    section = _section(node)
    wrong = list(details)
    if wrong:
        return rolled_up(wrong, "", "")
    if not section.probes:
        return _judged(node, "icmp", "")
    return passed(good % len(section.probes))


@fleet_check(
    "RDMA-FAB-008",
    "No NIC is cut off from its rail",
    CRITICAL,
    "Look at this NIC's cable, port and authentication first; when a whole rail is dead, at its switch.",
    needs=("fabric",),
    evidence=("probes of all nodes",),
    proof=True,
)
def cut_off(fleet: Fleet) -> dict[str, Outcome]:
    """A definition of this project: nothing passed to or from the NIC; the rest of the rail tells whose fault it is."""
    probes = {node.name: _section(node).probes for node in fleet.nodes}
    found: dict[str, list[Detail]] = {}
    dead = proof.suspects(probes)
    for index, names in dead.items():
        for name in names:
            told = "nothing passes to or from this node, while others of the rail reach each other"
            found.setdefault(name, []).append(bad("rail %d" % index, told, "reached", "cut off"))
        if not names:
            for name in _of_rail(probes, index):
                told = "nothing passes between any nodes; the fault is at one of them or at the rail's switch"
                found.setdefault(name, []).append(bad("rail %d" % index, told, "reached", "dead"))
    return {node.name: _of_probes(node, found.get(node.name, ()), "%d pairs.") for node in fleet.nodes}


def _of_rail(probes: dict[str, tuple[proof.FabricProbe, ...]], index: int) -> list[str]:
    return [name for name, own in probes.items() if any(probe.index == index for probe in own)]


@node_check(
    "RDMA-FAB-009",
    "The children of the proof and their GIDs are gone",
    ERROR,
    "Run the proof again, or remove the namespace: 'ip netns delete rdma-k8s-fabric'.",
    needs=("fabric",),
    evidence=("rtnetlink", "/sys/class/infiniband"),
    proof=True,
)
def cleaned_up(node: Node) -> Outcome:
    """L9, F111: what was made for the proof is removed, and the GIDs vanish with it."""
    section = _section(node)
    if "cleanup" in section.problems:
        return unknown("The clean-up was not seen: %s" % section.problems["cleanup"])
    details = []
    for child in section.children:
        if child.gone is False:
            details.append(
                bad(child.nic, "its GID is still in the table of %s" % child.device, "gone", "left")
            )
        elif child.gone:
            details.append(ok(child.nic))
        elif child.state == proof.READY:
            details.append(unclear(child.nic, "it was not removed"))
    return rolled_up(details, "%d children removed.", "") if details else _nothing(section)
