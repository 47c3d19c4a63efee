# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Lossless RoCE: what is wished, what a port has, what differs. Private to rdma.k8s: it may change with any release.

A port has three groups of settings. By DCB: trust, PFC, the map from DSCP to priority. By the driver: congestion
notification (ECN). By RDMA-CM and the device: the type of service of new connections. Priorities are 0 to 7, DSCP
values 0 to 63; sets of priorities are bit masks with bit N for priority N (S61).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Optional

from . import codec
from .errors import RdmaError

PRIORITIES = 8
DSCP_VALUES = 64
ETHERNET = "Ethernet"
ROCE_V2 = "RoCE v2"
DSCP, PCP = TRUSTS = ("dscp", "pcp")

DCBX_HOST, DCBX_LLD = 1, 2
"""Flags of DCBX: the host negotiates, or something below the operating system does (S62)."""


class Problem(NamedTuple):
    """What is wrong with a wish: stable code, the value it is about, one sentence."""

    code: str
    at: str
    message: str


@dataclass(frozen=True)
class Wish:
    """Priority and DSCP of RDMA traffic and of congestion notification packets (CNP)."""

    rdma_priority: int
    cnp_priority: int
    rdma_dscp: int
    cnp_dscp: int

    @property
    def traffic_class(self) -> int:
        """The type of service byte of RDMA traffic: DSCP stands in its upper six bits (S51)."""
        return tos_of(self.rdma_dscp)

    @property
    def pfc(self) -> int:
        """The set of lossless priorities: that of RDMA traffic alone (S52, S61)."""
        return 1 << self.rdma_priority

    @property
    def dscp_map(self) -> dict[int, int]:
        """The two entries of the map that matter."""
        return {self.rdma_dscp: self.rdma_priority, self.cnp_dscp: self.cnp_priority}


def tos_of(dscp: int) -> int:
    """40 -> 160 (S51)."""
    return dscp << 2


def dscp_of(tos: int) -> int:
    """160 -> 40; the two lower bits are those of ECN."""
    return tos >> 2


def default_priority(dscp: int) -> int:
    """The priority of a DSCP value where nobody changed the map (S64)."""
    return dscp >> 3


def mask_of(priorities: Iterable[int]) -> int:
    """The set of some priorities."""
    mask = 0
    for priority in priorities:
        mask |= 1 << priority
    return mask


def bits(mask: int) -> tuple[int, ...]:
    """A set as eight 0 or 1 by priority, the form of ``mlnx_qos --pfc`` (S52)."""
    return tuple([mask >> priority & 1 for priority in range(PRIORITIES)])


def names(mask: int) -> str:
    """``3, 5``; ``none`` for the empty set."""
    return ", ".join([str(priority) for priority, bit in enumerate(bits(mask)) if bit]) or "none"


def wish(
    rdma_priority: int,
    cnp_priority: int,
    rdma_dscp: Optional[int] = None,
    cnp_dscp: Optional[int] = None,
) -> tuple[Wish, tuple[Problem, ...]]:
    """The wish, with DSCP values of 8 * priority where none is given (S49), and what is wrong with it (S50)."""
    made = Wish(
        rdma_priority,
        cnp_priority,
        rdma_priority * 8 if rdma_dscp is None else rdma_dscp,
        cnp_priority * 8 if cnp_dscp is None else cnp_dscp,
    )
    problems = []
    for kind, priority, dscp in (
        ("rdma", made.rdma_priority, made.rdma_dscp),
        ("cnp", made.cnp_priority, made.cnp_dscp),
    ):
        if not 0 <= priority < PRIORITIES:
            problems.append(
                Problem(
                    "priority-range", kind + "Priority", "The priority must be 0 to 7, found %d." % priority
                )
            )
        elif dscp >> 3 != priority:
            problems.append(
                Problem(
                    "dscp-outside-priority",
                    kind + "Dscp",
                    "A DSCP value of priority %d is one of %d to %d, found %d."
                    % (priority, priority * 8, priority * 8 + 7, dscp),
                )
            )
    if made.rdma_priority == made.cnp_priority:
        message = "RDMA traffic and CNP need two priorities, found %d for both." % made.cnp_priority
        problems.append(Problem("priority-equal", "cnpPriority", message))
    if made.rdma_dscp == made.cnp_dscp:
        message = "RDMA traffic and CNP need two DSCP values, found %d for both." % made.cnp_dscp
        problems.append(Problem("dscp-equal", "cnpDscp", message))
    return made, tuple(sorted(problems))


def valid_wish(
    rdma_priority: int,
    cnp_priority: int,
    rdma_dscp: Optional[int] = None,
    cnp_dscp: Optional[int] = None,
) -> Wish:
    """The wish.

    :raises RdmaError: ``qos_values_refused`` with all problems.
    """
    made, problems = wish(rdma_priority, cnp_priority, rdma_dscp, cnp_dscp)
    if problems:
        raise RdmaError(
            "qos_values_refused",
            " ".join(["%s: %s" % (problem.at, problem.message) for problem in problems]),
            hint="Priorities and DSCP values must be those of the switches.",
            problems=[{"code": problem.code, "at": problem.at} for problem in problems],
        )
    return made


# What a port has


@dataclass(frozen=True)
class PortQos:
    """The settings of one RDMA port as they are. ``None``: could not be told (no such file, or not readable).

    ``dcb`` says why DCB tells nothing; it is empty where it does. ``pfc``, ``ecn_np`` and ``ecn_rp`` are sets of
    priorities. ``dscp_map`` has the form ``0-7:0 8-15:1``. ``dcbx`` are the flags of S62. ``traffic_class`` and
    ``cm_tos`` are type of service bytes, ``cm_mode`` is the default GID type of RDMA-CM.
    """

    device: str = codec.text()
    port: int = codec.integer(1)
    netdev: str = codec.text("")
    link_layer: str = codec.text("")
    dcb: str = codec.text("")
    dcbx: Optional[int] = codec.integer(None)
    trust: Optional[str] = codec.text(None)
    pfc: Optional[int] = codec.integer(None)
    dscp_map: Optional[str] = codec.text(None)
    ecn_np: Optional[int] = codec.integer(None)
    ecn_rp: Optional[int] = codec.integer(None)
    cnp_dscp: Optional[int] = codec.integer(None)
    cm_tos: Optional[int] = codec.integer(None)
    cm_mode: Optional[str] = codec.text(None)
    traffic_class: Optional[int] = codec.integer(None)

    @property
    def name(self) -> str:
        """The interface, else device and port."""
        return self.netdev or "%s/%d" % (self.device, self.port)


def write_map(entries: Mapping[int, int]) -> str:
    """``{0: 0, ..., 7: 0, 40: 5}`` -> ``0-7:0 40:5``."""
    words: list[str] = []
    first = None
    for dscp in sorted(entries):
        if first is None:
            first = dscp
        if entries.get(dscp + 1) != entries[dscp]:
            words.append("%s:%d" % (first if first == dscp else "%d-%d" % (first, dscp), entries[dscp]))
            first = None
    return " ".join(words)


def read_map(text: str, where: str = "dscp_map") -> dict[int, int]:
    """The inverse of :func:`write_map`.

    :raises RdmaError: ``document_malformed``.
    """
    entries: dict[int, int] = {}
    for word in text.split():
        span, _colon, last = word.partition(":")
        start, _dash, end = span.partition("-")
        numbers = [codec.natural(part) for part in (start, end or start, last)]
        low, high, priority = numbers
        if low is None or high is None or priority is None or high >= DSCP_VALUES or priority >= PRIORITIES:
            raise codec.malformed(where, "'DSCP[-DSCP]:PRIORITY ...'", text)
        entries.update(dict.fromkeys(range(low, high + 1), priority))
    return entries


# What differs


@dataclass(frozen=True)
class Difference:
    """One setting of a port that is not as wished. ``found`` and ``wanted`` are values that JSON can hold."""

    setting: str
    found: Any
    wanted: Any
    message: str


def dcb_differences(wanted: Wish, found: PortQos) -> tuple[Difference, ...]:
    """Trust, PFC and map of a port whose driver has DCB (S52, S63, S65).

    A priority other than that of RDMA traffic must not be lossless, and the two DSCP values must have their
    priorities; other entries of the map stay as they are.
    """
    differences = []
    if found.trust != DSCP:
        differences.append(Difference("trust", found.trust, DSCP, "trust is %s, not dscp" % found.trust))
    if found.pfc != wanted.pfc:
        had = "not told" if found.pfc is None else names(found.pfc)
        message = "PFC is on for priority %s, not for %d alone" % (had, wanted.rdma_priority)
        differences.append(Difference("pfc", found.pfc, wanted.pfc, message))
    held = read_map(found.dscp_map or "")
    for dscp, priority in wanted.dscp_map.items():
        if held.get(dscp) != priority:
            had = "no priority" if dscp not in held else "priority %d" % held[dscp]
            message = "DSCP %d has %s, not %d" % (dscp, had, priority)
            differences.append(Difference("dscp_%d" % dscp, held.get(dscp), priority, message))
    return tuple(differences)


def other_differences(wanted: Wish, found: PortQos) -> tuple[Difference, ...]:
    """ECN and type of service, as far as the port tells them (S52, S53, S58, S65); what it does not tell is no
    difference: see :func:`untold`."""
    differences = []
    for setting, mask, title in (
        ("ecn_np", found.ecn_np, "the notification point"),
        ("ecn_rp", found.ecn_rp, "the reaction point"),
    ):
        if mask is not None and not mask >> wanted.rdma_priority & 1:
            message = "%s is off for priority %d" % (title, wanted.rdma_priority)
            differences.append(Difference(setting, mask, mask | wanted.pfc, message))
    for setting, value, aim, title in (
        ("cnp_dscp", found.cnp_dscp, wanted.cnp_dscp, "the DSCP value of CNP"),
        ("cm_tos", found.cm_tos, wanted.traffic_class, "the type of service of RDMA-CM"),
        ("cm_mode", found.cm_mode, ROCE_V2, "the default GID type of RDMA-CM"),
        ("traffic_class", found.traffic_class, wanted.traffic_class, "the traffic class of the device"),
    ):
        if value is not None and value != aim:
            differences.append(Difference(setting, value, aim, "%s is %s, not %s" % (title, value, aim)))
    return tuple(differences)


def untold(found: PortQos) -> tuple[str, ...]:
    """The settings beside DCB that this port does not tell, by name."""
    return tuple(
        [
            setting
            for setting in ("ecn_np", "ecn_rp", "cnp_dscp", "cm_tos", "cm_mode", "traffic_class")
            if getattr(found, setting) is None
        ]
    )


def overridable(found: PortQos) -> bool:
    """Whether DCBX below the operating system can change what the host sets (S62)."""
    return found.dcbx is not None and (bool(found.dcbx & DCBX_LLD) or not found.dcbx & DCBX_HOST)


def refuse_infiniband(ports: Iterable[PortQos]) -> None:
    """Trust, PFC and type of service exist on Ethernet only (S48).

    :raises RdmaError: ``qos_not_ethernet``.
    """
    wrong = [port for port in ports if port.link_layer != ETHERNET]
    if wrong:
        raise RdmaError(
            "qos_not_ethernet",
            "RoCE needs the link layer Ethernet; found %s."
            % ", ".join(["%s on %s" % (port.link_layer or "none", port.name) for port in wrong]),
            hint="Leave InfiniBand ports out, or change their link type with rdma.k8s.link_type.",
            ports=[port.name for port in wrong],
        )
