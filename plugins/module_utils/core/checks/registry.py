# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The registry of checks. Private to rdma.k8s: it may change with any release.

A node check is a function of one :class:`~.context.Node`; a fleet check is a function of one :class:`~.context.Fleet`
that answers for each node by name, since only the fleet shows what is odd about one of them; a cluster check is one of
the fleet that answers once, for the cluster.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Callable, Optional

from ..finding import FAIL, PASS, SKIP, UNKNOWN, WARN, CheckInfo, Detail


@dataclass(frozen=True)
class Outcome:
    """What a check function found. ``message`` is one sentence; for ``skip`` and ``unknown`` it is the reason."""

    status: str
    message: str = ""
    expected: str = ""
    observed: str = ""
    details: tuple[Detail, ...] = ()
    evidence: tuple[str, ...] = ()


@dataclass(frozen=True)
class Check:
    """A registered check.

    ``needs`` names fields of the snapshot without which the check cannot tell anything (it is ``unknown`` then);
    ``evidence`` is where its values are read. ``proof``: it judges records that only a proof brings. ``cluster``: it
    judges what the API of a cluster told. ``targets``: those that it is for; none: all.
    """

    info: CheckInfo
    run: Callable[..., Any]
    scope: str = "node"
    needs: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()
    proof: bool = False
    cluster: bool = False
    targets: tuple[str, ...] = ()


CATALOGUE: dict[str, Check] = {}

AREA_TARGETS = {
    "OCA": ("oke_dranet",),
    "IMDS": ("oke_dranet",),
    "RANGE": ("oke_dranet",),
    "DRA": ("oke_dranet",),
    "ACK": ("ack_lingjun",),
    "ROLL": ("oke_dranet", "spiderpool_sriov"),
    "SRIOV": ("spiderpool_sriov",),
}
"""Areas that are not for all targets; their checks do not take part in the judgement of another one."""
NOT_ON_LINGJUN = ("oke_dranet", "spiderpool_sriov")
"""Targets of what does not hold on Lingjun nodes, whose RDMA NICs are bonds with other names (A18)."""


def _register(
    check: str, title: str, severity: str, hint: str, scope: str, **more: Any
) -> Callable[[Any], Any]:
    area = check.split("-")[1]
    more.setdefault("targets", AREA_TARGETS.get(area, ()))
    info = CheckInfo(check, title, severity, area, hint, "checks/%s.md#%s" % (area.lower(), check.lower()))

    def decorate(function: Any) -> Any:
        if check in CATALOGUE:
            raise ValueError("check %s is registered twice" % check)
        CATALOGUE[check] = Check(info, function, scope, **more)
        return function

    return decorate


def node_check(check: str, title: str, severity: str, hint: str, **more: Any) -> Callable[[Any], Any]:
    """Register a function of one node: ``Node -> Outcome``."""
    return _register(check, title, severity, hint, "node", **more)


def fleet_check(check: str, title: str, severity: str, hint: str, **more: Any) -> Callable[[Any], Any]:
    """Register a function of all nodes: ``Fleet -> {node name: Outcome}``; it answers for every node of the fleet."""
    return _register(check, title, severity, hint, "fleet", **more)


def cluster_check(check: str, title: str, severity: str, hint: str, **more: Any) -> Callable[[Any], Any]:
    """Register a function of the cluster: ``Fleet -> Outcome``; ``fleet.cluster`` is there and never ``None``."""
    return _register(check, title, severity, hint, "cluster", cluster=True, **more)


def run_check(check: str, title: str, severity: str, hint: str, **more: Any) -> Callable[[Any], Any]:
    """Register a function of the run: ``(Fleet, findings, unreachable names, today) -> Outcome``."""
    return _register(check, title, severity, hint, "run", **more)


def passed(message: str = "", **more: Any) -> Outcome:
    return Outcome(PASS, message, **more)


def failed(message: str, **more: Any) -> Outcome:
    return Outcome(FAIL, message, **more)


def warned(message: str, **more: Any) -> Outcome:
    return Outcome(WARN, message, **more)


def skipped(reason: str) -> Outcome:
    return Outcome(SKIP, reason)


def unknown(reason: str, **more: Any) -> Outcome:
    return Outcome(UNKNOWN, reason, **more)


@lru_cache(maxsize=4096)
def ok(subject: str, observed: str = "") -> Detail:
    return Detail(subject, PASS, observed=observed)


def bad(subject: str, message: str, expected: str = "", observed: str = "") -> Detail:
    return Detail(subject, FAIL, message, expected, observed)


def odd(subject: str, message: str, expected: str = "", observed: str = "") -> Detail:
    return Detail(subject, WARN, message, expected, observed)


def unclear(subject: str, message: str) -> Detail:
    return Detail(subject, UNKNOWN, message)


def compared(subject: str, what: str, found: Any, wanted: Any, unread: str = "") -> Detail:
    """``found`` must be ``wanted``; ``None`` could not be read, ``unread`` may say why. ``what`` names it."""
    if found is None:
        return unclear(subject, "the %s could not be read%s" % (what, " (%s)" % unread if unread else ""))
    if found != wanted:
        return bad(subject, "%s %s" % (what, found), str(wanted), str(found))
    return ok(subject)


def rolled_up(
    details: Iterable[Detail], good: str, none: str, expected: str = "", as_status: str = FAIL
) -> Outcome:
    """One outcome from atomic results: bad when any is bad, else unknown when any is unknown, else pass.

    :param good: message when all passed; ``%d`` in it becomes their number.
    :param none: reason of the skip when there is nothing to check.
    :param as_status: what a bad detail makes of the whole, ``fail`` or ``warn``.
    """
    kept = tuple(details)
    if not kept:
        return skipped(none)
    wrong = [detail for detail in kept if detail.status == FAIL]
    unsure = [detail for detail in kept if detail.status == UNKNOWN]
    if wrong:
        if as_status != FAIL:
            kept = tuple(
                [replace(detail, status=as_status) if detail in wrong else detail for detail in kept]
            )
        return Outcome(as_status, _sentence(wrong), expected or wrong[0].expected, _shared(wrong), kept)
    if unsure:
        return Outcome(UNKNOWN, _sentence(unsure), expected, details=kept)
    return Outcome(PASS, good % len(kept) if "%d" in good else good)


def weighed(details: Iterable[Detail], good: str, none: str) -> Outcome:
    """One outcome from details that say themselves how bad they are: the worst of fail, warn, unknown; else pass.

    Parameters as for :func:`rolled_up`.
    """
    kept = tuple(details)
    if not kept:
        return skipped(none)
    for status in (FAIL, WARN, UNKNOWN):
        told = [detail for detail in kept if detail.status == status]
        if told:
            return Outcome(status, _sentence(told), told[0].expected, _shared(told), kept)
    return Outcome(PASS, good % len(kept) if "%d" in good else good)


def _sentence(details: list[Detail], shown: int = 4) -> str:
    """The messages of the details behind their subjects; equal messages are said once for all their subjects."""
    groups: dict[str, list[str]] = {}
    for detail in details:
        groups.setdefault(detail.message, []).append(detail.subject)
    parts = [_said(subjects, message.rstrip(".")) for message, subjects in list(groups.items())[:shown]]
    if len(groups) > shown:
        parts.append("and %d more" % (len(groups) - shown))
    return "; ".join(parts) + "."


def _said(subjects: list[str], message: str) -> str:
    """A message behind its subjects, unless it names its one subject itself."""
    if len(subjects) == 1 and message.startswith(subjects[0] + " "):
        return message
    return "%s: %s" % (_listed(subjects), message)


def _shared(details: list[Detail]) -> str:
    values = {detail.observed for detail in details}
    return values.pop() if len(values) == 1 else ""


def _listed(names: list[str], shown: int = 6) -> str:
    if len(names) <= shown:
        return ", ".join(names)
    return "%s and %d more" % (", ".join(names[:shown]), len(names) - shown)


def listed(names: Iterable[Any], shown: int = 6) -> str:
    """``a, b, c and 4 more``."""
    return _listed([str(name) for name in names], shown)


def find(check: str) -> Optional[Check]:
    """The check with this id, if the catalogue has it."""
    return CATALOGUE.get(check)
