# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a roll knows and what it asks for, as data. Private to rdma.k8s: it may change with any release.

No target system has its name here (decision 29): what "the value" of a node is, which pods are its drivers and how a
value is switched belongs to the target that the caller brings.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Optional, Union

from .names import PREFIX, Phase, State, Strategy

LIMITS: Mapping[State, int] = {
    State.PENDING: 3600,
    State.LOCKED: 30,
    State.FENCED: 30,
    State.WAIT_JOBS: 0,
    State.DRAINING: 900,
    State.CLAIMS_RELEASED: 300,
    State.APPLIED: 120,
    State.REBOOTING: 1800,
    State.DRIVER_RESTARTED: 180,
    State.VERIFIED: 300,
    State.RELEASED: 30,
    State.DONE: 30,
}
"""Seconds that a node may stay in a state before it is blocked or failed. 0 for WaitJobs: do not wait for jobs."""


@dataclass(frozen=True)
class Thresholds:
    """When a roll stops by itself.

    :param consecutive: failed nodes in a row.
    :param percent: failed nodes of all.
    :param blocked: more blocked nodes than this stop it for attention.
    """

    consecutive: int = 2
    percent: int = 10
    blocked: int = 3


@dataclass(frozen=True)
class Consent:
    """What the operator allows.

    :param ownerless: evict pods that no controller brings back.
    :param host_network: evict pods that use the host's RDMA devices without a claim or a resource.
    :param evict_jobs: evict what still runs when the wait for jobs is over; else the node is blocked.
    """

    ownerless: bool = False
    host_network: bool = False
    evict_jobs: bool = True


@dataclass(frozen=True)
class Plan:
    """What is to be done; it never changes, and its hash is the name of the roll.

    :param kind: ``range``, ``netns_mode`` or ``oca_network``.
    :param old: the value that the nodes offer now; ``new``: the one that they are to offer.
    :param nodes: in the order in which they come.
    :param canary: nodes of it that come first, alone.
    :param blocks: network block of a node, where it is known.
    :param budget: nodes that may be unusable at the same time, other people's outages included.
    :param fence: ``cordon`` or ``taint``.
    :param node_change: whether something is changed on the node itself; ``reboot``: whether that can ask for a reboot.
    :param driver: version of the driver, so that another one makes another plan.
    :param parent: hash of the roll that this one takes back; empty: of none.
    :param turn: how many rolls of the same plan have ended before, so that each one has a name of its own.
    """

    kind: str
    old: str
    new: str
    nodes: tuple[str, ...]
    strategy: Strategy = Strategy.DRAIN_ALL
    canary: tuple[str, ...] = ()
    blocks: Mapping[str, str] = field(default_factory=dict)
    budget: int = 1
    fence: str = "cordon"
    consent: Consent = Consent()
    thresholds: Thresholds = Thresholds()
    limits: Mapping[State, int] = field(default_factory=lambda: dict(LIMITS))
    release_blocked: bool = True
    node_change: bool = False
    reboot: bool = False
    driver: str = ""
    parent: str = ""
    turn: int = 0
    prefix: str = PREFIX


@dataclass(frozen=True)
class Record:
    """What a roll remembers of itself; the rest is on the nodes.

    :param switched: the value was switched for the whole cluster.
    :param kept: what the target must restore at the end, as text of the target (the update strategies of its pods);
        empty: it was not prepared. While it is there and ``switched`` is not, the value may be either.
    :param consecutive: failed nodes in a row; ``failed`` and ``succeeded``: how many there were when it was counted.
    :param batch: nodes that may be worked on at once, now.
    :param joined: nodes that came after the plan was made, in the order in which they came.
    :param reason: why it paused or stopped.
    """

    phase: Phase = Phase.PLANNED
    switched: bool = False
    kept: str = ""
    consecutive: int = 0
    failed: int = 0
    succeeded: int = 0
    batch: int = 0
    joined: tuple[str, ...] = ()
    started: str = ""
    reason: str = ""


@dataclass(frozen=True)
class Marks:
    """Our annotations on a node, see ``names``. Empty: not there.

    :param desired: hash of the plan that wants something of this node.
    :param applied: hash of the last plan that reached it.
    :param since: when the state began, RFC 3339.
    :param owner: who fenced the node: the hash of the roll.
    :param initial_unschedulable: what the node was before it was fenced; ``None``: not fenced by us.
    :param before: state in which it was when it got blocked or failed.
    :param note: what its proof could not prove, and why; empty: all was proven.
    """

    desired: str = ""
    applied: str = ""
    state: Optional[State] = None
    since: str = ""
    attempt: int = 0
    error: str = ""
    owner: str = ""
    lock: str = ""
    initial_unschedulable: Optional[bool] = None
    reboots: int = 0
    boot_id: str = ""
    before: Optional[State] = None
    note: str = ""


@dataclass(frozen=True)
class User:
    """A pod that uses RDMA on a node.

    :param reason: ``claim``, ``resource``, ``network`` or ``host``, with the name of what it uses in ``uses``.
    :param owner: ``Job default/train``; empty: nobody brings it back. ``owner_kind``: ``Job``, ``DaemonSet`` ...
    :param grace: its own grace period, seconds.
    :param leaving: it was asked to end already.
    :param blocked_by: a disruption budget that can never allow its eviction; empty: none.
    :param budgets: how many disruption budgets select it; more than one makes the eviction API fail.
    :param ends: its containers are not started again when they end, so waiting for it makes sense.
    """

    namespace: str
    name: str
    uid: str
    reason: str
    uses: str
    owner: str = ""
    owner_kind: str = ""
    grace: int = 30
    leaving: bool = False
    blocked_by: str = ""
    budgets: int = 0
    claims: tuple[str, ...] = ()
    ends: bool = False


@dataclass(frozen=True)
class DriverPod:
    """A pod of the driver on a node.

    :param current: it was made from the current template, that is with the new value once that was switched.
    """

    namespace: str
    name: str
    uid: str
    ready: bool
    current: bool


@dataclass(frozen=True)
class NodeView:
    """A node as it is now.

    :param version: ``resourceVersion``, the precondition of each of our patches.
    :param users: pods that use RDMA there and have not gone.
    :param claims: allocated to its devices, or reserved for a pod there; ``namespace/name``.
    :param drivers: pods of the driver; ``driver_sets``: how many there must be.
    :param value: what it offers now; empty: nothing is published.
    :param fenced_by_rule: a rule of ours taints its devices.
    :param critical: reasons why nothing may be begun here (a check that fails, not ready is told by ``ready``).
    """

    name: str
    uid: str
    version: str
    ready: bool
    unschedulable: bool
    marks: Marks = Marks()
    users: tuple[User, ...] = ()
    claims: tuple[str, ...] = ()
    drivers: tuple[DriverPod, ...] = ()
    driver_sets: int = 1
    value: str = ""
    boot_id: str = ""
    fenced_by_rule: bool = False
    critical: tuple[str, ...] = ()


@dataclass(frozen=True)
class NodePatch:
    """One merge patch of a node, with its ``resourceVersion`` as precondition.

    :param annotations: name without prefix -> text, or ``None`` to remove it.
    :param label: text of the label ``roll-state``, ``None`` to remove it.
    :param unschedulable: ``None``: leave it.
    """

    version: str
    annotations: Mapping[str, Optional[str]]
    label: Optional[str]
    unschedulable: Optional[bool] = None


# --- what the loop has to do in the world; each can be done again without harm


@dataclass(frozen=True)
class Evict:
    """Ask the eviction API for these pods, each by its UID, with its own grace."""

    users: tuple[User, ...]


@dataclass(frozen=True)
class Fence:
    """Make (or take away) the rule that taints the devices of a node."""

    present: bool


@dataclass(frozen=True)
class ChangeNode:
    """Change what is to be changed on the node itself."""


@dataclass(frozen=True)
class Reboot:
    """Boot the node, if a reboot is owed. ``boot_id``: the boot that is to end."""

    boot_id: str


@dataclass(frozen=True)
class RestartDriver:
    """Delete these pods of the driver, each by its UID."""

    pods: tuple[DriverPod, ...]


@dataclass(frozen=True)
class Prove:
    """Let the target prove the node: children as derived, a canary claim, a ping to ``peer`` (empty: to nobody)."""

    peer: str = ""


Effect = Union[Evict, Fence, ChangeNode, Reboot, RestartDriver, Prove]


@dataclass(frozen=True)
class Proven:
    """What a target says of a node that it was to prove.

    :param problems: what is not as it must be; empty: it is proven.
    :param note: which part of the proof was not possible, and why; it stays on the node.
    """

    problems: tuple[str, ...] = ()
    note: str = ""


@dataclass(frozen=True)
class Told:
    """What effects told since the last step; the loop keeps one for each node and forgets it when it dies.

    Before each step the loop lets ``machine.heard`` bring it up to date with the view; that keeps the first four and
    forgets what was told in another state. The loop itself adds what effects told.

    :param state: in which state this controller saw the node last; ``entered``: monotonic seconds since when it is in
        it without a reason to go on (``None``: never seen).
    :param tried: this controller worked on the node, so that a node that is blocked was blocked in this run.
    :param empty_since: monotonic seconds since when no claim was there; ``None``: there was one, or nobody looked.
    :param evicted: UIDs of pods whose eviction was accepted; none of them is asked for again.
    :param refused: pods whose eviction was refused, with the words; ``retry_at``: monotonic seconds of the next try.
    :param changed: the change of the node was made (``None``: not tried), ``reboot_owed`` by it.
    :param asked: monotonic seconds when the node was told to reboot.
    :param deleted: UIDs of driver pods whose deletion was accepted.
    :param proven: the target's proof (``None``: not tried), with its problems. True only after what the proof made
        is gone again (decision 25).
    :param note: what the proof could not prove, see :class:`Proven`.
    :param trouble: an error of an effect that may heal.
    """

    state: Optional[State] = None
    entered: Optional[float] = None
    tried: bool = False
    empty_since: Optional[float] = None
    evicted: frozenset[str] = frozenset()
    refused: Mapping[str, str] = field(default_factory=dict)
    retry_at: float = 0.0
    changed: Optional[bool] = None
    reboot_owed: bool = False
    asked: Optional[float] = None
    deleted: frozenset[str] = frozenset()
    proven: Optional[bool] = None
    problems: tuple[str, ...] = ()
    note: str = ""
    trouble: str = ""


@dataclass(frozen=True)
class Step:
    """What one node needs next: first the patch, when it was accepted the effects.

    :param reason: in words, what it waits for; empty: it goes on at once.
    :param retry: seconds after which to look again, if nothing is heard before.
    """

    patch: Optional[NodePatch] = None
    effects: tuple[Effect, ...] = ()
    reason: str = ""
    retry: float = 5.0


# --- what the loop has to do for the whole roll; see conduct.py


@dataclass(frozen=True)
class Orders:
    """What the roll needs next, decided from all nodes at once. The loop does it in the order of the members.

    :param record: to be written before anything else; ``None``: as it is.
    :param prepare: write what the target must restore as ``Record.kept``, then let it set the strategy OnDelete.
    :param switch: let the target switch the value for the whole cluster to ``value``, and the strategy to OnDelete in
        the same change, then write ``Record.switched`` (true for the new value, false for the old one).
    :param restore: let the target restore what it kept, then write an empty ``Record.kept``.
    :param release: nodes that are let go as they are, see ``machine.release``.
    :param may: nodes that may take a step now, each with the last state that it may enter.
    :param peers: for some of them a node that is proven already, to be reached in the proof.
    :param hold: a node that gets blocked keeps its fence.
    :param ended: nothing is left to do in this run.
    :param take_back: it stopped at its canary, so that taking it back touches no more than that.
    """

    record: Optional[Record] = None
    prepare: bool = False
    switch: bool = False
    value: str = ""
    restore: bool = False
    release: tuple[str, ...] = ()
    may: Mapping[str, State] = field(default_factory=dict)
    peers: Mapping[str, str] = field(default_factory=dict)
    hold: bool = False
    ended: bool = False
    take_back: bool = False
    reason: str = ""
