# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One step of a roll on its node, run by the node agent: ``python3 -m rdma_k8s.host.agent_step`` (decision 23).

It reads one line of JSON, ``{"step": ..., "host_root": ..., "options": {...}}``, and prints one line of JSON:
``{"result": {...}}`` or ``{"error": {...}}``. Each step can be done again. Private to rdma.k8s: it may change any time.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any, Callable, TextIO

from ..core import json_text
from ..core.errors import RdmaError
from ..core.oke import oca as oca_reader
from . import commands, netns_mode, oca, oca_run
from .changes import Changes
from .files import Root
from .reboots import BOOT_ID

_LARGEST = 1 << 16
_PATIENCE = 30.0


def run(text: str) -> dict[str, Any]:
    """Do what a line asks for; the answer as plain data."""
    try:
        asked = json_text.loads(text)
        if not isinstance(asked, dict) or asked.get("step") not in STEPS:
            raise RdmaError(
                "agent_step",
                "The node agent was asked for %r, expected an object with one of the steps %s."
                % (text[:100], ", ".join(sorted(STEPS))),
                hint="Use a node agent of the same release as the controller.",
            )
        root = Root(str(asked.get("host_root") or "/"))
        options = asked.get("options")
        return {"result": STEPS[asked["step"]](root, options if isinstance(options, dict) else {})}
    except RdmaError as error:
        return {"error": error.to_dict()}
    except ValueError as error:
        return {
            "error": RdmaError("agent_step", "The node agent cannot read its order: %s." % error).to_dict()
        }


def look(root: Root, options: Mapping[str, Any]) -> dict[str, Any]:
    """What the node has now.

    :returns: ``netns_mode``, ``oca_network`` (both empty when there is none), ``boot_id``.
    """
    written = oca.read(root).rdma_network
    try:
        network = str(oca_reader.parse_network(written)) if written else ""
    except RdmaError:
        network = ""
    return {
        "netns_mode": netns_mode.running(root).mode or "",
        "oca_network": network,
        "boot_id": root.value(BOOT_ID) or "",
    }


def set_netns_mode(root: Root, options: Mapping[str, Any]) -> dict[str, Any]:
    """Enforce the namespace mode, as the module ``netns_mode`` does."""
    given = {**_defaults(netns_mode.ARGUMENTS), **options}
    with Changes(root, "netns_mode") as changes:
        result = netns_mode.act(changes, given)
    return {"changed": changes.changed, "reboot_required": bool(result["reboot_required"])}


def set_oca_network(root: Root, options: Mapping[str, Any]) -> dict[str, Any]:
    """Write the network of the agent of the cloud, as the module ``oca_config`` does, and let it read it."""
    given = {**_defaults(oca_run.ARGUMENTS), **options}
    with Changes(root, "oca_config") as changes:
        result = oca_run.act(changes, given)
    restarted = []
    for owed in result["restart_required"]:
        if owed["component"] == "agent":
            commands.run(root, owed["command"].split(), 120.0)
            restarted.append(owed["command"])
    return {"changed": changes.changed, "reboot_required": False, "restarted": restarted}


def reboot(root: Root, options: Mapping[str, Any]) -> dict[str, Any]:
    """Boot the node, if it is still in the boot that is to end."""
    boot_id = root.value(BOOT_ID) or ""
    if not boot_id or boot_id != options.get("boot_id"):
        return {"asked": False, "boot_id": boot_id}
    words = ["env", "SYSTEMD_IGNORE_CHROOT=1", "systemctl", "--no-block", "reboot"]
    commands.run(root, words, _PATIENCE)
    return {"asked": True, "boot_id": boot_id}


STEPS: Mapping[str, Callable[[Root, Mapping[str, Any]], dict[str, Any]]] = {
    "look": look,
    "netns_mode": set_netns_mode,
    "oca_network": set_oca_network,
    "reboot": reboot,
}


def _defaults(arguments: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    return {name: spec.get("default") for name, spec in arguments.items()}


def main(source: TextIO = sys.stdin, target: TextIO = sys.stdout) -> None:
    """Read an order, carry it out, answer."""
    json.dump(run(source.readline(_LARGEST)), target)
    target.write("\n")
    target.flush()


if __name__ == "__main__":
    main()
