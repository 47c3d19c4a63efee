# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which NICs may be set up: those of the RDMA network, and never that of the default route. Private to rdma.k8s."""

from __future__ import annotations

from typing import Any

from . import nics
from .nic_mtu import Nic, default_over, unknown_default
from .oke.view import NodeView
from .snapshot import NodeSnapshot


def as_dicts(snapshot: NodeSnapshot) -> list[dict[str, Any]]:
    """The NICs of a node as plain data (:func:`nics.as_dict`), each with its place in the network.

    ``rdma_network`` says whether the OKE provider takes it for an RDMA NIC (F73, F81), ``default_route`` how the
    default route goes over it (decision 15): empty when it does not, ``None`` when the routes are not known.
    """
    links = snapshot.links or ()
    stacked = [Nic(link.name, 0, link.mtu or 0, above=link.master, below=link.parent) for link in links]
    of_network = {nic.name for nic in NodeView(snapshot).nics}
    routes = None if unknown_default(snapshot.routes or ()) else snapshot.routes
    return [
        {
            **nics.as_dict(nic),
            "rdma_network": nic.name in of_network,
            "default_route": None
            if routes is None
            else default_over(nic.name, stacked, routes, snapshot.rules),
        }
        for nic in nics.join(snapshot)
    ]


def to_set_up(places: list[dict[str, Any]], only_rdma_network: bool) -> list[str]:
    """Interfaces that may be set up when nobody names any: Ethernet ports with an RDMA device, no virtual functions.

    Never that of the default route (decision 15); where that is not known, the modules refuse with the reason.

    :param places: what :func:`as_dicts` returns.
    :param only_rdma_network: only those of the OKE provider's RDMA network (F73).
    """
    return [
        nic["netdev"]
        for nic in places
        if nic["netdev"]
        and nic["device"]
        and nic["link_layer"] == nics.ETHERNET
        and not nic["vf_of"]
        and not nic["default_route"]
        and (nic["rdma_network"] or not only_rdma_network)
    ]
