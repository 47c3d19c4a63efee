# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Commands in a mount namespace of their own, in which some directories are empty and stand for those of a node.

Nothing that the commands write to those directories reaches this machine. It needs root.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

LIMIT = 300

_DRIVER = """
import json, os, subprocess, sys
plan = json.load(sys.stdin)
for path in plan["empty"]:
    os.makedirs(path, exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=0755", "tmpfs", path], check=True)
for path in plan["hidden"]:
    subprocess.run(["mount", "--bind", "/dev/null", path], check=True)
results = []
for command in plan["commands"]:
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    results.append([done.returncode, done.stdout.decode("utf-8", "replace")])
json.dump(results, sys.stdout)
"""


@dataclass(frozen=True)
class Done:
    """Exit code and all output of a command."""

    code: int
    text: str


def run(
    commands: Sequence[Sequence[str]],
    env: Mapping[str, str],
    empty: Sequence[str] = ("/opt", "/var/lib"),
    hidden: Sequence[str] = (),
) -> list[Done]:
    """Run commands one after the other on the same node.

    :param empty: directories that are empty at the start and forgotten at the end; they must be on this machine.
    :param hidden: files that cannot be executed.
    """
    plan = {"commands": [list(command) for command in commands], "empty": list(empty), "hidden": list(hidden)}
    done = subprocess.run(
        ["unshare", "--mount", "--propagation", "private", sys.executable, "-c", _DRIVER],
        input=json.dumps(plan),
        capture_output=True,
        text=True,
        env=dict(env),
        timeout=LIMIT,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return [Done(code, text) for code, text in json.loads(done.stdout)]
