# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read and set the link type of cards. Private to rdma.k8s: it may change with any release.

Two ports of one card share its firmware, so cards are what is asked and set, by the address of their first function.
All cards are asked before the first one is written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Optional

from ..core import mlxconfig
from ..core.errors import RdmaError
from . import firmware, reboots, roce_ports
from .changes import Changes
from .files import Root
from .roce_ports import Port

OWNER = "link_type"
AUTO = "auto"
CONSENT = "allow_firmware"
_FUNCTIONS = "/sys/bus/pci/devices"
_MLX4 = "mlx4_core"


@dataclass(frozen=True)
class Card:
    """A card with what was found: ``rows`` of its ports, ``layers`` by port as sysfs has them."""

    pci: str
    tool: str
    rows: dict[int, mlxconfig.Setting]
    layers: dict[int, str]
    set: dict[str, int]
    pending: tuple[int, ...]
    reboot_required: bool
    contradictions: tuple[str, ...] = ()


def apply(  # noqa: PLR0917 (the options of the module)
    changes: Changes,
    devices: Sequence[str],
    wanted: Optional[str],
    ports: Optional[Sequence[int]] = None,
    tool: str = AUTO,
    allow_firmware: bool = False,
) -> dict[str, Any]:
    """Read the link types, and set them where ``wanted`` says so.

    :param devices: PCI addresses, interfaces or RDMA devices.
    :param wanted: ``ib`` or ``eth``; ``None`` reads only.
    :param ports: numbers of the ports that are meant; ``None``: all.
    :param allow_firmware: consent to write into firmware (decision 15).
    :returns: ``cards`` and ``reboot_required``.
    :raises RdmaError: ``nics_none_named``, ``link_type_device_unknown``, ``link_type_not_configurable``,
        ``link_type_dpu``, ``link_type_port_unknown``, ``consent_missing``, ``reboot_budget_spent`` and the errors of
        :mod:`.firmware` and :mod:`.reboots`, all before the first change; ``link_type_ignored`` after it.
    """
    root = changes.root
    _refuse_none(devices, ports)
    cards = [_card(root, pci, wanted, ports, tool) for pci in _addresses(root, devices)]
    to_set = [card for card in cards if card.set]
    if to_set and not allow_firmware:
        raise RdmaError(
            "consent_missing",
            "%s must be set on %s, which writes into firmware."
            % (
                ", ".join(sorted({name for card in to_set for name in card.set})),
                ", ".join([card.pci for card in to_set]),
            ),
            hint="Give %s: true to allow it. The node must be reset afterwards." % CONSENT,
            consent=CONSENT,
            cards=[card.pci for card in to_set],
        )
    if wanted is not None:
        _refuse_third_reboot(changes, cards, wanted)
    for card in to_set:
        _set(changes, card, str(wanted))
    if to_set and not changes.check_mode:
        cards = [_card(root, card.pci, wanted, ports, tool) for card in cards]
        _refuse_ignored(cards, str(wanted))
    if wanted is not None and not changes.check_mode:
        _count_reboots(root, cards, wanted)
    owed = any(card.reboot_required for card in cards)
    return {"cards": [_as_dict(card, wanted) for card in cards], "reboot_required": owed}


def _refuse_none(devices: Sequence[str], ports: Optional[Sequence[int]]) -> None:
    """An empty list is a variable without a value, and would be a success that did nothing."""
    for option, values in (("devices", devices), ("ports", ports)):
        if values is not None and not values:
            raise RdmaError(
                "nics_none_named",
                "Nothing is named in %s." % option,
                hint="Name %s, or leave the option out." % option
                if option == "ports"
                else "Name the cards by PCI addresses, interfaces or RDMA devices.",
            )


def plan_of(card: Card, wanted: str) -> str:
    """The name under which the reboots of a card are counted."""
    return "%s %s %s" % (OWNER, card.pci, wanted)


def _refuse_third_reboot(changes: Changes, cards: Sequence[Card], wanted: str) -> None:
    """DEV-01: a card that two reboots did not change, such as one that needs a power cycle (S69), stays as it is."""
    for card in cards:
        found = reboots.spent(changes.root, plan_of(card, wanted)) if card.reboot_required else None
        if found is None:
            continue
        if not changes.check_mode:
            reboots.request(changes.root, found.plan, found.reason)
        raise RdmaError(
            "reboot_budget_spent",
            "%d reboots did not give %s the link type %s, and a third needs a person: %s."
            % (reboots.BUDGET, card.pci, mlxconfig.LINK_LAYERS[wanted], found.reason),
            hint="Switch the machine off and on. When that helps, the count is forgotten by the next run.",
            plan=found.plan,
            boots=list(found.boots),
        )


def _count_reboots(root: Root, cards: Sequence[Card], wanted: str) -> None:
    for card in cards:
        if card.reboot_required:
            reason = "the card %s works with another link type than that of its next reset" % card.pci
            reboots.request(root, plan_of(card, wanted), reason)
        else:
            reboots.forget(root, plan_of(card, wanted))


def _addresses(root: Root, devices: Sequence[str]) -> list[str]:
    """The first function of each card that is meant."""
    known = roce_ports.ports(root)
    found: list[str] = []
    for name in devices:
        if root.exists("%s/%s" % (_FUNCTIONS, name)) and ":" in name:
            pci = name
        else:
            pci = next((port.pci for port in known if name in (port.device, port.netdev) and port.pci), "")
            pci = pci or _function_of(root, name)
        if not pci:
            raise RdmaError(
                "link_type_device_unknown",
                "%s is no PCI address, interface or RDMA device with hardware of this node." % name,
                hint="See the names with rdma.k8s.nic_info.",
                device=name,
            )
        first = pci[:-1] + "0" if root.exists("%s/%s0" % (_FUNCTIONS, pci[:-1])) else pci
        if first not in found:
            found.append(first)
    return found


def _function_of(root: Root, netdev: str) -> str:
    target = root.link("%s/%s/device" % (roce_ports.NET, netdev)) if "/" not in netdev else ""
    return target if target.count(":") == 2 else ""


def _card(root: Root, pci: str, wanted: Optional[str], ports: Optional[Sequence[int]], asked: str) -> Card:
    layers = _layers(root, pci)
    if asked == firmware.DEVLINK or (
        asked == AUTO and root.link("%s/%s/driver" % (_FUNCTIONS, pci)) == _MLX4
    ):
        return _devlink_card(root, pci, wanted, ports, layers)
    tool = firmware.find_tool(root, "" if asked == AUTO else asked)
    query = firmware.query(root, tool, pci)
    if wanted is None:
        plan = mlxconfig.plan(query, mlxconfig.ETH)
        owed = any(row.current not in (row.next, None) for row in plan.ports.values())
        return _made(root, pci, tool, plan.ports, layers, {}, (), owed)
    plan = mlxconfig.plan(query, wanted, ports)
    if not plan.configurable:
        _accept_fixed(pci, wanted, layers)
        return Card(pci, tool, {}, layers, {}, (), False)
    if plan.set and mlxconfig.is_dpu(query):
        raise RdmaError(
            "link_type_dpu",
            "The card %s is a BlueField in DPU mode: its own processor owns the ports." % pci,
            hint="Set the link type on the card itself, or take it out of DPU mode.",
            pci=pci,
        )
    return _made(root, pci, tool, plan.ports, layers, plan.set, plan.pending, plan.reboot_required)


def _made(  # noqa: PLR0917 (the fields of a card)
    root: Root,
    pci: str,
    tool: str,
    rows: Any,
    layers: dict[int, str],
    to_set: Any,
    pending: tuple[int, ...],
    owed: bool,
) -> Card:
    """A card with where firmware, sysfs and PCI class differ (S75)."""
    said: list[str] = []
    for number, row in rows.items():
        layer = layers.get(number)
        pci_class = (root.value("%s/%s%d/class" % (_FUNCTIONS, pci[:-1], number - 1)) or "")[2:6] or None
        said += [
            "port %d: %s" % (number, text) for text in mlxconfig.contradictions(row.current, layer, pci_class)
        ]
    return Card(pci, tool, dict(rows), layers, dict(to_set), pending, owed, tuple(said))


def _accept_fixed(pci: str, wanted: str, layers: dict[int, str]) -> None:
    """A card without the setting is right when it has the wished type anyway (S68)."""
    layer = mlxconfig.LINK_LAYERS[wanted]
    if layers and set(layers.values()) == {layer}:
        return
    raise RdmaError(
        "link_type_not_configurable",
        "The card %s has no setting LINK_TYPE: its type is fixed%s, and %s was asked for."
        % (pci, " to %s" % ", ".join(sorted(set(layers.values()))) if layers else "", layer),
        hint="Replace the card; no setting helps.",
        pci=pci,
    )


def _layers(root: Root, pci: str) -> dict[int, str]:
    """Link layer of each port of a card: one function a port (mlx5), or all ports on one function (mlx4)."""
    found = {}
    mine = [port for port in roce_ports.ports(root) if port.pci[:-1] == pci[:-1] and not port.is_vf]
    for port in mine:
        function = int(port.pci[-1])
        found[function + port.port if _is_one_each(mine) else port.port] = port.link_layer
    return dict(sorted(found.items()))


def _is_one_each(ports: Sequence[Port]) -> bool:
    return all(port.port == 1 for port in ports)


def _devlink_card(
    root: Root, pci: str, wanted: Optional[str], ports: Optional[Sequence[int]], layers: dict[int, str]
) -> Card:
    types = firmware.devlink_types(root, pci)
    if not types and wanted is not None:
        _accept_fixed(pci, wanted, layers)
    meant = types if ports is None else {number: types[number] for number in ports if number in types}
    rows = {
        number: mlxconfig.Setting("%d" % number, kind.upper(), kind.upper()) for number, kind in meant.items()
    }
    to_set = (
        {}
        if wanted is None
        else {"%d" % number: mlxconfig.LINK_TYPES[wanted] for number, kind in meant.items() if kind != wanted}
    )
    return Card(pci, firmware.DEVLINK, rows, layers, to_set, (), False)


def _set(changes: Changes, card: Card, wanted: str) -> None:
    rows = {row.name: row for row in card.rows.values()}
    for name, value in card.set.items():
        if card.tool == firmware.DEVLINK:
            _set_devlink(changes, "%s %s" % (card.pci, name), rows[name].next.lower(), wanted)
        else:
            _set_firmware(changes, card, rows[name], value, wanted)


def _set_devlink(changes: Changes, label: str, before: str, after: str) -> None:
    def write() -> None:
        firmware.write_devlink_type(changes.root, label, after)

    changes.live("devlink_type", label, before, after, write)


def _set_firmware(changes: Changes, card: Card, row: mlxconfig.Setting, value: int, wanted: str) -> None:
    def write() -> None:
        firmware.write(changes.root, card.tool, card.pci, row.name, str(value))

    label = "%s %s %s" % (card.tool, card.pci, row.name)
    changes.live("firmware", label, row.next, wanted.upper(), write)


def _refuse_ignored(cards: Sequence[Card], wanted: str) -> None:
    left = [card for card in cards if card.set]
    if left:
        raise RdmaError(
            "link_type_ignored",
            "The tool reported success, and %s still has another type than %s for its next reset."
            % (", ".join([card.pci for card in left]), wanted),
            hint="Look for a locked or read-only setting in the output of the tool.",
            cards=[card.pci for card in left],
        )


def _as_dict(card: Card, wanted: Optional[str]) -> dict[str, Any]:
    return {
        "pci": card.pci,
        "tool": card.tool,
        "configurable": bool(card.rows),
        "ports": [
            {
                "port": number,
                "default": row.default,
                "current": row.current,
                "next": row.next,
                "link_layer": card.layers.get(number),
            }
            for number, row in card.rows.items()
        ]
        or [
            {"port": number, "default": None, "current": None, "next": None, "link_layer": layer}
            for number, layer in card.layers.items()
        ],
        "set": dict(card.set),
        "pending": list(card.pending),
        "reboot_required": card.reboot_required,
        "contradictions": list(card.contradictions),
        "wanted": wanted,
    }
