# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The compact layout says the same as the readable one, is read without changing it, and is never read wrongly."""

from __future__ import annotations

import contextlib
import copy
import json
from dataclasses import dataclass
from typing import Any, Optional

import pytest
from hypothesis import given, settings, strategies as st

from ansible_collections.rdma.k8s.plugins.module_utils.core import codec
from ansible_collections.rdma.k8s.plugins.module_utils.core.errors import RdmaError
from ansible_collections.rdma.k8s.plugins.module_utils.core.snapshot import Arp, NodeSnapshot, Route, Rule


@dataclass(frozen=True)
class Leaf:
    number: int = codec.integer(1)
    text: str = codec.text("")
    routes: Optional[tuple[Route, ...]] = codec.rows(Route, None)


@dataclass(frozen=True)
class Branch:
    name: str = codec.text()
    flag: Optional[bool] = codec.boolean(None)
    words: tuple[str, ...] = codec.texts()
    leaves: Optional[tuple[Leaf, ...]] = codec.items(Leaf, None)


@dataclass(frozen=True)
class Tree:
    branches: tuple[Branch, ...] = codec.items(Branch)


WORDS = st.sampled_from(["", "a", "bb", "=", "{}", "rdma0", "10.224.0.0/12"])
ROUTES = st.builds(
    Route,
    st.sampled_from(["default", "10.224.0.0/12", "10.224.0.0"]),
    dev=st.sampled_from(["rdma0", "rdma1", "e"]),
    table=st.sampled_from([254, 100, 7]),
    src=st.sampled_from(["", "10.224.13.19"]),
    metric=st.integers(0, 3),
)
LEAVES = st.builds(
    Leaf,
    st.integers(-1, 5) | st.just(4096),
    WORDS,
    st.none() | st.lists(ROUTES, max_size=3).map(tuple),
)
BRANCHES = st.builds(
    Branch,
    WORDS,
    st.none() | st.booleans(),
    st.lists(WORDS, max_size=2).map(tuple),
    st.none() | st.lists(LEAVES, max_size=3).map(tuple),
)
TREES = st.builds(Tree, st.lists(BRANCHES, max_size=5).map(tuple))


@settings(deadline=None)
@given(TREES)
def test_both_layouts_are_read_back(tree: Tree) -> None:
    for compact in (False, True):
        document = json.loads(json.dumps(codec.encode(tree, compact)))
        before = copy.deepcopy(document)
        assert codec.decode(Tree, document) == tree
        assert document == before


def test_repeated_values_are_written_once() -> None:
    routes = (
        Route("10.224.0.0/12", "rdma0", src="10.224.13.19"),
        Route("10.224.0.0/12", "rdma1", src="10.224.45.19"),
    )
    tree = Tree(
        (
            Branch("first", words=("same",), leaves=(Leaf(4096, "same", routes), Leaf(4096, "other"))),
            Branch("second", words=("same",), leaves=(Leaf(4096, "other"),)),
        )
    )
    assert codec.encode(tree, True)["branches"] == {
        "columns": ["name", "words", ["leaves", ["number", "text", "routes"]]],
        "rows": [
            [
                "first",
                ["same"],
                [
                    [4096, "same", ["10.224.0.0/12 dev rdma0 src 10.224.13.19", "= = rdma1 = 10.224.45.19"]],
                    [{}, "other", None],
                ],
            ],
            ["second", {}, [[{}, {}, None]]],
        ],
    }


@pytest.mark.parametrize(
    "branches",
    [
        {"columns": ["name"], "rows": 1},
        {"columns": "name", "rows": []},
        {"columns": [1], "rows": [["x"]]},
        {"columns": [["name"]], "rows": [["x"]]},
        {"columns": ["name"], "rows": [["x", "y"]]},
        {"columns": ["name"], "rows": ["x"]},
        {"columns": ["name"], "rows": [[{}]]},
        {"columns": ["name", ["leaves", ["number"]]], "rows": [["x", [["y"]]]]},
        {"columns": ["name", ["leaves", ["number"]]], "rows": [["x", [7]]]},
        {"columns": ["name", ["leaves", [["number", [1]]]]], "rows": [["x", [[[[5]]]]]]},
        [{"name": "x", "leaves": [{"routes": ["= dev rdma0"]}]}],
        [{"name": "x", "leaves": [{"routes": ["default dev", "="]}]}],
    ],
)
def test_a_wrong_table_is_refused(branches: Any) -> None:
    with pytest.raises(RdmaError) as caught:
        codec.decode(Tree, {"branches": branches})
    assert caught.value.code == "document_malformed"


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=3)
    | st.sampled_from(["name", "leaves", "columns"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["columns", "rows", "name", "leaves"]), inner, max_size=3)
    ),
    max_leaves=12,
)


@settings(deadline=None)
@given(VALUES)
def test_garbage_is_refused_with_a_typed_error(value: Any) -> None:
    with contextlib.suppress(RdmaError):
        codec.decode(Tree, {"branches": value})


@pytest.mark.parametrize("compact", [False, True])
def test_a_word_that_looks_like_a_repetition_stays_itself(compact):
    """An interface can be called =, and a selector can hold such words."""
    rules = (Rule(1, "=", 5, "iif = oif =="), Rule(2, "=", 5, "iif = oif =="), Rule(3, "===", 5, "= ab"))
    snapshot = NodeSnapshot(
        "n", rules=rules, routes=(Route("10.0.0.0/8", "="), Route("10.0.0.0/8", "=", src="=="))
    )
    assert NodeSnapshot.from_dict(json.loads(json.dumps(snapshot.to_dict(compact)))) == snapshot


@pytest.mark.parametrize("text", ["1 2 0", "1  0 0", " 1 2 0", "1 2 0 0 ", "1\t2 2 0 0", "1 2 0 0\n", ""])
def test_arp_settings_are_four_words(text: str) -> None:
    """An empty word would come back as another one (F78)."""
    with pytest.raises(RdmaError) as error:
        Arp.parse(text)
    assert error.value.code == "document_malformed"


@pytest.mark.parametrize("text", ["1 2 0 0", "- - - -", "1 - _ 0"])
def test_arp_settings_come_back(text: str) -> None:
    assert str(Arp.parse(text)) == text
