# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The molecule scenario for a cluster that is there already, in a repository as it asks for, on recorded nodes."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils import records
from ansible_collections.rdma.k8s.plugins.module_utils.core.checks.judge import NodeInput
from ansible_collections.rdma.k8s.tests.support import fleet
from ansible_collections.rdma.k8s.tests.support.playbook import BIN, COLLECTION, LIMIT, Run

EXAMPLE = COLLECTION / "examples" / "molecule" / "conformance"
ADDRESS = "127.0.0.1"


@pytest.fixture
def repository(run: Run) -> Run:
    """A repository with the scenario, an inventory and a policy."""
    shutil.copytree(EXAMPLE, run.folder / "molecule" / "conformance")
    run.folder.joinpath("policy.yml").write_text("target: oke_dranet\n")
    return run


def inventory(repository: Run, snapshots: Path) -> None:
    """Recorded nodes take the place of real ones."""
    local = {"ansible_connection": "local", "ansible_host": ADDRESS}
    repository.inventory({"gpu-01": local}, snapshots=str(snapshots))


def molecule(repository: Run, *words: str) -> subprocess.CompletedProcess[str]:
    place = repository.folder / "ephemeral"
    place.mkdir(exist_ok=True)
    return subprocess.run(
        [str(BIN / "molecule"), *words, "-s", "conformance"],
        cwd=repository.folder,
        env=repository.controller.environment(MOLECULE_EPHEMERAL_DIRECTORY=str(place)),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=LIMIT,
        check=False,
    )


def test_every_step_is_read(repository: Run, healthy: Path) -> None:
    inventory(repository, healthy)
    for name in ("converge", "side_effect", "verify"):
        done = subprocess.run(
            [
                str(BIN / "ansible-playbook"),
                "--syntax-check",
                "-i",
                "inventory.yml",
                "molecule/conformance/%s.yml" % name,
            ],
            cwd=repository.folder,
            env=repository.controller.environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr


def test_nodes_in_which_nothing_is_wrong(repository: Run, healthy: Path) -> None:
    inventory(repository, healthy)
    for step in ("converge", "verify"):
        done = molecule(repository, step)
        assert done.returncode == 0, done.stdout
    assert {row.name for row in repository.document().nodes} == {"n0", "n1", "n2"}


def test_a_fault_and_a_silent_node(repository: Run, tmp_path: Path) -> None:
    """The step converge fails, and so does verify, which looks at what was written."""
    wrong = fleet.edit_link(fleet.node(number=0, name="n0"), "rdma3", mtu=1500)
    records.save(str(tmp_path / "wrong"), [NodeInput("n0", wrong)])
    inventory(repository, tmp_path / "wrong")
    assert molecule(repository, "converge").returncode != 0
    assert molecule(repository, "verify").returncode != 0
    silent = [NodeInput("n0", fleet.node(number=0, name="n0")), NodeInput("gone", reason="no route to host")]
    records.save(str(tmp_path / "silent"), silent)
    inventory(repository, tmp_path / "silent")
    assert molecule(repository, "converge").returncode != 0
    assert "is not what was promised" in molecule(repository, "verify").stdout


def test_nothing_was_judged(repository: Run, healthy: Path) -> None:
    inventory(repository, healthy)
    done = molecule(repository, "verify")
    assert done.returncode != 0
    assert "There is no result in" in done.stdout
