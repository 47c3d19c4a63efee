# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Small documents that this collection keeps on a node, among them the undo records. Private to rdma.k8s."""

from __future__ import annotations

import json
import os
from typing import Any

from . import edits
from .files import Root

DIRECTORY = "/var/lib/rdma-k8s"


def make_directories(root: Root, *below: str) -> None:
    """Make our directory where it is missing, and those below it; for their owner only.

    :raises RdmaError: ``file_not_written``, ``file_unreadable``.
    """
    for directory in ("/var", "/var/lib", DIRECTORY, *below):
        if not os.path.isdir(edits.place_of(root, directory)):
            edits.make_directory(root, directory, 0o700 if directory.startswith(DIRECTORY) else 0o755)


def write(root: Root, path: str, document: Any) -> None:
    """Write a document as JSON, for its owner only; ``None`` removes it.

    :raises RdmaError: ``file_not_written``, ``file_unreadable``.
    """
    make_directories(root)
    if document is None:
        edits.write(root, path, None)
        return
    text = json.dumps(document, indent=1, sort_keys=True) + "\n"
    edits.write(root, path, edits.FileState(text.encode("utf-8"), 0o600, os.geteuid(), os.getegid()))
