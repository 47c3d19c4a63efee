# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The control plane, computed without touching anything: addresses, ports, command lines, files."""

from __future__ import annotations

import collections.abc
import dataclasses
import ipaddress
import json
import pathlib

from . import plan
from .qemu import API_ADDRESS

SERVICE_NETWORK = ipaddress.IPv4Network("10.96.0.0/16")
POD_NETWORK = ipaddress.IPv4Network("10.244.0.0/16")
"""Of it, simulated nodes have blocks of 64 from the beginning, virtual ones the last blocks of 64."""
POD_BLOCK = 26
FIRST_PORT = 26000
PORT_STEP = 32
PORT_BLOCKS = 40
FIXED_PORTS = ("api", "etcd", "etcd-peer", "controller-manager", "scheduler")
PARTS = ("etcd", "egress", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "simulator")
"""Processes of a control plane, in the order of starting."""
SERVICE_ADDRESS = SERVICE_NETWORK.network_address + 1
"""Where a pod finds it."""
KUBELET_PORT = 10250
LEASE = 60
"""Seconds for which a node's lease is good; emulated kubelets are slow."""
GRACE = 90
"""Seconds without a heartbeat until a node counts as gone."""


@dataclasses.dataclass(frozen=True)
class ClusterSpec:
    """All that the user decides about a cluster."""

    nodes: int = 0
    simulated: int = 0
    simulated_rails: int = 16
    node_grace: int = GRACE


@dataclasses.dataclass(frozen=True)
class Plane:
    """One control plane: its lab's name, its first port, and where its files and programs are."""

    name: str
    base_port: int
    directory: pathlib.Path
    program: collections.abc.Callable[[str], pathlib.Path]
    spec: ClusterSpec = ClusterSpec()

    def port(self, what: str) -> int:
        """The port on 127.0.0.1 of a part."""
        return self.base_port + FIXED_PORTS.index(what)

    def kubelet_port(self, node: int) -> int:
        """The port on 127.0.0.1 that leads to the kubelet of a virtual node."""
        return self.base_port + len(FIXED_PORTS) + node

    def url(self) -> str:
        """Where this machine finds the API server."""
        return f"https://127.0.0.1:{self.port('api')}"

    def file(self, name: str) -> str:
        """Path of one of the files."""
        return str(self.directory / name)


def process_name(cluster: str, part: str) -> str:
    """What a process is called on its command line, by which it is recognised before it is ended."""
    return f"rdma-lab-{cluster}-{part}"


def ports(base: int) -> range:
    """All ports of the block that begins at ``base``."""
    return range(base, base + len(FIXED_PORTS) + plan.MAX_NODES + 1)


def pod_block(node: int) -> ipaddress.IPv4Network:
    """Addresses of the pods on virtual node ``node``; the blocks are the last of the network."""
    blocks = 1 << (POD_BLOCK - POD_NETWORK.prefixlen)
    first = int(POD_NETWORK.network_address) + (blocks - node) * (1 << (32 - POD_BLOCK))
    return ipaddress.IPv4Network((first, POD_BLOCK))


def certificate_arguments(plane: Plane) -> list[str]:
    """What the program that makes the certificates is told."""
    hosts = ["127.0.0.1", "localhost", str(API_ADDRESS), str(SERVICE_ADDRESS), "kubernetes", "kubernetes.default",
             "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"]  # fmt: skip
    nodes = ",".join(f"node{node}={plan.vnic_address(node)}" for node in range(1, plan.MAX_NODES + 1))
    return ["certs", "--directory", plane.file("pki"), "--hosts", ",".join(hosts), "--nodes", nodes]


def kubeconfig(server: str, pki: collections.abc.Mapping[str, str]) -> str:
    """A kubeconfig; ``pki`` holds ``ca``, ``certificate`` and ``key``, as paths or (with ``-data``) as base64."""
    suffix = "-data" if "ca-data" in pki else ""
    cluster = {f"certificate-authority{suffix}": pki[f"ca{suffix}"], "server": server}
    user = {
        f"client-certificate{suffix}": pki[f"certificate{suffix}"],
        f"client-key{suffix}": pki[f"key{suffix}"],
    }
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "lab", "cluster": cluster}],
        "users": [{"name": "lab", "user": user}],
        "contexts": [{"name": "lab", "context": {"cluster": "lab", "user": "lab"}}],
        "current-context": "lab",
    }
    return json.dumps(config, indent=2) + "\n"


def files(plane: Plane) -> dict[str, str]:
    """The files of a control plane but for the certificates, by name. All are JSON, which is YAML too."""
    pki = plane.directory / "pki"
    found = {}
    for user in ("admin", "controller-manager", "scheduler", "simulator"):
        paths = {"ca": f"{pki}/ca.crt", "certificate": f"{pki}/{user}.crt", "key": f"{pki}/{user}.key"}
        found[f"{user}.kubeconfig"] = kubeconfig(plane.url(), paths)
    secret = ["secrets", "configmaps", "serviceaccounts/token"]
    # Bodies of what changes and of what fails; reading and heartbeats by their metadata only.
    quiet = {
        "resources": [
            {"group": "coordination.k8s.io", "resources": ["leases"]},
            {"group": "", "resources": ["events"]},
        ]
    }
    audit = {
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "omitStages": ["RequestReceived"],
        "rules": [
            {"level": "None", "nonResourceURLs": ["/healthz*", "/livez*", "/readyz*", "/version", "/openapi/*"]},
            {"level": "None", **quiet},
            {"level": "None", "verbs": ["get", "list", "watch"], "users": [
                "system:kube-controller-manager", "system:kube-scheduler", "system:apiserver", "lab-simulator"]},
            {"level": "Metadata", "users": ["lab-simulator"]},
            {"level": "Metadata", "verbs": ["get", "list", "watch"]},
            {"level": "Metadata", "resources": [{"group": "", "resources": secret}]},
            {"level": "Request"},
        ],
    }  # fmt: skip
    proxy = {
        "connection": {
            "proxyProtocol": "HTTPConnect",
            "transport": {"uds": {"udsName": plane.file("egress.sock")}},
        }
    }
    egress = {
        "apiVersion": "apiserver.k8s.io/v1beta1",
        "kind": "EgressSelectorConfiguration",
        "egressSelections": [{"name": "cluster", **proxy}],
    }
    ways = {f"{plan.vnic_address(node)}:{KUBELET_PORT}": f"127.0.0.1:{plane.kubelet_port(node)}"
            for node in range(1, plan.MAX_NODES + 1)}  # fmt: skip
    found["audit-policy.json"] = json.dumps(audit, indent=2) + "\n"
    found["egress.json"] = json.dumps(egress, indent=2) + "\n"
    found["ways.json"] = json.dumps(ways, indent=2) + "\n"
    return found


def command(plane: Plane, part: str) -> list[str]:
    """The command line of one part; its first word is the program's file."""
    make = {
        "etcd": _etcd,
        "egress": _egress,
        "kube-apiserver": _api,
        "kube-controller-manager": _controllers,
        "kube-scheduler": _scheduler,
        "simulator": _simulator,
    }[part]
    return make(plane)


def _etcd(plane: Plane) -> list[str]:
    client, peer = (f"https://127.0.0.1:{plane.port(what)}" for what in ("etcd", "etcd-peer"))
    pki = plane.file("pki")
    options = {
        "name": "lab",
        "data-dir": plane.file("etcd"),
        "listen-client-urls": client,
        "advertise-client-urls": client,
        "listen-peer-urls": peer,
        "initial-advertise-peer-urls": peer,
        "initial-cluster": f"lab={peer}",
        "cert-file": f"{pki}/etcd.crt",
        "key-file": f"{pki}/etcd.key",
        "client-cert-auth": "true",
        "trusted-ca-file": f"{pki}/etcd-ca.crt",
        "peer-cert-file": f"{pki}/etcd.crt",
        "peer-key-file": f"{pki}/etcd.key",
        "peer-client-cert-auth": "true",
        "peer-trusted-ca-file": f"{pki}/etcd-ca.crt",
        # The data of a lab need not survive the machine, and its disk is slow.
        "unsafe-no-fsync": "true",
        "quota-backend-bytes": str(2 << 30),
        "log-level": "warn",
    }
    return [str(plane.program("etcd")), *_flags(options)]


def _egress(plane: Plane) -> list[str]:
    return [
        str(plane.program("labkube")),
        "egress",
        *_flags({"socket": plane.file("egress.sock"), "table": plane.file("ways.json")}),
    ]


def _api(plane: Plane) -> list[str]:
    pki = plane.file("pki")
    options = {
        "advertise-address": str(API_ADDRESS),
        "bind-address": "127.0.0.1",
        "secure-port": str(plane.port("api")),
        "service-cluster-ip-range": str(SERVICE_NETWORK),
        "etcd-servers": f"https://127.0.0.1:{plane.port('etcd')}",
        "etcd-cafile": f"{pki}/etcd-ca.crt",
        "etcd-certfile": f"{pki}/etcd-client.crt",
        "etcd-keyfile": f"{pki}/etcd-client.key",
        "client-ca-file": f"{pki}/ca.crt",
        "tls-cert-file": f"{pki}/apiserver.crt",
        "tls-private-key-file": f"{pki}/apiserver.key",
        "kubelet-certificate-authority": f"{pki}/ca.crt",
        "kubelet-client-certificate": f"{pki}/apiserver-kubelet.crt",
        "kubelet-client-key": f"{pki}/apiserver-kubelet.key",
        "kubelet-preferred-address-types": "InternalIP",
        "service-account-issuer": "https://kubernetes.default.svc.cluster.local",
        "service-account-key-file": f"{pki}/sa.pub",
        "service-account-signing-key-file": f"{pki}/sa.key",
        "authorization-mode": "Node,RBAC",
        "enable-admission-plugins": "NodeRestriction",
        "allow-privileged": "true",
        "egress-selector-config-file": plane.file("egress.json"),
        "audit-policy-file": plane.file("audit-policy.json"),
        "audit-log-path": plane.file("audit.log"),
        "audit-log-maxsize": "200",
        "audit-log-maxbackup": "2",
        # Priority and fairness would make a thousand nodes of one user wait for each other.
        "max-requests-inflight": "2000",
        "max-mutating-requests-inflight": "1000",
        "profiling": "false",
    }
    return [str(plane.program("kube-apiserver")), *_flags(options)]


def _controllers(plane: Plane) -> list[str]:
    pki, config = plane.file("pki"), plane.file("controller-manager.kubeconfig")
    options = {
        "kubeconfig": config,
        "authentication-kubeconfig": config,
        "authorization-kubeconfig": config,
        "bind-address": "127.0.0.1",
        "secure-port": str(plane.port("controller-manager")),
        "root-ca-file": f"{pki}/ca.crt",
        "client-ca-file": f"{pki}/ca.crt",
        "cluster-signing-cert-file": f"{pki}/ca.crt",
        "cluster-signing-key-file": f"{pki}/ca.key",
        "service-account-private-key-file": f"{pki}/sa.key",
        "use-service-account-credentials": "true",
        "service-cluster-ip-range": str(SERVICE_NETWORK),
        "cluster-cidr": str(POD_NETWORK),
        "allocate-node-cidrs": "false",
        "node-monitor-grace-period": f"{plane.spec.node_grace}s",
        "node-monitor-period": "2s",
        "leader-elect": "false",
        "kube-api-qps": "200",
        "kube-api-burst": "400",
        "profiling": "false",
    }
    return [str(plane.program("kube-controller-manager")), *_flags(options)]


def _scheduler(plane: Plane) -> list[str]:
    config = plane.file("scheduler.kubeconfig")
    options = {
        "kubeconfig": config,
        "authentication-kubeconfig": config,
        "authorization-kubeconfig": config,
        "bind-address": "127.0.0.1",
        "secure-port": str(plane.port("scheduler")),
        "leader-elect": "false",
        "kube-api-qps": "200",
        "kube-api-burst": "400",
        "profiling": "false",
    }
    return [str(plane.program("kube-scheduler")), *_flags(options)]


def _simulator(plane: Plane) -> list[str]:
    options = {
        "kubeconfig": plane.file("simulator.kubeconfig"),
        "nodes": str(plane.spec.simulated),
        "rails": str(plane.spec.simulated_rails),
        # Four renewals within the grace: one that is late does not make a node look gone.
        "heartbeat": f"{max(2, plane.spec.node_grace // 4)}s",
    }
    return [str(plane.program("labkube")), "sim", *_flags(options)]


def _flags(options: dict[str, str]) -> list[str]:
    return [f"--{name}={value}" for name, value in options.items()]
