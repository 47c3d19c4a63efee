# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""May an RDMA network be this one: its own rules, its size (F18, F133), what is in use (F45-F47)."""

from __future__ import annotations

from typing import Any, Optional

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.core.errors import RdmaError
from ansible_collections.rdma.k8s.plugins.module_utils.core.net import parse_prefix
from ansible_collections.rdma.k8s.plugins.module_utils.core.oke import oca_network
from ansible_collections.rdma.k8s.plugins.module_utils.core.oke.range_check import parse_networks
from ansible_collections.rdma.k8s.plugins.module_utils.core.snapshot import Route

SUBNET = parse_prefix("10.140.64.0/19")


def around(**changes: Any) -> oca_network.Surroundings:
    return oca_network.Surroundings(**{"subnet": SUBNET, **changes})


def codes(network: str, **changes: Any) -> list[str]:
    return [error.code for error in oca_network.problems(parse_prefix(network), around(**changes))]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("10.224.0.0/12", None),
        ("8.0.0.0/8", None),
        ("10.224.0.1/12", "oca_network_malformed"),
        ("10.224.0.0", "oca_network_malformed"),
        ("10.224.0.0/012", "oca_network_malformed"),
        ("fd00::/64", "oca_network_malformed"),
        ("8.0.0.0/7", "oca_network_malformed"),
        (None, "oca_network_malformed"),
        ("127.0.0.0/12", "oca_network_reserved"),
        ("169.254.0.0/16", "oca_network_reserved"),
        ("224.0.0.0/8", "oca_network_reserved"),
    ],
)
def test_the_rules_of_the_network_itself(text: Any, code: Optional[str]) -> None:
    """F27, F29, F52."""
    if code is None:
        assert str(oca_network.parse(text)) == text
        return
    with pytest.raises(RdmaError) as caught:
        oca_network.parse(text)
    assert caught.value.code == code


@pytest.mark.parametrize(
    ("network", "subnet", "nics", "fits"),
    [
        ("10.224.0.0/12", "10.140.0.0/16", 16, True),
        ("10.224.0.0/13", "10.140.0.0/16", 16, False),
        ("10.224.0.0/13", "10.140.0.0/16", 8, True),
        ("10.224.0.0/15", "10.140.64.0/19", 16, True),
        ("10.224.0.0/16", "10.140.64.0/19", 16, False),
        ("10.224.0.0/16", "10.140.64.0/19", 8, True),
        ("10.224.0.0/19", "10.140.64.0/19", 1, True),
        ("10.224.0.0/20", "10.140.64.0/19", 1, False),
        ("10.0.0.0/8", "11.0.0.0/11", 16, False),
    ],
)
def test_the_size_follows_from_the_primary_subnet(network: str, subnet: str, nics: int, fits: bool) -> None:
    """F133, F18: 4 bits more than the subnet for 16 NICs; /8 is the largest, so a /11 has none."""
    found = codes(network, subnet=parse_prefix(subnet), nics=nics)
    assert ("oca_network_too_small" not in found) == fits


def test_the_refusal_says_what_would_fit() -> None:
    error = next(iter(oca_network.problems(parse_prefix("10.224.0.0/16"), around())))
    assert error.message == (
        "The RDMA network 10.224.0.0/16 holds 8 NICs of each node in 10.140.64.0/19, 16 are needed; "
        "expected /15 or shorter."
    )
    assert error.details["prefix_len"] == 15


def test_everything_in_use_is_a_conflict() -> None:
    """F25 check 6, F46, F47, and what only the user knows."""
    found = list(
        oca_network.problems(
            parse_prefix("10.128.0.0/12"),
            around(
                subnets=(SUBNET, parse_prefix("10.130.0.0/24"), parse_prefix("10.130.0.0/24")),
                networks=tuple(parse_networks({"pods": ["10.136.0.0/16"], "services": ["10.96.0.0/16"]})),
                routes=(Route("10.129.1.0/24", dev="cali1"), Route("default"), Route("10.250.0.0/16")),
                child_range=parse_prefix("10.128.0.0/16"),
            ),
        )
    )
    assert [error.code for error in found] == ["subnet_overlaps_oca_network"] + ["oca_network_conflict"] * 4
    assert [error.details["label"] for error in found[1:]] == [
        "the VNIC subnet",
        "pods",
        "the host route to",
        "the child range",
    ]


def test_routes_of_the_rdma_nics_are_no_conflict() -> None:
    """The agent replaces them: a larger network around the one in use must be possible."""
    routes = (Route("10.224.0.0/12", dev="rdma0"), Route("10.232.0.0/16", dev="bond0"))
    assert codes("10.224.0.0/12", routes=routes[:1], rdma_links=frozenset({"rdma0"})) == []
    assert codes("10.224.0.0/12", routes=routes[:1]) == ["oca_network_conflict"]
    assert codes("10.224.0.0/12", routes=routes, rdma_links=frozenset({"rdma0"})) == ["oca_network_conflict"]


def test_all_problems_are_said_at_once() -> None:
    with pytest.raises(RdmaError) as caught:
        oca_network.require(parse_prefix("10.140.0.0/16"), around(child_range=parse_prefix("10.128.0.0/12")))
    assert caught.value.code == "oca_network_too_small"
    assert [problem["code"] for problem in caught.value.details["problems"]] == [
        "oca_network_too_small",
        "subnet_overlaps_oca_network",
        "oca_network_conflict",
    ]
    assert " 2 more: " in caught.value.message
    oca_network.require(parse_prefix("10.224.0.0/12"), around())


VNICS = [{"privateIp": "10.140.77.19", "subnetCidrBlock": "10.140.64.0/19"}]


@pytest.mark.parametrize(
    ("given", "vnics", "expected"),
    [
        ("", VNICS, "10.140.64.0/19"),
        ("10.1.0.0/16", VNICS, "10.1.0.0/16"),
        ("10.1.2.3/16", None, "10.1.0.0/16"),
        ("", None, "primary_subnet_unknown"),
        ("", [], "primary_subnet_unknown"),
        ("", {"a": 1}, "primary_subnet_unknown"),
        ("", [{"privateIp": "fd00::1", "subnetCidrBlock": "fd00::/64"}], "primary_subnet_unknown"),
        ("10.1.0.0", None, "network_malformed"),
        ("fd00::/64", None, "network_malformed"),
    ],
)
def test_the_primary_subnet_comes_from_the_user_or_the_metadata(
    given: str, vnics: Any, expected: str
) -> None:
    """F69; without it the size cannot be judged (F133), and nothing is written."""
    try:
        found = str(oca_network.primary_subnet(given, vnics))
    except RdmaError as error:
        found = error.code
    assert found == expected


def test_subnets_of_broken_metadata_are_none() -> None:
    """F49."""
    assert oca_network.vnic_subnets({"a": 1}) == ()
    assert [str(subnet) for subnet in oca_network.vnic_subnets(VNICS)] == ["10.140.64.0/19"]
