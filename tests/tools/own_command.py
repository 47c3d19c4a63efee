# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How to run the command `rdma-k8s` of these very sources."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import tree


def command_line() -> tuple[list[str], dict[str, str]]:
    """Return the words that start the command, and the environment that it needs.

    The development environment has the command too, but may have it from another copy of the sources.
    """
    folder = tree.BUILD / "cli"
    folder.mkdir(parents=True, exist_ok=True)
    link = folder / "rdma_k8s"
    if not link.is_symlink():
        link.symlink_to(Path("..", "..", "plugins", "module_utils"))
    env = {**os.environ, "PYTHONPATH": str(folder), "LC_ALL": "C.UTF-8"}
    return [sys.executable, "-m", "rdma_k8s.cli.main"], env
