# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A small recorded fleet, and two ways to run the command line: in this process, and as a program of its own."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils import records
from ansible_collections.rdma.k8s.plugins.module_utils.cli import main as cli
from ansible_collections.rdma.k8s.plugins.module_utils.core.checks.judge import NodeInput
from ansible_collections.rdma.k8s.plugins.module_utils.core.snapshot import Route
from ansible_collections.rdma.k8s.tests.support import fleet

COLLECTION = Path(__file__).resolve().parents[5]


@dataclass(frozen=True)
class Result:
    """Exit code and what was written."""

    code: int
    out: str
    err: str

    def good(self) -> str:
        """Standard output of a run that was good."""
        assert (self.code, self.err) == (0, "")
        return self.out

    def refused(self) -> str:
        """The sentence of a run that was refused: one line on standard error, nothing on standard output."""
        assert self.code == 2, self
        assert self.out == ""
        assert self.err.startswith("rdma-k8s: ")
        assert self.err.endswith("\n")
        assert self.err.count("\n") == 1
        assert "Traceback" not in self.err
        return self.err[len("rdma-k8s: ") : -1]


def invoke(*argv: Any) -> Result:
    """Run the command line in this process."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = cli.main([str(word) for word in argv])
    return Result(code, out.getvalue(), err.getvalue())


@pytest.fixture
def run() -> Callable[..., Result]:
    return invoke


@pytest.fixture(scope="session")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory in which the package has the name that it has outside Ansible."""
    folder = tmp_path_factory.mktemp("package")
    (folder / "rdma_k8s").symlink_to(COLLECTION / "plugins" / "module_utils")
    return folder


@pytest.fixture(scope="session")
def command(package: Path) -> tuple[list[str], dict[str, str]]:
    """The words and the environment that start the command as a program, without Ansible's import machinery."""
    keep = {name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "LANG", "LC_ALL")}
    environment = {**keep, "PYTHONPATH": str(package), "PYTHONDONTWRITEBYTECODE": "1"}
    return [sys.executable, "-m", "rdma_k8s.cli.main"], environment


@pytest.fixture
def program(command: tuple[list[str], dict[str, str]], tmp_path: Path) -> Callable[..., Result]:
    """Run the command line as a program, in an empty directory."""
    words, environment = command

    def start(*argv: Any, stdin: str = "", env: Optional[dict[str, str]] = None) -> Result:
        done = subprocess.run(
            [*words, *map(str, argv)],
            input=stdin.encode(),
            capture_output=True,
            cwd=tmp_path,
            env={**environment, **(env or {})},
            check=False,
        )
        return Result(done.returncode, done.stdout.decode(), done.stderr.decode())

    return start


def small_fleet() -> list[NodeInput]:
    """Nodes of all fabrics with a few faults.

    n0 is the reference node of F15; n-odd sits at the same position of another subnet, so all its children are n0's too
    (F23). rdma3 of n1 has a wrong MTU. rdma4 and rdma5 of n2 have their names exchanged. n3 has a route in the range.
    """
    nodes = [fleet.node(number=number, name="n%d" % number) for number in range(4)]
    nodes[1] = fleet.edit_link(nodes[1], "rdma3", mtu=1500)
    nodes[2] = fleet.swap_nics(nodes[2], "rdma4", "rdma5")
    nodes[3] = fleet.add_routes(nodes[3], str(Route("10.215.0.0/16", "eth0")))
    nodes += [
        fleet.node(number=0, name="n-odd", subnet="10.141.64.0/19"),
        fleet.node("BM.Optimized3.36", number=7, name="hpc", subnet="10.0.2.0/24"),
        fleet.node("BM.GPU.GB200.4", number=9, name="ib"),
        fleet.node("BM.GPU.GB200-v3.4", number=10, name="v6"),
    ]
    silent = NodeInput("gone", reason="ssh: connect to host gone port 22: No route to host")
    return [*[NodeInput(node.name, node) for node in nodes], silent]


@pytest.fixture(scope="session")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small fleet as it is recorded."""
    folder = tmp_path_factory.mktemp("recorded")
    records.save(str(folder), small_fleet())
    return folder


@pytest.fixture(scope="session")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two nodes in which nothing is wrong."""
    folder = tmp_path_factory.mktemp("healthy")
    nodes = [fleet.node(number=number, name="n%d" % number) for number in range(2)]
    records.save(str(folder), [NodeInput(node.name, node) for node in nodes])
    return folder


@pytest.fixture(autouse=True)
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Each test runs in a directory of its own, without variables that the command reads."""
    folder = tmp_path_factory.mktemp("cwd")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for name in ("RDMA_K8S_SNAPSHOTS", "NO_COLOR"):
            patch.delenv(name, raising=False)
        yield folder
