# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The examples of own checks on the page about them do what the page says, on the example fleet."""

from __future__ import annotations

import json
import re

import yaml

from ansible_collections.rdma.k8s.plugins.module_utils import records
from ansible_collections.rdma.k8s.plugins.module_utils.core.checks.context import Node
from ansible_collections.rdma.k8s.plugins.module_utils.core.checks.judge import judge
from ansible_collections.rdma.k8s.plugins.module_utils.core.checks.policy import Policy

from .pages import ROOT, page

PAGE = "howto/own-checks-and-waivers.md"
NODES = records.load(str(ROOT / "examples" / "fleet"))


def blocks(language: str) -> list[str]:
    return re.findall(r"^```%s\n(.*?)^```$" % language, page(PAGE).text, re.MULTILINE | re.DOTALL)


def policy() -> Policy:
    """All checks of the page in one policy."""
    documents = [yaml.safe_load(block) for block in blocks("yaml")]
    checks = [check for document in documents for check in document.get("checks", [])]
    return Policy.from_dict({"checks": checks, "only": ["RDMA-TOOL-001"]})


def test_every_example_gives_an_answer_for_every_node_that_can_be_asked() -> None:
    found = judge(NODES, policy(), "2026-03-02T09:05:00Z").findings
    silent = {entry.name for entry in NODES if entry.snapshot is None}
    answers = {(entry.check, entry.node): entry.status for entry in found if entry.check.startswith("ACME-")}
    assert {status for (_check, node), status in answers.items() if node not in silent} == {"pass", "fail"}
    assert {status for (_check, node), status in answers.items() if node in silent} == {"unknown"}
    failed = {(check, node) for (check, node), status in answers.items() if status == "fail"}
    told = re.findall(r"(ACME-\d+) fails\s+on (gpu-\d+)", page(PAGE).prose)
    assert failed == set(told)


def test_the_entry_of_nics_is_the_one_of_the_node() -> None:
    (block,) = blocks("json")
    (entry,) = [entry for entry in NODES if entry.name == "gpu-01"]
    assert entry.snapshot is not None
    assert json.loads(block) == Node(entry.snapshot, Policy()).view["nics"][0]


def test_derived_values_are_told() -> None:
    (entry,) = [entry for entry in NODES if entry.name == "gpu-01"]
    assert entry.snapshot is not None
    (line,) = re.findall(r"^- `derived`: (.*?)(?=\n\n)", page(PAGE).text, re.MULTILINE | re.DOTALL)
    derived = Node(entry.snapshot, Policy()).view["derived"]
    assert set(re.findall(r"`(\w+)`", line)) == {*derived, "ip", "subnet"}
