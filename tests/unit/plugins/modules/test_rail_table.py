# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module rail_table: options that it refuses, and a table with its objects."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.rdma.k8s.plugins.modules import rail_table
from ansible_collections.rdma.k8s.tests.support import change_run, fleet
from ansible_collections.rdma.k8s.tests.support.cases import GB200_IB

GIVEN: dict[str, Any] = {"supernet": "172.16.0.0/16", "node_selector": {"rdma": "true"}}


def snapshots(shape: str = "BM.GPU.H100.8") -> list[dict[str, Any]]:
    return [fleet.with_slow(fleet.node(shape, number)).to_dict(compact=True) for number in range(2)]


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"namespace": "a.b"}, "name_malformed"),
        ({"resource_prefix": "a/b"}, "name_malformed"),
        ({"mtu": 100}, "number_out_of_range"),
        ({"vfs": 129}, "rails_wish"),
        ({"supernet": "172.16.1.0/16"}, "rails_network"),
        ({"resource": "gpu-{rail}"}, "rails_wish"),
        ({"snapshots": [{"name": "w1"}]}, "rails_none"),
    ],
)
def test_options(options: dict[str, Any], code: str) -> None:
    given = {"snapshots": snapshots(), **GIVEN, **options}
    assert change_run.failure(rail_table, **given)["code"] == code


def test_a_name_that_a_rule_refuses_is_told() -> None:
    """S103: hyphens are refused by the operator of the chart."""
    failure = change_run.failure(rail_table, snapshots=snapshots(), **GIVEN, resource="gpu-{rail}")
    assert "no '-', found 'gpu-01'" in failure["msg"]


def test_a_table() -> None:
    result = change_run.good(rail_table, snapshots=snapshots(), **GIVEN, inject="rails")
    assert result["changed"] is False
    count = len(result["rails"])
    assert [rail["number"] for rail in result["rails"]] == list(range(1, count + 1))
    assert [document["kind"] for document in result["objects"]] == (
        ["SriovNetworkNodePolicy"] * count + ["SpiderIPPool"] * count + ["SpiderMultusConfig"] * count
    )
    assert result["objects"][-1]["metadata"]["annotations"] == {
        "cni.spidernet.io/rdma-resource-inject": "rails"
    }
    assert result["notes"] != []  # the made-up nodes tell no GPU


def test_infiniband_with_a_key_for_all() -> None:
    """S150, S153."""
    result = change_run.good(rail_table, snapshots=snapshots(GB200_IB), **GIVEN, pkeys=["0x10"])
    fabric = [rail for rail in result["rails"] if rail["link_type"] == "ib"]
    assert len(fabric) == 4
    assert {rail["pkey"] for rail in fabric} == {"0x10"}
