# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A slot: a few nodes of the cluster with a driver, users of RDMA and other pods of their own, for one roll at a time.

Each slot has a namespace, in which the roll keeps its lease and its plan too, so that many rolls run side by side on
one control plane and never meet.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from api import MERGE, Api, ApiError
from recorder import RANGE

OLD, NEW = "10.208.0.0/12", "172.16.0.0/12"
SLOT = "rdma-test/slot"
DRIVER = "rdma-k8s-provider"
OPTION = "--cloud-provider-options=oke.rdma-child-ipv4-cidr="
CLASS = "test-rdma"
PREFIX = "rdma-k8s/"
TAINT = "rdma-k8s/roll"
FAULTS = "rdma-lab/faults"
IMAGE = "lab.test/pod:1"
PATIENCE = 120.0


class NotInTimeError(Exception):
    """Something did not come about in time."""


def until(what: str, done: Callable[[], Any], patience: float = PATIENCE, pause: float = 0.25) -> Any:
    """Wait until ``done`` gives something true, and return that."""
    end = time.monotonic() + patience
    while True:
        found = done()
        if found:
            return found
        if time.monotonic() > end:
            raise NotInTimeError(f"{what}: not after {patience:.0f} s")
        time.sleep(pause)


def device_class() -> dict[str, Any]:
    """The class of which all RDMA NICs are."""
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": CLASS},
        "spec": {"selectors": [{"cel": {"expression": 'device.driver == "dra.net"'}}]},
    }


@dataclass
class Slot:
    """One slot.

    :param value: what its nodes offer, between rolls.
    """

    api: Api
    number: int
    nodes: tuple[str, ...]
    cpu_pods: bool = True
    value: str = OLD
    marks: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Its namespace."""
        return f"roll-{self.number:02d}"

    @property
    def other(self) -> str:
        """The value that it does not offer."""
        return NEW if self.value == OLD else OLD

    # --- making it

    def make(self) -> None:
        """Everything that it consists of."""
        self.api.create("/api/v1/namespaces", {"metadata": {"name": self.name}})
        label = {"metadata": {"labels": {SLOT: self.name}}}
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda node: self.api.patch(f"/api/v1/nodes/{node}", label), self.nodes))
        self.api.create(f"/apis/apps/v1/namespaces/{self.name}/daemonsets", self.driver())
        until(
            f"{self.name}: a service account",
            lambda: self.api.items(f"/api/v1/namespaces/{self.name}/serviceaccounts"),
        )
        templates = f"/apis/resource.k8s.io/v1/namespaces/{self.name}/resourceclaimtemplates"
        self.api.create(templates, self.template("nics"))
        self.api.create(
            templates, self.template("canary", tolerations=[{"key": TAINT, "operator": "Exists"}])
        )
        self.employ()

    def employ(self) -> None:
        """Users of RDMA, and others."""
        for deployment in (self.train(), *([self.cpu()] if self.cpu_pods else [])):
            self.api.create(f"/apis/apps/v1/namespaces/{self.name}/deployments", deployment)

    def driver(self) -> dict[str, Any]:
        """The DaemonSet of the driver; as its owner has left it, it replaces its pods by itself."""
        return {
            "metadata": {"name": DRIVER},
            "spec": {
                "selector": {"matchLabels": {"app": DRIVER}},
                "updateStrategy": {"type": "RollingUpdate"},
                "template": {
                    "metadata": {"labels": {"app": DRIVER}, "annotations": {"rdma-lab/stop-seconds": "0.2"}},
                    "spec": {
                        "hostNetwork": True,
                        "terminationGracePeriodSeconds": 5,
                        "nodeSelector": {SLOT: self.name},
                        "tolerations": [{"operator": "Exists"}],
                        "containers": [{"name": "provider", "image": IMAGE, "args": [OPTION + self.value]}],
                    },
                },
            },
        }

    def template(self, name: str, **more: Any) -> dict[str, Any]:
        """Claims for all NICs of a node."""
        exactly = {"deviceClassName": CLASS, "allocationMode": "All", **more}
        request = {"name": "nics", "exactly": exactly}
        return {"metadata": {"name": name}, "spec": {"spec": {"devices": {"requests": [request]}}}}

    def _deployment(self, name: str, spec: dict[str, Any]) -> dict[str, Any]:
        labels = {"app": name}
        told = {"rdma-lab/stop-seconds": "0.3", "rdma-lab/start-seconds": "0.1"}
        spec = {"terminationGracePeriodSeconds": 5, "nodeSelector": {SLOT: self.name}, **spec}
        return {
            "metadata": {"name": name},
            "spec": {
                "replicas": len(self.nodes),
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels, "annotations": told}, "spec": spec},
            },
        }

    def train(self) -> dict[str, Any]:
        """One user of RDMA on each node: each takes all NICs of one."""
        container = {"name": "train", "image": IMAGE, "resources": {"claims": [{"name": "nics"}]}}
        claims = [{"name": "nics", "resourceClaimTemplateName": "nics"}]
        return self._deployment("train", {"containers": [container], "resourceClaims": claims})

    def cpu(self) -> dict[str, Any]:
        """One pod on each node that has nothing to do with RDMA."""
        spread = {
            "maxSkew": 1,
            "topologyKey": "kubernetes.io/hostname",
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": "cpu"}},
        }
        container = {"name": "cpu", "image": IMAGE}
        return self._deployment("cpu", {"containers": [container], "topologySpreadConstraints": [spread]})

    # --- looking at it

    def pods(self, app: str, running: bool = True) -> dict[str, dict[str, Any]]:
        """Pods by UID, without those that are being deleted."""
        path = f"/api/v1/namespaces/{self.name}/pods"
        return {
            pod["metadata"]["uid"]: pod
            for pod in self.api.items(path, labelSelector=f"app={app}")
            if "deletionTimestamp" not in pod["metadata"]
            and (not running or (pod.get("status") or {}).get("phase") == "Running")
        }

    def all_nodes(self) -> list[dict[str, Any]]:
        """Its nodes."""
        return self.api.items("/api/v1/nodes", labelSelector=f"{SLOT}={self.name}")

    def values(self) -> dict[str, str]:
        """What each of its nodes offers; nodes without a slice are left out."""
        found, mine = {}, set(self.nodes)
        for one in self.api.items("/apis/resource.k8s.io/v1/resourceslices"):
            node = one["spec"].get("nodeName", "")
            if node in mine:
                devices = one["spec"].get("devices") or [{}]
                found[node] = (devices[0].get("attributes") or {}).get(RANGE, {}).get("string", "")
        return found

    def daemonset(self) -> dict[str, Any]:
        """The DaemonSet of the driver."""
        return self.api.get(f"/apis/apps/v1/namespaces/{self.name}/daemonsets/{DRIVER}")

    def told_value(self) -> str:
        """The value in the template of the driver."""
        (container,) = self.daemonset()["spec"]["template"]["spec"]["containers"]
        (word,) = [word for word in container["args"] if word.startswith(OPTION)]
        return str(word[len(OPTION) :])

    def good(self) -> bool:
        """Whether it is as it should be between rolls."""
        everything = len(self.nodes)
        return (
            set(self.values().values()) == {self.value}
            and len(self.pods(DRIVER)) == everything
            and len(self.pods("train")) == everything
            and (not self.cpu_pods or len(self.pods("cpu")) == everything)
        )

    # --- between rolls

    def reset(self) -> None:
        """Whatever a roll left: back to nodes without marks and fences that all offer one value."""
        for path in (
            f"/api/v1/namespaces/{self.name}/configmaps",
            f"/apis/coordination.k8s.io/v1/namespaces/{self.name}/leases",
        ):
            for item in self.api.items(path):
                if item["metadata"]["name"].startswith("rdma-roll"):
                    self.api.delete(f"{path}/{item['metadata']['name']}")
        budgets = f"/apis/policy/v1/namespaces/{self.name}/poddisruptionbudgets"
        for item in self.api.items(budgets):
            self.api.delete(f"{budgets}/{item['metadata']['name']}")
        for node in self.all_nodes():
            self.clean(node)
        path = f"/apis/apps/v1/namespaces/{self.name}/daemonsets/{DRIVER}"
        found = self.daemonset()
        if self.told_value() != self.value:
            (container,) = found["spec"]["template"]["spec"]["containers"]
            container["args"] = [OPTION + self.value]
            self.api.patch(path, {"spec": {"template": {"spec": {"containers": [container]}}}})
        if found["spec"]["updateStrategy"]["type"] != "RollingUpdate":
            strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0}}
            self.api.patch(path, {"spec": {"updateStrategy": strategy}})
        until(f"{self.name} is ready for a roll", self.good)

    def clean(self, node: dict[str, Any]) -> None:
        meta = node["metadata"]
        annotations = {
            name: None for name in meta.get("annotations") or {} if name.startswith((PREFIX, FAULTS))
        }
        labels = {name: None for name in meta.get("labels") or {} if name.startswith(PREFIX)}
        if annotations or labels or node["spec"].get("unschedulable"):
            body = {
                "metadata": {"annotations": annotations, "labels": labels},
                "spec": {"unschedulable": None},
            }
            self.api.patch(f"/api/v1/nodes/{meta['name']}", body)

    # --- what tests do to it

    def fault(self, node: str, *faults: str) -> None:
        """Play faults on a simulated node; without any, take all back."""
        text = ",".join(faults) or None
        self.api.patch(f"/api/v1/nodes/{node}", {"metadata": {"annotations": {FAULTS: text}}})

    def cordon(self, node: str, on: bool) -> None:
        """What a human does with kubectl."""
        self.api.patch(f"/api/v1/nodes/{node}", {"spec": {"unschedulable": on or None}})

    def budget(self, app: str, available: int) -> None:
        """A disruption budget."""
        self.api.create(
            f"/apis/policy/v1/namespaces/{self.name}/poddisruptionbudgets",
            {
                "metadata": {"name": app},
                "spec": {"minAvailable": available, "selector": {"matchLabels": {"app": app}}},
            },
        )

    def no_budget(self, app: str) -> None:
        """Take it away."""
        self.api.delete(f"/apis/policy/v1/namespaces/{self.name}/poddisruptionbudgets/{app}")


def record_of(slot: Slot) -> list[dict[str, Any]]:
    """The ConfigMaps of its rolls."""
    return [
        item
        for item in slot.api.items(f"/api/v1/namespaces/{slot.name}/configmaps")
        if item["metadata"]["name"].startswith("rdma-roll-")
    ]


__all__ = ["MERGE", "Api", "ApiError", "Slot", "until"]
