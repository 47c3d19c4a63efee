# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""May an RDMA network of OCA be this one? Its own rules, its size, and all that is in use on the node and around it.

Private to rdma.k8s: it may change with any release.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Optional

from ..errors import RdmaError
from ..net import Prefix, find_prefix, quoted
from ..snapshot import Route
from . import child_range, conflicts
from .addressing import subnet_errors
from .constants import MAX_NICS, MIN_LENGTH, RESERVED_RANGES
from .imds import parse_primary_vnic, parse_vnic_subnets
from .range_check import LabelledNetwork

_HINT = "Choose an RDMA network that nothing in the VCN, the cluster or the node uses."


@dataclass(frozen=True)
class Surroundings:
    """What an RDMA network must fit to.

    :param subnet: the primary VNIC subnet, which decides the size (F133).
    :param subnets: of all VNICs (F46).
    :param networks: what the user names: pod, service, VCN and peer networks.
    :param routes: of the node, all tables (F47).
    :param rdma_links: names of the RDMA NICs: OCA will replace their routes, so those are no conflict.
    :param child_range: of the pods' children; ``None``: not known.
    :param nics: how many RDMA NICs a node has, or may get.
    """

    subnet: Prefix
    subnets: tuple[Prefix, ...] = ()
    networks: tuple[LabelledNetwork, ...] = ()
    routes: tuple[Route, ...] = ()
    rdma_links: frozenset[str] = frozenset()
    child_range: Optional[Prefix] = None
    nics: int = MAX_NICS


def parse(text: Any) -> Prefix:
    """Read an RDMA network that is to be set (F52; the lengths and reserved ranges of F27).

    :raises RdmaError: ``oca_network_malformed``, ``oca_network_reserved``
    """
    prefix = find_prefix(text)
    problem = ""
    if prefix is None:
        problem = "is not of the form <address>/<length>"
    elif prefix.version != 4:
        problem = "is not IPv4"
    elif not prefix.is_masked:
        problem = "has host bits set, expected %s" % prefix.masked()
    elif prefix.length < MIN_LENGTH:
        problem = "has length %d, expected %d or more" % (prefix.length, MIN_LENGTH)
    if prefix is None or problem:
        raise RdmaError(
            "oca_network_malformed",
            "The RDMA network %s %s." % (quoted(text), problem),
            hint="Write a network with its host bits cleared, such as 10.224.0.0/12.",
            value=text,
        )
    for reserved in RESERVED_RANGES:
        if prefix.overlaps(reserved):
            raise RdmaError(
                "oca_network_reserved",
                "The RDMA network %s overlaps %s, which is reserved." % (prefix, reserved),
                hint="Choose a network outside %s." % ", ".join(map(str, RESERVED_RANGES)),
                network=str(prefix),
                reserved=str(reserved),
            )
    return prefix


def primary_subnet(given: str, vnics: Any) -> Prefix:
    """The primary VNIC subnet: as the user gives it, else from the metadata (F69).

    :raises RdmaError: ``network_malformed``, ``primary_subnet_unknown``
    """
    if given:
        prefix = find_prefix(given)
        if prefix is None or prefix.version != 4:
            raise RdmaError(
                "network_malformed",
                "The primary subnet %s is not an IPv4 prefix." % quoted(given),
                hint="Write it as 10.140.64.0/19.",
                label="primary subnet",
                value=given,
            )
        return prefix.masked()
    reason = "the metadata service did not answer" if vnics is None else "the first VNIC has no IPv4 address"
    try:
        vnic = None if vnics is None else parse_primary_vnic(vnics)
        if vnic is not None:
            return vnic.subnet.masked()
    except RdmaError as error:
        reason = error.message.rstrip(".")
    raise RdmaError(
        "primary_subnet_unknown",
        "The primary VNIC subnet, which decides how large the RDMA network must be, is not known: %s."
        % reason,
        hint="Give it by the option primary_subnet, or try again when the metadata service answers.",
        retryable=True,
    )


def vnic_subnets(vnics: Any) -> tuple[Prefix, ...]:
    """The subnets of all VNICs; none where the metadata cannot be read (F49)."""
    try:
        return parse_vnic_subnets(vnics)
    except RdmaError:
        return ()


def require(network: Prefix, around: Surroundings) -> None:
    """Refuse a network that does not fit.

    :raises RdmaError: the first of :func:`problems`; ``details["problems"]`` has all of them.
    """
    found = list(problems(network, around))
    if not found:
        return
    first, more = found[0], len(found) - 1
    message = (
        first.message
        if not more
        else "%s %d more: %s"
        % (
            first.message,
            more,
            " ".join([error.message for error in found[1:]]),
        )
    )
    details = {**first.details, "problems": [error.to_dict() for error in found]}
    raise RdmaError(first.code, message, hint=first.hint, **details)


def problems(network: Prefix, around: Surroundings) -> Iterator[RdmaError]:
    """All that is wrong with a network: size first (F18, F133), then what it overlaps (F45-F47, F25)."""
    length = child_range.length_for(around.subnet.length, around.nics)
    if length is None or network.length > length:
        yield _too_small(network, around, length)
    yield from subnet_errors(around.subnet, network)
    for subnet in dict.fromkeys(around.subnets):
        if subnet != around.subnet and subnet.overlaps(network):
            yield _in_use("the VNIC subnet", subnet, network)
    for entry in around.networks:
        if entry.network.overlaps(network):
            yield _in_use(entry.label, entry.network, network)
    others = [route for route in around.routes if route.dev not in around.rdma_links]
    for destination in _destinations(others):
        if destination.overlaps(network):
            yield _in_use("the host route to", destination, network)
    if around.child_range is not None and around.child_range.overlaps(network):
        yield _in_use("the child range", around.child_range, network)


def _destinations(routes: Iterable[Route]) -> list[Prefix]:
    found: dict[Prefix, None] = {}
    for route in routes:
        found.update(dict.fromkeys(conflicts.route_networks([route])))
    return list(found)


def _too_small(network: Prefix, around: Surroundings, length: Optional[int]) -> RdmaError:
    held = network.size // around.subnet.size
    wanted = "expected /%d or shorter" % length if length is not None else "and no network holds them"
    return RdmaError(
        "oca_network_too_small",
        "The RDMA network %s holds %d NICs of each node in %s, %d are needed; %s."
        % (network, held, around.subnet, around.nics, wanted),
        hint="Each NIC takes a block of the size of the subnet: 16 NICs need a network of 4 bits more.",
        oca_network=str(network),
        subnet=str(around.subnet),
        held=held,
        needed=around.nics,
        prefix_len=length,
    )


def _in_use(label: str, found: Prefix, network: Prefix) -> RdmaError:
    return RdmaError(
        "oca_network_conflict",
        "The RDMA network %s overlaps %s %s." % (network, label, found),
        hint=_HINT,
        network=str(network),
        label=label,
        found=str(found),
    )
