# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The textfile for Prometheus, read by a parser of the exposition format that is written here."""

from __future__ import annotations

import re

import pytest
from hypothesis import given

from ansible_collections.rdma.k8s.plugins.module_utils.core.finding import Finding
from ansible_collections.rdma.k8s.plugins.module_utils.core.report import textfile
from ansible_collections.rdma.k8s.plugins.module_utils.core.report.document import NodeRow, ResultDocument
from ansible_collections.rdma.k8s.tests.support.results import HOSTILE, documents, drenched, small

Series = tuple[str, tuple[tuple[str, str], ...]]
_LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\\\|\\"|\\n)*)"(,|$)')
_UNESCAPE = {"\\\\": "\\", '\\"': '"', "\\n": "\n"}


def parse(text: str) -> dict[Series, float]:
    """Read the exposition format strictly: heads before samples, one family together, no series twice."""
    text.encode("utf-8")
    assert text.endswith("\n") or not text
    helped: list[str] = []
    typed: list[str] = []
    samples: dict[Series, float] = {}
    for line in text.split("\n")[:-1]:
        if line.startswith("# HELP "):
            name = line.split(" ")[2]
            assert name not in helped
            assert "\\" not in line
            helped.append(name)
            continue
        if line.startswith("# TYPE "):
            assert line.split(" ")[2:] == [helped[-1], "gauge"]
            typed.append(helped[-1])
            continue
        match = re.fullmatch(r"([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)", line, re.DOTALL)
        assert match, line
        name, inside, value = match.groups()
        assert name == typed[-1], "the samples of a metric stand together below its head"
        labels, rest = [], inside or ""
        while rest:
            part = _LABEL.match(rest)
            assert part, rest
            labels.append((part[1], re.sub(r"\\.", lambda found: _UNESCAPE[found[0]], part[2])))
            rest = rest[part.end() :]
        series = (name, tuple(labels))
        assert series not in samples, "a series twice makes the collector refuse the file"
        samples[series] = float(value)
    return samples


def samples_of(document: ResultDocument, interval: int | None = None) -> dict[Series, float]:
    text = "".join(textfile.chunks(document, interval))
    assert text == "".join(textfile.chunks(document, interval))
    return parse(text)


def values(samples: dict[Series, float], metric: str) -> dict[tuple[str, ...], float]:
    return {
        tuple([value for _name, value in labels]): held
        for (name, labels), held in samples.items()
        if name == metric
    }


def test_the_small_document() -> None:
    samples = samples_of(small(), 3600)
    assert values(samples, "rdma_k8s_check_status") == {
        ("RDMA-NODE-001", "n1"): 1,
        ("RDMA-NODE-017", "n1"): 0,
        ("RDMA-OCA-012", "n1"): 0,
        ("RDMA-NODE-001", "n2"): 1,
        ("RDMA-NODE-017", "n2"): 0,
        ("RDMA-NODE-001", "n10"): 2,
        ("RDMA-NODE-017", "n10"): 2,
        ("RDMA-RANGE-013", "(fleet)"): 2,
    }
    assert values(samples, "rdma_k8s_check_warning") == {("RDMA-NODE-017", "n1"): 1}
    assert values(samples, "rdma_k8s_check_waived") == {("RDMA-OCA-012", "n1"): 1}
    assert values(samples, "rdma_k8s_check_duration_seconds") == {
        ("RDMA-NODE-017", "n1"): 0.00025,
        ("RDMA-NODE-017", "n2"): 0.001,
    }
    assert values(samples, "rdma_k8s_node_status") == {
        ("n1",): 1,
        ("n2",): 1,
        ("n10",): 2,
        ("n11",): 2,
        ("(fleet)",): 2,
    }
    moments = values(samples, "rdma_k8s_check_last_run_timestamp_seconds")
    assert moments[("n1",)] == 1772443740  # 2026-03-02T09:29:00Z
    assert moments[("n11",)] == 1772443800  # the judgement's own time
    assert values(samples, "rdma_k8s_check_expected_interval_seconds") == {(): 3600}


def test_names_that_are_written_alike_are_told_apart() -> None:
    """What cannot be printed is replaced, and no series may stand there twice."""
    rows = (NodeRow("\x08"), NodeRow("\x1f"), NodeRow("n1"))
    findings = tuple([Finding("c\x01", row.name, "fail") for row in rows] + [Finding("c\x02", "n1", "pass")])
    samples = samples_of(ResultDocument("now", nodes=rows, findings=findings))
    assert values(samples, "rdma_k8s_node_status") == {("\ufffd",): 1, ("\ufffd (2)",): 1, ("n1",): 1}
    assert values(samples, "rdma_k8s_check_status") == {
        ("c\ufffd", "\ufffd"): 1,
        ("c\ufffd", "\ufffd (2)"): 1,
        ("c\ufffd", "n1"): 1,
        ("c\ufffd (2)", "n1"): 0,
    }


def test_without_an_interval_there_is_no_such_metric() -> None:
    assert not values(samples_of(small()), "rdma_k8s_check_expected_interval_seconds")


def test_a_check_that_is_skipped_has_no_series_and_a_node_never_vanishes() -> None:
    document = ResultDocument("now", nodes=(NodeRow("n1"),), findings=(Finding("c", "n2", "skip"),))
    samples = samples_of(document)
    assert not values(samples, "rdma_k8s_check_status")
    assert values(samples, "rdma_k8s_node_status") == {("n1",): 2, ("n2",): 0}


def test_two_findings_of_one_check_are_one_series() -> None:
    findings = (
        Finding("c", "n", "pass", duration_ms=1),
        Finding("c", "n", "fail", duration_ms=2),
        Finding("c", "n", "unknown"),
    )
    samples = samples_of(ResultDocument("now", findings=findings))
    assert values(samples, "rdma_k8s_check_status") == {("c", "n"): 1}
    assert values(samples, "rdma_k8s_check_duration_seconds") == {("c", "n"): 0.003}


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_wherever_it_stands(text: str) -> None:
    assert sorted(values(samples_of(drenched(text)), "rdma_k8s_check_status").values()) == [
        0,
        0,
        0,
        1,
        1,
        2,
        2,
        2,
    ]


@given(documents())
def test_any_document_can_be_read(document: ResultDocument) -> None:
    samples = samples_of(document)
    names = {row.name for row in document.nodes} | {finding.node for finding in document.findings}
    assert len(values(samples, "rdma_k8s_node_status")) <= len(names)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1970-01-01T00:00:10Z", 10),
        ("2026-03-02T09:30:00Z", 1772443800),
        ("2026-03-02T09:30:00", None),
        ("2026-13-02T09:30:00Z", None),
        ("yesterday", None),
        ("", None),
        ("\ud800", None),
    ],
)
def test_seconds(text: str, expected: int | None) -> None:
    assert textfile.seconds(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [('a"b', 'a\\"b'), ("a\\b", "a\\\\b"), ("a\nb\tc", "a\\nb c"), ("a\x00\ud800", "a\ufffd\ufffd")],
)
def test_label(text: str, expected: str) -> None:
    assert textfile.label(text) == expected
