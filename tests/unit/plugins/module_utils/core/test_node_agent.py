# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When the node agent is where it must be."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.core import node_agent

NODES = [{"metadata": {"name": name}} for name in ("n2", "n1")]


def daemonset(generation: int = 3, observed: int = 3, desired: int = 2, updated: int = 2) -> dict[str, Any]:
    return {
        "metadata": {"generation": generation},
        "status": {
            "observedGeneration": observed,
            "desiredNumberScheduled": desired,
            "updatedNumberScheduled": updated,
        },
    }


def pod(
    node: str, mode: str = "read", ready: bool = True, closed: str = "Enabled", **more: Any
) -> dict[str, Any]:
    mounts = [{"mountPath": "/tmp"}, {"mountPath": "/host", "recursiveReadOnly": closed}]
    return {
        "metadata": {
            "name": "agent-" + node,
            "labels": {node_agent.MODE_LABEL: mode},
            **more.get("metadata", {}),
        },
        "spec": {"nodeName": node},
        "status": {
            "phase": "Running",
            "conditions": [{"type": "Ready", "status": "True" if ready else "False"}],
            "containerStatuses": [{"volumeMounts": mounts, "state": more.get("state", {})}],
        },
    }


def test_all_are_ready() -> None:
    found = node_agent.state("read", daemonset(), [pod("n1"), pod("n2")], NODES)
    assert (found.done, found.ready, found.waiting, found.open_mounts) == (True, ["n1", "n2"], {}, [])


WAITING = [
    ([pod("n1")], "n2", "no pod"),
    ([pod("n1"), pod("n2", mode="write")], "n2", "the pod agent-n2 is in mode write"),
    ([pod("n1"), pod("n2", ready=False)], "n2", "the pod agent-n2 is not ready"),
    (
        [
            pod("n1"),
            pod(
                "n2", ready=False, state={"waiting": {"reason": "ErrImageNeverPull", "message": "not there"}}
            ),
        ],
        "n2",
        "the pod agent-n2 waits: ErrImageNeverPull: not there",
    ),
    ([pod("n1"), pod("n2", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})], "n2", "no pod"),
]


@pytest.mark.parametrize(("pods", "node", "reason"), WAITING, ids=[entry[2] for entry in WAITING])
def test_a_node_is_waited_for(pods: list[dict[str, Any]], node: str, reason: str) -> None:
    """Each with the reason, so that nobody has to look for it."""
    found = node_agent.state("read", daemonset(), pods, NODES)
    assert not found.done
    assert found.ready == ["n1"]
    assert {node: reason} == found.waiting
    assert reason in found.sentence(5)


def test_of_two_pods_the_ready_one_counts() -> None:
    """While a pod is replaced there are two; a pod that is not ready hides no ready one, in either order."""
    pods = [pod("n1"), pod("n2", ready=False), pod("n2")]
    for order in (pods, pods[::-1]):
        assert node_agent.state("read", daemonset(), order, NODES).done


PROBLEMS = [
    ({}, "there is no DaemonSet rdma-k8s-agent"),
    (daemonset(generation=4), "the controller has not seen the DaemonSet rdma-k8s-agent of generation 4"),
    (daemonset(updated=1), "1 of 2 pods are as the DaemonSet rdma-k8s-agent wants them"),
]


@pytest.mark.parametrize(("found", "sentence"), PROBLEMS, ids=[entry[1] for entry in PROBLEMS])
def test_the_daemonset_is_not_settled(found: dict[str, Any], sentence: str) -> None:
    """Ready pods are not enough: they may be those of the DaemonSet before."""
    judged = node_agent.state("read", found, [pod("n1"), pod("n2")], NODES)
    assert not judged.done
    assert judged.problem == sentence


def test_a_root_that_is_not_read_only_as_a_whole() -> None:
    """An older runtime leaves what is mounted below writable: that is told, for the mode read alone."""
    pods = [pod("n1"), pod("n2", closed="Disabled")]
    assert node_agent.state("read", daemonset(), pods, NODES).open_mounts == ["n2"]
    writing = [pod("n1", mode="write"), pod("n2", mode="write", closed="Disabled")]
    assert node_agent.state("write", daemonset(), writing, NODES).open_mounts == []


def test_what_is_left_of_it() -> None:
    assert node_agent.left({}, []).done
    found = node_agent.left(daemonset(), [pod("n1")])
    assert found.problem == "the DaemonSet rdma-k8s-agent is still there"
    assert found.waiting == {"n1": "the pod agent-n1 is still there"}
    assert found.lacking == [found.problem, "n1 (the pod agent-n1 is still there)"]
    assert node_agent.left({}, []).lacking == []


def test_many_nodes_are_not_all_named() -> None:
    nodes = [{"metadata": {"name": f"n{number:03}"}} for number in range(25)]
    said = node_agent.state("read", daemonset(), [], nodes).sentence(300)
    assert "n000 (no pod)" in said
    assert "and 5 more" in said
    assert "n024" not in said
