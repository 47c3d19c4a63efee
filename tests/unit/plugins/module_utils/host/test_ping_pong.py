# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A client of rping that fails at its own end is asked once more, any other is not."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.core.errors import RdmaError
from ansible_collections.rdma.k8s.plugins.module_utils.core.fabric import FabricProbe
from ansible_collections.rdma.k8s.plugins.module_utils.host import commands, probing
from ansible_collections.rdma.k8s.plugins.module_utils.host.files import Root

RACE = "'rping' failed with exit code 255: rdma_get_cm_event: Bad file descriptor."
REFUSED = "'rping' failed with exit code 255: RDMA_CM_EVENT_REJECTED, error 8."


@pytest.mark.parametrize(
    ("said", "verdict", "calls"),
    [([RACE], "ok", 2), ([RACE, RACE], "failed", 2), ([REFUSED], "failed", 1), ([], "ok", 1)],
    ids=["race", "race twice", "refused", "good"],
)
def test_a_lost_race_is_no_verdict(
    monkeypatch: pytest.MonkeyPatch, said: list[str], verdict: str, calls: int
) -> None:
    asked: list[list[str]] = []

    def run(root: Any, words: list[str], limit: float) -> None:
        asked.append(words)
        if len(asked) <= len(said):
            raise RdmaError("command_failed", said[len(asked) - 1])

    monkeypatch.setattr(commands, "run", run)
    entry = FabricProbe("rdma0", 0, "10.208.0.1", "far", "10.208.0.2")
    found = probing._ping_pong(Root(""), None, entry, probing.Limits())
    assert (found.rdma, len(asked)) == (verdict, calls)
