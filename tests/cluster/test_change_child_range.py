# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The playbook change_child_range on a real API server, as a user with the rights that its page lists and no other.

The nodes are simulated; the scenario ``range_change`` has real ones.
"""

from __future__ import annotations

import json
import re
import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import yaml

from ansible_collections.rdma.k8s.tests.support.paths import ROOT
from ansible_collections.rdma.k8s.tests.support.playbook import Controller, Run

from .conftest import SIMULATED, ControlPlane
from .test_client import token, with_user
from .test_cluster_checks import NAMESPACE, NEW as OLD, NODES, driver, rights

NEW = "10.192.0.0/12"
DRIVER = "dranet"
PAGES = ("read-a-cluster.md", "range-change.md")


def workloads(mark: str) -> list[dict[str, Any]]:
    """One RDMA pod and one CPU pod on each node, both made again when they are evicted."""
    meta = {"namespace": mark}
    request = {"name": "nic", "exactly": {"deviceClassName": mark}}
    found: list[dict[str, Any]] = [
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "DeviceClass",
            "metadata": {"name": mark},
            "spec": {"selectors": [{"cel": {"expression": 'device.driver == "dra.net"'}}]},
        },
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaimTemplate",
            "metadata": {**meta, "name": "nic"},
            "spec": {"spec": {"devices": {"requests": [request]}}},
        },
    ]
    for name in ("train", "web"):
        container: dict[str, Any] = {"name": "c", "image": "lab.test/pod:1"}
        pod: dict[str, Any] = {
            "terminationGracePeriodSeconds": 1,
            "tolerations": [{"key": "rdma-lab/simulated", "operator": "Exists"}],
            "nodeSelector": {"rdma-lab/simulated": "true"},
            "topologySpreadConstraints": [
                {
                    "maxSkew": 1,
                    "topologyKey": "kubernetes.io/hostname",
                    "whenUnsatisfiable": "DoNotSchedule",
                    "labelSelector": {"matchLabels": {"app": name}},
                }
            ],
            "containers": [container],
        }
        if name == "train":
            pod["resourceClaims"] = [{"name": "nic", "resourceClaimTemplateName": "nic"}]
            container["resources"] = {"claims": [{"name": "nic"}]}
        template = {"metadata": {"labels": {"app": name}}, "spec": pod}
        spec = {
            "replicas": SIMULATED,
            "selector": {"matchLabels": {"app": name}},
            "template": template,
        }
        found.append(
            {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {**meta, "name": name}, "spec": spec}
        )
    return found


class Stage:
    """A cluster with a driver and work on every node, and the playbook."""

    def __init__(self, plane: ControlPlane, mark: str, run: Run) -> None:
        self.plane, self.mark, self.run = plane, mark, run

    def get(self, *words: str) -> Any:
        return json.loads(self.plane.kubectl("get", *words, "-o", "json"))

    def uids(self, app: str) -> set[str]:
        """The pods of a deployment that are ready."""
        pods = self.get("pods", "-n", self.mark, "-l", "app=" + app)["items"]
        return {
            pod["metadata"]["uid"]
            for pod in pods
            if any(
                entry["type"] == "Ready" and entry["status"] == "True"
                for entry in pod["status"].get("conditions", [])
            )
        }

    def marks(self) -> dict[str, dict[str, str]]:
        """Annotations of rolls by node."""
        return {
            node["metadata"]["name"]: {
                key: value
                for key, value in node["metadata"].get("annotations", {}).items()
                if key.startswith("rdma-k8s/")
            }
            for node in self.get("nodes")["items"]
        }

    def cordoned(self) -> list[str]:
        return [
            node["metadata"]["name"]
            for node in self.get("nodes")["items"]
            if node["spec"].get("unschedulable")
        ]

    def ranges(self) -> set[str]:
        """What the devices of all nodes offer."""
        return {
            device["attributes"]["oke.dra.net/rdmaChildIpv4Cidr"]["string"]
            for entry in self.get("resourceslices")["items"]
            for device in entry["spec"].get("devices", [])
            if "oke.dra.net/rdmaChildIpv4Cidr" in device["attributes"]
        }

    def driver(self) -> tuple[str, str]:
        """Strategy and range of the DaemonSet."""
        spec = self.get("daemonset", DRIVER, "-n", NAMESPACE)["spec"]
        words = spec["template"]["spec"]["containers"][0]["args"]
        return spec["updateStrategy"]["type"], words[-1].rpartition("=")[2]


def until(what: str, done: Callable[[], bool], seconds: float = 300) -> None:
    end = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < end, what
        time.sleep(0.5)


def documented() -> list[dict[str, Any]]:
    """The roles of the pages."""
    found: list[dict[str, Any]] = []
    for name in PAGES:
        text = (ROOT / "docs" / "howto" / name).read_text("utf-8")
        for block in re.findall(r"^```yaml\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
            if "rbac.authorization.k8s.io" in block:
                found += yaml.safe_load_all(block)
    return found


def allow(plane: ControlPlane, mark: str) -> list[tuple[str, ...]]:
    """Bind the documented roles to an account; what must be deleted afterwards."""
    made: list[tuple[str, ...]] = []
    for role in documented():
        kind, name = role["kind"], "%s-%s" % (role["metadata"]["name"], mark)
        role["metadata"]["name"] = name
        plane.kubectl("apply", "-f", "-", stdin=json.dumps(role))
        wide = kind == "ClusterRole" and not name.startswith("rdma-k8s-read-drivers")
        where = () if wide else ("-n", NAMESPACE)
        binding = "clusterrolebinding" if wide else "rolebinding"
        account = "--serviceaccount=%s:operator" % mark
        plane.kubectl("create", binding, name, "--%s=%s" % (kind.lower(), name), account, *where)
        made += [(binding, name, *where), (kind.lower(), name, *(where if kind == "Role" else ()))]
    return made


@pytest.fixture(scope="module")
def stage(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """A driver that would be updated as it likes, and work on every node."""
    mark = "roll" + uuid.uuid4().hex[:6]
    found = driver(OLD)
    found["spec"]["updateStrategy"] = {"type": "RollingUpdate"}
    folder = tmp_path_factory.mktemp("run")
    controller = Controller(tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("compiled"))
    run = Run(controller, folder, "rdma.k8s.change_child_range")
    control_plane.kubectl("create", "namespace", mark)
    made = allow(control_plane, mark)
    try:
        kubeconfig = with_user(control_plane, folder, token=token(control_plane, mark, "operator"))
        settings = {"kubeconfig": kubeconfig, "judge": False}
        (folder / "settings.json").write_text(json.dumps(settings), "utf-8")
        items = {"apiVersion": "v1", "kind": "List", "items": [*rights(), found, *workloads(mark)]}
        control_plane.kubectl("apply", "-f", "-", stdin=json.dumps(items))
        there = Stage(control_plane, mark, run)
        until("everything runs", lambda: there.ranges() == {OLD} and len(there.uids("web")) == SIMULATED)
        until("the jobs run", lambda: len(there.uids("train")) == SIMULATED)
        yield there
    finally:
        control_plane.kubectl("delete", "namespace", mark, "--timeout=120s")
        control_plane.kubectl("delete", "ds", DRIVER, "-n", NAMESPACE, "--timeout=60s")
        for entry in rights():
            control_plane.kubectl("delete", entry["kind"], DRIVER, "-n", NAMESPACE, "--ignore-not-found")
        control_plane.kubectl("delete", "deviceclass", mark, "--ignore-not-found")
        wanted = ("-n", NAMESPACE, "-l", "app.kubernetes.io/component=rdma-roll")
        control_plane.kubectl("delete", "configmap", *wanted)
        control_plane.kubectl("delete", "lease", "rdma-roll", "-n", NAMESPACE, "--ignore-not-found")
        for node, marks in Stage(control_plane, mark, run).marks().items():
            control_plane.kubectl("uncordon", node)
            if marks:
                control_plane.kubectl("annotate", "node", node, *[name + "-" for name in marks])
            control_plane.kubectl("label", "node", node, "rdma-k8s/roll-state-")
        for words in made:
            control_plane.kubectl("delete", *words)


def test_from_plan_to_rollback(stage: Stage) -> None:
    """Plan, no yes, a pause in the middle, status, resume, rollback; CPU pods are the same ones all the time."""
    settings = ("-e", "@settings.json")
    change = (*settings, "-e", "child_range=" + NEW)
    cpu = stage.uids("web")

    planned = stage.run(*change, "-e", "action=plan").good()
    assert "ReplicaSet %s/train-" % stage.mark in planned
    assert "%s/web-" % stage.mark not in planned
    asked = stage.run(*change)
    assert asked.failed() == (
        "Nothing was changed, because nobody said yes. Run it again and answer, or with -e confirm=true."
    )
    assert stage.cordoned() == []
    assert not any(stage.marks().values())
    assert stage.driver() == ("RollingUpdate", OLD)

    paused = stage.run(*change, "-e", "confirm=true", "-e", "roll_max_runtime=4")
    sentence = paused.failed()
    assert "is Paused: its time of 4 s is over" in sentence
    assert "Go on with it: ansible-playbook rdma.k8s.change_child_range -e action=resume." in sentence
    assert stage.cordoned() == NODES
    status = stage.run(*settings, "-e", "action=status").good()
    name = re.search(r"^([0-9a-f]{16}): Paused, (\d+) %", status, re.MULTILINE)
    assert name is not None, status
    assert int(name[2]) < 100
    assert "%s -> %s (drain_all)" % (OLD, NEW) in status

    resumed = stage.run(*settings, "-e", "action=resume").good()
    assert "%s: Complete, 100 %%" % name[1] in resumed
    assert (stage.ranges(), stage.driver()) == ({NEW}, ("RollingUpdate", NEW))
    assert stage.cordoned() == []
    assert stage.uids("web") == cpu
    document = stage.run.document()
    rolls = {entry.check[-3:]: entry.status for entry in document.findings if entry.check[5:9] == "ROLL"}
    assert rolls == {
        **dict.fromkeys(("001", "002", "003", "004", "006", "008", "009"), "pass"),
        **dict.fromkeys(("005", "007"), "skip"),
    }
    until("the jobs are back", lambda: len(stage.uids("train")) == SIMULATED)

    back = stage.run(*settings, "-e", "action=rollback", "-e", "confirm=true").good()
    assert "RolledBack, 100 %" in back
    assert (stage.ranges(), stage.driver()) == ({OLD}, ("RollingUpdate", OLD))
    assert stage.cordoned() == []
    assert stage.uids("web") == cpu
    for marks in stage.marks().values():
        assert marks["rdma-k8s/roll-state"] == "Done"
        assert not {"rdma-k8s/roll-owner", "rdma-k8s/roll-lock", "rdma-k8s/initial-unschedulable"} & set(
            marks
        )


def test_a_range_that_does_not_work(stage: Stage) -> None:
    """F50: the service network of the API is in the way; nothing is begun, with or without an inventory."""
    refused = stage.run("-e", "@settings.json", "-e", "child_range=10.96.0.0/11", "-e", "confirm=true")
    sentence = (
        "Nothing was changed, because the range 10.96.0.0/11 overlaps 10.96.0.0/16, which the cluster or"
    )
    assert refused.failed().startswith(sentence)
    assert stage.cordoned() == []
    assert stage.driver() == ("RollingUpdate", OLD)
