# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run the commands of a page exactly as they are written, in a fresh copy of the sources and an empty home.

Beside the sources lies what a reader brings: the tarball of the release, and an inventory (of this machine).

Usage: python tests/tools/readme_commands.py README.md

Each fenced block marked ``shell`` is one script and must end with exit code 0. A line ``<!-- not run: REASON -->``
before a block names why it cannot run here; ``<!-- or exit code N: REASON -->`` allows a second end. Commands that are
a gate of their own (``make test`` and its parts) are not run a second time, but their target must exist. Prints each
block's verdict and, last, ``N passed, M failed``.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import tree

WORK = tree.BUILD / "readme"
LIMIT = 900
INVENTORY = (
    "all: {hosts: {this-machine: {ansible_connection: local, ansible_python_interpreter: auto_silent}}}\n"
)
GATES = re.compile(r"make (test|unit|vectors|lint|sanity|integration|e2e|lab-up|lab-down|bench|mutation)\b.*")
NOTE = r"(?:^<!-- (?:not run: (?P<reason>[^\n]+?)|or exit code (?P<code>\d+): [^\n]+?) -->\n+)?"
BLOCK = re.compile(NOTE + r"^```shell\n(?P<script>.*?)^```$", re.M | re.S)


def fresh_copy() -> Path:
    """Return a folder with the sources, the development environment, and nothing made before."""
    shutil.rmtree(WORK, ignore_errors=True)
    source = WORK / "rdma.k8s"
    for name in tree.listed_files():
        target = source / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(tree.ROOT / name, target, follow_symlinks=False)
    subprocess.run(["git", "init", "--quiet", str(source)], check=True)
    subprocess.run(["git", "-C", str(source), "add", "--all"], check=True, stderr=subprocess.DEVNULL)
    (source / ".venv").symlink_to(tree.ROOT / ".venv")
    shutil.copy2(next(tree.DIST.glob("*.tar.gz"), None) or tree.build(), source)
    (source / "inventory.yml").write_text(INVENTORY)
    return source


def environment() -> dict[str, str]:
    """Return the environment of a user whose home is empty."""
    home = WORK / "home"
    home.mkdir(parents=True, exist_ok=True)
    kept = {
        name: value
        for name, value in tree.environment(home=home).items()
        if name != "ANSIBLE_COLLECTIONS_PATH"
    }
    for name in ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE", "CI", tree.FROZEN):
        kept.pop(name, None)
    return {**kept, "HOME": str(home), "XDG_CACHE_HOME": str(home / ".cache")}


def without_gates(script: str, makefile: str) -> tuple[str, list[str]]:
    """Return the script without the commands that are gates, and those of them that do not exist."""
    kept, lost = [], []
    for line in script.splitlines():
        found = GATES.fullmatch(line.split("#")[0].strip())
        if not found:
            kept.append(line)
        elif not re.search(rf"^{found[1]}:", makefile, re.M):
            lost.append(found[1])
    return "\n".join(kept), lost


def main(page: str) -> int:
    """Run the blocks of `page`."""
    text = (tree.ROOT / page).read_text()
    source, env = fresh_copy(), environment()
    passed = failed = 0
    for found in BLOCK.finditer(text):
        first = found["script"].strip().splitlines()[0]
        if found["reason"]:
            print(f"not run: {first} ({found['reason']})", flush=True)
            continue
        script, lost = without_gates(found["script"], (tree.ROOT / "Makefile").read_text())
        print(f"--- {found['script'].strip()}", flush=True)
        command = ["bash", "-euo", "pipefail", "-c", script]
        try:
            code = subprocess.run(
                command, cwd=source, env=env, stdin=subprocess.DEVNULL, timeout=LIMIT, check=False
            ).returncode
        except subprocess.TimeoutExpired:
            code = 124
        good = code in (0, int(found["code"] or 0)) and not lost
        passed, failed = passed + good, failed + (not good)
        print(f"--- exit code {code}" + "".join(f", make has no target {name}" for name in lost), flush=True)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
