# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The mutation run: which mutants it makes, and that it tells good tests from weak ones."""

from __future__ import annotations

import ast

import pytest

import mutation

SOURCE = '''
LIMIT = 16


def inside(value: "list[int]", low: int = 0) -> bool:
    """Tell."""
    if not value or low > 3:
        raise ValueError("none")
    return low <= value[0] < LIMIT
'''


def names() -> list[str]:
    return [mutant.name for mutant in mutation.mutants("x.py", SOURCE)]


@pytest.mark.parametrize(
    "name",
    [
        "x.py module: 16 -> 17",
        "x.py inside: 0 -> 1",
        "x.py inside: low > 3 -> low >= 3",
        "x.py inside: not value or low > 3 -> not value and low > 3",
        "x.py inside: not value -> value",
        "x.py inside: raise ValueError('none') -> pass",
        "x.py inside: low <= value[0] < LIMIT -> low < value[0] < LIMIT",
        "x.py inside: low <= value[0] < LIMIT -> low <= value[0] <= LIMIT",
        "x.py inside: return low <= value[0] < LIMIT -> return None",
    ],
)
def test_it_makes_the_mutant(name: str) -> None:
    assert name in names()


def test_names_are_unique_and_do_not_depend_on_the_line() -> None:
    assert len(set(names())) == len(names())
    assert [mutant.name for mutant in mutation.mutants("x.py", "\n\n" + SOURCE)] == names()


def test_each_mutant_differs_from_the_source_and_is_python() -> None:
    plain = ast.unparse(ast.parse(SOURCE))
    sources = [mutant.source for mutant in mutation.mutants("x.py", SOURCE)]
    assert plain not in sources
    for source in sources:
        compile(source, "x.py", "exec")


def test_annotations_and_documentation_stay() -> None:
    assert all(
        "Tell." in mutant.source and "list[int]" in mutant.source
        for mutant in mutation.mutants("x.py", SOURCE)
    )
