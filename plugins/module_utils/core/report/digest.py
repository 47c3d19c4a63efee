# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A result document counted and grouped once, for all formats.

Private to rdma.k8s: it may change with any release.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Optional

from .. import finding as model
from .document import NodeRow, ResultDocument
from .wording import natural

WAIVED = "waived"
VERDICTS = (model.FAIL, model.UNKNOWN, model.WARN, WAIVED, model.PASS, model.SKIP)
"""What a report shows for a finding, most urgent first. What is waived is ``waived``, if not ``pass`` or ``skip``."""

OPEN = (model.FAIL, model.UNKNOWN, model.WARN)
"""The verdicts that ask somebody to act."""

NO_RESULT = "No check was judged for this node."

_RANK = {name: rank for rank, name in enumerate(VERDICTS)}
_SEVERITY_RANK = {name: rank for rank, name in enumerate(model.SEVERITIES)}


def verdict(finding: model.Finding) -> str:
    """The verdict of one finding, as in :data:`VERDICTS`. A status that is not known counts as ``unknown``."""
    status = finding.status
    if finding.waiver is not None and status not in (model.PASS, model.SKIP):
        return WAIVED
    return status if status in _RANK else model.UNKNOWN


def worst(verdicts: Iterable[str]) -> str:
    """The most urgent verdict; ``unknown`` when there is none, because no result is never good."""
    return min(verdicts, key=_RANK.__getitem__, default=model.UNKNOWN)


def severity_rank(severity: str) -> int:
    """0 for ``critical`` and so on; a severity that is not known comes last."""
    return _SEVERITY_RANK.get(severity, len(_SEVERITY_RANK))


@dataclass
class NodeDigest:
    """One line of the matrix: per area, how many findings have which verdict."""

    name: str
    row: Optional[NodeRow] = None
    areas: dict[str, dict[str, int]] = field(default_factory=dict)

    @property
    def reachable(self) -> bool:
        return self.row is None or self.row.reachable

    def total(self) -> dict[str, int]:
        """Findings per verdict over all areas, verdicts with none left out."""
        total: dict[str, int] = {}
        for counts in self.areas.values():
            for name, number in counts.items():
                total[name] = total.get(name, 0) + number
        return total

    def verdict(self) -> str:
        """The most urgent verdict of the node; ``unknown`` when it has no result or was not reachable."""
        found = worst(self.total())
        if not self.reachable and found != model.FAIL:
            return model.UNKNOWN
        return found


@dataclass
class Group:
    """All findings of one check with the same verdict, in the order of their nodes."""

    info: model.CheckInfo
    verdict: str
    severity: str
    findings: list[model.Finding]

    @property
    def nodes(self) -> list[str]:
        """The names of the nodes, each once."""
        return list(dict.fromkeys([finding.node for finding in self.findings]))

    def by_message(self) -> dict[str, list[model.Finding]]:
        """The findings by message, most frequent first; the name of the node counts as ``NODE`` in it."""
        messages: dict[str, list[model.Finding]] = {}
        for finding in self.findings:
            messages.setdefault(neutral(finding.message, finding.node), []).append(finding)
        return dict(sorted(messages.items(), key=lambda entry: -len(entry[1])))


def neutral(message: str, node: str) -> str:
    """``message`` with the name of its node replaced, so that the same fault on two nodes has one text."""
    return message.replace(node, "NODE") if len(node) > 2 else message


@dataclass
class Digest:
    """The counted document. All lists have the most urgent entry first.

    ``nodes`` begins with the fleet's own line and that of the cluster, which ``no_nodes`` names with the words for
    them. ``groups`` is what to act on, and what is waived. ``silent`` holds the
    nodes that told nothing, by reason: not reachable, or without any result. What is unknown of them for that reason
    stands in ``counts`` and in the matrix, and not once more for each check in ``groups``.
    """

    areas: list[str]
    checks: dict[str, model.CheckInfo]
    nodes: list[NodeDigest]
    groups: list[Group]
    silent: dict[str, list[str]]
    counts: dict[str, int]
    no_nodes: dict[str, str] = field(default_factory=dict)

    def hosts(self) -> list[NodeDigest]:
        """The nodes without the lines of the fleet and of the cluster."""
        return [node for node in self.nodes if node.name not in self.no_nodes]

    def words_for(self, nodes: list[str]) -> str:
        """``whole fleet`` or ``the cluster`` when that is all a group names; empty for nodes."""
        return self.no_nodes.get(nodes[0], "") if len(nodes) == 1 else ""

    def hosts_by_verdict(self) -> dict[str, list[str]]:
        """Names of nodes per verdict, verdicts with none left out."""
        found: dict[str, list[str]] = {}
        for node in self.hosts():
            found.setdefault(node.verdict(), []).append(node.name)
        return {name: found[name] for name in VERDICTS if name in found}


def area_of(check: str) -> str:
    """The area in the id of a check (``RDMA-NODE-001`` has ``NODE``), for checks that the document does not list."""
    parts = check.split("-")
    return parts[1] if len(parts) > 2 else "OTHER"


def digest(document: ResultDocument) -> Digest:
    """Count and group a document in one pass over its findings.

    Nodes that only a finding names are taken in, and so are checks that the document does not list: nothing vanishes.
    """
    checks = {info.id: info for info in document.checks}
    nodes = {row.name: NodeDigest(row.name, row) for row in document.nodes}
    counts = dict.fromkeys(VERDICTS, 0)
    grouped: dict[tuple[str, str], list[model.Finding]] = {}
    for finding in document.findings:
        name = finding.status if finding.waiver is None and finding.status in _RANK else verdict(finding)
        counts[name] += 1
        info = checks.get(finding.check)
        if info is None:
            info = model.CheckInfo(finding.check, finding.check, finding.severity, area_of(finding.check))
            checks[finding.check] = info
        node = nodes.get(finding.node)
        if node is None:
            node = nodes[finding.node] = NodeDigest(finding.node)
        cell = node.areas.setdefault(info.area, {})
        cell[name] = cell.get(name, 0) + 1
        if name in (model.PASS, model.SKIP) or (name == model.UNKNOWN and not node.reachable):
            continue
        grouped.setdefault((finding.check, name), []).append(finding)
    groups = [
        Group(checks[check], name, min([f.severity for f in found], key=severity_rank), found)
        for (check, name), found in grouped.items()
    ]
    for group in groups:
        group.findings.sort(key=lambda finding: natural(finding.node))
    groups.sort(key=_group_order)
    return Digest(
        list(dict.fromkeys([info.area for info in checks.values()])),
        checks,
        sorted(nodes.values(), key=lambda node: (node.name not in document.no_nodes, *_node_order(node))),
        groups,
        _silent(nodes.values()),
        counts,
        document.no_nodes,
    )


def _silent(nodes: Iterable[NodeDigest]) -> dict[str, list[str]]:
    reasons: dict[str, list[str]] = {}
    for node in nodes:
        if node.row is not None and not node.row.reachable:
            reasons.setdefault(node.row.reason or "The node was not reachable.", []).append(node.name)
        elif not node.areas:
            reasons.setdefault(NO_RESULT, []).append(node.name)
    return dict(sorted(reasons.items(), key=lambda entry: -len(entry[1])))


def _group_order(group: Group) -> tuple[int, int, int, str]:
    return _RANK[group.verdict], severity_rank(group.severity), -len(group.nodes), group.info.id


def _node_order(node: NodeDigest) -> tuple[bool, int, int, object]:
    found = node.verdict()
    return node.name != model.FLEET, _RANK[found], -node.total().get(found, 0), natural(node.name)
