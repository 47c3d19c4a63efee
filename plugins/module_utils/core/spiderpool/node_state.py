# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""When a node really has its virtual functions. Private to rdma.k8s: it may change with any release.

``Succeeded`` alone says nothing: a fresh state object has it before any policy reached the node (S116).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Optional

from ..cluster_snapshot import SriovInterface, SriovNodeState
from ..kube import quantity
from ..kube.objects import entries, mapping, text
from ..net import quoted
from .issue import Issue, error, ordered, whole

READY, PROGRESS, REBOOT, FAILED, MISSING = "ready", "progress", "reboot", "failed", "missing"
SUCCEEDED, SYNC_FAILED = "Succeeded", "Failed"
IDLE, REBOOT_REQUIRED = "Idle", "Reboot_Required"


class Pf(NamedTuple):
    """A physical function by its PCI address: the number of virtual functions as set, and how many are listed."""

    pci: str
    vfs: Optional[int]
    listed: Optional[int]


class State(NamedTuple):
    """The state object of a node (S113) with its annotations (S114)."""

    node: str
    sync: str
    error: str
    desired: str
    current: str
    pfs: tuple[Pf, ...]


class NodeVerdict(NamedTuple):
    """The state of a node, and each condition that it does not meet, as sentences without their full stop."""

    state: str
    reasons: tuple[str, ...] = ()


class Rollup(NamedTuple):
    """The state of all, and that of each node."""

    state: str
    nodes: dict[str, NodeVerdict]


def of_plain(content: Mapping[str, Any]) -> State:
    """From plain data: ``name``, ``syncStatus``, ``lastSyncError``, ``desired``, ``current``, ``interfaces``."""
    return State(
        text(content.get("name")),
        text(content.get("syncStatus")),
        text(content.get("lastSyncError")),
        text(content.get("desired")),
        text(content.get("current")),
        tuple(
            [
                Pf(text(entry.get("pciAddress")), whole(entry.get("numVfs")), _length(entry.get("vfs")))
                for _at, entry in entries(content.get("interfaces"))
            ]
        ),
    )


def _length(value: Any) -> int:
    return len(value) if isinstance(value, list) else 0


def of_snapshot(found: SriovNodeState) -> State:
    """From a ClusterSnapshot; older ones keep one number of virtual functions for each interface."""
    return State(
        found.node,
        found.sync,
        found.last_error,
        found.desired_state,
        found.current_state,
        tuple([_pf_of_snapshot(entry) for entry in found.interfaces]),
    )


def _pf_of_snapshot(entry: SriovInterface) -> Pf:
    if entry.num_vfs is None:
        return Pf(entry.pci, entry.vfs, None)
    return Pf(entry.pci, entry.num_vfs, entry.vfs)


def judge(state: Optional[State], want: Mapping[str, int]) -> NodeVerdict:
    """The state of one node (S115).

    :param state: ``None``: there is no state object.
    :param want: the number of virtual functions by the PCI address of the PF.
    """
    if state is None:
        return NodeVerdict(MISSING, ("there is no SriovNetworkNodeState of this name",))
    reasons = tuple(_unmet(state, want))
    if state.sync == SYNC_FAILED:
        return NodeVerdict(FAILED, reasons)
    if state.desired == REBOOT_REQUIRED:
        return NodeVerdict(REBOOT, reasons)
    return NodeVerdict(PROGRESS if reasons else READY, reasons)


def _unmet(state: State, want: Mapping[str, int]) -> Iterator[str]:
    if state.sync != SUCCEEDED:
        yield "syncStatus is %s, not %s" % (quoted(state.sync), SUCCEEDED)
    if state.error:
        yield "lastSyncError says %s" % quoted(state.error)
    for what, value in (("desired", state.desired), ("current", state.current)):
        if value != IDLE:
            yield "the %s state is %s, not %s" % (what, quoted(value), IDLE)
    by_pci = {pf.pci: pf for pf in state.pfs}
    for pci, count in want.items():
        pf = by_pci.get(pci)
        if pf is None:
            yield "there is no PF %s" % pci
        elif pf.vfs != count:
            yield "PF %s has %s virtual functions, not %d" % (pci, pf.vfs, count)
        elif pf.listed not in (None, count):
            yield "PF %s lists %s of its %d virtual functions" % (pci, pf.listed, count)


def rollup(expected: Iterable[str], states: Iterable[State], want: Mapping[str, int]) -> Rollup:
    """The state of all expected nodes: failed when one failed, ready when all are; no nodes are not ready (S243)."""
    by_node = {state.node: state for state in states}
    nodes = {called: judge(by_node.get(called), want) for called in expected}
    found = {verdict.state for verdict in nodes.values()}
    return Rollup(FAILED if FAILED in found else READY if found == {READY} else PROGRESS, nodes)


def allocatable(nodes: Sequence[Mapping[str, Any]], want: Mapping[str, int]) -> list[Issue]:
    """What nodes have to give against what the policies make (S119); plugins that restart count short (S183).

    :param nodes: plain data: ``name`` and ``allocatable``.
    :param want: the amount by resource, for each of the nodes.
    """
    found = []
    for node in nodes:
        called, given = text(node.get("name")), mapping(node, "allocatable")
        for resource, count in want.items():
            at = "%s:%s" % (called, resource)
            if resource not in given:
                message = "%s has no %s: look at its prefix and its name" % (called, resource)
                found.append(error("resource-absent", at, message, want=count, have=None))
                continue
            have = quantity.whole(given[resource])
            if have != count:
                message = "%s has %s of %d %s" % (called, quoted(given[resource]), count, resource)
                found.append(error("resource-count", at, message, want=count, have=have))
    return ordered(found)
