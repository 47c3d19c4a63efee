# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The children of a node or a fleet, run whole in this process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.rdma.k8s.plugins.module_utils import bundle
from ansible_collections.rdma.k8s.plugins.modules import child_plan_info
from ansible_collections.rdma.k8s.tests.support import fleet, node_tree
from ansible_collections.rdma.k8s.tests.support.module_run import failure, good

SUBNET = "10.140.64.0/19"
N1 = {"name": "n1", "address": "10.140.77.19", "subnet": SUBNET}
N2 = {"name": "n2", "address": "10.140.77.20", "subnet": SUBNET}


def test_the_children_of_the_reference_node() -> None:
    """F15, F38, F39."""
    result = good(child_plan_info, nodes=[N1])
    (node,) = result["nodes"]
    assert (node["name"], node["errors"], result["clashes"]) == ("n1", [], [])
    assert [child["index"] for child in node["children"]] == list(range(16))
    assert node["children"][15] == {
        "index": 15,
        "parent": "10.225.237.19",
        "child": "10.209.237.19/12",
        "table": 115,
        "route": {"destination": "10.208.0.0/12", "scope": 253, "source": "10.209.237.19", "table": 115},
        "rule": {"priority": 32000, "source": "10.209.237.19/32", "table": 115},
        "arp": None,
    }


def test_nodes_keep_their_order_and_texts_become_numbers() -> None:
    result = good(
        child_plan_info, nodes=[{**N2, "nics": "2"}, {**N1, "nics": 1}, {**N1, "name": "n0", "nics": 0}]
    )
    assert [(node["name"], len(node["children"])) for node in result["nodes"]] == [
        ("n2", 2),
        ("n1", 1),
        ("n0", 0),
    ]


def test_a_nic_without_a_child_has_an_error() -> None:
    result = good(child_plan_info, nodes=[N1], child_range="10.192.0.0/16")
    (node,) = result["nodes"]
    assert len(node["children"]) == 8
    assert [error["index"] for error in node["errors"]] == list(range(8, 16))
    assert {error["code"] for error in node["errors"]} == {"outside_child_range"}
    assert "NIC index 8" in node["errors"][0]["message"]


def test_clashes_name_both_holders() -> None:
    other = {**N1, "name": "other", "address": "10.141.77.19", "subnet": "10.141.64.0/19"}
    result = good(child_plan_info, nodes=[N1, other])
    assert len(result["clashes"]) == 16
    assert result["clashes"][0] == {"child": "10.208.13.19", "holders": ["n1 0", "other 0"]}


@pytest.mark.parametrize("compact", [False, True])
def test_snapshots(compact: bool) -> None:
    nodes = [fleet.node("BM.GPU.GB200-v2.4", name="a"), fleet.node("BM.GPU.GB200.4", number=1, name="ib")]
    result = good(child_plan_info, snapshot=[node.to_dict(compact=compact) for node in nodes])
    first, second = result["nodes"]
    assert [child["child"] for child in first["children"]] == [
        "10.208.%d.19/12" % (13 + 32 * index) for index in range(4)
    ]
    assert first["children"][0]["arp"] == {"arp_ignore": 1, "arp_announce": 2}
    assert (second["name"], second["children"]) == ("ib", [])


def test_this_node_from_a_recorded_tree(tmp_path: Path) -> None:
    tree = node_tree.write(tmp_path / "tree", fleet.node("BM.GPU.GB200-v2.4", name="own"), gid_table=2)
    for check_mode in (False, True):
        result = good(child_plan_info, host_root=str(tree.root), _ansible_check_mode=check_mode)
        assert [node["name"] for node in result["nodes"]] == ["own"]
        assert [child["table"] for child in result["nodes"][0]["children"]] == [100, 101, 102, 103]


def test_a_node_that_tells_no_address_has_errors(tmp_path: Path) -> None:
    node = fleet.edit_imds(fleet.node("BM.GPU.GB200-v2.4", name="own"), vnics=None)
    result = good(child_plan_info, snapshot=[node.to_dict()])
    assert result["nodes"][0]["children"] == []
    assert [error["code"] for error in result["nodes"][0]["errors"]] == ["vnic_missing"] * 4


@pytest.mark.parametrize(
    ("options", "code", "sentence"),
    [
        ({"nodes": [N1], "child_range": "10.208.0.1/12"}, "range_not_masked", "10.208.0.1/12"),
        ({"nodes": [N1], "child_range": "x"}, "range_parse_error", "'x'"),
        ({"nodes": [N1, N1]}, "node_twice", "The node name 'n1' is given more than once."),
        ({"nodes": [{**N1, "nics": 65}]}, "nic_count", "nics of node n1"),
        ({"snapshot": [{"schema_version": 99, "name": "x"}]}, "snapshot_newer_schema", "version 99"),
        ({"snapshot": [{"name": "x", "links": 1}]}, "document_malformed", "snapshot.links"),
        ({"host_root": "/does/not/exist"}, "host_root_missing", "/does/not/exist"),
    ],
)
def test_a_mistake_is_one_sentence(options: dict[str, Any], code: str, sentence: str) -> None:
    result = failure(child_plan_info, **options)
    assert result["code"] == code
    assert sentence in result["msg"]
    assert "\n" not in result["msg"]


def test_wrong_options_are_refused() -> None:
    assert "mutually exclusive" in failure(child_plan_info, nodes=[N1], snapshot=[])["msg"]
    assert (
        "missing required arguments: address"
        in failure(child_plan_info, nodes=[{"name": "n", "subnet": "s"}])["msg"]
    )
    assert "Unsupported parameters" in failure(child_plan_info, nodes=[{**N1, "colour": "red"}])["msg"]


def test_the_library_is_needed_for_a_real_node_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(bundle, "usable", lambda _library: False)
    monkeypatch.delenv(bundle.DIGEST, raising=False)
    result = failure(child_plan_info)
    assert (result["code"], result["missing_libraries"]) == ("library_missing", ["pyroute2"])
    good(child_plan_info, nodes=[N1])


def test_it_describes_all_that_it_returns() -> None:
    described = yaml.safe_load(child_plan_info.RETURN)
    result = good(child_plan_info, nodes=[N1, {**N1, "name": "n1b"}], child_range="10.192.0.0/16")
    assert set(described) == set(result)
    parts = described["nodes"]["contains"]
    (node, _other) = result["nodes"]
    assert set(parts) == set(node)
    assert set(parts["children"]["contains"]) == set(node["children"][0])
    assert set(parts["errors"]["contains"]) == set(node["errors"][0])
    assert set(described["clashes"]["sample"][0]) == set(result["clashes"][0])
