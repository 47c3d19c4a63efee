# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Area SRIOV: policies, pools and networks of Spiderpool, and what nodes made of them. Private to rdma.k8s.

It may change with any release. The rules of single objects have codes, and each code belongs to one check
(:data:`OF_CODE`); what is compared with nodes, with networks or with other objects stands here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Optional

from .. import json_text
from ..cluster_snapshot import ClusterNode, SriovNodeState
from ..finding import CRITICAL, ERROR, WARNING, Detail
from ..kube.objects import entries, mapping, name, namespace, text
from ..kube.selectors import selects
from ..net import find_prefix, quoted
from ..nics import INFINIBAND
from ..snapshot import PciFunction
from ..spiderpool import multus_config, names, node_policy, node_state, pool_config
from ..spiderpool.issue import Issue
from ..spiderpool.wanted import ClusterWish, NodeWish, PfWish, called
from .context import Fleet, Node, cluster_reason
from .node import running_mode
from .registry import (
    Outcome,
    bad,
    cluster_check,
    fleet_check,
    listed,
    odd,
    ok,
    skipped,
    unclear,
    unknown,
    weighed,
)

_CODES = {
    "001": "field-unknown field-removed cnitype-invalid subconfig-missing subconfig-extra cni-version-invalid "
    "chain-syntax vlan-range mtu-range txrate-order linkstate-invalid pkey-type pkey-format resource-name-invalid "
    "numvfs-invalid priority-range devicetype-invalid linktype-invalid eswitchmode-invalid ipversion-type "
    "pod-affinity-empty",
    "002": "ippool-missing ippool-wildcard-no-match",
    "003": "subnet-syntax subnet-not-canonical ipversion-mismatch ip-family-disabled",
    "004": "range-syntax range-reversed range-outside-subnet gateway-syntax gateway-outside-subnet gateway-in-ips "
    "gateway-not-a-host pool-includes-network-address pool-includes-broadcast-address route-fields route-dst-syntax "
    "route-default-dst route-dst-duplicate route-gw-outside-subnet pool-too-small",
    "005": "subnet-overlap ips-overlap",
    "007": "namespace-ignored selector-empty netfilter-not-alone device-unsupported node-none-selected "
    "nic-none-selected rootdevice-overlap pf-range-overlap pf-whole-and-partition pf-selected-twice",
    "008": "numvfs-zero numvfs-exceeds-vendor-max numvfs-exceeds-totalvfs numvfs-needs-firmware pf-range-syntax "
    "pf-range-reversed pf-range-exceeds-numvfs",
    "009": "ib-needs-linktype ib-requires-rdma switchdev-needs-eth cni-linktype-mismatch",
    "010": "rdma-behind-ib-sriov shared-needs-shared-mode isolation-needs-exclusive exclusive-without-isolation",
    "011": "resource-name-missing resource-prefix-missing resource-unknown",
    "012": "mtu-exceeds-pf",
    "015": "pkey-not-enforced",
    "021": "external-numvfs-exceeds-pf external-mtu-exceeds-pf external-linktype-mismatch",
    "022": "vfio-rdma-conflict",
}
OF_CODE = {code: number for number, codes in _CODES.items() for code in codes.split()}
"""The number of the check that tells a code of the rules."""

POLICIES, POOLS, CONFIGS = "SriovNetworkNodePolicy", "SpiderIPPool", "SpiderMultusConfig"
ATTACHMENTS, POOL_CONFIGS, STATES = (
    "NetworkAttachmentDefinition",
    "SriovNetworkPoolConfig",
    "SriovNetworkNodeState",
)
FIELDS = {
    POLICIES: ("sriov_policies", "sriovnetworknodepolicies.sriovnetwork.openshift.io"),
    POOLS: ("ip_pools", "spiderippools.spiderpool.spidernet.io"),
    CONFIGS: ("multus_configs", "spidermultusconfigs.spiderpool.spidernet.io"),
    ATTACHMENTS: ("network_attachments", "network-attachment-definitions.k8s.cni.cncf.io"),
    POOL_CONFIGS: ("sriov_pool_configs", "sriovnetworkpoolconfigs.sriovnetwork.openshift.io"),
    STATES: ("sriov_node_states", "sriovnetworknodestates.sriovnetwork.openshift.io"),
}
NO_WISH = "No policy takes a NIC of a node; see RDMA-SRIOV-007."
_ON_VF = frozenset(names.ON_VF)
_OF_ONE_NODE = ("host-local", "static")


# What all of them need


def unread(fleet: Fleet, *kinds: str) -> list[Detail]:
    """A detail for each kind that was not read."""
    found = []
    cluster = fleet.sriov.cluster
    for kind in kinds:
        field, source = FIELDS[kind]
        if getattr(cluster, field) is None:
            found.append(unclear(kind, cluster_reason(cluster, "attachments", source)))
    return found


def _no_nodes(fleet: Fleet) -> list[Detail]:
    """A detail when nodes are not known with their NICs."""
    cluster = fleet.sriov.cluster
    found = unread(fleet, STATES)
    if cluster.nodes is None:
        found.append(unclear("nodes", cluster_reason(cluster, "nodes", "nodes")))
    return found


def _told(subject: str, issue: Issue) -> Detail:
    """An issue as a detail of the object that it is about."""
    where = "%s %s" % (subject, issue.at) if issue.at else subject
    values = dict(issue.extra)
    make = bad if issue.severity == ERROR else odd
    return make(where, issue.message, str(values.get("canonical", "")))


def _of(number: str, objects: Iterable[Mapping[str, Any]], issues: list[tuple[str, Issue]]) -> list[Detail]:
    """What the rules of one check say of some objects; a detail for those with which nothing is wrong, too."""
    mine = [(subject, issue) for subject, issue in issues if OF_CODE[issue.code] == number]
    wrong = {subject for subject, _issue in mine}
    found = [_told(subject, issue) for subject, issue in mine]
    return found + [ok(called(entry)) for entry in objects if called(entry) not in wrong]


def _none(*kinds: str) -> str:
    return "There is no %s." % " and no ".join(kinds)


def _vf_configs(wish: ClusterWish) -> list[dict[str, Any]]:
    """The configs whose networks are virtual functions."""
    return [config for config in wish.configs if text(mapping(config, "spec").get("cniType")) in _ON_VF]


def _below(config: Mapping[str, Any]) -> Mapping[str, Any]:
    spec = mapping(config, "spec")
    return mapping(spec, names.SUBCONFIGS.get(text(spec.get("cniType")), ""))


# Objects alone


@cluster_check(
    "RDMA-SRIOV-001",
    "The fields of the objects exist in these versions, with values that they can have",
    ERROR,
    "Correct the field; a field that the API does not know is dropped without a word, and what it should do is not "
    "done.",
    evidence=tuple([FIELDS[kind][1] for kind in (POLICIES, POOLS, CONFIGS)]),
)
def fields(fleet: Fleet) -> Outcome:
    """S76, S84-S86, S91, S92, S101, S103, S150."""
    wish = fleet.sriov
    details = _of("001", wish.policies, wish.policy_issues)
    details += _of("001", wish.pools, wish.pool_issues)
    details += _of("001", wish.configs, wish.config_issues)
    details += unread(fleet, POLICIES, POOLS, CONFIGS)
    return weighed(details, "%d objects have known fields with good values.", _none(POLICIES, POOLS, CONFIGS))


@cluster_check(
    "RDMA-SRIOV-002",
    "The pools that networks name exist",
    ERROR,
    "Make the pool, or correct its name below ippools of the part of the cniType.",
    evidence=(FIELDS[CONFIGS][1], FIELDS[POOLS][1]),
)
def pools_exist(fleet: Fleet) -> Outcome:
    """S88, S93: a pod does not start when the pool is missing, and nothing says so before."""
    wish = fleet.sriov
    details = unread(fleet, CONFIGS, POOLS)
    if wish.cluster.ip_pools is not None:
        configs = [config for config in _vf_configs(wish) if not _without_pool(config, wish)]
        details += _of("002", configs, wish.config_issues)
        for config in _vf_configs(wish):
            if _without_pool(config, wish):
                message = "it names no pool, and no pool of the cluster is a default one"
                details.append(bad(called(config), message, "a pool below ippools", "none"))
            details += _wrong_family(config, wish)
    return weighed(details, "%d networks have their pools.", _none(CONFIGS + " for virtual functions"))


def _without_pool(config: Mapping[str, Any], wish: ClusterWish) -> bool:
    if mapping(config, "spec").get("disableIPAM") is True or multus_config.pools_of(_below(config)):
        return False
    return not any(mapping(pool, "spec").get("default") is True for pool in wish.pools)


def _wrong_family(config: Mapping[str, Any], wish: ClusterWish) -> Iterator[Detail]:
    """A pool in the list of the other IP version."""
    subnets = {name(pool): find_prefix(mapping(pool, "spec").get("subnet")) for pool in wish.pools}
    for version in (4, 6):
        pools = mapping(_below(config), "ippools").get("ipv%d" % version)
        for pool in pools if isinstance(pools, list) else []:
            subnet = subnets.get(pool) if isinstance(pool, str) else None
            if subnet is not None and subnet.version != version:
                message = "pool %s stands below ipv%d, and its subnet is %s" % (pool, version, subnet)
                yield bad(called(config), message, "IPv%d" % version, "IPv%d" % subnet.version)


@cluster_check(
    "RDMA-SRIOV-003",
    "Subnets of pools are networks without host bits",
    ERROR,
    "Write the network address of the prefix that you mean; check the prefix length first.",
    evidence=(FIELDS[POOLS][1],),
)
def subnets(fleet: Fleet) -> Outcome:
    """S77: older versions take such a subnet and mean another network than was read."""
    details = _of("003", fleet.sriov.pools, fleet.sriov.pool_issues) + unread(fleet, POOLS)
    return weighed(details, "%d pools have a good subnet.", _none(POOLS))


@cluster_check(
    "RDMA-SRIOV-004",
    "Gateway, addresses and routes of a pool belong to its subnet",
    ERROR,
    "Correct the field of the pool; addresses in use cannot be taken out of it.",
    evidence=(FIELDS[POOLS][1],),
)
def addresses(fleet: Fleet) -> Outcome:
    """S79-S81."""
    details = _of("004", fleet.sriov.pools, fleet.sriov.pool_issues) + unread(fleet, POOLS)
    return weighed(details, "%d pools with good addresses.", _none(POOLS))


@cluster_check(
    "RDMA-SRIOV-005",
    "Pools overlap neither each other nor the networks of the cluster",
    ERROR,
    "Give each rail a subnet of its own that nothing else in the cluster uses.",
    evidence=(FIELDS[POOLS][1], "pod CIDRs", "service CIDRs"),
)
def overlaps(fleet: Fleet) -> Outcome:
    """S77, S78."""
    wish = fleet.sriov
    around = [
        (cidr, prefix)
        for cidr in _cluster_networks(fleet)
        for prefix in [find_prefix(cidr)]
        if prefix is not None
    ]
    details = unread(fleet, POOLS)
    issues = list(wish.pool_issues)
    met = set()
    for pool in wish.pools:
        subnet = find_prefix(mapping(pool, "spec").get("subnet"))
        for cidr, prefix in around:
            if subnet is not None and subnet.version == prefix.version and prefix.overlaps(subnet.masked()):
                message = "%s overlaps %s, a network of the cluster" % (subnet, cidr)
                details.append(bad(called(pool), message, "apart from %s" % cidr, str(subnet)))
                met.add(called(pool))
    details += _of("005", [pool for pool in wish.pools if called(pool) not in met], issues)
    if wish.pools and not around:
        details.append(
            unclear("networks of the cluster", "they are not known (settings pod_cidrs, service_cidrs)")
        )
    return weighed(details, "%d pools have networks of their own.", _none(POOLS))


def _cluster_networks(fleet: Fleet) -> list[str]:
    """The networks of pods and services, as the policy names them, else as the API tells them."""
    found: list[str] = []
    for given, told in (
        (fleet.policy.pod_cidrs, fleet.sriov.cluster.pod_cidrs),
        (fleet.policy.service_cidrs, fleet.sriov.cluster.service_cidrs),
    ):
        found += given if given is not None else [entry.cidr for entry in told or ()]
    return found


# Policies and NICs


def _of_policies(fleet: Fleet, number: str, more: Iterable[Detail] = ()) -> list[Detail]:
    """What the rules of a check say of the policies; unknown where nodes or NICs are not."""
    wish = fleet.sriov
    details = [*more, *unread(fleet, POLICIES)]
    wrong = {detail.subject for detail in details}
    details += _of(number, [p for p in wish.policies if called(p) not in wrong], wish.policy_issues)
    return details + _no_nodes(fleet) if wish.policies else details


@cluster_check(
    "RDMA-SRIOV-007",
    "Each policy takes NICs, and no two take the same",
    ERROR,
    "Give every NIC to one policy, by rootDevices or pfNames; take parts such as ens1f0#0-3 when two must share one.",
    evidence=(FIELDS[POLICIES][1], FIELDS[STATES][1], "nodes"),
)
def selection(fleet: Fleet) -> Outcome:
    """S102, S104, S108, S109, S244: admission stops at the first pair that does not meet."""
    broad = []
    for policy in fleet.sriov.effective:
        without = node_policy.too_broad(policy, fleet.sriov.nodes or ())
        chosen = [node for node in fleet.sriov.nodes or () if node_policy.selects_node(policy, node)]
        if without and len(without) < len(chosen):
            message = "it also selects %s, where it finds none of its NICs" % listed(without)
            broad.append(odd(called(policy), message, "nodes with the NIC", "%d without" % len(without)))
    return weighed(_of_policies(fleet, "007", broad), "%d policies take NICs of their own.", _none(POLICIES))


@cluster_check(
    "RDMA-SRIOV-008",
    "No policy wants more virtual functions than the NIC can have",
    ERROR,
    "Lower numVfs, or raise NUM_OF_VFS of the firmware and reboot; switch SR-IOV on in the BIOS when there are none.",
    evidence=(FIELDS[POLICIES][1], FIELDS[STATES][1]),
)
def counts(fleet: Fleet) -> Outcome:
    """S105, S107."""
    return weighed(_of_policies(fleet, "008"), "%d policies want what their NICs can have.", _none(POLICIES))


@cluster_check(
    "RDMA-SRIOV-009",
    "Link type, NIC and type of the network agree",
    ERROR,
    "Set linkType of the policy to what the NIC has, and cniType sriov for eth, ib-sriov for ib.",
    evidence=(FIELDS[POLICIES][1], FIELDS[CONFIGS][1], FIELDS[STATES][1]),
)
def link_types(fleet: Fleet) -> Outcome:
    """S75, S106, S112."""
    wish = fleet.sriov
    details = []
    for node, asked in wish.wishes.items():
        have = {entry.pci: entry for entry in wish.states[node].interfaces}
        for pci, pf in asked.pfs.items():
            found = have[pci].link_type.lower()
            if pf.link_type and found and found != pf.link_type and not pf.external:
                subject = "%s %s" % (node, have[pci].name or pci)
                message = "the link type is %s, and %s wants %s" % (found, listed(pf.policies), pf.link_type)
                details.append(bad(subject, message, pf.link_type, found))
    details = _of_policies(fleet, "009", details)
    details += _of("009", _vf_configs(wish), wish.config_issues)
    details += unread(fleet, CONFIGS)
    return weighed(details, "%d objects agree about the link type.", _none(POLICIES, CONFIGS))


@cluster_check(
    "RDMA-SRIOV-021",
    "NICs that somebody else manages are as their policy wants them",
    ERROR,
    "Make the virtual functions and the MTU first (externallyManaged only gives them out), or lower what is wanted.",
    evidence=(FIELDS[POLICIES][1], FIELDS[STATES][1]),
)
def external(fleet: Fleet) -> Outcome:
    """S110."""
    wish = fleet.sriov
    chosen = [policy for policy in wish.policies if mapping(policy, "spec").get("externallyManaged") is True]
    details = _of("021", chosen, wish.policy_issues) + unread(fleet, POLICIES)
    if chosen:
        details += _no_nodes(fleet)
    return weighed(details, "%d policies find what they want.", "No policy has externallyManaged.")


@cluster_check(
    "RDMA-SRIOV-022",
    "Virtual functions for RDMA keep the driver of their NIC",
    ERROR,
    "Set deviceType: netdevice; a function that is bound to vfio-pci has no RDMA device.",
    evidence=(FIELDS[POLICIES][1], FIELDS[CONFIGS][1]),
)
def drivers(fleet: Fleet) -> Outcome:
    """S106: the same holds when the policy is silent about RDMA, and a network for RDMA uses its resource."""
    wish = fleet.sriov
    details = unread(fleet, POLICIES)
    made = {
        "%s/%s" % (wish.prefix, text(mapping(policy, "spec").get("resourceName"))): name(policy)
        for policy in wish.effective
        if mapping(policy, "spec").get("deviceType") == "vfio-pci"
    }
    for config in _vf_configs(wish):
        resource = text(_below(config).get("resourceName"))
        if resource in made and multus_config.is_isolated(config, wish.spiderpool_version):
            message = "it moves RDMA devices, and policy %s binds %s to vfio-pci" % (made[resource], resource)
            details.append(bad(called(config), message, "netdevice", "vfio-pci"))
    details += _of("022", wish.policies, wish.policy_issues)
    return weighed(details, "%d policies leave RDMA its driver.", _none(POLICIES))


# Networks


@cluster_check(
    "RDMA-SRIOV-010",
    "The isolation of RDMA devices fits the namespace mode of the nodes",
    CRITICAL,
    "Exclusive mode goes with rdmaIsolation: true, shared mode with false; the module netns_mode changes the mode.",
    evidence=(FIELDS[CONFIGS][1], FIELDS[ATTACHMENTS][1], "rdma-netlink"),
)
def isolation(fleet: Fleet) -> Outcome:
    """S87, S90, S171, S177, S218."""
    wish = fleet.sriov
    details = unread(fleet, CONFIGS)
    modes = _modes(fleet)
    found = sorted(set(modes.values()))
    if len(found) > 1:
        exclusive = [node for node, mode in modes.items() if mode == names.EXCLUSIVE]
        message = "%s are in exclusive mode and the others in shared mode" % listed(sorted(exclusive))
        details.append(bad("nodes", message, "one mode", "both"))
    if wish.configs and not found:
        details.append(unclear("nodes", "no node of the run tells its namespace mode"))
    chains = {(entry.namespace, entry.name): entry.spec for entry in wish.cluster.network_attachments or ()}
    issues = [entry for mode in found for entry in wish.config_issues_in(mode)] or list(wish.config_issues)
    lacking = []
    for config in _vf_configs(wish):
        chain = _plugins(chains.get((namespace(config), name(config))))
        wanted = mapping(config, "spec").get("cniType") == names.SRIOV and multus_config.is_isolated(
            config, wish.spiderpool_version
        )
        if wanted and chain and "rdma" not in [text(plugin.get("type")) for plugin in chain]:
            lacking.append(called(config))
            message = "its NetworkAttachmentDefinition has no plugin rdma in its chain"
            details.append(bad(called(config), message, "rdma behind sriov", "absent"))
    rest = [config for config in wish.configs if called(config) not in lacking]
    details += dict.fromkeys(_of("010", rest, issues))
    return weighed(details, "%d networks fit the mode of the nodes.", _none(CONFIGS))


def _modes(fleet: Fleet) -> dict[str, str]:
    """The mode of each node of which virtual functions are wanted: as the node tells it, else as its state does."""
    wish = fleet.sriov
    found = {}
    for called_, state in wish.states.items():
        if state.rdma_mode in (names.EXCLUSIVE, names.SHARED):
            found[called_] = state.rdma_mode
    for node in fleet.nodes:
        live, mode = fleet.cluster_nodes[node.name], running_mode(node)
        if mode is not None:
            found[live.name if live is not None else node.name] = mode
    return {node: mode for node, mode in found.items() if not wish.wishes or node in wish.wishes}


def _plugins(spec: Any) -> list[dict[str, Any]]:
    """The plugins of a NetworkAttachmentDefinition; none when its text cannot be read."""
    try:
        config = json_text.loads(text(mapping(spec).get("config")) or "{}")
    except ValueError:
        return []
    plugins = [entry for _at, entry in entries(mapping(config).get("plugins"))]
    return plugins or ([config] if isinstance(config, dict) and config.get("type") else [])


@cluster_check(
    "RDMA-SRIOV-011",
    "The resource of each network is one that a policy makes",
    ERROR,
    "Write PREFIX/NAME with the resourceName of the policy; a name that nobody makes shows only when a pod is pending.",
    evidence=(FIELDS[CONFIGS][1], FIELDS[POLICIES][1], FIELDS[ATTACHMENTS][1]),
)
def resources(fleet: Fleet) -> Outcome:
    """S88, S90, S119."""
    wish = fleet.sriov
    details = unread(fleet, CONFIGS, POLICIES, ATTACHMENTS)
    have = {(entry.namespace, entry.name): entry.resource for entry in wish.cluster.network_attachments or ()}
    rest = []
    for config in _vf_configs(wish):
        wanted = text(_below(config).get("resourceName"))
        found = have.get((namespace(config), name(config)))
        if wish.cluster.network_attachments is not None and found is None:
            message = (
                "it has no NetworkAttachmentDefinition of its name; look at the log of spiderpool-controller"
            )
            details.append(bad(called(config), message, "present", "absent"))
        elif found is not None and found != wanted:
            message = "its NetworkAttachmentDefinition has the resource %s" % quoted(found)
            details.append(bad(called(config), message, wanted, found))
        else:
            rest.append(config)
    issues = [(subject, issue) for subject, issue in wish.config_issues if OF_CODE[issue.code] == "011"]
    details += _of("011", rest, issues)
    return weighed(details, "%d networks have a resource.", _none(CONFIGS + " for virtual functions"))


@cluster_check(
    "RDMA-SRIOV-012",
    "No MTU is larger than that of what lies below it",
    ERROR,
    "Raise the MTU of the physical function first (mtu of the policy), and that of the switch before; then the VF's.",
    evidence=(FIELDS[CONFIGS][1], FIELDS[POLICIES][1], FIELDS[STATES][1]),
)
def mtus(fleet: Fleet) -> Outcome:
    """S36: pod, virtual function, physical function; what the switches have is not known here."""
    wish = fleet.sriov
    details = unread(fleet, CONFIGS, POLICIES, STATES)
    for node, asked in wish.wishes.items():
        for entry in wish.states[node].interfaces:
            if entry.pci in asked.pfs:
                details.append(
                    _mtu_of("%s %s" % (node, entry.name or entry.pci), entry, asked.pfs[entry.pci])
                )
    details += _of("012", _vf_configs(wish), wish.config_issues)
    return weighed(details, "%d NICs and networks.", NO_WISH)


def _mtu_of(subject: str, entry: Any, wish: PfWish) -> Detail:
    if entry.mtu is None:
        return unclear(subject, "the state does not tell its MTU")
    if entry.vf_mtu is not None and entry.vf_mtu > entry.mtu:
        message = "a virtual function has MTU %d, the physical one %d" % (entry.vf_mtu, entry.mtu)
        return bad(subject, message, "at most %d" % entry.mtu, str(entry.vf_mtu))
    if wish.mtu is not None and entry.mtu < wish.mtu:
        message = "MTU %d, and %s wants %d" % (entry.mtu, listed(wish.policies), wish.mtu)
        return bad(subject, message, "at least %d" % wish.mtu, str(entry.mtu))
    return ok(subject)


@cluster_check(
    "RDMA-SRIOV-015",
    "Partition keys fit into the table of a port, and somebody enforces them",
    WARNING,
    "Spread the networks over nodes by policies, or share keys; set enableIbKubernetes: true where there is a key.",
    evidence=(FIELDS[CONFIGS][1], FIELDS[ATTACHMENTS][1]),
)
def partitions(fleet: Fleet) -> Outcome:
    """S151, S153."""
    wish = fleet.sriov
    details = unread(fleet, CONFIGS, ATTACHMENTS)
    keys = _keys(wish)
    by_node = {
        node: {key for resource, key in keys if resource in asked.resources}
        for node, asked in wish.wishes.items()
    }
    for node, held in by_node.items():
        if len(held) > multus_config.MOST_PKEYS:
            message = "networks with %d keys can be on the node" % len(held)
            details.append(odd(node, message, "at most %d" % multus_config.MOST_PKEYS, str(len(held))))
        elif held:
            details.append(ok(node))
    with_key = [config for config in _vf_configs(wish) if _below(config).get("pkey") is not None]
    details += _of("015", with_key, wish.config_issues)
    return weighed(details, "%d nodes and networks with partition keys.", "No network has a partition key.")


def _keys(wish: ClusterWish) -> set[tuple[str, str]]:
    """The partition keys of the networks with the resource of each, without its prefix."""
    found = [
        (text(_below(config).get("resourceName")), text(_below(config).get("pkey")))
        for config in _vf_configs(wish)
    ]
    for entry in wish.cluster.network_attachments or ():
        found += [(entry.resource, text(plugin.get("pkey"))) for plugin in _plugins(entry.spec)]
    return {(resource.rpartition("/")[2], key.lower()) for resource, key in found if resource and key}


@cluster_check(
    "RDMA-SRIOV-018",
    "Addresses of networks on several nodes are given out for the whole cluster",
    ERROR,
    "Use the pools of Spiderpool (or another IPAM of the cluster); host-local gives one address on several nodes.",
    evidence=(FIELDS[ATTACHMENTS][1], "sriovnetworks.sriovnetwork.openshift.io"),
)
def address_management(fleet: Fleet) -> Outcome:
    """S154, S188."""
    wish = fleet.sriov
    details = unread(fleet, ATTACHMENTS)
    for entry in wish.cluster.network_attachments or ():
        for plugin in _plugins(entry.spec):
            if text(plugin.get("type")) in _ON_VF:
                subject = "%s %s/%s" % (ATTACHMENTS, entry.namespace, entry.name)
                kind = text(mapping(plugin, "ipam").get("type"))
                details.append(_ipam(subject, text(plugin.get("type")), kind, entry.resource, wish))
    cluster = wish.cluster
    for made, cni in (
        (cluster.sriov_networks, names.SRIOV),
        (cluster.sriov_ib_networks, names.IB_SRIOV),
    ):
        for entry in made or ():
            subject = "%s %s" % ("SriovNetwork" if cni == names.SRIOV else "SriovIBNetwork", entry.name)
            try:
                ipam = json_text.loads(text(mapping(entry.spec).get("ipam")) or "{}")
            except ValueError:
                details.append(unclear(subject, "the text of its ipam is no JSON"))
                continue
            resource = text(mapping(entry.spec).get("resourceName"))
            details.append(_ipam(subject, cni, text(mapping(ipam).get("type")), resource, wish))
    return weighed(details, "%d networks.", "No network of virtual functions is defined.")


def _ipam(subject: str, cni: str, kind: str, resource: str, wish: ClusterWish) -> Detail:
    wanted = resource.rpartition("/")[2]
    users = [node for node, asked in wish.wishes.items() if wanted in asked.resources]
    if kind in _OF_ONE_NODE and len(users) != 1:
        message = "IPAM %s knows one node, and the network is on %s" % (
            kind,
            "%d" % len(users) if users else "nodes that are not known",
        )
        return bad(subject, message, "IPAM of the cluster", kind)
    if kind == "dhcp" and cni == names.IB_SRIOV:
        return bad(subject, "ib-sriov has no DHCP", "another IPAM", kind)
    return ok(subject, kind)


# Drains


@cluster_check(
    "RDMA-SRIOV-016",
    "No node is in two pools",
    ERROR,
    "Make the node selectors of the SriovNetworkPoolConfigs exclude each other; a node in two is never drained.",
    evidence=(FIELDS[POOL_CONFIGS][1], "nodes"),
)
def one_pool(fleet: Fleet) -> Outcome:
    """S120."""
    details = unread(fleet, POOL_CONFIGS) + _nodes_unread(fleet)
    by_node: dict[str, list[str]] = {}
    for pool, _wanted, chosen in _node_pools(fleet):
        for node in chosen:
            by_node.setdefault(node, []).append(pool)
    for node, pools in by_node.items():
        if len(pools) > 1:
            details.append(
                bad(node, "it is in the pools %s" % listed(sorted(pools)), "one pool", str(len(pools)))
            )
        else:
            details.append(ok(node))
    return weighed(details, "%d nodes are in one pool.", _none(POOL_CONFIGS))


@cluster_check(
    "RDMA-SRIOV-017",
    "Each pool lets at least one node be drained, and says how many",
    ERROR,
    "Set maxUnavailable to a number from 1 on; a percentage rounds down, and 0 stops every drain for ever.",
    evidence=(FIELDS[POOL_CONFIGS][1], "nodes"),
)
def unavailable(fleet: Fleet) -> Outcome:
    """S120, S121."""
    details = unread(fleet, POOL_CONFIGS) + _nodes_unread(fleet)
    for pool, wanted, chosen in _node_pools(fleet):
        subject = "%s %s" % (POOL_CONFIGS, pool)
        limit = pool_config.limit(wanted, len(chosen))
        if not chosen:
            details.append(odd(subject, "it selects no node", "at least one node", "none"))
        elif limit.issues:
            details += [_told(subject, issue) for issue in limit.issues]
        elif limit.nodes == pool_config.UNLIMITED:
            message = "it sets no limit, so all of its %d nodes may be drained at once" % len(chosen)
            details.append(odd(subject, message, "maxUnavailable", "absent"))
        else:
            details.append(ok(subject, str(limit.nodes)))
    return weighed(details, "%d pools have a limit.", _none(POOL_CONFIGS))


def _nodes_unread(fleet: Fleet) -> list[Detail]:
    cluster = fleet.sriov.cluster
    if cluster.nodes is not None or not cluster.sriov_pool_configs:
        return []
    return [unclear("nodes", cluster_reason(cluster, "nodes", "nodes"))]


def _node_pools(fleet: Fleet) -> Iterator[tuple[str, Any, list[str]]]:
    """Each pool with its ``maxUnavailable`` and its nodes; none when the nodes are not known."""
    cluster = fleet.sriov.cluster
    for entry in cluster.sriov_pool_configs or ():
        spec = mapping(entry.spec)
        if cluster.nodes is not None:
            chosen = [node.name for node in cluster.nodes if selects(spec.get("nodeSelector"), node.labels)]
            yield entry.name, spec.get("maxUnavailable"), chosen


# What nodes made of it


def _with_wishes(check: Callable[[Fleet], list[Detail]], fleet: Fleet, good: str) -> Outcome:
    """The details of a check about the nodes of which something is wanted."""
    missing = [*unread(fleet, POLICIES), *_no_nodes(fleet)]
    details = missing or check(fleet)
    return weighed(details, good, NO_WISH if fleet.sriov.policies else _none(POLICIES))


@cluster_check(
    "RDMA-SRIOV-019",
    "Nodes can give as many devices as their policies make",
    ERROR,
    "Look at the device plugin's pod on the node; when fewer are there, at virtual functions that pods hold since a "
    "restart of it.",
    evidence=("nodes", FIELDS[POLICIES][1], FIELDS[STATES][1]),
)
def allocatable(fleet: Fleet) -> Outcome:
    """S119, S183."""
    return _with_wishes(_amounts, fleet, "%d resources of nodes are complete.")


def _amounts(fleet: Fleet) -> list[Detail]:
    wish = fleet.sriov
    details: list[Detail] = []
    held = {node.name: node for node in wish.cluster.nodes or ()}
    for node, asked in wish.wishes.items():
        details += _amounts_of(held[node], asked, wish.prefix)
    return details


def _amounts_of(node: ClusterNode, asked: NodeWish, prefix: str) -> Iterator[Detail]:
    want = {"%s/%s" % (prefix, resource): count for resource, count in asked.resources.items()}
    plain = [{"name": node.name, "allocatable": node.allocatable}]
    issues = {issue.at.partition(":")[2]: issue for issue in node_state.allocatable(plain, want)}
    for resource, count in want.items():
        subject, issue = "%s %s" % (node.name, resource), issues.get(resource)
        if resource.rpartition("/")[2] in asked.unclear:
            yield unclear(subject, "policies take the same virtual functions; see RDMA-SRIOV-007")
        elif issue is not None:
            yield bad(subject, issue.message, str(count), node.allocatable.get(resource, "absent"))
        else:
            yield ok(subject, str(count))


@cluster_check(
    "RDMA-SRIOV-023",
    "The operator has made on every node what the policies want",
    ERROR,
    "Wait while something is under way (module sriov_node_state_info tells what); read the log of the config daemon of "
    "a node that failed.",
    evidence=(FIELDS[STATES][1], FIELDS[POLICIES][1], "nodes"),
)
def node_states(fleet: Fleet) -> Outcome:
    """S113-S117: Succeeded alone says nothing, a fresh state has it too."""
    return _with_wishes(_states, fleet, "%d nodes are ready.")


def _states(fleet: Fleet) -> list[Detail]:
    wish = fleet.sriov
    if wish.effective and not wish.states:
        message = "there is none, so the config daemon runs nowhere"
        return [bad(STATES, message, "one for each node", "none")]
    return [_state(wish.states[node], asked) for node, asked in wish.wishes.items()]


def _state(state: SriovNodeState, asked: NodeWish) -> Detail:
    """Bad when it failed, or when nothing is under way and something is missing."""
    verdict = node_state.judge(node_state.of_snapshot(state), asked.counts)
    unset = sum([entry.vfs_without_guid for entry in state.interfaces if entry.pci in asked.pfs])
    if verdict.state == node_state.READY:
        infiniband = any(
            entry.link_type.lower() == names.INFINIBAND
            for entry in state.interfaces
            if entry.pci in asked.pfs
        )
        if unset and infiniband:
            message = "%d virtual functions have a GUID of zeros" % unset
            return bad(state.node, message, "a GUID", "zeros")
        return ok(state.node)
    message = "; ".join(verdict.reasons)
    idle = {state.desired_state, state.current_state} == {node_state.IDLE}
    under_way = verdict.state == node_state.REBOOT or state.sync == "InProgress" or not idle
    if verdict.state == node_state.FAILED or not under_way:
        return bad(state.node, message, node_state.READY, verdict.state)
    return odd(state.node, message, node_state.READY, verdict.state)


@fleet_check(
    "RDMA-SRIOV-014",
    "The host has what its state says: number, driver and link of the virtual functions",
    ERROR,
    "Restart the config daemon of the node; when the number stays wrong, look for SR-IOV in BIOS and firmware.",
    needs=("pci",),
    evidence=("/sys/bus/pci/devices", "/sys/class/infiniband", FIELDS[STATES][1]),
    cluster=True,
)
def hosts(fleet: Fleet) -> dict[str, Outcome]:
    """S43, S113, S115, S116: what the operator tells is compared with what the kernel tells."""
    return {node.name: _host(node, fleet) for node in fleet.nodes}


def _host(node: Node, fleet: Fleet) -> Outcome:
    live, wish = fleet.cluster_nodes[node.name], fleet.sriov
    missing = [*unread(fleet, POLICIES), *_no_nodes(fleet)]
    if missing:
        return unknown(missing[0].message)
    if live is None:
        return unknown(fleet.why_no_cluster_node(node))
    asked = wish.wishes.get(live.name)
    if asked is None:
        return skipped("No policy takes a NIC of this node.")
    functions = {function.address: function for function in node.snapshot.pci or ()}
    details: list[Detail] = []
    for entry in wish.states[live.name].interfaces:
        if entry.pci in asked.pfs:
            details += _pf(node, entry, asked.pfs[entry.pci], functions)
    return weighed(details, "%d physical functions are as their state says.", NO_WISH)


def _pf(node: Node, entry: Any, wish: PfWish, functions: Mapping[str, PciFunction]) -> Iterator[Detail]:
    subject = "%s %s" % (entry.pci, entry.name) if entry.name else entry.pci
    function = functions.get(entry.pci)
    if function is None:
        yield bad(subject, "the host has no such function", "present", "absent")
        return
    found = [other for other in functions.values() if other.vf_of == entry.pci]
    told = entry.vfs if entry.num_vfs is None else entry.num_vfs
    driver = wish.driver or function.driver
    strange = sorted({other.driver or "none" for other in found if other.driver != driver})
    layer = _layer(node, entry.pci)
    if len(found) != told:
        message = "the state tells %d virtual functions, the host has %d" % (told, len(found))
        yield bad(subject, message, str(told), str(len(found)))
    elif len(found) < wish.vfs or (len(found) > wish.vfs and not wish.external):
        message = "%s wants %d virtual functions, the host has %d" % (
            listed(wish.policies),
            wish.vfs,
            len(found),
        )
        yield bad(subject, message, str(wish.vfs), str(len(found)))
    elif strange:
        message = "virtual functions have the driver %s, not %s" % (listed(strange), driver or "none")
        yield bad(subject, message, driver, listed(strange))
    elif wish.link_type and layer is not None and layer != wish.link_type:
        message = "the port is %s, and %s wants %s" % (layer, listed(wish.policies), wish.link_type)
        yield bad(subject, message, wish.link_type, layer)
    else:
        yield ok(subject, str(len(found)))


def _layer(node: Node, pci: str) -> Optional[str]:
    """``eth`` or ``ib``, as the ports of a device tell it."""
    for device in node.snapshot.devices or ():
        for port in device.ports:
            if device.pci == pci and port.link_layer is not None:
                return names.INFINIBAND if port.link_layer == INFINIBAND else names.ETHERNET
    return None
