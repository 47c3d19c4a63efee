# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The mistakes of the guide that stand in its objects, each with the finding that names it."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.core.checks.judge import judge
from ansible_collections.rdma.k8s.plugins.module_utils.core.checks.policy import Policy
from ansible_collections.rdma.k8s.tests.support import fleet, rails

from .cases.sriov import both, infiniband, rail_nodes

POLICY = Policy.from_dict({"target": "spiderpool_sriov", "netns_mode": "exclusive", "only": ["RDMA-SRIOV-*"]})
PF = rails.PLACES[0]
OLD_NETWORK = both(
    rails.edit_config(1, "sriov", enableRdma=True, rdmaIsolation=...),
    rails.edit_config(2, "sriov", enableRdma=True, rdmaIsolation=...),
)

MISTAKES: list[tuple[str, rails.EditCluster, str, str, str]] = [
    (
        "S219",
        both(infiniband, rails.edit_config(1, "ibsriov", ippools={"ipv4": ["gpu1-net91"]})),
        "002",
        "fail",
        "there is no pool 'gpu1-net91'",
    ),
    ("S220", rails.edit_pool(1, subnet="172.16.11.0/16"), "003", "fail", "its network is 172.16.0.0/16"),
    (
        "S226",
        rails.edit_policy(2, "nicSelector", rootDevices=[PF]),
        "007",
        "fail",
        "also a root device of policy",
    ),
    ("S228", OLD_NETWORK, "001", "fail", "spec.sriov.enableRdma: the field ended"),
    ("S228 isolation", OLD_NETWORK, "010", "warn", "does not get its RDMA device on nodes in exclusive mode"),
    (
        "S229",
        both(
            rails.edit_config(1, ippools={"ipv4": ["gpu1-net"]}), rails.edit_config(1, "sriov", ippools=...)
        ),
        "001",
        "fail",
        "spec.ippools: a SpiderMultusConfig has no such field here",
    ),
    (
        "S229 no pool",
        both(
            rails.edit_config(1, ippools={"ipv4": ["gpu1-net"]}), rails.edit_config(1, "sriov", ippools=...)
        ),
        "002",
        "fail",
        "it names no pool",
    ),
    (
        "S230",
        rails.edit_config(1, "sriov", resourceName="spidernet.io/gpu1rdma"),
        "011",
        "fail",
        "SpiderMultusConfig spiderpool/gpu1-sriov",
    ),
    (
        "S231",
        both(infiniband, rails.edit_config(1, "ibsriov", pkey=1000)),
        "001",
        "fail",
        "a text such as '0x1000'",
    ),
    (
        "S231 enforced",
        both(infiniband, rails.edit_config(1, "ibsriov", pkey="0x3e8")),
        "015",
        "warn",
        "without enableIbKubernetes: true",
    ),
    ("S239", rails.edit_policy(1, numVfs=127), "008", "warn", "the firmware is set to 16"),
    (
        "S244",
        rails.edit_policy(1, nodeSelector={"kubernetes.io/os": "linux"}),
        "007",
        "warn",
        "it also selects control-1",
    ),
    ("S250", both(infiniband, rails.edit_config(1, "ibsriov", mtu=8000)), "001", "fail", "spec.ibsriov.mtu"),
    ("S251", both(infiniband, rails.edit_policy(1, linkType="")), "009", "fail", "linkType is not given"),
]


def told(edit: rails.EditCluster) -> dict[str, Any]:
    inputs = rail_nodes()
    cluster = edit(rails.cluster(*[entry.name for entry in inputs]))
    document = judge(inputs, POLICY, fleet.JUDGED_AT, cluster=cluster)
    return {finding.check[11:]: finding for finding in document.findings if finding.node == rails.CLUSTER}


@pytest.mark.parametrize(
    ("edit", "check", "status", "message"),
    [mistake[1:] for mistake in MISTAKES],
    ids=[mistake[0].replace(" ", "-") for mistake in MISTAKES],
)
def test_a_mistake_of_the_guide_has_its_finding(
    edit: rails.EditCluster, check: str, status: str, message: str
) -> None:
    finding = told(edit)[check]
    assert finding.status == status, finding.message
    assert message in finding.message


def test_all_of_them_together() -> None:
    """What the guide makes of its first rail on RoCE, pasted as it is: every check that can see it speaks up."""
    first = [
        edit for name, edit, *_rest in MISTAKES if name in ("S220", "S226", "S228", "S229", "S230", "S244")
    ]
    statuses = {check: finding.status for check, finding in told(both(*first)).items()}
    for check in ("001", "002", "003", "007", "011"):
        assert statuses[check] == "fail", check
    assert statuses["010"] == "warn"
