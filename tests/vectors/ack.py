# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Vectors of the ACK target: each category of the file is one function from input to what it expects."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from compare import Kinds, UnjudgeableError, as_json, differences

from rdma_k8s.core.ack import addon, answers, device_plugin, fabric_ip, node_resource, verdict
from rdma_k8s.core.kube import pod_templates, quantity
from rdma_k8s.core.kube.documents import Document
from rdma_k8s.core.lint import engine
from rdma_k8s.core.lint.model import LintFinding

WHAT = "ACK validator"
KINDS = Kinds()
SETS = ("findings", "reasons")
"""Members that compare as sets."""


@KINDS.add("quantity", "quantity")
def an_amount(given: dict[str, Any]) -> dict[str, Any]:
    found = quantity.parse(given["quantity"])
    if found is None:
        return {"valid": False}
    return {"valid": True, "value": quantity.plain(found), "integral": found == found.to_integral_value()}


@KINDS.add("daemonset", "daemonset")
def a_daemonset(given: dict[str, Any]) -> dict[str, Any]:
    """The rollout of the plugin; what is not given is not known."""
    rollout = device_plugin.of_object(given["daemonset"])
    reasons = device_plugin.judge(rollout, given.get("lingjun_nodes"), given.get("ready_pod_nodes"))
    return _verdict(reasons)


@KINDS.add("node-resource", "node")
def a_node(given: dict[str, Any]) -> dict[str, Any]:
    """The tokens of one node."""
    options = {key: given[key] for key in ("resource", "rdma_mode", "expected") if given.get(key) is not None}
    found = node_resource.judge_object(given["node"], **options)
    return {**_verdict(found.reasons), "capacity": found.capacity, "allocatable": found.allocatable}


@KINDS.add("mode-ipv6", "non_host_network")
def a_mode(given: dict[str, Any]) -> dict[str, Any]:
    """The mode of the plugin on this network."""
    interfaces = given.get("interfaces")
    found = fabric_ip.judge(
        given["non_host_network"],
        given.get("rdma_mode") or "shared",
        given.get("computing_ip_version"),
        None if interfaces is None else [fabric_ip.interface_of(entry) for entry in interfaces],
        given.get("plugin_version"),
    )
    return {**_verdict(found.reasons), "ipv6_required": found.ipv6_required}


@KINDS.add("addon-plan", "desired")
def an_addon(given: dict[str, Any]) -> dict[str, Any]:
    """What to do with the add-on; codes of errors are written with hyphens there."""
    found, wish = given.get("instance"), given["desired"]
    newer = {"version": "1", "newer_versions": given.get("newer_versions")}
    plan = addon.plan(
        None if found is None else answers.instance(found),
        addon.Wish("vector", wish["state"] == "present", wish.get("version"), wish.get("config")),
        answers.offer(newer).upgradable,
    )
    error = None if plan.refusal is None else plan.refusal.code.replace("_", "-")
    return {
        "actions": list(plan.actions),
        "changed": plan.changed,
        "error": error,
        "warnings": list(plan.warnings),
    }


def _verdict(reasons: Iterable[verdict.Reason]) -> dict[str, Any]:
    """Status and codes, each of them once."""
    found = list(reasons)
    return {"status": verdict.worst(found), "reasons": sorted({reason.code for reason in found})}


@KINDS.add("workload-lint", "manifest")
def workload(given: dict[str, Any]) -> dict[str, Any]:
    """What the rules of Lingjun nodes say, by their codes."""
    document = Document(given["manifest"], "vector")
    lint = engine.lint([document], target="ack_lingjun", options=given.get("options", {}))
    found = [finding for finding in lint if finding.rule.startswith("RDMA-ACK-") and finding.code]
    return {
        "skipped": document.content.get("kind") not in pod_templates.POD_KINDS,
        "ok": not any(finding.severity == "error" for finding in found),
        "findings": [
            {"rule": finding.code, "severity": finding.severity, **_place(finding)} for finding in found
        ],
    }


def _place(finding: LintFinding) -> dict[str, Any]:
    """The template and the container that a finding means: by its path, or by name where it points elsewhere."""
    path = finding.path
    for template in pod_templates.templates(finding.document.content):
        if path[: len(template.path)] == template.path:
            inside = [entry.name for entry in template.containers if path[: len(entry.path)] == entry.path]
            return {
                "template": template.role,
                "container": finding.container or (inside[0] if inside else None),
            }
    return {"template": "", "container": None}


# --- the family of files


def matches(document: Any) -> bool:
    """Tell whether a parsed file is one of the ACK vectors."""
    what = document.get("what") if isinstance(document, dict) else None
    return isinstance(what, str) and what.startswith(WHAT) and isinstance(document.get("rules"), dict)


def kind_of(case: Any) -> str:
    """The category of a case; empty when it has none."""
    name = case.get("category") if isinstance(case, dict) else None
    return name if isinstance(name, str) else ""


def judge(document: Any, case: Any) -> list[str]:
    """Run one case; return the differences between what it expects and what the core gives."""
    name = kind_of(case)
    if not isinstance(case, dict) or not isinstance(case.get("name"), str) or not name:
        raise UnjudgeableError("has no name, or no category")
    if not isinstance(case.get("expect"), dict) or not isinstance(case.get("input"), dict):
        raise UnjudgeableError("has no expectation, or no input")
    if name not in document["rules"]:
        raise UnjudgeableError("the category %s is not one of the file" % name)
    return differences(_sorted(case["expect"]), _sorted(KINDS.answer(name, case["input"])))


def _sorted(answer: dict[str, Any]) -> dict[str, Any]:
    """The answer with its sets in one order."""
    return {key: sorted(value, key=as_json) if key in SETS else value for key, value in answer.items()}
