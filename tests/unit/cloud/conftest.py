# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The SDK is heavy and only the controller needs it, so the second leg of the tests does without it.

The development environment has it: there the tests run, and a missing SDK is a failure. They are no tests of what runs
on the Pythons of nodes, so they do not stand below ``plugins``.
"""

from __future__ import annotations

import importlib.util

from ansible_collections.rdma.k8s.tests.support.change_run import THOROUGH

collect_ignore = ["test_oci_network.py"] if not THOROUGH and importlib.util.find_spec("oci") is None else []
