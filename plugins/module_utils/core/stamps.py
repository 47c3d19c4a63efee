# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Times of day as text, as this collection and the API of Kubernetes write them. Private to rdma.k8s: it may change."""

from __future__ import annotations

from datetime import datetime
from typing import Optional

STAMP = "%Y-%m-%dT%H:%M:%SZ"


def seconds_between(earlier: str, later: str) -> Optional[float]:
    """Seconds between two stamps ``YYYY-MM-DDThh:mm:ssZ``; ``None`` when one of them is not such a stamp.

    Less than 0 when the later one is the earlier one: clocks differ.
    """
    try:
        return (datetime.strptime(later, STAMP) - datetime.strptime(earlier, STAMP)).total_seconds()
    except ValueError:
        return None
