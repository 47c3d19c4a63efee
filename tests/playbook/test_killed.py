# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A run that is killed while it writes reports leaves whole files: old ones, or new ones.

The kill is placed exactly: a ``sitecustomize`` of the test counts the calls with which a report is flushed
(``os.fsync``) or put in place (``os.replace``), and kills the playbook and itself before the chosen one.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils import report_files
from ansible_collections.rdma.k8s.plugins.module_utils.core.report import render
from ansible_collections.rdma.k8s.tests.support import cases
from ansible_collections.rdma.k8s.tests.support.playbook import REPORTS, Run, together

SITECUSTOMIZE = """
import os
import signal

name, number = os.environ["KILL_BEFORE"].split()
counter, folder = os.environ["KILL_COUNTER"], os.environ["KILL_FOLDER"]
real = getattr(os, name)


def counted(first, *others):
    place = others[0] if name == "replace" else os.readlink("/proc/self/fd/%d" % first)
    if os.path.dirname(os.path.abspath(place)) == folder:
        with open(counter, "ab", buffering=0) as stream:
            stream.write(b".")
        if os.path.getsize(counter) == int(number):
            os.kill(os.getppid(), signal.SIGKILL)
            os.kill(os.getpid(), signal.SIGKILL)
    return real(first, *others)


setattr(os, name, counted)
"""

ORDER = ("result.json", "junit.xml", "report.md", "report.html", "rdma_k8s.prom")
"""The judging task writes the document, then the role writes the others in the order of the formats."""


def kill(run: Run, folder: str, moment: str, snapshots: Path) -> int:
    """Run preflight with reports in ``folder`` until it is killed; return the exit code of the command."""
    environment = run.controller.environment(
        PYTHONPATH=str(run.folder / "site"),
        KILL_BEFORE=moment,
        KILL_COUNTER=str(run.folder / (folder + ".count")),
        KILL_FOLDER=str(run.folder / folder),
    )
    command = run.command(
        variables={"snapshots": str(snapshots), "report_dir": folder, "rdma_policy": cases.SURROUNDINGS}
    )
    with (
        (run.folder / (folder + ".out")).open("wb") as output,
        subprocess.Popen(
            command, cwd=run.folder, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output
        ) as process,
    ):
        return process.wait(300)


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="this system has no /proc/self/fd")
def test_each_report_is_old_or_new_and_never_half(run: Run, healthy: Path) -> None:
    (run.folder / "site").mkdir()
    (run.folder / "site" / "sitecustomize.py").write_text(SITECUSTOMIZE)
    one = {"snapshots": str(healthy / "n0.json"), "rdma_policy": cases.SURROUNDINGS}
    run(variables={**one, "report_dir": "old"}).good()
    old = {path.name: path.read_bytes() for path in (run.folder / "old").iterdir()}
    assert sorted(old) == list(REPORTS)
    moments = {
        "fsync 1": 0,  # the new document is written, but not flushed
        "replace 1": 0,  # ... and flushed, but not in place
        "fsync 5": 1,  # the document is new, the second report is written and not flushed
        "replace 3": 2,  # the document and one report are new
    }
    for moment in moments:
        shutil.copytree(run.folder / "old", run.folder / moment.replace(" ", "-"))
    calls = [lambda moment=moment: kill(run, moment.replace(" ", "-"), moment, healthy) for moment in moments]
    for (moment, replaced), code in zip(moments.items(), together(*calls)):
        folder = run.folder / moment.replace(" ", "-")
        assert code == -signal.SIGKILL, (run.folder / (folder.name + ".out")).read_text()
        now = {path.name: path.read_bytes() for path in folder.iterdir() if path.suffix != ".tmp"}
        document = report_files.read_result(str(folder / "result.json"))
        assert len(document.nodes) == (3 if replaced else 1)
        new = {name: "".join(map(text, pieces)).encode() for name, pieces in render.stream(document).items()}
        expected = {name: new[name] if name in ORDER[:replaced] else old[name] for name in ORDER}
        assert now == expected, moment
        assert list(folder.glob(".*.tmp")), moment
    # What was left is removed by a later run, once it is old enough not to belong to one that still goes on.
    folder = run.folder / "replace-3"
    for path in folder.glob(".*.tmp"):
        os.utime(path, (0, 0))
    run(variables={**one, "snapshots": str(healthy), "report_dir": folder.name}).good()
    assert sorted(path.name for path in folder.iterdir()) == list(REPORTS)


def text(piece: str | bytes) -> str:
    """A piece of a report as text."""
    return piece if isinstance(piece, str) else piece.decode()
