# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Chromium for the tests of the HTML report: the one of the system, or Debian's package when we may install it."""

from __future__ import annotations

import os
import shutil

import tree
from gate_model import Job

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def find() -> str | None:
    """Return the path of a Chromium that this machine has: RDMA_K8S_CHROMIUM, or one on the path."""
    return os.environ.get("RDMA_K8S_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)


def get(job: Job) -> str | None:
    """Return the path of a Chromium, installing Debian's package when this user may; None when that fails."""
    found = find()
    if found or os.geteuid() != 0 or not shutil.which("apt-get"):
        return found
    env = {**tree.environment(), "DEBIAN_FRONTEND": "noninteractive"}
    job.say("no Chromium here: installing Debian's package chromium")
    job.run("apt-get", "update", "-q", env=env, timeout=600)
    job.run(
        "apt-get",
        "install",
        "-y",
        "-q",
        "--no-install-recommends",
        "chromium",
        "fonts-dejavu-core",
        env=env,
        timeout=900,
    )
    return find()
