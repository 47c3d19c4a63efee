# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a node tells of the RDMA resource: capacity and allocatable. Private to rdma.k8s: it may change any time.

The amount is a number of tokens and no number of NICs: in shared mode it is 1000 whatever the node has (A56, A71).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Optional

from ..kube import quantity
from ..kube.objects import mapping
from .names import EXCLUSIVE, RESOURCE, SHARED, TOKENS, WORKER_LABEL, WORKER_VALUE
from .verdict import SKIP, Reason, failure, warning


class Amounts(NamedTuple):
    """What was read and what is wrong with it; ``None``: not told, or no amount of devices."""

    capacity: Optional[int]
    allocatable: Optional[int]
    reasons: tuple[Reason, ...]


def is_lingjun(labels: Mapping[str, Any]) -> bool:
    """Whether a node is a Lingjun node: by its label and never by its name (A13, A16)."""
    return labels.get(WORKER_LABEL) == WORKER_VALUE


def judge_object(
    content: Any, resource: str = RESOURCE, rdma_mode: str = SHARED, expected: Optional[int] = None
) -> Amounts:
    """As :func:`judge`, of a Node as the API gives it."""
    status = mapping(content, "status")
    return judge(
        mapping(content, "metadata", "labels"),
        mapping(status, "capacity"),
        mapping(status, "allocatable"),
        resource=resource,
        rdma_mode=rdma_mode,
        expected=expected,
    )


def judge(
    labels: Mapping[str, Any],
    capacity: Mapping[str, Any],
    allocatable: Mapping[str, Any],
    *,
    resource: str = RESOURCE,
    rdma_mode: str = SHARED,
    expected: Optional[int] = None,
) -> Amounts:
    """The verdict over one node (A55); quantities compare as numbers, so ``1k`` is 1000.

    :param expected: the capacity that is wanted; without it 1000 in shared mode, and no number in exclusive mode.
    """
    labelled = is_lingjun(labels)
    if not labelled and resource not in capacity and resource not in allocatable:
        return Amounts(
            None, None, (Reason("node-not-lingjun", SKIP, "no Lingjun node, and without %s" % resource),)
        )
    found = []
    if not labelled:
        found.append(
            warning(
                "node-label-missing",
                "the node has %s and not the label of Lingjun nodes" % resource,
                "%s=%s" % (WORKER_LABEL, WORKER_VALUE),
                str(labels.get(WORKER_LABEL, "absent")),
            )
        )
    amounts = []
    for side, held in (("capacity", capacity), ("allocatable", allocatable)):
        amount = quantity.whole(held[resource]) if resource in held else None
        amounts.append(amount)
        if resource in held and amount is None:
            message = "its %s is no whole amount" % side
            found.append(failure("resource-quantity-invalid", message, "1k", str(held[resource])[:40]))
    if resource not in capacity and resource not in allocatable:
        message = "the node does not have %s" % resource
        found.append(failure("resource-missing", message, resource, "absent"))
    elif resource not in capacity:
        message = "%s is allocatable and not among its capacity" % resource
        found.append(failure("resource-capacity-missing", message, resource, "absent"))
    elif resource not in allocatable:
        message = "%s is among its capacity and not allocatable" % resource
        found.append(failure("resource-allocatable-missing", message, resource, "absent"))
    found += _compared(amounts[0], amounts[1], resource)
    found += _count(amounts[0], rdma_mode, expected)
    return Amounts(amounts[0], amounts[1], tuple(found))


def _compared(capacity: Optional[int], allocatable: Optional[int], resource: str) -> list[Reason]:
    if capacity == 0:
        message = "the plugin offers no %s" % resource
        return [failure("resource-capacity-zero", message, "above 0", "0")]
    if capacity is None or allocatable is None or allocatable == capacity:
        return []
    values = (str(capacity), str(allocatable))
    if allocatable == 0:
        message = "none of %d %s is allocatable: the plugin is gone, or all devices are ill" % (
            capacity,
            resource,
        )
        return [failure("resource-allocatable-zero", message, *values)]
    if allocatable < capacity:
        message = "not all %s are allocatable: some devices are ill" % resource
        return [warning("resource-allocatable-low", message, *values)]
    message = "more %s are allocatable than there are" % resource
    return [failure("resource-allocatable-exceeds-capacity", message, *values)]


def _count(capacity: Optional[int], rdma_mode: str, expected: Optional[int]) -> list[Reason]:
    if not capacity:
        return []
    if rdma_mode == EXCLUSIVE and expected is None:
        if capacity < TOKENS:
            return []
        message = "%d tokens are those of shared mode; in exclusive mode each NIC has one" % capacity
        return [failure("resource-mode-mismatch", message, "one for each NIC", str(capacity))]
    wanted = TOKENS if expected is None else expected
    if capacity == wanted:
        return []
    return [
        warning(
            "resource-count-unexpected", "%d tokens, not %d" % (capacity, wanted), str(wanted), str(capacity)
        )
    ]
