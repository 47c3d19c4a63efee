# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The command with a recorded cluster beside the nodes, or alone."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils import records
from ansible_collections.rdma.k8s.plugins.module_utils.core.checks.judge import NodeInput
from ansible_collections.rdma.k8s.tests.support import cluster_fleet, fleet

SLICES = "RDMA-DRA-008"


@pytest.fixture(name="clustered")
def clustered_fixture(tmp_path: Path) -> Path:
    """Two nodes and their cluster, in which the slice of the first is missing."""
    nodes = [fleet.node(number=number) for number in range(2)]
    cluster = cluster_fleet.healthy(nodes)
    cluster = dataclasses.replace(cluster, slices=(cluster.slices or ())[1:])
    records.save(str(tmp_path / "both"), [NodeInput(node.name, node) for node in nodes], cluster)
    return tmp_path / "both"


def results(path: Path, node: str) -> dict[str, str]:
    document = json.loads(path.read_text())
    return {entry["check"]: entry["status"] for entry in document["findings"] if entry["node"] == node}


def test_a_directory_is_judged_with_its_cluster(run, clustered, tmp_path):
    out = run("report", clustered, "--dir", tmp_path / "out", "--format", "json").good()
    assert out.startswith("2 nodes, ")
    assert results(tmp_path / "out" / "result.json", "training")[SLICES] == "fail"
    assert results(tmp_path / "out" / "result.json", "node-000")["RDMA-DRA-010"] == "fail"
    assert run("report", clustered, "--only", SLICES, "--exit-code").code == 4


def test_a_cluster_alone(run, clustered):
    out = run("report", clustered / "cluster.json", "--only", SLICES).good()
    assert out.startswith("0 nodes, 1 check, ")
    assert "error, the cluster" in out
    assert "10.140.77.19: has a pod of DRANET and no slice." in out


def test_a_bundle_keeps_the_cluster(run, clustered, tmp_path):
    run("bundle", clustered, "--output", tmp_path / "b.tar.gz").good()
    run("report", tmp_path / "b.tar.gz", "--dir", tmp_path / "out", "--format", "json").good()
    assert results(tmp_path / "out" / "result.json", "training")[SLICES] == "fail"
    (clustered / "node-000.json").unlink()
    (clustered / "node-001.json").unlink()
    words = " ".join(run("bundle", clustered, "--output", tmp_path / "c.tar.gz").good().split())
    assert "0 snapshots, the policy, the cluster" in words
    assert run("report", tmp_path / "c.tar.gz", "--only", SLICES, "--exit-code").code == 4


def test_how_the_verdict_on_a_cluster_came_about(run, clustered):
    words = " ".join(run("explain", SLICES, "--snapshots", clustered, "--node", "node-000").good().split())
    assert "looks at the cluster as its API tells it" in words
    assert "Verdict on the cluster: fail" in words
    assert "1: training" in run("explain", SLICES, "--snapshots", clustered).good()


def test_the_catalogue_tells_the_scope(run):
    (found,) = json.loads(run("checks", SLICES, "--format", "json").good())
    assert (found["scope"], found["area"]) == ("cluster", "DRA")


def test_a_comparison_of_two_clusters(run, clustered, tmp_path):
    """The slice is back: the check of the cluster is among the fixed ones."""
    run("report", clustered, "--dir", tmp_path / "old", "--format", "json").good()
    nodes = records.load(str(clustered))
    healthy = cluster_fleet.healthy([node.snapshot for node in nodes if node.snapshot is not None])
    records.save(str(clustered), nodes, healthy)
    run("report", clustered, "--dir", tmp_path / "new", "--format", "json").good()
    old, new = (tmp_path / name / "result.json" for name in ("old", "new"))
    document = json.loads(new.read_text())
    document["created_at"] = "2099-01-01T00:00:00Z"
    new.write_text(json.dumps(document))
    found = json.loads(run("diff", old, new, "--format", "json").good())
    fixed = {(entry["check"], entry["node"]) for entry in found["changes"] if entry["kind"] == "fixed"}
    assert (SLICES, "training") in fixed


def test_a_directory_with_reports_and_the_cluster_is_one_with_reports(run, clustered, tmp_path):
    """Preflight leaves what it read of the cluster beside the result document."""
    run("report", clustered, "--dir", tmp_path / "out", "--format", "json").good()
    (clustered / "cluster.json").rename(tmp_path / "out" / "cluster.json")
    assert run("report", tmp_path / "out").good().startswith("2 nodes, ")
