# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The place of each NIC in the network, as far as the routes tell it (decision 15)."""

from __future__ import annotations

from dataclasses import replace

from ansible_collections.rdma.k8s.plugins.module_utils.core import nic_places
from ansible_collections.rdma.k8s.plugins.module_utils.core.snapshot import Route
from ansible_collections.rdma.k8s.tests.support import fleet


def test_the_default_route_is_not_known_when_it_names_no_interface() -> None:
    """A next hop that is an object of its own; then no NIC can be told free of it."""
    node = fleet.node("BM.GPU.H100.8", name="n1")
    told = {nic["netdev"]: nic["default_route"] for nic in nic_places.as_dicts(node)}
    assert (told["eth0"][:16], told["rdma0"]) == ("default dev eth0", "")
    unknown = replace(node, routes=(Route("default", via="10.0.0.1"),))
    assert {nic["default_route"] for nic in nic_places.as_dicts(unknown)} == {None}
