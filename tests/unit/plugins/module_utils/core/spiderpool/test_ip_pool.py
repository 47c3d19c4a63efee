# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pools of addresses: what the vectors do not tell apart."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st

from ansible_collections.rdma.k8s.plugins.module_utils.core.spiderpool import ip_pool
from ansible_collections.rdma.k8s.plugins.module_utils.core.spiderpool.issue import Issue, ordered


def pool(name: str = "p", **spec: Any) -> dict[str, Any]:
    good = {"subnet": "10.1.0.0/24", "gateway": "10.1.0.254", "ips": ["10.1.0.1-10.1.0.9"]}
    return {"metadata": {"name": name}, "spec": {**good, **spec}}


def places(found: ip_pool.Verdict) -> list[tuple[str, str]]:
    return [(issue.code, issue.at) for issue in found.issues]


@pytest.mark.parametrize(
    ("ips", "excluded", "count"),
    [
        (["10.1.0.1"], [], 1),
        (["10.1.0.1-10.1.0.9", "10.1.0.5-10.1.0.20"], [], 20),
        (["10.1.0.1-10.1.0.4", "10.1.0.5"], [], 5),
        (["10.1.0.1-10.1.0.9"], ["10.1.0.3-10.1.0.4", "10.1.0.9"], 6),
        (["10.1.0.5-10.1.0.9"], ["10.1.0.1-10.1.0.20"], 0),
        (["10.1.0.5-10.1.0.9"], ["10.1.0.1-10.1.0.5", "10.1.0.30"], 4),
        (["10.1.0.1-10.1.0.3", "10.1.0.7-10.1.0.9"], ["10.1.0.3-10.1.0.7"], 4),
        ("10.1.0.1", None, 0),
        ([], [], 0),
    ],
)
def test_addresses_are_counted_once(ips: Any, excluded: Any, count: int) -> None:
    """S78: what a pool gives is ips without excludeIPs."""
    found = ip_pool.judge(pool(ips=ips, excludeIPs=excluded))
    assert (found.addresses, found.issues) == (count, [])


@pytest.mark.parametrize(
    ("entry", "code"),
    [
        ("10.1.0.1-10.1.0.300", "range-syntax"),
        ("10.1.0.1-", "range-syntax"),
        ("-10.1.0.1", "range-syntax"),
        ("10.1.0.1-fd00::1", "range-syntax"),
        ("fe80::1%a", "range-syntax"),
        ("", "range-syntax"),
        (7, "range-syntax"),
        ("10.1.0.9-10.1.0.1", "range-reversed"),
        ("10.2.0.1", "range-outside-subnet"),
        ("10.1.0.250-10.1.1.3", "range-outside-subnet"),
        ("fd00::1", "range-outside-subnet"),
    ],
)
@pytest.mark.parametrize("key", ["ips", "excludeIPs"])
def test_ranges(entry: Any, code: str, key: str) -> None:
    """S79."""
    assert places(ip_pool.judge(pool(**{key: [entry]}))) == [(code, "spec.%s[0]" % key)]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, []),
        # S76, S77, S92
        ({"subnet": None, "ips": []}, [("subnet-syntax", "spec.subnet")]),
        ({"subnet": "10.1.0.0"}, [("subnet-syntax", "spec.subnet")]),
        ({"ipVersion": 4}, []),
        ({"ipVersion": 6}, [("ipversion-mismatch", "spec.ipVersion")]),
        ({"ipVersion": 5}, [("ipversion-type", "spec.ipVersion")]),
        ({"ipVersion": True}, [("ipversion-type", "spec.ipVersion")]),
        ({"vlan": 5}, [("field-removed", "spec.vlan")]),
        ({"range": []}, [("field-unknown", "spec.range")]),
        ({"podAffinity": {}}, [("pod-affinity-empty", "spec.podAffinity")]),
        ({"podAffinity": {"matchLabels": {"a": "b"}}}, []),
        # S80, S83
        ({"gateway": None}, []),
        ({"gateway": "10.1.0.256"}, [("gateway-syntax", "spec.gateway")]),
        ({"gateway": "fd00::1"}, [("gateway-outside-subnet", "spec.gateway")]),
        ({"gateway": "10.1.0.0"}, [("gateway-not-a-host", "spec.gateway")]),
        ({"gateway": "10.1.0.255"}, [("gateway-not-a-host", "spec.gateway")]),
        (
            {"gateway": "10.1.0.0", "ips": ["10.1.0.0"]},
            [
                ("gateway-in-ips", "spec.gateway"),
                ("gateway-not-a-host", "spec.gateway"),
                ("pool-includes-network-address", "spec.ips"),
            ],
        ),
        (
            {"ips": ["10.1.0.0-10.1.0.9"], "excludeIPs": ["10.1.0.0"]},
            [],
        ),
        ({"subnet": "10.1.0.0/31", "gateway": "10.1.0.0", "ips": ["10.1.0.1"]}, []),
        # S81
        ({"routes": [{"dst": "10.9.0.0/16", "gw": "10.1.0.254"}]}, []),
        ({"routes": [{"dst": "10.9.0.0/16"}]}, [("route-fields", "spec.routes[0]")]),
        ({"routes": [{"dst": "", "gw": "10.1.0.254"}]}, [("route-fields", "spec.routes[0]")]),
        ({"routes": ["10.9.0.0/16"]}, [("route-fields", "spec.routes[0]")]),
        (
            {"routes": [{"dst": "10.9.0.0/16", "gw": "10.1.0.254", "metric": 1}]},
            [("route-fields", "spec.routes[0]")],
        ),
        (
            {"routes": [{"dst": "fd00::/64", "gw": "10.1.0.254"}]},
            [("route-dst-syntax", "spec.routes[0]")],
        ),
        (
            {"routes": [{"dst": "10.9.0.0", "gw": "10.2.0.1"}]},
            [("route-dst-syntax", "spec.routes[0]"), ("route-gw-outside-subnet", "spec.routes[0]")],
        ),
        ({"routes": [{"dst": "10.9.0.0/16", "gw": "gw"}]}, [("route-gw-outside-subnet", "spec.routes[0]")]),
        (
            {"routes": [{"dst": entry, "gw": "10.1.0.254"} for entry in ("10.9.0.0/16", "10.9.1.0/16")]},
            [("route-dst-duplicate", "spec.routes[1]")],
        ),
    ],
)
def test_fields(spec: dict[str, Any], expected: list[tuple[str, str]]) -> None:
    assert places(ip_pool.judge(pool(**spec))) == expected


def test_ipv6_has_no_broadcast_address() -> None:
    """S80; the default route of IPv6 is refused as well (S81)."""
    spec = {"subnet": "fd00::/64", "gateway": "fd00::", "ips": ["fd00::1-fd00::ffff:ffff"]}
    found = ip_pool.judge(pool(routes=[{"dst": "::/0", "gw": "fd00::"}], **spec))
    assert found.addresses == 2**32 - 1
    assert places(found) == [("route-default-dst", "spec.routes[0]")]


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        (pool("p", ips=["10.1.0.1"]), []),  # the pool itself, in an older form
        (pool("q", ips=["10.1.0.10-10.1.0.20"]), []),
        (pool("q", ips=["10.1.0.1-10.1.0.20"], excludeIPs=["10.1.0.1-10.1.0.9"]), []),
        (pool("q", ips=["10.1.0.9"]), ["ips-overlap"]),
        (pool("q", subnet="10.1.0.0/16", ips=[]), ["subnet-overlap"]),
        (pool("q", subnet="10.1.0.7/24", ips=["10.1.0.9"]), ["ips-overlap"]),  # by its network
        (pool("q", subnet="10.2.0.0/24", ips=[]), []),
        (pool("q", subnet="fd00::/64", ips=[]), []),
        (pool("q", subnet="?", ips=["10.1.0.9"]), []),
    ],
)
def test_two_pools(other: Any, expected: list[str]) -> None:
    """S77, S78."""
    assert [issue.code for issue in ip_pool.judge(pool(), [other]).issues] == expected


RANGES = st.lists(
    st.sampled_from(
        ["10.1.0.1-10.1.0.9", "10.1.0.7-10.1.0.30", "10.1.0.20", "10.1.1.4-10.1.1.9", "fd00::5", "?"]
    ),
    max_size=3,
)
POOLS = st.builds(
    pool,
    st.sampled_from("abcd"),
    subnet=st.sampled_from(
        ["10.1.0.0/24", "10.1.0.3/24", "10.1.0.0/16", "10.1.1.0/24", "10.2.0.0/24", "fd00::/64"]
    ),
    ips=RANGES,
    excludeIPs=RANGES,
)


@given(st.lists(POOLS, max_size=8))
def test_many_pools_are_judged_as_each_with_each(pools: list[dict[str, Any]]) -> None:
    """S77, S78: what is found among many is what is found between two."""
    for mine, judged in zip(pools, ip_pool.judge_all(pools, pools)):
        alone: list[Issue] = ip_pool.judge(mine).issues
        pairs = [issue for other in pools for issue in ip_pool.judge(mine, [other]).issues]
        assert judged.issues == ordered([*alone, *pairs])


def test_need_and_families() -> None:
    """S77: a family that is not enabled; the wanted number of pods is compared with what is given."""
    assert places(ip_pool.judge(pool(), need=9)) == []
    assert places(ip_pool.judge(pool(), need=10)) == [("pool-too-small", "spec.ips")]
    assert places(ip_pool.judge(pool(), families=[6])) == [("ip-family-disabled", "spec.subnet")]
    assert places(ip_pool.judge({})) == [("subnet-syntax", "spec.subnet")]
