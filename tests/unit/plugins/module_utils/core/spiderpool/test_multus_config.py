# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Configs of further networks: what the vectors do not tell apart."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.core.spiderpool import multus_config
from ansible_collections.rdma.k8s.plugins.module_utils.core.spiderpool.issue import Issue
from ansible_collections.rdma.k8s.plugins.module_utils.core.spiderpool.multus_config import Policy

POOLS = ["gpu1-v4", "gpu1-v6"]
POLICIES = [Policy("gpu1", "eth", 4200), Policy("ib1", "ib")]


def sriov(**more: Any) -> dict[str, Any]:
    part = {"resourceName": "spidernet.io/gpu1", "rdmaIsolation": True, "ippools": {"ipv4": ["gpu1-v4"]}}
    return {"cniType": "sriov", "sriov": {**part, **more}}


def infiniband(**more: Any) -> dict[str, Any]:
    return {"cniType": "ib-sriov", "ibsriov": {"resourceName": "spidernet.io/ib1", **more}}


def judged(one: Any, *arguments: Any, **options: Any) -> list[Issue]:
    (found,) = multus_config.judge_all([one], *arguments, **options)
    return found


def places(spec: Any, annotations: Any = None, **options: Any) -> list[tuple[str, str]]:
    config = {"metadata": {"name": "c", "annotations": annotations}, "spec": spec}
    options.setdefault("netns_mode", "exclusive")
    return [(issue.code, issue.at) for issue in judged(config, POOLS, POLICIES, **options)]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (sriov(), []),
        (infiniband(), []),
        # S84
        ({}, [("subconfig-missing", "spec.customCNI")]),
        ({"customCNI": "{}"}, []),
        ({"cniType": "", "customCNI": "{}"}, []),
        ({"cniType": "calico"}, [("cnitype-invalid", "spec.cniType")]),
        ({"cniType": 5}, [("cnitype-invalid", "spec.cniType")]),
        (
            {"cniType": "ib-sriov", "sriov": {}},
            [("subconfig-extra", "spec.sriov"), ("subconfig-missing", "spec.ibsriov")],
        ),
        ({**sriov(), "ibsriov": None}, []),
        ({**sriov(), "enableCoordinator": True, "coordinator": {}}, []),
        ({"cniType": "sriov", "sriov": "gpu1"}, []),  # of another type: left to the API server
        # S91, S92
        (sriov(matchMasterSubnet=True), [("field-unknown", "spec.sriov.matchMasterSubnet")]),
        (sriov(ippools={"matchMasterSubnet": True}), []),
        (sriov(ippools={"v4": []}), [("field-unknown", "spec.sriov.ippools.v4")]),
        (infiniband(ibKubernetesEnabled=True), [("field-removed", "spec.ibsriov.ibKubernetesEnabled")]),
        (infiniband(vlanID=5), [("field-unknown", "spec.ibsriov.vlanID")]),
        # S85, S86
        (sriov(vlanID=0), []),
        (sriov(vlanID=4094), []),
        (sriov(vlanID=4095), [("vlan-range", "spec.sriov.vlanID")]),
        (sriov(vlanID=-1), [("vlan-range", "spec.sriov.vlanID")]),
        (sriov(vlanID="5"), [("vlan-range", "spec.sriov.vlanID")]),
        ({"cniType": "macvlan", "macvlan": {"vlanID": 4095}}, [("vlan-range", "spec.macvlan.vlanID")]),
        (sriov(mtu=0), []),
        (sriov(mtu=-1), [("mtu-range", "spec.sriov.mtu")]),
        (sriov(mtu=4201), [("mtu-exceeds-pf", "spec.sriov.mtu")]),
        (sriov(minTxRateMbps=1, maxTxRateMbps=1), []),
        (sriov(minTxRateMbps=2, maxTxRateMbps=1), [("txrate-order", "spec.sriov.minTxRateMbps")]),
        (infiniband(linkState="auto"), []),
        (infiniband(linkState="up"), [("linkstate-invalid", "spec.ibsriov.linkState")]),
        # S88, S93
        (sriov(ippools={"ipv6": ["gpu1-v6", "gone"]}), [("ippool-missing", "spec.sriov.ippools.ipv6[1]")]),
        (sriov(ippools={"ipv4": ["gpu1-v?", "gpu[1-3]-v4", "gpu[^2]-*"]}), []),
        (
            sriov(ippools={"ipv4": ["gpu[^1]-*"]}),
            [("ippool-wildcard-no-match", "spec.sriov.ippools.ipv4[0]")],
        ),
        (sriov(ippools={"ipv4": [7]}), [("ippool-missing", "spec.sriov.ippools.ipv4[0]")]),
        (sriov(ippools={"ipv4": "gpu1-v4"}), []),
        (
            {"cniType": "macvlan", "macvlan": {"ippools": {"ipv4": ["x"]}}},
            [("ippool-missing", "spec.macvlan.ippools.ipv4[0]")],
        ),
        # S88, S119
        (sriov(resourceName=None), [("resource-name-missing", "spec.sriov.resourceName")]),
        (sriov(resourceName="other.io/gpu1"), [("resource-unknown", "spec.sriov.resourceName")]),
        # S75
        (infiniband(resourceName="spidernet.io/gpu1"), [("cni-linktype-mismatch", "spec.cniType")]),
        # S87
        (sriov(rdmaIsolation=False), [("exclusive-without-isolation", "spec.sriov.rdmaIsolation")]),
        (infiniband(rdmaIsolation=False), [("exclusive-without-isolation", "spec.ibsriov.rdmaIsolation")]),
        # S150, S153
        (infiniband(pkey="0x7fff", enableIbKubernetes=True), []),
        (infiniband(pkey="0x0", enableIbKubernetes=True), []),
        (infiniband(pkey="0x8000", enableIbKubernetes=True), [("pkey-format", "spec.ibsriov.pkey")]),
        (infiniband(pkey="1000", enableIbKubernetes=True), [("pkey-format", "spec.ibsriov.pkey")]),
        (infiniband(pkey="0xzz", enableIbKubernetes=True), [("pkey-format", "spec.ibsriov.pkey")]),
        (infiniband(pkey=True, enableIbKubernetes=True), [("pkey-type", "spec.ibsriov.pkey")]),
        (infiniband(pkey="0x1"), [("pkey-not-enforced", "spec.ibsriov.enableIbKubernetes")]),
        (sriov(pkey="0x8000"), [("field-unknown", "spec.sriov.pkey")]),
        # S90, S218
        (
            {**infiniband(), "chainCNIJsonData": ['{"type": "tuning"}', '{"type": "rdma"}']},
            [("rdma-behind-ib-sriov", "spec.chainCNIJsonData[1]")],
        ),
        ({**sriov(), "chainCNIJsonData": ['{"type": "rdma"}']}, []),
        (
            {**sriov(), "chainCNIJsonData": ["rdma", {"type": "rdma"}, "[]"]},
            [("chain-syntax", "spec.chainCNIJsonData[%d]" % at) for at in range(3)],
        ),
    ],
)
def test_specifications(spec: dict[str, Any], expected: list[tuple[str, str]]) -> None:
    assert places(spec) == expected


@pytest.mark.parametrize(
    ("version", "field", "code"),
    [
        ("0.9.5", "mtu", "field-unknown"),
        ("1.0.0", "mtu", "field-unknown"),
        ("v1.0.2", "mtu", ""),
        ("1.0.3", "mtu", ""),
        ("1.0.4", "mtu", "field-unknown"),
        ("1.1.9", "mtu", "field-unknown"),
        ("1.2.0-rc1", "mtu", ""),
        ("main", "mtu", ""),
        ("0.9.0", "enableRdma", ""),
        ("1.0.0-rc4", "enableRdma", ""),
        ("1.0.0-rc5", "enableRdma", "field-removed"),
        ("1.0.0", "enableRdma", "field-removed"),
    ],
)
def test_fields_by_version(version: str, field: str, code: str) -> None:
    """S91."""
    spec = sriov(**{field: 1500 if field == "mtu" else True})
    found = places(spec, spiderpool_version=version, netns_mode=None)
    assert [told for told, at in found if at == "spec.sriov.%s" % field] == ([code] if code else [])


def test_old_names_are_judged_by_their_meaning() -> None:
    """S87, S91, S153: before 1.0.0 isolation and ib-kubernetes had other names."""
    old = {"cniType": "sriov", "sriov": {"resourceName": "spidernet.io/gpu1", "enableRdma": True}}
    assert places(old, spiderpool_version="0.9.0") == []
    old["sriov"]["enableRdma"] = False
    assert places(old, spiderpool_version="0.9.0") == [
        ("exclusive-without-isolation", "spec.sriov.enableRdma")
    ]
    pkey = infiniband(pkey="0x1", ibKubernetesEnabled=True)
    assert places(pkey, spiderpool_version="0.9.0") == []
    assert places(sriov(), spiderpool_version="0.9.0") == [
        ("exclusive-without-isolation", "spec.sriov.enableRdma"),
        ("field-unknown", "spec.sriov.rdmaIsolation"),
    ]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (sriov(rdmaIsolation=False), []),
        (sriov(rdmaIsolation=None), []),
        (infiniband(), [("isolation-needs-exclusive", "spec.ibsriov.rdmaIsolation")]),
        (infiniband(rdmaIsolation=False), []),
        ({"cniType": "ipvlan", "ipvlan": {"rdmaResourceName": "spidernet.io/shared"}}, []),
    ],
)
def test_shared_mode(spec: Any, expected: list[tuple[str, str]]) -> None:
    """S86, S87, S171: isolation needs exclusive mode, and shared mode without it is right."""
    assert places(spec, netns_mode="shared") == expected


def test_what_is_not_known_is_not_judged() -> None:
    """S88: neither pools, nor policies, nor the mode are given."""
    spec = sriov(ippools={"ipv4": ["x"]}, resourceName="a/b", rdmaIsolation=False)
    assert judged({"spec": spec}) == []
    assert judged({"spec": infiniband()}, [], [Policy("ib1")]) == []


def test_another_prefix() -> None:
    """S95."""
    spec = sriov(resourceName="acme.com/gpu1")
    assert places(spec, resource_prefix="acme.com") == []


def test_the_lowest_pf_decides() -> None:
    """S36: a resource of two policies."""
    policies = [Policy("gpu1", "eth", 9000), Policy("gpu1", "", 4200), Policy("gpu1")]
    found = judged({"spec": sriov(mtu=5000)}, policies=policies)
    assert [issue.code for issue in found] == ["mtu-exceeds-pf"]


@pytest.mark.parametrize(("version", "bad"), [("0.4.0", False), ("1.1.0", True), (None, False)])
def test_cni_version(version: Any, bad: bool) -> None:
    """S90."""
    annotations = {"multus.spidernet.io/cni-version": version}
    assert places(sriov(), annotations) == ([("cni-version-invalid", "metadata.annotations")] if bad else [])


def test_policies_from_plain_data() -> None:
    content = {"resourceName": "a", "linkType": "IB", "pfMtu": "9000"}
    assert multus_config.policy_of(content) == Policy("a", "ib", None)
