# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Every check and every lint rule has its section in the remedy pages, and no section is without one."""

from __future__ import annotations

import re

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.core.checks import judge
from ansible_collections.rdma.k8s.plugins.module_utils.core.finding import SEVERITIES
from ansible_collections.rdma.k8s.plugins.module_utils.core.lint.engine import RULES
from ansible_collections.rdma.k8s.plugins.module_utils.core.lint.options import OPTIONS
from ansible_collections.rdma.k8s.tests.support.lint_cases import cases

from .pages import DOCS, page

CATALOGUE = {**judge.CATALOGUE, **RULES}
PAGES = sorted(path.name for path in (DOCS / "checks").glob("*.md"))
PARTS = ("- Reads:", "- Pass:", "See it:", "Mend it:", "Waive it:", "Sources:")
EXIT = {"- Fail:", "- Warn:"}


def test_one_page_per_area() -> None:
    assert {"%s.md" % check.info.area.lower() for check in CATALOGUE.values()} == set(PAGES)


@pytest.mark.parametrize("name", PAGES)
def test_no_section_without_a_check(name: str) -> None:
    area = name.partition(".")[0].upper()
    wanted = [check for check in sorted(CATALOGUE) if CATALOGUE[check].info.area == area]
    assert [heading for heading in page("checks/" + name).headings(2) if heading != "Options"] == wanted


@pytest.mark.parametrize("check", sorted(CATALOGUE))
def test_section_has_title_and_severity_of_the_code(check: str) -> None:
    info = CATALOGUE[check].info
    name, _unused, anchor = info.doc.partition("#")
    assert anchor in page(name).anchors()
    first = page(name).section(check).strip().splitlines()[0]
    assert first == "**%s** (%s)" % (info.title, info.severity)
    assert info.severity in SEVERITIES


@pytest.mark.parametrize("check", sorted(CATALOGUE))
def test_section_tells_what_a_reader_needs(check: str) -> None:
    section = page(CATALOGUE[check].info.doc.partition("#")[0]).section(check)
    lines = section.splitlines()
    missing = [part for part in PARTS if not any(line.startswith(part) for line in lines)]
    assert missing == []
    assert any(line.startswith(tuple(EXIT)) for line in lines)


@pytest.mark.parametrize("check", sorted(CATALOGUE))
def test_section_cites_the_sources_of_the_code(check: str) -> None:
    """What the docstring of a check cites stands among the sources of its section."""
    found = CATALOGUE[check]
    cited = set(re.findall(r"\b(?:A\d+|F\d+|S\d+|DEV-\d+)\b", found.run.__doc__ or ""))
    section = page(found.info.doc.partition("#")[0]).section(check)
    told = set(re.findall(r"\[(\w[\w-]*)\]\(", section[section.index("\nSources:") :]))
    missing = sorted(cited - told - _inside_ranges(found.run.__doc__ or "", told))
    assert missing == []


def _inside_ranges(text: str, told: set[str]) -> set[str]:
    """A range such as F77-F79 is told by all of its numbers, of which the text holds the first and the last."""
    inside = set()
    for letter, first, last in re.findall(r"\b([AFS])(\d+)-[AFS]?(\d+)\b", text):
        numbers = {"%s%d" % (letter, number) for number in range(int(first), int(last) + 1)}
        if numbers & told:
            inside |= {letter + first, letter + last}
    return inside


@pytest.mark.parametrize("check", sorted(RULES))
def test_a_lint_rule_has_a_wrong_and_a_clean_manifest(check: str) -> None:
    """And a check is either of nodes or of manifests, since both kinds share the numbers."""
    statuses = {case.status for case in cases() if case.rule == check}
    assert statuses & {"fail", "warn"}
    assert "pass" in statuses
    assert check not in judge.CATALOGUE


def test_the_options_of_the_lint_stand_on_their_page() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (.+?) \| (.+?) \|$", page("checks/wl.md").text, re.MULTILINE)
    assert {name: meaning for name, _default, meaning in rows} == {
        name: option.meaning for name, option in OPTIONS.items()
    }
