# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""JSON of others, and small readings of text."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, strategies as st

from ansible_collections.rdma.k8s.plugins.module_utils.core.errors import RdmaError
from ansible_collections.rdma.k8s.plugins.module_utils.core.json_text import Reader, loads

READ = Reader("thing_malformed", "the thing", "Correct it.", retryable=True)


@pytest.mark.parametrize(
    "text", ["NaN", "[Infinity]", '{"a": -Infinity}', "", "{", "[1,]", "'a'", "01", "\ufeff{}", "{} {}"]
)
def test_what_is_no_json_is_refused(text: str) -> None:
    """F138: also what json.loads takes."""
    with pytest.raises(ValueError, match=r".+"):
        loads(text)
    with pytest.raises(RdmaError, match="the thing is not JSON") as caught:
        READ.json(text)
    assert (caught.value.code, caught.value.retryable) == ("thing_malformed", True)


def test_deep_nesting_is_refused() -> None:
    """An attacker's file must not end in a traceback."""
    with pytest.raises(ValueError, match="nested"):
        loads("[" * 200000)


def test_numbers_of_any_length_are_read() -> None:
    """F138: a number that nothing uses does no harm, and the longest that is used stays exact."""
    assert loads('{"x": %s, "planes": 9223372036854775807}' % ("9" * 5000))["planes"] == 2**63 - 1
    assert loads("-" + "1" * 39) == -int("1" * 39)
    with pytest.raises(RdmaError):
        READ.integer(loads("1" * 5000), "x")


@pytest.mark.parametrize(
    ("method", "good", "empty", "bad"),
    [
        ("members", {"a": 1}, {}, ["a"]),
        ("entries", [1], [], "a"),
        ("text", "a", "", 1),
        ("flag", False, None, 0),
        ("integer", -(2**63), None, True),
    ],
)
def test_a_reader_checks_types(method: str, good: Any, empty: Any, bad: Any) -> None:
    """F52, F66, F69: null is absent, everything else must have the right type."""
    read = getattr(READ, method)
    assert read(good, "x") == good
    assert read(None, "x") == empty
    with pytest.raises(RdmaError, match=r"^the thing: x\.y must be .*, found ") as caught:
        read(bad, "x.y")
    assert caught.value.code == "thing_malformed"
    assert caught.value.details["where"] == "x.y"


@pytest.mark.parametrize("value", [1.0, "1", 2**63, -(2**63) - 1, [1]])
def test_what_is_no_integer_of_64_bits(value: Any) -> None:
    """F66: 1.0 and 2^63 are wrong types."""
    with pytest.raises(RdmaError, match="64 bits"):
        READ.integer(value, "x")


def test_the_content_must_be_a_text() -> None:
    """F52."""
    with pytest.raises(RdmaError, match="the content must be a text"):
        READ.json(b"{}")


@given(st.text())
def test_any_text_gives_a_value_or_one_error(text: str) -> None:
    """F52."""
    try:
        value = loads(text)
    except ValueError:
        return
    assert json.loads(text) == value
