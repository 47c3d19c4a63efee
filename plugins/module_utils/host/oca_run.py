# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A run of the module ``oca_config``. Private to rdma.k8s: it may change with any release."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..core import bounds
from ..core.oke import oca_file, oca_network, oca_restart
from . import brief, imds, oca_config
from .changes import Changes

ARGUMENTS: dict[str, dict[str, Any]] = {
    "state": {"type": "str", "choices": ["present", "directory", "absent"], "default": "present"},
    "rdma_network": {"type": "str"},
    "nics": {"type": "int", "default": 16},
    "primary_subnet": {"type": "str"},
    "networks": {"type": "dict", "default": {}},
    "child_range": {"type": "str"},
    "replace_unusable": {"type": "bool", "default": False},
    "driver_started_at": {"type": "int"},
    "imds_url": {"type": "str"},
    "imds_timeout": {"type": "float", "default": 5},
    "host_root": {"type": "path", "default": "/"},
}
"""Options of the module ``oca_config``."""


def act(changes: Changes, given: Mapping[str, Any]) -> dict[str, Any]:
    """What the module ``oca_config`` does; its result.

    :param given: values for :data:`ARGUMENTS`.
    :raises RdmaError: those of its parts.
    """
    bounds.require_seconds(given, "imds_timeout")
    modified = oca_config.last_change(changes.root)
    network = None
    if given["state"] == "present":
        network = oca_network.parse(given["rdma_network"])
        metadata = imds.read(changes.root, given["imds_url"] or "", given["imds_timeout"])
        around = oca_config.surroundings(
            brief.read(changes.root, metadata.documents),
            given["primary_subnet"] or "",
            given["networks"],
            given["child_range"] or "",
            given["nics"],
        )
        oca_network.require(network, around)
        files_change = oca_config.set_network(changes, network, given["replace_unusable"])
    elif given["state"] == "directory":
        files_change = oca_config.make_directory(changes)
    else:
        files_change = oca_config.remove(changes)
    found = oca_config.agent(changes.root)
    restarts = oca_restart.owed(files_change, modified, found, given["driver_started_at"])
    return {
        "network": None if network is None else str(network),
        "netmask": None if network is None else oca_file.netmask_of(network),
        "previous": oca_config.previous(changes),
        "agent": vars(found),
        "restart_required": [restart.to_dict() for restart in restarts],
    }
