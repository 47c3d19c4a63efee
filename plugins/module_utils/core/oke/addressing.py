# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Address arithmetic of the OKE profile on an IPv4 fabric (F13-F26).

Private to rdma.k8s: it may change with any release.

With the primary VNIC at a position in its subnet, NIC ``n`` has the offset ``n * block + position``, where a block is
as large as the subnet. The parent is that far into the OCA network, the child equally far into the child range.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Optional, Union

from ..errors import RdmaError
from ..net import Address, Prefix, find_address, find_prefix, quoted
from . import child_range as ranges
from .constants import (
    DEFAULT_CHILD_RANGE,
    DEFAULT_OCA_NETWORK,
    MAX_NICS,
    RULE_PRIORITY,
    SCOPE_LINK,
    TABLE_BASE,
)

Network = Union[Prefix, str]
"""A prefix, or the text of one, which is then read strictly at its place in the order of the checks."""


@dataclass(frozen=True)
class Vnic:
    """The primary VNIC of a node. The subnet may have host bits (F140)."""

    address: Address
    subnet: Prefix


@dataclass(frozen=True)
class UnreadableVnic:
    """VNIC data of which a part is no address or no prefix; kept as text, so that an error can show it."""

    address: str
    subnet: str


AnyVnic = Union[Vnic, UnreadableVnic]


@dataclass(frozen=True)
class Parent:
    """The address that OCA gives to an RDMA NIC, and how it is derived (F13).

    ``offset``, ``block_size`` and ``host_position`` count addresses.
    """

    parent: Address
    offset: int
    block_size: int
    host_position: int


@dataclass(frozen=True)
class Child:
    """The IPvlan child of an RDMA NIC: its address, the length of the child range, its routing table (F13, F14)."""

    parent: Address
    child: Address
    length: int
    offset: int
    block_size: int
    host_position: int
    table: int

    @property
    def child_address(self) -> Prefix:
        """The address with the length of the child range (F14)."""
        return Prefix(4, self.child.value, self.length)


@dataclass(frozen=True)
class ChildRoute:
    """The route of a child: the range, on link, in its own table (F39)."""

    destination: Prefix
    source: Address
    scope: int
    table: int


@dataclass(frozen=True)
class ChildRule:
    """The rule of a child: what comes from the child looks up its table (F39)."""

    priority: int
    source: Prefix
    table: int


@dataclass(frozen=True)
class Routing:
    """What the profile configures in the pod beside the interface (F38, F39)."""

    address: Prefix
    route: ChildRoute
    rule: ChildRule


@dataclass(frozen=True)
class PlannedNic:
    """One NIC of a plan: its child, or the error that keeps it from having one."""

    nic_index: int
    child: Optional[Child]
    error: Optional[RdmaError]


def read_vnic(address: Any, subnet: Any) -> AnyVnic:
    """The VNIC of two texts; what is not an address and a prefix stays text and fails when it is used (F25)."""
    found = find_address(address), find_prefix(subnet)
    if found[0] is None or found[1] is None:
        return UnreadableVnic(
            *[value if isinstance(value, str) else quoted(value) for value in (address, subnet)]
        )
    return Vnic(found[0], found[1])


def derive_parent(
    vnic: Optional[AnyVnic], nic_index: int, oca_network: Network = DEFAULT_OCA_NETWORK
) -> Parent:
    """The address that OCA's classic formula gives to NIC ``nic_index`` (F13, F21; checks 2 to 7 of F25).

    :raises RdmaError: ``vnic_missing``, ``vnic_not_ipv4``, ``vnic_outside_subnet``, ``oca_network_invalid``,
        ``subnet_overlaps_oca_network``, ``nic_index_negative``, ``outside_oca_network``
    """
    address, subnet = require_vnic(vnic)
    network = require_oca_network(oca_network)
    _raise_first(subnet_errors(subnet, network))
    if nic_index < 0:
        raise RdmaError(
            "nic_index_negative",
            "NIC index %d is negative." % nic_index,
            hint="The first NIC has index 0.",
            nic_index=nic_index,
        )
    position = address.value - subnet.value
    offset = nic_index * subnet.size + position
    if offset >= network.size:
        raise RdmaError(
            "outside_oca_network",
            "The parent address of NIC index %d with a /%d subnet lies outside the OCA RDMA network %s."
            % (nic_index, subnet.length, network),
            hint="Give OCA a larger rdma_network: /%d holds 16 NICs." % max(subnet.length - 4, 0),
            nic_index=nic_index,
            subnet_prefix_len=subnet.length,
            oca_network=str(network),
        )
    return Parent(Address(4, network.value + offset), offset, subnet.size, position)


def derive_child(
    vnic: Optional[AnyVnic],
    nic_index: int,
    oca_network: Network = DEFAULT_OCA_NETWORK,
    child_range: Network = DEFAULT_CHILD_RANGE,
) -> Child:
    """Parent and child of NIC ``nic_index``, with all checks of F25 in their order.

    :param oca_network: the network of OCA's file, or the default (F6).
    :param child_range: the option of the driver, or the default (F6).
    :raises RdmaError: those of :func:`derive_parent` and of :func:`.child_range.validate`, ``nic_index_too_large``,
        ``oca_network_overlaps_child_range``, ``subnet_overlaps_child_range``, ``child_range_smaller_than_subnet``,
        ``outside_child_range``
    """
    _require_index(nic_index)
    parent = derive_parent(vnic, nic_index, oca_network)
    subnet = require_vnic(vnic)[1]
    wanted = child_range if isinstance(child_range, (str, Prefix)) else ranges.validate(child_range)
    children = _checked_range(subnet, require_oca_network(oca_network), wanted)
    if parent.offset >= children.size:
        raise _outside_child_range(nic_index, subnet.length, children)
    return Child(
        parent.parent,
        Address(4, children.value + parent.offset),
        children.length,
        parent.offset,
        parent.block_size,
        parent.host_position,
        TABLE_BASE + nic_index,
    )


@lru_cache(maxsize=1024)
def _checked_range(subnet: Prefix, oca_network: Prefix, child_range: Network) -> Prefix:
    """Checks 8 to 11 of F25: kept, since all NICs of all nodes of a subnet share the answer (an error is not kept)."""
    children = ranges.validate(child_range)
    _raise_first(range_errors(subnet, oca_network, children))
    return children


def subnet_errors(subnet: Prefix, oca_network: Prefix) -> Iterator[RdmaError]:
    """Check 6 of F25, the same for all nodes of a subnet."""
    if subnet.overlaps(oca_network):
        yield RdmaError(
            "subnet_overlaps_oca_network",
            "The primary VNIC subnet %s overlaps the OCA RDMA network %s." % (subnet, oca_network),
            hint="Move the nodes into another subnet, or give OCA another rdma_network in rdma_network.json.",
            subnet=str(subnet),
            oca_network=str(oca_network),
        )


def range_errors(subnet: Prefix, oca_network: Prefix, child_range: Prefix) -> Iterator[RdmaError]:
    """Checks 9 to 11 of F25, the same for all NICs of all nodes of a subnet; every one that fails, in order."""
    if oca_network.overlaps(child_range):
        yield RdmaError(
            "oca_network_overlaps_child_range",
            "The OCA RDMA network %s overlaps the child range %s." % (oca_network, child_range),
            hint="Choose a child range beside the OCA network.",
            oca_network=str(oca_network),
            child_range=str(child_range),
        )
    if subnet.overlaps(child_range):
        yield RdmaError(
            "subnet_overlaps_child_range",
            "The primary VNIC subnet %s overlaps the child range %s." % (subnet, child_range),
            hint="Choose a child range that no subnet of the VCN uses.",
            subnet=str(subnet),
            child_range=str(child_range),
        )
    if child_range.length > subnet.length:
        yield ranges.smaller_than_subnet(str(child_range), str(subnet))


def _raise_first(errors: Iterator[RdmaError]) -> None:
    for error in errors:
        raise error


def invert_index(
    vnic: Optional[AnyVnic], address: Union[Address, str], oca_network: Network = DEFAULT_OCA_NETWORK
) -> int:
    """The index of the NIC that holds ``address``, from OCA's formula read backwards (F20). It may exceed 15.

    :raises RdmaError: ``vnic_missing``, ``vnic_not_ipv4``, ``vnic_outside_subnet``, ``oca_network_invalid``,
        ``address_outside_oca_network``, ``address_position_mismatch``
    """
    primary, subnet = require_vnic(vnic)
    network = require_oca_network(oca_network)
    found = address if isinstance(address, Address) else find_address(address)
    if found is None or not network.contains(found):
        raise RdmaError(
            "address_outside_oca_network",
            "The address %s is outside the OCA RDMA network %s." % (address, network),
            hint="Compare rdma_network in rdma_network.json with the addresses of the RDMA NICs.",
            address=str(address),
            oca_network=str(network),
        )
    position = primary.value - subnet.value
    index, rest = divmod(found.value - network.value, subnet.size)
    if rest != position:
        raise RdmaError(
            "address_position_mismatch",
            "The address %s has position %d in its block of a /%d subnet, expected %d, the position of the primary "
            "VNIC %s." % (found, rest, subnet.length, position, primary),
            hint="The NIC holds an address of another node or of another formula: look at the log of OCA.",
            address=str(found),
            host_position=position,
            subnet_prefix_len=subnet.length,
        )
    return index


def routing(child: Address, child_range: Prefix, nic_index: int) -> Routing:
    """Address, route and rule of a child (F38, F39)."""
    table = TABLE_BASE + nic_index
    return Routing(
        Prefix(4, child.value, child_range.length),
        ChildRoute(child_range, child, SCOPE_LINK, table),
        ChildRule(RULE_PRIORITY, Prefix(4, child.value, 32), table),
    )


def plan_node(
    vnic: Optional[AnyVnic],
    nic_indexes: Iterable[int],
    oca_network: Network = DEFAULT_OCA_NETWORK,
    child_range: Network = DEFAULT_CHILD_RANGE,
) -> list[PlannedNic]:
    """The children of one node, one entry for each index, with the error where there is none."""
    return [_planned(vnic, index, oca_network, child_range) for index in nic_indexes]


def _planned(
    vnic: Optional[AnyVnic], nic_index: int, oca_network: Network, child_range: Network
) -> PlannedNic:
    try:
        return PlannedNic(nic_index, derive_child(vnic, nic_index, oca_network, child_range), None)
    except RdmaError as error:
        return PlannedNic(nic_index, None, error)


def _require_index(nic_index: int) -> None:
    if nic_index >= MAX_NICS:
        raise RdmaError(
            "nic_index_too_large",
            "NIC index %d is too large: the largest is %d." % (nic_index, MAX_NICS - 1),
            hint="The profile serves rdma0 to rdma%d of a node; claim no other NIC." % (MAX_NICS - 1),
            nic_index=nic_index,
            largest_nic_index=MAX_NICS - 1,
        )


def require_vnic(vnic: Optional[AnyVnic]) -> tuple[Address, Prefix]:
    """Checks 2 to 4 of F25: the address and the masked subnet of the primary VNIC.

    :raises RdmaError: ``vnic_missing``, ``vnic_not_ipv4``, ``vnic_outside_subnet``
    """
    if vnic is None:
        raise RdmaError(
            "vnic_missing",
            "The address and subnet of the primary VNIC are not known.",
            hint="Read /vnics/ of the metadata service on the node, or give them.",
        )
    address, subnet = vnic.address, vnic.subnet
    if isinstance(address, str) or isinstance(subnet, str) or address.version != 4 or subnet.version != 4:
        raise RdmaError(
            "vnic_not_ipv4",
            "The primary VNIC has address %s in subnet %s, expected IPv4 for both."
            % (str(address) or "''", str(subnet) or "''"),
            hint="The profile derives from an IPv4 primary VNIC: look at /vnics/ of the metadata service.",
            address=str(address),
            subnet=str(subnet),
        )
    if not subnet.contains(address):
        raise RdmaError(
            "vnic_outside_subnet",
            "The primary VNIC address %s is outside its subnet %s." % (address, subnet.masked()),
            hint="Address and subnet belong to two VNICs, or one was typed wrong.",
            address=str(address),
            subnet=str(subnet.masked()),
        )
    return address, subnet.masked()


def require_oca_network(network: Network) -> Prefix:
    """Check 5 of F25.

    :raises RdmaError: ``oca_network_invalid``
    """
    found = network if isinstance(network, Prefix) else find_prefix(network)
    if found is None or found.version != 4 or not found.is_masked:
        raise RdmaError(
            "oca_network_invalid",
            "The OCA RDMA network %s is not an IPv4 prefix without host bits."
            % (network if isinstance(network, Prefix) else quoted(network)),
            hint="Correct rdma_network in rdma_network.json; OCA's default is %s." % DEFAULT_OCA_NETWORK,
            oca_network=str(network),
        )
    return found


def _outside_child_range(nic_index: int, subnet_length: int, child_range: Prefix) -> RdmaError:
    """The error of check 12 of F25; its message names the length that holds 16 NICs when there is one (F26)."""
    length = ranges.length_for(subnet_length)
    needed = "16 NICs need a /%d range" % length if length else "no range holds 16 NICs of such a subnet"
    return RdmaError(
        "outside_child_range",
        "The child of NIC index %d with a /%d subnet lies outside the child range %s; %s."
        % (nic_index, subnet_length, child_range, needed),
        hint="Choose a larger range, the same on all nodes, or claim fewer NICs.",
        nic_index=nic_index,
        subnet_prefix_len=subnet_length,
        child_range=str(child_range),
        prefix_len_for_16=length,
    )
