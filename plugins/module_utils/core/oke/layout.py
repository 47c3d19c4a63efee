# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Do the NICs of a node hold the addresses of OCA's formula (F34-F36)?

Private to rdma.k8s: it may change with any release.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Optional

from ..errors import RdmaError
from ..net import Address, Prefix
from .addressing import AnyVnic, derive_parent, invert_index
from .constants import DEFAULT_OCA_NETWORK
from .nics import Interface, identify, nic_index_of_name


def nic_index_of(
    interface: Interface, vnic: Optional[AnyVnic], oca_network: Prefix = DEFAULT_OCA_NETWORK
) -> int:
    """The index of an RDMA NIC: from its name, else from its first address in the OCA network (F34).

    :raises RdmaError: ``no_oca_address_yet``, or an error of :func:`.addressing.invert_index`
    """
    index = nic_index_of_name(interface.name)
    if index is not None:
        return index
    address = interface.oca_address(oca_network)
    if address is None:
        raise RdmaError(
            "no_oca_address_yet",
            "%s has no rdmaN name and no address in the OCA RDMA network %s yet."
            % (interface.name, oca_network),
            hint="Wait for OCA to configure the NIC, or look at its log.",
            retryable=True,
            interface=interface.name,
            oca_network=str(oca_network),
        )
    return invert_index(vnic, address, oca_network)


def check_parent_address(interface: Interface, expected: Address) -> None:
    """The NIC must hold the derived parent address (F35).

    :raises RdmaError: ``parent_address_mismatch``, ``parent_address_missing``
    """
    held = interface.ipv4_addresses
    if expected in held:
        return
    if not held:
        raise RdmaError(
            "parent_address_missing",
            "%s holds no IPv4 address yet, expected %s." % (interface.name, expected),
            hint="Wait for OCA to configure the NIC, or look at its log.",
            retryable=True,
            interface=interface.name,
            expected=str(expected),
        )
    raise _mismatch("parent_address_mismatch", interface, held[0], expected)


def check_layout(
    interfaces: Mapping[str, Interface], vnic: Optional[AnyVnic], oca_network: Prefix = DEFAULT_OCA_NETWORK
) -> int:
    """All RDMA NICs of the host with an OCA address must follow the classic formula (F36).

    :return: how many NICs were compared.
    :raises RdmaError: ``layout_mismatch``, ``layout_no_nic``, or an error of the derivation
    """
    checked = 0
    for name in identify(interfaces, oca_network).rdma_nics:
        interface = interfaces[name]
        address = interface.oca_address(oca_network)
        if address is None:
            continue
        expected = derive_parent(vnic, nic_index_of(interface, vnic, oca_network), oca_network).parent
        if address != expected:
            raise _mismatch("layout_mismatch", interface, address, expected)
        checked += 1
    if not checked:
        raise RdmaError(
            "layout_no_nic",
            "No RDMA NIC of the host holds an address in the OCA RDMA network %s yet." % oca_network,
            hint="Wait for OCA to configure the NICs, or look at its log.",
            retryable=True,
            oca_network=str(oca_network),
        )
    return checked


def _mismatch(code: str, interface: Interface, address: Address, expected: Address) -> RdmaError:
    return RdmaError(
        code,
        "%s holds %s, expected %s." % (interface.name, address, expected),
        hint="Compare the name of the NIC, the primary VNIC and rdma_network; restart OCA to configure it again.",
        interface=interface.name,
        address=str(address),
        expected=str(expected),
    )
