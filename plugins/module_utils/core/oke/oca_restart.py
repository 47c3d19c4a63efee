# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Who must be started again after a change of the agent's files (F54, F57). Private to rdma.k8s."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional

AGENT, DRIVER = "agent", "driver"
SNAP_UNIT = "snap.oracle-cloud-agent.oracle-cloud-agent.service"
SERVICE_UNIT = "oracle-cloud-agent.service"
UNITS = (SNAP_UNIT, SERVICE_UNIT)

_COMMANDS = {
    SNAP_UNIT: "snap restart oracle-cloud-agent",
    SERVICE_UNIT: "systemctl restart oracle-cloud-agent",
}
_TOLERANCE = 1
"""Seconds: the boot time, from which the start of a process is counted, is known to the second only."""


@dataclass(frozen=True)
class Agent:
    """The agent's service: ``unit`` is empty when none runs, ``started`` is in seconds since the epoch."""

    unit: str = ""
    started: Optional[int] = None


@dataclass(frozen=True)
class Restart:
    """Something that still works with the files from before their last change."""

    component: str
    reason: str
    command: str

    def to_dict(self) -> dict[str, str]:
        """Plain data."""
        return dict(vars(self))


def owed(
    changed: bool, modified: Optional[int], agent: Agent, driver_started: Optional[int] = None
) -> list[Restart]:
    """The restarts that are owed.

    :param changed: the files change in this run.
    :param modified: time of their last change before it, ``None``: they never changed, or it is not known.
    :param driver_started: when the driver's pod of this node started; ``None``: not known, and then only a change of
        this run counts, since nothing on the node tells it.
    """
    restarts = []
    if changed or _older(agent.started, modified):
        reason = "the files change in this run" if changed else _since(agent.unit, agent.started, modified)
        command = _COMMANDS.get(agent.unit) or " or ".join(_COMMANDS.values())
        restarts.append(Restart(AGENT, "The agent reads its files when it starts: %s." % reason, command))
    if changed or _older(driver_started, modified):
        reason = "the files change in this run" if changed else _since("its pod", driver_started, modified)
        restarts.append(
            Restart(
                DRIVER,
                "The driver reads the files once, when it starts: %s." % reason,
                "kubectl delete pod, for the DRANET pod of this node, after the agent has finished",
            )
        )
    return restarts


def _older(started: Optional[int], modified: Optional[int]) -> bool:
    return started is not None and modified is not None and modified > started + _TOLERANCE


def _since(what: str, started: Optional[int], modified: Optional[int]) -> str:
    late = (modified or 0) - (started or 0)
    return "%s started %d s before their last change" % (what, late)
