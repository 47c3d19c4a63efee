# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Renew the lock files in requirements/: exact versions with hashes, for every Python that a leg may use.

It uses uv, which it installs in build/lock; what it writes is installed by plain pip.
"""

from __future__ import annotations

import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LEGS = {"dev": "3.11", "next": "3.12", "browser": "3.11", "audit": "3.11", "bench": "3.11"}


def main() -> int:
    """Write requirements/<leg>.txt for each leg."""
    folder = ROOT / "build" / "lock"
    if not (folder / "bin" / "uv").is_file():
        venv.create(folder, with_pip=True)
        subprocess.run([str(folder / "bin" / "pip"), "install", "--quiet", "uv"], check=True)
    for leg, oldest in LEGS.items():
        options = [
            "--universal",
            "--python-version",
            oldest,
            "--generate-hashes",
            "--no-header",
            "--quiet",
            "--upgrade",
        ]
        files = [f"requirements/{leg}.in", "--output-file", f"requirements/{leg}.txt"]
        subprocess.run([str(folder / "bin" / "uv"), "pip", "compile", *options, *files], cwd=ROOT, check=True)
        print(f"wrote requirements/{leg}.txt")
    return 0


if __name__ == "__main__":
    sys.exit(main())
