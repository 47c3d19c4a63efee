# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A sign of life of what works for long. Private to rdma.k8s: it may change with any release."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

PAUSE = 10.0
"""Seconds without a word, after which a line says what is being done."""


def nothing() -> str:
    """There are no news."""
    return ""


class Progress:
    """Says what is being done whenever nothing was said for some seconds, one line each time.

    A thread of its own speaks, so that the work needs no loop that thinks of it. Use it as a context.

    :param say: takes a line; it must not fail when nobody is there to be told.
    :param pause: seconds without a word before a line, in any case.
    :param again: seconds before the next line when it would say the same as the last one.
    :param news: tells what is being done, for work that is done elsewhere; empty: what :meth:`doing` was told last.
    """

    def __init__(
        self,
        say: Callable[[str], None],
        pause: float = PAUSE,
        again: float = PAUSE,
        news: Callable[[], str] = nothing,
    ) -> None:
        self._say, self._pause, self._again, self._news = say, pause, again, news
        self._begun = self._spoken = time.monotonic()
        self._what, self._said = "at work", ""
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="progress", daemon=True)

    def __enter__(self) -> Progress:
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._over.set()
        self._thread.join(1.0)  # a reader that takes nothing from a full pipe must not hold up the end

    def doing(self, what: str) -> None:
        """What is being done from now on, such as ``judging 12 nodes``."""
        self._what = what

    def spoke(self) -> None:
        """The user has just seen something."""
        self._spoken = time.monotonic()

    def _watch(self) -> None:
        wait = self._pause
        while not self._over.wait(wait):
            now = time.monotonic()
            what = self._news() or self._what
            if now - self._spoken >= (self._again if what == self._said else self._pause):
                self._say("still %s, %d s so far" % (what, now - self._begun))
                self._said, self._spoken = what, now
            left = self._pause - (now - self._spoken)
            wait = max(left, 0.001) if left > 0 else self._pause
