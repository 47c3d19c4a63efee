# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The example fleet is what its generator writes, and is wrong exactly where its README says so."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible.plugins.inventory import expand_hostname_range

from ansible_collections.rdma.k8s.examples import make_fleet
from ansible_collections.rdma.k8s.plugins.module_utils import records
from ansible_collections.rdma.k8s.plugins.module_utils.core import json_text
from ansible_collections.rdma.k8s.plugins.module_utils.core.checks.judge import judge
from ansible_collections.rdma.k8s.plugins.module_utils.core.checks.policy import Policy
from ansible_collections.rdma.k8s.plugins.module_utils.core.finding import FLEET
from ansible_collections.rdma.k8s.plugins.module_utils.core.redact import redacted
from ansible_collections.rdma.k8s.plugins.module_utils.core.report.document import ResultDocument
from ansible_collections.rdma.k8s.tests.support import fleet
from ansible_collections.rdma.k8s.tests.support.cases import not_good

EXAMPLES = Path(make_fleet.__file__).resolve().parent
FLEET_DIRECTORY = EXAMPLES / "fleet"


@pytest.fixture(scope="module")
def document() -> ResultDocument:
    policy = Policy.from_dict(yaml.safe_load((EXAMPLES / "policy.yml").read_text(encoding="utf-8")))
    return judge(records.load(str(FLEET_DIRECTORY)), policy, fleet.JUDGED_AT)


def promised() -> dict[str, tuple[str, set[str]]]:
    """Node, shape and checks of the table in README.md."""
    rows = re.findall(
        r"^\| ([a-z][a-z0-9-]+) \| ([^|]*) \| [^|]* \| ([^|]*) ?\|$",
        (EXAMPLES / "README.md").read_text("utf-8"),
        re.M,
    )
    return {
        name: (shape.partition(",")[0], set(re.findall(r"[A-Z]+(?:-[A-Z]+)?-\d{3}", checks)))
        for name, shape, checks in rows
        if name != "node"
    }


def test_the_generator_writes_the_same_bytes(tmp_path: Path) -> None:
    (tmp_path / "left-over.json").write_text("{}")
    names = make_fleet.write(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == names
    assert names == sorted(path.name for path in FLEET_DIRECTORY.iterdir())
    for name in names:
        assert (tmp_path / name).read_bytes() == (FLEET_DIRECTORY / name).read_bytes(), name


def test_the_readme_says_what_is_wrong(document: ResultDocument) -> None:
    table = promised()
    assert set(table) == {row.name for row in document.nodes}
    for row in document.nodes:
        shape, checks = table[row.name]
        if row.reachable:
            assert row.shape == shape
            assert set(not_good(document, row.name)) == checks, row.name
        else:
            assert {finding.status for finding in document.findings if finding.node == row.name} == {
                "unknown"
            }
    assert not_good(document, FLEET) == {"RDMA-TOOL-001": "fail"}


def test_it_holds_what_a_reader_wants_to_see(document: ResultDocument) -> None:
    """H100 with 16 NICs, GB200 on InfiniBand and on IPv6, a NIC with a name of the system, a node that is lost."""
    shapes = [row.shape for row in document.nodes]
    assert len(shapes) >= 12
    assert shapes.count("BM.GPU.H100.8") >= 6
    assert all(
        shapes.count(shape) >= 2 for shape in ("BM.GPU.GB200.4", "BM.GPU.GB200-v3.4", "BM.Optimized3.36")
    )
    assert {row.fabric for row in document.nodes if row.reachable} == {"ipv4", "ipv6", "infiniband"}
    h100 = next(row for row in document.nodes if row.name == "gpu-01")
    assert [nic.name for nic in h100.nics] == ["rdma%d" % index for index in range(16)]
    assert [nic.name for row in document.nodes if row.name == "hpc-01" for nic in row.nics] == ["ens800f0np0"]
    assert [row.name for row in document.nodes if not row.reachable] == ["gpu-07"]
    assert document.exit_code == 4


def test_the_waiver_counts(document: ResultDocument) -> None:
    waived = [(finding.node, finding.check) for finding in document.findings if finding.waiver is not None]
    assert ("gpu-11", "RDMA-NODE-034") in waived
    assert {node for node, _check in waived} == {"gpu-11"}


@pytest.mark.parametrize("path", sorted(FLEET_DIRECTORY.glob("*.json")), ids=lambda path: path.stem)
def test_nothing_in_it_needs_to_be_shortened(path: Path) -> None:
    recorded: Any = json_text.loads(path.read_text(encoding="utf-8"))
    assert redacted(recorded) == recorded
    assert recorded["name"] == path.stem


def test_the_inventory_names_the_same_nodes(document: ResultDocument) -> None:
    inventory = yaml.safe_load((EXAMPLES / "inventory" / "hosts.yml").read_text(encoding="utf-8"))
    patterns = [pattern for group in inventory["all"]["children"].values() for pattern in group["hosts"]]
    hosts = [host for pattern in patterns for host in expand_hostname_range(pattern)]
    assert sorted(hosts) == sorted(row.name for row in document.nodes)
