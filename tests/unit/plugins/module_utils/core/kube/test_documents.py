# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Manifests: values as kubectl reads them, lines of every path, texts that are refused."""

from __future__ import annotations

import json
import sys
import time

import pytest
import yaml
from hypothesis import given, settings, strategies

from ansible_collections.rdma.k8s.plugins.module_utils.core.errors import RdmaError
from ansible_collections.rdma.k8s.plugins.module_utils.core.kube import json_reader, yaml_reader
from ansible_collections.rdma.k8s.plugins.module_utils.core.kube.documents import (
    Directive,
    Document,
    live,
    parse,
)
from ansible_collections.rdma.k8s.plugins.module_utils.core.kube.read_text import Duplicate, TextError

POD = """\
# a comment
---
apiVersion: v1
kind: Pod
metadata:
  name: one
spec:
  containers:
    - name: main
      env:
        - {name: A, value: "1"}
        - name: B
          value: |
            many
            lines
"""

# What kubectl v1.37.2 makes of these scalars, read with
# `kubectl annotate --local -f FILE -o json q=1` from the data of a ConfigMap.
SCALARS = {
    "y": True,
    "0777": 511,
    "1_000": 1000,
    "1e3": 1000,
    "2020-01-01": "2020-01-01",
    "1:30": "1:30",
    "0o17": 15,
    "08": 8,
    "off": False,
    "0x1F": 31,
    "+5": 5,
    ".5": 0.5,
    "0b11": 3,
    "~": None,
    "1.": 1,
    "!!str 5": "5",
    "0x_1F": 31,
    "_1": "_1",
    "1__0": 10,
    "-0x10": -16,
    "12e03": 12000,
    "0.10": 0.1,
    '"y"': "y",
    "'08'": "08",
}
KEYS = {"n": "false", "0x10": "16", "1.5": "1.5", "yes": "true", "2020-01-01": "2020-01-01", '"n"': "n"}


@pytest.fixture(params=["C", "Python"])
def _either_parser(request, monkeypatch):
    if request.param == "Python":
        monkeypatch.delattr(yaml, "CSafeLoader", raising=False)
    elif not yaml.__with_libyaml__:
        pytest.fail("PyYAML was built without libyaml here, so its parser cannot be tested")


def refusal(text: str) -> RdmaError:
    with pytest.raises(RdmaError) as caught:
        parse(text, "file.yml")
    return caught.value


@pytest.mark.usefixtures("_either_parser")
def test_lines():
    (document,) = parse(POD, "pod.yml")
    assert document.content["spec"]["containers"][0]["env"][1] == {"name": "B", "value": "many\nlines\n"}
    assert (document.source, document.line) == ("pod.yml", 3)
    env = ("spec", "containers", 0, "env")
    expected = {
        (): 3,
        ("kind",): 4,
        ("spec",): 7,
        ("spec", "containers", 0): 9,
        env: 10,
        (*env, 0): 11,
        (*env, 0, "value"): 11,
        (*env, 1, "value"): 13,
        ("spec", "containers", 0, "resources", "limits"): 9,
        ("status", "phase"): 3,
    }
    assert {path: document.line_of(path) for path in expected} == expected


def test_the_same_lines_from_json():
    pretty = json.dumps(parse(POD, "-")[0].content, indent=2)
    (document,) = parse("\n\n" + pretty, "-")
    assert document.content == parse(POD, "-")[0].content
    assert document.line == 3
    numbered = pretty.split("\n")
    for path in (("kind",), ("spec", "containers", 0, "env", 1, "value"), ("metadata", "name")):
        line = document.line_of(path)
        assert numbered[line - 3].strip().startswith('"%s":' % path[-1])
    assert (
        document.line_of(("spec", "containers", 0, "env", 1))
        == document.line_of(("spec", "containers", 0, "env", 1, "name")) - 1
    )


@pytest.mark.usefixtures("_either_parser")
@pytest.mark.parametrize(("text", "value"), SCALARS.items())
def test_scalars_are_read_as_kubectl_reads_them(text, value):
    (document,) = parse("a: %s\n" % text, "-")
    found = document.content["a"]
    assert found == value
    assert isinstance(found, bool) == isinstance(value, bool)
    assert (found is None) == (value is None)


def test_a_number_that_does_not_fit_64_bits():
    assert parse("a: 18446744073709551615\n", "-")[0].content["a"] == 2**64 - 1
    assert isinstance(parse("a: 18446744073709551616\n", "-")[0].content["a"], float)
    assert isinstance(parse("a: 1%s\n" % ("0" * 5000), "-")[0].content["a"], (float, int))


@pytest.mark.parametrize(("text", "key"), KEYS.items())
def test_keys_are_read_as_kubectl_reads_them(text, key):
    assert parse("%s: v\n" % text, "-")[0].content == {key: "v"}


def test_aliases_and_merge_keys():
    text = "base: &base {a: 1, b: 2}\none:\n  <<: *base\n  b: 3\ntwo: {<<: [*base, {c: 5, a: 9}]}\nthree: *base\n"
    (document,) = parse(text, "-")
    assert document.content["one"] == {"a": 1, "b": 3}
    assert document.content["two"] == {"a": 1, "b": 2, "c": 5}
    assert document.content["three"] == {"a": 1, "b": 2}
    assert document.line_of(("one", "a")) == 3  # where it is merged in
    assert document.line_of(("one", "b")) == 4
    assert document.line_of(("three", "a")) == 6
    assert parse("a: 1\n'<<': 2\n", "-")[0].content == {"a": 1, "<<": 2}


def test_several_merge_keys_and_anchors_of_keys():
    text = "a: &a {x: 1}\nb: &b {z: 2}\nc:\n  <<: *a\n  <<: *b\n&k d: *k\ne: !!float 5\n"
    (document,) = parse(text, "-")
    assert document.content["c"] == {"x": 1, "z": 2}
    assert document.content["d"] == "d"
    assert isinstance(document.content["e"], float)


@pytest.mark.parametrize("text", ['{"a": NaN}', '{"a": -Infinity}', '{"a": 1} x', "[" * 100000])
def test_what_is_no_json(text):
    with pytest.raises(TextError) as caught:
        json_reader.values(text)
    assert caught.value.line == 1


def test_lines_of_json_can_be_counted():
    (document,) = parse('{"a": {"b": [1]}}', "-")
    assert len(document.lines) == 3


def test_several_documents_and_empty_ones():
    text = "---\n# nothing\n---\nkind: A\n---\n---\nkind: B\n...\n---\n- 1\n"
    found = parse(text, "-")
    assert [(document.content, document.line) for document in found] == [
        ({"kind": "A"}, 4),
        ({"kind": "B"}, 7),
        ([1], 10),
    ]
    assert parse("", "-") == parse("# nothing\n", "-") == []
    assert [d.content for d in parse('{"kind": "A"}\n{"kind": "B"}', "-")] == [{"kind": "A"}, {"kind": "B"}]
    assert parse("\ufeffkind: A\n", "-")[0].content == {"kind": "A"}


def test_lists_are_unfolded():
    text = POD.replace("# a comment\n---\n", "")
    indented = "".join(["    " + line for line in text.splitlines(keepends=True)])
    (first, second) = parse(
        "kind: List\nitems:\n  -\n%s  - {kind: List, items: [{kind: A}]}\n" % indented, "f"
    )
    assert first.content["kind"] == "Pod"
    assert first.line == 4
    assert first.line_of(("metadata", "name")) == 7
    assert first.lines[("kind",)] == 5
    assert len(first.lines) == len(list(first.lines)) > 10
    assert second.content == {"kind": "A"}
    assert second.line == 17


def test_a_list_of_one_kind_names_it_once():
    found = live([{"apiVersion": "v1", "kind": "PodList", "items": [{"metadata": {}}, {"kind": "X"}]}])
    assert [document.content for document in found] == [
        {"apiVersion": "v1", "kind": "Pod", "metadata": {}},
        {"kind": "X"},
    ]
    assert [(document.source, document.line, document.line_of(("metadata",))) for document in found] == [
        ("cluster", 0, 0)
    ] * 2


def test_lists_in_lists_without_end():
    nested: dict = {"kind": "A"}
    for _level in range(12):
        nested = {"kind": "List", "items": [nested]}
    assert "nested deeper" in refusal(json.dumps(nested)).message


@pytest.mark.parametrize("text", ["a:\n  k: 1\n  b: 2\n  k: 3\n", '{"a": {"k": 1,\n\n"b": 2,\n "k": 3}}'])
def test_duplicate_keys(text):
    (document,) = parse(text, "-")
    assert document.content == {"a": {"k": 3, "b": 2}}
    first = 2 if text[0] == "a" else 1
    assert list(document.duplicates) == [Duplicate(("a", "k"), first, 4)]


def test_duplicate_keys_of_a_list_entry():
    (_first, second) = parse("kind: List\nitems: [{kind: A}, {kind: B, k: 1, k: 2}]\n", "-")
    assert [duplicate.path for duplicate in second.duplicates] == [("k",)]
    assert not _first.duplicates


@pytest.mark.parametrize(
    ("text", "line", "part"),
    [
        ("a:\n  b: 1\n c: 2\n", 3, "the text cannot be read"),
        ("a: [1\nb: 2\n", 2, "did not find expected"),
        (
            "a: !!python/object/apply:os.system [x]\n",
            1,
            "the tag !!python/object/apply:os.system is not allowed",
        ),
        ("a: !!python/name:os.system ''\n", 1, "is not allowed"),
        ("x: 1\na: !vault secret\n", 2, "the tag !vault is not allowed"),
        ("a: !!binary aGk=\n", 1, "the tag !!binary is not allowed"),
        ("a: !!int x\n", 1, "the tag !!int is not allowed here"),
        ("a: &a [*a]\n", 1, "is inside its own anchor"),
        ("a: *b\n", 1, "has no anchor before it"),
        ("k: &a b\n*a : c\n", 2, "an alias cannot be a key"),
        ("? [a]\n: b\n", 1, "a key is no text"),
        ("~: b\n", 1, "a key is empty or null"),
        ("a: {<<: 5}\n", 1, "takes mappings only"),
        ("x:\na: .nan\n", 2, ".nan is no number of JSON"),
        ("a: -.inf\n", 1, "is no number of JSON"),
        ("a: \x01\n", 0, "the character U+0001 is not allowed"),
        ("a: b\nb: \ud800\n", 2, "surrogate"),
        ("a: " + "[" * 300 + "]" * 300, 1, "nested deeper than 200 levels"),
        ("[" * 3000, 1, ""),
        ('{"a":' * 250 + "1" + "}" * 250, 1, "nested deeper than 200 levels"),
        ('{"a": 1} x', 1, ""),
    ],
)
def test_refused(text, line, part):
    error = refusal(text)
    assert error.code == "manifest_malformed"
    assert error.details == {"source": "file.yml", "line": line}
    assert error.message.startswith("file.yml, line %d: " % line if line else "file.yml: ")
    assert part in error.message
    assert "\n" not in str(error)


def test_tabs_are_named():
    error = refusal("a:\n  b: 1\n\tc: 2\n")
    assert error.details["line"] == 3
    assert error.hint == "Indent with spaces: YAML allows no tabs there."
    assert parse('{\n\t"a":\t1\n}', "-")[0].content == {"a": 1}  # JSON allows them


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("kind: Job\nspec:\n  parallelism: {{ .Values.nodes }}\n", 3),
        ("{{- if .Values.enabled }}\nkind: Job\n{{- end }}\n", 1),
        ('kind: Job\nmetadata:\n  labels:\n    {{- include "x" . | nindent 4 }}\n', 4),
        ("kind: Job\n{{/* nothing */}}\n", 2),
        ("{{ template }}", 1),
        ("- a: |\n    x\n  b: {{ c }}\n", 3),
        ("a: |\n  x\n{{- if .Values.b }}\n", 3),
        ("kind: Job\n{%- if x %}\na: {{ b }}\n", 3),
    ],
)
def test_templates_are_refused_by_name(text, line):
    error = refusal(text)
    assert error.code == "manifest_template"
    assert error.details["line"] == line
    assert "helm template" in error.hint
    assert error.message.startswith("file.yml, line %d: this is a template" % line)


def test_braces_in_a_quoted_text_are_no_template():
    assert parse('a: "{{ $labels.pod }}"\n', "-")[0].content == {"a": "{{ $labels.pod }}"}


@pytest.mark.parametrize(
    "braces",
    [
        'a: "{{ $labels.pod }}"',
        "a: ['{{ x }}']",
        'a: "\\"{{ x }}"',
        "a: 1 # {{ x }}",
        "# {{ x }}",
        "a: |\n  {{ x }}\n\n  {{ y }}",
        "- a: >-\n    {{ x }}",
        "- |\n  {{ x }}",
    ],
)
def test_braces_in_a_text_make_no_template_of_a_broken_manifest(braces):
    error = refusal("%s\nb: 1\n c: 2\n" % braces)
    assert error.code == "manifest_malformed"
    assert refusal("%s\nb: {{ x }}\n c: 2\n" % braces).details["line"] == braces.count("\n") + 2


def test_braces_in_the_broken_line_are_a_template():
    error = refusal('b: 1\na: "{{ include "x" . }}"\n')
    assert (error.code, error.details["line"]) == ("manifest_template", 2)


@pytest.mark.parametrize("text", ["{{ ", "{{", "{{ '", '"{{ \\', "' {{ ", "{{ \n", '"{{\n', "|\n{{"])
def test_braces_without_end_take_no_longer(text):
    began = time.process_time()
    assert refusal("a: [\n" + text * 60_000 + " x").code.startswith("manifest_")
    assert time.process_time() - began < 30


def test_alias_bombs_are_bounded():
    bomb = "a0: &a0 [%s]\n" % ",".join(["x"] * 10)
    for level in range(1, 12):
        bomb += "a%d: &a%d [%s]\n" % (level, level, ",".join(["*a%d" % (level - 1)] * 10))
    error = refusal(bomb)
    assert "aliases add more than 200000 values" in error.message
    many = "a: &a {k: v}\n" + "".join(["k%d: *a\n" % number for number in range(1000)])
    assert len(parse(many, "-")[0].content) == 1001


def test_directives():
    text = "# rdma-k8s: waive A one\n\n# more\nkind: A # rdma-k8s:waive B two\nb: 'x # rdma-k8s'\n#rdma-k8s: waive C"
    (document,) = parse(text, "-")
    assert document.directives == (
        Directive(1, 4, "waive A one"),
        Directive(4, 4, "waive B two"),
        Directive(6, 7, "waive C"),
    )
    assert Document({}, "-").line_of(("a",)) == 0


@pytest.mark.usefixtures("_either_parser")
def test_what_looks_like_a_directive_in_a_text():
    text = """é: | # rdma-k8s: at the block
  # rdma-k8s: in the block

  z
"😀 # rdma-k8s: a": "# rdma-k8s: b" # rdma-k8s: behind quotes
c: >-
   # rdma-k8s: in the block
# rdma-k8s: below the block
d: 'x
  # rdma-k8s: in quotes

  ' # rdma-k8s: behind both
"""
    for ends in ("\n", "\r\n"):
        (document,) = parse(text.replace("\n", ends), "-")
        assert document.directives == (
            Directive(1, 1, "at the block"),
            Directive(5, 5, "behind quotes"),
            Directive(8, 9, "below the block"),
            Directive(12, 12, "behind both"),
        )
    assert parse('{"kind": "# rdma-k8s: x"}', "-")[0].directives == ()


def test_blanks_and_comments_without_end_take_no_longer():
    blanks = " " * 200_000
    text = "# rdma-k8s: a%sb%s\n" % (blanks, blanks) + "# rdma-k8s: c\n" * 20_000 + "kind: A\n"
    began = time.process_time()
    (document,) = parse(text, "-")
    assert time.process_time() - began < 30
    assert document.directives[0].text == "a%sb" % blanks
    assert {directive.applies_to for directive in document.directives} == {20_002}


PLAIN = strategies.recursive(
    strategies.none()
    | strategies.booleans()
    | strategies.integers(-(2**63), 2**63)
    | strategies.text(max_size=8),
    lambda inner: (
        strategies.lists(inner, max_size=3)
        | strategies.dictionaries(strategies.text(max_size=6), inner, max_size=3)
    ),
    max_leaves=12,
)


@settings(max_examples=150, deadline=None)
@given(PLAIN, strategies.sampled_from([None, 1]))
def test_any_json_is_read_back_with_a_line_for_every_path(value, indent):
    text = json.dumps({"v": value}, indent=indent)
    (found,) = json_reader.values(text)
    assert found.value == {"v": value}
    assert list(found.duplicates) == []
    assert set(found.lines) == set(_paths({"v": value}, ())) - {()}
    lines = text.split("\n")
    for path, line in found.lines.items():
        if isinstance(path[-1], str):
            assert json.dumps(path[-1]) in lines[line - 1]


@settings(max_examples=150, deadline=None)
@given(PLAIN)
def test_any_yaml_is_read_back(value):
    text = yaml.safe_dump({"v": value}, default_style='"', width=sys.maxsize)  # with tags
    (found,) = yaml_reader.values(text)
    assert found.value == {"v": value}
    assert set(found.lines) == set(_paths({"v": value}, ())) - {()}


def _paths(value, path):
    yield path
    if isinstance(value, dict):
        for key, entry in value.items():
            yield from _paths(entry, (*path, key))
    elif isinstance(value, list):
        for position, entry in enumerate(value):
            yield from _paths(entry, (*path, position))
