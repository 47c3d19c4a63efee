# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Manifests that we write."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st

from ansible_collections.rdma.k8s.plugins.module_utils.core.kube import documents, manifest
from ansible_collections.rdma.k8s.tests.support.outcome import error_of

TEXTS = st.text(st.characters(blacklist_categories=("Cs", "Cc")), max_size=20) | st.sampled_from(
    """true|1|1e3|0x1|null|~|=|a: b|- a|# a|a\nb|a\n| a|2026-01-01|08|0o7|1_000|+1|-08|.inf|-.1e2|1:30|y|N|on|<<|*a|1.
    """.strip().split("|")
)
VALUES = st.recursive(
    TEXTS | st.integers(-(2**31), 2**31) | st.booleans(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=10,
)


def test_the_same_bytes() -> None:
    """Keys keep their order, lists are indented, long texts stay on a line, several lines are a block."""
    document = {
        "kind": "B",
        "apiVersion": "v1",
        "metadata": {"name": "nic"},
        "spec": {"list": [{"expression": "a &&\nb"}, "x" * 200], "empty": []},
    }
    assert manifest.text([document, {"kind": "C"}], ["Made by us.", "one\ntwo"]) == (
        "---\n# Made by us.\n# one\n# two\nkind: B\napiVersion: v1\nmetadata:\n  name: nic\nspec:\n  list:\n"
        "    - expression: |-\n        a &&\n        b\n    - %s\n  empty: []\n---\nkind: C\n" % ("x" * 200)
    )


def test_no_anchors() -> None:
    """An object that stands twice is written twice: each document can be read alone."""
    shared = {"a": ["b"]}
    assert manifest.text([{"one": shared, "two": shared}]).count("- b") == 2


@given(st.dictionaries(TEXTS, VALUES, max_size=4))
def test_what_is_read_again(content: dict[str, Any]) -> None:
    """What we write is read by our own reader as what it was."""
    content = {"apiVersion": "v1", "kind": "A", "content": content}
    (found,) = documents.parse(manifest.text([content], ["a comment"]), "x.yaml")
    assert found.content == content


@pytest.mark.parametrize(
    ("name", "label"),
    [
        *((name, True) for name in ("a", "a-1", "1", "a" * 63)),
        *((name, False) for name in ("a.b-c.1", "a" * 64, "a" * 253, "a." * 126 + "a")),
    ],
)
def test_good_names(name: str, label: bool) -> None:
    """Labels and subdomains."""
    assert manifest.require_name(name, "A thing", label) == name


@pytest.mark.parametrize(
    ("name", "label"),
    [
        *((name, True) for name in ("", "A", "a_b", "-a", "a-", "a.b", "a" * 64, None, 1, "a\n", "ä")),
        *((name, False) for name in ("", ".", "a..b", "a.", ".a", "a_b", "a." * 127 + "a", "a" * 254)),
    ],
)
def test_bad_names(name: Any, label: bool) -> None:
    """Each is refused, and the message names the thing."""
    error = error_of(manifest.require_name, name, "A thing", label)
    assert error.code == "name_malformed"
    assert error.message.startswith("A thing must have a name of at most %d" % (63 if label else 253))


@pytest.mark.parametrize(
    ("value", "prefix", "label"),
    [("mlx5_0", "", "mlx5-0"), ("0000:0c:00.0", "pci-", "pci-0000-0c-00-0"), ("X" * 70, "", "x" * 63)],
)
def test_labels(value: str, prefix: str, label: str) -> None:
    """The form of F100 for PCI addresses."""
    assert manifest.label_of(value, prefix) == label
