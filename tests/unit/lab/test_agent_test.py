# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How two snapshots of one node are compared."""

from __future__ import annotations

from typing import Any

from ansible_collections.rdma.k8s.tests.lab import agent_test


def snapshot(**more: Any) -> dict[str, Any]:
    return {
        "name": "node1",
        "collected_at": "2026-01-01T00:00:00Z",
        "collector": {"pyroute2": "0.7.2"},
        "devices": [{"name": "mlx5_0", "ports": [{"number": 1, "state": "ACTIVE"}]}],
        **more,
    }


def test_what_may_differ() -> None:
    """The time, who read it, and what only a device file tells; nothing else."""
    direct = snapshot(collected_at="2026-01-01T00:00:09Z", collector={"pyroute2": "0.9.7"})
    direct["devices"][0]["ports"][0]["active_mtu"] = 4096
    seen = snapshot(errors=[{"source": "ibv_devinfo", "reason": "cannot be asked from outside the node"}])
    assert agent_test.differences(agent_test.comparable(seen), agent_test.comparable(direct)) == []


def test_what_may_not_differ() -> None:
    """Each difference is named by its place."""
    other = snapshot(errors=[{"source": "nftables", "reason": "operation not permitted"}])
    other["devices"][0]["ports"][0]["state"] = "DOWN"
    found = agent_test.differences(agent_test.comparable(snapshot()), agent_test.comparable(other))
    assert found[0] == ".devices[0].ports[0].state: 'ACTIVE' and 'DOWN'"
    assert found[1].startswith(".errors: [] and [{")
    assert len(found) == 2
