# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a wait says of itself."""

from __future__ import annotations

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.core.standing import waiting


@pytest.mark.parametrize(
    ("lacking", "text"),
    [
        ([], "waiting at most 300 s"),
        (["3 of 8 pods are ready."], "waiting at most 300 s: 3 of 8 pods are ready"),
        (["3 of 8 pods are ready.", "b", "c"], "waiting at most 300 s: 3 of 8 pods are ready, and 2 more"),
    ],
)
def test_waiting(lacking: list[str], text: str) -> None:
    assert waiting(300.0, lacking) == text
