# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Simulated nodes of the lab's control plane as Lingjun nodes, with a DaemonSet in the place of the device plugin.

API server, scheduler and the controllers of DaemonSets and Jobs are real. What a kubelet with the plugin does is done
here: tokens in the status of a node, logs, and the containers of the pod test, whose program runs in namespaces of this
machine (``pod_container``). The simulator starts and ends the pods themselves.
"""

from __future__ import annotations

import contextlib
import datetime
import http.server
import ipaddress
import json
import ssl
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ansible_collections.rdma.k8s.plugins.module_utils.cluster.client import Cluster
from ansible_collections.rdma.k8s.plugins.module_utils.core.ack import names, pod_test
from ansible_collections.rdma.k8s.plugins.module_utils.core.errors import RdmaError
from ansible_collections.rdma.k8s.tests.support import pod_container
from ansible_collections.rdma.k8s.tests.support.pod_container import Container

PATIENCE = 60
LABELS = {
    names.WORKER_LABEL: names.WORKER_VALUE,
    names.ENI_LABEL: names.ENI_VALUE,
    names.POOL_LABEL: "np0001",
    "service.alibabacloud.com/exclude-node": "true",
    "alibabacloud.com/lingjun-hpnzone": "A1",
    "alibabacloud.com/lingjun-zoneid": "cn-beijing-l",
    "alibabacloud.com/lingjun-machine-type": "efg1.nvga8n",
}
TAINT = {"key": names.TAINT_KEY, "effect": "NoSchedule"}
_MERGE, _STRATEGIC = "application/merge-patch+json", "application/strategic-merge-patch+json"
_PORT = 10250


def plugin(daemonset: str = names.DAEMONSET) -> dict[str, Any]:
    """A DaemonSet like that of the add-on: it tolerates everything, and only prefers Lingjun nodes (A1, A3, A4)."""
    labels = {"app": daemonset}
    term = {"matchExpressions": [{"key": names.WORKER_LABEL, "operator": "In", "values": ["true"]}]}
    preferred = [{"weight": 100, "preference": term}]
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": daemonset, "namespace": names.NAMESPACE},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "hostNetwork": True,
                    "terminationGracePeriodSeconds": 0,
                    "tolerations": [{"operator": "Exists"}],
                    "affinity": {
                        "nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}
                    },
                    "containers": [
                        {
                            "name": "plugin",
                            "image": "registry.example.org/acs/k8s-rdma-sriov-dev-plugin:v1.1.5",
                            "securityContext": {"privileged": True},
                            "volumeMounts": [
                                {"name": "plugins", "mountPath": "/var/lib/kubelet/device-plugins"}
                            ],
                        }
                    ],
                    "volumes": [{"name": "plugins", "hostPath": {"path": "/var/lib/kubelet/device-plugins"}}],
                },
            },
        },
    }


class Lingjun:
    """The nodes, and hands to change them.

    :param directory: of the cluster, with its certificates and the ways to kubelets.
    """

    def __init__(self, cluster: Cluster, nodes: list[str], directory: Path) -> None:
        self.cluster, self.nodes, self._directory = cluster, nodes, directory
        self._labels: dict[str, dict[str, Any]] = {}

    def adopt(self, node: str) -> None:
        """Make a node a Lingjun node with 1000 tokens."""
        content = self.cluster.get("/api/v1/nodes/" + node)
        self._labels.setdefault(node, content["metadata"]["labels"])
        self.label(node, **LABELS)
        self._patch(node, {"spec": {"taints": [TAINT]}})
        self.tokens(node, "1k", "1k")

    def release(self) -> None:
        """Make all nodes what they were."""
        for node, before in self._labels.items():
            now = self.cluster.get("/api/v1/nodes/" + node)
            added = [key for key in now["metadata"]["labels"] if key not in before]
            self.label(node, **dict.fromkeys(added))
            taints = [entry for entry in now["spec"].get("taints") or () if entry["key"] != names.TAINT_KEY]
            self._patch(node, {"spec": {"taints": taints or None}})
            resources = [name for name in now["status"]["capacity"] if name.startswith("rdma/")]
            for resource in resources:
                self.tokens(node, None, None, resource)

    @contextlib.contextmanager
    def with_plugin(self, pods: int) -> Iterator[Lingjun]:
        """The nodes are Lingjun nodes, and the plugin runs in so many pods; all of it ends with the context."""
        try:
            for node in self.nodes:
                self.adopt(node)
            self.cluster.apply(plugin())
            self.wait_for_plugin(pods)
            yield self
        finally:
            self.cluster.delete(plugin())
            self.release()

    def label(self, node: str, **labels: Any) -> None:
        """Set labels; ``None`` removes one."""
        self._patch(node, {"metadata": {"labels": labels}})

    def tokens(self, node: str, capacity: Any, allocatable: Any, resource: str = names.RESOURCE) -> None:
        """What a kubelet tells of the resource; ``None``: nothing."""
        status = {"capacity": {resource: capacity}, "allocatable": {resource: allocatable}}
        self.cluster.send("PATCH", "/api/v1/nodes/%s/status" % node, {"status": status}, _STRATEGIC)

    def _patch(self, node: str, content: dict[str, Any]) -> None:
        self.cluster.send("PATCH", "/api/v1/nodes/" + node, content, _MERGE)

    def wait_for_plugin(self, ready: int, daemonset: str = names.DAEMONSET) -> None:
        """Until the real controller counts that many ready pods."""
        path = "/apis/apps/v1/namespaces/%s/daemonsets/%s" % (names.NAMESPACE, daemonset)
        end = time.monotonic() + PATIENCE
        while True:
            status = self.cluster.get(path).get("status") or {}
            if status.get("numberReady", 0) == ready and status.get("observedGeneration"):
                return
            assert time.monotonic() < end, status
            time.sleep(0.2)

    def plugin_pod(self, node: str) -> str:
        """The name of the plugin's pod of a node."""
        query = {"labelSelector": "app=" + names.DAEMONSET, "fieldSelector": "spec.nodeName=" + node}
        (pod,) = self.cluster.items("/api/v1/namespaces/%s/pods" % names.NAMESPACE, 10, **query)
        return str(pod["metadata"]["name"])

    def crash(self, node: str) -> str:
        """Let the plugin's pod of a node look like one that crashes; its name."""
        name = self.plugin_pod(node)
        path = "/api/v1/namespaces/%s/pods/%s" % (names.NAMESPACE, name)
        pod = self.cluster.get(path)
        for condition in pod["status"]["conditions"]:
            if condition["type"] in ("Ready", "ContainersReady"):
                condition["status"] = "False"
        container = pod["status"]["containerStatuses"][0]
        container.update(ready=False, started=False, restartCount=7)
        container["state"] = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off"}}
        container["lastState"] = {"terminated": {"exitCode": 1, "reason": "Error"}}
        self.cluster.send("PUT", path + "/status", pod)
        return name

    @contextlib.contextmanager
    def logs(self, node: str, lines: list[str]) -> Iterator[list[str]]:
        """A kubelet of a node that has logs: the API server asks it by TLS, with its own certificate.

        Yields the paths that it asks for.
        """
        asked: list[str] = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                asked.append(self.path)
                data = "\n".join(lines).encode()
                self.send_response(200)
                self.send_header("Content-Type", "text/plain")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        content = self.cluster.get("/api/v1/nodes/" + node)
        (address,) = [
            entry["address"] for entry in content["status"]["addresses"] if entry["type"] == "InternalIP"
        ]
        endpoint = {"status": {"daemonEndpoints": {"kubeletEndpoint": {"Port": _PORT}}}}
        self.cluster.send("PATCH", "/api/v1/nodes/%s/status" % node, endpoint, _STRATEGIC)
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads = True
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(_certificate(self._directory, address))
        server.socket = context.wrap_socket(server.socket, server_side=True)
        ways = self._directory / "ways.json"
        before = ways.read_text("utf-8")
        table = json.loads(before)
        table["%s:%d" % (address, _PORT)] = "127.0.0.1:%d" % server.server_address[1]
        ways.write_text(json.dumps(table), encoding="utf-8")
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield asked
        finally:
            ways.write_text(before, encoding="utf-8")
            server.shutdown()
            thread.join()
            server.server_close()


def _certificate(directory: Path, address: str) -> str:
    """A certificate of a kubelet by the authority of the cluster, with its key, in a file."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    pki = directory / "pki"
    authority = x509.load_pem_x509_certificate((pki / "ca.crt").read_bytes())
    signer: Any = serialization.load_pem_private_key((pki / "ca.key").read_bytes(), None)
    key = ec.generate_private_key(ec.SECP256R1())
    now = datetime.datetime.now(datetime.timezone.utc)
    made = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "kubelet")]))
        .issuer_name(authority.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(minutes=5))
        .not_valid_after(now + datetime.timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(address))]), False)
        .sign(signer, hashes.SHA256())
    )
    file = directory / "log-kubelet.pem"
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    file.write_bytes(private + made.public_bytes(serialization.Encoding.PEM))
    return str(file)


class Containers:
    """Runs the containers of the pod test, as the container runtime of each node would.

    :param by_node: what the container of a node gets. A pod on another node never ends.
    :param cut: nodes whose termination message is cut off, as a long one is.
    """

    def __init__(self, cluster: Cluster, by_node: dict[str, Container], cut: tuple[str, ...] = ()) -> None:
        self.ran: list[dict[str, Any]] = []
        """The pods whose containers ran."""
        self.printed: dict[str, str] = {}
        self._cluster, self._by_node, self._cut = cluster, by_node, cut
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._work, daemon=True)

    def __enter__(self) -> Containers:
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._stop.set()
        self._thread.join()

    def _work(self) -> None:
        selector = "app.kubernetes.io/name=" + pod_test.NAME
        done: set[str] = set()
        while not self._stop.wait(0.2):
            for pod in self._cluster.items("/api/v1/pods", labelSelector=selector):
                node, uid = pod["spec"].get("nodeName"), pod["metadata"]["uid"]
                if pod["status"].get("phase") != "Running" or uid in done or node not in self._by_node:
                    continue
                done.add(uid)
                self._finish(pod, node)

    def _finish(self, pod: dict[str, Any], node: str) -> None:
        command = pod["spec"]["containers"][0]["command"]
        assert command[:2] == ["sh", "-c"]
        _printed, message = pod_container.run(self._by_node[node], command[2])
        evidence = pod_container.as_given(self._by_node[node], json.loads(message))
        message = json.dumps(evidence)
        self.printed[node] = message
        self.ran.append(pod)
        status = pod["status"]
        state = {
            "exitCode": 0,
            "reason": "Completed",
            "message": message[-60:] if node in self._cut else message,
        }
        status["phase"] = "Succeeded"
        status["containerStatuses"][0]["state"] = {"terminated": state}
        status["containerStatuses"][0]["ready"] = False
        path = "/api/v1/namespaces/%s/pods/%s/status" % (
            pod["metadata"]["namespace"],
            pod["metadata"]["name"],
        )
        with contextlib.suppress(RdmaError):  # the pod was removed meanwhile
            self._cluster.send("PUT", path, pod)
