# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Node states, allocatable resources, limits of drains and the Secret of UFM: what the vectors do not tell apart."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.core.cluster_snapshot import (
    SriovInterface,
    SriovNodeState,
)
from ansible_collections.rdma.k8s.plugins.module_utils.core.spiderpool import node_state, pool_config, ufm

WANT = {"0000:86:00.0": 2}
GOOD = {
    "name": "w1",
    "syncStatus": "Succeeded",
    "lastSyncError": "",
    "desired": "Idle",
    "current": "Idle",
    "interfaces": [{"pciAddress": "0000:86:00.0", "numVfs": 2, "vfs": [{}, {}]}],
}


@pytest.mark.parametrize(
    ("change", "state", "reason"),
    [
        ({}, "ready", ""),
        ({"lastSyncError": None}, "ready", ""),
        # S115: each condition alone
        ({"syncStatus": "InProgress"}, "progress", "syncStatus is 'InProgress'"),
        ({"lastSyncError": "no"}, "progress", "lastSyncError says 'no'"),
        ({"desired": "Drain_Required"}, "progress", "the desired state is 'Drain_Required'"),
        ({"desired": None}, "progress", "the desired state is ''"),
        ({"current": "Draining"}, "progress", "the current state is 'Draining'"),
        ({"interfaces": []}, "progress", "there is no PF 0000:86:00.0"),
        ({"interfaces": None}, "progress", "there is no PF 0000:86:00.0"),
        ({"interfaces": [{"pciAddress": "0000:86:00.0", "vfs": [{}, {}]}]}, "progress", "has None virtual"),
        ({"interfaces": [{"pciAddress": "0000:86:00.0", "numVfs": 2}]}, "progress", "lists 0 of its 2"),
        ({"desired": "Reboot_Required"}, "reboot", "Reboot_Required"),
        ({"syncStatus": "Failed"}, "failed", "Failed"),
        ({"syncStatus": "Failed", "desired": "Reboot_Required"}, "failed", "Failed"),
    ],
)
def test_a_node(change: dict[str, Any], state: str, reason: str) -> None:
    found = node_state.judge(node_state.of_plain({**GOOD, **change}), WANT)
    assert found.state == state
    assert reason in " ".join(found.reasons)
    assert bool(found.reasons) == (state != "ready")


def test_without_nodes_nothing_is_ready() -> None:
    """S243: a selector that fits no node must not pass."""
    assert node_state.rollup([], [node_state.of_plain(GOOD)], WANT) == ("progress", {})


def test_nodes_that_nobody_expects_do_not_count() -> None:
    states = [node_state.of_plain(GOOD), node_state.of_plain({**GOOD, "name": "w2", "syncStatus": "Failed"})]
    assert node_state.rollup(["w1"], states, WANT).state == "ready"
    assert node_state.rollup(["w1", "w3"], states, WANT).nodes["w3"].state == "missing"


@pytest.mark.parametrize(("vfs", "state"), [(2, "ready"), (1, "progress")])
def test_a_snapshot_says_the_same(vfs: int, state: str) -> None:
    """S113: a snapshot keeps the number, and not the list."""
    found = SriovNodeState(
        node="w1",
        sync="Succeeded",
        desired_state="Idle",
        current_state="Idle",
        interfaces=(SriovInterface(pci="0000:86:00.0", vfs=vfs),),
    )
    assert node_state.judge(node_state.of_snapshot(found), WANT).state == state


@pytest.mark.parametrize(
    ("given", "code", "have"),
    [("2", "", None), (2, "", None), ("3", "resource-count", 3), ("x", "resource-count", None)],
)
def test_allocatable(given: Any, code: str, have: Any) -> None:
    """S119."""
    found = node_state.allocatable([{"name": "w1", "allocatable": {"r": given}}], {"r": 2})
    assert [issue.plain for issue in found] == (
        [{"code": code, "at": "w1:r", "severity": "error", "want": 2, "have": have}] if code else []
    )


@pytest.mark.parametrize(
    ("wanted", "nodes", "limit", "code"),
    [
        (3, 2, 3, ""),
        ("100%", 3, 3, ""),
        ("1%", 100, 1, ""),
        ("1%", 99, 0, "max-unavailable-zero"),
        ("0%", 5, None, "max-unavailable-invalid"),
        ("101%", 5, None, "max-unavailable-invalid"),
        ("05%", 5, None, "max-unavailable-invalid"),
        ("50 %", 5, None, "max-unavailable-invalid"),
        (-1, 5, None, "max-unavailable-invalid"),
        (True, 5, None, "max-unavailable-invalid"),
        (1.5, 5, None, "max-unavailable-invalid"),
    ],
)
def test_limits(wanted: Any, nodes: int, limit: Any, code: str) -> None:
    """S120, S121."""
    found = pool_config.limit(wanted, nodes)
    assert (found.nodes, [issue.code for issue in found.issues]) == (limit, [code] if code else [])


def test_keys_of_the_secret() -> None:
    """S146."""
    found = ufm.judge(["UFM_PORT", "UFM_HTTP_SCHEMA", "b", "a"])
    assert found.missing == ("UFM_ADDRESS", "UFM_PASSWORD", "UFM_USERNAME")
    assert (found.unknown, found.tls_verified, found.is_ok) == (("a", "b"), False, False)
