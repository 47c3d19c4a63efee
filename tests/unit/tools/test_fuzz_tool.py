# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The fuzzer finds what it is there for: another exception, a slow answer, a broken promise; and plays a case again."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.core.errors import RdmaError
from ansible_collections.rdma.k8s.tests.support import fuzzing as fuzz
from ansible_collections.rdma.k8s.tests.support.fuzzing import Target


def fragile(document: Any) -> None:
    """Reads one field without looking at its type."""
    document["name"].strip()


def typed(_document: Any) -> None:
    raise RdmaError("x", "A typed error.")


def test_another_exception_is_found_and_can_be_played_again(tmp_path: Path) -> None:
    target = Target("fragile", lambda: [{"name": "x", "other": [1, 2]}], fragile)
    count, failed = fuzz.fuzz(target, 1, 0, tmp_path)
    assert count == fuzz.LEAST
    assert failed
    for number in failed:
        assert "Error" in fuzz.play(target, fuzz.case(target, 1, number))
        assert "Traceback" in (tmp_path / ("fragile-1-%d.txt" % number)).read_text()
    good = next(number for number in range(count) if number not in failed)
    assert fuzz.play(target, fuzz.case(target, 1, good)) == ""


def test_a_typed_error_is_an_answer(tmp_path: Path) -> None:
    assert fuzz.fuzz(Target("typed", lambda: [{"a": 1}], typed), 1, 0, tmp_path) == (fuzz.LEAST, [])


def test_a_slow_answer_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fuzz, "SLOW", -1.0)
    assert fuzz.play(Target("slow", lambda: [1], str), 1).startswith("took ")


@pytest.mark.parametrize("sample", ["a text of some length", b"some bytes", {"a": [1, {"b": "c"}]}, []])
def test_samples_stay_as_they_are(sample: Any) -> None:
    before = repr(sample)
    seen = {repr(fuzz.damaged(random.Random(number), sample)) for number in range(60)}
    assert repr(sample) == before
    assert len(seen) > 10


def test_every_target_has_samples_that_are_right() -> None:
    for target in fuzz.TARGETS:
        assert target.samples(), target.name
        for sample in target.samples():
            target.call(sample)
