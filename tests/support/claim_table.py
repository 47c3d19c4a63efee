# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rules of claims as Markdown: who tells which, by the shared cases, and the words of each.

``docs/reference/claim-rules.md`` holds what :func:`verdict_table` and :func:`rule_list` give.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ansible_collections.rdma.k8s.plugins.module_utils.core.oke import claim_rules, pod_rules
from ansible_collections.rdma.k8s.tests.support.claim_cases import claim_cases, pod_cases

HEAD = ("rule", "lint", "admission", "provider", "cases")
NEVER = "-"


def verdict_table() -> str:
    """Rule x (lint, admission, provider), with the number of cases in which the rule is broken."""
    lines = [_line(HEAD), _line(["---"] * len(HEAD))]
    cases = claim_cases()
    for code in [rule.code for rule in claim_rules.RULES] + [claim_rules.NODE_LEVEL_SELECTOR.code]:
        broken = [case for case in cases if code in case.lint]
        lines.append(
            _line(
                [
                    "[`%s`](#%s)" % (code, code),
                    _words(case.lint[code] for case in broken),
                    _words(case.admission[code] for case in broken),
                    _provider(code, [case.provider for case in broken]),
                    str(len(broken)),
                ]
            )
        )
    for rule in pod_rules.RULES:
        pods = [case for case in pod_cases() if rule.code in case["admission"]]
        lines.append(
            _line(
                [
                    "[`%s`](#%s)" % (rule.code, rule.code),
                    _words(case["lint"][rule.check] for case in pods)
                    if rule.certain
                    else "follows the claims",
                    _words(case["admission"][rule.code] for case in pods),
                    NEVER,
                    str(len(pods)),
                ]
            )
        )
    lines.append(_line(["[`config_missing`](error-codes.md#config_missing)", NEVER, NEVER, "refuses", NEVER]))
    return "\n".join(lines)


def rule_list() -> str:
    """Each rule with its words."""
    selector = claim_rules.NODE_LEVEL_SELECTOR
    found = [_entry(rule, rule.scope.meaning, rule.facts) for rule in claim_rules.RULES]
    found.append(_entry(selector, "requests", selector.facts))
    found += [_entry(rule, "pods") for rule in pod_rules.RULES]
    return "\n".join(found)


def _entry(rule: Any, scope: str, facts: Iterable[str] = ()) -> str:
    links = ["[%s](../checks/wl.md#%s)" % (rule.check, rule.check.lower())]
    links += ["[%s](facts/oke-dranet.md#%s)" % (fact, fact.lower()) for fact in facts]
    told = '- <a id="%s"></a>`%s`, for %s. %s %s %s'
    return told % (rule.code, rule.code, scope, rule.message, rule.hint, ", ".join(links))


def _provider(code: str, verdicts: list[Any]) -> str:
    """What the provider does in the cases: it refuses with the code, or something else does."""
    if code in claim_rules.BY_CODE and claim_rules.BY_CODE[code].provider:
        assert code in [
            verdict.get("of the device") if isinstance(verdict, dict) else verdict for verdict in verdicts
        ]
        return "refuses"
    if code == claim_rules.NODE_LEVEL_SELECTOR.code:
        return NEVER
    if code == "rdma_only_profile":
        return "refuses the device (F33)"
    severity = claim_rules.BY_CODE[code].severity
    return "accepts" if severity == "info" else "the driver refuses"


def _words(words: Iterable[str]) -> str:
    return ", ".join(sorted({part for word in words for part in word.split("+")}))


def _line(cells: Iterable[str]) -> str:
    return "| %s |" % " | ".join(cells)


if __name__ == "__main__":
    print(verdict_table())
