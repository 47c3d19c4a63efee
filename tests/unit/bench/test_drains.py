# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""B13: what is compared are the same drains, and one that removed the wrong pods is no measurement."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from ansible_collections.rdma.k8s.tests.bench import run

drains, measure = run.benches.drains, run.benches.drains.measure


def some(wall: float, nodes: int = 1) -> list[Any]:
    kubectl = [
        drains.Drain("kubectl", nodes, 4.0 * nodes, 0.1),
        drains.Drain("kubectl", nodes, 2.0 * nodes, 0.1),
    ]
    return [*kubectl, *[drains.Drain("rdma.k8s", nodes, wall, 2.0, 3.5, 1.5)] * 2]


def test_seconds_a_node_over_kubectl() -> None:
    found = drains.compare([*some(6.0), *some(9.0, 3)], 3)
    assert (found.kubectl, found.ours, found.start, found.over) == (3, 3, 0.5, -0.5)
    assert len(found.row) == len(drains.HEADS)
    with pytest.raises(measure.BenchError, match="2 and 1 drains of 1 nodes"):
        drains.compare(some(6.0)[:-1], 1)
    with pytest.raises(measure.BenchError, match="0 and 0 drains"):
        drains.compare(some(6.0), 2)


@pytest.mark.parametrize(("wall", "missed"), [(7.4, 0), (7.6, 1)])
def test_three_seconds_are_the_limit(wall: float, missed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drains, "measured", lambda: [*some(wall), *some(9.0, 3)])
    bench = run.benches.drain_overhead()
    assert len(run.missed([bench], quick=False)) == missed
    assert [target.limit for target in bench.targets] == [3, 3]
    assert [row[0] for row in bench.table[1:]] == [1, 3]
    assert bench.baselines["kubectl drain, 1 at a time"] == {"s_a_node": 3}


def test_the_result_of_a_module() -> None:
    text = '[WARNING]: x\nlocalhost | CHANGED => {\n "seconds": 3.5, "evicted": ["a/b"]\n}\nmore'
    assert drains.outcome(text)["seconds"] == 3.5
    with pytest.raises(measure.BenchError, match="told no result"):
        drains.outcome("nothing")


class Slot:
    """Pods by app: UID to node."""

    def __init__(self) -> None:
        self.there = {
            "train": {"t1": "n1", "t2": "n2"},
            "cpu": {"c1": "n1"},
            "rdma-k8s-provider": {"d1": "n1"},
        }

    def pods(self, app: str, running: bool = True) -> dict[str, Any]:
        assert running is False
        return {uid: {"spec": {"nodeName": node}} for uid, node in self.there[app].items()}


@pytest.mark.parametrize(
    ("gone", "good"),
    [
        ([("train", "t1")], True),
        ([], False),
        ([("train", "t2")], False),
        ([("train", "t1"), ("cpu", "c1")], False),
        ([("train", "t1"), ("rdma-k8s-provider", "d1")], False),
    ],
)
def test_a_drain_takes_the_users_and_nothing_else(gone: list[tuple[str, str]], good: bool) -> None:
    slot = Slot()

    def act(nodes: Sequence[str]) -> Any:
        for app, uid in gone:
            del slot.there[app][uid]
        slot.there["train"]["t9"] = ""  # the next one waits already
        return drains.Drain("kubectl", len(nodes), 1.0, 0.1)

    bench = drains._Bench(None, slot, None)
    if good:
        assert bench.judged(act, ["n1"]).wall == 1.0
    else:
        with pytest.raises(measure.BenchError, match="expected 1 users"):
            bench.judged(act, ["n1"])
