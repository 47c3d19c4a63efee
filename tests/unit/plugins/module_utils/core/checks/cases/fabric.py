# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Cases of the area FAB: three healthy nodes with the records of a proof over two rails, and one fault in them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Callable, Optional

from ansible_collections.rdma.k8s.plugins.module_utils.core.checks.judge import NodeInput
from ansible_collections.rdma.k8s.plugins.module_utils.core.fabric import (
    End,
    Fabric,
    FabricChild,
    FabricProbe,
    plan_pairs,
)
from ansible_collections.rdma.k8s.tests.support import fleet
from ansible_collections.rdma.k8s.tests.support.cases import SICK, Case

NAMES = (SICK, "node-001", "node-002")
RAILS = (0, 1)
NO_TOOL = "rping is not installed (rdmacm-utils, or librdmacm-utils on Oracle Linux)"

Edit = Callable[[str, Fabric], Optional[Fabric]]


def proof_of(names: Sequence[str] = NAMES) -> dict[str, Fabric]:
    """What a proof without a fault leaves on each node."""
    ends = [
        End(name, rail, "rdma%d" % rail, "10.208.%d.%d" % (32 * rail, number + 1), 4220, "")
        for number, name in enumerate(names)
        for rail in RAILS
    ]
    sections = {}
    for name in names:
        own = [end for end in ends if end.node == name]
        children = [
            FabricChild(
                end.nic,
                end.index,
                address=end.address + "/12",
                mtu=4220,
                device="mlx5_%d" % end.index,
                port=1,
                gid=4,
                gone=True,
            )
            for end in own
        ]
        probes = [
            FabricProbe(
                nic=pair.source.nic,
                index=pair.source.index,
                address=pair.source.address,
                peer=pair.target.node,
                peer_address=pair.target.address,
                neighbour="b8:3f:d2:00:00:01",
                sent=3,
                received=3,
                rtt_us=40 + pair.source.index,
                full_size=4220,
                full_sent=3,
                full_received=3,
                rdma="ok",
                rdma_us=80,
            )
            for pair in plan_pairs(ends)
            if pair.source.node == name
        ]
        sections[name] = Fabric(tuple(children), tuple(probes), expected=len(probes))
    return sections


def nodes(edit: Optional[Edit] = None, names: Sequence[str] = NAMES) -> Callable[[], list[NodeInput]]:
    """A fleet after a proof; ``edit`` gets name and section of each node."""

    def made() -> list[NodeInput]:
        inputs = []
        for number, (name, section) in enumerate(proof_of(names).items()):
            changed = section if edit is None else edit(name, section)
            snapshot = fleet.node(fleet_shape, number, name)
            inputs.append(NodeInput(name, fleet.replace(snapshot, fabric=changed)))
        return inputs

    return made


fleet_shape = "BM.GPU.H100.8"


def child(**changes: Any) -> Edit:
    """Another first child on the sick node, which then probes nobody."""

    def edit(name: str, section: Fabric) -> Fabric:
        if name != SICK:
            return replace(section, probes=tuple(p for p in section.probes if (p.index, p.peer) != (0, SICK)))
        first, *rest = section.children
        kept = tuple(probe for probe in section.probes if probe.index != 0)
        return replace(section, children=(replace(first, **changes), *rest), probes=kept, expected=len(kept))

    return edit


def section(**changes: Any) -> Edit:
    """Another section on the sick node."""
    return lambda name, held: replace(held, **changes) if name == SICK else held


def probe(way: Callable[[str, FabricProbe], bool], **changes: Any) -> Edit:
    """Other probes where ``way`` says so."""
    return lambda name, held: replace(
        held, probes=tuple(replace(p, **changes) if way(name, p) else p for p in held.probes)
    )


def from_sick(name: str, entry: FabricProbe) -> bool:
    return (name, entry.index, entry.peer) == (SICK, 0, "node-001")


def both_ways(name: str, entry: FabricProbe) -> bool:
    return entry.index == 0 and {name, entry.peer} == {SICK, "node-001"}


def around_sick(name: str, entry: FabricProbe) -> bool:
    return entry.index == 0 and SICK in (name, entry.peer)


def whole_rail(name: str, entry: FabricProbe) -> bool:
    del name
    return entry.index == 0


def all_of_sick(name: str, entry: FabricProbe) -> bool:
    del entry
    return name == SICK


SILENT = {
    "neighbour": "",
    "received": 0,
    "rtt_us": None,
    "full_received": 0,
    "rdma": None,
    "rdma_us": None,
}
DEAF = {**SILENT, "neighbour": "b8:3f:d2:00:00:01"}
REFUSED = {"state": "refused", "gid": None, "gone": None, "code": "parent_address_missing"}


def case(
    check: str, status: str, message: str, title: str, edit: Optional[Edit] = None, *, also: str = ""
) -> Case:
    """A case on the whole fleet after a proof."""
    return Case("RDMA-FAB-" + check, status, message, title, also=also, inputs=nodes(edit))


CASES = [
    case("001", "pass", "2 children", "all children made"),
    case(
        "001",
        "pass",
        "1 children; left alone, since they are in use: rdma0.",
        "a NIC in use",
        child(state="in_use", gid=None, gone=None, code="nic_in_use", reason="rdma0 is in use: pod."),
    ),
    case(
        "001",
        "fail",
        "rdma0 holds no IPv4 address yet, expected 10.224.0.1",
        "a NIC that the profile refuses",
        child(**REFUSED, reason="rdma0 holds no IPv4 address yet, expected 10.224.0.1."),
    ),
    case(
        "001",
        "skip",
        "All RDMA NICs are in use and were left alone",
        "all NICs in use",
        section(
            children=tuple(
                FabricChild("rdma%d" % rail, rail, "in_use", code="nic_in_use", reason="In use.")
                for rail in RAILS
            ),
            probes=(),
            expected=0,
        ),
    ),
    case(
        "001",
        "unknown",
        "The children could not be made: pyroute2",
        "the module did not run",
        section(children=(), probes=(), expected=0, problems={"children": "pyroute2 is missing."}),
        also="FAB-002 unknown FAB-003 unknown FAB-004 unknown FAB-005 unknown FAB-006 unknown FAB-007 unknown "
        "FAB-008 unknown FAB-009 unknown",
    ),
    case(
        "001",
        "unknown",
        "check mode",
        "a run in check mode",
        section(
            children=tuple(FabricChild("rdma%d" % rail, rail, "planned") for rail in RAILS),
            probes=(),
            expected=0,
        ),
        also="FAB-002 unknown FAB-003 unknown FAB-004 unknown FAB-005 unknown FAB-006 unknown FAB-007 unknown "
        "FAB-008 unknown FAB-009 unknown",
    ),
    case("002", "pass", "2 GIDs", "all GIDs there"),
    case(
        "002",
        "fail",
        "rdma0: no GID",
        "a GID that does not appear",
        child(
            state="failed",
            gid=None,
            gone=None,
            code="gid_missing",
            reason="no GID 10.208.0.1 of type RoCE v2.",
        ),
        also="FAB-001 fail",
    ),
    case(
        "002",
        "fail",
        "rdma0: no RDMA device belongs to it",
        "a NIC without an RDMA device",
        child(gid=None, device=""),
        also="FAB-003 unknown FAB-004 unknown FAB-005 unknown FAB-006 unknown",
    ),
    case("003", "pass", "4 peers", "all peers resolve"),
    case(
        "003",
        "fail",
        "rdma0 to node-001: no answer to ARP for 10.208.0.2",
        "a peer that does not resolve",
        probe(both_ways, **SILENT),
    ),
    case("004", "pass", "round trips 40 to 41 us, median 41 us", "all peers answer"),
    case(
        "004",
        "fail",
        "rdma0 to node-001: none of 3 echo requests answered",
        "a peer that does not answer",
        probe(both_ways, **DEAF),
    ),
    case(
        "004",
        "fail",
        "rdma0 to node-001: 2 of 3 echo requests answered",
        "a pair that loses packets",
        probe(both_ways, received=2),
    ),
    case(
        "004",
        "unknown",
        "The peers were not probed: Connection closed",
        "a node that was lost before it probed",
        section(probes=(), problems={"probes": "Connection closed."}),
        also="FAB-003 unknown FAB-005 unknown FAB-006 unknown FAB-007 unknown FAB-008 unknown",
    ),
    case(
        "004",
        "skip",
        "No other node had a free NIC on the same rails",
        "a node without peers",
        section(probes=(), expected=0),
    ),
    case("005", "pass", "4 peers", "full size everywhere"),
    case(
        "005",
        "fail",
        "rdma0 to node-001: 0 of 3 packets of 4220 bytes answered, small ones all",
        "a small MTU on the way",
        probe(both_ways, full_received=0),
    ),
    case(
        "005",
        "fail",
        "a packet of 4220 bytes cannot be sent: message too long",
        "a small MTU of the NIC itself",
        probe(
            lambda name, entry: (name, entry.index) == (SICK, 0),
            full_sent=0,
            full_received=0,
            full_error="message too long",
        ),
        also="FAB-007 fail",
    ),
    case("006", "pass", "4 peers", "ping-pongs with all"),
    case(
        "006",
        "fail",
        "rdma0 to node-001: no end within 10 s",
        "a ping-pong that hangs",
        probe(both_ways, rdma="failed", rdma_reason="no end within 10 s"),
    ),
    case(
        "006",
        "skip",
        "rping is not installed (rdmacm-utils, or librdmacm-utils on Oracle Linux) (4 pairs).",
        "a node without the tool",
        probe(all_of_sick, rdma="no_tool", rdma_reason=NO_TOOL),
    ),
    case(
        "006",
        "skip",
        "node-001: rping is not installed",
        "a peer without the tool",
        probe(both_ways, rdma="no_listener", rdma_reason="node-001: " + NO_TOOL),
    ),
    case("007", "pass", "4 pairs", "both directions of all"),
    case(
        "007",
        "fail",
        "rail 0: echo from sick to node-001 fails (none of 3 echo requests answered), the other way it passes",
        "a peer that drops requests",
        probe(from_sick, **DEAF),
        also="FAB-004 fail",
    ),
    case(
        "007",
        "fail",
        "rail 0: RDMA from sick to node-001 fails (rejected), the other way it passes",
        "RDMA that works one way only",
        probe(from_sick, rdma="failed", rdma_reason="rejected"),
        also="FAB-006 fail",
    ),
    case("008", "pass", "4 pairs", "nobody cut off"),
    case(
        "008",
        "fail",
        "rail 0: nothing passes to or from this node, while others of the rail reach each other",
        "a cable that is out",
        probe(around_sick, **SILENT),
        also="FAB-003 fail",
    ),
    case(
        "008",
        "fail",
        "rail 0: nothing passes between any nodes",
        "a rail that is dead",
        probe(whole_rail, **SILENT),
        also="FAB-003 fail",
    ),
    case("009", "pass", "2 children removed", "all clean"),
    case(
        "009",
        "fail",
        "rdma0: its GID is still in the table of mlx5_0",
        "a GID that stays",
        lambda name, held: (
            replace(held, children=(replace(held.children[0], gone=False), *held.children[1:]))
            if name == SICK
            else held
        ),
    ),
    case(
        "009",
        "unknown",
        "The clean-up was not seen: Connection closed",
        "a node that was lost before the clean-up",
        section(problems={"cleanup": "Connection closed."}),
    ),
]
