# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The policies as documents; what they do in an API server is told by tests/cluster."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.core.oke import admission, claim_rules, pod_rules
from ansible_collections.rdma.k8s.tests.support.outcome import error_of

POLICY, BINDING = "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"


def made(**options: Any) -> dict[tuple[str, str], dict[str, Any]]:
    """The documents by kind and name."""
    documents = admission.documents(admission.settings(**options))
    return {(entry["kind"], entry["metadata"]["name"]): entry for entry in documents}


def codes(documents: dict[tuple[str, str], dict[str, Any]], name: str) -> list[str]:
    """The rules of a policy: its variables behind those that are no rules."""
    names = [entry["name"] for entry in documents[POLICY, name]["spec"]["variables"]]
    return [entry for entry in names if entry in admission.codes()]


def test_every_rule_is_in_a_policy() -> None:
    """What fails for sure is apart from what only may."""
    found = made()
    errors = [rule.code for rule in claim_rules.RULES if rule.severity == "error"]
    assert codes(found, "rdma-k8s-claims") == errors
    assert codes(found, "rdma-k8s-claims-advice") == [
        "claim_passthrough",
        "claim_dhcp",
        "claim_unnumbered",
        "claim_addresses",
        "claim_owns_routing",
        "selector_node_level",
    ]
    assert codes(found, "rdma-k8s-pods") == ["pod_grace_period"]
    assert codes(found, "rdma-k8s-pods-advice") == ["pod_gid_index"]


@pytest.mark.parametrize(
    ("actions", "certain", "advice"),
    [
        (("warn",), ["Warn"], ["Warn"]),
        (("deny",), ["Deny"], ["Warn"]),
        (("deny", "audit"), ["Deny", "Audit"], ["Warn", "Audit"]),
    ],
)
def test_advice_never_denies(actions: tuple[str, ...], certain: list[str], advice: list[str]) -> None:
    """WL-001 of a pod, WL-003 and WL-005 only warn."""
    for (kind, name), document in made(actions=actions).items():
        if kind == BINDING:
            expected = advice if name.endswith("-advice") else certain
            assert document["spec"]["validationActions"] == expected


def test_each_policy_has_a_binding_and_can_be_removed() -> None:
    found = made(prefix="mine")
    assert {name for kind, name in found if kind == POLICY} == {
        name for kind, name in found if kind == BINDING
    }
    assert {(entry["kind"], entry["metadata"]["name"]) for entry in admission.names("mine")} == set(found)
    for (kind, name), document in found.items():
        if kind == BINDING:
            assert document["spec"]["policyName"] == name


def test_the_rules_tell_their_verdict() -> None:
    """The action for what fails for sure, a warning for advice, whatever else is wished."""
    listed = admission.listing(admission.settings(actions=("deny", "audit")))
    verdicts = {(rule["code"], rule["verdict"]) for rule in listed}
    assert {("config_mtu", "deny"), ("claim_dhcp", "deny"), ("claim_dhcp", "warn")} <= verdicts
    assert ("pod_gid_index", "deny") not in verdicts
    listed = admission.listing(admission.settings(actions=("audit", "warn")))
    assert {rule["verdict"] for rule in listed} == {"warn"}


def test_each_rule_is_asked_in_its_scope() -> None:
    """A rule of the profile first asks whether the profile counts; one about every configuration does not."""
    variables = made()[POLICY, "rdma-k8s-claims"]["spec"]["variables"]
    expressions = {entry["name"]: entry["expression"] for entry in variables}
    assert '["oke-rdma"]' in expressions["claim_dhcp"]
    assert 'v["rdma_only"] in [true]' in expressions["rdma_only_settings"]
    assert '["oke-rdma"]' not in expressions["config_mtu"]
    assert expressions["positions"] == str(list(range(32)))


def test_the_settings_are_in_the_documents() -> None:
    selector = {"matchLabels": {"team": "a"}}
    found = made(failure_policy="Fail", namespace_selector=selector, pods=False, skip=("config_mtu",))
    assert {name for _kind, name in found} == {"rdma-k8s-claims", "rdma-k8s-claims-advice"}
    assert "config_mtu" not in codes(found, "rdma-k8s-claims")
    assert found[POLICY, "rdma-k8s-claims"]["spec"]["failurePolicy"] == "Fail"
    matched = found[BINDING, "rdma-k8s-claims"]["spec"]["matchResources"]
    assert matched["namespaceSelector"] == selector
    assert made()[POLICY, "rdma-k8s-claims"]["spec"]["failurePolicy"] == "Ignore"


def test_without_a_profile_provider_no_rule_of_the_profile_is_left() -> None:
    """F105."""
    found = made(profile_provider="none")
    left = codes(found, "rdma-k8s-claims") + codes(found, "rdma-k8s-claims-advice")
    assert not set(left) & {rule.code for rule in claim_rules.RULES if rule.provider}
    assert "claim_owns_routing" not in left
    assert "config_mtu" in left


def test_a_policy_without_rules_is_not_made() -> None:
    skip = tuple(rule.code for rule in pod_rules.RULES if rule.certain)
    assert "rdma-k8s-pods" not in {name for _kind, name in made(skip=skip)}


def test_a_rule_that_there_is_not_is_told() -> None:
    error = error_of(admission.settings, skip=("claim_dhpc",))
    assert error.code == "rule_unknown"
    assert "claim_dhcp" in error.hint


@pytest.mark.parametrize("prefix", ["", "A", "-a", "a-", "a.b", "a" * 64])
def test_a_prefix_that_is_no_name_is_told(prefix: str) -> None:
    assert error_of(admission.settings, prefix=prefix).code == "admission_prefix"


def test_the_largest_expression_fits() -> None:
    """CEL takes 100,000 characters in an expression, and etcd some 1.5 MB in an object."""
    for document in made().values():
        for entry in document["spec"].get("variables", []):
            assert len(entry["expression"]) < 30_000
