# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Damage input of the core for a bounded time; tests/support/fuzzing.py does it.

Usage: python tests/tools/fuzz.py [--seconds S] [--seed N] [--only TARGET] [--case NUMBER]
"""

from __future__ import annotations

import importlib
import sys

import tree


def main() -> int:
    """Start it from the copy of the sources."""
    tree.sync()
    sys.path.insert(0, str(tree.COLLECTIONS))
    fuzzing = importlib.import_module("ansible_collections.rdma.k8s.tests.support.fuzzing")
    return int(fuzzing.main(tree.BUILD / "test" / "fuzz"))


if __name__ == "__main__":
    sys.exit(main())
