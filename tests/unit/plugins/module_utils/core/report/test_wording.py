# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Texts of reports: cleaning, natural order, folded node names."""

from __future__ import annotations

import re
from itertools import product

import pytest
from hypothesis import given, strategies as st

from ansible_collections.rdma.k8s.plugins.module_utils.core.report.wording import (
    HARMFUL,
    clean,
    count,
    flat,
    fold,
    natural,
)


def expand(folded: str) -> set[str]:
    """The names of a folded list, read independently of how it was made."""
    names = set()
    for part in re.findall(r"[^,\[\]]*(?:\[[^\]]*\][^,\[\]]*)*", folded):
        pieces = re.split(r"\[([^\]]*)\]", part)
        choices = []
        for number, piece in enumerate(pieces):
            if number % 2 == 0:
                choices.append([piece])
                continue
            values = []
            for run in piece.split(","):
                first, _unused, last = run.partition("-")
                last = last or first
                values += ["%0*d" % (len(first), value) for value in range(int(first), int(last) + 1)]
            choices.append(values)
        if part:
            names |= {"".join(choice) for choice in product(*choices)}
    return names


@pytest.mark.parametrize(
    ("names", "folded"),
    [
        ([], ""),
        (["gpu-7"], "gpu-7"),
        (["gpu-001", "gpu-002", "gpu-003", "gpu-007"], "gpu-[001-003,007]"),
        (["gpu-9", "gpu-10", "gpu-11"], "gpu-[9-11]"),
        (["gpu-009", "gpu-010"], "gpu-[009-010]"),
        (["n0", "n9", "n10"], "n[0,9-10]"),
        (["n1", "n01"], "n01,n1"),
        (["n08", "n9", "n10"], "n9,n[08,10]"),
        (["a1.zone", "a2.zone", "login"], "a[1-2].zone,login"),
        (["10.0.0.9", "10.0.0.10"], "10.0.0.[9-10]"),
        (["r1-n1", "r2-n1"], "r1-n1,r2-n1"),
        (["b", "a", "b"], "a,b"),
    ],
)
def test_fold(names: list[str], folded: str) -> None:
    assert fold(names) == folded


@given(
    st.lists(
        st.from_regex(r"[a-c]{0,2}[0-9]{1,4}(?:\.[a-b]{1,2})?|login|[a-b]{1,3}", fullmatch=True), max_size=40
    )
)
def test_fold_loses_nothing(names: list[str]) -> None:
    assert expand(fold(names)) == set(names)


def test_fold_is_short_for_a_large_fleet() -> None:
    assert fold(["gpu-%04d" % number for number in range(10000)]) == "gpu-[0000-9999]"


@given(st.lists(st.text(st.characters(exclude_categories=())), max_size=6))
def test_fold_takes_any_name(names: list[str]) -> None:
    assert isinstance(fold(names), str)


@given(st.text(st.characters(exclude_categories=())))
def test_clean_text_is_harmless_and_can_be_written(text: str) -> None:
    assert not HARMFUL.search(clean(text))
    assert not re.search(r"[\r\n\t]", flat(text))
    clean(text).encode("utf-8")
    flat(text).encode("utf-8")


@given(st.text(st.characters(categories=["L", "N", "P", "S"], exclude_characters="\u202e\ufeff")))
def test_ordinary_text_stays(text: str) -> None:
    assert clean(text) == text
    assert flat(text) == text


def test_line_breaks_stay_in_clean_text_and_become_spaces_in_flat_text() -> None:
    assert clean("a\r\n\tb\x1b") == "a\r\n\tb\ufffd"
    assert flat("a\r\n\tb\x1b") == "a b\ufffd"


def test_natural_order() -> None:
    names = ["n10", "n9", "n", "m100", "n9a", "10", "9", "n009"]
    assert sorted(names, key=natural) == ["9", "10", "m100", "n", "n009", "n9", "n9a", "n10"]


def test_count() -> None:
    assert [count(1, "node"), count(0, "node"), count(2, "node is", "nodes are")] == [
        "1 node",
        "0 nodes",
        "2 nodes are",
    ]
