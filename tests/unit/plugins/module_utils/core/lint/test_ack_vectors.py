# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The ACK vectors through the core, and the honesty of their adapter: what is not judged is counted."""

from __future__ import annotations

import copy
import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

VECTORS = Path(__file__).resolve().parents[5] / "vectors"
sys.path.insert(0, str(VECTORS))

import run  # noqa: E402
from compare import NotYetError, UnjudgeableError  # noqa: E402
from run import ack  # noqa: E402

FILE = VECTORS / "ack_cases.json"
DOCUMENT = json.loads(FILE.read_text())
CASES = [case for case in DOCUMENT["cases"] if ack.kind_of(case) in ack.KINDS]
LATER = Counter(ack.kind_of(case) for case in DOCUMENT["cases"]) - Counter(map(ack.kind_of, CASES))


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_a_case_gives_what_it_expects(case: dict[str, Any]) -> None:
    assert ack.judge(DOCUMENT, case) == []


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_another_expectation_is_a_difference(case: dict[str, Any]) -> None:
    other = copy.deepcopy(case)
    other["expect"]["more"] = True
    assert ack.judge(DOCUMENT, other)


def test_each_finding_counts() -> None:
    """A case with a finding less is a difference, so none can be lost among the others."""
    for case in CASES:
        for position in range(len(case["expect"].get("findings", []))):
            other = copy.deepcopy(case)
            del other["expect"]["findings"][position]
            assert ack.judge(DOCUMENT, other), case["name"]


def test_every_code_of_the_file_is_met() -> None:
    codes = {finding["rule"] for case in CASES for finding in case["expect"].get("findings", [])}
    assert codes == set(DOCUMENT["rules"]["workload-lint"])


def test_the_whole_file_tells_what_is_not_supported_yet(capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is passed over in silence: categories by count, and an exit code that is not that of a success."""
    code = run.main([str(FILE)])
    captured = capsys.readouterr()
    assert captured.out == "%d passed, 0 failed\n" % len(CASES)
    assert code == (2 if LATER else 0)
    for name, count in LATER.items():
        assert "%s %d" % (name, count) in captured.err


def test_chosen_categories_pass(capsys: pytest.CaptureFixture[str]) -> None:
    assert run.main([str(FILE), "--kinds", "quantity,workload-lint"]) == 0
    assert capsys.readouterr().out == "71 passed, 0 failed\n"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda case: case.pop("name"), "has no name"),
        (lambda case: case.pop("category"), "no category"),
        (lambda case: case.pop("expect"), "no expectation"),
        (lambda case: case["input"].pop("quantity"), "lacks quantity"),
        (lambda case: case.update(category="weather"), "not one of the file"),
    ],
)
def test_a_malformed_case_is_not_judged(change: Any, reason: str) -> None:
    case = copy.deepcopy(next(case for case in CASES if ack.kind_of(case) == "quantity"))
    change(case)
    with pytest.raises(UnjudgeableError, match=reason):
        ack.judge(DOCUMENT, case)


def test_a_category_without_a_function_is_not_yet_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(ack.KINDS, "quantity")
    with pytest.raises(NotYetError, match="quantity"):
        ack.judge(DOCUMENT, next(case for case in CASES if ack.kind_of(case) == "quantity"))
