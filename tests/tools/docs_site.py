# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Write the documentation site: plugins, roles and guides as HTML in ``build/docs``."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import tree

SITE = tree.BUILD / "docs"
WORK = tree.BUILD / "docs-source"


def run(*command: str) -> None:
    """Run a command and show its output only when it fails."""
    done = subprocess.run(
        command,
        cwd=WORK,
        env=tree.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"docs_site: {command[0]} failed:\n{done.stdout.decode('utf-8', 'replace')}")


def main() -> int:
    """Build the site."""
    tree.sync()
    shutil.rmtree(WORK, ignore_errors=True)
    shutil.rmtree(SITE, ignore_errors=True)
    WORK.mkdir(parents=True)
    docs = str(tree.BIN / "antsibull-docs")
    words = (
        "--use-current",
        "--squash-hierarchy",
        "--lenient",
        "--project",
        "rdma.k8s",
        "--title",
        "rdma.k8s",
    )
    run(
        docs,
        "sphinx-init",
        *words,
        "--copyright",
        "The rdma.k8s authors",
        "--dest-dir",
        str(WORK),
        "rdma.k8s",
    )
    (WORK / "rst").mkdir(exist_ok=True)
    words = (
        "--use-current",
        "--squash-hierarchy",
        "--cleanup",
        "similar-files",
        "--config-file",
        "antsibull-docs.cfg",
    )
    run(
        docs,
        *words[:0],
        "collection",
        "--use-current",
        "--squash-hierarchy",
        "--dest-dir",
        str(WORK / "rst"),
        "rdma.k8s",
    )
    run(str(tree.BIN / "sphinx-build"), "-q", "-b", "html", "-c", str(WORK), str(WORK / "rst"), str(SITE))
    index = SITE / "index.html"
    if not index.is_file():
        raise SystemExit("docs_site: no index.html was written")
    pages = sum(1 for _ in SITE.rglob("*.html"))
    print(f"wrote {pages} pages, begin with {os.path.relpath(index)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
