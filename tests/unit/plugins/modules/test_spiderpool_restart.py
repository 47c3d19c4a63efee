# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""spiderpool_restart on the wire: one patch for one change, a wait, nothing the second time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils import news
from ansible_collections.rdma.k8s.plugins.module_utils.cluster import spiderpool_restart as cluster_side
from ansible_collections.rdma.k8s.plugins.modules import spiderpool_restart
from ansible_collections.rdma.k8s.tests.support import api_server, change_run
from ansible_collections.rdma.k8s.tests.support.api_server import Answer, ApiServer, Request, status

CORE = "/api/v1/namespaces/spiderpool"
DEPLOYMENT = "/apis/apps/v1/namespaces/spiderpool/deployments/spiderpool-controller"
LABEL = {"app.kubernetes.io/component": "spiderpool-controller"}


class Wire:
    """A Deployment of one pod and its ConfigMap; what a controller of Deployments does, some looks after a patch."""

    def __init__(self, configured: str = "2026-11-30T12:00:09Z", looks: int = 2) -> None:
        self.configured, self.created = configured, "2026-11-30T12:00:05Z"
        self.looks: int = looks
        self.annotations: dict[str, str] = {}
        self.generation = self.observed = 1
        self.patches: list[Request] = []

    def __call__(self, request: Request) -> Any:
        if request.method == "PATCH":
            self.patches.append(request)
            if "dryRun" not in request.query:
                self.annotations.update(request.body["spec"]["template"]["metadata"]["annotations"])
                self.generation += 1
        if request.path == DEPLOYMENT:
            return Answer(self.deployment())
        if request.path == CORE + "/configmaps/spiderpool-conf":
            fields = [{"time": self.configured, "fieldsV1": {"f:data": {}}}]
            return Answer({"metadata": {"name": "spiderpool-conf", "managedFields": fields}})
        if request.path == CORE + "/pods":
            assert request.query["labelSelector"] == "app.kubernetes.io/component=spiderpool-controller"
            metadata = {"name": "pod-%d" % self.observed, "creationTimestamp": self.created}
            return Answer({"items": [{"metadata": metadata, "status": {"phase": "Running"}}]})
        return status(404, "not found")

    def deployment(self) -> dict[str, Any]:
        if self.generation != self.observed:
            self.looks -= 1
            if self.looks <= 0:
                self.observed, self.created = self.generation, self.configured
        template = {
            "metadata": {"annotations": self.annotations},
            "spec": {"volumes": [{"configMap": {"name": "spiderpool-conf"}}]},
        }
        return {
            "kind": "Deployment",
            "metadata": {
                "name": "spiderpool-controller",
                "namespace": "spiderpool",
                "generation": self.generation,
            },
            "spec": {"selector": {"matchLabels": LABEL}, "template": template},
            "status": {
                "observedGeneration": self.observed,
                "replicas": 1,
                "updatedReplicas": 1,
                "availableReplicas": 1,
            },
        }


@pytest.fixture
def api() -> Iterator[ApiServer]:
    with api_server.serving() as server:
        yield server


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_side, "PAUSE", 0.02)


def test_a_newer_configuration_is_read_and_then_nothing_more_is_done(api: ApiServer, tmp_path: Path) -> None:
    """S166, S168: one restart for one change."""
    wire = api.route = Wire(looks=3)
    options = {"kubeconfig": api.kubeconfig(tmp_path), "timeout": 20}
    found = change_run.good(spiderpool_restart, _ansible_diff=True, **options)
    assert found["changed"] is True
    assert (found["configuration"], found["older"]) == (["spiderpool-conf"], ["pod-1"])
    assert found["actions"] == ["restart Deployment spiderpool/spiderpool-controller"]
    assert found["configured_at"] == wire.configured
    assert found["diff"] == {"before": "", "after": "rdma-k8s/configuration-of: %s\n" % wire.configured}
    assert wire.looks <= 0  # it waited
    again = change_run.good(spiderpool_restart, **options)
    assert (again["changed"], again["older"], again["actions"]) == (False, [], [])
    (patch,) = wire.patches
    assert patch.headers["content-type"] == "application/merge-patch+json"
    assert patch.query["fieldManager"] == "rdma.k8s"
    wire.configured, wire.looks = "2026-11-30T13:00:00Z", 1
    assert change_run.good(spiderpool_restart, **options)["changed"] is True
    assert len(wire.patches) == 2


def test_pods_that_are_newer_are_left_alone(api: ApiServer, tmp_path: Path) -> None:
    wire = api.route = Wire(configured="2026-11-30T12:00:05Z")
    found = change_run.good(spiderpool_restart, kubeconfig=api.kubeconfig(tmp_path))
    assert (found["changed"], wire.patches) == (False, [])


def test_check_mode_asks_and_does_not_wait(api: ApiServer, tmp_path: Path) -> None:
    wire = api.route = Wire()
    found = change_run.good(spiderpool_restart, kubeconfig=api.kubeconfig(tmp_path), _ansible_check_mode=True)
    assert found["changed"] is True
    assert [request.query["dryRun"] for request in wire.patches] == ["All"]
    assert (wire.annotations, wire.generation, found["waited"]) == ({}, 1, 0)


def test_pods_that_do_not_come_up_are_told_and_not_restarted_again(
    api: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paper = tmp_path / "news"
    paper.touch()
    monkeypatch.setenv(news.VARIABLE, str(paper))
    wire = api.route = Wire(looks=10**6)
    options = {"kubeconfig": api.kubeconfig(tmp_path), "timeout": 1}
    found = change_run.failure(spiderpool_restart, **options)
    assert (found["code"], found["changed"]) == ("spiderpool_controller_late", True)
    assert "nobody has looked at the new specification" in found["msg"]
    assert paper.read_text() == (
        "waiting at most 1 s: nobody has looked at the new specification of Deployment "
        "spiderpool/spiderpool-controller\n"
    )
    again = change_run.failure(spiderpool_restart, **options)
    assert (again["code"], again["changed"], len(wire.patches)) == ("spiderpool_controller_late", False, 1)


def test_without_a_controller_it_says_so(api: ApiServer, tmp_path: Path) -> None:
    found = change_run.failure(spiderpool_restart, kubeconfig=api.kubeconfig(tmp_path))
    assert (found["code"], found["changed"]) == ("kube_not_found", False)
    assert "deployments/spiderpool-controller" in found["msg"]


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"timeout": 0}, "number_out_of_range"),
        ({"namespace": "A B"}, "name_malformed"),
        ({"name": "a/b"}, "name_malformed"),
    ],
)
def test_options(options: dict[str, Any], code: str) -> None:
    assert change_run.failure(spiderpool_restart, kubeconfig="/nowhere", **options)["code"] == code
