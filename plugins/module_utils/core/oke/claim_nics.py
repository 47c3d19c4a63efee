# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The RDMA NICs that a claim asks for, and the attribute of DRANET by which it selects each.

Private to rdma.k8s: it may change with any release.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Optional

from ..errors import RdmaError
from ..kube.manifest import label_of
from ..net import quoted
from .nics import nic_index_of_name
from .shapes import INFINIBAND, IPV4, IPV6, Shape

NAME, PCI, RDMA_DEVICE = ATTRIBUTES = ("ifName", "pciAddress", "rdmaDevice")
"""Attributes below ``dra.net/`` that tell one NIC from another (F101)."""

BY = {"name": NAME, "pci": PCI, "rdma_device": RDMA_DEVICE}
"""How users call them."""


@dataclass(frozen=True)
class ClaimNic:
    """One RDMA NIC.

    :param request: the name of its request, a DNS label.
    :param attribute: one of ``ATTRIBUTES``; ``value`` is what it must be.
    :param index: the index of the NIC: its ``rdmaN`` number, else its place among the NICs.
    :param rdma_device: the RDMA device of the NIC; empty: not known.
    """

    request: str
    attribute: str
    value: str
    index: int
    rdma_device: str = ""

    @property
    def interface(self) -> bool:
        """The NIC has an interface that can be configured; an RDMA-only device has none (F84, F109)."""
        return self.attribute != RDMA_DEVICE


def nic(attribute: str, value: str, position: int, rdma_device: str = "") -> ClaimNic:
    """A NIC with the request name that its value gives: ``rdma0``, ``mlx5-0``, ``pci-0000-0c-00-0`` (F100)."""
    found = nic_index_of_name(value) if attribute == NAME else None
    return ClaimNic(
        label_of(value, "pci-" if attribute == PCI else ""),
        attribute,
        value,
        position if found is None else found,
        value if attribute == RDMA_DEVICE else rdma_device,
    )


def of_shape(shape: Shape, by: str = "") -> tuple[ClaimNic, ...]:
    """The RDMA NICs of a shape.

    :param by: ``name``, ``pci`` or ``rdma_device``; empty: the RDMA device on a native InfiniBand shape (F84), else
        the name ``rdmaN``; on a shape whose NICs may keep the name of the operating system (F131) the PCI address.
    :raises RdmaError: ``claim_nics_unknown`` when the table does not hold what that needs.
    """
    chosen = by or _usual(shape)
    values: Sequence[str]
    if chosen == "name":
        values = ["rdma%d" % index for index in range(shape.rdma_nics)] if shape.fabric != INFINIBAND else []
    elif chosen == "pci":
        values = shape.pci
    else:
        # DRANET 1.4.0 tells the RDMA device of devices without an interface only, so others would never be selected.
        values = shape.nccl_hcas if shape.fabric not in (IPV4, IPV6) else []
    if not values:
        raise RdmaError(
            "claim_nics_unknown",
            "The RDMA NICs of %s cannot be selected by their %s: %s."
            % (shape.name, _WORDS[chosen], _reason(shape, chosen)),
            hint="Select the NICs in another way, or take them from the slices of the nodes.",
            shape=shape.name,
            by=chosen,
        )
    # The order of the RDMA devices in the table is not known to be that of rdmaN, so no NIC gets a device here.
    return tuple([nic(BY[chosen], value, position) for position, value in enumerate(values)])


_WORDS = {"name": "names", "pci": "PCI addresses", "rdma_device": "RDMA devices"}


def _reason(shape: Shape, chosen: str) -> str:
    if chosen == "name" and shape.fabric == INFINIBAND:
        return "native InfiniBand has no interface in DRANET"
    if chosen == "rdma_device" and shape.nccl_hcas:
        return "DRANET tells the RDMA device only of NICs without an interface"
    return "the table of shapes does not hold them"


def _usual(shape: Shape) -> str:
    if shape.fabric == INFINIBAND:
        return "rdma_device"
    return "pci" if shape.pci and shape.netdevs != ("rdmaN",) else "name"


def choose(
    nics: Sequence[ClaimNic], wanted: Optional[Sequence[Any]] = None, count: Optional[int] = None
) -> tuple[ClaimNic, ...]:
    """Some of the NICs, in the order in which they are.

    :param wanted: names of requests, values of the selecting attribute, or indexes.
    :param count: the first so many.
    :raises RdmaError: ``claim_nic_unknown``, ``claim_nic_twice``, ``claim_nic_count``
    """
    if wanted is not None:
        return _wanted(nics, [str(entry) for entry in wanted])
    if count is None:
        return tuple(nics)
    if not 1 <= count <= len(nics):
        raise RdmaError(
            "claim_nic_count",
            "The count of NICs is %d, expected 1 to %d, the NICs that there are." % (count, len(nics)),
            hint="Leave it out to ask for all.",
            count=count,
            nics=len(nics),
        )
    return tuple(nics[:count])


def _wanted(nics: Sequence[ClaimNic], wanted: list[str]) -> tuple[ClaimNic, ...]:
    places: dict[str, int] = {}
    for position, entry in enumerate(nics):
        for key in (str(entry.index), entry.value, entry.request):
            places.setdefault(key, position)
    chosen: set[int] = set()
    for name in wanted:
        if name not in places:
            raise RdmaError(
                "claim_nic_unknown",
                "There is no RDMA NIC %s; there are %s."
                % (quoted(name), ", ".join(entry.value for entry in nics)),
                hint="Name NICs by one of these, or by their index.",
                nic=name,
                nics=[entry.value for entry in nics],
            )
        if places[name] in chosen:
            raise RdmaError(
                "claim_nic_twice",
                "The RDMA NIC %s is asked for twice." % nics[places[name]].value,
                hint="Name each NIC once.",
                nic=nics[places[name]].value,
            )
        chosen.add(places[name])
    if not chosen:
        raise RdmaError(
            "claim_nic_count",
            "No RDMA NIC is named.",
            hint="Name at least one, or leave the option out to ask for all.",
            count=0,
            nics=len(nics),
        )
    return tuple([entry for position, entry in enumerate(nics) if position in chosen])
