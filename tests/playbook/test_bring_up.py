# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The playbook bring_up without a cluster: what it refuses before a node or a cluster is asked."""

from __future__ import annotations

import pytest

from ansible_collections.rdma.k8s.tests.support.playbook import Run, together

PLAYBOOK = "rdma.k8s.bring_up"


@pytest.fixture(name="bring_up")
def bring_up_fixture(run: Run) -> Run:
    run.playbook = PLAYBOOK
    run.inventory({name: run.interpreter(name) for name in ("n0", "n1")})
    return run


def test_mistakes_are_one_sentence_and_no_node_is_asked(bring_up: Run) -> None:
    wrong = {
        "target=oke": "The variable target is 'oke', expected oke_dranet, spiderpool_sriov or ack_lingjun.",
        "nodes=nowhere": "There is no node to bring up: the inventory has no host that matches 'nowhere'.",
        "policy=missing.yml": "The policy missing.yml cannot be read: No such file or directory.",
        "kubeconfig=missing.yml": "missing.yml",
    }
    results = together(*[lambda word=word: bring_up("-e", word) for word in wrong])
    for sentence, result in zip(wrong.values(), results):
        assert sentence in result.failed()
        assert len(result.sentences) == 1, result.text
    assert bring_up.starts("n0") + bring_up.starts("n1") == 0
    assert not bring_up.reports.exists()
