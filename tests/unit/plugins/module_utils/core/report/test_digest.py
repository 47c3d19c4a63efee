# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The digest of a document: verdicts, groups, and that nothing vanishes."""

from __future__ import annotations

from hypothesis import given

from ansible_collections.rdma.k8s.plugins.module_utils.core.finding import FLEET, Finding, Waiver
from ansible_collections.rdma.k8s.plugins.module_utils.core.report.digest import (
    NO_RESULT,
    VERDICTS,
    WAIVED,
    area_of,
    digest,
    verdict,
    worst,
)
from ansible_collections.rdma.k8s.plugins.module_utils.core.report.document import NodeRow, ResultDocument
from ansible_collections.rdma.k8s.tests.support.results import documents, small

WAIVER = Waiver("reason", "owner", "2026-04-01")


def test_verdict_of_a_finding() -> None:
    assert [verdict(Finding("c", "n", status)) for status in ("pass", "fail", "warn", "skip", "unknown")] == [
        "pass",
        "fail",
        "warn",
        "skip",
        "unknown",
    ]
    assert [verdict(Finding("c", "n", status, waiver=WAIVER)) for status in ("fail", "unknown", "warn")] == [
        WAIVED
    ] * 3
    assert [verdict(Finding("c", "n", status, waiver=WAIVER)) for status in ("pass", "skip")] == [
        "pass",
        "skip",
    ]
    assert verdict(Finding("c", "n", "strange")) == "unknown"


def test_no_result_is_never_good() -> None:
    assert worst([]) == "unknown"
    assert worst(["pass", "skip"]) == "pass"
    assert worst(["warn", "unknown", "pass"]) == "unknown"
    assert worst(["unknown", "fail"]) == "fail"


def test_the_small_document() -> None:
    found = digest(small())
    assert found.areas == ["NODE", "OCA", "RANGE"]
    assert [(node.name, node.verdict()) for node in found.nodes] == [
        (FLEET, "unknown"),
        ("n1", "fail"),
        ("n2", "fail"),
        ("n10", "unknown"),
        ("n11", "unknown"),
    ]
    assert found.counts == {"fail": 2, "unknown": 3, "warn": 1, "waived": 1, "pass": 1, "skip": 1}
    assert [(group.info.id, group.verdict, group.nodes) for group in found.groups] == [
        ("RDMA-NODE-001", "fail", ["n1", "n2"]),
        ("RDMA-RANGE-013", "unknown", [FLEET]),
        ("RDMA-NODE-017", "warn", ["n1"]),
        ("RDMA-OCA-012", WAIVED, ["n1"]),
    ]
    assert found.silent == {"No answer over SSH within 30 s.": ["n10"], NO_RESULT: ["n11"]}
    assert found.hosts_by_verdict() == {"fail": ["n1", "n2"], "unknown": ["n10", "n11"]}


def test_messages_that_differ_only_by_the_node_are_one() -> None:
    document = ResultDocument(
        "now",
        findings=(
            Finding("c", "gpu-1", "fail", message="gpu-1 is wrong"),
            Finding("c", "gpu-2", "fail", message="gpu-2 is wrong"),
            Finding("c", "gpu-3", "fail", message="other"),
        ),
    )
    messages = digest(document).groups[0].by_message()
    assert [(text, len(findings)) for text, findings in messages.items()] == [
        ("NODE is wrong", 2),
        ("other", 1),
    ]


def test_a_check_or_node_that_only_a_finding_names_is_taken_in() -> None:
    found = digest(ResultDocument("now", findings=(Finding("RDMA-X-001", "n9", "fail", "info"),)))
    assert found.checks["RDMA-X-001"].area == "X"
    assert [node.name for node in found.nodes] == ["n9"]
    assert found.groups[0].severity == "info"


def test_an_unreachable_node_is_unknown_even_if_something_passes() -> None:
    document = ResultDocument(
        "now", nodes=(NodeRow("n", False, "down"),), findings=(Finding("c", "n", "pass"),)
    )
    found = digest(document)
    assert found.nodes[0].verdict() == "unknown"
    assert found.silent == {"down": ["n"]}


def test_area_of_an_id() -> None:
    assert [area_of("RDMA-NODE-001"), area_of("my-check"), area_of("")] == ["NODE", "OTHER", "OTHER"]


@given(documents())
def test_nothing_vanishes(document: ResultDocument) -> None:
    found = digest(document)
    names = {row.name for row in document.nodes} | {finding.node for finding in document.findings}
    assert {node.name for node in found.nodes} == names
    assert sum(found.counts.values()) == len(document.findings)
    assert sum([sum(node.total().values()) for node in found.nodes]) == len(document.findings)
    assert {finding.check for finding in document.findings} <= set(found.checks)
    order = [VERDICTS.index(node.verdict()) for node in found.hosts()]
    assert order == sorted(order)
