# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Waivers in manifests: what they cover, and those that cannot count."""

from __future__ import annotations

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.core.checks import tool
from ansible_collections.rdma.k8s.plugins.module_utils.core.finding import Waiver
from ansible_collections.rdma.k8s.plugins.module_utils.core.kube.documents import (
    Directive,
    Document,
    _unfolded,
    live,
    parse,
)
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
    documents = manifest("waive RDMA-WL-001 until=2027-02-01 owner=ml a reason")
    found = waivers.read(documents, RULES, TODAY)
    assert found.of(finding(documents[0])) == Waiver("a reason", "ml", "2027-02-01")
    for text in ("a until=2027-02-01 reason owner=ml", "a reason OWNER=ml Until=2027-02-01"):
        documents = manifest("waive RDMA-WL-001 " + text)
        found = waivers.read(documents, RULES, TODAY)
        assert found.of(finding(documents[0])) == Waiver("a reason", "ml", "2027-02-01")


@pytest.mark.parametrize(
    "ids", ["RDMA-WL-001, RDMA-WL-010", "RDMA-WL-001 ,RDMA-WL-010", "RDMA-WL-001 , RDMA-WL-010,"]
)
def test_blanks_around_the_commas_between_ids(ids):
    documents = manifest("waive %s both, RDMA-WL-9" % ids)
    assert waived(documents, ()) == waived(documents, (), "RDMA-WL-010") == "both, RDMA-WL-9"
    (problem,) = waivers.read(manifest("waive %s" % ids), RULES, TODAY).problems
    assert "gives no reason" in problem.message


def test_a_comma_before_the_reason():
    assert waived(manifest("waive RDMA-WL-001, old driver"), ()) == "old driver"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("waive RDMA-WL-001", "The waiver in line 1 gives no reason, so it does not count."),
        ("waive RDMA-WL-001 until=2027-03-01", "gives no reason"),
        ("waive RDMA-WL-999 because", "names RDMA-WL-999, and no rule has this id"),
        ("waive RDMA-WL-001 until=2027-01-31 because", "expired on 2027-01-31"),
        ("waive RDMA-WL-001 until=soon because", "has no date after until="),
        ("waive RDMA-WL-001 until=20270301 because", "has no date after until="),
        ("waive RDMA-WL-001 until= because", "has no date after until="),
        ("waive RDMA-WL-001 because until=", "has no date after until="),
        ("waive RDMA-WL-001 because until=2027-01-31", "expired on 2027-01-31"),
        ("waive RDMA-WL-001 because until=later", "has no date after until="),
        ("waive RDMA-WL-001 until=2027-01-31 until=2030-01-01 because", "has until= twice"),
        ("waive RDMA-WL-001 owner=a because owner=b", "has owner= twice"),
        ("waive RDMA-WL-001 owner= because", "has no name after owner="),
        ("waive RDMA-WL-001 because (until=2027-01-31)", "has until= in no word of its own"),
        ("waive RDMA-WL-001 because until = 2027-01-31", "has until= in no word of its own"),
        ("waive RDMA-WL-001, rdma-wl-010 because", "is no waiver that can be understood"),
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
        parse("kind: A\ndata:\n  - 1\n  # rdma-k8s: waive RDMA-WL-001 y\n", "f"), RULES, TODAY
    )
    assert found.accepted == {}
    (problem,) = found.problems
    assert problem.message == "The waiver in line 4 stands at no field of an object, so it does not count."


def test_a_comment_at_no_field_is_told_of_the_object_before_it():
    comment = "# rdma-k8s: waive RDMA-WL-001 y\n"
    text = "%skind: List\nitems:\n- kind: A\n%s---\nkind: B\n%s---\nkind: C\n" % (comment, comment, comment)
    found = waivers.read(parse(text, "f"), RULES, TODAY)
    assert [(p.document.content["kind"], p.message[14:21]) for p in found.problems] == [
        ("A", "line 1 "),
        ("A", "line 5 "),
        ("B", "line 8 "),
    ]


@pytest.mark.parametrize("field", ['value: "3"', "valueFrom:\n      fieldRef: {fieldPath: a}", "}]"])
def test_a_comment_at_the_value_of_an_entry(field):
    """What is found at the entry is covered, no entry around it, and not what stands beside the field."""
    text = "spec:\n  c:\n  - name: c\n    env:\n    - name: N\n      o: 1\n      %s # rdma-k8s: waive RDMA-WL-001 old\n"
    if field == "}]":
        text = text.replace("- name: N\n", "[{ name: N,\n").replace("o: 1\n", "o: 1\n,")
        text = text.replace("    env:\n    [", "    env: [")
    documents = parse(text % field, "f")
    found = waivers.read(documents, RULES, TODAY)
    entry = ("spec", "c", 0, "env", 0)
    covered = [
        path for path in (entry, entry[:4], entry[:3], (*entry, "o")) if found.of(finding(documents[0], path))
    ]
    if field == "}]":  # no field begins there
        assert (covered, len(found.problems)) == ([], 1)
    else:
        assert (covered, found.problems) == ([entry], [])


def test_the_lines_of_a_text_are_walked_once():
    walks = []

    class Counted(dict):
        def __iter__(self):
            walks.append(1)
            return super().__iter__()

        def items(self):
            walks.append(1)
            return super().items()

    lines = {("items", number): number for number in range(1, 51)}
    lines.update({("items", number, "kind"): number for number in range(1, 51)})
    texts = tuple([Directive(number, number, "waive RDMA-WL-001 y") for number in range(1, 41)])
    pods = {"kind": "List", "items": [{"kind": "A"} for _number in range(51)]}
    parts = _unfolded(Document(pods, "f", 1, Counted(lines), (), texts), 0)
    walks.clear()
    found = waivers.read(parts, RULES, TODAY)
    assert len(walks) == 1
    assert sum(1 for part in parts if found.of(finding(part))) == 41  # the first has no line of its own


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
