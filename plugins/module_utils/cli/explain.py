# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""``rdma-k8s explain``: how a check comes to its verdict. Private to rdma.k8s: it may change with any release.

The verdict is that of the judgement itself, over the whole fleet; the numbers are those of the core's derivation.
"""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Optional

from ..core import finding as model
from ..core.checks.judge import catalogue
from ..core.checks.policy import CustomCheck, Policy
from ..core.checks.registry import Check
from ..core.errors import RdmaError
from ..core.lint.outcome import rules
from ..core.lint.registry import Rule
from ..core.report.digest import VERDICTS, verdict
from ..core.report.wording import count, fold
from . import reading, sources, worked
from .near import did_you_mean
from .places import fleet_of
from .terminal import Terminal

ANY_CHECK = "RDMA-TOOL-001"
"""A check to select when only an own check is asked for, since a selection must not be empty."""


def run(arguments: Namespace, terminal: Terminal) -> int:
    """Returns 0."""
    if arguments.view:
        return _view(arguments, terminal)
    if arguments.check is None:
        raise RdmaError(
            "usage", "Which check?", hint="Give an id such as RDMA-RANGE-013; 'rdma-k8s checks' lists them."
        )
    rule = rules().get(_wanted(arguments.check))
    if rule is not None and arguments.node is None and arguments.snapshots is None:
        _about_rule(terminal, rule)
        return 0
    if arguments.node is None and arguments.snapshots is None:
        policy = sources.policy_of(sources.Source(""), arguments.policy, arguments.set)
        _about(terminal, *_find(arguments.check, policy))
        return 0
    source = sources.recorded(arguments.snapshots)
    policy = sources.policy_of(source, arguments.policy, arguments.set)
    check, custom = _find(arguments.check, policy)
    if arguments.node is not None:
        sources.node_named(arguments.node, source.nodes or ())
    _about(terminal, check, custom)
    chosen = replace(policy, checks=(custom,) if custom is not None else ())
    _verdict(terminal, source, chosen, check, arguments.node)
    return 0


def _view(arguments: Namespace, terminal: Terminal) -> int:
    if arguments.check is not None:
        raise RdmaError(
            "usage", "--view is about a node, not about a check.", hint="Leave out %r." % arguments.check
        )
    if arguments.node is None:
        raise RdmaError("usage", "--view needs --node NAME.", hint="It prints the view of one node.")
    source = sources.recorded(arguments.snapshots)
    entry = sources.node_named(arguments.node, source.nodes or ())
    if entry.snapshot is None:
        raise RdmaError(
            "node_silent", "The node %s gave no snapshot: %s" % (entry.name, entry.reason), node=entry.name
        )
    policy = sources.policy_of(source, arguments.policy, arguments.set)
    (node,) = fleet_of([entry], policy).nodes
    terminal.write(json.dumps(node.view, indent=1) + "\n")
    return 0


def _find(name: str, policy: Policy) -> tuple[Optional[Check], Optional[CustomCheck]]:
    """The check of the catalogue, or the own check of the policy, with this id."""
    known_checks = {check.info.id: check for check in catalogue()}
    wanted = _wanted(name)
    if wanted in rules():
        raise RdmaError(
            "check_unknown",
            "%s is a rule about manifests, so no node has a verdict." % wanted,
            hint="'rdma-k8s lint' judges manifests.",
            check=name,
        )
    if wanted in known_checks:
        return known_checks[wanted], None
    for custom in policy.checks:
        if name == custom.id:
            return None, custom
    known = [*known_checks, *rules(), *[custom.id for custom in policy.checks]]
    raise RdmaError(
        "check_unknown",
        "There is no check %r%s" % (name, did_you_mean(name, known)),
        hint="'rdma-k8s checks' lists the catalogue; own checks need --policy.",
        check=name,
    )


def _wanted(name: str) -> str:
    """The whole id."""
    return "RDMA-" + name.upper().removeprefix("RDMA-")


def _about_rule(terminal: Terminal, rule: Rule) -> None:
    info = rule.info
    terminal.title("%s  %s" % (info.id, info.title))
    terminal.lines("")
    terminal.pairs(
        [
            ("severity", info.severity),
            ("looks at", "manifests and live objects, 'rdma-k8s lint'"),
            ("reads", ", ".join(sorted(rule.kinds)) or "objects of every kind"),
            ("targets", ", ".join(sorted(rule.targets))),
            ("to do", info.hint),
            ("remedy page", "docs/" + info.doc),
        ]
    )


def _about(terminal: Terminal, check: Optional[Check], custom: Optional[CustomCheck]) -> None:
    if check is not None:
        info = check.info
        reads = list(check.evidence) or ["what the run knows about itself"]
        scope = {
            "node": "one node by itself",
            "fleet": "all nodes together",
            "cluster": "the cluster as its API tells it",
            "run": "the run itself",
        }[check.scope]
    elif custom is not None:
        info = model.CheckInfo(custom.id, custom.title, custom.severity, custom.id.split("-")[0], custom.hint)
        reads, scope = ["the view of the node (explain --view)"], "one node by itself"
    else:
        return
    terminal.title("%s  %s" % (info.id, info.title))
    terminal.lines("")
    terminal.pairs(
        [
            ("severity", info.severity),
            ("looks at", scope),
            ("reads", ", ".join(reads)),
            ("expression", custom.expression if custom is not None else ""),
            ("to do", info.hint),
            ("remedy page", "docs/" + info.doc if info.doc else ""),
        ]
    )
    if check is not None:
        worked.formula(terminal, check)


def _verdict(
    terminal: Terminal, source: sources.Source, policy: Policy, check: Optional[Check], name: Optional[str]
) -> None:
    """Judge the fleet by this check alone; without a check, by the one own check that the policy has."""
    selected = check.info.id if check is not None else ANY_CHECK
    terminal.doing("judging %s" % count(len(source.nodes or ()), "node"))
    document = sources.judged(source, replace(policy, only=(selected,), skip=()))
    wanted = selected if check is not None else policy.checks[0].id
    findings = [finding for finding in document.findings if finding.check == wanted]
    fleet = fleet_of(source.nodes or (), policy, document.created_at)
    if name is None:
        whole = [finding for finding in findings if finding.node in document.no_nodes]
        _spread(terminal, findings, len(whole) < len(findings))
        for finding in whole:
            _print_verdict(terminal, finding, document.no_nodes)
        return
    chosen = [finding for finding in findings if finding.node in (name, *document.no_nodes)]
    nodes = [node for node in fleet.nodes if node.name == name]
    for node in nodes:
        if check is not None and not worked.steps(terminal, fleet, node, check):
            reading.print_read(terminal, node, check)
    for finding in chosen:
        _print_verdict(terminal, finding, document.no_nodes)


def _spread(terminal: Terminal, findings: Sequence[model.Finding], of_nodes: bool) -> None:
    """Which verdict who has. ``of_nodes``: some are those of nodes, which can be explained one by one."""
    terminal.heading("Verdicts")
    for status in VERDICTS:
        names = [finding.node for finding in findings if verdict(finding) == status]
        if names:
            text = "%d: %s" % (len(names), fold(names))
            terminal.paragraph(text, indent=" " * 10, first="  " + status.ljust(8), colour=status)
    if of_nodes:
        terminal.lines("", "  With --node NAME this shows how the verdict on that node came about.")


def _print_verdict(terminal: Terminal, finding: model.Finding, others: Mapping[str, str]) -> None:
    where = "the " + others[finding.node].removeprefix("the ") if finding.node in others else finding.node
    terminal.heading("Verdict on %s: %s" % (where, finding.status))
    terminal.pairs(
        [("found", finding.message), ("expected", finding.expected), ("observed", finding.observed)]
    )
    details = [detail for detail in finding.details if detail.status != model.PASS]
    if details and finding.check not in worked.FORMULAS:
        terminal.lines("")
        terminal.table(
            ("SUBJECT", "STATUS", "EXPECTED", "OBSERVED"),
            [(detail.subject, detail.status, detail.expected, detail.observed) for detail in details],
        )
        if len(details) < len(finding.details):
            terminal.lines("  and %d more that pass" % (len(finding.details) - len(details)))
    if finding.waiver is not None:
        waiver = finding.waiver
        terminal.pairs([("waived", "%s (%s, until %s)" % (waiver.reason, waiver.owner, waiver.expires))])
