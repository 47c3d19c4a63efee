# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Large JSON is read by the faster library where there is one; what is read does not depend on it."""

from __future__ import annotations

import json
import sys

import pytest
from hypothesis import given, strategies as st

from ansible_collections.rdma.k8s.plugins.module_utils import deps

PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=20,
)


@given(PLAIN)
def test_what_is_read_is_what_was_written(value: object) -> None:
    assert deps.json_reader()(json.dumps(value).encode("utf-8", "surrogatepass")) == value


def test_without_the_library_the_standard_one_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "orjson", None)
    assert deps.json_reader() is json.loads


@pytest.mark.parametrize("text", [b"", b"{", b"<html>", b"\xff", b"{'a': 1}"])
@pytest.mark.parametrize("with_library", [True, False])
def test_what_is_no_json_is_a_value_error(
    text: bytes, with_library: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not with_library:
        monkeypatch.setitem(sys.modules, "orjson", None)
    with pytest.raises(ValueError, match=r".*"):
        deps.json_reader()(text)
