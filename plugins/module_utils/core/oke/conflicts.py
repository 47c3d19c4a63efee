# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What on a node conflicts with a child range (F45-F50). Private to rdma.k8s: it may change with any release."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any, Optional

from ..errors import RdmaError
from ..net import Address, Prefix, find_address, find_destination, quoted
from ..snapshot import Route
from .imds import parse_vnic_subnets

_HINT = "Choose a child range that nothing in the VCN, the cluster or the node uses."


class RouteTable:
    """Routes that many claims are checked against: what overlaps a range is looked for once.

    :param routes: as in :func:`check`.
    """

    def __init__(self, routes: Iterable[Route]) -> None:
        self._routes = tuple(routes)
        self._overlapping: dict[Prefix, tuple[Prefix, ...]] = {}

    def __iter__(self) -> Iterator[Route]:
        return iter(self._routes)

    def overlapping(self, child_range: Prefix) -> tuple[Prefix, ...]:
        """The destinations that overlap a range (F47), in the order of the routes.

        :raises RdmaError: ``route_destination_malformed``
        """
        found = self._overlapping.get(child_range)
        if found is None:
            found = tuple(
                [network for network in route_networks(self._routes) if network.overlaps(child_range)]
            )
            self._overlapping[child_range] = found
        return found


def check(
    child_range: Prefix,
    vnics: Any,
    host_routes: Optional[Iterable[Route]],
    service_host: Optional[str],
) -> None:
    """The conflict check that the driver runs for each claim: the first conflict is the error (F45).

    :param vnics: the document of ``/vnics/``, ``None``: the read failed.
    :param host_routes: routes of all tables, ``None``: the read failed.
    :param service_host: the text of KUBERNETES_SERVICE_HOST.
    :raises RdmaError: ``vnic_subnet_conflict``, ``host_route_conflict``, ``service_address_conflict``
    """
    for error in of_node(child_range, vnics, host_routes, service_host):
        raise error


def of_node(
    child_range: Prefix,
    vnics: Any,
    host_routes: Optional[Iterable[Route]],
    service_host: Optional[str],
) -> Iterator[RdmaError]:
    """All conflicts of one node, in the order of :func:`check`. A part whose read failed is left out (F49)."""
    for subnet in _subnets(vnics):
        if subnet.overlaps(child_range):
            yield _conflict("vnic_subnet_conflict", "The VNIC subnet %s", subnet, child_range)
    try:
        for network in _overlapping(host_routes, child_range):
            yield _conflict("host_route_conflict", "The host route to %s", network, child_range)
    except RdmaError as error:
        yield error
    address = service_address(service_host)
    if address is not None and child_range.contains(address):
        yield RdmaError(
            "service_address_conflict",
            "The Kubernetes service address %s is inside the child range %s." % (address, child_range),
            hint=_HINT,
            address=str(address),
            child_range=str(child_range),
        )


def _overlapping(host_routes: Optional[Iterable[Route]], child_range: Prefix) -> Iterable[Prefix]:
    if isinstance(host_routes, RouteTable):
        return host_routes.overlapping(child_range)
    return (network for network in route_networks(host_routes or ()) if network.overlaps(child_range))


def _subnets(vnics: Any) -> tuple[Prefix, ...]:
    try:
        return parse_vnic_subnets(vnics)
    except RdmaError:
        return ()


def route_networks(routes: Iterable[Route]) -> Iterator[Prefix]:
    """The destinations that can conflict, masked: unicast, IPv4, neither default nor link-local (F47).

    :raises RdmaError: ``route_destination_malformed``
    """
    for route in routes:
        if route.type == "unicast":
            network = _destination(route.dst)
            if network is not None:
                yield network


@lru_cache(maxsize=65536)  # the nodes of a fleet have the same routes
def _destination(text: str) -> Optional[Prefix]:
    """The masked destination of a route, ``None`` when it cannot conflict."""
    found = find_destination(text)
    if found is None:
        raise RdmaError(
            "route_destination_malformed",
            "The route to %s has no readable destination." % quoted(text),
            hint="Expected a prefix, an address or 'default': record the routes again.",
            destination=text,
        )
    network = found.masked()
    link_local = Address(network.version, network.value).is_link_local
    return network if network.version == 4 and network.length and not link_local else None


def service_address(text: Optional[str]) -> Optional[Address]:
    """The IPv4 address in KUBERNETES_SERVICE_HOST; everything else there is ignored (F48)."""
    address = find_address(text)
    return address if address is not None and address.version == 4 else None


def _conflict(code: str, what: str, network: Prefix, child_range: Prefix) -> RdmaError:
    return RdmaError(
        code,
        "%s overlaps the child range %s." % (what % network, child_range),
        hint=_HINT,
        network=str(network),
        child_range=str(child_range),
    )
