# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The predicates P7 to P14 on what a pod shows of its RDMA devices."""

from __future__ import annotations

import copy
from typing import Any, Callable

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.core.spiderpool import pod_rdma

Edit = Callable[[dict[str, Any]], None]


def pod(host: int = 10) -> dict[str, Any]:
    """Two rails; the device of net1 is the second one, as it happens."""
    devices = []
    for position, (nic, minor) in enumerate((("net2", 193), ("net1", 192))):
        address = "172.16.1%s.%d" % (nic[-1], host)
        devices.append(
            {
                "name": "mlx5_%d" % (7 + position),
                "node_guid": "b83f:d203:00aa:000%d" % position,
                "link_layer": "Ethernet",
                "state": "ACTIVE",
                "active_mtu": 4096,
                "uverbs": "231:%d" % minor,
                "gids": [
                    {"index": 0, "type": "IB/RoCE v1", "netdev": nic, "gid": "fe80::1"},
                    {"index": 1, "type": "RoCE v2", "netdev": nic, "gid": "fe80::1"},
                    {"index": 2, "type": "IB/RoCE v1", "netdev": nic, "gid": "::ffff:" + address},
                    {"index": 3, "type": "RoCE v2", "netdev": nic, "gid": "::ffff:" + address},
                ],
            }
        )
    return {
        "nics": [
            {"name": nic, "address": "172.16.1%s.%d/24" % (nic[-1], host), "mtu": 4200, "pf_mtu": 4200}
            for nic in ("net1", "net2")
        ],
        "devices": devices,
        "files": {"uverbs0": "231:192", "uverbs1": "231:193", "rdma_cm": "10:58"},
        "capabilities": 1 << pod_rdma.IPC_LOCK,
        "memlock": "65536",
        "verbs": ["mlx5_7", "mlx5_8"],
    }


def infiniband() -> dict[str, Any]:
    content = pod()
    for lid, device in enumerate(content["devices"], 17):
        device.update(link_layer="InfiniBand", lid=lid, sm_lid=1, gids=[])
    return content


def edited(content: dict[str, Any], edit: Edit) -> pod_rdma.PodRdma:
    content = copy.deepcopy(content)
    edit(content)
    return pod_rdma.of_plain(content)


def codes(verdict: pod_rdma.Verdict) -> list[tuple[str, str]]:
    return [(issue.code, issue.at) for issue in verdict.issues]


def test_a_good_pod_tells_the_index_of_its_gids() -> None:
    """S137: RoCE v2, on the interface, with its address; neither the first of the type nor the first of the address."""
    verdict = pod_rdma.judge(pod_rdma.of_plain(pod()))
    assert (verdict.issues, verdict.gid_index) == ([], {"mlx5_8": 3, "mlx5_7": 3})


@pytest.mark.parametrize(
    ("edit", "code"),
    [
        # P7, S137
        (lambda c: c["devices"][1].update(gids=[]), ("gid-missing", "net1")),
        (lambda c: c["devices"][1]["gids"][3].update(netdev="net2"), ("gid-missing", "net1")),
        (lambda c: c["devices"][1]["gids"][3].update(type="IB/RoCE v1"), ("gid-missing", "net1")),
        (lambda c: c["nics"][0].update(address=None), ("gid-missing", "net1")),
        # P8, S138
        (lambda c: c["devices"][0].update(node_guid="0000:0000:0000:0000"), ("guid-unset", "mlx5_7")),
        # P9, S139
        (lambda c: c["files"].update(uverbs1="231:199"), ("uverbs-foreign", "mlx5_7")),
        (lambda c: c["devices"][0].update(uverbs=""), ("uverbs-missing", "mlx5_7")),
        # P10, S140
        (lambda c: c.update(capabilities=0), ("memlock-limited", "container")),
        # P11, S141
        (lambda c: c["nics"][1].update(mtu=9000), ("mtu-exceeds-pf", "net2")),
        # P13, S143
        (lambda c: c.update(verbs=["mlx5_8"]), ("verbs-missing", "mlx5_7")),
    ],
)
def test_each_predicate(edit: Edit, code: tuple[str, str]) -> None:
    assert codes(pod_rdma.judge(edited(pod(), edit))) == [code]


def test_no_device_file_at_all() -> None:
    """S139."""
    verdict = pod_rdma.judge(edited(pod(), lambda c: c.update(files={"rdma_cm": "10:58"})))
    assert codes(verdict) == [("uverbs-missing", "mlx5_7"), ("uverbs-missing", "mlx5_8")]


@pytest.mark.parametrize(
    "edit",
    [
        lambda c: c.update(capabilities=0, memlock="unlimited"),
        lambda c: c.update(capabilities=None, memlock=""),
        lambda c: c.update(verbs=None),
        lambda c: [nic.update(mtu=None) for nic in c["nics"]],
        lambda c: c["devices"][0].update(node_guid=""),
    ],
)
def test_what_is_allowed_or_was_not_read(edit: Edit) -> None:
    assert pod_rdma.judge(edited(pod(), edit)).issues == []


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({}, []),
        ({"state": "INIT"}, ["ib-not-active"]),
        ({"lid": 65535, "sm_lid": 0}, ["ib-lid-invalid", "ib-sm-missing"]),
        ({"lid": 0}, ["ib-lid-invalid"]),
        ({"lid": 49151}, []),
        ({"lid": 49152}, ["ib-lid-invalid"]),
        ({"lid": None}, ["ib-lid-invalid"]),
        ({"sm_lid": None}, ["ib-sm-missing"]),
    ],
)
def test_infiniband(change: dict[str, Any], found: list[str]) -> None:
    """P12, S142; it has no GID of an interface, and needs none."""
    verdict = pod_rdma.judge(edited(infiniband(), lambda c: c["devices"][0].update(change)))
    assert codes(verdict) == [(code, "mlx5_7") for code in found]


def test_in_shared_mode_the_devices_of_others_are_left_alone() -> None:
    """S136: the pod sees a physical function without files and without GIDs of its own."""

    def foreign(content: dict[str, Any]) -> None:
        content["devices"].insert(
            0, {"name": "mlx5_0", "node_guid": "0000:0000:0000:0000", "link_layer": "Ethernet"}
        )

    assert pod_rdma.judge(edited(pod(), foreign), isolated=False).issues == []
    assert codes(pod_rdma.judge(edited(pod(), foreign))) == [
        ("guid-unset", "mlx5_0"),
        ("uverbs-missing", "mlx5_0"),
        ("verbs-missing", "mlx5_0"),
    ]


def test_two_pods_talk_rail_by_rail() -> None:
    """P14, S144: netK to netK, with device and index."""
    here, there = pod_rdma.of_plain(pod(10)), pod_rdma.of_plain(pod(20))
    assert pod_rdma.compare(here, there) == []
    assert pod_rdma.pairs(here, there) == [
        pod_rdma.Pair("net1", "mlx5_8", 3, "172.16.11.20"),
        pod_rdma.Pair("net2", "mlx5_7", 3, "172.16.12.20"),
    ]


def test_on_infiniband_devices_stand_in_the_order_of_the_interfaces() -> None:
    found = pod_rdma.pairs(pod_rdma.of_plain(infiniband()), pod_rdma.of_plain(pod(20)))
    assert [(pair.nic, pair.device, pair.gid_index) for pair in found] == [
        ("net1", "mlx5_7", None),
        ("net2", "mlx5_8", None),
    ]


def test_the_ends_of_a_rail_must_agree() -> None:
    """P11, S141."""
    here = pod_rdma.of_plain(pod())
    small = edited(pod(20), lambda c: c["devices"][1].update(active_mtu=1024))
    (issue,) = pod_rdma.compare(here, small)
    assert (issue.code, issue.at) == ("active-mtu-differs", "net1")
    assert "4096 here and 1024 there" in issue.message
    (issue,) = pod_rdma.compare(here, edited(pod(20), lambda c: c["nics"].pop()))
    assert (issue.code, issue.at, issue.severity) == ("peer-lacks-rail", "net2", "warning")


@pytest.mark.parametrize(
    ("target", "found"),
    [
        ("172.16.12.20", []),
        ("172.91.0.115", ["target-off-rail"]),
        ("x", ["target-syntax"]),
        (None, ["target-syntax"]),
    ],
)
def test_targets(target: Any, found: list[str]) -> None:
    """S144: the guide's target is in no pool."""
    assert [issue.code for issue in pod_rdma.on_rail(target, pod_rdma.of_plain(pod()).nics)] == found


@pytest.mark.parametrize("content", [{}, {"nics": 1, "devices": "x", "files": [], "verbs": {}, "memlock": 3}])
def test_what_is_no_evidence_is_none(content: dict[str, Any]) -> None:
    found = pod_rdma.of_plain(content)
    assert pod_rdma.judge(found) == ([], {})
    assert pod_rdma.pairs(found, found) == []
