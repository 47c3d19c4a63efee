# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Entry point of ``python3 tests/lab``: makes the directory importable as the package ``lab``."""

from __future__ import annotations

import pathlib
import sys

if sys.version_info < (3, 11):
    sys.exit(f"tests/lab needs Python 3.11 or newer; this is {sys.version.split(maxsplit=1)[0]}.")

if __package__:
    from .cli import main
else:
    sys.path[0] = str(pathlib.Path(__file__).resolve().parent.parent)
    from lab.cli import main

if __name__ == "__main__":
    sys.exit(main())
