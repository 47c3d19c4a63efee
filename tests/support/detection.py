# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Time-to-detect (B12): every fault of the catalogue's cases injected into a healthy fleet, and what was said about it.

Recall counts the faults whose check speaks up on the sick node. A false alarm is a result other than pass or skip that
no fault explains: on the sick node one that its case does not name, on a healthy neighbour any at all, and of course
every one on a fleet without a fault.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass

from ansible_collections.rdma.k8s.plugins.module_utils.core.checks.judge import NodeInput, judge
from ansible_collections.rdma.k8s.plugins.module_utils.core.checks.policy import Policy
from ansible_collections.rdma.k8s.plugins.module_utils.core.report.document import ResultDocument
from ansible_collections.rdma.k8s.tests.support import fleet
from ansible_collections.rdma.k8s.tests.support.cases import SURROUNDINGS, Case, not_good
from ansible_collections.rdma.k8s.tests.unit.plugins.module_utils.core.checks.cases import (
    ack,
    boot,
    dra,
    dra_nodes,
    fabric,
    imds,
    in_cluster,
    node,
    oca,
    ranges,
    roce,
    roll,
    settings,
    sriov,
    sriov_pods,
    tool,
)

CASES: list[Case] = [
    case
    for area in (
        boot,
        node,
        settings,
        roce,
        oca,
        imds,
        ranges,
        fabric,
        dra,
        dra_nodes,
        in_cluster,
        ack,
        roll,
        sriov,
        sriov_pods,
        tool,
    )
    for case in area.CASES
]
FAULTS = [case for case in CASES if case.is_fault]


@dataclass(frozen=True)
class Detection:
    """One fault: was it found, how long did the judgement take, and which results nothing explains."""

    case: Case
    found: bool
    milliseconds: float
    false_alarms: tuple[str, ...]


def inject(case: Case) -> Detection:
    """Judge the fleet of a case and compare with what the case says."""
    inputs = case.fleet()
    policy = Policy.from_dict({**SURROUNDINGS, **case.settings})
    cluster = case.cluster() if case.cluster is not None else None
    started = time.perf_counter()
    document = judge(inputs, policy, fleet.JUDGED_AT, cluster=cluster)
    milliseconds = (time.perf_counter() - started) * 1000
    results = not_good(document, case.node)
    found = results.get(case.check) == case.status
    alarms = ["%s %s" % (case.node, check) for check in results if check not in case.expected]
    alone = case.inputs is None and case.cluster is None and not case.settings
    if alone:  # one sick node: the others have nothing wrong
        neighbours = [entry.name for entry in inputs if entry.name != case.node]
        alarms += ["%s %s" % (name, check) for name in neighbours for check in not_good(document, name)]
    return Detection(case, found, milliseconds, tuple(alarms))


def inject_all(cases: Iterable[Case] = FAULTS) -> list[Detection]:
    """All faults, one after the other."""
    return [inject(case) for case in cases]


def healthy_results() -> list[tuple[str, ResultDocument]]:
    """The whole catalogue over a healthy fleet of each shape, with and without the features file of OCA."""
    return [
        (shape, judge_healthy(shape, features_file))
        for shape in sorted(fleet.MODELS)
        for features_file in (True, False)
    ]


def judge_healthy(shape: str, features_file: bool = True, count: int = 3) -> ResultDocument:
    """The whole catalogue over a healthy fleet of one shape."""
    nodes = [fleet.node(shape, number, features_file=features_file) for number in range(count)]
    inputs = [NodeInput(entry.name, entry) for entry in nodes]
    return judge(inputs, Policy.from_dict(SURROUNDINGS), fleet.JUDGED_AT)


def alarms_of(document: ResultDocument) -> list[str]:
    """Every result of a document that is neither pass nor skip."""
    return [
        "%s %s %s" % (finding.node, finding.check, finding.status)
        for finding in document.findings
        if finding.status not in ("pass", "skip")
    ]
