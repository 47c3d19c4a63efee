# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""From a table of rails to all objects of the target, and everything that is wrong before one of them is made.

Private to rdma.k8s: it may change with any release. Without a cluster the input alone is judged; with one also whether
its definitions have the fields, its nodes the NICs, and what is there already agrees.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Optional

from ..cluster_snapshot import ClusterNode, ClusterSnapshot
from ..errors import RdmaError
from ..kube import manifest, objects as kube
from ..kube.selectors import selects
from ..snapshot import NodeSnapshot
from . import (
    deployed,
    gpu_operator,
    ib_kubernetes,
    objects,
    pasted,
    pool_config,
    prerequisites,
    table,
    versions,
)
from .issue import Issue, error, warning
from .multus_config import fields_of
from .names import ETHERNET, EXCLUSIVE, IB_SRIOV, NETWORKS, RDMA_INJECT, SHARED, SUBCONFIGS
from .rails import Rail
from .table import Told
from .wanted import ClusterWish, comparable

LABELS = {"app.kubernetes.io/managed-by": "rdma.k8s", "app.kubernetes.io/part-of": "spiderpool-sriov"}
"""On all that is made, by which it is found again when it is to go."""
POOL_CONFIG = "SriovNetworkPoolConfig"
NODE, OPERATOR = OWNERS = ("node", "operator")
MODES = (EXCLUSIVE, SHARED)
_PLAIN: dict[str, Any] = {"true": True, "false": False, "null": None}
_WHOLE = re.compile(r"-?(?:0|[1-9][0-9]{0,17})")
MANY = 100
"""So many nodes are taken for a percentage as long as it is not known how many there are."""
POOL_CONFIG_NAME, TEST_NAME = "rdma-k8s", "rdma-k8s-test"


class Trial(NamedTuple):
    """Pods on all nodes that hold a virtual function of each rail, for tests. ``image`` empty: none."""

    image: str = ""
    namespace: str = "default"
    default_network: str = ""
    command: Sequence[str] = ("sleep", "infinity")
    tolerations: Sequence[Mapping[str, Any]] = ()


class Wish(NamedTuple):
    """What the user wants.

    :param rows: the table of rails; see :mod:`.table`.
    :param setup: what all objects have in common; its versions count where the cluster does not tell them.
    :param netns_mode: the mode of the nodes, and ``netns_owner`` who sets it: the node's own file, or the operator.
    :param max_unavailable: how many nodes may be drained at a time; ``None``: no SriovNetworkPoolConfig is made.
    :param drain: nodes are to be drained before they are rebooted.
    :param nodes: names of nodes that must have the rails.
    :param manifests: further objects that are judged with those of the rails.
    :param gpudirect: NICs must reach the memory of GPUs.
    :param ufm_keys: names of the keys of the Secret for ib-kubernetes; ``None``: none is made.
    :param ib_kubernetes: how ib-kubernetes is to run; ``None``: the wish says nothing of it.
    """

    rows: Any
    setup: objects.Setup
    defaults: table.Defaults = table.Defaults()
    netns_mode: str = EXCLUSIVE
    netns_owner: str = NODE
    max_unavailable: Any = None
    drain: bool = True
    nodes: Sequence[str] = ()
    test: Trial = Trial()
    manifests: Sequence[Mapping[str, Any]] = ()
    values: Optional[Mapping[str, Any]] = None
    set_expressions: Sequence[str] = ()
    sources: Sequence[str] = ()
    targets: Sequence[str] = ()
    ufm_keys: Optional[Sequence[str]] = None
    gpudirect: bool = False
    ib_kubernetes: Optional[ib_kubernetes.Program] = None


class Live(NamedTuple):
    """What a cluster tells.

    :param definitions: the CustomResourceDefinitions of :data:`.deployed.PLURALS` that are there.
    :param disable_drain: what the SriovOperatorConfig says; ``None``: there is none.
    :param gpu_policies: the ClusterPolicies of the GPU operator; ``None``: they may not be read.
    """

    snapshot: ClusterSnapshot
    definitions: Sequence[Mapping[str, Any]]
    disable_drain: Optional[bool] = None
    gpu_policies: Optional[Sequence[Mapping[str, Any]]] = ()


class Plan(NamedTuple):
    """What is to be made, and what is wrong.

    :param program: the objects of ib-kubernetes, which come before those of the rails.
    :param nodes: those that the selector fits; ``None``: not known.
    """

    rails: tuple[Rail, ...]
    program: list[dict[str, Any]]
    objects: list[dict[str, Any]]
    test: list[dict[str, Any]]
    told: list[Told]
    nodes: Optional[list[str]]
    spiderpool_version: str
    operator_version: str


def decide(wish: Wish, live: Optional[Live] = None, snapshots: Sequence[NodeSnapshot] = ()) -> Plan:
    """The objects of all rails, and the findings; what is wrong is told, nothing is raised."""
    setup = wish.setup if live is None else _fitting(wish.setup, live)
    found = table.read(wish.rows, wish.defaults, bool(setup.inject))
    told = [*found.told, *_settings(wish, setup)]
    documents = [_labelled(entry) for entry in objects.derive(found.rails, setup)]
    if wish.max_unavailable is not None or wish.netns_owner == OPERATOR:
        documents.insert(0, _pool_config(wish, setup))
    told += [
        Told("rail %d" % rail.number, issue) for rail in found.rails for issue in _lost(rail, setup, live)
    ]
    everything = [*documents, *wish.manifests]
    nodes = _nodes(wish, live)
    told += _judged(everything, wish, setup, live, _need(found.rails, nodes))
    test = [_labelled(_test(wish, setup, found.rails))] if wish.test.image and found.rails else []
    program: list[dict[str, Any]] = []
    if wish.ib_kubernetes is not None:
        program = [_labelled(entry) for entry in ib_kubernetes.documents(wish.ib_kubernetes)]
        told += _program(wish.ib_kubernetes, wish.ufm_keys, everything, setup, live)
    told += pasted.judge([*program, *everything, *test], _around(setup, live))
    if live is not None:
        told += _on_cluster(everything, wish, setup, live, nodes or [])
        told += [
            Told(node.name, issue)
            for node in nodes or ()
            for issue in prerequisites.of_addresses(found.rails, node)
        ]
        calico = prerequisites.of_calico(live.snapshot.daemonsets or ())
        told += [Told("DaemonSet %s" % prerequisites.CALICO, issue) for issue in calico]
    for snapshot in snapshots:
        issues = [issue for rail in found.rails for issue in prerequisites.of_rail(rail, snapshot)]
        issues += prerequisites.of_node(found.rails, snapshot, wish.netns_mode)
        told += [Told(snapshot.name, issue) for issue in issues]
    return Plan(
        found.rails,
        program,
        documents,
        test,
        _once(told),
        None if nodes is None else [node.name for node in nodes],
        setup.spiderpool_version,
        setup.operator_version,
    )


def _once(told: Sequence[Told]) -> list[Told]:
    """In order, what says the same of one place once; a NIC of two rails is told by the table already."""
    return list(dict.fromkeys(told))


class Chart(NamedTuple):
    """How Spiderpool's chart is to be installed (S95). ``registry`` empty: the images' own registries."""

    registry: str = ""
    metrics: bool = False
    grafana: bool = False
    gateway_detection: bool = True
    inject_include: Sequence[str] = ()
    inject_exclude: Sequence[str] = ()
    more: Mapping[str, Any] = {}
    expressions: Sequence[str] = ()


def chart_values(chart: Chart, setup: objects.Setup, drain: bool) -> dict[str, Any]:
    """The values for the chart; those of the user are laid over them, and over these his expressions.

    Expressions become values, so that what is installed can be compared with what is wanted.
    """
    found: dict[str, Any] = {
        "sriov": {
            "install": True,
            "resourcePrefix": setup.resource_prefix,
            "operatorConfig": {"disableDrain": not drain},
        },
        "ipam": {"enableGatewayDetection": chart.gateway_detection},
    }
    if chart.registry:
        found["global"] = {"imageRegistryOverride": chart.registry}
    if chart.metrics:
        found["spiderpoolAgent"] = {"prometheus": {"enabled": True, "enabledRdmaMetric": True}}
    if chart.grafana:
        found["grafanaDashboard"] = {"install": True}
    if setup.inject:
        inject: dict[str, Any] = {"enabled": True}
        if chart.inject_include:
            inject["namespacesInclude"] = list(chart.inject_include)
        if chart.inject_exclude:
            inject["namespacesExclude"] = list(chart.inject_exclude)
        found["spiderpoolController"] = {"podResourceInject": inject}
    found = kube.merged(found, chart.more)
    for entry in chart.expressions:
        key, _equals, value = str(entry).partition("=")
        nested: Any = _value(value)
        for part in reversed(key.split(".")):
            nested = {part: nested}
        found = kube.merged(found, nested)
    return found


def _value(text: str) -> Any:
    """What ``helm --set`` makes of a text."""
    if text in _PLAIN:
        return _PLAIN[text]
    return int(text) if _WHOLE.fullmatch(text) else text


def is_ok(told: Sequence[Told]) -> bool:
    """Whether none of the findings is an error."""
    return not any(entry.issue.severity == "error" for entry in told)


def sentence(told: Told) -> str:
    """A finding for people."""
    where = "%s, %s" % (told.subject, told.issue.at) if told.issue.at else told.subject
    return "%s: %s (%s)." % (where, told.issue.message, told.issue.code)


def _fitting(setup: objects.Setup, live: Live) -> objects.Setup:
    """The setup for the versions that are deployed: fields by the definition, rules by the images."""
    cluster = ClusterWish(live.snapshot, setup.resource_prefix)
    version = cluster.version_of("spiderpool-agent", setup.spiderpool_version)
    for definition in live.definitions:
        if kube.name(definition) == deployed.PLURALS[objects.CONFIG]:
            fields = deployed.fields_of(definition)
            mine = deployed.fields_known(version)
            if fields is not None and fields.sriov != mine:
                version = fields.version
    operator = cluster.version_of("sriov-network-operator-config-daemon", setup.operator_version)
    return setup._replace(spiderpool_version=version, operator_version=operator)


def _labelled(document: dict[str, Any]) -> dict[str, Any]:
    metadata = document["metadata"]
    return {**document, "metadata": {**metadata, "labels": {**metadata.get("labels", {}), **LABELS}}}


def _settings(wish: Wish, setup: objects.Setup) -> Iterator[Told]:
    """Settings that concern no single rail."""
    for what, value, label in (
        ("namespace", setup.operator_namespace, True),
        ("network_namespace", setup.network_namespace, True),
        ("resource_prefix", setup.resource_prefix, False),
    ):
        try:
            manifest.require_name(value, what, label=label)
        except RdmaError as problem:
            yield Told(what, error("name-malformed", "", problem.message.rstrip(".")))
    for issue in pasted.selector(setup.node_selector, "node_selector"):
        yield Told("settings", issue)
    if setup.inject:
        yield from [Told("settings", issue) for issue in _inject(setup.inject)]
    yield from _limit(wish, MANY)
    if wish.values is not None:
        for issue in pasted.values(wish.values, wish.drain, bool(setup.inject), setup.resource_prefix):
            yield Told("chart values", issue)
    for subject, issues in (
        ("chart values", pasted.expressions(wish.set_expressions)),
        ("sources", pasted.sources(wish.sources)),
        ("UFM", pasted.secret(wish.ufm_keys) if wish.ufm_keys is not None else ()),
    ):
        yield from [Told(subject, issue) for issue in issues]
    derived = objects.derive(table.read(wish.rows, wish.defaults).rails, setup)
    pools = [entry for entry in [*derived, *wish.manifests] if kube.kind(entry) == objects.POOL]
    yield from [Told("targets", issue) for issue in pasted.targets(wish.targets, pools)]


def _program(
    program: ib_kubernetes.Program,
    ufm_keys: Optional[Sequence[str]],
    documents: Sequence[Mapping[str, Any]],
    setup: objects.Setup,
    live: Optional[Live],
) -> Iterator[Told]:
    """What is wrong with ib-kubernetes, among these documents and in this cluster."""
    configs = [entry for entry in documents if kube.kind(entry) == objects.CONFIG]
    if live is not None:
        configs += ClusterWish(live.snapshot, setup.resource_prefix).configs
    fields = fields_of(IB_SRIOV, versions.find(setup.spiderpool_version))
    parts = [kube.mapping(entry, "spec", SUBCONFIGS[IB_SRIOV]) for entry in configs]
    is_used = fields is None or any(part.get(fields.ib_kubernetes) is True for part in parts)
    issues = list(ib_kubernetes.judge(program, ufm_keys, is_used))
    if live is not None and live.snapshot.nodes is not None:
        issues += ib_kubernetes.judge_nodes(program, live.snapshot.nodes)
    yield from [Told(ib_kubernetes.NAME, issue) for issue in issues]


def _limit(wish: Wish, nodes: int) -> Iterator[Told]:
    """How many nodes may be away; none of them is a drain that never begins (S121)."""
    if wish.max_unavailable is not None:
        for issue in pool_config.limit(wish.max_unavailable, nodes).issues:
            yield Told("settings", issue._replace(at="max_unavailable"))


def _inject(value: str) -> Iterator[Issue]:
    """Networks are found by a label, so the value must be one (S160)."""
    if not pasted.LABEL_VALUE.fullmatch(value):
        message = "the value by which pods ask for all rails must be one of a label, found %r" % value
        yield error("inject-value-invalid", "inject", message)


def _lost(rail: Rail, setup: objects.Setup, live: Optional[Live]) -> Iterator[Issue]:
    """Wishes for which the deployed version has no field (S91)."""
    known = deployed.fields_known(setup.spiderpool_version)
    if rail.mtu is not None and rail.link_type == ETHERNET and "mtu" not in known:
        message = "Spiderpool %s has no field for the MTU of virtual functions, so pods would keep 1500" % (
            setup.spiderpool_version if live is None else "of this cluster"
        )
        yield error("mtu-field-missing", "mtu", message)


def _pool_config(wish: Wish, setup: objects.Setup) -> dict[str, Any]:
    spec: dict[str, Any] = {"nodeSelector": {"matchLabels": dict(setup.node_selector)}}
    if wish.max_unavailable is not None:
        spec["maxUnavailable"] = wish.max_unavailable
    if wish.netns_owner == OPERATOR:
        spec["rdmaMode"] = wish.netns_mode
    return _labelled(
        {
            "apiVersion": objects.POLICY_API,
            "kind": POOL_CONFIG,
            "metadata": {"name": POOL_CONFIG_NAME, "namespace": setup.operator_namespace},
            "spec": spec,
        }
    )


def _test(wish: Wish, setup: objects.Setup, rails: Sequence[Rail]) -> dict[str, Any]:
    """A DaemonSet as the guide's rdma-tools, with the right to lock memory (S140) and the network of the cluster."""
    names = [objects.names_of(rail).network for rail in rails]
    annotations = {}
    if wish.test.default_network:
        annotations[pasted.DEFAULT_NETWORK] = wish.test.default_network
    container: dict[str, Any] = {
        "name": "test",
        "image": wish.test.image,
        "command": list(wish.test.command),
        "securityContext": {"capabilities": {"add": ["IPC_LOCK"]}},
    }
    if setup.inject:
        annotations[RDMA_INJECT] = setup.inject
    else:
        annotations[NETWORKS] = ",".join(["%s/%s" % (setup.network_namespace, called) for called in names])
        held = {"%s/%s" % (setup.resource_prefix, rail.resource): "1" for rail in rails}
        container["resources"] = {"limits": held, "requests": held}
    labels = {"app.kubernetes.io/name": TEST_NAME, **LABELS}
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": TEST_NAME, "namespace": wish.test.namespace},
        "spec": {
            "selector": {"matchLabels": {"app.kubernetes.io/name": TEST_NAME}},
            "template": {
                "metadata": {"labels": labels, "annotations": annotations},
                "spec": {
                    "nodeSelector": dict(setup.node_selector),
                    "terminationGracePeriodSeconds": 5,
                    "containers": [container],
                    **(
                        {"tolerations": [dict(entry) for entry in wish.test.tolerations]}
                        if wish.test.tolerations
                        else {}
                    ),
                },
            },
        },
    }


def _nodes(wish: Wish, live: Optional[Live]) -> Optional[list[ClusterNode]]:
    """The nodes that the selector fits."""
    if live is None or live.snapshot.nodes is None:
        return None
    chosen = comparable({"spec": {"nodeSelector": dict(wish.setup.node_selector)}})["spec"]["nodeSelector"]
    return [
        node
        for node in live.snapshot.nodes
        if all(node.labels.get(key) == value for key, value in chosen.items())
    ]


def _need(rails: Sequence[Rail], nodes: Optional[Sequence[ClusterNode]]) -> dict[str, int]:
    """All virtual functions of all nodes may have a pod."""
    if not nodes:
        return {}
    return {objects.names_of(rail).pool: rail.vfs * len(nodes) for rail in rails}


def _judged(
    documents: Sequence[Mapping[str, Any]],
    wish: Wish,
    setup: objects.Setup,
    live: Optional[Live],
    need: Mapping[str, int],
) -> list[Told]:
    """The rules of policies, pools and networks, with what the cluster has already."""
    nodes, existing, supported = None, [], None
    if live is not None:
        cluster = ClusterWish(live.snapshot, setup.resource_prefix)
        supported = cluster.supported
        nodes = cluster.nodes if live.snapshot.sriov_node_states else None
        ours = {(kube.kind(entry), kube.namespace(entry), kube.name(entry)) for entry in documents}
        existing = [
            entry
            for entry in [*cluster.effective, *cluster.pools, *cluster.configs]
            if (kube.kind(entry), kube.namespace(entry), kube.name(entry)) not in ours
        ]
    readable = [
        comparable(dict(entry)) if kube.kind(entry) == objects.POLICY and nodes is not None else entry
        for entry in documents
    ]
    told = objects.judge(
        readable,
        setup,
        wish.netns_mode,
        nodes=nodes,
        existing=existing,
        need=need,
        supported=supported,
    )
    return [Told(kube.ref(entry), issue) for entry, issue in told]


def _around(setup: objects.Setup, live: Optional[Live]) -> pasted.Surroundings:
    if live is None:
        return pasted.Surroundings(setup.resource_prefix)
    snapshot = live.snapshot
    networks = ["%s/%s" % (entry.namespace, entry.name) for entry in snapshot.network_attachments or ()]
    prefix = setup.resource_prefix
    resources = [
        "%s/%s" % (prefix, kube.text(kube.mapping(policy, "spec").get("resourceName")))
        for policy in ClusterWish(snapshot, prefix).effective
    ]
    nodes = None if snapshot.nodes is None else [node.name for node in snapshot.nodes]
    return pasted.Surroundings(prefix, networks, resources, nodes)


# --- with a cluster


def _on_cluster(
    documents: Sequence[Mapping[str, Any]],
    wish: Wish,
    setup: objects.Setup,
    live: Live,
    nodes: Sequence[ClusterNode],
) -> Iterator[Told]:
    for entry in documents:
        for issue in deployed.judge(entry, live.definitions):
            yield Told(kube.ref(entry), issue)
    if live.snapshot.nodes is not None:
        yield from _selected(wish, nodes)
        yield from _limit(wish, len(nodes)) if nodes else ()
    if live.disable_drain is not None and live.disable_drain:
        message = (
            "SriovOperatorConfig default has disableDrain: true, so nodes are rebooted under running pods"
        )
        make = error if wish.drain else warning
        yield Told("cluster", make("drain-disabled", "spec.disableDrain", message))  # S123
    yield from _owners(wish, setup, live, nodes)
    if live.gpu_policies is not None:
        yield from gpu_operator.judge(live.gpu_policies, wish.gpudirect)
    elif wish.gpudirect:
        message = "ClusterPolicies of the GPU operator may not be listed, so they are not judged"
        yield Told("cluster", warning("gpudirect-unknown", "", message))
    default = wish.test.default_network
    known = live.snapshot.network_attachments
    there = {"%s/%s" % (entry.namespace, entry.name) for entry in known or ()}
    if wish.test.image and default and known is not None and default not in there:
        message = "there is no NetworkAttachmentDefinition %s" % default
        yield Told("test", error("default-network-unknown", "default_network", message))


def _selected(wish: Wish, nodes: Sequence[ClusterNode]) -> Iterator[Told]:
    """Nodes that must have the rails must be selected; control planes had better not be (S244)."""
    there = {node.name for node in nodes}
    for called in wish.nodes:
        if called not in there:
            message = "the node must have the rails, and it has not the labels of node_selector"
            yield Told(called, error("node-not-selected", "metadata.labels", message))
    if not nodes:
        yield Told("cluster", error("node-none-selected", "node_selector", "no node has these labels"))
    for node in nodes:
        if "node-role.kubernetes.io/control-plane" in node.labels:
            message = "the selector fits this node of the control plane, which would be drained and rebooted"
            yield Told(node.name, warning("nodeselector-control-plane", "node_selector", message))


def _owners(wish: Wish, setup: objects.Setup, live: Live, nodes: Sequence[ClusterNode]) -> Iterator[Told]:
    """One owner of the namespace mode for each node (S23 to S26), and one pool (S120)."""
    for pool in live.snapshot.sriov_pool_configs or ():
        if (pool.namespace, pool.name) == (setup.operator_namespace, POOL_CONFIG_NAME):
            continue
        spec = pool.spec if isinstance(pool.spec, dict) else {}
        both = [node.name for node in nodes if selects(spec.get("nodeSelector"), node.labels)]
        subject = "%s %s/%s" % (POOL_CONFIG, pool.namespace, pool.name)
        if both and spec.get("rdmaMode"):
            message = "it sets the namespace mode of %s, too: a node has one owner" % ", ".join(both)
            yield Told(subject, error("netns-two-owners", "spec.rdmaMode", message))
        if both and (wish.max_unavailable is not None or wish.netns_owner == OPERATOR):
            message = "%s would be in two pools, and such a node is never drained" % ", ".join(both)
            yield Told(subject, error("node-in-two-pools", "spec.nodeSelector", message))
    if wish.netns_owner == OPERATOR:
        for node in nodes:
            if "ubuntu" in node.os.lower():
                message = (
                    "on Ubuntu the operator's kernel argument never takes effect, and it reboots for ever"
                )
                yield Told(node.name, error("rdmamode-reboot-loop", "netns_owner", message))  # S24, S175
