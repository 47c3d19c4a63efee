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


def test_on_oke_the_nics_of_the_rdma_network_may_be_set_up() -> None:
    """F73, decision 15: eth0 is an Ethernet port with an RDMA device, too."""
    places = nic_places.as_dicts(fleet.node("BM.GPU.H100.8", name="n1"))
    ports = [nic["netdev"] for nic in places if nic["device"] and nic["link_layer"] == "Ethernet"]
    assert "eth0" in ports
    assert nic_places.to_set_up(places, True) == ["rdma%d" % number for number in range(16)]


def test_elsewhere_all_but_the_default_route_may_be_set_up() -> None:
    """Decision 15; names and networks of other targets are their own."""
    places = [
        {**nic, "rdma_network": False} for nic in nic_places.as_dicts(fleet.node("BM.GPU.H100.8", name="n1"))
    ]
    assert len(nic_places.to_set_up(places, False)) == 16
    assert nic_places.to_set_up(places, True) == []


def test_neither_infiniband_nor_virtual_functions_are_set_up() -> None:
    """F81: the port of the default route is the only Ethernet port with an RDMA device."""
    native = nic_places.as_dicts(fleet.node("BM.GPU.GB200.4", name="n1"))
    assert nic_places.to_set_up(native, True) == nic_places.to_set_up(native, False) == []
    places = nic_places.as_dicts(fleet.node("BM.GPU.H100.8", name="n1"))
    assert nic_places.to_set_up([{**nic, "vf_of": "0000:0c:00.0"} for nic in places], False) == []


def test_routes_that_are_not_known_exclude_nothing() -> None:
    """The modules refuse then, with the reason."""
    places = nic_places.as_dicts(fleet.node("BM.GPU.H100.8", name="n1"))
    assert len(nic_places.to_set_up([{**nic, "default_route": None} for nic in places], True)) == 16
