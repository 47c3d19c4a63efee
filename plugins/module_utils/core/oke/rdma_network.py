# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The RDMA network of a node, told from what the API shows of it (F13, F14, F23).

Private to rdma.k8s: it may change with any release.

Nodes belong to one RDMA network when they have one OCA network and one primary subnet (F23, F24). The API has neither.
But OCA gives an RDMA NIC the netmask of its network (F14), and NIC ``n`` is ``n`` blocks and the position of the node
into it, where a block is as large as the primary subnet (F13): so the addresses of the NICs and that of the node
together tell the subnet, if just one length of a subnet (F22) explains them all.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Optional, Union

from ..net import Prefix, find_address, find_prefix

SUBNET_LENGTHS = range(16, 31)  # F22


@dataclass(frozen=True)
class RdmaNetwork:
    """One OCA network and one primary subnet, both masked."""

    oca_network: Prefix
    subnet: Prefix

    def __str__(self) -> str:
        return "%s via %s" % (self.oca_network, self.subnet)


def find(
    node_address: str, nics: Iterable[tuple[int, str]], subnets: Sequence[Prefix] = ()
) -> Union[RdmaNetwork, str]:
    """The RDMA network of a node, or a sentence that says why it cannot be told.

    :param node_address: the address of the node in its primary subnet.
    :param nics: index and address (with its length) of each RDMA NIC that has the name of its index.
    :param subnets: the primary subnets that there are, masked, if somebody knows them; the NICs then tell the OCA
        network only.
    """
    address = find_address(node_address)
    if address is None or address.version != 4:
        return "the node has no IPv4 address in the API"
    networks: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for index, text in nics:
        prefix = find_prefix(text)
        if prefix is not None and prefix.version == 4:
            networks.setdefault((prefix.network, prefix.length), []).append((index, prefix.value))
    if not networks:
        return "no NIC with the name rdmaN and an IPv4 address is in the slices of the node"
    if len(networks) > 1:  # a NIC may have other addresses, too (F34); that of the agent is on all of them
        indexes = {index for parents in networks.values() for index, _value in parents}
        common = [key for key, parents in networks.items() if {index for index, _value in parents} == indexes]
        if len(common) != 1:
            several = ", ".join(str(Prefix(4, *key)) for key in sorted(networks))
            return "the NICs of the node are in several networks: %s" % several
        networks = {common[0]: networks[common[0]]}
    key, parents = next(iter(networks.items()))
    network = Prefix(4, *key)
    if subnets:
        found = _smallest([subnet for subnet in subnets if subnet.contains(address)])
        if found is None:
            return "the address %s of the node is in none of the primary subnets" % address
        return RdmaNetwork(network, found)
    lengths = _lengths(address.value, [(index, value - network.value) for index, value in parents])
    if not lengths:
        return "the addresses of the NICs do not follow from the address %s of the node" % address
    if len(lengths) > 1:
        return "the addresses of the NICs fit primary subnets of several lengths"
    return RdmaNetwork(network, Prefix(4, address.value, lengths[0]).masked())


def _smallest(subnets: Sequence[Prefix]) -> Optional[Prefix]:
    return max(subnets, key=lambda subnet: subnet.length, default=None)


def _lengths(address: int, offsets: Sequence[tuple[int, int]]) -> list[int]:
    """The lengths of a primary subnet that explain the offset of every NIC (F13)."""
    last, far = max(offsets)  # tells most lengths apart, so that the others have one length to look at
    found = [length for length in SUBNET_LENGTHS if far == _offset(last, address, length)]
    for length in list(found):
        if [far for index, far in offsets if far != _offset(index, address, length)]:
            found.remove(length)
    return found


def _offset(index: int, address: int, length: int) -> int:
    """How far NIC ``index`` is into the OCA network: blocks and the position of the node (F13)."""
    block = 1 << 32 - length
    return index * block + (address & block - 1)
