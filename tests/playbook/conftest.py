# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Directories for runs of the playbook, recorded fleets, and a host that is reached over SSH."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils import records
from ansible_collections.rdma.k8s.plugins.module_utils.core.checks.judge import NodeInput
from ansible_collections.rdma.k8s.tests.support import fleet, private_sshd
from ansible_collections.rdma.k8s.tests.support.playbook import Controller, Run


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "both_legs: run on the newest ansible-core too")


@pytest.fixture(scope="session")
def controller(tmp_path_factory: pytest.TempPathFactory) -> Controller:
    """A home that all runs of these tests share, as those of one user do."""
    compiled = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        compiled = compiled.parent  # the workers share it
    return Controller(tmp_path_factory.mktemp("home"), compiled / "compiled")


@pytest.fixture
def run(controller: Controller, tmp_path: Path) -> Run:
    """A directory with a name that needs care."""
    folder = tmp_path / "my fleet ü"
    folder.mkdir()
    return Run(controller, folder)


@pytest.fixture(scope="session")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three recorded nodes in which nothing is wrong."""
    folder = tmp_path_factory.mktemp("healthy")
    nodes = [fleet.node(number=number, name="n%d" % number) for number in range(3)]
    records.save(str(folder), [NodeInput(node.name, node) for node in nodes])
    return folder


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[private_sshd.Server]:
    """A host that is reached over SSH."""
    lacking = private_sshd.missing()
    if lacking:
        pytest.skip("%s is not installed" % ", ".join(lacking))
    with private_sshd.serve(tmp_path_factory.mktemp("sshd")) as found:
        yield found
