# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module that lends DCB to the NICs of a node: how it is kept, copied and loaded."""

from __future__ import annotations

import base64
import re
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.k8s.tests.lab import dcb
from ansible_collections.rdma.k8s.tests.lab.errors import LabError


class Node:
    """Stands in for a lab with one node; ``cache`` is nothing, since the module is there."""

    cache: Any = None

    def __init__(self) -> None:
        self.scripts: list[str] = []

    def node_run(self, node: int, script: str) -> str:
        assert node == 1
        self.scripts.append(script)
        return "6.12.117+deb12-amd64\n" if script == "uname -r" else ""


@pytest.fixture(name="node")
def node_fixture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Node:
    module = tmp_path / "rdma_lab_dcb.ko"
    module.write_bytes(b"\x7fELF module")

    def ensure(_cache: Any, abi: str) -> Path:
        assert abi == "6.12.117+deb12-amd64"
        return module

    monkeypatch.setattr(dcb, "ensure", ensure)
    return Node()


def test_the_module_is_copied_and_loaded_anew(node: Any) -> None:
    dcb.lend(node, 1, ["rdma0", "rdma1"], ["rdma1"])
    assert node.scripts[:2] == ["uname -r", "if [ -d /sys/module/rdma_lab_dcb ]; then rmmod rdma_lab_dcb; fi"]
    head, text, end, load = node.scripts[2].split("\n")
    assert (head, end) == ("base64 -d > /run/rdma_lab_dcb.ko <<'END'", "END")
    assert base64.b64decode(text) == b"\x7fELF module"
    assert load == "insmod /run/rdma_lab_dcb.ko nics=rdma0,rdma1 silent=rdma1"


@pytest.mark.parametrize(("nics", "silent"), [([], []), (["rdma0"], ["rdma1"])])
def test_nics_that_make_no_sense(node: Any, nics: list[str], silent: list[str]) -> None:
    with pytest.raises(LabError, match="NICs"):
        dcb.lend(node, 1, nics, silent)
    assert node.scripts == []


def test_the_cache_follows_the_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = dcb.directory_name("6.12.1-amd64")
    assert re.fullmatch(r"dcb-6\.12\.1-amd64-[0-9a-f]+", first)
    other = tmp_path / "other.c"
    other.write_text("int nothing;")
    monkeypatch.setattr(dcb, "SOURCE", other)
    assert dcb.directory_name("6.12.1-amd64") != first


def test_the_source_takes_what_is_given() -> None:
    """The names of the parameters are those that the module is loaded with."""
    text = dcb.SOURCE.read_text(encoding="utf-8")
    assert re.findall(r"module_param_array\((\w+), charp", text) == ["nics", "silent"]
    assert 'MODULE_LICENSE("GPL");' in text
