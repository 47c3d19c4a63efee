# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Claims in the lint, on the cases that the provider and the admission policies have, too."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.core.kube.documents import Document
from ansible_collections.rdma.k8s.plugins.module_utils.core.lint import claims
from ansible_collections.rdma.k8s.plugins.module_utils.core.lint.engine import lint
from ansible_collections.rdma.k8s.plugins.module_utils.core.lint.model import LintFinding
from ansible_collections.rdma.k8s.plugins.module_utils.core.oke import claim_rules, pod_rules
from ansible_collections.rdma.k8s.tests.support.claim_cases import Case, claim_cases, pod_cases

CHECKS = ("RDMA-WL-002", "RDMA-WL-003", "RDMA-WL-005", "RDMA-WL-014")


def findings(*contents: Any, **context: Any) -> list[LintFinding]:
    """What the rules of claims say of objects, without what passed."""
    documents = [Document(content, "claims.yaml", 1, {}) for content in contents]
    return [
        finding
        for finding in lint(documents, **context)
        if finding.rule in CHECKS and finding.status in ("fail", "warn")
    ]


def verdicts(found: list[LintFinding]) -> dict[str, str]:
    """Code to statuses, several of them joined with a plus."""
    codes: dict[str, set[str]] = {}
    for finding in found:
        codes.setdefault(finding.code, set()).add(finding.status)
    return {code: "+".join(sorted(statuses)) for code, statuses in codes.items()}


@pytest.mark.parametrize("case", claim_cases(), ids=lambda case: case.id)
def test_the_lint_says_what_the_case_says(case: Case) -> None:
    """F31, F32, F38, F70, F82, F84, F106 to F109: by case."""
    found = [finding for finding in findings(case.content) if case.counts(finding.code)]
    assert verdicts(found) == case.lint
    if found:
        assert found[0].place.startswith(case.place) or len(found) > 1
        assert all(finding.hint for finding in found)


def claim(parameters: Any, expression: str = "", device_class: str = "rdma") -> dict[str, Any]:
    """A claim with one request and one configuration."""
    exactly: dict[str, Any] = {"deviceClassName": device_class}
    if expression:
        exactly["selectors"] = [{"cel": {"expression": expression}}]
    config = [{"opaque": {"driver": "dra.net", "parameters": parameters}}]
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "nics"},
        "spec": {"devices": {"requests": [{"name": "nic", "exactly": exactly}], "config": config}},
    }


def device_class(expression: str) -> dict[str, Any]:
    """The class `rdma`."""
    return {
        "kind": "DeviceClass",
        "metadata": {"name": "rdma"},
        "spec": {"selectors": [{"cel": {"expression": expression}}]},
    }


def test_the_place_is_the_field() -> None:
    """F107: the gateway of the second route."""
    route = {"destination": "10.0.0.0/8", "scope": 253}
    found = findings(claim({"profile": "oke-rdma", "routes": [route, {**route, "gateway": "x"}]}))
    assert found[0].code == "config_route"
    assert found[0].place == "spec.devices.config[0].opaque.parameters.routes[1].gateway"
    assert found[0].observed == "'x'"


def test_the_selectors_of_a_known_class_count() -> None:
    """F43, F84: the class tells what kind of device the request gets."""
    child = claim({"interface": {"type": "IPVLAN"}})
    assert not findings(child)
    known = device_class('device.attributes["dra.net"].rdmaDevice == "mlx5_0"')
    assert verdicts(findings(child, known)) == {"rdma_only_settings": "fail"}
    moved = claim({"interface": {"type": "Passthrough"}})
    assert verdicts(findings(moved)) == {"claim_passthrough": "warn"}
    known = device_class('device.attributes["dra.net"].ifName.startsWith("rdma")')
    assert verdicts(findings(moved, known)) == {"claim_passthrough": "fail"}


@pytest.mark.parametrize(
    ("expression", "complete", "expected"),
    [
        ('device.attributes["dra.net"].rdma', False, {}),
        ('device.driver == "dra.net"', False, {"selector_node_level": "fail"}),
        (None, False, {"selector_node_level": "warn"}),
        (None, True, {"selector_node_level": "fail"}),
    ],
)
def test_a_node_level_selector_is_judged_with_its_class(
    expression: Any, complete: bool, expected: dict[str, str]
) -> None:
    """F70: wrong when the class is known and does not tell the NICs either; else it may."""
    content = claim({}, 'device.attributes["oke.dra.net"].rackId == "r1"')
    known = [device_class(expression)] if expression else []
    assert verdicts(findings(content, *known, complete=complete)) == expected


def test_without_a_profile_provider_a_claim_brings_its_addresses() -> None:
    """F105: the rules of the profile have no say, those of the driver have."""
    content = claim({"interface": {"type": "IPVLAN", "addresses": ["10.0.0.1/8"], "mtu": 5}})
    assert verdicts(findings(content)) == {"claim_addresses": "warn", "config_mtu": "fail"}
    assert verdicts(findings(content, options={"profile_provider": "none"})) == {"config_mtu": "fail"}


NIC = 'device.attributes["dra.net"].ifName == "rdma0"'


@pytest.mark.parametrize(
    ("interface", "expression", "missing"),
    [
        ({}, NIC, True),
        ({"type": "IPVLAN", "addresses": []}, NIC, True),
        ({"addresses": ["10.0.0.1/8"]}, NIC, False),
        ({"addressing": "SLAAC"}, NIC, False),
        ({"type": "Passthrough"}, NIC, False),
        ({}, 'device.attributes["dra.net"].ifName == "eth1"', False),
        ({}, 'device.attributes["dra.net"].rdmaDevice == "mlx5_0"', False),
    ],
)
def test_without_a_profile_provider_a_claim_needs_addresses(
    interface: Any, expression: str, missing: bool
) -> None:
    """F105: nobody resolves the profile, so a child has the addresses of its claim alone."""
    content = claim({"interface": interface}, expression)
    expected = {"addresses_missing": "fail"} if missing else {}
    assert verdicts(findings(content, options={"profile_provider": "none"})) == expected
    assert "addresses_missing" not in verdicts(findings(content))


def test_without_a_profile_provider_a_claim_without_a_configuration_has_no_address() -> None:
    """F105: also when its class has one, but no address in it."""
    content = claim({}, NIC)
    del content["spec"]["devices"]["config"]
    options = {"profile_provider": "none"}
    assert verdicts(findings(content, options=options)) == {"addresses_missing": "fail"}
    known = device_class("true")
    known["spec"]["config"] = [
        {"opaque": {"driver": "dra.net", "parameters": {"interface": {"addressing": "SLAAC"}}}}
    ]
    assert not findings(content, known, options=options)


def test_truth_is_shown_as_a_manifest_writes_it() -> None:
    """F108: a child takes no DHCP."""
    found = findings(claim({"interface": {"type": "IPVLAN", "dhcp": True}}))
    assert "true" in {finding.observed for finding in found}
    assert "True" not in {finding.observed for finding in found}


def test_the_form_of_v1beta1_is_read() -> None:
    """F84: there a request has no `exactly`."""
    content = claim({"interface": {"mtu": 4220}})
    content["spec"]["devices"]["requests"] = [
        {
            "name": "nic",
            "deviceClassName": "rdma",
            "selectors": [{"cel": {"expression": 'device.attributes["dra.net"].rdmaDevice == "mlx5_0"'}}],
        }
    ]
    assert verdicts(findings(content)) == {"rdma_only_settings": "fail"}


@pytest.mark.parametrize("spec", [None, [], "x", {"devices": []}, {"devices": {"requests": 5, "config": {}}}])
def test_an_object_without_claims_in_it_is_skipped(spec: Any) -> None:
    """What the API server refuses by itself is left to it."""
    document = Document({"kind": "ResourceClaim", "spec": spec}, "claims.yaml", 1, {})
    found = [finding for finding in lint([document]) if finding.rule in CHECKS]
    assert {finding.status for finding in found} == {"skip"}
    assert {finding.message for finding in found} == {claims.NO_CONFIGURATION, claims.NO_REQUEST}


@pytest.mark.parametrize("case", pod_cases(), ids=lambda case: case["name"])
def test_pods_with_their_claims(case: dict[str, Any]) -> None:
    """DEV-11, DEV-24: the lint follows the claims, for a policy only the pod counts."""
    container = {"name": "main", "image": "train", "env": case.get("env", [])}
    pod = {"kind": "Pod", "metadata": {"name": "train"}, "spec": {"containers": [container], **case["spec"]}}
    template = {
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": "nics"},
        "spec": claim({"profile": "oke-rdma"}, 'device.attributes["dra.net"].ifName == "rdma0"'),
    }
    documents = [Document(content, "pod.yaml", 1, {}) for content in (pod, template)]
    told = {rule.check for rule in pod_rules.RULES}
    found = {
        finding.rule: finding.status
        for finding in lint(documents)
        if finding.rule in told and finding.status not in ("pass", "skip")
    }
    assert found == case["lint"]


def test_every_rule_fails_in_a_case() -> None:
    """No rule without a claim that breaks it."""
    broken = {code for case in claim_cases() for code in case.lint}
    assert broken == {*claim_rules.BY_CODE, claim_rules.NODE_LEVEL_SELECTOR.code}
