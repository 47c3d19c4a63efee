# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Programs that some tests need: those of the machine, or Debian's packages where this user may install them."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import tree
from gate_model import Job

CHROMIUM = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def find(names: tuple[str, ...]) -> str | None:
    """Return the path of the first of these programs that the machine has, in the folders of root too."""
    path = os.pathsep.join((os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"))
    return next(filter(None, (shutil.which(name, path=path) for name in names)), None)


def get(job: Job, names: tuple[str, ...], *packages: str) -> str | None:
    """Return the path of one of these programs, installing `packages` when this user may; None when that fails."""
    found = find(names)
    if found or os.geteuid() != 0 or not shutil.which("apt-get"):
        return found
    env = {**tree.environment(), "DEBIAN_FRONTEND": "noninteractive"}
    quiet = ("-q", "-o", "DPkg::Lock::Timeout=600")
    job.say(f"no {names[0]} here: installing {' '.join(packages)}")
    job.run("apt-get", *quiet, "update", env=env, timeout=600)
    job.run("apt-get", *quiet, "install", "-y", "--no-install-recommends", *packages, env=env, timeout=900)
    return find(names)


def unpacked(job: Job, package: str, program: str) -> Path | None:
    """Return the path of a program of a package that is unpacked below build/, not installed: it may bring a service.

    None on a machine without apt-get.
    """
    folder = tree.BUILD / "debian" / package
    found = folder / program
    if found.is_file() or not shutil.which("apt-get"):
        return found if found.is_file() else None
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    fetch = ("apt-get", "-q", "-o", "APT::Sandbox::User=root", "download", package)
    if job.run(*fetch, cwd=folder)[0]:
        if os.geteuid() == 0:
            job.run("apt-get", "-q", "-o", "DPkg::Lock::Timeout=600", "update", timeout=600)
        job.run(*fetch, cwd=folder)
    for archive in folder.glob("*.deb"):
        job.run("dpkg-deb", "-x", archive, folder)
    return found if found.is_file() else None
