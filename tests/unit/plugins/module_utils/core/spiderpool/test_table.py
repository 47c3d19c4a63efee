# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The table of rails as a user writes it."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.core.spiderpool import table
from ansible_collections.rdma.k8s.plugins.module_utils.core.spiderpool.rails import MOST_RAILS

ROW: dict[str, Any] = {
    "pci": "0000:86:00.0",
    "link_type": "eth",
    "subnet": "172.16.11.0/24",
    "gateway": "172.16.11.254",
}
SECOND: dict[str, Any] = {
    **ROW,
    "pci": "0000:86:00.1",
    "subnet": "172.16.12.0/24",
    "gateway": "172.16.12.254",
}


def codes(rows: Any, inject: bool = False, **defaults: Any) -> list[tuple[str, str, str]]:
    """Subject, code and place of each finding."""
    found = table.read(rows, table.Defaults(**defaults), inject).told
    return [(entry.subject, entry.issue.code, entry.issue.at) for entry in found]


def test_a_row_with_defaults() -> None:
    (rail,) = table.read([ROW], table.Defaults(vfs=12, mtu=4200)).rails
    assert (rail.number, rail.resource, rail.vfs, rail.mtu) == (1, "gpu1sriov", 12, 4200)
    assert rail.ranges == ("172.16.11.1-172.16.11.253",)
    assert codes([ROW, SECOND]) == []


@pytest.mark.parametrize(
    ("gateway", "ranges"),
    [
        (None, ("10.0.0.1-10.0.0.6",)),
        ("10.0.0.1", ("10.0.0.2-10.0.0.6",)),
        ("10.0.0.3", ("10.0.0.1-10.0.0.2", "10.0.0.4-10.0.0.6")),
        ("10.0.0.2", ("10.0.0.1", "10.0.0.3-10.0.0.6")),
        ("10.9.9.9", ("10.0.0.1-10.0.0.6",)),
    ],
)
def test_all_hosts_but_the_gateway(gateway: Any, ranges: tuple[str, ...]) -> None:
    """S80: a gateway must not be among the addresses of pods."""
    row = {**ROW, "subnet": "10.0.0.0/29", "gateway": gateway}
    (rail,) = table.read([row], table.Defaults()).rails
    assert rail.ranges == ranges


def test_ten_rails_have_numbers_with_zeros() -> None:
    """S163: names are ordered as texts."""
    rows = [{**ROW, "pci": "0000:%02x:00.0" % number} for number in range(10)]
    found = table.read(rows, table.Defaults()).rails
    assert [rail.resource for rail in found][:2] == ["gpu01sriov", "gpu02sriov"]


@pytest.mark.parametrize(
    ("change", "code", "at"),
    [
        ({"speed": 200}, "rail-value-unknown", "speed"),
        ({"pci": "86:00.0"}, "rail-pci-syntax", "pci"),
        ({"pci": "0000:86:00.8"}, "rail-pci-syntax", "pci"),
        ({"pci": 8600}, "rail-pci-syntax", "pci"),
        ({"pci": "", "name": ""}, "rail-without-nic", "pci"),
        ({"name": "an-interface-with-a-long-name"}, "rail-name-syntax", "name"),
        ({"name": "ens 1"}, "rail-name-syntax", "name"),
        ({"link_type": ""}, "rail-linktype", "link_type"),
        ({"link_type": "roce"}, "rail-linktype", "link_type"),
        ({"vfs": "8"}, "rail-number", "vfs"),
        ({"vfs": True}, "rail-number", "vfs"),
        ({"mtu": 100}, "rail-number", "mtu"),
        ({"mtu": "4200"}, "rail-number", "mtu"),
        ({"subnet": 17216}, "rail-text", "subnet"),
        ({"gateway": 1}, "rail-text", "gateway"),
        ({"subnet": ""}, "subnet-syntax", "subnet"),
        ({"ranges": "172.16.11.1-172.16.11.9"}, "range-syntax", "ranges"),
        ({"pkey": 1000}, "pkey-type", "pkey"),
        ({"pkey": "0x10"}, "rail-pkey-ethernet", "pkey"),
        ({"link_type": "ib", "mtu": 2044}, "rail-mtu-infiniband", "mtu"),
    ],
)
def test_a_row_that_is_wrong(change: dict[str, Any], code: str, at: str) -> None:
    """S112, S150, S250, S251."""
    assert ("rail 1", code, at) in codes([{**ROW, **change}])


def test_a_variable_that_nobody_expanded() -> None:
    """S251: the guide fills the link type from a variable of the shell."""
    assert ("rail 1", "variable-unexpanded", "link_type") in codes([{**ROW, "link_type": "${LINK_TYPE}"}])


def test_the_short_form_of_an_address_has_its_right_form() -> None:
    found = table.read([{**ROW, "pci": "86:00.0"}], table.Defaults()).told
    assert [dict(entry.issue.extra) for entry in found] == [{"canonical": "0000:86:00.0"}]


@pytest.mark.parametrize("rows", [None, {}, [], [ROW] * (MOST_RAILS + 1), "rails"])
def test_no_table(rows: Any) -> None:
    assert codes(rows) == [("rails", "rails-malformed", "")]


def test_a_row_that_is_no_map() -> None:
    assert codes([ROW, "0000:86:00.1"]) == [("rail 2", "rail-malformed", "")]


@pytest.mark.parametrize(
    ("change", "code", "at"),
    [
        ({"pci": ROW["pci"]}, "rootdevice-overlap", "pci"),
        ({"resource": "gpu1sriov"}, "rail-resource-twice", "resource"),
        ({"resource": "GPU1sriov"}, "rail-names-collide", "resource"),
        ({"subnet": "172.16.11.0/24"}, "rails-share-subnet", "subnet"),
    ],
)
def test_rows_that_do_not_go_together(change: dict[str, Any], code: str, at: str) -> None:
    """S221, S226."""
    assert ("rails", code, at) in codes([ROW, {**SECOND, **change}])


def test_one_interface_for_two_rails() -> None:
    rows = [{**ROW, "pci": "", "name": "ens1"}, {**SECOND, "pci": "", "name": "ens1"}]
    assert ("rails", "pf-selected-twice", "name") in codes(rows)


def test_subnets_with_host_bits_are_compared_as_networks() -> None:
    """S221: the guide's /16 of all rails are one and the same."""
    rows = [{**ROW, "subnet": "172.16.11.0/16"}, {**SECOND, "subnet": "172.16.12.0/16"}]
    assert ("rails", "rails-share-subnet", "subnet") in codes(rows)


def test_the_order_of_injected_networks() -> None:
    """S163."""
    rows = [{**ROW, "resource": "gpu9"}, {**SECOND, "resource": "gpu10"}]
    assert codes(rows) == []
    assert codes(rows, inject=True) == [("rails", "rails-order", "resource")]
