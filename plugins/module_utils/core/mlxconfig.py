# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The settings of a card's firmware as ``mlxconfig`` and ``mstconfig`` print them, and the plan for its link type.

Private to rdma.k8s: it may change with any release. A setting that is written takes effect after a reset of the
firmware, usually a reboot (S69). With ``-e`` the tools print default, current and next value of each setting and mark
rows that differ; without it only the next value is there (S66).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Optional

from .errors import RdmaError

IB, ETH = "ib", "eth"
LINK_TYPES = {IB: 1, ETH: 2}
"""The two types that can be wished, with their numbers (S67); a card of the ConnectX-3 age also says VPI(3)."""
LINK_LAYERS = {IB: "InfiniBand", ETH: "Ethernet"}
PCI_CLASSES = {IB: "0207", ETH: "0200"}
NOT_CONFIGURABLE = "link_type_not_configurable"

_ROW = re.compile(
    r"(?P<mark>\*|RO)?\s+(?:RO\s+)?(?P<name>[A-Z][A-Z0-9_]*(?:\[[^\]]*\])?)\s+(?P<values>\S.*)\Z"
)
_FACT = re.compile(r"(?P<name>[A-Z][A-Za-z ]*):\s+(?P<value>\S.*)\Z")
_NAMED = re.compile(r"(?P<text>[^()]+)\((?P<number>[^()]+)\)\Z")
_LINK_TYPE = re.compile(r"LINK_TYPE_P([1-9][0-9]*)\Z")
_FEWEST, _ALL = 1, 3


@dataclass(frozen=True)
class Setting:
    """One row: the texts in front of the numbers (``IB`` of ``IB(1)``); ``default`` and ``current`` need ``-e``."""

    name: str
    next: str
    current: Optional[str] = None
    default: Optional[str] = None
    differs: Optional[bool] = None


@dataclass(frozen=True)
class Query:
    """What a tool printed of one card: ``facts`` are the lines above the table (``Device type``, ``Name``)."""

    settings: Mapping[str, Setting]
    facts: Mapping[str, str] = field(default_factory=dict)

    @property
    def ports(self) -> dict[int, Setting]:
        """The link type of each port that has one."""
        found = {}
        for name, setting in self.settings.items():
            match = _LINK_TYPE.match(name)
            if match:
                found[int(match[1])] = setting
        return dict(sorted(found.items()))


def parse(text: str) -> Query:
    """Read what ``query`` printed, with or without ``-e``. Lines that are no settings are left out."""
    settings, facts = {}, {}
    for line in text.splitlines():
        row = _ROW.match(line.rstrip())
        if row:
            values = [_text_of(value) for value in row["values"].split()]
            if len(values) == _ALL:
                default, current, following = values
                setting = Setting(row["name"], following, current, default, row["mark"] == "*")
            elif len(values) == _FEWEST:
                setting = Setting(row["name"], values[0])
            else:
                continue
            settings[setting.name] = setting
            continue
        fact = _FACT.match(line.strip())
        if fact:
            facts[fact["name"]] = fact["value"].strip()
    return Query(settings, facts)


def _text_of(value: str) -> str:
    match = _NAMED.match(value)
    return match["text"] if match else value


@dataclass(frozen=True)
class LinkTypePlan:
    """What must happen so that a card gets a link type.

    :param configurable: the card has the setting at all.
    :param ports: the rows of the ports that are meant.
    :param set: settings that must be written, with the numbers to write.
    :param pending: ports whose next value is right and whose current one is not: only the reset is missing.
    :param reboot_required: a reset is owed now, or after the settings are written.
    """

    configurable: bool
    ports: Mapping[int, Setting]
    set: Mapping[str, int]
    pending: tuple[int, ...]
    reboot_required: bool


def plan(query: Query, wanted: str, ports: Optional[Iterable[int]] = None) -> LinkTypePlan:
    """The three states of S69 for each port: as wanted, reset pending, must be set.

    :param wanted: ``ib`` or ``eth``.
    :param ports: numbers of the ports that are meant; ``None``: all of the card (S67: a card with two needs both).
    :raises RdmaError: ``link_type_port_unknown``.
    """
    known = query.ports
    if ports is not None and known:
        unknown = sorted(set(ports) - set(known))
        if unknown:
            raise RdmaError(
                "link_type_port_unknown",
                "The card has the ports %s; found %s."
                % (", ".join(map(str, known)), ", ".join(map(str, unknown))),
                ports=unknown,
            )
        known = {port: known[port] for port in sorted(set(ports))}
    name = wanted.upper()
    unset = [port for port, setting in known.items() if setting.next != name]
    pending = [
        port
        for port, setting in known.items()
        if setting.next == name and setting.current not in (name, None)
    ]
    not_active = [port for port, setting in known.items() if setting.current not in (name, None)]
    return LinkTypePlan(
        configurable=bool(query.ports),
        ports=known,
        set={known[port].name: LINK_TYPES[wanted] for port in unset},
        pending=tuple(pending),
        reboot_required=bool(not_active) or any(known[port].current is None for port in unset),
    )


_DPU_MODE = {"INTERNAL_CPU_MODEL": ("EMBEDDED_CPU",), "INTERNAL_CPU_OFFLOAD_ENGINE": ("ENABLED",)}


def is_dpu(query: Query) -> bool:
    """Whether a BlueField runs in DPU mode: its own processor owns the ports, so the host must not set them (S72)."""
    found = [query.settings.get(name) for name in _DPU_MODE]
    return all(
        setting is not None and (setting.current or setting.next) in values
        for setting, values in zip(found, _DPU_MODE.values())
    )


def contradictions(
    current: Optional[str], link_layer: Optional[str], pci_class: Optional[str]
) -> tuple[str, ...]:
    """Where three answers to one question differ (S28, S75): firmware, sysfs, PCI class.

    :param current: ``IB``, ``ETH`` or ``VPI`` as the firmware says it works now; ``None`` is not known for each.
    """
    answers = {}
    for source, value, table in (
        ("the firmware", current, {name.upper(): name for name in LINK_TYPES}),
        ("link_layer in sysfs", link_layer, {text: name for name, text in LINK_LAYERS.items()}),
        ("the PCI class", pci_class, {text: name for name, text in PCI_CLASSES.items()}),
    ):
        if value is not None and value in table:
            answers[source] = table[value]
    if len(set(answers.values())) < 2:
        return ()
    return tuple(["%s says %s" % (source, LINK_LAYERS[kind]) for source, kind in answers.items()])
