# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Find real Python interpreters: never a version manager's shim, which fails when its version is not active.

Standard library alone and Python 3.8 syntax: make_venv.py uses it before any environment exists.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path


def _places() -> list[Path]:
    """Return the folders to look in: PATH first, then where version managers keep what they installed."""
    places = [Path(entry) for entry in os.environ.get("PATH", os.defpath).split(os.pathsep) if entry]
    homes = [
        os.environ.get("PYENV_ROOT", ""),
        "~/.pyenv",
        "~/.local/share/mise/installs/python",
        "~/.asdf/installs/python",
    ]
    for home in homes:
        if home:
            base = Path(home).expanduser()
            places += sorted(base.glob("versions/*/bin"), reverse=True) + sorted(
                base.glob("*/bin"), reverse=True
            )
    return places


def _real(candidate: Path, wanted: str) -> Path | None:
    """Return the interpreter behind `candidate`, or None when it does not start or has another version."""
    code = "import sys; print('%d.%d' % sys.version_info[:2]); print(getattr(sys, '_base_executable', sys.executable))"
    try:
        done = subprocess.run(
            [str(candidate), "-c", code],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=30,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    lines = done.stdout.decode("utf-8", "replace").split("\n")
    if done.returncode or lines[0] != wanted:
        return None
    path = Path(lines[1])
    named = path.parent / ("python" + wanted)
    return named if named.exists() else path


def find(versions: tuple[str, ...]) -> dict[str, Path]:
    """Return version -> interpreter for those of `versions` that this machine has, in the order given."""
    found: dict[str, Path] = {}
    places = _places()
    for wanted in versions:
        for place in places:
            candidate = place / ("python" + wanted)
            real = _real(candidate, wanted) if candidate.exists() else None
            if real is not None:
                found[wanted] = real
                break
    return found


def version(python: Path) -> str:
    """Return the full version of an interpreter, such as 3.11.7."""
    code = "import platform; print(platform.python_version())"
    return (
        subprocess.run([str(python), "-c", code], stdout=subprocess.PIPE, check=True).stdout.decode().strip()
    )
