# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an add-on needs (A40), how configurations compare (A32), and what a schema refuses (A38)."""

from __future__ import annotations

import json
from typing import Any, Optional

import pytest
from hypothesis import given, strategies as st

from ansible_collections.rdma.k8s.plugins.module_utils.core.ack import addon, answers
from ansible_collections.rdma.k8s.plugins.module_utils.core.ack.addon import Instance, Plan, Wish
from ansible_collections.rdma.k8s.plugins.module_utils.core.errors import RdmaError
from ansible_collections.rdma.k8s.plugins.module_utils.core.kube.objects import merged

ABSENT = Wish("x", present=False)
ANY = Wish("x")
NEWER = Wish("x", version="2")
SETTING = Wish("x", config={"a": True})
BUSY = ("initial", "updating", "upgrading", "", "new-state")

TABLE: list[tuple[Optional[str], Wish, tuple[str, ...], tuple[str, ...]]] = [
    (None, ABSENT, (), ()),
    ("deleted", ABSENT, (), ()),
    ("deleting", ABSENT, ("wait",), ()),
    *[(state, ABSENT, ("wait", "uninstall"), ()) for state in BUSY],
    ("active", ABSENT, ("uninstall",), ()),
    ("unhealthy", ABSENT, ("uninstall",), ()),
    (None, ANY, ("install",), ()),
    ("deleted", NEWER, ("install",), ()),
    ("deleting", NEWER, ("wait", "install"), ()),
    ("active", ANY, (), ()),
    ("active", NEWER, ("upgrade",), ()),
    ("active", SETTING, ("modify-config",), ()),
    ("active", Wish("x", version="1", config={}), (), ()),
    ("active", Wish("x", version="2", config={"a": True}), ("upgrade",), ()),
    ("unhealthy", ANY, (), ("addon-unhealthy",)),
    ("unhealthy", NEWER, ("upgrade",), ("addon-unhealthy",)),
    ("unhealthy", SETTING, ("modify-config",), ("addon-unhealthy",)),
    *[(state, ANY, ("wait",), ()) for state in BUSY],
    *[(state, NEWER, ("wait", "upgrade"), ()) for state in BUSY],
    *[(state, SETTING, ("wait", "modify-config"), ()) for state in BUSY],
]


@pytest.mark.parametrize(("state", "wish", "actions", "warnings"), TABLE)
def test_the_table(
    state: Optional[str], wish: Wish, actions: tuple[str, ...], warnings: tuple[str, ...]
) -> None:
    """A40, row by row; A27: states that nobody knows are waited for."""
    found = None if state is None else Instance("1", state, {"a": "false"})
    plan = addon.plan(found, wish, ["2"])
    assert (plan.actions, plan.warnings, plan.refusal) == (actions, warnings, None)
    assert plan.changed is bool(set(actions) - {"wait"})


@pytest.mark.parametrize(
    ("offered", "sentence"),
    [([], "(the catalogue offers none)"), (["2.1", "v2"], "(2.1, v2)"), (["2 ", "02"], "(2 , 02)")],
)
def test_a_version_that_is_not_offered_is_refused(offered: list[str], sentence: str) -> None:
    """A31, A41: exactly the text, no order of versions is guessed."""
    plan = addon.plan(Instance("1", "active", {}), NEWER, offered)
    assert (plan.actions, plan.changed) == ((), False)
    assert plan.refusal is not None
    assert (plan.refusal.code, sentence in plan.refusal.message) == ("addon_version_not_upgradable", True)
    assert plan.refusal.details["upgradable"] == offered


@pytest.mark.parametrize(
    ("state", "wish", "needed"),
    [
        (None, NEWER, False),
        ("deleting", NEWER, False),
        ("active", NEWER, True),
        ("upgrading", NEWER, True),
        ("active", Wish("x", version="1"), False),
        ("active", SETTING, False),
        ("active", Wish("x", present=False, version="2"), False),
    ],
)
def test_when_the_catalogue_decides(state: Optional[str], wish: Wish, needed: bool) -> None:
    found = None if state is None else Instance("1", state, {})
    assert addon.needs_offer(found, wish) is needed


@pytest.mark.parametrize(
    ("left", "right", "equal"),
    [
        (True, "true", True),
        ("True", True, True),
        (False, "false", True),
        (True, 1, False),
        (True, "1", False),
        ("true", "True", False),
        (5, "5", True),
        (5, 5.0, True),
        (0.5, "0.5", True),
        (float("inf"), "inf", True),
        (5, "05", False),
        (None, None, True),
        (None, "", False),
        (None, "None", False),
        ("a", "a", True),
        ([1, True], ["1", "true"], True),
        ([1], [1, 2], False),
        ([1], 1, False),
        ({"a": True}, {"a": "true"}, True),
        ({"a": 1}, {"a": 1, "b": 2}, False),
        ({}, [], False),
    ],
)
def test_values_that_mean_the_same(left: Any, right: Any, equal: bool) -> None:
    """A32."""
    pairs = [(left, right), (right, left)]
    assert [addon.same(*pair) for pair in pairs] == [equal, equal]


def test_only_wished_keys_count() -> None:
    """A32: at every depth of objects; a list is one value."""
    found = {"a": "true", "b": {"c": 1, "d": 2}, "l": [{"x": 1, "y": 2}], "more": 1}
    assert addon.differences({"a": True, "b": {"c": "1"}}, found) == []
    wished = {"a": False, "b": {"c": 2, "e": 1}, "l": [{"x": 1}], "new": 1}
    assert addon.differences(wished, found) == ["a", "b.c", "b.e", "l", "new"]
    assert addon.differences({"b": 1, "gone": None}, found) == ["b"]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)
CONFIG = st.dictionaries(st.text(max_size=3), JSON, max_size=4)


@given(CONFIG, CONFIG)
def test_what_is_sent_has_no_difference(found: dict[str, Any], wished: dict[str, Any]) -> None:
    """So that a second run changes nothing, whatever the settings are; what is not wished is kept."""
    before = json.dumps([found, wished])
    sent = json.loads(addon.encoded(merged(found, wished)))
    assert addon.differences(wished, sent) == []
    assert all(same == found[key] for key, same in sent.items() if key not in wished)
    assert set(sent) == set(found) | set(wished)
    assert json.dumps([found, wished]) == before


SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "mode": {"enum": ["shared", "exclusive"]},
        "flag": {"enum": [True]},
        "limits": {"properties": {"cpu": {}, "memory": {}}},
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        "free": {"type": "object"},
        "closed": {"additionalProperties": False},
        "tuned": {"$ref": "#/definitions/tuned"},
        "lost": {"$ref": "#/definitions/nothing"},
        "odd": True,
    },
    "definitions": {"tuned": {"properties": {"depth": {}}}, "loop": {"$ref": "#/definitions/loop"}},
    "allOf": [{"properties": {"extra": {"type": "integer"}}}],
}


def problem(config: dict[str, Any], schema: Any = None) -> Optional[RdmaError]:
    rules = addon.schema(json.dumps(SCHEMA if schema is None else schema))
    assert rules is not None
    try:
        addon.require_known("x", "1", config, rules)
    except RdmaError as error:
        return error
    return None


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"name": "a", "mode": "shared", "flag": "true", "extra": 5},
        {"limits": {"cpu": 1}, "labels": {"any": "x"}, "free": {"any": {"thing": 1}}},
        {"tuned": {"depth": 1}, "lost": {"any": 1}, "odd": {"any": 1}, "closed": {}},
    ],
)
def test_known_keys(config: dict[str, Any]) -> None:
    assert problem(config) is None


@pytest.mark.parametrize(
    ("config", "unknown"),
    [
        ({"Name": "a"}, ["Name"]),
        ({"limits": {"gpu": 1}}, ["limits.gpu"]),
        ({"tuned": {"deep": 1}, "x": 1}, ["tuned.deep", "x"]),
        ({"closed": {"a": 1}}, ["closed.a"]),
    ],
)
def test_unknown_keys(config: dict[str, Any], unknown: list[str]) -> None:
    """A38: silence of a schema about further keys is no permission."""
    error = problem(config)
    assert error is not None
    assert (error.code, error.details["unknown"]) == ("addon_config_unknown_keys", unknown)
    assert ", ".join(unknown) in error.message


@pytest.mark.parametrize(
    ("config", "allowed"), [({"mode": "sole"}, ['"shared"', '"exclusive"']), ({"flag": False}, ["true"])]
)
def test_values_that_are_not_listed(config: dict[str, Any], allowed: list[str]) -> None:
    error = problem(config)
    assert error is not None
    assert (error.code, error.details["allowed"]) == ("addon_config_refused", allowed)


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"a": {}}, "additionalProperties": True},
        {"properties": {"a": {}}, "additionalProperties": {"type": "string"}},
        {"properties": {"a": {}}, "patternProperties": {"^x": {}}},
    ],
)
def test_a_schema_that_takes_further_keys(schema: dict[str, Any]) -> None:
    assert problem({"b": 1}, schema) is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "not json",
        "[]",
        "5",
        "{}",
        '{"type": "object"}',
        '{"properties": {}}',
        '{"properties": []}',
        '{"$ref": "#/definitions/loop", "definitions": {"loop": {"$ref": "#/definitions/loop"}}}',
        '{"allOf": [5]}',
        "[" * 100_000,
    ],
)
def test_texts_that_are_no_schema(text: str) -> None:
    assert addon.schema(text) is None


def test_a_schema_without_keys_that_is_closed() -> None:
    error = problem({"a": 1}, {"additionalProperties": False})
    assert error is not None
    assert "it has no keys" in error.message


def test_a_schema_that_combines_itself() -> None:
    loop: dict[str, Any] = {"properties": {"a": {}}, "allOf": [{"$ref": "#"}] * 3, "anyOf": {"$ref": "#"}}
    assert problem({"a": 1}, loop) is None
    error = problem({"b": 1}, loop)
    assert error is not None


def test_keys_of_another_version_are_left_out() -> None:
    found = {"name": "a", "old": 1}
    assert addon.without_unknown(found, SCHEMA) == {"name": "a"}
    assert addon.without_unknown(found, None) == found
    assert addon.without_unknown(found, {**SCHEMA, "additionalProperties": True}) == found


def test_secrets_of_a_configuration() -> None:
    """A49."""
    config = {
        "a": "b",
        "registry": {"password": "p1", "users": [{"token": "t1"}]},
        "apiKey": 42,
        "secret": "",
    }
    assert sorted(addon.secrets(config)) == ["42", "p1", "t1"]


# What the service says


def test_an_instance() -> None:
    """A21: the settings are JSON in a text."""
    body = {"version": "1.1.2", "state": "Active", "config": '{"a": {"b": 1}}', "name": "x"}
    assert answers.instance(body) == Instance("1.1.2", "active", {"a": {"b": 1}})
    for config in (None, "", " ", {}):
        assert answers.instance({**body, "config": config}).config == {}
    assert answers.instance({"state": "initial"}).version == ""


@pytest.mark.parametrize(
    ("read", "body", "where"),
    [
        (answers.instance, None, "addon must be an object"),
        (answers.instance, "<html>", "addon must be an object, found '<html>'"),
        (answers.instance, {"version": "1"}, "addon.state must be a text"),
        (answers.instance, {"state": "active", "config": "[]"}, "addon.config must be an object"),
        (answers.instance, {"state": "active", "config": "a=b"}, "is not JSON"),
        (answers.instance, {"state": "active", "version": 1.1}, "addon.version must be a text"),
        (answers.offer, {"version": "1", "newer_versions": {}}, "offer.newer_versions must be a list"),
        (answers.offer, {"version": "1", "newer_versions": [{"upgradable": "true"}]}, "[0].upgradable"),
        (answers.offer, {"version": "1", "newer_versions": [{"upgradable": True}]}, "[0].version"),
        (answers.offer, {}, "offer.version"),
        (answers.task, {"task_id": "T"}, "task.state"),
        (answers.tasks, {"tasks": [5]}, "tasks.tasks[0] must be an object"),
        (answers.tasks, {"tasks": [], "page_info": {"total_count": "3"}}, "total_count must be an integer"),
        (answers.task_id, {"task_id": 5}, "the answer.task_id must be a text"),
        (answers.cluster, {}, "cluster.state"),
        (answers.pools, {"nodepools": [{}]}, "pools.nodepools[0].nodepool_info.nodepool_id"),
        (answers.ip_version, {"ComputingIpVersion": "IPv5"}, "must be IPv4 or IPv6, found 'IPv5'"),
    ],
)
def test_answers_that_are_something_else(read: Any, body: Any, where: str) -> None:
    with pytest.raises(RdmaError) as caught:
        read(body)
    assert (caught.value.code, where in caught.value.message) == ("alibaba_answer_malformed", True), (
        caught.value
    )


def test_an_offer() -> None:
    """A31: only what is marked as upgradable is a target."""
    newer = [{"version": "2", "upgradable": True}, {"version": "3", "upgradable": False}, {"version": "4"}]
    found = answers.offer({"version": "1", "config_schema": "{}", "newer_versions": newer})
    assert found == addon.Offer("1", "{}", ("2",))
    assert answers.offer({"version": "1", "newer_versions": None}).upgradable == ()


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"error": {"code": "A", "message": "b\nc"}, "stages": [{"message": "no"}]}, "A: b c"),
        ({"error": {"message": "b"}}, "b"),
        ({"error": None, "stages": [{"message": "first"}, {"message": "last"}, {}]}, "last"),
        ({"events": [{"message": "event"}]}, "event"),
        ({}, ""),
        ({"error": {"message": "x" * 900}}, "x" * 400),
    ],
)
def test_why_a_task_failed(more: dict[str, Any], reason: str) -> None:
    task = answers.task({"task_id": "T", "state": "Failed", **more})
    assert (task.failed, task.done, task.reason) == (True, False, reason)


@pytest.mark.parametrize(("state", "done", "failed"), [("success", True, False), ("fail", False, True)])
def test_states_of_tasks(state: str, done: bool, failed: bool) -> None:
    """A30; anything else goes on."""
    task = answers.task({"task_id": "T", "state": state})
    assert (task.done, task.failed) == (done, failed)
    other = answers.task({"task_id": "T", "state": "paused"})
    assert (other.done, other.failed) == (False, False)


def test_a_plan_of_nothing() -> None:
    assert Plan().changed is False
