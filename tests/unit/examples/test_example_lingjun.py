# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The example of a Lingjun cluster is what its generator writes, and is wrong exactly where its README says so."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.rdma.k8s.examples import make_lingjun
from ansible_collections.rdma.k8s.plugins.module_utils import records
from ansible_collections.rdma.k8s.plugins.module_utils.core import json_text
from ansible_collections.rdma.k8s.plugins.module_utils.core.checks.judge import judge
from ansible_collections.rdma.k8s.plugins.module_utils.core.checks.policy import Policy
from ansible_collections.rdma.k8s.plugins.module_utils.core.redact import redacted
from ansible_collections.rdma.k8s.plugins.module_utils.core.report.document import ResultDocument
from ansible_collections.rdma.k8s.tests.support import fleet, lingjun
from ansible_collections.rdma.k8s.tests.support.cases import not_good

DIRECTORY = Path(make_lingjun.__file__).resolve().parent / "lingjun"
FILES = sorted(DIRECTORY.glob("*.json"))


@pytest.fixture(scope="module")
def document() -> ResultDocument:
    policy = Policy.from_dict(yaml.safe_load((DIRECTORY / "policy.yml").read_text(encoding="utf-8")))
    recording = records.recording(str(DIRECTORY))
    return judge(recording.nodes, policy, fleet.JUDGED_AT, cluster=recording.cluster)


def promised() -> dict[str, set[str]]:
    """Row and checks of the table in README.md."""
    text = (DIRECTORY / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([a-z][a-z0-9-]+)[^|]* \| [^|]* \| ([^|]*) ?\|$", text, re.MULTILINE)
    return {name: set(re.findall(r"RDMA-[A-Z]+-\d{3}", checks)) for name, checks in rows if name != "row"}


def test_the_generator_writes_the_same_bytes(tmp_path: Path) -> None:
    names = make_lingjun.write(tmp_path)
    assert names == [path.name for path in FILES]
    for path in FILES:
        assert (tmp_path / path.name).read_bytes() == path.read_bytes(), path.name


def test_the_readme_says_what_is_wrong(document: ResultDocument) -> None:
    table = promised()
    assert set(table) == {row.name for row in document.nodes} | {document.cluster}
    assert document.cluster == lingjun.CLUSTER
    for name, checks in table.items():
        if name == make_lingjun.LOST:
            statuses = {finding.status for finding in document.findings if finding.node == name}
            assert statuses == {"unknown"}
        else:
            assert set(not_good(document, name)) == checks, name
    assert document.exit_code == 4


def test_nothing_of_another_target_is_in_it(document: ResultDocument) -> None:
    assert {finding.check.split("-")[1] for finding in document.findings} == {"ACK", "NODE", "TOOL"}
    assert document.child_range == ""
    assert "child_range" not in document.settings
    assert document.settings["non_host_network"] == "True"


def test_there_is_no_map_of_derived_addresses(document: ResultDocument) -> None:
    assert {row.nics for row in document.nodes} == {()}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_nothing_in_it_needs_to_be_shortened(path: Path) -> None:
    recorded: Any = json_text.loads(path.read_text(encoding="utf-8"))
    assert redacted(recorded) == recorded
