# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Recorded nodes: what is written can be read and judged the same, and a wrong file is named."""

from __future__ import annotations

import json
import os
import stat
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from ansible_collections.rdma.k8s.plugins.module_utils import records
from ansible_collections.rdma.k8s.plugins.module_utils.core.checks.judge import NodeInput, judge
from ansible_collections.rdma.k8s.plugins.module_utils.core.checks.policy import Policy
from ansible_collections.rdma.k8s.plugins.module_utils.core.cluster_snapshot import ClusterSnapshot
from ansible_collections.rdma.k8s.plugins.module_utils.core.errors import RdmaError
from ansible_collections.rdma.k8s.plugins.module_utils.core.redact import REPLACED
from ansible_collections.rdma.k8s.plugins.module_utils.core.snapshot import SCHEMA_VERSION
from ansible_collections.rdma.k8s.tests.support import cases, cluster_fleet, fleet
from ansible_collections.rdma.k8s.tests.support.outcome import error_of

OCID = "ocid1.clusternetwork.oc1.phx.anyhqljtniwq6syc3nex55sep5w34qbwmw6TAIL"


def sick_fleet() -> list[NodeInput]:
    """Every shape, some faults, nodes with words of the inventory, and two that told nothing."""
    nodes = [fleet.node(shape, number) for number, shape in enumerate(sorted(fleet.MODELS))]
    nodes[1] = fleet.edit_links(nodes[1], mtu=1500)
    nodes[2] = fleet.without(nodes[2], "routes", "rtnetlink", "not permitted")
    inputs = [NodeInput(node.name, node) for node in nodes]
    inputs[3] = replace(inputs[3], child_range="10.192.0.0/12", network="blue")
    return [*inputs, NodeInput("gone", reason="No route to host."), NodeInput("silent")]


def findings(inputs: list[NodeInput]) -> Any:
    document = judge(inputs, Policy.from_dict(cases.SURROUNDINGS), fleet.JUDGED_AT)
    return sorted((entry.to_dict() for entry in map(Plain, document.findings)), key=json.dumps)


class Plain:
    """A finding as data that can be sorted."""

    def __init__(self, finding: Any) -> None:
        self.finding = finding

    def to_dict(self) -> Any:
        return {name: repr(value) for name, value in vars(self.finding).items()}


def test_a_recorded_fleet_is_judged_as_it_was(tmp_path: Path) -> None:
    given_nodes = sick_fleet()
    paths = records.save(str(tmp_path / "new" / "dir"), given_nodes)
    assert [os.path.basename(path) for path in paths] == [node.name + ".json" for node in given_nodes]
    assert {stat.S_IMODE(os.stat(path).st_mode) for path in paths} == {0o600}
    loaded = records.load(str(tmp_path / "new" / "dir"))
    assert [node.name for node in loaded] == sorted(node.name for node in given_nodes)
    blue = next(node for node in loaded if node.network)
    assert (blue.child_range, blue.network) == ("10.192.0.0/12", "blue")
    assert next(node for node in loaded if node.name == "silent").reason == "The node could not be reached."
    told = [
        replace(node, reason=node.reason or "The node could not be reached.")
        for node in given_nodes
        if node.snapshot is None
    ]
    assert findings(loaded) == findings([node for node in given_nodes if node.snapshot] + told)


def test_recording_what_was_recorded_changes_no_byte(tmp_path: Path) -> None:
    records.save(str(tmp_path / "a"), sick_fleet())
    records.save(str(tmp_path / "b"), records.load(str(tmp_path / "a")))
    (tmp_path / "a" / "silent.json").unlink()  # it has the reason now that it was read with
    for path in (tmp_path / "a").iterdir():
        assert (tmp_path / "b" / path.name).read_bytes() == path.read_bytes()


def test_one_file_is_one_node(tmp_path: Path) -> None:
    records.save(str(tmp_path), sick_fleet()[:2])
    first = sick_fleet()[0]
    assert records.load(str(tmp_path / (first.name + ".json"))) == [first]


def test_other_files_of_the_directory_do_not_matter(tmp_path: Path) -> None:
    records.save(str(tmp_path), sick_fleet()[:1])
    (tmp_path / "README.md").write_text("x")
    (tmp_path / ".n.json.abcdefgh.tmp").write_text("half")
    assert len(records.load(str(tmp_path))) == 1


def test_identifiers_and_secrets_do_not_leave(tmp_path: Path) -> None:
    node = fleet.edit_oca(fleet.node(name="n"), rdma_network='{"token": "hunter2", "id": "%s"}' % OCID)
    node = fleet.edit_host_document(node, "rackId", OCID)
    node = fleet.without(node, "routes", "rtnetlink", "denied for %s." % OCID)
    gone = NodeInput("gone", reason="no agent on %s." % OCID)
    records.save(str(tmp_path), [NodeInput("n", node, network=OCID), gone])
    text = "".join(path.read_text() for path in tmp_path.iterdir())
    assert OCID[-20:] not in text
    assert "hunter2" not in text
    assert text.count("ocid1.clusternetwork..") == 5
    assert REPLACED in text
    assert records.load_file(str(tmp_path / "n.json")).network.startswith("ocid1.clusternetwork..")


@pytest.mark.parametrize("name", ["", ".hidden", "..", "a/b", "/etc/x", "a\0b"])
def test_a_name_that_is_no_file_name(tmp_path: Path, name: str) -> None:
    error = error_of(records.save, str(tmp_path / "out"), [NodeInput("good"), NodeInput(name)])
    assert error.code == "record_name"
    assert repr(name) in error.message
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("content", "code", "sentence"),
    [
        (b"", "record_malformed", "n.json is not JSON: "),
        (b"\xff", "records_unreadable", "cannot be read: "),
        (b"{} {}", "record_malformed", "n.json is not JSON: Extra data"),
        (b"[" * 100000, "record_malformed", "n.json is not JSON: nested too deeply."),
        (b'{"name": NaN}', "record_malformed", "n.json is not JSON: NaN is not JSON."),
        (b"[]", "document_malformed", "n.json: snapshot must be an object"),
        (b"{}", "document_malformed", "n.json: snapshot.name"),
        (b'{"name": ""}', "record_malformed", "n.json: 'name' must not be empty."),
        (
            b'{"name": "n", "links": 7}',
            "document_malformed",
            "n.json: snapshot.links must be a list, found 7.",
        ),
        (b'{"name": "n", "inventory": 7}', "record_malformed", "n.json: 'inventory' must be a map of texts."),
        (
            b'{"name": "n", "inventory": {"network": 7}}',
            "record_malformed",
            "'inventory' must be a map of texts.",
        ),
        (b'{"name": 7, "unreachable": "x"}', "record_malformed", "'name' and 'unreachable' must be texts."),
        (
            b'{"name": "n", "unreachable": null}',
            "record_malformed",
            "'name' and 'unreachable' must be texts.",
        ),
        (
            b'{"name": "n", "schema_version": %d}' % (SCHEMA_VERSION + 1),
            "snapshot_newer_schema",
            "n.json: The snapshot of n has schema version %d; this release reads up to version %d."
            % (SCHEMA_VERSION + 1, SCHEMA_VERSION),
        ),
    ],
)
def test_a_wrong_file_is_named(tmp_path: Path, content: bytes, code: str, sentence: str) -> None:
    records.save(str(tmp_path), [NodeInput("a", fleet.node(name="a"))])
    (tmp_path / "n.json").write_bytes(content)
    error = error_of(records.load, str(tmp_path))
    assert error.code == code
    assert sentence in str(error)
    assert str(tmp_path / "n.json") in str(error)
    assert error.details["path"] == str(tmp_path / "n.json")


def test_no_file(tmp_path: Path) -> None:
    assert error_of(records.load, str(tmp_path / "none")).code == "records_unreadable"
    assert "No such file or directory" in error_of(records.load, str(tmp_path / "none")).message
    assert error_of(records.load, str(tmp_path)).code == "records_empty"
    assert str(tmp_path) in error_of(records.load, str(tmp_path)).message


def test_a_directory_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert error_of(records.save, str(tmp_path / "file"), sick_fleet()[:1]).code == "report_not_written"


def documents() -> st.SearchStrategy[Any]:
    names = st.sampled_from(
        [
            "name",
            "unreachable",
            "inventory",
            "network",
            "schema_version",
            "links",
            "imds",
            "oca",
            "errors",
            "x",
        ]
    )
    leaves = st.one_of(st.none(), st.booleans(), st.integers(-2, 3), st.floats(), st.text(max_size=4))
    return st.recursive(
        leaves,
        lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(names, inner, max_size=5)),
        max_leaves=12,
    )


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(documents())
def test_any_document_is_a_node_or_a_sentence(tmp_path: Path, document: Any) -> None:
    path = tmp_path / "n.json"
    path.write_text(json.dumps(document))
    try:
        node = records.load_file(str(path))
    except RdmaError as error:
        assert str(path) in str(error)  # noqa: PT017
        return
    assert node.name
    assert (node.snapshot is None) == bool(node.reason)
    again = records.node_input(json.loads(json.dumps(records.document(node))), "again")
    assert again.name == node.name


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=40))
def test_any_bytes_are_a_node_or_a_sentence(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "n.json"
    path.write_bytes(content)
    assert error_of(records.load_file, str(path)).details["path"] == str(path)


def recorded_cluster() -> tuple[list[NodeInput], ClusterSnapshot]:
    nodes = [fleet.node(number=number) for number in range(2)]
    return [NodeInput(node.name, node) for node in nodes], cluster_fleet.healthy(nodes)


def test_a_recorded_cluster_is_judged_with_its_nodes(tmp_path: Path) -> None:
    nodes, cluster = recorded_cluster()
    paths = records.save(str(tmp_path), nodes, cluster)
    assert sorted(map(os.path.basename, paths)) == ["cluster.json", "node-000.json", "node-001.json"]
    assert stat.S_IMODE(os.stat(tmp_path / "cluster.json").st_mode) == 0o600
    assert records.recording(str(tmp_path)) == records.Recording(nodes, cluster)
    assert records.load(str(tmp_path)) == nodes
    assert records.load_cluster(str(tmp_path / "cluster.json")) == cluster
    assert records.recording(str(tmp_path / "cluster.json")) == records.Recording([], cluster)


def test_secrets_of_a_cluster_do_not_leave(tmp_path: Path) -> None:
    nodes, cluster = recorded_cluster()
    cluster = cluster_fleet.edit_node(cluster, provider_id=OCID)
    records.save(str(tmp_path), nodes, cluster)
    assert OCID[-20:] not in (tmp_path / "cluster.json").read_text()


def test_a_node_may_be_called_cluster(tmp_path: Path) -> None:
    """What is in the file decides. Both in one directory cannot be."""
    _nodes, cluster = recorded_cluster()
    node = fleet.node(name="cluster")
    records.save(str(tmp_path), [NodeInput("cluster", node)])
    assert records.recording(str(tmp_path)) == records.Recording([NodeInput("cluster", node)], None)
    error = error_of(records.save, str(tmp_path), [NodeInput("cluster", node)], cluster)
    assert error.code == "record_name"


def test_a_cluster_in_another_file_is_refused(tmp_path: Path) -> None:
    nodes, cluster = recorded_cluster()
    records.save(str(tmp_path), nodes, cluster)
    (tmp_path / "cluster.json").rename(tmp_path / "training.json")
    error = error_of(records.recording, str(tmp_path))
    assert (error.code, error.details["path"]) == ("record_malformed", str(tmp_path / "training.json"))
    assert "Name it cluster.json" in error.hint
    assert records.recording(str(tmp_path / "training.json")).cluster == cluster


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("{}", "snapshot_not_of_cluster"),
        ('{"kind": "ClusterSnapshot", "schema_version": 99}', "snapshot_newer_schema"),
        ('{"kind": "ClusterSnapshot", "nodes": 1}', "document_malformed"),
        ("{", "record_malformed"),
        (None, "records_unreadable"),
    ],
)
def test_a_wrong_cluster_is_named(tmp_path: Path, text: Any, code: str) -> None:
    path = tmp_path / "cluster.json"
    if text is not None:
        path.write_text(text)
    error = error_of(records.load_cluster, str(path))
    assert (error.code, error.details["path"]) == (code, str(path))
    assert str(path) in error.message
