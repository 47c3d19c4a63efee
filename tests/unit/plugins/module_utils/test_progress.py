# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When work that takes long says what it is doing."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils import progress


class Clock:
    """Time that passes only while the watching thread waits."""

    def __init__(self, until: float) -> None:
        self.now, self.until = 0.0, until

    def monotonic(self) -> float:
        return self.now

    def wait(self, seconds: float) -> bool:
        assert seconds > 0
        self.now += seconds
        return self.now > self.until


def told(monkeypatch: pytest.MonkeyPatch, until: float, news: Callable[[float], str]) -> list[str]:
    """The lines of a watch over so many seconds, when the news depend on the time."""
    clock, lines = Clock(until), []
    monkeypatch.setattr(progress, "time", clock)
    found = progress.Progress(lines.append, pause=10, again=60, news=lambda: news(clock.now))
    monkeypatch.setattr(found, "_over", clock)
    found._watch()
    return lines


def test_without_news_there_is_a_line_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    assert told(monkeypatch, 140, lambda _now: "") == [
        "still at work, 10 s so far",
        "still at work, 70 s so far",
        "still at work, 130 s so far",
    ]


def test_news_are_told_at_most_each_ten_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = told(monkeypatch, 65, lambda now: "waiting for %d pods" % (8 - min(now, 30) // 10))
    assert lines == [
        "still waiting for 7 pods, 10 s so far",
        "still waiting for 6 pods, 20 s so far",
        "still waiting for 5 pods, 30 s so far",
    ]


def test_what_is_quick_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert told(monkeypatch, 9.9, lambda _now: "waiting") == []
