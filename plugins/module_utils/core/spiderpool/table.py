# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The table of rails as a user writes it, and what is wrong with it. Private to rdma.k8s: it may change any time.

What the objects of a rail must not be is told by the rules of these objects; here is what a table alone can be wrong
in: a row that is no rail, and rows that do not go together.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Optional

from ..net import Address, find_address, find_prefix, quoted
from .issue import Issue, error, is_between, warning, whole
from .names import ETHERNET, INFINIBAND, MELLANOX
from .objects import names_of
from .rails import MOST_RAILS, Rail

KNOWN = (*Rail._fields, "device")
LINK_TYPES = (ETHERNET, INFINIBAND)
SUBJECT = "rails"
_PCI = re.compile(r"[0-9a-f]{4}:[0-9a-f]{2}:[01][0-9a-f]\.[0-7]")
_SHORT = re.compile(r"[0-9a-f]{2}:[01][0-9a-f]\.[0-7]")
_INTERFACE = re.compile(r"[^\s/:#]{1,15}")
_LEAST_MTU, _MOST_MTU = 576, 65535
_OPEN = re.compile(r"\$\{[^}]*\}|\$\([^)]*\)|\{\{.*\}\}")


class Told(NamedTuple):
    """A finding: what it is about, and what is wrong."""

    subject: str
    issue: Issue


class Defaults(NamedTuple):
    """What a row has that does not say otherwise. ``link_type`` empty: each row says it."""

    link_type: str = ""
    vfs: int = 8
    mtu: Optional[int] = None
    resource: str = "gpu{rail}sriov"
    vendor: str = MELLANOX


class Table(NamedTuple):
    """The rows that can be read, and what is wrong."""

    rails: tuple[Rail, ...]
    told: tuple[Told, ...]


def read(rows: Any, defaults: Defaults, inject: bool = False) -> Table:
    """Read a table.

    :param inject: whether pods get their networks by injection, which orders them by the texts of the names (S163).
    """
    if not isinstance(rows, list) or not 1 <= len(rows) <= MOST_RAILS:
        message = "the table is a list of 1 to %d rails, found %s" % (
            MOST_RAILS,
            len(rows) if isinstance(rows, list) else type(rows).__name__,
        )
        return Table((), (Told(SUBJECT, error("rails-malformed", "", message)),))
    digits = len(str(len(rows))) if len(rows) > 9 else 1
    rails, told = [], []
    for number, row in enumerate(rows, 1):
        subject = "rail %d" % number
        if not isinstance(row, Mapping):
            message = "a rail is a map of its values, found %s" % quoted(row)
            told.append(Told(subject, error("rail-malformed", "", message)))
            continue
        told += [Told(subject, issue) for issue in _row(row, defaults)]
        rails.append(_rail(row, number, digits, defaults))
    told += _together(rails, inject)
    return Table(tuple(rails), tuple(told))


def _rail(row: Mapping[str, Any], number: int, digits: int, defaults: Defaults) -> Rail:
    resource = row.get("resource") or defaults.resource.replace("{rail}", str(number).zfill(digits))
    subnet, gateway = str(row.get("subnet") or ""), str(row.get("gateway") or "")
    ranges = row.get("ranges")
    mtu = row.get("mtu", defaults.mtu)
    vfs = whole(row.get("vfs", defaults.vfs))
    return Rail(
        number=number,
        pci=str(row.get("pci") or ""),
        name=str(row.get("name") or ""),
        link_type=str(row.get("link_type") or defaults.link_type).lower(),
        vendor=str(row.get("vendor") or defaults.vendor),
        gpus=tuple(row.get("gpus") or ()) if isinstance(row.get("gpus"), list) else (),
        affinity=str(row.get("affinity") or ""),
        resource=str(resource),
        subnet=subnet,
        gateway=gateway,
        ranges=tuple([str(entry) for entry in ranges])
        if isinstance(ranges, list) and ranges
        else _whole_subnet(subnet, gateway),
        vfs=0 if vfs is None else vfs,
        mtu=whole(mtu),
        pkey=row["pkey"] if isinstance(row.get("pkey"), str) else "",
    )


def _whole_subnet(subnet: str, gateway: str) -> tuple[str, ...]:
    """All hosts of an IPv4 network but the gateway."""
    prefix, skipped = find_prefix(subnet), find_address(gateway)
    if prefix is None or prefix.version != 4 or prefix.length > 30:
        return ()
    network = prefix.masked()
    low, high = network.network + 1, network.last - 1
    parts = [(low, high)]
    if skipped is not None and skipped.version == 4 and low <= skipped.value <= high:
        parts = [(low, skipped.value - 1), (skipped.value + 1, high)]
    return tuple(
        [
            str(Address(4, first)) if first == last else "%s-%s" % (Address(4, first), Address(4, last))
            for first, last in parts
            if first <= last
        ]
    )


def _row(row: Mapping[str, Any], defaults: Defaults) -> Iterator[Issue]:
    for key, value in row.items():
        if key not in KNOWN:
            message = "a rail has no such value; it has %s" % ", ".join(KNOWN)
            yield error("rail-value-unknown", str(key), message)
        elif isinstance(value, str) and _OPEN.search(value):
            message = "nobody put a value for %s" % quoted(value)
            yield error("variable-unexpanded", str(key), message)
    yield from _nic(row)
    link = str(row.get("link_type") or defaults.link_type).lower()
    if link not in LINK_TYPES:
        message = "link_type is eth or ib, found %s: without it InfiniBand fails" % quoted(
            row.get("link_type")
        )
        yield error("rail-linktype", "link_type", message)  # S112, S251
    for key in ("vfs",):
        if whole(row.get(key, 1)) is None:
            yield error("rail-number", key, "%s is a whole number, found %s" % (key, quoted(row[key])))
    mtu = row.get("mtu", defaults.mtu)
    if mtu is not None and not is_between(mtu, _LEAST_MTU, _MOST_MTU):
        message = "the MTU is %d to %d, found %s" % (_LEAST_MTU, _MOST_MTU, quoted(mtu))
        yield error("rail-number", "mtu", message)
    elif row.get("mtu") is not None and link == INFINIBAND:
        message = "the network of an InfiniBand rail has no MTU, so this one is not used"
        yield warning("rail-mtu-infiniband", "mtu", message)  # S86, S250
    for key in ("subnet", "gateway"):
        if row.get(key) is not None and not isinstance(row[key], str):
            yield error("rail-text", key, "%s is a text, found %s" % (key, quoted(row[key])))
    if not row.get("subnet"):
        yield error("subnet-syntax", "subnet", "a rail needs a subnet of its own")
    ranges = row.get("ranges")
    if ranges is not None and not isinstance(ranges, list):
        yield error("range-syntax", "ranges", "ranges are a list, found %s" % quoted(ranges))
    yield from _pkey(row.get("pkey"), link)


def _nic(row: Mapping[str, Any]) -> Iterator[Issue]:
    pci, name = row.get("pci"), row.get("name")
    if not pci and not name:
        yield error("rail-without-nic", "pci", "a rail needs the PCI address of its NIC, or the interface")
    if pci and not (isinstance(pci, str) and _PCI.fullmatch(pci)):
        short = str(pci).lower()
        right = "0000:" + short if _SHORT.fullmatch(short) else short
        more = {"canonical": right} if _PCI.fullmatch(right) else {}
        message = "a PCI address has a domain and small letters such as 0000:86:00.0, found %s" % quoted(pci)
        yield error("rail-pci-syntax", "pci", message, **more)
    if name and not (isinstance(name, str) and _INTERFACE.fullmatch(name)):
        message = "an interface has at most 15 characters without blanks, found %s" % quoted(name)
        yield error("rail-name-syntax", "name", message)


def _pkey(pkey: Any, link: str) -> Iterator[Issue]:
    """A key is a text (S150); what the text must be the rules of the network tell."""
    if pkey in (None, ""):
        return
    if not isinstance(pkey, str):
        yield error("pkey-type", "pkey", "the key is a text such as '0x1000', found %s" % quoted(pkey))
    elif link == ETHERNET:
        yield error("rail-pkey-ethernet", "pkey", "partition keys are for InfiniBand, and the rail is not")


def _together(rails: Sequence[Rail], inject: bool) -> Iterator[Told]:
    """What rails must not have in common, and what they had better not."""
    for key, code, what in (
        ("pci", "rootdevice-overlap", "the NIC"),  # S226
        ("name", "pf-selected-twice", "the interface"),
        ("resource", "rail-resource-twice", "the resource"),
    ):
        for value, owners in _shared(rails, key).items():
            if key == "name" and len({rail.pci for rail in owners if rail.pci}) > 1:
                message = "rails %s have other PCI addresses" % _numbers(owners)
            else:
                message = "rails %s have it, and each needs one of its own" % _numbers(owners)
            yield Told(SUBJECT, error(code, key, "%s %s: %s" % (what, value, message)))
    called = defaultdict(list)
    for rail in rails:
        called[names_of(rail).policy].append(rail)
    for name, owners in called.items():
        if len({rail.resource for rail in owners}) > 1:
            message = "the resources of rails %s give objects one name, %s" % (_numbers(owners), name)
            yield Told(SUBJECT, error("rail-names-collide", "resource", message))
    for subnet, owners in _shared(rails, "subnet").items():
        message = "rails %s share %s, so each virtual function has the same on-link route" % (
            _numbers(owners),
            subnet,
        )
        yield Told(SUBJECT, warning("rails-share-subnet", "subnet", message))  # S221
    resources = [rail.resource for rail in rails]
    if inject and resources != sorted(resources):
        message = (
            "networks are injected in the order of the texts, %s: pad the numbers with zeros"
            % ", ".join(sorted(resources))
        )
        yield Told(SUBJECT, warning("rails-order", "resource", message))  # S163


def _shared(rails: Sequence[Rail], key: str) -> dict[str, list[Rail]]:
    """The rails that have a value in common, by that value."""
    found: dict[str, list[Rail]] = defaultdict(list)
    for rail in rails:
        value = getattr(rail, key)
        if key == "subnet":
            prefix = find_prefix(value)
            value = str(prefix.masked()) if prefix is not None else ""
        if value:
            found[value].append(rail)
    return {value: owners for value, owners in found.items() if len(owners) > 1}


def _numbers(rails: Sequence[Rail]) -> str:
    return ", ".join([str(rail.number) for rail in rails])
