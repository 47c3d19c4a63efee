# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Probe peers from the addresses of this namespace. Private to rdma.k8s: it may change with any release.

All pairs at the same time: one raw socket for each source address sends a few echo requests, small ones and ones of
full size that may not be split, and waits a limited time for the answers. The source address alone chooses the way, as
it does for RDMA (F39). Nothing is imported that a bare Python does not have.
"""

from __future__ import annotations

import contextlib
import os
import re
import select
import socket
import struct
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Optional

from ..core.errors import RdmaError
from ..core.fabric import AT_ONCE, COUNT, INTERVAL, TIMEOUT, FabricProbe
from ..core.net import find_address, quoted
from . import commands, listeners
from .files import Root, reason_of
from .namespaces import Namespace, inside

HEADERS = 28
"""Bytes of the headers of IPv4 and ICMP in an echo request."""

SMALL = 56
_REQUEST, _REPLY = 8, 0
_MTU_DISCOVER, _PROBE = 10, 3  # "do not fragment", without regard to what was learnt about the way before
_MOST = 10000
_PACKETS = 1 << 16  # their numbers in an echo request must not repeat
_COMPLETE = 0x2
_ARP_LINE = re.compile(r"(\S+)\s+\S+\s+0x([0-9a-f]+)\s+([0-9a-f:]{17})\s", re.ASCII)


@dataclass(frozen=True)
class Limits:
    """How much is sent and waited for: echo requests of each size, seconds for their answers; rounds and seconds of a
    ping-pong (0 rounds: none), port of the listeners."""

    count: int = COUNT
    timeout: float = TIMEOUT
    rounds: int = 10
    rdma_timeout: float = 15.0
    port: int = listeners.PORT
    full_size: bool = True


@dataclass
class _Sent:
    """An echo request on its way, or answered."""

    pair: int
    full: bool
    at: float
    rtt: Optional[float] = None


@dataclass
class _Work:
    """The pairs of one source address."""

    address: str
    pairs: list[int] = field(default_factory=list)
    socket: Optional[socket.socket] = None


def probe(
    root: Root, namespace: Optional[Namespace], pairs: Sequence[dict[str, Any]], limits: Limits
) -> list[FabricProbe]:
    """Probe all pairs.

    :param namespace: where the sources are; ``None``: the host's own.
    :param pairs: as :meth:`core.fabric.Pair.to_dict` writes them.
    :raises RdmaError: what :func:`require` raises, ``probe_not_permitted``, ``probe_source_missing``.
    """
    require(pairs, limits)

    def reach() -> list[FabricProbe]:
        return _with_neighbours(_echo(pairs, limits))

    probes = reach() if namespace is None else inside(namespace, reach)
    return _with_rdma(root, namespace, probes, pairs, limits)


def require(pairs: Sequence[dict[str, Any]], limits: Limits) -> None:
    """Whether all of it can be probed. Nothing is sent, and no name is looked up.

    :raises RdmaError: ``probe_too_many``, ``probe_not_ipv4``.
    """
    packets = len(pairs) * limits.count * (2 if limits.full_size else 1)
    if len(pairs) > _MOST or packets > _PACKETS:
        raise RdmaError(
            "probe_too_many",
            "%d pairs with %d packets are too many for one node, at most %d with %d."
            % (len(pairs), packets, _MOST, _PACKETS),
            hint="Probe in a ring, fewer nodes at a time, or with a smaller count.",
        )
    for pair in pairs:
        for name in ("address", "peer_address"):
            found = find_address(pair[name])
            if found is None or found.version != 4:
                raise RdmaError(
                    "probe_not_ipv4",
                    "The %s of the pair of %s and %s is %s, expected an IPv4 address."
                    % (name, pair["nic"], pair["peer"], quoted(pair[name])),
                    hint="Write four decimal numbers from 0 to 255 with dots; names are not looked up.",
                    value=pair[name],
                )


def _echo(pairs: Sequence[dict[str, Any]], limits: Limits) -> list[FabricProbe]:
    works: dict[str, _Work] = {}
    for number, pair in enumerate(pairs):
        works.setdefault(pair["address"], _Work(pair["address"])).pairs.append(number)
    with contextlib.ExitStack() as stack:
        for work in works.values():
            work.socket = stack.enter_context(contextlib.closing(_socket(work.address)))
        identifier = os.getpid() & 0xFFFF
        sent: dict[int, _Sent] = {}
        errors: dict[int, str] = {}
        for number, pair, full in _schedule(pairs, limits):
            size = pair["mtu"] - HEADERS if full else SMALL
            holder = works[pair["address"]].socket
            if holder is None or number in errors:
                continue
            sequence = len(sent)
            packet = _packet(identifier, sequence, max(size, 0))
            try:
                holder.sendto(packet, (pair["peer_address"], 0))
            except OSError as error:
                if full:
                    errors[number] = reason_of(error)
            sent[sequence] = _Sent(number, full, time.monotonic())
            _receive(works.values(), identifier, sent, INTERVAL)
        end = time.monotonic() + limits.timeout
        while time.monotonic() < end and any(entry.rtt is None for entry in sent.values()):
            _receive(works.values(), identifier, sent, min(0.1, max(0.0, end - time.monotonic())))
    return [_told(pair, number, sent.values(), errors.get(number, "")) for number, pair in enumerate(pairs)]


def _schedule(pairs: Sequence[dict[str, Any]], limits: Limits) -> Iterator[tuple[int, dict[str, Any], bool]]:
    """Round by round, so that a peer gets its packets with the time of a round between them."""
    for full in (False, True) if limits.full_size else (False,):
        for _round in range(limits.count):
            for number, pair in enumerate(pairs):
                if not full or pair["mtu"]:
                    yield number, pair, full


def _socket(address: str) -> socket.socket:
    try:
        made = socket.socket(socket.AF_INET, socket.SOCK_RAW | socket.SOCK_CLOEXEC, socket.IPPROTO_ICMP)
    except PermissionError as error:
        raise RdmaError(
            "probe_not_permitted",
            "Echo requests cannot be sent: %s." % reason_of(error),
            hint="Run as root (become: true), with CAP_NET_RAW in a container.",
        ) from error
    try:
        made.setsockopt(socket.IPPROTO_IP, _MTU_DISCOVER, _PROBE)
        made.setblocking(False)
        made.bind((address, 0))
    except OSError as error:
        made.close()
        raise RdmaError(
            "probe_source_missing",
            "Nothing can be sent from %s: %s." % (address, reason_of(error)),
            hint="Give the address of an interface in that namespace.",
            address=address,
        ) from error
    return made


def _packet(identifier: int, sequence: int, size: int) -> bytes:
    head = struct.pack("!BBHHH", _REQUEST, 0, 0, identifier, sequence & 0xFFFF)
    body = bytes(size)
    return head[:2] + struct.pack("!H", _checksum(head + body)) + head[4:] + body


def _checksum(data: bytes) -> int:
    data += b"\0" * (len(data) % 2)
    total = sum(struct.unpack("!%dH" % (len(data) // 2), data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def _receive(works: Iterable[_Work], identifier: int, sent: dict[int, _Sent], limit: float) -> None:
    holders = [work.socket for work in works if work.socket is not None]
    readable, _writable, _broken = select.select(holders, [], [], limit)
    for holder in readable:
        with contextlib.suppress(OSError):  # an error that a router or the neighbour table reports: no answer
            while True:
                _take(holder.recv(1 << 16), identifier, sent)


def _take(data: bytes, identifier: int, sent: dict[int, _Sent]) -> None:
    length = (data[0] & 15) * 4 if data else 0
    if len(data) < length + 8:
        return
    kind, _code, _sum, found, sequence = struct.unpack_from("!BBHHH", data, length)
    entry = sent.get(sequence)
    if (kind, found) == (_REPLY, identifier) and entry is not None and entry.rtt is None:
        entry.rtt = time.monotonic() - entry.at


def _told(pair: dict[str, Any], number: int, sent: Iterable[_Sent], error: str) -> FabricProbe:
    own = [entry for entry in sent if entry.pair == number]
    small = [entry for entry in own if not entry.full]
    full = [entry for entry in own if entry.full]
    times = [entry.rtt for entry in small if entry.rtt is not None]
    return FabricProbe(
        nic=pair["nic"],
        index=pair["index"],
        address=pair["address"],
        peer=pair["peer"],
        peer_address=pair["peer_address"],
        sent=len(small),
        received=len(times),
        rtt_us=round(min(times) * 1000000) if times else None,
        full_size=pair["mtu"] if full or error else 0,
        full_sent=len(full),
        full_received=len([entry for entry in full if entry.rtt is not None]),
        full_error=error,
    )


def _with_neighbours(probes: list[FabricProbe]) -> list[FabricProbe]:
    """With what the peers' addresses resolved to, as the kernel's table has it now."""
    try:
        # Of the thread: /proc/net is that of the process, which is in the namespace of the host.
        with open("/proc/thread-self/net/arp", encoding="ascii", errors="replace") as file:
            text = file.read()
    except OSError:
        return probes
    known = {
        (address, line.split()[-1]): mac
        for line in text.splitlines()
        for address, flags, mac in _ARP_LINE.findall(line)
        if int(flags, 16) & _COMPLETE
    }
    return [replace(entry, neighbour=known.get((entry.peer_address, entry.nic), "")) for entry in probes]


# --- the ping-pong --------------------------------------------------------------------------------------------------


def _with_rdma(
    root: Root,
    namespace: Optional[Namespace],
    probes: Sequence[FabricProbe],
    pairs: Sequence[dict[str, Any]],
    limits: Limits,
) -> list[FabricProbe]:
    """A few at a time, for at most a limited time each. Without a tool, or against nobody, it is not tried."""
    found = list(probes)
    missing = listeners.missing_tool(root)
    todo = []
    for number, pair in enumerate(pairs):
        if not limits.rounds:
            found[number] = replace(found[number], rdma="off", rdma_reason="switched off")
        elif missing:
            found[number] = replace(found[number], rdma="no_tool", rdma_reason=missing)
        elif pair["silent"]:
            reason = "%s: %s" % (pair["peer"], pair["silent"])
            found[number] = replace(found[number], rdma="no_listener", rdma_reason=reason)
        elif found[number].received:
            todo.append(number)
    lock = threading.Lock()

    def work() -> None:
        while True:
            with lock:
                if not todo:
                    return
                number = todo.pop(0)
            found[number] = _ping_pong(root, namespace, found[number], limits)

    threads = [threading.Thread(target=work, daemon=True) for _number in range(min(AT_ONCE, len(todo)))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


_LOST_RACE = "rdma_get_cm_event: Bad file descriptor"
"""What rping says when it closes its own channel before its thread has left it: that tells nothing of the network."""


def _ping_pong(root: Root, namespace: Optional[Namespace], entry: FabricProbe, limits: Limits) -> FabricProbe:
    words = [listeners.TOOL, "-c", "-a", entry.peer_address, "-I", entry.address]
    words += ["-p", str(limits.port), "-C", str(limits.rounds)]

    def ask(again: bool = True) -> float:
        started = time.monotonic()
        try:
            commands.run(root, words, limits.rdma_timeout)
        except RdmaError as error:
            if again and _LOST_RACE in error.message:
                return ask(again=False)
            raise
        return time.monotonic() - started

    try:
        took = ask() if namespace is None else inside(namespace, ask)
    except RdmaError as error:
        reason = (
            "no end within %g s" % limits.rdma_timeout if error.code == "command_timeout" else error.message
        )
        return replace(entry, rdma="failed", rdma_reason=reason)
    return replace(entry, rdma="ok", rdma_us=round(took * 1000000 / limits.rounds))
