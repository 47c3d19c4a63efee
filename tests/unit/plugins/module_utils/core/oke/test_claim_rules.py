# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The table of claim rules, and what the provider makes of the shared cases."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from ansible_collections.rdma.k8s.plugins.module_utils.core.kube import claims
from ansible_collections.rdma.k8s.plugins.module_utils.core.oke import claim_rules, profile
from ansible_collections.rdma.k8s.plugins.module_utils.core.oke.claim_rules import RULES, ClaimRule
from ansible_collections.rdma.k8s.tests.support.claim_cases import Case, claim_cases
from ansible_collections.rdma.k8s.tests.support.outcome import error_of, outcome

PROVIDER_CODES = {rule.code for rule in RULES if rule.provider}
NAMES = st.sampled_from(
    [*claim_rules.PARAMETERS, *claim_rules.INTERFACE, *claim_rules.ROUTE, "name", "mode", "x"]
)
VALUES = st.none() | st.booleans() | st.integers(-2, 300) | st.floats() | st.text(max_size=4)
JSON = st.recursive(
    VALUES | st.sampled_from(["IPVLAN", "SLAAC", "DHCP", "10.0.0.0/8", "fd00::1"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=12,
)


def judged(config: Any) -> str:
    """The code with which the provider refuses a configuration, empty: it does not."""
    return outcome(lambda: profile.check_claim(profile.parse_claim(config))).code


def of_device(config: Any) -> Any:
    """The configuration as the provider sees it: with the profile of the NIC where it names none (F43, F110)."""
    return {**config, "profile": config.get("profile") or "oke-rdma"}


@pytest.mark.parametrize("case", claim_cases(), ids=lambda case: case.id)
def test_the_provider_says_what_the_case_says(case: Case) -> None:
    """F31, F32: for every configuration of the case that is for the driver."""
    expected = case.provider
    if isinstance(expected, dict) and "n/a" in expected:
        assert expected["n/a"]
        return
    merged = isinstance(expected, dict)
    wanted = expected["of the device"] if merged else expected
    codes = [judged(of_device(config) if merged else config) for config in case.configs]
    assert [code for code in codes if code][:1] == ([] if wanted == "ok" else [wanted])


@pytest.mark.parametrize("case", claim_cases(), ids=lambda case: case.id)
def test_lint_admission_and_provider_agree(case: Case) -> None:
    """What the provider refuses is a failure of the lint and denied; what is not, is none by a rule of the provider."""
    as_admission = {code: status.replace("fail", "deny") for code, status in case.lint.items()}
    assert as_admission == case.admission
    expected = case.provider
    if not isinstance(expected, dict):
        sure = {code for code, status in case.lint.items() if "fail" in status and code in PROVIDER_CODES}
        assert bool(sure) is (expected != "ok")
        assert expected == "ok" or expected in sure


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_a_rule_says_what_is_wrong_and_what_to_do(rule: ClaimRule) -> None:
    """The words are the same in the lint, the policies and the provider, so they have to do everywhere."""
    assert re.fullmatch("RDMA-WL-0(02|05|14)", rule.check)
    assert rule.message.endswith(".")
    assert rule.hint.endswith(".")
    assert rule.facts


def test_codes_are_unique() -> None:
    codes = [rule.code for rule in RULES]
    assert len(codes) == len(set(codes))


def test_an_error_of_the_provider_tells_place_and_value() -> None:
    """F32."""
    config = {"profile": "oke-rdma", "interface": {"addresses": ["10.0.0.1/8"]}}
    error = error_of(profile.check_claim, profile.parse_claim(config))
    assert error.message.endswith("derives the child itself. interface.addresses is '10.0.0.1/8'.")
    assert error.details["where"] == "interface.addresses"
    assert error.hint == "Remove interface.addresses."


@pytest.mark.parametrize(
    ("names", "expected"),
    [([], True), (["nic"], True), (["nic/fast"], True), (["fast"], False), (["other"], False)],
)
def test_a_configuration_is_for_the_requests_that_it_names(names: list[str], expected: bool) -> None:
    request = claims.Request("nic", (), "", (), alternative="fast")
    assert claims.Config((), tuple(names), "dra.net", {}).concerns(request) is expected


@settings(max_examples=200)
@given(JSON)
def test_any_parameters_can_be_judged(config: Any) -> None:
    """Opaque parameters are any JSON; a rule that is broken has a place in them."""
    for violation in claim_rules.violations(config):
        value = config
        for key in violation.path[:-1]:
            value = value[key] if value is not None else None
        error = violation.error()
        assert (error.code, error.hint) == (violation.code, violation.hint)
        assert error.message.startswith(violation.message)
