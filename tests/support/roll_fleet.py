# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Simulated nodes with a driver, users of RDMA and other pods, in a namespace of their own: what a roll works on."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ansible_collections.rdma.k8s.plugins.module_utils.cluster.client import Cluster
from ansible_collections.rdma.k8s.plugins.module_utils.core.errors import RdmaError

OLD, NEW = "10.208.0.0/12", "172.16.0.0/12"
DRIVER = "rdma-k8s-provider"
CLASS = "roll-nic"
OPTION = "--cloud-provider-options=oke.rdma-child-ipv4-cidr="
IMAGE = "lab.test/pod:1"
MERGE = "application/merge-patch+json"
PREFIX = "rdma-k8s/"
QUICK = {"rdma-lab/stop-seconds": "0.3", "rdma-lab/start-seconds": "0.1"}


def until(what: str, look: Callable[[], Any], patience: float = 90.0) -> Any:
    """Wait until ``look`` gives something true, and return that."""
    end = time.monotonic() + patience
    while True:
        found = look()
        if found:
            return found
        assert time.monotonic() < end, f"{what}: not after {patience:.0f} s"
        time.sleep(0.2)


@dataclass
class Fleet:
    """The nodes and what runs on them.

    :param namespace: of everything but the nodes; it is where the roll keeps its records, too.
    """

    cluster: Cluster
    namespace: str
    nodes: tuple[str, ...]
    mode: str = "webhook"

    @property
    def driver(self) -> str:
        """Name of the DaemonSet whose option is the range."""
        return DRIVER if self.mode == "webhook" else "dranet"

    def path(self, group: str, plural: str, name: str = "") -> str:
        """Where objects of this namespace are."""
        root = f"/apis/{group}" if "/" in group else f"/api/{group}"
        return f"{root}/namespaces/{self.namespace}/{plural}" + (f"/{name}" if name else "")

    # --- making it

    def make(self) -> None:
        """Make everything, and wait until it runs."""
        send = self.cluster.send
        send("POST", "/api/v1/namespaces", {"metadata": {"name": self.namespace}})
        selector = [{"cel": {"expression": 'device.driver == "dra.net"'}}]
        send(
            "POST",
            "/apis/resource.k8s.io/v1/deviceclasses",
            {"metadata": {"name": f"{CLASS}-{self.namespace}"}, "spec": {"selectors": selector}},
        )
        until("a service account", lambda: list(self.cluster.items(self.path("v1", "serviceaccounts"))))
        send("POST", self.path("apps/v1", "daemonsets"), self._daemonset())
        exactly = {"deviceClassName": f"{CLASS}-{self.namespace}", "allocationMode": "All"}
        wanted = {"spec": {"devices": {"requests": [{"name": "nics", "exactly": exactly}]}}}
        send(
            "POST",
            self.path("resource.k8s.io/v1", "resourceclaimtemplates"),
            {"metadata": {"name": "nics"}, "spec": wanted},
        )
        claims = [{"name": "nics", "resourceClaimTemplateName": "nics"}]
        use = {"claims": [{"name": "nics"}]}
        send(
            "POST", self.path("apps/v1", "deployments"), self._deployment("train", use, resourceClaims=claims)
        )
        send("POST", self.path("apps/v1", "deployments"), self._deployment("cpu", {}))
        until("all pods", self.good)

    def remove(self) -> None:
        """Take everything away, and clean the nodes."""
        for node in self.cluster.items("/api/v1/nodes"):
            meta = node["metadata"]
            body = {
                "metadata": {
                    part: {
                        name: None
                        for name in meta.get(part) or {}
                        if name.startswith((PREFIX, "rdma-lab/faults"))
                    }
                    for part in ("annotations", "labels")
                },
                "spec": {"unschedulable": None},
            }
            self.cluster.send("PATCH", f"/api/v1/nodes/{meta['name']}", body, MERGE)
        for rule in self.cluster.items("/apis/resource.k8s.io/v1/devicetaintrules"):
            self.cluster.send(
                "DELETE", f"/apis/resource.k8s.io/v1/devicetaintrules/{rule['metadata']['name']}"
            )
        self.cluster.send("DELETE", f"/apis/resource.k8s.io/v1/deviceclasses/{CLASS}-{self.namespace}")
        self.cluster.send("DELETE", f"/api/v1/namespaces/{self.namespace}")
        until("the namespace is gone", self._gone)

    def _gone(self) -> bool:
        try:
            self.cluster.get(f"/api/v1/namespaces/{self.namespace}")
        except RdmaError as error:
            return error.code == "kube_not_found"
        return False

    def _daemonset(self) -> dict[str, Any]:
        spec = {
            "hostNetwork": True,
            "terminationGracePeriodSeconds": 5,
            "tolerations": [{"operator": "Exists"}],
            "containers": [{"name": "main", "image": IMAGE, "args": ["--v=4", OPTION + OLD]}],
        }
        return {
            "metadata": {"name": self.driver},
            "spec": {
                "selector": {"matchLabels": {"app": self.driver}},
                "updateStrategy": {"type": "RollingUpdate"},
                "template": {
                    "metadata": {"labels": {"app": self.driver}, "annotations": QUICK},
                    "spec": spec,
                },
            },
        }

    def _deployment(self, name: str, resources: dict[str, Any], **spec: Any) -> dict[str, Any]:
        container = {"name": name, "image": IMAGE, "resources": resources}
        spread = {
            "maxSkew": 1,
            "topologyKey": "kubernetes.io/hostname",
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": name}},
        }
        whole = {
            "containers": [container],
            "terminationGracePeriodSeconds": 5,
            "topologySpreadConstraints": [spread],
            **spec,
        }
        return {
            "metadata": {"name": name},
            "spec": {
                "replicas": len(self.nodes),
                "selector": {"matchLabels": {"app": name}},
                "template": {"metadata": {"labels": {"app": name}, "annotations": QUICK}, "spec": whole},
            },
        }

    # --- looking at it

    def pods(self, app: str) -> dict[str, str]:
        """Names of the nodes of running pods, by UID."""
        return {
            pod["metadata"]["uid"]: pod["spec"].get("nodeName", "")
            for pod in self.cluster.items(self.path("v1", "pods"), labelSelector=f"app={app}")
            if "deletionTimestamp" not in pod["metadata"] and pod["status"].get("phase") == "Running"
        }

    def good(self) -> bool:
        """Whether a pod of each kind runs on each node, and all offer one range."""
        kinds = (self.driver, "train", "cpu")
        return (
            all(sorted(self.pods(kind).values()) == sorted(self.nodes) for kind in kinds)
            and len(set(self.values().values())) == 1
        )

    def values(self) -> dict[str, str]:
        """What each node offers; the range of its first device."""
        found = {}
        for one in self.cluster.items(
            "/apis/resource.k8s.io/v1/resourceslices", fieldSelector="spec.driver=dra.net"
        ):
            devices = one["spec"].get("devices") or [{}]
            attribute = (devices[0].get("attributes") or {}).get("oke.dra.net/rdmaChildIpv4Cidr") or {}
            found[one["spec"]["nodeName"]] = attribute.get("string", "")
        return {name: found.get(name, "") for name in self.nodes}

    def node(self, name: str) -> dict[str, Any]:
        """A node."""
        return self.cluster.get(f"/api/v1/nodes/{name}")

    def marks(self, name: str) -> dict[str, str]:
        """The annotations and labels of a roll on a node."""
        meta = self.node(name)["metadata"]
        held = {**(meta.get("annotations") or {}), **(meta.get("labels") or {})}
        return {key[len(PREFIX) :]: text for key, text in held.items() if key.startswith(PREFIX)}

    def fenced(self) -> list[str]:
        """Nodes that are cordoned."""
        return [name for name in self.nodes if self.node(name)["spec"].get("unschedulable")]

    def daemonset(self) -> dict[str, Any]:
        """The DaemonSet of the driver."""
        return self.cluster.get(self.path("apps/v1", "daemonsets", self.driver))

    def told(self) -> list[str]:
        """The command line of the driver."""
        return list(self.daemonset()["spec"]["template"]["spec"]["containers"][0]["args"])

    def strategy(self) -> str:
        """How the driver's pods are replaced."""
        return str(self.daemonset()["spec"]["updateStrategy"]["type"])

    def cordon(self, name: str, on: bool = True) -> None:
        """What a human does."""
        self.cluster.send("PATCH", f"/api/v1/nodes/{name}", {"spec": {"unschedulable": on or None}}, MERGE)
