# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The network of a running pod: what the vectors do not tell apart."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.core.spiderpool import pod_network

GOOD: dict[str, Any] = {
    "nics": [
        {"name": "net1", "address": "10.1.1.9/24", "gateway": "10.1.1.254", "broadcast": "10.1.1.255"},
        {"name": "net2", "address": "10.1.2.9/24", "gateway": "10.1.2.254", "subnet": "10.1.2.0/24"},
    ],
    "rules": [
        {"priority": 32764, "from": "10.1.1.9", "table": 101},
        {"priority": 32763, "from": "10.1.2.9/32", "table": "102"},
        {"priority": 32762, "from": "10.244.0.9", "table": 100},
    ],
    "table_defaults": {
        "101": {"dev": "net1", "via": "10.1.1.254"},
        "102": {"dev": "net2", "via": "10.1.2.254"},
    },
    "main_default_dev": "eth0",
    "rdma_links": [
        {"dev": "mlx5_1", "netdev": "net1", "state": "ACTIVE", "physical": "LINK_UP"},
        {"dev": "mlx5_2", "netdev": "net2", "state": "ACTIVE", "physical": "LINK_UP"},
    ],
}


def put(*path: Any) -> Callable[[Any], None]:
    """A change that sets a value at a path."""

    def change(content: Any) -> None:
        *above, last, value = path
        for key in above:
            content = content[key]
        content[last] = value

    return change


def places(change: Callable[[Any], None], isolated: bool = True) -> list[tuple[str, str]]:
    content = copy.deepcopy(GOOD)
    change(content)
    return [(issue.code, issue.at) for issue in pod_network.judge(pod_network.of_plain(content), 2, isolated)]


LINKS = GOOD["rdma_links"]
PLAIN = [{**link, "netdev": None} for link in LINKS]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (put("more", 1), []),
        # S126
        (put("nics", GOOD["nics"][:1]), [("nic-count-mismatch", "nics"), ("rdma-foreign-netdev", "mlx5_2")]),
        # S127, S222
        (put("nics", 0, "address", None), [("address-missing", "net1")]),
        (put("nics", 1, "subnet", "10.1.0.0/16"), [("prefix-mismatch", "net2")]),
        (put("nics", 0, "broadcast", "10.1.1.254"), [("broadcast-mismatch", "net1")]),
        (put("nics", 0, "broadcast", "x"), [("broadcast-mismatch", "net1")]),
        # S128
        (put("rules", GOOD["rules"][1:]), [("rule-missing", "net1")]),
        (
            put("rules", [*GOOD["rules"], {"priority": 1, "from": "10.1.1.9", "table": 103}]),
            [("rule-duplicate", "net1")],
        ),
        (
            put("rules", 1, "table", 101),
            [("table-default-mismatch", "net2"), ("table-shared", "net1"), ("table-shared", "net2")],
        ),
        # S129, S83
        (put("table_defaults", "101", "via", "10.1.1.1"), [("table-default-mismatch", "net1")]),
        (put("table_defaults", "101", None), [("table-default-mismatch", "net1")]),
        (
            put("table_defaults", {}),
            [("table-default-mismatch", "net1"), ("table-default-mismatch", "net2")],
        ),
        (put("nics", 0, "gateway", None), []),
        # S131
        (put("rules", 2, "priority", 32763), [("rule-priority-duplicate", "rules")]),
        (put("rules", 2, "priority", None), []),
        # S132
        (put("main_default_dev", "net1"), [("main-default-mismatch", "main")]),
        (put("main_default_dev", None), []),
        # S135
        (put("rdma_links", 0, "state", "DOWN"), [("rdma-not-ready", "mlx5_1")]),
        (put("rdma_links", 0, "physical", None), [("rdma-not-ready", "mlx5_1")]),
        (put("rdma_links", LINKS[:1]), [("rdma-device-count", "net2")]),
        (put("rdma_links", []), [("rdma-device-count", "net1"), ("rdma-device-count", "net2")]),
        (
            put("rdma_links", [*LINKS, {**LINKS[0], "dev": "mlx5_9"}]),
            [("rdma-device-count", "net1")],
        ),
        (put("rdma_links", PLAIN), []),  # S30: InfiniBand has no interface
        (put("rdma_links", PLAIN[:1]), [("rdma-count-mismatch", "rdma_links")]),
    ],
)
def test_what_a_pod_shows(change: Any, expected: list[tuple[str, str]]) -> None:
    assert places(change) == expected


def test_in_shared_mode_all_devices_are_seen() -> None:
    """S136."""
    foreign = put("rdma_links", 0, "netdev", "enp1")
    assert places(foreign, isolated=False) == []
    assert places(foreign) == [("rdma-device-count", "net1"), ("rdma-foreign-netdev", "mlx5_1")]


def test_ipv6_has_no_broadcast_address() -> None:
    """S127."""
    content = copy.deepcopy(GOOD)
    content["nics"][0].update(address="fd00::9/64", gateway="fd00::1", broadcast="fd00::ff")
    content["rules"][0]["from"] = "fd00::9"
    content["table_defaults"]["101"]["via"] = "fd00::1"
    assert pod_network.judge(pod_network.of_plain(content), 2) == []
