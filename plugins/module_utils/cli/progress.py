# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A sign of life on standard error, for commands that work for long. Private: it may change with any release."""

from __future__ import annotations

import contextlib
import threading
import time
from typing import Optional, TextIO

from ..core.report.wording import flat

PAUSE = 10.0
"""Seconds without a word, after which a line says what is being done."""


class Progress:
    """Says what is being done whenever nothing was said for :data:`PAUSE` seconds, one plain line each time.

    A thread of its own writes, so that the work needs no loop that thinks of it. The lines never go to standard output,
    which may be read by a program. Use it as a context; a stream that is not there or is broken is no error.
    """

    def __init__(self, stream: Optional[TextIO], pause: float = PAUSE) -> None:
        self._stream, self._pause = stream, pause
        self._begun = self._spoken = time.monotonic()
        self._what = "reading"
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
            if now - self._spoken >= self._pause:
                self._say("still %s, %d s so far" % (self._what, now - self._begun))
                self._spoken = now
            wait = max(self._pause - (now - self._spoken), 0.001)

    def _say(self, text: str) -> None:
        if self._stream is None:
            return
        with contextlib.suppress(OSError, ValueError):  # nobody is there to be told
            self._stream.write("rdma-k8s: %s\n" % flat(text))
            self._stream.flush()
