# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where ``ansible_collections.rdma.k8s`` can be imported from, for scripts that are started by themselves."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def make_importable() -> None:
    """Put the folder above ``ansible_collections`` on the import path.

    An installed collection stands in such a folder. The sources do not, so their copy in ``build/`` is brought up to
    date.
    """
    if "ansible_collections" in sys.modules or _found():
        return
    if ROOT.parts[-3:] == ("ansible_collections", "rdma", "k8s"):
        sys.path.insert(0, str(ROOT.parents[2]))
        return
    sys.path.insert(0, str(ROOT / "tests" / "tools"))
    import tree

    tree.sync()
    sys.path.insert(0, str(tree.COLLECTIONS))


def _found() -> bool:
    try:
        return importlib.util.find_spec("ansible_collections.rdma.k8s.tests.support") is not None
    except ImportError:
        return False
