# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Look again until something holds. Private to rdma.k8s: it may change with any release."""

from __future__ import annotations

import time
from typing import Callable, TypeVar

from ..news import silent

Seen = TypeVar("Seen")


def look_until(
    good: Callable[[Seen], bool],
    look: Callable[[], Seen],
    timeout: float,
    pause: float,
    watch: Callable[[Seen], None] = silent,
) -> tuple[Seen, float]:
    """The last look, and the seconds until it was made.

    :param good: whether a look is the last one.
    :param timeout: seconds; no look begins later, and the first one is made in any case.
    :param pause: seconds between two looks.
    :param watch: takes each look after which there is another one.
    """
    start = time.monotonic()
    while True:
        seen = look()
        waited = time.monotonic() - start
        if good(seen) or waited + pause > timeout:
            return seen, waited
        watch(seen)
        time.sleep(pause)
