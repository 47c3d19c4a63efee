# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The RDMA network of a node out of addresses: right, or a reason, never a guess."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from ansible_collections.rdma.k8s.plugins.module_utils.core.net import Address, Prefix, parse_prefix
from ansible_collections.rdma.k8s.plugins.module_utils.core.oke.addressing import Vnic, derive_parent
from ansible_collections.rdma.k8s.plugins.module_utils.core.oke.constants import DEFAULT_OCA_NETWORK
from ansible_collections.rdma.k8s.plugins.module_utils.core.oke.rdma_network import RdmaNetwork, find

REFERENCE = ((0, "10.224.13.19/12"), (7, "10.224.237.19/12"), (15, "10.225.237.19/12"))
"""NICs of the reference node 10.140.77.19 in 10.140.64.0/19 (F15)."""


def test_the_reference_node() -> None:
    """F15: block 8192, position 3347, so the subnet has the length 19."""
    found = find("10.140.77.19", REFERENCE)
    assert found == RdmaNetwork(parse_prefix("10.224.0.0/12"), parse_prefix("10.140.64.0/19"))
    assert str(found) == "10.224.0.0/12 via 10.140.64.0/19"


def test_the_same_node_in_a_wider_subnet() -> None:
    """F16: in a /16 the parent of index 15 is 10.239.77.19."""
    found = find("10.140.77.19", [(15, "10.239.77.19/12"), (0, "10.224.77.19/12")])
    assert found == RdmaNetwork(parse_prefix("10.224.0.0/12"), parse_prefix("10.140.0.0/16"))


@given(st.integers(16, 26), st.integers(0, 2**32 - 1), st.sets(st.integers(0, 15), min_size=2))
def test_two_nics_always_tell_the_subnet(length: int, seed: int, indexes: set[int]) -> None:
    """F13 backwards, for any subnet outside the OCA network: two blocks are apart by a multiple of their size."""
    address = Address(4, 0x0A000000 | seed & 0x007FFFFF)  # 10.0.0.0/9, so never in 10.224.0.0/12
    subnet = Prefix(4, address.value, length).masked()
    nics = [(n, "%s/12" % derive_parent(Vnic(address, subnet), n).parent) for n in sorted(indexes)]
    assert find(str(address), nics) == RdmaNetwork(DEFAULT_OCA_NETWORK, subnet)


def test_other_addresses_of_a_nic_do_not_matter() -> None:
    """F34: an address outside the OCA network may stand before that of the agent."""
    found = find("10.140.77.19", [(0, "192.168.7.1/24"), *REFERENCE, (7, "192.168.7.2/24")])
    assert found == RdmaNetwork(parse_prefix("10.224.0.0/12"), parse_prefix("10.140.64.0/19"))


REASONS = [
    ("", REFERENCE, (), "no IPv4 address in the API"),
    ("fd00::1", REFERENCE, (), "no IPv4 address in the API"),
    ("10.140.77.19", (), (), "no NIC with the name rdmaN"),
    ("10.140.77.19", ((0, "fd00::1/64"), (1, "10.224.13.19")), (), "no NIC with the name rdmaN"),
    (
        "10.140.77.19",
        (*REFERENCE, (1, "192.168.0.5/16")),
        (),
        "several networks: 10.224.0.0/12, 192.168.0.0/16",
    ),
    (
        "10.140.77.19",
        [nic for index, text in REFERENCE for nic in ((index, text), (index, "192.168.0.%d/16" % index))],
        (),
        "several networks",
    ),
    ("10.140.77.20", REFERENCE, (), "do not follow from the address 10.140.77.20"),
    ("10.140.77.19", (*REFERENCE, (3, "10.224.13.19/12")), (), "do not follow"),
    ("10.0.0.5", ((0, "10.224.0.5/12"),), (), "fit primary subnets of several lengths"),
    ("10.140.77.19", REFERENCE, ("10.141.0.0/16",), "in none of the primary subnets"),
]


@pytest.mark.parametrize(("address", "nics", "subnets", "reason"), REASONS)
def test_what_cannot_be_told_has_a_reason(
    address: str, nics: tuple[tuple[int, str], ...], subnets: tuple[str, ...], reason: str
) -> None:
    """F13, F20: index 0 alone says nothing about the size of a block; a wrong address fits no subnet."""
    found = find(address, nics, [parse_prefix(text) for text in subnets])
    assert isinstance(found, str)
    assert reason in found


def test_known_subnets_serve_a_node_with_one_nic() -> None:
    """F128: shapes with one RDMA NIC. The smallest of the subnets around the address counts."""
    subnets = [parse_prefix(text) for text in ("10.0.0.0/8", "10.0.0.0/24", "10.0.0.0/16")]
    found = find("10.0.0.5", [(0, "10.224.0.5/12")], subnets)
    assert found == RdmaNetwork(parse_prefix("10.224.0.0/12"), parse_prefix("10.0.0.0/24"))
