# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The SDKs are heavy and only the controller needs them, so the second leg of the tests does without them.

The development environment has them: there the tests run, and a missing one is a failure. They are no tests of what
runs on the Pythons of nodes, so they do not stand below ``plugins``.
"""

from __future__ import annotations

import importlib.util

from ansible_collections.rdma.k8s.tests.support.change_run import THOROUGH

NEEDED = {
    "test_oci_network.py": "oci",
    "test_ack_addon.py": "alibabacloud_cs20151215",
    "test_ack_fabric.py": "alibabacloud_eflo_controller20221215",
}
collect_ignore = [
    name for name, library in NEEDED.items() if not THOROUGH and importlib.util.find_spec(library) is None
]
