# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The version of the collection; a test keeps it equal to galaxy.yml. Private to rdma.k8s: it may change any time."""

from __future__ import annotations

VERSION = "0.1.0"
