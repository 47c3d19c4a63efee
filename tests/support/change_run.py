# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run a module that changes a node: whole in this process, killed at every step, on a bad disk, without privilege."""

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
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Optional

from ansible.module_utils.testing import patch_module_args

from ansible_collections.rdma.k8s.plugins.module_utils.host import undo
from ansible_collections.rdma.k8s.plugins.module_utils.host.files import Root
from ansible_collections.rdma.k8s.tests.support import killed

STORE = "var/lib/rdma-k8s"
"""Where the undo records are; no part of what a module is asked to change."""

LIMIT = 60


@contextlib.contextmanager
def directory() -> Iterator[Path]:
    """A directory in memory where there is such a place: these tests wait for the disk hundreds of times otherwise."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as place:
        yield Path(place)


def run(module: Any, **options: Any) -> dict[str, Any]:
    """Run a module and return what it printed; its exit code and ``failed`` agree."""
    output = io.StringIO()
    code: Any = None
    with patch_module_args(options), contextlib.redirect_stdout(output):
        try:
            module.main()
        except SystemExit as stop:
            code = stop.code
    result: dict[str, Any] = json.loads(output.getvalue())
    assert (code == 0) == (not result.get("failed", False)), output.getvalue()
    result.pop("invocation", None)
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
    name: str, options: dict[str, Any], root: Path, wanted: dict[str, str], patch: str = ""
) -> int:
    """Kill the module before each of its acts; each time the next run repairs, and undo restores.

    The runs are forked, so that hundreds of them take seconds.

    :param wanted: text of files below ``root`` after a whole run.
    :returns: the number of acts.
    """
    module = importlib.import_module(killed.PREFIX + name)
    before = contents(root)
    good(module, **options)
    after = contents(root)
    _undo(root, name, before)  # the directories of the store are there now, in every run alike
    number = 0
    while _killed(module, options, number + 1, patch):
        number += 1
        for path, text in wanted.items():  # never a part of a file
            found = (root / path).read_text() if (root / path).exists() else None
            old = before.get(path)
            assert found in (text, None if old is None else old.partition(" ")[2]), (number, path, found)
        with tempfile.TemporaryDirectory(dir=root.parent) as place:
            _undo(Path(shutil.copytree(root, Path(place) / "node", symlinks=True)), name, before)
        good(module, **options)
        assert contents(root) == after, number
        assert not good(module, **options)["changed"], number
        _undo(root, name, before)
    assert contents(root) == after  # the last run was whole
    return number


def _killed(module: Any, options: dict[str, Any], before: int, patch: str) -> bool:
    """Whether a run in a forked child died before its act number ``before``; else the run was whole."""
    child = os.fork()
    if not child:
        code = 70
        try:
            exec(patch, {"module": module})
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
        if event in killed._ACTS or (event == "open" and killed._writes(values)):
            seen += 1
            if seen == before:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)


def _undo(root: Path, owner: str, before: dict[str, str]) -> None:
    outcomes = {entry.outcome for entry in undo.undo(Root(str(root)), [owner])}
    assert outcomes <= {"restored"}, outcomes
    found = contents(root)
    assert found == before, set(found.items()) ^ set(before.items())


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


def _child(prefix: list[str], task: dict[str, Any]) -> dict[str, Any]:
    path = os.pathsep.join(filter(None, [*sys.path, str(Path(__file__).parents[2])]))
    program = shutil.which(prefix[0])
    assert program, prefix[0]
    done = subprocess.run(
        [program, *prefix[1:], sys.executable, __file__],
        input=json.dumps(task),
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def _main() -> None:
    task = json.load(sys.stdin)
    place: Optional[str] = task.get("place")
    if place:
        _mount([*task["mount"], "-t", "tmpfs", "tmpfs", place])
        for name, text in task["seed"].items():
            (Path(place) / name).write_text(text)
        if task["read_only"]:
            _mount(["-o", "remount,ro", place])
    module = importlib.import_module(killed.PREFIX + task["module"])
    result = run(module, **task["options"])
    if place:
        result["after"] = {path.name: path.read_text() for path in Path(place).iterdir() if path.is_file()}
    print(json.dumps(result))


def _mount(words: list[str]) -> None:
    subprocess.run([shutil.which("mount") or "/usr/bin/mount", *words], check=True)


if __name__ == "__main__":
    _main()
