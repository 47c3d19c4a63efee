# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run a module that changes a node: whole in this process, killed at every step, on a bad disk, without privilege.

The production code has no hook for a kill: the audit events of Python tell what is about to happen. An act is a file
that is opened for writing, renamed, removed, linked or given a mode or an owner, a directory that is made or removed, a
message that is sent, a program that is started, a lock that is taken.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Callable, Optional
from unittest import mock

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.testing import patch_module_args

from ansible_collections.rdma.k8s.plugins.module_utils.host import undo
from ansible_collections.rdma.k8s.plugins.module_utils.host.files import Root

PREFIX = "ansible_collections.rdma.k8s.plugins.modules."
STORE = "var/lib/rdma-k8s"
"""Where the undo records are; no part of what a module is asked to change."""

LIMIT = 60

THOROUGH = not {"ANSIBLE_TEST_CONTENT_ROOT", "RDMA_K8S_FEWER_EXAMPLES"} & set(os.environ)
"""The further Pythons of the gates repeat a part of what the first one tried in full."""

_ACTS = frozenset(
    """
    fcntl.flock os.chmod os.chown os.exec os.fork os.forkpty os.link os.mkdir os.posix_spawn os.remove os.rename
    os.rmdir os.setxattr os.symlink os.truncate socket.sendmsg socket.sendto subprocess.Popen
    """.split()  # noqa: SIM905 (a list would be one event a line)
)
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC


@contextlib.contextmanager
def directory() -> Iterator[Path]:
    """A directory in memory where there is such a place: these tests wait for the disk hundreds of times otherwise."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as place:
        yield Path(place)


def run(module: Any, **options: Any) -> dict[str, Any]:
    """Run a module and return what it printed; its exit code and ``failed`` agree.

    Warnings are in the result also where plugins of the controller were imported: there Ansible shows them at once.
    """
    output = io.StringIO()
    code: Any = None
    warned: list[str] = []
    recorded = mock.patch.object(
        AnsibleModule, "warn", lambda _module, warning, **_more: warned.append(warning)
    )
    with patch_module_args(options), contextlib.redirect_stdout(output), recorded:
        try:
            module.main()
        except SystemExit as stop:
            code = stop.code
    result: dict[str, Any] = json.loads(output.getvalue())
    assert (code == 0) == (not result.get("failed", False)), output.getvalue()
    result.pop("invocation", None)
    if warned:
        result["warnings"] = warned + result.get("warnings", [])
    return result


def good(module: Any, **options: Any) -> dict[str, Any]:
    """The result of a run that did not fail."""
    result = run(module, **options)
    assert "failed" not in result, result
    return result


def failure(module: Any, **options: Any) -> dict[str, Any]:
    """The result of a run that failed."""
    result = run(module, **options)
    assert result.get("failed"), result
    return result


def contents(root: Path) -> dict[str, str]:
    """All files and directories below a root with mode and content, without the undo store and what leads to it."""
    found = {}
    for place, directories, files in os.walk(root):
        for name in [*directories, *files]:
            path = Path(place) / name
            key = str(path.relative_to(root))
            if key in {"var", "var/lib"} or key.startswith(STORE):
                continue
            text = "-> " + os.readlink(path) if path.is_symlink() else ""
            if not text and path.is_file():
                text = path.read_text(errors="replace")
            found[key] = "%o %s" % (path.lstat().st_mode, text)
    return found


def killed_everywhere(
    name: str,
    options: dict[str, Any],
    root: Path,
    wanted: dict[str, str],
    probe: Callable[[], dict[str, str]] = dict,
) -> int:
    """Kill the module before each of its acts; each time undo restores, and after the same kill the next run repairs.

    The runs are forked, so that hundreds of them take seconds.

    :param wanted: text of files below ``root`` after a whole run.
    :param probe: tells further values of the node, which a run changes and undo restores.
    :returns: the number of acts.
    """
    module = importlib.import_module(PREFIX + name)

    def state() -> dict[str, str]:
        values = probe()
        return {**contents(root), **values}

    def undone() -> None:
        outcomes = {entry.outcome for entry in undo.undo(Root(str(root)), [name])}
        assert outcomes <= {"restored"}, outcomes
        assert state() == before, set(state().items()) ^ set(before.items())

    before = state()
    good(module, **options)
    after = state()
    undone()  # the directories of the store are there now, in every run alike
    number = 0
    while killed(module, options, number + 1):
        number += 1
        for path, text in wanted.items():  # never a part of a file
            found = (root / path).read_text() if (root / path).exists() else None
            old = before.get(path)
            assert found in (text, None if old is None else old.partition(" ")[2]), (number, path, found)
        undone()
        if not (THOROUGH or number % 3 == 1):
            continue
        assert killed(module, options, number)
        good(module, **options)
        assert state() == after, number
        assert not good(module, **options)["changed"], number
        undone()
    assert state() == after  # the last run was whole
    return number


def killed(module: Any, options: dict[str, Any], before: int) -> bool:
    """Whether a run in a forked child died before its act number ``before``, from 1 on; else the run was whole."""
    child = os.fork()
    if not child:
        code = 70
        try:
            _arm(before)
            code = 0 if not run(module, **options).get("failed") else 71
        finally:
            os._exit(code)
    status = os.waitpid(child, 0)[1]
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
        return True
    assert os.WEXITSTATUS(status) == 0, status
    return False


def _arm(before: int) -> None:
    """From now on, die before the act number ``before``."""
    seen = 0

    def hook(event: str, values: tuple[Any, ...]) -> None:
        nonlocal seen
        if event in _ACTS or (event == "open" and _writes(values)):
            seen += 1
            if seen == before:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)


def _writes(values: tuple[Any, ...]) -> bool:
    path, mode, flags = values
    if str(path) == os.devnull:
        return False
    return bool(isinstance(flags, int) and flags & _WRITING) or bool(mode and set(str(mode)) & set("wax+"))


def mounted(
    name: str, options: dict[str, Any], place: Path, mount: list[str], read_only: bool = False
) -> dict[str, Any]:
    """Run a module while a file system of its own lies over ``place``, in a mount namespace that ends with the run.

    The files that are in ``place`` are in that file system too.

    :param mount: options of mount(8) for a tmpfs.
    :returns: the result of the module, with ``after``: text of each file of ``place`` by name.
    """
    seed = {path.name: path.read_text() for path in place.iterdir() if path.is_file()}
    task = {
        "module": name,
        "options": options,
        "place": str(place),
        "mount": mount,
        "seed": seed,
        "read_only": read_only,
    }
    return _child(["unshare", "--mount", "--propagation", "private"], task)


def without_privilege(name: str, options: dict[str, Any]) -> dict[str, Any]:
    """Run a module as root without any capability: it reads what all may read, and writes what is its own."""
    words = ["setpriv", "--bounding-set=-all", "--inh-caps=-all", "--ambient-caps=-all"]
    return _child(words, {"module": name, "options": options})


def in_namespace(
    name: str, runs: list[dict[str, Any]], setup: list[str], patch: str = "", words: Any = ()
) -> Any:
    """Run a module once or several times in a network namespace that ends with the last run.

    :param runs: options of the module; an entry with the key ``command`` is a command line instead, which must succeed.
    :param setup: command lines of iproute2 that make the interfaces.
    :param patch: Python code that runs before the module, with the module as ``module``.
    :param words: a program with its arguments that starts the runs, such as setpriv.
    :returns: the results, and for a command what it printed.
    """
    task = {"module": name, "runs": runs, "setup": setup, "patch": patch}
    return _child(["unshare", "--net"], task, list(words))


def _child(prefix: list[str], task: dict[str, Any], words: Sequence[str] = ()) -> Any:
    path = os.pathsep.join(filter(None, [*sys.path, str(Path(__file__).parents[2])]))
    program = shutil.which(prefix[0])
    assert program, prefix[0]
    done = subprocess.run(
        [program, *prefix[1:], sys.executable, __file__, *words],
        input=json.dumps(task),
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


def _main() -> None:
    task = json.load(sys.stdin)
    for line in task.pop("setup", ()):
        _command(line)
    if sys.argv[1:]:  # start anew inside what was set up
        words = [*sys.argv[1:], sys.executable, __file__]
        sys.exit(subprocess.run(words, input=json.dumps(task), text=True, check=False).returncode)
    place: Optional[str] = task.get("place")
    if place:
        _mount([*task["mount"], "-t", "tmpfs", "tmpfs", place])
        for name, text in task["seed"].items():
            (Path(place) / name).write_text(text)
        if task["read_only"]:
            _mount(["-o", "remount,ro", place])
    module = importlib.import_module(PREFIX + task["module"])
    exec(task.get("patch", ""), {"module": module})
    if "runs" in task:
        runs = [
            _command(each["command"]) if "command" in each else run(module, **each) for each in task["runs"]
        ]
        print(json.dumps(runs))
        return
    result = run(module, **task["options"])
    if place:
        result["after"] = {path.name: path.read_text() for path in Path(place).iterdir() if path.is_file()}
    print(json.dumps(result))


def _command(line: str) -> str:
    words = line.split()
    program = shutil.which(words[0], path="%s:/usr/sbin:/sbin" % os.environ.get("PATH", ""))
    return subprocess.run(
        [program or words[0], *words[1:]], check=True, stdout=subprocess.PIPE, text=True
    ).stdout


def _mount(words: list[str]) -> None:
    subprocess.run([shutil.which("mount") or "/usr/bin/mount", *words], check=True)


if __name__ == "__main__":
    _main()
