# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The outcome of a lint: counts, exit codes, selection, the result document."""

from __future__ import annotations

import json

import pytest
import yaml

from ansible_collections.rdma.k8s.plugins.module_utils.core.errors import RdmaError
from ansible_collections.rdma.k8s.plugins.module_utils.core.finding import Waiver
from ansible_collections.rdma.k8s.plugins.module_utils.core.kube.documents import live, parse
from ansible_collections.rdma.k8s.plugins.module_utils.core.lint.model import LintFinding
from ansible_collections.rdma.k8s.plugins.module_utils.core.lint.outcome import Judged, Outcome, lint
from ansible_collections.rdma.k8s.plugins.module_utils.core.lint.waivers import VALID
from ansible_collections.rdma.k8s.plugins.module_utils.core.report.document import ResultDocument
from ansible_collections.rdma.k8s.plugins.module_utils.core.report.render import render

TODAY = "2027-02-01"
POD = """\
apiVersion: v1
kind: Pod
metadata: {name: %s}
spec:
  terminationGracePeriodSeconds: %s
  resourceClaims: [{name: rdma, resourceClaimTemplateName: t}]
  containers: [{name: main, resources: {claims: [{name: rdma}]}}]
"""
GRACE = "RDMA-WL-013"


def pods(*graces: object):
    return parse(
        "---\n".join([POD % ("p%d" % number, grace) for number, grace in enumerate(graces)]), "pods.yml"
    )


def judge(documents, **options):
    return lint(documents, today=TODAY, select=[GRACE, VALID.id], **options)


def one(status, severity="error", waiver=None, document=None):
    return Judged(
        LintFinding(GRACE, status, severity, document or DOCUMENT, ("spec",), status.title() + "."), waiver
    )


DOCUMENT = live([{"kind": "Pod", "metadata": {"name": "x"}}])[0]
WAIVER = Waiver("because", "me", "")


def test_failures_with_lines():
    outcome = judge(pods(0, 30, 0))
    assert (outcome.counts["fail"], outcome.counts["pass"]) == (2, 1)
    assert [entry.finding.line for entry in outcome.shown] == [5, 21]
    assert outcome.exit_code() == 4
    assert judge(pods(30)).exit_code(strict=True) == 0
    assert dict(outcome.looked_at) == {"Pod": 3}


def test_order_is_that_of_the_files():
    first, second = parse(POD % ("b", 0), "z.yml"), parse(POD % ("a", 0), "a.yml")
    shown = judge(first + second).shown
    assert [entry.finding.document.source for entry in shown] == ["z.yml", "a.yml"]


@pytest.mark.parametrize(
    ("entries", "threshold", "strict", "code"),
    [
        ([one("fail")], "error", False, 4),
        ([one("fail", "warning")], "error", False, 0),
        ([one("fail", "warning")], "warning", False, 4),
        ([one("warn")], "info", True, 0),
        ([one("fail", waiver=WAIVER)], "error", True, 0),
        ([one("unknown")], "error", False, 0),
        ([one("unknown")], "error", True, 3),
        ([one("unknown"), one("fail")], "error", True, 4),
        ([one("unknown", waiver=WAIVER)], "error", True, 0),
        ([one("pass")], "error", True, 0),
        ([one("skip")], "error", True, 3),  # nothing was looked at
        ([], "error", True, 3),
        ([], "error", False, 0),
    ],
)
def test_exit_codes(entries, threshold, strict, code):
    """3.2 of the reporting model; with --strict a run that looked at nothing is no pass."""
    outcome = Outcome([DOCUMENT], entries, [])
    assert outcome.exit_code(threshold, strict) == code
    broken = Outcome([DOCUMENT], entries, [], [RdmaError("manifest_malformed", "No.")])
    assert broken.exit_code(threshold, strict) == 2


def test_what_no_rule_reads_is_passed_over():
    outcome = judge(parse("kind: ConfigMap\n---\nkind: ConfigMap\n---\n[1]\n---\n" + POD % ("p", 0), "f"))
    assert dict(outcome.passed_over) == {"ConfigMap": 2, "(no object)": 1}
    assert dict(outcome.looked_at) == {"Pod": 1}


def test_a_waiver_counts():
    outcome = judge(parse("# rdma-k8s: waive %s ends at once by design\n%s" % (GRACE, POD % ("p", 0)), "f"))
    assert (outcome.counts["fail"], outcome.counts["waived"]) == (0, 1)
    (entry,) = outcome.shown
    assert entry.verdict == "waived"
    assert outcome.exit_code(strict=True) == 0


def test_selection():
    documents = pods(0)
    everything = lint(documents, today=TODAY)
    assert {GRACE, VALID.id} < {info.id for info in everything.rules}
    assert [info.id for info in judge(documents, ignore=["RDMA-TOOL-*"]).rules] == [GRACE]
    assert judge(documents, ignore=["RDMA-WL-*"]).counts["fail"] == 0
    with pytest.raises(RdmaError, match=r"like 'RDMA-WL-01'; did you mean RDMA-WL-0") as caught:
        lint(documents, today=TODAY, select=["RDMA-WL-01"])
    assert caught.value.code == "check_unknown"


def test_bad_waivers_are_findings_unless_ignored():
    documents = parse("# rdma-k8s: waive %s\n%s" % (GRACE, POD % ("p", 30)), "f")
    assert judge(documents).counts["warn"] == 1
    assert judge(documents, ignore=[VALID.id]).counts["warn"] == 0


def test_as_plain_data():
    outcome = judge(pods(0), problems=[RdmaError("manifest_malformed", "No.", source="x.yml", line=3)])
    data = json.loads(json.dumps(outcome.to_dict()))
    (finding,) = data.pop("findings")
    assert data["problems"] == [
        {"code": "manifest_malformed", "source": "x.yml", "line": 3, "message": "No.", "hint": ""}
    ]
    assert (data["kind"], data["exit_code"], data["looked_at"]) == ("rdma.k8s/lint", 2, {"Pod": 1})
    assert finding["object"] == {"kind": "Pod", "namespace": "", "name": "p0"}
    assert (finding["source"], finding["line"]) == ("pods.yml", 5)
    assert finding["path"] == ["spec", "terminationGracePeriodSeconds"]
    assert finding["waiver"] is None


def test_the_result_document_is_one_that_reports_read():
    outcome = judge(pods(0, 30))
    document = outcome.result("2027-02-01T00:00:00Z", "1.0.0", "oke_dranet", strict=True)
    assert ResultDocument.from_dict(json.loads(json.dumps(document.to_dict()))) == document
    assert [row.name for row in document.nodes] == ["Pod p0", "Pod p1"]
    assert document.exit_code == 4
    assert (document.counts()["fail"], document.counts()["pass"]) == (1, 1)
    reports = render(document)
    assert all("Pod p0" in reports[name] for name in ("report.md", "junit.xml", "result.json"))


def test_several_places_of_one_object_are_one_result():
    outcome = Outcome([DOCUMENT], [one("warn"), one("fail", waiver=WAIVER), one("unknown")], [])
    (finding,) = outcome.result("2027-02-01T00:00:00Z", "1").findings
    assert (finding.status, finding.waiver) == ("unknown", None)
    assert finding.message == "Unknown. And 2 more."
    assert [detail.status for detail in finding.details] == ["unknown", "warn", "fail"]
    assert finding.details[2].message == "Fail. Waived: because."
    document = Outcome([DOCUMENT], [one("fail", waiver=WAIVER)], []).result("2027-02-01T00:00:00Z", "1")
    assert "waived until further notice by me: because" in render(document)["junit.xml"]


def test_what_a_controller_made_is_judged_where_it_comes_from():
    pod = yaml.safe_load(POD % ("made", 0))
    pods_spec = pod["spec"]
    owner = {"kind": "Job", "name": "train", "controller": True}
    pod["metadata"] = {"name": "train-0", "namespace": "ml", "ownerReferences": [{"kind": "X"}, owner]}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "train", "namespace": "ml"}}
    job["spec"] = {"template": {"spec": pods_spec}}
    assert [entry.finding.subject for entry in judge(live([pod, job])).shown] == ["Job ml/train"]
    assert [entry.finding.subject for entry in judge(live([pod])).shown] == ["Pod ml/train-0"]
    elsewhere = {**job, "metadata": {"name": "train", "namespace": "other"}}
    assert len(judge(live([pod, elsewhere])).shown) == 2
    state = lint(live([pod, job]), today=TODAY, select=["RDMA-WL-017"])
    assert [entry.finding.subject for entry in state.judged] == ["Pod ml/train-0"]


def test_the_sentence_names_the_most_urgent_finding():
    outcome = Outcome([DOCUMENT], [one("warn"), one("unknown"), one("fail", waiver=WAIVER)], [])
    assert outcome.sentence() == (
        "The lint found 1 unknown, 1 warn. The first: RDMA-WL-013, Pod x at cluster: Unknown."
    )
