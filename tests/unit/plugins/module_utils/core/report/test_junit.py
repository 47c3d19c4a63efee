# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""JUnit XML: the structure that CI systems accept, and any text inside it."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import pytest
from hypothesis import given, strategies as st

from ansible_collections.rdma.k8s.plugins.module_utils.core.finding import Finding
from ansible_collections.rdma.k8s.plugins.module_utils.core.report import junit
from ansible_collections.rdma.k8s.plugins.module_utils.core.report.document import ResultDocument
from ansible_collections.rdma.k8s.tests.support.results import HOSTILE, documents, drenched, small

# What the schemas in use (Ant's, Jenkins', the one of the xUnit plugin) have in common: allowed attributes, required
# ones, and the allowed children in their order.
ELEMENTS = {
    "testsuites": ({"name", "tests", "failures", "errors", "time"}, set(), ["testsuite"]),
    "testsuite": (
        {"name", "tests", "failures", "errors", "skipped", "time", "timestamp", "hostname", "id", "package"},
        {"name", "tests", "failures", "errors"},
        ["properties", "testcase", "system-out", "system-err"],
    ),
    "properties": (set(), set(), ["property"]),
    "property": ({"name", "value"}, {"name", "value"}, []),
    "testcase": (
        {"classname", "name", "time"},
        {"classname", "name"},
        ["skipped", "error", "failure", "system-out", "system-err"],
    ),
    "skipped": ({"message"}, set(), []),
    "error": ({"message", "type"}, {"type"}, []),
    "failure": ({"message", "type"}, {"type"}, []),
    "system-out": (set(), set(), []),
}


def check_element(element: ET.Element) -> None:
    """Assert that an element and all below it follow ELEMENTS."""
    allowed, required, children = ELEMENTS[element.tag]
    assert set(element.attrib) <= allowed
    assert required <= set(element.attrib)
    assert [children.index(child.tag) for child in element] == sorted(
        [children.index(child.tag) for child in element]
    )
    for name in ("tests", "failures", "errors", "skipped"):
        assert re.fullmatch(r"[0-9]+", element.get(name, "0"))
    assert re.fullmatch(r"[0-9]+\.[0-9]+", element.get("time", "0.0"))
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", element.get("timestamp", "2026-01-01T00:00:00"))
    for child in element:
        check_element(child)


def parse(document: ResultDocument) -> ET.Element:
    text = "".join(junit.chunks(document))
    assert text == "".join(junit.chunks(document))
    root = ET.fromstring(text.encode("utf-8"))
    assert root.tag == "testsuites"
    check_element(root)
    for suite in root:
        cases = suite.findall("testcase")
        assert int(suite.get("tests", "")) == len(cases)
        assert int(suite.get("failures", "")) == len(
            [1 for case in cases if case.find("failure") is not None]
        )
        assert int(suite.get("errors", "")) == len([1 for case in cases if case.find("error") is not None])
        assert int(suite.get("skipped", "")) == len([1 for case in cases if case.find("skipped") is not None])
    for name in ("tests", "failures", "errors"):
        assert int(root.get(name, "")) == sum([int(suite.get(name, "")) for suite in root])
    return root


def test_the_small_document() -> None:
    root = parse(small())
    assert [suite.get("name") for suite in root] == ["n1", "n2", "n10", "n11", "(fleet)"]
    kinds = [[[child.tag for child in case] for case in suite.findall("testcase")] for suite in root]
    assert kinds == [
        [["failure"], ["system-out"], ["skipped", "system-out"]],
        [["failure"], [], ["skipped"]],
        [["error"], ["error"]],
        [["error"]],
        [["error"]],
    ]
    first = root[0].findall("testcase")[0]
    assert first.attrib == {"classname": "NODE", "name": "RDMA-NODE-001 Netns mode is right"}
    failure = first[0]
    assert failure.attrib == {"message": "The mode of n1 is exclusive.", "type": "critical"}
    assert failure.text == "Expected: shared\nObserved: exclusive\nRead from: /sys/x\nTo do: Set the mode."
    warned = root[0].findall("testcase")[1]
    assert warned.get("time") == "0.000250"
    assert warned[0].text == "warn: Two NICs of n1 differ.\nrdma1: warn too small\nTo do: Set the MTU."
    waived = root[0].findall("testcase")[2]
    assert waived[0].get("message") == "waived until 2026-04-01 by net team: being moved"
    assert root[0].get("timestamp") == "2026-03-02T09:29:00"
    assert root[3].get("timestamp") == "2026-03-02T09:30:00"
    assert {p.get("name"): p.get("value") for p in root[0].iter("property")}["shape"] == "BM.GPU.H100.8"


def test_a_node_without_result_and_an_unreachable_one_are_errors() -> None:
    root = parse(small(findings=()))
    reasons = [suite.findall("testcase")[0][0].get("message") for suite in root]
    assert reasons == [
        "No check was judged for this node.",
        "No check was judged for this node.",
        "No answer over SSH within 30 s.",
        "No check was judged for this node.",
    ]


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_wherever_it_stands(text: str) -> None:
    root = parse(drenched(text))
    assert [len(suite.findall("testcase")) for suite in root] == [3, 3, 2, 1, 1]


@given(documents())
def test_any_document_is_well_formed_and_valid(document: ResultDocument) -> None:
    parse(document)


@given(st.text(st.characters(exclude_categories=())))
def test_texts_come_back_except_what_xml_cannot_hold(text: str) -> None:
    root = parse(ResultDocument("now", findings=(Finding("RDMA-NODE-001", "n", "fail", message=text),)))
    message = root[0].findall("testcase")[0][0].get("message") or ""
    assert len(message) == len(text)
    assert all(found in (wanted, "\ufffd") for found, wanted in zip(message, text))
    if text.isprintable() and text.isascii():
        assert message == text
