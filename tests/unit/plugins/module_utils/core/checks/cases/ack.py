# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Cases of the area ACK: healthy Lingjun nodes and their cluster, one edit each."""

from __future__ import annotations

# pylint: disable=kwarg-superseded-by-positional-arg  # what fleet.edit_* take after their names are changes
from dataclasses import replace
from typing import Any, Optional

from ansible_collections.rdma.k8s.plugins.module_utils.core.checks.judge import NodeInput
from ansible_collections.rdma.k8s.plugins.module_utils.core.cluster_snapshot import (
    ApiServer,
    ClusterSnapshot,
    DaemonSet,
    DriverContainer,
    DriverPod,
    NetworkRange,
)
from ansible_collections.rdma.k8s.plugins.module_utils.core.snapshot import (
    NodeSnapshot,
    RdmaSystem,
    ReadError,
)
from ansible_collections.rdma.k8s.tests.support import fleet, lingjun
from ansible_collections.rdma.k8s.tests.support.cases import SICK, Case

OFF_HOST = {"non_host_network": True}
EXCLUSIVE = {"non_host_network": True, "rdma_mode": "exclusive"}


def lingjun_nodes(edit: Optional[fleet.Edit] = None, ipv6: bool = True) -> list[NodeInput]:
    """The sick node and two healthy ones."""
    sick = lingjun.node(0, SICK, ipv6=ipv6)
    nodes = [edit(sick) if edit is not None else sick]
    nodes += [lingjun.node(number, ipv6=ipv6) for number in (1, 2)]
    return [NodeInput(node.name, node) for node in nodes]


def lingjun_cluster(*edits: lingjun.EditCluster) -> ClusterSnapshot:
    """Their cluster."""
    found = lingjun.cluster(SICK, lingjun.name_of(1), lingjun.name_of(2))
    for edit in edits:
        found = edit(found)
    return found


def of_cluster(
    number: str, status: str, message: str, title: str, *edits: lingjun.EditCluster, **more: Any
) -> Case:
    """A case of what the API tells."""
    settings = {"target": "ack_lingjun", **more.pop("settings", {})}
    more = {"node": lingjun.CLUSTER, "inputs": lingjun_nodes, **more}
    return Case(
        "RDMA-ACK-" + number,
        status,
        message,
        title,
        settings=settings,
        cluster=lambda: lingjun_cluster(*edits),
        **more,
    )


def of_node(
    number: str, status: str, message: str, title: str, edit: Optional[fleet.Edit] = None, **more: Any
) -> Case:
    """A case of what a host tells, beside a healthy cluster unless edits of it are given."""
    ipv6 = more.pop("ipv6", True)
    return of_cluster(
        number,
        status,
        message,
        title,
        *more.pop("edits", ()),
        node=SICK,
        inputs=lambda: lingjun_nodes(edit, ipv6),
        **more,
    )


# Edits of the cluster


def without_plugin(found: ClusterSnapshot) -> ClusterSnapshot:
    return replace(found, daemonsets=())


def without_lingjun_nodes(found: ClusterSnapshot) -> ClusterSnapshot:
    return replace(found, nodes=(lingjun.other_node(),), daemonsets=(lingjun.plugin(),))


def unread(*fields: str) -> lingjun.EditCluster:
    """The API server refused to tell these."""
    sources = {"nodes": "nodes", "daemonsets": "daemonsets.apps", "service_cidrs": "service CIDRs"}
    errors = tuple([ReadError(sources[field], "not allowed") for field in fields])
    return lambda found: replace(found, errors=errors, **dict.fromkeys(fields))


def uncovered(found: ClusterSnapshot) -> ClusterSnapshot:
    """A52: the counts agree, and the third pod is on a node that is none of Lingjun."""
    other = lingjun.other_node().name
    return lingjun.edit_pod(SICK, node=other)(found)


def crashing(found: ClusterSnapshot) -> ClusterSnapshot:
    """A97, A98: the plugin ends again and again."""
    trouble = "CrashLoopBackOff, last Error, exit code 1"
    found = lingjun.edit_pod(SICK, ready=False, restarts=7, trouble=trouble)(found)
    return lingjun.edit_plugin(ready=2, available=2)(found)


def second_plugin(image: str, role: str = "device-plugin", node: str = SICK) -> lingjun.EditCluster:
    entry = DaemonSet(
        namespace="rdma",
        name="other-rdma-plugin",
        role=role,
        containers=(DriverContainer("main", image),),
        pods=(DriverPod("other-x", node, "Running", True),),
    )
    return lambda found: replace(found, daemonsets=(*(found.daemonsets or ()), entry))


def server(version: str) -> lingjun.EditCluster:
    return lambda found: replace(found, server=ApiServer(version))


def dual_stack(found: ClusterSnapshot) -> ClusterSnapshot:
    return replace(
        found,
        service_cidrs=(*(found.service_cidrs or ()), NetworkRange("fd00:1::/112", "ServiceCIDR kubernetes")),
    )


def moved_pod_networks(found: ClusterSnapshot) -> ClusterSnapshot:
    """A12: what services have is not told, what each node gives to pods is."""
    return lingjun.edit_node(SICK, pod_cidrs=("fd00:2::/64",))(unread("service_cidrs")(found))


# Edits of the sick node


def exclusive_netns(node: NodeSnapshot) -> NodeSnapshot:
    return replace(node, rdma=RdmaSystem("exclusive", "N", True))


def addresses(*texts: str, unusable: tuple[str, ...] = (), bonds: int = lingjun.BONDS) -> fleet.Edit:
    """The first bonds have these addresses."""

    def edit(node: NodeSnapshot) -> NodeSnapshot:
        for bond in range(bonds):
            node = fleet.edit_link(node, "bond%d" % bond, addresses=texts, unusable=unusable)
        return node

    return edit


def without_devices(node: NodeSnapshot) -> NodeSnapshot:
    return replace(node, devices=())


def ports_down(node: NodeSnapshot) -> NodeSnapshot:
    devices = [
        replace(
            device, ports=tuple([replace(port, state="DOWN", phys_state="Disabled") for port in device.ports])
        )
        for device in node.devices or ()
    ]
    return replace(node, devices=tuple(devices))


def without_links(node: NodeSnapshot) -> NodeSnapshot:
    return replace(node, links=None, routes=None, rules=None, errors=(ReadError("rtnetlink", "not allowed"),))


def without_umad(node: NodeSnapshot) -> NodeSnapshot:
    return replace(node, modules={name: state for name, state in node.modules.items() if name != "ib_umad"})


def without_verbs(node: NodeSnapshot) -> NodeSnapshot:
    return replace(node, devices=tuple([replace(device, uverbs="") for device in node.devices or ()]))


def states_unread(node: NodeSnapshot) -> NodeSnapshot:
    for bond in range(lingjun.BONDS):
        node = fleet.edit_port(node, "reth%d" % (2 * bond), state=None, phys_state=None)
    return node


def modules_unread(node: NodeSnapshot) -> NodeSnapshot:
    return replace(node, modules={}, errors=(ReadError("/proc/modules", "not allowed"),))


def one_member(node: NodeSnapshot) -> NodeSnapshot:
    return fleet.edit_link(node, "reth3", master="")


def group_version(version: str) -> fleet.Edit:
    return lambda node: replace(node, host=replace(node.host, cgroup=version))


CASES = [
    # the plugin (A50-A52)
    of_cluster("001", "fail", "ack-rdma-dp-ds: there is no DaemonSet", "ack no plugin", without_plugin),
    of_cluster("001", "fail", "sick: no ready pod of the plugin runs there", "ack uncovered node", uncovered),
    of_cluster("001", "fail", "CrashLoopBackOff, last Error", "ack plugin crashing", crashing),
    of_cluster("001", "warn", "older specification", "ack plugin rolling", lingjun.edit_plugin(updated=1)),
    of_cluster("001", "fail", "not yet looked at", "ack status is stale", lingjun.edit_plugin(generation=2)),
    of_cluster(
        "001",
        "unknown",
        "daemonsets.apps: not allowed",
        "ack daemonsets unread",
        unread("daemonsets"),
        also="ACK-003 unknown ACK-007 unknown ACK-012 unknown",
    ),
    of_cluster(
        "001", "unknown", "where its pods are is not known", "ack pods unread", lingjun.edit_plugin(pods=None)
    ),
    of_cluster("001", "pass", "each of 3 Lingjun nodes", "ack plugin everywhere"),
    # the tokens (A55, A57)
    of_cluster(
        "002",
        "fail",
        "sick: the node does not have rdma/hca",
        "ack resource missing",
        lingjun.edit_amounts(SICK, "", ""),
        also="ACK-003 fail",
    ),
    of_cluster(
        "002",
        "fail",
        "none of 1000 rdma/hca is allocatable",
        "ack allocatable zero",
        lingjun.edit_amounts(SICK, "1k", "0"),
        also="ACK-003 fail",
    ),
    of_cluster(
        "002", "warn", "some devices are ill", "ack some ill", lingjun.edit_amounts(SICK, "1k", "999")
    ),
    of_cluster("002", "fail", "no whole amount", "ack odd amount", lingjun.edit_amounts(SICK, "1K", "1k")),
    of_cluster(
        "002",
        "pass",
        "3 nodes have their rdma/fabric",
        "ack resource of another name",
        *[
            lingjun.edit_amounts(name, "1k", "1k", "rdma/fabric")
            for name in (SICK, lingjun.name_of(1), lingjun.name_of(2))
        ],
        settings={"resource_name": "rdma/fabric"},
    ),
    of_cluster("002", "fail", "are those of shared mode", "ack still shared", settings={**EXCLUSIVE}),
    of_cluster(
        "002",
        "unknown",
        "Not readable: nodes: not allowed",
        "ack nodes unread",
        unread("nodes"),
        also="ACK-001 unknown ACK-003 unknown ACK-007 unknown ACK-011 unknown ACK-012 unknown ACK-013 unknown "
        "ACK-014 unknown ACK-015 unknown ACK-017 unknown",
    ),
    of_cluster(
        "003",
        "unknown",
        "got ready 90 s before",
        "ack kubelet just restarted",
        lingjun.edit_node(SICK, ready_since="2026-03-02T08:58:30Z"),
    ),
    of_cluster(
        "003",
        "fail",
        "sick: the plugin's pod is ready, and nothing is allocatable",
        "ack ready and nothing offered",
        lingjun.edit_amounts(SICK, "0", "0"),
        also="ACK-002 fail",
    ),
    of_cluster("003", "pass", "3 nodes keep their amounts", "ack settled"),
    # other plugins
    of_cluster(
        "007",
        "fail",
        "rdma/other-rdma-plugin: a plugin that can register rdma/hca runs on sick too",
        "ack second plugin",
        second_plugin("x/k8s-rdma-shared-dev-plugin:1"),
    ),
    of_cluster("007", "warn", "DRANET gives NICs", "ack and dranet", second_plugin("dranet:v1", "dranet")),
    of_cluster("007", "warn", "another device plugin", "ack and sriov plugin", second_plugin("sriov-dp:1")),
    of_cluster(
        "007",
        "pass",
        "No other plugin",
        "ack plugin of other nodes",
        second_plugin("x/k8s-rdma-shared-dev-plugin:1", node=lingjun.other_node().name),
    ),
    # labels, taints (A13, A14)
    of_cluster(
        "011",
        "fail",
        "sick: has the label alibabacloud.com/lingjun-hpnzone and not the label",
        "ack label lost",
        lingjun.edit_labels(SICK, lingjun_worker=""),
        also="ACK-002 warn",
    ),
    of_cluster(
        "011",
        "fail",
        "sick: lacks the label alibabacloud.com/lingjun-hpnzone, which its pool has",
        "ack further label lost",
        lingjun.edit_labels(SICK, lingjun_hpnzone=""),
    ),
    of_cluster(
        "011",
        "fail",
        "sick: has the taint node-role.alibabacloud.com/lingjun and not the label",
        "ack all labels lost",
        lingjun.edit_node(SICK, labels={}, taints=("node-role.alibabacloud.com/lingjun=x:NoSchedule",)),
        also="ACK-002 warn",
    ),
    of_cluster(
        "011",
        "fail",
        "another value of the label",
        "ack other eni mode",
        lingjun.edit_labels(SICK, exclusive_mode_eni_type="eniTrunk"),
    ),
    of_cluster(
        "011",
        "fail",
        "No node has the label",
        "ack no lingjun node",
        without_lingjun_nodes,
        also="ACK-001 warn",
        inputs=list,
    ),
    of_cluster("011", "pass", "3 Lingjun nodes with their labels", "ack labels of no use to the pool"),
    of_cluster(
        "012",
        "fail",
        "sick: has a taint that the plugin does not tolerate: dedicated=train:NoSchedule",
        "ack taint not tolerated",
        lingjun.edit_node(SICK, taints=("dedicated=train:NoSchedule",)),
        lingjun.edit_plugin(tolerations=("node-role.alibabacloud.com/lingjun:NoSchedule",)),
    ),
    of_cluster(
        "012",
        "fail",
        "node selector wants",
        "ack node selector",
        lingjun.edit_plugin(node_selector={"alibabacloud.com/lingjun-zoneid": "cn-y"}),
    ),
    of_cluster(
        "012",
        "pass",
        "3 Lingjun nodes let the plugin run",
        "ack taints tolerated",
        lingjun.edit_node(
            SICK,
            taints=("node.kubernetes.io/unschedulable:NoSchedule", "a=b:PreferNoSchedule", "c=d:NoExecute"),
        ),
        lingjun.edit_plugin(tolerations=("node-role.alibabacloud.com/lingjun:NoSchedule", "c=d")),
    ),
    of_cluster(
        "012", "skip", "see RDMA-ACK-001", "ack nothing to tolerate", without_plugin, also="ACK-001 fail"
    ),
    # software (A10, A11)
    of_cluster(
        "013",
        "fail",
        "sick: kernel 4.19.91-27.al7 is too old",
        "ack old kernel",
        lingjun.edit_node(SICK, kernel="4.19.91-27.al7"),
    ),
    of_cluster(
        "013", "unknown", "kernel is not told", "ack kernel not told", lingjun.edit_node(SICK, kernel="")
    ),
    of_cluster("013", "pass", "3 kernels", "ack kernels"),
    of_cluster(
        "014",
        "fail",
        "sick: the runtime is docker://20.10.7",
        "ack docker",
        lingjun.edit_node(SICK, runtime="docker://20.10.7"),
    ),
    of_cluster("014", "pass", "3 nodes with containerd", "ack containerd"),
    of_cluster(
        "015",
        "fail",
        "API server: Kubernetes v1.30.7-aliyun.1 is too old",
        "ack old server",
        server("v1.30.7-aliyun.1"),
    ),
    of_cluster(
        "015",
        "fail",
        "sick: kubelet v1.28.3 is too old",
        "ack old kubelet",
        lingjun.edit_node(SICK, kubelet="v1.28.3"),
    ),
    of_cluster("015", "pass", "new enough", "ack kubernetes"),
    of_node("016", "fail", "needs control groups v2", "ack cgroup v1", group_version("v1")),
    of_node("016", "unknown", "does not tell", "ack cgroup not told", group_version("")),
    of_node(
        "016",
        "skip",
        "Kubernetes 1.34 takes both",
        "ack older kubernetes",
        group_version("v1"),
        edits=(lingjun.edit_node(SICK, kubelet="v1.34.1-aliyun.1"),),
    ),
    of_node("016", "pass", "v2", "ack cgroup v2"),
    of_cluster(
        "017",
        "fail",
        "ServiceCIDR kubernetes: gives IPv6 addresses (fd00:1::/112)",
        "ack dual stack",
        dual_stack,
    ),
    of_cluster("017", "fail", "fd00:2::/64", "ack dual stack of pods", moved_pod_networks),
    of_cluster(
        "017", "unknown", "service CIDRs: not allowed", "ack networks unread", unread("service_cidrs")
    ),
    of_cluster("017", "pass", "IPv4", "ack single stack"),
    # mode and network (A63-A67)
    of_cluster(
        "018",
        "fail",
        "plugin: the compute network is not IPv6",
        "ack cloud says IPv4",
        settings={**OFF_HOST, "compute_ip_version": "IPv4"},
    ),
    of_cluster(
        "018",
        "fail",
        "does not know exclusive mode",
        "ack old plugin",
        settings={
            **EXCLUSIVE,
            "plugin_version": "1.1.2",
            "compute_ip_version": "IPv6",
            "resource_count": 1000,
        },
    ),
    of_cluster(
        "018",
        "fail",
        "the switch for such pods is off",
        "ack exclusive without switch",
        settings={"rdma_mode": "exclusive", "compute_ip_version": "IPv6", "resource_count": 1000},
    ),
    of_cluster("018", "skip", "the nodes tell", "ack cloud not asked", settings=OFF_HOST),
    of_cluster(
        "018", "unknown", "neither the cloud nor the node", "ack nobody asked", settings=OFF_HOST, inputs=list
    ),
    of_cluster(
        "018", "pass", "IPv6", "ack cloud says IPv6", settings={**OFF_HOST, "compute_ip_version": "IPv6"}
    ),
    of_node(
        "019",
        "fail",
        "no interface of the RDMA network has an IPv6 address",
        "ack link-local only",
        addresses("10.64.0.16/24", "fe80::1/64"),
        settings=OFF_HOST,
    ),
    of_node(
        "019",
        "fail",
        "no interface of the RDMA network has an IPv6 address",
        "ack duplicate address",
        addresses("fd20::16/64", unusable=("fd20::16/64",)),
        settings=OFF_HOST,
    ),
    of_node(
        "019",
        "warn",
        "bond0: no usable IPv6 address, others have one",
        "ack one bond without",
        addresses("fe80::1/64", bonds=1),
        settings=OFF_HOST,
    ),
    of_node(
        "019",
        "warn",
        "leaves room for pods",
        "ack long prefix",
        addresses("fd20::16/112"),
        settings=OFF_HOST,
    ),
    of_node(
        "019",
        "unknown",
        "rtnetlink: not allowed",
        "ack links unread",
        without_links,
        settings=OFF_HOST,
        also="ACK-020 unknown ACK-021 unknown NODE-013 unknown NODE-019 unknown NODE-018 unknown NODE-017 unknown",
    ),
    of_node("019", "pass", "4 interfaces", "ack every bond has IPv6", settings=OFF_HOST),
    of_node("019", "pass", "needs no IPv6", "ack host network on IPv4", ipv6=False),
    # hosts (A18, A71, A74, A76)
    of_node(
        "006",
        "fail",
        "exclusive mode",
        "ack netns exclusive",
        exclusive_netns,
        also="NODE-001 fail NODE-003 fail",
    ),
    of_node(
        "006",
        "skip",
        "is not known",
        "ack netns of exclusive plugin",
        settings={**EXCLUSIVE, "resource_count": 1000},
    ),
    of_node("006", "pass", "shared", "ack netns shared"),
    of_node(
        "020",
        "fail",
        "1000 tokens are offered, and the host has no RDMA device.",
        "ack tokens without devices",
        without_devices,
    ),
    of_node(
        "020", "fail", "none of 4 RDMA ports is active", "ack ports down", ports_down, also="NODE-015 fail"
    ),
    of_node(
        "020",
        "fail",
        "0 tokens are offered, and the host has no RDMA device.",
        "ack neither tokens nor devices",
        without_devices,
        edits=(lingjun.edit_amounts(SICK, "", ""),),
        also="ACK-019 fail ACK-023 fail",
        settings=OFF_HOST,
    ),
    of_node("020", "pass", "4 of 4 RDMA ports are active (Ethernet)", "ack devices behind tokens"),
    of_node(
        "021",
        "warn",
        "bond1: reth3 is down",
        "ack member down",
        lambda node: fleet.edit_link(node, "reth3", operstate="down"),
    ),
    of_node("021", "warn", "bond1: it has one member", "ack member gone", one_member),
    of_node(
        "021",
        "warn",
        "bond2: the bond is down",
        "ack bond down",
        lambda node: fleet.edit_link(node, "bond2", operstate="down"),
    ),
    of_node("021", "pass", "4 bonds", "ack bonds"),
    of_node(
        "022",
        "fail",
        "rdma_cm: it does not exist",
        "ack no rdma_cm",
        lambda node: replace(node, char_devices=()),
        also="NODE-031 fail",
    ),
    of_node("022", "fail", "ib_umad", "ack no umad", without_umad),
    of_node("022", "fail", "no uverbs file", "ack no uverbs", without_verbs, also="NODE-031 fail"),
    of_node("022", "pass", "4 devices", "ack device files"),
    of_node(
        "023",
        "fail",
        "rdma/hca: the node does not have rdma/hca",
        "ack devices without tokens",
        edits=(lingjun.edit_amounts(SICK, "", ""),),
    ),
    of_node(
        "023",
        "warn",
        "some devices are ill",
        "ack ill devices",
        edits=(lingjun.edit_amounts(SICK, "1k", "9"),),
    ),
    of_node(
        "023",
        "unknown",
        "No node of the cluster has the name sick",
        "ack node of no cluster",
        edits=(lambda found: replace(found, nodes=found.nodes[1:] if found.nodes else ()),),
        also="ACK-016 unknown",
    ),
    of_node(
        "023",
        "skip",
        "no Lingjun node",
        "ack another node",
        edits=(
            lambda found: replace(
                found, nodes=(lingjun.other_node(SICK), *(found.nodes[1:] if found.nodes else ()))
            ),
        ),
    ),
    of_node("023", "pass", "1000 of rdma/hca", "ack tokens"),
    # what is not told, or not there
    of_cluster(
        "007",
        "skip",
        "see RDMA-ACK-011",
        "ack no node to be a rival on",
        without_lingjun_nodes,
        also="ACK-001 warn ACK-011 fail",
        inputs=list,
    ),
    of_cluster("014", "unknown", "is not told", "ack runtime not told", lingjun.edit_node(SICK, runtime="")),
    of_node(
        "016", "unknown", "kubelet", "ack kubelet not told", edits=(lingjun.edit_node(SICK, kubelet=""),)
    ),
    of_node(
        "019",
        "pass",
        "the node does not tell",
        "ack cloud alone",
        without_links,
        also="ACK-020 unknown ACK-021 unknown NODE-013 unknown NODE-017 unknown NODE-018 unknown NODE-019 unknown",
        settings={**OFF_HOST, "compute_ip_version": "ipv6"},
    ),
    of_node(
        "020", "unknown", "could not be read", "ack states unread", states_unread, also="NODE-015 unknown"
    ),
    of_node(
        "022",
        "unknown",
        "whether ib_umad is loaded is not known",
        "ack modules unread",
        modules_unread,
        also="NODE-006 unknown",
    ),
    of_node("022", "skip", "No RDMA NIC", "ack no nic", without_devices, also="ACK-020 fail"),
]
