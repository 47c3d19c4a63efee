# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Preflight over recorded nodes: verdicts, reports and records."""

from __future__ import annotations

import json
import re
import stat
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.rdma.k8s.plugins.module_utils import records, report_files
from ansible_collections.rdma.k8s.plugins.module_utils.core.checks.judge import NodeInput
from ansible_collections.rdma.k8s.plugins.module_utils.core.snapshot import SCHEMA_VERSION
from ansible_collections.rdma.k8s.tests.support import cases, cluster_fleet, fleet
from ansible_collections.rdma.k8s.tests.support.playbook import (
    COLLECTION,
    REPORTS,
    Run,
    findings,
    together,
)

EXAMPLES = COLLECTION / "examples"
OCID = "ocid1.instance.oc1.phx.anyhqljtniwq6syc3nex55sep5w34qbwmw6TAIL"


@pytest.mark.both_legs
def test_the_example_fleet_ends_failed_with_one_line_and_five_reports(run: Run) -> None:
    result = run(variables={"snapshots": str(EXAMPLES / "fleet"), "policy": str(EXAMPLES / "policy.yml")})
    sentence = result.failed()
    counts = re.fullmatch(
        r"The fleet is not right: (\d+) failed and (\d+) unknown results on 20 nodes\. "
        r"The reports are in rdma-report\.",
        sentence,
    )
    assert counts is not None, sentence
    assert len(result.sentences) == 1
    document = run.document()
    assert [int(number) for number in counts.groups()] == [
        document.counts()["fail"],
        document.counts()["unknown"],
    ]
    assert document.exit_code == 4
    assert sorted(path.name for path in run.reports.iterdir()) == list(REPORTS)
    assert {stat.S_IMODE(path.stat().st_mode) for path in run.reports.iterdir()} == {0o644}
    ET.parse(run.reports / "junit.xml")
    assert (run.reports / "report.html").read_text().rstrip().endswith("</html>")
    summary = result.summary
    assert summary[0] == "20 nodes, 75 checks, target oke_dranet, child range 10.208.0.0/12"
    assert max(map(len, summary)) <= 100
    assert any(line.startswith("FAIL ") for line in summary)
    assert result.recap("localhost")["failed"] == 1


@pytest.mark.both_legs
def test_a_clean_fleet_ends_well_and_a_second_run_differs_in_the_time_alone(run: Run, healthy: Path) -> None:
    (run.folder / "policy.yml").write_text(yaml.safe_dump(cases.SURROUNDINGS))
    words = ("-e", "policy=policy.yml", "-e", "strict=true", "-e", "threshold=info")
    first = run(*words, variables={"snapshots": str(healthy)})
    first.good()
    assert first.summary[1] == "3 good"
    old = {path.name: path.read_text() for path in run.reports.iterdir()}
    second = run(*words, variables={"snapshots": str(healthy)})
    second.good()
    new = {path.name: path.read_text() for path in run.reports.iterdir()}
    assert second.summary == first.summary
    times = [json.loads(files["result.json"])["created_at"] for files in (old, new)]
    assert times[0] < times[1]
    # The time of the judgement is in every report, so all of them are written again, and nothing else differs.
    assert second.recap("localhost")["changed"] == 1
    assert new["result.json"].replace(times[1], times[0]) == old["result.json"]
    assert new["report.md"].replace(times[1], times[0]) == old["report.md"]


def faulty() -> list[NodeInput]:
    """Three nodes with a wrong MTU, a table that could not be read, and no answer at all."""
    nodes = [fleet.node(number=number, name="n%d" % number) for number in range(2)]
    nodes[0] = fleet.edit_link(nodes[0], "rdma3", mtu=1500)
    nodes[0] = fleet.edit_host_document(nodes[0], "rackId", OCID)
    nodes[1] = fleet.without(nodes[1], "firewall", "nftables", "denied to %s." % OCID)
    nodes[1] = fleet.edit_oca(nodes[1], agent_version='{"token": "hunter2"}')
    inputs = [NodeInput(node.name, node) for node in nodes]
    inputs[1] = replace(inputs[1], child_range="10.192.0.0/12", network="blue")
    return [*inputs, NodeInput("n2", reason="no answer from %s." % OCID)]


def write(folder: Path, nodes: list[NodeInput]) -> str:
    """Record nodes as they are, without shortening anything."""
    folder.mkdir()
    for node in nodes:
        document: dict[str, Any] = {
            "schema_version": SCHEMA_VERSION,
            "name": node.name,
            "unreachable": node.reason,
        }
        if node.snapshot is not None:
            document = node.snapshot.to_dict()
            document["inventory"] = {"child_range": node.child_range, "network": node.network}
        (folder / (node.name + ".json")).write_text(json.dumps(document))
    return str(folder)


@pytest.mark.both_legs
def test_what_is_recorded_can_be_judged_again_and_holds_no_identifier(run: Run) -> None:
    original = write(run.folder / "original", faulty())
    settings = {"rdma_policy": cases.SURROUNDINGS}
    result = run("--check", variables={"snapshots": original, "record": "recorded", **settings})
    assert "on 3 nodes" in result.failed()
    first = run.document()
    recorded = run.folder / "recorded"
    files = sorted(recorded.iterdir())
    assert [path.name for path in files] == ["n0.json", "n1.json", "n2.json"]
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}
    text = "".join(path.read_text() for path in files)
    assert OCID[-20:] not in text
    assert "hunter2" not in text
    assert text.count("ocid1.instance.." + OCID[-12:]) == 3
    assert sorted(path.name for path in run.reports.iterdir()) == list(REPORTS)  # --check made no difference
    run(variables={"snapshots": str(recorded), **settings}).failed()
    second = run.document()
    short = [
        tuple(text.replace(OCID, "ocid1.instance.." + OCID[-12:]) for text in row) for row in findings(first)
    ]
    assert findings(second) == short
    assert {row.name: row.network for row in second.nodes if row.network} == {
        row.name: row.network for row in first.nodes if row.network
    }
    assert next(row for row in second.nodes if row.name == "n1").network == "blue"


def test_strictness_and_threshold(run: Run) -> None:
    unknown, wrong = faulty()[1], faulty()[0]
    nodes = [replace(unknown, child_range="", network=""), NodeInput("n2", fleet.node(number=2, name="n2"))]
    variables = {"snapshots": write(run.folder / "unknown", nodes), "rdma_policy": cases.SURROUNDINGS}
    lenient = {**variables, "report_dir": "lenient"}
    nodes[0] = wrong
    critical = {**variables, "snapshots": write(run.folder / "wrong", nodes), "report_dir": "critical"}
    results = together(
        lambda: run(variables=lenient),
        lambda: run("-e", "strict=yes", variables={**variables, "report_dir": "strict"}),
        lambda: run("-e", "threshold=critical", variables=critical),
    )
    results[0].good()
    assert "The fleet is not right: 0 failed and 1 unknown results on 2 nodes." in results[1].failed()
    results[2].good()
    assert any("RDMA-NODE-017" in line for line in results[2].summary)


def test_reports_of_the_run_are_those_of_its_document(run: Run, healthy: Path) -> None:
    """One file instead of a directory, and reports in another place."""
    one = str(healthy / "n0.json")
    run(variables={"snapshots": one, "report_dir": "a/b", "rdma_policy": cases.SURROUNDINGS}).good()
    document = report_files.read_result(str(run.folder / "a" / "b" / "result.json"))
    written = report_files.write_reports(document, str(run.folder / "a" / "b"))
    assert [entry.changed for entry in written] == [False] * len(REPORTS)
    assert [row.name for row in document.nodes] == ["n0"]
    assert records.load_file(one).name == "n0"


def test_a_cluster_from_a_file_and_one_that_does_not_answer(run: Run, healthy: Path) -> None:
    """The row of the cluster is in the reports; a wrong kubeconfig ends the run before anything is judged."""
    nodes = [fleet.node(number=number) for number in range(3)]
    records.save(str(run.folder / "c"), [], cluster_fleet.healthy(nodes))
    variables = {"snapshots": str(healthy), "rdma_policy": cases.SURROUNDINGS}
    file = str(run.folder / "c" / "cluster.json")
    (run.folder / "kubeconfig").write_text("nothing")
    wrong = {**variables, "kubeconfig": str(run.folder / "kubeconfig"), "report_dir": "other"}
    results = together(
        lambda: run(variables={**variables, "cluster_file": file}), lambda: run(variables=wrong)
    )
    results[0].good()
    document = run.document()
    assert document.cluster == "training"
    assert {entry.status for entry in document.findings if entry.node == "training"} == {"pass", "skip"}
    assert "kubeconfig" in results[1].failed()
    assert not (run.folder / "other").exists()
