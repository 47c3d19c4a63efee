# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a drain goes on: jobs, evictions, claims, and when it has taken too long."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.core.roll import draining
from ansible_collections.rdma.k8s.plugins.module_utils.core.roll.draining import Look, Phase, Progress, Wish
from ansible_collections.rdma.k8s.plugins.module_utils.core.roll.model import Consent, User
from ansible_collections.rdma.k8s.tests.support.outcome import error_of

JOB = User("a", "train-0", "u1", "claim", "a/nics", "Job a/train", "Job", ends=True)
SERVER = User("a", "serve-0", "u2", "resource", "rdma/hca", "ReplicaSet a/serve", "ReplicaSet")
HOST = replace(SERVER, name="host-0", uid="u3", reason="host")
DAEMON = replace(SERVER, name="agent-0", uid="u4", owner="DaemonSet a/agent", owner_kind="DaemonSet")
START = Progress(since=100.0, fenced=100.0)
WISH = Wish(jobs=60, pods=50, claims=40, settle=2, apart=1)


def looks(*found: User, claims: tuple[str, ...] = ()) -> list[Look]:
    """Two nodes, of which the first has these."""
    return [Look("n1", found, claims), Look("n2")]


def test_a_whole_drain() -> None:
    """Jobs end, the rest is evicted and goes, its claims are released, and two looks show nothing."""
    progress = START
    steps: list[tuple[float, list[Look], Phase, list[User]]] = [
        (100, looks(JOB, SERVER), Phase.JOBS, []),
        (110, looks(JOB, SERVER), Phase.JOBS, []),
        (111, looks(SERVER), Phase.PODS, [SERVER]),
        (112, looks(replace(SERVER, leaving=True)), Phase.PODS, []),
        (113, looks(claims=("a/nics",)), Phase.CLAIMS, []),
        (114, looks(), Phase.CLAIMS, []),
        (114.5, looks(), Phase.CLAIMS, []),
        (115, looks(), Phase.DONE, []),
    ]
    for now, seen, phase, evicted in steps:
        progress, wanted = draining.advance(progress, seen, WISH, now)
        assert (progress.phase, wanted) == (phase, evicted), now


@pytest.mark.parametrize(
    ("phase", "seen", "told"),
    [
        (Phase.JOBS, looks(JOB, SERVER), "waiting at most 60 s for 1 job pod on 1 node to end"),
        (Phase.PODS, looks(JOB, SERVER), "waiting at most 50 s for 2 pods on 1 node to go"),
        (
            Phase.CLAIMS,
            [Look("n1", (), ("a/b", "a/c")), Look("n2", (), ("a/d",))],
            "waiting at most 40 s for 3 claims on 2 nodes to be released",
        ),
        (Phase.CLAIMS, looks(), "looking once more at empty nodes"),
    ],
)
def test_what_is_waited_for(phase: Phase, seen: list[Look], told: str) -> None:
    assert draining.standing(replace(START, phase=phase), seen, WISH) == told


def test_nothing_to_do_still_waits_for_the_fence_to_settle() -> None:
    """A pod that was on its way when the fence came has arrived by then."""
    progress, _none = draining.advance(START, looks(), WISH, 100.1)
    assert (progress.phase, progress.empty) == (Phase.CLAIMS, 100.1)
    assert draining.pause(progress, WISH, 100.1) == pytest.approx(1.9)
    progress, _none = draining.advance(progress, looks(), WISH, 101.5)
    assert progress.phase is Phase.CLAIMS
    progress, _none = draining.advance(progress, looks(), WISH, 102.0)
    assert progress.phase is Phase.DONE


def test_jobs_that_still_run_are_evicted_or_reported() -> None:
    """Both after their time; without consent it is a failure that may heal."""
    wish = replace(WISH, consent=Consent(evict_jobs=False))
    assert draining.advance(START, looks(JOB), wish, 159.9)[0].phase is Phase.JOBS
    error = error_of(draining.advance, START, looks(JOB, SERVER), wish, 160.0)
    assert (error.code, error.retryable) == ("drain_jobs_running", True)
    assert "Job a/train" in error.message
    assert "serve" not in error.message
    assert draining.advance(START, looks(JOB), WISH, 160.0) == (Progress(160.0, 100.0, Phase.PODS), [JOB])


def test_without_time_for_jobs_they_are_evicted_at_once() -> None:
    """The time for evictions begins then."""
    progress, wanted = draining.advance(START, looks(JOB), replace(WISH, jobs=0), 100.0)
    assert (progress.phase, progress.since, wanted) == (Phase.PODS, 100.0, [JOB])


def test_time_for_evictions_is_over() -> None:
    """What is left is named, and what the API server said of it."""
    progress = Progress(200.0, 100.0, Phase.PODS)
    assert draining.advance(progress, looks(JOB), WISH, 249.9)[1] == [JOB]
    error = error_of(draining.advance, progress, looks(JOB, replace(SERVER, leaving=True)), WISH, 250.0)
    assert (error.code, error.retryable) == ("drain_timeout", True)
    assert error.message == "After 50 seconds 2 pods are there: a/train-0 on n1, a/serve-0 on n1."
    told = draining.refused(error, {"u1": "No."})
    assert told.message == error.message + " No."
    assert [(pod["name"], pod["reason"]) for pod in told.details["pods"]] == [
        ("train-0", "No."),
        ("serve-0", ""),
    ]
    assert (told.code, told.hint, told.retryable) == (error.code, error.hint, True)
    assert draining.refused(error, {}).message == error.message


def test_claims_are_not_released_in_time() -> None:
    """The claim and its node are named."""
    progress = Progress(200.0, 100.0, Phase.CLAIMS)
    assert draining.advance(progress, looks(claims=("a/nics",)), WISH, 239.9)[0].phase is Phase.CLAIMS
    error = error_of(draining.advance, progress, looks(claims=("a/nics",)), WISH, 240.0)
    assert (error.code, error.retryable) == ("drain_claims_held", True)
    assert error.details["claims"] == [{"node": "n1", "claim": "a/nics"}]


def test_a_claim_that_comes_between_two_empty_looks() -> None:
    """DEV-09: the node counts as empty from anew."""
    progress = Progress(200.0, 100.0, Phase.CLAIMS, empty=200.0)
    progress, _none = draining.advance(progress, looks(claims=("a/nics",)), WISH, 200.5)
    assert progress.empty is None
    progress, _none = draining.advance(progress, looks(), WISH, 210.0)
    assert (progress.phase, progress.empty) == (Phase.CLAIMS, 210.0)


@pytest.mark.parametrize("phase", [Phase.CLAIMS, Phase.DONE])
def test_a_pod_that_comes_after_all(phase: Phase) -> None:
    """It is evicted as well, with a time of its own."""
    progress, _wanted = draining.advance(Progress(200.0, 100.0, phase), looks(SERVER), WISH, 230.0)
    assert (progress.phase, progress.since) == (Phase.PODS, 230.0)
    assert draining.advance(progress, looks(SERVER), WISH, 231.0)[1] == [SERVER]


def test_a_last_look_that_shows_nothing() -> None:
    progress = Progress(200.0, 100.0, Phase.DONE, empty=200.0)
    assert draining.advance(progress, looks(HOST), WISH, 230.0) == (progress, [])


def test_pods_that_stay_are_not_waited_for() -> None:
    progress, wanted = draining.advance(START, looks(HOST), WISH, 105.0)
    assert (progress.phase, wanted) == (Phase.CLAIMS, [])
    allowed = replace(WISH, jobs=0, consent=Consent(host_network=True))
    assert draining.advance(START, looks(HOST), allowed, 105.0)[1] == [HOST]


@pytest.mark.parametrize("progress", [START, Progress(200.0, 100.0, Phase.PODS)])
def test_what_stands_in_the_way(progress: Progress) -> None:
    """DEV-17: it is told with node, pod, use and reason, at the beginning and later."""
    error = error_of(draining.advance, progress, looks(SERVER, DAEMON), replace(WISH, jobs=0), 201.0)
    assert (error.code, error.retryable) == ("drain_blocked", False)
    assert error.message.startswith(
        "1 pod stands in the way of the drain: a/agent-0 on n1 (rdma/hca): DaemonSet a/agent"
    )
    draining.require_possible(looks(SERVER, HOST), Consent())


def test_many_are_counted() -> None:
    """A message names eight of them."""
    found = [replace(DAEMON, name="agent-%d" % number) for number in range(10)]
    error = error_of(draining.require_possible, looks(*found), Consent())
    assert error.message.startswith("10 pods stand in the way")
    assert error.message.endswith(" and 2 more.")
    assert len(error.details["pods"]) == 10


@pytest.mark.parametrize(
    ("progress", "now", "expected"),
    [
        (START, 100.0, 5.0),
        (START, 158.0, 2.0),
        (START, 170.0, 0.05),
        (Progress(100.0, 100.0, Phase.PODS), 149.0, 1.0),
        (Progress(100.0, 100.0, Phase.CLAIMS), 139.0, 1.0),
        (Progress(100.0, 90.0, Phase.CLAIMS, empty=100.0), 100.2, 0.8),
        (Progress(100.0, 100.0, Phase.CLAIMS, empty=100.0), 100.2, 1.8),
    ],
)
def test_when_it_looks_again(progress: Progress, now: float, expected: float) -> None:
    """No look comes late for the end of a phase, and none is made for nothing."""
    assert draining.pause(progress, WISH, now) == pytest.approx(expected)


def test_messages_of_one_pod_and_of_several() -> None:
    progress: Any = Progress(0.0, 0.0, Phase.PODS)
    error = error_of(draining.advance, progress, looks(SERVER), WISH, 50.0)
    assert error.message.startswith("After 50 seconds 1 pod is there: a/serve-0 on n1.")
