# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Both real SDKs against a service on loopback that checks every signature. Nothing else is contacted."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.cloud import alibaba
from ansible_collections.rdma.k8s.plugins.modules import ack_fabric_info
from ansible_collections.rdma.k8s.tests.support import module_run
from ansible_collections.rdma.k8s.tests.support.fake_ack import (
    CLUSTER,
    DROPPED_BEFORE,
    KEY_ID,
    KEY_SECRET,
    TOKEN,
    FakeAck,
    Refuse,
)

FIRST, SECOND = "i110000000000000000001", "i110000000000000000002"


def pool(number: int, lingjun: str = "", kind: str = "lingjun") -> dict[str, Any]:
    about = {"nodepool_id": "np%032d" % number, "name": "pool-%d" % number, "type": kind}
    group = {"eflo_node_group": {"cluster_id": lingjun, "group_id": "ng-%d" % number}} if lingjun else {}
    return {"nodepool_info": about, "scaling_group": {"desired_size": 2}, **group}


@pytest.fixture
def cloud() -> Iterator[FakeAck]:
    with FakeAck() as service:
        service.pools = [pool(1, kind="ess"), pool(2, FIRST)]
        service.lingjun = {FIRST: {"ClusterId": FIRST, "ComputingIpVersion": "IPv6"}}
        yield service


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alibaba, "BASE_WAIT", 0.02)
    for name in list(os.environ):
        if name.startswith(("ALIBABA", "ALICLOUD")) or name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)


def options(cloud: FakeAck) -> dict[str, Any]:
    return {
        "cluster_id": CLUSTER,
        "endpoint": cloud.endpoint,
        "eflo_endpoint": cloud.endpoint,
        "protocol": "http",
        "access_key_id": KEY_ID,
        "access_key_secret": KEY_SECRET,
        "security_token": TOKEN,
        "timeout": 5,
        "attempts": 3,
    }


def good(cloud: FakeAck) -> dict[str, Any]:
    result = module_run.good(ack_fabric_info, **options(cloud))
    assert cloud.refused == []
    assert [text for text in (KEY_ID, KEY_SECRET, TOKEN) if text in json.dumps(result)] == []
    return result


def failure(cloud: FakeAck) -> dict[str, Any]:
    return module_run.failure(ack_fabric_info, **options(cloud))


@pytest.mark.parametrize(
    ("told", "version"), [("IPv6", "IPv6"), ("ipv6", "IPv6"), ("IPv4", "IPv4"), (" IPV4 ", "IPv4")]
)
def test_the_version_of_the_network(cloud: FakeAck, told: str, version: str) -> None:
    """A63: from the node pool to its Lingjun cluster; compared without case. A20: other pools do not count."""
    cloud.lingjun[FIRST]["ComputingIpVersion"] = told
    result = good(cloud)
    assert result == {
        "ip_version": version,
        "ip_versions": [version],
        "complete": True,
        "node_pools": [
            {
                "id": "np%032d" % 2,
                "name": "pool-2",
                "lingjun_cluster": FIRST,
                "lingjun_group": "ng-2",
                "ip_version": version,
                "evidence": "ComputingIpVersion of the Lingjun cluster %s" % FIRST,
            }
        ],
        "unread": [],
    }
    assert cloud.actions == ["DescribeClusterNodePools", "DescribeCluster"]
    assert cloud.requests[1].body == "ClusterId=" + FIRST


def test_each_lingjun_cluster_is_asked_once(cloud: FakeAck) -> None:
    cloud.pools += [pool(3, FIRST), pool(4, SECOND)]
    cloud.lingjun[SECOND] = {"ComputingIpVersion": "IPv6"}
    assert (good(cloud)["ip_version"], cloud.actions.count("DescribeCluster")) == ("IPv6", 2)


def test_networks_of_two_versions(cloud: FakeAck) -> None:
    cloud.pools.append(pool(3, SECOND))
    cloud.lingjun[SECOND] = {"ComputingIpVersion": "IPv4"}
    result = good(cloud)
    assert (result["ip_version"], result["ip_versions"], result["complete"]) == (None, ["IPv4", "IPv6"], True)
    assert [entry["ip_version"] for entry in result["node_pools"]] == ["IPv6", "IPv4"]


def test_a_cluster_without_lingjun_nodes(cloud: FakeAck) -> None:
    cloud.pools = [pool(1, kind="ess")]
    result = good(cloud)
    assert (result["ip_version"], result["node_pools"], result["complete"]) == (None, [], True)
    assert cloud.actions == ["DescribeClusterNodePools"]


def test_a_pool_whose_list_entry_names_no_cluster_is_asked_by_itself(cloud: FakeAck) -> None:
    """A63: the detail of the pool has it."""
    cloud.pools = [pool(2), pool(3)]
    cloud.details = {"np%032d" % 2: pool(2, FIRST), "np%032d" % 3: pool(3)}
    result = good(cloud)
    assert [entry["ip_version"] for entry in result["node_pools"]] == ["IPv6", None]
    assert (result["ip_version"], result["complete"]) == (None, False)
    (unread,) = result["unread"]
    assert unread["code"] == "ack_ip_version_untold"
    assert "The node pool pool-3 (np%032d) names no Lingjun cluster" % 3 in unread["message"]


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        ({}, "ack_ip_version_untold"),
        ({"ComputingIpVersion": ""}, "ack_ip_version_untold"),
        ({"ComputingIpVersion": "dual"}, "alibaba_answer_malformed"),
        ({"ComputingIpVersion": 6}, "alibaba_answer_malformed"),
        (None, "alibaba_refused"),
    ],
)
def test_a_version_that_is_not_told_is_unknown(cloud: FakeAck, answer: Any, code: str) -> None:
    cloud.pools.append(pool(3, SECOND))
    if answer is not None:
        cloud.lingjun[SECOND] = answer
    result = good(cloud)
    assert (result["ip_version"], result["ip_versions"], result["complete"]) == (None, ["IPv6"], False)
    assert [entry["code"] for entry in result["unread"]] == [code]
    assert SECOND in result["unread"][0]["message"] or code == "alibaba_answer_malformed"


def test_a_lingjun_cluster_that_may_not_be_read(cloud: FakeAck) -> None:
    cloud.faults["DescribeCluster"] = [Refuse(403, "NoPermission", "not eflo:DescribeCluster")]
    result = good(cloud)
    assert [entry["code"] for entry in result["unread"]] == ["alibaba_forbidden"]
    assert (result["ip_version"], result["complete"]) == (None, False)


def test_credentials_that_are_not_accepted_end_it(cloud: FakeAck) -> None:
    cloud.faults["DescribeCluster"] = [Refuse(404, "InvalidAccessKeyId.NotFound")]
    assert failure(cloud)["code"] == "alibaba_not_authenticated"


def test_it_asks_again_within_limits(cloud: FakeAck) -> None:
    cloud.faults["DescribeCluster"] = [
        Refuse(429, "Throttling.User"),
        Refuse(429, "Throttling", retry_after=1),
    ]
    cloud.faults["DescribeClusterNodePools"] = [DROPPED_BEFORE, Refuse(503, "ServiceUnavailable")]
    assert good(cloud)["ip_version"] == "IPv6"
    cloud.faults["DescribeClusterNodePools"] = [DROPPED_BEFORE] * 9
    result = failure(cloud)
    assert (result["code"], result["msg"].startswith("No answer for the node pools")) == (
        "alibaba_unreachable",
        True,
    )


def test_pools_that_are_none(cloud: FakeAck) -> None:
    cloud.faults["DescribeClusterNodePools"] = [b'{"nodepools": {}}']
    assert failure(cloud)["code"] == "alibaba_answer_malformed"


def test_a_missing_cluster(cloud: FakeAck) -> None:
    """A29."""
    result = module_run.failure(ack_fabric_info, **{**options(cloud), "cluster_id": "c999"})
    assert result["code"] == "ack_cluster_not_found"


def test_the_address_of_the_other_service_is_checked_too(cloud: FakeAck) -> None:
    result = module_run.failure(
        ack_fabric_info, **{**options(cloud), "eflo_endpoint": "eflo-controller.example.org"}
    )
    assert (result["code"], cloud.actions) == ("alibaba_endpoint_refused", ["DescribeClusterNodePools"])
