# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run ``rdma.k8s.preflight`` or another playbook as a user does: the real command, in a directory and home of its own.

The command comes from the environment that runs the tests, or from the folder that RDMA_K8S_ANSIBLE_BIN names.
"""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional

from ansible_collections.rdma.k8s.plugins.module_utils import report_files, version
from ansible_collections.rdma.k8s.plugins.module_utils.core.report.document import ResultDocument

COLLECTION = Path(version.__file__).parents[2]
ROOT = COLLECTION.parents[2]
"""The folder that holds ``ansible_collections``, as the tests themselves were told."""

BIN = Path(os.environ.get("RDMA_K8S_ANSIBLE_BIN") or Path(sys.executable).parent)
REPORTS = ("junit.xml", "rdma_k8s.prom", "report.html", "report.md", "result.json")
LIMIT = 300
_SUMMARY = re.compile(r"^TASK \[Judge all nodes\] \*+\n(.*?)^(?:ok|changed): \[", re.M | re.S)
_ERROR = re.compile(r"^\[ERROR\]: (?:Task failed: )?(?:Action failed: )?(.*)$", re.M)


@dataclass(frozen=True)
class Result:
    """What a run printed, standard output and errors together, and its exit code."""

    code: int
    text: str

    def good(self) -> str:
        """The output of a run that ended well."""
        assert self.code == 0, self.trouble
        return self.text

    def failed(self) -> str:
        """The sentence with which a run ended that failed in a task."""
        assert self.code == 2, f"exit code {self.code}\n{self.trouble}"
        return self.sentences[-1]

    @property
    def trouble(self) -> str:
        """What was printed, errors first: a reader may see no more than the beginning."""
        return "\n".join([*self.sentences, "", self.text])

    @property
    def sentences(self) -> list[str]:
        """The errors that were shown, one line each."""
        return _ERROR.findall(self.text)

    @property
    def summary(self) -> list[str]:
        """The lines that the judging task printed."""
        found = _SUMMARY.search(self.text)
        assert found is not None, self.text
        return found[1].splitlines()

    def recap(self, host: str) -> dict[str, int]:
        """The counts of a host at the end of the run."""
        found = re.search(r"^%s +: (.*)$" % re.escape(host), self.text, re.M)
        assert found is not None, self.text
        return {name: int(number) for name, number in (word.split("=") for word in found[1].split())}


@dataclass(frozen=True)
class Controller:
    """Where Ansible keeps its things: a home that is not the user's, and a folder for compiled sources.

    The latter keeps the sources clean, and saves each run from compiling all of Ansible in a new environment.
    """

    home: Path
    compiled: Path

    def environment(self, **more: str) -> dict[str, str]:
        """The environment of a user without any configuration."""
        kept = {name: os.environ[name] for name in ("LD_LIBRARY_PATH", "TMPDIR") if name in os.environ}
        return {
            **kept,
            "PATH": os.pathsep.join([str(BIN), "/usr/sbin", "/usr/bin", "/sbin", "/bin"]),
            "HOME": str(self.home),
            "LC_ALL": "C.UTF-8",
            "ANSIBLE_HOME": str(self.home / ".ansible"),
            "ANSIBLE_COLLECTIONS_PATH": str(ROOT),
            "ANSIBLE_NOCOLOR": "1",
            "PYTHONPYCACHEPREFIX": str(self.compiled),
            **more,
        }


@dataclass
class Run:
    """One directory in which a playbook is run, with the inventory and the files that a test puts there."""

    controller: Controller
    folder: Path
    playbook: str = "rdma.k8s.preflight"

    def command(self, *words: str, variables: Optional[Mapping[str, Any]] = None) -> list[str]:
        """The command; the inventory is used when the test wrote one."""
        inventory = self.folder / "inventory.yml"
        command = [str(BIN / "ansible-playbook"), self.playbook]
        command += ["-i", inventory.name] if inventory.exists() else []
        command += ["-e", json.dumps(variables)] if variables else []
        return command + list(words)

    def __call__(
        self,
        *words: str,
        variables: Optional[Mapping[str, Any]] = None,
        env: Optional[Mapping[str, str]] = None,
    ) -> Result:
        """Run it. Whatever happens, a traceback, a deprecation or a question is a failure of the test."""
        done = subprocess.run(
            self.command(*words, variables=variables),
            cwd=self.folder,
            env=self.controller.environment(**(env or {})),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=LIMIT,
            check=False,
        )
        result = Result(done.returncode, done.stdout.decode("utf-8"))
        for word in ("Traceback", "DEPRECATION", "unexpected", "Unexpected"):
            assert word not in result.text, result.text
        return result

    def inventory(self, hosts: Mapping[str, Mapping[str, Any]], **variables: Any) -> None:
        """Write the inventory; its order is that of ``hosts``."""
        document = {"all": {"vars": variables, "hosts": hosts}}
        (self.folder / "inventory.yml").write_text(json.dumps(document), encoding="utf-8")

    def interpreter(self, name: str, python: Sequence[str] = (sys.executable,)) -> dict[str, str]:
        """Host variables for a local host whose Python starts are counted, see :meth:`starts`."""
        return {
            "ansible_connection": "local",
            "ansible_python_interpreter": str(
                logging_interpreter(self.folder / name, self.folder / (name + ".log"), python)
            ),
        }

    def starts(self, name: str) -> int:
        """How often the Python of a host was started."""
        return count_lines(self.folder / (name + ".log"))

    @property
    def reports(self) -> Path:
        """Where the reports go by default."""
        return self.folder / "rdma-report"

    def document(self) -> ResultDocument:
        """The result document of the last run."""
        return report_files.read_result(str(self.reports / "result.json"))


def logging_interpreter(path: Path, log: Path, python: Sequence[str]) -> Path:
    """Write an interpreter that notes each start in a file before it becomes ``python``."""
    words = " ".join("'%s'" % word for word in python)
    path.write_text('#!/bin/sh\necho "$@" >> \'%s\'\nexec %s "$@"\n' % (log, words), encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
    return path


def count_lines(path: Path) -> int:
    """Lines of a file; 0 when there is none."""
    return len(path.read_text(encoding="utf-8").splitlines()) if path.exists() else 0


def together(*calls: Any) -> list[Any]:
    """Results of functions that are called two at a time, in order."""
    with ThreadPoolExecutor(2) as pool:
        return [future.result() for future in [pool.submit(call) for call in calls]]


def findings(document: ResultDocument) -> list[tuple[str, ...]]:
    """What was found, without the order and what has to do with time."""
    return sorted(
        (entry.node, entry.check, entry.status, entry.severity, entry.message, entry.expected, entry.observed)
        for entry in document.findings
    )
