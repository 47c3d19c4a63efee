# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files of the Oracle Cloud Agent: present, absent, unreadable, empty, and what is not kept of them (F51-F58)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from ansible_collections.rdma.k8s.plugins.module_utils.core.snapshot import Oca, ReadError
from ansible_collections.rdma.k8s.plugins.module_utils.host import oca
from ansible_collections.rdma.k8s.plugins.module_utils.host.files import Root


def put(root: Path, path: str, text: str) -> None:
    place = root / path[1:]
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text)


def test_no_agent(tmp_path: Path) -> None:
    assert oca.read(Root(str(tmp_path))) == Oca("absent", "", "", "")


def test_a_directory_that_cannot_be_read_is_not_an_absent_one(tmp_path: Path) -> None:
    put(tmp_path, oca.DIRECTORY, "a file in the place of the directory")
    root = Root(str(tmp_path))
    assert oca.read(root) == Oca("unreadable", None, None, "")
    assert root.errors == [ReadError(oca.DIRECTORY, "not a directory")]


def test_a_file_without_content_is_there(tmp_path: Path) -> None:
    put(tmp_path, oca.NETWORK, "")
    found = oca.read(Root(str(tmp_path)))
    assert found.directory == "present"
    assert (found.rdma_network, found.rdma_features_enable) == ("\n", "")
    assert found.modified is not None


def test_secrets_and_identifiers_are_not_kept(tmp_path: Path) -> None:
    document = {"api_key": "hunter2", "host": "ocid1.instance.oc1.phx.%s" % ("a" * 60), "rdma-network": []}
    put(tmp_path, oca.NETWORK, json.dumps(document))
    text = oca.read(Root(str(tmp_path))).rdma_network or ""
    assert "hunter2" not in text
    assert "a" * 20 not in text
    assert json.loads(text)["rdma-network"] == []


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("name: x\nversion: 1.52.0-23\n", "1.52.0-23"),
        ("version: '1.9'\n", "1.9"),
        ("version:\n", None),
        ("  version: 1\n", None),
        ("version: 1 2\n", None),
    ],
)
def test_the_version_of_the_snap(text: str, version: str, tmp_path: Path) -> None:
    put(tmp_path, "/snap/oracle-cloud-agent/95/meta/snap.yaml", text)
    (tmp_path / "snap/oracle-cloud-agent/current").symlink_to("95")
    assert oca.read(Root(str(tmp_path))).agent_version == version


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)


@settings(deadline=None)
@given(document=JSON, indent=st.none() | st.integers(0, 3), ascii_only=st.booleans())
def test_white_space_is_all_that_squeezing_removes(document: Any, indent: int, ascii_only: bool) -> None:
    text = json.dumps(document, indent=indent, ensure_ascii=ascii_only)
    squeezed = oca.squeeze(text)
    assert squeezed == json.dumps(document, separators=(",", ":"), ensure_ascii=ascii_only)


@pytest.mark.parametrize("text", ["{ not json", "a  b", '{"a": NaN}', ""])
def test_text_that_is_not_json_stays_as_it_is(text: str) -> None:
    assert oca.squeeze(text) == text
