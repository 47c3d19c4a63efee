# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What ack_verify and ack_pod_test refuse before they ask anybody, and what happens when the API fails in between."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.cluster import ack_verify as reader, pod_jobs
from ansible_collections.rdma.k8s.plugins.module_utils.cluster.client import Cluster, connect
from ansible_collections.rdma.k8s.plugins.module_utils.core.ack import names, pod_test
from ansible_collections.rdma.k8s.plugins.module_utils.core.errors import RdmaError
from ansible_collections.rdma.k8s.plugins.modules import ack_pod_test, ack_verify
from ansible_collections.rdma.k8s.tests.support import api_server, change_run
from ansible_collections.rdma.k8s.tests.support.api_server import Answer, ApiServer, Request

TEST = pod_test.PodTest("image", seconds=10)


@pytest.fixture
def api() -> Iterator[ApiServer]:
    with api_server.serving() as server:
        yield server


@pytest.fixture
def cluster(api: ApiServer, tmp_path: Path) -> Cluster:
    return connect(api.kubeconfig(tmp_path))


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"timeout": 3601}, "number_out_of_range"),
        ({"settle": -1}, "number_out_of_range"),
        ({"log_pods": 51}, "number_out_of_range"),
        ({"namespace": "a.b"}, "name_malformed"),
        ({"daemonset": "A"}, "name_malformed"),
        ({"resource_name": "hca"}, "workload_malformed"),
    ],
)
def test_options_of_the_verification(options: dict[str, Any], code: str) -> None:
    assert change_run.failure(ack_verify, kubeconfig="/nowhere", **options)["code"] == code


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"amount": 0}, "number_out_of_range"),
        ({"timeout": 9}, "number_out_of_range"),
        ({"namespace": "a.b"}, "name_malformed"),
        ({"nodes": ["A"]}, "name_malformed"),
        ({"pull_secrets": ["A"]}, "name_malformed"),
        ({"image": " "}, "workload_incomplete"),
        ({"resource_name": "hca"}, "workload_malformed"),
        ({"tolerations": [{"operator": "Sometimes"}]}, "workload_malformed"),
        ({"shm_size": "8GB"}, "workload_shm"),
    ],
)
def test_options_of_the_pod_test(options: dict[str, Any], code: str) -> None:
    given = {"kubeconfig": "/nowhere", "nodes": ["n1"], "image": "image", **options}
    assert change_run.failure(ack_pod_test, **given)["code"] == code


class Clock:
    """Time that passes when somebody waits."""

    def __init__(self) -> None:
        self.now, self.pauses = 0.0, []  # type: float, list[float]

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds

    def __call__(self) -> float:
        return self.now


def daemonset(ready: int) -> dict[str, Any]:
    return {
        "metadata": {"name": names.DAEMONSET, "uid": "1", "generation": 1},
        "spec": {"selector": {"matchLabels": {"app": "x"}}},
        "status": {
            "observedGeneration": 1,
            **dict.fromkeys(
                ("desiredNumberScheduled", "currentNumberScheduled", "updatedNumberScheduled"), 1
            ),
            **dict.fromkeys(("numberReady", "numberAvailable"), ready),
        },
    }


class Plugin:
    """An API server with one Lingjun node, whose amount changes from look to look."""

    def __init__(self, *amounts: str) -> None:
        self.amounts = list(amounts)

    def __call__(self, request: Request) -> Any:
        if request.path.endswith("/daemonsets/" + names.DAEMONSET):
            return Answer(daemonset(1))
        if request.path == "/api/v1/nodes":
            amount = self.amounts.pop(0) if len(self.amounts) > 1 else self.amounts[0]
            held = {names.RESOURCE: amount}
            labels = {names.WORKER_LABEL: "true"}
            node = {
                "metadata": {"name": "n1", "labels": labels},
                "status": {"capacity": {names.RESOURCE: "1k"}, "allocatable": held},
            }
            return Answer({"items": [node]})
        pod = {
            "metadata": {"name": "p1", "ownerReferences": [{"uid": "1"}]},
            "spec": {"nodeName": "n1", "containers": [{"name": "plugin"}]},
            "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
        }
        return Answer({"items": [pod]})


@pytest.mark.parametrize(
    ("amounts", "timeout", "expected"),
    [
        (["1k"], 0, ("ok", [20])),
        (["0", "0", "1k"], 60, ("ok", [5, 5, 20])),
        (["1k", "0", "1k"], 60, ("ok", [20, 5, 20])),
        (["990", "995", "1k"], 60, ("ok", [20, 20, 20])),
        (["0"], 0, ("fail", [])),
        (["0"], 12, ("fail", [5, 5, 5])),
        (["990", "995"], 0, ("warn", [20])),
    ],
)
def test_when_it_looks_again(
    api: ApiServer, cluster: Cluster, amounts: list[str], timeout: float, expected: Any
) -> None:
    """A57: a good look is always repeated; a bad one while there is time; what changes is no good look."""
    api.route = Plugin(*amounts)
    clock = Clock()
    found = reader.verify(cluster, reader.Wish(timeout=timeout, logs=0), clock.sleep, clock)
    assert (found.status, clock.pauses) == expected
    assert found.waited == sum(clock.pauses)


def test_what_it_waits_for_is_told(api: ApiServer, cluster: Cluster) -> None:
    api.route = Plugin("0", "990", "1k")
    clock = Clock()
    told: list[str] = []
    reader.verify(cluster, reader.Wish(timeout=60, logs=0), clock.sleep, clock, told.append)
    assert told[0].startswith("waiting at most 60 s: ")
    assert told[1] == "waiting 20 s for the second look: the first one is good"
    assert told[2].startswith("waiting at most 60 s: ")
    assert len(told) == len(clock.pauses)


def test_what_changed_is_told(api: ApiServer, cluster: Cluster) -> None:
    api.route = Plugin("990", "995")
    clock = Clock()
    found = reader.verify(cluster, reader.Wish(timeout=0), clock.sleep, clock)
    assert [reason.code for reason in found.reasons] == ["resource-allocatable-low", "amounts-not-settled"]


class Jobs:
    """An API server that takes Jobs, and answers as a test says."""

    def __init__(self) -> None:
        self.jobs: list[Any] = []
        self.refuse_after = 1000
        self.stays = False
        self.deleted: list[str] = []

    def __call__(self, request: Request) -> Any:
        if request.method == "POST":
            if len(self.jobs) >= self.refuse_after:
                return api_server.status(500, "no space")
            self.jobs.append(request.body)
            return Answer(request.body, 201)
        if request.method == "DELETE":
            self.deleted.append(request.path)
            return api_server.status(403, "no") if self.stays else Answer({"kind": "Status"})
        if request.path == "/apis":
            resources = [{"resource": "jobs", "responseKind": {"kind": "Job"}, "scope": "Namespaced"}]
            versions = [{"version": "v1", "resources": resources}]
            items = [{"metadata": {"name": "batch"}, "versions": versions}]
            return Answer({"kind": "APIGroupDiscoveryList", "items": items})
        if request.path.endswith("/jobs"):
            return Answer({"items": self.jobs})
        return Answer({"items": []})


def test_what_was_made_is_removed_when_the_next_cannot_be_made(api: ApiServer, cluster: Cluster) -> None:
    """The second Job is refused: the first one is removed, and the one whose answer may be lost too."""
    route = api.route = Jobs()
    route.refuse_after = 1
    runner = pod_jobs.Runner(cluster, TEST, "abc", sleep=lambda _seconds: None)
    with pytest.raises(RdmaError) as found:
        runner.results(["n1", "n2", "n3"])
    assert found.value.code == "kube_failed"
    assert len(route.deleted) == 2


def test_what_cannot_be_removed_is_told(api: ApiServer, cluster: Cluster) -> None:
    """The Job has no pod until its time is over; it stays, and its name is told."""
    route = api.route = Jobs()
    route.stays = True
    clock = Clock()
    runner = pod_jobs.Runner(cluster, TEST, "abc", sleep=clock.sleep, clock=clock)
    (result,) = runner.results(["n1"])
    assert (result.verdict.status, result.verdict.reasons) == ("unknown", ["pod-missing"])
    assert clock.now >= TEST.seconds
    assert runner.left == [route.jobs[0]["metadata"]["name"]]
    told = pod_jobs.told([result])
    assert told["status"] == "unknown"
    assert told["problems"][0].startswith("n1: ")


def test_many_nodes_are_tried_some_at_a_time(api: ApiServer, cluster: Cluster) -> None:
    """Never more than 50 Jobs are there."""
    route = api.route = Jobs()
    clock = Clock()
    runner = pod_jobs.Runner(cluster, TEST, "abc", sleep=clock.sleep, clock=clock)
    order: list[int] = []

    def counted(nodes: Any) -> Any:
        order.append(len(route.jobs) - len(route.deleted))
        return []

    runner._waited_for = counted  # type: ignore[method-assign]
    runner.results(["n%d" % number for number in range(120)])
    assert order == [50, 50, 20]
    assert len(route.deleted) == 120
