# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The objects of rails: policy, pool and network of each, which agree with one another. Private to rdma.k8s.

It may change with any release.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Optional

from ..kube.objects import mapping, name, text
from . import ip_pool, multus_config, node_policy, versions
from .issue import Issue, whole
from .multus_config import SPIDERPOOL, Policy, fields_of
from .names import IB_SRIOV, INFINIBAND, NAMESPACE, RDMA_INJECT, RESOURCE_PREFIX, SRIOV, SUBCONFIGS
from .node_policy import OPERATOR, Node
from .rails import Rail

POLICY, POOL, CONFIG = "SriovNetworkNodePolicy", "SpiderIPPool", "SpiderMultusConfig"
POLICY_API, SPIDER_API = "sriovnetwork.openshift.io/v1", "spiderpool.spidernet.io/v2beta1"


class Setup(NamedTuple):
    """What the objects of all rails have in common.

    :param operator_namespace: where the operator is; only policies there count (S102).
    :param network_namespace: where the networks are.
    :param node_selector: labels of the nodes; it should fit no node without the NICs (S244).
    :param isolated: whether the nodes are in exclusive mode, and pods get their own RDMA device (S87).
    :param inject: value by which a pod asks for all rails (S159); empty: pods name their networks.
    """

    node_selector: Mapping[str, str]
    operator_namespace: str = NAMESPACE
    network_namespace: str = NAMESPACE
    resource_prefix: str = RESOURCE_PREFIX
    isolated: bool = True
    priority: int = 99
    inject: str = ""
    spiderpool_version: str = SPIDERPOOL
    operator_version: str = OPERATOR


class Names(NamedTuple):
    """What the objects of a rail are called."""

    policy: str
    pool: str
    network: str


def names_of(rail: Rail) -> Names:
    """Names after the resource, with hyphens, since names of objects have no underscores."""
    base = rail.resource.lower().replace("_", "-")
    return Names(base, "%s-net" % base, "%s-%s" % (base, "ib" if rail.link_type == INFINIBAND else "eth"))


def derive(rails: Iterable[Rail], setup: Setup) -> list[dict[str, Any]]:
    """All objects, the policies first, then the pools, then the networks."""
    found = list(rails)
    return [
        *[_policy(rail, setup) for rail in found],
        *[_pool(rail) for rail in found],
        *[_network(rail, setup) for rail in found],
    ]


def _policy(rail: Rail, setup: Setup) -> dict[str, Any]:
    spec: dict[str, Any] = {
        "resourceName": rail.resource,
        "nodeSelector": dict(setup.node_selector),
        "priority": setup.priority,
        "numVfs": rail.vfs,
        "nicSelector": {
            "vendor": rail.vendor,
            **({"rootDevices": [rail.pci]} if rail.pci else {"pfNames": [rail.name]}),
        },
        "deviceType": "netdevice",
        "isRdma": True,
    }
    if rail.link_type:
        spec["linkType"] = rail.link_type
    if rail.mtu is not None and rail.link_type != INFINIBAND:  # the daemon sets it the way of Ethernet (S112)
        spec["mtu"] = rail.mtu
    return {
        "apiVersion": POLICY_API,
        "kind": "SriovNetworkNodePolicy",
        "metadata": {"name": names_of(rail).policy, "namespace": setup.operator_namespace},
        "spec": spec,
    }


def _pool(rail: Rail) -> dict[str, Any]:
    spec: dict[str, Any] = {"subnet": rail.subnet, "ipVersion": 4, "ips": list(rail.ranges)}
    if rail.gateway:
        spec["gateway"] = rail.gateway
    return {
        "apiVersion": SPIDER_API,
        "kind": "SpiderIPPool",
        "metadata": {"name": names_of(rail).pool},
        "spec": spec,
    }


def _network(rail: Rail, setup: Setup) -> dict[str, Any]:
    cni = IB_SRIOV if rail.link_type == INFINIBAND else SRIOV
    fields = fields_of(cni, versions.find(setup.spiderpool_version))
    part: dict[str, Any] = {
        "resourceName": "%s/%s" % (setup.resource_prefix, rail.resource),
        "ippools": {"ipv4": [names_of(rail).pool]},
    }
    if fields is not None:
        part[fields.isolation] = setup.isolated
        if rail.mtu is not None and "mtu" in fields.known:
            part["mtu"] = rail.mtu
        if rail.pkey and "pkey" in fields.known:
            part["pkey"] = rail.pkey
            part[fields.ib_kubernetes] = True  # without it nobody enforces the key (S153)
    metadata: dict[str, Any] = {"name": names_of(rail).network, "namespace": setup.network_namespace}
    if setup.inject:
        metadata["annotations"] = {RDMA_INJECT: setup.inject}
    return {
        "apiVersion": SPIDER_API,
        "kind": "SpiderMultusConfig",
        "metadata": metadata,
        "spec": {"cniType": cni, SUBCONFIGS[cni]: part},
    }


def problems(
    documents: Iterable[Mapping[str, Any]], setup: Setup, netns_mode: Optional[str] = None
) -> list[str]:
    """What the rules say of derived objects, as sentences."""
    return [
        "%s %s, %s: %s." % (entry["kind"], entry["metadata"]["name"], issue.at, issue.message)
        for entry, issue in judge(documents, setup, netns_mode)
    ]


def judge(
    documents: Iterable[Mapping[str, Any]],
    setup: Setup,
    netns_mode: Optional[str] = None,
    *,
    nodes: Optional[Sequence[Node]] = None,
    existing: Iterable[Mapping[str, Any]] = (),
    need: Optional[Mapping[str, int]] = None,
    supported: Optional[Mapping[str, Sequence[str]]] = None,
) -> list[tuple[Mapping[str, Any], Issue]]:
    """What is wrong with policies, pools and networks, each of which must agree with all of them.

    :param nodes: nodes with their NICs; ``None``: not known.
    :param existing: what is in the cluster already and is not among the documents.
    :param need: the number of pods for which a pool must have an address, by its name.
    :param supported: device ids by vendor; ``None``: those of the chart (S100).
    """
    found = list(documents)
    around = [*found, *existing]
    policies = _of_kind(around, POLICY)
    pools = _of_kind(around, POOL)
    mine = {kind: _of_kind(found, kind) for kind in (POLICY, POOL, CONFIG)}
    of_policies = node_policy.judge_all(
        mine[POLICY],
        nodes,
        policies,
        supported=supported,
        operator_version=setup.operator_version,
        operator_namespace=setup.operator_namespace,
    )
    judged = {
        POLICY: [
            [*issues, *node_policy.unknown_fields(policy)]
            for policy, issues in zip(mine[POLICY], of_policies)
        ],
        POOL: [verdict.issues for verdict in ip_pool.judge_all(mine[POOL], pools, need)],
        CONFIG: multus_config.judge_all(
            mine[CONFIG],
            [name(pool) for pool in pools],
            [_maker(policy) for policy in policies],
            netns_mode=netns_mode,
            resource_prefix=setup.resource_prefix,
            spiderpool_version=setup.spiderpool_version,
        ),
    }
    issues_of = {
        id(entry): issues for kind, lists in judged.items() for entry, issues in zip(mine[kind], lists)
    }
    return [(entry, issue) for entry in found for issue in issues_of.get(id(entry), ())]


def _of_kind(documents: Iterable[Mapping[str, Any]], kind: str) -> list[Mapping[str, Any]]:
    return [entry for entry in documents if entry.get("kind") == kind]


def _maker(policy: Mapping[str, Any]) -> Policy:
    spec = mapping(policy, "spec")
    return Policy(text(spec.get("resourceName")), text(spec.get("linkType")).lower(), whole(spec.get("mtu")))
