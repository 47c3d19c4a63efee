# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Waivers in manifests: what they cover, and those that cannot count."""

from __future__ import annotations

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.core.checks import tool
from ansible_collections.rdma.k8s.plugins.module_utils.core.finding import Waiver
from ansible_collections.rdma.k8s.plugins.module_utils.core.kube.documents import live, parse
from ansible_collections.rdma.k8s.plugins.module_utils.core.lint import waivers
from ansible_collections.rdma.k8s.plugins.module_utils.core.lint.model import LintFinding

RULES = ("RDMA-WL-001", "RDMA-WL-010")
TODAY = "2027-02-01"
JOB = """\
# rdma-k8s: %s
apiVersion: batch/v1
kind: Job
metadata:
  name: train
spec:
  template:
    # rdma-k8s: %s
    spec:
      containers:
        - name: main
          env:
            # rdma-k8s: %s
            - name: NCCL_IB_GID_INDEX
              value: "3"
            - name: OTHER  # rdma-k8s: %s
              value: "4"
"""
ENV = ("spec", "template", "spec", "containers", 0, "env")


def manifest(*texts: str) -> list:
    return parse(JOB % (*texts, *["waive RDMA-WL-010 nothing"] * (4 - len(texts))), "job.yml")


def finding(document, path=(), rule="RDMA-WL-001", status="fail"):
    return LintFinding(rule, status, "error", document, path, "message")


def waived(documents, path, rule="RDMA-WL-001", status="fail"):
    found = waivers.read(documents, RULES, TODAY)
    waiver = found.of(finding(documents[0], path, rule, status))
    return waiver.reason if waiver else None


@pytest.mark.parametrize(
    ("place", "covered", "not_covered"),
    [
        (0, [(), ("kind",), (*ENV, 0, "value"), ("status",)], []),
        (1, [("spec", "template", "spec"), (*ENV, 1)], [(), ("metadata",), ("spec", "template")]),
        (2, [(*ENV, 0), (*ENV, 0, "value")], [ENV, (*ENV, 1)]),
        (3, [(*ENV, 1), (*ENV, 1, "value")], [ENV, (*ENV, 0, "value")]),
    ],
)
def test_a_comment_covers_the_field_on_its_line(place, covered, not_covered):
    texts = ["waive RDMA-WL-010 nothing"] * 4
    texts[place] = "waive RDMA-WL-001 it is so"
    documents = manifest(*texts)
    assert {path: waived(documents, path) for path in covered} == dict.fromkeys(covered, "it is so")
    assert {path: waived(documents, path) for path in not_covered} == dict.fromkeys(not_covered)


def test_only_its_rules_and_only_what_is_not_good():
    documents = manifest("waive RDMA-WL-001 it is so")
    assert waived(documents, (), "RDMA-WL-010") is None
    assert waived(documents, ("spec", "template", "spec"), "RDMA-WL-010") == "nothing"
    assert waived(documents, (), status="warn") == waived(documents, (), status="unknown") == "it is so"
    assert waived(documents, (), status="pass") is waived(documents, (), status="skip") is None
    both = manifest("waive RDMA-WL-001,RDMA-WL-010 both")
    assert waived(both, (), "RDMA-WL-010") == waived(both, ()) == "both"


def test_other_documents_of_the_file_are_not_covered():
    text = "kind: A\n---\n# rdma-k8s: waive RDMA-WL-001 only B\nkind: B\n---\nkind: C\n"
    documents = parse(text, "f")
    found = waivers.read(documents, RULES, TODAY)
    assert [bool(found.of(finding(document))) for document in documents] == [False, True, False]
    assert found.problems == []


def test_date_owner_and_reason():
    documents = manifest("waive RDMA-WL-001 until=2027-02-01 owner=ml a reason until=later")
    found = waivers.read(documents, RULES, TODAY)
    assert found.of(finding(documents[0])) == Waiver("a reason until=later", "ml", "2027-02-01")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("waive RDMA-WL-001", "The waiver in line 1 gives no reason, so it does not count."),
        ("waive RDMA-WL-001 until=2027-03-01", "gives no reason"),
        ("waive RDMA-WL-999 because", "names RDMA-WL-999, and no rule has this id"),
        ("waive RDMA-WL-001 until=2027-01-31 because", "expired on 2027-01-31"),
        ("waive RDMA-WL-001 until=soon because", "has no date after until="),
        ("waive the job is odd", "is no waiver that can be understood"),
        ("waive", "is no waiver that can be understood"),
        ("wave RDMA-WL-001 because", "is no waiver that can be understood"),
    ],
)
def test_a_waiver_that_cannot_count_is_told(text, message):
    documents = manifest(text)
    found = waivers.read(documents, RULES, TODAY)
    assert found.of(finding(documents[0])) is None
    (problem,) = found.problems
    assert message in problem.message
    assert (problem.rule, problem.status, problem.severity) == ("RDMA-TOOL-003", "warn", "warning")
    assert problem.expected.startswith("# rdma-k8s: waive RULE ")


def test_a_comment_at_no_field():
    found = waivers.read(
        parse("kind: A\ndata:\n  x: |\n    # rdma-k8s: waive RDMA-WL-001 y\n    z\n", "f"), RULES, TODAY
    )
    assert found.accepted == {}
    (problem,) = found.problems
    assert problem.message == "The waiver in line 4 stands at no field of an object, so it does not count."


def test_annotations():
    meta = {"annotations": {"rdma-k8s/waive-RDMA-WL-001": "owner=ml all of it", "other": "x"}}
    pods = {"annotations": {"rdma-k8s/waive-RDMA-WL-010": "the pods", "rdma-k8s/waive-RDMA-WL-9": "x"}}
    job = {"kind": "Job", "apiVersion": "batch/v1", "metadata": meta}
    job["spec"] = {"template": {"metadata": pods, "spec": {"containers": []}}}
    documents = live([job])
    found = waivers.read(documents, RULES, TODAY)
    assert found.of(finding(documents[0])) == Waiver("all of it", "ml", "")
    assert waived(documents, ENV, "RDMA-WL-010") == "the pods"
    assert waived(documents, ("spec",), "RDMA-WL-010") is None
    (problem,) = found.problems
    assert "no waiver that can be understood" in problem.message
    assert problem.path == ("spec", "template")


def test_the_check_about_waivers_is_that_of_the_catalogue():
    assert tool.CATALOGUE["RDMA-TOOL-003"].info == waivers.VALID
