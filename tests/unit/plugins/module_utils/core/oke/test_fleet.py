# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A fleet: its plan, its range, the alternatives."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Optional

import pytest
from hypothesis import given, settings, strategies as st

from ansible_collections.rdma.k8s.plugins.module_utils.core.net import Prefix, parse_prefix
from ansible_collections.rdma.k8s.plugins.module_utils.core.oke import fleet, free_ranges, range_check
from ansible_collections.rdma.k8s.plugins.module_utils.core.oke.addressing import derive_child
from ansible_collections.rdma.k8s.plugins.module_utils.core.oke.constants import RESERVED_RANGES
from ansible_collections.rdma.k8s.plugins.module_utils.core.snapshot import Route
from ansible_collections.rdma.k8s.tests.support.outcome import error_of, outcome

SUBNET = "10.140.64.0/19"


def node(number: int, nics: Any = range(16), subnet: str = SUBNET, **more: Any) -> fleet.FleetNode:
    """Node n<number> of the reference subnet."""
    return fleet.FleetNode("n%d" % number, "10.140.77.%d" % number, subnet, nics, **more)


def codes(report: range_check.RangeReport) -> list[str]:
    """The codes of the problems."""
    return [problem.code for problem in report.problems]


# --- plan


def test_the_rows_of_a_plan() -> None:
    """F15, B1: node, NIC, parent, child, table."""
    plan = fleet.plan_fleet([node(19, (0, 15)), node(20, (0,))])
    assert list(plan.text_rows()) == [
        "n19 0 10.224.13.19 10.208.13.19/12 100",
        "n19 15 10.225.237.19 10.209.237.19/12 115",
        "n20 0 10.224.13.20 10.208.13.20/12 100",
    ]
    assert len(fleet.HEADER.split()) == 5
    assert (plan.count, plan.errors, plan.clashes) == (3, (), ())


TEXTS = st.sampled_from(
    [
        *(
            "10.140.77.19",
            "10.140.77.20",
            "10.140.64.0",
            "10.140.95.255",
            "10.140.96.1",
            "10.3.0.9",
            "172.16.0.9",
        ),
        *("", "fd00::1", "x", "10.224.0.9", "192.168.0.5"),
    ]
)
SUBNETS = st.sampled_from(
    [
        SUBNET,
        "10.140.77.19/19",
        "10.140.0.0/16",
        "10.3.0.0/24",
        "172.16.0.0/12",
        "",
        "x",
        "fd00::/64",
        "10.224.0.0/16",
        "192.168.0.0/29",
    ]
)
OCA = st.sampled_from(
    ["10.224.0.0/12", "192.168.0.0/16", "192.168.7.0/24", "10.224.0.1/12", "", "fd00::/8", "10.0.0.0/8"]
)
RANGES = st.sampled_from(["10.208.0.0/12", "10.192.0.0/16", "10.192.0.0/19", "11.0.0.0/30", "100.64.0.0/10"])
NICS = st.sampled_from([(), (0,), (0, 1, 2), tuple(range(16)), (15, 3), (7, 16)])


@given(st.lists(st.tuples(TEXTS, SUBNETS, OCA, NICS), max_size=12), RANGES)
@settings(max_examples=150)
def test_a_plan_equals_the_derivation_of_each_nic(rows: list[Any], wanted: str) -> None:
    """B1: the short cut over a subnet changes nothing, neither a value nor an error."""
    nodes = [
        fleet.FleetNode(str(n), address, subnet, nics, oca)
        for n, (address, subnet, oca, nics) in enumerate(rows)
    ]
    plan = fleet.plan_fleet(nodes, wanted)
    children = {(name, index): child for name, index, child in plan.children()}
    errors = {(entry.node, entry.nic_index): (entry.error.code, entry.error.message) for entry in plan.errors}
    for entry in nodes:
        for index in entry.nics:
            expected = outcome(derive_child, entry.vnic, index, entry.oca_network, wanted)
            place = (entry.name, index)
            assert children.get(place) == expected.value
            assert errors.get(place, ("", "")) == (expected.code, expected.message)
    assert len(children) + len(errors) == sum(len(entry.nics) for entry in nodes)
    assert plan.count == len(children)
    held = [child.child for child in children.values()]
    assert {clash.child for clash in plan.clashes} == {address for address in held if held.count(address) > 1}
    assert [row.split()[2:] for row in plan.text_rows()] == [
        [str(child.parent), str(child.child_address), str(child.table)]
        for _name, _index, child in plan.children()
    ]


def test_a_clash_names_all_holders() -> None:
    """F23: two subnets give the same positions, and so the same children."""
    other = fleet.FleetNode("m19", "10.141.77.19", "10.141.64.0/19", (0, 1))
    plan = fleet.plan_fleet([node(19, (0,)), other, node(20, (0,))])
    assert [(str(clash.child), clash.holders) for clash in plan.clashes] == [
        ("10.208.13.19", (("n19", 0), ("m19", 0)))
    ]


def test_an_oca_network_smaller_than_a_block() -> None:
    """F21: then it depends on the position whether a NIC fits, so no node speaks for another."""
    low, high = [
        fleet.FleetNode(name, address, "10.140.0.0/16", (0,), "192.168.0.0/17")
        for name, address in (("low", "10.140.0.9"), ("high", "10.140.200.9"))
    ]
    for nodes in ([low, high], [high, low]):
        plan = fleet.plan_fleet(nodes)
        assert [entry.node for entry in plan.errors] == ["high"]
        assert [node for node, _index, _child in plan.children()] == ["low"]


def test_a_node_outside_the_subnet_of_its_neighbours() -> None:
    """F25: it is derived by itself, and has the error of its own address."""
    outside = fleet.FleetNode("m", "10.140.96.1", SUBNET, (0,))
    plan = fleet.plan_fleet([node(19, (0,)), outside, node(20, (0,))])
    assert [(entry.node, entry.error.code) for entry in plan.errors] == [("m", "vnic_outside_subnet")]
    assert plan.count == 2


def test_a_plan_needs_a_valid_range() -> None:
    """F27."""
    assert error_of(fleet.plan_fleet, [node(1)], "10.208.0.1/12").code == "range_not_masked"


# --- free ranges


@pytest.mark.parametrize(
    ("nics", "avoid", "supernets", "expected"),
    [
        (16, [], None, "10.0.0.0/15"),
        (16, ["10.0.0.0/9"], None, "10.128.0.0/15"),
        (16, ["10.0.0.0/9", "10.128.0.0/15", "default", "10.130.0.9", "fd00::/8"], None, "10.132.0.0/15"),
        (16, ["10.0.0.0/8"], None, "172.16.0.0/15"),
        (16, ["10.0.0.0/8", "172.16.0.0/12"], None, "192.168.0.0/15"),
        (4, ["10.0.0.0/8"], ["10.0.0.0/8", "192.168.0.0/16"], "192.168.0.0/17"),
        (1, [], ["169.254.0.0/15"], "169.255.0.0/19"),
        (1, [], ["10.140.64.0/18"], "10.140.96.0/19"),
    ],
)
def test_the_first_free_range(
    nics: int, avoid: list[str], supernets: Optional[list[str]], expected: str
) -> None:
    """F18: of the right size, aligned, beside everything in use, the subnet and what is reserved."""
    expected = (
        "100.64.0.0/15" if expected == "192.168.0.0/15" else expected
    )  # a /15 does not fit 192.168.0.0/16
    assert str(free_ranges.first(parse_prefix(SUBNET), nics, avoid, supernets)) == expected


@pytest.mark.parametrize(
    ("subnet", "nics", "avoid", "supernets", "code"),
    [
        ("fd00::/64", 16, [], None, "subnet_not_ipv4"),
        (SUBNET, 0, [], None, "nic_count"),
        (SUBNET, 17, [], None, "nic_count"),
        ("10.0.0.0/10", 16, [], None, "no_range_holds_nics"),
        (SUBNET, 16, ["10.0.0.0/8"], ["10.0.0.0/8"], "no_free_range"),
        (SUBNET, 16, [], ["10.140.64.0/19"], "no_free_range"),
        (SUBNET, 16, [], ["fd00::/8"], "no_free_range"),
        (SUBNET, 16, ["x"], None, "prefix_malformed"),
        (SUBNET, 16, [], ["x"], "prefix_malformed"),
    ],
)
def test_no_free_range(subnet: str, nics: int, avoid: Any, supernets: Any, code: str) -> None:
    """F18."""
    assert error_of(free_ranges.first, parse_prefix(subnet), nics, avoid, supernets).code == code


PREFIXES = st.builds(
    lambda value, length: Prefix(4, value, length), st.integers(0, 2**32 - 1), st.integers(1, 32)
)


@given(st.lists(PREFIXES, max_size=8), st.integers(8, 30), st.lists(PREFIXES, min_size=1, max_size=3))
@settings(max_examples=60)
def test_free_ranges_are_free(used: list[Prefix], length: int, supernets: list[Prefix]) -> None:
    """F18, F27: aligned, each once, inside a supernet, beside everything."""
    found = free_ranges.find(length, used, supernets, limit=5)
    assert len(set(found)) == len(found)
    for entry in found:
        assert entry.is_masked
        assert entry.length == length
        assert any(entry.overlaps(supernet) and supernet.length <= length for supernet in supernets)
        assert not any(entry.overlaps(other) for other in [*used, *RESERVED_RANGES])


def test_a_range_is_ipv4_whatever_the_supernets_are() -> None:
    """F27: an IPv6 supernet holds no child range."""
    supernets = [parse_prefix(text) for text in ("fd00::/8", "10.0.0.0/15", "::/0")]
    assert [str(entry) for entry in free_ranges.find(15, [], supernets)] == ["10.0.0.0/15"]


def test_supernets_that_overlap_give_each_range_once() -> None:
    """F18."""
    supernets = [parse_prefix(text) for text in ("10.0.0.0/15", "10.0.0.0/14")]
    found = free_ranges.find(15, [], supernets, limit=5)
    assert [str(entry) for entry in found] == ["10.0.0.0/15", "10.2.0.0/15"]


def test_there_is_no_range_of_a_forbidden_length() -> None:
    """F27."""
    assert free_ranges.find(7, []) == free_ranges.find(31, []) == []


# --- one range against a fleet


def test_a_fleet_that_fits() -> None:
    """F19, F22: the children, the capacity, and smaller alternatives."""
    report = range_check.check_fleet("10.208.0.0/12", [node(n, range(8)) for n in (19, 20)])
    assert codes(report) == []
    assert report.to_dict() == {
        "child_range": "10.208.0.0/12",
        "problems": [],
        "capacity": [{"subnet": SUBNET, "nodes": 2, "needed": 8, "held": 16, "length": 16}],
        "proposals": [
            {"length": 15, "nics": 16, "ranges": ["10.0.0.0/15", "10.2.0.0/15", "10.4.0.0/15"]},
            {"length": 16, "nics": 8, "ranges": ["10.0.0.0/16", "10.1.0.0/16", "10.2.0.0/16"]},
        ],
        "children": 16,
    }


def test_a_range_that_holds_too_few_nics() -> None:
    """DEV-34: a /14 for a /16 subnet holds 4 NICs; 16 need a /12."""
    report = range_check.check_fleet("10.192.0.0/14", [node(19, subnet="10.140.0.0/16")])
    assert codes(report) == ["child_range_too_small"]
    problem = report.problems[0]
    assert problem.message == (
        "The child range 10.192.0.0/14 holds 4 NICs of each node in 10.140.0.0/16, 16 are needed; "
        "the smallest range that holds them is a /12."
    )
    assert problem.nodes == ("n19",)
    assert report.capacity[0].held == 4
    assert {proposal.length for proposal in report.proposals} == {12}


def test_every_conflict_is_found() -> None:
    """F25, F45, F50: not only the first, and each with all its nodes."""
    routes = [Route("10.215.0.0/16"), Route("broken"), Route("default")]
    nodes = [
        node(
            19,
            (0, 16),
            routes=routes,
            vnics=[{"subnetCidrBlock": "10.216.0.0/16"}],
            service_host="10.208.0.1",
        ),
        node(20, (0,), routes=routes, vnics={}, service_host="10.208.0.1"),
    ]
    networks = range_check.parse_networks({"pods": ["10.208.0.0/16"], "peers": ["10.0.0.0/9", "fd00::/8"]})
    wide = [replace(entry, subnet="10.0.0.0/8") for entry in nodes]
    report = range_check.check_fleet("10.208.0.0/11", wide, networks)
    assert codes(report) == ["range_not_masked", "subnet_overlaps_oca_network", "oca_network_too_small"]
    report = range_check.check_fleet("10.192.0.0/10", nodes, networks)
    assert [(problem.code, problem.nodes) for problem in report.problems] == [
        ("oca_network_overlaps_child_range", ("n19", "n20")),
        ("network_conflict", ()),
        ("vnic_subnet_conflict", ("n19",)),
        ("host_route_conflict", ("n19", "n20")),
        ("route_destination_malformed", ("n19", "n20")),
        ("service_address_conflict", ("n19", "n20")),
        ("vnics_malformed", ("n20",)),
        ("nic_index_too_large", ("n19",)),
    ]
    assert report.problems[1].message == "pods: 10.208.0.0/16 overlaps the child range 10.192.0.0/10."
    for proposal in report.proposals:
        for wanted in proposal.ranges:
            assert range_check.check_fleet(wanted, [node(20, (0,))], networks).problems == ()


def test_a_range_of_a_wrong_form_still_gives_alternatives() -> None:
    """F27."""
    report = range_check.check_fleet("10.208.0.1/12", [node(19)])
    assert codes(report) == ["range_not_masked"]
    assert (report.child_range, report.plan, report.capacity[0].held) == (None, None, None)
    assert report.proposals[0].ranges
    assert report.to_dict()["children"] == 0


def test_a_range_smaller_than_the_subnet() -> None:
    """F25, check 11: it holds nothing."""
    report = range_check.check_fleet("10.192.0.0/24", [node(19)])
    assert codes(report) == ["child_range_smaller_than_subnet"]
    assert report.capacity[0].held == 0


def test_nodes_that_are_not_known_are_named() -> None:
    """F25: a node without a VNIC is a problem, not a smaller fleet."""
    nodes = [
        fleet.FleetNode("blind", "", "", (0,)),
        node(19, oca_network="x"),
        fleet.FleetNode("six", "fd00::1", "fd00::/64", (0,)),
    ]
    report = range_check.check_fleet("10.208.0.0/12", nodes)
    assert [(problem.code, problem.nodes) for problem in report.problems] == [
        ("vnic_missing", ("blind",)),
        ("oca_network_invalid", ("n19",)),
        ("vnic_not_ipv4", ("six",)),
    ]
    assert (report.capacity, report.proposals) == ((), ())


def test_one_rdma_network_uses_one_subnet_and_one_oca_network() -> None:
    """F23: with the same positions in two subnets, the same children."""
    nodes = [
        node(19, (0,)),
        fleet.FleetNode("m19", "10.141.77.19", "10.141.64.0/19", (0,), "192.168.0.0/16"),
        fleet.FleetNode("m20", "10.141.77.20", "10.141.64.0/19", ()),
    ]
    report = range_check.check_fleet("10.208.0.0/12", nodes)
    assert codes(report) == ["subnets_differ", "oca_networks_differ", "children_not_unique"]
    assert "10.140.64.0/19 (1 nodes), 10.141.64.0/19 (2 nodes)" in report.problems[0].message
    clash = report.problems[2]
    assert (clash.nodes, clash.details) == (("m19", "n19"), {"count": 1, "child": "10.208.13.19"})
    assert "n19 NIC 0 and m19 NIC 0" in clash.message
    assert [entry.nodes for entry in report.capacity] == [1, 2]


def test_an_oca_network_that_holds_too_few_nics() -> None:
    """F21."""
    report = range_check.check_fleet("10.208.0.0/12", [node(19, (0, 8), oca_network="192.168.0.0/16")])
    assert codes(report) == ["oca_network_too_small"]
    assert "holds 8 NICs of each node in 10.140.64.0/19, 9 are needed" in report.problems[0].message


def test_a_subnet_that_no_range_serves() -> None:
    """F18."""
    wide = fleet.FleetNode("w", "172.1.0.9", "172.0.0.0/11", range(16), "10.0.0.0/8")
    report = range_check.check_fleet("100.64.0.0/10", [wide])
    assert codes(report) == ["oca_network_too_small", "child_range_too_small"]
    assert "no range holds them" in report.problems[1].message
    assert (report.capacity[0].length, report.proposals) == (None, ())


def test_the_checked_range_is_no_alternative_to_itself() -> None:
    """An alternative is another range."""
    report = range_check.check_fleet("10.0.0.0/15", [node(19)])
    assert [str(entry) for entry in report.proposals[0].ranges] == [
        "10.2.0.0/15",
        "10.4.0.0/15",
        "10.6.0.0/15",
    ]


def test_alternatives_inside_given_networks() -> None:
    """The user says where to look."""
    report = range_check.check_fleet("10.208.0.0/12", [node(19)], (), [parse_prefix("172.16.0.0/12")])
    assert [str(entry) for entry in report.proposals[0].ranges] == [
        "172.16.0.0/15",
        "172.18.0.0/15",
        "172.20.0.0/15",
    ]


def test_a_network_of_the_user_that_is_no_prefix() -> None:
    """F29: with its label."""
    error = error_of(range_check.parse_networks, {"pods": ["10.244.0.0/16", "10.96.0.0"]})
    assert (error.code, error.message) == (
        "network_malformed",
        "pods: '10.96.0.0' is not a prefix of the form <address>/<length>.",
    )
