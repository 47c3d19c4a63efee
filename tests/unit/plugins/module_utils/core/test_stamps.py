# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Times of day as text."""

from __future__ import annotations

from typing import Optional

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.core.stamps import seconds_between


@pytest.mark.parametrize(
    ("earlier", "later", "seconds"),
    [
        ("2026-01-01T00:00:00Z", "2026-01-01T01:00:01Z", 3601.0),
        ("2025-12-31T23:59:59Z", "2026-01-01T00:00:00Z", 1.0),
        ("2026-01-01T02:00:00Z", "2026-01-01T01:00:00Z", -3600.0),
        ("2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z", 0.0),
        ("", "2026-01-01T01:00:00Z", None),
        ("2026-01-01T01:00:00Z", "", None),
        ("2026-01-01T01:00:00Z", "2026-01-01T01:00:00+00:00", None),
        ("2026-01-01", "2026-01-01", None),
        ("2026-01-01T01:00:00.000000Z", "2026-01-01T01:00:00Z", None),
    ],
)
def test_seconds_between_two_stamps(earlier: str, later: str, seconds: Optional[float]) -> None:
    """Of one form only: what people wrote in another one is no stamp."""
    assert seconds_between(earlier, later) == seconds
