# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Action plugins as ansible-core makes them for a task."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, Optional

from ansible.parsing.dataloader import DataLoader
from ansible.playbook.play_context import PlayContext
from ansible.playbook.task import Task
from ansible.plugins.action import ActionBase
from ansible.template import Templar


def connection(transport: str = "local") -> Any:
    """What a plugin asks of the connection of its task."""
    return SimpleNamespace(_shell=SimpleNamespace(tmpdir=None), transport=transport, has_native_async=False)


def task_of(args: Mapping[str, Any], *, check_mode: bool = False) -> Task:
    """A task with these arguments."""
    task = Task()
    task.args, task.check_mode = dict(args), check_mode
    return task


def made(
    kind: Any,
    task: Task,
    *,
    loader: Optional[DataLoader] = None,
    variables: Optional[Mapping[str, Any]] = None,
    display: Any = None,
    **more: Any,
) -> ActionBase:
    """The plugin of a task.

    :param kind: its class; ``variables``: those of the task; ``display``: takes what is displayed.
    :param more: ``connection`` and ``play_context``, where the test has its own.
    """
    loader = loader or DataLoader()
    given = {"connection": connection(), "play_context": PlayContext(), **more}
    templar = Templar(loader, variables=dict(variables or {}))
    action: ActionBase = kind(task=task, loader=loader, templar=templar, shared_loader_obj=None, **given)
    if display is not None:
        action._display = display
    return action
