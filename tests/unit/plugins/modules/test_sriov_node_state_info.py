# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What sriov_node_state_info refuses before it asks anybody, and what it makes of a server that has troubles."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.cluster import sriov_states
from ansible_collections.rdma.k8s.plugins.module_utils.cluster.client import connect
from ansible_collections.rdma.k8s.plugins.module_utils.cluster.sriov_states import GROUP, STATES, Waiter
from ansible_collections.rdma.k8s.plugins.module_utils.core.errors import RdmaError
from ansible_collections.rdma.k8s.plugins.module_utils.core.spiderpool.rollout import Tracker
from ansible_collections.rdma.k8s.plugins.modules import sriov_node_state_info
from ansible_collections.rdma.k8s.tests.support import api_server, change_run
from ansible_collections.rdma.k8s.tests.support.api_server import Answer, ApiServer, Request, status

PF = "0000:86:00.0"
NODE = {
    "metadata": {"name": "w1", "labels": {"rdma": "true"}},
    "status": {
        "conditions": [{"type": "Ready", "status": "True"}],
        "allocatable": {"spidernet.io/gpu1": "8"},
    },
}
POLICY = {
    "metadata": {"name": "gpu1", "namespace": "spiderpool"},
    "spec": {
        "resourceName": "gpu1",
        "numVfs": 8,
        "nodeSelector": {"rdma": "true"},
        "nicSelector": {"rootDevices": [PF]},
    },
}


def state(sync: str = "Succeeded", vfs: int = 8) -> dict[str, Any]:
    """The state of the node."""
    marks = {"sriovnetwork.openshift.io/%s-state" % what: "Idle" for what in ("desired", "current")}
    interface = {
        "pciAddress": PF,
        "vendor": "15b3",
        "deviceID": "101d",
        "numVfs": vfs,
        "Vfs": [{} for _number in range(vfs)],
    }
    return {
        "metadata": {"name": "w1", "namespace": "spiderpool", "annotations": marks},
        "status": {"syncStatus": sync, "interfaces": [interface]},
    }


class Clock:
    """Time that passes when somebody waits, and with each look at it a little."""

    def __init__(self) -> None:
        self.now, self.pauses = 0.0, []  # type: float, list[float]

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds

    def __call__(self) -> float:
        return self.now


class Wire:
    """Lists with these states, one after the other, and answers to watches."""

    def __init__(self, *states: dict[str, Any]) -> None:
        self.states = list(states)
        self.watches: list[Any] = []
        self.asked: list[Request] = []
        self.without: set[str] = set()

    def __call__(self, request: Request) -> Any:
        self.asked.append(request)
        if request.path in self.without:
            return status(404, "not found")
        if request.query.get("watch"):
            return self.watches.pop(0) if self.watches else Answer(b"")
        if request.path == STATES:
            found = self.states.pop(0) if len(self.states) > 1 else self.states[0]
            return Answer({"metadata": {"resourceVersion": "7"}, "items": [found]})
        items = {"/api/v1/nodes": [NODE], GROUP + "/sriovnetworknodepolicies": [POLICY]}
        if request.path.endswith("/sriovoperatorconfigs/default"):
            return status(404, "not found")
        return Answer({"metadata": {}, "items": items.get(request.path, [])})


@pytest.fixture
def api() -> Iterator[ApiServer]:
    with api_server.serving() as server:
        yield server


def waited(api: ApiServer, tmp_path: Path, wire: Wire, timeout: float = 300, settle: float = 5) -> Any:
    """What a waiter finds on this wire, and the pauses that it made."""
    api.route = wire
    clock = Clock()
    cluster = connect(api.kubeconfig(tmp_path))
    found = Waiter(cluster, Tracker(stuck_after=600), timeout, settle, clock=clock, sleep=clock.sleep).wait()
    return found, clock


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"timeout": -1}, "number_out_of_range"),
        ({"settle": 601}, "number_out_of_range"),
        ({"stuck_after": 9}, "number_out_of_range"),
        ({"nodes": ["A B"]}, "name_malformed"),
        ({"resource_prefix": "a/b"}, "name_malformed"),
    ],
)
def test_options(options: dict[str, Any], code: str) -> None:
    assert change_run.failure(sriov_node_state_info, kubeconfig="/nowhere", **options)["code"] == code


def test_without_the_operator_it_says_so(api: ApiServer, tmp_path: Path) -> None:
    wire = Wire(state())
    wire.without = {STATES}
    with pytest.raises(RdmaError) as caught:
        waited(api, tmp_path, wire)
    assert caught.value.code == "kube_not_served"
    assert "sriov.install=true" in str(caught.value)


def test_older_operators_have_no_pools(api: ApiServer, tmp_path: Path) -> None:
    """S120."""
    wire = Wire(state())
    wire.without = {GROUP + "/sriovnetworkpoolconfigs"}
    found, _clock = waited(api, tmp_path, wire)
    assert (found.progress.state, found.disable_drain) == ("ready", None)


def test_a_good_look_must_hold(api: ApiServer, tmp_path: Path) -> None:
    """S116: the second look says InProgress again, so the time of rest begins anew."""
    found, clock = waited(api, tmp_path, Wire(state(), state("InProgress"), state()))
    assert (found.progress.state, found.settled) == ("ready", True)
    assert found.looks == 6
    assert clock.pauses == [2, 2, 2, 2, 2]
    assert found.seconds == 10


def test_one_look_settles_nothing(api: ApiServer, tmp_path: Path) -> None:
    found, clock = waited(api, tmp_path, Wire(state()), timeout=0)
    assert (found.progress.state, found.settled, found.looks, clock.pauses) == ("ready", False, 1, [])


@pytest.mark.parametrize(
    "answer",
    [status(410, "too old resource version"), api_server.Breaks(), Answer(b"")],
    ids=["410", "broken", "end"],
)
def test_a_watch_that_ends_is_a_shorter_rest(api: ApiServer, tmp_path: Path, answer: Any) -> None:
    wire = Wire(state(vfs=0), state())
    wire.watches = [answer]
    found, clock = waited(api, tmp_path, wire, settle=0)
    assert (found.progress.state, found.looks, clock.pauses) == ("ready", 2, [2])
    watch = next(request for request in wire.asked if request.query.get("watch"))
    assert (watch.path, watch.query["resourceVersion"], watch.query["timeoutSeconds"]) == (STATES, "7", "30")


def test_a_watch_that_is_not_allowed_is_an_error(api: ApiServer, tmp_path: Path) -> None:
    wire = Wire(state(vfs=0))
    wire.watches = [status(403, "forbidden: cannot watch")]
    with pytest.raises(RdmaError) as caught:
        waited(api, tmp_path, wire)
    assert caught.value.code == "kube_forbidden"


def test_the_time_is_over(api: ApiServer, tmp_path: Path) -> None:
    found, clock = waited(api, tmp_path, Wire(state(vfs=0)), timeout=7)
    assert (found.progress.state, found.looks, sum(clock.pauses)) == ("progress", 4, 6)


def test_it_tells_each_change_and_that_there_is_none(
    api: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sriov_states, "TELL_AGAIN", 4)
    api.route = Wire(*[state("InProgress") for _look in range(4)], state())
    clock, lines = Clock(), []  # type: Clock, list[str]
    Waiter(
        connect(api.kubeconfig(tmp_path)),
        Tracker(stuck_after=600),
        300,
        0,
        tell=lines.append,
        clock=clock,
        sleep=clock.sleep,
    ).wait()
    assert lines == [
        "    0 s  configuring: w1",
        "    4 s  1 configuring",
        "    8 s  configuring -> ready: w1",
    ]


def test_the_result_has_the_seconds_of_each_phase(api: ApiServer, tmp_path: Path) -> None:
    api.route = Wire(state("InProgress"), state())
    found = change_run.good(
        sriov_node_state_info, kubeconfig=api.kubeconfig(tmp_path), timeout=20, settle=0, show=False
    )
    assert found["state"] == "ready"
    first, last = found["nodes"][0]["phases"]
    assert (first["phase"], last["phase"]) == ("configuring", "ready")
    assert first["seconds"] >= 2
    assert last["seconds"] < first["seconds"]
