# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Settings of a card's firmware through ``mlxconfig``, ``mstconfig`` or, for mlx4, ``devlink``. Private to rdma.k8s.

A setting is written for the next reset of the firmware; nothing here resets one.
"""

from __future__ import annotations

from typing import Any, Optional

from ..core import json_text, mlxconfig
from ..core.errors import RdmaError
from . import commands
from .files import Root

MLXCONFIG, MSTCONFIG, DEVLINK = TOOLS = ("mlxconfig", "mstconfig", "devlink")
LIMIT = 60.0
_LOCKED_DOWN = 3  # the exit code of the tools when they cannot open the device (S73)
_LOCKDOWN = "/sys/kernel/security/lockdown"


def find_tool(root: Root, asked: str = "") -> str:
    """The tool that is there: ``mlxconfig`` of the vendor's package first, then ``mstconfig`` (S66, S71).

    :raises RdmaError: ``tool_missing``.
    """
    for tool in (asked,) if asked else (MLXCONFIG, MSTCONFIG):
        if commands.find(root, tool) is not None:
            return tool
    raise RdmaError(
        "tool_missing",
        "The program %s is needed and not on this node." % (asked or "mlxconfig or mstconfig"),
        hint="Install mstflint, or the firmware tools of the vendor.",
        tool=asked or MSTCONFIG,
    )


def query(root: Root, tool: str, pci: str) -> mlxconfig.Query:
    """All settings of a card with default, current and next value.

    :raises RdmaError: ``tool_missing``, ``command_timeout``, ``firmware_locked_down`` or ``firmware_refused``.
    """
    return mlxconfig.parse(_run(root, tool, pci, ["-e", "query"]))


def write(root: Root, tool: str, pci: str, name: str, value: str) -> None:
    """Write one setting for the next reset of the firmware.

    :raises RdmaError: as :func:`query`.
    """
    _run(root, tool, pci, ["-y", "set", "%s=%s" % (name, value)])


def _run(root: Root, tool: str, pci: str, words: list[str]) -> str:
    done = commands.run(root, [tool, "-d", pci, *words], LIMIT, codes=None)
    if done.code == 0:
        return done.stdout
    said = [line.strip() for line in (done.stderr + "\n" + done.stdout).splitlines() if line.strip()]
    last = said[-1][:300] if said else "it said nothing"
    if done.code == _LOCKED_DOWN:
        mode = root.read(_LOCKDOWN) or ""
        raise RdmaError(
            "firmware_locked_down",
            "%s cannot open the card %s (exit code 3): %s. Lockdown of the kernel: %s."
            % (tool, pci, last.rstrip("."), mode.strip() or "not told"),
            hint="Under Secure Boot the kernel lets no program at the firmware: set the link type before, from the "
            "firmware's own menu or with Secure Boot off, and list mellanox in disablePlugins of the operator.",
            pci=pci,
        )
    raise RdmaError(
        "firmware_refused",
        "%s failed for the card %s with exit code %d: %s" % (tool, pci, done.code, last),
        hint="Run as root; see whether another tool has the card open.",
        pci=pci,
        exit_code=done.code,
    )


# Undo. The name is `TOOL PCI SETTING`, the value the text for the next reset.


def read_setting(root: Root, name: str) -> Any:
    tool, pci, setting = name.split()
    row = query(root, tool, pci).settings.get(setting)
    return None if row is None else row.next


def write_setting(root: Root, name: str, value: Any) -> None:
    tool, pci, setting = name.split()
    write(root, tool, pci, setting, number_of(value))


def number_of(text: str) -> str:
    """The number of a link type as the tools take it; other values are taken as they are printed."""
    return str(mlxconfig.LINK_TYPES.get(text.lower(), 3 if text == "VPI" else text))


# mlx4: the type of a port is changed by devlink, at once (S74)


def devlink_types(root: Root, pci: str) -> dict[int, str]:
    """The type (``ib``, ``eth``, ``auto``) of each port of an mlx4 card.

    :raises RdmaError: ``tool_missing``, ``command_failed`` or ``command_timeout``.
    """
    text = commands.run(root, [DEVLINK, "-j", "port", "show"], LIMIT).stdout
    try:
        ports = json_text.loads(text)["port"]
        found = {}
        for place, entry in ports.items():
            head, _slash, number = place.rpartition("/")
            if head == "pci/" + pci and number.isdecimal():
                found[int(number)] = str(entry.get("type", ""))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise RdmaError(
            "command_failed", "'devlink -j port show' printed something else than ports: %s." % error
        ) from error
    return found


def read_devlink_type(root: Root, name: str) -> Optional[str]:
    """The name is `PCI PORT`."""
    pci, number = name.split()
    return devlink_types(root, pci).get(int(number))


def write_devlink_type(root: Root, name: str, value: Any) -> None:
    pci, number = name.split()
    commands.run(root, [DEVLINK, "port", "set", "pci/%s/%s" % (pci, number), "type", str(value)], LIMIT)
