# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Claims, conflicts, options and pods."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from ansible_collections.rdma.k8s.plugins.module_utils.core.net import parse_address, parse_prefix
from ansible_collections.rdma.k8s.plugins.module_utils.core.oke import (
    conflicts,
    nics,
    options,
    pod_state,
    profile,
)
from ansible_collections.rdma.k8s.plugins.module_utils.core.oke.addressing import read_vnic
from ansible_collections.rdma.k8s.plugins.module_utils.core.oke.imds import Fabric, Metadata
from ansible_collections.rdma.k8s.plugins.module_utils.core.oke.oca import OcaConfig
from ansible_collections.rdma.k8s.plugins.module_utils.core.snapshot import Route
from ansible_collections.rdma.k8s.tests.support.outcome import error_of, outcome

RANGE = parse_prefix("10.208.0.0/12")
CLAIM = profile.Claim(profile="oke-rdma")
DEVICE = nics.Device("0000:0c:00.0", net=("rdma0",))
NODE = profile.Node(
    interfaces={"rdma0": nics.Interface("rdma0", 1, nics.addresses_of(["10.224.13.19/12"]), "1\n", "2\n")},
    metadata=Metadata(fabric=Fabric(False, 1), vnic=read_vnic("10.140.77.19", "10.140.64.0/19")),
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


# --- claims


def test_a_claim_that_resolves() -> None:
    """F38, F39: the whole configuration of the child."""
    found = profile.resolve(CLAIM, DEVICE, NODE)
    assert found.network_config is not None
    assert found.network_config.to_dict() == {
        "interface": {"type": "IPVLAN", "addresses": ["10.208.13.19/12"], "arpIgnore": 1, "arpAnnounce": 2},
        "routes": [{"destination": "10.208.0.0/12", "source": "10.208.13.19", "scope": 253, "table": 100}],
        "rules": [{"priority": 32000, "source": "10.208.13.19/32", "table": 100}],
    }


def test_a_claim_that_owns_its_routing() -> None:
    """F38: neither routes nor rules are in the answer, not even empty."""
    found = profile.resolve(replace(CLAIM, owns_routing=True), DEVICE, NODE)
    assert found.network_config is not None
    assert set(found.network_config.to_dict()) == {"interface"}


BREAKS: list[tuple[str, Any]] = [
    ("config_missing", (None, DEVICE, NODE)),
    ("unsupported_profile", (profile.Claim("x"), DEVICE, NODE)),
    (
        "ib_exclusive_netns",
        (
            CLAIM,
            replace(DEVICE, infiniband=(nics.RdmaDevice("m", ("InfiniBand",)),)),
            replace(NODE, netns_mode="N"),
        ),
    ),
    ("claim_passthrough", (replace(CLAIM, type="Passthrough"), DEVICE, NODE)),
    ("fabric_not_available", (CLAIM, DEVICE, replace(NODE, metadata=None))),
    ("vnic_not_available", (CLAIM, DEVICE, replace(NODE, metadata=Metadata(fabric=Fabric(False, 1))))),
    ("unsupported_address_mode", (CLAIM, DEVICE, replace(NODE, oca=OcaConfig(address_mode="topology")))),
    ("no_pci_address", (CLAIM, replace(DEVICE, pci_address=""), NODE)),
    ("pci_net_unreadable", (CLAIM, replace(DEVICE, net=None), NODE)),
    ("pci_net_count", (CLAIM, replace(DEVICE, net=("a", "b")), NODE)),
    ("hardware_type_unreadable", (CLAIM, replace(DEVICE, net=("rdma9",)), NODE)),
    ("not_ethernet", (CLAIM, DEVICE, replace(NODE, interfaces={"rdma0": nics.Interface("rdma0", 32)}))),
    ("arp_missing", (CLAIM, DEVICE, replace(NODE, interfaces={"rdma0": nics.Interface("rdma0")}))),
    ("range_reserved", (CLAIM, DEVICE, replace(NODE, child_range="224.0.0.0/8"))),
    ("host_route_conflict", (CLAIM, DEVICE, replace(NODE, host_routes=[Route("10.0.0.0/8")]))),
    (
        "parent_address_missing",
        (CLAIM, DEVICE, replace(NODE, interfaces={"rdma0": nics.Interface("rdma0", 1, (), "1", "2")})),
    ),
]


@pytest.mark.parametrize(("code", "args"), BREAKS, ids=[entry[0] for entry in BREAKS])
def test_the_first_step_that_fails_is_the_error(code: str, args: Any) -> None:
    """F31: with a hint; whatever may heal by itself says so (F37)."""
    error = error_of(profile.resolve, *args)
    assert error.code == code
    assert error.hint
    assert error.retryable is (
        code in ("fabric_not_available", "vnic_not_available", "parent_address_missing")
    )


def test_errors_of_derivation_and_conflict_name_the_interface() -> None:
    """F25: the wrapper of steps 14 and 15."""
    error = error_of(profile.resolve, CLAIM, DEVICE, replace(NODE, service_host="10.208.0.1"))
    assert (
        error.message
        == "rdma0: The Kubernetes service address 10.208.0.1 is inside the child range 10.208.0.0/12."
    )
    assert error.details["interface"] == "rdma0"


def test_an_ipv6_fabric_gives_no_ipv4_child() -> None:
    """F4, F88."""
    node = replace(NODE, metadata=Metadata(fabric=Fabric(True, 4)))
    assert profile.resolve(CLAIM, DEVICE, node) == profile.Resolution(None, "fabric_ipv6")


@pytest.mark.parametrize(
    "document",
    [
        [],
        "oke-rdma",
        {"profile": 1},
        {"interface": []},
        {"interface": {"dhcp": 1}},
        {"interface": {"addresses": [1]}},
        {"interface": {"addresses": "10.0.0.1/8"}},
        {"interface": {"arpIgnore": True}},
        {"interface": {"vrf": "blue"}},
        {"routes": {}},
        {"rules": "x"},
    ],
)
def test_a_configuration_of_a_wrong_type_is_refused(document: Any) -> None:
    """F106: decoding is strict."""
    assert error_of(profile.parse_claim, document).code == "config_malformed"


@settings(max_examples=50)
@given(JSON | st.fixed_dictionaries({}, optional={"profile": JSON, "interface": JSON, "routes": JSON}))
def test_any_configuration_gives_a_claim_or_one_error(document: Any) -> None:
    """F31, F106."""
    found = outcome(profile.parse_claim, document)
    assert found.code in ("", "config_malformed")
    assert isinstance(found.value, (profile.Claim, type(None)))


# --- conflicts


def test_all_conflicts_of_a_node_in_order() -> None:
    """F45: the driver reports the first, a check of a node all."""
    routes = [
        Route("default"),
        Route("10.209.0.0/16"),
        Route("10.209.0.0/16", type="blackhole"),
        Route("10.210.0.1"),
    ]
    found = list(conflicts.of_node(RANGE, [{"subnetCidrBlock": "10.211.0.0/16"}], routes, "10.208.0.1"))
    assert [error.details.get("network", error.details.get("address")) for error in found] == [
        "10.211.0.0/16",
        "10.209.0.0/16",
        "10.210.0.1/32",
        "10.208.0.1",
    ]
    assert (
        error_of(conflicts.check, RANGE, [{"subnetCidrBlock": "10.211.0.0/16"}], routes, None).code
        == "vnic_subnet_conflict"
    )


def test_only_an_ipv4_address_is_a_service_address() -> None:
    """F48."""
    assert conflicts.service_address("10.96.0.1") == parse_address("10.96.0.1")
    assert [conflicts.service_address(text) for text in ("fd00::1", "::ffff:10.96.0.1", "a.b", "", None)] == [
        None
    ] * 5


def test_a_route_without_a_readable_destination_is_an_error() -> None:
    """A route that is skipped silently could be the one that conflicts; the service address is still looked at."""
    found = list(conflicts.of_node(RANGE, None, [Route("10.208.0.0/012")], "10.208.0.1"))
    assert [error.code for error in found] == ["route_destination_malformed", "service_address_conflict"]


@settings(max_examples=50)
@given(JSON, st.lists(st.text(max_size=12)), st.none() | st.text(max_size=16))
def test_any_input_of_a_node(vnics: Any, routes: list[str], service_host: Any) -> None:
    """F46 to F49."""
    for error in conflicts.of_node(RANGE, vnics, [Route(text) for text in routes], service_host):
        assert error.code in (
            *("vnic_subnet_conflict", "host_route_conflict", "service_address_conflict"),
            "route_destination_malformed",
        )


# --- options


def test_an_option_that_is_no_text() -> None:
    """F93."""
    assert error_of(options.parse, [7]).code == "option_format"


def test_an_error_of_an_option_shows_the_only_option() -> None:
    """F94, F95."""
    error = error_of(options.parse, ["oke.a=1"])
    assert error.message == "The provider option 'a' is not an option of OKE."
    assert "oke.rdma-child-ipv4-cidr=<range>" in error.hint
    error = error_of(options.parse, ["oke.rdma-child-ipv4-cidr=10.192.0.0/14"], "GCE")
    assert (error.details["hint"], "'GCE'" in error.message) == ("GCE", True)


@given(
    st.lists(st.text(max_size=10) | st.builds("oke.{}={}".format, st.text(max_size=3), st.text(max_size=10))),
    st.none() | st.sampled_from(["", "OKE", "oke", "GCE"]),
    st.none() | st.sampled_from(["", "OKE", "NONE"]),
)
def test_any_options_give_a_range_or_a_known_error(flags: list[str], hint: Any, discovered: Any) -> None:
    """F92 to F95."""
    found = outcome(options.parse, flags, hint, discovered)
    assert not found.code or found.code.startswith(("option_", "range_"))
    assert found.code or (found.value.child_range is None) is found.value.ignored


# --- pods


def pod_problems(addr: Any, route: Any, rule: Any) -> list[pod_state.Problem]:
    """The problems of rdma5 of the reference node."""
    return pod_state.problems(
        "rdma5", 5, parse_address("10.208.173.19"), RANGE, pod_state.Output(addr, route, rule)
    )


GOOD_ADDR = [{"ifname": "rdma5", "addr_info": [{"local": "10.208.173.19", "prefixlen": 12}]}]
GOOD_ROUTE = {"dst": "10.208.0.0/12", "dev": "rdma5", "scope": "link", "prefsrc": "10.208.173.19"}
GOOD_RULE = {"priority": 32000, "src": "10.208.173.19", "table": "105"}


def test_the_sentences_of_a_pod() -> None:
    """F147: the interface, what was found, what was expected."""
    found = pod_problems(
        [{"ifname": "rdma5", "addr_info": [{"local": "10.208.173.19", "prefixlen": 16}]}],
        [{**GOOD_ROUTE, "scope": "global", "prefsrc": None}],
        [{**GOOD_RULE, "priority": 5, "table": "main"}],
    )
    assert [problem.message for problem in found] == [
        "rdma5 holds the child address with length 16, expected 10.208.173.19/12.",
        "rdma5: the route to 10.208.0.0/12 in table 105 has scope 'global', expected link.",
        "rdma5: the route to 10.208.0.0/12 in table 105 has source None, expected 10.208.173.19.",
        "rdma5: the rule for 10.208.173.19/32 looks up table 'main', expected 105.",
        "rdma5: the rule for 10.208.173.19/32 has priority 5, expected 32000.",
    ]


@pytest.mark.parametrize(
    ("route", "rule", "kinds"),
    [
        ({}, {}, []),
        ({"scope": 253, "table": 105}, {"table": 105, "srclen": 32}, []),
        ({"scope": "253"}, {"priority": "32000"}, []),
        ({"table": "254"}, {}, ["pod_route_missing"]),
        ({"dst": "10.208.0.0/13"}, {}, ["pod_route_missing"]),
        ({"type": "blackhole"}, {}, ["pod_route_missing"]),
        ({}, {"not": None}, ["pod_rule_missing"]),
        ({}, {"src": "all"}, ["pod_rule_missing"]),
        ({}, {"srclen": 24}, ["pod_rule_missing"]),
        ({}, {"priority": None}, ["pod_rule_priority"]),
        ({}, {"table": True}, ["pod_rule_table"]),
    ],
)
def test_spellings_of_iproute2(route: Any, rule: Any, kinds: list[str]) -> None:
    """F40, F146: tables and scopes as numbers or text; a table that is named must be the child's."""
    found = pod_problems(GOOD_ADDR, [{**GOOD_ROUTE, **route}], [{**GOOD_RULE, **rule}])
    assert [problem.kind for problem in found] == kinds


def test_one_of_several_addresses_is_right() -> None:
    """F147: the interface holds the child address with the length of the range."""
    entries = [{"local": "10.208.173.19", "prefixlen": length} for length in (32, 12)]
    assert pod_problems([{"ifname": "rdma5", "addr_info": entries}], [GOOD_ROUTE], [GOOD_RULE]) == []


@settings(max_examples=50)
@given(JSON, JSON, JSON)
def test_any_output_of_a_pod(addr: Any, route: Any, rule: Any) -> None:
    """F147: what is no output of iproute2 counts as not there."""
    kinds = [problem.kind for problem in pod_problems(addr, route, rule)]
    assert kinds == ["pod_address_missing", "pod_route_missing", "pod_rule_missing"]


ENTRIES = st.lists(
    st.dictionaries(
        st.sampled_from(
            ["ifname", "addr_info", "local", "prefixlen", "dst", "dev", "src", "priority", "table"]
        ),
        JSON | st.sampled_from(["rdma5", "10.208.173.19", "10.208.0.0/12", "105", 32000]),
    ),
    max_size=3,
)


@settings(max_examples=50)
@given(ENTRIES, ENTRIES, ENTRIES)
def test_nearly_right_output_of_a_pod(addr: Any, route: Any, rule: Any) -> None:
    """F147: no value of a member breaks the comparison."""
    assert all(problem.kind.startswith("pod_") for problem in pod_problems(addr, route, rule))
