# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Another RDMA network in rdma_network.json: what changes, and that nothing else does (F51, F52, F55)."""

from __future__ import annotations

import json

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.core.errors import RdmaError
from ansible_collections.rdma.k8s.plugins.module_utils.core.net import parse_prefix
from ansible_collections.rdma.k8s.plugins.module_utils.core.oke import oca, oca_file

WANTED = parse_prefix("10.160.0.0/11")

WHOLE = """{
\t"version" : "1",
  "rdma-network": [
    {
      "default-settings": {"rdma_network": "10.224.0.0/12", "overwrite_config_files": false, "vendor": 1.50},
      "subnet-settings": {
        "netmask": "255.240.0.0",
        "override_netconfig_netmask": "255.240.0.0"
      },
      "arp-settings": {"rp_filter": "2"}
    },
    {"default-settings": {"rdma_network": "10.1.0.0/16"}}
  ],
  "rdma-settings": [{"model": "\\u004d", "settings": {"mtu": "4220", "big": 12345678901234567890123, "e": 1E+2}}]
}
"""


def test_only_the_three_values_change_and_every_other_byte_stays() -> None:
    """F55: network, netmask and override belong together; key order, numbers and white space are the agent's."""
    wanted = WHOLE.replace('"10.224.0.0/12"', '"10.160.0.0/11"').replace("255.240.0.0", "255.224.0.0")
    assert oca_file.with_network(WHOLE, WANTED) == wanted


def test_a_file_that_says_it_already_comes_back_as_it_is() -> None:
    once = oca_file.with_network(WHOLE, WANTED)
    assert oca_file.with_network(once, WANTED) == once


def test_a_new_file_is_what_the_driver_reads_as_this_network() -> None:
    """F51, F55."""
    text = oca_file.with_network(None, WANTED)
    assert oca.parse_network(text) == WANTED
    entry = json.loads(text)["rdma-network"][0]
    assert entry["subnet-settings"] == {"netmask": "255.224.0.0", "override_netconfig_netmask": "255.224.0.0"}
    assert oca_file.with_network(text, WANTED) == text


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        "null",
        '{"x": 1}',
        '{"rdma-network": null, "x": [1, 2]}',
        '{"rdma-network": []}',
        '{"rdma-network": [null]}',
        '{"rdma-network": [{}]}',
        '{"rdma-network": [{"default-settings": null}]}',
        '{"rdma-network": [{"default-settings": {"rdma_network": ""}}]}',
        '{"rdma-network": [{"default-settings": {"rdma_network": "10.224.0.1/12"}, "subnet-settings": null}]}',
        '{"rdma-network": [{"default-settings": {"rdma_network": "fd00::/64"}, "subnet-settings": {"netmask": 1}}]}',
        '{ "rdma-network":[ { "default-settings":\n{ } } ] }',
        '{"rdma-network": [{"default-settings": {"rdma_network": "a/1", "rdma_network": "10.224.0.0/12"}}]}',
    ],
)
def test_what_is_missing_or_unusable_is_filled_in(text: str) -> None:
    """F52: null and absent are the same; an unusable value is replaced; what else is there stays."""
    result = oca_file.with_network(text, WANTED)
    assert oca.parse_network(result) == WANTED
    found, before = json.loads(result), json.loads(text) or {}
    assert found["rdma-network"][0]["subnet-settings"]["netmask"] == "255.224.0.0"
    assert found["rdma-network"][0]["subnet-settings"]["override_netconfig_netmask"] == "255.224.0.0"
    assert {key: value for key, value in found.items() if key != "rdma-network"} == {
        key: value for key, value in before.items() if key != "rdma-network"
    }
    assert oca_file.with_network(result, WANTED) == result


def test_an_added_member_is_laid_out_like_its_neighbour() -> None:
    text = '{\n    "rdma-network": [\n        {\n            "arp-settings": {}\n        }\n    ]\n}\n'
    assert '{\n            "default-settings": ' in oca_file.with_network(text, WANTED)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("", "not JSON"),
        ("{", "not JSON"),
        ("[]", "the document"),
        ('{"rdma-network": {}}', "rdma-network"),
        ('{"rdma-network": [1]}', "rdma-network[0]"),
        ('{"rdma-network": [{"default-settings": {"rdma_network": 1}}]}', "rdma_network"),
        (
            '{"rdma-network": [{"default-settings": {"rdma_network": "10.0.0.0/8"}, "subnet-settings": []}]}',
            "subnet-settings must be an object",
        ),
    ],
)
def test_a_file_that_cannot_be_understood_is_not_touched(text: str, part: str) -> None:
    """F52: a wrong type makes the whole file malformed."""
    with pytest.raises(RdmaError, match=r"rdma_network\.json") as caught:
        oca_file.with_network(text, WANTED)
    assert caught.value.code == "oca_json_malformed"
    assert part in caught.value.message
