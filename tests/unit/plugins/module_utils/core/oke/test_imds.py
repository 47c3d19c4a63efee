# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documents of the metadata service."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from ansible_collections.rdma.k8s.plugins.module_utils.core.errors import RdmaError
from ansible_collections.rdma.k8s.plugins.module_utils.core.net import parse_prefix
from ansible_collections.rdma.k8s.plugins.module_utils.core.oke import imds
from ansible_collections.rdma.k8s.plugins.module_utils.core.oke.addressing import read_vnic
from ansible_collections.rdma.k8s.tests.support.outcome import outcome

VNICS = [
    {"privateIp": "10.140.77.19", "subnetCidrBlock": "10.140.77.19/19", "subnetCidrBlocks": ["10.9.0.0/16"]}
]
LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.sampled_from(["10.0.0.1", "10.0.0.0/8", "::1", "ocid1.a.b"])
)
KEYS = st.sampled_from(
    [
        *("networkBlockId", "rackId", "rdmaTopologyData", "rdmaFabricData", "ipv6", "planes", "shape"),
        *("customerHPCIslandId", "customerHostId", "privateIp", "subnetCidrBlock", "subnetCidrBlocks", "x"),
    ]
)
JSON = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=5),
    max_leaves=12,
)


def test_one_read_of_all_documents() -> None:
    """F62, F66, F67: what can be used is used, the rest are errors that say what is wrong."""
    metadata, errors = imds.read(
        {"rackId": "r", "rdmaFabricData": {"ipv6": False, "planes": True}}, {"shape": "S"}, VNICS
    )
    assert metadata == imds.Metadata(shape="S", vnic=read_vnic("10.140.77.19", "10.140.64.0/19"))
    assert [error.code for error in errors] == ["host_malformed"]
    assert "rdmaFabricData.planes must be an integer of 64 bits, found True" in errors[0].message
    assert errors[0].retryable
    metadata, errors = imds.read(None, ["S"], [])
    assert metadata == imds.Metadata()
    assert [error.code for error in errors] == ["instance_malformed", "vnics_empty"]


def test_a_later_read_keeps_what_it_does_not_know() -> None:
    """F68."""
    first = imds.Metadata(rack_id="r", fabric=imds.Fabric(False, 0))
    later = imds.merge(first, imds.Metadata(shape="S"))
    assert later == imds.Metadata(rack_id="r", shape="S", fabric=imds.Fabric(False, 0))
    assert imds.merge(None, first) is first


def test_the_child_range_is_published_on_a_known_ipv4_fabric_only() -> None:
    """F70."""
    name = "oke.dra.net/rdmaChildIpv4Cidr"
    wanted = parse_prefix("10.192.0.0/14")
    assert imds.attributes(imds.Metadata(fabric=imds.Fabric(False, 1)), wanted)[name] == {
        "string": "10.192.0.0/14"
    }
    assert name not in imds.attributes(imds.Metadata(fabric=imds.Fabric(True, 1)), wanted)
    assert imds.attributes(imds.Metadata()) == {}


@pytest.mark.parametrize(
    ("document", "words"),
    [
        (None, "has no entry"),
        ([{"privateIp": "x"}], "privateIp 'x', which is not an address"),
        ([{"privateIp": "10.0.0.1"}], "no subnetCidrBlock for the primary VNIC 10.0.0.1"),
        ([{"privateIp": "10.0.0.1", "subnetCidrBlock": "y"}], "subnetCidrBlock 'y', which is not a prefix"),
        ([{}, {"privateIp": 1}], r"vnics\[1\]\.privateIp must be a text, found 1"),
        ([{"subnetCidrBlocks": [1]}], r"vnics\[0\]\.subnetCidrBlocks must be a text"),
    ],
)
def test_errors_of_the_primary_vnic_say_what_was_found(document: Any, words: str) -> None:
    """F69."""
    with pytest.raises(RdmaError, match=words) as caught:
        imds.parse_primary_vnic(document)
    assert caught.value.retryable
    assert "169.254.169.254" in caught.value.hint


def test_all_subnets_of_all_vnics() -> None:
    """F46."""
    assert [str(entry) for entry in imds.parse_vnic_subnets(VNICS)] == ["10.140.64.0/19", "10.9.0.0/16"]


def test_a_text_that_is_no_ocid_is_shown_short() -> None:
    """F65."""
    with pytest.raises(RdmaError) as caught:
        imds.ocid_suffix("x" * 500)
    assert len(caught.value.message) < 120


@settings(max_examples=60)
@given(JSON, JSON, JSON)
def test_any_documents_give_metadata_or_known_errors(host: Any, instance: Any, vnics: Any) -> None:
    """F66, F69: whatever the service answers."""
    metadata, errors = imds.read(host, instance, vnics)
    assert {error.code for error in errors} <= {
        *("host_malformed", "instance_malformed", "vnics_malformed", "vnics_empty"),
        *("vnic_address_parse_error", "vnic_subnet_missing", "vnic_subnet_parse_error"),
    }
    for value in imds.attributes(metadata).values():
        assert len(value) == 1
        assert value.get("string") != ""
    found = outcome(imds.parse_vnic_subnets, vnics)
    assert found.code in ("", "vnics_malformed")
    assert all(subnet.version == 4 and subnet.is_masked for subnet in found.value or ())


@given(st.text())
def test_any_text_gives_a_suffix_or_a_known_error(text: str) -> None:
    """F65: at most 60 characters, so that the attribute fits the limit of F71."""
    found = outcome(imds.ocid_suffix, text)
    assert found.code in ("", "ocid_missing_prefix", "ocid_missing_separator")
    assert len(found.value or "") <= imds.MAX_SUFFIX < imds.MAX_ATTRIBUTE_BYTES
