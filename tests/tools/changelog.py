# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Make the changelog of the current version from its fragments and the plugins that the tree holds.

Usage: python tests/tools/changelog.py             write CHANGELOG.md, CHANGELOG.rst, changelogs/changelog.yaml
       python tests/tools/changelog.py --check     say whether they are up to date, exit code 1 if not

The fragments stay until the next version begins, so the files of a version in the making can be made anew at any
time.
"""

from __future__ import annotations

import datetime
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import yaml

import tree

FILES = ("CHANGELOG.md", "CHANGELOG.rst", "changelogs/changelog.yaml")


def make(folder: Path) -> None:
    """Write the files in `folder`, a copy of the collection."""
    version = yaml.safe_load((folder / "galaxy.yml").read_text())["version"]
    state = folder / "changelogs" / "changelog.yaml"
    releases = (yaml.safe_load(state.read_text()) if state.is_file() else None) or {
        "ancestor": None,
        "releases": {},
    }
    before = releases["releases"].pop(version, {})
    state.write_text(yaml.safe_dump(releases))
    date = str(before.get("release_date") or datetime.datetime.now(datetime.timezone.utc).date())
    command = [str(tree.BIN / "antsibull-changelog"), "release", "--date", date, "--reload-plugins"]
    env = {**tree.environment(), "ANSIBLE_COLLECTIONS_PATH": str(folder.parents[2])}
    done = subprocess.run(
        command, cwd=folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
    )
    if done.returncode:
        raise SystemExit(f"changelog: antsibull-changelog failed:\n{done.stdout.decode('utf-8', 'replace')}")


def main(check: bool) -> int:
    """Write or compare the files."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "ansible_collections" / "rdma" / "k8s"
        shutil.copytree(tree.sync(), folder, ignore=shutil.ignore_patterns(".git", "output"), symlinks=True)
        make(folder)
        stale = [name for name in FILES if not _equal(folder / name, tree.ROOT / name)]
        if not check:
            for name in stale:
                shutil.copy(folder / name, tree.ROOT / name)
                print(f"wrote {name}")
            return 0
    print("\n".join(f"{name} is not up to date" for name in stale) or "the changelog is up to date")
    return 1 if stale else 0


def _equal(new: Path, old: Path) -> bool:
    """Tell whether both files exist with the same content."""
    return old.is_file() and new.read_bytes() == old.read_bytes()


if __name__ == "__main__":
    sys.exit(main("--check" in sys.argv[1:]))
