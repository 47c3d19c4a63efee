# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The result model: status, severity, finding, waiver. Private to rdma.k8s: it may change with any release."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Optional

from . import codec
from .errors import RdmaError

PASS, FAIL, WARN, SKIP, UNKNOWN = STATUSES = ("pass", "fail", "warn", "skip", "unknown")
URGENCY = (FAIL, UNKNOWN, WARN, SKIP, PASS)
"""Statuses as reports order them: wrong, could not be told (it may be wrong), look at it, and the rest."""

CRITICAL, ERROR, WARNING, INFO = SEVERITIES = ("critical", "error", "warning", "info")

EXIT_GOOD, EXIT_INTERNAL, EXIT_USAGE, EXIT_UNKNOWN, EXIT_FAIL = 0, 1, 2, 3, 4

FLEET = "(fleet)"
"""The node name of a finding that belongs to no single node."""
CLUSTER = "(cluster)"
"""The node name of a finding about the cluster, when the cluster has no name of its own."""


@dataclass(frozen=True)
class Detail:
    """An atomic result below a finding: one NIC, one file, one address. Status as in :data:`STATUSES`."""

    subject: str = codec.text()
    status: str = codec.text()
    message: str = codec.text("")
    expected: str = codec.text("")
    observed: str = codec.text("")


@dataclass(frozen=True)
class Waiver:
    """A person accepted a result. ``expires`` is a date (YYYY-MM-DD), the last day on which the waiver counts."""

    reason: str = codec.text()
    owner: str = codec.text()
    expires: str = codec.text()


@dataclass(frozen=True)
class Finding:
    """What one check says of one node (or of the fleet: node :data:`FLEET`).

    ``message`` says in one sentence what was found (``skip`` and ``unknown``: the reason). ``evidence`` names where it
    was read: paths on the node, netlink families, documents.
    """

    check: str = codec.text()
    node: str = codec.text()
    status: str = codec.text()
    severity: str = codec.text(ERROR)
    message: str = codec.text("")
    expected: str = codec.text("")
    observed: str = codec.text("")
    evidence: tuple[str, ...] = codec.texts()
    details: tuple[Detail, ...] = codec.items(Detail)
    waiver: Optional[Waiver] = codec.item(Waiver)
    duration_ms: Optional[float] = codec.number(None)


@dataclass(frozen=True)
class CheckInfo:
    """The public face of a check, as it stands in result documents. ``doc`` is its remedy page below ``docs/``."""

    id: str = codec.text()
    title: str = codec.text()
    severity: str = codec.text()
    area: str = codec.text()
    hint: str = codec.text("")
    doc: str = codec.text("")


def summarise(statuses: dict[str, int]) -> str:
    """``3 fail, 1 unknown, 40 pass``: counts in the order of :data:`URGENCY`, zero counts left out."""
    return (
        ", ".join(["%d %s" % (statuses[name], name) for name in URGENCY if statuses.get(name)]) or "no result"
    )


def exit_code(findings: Any, threshold: str = ERROR, strict: bool = False) -> int:
    """The exit code of a set of findings (``checks.md`` 3.2).

    :param threshold: the lowest severity whose ``fail`` counts.
    :param strict: ``unknown`` counts too (3). A critical check that is ``unknown`` counts only in strict mode as well.
    :returns: 4 when a ``fail`` at or above the threshold is not waived, else 3 when strict and something is unknown,
        else 0.
    """
    if threshold not in SEVERITIES:
        raise RdmaError(
            "severity_unknown",
            "The threshold must be one of %s, found %r." % (", ".join(SEVERITIES), threshold),
            found=threshold,
        )
    counted = SEVERITIES[: SEVERITIES.index(threshold) + 1]
    unknown = False
    for finding in findings:
        if finding.waiver is not None:
            continue
        if finding.status == FAIL and finding.severity in counted:
            return EXIT_FAIL
        unknown = unknown or finding.status == UNKNOWN
    return EXIT_UNKNOWN if strict and unknown else EXIT_GOOD
