# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The files of requirements, one for each use, and the versions that the code asks for, are the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils import deps

ROOT = Path(__file__).resolve().parents[3]
OTHER = {"ansible-core", "orjson"}
"""What is not imported through deps.py: Ansible itself, and a library that makes the official client faster."""
USES = {
    "requirements.txt": {"netaddr", "pyroute2", "jmespath", "PyYAML", "kubernetes"},
    "requirements-node.txt": {"pyroute2"},
    "requirements-cloud.txt": {"oci", "alibabacloud-cs20151215", "alibabacloud-eflo-controller20221215"},
}


def wanted(name: str) -> dict[str, str]:
    lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
    return dict(line.split(">=") for line in lines if line and not line.startswith("#"))


@pytest.mark.parametrize("name", USES)
def test_versions_are_those_of_the_code(name: str) -> None:
    found = {library: version for library, version in wanted(name).items() if library not in OTHER}
    assert found == {library: deps.MINIMUM[library] for library in USES[name]}


def test_every_library_stands_in_a_file() -> None:
    everything = {library for name in USES for library in wanted(name)}
    assert set(deps.MINIMUM) - everything == {"argcomplete"}  # an extra of the command: its page installs it
