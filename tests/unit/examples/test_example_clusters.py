# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The examples of clusters are what their generators write, and are wrong exactly where their README says so."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.rdma.k8s.examples import make_lingjun, make_spiderpool
from ansible_collections.rdma.k8s.plugins.module_utils import records
from ansible_collections.rdma.k8s.plugins.module_utils.core import json_text
from ansible_collections.rdma.k8s.plugins.module_utils.core.checks.judge import judge
from ansible_collections.rdma.k8s.plugins.module_utils.core.checks.policy import Policy
from ansible_collections.rdma.k8s.plugins.module_utils.core.redact import redacted
from ansible_collections.rdma.k8s.plugins.module_utils.core.report.document import ResultDocument
from ansible_collections.rdma.k8s.tests.support import fleet, lingjun, rails
from ansible_collections.rdma.k8s.tests.support.cases import not_good

EXAMPLES = Path(make_lingjun.__file__).resolve().parent


@dataclass(frozen=True)
class Example:
    """An example, its generator, and the name of its cluster."""

    name: str
    generator: Any
    cluster: str

    @property
    def directory(self) -> Path:
        return EXAMPLES / self.name

    @property
    def files(self) -> list[Path]:
        return sorted(self.directory.glob("*.json"))

    def judged(self) -> ResultDocument:
        policy = Policy.from_dict(yaml.safe_load((self.directory / "policy.yml").read_text(encoding="utf-8")))
        recording = records.recording(str(self.directory))
        return judge(recording.nodes, policy, fleet.JUDGED_AT, cluster=recording.cluster)

    def promised(self) -> dict[str, set[str]]:
        """Row and checks of the table in README.md."""
        text = (self.directory / "README.md").read_text(encoding="utf-8")
        rows = re.findall(r"^\| ([a-z][a-z0-9-]+)[^|]* \| [^|]* \| ([^|]*) ?\|$", text, re.MULTILINE)
        return {name: set(re.findall(r"RDMA-[A-Z]+-\d{3}", checks)) for name, checks in rows if name != "row"}


LINGJUN = Example("lingjun", make_lingjun, lingjun.CLUSTER)
SPIDERPOOL = Example("spiderpool", make_spiderpool, rails.CLUSTER)
ALL = (LINGJUN, SPIDERPOOL)
each = pytest.mark.parametrize("example", ALL, ids=lambda example: example.name)


@each
def test_the_generator_writes_the_same_bytes(example: Example, tmp_path: Path) -> None:
    (tmp_path / "left-over.json").write_text("{}")
    names = example.generator.write(tmp_path)
    assert names == [path.name for path in example.files]
    assert sorted(path.name for path in tmp_path.iterdir()) == names
    for path in example.files:
        assert (tmp_path / path.name).read_bytes() == path.read_bytes(), path.name


@each
def test_the_readme_says_what_is_wrong(example: Example) -> None:
    document, table = example.judged(), example.promised()
    assert set(table) == {row.name for row in document.nodes} | {document.cluster}
    assert document.cluster == example.cluster
    for name, checks in table.items():
        if name == example.generator.LOST:
            statuses = {finding.status for finding in document.findings if finding.node == name}
            assert statuses == {"unknown"}
        else:
            assert set(not_good(document, name)) == checks, name
    assert document.exit_code == 4


@pytest.mark.parametrize(
    ("example", "areas"),
    [(LINGJUN, {"ACK", "NODE", "TOOL"}), (SPIDERPOOL, {"NODE", "ROLL", "SRIOV", "TOOL"})],
    ids=lambda value: getattr(value, "name", ""),
)
def test_nothing_of_another_target_is_in_it(example: Example, areas: set[str]) -> None:
    document = example.judged()
    assert {finding.check.split("-")[1] for finding in document.findings} == areas
    assert document.child_range == ""
    assert "child_range" not in document.settings


def test_a_setting_of_the_target_is_shown() -> None:
    assert LINGJUN.judged().settings["non_host_network"] == "True"
    assert SPIDERPOOL.judged().settings["netns_mode"] == "exclusive"


def test_there_is_no_map_of_derived_addresses() -> None:
    assert {row.nics for row in LINGJUN.judged().nodes} == {()}
    assert {nic.child for row in SPIDERPOOL.judged().nodes for nic in row.nics} == {""}


@pytest.mark.parametrize(
    "path",
    [path for example in ALL for path in example.files],
    ids=lambda path: "%s-%s" % (path.parent.name, path.stem),
)
def test_nothing_in_it_needs_to_be_shortened(path: Path) -> None:
    recorded: Any = json_text.loads(path.read_text(encoding="utf-8"))
    assert redacted(recorded) == recorded
