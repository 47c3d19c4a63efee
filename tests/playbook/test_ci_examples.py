# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The scripts of the CI examples, run as they are written, in a repository as they ask for.

What installs is left out; the tarball itself is installed by the gates ``install`` and ``readme``.
"""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.rdma.k8s.tests.support.playbook import BIN, COLLECTION, LIMIT, Run

FOLDER = COLLECTION / "examples" / "ci"
INSTALLS = ("python3 -m pip install", "ansible-galaxy collection install")
GOOD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": []}}
BAD_RESOURCES = {"limits": {"rdma/hca": "1"}, "requests": {"rdma/hca": "2"}}
BAD = {**GOOD, "spec": {"containers": [{"name": "c", "image": "i", "resources": BAD_RESOURCES}]}}


def github() -> dict[str, dict[str, Any]]:
    """Each job with its shell lines and the paths that it keeps."""
    jobs = yaml.safe_load((FOLDER / "github.yml").read_text())["jobs"]
    found = {}
    for name, job in jobs.items():
        kept = [step.get("with", {}) for step in job["steps"]]
        paths = [entry[key] for entry in kept for key in ("sarif_file", "path") if key in entry]
        found[name] = {"scripts": [step["run"] for step in job["steps"] if "run" in step], "kept": paths}
    return found


def gitlab() -> dict[str, dict[str, Any]]:
    found = {}
    for name, job in yaml.safe_load((FOLDER / "gitlab.yml").read_text()).items():
        kept = [*job["artifacts"]["paths"], job["artifacts"]["reports"]["junit"]]
        # GitLab runs all lines of a job in one shell that ends at the first failure.
        found[name] = {"scripts": ["\n".join(job["before_script"]), "\n".join(job["script"])], "kept": kept}
    return found


def lines(script: str) -> str:
    return "\n".join(line for line in script.splitlines() if not line.startswith(INSTALLS))


@pytest.fixture
def repository(run: Run, healthy: Path) -> Run:
    """What the examples say that the repository holds; the nodes of its inventory are recorded ones."""
    run.folder.joinpath("manifests").mkdir()
    run.folder.joinpath("policy.yml").write_text("target: oke_dranet\n")
    run.inventory({"localhost": {"ansible_connection": "local"}}, snapshots=str(healthy))
    return run


def play(repository: Run, job: dict[str, Any]) -> int:
    """The exit code of the first line that fails, as a runner takes it."""
    for script in job["scripts"]:
        done = subprocess.run(
            ["bash", "-eo", "pipefail", "-c", lines(script)],
            cwd=repository.folder,
            env=repository.controller.environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=LIMIT,
            check=False,
        )
        if done.returncode:
            return done.returncode
    return 0


@pytest.mark.skipif(not (BIN / "rdma-k8s").exists(), reason="the command is not installed")
@pytest.mark.parametrize(("jobs", "name"), [(github, "lint"), (gitlab, "rdma-lint")])
@pytest.mark.parametrize(("manifest", "code"), [(GOOD, 0), (BAD, 4)])
def test_lint(repository: Run, jobs: Any, name: str, manifest: dict[str, Any], code: int) -> None:
    job = jobs()[name]
    (repository.folder / "manifests" / "pod.yml").write_text(yaml.safe_dump(manifest))
    assert play(repository, job) == code
    assert [path for path in job["kept"] if not (repository.folder / path).exists()] == []


@pytest.mark.parametrize(("jobs", "name"), [(github, "preflight"), (gitlab, "rdma-preflight")])
def test_preflight(repository: Run, jobs: Any, name: str) -> None:
    job = jobs()[name]
    assert play(repository, job) == 0
    assert [path for path in job["kept"] if not (repository.folder / path).exists()] == []
    assert {row.name for row in repository.document().nodes} == {"n0", "n1", "n2"}


def test_every_command_installs_what_it_uses() -> None:
    for name, job in {**github(), **gitlab()}.items():
        first = job["scripts"][0]
        assert first.startswith(INSTALLS), name
