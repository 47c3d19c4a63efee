# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The fabric proof: who probes whom, what a probe saw, and what follows. Private to rdma.k8s: it may change any time.

A node's part is the section ``fabric`` of its snapshot: the children that were made for the proof, and what each of
them saw of its peers. Probing happens on the nodes, judging here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Optional

from . import codec
from .errors import RdmaError

READY, IN_USE, REFUSED, FAILED, PLANNED, REMOVED = CHILD_STATES = (
    "ready",
    "in_use",
    "refused",
    "failed",
    "planned",
    "removed",
)
RING, ALL = MODES = ("ring", "all")

PASS, FAIL, SKIP, UNKNOWN = "pass", "fail", "skip", "unknown"
STEPS = ("children", "probes", "cleanup")
"""The steps of the proof that a node takes."""

TESTS = ("neighbour", "icmp", "full_size", "rdma")
"""The tests of a pair in the order in which one needs the other."""
COUNT, TIMEOUT = 3, 2.0
"""Echo requests of each of the two sizes for a pair, and seconds for the answers of all pairs, unless it is told."""
INTERVAL = 0.002
"""Seconds between two echo requests of one node."""
AT_ONCE = 16
"""Ping-pongs of one node at a time: a fabric of which nothing works costs a few limits, not one for each pair."""


@dataclass(frozen=True)
class FabricChild:
    """A child that was made for the proof, or the reason why there is none.

    :param state: ``ready``; ``in_use``: its NIC serves a pod and was left alone (decision 31); ``refused`` by the
        profile; ``failed`` to be made; ``planned``: in check mode; ``removed``: an earlier run had left it.
    :param code: error code of a state that is not ``ready``, ``reason`` its sentence.
    :param gid: index of its GID of type RoCE v2 on ``device``, ``None``: there is no RDMA device.
    :param gone: after the clean-up: whether child and GID are gone; ``None``: no clean-up was seen.
    """

    nic: str = codec.text()
    index: int = codec.integer(-1)
    state: str = codec.text(READY)
    address: str = codec.text("")
    mtu: int = codec.integer(0)
    device: str = codec.text("")
    port: int = codec.integer(0)
    gid: Optional[int] = codec.integer(None)
    code: str = codec.text("")
    reason: str = codec.text("")
    gone: Optional[bool] = codec.boolean(None)


@dataclass(frozen=True)
class FabricProbe:
    """What one child saw of one peer. Nothing is judged here; ``None``: not tried.

    :param nic: the child that probed, ``index`` its rail, ``address`` its address.
    :param peer: name of the peer's node.
    :param neighbour: hardware address that the peer's address resolved to; empty: it did not resolve. Without a
        packet that was sent it says nothing.
    :param sent: small echo requests, ``received``: answers to them, ``rtt_us``: the shortest round trip.
    :param full_size: bytes of the largest IP packet (the MTU), ``full_sent`` and ``full_received`` with "do not
        fragment"; ``full_error``: why the node itself could not send it.
    :param rdma: ``ok``, ``failed``, ``no_tool`` (here), ``no_listener`` (the peer has none); ``rdma_reason``: why.
    :param rdma_us: time of one round of the ping-pong, with its share of the connection.
    """

    nic: str = codec.text()
    index: int = codec.integer()
    address: str = codec.text()
    peer: str = codec.text()
    peer_address: str = codec.text()
    neighbour: Optional[str] = codec.text(None)
    sent: int = codec.integer(0)
    received: int = codec.integer(0)
    rtt_us: Optional[int] = codec.integer(None)
    full_size: int = codec.integer(0)
    full_sent: int = codec.integer(0)
    full_received: int = codec.integer(0)
    full_error: str = codec.text("")
    rdma: Optional[str] = codec.text(None)
    rdma_reason: str = codec.text("")
    rdma_us: Optional[int] = codec.integer(None)


@dataclass(frozen=True)
class Fabric:
    """The section ``fabric`` of a snapshot.

    :param problems: step of the proof (``children``, ``probes``, ``cleanup``) to the reason why it failed on this node;
        ``probe of NIC``: why this NIC did not probe.
    :param expected: how many probes the plan has for the node.
    """

    children: tuple[FabricChild, ...] = codec.items(FabricChild)
    probes: tuple[FabricProbe, ...] = codec.items(FabricProbe)
    problems: dict[str, str] = codec.text_map()
    expected: int = codec.integer(0)


# --- who probes whom ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class End:
    """One end of a probe: node, rail, NIC, address and MTU of a child.

    ``silent``: why no RDMA listener waits there; empty: one does.
    """

    node: str
    index: int
    nic: str
    address: str
    mtu: int = 0
    silent: str = "no listener was started"


@dataclass(frozen=True)
class Pair:
    """A directed probe: ``source`` asks ``target``."""

    source: End
    target: End

    def to_dict(self) -> dict[str, Any]:
        """As the module that probes takes it. The larger MTU of the two counts: the smaller one is a finding."""
        return {
            "nic": self.source.nic,
            "index": self.source.index,
            "address": self.source.address,
            "mtu": max(self.source.mtu, self.target.mtu),
            "peer": self.target.node,
            "peer_address": self.target.address,
            "silent": self.target.silent,
        }


def ends_of(name: str, fabric: Fabric, silent: Optional[Mapping[str, str]] = None) -> list[End]:
    """The ends that a node offers: its ready children.

    :param silent: NIC to the reason why no RDMA listener waits on it; ``None``: none was started at all.
    """
    return [
        End(
            name,
            child.index,
            child.nic,
            child.address.partition("/")[0],
            child.mtu,
            End.silent if silent is None else silent.get(child.nic, ""),
        )
        for child in fabric.children
        if child.state == READY and child.index >= 0
    ]


def plan_pairs(ends: Iterable[End], mode: str = RING, seed: int = 0) -> list[Pair]:
    """The probes of all rails, both directions of each, in the order of rails and nodes.

    ``ring``: on each rail the nodes stand in an order that the seed fixes, and each probes the next one and the one
    behind it, and is probed by them: at most four probes for each node and rail, however many nodes there are.
    ``all``: everyone probes everyone of the rail.

    :raises RdmaError: ``fabric_mode`` for another mode.
    """
    if mode not in MODES:
        raise RdmaError("fabric_mode", "Pairs are %s; found %r." % (" or ".join(MODES), mode))
    rails: dict[int, list[End]] = {}
    for end in ends:
        rails.setdefault(end.index, []).append(end)
    pairs: list[Pair] = []
    for index in sorted(rails):
        members = sorted(rails[index], key=lambda end: _shuffled(seed, index, end.node))
        pairs += sorted(_pairs(members, mode), key=lambda pair: (pair.source.node, pair.target.node))
    return pairs


def _pairs(members: Sequence[End], mode: str) -> list[Pair]:
    count = len(members)
    steps = range(1, count) if mode == ALL else (1, 2)
    found: dict[tuple[str, str], Pair] = {}
    for at, source in enumerate(members):
        for step in steps:
            target = members[(at + step) % count]
            for one, other in ((source, target), (target, source)):
                if one.node != other.node:
                    found[(one.node, other.node)] = Pair(one, other)
    return list(found.values())


def _shuffled(seed: int, index: int, node: str) -> str:
    """A place in the ring that follows from the seed alone, on every machine and Python."""
    import hashlib  # noqa: PLC0415 (only who makes a plan needs it)

    return hashlib.sha256(("%d/%d/%s" % (seed, index, node)).encode("utf-8", "surrogatepass")).hexdigest()


def longest(pairs: int, rdma_timeout: float) -> float:
    """Seconds after which a node with so many pairs has an answer, or none, to each of its probes.

    :param rdma_timeout: seconds for each ping-pong; 0: there are none.
    """
    if not pairs:
        return 0.0
    return pairs * COUNT * 2 * INTERVAL + TIMEOUT + -(-pairs // AT_ONCE) * rdma_timeout


def lone_rails(ends: Iterable[End]) -> set[tuple[str, int]]:
    """Node and rail of children that are alone on their rail: nobody can probe them."""
    rails: dict[int, list[End]] = {}
    for end in ends:
        rails.setdefault(end.index, []).append(end)
    return {(members[0].node, index) for index, members in rails.items() if len(members) == 1}


# --- what a probe means ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Verdict:
    """The result of one test of one pair."""

    status: str
    reason: str = ""


def verdicts(probe: FabricProbe) -> dict[str, Verdict]:
    """The tests of a probe. One that needs another that failed was not tried: ``skip``, never ``pass``."""
    found = {test: judge(probe) for test, judge in _JUDGES.items()}
    silent = probe.sent > 0 and not probe.received
    for number, test in enumerate(TESTS):
        if silent and any(found[earlier].status == FAIL for earlier in TESTS[:number]):
            found[test] = Verdict(SKIP, "not tried, since the peer does not answer")
    return found


def _neighbour(probe: FabricProbe) -> Verdict:
    if probe.neighbour is None or not probe.sent:
        return Verdict(UNKNOWN, "not tried")
    if not probe.neighbour and not probe.received:
        return Verdict(FAIL, "no answer to ARP for %s" % probe.peer_address)
    return Verdict(PASS)


def _icmp(probe: FabricProbe) -> Verdict:
    if not probe.sent:
        return Verdict(UNKNOWN, "not tried")
    if not probe.received:
        return Verdict(FAIL, "none of %d echo requests answered" % probe.sent)
    if probe.received < probe.sent:
        return Verdict(FAIL, "%d of %d echo requests answered" % (probe.received, probe.sent))
    return Verdict(PASS)


def _full_size(probe: FabricProbe) -> Verdict:
    if probe.full_error:
        return Verdict(FAIL, "a packet of %d bytes cannot be sent: %s" % (probe.full_size, probe.full_error))
    if not probe.full_sent:
        return Verdict(SKIP, "switched off") if probe.sent else Verdict(UNKNOWN, "not tried")
    if probe.full_received < probe.full_sent:
        small = "all" if probe.received == probe.sent else "%d of %d" % (probe.received, probe.sent)
        return Verdict(
            FAIL,
            "%d of %d packets of %d bytes answered, small ones %s"
            % (probe.full_received, probe.full_sent, probe.full_size, small),
        )
    return Verdict(PASS)


def _rdma(probe: FabricProbe) -> Verdict:
    if probe.rdma == "ok":
        return Verdict(PASS)
    if probe.rdma == "failed":
        return Verdict(FAIL, probe.rdma_reason or "the ping-pong failed")
    if probe.rdma in ("no_tool", "no_listener", "off"):
        return Verdict(SKIP, probe.rdma_reason)
    return Verdict(UNKNOWN, "not tried")


_JUDGES = {"neighbour": _neighbour, "icmp": _icmp, "full_size": _full_size, "rdma": _rdma}


@dataclass(frozen=True)
class OneWay:
    """A pair that works one way only: node and test, the way that fails and why."""

    index: int
    source: str
    target: str
    test: str
    reason: str


def one_way(probes: Mapping[str, Sequence[FabricProbe]]) -> list[OneWay]:
    """The pairs whose two directions do not agree, by rail and node; each pair at the first test that differs.

    :param probes: node name to its probes.
    """
    by_pair = {
        (probe.index, name, probe.peer): verdicts(probe) for name, own in probes.items() for probe in own
    }
    found = []
    for (index, source, target), there in sorted(by_pair.items()):
        back = by_pair.get((index, target, source))
        for test in TESTS if back is not None else ():
            if there[test].status == FAIL and back is not None and back[test].status == PASS:
                found.append(OneWay(index, source, target, test, there[test].reason))
            if there[test].status == FAIL or (back is not None and back[test].status == FAIL):
                break
    return found


def suspects(probes: Mapping[str, Sequence[FabricProbe]]) -> dict[int, list[str]]:
    """Rail to the nodes whose NIC must be at fault: nothing from or to them passed, while others of the rail did.

    A rail on which nothing passed at all stands with an empty list: the rail is at fault, or whom to blame is open.
    """
    rails: dict[int, dict[str, list[str]]] = {}
    for name, own in probes.items():
        for probe in own:
            status = _reached(probe)
            rail = rails.setdefault(probe.index, {})
            for node in (name, probe.peer):
                rail.setdefault(node, []).append(status)
    found: dict[int, list[str]] = {}
    for index, nodes in sorted(rails.items()):
        dead = sorted([node for node, statuses in nodes.items() if FAIL in statuses and PASS not in statuses])
        if dead:
            found[index] = [] if len(dead) == len(nodes) else dead
    return found


def _reached(probe: FabricProbe) -> str:
    """``pass`` when anything came back."""
    if probe.received:
        return PASS
    return FAIL if probe.sent else UNKNOWN


# --- latency --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RailLatency:
    """Round trips of one rail in microseconds: from node to node, and the median of all."""

    index: int
    median_us: int
    rtt_us: dict[str, dict[str, int]]


def latency(probes: Mapping[str, Sequence[FabricProbe]]) -> list[RailLatency]:
    """The latency matrix, one entry for each rail on which something was answered."""
    rails: dict[int, dict[str, dict[str, int]]] = {}
    for name in sorted(probes):
        for probe in probes[name]:
            if probe.rtt_us is not None:
                rails.setdefault(probe.index, {}).setdefault(name, {})[probe.peer] = probe.rtt_us
    found = []
    for index in sorted(rails):
        values = sorted([value for row in rails[index].values() for value in row.values()])
        found.append(RailLatency(index, values[len(values) // 2], rails[index]))
    return found


def summary(sections: Mapping[str, Fabric]) -> dict[str, Any]:
    """What a whole fleet's proof showed, as plain data: pairs one way only, NICs cut off, the latency matrix."""
    probes = {name: section.probes for name, section in sections.items()}
    return {
        "pairs": sum([len(own) for own in probes.values()]),
        "failed": [
            {"node": name, "nic": probe.nic, "peer": probe.peer, "test": test, "reason": verdict.reason}
            for name, own in sorted(probes.items())
            for probe in own
            for test, verdict in verdicts(probe).items()
            if verdict.status == FAIL
        ],
        "one_way": [vars(entry) for entry in one_way(probes)],
        "cut_off": {str(index): names for index, names in suspects(probes).items()},
        "latency": [vars(entry) for entry in latency(probes)],
    }


# --- the parts of a section -----------------------------------------------------------------------------------------


def merged(parts: Iterable[Any]) -> dict[str, Any]:
    """One section from the parts that the steps of the proof returned, as plain data.

    A later ``children`` tells of the same NICs what an earlier one did not (after the clean-up: ``gone``); the other
    members of a later part are laid over those of an earlier one.
    """
    section: dict[str, Any] = {}
    for part in parts:
        if not isinstance(part, dict):
            continue
        for key, value in part.items():
            if key == "children" and isinstance(value, list):
                section[key] = _merged_children(section.get(key, []), value)
            elif key == "problems" and isinstance(value, dict):
                section[key] = {**section.get(key, {}), **value}
            else:
                section[key] = value
    return section


def _merged_children(earlier: list[Any], later: list[Any]) -> list[Any]:
    known = {entry.get("nic"): entry for entry in later if isinstance(entry, dict)}
    kept = [
        {**entry, **_gone(known.pop(entry.get("nic"), None))} for entry in earlier if isinstance(entry, dict)
    ]
    return kept + list(known.values())


def _gone(entry: Optional[dict[str, Any]]) -> dict[str, Any]:
    return {"gone": entry["gone"]} if entry is not None and "gone" in entry else {}
