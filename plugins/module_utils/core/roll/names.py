# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The words of a roll: states, phases, marks on nodes. Private to rdma.k8s: it may change with any release.

A state on a node means: its entry action was begun, maybe done, and its proof is not accepted yet. Whoever finds it
does the entry action again, which changes nothing that is done, and proves it again.
"""

from __future__ import annotations

from enum import Enum

PREFIX = "rdma-k8s/"
"""Of every annotation and label of a roll, unless the plan says otherwise."""

RECORD = "rdma-roll-"
"""The ConfigMap of a roll has this and the hash of its plan as its name."""

LEASE = "rdma-roll"

RECORD_LABELS = {"app.kubernetes.io/managed-by": "rdma.k8s", "app.kubernetes.io/component": "rdma-roll"}
"""On the ConfigMap of every roll, so that one list finds them; the Lease, in the same namespace, has its own name."""

TAINT = "rdma-k8s/roll"
"""Key of the device taint that fences a node's devices; canary claims tolerate it."""


class State(str, Enum):
    """What happens on one node, in this order; the last three stand beside."""

    PENDING = "Pending"
    LOCKED = "Locked"
    FENCED = "Fenced"
    WAIT_JOBS = "WaitJobs"
    DRAINING = "Draining"
    CLAIMS_RELEASED = "ClaimsReleased"
    APPLIED = "Applied"
    REBOOTING = "Rebooting"
    DRIVER_RESTARTED = "DriverRestarted"
    VERIFIED = "Verified"
    RELEASED = "Released"
    DONE = "Done"
    SKIPPED = "Skipped"
    BLOCKED = "Blocked"
    FAILED = "Failed"


ORDER: tuple[State, ...] = tuple(State)[:12]
"""The states with an entry action; a controller can be killed before and after each: 24 points."""


class Phase(str, Enum):
    """How far a roll is; the last three are ends."""

    PLANNED = "Planned"
    DRAINING = "Draining"
    CANARY = "Canary"
    ROLLING = "Rolling"
    RELEASING = "Releasing"
    PAUSED = "Paused"
    ROLLING_BACK = "RollingBack"
    ABORTED = "Aborted"
    ROLLED_BACK = "RolledBack"
    COMPLETE = "Complete"


class Strategy(str, Enum):
    """How far the two ranges may overlap in time (decision 24)."""

    DRAIN_ALL = "drain_all"
    ROLLING = "rolling"
