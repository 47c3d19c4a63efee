# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Parents, children and the range by itself; the vectors hold the values, these tests the sentences and the laws."""

from __future__ import annotations

from typing import Any, Optional

import pytest
from hypothesis import assume, given, strategies as st

from ansible_collections.rdma.k8s.plugins.module_utils.core.net import (
    Address,
    Prefix,
    parse_address,
    parse_prefix,
)
from ansible_collections.rdma.k8s.plugins.module_utils.core.oke import addressing, child_range
from ansible_collections.rdma.k8s.plugins.module_utils.core.oke.constants import (
    DEFAULT_CHILD_RANGE,
    DEFAULT_OCA_NETWORK,
    MAX_NICS,
    RESERVED_RANGES,
)
from ansible_collections.rdma.k8s.tests.support.outcome import error_of, outcome

VNIC = addressing.read_vnic("10.140.77.19", "10.140.64.0/19")


def test_the_reference_node() -> None:
    """F15: typed values, derived from typed or text networks alike."""
    child = addressing.derive_child(VNIC, 15)
    assert (str(child.parent), str(child.child_address), child.table) == (
        "10.225.237.19",
        "10.209.237.19/12",
        115,
    )
    assert addressing.derive_child(VNIC, 15, str(DEFAULT_OCA_NETWORK), str(DEFAULT_CHILD_RANGE)) == child


@pytest.mark.parametrize(
    ("address", "subnet", "index", "parent", "expected"),
    [
        ("10.0.13.19", "10.0.0.0/19", 15, "10.225.237.19", "10.209.237.19"),
        ("10.0.2.51", "10.0.0.0/20", 0, "10.224.2.51", "10.208.2.51"),
    ],
)
def test_published_examples(address: str, subnet: str, index: int, parent: str, expected: str) -> None:
    """DEV-34."""
    child = addressing.derive_child(addressing.read_vnic(address, subnet), index)
    assert (str(child.parent), str(child.child)) == (parent, expected)


def test_a_negative_index_is_refused() -> None:
    """F13: it would give an address in front of the network."""
    assert error_of(addressing.derive_child, VNIC, -1).code == "nic_index_negative"
    assert error_of(addressing.derive_parent, VNIC, -1).code == "nic_index_negative"


def test_the_first_address_behind_a_network_is_outside() -> None:
    """F21, F25: position 0 and the index behind the last block."""
    first = addressing.read_vnic("10.140.0.0", "10.140.0.0/16")
    assert error_of(addressing.derive_parent, first, 16).code == "outside_oca_network"
    error = error_of(addressing.derive_child, first, 2, DEFAULT_OCA_NETWORK, "10.192.0.0/15")
    assert error.code == "outside_child_range"


def test_what_is_said_of_an_index_beyond_the_last() -> None:
    """F12: 16 NICs; the largest index stands in the message, in the hint, and for programs."""
    error = error_of(addressing.derive_child, VNIC, 16)
    assert error.message == "NIC index 16 is too large: the largest is 15."
    assert error.hint == "The profile serves rdma0 to rdma15 of a node; claim no other NIC."
    assert (error.details["nic_index"], error.details["largest_nic_index"]) == (16, 15)


def test_the_parent_and_the_hint_of_a_network_that_is_too_small() -> None:
    """F13, F25: 16 blocks are 4 bits; a subnet of 2 bits fits 16 times into no network."""
    found = addressing.derive_parent(VNIC, 0)
    assert (found.parent.version, str(found.parent)) == (4, "10.224.13.19")
    error = error_of(addressing.derive_parent, VNIC, 9, "192.168.0.0/16")
    assert error.hint == "Give OCA a larger rdma_network: /15 holds 16 NICs."
    wide = addressing.read_vnic("64.0.0.9", "64.0.0.0/2")
    error = error_of(addressing.derive_parent, wide, 1, "128.0.0.0/2")
    assert error.hint == "Give OCA a larger rdma_network: /0 holds 16 NICs."


def test_an_ipv6_subnet_is_no_subnet_of_an_ipv4_address() -> None:
    """F25, check 3: before it is looked whether the address is inside."""
    vnic = addressing.read_vnic("10.140.77.19", "fd00::/64")
    assert error_of(addressing.derive_parent, vnic, 0).code == "vnic_not_ipv4"


def test_the_message_of_a_range_that_is_too_small() -> None:
    """F25, F26: it names index, subnet length, range and the length that holds 16 NICs."""
    error = error_of(addressing.derive_child, VNIC, 8, DEFAULT_OCA_NETWORK, "10.192.0.0/16")
    assert error.message == (
        "The child of NIC index 8 with a /19 subnet lies outside the child range 10.192.0.0/16; "
        "16 NICs need a /15 range."
    )
    wide = addressing.read_vnic("172.1.0.9", "172.0.0.0/11")
    error = error_of(addressing.derive_child, wide, 2, "10.0.0.0/8", "100.64.0.0/10")
    assert error.details["prefix_len_for_16"] is None
    assert "no range holds 16 NICs" in error.message


@pytest.mark.parametrize(
    ("vnic", "index", "oca_network", "given_range", "words"),
    [
        (VNIC, 16, "10.224.0.0/12", "10.208.0.0/12", ["index 16", "15"]),
        (None, 0, "10.224.0.0/12", "10.208.0.0/12", ["primary VNIC"]),
        (addressing.read_vnic("", None), 0, "10.224.0.0/12", "10.208.0.0/12", ["''", "None"]),
        (
            addressing.read_vnic("10.140.96.1", "10.140.64.9/19"),
            0,
            "10.224.0.0/12",
            "10.208.0.0/12",
            ["10.140.96.1", "10.140.64.0/19"],
        ),
        (VNIC, 0, "10.224.0.0", "10.208.0.0/12", ["'10.224.0.0'", "IPv4 prefix"]),
        (VNIC, 0, "10.224.0.1/12", "10.208.0.0/12", ["10.224.0.1/12", "host bits"]),
        (VNIC, 0, "10.140.0.0/16", "10.208.0.0/12", ["10.140.64.0/19", "10.140.0.0/16"]),
        (VNIC, 9, "192.168.0.0/16", "10.208.0.0/12", ["index 9", "/19", "192.168.0.0/16"]),
        (VNIC, 0, "10.224.0.0/12", "10.208.0.1/12", ["10.208.0.1/12", "host bits"]),
        (VNIC, 0, "10.224.0.0/12", "10.230.0.0/16", ["10.224.0.0/12", "10.230.0.0/16"]),
        (VNIC, 0, "10.224.0.0/12", "10.140.0.0/16", ["10.140.64.0/19", "10.140.0.0/16"]),
        (VNIC, 0, "10.224.0.0/12", "10.192.0.0/24", ["10.192.0.0/24", "10.140.64.0/19"]),
    ],
)
def test_every_error_names_what_it_is_about_and_a_way_out(
    vnic: Optional[addressing.AnyVnic], index: int, oca_network: str, given_range: str, words: list[str]
) -> None:
    """F25: the object, the values, and a hint."""
    error = error_of(addressing.derive_child, vnic, index, oca_network, given_range)
    assert [word for word in words if word not in error.message] == []
    assert error.hint.endswith(".")


def test_an_inversion_that_fails_says_why() -> None:
    """F20."""
    error = error_of(addressing.invert_index, VNIC, parse_address("10.224.13.20"))
    assert "10.224.13.20 has position 3348" in error.message
    assert "expected 3347" in error.message
    error = error_of(addressing.invert_index, VNIC, "no address")
    assert (error.code, error.details["address"]) == ("address_outside_oca_network", "no address")
    assert error_of(addressing.invert_index, VNIC, "10.224.13.19", "10.224.0.0").code == "oca_network_invalid"


def test_a_plan_of_a_node_keeps_the_errors() -> None:
    """F25: one entry for each index, in the order that was asked for."""
    plan = addressing.plan_node(VNIC, [9, 0, 16], child_range="10.192.0.0/16")
    assert [
        (nic.nic_index, nic.child and str(nic.child.child), nic.error and nic.error.code) for nic in plan
    ] == [
        (9, None, "outside_child_range"),
        (0, "10.192.13.19", None),
        (16, None, "nic_index_too_large"),
    ]


SUBNETS = st.builds(
    lambda value, length: Prefix(4, value, length).masked(), st.integers(0, 2**32 - 1), st.integers(16, 30)
)


@given(SUBNETS, st.integers(0, 2**16), st.integers(0, 15))
def test_derivation_and_inversion_agree(subnet: Prefix, position: int, index: int) -> None:
    """F13, F20, F22: the default networks hold 16 NICs of every OCI subnet; the child keeps the offset, and the
    parent tells its index."""
    assume(not subnet.overlaps(DEFAULT_OCA_NETWORK) and not subnet.overlaps(DEFAULT_CHILD_RANGE))
    vnic = addressing.Vnic(Address(4, subnet.value + position % subnet.size), subnet)
    child = addressing.derive_child(vnic, index)
    assert child.offset == index * subnet.size + position % subnet.size
    assert (
        child.parent.value - DEFAULT_OCA_NETWORK.value
        == child.child.value - DEFAULT_CHILD_RANGE.value
        == child.offset
    )
    assert DEFAULT_CHILD_RANGE.contains(child.child)
    assert addressing.invert_index(vnic, child.parent) == index
    assert addressing.derive_parent(vnic, index).parent == child.parent


@given(st.integers(8, 30), st.integers(16, 30), st.integers(0, 2**16))
def test_the_capacity_does_not_depend_on_the_position(length: int, subnet_length: int, position: int) -> None:
    """F19: exactly the indexes below the capacity have a child."""
    subnet = parse_prefix("10.128.0.0/%d" % subnet_length)
    vnic = addressing.Vnic(Address(4, subnet.value + position % subnet.size), subnet)
    wanted = Prefix(4, parse_prefix("11.0.0.0/8").value, length)
    plan = addressing.plan_node(vnic, range(MAX_NICS), DEFAULT_OCA_NETWORK, wanted)
    served = [nic.nic_index for nic in plan if nic.child is not None]
    if length > subnet_length:
        assert served == []
        return
    held = child_range.capacity(subnet_length, length)
    assert served == list(range(held.nics))
    assert held.largest_nic_index == held.nics - 1
    assert {nic.error.code for nic in plan if nic.error} <= {"outside_child_range"}


@pytest.mark.parametrize(
    ("subnet_length", "nics", "expected"),
    [
        (16, 16, 12),
        (16, 9, 12),
        (16, 8, 13),
        (16, 4, 14),
        (16, 3, 14),
        (16, 2, 15),
        (16, 1, 16),
        (12, 16, 8),
        (11, 16, None),
    ],
)
def test_the_length_for_fewer_nics(subnet_length: int, nics: int, expected: Optional[int]) -> None:
    """F18, F19, DEV-34: 4 bits for 16 NICs; a /14 for a /16 subnet holds 4."""
    assert child_range.length_for(subnet_length, nics) == expected


def test_no_range_for_16_nics_of_a_large_subnet() -> None:
    """F18."""
    error = error_of(child_range.length_for_16_nics, 11)
    assert (error.code, error.details) == ("no_range_holds_16", {"subnet_prefix_len": 11})


@pytest.mark.parametrize("value", [None, 12, ["10.0.0.0/8"], "", "\x00", "10.0.0.0/" + "9" * 5000])
def test_a_range_that_is_no_text(value: Any) -> None:
    """F29, in the derivation too."""
    assert error_of(child_range.validate, value).code == "range_parse_error"
    vnic = addressing.read_vnic("10.140.77.19", "10.140.64.0/19")
    assert error_of(addressing.derive_child, vnic, 0, "10.224.0.0/12", value).code == "range_parse_error"


@given(st.builds(Prefix, st.just(4), st.integers(0, 2**32 - 1), st.integers(0, 32)))
def test_the_rules_of_a_range(prefix: Prefix) -> None:
    """F27: what passes is masked, of length 8 to 30, and beside every reserved range; nothing else fails."""
    good = (
        prefix.is_masked
        and 8 <= prefix.length <= 30
        and not any(prefix.overlaps(entry) for entry in RESERVED_RANGES)
    )
    found = outcome(child_range.validate, str(prefix))
    if good:
        assert found.value == prefix
    else:
        assert found.code in ("range_not_masked", "range_prefix_length", "range_reserved")
        assert str(prefix) in found.message


@given(st.text() | st.none() | st.integers(), st.text(), st.text(), st.text(), st.integers(0, 2**31))
def test_any_text_gives_a_child_or_a_typed_error(
    address: Any, subnet: str, oca_network: str, wanted: str, index: int
) -> None:
    """F25."""
    for vnic in (VNIC, addressing.read_vnic(address, subnet)):
        for function, args in (
            (addressing.derive_child, (vnic, index, oca_network, wanted)),
            (addressing.derive_child, (vnic, index % 16, DEFAULT_OCA_NETWORK, wanted)),
            (addressing.invert_index, (vnic, oca_network)),
        ):
            outcome(function, *args)
