# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What nodes must be before rails are made, as their snapshots and the cluster tell it."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.core.cluster_snapshot import (
    ClusterNode,
    DaemonSet,
    DriverContainer,
)
from ansible_collections.rdma.k8s.plugins.module_utils.core.snapshot import NodeSnapshot
from ansible_collections.rdma.k8s.plugins.module_utils.core.spiderpool import prerequisites, table

PCI = "0000:0c:00.0"
ROW = {"pci": PCI, "subnet": "172.16.11.0/24", "link_type": "eth", "vfs": 8, "mtu": 4200}


def rails(**change: Any) -> Any:
    return table.read([{**ROW, **change}], table.Defaults()).rails


def node(**parts: Any) -> NodeSnapshot:
    """A node with one NIC, with the MTU of the rail."""
    port = {"port": 1, "state": parts.pop("state", "ACTIVE"), "link_layer": parts.pop("layer", "Ethernet")}
    if "sm_lid" in parts:
        port["sm_lid"] = parts.pop("sm_lid")
    document: dict[str, Any] = {
        "name": "w1",
        "pci": [PCI + " 15b3:1021 0200 mlx5_core 0 vfs 0/16"],
        "devices": [{"name": "mlx5_0", "pci": PCI, "ports": [port]}],
        "links": [{"name": "ens1", "pci": PCI, "mtu": 4200}],
        **parts,
    }
    return NodeSnapshot.from_dict(document)


def codes(snapshot: NodeSnapshot, **change: Any) -> list[str]:
    (rail,) = rails(**change)
    return [issue.code for issue in prerequisites.of_rail(rail, snapshot)]


def test_a_good_node() -> None:
    assert codes(node()) == []
    assert codes(node(), pci="", name="ens1") == []


IB = {"link_type": "ib", "mtu": None}
IB_PCI = [PCI + " 15b3:1021 0207 mlx5_core 0 vfs 0/16"]


@pytest.mark.parametrize(
    ("snapshot", "change", "code"),
    [
        (node(pci=[]), {}, "rail-nic-missing"),
        (node(), {"pci": "", "name": "ens9"}, "rail-nic-missing"),
        (node(layer="InfiniBand"), {}, "link-layer-conflict"),
        (node(pci=IB_PCI), {}, "link-layer-conflict"),
        (node(pci=[PCI + " 15b3:101e 0200 mlx5_core 0 vf-of 0000:0b:00.0"]), {}, "rail-nic-is-vf"),
        (node(pci=[PCI + " 15b3:1021 0200 mlx5_core 0"]), {}, "sriov-off"),
        (node(pci=[PCI + " 15b3:1021 0200 mlx5_core 0 vfs 0/4"]), {}, "numvfs-needs-firmware"),
        (node(links=[{"name": "ens1", "pci": PCI, "mtu": 1500}]), {}, "mtu-exceeds-pf"),
        (node(layer="InfiniBand", pci=IB_PCI, sm_lid=0), IB, "subnet-manager-missing"),
        (node(layer="InfiniBand", pci=IB_PCI, sm_lid=1, state="INIT"), IB, "subnet-manager-missing"),
    ],
)
def test_a_node_that_cannot_have_the_rail(snapshot: NodeSnapshot, change: dict[str, Any], code: str) -> None:
    """S32, S36, S43, S75, S242."""
    assert code in codes(snapshot, **change)


def test_what_is_right_or_not_known_says_nothing() -> None:
    assert codes(node(layer="InfiniBand", pci=IB_PCI, sm_lid=1), **IB) == []
    assert codes(node(links=[{"name": "ens1", "pci": PCI, "mtu": 1500}]), mtu=None) == []
    assert codes(NodeSnapshot.from_dict({"name": "w1"})) == []
    without_links = NodeSnapshot.from_dict(
        {"name": "w1", "pci": [PCI + " 15b3:1021 0200 mlx5_core 0 vfs 0/16"]}
    )
    assert codes(without_links, pci="", name="ens1") == []
    assert codes(without_links) == []


@pytest.mark.parametrize(
    ("kernel", "netns", "mode", "change", "found"),
    [
        ("4.18.0-553.el8", None, "exclusive", {}, ["exclusive-unsupported"]),
        ("4.18.0-553.el8", "shared", "exclusive", {}, []),
        ("4.18.0-553.el8", None, "shared", {}, []),
        ("5.3.0", None, "exclusive", {}, []),
        ("5.4.0-100", "exclusive", "exclusive", IB, ["ib-isolation-unsupported"]),
        ("5.6.0", "exclusive", "exclusive", IB, []),
        ("5.4.0-100", "exclusive", "exclusive", {}, []),
        ("", None, "exclusive", {}, []),
    ],
)
def test_kernels(kernel: str, netns: Any, mode: str, change: dict[str, Any], found: list[str]) -> None:
    """S5, S6: a driver of OFED brings the exclusive mode to older kernels, which then tell a mode."""
    snapshot = node(host={"kernel": kernel}, rdma={"netns_mode": netns})
    issues = prerequisites.of_node(rails(**change), snapshot, mode)
    assert [issue.code for issue in issues] == found


@pytest.mark.parametrize(
    ("name", "given", "lost"),
    [
        ("calico-node", (), "IP_AUTODETECTION_METHOD and IP6_AUTODETECTION_METHOD is not set"),
        ("calico-node", ("IP_AUTODETECTION_METHOD",), "IP6_AUTODETECTION_METHOD is not set"),
        ("calico-node", ("IP_AUTODETECTION_METHOD", "IP6_AUTODETECTION_METHOD"), ""),
        ("cilium", (), ""),
    ],
)
def test_calico(name: str, given: tuple[str, ...], lost: str) -> None:
    """S40: the guide pins both."""
    daemonset = DaemonSet("kube-system", name, containers=(DriverContainer("c", environment=given),))
    messages = [issue.message for issue in prerequisites.of_calico([daemonset])]
    assert [message.startswith(lost) for message in messages] == ([True] if lost else [])


def test_addresses_of_nodes() -> None:
    """S40."""
    found = ClusterNode("w1", addresses=("Hostname w1", "InternalIP 172.16.11.7", "InternalIP 10.0.0.1"))
    (issue,) = prerequisites.of_addresses(rails(), found)
    assert (issue.code, "InternalIP 172.16.11.7" in issue.message) == ("internal-ip-on-rail", True)
    assert list(prerequisites.of_addresses(rails(subnet="172.16.12.0/24"), found)) == []
