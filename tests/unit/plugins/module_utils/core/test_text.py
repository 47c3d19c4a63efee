# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Small readings of text."""

from __future__ import annotations

from typing import Optional

import pytest
from hypothesis import given, strategies as st

from ansible_collections.rdma.k8s.plugins.module_utils.core.text import int32, trim


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1", 1),
        ("+1", 1),
        ("-0", 0),
        ("02", 2),
        ("-2147483648", -(2**31)),
        ("2147483647", 2**31 - 1),
        ("2147483648", None),
        ("0" * 5000 + "8", 8),
        ("1" * 5000, None),
        ("", None),
        ("+", None),
        ("1_0", None),
        ("1.0", None),
        (" 1", None),
        ("1\n", None),
        ("\u0661", None),
        ("\uff11", None),
    ],
)
def test_integers_of_32_bits(text: str, expected: Optional[int]) -> None:
    """F78: int() takes more."""
    assert int32(text) == expected


@given(st.integers(-(2**31), 2**31 - 1))
def test_every_integer_of_32_bits_is_read(value: int) -> None:
    """F78."""
    assert int32(str(value)) == value


def test_white_space_around_a_text() -> None:
    """F78, F83, F93: Unicode white space, but no control characters beyond it."""
    assert trim(" \t\r\n\x0b\x0c\x85\xa0\u1680\u2000\u200a\u2028\u202f\u205f\u3000a b\n") == "a b"
    assert trim("\x1ca\x1f") == "\x1ca\x1f"
    assert trim("\u200ba") == "\u200ba"
