# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The certificate of a node: what makes a verdict, and that no change of it goes unseen."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from typing import Any

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.core.errors import RdmaError
from ansible_collections.rdma.k8s.plugins.module_utils.core.finding import Finding, Waiver
from ansible_collections.rdma.k8s.plugins.module_utils.core.report import certificate
from ansible_collections.rdma.k8s.plugins.module_utils.core.report.certificate import Certificate
from ansible_collections.rdma.k8s.plugins.module_utils.core.report.document import NodeRow, ResultDocument

JUDGED, LATER, NOW = "2026-03-02T09:00:00Z", "2026-03-02T10:00:00Z", "2026-03-02T11:00:00Z"
WAIVER = Waiver("known", "fabric team", "2026-12-31")


def finding(check: str, status: str, severity: str = "error", **more: Any) -> Finding:
    return Finding(check, "n1", status, severity, "A sentence.", **more)


GOOD = (finding("RDMA-A-001", "pass"), finding("RDMA-A-002", "skip"))


def document(*findings: Finding, created_at: str = JUDGED, **more: Any) -> ResultDocument:
    row = NodeRow("n1", shape="S", network="net", fabric="ipv4", collected_at=JUDGED, snapshot="ab" * 32)
    values = {"collection_version": "0.1.0", "target": "oke_dranet", "settings": {"mtu": "4220"}, **more}
    return ResultDocument(created_at, nodes=(row,), findings=findings, **values)


def of_n1(documents: list[ResultDocument], issued_at: str = NOW, **more: Any) -> Certificate:
    (found,) = certificate.issue(documents, ["n1"], issued_at, **more)
    return found


def issued(*findings: Finding, **more: Any) -> Certificate:
    return of_n1([document(*findings)], **more)


def test_what_it_holds() -> None:
    found = issued(*GOOD, valid_until="2026-06-01T00:00:00Z", versions={"n1": {"kernel": "6.8", "agent": ""}})
    assert (found.node, found.verdict, found.shape, found.network, found.fabric) == (
        "n1",
        "conformant",
        "S",
        "net",
        "ipv4",
    )
    assert found.versions == {"kernel": "6.8"}
    run = found.runs[0]
    assert (run.judged_at, run.snapshot, run.target, run.settings) == (
        JUDGED,
        "ab" * 32,
        "oke_dranet",
        {"mtu": "4220"},
    )
    assert [(entry.check, entry.status, entry.message) for entry in found.results] == [
        ("RDMA-A-001", "pass", ""),
        ("RDMA-A-002", "skip", "A sentence."),
    ]
    assert certificate.problems(found, NOW) == []


def test_it_is_read_as_it_was_written() -> None:
    found = issued(*GOOD, finding("RDMA-A-003", "fail", waiver=WAIVER), versions={"n1": {"kernel": "6.8"}})
    assert Certificate.from_dict(json.loads(json.dumps(found.to_dict()))) == found


@pytest.mark.parametrize(
    ("findings", "verdict"),
    [
        (GOOD, "conformant"),
        ((*GOOD, finding("RDMA-B-001", "warn")), "conformant"),
        ((*GOOD, finding("RDMA-B-001", "fail", "warning")), "conformant"),
        ((*GOOD, finding("RDMA-B-001", "fail", waiver=WAIVER)), "conformant"),
        ((*GOOD, finding("RDMA-B-001", "unknown", "info")), "conformant"),
        ((*GOOD, finding("RDMA-B-001", "fail")), "not_conformant"),
        ((*GOOD, finding("RDMA-B-001", "fail", "critical")), "not_conformant"),
        ((*GOOD, finding("RDMA-B-001", "unknown")), "not_told"),
        ((*GOOD, finding("RDMA-B-001", "unknown"), finding("RDMA-B-002", "fail")), "not_conformant"),
        ((finding("RDMA-B-001", "skip"),), "not_told"),
        ((), "not_told"),
    ],
)
def test_verdict(findings: tuple[Finding, ...], verdict: str) -> None:
    found = issued(*findings)
    assert found.verdict == verdict
    assert bool(certificate.problems(found, NOW)) == (verdict != "conformant")


def test_results_of_other_nodes_do_not_count() -> None:
    other = dataclasses.replace(finding("RDMA-B-001", "fail"), node="n2")
    fleet = dataclasses.replace(finding("RDMA-B-002", "fail"), node="(fleet)")
    assert issued(*GOOD, other, fleet).verdict == "conformant"


def test_the_later_judgement_of_a_check_counts() -> None:
    before = document(finding("RDMA-A-001", "fail"), finding("RDMA-A-009", "pass"))
    after = document(finding("RDMA-A-001", "pass"), created_at=LATER)
    for order in ([before, after], [after, before]):
        found = of_n1(order)
        assert [(entry.check, entry.status) for entry in found.results] == [
            ("RDMA-A-001", "pass"),
            ("RDMA-A-009", "pass"),
        ]
        assert [run.judged_at for run in found.runs] == [JUDGED, LATER]


class Counted(tuple):
    """Counts the entries that are read."""

    read = 0

    def __iter__(self) -> Iterator[Any]:
        for entry in super().__iter__():
            self.read += 1
            yield entry


@pytest.mark.parametrize("number", [1, 3, 60])
def test_each_result_is_read_once_for_however_many_nodes(number: int) -> None:
    names = ["n%d" % index for index in range(number)]
    findings = Counted(dataclasses.replace(entry, node=name) for name in names for entry in GOOD)
    rows = Counted(NodeRow(name) for name in names)
    found = certificate.issue([ResultDocument(JUDGED, nodes=rows, findings=findings)], names, NOW)
    assert [(entry.node, len(entry.results)) for entry in found] == [(name, len(GOOD)) for name in names]
    assert (rows.read, findings.read) == (number, number * len(GOOD))


def test_only_documents_that_judged_a_node_count_for_it() -> None:
    stray = ResultDocument(LATER, nodes=(NodeRow("n2"),), findings=(finding("RDMA-A-001", "fail"),))
    first, second = certificate.issue([document(*GOOD), stray], ["n2", "n1"], NOW)
    assert (first.node, first.results, [run.judged_at for run in first.runs]) == ("n2", (), [LATER])
    assert (second.verdict, [run.judged_at for run in second.runs]) == ("conformant", [JUDGED])


@pytest.mark.parametrize(
    "change",
    [
        {"node": "n2"},
        {"issued_at": JUDGED},
        {"valid_until": "2099-01-01T00:00:00Z"},
        {"shape": "T"},
        {"network": "x"},
        {"fabric": "ipv6"},
        {"versions": {"kernel": "7"}},
        {"runs": ()},
        {"results": ()},
        {"digest": ""},
    ],
)
def test_no_change_goes_unseen(change: dict[str, Any]) -> None:
    assert set(change) <= {entry.name for entry in dataclasses.fields(Certificate)}
    changed = dataclasses.replace(issued(*GOOD), **change)
    assert certificate.problems(changed, NOW)[0].startswith("The digest is not that of the content")


def test_a_verdict_that_the_results_do_not_say() -> None:
    forged = dataclasses.replace(issued(*GOOD, finding("RDMA-B-001", "fail")), verdict="conformant")
    forged = dataclasses.replace(forged, digest=certificate.digest(forged))
    assert certificate.problems(forged, NOW) == [
        "The verdict is 'conformant', and the results say 'not_conformant'."
    ]


def test_times() -> None:
    found = issued(*GOOD, valid_until="2026-04-01T11:00:00Z")
    assert certificate.problems(found, "2026-04-01T11:00:00Z") == []
    assert certificate.problems(found, "2026-04-01T11:00:01Z") == ["It was valid until 2026-04-01T11:00:00Z."]
    assert certificate.problems(found, LATER) == ["It was issued at %s, which is still to come." % NOW]
    early = of_n1([document(*GOOD, created_at=LATER)], JUDGED)
    assert certificate.problems(early, NOW) == ["It was issued before the judgement that it rests on."]
    assert certificate.after("2026-02-27T23:00:00Z", 2) == "2026-03-01T23:00:00Z"


def test_what_is_open_is_named() -> None:
    wrong = [finding("RDMA-B-%03d" % number, "fail") for number in range(7)]
    sentence = "The node is not conformant: %s, and 2 more."
    names = ", ".join(["fail RDMA-B-%03d" % number for number in range(5)])
    assert certificate.problems(issued(*wrong), NOW) == [sentence % names]
    assert certificate.problems(issued(), NOW) == [
        "The node is not conformant: nothing that was judged passed."
    ]


def test_differences() -> None:
    found = issued(*GOOD, finding("RDMA-FAB-001", "pass"), finding("RDMA-A-003", "fail", waiver=WAIVER))
    assert certificate.differences(found, GOOD) == []
    again = [
        finding("RDMA-A-001", "fail"),
        finding("RDMA-A-003", "fail"),
        finding("RDMA-A-004", "pass"),
    ]
    assert certificate.differences(found, again) == [
        "RDMA-A-001 is fail now, and pass in the certificate.",
        "RDMA-A-003 is not waived now, and waived in the certificate.",
        "RDMA-A-004 is pass now, and the certificate does not have it.",
    ]
    assert certificate.run_of(found, "ab" * 32) == found.runs[0]
    assert certificate.run_of(found, "cd" * 32) is None
    assert certificate.run_of(dataclasses.replace(found, runs=()), "") is None


def test_counts() -> None:
    counts = issued(*GOOD, finding("RDMA-A-003", "fail", waiver=WAIVER)).counts()
    assert {name: number for name, number in counts.items() if number} == {"pass": 1, "skip": 1, "waived": 1}


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ((["n1", "n9"], NOW), "node_unknown"),
        ((["n1"], "yesterday"), "time_malformed"),
        ((["n1"], NOW, "never"), "time_malformed"),
    ],
)
def test_refused(words: tuple[Any, ...], code: str) -> None:
    with pytest.raises(RdmaError) as error:
        certificate.issue([document(*GOOD)], *words)
    assert error.value.code == code


@pytest.mark.parametrize(
    ("content", "code"),
    [
        ([], "certificate_not_one"),
        ({"kind": "rdma.k8s/result"}, "certificate_not_one"),
        ({"kind": "rdma.k8s/certificate", "schema_version": 2}, "certificate_newer_schema"),
        ({"kind": "rdma.k8s/certificate", "schema_version": 1}, "document_malformed"),
    ],
)
def test_what_is_no_certificate(content: Any, code: str) -> None:
    with pytest.raises(RdmaError) as error:
        Certificate.from_dict(content)
    assert error.value.code == code
