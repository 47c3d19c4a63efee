# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The RDMA NICs that DRANET really publishes, over all nodes of a group (F70, F73, F99-F102).

Private to rdma.k8s: it may change with any release.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Optional

from ..errors import RdmaError
from ..kube.devices import plain_attributes
from ..kube.objects import entries, mapping, text
from ..net import Address, Prefix, find_destination
from .claim_nics import BY, NAME, PCI, RDMA_DEVICE, ClaimNic, nic
from .constants import ATTRIBUTE_DOMAIN, DEFAULT_OCA_NETWORK, DRIVER
from .nics import nic_index_of_name
from .shapes import INFINIBAND, IPV4, IPV6

Attributes = dict[str, Any]
"""Attributes of one device: the full name and the plain value."""


@dataclass(frozen=True)
class OddNode:
    """A node that does not have the NICs of the others.

    :param missing: values that the others have and it has not; ``extra``: the other way round.
    """

    node: str
    missing: tuple[str, ...]
    extra: tuple[str, ...]


@dataclass(frozen=True)
class Discovery:
    """What the nodes agree on.

    :param nics: the NICs that most nodes have, in the order of their indexes.
    :param nodes: the nodes that have exactly these.
    :param odd: the others.
    :param fabric: ``ipv4``, ``ipv6``, ``infiniband``; empty: the slices do not tell.
    :param devices: for each agreeing node the attributes of each NIC by its request name.
    """

    nics: tuple[ClaimNic, ...]
    nodes: tuple[str, ...]
    odd: tuple[OddNode, ...]
    fabric: str
    devices: Mapping[str, Mapping[str, Attributes]]


def devices_of(slices: Iterable[Any]) -> dict[str, list[Attributes]]:
    """The devices of DRANET by node, from the newest generation of each pool."""
    newest: dict[str, int] = {}
    found: list[tuple[str, str, int, list[Attributes]]] = []
    for entry in slices:
        spec = mapping(entry, "spec")
        node, pool = text(spec.get("nodeName")), mapping(spec, "pool")
        if spec.get("driver") != DRIVER or not node:
            continue
        said = pool.get("generation")
        generation = said if isinstance(said, int) else 0
        name = "%s/%s" % (node, text(pool.get("name")))
        newest[name] = max(newest.get(name, generation), generation)
        devices = [
            plain_attributes(mapping(device, "attributes"), DRIVER)
            for position, device in entries(spec.get("devices"))
        ]
        found.append((node, name, generation, devices))
    result: dict[str, list[Attributes]] = {}
    for node, name, generation, devices in found:
        if generation == newest[name]:
            result.setdefault(node, []).extend(devices)
    return result


def discover(
    slices: Iterable[Any],
    nodes: Optional[Sequence[str]] = None,
    by: str = "",
    oca_network: Prefix = DEFAULT_OCA_NETWORK,
) -> Discovery:
    """The RDMA NICs that most nodes publish.

    :param slices: ResourceSlice objects, of any drivers.
    :param nodes: the names of the nodes that count; ``None``: all that have slices of DRANET.
    :param by: ``name``, ``pci`` or ``rdma_device``; empty: the name when every NIC has the name ``rdmaN``, else the
        PCI address, and the RDMA device where there is no interface.
    :raises RdmaError: ``slices_no_nics``, ``slices_node_missing``, ``slices_disagree``
    """
    published = devices_of(slices)
    if nodes is not None:
        absent = [name for name in nodes if name not in published]
        if absent:
            raise RdmaError(
                "slices_node_missing",
                "No slice of DRANET is there for %s." % ", ".join(absent),
                hint="Check that the driver pod of these nodes runs, or leave them out.",
                nodes=absent,
            )
        published = {name: published[name] for name in nodes}
    rdma = {name: _rdma_nics(devices, oca_network) for name, devices in sorted(published.items())}
    attribute = BY[by] if by else _attribute(rdma.values())
    keys = {name: _keys(devices, attribute) for name, devices in rdma.items()}
    agreed = _most(keys)
    with_it = [name for name in keys if frozenset(keys[name]) == agreed]
    ordered = sorted(agreed, key=lambda key: _order(key[1]))
    nics = []
    for position, (kind, value) in enumerate(ordered):
        devices_there = {keys[name][kind, value].get("dra.net/rdmaDevice") for name in with_it}
        device = devices_there.pop() if len(devices_there) == 1 else None
        nics.append(nic(kind, value, position, text(device)))
    return Discovery(
        tuple(nics),
        tuple(with_it),
        tuple([_odd(name, keys[name], agreed) for name in keys if name not in with_it]),
        _fabric([keys[name][key] for name in with_it for key in ordered], oca_network),
        {name: {entry.request: keys[name][entry.attribute, entry.value] for entry in nics} for name in with_it},
    )  # fmt: skip


def _rdma_nics(devices: Iterable[Attributes], oca_network: Prefix) -> list[Attributes]:
    """The NICs of the RDMA network: by name or address (F73), else devices without an interface (F84)."""
    rdma = [device for device in devices if device.get("dra.net/rdma") is True]
    ethernet = [device for device in rdma if _in_rdma_network(device, oca_network)]
    return ethernet or [device for device in rdma if not device.get("dra.net/ifName")]


def _in_rdma_network(device: Attributes, oca_network: Prefix) -> bool:
    name = text(device.get("dra.net/ifName"))
    return bool(name) and (nic_index_of_name(name) is not None or _has_oca_address(device, oca_network))


def _has_oca_address(device: Attributes, oca_network: Prefix) -> bool:
    address = find_destination(text(device.get("dra.net/ipv4")))
    return address is not None and address.version == 4 and oca_network.contains(Address(4, address.value))


def _attribute(nodes: Iterable[Sequence[Attributes]]) -> str:
    names = [text(device.get("dra.net/ifName")) for devices in nodes for device in devices]
    if not all(names):
        return RDMA_DEVICE if not any(names) else PCI
    return NAME if all(nic_index_of_name(name) is not None for name in names) else PCI


def _keys(devices: Iterable[Attributes], attribute: str) -> dict[tuple[str, str], Attributes]:
    found = {}
    for device in devices:
        value = text(device.get("%s/%s" % (DRIVER, attribute)))
        if value:
            found[attribute, value] = device
    return found


def _most(keys: Mapping[str, Mapping[tuple[str, str], Attributes]]) -> frozenset[tuple[str, str]]:
    counted = Counter(frozenset(found) for found in keys.values() if found).most_common(2)
    if not counted:
        raise RdmaError(
            "slices_no_nics",
            "The slices of DRANET hold no RDMA NIC (%d nodes looked at)." % len(keys),
            hint="Check that DRANET runs, that the attribute rdma of its devices is true, and the OCA network.",
            nodes=sorted(keys),
        )
    if len(counted) == 2 and counted[0][1] == counted[1][1]:
        first, second = (
            [name for name in keys if frozenset(keys[name]) == found] for found, count in counted
        )
        raise RdmaError(
            "slices_disagree",
            "As many nodes publish one set of RDMA NICs (%s) as another one (%s)."
            % (", ".join(first), ", ".join(second)),
            hint="Name the nodes that count, one shape at a time.",
            nodes=[first, second],
        )
    return counted[0][0]


def _odd(
    node: str, found: Mapping[tuple[str, str], Attributes], agreed: frozenset[tuple[str, str]]
) -> OddNode:
    missing = sorted([value for kind, value in agreed - set(found)], key=_order)
    extra = sorted([value for kind, value in set(found) - agreed], key=_order)
    return OddNode(node, tuple(missing), tuple(extra))


def _order(value: str) -> tuple[int, str]:
    """rdma2 stands before rdma10 (F139); PCI addresses and other names in the order of their text."""
    stem = value.rstrip("0123456789")
    return (int(value[len(stem) :]) if stem != value and ":" not in value else 0, value)


def _fabric(devices: Iterable[Attributes], oca_network: Prefix) -> str:
    seen = set()
    for device in devices:
        over_ipv6 = device.get(ATTRIBUTE_DOMAIN + "/rdmaFabricIpv6")
        if not device.get("dra.net/ifName"):
            seen.add(INFINIBAND)
        elif isinstance(over_ipv6, bool):
            seen.add(IPV6 if over_ipv6 else IPV4)
        elif device.get(ATTRIBUTE_DOMAIN + "/rdmaChildIpv4Cidr") or _has_oca_address(device, oca_network):
            seen.add(IPV4)
        else:
            seen.add("")
    return seen.pop() if len(seen) == 1 else ""
