# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where variables are set, and how far they go; what only the running pod knows has no value."""

from __future__ import annotations

from typing import Any, Optional

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.core.kube.documents import Document
from ansible_collections.rdma.k8s.plugins.module_utils.core.lint.environment import exported
from ansible_collections.rdma.k8s.plugins.module_utils.core.lint.model import Context
from ansible_collections.rdma.k8s.plugins.module_utils.core.lint.networks import parse
from ansible_collections.rdma.k8s.plugins.module_utils.core.lint.pod import Pod, pods

Found = tuple[str, Optional[str], str]


def pod(container: dict[str, Any]) -> Pod:
    content = {"kind": "Pod", "spec": {"containers": [{"name": "c", **container}]}}
    document = Document(content, "x.yml")
    (found,) = pods(document, Context(documents=(document,)))
    return found


WORDS: list[tuple[list[Any], list[Found]]] = [
    (["-x", "A=1"], [("A", "1", "export")]),
    (["A=1", "x"], [("A", "1", "command")]),
    (["x", "A=1"], [("A", "1", "command")]),
    (["mpirun -x A=1 -x B==c,d x"], [("A", "1", "export"), ("B", "=c,d", "export")]),
    (["mpirun \\\n  -x A=1 \\\n  x"], [("A", "1", "export")]),
    (["export A=1; export B='2 3'"], [("A", "1", "command"), ("B", "2 3", "command")]),
    (['A="x y" B=z run'], [("A", "x y", "command"), ("B", "z", "command")]),
    (["A=$B"], [("A", None, "command")]),
    (["A=`hostname`"], [("A", None, "command")]),
    (["A=${B:-3}"], [("A", None, "command")]),
    (["# A=1\nx # B=2\nC=3"], [("C", "3", "command")]),
    (["echo $A=1 ${B=2} lower=3 XA-B=4"], [("B", "4", "command")]),
    (["mpirun -genv A 1 -env B $C x"], [("A", "1", "export"), ("B", None, "export")]),
    (["-genv", "A", "1", "-env", "B", "$C"], [("A", "1", "export"), ("B", None, "export")]),
    (["-genv", "A"], []),
    (["-other", "A", "1"], []),
    (["-genv", 3, "x"], []),
    ([3, None, {"A": "=1"}], []),
]


@pytest.mark.parametrize(("words", "expected"), WORDS, ids=[repr(case[0])[:40] for case in WORDS])
@pytest.mark.parametrize("key", ["command", "args"])
def test_words_of_a_command(key: str, words: list[Any], expected: list[Found]) -> None:
    found = [setting for _container, setting in pod({key: words}).settings]
    assert [(setting.name, setting.value, setting.how) for setting in found] == expected
    for setting in found:
        word = words[setting.path[-1]]
        assert setting.path[:-1] == ("spec", "containers", 0, key)
        assert setting.name in word


@pytest.mark.parametrize(
    ("entry", "value"),
    [
        ({"name": "A", "value": "1"}, "1"),
        ({"name": "A"}, ""),
        ({"name": "A", "value": 1}, None),
        ({"name": "A", "value": "$(B)"}, None),
        ({"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}, None),
        ({"name": "A", "valueFrom": {"configMapKeyRef": {"name": "gone", "key": "a"}}}, None),
    ],
)
def test_an_entry_of_the_environment(entry: dict[str, Any], value: Optional[str]) -> None:
    ((_container, found),) = pod({"env": [entry]}).settings
    assert (found.name, found.value, found.how) == ("A", value, "env")


def test_where_a_value_comes_from() -> None:
    sources = [
        {"name": "A", "valueFrom": {"configMapKeyRef": {"name": "gone", "key": "a"}}},
        {"name": "B", "valueFrom": {"fieldRef": {}}},
    ]
    found = [setting.origin for _container, setting in pod({"env": sources}).settings]
    assert found == ["ConfigMap gone", "its source"]


@pytest.mark.parametrize(
    ("command", "sent"),
    [
        (["mpirun", "-x", "A", "x"], ["A"]),
        (["mpirun -x A x"], ["A"]),
        (["mpirun", "-x", "AB", "x"], []),
        (["mpirun", "x"], []),
        (["mpirun # -x A"], []),
        (["mpirun", "-np", "2", "-x", "A=2"], ["A", "A"]),
    ],
)
def test_what_a_launcher_sends(command: list[str], sent: list[str]) -> None:
    """A name without a value is sent with the value that the launcher has."""
    launcher = pod({"command": command, "env": [{"name": "A", "value": "1"}]})
    assert [setting.name for _pod, setting in exported((launcher,))] == sent


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("a", [("", "a", "")]),
        ("n/a@if0, b", [("n", "a", "if0"), ("", "b", "")]),
        ('[{"name": "a", "namespace": "n", "interface": "if0"}]', [("n", "a", "if0")]),
        ('{"name": "a"}', [("", "a", "")]),
    ],
)
def test_networks_of_an_annotation(value: str, expected: list[tuple[str, str, str]]) -> None:
    assert parse(value) == expected


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (["a"], "not a text"),
        ("a b", "not the name of a network"),
        ("a,,b", "not the name of a network"),
        ("a@b/c", "not the name of a network"),
        ('[{"name": 1}]', "has no name"),
        ("[1]", "has no name"),
        ("[", "not JSON"),
    ],
)
def test_an_annotation_that_cannot_be_read(value: Any, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        parse(value)
