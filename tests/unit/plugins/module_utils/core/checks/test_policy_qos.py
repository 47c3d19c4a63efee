# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a policy says that RDMA traffic is to be marked."""

from __future__ import annotations

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.core.checks.policy import Policy
from ansible_collections.rdma.k8s.plugins.module_utils.core.errors import RdmaError
from ansible_collections.rdma.k8s.plugins.module_utils.core.roce_qos import Wish


@pytest.mark.parametrize(
    ("settings", "wish"),
    [
        ({}, None),  # decision 4: a priority has no default
        ({"rdma_priority": 5, "cnp_priority": 6}, Wish(5, 6, 40, 48)),
        ({"rdma_priority": 0, "cnp_priority": 7}, Wish(0, 7, 0, 56)),
        ({"rdma_priority": 3, "cnp_priority": 6, "rdma_dscp": 26, "cnp_dscp": 50}, Wish(3, 6, 26, 50)),
    ],
)
def test_the_wish_of_a_policy(settings: dict[str, int], wish: object) -> None:
    """S49."""
    assert Policy.from_dict(settings).qos == wish


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"rdma_priority": 5}, "belong together"),
        ({"cnp_priority": 0}, "belong together"),
        ({"rdma_dscp": 40}, "belong together"),
        ({"rdma_priority": 5, "cnp_priority": 5}, "two priorities, found 5 for both"),
        ({"rdma_priority": 3, "cnp_priority": 6, "rdma_dscp": 40}, "priority 3 is one of 24 to 31, found 40"),
        ({"rdma_priority": 8, "cnp_priority": 6}, "must be 0 to 7, found 8"),
    ],
)
def test_a_wrong_wish_is_refused_before_any_node_is_asked(settings: dict[str, int], words: str) -> None:
    """S50."""
    with pytest.raises(RdmaError, match=words) as caught:
        Policy.from_dict(settings)
    assert caught.value.code == "policy_value"
