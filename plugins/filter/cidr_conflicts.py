# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Documented in cidr_conflicts.yml."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ansible_collections.rdma.k8s.plugins.plugin_utils.addresses import cidr_conflicts


class FilterModule:
    """Names the filter."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"cidr_conflicts": cidr_conflicts}
