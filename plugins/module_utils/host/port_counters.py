# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the counters of the RDMA ports gain within a second. Private to rdma.k8s: it may change with any release."""

from __future__ import annotations

import time
from typing import Optional

from ..core import codec
from ..core.errors import RdmaError
from ..core.roce_qos import ETHERNET
from ..core.snapshot import PortCounters
from . import dcb, records
from .files import Root
from .roce_ports import Port, ports
from .sysfs import CLASS

SOURCE = "port-counters"
SECONDS = 1.0

_COUNTERS: dict[str, tuple[tuple[str, ...], ...]] = {
    # of each group the first that is there, then all groups together
    "packets": (
        ("counters/port_rcv_packets", "hw_counters/rcvd_pkts"),
        ("counters/port_xmit_packets", "hw_counters/sent_pkts"),
    ),
    "out_of_buffer": (("hw_counters/out_of_buffer", "hw_counters/rcvd_rnr_err"),),
    "out_of_sequence": (("hw_counters/out_of_sequence", "hw_counters/out_of_seq_request"),),
    "discarded": (("counters/port_xmit_discards",),),
}
"""Files of mlx5, and those of rxe that mean the same."""

_Pauses = Optional[tuple[tuple[int, ...], tuple[int, ...]]]


def read_all(root: Root, seconds: float = SECONDS) -> Optional[tuple[PortCounters, ...]]:
    """Read all ports twice. No time is spent on a node without ports.

    :raises RdmaError: ``library_missing``.
    """
    if records.is_recorded(root):
        answer = records.part(root, records.load(root) or {}, "counters", SOURCE, records.CounterRecord)
        return None if answer is None else tuple(answer.ports)
    found = ports(root)
    if not found:
        return ()
    before = [(_counters(root, port), _pauses(port)) for port in found]
    started = time.monotonic()
    time.sleep(seconds)
    after = [(_counters(root, port), _pauses(port)) for port in found]
    passed = round(time.monotonic() - started, 3)
    gained = []
    for port, (old, paused), (new, pausing) in zip(found, before, after):
        more = {name: _difference(old[name], new[name]) for name in _COUNTERS}
        sent, received = (_gain(paused, pausing, side) for side in (0, 1))
        gained.append(
            PortCounters(
                port.device,
                port.port,
                port.netdev,
                passed,
                **more,
                pause_sent=sent,
                pause_received=received,
            )
        )
    return tuple(gained)


def _counters(root: Root, port: Port) -> dict[str, Optional[int]]:
    base = "%s/%s/ports/%d" % (CLASS, port.device, port.port)
    found: dict[str, Optional[int]] = {}
    for name, groups in _COUNTERS.items():
        numbers = [_number(root, base, group) for group in groups]
        told = [number for number in numbers if number is not None]
        found[name] = sum(told) if len(told) == len(groups) else None
    return found


def _number(root: Root, base: str, names: tuple[str, ...]) -> Optional[int]:
    for name in names:
        text = root.value("%s/%s" % (base, name))
        if text is not None:
            return codec.natural(text)
    return None


def _difference(before: Optional[int], after: Optional[int]) -> Optional[int]:
    """``None`` also for a counter that went back, because the driver was started anew."""
    return None if before is None or after is None or after < before else after - before


def _pauses(port: Port) -> _Pauses:
    if port.link_layer != ETHERNET or not port.netdev:
        return None
    try:
        return dcb.read_pauses(port.netdev)
    except RdmaError as error:
        if error.code == "library_missing":
            raise
        return None


def _gain(before: _Pauses, after: _Pauses, side: int) -> Optional[str]:
    if before is None or after is None:
        return None
    gained = [new - old for old, new in zip(before[side], after[side])]
    return " ".join(["%d:%d" % entry for entry in enumerate(gained) if entry[1] > 0])
