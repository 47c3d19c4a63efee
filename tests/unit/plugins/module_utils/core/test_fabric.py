# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The pure part of the fabric proof: pairs, verdicts, directions, blame, latency, merging."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.core import codec, fabric
from ansible_collections.rdma.k8s.plugins.module_utils.core.errors import RdmaError
from ansible_collections.rdma.k8s.plugins.module_utils.core.fabric import (
    End,
    Fabric,
    FabricChild,
    FabricProbe,
    Verdict,
)

GOOD = FabricProbe(
    nic="rdma0",
    index=0,
    address="10.208.0.1",
    peer="b",
    peer_address="10.208.0.2",
    neighbour="52:54:00:00:00:01",
    sent=3,
    received=3,
    rtt_us=40,
    full_size=4220,
    full_sent=3,
    full_received=3,
    rdma="ok",
    rdma_us=90,
)
SILENT = replace(GOOD, neighbour="", received=0, rtt_us=None, full_received=0, rdma=None, rdma_us=None)


def ends(nodes: int, rails: int = 1) -> list[End]:
    return [
        End("n%03d" % node, rail, "rdma%d" % rail, "10.%d.0.%d" % (rail, node), 4220)
        for node in range(nodes)
        for rail in range(rails)
    ]


# --- pairs


@pytest.mark.parametrize(
    ("nodes", "expected"), [(0, 0), (1, 0), (2, 2), (3, 6), (4, 12), (5, 20), (6, 24), (100, 400)]
)
def test_a_ring_is_linear_and_has_both_directions(nodes: int, expected: int) -> None:
    pairs = fabric.plan_pairs(ends(nodes), "ring", 7)
    assert len(pairs) == expected
    seen = {(pair.source.node, pair.target.node) for pair in pairs}
    assert len(seen) == expected
    assert all((target, source) in seen for source, target in seen)
    assert all(source != target for source, target in seen)
    per_node = Counter(pair.source.node for pair in pairs)
    assert set(per_node.values()) <= {min(4, nodes - 1)}


def test_a_ring_connects_every_node_of_a_rail() -> None:
    reached, todo = {"n000"}, ["n000"]
    pairs = fabric.plan_pairs(ends(57), "ring", 3)
    while todo:
        node = todo.pop()
        found = {pair.target.node for pair in pairs if pair.source.node == node} - reached
        reached |= found
        todo += found
    assert len(reached) == 57


def test_rails_do_not_mix_and_have_rings_of_their_own() -> None:
    pairs = fabric.plan_pairs(ends(20, 2), "ring", 0)
    assert all(pair.source.index == pair.target.index for pair in pairs)
    rails = [
        {(pair.source.node, pair.target.node) for pair in pairs if pair.source.index == rail}
        for rail in (0, 1)
    ]
    assert rails[0] != rails[1]


def test_the_seed_fixes_the_ring_whatever_the_order_of_the_nodes() -> None:
    wanted = fabric.plan_pairs(ends(9), "ring", 5)
    assert fabric.plan_pairs(reversed(ends(9)), "ring", 5) == wanted
    assert fabric.plan_pairs(ends(9), "ring", 6) != wanted
    # A place in the ring is part of the interface: the same seed gives the same pairs with every release.
    assert [(pair.source.node, pair.target.node) for pair in wanted][:4] == [
        ("n000", "n001"),
        ("n000", "n005"),
        ("n000", "n006"),
        ("n000", "n007"),
    ]


def test_all_pairs_of_a_rail() -> None:
    assert len(fabric.plan_pairs(ends(10, 3), "all")) == 3 * 10 * 9


def test_an_unknown_mode_is_refused() -> None:
    with pytest.raises(RdmaError) as caught:
        fabric.plan_pairs(ends(2), "star")
    assert caught.value.code == "fabric_mode"


def test_the_larger_mtu_counts() -> None:
    """S36: the smaller one is a finding, so it must not decide the size of the packets."""
    small, large = replace(ends(1)[0], mtu=1500), replace(ends(2)[1], mtu=4220)
    assert [pair.to_dict()["mtu"] for pair in fabric.plan_pairs([small, large])] == [4220, 4220]


def test_a_node_alone_on_a_rail_is_told() -> None:
    assert fabric.lone_rails([*ends(2), replace(ends(1)[0], index=4)]) == {("n000", 4)}


def test_only_ready_children_are_ends() -> None:
    section = Fabric(
        children=(
            FabricChild("rdma0", 0, "ready", "10.208.0.1/12", 4220),
            FabricChild("rdma1", 1, "in_use", "10.208.1.1/12", 4220),
            FabricChild("rdma2", 2, "ready", "10.208.2.1/12", 4220),
            FabricChild("rdma3", -1, "ready", "10.208.3.1/12", 4220),
        )
    )
    found = fabric.ends_of("a", section, {"rdma2": "rping is not installed"})
    assert [(end.nic, end.address, end.silent) for end in found] == [
        ("rdma0", "10.208.0.1", ""),
        ("rdma2", "10.208.2.1", "rping is not installed"),
    ]
    assert {end.silent for end in fabric.ends_of("a", section)} == {"no listener was started"}


# --- verdicts

VERDICTS: dict[str, tuple[FabricProbe, dict[str, str]]] = {
    "good": (GOOD, {}),
    "nothing resolves": (
        SILENT,
        {"neighbour": "fail", "icmp": "skip", "full_size": "skip", "rdma": "skip"},
    ),
    "resolves, no echo": (
        replace(SILENT, neighbour="52:54:00:00:00:01"),
        {"icmp": "fail", "full_size": "skip", "rdma": "skip"},
    ),
    "one of three lost": (replace(GOOD, received=2), {"icmp": "fail"}),
    "full size lost": (replace(GOOD, full_received=0), {"full_size": "fail"}),
    "full size partly lost": (replace(GOOD, full_received=2), {"full_size": "fail"}),
    "own MTU too small": (
        replace(GOOD, full_sent=0, full_received=0, full_error="message too long"),
        {"full_size": "fail"},
    ),
    "full size switched off": (
        replace(GOOD, full_size=0, full_sent=0, full_received=0),
        {"full_size": "skip"},
    ),
    "ping-pong failed": (replace(GOOD, rdma="failed", rdma_reason="no end within 10 s"), {"rdma": "fail"}),
    "no tool here": (replace(GOOD, rdma="no_tool", rdma_reason="rping is not installed"), {"rdma": "skip"}),
    "no tool there": (replace(GOOD, rdma="no_listener", rdma_reason="b: not installed"), {"rdma": "skip"}),
    "ping-pong switched off": (replace(GOOD, rdma="off", rdma_reason="switched off"), {"rdma": "skip"}),
    "ping-pong not told": (replace(GOOD, rdma=None), {"rdma": "unknown"}),
    "nothing tried": (
        FabricProbe("rdma0", 0, "10.208.0.1", "b", "10.208.0.2"),
        {"neighbour": "unknown", "icmp": "unknown", "full_size": "unknown", "rdma": "unknown"},
    ),
    "nothing sent, so nothing in the table": (
        FabricProbe("rdma0", 0, "10.208.0.1", "b", "10.208.0.2", neighbour=""),
        {"neighbour": "unknown", "icmp": "unknown", "full_size": "unknown", "rdma": "unknown"},
    ),
    "answers without an entry in the table": (replace(GOOD, neighbour=""), {}),
}


@pytest.mark.parametrize("name", VERDICTS)
def test_verdicts(name: str) -> None:
    probe, wanted = VERDICTS[name]
    found = fabric.verdicts(probe)
    assert tuple(found) == fabric.TESTS
    assert {test: verdict.status for test, verdict in found.items()} == {
        test: wanted.get(test, "pass") for test in fabric.TESTS
    }
    assert all(verdict.reason for verdict in found.values() if verdict.status != "pass")


def test_a_reason_has_the_numbers() -> None:
    assert fabric.verdicts(replace(GOOD, received=2))["icmp"] == Verdict(
        "fail", "2 of 3 echo requests answered"
    )
    said = fabric.verdicts(replace(GOOD, full_received=1))["full_size"].reason
    assert said == "1 of 3 packets of 4220 bytes answered, small ones all"
    said = fabric.verdicts(replace(GOOD, received=2, full_received=0))["full_size"].reason
    assert said == "0 of 3 packets of 4220 bytes answered, small ones 2 of 3"


# --- directions and blame


def fleet_of(*bad: tuple[str, str], nodes: str = "abcde", change: Any = None) -> dict[str, list[FabricProbe]]:
    """Everyone probes everyone on rail 0; the pairs in ``bad`` fail."""
    probes: dict[str, list[FabricProbe]] = {name: [] for name in nodes}
    for source in nodes:
        for target in nodes:
            if source != target:
                base = change or SILENT if (source, target) in bad else GOOD
                probes[source].append(replace(base, peer=target))
    return probes


def test_one_way() -> None:
    assert fabric.one_way(fleet_of()) == []
    assert fabric.one_way(fleet_of(("a", "b"), ("b", "a"))) == []
    (entry,) = fabric.one_way(fleet_of(("a", "b")))
    assert (entry.index, entry.source, entry.target, entry.test) == (0, "a", "b", "neighbour")
    lost = replace(GOOD, full_received=0)
    (entry,) = fabric.one_way(fleet_of(("b", "a"), change=lost))
    assert (entry.source, entry.target, entry.test) == ("b", "a", "full_size")
    failed = replace(GOOD, rdma="failed", rdma_reason="rejected")
    (entry,) = fabric.one_way(fleet_of(("b", "a"), change=failed))
    assert (entry.test, entry.reason) == ("rdma", "rejected")


def test_a_direction_that_was_not_probed_is_no_asymmetry() -> None:
    probes = fleet_of(("a", "b"))
    probes["b"] = []
    assert fabric.one_way(probes) == []


def test_who_is_cut_off() -> None:
    around_b = [(node, "b") for node in "acde"] + [("b", node) for node in "acde"]
    assert fabric.suspects(fleet_of(*around_b)) == {0: ["b"]}
    assert fabric.suspects(fleet_of(("a", "b"), ("b", "a"))) == {}
    assert fabric.suspects(fleet_of()) == {}
    assert fabric.suspects(fleet_of(("a", "b"), ("b", "a"), nodes="ab")) == {0: []}
    assert fabric.suspects(fleet_of(("a", "b"), nodes="ab")) == {}
    untried = FabricProbe("rdma0", 0, "10.208.0.1", "b", "10.208.0.2")
    assert fabric.suspects({"a": [untried]}) == {}


def test_latency_by_rail() -> None:
    probes = {
        "a": [GOOD, replace(GOOD, index=1, rtt_us=9)],
        "b": [replace(GOOD, peer="a", rtt_us=60)],
        "c": [SILENT],
    }
    found = fabric.latency(probes)
    assert [(entry.index, entry.median_us, entry.rtt_us) for entry in found] == [
        (0, 60, {"a": {"b": 40}, "b": {"a": 60}}),
        (1, 9, {"a": {"b": 9}}),
    ]
    summary = fabric.summary({name: Fabric(probes=tuple(own)) for name, own in probes.items()})
    assert summary["pairs"] == 4
    assert [entry["node"] for entry in summary["failed"]] == ["c"]
    assert summary["latency"][1]["rtt_us"] == {"a": {"b": 9}}


# --- the section


def test_parts_become_one_section() -> None:
    made = {"children": [{"nic": "rdma0", "index": 0, "gid": 2}, {"nic": "rdma1", "state": "in_use"}]}
    probed = {"probes": [], "expected": 4, "problems": {"probe of rdma1": "in use"}}
    gone = {
        "children": [{"nic": "rdma0", "state": "removed", "gone": True}, {"nic": "old", "state": "removed"}]
    }
    section = fabric.merged([made, probed, None, gone, {"problems": {"cleanup": "lost"}}])
    assert section["children"] == [
        {"nic": "rdma0", "index": 0, "gid": 2, "gone": True},
        {"nic": "rdma1", "state": "in_use"},
        {"nic": "old", "state": "removed"},
    ]
    assert section["problems"] == {"probe of rdma1": "in use", "cleanup": "lost"}
    found = codec.decode(Fabric, section)
    assert (found.expected, found.children[0].state, found.children[0].gone) == (4, "ready", True)
    assert codec.decode(Fabric, codec.encode(found)) == found


@pytest.mark.parametrize(
    ("pairs", "limit", "seconds"),
    [(0, 15, 0), (1, 15, 17.012), (16, 15, 17.192), (17, 15, 32.204), (64, 0, 2.768)],
)
def test_how_long_probing_takes_at_most(pairs: int, limit: float, seconds: float) -> None:
    """Each pair has three requests of two sizes, all wait together for the answers, and 16 ping-pongs run at a time."""
    assert fabric.longest(pairs, limit) == pytest.approx(seconds)
