# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Area ACK: the device plugin and Lingjun nodes. Private to rdma.k8s: it may change with any release.

What the API tells is judged once for the cluster, with a detail for each Lingjun node, whether its host was read or
not; what only a host tells is judged for each node of the run. The numbers that are missing are rules of the lint.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Callable, Optional

from ..ack import device_plugin, fabric_ip, names, node_resource
from ..ack.verdict import UNKNOWN as NOT_TOLD, Reason
from ..cluster_snapshot import ClusterNode, ClusterSnapshot, DaemonSet, DriverPod
from ..finding import CRITICAL, ERROR, WARNING, Detail
from ..nics import Nic
from ..snapshot import Link
from ..stamps import seconds_between
from .context import Fleet, Node, cluster_reason
from .node import running_mode
from .policy import Policy
from .reads import needs, unread, why_unread
from .registry import (
    Outcome,
    bad,
    cluster_check,
    failed,
    fleet_check,
    listed,
    node_check,
    odd,
    ok,
    passed,
    rolled_up,
    skipped,
    unclear,
    unknown,
    weighed,
)

SETTLED_AFTER = 300
"""Seconds for which amounts of before a restart can still stand there (A57)."""
NO_NODE = "No node of the cluster has the label of Lingjun nodes; see RDMA-ACK-011."
NO_PLUGIN = "The device plugin is not in the cluster; see RDMA-ACK-001."
NOT_LINGJUN = "The node is no Lingjun node (it lacks the label)."
NO_NIC = "No RDMA NIC was found on this node."

_ANCESTORS = ("k8s-rdma-shared-dev-plugin", "k8s-rdma-sriov-dev-plugin")
_VERSION = re.compile(r"v?([0-9]{1,6})\.([0-9]{1,6})", re.ASCII)
_TOLERATED_BY_ALL = tuple(
    [
        "node.kubernetes.io/" + name
        for name in (
            "not-ready",
            "unreachable",
            "disk-pressure",
            "memory-pressure",
            "pid-pressure",
            "unschedulable",
            "network-unavailable",
        )
    ]
)
"""Taints that pods of every DaemonSet tolerate."""
_KEEPS_AWAY = ("NoSchedule", "NoExecute")


# What the API tells


def _api(fleet: Fleet) -> ClusterSnapshot:
    return fleet.cluster if fleet.cluster is not None else ClusterSnapshot()


def _lingjun(cluster: ClusterSnapshot) -> list[ClusterNode]:
    return [node for node in cluster.nodes or () if node_resource.is_lingjun(node.labels)]


def _plugin(cluster: ClusterSnapshot) -> Optional[DaemonSet]:
    wanted = (names.NAMESPACE, names.DAEMONSET)
    return next((d for d in cluster.daemonsets or () if (d.namespace, d.name) == wanted), None)


def _detail(reason: Reason, subject: str) -> Detail:
    return Detail(subject, reason.status, reason.message, reason.expected, reason.observed)


def _amounts(node: ClusterNode, policy: Policy) -> node_resource.Amounts:
    return node_resource.judge(
        node.labels,
        node.capacity,
        node.allocatable,
        resource=policy.resource_name,
        rdma_mode=policy.rdma_mode,
        expected=policy.resource_count,
    )


def _is_another(found: node_resource.Amounts) -> bool:
    """Whether the amounts are those of a node that has nothing to do with Lingjun."""
    return any(reason.code == "node-not-lingjun" for reason in found.reasons)


def _version(text: str) -> Optional[tuple[int, int]]:
    """``5.10.134-17.al8`` -> (5, 10); ``v1.31.1-aliyun.1`` -> (1, 31)."""
    found = _VERSION.match(text)
    return (int(found.group(1)), int(found.group(2))) if found else None


def _at_least(subject: str, what: str, told: str, least: tuple[int, int]) -> Detail:
    found, wanted = _version(told), "%d.%d" % least
    if found is None:
        return unclear(subject, "the version of %s is not told" % what)
    if found < least:
        return bad(subject, "%s %s is too old" % (what, told), "at least " + wanted, told)
    return ok(subject)


@cluster_check(
    "RDMA-ACK-001",
    "The device plugin is rolled out and ready on every Lingjun node",
    CRITICAL,
    "Look at the pods that are missing or not ready: kubectl -n kube-system describe, then their log.",
    evidence=("daemonsets.apps", "pods", "nodes"),
)
def rollout(fleet: Fleet) -> Outcome:
    """A1, A50-A52: counts agree also where a Lingjun node has no pod and another node has one."""
    cluster = _api(fleet)
    missing = unread(cluster, "daemonsets")
    if missing is not None:
        return missing
    plugin = _plugin(cluster)
    pods = plugin.pods if plugin is not None else ()
    ready = None if pods is None else [pod.node for pod in pods if pod.ready and not pod.deleted]
    wanted = None if cluster.nodes is None else [node.name for node in _lingjun(cluster)]
    status = device_plugin.of_snapshot(plugin) if plugin is not None else None
    details = [
        _with_trouble(_detail(reason, reason.subject or names.DAEMONSET), pods or ())
        for reason in device_plugin.judge(status, wanted, ready)
    ]
    if wanted is None:
        reason = why_unread(cluster, "nodes")
        details.append(unclear(names.DAEMONSET, "which nodes it must cover is not known: " + reason))
    elif ready is None:
        reason = cluster_reason(cluster, "drivers", "pods").rstrip(".")
        details.append(unclear(names.DAEMONSET, "where its pods are is not known: " + reason))
    good = "A ready pod on each of %d Lingjun nodes." % len(wanted or ())
    return weighed(details or [ok(names.DAEMONSET)], good, "")


def _with_trouble(detail: Detail, pods: Iterable[DriverPod]) -> Detail:
    """With what the pod on that node waits for (A98)."""
    for pod in pods:
        if pod.node == detail.subject and pod.trouble:
            return replace(detail, message="%s (%s: %s)" % (detail.message, pod.name, pod.trouble))
    return detail


@cluster_check(
    "RDMA-ACK-002",
    "Lingjun nodes have the RDMA resource, all of it allocatable",
    ERROR,
    "Look at the plugin's pod on that node, its log, and /dev/infiniband there; restart the pod when all are good.",
    evidence=("nodes",),
)
@needs("nodes")
def amounts(fleet: Fleet) -> Outcome:
    """A2, A55, A56: a number of tokens, not of NICs."""
    details = []
    for node in _api(fleet).nodes or ():
        found = _amounts(node, fleet.policy)
        if _is_another(found):
            continue
        details += [_detail(reason, node.name) for reason in found.reasons] or [
            ok(node.name, str(found.capacity))
        ]
    return weighed(details, "%%d nodes have their %s." % fleet.policy.resource_name, NO_NODE)


@cluster_check(
    "RDMA-ACK-003",
    "The RDMA resource outlasts a restart of kubelet and plugin",
    ERROR,
    "Restart the plugin's pod on that node; right after a restart wait five minutes and read again.",
    evidence=("nodes", "pods"),
)
@needs("nodes")
def settled(fleet: Fleet) -> Outcome:
    """A57, A94, A102, A103: a pod that is ready says nothing, and amounts of before a restart can still stand there."""
    cluster = _api(fleet)
    plugin = _plugin(cluster)
    if plugin is None or plugin.pods is None:
        return unread(cluster, "daemonsets") or skipped(NO_PLUGIN)
    pods = {pod.node: pod for pod in plugin.pods if pod.ready and not pod.deleted}
    details = []
    for node in _lingjun(cluster):
        if node.name not in pods:
            continue  # RDMA-ACK-001 tells it
        offered = _amounts(node, fleet.policy).allocatable
        age = _youngest((node.ready_since, pods[node.name].started), cluster.collected_at)
        if not offered:
            problem = "the plugin's pod is ready, and nothing is allocatable"
            details.append(bad(node.name, problem, "above 0", str(offered or 0)))
        elif age is not None and age < SETTLED_AFTER:
            details.append(
                unclear(node.name, "node or pod got ready %d s before the amounts were read" % age)
            )
        else:
            details.append(ok(node.name))
    return rolled_up(
        details,
        "%d nodes keep their amounts.",
        "No Lingjun node has a ready pod of the plugin; see RDMA-ACK-001.",
    )


def _youngest(stamps: Iterable[str], now: str) -> Optional[float]:
    """Seconds since the latest of these times; ``None`` when none of them is told."""
    ages = [seconds_between(stamp, now) for stamp in stamps]
    return min([age for age in ages if age is not None], default=None)


@cluster_check(
    "RDMA-ACK-007",
    "No second plugin offers the NICs of Lingjun nodes",
    ERROR,
    "Keep one of them: uninstall the other, or keep it off Lingjun nodes by a node selector.",
    evidence=("daemonsets.apps", "pods", "nodes"),
)
@needs("nodes")
def other_plugins(fleet: Fleet) -> Outcome:
    """A71, A72: ancestors of the plugin register a resource of the same name; DRANET gives the NICs themselves."""
    cluster = _api(fleet)
    missing = unread(cluster, "daemonsets")
    if missing is not None:
        return missing
    lingjun = {node.name for node in _lingjun(cluster)}
    if not lingjun:
        return skipped(NO_NODE)
    details = [ok(names.DAEMONSET)]
    for found in cluster.daemonsets or ():
        if (found.namespace, found.name) == (names.NAMESPACE, names.DAEMONSET):
            continue
        shared = sorted(lingjun & {pod.node for pod in found.pods or ()})
        if shared and found.role in ("device-plugin", "dranet"):
            details.append(_rival(found, shared, fleet.policy))
    return weighed(details, "No other plugin for RDMA runs on Lingjun nodes.", "")


def _rival(found: DaemonSet, shared: list[str], policy: Policy) -> Detail:
    subject = "%s/%s" % (found.namespace, found.name)
    where = "on %s" % listed(shared)
    if any(ancestor in container.image for container in found.containers for ancestor in _ANCESTORS):
        message = "a plugin that can register %s runs %s too" % (policy.resource_name, where)
        return bad(subject, message, "one plugin", found.name)
    if found.role == "dranet":
        return odd(subject, "DRANET gives NICs to pods %s too" % where, "one mechanism", found.name)
    return odd(subject, "another device plugin for RDMA runs %s" % where, "one plugin", found.name)


@cluster_check(
    "RDMA-ACK-011",
    "Lingjun nodes have the labels that must stay",
    ERROR,
    "Give the node back the label; the other nodes of its pool have it.",
    evidence=("nodes",),
)
@needs("nodes")
def labels(fleet: Fleet) -> Outcome:
    """A13, A14, A16: the label tells a Lingjun node, never its name; which others a pool has its nodes tell."""
    nodes = _api(fleet).nodes or ()
    lingjun = _lingjun(_api(fleet))
    wanted = "%s=%s" % (names.WORKER_LABEL, names.WORKER_VALUE)
    details = []
    for node in nodes:
        trait = _trait(node) if not node_resource.is_lingjun(node.labels) else ""
        if trait:
            seen = node.labels.get(names.WORKER_LABEL, "absent")
            details.append(bad(node.name, "has %s and not the label of Lingjun nodes" % trait, wanted, seen))
    if not lingjun and not details:
        return failed("No node has the label of Lingjun nodes.", expected=wanted, observed="none")
    pools: dict[str, set[str]] = {}
    for node in lingjun:
        pools.setdefault(node.labels.get(names.POOL_LABEL, ""), set()).update(node.labels)
    for node in lingjun:
        usual = pools[node.labels.get(names.POOL_LABEL, "")]
        lost = [label for label in names.KEPT_LABELS if label in usual and label not in node.labels]
        details += [
            bad(node.name, "lacks the label %s, which its pool has" % label, label, "absent")
            for label in lost
        ]
        mode = node.labels.get(names.ENI_LABEL, names.ENI_VALUE)
        if mode != names.ENI_VALUE:
            message = "has another value of the label %s" % names.ENI_LABEL
            details.append(bad(node.name, message, names.ENI_VALUE, mode))
        elif not lost:
            details.append(ok(node.name))
    return rolled_up(details, "%d Lingjun nodes with their labels.", NO_NODE)


def _trait(node: ClusterNode) -> str:
    """What else than its label says that a node is a Lingjun node; empty: nothing."""
    for label in sorted(node.labels):
        if label in names.KEPT_LABELS and label.startswith("alibabacloud.com/lingjun-"):
            return "the label %s" % label
    if any(taint.rpartition(":")[0].partition("=")[0] == names.TAINT_KEY for taint in node.taints):
        return "the taint %s" % names.TAINT_KEY
    return ""


@cluster_check(
    "RDMA-ACK-012",
    "The plugin may run on every Lingjun node",
    ERROR,
    "Remove the taint, or have the plugin tolerate it: its pods are kept away from that node.",
    evidence=("nodes", "daemonsets.apps"),
)
@needs("nodes")
def taints(fleet: Fleet) -> Outcome:
    """A1, A13: the taint of Lingjun nodes is tolerated; others, and a node selector, keep the plugin away."""
    cluster = _api(fleet)
    missing = unread(cluster, "daemonsets")
    plugin = _plugin(cluster)
    if missing is not None or plugin is None:
        return missing or skipped(NO_PLUGIN)
    details = []
    for node in _lingjun(cluster):
        kept_away = [taint for taint in node.taints if not _tolerated(taint, plugin.tolerations)]
        selected = all(node.labels.get(key) == value for key, value in plugin.node_selector.items())
        if kept_away:
            message = "has a taint that the plugin does not tolerate: %s" % listed(kept_away)
            details.append(bad(node.name, message, "tolerated", kept_away[0]))
        elif not selected:
            wanted = listed(["%s=%s" % pair for pair in sorted(plugin.node_selector.items())])
            details.append(bad(node.name, "lacks what the plugin's node selector wants", wanted, "absent"))
        else:
            details.append(ok(node.name))
    return rolled_up(details, "%d Lingjun nodes let the plugin run.", NO_NODE)


def _tolerated(taint: str, tolerations: Iterable[str]) -> bool:
    """Whether a taint ``KEY=VALUE:EFFECT`` keeps no pod with these tolerations away (A70)."""
    word, _colon, effect = taint.rpartition(":")
    key, _sign, value = word.partition("=")
    if effect not in _KEEPS_AWAY or key in _TOLERATED_BY_ALL:
        return True
    for toleration in tolerations:
        head, colon, only = toleration.rpartition(":")
        wanted = head if colon else toleration
        of, sign, given = wanted.partition("=")
        if (not colon or only == effect) and of in ("*", key) and (not sign or given == value):
            return True
    return False


def _of_lingjun(
    judged: Callable[[ClusterNode], Detail], fleet: Fleet, good: str, first: Iterable[Detail] = ()
) -> Outcome:
    nodes = _lingjun(_api(fleet))
    if not nodes:
        return skipped(NO_NODE)
    return rolled_up([*first, *[judged(node) for node in nodes]], good, NO_NODE)


@cluster_check(
    "RDMA-ACK-013",
    "Lingjun nodes have kernel 5.10 or newer",
    ERROR,
    "Use a newer image for the group of nodes.",
    evidence=("nodes",),
)
@needs("nodes")
def kernel(fleet: Fleet) -> Outcome:
    """A11."""

    def judged(node: ClusterNode) -> Detail:
        return _at_least(node.name, "kernel", node.kernel, names.KERNEL)

    return _of_lingjun(judged, fleet, "%d kernels are new enough.")


@cluster_check(
    "RDMA-ACK-014",
    "The container runtime of Lingjun nodes is containerd",
    ERROR,
    "Make the node pool anew with containerd; no other runtime is supported there.",
    evidence=("nodes",),
)
@needs("nodes")
def runtime(fleet: Fleet) -> Outcome:
    """A11."""

    def judged(node: ClusterNode) -> Detail:
        told = node.runtime.partition("://")[0]
        if not told:
            return unclear(node.name, "the runtime is not told")
        if told != "containerd":
            return bad(node.name, "the runtime is %s" % node.runtime, "containerd", told)
        return ok(node.name)

    return _of_lingjun(judged, fleet, "%d nodes with containerd.")


@cluster_check(
    "RDMA-ACK-015",
    "Kubernetes is 1.31 or newer",
    ERROR,
    "Upgrade the cluster, then its node pools.",
    evidence=("/version", "nodes"),
)
@needs("nodes")
def kubernetes(fleet: Fleet) -> Outcome:
    """A10."""

    def judged(node: ClusterNode) -> Detail:
        return _at_least(node.name, "kubelet", node.kubelet, names.KUBERNETES)

    server = _at_least("API server", "Kubernetes", _api(fleet).server.version, names.KUBERNETES)
    return _of_lingjun(judged, fleet, "API server and kubelets are new enough.", [server])


def _each_in_cluster(judge: Callable[[Node, ClusterNode], Outcome], fleet: Fleet) -> dict[str, Outcome]:
    """A judgement of each node beside what the API tells of it; unknown where it tells nothing."""
    outcomes = {}
    for node in fleet.nodes:
        found = fleet.cluster_nodes[node.name]
        outcomes[node.name] = (
            unknown(fleet.why_no_cluster_node(node)) if found is None else judge(node, found)
        )
    return outcomes


@fleet_check(
    "RDMA-ACK-016",
    "From Kubernetes 1.35 on Lingjun nodes use control groups v2",
    ERROR,
    "Use an image with cgroup v2, or boot with systemd.unified_cgroup_hierarchy=1.",
    evidence=("/sys/fs/cgroup", "nodes"),
    cluster=True,
)
def control_groups(fleet: Fleet) -> dict[str, Outcome]:
    """A11."""
    return _each_in_cluster(_control_groups, fleet)


def _control_groups(node: Node, found: ClusterNode) -> Outcome:
    if not node_resource.is_lingjun(found.labels):
        return skipped(NOT_LINGJUN)
    version, told = _version(found.kubelet), node.snapshot.host.cgroup
    if version is None:
        return unknown("The version of the kubelet is not told.")
    if version < names.CGROUP_V2_FROM:
        return skipped("Kubernetes %d.%d takes both versions of control groups." % version)
    if not told:
        return unknown("The snapshot of the node does not tell its control groups.")
    if told != "v2":
        message = "Kubernetes %s needs control groups v2." % found.kubelet
        return failed(message, expected="v2", observed=told)
    return passed("Control groups v2.")


@cluster_check(
    "RDMA-ACK-017",
    "The network of the cluster is IPv4 alone",
    ERROR,
    "Make the cluster anew as IPv4 single-stack: its IP version cannot be changed. IPv6 of the Lingjun network is "
    "another thing (RDMA-ACK-018).",
    evidence=("pod CIDRs", "service CIDRs", "nodes"),
)
@needs("nodes")
def single_stack(fleet: Fleet) -> Outcome:
    """A12: the IPv6 that pods off the host network need is no network of Kubernetes."""
    cluster = _api(fleet)
    told = [(entry.source or "pods", entry.cidr) for entry in cluster.pod_cidrs or ()]
    told += [(entry.source or "services", entry.cidr) for entry in cluster.service_cidrs or ()]
    told += [(node.name, cidr) for node in cluster.nodes or () for cidr in node.pod_cidrs]
    if not told:
        reason = cluster_reason(cluster, "networks", "service CIDRs", "pod CIDRs").rstrip(".")
        return unknown("Neither the network of pods nor that of services is known: %s." % reason)
    details = [
        bad(source, "gives IPv6 addresses (%s)" % cidr, "IPv4", cidr) if ":" in cidr else ok(source)
        for source, cidr in told
    ]
    return rolled_up(details, "All networks of the cluster are IPv4.", "")


# Mode of the plugin and IP version of the Lingjun network

_MODE_HINT = (
    "Keep pods in the network of the host, or have IPv6 on the Lingjun cluster: that is chosen when it is made, by a "
    "support ticket to its team."
)
_NOT_NEEDED = "Pods use RDMA in the network of the host, which needs no IPv6."


@cluster_check(
    "RDMA-ACK-018",
    "The plugin knows its mode, and the Lingjun network allows it",
    CRITICAL,
    _MODE_HINT,
    evidence=("policy", "ComputingIpVersion"),
)
def mode(fleet: Fleet) -> Outcome:
    """A3, A6-A9, A63, A67: what settings and cloud tell; nothing fails by itself where it does not fit."""
    verdict = _mode(fleet.policy, None)
    if not verdict.reasons:
        if verdict.ipv6_required:
            return passed("The Lingjun network is IPv6.")
        return passed(_NOT_NEEDED)
    if fleet.nodes and all(reason.status == NOT_TOLD for reason in verdict.reasons):
        return skipped(
            "What the cloud says is not given (setting 'compute_ip_version'); the nodes tell (RDMA-ACK-019)."
        )
    return weighed([_detail(reason, "plugin") for reason in verdict.reasons], "", "")


def _mode(policy: Policy, interfaces: Optional[list[fabric_ip.Interface]]) -> fabric_ip.Verdict:
    return fabric_ip.judge(
        policy.non_host_network,
        policy.rdma_mode,
        policy.compute_ip_version,
        interfaces,
        policy.plugin_version,
    )


@node_check(
    "RDMA-ACK-019",
    "The RDMA interfaces of the node have the addresses that the mode needs",
    CRITICAL,
    _MODE_HINT,
    evidence=("rtnetlink", "policy"),
)
def addresses(node: Node) -> Outcome:
    """A8, A64-A67: only interfaces of the RDMA network count, and a bond in place of its ports."""
    verdict = _mode(node.policy, node.fabric_interfaces)
    if verdict.reasons:
        details = [_detail(reason, reason.subject or "RDMA network") for reason in verdict.reasons]
        if node.fabric_interfaces is None:
            why = node.why_not("rtnetlink", "links").rstrip(".")
            details = [
                replace(detail, message="%s (%s)" % (detail.message, why))
                if detail.status == NOT_TOLD
                else detail
                for detail in details
            ]
        return weighed(details, "", "")
    if not verdict.ipv6_required:
        return passed(_NOT_NEEDED)
    if node.fabric_interfaces is None:
        return passed("The cloud says that the Lingjun network is IPv6; the node does not tell.")
    found = fabric_ip.uplinks(node.fabric_interfaces)
    return passed("%d interfaces of the RDMA network have a usable IPv6 address." % len(found))


# The hosts


@node_check(
    "RDMA-ACK-006",
    "The RDMA subsystem is in shared mode, in which the plugin starts",
    ERROR,
    "Set netns_mode of ib_core to shared (module netns_mode), then restart the plugin's pod on that node.",
    evidence=("rdma-netlink", "/sys/module/ib_core/parameters/netns_mode"),
)
def netns(node: Node) -> Outcome:
    """A76, A97: this mode of the kernel is not the exclusive mode of the plugin."""
    if node.policy.rdma_mode == names.EXCLUSIVE:
        return skipped(
            "Which mode of the RDMA subsystem the exclusive mode of the plugin wants is not known."
        )
    found = running_mode(node)
    if found is None:
        return unknown(node.why_not("rdma-netlink", "rdma"))
    if found != "shared":
        return failed("The RDMA subsystem is in %s mode." % found, expected="shared", observed=found)
    return passed("The RDMA subsystem is in shared mode.")


@fleet_check(
    "RDMA-ACK-020",
    "Active RDMA ports stand behind the tokens of the node",
    CRITICAL,
    "Look at /sys/class/infiniband and the kernel log of the node; the number of tokens says nothing about hardware.",
    needs=("devices", "links"),
    evidence=("/sys/class/infiniband", "nodes"),
)
def hardware(fleet: Fleet) -> dict[str, Outcome]:
    """A56, A71, A73, A92: an ancestor of the plugin offers 1000 tokens without looking for hardware."""
    return {node.name: _hardware(node, fleet) for node in fleet.nodes}


def _hardware(node: Node, fleet: Fleet) -> Outcome:
    found = fleet.cluster_nodes[node.name]
    offered = "The cluster was not asked, and"
    if found is not None:
        held = _amounts(found, fleet.policy)
        if _is_another(held):
            return skipped(NOT_LINGJUN)
        offered = "%d tokens are offered, and" % (held.allocatable or 0)
    ports = [(nic, nic.port) for nic in node.nics if nic.port is not None]
    active = [nic for nic, port in ports if port.state == "ACTIVE"]
    unread = [nic for nic, port in ports if port.state is None]
    if not active and not unread:
        what = "none of %d RDMA ports is active" % len(ports) if ports else "the host has no RDMA device"
        return failed("%s %s." % (offered, what), expected="an active port", observed="none")
    if unread:
        return unknown("The state of %s could not be read." % listed([nic.name for nic in unread]))
    layers = sorted({nic.link_layer or "unknown" for nic in active})
    return passed("%d of %d RDMA ports are active (%s)." % (len(active), len(ports), ", ".join(layers)))


@node_check(
    "RDMA-ACK-021",
    "The bonds of the RDMA NICs are whole",
    WARNING,
    "Look at cable and switch port of the member that is down; a bond with one member has half of the rate.",
    needs=("devices", "links"),
    evidence=("rtnetlink",),
)
def bonds(node: Node) -> Outcome:
    """A18, A111: two ports each, and the bond is the unit."""
    links = {link.name: link for link in node.snapshot.links or ()}
    details = []
    for name in _bonds_of(node.nics, links):
        members = [link for link in links.values() if link.master == name]
        down = sorted([link.name for link in members if not _is_up(link)])
        if not _is_up(links[name]):
            details.append(bad(name, "the bond is down", "up", "down"))
        elif down:
            details.append(bad(name, "%s is down" % listed(down), "all members up", listed(down)))
        elif len(members) < 2:
            details.append(bad(name, "it has one member", "2", str(len(members))))
        else:
            details.append(ok(name))
    return rolled_up(
        details, "%d bonds with all members up.", "No RDMA NIC of this node is in a bond.", as_status="warn"
    )


def _bonds_of(nics: Iterable[Nic], links: dict[str, Link]) -> list[str]:
    """The bonds that RDMA ports belong to, whether the kernel names a member for the port or the bond."""
    found = set()
    for nic in nics:
        if nic.link is not None:
            for name in (nic.link.name, nic.link.master):
                if name in links and links[name].kind == "bond":
                    found.add(name)
    return sorted(found)


def _is_up(link: Link) -> bool:
    return link.state == "up" and link.operstate in ("", "up", "unknown")


@node_check(
    "RDMA-ACK-022",
    "The device files that the plugin hands out are all there",
    ERROR,
    "Load rdma_ucm, ib_umad and ib_uverbs on the node, install rdma-core, then restart the plugin's pod.",
    needs=("devices", "char_devices"),
    evidence=("/dev/infiniband", "/proc/modules"),
)
def device_files(node: Node) -> Outcome:
    """A74, A78, A93, A94: a NIC without one of rdma_cm, umad and uverbs is left out, and the pod stays ready."""
    files = node.snapshot.char_devices or ()
    devices = sorted({nic.device.name for nic in node.nics if nic.device is not None})
    if not devices:
        return skipped(NO_NIC)
    verbs = {device.name for device in node.snapshot.devices or () if device.uverbs}
    details = [
        ok(name) if name in verbs else bad(name, "it has no uverbs file", "uverbs", "absent")
        for name in devices
    ]
    if "rdma_cm" not in files:
        details.append(bad("/dev/infiniband/rdma_cm", "it does not exist", "present", "absent"))
    if not any(name.startswith("umad") for name in files):
        details.append(_umad(node))
    return rolled_up(details, "All device files of %d devices are there." % len(devices), NO_NIC)


def _umad(node: Node) -> Detail:
    """The umad files are those of a module; they do not stand in the snapshot themselves."""
    if "ib_umad" in node.snapshot.modules:
        return ok("umad")
    if "kernel" not in node.snapshot.subsets or node.snapshot.error_of("/proc/modules"):
        return unclear("umad", "whether ib_umad is loaded is not known")
    return bad("umad", "ib_umad, which makes its files, is not loaded", "loaded", "absent")


@fleet_check(
    "RDMA-ACK-023",
    "The node has its RDMA resource",
    ERROR,
    "Look at the plugin's pod on the node, its log, and /dev/infiniband; restart the pod when all are good.",
    evidence=("nodes",),
    cluster=True,
)
def own_amounts(fleet: Fleet) -> dict[str, Outcome]:
    """A55: as RDMA-ACK-002, where the verdict over each node stands."""
    return _each_in_cluster(_own_amounts, fleet)


def _own_amounts(node: Node, found: ClusterNode) -> Outcome:
    held, resource = _amounts(found, node.policy), node.policy.resource_name
    if _is_another(held):
        return skipped(NOT_LINGJUN)
    if held.reasons:
        return weighed([_detail(reason, resource) for reason in held.reasons], "", "")
    return passed("%s of %s." % (held.allocatable, resource))
