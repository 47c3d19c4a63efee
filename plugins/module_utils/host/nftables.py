# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Chains and rules of nftables by netlink, judged for RoCE v2. Private to rdma.k8s: it may change any time.

Transport and messages are those of pyroute2, expressions are read here, since a node can have thousands of rules.
Nothing is asked when ``nf_tables`` is not in the kernel, which would load it for the asking.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Callable, Iterator
from typing import Any, Optional

from .. import deps
from . import kernel
from .files import Root
from .firewall import ALWAYS, NEVER, PERHAPS
from .records import ChainRecord, FilterRecord, PacketRuleRecord
from .rtnetlink import explain, family_socket

SOURCE = "nftables"
ROCE_PORT = 4791
LEGACY = "/proc/net/ip_tables_names"

_NETFILTER = 12
_SUBSYSTEM = 10 << 8
_NEW_CHAIN, _GET_CHAIN, _NEW_RULE, _GET_RULE = (_SUBSYSTEM | number for number in (3, 4, 6, 7))
_NEW_ELEMENTS, _GET_ELEMENTS = _SUBSYSTEM | 12, _SUBSYSTEM | 13
_INTERVAL_END = 1
_REQUEST, _DUMP = 0x1, 0x300
_FAMILIES = {1: "inet", 2: "ip", 5: "netdev", 7: "bridge", 10: "ip6"}
_HOOKS = {
    "inet": ("prerouting", "input", "forward", "output", "postrouting", "ingress"),
    "netdev": ("ingress", "egress"),
}
_TYPES = ("filter", "route")
_DROP, _ACCEPT = "drop", "accept"
_VERDICTS = {0: _DROP, 1: _ACCEPT, 2: "stolen", 3: "queue", -3: "jump", -4: "goto", -5: "return"}
_UDP = 17
_L4PROTO, _DPORT, _FAMILY, _OTHER = "protocol", "dport", "family", "other"
_OWN = {_L4PROTO: _UDP, _DPORT: ROCE_PORT}
Elements = tuple[tuple[bytes, int, bytes], ...]
Sets = Callable[[str], Elements]
_SIZES = {_L4PROTO: 1, _DPORT: 2}
_META_KINDS = {1: _FAMILY, 15: _FAMILY, 16: _L4PROTO}
# Expressions that neither match nor end: they count, note, mark.
_NEUTRAL = ("counter", "log", "notrack", "objref", "dup", "ct set", "meta set", "last", "nftrace")


def read(root: Root, release: str) -> Optional[FilterRecord]:
    """The filter chains and rules; ``None`` with the reason among the errors of ``root`` when they cannot be told.

    :param release: of the kernel, to find its list of built-in modules.
    :raises RdmaError: ``library_missing``.
    """
    legacy = (root.read(LEGACY) or "").split()
    if legacy:
        root.fail(SOURCE, "tables of the legacy iptables are not read: %s" % ", ".join(legacy)[:100])
        return None
    if not kernel.may_have(root, "nf_tables", release):
        return FilterRecord()
    library = deps.pyroute2()
    failures = (OSError, library.NetlinkError, struct.error, KeyError, TypeError, ValueError)
    try:
        with _socket_class()(_NETFILTER) as socket:
            socket.bind()
            return _ask_all(socket)
    except failures as error:
        root.fail(SOURCE, explain(error))
        return None


def _ask_all(socket: Any) -> FilterRecord:
    chains, tables = [], []
    for message in _ask(socket, _GET_CHAIN):
        chain = _chain(message)
        chains.append(chain)
        if chain.hook and (message["nfgen_family"], chain.table) not in tables:
            tables.append((message["nfgen_family"], chain.table))
    rules = []
    for family, table in tables:  # tables without a filter, such as those of service addresses, can be large
        sets = functools.lru_cache(maxsize=None)(functools.partial(_elements, socket, family, table))
        for message in _ask(socket, _GET_RULE, family, TABLE=table):
            attributes = dict(message["attrs"])
            if attributes["TABLE"] == table:
                rules.append(_rule(_FAMILIES.get(family, str(family)), attributes, sets))
    return FilterRecord(tuple(chains), tuple(rules))


def _ask(socket: Any, operation: int, family: int = 0, **attributes: str) -> list[Any]:
    message = _classes()[operation]()
    message["nfgen_family"] = family
    message["attrs"] = list(attributes.items())
    return list(socket.nlm_request(message, operation, _REQUEST | _DUMP))


def _elements(socket: Any, family: int, table: str, name: str) -> Elements:
    """The elements of a set: key, flags and data, in order; the end of an interval has the flag for that."""
    found = []
    for message in _ask(socket, _GET_ELEMENTS, family, TABLE=table, SET=name):
        for _kind, element in _attributes(dict(message["attrs"]).get("ELEMENTS") or b""):
            inner = dict(_attributes(element))
            found.append((_value(inner.get(1, b"")), _be32(inner.get(3, b"")), inner.get(2, b"")))
    return tuple(sorted(found, key=lambda entry: (entry[0], -entry[1])))


def _message(attributes: tuple[tuple[str, str], ...]) -> Any:
    base = deps.pyroute2("pyroute2.netlink").nlmsg

    class Message(base):  # type: ignore[misc, valid-type]
        prefix = ""
        fields = (("nfgen_family", "B"), ("version", "B"), ("res_id", "!H"))
        nla_map = attributes

    return Message


@functools.lru_cache(maxsize=1)
def _classes() -> dict[int, Any]:
    """The message class of each operation and answer; attributes are named in the order of their numbers."""
    text, number, raw = "asciiz", "be32", "cdata"
    chain = _message(
        (
            ("UNSPEC", raw),
            ("TABLE", text),
            ("HANDLE", raw),
            ("NAME", text),
            ("HOOK", raw),
            ("POLICY", number),
            ("USE", raw),
            ("TYPE", text),
            *[("CHAIN_%d" % at, raw) for at in range(8, 16)],
        )
    )
    rule = _message(
        (
            ("UNSPEC", raw),
            ("TABLE", text),
            ("CHAIN", text),
            ("HANDLE", raw),
            ("EXPRESSIONS", raw),
            *[("RULE_%d" % at, raw) for at in range(5, 16)],
        )
    )
    elements = _message((("UNSPEC", raw), ("TABLE", text), ("SET", text), ("ELEMENTS", raw), ("SET_ID", raw)))
    return {
        _NEW_CHAIN: chain,
        _GET_CHAIN: chain,
        _NEW_RULE: rule,
        _GET_RULE: rule,
        _NEW_ELEMENTS: elements,
        _GET_ELEMENTS: elements,
    }


@functools.lru_cache(maxsize=1)
def _socket_class() -> Any:
    return family_socket(_classes())


# What the messages say


def _chain(message: Any) -> ChainRecord:
    attributes = dict(message["attrs"])
    family = _FAMILIES.get(message["nfgen_family"], str(message["nfgen_family"]))
    hook, priority = "", 0
    if attributes.get("HOOK") is not None and attributes.get("TYPE") in _TYPES:
        inner = dict(_attributes(attributes["HOOK"]))
        number = _be32(inner.get(1, b""))
        names = _HOOKS.get(family, _HOOKS["inet"])
        hook = names[number] if number < len(names) else str(number)
        priority = _be32(inner.get(2, b""), signed=True)
    return ChainRecord(
        family=family,
        table=attributes["TABLE"],
        name=attributes["NAME"],
        hook=hook,
        priority=priority,
        policy=_VERDICTS.get(attributes.get("POLICY", -1), "") if hook else "",
    )


def _rule(family: str, attributes: dict[str, Any], sets: Sets) -> PacketRuleRecord:
    judged = Judged(sets)
    for _kind, element in _attributes(attributes.get("EXPRESSIONS") or b""):
        inner = dict(_attributes(element))
        judged.take(_text(inner.get(1, b"")), dict(_attributes(inner.get(2, b""))))
    return PacketRuleRecord(
        family=family,
        table=attributes["TABLE"],
        chain=attributes["CHAIN"],
        match=judged.match,
        verdict=judged.verdict,
        target=judged.target,
        names_port=judged.names_port,
        text=" ".join([*judged.words, judged.verdict, judged.target]).strip(),
    )


def _attributes(data: bytes) -> Iterator[tuple[int, bytes]]:
    """The netlink attributes in a piece of a message: number and content."""
    at = 0
    while at + 4 <= len(data):
        length, kind = struct.unpack_from("=HH", data, at)
        if length < 4:
            return
        yield kind & 0x3FFF, bytes(data[at + 4 : at + length])
        at += (length + 3) & ~3


def _be32(data: bytes, signed: bool = False) -> int:
    return int.from_bytes(data[:4], "big", signed=signed)


def _text(data: bytes) -> str:
    return data.split(b"\0", 1)[0].decode("utf-8", "replace")


class Judged:
    """The expressions of one rule, one after the other: does a UDP packet to port 4791 match, and what becomes of it?

    The numbers are those of ``nf_tables.h``: attributes, operators, keys.
    """

    def __init__(self, sets: Sets) -> None:
        self._sets = sets
        self.match = ALWAYS
        self.verdict = ""
        self.target = ""
        self.names_port = False
        self.words: list[str] = []
        self._registers: dict[int, str] = {}

    def take(self, name: str, data: dict[int, bytes]) -> None:
        """The next expression of the rule."""
        handler = getattr(self, "_take_%s" % name, None)
        if handler is not None:
            handler(data)
        elif name not in _NEUTRAL:
            self._narrow(None, name)

    def _narrow(self, matches: Optional[bool], words: str) -> None:
        """A further condition that holds (true), does not hold (false), or depends on more than the port."""
        self.words.append(words)
        if matches is False:
            self.match = NEVER
        elif matches is None and self.match == ALWAYS:
            self.match = PERHAPS

    def _take_meta(self, data: dict[int, bytes]) -> None:
        if 3 in data:  # a register is written into the packet's metadata
            return
        self._registers[_be32(data.get(1, b""))] = _META_KINDS.get(_be32(data.get(2, b"")), _OTHER)

    def _take_payload(self, data: dict[int, bytes]) -> None:
        base, offset, length = [_be32(data.get(number, b"")) for number in (2, 3, 4)]
        kind = _OTHER
        if (base, offset, length) == (2, 2, 2):
            kind = _DPORT
        elif (base, offset, length) == (1, 9, 1):  # the protocol of an IPv4 header
            kind = _L4PROTO
        self._registers[_be32(data.get(1, b""))] = kind

    def _take_bitwise(self, data: dict[int, bytes]) -> None:
        self._registers[_be32(data.get(2, b""))] = _OTHER

    def _take_cmp(self, data: dict[int, bytes]) -> None:
        kind = self._registers.get(_be32(data.get(1, b"")), _OTHER)
        value = int.from_bytes(_value(data.get(3, b"")), "big")
        operator = _be32(data.get(2, b""))
        own = _OWN.get(kind)
        sign = ("==", "!=", "<", "<=", ">", ">=")[operator] if operator < 6 else "?"
        if own is None:  # RoCE v2 runs over both families, so a rule for one of them is a rule for it
            self._narrow(True if kind == _FAMILY else None, kind)
            return
        holds = (own == value, own != value, own < value, own <= value, own > value, own >= value)
        self.names_port = self.names_port or (kind == _DPORT and sign == "==" and value == ROCE_PORT)
        self._narrow(holds[operator] if operator < 6 else None, _worded(kind, sign, value))

    def _take_range(self, data: dict[int, bytes]) -> None:
        kind = self._registers.get(_be32(data.get(1, b"")), _OTHER)
        first, last = [int.from_bytes(_value(data.get(number, b"")), "big") for number in (3, 4)]
        if kind != _DPORT:
            self._narrow(None, _OTHER)
            return
        inside = first <= ROCE_PORT <= last
        outside = _be32(data.get(2, b"")) == 1
        self._narrow(inside != outside, "dport %s%d-%d" % ("!= " if outside else "", first, last))

    def _take_lookup(self, data: dict[int, bytes]) -> None:
        kind, name = self._registers.get(_be32(data.get(2, b"")), _OTHER), _text(data.get(1, b""))
        inside, content = self._element(kind, name) if kind in _OWN else (None, b"")
        inverted = bool(_be32(data.get(5, b"")) & 1)
        self.names_port = self.names_port or (kind == _DPORT and inside is True and not inverted)
        self._narrow(None if inside is None else inside != inverted, "%s in set %s" % (kind, name))
        if inside and 3 in data and not _be32(data[3]):  # a map of verdicts
            self._decide(content)

    def _element(self, kind: str, name: str) -> tuple[Optional[bool], bytes]:
        """Whether the port or protocol is in a set, and the data there; ``None``: its keys are made of more."""
        own = _OWN[kind].to_bytes(_SIZES[kind], "big")
        inside, content, intervals = False, b"", False
        for key, flags, data in self._sets(name):
            if len(key) != len(own):
                return None, b""
            intervals = intervals or bool(flags & _INTERVAL_END)
            if key == own or (intervals and key < own):
                inside, content = not flags & _INTERVAL_END, data
        return inside, content

    def _decide(self, data: bytes) -> None:
        """Take the verdict in nested data (NFTA_DATA_VERDICT)."""
        verdict = dict(_attributes(dict(_attributes(data)).get(2, b"")))
        self.verdict = _VERDICTS.get(_be32(verdict.get(1, b""), signed=True), "")
        self.target = _text(verdict.get(2, b""))

    def _take_immediate(self, data: dict[int, bytes]) -> None:
        if not _be32(data.get(1, b"")):  # else a value for a later expression
            self._decide(data.get(2, b""))

    def _take_reject(self, _data: dict[int, bytes]) -> None:
        self.verdict = "reject"

    def _take_queue(self, _data: dict[int, bytes]) -> None:
        self.verdict = "queue"

    def _take_ct(self, data: dict[int, bytes]) -> None:
        if 4 not in data:  # otherwise a register is written into the connection
            self._registers[_be32(data.get(1, b""))] = _OTHER

    def _take_match(self, data: dict[int, bytes]) -> None:
        """A match of iptables: name 1, revision 2, its own structure 3."""
        name, info = _text(data.get(1, b"")), data.get(3, b"")
        if name in ("tcp", "icmp", "icmp6", "sctp", "dccp"):
            self._narrow(False, name)
        elif name == "udp" and len(info) >= 9:
            first_source, last_source, first, last, inverted = struct.unpack_from("=4HB", info)
            inside = (first <= ROCE_PORT <= last) != bool(inverted & 2)
            every = (first_source, last_source) == (0, 65535) and not inverted & 1
            self.names_port = self.names_port or (first == last == ROCE_PORT and inside)
            self._narrow((None, True)[every] if inside else False, "dport %d-%d" % (first, last))
        elif name != "comment":
            self._narrow(None, name)

    def _take_target(self, data: dict[int, bytes]) -> None:
        if _text(data.get(1, b"")) == "REJECT":
            self.verdict = "reject"


def _value(data: bytes) -> bytes:
    """The value in nested data (NFTA_DATA_VALUE)."""
    return dict(_attributes(data)).get(1, b"")


def _worded(kind: str, sign: str, value: int) -> str:
    equal = "" if sign == "==" else sign + " "
    if kind == _L4PROTO:
        return "protocol %s%s" % (equal, {_UDP: "udp", 6: "tcp"}.get(value, str(value)))
    return "dport %s%d" % (equal, value)
