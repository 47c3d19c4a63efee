# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a check read on a node, with the values. Private to rdma.k8s: it may change with any release.

Each reader belongs to fields of the snapshot that checks need, or to sources that they name as evidence.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import fields
from typing import Any, Callable, Optional

from ..core import codec
from ..core.checks import oca
from ..core.checks.context import Node
from ..core.checks.registry import Check
from ..core.nics import Nic
from ..core.snapshot import Arp, Slow
from .terminal import Terminal

MOST = 24
"""How many lines of one list are shown."""

Pair = tuple[str, str]
Pairs = Callable[[Node], list[Pair]]
Table = Callable[[Terminal, Node], None]


def print_read(terminal: Terminal, node: Node, check: Check) -> None:
    """The values that a check read: settings and documents, then tables and lists."""
    settings = [source.split(" ", 1)[1] for source in check.evidence if source.startswith("setting ")]
    pairs = [("setting %s" % name, _setting(node, name)) for name in settings]
    for wanted, pairs_of in _PAIRS:
        if _reads(check, wanted):
            pairs += pairs_of(node)
    tables = [table for wanted, table in _TABLES if _reads(check, wanted)]
    if _arp in tables:
        tables.remove(_nics)
    if _others in tables and "links" not in check.needs:
        tables.remove(_others)
    sources = tuple([source.split("*")[0] for source in check.evidence])
    errors = [error for error in node.snapshot.errors if error.source.startswith(sources)]
    if not (pairs or tables or errors):
        return
    terminal.heading("Read on %s%s" % (node.name, _when(node)))
    terminal.pairs(pairs)
    for table in tables:
        terminal.lines("")
        table(terminal, node)
    for error in errors:
        terminal.paragraph("not readable: %s: %s" % (error.source, error.reason))


def _reads(check: Check, wanted: Sequence[str]) -> bool:
    """Whether a check needs one of these fields, or names a source that begins like one of these texts."""
    return any(
        name in check.needs or source.startswith(name) for name in wanted for source in ("", *check.evidence)
    )


def _when(node: Node) -> str:
    return ", recorded %s" % node.snapshot.collected_at if node.snapshot.collected_at else ""


def _setting(node: Node, name: str) -> str:
    if name == "child_range":
        return node.range_text
    value = getattr(node.policy, name, None)
    if value is None:
        return "not given"
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _rows(terminal: Terminal, label: str, rows: Any) -> None:
    if rows is None:
        terminal.pairs([(label, "not known")])
        return
    texts = [str(row) for row in rows]
    terminal.pairs([(label, "%d%s" % (len(texts), ":" if texts else ""))])
    for text in texts[:MOST]:
        terminal.paragraph(text, indent="      ", first="    ")
    if len(texts) > MOST:
        terminal.lines("    and %d more" % (len(texts) - MOST))


def _nics(terminal: Terminal, node: Node) -> None:
    if not node.nics:
        terminal.pairs([("RDMA NICs", "none found")])
        return
    head = ("NIC", "DEVICE", "PCI", "STATE", "PHYSICAL", "LAYER", "RATE", "MTU", "RDMA MTU")
    terminal.table(head, [_nic_row(nic) for nic in node.nics])


def _nic_row(nic: Nic) -> tuple[str, ...]:
    port, link = nic.port, nic.link
    return (
        nic.name,
        "%s/%d" % (nic.device.name, port.port) if nic.device is not None and port is not None else "none",
        nic.pci,
        (port.state if port is not None else None) or "?",
        (port.phys_state if port is not None else None) or "?",
        nic.link_layer or "?",
        ((port.rate if port is not None else None) or "?").partition(" (")[0],
        str(link.mtu) if link is not None else "",
        str(port.active_mtu) if port is not None else "",
    )


def _arp(terminal: Terminal, node: Node) -> None:
    rows = [("all", node.snapshot.arp_all)]
    rows += [(nic.name, nic.link.arp if nic.link is not None else None) for nic in node.nics]
    terminal.table(
        ("NIC", "ARP_IGNORE", "ARP_ANNOUNCE", "ARP_FILTER", "RP_FILTER"),
        [(name, *_arp_values(arp)) for name, arp in rows],
    )


def _arp_values(arp: Optional[Arp]) -> list[str]:
    values = (arp.ignore, arp.announce, arp.filter, arp.rp_filter) if arp is not None else [None] * 4
    return ["?" if value is None else value for value in values]


def _others(terminal: Terminal, node: Node) -> None:
    names = {nic.name for nic in node.nics}
    links = [link for link in node.snapshot.links or () if link.name not in names]
    if links:
        terminal.lines("  other interfaces")
        terminal.table(
            ("NAME", "KIND", "STATE", "MASTER", "PARENT", "ADDRESSES"),
            [
                (
                    link.name,
                    link.kind or "physical",
                    link.state,
                    link.master,
                    link.parent,
                    ", ".join(link.addresses),
                )
                for link in links[:MOST]
            ],
            indent="    ",
        )


def _firmware(terminal: Terminal, node: Node) -> None:
    devices = node.snapshot.devices or ()
    terminal.table(
        ("DEVICE", "BOARD", "FIRMWARE", "VERBS"),
        [(device.name, device.board, device.firmware, device.uverbs) for device in devices],
    )


def _mode(node: Node) -> list[Pair]:
    system = node.snapshot.rdma
    return [
        ("netns mode", "%s (RDMA netlink)" % (system.netns_mode or "not known")),
        (
            "parameter",
            "%s (/sys/module/ib_core/parameters/netns_mode)" % (system.netns_parameter or "not known"),
        ),
    ]


def _options(terminal: Terminal, node: Node) -> None:
    options = node.snapshot.module_options
    rows = None
    if options is not None:
        rows = [
            "%s:%s %s=%s" % (entry.source, entry.line or "", entry.option, entry.value) for entry in options
        ]
    _rows(terminal, "ib_core options", rows)


def _modules(node: Node) -> list[Pair]:
    modules = node.snapshot.modules
    return [("modules", ", ".join(["%s %s" % pair for pair in sorted(modules.items())]) or "none known")]


def _char_devices(node: Node) -> list[Pair]:
    devices = node.snapshot.char_devices
    return [("/dev/infiniband", "not known" if devices is None else ", ".join(devices) or "empty")]


def _document(name: str) -> Pairs:
    def pairs(node: Node) -> list[Pair]:
        documents = node.snapshot.imds
        value = getattr(documents, name) if documents is not None else None
        return [("imds:/%s/" % name, "no answer" if value is None else json.dumps(value, ensure_ascii=False))]

    return pairs


def _oca_file(label: str, field: str) -> Pairs:
    def pairs(node: Node) -> list[Pair]:
        files = node.snapshot.oca
        value = getattr(files, field) if files is not None else None
        if isinstance(value, dict):
            value = json.dumps(value, ensure_ascii=False)
        return [(label, "not known" if value is None else str(value) or "no such file")]

    return pairs


def _lists(label: str, field: str) -> Table:
    return lambda terminal, node: _rows(terminal, label, getattr(node.snapshot, field))


def _firewall(terminal: Terminal, node: Node) -> None:
    rules: Any = node.snapshot.firewall
    if rules is not None:
        rules = [
            "%s %s %s: %s %s" % (rule.family, rule.table, rule.chain, rule.verdict, rule.text)
            for rule in rules
        ]
    _rows(terminal, "packet filter rules about UDP 4791", rules)


def _proof(terminal: Terminal, node: Node) -> None:
    section = node.snapshot.fabric
    if section is None:
        terminal.pairs([("fabric proof", "not known")])
        return
    terminal.lines("  children of the proof")
    terminal.table(
        ("NIC", "STATE", "ADDRESS", "GID", "GONE"),
        [
            (child.nic, child.state, child.address, _text(child.gid), _text(child.gone))
            for child in section.children[:MOST]
        ],
    )
    terminal.lines("", "  probes")
    terminal.table(
        ("NIC", "PEER", "NEIGHBOUR", "ECHO", "FULL SIZE", "RDMA"),
        [
            (
                probe.nic,
                probe.peer,
                _text(probe.neighbour),
                "%d/%d" % (probe.received, probe.sent),
                probe.full_error or "%d/%d" % (probe.full_received, probe.full_sent),
                _text(probe.rdma),
            )
            for probe in section.probes[:MOST]
        ],
    )


def _text(value: Any) -> str:
    return "-" if value is None else str(value)


def _slow(field: str) -> Table:
    """The entries of one source of the subset ``slow``."""

    def table(terminal: Terminal, node: Node) -> None:
        held = None if node.snapshot.slow is None else getattr(node.snapshot.slow, field)
        entries = held if held is None or isinstance(held, tuple) else (held,)
        rows = None if entries is None else [json.dumps(codec.encode(entry)) for entry in entries]
        _rows(terminal, field.replace("_", " "), rows)

    return table


_PAIRS: Sequence[tuple[Sequence[str], Pairs]] = (
    (("rdma-netlink", "/sys/module/ib_core"), _mode),
    (("/proc/modules",), _modules),
    (("char_devices",), _char_devices),
    (("imds:/host/",), _document("host")),
    (("imds:/instance/",), _document("instance")),
    (("imds:/vnics/",), _document("vnics")),
    ((oca.DIRECTORY,), _oca_file("OCA directory", "directory")),
    ((oca.NETWORK_FILE,), _oca_file("rdma_network.json", "rdma_network")),
    ((oca.FEATURES_FILE,), _oca_file("rdma_features_enable.json", "rdma_features_enable")),
    ((oca.STATE_FILE,), _oca_file("state file", "configure_state")),
    (("oracle-cloud-agent",), _oca_file("agent version", "agent_version")),
    (("oracle-cloud-agent",), _oca_file("plugins", "plugins")),
)
_TABLES: Sequence[tuple[Sequence[str], Table]] = (
    (("module_options",), _options),
    (("devices", "links"), _nics),
    (("rtnetlink",), _others),
    (("/proc/sys/net",), _arp),
    (("/sys/class/infiniband/*/fw_ver", "/sys/class/infiniband_verbs"), _firmware),
    (("pci",), _lists("PCI functions", "pci")),
    (("routes",), _lists("routes", "routes")),
    (("rules",), _lists("rules", "rules")),
    (("firewall",), _firewall),
    (("fabric",), _proof),
    *((("slow.%s" % field.name,), _slow(field.name)) for field in fields(Slow)),
)
"""Fields that a check needs, or beginnings of the sources that it names; and what shows their values."""
