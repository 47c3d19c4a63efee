# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The control plane as a function of its plan: ports, addresses, command lines, files."""

from __future__ import annotations

import json
import pathlib

import pytest

from ansible_collections.rdma.k8s.tests.lab import control, plan

DIRECTORY = pathlib.Path("/c/one")


def plane(**wishes: int) -> control.Plane:
    """A plane with programs in ``/p``."""
    return control.Plane(
        "one", 26000, DIRECTORY, lambda name: pathlib.Path("/p") / name, control.ClusterSpec(**wishes)
    )


def flags(part: str, **wishes: int) -> dict[str, str]:
    """The options of a part's command line."""
    words = [word for word in control.command(plane(**wishes), part) if word.startswith("--")]
    return dict(word.removeprefix("--").split("=", 1) for word in words)


def test_every_port_is_used_once_and_lies_in_the_block() -> None:
    own = plane()
    taken = [own.port(what) for what in control.FIXED_PORTS]
    taken += [own.kubelet_port(node) for node in range(1, plan.MAX_NODES + 1)]
    assert len(set(taken)) == len(taken)
    assert set(taken) <= set(control.ports(26000))
    assert control.ports(26000)[-1] < control.ports(26000 + control.PORT_STEP)[0]


def test_pods_of_virtual_nodes_never_meet_those_of_simulated_ones() -> None:
    """Simulated node 1000 has the block that begins at address 999 * 64."""
    blocks = [control.pod_block(node) for node in range(1, plan.MAX_NODES + 1)]
    assert str(blocks[0]) == "10.244.255.192/26"
    assert all(block.subnet_of(control.POD_NETWORK) for block in blocks)
    assert len(set(blocks)) == plan.MAX_NODES
    last_simulated = int(control.POD_NETWORK.network_address) + 1000 * 64 - 1
    assert min(int(block.network_address) for block in blocks) > last_simulated


def test_networks_do_not_meet() -> None:
    networks = [
        control.POD_NETWORK,
        control.SERVICE_NETWORK,
        plan.CHILD_RANGE,
        plan.OCA_NETWORK,
        plan.VNIC_SUBNET,
    ]
    for number, one in enumerate(networks):
        assert not any(one.overlaps(other) for other in networks[number + 1 :])


@pytest.mark.parametrize("part", control.PARTS)
def test_nothing_listens_beyond_this_machine(part: str) -> None:
    words = control.command(plane(simulated=3), part)
    assert words[0] in {f"/p/{part}", "/p/labkube"}
    for name, value in flags(part, simulated=3).items():
        if name in ("bind-address", "listen-client-urls", "listen-peer-urls"):
            assert "127.0.0.1" in value
    assert not any("0.0.0.0" in word for word in words)


def test_the_api_server_records_who_does_what() -> None:
    own = flags("kube-apiserver")
    assert own["audit-log-path"] == "/c/one/audit.log"
    policy = json.loads(control.files(plane())[pathlib.Path(own["audit-policy-file"]).name])
    assert policy["rules"][-1] == {"level": "Request"}
    secrets = [rule for rule in policy["rules"] if "secrets" in str(rule)]
    assert [rule["level"] for rule in secrets] == ["Metadata"]


def test_the_api_server_reaches_kubelets_through_the_proxy() -> None:
    files = control.files(plane())
    (selection,) = json.loads(files["egress.json"])["egressSelections"]
    assert selection["name"] == "cluster"
    assert selection["connection"]["transport"]["uds"]["udsName"] == flags("egress")["socket"]
    ways = json.loads(files["ways.json"])
    assert ways["10.140.77.19:10250"] == f"127.0.0.1:{plane().kubelet_port(1)}"
    assert len(set(ways.values())) == plan.MAX_NODES


def test_etcd_trusts_nobody_of_the_cluster() -> None:
    assert flags("etcd")["trusted-ca-file"] == "/c/one/pki/etcd-ca.crt"
    assert flags("kube-apiserver")["client-ca-file"] == "/c/one/pki/ca.crt"


def test_the_grace_of_a_node_is_the_users() -> None:
    assert flags("kube-controller-manager", node_grace=7)["node-monitor-grace-period"] == "7s"
    assert flags("simulator", simulated=3, simulated_rails=2, node_grace=40) == {
        "kubeconfig": "/c/one/simulator.kubeconfig",
        "nodes": "3",
        "rails": "2",
        "heartbeat": "10s",
    }


def test_certificates_for_all_names_of_the_server() -> None:
    words = control.certificate_arguments(plane())
    hosts = words[words.index("--hosts") + 1].split(",")
    assert {"127.0.0.1", "10.140.64.3", "10.96.0.1", "kubernetes.default.svc"} <= set(hosts)
    nodes = words[words.index("--nodes") + 1].split(",")
    assert nodes[0] == "node1=10.140.77.19"
    assert len(nodes) == plan.MAX_NODES


def test_kubeconfig_with_paths_and_with_content() -> None:
    paths = json.loads(control.kubeconfig("https://x", {"ca": "/a", "certificate": "/b", "key": "/c"}))
    assert paths["clusters"][0]["cluster"] == {"certificate-authority": "/a", "server": "https://x"}
    inside = json.loads(
        control.kubeconfig("https://x", {"ca-data": "A", "certificate-data": "B", "key-data": "C"})
    )
    assert inside["users"][0]["user"] == {"client-certificate-data": "B", "client-key-data": "C"}
