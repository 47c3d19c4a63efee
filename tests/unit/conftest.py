# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings of all unit tests."""

from __future__ import annotations

from hypothesis import settings

# How long an example takes says more about the other jobs of the machine than about the code.
settings.register_profile("rdma", deadline=None, print_blob=True)
settings.load_profile("rdma")
