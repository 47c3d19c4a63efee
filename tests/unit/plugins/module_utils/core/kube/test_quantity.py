# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Quantities by their written grammar; the cases of the ACK vectors run in test_ack_vectors (A58-A61)."""

from __future__ import annotations

from typing import Any, Optional

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.core.kube import quantity

CASES: list[tuple[Any, Optional[str]]] = [
    ("5.", "5"),
    (".5", "0.5"),
    ("-2k", "-2000"),
    ("1E", "1000000000000000000"),
    ("1E3", "1000"),
    ("1e-3", "0.001"),
    ("7n", "0.000000007"),
    ("3u", "0.000003"),
    ("2Ei", "2305843009213693952"),
    ("0.1Gi", "107374182.4"),
    (1000, "1000"),
    (0.5, "0.5"),
    (1e21, "1000000000000000000000"),
    ("1e", None),
    ("k", None),
    (".", None),
    ("-", None),
    ("1k\n", None),
    ("\u0661", None),
    ("1e999999999", None),
    ("1" * 65, None),
    ("8GB", None),
    (float("nan"), None),
    (False, None),
    (None, None),
    ([1], None),
]


@pytest.mark.parametrize(("value", "expected"), CASES, ids=[repr(case[0])[:20] for case in CASES])
def test_an_amount(value: Any, expected: Optional[str]) -> None:
    found = quantity.parse(value)
    assert (found if found is None else quantity.plain(found)) == expected


def test_amounts_are_exact() -> None:
    """Half of 2 to the 60th is whole, so the amount can be told by integers."""
    found = quantity.parse("123456789012345678901234567890.5Ei")
    assert found is not None
    assert int(found) == 246913578024691357802469135781 * 2**59


@pytest.mark.parametrize(
    ("value", "expected"), [("1k", 1000), ("1000m", 1), ("500m", None), ("-1", None), ("one", None), ("0", 0)]
)
def test_a_count_of_devices(value: str, expected: Optional[int]) -> None:
    assert quantity.whole(value) == expected
