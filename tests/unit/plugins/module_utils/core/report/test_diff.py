# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Comparisons: new, flapping, still there, gone, fixed; nodes that come and go."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from ansible_collections.rdma.k8s.plugins.module_utils.core.errors import RdmaError
from ansible_collections.rdma.k8s.plugins.module_utils.core.finding import CheckInfo, Finding, Waiver
from ansible_collections.rdma.k8s.plugins.module_utils.core.report import diff
from ansible_collections.rdma.k8s.plugins.module_utils.core.report.document import NodeRow, ResultDocument
from ansible_collections.rdma.k8s.tests.support.results import documents, small

WAIVER = Waiver("known", "team", "2026-12-31")


def history(*statuses: str, **values: Any) -> diff.Comparison:
    """Compare documents in which check C of node n1 has these statuses one after the other; '-' means: not judged."""
    made = []
    for day, status in enumerate(statuses, 1):
        findings = [Finding("OTHER", "n1", "pass")]
        if status == "waived":
            findings.append(Finding("C", "n1", "fail", "critical", "as it is", waiver=WAIVER))
        elif status != "-":
            findings.append(Finding("C", "n1", status, "critical", "it is %s" % status))
        made.append(
            ResultDocument(
                "2026-03-%02dT00:00:00Z" % day, nodes=(NodeRow("n1"),), findings=tuple(findings), **values
            )
        )
    return diff.compare(made)


@pytest.mark.parametrize(
    ("statuses", "kind"),
    [
        (("pass", "fail"), "new"),
        (("-", "fail"), "new"),
        (("skip", "unknown"), "new"),
        (("waived", "fail"), "new"),
        (("pass", "pass", "warn"), "new"),
        (("fail", "fail"), "still"),
        (("unknown", "fail"), "still"),
        (("fail", "-", "fail"), "still"),
        (("pass", "fail", "warn"), "still"),
        (("fail", "pass"), "fixed"),
        (("fail", "-", "pass"), "fixed"),
        (("unknown", "warn", "pass"), "fixed"),
        (("fail", "waived"), "gone"),
        (("fail", "skip"), "gone"),
        (("fail", "-"), "gone"),
        (("pass", "fail", "pass"), "flapping"),
        (("fail", "pass", "fail"), "flapping"),
        (("fail", "pass", "-", "fail"), "flapping"),
        (("pass", "fail", "pass", "pass"), "flapping"),
        (("pass", "skip"), None),
        (("pass", "-"), None),
        (("fail", "pass", "pass"), None),
        (("fail", "waived", "skip"), None),
    ],
)
def test_kinds(statuses: tuple[str, ...], kind: str | None) -> None:
    found = history(*statuses)
    assert [change.kind for change in found.changes] == ([kind] if kind else [])
    if kind:
        assert found.changes[0].history == tuple(["" if status == "-" else status for status in statuses])


def test_the_message_is_the_last_one_that_was_told() -> None:
    assert history("pass", "fail").changes[0].message == "it is fail"
    assert history("fail", "-").changes[0].message == "it is fail"


@pytest.mark.parametrize(
    ("statuses", "options", "code"),
    [
        (("pass", "fail"), {}, 4),
        (("fail", "fail"), {}, 0),
        (("fail", "pass"), {}, 0),
        (("pass", "warn"), {}, 0),
        (("pass", "unknown"), {}, 0),
        (("pass", "unknown"), {"strict": True}, 3),
        (("fail", "pass", "fail"), {}, 4),
        (("pass", "fail", "pass"), {}, 0),
    ],
)
def test_exit_code(statuses: tuple[str, ...], options: dict[str, Any], code: int) -> None:
    assert history(*statuses).exit_code(**options) == code


def test_the_threshold_counts() -> None:
    old = ResultDocument("1", findings=(Finding("C", "n", "pass", "info"),))
    new = ResultDocument("2", findings=(Finding("C", "n", "fail", "info"),))
    assert diff.compare([old, new]).exit_code() == 0
    assert diff.compare([old, new]).exit_code("info") == 4


def rows(*names: str, silent: tuple[str, ...] = ()) -> tuple[NodeRow, ...]:
    return tuple([NodeRow(name, name not in silent, "down" if name in silent else "") for name in names])


def test_nodes_that_come_go_fall_silent_and_speak_again() -> None:
    old = ResultDocument(
        "1",
        nodes=rows("stays", "leaves", "falls", "wakes", silent=("wakes",)),
        findings=(
            Finding("C", "stays", "pass"),
            Finding("C", "leaves", "fail"),
            Finding("C", "falls", "fail"),
            Finding("C", "wakes", "unknown"),
        ),
    )
    new = ResultDocument(
        "2",
        nodes=rows("stays", "comes", "falls", "wakes", silent=("falls",)),
        findings=(
            Finding("C", "stays", "pass"),
            Finding("C", "comes", "fail"),
            Finding("C", "falls", "unknown"),
            Finding("C", "wakes", "pass"),
        ),
    )
    found = diff.compare([new, old])
    assert found.moments == ["1", "2"]
    assert (found.appeared, found.vanished, found.lost, found.back) == (
        ["comes"],
        ["leaves"],
        ["falls"],
        ["wakes"],
    )
    assert [(change.kind, change.node) for change in found.changes] == [("new", "comes")]
    assert diff.compare([old, new]).exit_code(strict=True) == 4
    text = diff.render_text(found)
    assert "1 node vanished from the run\n          leaves" in text
    assert "1 node told nothing this time\n          falls" in text


def test_settings_that_changed_are_told() -> None:
    old = small(created_at="1")
    new = small(
        created_at="2",
        child_range="10.192.0.0/12",
        settings={},
        checks=(*small().checks[:3], CheckInfo("X", "", "info", "")),
    )
    assert diff.compare([old, new]).settings == [
        ("child_range", "10.208.0.0/12", "10.192.0.0/12"),
        ("pod_cidrs", "10.244.0.0/16", ""),
        ("checks", "RDMA-RANGE-013", "X"),
    ]


def test_one_document_is_not_a_comparison() -> None:
    with pytest.raises(RdmaError, match="at least two result documents, found 1") as caught:
        diff.compare([small()])
    assert caught.value.code == "comparison_needs_two"


def test_a_document_against_itself_shows_only_what_is_still_open() -> None:
    found = diff.compare([small(), small()])
    assert {change.kind for change in found.changes} == {"still"}
    assert not (found.appeared)
    assert not (found.vanished)
    assert not (found.lost)
    assert not (found.back)
    assert not (found.settings)


def test_text() -> None:
    assert diff.render_text(history("pass", "fail")) == (
        "2026-03-01T00:00:00Z to 2026-03-02T00:00:00Z, 2 documents\n"
        "1 new\n"
        "\n"
        "NEW       C\n"
        "          pass > fail, 1 node: n1\n"
        "          it is fail\n"
    )
    assert diff.render_text(history("pass", "pass")).splitlines()[1] == "Nothing changed"
    assert "\x1b[31mNEW" in diff.render_text(history("pass", "fail"), colour=True)


def test_markdown() -> None:
    text = "".join(diff.render_markdown(history("pass", "fail")))
    assert "Two documents cannot show what is flapping; that takes a third one." in text
    assert "## New\n\nOpen now, good before.\n\n| Check | Title | History | Nodes | Found |" in text
    assert "| C |  | pass &gt; fail | n1 | it is fail |" in text
    assert "cannot show" not in "".join(diff.render_markdown(history("pass", "fail", "pass")))


def test_plain_data() -> None:
    data = json.loads(json.dumps(history("pass", "-", "fail").to_dict()))
    assert data["counts"] == {"new": 1, "flapping": 0, "still": 0, "gone": 0, "fixed": 0}
    assert data["changes"][0]["history"] == ["pass", None, "fail"]


def test_many_changes_are_cut_in_the_text() -> None:
    old = ResultDocument(
        "1", nodes=rows("n"), findings=tuple([Finding("C%02d" % n, "n", "pass") for n in range(20)])
    )
    new = ResultDocument(
        "2", nodes=rows("n"), findings=tuple([Finding("C%02d" % n, "n", "fail") for n in range(20)])
    )
    assert "And 8 more checks that are new.\n" in diff.render_text(diff.compare([old, new]))


@settings(max_examples=50)
@given(st.lists(documents(), min_size=2, max_size=4))
def test_any_documents_can_be_compared(made: list[ResultDocument]) -> None:
    found = diff.compare(made)
    assert all(len(line) <= 100 for line in diff.render_text(found).split("\n"))
    json.dumps(found.to_dict())
    text = "".join(diff.render_markdown(found))
    text.encode("utf-8")
    assert "<" not in text
    keys = [(change.check, change.node) for change in found.changes]
    assert len(keys) == len(set(keys))
