# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The HTML report as a file: its structure, its data, its policy, and that no text becomes code.

What it does in a browser is tested in ``tests/browser``.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from typing import Any, Optional

import pytest
from hypothesis import given

from ansible_collections.rdma.k8s.plugins.module_utils.core.errors import RdmaError
from ansible_collections.rdma.k8s.plugins.module_utils.core.finding import Finding
from ansible_collections.rdma.k8s.plugins.module_utils.core.report import html
from ansible_collections.rdma.k8s.plugins.module_utils.core.report.digest import VERDICTS, digest, verdict
from ansible_collections.rdma.k8s.plugins.module_utils.core.report.document import NodeRow, ResultDocument
from ansible_collections.rdma.k8s.plugins.module_utils.core.report.html_script import SCRIPT
from ansible_collections.rdma.k8s.plugins.module_utils.core.report.html_style import STYLE
from ansible_collections.rdma.k8s.plugins.module_utils.core.report.wording import flat
from ansible_collections.rdma.k8s.tests.bench.make_result import make
from ansible_collections.rdma.k8s.tests.support.results import HOSTILE, documents, drenched, small

VOID = {"meta", "link", "input", "br", "path", "circle", "rect", "use"}
LETTERS = {letter: name for name, letter in html.LETTERS.items()}


class Page(HTMLParser):
    """Reads a page strictly: every element is closed, in order; keeps elements, ids and the content of scripts."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, Optional[str]]]] = []
        self.blocks: dict[str, str] = {}
        self.text: list[str] = []
        self.block: Optional[str] = None
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, Optional[str]]]) -> None:
        assert len(attrs) == len(dict(attrs)), tag
        self.elements.append((tag, dict(attrs)))
        if tag in ("script", "style"):
            self.block = dict(attrs).get("id") or tag
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, Optional[str]]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag
        self.block = None

    def handle_data(self, data: str) -> None:
        if self.block is None:
            self.text.append(data)
        else:
            self.blocks[self.block] = self.blocks.get(self.block, "") + data

    def data(self, name: str) -> Any:
        return json.loads(self.blocks[name])

    def all(self, tag: str) -> list[dict[str, Optional[str]]]:
        return [attributes for found, attributes in self.elements if found == tag]


def page_of(document: ResultDocument, docs: str = "") -> Page:
    text = "".join(html.chunks(document, docs))
    assert text == "".join(html.chunks(document, docs))
    text.encode("utf-8")
    return Page(text)


def told(page: Page) -> dict[tuple[str, str], list[dict[str, Any]]]:
    """The findings by node and check as the script of the page reads them."""
    head, data = page.data("data-head"), page.data("data-findings")
    found: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for node, row in zip(head["nodes"], data["cells"]):
        for check, cell in zip(head["checks"], row):
            for number in cell if isinstance(cell, list) else [cell] if cell != -1 else []:
                letter, severity, message, expected, observed, evidence, details, *waiver = data["records"][
                    number
                ]

                def text(index: int, name: str = node[0]) -> str:
                    return data["strings"][index].replace("\x01", name)

                found.setdefault((node[0], check[0]), []).append(
                    {
                        "verdict": LETTERS[letter],
                        "severity": head["severities"][severity],
                        "texts": [text(message), text(expected), text(observed)],
                        "evidence": [text(index) for index in evidence],
                        "details": [[text(index) for index in row] for row in details],
                        "waiver": [text(index) for index in waiver[0]] if waiver else None,
                    }
                )
    return found


def test_the_page_is_one_document_without_requests() -> None:
    page = page_of(small())
    tags = [tag for tag, _attributes in page.elements]
    assert tags[:2] == ["html", "head"]
    assert page.all("html") == [{"lang": "en"}]
    for _tag, attributes in page.elements:
        for name in ("src", "action", "formaction", "srcset", "data", "poster", "ping"):
            assert name not in attributes
        for name in ("href", "xlink:href"):
            assert (attributes.get(name) or "#").startswith(("#", "data:,"))
        assert not [name for name in attributes if name.startswith("on") or name == "style"]
    assert not {"iframe", "object", "embed", "base", "form", "img"} & set(tags)
    assert not re.search(r"\b(?:fetch|XMLHttpRequest|WebSocket|sendBeacon|import)\b\s*\(", SCRIPT)
    assert "http" not in STYLE
    assert "url(" not in STYLE


def test_the_script_never_makes_markup() -> None:
    assert not re.search(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval|Function\(|srcdoc", SCRIPT
    )
    assert "</script" not in SCRIPT.lower()
    assert "<!--" not in SCRIPT
    assert "</style" not in STYLE.lower()


def test_the_policy_lets_in_only_the_script_and_the_style_of_the_page() -> None:
    page = page_of(small())
    (policy,) = [
        meta["content"] or ""
        for meta in page.all("meta")
        if meta.get("http-equiv") == "Content-Security-Policy"
    ]
    parts = dict([part.strip().split(" ", 1) for part in policy.split(";")])

    def digest_of(text: str) -> str:
        return "'sha256-%s'" % base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()

    assert parts == {
        "default-src": "'none'",
        "script-src": digest_of(page.blocks["script"]),
        "style-src": digest_of(page.blocks["style"]),
        "img-src": "data:",
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    first = [
        tag for tag, attributes in page.elements if tag in ("script", "style") or "http-equiv" in attributes
    ]
    assert first[0] == "meta", "the policy stands before what it rules"


def test_structure_for_readers() -> None:
    page = page_of(small())
    ids = [attributes["id"] for _tag, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    for _tag, attributes in page.elements:
        for reference in (attributes.get("aria-labelledby") or "").split():
            assert reference in ids
    assert [tag for tag, _attributes in page.elements if tag == "h1"] == ["h1"]
    assert page.all("main")
    assert page.all("label")[0]["for"] == "search"
    assert "4 of 4 nodes need attention." in "".join(page.text)
    assert {name for tag, attributes in page.elements if tag == "use" for name in [attributes["href"]]} <= {
        "#icon-%s" % name for name in VERDICTS
    }
    assert set(re.findall(r'\$\("([a-z-]+)"\)', SCRIPT)) - set(ids) == {
        "addresses"
    }  # made by the script itself


def test_what_a_reader_without_scripts_sees() -> None:
    text = "".join(html.chunks(small()))
    static = text[text.index("<noscript>") : text.index("</noscript>")]
    rows = re.findall(r'<th scope="row">(.*?)</th><td>(.*?)</td><td>(.*?)</td>', static)
    assert rows == [
        ("1 node told nothing", "No answer over SSH within 30 s.", "n10"),
        ("1 node told nothing", "No check was judged for this node.", "n11"),
        ("RDMA-NODE-001 Netns mode is right", "The mode of n1 is exclusive. To do: Set the mode.", "n[1-2]"),
        (
            "RDMA-RANGE-013 Children are unique",
            "One node told no addresses. To do: Choose another range.",
            "(fleet)",
        ),
        ("RDMA-NODE-017 MTU is right", "Two NICs of n1 differ. To do: Set the MTU.", "n1"),
    ]
    many = ResultDocument("now", findings=tuple([Finding("c%d" % n, "n", "fail") for n in range(230)]))
    assert "<p>30 more findings in report.md.</p>" in "".join(html.chunks(many))


def check_data(document: ResultDocument) -> Page:
    """The page tells every finding, in harmless form, and every node in order of urgency."""
    page = page_of(document)
    head, data = page.data("data-head"), page.data("data-findings")
    order = digest(document).nodes
    assert [node[0] for node in head["nodes"]] == [flat(node.name) for node in order]
    assert [LETTERS[node[1]] for node in head["nodes"]] == [node.verdict() for node in order]
    names = [node[0] for node in head["nodes"]]
    others = {str(names.index(name)): words for name, words in document.no_nodes.items() if name in names}
    assert {place: words[0] for place, words in head["noNodes"].items()} == others
    assert len(head["places"]) == len(data["cells"]) == len(order)
    assert sum([len(found) for found in told(page).values()]) == len(document.findings)
    for node, row in zip(order, data["cells"]):
        letters = head["places"][order.index(node)]
        for letter, cell in zip(letters, row):
            numbers = cell if isinstance(cell, list) else [cell] if cell != -1 else []
            verdicts = {LETTERS[data["records"][number][0]] for number in numbers}
            assert letter == "." if not verdicts else html.LETTERS[min(verdicts, key=VERDICTS.index)]
    rails = page.data("data-rails")
    assert [len(row) for row in rails["nodes"]] == [len(node.row.nics) if node.row else 0 for node in order]
    assert page.blocks["script"] == SCRIPT
    assert page.blocks["style"] == STYLE
    expected = page_of(small())
    for tag in ("script", "style", "main", "dialog", "iframe", "img", "meta", "a", "button", "input"):
        assert len(page.all(tag)) == len(expected.all(tag)), "no text made an element"
    return page


def test_the_data_of_the_small_document() -> None:
    found = told(check_data(small()))
    first = found[("n1", "RDMA-NODE-001")]
    assert first == [
        {
            "verdict": "fail",
            "severity": "critical",
            "texts": ["The mode of n1 is exclusive.", "shared", "exclusive"],
            "evidence": ["/sys/x"],
            "details": [],
            "waiver": None,
        }
    ]
    assert found[("n1", "RDMA-OCA-012")][0]["waiver"] == ["being moved", "net team", "2026-04-01"]
    assert found[("n1", "RDMA-NODE-017")][0]["details"] == [
        ["rdma0", "pass", "", "", ""],
        ["rdma1", "warn", "too small", "4220", "1500"],
    ]
    rails = page_of(small()).data("data-rails")
    assert rails["networks"] == ["net"]
    assert rails["nodes"][1][1] == [1, 2, 3, "10.225.1.20", "10.225.9.9", "10.209.1.20", 2]
    assert rails["nodes"][1][0][4] == 0, "0 stands for: the address that was derived"


@given(documents())
def test_any_document(document: ResultDocument) -> None:
    page = check_data(document)
    nodes = {finding.node for finding in document.findings}
    ids = {finding.check for finding in document.findings}
    if len({flat(node) for node in nodes}) < len(nodes) or len({flat(check) for check in ids}) < len(ids):
        return  # two hostile names look alike once they are harmless, so they cannot be told apart here
    wanted: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for finding in document.findings:
        key = (flat(finding.node), flat(finding.check))
        wanted.setdefault(key, []).append((verdict(finding), flat(finding.message)))
    got = {
        key: sorted([(one["verdict"], flat(one["texts"][0])) for one in found])
        for key, found in told(page).items()
    }
    assert got == {key: sorted(found) for key, found in wanted.items()}


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_wherever_it_stands(text: str) -> None:
    check_data(drenched(text))


@pytest.mark.parametrize("text", HOSTILE)
def test_the_source_holds_no_tag_that_a_node_sent(text: str) -> None:
    source = "".join(html.chunks(drenched(text)))
    for name in ("data-head", "data-findings", "data-rails"):
        start = source.index('id="%s">' % name) + len('id="%s">' % name)
        block = source[start : source.index("</script>", start)]
        assert not re.search(r"[<>&\u2028\u2029]", block)
        assert block.isascii()


def test_equal_results_are_stored_once() -> None:
    findings = [Finding("c", "gpu-%03d" % n, "fail", message="gpu-%03d is wrong" % n) for n in range(50)]
    data = page_of(ResultDocument("now", findings=tuple(findings))).data("data-findings")
    assert len(data["records"]) == 1
    assert "\x01 is wrong" in data["strings"]


def test_parts_of_results_that_pass_are_left_out() -> None:
    document = small()
    assert page_of(document).data("data-findings")["records"]
    records = [row for row in page_of(document).data("data-findings")["records"] if row[0] in "ps"]
    assert records
    assert all(row[6] == [] for row in records)


def test_a_large_fleet_stays_small_and_linear() -> None:
    small_size = len("".join(html.chunks(make(100, 50)))) - len(SCRIPT) - len(STYLE)
    large_size = len("".join(html.chunks(make(400, 50)))) - len(SCRIPT) - len(STYLE)
    assert large_size < 4.4 * small_size
    assert large_size < 1_000_000


@pytest.mark.parametrize(
    ("docs", "shown"),
    [
        ("", ""),
        ("https://docs.example/rdma", "https://docs.example/rdma/"),
        ("../docs/", "../docs/"),
        ("docs", "docs/"),
        ("http://x/", "http://x/"),
    ],
)
def test_docs_address(docs: str, shown: str) -> None:
    assert page_of(small(), docs).data("data-head")["docs"] == shown


@pytest.mark.parametrize(
    "docs",
    [
        "javascript:alert(1)",
        "JavaScript:alert(1)",
        " javascript:x",
        "java\tscript:x",
        "data:text/html,x",
        "a b",
    ],
)
def test_docs_addresses_that_are_no_page_are_refused(docs: str) -> None:
    with pytest.raises(RdmaError, match="http, https or a relative path") as caught:
        "".join(html.chunks(small(), docs))
    assert caught.value.code == "docs_address_refused"


def test_a_node_without_a_row_or_a_result_is_there() -> None:
    document = ResultDocument("now", nodes=(NodeRow("quiet"),), findings=(Finding("c", "other", "pass"),))
    head = page_of(document).data("data-head")
    assert [(node[0], node[1]) for node in head["nodes"]] == [("quiet", "u"), ("other", "p")]
    assert head["places"] == [".", "p"]
