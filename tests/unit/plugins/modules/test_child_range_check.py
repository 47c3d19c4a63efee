# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One child range against nodes and networks, run whole in this process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.rdma.k8s.plugins.module_utils import bundle
from ansible_collections.rdma.k8s.plugins.module_utils.core.net import parse_prefix
from ansible_collections.rdma.k8s.plugins.modules import child_range_check
from ansible_collections.rdma.k8s.tests.support import fleet, node_tree
from ansible_collections.rdma.k8s.tests.support.module_run import failure, good

SUBNET = "10.140.64.0/19"
RANGE = "10.208.0.0/12"
N1 = {"name": "n1", "address": "10.140.77.19", "subnet": SUBNET}
N2 = {"name": "n2", "address": "10.140.77.20", "subnet": SUBNET}
CLUSTER: dict[str, Any] = {
    "vcn_cidrs": ["10.140.0.0/16"],
    "pod_cidrs": ["10.244.0.0/16"],
    "service_cidrs": ["10.96.0.0/16"],
    "peer_cidrs": ["172.20.0.0/16"],
}


def codes(result: dict[str, Any]) -> list[str]:
    return [problem["code"] for problem in result["problems"]]


def test_a_range_that_is_good() -> None:
    result = good(child_range_check, child_range=RANGE, nodes=[N1, N2], **CLUSTER)
    assert (result["ok"], result["problems"], result["child_range"], result["children"]) == (
        True,
        [],
        RANGE,
        32,
    )
    assert result["capacity"] == [{"subnet": SUBNET, "nodes": 2, "needed": 16, "held": 16, "length": 15}]
    (proposal,) = result["proposals"]
    assert (proposal["length"], proposal["nics"], len(proposal["ranges"])) == (15, 16, 3)
    taken = [parse_prefix(text) for texts in CLUSTER.values() for text in texts] + [parse_prefix(RANGE)]
    for text in proposal["ranges"]:
        assert not any(parse_prefix(text).overlaps(entry) for entry in taken)


@pytest.mark.parametrize("kind", sorted(CLUSTER))
def test_each_kind_of_network_is_compared(kind: str) -> None:
    networks = {**CLUSTER, kind: ["10.215.0.0/16"]}
    result = good(child_range_check, child_range=RANGE, nodes=[N1], **networks)
    assert codes(result) == ["network_conflict"]
    problem = result["problems"][0]
    assert problem["message"].startswith("%s: 10.215.0.0/16 overlaps the child range 10.208.0.0/12." % kind)
    assert (problem["nodes"], result["ok"]) == ([], False)
    assert "10.215.0.0/16" in problem["details"].values()


def test_every_problem_is_told_at_once() -> None:
    other = {**N1, "name": "other", "address": "10.141.77.19", "subnet": "10.141.64.0/19"}
    result = good(
        child_range_check, child_range="10.192.0.0/16", nodes=[N1, other], pod_cidrs=["10.192.4.0/24"]
    )
    assert {"network_conflict", "child_range_too_small", "subnets_differ"} <= set(codes(result))
    assert result["children"] == 16
    small = next(problem for problem in result["problems"] if problem["code"] == "child_range_too_small")
    assert "10.192.0.0/16 holds 8 NICs of each node in 10.140.64.0/19, 16 are needed" in small["message"]
    assert small["nodes"] == ["n1"]


def test_equal_problems_of_several_nodes_are_one() -> None:
    result = good(child_range_check, child_range="10.128.0.0/12", nodes=[N1, N2])
    assert [(problem["code"], problem["nodes"]) for problem in result["problems"]] == [
        ("subnet_overlaps_child_range", ["n1", "n2"])
    ]
    many = failure(
        child_range_check,
        child_range="10.128.0.0/12",
        nodes=[N1],
        pod_cidrs=["10.130.0.0/16"],
        fail_on_problems=True,
    )
    assert "has problems (2), the first: " in many["msg"]


def test_a_range_that_is_not_valid_is_a_problem_and_there_are_proposals() -> None:
    result = good(child_range_check, child_range="10.208.0.1/12", nodes=[N1])
    assert (result["child_range"], codes(result), result["children"]) == (None, ["range_not_masked"], 0)
    assert result["capacity"][0]["held"] is None
    assert result["proposals"][0]["ranges"]


def test_alternatives_are_looked_for_where_the_user_says() -> None:
    result = good(child_range_check, child_range=RANGE, nodes=[N1], supernets=["172.16.0.0/12"])
    assert all(text.startswith("172.") for text in result["proposals"][0]["ranges"])
    result = good(child_range_check, child_range=RANGE, nodes=[N1], supernets=["192.168.0.0/16"])
    assert result["proposals"][0]["ranges"] == []


def test_a_fleet_without_nodes() -> None:
    result = good(child_range_check, child_range=RANGE, nodes=[], pod_cidrs=["10.208.0.0/16"])
    assert (codes(result), result["capacity"], result["proposals"]) == (["network_conflict"], [], [])


def test_snapshots_tell_routes_that_are_in_the_way() -> None:
    node = fleet.add_routes(fleet.node(name="a"), "10.215.0.0/16 dev eth0")
    result = good(child_range_check, child_range=RANGE, snapshot=[node.to_dict(compact=True)])
    assert result["ok"] is False
    assert any("10.215.0.0/16" in problem["message"] for problem in result["problems"])
    assert result["problems"][0]["nodes"] == ["a"]


def test_this_node_from_a_recorded_tree(tmp_path: Path) -> None:
    tree = node_tree.write(tmp_path / "tree", fleet.node("BM.GPU.GB200-v2.4", name="own"), gid_table=2)
    for check_mode in (False, True):
        result = good(
            child_range_check, child_range=RANGE, host_root=str(tree.root), _ansible_check_mode=check_mode
        )
        assert (result["ok"], result["children"]) == (True, 4)
        assert [(entry["length"], entry["nics"]) for entry in result["proposals"]] == [(15, 16), (17, 4)]


def test_problems_can_fail_the_task() -> None:
    result = failure(
        child_range_check, child_range=RANGE, nodes=[N1], pod_cidrs=["10.215.0.0/16"], fail_on_problems=True
    )
    assert result["code"] == "network_conflict"
    assert result["msg"].startswith("The child range 10.208.0.0/12 has a problem: pod_cidrs: 10.215.")
    assert result["details"]["problems"][0]["code"] == "network_conflict"
    good(child_range_check, child_range=RANGE, nodes=[N1], fail_on_problems=True)


@pytest.mark.parametrize(
    ("options", "code", "sentence"),
    [
        ({"pod_cidrs": ["10.0.0.0"]}, "network_malformed", "pod_cidrs: '10.0.0.0' is not a prefix"),
        ({"service_cidrs": ["10.0.0.0/33"]}, "network_malformed", "service_cidrs: '10.0.0.0/33'"),
        ({"supernets": ["all"]}, "prefix_malformed", "'all'"),
        ({"nodes": [N1, N1]}, "node_twice", "'n1'"),
    ],
)
def test_a_mistake_is_one_sentence(options: dict[str, Any], code: str, sentence: str) -> None:
    result = failure(child_range_check, **{"child_range": RANGE, "nodes": [N1], **options})
    assert result["code"] == code
    assert sentence in result["msg"]
    assert "\n" not in result["msg"]


def test_wrong_options_are_refused() -> None:
    assert "missing required arguments: child_range" in failure(child_range_check)["msg"]
    assert (
        "mutually exclusive" in failure(child_range_check, child_range=RANGE, nodes=[N1], snapshot=[])["msg"]
    )


def test_missing_libraries_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundle, "usable", lambda _library: False)
    monkeypatch.delenv(bundle.DIGEST, raising=False)
    assert failure(child_range_check, child_range=RANGE)["missing_libraries"] == ["netaddr", "pyroute2"]
    result = failure(child_range_check, child_range=RANGE, nodes=[N1])
    assert (result["code"], result["missing_libraries"]) == ("library_missing", ["netaddr"])


def test_it_describes_all_that_it_returns() -> None:
    described = yaml.safe_load(child_range_check.RETURN)
    result = good(child_range_check, child_range=RANGE, nodes=[N1], pod_cidrs=["10.215.0.0/16"])
    assert set(described) == set(result)
    for name in ("problems", "capacity", "proposals"):
        assert set(described[name]["contains"]) == set(result[name][0])


def test_the_example_of_the_documentation() -> None:
    (task, _second) = yaml.safe_load(child_range_check.EXAMPLES)
    assert good(child_range_check, **task["rdma.k8s.child_range_check"])["ok"] is True
