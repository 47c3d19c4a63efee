# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every lint rule against a manifest that is wrong and one that is right. The cases stand in ``cases/``.

Each case says all rules that its edit touches, so a rule that fires without a reason fails here just as one that stays
silent does.
"""

from __future__ import annotations

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.core.lint import engine
from ansible_collections.rdma.k8s.plugins.module_utils.core.lint.model import dotted
from ansible_collections.rdma.k8s.plugins.module_utils.core.lint.registry import RULES
from ansible_collections.rdma.k8s.tests.support.lint_cases import (
    BASES,
    NOT_GOOD,
    Case,
    base,
    cases,
    not_good,
    status_of,
)


@pytest.mark.parametrize("case", cases(), ids=[case.id for case in cases()])
def test_a_case(case: Case) -> None:
    findings = case.findings()
    expected = {"RDMA-" + rule: status for rule, status in case.also.items()}
    if case.status in NOT_GOOD:
        expected[case.rule] = case.status
    assert not_good(findings) == expected
    assert status_of(findings, case.rule) == case.status
    meant = [finding for finding in findings if finding.rule == case.rule and finding.status == case.status]
    assert case.status == "absent" or any(case.message in finding.message for finding in meant)
    if case.at:
        assert case.at in [dotted(finding.path) for finding in meant]
    if case.code:
        assert case.code in [finding.code for finding in meant]


def test_names_of_cases_are_unique() -> None:
    names = [case.id for case in cases()]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("name", sorted(path.stem for path in BASES.glob("*.manifests")))
@pytest.mark.parametrize("complete", [True, False])
def test_the_bases_are_clean(name: str, complete: bool) -> None:
    assert not_good(engine.lint(base(name), complete=complete)) == {}


def test_findings_of_what_is_wrong_say_what_to_do() -> None:
    """Each has a sentence and a hint, and its path leads to something in the document or where it should stand."""
    for case in cases():
        for finding in case.findings():
            if finding.status in ("fail", "warn"):
                assert finding.message.endswith("."), finding
                assert finding.hint, finding
                assert finding.path == () or finding.path[0] in finding.document.content, finding


def test_what_is_unknown_says_what_to_give_the_lint() -> None:
    """The advice of the rule may be followed already, so it is none here."""
    seen = set()
    for case in cases():
        for finding in case.findings():
            if finding.status == "unknown":
                seen.add(finding.rule)
                assert finding.hint not in ("", RULES[finding.rule].info.hint), finding
    assert {"RDMA-WL-009", "RDMA-WL-010", "RDMA-WL-016"} <= seen
