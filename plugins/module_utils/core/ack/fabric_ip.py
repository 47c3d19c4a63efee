# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Mode of the plugin and IP version of the Lingjun network. Private to rdma.k8s: it may change with any release.

Pods with a network of their own need IPv6 on the compute network of the Lingjun cluster. Nothing fails where it is
missing, RDMA just does not work (A8): so it is told here, from what the cloud says and from what a node shows.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, Optional

from ..kube.objects import entries, text
from ..net import WIDTH, Address, Prefix, find_address, find_prefix
from ..snapshot import Link
from .names import EXCLUSIVE, EXCLUSIVE_FROM, OFF_HOST_FROM, SHARED
from .verdict import UNKNOWN, Reason, failure, warning

IPV6 = "ipv6"
VPC_INTERFACE = "eth0"
"""The interface of the VPC, which is never one of the RDMA network (A64)."""
LONGEST = 96
"""A longer prefix leaves no room for the 32 bits of a pod (A66)."""
NOT_YET = frozenset(("tentative", "dadfailed"))
"""Flags of addresses that may not be used (A65)."""
_MULTICAST, _MAPPED = 0xFF, 0xFFFF
_VERSION = re.compile(r"[vV]?([0-9]{1,9})\.([0-9]{1,9})(?:\.([0-9]{1,9}))?")


class Interface(NamedTuple):
    """An interface of the host: ``addresses`` that may be used, of both families."""

    name: str
    master: str = ""
    has_rdma: bool = False
    addresses: tuple[Prefix, ...] = ()


class Verdict(NamedTuple):
    """Whether IPv6 is needed, and what stands against the wish."""

    ipv6_required: bool
    reasons: tuple[Reason, ...]


def interface_of(content: Mapping[str, Any]) -> Interface:
    """From plain data: ``name``, ``master``, ``rdma_devices``, and ``addresses`` with ``address`` and ``flags``."""
    found = []
    for _at, entry in entries(content.get("addresses")):
        flags = entry.get("flags")
        words = (
            {flag.lower() for flag in flags if isinstance(flag, str)} if isinstance(flags, list) else set()
        )
        prefix = _prefix(entry.get("address"))
        if prefix is not None and not words & NOT_YET:
            found.append(prefix)
    return Interface(
        text(content.get("name")),
        text(content.get("master")),
        bool(content.get("rdma_devices")),
        tuple(found),
    )


def _prefix(value: Any) -> Optional[Prefix]:
    alone = find_address(value)
    return find_prefix(value) if alone is None else Prefix(alone.version, alone.value, WIDTH[alone.version])


def interfaces_of(links: Iterable[Link], with_rdma: Iterable[str]) -> list[Interface]:
    """From the snapshot of a node; ``with_rdma`` names the interfaces that RDMA ports belong to."""
    names = set(with_rdma)
    return [
        Interface(
            link.name,
            link.master,
            link.name in names,
            tuple(
                [
                    prefix
                    for entry in link.addresses
                    for prefix in [_prefix(entry)]
                    if prefix is not None and entry not in link.unusable
                ]
            ),
        )
        for link in links
    ]


def uplinks(interfaces: Iterable[Interface]) -> list[Interface]:
    """The interfaces that carry the addresses of the RDMA network (A64, A111).

    They have no master and have an RDMA port, or are the master of one that has: a bond and never its ports. A bond
    below a bridge passes this on to the bridge.
    """
    by_name = {entry.name: entry for entry in interfaces if entry.name != VPC_INTERFACE}
    tops = {_top(entry, by_name) for entry in by_name.values() if entry.has_rdma}
    return [entry for entry in by_name.values() if entry.name in tops]


def _top(entry: Interface, by_name: Mapping[str, Interface]) -> str:
    seen = set()
    while entry.master and entry.name not in seen:
        seen.add(entry.name)
        if entry.master not in by_name:
            return ""  # its master is none of the interfaces that are known
        entry = by_name[entry.master]
    return "" if entry.master else entry.name


def is_usable(prefix: Prefix) -> bool:
    """Whether a pod address can be made from it (A65); unique-local addresses count, as do those of examples."""
    if prefix.version != 6 or Address(6, prefix.value).is_link_local:
        return False
    return prefix.value not in (0, 1) and prefix.value >> 120 != _MULTICAST and prefix.value >> 32 != _MAPPED


def version_of(value: Any) -> Optional[tuple[int, int, int]]:
    """``v1.1.2-4ac7-aliyun`` -> (1, 1, 2); ``None`` when the text does not begin like a version."""
    found = _VERSION.match(value) if isinstance(value, str) else None
    if found is None:
        return None
    first, second, third = found.groups()
    return int(first), int(second), int(third or 0)


def judge(
    non_host_network: bool,
    rdma_mode: str = SHARED,
    compute_ip_version: Optional[str] = None,
    interfaces: Optional[Iterable[Interface]] = None,
    plugin_version: Optional[str] = None,
) -> Verdict:
    """The verdict (A67): is the plugin set up in a way that works on this network.

    :param compute_ip_version: what the cloud says of the Lingjun cluster (A63); ``None``: not known.
    :param interfaces: those of a node; ``None``: not known.
    """
    found = []
    exclusive = rdma_mode == EXCLUSIVE
    if exclusive and not non_host_network:
        message = "exclusive mode is for pods off the host network, and the switch for such pods is off"
        found.append(failure("exclusive-needs-non-host-network", message, "on", "off"))
    found += _too_old(version_of(plugin_version), non_host_network, exclusive, str(plugin_version))
    if not non_host_network and not exclusive:
        return Verdict(False, tuple(found))
    told = (compute_ip_version or "").strip()
    if told and told.lower() != IPV6:
        message = "the compute network is not IPv6, so RDMA does not work in pods off the host network"
        found.append(failure("ipv6-cluster-ipv4", message, "IPv6", told))
    if interfaces is not None:
        found += _on_the_node(uplinks(interfaces))
    elif not told:
        message = "neither the cloud nor the node tells the IP version of the compute network"
        found.append(Reason("ipv6-unknown", UNKNOWN, message, "IPv6"))
    return Verdict(True, tuple(found))


def _too_old(
    version: Optional[tuple[int, int, int]], non_host_network: bool, exclusive: bool, told: str
) -> list[Reason]:
    if version is None:
        return []
    for wanted, needed, what in (
        (EXCLUSIVE_FROM, exclusive, "exclusive mode"),
        (OFF_HOST_FROM, non_host_network, "pods off the host network"),
    ):
        if needed and version < wanted:
            least = "%d.%d.%d" % wanted
            message = "version %s of the plugin does not know %s" % (told, what)
            return [failure("plugin-too-old", message, "at least %s" % least, told)]
    return []


def _on_the_node(found: list[Interface]) -> list[Reason]:
    if not found:
        message = "the node has no interface of the RDMA network"
        return [failure("rdma-netdev-missing", message, "at least one", "none")]
    usable = {entry.name: [prefix for prefix in entry.addresses if is_usable(prefix)] for entry in found}
    bare = [name for name, prefixes in usable.items() if not prefixes]
    if len(bare) == len(found):
        message = "no interface of the RDMA network has an IPv6 address that a pod can use"
        return [failure("ipv6-address-missing", message, "an IPv6 address", ", ".join(bare))]
    reasons = [
        warning("ipv6-address-partial", "no usable IPv6 address, others have one", "one", "none", name)
        for name in bare
    ]
    for name, prefixes in usable.items():
        if prefixes and all(prefix.length > LONGEST for prefix in prefixes):
            message = "no prefix of its IPv6 addresses leaves room for pods"
            seen = ", ".join([str(prefix) for prefix in prefixes])
            reasons.append(warning("ipv6-prefix-too-long", message, "/%d or shorter" % LONGEST, seen, name))
    return reasons
