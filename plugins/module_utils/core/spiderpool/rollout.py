# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How far the SR-IOV operator is on each node, and why it does not get on. Private to rdma.k8s: it may change any time.

One look at the cluster tells the phase of a node. What does not change, and what comes again and again, only several
looks tell: :class:`Tracker` keeps what it needs of them, and is told the time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Optional

from ..cluster_snapshot import ClusterNode, ClusterSnapshot, SriovNodeState
from ..kube.objects import mapping
from ..kube.selectors import selects
from . import node_state, pool_config
from .names import RESOURCE_PREFIX
from .wanted import ClusterWish, NodeWish

READY, WAITING, CONFIGURING, QUEUED, DRAINING, DRAINED, REBOOTING, BACK, REGISTERING, FAILED, MISSING = (
    PHASES
) = (
    "ready",
    "waiting",
    "configuring",
    "queued",
    "draining",
    "drained",
    "rebooting",
    "back",
    "registering",
    "failed",
    "missing",
)
STUCK, PROGRESS = "stuck", "progress"
IN_PROGRESS = "InProgress"
DRAIN_REQUIRED, DRAIN, DRAIN_COMPLETE = "Drain_Required", "Draining", "DrainComplete"
MOST_BOOTS = 2
"""Reboots after which a node that still wants one is in a loop (S125)."""
NAMES_A_LINE = 8
"""Nodes that one line of news names; more of them take further lines."""
IMPLICIT_LIMIT = 1
"""Nodes that may be drained at a time when they are in no pool (S120)."""


class Cause(NamedTuple):
    """Why a node does not get on."""

    code: str
    message: str
    hint: str


class NodeProgress(NamedTuple):
    """How far a node is. ``reasons`` are the conditions that it does not meet, ``since`` the seconds without a change;
    ``boots`` are the reboots that were seen; ``way`` are the phases until now with the seconds in each."""

    name: str
    phase: str
    reasons: tuple[str, ...]
    stuck: Optional[Cause]
    since: float
    boots: int
    way: tuple[tuple[str, float], ...] = ()


class Progress(NamedTuple):
    """The state of all: ``ready``; ``progress``; ``failed`` or ``stuck`` when none of those that are left gets on;
    ``missing`` when there is no node."""

    state: str
    nodes: tuple[NodeProgress, ...]

    @property
    def is_final(self) -> bool:
        """Whether waiting changes nothing any more; nodes that are wanted can still come."""
        return self.state not in (PROGRESS, MISSING)


@dataclass
class _Seen:
    """What is remembered of a node."""

    print_: tuple[object, ...] = ()
    since: float = 0.0
    boot_id: str = ""
    boot_before: str = ""
    """The boot before the operator wanted to reboot."""
    boots: int = 0
    phases: list[tuple[float, str]] = field(default_factory=list)


_HINTS = (
    ("cannot allocate memory", "Switch SR-IOV on in the BIOS, with enough address space for the functions."),
    ("no space left", "The NIC or the host has no interrupts left: ask for fewer functions."),
    (
        "mstconfig",
        "The firmware cannot be reached, as with Secure Boot: set it beforehand, then disable the plugin.",
    ),
    ("mstfwreset", "Power-cycle the node, so that the firmware starts anew."),
    ("totalvfs", "Ask for at most sriov_totalvfs functions, or raise NUM_OF_VFS in the firmware."),
    ("numvfs", "Ask for at most sriov_totalvfs functions, or raise NUM_OF_VFS in the firmware."),
    ("timed out", "Setting functions takes two minutes at most; look at the kernel log of the node."),
)


class Tracker:
    """Looks at one cluster, one after the other.

    :param nodes: those that must get ready; empty: all of which the policies want something.
    :param stuck_after: seconds without a change after which a node is stuck.
    :param registered: whether the resources must be allocatable, too (S119).
    """

    def __init__(
        self,
        nodes: Sequence[str] = (),
        *,
        stuck_after: float = 600,
        registered: bool = True,
        resource_prefix: str = RESOURCE_PREFIX,
    ) -> None:
        self.nodes = tuple(nodes)
        self.stuck_after = stuck_after
        self.registered = registered
        self.prefix = resource_prefix
        self._seen: dict[str, _Seen] = {}

    def look(self, cluster: ClusterSnapshot, now: float) -> Progress:
        """What is so now.

        :param now: seconds on a clock that never goes back.
        """
        wish = ClusterWish(cluster, self.prefix)
        live = {node.name: node for node in cluster.nodes or ()}
        names = self.nodes or tuple(sorted(wish.wishes))
        drains = _Drains(cluster, wish)
        found = []
        for name in names:
            phase, reasons = self._phase(wish, live.get(name), name)
            place = _Place(wish, name, live.get(name), wish.states.get(name), phase, reasons, drains)
            found.append(self._progress(place, now))
        return Progress(_overall(found), tuple(found))

    def history(self) -> list[tuple[float, str, str]]:
        """When which node came into which phase, in order of time."""
        found = [(at, name, phase) for name, seen in self._seen.items() for at, phase in seen.phases]
        return sorted(found)

    def _phase(
        self, wish: ClusterWish, live: Optional[ClusterNode], name: str
    ) -> tuple[str, tuple[str, ...]]:
        state, asked = wish.states.get(name), wish.wishes.get(name)
        if live is None:
            return MISSING, ("there is no node of this name",)
        if asked is None:
            why = (
                "there is no SriovNetworkNodeState of this name"
                if state is None
                else "no policy takes its NICs"
            )
            return MISSING, (why,)
        verdict = node_state.judge(node_state.of_snapshot(state) if state is not None else None, asked.counts)
        if state is None or verdict.state == node_state.MISSING:
            return MISSING, verdict.reasons
        if not live.ready and state.desired_state == node_state.REBOOT_REQUIRED:
            return REBOOTING, ("the node reboots and is not ready", *verdict.reasons)
        if verdict.state == node_state.FAILED:
            return FAILED, verdict.reasons
        if state.current_state == DRAIN:
            return DRAINING, verdict.reasons
        if state.current_state == DRAIN_COMPLETE:
            rebooting = state.desired_state == node_state.REBOOT_REQUIRED
            return REBOOTING if rebooting else DRAINED, verdict.reasons
        if state.desired_state in (DRAIN_REQUIRED, node_state.REBOOT_REQUIRED):
            return QUEUED, verdict.reasons
        if verdict.reasons:
            return CONFIGURING if state.sync == IN_PROGRESS else WAITING, verdict.reasons
        if not live.ready:
            return WAITING, ("the node is not ready",)
        return self._registered(live, asked)

    def _registered(self, live: ClusterNode, asked: NodeWish) -> tuple[str, tuple[str, ...]]:
        want = {
            "%s/%s" % (self.prefix, resource): count
            for resource, count in asked.resources.items()
            if resource not in asked.unclear
        }
        plain = [{"name": live.name, "allocatable": live.allocatable}]
        issues = node_state.allocatable(plain, want) if self.registered else []
        if issues:
            return REGISTERING, tuple([issue.message for issue in issues])
        return READY, ()

    def _progress(self, place: _Place, now: float) -> NodeProgress:
        seen = self._seen.setdefault(place.name, _Seen(since=now))
        boot = place.live.boot_id if place.live is not None else ""
        if boot and boot != seen.boot_id:
            seen.boots += 1 if seen.boot_id else 0
            seen.boot_id = boot
        is_ready = place.live is not None and place.live.ready
        if place.phase != REBOOTING or not seen.boot_before:
            seen.boot_before = seen.boot_id
        elif is_ready and seen.boot_id != seen.boot_before:
            place = place._replace(phase=BACK)
        print_ = (place.phase, place.reasons, seen.boot_id, is_ready)
        if print_ != seen.print_:
            if not seen.phases or seen.phases[-1][1] != place.phase:
                seen.phases.append((now, place.phase))
            seen.print_, seen.since = print_, now
        since = now - seen.since
        cause = None
        if place.phase != READY:
            cause = _at_once(place, seen.boots)
            if cause is None and since >= self.stuck_after:
                cause = _in_time(place)
        return NodeProgress(
            place.name, place.phase, place.reasons, cause, since, seen.boots, _way(seen.phases, now)
        )


def _way(phases: Sequence[tuple[float, str]], now: float) -> tuple[tuple[str, float], ...]:
    """Each phase with its seconds; the last one goes on."""
    ends = [*[at for at, _phase in phases[1:]], now]
    return tuple([(phase, end - at) for (at, phase), end in zip(phases, ends)])


def news(before: Optional[Progress], now: Progress) -> list[str]:
    """What has changed since the look before, for people who watch: phases, and nodes that are stuck from now on.

    :param before: ``None``: this is the first look, which tells the phase of each node.
    """
    was = {node.name: node for node in before.nodes} if before is not None else {}
    groups: dict[str, list[str]] = {}
    stuck = []
    for node in now.nodes:
        old = was.get(node.name)
        if old is None:
            groups.setdefault(node.phase, []).append(node.name)
        elif old.phase != node.phase:
            groups.setdefault("%s -> %s" % (old.phase, node.phase), []).append(node.name)
        if node.stuck is not None and (old is None or old.stuck != node.stuck):
            stuck.append("stuck: %s. %s" % (node.stuck.message, node.stuck.hint))
    found = []
    for what, names in groups.items():
        for first in range(0, len(names), NAMES_A_LINE):
            found.append("%s: %s" % (what, ", ".join(names[first : first + NAMES_A_LINE])))
    return found + stuck


def standing(progress: Progress) -> str:
    """How many nodes are in which phase, in one line."""
    counts = Counter(node.phase for node in progress.nodes)
    found = ", ".join(["%d %s" % (counts[phase], phase) for phase in PHASES if counts[phase]])
    stuck = len([node for node in progress.nodes if node.stuck is not None])
    if not found:
        return "no node yet"
    return "%s%s" % (found, ", %d of them stuck" % stuck if stuck else "")


def sentences(progress: Progress) -> list[str]:
    """What is wrong, one sentence or two for each node."""
    if not progress.nodes:
        return ["No policy wants anything of any node."]
    found = []
    for node in progress.nodes:
        if node.stuck is not None:
            found.append("%s. %s" % (node.stuck.message, node.stuck.hint))
        elif node.phase != READY:
            found.append("%s is %s: %s." % (node.name, node.phase, "; ".join(node.reasons)))
    return found


def _overall(found: Sequence[NodeProgress]) -> str:
    """No nodes are never ready (S243)."""
    left = [node for node in found if node.phase != READY]
    if not found:
        return MISSING
    if not left:
        return READY
    if any(node.stuck is None for node in left):
        return PROGRESS
    return FAILED if any(node.phase == FAILED for node in left) else STUCK


class _Drains:
    """Who may be drained: pools, their limits, and the nodes that take the places (S120 to S122)."""

    def __init__(self, cluster: ClusterSnapshot, wish: ClusterWish) -> None:
        self._pools = {
            entry.name: (
                [
                    node.name
                    for node in cluster.nodes or ()
                    if selects(mapping(entry.spec).get("nodeSelector"), node.labels)
                ],
                mapping(entry.spec).get("maxUnavailable"),
            )
            for entry in cluster.sriov_pool_configs or ()
            if entry.namespace in ("", wish.namespace)
        }
        self._busy = {
            name for name, state in wish.states.items() if state.current_state in (DRAIN, DRAIN_COMPLETE)
        }
        self._all = [node.name for node in cluster.nodes or ()]

    def pools_of(self, name: str) -> list[str]:
        return sorted([pool for pool, (nodes, _wanted) in self._pools.items() if name in nodes])

    def limit_of(self, name: str) -> int:
        """The limit that holds for a node; -1: none."""
        pools = self.pools_of(name)
        if not pools:
            return IMPLICIT_LIMIT
        nodes, wanted = self._pools[pools[0]]
        found = pool_config.limit(wanted, len(nodes)).nodes
        return 0 if found is None else found

    def busy_beside(self, name: str) -> list[str]:
        """The nodes that take places of the same limit."""
        pools = self.pools_of(name)
        if pools:
            around: Iterable[str] = self._pools[pools[0]][0]
        else:
            around = [other for other in self._all if not self.pools_of(other)]
        return sorted([other for other in around if other in self._busy and other != name])


class _Place(NamedTuple):
    """A node in one look."""

    wish: ClusterWish
    name: str
    live: Optional[ClusterNode]
    state: Optional[SriovNodeState]
    phase: str
    reasons: tuple[str, ...]
    drains: _Drains


def _at_once(place: _Place, boots: int) -> Optional[Cause]:
    """Why a node never gets on, however long one waits."""
    state, name = place.state, place.name
    if state is not None and boots >= MOST_BOOTS and state.desired_state == node_state.REBOOT_REQUIRED:
        return Cause(
            "reboot-loop",
            "%s was rebooted %d times and wants another reboot" % (name, boots),
            "Compare /proc/cmdline with what the operator wants: on this system it cannot set arguments of the kernel. "
            "Put them into the boot loader yourself, or do not set rdmaMode and vfio-pci.",
        )
    if place.phase == QUEUED:
        pools = place.drains.pools_of(name)
        if len(pools) > 1:
            return Cause(
                "two-pools",
                "%s is in the pools %s, so it is never drained" % (name, " and ".join(pools)),
                "Make the node selectors of the SriovNetworkPoolConfigs exclude each other.",
            )
        if place.drains.limit_of(name) == 0:
            return Cause(
                "drain-limit-zero",
                "maxUnavailable of pool %s lets no node be drained" % pools[0],
                "Set it to a number from 1 on; percentages round down.",
            )
    return None


def _in_time(place: _Place) -> Cause:
    """Why a node may not have changed for so long."""
    name, live, state, phase = place.name, place.live, place.state, place.phase
    reasons = place.reasons
    if live is not None and not live.ready:
        return Cause(
            "node-not-ready",
            "%s has not come back" % name,
            "Look at its console; the node was rebooted, or its kubelet does not answer.",
        )
    if phase == FAILED:
        error = state.last_error if state is not None else ""
        words = error.lower()
        hints = [hint for word, hint in _HINTS if word in words]
        return Cause(
            "sync-failed",
            "the daemon of %s fails again and again: %s" % (name, error or "no error is told"),
            hints[0] if hints else "Read the log of the pod sriov-network-config-daemon on the node.",
        )
    if phase == MISSING:
        return Cause("state-missing", "%s: %s" % (name, "; ".join(reasons)), _MISSING_HINT)
    if phase == QUEUED:
        busy = place.drains.busy_beside(name)
        if busy:
            return Cause(
                "drain-slot-taken",
                "%s waits for %s" % (name, ", ".join(busy)),
                "Help these nodes first, or raise maxUnavailable of the pool.",
            )
        return Cause(
            "drain-not-begun",
            "nobody drains %s" % name,
            "Look whether the pod of sriov-network-operator runs, and whether another drainer was chosen.",
        )
    if phase == DRAINING:
        return Cause(
            "drain-blocked",
            "%s cannot be drained%s" % (name, " and stays cordoned" if live and live.unschedulable else ""),
            "Look for PodDisruptionBudgets without a disruption left, and for pods that do not end.",
        )
    if phase == REGISTERING:
        return Cause(
            "plugin-not-registered",
            "%s: %s" % (name, "; ".join(reasons)),
            "Look at the pod of the device plugin on the node, at the prefix of the resource, and for functions that "
            "pods have held since the plugin restarted.",
        )
    asked = place.wish.wishes.get(name)
    held = {entry.pci: entry for entry in state.interfaces} if state is not None else {}
    lost = [pci for pci in (asked.counts if asked is not None else {}) if held[pci].wanted_vfs is None]
    if phase == WAITING and lost:
        return Cause(
            "policy-not-rendered",
            "no policy has reached %s for %s" % (name, ", ".join(lost)),
            "Look whether the pod of sriov-network-operator runs, and at its log.",
        )
    return Cause(
        "daemon-silent",
        "%s does not get on: %s" % (name, "; ".join(reasons)),
        "Look at the pod sriov-network-config-daemon on the node and at its log.",
    )


_MISSING_HINT = (
    "Look at the selectors of the policies, at configDaemonNodeSelector, and whether the pod of the config daemon runs "
    "on the node; the operator removes the state of a node without it after 30 minutes."
)
