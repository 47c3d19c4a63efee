# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The limit of locked memory that container runtimes hand on. Private to rdma.k8s: it may change with any release.

RDMA pins memory. A container inherits the limit of its runtime's process, so a limit of 64 kB there fails the first
registration of memory in a pod, whatever the pod asks for.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Optional

from ..core.errors import RdmaError
from ..core.snapshot import RuntimeLimit
from . import commands, records
from .changes import Changes
from .files import Root

RUNTIMES = ("containerd", "crio", "docker", "k3s", "k3s-agent", "rke2-agent", "rke2-server")
DROP_IN = "50-rdma-k8s-memlock.conf"
TEXT = "# Managed by rdma.k8s.runtime_memlock\n[Service]\nLimitMEMLOCK=infinity\n"
INFINITY = "infinity"
RECORD = "/systemctl.txt"
"""In a recorded tree: what ``systemctl show`` printed of the runtimes."""
LIMIT = 20.0
"""Seconds that a question to systemd may take."""
RESTART = 180.0
"""Seconds that a restart of a runtime may take."""

_PROPERTIES = "Id,LoadState,MainPID,LimitMEMLOCK,NeedDaemonReload"
_UNLIMITED = (INFINITY, "unlimited", str(2**64 - 1))
_UNIT = re.compile(r"[A-Za-z0-9_.@-]{1,200}", re.ASCII)


@dataclass(frozen=True)
class Unit:
    """A runtime: what systemd has loaded for it, and what its process has.

    :param configured: the limit for its next start, ``infinity`` or bytes.
    :param running: the limit of its process, likewise; empty when it does not run.
    """

    name: str
    configured: str
    running: str
    stale: bool
    pid: int = 0

    @property
    def restart_required(self) -> bool:
        """Whether only a restart gives its process the limit."""
        return bool(self.running) and self.running != INFINITY

    @property
    def path(self) -> str:
        """The file of our own that sets the limit."""
        return "/etc/systemd/system/%s.d/%s" % (self.name, DROP_IN)

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "unit": self.name,
            "configured": self.configured,
            "running": self.running,
            "restart_required": self.restart_required,
        }


def units(root: Root, names: Sequence[str] = ()) -> list[Unit]:
    """The runtimes of a node, or those of these names.

    :raises RdmaError: ``runtime_unknown`` for a name that is no unit of the node; errors of :func:`commands.run`.
    """
    for name in names:
        if not _UNIT.fullmatch(name):
            raise _unknown(name)
    wanted = [name if name.endswith(".service") else name + ".service" for name in names or RUNTIMES]
    text = commands.run(root, ["systemctl", "show", "--property", _PROPERTIES, "--", *wanted], LIMIT).stdout
    found = _units_of(root, text)
    if names:
        known = {unit.name for unit in found}
        for name in wanted:
            if name not in known:
                raise _unknown(name)
    return found


def _units_of(root: Root, text: str) -> list[Unit]:
    """The units in what ``systemctl show`` prints, a block for each."""
    found = []
    for block in text.split("\n\n"):
        values = dict(line.split("=", 1) for line in block.splitlines() if "=" in line)
        if values.get("LoadState") in ("loaded",):
            found.append(_unit(root, values))
    return found


def read_all(root: Root) -> Optional[tuple[RuntimeLimit, ...]]:
    """The limits of the runtimes of a node; ``None`` when systemd does not tell, and the errors of the root say why."""
    try:
        found = _units_of(root, root.read(RECORD) or "") if records.is_recorded(root) else units(root)
    except RdmaError as error:
        root.fail("systemctl", error.message.rstrip("."))
        return None
    return tuple([RuntimeLimit(unit.name, unit.configured, unit.running) for unit in found])


def _unknown(name: str) -> RdmaError:
    return RdmaError(
        "runtime_unknown",
        "The node has no service %s." % name,
        hint="Name the unit of the container runtime; without a name the known ones are looked for.",
        unit=name,
    )


def _unit(root: Root, values: Mapping[str, str]) -> Unit:
    pid = int(values.get("MainPID", "0") or 0)
    return Unit(
        name=values.get("Id", ""),
        configured=_limit(values.get("LimitMEMLOCK", "")),
        running=_of_process(root, pid) or "" if pid else "",
        stale=values.get("NeedDaemonReload") == "yes",
        pid=pid,
    )


def _of_process(root: Root, pid: int) -> Optional[str]:
    for line in (root.read("/proc/%d/limits" % pid) or "").splitlines():
        if line.startswith("Max locked memory"):
            return _limit(line.split()[3])
    return None


def _limit(text: str) -> str:
    return INFINITY if text in _UNLIMITED else text


def apply(changes: Changes, names: Sequence[str], restart: bool) -> list[Unit]:
    """Lift the limit of the runtimes for their next start, and restart those that need it when that is allowed.

    :returns: the runtimes as they are afterwards; in check mode as they are before.
    :raises RdmaError: ``memlock_without_effect`` and those of :func:`units` and :class:`Changes`.
    """
    found = units(changes.root, names)
    for unit in found:
        # a unit that has the limit by itself needs no file of ours; one that has ours keeps it
        if unit.configured != INFINITY or changes.root.exists(unit.path):
            changes.file(unit.path, TEXT)
    if changes.check_mode:
        for unit in found:
            if restart and unit.restart_required:
                changes.note("restart %s" % unit.name)
        return found
    if changes.changed or any(unit.stale for unit in found):
        commands.run(changes.root, ["systemctl", "daemon-reload"], LIMIT)
        found = units(changes.root, names)
    for unit in found:
        if unit.configured != INFINITY:
            raise RdmaError(
                "memlock_without_effect",
                "%s still has LimitMEMLOCK=%s for its next start, although %s says infinity."
                % (unit.name, unit.configured, unit.path),
                hint="Look for another file with 'systemctl cat %s' that sets it later." % unit.name,
                unit=unit.name,
            )
    owed = [unit for unit in found if restart and unit.restart_required]
    for unit in owed:
        changes.note("restart %s" % unit.name)
        commands.run(changes.root, ["systemctl", "restart", unit.name], RESTART)
    return units(changes.root, names) if owed else found


ARGUMENTS: dict[str, dict[str, Any]] = {
    "units": {"type": "list", "elements": "str", "default": []},
    "restart": {"type": "bool", "default": False},
    "host_root": {"type": "path", "default": "/"},
}
"""Options of the module ``runtime_memlock``."""


def act(changes: Changes, given: Mapping[str, Any]) -> dict[str, Any]:
    """What the module ``runtime_memlock`` does; its result.

    :param given: values for :data:`ARGUMENTS`.
    :raises RdmaError: see :func:`apply`.
    """
    found = apply(changes, given["units"], given["restart"])
    return {
        "units": [unit.to_dict() for unit in found],
        "restart_required": any(unit.restart_required for unit in found),
    }
