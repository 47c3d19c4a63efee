# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The hook of ``.pre-commit-hooks.yaml``, installed and run in a repository as pre-commit does it.

pre-commit itself is not needed for that: it makes an environment for the hook, lets pip install the repository of the
hook there, chooses the staged files by name and type, and runs the entry with them. Here pip finds what it needs to
build and to run in wheels that are made of the packages of the test environment, so no index is asked.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import venv
from collections.abc import Mapping
from pathlib import Path

import pytest
import tomllib
import yaml

from ansible_collections.rdma.k8s.plugins.modules import claim_template, workload_template
from ansible_collections.rdma.k8s.tests.support import change_run, wheelhouse
from ansible_collections.rdma.k8s.tests.support.playbook import COLLECTION, LIMIT

KNOWN = frozenset(
    """
    additional_dependencies alias always_run args description entry exclude exclude_types fail_fast files id language
    language_version log_file minimum_pre_commit_version name pass_filenames require_serial stages types types_or
    verbose
    """.split()  # noqa: SIM905 (a list would be one word a line)
)
"""What pre-commit knows of a hook; it warns of anything else."""
TYPES = {".yaml": "yaml", ".yml": "yaml", ".json": "json", ".txt": "plain-text", ".py": "python"}
"""The type that pre-commit tells by the end of a name, for the names that are used here."""
WRONG = (COLLECTION / "examples" / "tutorials" / "oke-wrong.yml").read_text(encoding="utf-8")
SHAPE = {"namespace": "training", "shape": "BM.GPU.H100.8", "state": "rendered"}


def job() -> dict[str, str]:
    """Manifests with nothing wrong, as the modules write them: a claim template, and a job that names it."""
    with change_run.directory() as folder:
        change_run.good(claim_template, name="all-nics", path=str(folder / "claim.yaml"), **SHAPE)
        words = {
            "claim_template": "all-nics",
            "nodes": 2,
            "command": ["train"],
            "image": "registry.example.org/x:1",
        }
        change_run.good(workload_template, name="train", path=str(folder / "job.yml"), **words, **SHAPE)
        return {path.name: path.read_text() for path in folder.iterdir()}


def run(words: list[str], folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "LANG", "TMPDIR")}
    return subprocess.run(
        words,
        cwd=folder,
        env={**kept, **variables},
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )


def git(folder: Path, *words: str) -> list[str]:
    """Run git, and return the names that it prints, each ended by a zero."""
    done = run(["git", *words], folder, GIT_CONFIG_NOSYSTEM="1")
    assert done.returncode == 0, done.stderr
    return [name for name in done.stdout.split("\0") if name]


class Hook:
    """The hook in an environment of its own, and a repository whose commits it looks at."""

    def __init__(self, folder: Path) -> None:
        (self.wanted,) = yaml.safe_load((COLLECTION / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
        self.environment = folder / "py_env"
        self.repository = folder / "repository"
        self._install(folder)
        self.repository.mkdir()
        git(self.repository, "init", "--quiet")

    def _install(self, folder: Path) -> None:
        clone = folder / "clone"
        for name in git(COLLECTION, "ls-files", "-z"):
            if (COLLECTION / name).is_file():
                (clone / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(COLLECTION / name, clone / name)
        project = tomllib.loads((clone / "pyproject.toml").read_text(encoding="utf-8"))
        needed = [*project["build-system"]["requires"], *project["project"]["dependencies"]]
        names = [re.split("[<>=~! ]", requirement)[0] for requirement in needed]
        house = wheelhouse.write(folder / "wheels", dict(map(wheelhouse.repacked, names)))
        venv.create(self.environment, symlinks=True)
        pip = [sys.executable, "-m", "pip", "--python", str(self.environment / "bin" / "python")]
        words = [*pip, "install", "--no-compile", ".", *self.wanted.get("additional_dependencies", [])]
        done = run(words, clone, PIP_NO_INDEX="1", PIP_FIND_LINKS=str(house), PIP_CONFIG_FILE=os.devnull)
        assert done.returncode == 0, done.stdout + done.stderr

    def stage(self, contents: Mapping[str, str]) -> None:
        """Put these files into the next commit, and nothing else."""
        git(self.repository, "rm", "-r", "--quiet", "--force", "--ignore-unmatch", ".")
        for name, content in contents.items():
            (self.repository / name).write_text(content)
        git(self.repository, "add", "--all")

    def files(self) -> list[str]:
        """The staged files that the hook gets."""
        staged = git(
            self.repository,
            "diff",
            "--staged",
            "--name-only",
            "--no-ext-diff",
            "--diff-filter=ACMRTUXB",
            "-z",
        )
        chosen = []
        for name in staged:
            types = {"file", "text", "non-executable", TYPES[Path(name).suffix]}
            if (
                re.search(self.wanted.get("files", ""), name)
                and not re.search(self.wanted.get("exclude", "^$"), name)
                and types.issuperset(self.wanted.get("types", ["file"]))
                and (not self.wanted.get("types_or") or types.intersection(self.wanted["types_or"]))
                and not types.intersection(self.wanted.get("exclude_types", []))
            ):
                chosen.append(name)
        return chosen

    def __call__(self) -> subprocess.CompletedProcess[str]:
        """Run the entry with the chosen files, in the environment of the hook."""
        words = [*shlex.split(self.wanted["entry"]), *self.wanted.get("args", [])]
        path = os.pathsep.join([str(self.environment / "bin"), os.environ["PATH"]])
        program = shutil.which(words[0], path=path)
        assert program == str(self.environment / "bin" / words[0]), "the hook does not bring its own program"
        return run(
            [program, *words[1:], *self.files()],
            self.repository,
            PATH=path,
            VIRTUAL_ENV=str(self.environment),
        )


@pytest.fixture(scope="module", name="hook")
def hook_fixture(tmp_path_factory: pytest.TempPathFactory) -> Hook:
    return Hook(tmp_path_factory.mktemp("hook"))


def test_what_is_declared(hook: Hook) -> None:
    assert set(hook.wanted) <= KNOWN
    assert {"id", "name", "entry", "language"} <= set(hook.wanted)
    assert (hook.wanted["language"], hook.wanted.get("pass_filenames", True)) == ("python", True)
    # pre-commit shares files out among several runs otherwise, and references between them were not seen.
    assert hook.wanted["require_serial"] is True


def test_a_good_commit_goes_on(hook: Hook) -> None:
    hook.stage({**job(), "notes.txt": "no: [manifest", "tool.py": "print(1)\n", "data.json": "{}"})
    assert hook.files() == ["claim.yaml", "data.json", "job.yml"]
    done = hook()
    assert (done.returncode, done.stderr) == (0, "")
    assert "ResourceClaimTemplate 1, Job 1." in done.stdout


def test_a_bad_commit_is_stopped(hook: Hook) -> None:
    hook.stage({**job(), "wrong.json": json.dumps(yaml.safe_load(WRONG)), "wrong.yml": WRONG})
    assert hook.files() == ["claim.yaml", "job.yml", "wrong.json", "wrong.yml"]
    done = hook()
    assert done.returncode == 4, done.stderr
    assert set(re.findall(r"^(\S+?):\d+: FAIL", done.stdout, re.M)) == {"wrong.json", "wrong.yml"}


def test_a_template_of_helm_stops_the_commit(hook: Hook) -> None:
    hook.stage({**job(), "template.yaml": "{{- if .Values.on }}\napiVersion: v1\nkind: Pod\n{{- end }}\n"})
    done = hook()
    assert done.returncode == 2
    assert "template.yaml" in done.stdout + done.stderr


def test_the_command_stands_on_what_it_declares(hook: Hook) -> None:
    """Nothing of the test environment is seen there, so a dependency that is not declared would be missing."""
    code = "import importlib.metadata as m; print(*sorted({d.name.lower() for d in m.distributions()}))"
    done = run([str(hook.environment / "bin" / "python"), "-c", code], hook.repository)
    assert done.stdout.split() == ["jmespath", "netaddr", "pyyaml", "rdma-k8s"]
