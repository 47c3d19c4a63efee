# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Judge a fleet: all checks over all snapshots. Private to rdma.k8s: it may change with any release."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Callable, Optional

from .. import finding as model
from ..cluster_networks import document as networks_of
from ..cluster_snapshot import ClusterSnapshot
from ..errors import RdmaError
from ..report.document import NicRow, NodeRow, ResultDocument
from ..snapshot import NodeSnapshot
from . import (
    ack,
    boot,
    dra,
    dra_nodes,
    fabric,
    imds,
    node as node_area,
    oca,
    ranges,
    ranges_in_use,
    roce,
    roll,
    settings,
    sriov,
    sriov_pods,
    tool,
)
from .context import Fleet, Node
from .custom import CompiledCheck, compile_checks
from .policy import ACK, OKE, SPIDERPOOL, Policy
from .registry import AREA_TARGETS, CATALOGUE, Check, Outcome, skipped, unknown

AREAS = (
    boot,
    node_area,
    settings,
    roce,
    oca,
    imds,
    ranges,
    ranges_in_use,
    fabric,
    dra,
    dra_nodes,
    ack,
    roll,
    sriov,
    sriov_pods,
    tool,
)
"""The areas of the catalogue: importing one registers its checks."""

NEEDS = {
    "module_options": ("/etc/modprobe.d", "kernel"),
    "char_devices": ("/dev/infiniband", "rdma"),
    "devices": ("/sys/class/infiniband", "rdma"),
    "links": ("rtnetlink", "links"),
    "routes": ("rtnetlink", "routes"),
    "rules": ("rtnetlink", "routes"),
    "pci": ("/sys/bus/pci", "pci"),
    "oca": ("/etc/oracle-cloud-agent", "oca"),
    "imds": ("imds:", "imds"),
    "firewall": ("nftables", "firewall"),
    "fabric": ("fabric", "fabric"),
    "slow.initramfs": ("/boot", "slow"),
    "slow.reboots": ("/var/lib/rdma-k8s/reboots.json", "slow"),
    "slow.qos": ("dcb-netlink", "slow"),
    "slow.counters": ("port-counters", "slow"),
    "slow.kernel_log": ("/dev/kmsg", "slow"),
    "slow.peer_memory": ("/proc/modules", "slow"),
    "slow.network_boot": ("/proc/cmdline", "slow"),
    "slow.memlock": ("systemctl", "slow"),
}
"""Field of the snapshot to the source of its errors, and the subset that brings it."""


@dataclass(frozen=True)
class NodeInput:
    """One node of the run: its snapshot, or the reason why there is none.

    ``child_range`` and ``network`` are what the inventory says of this node (``rdma_child_range``, ``rdma_network``).
    """

    name: str
    snapshot: Optional[NodeSnapshot] = None
    reason: str = ""
    child_range: str = ""
    network: str = ""


def judge(
    inputs: Sequence[NodeInput],
    policy: Policy,
    created_at: str,
    version: str = "",
    cluster: Optional[ClusterSnapshot] = None,
) -> ResultDocument:
    """All selected checks over all nodes, and over the cluster, when there is one.

    :param created_at: time of the judgement, UTC, ``YYYY-MM-DDThh:mm:ssZ``.
    :param version: version of the collection, for the record.
    :raises RdmaError: ``node_twice``, ``no_check_selected``, ``expression_invalid``.
    """
    _refuse_duplicates(inputs)
    proven = any(entry.snapshot is not None and entry.snapshot.fabric is not None for entry in inputs)
    clustered = cluster is not None and (bool(cluster.subsets) or cluster.pod_looks is None)
    looked = cluster is not None and cluster.pod_looks is not None
    checks = selected(policy, proven, clustered, looked)
    custom = compile_checks(policy.checks)
    around = None if cluster is None else networks_of(cluster)
    nodes = [
        Node(entry.snapshot, policy, entry.child_range, entry.network, created_at, around=around)
        for entry in inputs
        if entry.snapshot is not None
    ]
    fleet = Fleet(nodes, policy, cluster, created_at)
    unreachable = {entry.name: entry.reason for entry in inputs if entry.snapshot is None}
    findings = _findings(checks, custom, fleet, unreachable, created_at[:10])
    findings = _waive(findings, policy, created_at[:10])
    return ResultDocument(
        created_at=created_at,
        collection_version=version,
        target=policy.target,
        child_range=policy.child_range if policy.target == OKE else "",
        exit_code=model.exit_code(findings),
        checks=tuple([check.info for check in checks] + [check.info for check in custom]),
        nodes=tuple([_row(entry, fleet_node, fleet) for entry, fleet_node in _paired(inputs, nodes)]),
        findings=tuple(findings),
        settings=_settings(policy),
        cluster=cluster_row(fleet, unreachable) if any(check.scope == "cluster" for check in checks) else "",
    )


def cluster_row(fleet: Fleet, unreachable: Iterable[str]) -> str:
    """The name of the row of the cluster: its own, told apart from a node of the same name."""
    name = fleet.cluster.name if fleet.cluster is not None and fleet.cluster.name else model.CLUSTER
    taken = {model.FLEET, *unreachable, *[node.name for node in fleet.nodes]}
    return "%s %s" % (name, model.CLUSTER) if name in taken else name


def catalogue() -> list[Check]:
    """All checks of all targets, in order of their ids."""
    return [CATALOGUE[check] for check in sorted(CATALOGUE)]


def selected(
    policy: Policy, proven: bool = False, clustered: bool = False, looked: bool = False
) -> list[Check]:
    """The checks of the catalogue that the policy selects (``only`` and ``skip`` are patterns), in order of their ids.

    :param proven: whether there are records of a proof. Without them the checks that judge such records take part only
        when ``only`` names their area.
    :param clustered: whether a cluster was read. Without it the same holds for the checks that judge it, and always for
        the checks of areas of other targets.
    :param looked: whether running pods were looked into, for checks of the cluster that judge such records.
    :raises RdmaError: ``no_check_selected`` when a pattern matches nothing, or nothing is left.
    """
    for pattern in policy.only + policy.skip:
        if not any(fnmatchcase(check, pattern) for check in CATALOGUE):
            raise RdmaError(
                "no_check_selected",
                "No check has an id like %r." % pattern,
                hint="Ids look like RDMA-NODE-001; '*' stands for any text.",
                pattern=pattern,
            )
    chosen = [
        CATALOGUE[check]
        for check in sorted(CATALOGUE)
        if (
            (
                _has_its_records(CATALOGUE[check], proven, clustered, looked)
                and _is_of(policy.target, CATALOGUE[check])
            )
            or _names_area(policy, check)
        )
        and (not policy.only or any(fnmatchcase(check, pattern) for pattern in policy.only))
        and not any(fnmatchcase(check, pattern) for pattern in policy.skip)
    ]
    if not chosen:
        raise RdmaError("no_check_selected", "The settings 'only' and 'skip' leave no check.")
    return chosen


def _has_its_records(check: Check, proven: bool, clustered: bool, looked: bool) -> bool:
    if check.proof and check.cluster:
        return looked
    return (proven or not check.proof) and (clustered or not check.cluster)


def _is_of(target: str, check: Check) -> bool:
    """Whether the area of a check is one of the target; a check of an area for all targets says itself why not."""
    return target in AREA_TARGETS.get(check.info.area, (target,))


def _names_area(policy: Policy, check: str) -> bool:
    area = check.rpartition("-")[0] + "-"
    return any(pattern.startswith(area) for pattern in policy.only)


def _refuse_duplicates(inputs: Sequence[NodeInput]) -> None:
    seen: set[str] = set()
    for entry in inputs:
        if entry.name in seen:
            raise RdmaError(
                "node_twice",
                "Two snapshots have the node name %r." % entry.name,
                hint="Keep one snapshot per node; the name is the snapshot's field 'name'.",
                node=entry.name,
            )
        seen.add(entry.name)


def _paired(inputs: Sequence[NodeInput], nodes: Sequence[Node]) -> Iterable[tuple[NodeInput, Optional[Node]]]:
    by_name = {node.name: node for node in nodes}
    return [
        (entry, by_name.get(entry.snapshot.name) if entry.snapshot is not None else None) for entry in inputs
    ]


def _findings(
    checks: Sequence[Check],
    custom: Sequence[CompiledCheck],
    fleet: Fleet,
    unreachable: dict[str, str],
    today: str,
) -> list[model.Finding]:
    findings: list[model.Finding] = []
    row = cluster_row(fleet, unreachable)
    for check in checks:
        if check.scope == "run":
            continue
        if check.scope == "cluster":
            findings.append(
                _finding(check.info, row, _not_for(check, fleet) or check.run(fleet), check.evidence)
            )
            continue
        for name, outcome in _outcomes(check, fleet).items():
            findings.append(_finding(check.info, name, outcome, check.evidence))
    for compiled in custom:
        for node in fleet.nodes:
            findings.append(_finding(compiled.info, node.name, compiled.run(node), ("snapshot",)))
    infos = [check.info for check in checks if check.scope in ("node", "fleet")] + [
        compiled.info for compiled in custom
    ]
    for name, reason in unreachable.items():
        lost = unknown(reason or "The node gave no snapshot.")
        findings += [_finding(info, name, lost, ()) for info in infos]
    for check in checks:
        if check.scope == "run":
            outcome = check.run(fleet, findings, unreachable, today)
            findings.append(_finding(check.info, model.FLEET, outcome, ()))
    return findings


def _not_for(check: Check, fleet: Fleet) -> Optional[Outcome]:
    """Why a check is for another target, or has no cluster to judge."""
    if check.targets and fleet.policy.target not in check.targets:
        return skipped("The target is %s; this is for %s." % (fleet.policy.target, ", ".join(check.targets)))
    if check.cluster and fleet.cluster is None:
        return skipped("No cluster is in this run.")
    return None


def _outcomes(check: Check, fleet: Fleet) -> dict[str, Outcome]:
    idle = _not_for(check, fleet)
    if idle is not None:
        return {node.name: idle for node in fleet.nodes}
    missing = {node.name: _what_is_missing(check, node) for node in fleet.nodes}
    if check.scope == "node":
        run: Callable[[Node], Outcome] = check.run
        return {node.name: missing[node.name] or run(node) for node in fleet.nodes}
    told = fleet.of([node for node in fleet.nodes if missing[node.name] is None])
    outcomes = check.run(told if len(told.nodes) < len(fleet.nodes) else fleet)
    return {node.name: missing[node.name] or outcomes[node.name] for node in fleet.nodes}


def _what_is_missing(check: Check, node: Node) -> Optional[Outcome]:
    for field in check.needs:
        part, dot, name = field.partition(".")
        held = getattr(node.snapshot, part)
        if held is None and part == "slow" and "slow" not in node.snapshot.subsets:
            return skipped("Subset 'slow' was not asked for.")
        if held is None or (dot and getattr(held, name) is None):
            return unknown(node.why_not(*NEEDS[field]))
    return None


def _finding(info: model.CheckInfo, node: str, outcome: Outcome, evidence: tuple[str, ...]) -> model.Finding:
    told = outcome.status in (model.FAIL, model.WARN, model.UNKNOWN)
    return model.Finding(
        check=info.id,
        node=node,
        status=outcome.status,
        severity=info.severity,
        message=outcome.message,
        expected=outcome.expected,
        observed=outcome.observed,
        evidence=(outcome.evidence or evidence) if told else (),
        details=outcome.details,
    )


def _waive(findings: list[model.Finding], policy: Policy, today: str) -> list[model.Finding]:
    rules = [rule for rule in policy.waivers if rule.expires >= today]
    return [_waived(finding, rules) for finding in findings] if rules else findings


def _waived(finding: model.Finding, rules: Sequence[Any]) -> model.Finding:
    if finding.status in (model.PASS, model.SKIP):
        return finding
    for rule in rules:
        if fnmatchcase(finding.check, rule.check) and fnmatchcase(finding.node, rule.node):
            return _with_waiver(finding, rule.as_waiver())
    return finding


def _with_waiver(finding: model.Finding, waiver: model.Waiver) -> model.Finding:
    values = dict(finding.__dict__)
    values["waiver"] = waiver
    return model.Finding(**values)


def _row(entry: NodeInput, node: Optional[Node], fleet: Fleet) -> NodeRow:
    if entry.snapshot is None or node is None:
        return NodeRow(entry.name, False, entry.reason or "The node gave no snapshot.", network=entry.network)
    canonical = json.dumps(entry.snapshot.to_dict(), sort_keys=True, separators=(",", ":"))
    return NodeRow(
        name=entry.name,
        shape=node.shape_name,
        network=fleet.network_names[node.name],
        fabric=node.fabric,
        collected_at=entry.snapshot.collected_at,
        snapshot=hashlib.sha256(canonical.encode("utf-8", "surrogatepass")).hexdigest(),
        nics=_nic_rows(node) or _proven_rows(node),
    )


def _nic_rows(node: Node) -> tuple[NicRow, ...]:
    if node.policy.target == ACK:
        return ()  # nothing is derived there that an address could be compared with
    return tuple([_nic_row(node, nic, child) for nic, child in node.children])


def _proven_rows(node: Node) -> tuple[NicRow, ...]:
    """The NICs of a node of which there is nothing but a proof."""
    section = node.snapshot.fabric
    return tuple(
        [
            NicRow(child.index, child.nic, child.device, "", "", child.address.partition("/")[0])
            for child in (section.children if section is not None else ())
        ]
    )


def _nic_row(node: Node, nic: Any, child: Any) -> NicRow:
    addresses = node.addresses_of(nic)
    inside = node.interfaces[nic.name].oca_address(node.oca_config.network)
    derived = node.has_ipv4_children and not isinstance(child, RdmaError)
    try:
        index = node.index_of(nic)
    except RdmaError:
        index = -1
    return NicRow(
        index=index,
        name=nic.name,
        device=nic.device.name if nic.device is not None else "",
        parent=str(child.parent) if derived else "",
        observed=str(inside or addresses[0]) if addresses else "",
        child=str(child.child) if derived else "",
    )


_SETTINGS = (
    "netns_mode",
    "child_range",
    "fabric",
    "mtu",
    "arp_ignore",
    "arp_announce",
    "agent_version",
    "max_age",
)
_SPIDERPOOL_SETTINGS = ("netns_mode", "fabric", "mtu", "max_age", "resource_prefix")
_LINGJUN_SETTINGS = (
    "netns_mode",
    "fabric",
    "mtu",
    "max_age",
    "resource_name",
    "rdma_mode",
    "non_host_network",
    "resource_count",
    "plugin_version",
    "compute_ip_version",
)


def _settings(policy: Policy) -> dict[str, str]:
    """The settings that a reader of the report needs, as text; what is not set is left out."""
    settings = {}
    for name in {ACK: _LINGJUN_SETTINGS, SPIDERPOOL: _SPIDERPOOL_SETTINGS}.get(policy.target, _SETTINGS):
        value = getattr(policy, name)
        if value is not None:
            settings[name] = str(value)
    for name in ("vcn_cidrs", "pod_cidrs", "service_cidrs", "peer_cidrs", "only", "skip"):
        value = getattr(policy, name)
        if value:
            settings[name] = ", ".join(value)
    return settings
