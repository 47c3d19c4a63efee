# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the modules about users of RDMA return."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils import _rdma_users
from ansible_collections.rdma.k8s.plugins.module_utils.cluster.draining import Done
from ansible_collections.rdma.k8s.plugins.module_utils.core.roll.draining import Look
from ansible_collections.rdma.k8s.plugins.module_utils.core.roll.model import Consent, User

USER = User("a", "train-0", "u1", "claim", "a/nics", "Job a/train", "Job", claims=("a/nics",), ends=True)
VF = replace(USER, name="vf-0", reason="resource", uses="rdma/hca", owner="", owner_kind="", claims=())
READY = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}, "spec": {"unschedulable": True}}


def test_a_node_and_all_of_them() -> None:
    """Each user with what a drain would make of it, and the sums."""
    nodes = [
        _rdma_users.told(Look("n1", (VF, USER), ("a/nics",)), READY, Consent()),
        _rdma_users.told(Look("n2"), {}, Consent()),
    ]
    assert [(node["name"], node["ready"], node["unschedulable"]) for node in nodes] == [
        ("n1", True, True),
        ("n2", False, False),
    ]
    assert [(user["name"], user["drain"], bool(user["problem"])) for user in nodes[0]["users"]] == [
        ("train-0", "evict", False),
        ("vf-0", "blocks", True),
    ]
    assert _rdma_users.summary(nodes) == {
        "nodes": 2,
        "nodes_in_use": 1,
        "pods": 2,
        "owners": ["Job a/train"],
        "blocking": 1,
    }


@pytest.mark.parametrize(
    ("user", "kind", "warned"),
    [(VF, "taint", True), (USER, "taint", False), (VF, "cordon", False), (VF, "none", False)],
)
def test_a_taint_does_not_keep_everybody_away(user: User, kind: str, warned: bool) -> None:
    """Devices can be tainted for claims alone."""
    assert bool(_rdma_users.warnings(Done(looks=[Look("n1", (user,))]), kind)) is warned


@pytest.mark.parametrize(("state", "action"), [("fenced", "cordon n1"), ("released", "uncordon n1")])
def test_fences_that_were_put_up_or_taken_away(state: str, action: str) -> None:
    """The difference has the fence on the side on which it was."""
    found = _rdma_users.drained(state, Done(nodes={"n1": READY}, fences={"n1": "cordon"}), Consent())
    assert (found["changed"], found["actions"]) == (True, [action])
    sides = [found["diff"][side]["n1"]["fence"] for side in ("before", "after")]
    assert sides == (["", "cordon"] if state == "fenced" else ["cordon", ""])
    assert "evicted" not in found


def test_nothing_was_done() -> None:
    found = _rdma_users.drained("drained", Done(), Consent())
    assert (found["changed"], found["evicted"], found["refused"], found["nodes"]) == (False, [], {}, [])
    assert _rdma_users.drained("tried", Done(hit={"n1": "x"}), Consent())["hit"] == {"n1": "x"}
