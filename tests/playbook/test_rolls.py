# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The playbooks of rolls without a cluster: what they refuse before a node or a cluster is asked."""

from __future__ import annotations

import pytest

from ansible_collections.rdma.k8s.tests.support.playbook import Run, together

NEW = ("-e", "child_range=10.192.0.0/12")


@pytest.fixture(name="change")
def change_fixture(run: Run) -> Run:
    run.playbook = "rdma.k8s.change_child_range"
    run.inventory({name: run.interpreter(name) for name in ("n0", "n1")})
    return run


def test_mistakes_are_one_sentence_and_no_node_is_asked(change: Run) -> None:
    """A limit would leave nodes out of what is one option for all of them."""
    wrong = {
        "The variable action is 'start', expected plan, apply, status": ("-e", "action=start", *NEW),
        "There is nothing to change to: give it with -e child_range=VALUE.": ("-e", "action=plan"),
        "There is no node to judge: the inventory has no host that matches 'x'": (*NEW, "-e", "nodes=x"),
        "--limit chooses hosts of the inventory": (*NEW, "--limit", "n0"),
        "policy missing.yml cannot be read": (*NEW, "-e", "policy=missing.yml"),
    }
    results = together(*[lambda words=words: change(*words) for words in wrong.values()])
    for sentence, result in zip(wrong, results):
        assert sentence in result.failed()
        assert len(result.sentences) == 1, result.text
    assert change.starts("n0") + change.starts("n1") == 0
    assert not change.reports.exists()


def test_what_needs_no_range_asks_the_cluster_alone(change: Run) -> None:
    """And no host of the inventory."""
    actions = ("status", "resume", "abort", "rollback")
    more = ("-e", "kubeconfig=missing.yml", "-e", "confirm=true")
    results = together(*[lambda word=word: change("-e", "action=" + word, *more) for word in actions])
    for result in results:
        assert "missing.yml" in result.failed()
    assert change.starts("n0") + change.starts("n1") == 0


def test_a_mode_needs_a_word_and_a_consent(change: Run) -> None:
    """Booting is disruptive (decision 15); a look at the plan is not."""
    change.playbook = "rdma.k8s.switch_netns_mode"
    wrong = {
        "The variable mode is 'both', expected shared or exclusive.": ("-e", "mode=both"),
        "Allow it with -e reboot=true": ("-e", "mode=shared"),
    }
    results = together(*[lambda words=words: change(*words) for words in wrong.values()])
    for sentence, result in zip(wrong, results):
        assert sentence in result.failed()
        assert len(result.sentences) == 1, result.text
    plan = change("-e", "mode=shared", "-e", "action=plan", "-e", "kubeconfig=missing.yml")
    assert "missing.yml" in plan.failed()
    assert change.starts("n0") + change.starts("n1") == 0
