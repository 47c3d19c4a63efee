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


def copy_pages() -> None:
    """Put the pages of docs/ beside the generated ones, apart from what antsibull-docs reads itself."""
    for source in sorted((tree.COPY / "docs").rglob("*")):
        name = source.relative_to(tree.COPY / "docs")
        if source.is_file() and name.parts[0] != "docsite":
            target = WORK / "rst" / "pages" / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target)


def main() -> int:
    """Build the site."""
    tree.sync()
    for folder in (WORK, SITE):
        shutil.rmtree(folder, ignore_errors=True)
    WORK.mkdir(parents=True)
    docs = str(tree.BIN / "antsibull-docs")
    names = ["--project", "rdma.k8s", "--title", "rdma.k8s", "--copyright", "The rdma.k8s authors"]
    common = ["--use-current", "--squash-hierarchy"]
    index = ["--index-rst-source", str(tree.COPY / "docs" / "docsite" / "index.rst")]
    run(docs, "sphinx-init", *common, "--lenient", *names, *index, "--dest-dir", str(WORK), "rdma.k8s")
    (WORK / "rst").chmod(0o755)
    run(
        docs,
        "--config-file",
        "antsibull-docs.cfg",
        "collection",
        *common,
        "--dest-dir",
        str(WORK / "rst"),
        "rdma.k8s",
    )
    copy_pages()
    # References into the sites of other projects need the network, so they stay plain text.
    settings = ["-D", "extensions=sphinx_antsibull_ext,myst_parser", "-D", "suppress_warnings=ref.*,toc.*"]
    run(
        str(tree.BIN / "sphinx-build"),
        "-q",
        "-b",
        "html",
        "-c",
        str(WORK),
        *settings,
        str(WORK / "rst"),
        str(SITE),
    )
    first = SITE / "index.html"
    if not first.is_file():
        raise SystemExit("docs_site: no index.html was written")
    print(f"wrote {len(list(SITE.rglob('*.html')))} pages, begin with {os.path.relpath(first)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
