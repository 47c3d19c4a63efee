# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the webhook makes of a pod: what the vectors do not tell apart."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.core.spiderpool import injection
from ansible_collections.rdma.k8s.plugins.module_utils.core.spiderpool.injection import Config

RDMA, NETWORK = "cni.spidernet.io/rdma-resource-inject", "cni.spidernet.io/network-resource-inject"


def config(name: str = "a", cni: str = "sriov", resource: str = "r/1", **more: Any) -> Config:
    found = Config("sp", name, cni, resource, ("pool",), {RDMA: "x", NETWORK: "y"})
    return found._replace(**more)


def codes(annotations: Any, configs: Any, limits: Any = ({},), **options: Any) -> list[str]:
    return [issue.code for issue in injection.judge(annotations, limits, configs, **options).issues]


@pytest.mark.parametrize(
    ("pod", "namespace", "expected"),
    [
        ({}, None, ("", None)),
        ({RDMA: "x"}, {RDMA: "z"}, (RDMA, "x")),
        ({NETWORK: "y"}, {RDMA: "z"}, (RDMA, "z")),
        ({NETWORK: "y"}, {NETWORK: "z"}, (NETWORK, "y")),
        ({}, {NETWORK: "z"}, (NETWORK, "z")),
        ({RDMA: "x", NETWORK: "y"}, {}, (RDMA, "x")),
    ],
)
def test_the_annotation_that_counts(pod: Any, namespace: Any, expected: Any) -> None:
    """S159."""
    assert injection.asked(pod, namespace) == expected


def test_a_pod_that_asks_for_nothing() -> None:
    found = injection.judge({"k8s.v1.cni.cncf.io/networks": "a/b"}, [{}], [config()], "kube-system")
    assert found == injection.Injection(False, None, {}, [])


@pytest.mark.parametrize(
    ("namespace", "options", "skipped"),
    [
        ("ai", {}, False),
        ("kube-system", {}, True),
        ("kube-system", {"excluded": []}, False),
        ("ai", {"included": ["ai"]}, False),
        ("web", {"included": ["ai"]}, True),
        ("ai", {"included": ["ai"], "excluded": ["ai"]}, True),
        ("", {"included": ["ai"]}, False),
    ],
)
def test_namespaces(namespace: str, options: Any, skipped: bool) -> None:
    """S166, S167."""
    found = injection.judge({RDMA: "x"}, [{}], [config()], namespace, **options)
    assert found.injects != skipped
    assert [issue.code for issue in found.issues] == (["inject-namespace-skipped"] if skipped else [])


@pytest.mark.parametrize(
    ("key", "entry", "expected"),
    [
        # S161: for RDMA a resource and a pool
        (RDMA, config(pools=()), ["inject-ippools-missing"]),
        (RDMA, config(resource=""), ["inject-resource-missing"]),
        (
            RDMA,
            config(cni="macvlan", resource="", pools=()),
            ["inject-ippools-missing", "inject-resource-missing"],
        ),
        (RDMA, config(cni="ipoib", resource=""), []),
        # S161: otherwise a pool only with a resource
        (NETWORK, config(resource="", pools=()), []),
        (NETWORK, config(pools=()), ["inject-ippools-missing"]),
        (RDMA, config(cni="ovs"), ["inject-cnitype-unsupported"]),
        (NETWORK, config(cni="custom"), ["inject-cnitype-unsupported"]),
        (NETWORK, config(cni="calico"), ["inject-cnitype-unsupported"]),
    ],
)
def test_configs(key: str, entry: Config, expected: list[str]) -> None:
    found = injection.judge({key: entry.annotations[key]}, [{}], [entry])
    assert [issue.code for issue in found.issues] == expected
    assert found.injects == (not expected)
    assert all(issue.at == "sp/a" for issue in found.issues)


@pytest.mark.parametrize("value", ["two words", "-a", "a" * 64, 7])
def test_values_that_no_label_can_have(value: Any) -> None:
    """S160."""
    assert codes({RDMA: value}, [config(annotations={RDMA: value})]) == ["inject-value-invalid"]


def test_the_order_is_that_of_texts() -> None:
    """S163."""
    configs = [
        config("c", resource="r/gpu2"),
        config("b", resource="r/gpu10"),
        config("z", "ib-sriov", "r/zz"),
        config("y", "macvlan", "r/s", master="ens3"),
        config("a", resource="r/gpu10"),
    ]
    found = injection.judge({RDMA: "x"}, [{}], configs)
    assert found.networks == "sp/z,sp/y,sp/a,sp/b,sp/c"


@pytest.mark.parametrize(
    ("limits", "added", "expected"),
    [
        ([{}], {"r/1": 1}, ["inject-resource-shared"]),
        ([{}, {"r/1": "1"}], {}, ["inject-resource-shared"]),
        ([{}, {"r/1": "2"}], {}, []),
        ([{"r/1": 1}, {"r/1": 1}], {}, []),
        ([{"r/1": "many"}], {}, ["inject-resource-shared"]),
        ([], {}, ["inject-resource-shared"]),
    ],
)
def test_resources(limits: Any, added: Any, expected: list[str]) -> None:
    """S164: two networks of one resource need two devices."""
    found = injection.judge({RDMA: "x"}, limits, [config("a"), config("b")])
    assert found.limits == added
    assert [issue.code for issue in found.issues] == expected


def test_a_shared_resource_serves_many_networks() -> None:
    """S164: only a virtual function belongs to one network."""
    assert codes({RDMA: "x"}, [config("a", "macvlan"), config("b", "macvlan")]) == []


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({"k8s.v1.cni.cncf.io/networks": ""}, []),
        ({"k8s.v1.cni.cncf.io/networks": "sp/a"}, ["inject-networks-overwritten"]),
        ({"ipam.spidernet.io/ippool": "{}"}, ["inject-ippool-annotation"]),
        (
            {"ipam.spidernet.io/ippool": "{}", "ipam.spidernet.io/ippools": "[]"},
            ["inject-ippool-annotation"],
        ),
    ],
)
def test_what_the_user_wrote(more: dict[str, str], expected: list[str]) -> None:
    """S162, S165."""
    assert codes({RDMA: "x", **more}, [config()]) == expected


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (
            {"cniType": "sriov", "sriov": {"resourceName": "r/1", "ippools": {"ipv4": ["a"], "ipv6": ["b"]}}},
            ("sriov", "r/1", ("a", "b"), ""),
        ),
        (
            {
                "cniType": "macvlan",
                "macvlan": {"master": ["e1"], "bond": {"name": "b0"}, "rdmaResourceName": "r/s"},
            },
            ("macvlan", "r/s", (), "e1"),
        ),
        (
            {"cniType": "ipvlan", "ipvlan": {"master": ["e1", "e2"], "bond": {"name": "b0"}}},
            ("ipvlan", "", (), "b0"),
        ),
        ({"cniType": "vlan", "vlan": {"master": ["e1", "e2"]}}, ("vlan", "", (), "e1")),
        ({"cniType": "sriov", "ippools": {"ipv4": ["a"]}}, ("sriov", "", (), "")),
        ({"customCNI": "{}"}, ("custom", "", (), "")),
    ],
)
def test_configs_of_the_api(spec: Any, expected: Any) -> None:
    """S84, S163: the interface is the bond of several, the pools are those of the part."""
    metadata = {"name": "a", "namespace": "sp", "annotations": {RDMA: "x"}}
    found = injection.config_of({"metadata": metadata, "spec": spec})
    assert (found.cni, found.resource, found.pools, found.master) == expected
    assert (found.ref, found.annotations) == ("sp/a", {RDMA: "x"})
