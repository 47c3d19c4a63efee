# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What checks look at: one node, or the fleet. Private to rdma.k8s: it may change with any release."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import cached_property
from typing import Any, Optional

from .. import nics as joined
from ..ack import fabric_ip
from ..cluster_snapshot import ClusterNode, ClusterSnapshot
from ..errors import RdmaError
from ..net import Prefix
from ..oke import addressing, child_range
from ..oke.installed import Installed
from ..oke.networks import NetworkDocument
from ..oke.view import NodeView
from ..snapshot import NodeSnapshot, Slow
from ..spiderpool.wanted import ClusterWish
from .policy import ACK, Policy


class Node(NodeView):
    """One node of the fleet with its snapshot and what follows from it.

    :param child_range: range that this node uses, when it differs from the policy's.
    :param network: name of its RDMA network, when the inventory knows better than the island in IMDS.
    :param judged_at: when the judgement is made, UTC, ``YYYY-MM-DDThh:mm:ssZ``.
    :param around: the networks that the API of the cluster names; ``None``: it was not read.
    """

    def __init__(
        self,
        snapshot: NodeSnapshot,
        policy: Policy,
        child_range: str = "",
        network: str = "",
        judged_at: str = "",
        *,
        around: Optional[NetworkDocument] = None,
    ) -> None:
        super().__init__(snapshot, policy.shape_table, policy.fabric or "")
        self.policy = policy
        self.around = around
        self.range_text = child_range or policy.child_range
        self.network_name = network
        self.judged_at = judged_at

    @cached_property
    def nics(self) -> tuple[joined.Nic, ...]:
        """The RDMA NICs of the fabric. On a Lingjun node those with an RDMA port, but for that of the VPC (A64)."""
        if self.policy.target != ACK:
            return super().nics
        return tuple(
            sorted(
                [nic for nic in self.all_nics if nic.ports and nic.name != fabric_ip.VPC_INTERFACE],
                key=self._order,
            )
        )

    @property
    def has_ipv4_children(self) -> bool:
        """As for any node, but for Lingjun nodes, which have no children."""
        return self.policy.target != ACK and super().has_ipv4_children

    @cached_property
    def fabric_interfaces(self) -> Optional[list[fabric_ip.Interface]]:
        """The interfaces as the rules about the IP version of a Lingjun network see them; ``None``: not known."""
        links, devices = self.snapshot.links, self.snapshot.devices
        if links is None or devices is None:
            return None
        return fabric_ip.interfaces_of(links, [nic.name for nic in self.all_nics if nic.ports])

    @property
    def slow(self) -> Slow:
        """The subset ``slow``; where it was not read, all of it is not known."""
        return self.snapshot.slow or Slow()

    def why_no_vnic(self) -> str:
        """Why the primary VNIC is not known."""
        found = self.vnic_or_error
        return found.message if isinstance(found, RdmaError) else "The primary VNIC has no IPv4 address yet."

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
        """Each Ethernet RDMA NIC with its derived :class:`addressing.Child`, or the error that refuses it."""
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

    @property
    def pool(self) -> str:
        """The RDMA network as the inventory names it, else OCA network and shape: one cluster network has one shape."""
        if self.network_name or self.policy.target == ACK:
            return self.network_name
        words = [
            str(self.oca_config.network) if self.fabric != "infiniband" else "infiniband",
            self.shape_name,
        ]
        return " ".join([word for word in words if word])

    @cached_property
    def view(self) -> dict[str, Any]:
        """The node as plain data for expressions of the user: the snapshot, its NICs, and what follows from them."""
        view = self.snapshot.to_dict()
        view["nics"] = [joined.as_dict(nic) for nic in self.nics]
        view["derived"] = {
            "shape": self.shape_name or None,
            "fabric": self.fabric or None,
            "oca_network": str(self.oca_config.network),
            "address_mode": self.oca_config.address_mode,
            "child_range": self.range_text,
            "vnic": None
            if self.vnic is None
            else {"ip": str(self.vnic.address), "subnet": str(self.vnic.subnet)},
        }
        return view


class Fleet:
    """All reachable nodes of a run, and the cluster that they are in, when its API was read.

    :param judged_at: when the judgement is made, UTC, ``YYYY-MM-DDThh:mm:ssZ``.
    """

    def __init__(
        self,
        nodes: Iterable[Node],
        policy: Policy,
        cluster: Optional[ClusterSnapshot] = None,
        judged_at: str = "",
    ) -> None:
        self.nodes = tuple(nodes)
        self.policy = policy
        self.cluster = cluster
        self.judged_at = judged_at

    def of(self, nodes: Iterable[Node]) -> Fleet:
        """The same run with some of the nodes."""
        found = Fleet(nodes, self.policy, self.cluster, self.judged_at)
        found.__dict__.update(installed=self.installed, sriov=self.sriov)  # it is the same cluster
        return found

    @cached_property
    def installed(self) -> Installed:
        """What the cluster runs of DRANET; nothing without a cluster."""
        return Installed(self.cluster or ClusterSnapshot())

    @cached_property
    def sriov(self) -> ClusterWish:
        """What the objects of Spiderpool and of the SR-IOV operator ask for; nothing without a cluster."""
        return ClusterWish(self.cluster or ClusterSnapshot(), self.policy.resource_prefix)

    @cached_property
    def cluster_nodes(self) -> dict[str, Optional[ClusterNode]]:
        """The node of the cluster that each node is, by the name of the latter; ``None``: none, or not one alone.

        The name in the inventory need not be that in the cluster: a node is found by its name, then by the address of
        its primary VNIC, then by what it calls itself.
        """
        found = self.cluster.nodes if self.cluster is not None else None
        by_name = {node.name: node for node in found or ()}
        by_address: dict[str, list[ClusterNode]] = {}
        for entry in found or ():
            for address in {told.partition(" ")[2] for told in entry.addresses}:  # two types can have one
                by_address.setdefault(address, []).append(entry)
        return {node.name: by_name.get(node.name) or _only(by_address, node) for node in self.nodes}

    def why_no_cluster_node(self, node: Node) -> str:
        """Why :attr:`cluster_nodes` has none for a node."""
        if self.cluster is None:
            return "No cluster is in this run."
        if self.cluster.nodes is None:
            return cluster_reason(self.cluster, "nodes", "nodes")
        return "No node of the cluster has the name %s, the address %s or the host name %s." % (
            node.name,
            node.vnic.address if node.vnic is not None else "(not known)",
            node.snapshot.host.hostname or "(not known)",
        )

    @cached_property
    def networks(self) -> dict[str, list[Node]]:
        """The nodes with IPv4 children by RDMA network, as :attr:`network_names` names it."""
        groups: dict[str, list[Node]] = {}
        for node in self.nodes:
            if node.has_ipv4_children and node.ethernet_nics:
                groups.setdefault(self.network_names[node.name], []).append(node)
        return groups

    @cached_property
    def network_names(self) -> dict[str, str]:
        """The RDMA network of each node: its pool, apart by HPC island where the pool's nodes name several.

        A node whose metadata tells no island goes with the island of most nodes, so that it is compared with them.
        """
        islands: dict[str, Counter[str]] = {}
        for node in self.nodes:
            if node.island and not node.network_name:
                islands.setdefault(node.pool, Counter())[node.island] += 1
        return {node.name: self._name(node, islands.get(node.pool, Counter())) for node in self.nodes}

    @staticmethod
    def _name(node: Node, islands: Counter[str]) -> str:
        if node.network_name or len(islands) < 2:
            return node.pool
        return "%s %s" % (node.pool, node.island or most_common(islands))


def _only(by_address: dict[str, list[ClusterNode]], node: Node) -> Optional[ClusterNode]:
    """The one node of the cluster with the address or the host name of a node."""
    for key in (str(node.vnic.address) if node.vnic is not None else "", node.snapshot.host.hostname):
        held = by_address.get(key, []) if key else []
        if len(held) == 1:
            return held[0]
    return None


def cluster_reason(cluster: ClusterSnapshot, subset: str, *sources: str) -> str:
    """Why a part of a cluster is not known: the read error, or that it was not asked for."""
    error = cluster.error_of(*sources)
    if error:
        return "Not readable: %s." % error.rstrip(".")
    if subset not in cluster.subsets:
        return "The subset '%s' of the cluster was not read." % subset
    return "The cluster does not tell (%s)." % ", ".join(sources)


def most_common(counts: Counter[str]) -> str:
    """The value that most have; of equal counts the last in text order, so that chance has no part in it."""
    return max(counts, key=lambda value: (counts[value], value))
