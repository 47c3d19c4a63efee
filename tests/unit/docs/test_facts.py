# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Every fact that code, tests or pages cite by number stands in the reference, once, with its source."""

from __future__ import annotations

import re

import pytest

from .pages import DOCS, ROOT, all_pages, page, sources

FACTS = tuple(
    "reference/facts/%s.md" % name
    for name in ("oke-dranet", "kernel", "spiderpool", "ack-lingjun", "reports")
)
_ENTRY = re.compile(
    r'^- <a id="([^"]+)"></a>\*\*([A-Z]+-?\d+)\*\* (.*?)(?=^- <a id=|^#|\Z)', re.MULTILINE | re.DOTALL
)
_CITED = re.compile(
    r"(?<![\w./:-])(F\d{1,3}|S\d{1,3}|L\d{1,3}|A(?!4\b|100\b)\d{1,3}|DEV-\d\d)(?![\w.-]*[\w-]\w*=|\w)"
)
_MARKED = re.compile(r"noqa[^\n]*|BM\.[\w.-]+|[0-9a-fA-F]{2}:[0-9a-fA-F:]+")
_RANGE = re.compile(r"\b([AFS])(\d{1,3})-([AFS])?(\d{1,3})\b")


def entries() -> list[tuple[str, str, str]]:
    """Anchor, number and text of every fact."""
    return [entry for name in FACTS for entry in _ENTRY.findall(page(name).text)]


def cited(text: str) -> set[str]:
    """The numbers that a text cites; of a range such as F27-F29 all of them."""
    text = _MARKED.sub("", text)
    found = set(_CITED.findall(text))
    for letter, first, other, last in _RANGE.findall(text):
        if other in ("", letter):
            found |= {"%s%d" % (letter, number) for number in range(int(first), int(last) + 1)}
    return found


def test_numbers_are_unique_and_anchors_follow() -> None:
    numbers = [number for _anchor, number, _text in entries()]
    assert len(numbers) > 150
    assert len(numbers) == len(set(numbers))
    assert [anchor for anchor, number, _text in entries() if anchor != number.lower()] == []


def test_every_fact_says_something_and_names_its_source() -> None:
    poor = [
        number
        for _anchor, number, text in entries()
        if len(text.split()) < 6 or not (number.startswith("DEV-") or re.search(r"\[[^\]]+\]\s*$", text))
    ]
    assert poor == []


def test_every_bug_report_names_its_thread_or_repository() -> None:
    reports = [(number, text) for _anchor, number, text in entries() if number.startswith("DEV-")]
    assert [number for number, text in reports if not re.search(r"\w+/[\w-]+|how-to", text)] == []


@pytest.mark.parametrize("folder", ["plugins", "playbooks", "roles", "tests"])
def test_code_cites_facts_that_exist(folder: str) -> None:
    known = {number for _anchor, number, _text in entries()}
    lost = {}
    for path in sources(folder):
        if path.parent == ROOT / "tests" / "unit" / "docs":
            continue
        missing = sorted(cited(path.read_text(encoding="utf-8")) - known)
        if missing:
            lost[str(path.relative_to(ROOT))] = missing
    assert lost == {}


def test_pages_cite_facts_that_exist() -> None:
    known = {number for _anchor, number, _text in entries()}
    lost = {str(entry.path.relative_to(ROOT)): sorted(cited(entry.prose) - known) for entry in all_pages()}
    assert {path: numbers for path, numbers in lost.items() if numbers} == {}


def test_pages_link_the_facts_that_they_name_as_sources() -> None:
    plain = []
    for path in sorted((DOCS / "checks").glob("*.md")):
        for line in re.findall(
            r"^Sources:.*?(?=\n\n|\Z)", path.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
        ):
            plain += sorted(cited(re.sub(r"\[[^\]]+\]\([^)]+\)", "", line)))
    assert plain == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("F27-F29: order", {"F27", "F28", "F29"}),
        ("S8 and (F13).", {"S8", "F13"}),
        ("# noqa: F401", set()),
        ("BM.GPU.A100-v2.8 at B8:F3", set()),
        ("A100 shapes on A4 paper", set()),
        ("A58-A60", {"A58", "A59", "A60"}),
        ("DEV-04, L3", {"DEV-04", "L3"}),
    ],
)
def test_citations_are_recognised(text: str, found: set[str]) -> None:
    assert cited(text) == found
