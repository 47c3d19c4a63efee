# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Lines for people while a task runs. Private to rdma.k8s: it may change with any release.

They go to standard error: what a callback writes, such as the JSON of ``ansible.posix.json``, stays as it is.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

from ansible.plugins.action import ActionBase

from ansible_collections.rdma.k8s.plugins.module_utils import progress
from ansible_collections.rdma.k8s.plugins.module_utils.core.report.wording import flat

WIDTH = 160
AGAIN = 60.0
"""Seconds after which it is told that nothing has changed."""


def show(display: Any, line: str, **options: Any) -> None:
    """Display a line. Whoever listened may be gone, as after an interrupt; the work goes on."""
    with contextlib.suppress(OSError, ValueError):
        display.display(line, **options)


def name_of(action: ActionBase) -> str:
    """How lines name a task: by the module of its plugin."""
    return "rdma.k8s." + type(action).__module__.rpartition(".")[2]


def progress_of(
    action: ActionBase, name: str, news: Callable[[], str] = progress.nothing, shown: bool = True
) -> progress.Progress:
    """Tells what a task is doing, on standard error: a line each ten seconds, when it is another one than the last, and
    else one a minute.

    :param name: what the lines begin with.
    :param shown: false: nothing is told after all.
    """

    def say(line: str) -> None:
        if not shown:
            return
        text = flat(line)
        if len(text) > WIDTH:  # how long it has taken stands at the end
            head, _comma, tail = text.rpartition(", ")
            text = "%s..., %s" % (head[: WIDTH - len(tail) - 5], tail)
        show(action._display, "%s: %s" % (name, text), stderr=True)

    return progress.Progress(say, again=AGAIN, news=news)
