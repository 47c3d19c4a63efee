# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Python's search for cycles, where there are none."""

from __future__ import annotations

import gc

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.garbage import without_collection


@pytest.mark.parametrize("enabled", [True, False])
def test_the_collector_of_cycles_is_as_before(enabled: bool) -> None:
    """Also after an error, and when somebody else had it off."""
    before = gc.isenabled()

    def fail() -> None:
        with without_collection():
            assert not gc.isenabled()
            raise KeyError

    try:
        gc.enable() if enabled else gc.disable()
        with pytest.raises(KeyError):
            fail()
        assert gc.isenabled() is enabled
    finally:
        gc.enable() if before else gc.disable()
