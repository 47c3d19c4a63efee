# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What several modules would change on a node, asked in one process. Private to rdma.k8s: it may change any time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Callable, Optional

from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

from .core import nic_places
from .core.errors import RdmaError
from .host import kernel_modules, memlock, netns_mode, nic_mtu, nic_sysctl, oca_run, roce_qos
from .host.changes import Changes
from .host.collect import collect
from .host.files import Root

NIC_SUBSETS = ("rdma", "links", "routes", "pci", "oca")
"""What a NIC's place in the network is told by."""


@dataclass(frozen=True)
class Setting:
    """A module that can be asked: its options, what it does, and its option for NICs, if it sets those."""

    arguments: Mapping[str, Mapping[str, Any]]
    act: Callable[[Changes, Mapping[str, Any]], dict[str, Any]]
    nics: str = ""


SETTINGS = {
    "kernel_modules": Setting(kernel_modules.ARGUMENTS, kernel_modules.act),
    "netns_mode": Setting(netns_mode.ARGUMENTS, netns_mode.act),
    "oca_config": Setting(oca_run.ARGUMENTS, oca_run.act),
    "nic_mtu": Setting(nic_mtu.ARGUMENTS, nic_mtu.act, "nics"),
    "nic_sysctl": Setting(nic_sysctl.ARGUMENTS, nic_sysctl.act, "nics"),
    "roce_qos": Setting(roce_qos.ARGUMENTS, roce_qos.act, "interfaces"),
    "runtime_memlock": Setting(memlock.ARGUMENTS, memlock.act),
}
_OWED = ("reboot_required", "restart_required", "notes")
"""Values of a result that a person must hear of although nothing would change."""


def ask(
    host_root: str, wishes: Mapping[str, Mapping[str, Any]], nics: Sequence[str], only_rdma_network: bool
) -> dict[str, Any]:
    """Ask each module for what it would change, without changing anything.

    :param wishes: name of the module to its options; those for NICs are filled in.
    :param nics: NICs to ask about; none: those that may be set up, see :func:`nic_places.to_set_up`.
    :returns: ``nics``, ``found`` (all NICs of the node, when they were looked for), ``pending`` and ``settings``.
    :raises RdmaError: ``node_setting_unknown``, ``node_setting_options``.
    """
    options = {name: options_of(name, given, host_root) for name, given in wishes.items()}
    found = None
    if not nics and any(SETTINGS[name].nics for name in options):
        found = nic_places.as_dicts(collect(host_root=host_root, subsets=NIC_SUBSETS))
        nics = nic_places.to_set_up(found, only_rdma_network)
    answers = {name: _answer(name, options[name], nics, host_root) for name in options}
    return {
        "nics": list(nics),
        "found": found,
        "pending": [name for name, answer in answers.items() if _is_pending(answer)],
        "settings": answers,
    }


def options_of(name: str, given: Mapping[str, Any], host_root: str) -> dict[str, Any]:
    """All options of a module, those that are not given with their defaults.

    :raises RdmaError: ``node_setting_unknown``, ``node_setting_options``.
    """
    setting = SETTINGS.get(name)
    if setting is None:
        raise RdmaError(
            "node_setting_unknown",
            "settings: there is no setting %s; expected one of %s." % (name, ", ".join(SETTINGS)),
            hint="Name a module that sets something on a node.",
            setting=name,
        )
    spec = {key: dict(entry) for key, entry in setting.arguments.items() if key != "host_root"}
    filled: dict[str, Any] = {setting.nics: []} if setting.nics else {}
    result = ArgumentSpecValidator(spec).validate({**filled, **given})
    if result.error_messages:
        raise RdmaError(
            "node_setting_options",
            "settings: %s: %s." % (name, result.error_messages[0].rstrip(".")),
            hint="Give it the options of the module %s." % name,
            setting=name,
        )
    return {**result.validated_parameters, "host_root": host_root}


def _answer(
    name: str, given: dict[str, Any], nics: Sequence[str], host_root: str
) -> Optional[dict[str, Any]]:
    """What the module says in check mode; ``None``: it has no NIC to set."""
    setting = SETTINGS[name]
    if setting.nics:
        given[setting.nics] = given[setting.nics] or list(nics)
        if not given[setting.nics]:
            return None
    changes = Changes(Root(host_root), name, check_mode=True)
    try:
        with changes:
            result = setting.act(changes, given)
    except RdmaError as error:
        result = {"refused": {"code": error.code, "message": str(error)}}
    return {"changed": changes.changed, "actions": list(changes.actions), **result}


def _is_pending(answer: Optional[dict[str, Any]]) -> bool:
    if answer is None:
        return False
    return answer["changed"] or "refused" in answer or any(answer.get(name) for name in _OWED)
