# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What checks look at: one node, or the fleet. Private to rdma.k8s: it may change with any release.

Both compute what several checks need once, when it is first asked for.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, Iterable, Optional

from .. import nics as joined
from ..errors import RdmaError
from ..net import Address, Prefix
from ..oke import addressing, child_range, imds, layout, oca, shapes
from ..oke import nics as oke_nics
from ..snapshot import NodeSnapshot
from .policy import Policy


class Node:
    """One node of the fleet with its snapshot and what follows from it.

    :param child_range: range that this node uses, when it differs from the policy's.
    :param network: name of its RDMA network, when the inventory knows better than the island in IMDS.
    :param judged_at: when the judgement is made, UTC, ``YYYY-MM-DDThh:mm:ssZ``.
    """

    def __init__(
        self,
        snapshot: NodeSnapshot,
        policy: Policy,
        child_range: str = "",
        network: str = "",
        judged_at: str = "",
    ) -> None:
        self.name = snapshot.name
        self.snapshot = snapshot
        self.policy = policy
        self.range_text = child_range or policy.child_range
        self.network_name = network
        self.judged_at = judged_at

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
    def vnic(self) -> Optional[addressing.Vnic]:
        found = self.vnic_or_error
        return None if isinstance(found, RdmaError) else found

    @cached_property
    def metadata_and_errors(self) -> tuple[imds.Metadata, list[RdmaError]]:
        """What the driver would keep of ``/host/`` and ``/instance/``, and why a document is of no use (F66)."""
        documents = self.snapshot.imds
        return imds.read(documents.host, documents.instance) if documents is not None else imds.read(None, None)

    @property
    def metadata(self) -> imds.Metadata:
        return self.metadata_and_errors[0]

    @property
    def shape_name(self) -> str:
        return self.metadata.shape

    @cached_property
    def shape(self) -> Optional[shapes.Shape]:
        return shapes.lookup(self.shape_name, self.policy.shape_table) if self.shape_name else None

    @property
    def island(self) -> str:
        """The HPC island as IMDS tells it, shortened; empty when it does not."""
        return self.metadata.hpc_island_id

    @cached_property
    def fabric(self) -> str:
        """``ipv4``, ``ipv6``, ``infiniband``, or empty when nothing tells: policy, live ports, metadata, then the table."""
        if self.policy.fabric:
            return self.policy.fabric
        layers = {nic.link_layer for nic in self.all_nics if self._is_fabric_nic(nic)}
        if joined.INFINIBAND in layers:
            return "infiniband"
        if self.metadata.fabric is not None:
            return "ipv6" if self.metadata.fabric.ipv6 else "ipv4"
        return self.shape.fabric if self.shape is not None else ""

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
        return oke_nics.interfaces_of(self.snapshot.links or ())

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
        """The RDMA NICs: identified by name or address (F73), native InfiniBand (F81), or at a place of the shape table."""
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

    # Child range

    @cached_property
    def range_or_error(self) -> Any:
        """The child range, or the :class:`RdmaError` of its own rules (F27)."""
        try:
            return child_range.validate(self.range_text)
        except RdmaError as error:
            return error

    @property
    def child_range(self) -> Optional[Prefix]:
        found = self.range_or_error
        return None if isinstance(found, RdmaError) else found

    @cached_property
    def nic_count(self) -> int:
        """How many RDMA NICs the range must hold: the shape table's number, else those found."""
        return self.shape.rdma_nics if self.shape is not None else len(self.ethernet_nics)

    @cached_property
    def children(self) -> tuple[tuple[joined.Nic, Any], ...]:
        """Each Ethernet RDMA NIC with its derived :class:`addressing.Child`, or the :class:`RdmaError` that refuses it."""
        return tuple([(nic, self._child(nic)) for nic in self.ethernet_nics])

    def _child(self, nic: joined.Nic) -> Any:
        if self.child_range is None:
            return self.range_or_error
        if isinstance(self.vnic_or_error, RdmaError):
            return self.vnic_or_error
        try:
            return addressing.derive_child(
                self.vnic, self.index_of(nic), self.oca_config.network, self.child_range
            )
        except RdmaError as error:
            return error

    @cached_property
    def network(self) -> str:
        """The RDMA network that the node belongs to: named by the inventory, else by island, else by the OCA network."""
        if self.network_name:
            return self.network_name
        if self.fabric == "infiniband":
            return self.island or "infiniband"
        return "%s %s" % (self.oca_config.network, self.island) if self.island else str(self.oca_config.network)

    @cached_property
    def view(self) -> dict[str, Any]:
        """The node as plain data for expressions of the user: the snapshot, its NICs, and what was derived from them."""
        view = self.snapshot.to_dict()
        view["nics"] = [joined.as_dict(nic) for nic in self.nics]
        view["derived"] = {
            "shape": self.shape_name or None,
            "fabric": self.fabric or None,
            "network": self.network,
            "oca_network": str(self.oca_config.network),
            "address_mode": self.oca_config.address_mode,
            "child_range": self.range_text,
            "vnic": None if self.vnic is None else {"ip": str(self.vnic.address), "subnet": str(self.vnic.subnet)},
        }
        return view

    # Reasons

    def why_not(self, source: str, subset: str) -> str:
        """Why something is not known: the read error, or that the subset was not gathered."""
        error = self.snapshot.error_of(source)
        if error:
            return "Not readable: %s." % error
        if subset not in self.snapshot.subsets:
            return "Subset '%s' was not gathered." % subset
        return "The node does not tell (%s)." % source


class Fleet:
    """All reachable nodes of a run."""

    def __init__(self, nodes: Iterable[Node], policy: Policy) -> None:
        self.nodes = tuple(nodes)
        self.policy = policy

    @cached_property
    def networks(self) -> dict[str, list[Node]]:
        """The nodes by RDMA network (Ethernet fabrics with IPv4 only: others derive no addresses)."""
        groups: dict[str, list[Node]] = {}
        for node in self.nodes:
            if node.fabric not in ("ipv6", "infiniband") and node.ethernet_nics:
                groups.setdefault(node.network, []).append(node)
        return groups

