# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings for all unit tests."""

from __future__ import annotations

import os

from hypothesis import settings

from ansible_collections.rdma.k8s.tests.support.change_run import THOROUGH

# A shared machine may be slow, so time is no criterion of a property; the gates watch times elsewhere. An automatic run
# tries the same examples each time, so that its verdict depends on the sources alone. The further Pythons of the gates
# repeat what the first one tried in full, with fewer examples.
settings.register_profile(
    "rdma",
    deadline=None,
    derandomize=os.environ.get("CI") == "true",
    max_examples=100 if THOROUGH else 20,
    print_blob=True,
)
settings.load_profile("rdma")
