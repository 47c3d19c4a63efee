# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The report in Markdown: its parts, and that no text becomes markup."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, strategies as st

from ansible_collections.rdma.k8s.plugins.module_utils.core.finding import CheckInfo, Detail, Finding
from ansible_collections.rdma.k8s.plugins.module_utils.core.report import markdown
from ansible_collections.rdma.k8s.plugins.module_utils.core.report.document import (
    NicRow,
    NodeRow,
    ResultDocument,
)
from ansible_collections.rdma.k8s.tests.bench.make_result import make
from ansible_collections.rdma.k8s.tests.support.results import HOSTILE, documents, drenched, small

CELL_BORDER = re.compile(r"(?<!\\)(?:\\\\)*\|")


def text_of(document: ResultDocument) -> str:
    text = "".join(markdown.chunks(document))
    assert text == "".join(markdown.chunks(document))
    return text


def tables(text: str) -> list[list[list[str]]]:
    """The tables as rows of cells; asserts that all rows of a table have as many cells as its head."""
    found: list[list[list[str]]] = []
    inside = False
    for line in text.split("\n"):
        if not line.startswith("|"):
            inside = False
            continue
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if not inside:
            found.append([])
        inside = True
        found[-1].append(cells)
    for rows in found:
        assert rows[1] == ["---"] * len(rows[0])
        assert {len(row) for row in rows} == {len(rows[0])}
    return found


def test_the_small_document() -> None:
    text = text_of(small())
    assert text.startswith("# RDMA conformance report\n\n**4 of 4 nodes need attention.**\n")
    overview, results, matrix = tables(text)[:3]
    assert ["Child range", "10.208.0.0/12"] in overview
    assert ["✕ fail", "2", "2", "fail: measured, and wrong"] in results
    assert matrix == [
        ["Node", "", "NODE", "OCA", "RANGE"],
        ["---"] * 5,
        ["(fleet)", "?", "", "", "? 1"],
        ["n1", "✕", "✕ 1", "~ 1", ""],
        ["n2", "✕", "✕ 1", "- 1", ""],
        ["n10", "?", "? 2", "", ""],
        ["n11", "?", "", "", ""],
    ]
    headings = re.findall(r"^#+ .*", text, re.M)
    assert headings == [
        "# RDMA conformance report",
        "## Nodes and areas",
        "## What to act on",
        "### ? 1 node told nothing",
        "### ? 1 node told nothing",
        "### ✕ RDMA-NODE-001 Netns mode is right",
        "### ? RDMA-RANGE-013 Children are unique",
        "### ! RDMA-NODE-017 MTU is right",
        "## Waived",
        "## Addresses that are not as derived",
        "## Settings of this run",
    ]
    assert (
        "**fail**, critical, 2 nodes: n\\[1-2\\]\n\nTo do: Set the mode.\n\nRemedy page: checks/RDMA-NODE-001.md"
        in text
    )
    assert "| n1 | rdma1 | warn: too small | 4220 | 1500 |" in text
    assert "| n1 | rdma1 | 10.225.1.20 | 10.225.9.9 | It has 10.225.9.9; 10.225.1.20 was expected. |" in text
    assert "| RDMA-OCA-012 | n1 | fail | Wrong address. | being moved | net team | 2026-04-01 |" in text


def test_good_nodes_with_the_same_cells_are_one_line() -> None:
    text = text_of(make(300, 20))
    matrix = tables(text)[2]
    assert len(matrix) < 30
    assert len([row for row in matrix if row[1] == "✓"]) == 1
    assert re.search(r"\(2\d\d\) \| ✓", text)


def test_a_long_group_is_cut_and_says_so() -> None:
    findings = [
        Finding("c", "n%d" % n, "fail", details=(Detail("x", "fail"), Detail("y", "fail"))) for n in range(60)
    ]
    text = text_of(ResultDocument("now", findings=tuple(findings)))
    assert "10 more nodes in `result.json`." in text
    assert len(tables(text)[-1]) == 52


def test_many_parts_and_many_wrong_addresses_are_cut_and_say_so() -> None:
    parts = tuple([Detail("rdma%d" % number, "fail") for number in range(52)])
    text = text_of(ResultDocument("now", findings=(Finding("c", "n", "fail", details=parts),)))
    assert "2 more parts in `result.json`." in text
    nics = tuple([NicRow(number, parent="10.0.0.1", observed="") for number in range(201)])
    text = text_of(ResultDocument("now", nodes=(NodeRow("n", nics=nics),)))
    assert "1 more NIC in `report.html`." in text


def test_nothing_to_do() -> None:
    text = text_of(ResultDocument("now", nodes=(NodeRow("n"),), findings=(Finding("c", "n", "pass"),)))
    assert "**Nothing to do: 1 node judged.**" in text
    assert "## What to act on\n\nNothing.\n" in text


def test_a_fault_of_the_fleet_alone_is_told() -> None:
    document = ResultDocument(
        "now",
        checks=(CheckInfo("c", "Title", "critical", "RANGE"),),
        nodes=(NodeRow("n"),),
        findings=(Finding("c", "(fleet)", "fail", "critical"), Finding("c", "n", "pass")),
    )
    assert "**No single node is wrong, but the fleet is: see below.**" in text_of(document)
    assert "**fail**, critical, the whole fleet" in text_of(document)


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("plain_name rdma0 a-b.c", "plain_name rdma0 a-b.c"),
        ("_a_ *b* `c`", "\\_a\\_ \\*b\\* \\`c\\`"),
        ("a|b\\c", "a\\|b\\\\c"),
        ("<b>&amp;", "&lt;b&gt;&amp;amp;"),
        ("[x](y) #1 @all ~s~", "\\[x\\](y) \\#1 &#64;all \\~s\\~"),
        ("http://x www.y", "http:\\/\\/x www\\.y"),
        ("a\r\n\tb\x00", "a b\ufffd"),
    ],
)
def test_escape(text: str, escaped: str) -> None:
    assert markdown.escape(text) == escaped


@given(documents())
def test_no_text_becomes_markup(document: ResultDocument) -> None:
    check_harmless(document)


@pytest.mark.parametrize("text", HOSTILE)
def test_no_text_becomes_markup_wherever_it_stands(text: str) -> None:
    check_harmless(drenched(text))


def check_harmless(document: ResultDocument) -> None:
    text = text_of(document)
    text.encode("utf-8")
    tables(text)
    assert not re.search(r"[<>]", text)
    assert not re.search(r"(?<!\\)[\[\]]", text)
    assert not re.search(r"\w://|@", text)
    assert not re.search(r"&(?!(?:amp|lt|gt|#64);)", text)
    for line in text.split("\n"):
        assert (
            not line
            or line.startswith(
                (
                    "# ",
                    "## ",
                    "### ",
                    "| ",
                    "|-",
                    "| -",
                    "**",
                    "A cell",
                    "Nothing",
                    "Node",
                    "Reason:",
                    "To do:",
                    "Remedy page:",
                )
            )
            or re.match(r"[0-9]+ more ", line)
        )


@given(st.text(st.characters(exclude_categories=())))
def test_an_escaped_text_reads_as_the_text(text: str) -> None:
    escaped = markdown.escape(text)
    back = re.sub(r"\\([\\`*_\[\]|~#$/.])", r"\1", escaped)
    for entity, character in (("&#64;", "@"), ("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&")):
        back = back.replace(entity, character)
    assert back == markdown.flat(text).strip()
