# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Evictions over the wire: when one is sent again, and that none is sent after it was taken."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.cluster import evicting
from ansible_collections.rdma.k8s.plugins.module_utils.cluster.client import Cluster, connect
from ansible_collections.rdma.k8s.plugins.module_utils.cluster.evicting import Evictions
from ansible_collections.rdma.k8s.plugins.module_utils.core.roll.eviction import Kind
from ansible_collections.rdma.k8s.plugins.module_utils.core.roll.model import User
from ansible_collections.rdma.k8s.tests.support.api_server import Answer, ApiServer, Breaks, serving, status

USER = User("a", "train-0", "u1", "claim", "a/nics", "Job a/train", "Job")
OTHER = replace(USER, name="train-1", uid="u2")
TAKEN = Answer({"kind": "Status", "status": "Success"}, 201)
REFUSED = status(429, "Cannot evict pod as it would violate the pod's disruption budget.")
LATER = REFUSED._replace(headers={"Retry-After": "10"})
TWO = status(
    500, "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
)


@pytest.fixture
def api() -> Iterator[ApiServer]:
    """A server on loopback."""
    with serving() as found:
        yield found


@pytest.fixture
def cluster(api: ApiServer, tmp_path: Path) -> Cluster:
    """Calls to it."""
    return connect(api.kubeconfig(tmp_path))


class Clock:
    """Monotonic seconds that the test sets."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


def sent(api: ApiServer) -> list[str]:
    """The pods whose evictions were sent."""
    return [request.path.split("/")[6] for request in api.requests]


def test_one_eviction(api: ApiServer, cluster: Cluster) -> None:
    """The path, the UID, no grace but the pod's own."""
    api.answers = [TAKEN]
    assert evicting.send(cluster, USER).kind is Kind.ACCEPTED
    (request,) = api.requests
    assert (request.method, request.path) == ("POST", "/api/v1/namespaces/a/pods/train-0/eviction")
    assert request.body["deleteOptions"] == {"preconditions": {"uid": "u1"}}
    assert "dryRun" not in request.query


@pytest.mark.parametrize(("own", "wanted", "grace"), [(0, None, 1), (30, 5, 5), (30, 0, 1), (30, None, None)])
def test_the_grace(api: ApiServer, cluster: Cluster, own: int, wanted: Any, grace: Any) -> None:
    """DEV-24: never 0."""
    api.answers = [TAKEN]
    evicting.send(cluster, replace(USER, grace=own), wanted, dry_run=True)
    (request,) = api.requests
    assert request.body["deleteOptions"].get("gracePeriodSeconds") == grace
    assert request.query == {"dryRun": "All"}


def test_refusals_have_their_time(api: ApiServer, cluster: Cluster) -> None:
    """DEV-31: 429, then 429 with a time, then 201: waits of 5 and of 10 seconds, and nothing is sent after that."""
    api.answers, clock = [REFUSED, LATER, TAKEN], Clock()
    evictions = Evictions(cluster, clock=clock)
    numbers = []
    for seconds in (0, 4.9, 0.1, 9.9, 0.1, 60):
        clock.now += seconds
        evictions.ask([USER])
        numbers.append(len(api.requests))
    assert numbers == [1, 1, 2, 2, 3, 3]
    assert (evictions.taken, evictions.reasons) == ({"u1": USER}, {})
    assert evictions.due() > 600


def test_after_ten_minutes_it_asks_more_seldom(api: ApiServer, cluster: Cluster) -> None:
    """The first refusal counts, not the last."""
    api.answers, clock = [REFUSED] * 4, Clock()
    evictions = Evictions(cluster, clock=clock)
    due = []
    for seconds in (0, 300, 294, 6):
        clock.now += seconds
        evictions.ask([USER])
        due.append(evictions.due())
    assert due == [5, 5, 5, 60]


def test_each_pod_has_its_own_time(api: ApiServer, cluster: Cluster) -> None:
    """A pod that is refused holds back no other one; one that is wanted no more is forgotten."""
    api.answers, clock = [REFUSED, TAKEN], Clock()
    evictions = Evictions(cluster, clock=clock)
    evictions.ask([USER, OTHER])
    assert sent(api) == ["train-0", "train-1"]
    assert list(evictions.taken) == ["u2"]
    assert evictions.due() == 5.0
    assert list(evictions.reasons) == ["u1"]
    evictions.ask([])
    assert (evictions.reasons, evictions.due() > 600) == ({}, True)


@pytest.mark.parametrize(
    "answer", [Breaks(), status(500, "etcdserver: request timed out"), status(504, "timeout")]
)
def test_an_answer_that_tells_nothing(api: ApiServer, cluster: Cluster, answer: Any) -> None:
    """Nobody knows whether it was taken: it is sent again only when the pod is still wanted after a while."""
    api.answers, clock = [answer, TAKEN], Clock()
    evictions = Evictions(cluster, clock=clock)
    evictions.ask([USER])
    evictions.ask([USER])
    assert (len(api.requests), evictions.taken, list(evictions.reasons)) == (1, {}, ["u1"])
    clock.now += 5
    evictions.ask([USER])
    assert (len(api.requests), list(evictions.taken)) == (2, ["u1"])


@pytest.mark.parametrize("answer", [TWO, status(403, 'User "x" cannot create resource "pods/eviction"')])
def test_what_trying_again_does_not_mend(api: ApiServer, cluster: Cluster, answer: Answer) -> None:
    api.answers, clock = [answer], Clock()
    evictions = Evictions(cluster, clock=clock)
    for _time in range(3):
        evictions.ask([USER])
        clock.now += 100
    assert (len(api.requests), list(evictions.failed), list(evictions.reasons)) == (1, ["u1"], ["u1"])


@pytest.mark.parametrize(
    "answer", [status(404, 'pods "train-0" not found'), status(409, "the UID in the precondition")]
)
def test_a_pod_that_has_gone(api: ApiServer, cluster: Cluster, answer: Answer) -> None:
    """It is neither ours nor a failure."""
    api.answers = [answer]
    evictions = Evictions(cluster)
    evictions.ask([USER])
    assert (evictions.taken, evictions.failed, evictions.reasons) == ({}, {}, {})
