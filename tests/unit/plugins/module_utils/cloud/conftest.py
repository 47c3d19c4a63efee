# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The SDK is heavy and only the controller needs it, so the further Pythons that repeat the tests do without it.

The development environment has it: there the tests run, and a missing SDK is a failure.
"""

from __future__ import annotations

import importlib.util
import os

AGAIN = {"ANSIBLE_TEST_CONTENT_ROOT", "RDMA_K8S_FEWER_EXAMPLES"} & set(os.environ)
collect_ignore = ["test_oci_network.py"] if AGAIN and importlib.util.find_spec("oci") is None else []
