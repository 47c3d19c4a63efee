# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The children of a whole fleet: derived, checked, compared (B1). Private to rdma.k8s: it may change with any release.

The first node of a subnet goes through :func:`.addressing.derive_child`, NIC by NIC. Its blocks, and its errors, are
those of all nodes of the subnet with the same NICs, which differ in their position alone: for them integers are added.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Optional

from ..errors import RdmaError
from ..net import Address, Prefix, find_address, find_prefix
from ..snapshot import Route
from .addressing import AnyVnic, Child, Network, Vnic, plan_node, read_vnic
from .child_range import validate
from .constants import DEFAULT_CHILD_RANGE, DEFAULT_OCA_NETWORK, MAX_NICS, TABLE_BASE

HEADER = "NODE NIC PARENT CHILD TABLE"
"""The columns of :meth:`FleetPlan.text_rows`."""


@dataclass(frozen=True)
class FleetNode:
    """One node of a fleet. Texts are read strictly (F29), as they come from a snapshot or an inventory.

    :param address: of the primary VNIC; with ``subnet`` (its prefix) empty when it is not known.
    :param nics: the indexes of the RDMA NICs.
    :param oca_network: what OCA uses on this node.
    :param vnics: the document of ``/vnics/``; ``None``: not read.
    :param routes: routes of all tables; ``None``: not read.
    :param service_host: the text of KUBERNETES_SERVICE_HOST.
    """

    name: str
    address: str
    subnet: str
    nics: Sequence[int]
    oca_network: str = str(DEFAULT_OCA_NETWORK)
    vnics: Any = None
    routes: Optional[Sequence[Route]] = None
    service_host: str = ""

    @property
    def vnic(self) -> Optional[AnyVnic]:
        """The primary VNIC; ``None`` when nothing of it is known."""
        return read_vnic(self.address, self.subnet) if self.address or self.subnet else None


@dataclass(frozen=True)
class Grid:
    """The blocks of the NICs of a subnet, the same for all its nodes with the same NICs.

    :param oca_base: the first address of the OCA network, as a number.
    :param block: addresses of a block.
    :param indexes: of the NICs that have a child; ``offsets`` are the starts of their blocks.
    :param errors: index and error of the NICs that have none.
    """

    oca_base: int
    block: int
    indexes: tuple[int, ...]
    offsets: tuple[int, ...]
    errors: tuple[tuple[int, RdmaError], ...]


class Slots(NamedTuple):
    """The NICs of one node: each stands at ``position`` in its block."""

    node: str
    position: int
    grid: Grid


@dataclass(frozen=True)
class NicError:
    """A NIC without a child, and why."""

    node: str
    nic_index: int
    error: RdmaError


@dataclass(frozen=True)
class Clash:
    """A child address that several NICs would get: pairs of node and NIC index (F23)."""

    child: Address
    holders: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class FleetPlan:
    """The children of a fleet for one range, in the order in which the nodes were given."""

    child_range: Prefix
    slots: tuple[Slots, ...]
    errors: tuple[NicError, ...]
    clashes: tuple[Clash, ...]

    @property
    def count(self) -> int:
        """How many NICs have a child."""
        return sum([len(entry.grid.indexes) for entry in self.slots])

    def children(self) -> Iterator[tuple[str, int, Child]]:
        """Node, NIC index and child of every NIC that has one."""
        base, length = self.child_range.network, self.child_range.length
        for node, position, grid in self.slots:
            for index, start in zip(grid.indexes, grid.offsets):
                offset = start + position
                parent, child = Address(4, grid.oca_base + offset), Address(4, base + offset)
                yield (
                    node,
                    index,
                    Child(parent, child, length, offset, grid.block, position, TABLE_BASE + index),
                )

    def text_rows(self) -> Iterator[str]:
        """One line for each child: node, NIC index, parent, child with length, table (see :data:`HEADER`)."""
        base, length = self.child_range.network, self.child_range.length
        ends = ["/%d %d" % (length, TABLE_BASE + index) for index in range(MAX_NICS)]
        half = _Halves()
        for node, position, grid in self.slots:
            parents, children = grid.oca_base + position, base + position
            for index, start in zip(grid.indexes, grid.offsets):
                parent, child = parents + start, children + start
                yield (
                    f"{node} {index} {half[parent >> 16]}.{half[parent & 0xFFFF]} "
                    f"{half[child >> 16]}.{half[child & 0xFFFF]}{ends[index]}"
                )


class _Halves(dict[int, str]):
    """The text of two octets of an address, made when it is first needed: at most 65536 of them."""

    def __missing__(self, value: int) -> str:
        self[value] = text = "%d.%d" % (value >> 8, value & 255)
        return text


def plan_fleet(nodes: Iterable[FleetNode], child_range: Network = DEFAULT_CHILD_RANGE) -> FleetPlan:
    """Derive and check the children of all nodes, and find addresses that are given twice.

    A NIC that cannot have a child is in ``errors``, with the error that the driver would give.

    :param child_range: a prefix, or the text of the option.
    :raises RdmaError: as :func:`.child_range.validate`
    """
    wanted = validate(child_range)
    planner = _Planner(wanted)
    slots = [planner.slots(node) for node in nodes]
    errors = [NicError(entry.node, *error) for entry in slots for error in entry.grid.errors]
    taken: set[int] = set()
    for _node, position, grid in slots:
        taken.update([position + start for start in grid.offsets])
    plan = FleetPlan(wanted, tuple(slots), tuple(errors), ())
    return plan if len(taken) == plan.count else replace(plan, clashes=_clashes(plan))


class _Planner:
    """Keeps the grids of the subnets seen so far."""

    def __init__(self, child_range: Prefix) -> None:
        self.child_range = child_range
        self.known: dict[Any, tuple[Prefix, Grid]] = {}

    def slots(self, node: FleetNode) -> Slots:
        key = (node.subnet, node.oca_network, tuple(node.nics))
        if key in self.known:
            subnet, grid = self.known[key]
            address = find_address(node.address)
            if address is not None and subnet.contains(address):
                return Slots(node.name, address.value - subnet.value, grid)
        return self._derive(node, key)

    def _derive(self, node: FleetNode, key: Any) -> Slots:
        """Derive a node by itself; its grid is kept when it holds for all nodes of the subnet."""
        vnic = node.vnic
        planned = plan_node(vnic, node.nics, node.oca_network, self.child_range)
        children = [(nic.nic_index, nic.child) for nic in planned if nic.child is not None]
        first = children[0][1] if children else None
        grid = Grid(
            oca_base=first.parent.value - first.offset if first else 0,
            block=first.block_size if first else 0,
            indexes=tuple([index for index, _child in children]),
            offsets=tuple([child.offset - child.host_position for _index, child in children]),
            errors=tuple([(nic.nic_index, nic.error) for nic in planned if nic.error is not None]),
        )
        if isinstance(vnic, Vnic) and vnic.subnet.contains(vnic.address):
            subnet = vnic.subnet.masked()
            oca_network = find_prefix(node.oca_network)
            # In an OCA network smaller than a block, whether a NIC fits depends on the position.
            if oca_network is None or oca_network.length <= subnet.length:
                self.known[key] = subnet, grid
        return Slots(node.name, first.host_position if first else 0, grid)


def _clashes(plan: FleetPlan) -> tuple[Clash, ...]:
    holders: dict[int, list[tuple[str, int]]] = {}
    base = plan.child_range.network
    for node, position, grid in plan.slots:
        for index, start in zip(grid.indexes, grid.offsets):
            holders.setdefault(base + start + position, []).append((node, index))
    return tuple(
        [Clash(Address(4, child), tuple(found)) for child, found in sorted(holders.items()) if len(found) > 1]
    )
