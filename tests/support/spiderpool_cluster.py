# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A chart in the place of Spiderpool's, and an actor in the place of its controllers.

The definitions of the operator and of Multus are the real ones, from the operator's Go module of the version that the
chart brings (S96). Those of Spiderpool are our own (:mod:`.sriov_crds`), as its module cannot be fetched everywhere.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from ansible_collections.rdma.k8s.plugins.module_utils.cluster.client import Cluster
from ansible_collections.rdma.k8s.plugins.module_utils.core.errors import RdmaError
from ansible_collections.rdma.k8s.tests.support.sriov_crds import CRDS, NAMESPACE, SPIDER, SRIOV, Operator

MODULE = (
    "github.com/k8snetworkplumbingwg/sriov-network-operator",
    "v1.3.0",
    "h1:hQ9xI/SQN3bz1CrSbKByVZX/cc8IvWoaN7+OGmLFKUU=",
)
_CHART = "deployment/sriov-network-operator-chart/crds"
POLICIES = "/apis/%s/v1/namespaces/%s/sriovnetworknodepolicies" % (SRIOV, NAMESPACE)
CONFIGS = "/apis/%s/v2beta1/spidermultusconfigs" % SPIDER
NETWORKS = "/apis/k8s.cni.cncf.io/v1/network-attachment-definitions"
_CONFIG = """\
apiVersion: sriovnetwork.openshift.io/v1
kind: SriovOperatorConfig
metadata: {name: default, namespace: {{ .Release.Namespace }}}
spec:
  disableDrain: {{ .Values.sriov.operatorConfig.disableDrain }}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: spiderpool-conf, namespace: {{ .Release.Namespace }}}
data:
  conf.yml: {{ merge (dict "ipam" .Values.ipam) .Values.spiderpoolController | toJson | quote }}
"""
_PART = {"app.kubernetes.io/component": "spiderpool-controller"}
CONTROLLER: dict[str, Any] = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "spiderpool-controller"},
    "spec": {
        "replicas": 1,
        "selector": {"matchLabels": _PART},
        "template": {
            "metadata": {"labels": _PART},
            "spec": {
                "terminationGracePeriodSeconds": 0,
                "containers": [{"name": "controller", "image": "lab.test/spiderpool-controller:1"}],
                "volumes": [{"name": "configuration", "configMap": {"name": "spiderpool-conf"}}],
            },
        },
    },
}
"""As the chart has it: nothing in it changes with the content of its ConfigMap (S166, S168)."""


def definitions(programs: Any) -> list[dict[str, Any]]:
    """All of them, the real ones first."""
    folder = programs.go_module(*MODULE) / _CHART
    real = [yaml.safe_load(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.yaml"))]
    return [*real, *[crd for crd in CRDS if crd["spec"]["group"] == SPIDER]]


def write_chart(folder: Path, programs: Any) -> Path:
    """A chart with these definitions, the operator's configuration, and a controller that mounts its own."""
    chart = folder / "spiderpool"
    (chart / "crds").mkdir(parents=True)
    (chart / "templates").mkdir()
    about = {"apiVersion": "v2", "name": "spiderpool", "version": "1.2.1", "appVersion": "1.2.1"}
    (chart / "Chart.yaml").write_text(json.dumps(about))
    defaults = {
        "sriov": {"install": False, "operatorConfig": {"disableDrain": True}},
        "ipam": {},
        "spiderpoolController": {"podResourceInject": {"enabled": False}},
    }
    (chart / "values.yaml").write_text(json.dumps(defaults))
    for number, crd in enumerate(definitions(programs)):
        (chart / "crds" / ("%02d.yaml" % number)).write_text(json.dumps(crd))
    (chart / "templates" / "config.yaml").write_text(_CONFIG)
    (chart / "templates" / "controller.yaml").write_text(json.dumps(CONTROLLER))
    return chart


class Actor(threading.Thread):
    """Does what operator, daemon and Spiderpool's controller would do, in the misleading order of S113 to S119.

    :param fails: a node whose daemon fails.
    :param link: the link type of all NICs.
    """

    def __init__(
        self,
        cluster: Cluster,
        nodes: Sequence[str],
        places: tuple[str, ...],
        *,
        fails: str = "",
        link: str = "ETH",
    ) -> None:
        super().__init__(daemon=True)
        self._cluster, self._nodes, self._fails = cluster, nodes, fails
        self._operator = Operator(cluster, places, link)
        self._ended = threading.Event()
        self._resources: set[str] = set()
        self.trouble: list[RdmaError] = []

    def __enter__(self) -> Actor:
        self.start()
        return self

    def __exit__(self, *_about: object) -> None:
        self._ended.set()
        self.join()
        self._free()
        for node in self._nodes:
            try:
                self._operator.forget(node)
            except RdmaError as error:
                if error.code not in ("kube_not_served", "kube_not_found"):
                    raise
        assert self.trouble == []

    def run(self) -> None:
        known: set[str] = set()
        while not self._ended.wait(0.2):
            try:
                for node in set(self._nodes) - known:
                    self._operator.fresh(node)
                    known.add(node)
                self._policies()
                self._networks()
            except RdmaError as error:
                if error.code not in ("kube_not_found", "kube_not_served", "kube_conflict"):
                    self.trouble.append(error)

    def _policies(self) -> None:
        policies = list(self._cluster.items(POLICIES))
        wanted = {"spidernet.io/" + entry["spec"]["resourceName"] for entry in policies}
        if wanted == self._resources:
            return
        if not wanted:
            self._free()
            return
        vfs = policies[0]["spec"]["numVfs"]
        for node in self._nodes:
            self._operator.render(node, vfs)
            self._operator.drain(node, "Drain_Required", "Draining")
            self._operator.say(node, "InProgress", 0)
            self._operator.drain(node, "Idle", "Idle")
            if node == self._fails:
                self._operator.say(node, "Failed", 0, "cannot set sriov_numvfs: cannot allocate memory")
                continue
            self._operator.say(node, "Succeeded", vfs)
            for resource in wanted:
                self._operator.register(node, resource, vfs)
        self._resources = wanted

    def _free(self) -> None:
        for node in self._nodes:
            for resource in self._resources:
                self._operator.register(node, resource, None)
        self._resources = set()

    def _networks(self) -> None:
        """A NetworkAttachmentDefinition of each config; it goes with its config (S90)."""
        there = {
            _ref(entry) for entry in self._cluster.items(NETWORKS) if "owned-by-spiderpool" in _labels(entry)
        }
        wanted = {_ref(entry) for entry in self._cluster.items(CONFIGS)}
        for where, name in wanted - there:
            self._cluster.apply(
                network(where, name, **{"owned-by-spiderpool": "true"}), field_manager="spiderpool"
            )
        for where, name in there - wanted:
            self._cluster.delete(network(where, name))


def network(where: str, name: str, **labels: str) -> dict[str, Any]:
    """A NetworkAttachmentDefinition."""
    return {
        "apiVersion": "k8s.cni.cncf.io/v1",
        "kind": "NetworkAttachmentDefinition",
        "metadata": {"name": name, "namespace": where, "labels": labels},
        "spec": {"config": "{}"},
    }


def _ref(content: dict[str, Any]) -> tuple[str, str]:
    return content["metadata"]["namespace"], content["metadata"]["name"]


def _labels(content: dict[str, Any]) -> dict[str, str]:
    return content["metadata"].get("labels") or {}
