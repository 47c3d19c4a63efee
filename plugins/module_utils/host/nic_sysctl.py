# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""ARP and reverse path settings of RDMA NICs (F77-F80). Private to rdma.k8s: it may change with any release."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Optional

from ..core import json_text
from ..core.errors import RdmaError
from . import oca, uplinks
from .changes import Changes
from .files import Root

FILE = "/etc/sysctl.d/99-zz-rdma-k8s.conf"
"""It sorts behind ``99-sysctl.conf``, the link to ``/etc/sysctl.conf``, so that it counts."""

VALUES: dict[str, tuple[int, ...]] = {
    "accept_local": (0, 1),
    "arp_announce": (0, 1, 2),
    "arp_filter": (0, 1),
    "arp_ignore": (0, 1, 2, 3, 8),
    "rp_filter": (0, 1, 2),
}
"""What the kernel takes, and for the ARP settings what the driver takes (F78)."""

_LARGER_COUNTS = ("arp_announce", "arp_ignore", "rp_filter")
_OCA_SETS = ("arp_announce", "arp_ignore", "rp_filter")
_CONF = "/proc/sys/net/ipv4/conf"
_NAME = re.compile(r"[^\s/]{1,15}")
_HEAD = "# Managed by rdma.k8s.nic_sysctl: RDMA NICs that share a network.\n"


@dataclass(frozen=True)
class Left:
    """A setting that is left to the Oracle Cloud Agent, which sets it itself (F55)."""

    nic: str
    name: str
    found: str
    agent: str

    def to_dict(self) -> dict[str, str]:
        """As plain data."""
        return {"nic": self.nic, "name": self.name, "found": self.found, "agent": self.agent}


def apply(
    changes: Changes, nics: Sequence[str], wanted: Mapping[str, int], take_from_oca: bool, persist: bool
) -> list[Left]:
    """Give each NIC the wanted settings, now and for the next boot. Everything is read before anything is written.

    :returns: the settings that are left to the agent.
    :raises RdmaError: ``nics_none_named``, ``netdev_missing``, ``nic_carries_default_route``, ``route_list_unknown``,
        ``sysctl_overruled``, ``value_unreadable``, those of :class:`Changes`.
    """
    if not nics:
        raise RdmaError("nics_none_named", "No NIC is named in nics.", hint="Name the interfaces.")
    for nic in dict.fromkeys(nics):
        _require(changes.root, nic)
    uplinks.require_other(changes.root, dict.fromkeys(nics))
    agent = {} if take_from_oca else agent_values(changes.root)
    left: list[Left] = []
    todo: list[tuple[str, str, int, str]] = []
    for nic in dict.fromkeys(nics):
        for name, value in sorted(wanted.items()):
            found = changes.root.value("%s/%s/%s" % (_CONF, nic, name))
            if found is None:
                raise RdmaError(
                    "value_unreadable",
                    "The setting %s of %s cannot be read." % (name, nic),
                    nic=nic,
                    setting=name,
                )
            if name in agent:
                left.append(Left(nic, name, found, agent[name]))
            else:
                _require_effect(changes.root, nic, name, value)
                todo.append((nic, name, value, found))
    for nic, name, value, found in todo:
        changes.value("%s/%s/%s" % (_CONF, nic, name), str(value), current=found)
    if persist:
        lines = ["net/ipv4/conf/%s/%s = %d\n" % (nic, name, value) for nic, name, value, _found in todo]
        changes.file(FILE, _HEAD + "".join(lines) if lines else None)
    return left


def agent_values(root: Root) -> dict[str, str]:
    """What the agent's ``rdma_network.json`` says about settings that it sets itself; empty when it sets none (F55)."""
    text = root.read(oca.NETWORK)
    try:
        entry = json_text.loads(text or "{}")["rdma-network"][0]
        settings = entry["arp-settings"] if entry["default-settings"]["modify_arp"] is True else {}
        return {name: str(settings[name]) for name in _OCA_SETS if name in settings}
    except (ValueError, KeyError, IndexError, TypeError):
        return {}


def _require(root: Root, nic: str) -> None:
    place = "%s/%s" % (_CONF, nic)
    if not _NAME.fullmatch(nic) or nic in (".", "..", "all", "default") or not root.exists(place):
        raise RdmaError(
            "netdev_missing",
            "The node has no interface %r." % nic,
            hint="Look at `nics` of nic_info for the names.",
            netdev=nic,
        )


def _require_effect(root: Root, nic: str, name: str, value: int) -> None:
    """The kernel takes the larger one of ``all`` and the interface (F79)."""
    for_all: Optional[str] = root.value("%s/all/%s" % (_CONF, name)) if name in _LARGER_COUNTS else None
    if for_all is not None and for_all.isdecimal() and int(for_all) > value:
        raise RdmaError(
            "sysctl_overruled",
            "net.ipv4.conf.all.%s is %s, so that %d on %s has no effect: the larger one counts."
            % (name, for_all, value, nic),
            hint="Choose %s or more, or lower the setting of 'all' where it is set." % for_all,
            nic=nic,
            setting=name,
        )


ARGUMENTS: dict[str, dict[str, Any]] = {
    "nics": {"type": "list", "elements": "str", "required": True},
    "arp_ignore": {"type": "int", "choices": [0, 1, 2, 3, 8]},
    "arp_announce": {"type": "int", "choices": [0, 1, 2]},
    "arp_filter": {"type": "int", "choices": [0, 1]},
    "rp_filter": {"type": "int", "choices": [0, 1, 2]},
    "accept_local": {"type": "int", "choices": [0, 1]},
    "take_from_agent": {"type": "bool", "default": False},
    "persist": {"type": "bool", "default": True},
    "host_root": {"type": "path", "default": "/"},
}
"""Options of the module ``nic_sysctl``; one of :data:`VALUES` at least is needed."""


def act(changes: Changes, given: Mapping[str, Any]) -> dict[str, Any]:
    """What the module ``nic_sysctl`` does; its result.

    :param given: values for :data:`ARGUMENTS`.
    :raises RdmaError: see :func:`apply`.
    """
    wanted = {name: given[name] for name in VALUES if given[name] is not None}
    left = apply(changes, given["nics"], wanted, given["take_from_agent"], given["persist"])
    return {"left_to_agent": [each.to_dict() for each in left]}
