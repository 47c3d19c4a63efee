# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The summary for a terminal: width, colours, order, no control sequence that a node sent."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, strategies as st

from ansible_collections.rdma.k8s.plugins.module_utils.core.finding import CheckInfo, Finding
from ansible_collections.rdma.k8s.plugins.module_utils.core.report.document import NodeRow, ResultDocument
from ansible_collections.rdma.k8s.plugins.module_utils.core.report.summary import render
from ansible_collections.rdma.k8s.tests.support.results import HOSTILE, documents, drenched, small

EXPECTED = """\
4 nodes, 4 checks, target oke_dranet, child range 10.208.0.0/12
2 with failures   2 not fully told

UNKNOWN   1 node told nothing
          n10
          No answer over SSH within 30 s.

UNKNOWN   1 node told nothing
          n11
          No check was judged for this node.

FAIL      RDMA-NODE-001 Netns mode is right
          critical, 2 nodes: n[1-2]
          n1: The mode of n1 is exclusive.
          n2: The mode of n2 is exclusive.
          To do: Set the mode.

UNKNOWN   RDMA-RANGE-013 Children are unique
          critical, whole fleet
          One node told no addresses.
          To do: Choose another range.

WARN      RDMA-NODE-017 MTU is right
          error, 1 node: n1
          Two NICs of n1 differ.
          To do: Set the MTU.

WAIVED    1 finding waived
          RDMA-OCA-012
"""


def test_the_small_document() -> None:
    assert render(small()) == EXPECTED


def test_colours_only_when_asked() -> None:
    coloured = render(small(), colour=True)
    assert "\x1b[31mFAIL      \x1b[0m" in coloured
    assert re.sub(r"\x1b\[[0-9]+m", "", coloured) == EXPECTED
    assert "\x1b" not in render(small())


@given(documents(), st.integers(0, 200))
def test_it_fits_the_width_and_sends_no_control_sequence(document: ResultDocument, width: int) -> None:
    check_harmless(document, width)


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_wherever_it_stands(text: str) -> None:
    check_harmless(drenched(text), 80)


def check_harmless(document: ResultDocument, width: int) -> None:
    text = render(document, width)
    room = max(40, min(width, 100))
    assert all(len(line) <= room for line in text.split("\n"))
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\ud800-\udfff]", text)


def test_the_same_fault_on_many_nodes_is_one_entry_with_folded_names() -> None:
    findings = [
        Finding("RDMA-NODE-017", "gpu-%03d" % n, "fail", "error", "gpu-%03d has 1500." % n)
        for n in range(1, 41)
    ]
    findings.append(Finding("RDMA-NODE-017", "gpu-099", "fail", "error", "gpu-099 has 9000."))
    text = render(
        ResultDocument(
            "now", checks=(CheckInfo("RDMA-NODE-017", "MTU", "error", "NODE"),), findings=tuple(findings)
        )
    )
    assert "41 nodes: gpu-[001-040,099]" in text
    assert "gpu-001: gpu-001 has 1500. (and 39 more like it)" in text
    assert "gpu-099: gpu-099 has 9000." in text
    assert text.count("RDMA-NODE-017") == 1


def test_what_is_beyond_the_limit_is_counted() -> None:
    findings = tuple([Finding("c%02d" % n, "n", "fail" if n < 14 else "warn") for n in range(20)])
    text = render(ResultDocument("now", findings=findings), limit=12)
    assert "And 8 more checks: 2 fail, 6 warn. The reports show all of them." in text
    assert text.count("FAIL ") == 12


def test_long_lists_of_nodes_are_cut() -> None:
    names = ["host-%s-x" % chr(97 + n % 26) * 3 + "%d" % n for n in range(200)]
    findings = tuple([Finding("c", name, "fail") for name in names])
    lines = render(ResultDocument("now", findings=findings)).splitlines()
    assert len(lines) < 12
    assert any(line.endswith(" ...") for line in lines)


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        (ResultDocument("now"), "0 nodes, 0 checks\n"),
        (
            ResultDocument("now", nodes=(NodeRow("n"),), findings=(Finding("c", "n", "pass"),)),
            "1 node, 1 check\n1 good\n",
        ),
    ],
)
def test_a_good_fleet_has_a_short_summary(document: ResultDocument, expected: str) -> None:
    assert render(document) == expected


def test_more_than_three_messages_are_counted() -> None:
    findings = tuple([Finding("c", "node-%d" % n, "fail", message="fault %d" % n) for n in range(6)])
    text = render(ResultDocument("now", findings=findings))
    assert "          node-2: fault 2\n          ... and 3 other messages\n" in text


def test_a_narrow_terminal_has_the_node_counts_on_two_lines() -> None:
    statuses = ("fail", "unknown", "warn", "pass", "skip")
    findings = tuple([Finding("c", "n%d" % n, status) for n, status in enumerate(statuses)])
    lines = render(ResultDocument("now", findings=findings), width=40).splitlines()
    assert lines[1:4] == [
        "1 with failures   1 not fully told",
        "1 with warnings   1 good",
        "1 with nothing to judge",
    ]
