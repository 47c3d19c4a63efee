# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sliced jobs, run by ansible-runner as AWX runs them: each slice has every n-th host, and its own process.

Two nodes of different slices have one child address each (F23). No slice can see that; the job that judges all of them
must.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils import report_files
from ansible_collections.rdma.k8s.plugins.module_utils.core.report.document import ResultDocument
from ansible_collections.rdma.k8s.plugins.module_utils.core.snapshot import NodeSnapshot
from ansible_collections.rdma.k8s.tests.support import fleet, node_tree
from ansible_collections.rdma.k8s.tests.support.playbook import BIN, COLLECTION, LIMIT, Controller, together

PROJECT = COLLECTION / "examples" / "awx"
SLICES = 2


def nodes() -> list[NodeSnapshot]:
    """By name; those of even and of odd places are in different slices."""
    return [
        fleet.node(number=0, name="n0"),
        fleet.node(number=0, name="n1", subnet="10.141.64.0/19"),
        fleet.node(number=2, name="n2"),
        fleet.node(number=3, name="n3"),
    ]


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """Hosts of the inventory; each is this machine, and shows the recorded tree of a node."""
    trees = tmp_path_factory.mktemp("trees")
    found: dict[str, dict[str, Any]] = {}
    for node in nodes():
        node_tree.write(trees / node.name, node, gid_table=8)
        found[node.name] = {"ansible_connection": "local", "rdma_host_root": str(trees / node.name)}
    return found


def job(
    controller: Controller, place: Path, playbook: str, inventory: dict[str, Any], shared: Path
) -> tuple[int, Path]:
    """Run a job; return its exit code and its artifacts."""
    shutil.copytree(PROJECT, place / "project")
    (place / "inventory").mkdir()
    (place / "inventory" / "hosts.json").write_text(json.dumps({"all": {"hosts": inventory}}))
    (place / "env").mkdir()
    (place / "env" / "extravars").write_text(json.dumps({"shared": str(shared)}))
    done = subprocess.run(
        [str(BIN / "ansible-runner"), "run", str(place), "-p", playbook, "--ident", "job", "--quiet"],
        env=controller.environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode, place / "artifacts" / "job"


def events(artifacts: Path, kind: str, task: str) -> set[str]:
    """The hosts of which a job tells this event of a task."""
    found = [json.loads(path.read_text()) for path in (artifacts / "job_events").glob("*.json")]
    return {
        entry["event_data"]["host"]
        for entry in found
        if entry["event"] == kind and entry["event_data"].get("task") == task
    }


def of(document: ResultDocument, check: str) -> dict[str, str]:
    return {entry.node: entry.status for entry in document.findings if entry.check == check}


@pytest.fixture(scope="module")
def run(
    controller: Controller, hosts: dict[str, dict[str, Any]], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Any]:
    """All slices side by side, and the job after them."""
    folder = tmp_path_factory.mktemp("awx")
    names = sorted(hosts)
    slices = [{name: hosts[name] for name in names[number::SLICES]} for number in range(SLICES)]
    ran = together(
        *[
            lambda number=number, mine=mine: job(
                controller, folder / ("slice%d" % number), "record.yml", mine, folder / "shared"
            )
            for number, mine in enumerate(slices)
        ]
    )
    code, artifacts = job(controller, folder / "judge", "judge.yml", {}, folder / "shared")
    return {"folder": folder, "slices": slices, "ran": ran, "code": code, "artifacts": artifacts}


def test_each_slice_records_its_own_nodes(run: dict[str, Any]) -> None:
    for (code, artifacts), mine in zip(run["ran"], run["slices"]):
        assert code == 0, (artifacts / "stdout").read_text()
        assert (artifacts / "rc").read_text() == "0"
        assert events(artifacts, "runner_on_ok", "Gather a snapshot") == set(mine)
        assert len(events(artifacts, "runner_on_ok", "Record them")) == 1
    recorded = sorted(path.name for path in (run["folder"] / "shared" / "recorded").iterdir())
    assert recorded == ["n0.json", "n1.json", "n2.json", "n3.json"]


def test_the_job_after_them_judges_one_fleet(run: dict[str, Any]) -> None:
    text = (run["artifacts"] / "stdout").read_text()
    assert run["code"] != 0, text
    assert "4 nodes, " in text
    assert "The fleet is not right" in text
    document = report_files.read_result(str(run["folder"] / "shared" / "rdma-report" / "result.json"))
    assert [row.name for row in document.nodes] == ["n0", "n1", "n2", "n3"]
    assert all(row.reachable for row in document.nodes)
    assert of(document, "RDMA-RANGE-013") == {"n0": "fail", "n1": "fail", "n2": "pass", "n3": "pass"}


def test_a_slice_in_which_nobody_answers(controller: Controller, tmp_path: Path) -> None:
    """It is recorded as silent, and its job fails."""
    gone = {"gone": {"ansible_connection": "local", "ansible_python_interpreter": "/does/not/exist"}}
    code, artifacts = job(controller, tmp_path / "job", "record.yml", gone, tmp_path / "shared")
    assert code != 0
    assert "None of the 1 nodes of this slice answered." in (artifacts / "stdout").read_text()
    assert "unreachable" in json.loads((tmp_path / "shared" / "recorded" / "gone.json").read_text())
