# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The rows of the address map."""

from __future__ import annotations

from ansible_collections.rdma.k8s.plugins.module_utils.core.checks.judge import NodeInput, judge
from ansible_collections.rdma.k8s.plugins.module_utils.core.checks.policy import Policy
from ansible_collections.rdma.k8s.plugins.module_utils.core.report.document import NicRow
from ansible_collections.rdma.k8s.tests.support import fleet

NOW = "2026-11-29T12:00:00Z"


def rows(shape: str) -> tuple[NicRow, ...]:
    """The rows of one clean node."""
    snapshot = fleet.node(shape)
    return judge([NodeInput(snapshot.name, snapshot)], Policy(), NOW).nodes[0].nics


def test_an_ipv4_fabric_shows_parent_and_child() -> None:
    """F13: the child keeps the parent's offset."""
    found = rows("BM.GPU.H100.8")
    assert [row.index for row in found] == list(range(16))
    assert all(row.parent and row.parent == row.observed and row.child for row in found)


def test_an_ipv6_fabric_shows_neither() -> None:
    """F4: an IPv6 fabric never gets an IPv4 child."""
    found = rows("BM.GPU.GB200-v3.4")
    assert len(found) == 8
    assert {(row.parent, row.child) for row in found} == {("", "")}
