# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Area RANGE: the child range against everything that is in use. Private to rdma.k8s: it may change any time."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterable
from typing import Callable, Optional

from ..errors import RdmaError
from ..finding import CRITICAL, ERROR, INFO, PASS, Detail
from ..net import Prefix, find_prefix
from ..oke import child_range as rules, conflicts, imds
from ..oke.addressing import Vnic
from ..oke.constants import DEFAULT_CHILD_RANGE, MAX_NICS
from ..oke.networks import OPTIONS
from ..snapshot import Route
from ..workloads.wish import OKE
from .context import Fleet, Node, most_common
from .reads import unread
from .registry import (
    Outcome,
    bad,
    compared,
    failed,
    fleet_check,
    listed,
    node_check,
    ok,
    passed,
    rolled_up,
    skipped,
    unclear,
    unknown,
    warned,
)

NO_IPV4_CHILD = "The fabric is %s: no NIC gets an IPv4 child."
NO_NIC = "No Ethernet RDMA NIC was found on this node."
NOT_GIVEN = "No %s given (setting '%s'); the node itself cannot tell all of them."
RANGE_ERRORS = (
    "nic_index_too_large",
    "oca_network_overlaps_child_range",
    "subnet_overlaps_child_range",
    "child_range_smaller_than_subnet",
    "outside_child_range",
)


def _ipv4_only(check: Callable[[Node], Outcome]) -> Callable[[Node], Outcome]:
    """Skip a check on a fabric that gets no IPv4 children (F4, F81)."""

    def guarded(node: Node) -> Outcome:
        if not node.has_ipv4_children:
            return skipped(NO_IPV4_CHILD % node.fabric)
        return check(node)

    guarded.__doc__ = check.__doc__
    return guarded


@node_check(
    "RDMA-RANGE-001",
    "The child range is a masked IPv4 prefix of length 8 to 30",
    CRITICAL,
    "Correct the range: the driver refuses to start with it.",
    evidence=("setting child_range",),
)
@_ipv4_only
def form(node: Node) -> Outcome:
    """F27-F29."""
    found = node.range_or_error
    if isinstance(found, RdmaError) and found.code != "range_reserved":
        return failed(found.message, expected="masked IPv4 prefix, /8 to /30", observed=node.range_text)
    return passed("%s." % node.range_text)


@node_check(
    "RDMA-RANGE-002",
    "The child range avoids the reserved networks",
    CRITICAL,
    "Choose another range; 'rdma.k8s.child_range_check' proposes free ones.",
    evidence=("setting child_range",),
)
@_ipv4_only
def reserved(node: Node) -> Outcome:
    """F27: this-network, loopback, link-local, multicast, reserved."""
    found = node.range_or_error
    if isinstance(found, RdmaError):
        if found.code == "range_reserved":
            return failed(found.message, expected="no reserved network", observed=node.range_text)
        return skipped("The range is not valid; see RDMA-RANGE-001.")
    return passed("%s overlaps no reserved network." % found)


def _range_and_vnic(node: Node) -> tuple[Optional[Prefix], Optional[Vnic], Optional[Outcome]]:
    if node.child_range is None:
        return None, None, skipped("The range is not valid; see RDMA-RANGE-001 and RDMA-RANGE-002.")
    if node.vnic is None:
        return node.child_range, None, unknown(node.why_no_vnic())
    return node.child_range, node.vnic, None


@node_check(
    "RDMA-RANGE-003",
    "The child range is not smaller than the primary subnet",
    CRITICAL,
    "Take a range that is at least as large as the primary VNIC subnet.",
    evidence=("setting child_range", "imds:/vnics/"),
)
@_ipv4_only
def not_smaller(node: Node) -> Outcome:
    """F25 (11)."""
    found, vnic, stop = _range_and_vnic(node)
    if stop is not None or found is None or vnic is None:
        return stop or skipped("")
    if found.length > vnic.subnet.length:
        return failed(
            "%s is smaller than the subnet %s." % (found, vnic.subnet),
            expected="/%d or larger" % vnic.subnet.length,
            observed="/%d" % found.length,
        )
    return passed("%s holds the subnet %s." % (found, vnic.subnet))


@node_check(
    "RDMA-RANGE-004",
    "The child range holds all RDMA NICs of the node",
    ERROR,
    "Take a range of the length that the message names.",
    evidence=("setting child_range", "imds:/vnics/", "imds:/instance/"),
)
@_ipv4_only
def holds_all(node: Node) -> Outcome:
    """F18, F19, DEV-34."""
    found, vnic, stop = _range_and_vnic(node)
    if stop is not None or found is None or vnic is None:
        return stop or skipped("")
    if found.length > vnic.subnet.length:
        return skipped("The range is smaller than the subnet; see RDMA-RANGE-003.")
    if not node.nic_count:
        return skipped(NO_NIC)
    capacity = rules.capacity(vnic.subnet.length, found.length)
    if capacity.nics < node.nic_count:
        needed = rules.length_for(vnic.subnet.length, node.nic_count)
        fits = "no range holds so many" if needed is None else "the smallest range that fits is /%d" % needed
        return failed(
            "%s holds %d NICs of a /%d subnet, %d are needed: %s."
            % (found, capacity.nics, vnic.subnet.length, node.nic_count, fits),
            expected="" if needed is None else "/%d" % needed,
            observed="/%d" % found.length,
        )
    return passed("%s holds %d NICs, %d are needed." % (found, capacity.nics, node.nic_count))


@node_check(
    "RDMA-RANGE-005",
    "No RDMA NIC has an index above 15",
    ERROR,
    "The profile serves rdma0 to rdma15; rename the NIC or leave it out.",
    needs=("links",),
    evidence=("/sys/class/net",),
)
@_ipv4_only
def indexes(node: Node) -> Outcome:
    """F7, F25 (1)."""
    details = []
    for nic in node.ethernet_nics:
        try:
            index = node.index_of(nic)
        except RdmaError as error:
            details.append(unclear(nic.name, error.message))
            continue
        if index >= MAX_NICS:
            details.append(bad(nic.name, "index %d" % index, "at most 15", str(index)))
        else:
            details.append(ok(nic.name))
    return rolled_up(details, "%d NICs with an index below 16.", NO_NIC)


def _overlap(
    node: Node, networks: Iterable[tuple[str, Prefix]], good: str, none: str, unread: Iterable[str] = ()
) -> Outcome:
    """One detail per network of the list: bad when it overlaps the node's child range.

    :param unread: why further networks are not known; each leaves the answer open.
    """
    found = node.child_range
    if found is None:
        return skipped("The range is not valid; see RDMA-RANGE-001 and RDMA-RANGE-002.")
    details = [
        bad(label, "%s overlaps %s" % (network, found), "no overlap", str(network))
        if network.overlaps(found)
        else ok(label)
        for label, network in networks
    ]
    details += [unclear("networks", reason) for reason in unread]
    return rolled_up(details, good, none, "no overlap with %s" % found)


@node_check(
    "RDMA-RANGE-006",
    "The child range does not overlap the RDMA network of OCA",
    CRITICAL,
    "Choose a range beside the RDMA network; adjacent is fine.",
    needs=("oca",),
    evidence=("setting child_range", "rdma_network.json"),
)
@_ipv4_only
def against_oca(node: Node) -> Outcome:
    """F25 (9), F26."""
    network = node.oca_config.network
    return _overlap(node, [("OCA network", network)], "%s is beside it." % network, "")


@node_check(
    "RDMA-RANGE-007",
    "The child range overlaps no VCN, subnet or peered network",
    CRITICAL,
    "Choose another range, or give the networks in the settings 'vcn_cidrs' and 'peer_cidrs' as they really are.",
    evidence=("setting vcn_cidrs", "setting peer_cidrs", "setting cluster_networks", "imds:/vnics/"),
)
@_ipv4_only
def against_vcn(node: Node) -> Outcome:
    """F45, F46: the node sees the subnets of its own VNICs; whole VCNs and peers come from the settings."""
    around = node.policy.around
    outcome = _overlap(
        node,
        vcn_networks(node),
        "%d networks are apart from it.",
        NOT_GIVEN % ("VCN CIDR", "vcn_cidrs"),
        [entry.message for entry in around.unread],
    )
    if outcome.status == "pass" and node.policy.vcn_cidrs is None and not around.of_kind("vcn"):
        return skipped("The VNIC subnets are apart from it. " + NOT_GIVEN % ("VCN CIDR", "vcn_cidrs"))
    return outcome


def vcn_networks(node: Node) -> list[tuple[str, Prefix]]:
    """VCNs and peers as given, and the subnets of the node's VNICs, each with its label."""
    networks = labelled(node, "vcn_cidrs", "VCN") + labelled(node, "peer_cidrs", "peer")
    networks += labelled(node, "subnet_cidrs", "subnet")
    documents = node.snapshot.imds
    if documents is not None and documents.vnics is not None:
        with contextlib.suppress(RdmaError):  # RDMA-IMDS-003 tells it
            networks += [("VNIC subnet %s" % net, net) for net in imds.parse_vnic_subnets(documents.vnics)]
    return networks


def labelled(node: Node, kind: str, label: str) -> list[tuple[str, Prefix]]:
    """The networks of a setting, and those of the document of this kind with their sources, each with its label."""
    policy = node.policy
    given = [("%s %s" % (label, network), network) for network in policy.networks.get(kind, ())]
    around = policy.around.of_kind(OPTIONS[kind])
    if node.around is not None:
        known = {network for _label, network in given} | {entry.network for entry in around}
        around += [entry for entry in node.around.of_kind(OPTIONS[kind]) if entry.network not in known]
    return given + [
        ("%s %s (%s)" % (label, entry.network, ", ".join(entry.sources)), entry.network) for entry in around
    ]


def _not_known(node: Node, kind: str) -> list[str]:
    """Why the API of the cluster does not name the whole networks of a kind, where nothing else names them either."""
    given = node.policy.networks.get(kind) or node.policy.around.of_kind(OPTIONS[kind])
    if node.around is None or given:
        return []
    return [
        entry.message for entry in node.around.unread if "whole %s network" % OPTIONS[kind] in entry.message
    ]


@node_check(
    "RDMA-RANGE-008",
    "The child range overlaps no pod CIDR",
    CRITICAL,
    "Choose another range: the driver cannot see the whole pod CIDR and would not refuse it.",
    evidence=("setting pod_cidrs", "setting cluster_networks", "pod CIDRs"),
)
@_ipv4_only
def against_pods(node: Node) -> Outcome:
    """F50: those of the settings, and those that the API of the cluster names."""
    return _overlap(
        node,
        labelled(node, "pod_cidrs", "pod CIDR"),
        "%d pod CIDRs are apart.",
        NOT_GIVEN % ("pod CIDR", "pod_cidrs"),
        _not_known(node, "pod_cidrs"),
    )


@node_check(
    "RDMA-RANGE-009",
    "The child range overlaps no service CIDR",
    CRITICAL,
    "Choose another range: the driver checks one service address only.",
    evidence=("setting service_cidrs", "setting cluster_networks", "service CIDRs"),
)
@_ipv4_only
def against_services(node: Node) -> Outcome:
    """F48, F50: those of the settings, and those that the API of the cluster names."""
    return _overlap(
        node,
        labelled(node, "service_cidrs", "service CIDR"),
        "%d service CIDRs are apart.",
        NOT_GIVEN % ("service CIDR", "service_cidrs"),
        _not_known(node, "service_cidrs"),
    )


@node_check(
    "RDMA-RANGE-010",
    "The child range overlaps no host route",
    ERROR,
    "Remove the route or choose another range: each claim on this node fails with it.",
    needs=("routes",),
    evidence=("rtnetlink",),
)
@_ipv4_only
def against_routes(node: Node) -> Outcome:
    """F47: unicast routes of all tables but the default route, also wider ones."""
    found = node.child_range
    if found is None:
        return skipped("The range is not valid; see RDMA-RANGE-001 and RDMA-RANGE-002.")
    routes = node.snapshot.routes or ()
    details = [detail for detail in [_route_detail(route, found) for route in routes] if detail is not None]
    good = "%d routes are apart from it." % len(routes)
    return rolled_up(details or [ok("all")], good, "", "no overlap with %s" % found)


def _route_detail(route: Route, child_range: Prefix) -> Optional[Detail]:
    try:
        for network in conflicts.route_networks([route]):
            if network.overlaps(child_range):
                return bad(str(route), "overlaps %s" % child_range, "no overlap", route.dst)
    except RdmaError as error:
        return unclear(str(route), error.message)
    return None


@node_check(
    "RDMA-RANGE-011",
    "The child range overlaps no bridge, tunnel or storage network of the host",
    ERROR,
    "Move that network, or choose another range.",
    needs=("links",),
    evidence=("rtnetlink",),
)
@_ipv4_only
def against_interfaces(node: Node) -> Outcome:
    """Addresses of interfaces that are neither RDMA NICs nor their children."""
    networks = interface_networks(node)
    return _overlap(
        node, networks, "%d addresses are apart from it.", "No other interface has an IPv4 address."
    )


def interface_networks(node: Node) -> list[tuple[str, Prefix]]:
    """The networks of the interfaces that are neither RDMA NICs nor their children, each with its label."""
    names = {nic.name for nic in node.nics}
    networks = []
    for link in node.snapshot.links or ():
        if link.name in names or link.parent in names:
            continue
        for text in link.addresses:
            network = _network_of(text)
            if network is not None:
                networks.append(("%s %s" % (link.name, text), network))
    return networks


def _network_of(text: str) -> Optional[Prefix]:
    found = find_prefix(text)
    return found.masked() if found is not None and found.version == 4 else None


def _per_network(fleet: Fleet, judge: Callable[[list[Node]], dict[str, Outcome]]) -> dict[str, Outcome]:
    """Outcomes of a judgement made inside each RDMA network; nodes outside every network are skipped."""
    outcomes = {node.name: skipped(_outside(node)) for node in fleet.nodes}
    for nodes in fleet.networks.values():
        outcomes.update(judge(nodes))
    return outcomes


def _outside(node: Node) -> str:
    return NO_NIC if node.has_ipv4_children else NO_IPV4_CHILD % node.fabric


@fleet_check(
    "RDMA-RANGE-012",
    "All nodes of an RDMA network have one primary subnet",
    CRITICAL,
    "Two subnets give the same host positions and so the same children: move the odd nodes, or name their networks "
    "apart (host variable rdma_network).",
    needs=("imds", "links"),
    evidence=("imds:/vnics/",),
)
def one_subnet(fleet: Fleet) -> dict[str, Outcome]:
    """F23."""
    return _per_network(fleet, _one_subnet)


def _one_subnet(nodes: list[Node]) -> dict[str, Outcome]:
    subnets = Counter([str(node.vnic.subnet) for node in nodes if node.vnic is not None])
    usual = most_common(subnets) if subnets else ""
    outcomes = {}
    for node in nodes:
        if node.vnic is None:
            outcomes[node.name] = unknown(node.why_no_vnic())
        elif str(node.vnic.subnet) == usual:
            outcomes[node.name] = passed("%s, like most nodes of the network." % usual)
        else:
            outcomes[node.name] = failed(
                "The primary subnet is %s; most nodes of its RDMA network are in %s."
                % (node.vnic.subnet, usual),
                expected=usual,
                observed=str(node.vnic.subnet),
            )
    return outcomes


@fleet_check(
    "RDMA-RANGE-013",
    "The children of all nodes are unique and inside the range",
    CRITICAL,
    "Two NICs with one child address lose each other's traffic: look for equal host positions (two subnets, a copied "
    "metadata document).",
    needs=("imds", "links"),
    evidence=("imds:/vnics/", "setting child_range"),
)
def unique_children(fleet: Fleet) -> dict[str, Outcome]:
    """F13, F23: child = range + index * block + position."""
    return _per_network(fleet, _unique_children)


def _unique_children(nodes: list[Node]) -> dict[str, Outcome]:
    owners: dict[int, list[str]] = {}
    for node in nodes:
        for nic, child in node.children:
            if not isinstance(child, RdmaError):
                owners.setdefault(child.child.value, []).append("%s %s" % (node.name, nic.name))
    return {node.name: _unique_on(node, owners) for node in nodes}


def _unique_on(node: Node, owners: dict[int, list[str]]) -> Outcome:
    if node.child_range is None:
        return skipped("The range is not valid; see RDMA-RANGE-001 and RDMA-RANGE-002.")
    details: list[Detail] = []
    for nic, child in node.children:
        if isinstance(child, RdmaError):
            about_range = child.code in RANGE_ERRORS
            details.append(
                bad(nic.name, child.message, "", child.code)
                if about_range
                else unclear(nic.name, child.message)
            )
            continue
        me = "%s %s" % (node.name, nic.name)
        others = [owner for owner in owners[child.child.value] if owner != me]
        if others:
            details.append(
                bad(
                    nic.name,
                    "%s is the child of %s too" % (child.child, listed(others, 3)),
                    "unique",
                    str(child.child),
                )
            )
        else:
            details.append(ok(nic.name))
    return rolled_up(details, "%d children, unique in the network.", NO_NIC)


@fleet_check(
    "RDMA-RANGE-014",
    "All nodes of an RDMA network use one child range",
    ERROR,
    "Finish or roll back the change of the range: a child in the old range cannot reach one in the new.",
    needs=("links",),
    evidence=(
        "setting child_range",
        "host variable rdma_child_range",
        "pods",
        "resourceslices.resource.k8s.io",
    ),
)
def one_range(fleet: Fleet) -> dict[str, Outcome]:
    """F24, F70, F94: the range that is told for each node, and that of its driver and of its devices, where known."""
    outcomes = _per_network(fleet, _one_range)
    if fleet.cluster is None or fleet.policy.target != OKE or not fleet.installed.dranet:
        return outcomes
    return {
        node.name: (_as_it_runs(fleet, node) if outcomes[node.name].status == PASS else None)
        or outcomes[node.name]
        for node in fleet.nodes
    }


def _as_it_runs(fleet: Fleet, node: Node) -> Optional[Outcome]:
    """The option with which the pod on a node runs, and the attribute on its devices, against the range of the node;
    ``None``: the cluster tells neither."""
    entry = fleet.cluster_nodes[node.name]
    if entry is None:
        return unknown(fleet.why_no_cluster_node(node))
    found = fleet.installed
    missing = unread(found.cluster, "slices")
    if missing is not None:
        return missing
    wanted = node.range_text
    details = []
    held = found.range_pod(entry.name)
    if held is not None:
        program, pod = held
        option = program.settings_of(pod).child_range()
        if isinstance(option, RdmaError):
            details.append(bad("pod %s" % pod.name, option.message.rstrip("."), wanted, option.code))
        elif option is not None:
            details.append(compared("pod %s" % pod.name, "its option is", str(option), wanted))
    details += [
        compared("devices", "published is", text, wanted) for text in found.published_ranges(entry.name)
    ]
    return rolled_up(details, "%s: of the driver and of the devices." % wanted, "") if details else None


def _one_range(nodes: list[Node]) -> dict[str, Outcome]:
    ranges = Counter([node.range_text for node in nodes])
    usual = most_common(ranges)
    outcomes = {}
    for node in nodes:
        if node.range_text != usual:
            outcomes[node.name] = failed(
                "The range is %s; most nodes of the network use %s." % (node.range_text, usual),
                expected=usual,
                observed=node.range_text,
            )
        else:
            outcomes[node.name] = passed("%s." % usual)
    return outcomes


@node_check(
    "RDMA-RANGE-018",
    "The child range is not larger than needed",
    INFO,
    "A smaller range frees address space; leave it when growth is planned.",
    evidence=("setting child_range", "imds:/vnics/"),
)
@_ipv4_only
def not_too_large(node: Node) -> Outcome:
    """F18: 16 NICs need 4 bits more than the subnet; that much is never called too large, nor is the default (F6)."""
    found, vnic, stop = _range_and_vnic(node)
    if stop is not None or found is None or vnic is None:
        return stop or skipped("")
    if found == DEFAULT_CHILD_RANGE:
        return passed("%s, the driver's default." % found)
    needed = max(8, vnic.subnet.length - 4)
    if found.length < needed:
        return warned(
            "%s is larger than the /%d that holds 16 NICs of a /%d subnet."
            % (found, needed, vnic.subnet.length),
            expected="/%d" % needed,
            observed="/%d" % found.length,
        )
    return passed("%s." % found)
