# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The page of error codes has every code that the sources raise, and no other."""

from __future__ import annotations

import json
import re

import pytest

from .codes import of_files, of_sources
from .pages import ROOT, page

PAGE = "reference/error-codes.md"
_ENTRY = re.compile(
    r'^- <a id="([a-z0-9_]+)"></a>`([a-z0-9_]+)`: (.+?)(?=^- |^#|\Z)', re.MULTILINE | re.DOTALL
)
RAISED = of_files(
    sorted([*(ROOT / "plugins").rglob("*.py"), *(ROOT / "image/rdma_k8s_provider").glob("*.py")])
)


def told() -> list[tuple[str, str, str]]:
    return _ENTRY.findall(page(PAGE).text)


def test_every_code_of_the_sources_can_be_read() -> None:
    assert RAISED.unread == []


def test_the_page_has_every_code_and_no_other() -> None:
    codes = {code for _anchor, code, _text in told()}
    assert sorted(set(RAISED.found) - codes) == []
    assert sorted(codes - set(RAISED.found)) == []


def test_each_code_stands_once_with_a_sentence() -> None:
    codes = [code for _anchor, code, _text in told()]
    assert len(codes) == len(set(codes))
    assert [code for anchor, code, text in told() if anchor != code or len(text.split()) < 4] == []


def test_codes_have_one_form() -> None:
    assert [code for code in RAISED.found if not re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", code)] == []


def test_the_kinds_of_the_vectors_are_codes() -> None:
    document = json.loads((ROOT / "tests/vectors/oke_child_range.json").read_text(encoding="utf-8"))
    missing = sorted(set(document["schema"]["error_kinds"]) - set(RAISED.found))
    assert missing == []


SAMPLE = """
class Reader:
    def __init__(self, code):
        self.code = code
    def wrong(self):
        return RdmaError(self.code, "text")

def _refusal(code, text):
    return RdmaError(code, text)

def act(bad, error):
    if bad:
        raise _refusal("first_code", "text")
    raise RdmaError("second_code" if bad else "third_code", "text")

_A = Reader("fourth_code")

def again(error):
    raise RdmaError(error.code, "text")
"""


def test_codes_are_read_through_helpers() -> None:
    found = of_sources({"sample": SAMPLE})
    assert set(found.found) == {"first_code", "second_code", "third_code", "fourth_code"}
    assert found.unread == []


@pytest.mark.parametrize(
    "call", ['RdmaError("a" + name, "text")', "RdmaError(CODES[0], 'text')", "RdmaError()"]
)
def test_a_computed_code_is_reported(call: str) -> None:
    assert len(of_sources({"sample": "name = 1\nraise %s\n" % call}).unread) == 1
