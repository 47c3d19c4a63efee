# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Change the files of the Oracle Cloud Agent (F51-F57). Private to rdma.k8s: it may change with any release."""

from __future__ import annotations

import os
from typing import Any, Optional

from ..core.errors import RdmaError
from ..core.net import Prefix
from ..core.oke import oca_file, oca_network
from ..core.oke.child_range import validate
from ..core.oke.constants import MAX_NICS
from ..core.oke.oca_restart import UNITS, Agent
from ..core.oke.range_check import parse_networks
from ..core.oke.view import NodeView
from ..core.snapshot import NodeSnapshot
from . import edits, kernel, oca
from .changes import Changes
from .files import Root

PREVIOUS = oca.NETWORK + ".previous"
"""The content before the last change; the one before the first change is in the undo record."""

_CGROUPS = (
    "/sys/fs/cgroup/system.slice",
    "/sys/fs/cgroup/systemd/system.slice",
    "/sys/fs/cgroup/unified/system.slice",
)
_START_FIELD = 19  # starttime, counted behind the name of the process


def surroundings(
    snapshot: NodeSnapshot,
    primary_subnet: str = "",
    networks: Optional[dict[str, Any]] = None,
    child_range: str = "",
    count: int = MAX_NICS,
) -> oca_network.Surroundings:
    """What the RDMA network of this node must fit to.

    :param snapshot: links, routes, OCA files and metadata.
    :param primary_subnet: instead of that of the metadata.
    :param networks: lists of prefixes by label: pods, services, peers.
    :param child_range: of the pods' children; empty: not known.
    :param count: RDMA NICs that the network must hold.
    :raises RdmaError: ``nic_count``, ``primary_subnet_unknown``, ``network_malformed``, ``route_list_unknown`` and
        those of :func:`.child_range.validate`.
    """
    if not 1 <= count <= MAX_NICS:
        raise RdmaError(
            "nic_count",
            "The RDMA network cannot be planned for %d RDMA NICs of a node, expected 1 to %d."
            % (count, MAX_NICS),
            hint="The profile serves at most %d NICs of a node." % MAX_NICS,
            nics=count,
        )
    vnics = snapshot.imds.vnics if snapshot.imds is not None else None
    subnet = oca_network.primary_subnet(primary_subnet, vnics)
    if snapshot.routes is None:
        raise RdmaError(
            "route_list_unknown",
            "The routes of this node could not be read: %s." % (snapshot.error_of("rtnetlink") or "unknown"),
            hint="Run as root in the host's network namespace.",
            retryable=True,
        )
    return oca_network.Surroundings(
        subnet=subnet,
        subnets=oca_network.vnic_subnets(vnics),
        networks=tuple(parse_networks(networks or {})),
        routes=tuple(snapshot.routes),
        rdma_links=frozenset([nic.name for nic in NodeView(snapshot).nics]),
        child_range=validate(child_range) if child_range else None,
        nics=count,
    )


def make_directory(changes: Changes) -> bool:
    """Make the directory as a volume of the type DirectoryOrCreate does (F54); answers that the files stay."""
    changes.directory(oca.DIRECTORY)
    return False


def set_network(changes: Changes, network: Prefix, replace_unusable: bool = False) -> bool:
    """Make the directory, and give ``rdma_network.json`` this network; what the file was is kept beside it.

    :param replace_unusable: write a new file where the present one cannot be understood.
    :returns: whether the content of the file changes.
    :raises RdmaError: ``oca_json_malformed`` and those of :class:`Changes`.
    """
    make_directory(changes)
    current = edits.read(changes.root, oca.NETWORK)
    try:
        wanted = oca_file.with_network(None if current is None else _decoded(current.content), network)
    except RdmaError:
        if not replace_unusable:
            raise
        wanted = oca_file.new_file(network)
    differs = current is None or current.content != wanted.encode()
    if current is not None and differs:
        _keep(changes, current)
    changes.file(oca.NETWORK, wanted, current.mode if current is not None else 0o644)
    return differs


def remove(changes: Changes) -> bool:
    """Remove ``rdma_network.json``; what it was is kept beside it. Answers whether there was one."""
    current = edits.read(changes.root, oca.NETWORK)
    if current is not None:
        _keep(changes, current)
    return changes.file(oca.NETWORK, None)


def _keep(changes: Changes, current: edits.FileState) -> None:
    changes.file(PREVIOUS, current.exact(), current.mode)


def previous(changes: Changes) -> str:
    """The path of the kept copy; empty when there is none, and there will be none."""
    said = any(action.endswith(" " + PREVIOUS) for action in changes.actions)
    return PREVIOUS if said or changes.root.modified(PREVIOUS) is not None else ""


def _decoded(content: bytes) -> str:
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise RdmaError(
            "oca_json_malformed",
            "%s is not UTF-8: %s." % (oca.NETWORK, error.reason),
            hint="Compare the file with that of a new node.",
        ) from error


def last_change(root: Root) -> Optional[int]:
    """When the files changed last: theirs and that of the kept copy, which is written at each change."""
    times = [root.modified(path) for path in (oca.NETWORK, oca.FEATURES, PREVIOUS)]
    return max([time for time in times if time is not None], default=None)


def agent(root: Root) -> Agent:
    """The agent's service and when it was started: the oldest process of its control group."""
    for unit in UNITS:
        for directory in _CGROUPS:
            pids = (root.read("%s/%s/cgroup.procs" % (directory, unit)) or "").split()
            starts = [start for start in [_started(root, pid) for pid in pids] if start is not None]
            if starts:
                return Agent(unit, min(starts))
    return Agent()


def _started(root: Root, pid: str) -> Optional[int]:
    """Start of a process in seconds since the epoch, at most one second early."""
    about = root.value("/proc/%s/stat" % pid) if pid.isdigit() else None
    boot = kernel.boot_time(root)
    fields = (about or "").rpartition(") ")[2].split()
    if len(fields) <= _START_FIELD or boot is None:
        return None
    return boot + int(fields[_START_FIELD]) // os.sysconf("SC_CLK_TCK")
