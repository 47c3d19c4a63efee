# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run a module in a Python of its own that dies by SIGKILL before its N-th act on the world.

The production code has no hook for this: the audit events of Python tell what is about to happen. An act is a file that
is opened for writing, renamed, removed, linked or given a mode or an owner, a directory that is made or removed, a
message that is sent, a program that is started, a namespace or a lock that is entered.

    count = killed.acts("netns_mode", options)
    for number in range(1, count + 1):
        killed.run("netns_mode", options, before=number)   # ends by SIGKILL
        ...                                                # run it again, look at the node
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

PREFIX = "ansible_collections.rdma.k8s.plugins.modules."
LIMIT = 60

_ACTS = frozenset(
    """
    fcntl.flock os.chmod os.chown os.exec os.fork os.forkpty os.link os.mkdir os.posix_spawn os.remove os.rename
    os.rmdir os.setxattr os.symlink os.truncate socket.sendmsg socket.sendto subprocess.Popen
    """.split()  # noqa: SIM905 (a list would be one event a line)
)
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC


def run(module: str, options: dict[str, Any], before: int, patch: str = "") -> None:
    """Run the module until just before its act number ``before``; the first act has number 1.

    :param patch: Python code that runs in the child before the module, to set up stand-ins.
    """
    done = _start(module, options, before, patch)
    assert done.returncode == -signal.SIGKILL, done.stdout + done.stderr


def acts(module: str, options: dict[str, Any], patch: str = "") -> int:
    """How many acts a whole run of the module has; it must not fail. The run really happens."""
    done = _start(module, options, 0, patch)
    assert done.returncode == 0, done.stdout + done.stderr
    number = int(done.stderr.rsplit("acts: ", 1)[1])
    assert number, "%s did nothing, so that there is nothing to interrupt" % module
    return number


def _start(module: str, options: dict[str, Any], before: int, patch: str) -> subprocess.CompletedProcess[str]:
    arguments = json.dumps({"module": module, "options": options, "before": before, "patch": patch})
    path = os.pathsep.join(filter(None, [*sys.path, str(Path(__file__).parents[2])]))
    return subprocess.run(
        [sys.executable, __file__],
        input=arguments,
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT,
        env={**os.environ, "PYTHONPATH": path},
    )


def _child() -> None:
    import importlib

    from ansible.module_utils.testing import patch_module_args

    arguments = json.load(sys.stdin)
    program = importlib.import_module(PREFIX + arguments["module"])
    exec(arguments["patch"], {"module": program})
    seen = 0
    armed = False

    def hook(event: str, values: tuple[Any, ...]) -> None:
        nonlocal seen
        if not armed or not (event in _ACTS or (event == "open" and _writes(values))):
            return
        seen += 1
        if seen == arguments["before"]:
            os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)
    code: Any = 0
    with patch_module_args(arguments["options"]):
        armed = True
        try:
            program.main()
        except SystemExit as stop:
            code = stop.code
        finally:
            armed = False
    print("acts: %d" % seen, file=sys.stderr)
    sys.exit(code)


def _writes(values: tuple[Any, ...]) -> bool:
    path, mode, flags = values
    if str(path) == os.devnull:
        return False
    return bool(isinstance(flags, int) and flags & _WRITING) or bool(mode and set(str(mode)) & set("wax+"))


if __name__ == "__main__":
    _child()
