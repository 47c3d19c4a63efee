# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What an admission policy can tell of a pod without its claims. Private to rdma.k8s: it may change with any release.

The lint follows the claims of a pod, so it decides where these only warn (``certain`` is false).
"""

from __future__ import annotations

from dataclasses import dataclass

from .conditions import Condition, Each, Given, Is, Matches, Set, all_of, any_of


@dataclass(frozen=True)
class PodRule:
    """A rule about the specification of a pod.

    :param code: stable; :param check: the rule of the lint.
    :param certain: the pod alone tells; else the rule only warns.
    """

    code: str
    check: str
    message: str
    hint: str
    condition: Condition
    certain: bool


_CLAIMS = Given(("resourceClaims",))

GID_INDEX = ("NCCL_IB_GID_INDEX", "NVSHMEM_IB_GID_INDEX", "UCX_IB_GID_INDEX")
"""The variables that fix the index of a GID."""

FIXED_INDEX = r"^[ \t\r\n]*\+?(0[xX][0-9a-fA-F]+|[0-9]+)"
"""A value that fixes it, as strtoll reads it; -1 and texts leave the choice to the library (F134)."""

_GID_INDEX = Each(
    ("env",),
    all_of(Is(("name",), GID_INDEX), any_of(Matches(("value",), FIXED_INDEX), Set(("valueFrom",)))),
)

RULES: tuple[PodRule, ...] = (
    PodRule(
        "pod_grace_period",
        "RDMA-WL-013",
        "A pod is removed at once when it is deleted, so the devices of its claims are not given back.",
        "Remove terminationGracePeriodSeconds, or set it to at least 1.",
        all_of(_CLAIMS, Is(("terminationGracePeriodSeconds",), (0,))),
        True,
    ),
    PodRule(
        "pod_gid_index",
        "RDMA-WL-001",
        "The pod has claims and a fixed GID index: on the child of an RDMA NIC another index is right.",
        "Remove the variable: the library finds the index itself.",
        all_of(_CLAIMS, any_of(*[Each((key,), _GID_INDEX) for key in ("containers", "initContainers")])),
        False,
    ),
)
