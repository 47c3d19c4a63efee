# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rollout of the plugin, tokens of a node, mode against IP version: what the vectors do not tell apart."""

from __future__ import annotations

from typing import Any, Optional

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.core import cluster_reading
from ansible_collections.rdma.k8s.plugins.module_utils.core.ack import device_plugin, fabric_ip, node_resource
from ansible_collections.rdma.k8s.plugins.module_utils.core.ack.verdict import Reason, worst
from ansible_collections.rdma.k8s.plugins.module_utils.core.snapshot import Link

LABELS = {"alibabacloud.com/lingjun-worker": "true"}


def codes(reasons: Any) -> set[str]:
    return {reason.code for reason in reasons}


# --- the DaemonSet


def daemonset(generation: int = 1, **status: Any) -> dict[str, Any]:
    good = {
        "observedGeneration": 1,
        "desiredNumberScheduled": 2,
        "currentNumberScheduled": 2,
        "numberReady": 2,
        "numberMisscheduled": 0,
        "updatedNumberScheduled": 2,
        "numberAvailable": 2,
    }
    good.update(status)
    kept = {key: value for key, value in good.items() if value is not None}
    return {"metadata": {"name": "ack-rdma-dp-ds", "generation": generation}, "status": kept}


def rollout_codes(content: Any, *nodes: Any) -> set[str]:
    return codes(device_plugin.judge(device_plugin.of_object(content), *nodes))


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ({}, set()),
        # A50: what is left out is 0
        ({"numberAvailable": None}, {"ds-unavailable"}),
        ({"updatedNumberScheduled": None}, {"ds-outdated-pods"}),
        ({"numberReady": 1, "numberAvailable": None}, {"ds-not-ready"}),
        # A51: an observed generation that is left out is none at all
        ({"observedGeneration": None}, {"ds-status-stale"}),
        # A51: nothing is wanted, so no count is compared
        ({"desiredNumberScheduled": 0, "numberMisscheduled": 3}, {"ds-no-nodes"}),
        ({"desiredNumberScheduled": "2"}, {"ds-no-nodes"}),
        ({"numberReady": True}, {"ds-not-ready"}),
    ],
)
def test_counts(status: dict[str, Any], expected: set[str]) -> None:
    assert rollout_codes(daemonset(**status)) == expected


@pytest.mark.parametrize(
    ("lingjun", "ready", "expected"),
    [
        (None, None, set()),
        (["a"], None, set()),  # whose pods are ready is not known, so nothing is said of it
        (["a"], ["a", "ecs"], set()),  # A52: it may cover other nodes too
        (["a", "b"], ["a"], {"ds-node-uncovered"}),
        ([], [], set()),
    ],
)
def test_coverage(lingjun: Any, ready: Any, expected: set[str]) -> None:
    assert rollout_codes(daemonset(), lingjun, ready) == expected


def test_each_uncovered_node_is_named() -> None:
    found = device_plugin.judge(device_plugin.of_object(daemonset()), ["b", "a", "c"], ["c"])
    assert [reason.subject for reason in found] == ["a", "b"]


@pytest.mark.parametrize(
    "content", [daemonset(), daemonset(numberMisscheduled=1), daemonset(currentNumberScheduled=1)]
)
def test_a_snapshot_of_the_cluster_says_the_same(content: dict[str, Any]) -> None:
    kept = cluster_reading.daemonset(content)
    assert device_plugin.of_snapshot(kept) == device_plugin.of_object(content)


def test_an_older_snapshot_does_not_tell_all_counts() -> None:
    kept = cluster_reading.daemonset(daemonset())
    older = device_plugin.of_snapshot(kept)._replace(scheduled=None, misscheduled=None)
    assert device_plugin.judge(older) == []


# --- the tokens


@pytest.mark.parametrize(
    ("capacity", "allocatable", "expected"),
    [
        ("1k", "1k", set()),
        ("1000", "1k", set()),  # A59: compared as numbers
        (1000, "1e3", set()),
        ("1000m", "1", {"resource-count-unexpected"}),
        ("0.5", "0.5", {"resource-quantity-invalid"}),
        ("-1", "1k", {"resource-quantity-invalid"}),
        (True, "1k", {"resource-quantity-invalid"}),  # A60
        (None, "1k", {"resource-quantity-invalid"}),
        ("0", "5", {"resource-capacity-zero"}),
        ("1k", "0", {"resource-allocatable-zero"}),
        ("1k", "999", {"resource-allocatable-low"}),
        ("1k", "1001", {"resource-allocatable-exceeds-capacity"}),
        ("500", "0", {"resource-allocatable-zero", "resource-count-unexpected"}),
    ],
)
def test_amounts(capacity: Any, allocatable: Any, expected: set[str]) -> None:
    """A55."""
    found = node_resource.judge(LABELS, {"rdma/hca": capacity}, {"rdma/hca": allocatable})
    assert codes(found.reasons) == expected


@pytest.mark.parametrize(
    ("mode", "wanted", "capacity", "expected"),
    [
        ("exclusive", None, "8", set()),
        ("exclusive", None, "999", set()),
        ("exclusive", None, "1k", {"resource-mode-mismatch"}),
        ("exclusive", 1000, "1k", set()),  # A55: a given count wins
        ("exclusive", 8, "4", {"resource-count-unexpected"}),
        ("shared", 4000, "4k", set()),  # A56: one page says 1000 for each NIC
        ("shared", None, "4k", {"resource-count-unexpected"}),
    ],
)
def test_counts_of_tokens(mode: str, wanted: Optional[int], capacity: str, expected: set[str]) -> None:
    held = {"rdma/hca": capacity}
    found = node_resource.judge(LABELS, held, held, rdma_mode=mode, expected=wanted)
    assert codes(found.reasons) == expected


@pytest.mark.parametrize(("value", "known"), [("true", True), ("True", False), ("", False), (None, False)])
def test_a_lingjun_node_is_told_by_the_label(value: Any, known: bool) -> None:
    """A13, A16."""
    assert node_resource.is_lingjun({"alibabacloud.com/lingjun-worker": value}) is known
    assert not node_resource.is_lingjun({"kubernetes.io/hostname": "e01-cn-a1"})


@pytest.mark.parametrize(
    "content", [None, [], {}, {"metadata": 1, "status": []}, {"status": {"capacity": "x"}}]
)
def test_what_is_no_node_is_none(content: Any) -> None:
    assert codes(node_resource.judge_object(content).reasons) == {"node-not-lingjun"}


# --- the network


def bond(*addresses: str, name: str = "bond1", flags: tuple[str, ...] = ()) -> list[dict[str, Any]]:
    return [
        {"name": name, "addresses": [{"address": entry, "flags": list(flags)} for entry in addresses]},
        {"name": name + "p0", "master": name, "rdma_devices": ["mlx5_" + name]},
        {"name": name + "p1", "master": name, "rdma_devices": []},
    ]


def verdict_of(*interfaces: dict[str, Any], **more: Any) -> set[str]:
    told = [fabric_ip.interface_of(entry) for entry in interfaces]
    return codes(fabric_ip.judge(True, interfaces=told, **more).reasons)


@pytest.mark.parametrize(
    ("address", "usable"),
    [
        ("2001:db8::5/64", True),
        ("fd00:10::5/64", True),  # A65: unique-local counts
        ("2001:db8::5", True),
        ("fe80::1/64", False),
        ("febf::1/64", False),
        ("::1/128", False),
        ("::/0", False),
        ("ff02::1/64", False),
        ("::ffff:10.0.0.1/128", False),
        ("10.0.0.1/24", False),
        ("fe80::1%bond1", False),
        ("nonsense", False),
        ("", False),
        (None, False),
    ],
)
def test_usable_addresses(address: Any, usable: bool) -> None:
    found = fabric_ip.interface_of({"name": "bond1", "addresses": [{"address": address}]}).addresses
    assert any(fabric_ip.is_usable(prefix) for prefix in found) is usable


@pytest.mark.parametrize("flag", ["tentative", "dadfailed", "DADFAILED"])
def test_an_address_that_is_not_unique_yet_does_not_count(flag: str) -> None:
    assert verdict_of(*bond("2001:db8::5/64", flags=(flag,))) == {"ipv6-address-missing"}
    assert verdict_of(*bond("2001:db8::5/64", flags=("permanent",))) == set()


def names_of(*interfaces: dict[str, Any]) -> list[str]:
    return [
        entry.name for entry in fabric_ip.uplinks([fabric_ip.interface_of(entry) for entry in interfaces])
    ]


def test_uplinks() -> None:
    """A64, A111: the bond and not its ports; the interface of the VPC never."""
    vpc = {"name": "eth0", "rdma_devices": ["erdma_0"], "addresses": [{"address": "2001:db8::1/64"}]}
    alone = {"name": "eth5", "rdma_devices": ["mlx5_5"]}
    below_a_bridge = [{**bond()[0], "master": "br0"}, *bond()[1:], {"name": "br0"}]
    assert names_of(*bond()) == ["bond1"]
    assert names_of(vpc, alone, *bond()) == ["eth5", "bond1"]
    assert names_of(vpc) == []
    assert names_of(*below_a_bridge) == ["br0"]
    assert names_of({"name": "p0", "master": "away", "rdma_devices": ["mlx5_0"]}) == []
    ring = [{"name": "a", "master": "b", "rdma_devices": ["x"]}, {"name": "b", "master": "a"}]
    assert names_of(*ring) == []


def test_both_sources_are_told() -> None:
    """A67: the cloud says IPv4, and the node shows none either."""
    assert verdict_of(*bond("10.0.0.1/24"), compute_ip_version="IPv4") == {
        "ipv6-cluster-ipv4",
        "ipv6-address-missing",
    }
    assert verdict_of(*bond("2001:db8::5/64"), compute_ip_version="IPv4") == {"ipv6-cluster-ipv4"}
    assert verdict_of(*bond("2001:db8::5/64"), compute_ip_version=" ipv6 ") == set()
    assert codes(fabric_ip.judge(True, compute_ip_version="").reasons) == {"ipv6-unknown"}


def test_one_short_prefix_is_enough() -> None:
    """A66."""
    assert verdict_of(*bond("2001:db8::5/112", "2001:db8:1::5/96")) == set()
    assert verdict_of(*bond("2001:db8::5/112", "fe80::1/64")) == {"ipv6-prefix-too-long"}


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("1.1.5", (1, 1, 5)),
        ("v1.1.2-4ac7a1b-aliyun", (1, 1, 2)),
        ("1.2", (1, 2, 0)),
        ("1.1.10", (1, 1, 10)),
        ("latest", None),
        ("", None),
        (None, None),
    ],
)
def test_versions(text: Any, version: Any) -> None:
    assert fabric_ip.version_of(text) == version


@pytest.mark.parametrize(
    ("version", "mode", "old"),
    [
        ("1.1.4", "exclusive", True),
        ("1.1.5", "exclusive", False),
        ("1.1.10", "exclusive", False),
        ("1.0.9", "shared", True),
        ("1.1.0", "shared", False),
        ("unknown", "exclusive", False),
    ],
)
def test_plugins_that_are_too_old(version: str, mode: str, old: bool) -> None:
    """A3, A67."""
    found = fabric_ip.judge(True, mode, "IPv6", None, version)
    assert codes(found.reasons) == ({"plugin-too-old"} if old else set())


def test_on_the_host_network_nothing_is_asked_of_the_network() -> None:
    assert fabric_ip.judge(False, interfaces=[], plugin_version="1.0.0") == fabric_ip.Verdict(False, ())


def test_interfaces_of_a_snapshot() -> None:
    links = [
        Link("bond1", "bond", addresses=("fe80::1/64", "2001:db8::5/64"), unusable=("2001:db8::5/64",)),
        Link("p0", master="bond1"),
    ]
    told = fabric_ip.interfaces_of(links, ["p0"])
    assert codes(fabric_ip.judge(True, interfaces=told).reasons) == {"ipv6-address-missing"}
    good = fabric_ip.interfaces_of([Link("bond1", "bond", addresses=("2001:db8::5/64",)), links[1]], ["p0"])
    assert fabric_ip.judge(True, interfaces=good).reasons == ()


@pytest.mark.parametrize(
    ("statuses", "expected"),
    [
        ([], "ok"),
        (["warn"], "warn"),
        (["unknown", "fail"], "fail"),
        (["unknown"], "unknown"),
        (["skip"], "skip"),
    ],
)
def test_the_worst_reason_counts(statuses: list[str], expected: str) -> None:
    assert worst([Reason("x", status, "") for status in statuses]) == expected
