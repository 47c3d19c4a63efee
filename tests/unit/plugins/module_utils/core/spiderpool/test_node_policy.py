# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Policies of the SR-IOV operator: what the vectors do not tell apart."""

from __future__ import annotations

from typing import Any, Optional

import pytest
from hypothesis import given, strategies as st

from ansible_collections.rdma.k8s.plugins.module_utils.core.spiderpool import node_policy, versions
from ansible_collections.rdma.k8s.plugins.module_utils.core.spiderpool.issue import Issue, is_ok, ordered

NIC = {"name": "ens1", "pciAddress": "0000:86:00.0", "vendor": "15b3", "deviceID": "1017", "totalvfs": 16}
INTEL = {"name": "ens9", "pciAddress": "0000:3b:00.0", "vendor": "8086", "deviceID": "158b", "totalvfs": 64}
SUPPORTED = {"15b3": ["1017"], "8086": ["158b"]}


def node(*nics: dict[str, Any], name: str = "w1", **labels: str) -> node_policy.Node:
    return node_policy.node_of(
        {"name": name, "labels": {"rdma": "y", **labels}, "interfaces": list(nics) or [NIC]}
    )


def policy(selector: Any = None, name: str = "mine", where: Optional[str] = "spiderpool", **spec: Any) -> Any:
    good = {"resourceName": "gpu1", "numVfs": 8, "nodeSelector": {"rdma": "y"}, "isRdma": True}
    metadata = {"name": name} if where is None else {"name": name, "namespace": where}
    chosen = {"pfNames": ["ens1"]} if selector is None else selector
    return {"metadata": metadata, "spec": {**good, "nicSelector": chosen, **spec}}


def judged(one: Any, *arguments: Any, **options: Any) -> list[Issue]:
    (found,) = node_policy.judge_all([one], *arguments, **options)
    return found


def codes(*arguments: Any, **options: Any) -> list[str]:
    options.setdefault("supported", SUPPORTED)
    return [issue.code for issue in judged(*arguments, **options)]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, []),
        # S101: bounds and choices
        ({"priority": 99}, []),
        ({"priority": 100}, ["priority-range"]),
        ({"priority": -1}, ["priority-range"]),
        ({"mtu": 0}, ["mtu-range"]),
        ({"mtu": True}, ["mtu-range"]),
        ({"mtu": 9000}, []),
        ({"deviceType": "dpdk"}, ["devicetype-invalid"]),
        ({"linkType": "InfiniBand"}, ["linktype-invalid"]),
        ({"eSwitchMode": "off"}, ["eswitchmode-invalid"]),
        # S107
        ({"numVfs": None}, ["numvfs-zero"]),
        ({"numVfs": -1}, ["numvfs-invalid"]),
        ({"numVfs": "8"}, ["numvfs-invalid"]),
        # S106, and S251: an empty link type
        ({"eSwitchMode": "switchdev", "linkType": "IB"}, ["switchdev-needs-eth"]),
        ({"eSwitchMode": "switchdev", "linkType": "ETH"}, []),
        ({"eSwitchMode": "switchdev", "linkType": ""}, []),
        ({"deviceType": "vfio-pci", "isRdma": False}, []),
        ({"linkType": "IB", "isRdma": False}, ["ib-requires-rdma"]),
        # S103
        ({"resourceName": ""}, ["resource-name-invalid"]),
        ({"resourceName": "gpu1\n"}, ["resource-name-invalid"]),
        ({"resourceName": 7}, ["resource-name-invalid"]),
        ({"resourceName": "gpu_1"}, []),
    ],
)
def test_fields(spec: dict[str, Any], expected: list[str]) -> None:
    assert codes(policy(**spec)) == expected


@pytest.mark.parametrize(
    ("name", "options", "good"),
    [
        ("a-b", {}, False),
        ("a-b", {"operator_version": "v1.6.0"}, False),
        ("a-b", {"operator_version": "1.7.0"}, True),
        ("a-b", {"operator_version": "1.7.0", "hyphen_allowed": False}, False),
        ("a-b", {"operator_version": "unknown"}, False),
        ("-a", {"hyphen_allowed": True}, False),
        ("a" * 63, {"hyphen_allowed": True}, True),
        ("a" * 64, {"hyphen_allowed": True}, False),
    ],
)
def test_hyphens(name: str, options: dict[str, Any], good: bool) -> None:
    """S103."""
    assert (codes(policy(resourceName=name), **options) == []) == good


@pytest.mark.parametrize(
    ("version", "expected"),
    [("1.3.0", ["ib-requires-rdma"]), ("1.4.0", []), ("v1.6", []), ("main", ["ib-requires-rdma"])],
)
def test_a_newer_webhook_corrects_it(version: str, expected: list[str]) -> None:
    """S106."""
    assert codes(policy(linkType="ib", isRdma=False), operator_version=version) == expected


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ({"vendor": "15b3"}, []),
        ({"deviceID": "158b"}, []),
        ({"vendor": "8086", "deviceID": "1017"}, [("device-unsupported", "spec.nicSelector.deviceID")]),
        ({"vendor": "beef", "deviceID": "1017"}, [("device-unsupported", "spec.nicSelector.vendor")]),
        ({"deviceID": "1023"}, [("device-unsupported", "spec.nicSelector.deviceID")]),
        ({"netFilter": "openstack/NetworkID:1"}, []),
        (
            {"netFilter": "x", "pfNames": ["ens1"]},
            [("netfilter-not-alone", "spec.nicSelector.netFilter")],
        ),
        ({"pfNames": [], "vendor": ""}, [("selector-empty", "spec.nicSelector")]),
        ("ens1", [("selector-empty", "spec.nicSelector")]),
    ],
)
def test_selectors(selector: Any, expected: list[tuple[str, str]]) -> None:
    """S100, S104."""
    found = judged(policy(selector), supported=SUPPORTED)
    assert [(issue.code, issue.at) for issue in found] == expected


def test_the_list_of_the_chart_is_taken_when_none_is_given() -> None:
    """S100."""
    assert codes(policy({"vendor": "15b3", "deviceID": "1021"}), supported=None) == []
    assert codes(policy({"vendor": "8086"}), supported=None) == ["device-unsupported"]


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ("ens1#0-7", []),
        ("ens1#7-7", []),
        ("ens1#0-8", ["pf-range-exceeds-numvfs"]),
        ("ens1#3-1", ["pf-range-reversed"]),
        ("ens1#9-8", ["pf-range-exceeds-numvfs", "pf-range-reversed"]),
        ("ens1#1", ["pf-range-syntax"]),
        ("ens1#a-b", ["pf-range-syntax"]),
        ("ens1#1-2#3-4", ["pf-range-syntax"]),
        ("#1-2", ["pf-range-syntax"]),
        ("", ["pf-range-syntax"]),
        (5, ["pf-range-syntax"]),
    ],
)
def test_parts_of_a_pf(entry: Any, expected: list[str]) -> None:
    """S105."""
    assert codes(policy({"pfNames": [entry]})) == expected
    assert "pf-range-exceeds-numvfs" not in codes(policy({"pfNames": [entry]}, numVfs="many"))


@pytest.mark.parametrize(
    ("nic", "spec", "expected"),
    [
        (NIC, {"numVfs": 16}, []),
        (NIC, {"numVfs": 17}, ["numvfs-needs-firmware"]),
        (NIC, {"numVfs": 129}, ["numvfs-exceeds-vendor-max"]),
        (NIC, {"numVfs": "x"}, ["numvfs-invalid"]),
        ({**NIC, "totalvfs": None}, {"numVfs": 99}, []),
        # S110
        ({**NIC, "numVfs": 4}, {"externallyManaged": True}, ["external-numvfs-exceeds-pf"]),
        ({**NIC, "numVfs": 8, "mtu": 1500}, {"externallyManaged": True, "mtu": 1500}, []),
        ({**NIC, "mtu": 1500}, {"externallyManaged": True, "mtu": 9000}, ["external-mtu-exceeds-pf"]),
        (
            {**NIC, "linkType": "IB"},
            {"externallyManaged": True, "linkType": "eth"},
            ["external-linktype-mismatch"],
        ),
        ({**NIC, "linkType": "ETH"}, {"externallyManaged": True, "linkType": "eth"}, []),
        # S112
        ({**NIC, "linkType": "IB"}, {}, ["ib-needs-linktype"]),
        ({**NIC, "linkType": "IB"}, {"linkType": "ib"}, []),
        # S108
        ({**NIC, "name": "ens2"}, {}, ["nic-none-selected"]),
        ({**NIC, "deviceID": "1023"}, {}, ["nic-none-selected"]),
        (NIC, {"nodeSelector": {"rdma": "y", "gpu": "y"}}, ["node-none-selected"]),
        (NIC, {"nodeSelector": None}, []),
    ],
)
def test_nics(nic: dict[str, Any], spec: dict[str, Any], expected: list[str]) -> None:
    assert codes(policy(**spec), [node(nic)]) == expected


def test_one_finding_however_many_nics() -> None:
    """S107: two NICs of different size are one thing that is wrong."""
    nics = [INTEL, {**INTEL, "name": "ens8", "totalvfs": 32}]
    assert codes(policy({"vendor": "8086"}, numVfs=65), [node(*nics)]) == ["numvfs-exceeds-totalvfs"]


def test_the_limit_of_the_vendor_needs_no_node() -> None:
    """S107."""
    assert codes(policy({"vendor": "15b3"}, numVfs=129)) == ["numvfs-exceeds-vendor-max"]
    assert codes(policy({"vendor": "15b3"}, numVfs=128)) == []


NODES = [node(NIC, INTEL)]


@pytest.mark.parametrize(
    ("mine", "other", "nodes", "expected"),
    [
        # S109: parts that do not meet are no conflict
        ({"pfNames": ["ens1#0-3"]}, {"pfNames": ["ens1#4-7"]}, NODES, []),
        ({"pfNames": ["ens1#0-4"]}, {"pfNames": ["ens1#4-7"]}, NODES, ["pf-range-overlap"]),
        ({"pfNames": ["ens1"]}, {"pfNames": ["ens1"]}, NODES, ["pf-range-overlap"]),
        ({"pfNames": ["ens1"]}, {"pfNames": ["ens1#4-7"]}, NODES, ["pf-whole-and-partition"]),
        ({"pfNames": ["ens1#4-7"]}, {"pfNames": ["ens1"]}, NODES, ["pf-whole-and-partition"]),
        # S109: admission stops at the first pair that does not meet
        (
            {"pfNames": ["ens1#0-3", "ens9#0-3"]},
            {"pfNames": ["ens1#4-7", "ens9#3-7"]},
            NODES,
            ["pf-range-overlap"],
        ),
        ({"pfNames": ["ens1#0-3"]}, {"pfNames": ["ens1#x"]}, NODES, ["pf-selected-twice"]),
        # S109: admission does not compare these
        ({"pfNames": ["ens1"]}, {"rootDevices": ["0000:86:00.0"]}, NODES, ["pf-selected-twice"]),
        ({"vendor": "15b3"}, {"deviceID": "1017"}, NODES, ["pf-selected-twice"]),
        ({"vendor": "15b3"}, {"vendor": "8086"}, NODES, []),
        ({"pfNames": ["ens1"]}, {"rootDevices": ["0000:86:00.0"]}, None, []),
        ({"rootDevices": ["0000:86:00.0"]}, {"rootDevices": ["0000:86:00.0"]}, None, ["rootdevice-overlap"]),
    ],
)
def test_two_policies(mine: Any, other: Any, nodes: Any, expected: list[str]) -> None:
    found = judged(policy(mine), nodes, [policy(other, "theirs")], supported=SUPPORTED)
    assert [issue.code for issue in found] == expected
    assert [dict(issue.extra) for issue in found] == [{"other": "theirs"}] * len(expected)


@pytest.mark.parametrize(
    "other",
    [
        policy(),  # the same object
        policy(where="kube-system", name="theirs"),  # S102: it does not count
        policy(name="default"),
        policy(name="theirs", nodeSelector={"rdma": "n"}),  # no common node
    ],
)
@pytest.mark.parametrize("nodes", [None, NODES])
def test_policies_that_are_no_rivals(other: Any, nodes: Any) -> None:
    assert codes(policy(), nodes, [other]) == []


def test_a_policy_without_namespace_is_in_that_of_the_operator() -> None:
    """S102."""
    assert codes(policy(where=None), None, [policy(name="theirs", where=None)]) == ["pf-range-overlap"]
    assert codes(policy(where="sriov"), operator_namespace="sriov") == []
    assert is_ok(judged(policy(where="default"), supported=SUPPORTED))


def test_nodes_without_common_nic_are_no_conflict() -> None:
    """S109: a NIC of a node that only one of them selects."""
    nodes = [node(NIC, a="y"), node(NIC, name="w2", b="y"), node(INTEL, name="w3", a="y", b="y")]
    mine, other = policy({"vendor": "15b3"}, nodeSelector={"a": "y"}), {"deviceID": "1017"}
    assert codes(mine, nodes, [policy(other, "theirs", nodeSelector={"b": "y"})]) == []


SELECTORS = st.fixed_dictionaries(
    {},
    optional={
        "rootDevices": st.lists(st.sampled_from(["0000:86:00.0", "0000:3b:00.0", 7]), max_size=2),
        "pfNames": st.lists(st.sampled_from(["ens1", "ens1#0-3", "ens1#3-5", "ens9", "#"]), max_size=2),
        "vendor": st.sampled_from(["15b3", "8086"]),
    },
)
POLICIES = st.builds(
    policy,
    SELECTORS,
    name=st.sampled_from(["a", "b", "c", "default"]),
    where=st.sampled_from([None, "spiderpool", "default"]),
    nodeSelector=st.dictionaries(st.sampled_from(["rdma", "rack"]), st.sampled_from(["y", "n", 1])),
)
RACKS = [node(NIC, INTEL), node(NIC, name="w2", rack="y"), node(INTEL, name="w3", rack="n")]


@given(st.lists(POLICIES, max_size=8), st.sampled_from([None, RACKS]))
def test_many_policies_are_judged_as_each_with_each(
    policies: list[dict[str, Any]], nodes: Optional[list[node_policy.Node]]
) -> None:
    """S109: what is found among many is what is found between two."""
    for mine, among_all in zip(
        policies, node_policy.judge_all(policies, nodes, policies, supported=SUPPORTED)
    ):
        pairs = [issue for other in policies for issue in judged(mine, nodes, [other], supported=SUPPORTED)]
        assert among_all == ordered(pairs)


def test_nodes_that_are_selected_for_nothing() -> None:
    """S244."""
    nodes = [node(NIC), node(INTEL, name="w2"), node(name="w3", rdma="n")]
    assert node_policy.too_broad(policy(), nodes) == ["w2"]


@pytest.mark.parametrize(
    ("lower", "higher"),
    [
        ("1.2.0-rc1", "v1.2.0"),
        ("1.2.0-rc2", "1.2.0-rc10"),
        ("1.2.0-rc.2", "1.2.0-rc3"),
        ("1.2.9", "1.10"),
        ("1.2", "1.2.1+build"),
    ],
)
def test_versions_are_in_order(lower: str, higher: str) -> None:
    first, second = versions.find(lower), versions.find(higher)
    assert first is not None
    assert second is not None
    assert first < second


@pytest.mark.parametrize("value", ["main", "", None, 1.2, "1", "1.2.3.4", "1.2.3 "])
def test_what_is_no_version(value: Any) -> None:
    assert versions.find(value) is None
