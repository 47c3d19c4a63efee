# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Preflight over hosts: this machine as it is, over a local connection and over SSH, and hosts that give no answer."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils import records
from ansible_collections.rdma.k8s.plugins.module_utils.core.report.document import NodeRow
from ansible_collections.rdma.k8s.tests.support import private_sshd
from ansible_collections.rdma.k8s.tests.support.playbook import (
    REPORTS,
    Run,
    count_lines,
    findings,
    logging_interpreter,
)

QUIET = "subsets=kernel,rdma,links,routes,pci,oca,firewall"
"""All but the metadata service: these hosts are this machine, which may have one."""
HINT = "Set ansible_python_interpreter of this host to a Python 3.9 or newer."


def rows(run: Run) -> dict[str, NodeRow]:
    return {row.name: row for row in run.document().nodes}


def broken(run: Run, name: str, script: str) -> dict[str, Any]:
    """A local host whose interpreter is a script."""
    path = run.folder / name
    path.write_text("#!/bin/sh\n" + script, encoding="utf-8")
    path.chmod(0o755)
    return {"ansible_connection": "local", "ansible_python_interpreter": str(path)}


@pytest.mark.both_legs
@pytest.mark.skipif(shutil.which("ssh") is None, reason="ssh is not installed")
def test_hosts_that_answer_and_hosts_that_do_not(run: Run) -> None:
    too_old = (
        "echo '  File \"x.py\", line 3' >&2; echo 'SyntaxError: future feature annotations' >&2; exit 1\n"
    )
    run.inventory(
        {
            "gone": {"ansible_host": "127.0.0.1", "ansible_port": 1},
            "n0": {
                **run.interpreter("n0"),
                "rack": "a",
                "rdma_network": "net-{{ rack }}",
                "rdma_child_range": "10.192.0.0/{{ 6 + 6 }}",
            },
            "n1": {
                **run.interpreter("n1"),
                "rack": "b",
                "rdma_network": "net-{{ rack }}",
                "rdma_child_range": "10.192.0.0/33",
            },
            "no-python": {"ansible_connection": "local", "ansible_python_interpreter": "/does/not/exist"},
            "too-old": broken(run, "too-old", too_old),
            "silent": broken(run, "silent", "exit 3\n"),
            "no-address": {"ansible_connection": "ssh", "ansible_host": "{{ nowhere }}"},
        }
    )
    # A strategy that does not wait for all hosts is not used, and what runs once runs although the first host is gone.
    result = run("-e", QUIET, "-e", "record=recorded", env={"ANSIBLE_STRATEGY": "free"})
    assert "on 7 nodes. The reports are in rdma-report." in result.failed()
    assert "UNREACHABLE!" in result.text
    assert sorted(path.name for path in run.reports.iterdir()) == list(REPORTS)
    found = rows(run)
    assert [name for name, row in found.items() if row.reachable] == ["n0", "n1"]
    assert found["gone"].reason == (
        "Failed to connect to the host via ssh: ssh: connect to host 127.0.0.1 port 1: Connection refused"
    )
    assert found["no-python"].reason == "The module interpreter '/does/not/exist' was not found. " + HINT
    assert found["too-old"].reason == (
        "The module did not run (exit code 1): SyntaxError: future feature annotations. " + HINT
    )
    assert found["silent"].reason == "The module did not run (exit code 3): nothing was printed. " + HINT
    assert "nowhere" in found["no-address"].reason
    statuses = {
        (row[0], row[2]) for row in findings(run.document()) if row[0] in ("gone", "no-python", "too-old")
    }
    assert statuses == {(name, "unknown") for name in ("gone", "no-python", "too-old")}
    # What the inventory says of a host counts for this host alone.
    assert [found[name].network for name in ("n0", "n1")] == ["net-a", "net-b"]
    wrong = {
        row[0]: row[4] for row in findings(run.document()) if row[1] == "RDMA-RANGE-001" and row[2] == "fail"
    }
    assert list(wrong) == ["n1"]
    assert "10.192.0.0/33" in wrong["n1"]
    # One module task on each host.
    assert [run.starts(name) for name in ("n0", "n1", "silent")] == [1, 1, 0]
    again = findings(run.document())
    networks = {name: row.network for name, row in rows(run).items()}
    run(variables={"snapshots": str(run.folder / "recorded")}).failed()
    assert findings(run.document()) == again
    assert {name: row.network for name, row in rows(run).items()} == networks
    assert [run.starts(name) for name in ("n0", "n1")] == [1, 1]
    files = sorted((run.folder / "recorded").iterdir())
    assert [path.stem for path in files] == sorted(found)
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}


def test_limit_and_check_mode_on_this_machine(run: Run) -> None:
    run.inventory({name: run.interpreter(name) for name in ("n0", "n1")})
    result = run("--check", "--limit", "n1", "-e", "strict=true", "-e", QUIET)
    assert "on 1 node. The reports are in rdma-report." in result.failed()
    assert sorted(rows(run)) == ["n1"]
    assert sorted(path.name for path in run.reports.iterdir()) == list(REPORTS)
    assert [run.starts(name) for name in ("n0", "n1")] == [0, 1]
    assert rows(run)["n1"].reachable


@pytest.mark.both_legs
def test_over_ssh_without_root_to_a_python_without_libraries(run: Run, server: private_sshd.Server) -> None:
    """Nothing is installed on the node: the library is brought once, into the home of the user, and found again."""
    work = server.home if server.fresh else server.folder
    seen = Path(server.seen_home) if server.fresh else server.folder
    bare = work / "bare"
    subprocess.run([server.python, "-m", "venv", "--without-pip", str(bare)], check=True)
    log = work / "starts.log"
    log.touch()
    os.chown(log, server.uid, -1)
    interpreter = logging_interpreter(
        work / "python", seen / log.name, [str(seen / bare.name / "bin" / "python")]
    )
    stranger = {**server.host(), "ansible_ssh_private_key_file": str(server.folder / "host_key")}
    run.inventory(
        {"far": server.host(ansible_python_interpreter=str(seen / interpreter.name)), "stranger": stranger}
    )
    sockets = {
        "ANSIBLE_SSH_CONTROL_PATH_DIR": str(server.folder / "c"),
        "ANSIBLE_SSH_ARGS": "-o ControlMaster=no",
    }
    first = run("-vv", "-e", QUIET, "-e", "record=recorded", env=sockets)
    assert "on 2 nodes." in first.failed()
    node = records.load_file(str(run.folder / "recorded" / "far.json")).snapshot
    assert node is not None
    assert node.collector.pyroute2
    assert None not in (node.links, node.routes)
    assert node.host.kernel == os.uname().release
    assert rows(run)["stranger"].reason.startswith("Failed to connect to the host via ssh: ")
    assert "Permission denied" in rows(run)["stranger"].reason
    if server.fresh:
        assert server.uid != 0
        assert "<127.0.0.1> copying pyroute2" in first.text
        assert count_lines(log) == 2  # without the library, then with it
        (kept,) = (server.home / ".cache" / "rdma.k8s").iterdir()
        assert (kept.stat().st_uid, stat.S_IMODE(kept.stat().st_mode) & 0o077) == (server.uid, 0)
        assert not list((server.home / ".ansible" / "tmp").iterdir())
    before = count_lines(log)
    second = run("-vv", "-e", QUIET, "-e", "record=again", env=sockets)
    assert "on 2 nodes." in second.failed()
    assert "copying pyroute2" not in second.text
    assert count_lines(log) == before + 1
    again = records.load_file(str(run.folder / "again" / "far.json")).snapshot
    assert again is not None
    assert (again.links, again.routes) == (node.links, node.routes)
