# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What ``plan`` takes from snapshots and from a policy. Private to rdma.k8s: it may change with any release."""

from __future__ import annotations

from argparse import Namespace

from ..core.checks.context import Node
from ..core.checks.policy import Policy
from ..core.errors import RdmaError
from ..core.oke.fleet import FleetNode
from ..core.oke.range_check import LabelledNetwork, of_document
from . import sources
from .places import fleet_of
from .plan import LeftOut

LABELS = {
    "vcn_cidrs": "VCN network",
    "pod_cidrs": "pod network",
    "service_cidrs": "service network",
    "peer_cidrs": "peered network",
}
Group = tuple[str, list[FleetNode], dict[tuple[str, int], str]]


def policy_of(arguments: Namespace) -> Policy:
    """The policy of the options alone."""
    return sources.policy_of(sources.Source(""), arguments.policy, arguments.set)


def in_use(policy: Policy) -> list[LabelledNetwork]:
    """The networks that the policy names, in its settings and in its document."""
    named = [
        LabelledNetwork(LABELS.get(kind, kind), network.masked())
        for kind, networks in policy.networks.items()
        for network in networks
    ]
    return named + of_document(policy.around)


def groups(arguments: Namespace) -> tuple[Policy, list[Group], list[LeftOut]]:
    """The policy, the nodes of each RDMA network, and whatever gets no child, with the reason."""
    source = sources.with_nodes(sources.read(arguments.source))
    policy = sources.policy_of(source, arguments.policy, arguments.set)
    fleet = fleet_of(source.nodes or (), policy)
    left_out = [
        LeftOut(entry.name, "", entry.reason) for entry in source.nodes or () if entry.snapshot is None
    ]
    planned = {node.name for nodes in fleet.networks.values() for node in nodes}
    for node in fleet.nodes:
        if node.name not in planned:
            reason = "The fabric is %s: no NIC gets an IPv4 child." % node.fabric
            if node.has_ipv4_children:
                reason = "No Ethernet RDMA NIC was found."
            left_out.append(LeftOut(node.name, "", reason))
    found = []
    for name, nodes in sorted(fleet.networks.items()):
        names: dict[tuple[str, int], str] = {}
        for node in nodes:
            left_out += _names(node, names)
        found.append((name, [node.as_fleet_node() for node in nodes], names))
    return policy, found, left_out


def _names(node: Node, names: dict[tuple[str, int], str]) -> list[LeftOut]:
    """Note the NICs that are not called rdmaN; return those without an index, with the reason."""
    unknown = []
    for nic in node.ethernet_nics:
        try:
            index = node.index_of(nic)
        except RdmaError as error:
            unknown.append(LeftOut(node.name, nic.name, error.message))
            continue
        if nic.name != "rdma%d" % index:
            names[(node.name, index)] = nic.name
    return unknown
