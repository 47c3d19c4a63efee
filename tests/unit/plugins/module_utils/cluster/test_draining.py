# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A drain tells what it waits for, at each look."""

from __future__ import annotations

from typing import Any, Optional

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.cluster import draining, rdma_users
from ansible_collections.rdma.k8s.plugins.module_utils.core.roll.draining import Look, Wish
from ansible_collections.rdma.k8s.plugins.module_utils.core.roll.model import User
from ansible_collections.rdma.k8s.plugins.module_utils.core.roll.users import Scope

SERVER = User("a", "serve-0", "u2", "resource", "rdma/hca", "ReplicaSet a/serve", "ReplicaSet")


class Followed:
    """What is heard of the nodes, one look after the other; each takes a second."""

    blind = False

    def __init__(self, *looks: list[Look]) -> None:
        self.now = 100.0
        self._looks = list(looks)

    def looks(self) -> list[Look]:
        return self._looks.pop(0) if len(self._looks) > 1 else self._looks[0]

    def wait(self, _seconds: float) -> None:
        self.now += 1


class Evictions:
    """The API takes each eviction."""

    reasons: Optional[dict[str, str]] = None
    failed: Optional[dict[str, Any]] = None

    def __init__(self) -> None:
        self.asked: list[str] = []

    def ask(self, wanted: list[User]) -> None:
        self.asked += [user.name for user in wanted]

    def due(self) -> float:
        return 5.0


def test_what_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    empty = [Look("n1"), Look("n2")]
    followed = Followed([Look("n1", (SERVER,)), Look("n2")], [Look("n1", (), ("a/nics",)), Look("n2")], empty)
    monkeypatch.setattr(rdma_users, "look", lambda *_given, **_options: empty)
    drainer = draining.Drainer(
        object(),  # type: ignore[arg-type]
        ["n1", "n2"],
        Scope("dra.net"),
        tell=told.append,
        clock=lambda: followed.now,
    )
    evictions = Evictions()
    drainer._empty(Wish(pods=50, claims=40), evictions, followed)  # type: ignore[arg-type]
    assert evictions.asked == ["serve-0"]
    assert told[:3] == [
        "waiting at most 50 s for 1 pod on 1 node to go",
        "waiting at most 40 s for 1 claim on 1 node to be released",
        "looking once more at empty nodes",
    ]
