# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Trust, PFC and map through ``mlnx_qos``, for drivers that have no DCB netlink of their own. Private to rdma.k8s."""

from __future__ import annotations

from typing import Any

from ..core import mlnx_qos, roce_qos
from ..core.errors import RdmaError
from . import commands, dcb
from .files import Root

TOOL = "mlnx_qos"
LIMIT = 30.0


def read(root: Root, netdev: str) -> dcb.State:
    """Ask the tool.

    :raises RdmaError: ``tool_missing``, ``command_failed``, ``command_timeout`` or ``dcb_unsupported``.
    """
    printed = mlnx_qos.parse(commands.run(root, [TOOL, "-i", netdev], LIMIT).stdout)
    if printed.pfc is None or printed.trust is None:
        raise dcb.unsupported(netdev)
    return dcb.State(printed.pfc, tuple(printed.map.items()), printed.dcbx, printed.trust)


def write(root: Root, netdev: str, setting: str, value: Any) -> None:
    """Set one of ``trust``, ``pfc``, ``dcbx`` and ``dscp_N``.

    :raises RdmaError: ``tool_missing``, ``command_failed`` or ``command_timeout``.
    """
    commands.run(root, [TOOL, "-i", netdev, *words(setting, value)], LIMIT)


def words(setting: str, value: Any) -> list[str]:
    """The arguments that set one setting."""
    if setting == "trust":
        return ["--trust", str(value)]
    if setting == "pfc":
        return ["--pfc", ",".join(map(str, roce_qos.bits(value)))]
    if setting == "dcbx":
        return ["--dcbx", "os" if value & roce_qos.DCBX_HOST else "fw"]
    dscp = int(setting.partition("_")[2])
    if value is None:
        raise RdmaError("dcb_failed", "DCB of DSCP %d: this tool cannot remove an entry of the map." % dscp)
    return ["--dscp2prio", "set,%d,%d" % (dscp, value)]
