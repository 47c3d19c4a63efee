# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A server of the Kubernetes API with pods on rails behind it, for the modules that look into pods."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ansible_collections.rdma.k8s.tests.support import api_server, exec_api, module_run, rail_pod
from ansible_collections.rdma.k8s.tests.support.list_api import Lists

PODS = "/api/v1/namespaces/rdma/pods"
POOLS = "/apis/spiderpool.spidernet.io/v2beta1/spiderippools"
STATES = "/apis/sriovnetwork.openshift.io/v1/sriovnetworknodestates"


def pod(name: str, node: str = "n1", rails: int = 2, **changes: Any) -> dict[str, Any]:
    """A running pod, as the API tells it."""
    status = [{"name": "rdma/cluster", "interface": "eth0", "default": True}]
    status += [{"name": "rdma/gpu%d" % rail, "interface": "net%d" % rail} for rail in range(1, rails + 1)]
    return {
        "metadata": {
            "name": name,
            "namespace": "rdma",
            "labels": {"app": "tools"},
            "annotations": {"k8s.v1.cni.cncf.io/network-status": json.dumps(status)},
        },
        "spec": {"nodeName": node, "containers": [{"name": "tools"}, {"name": "sidecar"}]},
        "status": {
            "phase": "Running",
            "containerStatuses": [{"name": "tools", "state": {"running": {}}}],
        },
        **changes,
    }


@dataclass
class Scene:
    """A server with pods behind it, and the module that asks it."""

    module: Any
    lists: Lists
    containers: exec_api.Containers
    kubeconfig: str
    requests: list[api_server.Request]

    def add(self, content: dict[str, Any], inside: rail_pod.RailPod) -> None:
        self.lists.objects[PODS].append(content)
        name = content["metadata"]["name"]
        self.lists.objects[PODS + "/" + name] = content  # type: ignore[assignment]
        self.containers.inside["rdma/" + name] = inside.words()

    def good(self, **options: Any) -> dict[str, Any]:
        return module_run.good(self.module, namespace="rdma", kubeconfig=self.kubeconfig, **options)

    def failure(self, **options: Any) -> dict[str, Any]:
        return module_run.failure(
            self.module, **{"namespace": "rdma", "kubeconfig": self.kubeconfig, **options}
        )


@contextmanager
def serving(module: Any, tmp_path: Path) -> Iterator[Scene]:
    subnets = [
        {
            "metadata": {"name": "gpu%d" % rail},
            "spec": {"subnet": "172.16.1%d.0/24" % rail, "gateway": "172.16.1%d.254" % rail},
        }
        for rail in (1, 2)
    ]
    interfaces = [{"pciAddress": "0000:8%d:00.0" % rail, "mtu": 4200} for rail in (1, 2)]
    states = [{"metadata": {"name": name}, "status": {"interfaces": interfaces}} for name in ("n1", "n2")]
    lists = Lists({PODS: [], POOLS: subnets, STATES: states})
    containers = exec_api.Containers()
    with api_server.serving() as api:

        def objects(request: api_server.Request) -> Any:
            found = lists.objects.get(request.path)
            return api_server.Answer(found) if isinstance(found, dict) else lists(request)

        api.route = containers.route(objects)
        yield Scene(module, lists, containers, api.kubeconfig(tmp_path), api.requests)
