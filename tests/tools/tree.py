# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The copy of the sources that Ansible's tools need, and the environment that they run in.

Ansible finds a collection only in a folder ``ansible_collections/<namespace>/<name>``, so the files that git
lists (tracked, or new and not ignored) are copied to ``build/root/ansible_collections/rdma/k8s``. The copy is a git
work tree of its own, so that tools which ask git for the files see the same ones there.

Usage: python tests/tools/tree.py            bring the copy up to date and print its path
       python tests/tools/tree.py --build    also build the tarball in build/dist and print its path
"""

from __future__ import annotations

import configparser
import fcntl
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import interpreters
import release

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build"
COLLECTIONS = BUILD / "root"
COPY = COLLECTIONS / "ansible_collections" / "rdma" / "k8s"
DIST = BUILD / "dist"
BIN = Path(sys.executable).parent
FROZEN = "RDMA_K8S_FROZEN_COPY"
NODE_PYTHONS = ("3.9", "3.10", "3.11", "3.12", "3.13", "3.14")

# ansible-test fetches the program that brings pip into its environments from a host of its own. It takes a file in
# its cache instead, so this one does the same with what the machine has.
PIP_PROGRAM = """\
import subprocess
import sys

wanted = [word for word in sys.argv[1:] if not word.startswith("--no-")]
quiet = {{"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}}
if subprocess.call([sys.executable, "-m", "ensurepip", "--default-pip"], **quiet) == 0:
    pip = [sys.executable, "-m", "pip"]
else:
    pip = [{helper!r}, "-m", "pip", "--python", sys.executable]
sys.exit(subprocess.call(pip + ["install", "--quiet"] + wanted))
"""


def listed_files() -> list[str]:
    """Return the files of the work tree that git tracks, or would track, as relative paths."""
    command = ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout.decode().split("\0")
    return sorted(
        {name for name in names if (name and (ROOT / name).is_symlink()) or (ROOT / name).is_file()}
    )


def _same(source: Path, target: Path) -> bool:
    """Tell whether `target` is a copy of `source` already, by kind, size, mode and time."""
    if not os.path.lexists(target):
        return False
    new, old = source.lstat(), target.lstat()
    return (new.st_mode, new.st_size, new.st_mtime_ns) == (old.st_mode, old.st_size, old.st_mtime_ns)


def sync() -> Path:
    """Bring the copy up to date and return its folder; files that tools wrote into it stay.

    While the gates run, their copy stays as it was when they began.
    """
    if os.environ.get(FROZEN) == str(COPY):
        return COPY
    COPY.mkdir(parents=True, exist_ok=True)
    with (BUILD / ".sync.lock").open("w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        manifest = BUILD / ".synced"
        before = set(manifest.read_text().splitlines()) if manifest.is_file() else set()
        files = listed_files()
        manifest.write_text("\n".join(sorted(before.union(files))))
        for name in sorted(before.difference(files)):
            (COPY / name).unlink(missing_ok=True)
            for folder in (COPY / name).relative_to(COPY).parents:
                if folder.parts and (COPY / folder).is_dir():
                    _remove_if_empty(COPY / folder)
        for name in files:
            source, target = ROOT / name, COPY / name
            if not _same(source, target):
                target.parent.mkdir(parents=True, exist_ok=True)
                target.unlink(missing_ok=True)
                shutil.copy2(source, target, follow_symlinks=False)
        manifest.write_text("\n".join(files))
        if not (COPY / ".git").is_dir():
            subprocess.run(["git", "init", "--quiet", str(COPY)], check=True)
        subprocess.run(["git", "-C", str(COPY), "add", "--all"], check=True, stderr=subprocess.DEVNULL)
    return COPY


def _remove_if_empty(folder: Path) -> None:
    """Remove a folder in which no source is left (compiled files do not count)."""
    shutil.rmtree(folder / "__pycache__", ignore_errors=True)
    if not any(folder.iterdir()):
        folder.rmdir()


def path_variable() -> str:
    """Return a PATH with the tools of this environment first and real interpreters instead of shims."""
    pythons = interpreters.find(NODE_PYTHONS)
    rest = [
        entry for entry in os.environ.get("PATH", os.defpath).split(os.pathsep) if Path(entry).name != "shims"
    ]
    entries = [str(BIN), *(str(python.parent) for python in pythons.values()), *rest]
    return os.pathsep.join(dict.fromkeys(entries))


def environment(*, home: Path | None = None) -> dict[str, str]:
    """Return the environment variables for Ansible's tools.

    Nothing of the user's own Ansible configuration applies, and caches of the tools stay out of the sources.
    """
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("ANSIBLE_", "MOLECULE_"))
    }
    kept.update(
        PATH=path_variable(),
        LC_ALL="C.UTF-8",
        ANSIBLE_COLLECTIONS_PATH=str(COLLECTIONS),
        ANSIBLE_NOCOLOR="1",
        NO_COLOR="1",
        ANSIBLE_HOME=str((home or tool_home()) / ".ansible"),
        HYPOTHESIS_STORAGE_DIRECTORY=str(BUILD / "cache" / "hypothesis"),
        MYPY_CACHE_DIR=str(BUILD / "cache" / "mypy"),
        RUFF_CACHE_DIR=str(BUILD / "cache" / "ruff"),
        PYTHONDONTWRITEBYTECODE="1",
        PIP_DISABLE_PIP_VERSION_CHECK="1",
    )
    return kept


def tool_home() -> Path:
    """Return a home folder for Ansible's tools, kept between runs, apart from the user's own.

    ansible-test keeps its environments in the home folder, and drops every variable that configures pip on the
    way. So the folder has the user's pip configuration, and nothing else of the user.
    """
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    home = cache / "rdma-k8s" / "home"
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    for name in (".config/pip", ".cache/pip", ".netrc"):
        theirs, ours = Path.home() / name, home / name
        if theirs.exists() and not os.path.lexists(ours):
            ours.parent.mkdir(parents=True, exist_ok=True)
            ours.symlink_to(theirs)
    settings = configparser.RawConfigParser()
    settings.read(Path.home() / ".pip" / "pip.conf")
    if not settings.has_section("global"):
        settings.add_section("global")
    for variable, value in os.environ.items():
        if variable.startswith("PIP_") and variable != "PIP_CONFIG_FILE":
            settings.set("global", variable[4:].lower().replace("_", "-"), value)
    (home / ".pip").mkdir(exist_ok=True, mode=0o700)
    with open(
        home / ".pip" / "pip.conf", "w", opener=lambda path, flags: os.open(path, flags, 0o600)
    ) as file:
        settings.write(file)
    return home


def ansible_test_environment(python: Path) -> dict[str, str]:
    """Return the environment for the ansible-test that belongs to the interpreter `python`."""
    home = tool_home()
    code = "import ansible_test._internal.python_requirements as m; print(m.__file__)"
    found = (
        subprocess.run([str(python), "-c", code], stdout=subprocess.PIPE, check=True).stdout.decode().strip()
    )
    version = re.search(r"pip='([0-9.]+)'", Path(found).read_text())
    if version is None:
        raise SystemExit(
            "tree: this ansible-test does not say which pip it uses; tests/tools/tree.py must learn its way."
        )
    cache = home / ".ansible" / "test" / "cache"
    cache.mkdir(parents=True, exist_ok=True)
    program = cache / f"get_pip_{version[1].replace('.', '_')}.py"
    program.write_text(PIP_PROGRAM.format(helper=str(python)))
    return {**environment(home=home), "HOME": str(home)}


def build() -> Path:
    """Build the tarball of the collection from the copy, write what lies beside it, and return its path."""
    shutil.rmtree(DIST, ignore_errors=True)
    DIST.mkdir(parents=True)
    command = [str(BIN / "ansible-galaxy"), "collection", "build", "--output-path", str(DIST), str(COPY)]
    done = subprocess.run(
        command, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
    )
    if done.returncode:
        raise SystemExit(
            f"tree: ansible-galaxy collection build failed:\n{done.stdout.decode('utf-8', 'replace')}"
        )
    tarball = next(DIST.glob("*.tar.gz"))
    release.write(tarball, COPY)
    return tarball


if __name__ == "__main__":
    sync()
    print(os.path.relpath(build() if "--build" in sys.argv[1:] else COPY))
