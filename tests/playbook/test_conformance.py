# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The playbook conformance without any node that answers: what it refuses, and how it tells of hosts that are lost."""

from __future__ import annotations

import json
import shutil

import pytest

from ansible_collections.rdma.k8s.tests.support.playbook import REPORTS, Run, together

PLAYBOOK = "rdma.k8s.conformance"
GONE = {"ansible_host": "127.0.0.1", "ansible_port": 1}


@pytest.fixture(name="proof")
def proof_fixture(run: Run) -> Run:
    run.playbook = PLAYBOOK
    return run


def test_mistakes_are_one_sentence_and_no_node_is_asked(proof: Run) -> None:
    proof.inventory({name: proof.interpreter(name) for name in ("n0", "n1")})
    wrong = {
        "pairs=star": "The variable pairs is 'star', expected ring or all.",
        "nodes=nowhere": "There is no node to prove: the inventory has no host that matches 'nowhere'.",
        "policy=missing.yml": "The policy missing.yml cannot be read: No such file or directory.",
        '{"rdma_policy": {"only": ["RDMA-X-*"]}}': "No check has an id like 'RDMA-X-*'.",
    }
    results = together(*[lambda word=word: proof("-e", word) for word in wrong])
    for sentence, result in zip(wrong.values(), results):
        assert result.failed().startswith(sentence)
        assert len(result.sentences) == 1
    assert proof.starts("n0") + proof.starts("n1") == 0
    assert not proof.reports.exists()


@pytest.mark.skipif(shutil.which("ssh") is None, reason="ssh is not installed")
def test_hosts_that_are_lost_are_rows_of_unknown(proof: Run) -> None:
    proof.inventory({"n0": GONE, "n1": GONE})
    result = proof("-e", "strict=true")
    assert result.failed().startswith("The fabric is not proven: 1 failed and 18 unknown results on 2 nodes.")
    assert "0 pairs, mode ring, seed 0: at most 0 s on each node, " in result.text
    document = proof.document()
    assert [row.name for row in document.nodes] == ["n0", "n1"]
    unknown = [entry for entry in document.findings if entry.status == "unknown"]
    assert {entry.check for entry in unknown} == {"RDMA-FAB-%03d" % number for number in range(1, 10)}
    assert all("onnect" in entry.message for entry in unknown)
    assert sorted(path.name for path in proof.reports.iterdir()) == sorted([*REPORTS, "fabric.json"])
    assert json.loads((proof.reports / "fabric.json").read_text())["pairs"] == 0
