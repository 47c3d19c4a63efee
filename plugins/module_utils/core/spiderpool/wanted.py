# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the objects of a cluster ask of each node: virtual functions and resources. Private to rdma.k8s.

It may change with any release. What is judged of the objects themselves is told by the other files here; this one
brings them together as a snapshot of the cluster has them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple, Optional

from ..cluster_reading import keeps_label
from ..cluster_snapshot import ApiObject, ClusterSnapshot, SriovNodeState
from ..kube.objects import mapping, name, namespace, text
from . import ip_pool, multus_config, node_policy, versions
from .issue import Issue, whole
from .names import NAMESPACE, RESOURCE_PREFIX, SUPPORTED

LOWEST_PRIORITY = 99
"""The priority of a policy that names none; the lowest number wins (S101)."""
_DAEMON, _AGENT = "sriov-network-operator-config-daemon", "spiderpool-agent"


class PfWish(NamedTuple):
    """What the policies want of a physical function.

    ``vfs`` is the number that wins; ``policies`` are all that take the function; ``external``: somebody else makes the
    virtual functions, so there may be more; ``driver`` is ``vfio-pci``, or empty for that of the NIC.
    """

    vfs: int
    mtu: Optional[int]
    link_type: str
    driver: str
    external: bool
    policies: tuple[str, ...]


class NodeWish(NamedTuple):
    """What the policies want of a node: by PCI address, and the amount by resource, without its prefix.

    ``unclear`` are resources whose amount cannot be told, since policies take the same virtual functions.
    """

    pfs: dict[str, PfWish]
    resources: dict[str, int]
    unclear: frozenset[str]

    @property
    def counts(self) -> dict[str, int]:
        """The number of virtual functions by PCI address, where the operator makes them."""
        return {pci: pf.vfs for pci, pf in self.pfs.items() if not pf.external}


def wish_of(node: node_policy.Node, policies: Iterable[Mapping[str, Any]], supported: Any = None) -> NodeWish:
    """What policies want of one node.

    Of policies that take one NIC that with the lowest number of priority wins, of equals the larger number of virtual
    functions (S101). Parts that do not meet stand beside each other, and each makes its own resource (S105).
    """
    chosen = [policy for policy in policies if node_policy.selects_node(policy, node)]
    pfs: dict[str, PfWish] = {}
    resources: Counter[str] = Counter()
    unclear: set[str] = set()
    for nic in node.nics:
        takers = [policy for policy in chosen if node_policy.selects_nic(policy, nic, supported)]
        if not takers:
            continue
        pfs[nic.pci] = _pf(takers)
        parts = [(text(mapping(taker, "spec").get("resourceName")), _part(taker, nic)) for taker in takers]
        for position, (resource, part) in enumerate(parts):
            others = parts[:position] + parts[position + 1 :]
            if any(part[0] <= last and first <= part[1] for _other, (first, last) in others):
                unclear.add(resource)
            resources[resource] += part[1] - part[0] + 1
    return NodeWish(pfs, dict(resources), frozenset(unclear))


def _pf(takers: Sequence[Mapping[str, Any]]) -> PfWish:
    specs = sorted([mapping(taker, "spec") for taker in takers], key=_rank)
    first = specs[0]
    return PfWish(
        _count(first),
        whole(first.get("mtu")),
        text(first.get("linkType")).lower(),
        "vfio-pci" if first.get("deviceType") == "vfio-pci" else "",
        first.get("externallyManaged") is True,
        tuple(sorted([name(taker) for taker in takers])),
    )


def _rank(spec: Mapping[str, Any]) -> tuple[int, int]:
    priority = whole(spec.get("priority"))
    return LOWEST_PRIORITY if priority is None else priority, -_count(spec)


def _count(spec: Mapping[str, Any]) -> int:
    return max(whole(spec.get("numVfs")) or 0, 0)


def _part(policy: Mapping[str, Any], nic: node_policy.Nic) -> tuple[int, int]:
    """First and last virtual function that a policy takes of a NIC."""
    listed = mapping(policy, "spec", "nicSelector").get("pfNames")
    for entry in listed if isinstance(listed, list) else []:
        found = node_policy.range_of(entry)
        if found.pf == nic.name and found.first is not None and found.last is not None:
            return found.first, found.last
    return 0, _count(mapping(policy, "spec")) - 1


class ClusterWish:
    """The objects of a cluster and what follows from them; ``None`` where the snapshot does not tell.

    :param resource_prefix: the prefix of the resources, as the operator is set up (S95).
    """

    def __init__(self, cluster: ClusterSnapshot, resource_prefix: str = RESOURCE_PREFIX) -> None:
        self.cluster = cluster
        self.prefix = resource_prefix

    @cached_property
    def namespace(self) -> str:
        """Where the operator is: where the states of nodes are, else where the chart puts it (S95, S102)."""
        found = {state.namespace for state in self.cluster.sriov_node_states or () if state.namespace}
        return found.pop() if len(found) == 1 else NAMESPACE

    def version_of(self, image: str, default: str) -> str:
        """The version in the tag of an image that a DaemonSet runs, such as ``v1.3.0``."""
        for daemonset in self.cluster.daemonsets or ():
            for container in daemonset.containers:
                repository, _colon, tag = container.image.partition("@")[0].rpartition(":")
                if repository.rpartition("/")[2] == image and versions.find(tag) is not None:
                    return tag
        return default

    @cached_property
    def operator_version(self) -> str:
        return self.version_of(_DAEMON, node_policy.OPERATOR)

    @cached_property
    def spiderpool_version(self) -> str:
        return self.version_of(_AGENT, multus_config.SPIDERPOOL)

    @cached_property
    def supported(self) -> dict[str, Sequence[str]]:
        """The NICs of the chart's list (S100), and those that the operator itself lists in the states of nodes."""
        found: dict[str, set[str]] = {vendor: set(devices) for vendor, devices in SUPPORTED.items()}
        for state in self.cluster.sriov_node_states or ():
            for entry in state.interfaces:
                found.setdefault(entry.vendor, set()).add(entry.device)
        return {vendor: tuple(sorted(devices)) for vendor, devices in found.items()}

    @cached_property
    def states(self) -> dict[str, SriovNodeState]:
        """The states in the namespace of the operator, by node."""
        held = self.cluster.sriov_node_states or ()
        return {state.node: state for state in held if state.namespace in ("", self.namespace)}

    @cached_property
    def nodes(self) -> Optional[list[node_policy.Node]]:
        """All nodes, with the NICs that their states tell; ``None``: nodes or states are not known."""
        if self.cluster.nodes is None or self.cluster.sriov_node_states is None:
            return None
        return [
            node_policy.Node(
                node.name, node.labels, _nics(self.states[node.name]) if node.name in self.states else ()
            )
            for node in self.cluster.nodes
        ]

    @cached_property
    def policies(self) -> list[dict[str, Any]]:
        """The policies as manifests, without the one that the operator makes for itself.

        Labels that a snapshot does not keep cannot be compared and are left out of the selectors of nodes.
        """
        found = [as_manifest(entry, "SriovNetworkNodePolicy") for entry in self.cluster.sriov_policies or ()]
        return [comparable(policy) for policy in found if name(policy) != node_policy.DEFAULT]

    @cached_property
    def effective(self) -> list[dict[str, Any]]:
        """The policies that the operator looks at (S102)."""
        return [policy for policy in self.policies if namespace(policy) in ("", self.namespace)]

    @cached_property
    def pools(self) -> list[dict[str, Any]]:
        return [as_manifest(entry, "SpiderIPPool") for entry in self.cluster.ip_pools or ()]

    @cached_property
    def configs(self) -> list[dict[str, Any]]:
        return [as_manifest(entry, "SpiderMultusConfig") for entry in self.cluster.multus_configs or ()]

    @cached_property
    def wishes(self) -> dict[str, NodeWish]:
        """What is wanted of each node that has a state object and of which something is wanted."""
        found = {node.name: wish_of(node, self.effective, self.supported) for node in self.nodes or ()}
        return {called: wish for called, wish in found.items() if wish.pfs}

    @cached_property
    def makers(self) -> list[multus_config.Policy]:
        """What the policies make, each with its link type and the smallest MTU of the PFs that it takes (S36)."""
        found = []
        for policy in self.effective:
            spec = mapping(policy, "spec")
            found.append(
                multus_config.Policy(
                    text(spec.get("resourceName")), text(spec.get("linkType")).lower(), self._mtu(policy)
                )
            )
        return found

    def _mtu(self, policy: Mapping[str, Any]) -> Optional[int]:
        """The smallest MTU of the PFs; the operator raises one to that of the policy, and lowers none (S118)."""
        raised = whole(mapping(policy, "spec").get("mtu"))
        found = [
            max(nic.mtu, raised or 0)
            for node in self.nodes or ()
            if node_policy.selects_node(policy, node)
            for nic in node.nics
            if nic.mtu is not None and node_policy.selects_nic(policy, nic, self.supported)
        ]
        return min(found, default=raised)

    @cached_property
    def policy_issues(self) -> list[tuple[str, Issue]]:
        """What is wrong with each policy, each with what the policy is called."""
        judged = node_policy.judge_all(
            self.policies,
            self.nodes,
            self.policies,
            supported=self.supported,
            operator_version=self.operator_version,
            operator_namespace=self.namespace,
        )
        return [
            (called(policy), issue)
            for policy, issues in zip(self.policies, judged)
            for issue in [*issues, *node_policy.unknown_fields(policy)]
        ]

    @cached_property
    def pool_issues(self) -> list[tuple[str, Issue]]:
        """What is wrong with each pool."""
        judged = ip_pool.judge_all(self.pools, self.pools)
        return [
            (called(pool), issue) for pool, verdict in zip(self.pools, judged) for issue in verdict.issues
        ]

    @cached_property
    def config_issues(self) -> list[tuple[str, Issue]]:
        """What is wrong with each SpiderMultusConfig, whatever the mode of the nodes is."""
        return self.config_issues_in("")

    def config_issues_in(self, netns_mode: str) -> list[tuple[str, Issue]]:
        """What is wrong with each SpiderMultusConfig on nodes of a mode; empty: not known."""
        known = self.cluster.ip_pools is not None
        makers = None if self.cluster.sriov_policies is None else self.makers
        judged = multus_config.judge_all(
            self.configs,
            [name(pool) for pool in self.pools] if known else None,
            makers,
            netns_mode=netns_mode or None,
            resource_prefix=self.prefix,
            spiderpool_version=self.spiderpool_version,
        )
        return [(called(config), issue) for config, issues in zip(self.configs, judged) for issue in issues]


def as_manifest(entry: ApiObject, kind: str) -> dict[str, Any]:
    """An object of a snapshot as the manifest that it was."""
    metadata: dict[str, Any] = {"name": entry.name}
    if entry.namespace:
        metadata["namespace"] = entry.namespace
    if entry.annotations:
        metadata["annotations"] = entry.annotations
    return {"kind": kind, "metadata": metadata, "spec": entry.spec}


def comparable(policy: dict[str, Any]) -> dict[str, Any]:
    """A policy without the labels of nodes that a snapshot does not keep."""
    wanted = mapping(policy, "spec", "nodeSelector")
    kept = {key: value for key, value in wanted.items() if keeps_label(key)}
    if len(kept) == len(wanted):
        return policy
    return {**policy, "spec": {**mapping(policy, "spec"), "nodeSelector": kept}}


def called(content: Mapping[str, Any]) -> str:
    """Kind and name, as the findings name an object."""
    where = namespace(content)
    return "%s %s" % (content["kind"], "%s/%s" % (where, name(content)) if where else name(content))


def _nics(state: SriovNodeState) -> tuple[node_policy.Nic, ...]:
    return tuple(
        [
            node_policy.Nic(
                entry.name,
                entry.pci,
                entry.vendor,
                entry.device,
                entry.total_vfs,
                entry.vfs if entry.num_vfs is None else entry.num_vfs,
                entry.mtu,
                entry.link_type,
            )
            for entry in state.interfaces
        ]
    )
