# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Vectors of the Spiderpool target: each kind of the file is one function from input to what it expects."""

from __future__ import annotations

from typing import Any

from compare import Kinds, UnjudgeableError, differences

from rdma_k8s.core import mlxconfig, netns, rdma_text, roce_qos
from rdma_k8s.core.spiderpool import (
    injection,
    ip_pool,
    multus_config,
    node_policy,
    node_state,
    pod_network,
    pool_config,
    ufm,
)
from rdma_k8s.core.spiderpool.issue import Issue, is_ok

WHAT = "Spiderpool SR-IOV RDMA"
KINDS = Kinds()


# --- network namespace mode


def reading(found: netns.Reading) -> dict[str, Any]:
    """A mode; a reason stands beside it only when there is none."""
    return {"mode": found.mode} if not found.reason else {"mode": found.mode, "reason": found.reason}


@KINDS.add("netns-sysfs", "text")
def netns_sysfs(given: dict[str, Any]) -> dict[str, Any]:
    return reading(netns.mode_of_parameter(given["text"]))


@KINDS.add("netns-netlink", "attrs")
def netns_netlink(given: dict[str, Any]) -> dict[str, Any]:
    return reading(netns.mode_of_attributes({int(key): value for key, value in given["attrs"].items()}))


@KINDS.add("rdma-system-text", "text")
def rdma_system_text(given: dict[str, Any]) -> dict[str, Any]:
    found = netns.mode_of_system_text(given["text"])
    return {"mode": found.mode, "flags": found.flags}


@KINDS.add("netns-plan", "want", "current", "other_netns", "modprobe", "cmdline")
def netns_plan(given: dict[str, Any]) -> dict[str, Any]:
    sources = netns.Sources(sorted(given["modprobe"].items()), given["cmdline"])
    plan = netns.plan(given["want"], given["current"], sources, given["other_netns"])
    names = ("changed", "live_set", "live_error", "reboot_required", "write_file", "boot_mode_before")
    return {name: getattr(plan, name) for name in (*names, "warning", "error")}


# --- ports


def link(port: rdma_text.PortLine) -> dict[str, Any]:
    """A port as the file writes it."""
    return {
        "dev": port.device,
        "port": port.port,
        **dict(port.more),
        "state": port.state,
        "physical": port.physical,
        "netdev": port.netdev,
        "ready": port.ready,
    }


@KINDS.add("rdma-link-text", "text")
def rdma_link_text(given: dict[str, Any]) -> dict[str, Any]:
    return {"links": [link(port) for port in rdma_text.links_of_text(given["text"])]}


@KINDS.add("rdma-link-json", "text")
def rdma_link_json(given: dict[str, Any]) -> dict[str, Any]:
    """The JSON form carries only the keys that are given: no interface, no key."""
    found = [link(port) for port in rdma_text.links_of_json(given["text"])]
    return {"links": [{key: value for key, value in port.items() if value is not None} for port in found]}


@KINDS.add("sysfs-port", "link_layer", "state", "phys_state", "want")
def sysfs_port(given: dict[str, Any]) -> dict[str, Any]:
    port = rdma_text.sysfs_port(given["link_layer"], given["state"], given["phys_state"])
    return {
        "link_layer": port.link_layer,
        "state": port.state,
        "phys_state": port.phys_state,
        "matches_want": port.matches(given["want"]),
        "ready": port.ready(given["want"]),
    }


# --- link type, lossless RoCE


@KINDS.add("mlxconfig-query", "text", "want")
def mlxconfig_query(given: dict[str, Any]) -> dict[str, Any]:
    plan = mlxconfig.plan(mlxconfig.parse(given["text"]), given["want"])
    names = ("default", "current", "next", "differs")
    ports = {
        str(number): {name: getattr(row, name) for name in names if getattr(row, name) is not None}
        for number, row in plan.ports.items()
    }
    answer: dict[str, Any] = {
        "supported": plan.configurable,
        "ports": ports,
        "set": dict(plan.set),
        "reboot_required": plan.reboot_required,
    }
    if not plan.configurable:
        answer["error"] = mlxconfig.NOT_CONFIGURABLE.replace("_", "-")
    return answer


@KINDS.add("roce-qos", "rdmaPriority", "cnpPriority")
def qos(given: dict[str, Any]) -> dict[str, Any]:
    made, problems = roce_qos.wish(
        given["rdmaPriority"], given["cnpPriority"], given.get("rdmaDscp"), given.get("cnpDscp")
    )
    return {
        "ok": not problems,
        "findings": [{"code": problem.code, "at": problem.at, "severity": "error"} for problem in problems],
        "rdmaDscp": made.rdma_dscp,
        "cnpDscp": made.cnp_dscp,
        "trafficClass": made.traffic_class,
        "pfcMask": list(roce_qos.bits(made.pfc)),
        "pfcBitmap": made.pfc,
    }


# --- objects of the cluster


def told(found: list[Issue], **more: Any) -> dict[str, Any]:
    """Findings as the file writes them."""
    return {"ok": is_ok(found), "findings": [issue.plain for issue in found], **more}


def options(given: dict[str, Any], **names: str) -> dict[str, Any]:
    """What the input gives of these members, by the names of the core; what is not given keeps its default."""
    return {name: given[member] for name, member in names.items() if given.get(member) is not None}


@KINDS.add("node-policy", "policy")
def a_policy(given: dict[str, Any]) -> dict[str, Any]:
    more = options(
        given,
        operator_version="operatorVersion",
        hyphen_allowed="hyphenAllowed",
        operator_namespace="operatorNamespace",
    )
    nodes = given.get("nodes")
    (found,) = node_policy.judge_all(
        [given["policy"]],
        None if nodes is None else [node_policy.node_of(node) for node in nodes],
        given.get("existing") or (),
        supported=given.get("supported"),
        **more,
    )
    return told(found)


@KINDS.add("ippool", "pool")
def a_pool(given: dict[str, Any]) -> dict[str, Any]:
    found = ip_pool.judge(given["pool"], given.get("existing") or (), given.get("need"))
    return told(found.issues, count=found.addresses)


@KINDS.add("multus-config", "config")
def a_config(given: dict[str, Any]) -> dict[str, Any]:
    policies = given.get("policies")
    more = options(
        given,
        netns_mode="netnsMode",
        resource_prefix="resourcePrefix",
        spiderpool_version="spiderpoolVersion",
    )
    (found,) = multus_config.judge_all(
        [given["config"]],
        given.get("pools"),
        None if policies is None else [multus_config.policy_of(policy) for policy in policies],
        **more,
    )
    return told(found)


@KINDS.add("nodestate-rollup", "expectedNodes", "nodeStates", "want")
def node_states(given: dict[str, Any]) -> dict[str, Any]:
    found = node_state.rollup(
        given["expectedNodes"],
        [node_state.of_plain(state) for state in given["nodeStates"]],
        {entry["pciAddress"]: entry["numVfs"] for entry in given["want"]},
    )
    return {"state": found.state, "nodes": {name: verdict.state for name, verdict in found.nodes.items()}}


@KINDS.add("allocatable", "nodes", "want")
def allocatable(given: dict[str, Any]) -> dict[str, Any]:
    return told(node_state.allocatable(given["nodes"], given["want"]))


@KINDS.add("pool-max-unavailable", "maxUnavailable", "nodes")
def max_unavailable(given: dict[str, Any]) -> dict[str, Any]:
    found = pool_config.limit(given["maxUnavailable"], given["nodes"])
    return told(found.issues, limit=found.nodes)


@KINDS.add("webhook-inject", "pod", "configs")
def injected(given: dict[str, Any]) -> dict[str, Any]:
    pod = given["pod"]
    more = options(
        given,
        namespace="namespace",
        namespace_annotations="namespaceAnnotations",
        excluded="namespacesExclude",
        included="namespacesInclude",
    )
    configs = [
        injection.Config(
            entry["namespace"],
            entry["name"],
            entry["cniType"],
            entry.get("resource") or "",
            tuple(entry.get("ippools") or ()),
            entry.get("annotations") or {},
            entry.get("master") or "",
        )
        for entry in given["configs"]
    ]
    limits = [container.get("limits") or {} for container in pod.get("containers") or ()]
    found = injection.judge(pod.get("annotations") or {}, limits, configs, **more)
    return told(found.issues, injects=found.injects, networks=found.networks, limits=found.limits)


@KINDS.add("pod-net", "expect_nics", "nics")
def pod_net(given: dict[str, Any]) -> dict[str, Any]:
    isolated = given.get("netnsMode") != "shared"
    return told(pod_network.judge(pod_network.of_plain(given), given["expect_nics"], isolated))


@KINDS.add("ufm-secret", "keys")
def ufm_secret(given: dict[str, Any]) -> dict[str, Any]:
    found = ufm.judge(given["keys"])
    return {
        "ok": found.is_ok,
        "missing": list(found.missing),
        "unknown": list(found.unknown),
        "tls_verified": found.tls_verified,
    }


# --- the family of files


def matches(document: Any) -> bool:
    """Tell whether a parsed file is one of the Spiderpool vectors."""
    if not isinstance(document, dict) or not isinstance(document.get("kinds"), list):
        return False
    what = document.get("what")
    return isinstance(what, str) and what.startswith(WHAT)


def kind_of(case: Any) -> str:
    """The kind of a case; empty when it has none."""
    given = case.get("input") if isinstance(case, dict) else None
    name = given.get("kind") if isinstance(given, dict) else None
    return name if isinstance(name, str) else ""


def judge(document: Any, case: Any) -> list[str]:
    """Run one case; return the differences between what it expects and what the core gives."""
    name = kind_of(case)
    if not isinstance(case, dict) or not isinstance(case.get("name"), str) or not name:
        raise UnjudgeableError("has no name, or its input has no kind")
    if not isinstance(case.get("expect"), dict):
        raise UnjudgeableError("has no expectation")
    if name not in document["kinds"]:
        raise UnjudgeableError("the kind %s is not one of the file" % name)
    return differences(case["expect"], KINDS.answer(name, case["input"]))
