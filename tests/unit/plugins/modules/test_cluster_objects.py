# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Objects from variables and files, as far as no API server is needed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.k8s.plugins.modules import cluster_objects
from ansible_collections.rdma.k8s.tests.support import change_run

CONFIG = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "v"}}


def test_variables_then_files(tmp_path: Path) -> None:
    """Objects of the files come behind those of the variable; a list stands for its entries."""
    source = tmp_path / "more.yaml"
    source.write_text(
        "apiVersion: v1\nkind: List\nitems:\n"
        "  - {apiVersion: v1, kind: ConfigMap, metadata: {name: b}}\n"
        "  - {apiVersion: v1, kind: ConfigMap, metadata: {name: c}}\n"
        "---\n{apiVersion: v1, kind: Secret, metadata: {name: d}}\n"
    )
    result = change_run.good(cluster_objects, documents=[CONFIG], src=[str(source)], state="rendered")
    assert [entry["metadata"]["name"] for entry in result["objects"]] == ["a", "b", "c", "d"]
    assert result["manifest"].count("---\n") == 4
    assert not result["changed"]


def test_a_file_is_written_once(tmp_path: Path) -> None:
    """The second run finds the manifest as it is."""
    options = {"documents": [CONFIG], "state": "rendered", "path": str(tmp_path / "out.yaml")}
    assert change_run.good(cluster_objects, **options, _ansible_check_mode=True)["changed"]
    assert not (tmp_path / "out.yaml").exists()
    assert change_run.good(cluster_objects, **options)["actions"] == ["write %s" % (tmp_path / "out.yaml")]
    assert not change_run.good(cluster_objects, **options)["changed"]


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ({"kind": "ConfigMap", "metadata": {"name": "a"}}, "has apiVersion None"),
        ({"apiVersion": "v1", "metadata": {"name": "a"}}, "has kind None"),
        ({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": ""}}, "has metadata.name ''"),
        ({"apiVersion": "v1", "kind": "ConfigMap", "metadata": []}, "has metadata.name None"),
    ],
)
def test_what_names_no_object(document: dict[str, Any], words: str, tmp_path: Path) -> None:
    """The message tells which one, wherever it comes from."""
    failed = change_run.failure(cluster_objects, documents=[CONFIG, document], state="rendered")
    assert failed["code"] == "manifest_malformed"
    assert failed["msg"].startswith("Document 2 of documents " + words)
    source = tmp_path / "bad.yaml"
    source.write_text("# apiVersion\n%s\n" % json.dumps(document))
    failed = change_run.failure(cluster_objects, src=[str(source)], state="rendered")
    assert failed["msg"].startswith("%s line 2 %s" % (source, words))


def test_a_file_that_is_none(tmp_path: Path) -> None:
    """A manifest that cannot be read changes nothing."""
    failed = change_run.failure(cluster_objects, src=[str(tmp_path / "none.yaml")], state="rendered")
    assert failed["code"] == "manifest_unreadable"


def test_nothing_to_do() -> None:
    """Neither a variable nor a file."""
    failed = change_run.failure(cluster_objects, state="rendered")
    assert "one of the following is required: documents, src" in failed["msg"]
