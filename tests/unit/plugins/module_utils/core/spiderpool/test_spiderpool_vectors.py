# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The Spiderpool vectors through the core, and the honesty of their adapter: what is not judged is counted."""

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
import spiderpool  # noqa: E402
from compare import NotYetError, UnjudgeableError  # noqa: E402

FILE = VECTORS / "spiderpool_cases.json"
DOCUMENT = json.loads(FILE.read_text())
CASES = [case for case in DOCUMENT["cases"] if spiderpool.kind_of(case) in spiderpool.KINDS]
LATER = Counter(spiderpool.kind_of(case) for case in DOCUMENT["cases"]) - Counter(
    map(spiderpool.kind_of, CASES)
)


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_a_case_gives_what_it_expects(case: dict[str, Any]) -> None:
    assert spiderpool.judge(DOCUMENT, case) == []


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_another_expectation_is_a_difference(case: dict[str, Any]) -> None:
    other = copy.deepcopy(case)
    other["expect"]["more"] = True
    assert spiderpool.judge(DOCUMENT, other)


def test_every_kind_is_one_of_the_file() -> None:
    assert set(spiderpool.KINDS) <= set(DOCUMENT["kinds"])


def test_the_whole_file_tells_what_is_not_supported_yet(capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is passed over in silence: kinds by count, and an exit code that is not that of a success."""
    code = run.main([str(FILE)])
    captured = capsys.readouterr()
    assert captured.out == "%d passed, 0 failed\n" % len(CASES)
    assert code == (2 if LATER else 0)
    for name, count in LATER.items():
        assert "%s %d" % (name, count) in captured.err


def test_chosen_kinds_pass(capsys: pytest.CaptureFixture[str]) -> None:
    assert run.main([str(FILE), "--kinds", "netns-plan,sysfs-port"]) == 0
    assert capsys.readouterr().out == "10 passed, 0 failed\n"


def test_a_kind_that_no_case_has_ends_with_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert run.main([str(FILE), "--kinds", "netns-plan,weather"]) == 2
    assert "has no case of kind weather" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda case: case.pop("name"), "has no name"),
        (lambda case: case["input"].pop("kind"), "no kind"),
        (lambda case: case.pop("expect"), "no expectation"),
        (lambda case: case["input"].pop("text"), "lacks text"),
        (lambda case: case["input"].update(kind="weather"), "not one of the file"),
    ],
)
def test_a_malformed_case_is_not_judged(change: Any, reason: str) -> None:
    case = copy.deepcopy(next(case for case in CASES if spiderpool.kind_of(case) == "netns-sysfs"))
    change(case)
    with pytest.raises(UnjudgeableError, match=reason):
        spiderpool.judge(DOCUMENT, case)


def test_a_kind_without_a_function_is_not_yet_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(spiderpool.KINDS, "netns-sysfs")
    with pytest.raises(NotYetError, match="netns-sysfs"):
        spiderpool.judge(DOCUMENT, next(case for case in CASES if spiderpool.kind_of(case) == "netns-sysfs"))
