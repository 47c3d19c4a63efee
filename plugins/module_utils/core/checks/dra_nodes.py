# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Area DRA: what a node of DRANET itself shows. Private to rdma.k8s: it may change with any release.

These checks compare the snapshot of a node with what the API of the cluster tells about it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Callable, Optional

from .. import nics as joined
from ..cluster_snapshot import SliceDevice
from ..finding import CRITICAL, ERROR, Detail
from ..oke.constants import DRIVER
from ..snapshot import PciFunction
from .context import Fleet, Node
from .dra import device_of, published
from .reads import unread
from .registry import Outcome, bad, failed, fleet_check, ok, passed, rolled_up, unknown

NRI_SOCKET = "/var/run/nri/nri.sock"
INFINIBAND_CLASS = "0207"
"""The PCI class of a function that needs no interface."""
NOT_OF_THE_HOST = ("", "vfio-pci")
"""Drivers with which a function has neither interface nor RDMA device, in whatever namespace."""
SHARED_TABLES = (253, 254, 255)


@fleet_check(
    "RDMA-DRA-014",
    "NRI is on in the container runtime",
    CRITICAL,
    "Switch NRI on in the configuration of the runtime and restart it: without NRI pods start without their NICs.",
    evidence=("/proc/1/net/unix",),
    cluster=True,
)
def nri(fleet: Fleet) -> dict[str, Outcome]:
    """F113, F116, F120: the driver is called by NRI; its pod runs also where nobody listens on the socket."""
    return {node.name: _nri_on(fleet, node) for node in fleet.nodes}


def _nri_on(fleet: Fleet, node: Node) -> Outcome:
    entry = fleet.cluster_nodes[node.name]
    listens = node.snapshot.host.nri
    if listens:
        return passed("A runtime listens on %s." % NRI_SOCKET)
    if entry is None:
        return unknown(fleet.why_no_cluster_node(node))
    runtime = "the runtime is %s" % (entry.runtime or "not known")
    if listens is None:
        return unknown("The sockets of the node were not read; %s." % runtime)
    return failed(
        "Nothing listens on %s; %s." % (NRI_SOCKET, runtime), expected=NRI_SOCKET, observed="no listener"
    )


@fleet_check(
    "RDMA-DRA-017",
    "Every RDMA NIC that no claim has is whole on its host",
    ERROR,
    "Drain the node and reboot it: what DRANET did not give back is set up anew then.",
    needs=("links", "devices", "pci", "routes", "rules"),
    evidence=("resourceclaims.resource.k8s.io", "rtnetlink", "/sys/class/infiniband", "/sys/bus/pci/devices"),
    cluster=True,
)
def given_back(fleet: Fleet) -> dict[str, Outcome]:
    """DEV-02, DEV-03: after a claim the interface, its RDMA device, addresses, routes or rules were missing."""
    cluster = fleet.installed.cluster
    held: dict[str, set[str]] = {}
    for claim in cluster.claims or ():
        for device in claim.devices:
            if device.driver == DRIVER:
                held.setdefault(device.pool, set()).add(device.device)

    def check(node: Node, devices: list[SliceDevice]) -> Outcome:
        entry = fleet.cluster_nodes[node.name]
        missing = unread(cluster, "claims")
        if missing is not None:
            return missing
        name = entry.name if entry is not None else ""
        pools = {name, *[held_slice.pool for held_slice in fleet.installed.slices.get(name, ())]}
        return _given_back_on(node, devices, set().union(*[held.get(pool, set()) for pool in pools]))

    return published(check, fleet)


def _given_back_on(node: Node, devices: list[SliceDevice], held: set[str]) -> Outcome:
    functions = {function.address: function for function in node.snapshot.pci or ()}
    details = []
    parts = _parts(node)
    for name, pci, nic in _expected(node, devices, functions):
        function = functions.get(pci)
        if function is not None and function.driver in NOT_OF_THE_HOST:
            continue
        if not _is_held(pci, nic, devices, held):
            details.append(_whole(node, name, nic, function, parts))
    return rolled_up(details, "%d NICs that no claim has are whole.", "No RDMA NIC is free of claims.")


def _expected(
    node: Node, devices: Iterable[SliceDevice], functions: Mapping[str, PciFunction]
) -> Iterable[tuple[str, str, Optional[joined.Nic]]]:
    """Name, PCI address and what is there of each RDMA NIC of the host.

    A NIC that is in another namespace is known by its PCI function, which stays, when the shape table has an RDMA NIC
    at that place or DRANET publishes one there.
    """
    there = {nic.pci: nic for nic in node.all_nics if nic.pci}
    named = {nic.pci: nic.name for nic in node.nics if nic.pci and nic.link is not None}
    for device in devices:
        pci = str(device.attributes.get(DRIVER + "/pciAddress") or "")
        if device.attributes.get(DRIVER + "/rdma") is True:
            named.setdefault(pci, str(device.attributes.get(DRIVER + "/ifName") or pci))
    for pci, called in [(nic.pci, nic.name) for nic in node.nics if nic.pci]:
        named.setdefault(pci, called)
    for pci in node.shape.pci if node.shape is not None else ():
        named.setdefault(pci, pci)
    for nic in node.nics:
        if not nic.pci:
            yield nic.name, "", nic
    for pci, name in named.items():
        if pci in functions:
            yield name, pci, there.get(pci)


def _is_held(pci: str, nic: Optional[joined.Nic], devices: list[SliceDevice], held: set[str]) -> bool:
    """Whether a claim has the device of a NIC, by its name in the slice or by that of its PCI address (F100)."""
    names = {"pci-" + pci.replace(":", "-").replace(".", "-")}
    names |= {
        device.name for device in devices if pci and device.attributes.get(DRIVER + "/pciAddress") == pci
    }
    if nic is not None:
        found = device_of(nic, devices)
        names |= {found.name} if found is not None else set()
    return bool(names & held)


def _whole(
    node: Node,
    name: str,
    nic: Optional[joined.Nic],
    function: Optional[PciFunction],
    parts: Mapping[str, Callable[[joined.Nic], bool]],
) -> Detail:
    """What a NIC lacks that no claim has."""
    link = nic.link if nic is not None else None
    needs_link = function is None or function.pci_class != INFINIBAND_CLASS
    if nic is None or (link is None and needs_link):
        return bad(name, "no claim has it, and it has no interface on the host", "on the host", "not there")
    lacks = [part for part, has in parts.items() if not has(nic)]
    if lacks:
        told = "no claim has it, and it has %s, as other NICs of the node have" % " and ".join(lacks)
        return bad(name, told, "as the other NICs", ", ".join(lacks))
    return ok(name)


def _parts(node: Node) -> dict[str, Callable[[joined.Nic], bool]]:
    """What a NIC is to have: its RDMA device, and what OCA sets up, so far as most of the NICs of the node have it."""
    ethernet = node.ethernet_nics if node.has_ipv4_children else ()

    def sources(nic: joined.Nic) -> set[str]:
        return {str(address) for address in node.addresses_of(nic)} if nic in ethernet else set()

    def routed(nic: joined.Nic) -> bool:
        return any(
            route.dev == nic.name and route.table not in SHARED_TABLES for route in node.snapshot.routes or ()
        )

    def ruled(nic: joined.Nic) -> bool:
        return any(rule.src in sources(nic) for rule in node.snapshot.rules or ())

    checks: dict[str, Callable[[joined.Nic], bool]] = {
        "no RDMA device": lambda nic: bool(nic.ports),
        "no address": lambda nic: bool(sources(nic)),
        "no route in a table of its own": routed,
        "no rule for its address": ruled,
    }
    half = len(node.nics) / 2
    return {part: has for part, has in checks.items() if len([nic for nic in node.nics if has(nic)]) > half}
