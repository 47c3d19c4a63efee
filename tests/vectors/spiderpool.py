# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Vectors of the Spiderpool target: each kind of the file is one function from input to what it expects."""

from __future__ import annotations

from typing import Any

from compare import Kinds, UnjudgeableError, differences

from rdma_k8s.core import mlxconfig, netns, rdma_text, roce_qos

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
