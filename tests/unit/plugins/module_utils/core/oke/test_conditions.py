# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Conditions in Python, each on values that meet it and on values that do not."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.core.oke import cel, conditions
from ansible_collections.rdma.k8s.plugins.module_utils.core.oke.conditions import (
    FLAG,
    INT8U,
    INT32,
    INT64,
    INTEGER,
    LIST,
    OBJECT,
    TEXT,
    Below,
    Condition,
    Each,
    Given,
    Is,
    IsNot,
    Matches,
    Mismatches,
    Missing,
    NoAddress,
    NoPrefix,
    OtherFamily,
    Outside,
    Set,
    UnknownKey,
    Unless,
    WrongType,
    all_of,
    any_of,
)

A, AB = ("a",), ("a", "b")
NOTHING: list[Any] = [{}, {"a": None}, None, 5, [], "a"]

CASES: list[tuple[Condition, list[Any], list[Any]]] = [
    (Given(A), [{"a": 0}, {"a": False}, {"a": {}}, {"a": "x"}, {"a": [1]}], [*NOTHING, {"a": ""}, {"a": []}]),
    (Set(A), [{"a": 0}, {"a": {}}, {"a": ""}, {"a": []}], NOTHING),
    (Missing(A), [*NOTHING, {"a": ""}], [{"a": 0}, {"a": []}, {"a": "x"}]),
    (WrongType(A, TEXT), [{"a": 1}, {"a": []}], [*NOTHING, {"a": "x"}]),
    (WrongType(A, FLAG), [{"a": 1}, {"a": "true"}], [*NOTHING, {"a": False}]),
    (WrongType(A, INTEGER), [{"a": True}, {"a": 1.0}, {"a": 2**63}], [*NOTHING, {"a": -5}]),
    (WrongType(A, INTEGER, INT8U), [{"a": 256}, {"a": -1}], [{"a": 0}, {"a": 255}]),
    (WrongType(A, LIST), [{"a": {}}], [*NOTHING, {"a": []}]),
    (WrongType(A, OBJECT), [{"a": []}], [*NOTHING, {"a": {}}]),
    (WrongType((), OBJECT), [[], 1], [{}, None]),
    (UnknownKey(A, ("b",)), [{"a": {"b": 1, "c": 2}}], [*NOTHING, {"a": {}}, {"a": {"b": 1}}, {"a": [1]}]),
    (Is(A, ("x", "y")), [{"a": "y"}], [*NOTHING, {"a": "z"}, {"a": 1}]),
    (Is(A, (True,)), [{"a": True}], [*NOTHING, {"a": 1}, {"a": False}]),
    (Is(A, (0, 1)), [{"a": 1}], [*NOTHING, {"a": True}, {"a": 1.0}]),
    (IsNot(A, ("", "x")), [{"a": "z"}], [*NOTHING, {"a": "x"}, {"a": ""}, {"a": 1}]),
    (IsNot(A, (0, 8)), [{"a": 1}], [*NOTHING, {"a": 8}, {"a": True}, {"a": "1"}]),
    (Outside(A, 68), [{"a": 67}, {"a": -1}], [*NOTHING, {"a": 68}, {"a": True}, {"a": "1"}]),
    (Outside(A, 0, 2), [{"a": 3}, {"a": -1}], [*NOTHING, {"a": 0}, {"a": 2}]),
    (Matches(A, "^x"), [{"a": "xy"}], [*NOTHING, {"a": "yx"}, {"a": ""}]),
    (Mismatches(A, "^x"), [{"a": "yx"}], [*NOTHING, {"a": "xy"}, {"a": ""}, {"a": 1}]),
    (Mismatches(A, "^x$"), [{"a": "x\n"}, {"a": "x\nx"}], [{"a": "x"}]),
    (
        NoAddress(A),
        [{"a": "x"}, {"a": "10.0.0.1/8"}, {"a": "fe80::1%eth0"}, {"a": "10.0.0.01"}],
        [*NOTHING, {"a": ""}, {"a": "10.0.0.1"}, {"a": "fd00::1"}, {"a": "::FFFF:10.0.0.1"}, {"a": 1}],
    ),
    (
        NoPrefix(A),
        [{"a": "x"}, {"a": "10.0.0.1"}, {"a": "10.0.0.1/33"}, {"a": "10.0.0.1/08"}, {"a": "fe80::1%e/64"}],
        [*NOTHING, {"a": ""}, {"a": "10.0.0.1/8"}, {"a": "fd00::1/64"}, {"a": "::ffff:10.0.0.1/128"}],
    ),
    (
        OtherFamily(A, ("b",)),
        [{"a": "10.0.0.1", "b": "fd00::/8"}, {"a": "fd00::1/64", "b": "10.0.0.0/8"}],
        [*NOTHING, {"a": "10.0.0.1", "b": "10.0.0.0/8"}, {"a": "x", "b": "fd00::/8"}, {"a": "10.0.0.1"}],
    ),
    (Each(A, Is((), (1,))), [{"a": [0, 1]}, {"a": {"k": 1}}], [*NOTHING, {"a": []}, {"a": [0]}, {"a": 1}]),
    (Below(A, Is(("b",), (1,))), [{"a": {"b": 1}}], [*NOTHING, {"a": {"b": 2}}, {"a": 1}]),
    (all_of(Set(A), Set(("b",))), [{"a": 1, "b": 1}], [*NOTHING, {"a": 1}, {"b": 1}]),
    (any_of(Set(A), Set(("b",))), [{"a": 1}, {"b": 1}], [*NOTHING, {"c": 1}]),
    (Unless(Set(AB)), [*NOTHING, {"a": {}}], [{"a": {"b": 0}}]),
]


@pytest.mark.parametrize(
    ("condition", "met", "unmet"),
    CASES,
    ids=["%s %d" % (c[0].__class__.__name__, n) for n, c in enumerate(CASES)],
)
def test_what_meets_a_condition(condition: Condition, met: list[Any], unmet: list[Any]) -> None:
    assert [value for value in met if not conditions.holds(condition, value)] == []
    assert [value for value in unmet if conditions.holds(condition, value)] == []


@pytest.mark.parametrize(
    ("condition", "value", "place"),
    [
        (Is(AB, (1,)), {"a": {"b": 1}}, AB),
        (UnknownKey(A, ("b",)), {"a": {"b": 1, "c": 2}}, ("a", "c")),
        (Each(A, Outside(("n",), 0)), {"a": [{"n": 1}, {"n": -1}]}, ("a", 1, "n")),
        (Below(A, Is(("b",), (1,))), {"a": {"b": 1}}, AB),
        (any_of(Set(("x",)), Set(A)), {"a": 1}, A),
        (all_of(Unless(Set(("x",))), Set(A)), {"a": 1}, A),
        (OtherFamily(A, ("b",)), {"a": "10.0.0.1", "b": "fd00::1"}, A),
    ],
)
def test_the_place_is_where_the_condition_is_met(condition: Condition, value: Any, place: Any) -> None:
    assert conditions.find(condition, value) == place


@pytest.mark.parametrize(("condition", "_met", "_unmet"), CASES)
def test_cel_looks_before_it_steps_down(condition: Condition, _met: Any, _unmet: Any) -> None:
    """Whether it means the same is for a real API server to tell; here, that each step has its guards."""
    text = cel.render(condition, "p")
    assert text.count("(") == text.count(")")
    if 'p["a"]' in text:
        assert text.index('type(p) == map && "a" in p') < text.index('p["a"]')
        assert " != null" in text


EXPRESSIONS: list[tuple[Condition, str]] = [
    (Given(A), '{a} && p["a"] != "" && p["a"] != []'),
    (Set(A), "{a} && true"),
    (Missing(A), '!({a}) || p["a"] == ""'),
    (WrongType(A, TEXT), '{a} && type(p["a"]) != string'),
    (WrongType(A, INTEGER), '{a} && type(p["a"]) != int'),
    (WrongType(A, INTEGER, INT8U), '{a} && (type(p["a"]) != int || p["a"] < 0 || p["a"] > 255)'),
    (UnknownKey(A, ("b", "c")), '{a} && type(p["a"]) == map && !p["a"].all(k, k in ["b", "c"])'),
    (Is(A, (True,)), '{a} && type(p["a"]) == bool && p["a"] in [true]'),
    (IsNot(A, (0, 8)), '{a} && type(p["a"]) == int && !(p["a"] in [0, 8])'),
    (Outside(A, 68), '{a} && type(p["a"]) == int && p["a"] < 68'),
    (Outside(A, 0, 2), '{a} && type(p["a"]) == int && (p["a"] < 0 || p["a"] > 2)'),
    (Matches(A, "^x"), '{a} && type(p["a"]) == string && p["a"].matches("^x")'),
    (Mismatches(A, "x$"), '{a} && type(p["a"]) == string && p["a"] != "" && !p["a"].matches("x$")'),
    (
        NoAddress(A),
        (
            '{a} && type(p["a"]) == string && p["a"] != "" && !p["a"].matches("^::[fF]{4}:[0-9]") && '
            '!isIP(p["a"])'
        ),
    ),
    (
        NoPrefix(A),
        (
            '{a} && type(p["a"]) == string && p["a"] != "" && !p["a"].matches("^::[fF]{4}:[0-9]") && '
            '!isCIDR(p["a"])'
        ),
    ),
    (Is((), ("x",)), 'p != null && type(p) == string && p in ["x"]'),
    (
        Each(A, Each(("b",), Is((), (1,)))),
        (
            '{a} && (type(p["a"]) == list ? p["a"].exists(e0, type(e0) == map && "b" in e0 && '
            'e0["b"] != null && (type(e0["b"]) == list ? e0["b"].exists(e1, e1 != null && type(e1) '
            '== int && e1 in [1]) : type(e0["b"]) == map && e0["b"].exists(k1, '
            '[e0["b"][k1]].exists(e1, e1 != null && type(e1) == int && e1 in [1])))) : type(p["a"]) '
            '== map && p["a"].exists(k0, [p["a"][k0]].exists(e0, type(e0) == map && "b" in e0 && '
            'e0["b"] != null && (type(e0["b"]) == list ? e0["b"].exists(e1, e1 != null && type(e1) '
            '== int && e1 in [1]) : type(e0["b"]) == map && e0["b"].exists(k1, '
            '[e0["b"][k1]].exists(e1, e1 != null && type(e1) == int && e1 in [1]))))))'
        ),
    ),
    (
        Below(A, Below(("b",), Set(("c",)))),
        (
            '{a} && [p["a"]].exists(e0, type(e0) == map && "b" in e0 && e0["b"] != null && '
            '[e0["b"]].exists(e1, type(e1) == map && "c" in e1 && e1["c"] != null && true))'
        ),
    ),
    (Unless(Set(A)), "!({a} && true)"),
    (
        any_of(all_of(Set(A), Set(("b",))), Set(("c",))),
        (
            '(({a} && true) && (type(p) == map && "b" in p && p["b"] != null && true)) || (type(p) '
            '== map && "c" in p && p["c"] != null && true)'
        ),
    ),
]


@pytest.mark.parametrize(("condition", "expected"), EXPRESSIONS, ids=[entry[1] for entry in EXPRESSIONS])
def test_the_expression_of_a_condition(condition: Condition, expected: str) -> None:
    """Expressions that were tried in a real API server (tests/cluster); `{a}` tells that there is a value."""
    there = 'type(p) == map && "a" in p && p["a"] != null'
    assert cel.render(condition, "p").replace(there, "{a}") == expected


def test_the_integers_of_the_driver() -> None:
    """F106, F107: the borders of 8, 32 and 64 bits."""
    assert INT8U == (0, 255)
    assert INT32 == (-2147483648, 2147483647)
    assert INT64 == (-9223372036854775808, 9223372036854775807)


def test_texts_in_cel_are_quoted() -> None:
    assert cel.literal('a"b\\c\n') == '"a\\"b\\\\c\\n"'
    assert cel.literal([True, 1, "x"]) == '[true, 1, "x"]'
