# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The MTU in use of RDMA ports, from the tool of rdma-core."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.host import verbs
from ansible_collections.rdma.k8s.plugins.module_utils.host.files import Root

TWO_PORTS = """\
hca_id:\tmlx5_0
\ttransport:\t\t\tInfiniBand (0)
\tphys_port_cnt:\t\t\t2
\t\tport:\t1
\t\t\tstate:\t\t\tPORT_ACTIVE (4)
\t\t\tmax_mtu:\t\t4096 (5)
\t\t\tactive_mtu:\t\t4096 (5)
\t\tport:\t2
\t\t\tactive_mtu:\t\t1024 (3)

hca_id:\trxe1
\t\tport:\t1
\t\t\tactive_mtu:\t\t2048 (4)
"""


def test_each_port_has_its_own_value() -> None:
    """S37: the RDMA MTU is a power of two from 256 to 4096, apart from the MTU of the interface."""
    assert verbs.parse(TWO_PORTS) == {("mlx5_0", 1): 4096, ("mlx5_0", 2): 1024, ("rxe1", 1): 2048}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "active_mtu: 4096 (5)",
        "hca_id: a\nactive_mtu: 4096",
        "hca_id: a\nport: x\nactive_mtu: 4096",
        "port: \u0661",
    ],
)
def test_text_without_a_port_gives_nothing(text: str) -> None:
    assert verbs.parse(text) == {}


def _tool(directory: Path, script: str) -> None:
    path = directory / verbs.TOOL
    path.write_text("#!/bin/sh\n" + script)
    path.chmod(0o755)


def test_the_tool_is_asked_on_the_node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _tool(
        tmp_path,
        "printf 'hca_id: a\\n port: 1\\n active_mtu: 4096 (5)\\n'; echo \"$LC_ALL\" > %s/locale" % tmp_path,
    )
    monkeypatch.setattr(verbs, "_PATH", "%s:/usr/bin:/bin" % tmp_path)
    root = Root("/")
    assert verbs.active_mtus(root, recorded=False) == {("a", 1): 4096}
    assert root.errors == []
    assert (tmp_path / "locale").read_text() == "C\n"


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("echo 'No IB devices found' >&2; exit 255", "No IB devices found"),
        ("exit 3", "exit code 3"),
        ("exec sleep 5", "no answer within 0.2 s"),
    ],
)
def test_a_tool_that_fails_is_a_read_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, reason: str
) -> None:
    _tool(tmp_path, script)
    monkeypatch.setattr(verbs, "_PATH", "%s:/usr/bin:/bin" % tmp_path)
    monkeypatch.setattr(verbs, "TIMEOUT", 0.2)
    root = Root("/")
    assert verbs.active_mtus(root, recorded=False) == {}
    assert [(error.source, error.reason) for error in root.errors] == [(verbs.TOOL, reason)]


def test_a_missing_tool_is_a_read_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verbs, "_PATH", str(tmp_path))
    root = Root("/")
    assert verbs.active_mtus(root, recorded=False) == {}
    assert root.errors[0].reason == "not installed (rdma-core)"


def test_a_host_that_is_only_mounted_is_not_asked(tmp_path: Path) -> None:
    root = Root(os.fspath(tmp_path))
    assert verbs.active_mtus(root, recorded=False) == {}
    assert root.errors[0].reason == "cannot be asked from outside the node"


def test_a_recorded_tree_holds_the_text(tmp_path: Path) -> None:
    (tmp_path / "ibv_devinfo.txt").write_text(TWO_PORTS)
    assert len(verbs.active_mtus(Root(os.fspath(tmp_path)), recorded=True)) == 3
    (tmp_path / "ibv_devinfo.txt").unlink()
    root = Root(os.fspath(tmp_path))
    assert verbs.active_mtus(root, recorded=True) == {}
    assert root.errors[0].reason == "not recorded"
