# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The document of networks: strict reading, each network once, conflicts (F29, F45-F50)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, strategies as st

from ansible_collections.rdma.k8s.plugins.module_utils.core.errors import RdmaError
from ansible_collections.rdma.k8s.plugins.module_utils.core.net import Prefix, find_prefix, parse_prefix
from ansible_collections.rdma.k8s.plugins.module_utils.core.oke import networks
from ansible_collections.rdma.k8s.plugins.module_utils.core.oke.networks import (
    KnownNetwork,
    NetworkDocument,
    Unread,
)

GOOD: dict[str, Any] = {
    "document": "rdma.k8s/networks",
    "schema_version": 1,
    "cluster": {"name": "prod"},
    "networks": [
        {"network": "10.244.0.0/16", "kind": "pod", "sources": ["podsCidr of cluster prod"], "used_by": []},
        {
            "network": "10.140.0.0/16",
            "kind": "vcn",
            "sources": ["VCN a", "option vcn_cidrs"],
            "used_by": ["x"],
        },
    ],
    "ipv6_networks": [{"network": "fd00::/8", "kind": "vcn", "sources": ["VCN a"], "used_by": []}],
    "unread": [{"code": "oci_not_found", "message": "The peers: no.", "hint": "Ask.", "retryable": True}],
}


def refusal(act: Any, *arguments: Any) -> RdmaError:
    with pytest.raises(RdmaError) as caught:
        act(*arguments)
    return caught.value


def test_a_document_is_read_as_it_was_written() -> None:
    document = networks.parse(GOOD)
    assert document.to_dict() == GOOD
    assert networks.parse(json.loads(json.dumps(document.to_dict()))) == document
    assert [entry.label for entry in document.networks] == [
        "pod network (podsCidr of cluster prod)",
        "VCN network (VCN a, option vcn_cidrs; used by x)",
        "VCN network (VCN a)",
    ]


def test_options_become_networks_with_their_source() -> None:
    document = networks.from_options(
        {"pod_cidrs": ["10.244.0.0/16", "10.244.0.0/16"], "peer_cidrs": ["192.168.1.7/24"], "vcn_cidrs": None}
    )
    assert document.networks == (
        KnownNetwork("pod", parse_prefix("10.244.0.0/16"), ("option pod_cidrs",)),
        KnownNetwork("peer", parse_prefix("192.168.1.0/24"), ("option peer_cidrs",)),
    )
    assert document.options() == {
        "pod_cidrs": ["10.244.0.0/16"],
        "service_cidrs": [],
        "vcn_cidrs": [],
        "subnet_cidrs": [],
        "peer_cidrs": ["192.168.1.0/24"],
    }


@pytest.mark.parametrize(
    "text",
    ["10.0.0.0", "10.0.0.0/08", "10.0.0.0/255.0.0.0", " 10.0.0.0/8", "10.0.0.0/8 ", "10.0.0.00/8", "10.0.0.0/33",
     "fd00::1%eth0/64", "", None, 10, "\u0661\u0660.0.0.0/8"],
)  # fmt: skip
def test_the_parser_is_strict(text: Any) -> None:
    """F29: what the driver does not take is refused, and the option is named."""
    error = refusal(networks.from_options, {"service_cidrs": [text]})
    assert error.code == "network_malformed"
    assert error.message.startswith("The networks: service_cidrs[0] must be a prefix of the form")


@pytest.mark.parametrize("value", ["10.0.0.0/8", {"a": 1}, 4, True])
def test_an_option_is_a_list(value: Any) -> None:
    error = refusal(networks.from_options, {"vcn_cidrs": value})
    assert (error.code, error.details["where"]) == ("network_malformed", "vcn_cidrs")


def test_a_network_that_several_know_is_one() -> None:
    api = networks.parse(GOOD)
    given_too = networks.from_options({"pod_cidrs": ["10.244.0.0/16"], "peer_cidrs": ["10.244.0.0/16"]})
    both = api.with_more(given_too)
    pods = both.of_kind("pod")
    assert [(str(entry.network), entry.sources) for entry in pods] == [
        ("10.244.0.0/16", ("podsCidr of cluster prod", "option pod_cidrs"))
    ]
    assert [entry.kind for entry in both.of_version(4)] == ["pod", "vcn", "peer"]
    assert both.cluster == {"name": "prod"}
    assert both.unread == (Unread("oci_not_found", "The peers: no.", "Ask.", True),)
    assert given_too.with_more(api).cluster == {"name": "prod"}
    assert api.with_more(api) == api


def test_conflicts_name_the_network_and_its_source() -> None:
    document = networks.parse(GOOD)
    assert [entry.label for entry in document.conflicts(parse_prefix("10.240.0.0/12"))] == [
        "pod network (podsCidr of cluster prod)"
    ]
    assert document.conflicts(parse_prefix("10.208.0.0/12")) == []


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"document": "other"}, "document must be 'rdma.k8s/networks', found 'other'"),
        ({"schema_version": None}, "schema_version must be 1, found None"),
        ({"schema_version": True}, "schema_version must be an integer"),
        ({"schema_version": 0}, "schema_version must be 1, found 0"),
        ({"cluster": []}, "cluster must be an object, found a list"),
        ({"networks": {}}, "networks must be a list, found an object"),
        ({"networks": [4]}, "networks[0] must be an object, found 4"),
        ({"networks": [{"kind": "pods"}]}, "networks[0].kind must be one of pod, service, vcn, subnet, peer"),
        (
            {"networks": [{"kind": "pod"}]},
            "networks[0].sources must be a list with at least one text, found None",
        ),
        ({"networks": [{"kind": "pod", "sources": "a"}]}, "networks[0].sources must be a list, found 'a'"),
        ({"networks": [{"kind": "pod", "sources": [1]}]}, "networks[0].sources[0] must be a text, found 1"),
        (
            {"networks": [{"kind": "pod", "sources": ["a"], "network": "10.0.0.0"}]},
            "networks[0].network must be a prefix of the form <address>/<length>, found '10.0.0.0'",
        ),
        (
            {"networks": [{"kind": "pod", "sources": ["a"], "network": "fd00::/8"}]},
            "networks[0].network must be an IPv4 network, found 'fd00::/8'",
        ),
        (
            {"ipv6_networks": [{"kind": "pod", "sources": ["a"], "network": "10.0.0.0/8"}]},
            "ipv6_networks[0].network must be an IPv6 network, found '10.0.0.0/8'",
        ),
        ({"unread": [{"code": 1}]}, "unread[0].code must be a text, found 1"),
        ({"unread": [{"retryable": 1}]}, "unread[0].retryable must be true or false, found 1"),
    ],
)
def test_a_document_with_a_mistake_is_refused(change: dict[str, Any], sentence: str) -> None:
    error = refusal(networks.parse, {**GOOD, **change})
    assert error.code == "networks_malformed"
    assert error.message.startswith("The document of networks: " + sentence)


@pytest.mark.parametrize("value", [None, [], "text", 4])
def test_something_else_is_no_document(value: Any) -> None:
    assert refusal(networks.parse, value).code == "networks_malformed"


def test_a_newer_document_is_not_guessed_at() -> None:
    error = refusal(networks.parse, {**GOOD, "schema_version": 2})
    assert error.code == "networks_newer_schema"
    assert "schema version 2, this release reads up to 1" in error.message


def test_texts_of_others_cannot_break_a_line() -> None:
    document = networks.parse(
        {**GOOD, "networks": [{"network": "10.0.0.0/8", "kind": "pod", "sources": ["a\nb\x1b[31m"]}]}
    )
    assert document.networks[0].sources == ("a b\ufffd[31m",)


PREFIXES = st.builds(
    lambda value, length: Prefix(4, value, length).masked(), st.integers(0, 2**32 - 1), st.integers(0, 32)
)


@given(st.lists(st.tuples(st.sampled_from(sorted(networks.KINDS)), PREFIXES), max_size=12), PREFIXES)
def test_conflicts_are_the_networks_that_overlap(entries: list[tuple[str, Prefix]], wanted: Prefix) -> None:
    document = NetworkDocument(
        networks.merged([KnownNetwork(kind, network, ("test",)) for kind, network in entries])
    )
    assert {(entry.kind, entry.network) for entry in document.networks} == set(entries)
    assert len(document.networks) == len(set(entries))
    expected = {entry for entry in entries if entry[1].overlaps(wanted)}
    assert {(entry.kind, entry.network) for entry in document.conflicts(wanted)} == expected
    assert networks.parse(document.to_dict()) == document
    assert all(find_prefix(text) for texts in document.options().values() for text in texts)
