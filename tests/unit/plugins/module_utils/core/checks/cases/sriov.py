# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Cases of the area SRIOV: a healthy cluster with two rails, one edit each."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Optional

from ansible_collections.rdma.k8s.plugins.module_utils.core.checks.judge import NodeInput
from ansible_collections.rdma.k8s.plugins.module_utils.core.cluster_snapshot import ApiObject, ClusterSnapshot
from ansible_collections.rdma.k8s.plugins.module_utils.core.snapshot import (
    NodeSnapshot,
    PciFunction,
    RdmaSystem,
    ReadError,
)
from ansible_collections.rdma.k8s.tests.support import fleet, rails
from ansible_collections.rdma.k8s.tests.support.cases import SICK, Case

OTHERS = ("node-001", "node-002")
SETTINGS = {"target": "spiderpool_sriov", "netns_mode": "exclusive", "pod_cidrs": None, "service_cidrs": None}
PF, SECOND = rails.PLACES
POLICIES, POOLS = "sriov_policies", "ip_pools"


def rail_nodes(edit: Optional[fleet.Edit] = None) -> list[NodeInput]:
    """The sick node and two healthy ones."""
    sick = rails.node(0, SICK)
    nodes = [edit(sick) if edit is not None else sick]
    nodes += [rails.node(number, name) for number, name in enumerate(OTHERS, 1)]
    return [NodeInput(node.name, node) for node in nodes]


def rail_cluster(*edits: rails.EditCluster) -> ClusterSnapshot:
    """Their cluster."""
    found = rails.cluster(SICK, *OTHERS)
    for edit in edits:
        found = edit(found)
    return found


def of_cluster(
    number: str, status: str, message: str, title: str, *edits: rails.EditCluster, **more: Any
) -> Case:
    """A case of what the API tells; checks of other areas need other subsets of the cluster."""
    settings = {**SETTINGS, "only": ["RDMA-SRIOV-*"], **more.pop("settings", {})}
    more = {"node": rails.CLUSTER, "inputs": rail_nodes, **more}
    return Case(
        "RDMA-SRIOV-" + number,
        status,
        message,
        title,
        settings=settings,
        cluster=lambda: rail_cluster(*edits),
        **more,
    )


def of_host(status: str, message: str, title: str, edit: Optional[fleet.Edit] = None, **more: Any) -> Case:
    """A case of what a host tells, with all checks of nodes."""
    edits = more.pop("edits", ())
    return Case(
        "RDMA-SRIOV-014",
        status,
        message,
        title,
        settings=SETTINGS,
        node=SICK,
        inputs=lambda: rail_nodes(edit),
        cluster=lambda: rail_cluster(*edits),
        **more,
    )


def unread(field: str, source: str) -> rails.EditCluster:
    return rails.set_fields(**{field: None, "errors": (ReadError(source, "not allowed"),)})


def both(*edits: rails.EditCluster) -> rails.EditCluster:
    def edited(found: ClusterSnapshot) -> ClusterSnapshot:
        for edit in edits:
            found = edit(found)
        return found

    return edited


def add(field: str, *entries: ApiObject) -> rails.EditCluster:
    return lambda found: replace(found, **{field: (*getattr(found, field), *entries)})


def no_states(found: ClusterSnapshot) -> ClusterSnapshot:
    return replace(found, sriov_node_states=())


def infiniband(found: ClusterSnapshot) -> ClusterSnapshot:
    """Both rails are InfiniBand, policies and networks with them."""
    for rail in (1, 2):
        part = {
            "resourceName": "spidernet.io/gpu%dsriov" % rail,
            "ippools": {"ipv4": ["gpu%d-net" % rail]},
        }
        found = rails.edit_interface("", rail, link_type="IB")(found)
        found = rails.edit_policy(rail, linkType="ib")(found)
        found = rails.edit_config(rail, cniType="ib-sriov", sriov=..., ibsriov=part)(found)
    return found


def keys(count: int) -> rails.EditCluster:
    """So many networks with a partition key each, all of the first rail."""
    entries = []
    for number in range(count):
        part = {
            "resourceName": "spidernet.io/gpu1sriov",
            "ippools": {"ipv4": ["gpu1-net"]},
            "pkey": "0x%x" % (number + 1),
            "enableIbKubernetes": True,
        }
        spec = {"cniType": "ib-sriov", "ibsriov": part}
        entries.append(ApiObject("ib-%d" % number, rails.NAMESPACE, spec=spec))
    made = [ApiObject(entry.name, entry.namespace, "spidernet.io/gpu1sriov", spec={}) for entry in entries]
    return both(infiniband, add("multus_configs", *entries), add("network_attachments", *made))


def chain(text: str) -> rails.EditCluster:
    return rails.edit("network_attachments", "gpu1-sriov", config=text)


def shared_node(snapshot: NodeSnapshot) -> NodeSnapshot:
    return replace(snapshot, rdma=RdmaSystem("shared", "Y", True))


def without_vfs(snapshot: NodeSnapshot) -> NodeSnapshot:
    """The second rail has none any more."""
    kept = [function for function in snapshot.pci or () if function.vf_of != SECOND]
    return replace(snapshot, pci=tuple(kept))


def to_vfio(snapshot: NodeSnapshot) -> NodeSnapshot:
    functions = [
        replace(function, driver="vfio-pci") if function.vf_of == PF else function
        for function in snapshot.pci or ()
    ]
    return replace(snapshot, pci=tuple(functions))


def one_more(snapshot: NodeSnapshot) -> NodeSnapshot:
    function = PciFunction("0000:0c:07.7", "15b3:101e", "0200", "mlx5_core", 0, PF)
    return replace(snapshot, pci=(*(snapshot.pci or ()), function))


def without_pf(snapshot: NodeSnapshot) -> NodeSnapshot:
    return replace(snapshot, pci=tuple([f for f in snapshot.pci or () if f.address != SECOND]))


VF_COUNT = {"num_vfs": 0, "vfs": 0, "vf_drivers": (), "vf_mtu": None}
EMPTY = rails.set_fields(
    sriov_policies=(), ip_pools=(), multus_configs=(), network_attachments=(), sriov_pool_configs=()
)
EXTERNAL = rails.edit_policy(1, externallyManaged=True)
DEFAULT_POOL = both(rails.edit_config(1, "sriov", ippools=...), rails.edit_pool(2, default=True))
HOST_LOCAL = '{"type": "sriov", "ipam": {"type": "host-local"}}'
ALONE = both(
    rails.edit("sriov_pool_configs", "rdma", nodeSelector={"matchLabels": {"one": "x"}}),
    rails.edit_live(SICK, labels={**rails.LABELS, "one": "x"}),
)
NO_POLICIES = rails.set_fields(sriov_policies=())

CASES = [
    # 001: S85, S91, S101, S150
    of_cluster(
        "001",
        "fail",
        "sriov.enableRdma: the field ended",
        "field of an old version",
        rails.edit_config(1, "sriov", enableRdma=True),
    ),
    of_cluster("001", "fail", "spec.vlan: the field ended", "vlan of a pool", rails.edit_pool(1, vlan=3)),
    of_cluster(
        "001",
        "fail",
        "spec.isRDMA: a SriovNetworkNodePolicy has no such field",
        "typing error in a policy",
        rails.edit_policy(1, isRDMA=True),
    ),
    of_cluster(
        "001",
        "fail",
        "a resource name has letters",
        "hyphen in a resource name",
        rails.edit_policy(1, resourceName="gpu1-sriov"),
        also="SRIOV-011 fail SRIOV-019 fail",
    ),
    of_cluster(
        "001",
        "unknown",
        "not allowed",
        "pools are not readable",
        unread("ip_pools", "spiderippools.spiderpool.spidernet.io"),
        also="SRIOV-002 unknown SRIOV-003 unknown SRIOV-004 unknown SRIOV-005 unknown",
    ),
    of_cluster("001", "skip", "There is no SriovNetworkNodePolicy", "nothing is there", EMPTY),
    of_cluster("001", "pass", "6 objects", "healthy objects"),
    # 002: S93
    of_cluster(
        "002",
        "fail",
        "there is no pool 'gpu1-net91'",
        "pool that does not exist",
        rails.edit_config(1, "sriov", ippools={"ipv4": ["gpu1-net91"]}),
    ),
    of_cluster(
        "002",
        "fail",
        "it names no pool, and no pool of the cluster is a default one",
        "no pool at all",
        rails.edit_config(1, "sriov", ippools=...),
    ),
    of_cluster(
        "002",
        "fail",
        "pool gpu1-net stands below ipv6",
        "list of the other version",
        rails.edit_config(1, "sriov", ippools={"ipv6": ["gpu1-net"]}),
    ),
    of_cluster("002", "pass", "2 networks", "a default pool", DEFAULT_POOL),
    # 003: S77, S222
    of_cluster(
        "003",
        "fail",
        "172.16.11.0/16 has host bits; its network is 172.16.0.0/16",
        "host bits",
        rails.edit_pool(1, subnet="172.16.11.0/16"),
        also="SRIOV-005 fail",
    ),
    of_cluster("003", "fail", "ipVersion is 6", "version of another subnet", rails.edit_pool(1, ipVersion=6)),
    of_cluster("003", "pass", "2 pools", "healthy subnets"),
    # 004: S79-S81
    of_cluster(
        "004",
        "fail",
        "172.16.12.254 is not inside 172.16.11.0/24",
        "gateway of another rail",
        rails.edit_pool(1, gateway="172.16.12.254"),
    ),
    of_cluster(
        "004",
        "fail",
        "ends before it begins",
        "reversed range",
        rails.edit_pool(1, ips=["172.16.11.9-172.16.11.2"]),
    ),
    of_cluster(
        "004",
        "warn",
        "172.16.11.255 is the broadcast address",
        "broadcast address for a pod",
        rails.edit_pool(1, ips=["172.16.11.255"]),
    ),
    of_cluster(
        "004",
        "fail",
        "a route has dst and gw",
        "route with other names",
        rails.edit_pool(1, routes=[{"to": "10.0.0.0/8", "via": "172.16.11.254"}]),
    ),
    of_cluster("004", "pass", "2 pools", "healthy addresses"),
    # 005: S77, S78
    of_cluster(
        "005",
        "fail",
        "172.16.0.0/16 overlaps 172.16.12.0/24",
        "wide pool",
        rails.edit_pool(1, subnet="172.16.0.0/16"),
    ),
    of_cluster(
        "005",
        "fail",
        "10.244.7.0/24 overlaps 10.244.0.0/16, a network of the cluster",
        "pool in the pod network",
        rails.edit_pool(1, subnet="10.244.7.0/24", ips=["10.244.7.1-10.244.7.9"], gateway="10.244.7.254"),
    ),
    of_cluster(
        "005",
        "unknown",
        "they are not known",
        "networks of the cluster not known",
        rails.set_fields(pod_cidrs=None, service_cidrs=None),
    ),
    of_cluster("005", "pass", "2 pools", "healthy pools"),
    # 007: S102, S108, S109, S244
    of_cluster(
        "007",
        "fail",
        "is also a root device of policy",
        "one card for two policies",
        rails.edit_policy(2, "nicSelector", rootDevices=[PF]),
        also="SRIOV-019 unknown",
    ),
    of_cluster(
        "007",
        "fail",
        "no node has the labels",
        "label that no node has",
        rails.edit_policy(1, nodeSelector={"no": "such"}),
    ),
    of_cluster(
        "007",
        "fail",
        "no supported NIC",
        "NIC that no node has",
        rails.edit_policy(1, "nicSelector", rootDevices=["0000:ff:00.0"]),
    ),
    of_cluster(
        "007",
        "warn",
        "it also selects control-1",
        "every Linux node",
        rails.edit_policy(1, nodeSelector={"kubernetes.io/os": "linux"}),
    ),
    of_cluster(
        "007",
        "unknown",
        "not allowed",
        "states are not readable",
        unread("sriov_node_states", "sriovnetworknodestates.sriovnetwork.openshift.io"),
        also="SRIOV-008 unknown SRIOV-009 unknown SRIOV-012 unknown SRIOV-019 unknown SRIOV-023 unknown",
    ),
    of_cluster("007", "pass", "2 policies", "healthy policies"),
    # 008: S107
    of_cluster(
        "008",
        "warn",
        "the firmware is set to 16",
        "more than the firmware gives",
        rails.edit_policy(1, numVfs=32),
        also="SRIOV-019 fail SRIOV-023 fail",
    ),
    of_cluster(
        "008",
        "fail",
        "at most 128",
        "more than the vendor has",
        rails.edit_policy(1, numVfs=200),
        also="SRIOV-019 fail SRIOV-023 fail",
    ),
    of_cluster(
        "008",
        "fail",
        "at least one virtual function",
        "none at all",
        rails.edit_policy(1, numVfs=0),
        also="SRIOV-019 fail SRIOV-023 fail",
    ),
    of_cluster("008", "pass", "2 policies", "healthy numbers"),
    # 009: S75, S112
    of_cluster(
        "009",
        "fail",
        "sick rdma0: the link type is ib, and gpu1 wants eth",
        "NIC is InfiniBand",
        rails.edit_interface(SICK, 1, link_type="IB"),
    ),
    of_cluster(
        "009",
        "fail",
        "an InfiniBand NIC is selected and linkType is not given",
        "link type not given",
        both(rails.edit_interface(SICK, 1, link_type="IB"), rails.edit_policy(1, linkType=...)),
    ),
    of_cluster(
        "009",
        "fail",
        "the type is for linkType eth, and the policy has ib",
        "network of the other type",
        both(
            infiniband,
            rails.edit_config(1, cniType="sriov", ibsriov=..., sriov=rails.config(1).spec["sriov"]),
        ),
    ),
    of_cluster("009", "pass", "4 objects", "InfiniBand everywhere", infiniband),
    # 010: S87, S90, S171, S218
    of_cluster(
        "010",
        "warn",
        "rdmaIsolation is false by default",
        "no isolation in exclusive mode",
        rails.edit_config(1, "sriov", rdmaIsolation=...),
    ),
    of_cluster(
        "010",
        "fail",
        "sick are in exclusive mode",
        "two modes",
        rails.edit_state(SICK, rdma_mode="exclusive"),
        rails.edit_state("node-001", rdma_mode="shared"),
        inputs=list,
    ),
    of_cluster(
        "010",
        "fail",
        "which needs nodes in exclusive mode; they are in shared mode",
        "isolation in shared mode",
        inputs=lambda: [NodeInput(SICK, shared_node(rails.node(0, SICK)))],
    ),
    of_cluster(
        "010", "fail", "no plugin rdma in its chain", "chain without rdma", chain('{"type": "sriov"}')
    ),
    of_cluster(
        "010", "unknown", "no node of the run tells its namespace mode", "no node in the run", inputs=list
    ),
    of_cluster(
        "010",
        "pass",
        "2 networks",
        "shared without isolation",
        rails.edit_config(1, "sriov", rdmaIsolation=False),
        rails.edit_config(2, "sriov", rdmaIsolation=False),
        inputs=lambda: [NodeInput(SICK, shared_node(rails.node(0, SICK)))],
    ),
    # 011: S88, S119
    of_cluster(
        "011",
        "fail",
        "no policy makes 'spidernet.io/gpu1rdma'",
        "resource that nobody makes",
        rails.edit_config(1, "sriov", resourceName="spidernet.io/gpu1rdma"),
        rails.set_fields(
            network_attachments=(
                replace(rails.attachment(1), resource="spidernet.io/gpu1rdma"),
                rails.attachment(2),
            )
        ),
    ),
    of_cluster(
        "011",
        "fail",
        "has the resource 'spidernet.io/gpu9sriov'",
        "stale definition",
        rails.set_fields(
            network_attachments=(
                replace(rails.attachment(1), resource="spidernet.io/gpu9sriov"),
                rails.attachment(2),
            )
        ),
    ),
    of_cluster(
        "011",
        "fail",
        "it has no NetworkAttachmentDefinition",
        "no definition",
        rails.set_fields(network_attachments=(rails.attachment(2),)),
    ),
    of_cluster(
        "011",
        "fail",
        "no policy makes 'spidernet.io/gpu1sriov'",
        "another prefix",
        settings={"resource_prefix": "openshift.io"},
        also="SRIOV-019 fail",
    ),
    of_cluster("011", "pass", "2 networks", "healthy resources"),
    # 012: S36
    of_cluster(
        "012",
        "fail",
        "cannot have more than the 4220 of its PF, found 9000",
        "jumbo pods",
        rails.edit_config(1, "sriov", mtu=9000),
    ),
    of_cluster(
        "012",
        "fail",
        "a virtual function has MTU 9000",
        "jumbo virtual functions",
        rails.edit_interface(SICK, 1, vf_mtu=9000),
    ),
    of_cluster(
        "012",
        "fail",
        "MTU 1500, and gpu1 wants 4220",
        "PF that was not raised",
        rails.edit_interface(SICK, 1, mtu=1500, vf_mtu=1500),
    ),
    of_cluster("012", "pass", "8 NICs and networks", "healthy MTUs"),
    # 014: S43, S113, S116
    of_host("fail", "the state tells 8 virtual functions, the host has 0", "functions are gone", without_vfs),
    of_host("fail", "the state tells 8 virtual functions, the host has 9", "one function more", one_more),
    of_host("fail", "have the driver vfio-pci, not mlx5_core", "functions bound to vfio", to_vfio),
    of_host(
        "fail",
        "wants 8 virtual functions, the host has 0",
        "a fresh state",
        without_vfs,
        edits=(rails.edit_interface(SICK, 2, **VF_COUNT),),
    ),
    of_host("fail", "the host has no such function", "the NIC is gone", without_pf),
    of_host(
        "fail",
        "the port is eth, and gpu1 wants ib",
        "port of the other type",
        edits=(rails.edit_policy(1, linkType="ib"),),
    ),
    of_host("skip", "No policy takes a NIC of this node", "no policies", edits=(NO_POLICIES,)),
    of_host(
        "unknown",
        "not allowed",
        "policies are not readable",
        edits=(unread("sriov_policies", "sriovnetworknodepolicies.sriovnetwork.openshift.io"),),
    ),
    of_host(
        "unknown",
        "No node of the cluster has the name",
        "not in the cluster",
        edits=(lambda found: replace(found, nodes=found.nodes[1:]),),
    ),
    of_host("pass", "2 physical functions", "healthy host"),
    # 015: S151, S153
    of_cluster("015", "warn", "networks with 129 keys", "more keys than places", keys(129)),
    of_cluster(
        "015",
        "warn",
        "nobody enforces the key",
        "key that nobody enforces",
        both(infiniband, rails.edit_config(1, "ibsriov", pkey="0x10")),
    ),
    of_cluster("015", "pass", "131 nodes and networks", "as many keys as places", keys(128)),
    # 016: S120
    of_cluster(
        "016",
        "fail",
        "it is in the pools other, rdma",
        "node in two pools",
        add(
            "sriov_pool_configs",
            ApiObject(
                "other",
                rails.NAMESPACE,
                spec={"nodeSelector": {"matchLabels": {"one": "x"}}, "maxUnavailable": 1},
            ),
        ),
        rails.edit_live(SICK, labels={**rails.LABELS, "one": "x"}),
    ),
    of_cluster("016", "pass", "3 nodes", "healthy pools of nodes"),
    # 017: S120, S121
    of_cluster(
        "017",
        "fail",
        "'10%' of 3 nodes is none",
        "percentage that rounds to none",
        rails.edit("sriov_pool_configs", "rdma", maxUnavailable="10%"),
    ),
    of_cluster(
        "017",
        "warn",
        "it sets no limit",
        "no limit",
        rails.edit("sriov_pool_configs", "rdma", maxUnavailable=...),
    ),
    of_cluster(
        "017",
        "warn",
        "it selects no node",
        "pool without nodes",
        rails.edit("sriov_pool_configs", "rdma", nodeSelector={"matchLabels": {"no": "such"}}),
    ),
    of_cluster("017", "pass", "1 pools", "pool of one node", ALONE),
    # 018: S154, S188
    of_cluster(
        "018",
        "fail",
        "IPAM host-local knows one node, and the network is on 3",
        "addresses of one node",
        chain('{"plugins": [%s, {"type": "rdma"}]}' % HOST_LOCAL),
    ),
    of_cluster(
        "018",
        "fail",
        "ib-sriov has no DHCP",
        "DHCP on InfiniBand",
        add(
            "sriov_ib_networks",
            ApiObject("ib", rails.NAMESPACE, spec={"resourceName": "gpu1sriov", "ipam": '{"type": "dhcp"}'}),
        ),
    ),
    of_cluster(
        "018",
        "unknown",
        "no JSON",
        "IPAM that cannot be read",
        add(
            "sriov_networks",
            ApiObject("eth", rails.NAMESPACE, spec={"resourceName": "gpu1sriov", "ipam": "{"}),
        ),
    ),
    of_cluster("018", "pass", "2 networks", "healthy networks"),
    # 019: S119, S183
    of_cluster(
        "019",
        "fail",
        "has '6' of 8 spidernet.io/gpu1sriov",
        "two functions fewer",
        rails.edit_live(SICK, allocatable={"spidernet.io/gpu1sriov": "6", "spidernet.io/gpu2sriov": "8"}),
    ),
    of_cluster(
        "019", "fail", "has no spidernet.io/gpu1sriov", "no plugin", rails.edit_live(SICK, allocatable={})
    ),
    of_cluster(
        "019",
        "skip",
        "There is no SriovNetworkNodePolicy",
        "no policies for devices",
        NO_POLICIES,
        also="SRIOV-011 fail",
    ),
    of_cluster("019", "pass", "6 resources", "healthy resources of nodes"),
    # 021: S110
    of_cluster(
        "021",
        "fail",
        "managed elsewhere and has numVfs 8, found 12",
        "fewer than wanted",
        EXTERNAL,
        rails.edit_policy(1, numVfs=12),
        also="SRIOV-019 fail",
    ),
    of_cluster("021", "pass", "1 policies", "as many as there are", EXTERNAL, rails.edit_policy(1, mtu=1500)),
    # 022: S106
    of_cluster(
        "022", "fail", "has no RDMA device", "vfio for RDMA", rails.edit_policy(1, deviceType="vfio-pci")
    ),
    of_cluster(
        "022",
        "fail",
        "policy gpu1 binds spidernet.io/gpu1sriov to vfio-pci",
        "vfio for a network of RDMA",
        rails.edit_policy(1, deviceType="vfio-pci", isRdma=False),
    ),
    of_cluster("022", "pass", "2 policies", "healthy drivers"),
    # 023: S113-S117
    of_cluster(
        "023",
        "fail",
        "syncStatus is 'Failed', not Succeeded; lastSyncError says 'cannot allocate memory'",
        "the daemon failed",
        rails.edit_state(SICK, sync="Failed", last_error="cannot allocate memory"),
    ),
    of_cluster(
        "023",
        "fail",
        "has 0 virtual functions, not 8",
        "Succeeded before any policy arrived",
        rails.edit_interface(SICK, 1, **VF_COUNT),
    ),
    of_cluster(
        "023",
        "warn",
        "the current state is 'Draining'",
        "a drain is under way",
        rails.edit_state(SICK, desired_state="Drain_Required", current_state="Draining", sync="InProgress"),
    ),
    of_cluster(
        "023",
        "warn",
        "Reboot_Required",
        "a reboot is owed",
        rails.edit_state(SICK, desired_state="Reboot_Required"),
    ),
    of_cluster(
        "023", "fail", "the config daemon runs nowhere", "no daemon", no_states, also="SRIOV-007 fail"
    ),
    of_cluster(
        "023",
        "fail",
        "3 virtual functions have a GUID of zeros",
        "GUID not set",
        infiniband,
        rails.edit_interface(SICK, 1, vfs_without_guid=3),
    ),
    of_cluster("023", "pass", "3 nodes are ready", "healthy states"),
]
