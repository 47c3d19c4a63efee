# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A node's snapshot read as the OKE provider reads the node. Private to rdma.k8s: it may change with any release.

Everything is computed when it is first asked for, and once.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, Optional

from .. import nics as joined
from ..errors import RdmaError
from ..net import Address
from ..snapshot import NodeSnapshot
from . import imds, layout, nics as oke_nics, oca, shapes
from .addressing import Vnic
from .fleet import FleetNode


class NodeView:
    """One node as its snapshot shows it.

    :param table: the shape table.
    :param fabric: what the user says of the fabric; empty: the node tells.
    """

    def __init__(
        self, snapshot: NodeSnapshot, table: shapes.Table = shapes.DEFAULT_TABLE, fabric: str = ""
    ) -> None:
        self.snapshot = snapshot
        self.name = snapshot.name
        self.table = table
        self.given_fabric = fabric

    # Metadata

    @cached_property
    def vnic_or_error(self) -> Any:
        """The primary VNIC, ``None`` (no IPv4 yet), or the :class:`RdmaError` that says why it is not known."""
        if self.snapshot.imds is None or self.snapshot.imds.vnics is None:
            return RdmaError("vnic_not_available", self.why_not("imds:/vnics/", "imds"))
        try:
            return imds.parse_primary_vnic(self.snapshot.imds.vnics)
        except RdmaError as error:
            return error

    @property
    def vnic(self) -> Optional[Vnic]:
        found = self.vnic_or_error
        return None if isinstance(found, RdmaError) else found

    @cached_property
    def metadata_and_errors(self) -> tuple[imds.Metadata, list[RdmaError]]:
        """What the driver would keep of ``/host/`` and ``/instance/``, and why a document is of no use (F66)."""
        documents = self.snapshot.imds
        return (
            imds.read(documents.host, documents.instance) if documents is not None else imds.read(None, None)
        )

    @property
    def metadata(self) -> imds.Metadata:
        return self.metadata_and_errors[0]

    @property
    def shape_name(self) -> str:
        return self.metadata.shape

    @cached_property
    def shape(self) -> Optional[shapes.Shape]:
        return shapes.lookup(self.shape_name, self.table) if self.shape_name else None

    @property
    def island(self) -> str:
        """The HPC island as IMDS tells it, shortened; empty when it does not."""
        return self.metadata.hpc_island_id

    @cached_property
    def fabric(self) -> str:
        """``ipv4``, ``ipv6``, ``infiniband``, or empty: told by the user, live ports, metadata, or the table."""
        if self.given_fabric:
            return self.given_fabric
        layers = {nic.link_layer for nic in self.all_nics if self._is_fabric_nic(nic)}
        if layers.difference([None]) == {joined.INFINIBAND}:  # one port among others is a mistake (NODE-014)
            return "infiniband"
        if self.metadata.fabric is not None:
            return "ipv6" if self.metadata.fabric.ipv6 else "ipv4"
        return self.shape.fabric if self.shape is not None else ""

    @property
    def has_ipv4_children(self) -> bool:
        """Whether the profile gives IPv4 children on this fabric; what is not known counts as IPv4 (F4, F81)."""
        return self.fabric not in (shapes.IPV6, shapes.INFINIBAND)

    # Oracle Cloud Agent

    @cached_property
    def oca_config(self) -> oca.OcaConfig:
        """OCA's network and address mode as the driver would load them (F54): defaults where a file is missing."""
        files = self.snapshot.oca
        if files is None:
            return oca.load(None, None)
        return oca.load(files.rdma_network or None, files.rdma_features_enable or None)

    # NICs

    @cached_property
    def all_nics(self) -> tuple[joined.Nic, ...]:
        return joined.join(self.snapshot)

    @cached_property
    def interfaces(self) -> dict[str, oke_nics.Interface]:
        return oke_nics.interfaces_of(self.snapshot.links or (), only_ipv4=True)

    @cached_property
    def identified(self) -> frozenset[str]:
        """Names of the interfaces that the OKE provider takes for RDMA NICs (F73)."""
        return frozenset(oke_nics.identify(self.interfaces, self.oca_config.network).rdma_nics)

    def _is_fabric_nic(self, nic: joined.Nic) -> bool:
        if nic.link_layer == joined.INFINIBAND or (nic.link is not None and nic.link.name in self.identified):
            return True
        return self.shape is not None and bool(nic.pci) and nic.pci in self.shape.pci

    @cached_property
    def nics(self) -> tuple[joined.Nic, ...]:
        """The RDMA NICs: by name or address (F73), native InfiniBand (F81), or at a place of the shape table."""
        return tuple(sorted(filter(self._is_fabric_nic, self.all_nics), key=self._order))

    def _order(self, nic: joined.Nic) -> tuple[int, str]:
        index = oke_nics.nic_index_of_name(nic.name)
        return (1 << 31 if index is None else index, nic.name)

    @cached_property
    def ethernet_nics(self) -> tuple[joined.Nic, ...]:
        """The RDMA NICs that have an Ethernet interface."""
        return tuple([nic for nic in self.nics if nic.link is not None and nic.link.arphrd == 1])

    def index_of(self, nic: joined.Nic) -> int:
        """The index of an RDMA NIC (F34).

        :raises RdmaError: as :func:`layout.nic_index_of`.
        """
        return layout.nic_index_of(self.interfaces[nic.name], self.vnic, self.oca_config.network)

    def addresses_of(self, nic: joined.Nic) -> tuple[Address, ...]:
        """The IPv4 addresses of an RDMA NIC that count (F35)."""
        return self.interfaces[nic.name].ipv4_addresses

    def as_fleet_node(self) -> FleetNode:
        """The node for a plan of the fleet; NICs whose index is not known are left out."""
        indexes = []
        for nic in self.ethernet_nics:
            try:
                indexes.append(self.index_of(nic))
            except RdmaError:
                continue
        vnic = self.vnic
        return FleetNode(
            self.name,
            str(vnic.address) if vnic is not None else "",
            str(vnic.subnet) if vnic is not None else "",
            tuple(indexes),
            str(self.oca_config.network),
            vnics=self.snapshot.imds.vnics if self.snapshot.imds is not None else None,
            routes=self.snapshot.routes,
        )

    # Reasons

    def why_not(self, source: str, subset: str) -> str:
        """Why something is not known: the read error, or that the subset was not gathered."""
        error = self.snapshot.error_of(source)
        if error:
            return "Not readable: %s." % error
        if subset not in self.snapshot.subsets:
            return "Subset '%s' was not gathered." % subset
        return "The node does not tell (%s)." % source
