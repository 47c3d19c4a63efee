# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The life of a cluster with stand-ins for its programs, and its command line."""

from __future__ import annotations

import io
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

import pytest

from ansible_collections.rdma.k8s.tests.lab import (
    cli,
    cluster,
    cluster_cli,
    control,
    lab,
    plan,
    process,
    programs,
)
from ansible_collections.rdma.k8s.tests.lab.errors import LabError
from ansible_collections.rdma.k8s.tests.lab.image import Cache
from ansible_collections.rdma.k8s.tests.lab.progress import Progress

ROOT = pathlib.Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "contributing" / "cluster.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^\$ python3 tests/lab (.+)$", PAGE, re.MULTILINE)
SIMULATOR = (programs.KUBE / "cmd" / "labkube" / "sim.go").read_text(encoding="utf-8")
SLEEPER = "echo registered 3 nodes; while :; do sleep 1; done"
SAYER = "echo no etcd here >&2; exit 1"


@pytest.fixture
def this(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> cluster.Cluster:
    """A cluster whose programs only sleep, and whose API always answers."""
    made = cluster.Cluster(
        "one", Cache(tmp_path / "cache", Progress(stream=io.StringIO())), Progress(quiet=True)
    )
    monkeypatch.setattr(made.programs, "ensure", lambda: None)
    monkeypatch.setattr(control, "command", lambda _plane, _part: ["/bin/sh", "-c", SLEEPER])
    monkeypatch.setattr(made, "_run", lambda *_words: "")
    monkeypatch.setattr(made, "get", lambda _path: b"ok")
    monkeypatch.setattr(made, "_healthy", lambda _port: True)
    return made


def test_up_and_down(this: cluster.Cluster) -> None:
    state = this.up(control.ClusterSpec(simulated=3))
    try:
        assert this.alive() == list(control.PARTS)
        assert cluster.State.from_json(state.to_json()) == state
        assert this.state() == state
        assert (this.directory / "admin.kubeconfig").stat().st_mode & 0o777 == 0o600
        assert this.directory.stat().st_mode & 0o777 == 0o700
        with pytest.raises(LabError, match="is up already"):
            this.up(control.ClusterSpec())
    finally:
        ended = this.down()
    assert ended == list(reversed(control.PARTS))
    assert {path.suffix for path in this.directory.iterdir()} <= {".log", ""}
    with pytest.raises(LabError, match="is not up"):
        this.state()
    assert this.down() == []


def test_a_part_that_ends_at_once_says_why_and_leaves_nothing(
    this: cluster.Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    def command(_plane: control.Plane, part: str) -> list[str]:
        return ["/bin/sh", "-c", SAYER if part == "kube-apiserver" else SLEEPER]

    monkeypatch.setattr(control, "command", command)
    monkeypatch.setattr(this, "get", lambda _path: None)
    with pytest.raises(LabError, match="kube-apiserver ended at once: no etcd here"):
        this.up(control.ClusterSpec())
    assert this.alive() == []
    assert not (this.directory / "cluster.json").exists()


def test_down_ends_nobody_else(this: cluster.Cluster) -> None:
    """A pid file whose number belongs to another process by now."""
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]) as stranger:
        try:
            this.directory.mkdir(parents=True)
            (this.directory / "etcd.pid").write_text(f"{stranger.pid}\n")
            assert this.down() == []
            assert stranger.poll() is None
        finally:
            stranger.kill()


def test_ports_of_other_clusters_are_left_alone(this: cluster.Cluster) -> None:
    other = this.directory.parent / "other"
    other.mkdir(parents=True)
    taken = cluster.State("other", control.FIRST_PORT, control.ClusterSpec(), "v1.37.2", 0.0)
    (other / "cluster.json").write_text(taken.to_json())
    free = cluster.choose_base_port(this._reserved_ports(), lambda _port: True)
    assert free == control.FIRST_PORT + control.PORT_STEP
    with pytest.raises(LabError, match="No block of free ports"):
        cluster.choose_base_port(set(), lambda _port: False)


def test_a_state_that_cannot_be_read(this: cluster.Cluster) -> None:
    this.directory.mkdir(parents=True)
    for text in ("{", "{}", json.dumps({"version": 2})):
        (this.directory / "cluster.json").write_text(text)
        with pytest.raises(LabError):
            this.state()


def test_nodes_that_were_not_made_for_it_do_not_join(
    this: cluster.Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    nodes = lab.Lab("one", this.cache, this.progress)
    state = lab.State("one", plan.make_spec(), 22220, "tcg", "image", False, 0.0)
    monkeypatch.setattr(nodes, "state", lambda: state)
    monkeypatch.setattr(this, "plane", lambda: None)
    with pytest.raises(LabError, match="was not started with --kube"):
        this.join(nodes)


@pytest.mark.parametrize(
    ("conditions", "ready"),
    [
        ([{"type": "Ready", "status": "True"}], True),
        ([{"type": "Ready", "status": "Unknown"}], False),
        ([{"type": "DiskPressure", "status": "True"}], False),
        ([], False),
    ],
)
def test_when_a_node_is_ready(
    conditions: list[dict], ready: bool, this: cluster.Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = json.dumps({"status": {"conditions": conditions}}).encode()
    monkeypatch.setattr(this, "get", lambda _path: answer)
    assert this.node_ready("node1") is ready
    monkeypatch.setattr(this, "get", lambda _path: None)
    assert not this.node_ready("node1")


class FakeNodes:
    """Answers for one node object, and remembers what it is annotated with."""

    def __init__(self, annotations: dict[str, str], simulated: str = "true"):
        self.metadata = {"annotations": annotations, "labels": {"rdma-lab/simulated": simulated}}
        self.said: list[str] = []

    def object(self, *_words: str) -> dict:
        """The node."""
        return {"metadata": self.metadata}

    def kubectl(self, *words: str) -> None:
        """What kubectl is told."""
        self.said.append(words[-1])


@pytest.mark.parametrize(
    ("before", "words", "after"),
    [
        ("", ["prepare"], "rdma-lab/faults=prepare"),
        ("terminate", ["prepare"], "rdma-lab/faults=prepare,terminate"),
        ("prepare,terminate", ["prepare", "--undo"], "rdma-lab/faults=terminate"),
        ("prepare", ["prepare", "--undo"], "rdma-lab/faults="),
    ],
)
def test_faults_of_simulated_nodes(before: str, words: list[str], after: str) -> None:
    nodes = FakeNodes({"rdma-lab/faults": before})
    cluster_cli._fault(nodes, cli.parser().parse_args(["cluster", "fault", "sim-0001", *words]))
    assert nodes.said == [after]


def test_faults_that_make_no_sense() -> None:
    play = cli.parser().parse_args(["cluster", "fault", "sim-0001", "prepare"])
    undo = cli.parser().parse_args(["cluster", "fault", "sim-0001", "prepare", "--undo"])
    with pytest.raises(LabError, match="in force already"):
        cluster_cli._fault(FakeNodes({"rdma-lab/faults": "prepare"}), play)
    with pytest.raises(LabError, match="not in force"):
        cluster_cli._fault(FakeNodes({}), undo)
    with pytest.raises(LabError, match="no simulated node"):
        cluster_cli._fault(FakeNodes({}, "false"), play)


def test_the_simulator_knows_every_fault() -> None:
    known = re.findall(r'^\tfault\w+ += "([a-z-]+)"', SIMULATOR, re.MULTILINE)
    assert sorted(known) == sorted(cluster_cli.SIM_FAULTS)
    assert f'faultsAnnotation = "{cluster_cli.FAULTS_ANNOTATION}"' in SIMULATOR


def test_wishes_that_cannot_be_met(this: cluster.Cluster) -> None:
    for words in (["--simulated", "1001"], ["--simulated-rails", "17"], ["--nodes", "17"]):
        options = cli.parser().parse_args(["cluster", "up", *words])
        with pytest.raises(LabError):
            cluster_cli._up(this, options)
    assert this.alive() == []


def test_the_page_has_every_fault() -> None:
    rows = re.findall(r"^\| `([a-z-]+)` \| .+ \|$", PAGE, re.MULTILINE)
    assert set(cluster_cli.SIM_FAULTS) <= set(rows)


@pytest.mark.parametrize("line", COMMANDS)
def test_commands_of_the_page_are_understood(line: str) -> None:
    assert cli.parser().parse_args(shlex.split(line)).command in {"cluster", "ssh", "fault", "up"}


def test_there_are_commands() -> None:
    assert len(COMMANDS) >= 5


def test_names_of_processes_are_whole_words() -> None:
    """A process is recognised by one argument; the name of one cluster must not be found in that of another."""
    names = {control.process_name(name, part) for name in ("a", "a-b") for part in control.PARTS}
    assert len(names) == 2 * len(control.PARTS)
    assert not process.is_ours(os.getpid(), control.process_name("a", "etcd"))
