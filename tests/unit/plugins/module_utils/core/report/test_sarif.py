# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""SARIF 2.1.0: levels, places, waivers, fingerprints. What others say of it is in tests/unit/tools."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from ansible_collections.rdma.k8s.plugins.module_utils.core.errors import RdmaError
from ansible_collections.rdma.k8s.plugins.module_utils.core.finding import Waiver
from ansible_collections.rdma.k8s.plugins.module_utils.core.kube.documents import live, parse
from ansible_collections.rdma.k8s.plugins.module_utils.core.report import sarif
from ansible_collections.rdma.k8s.tests.support.sarif_samples import POD, PROBLEMS, RULE, entry, outcome

COLLECTION = Path(__file__).resolve().parents[6]


def results(*entries, **more):
    document = sarif.document(outcome(*entries, **more), "1.2.3")
    return document["runs"][0]["results"]


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
    below = outcome(entry(parse(POD, "/srv/a/b.yml")[0]), problems=[RdmaError("x", "y", source="/srv/c.yml")])
    (run,) = sarif.document(below, "1", root="/srv/")["runs"]
    place = run["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]
    (notification,) = run["invocations"][0]["toolExecutionNotifications"]
    told = notification["locations"][0]["physicalLocation"]["artifactLocation"]
    assert (place["uri"], told["uri"]) == ("a/b.yml", "c.yml")
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
    (nowhere,) = sarif.document(outcome(problems=[RdmaError("x", "y")]), "1")["runs"][0]["invocations"]
    assert "locations" not in nowhere["toolExecutionNotifications"][0]
    assert "region" not in second["locations"][0]["physicalLocation"]
