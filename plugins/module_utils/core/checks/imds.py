# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Area IMDS: the cloud's metadata. Private to rdma.k8s: it may change with any release."""

from __future__ import annotations

from collections import Counter
from typing import Any

from ..cluster_snapshot import SliceDevice
from ..errors import RdmaError
from ..finding import CRITICAL, ERROR, WARNING
from ..oke import imds
from ..oke.constants import DRIVER
from ..oke.installed import RANGE_ATTRIBUTE
from .context import Fleet, Node, most_common
from .dra import published
from .registry import (
    Outcome,
    bad,
    failed,
    fleet_check,
    listed,
    node_check,
    ok,
    passed,
    rolled_up,
    skipped,
    unknown,
    warned,
)

TEXT_LIMIT = 64
TOPOLOGY = {
    "customerHPCIslandId": "island",
    "customerNetworkBlock": "network block",
    "customerLocalBlock": "local block",
}


def _host(node: Node) -> Any:
    """The host document, or ``None`` when the service did not answer with an object."""
    host = node.snapshot.imds.host if node.snapshot.imds is not None else None
    return host if isinstance(host, dict) else None


@node_check(
    "RDMA-IMDS-001",
    "The metadata service answers",
    ERROR,
    "Check the route to 169.254.169.254, the header 'Authorization: Bearer Oracle', and proxy variables.",
    needs=("imds",),
    evidence=("imds:/host/", "imds:/instance/", "imds:/vnics/"),
)
def answers(node: Node) -> Outcome:
    """F8, F60, F67: each endpoint on its own."""
    documents = node.snapshot.imds
    details = []
    for name in ("host", "instance", "vnics"):
        error = node.snapshot.error_of("imds:/%s/" % name).partition(": ")[2]
        if getattr(documents, name) is None:
            details.append(bad("/%s/" % name, error or "no answer", "200", "no answer"))
        else:
            details.append(ok("/%s/" % name))
    return rolled_up(details, "%d endpoints answer.", "")


@node_check(
    "RDMA-IMDS-002",
    "The shape is in the shape table",
    WARNING,
    "Add the shape to the setting 'shapes' (number of RDMA NICs, PCI addresses, rate), so that it can be checked.",
    needs=("imds",),
    evidence=("imds:/instance/",),
)
def shape(node: Node) -> Outcome:
    """F128."""
    if not node.shape_name:
        return unknown(node.why_not("imds:/instance/", "imds"))
    if node.shape is None:
        return warned(
            "Shape %s is not in the table." % node.shape_name, expected="known", observed=node.shape_name
        )
    return passed("%s: %d RDMA NICs." % (node.shape_name, node.shape.rdma_nics))


@node_check(
    "RDMA-IMDS-003",
    "The primary VNIC has an IPv4 address inside its subnet",
    CRITICAL,
    "Without it no parent and no child can be derived: every claim fails. Look at the instance's primary VNIC.",
    needs=("imds",),
    evidence=("imds:/vnics/",),
)
def primary_vnic(node: Node) -> Outcome:
    """F69, F25 (2 to 4)."""
    found = node.vnic_or_error
    if isinstance(found, RdmaError):
        if found.code == "vnic_not_available":
            return unknown(found.message)
        return failed(
            found.message, expected="first VNIC with privateIp and subnetCidrBlock", observed=found.code
        )
    if found is None:
        return failed("The first VNIC has no IPv4 address and subnet yet.", expected="IPv4", observed="none")
    if not found.subnet.contains(found.address):
        return failed(
            "%s is outside its subnet %s." % (found.address, found.subnet),
            expected="inside %s" % found.subnet,
            observed=str(found.address),
        )
    return passed("%s in %s." % (found.address, found.subnet))


@node_check(
    "RDMA-IMDS-004",
    "Topology data is there",
    WARNING,
    "Ask for the topology feature on the dedicated pool; without it nothing shows which nodes are near.",
    needs=("imds",),
    evidence=("imds:/host/",),
)
def topology(node: Node) -> Outcome:
    """F64, F72."""
    host = _host(node)
    if host is None:
        return unknown(node.why_not("imds:/host/", "imds"))
    data = host.get("rdmaTopologyData")
    if not isinstance(data, dict):
        return warned("The metadata has no rdmaTopologyData.", expected="present", observed="absent")
    details = [
        ok(label) if isinstance(data.get(key), str) and data[key] else bad(label, "is missing", key, "absent")
        for key, label in TOPOLOGY.items()
    ]
    return rolled_up(details, "Island, network block and local block are known.", "", as_status="warn")


@node_check(
    "RDMA-IMDS-005",
    "Fabric data is absent or complete",
    WARNING,
    "A partial object counts as absent, and then no claim can be prepared.",
    needs=("imds",),
    evidence=("imds:/host/",),
)
def fabric_complete(node: Node) -> Outcome:
    """F63, F66."""
    host = _host(node)
    if host is None:
        return unknown(node.why_not("imds:/host/", "imds"))
    data = host.get("rdmaFabricData")
    if data is None:
        return passed("The metadata has no rdmaFabricData.")
    if not isinstance(data, dict):
        return warned("rdmaFabricData is not an object.", expected="object", observed=type(data).__name__)
    kinds = {"ipv6": bool, "planes": int}
    details = [
        ok(key)
        if type(data.get(key)) is kind  # pylint: disable=unidiomatic-typecheck
        else bad(key, "is missing or of a wrong type", kind.__name__, repr(data.get(key)))
        for key, kind in kinds.items()
    ]
    return rolled_up(details, "Complete.", "", as_status="warn")


@node_check(
    "RDMA-IMDS-006",
    "The fabric's address family is the planned one",
    ERROR,
    "An IPv6 fabric gets no IPv4 children: plan the node for it (setting 'fabric', or the shape table).",
    needs=("imds",),
    evidence=("imds:/host/",),
)
def fabric_family(node: Node) -> Outcome:
    """F3 (f), F4, F63."""
    host = _host(node)
    if host is None:
        return unknown(node.why_not("imds:/host/", "imds"))
    planned = node.policy.fabric or (node.shape.fabric if node.shape is not None else "")
    if node.metadata.fabric is None:
        return skipped("The metadata has no complete fabric data.")
    found = "ipv6" if node.metadata.fabric.ipv6 else "ipv4"
    if planned not in ("ipv4", "ipv6"):
        return skipped("No address family is planned for this node.")
    if found != planned:
        return failed("The fabric is %s, planned is %s." % (found, planned), expected=planned, observed=found)
    return passed("The fabric is %s." % found)


@fleet_check(
    "RDMA-IMDS-007",
    "The devices are published with what the metadata says",
    WARNING,
    "Wait five minutes, which is how often the driver reads the metadata; then restart its pod on this node.",
    needs=("imds",),
    evidence=("imds:/host/", "imds:/instance/", "resourceslices.resource.k8s.io"),
    cluster=True,
)
def as_published(fleet: Fleet) -> dict[str, Outcome]:
    """F9, F66, F70: island, blocks, rack, shape and kind of the fabric; the child range is that of RDMA-RANGE-014."""
    return published(_as_published_on, fleet)


def _as_published_on(node: Node, devices: list[SliceDevice]) -> Outcome:
    wanted = {
        name: next(iter(value.values()))
        for name, value in imds.attributes(node.metadata).items()
        if name != RANGE_ATTRIBUTE
    }
    own = [device for device in devices if device.attributes.get(DRIVER + "/rdma") is True]
    details = []
    for name, value in sorted(wanted.items()):
        held = {
            repr(device.attributes[name]): device.attributes[name]
            for device in own
            if name in device.attributes
        }
        odd = sorted([text for text, found in held.items() if found != value])
        if odd:
            details.append(
                bad(
                    name,
                    "published is %s, the metadata has %r" % (listed(odd, 3), value),
                    repr(value),
                    odd[0],
                )
            )
        elif held:
            details.append(ok(name))
    if not wanted or not own:
        return skipped(
            "The metadata tells nothing to publish." if not wanted else "No RDMA device is published."
        )
    return rolled_up(details, "%d attributes.", "No device has an attribute of OKE.", as_status="warn")


@node_check(
    "RDMA-IMDS-008",
    "Metadata values fit into device attributes",
    WARNING,
    "A longer text makes the whole ResourceSlice invalid: no device of the node can be claimed.",
    needs=("imds",),
    evidence=("imds:/host/", "imds:/instance/"),
)
def attribute_length(node: Node) -> Outcome:
    """F70, F71: text attributes hold at most 64 bytes."""
    documents = node.snapshot.imds
    if documents is None or (documents.host is None and documents.instance is None):
        return unknown(node.why_not("imds:", "imds"))
    attributes = imds.attributes(node.metadata)
    details = []
    for name, value in sorted(attributes.items()):
        text = value.get("string")
        if isinstance(text, str):
            size = len(text.encode("utf-8", "surrogatepass"))
            short = "%d bytes" % size
            details.append(ok(name) if size <= TEXT_LIMIT else bad(name, short, "at most 64 bytes", short))
    return rolled_up(details, "%d texts fit.", "The metadata gives no text attribute.", as_status="warn")


@fleet_check(
    "RDMA-IMDS-009",
    "All nodes of a pool are in one HPC island",
    WARNING,
    "RDMA does not cross islands: place the nodes of one job in one island, or split the pool.",
    needs=("imds",),
    evidence=("imds:/host/",),
)
def islands(fleet: Fleet) -> dict[str, Outcome]:
    """F64; the pool is the RDMA network that the inventory names, else OCA network and shape."""
    pools: dict[str, Counter[str]] = {}
    for node in fleet.nodes:
        if node.island:
            pools.setdefault(node.pool, Counter())[node.island] += 1
    outcomes = {}
    for node in fleet.nodes:
        counts = pools.get(node.pool, Counter())
        if not node.island:
            outcomes[node.name] = skipped("The metadata tells no island for this node.")
        elif counts[node.island] == max(counts.values()):
            outcomes[node.name] = passed("Same island as the pool.")
        else:
            usual = most_common(counts)
            outcomes[node.name] = warned(
                "Island ...%s; most nodes of %s are in ...%s." % (node.island[-12:], node.pool, usual[-12:]),
                expected=usual,
                observed=node.island,
            )
    return outcomes
