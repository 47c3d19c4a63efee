# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The page of the rules of claims is what the table of rules and the shared cases say."""

from __future__ import annotations

from ansible_collections.rdma.k8s.tests.support import claim_table

from .pages import page

PAGE = "reference/claim-rules.md"


def test_the_page_has_the_table_of_verdicts() -> None:
    assert page(PAGE).section("Who tells what").rstrip().endswith(claim_table.verdict_table())


def test_the_page_has_every_rule_in_its_words() -> None:
    assert page(PAGE).section("The rules").strip() == claim_table.rule_list()
