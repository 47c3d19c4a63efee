# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Make a virtual environment from a lock file, on a machine that may have nothing but Python and pip.

Runs on the Python of the system, so it uses the standard library alone and the syntax of Python 3.8.
Nothing is done when the environment was made from the same lock file with the same Python before.

Usage: make_venv.py dev [FOLDER]     the development environment (default folder: .venv)
       make_venv.py next [FOLDER]    the second leg of the tests (default folder: build/venv-next)
       make_venv.py browser [FOLDER] the tests in a browser (default folder: build/venv-browser)
       make_venv.py audit [FOLDER]   the comparison with advisories (default folder: build/venv-audit)

Exit code 3 when the machine has no Python that fits.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(Path(__file__).resolve().parent))

import interpreters  # noqa: E402

# name: (lock file, Pythons in the order of preference, default folder, install the project itself)
KINDS = {
    "dev": ("requirements/dev.txt", ("3.11", "3.12", "3.13"), ".venv", True),
    "next": ("requirements/next.txt", ("3.13", "3.12", "3.14"), "build/venv-next", False),
    "browser": ("requirements/browser.txt", ("3.11", "3.12", "3.13"), "build/venv-browser", False),
    "audit": ("requirements/audit.txt", ("3.11", "3.12", "3.13"), "build/venv-audit", False),
}

NO_PYTHON = 3  # the exit code when this machine has no fitting Python


def say(text: str) -> None:
    """Print one line at once, also into a pipe."""
    print(text, flush=True)


def give_up(text: str, code: int = 1) -> NoReturn:
    """End with a sentence and an exit code."""
    sys.stderr.write("make_venv: " + text + "\n")
    raise SystemExit(code)


def run(args: list[str]) -> None:
    """Run a command; end with its output when it fails."""
    done = subprocess.run(args, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    if done.returncode:
        sys.stderr.write(done.stdout.decode("utf-8", "replace"))
        give_up("{} failed with exit code {}.".format(" ".join(args[:4]), done.returncode))


def has_module(python: str, *names: str) -> bool:
    """Tell whether `python` can import all of `names`."""
    code = "import " + ", ".join(names)
    return not subprocess.run([python, "-c", code], stderr=subprocess.DEVNULL, check=False).returncode


def create(python: str, folder: Path) -> None:
    """Create an empty virtual environment, with `virtualenv` where Debian's python3-venv is missing."""
    shutil.rmtree(folder, ignore_errors=True)
    if has_module(python, "venv", "ensurepip"):
        run([python, "-m", "venv", str(folder)])
        return
    if not has_module(python, "pip"):
        give_up(
            f"{python} has neither venv nor pip. Install one of them, for example: apt-get install python3-pip"
        )
    tools = ROOT / "build" / "bootstrap"
    say("python3-venv is not installed: using virtualenv in build/bootstrap instead")
    run([python, "-m", "pip", "install", "--quiet", "--upgrade", "--target", str(tools), "virtualenv"])
    code = (
        "import sys; sys.path.insert(0, sys.argv.pop(1)); import virtualenv; virtualenv.cli_run(sys.argv[1:])"
    )
    run([python, "-c", code, str(tools), "--quiet", str(folder)])


def digest(*parts: str) -> str:
    """Return what an environment depends on as one short text."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def current(stamp_file: Path, stamp: str) -> bool:
    """Tell whether the work that `stamp` describes is done already."""
    return stamp_file.is_file() and stamp_file.read_text() == stamp


def same_python(folder: Path, python: Path) -> bool:
    """Tell whether a complete environment of this Python is there, so that renewing its packages is enough."""
    stamp = folder / ".made-from"
    return stamp.is_file() and stamp.read_text().split("\n")[0] == str(python)


def make(kind: str, folder: Path) -> None:
    """Make the environment of this kind in `folder`, or the part of it that is not up to date."""
    lock_name, versions, _default, with_project = KINDS[kind]
    python = next(iter(interpreters.find(versions).values()), None)
    if python is None:
        give_up("no Python {} found on this machine.".format(" or ".join(versions)), NO_PYTHON)
    lock = f"{python}\n{digest((ROOT / lock_name).read_text())}"
    shown = os.path.relpath(str(folder), str(ROOT))
    pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    if not current(folder / ".made-from", lock):
        version = interpreters.version(python)
        say(f"making {shown} with Python {version} from {lock_name} (about a minute)")
        if not same_python(folder, python):
            create(str(python), folder)
        run([*pip, "--require-hashes", "--no-compile", "-r", str(ROOT / lock_name)])
        (folder / ".made-from").write_text(lock)
    project = digest(lock, (ROOT / "pyproject.toml").read_text(), (ROOT / "setup.py").read_text())
    if with_project and not current(folder / ".project-from", project):
        run([*pip, "--no-deps", "--no-build-isolation", "--editable", str(ROOT)])
        (folder / ".project-from").write_text(project)


def main(argv: list[str]) -> int:
    """Make the environment that `argv` names; a second call at the same time waits for the first."""
    if not argv or argv[0] not in KINDS or len(argv) > 2:
        give_up("say which environment: " + " or ".join(sorted(KINDS)))
    folder = ROOT / (argv[1] if len(argv) > 1 else KINDS[argv[0]][2])
    (ROOT / "build").mkdir(exist_ok=True)
    with open(str(ROOT / "build" / ".venv.lock"), "w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        make(argv[0], folder)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
