# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The two files of OCA."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from ansible_collections.rdma.k8s.plugins.module_utils.core.errors import RdmaError
from ansible_collections.rdma.k8s.plugins.module_utils.core.oke import oca
from ansible_collections.rdma.k8s.plugins.module_utils.core.oke.constants import DEFAULT_OCA_NETWORK
from ansible_collections.rdma.k8s.tests.support.outcome import outcome

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)
CODES = {
    "oca_json_malformed",
    "oca_no_entries",
    "oca_no_rdma_network",
    "oca_prefix_parse_error",
    "oca_prefix_not_ipv4",
    "oca_prefix_not_masked",
}


def network_file(value: Any) -> str:
    """A file with this rdma_network."""
    return json.dumps({"rdma-network": [{"default-settings": {"rdma_network": value}}]})


def test_an_error_names_the_file_the_value_and_the_expectation() -> None:
    """F52."""
    with pytest.raises(RdmaError) as caught:
        oca.parse_network(network_file("10.224.0.1/12"))
    assert str(caught.value).startswith(
        "rdma_network.json has rdma_network 10.224.0.1/12 with host bits, expected 10.224.0.0/12."
    )
    with pytest.raises(RdmaError, match=r"rdma-network\[0\]\.default-settings\.rdma_network must be a text"):
        oca.parse_network(network_file(12))


def test_a_wrong_type_says_where_it_is() -> None:
    """F51: a wrong type in any entry."""
    with pytest.raises(RdmaError) as caught:
        oca.parse_network(
            '{"rdma-network": [{"default-settings": {"rdma_network": "10.224.0.0/12"}}, {"default-settings": 1}]}'
        )
    assert caught.value.details["where"] == "rdma-network[1].default-settings"


def test_both_files_are_optional() -> None:
    """F54, F142: no file, no warning; the mode is then not known, which is not classic."""
    assert oca.load(None, None) == oca.OcaConfig(DEFAULT_OCA_NETWORK, None, ())


def test_an_unusable_file_gives_a_warning_and_the_default() -> None:
    """F54."""
    config = oca.load("[" * 100000, '{"host_serial_based_rdma_ips": true}')
    assert (config.network, config.address_mode) == (DEFAULT_OCA_NETWORK, "host-serial")
    assert [warning.code for warning in config.warnings] == ["oca_json_malformed"]
    assert oca.load(network_file("192.168.0.0/16"), "{}").network.length == 16


@settings(max_examples=60)
@given(st.text() | JSON.map(json.dumps) | JSON.map(network_file) | st.text().map(network_file))
def test_any_network_file_gives_a_prefix_or_a_known_error(text: str) -> None:
    """F52."""
    found = outcome(oca.parse_network, text)
    if found.code:
        assert found.code in CODES
        assert found.hint
    else:
        assert found.value.version == 4
        assert found.value.is_masked


@given(
    st.text()
    | JSON.map(json.dumps)
    | JSON.map(lambda value: json.dumps({"ipv4_topology_based_rdma_ips": value}))
)
def test_any_features_file_gives_a_mode_or_a_known_error(text: str) -> None:
    """F53."""
    found = outcome(oca.parse_features, text)
    assert found.code in ("", "oca_features_malformed")
    assert found.code or found.value in (oca.CLASSIC, oca.TOPOLOGY, oca.HOST_SERIAL)
    assert oca.load(text, text).address_mode in (None, oca.CLASSIC, oca.TOPOLOGY, oca.HOST_SERIAL)
